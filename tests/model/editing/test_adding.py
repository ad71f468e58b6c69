"""Tests of additions to a description: loops, couplings and closures equal those of `describe`; payloads are exact."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight import Closure, Coupling, Frame, Inertia, Loop, LoopType, ModelError, Pose, robots
from featherweight.model.generators import chain, from_parents
from oracles import robots as examples
from oracles.matrices import symmetric
from oracles.pinocchio_models import Peer
from oracles.same_motion import assert_same_motion, interpreted
from oracles.states import assert_close, random_states

LOAD = Inertia(2.5, (0.1, -0.05, 0.2), (0.03, 0.001, -0.002, 0.04, 0.003, 0.02))
TILTED = Pose(((0.0, -1.0, 0.0), (0.6, 0.0, -0.8), (0.8, 0.0, 0.6)), (0.1, -0.2, 0.3))


def as_pinocchio(inertia: Inertia) -> pin.Inertia:
    return pin.Inertia(inertia.mass, np.array(inertia.center), symmetric(inertia.rotational))


@pytest.mark.parametrize("on", ["panda_link7", "panda_hand", "panda_hand_joint"])
def test_payloads_are_those_of_pinocchio(on: str) -> None:
    """Check payloads on a moving link, on a link that is fixed to it, and on the fixed joint."""
    path = examples.path("panda")
    model = pin.buildModelFromUrdf(str(path))
    frame = model.frames[model.getFrameId(on.removesuffix("_joint"), pin.FrameType.BODY)]
    model.appendBodyToJoint(frame.parentJoint, as_pinocchio(LOAD), frame.placement)
    peer = Peer(interpreted(fw.read(path, mimic="independent").with_payload(on, LOAD)), model)
    states = random_states(peer.robot, 2)
    assert_close(peer.robot.mass_matrix(states.q), peer.mass_matrix(states.q))
    assert_close(peer.robot.inverse_dynamics(*states), peer.inverse_dynamics(*states))


def test_a_payload_in_a_frame_is_turned_with_it() -> None:
    description = dataclasses.replace(chain(2), frames=(Frame("tool", "body1", TILTED),))
    body = description.bodies[1].inertia
    heavier = description.with_payload("tool", LOAD).bodies[1].inertia
    placed = pin.SE3(np.array(TILTED.R), np.array(TILTED.p)).act(as_pinocchio(LOAD))
    expected = as_pinocchio(body) + placed
    np.testing.assert_allclose(as_pinocchio(heavier).matrix(), expected.matrix(), rtol=1e-13, atol=1e-15)


def test_mass_on_nothing_is_what_it_is_itself() -> None:
    description = dataclasses.replace(chain(2), bodies=(chain(2).bodies[0], fw.Body("body1")))
    assert description.with_payload("body1", LOAD).bodies[1].inertia == LOAD
    assert description.with_payload("body1", Inertia()).bodies[1].inertia == Inertia()
    twice = description.with_payload("body1", LOAD).with_payload("body1", LOAD).bodies[1].inertia
    assert twice.mass == 5.0
    assert twice.center == pytest.approx(LOAD.center)
    assert twice.rotational == pytest.approx([2 * x for x in LOAD.rotational])


def test_payloads_that_cannot_be_are_refused() -> None:
    with pytest.raises(ModelError, match=r"payload: there is no body, frame or fixed joint 'body9' .*; there are body0, body1"):
        chain(2).with_payload("body9", LOAD)
    with pytest.raises(ModelError, match=r"payload on 'body1': its mass is negative \(-1 kg\)"):
        chain(2).with_payload("body1", Inertia(-1.0))
    with pytest.raises(ModelError, match="'world' lies on the ground"):
        chain(2).with_payload("world", LOAD)


def test_a_loop_is_added_between_whatever_has_a_frame() -> None:
    bars = robots.four_bar((0.5, 1.2, 0.6, 1.0))
    (ring,) = bars.loops
    tree = dataclasses.replace(bars, loops=(), frames=(Frame("end", ring.predecessor, ring.predecessor_frame),))
    assert_same_motion(interpreted(tree.with_loop(ring)), interpreted(bars))
    on_frame = tree.with_loop(dataclasses.replace(ring, predecessor="end", predecessor_frame=Pose()))
    assert_same_motion(interpreted(on_frame), interpreted(bars))


def test_loops_that_cannot_be_are_refused() -> None:
    weld = Loop("weld", LoopType.WELD, "body0", "body1")
    with pytest.raises(ModelError, match=r"loop 'weld': there is no body, frame or fixed joint 'hand'; there are body0, body1"):
        chain(2).with_loop(dataclasses.replace(weld, successor="hand"))
    with pytest.raises(ModelError, match="loop 'weld': no joint moves 'body1' against 'body1'"):
        chain(2).with_loop(dataclasses.replace(weld, predecessor="body1"))
    with pytest.raises(ModelError, match="there already is a loop 'weld'"):
        chain(2).with_loop(weld).with_loop(weld)


def test_couplings_and_closures_are_those_of_a_mechanism() -> None:
    tree = from_parents([-1, 0, 1, 0], rng=7)
    gear, rod = (
        Coupling("gear", "joint3", (("joint1", (2.0,)),), 0.1),
        Closure("rod", ("joint0", "joint2"), lambda q: [q[0] - q[1]]),
    )
    whole = fw.describe(tree.bodies, tree.joints, couplings=(gear,), closures=(rod,))
    assert_same_motion(interpreted(tree.with_coupling(gear).with_closure(rod)), interpreted(whole))


@pytest.mark.parametrize(
    ("coupling", "message"),
    [
        (Coupling("gear", "joint9", (("joint1", (1.0,)),)), "coupling 'gear': there is no joint 'joint9'"),
        (Coupling("gear", "joint0", (("joint2", (1.0,)),)), "joint 'joint2' is spherical and has no single coordinate"),
        (Coupling("gear", "joint0", ()), "joint 'joint0' would follow no other; use `locked` to fix it"),
        (Coupling("belt", "joint0", (("joint1", (1.0,)),)), "there already is a coupling 'belt'"),
        (Coupling("gear", "joint1", (("joint0", (1.0,)),)), "joint 'joint1' already follows by coupling 'belt'"),
    ],
)
def test_couplings_that_cannot_be_are_refused(coupling: Coupling, message: str) -> None:
    kinds = ("revolute", "revolute", "spherical")
    joints = (dataclasses.replace(j, type=fw.JointType(kind)) for j, kind in zip(chain(3).joints, kinds, strict=True))
    tree = dataclasses.replace(chain(3), joints=tuple(joints))
    with pytest.raises(ModelError) as caught:
        tree.with_coupling(Coupling("belt", "joint1", (("joint0", (1.0,)),))).with_coupling(coupling)
    assert message in str(caught.value)


def test_closures_that_cannot_be_are_refused() -> None:
    with pytest.raises(ModelError, match="closure 'rod': there is no joint 'elbow'; there are joint0, joint1"):
        chain(2).with_closure(Closure("rod", ("elbow",), lambda q: [q[0]]))


def test_a_description_is_short_in_print() -> None:
    assert repr(fw.read(examples.path("panda"))) == "<Description 'panda': 13 bodies, 9 moving joints, couplings: 1>"
    assert repr(chain(2)) == "<Description 'chain_2': 2 bodies, 2 moving joints>"
