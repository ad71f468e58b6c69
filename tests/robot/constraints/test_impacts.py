"""Tests of impulses of constraint rows, against Pinocchio and the laws of impact."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight.model.generators import chain
from oracles.pinocchio_models import Peer, example
from oracles.robots import example as robot_of
from oracles.spanning import mechanism, regular_states
from oracles.states import States, assert_close, random_states

TOLERANCE = 1e-9
FEET = ("lf_foot", "rf_foot", "lh_foot", "rh_foot")


def feet(robot: fw.Robot) -> fw.OperationalSpace:
    return robot.operational_space([fw.BilateralContact(foot, "point") for foot in FEET])


@pytest.mark.parametrize("restitution", [0.0, 0.4])
def test_pinocchio_s(restitution: float) -> None:
    peer: Peer = example("hyq")
    robot = robot_of("hyq", "interpreted")
    space, x = feet(robot), random_states(robot, 3)
    J = space.jacobian(x.q)
    velocity, impulse, least_squares = space.impulse_dynamics(x.q, x.v, restitution)
    assert not least_squares
    for k in range(3):
        rows = np.ascontiguousarray(J[k][:, np.argsort(peer.columns)])
        args = peer.q(x.q[k]), peer.v(x.v[k]), rows, restitution, 0.0
        theirs = pin.impulseDynamics(peer.model, peer.data, *args)
        assert_close(velocity[k][None], theirs[peer.columns][None], TOLERANCE)
        assert_close(impulse[k][None], peer.data.impulse_c[None], TOLERANCE)


def check(robot: fw.Robot, space: fw.OperationalSpace, x: States, restitution: float) -> None:
    """Check Newton's law of restitution, momentum, and the energy loss: half (1 - e²) of the rows' own."""
    J, M = space.jacobian(x.q), robot.mass_matrix(x.q)
    after, impulse, _ = space.impulse_dynamics(x.q, x.v, restitution)
    seen = np.einsum("kij,kj->ki", J, x.v)
    assert_close(np.einsum("kij,kj->ki", J, after), -restitution * seen, TOLERANCE * 10)
    pushed = np.einsum("kij,ki->kj", J, impulse)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", M, after - x.v), pushed, atol=TOLERANCE * np.abs(pushed).max())
    before = robot.kinetic_energy(x.q, x.v)
    lost = before - robot.kinetic_energy(x.q, after)
    np.testing.assert_allclose(lost, -0.5 * (1.0 - restitution) * np.sum(impulse * seen, axis=1), atol=1e-8 * before.max())


@pytest.mark.parametrize("restitution", [0.3, 1.0])
def test_newton_s_law_on_a_tree(restitution: float) -> None:
    robot = robot_of("panda", "interpreted")
    space = robot.operational_space(
        [fw.BilateralContact("panda_link7", "point"), fw.Difference("panda_hand", "panda_link2", "point")]
    )
    check(robot, space, random_states(robot, 3), restitution)


@pytest.mark.parametrize("name", ["planar_leg", "coupled"])
def test_newton_s_law_with_loops(name: str) -> None:
    robot = mechanism(name)
    last = robot.frames[-1].name
    space = robot.operational_space([fw.BilateralContact(last, rows=np.eye(6)[3:5] if name == "planar_leg" else np.eye(6)[3:])])
    check(robot, space, regular_states(name), 0.5)


def test_rows_that_depend_on_each_other() -> None:
    """Check two surfaces on one body: velocities as with one of them, and impulses that add up to its own."""
    robot = fw.build(chain(8, rng=1), execution="interpreted")
    x = random_states(robot, 2)
    contact = fw.BilateralContact("body7", "weld")
    one, twice = robot.operational_space([contact]), robot.operational_space([contact, contact])
    a, b = one.impulse_dynamics(x.q, x.v), twice.impulse_dynamics(x.q, x.v)
    assert (a.least_squares, b.least_squares) == (False, True)
    assert_close(b.velocity, a.velocity, TOLERANCE)
    assert_close(b.impulse[:, :6] + b.impulse[:, 6:], a.impulse, TOLERANCE)


def test_states_of_lower_rank_are_warned_of() -> None:
    """Check a stretched arm in the plane, whose end moves in one direction only."""
    joints = [
        fw.Joint(n, fw.JointType.REVOLUTE, p, c, fw.Pose(p=(x, 0.0, 0.0)), (0.0, 0.0, 1.0))
        for n, p, c, x in (("a", "world", "upper", 0.0), ("b", "upper", "lower", 1.0))
    ]
    solid = fw.Inertia(1.0, (0.5, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    made = fw.Description(
        "arm",
        "made",
        (fw.Body("upper", solid), fw.Body("lower", solid)),
        tuple(joints),
        frames=(fw.Frame("end", "lower", fw.Pose(p=(1.0, 0.0, 0.0))),),
    )
    space = fw.build(made, execution="interpreted").operational_space(
        [fw.BilateralContact("end", rows=[[1, 1, 0, 0, 0, 0], [1, -1, 0, 0, 0, 0]])]
    )
    space.impulse_dynamics(np.array([0.2, 0.5]), np.ones(2))
    with pytest.warns(RuntimeWarning, match="depend on each other at this configuration"):
        assert space.impulse_dynamics(np.array([0.2, 1e-9]), np.ones(2)).least_squares
    with pytest.warns(RuntimeWarning, match=r"at state \(1,\)"):
        space.impulse_dynamics(np.array([[0.2, 0.5], [0.2, 1e-9]]), np.ones(2))


def test_one_state_compiled_and_in_single_precision() -> None:
    robot = robot_of("double_pendulum")
    space = robot.operational_space([fw.BilateralContact(robot.frames[-1].name, rows=[[0, 0, 0, 1, 0, 0]])])
    q, v = np.array([0.3, 0.7]), np.array([1.0, -2.0])
    one, many = space.impulse_dynamics(q, v, 0.5), space.impulse_dynamics(np.array([q, q]), v, np.array([0.5, 0.0]))
    np.testing.assert_allclose(many.velocity[0], one.velocity, rtol=1e-12)
    assert not np.allclose(many.velocity[1], one.velocity)
    single = space.impact(q.astype(np.float32), v.astype(np.float32), np.float32(0.5))
    assert single.velocity.dtype == np.float32
    np.testing.assert_allclose(single.velocity, one.velocity, rtol=1e-4)
