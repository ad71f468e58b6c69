"""Tests of derivatives against Pinocchio, and against differences in fifty digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight.model.generators import from_parents, unbranched_parents
from oracles.fifty_digits import check_in_fifty_digits
from oracles.mechanisms import MECHANISMS
from oracles.pinocchio_models import Peer, example
from oracles.robots import robot_of
from oracles.states import Array, States, assert_close, evaluated, random_states, state

AGREEMENT = 1e-9
"""Tolerance for whole matrices of robots with mass ratios up to a thousand; Pinocchio sums about the world's origin."""

ANGLES = 6e-11
"""Difference between the two models, because this package makes right angles exact; a mass matrix amplifies it by its
condition.
"""

COMPILED = ("hyq", "panda", "ur5", "double_pendulum")
FILES = ("talos", "icub", "hyq", "solo12", "iris", "panda", "kinova", "allegro", "tiago", "double_pendulum", "baxter")
"""One or two robots of each kind."""


def by_pinocchio(peer: Peer, states: States, forward: bool) -> list[Array]:
    columns = np.ix_(peer.columns, peer.columns)
    compute = pin.computeABADerivatives if forward else pin.computeRNEADerivatives
    results: list[list[Any]] = [[], [], []]
    for q, v, a in zip(*states, strict=True):
        matrices = compute(peer.model, peer.data, peer.q(q), peer.v(v), peer.v(a))
        for result, matrix in zip(results, matrices, strict=True):
            whole = np.triu(matrix) + np.triu(matrix, 1).T if result is results[2] else matrix
            result.append(whole[columns])
    return [np.array(r) for r in results]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("forward", [False, True])
def test_dynamics_of_files(name: str, forward: bool) -> None:
    peer = example(name)
    states = random_states(peer.robot, 3)
    f = peer.robot.forward_dynamics_derivatives if forward else peer.robot.inverse_dynamics_derivatives
    for ours, theirs in zip(evaluated(f, *states), by_pinocchio(peer, states, forward), strict=True):
        if not forward:
            assert_close(ours, theirs, AGREEMENT)
        else:  # in units that give the mass matrix a unit diagonal
            M = peer.mass_matrix(states.q)
            size = np.sqrt(np.diagonal(M, axis1=1, axis2=2))[:, :, None]
            condition = np.linalg.cond(M / (size * np.swapaxes(size, 1, 2))).max()
            assert_close(ours * size, theirs * size, max(AGREEMENT, ANGLES * condition))


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_is_what_is_traced(name: str) -> None:
    robot = robot_of(name)
    states = random_states(robot, 9)
    for f in (robot.inverse_dynamics_derivatives, robot.forward_dynamics_derivatives):
        traced = evaluated(f, *states)
        for ours, theirs in zip(f(*states), traced, strict=True):
            assert_close(ours, theirs, 1e-12)
        for ours, theirs in zip(f(*(x[0] for x in states)), traced, strict=True):
            assert_close(ours[None], theirs[:1], 1e-12)


@pytest.mark.parametrize("name", ["hyq", "panda"])
def test_frames(name: str) -> None:
    peer = example(name)
    robot, model = peer.robot, peer.model
    frame = robot.frames[-1].name
    x = random_states(robot, 5)
    derivative = robot.frame_velocity(frame, "local").derivative()
    for q, v, a in zip(*x, strict=True):
        pin.computeForwardKinematicsDerivatives(model, peer.data, peer.q(q), peer.v(v), peer.v(a))
        of_frame = model.getFrameId(frame), pin.ReferenceFrame.LOCAL
        for ours, theirs in zip(derivative(q, v), pin.getFrameVelocityDerivatives(model, peer.data, *of_frame), strict=True):
            np.testing.assert_allclose(ours, theirs[:, peer.columns], atol=1e-10)
        placed = robot.frame_placement(frame).derivative("q")(q)
        theirs = pin.computeFrameJacobian(model, peer.data, peer.q(q), model.getFrameId(frame), pin.ReferenceFrame.LOCAL)
        np.testing.assert_allclose(placed, theirs[:, peer.columns], atol=1e-11)


# Fifty digits: for every kind of joint, and through loops


JOINTS = ("revolute", "prismatic", "spherical", "planar", "floating")
TREES = ("mixed_8", "anchored", "floating_inside", "roots", "rotors")


@pytest.mark.parametrize("armature", [0.0, 0.4])
@pytest.mark.parametrize("kind", JOINTS)
def test_every_kind_of_joint_in_fifty_digits(kind: str, armature: float) -> None:
    made = from_parents(unbranched_parents(3), rng=2, joint_types=(kind,), masses=(0.5, 2.0))
    robot = fw.build(made).with_armature({j.name: armature for j in made.joints})
    check_in_fifty_digits(robot, state(robot, 1))


@pytest.mark.parametrize("name", TREES)
def test_trees_in_fifty_digits(name: str) -> None:
    robot = robot_of(name)
    check_in_fifty_digits(robot, state(robot, 2))


@pytest.mark.parametrize("name", [n for n in MECHANISMS if n not in ("tello", "mini_cheetah")])
def test_mechanisms_in_fifty_digits(name: str) -> None:
    robot = fw.build(MECHANISMS[name]())
    assert isinstance(robot, fw.ClosedRobot)
    for seed in range(20):
        x = state(robot, seed)
        if robot.singularity(x.q) < 1e3:
            break
    check_in_fifty_digits(robot, x)
