"""What drives make of their controls: activations, gains that change with length and velocity, muscles.

    integrator      a' = u
    filter          a' = (u - a) / T
    muscle          a' = (u - a) / T(u - a, a)      0.5 + 1.5 a slows activation down and deactivation up (Millard et al. 2013)

and with the activation a in place of the control, where there is one,

    gain            (g0 + g1 l + g2 l') u + b0 + b1 l + b2 l'
    muscle          -F (a FL(L) FV(V) + FP(L))      L = (l - slack) / optimum, V = l' / (fastest optimum)

as in MuJoCo (chapter Computation of its documentation, section Actuation model, and chapter Modeling, section Muscles). FL
rises from the least length to 1 and falls to the greatest by parabolas that meet half way; FV is (1 + V)² where the muscle
shortens, and a parabola up to `lengthening`; FP is a parabola up to half the greatest strain, and a line beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..engine.loops.array_types import Integers, Matrix, Vector
from ..model.types import Activation, ActivationType, Actuator

Array = np.ndarray[Any, np.dtype[Any]]

INTEGRATOR, FILTER, EXACT_FILTER, MUSCLE = range(4)
KINDS = {
    ActivationType.INTEGRATOR: INTEGRATOR,
    ActivationType.FILTER: FILTER,
    ActivationType.EXACT_FILTER: EXACT_FILTER,
    ActivationType.MUSCLE: MUSCLE,
}
TINY = 1e-15
AFFINE, OF_MUSCLE = range(2)


class Activations(NamedTuple):
    """Drives whose controls change an activation, or none."""

    drive: Integers  # (na,)
    kind: Integers  # (na,)
    values: Matrix  # (na, 9) two times, smoothing, least and greatest activation and control, step, whether early


class Curves(NamedTuple):
    """Drives whose gain changes with their length or velocity, or none."""

    drive: Integers  # (k,)
    kind: Integers  # (k,)
    # (k, 13) gear, and g0, g1, g2, b0, b1, b2, least and greatest control; or numbers of a muscle
    values: Matrix


class DriveLaws(NamedTuple):
    """Activations and curves of drives, and the rows and coordinates that they act on."""

    activations: Activations
    curves: Curves
    row: Integers  # (nu,)
    at: Integers  # (nu,)


def is_curved(a: Actuator) -> bool:
    """Whether the force of a drive is no linear function of its length, velocity and control."""
    return a.muscle is not None or any(a.slopes)


def activations_of(actuators: Sequence[Actuator], step: float) -> Activations:
    """Return the activations of drives; those of exact filters for a step [s]."""
    have = [(k, a, a.activation) for k, a in enumerate(actuators) if a.activation is not None]
    return Activations(
        np.array([k for k, _, _ in have], np.int64),
        np.array([KINDS[x.type] for _, _, x in have], np.int64),
        np.array([_numbers(x, a, step) for _, a, x in have], float).reshape(-1, 9),
    )


def _numbers(x: Activation, a: Actuator, step: float) -> tuple[float, ...]:
    T = max(x.time_constant, TINY)
    exact = T * (1.0 - np.exp(-step / T)) if x.type is ActivationType.EXACT_FILTER else step
    return (x.time_constant, x.deactivation, x.smoothing, *x.range, *a.control, exact, float(x.early))


def curves_of(actuators: Sequence[Actuator], gears: Array) -> Curves:
    """Return the drives with gains that change; `gears` (nu,) are from their lengths to the coordinates that they act on."""
    have = [(k, a) for k, a in enumerate(actuators) if is_curved(a)]
    return Curves(
        np.array([k for k, _ in have], np.int64),
        np.array([AFFINE if a.muscle is None else OF_MUSCLE for _, a in have], np.int64),
        np.array([_curve(a, float(gears[k])) for k, a in have], float).reshape(-1, 13),
    )


def _curve(a: Actuator, gear: float) -> tuple[float, ...]:
    low, high = (-np.inf, np.inf) if a.activation is not None else a.control
    if a.muscle is None:
        return (gear, a.gain, *a.slopes, *a.bias, low, high, 0.0, 0.0, 0.0, 0.0)
    m, p = a.muscle, a.muscle.at_rest or a.muscle
    active = m.peak, m.optimum, m.slack, *m.lengths, m.fastest, m.lengthening
    return (gear, *active, p.peak, p.optimum, p.slack, p.lengths[1], p.passive)


def write_drive_inputs(
    laws: DriveLaws, act: Vector, coordinates: Vector, rates: Vector, inputs: Vector, act_rate: Vector
) -> None:
    """Change `inputs` (nu,), the controls, into what the linear laws of drives take; write the rates of activations."""
    x, y = laws.activations, laws.curves
    for j in range(len(x.drive)):
        k = x.drive[j]
        u = min(max(inputs[k], x.values[j, 5]), x.values[j, 6])
        act_rate[j] = activation_rate(x, j, u, act[j])
        inputs[k] = next_activation(x, j, act[j], act_rate[j]) if x.values[j, 8] > 0.0 else act[j]
    for j in range(len(y.drive)):
        k, gear = y.drive[j], y.values[j, 0]
        length, velocity = gear * coordinates[laws.at[k]], gear * rates[laws.row[k]]
        inputs[k] = curved_force(y, j, inputs[k], length, velocity)


def activation_rate(x: Activations, j: int, u: float, a: float) -> float:
    """Return the rate of an activation for a control."""
    kind, T = x.kind[j], max(x.values[j, 0], TINY)
    if kind == INTEGRATOR:
        return u
    if kind != MUSCLE:
        return (u - a) / T  # type: ignore[no-any-return]
    u, within = min(max(u, 0.0), 1.0), min(max(a, 0.0), 1.0)
    slower = 0.5 + 1.5 * within
    up, down, smoothing = x.values[j, 0] * slower, x.values[j, 1] / slower, x.values[j, 2]
    more = u - a
    if smoothing < TINY:
        return more / max(up if more > 0.0 else down, TINY)  # type: ignore[no-any-return]
    time = down + (up - down) * smooth_step(more / smoothing + 0.5)
    return more / max(time, TINY)  # type: ignore[no-any-return]


def smooth_step(x: float) -> float:
    """Return 0 up to x = 0, 1 from x = 1 on, and between them the polynomial of degree five with two zero derivatives there."""
    x = min(max(x, 0.0), 1.0)
    return x * x * x * (10.0 + x * (6.0 * x - 15.0))


def next_activation(x: Activations, j: int, a: float, rate: float) -> float:
    """Return the activation after a step with this rate at its beginning."""
    following = a + x.values[j, 7] * rate
    return min(max(following, x.values[j, 3]), x.values[j, 4])  # type: ignore[no-any-return]


def curved_force(y: Curves, j: int, u: float, length: float, velocity: float) -> float:
    """Return the force of a drive before its limits and its gear."""
    v = y.values[j]
    if y.kind[j] == AFFINE:
        u = min(max(u, v[7]), v[8])
        gain = v[1] + v[2] * length + v[3] * velocity
        return gain * u + v[4] + v[5] * length + v[6] * velocity  # type: ignore[no-any-return]
    L, V = (length - v[3]) / v[2], velocity / max(v[2] * v[6], TINY)
    active = v[1] * u * active_length(L, v[4], v[5]) * active_velocity(V, v[7])
    passive = v[8] * passive_force((length - v[10]) / v[9], v[11], v[12])
    return -(active + passive)  # type: ignore[no-any-return]


def active_length(L: float, least: float, most: float) -> float:
    """Return FL."""
    if least > L or most < L:
        return 0.0
    low, high = 0.5 * (least + 1.0), 0.5 * (1.0 + most)
    if low >= L or high < L:
        x = (L - least) / max(low - least, TINY) if low >= L else (most - L) / max(most - high, TINY)
        return 0.5 * x * x
    x = (1.0 - L) / max(1.0 - low, TINY) if L <= 1.0 else (L - 1.0) / max(high - 1.0, TINY)
    return 1.0 - 0.5 * x * x


def active_velocity(V: float, lengthening: float) -> float:
    """Return FV."""
    rise = lengthening - 1.0
    if V <= -1.0:
        return 0.0
    if V <= 0.0:
        return (V + 1.0) * (V + 1.0)
    if rise >= V:
        return lengthening - (rise - V) * (rise - V) / max(rise, TINY)
    return lengthening


def passive_force(L: float, most: float, passive: float) -> float:
    """Return FP."""
    half = 0.5 * (1.0 + most)
    x = (L - 1.0) / max(half - 1.0, TINY)
    if L <= 1.0:
        return 0.0
    return passive * 0.5 * x * x if half >= L else passive * (x - 0.5)
