"""Tests of Gymnasium's robots on the ground, with the shapes, steps and integrators of their files, against MuJoCo.

By the law of the files, steps are MuJoCo's. Rigid contacts and joint limits do not yield, whereas MuJoCo's do, and keep bodies
at the margins of the files above the ground: the tests of rigid contacts compare states at rest and statistics of motions.
MuJoCo's geometry measures our overlaps.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import mujoco.rollout
import numpy as np
import pytest

import featherweight as fw
from oracles.states import Array

# Ant's default configuration has its ankles beyond their limits
pytestmark = pytest.mark.filterwarnings("ignore:.*its own configuration is beyond joint limits")

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
ROBOTS = ["hopper", "half_cheetah", "walker2d_v5", "ant", "humanoid"]
HELD = 5  # steps with the same controls
MOTIONS = 16


@functools.cache
def models(name: str) -> tuple[fw.Simulation, Any]:
    """Return our model with rigid contacts and MuJoCo's of a file."""
    path = ASSETS / f"{name}.xml"
    robot, m = fw.load(path), mujoco.MjModel.from_xml_path(str(path))
    integrator = {mujoco.mjtIntegrator.mjINT_EULER: "semi-implicit", mujoco.mjtIntegrator.mjINT_RK4: "rk4"}
    kind = integrator[mujoco.mjtIntegrator(m.opt.integrator)]
    return fw.Simulation(robot, float(m.opt.timestep), kind, shapes=True, contact="rigid"), m


def rolled(q: Array, by: int) -> Array:
    """Return configurations with the quaternion's w moved from first to last (by -1), or from last to first (by 1)."""
    made = q.copy()
    made[..., 3:7] = np.roll(q[..., 3:7], by, axis=-1)
    return made


def height_at(m: Any) -> int:
    return 2 if m.nq > m.nv else 1


def gaps(m: Any, data: Any) -> Array:
    """Return the gaps of MuJoCo's contacts with the ground [m], beyond the margins at which they touch."""
    plane = [g for g in range(m.ngeom) if m.geom_type[g] == mujoco.mjtGeom.mjGEOM_PLANE]
    return np.array([c.dist - c.includemargin for c in data.contact if set(c.geom) & set(plane)])


@functools.cache
def fall(name: str) -> tuple[Array, Array, Array]:
    """Return the data of a fall for 1 s: energies (steps + 1,), configurations, and the deepest overlap with the ground at
    every tenth state.

    There are no controls. The start is the configuration of the file, moved within limits: the ant's legs are beyond theirs,
    and their correction would lift the ant.
    """
    sim, m = models(name)
    data = mujoco.MjData(m)
    sim.reset(np.clip(sim.robot.configurations["qpos0"], sim.robot.lower, sim.robot.upper))
    energies, configurations, deepest = [sim.energy()], [], []
    for k in range(round(1.0 / sim.dt)):
        sim.step()
        energies.append(sim.energy())
        configurations.append(sim.q)
        if k % 10 == 9:
            data.qpos[:] = rolled(sim.q, 1) if m.nq > m.nv else sim.q
            mujoco.mj_fwdPosition(m, data)
            deepest.append(-gaps(m, data).min(initial=0.0))
    return np.array(energies), np.array(configurations), np.array(deepest)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_fall_without_controls_brings_no_energy(name: str) -> None:
    """Check the energy, up to integration errors and the separation of overlaps by less than `slop`."""
    energies = fall(name)[0]
    assert energies[-1] < energies[0]
    assert np.diff(energies).max() < 1e-3 * np.ptp(energies)


@pytest.mark.parametrize("name", ROBOTS)
def test_nothing_sinks_into_the_ground(name: str) -> None:
    """Check the overlap; a single step may exceed the slop before the next step separates the bodies."""
    _, configurations, deepest = fall(name)
    assert deepest.max() < 0.02
    assert np.mean(deepest < 1e-4) >= 0.9
    assert configurations[:, height_at(models(name)[1])].min() > -1.0


@pytest.mark.parametrize("name", ["hopper", "half_cheetah", "ant"])
def test_it_rests_where_it_rests_in_mujoco(name: str) -> None:
    """Check heights against those of MuJoCo's contacts, minus their gap or overlap, and points midway between surfaces."""
    sim, m = models(name)
    data = mujoco.MjData(m)
    mujoco.mj_step(m, data, round(4.0 / m.opt.timestep))
    assert np.abs(data.qvel).max() < 0.05
    sim.reset(rolled(data.qpos, -1) if m.nq > m.nv else data.qpos)
    sim.run(1.0, every=round(1.0 / m.opt.timestep))
    z = height_at(m)
    assert sim.q[z] - data.qpos[z] == pytest.approx(-gaps(m, data).mean(), abs=2e-3)
    points, forces, _ = sim.contacts()
    np.testing.assert_allclose(points[:, 2], 0.5 * data.contact[0].includemargin, atol=1e-4)
    weight = 9.81 * sim.robot.mass
    np.testing.assert_allclose(forces.sum(axis=0), [0.0, 0.0, weight], atol=3e-3 * weight)


@pytest.mark.parametrize("name", ROBOTS)
def test_motions_with_random_controls_are_like_those_in_mujoco(name: str) -> None:
    """Check the mean height to four standard errors, or a tenth of a metre; mean speeds to a quarter, as MuJoCo's limits
    yield.
    """
    sim, m = models(name)
    steps = round(1.0 / m.opt.timestep)
    rng = np.random.default_rng(0)
    controls = rng.uniform(m.actuator_ctrlrange[:, 0], m.actuator_ctrlrange[:, 1], (MOTIONS, -(-steps // HELD), m.nu))
    controls = np.repeat(controls, HELD, axis=1)[:, :steps]
    q, v = sim.rollout(np.tile(sim.robot.configurations["qpos0"], (MOTIONS, 1)), control=controls)
    start = np.zeros((MOTIONS, mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    start[:, 1 : 1 + m.nq] = m.qpos0
    states, _ = mujoco.rollout.rollout(m, [mujoco.MjData(m)], start, controls)
    qm, vm = states[:, :, 1 : 1 + m.nq], states[:, :, 1 + m.nq : 1 + m.nq + m.nv]
    z, base = height_at(m), m.nv - m.nu
    ours, theirs = (x[:, -steps:, z].mean(axis=1) for x in (q, qm))
    error = float(np.hypot(ours.std(), theirs.std())) / MOTIONS**0.5
    assert ours.mean() == pytest.approx(theirs.mean(), abs=max(4.0 * error, 0.1))
    for part in (slice(base), slice(base, None)):
        speeds = [float(np.sqrt((x[:, -steps:, part] ** 2).mean())) for x in (v, vm)]
        assert speeds[0] == pytest.approx(speeds[1], rel=0.25)


@pytest.mark.parametrize("name", ROBOTS)
def test_by_default_motions_with_random_controls_are_those_of_mujoco(name: str) -> None:
    """Check all steps of a tenth of a second from five states within a motion, to rounding.

    The ant and the humanoid have free joints, whose rotations MuJoCo's RK4 integrates to a lower order.
    """
    robot, m = fw.load(ASSETS / f"{name}.xml"), mujoco.MjModel.from_xml_path(str(ASSETS / f"{name}.xml"))
    m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations, m.opt.ls_tolerance = 0.0, 300, 200, 1e-10
    sim, order, data = fw.Simulation(robot), fw.MujocoOrder(robot, m), mujoco.MjData(m)
    rng, touched = np.random.default_rng(0), 0
    low, high = m.actuator_ctrlrange.T
    near, slow = (1e-4, 1e-2) if m.nq > m.nv else (1e-12, 1e-11)
    for _ in range(5):
        for _ in range(round(0.3 / m.opt.timestep)):
            data.ctrl[:] = rng.uniform(low, high)
            mujoco.mj_step(m, data)
        sim.q, sim.v = order.robot_state(data.qpos, data.qvel)
        for _ in range(round(0.1 / m.opt.timestep)):
            data.ctrl[:] = rng.uniform(low, high)
            mujoco.mj_step(m, data)
            sim.step(control=order.control(data.ctrl))
            touched += data.ncon
            found = order.state(sim.q, sim.v)
            np.testing.assert_allclose(found.qpos, data.qpos, rtol=0, atol=near)
            np.testing.assert_allclose(found.qvel, data.qvel, rtol=0, atol=slow)
    assert touched > 0
