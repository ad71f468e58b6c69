"""Tests of the derivatives of steps with rigid contact, against differences of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.contact.laws import empty_law
from featherweight.contact.rigid.answers import PROXIMAL, rigid_answers, write_rigid_answer
from featherweight.engine.loops.kernels import aligned_numbers
from featherweight.robots import mini_cheetah
from featherweight.simulation.derivatives.equations import Sizes, eliminate, places, solve_by_gains
from featherweight.simulation.derivatives.fleet_derivatives import StepDerivatives
from oracles.states import Array
from simulation.scenes import corners, free_bodies, pose, solid_ball, solid_box
from simulation.step_differences import agreed

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

H = 1e-3


def compared(sim: fw.Simulation, tau: Array | None = None) -> StepDerivatives:
    """Return the derivatives of all robots, compared with those of each robot alone, and these with differences of steps."""
    given, state = sim.derivatives(tau), sim.state
    alone, robots = sim.with_options(), len(state)
    for i in range(robots):
        alone.state = state[i] if robots > 1 else state
        force = np.zeros(sim.robot.nv) if tau is None else tau[i] if robots > 1 else tau
        one = agreed(alone, force, np.zeros(0))
        if robots > 1:
            np.testing.assert_allclose(given.A[i], one.A, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(given.B[i], one.B, rtol=1e-12, atol=1e-12)
            assert given.doubtful[i] == one.doubtful
    return given


def quadruped(**more: Any) -> fw.Simulation:
    """Return a quadruped on round feet, which closes the gaps to the ground in the next step."""
    robot, legs = fw.build(mini_cheetah()), ("FR", "FL", "HR", "HL")
    feet = [fw.ContactSphere(f"{leg}_knee_link", 0.02, (0.0, 0.0, -0.2)) for leg in legs]
    sim = fw.Simulation(robot, H, spheres=feet, ground=fw.Plane(normal=(0.02, 0.01, 1.0)), contact=fw.ContactOptions(**more))
    q, v = robot.neutral(), 0.05 * np.random.default_rng(1).standard_normal(robot.nv)
    places_of = {j.name: j.q_slice for j in robot.joints}
    for leg in legs:
        q[places_of[f"{leg}_abad_to_hip_j"]], q[places_of[f"{leg}_hip_to_knee_j"]] = -0.8, 1.5
    q[2] = 1.0
    soles = robot.frame_placement([f.frame for f in feet])(q) @ np.array([0.0, 0.0, -0.2, 1.0])
    n = np.array([0.02, 0.01, 1.0]) / np.linalg.norm([0.02, 0.01, 1.0])
    q[2] -= (soles[:, :3] @ n).min() - 0.02 - 5e-5
    v[2] -= 0.2
    sim.reset(q, v)
    return sim


@pytest.mark.parametrize("friction", [0.0, 0.05, 0.8])
def test_a_quadruped_on_round_feet(friction: float) -> None:
    """Check feet that slide without and with friction, or stick."""
    sim = quadruped(friction=friction)
    compared(sim, 0.5 * np.random.default_rng(2).standard_normal(sim.robot.nv))
    for _ in range(30):
        sim.step()
    compared(sim)


def test_friction_with_separate_bounds() -> None:
    compared(quadruped(friction=0.1, pyramid=True))


def test_robots_of_a_fleet_in_all_states() -> None:
    """Check balls that stick, slide, spin, approach, and fly, with the same compiled code."""
    robot = free_bodies(solid_ball(2.0, 0.1))
    contact = fw.ContactOptions(friction=0.3, tolerance=1e-13, slop=1e-4)
    sim = fw.Simulation(robot, H, spheres=[fw.ContactSphere("body0", 0.1)], ground=fw.Plane(), contact=contact)
    rng, turns = np.random.default_rng(3), Rotation.random(12, random_state=3)
    gaps = (2e-4, -5e-5, 0.5)
    q = np.stack([pose((0.0, 0.0, 0.1 + gaps[i % 3]), turn) for i, turn in enumerate(turns)])
    sim.reset(q, rng.standard_normal((12, 6)))
    tau, cotangents = rng.standard_normal((2, 12, 12))
    given = compared(sim, tau[:, :6])
    found, matrices = sim.derivative_products(cotangents, tau[:, :6]), np.concatenate([given.A, given.B, given.B_control], 2)
    expected = np.einsum("ri,rij->rj", cotangents, matrices)
    np.testing.assert_allclose(
        found, expected, rtol=0.0, atol=1e-10 * np.abs(expected).max()
    )  # rounding, times 1e6: see PROXIMAL


def test_robots_whose_overlap_is_separated() -> None:
    """Check that a fleet mixes robots of which the equations cover the contacts with others."""
    robot = free_bodies(solid_ball(2.0, 0.1))
    spheres, contact = [fw.ContactSphere("body0", 0.1)], fw.ContactOptions(tolerance=1e-13)
    sim = fw.Simulation(robot, H, spheres=spheres, ground=fw.Plane(), contact=contact)
    q = np.stack([pose((0.0, 0.0, 0.1 + gap), Rotation.identity()) for gap in (1e-4, -1e-3, 0.5)])
    sim.reset(q, np.random.default_rng(4).standard_normal((3, 6)))
    compared(sim)


def test_impulses_that_are_not_unique_and_matter_are_doubtful() -> None:
    """Check a box on four corners: moved straight, impulses are not unique, but their effect is; turned, it is not."""
    robot = free_bodies(solid_box(3.0, (0.4, 0.3, 0.2)))
    sim = fw.Simulation(
        robot,
        H,
        spheres=corners("body0", (0.4, 0.3, 0.2)),
        ground=fw.Plane(),
        contact=fw.ContactOptions(friction=0.3),
    )
    for turning, doubtful in ((0.0, False), (3.0, True)):
        sim.reset(pose((0.0, 0.0, 0.1 + 5e-5), Rotation.identity()), [0.7, 0.1, -0.1, 0.0, 0.0, turning])
        assert bool(sim.derivatives().doubtful) == doubtful


def test_elimination_of_matrices_that_are_not_symmetric() -> None:
    for n in (1, 4, 7, 8, 13):
        rng, at = np.random.default_rng(n), places(Sizes(n, 2, 0, 1, 0, -1, 1, 0, True, False))
        x = aligned_numbers(at.size)
        M = rng.standard_normal((n, n)) + 4.0 * np.eye(n) * n
        M[0, n // 2 + 1 :] = 0.0
        R = rng.standard_normal((n, at.width))
        for i in range(n):
            x[at.matrix + i * at.stride : at.matrix + (i + 1) * at.stride] = np.pad(
                M[i], (0, at.stride - n), constant_values=9.0
            )
            x[at.rates + i * at.width : at.rates + (i + 1) * at.width] = R[i]
        eliminate(x, n, at)
        for _ in range(2):  # the eliminated matrix serves several right-hand sides
            x[at.rates : at.rates + n * at.width] = R.ravel()
            solve_by_gains(x, n, at, at.rates)
            found = x[at.rates : at.rates + n * at.width].reshape(n, at.width)
            np.testing.assert_allclose(found, np.linalg.solve(M, R), rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("pyramid", [False, True])
def test_answers_of_rigid_contacts_satisfy_their_equation(pyramid: bool) -> None:
    """Check (1 - P' + e) G = P' / rho and (1 - P' + e) E = e, with P' from differences of the projection."""
    law = empty_law(1, 0)._replace(pyramid=pyramid)
    law.friction[:] = 0.5
    y, rho = rigid_answers(1, 0), 3.0
    for f, u in (
        ([1.0, 0.1, 0.2], [0.0, 0.0, 0.0]), ([1.0, 0.3, 0.4], [0.0, -0.6, -0.8]), ([0.0, 0.0, 0.0], [0.5, 0.1, 0.2]),
    ):  # fmt: skip
        write_rigid_answer(law, 0, rho, np.array(f), np.array(u), y)
        rest = np.eye(3) - y.slope + PROXIMAL * np.eye(3)
        np.testing.assert_allclose(rest @ y.G[0], y.slope / rho, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(rest @ y.E[0], PROXIMAL * np.eye(3), rtol=0.0, atol=1e-15)
        assert y.pushing[0] == (f[0] > 0.0) and y.sliding[0] == (u[1] < 0.0)


def test_states_of_a_rigid_contact_with_the_same_derivatives_are_not_doubtful() -> None:
    """Check a ball on an inclined rail, which a floor stops: at the limit of friction, it does not move in either state."""
    ball = '<joint type="slide" axis="-.535 -.307 1.508" damping=".54"/>'
    ball += '<geom type="sphere" size=".0963" pos="-.011 .131 -.077"/>'
    xml = "<compiler angle='radian'/><worldbody><geom type='plane' size='0 0 1'/><body pos='.054 -.014 .12' "
    xml = f"<mujoco>{xml}euler='.431 -2.126 .91'>{ball}</body></worldbody></mujoco>"
    sim = fw.Simulation(fw.load(xml), contact="rigid")
    sim.run(0.1)
    found = sim.derivatives()
    assert found.doubtful == ()
    np.testing.assert_allclose(found.A, [[1.0, 0.0], [0.0, 0.0]], atol=1e-9)


def test_limits_at_rest_have_the_same_derivatives_by_differences_and_by_equations() -> None:
    """Check an arm on its limit: a muscle without force makes the derivatives differences of whole steps."""
    link = "<geom type='capsule' size='.02' fromto='0 0 0 .3 0 0'/>"
    arm = f"<body><joint name='j' axis='0 1 0' range='-10 10' limited='true'/>{link}"
    arm += f"<body pos='.3 0 0'><joint axis='0 1 0' damping='.1'/>{link}</body></body>"
    muscle = "<actuator><general joint='j' dyntype='filter' dynprm='.1' gainprm='0'/></actuator>"
    found = []
    for more in ("", muscle):
        xml = f"<mujoco><worldbody>{arm}</worldbody>{more}</mujoco>"
        sim = fw.Simulation(fw.load(xml), contact=fw.ContactOptions(law="rigid", tolerance=1e-12))
        sim.run(1.0)
        assert sim.q[0] == pytest.approx(np.radians(10.0), abs=1e-6)
        found.append(sim.derivatives())
        assert found[-1].doubtful == ()
    np.testing.assert_allclose(found[1].A[:4, :4], found[0].A, atol=1e-6)
