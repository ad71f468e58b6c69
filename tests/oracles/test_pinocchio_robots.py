"""Robots from files against Pinocchio, which reads the same files by itself."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.pinocchio_models import Peer, example
from oracles.robots import NAMES
from oracles.states import ROUNDING, States, assert_close, condition_bound, error, random_states, scaled

STATES = 20


@pytest.fixture(params=NAMES)
def peer(request: pytest.FixtureRequest) -> Peer:
    return example(request.param)


@pytest.fixture
def states(peer: Peer) -> States:
    return random_states(peer.robot, STATES)


def watched_frames(peer: Peer) -> list[str]:
    """The first and last links, and the one that most joints move."""
    parents = {joint.child: joint.parent for joint in peer.robot.joints}

    def depth(body: str) -> int:
        return 0 if body not in parents else 1 + depth(parents[body])

    frames = peer.robot.frames
    deepest = max(frames, key=lambda f: depth(f.body))
    return list(dict.fromkeys((frames[0].name, deepest.name, frames[-1].name)))


def test_inverse_dynamics(peer: Peer, states: States) -> None:
    assert_close(peer.robot.inverse_dynamics(*states), peer.inverse_dynamics(*states))


def test_mass_matrix(peer: Peer, states: States) -> None:
    assert_close(peer.robot.mass_matrix(states.q), peer.mass_matrix(states.q))


def test_forward_dynamics(peer: Peer, states: States) -> None:
    """In units that scale M: a finger's acceleration must not hide an arm's."""
    M = peer.mass_matrix(states.q)
    ours, theirs = peer.robot.forward_dynamics(*states), peer.forward_dynamics(*states)
    print("ERR", peer.model.name, error(ours, theirs), error(scaled(ours, M), scaled(theirs, M)), condition_bound(M,1)/2.2e-16)
    assert_close(scaled(ours, M), scaled(theirs, M))


def test_bias_force(peer: Peer, states: States) -> None:
    assert_close(peer.robot.bias_force(states.q, states.v), peer.bias_force(states.q, states.v))


def test_gravity_force(peer: Peer, states: States) -> None:
    assert_close(peer.robot.gravity_force(states.q), peer.gravity_force(states.q))


def test_energies(peer: Peer, states: States) -> None:
    assert_close(peer.robot.kinetic_energy(states.q, states.v), peer.kinetic_energy(states.q, states.v))
    ours, theirs = peer.robot.potential_energy(states.q), peer.potential_energy(states.q)
    weight = peer.robot.mass * np.linalg.norm(peer.robot.gravity)  # heights cancel, so 1 m is the scale
    assert np.max(np.abs(ours - theirs)) <= ROUNDING * weight


def test_center_of_mass(peer: Peer, states: States) -> None:
    assert_close(peer.robot.center_of_mass(states.q), peer.center_of_mass(states.q))


def test_mass(peer: Peer) -> None:
    assert peer.robot.mass == pytest.approx(sum(I.mass for I in peer.model.inertias[1:]), rel=ROUNDING)


def test_placements_of_all_frames(peer: Peer, states: States) -> None:
    names = [frame.name for frame in peer.robot.frames]
    assert_close(peer.robot.frame_placement(names)(states.q), peer.frame_placement(names, states.q))


@pytest.mark.parametrize("reference", ["local", "local_world_aligned", "world"])
def test_frame_motion(peer: Peer, states: States, reference: str) -> None:
    """Jacobian, velocity and velocity-product acceleration."""
    q, v, _ = states
    robot, names = peer.robot, watched_frames(peer)
    assert_close(robot.frame_jacobian(names, reference)(q), peer.frame_jacobian(names, reference, q))
    assert_close(robot.frame_velocity(names, reference)(q, v), peer.frame_velocity(names, reference, q, v))
    theirs = peer.frame_bias_acceleration(names, reference, q, v)
    assert_close(robot.frame_bias_acceleration(names, reference)(q, v), theirs)


def test_external_forces(peer: Peer, states: States) -> None:
    """Forces on every moving body, about and in the body's frame of the file."""
    robot, M = peer.robot, peer.mass_matrix(states.q)
    forces = np.random.default_rng(1).standard_normal((STATES, len(robot.bodies), 6))
    ours = robot.inverse_dynamics(*states, external_forces=forces)
    assert_close(ours, peer.inverse_dynamics(*states, forces))
    pushed = robot.forward_dynamics(*states, external_forces=forces)
    assert_close(scaled(pushed, M), scaled(peer.forward_dynamics(*states, forces), M))
