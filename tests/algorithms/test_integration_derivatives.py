"""Tests of the Jacobians of `integrate` and `difference`, beside Pinocchio, small steps and differentiated traces."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.generators import from_parents

JOINTS = {
    fw.JointType.FLOATING: pin.JointModelFreeFlyer,
    fw.JointType.SPHERICAL: pin.JointModelSpherical,
    fw.JointType.PLANAR: pin.JointModelPlanar,
    fw.JointType.REVOLUTE: pin.JointModelRX,
    fw.JointType.CONTINUOUS: pin.JointModelRY,
    fw.JointType.PRISMATIC: pin.JointModelPX,
}
Types = tuple[fw.JointType, ...]
MIXED: Types = tuple(fw.JointType(k) for k in ("revolute", "spherical", "prismatic", "floating", "spherical", "continuous"))
TURN = {fw.JointType.SPHERICAL: slice(0, 3), fw.JointType.PLANAR: slice(2, 3), fw.JointType.FLOATING: slice(3, 6)}
SPEEDS = [0.0, 1e-160, 1e-9, 1e-7, 1e-5, 1e-3, 0.05, 0.1, 0.14, 0.3, 1.0, 3.0, 10.0]
BESIDE = [pytest.param(types, id=" ".join(types)) for types in [(k,) for k in JOINTS if k is not fw.JointType.PLANAR] + [MIXED]]


@cache
def chain(types: Types, execution: str = "interpreted") -> fw.Robot:
    made = from_parents(range(-1, len(types) - 1), rng=4)
    joints = tuple(dataclasses.replace(j, type=kind) for j, kind in zip(made.joints, types, strict=True))
    return fw.build(dataclasses.replace(made, joints=joints), execution=execution)


def pinocchio_model(types: Types) -> pin.Model:
    model = pin.Model()
    for i, kind in enumerate(types):
        model.addJoint(i, JOINTS[kind](), pin.SE3.Identity(), f"joint{i}")
    return model


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("types", BESIDE)
def test_jacobians_of_integrate_agree_with_pinocchio(types: Types, speed: float) -> None:
    robot, model, rng = chain(types), pinocchio_model(types), np.random.default_rng(7)
    q = robot.random_configuration(rng=rng, size=20)
    v = speed * rng.standard_normal((20, model.nv))
    expected = [pin.dIntegrate(model, a, b) for a, b in zip(q, v, strict=True)]
    for J, theirs in zip(robot.integrate_derivatives(q, v), zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(J, theirs, rtol=0, atol=1e-9)  # near 1e-3 rad Pinocchio's Jacobian of SE(3) has nine digits


@pytest.mark.parametrize("speed", [0.0, 1e-9, 1e-3, 0.3, 1.0])
@pytest.mark.parametrize("types", BESIDE)
def test_jacobians_of_difference_agree_with_pinocchio(types: Types, speed: float) -> None:
    robot, model, rng = chain(types), pinocchio_model(types), np.random.default_rng(8)
    q0 = robot.random_configuration(rng=rng, size=20)
    q1 = robot.integrate(q0, speed * rng.standard_normal((20, model.nv)))
    expected = [pin.dDifference(model, a, b) for a, b in zip(q0, q1, strict=True)]
    for J, theirs in zip(robot.difference_derivatives(q0, q1), zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(J, theirs, rtol=0, atol=1e-7)  # and that of the logarithm seven


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 0.1, 1.0, 3.0, math.pi - 1e-3])
@pytest.mark.parametrize("kind", JOINTS)
def test_jacobians_are_those_of_moves_along_each_velocity(kind: fw.JointType, angle: float) -> None:
    robot, small, rng = chain((kind,)), 1e-5, np.random.default_rng(9)
    q = robot.random_configuration(rng=rng)
    v = turning(kind, angle)
    end = robot.integrate(q, v)
    by_q, by_v = robot.integrate_derivatives(q, v)
    by_q0, by_q1 = robot.difference_derivatives(q, end)

    def slopes(f: Callable[[Array], Array]) -> Array:
        return np.stack([(f(small * e) - f(-small * e)) / (2 * small) for e in np.eye(robot.nv)], axis=-1)

    def moved(x: Array) -> Array:
        return robot.integrate(q, x)

    np.testing.assert_allclose(by_q, slopes(lambda x: robot.difference(end, robot.integrate(moved(x), v))), atol=1e-8)
    np.testing.assert_allclose(by_v, slopes(lambda x: robot.difference(end, moved(v + x))), atol=1e-8)
    np.testing.assert_allclose(by_q0, slopes(lambda x: robot.difference(moved(x), end)), atol=1e-7)
    np.testing.assert_allclose(by_q1, slopes(lambda x: robot.difference(q, robot.integrate(end, x))), atol=1e-7)


def turning(kind: fw.JointType, angle: float) -> Array:
    """Return a velocity of a joint with an angular part of a magnitude."""
    if kind not in TURN:
        return np.full(kind.nv, angle)
    v = np.random.default_rng(10).standard_normal(kind.nv)
    w = v[TURN[kind]]
    w *= angle / np.linalg.norm(w)
    return v


@pytest.mark.parametrize("speed", [0.0, 1e-160, 1e-15, 1e-12, 1e-8, 1e-4, 0.1, 0.49, 0.51, 1.0, 1.8])
def test_formulas_are_the_differentiated_traces(speed: float) -> None:
    """Check formulas beside forward differentiation of `integrate` and `difference`, whose rates cancel near half a turn."""
    robot = chain((*MIXED, fw.JointType.PLANAR))
    q = robot.random_configuration(rng=1)
    v = speed * np.random.default_rng(2).choice([-1.0, 1.0], robot.nv)
    q1 = robot.integrate(q, v)
    for found, expected in (
        (robot.integrate_derivatives(q, v), robot.integrate.derivative()(q, v)),
        (robot.difference_derivatives(q, q1), robot.difference.derivative()(q, q1)),
    ):
        for J, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(J, other, rtol=0, atol=2e-14)


@pytest.mark.parametrize("speed", [0.0, 1e-15, 1e-12, 1e-8, 1e-4, 0.3, 1.0])
def test_jacobians_have_derivatives_at_any_angle(speed: float) -> None:
    """Check second derivatives beside differences of steps of 1e-5, whose errors are of the order of 1e-10."""
    robot, small = chain((fw.JointType.FLOATING, fw.JointType.SPHERICAL)), 1e-5
    rng = np.random.default_rng(3)
    q, v = robot.random_configuration(rng=rng), rng.standard_normal(robot.nv)
    v[3:] *= speed
    steps = small * np.eye(robot.nv)
    slope = robot.integrate_derivatives.derivative("v")(q, v).ddresult_dv_dv
    ends = [robot.integrate_derivatives(q, v + side * steps).dresult_dv for side in (1.0, -1.0)]
    np.testing.assert_allclose(slope, np.moveaxis(ends[0] - ends[1], 0, -1) / (2 * small), atol=1e-9)
    q1 = robot.integrate(q, v)
    slope = robot.difference_derivatives.derivative("q1")(q, q1).ddresult_dq1_dq1
    ends = [robot.difference_derivatives(q, robot.integrate(q1, side * steps)).dresult_dq1 for side in (1.0, -1.0)]
    np.testing.assert_allclose(slope, np.moveaxis(ends[0] - ends[1], 0, -1) / (2 * small), atol=1e-9)


@pytest.mark.parametrize("execution", ["traced", "rolled"])
def test_all_executions_agree(execution: str) -> None:
    types = (fw.JointType.PLANAR, *MIXED)
    robot, plain, rng = chain(types, execution), chain(types), np.random.default_rng(11)
    q0, q1 = plain.random_configuration(rng=rng, size=(2, 3))
    v = rng.standard_normal((3, robot.nv))
    for found, expected in (
        (robot.integrate_derivatives(q0, v), plain.integrate_derivatives(q0, v)),
        (robot.difference_derivatives(q0, q1), plain.difference_derivatives(q0, q1)),
    ):
        for J, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(J, other, rtol=0, atol=1e-13)


def test_jacobians_have_leading_axes_results_of_users_and_the_type_of_their_arguments() -> None:
    robot = chain(MIXED, "auto")
    n = robot.nv
    q, v = robot.random_configuration(rng=1, size=(4, 1)).astype(np.float32), np.zeros((3, n), np.float32)
    for J in robot.integrate_derivatives(q, v):
        assert J.shape == (4, 3, n, n) and J.dtype == np.float32
        np.testing.assert_array_equal(J, np.broadcast_to(np.eye(n), J.shape))
    assert {J.shape for J in robot.difference_derivatives(q, q[:, 0])} == {(4, 4, n, n)}
    out = np.empty((n, n)), np.empty((n, n))
    assert robot.integrate_derivatives(q[0, 0], np.zeros(n), out=out).dresult_dv is out[1]
    v[0, 0] = np.nan
    one = robot.integrate_derivatives(q[0], v)
    assert np.isfinite(one.dresult_dv[1:]).all() and np.isfinite(one.dresult_dq).all()  # a revolute joint's are constant
    assert {"integrate_derivatives", "difference_derivatives"} <= robot.functions.keys()
    with pytest.raises(ValueError, match=rf"integrate_derivatives: v must have shape \(\.\.\., {n}\)"):
        robot.integrate_derivatives(q, v[:, :2])


@pytest.mark.parametrize("kind", TURN)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_differences_of_equal_configurations_and_half_turns_are_finite(kind: fw.JointType, dtype: type) -> None:
    """Check turns by exactly nothing, a quarter and a half, where cosines and sines are zero, in both precisions."""
    robot = chain((kind,), "auto")
    q: np.ndarray = robot.neutral().astype(dtype)
    planar = kind is fw.JointType.PLANAR
    for turned in ([1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]):
        q1 = q.copy()
        if planar:
            q1[2:] = turned
        else:
            q1[-2:] = turned[::-1]  # about z
        assert np.isfinite(robot.difference(q, q1)).all()
        assert all(np.isfinite(J).all() for J in robot.difference_derivatives(q, q1))
        assert np.isfinite(robot.difference.derivative("q1")(q, q1)).all()
