"""Optimal control problems of a robot."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms import knots as kernels
from ..array_types import Array, Matrix, Vector
from ..checks import (
    ARRAY,
    CHECKED_LATER,
    NONNEGATIVE,
    NOTHING,
    NUMBER,
    ONE_OR_SEVERAL,
    POSITIVE,
    SWITCH,
    Kind,
    NonNegative,
    Refused,
    argument,
    array_of,
    checked,
    either,
    object_of,
    one_of,
    real_array,
    shown,
)
from ..engine.threads import check_threads, processors, share_out
from ..model.position_drives import PD
from ..model.types import Actuator
from ..names import knows_keywords, unknown_keyword
from ..robot.constraints.contact import BilateralContact
from ..robot.inverse_kinematics.tasks import ClearanceTask, IkTask
from ..robot.robot import Robot
from ..robot.trajectory import Contacts, Trajectory, joint_names
from ..simulation.arguments import check_count, check_robot, parts_of, with_unit_rotations
from ..simulation.simulation import Simulation
from ..summaries import SeveralListed, summarized
from .drives import actuator_list, control_bounds, drives_of, force_bounds, joint_drives
from .laws import costs_of_rows
from .layout import Layout, Motion, Results, numbers_of
from .passive_forces import PassiveForces, holding_controls
from .plan_function import PlanFunction
from .sampled_motions import SampledMotions
from .simulated_steps import SimulatedSteps
from .solver import DEPARTED, ITERATIONS, NOT_FINITE, STALLED
from .spans import RK4, SEMI_IMPLICIT, SIMULATED, Span
from .terms import Added, Duration, Picked, Residual, Term, are_weights, as_numbers, name_of, quantities
from .workspace import Pool, Settings, Workspace

Knots = str | Sequence[int] | Array  # "all", "running", "end" or numbers of knots

FIRST_STEP = 0.01  # [s]
OF_SIMULATION = kernels.Drive(-1)  # a control whose forces are the simulation's

INTEGRATORS = one_of((SEMI_IMPLICIT, RK4)).worded(f"{SEMI_IMPLICIT!r} or {RK4!r}")
OPTIONS = ("guess", "iterations", "tolerance", "constraint_tolerance")  # of solutions, besides what they are for

REASONS = {
    ITERATIONS: "the iterations are used up", STALLED: "no step decreases the cost", NOT_FINITE: "numbers are not finite",
    DEPARTED: "the simulation departs from the plan",
}  # fmt: skip


@checked
@dataclass(frozen=True)
class Phase:
    """A part of the horizon: a number of knots with the same contacts.

    `dt` [s], the length of a time step, overrides the step of the problem. If it is a pair (shortest, longest), the solver
    chooses one step between these for all knots of the phase.

    Contacts are at rest at the end of each step: to second order in it, or with "rk4" to fifth order if they are at rest at its
    beginning. With `impact`, the phase begins with an additional knot of zero duration, in which an impact brings the contacts
    to rest. If phases repeat, this knot has the number of the step after it in weights and targets, so that numbers count time.
    """

    knots: Annotated[int, CHECKED_LATER]
    contacts: Annotated[Sequence[BilateralContact], CHECKED_LATER] = ()
    dt: Annotated[float | tuple[float, float] | None, CHECKED_LATER] = None
    impact: bool = False


@summarized
class Plan(NamedTuple):
    """A solution of an optimal control problem, or many solutions along a first axis.

    Between knots, a controller may use u + gains [q_now - q; v_now - v]; the difference of configurations is a velocity.
    """

    q: Array  # (..., knots + 1, nq); knots include impacts
    v: Array  # (..., knots + 1, nv)
    u: Array  # (..., knots, nu) [N m, N]
    gains: Array  # (..., knots, nu, 2 nv)
    cost: Any  # (...)
    violation: Any  # (...) largest violation of a constraint
    converged: Any  # (...) bool
    iterations: Any  # (...)
    reason: Any  # (...) reason why the solver stopped; empty if it converged
    multipliers: Any = None  # (..., rows) derivatives of the cost by the rows of all knots; of constraints their forces
    dt: Any = None  # (..., knots) time steps [s]


@summarized
class CostGradient(NamedTuple):
    """Derivatives of the cost of a simulated motion by its controls and by its initial state, whose changes are velocities."""

    u: Matrix  # (knots, nu)
    q: Vector  # (nv,)
    v: Vector  # (nv,)


class Window(NamedTuple):
    """A problem whose horizon begins at a knot of the cycle."""

    layout: Layout
    pool: Pool[Workspace]
    samples: Pool[SampledMotions]


class OptimalControl:
    """A trajectory optimization problem, solved by differential dynamic programming compiled for the robot.

        ocp = featherweight.OptimalControl(robot, dt=0.01, knots=50)
        ocp.add(featherweight.FrameTask("tool"), weight=100.0)
        ocp.add(featherweight.Effort(), weight=1e-3)
        plan = ocp.solve(q, targets={"tool": T})

    The motion consists of semi-implicit Euler steps, v' = v + h a and q' = q ⊕ h v', or, with `integrator="rk4"`, of steps of
    the classical Runge-Kutta method on the configuration manifold (order 4), which may be several times as long; an iteration
    takes two to five times as long. As in a `Simulation` with rigid contacts, the robot's linear damping and springs and its
    gravity compensation act beside the controls; semi-implicit steps evaluate damping and springs at their end, "rk4" at each
    stage. Dry friction, tendons, nonlinear springs and dampers, and forces of fluids are left out: a ModelWarning names those
    that the robot has. The cost is the integral of weighted squares over the horizon plus weighted squares at its end.

    Controls are the forces of the `driven` joints (names; the default is all joints except floating and planar ones). With
    `actuators` (True for those of the file, a list, or a `PD`), controls are those of actuators whose joint force is linear:
    motors, position and velocity servos. Semi-implicit steps evaluate stiffness and damping of servos at their end, as
    simulations with rigid contacts do; "rk4" evaluates them at each stage, which needs short steps if they are stiff. `phases`
    gives the contacts over time; `knots` alone is one phase without contacts. With both, the phases repeat, as in a gait, and
    the horizon has `knots` steps of this cycle and the impacts between them; a `Controller` moves the horizon along. The step
    of phases is `dt` [s] unless they have their own. A step (shortest, longest) is free: the solver chooses it for each
    phase, and `Duration` is the cost of time. Phases that repeat need a given step, because numbers of knots count time in
    their weights and targets, and in the horizon of a `Controller`. `threads` threads solve many problems; the default is one
    for each processor.

    With a `Simulation` in place of the robot, each knot is `every` steps of the simulation under the same controls: contacts,
    limits and dry friction are those that the simulation finds, without phases. Controls are those of its actuators, or with
    `driven` the forces of these joints; without actuators, of all. Terms depend on q, v and u. The plan is the simulation's
    motion under its controls, to the bit, from a state as after `reset`; later changes of the given simulation have no effect.
    Bodies that do not touch have no gradient: the solver needs a guess that touches, for example the plan of a simulation with
    margins around shapes, or a cost that brings them together.

        ocp = featherweight.OptimalControl(simulation, knots=100, every=2)
        plan = ocp.solve(q, targets={"box": goal}, guess=controls)

    The method is multiple-shooting DDP with Gauss-Newton curvature (Mastalli et al. 2020), and second derivatives of terms that
    are added with `exact`. With `exact` here, semi-implicit steps have second derivatives, too, and so do by default all terms
    that do not depend on accelerations or contact forces, as in Newton's method: iterations take longer, but fewer are needed,
    and the last ones converge quadratically. Constraints have augmented Lagrangians (Howell, Jackson and Manchester 2019). The
    first solution compiles the functions of the problem; other targets, parameters and initial states do not compile again.
    Pickles have no compiled functions; other processes read them from the cache. A function of a `Residual` must be defined by
    a module for `pickle`; cloudpickle takes any. Raises ValueError for an unknown joint or frame, and NotImplementedError for
    loops that determine a part of the velocities of a joint, for `exact` with "rk4", and for simulations with activations or
    delays.
    """

    @knows_keywords
    def __init__(
        self,
        robot: Robot | Simulation,
        *,
        dt: float | tuple[float, float] | None = None,
        knots: int | None = None,
        phases: Iterable[Phase] | None = None,
        driven: Iterable[str] | None = None,
        actuators: PD | Iterable[Actuator] | bool = False,
        integrator: str | None = None,
        exact: bool = False,
        every: int = 1,
        threads: int | None = None,
    ) -> None:
        simulation = robot if isinstance(robot, Simulation) else None
        if simulation is not None:
            other = {"dt": dt, "phases": phases, "integrator": integrator, "actuators": actuators, "exact": exact}
            _check_simulation(other, every, simulation)
            robot, dt = simulation.robot, every * simulation.dt
        elif every != 1:
            raise ValueError("OptimalControl: every= is for a Simulation in place of the robot")
        check_robot("OptimalControl", robot)
        assert isinstance(robot, Robot)
        robot.require_dynamics("OptimalControl")
        dt, integrator = FIRST_STEP if dt is None else dt, SEMI_IMPLICIT if integrator is None else integrator
        if knots is None and phases is None:
            raise ValueError("OptimalControl: give knots, or phases that have them, or both for phases that repeat")
        check_threads("OptimalControl", threads)
        self.robot, self.threads = robot, threads
        if knots is not None:
            check_count("OptimalControl: knots", knots, 1)
        self.phases = (Phase(knots or 0),) if phases is None else parts_of(Phase, "phases", phases, "Phase(20)")
        if not self.phases:
            raise ValueError("OptimalControl: give at least one phase; got none")
        for phase in self.phases:
            check_count("OptimalControl: knots", phase.knots, 1)
        given = [dt if phase.dt is None else phase.dt for phase in self.phases]
        bounds = [bounds_of_step(h) for h in given]
        steps = [longest for _, longest in bounds]
        if bare := [phase for phase in self.phases if phase.impact and not phase.contacts]:
            raise ValueError(f"OptimalControl: an impact needs contacts; got {bare[0]}")
        self.repeats = knots is not None and phases is not None
        self._cycle: list[Span] = []
        for phase, (shortest, _), h in zip(self.phases, bounds, steps, strict=True):
            contacts = parts_of(BilateralContact, "contacts of a Phase", phase.contacts, "BilateralContact('foot', 'point')")
            least = None if shortest == h else math.sqrt(shortest / h)
            self._cycle += [Span(1, contacts, 0.0, True, not self.repeats, least)] * phase.impact
            self._cycle += [Span(phase.knots, contacts, h, least=least)]
        self.free = any(span.free for span in self._cycle)
        """Whether the solver chooses some of the steps."""
        self.period = int(numbers_of(self._cycle)[-1])
        """Knots after which the phases repeat, without their impacts."""
        if self.repeats and len(set(steps)) > 1:
            raise ValueError(f"OptimalControl: phases that repeat (knots=) need the same step; got {sorted(set(steps))} s")
        if self.repeats and self.free:
            raise ValueError("OptimalControl: phases that repeat (knots=) need a given step, not a free one")
        self.knots = int(knots) if knots is not None else self.period
        """Knots of the horizon, without impacts if phases repeat."""
        argument("OptimalControl: integrator", integrator, INTEGRATORS)
        self.exact = bool(argument("OptimalControl: exact", exact, SWITCH))
        """Whether the Hessian has second derivatives of steps and terms, as in Newton's method."""
        if exact and integrator == RK4:
            raise NotImplementedError(f"OptimalControl: exact=True supports {SEMI_IMPLICIT!r} steps, not {RK4!r}")
        robot.require_whole_joints()
        if driven is not None and actuators is not False:
            raise ValueError("OptimalControl: give either driven joints or actuators, not both")
        self.actuators = () if actuators is False else actuator_list(robot, actuators)
        """The actuators whose controls these are; none where controls are joint forces."""
        self._steps: SimulatedSteps | None = None
        if simulation is not None:
            integrator = SIMULATED
            self.actuators = tuple(simulation.forces.actuators) if driven is None else ()
            own = None if self.actuators else [d.velocity for d in joint_drives(robot, driven)]
            self._steps = SimulatedSteps(simulation, every, own)
        ends = set(steps) if integrator == SEMI_IMPLICIT else {0.0}  # Runge-Kutta stages are explicit
        if self.actuators and self._steps:
            self.drives = (OF_SIMULATION,) * len(self.actuators)
        else:
            self.drives = drives_of(robot, self.actuators, ends) if self.actuators else joint_drives(robot, driven)
        if self.free and any(d.armature for d in self.drives):
            raise ValueError(f"OptimalControl: stiffness and damping of actuators depend on the step; free steps need {RK4!r}")
        if not self.drives and not self.free:
            raise ValueError(f"OptimalControl: nothing drives {robot.name}; give joints with driven=, or actuators=")
        self.driven = tuple(d.velocity for d in self.drives)
        self.nu = len(self.drives)
        self.passive = PassiveForces(robot)
        """The forces of dampers, springs and gravity compensation, which act beside the controls."""
        if not simulation:
            self.passive.warn()
        self.integrator = integrator
        self._terms: list[Added] = []  # for any part of the cycle
        self.control_limits = np.full(self.nu, -np.inf), np.full(self.nu, np.inf)
        """The least and greatest controls (nu,) by `limit`."""
        self._stages: dict[Any, Any] = {}
        self._windows: dict[int, Window] = {}

    @property
    def simulation(self) -> Simulation | None:
        """A simulation at its initial state whose steps are the knots; None for a problem of a robot."""
        return None if self._steps is None else self._steps.simulation

    def first_controls(self, q: Vector) -> Vector:
        """Return the controls (nu,) that hold the robot in the air at q, with which the solver starts.

        They are zero for actuators of a simulation whose force is not linear.
        """
        return self._steps.first_controls(q) if self._steps else holding_controls(self.drives, self.passive, q)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the problem without its compiled functions."""
        return vars(self) | {"_stages": {}, "_windows": {}}

    def __repr__(self) -> str:
        return f"<OptimalControl of {self.robot.name!r}: {self.knots} knots; {', '.join(x.name for x in self._terms)}>"

    @property
    def dt(self) -> Vector:
        """The time step of each knot and impact of a plan [s], 0 for an impact; the longest one if the step is free."""
        spans = self._spans()
        return np.repeat([span.step for span in spans], [span.knots for span in spans])

    def _spans(self, begin: int = 0) -> list[Span]:
        """Return the spans of knots with the same contacts; if phases repeat, from a knot of the cycle on."""
        if not self.repeats:
            return self._cycle
        found: list[Span] = []
        passed, left = begin % self.period, self.knots
        while left > 0:
            for span in self._cycle:
                if span.impact:
                    found += [span] * (passed == 0 and left > 0)
                    continue
                count = min(max(span.knots - passed, 0), left)
                passed, left = max(passed - span.knots, 0), left - count
                if count and found and found[-1].contacts == span.contacts and not found[-1].impact:
                    found[-1] = found[-1]._replace(knots=found[-1].knots + count)
                elif count:
                    found.append(span._replace(knots=count))
        return found

    @property
    def terms(self) -> dict[str, Term]:
        """Costs and constraints by name."""
        return {x.name: x.term for x in self._terms}

    # costs and constraints

    @knows_keywords
    def add(
        self, term: Term, weight: ArrayLike = 1.0, *, at: Knots = "all", width: float = math.inf, exact: bool | None = None
    ) -> None:
        """Add a cost: weight / 2 times the squared rows of the term; beyond `width` it grows linearly (Huber 1964).

        `at` selects the knots: "all", "running" (all but the last), "end" or a sequence of knot numbers. The weight of a
        running knot is per second; an impact counts as the step after it. The weight may be an array (knots + 1,) over the
        horizon. Terms of contact forces apply only to phases with contacts. Terms of controls do not apply to the end.

        With `exact`, the second derivatives of the rows are added to the Gauss-Newton Hessian: all, half or none of them, as
        much as keeps the cost convex in the controls. Iterations take longer, but far fewer are needed if rows are not zero at
        the solution, such as distances from a target out of reach. The default is that of the problem, for terms that support
        it. Raises ValueError for a term that depends on accelerations or contact forces.
        """
        self._add(term, weight, at, False, 0.0, width, exact)

    @knows_keywords
    def require(
        self,
        term: Term,
        low: ArrayLike = 0.0,
        high: ArrayLike = 0.0,
        *,
        at: Knots = "all",
        weight: float = 1.0,
        exact: bool | None = None,
    ) -> None:
        """Add a constraint: low <= rows of the term <= high, an equality by default. `at` and `exact` are as in `add`.

        `weight` multiplies the penalty of the augmented Lagrangian. It affects the convergence, not the solution.
        """
        self._add(term, weight, at, True, low, high, exact)

    @checked
    def limit(
        self,
        *,
        positions: bool = False,
        velocities: bool = False,
        efforts: bool = False,
        controls: bool = False,
        friction: NonNegative | None = None,
        sole: tuple[float, float] | None = None,
    ) -> None:
        """Add constraints: limits of positions, velocities, joint forces and controls of actuators, and friction cones.

        `friction` is the coefficient of all contacts. Their normals are along the world's z axis, and violations are measured
        in units of the robot's weight. Surface contacts need the length and width of a `sole` [m], along x and y of the contact
        frame around its origin: the centre of pressure stays within, and the moment about the normal below friction times the
        normal force times a quarter of length and width. Raises ValueError for limits that the file does not have.
        """
        robot = self.robot
        if positions:
            limited = np.flatnonzero(np.isfinite(robot.lower) | np.isfinite(robot.upper))
            self._limit("positions", "q", limited, robot.lower, robot.upper)
        if velocities:
            limited = np.flatnonzero(np.isfinite(robot.velocity_limit))
            self._limit("velocities", "v", limited, -robot.velocity_limit, robot.velocity_limit)
        if efforts:
            low, high = force_bounds(robot, self.actuators)
            if self.actuators:
                limited = np.array([k for k in sorted({*self.driven}) if np.isfinite(low[k]) or np.isfinite(high[k])], int)
                self._limit("efforts", "tau", limited, low, high)
            else:
                low, high = low[list(self.driven)], high[list(self.driven)]
                self._limit("efforts", "u", np.flatnonzero(np.isfinite(low) | np.isfinite(high)), low, high)
        if controls:
            if not self.actuators:
                raise ValueError("OptimalControl: controls=True is for actuators; joint forces have efforts=True")
            low, high = control_bounds(self.actuators)
            self._limit("controls", "u", np.flatnonzero(np.isfinite(low) | np.isfinite(high)), low, high)
        if friction is not None:
            self._limit_friction(float(friction), sole)

    def _limit(self, name: str, by: str, which: Array, low: Array, high: Array) -> None:
        if not len(which):
            raise ValueError(f"{self.robot.name}: the file has no limits of {name}; omit {name}=True, or set the limits")
        picked = Picked(name, (by,), kernels.picked, (tuple(map(int, which)),), len(which))
        self._add(picked, 1.0, "running" if by in ("u", "tau") else "all", True, low[which], high[which])
        if by == "u":
            least, most = self.control_limits
            self.control_limits = np.maximum(least, low), np.minimum(most, high)

    def _limit_friction(self, mu: float, sole: tuple[float, float] | None) -> None:
        weight = float(self.robot.mass * np.linalg.norm(self.robot.gravity)) or 1.0
        different = list(dict.fromkeys(tuple(phase.contacts) for phase in self.phases if phase.contacts))
        if not different:
            raise ValueError("OptimalControl: friction needs contacts; give phases that have some")
        for contacts in different:
            if other := [c for c in contacts if c.rows is not None]:
                raise ValueError(
                    f"OptimalControl: friction supports point and surface contacts; {other[0]} has rows of its own"
                )
            surfaces = [c.size == 6 for c in contacts]
            if any(surfaces) and (sole is None or not all(0.0 < x < np.inf for x in sole)):
                raise ValueError(f"OptimalControl: friction of surface contacts needs sole=(length, width) in m; got {sole!r}")
            frames = tuple(c.frame for c in contacts)
            name = f"friction of {', '.join(map(str, frames))}"
            turns = tuple((s, tuple(map(tuple, c.pose.R))) for s, c in zip(surfaces, contacts, strict=True))
            given = (mu, weight, tuple(map(float, sole or (0.0, 0.0))), turns)
            picked = Picked(name, ("q", "force"), kernels.friction, given, len(frames) + 6 * sum(surfaces), frames)
            self._add(picked, 1.0, "running", True, 0.0, np.inf, contacts=contacts)

    def _add(
        self,
        term: Term | Picked,
        weight: ArrayLike,
        at: Knots,
        constraint: bool,
        low: ArrayLike,
        high: ArrayLike,
        exact: bool | None = None,
        contacts: tuple[BilateralContact, ...] | None = None,
    ) -> None:
        argument("OptimalControl: exact", exact, either([SWITCH, NOTHING]).worded("True, False or None"))
        if isinstance(term, ClearanceTask):
            raise TypeError("OptimalControl: for a ClearanceTask, use require(task.term, low=distance, high=math.inf)")
        if not isinstance(term, Term | Picked):
            raise TypeError(
                "OptimalControl: a term is a FrameTask, CenterOfMassTask, PostureTask, Effort, JointVelocities, ContactForces, "
                f"Duration or Residual; got {shown(term)}"
            )
        if isinstance(term, Residual):
            check_count(f"Residual {term.called!r}: size", term.size, 0)
            check_count(f"Residual {term.called!r}: parameters", term.parameters, 0)
        name = name_of(term)
        if any(x.name == name and not (isinstance(term, IkTask) and x.term == term) for x in self._terms):
            raise ValueError(f"OptimalControl: two terms are called {name!r}; rename one of them with name=")
        given = as_numbers(weight)
        if given is None or given.shape not in ((), (self.knots + 1,)) or not are_weights(given):
            raise ValueError(
                f"OptimalControl: the weight of {name!r} must be a number or {self.knots + 1} of them, none negative; "
                f"got {weight!r}"
            )
        dynamic = {"a", "force", *["tau"] * any(d.armature for d in self.drives)}  # which need derivatives of the dynamics
        if self._steps and (unknown := sorted({"a", "force", "tau"}.intersection(quantities(term)))):
            raise ValueError(
                f"OptimalControl: {name!r} depends on {', '.join(unknown)}; terms of a simulation depend on q, v and u"
            )
        found = sorted(dynamic.intersection(quantities(term)))
        exact = self.exact and not found if exact is None else bool(exact)
        if exact and found:
            raise ValueError(f"OptimalControl: exact=True does not support {', '.join(found)}, on which {name!r} depends")
        mask = self._knots_of(name, at)
        if isinstance(term, Duration) and constraint:
            raise ValueError("OptimalControl: Duration is a cost; bounds of steps bound the durations of phases")
        wide = as_numbers(high)
        if not constraint and (wide is None or not (wide > 0.0).all() or not wide.size):
            raise ValueError(f"OptimalControl: the width of {name!r} must be positive; got {high!r}")
        made = Added(term, name, np.where(mask, given, 0.0), constraint, low, high, exact, contacts)
        windows = [self._spans(k) for k in range(self.period if self.repeats else 1)]
        if not any((mask[numbers_of(spans)] & self._existing(made, spans)).any() for spans in windows):
            raise ValueError(f"OptimalControl: {name!r} applies to none of the knots {at!r}: its quantities do not exist there")
        self._terms = [*self._terms, made]  # copies may share the old terms, stages and windows
        self._stages, self._windows = {}, {}

    def _knots_of(self, name: str, at: Knots) -> Array:
        """Return the knots that `at` selects."""
        mask = np.zeros(self.knots + 1, bool)
        if isinstance(at, str):
            if at not in ("all", "running", "end"):
                raise ValueError(f"OptimalControl: at must be 'all', 'running', 'end' or numbers of knots; got {at!r}")
            mask[{"all": slice(None), "running": slice(-1), "end": slice(-1, None)}[at]] = True
        else:
            numbers = np.asarray(argument(f"OptimalControl: knots of {name!r}", at, ARRAY))
            if numbers.dtype.kind not in "iu" or ((numbers < 0) | (numbers > self.knots)).any():
                raise ValueError(f"OptimalControl: knots of {name!r} must be numbers from 0 to {self.knots}; got {shown(at)}")
            mask[numbers] = True
        return mask

    def _existing(self, x: Added, spans: Sequence[Span]) -> Array:
        """Return a mask of the knots at which the quantities of a term exist."""
        counts, needed = [span.knots for span in spans], quantities(x.term)
        mask = np.ones(sum(counts) + 1, bool)
        if not {"q", "v"}.issuperset(needed):
            mask[-1] = False  # the end has no controls
        if "force" in needed:
            mask &= np.append(np.repeat([len(span.contacts) > 0 for span in spans], counts), False)
        if x.contacts is not None:
            mask &= np.append(np.repeat([span.contacts == x.contacts and not span.impact for span in spans], counts), False)
        if not {"q", "v", "u", "tau"}.issuperset(needed):
            mask &= ~np.append(np.repeat([span.impact for span in spans], counts), False)  # impacts have no acceleration
        return mask

    def _weighted(self, x: Added, spans: Sequence[Span]) -> Added:
        """Return a term with weights of zero at knots where its quantities do not exist."""
        return x._replace(weight=np.where(self._existing(x, spans), x.weight[numbers_of(spans)], 0.0))

    # solutions

    def _window(self, begin: int = 0) -> Window:
        """Return the compiled problem whose horizon begins at a knot of the cycle."""
        k = begin % self.period if self.repeats else 0
        if k not in self._windows:
            spans = self._spans(k)
            terms = [self._weighted(x, spans) for x in self._terms]
            layout = Layout(self.robot, self.drives, spans, terms, self._stages, self.passive, self.integrator, self.exact)
            pool = Pool(lambda: Workspace(layout, self._steps))
            self._windows[k] = Window(layout, pool, Pool(lambda: SampledMotions(layout)))
        return self._windows[k]

    @property
    def _layout(self) -> Layout:
        """The functions of the problem, and the layout of its rows and parameters."""
        return self._window().layout

    @knows_keywords
    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        targets: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        guess: Plan | ArrayLike | None = None,
        iterations: int = 100,
        tolerance: float = 1e-6,
        constraint_tolerance: float = 1e-4,
    ) -> Plan:
        """Return the motion of least cost from q (nq,) and v (nv,), or from q (n, nq) for n problems on threads.

        The default for v is zero. `targets` are the targets of tasks by name, as in `InverseKinematics.solve`. A target with
        one more leading axis (knots + 1, or 1) changes along the horizon; n problems have a leading axis before it. A posture
        without a target uses q. `parameters` are those of functions, by name. If phases repeat, the horizon begins with the
        first phase. The solver starts from `guess`, or from standing still with the longest steps. With a simulation, it starts
        from the motion under controls that hold the robot in the air; `guess` may be controls (knots, nu) or (n, knots, nu),
        and `iterations=0` then returns their motion and its cost.

        Ctrl-C stops the solver, on all threads, after at most about 50 ms or one iteration.

        The solver converges when an iteration promises a decrease below `tolerance` (1 + cost) and constraints hold within
        `constraint_tolerance`. Raises ValueError for arguments that have wrong shapes or are not finite.
        """
        start_q = self._state("q", q, self.robot.nq)
        start_v = np.zeros((*start_q.shape[:-1], self.robot.nv)) if v is None else self._state("v", v, self.robot.nv)
        layout, pool, _ = self._window()
        flat = layout.parameters(start_q, targets, parameters)
        shapes = {"q": start_q.shape[:-1], "v": start_v.shape[:-1], "targets and parameters": flat.shape[:-2]}
        try:
            batch = np.broadcast_shapes(*shapes.values())
        except ValueError:
            raise ValueError(f"OptimalControl: problems do not broadcast: {shapes}") from None
        count = math.prod(batch)
        if count == 0:
            raise ValueError("OptimalControl: there are no problems to solve")
        check_count("OptimalControl: iterations", iterations, 0)
        for name, x in (("tolerance", tolerance), ("constraint_tolerance", constraint_tolerance)):
            if not argument(f"OptimalControl: {name}", x, NUMBER) >= 0.0:
                raise ValueError(f"OptimalControl: {name} must not be negative; got {x!r}")
        start = self._start_of(guess, batch)
        many_q, many_v = (np.broadcast_to(x, (*batch, x.shape[-1])).reshape(count, -1) for x in (start_q, start_v))
        many_p = np.broadcast_to(flat, (*batch, *flat.shape[-2:])).reshape(count, *flat.shape[-2:])
        settings, results = Settings(iterations, tolerance, constraint_tolerance), layout.results(count)

        stopped: list[bool] = []  # not empty after an error, or Ctrl-C, in any thread

        def piece(first: int, stop: int) -> None:
            with noted(stopped), pool.borrowed() as one:
                for i in range(first, stop):
                    one.begin(many_q[i], many_v[i], many_p[i], part_of(start, i))
                    one.solve(settings, results, i, lambda: bool(stopped))

        what = f"{count} optimal control problems of {self.robot.name!r}"
        with noted(stopped):  # also while this thread waits for the others
            share_out(piece, count, min(count, self.threads or processors()), what=what)
        found = Results(*(x.reshape((*batch, *x.shape[1:])) for x in results))
        motion, converged = (found.q, found.v, found.u, found.gains), found.status == 0
        if not batch:
            reason = REASONS.get(int(found.status), "")
            if not converged:
                reason += self._wrong_from_the_start(layout, Motion(*motion[:3], found.steps), flat, constraint_tolerance)
            return Plan(
                *motion,
                float(found.cost),
                float(found.violation),
                bool(converged),
                int(found.iterations),
                reason,
                found.multipliers,
                found.steps,
            )
        reasons = np.array([REASONS.get(int(k), "") for k in found.status.ravel()], dtype=object).reshape(batch)
        return Plan(*motion, found.cost, found.violation, converged, found.iterations, reasons, found.multipliers, found.steps)

    def _start_of(self, guess: Plan | ArrayLike | None, batch: tuple[int, ...]) -> Motion | Array | None:
        """Return the motion of a guess, or its controls, if it has no more."""
        if guess is None:
            return None
        start: Motion | Array
        if isinstance(guess, Plan) or not self._steps:
            self._check_plan("guess", guess, finite=True)
            start = motion_of(guess)
        else:
            start = array_of("OptimalControl: guess", guess, "...", len(self.dt), self.nu)
        if (plans := np.shape(start.u if isinstance(start, Motion) else start)[:-2]) not in ((), batch):
            raise ValueError(f"OptimalControl: the guess must be one plan, or one for each problem, {batch}; got {plans}")
        return start

    @knows_keywords
    def gradient(
        self, plan: Plan, *, targets: Mapping[str, Any] | None = None, parameters: Mapping[str, Any] | None = None
    ) -> CostGradient:
        """Return the derivatives of a plan's cost by its controls and initial state, along the motion of the simulation.

        They are exact, by one pass backwards through the derivatives of the steps (`Simulation.derivatives`), for methods of
        your own: gradient descent, L-BFGS. `solve(q, guess=u, iterations=0)` returns the plan of any controls u. Constraints
        do not count. Raises ValueError for a problem without a simulation.
        """
        if not self._steps:
            raise ValueError("OptimalControl: gradient is for problems of a Simulation; others have plan_function")
        self._check_plan("plan", plan, finite=True)
        if np.ndim(plan.q) != 2:
            raise ValueError(f"OptimalControl: gradient takes one plan; got q of shape {np.shape(plan.q)}")
        layout, pool, _ = self._window()
        motion = motion_of(plan)
        own = [*layout.gradients_of(motion, layout.parameters(motion.q[0], targets, parameters))]
        with pool.borrowed() as work:
            assert work.simulated
            start, controls = work.simulated.costs_back(motion, own)
        return CostGradient(controls, *np.split(start, 2))

    def plan_function(self, **options: Any) -> PlanFunction:
        """Return the solution as a function of initial states, targets and parameters, with derivatives.

        `options` are `guess`, `iterations`, `tolerance` and `constraint_tolerance` of `solve`. `featherweight.jax.plan` and
        `featherweight.torch.plan` make functions of their libraries' arrays from it.
        """
        if unknown := [name for name in options if name not in OPTIONS]:
            raise unknown_keyword("OptimalControl.plan_function", unknown[0], OPTIONS)
        self._require_robot("plan_function")
        return PlanFunction(self._layout, self._copied().solve, options)

    def _require_robot(self, what: str) -> None:
        """Raise NotImplementedError for a problem of a simulation."""
        if self._steps:
            raise NotImplementedError(f"OptimalControl: {what} is not implemented for problems of a Simulation")

    def require_given_steps(self, what: str) -> None:
        """Raise ValueError if steps are free."""
        if self.free:
            raise ValueError(
                f"{what}: steps of the problem are free; create a problem with given steps, for example those of a plan: "
                "Phase(knots, contacts, dt=plan.dt[first knot])"
            )

    def _copied(self) -> OptimalControl:
        """Return the problem as it is now, with the same compiled functions. It does not get terms that are added later."""
        other = copy.copy(self)
        other._stages, other._windows = self._stages, self._windows
        return other

    def _wrong_from_the_start(self, layout: Layout, motion: Motion, flat: Array, tolerance: float) -> str:
        """Describe the constraints that the initial state violates, which no solution can change."""
        rows, found = next(iter(layout.rows_of(motion, flat)))[0], []
        for x, first, stop in layout.terms_of_stage[0]:
            if x.constraint and x.weight[0] > 0.0 and {"q", "v"}.issuperset(quantities(x.term)):
                own = rows[first:stop]
                out = float(np.abs(own - np.clip(own, x.low, x.high)).max(initial=0.0))
                if out > tolerance:
                    found.append(f"{x.name} by {out:.2g}")
        return f"; the initial state violates {', '.join(found)}" if found else ""

    def scaled(self, scale: float) -> OptimalControl:
        """Return the problem with all steps multiplied by `scale`; it shares the compiled functions.

        Raises ValueError for a scale that is not positive, for free steps, and for servos with semi-implicit steps, whose
        stiffness and damping depend on the step.
        """
        self._require_robot("scaled")
        self.require_given_steps("scaled")
        argument("OptimalControl: the scale of time", scale, POSITIVE)
        if any(d.armature for d in self.drives):
            raise ValueError("OptimalControl: stiffness and damping of actuators depend on the step; create another problem")
        other = self._copied()
        other._cycle = [span._replace(step=scale * span.step) for span in self._cycle]
        other._windows = {}
        return other

    def fastest(
        self, q: ArrayLike, v: ArrayLike | None = None, *, shortest: float, longest: float = 1.0, accuracy: float = 0.01,
        **options: Any,
    ) -> tuple[OptimalControl, Plan]:  # fmt: skip
        """Return the problem with the shortest duration that has a solution, and its plan: minimum time under the constraints.

            quick, plan = ocp.fastest(q, shortest=0.2, targets={"tool": T})

        Durations are those of the problem times scales from `shortest` to `longest`. Bisection finds the least scale to within
        `accuracy`; each trial starts from the last plan. `options` are those of `solve`. Raises ValueError, with the reason,
        if the longest duration has no solution, for free steps, and as `scaled` and `solve` do.
        """
        if unknown := [name for name in options if name not in ("targets", "parameters", *OPTIONS)]:
            known = ("q", "v", "shortest", "longest", "accuracy", "targets", "parameters", *OPTIONS)
            raise unknown_keyword("OptimalControl.fastest", unknown[0], known)
        self._require_robot("fastest")
        self.require_given_steps("fastest")
        states = [self._state("q", q, self.robot.nq), *([] if v is None else [self._state("v", v, self.robot.nv)])]
        if any(x.ndim > 1 for x in states):
            raise ValueError("OptimalControl: fastest takes one problem; give q and v of one state")
        for name, x in (("shortest", shortest), ("longest", longest), ("accuracy", accuracy)):
            argument(f"OptimalControl: {name}", x, POSITIVE)
        if not shortest < longest:
            raise ValueError(f"OptimalControl: shortest must be positive and less than longest; got {shortest!r}, {longest!r}")
        best = self.scaled(longest)
        plan = best.solve(q, v, **options)
        if not plan.converged:
            worst = best.violations(plan, options.get("targets"), options.get("parameters"))
            violated = ", ".join(f"{name} by {x:.1e}" for name, x in worst.items() if x > 1e-3) or "none"
            raise ValueError(
                f"OptimalControl: even the longest duration, {best.dt.sum():.3g} s, has no solution: {plan.reason}; "
                f"violated: {violated}"
            )
        low, high = shortest, longest
        trial = low
        while high - low > accuracy * high:
            other = self.scaled(trial)
            slower = high / trial
            guess = plan._replace(v=plan.v * slower)
            found = other.solve(q, v, guess=guess, **options)
            if found.converged:
                best, plan, high = other, found, trial
                if trial == low:
                    break
            else:
                low = trial
            trial = math.sqrt(low * high)
        return best, plan

    @knows_keywords
    def cost_of_motions(
        self,
        q: ArrayLike,
        v: ArrayLike,
        u: ArrayLike,
        targets: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        penalty: float = 0.0,
        start: Array | None = None,
    ) -> Array:
        """Return the costs (...) of motions q (..., knots + 1, nq), v (..., knots + 1, nv) with controls u (..., knots, nu).

        `start` is the posture by default for tasks without a target; its default is the first configuration. Constraints count
        with penalty / 2 times the squares of their violations. Raises ValueError for free steps.
        """
        self.require_given_steps("cost_of_motions")
        check_penalty("OptimalControl", penalty)
        motion = Motion(*(real_array(f"OptimalControl: {name}", x) for name, x in (("q", q), ("v", v), ("u", u))))
        for name, x, shape in zip("qvu", motion, self._shapes(), strict=False):
            if x.shape[-2:] != shape:
                size = ", ".join(map(str, shape))
                raise ValueError(f"OptimalControl: {name} of motions must have shape (..., {size}); got {x.shape}")
        if start is not None:
            start = array_of("OptimalControl: start", start, "...", self.robot.nq)
        flat = self._layout.parameters(motion.q[..., 0, :] if start is None else start, targets, parameters)
        total: Array = np.zeros(motion.q.shape[:-2])
        laws = self._layout.laws
        for i, rows in enumerate(self._layout.rows_of(motion, flat)):
            total += costs_of_rows(laws, self._layout.rows_of_stage(i), rows, penalty)
        return total

    def contact_forces(self, plan: Plan) -> list[Matrix]:
        """Return the contact forces (knots, rows) [N, N m] of each phase, in the axes of the contact frames.

        They are the forces at the beginning of each step. An impact is a separate item before its phase: its impulses (1, rows)
        [N s, N m s]. A plan of a simulation has its contact forces in `trajectory`.
        """
        self._require_robot("contact_forces")
        self._check_plan("plan", plan)
        return SeveralListed(self._layout.forces_of(motion_of(plan)))

    def trajectory(self, plan: Plan) -> Trajectory:
        """Return one plan over time as a `Trajectory`, for charts, films, files and windows.

        It has the joint forces, unless controls are those of actuators, and the forces of contacts in the world. Impulses of
        impacts, which take no time, are left out. For a problem of a simulation, it is the motion of the simulation under the
        plan's controls. Raises ValueError for several plans.
        """
        self._check_plan("plan", plan)
        if np.ndim(plan.q) != 2:
            raise ValueError(f"OptimalControl: trajectory takes one plan; got q of shape {np.shape(plan.q)}")
        if self._steps:
            return self._steps.trajectory(plan.q[0], plan.v[0], plan.u)
        times = np.concatenate([[0.0], np.cumsum(plan.dt if self.free else self.dt)])
        tau = np.zeros((0, 0))
        if not self.actuators:
            tau = np.zeros((len(plan.q), self.robot.nv))
            tau[1:, list(self.driven)] = plan.u
            tau[0] = tau[1]
        counts, k, contacts = [0, 0], 0, [Contacts(np.zeros((0, 3)), np.zeros((0, 3)))]
        for span, force in zip(self._spans(), self.contact_forces(plan), strict=True):
            here = () if span.impact else span.contacts  # whose forces are on their axes at the beginning of each step
            contacts.append(contacts_in_world(self.robot, here, plan.q[k : k + span.knots], force))
            counts += [len(here)] * span.knots
            k += span.knots
        points, forces = map(np.concatenate, zip(*contacts, strict=True))
        names = self.robot.name, joint_names(self.robot)
        return Trajectory(times, plan.q, plan.v, np.cumsum(counts), points, forces, *names, tau, self.robot)

    def violations(
        self, plan: Plan, targets: Mapping[str, Any] | None = None, parameters: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the largest violation of each constraint, by name: a number, or an array (...) for several plans.

        The targets and parameters are those of `solve`.
        """
        self._check_plan("plan", plan)
        motion = motion_of(plan)
        batch = plan.q.shape[:-2]
        worst: dict[str, Any] = {x.name: np.zeros(batch) for x in self._terms if x.constraint}
        flat = self._layout.parameters(plan.q[..., 0, :], targets, parameters)
        for i, rows in enumerate(self._layout.rows_of(motion, flat)):
            knots = self._layout.knots_of_stage(i)
            for x, first, stop in self._layout.terms_of_stage[i]:
                if x.constraint:
                    own = rows[..., first:stop]
                    out = np.abs(own - np.clip(own, x.low, x.high))[..., x.weight[knots] > 0.0, :]
                    worst[x.name] = np.maximum(worst[x.name], out.max(axis=(-2, -1), initial=0.0))
        return worst if batch else {name: float(x) for name, x in worst.items()}

    def _shapes(self) -> tuple[tuple[int, int], ...]:
        """Return the shapes of q, v and u of a motion."""
        knots = len(self.dt)
        return (knots + 1, self.robot.nq), (knots + 1, self.robot.nv), (knots, self.nu)

    def _check_plan(self, what: str, plan: Any, finite: bool = False) -> None:
        """Raise ValueError for a plan with a different number of knots or of another robot, TypeError for another object."""
        if not isinstance(plan, Plan):
            raise TypeError(f"OptimalControl: the {what} must be a Plan, as solve returns it; got {shown(plan)}")
        knots = len(self.dt)
        for name, x, shape in zip("qvu", plan, self._shapes(), strict=False):
            if np.shape(x) != (*np.shape(plan.q)[:-2], *shape) or (finite and not np.isfinite(x).all()):
                raise ValueError(
                    f"OptimalControl: {name} of the {what} must be {'finite, ' * finite}of shape {shape}; got {np.shape(x)}"
                )
        if plan.dt is not None and np.shape(plan.dt) != (*np.shape(plan.q)[:-2], knots):
            raise ValueError(f"OptimalControl: dt of the {what} must be of shape {(knots,)}; got {np.shape(plan.dt)}")

    def _state(self, name: str, x: ArrayLike, n: int) -> Array:
        a = real_array(f"OptimalControl: {name}", x)
        if a.ndim not in (1, 2) or a.shape[-1] != n:
            raise ValueError(f"OptimalControl: {name} must have shape ({n},) or (problems, {n}); got {a.shape}")
        if not np.isfinite(a).all():
            raise ValueError(f"OptimalControl: {name} has numbers that are not finite")
        return with_unit_rotations(self.robot, a) if name == "q" else a


PROBLEM = object_of(OptimalControl).worded("an OptimalControl")


def bounds_of_step(step: float | tuple[float, float]) -> tuple[float, float]:
    """Return the shortest and the longest step [s]. Raises ValueError for others than one or two positive numbers."""
    bounds = argument("OptimalControl: dt", step, STEP)
    return float(bounds[0]), float(bounds[-1])


def _check_simulation(given: Mapping[str, Any], every: int, simulation: Simulation) -> None:
    """Raise ValueError for options that do not apply to simulations, NotImplementedError for actuators with states."""
    if wrong := [name for name, x in given.items() if x is not None and x is not False]:
        raise ValueError(
            f"OptimalControl: {wrong[0]} does not apply to a simulation, which has its own steps, actuators and contacts; give "
            "knots=, and every= for the number of steps of a knot"
        )
    check_count("OptimalControl: every", every, 1)
    if simulation.forces.states:
        raise NotImplementedError(
            f"OptimalControl: {simulation.robot.name} has actuators with activations or delays, which are no part of the state "
            "(q, v) of a plan"
        )


def _step(x: Any) -> tuple[float, ...]:
    bounds: tuple[float, ...] = ONE_OR_SEVERAL.convert(x)
    if len(bounds) not in (1, 2) or not 0.0 < bounds[0] <= bounds[-1] < math.inf:
        raise Refused
    return bounds


STEP = Kind("a positive number of seconds or two, ascending", _step)


@contextmanager
def noted(stopped: list[bool]) -> Iterator[None]:
    """Add an entry to a list if an exception passes. Ctrl-C could leave the lock of an event in this thread's hands."""
    try:
        yield
    except BaseException:
        stopped.append(True)
        raise


def motion_of(plan: Any) -> Motion:
    """Return the motion of a plan."""
    return Motion(plan.q, plan.v, plan.u, plan.dt)


def part_of(start: Motion | Array | None, i: int) -> Motion | Array | None:
    """Return the motion, or the controls, from which the solver starts for one problem."""
    if start is None:
        return None
    count = np.shape(start.u if isinstance(start, Motion) else start)[:-2]
    k = np.unravel_index(i, count) if count else ()
    if not isinstance(start, Motion):
        controls: Array = start[k]
        return controls
    q, v, u = (np.asarray(x)[k] for x in start[:3])
    return Motion(q, v, u, None if start.steps is None else np.asarray(start.steps)[k])


def check_penalty(owner: str, penalty: object) -> None:
    """Raise ValueError unless a penalty is a number, zero or more."""
    argument(f"{owner}: penalty", penalty, NONNEGATIVE)


def check_problem(owner: str, ocp: object) -> None:
    """Raise TypeError unless an object is a problem."""
    argument(f"{owner}: ocp", ocp, PROBLEM)


def contacts_in_world(robot: Robot, contacts: Sequence[BilateralContact], q: Array, force: Array) -> Contacts:
    """Return points and forces (k n, 3) of n contacts at q (k, nq), those of one configuration together.

    `force` (k, rows) is on the axes of the contact frames.
    """
    if not contacts:
        return Contacts(np.zeros((0, 3)), np.zeros((0, 3)))
    T = np.asarray(robot.frame_placement([c.frame for c in contacts])(q))  # (k, n, 4, 4)
    origins, turns = np.array([c.pose.p for c in contacts]), np.array([c.pose.R for c in contacts])
    ends = accumulate((c.size for c in contacts), initial=0)
    own = [force[:, i : i + c.size] @ c.matrix[:, :3] for c, i in zip(contacts, ends, strict=False)]
    points = T[..., :3, 3] + np.einsum("knij,nj->kni", T[..., :3, :3], origins)
    forces = np.einsum("knij,njl,knl->kni", T[..., :3, :3], turns, np.stack(own, axis=1))
    return Contacts(points.reshape(-1, 3), forces.reshape(-1, 3))
