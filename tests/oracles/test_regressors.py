"""Tests of regressors and inertial parameters against Pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from featherweight.identification import parameters_of, pseudo_inertia
from oracles.pinocchio_models import Peer, peer_of
from oracles.robots import NAMES
from oracles.states import Array, assert_close, evaluated, random_states
from oracles.test_derivatives import AGREEMENT

STATES = 2
AWKWARD = ("mixed_13", "all_spherical", "all_planar", "roots", "floating_inside", "fixed_between", "anchored", "single_body")
COMPILED = ("ur5", "mixed_5")


def in_joints(peer: Peer) -> tuple[Array, Array]:
    """Return Pinocchio's columns of each body (nbodies, 10), and unit parameters about its joint's frame (., 10, 10)."""
    joints = {j.child: i for j, i in zip(peer.robot.joints, peer.ids, strict=True)}
    columns = np.array([10 * (joints[b.name] - 1) + np.arange(10) for b in peer.robot.bodies])
    H = np.array([peer.offsets.get(b.name, pin.SE3.Identity()).homogeneous for b in peer.robot.bodies])[:, None]
    moved = parameters_of(H @ pseudo_inertia(np.eye(10)) @ np.swapaxes(H, -1, -2))
    return columns, np.swapaxes(moved, -1, -2)


def of_bodies(peer: Peer, rows: Any) -> Array:
    """Return a regressor of Pinocchio with columns in our order, for parameters in frames of the file; one row comes as a
    vector.
    """
    columns, moved = in_joints(peer)
    whole = np.reshape(rows, (-1, 10 * len(peer.ids)))
    return np.concatenate([whole[..., own] @ turned for own, turned in zip(columns, moved, strict=True)], axis=-1)


@pytest.mark.parametrize("name", [*NAMES, *AWKWARD])
def test_regressors_are_those_of_pinocchio(name: str) -> None:
    peer = peer_of(name)
    robot, model, data = peer.robot, peer.model, peer.data
    x = random_states(robot, STATES)
    torque, kinetic, potential = [], [], []
    for q, v, a in zip(*x, strict=True):
        state = peer.q(q), peer.v(v)
        torque.append(of_bodies(peer, pin.computeJointTorqueRegressor(model, data, *state, peer.v(a)))[peer.columns])
        kinetic.append(of_bodies(peer, pin.computeKineticEnergyRegressor(model, data, *state))[0])
        potential.append(of_bodies(peer, pin.computePotentialEnergyRegressor(model, data, state[0]))[0])
    assert_close(evaluated(robot.inverse_dynamics_regressor, *x)[0], torque, AGREEMENT)
    assert_close(evaluated(robot.kinetic_energy_regressor, x.q, x.v)[0], kinetic, AGREEMENT)
    assert_close(evaluated(robot.potential_energy_regressor, x.q)[0], potential, AGREEMENT)


@pytest.mark.parametrize("name", [*NAMES, *AWKWARD])
def test_inertial_parameters_are_those_of_pinocchio(name: str) -> None:
    peer = peer_of(name)
    columns, moved = in_joints(peer)
    theirs = np.array([I.toDynamicParameters() for I in list(peer.model.inertias)[1:]]).ravel()[columns]
    ours = (moved @ peer.robot.inertial_parameters[..., None])[..., 0]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_is_what_is_traced(name: str) -> None:
    robot = peer_of(name).robot
    x = random_states(robot, 9)
    f = robot.inverse_dynamics_regressor
    traced = evaluated(f, *x)[0]
    assert_close(f(*x), traced, 1e-12)
    out = np.full((robot.nv, f.program.outputs[0].shape[1]), np.nan)
    f(*(y[0] for y in x), out=out)
    assert_close(out[None], traced[:1], 1e-12)
