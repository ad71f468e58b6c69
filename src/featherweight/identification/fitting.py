"""Fit of a simulation to logs: multiple shooting with Gauss-Newton steps, and the errors of the result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..array_types import Array, Matrix, Vector
from ..checks import CHECKED_LATER, Positive, PositiveCount, checked, one_of
from ..names import SuggestsNames
from ..robot.robot import Robot
from ..simulation.simulation import Simulation
from ..simulation.step_failures import SimulationError
from .first_states import first_states
from .gauss_newton import (
    Normal,
    Prior,
    Step,
    covariance_of,
    normal_equations,
    reduced,
    solved,
    starts_for,
    used_freedoms,
    weighted,
)
from .logs import POSITIONS, CheckedLog, Log, Placed, Source, Windows, checked_log, some_windows, source_of, windows_of
from .shooting import Grams, Motion, Shooting, Starts
from .unknowns import FRICTION, SOLIMP, SOLREF, WEAK, Parameter, Unknowns

LAWS = SQUARES, HUBER, STUDENT = "squares", "huber", "student"
ERRORS = ROBUST, NOISE = "robust", "noise"
FEW_WINDOWS = 10  # from which on their variation tells errors
CORNER = 1.345  # residuals beyond so many deviations count linearly in Huber's law (95 % efficient for normal noise)
FREEDOM = 4.0  # of Student's distribution
MEDIAN = 1.4826  # deviation of normal noise relative to its median absolute value
SMALL_STEP = 5e-2  # square of the last step of each unknown, in its deviations: a fifth of a deviation
NEARLY = 1e-3  # decrease relative to the objective at the last step
RISE = 1.1  # factor of the loss of a window above which its start moves less
SHORTER_STEPS = 1e-1, 1e1, 1e3  # damping of such starts
POOR = 1.3  # loss of a window for each measurement, relative to the median of all windows
ROUGH, ROUGH_IN_CONTACT = 0.1, 3e-3  # decrease relative to the objective, at which a first fit has converged
FEW, FOR_EACH = 60, 100  # least number of such windows, and of measurements for each unknown
MANY = 3  # times as many windows have a fit of some of them first
MULTIPLES = 1.0, 0.25, 0.5, 0.7, 1.4, 2.0, 4.0  # of friction, of which the best is the first guess
SHORTER = 5  # windows of the first fit are shorter by this factor
SMALL_CHANGE = 1e-2  # of the noise, relative
LEAST_NOISE = 1e-9  # relative to the range of a component
FIRST_DAMPING, MOST_DAMPING = 1e-4, 1e8


@dataclass(frozen=True, eq=False)
class FittedMotion:
    """The fitted motion of one log: `time` (n,) [s] of the log, q (n, nq) and v (n, nv), and the residuals by channel.

    Residuals (samples, k) are measurements minus predictions, NaN where nothing was measured. The motion jumps where windows
    meet.
    """

    time: Vector
    q: Matrix
    v: Matrix
    residuals: dict[str, Array]


@dataclass(frozen=True, eq=False)
class LogFit(SuggestsNames):
    """The result of `fit`.

    `names`, `units`, `values` (p,) and `deviations` (p,) describe the parameters; `covariance` (p, p) is that of the values.
    `noise` has the standard deviation of the measurements of each channel (k,). `undetermined` names parameters, and
    combinations of parameters, that the logs do not determine. `correlation` is the greatest correlation of consecutive
    residuals of a component: near zero for a model that is right, near one for residuals that are errors of the model.
    `motions` has the fitted motion of each log.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Vector
    deviations: Vector
    covariance: Matrix
    noise: dict[str, Vector]
    undetermined: tuple[str, ...]
    correlation: float
    motions: tuple[FittedMotion, ...]
    converged: bool
    iterations: int
    _simulation: Simulation
    _unknowns: Unknowns
    _x: Vector

    @property
    def parameters(self) -> dict[str, float]:
        """The values by name."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    @cached_property
    def robot(self) -> Robot:
        """The robot with the fitted inertias and joints. Parameters of contacts, gaps and gains are those of `simulation`."""
        return self._unknowns.robot(self._x)

    @cached_property
    def simulation(self) -> Simulation:
        """A simulation of the fitted robot, with the options of the one that was fitted."""
        made = self._simulation.with_robot(self.robot)
        if more := self._unknowns.of_simulation(self._x):
            made.vary(**more)
        return made

    def __str__(self) -> str:
        """Return a table of the parameters, the noise, and what the logs do not determine."""
        width = max(map(len, self.names))
        lines = [
            f"{name:{width}}  {value: .6g} ± {deviation:.2g} {unit}".rstrip()
            for name, value, deviation, unit in zip(self.names, self.values, self.deviations, self.units, strict=True)
        ]
        for name, noise in self.noise.items():
            lines.append(f"noise of {name}: {', '.join(f'{x:.3g}' for x in noise)}")
        if self.undetermined:
            lines.append(f"not determined by these logs: {'; '.join(self.undetermined)}")
        if self.correlation > 0.5:
            lines.append(
                f"consecutive residuals correlate by {self.correlation:.2f}: the model is not exact, and its errors may exceed "
                "the deviations"
            )
        if not self.converged:
            lines.append(f"not converged after {self.iterations} iterations")
        return "\n".join(lines)

    def __repr__(self) -> str:
        state = "" if self.converged else ", not converged"
        return f"<LogFit: {len(self.names)} parameters, {len(self.undetermined)} not determined{state}>"


@dataclass
class _Point:
    """The fit at some values of the unknowns."""

    x: Vector
    starts: Starts
    residuals: dict[str, Array]
    motion: Motion
    places: dict[str, Placed]


class _Found(NamedTuple):
    """The best point, the sums of the last step and the noise, whether the steps converged, and their number."""

    point: _Point
    grams: Grams
    noise: dict[str, Vector]
    converged: bool
    iterations: int


class _Terms(NamedTuple):
    """Parts of the objective and its steps besides residuals."""

    prior: Prior
    bounds: tuple[Vector, Vector]
    law: str
    given: dict[str, Vector | None]  # noise
    least: dict[str, Vector]  # noise that is not zero


class _Stage(NamedTuple):
    """A fit with some windows. Rough ones end early; coarse ones find friction only (see `Shooting`)."""

    windows: Windows
    rough: bool
    coarse: bool = False


class _Problem(NamedTuple):
    shooting: Shooting
    terms: _Terms


@checked
def fit(
    sim: Annotated[Simulation, CHECKED_LATER],
    logs: Annotated[Log | Sequence[Log], CHECKED_LATER],
    parameters: Annotated[Iterable[Parameter | str], CHECKED_LATER],
    *,
    window: Positive = 0.5,
    law: Annotated[str, one_of(LAWS)] = SQUARES,
    errors: Annotated[str, one_of(ERRORS)] = ROBUST,
    iterations: PositiveCount = 50,
) -> LogFit:
    """Find parameters with which a simulation reproduces logs, and their standard deviations.

    `sim` simulates one robot, with the time step, contacts and actuators of the fit, and the initial values of the
    parameters; it does not change. `logs` is a `Log` or a list of logs. `parameters` are `Parameter` objects, or their kinds.

    The logs are divided into windows of `window` seconds. Each window is simulated from a state of its own, which is fitted
    too (multiple shooting; Bock 1983), so that errors do not grow over the whole log. Long windows determine parameters
    better; short ones suit unstable motions and inexact models. The fit minimizes

        Σ (measured - predicted)² / noise² + Σ (parameter - prior)² / deviation²

    by Gauss-Newton steps with Levenberg-Marquardt damping, within the bounds of the parameters. All windows are simulated
    together, in lanes and on threads. The noise of each component of each channel is estimated from the residuals, unless a
    `Channel` gives it. `law` "huber" or "student" gives less weight to outliers.

    The deviations of the result come from the variation between windows (a jackknife), or with less than ten windows from
    the autocorrelation of the residuals (`errors="robust"`). They hold for noise that is correlated within windows, as errors
    of the model are, and are never below those of independent noise, which `errors="noise"` gives.

    Raises ValueError for invalid arguments, and SimulationError if a window fails at the initial values.
    """
    if not isinstance(sim, Simulation):
        raise TypeError(f"fit: sim must be a featherweight.Simulation; got {type(sim).__name__}")
    given = [logs] if isinstance(logs, Log) else list(logs)
    if not given or not all(isinstance(x, Log) for x in given):
        raise TypeError("fit: logs must be a featherweight.identification.Log, or a list of them")
    names = list(dict.fromkeys(name for log in given for name in log.measured))
    sources = {name: source_of(sim, name) for name in names}
    read = [checked_log(sim, log, sources) for log in given]
    unknowns = Unknowns(sim, parameters, names)
    prior = Prior(
        unknowns.field("deviation") ** -2.0, unknowns.field("prior"), (WEAK * unknowns.field("scale")) ** -2.0
    )  # fmt: skip
    terms = _Terms(
        prior, (unknowns.field("lower"), unknowns.field("upper")), law, {name: _given_noise(name, read) for name in names},
        {name: _least_noise(source, read) for name, source in sources.items()},
    )  # fmt: skip
    x, total = unknowns.field("initial"), 0
    stages = _stages(read, round(window / sim.dt), 2 * sim.robot.nv, len(unknowns))
    for stage in _with_friction(stages, Shooting(unknowns, read, sources, stages[-1])):
        shooting = Shooting(unknowns, read, sources, stage.windows, stage.coarse)
        problem = _Problem(shooting, terms._replace(law=HUBER) if stage.coarse and law == SQUARES else terms)
        begun = _begun(shooting, x)
        x = _scanned(problem, x, begun) if stage.coarse else x
        found = _minimized(problem, x, begun, iterations, stage.rough)
        x, total = found.point.x, total + found.iterations
    return _result(sim, problem, found._replace(iterations=total), errors)


def _stages(logs: Sequence[CheckedLog], steps: int, states: int, unknowns: int) -> list[Windows]:
    """Return the windows of consecutive fits.

    The first are short, because their motions are nearly linear in the unknowns, and converge from far, and only as many as
    that needs. They are left out if they have less than three measurements for each number of their start.
    """
    whole = windows_of(logs, max(2, steps))
    short = windows_of(logs, max(2, whole.steps // SHORTER))
    measured = sum(int(np.isfinite(x.values).sum()) for log in logs for x in log.samples.values())
    stages = [whole]
    for windows in (whole, short):
        free = measured - states * len(windows)
        few = max(FEW, FOR_EACH * unknowns * len(windows) // max(1, free))
        if free >= 2 * states * len(windows) and (windows is short or len(windows) >= MANY * few):
            stages.insert(0, some_windows(windows, max(1, len(windows) // few)))
    return stages


def _with_friction(stages: Sequence[Windows], shooting: Shooting) -> list[_Stage]:
    """Return the stages with the given windows; friction is fitted first, if poses are measured in contact.

    Without the softness of contacts, short windows are left out then: they tell more of rocking than of friction.
    """
    whole, unknowns, x = stages[-1], shooting.unknowns, shooting.unknowns.field("initial")
    measured = sum(s.columns.stop - s.columns.start for s in shooting.sources.values() if s.kind == POSITIONS)
    found = [_Stage(windows, rough=windows is not whole) for windows in stages]
    if not len(unknowns.of_kinds(FRICTION)) or measured < shooting.robot.nq or not shooting.touch(x, _begun(shooting, x)):
        return found
    few = some_windows(whole, max(1, len(whole) // FEW))
    soft = len(unknowns.of_kinds(*SOLREF, *SOLIMP))
    return [_Stage(few, rough=True, coarse=True), *(s for s in found if soft or s.windows.steps == whole.steps)]


def _begun(shooting: Shooting, x: Vector) -> Starts:
    """Return the first guess of starts, for unknowns x (p,)."""
    unknowns = shooting.unknowns
    offsets = {column: float(x[k]) for column, k in unknowns.offsets}
    delays = {name: float(x[k]) for name, k in unknowns.delays.items()}
    return first_states(shooting.simulation(x), shooting.logs, shooting.sources, shooting.windows, offsets, delays)


def _scanned(problem: _Problem, x: Vector, starts: Starts) -> Vector:
    """Return the unknowns with friction replaced by the best of its multiples.

    Slopes do not tell of another state: the motion of a body that sticks does not depend on friction.
    """
    shooting, (lower, upper) = problem.shooting, problem.terms.bounds
    places, best, least = shooting.places(x), x, np.inf
    for k in shooting.unknowns.of_kinds(FRICTION).tolist():
        for multiple in MULTIPLES:
            trial = x.copy()
            trial[k] = min(max(multiple * x[k], lower[k]), upper[k])
            point = _Point(trial, starts, *shooting.predicted(trial, starts, places, x), places)
            if not point.motion.failed.any() and (misfit := _misfit(problem, point)) < least:
                best, least = trial, misfit
        x = best
    return x


def _misfit(problem: _Problem, point: _Point) -> float:
    """Return the negative logarithm of the likelihood of residuals for the noise that they show, without a constant."""
    noise, total = _noise(problem, point, None), 0.0
    for name, r in point.residuals.items():
        if problem.terms.given[name] is None:
            total += float(problem.shooting.measured(name, point.places[name]).sum(axis=(0, 1)) @ np.log(noise[name]))
        else:
            total += 0.5 * float(_loss(problem.terms.law, r / noise[name]).sum())
    return total


def _minimized(problem: _Problem, x: Vector, starts: Starts, iterations: int, rough: bool) -> _Found:
    """Return the best point; a `rough` fit ends early."""
    shooting = problem.shooting
    places = shooting.places(x)
    point = _Point(x, starts, *shooting.predicted(x, starts, places, x), places)
    if point.motion.failed.any():
        w = int(np.flatnonzero(point.motion.failed)[0])
        at = shooting.logs[shooting.windows.log[w]].start + shooting.windows.first[w] * shooting.step
        raise SimulationError(
            f"the window of the log from {at:g} s fails at the initial values; give others, or shorter windows", at
        )
    noise = _noise(problem, point, None)
    damping, converged, taken, was_near = FIRST_DAMPING, False, 0, False
    while taken < iterations:
        taken += 1
        point = _continued(problem, point, noise)
        grams = _grams(problem, point, noise)
        noise, before = _noise(problem, point, (grams, noise)), noise
        N = normal_equations(grams, noise, problem.terms.prior, point.x)
        objective = _objective(problem, point, noise)
        found = None
        while damping < MOST_DAMPING:
            step = solved(N, point.x, problem.terms.bounds, damping)
            trial = _trial(problem, point, N, step, noise)
            if not trial.motion.failed.any() and _objective(problem, trial, noise) <= objective + 1e-9 * abs(objective):
                found = trial
                break
            if _is_small(problem, step, objective, rough):
                break
            damping = max(10.0 * damping, FIRST_DAMPING)
        settled = all((np.abs(noise[n] - before[n]) <= SMALL_CHANGE * noise[n]).all() for n in noise)
        if found is not None:
            point = found
            if shooting.unknowns.delays:
                point.places = shooting.places(point.x)
                point.residuals, point.motion = shooting.predicted(point.x, point.starts, point.places, point.x)
        damping = 0.1 * damping if damping > 1e-12 else 0.0
        small = _is_small(problem, step, objective, rough)
        near = not rough and step.deviations < SMALL_STEP * len(x)
        small, was_near = small or (near and was_near), near  # starts in contact may go on to move
        if small and (settled or rough):
            converged = True
            break
        if found is None and not small:
            break
    return _Found(point, grams, noise, converged, taken)


def _continued(problem: _Problem, point: _Point, noise: Mapping[str, Vector]) -> _Point:
    """Return the point with starts of poor windows where the windows before end, if that reduces their losses.

    In contact, starts have local minima. An exact model continues the motion of a window from the window before.
    """
    shooting, windows = problem.shooting, problem.shooting.windows
    losses = _losses(problem, point.residuals, noise)
    counts = sum(shooting.measured(name, at).sum(axis=(1, 2)) for name, at in point.places.items())
    mean = losses / np.maximum(counts, 1)
    later, step = mean > POOR * np.median(mean), np.diff(windows.first, prepend=windows.first[:1])
    later[1:] &= windows.log[1:] == windows.log[:-1]
    later &= (step > 0) & (step <= windows.steps)
    w = np.flatnonzero(later)
    if not len(w):
        return point
    q, v = (x.copy() for x in point.starts)
    q[w], v[w] = point.motion.q[w - 1, step[w]], point.motion.v[w - 1, step[w]]
    residuals, motion = shooting.predicted(point.x, Starts(q, v), point.places, point.x, w)
    better = ~motion.failed & (_losses(problem, residuals, noise) < losses[w])

    def chosen(a: Array, b: Array) -> Array:
        found = b.copy()
        found[w[better]] = a[better]
        return found

    return _Point(
        point.x, Starts(*(chosen(a[w], b) for a, b in zip((q, v), point.starts, strict=True))),
        {name: chosen(r, point.residuals[name]) for name, r in residuals.items()}, Motion(*map(chosen, motion, point.motion)),
        point.places,
    )  # fmt: skip


def _trial(problem: _Problem, point: _Point, N: Normal, step: Step, noise: Mapping[str, Vector]) -> _Point:
    """Return the point after a step.

    In contact, a start may be moved to where its window has another motion. Windows whose loss rises try shorter steps of their
    starts, for the same step of the unknowns.
    """
    shooting, x, starts = problem.shooting, point.x + step.unknowns, step.starts
    bound = RISE * _losses(problem, point.residuals, noise)

    def moved(starts: Matrix) -> tuple[_Point, Vector]:
        at = point.starts.moved(shooting.robot, starts)
        found = _Point(x, at, *shooting.predicted(x, at, point.places, point.x), point.places)
        return found, np.where(found.motion.failed, np.inf, _losses(problem, found.residuals, noise))

    trial, losses = moved(starts)
    for damping in SHORTER_STEPS:
        worse = losses > bound
        if not worse.any():
            break
        other = np.where(worse[:, None], starts_for(N, step.unknowns, damping), starts)
        after, found = moved(other)
        better = found < losses
        if better[worse].any():
            starts, losses = np.where(better[:, None], other, starts), np.minimum(found, losses)
            trial = after if better[worse].all() else moved(starts)[0]
    return trial


def _is_small(problem: _Problem, step: Step, objective: float, rough: bool) -> bool:
    """Return whether a step is the last one of a fit."""
    if rough:
        return step.decrease < (ROUGH_IN_CONTACT if problem.shooting.coarse else ROUGH) * objective
    return step.decrease < NEARLY * objective and step.deviations < SMALL_STEP * len(step.unknowns)


def _grams(problem: _Problem, point: _Point, noise: dict[str, Vector]) -> Grams:
    weights = None if problem.terms.law == SQUARES else lambda name, r: _weight(problem.terms.law, r / noise[name])
    return problem.shooting.grams(point.x, point.starts, point.motion, point.places, point.residuals, weights)


def _weight(law: str, u: Array) -> Array:
    """Return the weights of residuals u, in deviations."""
    if law == HUBER:
        return np.asarray(np.minimum(1.0, CORNER / np.maximum(np.abs(u), 1e-300)))
    return np.asarray((FREEDOM + 1.0) / (FREEDOM + u * u))


def _loss(law: str, u: Array) -> Array:
    """Return the loss of residuals u, in deviations."""
    if law == HUBER:
        size = np.abs(u)
        return np.where(size <= CORNER, u * u, 2.0 * CORNER * size - CORNER**2)
    return np.asarray((FREEDOM + 1.0) * np.log1p(u * u / FREEDOM)) if law == STUDENT else u * u


def _losses(problem: _Problem, residuals: Mapping[str, Array], noise: Mapping[str, Vector]) -> Vector:
    """Return the losses of windows (W,)."""
    return np.asarray(sum(_loss(problem.terms.law, r / noise[name]).sum(axis=(1, 2)) for name, r in residuals.items()))


def _objective(problem: _Problem, point: _Point, noise: Mapping[str, Vector]) -> float:
    losses = float(_losses(problem, point.residuals, noise).sum())
    return losses + float(problem.terms.prior.information @ (point.x - problem.terms.prior.mean) ** 2)


def _noise(problem: _Problem, point: _Point, at: tuple[Grams, dict[str, Vector]] | None) -> dict[str, Vector]:
    """Return the noise of each component, from the residuals of a point and the freedoms that the fit used."""
    found = {}
    used: dict[str, Any] = {}
    if at is not None:
        N = normal_equations(*at, problem.terms.prior, point.x)
        used = used_freedoms(*at, N)
    for name, r in point.residuals.items():
        given = problem.terms.given[name]
        if given is not None:
            found[name] = given
            continue
        there = problem.shooting.measured(name, point.places[name])
        n = there.sum(axis=(0, 1))
        if problem.terms.law == SQUARES:
            squares = (r * r).sum(axis=(0, 1))
        elif at is None:
            middle = np.nanmedian(np.where(there, np.abs(r), np.nan), axis=(0, 1))
            squares = n * (MEDIAN * middle) ** 2
        else:
            squares = (_scaled(problem.terms.law, r / at[1][name]) * at[1][name] ** 2).sum(axis=(0, 1))
        left = np.maximum(n - used.get(name, 0.0), 1.0 + 0.0 * n)
        found[name] = np.maximum(np.sqrt(squares / left), problem.terms.least[name])
    return found


def _scaled(law: str, u: Array) -> Array:
    """Return terms whose mean is one for normal residuals u: those of Huber's proposal 2, or of Student's scale."""

    def term(u: Array) -> Array:
        weight = _weight(law, u)
        return np.asarray(weight * weight * u * u if law == HUBER else weight * u * u)

    normal = np.linspace(-8.0, 8.0, 4001)
    density = np.exp(-0.5 * normal * normal)
    return term(u) / float((term(normal) * density).sum() / density.sum())


def _given_noise(name: str, logs: Sequence[CheckedLog]) -> Vector | None:
    given = [log.samples[name].noise for log in logs if name in log.samples]
    if any(x is None for x in given):
        return None
    if any(not np.array_equal(x, given[0]) for x in given):  # type: ignore[arg-type]
        raise ValueError(f"Log: all logs must give the same noise of {name!r}")
    return given[0]


def _least_noise(source: Source, logs: Sequence[CheckedLog]) -> Vector:
    values = np.concatenate([log.samples[source.name].values for log in logs if source.name in log.samples])
    span = float(np.nanmax(values) - np.nanmin(values)) or float(np.nanmax(np.abs(values))) or 1.0
    return np.full(len(source.components), LEAST_NOISE * span)


# the result


def _result(sim: Simulation, problem: _Problem, found: _Found, errors: str) -> LogFit:
    """Return the result. The covariance is that of the last step, which is smaller than a fifth of a deviation."""
    unknowns, (point, grams, noise, converged, iterations) = problem.shooting.unknowns, found
    N = normal_equations(grams, noise, problem.terms.prior, point.x)
    S, _ = reduced(N)
    covariance = covariance_of(S)
    if problem.terms.law != SQUARES:
        covariance = covariance * _inflation(problem, point, noise)
    if errors == ROBUST:
        factors = _robust_factors(problem, point, grams, noise, N, covariance)
        covariance = covariance * np.outer(factors, factors)
    names, units, values = unknowns.physical(point.x)
    T = _slopes(unknowns, point.x)
    covariance = T @ covariance @ T.T
    return LogFit(
        tuple(names), tuple(units), values, np.sqrt(np.diagonal(covariance)), covariance, noise,
        _undetermined(unknowns, N, problem.terms.prior, point.x), _correlation(problem, point, noise), _motions(problem, point),
        converged, iterations, sim, unknowns, point.x,
    )  # fmt: skip


def _robust_factors(
    problem: _Problem, point: _Point, grams: Grams, noise: Mapping[str, Vector], N: Normal, covariance: Matrix
) -> Vector:
    """Return the factors (p,) of the deviations of white noise, at least 1, that account for correlated residuals.

    Deviations are those of the jackknife: without window w, the fit moves by (S - S_w)⁻¹ s_w, with its part S_w of the Schur
    complement S and its reduced gradient s_w (Bell and McCaffrey 2002). With few windows, the measurements count as fewer by
    the sum of the autocorrelations of residuals.
    """
    S, AB = reduced(N)
    W, s = N.a.shape
    if W < FEW_WINDOWS:
        return np.full(len(S), math.sqrt(_correlated_samples(problem, point, noise)))
    G = weighted(grams, noise)
    own = G[:, s:-1, s:-1] - np.einsum("wsp,wsq->wpq", N.B, AB)
    scores = G[:, s:-1, -1] - np.einsum("wsp,ws->wp", AB, N.a)
    moves = np.linalg.solve(S - own, scores[..., None])[..., 0]
    squares = (W - 1.0) / W * (moves**2).sum(axis=0)
    return np.asarray(np.maximum(np.sqrt(squares / np.diagonal(covariance)), 1.0))


def _correlated_samples(problem: _Problem, point: _Point, noise: Mapping[str, Vector]) -> float:
    """Return the greatest sum over all lags of a component's autocovariance, relative to noise², at least 1."""
    greatest = 1.0
    for name, r in point.residuals.items():
        there = problem.shooting.measured(name, point.places[name])
        u = r / noise[name]
        variance = (u * u).sum(axis=(0, 1)) / np.maximum(there.sum(axis=(0, 1)), 1)
        total, going = variance.copy(), variance > 0.0
        for lag in range(1, r.shape[1] // 2):
            pairs = np.maximum((there[:, lag:] & there[:, :-lag]).sum(axis=(0, 1)), 1)
            covariance = (u[:, lag:] * u[:, :-lag]).sum(axis=(0, 1)) / pairs
            going = going & (covariance > 2.0 * variance / np.sqrt(pairs))
            if not going.any():
                break
            total += 2.0 * np.where(going, covariance, 0.0)
        greatest = max(greatest, float(total.max()))
    return greatest


def _inflation(problem: _Problem, point: _Point, noise: Mapping[str, Vector]) -> float:
    """Return the factor of the covariance of weighted squares: that of an M-estimator of Huber's or Student's law."""
    u = np.concatenate([
        (r / noise[name])[problem.shooting.measured(name, point.places[name])] for name, r in point.residuals.items()
    ])  # fmt: skip
    weight = _weight(problem.terms.law, u)
    score = weight * u
    slope = (
        (np.abs(u) <= CORNER) * 1.0
        if problem.terms.law == HUBER
        else weight - 2.0 * (FREEDOM + 1.0) * u * u / (FREEDOM + u * u) ** 2
    )
    return float(np.mean(score**2) * np.mean(weight) / np.mean(slope) ** 2)


def _slopes(unknowns: Unknowns, x: Vector) -> Matrix:
    """Return the derivatives (p, p) of physical values by unknowns."""
    columns = []
    for k in range(len(x)):
        small = np.zeros(len(x))
        small[k] = 1e-6 * max(unknowns.list[k].scale, abs(x[k]))
        ahead, behind = (unknowns.physical(x + s * small)[2] for s in (1.0, -1.0))
        columns.append((ahead - behind) / (2.0 * small[k]))
    return np.array(columns).T


def _undetermined(unknowns: Unknowns, N: Any, prior: Prior, x: Vector) -> tuple[str, ...]:
    """Return the directions in which logs leave errors as large as the prior, or the scale of the parameters without one."""
    S = reduced(N)[0] - np.diag(prior.information + prior.weak)
    scale = np.where(
        np.isfinite(unknowns.field("deviation")), unknowns.field("deviation"), np.maximum(unknowns.field("scale"), np.abs(x))
    )
    values, vectors = np.linalg.eigh(S * np.outer(scale, scale))
    found = []
    names = [u.name for u in unknowns.list]
    for value, vector in zip(values, vectors.T, strict=True):
        if value >= 1.0:
            break
        vector = vector / vector[np.argmax(np.abs(vector))]
        order = np.argsort(-np.abs(vector), kind="stable")
        terms = [k for k in order if abs(vector[k]) > 0.1][:6]
        others = [f"{'-' if vector[k] < 0 else '+'} {abs(vector[k]):.2g} {names[k]}" for k in terms[1:]]
        found.append(" ".join([names[terms[0]], *others]))
    return tuple(found)


def _correlation(problem: _Problem, point: _Point, noise: Mapping[str, Vector]) -> float:
    """Return the greatest correlation of consecutive residuals of a component.

    Residuals that are smaller than the noise that the log gives count relative to this noise.
    """
    found = [0.0]
    for name, r in point.residuals.items():
        there = problem.shooting.measured(name, point.places[name])
        both = there[:, 1:] & there[:, :-1]
        product = (r[:, 1:] * r[:, :-1] * both).sum(axis=(0, 1))
        size = np.sqrt((r[:, 1:] ** 2 * both).sum(axis=(0, 1)) * (r[:, :-1] ** 2 * both).sum(axis=(0, 1)))
        found += (product / np.maximum(size, noise[name] ** 2 * np.maximum(both.sum(axis=(0, 1)), 1))).tolist()
    return float(max(found))


def _motions(problem: _Problem, point: _Point) -> tuple[FittedMotion, ...]:
    """Return the fitted motions of all logs."""
    shooting, windows, motions = problem.shooting, problem.shooting.windows, []
    measured = {name: shooting.measured(name, at) for name, at in point.places.items()}
    for i, log in enumerate(shooting.logs):
        q, v = (np.empty((log.steps + 1, x.shape[-1])) for x in (point.motion.q, point.motion.v))
        residuals = {
            name: np.full((len(x.values), len(shooting.sources[name].components)), np.nan) for name, x in log.samples.items()
        }
        for w in np.flatnonzero(windows.log == i):
            first, begin, end = int(windows.first[w]), max(int(windows.begin[w]), 0), int(windows.end[w])
            for made, x in ((q, point.motion.q), (v, point.motion.v)):
                made[begin : end + 1] = x[w, begin - first : end + 1 - first]
            for name in log.samples:
                at = point.places[name]
                own = at.there[w]
                r = np.where(measured[name][w], point.residuals[name][w], np.nan)
                residuals[name][at.number[w, own]] = r[own]
        time: Vector = log.start + np.arange(log.steps + 1) * np.float64(shooting.step)
        motions.append(FittedMotion(time, q, v, residuals))
    return tuple(motions)
