"""Sensors of MJCF files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...types import JointType, Sensed, SensedKind, Sensor, SensorKind, SensorZone, Vector, as_vector
from ..xml import Names
from .levers import Lever
from .shapes import primitive

K = SensorKind
UNLIKE = {  # the ends of MuJoCo's constants that are not the elements' names
    K.JOINTACTUATORFRC: "JOINTACTFRC",
    K.DISTANCE: "GEOMDIST",
    K.NORMAL: "GEOMNORMAL",
    K.FROMTO: "GEOMFROMTO",
    K.TENDONACTUATORFRC: "TENDONACTFRC",
}
ZONES = ("SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX")
LIMITS = (K.JOINTLIMITPOS, K.JOINTLIMITVEL, K.JOINTLIMITFRC)
SENSORS = "sensors"  # that are not computed, in a report
DELAYED = "delays and rates of sensors"


def word(mujoco: Any, kind: int) -> str:
    """The element's name in MJCF of a kind of sensors, by MuJoCo's number."""
    end = str(mujoco.mjtSensor(kind).name).removeprefix("mjSENS_")
    return next((str(k) for k, other in UNLIKE.items() if other == end), end.lower())


def take_unknown_sensors(mujoco: Any, spec: Any) -> Counter[str]:
    """Take out of `spec` sensors of kinds that are not computed, and those on cameras and meshes; return their kinds."""
    left_out: Counter[str] = Counter()
    for sensor in list(spec.sensors):
        kind = word(mujoco, int(sensor.type))
        objects = {int(sensor.objtype), int(sensor.reftype)}
        if kind in (*K,) and int(mujoco.mjtObj.mjOBJ_CAMERA) not in objects and not _on_mesh(mujoco, spec, sensor):
            continue
        left_out[kind] += 1
        spec.delete(sensor)
    return left_out


def _on_mesh(mujoco: Any, spec: Any, sensor: Any) -> bool:
    """Whether a sensor is on the frame of a mesh, which MuJoCo moves to that of its inertia, or its volume is a mesh."""
    kinds, sites = (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF), int(mujoco.mjtObj.mjOBJ_SITE)
    apart = word(mujoco, int(sensor.type)) in (K.DISTANCE, K.NORMAL, K.FROMTO)
    zone = word(mujoco, int(sensor.type)) in (K.TOUCH, K.INSIDESITE)
    for kind, name in ((int(sensor.objtype), sensor.objname), (int(sensor.reftype), sensor.refname)):
        if kind == int(mujoco.mjtObj.mjOBJ_GEOM) and not apart:
            if any(g.name == name and (g.type in kinds or g.meshname) for g in spec.geoms):
                return True
        elif kind == sites and zone and any(x.name == name and x.type in kinds for x in spec.sites):
            return True
    return False


@dataclass(frozen=True)
class SensedNames:
    """Names of what sensors may be on, by MuJoCo's numbers."""

    bodies: Sequence[str]
    sites: Sequence[str]
    geoms: Mapping[int, str]
    joints: Mapping[int, tuple[str, JointType]]
    actuators: Mapping[int, str]
    tendons: Mapping[int, str]  # that are not those of one joint
    levers: Mapping[int, Lever]  # of the others


def read_sensors(mujoco: Any, model: Any, known: SensedNames, left_out: Counter[str]) -> tuple[Sensor, ...]:
    """Return the sensors that are computed; those on what is not read are counted in `left_out`, by kind."""
    names = Names(model.sensor(i).name for i in range(model.nsensor))
    sensors = []
    for i in range(model.nsensor):
        kind = K(word(mujoco, int(model.sensor_type[i])))
        on = _sensed(mujoco, known, int(model.sensor_objtype[i]), int(model.sensor_objid[i]))
        reference = _sensed(mujoco, known, int(model.sensor_reftype[i]), int(model.sensor_refid[i]))
        if on is LACKING or reference is LACKING or not _is_computed(mujoco, model, known, i, kind):
            left_out[str(kind)] += 1
            continue
        site = {K.TOUCH: model.sensor_objid, K.INSIDESITE: model.sensor_refid}.get(kind)
        name = model.sensor(i).name
        if not name:
            wish = f"{on.name}_{kind}" if on and on.name else str(kind)
            name = names.new(wish)
        sensors.append(
            Sensor(
                name,
                kind,
                on,
                reference,
                float(model.sensor_cutoff[i]),
                float(model.sensor_noise[i]),
                None if site is None else _zone(mujoco, model, int(site[i])),
                _magnetic(model) if kind is K.MAGNETOMETER else (0.0, 0.0, 0.0),
            )
        )
    return tuple(sensors)


LACKING = Sensed(SensedKind.SITE, "")
"""Something that a description lacks."""


def _sensed(mujoco: Any, known: SensedNames, kind: int, number: int) -> Sensed | None:
    """Return the thing that a sensor is on, or relative to; None for nothing."""
    kinds = mujoco.mjtObj
    if kind == int(kinds.mjOBJ_UNKNOWN) or number < 0:
        return None
    if kind in (int(kinds.mjOBJ_BODY), int(kinds.mjOBJ_XBODY)):
        named = SensedKind.BODY if kind == int(kinds.mjOBJ_BODY) else SensedKind.XBODY
        return Sensed(named, known.bodies[number] if number else None)
    if kind == int(kinds.mjOBJ_SITE):
        return Sensed(SensedKind.SITE, known.sites[number])
    joints = {j: name for j, (name, _) in known.joints.items()}
    for constant, named, names in (
        (kinds.mjOBJ_GEOM, SensedKind.GEOM, known.geoms),
        (kinds.mjOBJ_JOINT, SensedKind.JOINT, joints),
        (kinds.mjOBJ_TENDON, SensedKind.TENDON, known.tendons),
        (kinds.mjOBJ_ACTUATOR, SensedKind.ACTUATOR, known.actuators),
    ):
        if kind == int(constant) and number in names:
            return Sensed(named, names[number])
    return LACKING


def _is_computed(mujoco: Any, model: Any, known: SensedNames, i: int, kind: SensorKind) -> bool:
    """Whether a sensor of a kind that is computed is so, too."""
    number = int(model.sensor_objid[i])
    if kind is K.ACTUATORPOS:  # lengths of tendons may have an offset
        lever = known.levers.get(int(model.actuator_trnid[number, 0]))
        tendon = int(model.actuator_trntype[number]) == int(mujoco.mjtTrn.mjTRN_TENDON)
        return not tendon or lever is None or lever.offset == 0.0
    if kind is K.RANGEFINDER:  # MuJoCo 4 has more data than distances
        return int(model.sensor_dim[i]) == 1
    if kind in LIMITS:
        return known.joints[number][1] in (JointType.REVOLUTE, JointType.PRISMATIC)
    if kind in (K.DISTANCE, K.NORMAL, K.FROMTO):
        bodies = (mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_XBODY)
        for kinds, numbers in ((model.sensor_objtype, model.sensor_objid), (model.sensor_reftype, model.sensor_refid)):
            if kinds[i] in bodies:
                mine = np.flatnonzero(model.geom_bodyid == numbers[i])
                if not len(mine) or any(int(g) not in known.geoms for g in mine):
                    return False
    return True


def _zone(mujoco: Any, model: Any, site: int) -> SensorZone:
    kind, size = primitive(mujoco, int(model.site_type[site]), as_vector(model.site_size[site]))
    return SensorZone(kind, size)


def _magnetic(model: Any) -> Vector:
    return as_vector(model.opt.magnetic)


def sensed_bodies(mujoco: Any, model: Any) -> set[int]:
    """The bodies whose principal axes sensors refer to, by MuJoCo's numbers."""
    body = int(mujoco.mjtObj.mjOBJ_BODY)
    ends = ((model.sensor_objtype, model.sensor_objid), (model.sensor_reftype, model.sensor_refid))
    return {int(number) for kinds, numbers in ends for kind, number in zip(kinds, numbers, strict=True) if kind == body}


def unused_of_sensors(model: Any, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Sensors that are not computed, by kind, and delays and rates, which are not simulated."""
    if left_out:
        yield SENSORS, ", ".join(f"{count} {kind}" for kind, count in left_out.items())
    if not model.nsensor:
        return
    nothing = np.zeros(model.nsensor)
    fields = (getattr(model, name, nothing) for name in ("sensor_interval", "sensor_delay"))  # of later versions of MuJoCo
    times = [np.asarray(x).reshape(model.nsensor, -1) for x in fields]
    if slow := np.count_nonzero(np.concatenate(times, axis=1).any(axis=1)):
        yield DELAYED, f"{slow}"
