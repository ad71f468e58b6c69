"""Tests of accelerations of frames, rates of Jacobians, and motion relative to other frames, against Pinocchio."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from oracles import pinocchio_models
from oracles.pinocchio_models import REFERENCES, Peer
from oracles.robots import NAMES, example
from oracles.states import States, assert_close, random_states
from oracles.trees import tree

STATES = 2
ROBOTS = ("panda", "hyq", "mixed_13", "floating_inside", "roots", "anchored", "all_planar")

robots = pytest.mark.parametrize("name", ROBOTS)
references = pytest.mark.parametrize("reference", REFERENCES)


@functools.cache
def peer_of(name: str) -> Peer:
    """Return a robot in interpreted execution: the compiled source, without compilation."""
    if name in NAMES:
        return Peer(example(name, "interpreted"), pinocchio_models.example(name).model)
    description = tree(name)[0]
    return pinocchio_models.from_description(description, fw.build(description, execution="interpreted"))


def states_of(name: str) -> States:
    return random_states(peer_of(name).robot, STATES, seed=7)


def frames_of(robot: fw.Robot) -> list[str]:
    """Return frames near the root, half-way, and at an end."""
    names = [frame.name for frame in robot.frames]
    return [names[1], names[len(names) // 2], names[-1]]


@references
@robots
def test_accelerations(name: str, reference: str) -> None:
    peer, x = peer_of(name), states_of(name)
    names = frames_of(peer.robot)
    spatial, classical = peer.robot.frame_acceleration, peer.robot.frame_classical_acceleration
    assert_close(spatial(names, reference)(*x), peer.frame_accelerations(names, reference, *x))
    assert_close(classical(names, reference)(*x), peer.frame_accelerations(names, reference, *x, True))


@references
@robots
def test_rates_of_jacobians(name: str, reference: str) -> None:
    peer, (q, v, _) = peer_of(name), states_of(name)
    names = frames_of(peer.robot)
    rate = peer.robot.frame_jacobian_rate(names, reference)(q, v)
    assert_close(rate, peer.frame_jacobian_rate(names, reference, q, v))
    bias = peer.robot.frame_bias_acceleration(names, reference)(q, v)
    assert_close(np.einsum("kfij,kj->kfi", rate, v), bias)


@robots
def test_rates_of_joint_jacobians(name: str) -> None:
    peer, (q, v, _) = peer_of(name), states_of(name)
    assert_close(peer.robot.joint_jacobian_rate(q, v), peer.joint_jacobian_rate(q, v))


@references
@robots
def test_motion_relative_to_another_frame(name: str, reference: str) -> None:
    """Check motion relative to a frame near the root, to one at the end, and to the frame itself."""
    peer, x = peer_of(name), states_of(name)
    robot, names = peer.robot, frames_of(peer.robot)
    motions = peer.frame_motions(names, x)
    for other in names:
        expected = [[m[f].relative_to(m[other]).expressed(reference) for f in names] for m in motions]

        def found(function: str, *args: Any, other: str = other) -> Any:
            return getattr(robot, function)(names, reference, relative_to=other)(*args)

        v, a = (np.array([[np.array(getattr(m, k)) for m in row] for row in expected]) for k in "va")
        J, dJ = (np.array([[getattr(m, k) for m in row] for row in expected]) for k in ("J", "dJ"))
        turning = np.concatenate([np.cross(v[..., 3:], v[..., :3]), np.zeros_like(v[..., 3:])], axis=-1)
        assert_close(found("frame_velocity", x.q, x.v), v)
        assert_close(found("frame_jacobian", x.q), J)
        assert_close(found("frame_acceleration", *x), a)
        assert_close(found("frame_classical_acceleration", *x), a + turning)
        assert_close(found("frame_jacobian_rate", x.q, x.v), dJ)
        assert_close(found("frame_bias_acceleration", x.q, x.v), np.einsum("kfij,kj->kfi", dJ, x.v))


@robots
def test_placement_relative_to_another_frame(name: str) -> None:
    peer, x = peer_of(name), states_of(name)
    names = frames_of(peer.robot)
    for other in names:
        expected = [[m[f].relative_to(m[other]).at.homogeneous for f in names] for m in peer.frame_motions(names, x)]
        assert_close(peer.robot.frame_placement(names, relative_to=other)(x.q), np.array(expected))
