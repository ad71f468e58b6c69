"""Controllers and motors in drives: servos of position and velocity, servos of orientation, DC motors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from ..checks import checked

Range = tuple[float, float]
UNBOUNDED: Range = (-math.inf, math.inf)


class DriveInput(StrEnum):
    """Controls of a servo, in their order among the controls."""

    POSITION = "position"  # set point of the drive's length
    VELOCITY = "velocity"  # set point of the drive's velocity
    FORCE = "force"  # added force
    VOLTAGE = "voltage"  # [V] added at the terminals of a motor, after its controller


@checked
@dataclass(frozen=True, slots=True)
class Servo:
    """A controller of a drive of length l: kp (u_p - l) + kv (u_v - l') + u_f + ki z, with z' = u_p - l.

    A set point that is not among the `inputs` is zero. The drive's states, if present, are in this order: the first input
    after `rate_limit`, and z.
    """

    inputs: tuple[DriveInput | Any, ...] = (DriveInput.POSITION, DriveInput.VELOCITY)
    ranges: tuple[Range, ...] = ()  # least and greatest value of each input; unlimited if empty
    stiffness: float = 0.0  # kp
    damping: float = 0.0  # kv
    integral: float = 0.0  # ki
    integral_limit: float = math.inf  # limit of z
    rate_limit: float = math.inf  # greatest rate of the first input, which is a position unless the servo controls a motor
    early: bool = False  # True: the force uses z after the step
    states: Range = UNBOUNDED  # limits of its states, without a motor

    def bounds(self, k: int) -> Range:
        """Return the least and greatest value of an input."""
        return self.ranges[k] if k < len(self.ranges) else UNBOUNDED


@checked
class Winding(NamedTuple):
    """The temperature T of a motor's winding above the ambient temperature: capacitance T' = R i² - T / resistance.

    The electrical resistance is R (1 + coefficient (T + ambient - reference)).
    """

    resistance: float  # thermal [K/W]
    capacitance: float  # [J/K]
    coefficient: float = 0.0  # [1/K]
    reference: float = 25.0  # temperature [°C] of the nominal resistance
    ambient: float = 25.0  # temperature [°C]


@checked
class LuGre(NamedTuple):
    """Friction of bristles with the deflection z: stiffness z + damping z', z' = v - stiffness |v| z / g(v).

    g(v) = coulomb + (static - coulomb) exp(-(v / stribeck)²), by Canudas de Wit, Olsson, Åström and Lischinsky (1995).
    """

    stiffness: float
    damping: float
    coulomb: float
    static: float
    stribeck: float


@checked
class Cogging(NamedTuple):
    """The torque amplitude sin(poles l + phase)."""

    amplitude: float
    poles: float
    phase: float = 0.0


@checked
@dataclass(frozen=True, slots=True)
class DCMotor:
    """A motor with the current i: torque K i, with time_constant i' = (V - K l') / R - i, or without this delay.

    If the servo of its drive has a set point or a force among its inputs, it demands the torque τ and sets V = R τ / K + K l',
    clipped to `voltage`; VOLTAGE is added to this. Cogging and friction act in addition to the torque, outside the force
    limits of the drive. The drive's states, after those of the servo, are temperature, bristles and current.
    """

    resistance: float  # R [Ohm]
    constant: float  # K [N m/A, V s/rad]
    voltage: float = math.inf  # greatest voltage that the servo sets
    time_constant: float = 0.0  # [s], inductance over resistance
    current_rate_limit: float = math.inf  # greatest rate of the current [A/s]
    winding: Winding | None = None
    lugre: LuGre | None = None
    cogging: Cogging | None = None


@checked
@dataclass(frozen=True, slots=True)
class OrientationServo:
    """A servo of orientation: the torque stiffness log(R⁻¹ R_target) - damping ω + torque, in the axes of its frame.

    Its controls are a rotation vector, or a quaternion (w, x, y, z); each component is within the drive's `control`. The
    drive's upper force limit bounds the norm of the torque. With an integrator as `activation`, three states form the rotation
    vector.
    """

    stiffness: float
    damping: float = 0.0
    torque: float = 0.0
    quaternion: bool = False
