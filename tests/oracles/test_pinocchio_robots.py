"""Tests of robots from files against Pinocchio, which reads the same files.

Our loader makes angles within 1e-11 of a right angle exact, Pinocchio does not; this alone causes differences of up to 6e-11.
"""

from __future__ import annotations

import numpy as np
import pytest

from oracles.pinocchio_models import Peer, example
from oracles.robots import NAMES
from oracles.same_dynamics import SameDynamics, SameMotionOfFrames
from oracles.states import ROUNDING, States, assert_close, random_states

STATES = 20


@pytest.fixture(params=NAMES)
def peer(request: pytest.FixtureRequest) -> Peer:
    return example(request.param)


@pytest.fixture
def states(peer: Peer) -> States:
    return random_states(peer.robot, STATES)


class TestDynamics(SameDynamics):
    pass


class TestMotionOfFrames(SameMotionOfFrames):
    pass


def test_gravity_force(peer: Peer, states: States) -> None:
    assert_close(peer.robot.gravity_force(states.q), peer.gravity_force(states.q))


def test_potential_energy(peer: Peer, states: States) -> None:
    ours, theirs = peer.robot.potential_energy(states.q), peer.potential_energy(states.q)
    # potential energies of several bodies cancel, so the scale is 1 m
    weight = peer.robot.mass * np.linalg.norm(peer.robot.gravity)
    assert np.max(np.abs(ours - theirs)) <= ROUNDING * weight


def test_mass(peer: Peer) -> None:
    assert peer.robot.mass == pytest.approx(sum(I.mass for I in peer.model.inertias[1:]), rel=ROUNDING)


def test_placements_of_all_frames(peer: Peer, states: States) -> None:
    names = [frame.name for frame in peer.robot.frames]
    assert_close(peer.robot.frame_placement(names)(states.q), peer.frame_placement(names, states.q))
