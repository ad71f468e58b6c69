"""Memory for one problem at a time, and the compiled solver that works on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ..algorithms.knots import Drive
from ..array_types import Array
from ..contact.factors.branches import padded
from ..engine.function import traced
from ..engine.loops.kernels import CompiledLoop, Table, aligned_numbers, machine_call
from ..engine.loops.prepared_calls import batch_calls, prepared_call
from ..engine.threads import fitting
from .control import (
    BEGIN,
    FIRST_PENALTY,
    FOLLOW,
    MOVE_IN_TIME,
    MOVE_ON,
    NOW,
    STAND_STILL,
    STEP,
    Following,
    Interpolation,
    Rest,
    Shifted,
)
from .layout import Layout, Motion, Results
from .riccati import KNOTS_AT_ONCE, riccati
from .runge_kutta import StepMemory
from .sampled_motions import Motions, arrays_of_stage, in_order, side_by_side
from .simulated_horizon import simulated_horizon
from .simulated_steps import SimulatedKnots, SimulatedSteps
from .solver import (
    CONVERGED,
    COST,
    DAMPING,
    DEPARTED,
    NUMBERS,
    PAUSED,
    PENALTY,
    TICK,
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
)  # fmt: skip
from .spans import LONGEST, ROOT
from .step_curvature import AHEAD, VELOCITY
from .terms import PARAMETERS

Kind = TypeVar("Kind")

SOLVE = CompiledLoop(solve, 3, what="the solver of optimal control")
GROWTH = 8  # most factor by which a slice is longer than the one before


def run_on_tables(loop: CompiledLoop, *contents: Any) -> None:
    """Run a kernel on records."""
    tables = [*map(Table, contents)]
    loop.for_tables(*tables)(*(t.address for t in tables))


class Settings(NamedTuple):
    """Stopping criteria of the solver."""

    iterations: int
    tolerance: float
    constraint_tolerance: float
    is_tick: bool = False  # whether the last iteration updates multipliers, even if the cost may still decrease


class Pool(Generic[Kind]):
    """Workspaces that threads borrow; `make` creates one."""

    def __init__(self, make: Callable[[], Kind]) -> None:
        self.make = make
        self.spare: deque[Kind] = deque()

    @contextmanager
    def borrowed(self) -> Iterator[Kind]:
        """A workspace that no other thread uses in the meantime."""
        try:
            one = self.spare.pop()
        except IndexError:
            one = self.make()
        try:
            yield one
        finally:
            self.spare.append(one)


class Workspace:
    """Arrays of one problem, and the solver's calls on them. `steps` are those of a simulation, if knots are such steps.

    The kernel takes these steps if it runs without Python.
    """

    def __init__(self, layout: Layout, steps: SimulatedSteps | None = None, without_python: bool = False) -> None:
        self.layout, self.simulated = layout, None if steps is None else SimulatedKnots(steps)
        self.difference, self.integrate = traced(layout.robot.difference), traced(layout.robot.step_functions.integrate)
        knots, m, nq, n = layout.knots, layout.system.controls, layout.robot.nq, layout.robot.nv
        total, width, blocks, free = int(layout.rows[-1]), 2 * n + m, layout.system.apart, int(layout.system.free)
        exact_steps = int(layout.system.exact)
        places = [np.array(stage.places, np.int64).reshape(-1, 2) for stage in layout.stages]
        sizes = 2 * sum(size * size for _, size in blocks), KNOTS_AT_ONCE * max(map(len, places))
        self.horizon = Horizon(
            np.zeros((knots + 1, nq)), np.zeros((knots + 1, n)), np.zeros((knots, m)), layout.h,
            layout.least, layout.tied, layout.stage_of_knot, np.array(layout.begin, np.int64), layout.rows.astype(np.int64),
            np.zeros(total),
        )  # fmt: skip
        states = 2 * n + free
        feedback = aligned_numbers((knots * states + TRIALS) * padded(m) + TRIALS * states)
        whole = feedback[: knots * states * padded(m)].reshape(knots, states, padded(m))
        self.feedback = whole[:, : 2 * n, free:m]  # -gains, transposed
        linear = Linear(
            feedback, np.zeros((knots, m)), np.zeros((knots + 1, states)), np.zeros(total), np.zeros(total), np.zeros(total),
            np.zeros((KNOTS_AT_ONCE, sizes[0])), np.zeros((KNOTS_AT_ONCE, width)), np.zeros(sizes[1]),
            np.zeros(sizes[1] * exact_steps), np.zeros(states),
            np.zeros((KNOTS_AT_ONCE * exact_steps, n)), np.zeros((KNOTS_AT_ONCE * exact_steps, n)), np.zeros(width),
            np.concatenate(places), np.cumsum([0, *map(len, places)]).astype(np.int64),
        )  # fmt: skip
        trials = Trials(
            np.zeros((knots + 1, TRIALS, nq)), np.zeros((knots + 1, TRIALS, n)), np.zeros((knots, TRIALS, m)),
            np.zeros(TRIALS * total), np.zeros((TRIALS, n)), np.zeros((TRIALS, n)), np.zeros((TRIALS, nq)), np.zeros(TRIALS),
        )  # fmt: skip
        self.parameters = np.zeros((knots + 1, layout.size))
        self.laws = layout.laws._replace(multiplier=np.zeros(total))
        ahead = np.zeros((knots, nq)), np.zeros((knots, n)), np.zeros((knots, n))
        recursion = riccati(n, m, layout.system.rows, list(blocks), free)
        motion = recursion.numbers[: KNOTS_AT_ONCE * recursion.rows * recursion.long].reshape(
            KNOTS_AT_ONCE, recursion.rows, recursion.long
        )
        self.memory = StepMemory(layout.system, layout.stages)
        self._steps, in_kernel = steps, None
        if steps and without_python:
            simulation, self.simulated = steps.copied("stop"), None
            driven = None if steps.driven is None else [*steps.driven]
            in_kernel, more = simulated_horizon(simulation, steps.every, driven, TRIALS)
        calls, self._kept = self._calls(linear, trials, ahead, motion)
        self._kept += more if in_kernel else []
        flat, exact = not layout.system.curved, layout.system.exact or bool(self.laws.exact.any())
        self.solver = Solver(
            flat, exact, self.horizon, *ahead, linear, trials, self.laws, recursion, self.memory.slopes, calls,
            np.zeros(NUMBERS), np.zeros(2, np.int64), in_kernel,
        )  # fmt: skip
        self.table = Table(self.solver)
        self.run = SOLVE.for_tables(self.table)
        self.shifted = Shifted(
            self.horizon.q, self.horizon.v, self.horizon.u, self.horizon.rows, layout.widths.astype(np.int64),
            np.array(layout.first_knots, np.int64), self.laws.multiplier, self.solver.numbers,
        )  # fmt: skip
        self.slice = 1  # iterations in one call of the solver; adapted to the time that they take

    def _calls(self, l: Linear, t: Trials, ahead: tuple[Array, ...], motion: Array) -> tuple[Calls, list[Any]]:
        """Return the calls of compiled functions, and the objects that must live as long."""
        layout, z = self.layout, self.horizon
        ahead_q, _, apart = ahead
        free, by_step = int(layout.system.free), self.memory.slopes.by_step
        side = Motions(t.q, t.v, t.u[..., free:], t.row)
        costate = {AHEAD: l.by_ahead, VELOCITY: l.by_velocity}
        fixed = [motion, l.curved, l.gradient, t.away, t.reached, t.gap, by_step, *costate.values()]
        look, slopes, curvature, tried, steps = (list[tuple[Any, dict[str, Array]]]() for _ in range(5))
        for i, stage in enumerate(layout.stages):
            if not stage.rows:
                continue  # the end
            arrays, several = self._arrays_of_stage(i, ahead), arrays_of_stage(layout, i, side, self.parameters)
            several |= {LONGEST: several.get("h", z.h), ROOT: t.u[layout.knots_of_stage(i), :, 0]}
            hessian = l.hessian[: KNOTS_AT_ONCE * len(stage.places)].reshape(KNOTS_AT_ONCE, -1)
            laws = (x[self.layout.rows_of_stage(i)].reshape(-1, stage.rows) for x in (l.force, l.stiffness, l.bend))
            gradient = l.last[None] if stage.end else l.gradient
            own = {"motion": motion, "curved": l.curved, "hessian": hessian, "gradient": gradient, "by_step": by_step}
            fixed.append(hessian)
            given = arrays | dict(zip(("slope", "stiffness", "bend"), laws, strict=True))
            if self.simulated and not stage.end:
                look.append((self.simulated.look(stage, arrays), {}))
                tried.append((self.simulated.tried(stage, several), {}))
                slopes.append((self.simulated.derivatives(stage, given, own), {}))
                continue
            look.append((stage.step, arrays))
            tried.append((stage.step, several))
            slopes.append((stage.slopes, given | own))
            if layout.system.exact and not stage.end:
                of_steps = l.curvature[: KNOTS_AT_ONCE * len(stage.places)].reshape(KNOTS_AT_ONCE, -1)
                fixed.append(of_steps)
                curvature.append((stage.curvature, arrays | costate | {"curvature": of_steps}))
            if stage.steps:
                found, each = self.memory.arrays(i)
                fixed += [*found.values(), *each.values()]
                steps += [(stage.stages, arrays | found), (stage.accelerations, each)]
        away = [
            (self.difference, {"q0": side_by_side(z.q, TRIALS), "q1": t.q, "velocity": t.away}),
            (self.difference, {"q0": z.q[1:], "q1": ahead_q, "velocity": apart}),
        ]
        closing = [(self.integrate, {"q": t.reached, "v": t.gap, "result": t.q})]
        made, kept = [], []
        for group in (look, slopes, curvature, steps, tried, away, closing):
            lists = [in_order(function, arrays) if arrays else [] for function, arrays in group]
            calls, more = batch_calls([function for function, _ in group], lists, fixed)
            made.append(calls)
            kept += more
        return Calls(*made), kept

    def _arrays_of_stage(self, i: int, ahead: tuple[Array, ...]) -> dict[str, Array]:
        """Return arguments and results of a stage's functions along the motion."""
        z, stage = self.horizon, self.layout.stages[i]
        knots, rows = self.layout.knots_of_stage(i), self.layout.rows_of_stage(i)
        own: dict[str, Array] = {"q": z.q, "v": z.v, PARAMETERS: self.parameters}
        if not stage.end:
            own |= {"u": z.u[:, int(self.layout.system.free) :], ROOT: z.u[:, 0], "h": z.h, LONGEST: z.h}
            own |= {"ahead": ahead[0], "velocity": ahead[1]}
        found = {name: x[knots] for name, x in own.items()}
        found["rows"] = z.row[rows].reshape(-1, stage.rows)
        return found

    # solutions

    def begin(self, q: Array, v: Array, parameters: Array, guess: Motion | Array | None) -> None:
        """Start from a motion, from the simulated motion under controls, or from standing still."""
        z, layout = self.horizon, self.layout
        self.parameters[:] = parameters
        u = z.u[:, int(layout.system.free) :]
        if isinstance(guess, Motion):
            z.q[:], z.v[:], u[:] = guess[:3]
            z.q[0], z.v[0] = q, v
        elif self.simulated:
            u[:] = self.simulated.steps.first_controls(q) if guess is None else guess
            z.q[:], z.v[:] = self.simulated.motion(q, v, u)
        else:
            self.rest.q[:], self.rest.v[:] = q, v
            run_on_tables(STAND_STILL, self.shifted, self.rest)
        if layout.system.free and isinstance(guess, Motion):
            z.u[:, 0] = layout.first_roots(layout.steps if guess.steps is None else guess.steps)
        self.laws.multiplier[:] = 0.0
        self.solver.numbers[PENALTY], self.solver.numbers[DAMPING] = FIRST_PENALTY, 0.0

    def move_on(self, before: Workspace, number: int, q: Array, v: Array) -> None:
        """Start from another solution, from its knot of a number on; new knots at the end are copies of the last one."""
        own, other = self._shift_table, before._shift_table
        MOVE_ON.for_tables(own, other)(own.address, other.address, number, before is self)
        self.horizon.q[0], self.horizon.v[0] = q, v

    @property
    def written(self) -> list[Array]:
        """All arrays that a solution writes before it reads them, or that are parts of the solution."""
        s, memory = self.solver, self.memory
        linear: list[Array] = [x for x in s.linear if x.dtype == float]
        records = *s.horizon[:3], s.horizon.row, s.ahead_q, s.ahead_v, s.apart, *linear, *s.trials, s.laws.multiplier
        of_steps = memory.slopes.links, memory.slopes.by_step, memory.slopes.numbers, memory.target, *memory.states.values()
        recursion = s.riccati.numbers, s.riccati.ahead, s.riccati.promised
        return [*records, *of_steps, *recursion, s.numbers, s.counts, self.parameters]

    @property
    def kept(self) -> list[Any]:
        """Objects that the solver needs in addition to its table."""
        return self._kept

    @cached_property
    def _shift_table(self) -> Table:
        return Table(self.shifted)

    def follow(self, times: tuple[float, float, float], q: Array, v: Array, limits: tuple[Array, Array]) -> Array:
        """Return the controls of the plan for a state, with its feedback, within limits.

        `times` are those of the state and of the plan's begin, and the length of steps [s].
        """
        f, run = self._follow
        f.times[[NOW, BEGIN, STEP]] = times
        f.q[:], f.v[:] = q, v
        f.lower[:], f.upper[:] = limits
        run()
        return f.u.copy()

    @cached_property
    def _follow(self) -> tuple[Following, Callable[[], int]]:
        f = self.following([])
        table = Table(f)
        return f, prepared_call(FOLLOW.for_tables(table), table.address, 0, kept=(table, self.difference))

    @cached_property
    def rest(self) -> Rest:
        """A robot at rest, from which plans start."""
        robot, layout, passive = self.layout.robot, self.layout, self.layout.system.passive
        drives: Sequence[Drive] = layout.system.drives
        none = np.full(len(drives), np.inf)
        bounds = -none, none
        if self._steps:
            passive, (drives, bounds) = self._steps.passive, self._steps.drives_at_rest
        velocity, position = (np.array([getattr(d, x) for d in drives], np.int64) for x in ("velocity", "position"))
        shares = np.bincount(velocity, minlength=robot.nv)[velocity].astype(float)
        force, stiffness, gain = (np.array([getattr(d, x) for d in drives], float) for x in ("force", "stiffness", "gain"))
        lower, upper = map(np.array, bounds)
        q, v, tau = np.zeros(robot.nq), np.zeros(robot.nv), np.zeros(robot.nv)
        roots = layout.first_roots(layout.steps) if layout.system.free else np.zeros(0)
        call = machine_call(traced(passive.holding_force), q, tau)
        return Rest(call, q, v, tau, velocity, position, shares, force, stiffness, gain, lower, upper, roots)

    @cached_property
    def between(self) -> Interpolation | None:
        """Memory for plans that move along in time, if steps are free."""
        if not self.layout.system.free:
            return None
        robot, z = self.layout.robot, self.horizon
        start, goal, opened = np.zeros((3, robot.nq))
        apart = np.zeros(robot.nv)
        difference = machine_call(self.difference, start, goal, apart)
        integrate = machine_call(self.integrate, start, apart, opened)
        close = machine_call(robot.step_functions.closing_step, opened, goal)
        memory = z.q.copy(), z.v.copy(), z.u.copy()
        return Interpolation(z, *memory, difference, start, goal, apart, integrate, opened, close, np.zeros(1))

    def following(self, driven: Sequence[int]) -> Following:
        """Return the plan with memory for a state and its controls, which are forces of `driven` joints."""
        robot, m = self.layout.robot, self.layout.system.controls - int(self.layout.system.free)
        start, goal, q = np.zeros((3, robot.nq))
        apart, v, tau = np.zeros((3, robot.nv))
        lower, upper, u = np.zeros((3, m))
        difference = machine_call(self.difference, start, goal, apart)
        return Following(
            self.horizon, self.solver.linear.feedback, self.shifted.first_knots, int(self.layout.system.free), difference,
            start, goal, apart, np.zeros(2 * robot.nv), q, v, np.zeros(5), lower, upper, np.array(driven, np.int64), u, tau,
        )  # fmt: skip

    def move_in_time(self, passed: float, q: Array, v: Array) -> None:
        """Start from the part of the solution that is left after a time [s], if the problem has one phase with a free step."""
        assert self.between
        self.between.passed[0] = passed
        run_on_tables(MOVE_IN_TIME, self.shifted, self.rest, self.between)
        self.horizon.q[0], self.horizon.v[0] = q, v

    def run_on(self, settings: Settings, stopped: Callable[[], bool] = lambda: False) -> int:
        """Improve the motion with the present multipliers and penalty; return why the solver stopped.

        Python handles signals, such as Ctrl-C, between slices of the iterations; there, the solver returns if it is `stopped`.
        """
        numbers, done, status = self.solver.numbers, 0, PAUSED
        numbers[TOLERANCE], numbers[VIOLATED] = settings.tolerance, settings.constraint_tolerance
        numbers[TICK] = settings.is_tick
        while status == PAUSED and not stopped():
            pause, begun = min(done + self.slice, settings.iterations), perf_counter()
            status = int(self.run(self.table.address, done, pause, settings.iterations))
            if self.simulated:
                self.simulated.raise_errors()
            if any(calls.failed[0] for calls in self.solver.calls):
                raise MemoryError("no memory for the workspace of optimal control")
            if status == PAUSED:
                self.slice, done = fitting(pause - done, perf_counter() - begun, GROWTH * self.slice), pause
        return status

    def solve(self, settings: Settings, results: Results, i: int, stopped: Callable[[], bool]) -> None:
        """Solve the problem, and write the solution as number i."""
        results.status[i], results.iterations[i] = self.run_on(settings, stopped), self.solver.counts[0]
        z, numbers = self.horizon, self.solver.numbers
        if self.simulated and not stopped() and not self._follow_simulation(settings) and results.status[i] == CONVERGED:
            results.status[i] = DEPARTED
        free = int(self.layout.system.free)
        results.q[i], results.v[i], results.u[i], results.gains[i] = z.q, z.v, z.u[:, free:], self.gains()
        results.steps[i] = z.h[:-1] * z.u[:, 0] ** 2 if free else z.h[:-1]
        results.multipliers[i] = self.solver.linear.force
        results.cost[i], results.violation[i] = numbers[COST], numbers[VIOLATION]

    def _follow_simulation(self, settings: Settings) -> bool:
        """Replace the motion by that of the simulation under its controls; return whether they agree to the tolerance.

        They differ by gaps that the solver left.
        """
        z = self.horizon
        assert self.simulated
        q, v = self.simulated.motion(z.q[0], z.v[0], z.u)
        away = max(np.abs(q - z.q).max(), np.abs(v - z.v).max())
        z.q[:], z.v[:] = q, v
        self.run_on(settings._replace(iterations=0))
        return bool(away <= settings.constraint_tolerance)

    @property
    def solution(self) -> tuple[Array, ...]:
        """The arrays with which a controller goes on: the motion, its feedback, multipliers and numbers of the solver."""
        z, solver = self.horizon, self.solver
        return z.q, z.v, z.u, solver.linear.feedback, self.laws.multiplier, solver.numbers

    @property
    def free_step(self) -> float:
        """The step of the first phase [s], if it is free."""
        return float(self.horizon.h[0] * self.horizon.u[0, 0] ** 2)

    def gains(self) -> Array:
        """Return the feedback gains (knots, nu, 2 nv)."""
        return -self.feedback.swapaxes(1, 2)
