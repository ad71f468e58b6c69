"""Robots of files in MuJoCo, and conversions of our states to MuJoCo's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import featherweight as fw
from featherweight.array_types import Array

STEP = 1e-3  # [s]


def urdf_in_mujoco(path: Path) -> Any:
    """Return the `MjSpec` of a URDF file without its meshes, with the step STEP."""
    text = re.sub(r"<(visual|collision)>.*?</\1>", "", path.read_text(), flags=re.S)
    compiler = "<mujoco><compiler fusestatic='true' discardvisual='true' strippath='false'/></mujoco>"
    spec = mujoco.MjSpec.from_string(re.sub(r"(<robot[^>]*>)", rf"\1{compiler}", text, count=1))
    spec.option.timestep = STEP
    return spec


def mujoco_states(m: Any, robot: fw.Robot, q: Array, v: Array, couplings: Sequence[fw.Coupling] = ()) -> Array:
    """Return MuJoCo's full states (robots, ...): quaternions with w first, linear velocity in the world, joints in its order.

    Our coordinates do not contain rotors; `couplings` give their angles.
    """
    states = np.zeros((len(q), mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    qm, vm = states[:, 1 : 1 + m.nq], states[:, 1 + m.nq : 1 + m.nq + m.nv]
    whole = {j.name: j.v_slice for j in robot.model.joints}
    rates = robot.spanning_velocity(q, v) if isinstance(robot, fw.ClosedRobot) else v
    free = next((j for j in robot.joints if j.type is fw.JointType.FLOATING), None)
    at = {j.name: j.q_slice for j in robot.joints}
    for k in range(m.njnt):
        joint, i, n = m.joint(k).name, m.jnt_qposadr[k], m.jnt_dofadr[k]
        if m.jnt_type[k] == mujoco.mjtJoint.mjJNT_FREE:
            assert free is not None
            x, w = q[:, free.q_slice], rates[:, whole[free.name]]
            qm[:, i : i + 3], qm[:, i + 3], qm[:, i + 4 : i + 7] = x[:, :3], x[:, 6], x[:, 3:6]
            vm[:, n : n + 3], vm[:, n + 3 : n + 6] = rotated(x[:, 3:], w[:, :3]), w[:, 3:]
            continue
        vm[:, n] = rates[:, whole[joint].start]
        if at[joint].stop > at[joint].start:
            qm[:, i] = q[:, at[joint].start]
    place = {m.joint(k).name: m.jnt_qposadr[k] for k in range(m.njnt)}
    for c in couplings:
        qm[:, place[c.joint]] = sum(ratio * qm[:, place[joint]] for joint, (ratio,) in c.terms)
    return states


def angles(m: Any, robot: fw.Robot) -> tuple[list[int], list[int]]:
    """Return the indices of joints with one degree of freedom in our configurations and in MuJoCo's."""
    at = {j.name: j.q_slice for j in robot.joints if j.q_slice.stop - j.q_slice.start == 1}
    names = [(k, m.joint(k).name) for k in range(m.njnt) if m.joint(k).name in at]
    return [at[name].start for _, name in names], [int(m.jnt_qposadr[k]) for k, _ in names]


def rotated(quaternion: Array, x: Array) -> Array:
    """Return vectors (robots, 3) rotated by quaternions (robots, 4), w last."""
    u, w = quaternion[:, :3], quaternion[:, 3:]
    return np.asarray(x + 2.0 * np.cross(u, np.cross(u, x) + w * x))


def forces_in_mujoco(m: Any, robot: fw.Robot, q: Array, tau: Array) -> Array:
    """Return MuJoCo's forces (robots, nv) of a tree: for a free joint, the force in the world and the torque in the body."""
    return mujoco_states(m, robot, q, tau)[:, 1 + m.nq : 1 + m.nq + m.nv]


def rates_in_mujoco(m: Any, robot: fw.Robot, q: Array, v: Array, a: Array) -> Array:
    """Return MuJoCo's accelerations (robots, nv) of a tree: for a free joint, those of its origin in the world."""
    free = next((j for j in robot.joints if j.type is fw.JointType.FLOATING), None)
    moved = a
    if free is not None:
        k = free.v_slice.start
        moved = a.copy()
        moved[:, k : k + 3] += np.cross(v[:, k + 3 : k + 6], v[:, k : k + 3])
    return mujoco_states(m, robot, q, moved)[:, 1 + m.nq : 1 + m.nq + m.nv]
