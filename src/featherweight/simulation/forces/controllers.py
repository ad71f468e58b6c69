"""Servos and motors of drives: the force of a drive with several controls, and the rates of its states.

    servo           kp (u_p - l) + kv (u_v - l') + u_f + ki z            z' = u_p - l, within its limit
    motor           K i                                                  i' = ((V - K l') / R - i) / T, or i = (V - K l') / R
                    V = R τ / K + K l' for the τ of its servo, clipped, and the control of the voltage
      winding       R = R0 (1 + α (θ - θ0))                              C θ' = R i² - θ / thermal resistance
      friction      σ0 z + σ1 z'                                         z' = v - σ0 |v| z / g(v)
    orientation     kp log(R⁻¹ R_target) - kv ω + torque, clipped in norm

as in MuJoCo 4 (chapter Computation of its documentation). The linear part of a force, stiffness and damping, belongs to the
drive's linear law, which a semi-implicit step evaluates at its end; controllers write the rest. If the length of a drive is an
angle on a circle, the position set point is the nearest of its equivalent angles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import cos, floor, inf, log, pi, sin, sqrt
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np

from ...array_types import IntegerMatrix, Integers, Matrix, Vector
from ...model.servos import UNBOUNDED, DCMotor, DriveInput, Servo
from ...model.types import Actuator
from ...robot.tendons.lengths import rotation_vector, turn_from

SERVO, MOTOR, ORIENTATION, QUATERNION = range(4)
POSITION, VELOCITY, FORCE, VOLTAGE = range(4)  # inputs
SLEW, INTEGRAL, TEMPERATURE, BRISTLES, CURRENT = range(5)  # states
INPUTS = (*DriveInput,)
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
LINEAR = dict[str, Any](
    servo=None, motor=None, orientation=None, activation=None, gain=1.0, slopes=(0.0, 0.0), control=UNBOUNDED
)
TINY = 1e-15
LOG_2 = log(2.0)


class DrivesNow(NamedTuple):
    """The drives of one robot at one point of a step, and the results of their laws."""

    control: Vector  # (nu,)
    act: Vector  # (na,) activations and other states
    coordinates: Vector  # (nq + lengths,)
    rates: Vector  # (rows,) velocities of all rows
    inputs: Vector  # (drives,) inputs of the linear laws, a result
    act_rate: Vector  # (na,) rates of activations, a result
    slopes: Vector  # (drives,) derivatives of the inputs by the velocities of the drives, a result; or (0,)


def stacked(kind: Any, rows: Sequence[Any]) -> Any:
    """Return a record of arrays from rows: tuples with values of all fields, or values by name, by default zero."""
    arrays, named = {}, [row if isinstance(row, dict) else dict(zip(kind._fields, row, strict=True)) for row in rows]
    for name, hint in get_type_hints(kind).items():
        axes, dtype = (get_args(x) for x in get_args(hint))
        arrays[name] = np.array([row.get(name, 0) for row in named], *dtype) if rows else np.zeros([0] * len(axes), *dtype)
    return kind(**arrays)


class Controllers(NamedTuple):
    """Drives with servos and motors; may be empty."""

    drive: Integers  # (k,) first drive whose input each controller writes
    kind: Integers  # (k,)
    inputs: IntegerMatrix  # (k, 4) controls of position, velocity, force and voltage, -1 for none; or of a quaternion
    states: IntegerMatrix  # (k, 5) indices of states among the activations, -1 for none
    bounds: Matrix  # (k, 8) lower and upper bound of each input
    values: Matrix  # (k, 13) step, gear, circle; kp, kv, ki, limit of z, rate, early; or kp, kv, torque, greatest norm
    motor: Matrix  # (k, 21) see `_motor`


def parts_of(a: Actuator) -> tuple[Actuator, ...]:
    """Return the drives with a single force and a linear law of which an actuator consists."""
    if a.orientation is not None and a.at is not None:
        along = (replace(a.at, wrench=(0.0, 0.0, 0.0, *axis)) for axis in AXES)
        linear = LINEAR | {"bias": (0.0, 0.0, 0.0), "force": UNBOUNDED, "gear": 1.0}
        return tuple(replace(a, name=f"{a.name}.{x}", at=at, **linear) for x, at in zip("xyz", along, strict=True))
    if a.servo is None:
        return (a,)
    main = replace(a, **LINEAR | {"bias": (0.0, *_linear(a.servo, a.motor))})
    if a.motor is None or not (a.motor.lugre or a.motor.cogging):
        return (main,)
    damping = a.motor.lugre.damping if a.motor.lugre else 0.0
    return main, replace(main, name=f"{a.name}.friction", bias=(0.0, 0.0, -damping), force=UNBOUNDED)


def _linear(servo: Servo, motor: DCMotor | None) -> tuple[float, float]:
    """Return the constant coefficients of the force with respect to length and velocity."""
    if motor is None or (motor.time_constant <= 0.0 and motor.voltage == inf and _is_controlled(servo)):
        return -servo.stiffness, -servo.damping
    return 0.0, -(motor.constant**2) / motor.resistance if motor.time_constant <= 0.0 else 0.0


def _is_controlled(servo: Servo) -> bool:
    return any(x is not DriveInput.VOLTAGE for x in servo.inputs)


def circle_of(a: Actuator) -> float:
    """Return the length of a full turn of the drive's joint, 2 pi for unit gear; 0 if the length is not an angle."""
    if a.at is None or a.at.reference is None or any(a.at.wrench[:3]):
        return 0.0
    x, y, z = a.at.wrench[3:]
    return 2.0 * pi * abs(a.gear) * sqrt(x * x + y * y + z * z)


def states_of(a: Actuator) -> tuple[int, ...]:
    if a.servo is None:
        return ()
    m, s = a.motor, a.servo
    there = (
        s.rate_limit < inf, s.integral > 0.0, m is not None and m.winding is not None, m is not None and m.lugre is not None,
        m is not None and m.time_constant > 0.0,
    )  # fmt: skip
    return tuple(k for k, x in enumerate(there) if x)


def controllers_of(actuators: Sequence[Actuator], step: float) -> Controllers:
    drive = control = state = 0
    rows = []
    for a in actuators:
        count, kinds = len(a.controls), states_of(a)
        if a.servo is not None or a.orientation is not None:
            rows.append(_controller(a, drive, control, {kind: state + i for i, kind in enumerate(kinds)}, step))
        drive, control = drive + len(parts_of(a)), control + count
        state += 3 if a.orientation and a.activation else len(kinds) or int(a.activation is not None)
    controllers: Controllers = stacked(Controllers, rows)
    return controllers


def _controller(a: Actuator, drive: int, control: int, states: dict[int, int], step: float) -> tuple[Any, ...]:
    places = [states.get(k, -1) for k in range(5)]
    if a.orientation is not None:
        x = a.orientation
        kind = QUATERNION if x.quaternion else ORIENTATION
        turning = _padded((step, 1.0, 0.0, x.stiffness, x.damping, x.torque, a.force[1]), 13)
        bounds = [*(UNBOUNDED if a.activation else a.control)] * 4
        return drive, kind, [control + i for i in range(4)], places, bounds, turning, _padded((), 21)
    s = a.servo or Servo()
    inputs = [control + s.inputs.index(x) if x in s.inputs else -1 for x in INPUTS]
    bounds = [y for x in INPUTS for y in (s.bounds(s.inputs.index(x)) if x in s.inputs else UNBOUNDED)]
    circle = circle_of(a) if a.motor is None else 0.0
    gains = (s.stiffness, s.damping, s.integral, s.integral_limit, s.rate_limit, float(s.early))
    numbers = (step, a.gear, circle, *gains)
    kind = SERVO if a.motor is None else MOTOR
    motor = _padded((), 21) if a.motor is None else _motor(a.motor, s, step)
    return drive, kind, inputs, places, bounds, _padded(numbers, 13), motor


def _padded(x: Sequence[float], size: int) -> list[float]:
    return [*x, *[0.0] * (size - len(x))]


def _motor(m: DCMotor, s: Servo, step: float) -> list[float]:
    """Return the numbers of a motor.

    They are R, K, α, θ0 - ambient, greatest voltage, whether it is controlled, T, greatest current rate, thermal resistance, C,
    σ0, σ1, coulomb, static, stribeck; the linear law's coefficients of length and velocity; amplitude, poles and phase; and the
    time by which the current's rate moves the current in a step.
    """
    w, f, c = m.winding, m.lugre, m.cogging
    heat = (w.coefficient, w.reference - w.ambient, w.resistance, w.capacitance) if w else (0.0, 0.0, 1.0, 1.0)
    electric = (m.voltage, float(_is_controlled(s)), m.time_constant, m.current_rate_limit)
    bristles, ripple = f or (0.0,) * 5, c or (0.0,) * 3
    return [m.resistance, m.constant, *heat[:2], *electric, *heat[2:], *bristles, *_linear(s, m), *ripple, _lag(m, step)]


def _lag(m: DCMotor, step: float) -> float:
    """Return the time after which a current at its initial rate has its value at the end of a step."""
    T = m.time_constant
    return T * (1.0 - decay_of(step / T)) if T > 0.0 else 0.0


def bounded_states(a: Actuator, step: float) -> list[tuple[float, float, float]]:
    """Return lower and upper bound of each state of a servo or motor, and the time by which its rate moves it in a step."""
    found = []
    for kind in states_of(a):
        (low, high), time = a.servo.states if a.servo and a.motor is None else UNBOUNDED, step
        if kind == INTEGRAL and a.motor is not None and a.servo is not None:
            low, high = -a.servo.integral_limit, a.servo.integral_limit
        if kind == CURRENT and a.motor is not None:
            time = _lag(a.motor, step)
        found.append((low, high, time))
    return found


# forces


def write_controllers(x: Controllers, at: Integers, row: Integers, now: DrivesNow) -> None:
    """Write the inputs of the drives' linear laws, and the rates of states.

    The inputs of orientation servos are written before.
    """
    for c in range(len(x.drive)):
        k, gear = x.drive[c], x.values[c, 1]
        if x.kind[c] >= ORIENTATION:
            write_turning(x, c, at, row, now)
            continue
        length, velocity = gear * now.coordinates[at[k]], gear * now.rates[row[k]]
        position, speed, force = set_points(x, c, now)
        z = integral_of(x, c, position - length, now)
        if x.kind[c] == SERVO:
            position -= whole_turns(position - length, x.values[c, 2])
            now.inputs[k] = servo_force(x, c, (position, speed, force), (0.0, 0.0, z))
        else:
            write_motor(x, c, (position, speed, force), (length, velocity, z), now)


def bounded_input(x: Controllers, c: int, i: int, control: Vector) -> float:
    """Return an input clipped to its range; 0 for a missing input."""
    if x.inputs[c, i] < 0:
        return 0.0
    return min(max(control[x.inputs[c, i]], x.bounds[c, 2 * i]), x.bounds[c, 2 * i + 1])


def whole_turns(x: float, circle: float) -> float:
    """Return the nearest multiple of a full turn; 0 without a circle."""
    return circle * floor(x / circle + 0.5) if circle > 0.0 else 0.0


def set_points(x: Controllers, c: int, now: DrivesNow) -> tuple[float, float, float]:
    """Return the set points of position and velocity, and the additional force.

    The servo's slew rate limits the first existing set point.
    """
    position, speed = bounded_input(x, c, POSITION, now.control), bounded_input(x, c, VELOCITY, now.control)
    force = bounded_input(x, c, FORCE, now.control)
    if x.states[c, SLEW] >= 0:
        if x.inputs[c, POSITION] >= 0:
            position = slewed(x, c, position, now)
        elif x.inputs[c, VELOCITY] >= 0:
            speed = slewed(x, c, speed, now)
        else:
            force = slewed(x, c, force, now)
    return position, speed, force


def slewed(x: Controllers, c: int, u: float, now: DrivesNow) -> float:
    """Return an input with its rate limited, and write the rate of that state."""
    h, j = x.values[c, 0], x.states[c, SLEW]
    before, most = now.act[j], x.values[c, 7] * h
    u -= whole_turns(u - before, x.values[c, 2])
    u = min(max(u, before - most), before + most)
    now.act_rate[j] = (u - before) / h if h > 0.0 else 0.0
    return u


def integral_of(x: Controllers, c: int, error: float, now: DrivesNow) -> float:
    """Return the integral of the position error, and write its rate."""
    j = x.states[c, INTEGRAL]
    if j < 0:
        return 0.0
    z, limit, h = now.act[j], x.values[c, 6], x.values[c, 0]
    error -= whole_turns(error, x.values[c, 2])
    error = min(error, 0.0) if z >= limit else max(error, 0.0) if z <= -limit else error
    now.act_rate[j] = error
    return z + h * error if x.values[c, 8] > 0.0 and x.kind[c] == SERVO else z


def servo_force(x: Controllers, c: int, u: tuple[float, float, float], motion: tuple[float, float, float]) -> float:
    """Return kp (u_p - l) + kv (u_v - l') + ki z + u_f, for l, l' and z."""
    v, (position, speed, force), (length, velocity, z) = x.values[c], u, motion
    return v[3] * (position - length) + v[4] * (speed - velocity) + v[5] * z + force


def write_motor(
    x: Controllers, c: int, u: tuple[float, float, float], motion: tuple[float, float, float], now: DrivesNow
) -> None:
    """Write the inputs of a motor's drives and the rates of its states, from `set_points`, and l, l' and z."""
    m, k, R, (length, velocity, _) = x.motor[c], x.drive[c], x.motor[c, 0], motion
    voltage, j = 0.0, x.states[c, TEMPERATURE]
    if m[5] > 0.0:
        torque = servo_force(x, c, u, motion)
        voltage = min(max(R / m[1] * torque + m[1] * velocity, -m[4]), m[4])
    voltage += bounded_input(x, c, VOLTAGE, now.control)
    if j >= 0:
        R *= 1.0 + m[2] * (now.act[j] - m[3])
    current = (voltage - m[1] * velocity) / max(R, TINY)
    if x.states[c, CURRENT] >= 0:
        current = current_of(x, c, current, now)
    if j >= 0:
        warming = now.act[x.states[c, CURRENT]] if x.states[c, CURRENT] >= 0 else current
        now.act_rate[j] = (R * warming * warming - now.act[j] / m[8]) / m[9]
    now.inputs[k] = m[1] * current - m[15] * length - m[16] * velocity
    if m[10] > 0.0 or m[17] != 0.0:
        now.inputs[k + 1] = m[17] * sin(m[18] * length + m[19]) - friction_of(x, c, velocity, now)


def current_of(x: Controllers, c: int, steady: float, now: DrivesNow) -> float:
    """Return the current of a motor with a given steady current, and write its rate."""
    j, T, most = x.states[c, CURRENT], x.motor[c, 6], x.motor[c, 7]
    rate = min(max((steady - now.act[j]) / T, -most), most)
    now.act_rate[j] = rate
    return now.act[j] + (rate * x.motor[c, 20] if x.values[c, 8] > 0.0 else 0.0)


def decay_of(x: float) -> float:
    """Return exp(-x) for x >= 0: 2**-k times the series of the remainder of x after k log 2."""
    if x > 745.0:  # the result underflows
        return 0.0
    k = floor(x / LOG_2 + 0.5)
    r, term, total = k * LOG_2 - x, 1.0, 1.0
    for i in range(1, 17):
        term *= r / i
        total += term
    for _ in range(k):
        total *= 0.5
    return total


def friction_of(x: Controllers, c: int, v: float, now: DrivesNow) -> float:
    """Return the friction of a motor without σ1 v, which is in the linear law, and write the rate of its bristles.

    The rate is the mean rate over a step at constant velocity, because bristles are much faster than a step.
    """
    m, j, h = x.motor[c], x.states[c, BRISTLES], x.values[c, 0]
    if j < 0:
        return 0.0
    z, ratio = now.act[j], v / max(m[14], TINY)
    decay = m[10] * abs(v) / max(m[12] + (m[13] - m[12]) * decay_of(ratio * ratio), TINY)
    lasts = (1.0 - decay_of(decay * h)) / (decay * h) if decay > TINY and h > 0.0 else 1.0
    now.act_rate[j] = lasts * (v - decay * z)
    return m[10] * z - m[11] * decay * z


def write_turning(x: Controllers, c: int, at: Integers, row: Integers, now: DrivesNow) -> None:
    """Write the torque of an orientation servo.

    Its coordinates are rotation vectors, and so are its inputs, unless they are quaternions. For unit quaternions p of the
    orientation and t of the target, the error is the rotation vector of p⁻¹ t.
    """
    v, k, b = x.values[c], x.drive[c], x.bounds[c]
    coordinates, rates, control, inputs = now.coordinates, now.rates, now.control, now.inputs
    present = quaternion_of(coordinates[at[k]], coordinates[at[k + 1]], coordinates[at[k + 2]])
    if x.kind[c] == QUATERNION:
        u = x.inputs[c]
        w, a, d, e = control[u[0]], control[u[1]], control[u[2]], control[u[3]]
        w, a, d, e = min(max(w, b[0]), b[1]), min(max(a, b[0]), b[1]), min(max(d, b[0]), b[1]), min(max(e, b[0]), b[1])
        size = sqrt(w * w + a * a + d * d + e * e)
        target = (a / size, d / size, e / size, w / size) if size > TINY else (0.0, 0.0, 0.0, 1.0)
    else:
        a, d, e = inputs[k], inputs[k + 1], inputs[k + 2]
        target = quaternion_of(min(max(a, b[0]), b[1]), min(max(d, b[0]), b[1]), min(max(e, b[0]), b[1]))
    error = rotation_vector(turn_from(present, target, 0), 0)
    for i in range(3):
        inputs[k + i] = v[3] * error[i] + v[5] - v[4] * rates[row[k + i]]
    norm = sqrt(inputs[k] * inputs[k] + inputs[k + 1] * inputs[k + 1] + inputs[k + 2] * inputs[k + 2])
    if norm > v[6]:
        for i in range(3):
            inputs[k + i] *= v[6] / norm


def quaternion_of(x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """Return the quaternion (x, y, z, w) of a rotation vector."""
    angle = sqrt(x * x + y * y + z * z)
    s = sin(0.5 * angle) / angle if angle > TINY else 0.5
    return s * x, s * y, s * z, cos(0.5 * angle)
