"""Inputs of drives from their controls: activations, gains that depend on length and velocity, muscles, servos on a circle.

    integrator      a' = u
    filter          a' = (u - a) / T
    muscle          a' = (u - a) / T(u - a, a)      0.5 + 1.5 a slows activation, speeds deactivation (Millard et al. 2013)

and with the activation a in place of the control, if there is one,

    gain            (g0 + g1 l + g2 l') u + b0 + b1 l + b2 l'
    muscle          -F (a FL(L) FV(V) + FP(L))      L = (l - slack) / optimum, V = l' / (fastest optimum)
    on a circle     gain (u - l), where l is an angle: for the equivalent u nearest to l

as in MuJoCo (chapter Computation of its documentation, section Actuation model, and chapter Modeling, section Muscles). FL
rises from the least length to 1 and falls to the greatest length, by parabolas that meet half way. FV is (1 + V)² when the
muscle shortens, and a parabola up to `lengthening`. FP is a parabola up to half the greatest strain, and a line beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from ...array_types import Array, Integers, Matrix, Vector
from ...model.types import Activation, ActivationType, Actuator
from ..sensors.history import ROUNDING, read_samples
from .controllers import (
    Controllers,
    DrivesNow,
    bounded_states,
    circle_of,
    controllers_of,
    parts_of,
    stacked,
    whole_turns,
    write_controllers,
)

INTEGRATOR, FILTER, EXACT_FILTER, MUSCLE, CONTROLLED = range(5)
KINDS = {
    ActivationType.INTEGRATOR: INTEGRATOR,
    ActivationType.FILTER: FILTER,
    ActivationType.EXACT_FILTER: EXACT_FILTER,
    ActivationType.MUSCLE: MUSCLE,
}
TINY = 1e-15
AFFINE, OF_MUSCLE = range(2)


class Activations(NamedTuple):
    """Drives whose controls change an activation; may be empty."""

    drive: Integers  # (na,)
    control: Integers  # (na,) index of the control
    kind: Integers  # (na,)
    # (na, 11) two times, smoothing, ranges of activation and control, step, whether early, circle (-1: a rotation vector), gear
    values: Matrix


class Curves(NamedTuple):
    """Drives whose gain depends on length or velocity; may be empty."""

    drive: Integers  # (k,)
    kind: Integers  # (k,)
    # (k, 13) gear, and g0, g1, g2, b0, b1, b2, range of the control, circle; or numbers of a muscle
    values: Matrix


class Delays(NamedTuple):
    """Delayed controls; may be empty.

    A delayed control is a weighted sum of earlier controls. These are stored as states after the others, the latest first.
    """

    control: Integers  # (k,) index of the control
    first: Integers  # (k,) index of the first state
    samples: Integers  # (k,)
    weights: Matrix  # (k, greatest number)


class DriveLaws(NamedTuple):
    """Laws of drives, and the rows and coordinates on which they act."""

    control: Integers  # (drives,) index of each drive's control, -1 for none
    activations: Activations
    curves: Curves
    controllers: Controllers
    delays: Delays
    row: Integers  # (drives,)
    at: Integers  # (drives,)


def is_curved(a: Actuator) -> bool:
    """Return whether the force of a drive is a nonlinear function of its length, velocity and control."""
    return a.muscle is not None or any(a.slopes) or turns(a) > 0.0


def turns(a: Actuator) -> float:
    """Return the length of a full turn of a servo's set point; 0 for others."""
    servo = a.muscle is None and not any(a.slopes) and a.gain != 0.0 and a.gain == -a.bias[1]
    plain = a.servo is None and a.orientation is None
    followed = a.activation is None or a.activation.type is ActivationType.INTEGRATOR
    return circle_of(a) if servo and plain and followed else 0.0


def laws_of(actuators: Sequence[Actuator], gears: Array, row: Array, at: Array, step: float) -> DriveLaws:
    """Return the laws of the drives of actuators, for a step [s].

    `gears` (drives,) are the gears between lengths and the coordinates on which the drives act.
    """
    place: list[int] = []
    states: list[tuple[int, int, int, tuple[float, ...]]] = []
    curved: list[tuple[int, int, tuple[float, ...]]] = []
    control = 0
    for a in actuators:
        first, parts, count = len(place), parts_of(a), len(a.controls)
        place += [control + min(i, count - 1) if count else -1 for i in range(len(parts))]
        if a.activation is not None:
            x = a.activation
            states += [(k, place[k], KINDS[x.type], _numbers(x, a, step, k == first)) for k in range(first, len(place))]
        for low, high, time in bounded_states(a, step):
            states.append((first, 0, CONTROLLED, (0.0, 0.0, 0.0, low, high, 0.0, 0.0, time, 0.0, 0.0, 0.0)))
        if is_curved(a):
            curved.append((first, AFFINE if a.muscle is None else OF_MUSCLE, _curve(a, float(gears[first]))))
        control += count
    activations, curves = stacked(Activations, states), stacked(Curves, curved)
    delays = delays_of(actuators, len(states), step)
    return DriveLaws(np.array(place, np.int64), activations, curves, controllers_of(actuators, step), delays, row, at)


def delays_of(actuators: Sequence[Actuator], states: int, step: float) -> Delays:
    """Return the delays of controls for a step [s]; `states` is the number of states before those of delays."""
    found: list[tuple[int, int, int, list[float]]] = []
    control = 0
    for a in actuators:
        if a.delay is not None:
            n = a.delay.samples
            times = -step * np.arange(n, 0, -1.0)[None]
            read = read_samples(times, np.eye(n)[None], -a.delay.time, a.delay.interpolation, ROUNDING * step)[0]
            found.append((control, states, n, read[::-1].tolist()))
            states += n
        control += len(a.controls)
    most = max((n for _, _, n, _ in found), default=0)
    delays: Delays = stacked(Delays, [(*x, [*weights, *[0.0] * (most - len(weights))]) for *x, weights in found])
    return delays


def _numbers(x: Activation, a: Actuator, step: float, first: bool) -> tuple[float, ...]:
    T = max(x.time_constant, TINY)
    exact = T * (1.0 - np.exp(-step / T)) if x.type is ActivationType.EXACT_FILTER else step
    circle = -float(first) if a.orientation is not None else turns(a)
    return (x.time_constant, x.deactivation, x.smoothing, *x.range, *a.control, exact, float(x.early), circle, a.gear)


def _curve(a: Actuator, gear: float) -> tuple[float, ...]:
    low, high = (-np.inf, np.inf) if a.activation is not None else a.control
    if a.muscle is None:
        return (gear, a.gain, *a.slopes, *a.bias, low, high, turns(a), 0.0, 0.0, 0.0)
    m, p = a.muscle, a.muscle.at_rest or a.muscle
    active = m.peak, m.optimum, m.slack, *m.lengths, m.fastest, m.lengthening
    return (gear, *active, p.peak, p.optimum, p.slack, p.lengths[1], p.passive)


def write_drive_inputs(laws: DriveLaws, now: DrivesNow) -> None:
    """Write the inputs of the drives' linear laws from the controls, and the rates of activations; apply delays to controls."""
    x, y = laws.activations, laws.curves
    control, act, inputs, d = now.control, now.act, now.inputs, laws.delays
    for i in range(len(d.control)):
        total = 0.0
        for n in range(d.samples[i]):
            total += d.weights[i, n] * act[d.first[i] + n]
        control[d.control[i]] = total
    for k in range(len(inputs)):
        inputs[k] = control[laws.control[k]] if laws.control[k] >= 0 else 0.0
    for j in range(len(x.drive)):
        if x.kind[j] == CONTROLLED:
            continue
        u = min(max(control[x.control[j]], x.values[j, 5]), x.values[j, 6])
        now.act_rate[j] = activation_rate(x, j, u, act[j])
        inputs[x.drive[j]] = next_activation(x, j, act[j], now.act_rate[j]) if x.values[j, 8] > 0.0 else act[j]
    for j in range(len(y.drive)):
        k, gear = y.drive[j], y.values[j, 0]
        length, velocity = gear * now.coordinates[laws.at[k]], gear * now.rates[laws.row[k]]
        if len(now.slopes) > 0:
            now.slopes[k] = gear * curved_slope(y, j, inputs[k], length, velocity)
        inputs[k] = curved_force(y, j, inputs[k], length, velocity)
    write_controllers(laws.controllers, laws.at, laws.row, now)


def activation_rate(x: Activations, j: int, u: float, a: float) -> float:
    """Return the rate of an activation for a control."""
    kind, T = x.kind[j], max(x.values[j, 0], TINY)
    if kind == INTEGRATOR:
        return u
    if kind != MUSCLE:
        return (u - a) / T
    u, within = min(max(u, 0.0), 1.0), min(max(a, 0.0), 1.0)
    slower = 0.5 + 1.5 * within
    up, down, smoothing = x.values[j, 0] * slower, x.values[j, 1] / slower, x.values[j, 2]
    more = u - a
    if smoothing < TINY:
        return more / max(up if more > 0.0 else down, TINY)
    time = down + (up - down) * smooth_step(more / smoothing + 0.5)
    return more / max(time, TINY)


def smooth_step(x: float) -> float:
    """Return 0 for x <= 0, 1 for x >= 1, and between them the quintic with two zero derivatives at both ends."""
    x = min(max(x, 0.0), 1.0)
    return x * x * x * (10.0 + x * (6.0 * x - 15.0))


def next_activation(x: Activations, j: int, a: float, rate: float) -> float:
    """Return the activation after a step with this rate at its start."""
    following = a + x.values[j, 7] * rate
    return min(max(following, x.values[j, 3]), x.values[j, 4])


def shift_delayed(laws: DriveLaws, before: Vector, control: Vector, act: Vector) -> None:
    """Write the states of delays after a step with these controls."""
    d = laws.delays
    for i in range(len(d.control)):
        first = d.first[i]
        for n in range(d.samples[i] - 1, 0, -1):
            act[first + n] = before[first + n - 1]
        act[first] = control[d.control[i]]


def reanchor(laws: DriveLaws, act: Vector, coordinates: Vector) -> None:
    """Replace activations of servos on a circle by their equivalents nearest to the lengths.

    Rotation vectors become those of at most half a turn.
    """
    x = laws.activations
    for j in range(len(x.drive)):
        circle = x.values[j, 9]
        if circle > 0.0:
            act[j] -= whole_turns(act[j] - x.values[j, 10] * coordinates[laws.at[x.drive[j]]], circle)
        elif circle < 0.0:
            angle = sqrt(act[j] * act[j] + act[j + 1] * act[j + 1] + act[j + 2] * act[j + 2])
            if angle > pi:
                for i in range(3):
                    act[j + i] *= 1.0 - whole_turns(angle, 2.0 * pi) / angle


def curved_force(y: Curves, j: int, u: float, length: float, velocity: float) -> float:
    """Return the force of a drive before limits and gear."""
    v = y.values[j]
    if y.kind[j] == AFFINE:
        u = affine_control(y, j, u, length)
        gain = v[1] + v[2] * length + v[3] * velocity
        return gain * u + v[4] + v[5] * length + v[6] * velocity
    L, V = (length - v[3]) / v[2], velocity / max(v[2] * v[6], TINY)
    active = v[1] * u * active_length(L, v[4], v[5]) * active_velocity(V, v[7])
    passive = v[8] * passive_force((length - v[10]) / v[9], v[11], v[12])
    return -(active + passive)


def affine_control(y: Curves, j: int, u: float, length: float) -> float:
    """Return the control of a drive within its range; on a circle, the equivalent that is nearest to the length."""
    u = min(max(u, y.values[j, 7]), y.values[j, 8])
    return u - whole_turns(u - length, y.values[j, 9])


def curved_slope(y: Curves, j: int, u: float, length: float, velocity: float) -> float:
    """Return the derivative of `curved_force` by the velocity."""
    v = y.values[j]
    if y.kind[j] == AFFINE:
        return v[3] * affine_control(y, j, u, length) + v[6]
    fastest = max(v[2] * v[6], TINY)
    active = v[1] * u * active_length((length - v[3]) / v[2], v[4], v[5])
    return -active * active_velocity_slope(velocity / fastest, v[7]) / fastest


def active_length(L: float, least: float, most: float) -> float:
    """Return FL, the active force at a length."""
    if least > L or most < L:
        return 0.0
    low, high = 0.5 * (least + 1.0), 0.5 * (1.0 + most)
    if low >= L or high < L:
        x = (L - least) / max(low - least, TINY) if low >= L else (most - L) / max(most - high, TINY)
        return 0.5 * x * x
    x = (1.0 - L) / max(1.0 - low, TINY) if L <= 1.0 else (L - 1.0) / max(high - 1.0, TINY)
    return 1.0 - 0.5 * x * x


def active_velocity(V: float, lengthening: float) -> float:
    """Return FV, the factor of the velocity."""
    rise = lengthening - 1.0
    if V <= -1.0:
        return 0.0
    if V <= 0.0:
        return (V + 1.0) * (V + 1.0)
    if rise >= V:
        return lengthening - (rise - V) * (rise - V) / max(rise, TINY)
    return lengthening


def active_velocity_slope(V: float, lengthening: float) -> float:
    """Return the derivative of FV."""
    rise = lengthening - 1.0
    if V <= -1.0 or rise < V:
        return 0.0
    return 2.0 * (V + 1.0) if V <= 0.0 else 2.0 * (rise - V) / max(rise, TINY)


def passive_force(L: float, most: float, passive: float) -> float:
    """Return FP, the passive force at a length."""
    half = 0.5 * (1.0 + most)
    x = (L - 1.0) / max(half - 1.0, TINY)
    if L <= 1.0:
        return 0.0
    return passive * 0.5 * x * x if half >= L else passive * (x - 0.5)
