"""Simulation of robots: time steps, contacts, limits, drives."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Booleans, Matrix
from ..checks import FINITE, NOTHING, SWITCH, WHOLE, PositiveCount, argument, checked, either
from ..engine.backends.host_arrays import TYPES
from ..engine.exclusive import Use, exclusive
from ..engine.function import CompiledFunction
from ..engine.loops.standalone import StandaloneLoop
from ..engine.progress import Progress
from ..engine.threads import check_threads
from ..model.position_drives import PD
from ..model.types import Actuator
from ..names import CALLED_HERE, SuggestsNames, knows_keywords
from ..providers import provided
from ..robot.checked_states import warn_of_scalar_first
from ..robot.mujoco_order import RobotState
from ..robot.robot import Robot
from ..robot.system import EQUAL_LIMITS
from ..robot.trajectory import Trajectory
from ..summaries import Several, SeveralListed
from .arguments import (
    CONTROLLER,
    DURATION,
    INTEGRATOR,
    ON_FAILURE,
    SECONDS,
    Controller,
    check_count,
    check_inputs,
    check_options,
    check_out,
    check_pairs,
    chosen_robots,
    ground_of,
    named_configuration,
    numbers,
    pairs_of,
    parts_of,
)  # fmt: skip
from .contact_arrays import ContactArrays, ContactsOfRobot, ManyContacts
from .derivatives.fleet_derivatives import EQUATIONS, StepDerivatives, compiled_slopes, step_derivatives, way_of
from .fleet import Fleet, Inputs
from .forces.at_joints import ForcesAtJoints
from .plant import Touchable, plant_of
from .recording import Observer, Pictures, Recording, SimulationView, controlled, read_only
from .scene import ContactSphere, Ground
from .sensors.measures import SimulatedSensors
from .sensors.sensed_robots import SensorReadings
from .simulation_options import ContactOptions, JointOptions, of_the_file, robot_of, warn_of_what_is_left_out
from .stage_records import INTERIOR_STEPS, NEWTON_STEPS, RESIDUAL
from .standalone import standalone_step
from .state import State
from .step_function import StepFunction
from .variation import parameter_derivatives, varied_arrays

if TYPE_CHECKING:
    from ..model.formats.robot_source import RobotInput


class Rollout(RobotState):
    """States q (robots, states, nq) and v (robots, states, nv) of `Simulation.rollout`, a pair, and which robots failed."""

    failed: Booleans  # (robots,)
    final: State | None  # after the last step; None on devices

    @classmethod
    def of(cls, states: tuple[Any, Any], failed: Booleans, final: State | None) -> Rollout:
        """Return states with the marks of robots that failed, and the last states as a value."""
        made = cls(*states)
        made.failed, made.final = failed, final
        return made


STANDARD_CONTACT, STANDARD_JOINTS = ContactOptions(), JointOptions()
TIME = FINITE.worded("a finite number of seconds")
CONSTANT = "robot", "dt", "integrator", "forces", "ground", "on_failure", "_options"
NOT_ASSIGNED = {
    **{x: f"give it to a new one: Simulation(robot, {x}=...)" for x in ("dt", "integrator", "ground")},
    **{x: f"with_options({x}=...) returns a copy" for x in ("on_failure", "threads")},
    **{x: f"it is an argument of step and run: step({x}=...)" for x in ("tau", "control", "external_forces")},
    "robot": "make a Simulation of the other robot",
    "forces": "make a Simulation of another robot, or with other actuators",
    "gravity": "it is that of the robot: featherweight.load(path, gravity=...)",
    "friction": "give vary(friction=...) a factor, or contact=featherweight.ContactOptions(friction=...) to a new one",
}
"""Names that users may want to assign, where this would change nothing, and what to do."""

REFUSED = frozenset((*NOT_ASSIGNED, *CALLED_HERE))
_assign = object.__setattr__

WHEN_NEEDED = {"_copies", "_differing", "touching_links"}  # copies that make rollouts and differences, and a list
MOST_COPIES, FEW = 4, 256  # copies for different numbers of robots; greatest number that has a copy of its own


class Simulation(SuggestsNames):
    """The motion of a robot, or of many identical robots, with contacts.

    The state is `time` [s], `q` (..., nq) and `v` (..., nv). For many robots at once, q and v have a leading axis. Quaternions
    in q must have unit length; lengths within 1e-3 of 1 are normalized.

    A step takes `dt` seconds. `integrator` is "semi-implicit" (Euler, with damping and springs of joints evaluated at the end
    of the step), "rk4" or "midpoint" (implicit, conserves energy); impulses at contacts, joint limits and joints with dry
    friction then change the velocity. The defaults are the robot file's values, or 1 ms and "semi-implicit".

    `robot` is a Robot, or a file or its text, as `load` takes it. The simulation of a robot has that robot's equalities, exact
    unless it was loaded otherwise. The simulation of an MJCF file loads its own robot, `sim.robot`, with equalities that yield
    (`load(path, equalities="file")`), or with exact ones for rigid contacts.

    The contact law is by default that of the robot's file: an MJCF file has MuJoCo's, by which contacts, limits and dry
    friction yield, and whose steps evaluate springs and drives at their start; contacts of other robots are rigid.

    Contacts arise between the collision shapes of the robot's file and the file's floor, other shapes fixed to the world, and
    each other where the file's contact rules allow it. `ground`, a `Plane` or `HeightField`, adds a ground; True is the plane z
    = 0. Collision shapes take part if they have something to touch: those of a file without contact rules and without a floor
    only if `ground` or `shapes=True` is given. `shapes=False` leaves them out. `spheres` of the robot (points are spheres
    without radius) touch the `ground`, and `pairs` of spheres, by their numbers, each other. Two shapes of one robot from a
    file without contact rules (URDF) never touch if they overlap in the file's configuration or at the start;
    `excluded_pairs` names their links. Other rigid bodies that overlap at the start are pushed apart at 1 m/s, with a
    ModelWarning. A ModelWarning also lists the contents of the file that are not simulated.

    Without q, the robot starts in the initial configuration of its file (`Robot.start`). `contact` (`ContactOptions`, or the
    name of its `law`: "file", "rigid" or "compliant") and `joints` (`JointOptions`) change the law, and what acts at joints.
    `actuators` default to the robot's; give a list, or position drives (`PD`). A semi-implicit step evaluates their stiffness
    and damping at its end, except by MuJoCo's law. Each step ends with a correction that closes the loops of mechanisms;
    `opened` is the residual of their constraints before it.

    A start may violate a rigid joint limit by at most 0.2 rad or m, and by at most the joint's range; more, up to the largest
    violation in a configuration of the robot's file, gives a ModelWarning, and any other start is a ValueError. The limit moves
    the joint back at 1 rad/s or m/s, without velocity; a limit that loops keep out of reach raises a SimulationError. Limits
    that yield accept every start.

    `on_failure` says how a simulation of many robots treats a robot whose step fails: "raise" raises a SimulationError, and no
    robot takes the step; "stop" stops the robot where it is; "reset" returns it to its initial state. `failed` marks these
    robots.

    Copies (`copy.copy`, `copy.deepcopy`, `pickle`) continue from the state at which they were made, with bitwise the same
    results. Observers (windows, for example) stay with the original. One thread at a time may use a simulation, and a call
    while another thread is in one raises RuntimeError: give each thread a copy. Any thread may read `time`, `steps`, `q` and
    `v`; the controller and the observers of `run` may call the simulation. Ctrl-C interrupts it between two steps.

    A step fails if its result is not finite. With rigid contacts, it also fails if the energy grows without the work of a
    force, by more than 5 % of the sum of the kinetic energies before and after the step: the step is too long for the speeds.
    For bodies that tumble at w, "semi-implicit" adds some (h w)² of their energy in each step; if h w approaches 0.1 rad,
    choose another integrator or a shorter step.

    Raises ValueError for invalid arguments and SimulationError for a step that fails.
    """

    robot: Robot
    dt: float  # [s]
    integrator: str
    forces: ForcesAtJoints
    ground: Ground | None
    on_failure: str

    @knows_keywords
    def __init__(
        self,
        robot: Robot | RobotInput,
        dt: float | None = None,
        integrator: str | None = None,
        *,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        spheres: Iterable[ContactSphere] = (),
        pairs: Iterable[tuple[int, int]] = (),
        ground: Ground | bool | None = None,
        shapes: bool | None = None,
        contact: ContactOptions | str = STANDARD_CONTACT,
        joints: JointOptions = STANDARD_JOINTS,
        actuators: Sequence[Actuator] | PD | None = None,
        root_forces: bool = False,
        on_failure: str = "raise",
        threads: int | None = None,
    ) -> None:
        if isinstance(contact, str):
            contact = ContactOptions(law=contact)
        check_options("contact", contact, ContactOptions)
        robot = robot_of(robot, contact.law)
        robot.require_dynamics("Simulation")
        dt, integrator = of_the_file(robot, dt, integrator)
        argument("dt", dt, SECONDS)
        argument("integrator", integrator, INTEGRATOR)
        check_options("joints", joints, JointOptions)
        spheres = parts_of(ContactSphere, "spheres", spheres, "featherweight.ContactSphere('foot', 0.02)")
        pairs, ground = pairs_of(pairs), ground_of(ground)
        if isinstance(actuators, PD):
            actuators = actuators.actuators(j for j in robot.joints if j.independent)
        actuators = parts_of(Actuator, "actuators", robot.actuators if actuators is None else actuators, "Actuator(...)")
        argument("root_forces", root_forces, SWITCH)
        argument("shapes", shapes, either([SWITCH, NOTHING]).worded("True or False"))
        check_pairs(pairs, spheres, ground)
        argument("on_failure", on_failure, ON_FAILURE)
        check_threads("Simulation", threads)
        own = None if tuple(actuators) == tuple(robot.actuators) else actuators
        self._options: dict[str, Any] = dict(
            spheres=spheres, pairs=pairs, shapes=shapes, contact=contact, joints=joints, actuators=own
        )
        warn_of_what_is_left_out(robot, contact.law, () if joints.limits is True else (EQUAL_LIMITS,))
        touchable = Touchable(spheres, pairs, ground, shapes)
        self._plant = plant = plant_of(robot, actuators, float(dt), integrator, touchable, contact, joints)
        fixed = {"robot": robot, "dt": plant.model.h, "integrator": integrator, "forces": plant.forces, "ground": ground}
        vars(self).update(fixed, on_failure=on_failure)
        self._use = Use(f"the simulation of {robot.name!r}", "make one for each thread, such as copy.copy(simulation)")
        self._observers: list[Observer] = []
        self._varied: dict[str, Array] = {}  # arguments of the last `vary`
        self._pictures: Pictures | None = None
        with plant.model.wait:
            self._fleet = Fleet(plant, threads, on_failure, root_forces)
            self._sensors = SimulatedSensors(self._fleet)
            self._fleet.begin_as_drawn()
            self.reset(q, v)

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, x: Any) -> None:
            if name in REFUSED:
                how = NOT_ASSIGNED.get(name) or f"here it is {CALLED_HERE[name]}"
                raise AttributeError(f"{name!r} of a Simulation cannot be assigned; {how}", name=name)
            _assign(self, name, x)

    # copies

    def __getstate__(self) -> dict[str, object]:
        return vars(copy.copy(self))  # whose arrays no step changes until it is written

    @exclusive
    def __deepcopy__(self, memo: dict[int, object]) -> Simulation:
        """Return a simulation of the same robot with a copy of the state. Both share the robot and its functions."""
        copied = memo[id(self)] = object.__new__(type(self))
        vars(copied).update({name: getattr(self, name) for name in CONSTANT}, _observers=[], _pictures=None)
        copied._plant = self._plant.copied()
        copied._fleet = self._fleet.copied(copied._plant)
        copied._sensors = self._sensors.copied(copied._fleet)
        copied._use = copy.copy(self._use)
        of_users = vars(self).keys() - vars(copied).keys() - WHEN_NEEDED
        vars(copied).update(copy.deepcopy({name: vars(self)[name] for name in of_users}, memo))
        return copied

    def __copy__(self) -> Simulation:
        return copy.deepcopy(self)

    @exclusive
    def with_options(self, *, on_failure: str | None = None, threads: int | None = None) -> Simulation:
        """Return a copy that treats failed steps otherwise, or uses another number of threads; None leaves an option as it is.

        Raises ValueError for other options than those of a `Simulation`.
        """
        check_threads("Simulation", threads)
        copied = copy.deepcopy(self)
        if on_failure is not None:
            argument("on_failure", on_failure, ON_FAILURE)
            vars(copied)["on_failure"] = copied._fleet.on_failure = on_failure
        if threads is not None:
            copied._fleet.threads = threads
        return copied

    @exclusive
    def with_robot(self, robot: Robot) -> Simulation:
        """Return a simulation of another robot with all options of this one, at the configuration and velocity of this one.

        It suits robots with the same joints, such as `Robot.with_inertial_parameters` returns; actuators that were not given
        are those of the other robot. Raises ValueError for a robot with other joints, and as `Simulation` does.
        """
        if (robot.nq, robot.nv) != (self.robot.nq, self.robot.nv):
            raise ValueError(f"with_robot: {robot.name} must have the joints of {self.robot.name}")
        options = {**self._options, "ground": self.ground, "on_failure": self.on_failure, "threads": self._fleet.threads}
        return Simulation(robot, self.dt, self.integrator, q=self.q, v=self.v, **options)

    # the state

    @exclusive
    def reset(
        self, q: ArrayLike | None = None, v: ArrayLike | None = None, time: float = 0.0, *, which: ArrayLike | None = None
    ) -> None:
        """Start again at a configuration q (..., nq), or a named one ("home"), and velocity v (..., nv), zero by default.

        The default of q is the file's initial configuration (`Robot.start`). Joints slightly beyond their limits are moved back
        (see `Simulation`).

        `which`, (robots,) bool or numbers of robots, resets only some of many robots, with one state for each or one for all.
        Time, and the states of all other robots, do not change.

        Raises ValueError for wrong shapes, non-finite numbers, quaternions without unit length (errors up to 1e-3 are
        normalized), open loops, joints far beyond their limits, and unknown names.

            sim.reset(q, time=1.0)
        """
        if which is None and type(time) in (float, int) and self._fleet.reset_as_usual(q, v, time):
            self._sensors.begin(1, time)
            return
        if isinstance(q, str):
            q = named_configuration(self.robot, q)
        given = q is not None
        q, v = self._plant.states(q, v)
        if given:
            warn_of_scalar_first(self.robot, q)
        argument("time", time, TIME)
        if which is None:
            self._fleet.reset(q, v, float(time))
            self._sensors.begin(len(self._fleet.q), float(time))
            return
        robots = len(self._fleet.q)
        some = chosen_robots(which, robots)
        if q.ndim > 1 and len(q) == robots != len(some):
            q, v = q[some], v[some]
        if q.ndim > 1 and len(q) != len(some):
            raise ValueError(f"q and v must have 1 row, {len(some)} rows (chosen robots) or {robots} rows (all); got {len(q)}")
        self._fleet.reset_some(some, q, v)
        if self._sensors.history is not None:
            self._sensors.history.begin(some, self._fleet.times[some])

    @property
    def steps(self) -> int:
        """The number of steps since the reset."""
        return self._fleet.steps

    @property
    def time(self) -> float:
        """The time of the state [s]. You may assign another one."""
        return self._fleet.time

    @time.setter
    @exclusive
    def time(self, time: float) -> None:
        argument("time", time, TIME)
        if self._sensors.history is not None:
            self._sensors.history.shift(time - self._fleet.times)
        self._fleet.set_time(float(time))

    @property
    def q(self) -> Array:
        """The configuration, (nq,) or (robots, nq), read-only. You may assign a new one, as in `reset`."""
        return self._fleet.access.q()

    @q.setter
    @exclusive
    def q(self, q: ArrayLike | None) -> None:
        self._put(q, self.v)
        warn_of_scalar_first(self.robot, self._fleet.q)

    @property
    def v(self) -> Array:
        """The velocity, (nv,) or (robots, nv), read-only. You may assign a new one."""
        return self._fleet.access.v()

    @v.setter
    @exclusive
    def v(self, v: ArrayLike | None) -> None:
        self._put(self.q, v)

    @property
    @exclusive
    def state(self) -> State:
        """The state as a value, which later steps do not change (see `State`). You may assign one, to continue from there.

        It may come from another simulation of the same robot and scene with the same step length, and from another number of
        robots. Raises ValueError for other states, and for another number of robots than `vary` was given, if these differ.
        Robots that had stopped (`on_failure="stop"`) go on. Robots restart (`on_failure="reset"`) where the last reset put them
        or, if a state changes their number, at that state.
        """
        history = self._sensors.history
        return self._fleet.state(history and history.copy())

    @state.setter
    @exclusive
    def state(self, state: State) -> None:
        self._fleet.put_state(state)
        self._sensors.history = state.history and state.history.copy()

    @property
    def activation(self) -> Array:
        """Activations of the actuators that have one, (na,) or (robots, na), in the order of `robot.actuators`.

        They start at zero. You may assign new ones: one row for each robot, or (na,) for all. Raises ValueError for wrong
        shapes and for non-finite numbers.
        """
        return read_only(self._fleet.activation[0] if self._fleet.single else self._fleet.activation)

    @activation.setter
    @exclusive
    def activation(self, activation: ArrayLike | None) -> None:
        given, shape = numbers("activation", activation), self._fleet.activation.shape
        if given.shape not in (shape[1:], shape) or not np.isfinite(given).all():
            raise ValueError(f"activation must be finite numbers of shape {shape[1:]} or {shape}; got shape {given.shape}")
        self._fleet.revision += 1
        self._fleet.activation[:] = given

    def _put(self, q: ArrayLike | None, v: ArrayLike | None) -> None:
        """Continue from another state of the same number of robots, without resetting the time."""
        q, v = self._plant.states(q, v)
        if q.shape != self.q.shape:
            raise ValueError(f"q and v must have rows for all robots: shapes {self.q.shape} and {self.v.shape}")
        self._fleet.put(*((q[None], v[None]) if self._fleet.single else (q, v)))

    @property
    def revision(self) -> int:
        """A counter of changes of the state and of `vary`; results computed at an older revision are outdated."""
        return self._fleet.revision

    @property
    def failed(self) -> Booleans:
        """Return whether each robot (robots,) failed in the last step; with `on_failure="stop"`, whether it has stopped."""
        failed: Booleans = self._fleet.failed.copy()
        return failed

    # variation of robots

    @exclusive
    def vary(
        self,
        *,
        parameters: ArrayLike | None = None,
        armature: ArrayLike | None = None,
        shape_offsets: ArrayLike | None = None,
        shape_sizes: ArrayLike | None = None,
        friction: ArrayLike | None = None,
        solref: ArrayLike | None = None,
        solimp: ArrayLike | None = None,
        dry_friction: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        stiffness: ArrayLike | None = None,
        limits: ArrayLike | None = None,
        gains: ArrayLike | None = None,
    ) -> None:
        """Give each robot its own parameters (domain randomization), from the next step on, without recompilation.

        `parameters` (robots, nbodies, 10) are inertial parameters, as `identification.random_parameters` draws them. `armature`
        (robots, k) is the armature as in `robot.armature`. `shape_offsets` (robots, nshapes, 3) [m] displace the shapes of
        `robot.shapes` in the frames of their bodies. `shape_sizes` (robots, nshapes, 3) are factors of the numbers of
        `Shape.size` of spheres, capsules, cylinders, boxes and ellipsoids, and 1 for all others. Both are for contacts but not
        for rays and pictures. All other arguments are factors, of shape (robots,), or with one factor for each element:
        `friction` of contacts; `solref` (robots, 2), time constant and damping ratio of compliant contacts, and `solimp`
        (robots, 5), least and greatest impedance, width, midpoint and power of their curve, within MuJoCo's bounds;
        `dry_friction`, `damping`, `stiffness` and `limits` (robots, n) of degrees of freedom of all joints, or of these and
        tendons, where factors of limits are those of ranges, about their middle; `gains` (robots, nu) of actuators. A number is
        the same factor for all robots and elements, or the armature of all joints; parameters, armatures, offsets and sizes
        without the axis of robots are those of all. A parameter that is not given returns to the robot's own value. Inertias
        scale the compliance of contacts, limits and dry friction that yield (MuJoCo's `invweight0`).

        Raises ValueError for wrong shapes, non-finite numbers and negative factors, for the softness of rigid contacts, and for
        inertias of robots whose functions are too large to be traced. Raises NotImplementedError for inertial parameters with
        gravity compensation.

            fleet = featherweight.Simulation(robot, q=np.tile(q, (3, 1)))
            fleet.vary(damping=np.array([0.5, 1.0, 2.0]))
        """
        every = {
            "parameters": parameters, "armature": armature, "shape_offsets": shape_offsets, "shape_sizes": shape_sizes,
            "friction": friction, "solref": solref, "solimp": solimp, "dry_friction": dry_friction, "damping": damping,
            "stiffness": stiffness, "limits": limits, "gains": gains,
        }  # fmt: skip
        given = {name: x for name, x in every.items() if x is not None}
        if parameters is not None and self.robot.model.weight_compensated:
            raise NotImplementedError(f"inertial parameters of {self.robot.name}, with gravity compensation, cannot vary")
        varied = varied_arrays(self._fleet, given)
        copies: dict[int, Simulation] = vars(self).get("_copies", {})
        for kind, copied in list(copies.items()):
            if len(copied._fleet.q) != len(self._fleet.q):
                del copies[kind]
        for moving in (self, *copies.values()):
            moving._fleet.vary(varied)
            moving._varied = {name: np.array(x, float) for name, x in given.items()}

    # moving

    @exclusive
    def step(
        self,
        tau: ArrayLike | None = None,
        control: ArrayLike | None = None,
        external_forces: ArrayLike | None = None,
        *,
        steps: int = 1,
    ) -> None:
        """Take `steps` steps under joint forces, controls and external forces.

        tau (..., nv), control (..., nu) of the actuators, and `external_forces` (..., nbodies, 6) on bodies, as in
        `Robot.inverse_dynamics`, are constant over the steps. tau and external forces are zero by default. Without control, the
        actuators exert no force, whereas position servos with a control of zero hold zero: a ModelWarning says so once if
        neither tau nor control is given. Another warns once of a tau that pushes a floating joint, unless the simulation has
        `root_forces=True`. tau is limited to the effort limits of the joints. Raises SimulationError if a step fails; the state
        is then the one before that step.

            sim.step(tau, steps=10)
        """
        if type(steps) is not int or steps < 1:
            check_count("steps", steps, 1)
        if self._sensors.history is None:
            self._fleet.step(tau, control, external_forces, steps)
        else:
            self._sensors.sample(tau, control, external_forces, steps)

    @exclusive
    def derivatives(
        self, tau: ArrayLike | None = None, control: ArrayLike | None = None, external_forces: ArrayLike | None = None
    ) -> StepDerivatives:
        """Return the Jacobians of the step that `step` would take from the current state, without taking it.

        The result has A (n, n), the state after the step by the state before; B (n, nv), by tau; `B_control` (n, nu), by
        controls; and `doubtful`, the contacts and joints at which the step has no derivative (see `StepDerivatives`). The state
        is q and v, n = 2 nv, and activations and delays of actuators if there are any. Changes of configurations are
        velocities. For many robots, the arrays have a leading axis. The derivative by a force on a body is B times the
        transposed Jacobian of this body.

        The Jacobians are those of the equations of the step: each contact keeps its state (sticking, sliding, open or
        bouncing), and contact points move over the surfaces of both shapes. Steps whose equations have no derivatives here
        (adhesion, moving surfaces, rigid contact with forces that are not linear, compliant contact in the midpoint rule,
        `noslip_iterations`, activations in "rk4") are differentiated by central differences of whole steps.

        Raises ValueError and SimulationError as `step` does.
        """
        return step_derivatives(self._fleet, Inputs(tau, control, external_forces))

    @property
    def has_equations(self) -> bool:
        """Return whether `derivatives` are those of the equations of the step, with rigid contact where they cover it."""
        return way_of(self._fleet, Inputs()) is EQUATIONS

    @property
    def has_explicit_drives(self) -> bool:
        """Return whether steps evaluate the forces of all actuators at the state before the step."""
        return not self._fleet.model.armature_varies

    @property
    def has_late_dampers(self) -> bool:
        """Return whether dampers of joints, and nothing else, act after the impulses of a step (MuJoCo's "Euler")."""
        model = self._fleet.model
        return model.settles and not (model.armature_varies or model.damped_lengths or len(model.free_bodies.row))

    @exclusive
    def derivative_products(
        self,
        cotangents: ArrayLike,
        tau: ArrayLike | None = None,
        control: ArrayLike | None = None,
        external_forces: ArrayLike | None = None,
    ) -> Array:
        """Return the products (..., 3 nv + na + nu) of cotangents (..., 2 nv + na) and the Jacobians A, B and B_control.

        cotangents are those of the state after the step that `step` would take; products are those of the state before it, tau
        and controls, in this order (see `derivatives`). This is the reverse mode that learning needs: the Jacobians are not
        stored. Raises as `derivatives` does.
        """
        inputs = Inputs(tau, control, external_forces)
        found = compiled_slopes(self._fleet, inputs).products(inputs, cotangents)
        return found[0] if self._fleet.single else found

    @exclusive
    def parameter_derivatives(
        self,
        *parameters: str,
        tau: ArrayLike | None = None,
        control: ArrayLike | None = None,
        external_forces: ArrayLike | None = None,
    ) -> dict[str, Array]:
        """Return the derivatives of the state after the step that `step` would take by parameters of the robot, by name.

        Parameters are the arguments of `vary`: "parameters" (inertial parameters), "armature", "shape_offsets" and
        "shape_sizes" (three numbers for each shape), and the factors "friction", "solref", "solimp", "dry_friction", "damping",
        "stiffness", "limits" and "gains", at their values in the last `vary`, or else the robot's own. Each array is (...,
        2 nv + na, k), for k numbers of the argument: 10 for each body, one for each joint, degree of freedom or actuator, one
        friction factor, two of `solref` and five of `solimp`. The state is that of `derivatives`.

        They are central differences over 1e-6 of the parameter (forward differences at zero, which factors and armatures cannot
        pass) of whole steps, which a fleet of 2 k robots takes on threads. Raises as `step` and `vary` do.

            slopes = sim.parameter_derivatives("damping", "friction", control=u)["damping"]
        """
        if "_differing" not in vars(self):
            self._differing = self.with_options(on_failure="raise")
        inputs = {"tau": (tau, 1), "control": (control, 1), "external_forces": (external_forces, 2)}
        found = parameter_derivatives(self._differing, self.state, self._varied, parameters, inputs)
        return {name: x[0] for name, x in found.items()} if self._fleet.single else found

    @exclusive
    def step_function(self, contacts: int | None = None) -> StepFunction:
        """Return the step of a copy of this simulation as a function of states as arrays, for libraries that differentiate.

        `featherweight.torch.step` and `featherweight.jax.step` turn it into functions of tensors and JAX arrays. The arrays of
        a state are for so many `contacts` of a robot, by default for as many as this simulation has now.
        """
        if contacts is not None:
            check_count("contacts", contacts, 1)
        return StepFunction(self.with_options(on_failure="raise"), contacts)

    # many steps

    @exclusive
    def run(
        self,
        duration: float,
        controller: Controller | None = None,
        *,
        every: int = 1,
        tau: ArrayLike | None = None,
        control: ArrayLike | None = None,
        external_forces: ArrayLike | None = None,
    ) -> Trajectory:
        """Take steps for `duration` seconds, rounded to whole steps; return the trajectory, with every `every`-th state.

        It has the first and the last state, too, and for many robots the contacts of the first one.

        `controller(time, q, v)` is called before each step. It returns joint forces tau (..., nv), or a pair of tau (or None)
        and controls. Raises ValueError for invalid arguments and results of the controller, and SimulationError as `step` does.
        After an error, the state is the one before the failed step; after Ctrl-C, the one after `steps` steps.

            motion = sim.run(0.1, lambda time, q, v: -2.0 * v)  # a controller returns joint forces
            motion.times, motion.q
        """
        argument("duration", duration, DURATION)
        check_count("every", every, 1)
        argument("controller", controller, CONTROLLER)
        steps = round(duration / self.dt)
        if not steps and duration > 0.0:
            raise ValueError(f"duration must be a time step, {self.dt:g} s, or more; got {duration!r}")
        fleet, history = self._fleet, self._sensors.history
        tau, control, external_forces = fleet.inputs(tau, control, external_forces)
        record, move = Recording(fleet, every), fleet.step if history is None else self._sensors.sample
        with Progress(f"simulation of {self.robot.name!r}, {duration:g} s", steps) as progress:
            if controller is None and history is None and fleet.single and not self._observers and self.on_failure == "raise":
                record.run(steps - steps % every, Inputs(tau, control, external_forces), progress)
            while (done := progress.done) < steps:
                count = min(every - done % every, steps - done) if controller is None and history is None else 1
                if controller is not None:
                    tau, control = controlled(fleet, controller, control)
                move(tau, control, external_forces, count)
                record.note(done + count, tau, last=done + count == steps)
                if self._observers:
                    self._show_observers()
                progress.advance(count)
        trajectory = record.trajectory()
        for observer in self._open_observers() if self._fleet.single else ():
            observer.play(trajectory, start=False)
        return trajectory

    @exclusive
    def rollout(
        self, q: Any, v: Any = None, steps: int | None = None, *, tau: Any = None, control: Any = None,
        external_forces: Any = None, every: int = 1, out: tuple[Array, Array] | None = None, device: str | None = None,
    ) -> Rollout:  # fmt: skip
        """Simulate many robots from a `State`, or from q (robots, nq) and v (robots, nv); return their states over time.

        The states have shapes (robots, states, nq) and (robots, states, nv): every `every`-th state, starting with the first;
        they are written to `out`, a pair of C-contiguous float64 arrays of these shapes, if it is given. `failed` (robots,) of
        the result marks robots with a failed step, if `on_failure` is not "raise"; `final` is the `State` after the last step.
        From a `State`, robots continue with its activations and contacts; from q and v, they begin as after `reset`, with the
        activations of this simulation.
        tau (robots or 1, steps, nv) and control (robots or 1, steps, nu) have an entry for each step. Without both, `steps`
        gives the number of steps.

            U = rng.normal(size=(64, 30, len(sim.robot.controls)))
            Q, V = sim.rollout(sim.state.repeated(64), control=U)  # 64 futures from here

        Arrays on a GPU (PyTorch, CuPy, JAX, ...) are simulated on that GPU, NumPy arrays only with `device="cuda"`: one launch
        computes all steps, contacts included, with one thread for each robot, in float64 and bitwise equal to this machine's
        results. The states are arrays of the same library. The call does not check device arrays in advance (quaternions must
        have unit length) and waits for the device to learn which robots failed. Raises NotImplementedError on devices for
        robots whose functions are not traced, and for `on_failure` other than "raise".

        The simulation itself does not change: a copy of it, with the same `vary`, moves the robots. Raises ValueError for
        invalid arguments, before any robot moves, and SimulationError as `step` does.
        """
        check_count("every", every, 1)
        inputs = {"tau": tau, "control": control, "external_forces": external_forces}
        state = q if isinstance(q, State) else None
        arrays = inputs if state is not None else inputs | {"q": q, "v": v}
        if state is not None and (v is not None or device is not None):
            raise ValueError("rollout: a State has its own velocity, and starts on this machine only; omit v and device")
        if device is not None or not TYPES.issuperset(map(type, arrays.values())):
            from .device_rollout import rolled_out  # only if there may be a device

            states = rolled_out(self._fleet, arrays, steps, every, device)
            if states is not None:
                return Rollout.of(states, np.zeros(states[0].shape[0], bool), None)  # a failure is an error
        if state is not None:
            robots, apart = len(state), self._apart_at(state)
        else:
            q = np.atleast_2d(numbers("q", q))
            robots = len(q)
            apart = self._apart(robots)
            apart.reset(q, None if v is None else np.atleast_2d(numbers("v", v)))
            apart._fleet.take_activations(self._fleet)
        given = [None if x is None else numbers(name, x) for name, x in inputs.items()]
        steps = check_inputs(zip(inputs, given, self._plant.input_sizes.values(), strict=True), robots, steps)
        if out is not None:
            check_out(out, [(robots, 1 + steps // every, n) for n in (self.robot.nq, self.robot.nv)])
        what = Inputs(*given) if steps else Inputs()
        if apart._sensors.history is not None:
            return Rollout.of(*apart._sensors.roll_out(steps, what, every, out), apart.state)
        return Rollout.of(apart._fleet.roll_out(steps, what, every, out), apart.failed, apart.state)

    @exclusive
    def advance(
        self,
        state: State,
        *,
        tau: ArrayLike | None = None,
        control: ArrayLike | None = None,
        external_forces: ArrayLike | None = None,
        steps: int = 1,
    ) -> State:
        """Return the state after `steps` steps from a state, of one robot or of many; this simulation does not change.

        Inputs are as in `step`. Raises SimulationError as `step` does.

            later = sim.advance(sim.state, tau=tau, steps=5)
        """
        apart = self._apart_at(state)
        apart.step(tau, control, external_forces, steps=steps)
        return apart.state

    def _apart_at(self, state: State) -> Simulation:
        """Return a copy that rollouts move, at a state. Robots that fail restart where those of this simulation do."""
        apart, (q, v) = self._apart(len(state) if type(state) is State else 1), self._fleet.start
        apart.state = state
        moving = apart._fleet
        moving.start = (q, v) if len(q) == len(state) else (moving.q.copy(), moving.v.copy())
        return apart

    def _apart(self, robots: int) -> Simulation:
        """Return a copy of this simulation, which rollouts of so many robots move; the last `MOST_COPIES` are kept."""
        copies: dict[int, Simulation] = vars(self).setdefault("_copies", {})
        kind = robots if robots <= FEW else 0  # one copy for all large numbers, because of its memory
        if kind not in copies:
            if len(copies) == MOST_COPIES:
                del copies[next(iter(copies))]
            copies[kind] = copy.copy(self)
        return copies[kind]

    def standalone(self) -> StandaloneLoop:
        """Return the kernel of a step for `featherweight.export`, which starts at the state of this simulation.

        Raises NotImplementedError for a simulation of many robots, and for one that calls Python functions in its steps.
        """
        if len(self._fleet.q) != 1:
            raise NotImplementedError(
                "export: a simulation that leaves Python has one robot; make one of a state of this robot"
            )
        return standalone_step(copy.copy(self)._fleet)

    def __repr__(self) -> str:
        many = "" if self._fleet.single else f", {len(self._fleet.q)} robots"
        return f"<Simulation of {self.robot.name!r}: t={self.time:g} s, dt={self.dt:g} s, {self.integrator}{many}>"

    # what can be observed

    @exclusive
    def energy(self) -> Any:
        """Return the kinetic, potential and spring energy [J], () or (robots,), with each robot's parameters (`vary`).

        For example:

            sim.energy()  # [J]
        """
        return self._fleet.energy()

    @exclusive
    def with_own_inertias(self, function: CompiledFunction[Any], *arguments: Array, which: Array | slice = slice(None)) -> Any:
        """Evaluate a function of the robot for some robots, each with its own inertias if `vary` made them different."""
        return self._fleet.with_own_inertias(function, *arguments, which=which)

    def varied(self, name: str, which: Array | slice = slice(None)) -> Array | None:
        """Return the values that `vary` gave to some robots, by the name of a field of `VariedArrays`.

        It is None without variation.
        """
        x: Array = getattr(self._fleet.varied, name)
        return x[which] if len(x) else None

    @property
    def opened(self) -> float:
        """The greatest residual of loop constraints at the end of the last step, before the correction."""
        return float(self._fleet.arrays.states.opened.max())

    @property
    def left_out(self) -> tuple[str, ...]:
        """Joints whose springs or limits are not simulated, because they follow others and have no coordinate of their own."""
        return tuple(self.forces.left_out)

    @property
    def excluded_pairs(self) -> tuple[tuple[str | None, str | None], ...]:
        """Pairs of links whose shapes never touch, because they overlap in the file's configuration or at the start.

        This applies only to files without contact rules. None is the world.
        """
        return Several(self._plant.contacts.excluded)

    @exclusive
    def contacts(self, robot: int = 0) -> ContactsOfRobot:
        """Return points (k, 3) [m], forces (k, 3) [N] and names of one robot's contacts in the last step.

        Points and forces are in the world frame; forces act on the first of the two bodies. The forces at the contacts of a
        patch are approximately those of least norm with the wrench that the solver found.

            points, forces, names = sim.contacts()
        """
        quickly = self._fleet.first_contacts
        if quickly and type(robot) is int and not robot:
            found = quickly()
            if found is not None:
                return found
        self._require_robot(robot)
        return self._fleet.contacts_of(robot)

    def _require_robot(self, robot: int) -> None:
        """Raise an error for a number that is none of a robot."""
        robots, number = len(self._fleet.q), robot if type(robot) is int else argument("robot", robot, WHOLE)
        if not -robots <= number < robots:
            raise IndexError(f"robot must be a number from 0 to {robots - 1}; got {robot}")

    @exclusive
    def contacts_of_many(self, which: Array | Sequence[int] | slice = slice(None)) -> ManyContacts:
        """Return the last step's contacts of all robots, or of some: numbers (k,), a mask (robots,) or a slice."""
        if not isinstance(which, slice):
            which = chosen_robots(which, len(self._fleet.q))
        arrays: ContactArrays = self._fleet.spread_contacts(which)
        return arrays.together(which, self.dt)

    @property
    def contact_arrays(self) -> ContactArrays:
        """The stored contacts of all robots in the last step, with a fixed number of places for each robot.

        Later steps overwrite them. Impulses are those of the solver: zero at contacts inside a patch (see `contacts`).
        """
        return self._fleet.contact_arrays()

    @property
    def fleet_arrays(self) -> Any:
        """The memory of states, inputs and contacts of all robots, for compiled kernels.

        Other arrays replace it when all robots are reset together, or need more contacts.
        """
        return self._fleet.arrays

    @property
    def differentiated_joint_forces(self) -> tuple[Matrix, Matrix]:
        """Forces (robots, nv) of dry friction and of limits of joints in the steps of the last `derivatives` from equations."""
        rows, forces = self._plant.contacts.rows, np.zeros((2, len(self._fleet.q), self.robot.nv))
        last = compiled_slopes(self._fleet, Inputs()).found.impulses * rows.sign / self.dt
        for r in np.flatnonzero(rows.dof < self.robot.nv):
            forces[0 if rows.friction[r] else 1, :, rows.dof[r]] += last[:, r]
        return forces[0], forces[1]

    @cached_property
    def touching_links(self) -> list[tuple[str | None, str | None]]:
        """The two links, or frames of spheres, of each possible contact point; None is the world.

        Contact forces act on the first link.
        """
        return SeveralListed(self._plant.contacts.touching.links)

    @property
    def contact_softness(self) -> tuple[Array, Array] | None:
        """`solref` (n, 2) and `solimp` (n, 5) of each possible contact point as in the file; None for rigid contacts.

        They are mixed from both surfaces, and do not include the factors of `vary`.
        """
        compliance = self._plant.contacts.compliance
        return None if compliance is None else compliance.of_contacts

    @property
    @exclusive
    def contact_forces(self) -> Array:
        """Return the forces of the last step's contacts on each body, (nbodies, 6) or (robots, nbodies, 6).

        A row is force [N], and torque [N m] about the origin of the body's frame in the file, in that frame.
        """
        return self._fleet.contact_forces()

    @property
    @exclusive
    def limit_forces(self) -> Array:
        """Return the forces of joint limits and dry friction in the last step, (n,) or (robots, n).

        n counts the degrees of freedom of all joints.
        """
        forces = self._fleet.arrays.states.last_row @ self._fleet.contacts.signs / self.dt
        return np.asarray(forces[0] if self._fleet.single else forces)

    @property
    def solver(self) -> dict[str, Any]:
        """Statistics of the contact solver in the last step: Newton and interior-point steps, and residual [m/s].

        The values are maxima over all robots. "inexact_steps" counts steps of all robots since the last reset whose residual
        exceeded the tolerance of `ContactOptions`, but was below 1e6 times it. A step with a larger residual fails.
        """
        states = self._fleet.arrays.states
        most = states.report.max(axis=0)
        return {
            "newton_steps": int(most[NEWTON_STEPS]), "interior_steps": int(most[INTERIOR_STEPS]),
            "residual": float(most[RESIDUAL]), "inexact_steps": int(states.inexact.sum()),
        }  # fmt: skip

    @exclusive
    def sensors(self, noise: np.random.Generator | None = None) -> SensorReadings:
        """Return readings of the file's sensors, (nsensordata,) or (robots, nsensordata), by name: `sensors()["imu_gyro"]`.

        Order, signs and units are those of MuJoCo's `sensordata` (XML reference, chapter "sensor"), including quaternions (w,
        x, y, z). `robot.sensors` lists the sensors with their slices. Positions, velocities and energies refer to the current
        state. Accelerations and forces are means over the last step, including impulses of contacts and impacts, in the axes at
        its start. Before its first step from a state, a robot reads as if forces that no sensor measures held it still.

        Sensors with a delay or an interval return earlier samples, which are zero before the start of the simulation. Readings
        are clipped to ±cutoff. With a `noise` generator, they have Gaussian noise with the file's standard deviations;
        directions and quaternions keep unit length.
        """
        if noise is not None and not isinstance(noise, np.random.Generator):
            raise TypeError(f"noise must be a numpy.random.Generator, such as numpy.random.default_rng(); got {noise!r}")
        return self._sensors.readings(noise)

    @exclusive
    @checked
    def render(
        self, width: PositiveCount = 640, height: PositiveCount = 480, robot: int | None = None, camera: str | None = None
    ) -> Array:
        """Draw a picture of all robots side by side, or of `robot`, as numbers 0 to 255 of shape (height, width, 3).

        No display is needed. `camera` names one of `robot.cameras`; with several robots, it is the first robot's. Without
        `camera`, the picture shows the position of the robots at the first such call. Raises ImportError without the packages
        of the extra `render`, IndexError for an unknown robot, and ValueError for an unknown camera.
        """
        if robot is not None:
            self._require_robot(robot)
        if self._pictures is None:
            self._pictures = provided("Simulation.render")()
        return self._pictures.frame(self, (width, height), robot, camera)

    def view(self, host: str = "127.0.0.1", port: int | None = None) -> SimulationView:
        """Serve a page that shows the robot (the first of many) in the browser, at `.url`; print the URL on standard error.

        `run` moves the robot on the page, and loads its motion into the page's timeline. The page ends with `.close()` or with
        the program. Only this machine can see it unless `host` says otherwise. `port` is as in `Window`. The page is a `Window`
        that watches this simulation. Raises ImportError without viser.
        """
        opened: SimulationView = provided("Simulation.view")(self, host, port)
        return opened

    def watch(self, observer: Observer) -> None:
        """Add an observer of `run`. It receives each recorded state, and at the end the motion."""
        self._observers.append(observer)

    def _show_observers(self) -> None:
        q, contacts = self._fleet.q[0], self.contacts()
        for observer in self._open_observers():
            try:
                observer.live(q, contacts.points, contacts.forces)
            except RuntimeError:
                if not observer.closed:  # since the list was made, by another thread
                    raise

    def _open_observers(self) -> list[Observer]:
        """Return the observers that are not closed."""
        self._observers = [x for x in self._observers if not x.closed]
        return self._observers
