"""Robots from files compared with Pinocchio, which reads the same files itself.

Angles within 1e-11 of a right angle are made exact here and not there, which alone makes differences of up to 6e-11.
"""

from __future__ import annotations

import numpy as np
import pytest

from oracles.pinocchio_models import Peer, example
from oracles.robots import NAMES, watched_frames
from oracles.states import ROUNDING, States, assert_close, assert_same_solutions, random_states

STATES = 20


@pytest.fixture(params=NAMES)
def peer(request: pytest.FixtureRequest) -> Peer:
    return example(request.param)


@pytest.fixture
def states(peer: Peer) -> States:
    return random_states(peer.robot, STATES)


def test_inverse_dynamics(peer: Peer, states: States) -> None:
    assert_close(peer.robot.inverse_dynamics(*states), peer.inverse_dynamics(*states))


def test_mass_matrix(peer: Peer, states: States) -> None:
    assert_close(peer.robot.mass_matrix(states.q), peer.mass_matrix(states.q))


def test_forward_dynamics(peer: Peer, states: States) -> None:
    ours, theirs = peer.robot.forward_dynamics(*states), peer.forward_dynamics(*states)
    assert_same_solutions(ours, theirs, peer.mass_matrix(states.q))


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
    robot, names = peer.robot, watched_frames(peer.robot)
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
    assert_same_solutions(pushed, peer.forward_dynamics(*states, forces), M)
