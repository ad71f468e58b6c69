"""Transmissions, activations and muscles of actuators in MJCF files, from MuJoCo's compiled model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ....types import Activation, ActivationType, Axes, Frame, FrameForce, Muscle
from ..mujoco_types import MjModel, Mujoco
from ..numbers import as_pose, first_outputs, gears_of
from .levers import Lever
from .tendon_elements import as_range, tendon_names

TRANSMISSIONS = ("joint", "ball joint", "free joint", "tendon", "site", "body", "so3", "slidercrank")
DYNAMICS = {
    "integrator": ActivationType.INTEGRATOR,
    "filter": ActivationType.FILTER,
    "filterexact": ActivationType.EXACT_FILTER,
    "muscle": ActivationType.MUSCLE,
}
FORCE = 1e-15  # the least range of lengths


class Transmission(NamedTuple):
    """The object on which an actuator acts, its gear, and a constant part of its length; `word` is for a name."""

    word: str
    joint: str | None = None
    gear: float = 1.0
    offset: float = 0.0
    tendon: str | None = None
    at: FrameForce | None = None
    adhesion: str | None = None


def transmission_of(
    mujoco: Mujoco, model: MjModel, a: int, lever: Lever | None, joints: Mapping[int, str], bodies: Sequence[str]
) -> Transmission:
    """Return the transmission of actuator number a, one of `TRANSMISSIONS`; `lever` is that of one joint."""
    if lever is not None:
        joint = joints[lever.joint]
        return Transmission(joint, joint, lever.arm, lever.offset)
    kinds, kind, k = mujoco.mjtTrn, int(model.actuator_trntype[a]), int(model.actuator_trnid[a, 0])
    if kind == kinds.mjTRN_TENDON:
        name = tendon_names(model)[k]
        return Transmission(name, gear=float(gears_of(model)[a, 0]), tendon=name)
    f, g, h, x, y, z = (float(c) for c in gears_of(model)[a])
    if kind == kinds.mjTRN_BODY:
        return Transmission(bodies[k], gear=float(gears_of(model)[a, 0]), adhesion=bodies[k])
    if kind == kinds.mjTRN_SLIDERCRANK:
        slider = int(model.actuator_trnid[a, 1])
        pin, rod = _site(model, k, bodies), float(model.actuator_cranklength[a])
        crank = FrameForce(pin, (0.0, 0.0, 1.0, 0.0, 0.0, 0.0), _site(model, slider, bodies), Axes.REFERENCE, rod=rod)
        return Transmission(pin.name, gear=float(gears_of(model)[a, 0]), at=crank)
    turned = kind == getattr(kinds, "mjTRN_SO3", None)  # only in later versions of MuJoCo
    reference = int(model.actuator_trnid[a, 1])
    if kind == kinds.mjTRN_SITE or (turned and reference >= 0):
        axes = Axes.FRAME if reference < 0 or turned else Axes.REFERENCE
        frames = _site(model, k, bodies), None if reference < 0 else _site(model, reference, bodies)
        return Transmission(frames[0].name, at=FrameForce(frames[0], (f, g, h, x, y, z), frames[1], axes, axes))
    joint, body = joints[k], int(model.jnt_bodyid[k])
    in_parent = kind == kinds.mjTRN_JOINTINPARENT
    child = Frame(joint, bodies[body])
    if int(model.jnt_type[k]) == mujoco.mjtJoint.mjJNT_FREE:
        axes = Axes.WORLD if in_parent else Axes.FRAME
        return Transmission(joint, joint, at=FrameForce(child, (f, g, h, x, y, z), None, Axes.WORLD, axes))
    parent = int(model.body_parentid[body])
    placement = as_pose(model.body_pos[body], model.body_quat[body])
    parent_frame = Frame(f"{joint}_parent", bodies[parent] if parent else None, placement)
    axes = Axes.REFERENCE if in_parent else Axes.FRAME
    return Transmission(joint, joint, at=FrameForce(child, (0.0, 0.0, 0.0, f, g, h), parent_frame, axes, axes))


def _site(model: MjModel, k: int, bodies: Sequence[str]) -> Frame:
    body = int(model.site_bodyid[k])
    pose = as_pose(model.site_pos[k], model.site_quat[k])
    return Frame(model.site(k).name or f"site{k}", bodies[body] if body else None, pose)


def activation_of(mujoco: Mujoco, model: MjModel, a: int) -> Activation | None:
    """Return the activation of an actuator, if it has one."""
    word = mujoco.mjtDyn(int(model.actuator_dyntype[a])).name.removeprefix("mjDYN_").lower()
    if word in ("none", "pid", "dcmotor"):
        return None
    one, two, three = (float(x) for x in model.actuator_dynprm[a, :3])
    kind = DYNAMICS[word]
    muscle = kind is ActivationType.MUSCLE
    return Activation(
        kind,
        0.0 if kind is ActivationType.INTEGRATOR else one,
        two if muscle else 0.0,
        three if muscle else 0.0,
        as_range(model.actuator_actrange[a], model.actuator_actlimited[a]),
        bool(model.actuator_actearly[a]),
    )


def muscle_of(mujoco: Mujoco, model: MjModel, a: int, offset: float) -> Muscle | None:
    """Return the muscle of an actuator, if it is one; `offset` is a constant part of its length."""
    if int(model.actuator_gaintype[a]) != mujoco.mjtGain.mjGAIN_MUSCLE:
        return None
    active = _muscle(model, a, model.actuator_gainprm[a, :9], offset)
    if int(model.actuator_biastype[a]) == mujoco.mjtBias.mjBIAS_NONE:
        return replace(active, passive=0.0)
    resting = _muscle(model, a, model.actuator_biasprm[a, :9], offset)
    return active if resting == active else replace(active, at_rest=resting)


def _muscle(model: MjModel, a: int, numbers: Iterable[float], offset: float) -> Muscle:
    low, high, force, scale, shortest, longest, fastest, passive, lengthening = (float(x) for x in numbers)
    output = int(first_outputs(model)[a])
    start, end = (float(x) for x in model.actuator_lengthrange[output])
    peak = force if force >= 0.0 else scale / max(FORCE, float(model.actuator_acc0[output]))
    optimum = max((end - start) / max(high - low, FORCE), FORCE)
    return Muscle(peak, optimum, start - low * optimum - offset, (shortest, longest), fastest, passive, lengthening)
