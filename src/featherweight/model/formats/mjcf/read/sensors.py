"""Sensors of MJCF files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....model_sensors import FIELDS, SIZES
from ....types import (
    ContactReduction,
    JointType,
    SampleInterpolation,
    Sensed,
    SensedKind,
    Sensor,
    SensorField,
    SensorKind,
    SensorSampling,
    SensorZone,
    as_vector,
)  # fmt: skip
from ...xml import Names
from ..mujoco_types import MjModel, MjSpec, MjsSensor, Mujoco
from .levers import Lever
from .shapes import primitive

K = SensorKind
UNLIKE = {  # suffixes of MuJoCo's constants that differ from the elements' names
    K.JOINTACTUATORFRC: "JOINTACTFRC",
    K.DISTANCE: "GEOMDIST",
    K.NORMAL: "GEOMNORMAL",
    K.FROMTO: "GEOMFROMTO",
    K.TENDONACTUATORFRC: "TENDONACTFRC",
}
LIMITS = (K.JOINTLIMITPOS, K.JOINTLIMITVEL, K.JOINTLIMITFRC)
OF_ACTING_TENDONS = (K.TENDONACTUATORFRC, K.TENDONLIMITPOS, K.TENDONLIMITVEL, K.TENDONLIMITFRC)
SENSORS = "sensors"  # key of reports for sensors that are not computed
REDUCTIONS, INTERPOLATIONS = tuple(ContactReduction), tuple(SampleInterpolation)  # in the order of MuJoCo's numbers


def word(mujoco: Mujoco, kind: int) -> str:
    """Return the element's name in MJCF for a kind of sensors, given by MuJoCo's number."""
    end = str(mujoco.mjtSensor(kind).name).removeprefix("mjSENS_")
    return next((str(k) for k, other in UNLIKE.items() if other == end), end.lower())


def take_unknown_sensors(mujoco: Mujoco, spec: MjSpec) -> Counter[str]:
    """Remove sensors of kinds that are not computed, and those on meshes, from `spec`; return their kinds."""
    left_out: Counter[str] = Counter()
    for sensor in list(spec.sensors):
        kind = word(mujoco, int(sensor.type))
        if kind in (*K,) and not _on_mesh(mujoco, spec, sensor):
            continue
        left_out[kind] += 1
        spec.delete(sensor)
    return left_out


def _on_mesh(mujoco: Mujoco, spec: MjSpec, sensor: MjsSensor) -> bool:
    """Return whether a sensor's volume is a mesh, or its frame is that of a mesh, which MuJoCo moves to the inertial frame."""
    kinds, sites = (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF), int(mujoco.mjtObj.mjOBJ_SITE)
    apart = word(mujoco, int(sensor.type)) in (K.DISTANCE, K.NORMAL, K.FROMTO, K.CONTACT)
    zone = word(mujoco, int(sensor.type)) in (K.TOUCH, K.INSIDESITE, K.CONTACT)
    for kind, name in ((int(sensor.objtype), sensor.objname), (int(sensor.reftype), sensor.refname)):
        if kind == int(mujoco.mjtObj.mjOBJ_GEOM) and not apart:
            if any(g.name == name and (g.type in kinds or g.meshname) for g in spec.geoms):
                return True
        elif kind == sites and zone and any(x.name == name and x.type in kinds for x in spec.sites):
            return True
    return False


@dataclass(frozen=True)
class SensedNames:
    """Names of the objects that sensors may measure, by MuJoCo's numbers."""

    bodies: Sequence[str]
    sites: Sequence[str]
    geoms: Mapping[int, str]
    joints: Mapping[int, tuple[str, JointType]]
    actuators: Mapping[int, str]
    tendons: Mapping[int, str]
    levers: Mapping[int, Lever]  # of tendons of one joint
    cameras: Sequence[str]


def read_sensors(mujoco: Mujoco, model: MjModel, known: SensedNames, left_out: Counter[str]) -> tuple[Sensor, ...]:
    """Return the sensors that are computed; those on objects that are not read are counted in `left_out`, by kind."""
    names = Names(model.sensor(i).name for i in range(model.nsensor))
    sensors = []
    for i in range(model.nsensor):
        kind = K(word(mujoco, int(model.sensor_type[i])))
        on = _sensed(mujoco, known, kind, int(model.sensor_objtype[i]), int(model.sensor_objid[i]))
        reference = _sensed(mujoco, known, kind, int(model.sensor_reftype[i]), int(model.sensor_refid[i]))
        if on is LACKING or reference is LACKING or not _is_computed(mujoco, model, known, i, kind):
            left_out[str(kind)] += 1
            continue
        within = {K.TOUCH: on, K.INSIDESITE: reference, K.CONTACT: on}.get(kind)
        site = model.sensor_refid[i] if kind is K.INSIDESITE else model.sensor_objid[i]
        has_zone = within is not None and within.kind is SensedKind.SITE
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
                _zone(mujoco, model, int(site)) if has_zone else None,
                as_vector(model.opt.magnetic) if kind is K.MAGNETOMETER else (0.0, 0.0, 0.0),
                **_data(model, i, kind),
                sampling=_sampling(model, i),
            )
        )
    return tuple(sensors)


LACKING = Sensed(SensedKind.SITE, "")
"""An object that a description lacks."""


def _sensed(mujoco: Mujoco, known: SensedNames, of: SensorKind, kind: int, number: int) -> Sensed | None:
    """Return the object that carries a sensor, or its reference; None for nothing."""
    kinds = mujoco.mjtObj
    if kind == int(kinds.mjOBJ_UNKNOWN) or number < 0:
        return None
    if kind in (int(kinds.mjOBJ_BODY), int(kinds.mjOBJ_XBODY)):
        whole = SensedKind.SUBTREE if of is K.CONTACT else SensedKind.XBODY
        named = SensedKind.BODY if kind == int(kinds.mjOBJ_BODY) else whole
        return Sensed(named, known.bodies[number] if number else None)
    if kind == int(kinds.mjOBJ_SITE):
        return Sensed(SensedKind.SITE, known.sites[number])
    if kind == int(kinds.mjOBJ_CAMERA):
        return Sensed(SensedKind.CAMERA, known.cameras[number])
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


def _is_computed(mujoco: Mujoco, model: MjModel, known: SensedNames, i: int, kind: SensorKind) -> bool:
    """Return whether a sensor of a supported kind is supported with its data."""
    number = int(model.sensor_objid[i])
    if kind in OF_ACTING_TENDONS:
        return number not in known.levers
    if kind is K.ACTUATORPOS:  # lengths of tendons may have an offset
        lever = known.levers.get(int(model.actuator_trnid[number, 0]))
        tendon = int(model.actuator_trntype[number]) == int(mujoco.mjtTrn.mjTRN_TENDON)
        return not tendon or lever is None or lever.offset == 0.0
    if kind is K.CONTACT:  # later versions of MuJoCo may have more data, and torsional torques are not stored
        torque = FIELDS[kind].index(SensorField.TORQUE)
        chosen, turning = int(model.sensor_intprm[i][0]), np.concatenate([model.geom_condim, model.pair_dim]) > 3
        return chosen < 1 << len(FIELDS[kind]) and not (chosen & 1 << torque and turning.any())
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


def _zone(mujoco: Mujoco, model: MjModel, site: int) -> SensorZone:
    kind, size = primitive(mujoco, int(model.site_type[site]), as_vector(model.site_size[site]))
    return SensorZone(kind, size)


def _data(model: MjModel, i: int, kind: SensorKind) -> dict[str, Any]:
    """Return the data of each contact or ray of a sensor, and the reduction of contacts."""
    known = FIELDS.get(kind, ())
    if not known or not hasattr(model, "sensor_intprm"):  # MuJoCo 3.3.7 has no such choice
        return {}
    chosen, reduction = int(model.sensor_intprm[i][0]), int(model.sensor_intprm[i][1])
    data = tuple(f for k, f in enumerate(known) if chosen & 1 << k)
    given: dict[str, Any] = {"data": () if data == known[:1] else data}
    if kind is K.CONTACT:
        size = sum(SIZES[f] for f in data)
        given |= {"slots": int(model.sensor_dim[i]) // size, "reduction": REDUCTIONS[reduction]}
    return given


def _sampling(model: MjModel, i: int) -> SensorSampling | None:
    """Return a sensor's sampling; None if it measures at each instant. Without samples, MuJoCo does not delay."""
    if not hasattr(model, "sensor_history") or not int(model.sensor_history[i][0]):
        return None
    samples, interpolation = (int(x) for x in model.sensor_history[i])
    delay, (period, phase) = float(model.sensor_delay[i]), (float(x) for x in model.sensor_interval[i])
    if not delay and not period:
        return None  # unused samples
    return SensorSampling(samples, delay, period, phase, INTERPOLATIONS[interpolation])


def sensed_bodies(mujoco: Mujoco, model: MjModel) -> set[int]:
    """Return the bodies whose principal axes sensors use, by MuJoCo's numbers."""
    body = int(mujoco.mjtObj.mjOBJ_BODY)
    ends = ((model.sensor_objtype, model.sensor_objid), (model.sensor_reftype, model.sensor_refid))
    return {int(number) for kinds, numbers in ends for kind, number in zip(kinds, numbers, strict=True) if kind == body}


def unused_of_sensors(left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield sensors that are not computed, by kind."""
    if left_out:
        yield SENSORS, ", ".join(f"{count} {kind}" for kind, count in left_out.items())
