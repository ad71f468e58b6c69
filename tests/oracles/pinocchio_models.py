"""Pinocchio models of the same robots, and conversions of coordinates.

Pinocchio sorts the children of a URDF link by the names of their joints, and this package keeps the file's order. Pinocchio's
coordinates of a continuous joint are (cos, sin). All other coordinates agree: a floating joint has (linear, angular) velocities
in the body's frame, and quaternions are (x, y, z, w).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

import featherweight as fw
from featherweight.model.placement import internal_frame
from featherweight.model.types import WORLD
from oracles import robots
from oracles.matrices import symmetric
from oracles.states import Array, States, each_state
from oracles.trees import tree

REFERENCES = {
    "local": pin.ReferenceFrame.LOCAL,
    "local_world_aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
    "world": pin.ReferenceFrame.WORLD,
}


class Peer:
    """A robot and its Pinocchio model. Results have this package's order of joints, and one row for each state."""

    def __init__(self, robot: fw.Robot, model: Any, offsets: dict[str, Any] | None = None) -> None:
        self.robot = robot
        self.model = model
        self.data = model.createData()
        model.gravity = pin.Motion(np.array([*robot.gravity, 0.0, 0.0, 0.0]))
        self.ids = [model.getJointId(joint.name) for joint in robot.joints]
        assert sorted(self.ids) == list(range(1, model.njoints))
        assert model.nv == robot.nv
        self.columns = np.concatenate([np.arange(model.idx_vs[i], model.idx_vs[i] + model.nvs[i]) for i in self.ids])
        self.offsets = offsets or {}
        for joint, i in zip(robot.joints, self.ids, strict=True):
            armature = np.array(model.armature)
            armature[model.idx_vs[i] : model.idx_vs[i] + model.nvs[i]] = joint.armature
            model.armature = armature

    # coordinates

    def q(self, q: Array) -> Array:
        result = np.zeros(self.model.nq)
        for joint, i in zip(self.robot.joints, self.ids, strict=True):
            mine, start, width = q[joint.q_slice], self.model.idx_qs[i], self.model.nqs[i]
            if len(mine) == 1 and width == 2:
                mine = np.array([np.cos(mine[0]), np.sin(mine[0])])
            result[start : start + width] = mine
        return result

    def v(self, v: Array) -> Array:
        result = np.zeros(self.model.nv)
        result[self.columns] = v
        return result

    def forces(self, forces: Array) -> Any:
        """Convert forces on bodies, (nbodies, 6) about and in the body's frame of the file, to Pinocchio's joints."""
        result = pin.StdVec_Force()
        result.extend([pin.Force.Zero() for _ in range(self.model.njoints)])
        for body, f in zip(self.robot.bodies, forces, strict=True):
            [k] = [k for k, joint in enumerate(self.robot.joints) if joint.child == body.name]
            offset = self.offsets.get(body.name, pin.SE3.Identity())
            result[self.ids[k]] = offset.act(pin.Force(f))
        return result

    # dynamics

    @each_state
    def inverse_dynamics(self, q: Array, v: Array, a: Array, forces: Array | None = None) -> Any:
        more = () if forces is None else (self.forces(forces),)
        return pin.rnea(self.model, self.data, self.q(q), self.v(v), self.v(a), *more)[self.columns]

    @each_state
    def forward_dynamics(self, q: Array, v: Array, tau: Array, forces: Array | None = None) -> Any:
        more = () if forces is None else (self.forces(forces),)
        return pin.aba(self.model, self.data, self.q(q), self.v(v), self.v(tau), *more)[self.columns]

    @each_state
    def mass_matrix(self, q: Array) -> Any:
        M = np.triu(pin.crba(self.model, self.data, self.q(q)))
        return (M + np.triu(M, 1).T)[np.ix_(self.columns, self.columns)]

    @each_state
    def bias_force(self, q: Array, v: Array) -> Any:
        return pin.nonLinearEffects(self.model, self.data, self.q(q), self.v(v))[self.columns]

    @each_state
    def gravity_force(self, q: Array) -> Any:
        return pin.computeGeneralizedGravity(self.model, self.data, self.q(q))[self.columns]

    @each_state
    def kinetic_energy(self, q: Array, v: Array) -> Any:
        """Return Pinocchio's kinetic energy of the bodies plus that of the rotors."""
        bare = self.model.copy()
        bare.armature = np.zeros(bare.nv)
        bodies = pin.computeKineticEnergy(bare, self.data, self.q(q), self.v(v))
        rotors = np.array(self.model.armature)[self.columns]
        return bodies + 0.5 * rotors @ v**2

    @each_state
    def potential_energy(self, q: Array) -> Any:
        return pin.computePotentialEnergy(self.model, self.data, self.q(q))

    @each_state
    def center_of_mass(self, q: Array) -> Any:
        return pin.centerOfMass(self.model, self.data, self.q(q))

    # frames

    def _frame(self, name: str) -> int:
        kinds = (pin.FrameType.BODY, pin.FrameType.OP_FRAME)
        [frame] = [i for i, f in enumerate(self.model.frames) if f.name == name and f.type in kinds]
        return frame

    @each_state
    def frame_placement(self, names: list[str], q: Array) -> Any:
        frames = [self._frame(name) for name in names]
        pin.framesForwardKinematics(self.model, self.data, self.q(q))
        return [self.data.oMf[i].homogeneous for i in frames]

    @each_state
    def frame_jacobian(self, names: list[str], reference: str, q: Array) -> Any:
        frames, kind = [self._frame(name) for name in names], REFERENCES[reference]
        pin.computeJointJacobians(self.model, self.data, self.q(q))
        pin.updateFramePlacements(self.model, self.data)
        return [pin.getFrameJacobian(self.model, self.data, i, kind)[:, self.columns] for i in frames]

    @each_state
    def frame_velocity(self, names: list[str], reference: str, q: Array, v: Array) -> Any:
        frames, kind = [self._frame(name) for name in names], REFERENCES[reference]
        pin.forwardKinematics(self.model, self.data, self.q(q), self.v(v))
        return [pin.getFrameVelocity(self.model, self.data, i, kind).vector for i in frames]

    @each_state
    def frame_bias_acceleration(self, names: list[str], reference: str, q: Array, v: Array) -> Any:
        """Return J' v by Pinocchio's time derivative of its Jacobian."""
        frames, kind = [self._frame(name) for name in names], REFERENCES[reference]
        u = self.v(v)
        pin.computeJointJacobiansTimeVariation(self.model, self.data, self.q(q), u)
        pin.updateFramePlacements(self.model, self.data)
        return [pin.getFrameJacobianTimeVariation(self.model, self.data, i, kind) @ u for i in frames]

    def frame_motions(self, names: list[str], x: States) -> list[dict[str, FrameMotion]]:
        """Return the motion of frames in their own axes for each state."""
        local = pin.ReferenceFrame.LOCAL
        frames = {name: self._frame(name) for name in names}

        def one(k: int) -> dict[str, FrameMotion]:
            q, v, a = self.q(x.q[k]), self.v(x.v[k]), self.v(x.a[k])
            model, data = self.model, self.data
            pin.computeJointJacobiansTimeVariation(model, data, q, v)
            pin.forwardKinematics(model, data, q, v, a)
            pin.updateFramePlacements(model, data)
            return {
                name: FrameMotion(
                    pin.SE3(data.oMf[i]),
                    pin.getFrameVelocity(model, data, i, local),
                    pin.getFrameAcceleration(model, data, i, local),
                    pin.getFrameJacobian(model, data, i, local)[:, self.columns],
                    pin.getFrameJacobianTimeVariation(model, data, i, local)[:, self.columns],
                )
                for name, i in frames.items()
            }

        return [one(k) for k in range(len(x.q))]

    @each_state
    def frame_accelerations(
        self, names: list[str], reference: str, q: Array, v: Array, a: Array, classical: bool = False
    ) -> Any:
        frames, kind = [self._frame(name) for name in names], REFERENCES[reference]
        call = pin.getFrameClassicalAcceleration if classical else pin.getFrameAcceleration
        pin.forwardKinematics(self.model, self.data, self.q(q), self.v(v), self.v(a))
        return [call(self.model, self.data, i, kind).vector for i in frames]

    @each_state
    def frame_jacobian_rate(self, names: list[str], reference: str, q: Array, v: Array) -> Any:
        frames, kind = [self._frame(name) for name in names], REFERENCES[reference]
        pin.computeJointJacobiansTimeVariation(self.model, self.data, self.q(q), self.v(v))
        pin.updateFramePlacements(self.model, self.data)
        return [pin.getFrameJacobianTimeVariation(self.model, self.data, i, kind)[:, self.columns] for i in frames]

    @each_state
    def joint_jacobian_rate(self, q: Array, v: Array) -> Any:
        return pin.computeJointJacobiansTimeVariation(self.model, self.data, self.q(q), self.v(v))[:, self.columns]


class FrameMotion(NamedTuple):
    """Motion of one frame, in its own axes: placement, velocity, spatial acceleration, Jacobian and its rate."""

    at: Any
    v: Any
    a: Any
    J: Array
    dJ: Array

    def relative_to(self, other: FrameMotion) -> FrameMotion:
        """Return the motion relative to another frame.

        v = v_f - X v_g, with X the motion transform from g to f, whose rate is X' = -v x X.
        """
        X = self.at.inverse() * other.at
        v, seen = self.v - X.act(other.v), X.act(other.v)
        J = X.action @ other.J
        a = self.a - X.act(other.a) + v.cross(seen)
        dJ = self.dJ - X.action @ other.dJ + v.action @ J
        return FrameMotion(other.at.inverse() * self.at, v, a, self.J - J, dJ)

    def expressed(self, reference: str) -> FrameMotion:
        """Return the motion in the axes of a reference; accelerations and J' are the rates of these components."""
        if reference == "local":
            return self
        if reference == "world":
            X = self.at
            return FrameMotion(
                X, X.act(self.v), X.act(self.a), X.action @ self.J, X.action @ (self.dJ + self.v.action @ self.J)
            )
        turn = pin.SE3(self.at.rotation, np.zeros(3))
        spin = pin.Motion(np.zeros(3), self.v.angular)
        rate = turn.action @ (self.dJ + spin.action @ self.J)
        return FrameMotion(self.at, turn.act(self.v), turn.act(self.a), turn.action @ self.J, rate)


@functools.cache
def example(name: str) -> Peer:
    """Return a robot of `example-robot-data`, which each program reads from the same file."""
    path = str(robots.path(name))
    if name in robots.FLOATING:
        return Peer(robots.one_of_all(name), pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer()))
    return Peer(robots.one_of_all(name), pin.buildModelFromUrdf(path))


def peer_of(name: str) -> Peer:
    """Return a robot of `example-robot-data` or a tree of `oracles.trees`."""
    return example(name) if name in robots.NAMES else from_description(*tree(name))


def from_description(description: fw.Description, robot: fw.Robot | None = None) -> Peer:
    """Build a description with a fixed base from Pinocchio's own joints; `robot` is the robot that it builds, if available.

    Pinocchio's joints turn about the origin of their frame. The frame of a joint with an anchor lies at the anchor, and
    `offsets` has the body's frame of the file in it. A description does not name the axes of a plane, so the frame of a planar
    joint is turned as in this package.
    """
    model = pin.Model()
    where: dict[str | None, tuple[int, Any]] = {WORLD: (0, pin.SE3.Identity())}
    moved = {joint.child for joint in description.joints}
    roots = {body.name for body in description.bodies if body.name not in moved}
    where.update((name, where[WORLD]) for name in roots)
    waiting = [joint for joint in reversed(description.joints) if joint.parent in where]
    while waiting:  # depth first, as Pinocchio's composite-rigid-body algorithm requires
        joint = waiting.pop()
        where[joint.child] = _add(model, joint, *where[joint.parent])
        waiting += [j for j in reversed(description.joints) if j.parent == joint.child]
    for body in description.bodies:
        index, offset = where[body.name]
        model.appendBodyToJoint(index, _inertia(body.inertia), offset)
        model.addFrame(pin.Frame(body.name, index, 0, offset, pin.FrameType.BODY), False)
    for frame in description.frames:
        index, offset = where[frame.body]
        placed = offset * _se3(frame.placement)
        model.addFrame(pin.Frame(frame.name, index, 0, placed, pin.FrameType.OP_FRAME), False)
    robot = robot or fw.build(description)
    return Peer(robot, model, {body.name: where[body.name][1] for body in robot.bodies})


def _add(model: Any, joint: fw.Joint, parent: int, offset: Any) -> tuple[int, Any]:
    """Add a joint; return its index, and the child's frame of the file in the joint's frame."""
    placement = offset * _se3(joint.placement)
    kind = joint.type
    if kind == fw.JointType.FIXED:
        return parent, placement
    frame = pin.SE3(np.eye(3), np.array(joint.anchor))
    axis = np.array(joint.axis)
    if kind in (fw.JointType.REVOLUTE, fw.JointType.CONTINUOUS):
        placement = placement * frame * pin.SE3(pin.exp3(-joint.zero * axis), np.zeros(3))
        return model.addJoint(parent, pin.JointModelRevoluteUnaligned(axis), placement, joint.name), frame.inverse()
    if kind == fw.JointType.PRISMATIC:
        placement = placement * frame * pin.SE3(np.eye(3), -joint.zero * axis)
        return model.addJoint(parent, pin.JointModelPrismaticUnaligned(axis), placement, joint.name), frame.inverse()
    if kind == fw.JointType.PLANAR:
        frame = _se3(internal_frame(joint))
        assert np.allclose(frame.rotation[:, 2], axis, rtol=0.0, atol=1e-14)
    made = {
        fw.JointType.PLANAR: pin.JointModelPlanar,
        fw.JointType.SPHERICAL: pin.JointModelSpherical,
        fw.JointType.FLOATING: pin.JointModelFreeFlyer,
    }[kind]
    return model.addJoint(parent, made(), placement * frame, joint.name), frame.inverse()


def _se3(pose: fw.Pose) -> Any:
    return pin.SE3(np.array(pose.R), np.array(pose.p))


def _inertia(inertia: fw.Inertia) -> Any:
    """Set the fields of an inertia: files have impossible inertias, which its constructor refuses."""
    made = pin.Inertia.Zero()
    made.mass, made.lever = inertia.mass, np.array(inertia.center)
    made.inertia = symmetric(inertia.rotational)
    return made
