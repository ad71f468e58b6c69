"""Tests of frames that users define, in all arguments that take a frame's name."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.algorithms import rnea
from featherweight.engine.program import Input, Output
from featherweight.model.types import WORLD
from featherweight.robot.arguments import Configuration, Velocity
from oracles.robots import example
from oracles.states import random_states

HAND = "panda_hand"  # fixed to another link
GROUND = "panda_link0"
Q, V, _ = random_states(example("panda", "interpreted"), 3)


def offset(seed: int = 0) -> Any:
    """Return a homogeneous matrix (4, 4)."""
    rng = np.random.default_rng(seed)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.random(random_state=seed).as_matrix(), rng.standard_normal(3)
    return T


@pytest.fixture
def panda() -> fw.Robot:
    return example("panda", "interpreted")


@pytest.mark.parametrize("link", ["panda_link3", HAND, GROUND])
def test_a_frame_of_ones_own_is_carried_by_its_link(panda: fw.Robot, link: str) -> None:
    at = panda.frame_placement(link)(Q)
    T, frame = offset(), fw.Frame("tool", link, offset())
    np.testing.assert_allclose(panda.frame_placement(frame)(Q), at @ T, rtol=0.0, atol=1e-14)
    both = panda.frame_placement([frame, link])(Q)
    np.testing.assert_array_equal(both[:, 0], panda.frame_placement(frame)(Q))
    np.testing.assert_array_equal(both[:, 1], at)
    w, o = panda.frame_velocity(link)(Q, V)[:, 3:], (at @ T)[:, :3, 3] - at[:, :3, 3]
    moved = panda.frame_velocity(link)(Q, V)[:, :3] + np.cross(w, o)
    np.testing.assert_allclose(panda.frame_velocity(frame)(Q, V), np.hstack([moved, w]), rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("body", [None, WORLD])
def test_a_frame_of_ones_own_on_the_ground_stays(panda: fw.Robot, body: str | None) -> None:
    frame = fw.Frame("goal", body, offset())
    np.testing.assert_array_equal(panda.frame_placement(frame)(Q), np.broadcast_to(offset(), (3, 4, 4)))
    assert not panda.frame_velocity(frame)(Q, V).any()


def test_frames_of_ones_own_are_compared_by_value(panda: fw.Robot) -> None:
    T = offset()
    same = (
        fw.Frame("tool", HAND, T),
        fw.Frame("tool", HAND, fw.Pose(T[:3, :3], T[:3, 3])),
        pickle.loads(pickle.dumps(fw.Frame("tool", HAND, T))),
    )
    assert len(set(same)) == 1
    assert panda.frame_jacobian(same[0]) is panda.frame_jacobian(same[1])
    assert panda.frame_jacobian(same[0]) is not panda.frame_jacobian(fw.Frame("tool", HAND, offset(1)))
    assert panda.operational_space(fw.BilateralContact(same[0])) is panda.operational_space(fw.BilateralContact(same[1]))


def test_the_robots_frames_by_name(panda: fw.Robot) -> None:
    frame = next(f for f in panda.frames if f.name == HAND)
    assert panda.frame(HAND) == frame
    T = panda.frame(fw.Frame("tool", HAND, offset()))
    assert (T.name, T.body) == ("tool", frame.body)
    at = np.array(frame.placement.R) @ offset()[:3, 3] + np.array(frame.placement.p)
    np.testing.assert_allclose(T.placement.p, at, rtol=0.0, atol=1e-15)


def test_contacts_on_frames_of_ones_own(panda: fw.Robot) -> None:
    tool = fw.Frame("tool", HAND, offset())
    placed, own = fw.BilateralContact(HAND, "point", placement=offset()), fw.BilateralContact(tool, "point")
    np.testing.assert_allclose(panda.contact_jacobian(own)(Q), panda.contact_jacobian(placed)(Q), rtol=0.0, atol=1e-14)
    assert str(own) == "the contact on 'tool'"
    difference = fw.Difference(tool, "panda_link2")
    J = panda.contact_jacobian(difference)(Q)
    R = panda.frame_placement(tool)(Q)[:, :3, :3].swapaxes(1, 2)
    of_both = panda.frame_jacobian(tool)(Q) - panda.frame_jacobian("panda_link2")(Q)
    np.testing.assert_allclose(J[:, :3], R @ of_both[:, :3], rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(J[:, 3:], R @ of_both[:, 3:], rtol=0.0, atol=1e-13)


def test_what_is_no_frame_is_refused(panda: fw.Robot) -> None:
    with pytest.raises(ValueError, match=r"frame 'tool': panda has no link 'paw'; it has panda_link0"):
        panda.frame_placement(fw.Frame("tool", "paw"))
    with pytest.raises(ValueError, match=r"Frame 'tool': placement must be a rotation and a translation"):
        fw.Frame("tool", HAND, 2.0 * np.eye(4))
    with pytest.raises(ValueError, match=r"Frame 'tool': placement must be a homogeneous matrix \(4, 4\)"):
        fw.Frame("tool", HAND, np.eye(3))
    with pytest.raises(ValueError, match=r"placement of frame 'tool' must be a rotation"):
        panda.frame_placement(fw.Frame("tool", HAND, fw.Pose(((2.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))))
    with pytest.raises(TypeError, match=r"panda: a frame is a name or a featherweight.Frame; got 3"):
        panda.frame_placement([HAND, 3])  # type: ignore[list-item]


def test_arguments_are_what_they_are_declared_as(panda: fw.Robot) -> None:
    """Check declared arguments of any name."""
    output = Output("tau", (panda.nv,))
    f = panda.bind("f", rnea.bias_force, (Configuration("x"), Velocity("qdd")), (output,))
    x, qdd = f.program.inputs
    assert (x.name, x.shape, x.rate) == ("x", (panda.nq,), panda._rate)
    assert (qdd.name, qdd.shape, qdd.rate) == ("qdd", (panda.nv,), None)
    given = panda.bind("f", rnea.bias_force, (Configuration("x"), Input("q", (panda.nv,))), (output,)).program.inputs[1]
    assert given.rate is None


def test_the_ground_is_a_frame_with_the_name_world() -> None:
    robot = example("panda", "interpreted")
    ground = fw.Frame("floor", None)
    assert robot.frame("world").body is None
    np.testing.assert_array_equal(robot.frame_placement("world")(Q[0]), np.eye(4))
    np.testing.assert_array_equal(robot.frame_placement(HAND, "world")(Q), robot.frame_placement(HAND, ground)(Q))
    np.testing.assert_array_equal(robot.frame_jacobian("world")(Q[0]), 0.0)
    lifted = fw.Frame("lifted", "world", fw.Pose(p=(0.0, 0.0, 1.0)))
    np.testing.assert_array_equal(robot.frame_placement(lifted)(Q[0])[:3, 3], [0.0, 0.0, 1.0])
    hand = fw.BilateralContact(HAND)
    for algorithm in ("pv-osim", "efpa", "ltl"):
        named, made = (robot.delassus([hand, fw.BilateralContact(x)], algorithm)(Q) for x in ("world", ground))
        np.testing.assert_array_equal(named, made)
        assert named[:, :6].any() and not named[:, 6:].any()
    with pytest.raises(ValueError, match="no frame 'universe'"):
        robot.delassus([fw.BilateralContact("universe")])


def test_a_body_with_the_name_world_is_not_the_ground() -> None:
    ball = fw.Body(WORLD, fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    robot = fw.build(fw.describe([ball], [fw.Joint("turn", fw.JointType.CONTINUOUS, None, WORLD)]), execution="interpreted")
    assert robot.frame(WORLD).body == WORLD
    assert robot.frame_jacobian(WORLD)(np.ones(1)).any()
