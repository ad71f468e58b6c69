"""MuJoCo models of the same robots, and conversions of coordinates.

MuJoCo's quaternions are (w, x, y, z), and its free joints have linear velocities in the axes of the parent. MuJoCo allows free
joints only on the world. Therefore a floating joint is three slides and a ball here, and a planar joint two slides and a hinge;
slides also move along the parent's axes. The velocities are related by u = T(q) v, where T rotates the linear part of v by the
joint's rotation, so that

    M = T^T M_mujoco T,   tau = T^T tau_mujoco,   u' = T (v' + [omega x v_linear; 0])

Contacts and constraints are disabled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.model.placement import internal_frame
from featherweight.model.types import WORLD
from oracles.matrices import symmetric
from oracles.states import Array, each_state

WITH_ROTATION = (fw.JointType.SPHERICAL, fw.JointType.FLOATING)
WITH_POSITION = (fw.JointType.PLANAR, fw.JointType.FLOATING)
CRANK_ROD_AND_ROCKER = """
<body name="crank"><joint name="crank" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
  <body name="rod" pos="0.3 0 0"><joint name="rod" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.7 0 0.2" size="0.02"/>
  </body>
</body>
<body name="rocker" pos="1.0 0 -0.2"><joint name="rocker" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 0.4" size="0.02"/>
</body>"""  # the rod's end, 0.7 0 0.2, belongs to the rocker


class Peer:
    """A robot and its MuJoCo model, whose joints have the order of the robot's joints."""

    def __init__(self, robot: fw.Robot, model: Any) -> None:
        self.robot = robot
        self.model = model
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
        self.data = mujoco.MjData(model)
        assert model.nv == robot.nv

    # coordinates

    def _set(self, q: Array, v: Array | None = None) -> Array:
        """Set the data to a state; return T(q)."""
        x: list[float] = []
        T = np.eye(self.robot.nv)
        for joint in self.robot.joints:
            mine, start = q[joint.q_slice], joint.v_slice.start
            if joint.type in WITH_ROTATION:
                quaternion = mine[-4:]
                x += [*mine[:-4], quaternion[3], *quaternion[:3]]
                if joint.type in WITH_POSITION:
                    T[start : start + 3, start : start + 3] = Rotation.from_quat(quaternion).as_matrix()
            elif joint.type in WITH_POSITION:
                c, s = mine[2:]
                x += [mine[0], mine[1], np.arctan2(s, c)]
                T[start : start + 2, start : start + 2] = [[c, -s], [s, c]]
            else:
                x += [*mine]
        self.data.qpos[:] = x
        self.data.qvel[:] = 0.0 if v is None else T @ v
        return T

    def _turning(self, v: Array) -> Array:
        """Return omega x v_linear for joints whose linear velocity is in moving axes: T^-1 T' v."""
        result = np.zeros(self.robot.nv)
        for joint in self.robot.joints:
            mine = v[joint.v_slice]
            if joint.type is fw.JointType.FLOATING:
                result[joint.v_slice] = [*np.cross(mine[3:], mine[:3]), 0.0, 0.0, 0.0]
            elif joint.type is fw.JointType.PLANAR:
                result[joint.v_slice] = [-mine[2] * mine[1], mine[2] * mine[0], 0.0]
        return result

    # dynamics

    @each_state
    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Any:
        T = self._set(q, v)
        mujoco.mj_fwdPosition(self.model, self.data)
        mujoco.mj_fwdVelocity(self.model, self.data)
        self.data.qacc[:] = T @ (a + self._turning(v))
        mujoco.mj_inverse(self.model, self.data)
        return T.T @ self.data.qfrc_inverse

    @each_state
    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> Any:
        T = self._set(q, v)
        self.data.qfrc_applied[:] = T @ tau
        mujoco.mj_forward(self.model, self.data)
        self.data.qfrc_applied[:] = 0.0
        return T.T @ self.data.qacc - self._turning(v)

    def bias_force(self, q: Array, v: Array) -> Array:
        return self.inverse_dynamics(q, v, np.zeros_like(v))

    @each_state
    def mass_matrix(self, q: Array) -> Any:
        T = self._set(q)
        mujoco.mj_forward(self.model, self.data)
        M = np.empty((self.robot.nv, self.robot.nv))
        for j, column in enumerate(np.eye(self.robot.nv)):
            mujoco.mj_mulM(self.model, self.data, M[j], column)
        return T.T @ M @ T

    @each_state
    def kinetic_energy(self, q: Array, v: Array) -> Any:
        self._set(q, v)
        mujoco.mj_forward(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        return self.data.energy[1]

    @each_state
    def center_of_mass(self, q: Array) -> Any:
        """Return the centre of mass of the moving bodies."""
        self._set(q)
        mujoco.mj_kinematics(self.model, self.data)
        weights = np.where(self.model.body_weldid == 0, 0.0, self.model.body_mass)
        return weights @ self.data.xipos / np.sum(weights)

    # frames

    @each_state
    def site_placement(self, name: str, q: Array) -> Any:
        self._set(q)
        mujoco.mj_kinematics(self.model, self.data)
        site, result = self.data.site(name), np.eye(4)
        result[:3, :3], result[:3, 3] = site.xmat.reshape(3, 3), site.xpos
        return result

    @each_state
    def site_jacobian(self, name: str, q: Array) -> Any:
        """Return the Jacobian of a site, at the site and in the world's axes."""
        T = self._set(q)
        mujoco.mj_forward(self.model, self.data)
        J = np.zeros((6, self.robot.nv))
        mujoco.mj_jacSite(self.model, self.data, J[:3], J[3:], self.model.site(name).id)
        return J @ T

    @each_state
    def site_bias_acceleration(self, name: str, q: Array, v: Array) -> Any:
        """Return J' v in the world's axes at the site. T' v is added, because MuJoCo's J' belongs to u = T v."""
        T = self._set(q, v)
        mujoco.mj_forward(self.model, self.data)
        J, rate, site = np.zeros((6, self.robot.nv)), np.zeros((6, self.robot.nv)), self.model.site(name)
        mujoco.mj_jacSite(self.model, self.data, J[:3], J[3:], site.id)
        body = int(self.model.site_bodyid[site.id])
        mujoco.mj_jacDot(self.model, self.data, rate[:3], rate[3:], self.data.site(name).xpos, body)
        return rate @ self.data.qvel + J @ T @ self._turning(v)


def from_description(description: fw.Description, robot: fw.Robot | None = None) -> Peer:
    """Return a description with a fixed base as MJCF; `robot` is the robot that it builds, if available."""
    return Peer(robot or fw.build(description), mujoco.MjModel.from_xml_string(mjcf(description)))


def mjcf(description: fw.Description) -> str:
    moved = {joint.child for joint in description.joints}
    roots = [fw.Joint(f"{b.name}_root", fw.JointType.FIXED, WORLD, b.name) for b in description.bodies if b.name not in moved]
    lines = [
        '<mujoco><compiler angle="radian"/>',
        f'<option gravity="{_numbers(description.gravity)}"/>',
        "<worldbody>",
        *_bodies(description, [*roots, *description.joints], WORLD),
        "</worldbody></mujoco>",
    ]
    return "\n".join(lines)


def _bodies(description: fw.Description, joints: list[fw.Joint], parent: str) -> Iterator[str]:
    inertias = {body.name: body.inertia for body in description.bodies}
    for joint in joints:
        if joint.parent != parent:
            continue
        yield f'<body name="{joint.child}" {_pose(joint.placement)}>'
        yield from _joints(joint)
        inertia = inertias[joint.child]
        if inertia.mass:
            yield _inertial(inertia)
        for frame in description.frames:
            if frame.body == joint.child:
                yield f'<site name="{frame.name}" {_pose(frame.placement)}/>'
        yield from _bodies(description, joints, joint.child)
        yield "</body>"


def _joints(joint: fw.Joint) -> Iterator[str]:
    rest = f'armature="{joint.armature!r}"'
    pos = f'pos="{_numbers(joint.anchor)}"'
    R = np.array(internal_frame(joint).R)
    slides = [f'<joint type="slide" axis="{_numbers(R[:, k])}" {rest}/>' for k in range(3)]
    axis, ref = f'axis="{_numbers(joint.axis)}"', f'ref="{joint.zero!r}"'
    if joint.type in (fw.JointType.REVOLUTE, fw.JointType.CONTINUOUS):
        yield f'<joint type="hinge" {axis} {pos} {ref} {rest}/>'
    elif joint.type is fw.JointType.PRISMATIC:
        yield f'<joint type="slide" {axis} {ref} {rest}/>'
    elif joint.type is fw.JointType.SPHERICAL:
        yield f'<joint type="ball" {pos} {rest}/>'
    elif joint.type is fw.JointType.FLOATING:
        yield from (*slides, f'<joint type="ball" {pos} {rest}/>')
    elif joint.type is fw.JointType.PLANAR:
        yield from (*slides[:2], f'<joint type="hinge" {axis} {pos} {rest}/>')


def _inertial(inertia: fw.Inertia) -> str:
    """Return an element with principal moments, which MuJoCo takes unchanged; it computes those of full matrices only to 1e-12
    kg m²."""
    moments, axes = np.linalg.eigh(symmetric(inertia.rotational))
    axes[:, 2] *= np.linalg.det(axes)
    text = f'pos="{_numbers(inertia.center)}" mass="{inertia.mass!r}" diaginertia="{_numbers(moments)}"'
    return f'<inertial {text} quat="{_quaternion(axes)}"/>'


def _pose(pose: fw.Pose) -> str:
    return f'pos="{_numbers(pose.p)}" quat="{_quaternion(pose.R)}"'


def _quaternion(R: Any) -> str:
    return _numbers(Rotation.from_matrix(np.array(R)).as_quat(scalar_first=True))


def _numbers(x: Any) -> str:
    return " ".join(repr(float(value)) for value in x)
