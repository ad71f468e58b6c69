"""Tests of real robots against MuJoCo, which gets the descriptions that were read from their files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.formats.registry import load_description
from oracles import mujoco_models
from oracles.robots import COMPILED, FLOATING, NAMES, example, path
from oracles.same_dynamics import SameDynamics
from oracles.states import States, random_states

STATES = 5


def described(name: str) -> fw.Description:
    """Return the description of the robot's file, with a free-flyer if it walks or flies."""
    description = load_description(path(name), mimic="independent")
    if name not in FLOATING:
        return description
    moved = {j.child for j in description.joints}
    [root] = [b.name for b in description.bodies if b.name not in moved]
    flyer = fw.Joint("root_joint", fw.JointType.FLOATING, "world", root)
    return replace(description, joints=(flyer, *description.joints))


def acceptable(body: fw.Body) -> fw.Body:
    """Return the body, or a ball of the same mean inertia if MuJoCo would refuse its inertia as impossible."""
    mass, center, (xx, xy, xz, yy, yz, zz) = body.inertia
    low, middle, high = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if low > 0.0 and low + middle > 1.000001 * high:
        return body
    mean = max((xx + yy + zz) / 3, 1e-9 * mass)
    return fw.Body(body.name, fw.Inertia(mass, center, (mean, 0.0, 0.0, mean, 0.0, mean)))


@pytest.fixture(params=NAMES, scope="module")
def peer(request: pytest.FixtureRequest) -> mujoco_models.Peer:
    name = request.param
    description = described(name)
    if "world" in {b.name for b in description.bodies}:  # "world" is MuJoCo's name for the ground; this link is fixed to it
        description = replace(description, bodies=tuple(b for b in description.bodies if b.name != "world"))
    description = replace(description, bodies=tuple(map(acceptable, description.bodies)))
    execution = "auto" if name in COMPILED else "interpreted"
    return mujoco_models.from_description(description, fw.build(description, execution=execution))


@pytest.fixture
def states(peer: mujoco_models.Peer) -> States:
    return random_states(peer.robot, STATES)


class TestDynamics(SameDynamics):
    pass


@pytest.mark.parametrize("name", FLOATING)
def test_a_free_flyer_of_the_file_is_the_free_flyer_of_load(name: str) -> None:
    robot = fw.build(described(name), execution="interpreted")
    loaded = example(name, "interpreted")
    assert [j.name for j in loaded.joints] == [j.name for j in robot.joints]
    states = random_states(robot, STATES)
    np.testing.assert_array_equal(loaded.inverse_dynamics(*states), robot.inverse_dynamics(*states))
