"""Tests of mechanisms with loops from MJCF files, against MuJoCo's simulation of the same file.

MuJoCo's equalities are springs, so its loops open slightly, and its motion is inexact. Over a short time, stiff springs are
close to the exact motion, and stiffer springs are closer.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherweight as fw
from oracles.mujoco_models import CRANK_ROD_AND_ROCKER
from oracles.runge_kutta import after_a_step

LINKAGE = f"""
<mujoco>
  <compiler angle="radian"/>
  <option timestep="1e-4" gravity="0 0 -9.81" integrator="RK4"/>
  <worldbody>
    {CRANK_ROD_AND_ROCKER}
    <body name="wheel" pos="0 0.3 0"><joint name="wheel" axis="0 1 0"/>
      <geom type="cylinder" size="0.1 0.01" euler="1.5707963 0 0"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="rod" body2="rocker" anchor="0.7 0 0.2" solref="{{stiff}} 1" solimp="0.9999 0.9999 0.001"/>
    <joint joint1="wheel" joint2="crank" polycoef="0 -2 0 0 0" solref="{{stiff}} 1" solimp="0.9999 0.9999 0.001"/>
  </equality>
</mujoco>
"""
STEPS, STEP = 2000, 1e-4  # 0.2 s of falling


def ours(path: Path) -> tuple[fw.ClosedRobot, list[np.ndarray], list[float]]:
    """Return the exact motion from rest, by Runge-Kutta steps of 2 ms, and its energies."""
    robot = fw.load(path)
    assert isinstance(robot, fw.ClosedRobot)
    h = 2e-3
    q, v = robot.close(robot.neutral()), np.zeros(robot.nv)
    path_q, energies = [q], []
    for _ in range(round(STEPS * STEP / h)):
        energies.append(float(robot.kinetic_energy(q, v) + robot.potential_energy(q)))
        q, v = after_a_step(robot, q, v, h)
        path_q.append(q)
    return robot, path_q, energies


def theirs(text: str) -> tuple[np.ndarray, float]:
    """Return the final angles of MuJoCo's joints, and the largest misclosure of the loop on the way."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    data = mujoco.MjData(model)
    gap = 0.0
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
        gap = max(gap, float(np.abs(data.efc_pos[:3]).max()))
    return data.qpos.copy(), gap


@pytest.fixture(scope="module")
def motion(tmp_path_factory: pytest.TempPathFactory) -> tuple[fw.ClosedRobot, list[np.ndarray], list[float]]:
    path = tmp_path_factory.mktemp("mjcf") / "linkage.xml"
    path.write_text(LINKAGE.format(stiff=0.002))
    return ours(path)


def test_loops_stay_closed_and_energy_is_kept(motion: tuple[fw.ClosedRobot, list[np.ndarray], list[float]]) -> None:
    robot, path, energies = motion
    assert (robot.nq, robot.nv) == (3, 1)
    assert np.abs(robot.residual(np.array(path))).max() < 1e-11
    kinetic = max(energies) - min(energies)
    fallen = abs(float(robot.potential_energy(path[-1]) - robot.potential_energy(path[0])))
    assert fallen > 0.1 and kinetic < 1e-7 * fallen


def test_mujoco_moves_the_same_way(motion: tuple[fw.ClosedRobot, list[np.ndarray], list[float]]) -> None:
    """Check that stiffer springs agree better; the remaining difference is a fraction of the springs' deflection."""
    robot, path, _ = motion
    joints = {j.name: j for j in robot.joints}
    end = path[-1]
    exact = [end[joints[n].q_slice][0] for n in ("crank", "rod", "rocker")]
    moved = float(np.abs(np.array(exact) - np.array([path[0][joints[n].q_slice][0] for n in ("crank", "rod", "rocker")])).max())
    assert moved > 0.2
    errors = []
    for stiff in (0.004, 0.001):
        qpos, gap = theirs(LINKAGE.format(stiff=stiff))
        errors.append(float(np.abs(qpos[:3] - exact).max()))
        assert gap < 1e-3
        assert abs(qpos[3] + 2.0 * qpos[0]) < 1e-3  # the wheel follows the crank in MuJoCo, too
    assert errors[1] < 2e-3 * moved
    assert errors[1] < errors[0]
