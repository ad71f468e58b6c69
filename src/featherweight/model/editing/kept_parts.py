"""Changes of sensors and configurations when joints and other objects are removed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import pairwise

from ..model_sensors import OF_BALLS
from ..types import JointType, SensedKind, Sensor, SensorKind, controls_of
from .acting import bodies_of
from .notes import noted
from .references import D, bodies_of_subtree, grounded, place

OF_FORCES = (SensorKind.FORCE, SensorKind.TORQUE)
GONE = "sensors of what is gone"
ACROSS_LOOPS = "sensors of forces on bodies that loops or tendons hold"
IN_A_MIRROR = "sensors that are no image of themselves in the mirror"


def with_sensors_of_rest(d: D) -> D:
    """Return the description without sensors whose bodies, frames, shapes, joints or actuators are missing; they are noted.

    Sensors of a joint's coordinate are removed too if the joint's new type does not have it.
    """
    if not d.sensors:
        return d
    joints = {j.name: j.type for j in d.joints}
    names: dict[SensedKind, set[str | None]] = {
        SensedKind.BODY: {None, *(b.name for b in d.bodies)},
        SensedKind.XBODY: {None, *(b.name for b in d.bodies)},
        SensedKind.SUBTREE: {None, *(b.name for b in d.bodies)},
        SensedKind.CAMERA: {c.name for c in d.cameras},
        SensedKind.GEOM: {s.name for s in d.shapes},
        SensedKind.SITE: {f.name for f in d.frames},
        SensedKind.JOINT: {*joints},
        SensedKind.TENDON: {t.name for t in d.tendons},
        SensedKind.ACTUATOR: {a.name for a in d.actuators},
    }

    def is_there(s: Sensor) -> bool:
        if not all(x is None or x.name in names[x.kind] for x in (s.on, s.reference)):
            return False
        if s.on is None or s.on.kind is not SensedKind.JOINT:
            return True
        kind = joints[str(s.on.name)]
        return kind is JointType.SPHERICAL if s.kind in OF_BALLS else kind.nv == 1

    return _only(d, is_there, GONE)


def without_sensors_across_loops(d: D) -> D:
    """Return the description without sensors of the forces that hold a body if a loop or a tendon holds the body too.

    The forces of loops and tendons are not measured.
    """
    of_forces = [s for s in d.sensors if s.kind in OF_FORCES]
    strings = [t for t in d.tendons if t.path]
    if not of_forces or not (d.loops or strings):
        return d
    on_ground = grounded(d)
    frames = {f.name: f.body for f in reversed(on_ground.frames)}
    ends = [(place(d, x.predecessor, x.name).body, place(d, x.successor, x.name).body) for x in on_ground.loops]
    ends += [pair for t in strings for pair in pairwise([*bodies_of(t)])]
    crossed = set()
    for s in of_forces:
        body = frames.get(str(s.on.name)) if s.on else None
        inside = bodies_of_subtree(on_ground, body) if body is not None else set()
        if body is not None and any((a in inside) != (b in inside) for a, b in ends):
            crossed.add(s.name)
    return _only(d, lambda s: s.kind not in OF_FORCES or s.name not in crossed, ACROSS_LOOPS)


def with_images_of_sensors(d: D, axis: str) -> D:
    """Return the mirrored description without rangefinders if the mirror reverses the z axes along which they look.

    Cameras look in the same direction.
    """

    def is_image(s: Sensor) -> bool:
        turned = s.kind is SensorKind.RANGEFINDER and s.on is not None and s.on.kind is SensedKind.SITE
        return axis != "z" or not turned

    return _only(d, is_image, IN_A_MIRROR)


def _only(d: D, is_kept: Callable[[Sensor], bool], kind: str) -> D:
    gone = [s.name for s in d.sensors if not is_kept(s)]
    return noted(replace(d, sensors=tuple(s for s in d.sensors if is_kept(s))), kind, gone) if gone else d


def with_coordinates_of(d: D, joints: Collection[str]) -> D:
    """Return the description with coordinates of only these joints, and controls of only the present actuators.

    Configurations without remaining coordinates are removed and noted.
    """
    controls = controls_of(d.actuators)
    kept = [
        replace(
            c,
            coordinates=tuple((name, x) for name, x in c.coordinates if name in joints),
            controls=tuple((name, u) for name, u in c.controls if name in controls),
        )
        for c in d.configurations
    ]
    gone = [c.name for c, was in zip(kept, d.configurations, strict=True) if was.coordinates and not c.coordinates]
    left = tuple(c for c in kept if c.name not in gone)
    return noted(replace(d, configurations=left), "configurations of joints that are gone", gone)
