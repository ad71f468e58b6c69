"""Mirror images of robots: the left arm for a right arm.

With the reflection M, the image of a frame R, p is M R M, M p: a point x in a frame becomes M x in its image. A mirror
reverses the sense of rotation, so the axes of hinges point the other way and joints with one coordinate keep their
coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..placement import frame_with_z
from ..types import (
    Actuator,
    Body,
    Camera,
    Configuration,
    Inertia,
    Joint,
    JointType,
    Pose,
    Shape,
    ShapeType,
    Vector,
    as_vector,
    scale,
)
from .kept_parts import with_images_of_sensors
from .locking import joint_motion
from .references import D, grounded, moved

AXES = "xyz"
PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))  # indices of the entries of a rotational inertia

Mirror = Callable[[Vector], Vector]


def mirrored(d: D, axis: str) -> D:
    """Return the mirror image in the plane through the ground's origin across this axis."""
    d, k = grounded(d), AXES.index(axis)
    M = _mirror(k)

    def pose(at: Pose) -> Pose:
        return Pose(_turned(at, M, M), M(at.p))

    def body(b: Body) -> Body:
        principal = None if b.principal is None else _turned(Pose(b.principal), M, M)
        return replace(b, inertia=_inertia(b.inertia, k, M), principal=principal)

    image = moved(d, lambda body, at: (body, pose(at)))
    image = replace(
        image,
        bodies=tuple(map(body, d.bodies)),
        joints=tuple(_joint(j, M) for j in image.joints),
        actuators=tuple(_drive(a, M) for a in image.actuators),
        shapes=tuple(_shape(s, k, M) for s in d.shapes),
        cameras=tuple(_camera(c, M) for c in d.cameras),
        configurations=tuple(_configuration(c, {j.name: j for j in d.joints}, pose, M) for c in d.configurations),
    )
    return with_images_of_sensors(image, axis)


def _drive(a: Actuator, M: Mirror) -> Actuator:
    """Mirror a drive: a force at a frame is reflected, and a torque also changes its sense."""
    if a.at is None:
        return a
    force, torque = M(as_vector(a.at.wrench[:3])), scale(-1.0, M(as_vector(a.at.wrench[3:])))
    return replace(a, at=replace(a.at, wrench=(*force, *torque)))


def _mirror(k: int) -> Mirror:
    """Return the reflection across a coordinate axis."""

    def image(v: Vector) -> Vector:
        x, y, z = (-c if i == k else c for i, c in enumerate(v))
        return (x, y, z)

    return image


def _turned(at: Pose, M: Mirror, N: Mirror) -> tuple[Vector, Vector, Vector]:
    """Return M R N."""
    a, b, c = zip(*(M((x, y, z)) for x, y, z in zip(*map(N, at.R), strict=True)), strict=True)
    return (a, b, c)


def _joint(j: Joint, M: Mirror) -> Joint:
    axis = M(j.axis) if j.type is JointType.PRISMATIC else scale(-1.0, M(j.axis))
    return replace(j, axis=axis, anchor=M(j.anchor))


def _camera(c: Camera, M: Mirror) -> Camera:
    """Mirror a camera: its image is reflected, with left and right exchanged."""
    sensor = c.sensor
    if sensor is not None:
        x, y = sensor.principal
        sensor = sensor._replace(principal=(-x, y))
    return replace(c, placement=Pose(_turned(c.placement, M, _mirror(0)), M(c.placement.p)), sensor=sensor)


def _configuration(c: Configuration, joints: Mapping[str, Joint], pose: Callable[[Pose], Pose], M: Mirror) -> Configuration:
    """Mirror a configuration of the same joints; an unknown joint is the free-flyer of base="floating"."""

    def image(joint: Joint | None, q: tuple[float, ...]) -> tuple[float, ...]:
        if joint is None or joint.type in (JointType.SPHERICAL, JointType.FLOATING):
            x, y, z = scale(-1.0, M(as_vector(q[-4:-1])))
            return (*M(as_vector(q[:3])), x, y, z, q[-1]) if len(q) == JointType.FLOATING.nq else (x, y, z, q[-1])
        if joint.type is JointType.PLANAR:
            own = Pose(frame_with_z(_joint(joint, M).axis))
            move = own.inverse() @ pose(joint_motion(replace(joint, anchor=(0.0, 0.0, 0.0)), q)) @ own
            return (*move.p[:2], move.R[0][0], move.R[1][0])
        return q

    return replace(c, coordinates=tuple((name, image(joints.get(name), q)) for name, q in c.coordinates))


def _inertia(inertia: Inertia, k: int, M: Mirror) -> Inertia:
    xx, xy, xz, yy, yz, zz = (-x if k in (i, j) and i != j else x for x, (i, j) in zip(inertia.rotational, PAIRS, strict=True))
    return Inertia(inertia.mass, M(inertia.center), (xx, xy, xz, yy, yz, zz))


def _shape(s: Shape, k: int, M: Mirror) -> Shape:
    """Mirror a shape. Shapes other than meshes and height fields are symmetric across their axes, except a plane's normal."""
    height_field = s.type is ShapeType.HEIGHTFIELD
    own = _mirror(0 if s.type is ShapeType.PLANE or height_field else k)
    size, heights = s.size, None if s.heights is None else s.heights[::-1]
    if s.type is ShapeType.MESH:
        x, y, z = size
        size = M((x, y, z))
    linear, angular = own(as_vector(s.surface_velocity[:3])), scale(-1.0, own(as_vector(s.surface_velocity[3:])))
    placement = Pose(_turned(s.placement, M, own), M(s.placement.p))
    return replace(s, placement=placement, size=size, heights=heights, surface_velocity=(*linear, *angular))
