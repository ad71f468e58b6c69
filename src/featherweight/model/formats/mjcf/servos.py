"""PID and orientation servos and DC motors of MJCF files, from MuJoCo's compiled model."""

from __future__ import annotations

import math
from typing import Any

from ...servos import Cogging, DCMotor, DriveInput, LuGre, OrientationServo, Range, Servo, Winding
from .mujoco_types import MjModel
from .numbers import first_controls
from .read.tendon_elements import as_range

LINEAR: dict[str, Any] = {"gain": 1.0, "bias": (0.0, 0.0, 0.0)}  # replaces MuJoCo's parameters of the servo
QUATERNION = 2  # bits of `actuator_ctrlspec`
INPUTS = {DriveInput.POSITION: 1, DriveInput.VELOCITY: 2, DriveInput.FORCE: 4, DriveInput.VOLTAGE: 8}


def _bounds(model: MjModel, a: int, clipped: bool) -> tuple[Range, ...]:
    """Return the ranges of an actuator's controls."""
    start = int(first_controls(model)[a])
    places = range(start, start + int(model.actuator_ctrlnum[a]))
    return tuple(as_range(model.actuator_ctrlrange[i], clipped and model.actuator_ctrllimited[i]) for i in places)


def read_servo(model: MjModel, a: int, kind: str, clipped: bool) -> dict[str, Any]:
    """Return fields of the actuator with a gain of this kind; none for another kind. `clipped` says whether controls are."""
    gain, bias, dynamic = (
        [float(x) for x in values[a]] for values in (model.actuator_gainprm, model.actuator_biasprm, model.actuator_dynprm)
    )
    if kind == "so3":
        quaternion = int(model.actuator_ctrlspec[a]) == QUATERNION
        control = _bounds(model, a, clipped)[0]
        return LINEAR | {"control": control, "orientation": OrientationServo(gain[0], -bias[2] + 0.0, bias[0], quaternion)}
    if kind not in ("pid", "dcmotor"):
        return {}
    spec = int(model.actuator_ctrlspec[a])
    inputs = tuple(x for x, bit in INPUTS.items() if spec & bit)
    early = bool(model.actuator_actearly[a])
    bounds = _bounds(model, a, clipped)
    if kind == "pid":
        dynamic = dynamic if int(model.actuator_actnum[a]) else [0.0, 0.0]
        gains = -bias[1] + 0.0, -bias[2] + 0.0, gain[0], dynamic[0] or math.inf, dynamic[1] or math.inf
        states = as_range(model.actuator_actrange[a], model.actuator_actlimited[a])
        return LINEAR | {"servo": Servo(inputs, bounds, *gains, early, states)}
    R, K, warming, reference, kp, ki, kd, voltage = gain[:8]
    T, rate, resistance, capacitance, ambient, stiffness, damping, slew, limit = dynamic[:9]
    amplitude, poles, phase, coulomb, static, stribeck = bias[:6]
    motor = DCMotor(
        R,
        K,
        voltage or math.inf,
        T,
        rate or math.inf,
        Winding(resistance, capacitance, warming, reference, ambient) if resistance > 0.0 else None,
        LuGre(stiffness, damping, coulomb, static, stribeck) if stiffness > 0.0 else None,
        Cogging(amplitude, poles, phase) if amplitude else None,
    )
    servo = Servo(inputs, bounds, kp, kd, ki, limit or math.inf, slew or math.inf, early)
    return LINEAR | {"servo": servo, "motor": motor}


# writing


def servo_attributes(servo: Servo, motor: DCMotor | None) -> dict[str, Any]:
    """Return the attributes of an actuator in a file, of texts or numbers; `gainprm`, `biasprm` and `dynprm` among them."""
    tokens = {DriveInput.POSITION: "pos", DriveInput.VELOCITY: "vel", DriveInput.FORCE: "ff", DriveInput.VOLTAGE: "voltage"}
    found: dict[str, Any] = {"input": " ".join(tokens[x] for x in servo.inputs) or "none"}
    limit, rate = (0.0 if math.isinf(x) else x for x in (servo.integral_limit, servo.rate_limit))
    if servo.early or motor is not None:  # MuJoCo's motors always use the state after the step
        found["actearly"] = "true"
    if motor is None:
        stateful = servo.integral > 0.0 or rate > 0.0
        found |= {"gaintype": "pid", "dyntype": "pid" if stateful else "none", "dynprm": (limit, rate)}
        return found | {"gainprm": (servo.integral,), "biastype": "affine", "biasprm": (0.0, -servo.stiffness, -servo.damping)}
    found |= {f"{x}type": "dcmotor" for x in ("dyn", "gain", "bias")}
    w, f, c = motor.winding, motor.lugre or LuGre(0.0, 0.0, 0.0, 0.0, 0.0), motor.cogging or Cogging(0.0, 0.0)
    heat = (w.resistance, w.capacitance, w.ambient) if w else (0.0, 0.0, 0.0)
    voltage, current = (0.0 if math.isinf(x) else x for x in (motor.voltage, motor.current_rate_limit))
    gains = servo.stiffness, servo.integral, servo.damping, voltage
    found["gainprm"] = (motor.resistance, motor.constant, *((w.coefficient, w.reference) if w else (0.0, 0.0)), *gains)
    found["dynprm"] = (motor.time_constant, current, *heat, f.stiffness, f.damping, rate, limit)
    return found | {"biasprm": (*c, f.coulomb, f.static, f.stribeck)}
