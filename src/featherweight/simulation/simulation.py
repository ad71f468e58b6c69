"""Simulation of robots: time steps, contacts, limits, drives."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Booleans, Matrix
from ..checks import FUNCTION, NOTHING, argument, either
from ..contact.contact_settings import ContactSettings
from ..contact.laws import COULOMB, PYRAMIDS, RIGID
from ..engine.backends.host_arrays import TYPES
from ..engine.exclusive import Use, exclusive
from ..engine.progress import Progress
from ..engine.threads import check_threads
from ..model.position_drives import PD
from ..model.types import Actuator
from ..names import SuggestsNames, knows_keywords
from ..robot.model_view import EQUAL_LIMITS
from ..robot.mujoco_order import RobotState
from ..robot.robot import Robot
from ..robot.trajectory import Recorded, Recorder, Trajectory, joint_names
from .arguments import (
    check_choice,
    check_count,
    check_duration,
    check_inputs,
    check_options,
    check_out,
    check_pairs,
    check_robot,
    check_step,
    check_switches,
    given_forces,
    ground_of,
    numbers,
    of_robots,
    pairs_of,
    parts_of,
)  # fmt: skip
from .contact_stage import ContactStage
from .defaults import law_of, of_the_file, shapes_have_something_to_touch, warn_of_explicit_drives, warn_of_what_is_left_out
from .derivatives import StepDerivatives, of_all_robots, step_derivatives
from .fleet import MOST_RECORDED, Fleet, Inputs
from .forces import ForcesAtJoints
from .joint_limits import JointLimits
from .observers import Observer
from .scene import LEAST_FRICTION, ContactSphere, Ground, TouchingParts
from .simulation_options import ContactOptions, JointOptions
from .stage_records import FleetContacts
from .state import State, StateLayout, time_of
from .state_of_robots import StateOfRobots
from .step_function import StepFunction
from .step_model import StepModel
from .variation import varied_arrays

Controller = Callable[[float, Array, Array], Any]
CONTROLLER = either([FUNCTION, NOTHING]).worded("a function of time, q and v, or None")


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
NO_CONTACTS = np.zeros((0, 3))
ON_FAILURE = ("raise", "stop", "reset")
OF_THIS_PROCESS = (
    "_observers",
    "_pictures",
    "_device_loops",
    "_probes",
    "_copies",
)  # windows and other observers, pictures, code on devices, copies that make rollouts
MOST_COPIES, FEW = 4, 256  # copies for different numbers of robots; greatest number that has a copy of its own


class Simulation(SuggestsNames, StateOfRobots):
    """The motion of a robot, or of many identical robots, with contacts.

    The state is `time` [s], `q` (..., nq) and `v` (..., nv). For many robots at once, q and v have a leading axis. Quaternions
    in q must have unit length; lengths within 1e-3 of 1 are normalized.

    A step takes `step` seconds. The integrator first moves the robot as if it touched nothing. `integrator` is
    "semi-implicit" (Euler, with damping and springs of joints evaluated at the end of the step), "rk4" or "midpoint" (implicit,
    conserves energy). Impulses at contacts, joint limits and joints with dry friction then change the velocity; the solver
    computes them by maximum dissipation (see `impulses`). The defaults of `step` and `integrator` are the robot file's values,
    or 1 ms and "semi-implicit" if the file has none.

    Contacts arise between the collision shapes of the robot's file and the file's floor, other shapes fixed to the world, and
    each other where the file's contact rules allow it. `ground`, a `Plane` or `HeightField`, adds a ground; True is the plane
    z = 0. Collision shapes take part if they have something to touch and no `spheres` are given. The shapes of a file without
    contact rules and without a floor take part only if `ground` or `shapes=True` is given. `spheres` of the robot (points are
    spheres without radius) touch the `ground`, and `pairs` of spheres, given by their numbers, touch each other. Two shapes of
    one robot from a file without contact rules (URDF) never touch if they overlap in the file's configuration or at the start;
    `excluded_pairs` names their links. Other bodies that overlap at the start are pushed apart at 1 m/s, with a ModelWarning
    (see `overlaps` of `ContactOptions`). A ModelWarning also lists the contents of the file that are not simulated.

    Without q, the robot starts in the initial configuration of its file (`Robot.start`).

    `contact` (`ContactOptions`, or the name of its `law`: "rigid", "compliant" or "as in the file") sets the lengths and
    tolerances of contacts, and friction and restitution of surfaces that have none of their own. `joints` (`JointOptions`)
    disables limits, dry friction, or damping and springs of the robot's joints. `actuators` default to the robot's actuators;
    alternatively, give a list or position drives (`PD`). `step` takes their controls as an argument. A semi-implicit step
    evaluates stiffness and damping of actuators at the end of the step. Each step ends with a correction that closes the loops
    of mechanisms; `opened` is the residual of their constraints before it.

    A start may violate a joint limit by at most 0.2 rad or m, and by at most the joint's range. A larger violation, up to the
    largest one in a configuration of the robot's file, gives a ModelWarning. Any other start is a ValueError. The limit holds
    the joint where it starts and moves it back at 1 rad/s or m/s. This motion is a displacement without velocity, which moves
    no other joint faster than that. A limit that loops keep out of reach raises a SimulationError.

    `on_failure` says how a simulation of many robots treats a robot whose step fails: "raise" raises a SimulationError, and no
    robot takes the step; "stop" stops the robot where it is; "reset" returns it to its initial state. `failed` marks these
    robots.

    Copies (`copy.copy`, `copy.deepcopy`, `pickle`) continue from the state at which they were made, with bitwise the same
    results, and move independently. Observers (windows, for example) stay with the original.

    One thread at a time may use a simulation. A call while another thread is in one raises RuntimeError: give each thread a
    copy. Any thread may read `time`, `steps`, `q` and `v`. The controller and the observers of `run` may call the simulation.
    Ctrl-C interrupts a simulation between two steps; time and state then belong together.

    A step fails if its result is not finite. It also fails if the energy grows without the work of a force, by more than 5 % of
    the sum of the kinetic energies before and after the step (see `energy_guard`). The step is then too long for the speeds.
    "semi-implicit" evaluates velocity products at the start of the step. For bodies that tumble at w, this error adds some
    (h w)² of their energy in each step. If h w approaches 0.1 rad, choose "rk4", "midpoint" or a shorter step.

    Raises ValueError for invalid arguments and SimulationError for a step that fails.
    """

    @knows_keywords
    def __init__(
        self,
        robot: Robot,
        step: float | None = None,
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
        on_failure: str = "raise",
        threads: int | None = None,
    ) -> None:
        check_robot("Simulation", robot)
        step, integrator = of_the_file(robot, step, integrator)
        check_step(step, integrator)
        if isinstance(contact, str):
            contact = ContactOptions(law=contact)
        check_options("contact", contact, ContactOptions)
        check_options("joints", joints, JointOptions)
        spheres = parts_of(ContactSphere, "spheres", spheres, "featherweight.ContactSphere('foot', 0.02)")
        pairs, ground = pairs_of(pairs), ground_of(ground)
        if isinstance(actuators, PD):
            actuators = actuators.actuators(j for j in robot.joints if j.independent)
        actuators = parts_of(Actuator, "actuators", robot.actuators if actuators is None else actuators, "Actuator(...)")
        if shapes is not None:
            check_switches(shapes=shapes)
        check_pairs(pairs, spheres, ground)
        check_choice("on_failure", on_failure, ON_FAILURE)
        check_threads("Simulation", threads)
        if shapes is None:
            shapes = not spheres and shapes_have_something_to_touch(robot, ground)
        warn_of_what_is_left_out(robot, () if joints.limits is True else (EQUAL_LIMITS,))
        self._use = Use(f"the simulation of {robot.name!r}", "make one for each thread, such as copy.copy(simulation)")
        self.robot, self.step_size, self.integrator = robot, float(step), integrator
        self.forces = ForcesAtJoints(robot, actuators, float(step))
        self.ground, self.on_failure = ground, on_failure
        passive = joints.passive and self.forces.smooth
        self._model = model = StepModel(robot, self.step_size, integrator, self.forces, passive, contact)
        by_name = isinstance(contact.delassus, str)
        model.bent = model.bent and by_name
        if model.has_drives and not (model.driven and by_name):
            model.driven = False
            warn_of_explicit_drives(robot, "it is too large" if by_name else "delassus of ContactOptions is a function")
        self._limits = limits = JointLimits(robot, self.forces, joints.limits)
        law, cones = law_of(contact.law, robot)
        parts = TouchingParts(
            spheres, pairs, ground, shapes, contact.friction, contact.restitution, limits.lower, limits.upper,
            joint_friction=joints.friction and bool(self.forces.friction.any()), file_axes=cones == PYRAMIDS,
            least_friction=LEAST_FRICTION if cones != COULOMB else 0.0,
        )  # fmt: skip
        settings = ContactSettings(
            step=float(step), margin=float(contact.margin), slop=float(contact.slop),
            bounce=float(max(contact.bounce, 2.0 * step * math.hypot(*robot.gravity))), tolerance=float(contact.tolerance),
            pyramid=bool(contact.pyramid), in_step=integrator != "semi-implicit",
            law=law,
            cones=cones,
            rounds=robot.model.noslip if cones != COULOMB else 0,
        )  # fmt: skip
        if self.forces.held_rows and law == RIGID:
            raise ValueError(
                f"{robot.name}: its equalities are compliant, and contact={contact.law!r} holds rigidly; take "
                'contact="as in the file" or "compliant", or load the robot with equalities="exact"'
            )
        self._touching = bool(spheres or limits.any or parts.joint_friction or shapes or self.forces.held_rows)
        self._observers: list[Observer] = []
        with model.wait:
            self._stage = ContactStage(model.moving, self.forces, parts, settings, contact.delassus)
            self._fleet = Fleet(model, self._stage, self._touching, threads, on_failure)
            if self._stage.touching.drawn.any():
                self._fleet.begin_as_drawn(robot.start())
            self.reset(q, v)

    # copies

    def __getstate__(self) -> dict[str, object]:
        return self._snapshot({})  # whose arrays no step changes until it is written

    def __deepcopy__(self, memo: dict[int, object]) -> Simulation:
        """Return a simulation of the same robot with a copy of the state. Both share the robot and its functions."""
        copied = memo[id(self)] = object.__new__(type(self))
        vars(copied).update(self._snapshot(memo))
        return copied

    @exclusive
    def _snapshot(self, memo: dict[int, object]) -> dict[str, object]:
        """Return copies of all attributes except those that belong to this process, and of those that are constant."""
        model, fleet = self._model, self._fleet
        constant = self.robot, model.moving, model.wait, self.forces, self._limits, self.ground
        memo |= {id(x): x for x in (*constant, fleet.layout, fleet.varied, fleet.stages_layout, fleet.arrays_layout)}
        memo |= {id(model): copy.copy(model), id(self._stage): self._stage.copied()}
        own = {name: x for name, x in vars(self).items() if name not in OF_THIS_PROCESS}
        return copy.deepcopy(own | {"_observers": []}, memo)

    def __copy__(self) -> Simulation:
        return copy.deepcopy(self)

    # # variation of robots

    @exclusive
    @knows_keywords
    def vary(
        self,
        *,
        parameters: ArrayLike | None = None,
        armature: ArrayLike | None = None,
        friction: ArrayLike | None = None,
        joint_friction: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        stiffness: ArrayLike | None = None,
        gains: ArrayLike | None = None,
    ) -> None:
        """Give each robot its own parameters (domain randomization), from the next step on, without recompilation.

        `parameters` (robots, nbodies, 10) are inertial parameters, as `identification.random_parameters` draws them. `armature`
        (robots, k) is the armature as in `robot.armature`. All other arguments are factors, of shape (robots,), or with one
        factor for each element: `friction` of contacts; `joint_friction`, `damping` and `stiffness` (robots, n) of degrees of
        freedom of all joints; `gains` (robots, nu) of actuators. A number is the same factor for all robots and elements, or
        the armature of all joints; parameters and armatures without the axis of robots are those of all. A parameter that is
        not given returns to the robot's own value.

        Raises ValueError for wrong shapes, non-finite numbers and negative factors, and for inertias of robots whose
        functions are too large to be traced. Raises NotImplementedError for inertial parameters with gravity compensation.
        """
        given = {
            "friction": friction,
            "joint_friction": joint_friction,
            "damping": damping,
            "stiffness": stiffness,
            "gains": gains,
        }
        if parameters is not None and self.robot.model.carried:
            raise NotImplementedError(f"inertial parameters of {self.robot.name}, with gravity compensation, cannot vary")
        self._fleet.vary(varied_arrays(self._fleet, given, parameters, armature))
        vars(self).pop("_copies", None)

    # moving

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
        `Robot.inverse_dynamics`, are constant over the steps. tau and external forces are zero by default. Without
        control, the actuators exert no force, whereas position servos with a control of zero hold zero. tau is limited to the
        effort limits of the joints. Raises SimulationError if a step fails; the state is then the one before that step.
        """
        lock = self._use.lock
        try:  # as `exclusive`, which would take twice as long
            if not lock.acquire(False):
                self._use.refuse()
            if type(steps) is not int or steps < 1:
                check_count("steps", steps, 1)
            if self._history is not None:
                self._sampled_steps(steps, tau, control, external_forces)
            elif not self._fleet.step(tau, control, external_forces, steps):
                self._fleet.step(*self._inputs(tau, control, external_forces), steps)
        finally:
            try:  # noqa: SIM105
                lock.release()
            except RuntimeError:  # refused
                pass

    def _sampled_steps(
        self, steps: int, tau: ArrayLike | None, control: ArrayLike | None, external_forces: ArrayLike | None
    ) -> None:
        """Take steps of which sensors store samples."""

        def take_step() -> None:
            if not self._fleet.step(tau, control, external_forces):
                self._fleet.step(*self._inputs(tau, control, external_forces))

        for _ in range(steps):
            assert self._history is not None
            self._sampled_step(self._history, take_step)

    def _inputs(self, tau: ArrayLike | None, control: ArrayLike | None, external: ArrayLike | None) -> Inputs:
        """Return the inputs of a step as arrays (...) or (robots, ...). Raises ValueError for unfit ones."""
        sizes = {"tau": (self.robot.nv,), "control": (self.forces.nu,), "external_forces": (len(self.robot.bodies), 6)}
        given = zip(sizes.items(), (tau, control, external), strict=True)
        return Inputs(*(None if x is None else of_robots(name, x, size, len(self._fleet.q)) for (name, size), x in given))

    @exclusive
    def derivatives(self, tau: ArrayLike | None = None, control: ArrayLike | None = None) -> StepDerivatives:
        """Return the Jacobians of the step that `step` would take from the current state, without taking it.

        The result has A (2 nv, 2 nv), the state (q, v) after the step by the state before; B (2 nv, nv), by tau; `B_control`
        (2 nv, nu), by controls; and `doubtful`, the contacts and joints at which the step has no derivative (see
        `StepDerivatives`). Changes of configurations are velocities. For many robots, the arrays have a leading axis.

        The Jacobians are exact for the equations of the step: each contact keeps its state (sticking, sliding, open or
        bouncing), contact points move over the spheres and the ground, and no term is held constant. One exception: the step
        computes the displacement that separates several overlaps only to a tenth of `slop`.

        Raises ValueError and SimulationError as `step` does. Raises NotImplementedError for contacts of shapes, compliant
        contacts, and joints that loops determine in part.
        """
        self._fleet.require_alike("derivatives of a step")
        if not self._holds_rigidly:
            raise NotImplementedError("derivatives of a step with compliant contacts are not implemented; use contact='rigid'")
        if self._stage.settings.turning:
            raise NotImplementedError("derivatives of a step with friction against spinning or rolling are not implemented")
        if self.forces.turning_springs and self._model.passive:
            raise NotImplementedError(
                f"derivatives of a step of {self.robot.name} with springs of ball joints or free joints are not implemented"
            )
        if len(self.forces.springs.bent) and self._model.passive:
            what = "nonlinear springs or dampers (stiffness_poly, damping_poly)"
            raise NotImplementedError(f"derivatives of a step of {self.robot.name} with {what} are not implemented")
        if not self.forces.plain:
            what = "tendons, limits of ball joints, dry friction of free joints, forces at frames, activations or muscles"
            raise NotImplementedError(f"derivatives of a step of {self.robot.name} with {what} are not implemented")
        if self.robot.model.carried:
            raise NotImplementedError(
                f"derivatives of a step of {self.robot.name} with gravity compensation are not implemented"
            )
        if self._model.in_fluid:
            raise NotImplementedError(f"derivatives of a step of {self.robot.name} in a fluid are not implemented")
        many = step_derivatives(self._fleet, self._inputs(tau, control, None))
        return many[0] if self._single else of_all_robots(many)

    @exclusive
    def step_function(self) -> StepFunction:
        """Return a step of a copy of this simulation as a function of state and inputs, for libraries that differentiate.

        `featherweight.torch.step` and `featherweight.jax.step` turn it into functions of tensors and JAX arrays.
        """
        copied = copy.deepcopy(self)
        copied.on_failure = copied._fleet.on_failure = "raise"
        copied.reset(copied.q, copied.v)
        return StepFunction(copied)

    # many steps

    @exclusive
    @knows_keywords
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
        """Take steps for `duration` seconds and return the trajectory: every `every`-th state, with the first and the last.

        `controller(time, q, v)` is called before each step. It returns joint forces tau (..., nv), or a pair of tau (or None)
        and controls. It must not change q and v. For many robots, the trajectory has the contacts of the first robot.

        Raises ValueError for invalid arguments and invalid results of the controller, and SimulationError as `step` does.
        After an error, including one from the controller, the state is the one before the failed step. After Ctrl-C, it is the
        one after the steps that `steps` counts.
        """
        check_duration(duration, every)
        argument("controller", controller, CONTROLLER)
        steps = round(duration / self.step_size)
        recorder = Recorder(self._recorded, every)
        inputs = self._inputs(tau, control, external_forces)
        progress = Progress(f"simulation of {self.robot.name!r}, {duration:g} s", steps)
        plain = self._single and self._history is None and not self._observers
        with progress:
            if plain and controller is None and self.on_failure == "raise":  # else the states of failed steps count, too
                self._run_in_loop(steps - steps % every, inputs, recorder, progress)
            elif plain and controller is not None:
                control = self._run_controlled(steps - steps % every, controller, control, external_forces, recorder, progress)
            while (done := progress.done) < steps:
                if controller is not None:
                    tau, *controls = given_forces(controller(self.time, self.q, self.v))
                    control = controls[0] if controls else control
                    self.step(tau, control, external_forces)
                    done += 1
                else:
                    done += self._steps(min(every - done % every, steps - done), inputs)
                recorder.note(done, tau, last=done == steps)
                if self._observers:
                    self._show_observers()
                progress.advance(done - progress.done)
        trajectory = recorder.trajectory(self.robot, self._joint_names, self.ground)
        for observer in self._open_observers() if self._single else ():
            observer.play(trajectory, start=False)
        return trajectory

    def _run_in_loop(self, steps: int, inputs: Inputs, recorder: Recorder, progress: Progress) -> None:
        """Take steps of one robot under constant inputs; the compiled loop records states."""
        while (done := progress.done) < steps:
            count = min(MOST_RECORDED * recorder.every, steps - done)
            recorder.add(self._records(self._fleet.record(count, inputs, recorder.every), self._fleet.layout))
            progress.advance(count)

    def _run_controlled(
        self, steps: int, controller: Controller, control: Any, external: Any, recorder: Recorder, progress: Progress
    ) -> Any:
        """Take steps of one robot with a controller, and copy states, which are read later; return the last control."""
        fleet = self._fleet
        layout, kept, forces = fleet.layout, list[Array](), list[Array | None]()
        while (done := progress.done) < steps and self._single:
            tau, *controls = given_forces(controller(fleet.time, self.q, self.v))
            control = controls[0] if controls else control
            if not fleet.step(tau, control, external):
                fleet.step(*self._inputs(tau, control, external))
            if (done + 1) % recorder.every == 0:
                if fleet.layout is not layout or len(kept) == MOST_RECORDED:
                    recorder.add(self._records(np.array(kept), layout), forces)
                    layout, kept, forces = fleet.layout, [], []
                kept.append(fleet.block.copy())
                forces.append(None if tau is None else np.array(tau, dtype=float))
            progress.advance()
        if kept:
            recorder.add(self._records(np.array(kept), layout), forces)
        return control

    def _show_observers(self) -> None:
        q, contacts = self._fleet.q[0], self.contacts()
        for observer in self._open_observers():
            try:
                observer.live(q, contacts.points, contacts.forces)
            except RuntimeError:
                if not observer.closed:  # since the list was made, by another thread
                    raise

    def _recorded(self) -> tuple[float, Array, Array, Matrix, Matrix]:
        """Return time, states, and points and forces of the first robot's contacts."""
        fleet = self._fleet
        q, v = (fleet.first_q, fleet.first_v) if self._single else (fleet.q, fleet.v)
        points = forces = NO_CONTACTS
        if fleet.home.contacts.counts.item(0) > 0:
            _, points, impulses = fleet.contacts_of(0)
            points, forces = points.copy(), impulses / self.step_size
        return fleet.time, q.copy(), v.copy(), points, forces

    def _records(self, blocks: Array, layout: StateLayout) -> Recorded:
        """Return recorded states (k, block) of one robot with their contacts."""
        fleet, x = self._fleet, layout.rows(blocks)
        counts, contacts = x["counts"], FleetContacts(**{name: x[name] for name in FleetContacts._fields})
        exist = np.arange(layout.room) < counts[:, None]
        for i in np.flatnonzero(x["solved"] < counts):
            x["force"][i, : counts[i]] = fleet.contacts_of(int(i), contacts)[2]
        times = time_of(x["set_time"], x["steps"], x["set_step"], self.step_size)
        return Recorded(
            times, x["q"].copy(), x["v"].copy(), counts.copy(), x["point"][exist], x["force"][exist] / self.step_size
        )

    @cached_property
    def _joint_names(self) -> tuple[str, ...]:
        return joint_names(self.robot)

    def _steps(self, steps: int, inputs: Inputs) -> int:
        """Take between 1 and `steps` steps under constant inputs, and return their number."""
        if self._history is None:
            self._fleet.step(*inputs, steps)
            return steps
        self._sampled_step(self._history, lambda: self._fleet.step(*inputs))
        return 1

    @exclusive
    @knows_keywords
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

            states = rolled_out(self, arrays, steps, every, device)
            if states is not None:
                return Rollout.of(states, np.zeros(states[0].shape[0], bool), None)  # a failure is an error
        q = q if state is not None else np.atleast_2d(numbers("q", q))
        robots = len(q)
        apart = self._apart(robots)
        if state is not None:
            apart.state = state
        else:
            apart.reset(q, None if v is None else np.atleast_2d(numbers("v", v)))
            apart._fleet.take_activations(self._fleet)
        given = [None if x is None else numbers(name, x) for name, x in inputs.items()]
        sizes = (self.robot.nv,), (self.forces.nu,), (len(self.robot.bodies), 6)
        steps = check_inputs(zip(inputs, given, sizes, strict=True), robots, steps)
        if out is not None:
            check_out(out, [(robots, 1 + steps // every, n) for n in (self.robot.nq, self.robot.nv)])
        states = apart._fleet.roll_out(steps, Inputs(*given) if steps else Inputs(), every, out)
        return Rollout.of(states, apart.failed, apart.state)

    @exclusive
    @knows_keywords
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
        """
        apart = self._apart(len(state) if type(state) is State else 1)
        apart.state = state
        apart.step(tau, control, external_forces, steps=steps)
        return apart.state

    def _apart(self, robots: int) -> Simulation:
        """Return a copy of this simulation, which rollouts of so many robots move; the last `MOST_COPIES` are kept."""
        copies: dict[int, Simulation] = vars(self).setdefault("_copies", {})
        kind = robots if robots <= FEW else 0  # one copy for all large numbers, because of its memory
        if kind not in copies:
            if len(copies) == MOST_COPIES:
                del copies[next(iter(copies))]
            copies[kind] = copy.copy(self)
        return copies[kind]

    def __repr__(self) -> str:
        many = "" if self._single else f", {len(self._fleet.q)} robots"
        return f"<Simulation of {self.robot.name!r}: t={self.time:g} s, step={self.step_size:g} s, {self.integrator}{many}>"
