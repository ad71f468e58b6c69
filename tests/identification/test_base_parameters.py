"""Tests of base parameters: their number, their combinations, and their fit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import featherweight as fw
from featherweight.identification import base_parameters
from featherweight.model.generators import from_parents, unbranched_parents
from oracles.mechanisms import MECHANISMS
from oracles.robots import NAMES, example
from oracles.states import assert_close, evaluated, random_states
from oracles.trees import tree

UP = (0.0, 0.0, 1.0)


def arm(kinds: tuple[str, ...], upright: bool = True, base: str = "fixed") -> fw.Robot:
    """Return a serial arm in general position, except for its first axis."""
    made = from_parents(unbranched_parents(len(kinds)), rng=7, joint_types=("revolute",), masses=(0.5, 2.0))
    joints = [dataclasses.replace(j, type=fw.JointType(kind)) for j, kind in zip(made.joints, kinds, strict=True)]
    if upright:
        joints[0] = dataclasses.replace(joints[0], axis=UP, placement=fw.Pose())
    if base == "floating":
        joints = [dataclasses.replace(joints[0], type=fw.JointType.FLOATING), *joints[1:]]
    return fw.build(dataclasses.replace(made, joints=tuple(joints)))


def robot_named(name: str) -> fw.Robot:
    if name in NAMES:
        return example(name)
    return fw.build(MECHANISMS[name]() if name in MECHANISMS else tree(name)[0])


@pytest.mark.parametrize(
    ("robot", "count"),
    [
        (arm(("revolute",) * 6), 36),  # 7 for each hinge, 1 for a vertical hinge at the base
        (arm(("revolute",) * 6, upright=False), 38),  # and 3 for a base hinge that is not vertical
        (arm(("revolute",) * 4, base="floating"), 31),  # 10 of the free body
        (arm(("revolute", "revolute", "prismatic"), upright=False), 14),  # for a prismatic joint, the mass and its moment
        (robot_named("ur5"), 36),
        (robot_named("double_pendulum"), 6),
    ],
)
def test_how_many_there_are(robot: fw.Robot, count: int) -> None:
    """Check the number of Mayeda, Yoshida and Osuka (1990) and Gautier and Khalil (1990), and the rank of the regressor."""
    base = base_parameters(robot)
    assert len(base) == count
    q, v, a = random_states(robot, 40, seed=4)
    W = evaluated(robot.inverse_dynamics_regressor, q, v, a)[0].reshape(-1, len(base.regressor.names))
    assert np.linalg.matrix_rank(W, tol=1e-9 * np.linalg.norm(W)) == count


@pytest.mark.parametrize("name", ["mixed_5", "hyq", "coupled", "geared"])
@pytest.mark.parametrize("joints", [False, True])
def test_they_make_the_forces_of_all_parameters(name: str, joints: bool) -> None:
    """Check forces of parameters that need not be the robot's own, and that no base parameter is redundant."""
    robot = robot_named(name)
    base = base_parameters(robot, joint_friction=joints, armature=joints)
    x = random_states(robot, 40, seed=5)
    (Y,) = evaluated(base.regressor.function, *x)
    Yb = Y[..., base.columns]
    parameters = np.random.default_rng(0).standard_normal(Y.shape[-1])
    assert_close(Yb @ base.of(parameters), Y @ parameters, 1e-9)
    flat = Yb.reshape(-1, len(base))
    assert np.linalg.svd(flat / np.linalg.norm(flat, axis=0), compute_uv=False)[-1] > 1e-7
    assert (base.groups[np.arange(len(base)), base.columns] == 1.0).all()
    np.testing.assert_array_equal(base.values, base.of(base.regressor.values))


def test_they_can_be_read() -> None:
    """Check a double pendulum in a plane: the textbook's combinations."""
    thin = fw.Inertia(1.0, (0.0, 0.0, 0.5), (0.1, 0.0, 0.0, 0.1, 0.0, 0.01))
    hinges = [
        fw.Joint("shoulder", fw.JointType.REVOLUTE, None, "upper", axis=(0.0, 1.0, 0.0)),
        fw.Joint("elbow", fw.JointType.REVOLUTE, "upper", "lower", fw.Pose(p=(0.0, 0.0, 0.5)), (0.0, 1.0, 0.0)),
    ]
    robot = fw.build(
        fw.describe([fw.Body("upper", thin), fw.Body("lower", thin)], hinges, name="pendulum"), execution="interpreted"
    )
    base = base_parameters(robot, joint_friction=["elbow"])
    assert base.expressions == (
        "upper.mx",
        "upper.mz + 0.5 lower.m",
        "upper.Iyy + 0.25 lower.m",
        "lower.mx",
        "lower.mz",
        "lower.Iyy",
        "elbow.viscous",
        "elbow.coulomb",
    )
    assert "upper.m" in base.without_effect and "lower.m" not in base.without_effect
    np.testing.assert_allclose(base.values[:3], [0.0, 0.5 + 0.5, 0.1 + 0.25 + 0.25])
    assert repr(base) == "<BaseParameters: 8 of 22>"


def test_a_fit_without_noise_is_exact() -> None:
    for name in ("double_pendulum", "four_bar"):
        robot = robot_named(name)
        base = base_parameters(robot, joint_friction=True)
        q, v, a = random_states(robot, 60, seed=1)
        truth = base.of(np.random.default_rng(2).standard_normal(len(base.regressor.names)))
        fit = base.fit(q, v, a, base.matrix(q, v, a) @ truth)
        np.testing.assert_allclose(fit.values, truth, atol=1e-9 * np.abs(truth).max())
        assert fit.residual.shape == (robot.nv,) and fit.residual.max() < 1e-9


def test_deviations_are_those_of_the_fit() -> None:
    """Check many fits to noise of a different size for each joint: errors in units of the deviations have unit variance."""
    robot = robot_named("double_pendulum")
    base = base_parameters(robot, joint_friction=True)
    noise, rng = np.array([0.3, 0.02]), np.random.default_rng(3)
    q, v, a = random_states(robot, 60, seed=1)
    clean = base.matrix(q, v, a) @ base.values
    fits = [base.fit(q, v, a, clean + noise * rng.standard_normal(clean.shape), given) for given in [None, noise] * 100]
    errors = np.array([(fit.values - base.values) / fit.deviations for fit in fits])
    assert 0.9 < np.std(errors[1::2]) < 1.1
    assert 0.85 < np.std(errors[::2]) < 1.2  # estimated noise, from a fit with equal weights of joints
    np.testing.assert_allclose(np.mean([fit.residual for fit in fits], axis=0), noise, rtol=0.1)


def test_what_a_fit_cannot_do_is_said() -> None:
    robot = robot_named("ur5")
    base = base_parameters(robot)
    q, v, a = random_states(robot, 50)
    tau = base.matrix(q, v, a) @ base.values
    with pytest.raises(ValueError, match=r"tau must have shape \(50, 6\), like q, v and a; got \(6, 50\)"):
        base.fit(q, v, a, tau.T)
    with pytest.raises(ValueError, match=r"one sample in each row"):
        base.fit(q[0], v[0], a[0], tau[0])
    with pytest.raises(ValueError, match="36 base parameters need more samples than 6"):
        base.fit(q[:6], v[:6], a[:6], tau[:6])
    with pytest.raises(ValueError, match="must be finite"):
        base.fit(q, v, a, tau * np.nan)
    with pytest.raises(ValueError, match="deviations must be 6 positive numbers"):
        base.fit(q, v, a, tau, deviations=np.zeros(6))
    with pytest.raises(ValueError, match=r"these motions do not excite shoulder_link.Izz"):
        base.fit(q, 0.0 * v, 0.0 * a, tau)
    with pytest.raises(ValueError, match=r"these motions do not separate .* from other base parameters"):
        base.fit(np.tile(q[:1], (50, 1)), np.tile(v[:1], (50, 1)), np.tile(a[:1], (50, 1)), tau)
