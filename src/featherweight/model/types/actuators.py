"""Tendons and actuators."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from ...checks import checked
from ...summaries import summarized
from ..servos import DCMotor, OrientationServo, Range, Servo
from .frames import AnyFrame, PoseLike, VectorLike
from .joints import FACTORS, PassiveDynamics


@checked
class TendonPoint(NamedTuple):
    """A point [m] in the frame of a body (None: the ground) through which a tendon passes."""

    body: str | None
    position: VectorLike


@checked
class TendonWrap(NamedTuple):
    """A sphere, or a cylinder about z of `placement`, on a body: a tendon takes the shortest path around it.

    `side` is a point that selects the side on which the tendon passes. If `side` lies inside the sphere or cylinder, the
    tendon passes inside.
    """

    body: str | None
    placement: PoseLike
    radius: float
    cylinder: bool = False
    side: TendonPoint | None = None


@checked
class Pulley(NamedTuple):
    """The start of a branch of a tendon. Lengths of the branches up to the next pulley are divided by `divisor`."""

    divisor: float


@checked
@summarized
@dataclass(frozen=True, slots=True)
class Tendon(PassiveDynamics):
    """A length along which forces act.

    The length is the sum of coefficient × coordinate over `terms`, which are (joint, coefficient) for joints with one degree
    of freedom, or the length of a string along `path`. A path and each of its branches begin and end with points. The spring
    pulls if the length is above `rest` and pushes if it is below. Limits and forces are keyword arguments.
    """

    name: str
    terms: Annotated[tuple[tuple[str, float], ...] | Any, FACTORS] = ()
    path: tuple[TendonPoint | TendonWrap | Pulley, ...] = ()
    rest: tuple[float, float] = (0.0, 0.0)  # lengths between which the spring is slack
    force: tuple[float, float] = (-math.inf, math.inf)
    """Least and greatest sum of the forces of all drives along the tendon, before their limits and gears.

    If the sum is beyond, all forces are scaled.
    """


class ActivationType(StrEnum):
    """Laws by which the activation a of a drive follows its control u."""

    INTEGRATOR = "integrator"  # a' = u
    FILTER = "filter"  # a' = (u - a) / time_constant
    EXACT_FILTER = "exact_filter"  # as FILTER, solved exactly over a step with constant u
    MUSCLE = "muscle"  # a' = (u - a) / T(u, a) for u and a from 0 to 1 (Millard et al. 2013)


@checked
@dataclass(frozen=True, slots=True)
class Activation:
    """A state of a drive that replaces its control; initially zero.

    Muscles have different time constants for activation and deactivation; the transition between them extends over `smoothing`
    of u - a.
    """

    type: ActivationType | Any
    time_constant: float = 0.0  # [s]
    deactivation: float = 0.0  # [s]
    smoothing: float = 0.0
    range: tuple[float, float] = (-math.inf, math.inf)  # limits of the activation
    early: bool = False  # True: the force uses the activation after the step


@checked
@dataclass(frozen=True, slots=True)
class Muscle:
    """The force of a muscle: -peak (a FL(L) FV(V) + FP(L)), for its activation a, length L and velocity V.

    L is (length - slack) / optimum, and V is the velocity over `fastest` × optimum. FL is 1 at L = 1 and 0 outside `lengths`.
    FV is 0 at V = -1, 1 at rest and `lengthening` during fast lengthening. FP grows from L = 1 on, in proportion to `passive`.
    """

    peak: float  # [N]
    optimum: float  # length [m] of greatest force
    slack: float  # length [m] at which L is zero
    lengths: tuple[float, float] = (0.5, 1.6)
    fastest: float = 1.5  # [1/s]
    passive: float = 1.3
    lengthening: float = 1.2
    at_rest: Muscle | None = None  # muscle that gives the passive force, if its parameters differ


class SampleInterpolation(StrEnum):
    """Ways to interpolate between samples, named as in MJCF."""

    HOLD = "zoh"  # the previous sample
    LINEAR = "linear"
    CUBIC = "cubic"  # Catmull and Rom's spline


@checked
class ControlDelay(NamedTuple):
    """The delay of a control, which acts as it was `time` seconds before.

    The value is read from a limited number of samples, one for the beginning of each step; samples are zero initially. A delay
    shorter than a step becomes one step.
    """

    time: float  # [s]
    samples: int
    interpolation: SampleInterpolation | Any = SampleInterpolation.HOLD


class Axes(StrEnum):
    """The axes of a force or a torque: those of its frame, of its reference, or of the world."""

    FRAME = "frame"
    REFERENCE = "reference"
    WORLD = "world"


@checked
@dataclass(frozen=True, slots=True)
class FrameForce:
    """A force and a torque at a frame: `wrench` is (force, torque) per unit of a drive's force.

    With a `reference`, the opposite wrench acts there, and the drive's length is the displacement of the frame from the
    reference along the wrench. Bodies that carry both frames then feel nothing. Without a reference, the length is zero.

    With a `rod` [m], the force acts on a massless slider, which moves from the reference along the force, in the reference's
    axes. The rod connects the slider to the frame, the pin of a crank. The drive's length is the position of the slider.
    """

    frame: AnyFrame
    wrench: tuple[float, float, float, float, float, float]
    reference: AnyFrame | None = None
    force_axes: Axes | Any = Axes.FRAME
    torque_axes: Axes | Any = Axes.FRAME
    rod: float | None = None


@checked
@dataclass(frozen=True, slots=True)
class Actuator:
    """A drive with a control u: joint force = gear × clip(gain × clip(u) + b0 + b1 gear q + b2 gear q').

    `bias` are b0, b1, b2; a position servo of stiffness kp and damping kv has gain kp and bias (0, -kp, -kv). The drive acts
    on a joint with the coordinate q, or on a tendon, whose length replaces q, or by a force at a frame, or by `adhesion`.

    With `slopes` g1, g2 the gain is gain + g1 gear q + g2 gear q'. An `activation` replaces the control. A `muscle`, a `servo`
    or an `orientation` servo replaces gain and bias. A servo has several controls; with a `motor`, it sets the motor's
    voltage. An orientation servo acts at a frame with a reference.
    """

    name: str
    joint: str | None = None
    gear: float = 1.0
    gain: float = 1.0
    bias: VectorLike = (0.0, 0.0, 0.0)
    control: tuple[float, float] = (-math.inf, math.inf)  # least and greatest u
    force: tuple[float, float] = (-math.inf, math.inf)  # least and greatest force, before the gear
    tendon: str | None = None
    at: FrameForce | None = None
    slopes: tuple[float, float] = (0.0, 0.0)
    activation: Activation | None = None
    muscle: Muscle | None = None
    adhesion: str | None = None  # body whose contacts it pulls together; all contacts share its force equally
    servo: Servo | None = None
    motor: DCMotor | None = None
    orientation: OrientationServo | None = None
    delay: ControlDelay | None = None  # delay of its control

    @property
    def controls(self) -> Mapping[str, Range]:
        """The names of its controls, with the range of each. A single control has the actuator's name."""
        if self.orientation is not None:
            return {f"{self.name}.{axis}": self.control for axis in ("wxyz" if self.orientation.quaternion else "xyz")}
        if self.servo is not None:
            bounds = {f"{self.name}.{x}": self.servo.bounds(k) for k, x in enumerate(self.servo.inputs)}
            return bounds if len(bounds) != 1 else {self.name: self.servo.bounds(0)}
        return {self.name: self.control}


def controls_of(actuators: Iterable[Actuator]) -> dict[str, Range]:
    """Return the names and ranges of the controls of actuators, in order."""
    return {name: within for a in actuators for name, within in a.controls.items()}
