"""Tests of centroidal momentum and the Coriolis matrix against Pinocchio, for every kind of joint and tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from oracles import pinocchio_models
from oracles.pinocchio_models import Peer, example
from oracles.robots import NAMES
from oracles.states import Array, States, assert_close, evaluated, random_states
from oracles.trees import tree

FILES = 1e-9
"""Tolerance for robots from files, whose right angles this package makes exact."""

STATES = 3
AWKWARD = (
    "mixed_8",
    "all_planar",
    "depth_one",
    "roots",
    "single_body",
    "spherical_below_prismatic",
    "floating_inside",
    "anchored",
)


def columns(peer: Peer, matrix: Any) -> Array:
    # Pinocchio returns a matrix of one column as a vector
    return np.asarray(matrix).reshape(-1, peer.model.nv)[:, peer.columns]


def by_pinocchio(peer: Peer, x: States) -> dict[str, Array]:
    model, data = peer.model, peer.data
    found: dict[str, list[Any]] = {}
    for q, v, a in zip(*x, strict=True):
        q, v, a = peer.q(q), peer.v(v), peer.v(a)
        pin.ccrba(model, data, q, v)
        here: dict[str, Any] = {"centroidal_map": columns(peer, data.Ag), "centroidal_inertia": data.Ig.inertia}
        here["centroidal_momentum"] = data.hg.vector
        pin.dccrba(model, data, q, v)
        here["centroidal_map_rate"] = columns(peer, data.dAg)
        here["centroidal_bias"] = np.reshape(data.dAg, (6, -1)) @ v
        pin.computeCentroidalMomentumTimeVariation(model, data, q, v, a)
        here["centroidal_momentum_rate"] = data.dhg.vector
        pin.centerOfMass(model, data, q, v, a)
        here["center_of_mass_velocity"], here["center_of_mass_acceleration"] = data.vcom[0], data.acom[0]
        here["center_of_mass_jacobian"] = columns(peer, pin.jacobianCenterOfMass(model, data, q))
        here["coriolis_matrix"] = columns(peer, pin.computeCoriolisMatrix(model, data, q, v))[peer.columns]
        for name, value in here.items():
            found.setdefault(name, []).append(np.array(value, dtype=np.float64))
    return {name: np.array(values) for name, values in found.items()}


def check(peer: Peer, tolerance: float) -> None:
    x = random_states(peer.robot, STATES)
    for name, theirs in by_pinocchio(peer, x).items():
        for f in getattr(peer.robot, name).alternatives.values():
            [ours] = evaluated(f, *(getattr(x, a.name) for a in f.program.inputs))
            scale = np.linalg.norm(theirs.reshape(STATES, -1), axis=1)
            worst = np.linalg.norm((ours - theirs).reshape(STATES, -1), axis=1)
            assert np.all(worst <= tolerance * np.maximum(scale, 1.0)), (name, f.algorithm)


@pytest.mark.parametrize("name", ["talos", "hyq", "panda", "allegro"])
def test_files(name: str) -> None:
    check(example(name), FILES)


@pytest.mark.parametrize("name", AWKWARD)
def test_trees(name: str) -> None:
    check(pinocchio_models.from_description(*tree(name)), 1e-11)


@pytest.mark.parametrize("name", ["hyq", "mixed_8", "anchored", "roots"])
def test_static_torque(name: str) -> None:
    peer = example(name) if name in NAMES else pinocchio_models.from_description(*tree(name))
    robot, q = peer.robot, random_states(peer.robot, STATES).q
    forces = np.random.default_rng(1).standard_normal((STATES, len(robot.bodies), 6))
    theirs = [pin.computeStaticTorque(peer.model, peer.data, peer.q(x), peer.forces(f)) for x, f in zip(q, forces, strict=True)]
    [ours] = evaluated(robot.static_torque.variant("external_forces"), q, forces)
    assert_close(ours, np.array(theirs)[:, peer.columns], FILES)
    assert_close(evaluated(robot.static_torque, q)[0], evaluated(robot.gravity_force, q)[0])
