"""Descriptions of mechanisms, created in Python."""

from __future__ import annotations

from collections.abc import Iterable

from ..checks import checked
from .checks import check, of_names
from .description import Description
from .types import (
    Actuator,
    Body,
    Camera,
    Closure,
    Configuration,
    Coupling,
    Frame,
    Joint,
    Loop,
    ModelError,
    Sensor,
    Shape,
    Tendon,
    VectorLike,
)


@checked
def describe(
    bodies: Iterable[Body],
    joints: Iterable[Joint],
    *,
    couplings: Iterable[Coupling] = (),
    loops: Iterable[Loop] = (),
    closures: Iterable[Closure] = (),
    frames: Iterable[Frame] = (),
    shapes: Iterable[Shape] = (),
    tendons: Iterable[Tendon] = (),
    actuators: Iterable[Actuator] = (),
    sensors: Iterable[Sensor] = (),
    configurations: Iterable[Configuration] = (),
    disabled_collisions: Iterable[tuple[str | None, str | None]] = (),
    cameras: Iterable[Camera] = (),
    independent: Iterable[str] = (),
    dependent: Iterable[str] = (),
    gravity: VectorLike = (0.0, 0.0, -9.81),
    name: str = "mechanism",
) -> Description:
    """Return a description for `featherweight.build`: bodies, the joints of a spanning tree, and the constraints of its loops.

    Each body is the child of one joint, whose parent is another body or the ground (None, or "world" unless a body has that
    name). A body without a joint is a root. `couplings` make joints follow others, `loops` connect two bodies, `closures` are
    user-defined constraints on joint coordinates. Among the joints of loops, `independent` names joints with independent
    velocities and `dependent` names joints that depend on others; otherwise the library makes the best-conditioned choice.
    `configurations` have names and coordinates of joints. `disabled_collisions` are pairs of bodies (None for the ground)
    whose shapes do not collide.

    Raises ModelError for duplicate or unknown names, and for bodies that are the child of two joints.

        body = featherweight.Body("pole", featherweight.Inertia(1.0, (0.0, 0.0, 0.5), np.diag([0.1, 0.1, 0.01])))
        hinge = featherweight.Joint("hinge", "revolute", None, "pole", axis=(0.0, 1.0, 0.0))
        robot = featherweight.build(featherweight.describe([body], [hinge]))
    """
    description = Description(
        name=name,
        source=f"description {name!r}",
        bodies=tuple(bodies),
        joints=tuple(joints),
        frames=tuple(frames),
        gravity=gravity,
        loops=tuple(loops),
        couplings=tuple(couplings),
        closures=tuple(closures),
        independent=tuple(independent),
        dependent=tuple(dependent),
        shapes=tuple(shapes),
        tendons=tuple(tendons),
        actuators=tuple(actuators),
        sensors=tuple(sensors),
        configurations=tuple(configurations),
        disabled_collisions=tuple(disabled_collisions),
        cameras=tuple(cameras),
    )
    check(description, of_names)
    for s in description.shapes:
        if s.friction is not None and s.friction < 0.0:
            problem = f"shape {s.name!r}: the friction is negative ({s.friction:g})"
            raise ModelError(f"{description.source}: {problem}; give zero or more")
    return description
