"""The whole contents of a robot file, its named configurations, and the errors and warnings of descriptions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from ...checks import checked
from ...summaries import VisibleMessage
from ..contact_rules import ContactPair, NeighbourRule
from .actuators import Actuator, Tendon
from .bodies import Body, Fluid, Shape
from .frames import Frame, VectorLike
from .joints import COEFFICIENTS, FACTORS, Closure, Coupling, Joint, Loop
from .sensors import Camera, Sensor


class ModelError(VisibleMessage, ValueError):
    """Raised for a robot description that is damaged, inconsistent or not supported. The message names file and element."""


class ModelWarning(VisibleMessage, UserWarning):
    """Issued for a description that is used although it is physically impossible or only partly supported.

    The message names the file and the element.
    """


LARGEST = 1e30  # largest number in a description, in SI units (the mass of the sun); short products do not overflow
SMALLEST_MASS = 1e-30  # [kg] mass of an electron: its reciprocal is not above LARGEST
SMALLEST_INERTIA = 1e-40  # [kg m², kg] least inertia that a joint moves: smaller ones have too large reciprocals
ROUNDING_RADIUS = 1e-6  # [m] a moment below that of the mass at this distance is a rounding error
ROOT_JOINT = "root_joint"  # name of the free-flyer that base="floating" adds at the root
PYRAMIDAL = "pyramidal"  # cones of friction
EXPLICIT_EULER = "explicit euler"  # MJCF's "euler" without implicit damping (flag eulerdamp)
START = "qpos0"  # name of the initial configuration of a robot's file
WORLD = "world"  # name of the ground, in descriptions without a body of this name
NAMED_PARTS = {"body": "bodies"} | {
    kind: f"{kind}s"
    for kind in ("joint", "frame", "loop", "coupling", "closure", "shape", "tendon", "actuator", "camera", "sensor")
}
"""Fields of a description whose elements have names, by the word for one element."""


@checked
@dataclass(frozen=True, slots=True)
class Configuration:
    """A named configuration: (joint, its coordinates), in the conventions of robots. Joints that are left out are at zero.

    It may contain coordinates of a free-flyer `root_joint`, which a robot has with base="floating", and of followers, which
    have no coordinates in a robot. `controls` are (actuator, its u); controls that are left out are zero.
    """

    name: str
    coordinates: Annotated[tuple[tuple[str, tuple[float, ...]], ...] | Any, COEFFICIENTS]
    controls: Annotated[tuple[tuple[str, float], ...] | Any, FACTORS] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedContents:
    """The parts of a robot file that the robot's model takes over unchanged."""

    actuators: tuple[Actuator, ...] = ()
    configurations: tuple[Configuration, ...] = ()
    cameras: tuple[Camera, ...] = ()  # on links of the file
    contact_pairs: tuple[ContactPair, ...] = ()  # pairs that always collide
    neighbours: NeighbourRule = NeighbourRule.JOINED  # rule for bodies whose shapes do not collide
    timestep: float | None = None  # [s] time step of the file
    integrator: str | None = None
    """Integrator of the file, in its words: MJCF's "euler", "rk4", "implicit", ..., and `EXPLICIT_EULER`."""
    impratio: float = 1.0  # MJCF: impedance of friction relative to normal forces
    noslip: int = 0  # MJCF: iterations after the contact problem that prevent slip
    cone: str | None = None  # friction cone, in MJCF's words
    fluid: Fluid | None = None


@checked
@dataclass(frozen=True, slots=True)
class Contents(SharedContents):
    """The complete, unchanged contents of one robot file, with its fixed joints and in its order.

    `Description` adds methods that return changed descriptions.

    `unused` describes the unused contents of the file, by kind: ("calibrations", "12 joints"). `virtual` names massless bodies
    between the joints of one MJCF body, which users do not see.
    """

    name: str
    source: str  # path, for messages
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...] = ()  # in addition to one for each body
    gravity: VectorLike = (0.0, 0.0, -9.81)
    unused: tuple[tuple[str, str], ...] = ()
    virtual: frozenset[str] = field(default_factory=frozenset)
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    closures: tuple[Closure, ...] = ()
    independent: tuple[str, ...] = ()  # joints of loops whose velocities are independent
    dependent: tuple[str, ...] = ()  # joints of loops that depend on others
    shapes: tuple[Shape, ...] = ()
    tendons: tuple[Tendon, ...] = ()
    disabled_collisions: tuple[tuple[str | None, str | None], ...] = ()  # links that do not collide; None is the ground
    sensors: tuple[Sensor, ...] = ()
    led_tendons: tuple[str, ...] = field(default=(), compare=False)  # of joints that follow one, as forces of that joint
