"""Tests of random and difficult trees against Pinocchio and MuJoCo, which get them as code or text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.generators import chain
from oracles import mujoco_models, pinocchio_models
from oracles.same_dynamics import SameDynamics, SameMotionOfFrames
from oracles.states import States, assert_close, assert_same_solutions, random_states
from oracles.trees import ILL_CONDITIONED, TREES, tree

STATES = 8
Peer: TypeAlias = pinocchio_models.Peer | mujoco_models.Peer
ORACLES: dict[str, Callable[[fw.Description, fw.Robot], Peer]] = {
    "pinocchio": pinocchio_models.from_description,
    "mujoco": mujoco_models.from_description,
}


@functools.cache
def tree_peer(name: str, oracle: str) -> Peer:
    return ORACLES[oracle](*tree(name))


@pytest.fixture(params=[*TREES, *ILL_CONDITIONED])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=ORACLES)
def peer(request: pytest.FixtureRequest, name: str) -> Peer:
    if (name, request.param) == ("rotors", "mujoco"):
        pytest.skip("MuJoCo's free and planar joints have their armatures in the world's axes, not in the body's")
    return tree_peer(name, request.param)


@pytest.fixture
def states(peer: Peer) -> States:
    return random_states(peer.robot, STATES)


def at_rest(states: States) -> States:
    return states._replace(v=np.zeros_like(states.v))


class TestDynamics(SameDynamics):
    pass


def test_inverse_dynamics_at_rest(peer: Peer, states: States) -> None:
    assert_close(peer.robot.inverse_dynamics(*at_rest(states)), peer.inverse_dynamics(*at_rest(states)))


def test_forward_dynamics_at_rest(peer: Peer, states: States) -> None:
    ours, theirs = peer.robot.forward_dynamics(*at_rest(states)), peer.forward_dynamics(*at_rest(states))
    assert_same_solutions(ours, theirs, peer.mass_matrix(states.q))


def test_placements_of_all_frames(name: str) -> None:
    peer = pinocchio_models.from_description(*tree(name))
    q, names = random_states(peer.robot, STATES).q, [frame.name for frame in peer.robot.frames]
    assert_close(peer.robot.frame_placement(names)(q), peer.frame_placement(names, q))


@pytest.mark.parametrize("name", ["mixed_13", "floating_inside", "anchored", "fixed_between", "roots", "rotors"])
class TestMotionOfFrames(SameMotionOfFrames):
    @pytest.fixture
    def peer(self, name: str) -> pinocchio_models.Peer:
        return pinocchio_models.from_description(*tree(name))


def test_gravity_in_any_direction() -> None:
    description, _ = tree("mixed_13")
    gravity = (1.0, -2.0, 3.0)
    peer = pinocchio_models.from_description(description, fw.build(description, gravity=gravity))
    states = random_states(peer.robot, STATES)
    assert_close(peer.robot.inverse_dynamics(*states), peer.inverse_dynamics(*states))
    assert_close(peer.robot.gravity_force(states.q), peer.gravity_force(states.q))


@functools.cache
def long_chain() -> pinocchio_models.Peer:
    """Return 200 joints in series, at most 0.3 rad from straight."""
    return pinocchio_models.from_description(chain(200))


def test_inverse_dynamics_at_depth_200() -> None:
    peer = long_chain()
    states = random_states(peer.robot, STATES)
    states = states._replace(q=0.1 * states.q)
    assert_close(peer.robot.inverse_dynamics(*states), peer.inverse_dynamics(*states))


def test_forward_dynamics_at_depth_200() -> None:
    peer = long_chain()
    states = random_states(peer.robot, STATES)
    states = states._replace(q=0.1 * states.q)
    ours, theirs = peer.robot.forward_dynamics(*states), peer.forward_dynamics(*states)
    assert_same_solutions(ours, theirs, peer.mass_matrix(states.q))
