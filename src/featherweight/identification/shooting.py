"""Multiple shooting: predictions of measurements from windows with unknown starts, and their derivatives.

All windows run as one fleet, one robot for each window and each perturbed number: the 2 nv numbers of the start, and the
unknowns of the motion. Forward differences of their measurements are the columns of the Jacobian. Offsets and delays change
measurements only and need no robots. For each window w and component c, a sum over the measurements is kept,

    G[w, c] = Σ weight (J_start, J_unknowns, residual)ᵀ (J_start, J_unknowns, residual),

from which least squares with any noise of the components follow without another simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Matrix, Vector
from ..engine.threads import processors, share_out
from ..model.model import MovingJoint
from ..robot.robot import Robot
from ..simulation.simulation import Simulation
from ..simulation.step_failures import SimulationError
from .logs import POSITIONS, VELOCITIES, CheckedLog, Placed, Source, Windows, placed, window_inputs
from .motion_slopes import ONE_THREAD, MotionSlopes, StepSlopes, difference_of_joint, position_slopes, step_slopes
from .unknowns import FRICTION, INPUTS, Unknowns

DIFFERENCE = 1e-5  # step of differences, relative to the scale of an unknown; [rad, m] of positions at the start
COARSE = 0.05  # the same of `coarse` fits
OF_SPEEDS = 10.0  # of velocities at the start, relative to those of positions [1/s]
BEYOND = 0.1  # [rad, m] of joint limits, in which starts may be
MOST_SLOPES = 2_000_000  # greatest number of derivatives of steps that are kept at once
LEAST_FLEET = 32  # robots of the smallest fleet
MOST_STATES = 400_000  # greatest number of states of robots in one rollout
Weights = Callable[[str, Array], Array]  # weights of residuals (W, n, k) of a channel


class Starts(NamedTuple):
    """States at the starts of windows: q (W, nq), v (W, nv)."""

    q: Matrix
    v: Matrix

    def moved(self, robot: Robot, step: Matrix) -> Starts:
        """Return states displaced by tangent vectors (W, 2 nv), not far beyond joint limits."""
        nv = robot.nv
        q = np.asarray(robot.integrate(self.q, step[:, :nv]))
        if not robot.closed:
            margin = np.minimum(BEYOND, 0.5 * (robot.upper - robot.lower))
            q = np.clip(q, robot.lower - margin, robot.upper + margin)
        return Starts(q, self.v + step[:, nv:])


class Motion(NamedTuple):
    """Motions of `rows` robots for each of W windows: arrays (W, rows, steps + 1, ...)."""

    q: Array
    v: Array
    sensors: Array
    failed: Array  # (W, rows)


class Grams(NamedTuple):
    """Sums over measurements: `channels` by name (W, k, m, m), and their numbers (W, k); m = 2 nv + p + 1."""

    sums: dict[str, Array]
    counts: dict[str, Array]


class Shooting:
    """Predictions of the measurements in all windows.

    With `coarse`, only friction changes, and derivatives by it are large differences of whole motions. In contact, exact slopes
    of a motion hold only nearby: a box rocks, and touches with other corners.
    """

    def __init__(
        self, unknowns: Unknowns, logs: Sequence[CheckedLog], sources: Mapping[str, Source], windows: Windows,
        coarse: bool = False,
    ) -> None:  # fmt: skip
        self.coarse = coarse
        self.unknowns, self.logs, self.sources, self.windows = unknowns, logs, sources, windows
        self.robot = unknowns.simulation.robot
        self.step = unknowns.simulation.dt
        self.sensed = any(s.kind == "sensors" for s in sources.values())
        self.columns = 2 * self.robot.nv + len(unknowns)
        self._simulations: dict[int, Simulation] = {}
        self._varied: dict[int, Matrix] = {}  # unknowns (rows, p) of the robots of each simulation
        sim = unknowns.simulation
        self.by_equations = sim.has_equations and not self.sensed and not sim.forces.states and not coarse
        self._joints = {
            name: [
                (j, slice(j.q_slice.start - s.columns.start, j.q_slice.stop - s.columns.start))
                for j in self.robot.joints
                if s.columns.start <= j.q_slice.start < j.q_slice.stop <= s.columns.stop
            ]
            for name, s in sources.items()
            if s.kind == POSITIONS
        }
        self._straight = {name: self._velocities_of([j for j, _ in joints]) for name, joints in self._joints.items()}

    def _velocities_of(self, joints: Sequence[MovingJoint]) -> slice | None:
        """Return the velocities that are the rates of positions of joints; None if these are others, or not consecutive."""
        own = slice(joints[0].v_slice.start, joints[-1].v_slice.stop) if joints else slice(0)
        straight = all(j.type.nq == j.type.nv for j in joints) and not self.robot.closed
        return own if straight and sum(j.type.nv for j in joints) == own.stop - own.start else None

    # motions

    def motion(self, which: slice | Integers, X: Matrix, q: Array, v: Array) -> Motion:
        """Return the motions of robots with unknowns X (rows, p) from states (W, rows, .) of some windows."""
        windows, rows = q.shape[:2]
        sim, steps = self._fleet(windows * rows, X), self.windows.steps
        inputs: dict[str, Any] = self._inputs(which, X, rows)
        flat = q.reshape(windows * rows, -1), v.reshape(windows * rows, -1)
        if self.sensed:
            Q, V, S, failed = _sensed(sim, *flat, steps, inputs)
        else:
            rolled = sim.rollout(*flat, steps=None if inputs else steps, **inputs)
            Q, V, S, failed = *rolled, np.zeros((windows * rows, steps + 1, 0)), rolled.failed
        return Motion(*(x.reshape(windows, rows, *x.shape[1:]) for x in (Q, V, S, failed)))

    def _inputs(self, which: slice | Integers, X: Matrix, rows: int) -> dict[str, Array]:
        """Return the inputs (W * rows, steps, .) of some windows, for unknowns X (rows, p)."""
        inputs = {name: u for name in INPUTS if (u := self._late_inputs(name, which, X, rows)) is not None}
        for velocity, k in self.unknowns.drives if "tau" in inputs else ():
            inputs["tau"][..., velocity] *= X[:, k, None]
        return {name: u.reshape(-1, self.windows.steps, u.shape[-1]) for name, u in inputs.items()}

    def _late_inputs(self, name: str, which: slice | Integers, X: Matrix, rows: int) -> Array | None:
        """Return the inputs (W, rows, steps, .) of one kind with their latency; None if there are none."""
        given: list[Matrix | None] = [getattr(log, name) for log in self.logs]
        if all(x is None for x in given):
            return None
        k = self.unknowns.latencies.get(name, -1)
        late = X[:, k] / self.step if k >= 0 else np.zeros(len(X))
        values, place = np.unique(late, return_inverse=True)
        made: Any = [window_inputs(self.windows, which, given, x) for x in values.tolist()]
        made = np.stack(made, axis=1)
        return np.asarray(made[:, place] if len(values) > 1 else np.repeat(made, rows, axis=1))

    def _fleet(self, robots: int, X: Matrix) -> Simulation:
        """Return a simulation of so many robots, those with the unknowns X (rows, p) one after the other."""
        if robots not in self._simulations:
            made = self.unknowns.simulation.with_options(on_failure="stop")
            q, v = np.tile(np.atleast_2d(made.q)[:1], (robots, 1)), np.zeros((robots, self.robot.nv))
            made.reset(q, v)
            self._simulations[robots] = made
        sim, varied = self._simulations[robots], self._varied.get(robots)
        if varied is None or not np.array_equal(varied, X):
            sim.vary(**self.unknowns.arguments_of(X, robots))
            self._varied[robots] = X.copy()
        return sim

    def touch(self, x: Vector, starts: Starts) -> bool:
        """Return whether bodies touch at any start of a window."""
        sim = self._fleet(len(starts.q), x[None])
        sim.reset(*starts)
        sim.step(np.zeros(self.robot.nv))
        return bool(np.any(sim.contact_forces))

    def simulation(self, x: Vector) -> Simulation:
        """Return a simulation of one robot with unknowns x (p,), where that of the unknowns is."""
        whole = self.unknowns.simulation
        sim = whole.with_options(on_failure="stop")
        sim.reset(np.atleast_2d(whole.q)[:1], np.atleast_2d(whole.v)[:1])
        sim.vary(**self.unknowns.arguments(x[None]))
        return sim

    # measurements

    def places(self, x: Vector) -> dict[str, Placed]:
        """Return the places of all measurements in the windows, for unknowns x (p,)."""
        found = {}
        for name, source in self.sources.items():
            k = self.unknowns.delays.get(name, -1)
            samples = [log.samples.get(name) for log in self.logs]
            found[name] = placed(self.windows, samples, x[k] if k >= 0 else 0.0, self.step, source.of_step)
        return found

    def residuals(self, name: str, at: Placed, motion: Motion, X: Matrix, shift: Array) -> Array:
        """Return measurements minus predictions (W, rows, n, k) of a channel, for unknowns X (rows, p).

        `shift` (rows,) is the change of the delay [s] from that of the places. Missing measurements give zero.
        """
        source = self.sources[name]
        x = {POSITIONS: motion.q, VELOCITIES: motion.v}.get(source.kind, motion.sensors)
        x = x[..., source.columns]
        windows, rows = x.shape[:2]
        if np.any(shift):
            part = at.part[:, None] - shift[:, None] / self.step
            low = at.low[:, None] + np.floor(part + 1e-9).astype(np.int64)
            low = np.clip(low, 0, self.windows.steps - 1)
            part = at.low[:, None] + part - low
        else:
            low, part = at.low[:, None], at.part[:, None]
        i, r = np.arange(windows)[:, None, None], np.arange(rows)[:, None]
        values = x[i, r, low]
        if (part != 0.0).any():
            values = values + part[..., None] * (x[i, r, low + 1] - values)
        measured = at.values[:, None]
        if source.kind == POSITIONS:
            values = self._with_offsets(source, values, X)
            return self._difference(source, values, measured)
        if source.sensor is not None and "quat" in source.sensor.kind.value:
            sign = np.sign(np.nansum(values[:, :1] * measured, axis=-1, keepdims=True))
            values = values * np.where(sign == 0.0, 1.0, sign)
        return np.asarray(np.nan_to_num(measured - values, nan=0.0, copy=False))

    def _with_offsets(self, source: Source, values: Array, X: Matrix) -> Array:
        for column, k in self.unknowns.offsets:
            if source.columns.start <= column < source.columns.stop:
                values[..., column - source.columns.start] += X[:, k, None]
        return values

    def _difference(self, source: Source, values: Array, measured: Array) -> Array:
        """Return measured minus predicted positions, as velocities of the joints; zero where not measured."""
        joints = self._joints[source.name]
        if all(j.type.nq == 1 for j, _ in joints):
            return np.asarray(np.nan_to_num(measured - values, nan=0.0, copy=False))
        parts = [difference_of_joint(j.type, values[..., at], measured[..., at]) for j, at in joints]
        return np.asarray(np.nan_to_num(np.concatenate(parts, axis=-1), nan=0.0, copy=False))

    def measured(self, name: str, at: Placed) -> Array:
        """Return which components (W, n, k) of a channel are measured."""
        there = np.isfinite(at.values)
        if self.sources[name].kind == POSITIONS:
            there = np.concatenate([
                np.repeat(there[..., columns].all(axis=-1, keepdims=True), j.type.nv, axis=-1)
                for j, columns in self._joints[name]
            ], axis=-1)  # fmt: skip
        return np.asarray(there & at.there[..., None])

    # sums

    def chunks(self, rows: int) -> list[slice]:
        """Return slices of the windows whose motions fit into memory, of equal length except the last."""
        return self._parts(MOST_STATES // (rows * (self.windows.steps + 1)))

    def _parts(self, most: int) -> list[slice]:
        """Return slices of at most so many windows, of equal length except the last."""
        windows = len(self.windows)
        count = -(-windows // -(-windows // max(1, min(windows, most))))
        return [slice(i, min(i + count, windows)) for i in range(0, windows, count)]

    def grams(
        self, x: Vector, starts: Starts, motion: Motion, places: Mapping[str, Placed], residuals: Mapping[str, Array],
        weights: Weights | None = None,
    ) -> Grams:  # fmt: skip
        """Return the sums at unknowns x (p,) and starts, with their motion and residuals (W, n, k).

        Raises SimulationError if a window fails.
        """
        nv, moves = self.robot.nv, self.unknowns.of_kinds(FRICTION) if self.coarse else self.unknowns.moves
        steps = self._differences(x)
        if self.by_equations:
            return self._grams_by_equations(x, motion, places, residuals, weights, steps)
        small = np.repeat([DIFFERENCE, OF_SPEEDS * DIFFERENCE], 0 if self.coarse else nv)
        free = len(small)
        rows = 1 + free + len(moves)
        X = np.tile(x, (rows, 1))
        X[1 + free + np.arange(len(moves)), moves] += steps[moves]
        tangent = np.zeros((rows, 2 * nv))
        tangent[1 : 1 + free, :free] = np.diag(small)
        sums: dict[str, list[Array]] = {name: [] for name in self.sources}
        counts: dict[str, list[Array]] = {name: [] for name in self.sources}
        chunks = self.chunks(rows)
        for which in chunks:
            own = Starts(*(np.repeat(a[which], rows, axis=0) for a in starts))
            many = len(own.q) // rows
            moved = own.moved(self.robot, np.tile(tangent, (many, 1)))
            full = chunks[0].stop
            q, v = (_padded(a.reshape(many, rows, -1), full) for a in moved)
            motion = self.motion(_longer(which, full), X, q, v)
            motion = Motion(*(a[:many] for a in motion))
            if motion.failed.any():
                raise SimulationError("a window of the log failed in the simulation", 0.0)
            for name in self.sources:
                at = Placed(*(a[which] for a in places[name]))
                r = self.residuals(name, at, motion, X, np.zeros(rows))
                J = np.zeros((many, *r.shape[2:], self.columns + 1))  # (W, n, k, m)
                J[..., :free] = np.moveaxis(r[:, :1] - r[:, 1 : 1 + free], 1, -1) / small
                of_motion = np.moveaxis(r[:, :1] - r[:, 1 + free :], 1, -1) / steps[moves]
                J[..., 2 * nv + moves] = of_motion
                if not self.coarse:
                    self._measured_columns(name, at, motion, x, steps, J)
                J[..., -1] = r[:, 0]
                sums[name].append(_sums(name, J, weights))
                counts[name].append(self.measured(name, at).sum(axis=1))
        return Grams({n: np.concatenate(s) for n, s in sums.items()}, {n: np.concatenate(c) for n, c in counts.items()})

    def _grams_by_equations(
        self, x: Vector, motion: Motion, places: Mapping[str, Placed], residuals: Mapping[str, Array],
        weights: Weights | None, steps: Vector,
    ) -> Grams:  # fmt: skip
        """Return the sums of `grams`, with the derivatives of steps (`motion_slopes`)."""
        windows, m = len(self.windows), self.columns + 1
        size = {name: len(source.components) for name, source in self.sources.items()}
        sums = {name: np.zeros((windows, k, m, m)) for name, k in size.items()}
        there = {name: self.measured(name, at) for name, at in places.items()}
        memory: list[MotionSlopes] = []  # one for each thread
        for which in self._parts(MOST_SLOPES // (6 * self.robot.nv**2 * self.windows.steps)):
            slopes = self._slopes_of_steps(which, x, Motion(*(a[which, None] for a in motion)))

            def some(begin: int, end: int, slopes: StepSlopes = slopes, first: int = which.start) -> None:
                own = memory.pop() if memory else MotionSlopes(slopes, self.windows.steps, m)
                for w in range(begin, end):
                    which = slice(first + w, first + w + 1)
                    moved, S = Motion(*(a[which, None] for a in motion)), own.of(slopes, w)[None]
                    for name in self.sources:
                        part = which, slice(max(1, int(places[name].there[first + w].sum())))
                        at = Placed(*(a[part] for a in places[name]))
                        J = self._jacobian(name, at, moved, x, steps, S)
                        if not there[name][part].all():
                            J[..., :-1] *= there[name][part][..., None]
                        J[..., -1] = residuals[name][part]
                        sums[name][which] = _sums(name, J, weights)
                memory.append(own)

            share_out(some, which.stop - which.start, processors())
        return Grams(sums, {name: x.sum(axis=1) for name, x in there.items()})

    def _jacobian(self, name: str, at: Placed, motion: Motion, x: Vector, steps: Vector, S: Array) -> Array:
        """Return the rows (W, n, k, m) of a channel for the slopes S of states, without those of residuals.

        With one channel, the rows may be those of S.
        """
        source = self.sources[name]
        own = slice(self.robot.nv, None) if source.kind == VELOCITIES else self._straight[name]
        if own is not None:
            slopes = S[:, :, own]
        else:
            slopes = position_slopes(self.robot, motion.q[:, 0], S, [j for j, _ in self._joints[name]])
        J = self._placed_slopes(slopes, at, len(self.sources) > 1)
        self._measured_columns(name, at, motion, x, steps, J)
        return J

    def _placed_slopes(self, slopes: Array, at: Placed, copied: bool) -> Array:
        """Return slopes (W, n, k, m) at the places of measurements, from those (W, steps + 1, k, m) of all steps."""
        n = int(at.low[0, 0] + at.part[0, 0])
        if (at.low + at.part == np.arange(n, n + at.low.shape[1])).all():  # in each step
            found = slopes[:, n : n + at.low.shape[1]]
            return found.copy() if copied else found
        w = np.arange(len(slopes))[:, None]
        found = slopes[w, at.low]
        if (at.part != 0.0).any():
            found += at.part[..., None, None] * (slopes[w, at.low + 1] - found)
        return found

    def _slopes_of_steps(self, which: slice, x: Vector, motion: Motion) -> StepSlopes:
        """Return the derivatives of all steps of some windows."""
        many, steps = which.stop - which.start, self.windows.steps

        def inputs(x: Vector) -> dict[str, Array]:
            return {name: u.reshape(many * steps, -1) for name, u in self._inputs(which, x[None], 1).items()}

        before, after = (
            (motion.q[:, 0, part].reshape(many * steps, -1), motion.v[:, 0, part].reshape(many * steps, -1))
            for part in (slice(0, steps), slice(1, None))
        )  # fmt: skip
        found = step_slopes(self._fleet(many * steps, x[None]), self.unknowns, x, before, after, inputs)
        if len(found.others):  # whose differences change the unknowns of the simulation
            del self._varied[many * steps]
        return found

    def _differences(self, x: Vector) -> Vector:
        """Return the differences (p,) of the unknowns."""
        steps: Vector = (COARSE if self.coarse else DIFFERENCE) * np.maximum(self.unknowns.field("scale"), np.abs(x))
        return np.where(x + steps > self.unknowns.field("upper"), -steps, steps)

    def _measured_columns(self, name: str, at: Placed, motion: Motion, x: Vector, steps: Vector, J: Array) -> None:
        """Write the columns of offsets and delays."""
        first, base = 2 * self.robot.nv, Motion(*(a[:, :1] for a in motion))
        zero = np.zeros(1)
        for k in sorted({k for _, k in self.unknowns.offsets} | {self.unknowns.delays.get(name, -1)} - {-1}):
            other, shift = x[None].copy(), zero
            if k == self.unknowns.delays.get(name, -1):
                shift = np.array([0.5 * self.step])
            else:
                other[0, k] += steps[k]
            ahead = self.residuals(name, at, base, other, shift)[:, 0]
            if shift is zero:
                J[..., first + k] = (self.residuals(name, at, base, x[None], zero)[:, 0] - ahead) / steps[k]
            else:
                J[..., first + k] = (self.residuals(name, at, base, x[None], -shift)[:, 0] - ahead) / self.step

    def predicted(
        self, x: Vector, starts: Starts, places: Mapping[str, Placed], reference: Vector, some: Integers | None = None
    ) -> tuple[dict[str, Array], Motion]:
        """Return the residuals (W, n, k) of all channels, and the motions, at unknowns x and starts, of all windows or some.

        The places are those for the unknowns `reference`. `Motion.failed` marks windows that fail.
        """
        found: dict[str, list[Array]] = {name: [] for name in self.sources}
        motions, windows = [], np.arange(len(self.windows)) if some is None else some
        full = self.chunks(1)[0].stop
        if some is not None:
            full = min(full, max(LEAST_FLEET, 1 << (len(some) - 1).bit_length()))  # few sizes of fleets
        for begin in range(0, len(windows), full):
            which = windows[begin : begin + full]
            longer = _padded(which, full)
            motion = self.motion(longer, x[None], *(a[longer][:, None] for a in starts))
            motion = Motion(*(a[: len(which)] for a in motion))
            motions.append(motion)
            for name in self.sources:
                k = self.unknowns.delays.get(name, -1)
                shift = np.array([x[k] - reference[k] if k >= 0 else 0.0])
                at = Placed(*(a[which] for a in places[name]))
                found[name].append(self.residuals(name, at, motion, x[None], shift)[:, 0])
        whole = Motion(*(np.concatenate(parts)[:, 0] for parts in zip(*motions, strict=True)))
        return {name: np.concatenate(parts) for name, parts in found.items()}, whole


def _sums(name: str, J: Array, weights: Weights | None) -> Array:
    """Return the sums (W, k, m, m) over n of the products of rows J (W, n, k, m), the last of which is the residual."""
    if weights is not None:
        J *= np.sqrt(weights(name, J[..., -1]))[..., None]
    K = np.swapaxes(J, 1, 2)
    windows, k, n, m = K.shape
    found, most = np.zeros((windows, k, m, m)), max(1, ONE_THREAD // (m * m))
    for i in range(0, n, most):
        part = K[:, :, i : i + most]
        found += np.swapaxes(part, 2, 3) @ part
    return found


def _padded(x: Array, windows: int) -> Array:
    """Return an array with the last row repeated, for so many windows."""
    return np.concatenate([x, np.repeat(x[-1:], windows - len(x), axis=0)]) if len(x) < windows else x


def _longer(which: slice, windows: int) -> Any:
    """Return the numbers of the windows of a slice, with the last one repeated."""
    return np.minimum(np.arange(which.start, which.start + windows), which.stop - 1)


def _sensed(
    sim: Simulation, q: Matrix, v: Matrix, steps: int, inputs: Mapping[str, Array]
) -> tuple[Array, Array, Array, Array]:
    """Return states and readings of sensors (robots, steps + 1, .), and which robots failed."""
    sim.reset(q, v)
    readings = np.asarray(sim.sensors())
    Q, V, S = (np.empty((len(q), steps + 1, x.shape[1])) for x in (q, v, readings))
    Q[:, 0], V[:, 0], S[:, 0] = q, v, readings
    failed = np.zeros(len(q), bool)
    for k in range(steps):
        now: dict[str, Any] = {name: x[:, k] for name, x in inputs.items()}
        sim.step(**now)
        failed |= sim.failed
        Q[:, k + 1], V[:, k + 1], S[:, k + 1] = sim.q, sim.v, sim.sensors()
    return Q, V, S, failed
