"""Tests of terms with second derivatives: the Hessian against differences of gradients, and fewer iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from featherweight.optimal_control.stage_functions import StageFunctions
from optimal_control.problems import HAND, PANDA_START, away, hopper, hyq, layout_of, leg, pendulum, power
from optimal_control.test_stage_functions import called, differences


def swirl(q: Any, v: Any, u: Any, tau: Any) -> list[Any]:
    """Return products of all quantities."""
    return [q[1] * v[0] * u[1] + u[0] * u[0], tau[1] * v[1] * v[0] * q[0] * q[0]]


def hessian(ocp: fw.OptimalControl, stage: StageFunctions, known: dict[str, Any]) -> Array:
    """Return the Hessian (2 nv + nu, 2 nv + nu) of a knot; with free steps, the root of the step is the first control."""
    H = np.zeros((2 * ocp.robot.nv + stage.system.controls,) * 2)
    for (a, b), x in zip(stage.places, called(stage.slopes, known).hessian, strict=True):
        H[a, b] = H[b, a] = x
    return H


def check(ocp: fw.OptimalControl, q: Array, flat: Array, atol: float, first: int = 0) -> None:
    """Check that the Hessian of rows with given slopes and no stiffness is the derivative of their gradient, at stages
    from `first` on.
    """
    rng, robot = np.random.default_rng(0), ocp.robot
    for stage in layout_of(ocp).stages[first:]:
        known = {"q": q, "v": rng.normal(size=robot.nv), "u": rng.normal(size=ocp.nu), "h": 0.01, "parameters": flat}
        slope = rng.normal(size=stage.rows)
        known |= {"slope": slope, "bend": slope, "stiffness": np.zeros(stage.rows)}
        if ocp.free:
            known |= {"longest": 0.01 / 0.7**2, "root": 0.7}
        H = hessian(ocp, stage, known)
        G = differences(robot, lambda x, stage=stage: called(stage.slopes, x).gradient, known)
        assert abs(G).max() > 0.01
        np.testing.assert_allclose(H, 0.5 * (G + G.T), rtol=0, atol=atol * abs(G).max())
        none = hessian(ocp, stage, known | {"bend": 0.0 * slope})
        assert not none.any()


def test_hessians_of_an_arm_are_derivatives_of_gradients() -> None:
    """Check tasks with rotations, roots, and products of q, v, u and tau."""
    robot = fw.load(fw.example("panda"))
    ocp = fw.OptimalControl(robot, dt=0.02, knots=5)
    ocp.add(fw.FrameTask(HAND, weight=[1, 1, 1, 0.1, 0.1, 0]), weight=10.0, exact=True)
    ocp.add(fw.Effort(), weight=1e-3, exact=True)
    ocp.add(fw.Residual(away, size=1, parameters=3, frames=["panda_link5"]), weight=10.0, exact=True)
    ocp.add(fw.Residual(power, size=robot.nv), weight=1e-3, exact=True)
    ocp.add(fw.Residual(swirl, size=2), weight=1e-3, exact=True)
    target = robot.frame_placement(HAND)(PANDA_START)
    flat = layout_of(ocp).parameters(PANDA_START, {HAND: target}, {"away": [0.3, 0.1, 0.2]})[0]
    check(ocp, PANDA_START + 0.3 * np.random.default_rng(1).normal(size=robot.nv), flat, 1e-7)
    at_target = {"q": PANDA_START, "v": np.zeros(robot.nv), "h": 0.01, "parameters": flat, "u": np.zeros(ocp.nu)}
    for stage in layout_of(ocp).stages:
        ones = dict.fromkeys(("slope", "bend", "stiffness"), np.ones(stage.rows))
        assert np.isfinite(hessian(ocp, stage, at_target | ones)).all()


def test_hessians_of_a_floating_base_are_second_derivatives_along_displacements() -> None:
    """Check the Hessian along each displacement: rotations do not commute, so derivatives of gradients are not symmetric."""
    robot = hyq(0.7)[0].robot
    ocp = fw.OptimalControl(robot, dt=0.02, knots=3)
    ocp.add(fw.FrameTask("lf_foot"), weight=10.0, exact=True)
    ocp.add(fw.CenterOfMassTask(), weight=10.0, exact=True)
    ocp.add(fw.Effort(), weight=1e-3)
    rng = np.random.default_rng(2)
    q = robot.integrate(robot.neutral(), 0.3 * rng.normal(size=robot.nv))
    foot = robot.frame_placement("lf_foot")(robot.neutral())
    flat = layout_of(ocp).parameters(q, {"lf_foot": foot, "center of mass": [0.3, 0.2, 0.1]}, None)[0]
    check(ocp, q, flat, 1e-7, first=1)  # the end, which needs no dynamics
    stage = layout_of(ocp).stages[-1]
    known: dict[str, Any] = {"v": np.zeros(robot.nv), "parameters": flat}
    slope = rng.normal(size=stage.rows)
    H = hessian(ocp, stage, known | {"q": q, "slope": slope, "bend": slope, "stiffness": np.zeros(stage.rows)})
    for w in rng.normal(size=(5, robot.nv)):
        at = [slope @ called(stage.only_rows, known | {"q": robot.integrate(q, e * w)}) for e in (-1e-4, 0.0, 1e-4)]
        second = (at[0] - 2.0 * at[1] + at[2]) / 1e-8
        np.testing.assert_allclose(w @ H[: robot.nv, : robot.nv] @ w, second, rtol=1e-5, atol=1e-5 * abs(H).max())


def test_hessians_of_a_loop_are_derivatives_of_gradients() -> None:
    robot, start = leg()[0].robot, leg()[1]
    ocp = fw.OptimalControl(robot, dt=0.02, knots=3, driven=["base_to_thigh", "thigh_to_driver"])
    ocp.add(fw.FrameTask("toe", kind="position"), weight=10.0, exact=True)
    ocp.add(fw.Effort(), weight=1e-3)
    check(ocp, start, layout_of(ocp).parameters(start, {"toe": [0.5, 0.2, 0.0]}, None)[0], 1e-6)


def test_hessians_with_free_steps_are_derivatives_of_gradients() -> None:
    """Check a floating base, with costs that the step multiplies, constraints that it does not, and a cost with a width."""
    robot, start = hopper()
    foot = [fw.BilateralContact("foot", "point")]
    ocp = fw.OptimalControl(robot, phases=[fw.Phase(2, dt=(0.005, 0.05)), fw.Phase(2, foot, dt=0.02)])
    ocp.add(fw.FrameTask("foot"), weight=10.0, exact=True)
    ocp.add(fw.CenterOfMassTask(), weight=10.0, exact=True)
    ocp.add(fw.Residual(swirl, size=2), width=0.5, exact=True)
    ocp.add(fw.Residual(away, size=1, parameters=3, frames=["shank"], name="far"), width=0.1, exact=True)
    ocp.add(fw.Duration())
    ocp.require(fw.Residual(away, size=1, parameters=3, frames=["thigh"], name="near"), exact=True)
    q = robot.integrate(start, 0.5 * np.random.default_rng(1).normal(size=robot.nv))
    targets = {"foot": robot.frame_placement("foot")(start), "center of mass": [0.3, 0.2, 0.1]}
    flat = layout_of(ocp).parameters(q, targets, {"far": [0.3, 0.1, 0.2], "near": [0.5, 0.2, 0.4]})[0]
    check(ocp, q, flat, 1e-6)


def reaching(exact: bool, step: Any = 0.02) -> fw.OptimalControl:
    """Return a pendulum of 1 m that reaches for points; there are two terms, so that the rows of only one are exact."""
    ocp = fw.OptimalControl(pendulum(), dt=step, knots=50)
    ocp.add(fw.Effort(), weight=1e-2)
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.add(fw.PostureTask(), weight=1e-3)
    ocp.add(fw.FrameTask("tip", kind="position"), weight=10.0, exact=exact)
    return ocp


def test_targets_out_of_reach_take_a_fraction_of_the_iterations() -> None:
    plain, exact = reaching(False), reaching(True)
    assert not layout_of(plain).laws.exact.any()
    assert layout_of(exact).laws.exact.sum() == 3 * 51  # 3 of five rows at each of 51 knots
    rng = np.random.default_rng(0)
    iterations = []
    for angle in np.linspace(0.3, 2.8, 8):
        q, target = rng.uniform(-0.3, 0.3, 2), [2.0 * np.sin(angle), 0.0, -2.0 * np.cos(angle)]
        one, other = (
            ocp.solve(q, targets={"tip": target, "posture": q}, iterations=400, tolerance=1e-10) for ocp in (plain, exact)
        )
        assert one.converged and other.converged
        np.testing.assert_allclose(other.cost, one.cost, rtol=1e-6)
        iterations.append((one.iterations, other.iterations))
    assert np.sum(iterations, axis=0)[1] * 5 < np.sum(iterations, axis=0)[0]


def test_second_derivatives_save_iterations_with_free_steps_too() -> None:
    """Check targets out of reach; the solutions and their durations are the same."""
    problems, iterations = [reaching(exact, (0.005, 0.05)) for exact in (False, True)], []
    for ocp in problems:
        ocp.add(fw.Duration(), weight=5.0)
    for angle in np.linspace(1.1, 2.8, 3):
        targets = {"tip": [2.0 * np.sin(angle), 0.0, -2.0 * np.cos(angle)], "posture": np.zeros(2)}
        one, other = (ocp.solve(np.array([0.1, 0.2]), targets=targets, iterations=400, tolerance=1e-10) for ocp in problems)
        assert one.converged and other.converged
        np.testing.assert_allclose(other.cost, one.cost, rtol=1e-9)
        np.testing.assert_allclose(other.dt, one.dt, rtol=1e-4)
        assert 0.0051 < other.dt[0] < 0.049
        iterations.append((one.iterations, other.iterations))
    assert np.sum(iterations, axis=0)[1] * 2 < np.sum(iterations, axis=0)[0]


def test_each_iteration_descends_although_the_hessian_is_indefinite() -> None:
    ocp = reaching(True)
    q, targets = np.array([0.3, 0.2]), {"tip": [-1.0, 0.0, 1.5], "posture": np.zeros(2)}
    layout = layout_of(ocp)
    stage, flat = layout.stages[0], layout.parameters(q, targets, None)[0]
    known = {"q": q, "v": np.zeros(2), "u": np.zeros(2), "h": 0.02, "parameters": flat}
    rows = layout.laws.weight[: stage.rows] * called(stage.only_rows, known)
    known |= {"slope": rows, "bend": rows, "stiffness": layout.laws.weight[: stage.rows]}
    assert np.linalg.eigvalsh(hessian(ocp, stage, known))[0] < -0.1
    costs = [ocp.solve(q, targets=targets, iterations=k, tolerance=1e-10).cost for k in range(40)]
    assert (np.diff(costs) <= 1e-9 * costs[0]).all()
    assert costs[-1] < 0.9 * costs[0]
    assert ocp.solve(q, targets=targets, tolerance=1e-10).converged


def test_constraints_may_be_exact() -> None:
    """Check that the curvature of a constraint counts with its multiplier; the solution and its gradients are the same."""
    plans, gradients = [], []
    for exact in (False, True):
        ocp = fw.OptimalControl(pendulum(), dt=0.02, knots=30)
        ocp.add(fw.Effort(), weight=1e-2)
        ocp.add(fw.JointVelocities(), weight=1.0)
        ocp.require(fw.FrameTask("tip", kind="position", weight=[1, 0, 1]), at="end", exact=exact)
        given = {"tip": np.array([0.6, 0.0, -0.4])}
        plans.append(ocp.solve(np.array([0.3, 0.4]), targets=given, tolerance=1e-10, constraint_tolerance=1e-9))
        function = ocp.plan_function(tolerance=1e-10, constraint_tolerance=1e-9)
        values = [given["tip"][None, None]]
        found = function(np.array([[0.3, 0.4]]), np.zeros((1, 2)), *values)
        gradients.append(function.pullback(found, values, [np.zeros(x.shape) for x in found[:3]] + [np.ones(1)])[2])
    assert all(plan.converged for plan in plans) and plans[1].iterations <= plans[0].iterations
    np.testing.assert_allclose(plans[1].q, plans[0].q, rtol=0, atol=1e-5)
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-4, atol=1e-6)


def test_terms_of_accelerations_and_forces_are_refused() -> None:
    ocp, _, _ = hyq(0.7)
    with pytest.raises(ValueError, match="exact=True does not support force, on which 'felt' depends"):
        ocp.add(fw.ContactForces(name="felt"), exact=True)
    servo = fw.OptimalControl(pendulum(), dt=0.02, knots=5, actuators=fw.PD(stiffness=10.0, damping=1.0))
    with pytest.raises(ValueError, match="exact=True does not support tau, on which 'joint forces' depends"):
        servo.add(fw.JointForces(), exact=True)
