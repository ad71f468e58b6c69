"""Controllers and motors within drives: servos of position and velocity, servos of orientation, DC motors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

Range = tuple[float, float]
UNBOUNDED: Range = (-math.inf, math.inf)


class DriveInput(StrEnum):
    """Controls of a servo, in the order that they have among the controls."""

    POSITION = "position"  # set point of the drive's length
    VELOCITY = "velocity"  # set point of its velocity
    FORCE = "force"  # that is added
    VOLTAGE = "voltage"  # [V] at the terminals of a motor, behind its controller


@dataclass(frozen=True, slots=True)
class Servo:
    """A controller of a drive of length l: kp (u_p - l) + kv (u_v - l') + u_f + ki z, with z' = u_p - l.

    A set point that is not among the `inputs` is zero. States of the drive, in this order where they are there: the first
    input as `rate` limits it, and z.
    """

    inputs: tuple[DriveInput, ...] = (DriveInput.POSITION, DriveInput.VELOCITY)
    ranges: tuple[Range, ...] = ()  # least and greatest value of each input; all are free if there are none
    stiffness: float = 0.0  # kp
    damping: float = 0.0  # kv
    integral: float = 0.0  # ki
    integral_limit: float = math.inf  # beyond which z does not grow
    rate: float = math.inf  # greatest rate of the first input, which is a position unless the servo controls a motor
    early: bool = False  # whether the force is that of z after the step
    states: Range = UNBOUNDED  # that its states are kept in, without a motor

    def bounds(self, k: int) -> Range:
        """Return the least and greatest value of an input."""
        return self.ranges[k] if k < len(self.ranges) else UNBOUNDED


class Winding(NamedTuple):
    """The temperature T of a motor's winding over the ambient one: capacitance T' = R i² - T / resistance.

    The electrical resistance is R (1 + coefficient (T + ambient - reference)).
    """

    resistance: float  # thermal [K/W]
    capacitance: float  # [J/K]
    coefficient: float = 0.0  # [1/K]
    reference: float = 25.0  # temperature [°C] of the nominal resistance
    ambient: float = 25.0  # temperature [°C]


class LuGre(NamedTuple):
    """Friction by bristles of deflection z: stiffness z + damping z', z' = v - stiffness |v| z / g(v).

    g(v) = coulomb + (static - coulomb) exp(-(v / stribeck)²), by Canudas de Wit, Olsson, Åström and Lischinsky (1995).
    """

    stiffness: float
    damping: float
    coulomb: float
    static: float
    stribeck: float


class Cogging(NamedTuple):
    """The torque amplitude sin(poles l + phase)."""

    amplitude: float
    poles: float
    phase: float = 0.0


@dataclass(frozen=True, slots=True)
class DCMotor:
    """A motor of the current i: torque K i, with time_constant i' = (V - K l') / R - i, or without that delay.

    The servo of its drive, if it has a set point or a force among its inputs, asks for the torque τ, for which it sets
    V = R τ / K + K l', cut to `voltage`; VOLTAGE is added to that. Cogging and friction act beside the torque, not within the
    force limits of the drive. States of the drive, behind those of the servo: temperature, bristles, current.
    """

    resistance: float  # R [Ohm]
    constant: float  # K [N m/A, V s/rad]
    voltage: float = math.inf  # greatest one of the servo
    time_constant: float = 0.0  # [s], inductance over resistance
    current_rate: float = math.inf  # greatest one [A/s]
    winding: Winding | None = None
    friction: LuGre | None = None
    cogging: Cogging | None = None


@dataclass(frozen=True, slots=True)
class OrientationServo:
    """A servo of orientation: the torque stiffness log(R⁻¹ R_target) - damping ω + torque, in the axes of its frame.

    Its controls are a rotation vector, or a quaternion (w, x, y, z), each component within the drive's `control`. The drive's
    upper force limit bounds the norm of the torque. With an integrator as `activation` the rotation vector is that of three
    states.
    """

    stiffness: float
    damping: float = 0.0
    torque: float = 0.0
    quaternion: bool = False
