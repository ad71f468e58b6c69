"""A centipede: a chain of segments, each on two legs (Drumwright 2012, section 6.3).

The paper gives the joints of the legs: spherical joints for upper legs, revolute joints for lower legs. It gives no sizes,
masses or joints between segments. Here the segments bend sideways, by revolute joints, as real centipedes mostly do.
"""

from __future__ import annotations

from ..checks import checked
from ..model.builder import describe
from ..model.description import Description
from ..model.types import WORLD, Body, Frame, Inertia, Joint, JointType, Pose, Shape, ShapeType, Vector

LENGTH, WIDTH, HEIGHT = 0.10, 0.06, 0.03  # of a segment [m], a box
UPPER, LOWER, RADIUS = 0.05, 0.06, 0.004  # lengths of the legs' parts, and their radius [m]; cylinders
MASSES = (0.10, 0.01, 0.006)  # of a segment, an upper and a lower leg [kg]


@checked
def centipede(segments: int) -> Description:
    """Return a centipede of `segments` segments on 2 legs each; the first segment floats.

    It has 6 + (segments - 1) + 8 segments degrees of freedom. Bodies are segment-i, upper-i-left, lower-i-left, ...; the foot
    of a leg is the frame foot-i-left. Segments are ordered along x from the last to the first, y is left. With all joints at
    zero, upper legs point sideways and lower legs down; the feet are then 0.06 m below the centres of the segments. Raises
    ValueError if `segments` < 1.
    """
    if segments < 1:
        raise ValueError(f"segments: expected 1 or more, got {segments}")
    bodies: list[Body] = []
    joints: list[Joint] = []
    frames: list[Frame] = []
    shapes: list[Shape] = []
    for i in range(segments):
        name = f"segment-{i}"
        bodies.append(Body(name, _box(MASSES[0], (LENGTH, WIDTH, HEIGHT))))
        shapes.append(Shape(name, name, ShapeType.BOX, (0.9 * LENGTH, WIDTH, HEIGHT), color=(0.45, 0.2, 0.1, 1.0)))
        if i == 0:
            joints.append(Joint("base", JointType.FLOATING, WORLD, name))
        else:
            joints.append(_bend(i))
        for side, sign in (("left", 1.0), ("right", -1.0)):
            upper, lower = f"upper-{i}-{side}", f"lower-{i}-{side}"
            hip = Pose(p=(0.0, 0.5 * sign * WIDTH, 0.0))
            knee = Pose(p=(0.0, sign * UPPER, 0.0))
            middle_of_upper, middle_of_lower = (0.0, 0.5 * sign * UPPER, 0.0), (0.0, 0.0, -0.5 * LOWER)
            bodies += [
                Body(upper, _rod(MASSES[1], UPPER, 1, middle_of_upper)), Body(lower, _rod(MASSES[2], LOWER, 2, middle_of_lower))
            ]  # fmt: skip
            joints += [
                Joint(f"hip-{i}-{side}", JointType.SPHERICAL, name, upper, hip),
                Joint(f"knee-{i}-{side}", JointType.CONTINUOUS, upper, lower, knee, axis=(1.0, 0.0, 0.0)),
            ]
            frames.append(Frame(f"foot-{i}-{side}", lower, Pose(p=(0.0, 0.0, -LOWER))))
            across = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0))  # the cylinder's axis along y
            color = (0.8, 0.5, 0.2, 1.0)
            shapes += [
                Shape(upper, upper, ShapeType.CYLINDER, (RADIUS, UPPER), Pose(across, middle_of_upper), color=color),
                Shape(lower, lower, ShapeType.CYLINDER, (RADIUS, LOWER), Pose(p=middle_of_lower), color=color),
            ]
    return describe(bodies, joints, frames=frames, shapes=shapes, name=f"centipede_{segments}")


def _bend(i: int) -> Joint:
    """Return the joint between a segment and the one before it, halfway between their centres."""
    return Joint(
        f"bend-{i}", JointType.CONTINUOUS, f"segment-{i - 1}", f"segment-{i}", Pose(p=(-LENGTH, 0.0, 0.0)),
        anchor=(0.5 * LENGTH, 0.0, 0.0),
    )  # fmt: skip


def _box(mass: float, size: Vector) -> Inertia:
    x, y, z = (mass * s * s / 12.0 for s in size)
    return Inertia(mass, rotational=(y + z, 0.0, 0.0, x + z, 0.0, x + y))


def _rod(mass: float, length: float, axis: int, center: Vector) -> Inertia:
    along = 0.5 * mass * RADIUS**2
    across = mass * (length**2 / 12.0 + RADIUS**2 / 4.0)
    xx, yy, zz = (along if k == axis else across for k in range(3))
    return Inertia(mass, center, (xx, 0.0, 0.0, yy, 0.0, zz))
