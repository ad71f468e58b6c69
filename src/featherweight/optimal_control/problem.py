"""Optimal control of a robot: what users call."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..contact.branches import padded
from ..engine.loops.batch_calls import batch_calls
from ..engine.loops.kernels import CompiledLoop, Table
from ..engine.threads import processors, share_out
from ..robot.constraints.contact import BilateralContact
from ..robot.inverse_kinematics.targets import packed
from ..robot.inverse_kinematics.tasks import IkTask, PostureTask, TargetSlot, slots_of
from ..robot.robot import Robot
from . import knot_kernels as kernels
from .laws import Laws, costs_of_rows, new_laws
from .riccati import KNOTS_AT_ONCE, riccati
from .solver import (
    COST,
    GAP,
    ITERATIONS,
    NOT_FINITE,
    PENALTY,
    STALLED,
    TOLERANCE,
    TRIALS,
    VIOLATED,
    VIOLATION,
    Calls,
    Horizon,
    Linear,
    Solver,
    Trials,
    solve,
)
from .stage_functions import StageFunctions, System
from .terms import Added, Picked, Residual, Term, name_of, quantities

Array = np.ndarray[Any, np.dtype[Any]]

SOLVE = CompiledLoop(solve, 1, what="the solver of optimal control")
FIRST_PENALTY = 10.0
REASONS = {
    ITERATIONS: "the iterations are used up", STALLED: "no step decreases the cost", NOT_FINITE: "numbers are not finite",
}  # fmt: skip


@dataclass(frozen=True)
class Phase:
    """A part of the horizon: so many knots, during which contacts hold. `step` [s] is that of the problem unless given."""

    knots: int
    contacts: Sequence[BilateralContact] = ()
    step: float | None = None


class Plan(NamedTuple):
    """A solution: the motion (..., knots + 1), controls (..., knots), and feedback from differences of states.

    `gains` (..., knots, nu, 2 nv) and the motion give u = plan.u + gains [q - plan.q; v - plan.v].
    """

    q: Array
    v: Array
    u: Array
    gains: Array
    cost: Any
    violation: Any  # the largest of a constraint
    converged: Any
    iterations: Any
    reason: Any  # why the solver ended, empty if it converged


class OptimalControl:
    """Trajectory optimization by differential dynamic programming, compiled for the robot and the problem.

        ocp = featherweight.OptimalControl(robot, step=0.01, knots=50)
        ocp.add(featherweight.FrameTask("tool"), weight=100.0)
        ocp.add(featherweight.Effort(), weight=1e-3)
        plan = ocp.solve(q, targets={"tool": T})

    The motion is one of semi-implicit Euler steps, v' = v + h a, q' = q ⊕ h v', and the cost the integral of weighted squares
    over the horizon, plus those at its end. Controls are the forces of `driven` joints (names), or of all but free joints.
    `phases` says which contacts hold when; without, there are `knots` steps of `step` [s] without contacts.

    Raises ValueError for a joint or frame that the robot does not have.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        step: float = 0.01,
        knots: int | None = None,
        phases: Iterable[Phase] | None = None,
        driven: Iterable[str] | None = None,
    ) -> None:
        if not isinstance(robot, Robot):
            raise TypeError(f"OptimalControl takes a robot, as featherweight.load gives; got {type(robot).__name__}")
        if (knots is None) == (phases is None):
            raise ValueError("OptimalControl: give either knots, or phases that have them")
        self.robot = robot
        self.phases = (Phase(int(knots)),) if knots is not None else tuple(phases or ())
        self.knots = sum(phase.knots for phase in self.phases)
        if not self.phases or any(phase.knots < 1 for phase in self.phases):
            raise ValueError(f"OptimalControl: the horizon and each phase need one knot at least; got {self.phases}")
        steps = [step if phase.step is None else phase.step for phase in self.phases]
        if bad := [h for h in steps if not 0.0 < h < math.inf]:
            raise ValueError(f"OptimalControl: step must be a positive number of seconds; got {bad[0]!r}")
        self.steps = np.repeat(steps, [phase.knots for phase in self.phases]).astype(float)
        self.driven = driven_velocities(robot, driven)
        self.nu = len(self.driven)
        self._added: list[Added] = []

    def __repr__(self) -> str:
        return f"<OptimalControl of {self.robot.name!r}: {self.knots} knots; {', '.join(x.name for x in self._added)}>"

    # what is minimized and kept

    def add(self, term: Term, weight: Any = 1.0, *, at: Any = "all", width: float = math.inf) -> None:
        """Add a cost: weight / 2 times the squares of the rows of a term, beyond `width` growing linearly (Huber 1964).

        `at` says at which knots: "all", "running" (all but the end), "end", or numbers of knots. A weight at running knots is one
        per second; it may be an array (knots + 1) over the horizon.
        """
        self._add(term, weight, at, False, 0.0, width)

    def require(self, term: Term, low: Any = 0.0, high: Any = 0.0, *, at: Any = "all", weight: float = 1.0) -> None:
        """Add a constraint: low <= rows of the term <= high. `weight` is a factor of the penalty, not of the solution."""
        self._add(term, weight, at, True, low, high)

    def limit(
        self,
        *,
        positions: bool = False,
        velocities: bool = False,
        efforts: bool = False,
        friction: float | None = None,
    ) -> None:
        """Keep the robot's limits of positions, velocities and joint forces; forces of point contacts within friction cones.

        The normals of contacts are the world's z axis.
        """
        robot = self.robot
        if positions:
            limited = np.flatnonzero(np.isfinite(robot.lower) | np.isfinite(robot.upper))
            self._limit("positions", "q", kernels.coordinates, limited, robot.lower, robot.upper)
        if velocities:
            limited = np.flatnonzero(np.isfinite(robot.velocity_limit))
            self._limit("velocities", "v", kernels.velocities, limited, -robot.velocity_limit, robot.velocity_limit)
        if efforts:
            low, high = np.array(robot.effort_bounds)[:, list(self.driven)]
            self._limit("efforts", "u", kernels.velocities, np.flatnonzero(np.isfinite(low) | np.isfinite(high)), low, high)
        if friction is not None:
            self._limit_friction(float(friction))

    def _limit(self, name: str, by: str, kernel: Any, which: Array, low: Array, high: Array) -> None:
        if not len(which):
            raise ValueError(f"{self.robot.name}: the file has no limits of {name}; leave {name}=True out, or set them")
        picked = Picked(name, (by,), kernel, (tuple(map(int, which)),), len(which))
        self._add(picked, 1.0, "running" if by == "u" else "all", True, low[which], high[which])

    def _limit_friction(self, mu: float) -> None:
        begins = np.cumsum([0, *(phase.knots for phase in self.phases)])
        weight = float(self.robot.mass * np.linalg.norm(self.robot.gravity)) or 1.0
        for k, phase in enumerate(self.phases):
            if other := [c for c in phase.contacts if c.size != 3]:
                raise ValueError(f"OptimalControl: friction is for point contacts; {other[0]} has {other[0].size} rows")
            if phase.contacts:
                frames = tuple(c.frame for c in phase.contacts)
                picked = Picked(f"friction of phase {k}", ("q", "force"), kernels.friction, (mu, weight), len(frames), frames)
                self._add(picked, 1.0, range(begins[k], begins[k + 1]), True, 0.0, np.inf)

    def _add(self, term: Any, weight: Any, at: Any, constraint: bool, low: Any, high: Any) -> None:
        if not isinstance(term, Term | Picked):
            raise TypeError(
                "OptimalControl: a term is a FrameTask, CenterOfMassTask, PostureTask, Effort, JointVelocities, ContactForces or "
                f"Residual; got {type(term).__name__}"
            )
        name = name_of(term)
        if any(x.name == name and not isinstance(term, IkTask) for x in self._added):
            raise ValueError(f"OptimalControl: two terms are called {name!r}; give one of them another name by name=")
        given = np.asarray(weight, dtype=float)
        if given.shape not in ((), (self.knots + 1,)) or not np.isfinite(given).all() or (given < 0.0).any():
            raise ValueError(f"OptimalControl: the weight of {name!r} must be a number, or {self.knots + 1}, none negative")
        self._added.append(Added(term, name, np.where(self._mask(name, term, at), given, 0.0), constraint, low, high))
        self.__dict__.pop("_compiled", None)

    def _mask(self, name: str, term: Any, at: Any) -> Array:
        mask = np.zeros(self.knots + 1, bool)
        if isinstance(at, str):
            if at not in ("all", "running", "end"):
                raise ValueError(f"OptimalControl: at must be 'all', 'running', 'end' or numbers of knots; got {at!r}")
            mask[{"all": slice(None), "running": slice(-1), "end": slice(-1, None)}[at]] = True
        else:
            mask[list(at)] = True
        if not isinstance(term, IkTask) and not {"q", "v"}.issuperset(quantities(term)):
            mask[-1] = False  # there are no controls
        if "force" in quantities(term):
            held = np.repeat([len(phase.contacts) > 0 for phase in self.phases], [phase.knots for phase in self.phases])
            mask &= np.append(held, False)
            if not mask.any():
                raise ValueError(f"OptimalControl: {name!r} is about contact forces, and no contacts hold at its knots")
        return mask

    # solving

    @cached_property
    def _compiled(self) -> Compiled:
        return Compiled(self)

    def workspace(self) -> Workspace:
        """A workspace of its own: for one thread."""
        return Workspace(self._compiled)

    def flat_parameters(self, q: Any, targets: Mapping[str, Any] | Any = None, parameters: Mapping[str, Any] | None = None) -> Array:
        """Targets and parameters of all knots as one array (..., knots + 1 or 1, numbers)."""
        return self._compiled.parameters(q, targets, parameters)

    def solve(
        self,
        q: Any,
        v: Any = None,
        *,
        targets: Any = None,
        parameters: Mapping[str, Any] | None = None,
        guess: Plan | None = None,
        iterations: int = 100,
        tolerance: float = 1e-6,
        constraint_tolerance: float = 1e-4,
        threads: int | None = None,
    ) -> Plan:
        """The motion from q (nq,) and v (nv,), zero unless given, that costs least; for problems q (n, nq) all at once.

        `targets` are those of the tasks, by their names, as for `InverseKinematics.solve`, with one leading axis more where they
        change along the horizon (knots + 1); a posture without a target is to stay as it is at q. `parameters` are those of
        functions by their names. `guess` is a plan to begin with, else the robot stands still. The solver ends when an iteration
        promises to take less than `tolerance` off 1 + the cost, and constraints are kept within `constraint_tolerance`.

        Raises ValueError for arguments of wrong shapes or that are not finite.
        """
        start_q = self._state("q", q, self.robot.nq)
        start_v = np.zeros((*start_q.shape[:-1], self.robot.nv)) if v is None else self._state("v", v, self.robot.nv)
        flat = self.flat_parameters(start_q, targets, parameters)
        batch = np.broadcast_shapes(start_q.shape[:-1], start_v.shape[:-1], flat.shape[:-2])
        count = math.prod(batch)
        many_q, many_v = (np.broadcast_to(x, (*batch, x.shape[-1])).reshape(count, -1) for x in (start_q, start_v))
        many_p = np.broadcast_to(flat, (*batch, *flat.shape[-2:])).reshape(count, *flat.shape[-2:])
        settings = Settings(iterations, tolerance, constraint_tolerance)
        results = self._compiled.results(count)

        def piece(begin: int, stop: int) -> None:
            with self._compiled.workspace() as one:
                for i in range(begin, stop):
                    one.begin(many_q[i], many_v[i], many_p[i], None if guess is None else guess_of(guess, i if batch else None))
                    one.solve(settings, results, i)

        share_out(piece, count, min(count, threads or processors()))
        arrays = [x.reshape((*batch, *x.shape[1:])) for x in results]
        reasons = np.vectorize(lambda k: REASONS.get(int(k), ""), otypes=[object])(arrays[-1])
        q_, v_, u_, gains, cost, violation, status, *_ = *arrays[:6], arrays[-1]
        plan = Plan(q_, v_, u_, gains, cost, violation, status == 0, arrays[6], reasons)
        return plan if batch else Plan(*(x.item() if np.ndim(x) == 0 else x for x in plan))

    def cost_of_motions(
        self,
        q: Any,
        v: Any,
        u: Any,
        targets: Any = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        penalty: float = 0.0,
        start: Any = None,
    ) -> Array:
        """What given motions cost: q (..., knots + 1, nq), v alike and u (..., knots, nu). `start` is what postures without a
        target are compared with, the first configuration unless given.

        With a `penalty`, squares of violations of constraints count by half of it.
        """
        q, v, u = (np.asarray(x, dtype=float) for x in (q, v, u))
        c = self._compiled
        flat = self.flat_parameters(q[..., 0, :] if start is None else start, targets, parameters)
        total: Array = np.zeros(q.shape[:-2])
        laws = self.laws()
        for i, stage in enumerate(c.stages):
            b, e = c.begin[i], c.begin[i + 1]
            if not stage.rows:
                continue
            known = {
                "q": q[..., b:e, :], "v": v[..., b:e, :], "u": u[..., b:e, :], "h": np.append(self.steps, 1.0)[b:e],
                "parameters": flat if flat.shape[-2] == 1 else flat[..., b:e, :],
            }  # fmt: skip
            rows = stage.only_rows(*(known[x.name] for x in stage.only_rows.program.inputs))
            total += costs_of_rows(laws, slice(int(c.rows[b]), int(c.rows[e])), rows, penalty)
        return total

    def contact_forces(self, plan: Plan) -> list[Array]:
        """Forces of the contacts of each phase (knots of the phase, rows), in the axes of contact frames; none without contacts."""
        c, found = self._compiled, []
        for i, stage in enumerate(c.stages[:-1]):
            b, e = c.begin[i], c.begin[i + 1]
            known = {"q": plan.q[b:e], "v": plan.v[b:e], "u": plan.u[b:e], "h": self.steps[b:e]}
            forces = stage.forces
            found.append(np.zeros((e - b, 0)) if forces is None else forces(*(known[x.name] for x in forces.program.inputs)))
        return found

    def violations(self, plan: Plan, targets: Any = None, parameters: Mapping[str, Any] | None = None) -> dict[str, float]:
        """By how much a plan violates each constraint, at most: which are in the way where a problem has no solution."""
        c, worst = self._compiled, dict.fromkeys((x.name for x in self._added if x.constraint), 0.0)
        flat = np.broadcast_to(self.flat_parameters(plan.q[0], targets, parameters), (self.knots + 1, c.size))
        for i, (stage, laid) in enumerate(zip(c.stages, c.laid, strict=True)):
            b, e = c.begin[i], c.begin[i + 1]
            known = {"q": plan.q[b:e], "v": plan.v[b:e], "u": plan.u[b:e], "h": np.append(self.steps, 1.0)[b:e], "parameters": flat[b:e]}
            rows = stage.only_rows(*(known[x.name] for x in stage.only_rows.program.inputs)) if stage.rows else np.zeros((e - b, 0))
            for x, first, stop in laid:
                if x.constraint:
                    own = rows[:, first:stop]
                    out = np.abs(own - np.clip(own, x.low, x.high))[x.weight[b:e] > 0.0]
                    worst[x.name] = max(worst[x.name], float(out.max(initial=0.0)))
        return worst

    def laws(self) -> Laws:
        """The laws of all rows, in the order of knots."""
        made = new_laws(int(self._compiled.rows[-1]))
        self._compiled.write_laws(made)
        return made

    def _state(self, name: str, x: Any, n: int) -> Array:
        a = np.asarray(x, dtype=np.float64)
        if a.ndim not in (1, 2) or a.shape[-1] != n:
            raise ValueError(f"OptimalControl: {name} must have shape ({n},) or (problems, {n}); got {a.shape}")
        if not np.isfinite(a).all():
            raise ValueError(f"OptimalControl: {name} has numbers that are not finite")
        return a


class Settings(NamedTuple):
    """When to end."""

    iterations: int
    tolerance: float
    constraint_tolerance: float


class Results(NamedTuple):
    """Of many problems."""

    q: Array
    v: Array
    u: Array
    gains: Array
    cost: Array
    violation: Array
    iterations: Array
    status: Array


def guess_of(guess: Plan, i: int | None) -> tuple[Array, Array, Array]:
    """The motion and controls of one problem."""
    one = guess.q.ndim == 2
    return (guess.q, guess.v, guess.u) if one or i is None else (guess.q[i], guess.v[i], guess.u[i])


def driven_velocities(robot: Robot, names: Iterable[str] | None) -> tuple[int, ...]:
    """Velocities that controls act on. Raises ValueError for a joint that is none, or that others determine."""
    if names is None:
        free = [j for j in robot.joints if j.type.nv < 6]
        return tuple(k for j in free for k in range(j.v_slice.start, j.v_slice.stop))
    found = []
    for name in names:
        j = robot.joint(name)
        if j.v_slice.stop == j.v_slice.start:
            raise ValueError(f"{robot.name}: joint {name!r} follows others; a control acts on an independent joint")
        found += range(j.v_slice.start, j.v_slice.stop)
    return tuple(found)


class Compiled:
    """A problem's functions, and where its rows lie."""

    def __init__(self, ocp: OptimalControl) -> None:
        self.ocp, robot = ocp, ocp.robot
        self.tasks = list({name_of(x.term): x.term for x in ocp._added if isinstance(x.term, IkTask)}.values())
        self.slots = slots_of(robot, self.tasks) if self.tasks else []
        self.residuals = [x.term for x in ocp._added if isinstance(x.term, Residual)]
        at = self.slots[-1].end if self.slots else 0
        self.first: dict[str, int] = {}
        for term in self.residuals:
            self.first[term.called] = at
            at += term.parameters
        self.size = max(1, at)
        self.system = System(robot, ocp.driven, self.size)
        self.begin = [int(x) for x in np.cumsum([0, *(phase.knots for phase in ocp.phases), 1])]
        self.stages: list[StageFunctions] = []
        self.laid: list[list[tuple[Added, int, int]]] = []  # of each stage: terms with their rows
        for i in range(len(ocp.phases) + 1):
            self._add_stage(i)
        counts = [s.rows for s, b, e in zip(self.stages, self.begin, self.begin[1:], strict=False) for _ in range(e - b)]
        self.rows = np.cumsum([0, *counts])
        self._spare: deque[Workspace] = deque()

    def _add_stage(self, i: int) -> None:
        ocp, end = self.ocp, i == len(self.ocp.phases)
        knots = slice(self.begin[i], self.begin[i + 1])
        here = [x for x in ocp._added if x.weight[knots].any()]
        tasks = {name_of(x.term) for x in here if isinstance(x.term, IkTask)}
        slots = [slot for slot in self.slots if slot.task.called in tasks]
        others = [(x.term, self.first.get(x.name, 0)) for x in here if not isinstance(x.term, IkTask)]
        if not end and not any(not isinstance(x.term, IkTask) and not {"q", "v"}.issuperset(quantities(x.term)) for x in here):
            raise ValueError(f"OptimalControl: no term of phase {i} depends on controls; add(featherweight.Effort(), weight=...)")
        stage = StageFunctions(self.system, slots, others, () if end else ocp.phases[i].contacts, end)
        laid, k = [], 0
        sizes = stage.task_rows() if slots else []
        for slot, size in zip(slots, sizes, strict=True):
            laid += [(x, k, k + size) for x in here if name_of(x.term) == slot.task.called and isinstance(x.term, IkTask)]
            k += size
        for x, part in zip((x for x in here if not isinstance(x.term, IkTask)), stage.parts[len(sizes) > 0 :], strict=True):
            laid.append((x, k, k + part.size))
            k += part.size
        self.stages.append(stage)
        self.laid.append(laid)

    def write_laws(self, laws: Laws) -> None:
        """Weights and bounds of all rows."""
        steps = np.append(self.ocp.steps, 1.0)
        for i, laid in enumerate(self.laid):
            for k in range(self.begin[i], self.begin[i + 1]):
                for x, first, stop in laid:
                    at = slice(int(self.rows[k]) + first, int(self.rows[k]) + stop)
                    own = 1.0 if isinstance(x.term, IkTask) else x.term.weight
                    weight = x.weight[k] * np.asarray(own, dtype=float)
                    laws.weight[at] = weight if x.constraint else weight * steps[k]
                    laws.constraint[at] = x.constraint
                    laws.low[at], laws.high[at] = x.low, x.high

    def parameters(self, q: Array, targets: Any, parameters: Mapping[str, Any] | None) -> Array:
        """One array (..., knots + 1 or 1, numbers)."""
        given = dict(targets or {})
        for slot in self.slots:
            if isinstance(slot.task, PostureTask) and slot.task.called not in given:
                given[slot.task.called] = q[..., None, :] if q.ndim > 1 else q
        parts: list[Array] = []
        if self.slots:
            flat = packed(self.slots, given, False)
            parts.append(flat[None] if flat.ndim == 1 else flat)
        elif given:
            raise ValueError(f"OptimalControl: there are targets {list(given)}, and no task")
        own = dict(parameters or {})
        for term in self.residuals:
            if term.parameters:
                if term.called not in own:
                    raise ValueError(f"OptimalControl: parameters of {term.called!r} are missing")
                x = np.asarray(own.pop(term.called), dtype=float)
                if x.shape[-1:] != (term.parameters,):
                    raise ValueError(f"OptimalControl: parameters of {term.called!r} must be {term.parameters}; got {x.shape}")
                parts.append(x[None] if x.ndim == 1 else x)
        if own:
            raise ValueError(f"OptimalControl: there is no function {next(iter(own))!r} with parameters")
        if not parts:
            return np.zeros((1, self.size))
        leading = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
        if leading[-1] not in (1, self.ocp.knots + 1):
            raise ValueError(f"OptimalControl: targets that change need {self.ocp.knots + 1} of them, one a knot; got {leading[-1]}")
        return np.concatenate([np.broadcast_to(x, (*leading, x.shape[-1])) for x in parts], axis=-1)

    def results(self, count: int) -> Results:
        """Room for so many problems."""
        ocp, n = self.ocp, self.ocp.robot.nv
        shapes = (ocp.knots + 1, ocp.robot.nq), (ocp.knots + 1, n), (ocp.knots, ocp.nu), (ocp.knots, ocp.nu, 2 * n), (), ()
        floats = (np.empty((count, *shape)) for shape in shapes)
        return Results(*floats, np.zeros(count, np.int64), np.zeros(count, np.int64))

    def workspace(self) -> Borrowed:
        """A workspace for one thread."""
        return Borrowed(self)


class Borrowed:
    """A workspace that goes back when it is no longer needed."""

    def __init__(self, compiled: Compiled) -> None:
        self.spare, self.compiled = compiled._spare, compiled

    def __enter__(self) -> Workspace:
        self.one: Workspace | None = None
        with suppress(IndexError):
            self.one = self.spare.pop()
        self.one = self.one or Workspace(self.compiled)
        return self.one

    def __exit__(self, *_: object) -> None:
        assert self.one is not None
        self.spare.append(self.one)


class Workspace:
    """What one problem at a time is solved in."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled, ocp = compiled, compiled.ocp
        robot, knots, m = ocp.robot, ocp.knots, ocp.nu
        nq, n, rows, stages = robot.nq, robot.nv, compiled.rows, compiled.stages
        total, width = int(rows[-1]), 2 * robot.nv + ocp.nu
        curved = compiled.system.curved.blocks
        places = [np.array(s.places, np.int64).reshape(-1, 2) for s in stages]
        entries = max(map(len, places))
        self.horizon = z = Horizon(
            np.zeros((knots + 1, nq)), np.zeros((knots + 1, n)), np.zeros((knots, m)), np.append(ocp.steps, 1.0),
            np.repeat(np.arange(len(stages)), np.diff(compiled.begin)), np.array(compiled.begin, np.int64),
            rows.astype(np.int64), np.zeros(total),
        )  # fmt: skip
        linear = Linear(
            np.zeros((knots * 2 * n + TRIALS) * padded(m) + TRIALS * 2 * n), np.zeros((knots, m)), np.zeros((knots + 1, 2 * n)), np.zeros(total), np.zeros(total),
            np.zeros((KNOTS_AT_ONCE, 2 * sum(size * size for _, size in curved))),
            np.zeros((KNOTS_AT_ONCE, width)), np.zeros(KNOTS_AT_ONCE * entries), np.zeros(width),
            np.concatenate(places), np.cumsum([0, *map(len, places)]).astype(np.int64),
        )  # fmt: skip
        trials = Trials(
            np.zeros((knots + 1, TRIALS, nq)), np.zeros((knots + 1, TRIALS, n)), np.zeros((knots, TRIALS, m)),
            np.zeros(TRIALS * total), np.zeros((TRIALS, n)), np.zeros((TRIALS, n)), np.zeros((TRIALS, nq)), np.zeros(TRIALS),
        )  # fmt: skip
        self.parameters = np.zeros((knots + 1, compiled.size))
        ahead_q, ahead_v, apart = np.zeros((knots, nq)), np.zeros((knots, n)), np.zeros((knots, n))
        self.laws = new_laws(total)
        compiled.write_laws(self.laws)
        room = riccati(n, m, list(curved))
        motion = room.numbers[: KNOTS_AT_ONCE * n * room.long].reshape(KNOTS_AT_ONCE, n, room.long)
        calls, self._kept = self._calls(z, linear, trials, (ahead_q, ahead_v, apart), motion)
        self.solver = Solver(
            not curved, z, ahead_q, ahead_v, apart, linear, trials, self.laws, room, calls, np.zeros(7),
            np.zeros(2, np.int64),
        )  # fmt: skip
        self.table = Table(self.solver)
        self.run = SOLVE.for_tables(self.table)

    def _calls(
        self, z: Horizon, l: Linear, t: Trials, ahead: tuple[Array, ...], motion: Array
    ) -> tuple[Calls, list[Any]]:
        c, robot = self.compiled, self.compiled.ocp.robot
        ahead_q, ahead_v, apart = ahead
        look, slopes, tried, fixed = [], [], [], [motion, l.curved, l.gradient]
        p = self.parameters
        for i, stage in enumerate(c.stages):
            b, e = c.begin[i], c.begin[i + 1]
            rows = slice(int(c.rows[b]), int(c.rows[e]))
            each = TRIALS, e - b, stage.rows
            arrays = {"q": z.q[b:e], "v": z.v[b:e], "parameters": p[b:e], "rows": z.row[rows].reshape(each[1:])}
            several = {
                "q": t.q[b:e], "v": t.v[b:e], "parameters": spread(p[b:e]),
                "rows": t.row[rows.start * TRIALS : rows.stop * TRIALS].reshape(e - b, TRIALS, stage.rows),
            }  # fmt: skip
            if not stage.end:
                arrays |= {"u": z.u[b:e], "h": z.h[b:e], "ahead": ahead_q[b:e], "velocity": ahead_v[b:e]}
                several |= {"u": t.u[b:e], "h": spread(z.h[b:e]), "ahead": t.q[b + 1 : e + 1], "velocity": t.v[b + 1 : e + 1]}
            hessian = l.hessian[: KNOTS_AT_ONCE * len(stage.places)].reshape(KNOTS_AT_ONCE, -1)
            own = {
                **arrays, "slope": l.force[rows].reshape(each[1:]), "stiffness": l.stiffness[rows].reshape(each[1:]),
                "motion": motion, "curved": l.curved, "hessian": hessian, "gradient": l.last[None] if stage.end else l.gradient,
            }  # fmt: skip
            fixed.append(hessian)
            if stage.end and not stage.rows:
                continue
            look.append((stage.step, arrays))
            tried.append((stage.step, several))
            slopes.append((stage.slopes, own))
        difference, integrate = robot.difference, robot.step_functions.integrate
        away = [
            (difference, {"q0": spread(z.q), "q1": t.q, "velocity": t.away}),
            (difference, {"q0": z.q[1:], "q1": ahead_q, "velocity": apart}),
        ]
        closing = [(integrate, {"q": t.reached, "v": t.gap, "result": t.q})]
        made, kept = [], []
        for group in (look, slopes, tried, away, closing):
            functions = [function for function, _ in group]
            lists = [arranged(function, arrays) for function, arrays in group]
            calls, more = batch_calls(functions, lists, [*fixed, t.away, t.reached, t.gap])
            made.append(calls)
            kept += more
        return Calls(*made), kept

    def begin(self, q: Array, v: Array, parameters: Array, guess: tuple[Array, Array, Array] | None) -> None:
        """A motion to begin with."""
        z, robot = self.horizon, self.compiled.ocp.robot
        self.parameters[:] = parameters
        if guess is None:
            z.q[:], z.v[:] = q, v
            z.u[:] = robot.gravity_force(q)[list(self.compiled.ocp.driven)]
        else:
            z.q[:], z.v[:], z.u[:] = guess
            z.q[0], z.v[0] = q, v
        self.laws.multiplier[:] = 0.0

    def move_on(self, knots: int, q: Array, v: Array) -> None:
        """Begin from the motion that was found, so many knots later; what is new at the end is as the last knot."""
        z = self.horizon
        if knots > 0:
            for x in (z.q, z.v, z.u):
                x[:-knots] = x[knots:].copy()
                x[-knots:] = x[-knots - 1]
            stage = self.compiled.stages[0]
            multipliers = self.laws.multiplier[: len(z.u) * stage.rows].reshape(len(z.u), stage.rows)
            multipliers[:-knots] = multipliers[knots:].copy()
        z.q[0], z.v[0] = q, v

    def run_again(self, settings: Settings) -> int:
        """Go on with the motion, the multipliers and the penalty that are there; returns why the solver ended."""
        numbers = self.solver.numbers
        numbers[TOLERANCE], numbers[VIOLATED] = settings.tolerance, settings.constraint_tolerance
        numbers[PENALTY] = max(numbers[PENALTY], FIRST_PENALTY)
        return int(self.run(self.table.address, settings.iterations))

    def solve(self, settings: Settings, results: Results, i: int) -> None:
        """Solve the problem, and keep what is found as the i-th result."""
        numbers = self.solver.numbers
        numbers[TOLERANCE], numbers[VIOLATED] = settings.tolerance, settings.constraint_tolerance
        numbers[PENALTY] = FIRST_PENALTY
        results.status[i] = self.run(self.table.address, settings.iterations)
        z = self.horizon
        results.q[i], results.v[i], results.u[i], results.gains[i] = z.q, z.v, z.u, self.gains()
        results.cost[i], results.violation[i] = numbers[COST], numbers[VIOLATION]
        results.iterations[i] = self.solver.counts[0]


    def gains(self) -> Array:
        """K (knots, nu, 2 nv)."""
        ocp = self.compiled.ocp
        n, m = ocp.robot.nv, ocp.nu
        whole = self.solver.linear.feedback[: ocp.knots * 2 * n * padded(m)]
        return -whole.reshape(ocp.knots, 2 * n, padded(m))[:, :, :m].swapaxes(1, 2)


def spread(x: Array) -> Array:
    """The same for all trials: (k, TRIALS, ...)."""
    return np.broadcast_to(x[:, None], (len(x), TRIALS, *x.shape[1:]))


def arranged(function: Any, arrays: Mapping[str, Array]) -> list[Array]:
    """The arrays of a function's arguments and results."""
    return [arrays[x.name] for x in (*function.program.inputs, *function.program.outputs)]
