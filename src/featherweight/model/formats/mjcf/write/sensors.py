"""Sensors as elements of MJCF."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement

from ....types import WORLD, ContactReduction, Contents, SampleInterpolation, Sensed, SensedKind, Sensor, SensorKind
from ...xml import written
from .geoms import HALVES
from .losses import Losses

K = SensorKind
ON_SITES = (K.TOUCH, K.ACCELEROMETER, K.VELOCIMETER, K.GYRO, K.FORCE, K.TORQUE, K.MAGNETOMETER)
BETWEEN = (K.DISTANCE, K.NORMAL, K.FROMTO)
SUBTREES = (K.SUBTREECOM, K.SUBTREELINVEL, K.SUBTREEANGMOM)
TAGS = {SensedKind.SITE: "site", SensedKind.GEOM: "geom", SensedKind.JOINT: "joint", SensedKind.CAMERA: "camera"}


def write_sensors(root: Element, d: Contents, lost: Losses) -> None:
    """Write all sensors to a file that contains the objects that they measure.

    Volumes are written to its sites, the magnetic field to its options.
    """
    there = {kind: {x.get("name") for x in root.iter(tag)} for kind, tag in TAGS.items()}
    there[SensedKind.TENDON] = {x.get("name") for x in root.iterfind("tendon/*")}
    there[SensedKind.ACTUATOR] = {x.get("name") for x in root.iterfind("actuator/*")}
    bodies = {None, *(x.get("name") for x in root.iter("body"))}
    there |= {SensedKind.BODY: bodies, SensedKind.XBODY: bodies, SensedKind.SUBTREE: bodies}
    sites = {x.get("name"): x for x in root.iter("site")}
    fields = {s.field for s in d.sensors if s.kind is K.MAGNETOMETER}
    sensors = SubElement(root, "sensor")
    names = lost.unique([s.name for s in d.sensors], "sensors")
    for name, s in zip(names, d.sensors, strict=True):
        if not all(x is None or x.name in there[x.kind] for x in (s.on, s.reference)):
            lost.add("the sensors {}", s.name)
            continue
        element = SubElement(sensors, str(s.kind), {"name": name} | _ends(s))
        for key, value in {"cutoff": s.cutoff, "noise": s.noise}.items():
            if value:
                element.set(key, written(value))
        for key, words in _choices(s).items():
            element.set(key, words)
        if s.zone is not None and (place := s.reference if s.kind is K.INSIDESITE else s.on) is not None:
            size = (f * x for f, x in zip(HALVES[s.zone.type], s.zone.size, strict=True))
            _give_volume(sites[place.name], str(s.zone.type), written(*size), s, lost)
        if s.kind is K.MAGNETOMETER and s.field != min(fields):
            lost.add("the magnetic fields of the magnetometers {}", s.name)
    option = root.find("option")
    if fields and option is not None:
        option.set("magnetic", written(*min(fields)))


def _give_volume(site: Element, kind: str, size: str, s: Sensor, lost: Losses) -> None:
    if site.get("type", kind) != kind or site.get("size", size) != size:
        lost.add("the volumes of the sensors {}, whose sites have others", s.name)
    site.set("type", kind)
    site.set("size", size)


def _ends(s: Sensor) -> dict[str, str]:
    """Return attributes of the object that carries a sensor, and of its reference."""
    if s.kind is K.CONTACT:
        given = {k: x for k, x in ((1, s.on), (2, s.reference)) if x is not None}
        return {_short(x) + ("" if x.kind is SensedKind.SITE else str(k)): x.name or WORLD for k, x in given.items()}
    if s.on is None:
        return {}
    name = s.on.name or WORLD
    if s.kind is K.CAMPROJECTION and s.reference is not None:
        return {"site": name, "camera": str(s.reference.name)}
    if s.kind is K.RANGEFINDER:
        return {str(s.on.kind): name}
    if s.kind in ON_SITES:
        return {"site": name}
    if s.kind in SUBTREES:
        return {"body": name}
    if s.kind in BETWEEN:
        ends = (s.on, s.reference or s.on)
        return {f"{_short(x)}{k}": x.name or WORLD for k, x in enumerate(ends, start=1)}
    if s.on.kind in (SensedKind.JOINT, SensedKind.TENDON, SensedKind.ACTUATOR):
        return {str(s.on.kind): name}
    ends_of_frames = {"objtype": str(s.on.kind), "objname": name}
    if s.reference is None:
        return ends_of_frames
    if s.kind is K.INSIDESITE:
        return ends_of_frames | {"site": str(s.reference.name)}
    return ends_of_frames | {"reftype": str(s.reference.kind), "refname": s.reference.name or WORLD}


def _short(x: Sensed) -> str:
    return "body" if x.kind in (SensedKind.BODY, SensedKind.XBODY) else str(x.kind)


def _choices(s: Sensor) -> dict[str, str]:
    """Return attributes for a sensor's data and sampling."""
    given = {"data": " ".join(s.data)} if s.data else {}
    if s.slots != 1:
        given["num"] = str(s.slots)
    if s.reduction is not ContactReduction.NONE:
        given["reduce"] = str(s.reduction)
    if s.sampling is not None:
        given["nsample"] = str(s.sampling.samples)
        if s.sampling.interpolation is not SampleInterpolation.HOLD:
            given["interp"] = str(s.sampling.interpolation)
        if s.sampling.delay:
            given["delay"] = written(s.sampling.delay)
        if s.sampling.period:
            given["interval"] = written(s.sampling.period, s.sampling.phase)
    return given
