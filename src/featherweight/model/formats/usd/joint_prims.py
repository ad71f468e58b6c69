"""Joints of a stage as the file describes them: ends, frames, degrees of freedom with their limits, forces and drives."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...types import Actuator, ModelError, Pose, Vector, scale
from ..robot_numbers import ordered_limits, rotation_by_quaternion, unlimited
from ..unsupported import excused, nonnegative, tolerate
from .schemas import UsdPhysics
from .stage import AXES, DEGREE, Affine, Prim, UsdStage, path_of

DEGREES_OF_FREEDOM = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")  # in the order of their motion
SWING = "swing limits of ball joints"
DRIVES = "actuators"  # key of reports
OF_AXES = "physxJointAxis"


class Freedom(NamedTuple):
    """A degree of freedom: the name of its drives and limits, rotation or translation, its axis, and limits [rad, m].

    The axis is one of the joint's frame.
    """

    tag: str
    turns: bool
    axis: Vector
    lower: float = -math.inf
    upper: float = math.inf


class JointPrim(NamedTuple):
    """A joint; its ends are names of bodies, None for the ground, and its frames are in those bodies [m]."""

    prim: Prim
    where: str
    ends: tuple[str | None, str | None]
    frames: tuple[Pose, Pose]
    freedoms: tuple[Freedom, ...]
    excluded: bool = False


def read_joint(stage: UsdStage, prim: Prim) -> JointPrim | None:
    """Return a joint; None for a joint that is disabled, leaves everything free, or is left out."""
    where = stage.where(prim)
    if not stage.value(prim, "physics:jointEnabled", True):
        stage.note("joints that are disabled", path_of(prim))
        return None
    if prim.IsA(UsdPhysics.DistanceJoint) or "distance" in _instances(prim, "PhysicsLimitAPI"):
        stage.unsupported.refuse(where, "limits of the distance of bodies are not supported", "disable the joint")
        return None
    with excused("so the joint is left out"):
        return _read_joint(stage, prim, where)
    return None


def _read_joint(stage: UsdStage, prim: Prim, where: str) -> JointPrim | None:
    targets = [stage.target(prim, f"physics:body{k}") for k in (0, 1)]
    ends = tuple(None if t is None else stage.body_name(t) for t in targets)
    if ends[0] == ends[1]:
        what = "the ground" if ends[0] is None else f"body '{ends[0]}'"
        tolerate(where, f"it connects {what} to itself", "correct its body0 or body1", "left out")
        return None
    frames = [_frame(stage, prim, k, targets[k], where) for k in (0, 1)]
    freedoms = _freedoms(stage, prim, where)
    excluded = bool(stage.value(prim, "physics:excludeFromArticulation", False))
    return JointPrim(prim, where, (ends[0], ends[1]), (frames[0], frames[1]), freedoms, excluded)


def _frame(stage: UsdStage, prim: Prim, k: int, target: Prim | None, where: str) -> Pose:
    """Return the joint's frame in the body of one of its ends."""
    identity = Affine(Pose().R, (0.0, 0.0, 0.0))
    split = (identity if target is None else stage.in_body(target)).split()
    if split is None or min(split[1]) < 0.0:
        raise ModelError(f"{where}: the axes of its body{k} are sheared or mirrored; name the body itself")
    pose, scales = split
    x, y, z = stage.value(prim, f"physics:localPos{k}", (0.0, 0.0, 0.0))
    quaternion = stage.value(prim, f"physics:localRot{k}", (0.0, 0.0, 0.0, 1.0))
    turn = Pose().R
    with excused("so the joint is without a rotation"):
        turn = rotation_by_quaternion(quaternion, where)
    return pose @ Pose(turn, scale(stage.meter, (x * scales[0], y * scales[1], z * scales[2])))


# --- degrees of freedom


def _freedoms(stage: UsdStage, prim: Prim, where: str) -> tuple[Freedom, ...]:
    if prim.IsA(UsdPhysics.FixedJoint):
        return ()
    if prim.IsA(UsdPhysics.SphericalJoint):
        if any(stage.number(prim, f"physics:coneAngle{k}Limit", -1.0) >= 0.0 for k in (0, 1)):
            stage.note(SWING, path_of(prim))
        return tuple(Freedom(f"rot{letter}", True, axis) for letter, axis in AXES.items())
    for schema, tag in ((UsdPhysics.RevoluteJoint, "angular"), (UsdPhysics.PrismaticJoint, "linear")):
        if prim.IsA(schema):
            axis = stage.axis(prim, "physics:axis", "X")
            ends = [stage.number(prim, f"physics:{key}Limit", -x) for key, x in (("lower", math.inf), ("upper", -math.inf))]
            return (_limited(stage, Freedom(tag, tag == "angular", axis), ends, where),)
    limited = _instances(prim, "PhysicsLimitAPI")
    found = []
    for tag in DEGREES_OF_FREEDOM:
        ends = [-math.inf, math.inf]
        if tag in limited:
            ends = [stage.number(prim, f"limit:{tag}:physics:{key}", x) for key, x in zip(("low", "high"), ends, strict=True)]
        if ends[0] < ends[1]:  # otherwise it is locked
            found.append(_limited(stage, Freedom(tag, tag.startswith("rot"), AXES[tag[-1]]), ends, where))
    if sum(f.turns for f in found) == 3 and any(math.isfinite(x) for f in found if f.turns for x in (f.lower, f.upper)):
        stage.note(SWING, path_of(prim))
    return tuple(found)


def _limited(stage: UsdStage, freedom: Freedom, ends: list[float], where: str) -> Freedom:
    unit = DEGREE if freedom.turns else stage.meter
    lower, upper = ordered_limits(unlimited(ends[0]), unlimited(ends[1]), where)
    return freedom._replace(lower=lower * unit, upper=upper * unit)


def _instances(prim: Prim, schema: str) -> set[str]:
    """Return the names under which a multiple-apply schema is applied."""
    return {name.split(":", 1)[1] for name in prim.GetAppliedSchemas() if name.startswith(f"{schema}:")}


# --- forces and drives


def passive_numbers(stage: UsdStage, joint: JointPrim, freedom: Freedom) -> dict[str, Any]:
    """Return armature, damping, dry friction and greatest velocity of a degree of freedom, as in `Joint`."""
    prim, axis = joint.prim, f"{OF_AXES}:{freedom.tag}"
    force = stage.torque if freedom.turns else stage.force
    inertia = stage.kilogram * stage.meter**2 if freedom.turns else stage.kilogram
    angle = DEGREE if freedom.turns else stage.meter
    names = {
        "armature": (inertia, ("newton:armature", "physxJoint:armature", f"{axis}:armature")),
        "damping": (force / angle, ("newton:damping",)),
        "dry_friction": (force, ("newton:friction", f"{axis}:dynamicFrictionEffort")),
        "velocity": (angle, ("newton:velocityLimit", "physxJoint:maxJointVelocity", f"{axis}:maxJointVelocity")),
    }
    found: dict[str, float] = {}
    for key, (unit, attributes) in names.items():
        for attribute in attributes:
            x = None
            with excused("left out"):
                x = stage.value(prim, attribute, like=0.0)
            if x is not None and math.isnan(x):
                tolerate(joint.where, f"{attribute} is {x:g}", "give a number that is not negative", "left out")
            elif x is not None:
                found[key] = unlimited(nonnegative(x, attribute, joint.where) * unit)
    return found


class Drive(NamedTuple):
    """An actuator, its target [rad, m, rad/s, m/s], and its greatest force."""

    actuator: Actuator
    target: float
    effort: float


def read_drive(stage: UsdStage, joint: JointPrim, freedom: Freedom, name: str) -> Drive | None:
    """Return the drive of a degree of freedom, of a joint of this name; None without a drive.

    Its control is the target position; without stiffness it is the target velocity, and without damping too it is the force.
    """
    if freedom.tag not in _instances(joint.prim, "PhysicsDriveAPI"):
        return None
    with excused("so the drive is left out"):
        return _read_drive(stage, joint, freedom, name)
    return None


def _read_drive(stage: UsdStage, joint: JointPrim, freedom: Freedom, name: str) -> Drive | None:
    space = f"drive:{freedom.tag}:physics"
    if stage.value(joint.prim, f"{space}:type", "force") != "force":
        stage.note(DRIVES, f"a drive of accelerations at {joint.prim.GetPath()}")
        return None
    defaults = {"stiffness": 0.0, "damping": 0.0, "targetPosition": 0.0, "targetVelocity": 0.0, "maxForce": math.inf}
    kp, kd, position, velocity, most = (stage.number(joint.prim, f"{space}:{key}", x) for key, x in defaults.items())
    if min(kp, kd, most) < 0.0 or math.isinf(kp) or math.isinf(kd):
        raise ModelError(
            f"{joint.where}: stiffness, damping and maxForce of its drive must be finite, and not negative; correct them"
        )
    force, unit = (stage.torque, DEGREE) if freedom.turns else (stage.force, stage.meter)
    kp, kd, position, velocity, most = (
        kp * force / unit,
        kd * force / unit,
        position * unit,
        velocity * unit,
        unlimited(most * force),
    )
    gain, bias, target = 1.0, (0.0, 0.0, 0.0), 0.0
    if kp:
        gain, bias, target = kp, (kd * velocity, -kp, 0.0 - kd), position
    elif kd:
        gain, bias, target = kd, (0.0, 0.0, -kd), velocity
    return Drive(Actuator(name, name, gain=gain, bias=bias, force=(-most, most)), target, most)


class UsdMimic(NamedTuple):
    """A degree of freedom that follows another: factor × that + offset [rad, m]. Tags are None for a joint's only one."""

    tag: str | None
    leader: Prim
    leader_tag: str | None
    factor: float
    offset: float


def read_mimic(stage: UsdStage, joint: JointPrim, freedom: Freedom) -> UsdMimic | None:
    """Return the leader of a degree of freedom, by Newton's or PhysX's schema; None for one that follows nothing."""
    prim, unit = joint.prim, DEGREE if freedom.turns else stage.meter
    leader = stage.target(prim, "newton:mimicJoint")
    if leader is not None and stage.value(prim, "newton:mimicEnabled", True):
        factor, offset = stage.finite(prim, "newton:mimicCoef1", 1.0), stage.finite(prim, "newton:mimicCoef0", 0.0)
        return UsdMimic(None, leader, None, factor, offset * unit)
    own = (
        [freedom.tag]
        if freedom.tag in DEGREES_OF_FREEDOM
        else [t for t in DEGREES_OF_FREEDOM if t.startswith("rot") == freedom.turns]
    )
    for tag in own:
        leader = stage.target(prim, f"physxMimicJoint:{tag}:referenceJoint")
        if leader is not None:
            space = f"physxMimicJoint:{tag}"
            axis = stage.value(prim, f"{space}:referenceJointAxis", "")
            gearing, offset = (stage.finite(prim, f"{space}:{key}", x) for key, x in (("gearing", 1.0), ("offset", 0.0)))
            return UsdMimic(
                freedom.tag, leader, axis if leader.GetTypeName() == "PhysicsJoint" else None, -gearing, -offset * unit
            )
    return None


def keeps_apart(stage: UsdStage, joint: JointPrim) -> bool:
    """Return whether the bodies of a joint do not collide."""
    return not stage.value(joint.prim, "physics:collisionEnabled", False)


def stacks(stage: UsdStage, joint: JointPrim) -> bool:
    """Return whether several joints of the same two bodies move one after another (newton:jointsAddMobility)."""
    prim: Any = joint.prim
    while prim and not prim.IsPseudoRoot():
        if stage.value(prim, "newton:jointsAddMobility", False):
            return True
        prim = prim.GetParent()
    return False
