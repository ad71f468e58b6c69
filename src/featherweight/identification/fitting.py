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
from ..simulation.failure import SimulationError
from ..simulation.simulation import Simulation
from .first_states import first_states
from .gauss_newton import Prior, Step, covariance_of, normal_equations, reduced, solved, used_freedoms
from .logs import CheckedLog, Log, Placed, Source, Windows, checked_log, some_windows, source_of, windows_of
from .shooting import Grams, Motion, Shooting, Starts
from .unknowns import WEAK, Parameter, Unknowns

LAWS = SQUARES, HUBER, STUDENT = "squares", "huber", "student"
ERRORS = NOISE, WINDOWS = "noise", "windows"
CORNER = 1.345  # residuals beyond so many deviations count linearly in Huber's law (95 % efficient for normal noise)
FREEDOM = 4.0  # of Student's distribution
MEDIAN = 1.4826  # deviation of normal noise relative to its median absolute value
SMALL_STEP = 5e-2  # square of the last step of each unknown, in its deviations: a fifth of a deviation
NEARLY = 1e-3  # decrease relative to the objective at the last step
ROUGH = 0.1  # decrease relative to the objective, at which a first fit with short windows has converged
FEW, FOR_EACH = 60, 100  # least number of such windows, and of measurements for each unknown
MANY = 3  # times as many windows have a fit of some of them first
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
        """The robot with the fitted inertias and joints. It lacks contact friction and gains, which simulations have."""
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
                f"consecutive residuals correlate by {self.correlation:.2f}: the model is not exact, and errors='windows' "
                "gives honest deviations"
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
    errors: Annotated[str, one_of(ERRORS)] = NOISE,
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

    The deviations of the result are those of independent noise with the estimated deviation (`errors="noise"`). With
    `errors="windows"`, they come from the variation between windows instead, which is also right for noise that is correlated
    within windows, as errors of the model are; it needs several windows for each parameter.

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
    for windows in stages:
        problem = _Problem(Shooting(unknowns, read, sources, windows), terms)
        offsets = {column: float(x[k]) for column, k in unknowns.offsets}
        delays = {name: float(x[k]) for name, k in unknowns.delays.items()}
        begun = first_states(problem.shooting.simulation(x), read, sources, windows, offsets, delays)
        found = _minimized(problem, x, begun, iterations, rough=windows is not stages[-1])
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
    damping, converged, taken = FIRST_DAMPING, False, 0
    while taken < iterations:
        taken += 1
        grams = _grams(problem, point, noise)
        noise, before = _noise(problem, point, (grams, noise)), noise
        N = normal_equations(grams, noise, problem.terms.prior, point.x)
        objective = _objective(problem, point, noise)
        found = None
        while damping < MOST_DAMPING:
            step = solved(N, point.x, problem.terms.bounds, damping)
            trial_x, trial_starts = point.x + step.unknowns, point.starts.moved(shooting.robot, step.starts)
            residuals, motion = shooting.predicted(trial_x, trial_starts, point.places, point.x)
            trial = _Point(trial_x, trial_starts, residuals, motion, point.places)
            if not motion.failed.any() and _objective(problem, trial, noise) <= objective + 1e-9 * abs(objective):
                found = trial
                break
            if _is_small(step, objective, len(x), rough):
                break
            damping = max(10.0 * damping, FIRST_DAMPING)
        settled = all((np.abs(noise[n] - before[n]) <= SMALL_CHANGE * noise[n]).all() for n in noise)
        if found is not None:
            point = found
            if shooting.unknowns.delays:
                point.places = shooting.places(point.x)
                point.residuals, point.motion = shooting.predicted(point.x, point.starts, point.places, point.x)
        damping = 0.1 * damping if damping > 1e-12 else 0.0
        small = _is_small(step, objective, len(x), rough)
        if small and (settled or rough):
            converged = True
            break
        if found is None and not small:
            break
    return _Found(point, grams, noise, converged, taken)


def _is_small(step: Step, objective: float, unknowns: int, rough: bool) -> bool:
    """Return whether a step is the last one of a fit."""
    if rough:
        return step.decrease < ROUGH * objective
    return step.decrease < NEARLY * objective and step.deviations < SMALL_STEP * unknowns


def _grams(problem: _Problem, point: _Point, noise: dict[str, Vector]) -> Grams:
    weights = None if problem.terms.law == SQUARES else lambda name, r: _weight(problem.terms.law, r / noise[name])
    return problem.shooting.grams(point.x, point.starts, point.motion, point.places, weights)


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


def _objective(problem: _Problem, point: _Point, noise: Mapping[str, Vector]) -> float:
    losses = sum(float(_loss(problem.terms.law, r / noise[name]).sum()) for name, r in point.residuals.items())
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
    S, AB = reduced(N)
    covariance = covariance_of(S)
    if errors == WINDOWS:
        covariance = _between_windows(grams, noise, N, AB, covariance)
    elif problem.terms.law != SQUARES:
        covariance = covariance * _inflation(problem, point, noise)
    names, units, values = unknowns.physical(point.x)
    T = _slopes(unknowns, point.x)
    covariance = T @ covariance @ T.T
    return LogFit(
        tuple(names), tuple(units), values, np.sqrt(np.diagonal(covariance)), covariance, noise,
        _undetermined(unknowns, N, problem.terms.prior, point.x), _correlation(problem, point), _motions(problem, point),
        converged, iterations, sim, unknowns, point.x,
    )  # fmt: skip


def _between_windows(grams: Grams, noise: Mapping[str, Vector], N: Any, AB: Array, covariance: Matrix) -> Matrix:
    """Return the covariance (p, p) from the variation of the gradients of windows (Liang and Zeger 1986)."""
    p = len(covariance)
    s = N.A.shape[1]
    own = np.sum([np.einsum("wci,c->wi", G[..., s:-1, -1], noise[name] ** -2.0) for name, G in grams.sums.items()], axis=0)
    scores = own - np.einsum("wsp,ws->wp", AB, N.a)
    W = len(scores)
    if p >= W:
        raise ValueError(
            f"errors='windows' needs more windows than parameters ({W} for {p}): give longer logs or a shorter window"
        )
    meat = scores.T @ scores * (W / (W - 1.0))
    return np.asarray(covariance @ meat @ covariance)


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


def _correlation(problem: _Problem, point: _Point) -> float:
    """Return the greatest correlation of consecutive residuals of a component."""
    found = [0.0]
    for name, r in point.residuals.items():
        there = problem.shooting.measured(name, point.places[name])
        both = there[:, 1:] & there[:, :-1]
        product = (r[:, 1:] * r[:, :-1] * both).sum(axis=(0, 1))
        size = np.sqrt((r[:, 1:] ** 2 * both).sum(axis=(0, 1)) * (r[:, :-1] ** 2 * both).sum(axis=(0, 1)))
        found += (product / np.where(size > 0.0, size, math.inf)).tolist()
    return float(max(found))


def _motions(problem: _Problem, point: _Point) -> tuple[FittedMotion, ...]:
    """Return the fitted motions of all logs."""
    shooting, windows, motions = problem.shooting, problem.shooting.windows, []
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
                r = np.where(shooting.measured(name, at)[w], point.residuals[name][w], np.nan)
                residuals[name][at.number[w, own]] = r[own]
        time: Vector = log.start + np.arange(log.steps + 1) * np.float64(shooting.step)
        motions.append(FittedMotion(time, q, v, residuals))
    return tuple(motions)
