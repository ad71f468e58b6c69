"""Tests of trees of joints in USD files: mass matrices and inverse dynamics equal those of their MuJoCo models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw

pxr = pytest.importorskip("pxr", reason="usd-core has no wheel for this Python or processor")
mujoco = pytest.importorskip("mujoco")

from pxr import Gf, Usd, UsdGeom, UsdPhysics  # noqa: E402

SINGLE = 2e-6  # relative: attributes of UsdPhysics have 32 bits, and about ten errors add up
KINDS = ("hinge", "slide", "ball")


def numbers(x: Any) -> str:
    return " ".join(f"{value:.6g}" for value in x)


def random_mjcf(seed: int, floating: bool, most: int = 1) -> str:
    """Return a tree of six bodies, with up to a given number of joints each."""
    rng = np.random.default_rng(seed)
    bodies: list[str] = []
    parents = [-1, *(int(rng.integers(k)) for k in range(1, 6))]
    for k in range(6):
        moments = np.sort(rng.uniform(0.1, 0.2, 3))
        inertial = (
            f'<inertial pos="{numbers(rng.normal(size=3) / 5)}" mass="{rng.uniform(0.5, 2):.6g}" '
            f'diaginertia="{numbers(moments)}" quat="{numbers(rng.normal(size=4))}"/>'
        )
        joints = ""
        for i in range(int(rng.integers(1, most + 1))):
            kind = KINDS[int(rng.integers(3 if most == 1 else 2))]
            force = f'armature="{rng.uniform(0, 0.3):.4g}" damping="{rng.uniform(0, 0.3):.4g}" frictionloss="0.25"'
            joints += (
                f'<joint name="j{k}{i}" type="{kind}" pos="{numbers(rng.normal(size=3))}" axis="{numbers(rng.normal(size=3))}" '
                f"{force}/>"
            )
        if k == 0 and floating:
            joints = '<freejoint name="root_joint"/>'
        pose = f'pos="{numbers(rng.normal(size=3))}" quat="{numbers(rng.normal(size=4))}"'
        bodies.append(f'<body name="b{k}" {pose}>{joints}{inertial}')
    text = ""

    def write(k: int) -> str:
        return bodies[k] + "".join(write(c) for c in range(6) if parents[c] == k) + "</body>"

    text = write(0)
    return f"<mujoco><worldbody>{text}</worldbody></mujoco>"


def quaternion(wxyz: Any) -> Any:
    w, x, y, z = map(float, wxyz)
    return Gf.Quatf(w, x, y, z)


def turn_of_x(axis: Any) -> np.ndarray:
    """Return a quaternion (w, x, y, z) that rotates x to an axis."""
    q = np.zeros(4)
    mujoco.mju_quatZ2Vec(q, np.asarray(axis, dtype=float))
    y = np.zeros(4)
    mujoco.mju_axisAngle2Quat(y, np.array([0.0, 1.0, 0.0]), -np.pi / 2)  # rotates x to z
    result = np.zeros(4)
    mujoco.mju_mulQuat(result, q, y)
    return result


def write_usd(
    model: Any, path: Path, meter: float = 1.0, kilogram: float = 1.0, swap: bool = False, pose: Any = None, up: str = "Z"
) -> None:
    """Write a compiled model as a stage: bodies side by side at `pose` (qpos), joints with both frames.

    With `swap`, every second joint leads from the child to the parent.
    """
    data = mujoco.MjData(model)
    if pose is not None:
        data.qpos[:] = pose
    mujoco.mj_kinematics(model, data)
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, meter)
    UsdPhysics.SetStageKilogramsPerUnit(stage, kilogram)
    UsdGeom.SetStageUpAxis(stage, up)
    robot = UsdGeom.Xform.Define(stage, "/robot")
    stage.SetDefaultPrim(robot.GetPrim())
    for b in range(1, model.nbody):
        body = UsdGeom.Xform.Define(stage, f"/robot/{model.body(b).name}")
        body.AddTranslateOp().Set(Gf.Vec3d(*(data.xpos[b] / meter)))
        body.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(*map(float, data.xquat[b])))
        prim = body.GetPrim()
        UsdPhysics.RigidBodyAPI.Apply(prim)
        mass = UsdPhysics.MassAPI.Apply(prim)
        mass.CreateMassAttr(model.body_mass[b] / kilogram)
        mass.CreateCenterOfMassAttr(Gf.Vec3f(*(model.body_ipos[b] / meter)))
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*(model.body_inertia[b] / kilogram / meter**2)))
        mass.CreatePrincipalAxesAttr(quaternion(model.body_iquat[b]))
        start, count = int(model.body_jntadr[b]), int(model.body_jntnum[b])
        if count > 1:
            robot.GetPrim().CreateAttribute("newton:jointsAddMobility", pxr.Sdf.ValueTypeNames.Bool).Set(True)
        for j in range(start, start + count):
            write_joint(stage, model, b, j, (meter, kilogram), swap and b % 2 == 0)
        if count == 0:
            fixed = UsdPhysics.FixedJoint.Define(stage, f"/robot/{model.body(b).name}_fixed")
            write_frames(fixed, model, b, None, meter, False)
    stage.Save()


def write_joint(stage: Any, model: Any, b: int, j: int, units: tuple[float, float], swapped: bool) -> None:
    (meter, kilogram), kinds, dof = units, mujoco.mjtJoint, int(model.jnt_dofadr[j])
    kind, path = int(model.jnt_type[j]), f"/robot/{model.joint(j).name}"
    if kind == kinds.mjJNT_FREE:
        return
    schema = {kinds.mjJNT_HINGE: "RevoluteJoint", kinds.mjJNT_SLIDE: "PrismaticJoint", kinds.mjJNT_BALL: "SphericalJoint"}[kind]
    joint = getattr(UsdPhysics, schema).Define(stage, path)
    write_frames(joint, model, b, j, meter, swapped)
    turns = kind != kinds.mjJNT_SLIDE
    inertia = kilogram * (meter**2 if turns else 1.0)
    force, unit = kilogram * meter * (meter if turns else 1.0), np.pi / 180 if turns else meter
    for key, value in (
        ("armature", model.dof_armature[dof] / inertia),
        ("damping", model.dof_damping[dof] / force * unit),
        ("friction", model.dof_frictionloss[dof] / force),
    ):
        attribute = joint.GetPrim().CreateAttribute(f"newton:{key}", pxr.Sdf.ValueTypeNames.Float)
        attribute.Set(float(np.reshape(value, -1)[0]))


def write_frames(joint: Any, model: Any, b: int, j: int | None, meter: float, swapped: bool) -> None:
    """Write the joint's frame in the child, with x along the axis, and the same frame in the parent, at zero."""
    child, parent = f"/robot/{model.body(b).name}", int(model.body_parentid[b])
    anchor, turn = (np.zeros(3), np.array([1.0, 0, 0, 0])) if j is None else (model.jnt_pos[j], turn_of_x(model.jnt_axis[j]))
    if j is not None and model.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL:
        turn = np.array([1.0, 0.0, 0.0, 0.0])
    there, turned = np.zeros(3), np.zeros(4)
    mujoco.mju_rotVecQuat(there, np.array(anchor), model.body_quat[b])
    mujoco.mju_mulQuat(turned, model.body_quat[b], turn)
    ends = [(f"/robot/{model.body(parent).name}" if parent else None, there + model.body_pos[b], turned), (child, anchor, turn)]
    for k, (path, p, q) in enumerate(ends[::-1] if swapped else ends):
        if path is not None:
            getattr(joint, f"CreateBody{k}Rel")().SetTargets([path])
        getattr(joint, f"CreateLocalPos{k}Attr")(Gf.Vec3f(*(np.asarray(p) / meter)))
        getattr(joint, f"CreateLocalRot{k}Attr")(quaternion(q))


class Both:
    """A robot of a USD file and its MuJoCo model, with states of both."""

    def __init__(self, text: str, folder: Path, swap: bool = False, **options: Any) -> None:
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        write_usd(self.model, folder / "robot.usda", swap=swap, **options)
        self.description = fw.read(folder / "robot.usda")
        self.robot = fw.build(self.description, execution="interpreted")
        self.signs = {self.model.joint(j).name: self._sign(j, swap) for j in range(self.model.njnt)}

    def _sign(self, j: int, swap: bool) -> float:
        return -1.0 if swap and self.model.jnt_bodyid[j] % 2 == 0 else 1.0

    def state(self, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        """Set MuJoCo's configuration; return ours, and the matrix from our velocities to MuJoCo's."""
        q, T = self.robot.neutral(), np.zeros((self.model.nv, self.robot.nv))
        for joint in self.robot.joints:
            j = self.model.joint(joint.name).id
            a, d = int(self.model.jnt_qposadr[j]), int(self.model.jnt_dofadr[j])
            if joint.type.nv == 1:
                q[joint.q_slice] = rng.uniform(-1.5, 1.5)
                self.data.qpos[a] = self.signs[joint.name] * float(q[joint.q_slice][0])
                T[d, joint.v_slice] = self.signs[joint.name]
                continue
            u = rng.normal(size=4)
            u /= np.linalg.norm(u)
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, u)
            if joint.type.nv == 6:
                p = rng.normal(size=3)
                self.data.qpos[a : a + 7] = [*p, *u]
                q[joint.q_slice] = [*p, *u[1:], u[0]]
                T[d : d + 3, joint.v_slice] = np.hstack([R.reshape(3, 3), np.zeros((3, 3))])
                T[d + 3 : d + 6, joint.v_slice] = np.hstack([np.zeros((3, 3)), np.eye(3)])
            else:
                self.data.qpos[a : a + 4] = u
                q[joint.q_slice] = [*u[1:], u[0]]
                T[d : d + 3, joint.v_slice] = np.eye(3)
        return q, T


def assert_close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SINGLE * max(1.0, float(np.abs(theirs).max())))


def full_mass_matrix(model: Any, data: Any) -> np.ndarray:
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize(("meter", "kilogram"), [(1.0, 1.0), (0.01, 0.5)])
def test_mass_matrices_are_those_of_mujoco(seed: int, floating: bool, meter: float, kilogram: float, tmp_path: Path) -> None:
    both = Both(random_mjcf(seed, floating), tmp_path, meter=meter, kilogram=kilogram)
    assert both.robot.nv == both.model.nv and both.robot.report() == {}
    rng = np.random.default_rng(seed)
    for _ in range(3):
        q, T = both.state(rng)
        mujoco.mj_forward(both.model, both.data)
        assert_close(both.robot.mass_matrix(q), T.T @ full_mass_matrix(both.model, both.data) @ T)


@pytest.mark.parametrize("seed", range(3, 6))
@pytest.mark.parametrize("up", ["Z", "Y"])
def test_forces_are_those_of_mujoco_also_of_several_joints_between_two_bodies(seed: int, up: str, tmp_path: Path) -> None:
    both = Both(random_mjcf(seed, False, most=3), tmp_path, up=up)
    assert any(n > 1 for n in both.model.body_jntnum)
    both.model.opt.gravity[:] = both.robot.gravity
    assert list(both.robot.gravity) == ([0.0, 0.0, -9.81] if up == "Z" else [0.0, -9.81, 0.0])
    both.model.dof_damping[:] = 0.0  # joint damping is not part of our inverse dynamics
    both.model.dof_frictionloss[:] = 0.0
    rng = np.random.default_rng(seed)
    for _ in range(3):
        q, T = both.state(rng)
        v, a = rng.normal(size=(2, both.robot.nv))
        both.data.qvel[:], both.data.qacc[:] = T @ v, T @ a
        mujoco.mj_inverse(both.model, both.data)
        assert_close(both.robot.inverse_dynamics(q, v, a), T.T @ both.data.qfrc_inverse)


@pytest.mark.parametrize("seed", range(6, 9))
def test_joints_that_lead_from_child_to_parent_keep_the_coordinate_of_the_file(seed: int, tmp_path: Path) -> None:
    text = random_mjcf(seed, False).replace('type="ball"', 'type="hinge"')
    both = Both(text, tmp_path, swap=True)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        q, T = both.state(rng)
        mujoco.mj_forward(both.model, both.data)
        assert_close(both.robot.mass_matrix(q), T.T @ full_mass_matrix(both.model, both.data) @ T)
        for name in ("b1", "b5"):
            assert_close(both.robot.frame_placement(name)(q)[:3, 3], both.data.body(name).xpos)


@pytest.mark.parametrize("floating", [False, True])
def test_the_start_is_where_the_file_puts_bodies(floating: bool, tmp_path: Path) -> None:
    text = random_mjcf(9, floating)
    first = Both(text, tmp_path)
    q, _ = first.state(np.random.default_rng(9))
    second = Both(text, tmp_path, pose=first.data.qpos)
    start = np.asarray(second.robot.start())
    mujoco.mj_kinematics(first.model, first.data)
    for b in range(1, first.model.nbody):
        at = second.robot.frame_placement(first.model.body(b).name)(start)
        assert_close(at[:3, 3], first.data.xpos[b])
        assert_close(at[:3, :3], first.data.xmat[b].reshape(3, 3))
    assert not np.allclose(start, second.robot.neutral(), atol=0.1)
    assert_close(np.abs(second.robot.difference(q, start)), 0.0)


def test_armature_damping_and_friction_are_per_radian(tmp_path: Path) -> None:
    both = Both(random_mjcf(1, False), tmp_path, meter=0.1, kilogram=2.0)
    for joint in both.description.joints:
        d = int(both.model.jnt_dofadr[both.model.joint(joint.name).id])
        theirs = [float(np.reshape(x[d], -1)[0]) for x in (both.model.dof_armature, both.model.dof_damping)]
        assert_close([joint.armature, joint.damping, joint.dry_friction], [*theirs, 0.25])
