"""Tests of tendons of MJCF files: equalities and their accelerations equal MuJoCo's; forces at joints."""

from __future__ import annotations

import pickle
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight import ModelError, ModelWarning
from featherweight.model.formats.registry import load_description
from featherweight.simulation.forces.at_joints import forces_at_joints
from simulation.spring_forces import spring_forces

WEIGHT = '<inertial pos="0.1 0.2 0.3" mass="1" diaginertia="0.1 0.2 0.25"/>'
BODIES = f"""
    <body name="a" pos="0 0 1" euler="10 20 30"><joint name="ja" axis="0 1 0"/>{WEIGHT}
      <body name="b" pos="0 0.3 0.1" euler="0 0 50"><joint name="jb" ref="20" axis="1 0 0"/>{WEIGHT}
        <body name="d"><joint name="jd" type="slide" ref="-2"/>{WEIGHT}<site name="tip"/></body></body></body>
    <body name="c" pos="1 0 1" euler="-10 0 30"><joint name="jc" axis="0 0 1" ref="10"/>{WEIGHT}
      <body name="f"><joint name="jf" axis="1 1 0"/>{WEIGHT}</body></body>"""
TENDONS = """<tendon>
    <fixed name="t1"><joint joint="ja" coef="0.5"/><joint joint="jb" coef="0.25"/><joint joint="jd" coef="-1"/></fixed>
    <fixed name="t2"><joint joint="jc" coef="2"/><joint joint="ja" coef="1"/></fixed>
    <fixed name="t3"><joint joint="jf" coef="2"/></fixed>
    <fixed name="t4"><joint joint="ja" coef="0.3"/><joint joint="jc" coef="0.4"/><joint joint="jd" coef="0"/></fixed>
  </tendon>"""


def write(folder: Path, rest: str, tendons: str = TENDONS) -> Path:
    path = folder / "robot.xml"
    path.write_text(f"<mujoco><worldbody>{BODIES}</worldbody>{tendons}{rest}</mujoco>")
    return path


def residual(model: mujoco.MjModel, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return MuJoCo's residual of equalities at q, and its dense Jacobian."""
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    return data.efc_pos[rows], data.efc_J.reshape(-1, model.nv)[rows]


def spanning(robot: fw.Robot, description: fw.Description, q: np.ndarray) -> np.ndarray:
    """Return the coordinates of all joints."""
    x = {j.name: q[j.q_slice][0] for j in robot.joints if j.q_slice.stop > j.q_slice.start}
    for c in description.couplings:
        x[c.joint] = c.offset + sum(a * x[name] ** k for name, terms in c.terms for k, a in enumerate(terms, start=1))
    return np.array([x[j.name] for j in robot.model.joints])


EQUALITIES = {
    "one": '<tendon tendon1="t1" polycoef="0.1 0 0 0 0"/>',
    "two": '<tendon tendon1="t1" tendon2="t2" polycoef="0.1 2 0 0 0"/>',
    "two with powers of a joint": '<tendon tendon1="t1" tendon2="t3" polycoef="0.1 0.2 0.3 0.04 0.05"/>',
    "two that share joints": '<tendon tendon1="t1"/><tendon tendon1="t4"/>',
    "the same twice": '<tendon tendon1="t4"/><tendon tendon1="t4"/><tendon tendon1="t1"/>',
    "with a gear": '<tendon tendon1="t1"/><joint joint1="jb" joint2="jc" polycoef="0.1 2 0.5 0 0"/>',
    "of a leader": '<joint joint1="jc" joint2="jf" polycoef="0 2 1 0 0"/><joint joint1="jb" joint2="ja"/>'
    '<tendon tendon1="t4"/>',
    "two with powers of a length": '<tendon tendon1="t1" tendon2="t2" polycoef="0.1 0.2 0.3 0.1 0.2"/>',
    "powers of a length with a gear": '<tendon tendon1="t1" tendon2="t2" polycoef="0 0.2 0.3 0 0"/>'
    '<joint joint1="jf" joint2="jd" polycoef="0 2 0 0 0"/>',
}


@pytest.mark.parametrize("equality", EQUALITIES.values(), ids=EQUALITIES)
def test_robots_accelerate_as_mujocos_under_hard_equalities(tmp_path: Path, equality: str) -> None:
    """Check M w' + h = JᵀL with J w' = -J' w, with MuJoCo's inertia, bias and Jacobian; its rate is a central difference."""
    path = write(tmp_path, f'<option jacobian="dense"/><equality>{equality}</equality>')
    description = fw.read(path)
    robot = fw.build(description, execution="interpreted")
    model = mujoco.MjModel.from_xml_path(str(path))
    assert isinstance(robot, fw.ClosedRobot)
    assert [j.name for j in robot.model.joints] == [model.joint(j).name for j in range(model.njnt)]
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng=0)
    v = rng.normal(size=robot.nv)
    whole, w = spanning(robot, description, q), robot.spanning_velocity(q, v)
    gap, J = residual(model, whole)
    np.testing.assert_allclose(gap, 0.0, atol=1e-10)  # tolerance of loop closure
    assert np.linalg.matrix_rank(J, tol=1e-9) == model.nv - robot.nv
    h = 1e-5
    rate = (residual(model, whole + h * w)[1] - residual(model, whole - h * w)[1]) @ w / (2.0 * h)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = whole, w
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    for k, column in enumerate(np.eye(model.nv)):
        mujoco.mj_mulM(model, data, M[k], column)
    system = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    expected = np.linalg.lstsq(system, np.concatenate([-data.qfrc_bias, -rate]), rcond=1e-12)[0][: model.nv]
    a = robot.forward_dynamics(q, v, np.zeros(robot.nv))
    step = 1e-6  # rate of the spanning velocity along the motion
    ahead, behind = (robot.spanning_velocity(robot.integrate(q, s * v), v + s * a) for s in (step, -step))
    np.testing.assert_allclose((ahead - behind) / (2.0 * step), expected, rtol=1e-6, atol=1e-6)


def test_equalities_are_couplings_where_sums_of_polynomials_say_them(tmp_path: Path) -> None:
    for name, equality in EQUALITIES.items():
        robot = load_description(write(tmp_path, f"<equality>{equality}</equality>"))
        assert len(robot.closures) == (1 if "powers of a length" in name else 0), name
    function, q = robot.closures[0].function, [1.0, 2.0, 3.0, 4.0]
    assert pickle.loads(pickle.dumps(function))(q) == function(q)


@pytest.mark.parametrize(
    ("equality", "words"),
    [
        ('<tendon tendon1="t4"/><tendon name="e" tendon1="t4" polycoef="1 0 0 0 0"/>', "equality 'e': tendon 't4' has another"),
    ],
)
def test_equalities_that_leave_nothing_to_move_are_refused(tmp_path: Path, equality: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        load_description(write(tmp_path, f"<equality>{equality}</equality>"))


def test_an_equality_of_a_tendon_with_one_joint_holds_it(tmp_path: Path) -> None:
    equality = '<equality><tendon name="e" tendon1="t3" polycoef="0.5 0 0 0 0"/></equality>'
    (held,) = load_description(write(tmp_path, equality)).couplings
    assert (held.joint, held.terms) == ("jf", ())


# --- forces

FORCES = """<tendon>
    <fixed name="weak" stiffness="3" springlength="0.7" damping="0.4" frictionloss="0.2" limited="true" range="-1 1.5"
      armature="0.3"><joint joint="ja" coef="-0.5"/></fixed>
    <fixed name="grasp" stiffness="2" damping="0.1"><joint joint="jc" coef="0.5"/><joint joint="jf" coef="0.25"/></fixed>
    <fixed name="pair"><joint joint="jc" coef="1"/><joint joint="jf" coef="-2"/></fixed>
  </tendon>
  <equality><tendon tendon1="pair" polycoef="0.2 0 0 0 0"/></equality>
  <actuator>
    <motor name="pull" tendon="weak" gear="3" ctrlrange="-0.5 0.5"/>
    <position name="servo" tendon="grasp" gear="-2" kp="30" kv="4" forcerange="-5 4"/>
    <motor name="rotor" tendon="weak" gear="2" armature="0.1"/>
  </actuator>"""


def test_forces_of_tendons_of_one_joint_are_mujocos(tmp_path: Path) -> None:
    """Check also a tendon whose joints an equality couples: generalized forces of all joints, on free coordinates."""
    path = write(tmp_path, "", FORCES)
    description = fw.read(path)
    robot = fw.build(description, execution="interpreted")
    assert isinstance(robot, fw.ClosedRobot)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    forces = forces_at_joints(robot, robot.actuators)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, v, u = robot.random_configuration(rng=rng), rng.normal(size=robot.nv), rng.normal(size=3)
        data.qpos[:], data.qvel[:], data.ctrl[:] = spanning(robot, description, q), robot.spanning_velocity(q, v), u
        mujoco.mj_forward(model, data)
        S = np.array([robot.spanning_velocity(q, e) for e in np.eye(robot.nv)])
        np.testing.assert_allclose(spring_forces(forces, q, v), S @ data.qfrc_passive, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(forces.of_drives(q, v, u), S @ data.qfrc_actuator, rtol=1e-12, atol=1e-12)
    M = np.zeros((model.nv, model.nv))
    for k, column in enumerate(np.eye(model.nv)):
        mujoco.mj_mulM(model, data, M[k], column)
    np.testing.assert_allclose(robot.mass_matrix(q), S @ M @ S.T, rtol=1e-12, atol=1e-12)
    joint = {j.name: j for j in description.joints}["ja"]
    assert (joint.dry_friction, joint.lower, joint.upper) == (0.1, -3.0, 2.0)


SEVERAL = '<fixed {}><joint joint="ja" coef="1"/><joint joint="jc" coef="1"/></fixed>'


def test_tendons_that_are_no_joints_are_read(tmp_path: Path) -> None:
    slack = '<fixed name="s" stiffness="1" springlength="0 1"><joint joint="ja" coef="3"/></fixed>'
    tendons = SEVERAL.format('name="a" stiffness="1"') + SEVERAL.format("") + slack
    description = load_description(write(tmp_path, "", f"<tendon>{tendons}</tendon>"))
    assert description.unused == ()
    assert [(t.name, t.terms, t.stiffness) for t in description.tendons] == [
        ("a", (("ja", 1.0), ("jc", 1.0)), 1.0),
        ("tendon1", (("ja", 1.0), ("jc", 1.0)), 0.0),
        ("s", (("ja", 3.0),), 1.0),
    ]
    assert description.tendons[2].rest == (0.0, 1.0)


def test_a_tendon_of_joints_with_efforts_drives_each_of_them(tmp_path: Path) -> None:
    tie = '<equality><joint joint1="jc" joint2="ja" polycoef="0 2 0 0 0"/></equality>'
    drive = '<actuator><motor tendon="t"/></actuator>'
    tendon = SEVERAL.format('name="t"')
    path = write(tmp_path, tie + drive, f"<tendon>{tendon}</tendon>")
    assert load_description(path).actuators[0].joint == "ja"
    path.write_text(path.read_text().replace('name="jc"', 'name="jc" actuatorfrcrange="-1 1"'))
    description = load_description(path, equalities="exact")
    assert description.unused == () and description.actuators[0].tendon == "t"


def test_bounds_of_drives_are_read_whatever_their_gears(tmp_path: Path) -> None:
    bounded = SEVERAL.format('name="t" actuatorfrcrange="-1 1"')
    drives = '<actuator><motor tendon="t" gear="2"/><motor tendon="t" gear="3"/></actuator>'
    description = load_description(write(tmp_path, drives, f"<tendon>{bounded}</tendon>"))
    assert dict(description.unused) == {} and description.tendons[0].force == (-1.0, 1.0)


# --- unsupported content, which users may omit

SPATIAL = '<spatial name="rope"><site site="tip"/><site site="eye"/></spatial>'
UNSUPPORTED = {
    "tendon 'cable'": "<tendon>" + SEVERAL.format('name="cable" armature="1"') + "</tendon>",
    "equality 'tie'": f'<tendon>{SPATIAL}</tendon><equality><tendon name="tie" tendon1="rope"/></equality>',
    "armature of actuator 'pull'": "<tendon>" + SEVERAL.format('name="cable"') + "</tendon>"
    '<actuator><motor name="pull" tendon="cable" armature="1"/></actuator>',
}


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_what_is_not_supported_is_refused_or_reported(tmp_path: Path, what: str) -> None:
    path = write(tmp_path, UNSUPPORTED[what], "")
    path.write_text(path.read_text().replace("<worldbody>", '<worldbody><site name="eye"/>'))
    with pytest.raises(ModelError, match=rf'robot\.xml: {what}.*unsupported="report"'):
        fw.read(path, unsupported="raise")
    with pytest.warns(ModelWarning, match=what) as told:
        robot = fw.load(path, execution="interpreted")
    assert len(told) == 1
    assert what in robot.report()["not supported, and left out"]
    with pytest.raises(ValueError, match="unsupported must be one of"):
        fw.load(path, unsupported="ignore")
