"""Tests of limits of ball joints, which act on the angle of the rotation, against MuJoCo."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.contact_rules import TAKEN_AS_EXACT
from featherweight.robot.not_simulated import not_simulated
from featherweight.simulation.forces.at_joints import forces_at_joints
from oracles.states import random_states
from simulation.beside_mujoco import BesideMujoco
from simulation.plain_python import plain_python
from simulation.step_differences import watched

mujoco = pytest.importorskip("mujoco")

CHAIN = """<mujoco><option timestep="0.001"><flag contact="disable"/></option><worldbody>
<body name="upper" pos="0 0 1" euler="0 10 20"><joint name="a" type="ball" range="0 40"/>
<geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/><body name="lower" pos=".4 0 0">
<joint name="b" type="ball" range="0 {range}" {softness} frictionloss=".01"/>
<geom type="capsule" size=".05" fromto="0 0 0 .4 .1 0"/></body></body></worldbody></mujoco>"""
VELOCITY = np.array([1.0, -1.0, 0.4, 0.3, 0.2, 0.1])
LINKAGE = """<mujoco><option><flag contact="disable"/></option><worldbody>
<body name="crank" pos="0 0 1"><joint name="c" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
<body name="rod" pos=".3 0 0"><joint name="r" type="ball" range="0 30"/><geom type="capsule" size=".03" fromto="0 0 0 .5 0 .1"/>
</body></body><body name="slider" pos=".8 0 1.1"><joint name="s" type="slide" axis="1 0 0"/><geom size=".1"/></body></worldbody>
<equality><connect body1="rod" body2="slider" anchor=".5 0 .1"/></equality></mujoco>"""


def chain(degrees: float = 20.0, softness: str = "") -> tuple[fw.Robot, Any]:
    text = CHAIN.format(range=degrees, softness=softness)
    robot = fw.load(text, equalities="exact")
    assert isinstance(robot, fw.Robot) and not_simulated(robot).keys() <= {TAKEN_AS_EXACT}
    return robot, mujoco.MjModel.from_xml_string(text)


def angles(sim: fw.Simulation) -> Any:
    """Return the angles (robots, 2) [degrees] of both joints."""
    rotated = np.linalg.norm(np.atleast_2d(sim.q).reshape(-1, 2, 4)[..., :3], axis=-1)
    return np.rad2deg(2.0 * np.arcsin(rotated))


@pytest.mark.parametrize("softness", ["", 'solreflimit=".03 .7" solimplimit=".5 .9 .01"', 'margin=".05"'])
def test_limits_that_yield_are_mujocos(softness: str) -> None:
    """Check two joints that reach their limits within a third of a second; both solvers leave residuals of 1e-9."""
    robot, model = chain(softness=softness)
    pair, touched = BesideMujoco(robot, model, v=VELOCITY), 0
    for _ in range(330):
        pair.step()
        touched = max(touched, int(np.count_nonzero(pair.data.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)))
    assert touched == 2 and pair.away < 5e-9


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
def test_rigid_limits_hold_for_all_robots_of_a_fleet(integrator: str) -> None:
    """Check errors below a degree, because limits act along the axis of the angle at the start of a step."""
    robot, _ = chain()
    v = np.array([VELOCITY, -VELOCITY, [0.0, 3.0, 0.0, 0.0, 0.0, 8.0]])
    many = fw.Simulation(robot, 1e-3, integrator, q=np.tile(robot.start(), (3, 1)), v=v, contact="rigid")
    alone = fw.Simulation(robot, 1e-3, integrator, v=v[2], contact="rigid")
    reached = np.zeros((3, 2))
    for _ in range(1000):
        many.step()
        alone.step()
        reached = np.maximum(reached, angles(many))
    assert (reached.max(axis=0) > [39.9, 19.9]).all() and (reached < [41.0, 21.0]).all()
    np.testing.assert_array_equal(alone.q, many.q[2])
    loose = fw.Simulation(robot, 1e-3, integrator, v=VELOCITY, joints=fw.JointOptions(limits=False))
    loose.run(0.5)
    assert angles(loose).max() > 60.0


def test_plain_python_takes_the_same_steps() -> None:
    """Check to rounding, because sines and cosines of machine code differ in their last digits."""
    robot, _ = chain()
    ends: list[Any] = []
    for by in (nullcontext, plain_python):
        with by():
            sim = fw.Simulation(robot, 0.01, v=4.0 * VELOCITY, contact="rigid")
            sim.step(steps=25)
            ends.append(sim.q)
            assert sim.limit_forces.any()
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)


def test_moment_arms_are_rates_of_the_angle() -> None:
    """Check joints in a tree and in a loop; angles above π are measured the other way round."""
    for robot in (chain()[0], fw.load(LINKAGE, equalities="exact", execution="interpreted")):
        forces = forces_at_joints(robot, ())
        rows, h = forces.joint_rows + np.arange(len(forces.balls)), 1e-6
        for q in random_states(robot, 3).q:
            S = forces.map(q)
            assert S is not None and len(rows)
            for v in np.eye(robot.nv):
                there = [forces.coordinates(robot.integrate(q, sign * h * v), rows) for sign in (1.0, -1.0)]
                np.testing.assert_allclose(S[rows] @ v, (there[0] - there[1]) / (2.0 * h), atol=1e-8)


def test_a_limit_in_a_loop_holds() -> None:
    robot = fw.load(LINKAGE, equalities="exact")
    assert isinstance(robot, fw.ClosedRobot) and not_simulated(robot) == {}
    sim, reached = fw.Simulation(robot, 1e-3, contact="rigid"), 0.0
    [row] = sim.forces.joint_rows + np.arange(1)
    for _ in range(1000):
        sim.step()
        reached = max(reached, float(sim.forces.coordinates(sim.q, np.array([row]))[0]))
    assert 29.9 < np.rad2deg(reached) < 31.0


def test_starts_beyond_a_limit_are_refused_by_name() -> None:
    robot, _ = chain()
    q = np.array([0.0, 0.0, 0.0, 1.0, 0.0, np.sin(0.5), 0.0, np.cos(0.5)])
    with pytest.raises(ValueError, match=r"joint 'b' at 1 \(limits -inf to 0.3491\)"):
        fw.Simulation(robot, q=q, contact="rigid")


def test_files_carry_them(tmp_path: Path) -> None:
    described = fw.read(CHAIN.format(range=20, softness='margin=".05"'))
    assert [j.upper for j in described.joints] == pytest.approx([np.deg2rad(40.0), np.deg2rad(20.0) - 0.05])
    described.save(tmp_path / "again.xml")
    assert [j.upper for j in fw.read(tmp_path / "again.xml").joints] == pytest.approx([j.upper for j in described.joints])
    with pytest.warns(fw.ModelWarning, match="limits of the spherical joints a, b"):
        described.save(tmp_path / "robot.urdf")
    off = fw.read(CHAIN.format(range=20, softness="").replace("<flag", '<flag limit="disable"'))
    assert [j.upper for j in off.joints] == [np.inf, np.inf]


def test_what_is_not_there_says_so() -> None:
    watched(fw.Simulation(chain()[0], contact="rigid"), most=1e-5)
    body = fw.Body("b", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    for least, told in ((-np.inf, {}), (-1.0, {"limits of joints with several degrees of freedom": "j"})):
        joint = fw.Joint("j", fw.JointType.SPHERICAL, None, "b", lower=least, upper=1.0)
        assert fw.build(fw.describe([body], [joint]), execution="interpreted").report() == told
