"""Tests of functions of frames as compiled functions: cached, batched, differentiated."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.kept_objects import MOST
from oracles.robots import example
from oracles.states import assert_close, random_states

HAND, ELBOW = "panda_hand", "panda_link4"
TOOL = fw.Frame("tool", HAND, fw.Pose(p=(0.0, 0.0, 0.1)))
MOTIONS = ("frame_velocity", "frame_acceleration", "frame_classical_acceleration", "frame_bias_acceleration")
STATES = random_states(example("panda", "interpreted"), 5, seed=1)


@pytest.fixture
def panda() -> fw.Robot:
    return example("panda", "interpreted")


def arguments(function: fw.CompiledFunction, k: int | slice = slice(None)) -> list[np.ndarray]:
    return [getattr(STATES, argument.name)[k] for argument in function.program.inputs]


def test_compiled_functions_are_those_of_plain_python(panda: fw.Robot) -> None:
    """Check all functions composed as one, so that one compilation suffices."""
    kinds: tuple[Callable[[fw.Robot], fw.CompiledFunction], ...] = (
        lambda r: r.frame_placement([HAND, TOOL], ELBOW),
        lambda r: r.frame_jacobian(TOOL, "world", ELBOW),
        lambda r: r.frame_jacobian_rate([HAND, TOOL]),
        lambda r: r.frame_acceleration(TOOL, "local"),
        lambda r: r.frame_classical_acceleration(TOOL, relative_to=ELBOW),
        lambda r: r.joint_jacobian_rate,
    )
    plain, compiled = ([f(robot) for f in kinds] for robot in (panda, example("panda")))
    results = example("panda").together(*compiled)(*STATES)
    for result, function in zip(results, plain, strict=True):
        assert result.shape[0] == 5
        assert_close(result, function(*arguments(function)))
    one = example("panda").together(*compiled)(*(x[0] for x in STATES))
    for result, whole in zip(one, results, strict=True):
        assert_close(result[None], whole[:1])


@pytest.mark.parametrize("member", MOTIONS)
def test_one_frame_is_the_first_of_a_sequence(panda: fw.Robot, member: str) -> None:
    one, several = getattr(panda, member)(TOOL, relative_to=ELBOW), getattr(panda, member)([TOOL], relative_to=ELBOW)
    np.testing.assert_array_equal(one(*arguments(one)), several(*arguments(several))[:, 0])
    assert (one.signature.split("->")[1], several.signature.split("->")[1]) == ("(6)", "(1,6)")


def test_functions_are_made_once_for_each_frame_of_reference(panda: fw.Robot) -> None:
    made = [
        panda.frame_velocity(TOOL),
        panda.frame_velocity(TOOL, "world"),
        panda.frame_velocity(TOOL, relative_to=ELBOW),
        panda.frame_velocity(TOOL, relative_to=fw.Frame("mark", ELBOW)),
        panda.frame_velocity([TOOL]),
    ]
    assert len(set(map(id, made))) == 5
    assert panda.frame_velocity(TOOL, relative_to=fw.Frame("mark", ELBOW)) is made[3]


def test_functions_of_old_frames_are_freed(panda: fw.Robot) -> None:
    """Check that a new frame in each call needs no more memory, and that names and frames in use keep their functions."""
    robot: fw.Robot = pickle.loads(pickle.dumps(panda))
    made: list[weakref.ref[fw.CompiledFunction]] = []
    named = robot.frame_jacobian(HAND), robot.operational_space(fw.BilateralContact(HAND))
    used = robot.frame_jacobian(TOOL)
    for k in range(2 * MOST):
        new = fw.Frame("new", HAND, fw.Pose(p=(0.0, 0.0, 0.001 * k)))
        space = robot.operational_space(fw.BilateralContact(new))
        made += [weakref.ref(f) for f in (robot.frame_jacobian(new), robot.frame_velocity([new, HAND]), space.jacobian)]
        assert robot.frame_jacobian(TOOL) is used
    del space
    gc.collect()
    assert sum(f() is not None for f in made) <= 2 * MOST
    assert (robot.frame_jacobian(HAND), robot.operational_space(fw.BilateralContact(HAND))) == named


def test_rates_of_loops_are_those_of_their_frames() -> None:
    robot = fw.build(fw.robots.four_bar(), execution="interpreted")
    body = robot.bodies[-1].name
    frames = [fw.Frame("new", body, fw.Pose(p=(0.1 * k, 0.0, 0.0))) for k in range(3)]
    q, v = robot.random_configuration(rng=1), np.ones(robot.nv)
    rates = [robot.frame_jacobian_rate(frame)(q, v) for frame in frames]
    assert robot.frame_jacobian_rate(frames[0]) is robot.frame_jacobian_rate(frames[0])
    np.testing.assert_allclose(rates[2] - rates[1], rates[1] - rates[0], atol=1e-12)
    assert np.abs(rates[1] - rates[0]).max() > 1e-3


@pytest.mark.parametrize("member", ["frame_placement", "frame_jacobian", "frame_jacobian_rate", *MOTIONS])
def test_a_frame_and_a_state_in_one_call_give_the_result(panda: fw.Robot, member: str) -> None:
    method = getattr(panda, member)
    for frame in (HAND, TOOL, [HAND, TOOL]):
        function = method(frame)
        given = arguments(function, slice(2))
        np.testing.assert_array_equal(method(frame, *given), function(*given))
        np.testing.assert_array_equal(method(frame, *(x.tolist() for x in given)), function(*given))
        named = {x.name: y for x, y in zip(function.program.inputs, given, strict=True)}
        np.testing.assert_array_equal(method(frame, **named), function(*given))
        np.testing.assert_array_equal(method(frame, *given, relative_to=ELBOW), method(frame, relative_to=ELBOW)(*given))
    if member != "frame_placement":
        np.testing.assert_array_equal(method(HAND, *given, reference="local"), method(HAND, "local")(*given))
        assert method(HAND, "local", ELBOW) is method(HAND, reference="local", relative_to=ELBOW)
    assert method(HAND) is method(HAND)
    with pytest.raises(TypeError, match=rf'write {member}\("hand", q'):
        method(given[0])


def test_joints_that_carry_both_frames_do_not_matter(panda: fw.Robot) -> None:
    q, v, _ = STATES
    J = panda.frame_jacobian(TOOL, relative_to=ELBOW)(q)
    own = [j.v_slice.start for j in panda.joints if j.name in ("panda_joint5", "panda_joint6", "panda_joint7")]
    assert np.flatnonzero(np.abs(J).max(axis=(0, 1))).tolist() == own
    moved = q.copy()
    moved[:, :4] += 1.0
    velocity = panda.frame_velocity(TOOL, relative_to=ELBOW)
    np.testing.assert_array_equal(velocity(moved, v), velocity(q, v))


@pytest.mark.parametrize("relative_to", [None, ELBOW])
def test_derivatives(panda: fw.Robot, relative_to: str | None) -> None:
    """Check that the derivative of a placement is the Jacobian in local axes; derivatives of an acceleration are the
    Jacobian (by a) and finite differences (by q and v).
    """
    q, v, a = (x[:2] for x in STATES)
    slope = panda.frame_placement(TOOL, relative_to).derivative()
    assert_close(slope(q), panda.frame_jacobian(TOOL, "local", relative_to)(q))
    acceleration = panda.frame_acceleration(TOOL, "local", relative_to)
    by_q, by_v, by_a = acceleration.derivative()(q, v, a)
    assert_close(by_a, panda.frame_jacobian(TOOL, "local", relative_to)(q))
    h = 1e-6
    step = h * np.eye(panda.nv)[:, None]
    for slope_of, before, after in (
        (by_q, (panda.integrate(q, -step), v, a), (panda.integrate(q, step), v, a)),
        (by_v, (q, v - step, a), (q, v + step, a)),
    ):
        difference = (acceleration(*after) - acceleration(*before)) / (2 * h)
        assert_close(slope_of, np.moveaxis(difference, 0, -1), 1e-8)


def test_unknown_frames_and_references_are_refused(panda: fw.Robot) -> None:
    with pytest.raises(ValueError, match=r"panda has no frame 'paw'"):
        panda.frame_velocity(TOOL, relative_to="paw")
    with pytest.raises(ValueError, match=r"reference must be one of local, local_world_aligned, world; got 'hand'"):
        panda.frame_jacobian_rate(TOOL, "hand")


def test_rates_of_jacobians_of_mechanisms_are_functions_like_others() -> None:
    """Check mechanisms with loops: these rates are differentiated Jacobians, linear in v; they can be pickled,
    differentiated and fused.
    """
    robot = fw.build(fw.robots.four_bar(), execution="interpreted")
    frame = robot.bodies[-1].name
    rate = robot.frame_jacobian_rate(frame)
    q, v = robot.random_configuration(rng=3), np.array([0.7])
    assert rate is robot.frame_jacobian_rate(frame)
    assert rate.signature == f"({robot.nq}),(1)->(6,1)"
    assert [x.name for x in rate.program.inputs] == ["q", "v"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rate))(q, v), rate(q, v))
    np.testing.assert_allclose(rate.derivative("v")(q, v) @ v, rate(q, v), rtol=0.0, atol=1e-14)
    J, both = robot.together(J=robot.frame_jacobian(frame), rate=rate)(q, v)
    np.testing.assert_allclose(both, rate(q, v), rtol=0.0, atol=1e-14)
    assert J.shape == (6, 1)
