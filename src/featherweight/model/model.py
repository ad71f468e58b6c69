"""Models of robots: the parts that users see, in the frames of the file, and the arrays that algorithms read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from ..names import SuggestsNames
from ..spatial import RigidInertia
from ..summaries import summarized
from .contact_rules import Softness
from .topology import Topology
from .tree import Tree
from .types import (
    Coupling,
    FluidCoefficients,
    Frame,
    Inertia,
    JointDynamics,
    JointType,
    LengthTie,
    Loop,
    Pose,
    Sensor,
    SensorKind,
    Shape,
    SharedContents,
    Tendon,
    Vector,
)


@summarized
@dataclass(frozen=True, slots=True)
class MovingJoint(JointDynamics, SuggestsNames):
    """A joint with degrees of freedom, and its slices of q and v."""

    index: int
    name: str
    type: JointType
    parent: str | None  # moving body; None for the ground
    child: str
    axis: Vector  # in the child's frame of the file
    q_slice: slice
    v_slice: slice

    @property
    def efforts(self) -> tuple[float, float]:
        """The least and the greatest force of the joint's drive; infinite where the file gives none or 0."""
        most = self.effort if self.effort > 0.0 else math.inf
        return self.effort_range or (-most, most)

    @property
    def independent(self) -> bool:
        """True if no loop or coupling determines any of the joint's velocities."""
        return int(self.v_slice.stop - self.v_slice.start) == self.type.nv


@dataclass(frozen=True, slots=True)
class MovingBody(SuggestsNames):
    """A body that a joint moves, with everything that is fixed to it; `inertia` is that of the whole."""

    index: int
    name: str
    inertia: Inertia  # in the body's frame of the file
    links: tuple[str, ...]  # its links of the file, starting with itself

    @property
    def mass(self) -> float:
        """The mass [kg]."""
        return self.inertia.mass

    @property
    def center(self) -> Vector:
        """The centre of mass [m] in the body's frame of the file."""
        return self.inertia.center


@dataclass(frozen=True, slots=True)
class ModelFrame(SuggestsNames):
    """A named frame: the moving body that carries it (None for the ground) and its pose there.

    The pose is in the frame of the body in the file.
    """

    name: str
    body: str | None
    placement: Pose


class Placed(NamedTuple):
    """A pose in the internal frame of a row of the tree; row -1 is the ground."""

    row: int
    pose: Pose


class DragPart(NamedTuple):
    """A box with the mass and inertia of a link, or the ellipsoid of one of its shapes, for fluid forces.

    It is given in the frame of the moving body that carries the link.
    """

    body: str
    pose: Pose
    size: Vector  # [m] lengths of a box; semi-axes of an ellipsoid
    ellipsoid: FluidCoefficients | None = None


class PointMass(NamedTuple):
    """A mass at a point of a moving body, in its frame of the file, or of the ground (None)."""

    body: str | None
    mass: float
    center: Vector


class CompliantLoop(NamedTuple):
    """A compliant loop, and the centres of mass of the links that it connects, in their frames of the file."""

    loop: Loop
    centers: tuple[Vector, Vector]


class SubtreePart(NamedTuple):
    """Links of one moving body, or of the ground (None), in the subtree of a link.

    `inertia` is about the origin of the moving body's frame of the file, in that frame.
    """

    body: str | None
    links: tuple[str, ...]
    inertia: RigidInertia
    whole: bool  # True if these are all links of the moving body


@dataclass(frozen=True, slots=True)
class ModelSensor(SuggestsNames):
    """A sensor, the slice of its readings among those of all sensors, and the frames and bodies that it measures."""

    index: int
    name: str
    kind: SensorKind
    slice: slice
    sensor: Sensor  # the sensor of the file
    frame: Frame | None = None  # on a link
    reference: Frame | None = None
    parts: tuple[SubtreePart, ...] = ()  # parts of the subtree of the sensor's body
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())  # numbers of the shapes of a distance, or of contacts
    links: tuple[tuple[str | None, ...], tuple[str | None, ...]] = ((), ())  # links whose contacts count

    @property
    def dim(self) -> int:
        """The number of values of a reading."""
        return int(self.slice.stop - self.slice.start)


class CompliantLengths(NamedTuple):
    """Two lengths that springs and dampers couple."""

    name: str
    tie: LengthTie
    softness: Softness


@summarized
@dataclass(frozen=True)
class Model(SharedContents):
    """A robot: the parts that users see, and the arrays that algorithms read."""

    name: str
    source: str
    joints: tuple[MovingJoint, ...]
    bodies: tuple[MovingBody, ...]
    frames: tuple[ModelFrame, ...]
    tree: Tree
    placed_frames: tuple[Placed, ...]  # one for each frame
    placed_bodies: tuple[Placed, ...]  # the file's frame of each moving body
    unused: tuple[tuple[str, str], ...]
    solid: bool  # True if every moving body has mass, and inertia about every axis
    shapes: tuple[Shape, ...] = ()  # on moving bodies or on the ground (None), in these bodies' frames of the file
    tendons: tuple[Tendon, ...] = ()  # with paths on moving bodies, in their frames of the file
    shape_links: tuple[str | None, ...] = ()  # the link of each shape in the file; None for the ground
    obstacles: frozenset[str] = frozenset()  # shapes on the ground that bodies whose joints are on the ground may touch, too
    link_centers: tuple[tuple[str, Vector], ...] = ()  # centres of mass of links with shapes, in their frames
    disabled_collisions: tuple[tuple[str | None, str | None], ...] = ()  # pairs of links with shapes
    drag: tuple[DragPart, ...] = ()  # parts of links in a fluid
    compliant_loops: tuple[CompliantLoop, ...] = ()  # compliant equalities, which the robot's functions ignore
    compliant_couplings: tuple[Coupling, ...] = ()
    compliant_lengths: tuple[CompliantLengths, ...] = ()
    weight_compensated: tuple[PointMass, ...] = ()  # masses whose weight is compensated
    camera_masses: tuple[tuple[PointMass, ...], ...] = ()  # masses whose centre each camera follows or looks at; () for origins
    sensors: tuple[ModelSensor, ...] = ()
    massless: tuple[str, ...] = ()  # links that joints move without moving any mass: functions of masses are not defined

    @property
    def nq(self) -> int:
        return self.joints[-1].q_slice.stop if self.joints else 0

    @property
    def nv(self) -> int:
        return len(self.tree.parent)

    @property
    def mass(self) -> float:
        """The total mass of the moving bodies [kg]."""
        return math.fsum(b.mass for b in self.bodies)

    @property
    def topology(self) -> Topology:
        """The topology of the expanded tree, with one row for each degree of freedom."""
        return Topology(self.tree.parent)
