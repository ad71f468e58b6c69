"""Sensors of a model: the slices of their readings, and the frames, bodies and shapes that they measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from ..spatial import ZERO_RIGID, Mat3, RigidInertia, Sym3, Vec3
from .editing.references import links_of_subtree
from .equivalent_box import box_of_link
from .model import ModelSensor, SubtreePart
from .types import (
    Camera,
    ContactReduction,
    Contents,
    Frame,
    Inertia,
    JointType,
    ModelError,
    Pose,
    Sensed,
    SensedKind,
    Sensor,
    SensorField,
    SensorKind,
    Shape,
)  # fmt: skip

K = SensorKind
SCALARS = (
    K.TOUCH, K.CONTACT, K.RANGEFINDER, K.JOINTPOS, K.JOINTVEL, K.ACTUATORPOS, K.ACTUATORVEL, K.ACTUATORFRC, K.JOINTACTUATORFRC,
    K.JOINTLIMITPOS, K.JOINTLIMITVEL, K.JOINTLIMITFRC,
    K.TENDONPOS, K.TENDONVEL, K.TENDONACTUATORFRC, K.TENDONLIMITPOS, K.TENDONLIMITVEL, K.TENDONLIMITFRC,
    K.INSIDESITE, K.DISTANCE, K.E_POTENTIAL, K.E_KINETIC, K.CLOCK,
)  # fmt: skip
DIMENSIONS = dict.fromkeys(K, 3) | dict.fromkeys(SCALARS, 1) | {K.BALLQUAT: 4, K.FRAMEQUAT: 4, K.FROMTO: 6, K.CAMPROJECTION: 2}
"""The number of values of each kind of sensor, unless its `data` determines it."""

F = SensorField
FIELDS = {
    K.CONTACT: (F.FOUND, F.FORCE, F.TORQUE, F.DIST, F.POS, F.NORMAL, F.TANGENT, F.LINVEL, F.ANGVEL),
    K.RANGEFINDER: (F.DIST, F.DIR, F.ORIGIN, F.POINT, F.NORMAL, F.DEPTH),
}
"""The data that kinds of sensors may select, in MuJoCo's order; the first is the default."""

SIZES = dict.fromkeys(F, 3) | {F.FOUND: 1, F.DIST: 1, F.DEPTH: 1}

OF_LAST_STEP = (
    K.TOUCH, K.CONTACT, K.ACCELEROMETER, K.FORCE, K.TORQUE, K.FRAMELINACC, K.FRAMEANGACC, K.ACTUATORFRC, K.JOINTACTUATORFRC,
    K.JOINTLIMITFRC, K.TENDONACTUATORFRC, K.TENDONLIMITFRC,
)  # fmt: skip
"""Kinds that measure accelerations and forces."""

BETWEEN_SHAPES = (K.DISTANCE, K.NORMAL, K.FROMTO)
OF_CARRIED = (K.SUBTREECOM, K.SUBTREELINVEL, K.SUBTREEANGMOM, K.FORCE, K.TORQUE)
OF_THE_WHOLE = (K.E_POTENTIAL, K.E_KINETIC, K.CLOCK)
OF_BALLS = (K.BALLQUAT, K.BALLANGVEL)
OF_FRAMES = (SensedKind.BODY, SensedKind.XBODY, SensedKind.GEOM, SensedKind.SITE, SensedKind.CAMERA)

OnBody = Callable[[str], tuple[str | None, Pose]]
Ends = tuple[Sensed | None, Sensed | None]


def model_sensors(d: Contents, on_body: OnBody) -> tuple[ModelSensor, ...]:
    """Return the sensors of a description; `on_body` returns the moving body of a link, and the link's pose there.

    Raises ModelError for a sensor on an object that the description lacks.
    """
    return tuple(_ModelSensors(d, on_body).sensors()) if d.sensors else ()


class _ModelSensors:
    def __init__(self, d: Contents, on_body: OnBody) -> None:
        self.d, self.on_body = d, on_body
        self.bodies = {b.name: b for b in d.bodies}
        self.places = {
            SensedKind.SITE: _first(d.frames), SensedKind.GEOM: _first(d.shapes), SensedKind.CAMERA: _first(d.cameras),
        }  # fmt: skip

    def sensors(self) -> Iterator[ModelSensor]:
        start = 0
        for index, s in enumerate(self.d.sensors):
            self._require_joint_or_actuator(s)
            self._require_sampling(s)
            stop = start + self._dimension(s)
            apart, ends = s.kind in BETWEEN_SHAPES, (s.on, s.reference)
            of_contacts = s.kind is K.CONTACT
            yield ModelSensor(
                index, s.name, s.kind, slice(start, stop), s,
                frame=None if apart else self._frame(s, s.on),
                reference=None if apart or of_contacts else self._frame(s, s.reference),
                parts=self._parts(s),
                shapes=self._shapes_of(s, ends) if apart or of_contacts else ((), ()),
                links=self._links_of(s, ends) if of_contacts else ((), ()),
            )  # fmt: skip
            start = stop

    def _require_sampling(self, s: Sensor) -> None:
        """Raise ModelError for invalid sampling."""
        x = s.sampling
        if x is None:
            return
        good = (
            x.samples >= 1
            and 0.0 <= x.delay < math.inf
            and 0.0 <= x.period < math.inf
            and (-x.period < x.phase <= 0.0 or x.phase == 0.0)
        )
        if not good:
            message = "it takes samples >= 1, delay >= 0, period >= 0 and a phase in (-period, 0]"
            raise ModelError(f"{self.d.source}: sensor {s.name!r}: sampling {tuple(x)}: {message}; correct sampling=")

    def _dimension(self, s: Sensor) -> int:
        """Return the number of values of a sensor. Raises ModelError for data that its kind does not have."""
        known = FIELDS.get(s.kind, ())
        if s.data != tuple(f for f in known if f in s.data):
            message = f"those of {s.kind} are {', '.join(known)}, in this order" if known else f"{s.kind} has no choice of data"
            raise ModelError(f"{self.d.source}: sensor {s.name!r}: data {', '.join(s.data)}: {message}; correct data=")
        if s.on and s.on.kind is SensedKind.ACTUATOR and any(a.orientation for a in self.d.actuators if a.name == s.on.name):
            return 3
        if not known:
            return DIMENSIONS[s.kind]
        size = sum(SIZES[f] for f in fields_of(s))
        if s.kind is K.CONTACT:
            if s.slots < 1:
                raise ModelError(f"{self.d.source}: sensor {s.name!r}: {s.slots} slots; give at least 1")
            if s.reduction is ContactReduction.NETFORCE and {F.LINVEL, F.ANGVEL} & {*s.data}:
                raise ModelError(
                    f"{self.d.source}: sensor {s.name!r}: netforce has no linvel and angvel; leave them out of data="
                )
            return s.slots * size
        if s.on is None or s.on.kind is not SensedKind.CAMERA:
            return size
        width, height = next((c.resolution or (1, 1) for c in self.d.cameras if c.name == s.on.name), (1, 1))
        return width * height * size

    def _frame(self, s: Sensor, sensed: Sensed | None) -> Frame | None:
        """Return the frame that carries a sensor or is its reference; None for joints and actuators."""
        if sensed is None or sensed.kind not in OF_FRAMES:
            return None
        if sensed.kind in self.places:
            place = self.places[sensed.kind].get(sensed.name)
            if place is None:
                raise self._unknown(s, sensed)
            kind = "camera " if sensed.kind is SensedKind.CAMERA else ""  # its name may be that of another frame
            return Frame(f"{kind}{place.name}", place.body, Pose.of(place.placement, place.name))
        if sensed.name is None:
            return Frame("world", None)
        if sensed.name not in self.bodies:
            raise self._unknown(s, sensed)
        if sensed.kind is SensedKind.XBODY:
            return Frame(sensed.name, sensed.name)
        body = self.bodies[sensed.name]
        axes = body.principal or (box_of_link(body)[0] if body.inertia.mass else Pose().R)
        return Frame(sensed.name, sensed.name, Pose(axes, body.inertia.center))

    def _require_joint_or_actuator(self, s: Sensor) -> None:
        """Raise ModelError for a sensor on nothing, or on a joint or actuator that is unknown or lacks the coordinate."""
        if s.on is None:
            if s.kind in OF_THE_WHOLE or s.kind is K.CONTACT:
                return
            raise ModelError(f"{self.d.source}: sensor {s.name!r}: a sensor of kind {s.kind} needs an object; give it on=")
        if s.on.kind is SensedKind.ACTUATOR and s.on.name not in {a.name for a in self.d.actuators}:
            raise self._unknown(s, s.on)
        if s.on.kind is SensedKind.JOINT:
            kinds = {j.name: j.type for j in self.d.joints}
            if s.on.name not in kinds:
                raise self._unknown(s, s.on)
            kind = kinds[str(s.on.name)]
            if not (kind is JointType.SPHERICAL if s.kind in OF_BALLS else kind.nv == 1):
                problem = f"joint {s.on.name!r} is {kind}, of which there is no {s.kind}"
                raise ModelError(f"{self.d.source}: sensor {s.name!r}: {problem}; name another joint")

    def _unknown(self, s: Sensor, sensed: Sensed) -> ModelError:
        return ModelError(f"{self.d.source}: sensor {s.name!r}: there is no {sensed.kind} {sensed.name!r}; correct the name")

    def _parts(self, s: Sensor) -> tuple[SubtreePart, ...]:
        if s.kind is K.E_POTENTIAL:
            return tuple(p for p in self._parts_of([*self.bodies]) if p.body is None)
        if s.kind not in OF_CARRIED or s.on is None:
            return ()
        frame = self._frame(s, s.on)
        link = s.on.name if s.on.kind is not SensedKind.SITE else frame.body if frame else None
        return self._parts_of(links_of_subtree(self.d, link))

    def _parts_of(self, links: list[str]) -> tuple[SubtreePart, ...]:
        every, chosen = self._by_moving_body([*self.bodies]), self._by_moving_body(links)
        parts = []
        for body, names in chosen.items():
            inertia = ZERO_RIGID
            for name in names:
                inertia = inertia + rigid_at(self.bodies[name].inertia, self.on_body(name)[1])
            parts.append(SubtreePart(body, tuple(names), inertia, len(names) == len(every[body])))
        return tuple(parts)

    def _by_moving_body(self, links: list[str]) -> dict[str | None, list[str]]:
        found: dict[str | None, list[str]] = {}
        for name in links:
            if name in self.d.virtual:
                continue  # it has no mass
            found.setdefault(self.on_body(name)[0], []).append(name)
        return found

    def _shapes_of(self, s: Sensor, ends: Ends) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the numbers of the shapes at both ends of a distance, or of a contact between shapes."""
        first, second = (x if x is None or x.kind is SensedKind.GEOM or s.kind is not K.CONTACT else None for x in ends)
        return self._shapes(s, first), self._shapes(s, second)

    def _links_of(self, s: Sensor, ends: Ends) -> tuple[tuple[str | None, ...], tuple[str | None, ...]]:
        """Return the links whose contacts count, for each end."""

        def links(sensed: Sensed | None) -> tuple[str | None, ...]:
            if sensed is None or sensed.kind not in (SensedKind.BODY, SensedKind.SUBTREE):
                return ()
            if sensed.name is not None and sensed.name not in self.bodies:
                raise self._unknown(s, sensed)
            if sensed.kind is SensedKind.BODY:
                return (sensed.name,)
            subtree = links_of_subtree(self.d, sensed.name)
            return (None, *subtree) if sensed.name is None else tuple(subtree)

        return links(ends[0]), links(ends[1])

    def _shapes(self, s: Sensor, sensed: Sensed | None) -> tuple[int, ...]:
        """Return the numbers of a shape, or of all shapes of a body."""
        if sensed is None:
            return ()
        if sensed.kind is SensedKind.GEOM:
            parts = [k for k, shape in enumerate(self.d.shapes) if shape.part_of == sensed.name]
            found = parts or [k for k, shape in enumerate(self.d.shapes) if shape.name == sensed.name][:1]
        else:
            found = [k for k, shape in enumerate(self.d.shapes) if shape.body == sensed.name]
        if not found:
            raise self._unknown(s, sensed)
        return tuple(found)


def _first(elements: Sequence[Frame | Shape | Camera]) -> dict[str | None, Frame | Shape | Camera]:
    """Return the first element of each name."""
    return {x.name: x for x in reversed(elements)}


def fields_of(s: Sensor) -> tuple[SensorField, ...]:
    """Return the data of each contact or ray of a sensor; empty for kinds without a choice."""
    return s.data or FIELDS.get(s.kind, ())[:1]


def rigid_at(inertia: Inertia, pose: Pose) -> RigidInertia:
    """Return a link's inertia about the origin of the frame in which `pose` is given."""
    at_center = RigidInertia(inertia.mass, Vec3(0.0, 0.0, 0.0), Sym3(*inertia.rotational))
    R = Mat3(*(Vec3(*row) for row in pose.R))
    return at_center.translate(Vec3(*inertia.center)).rotate(R).translate(Vec3(*pose.p))
