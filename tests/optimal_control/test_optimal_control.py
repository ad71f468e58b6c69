"""Tests of solutions: against LAPACK for linear systems, SciPy for small problems, and optimality conditions for others."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import solve_discrete_are
from scipy.optimize import minimize

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.generators import from_parents
from optimal_control.problems import HAND, PANDA_START, hopper, hyq, layout_of, leg, panda, panda_arguments, pendulum, sliders
from optimal_control.test_drives import MOTOR, SERVO


def rolled_out(robot: fw.Robot, q: Array, v: Array, u: Array, h: float) -> tuple[Array, Array]:
    """Return motions for controls u (..., knots, nv) of all joints, step by step, with damping at the end of each step."""
    damped = robot.with_armature({j.name: j.armature + h * j.damping for j in robot.model.joints})
    qs, vs = ([np.broadcast_to(x, (*u.shape[:-2], len(x)))] for x in (q, v))
    for x in np.moveaxis(u, -2, 0):
        lost = np.einsum("...ij,...j", damped.mass_matrix(qs[-1]) - robot.mass_matrix(qs[-1]), vs[-1]) / h
        vs.append(vs[-1] + h * damped.forward_dynamics(qs[-1], vs[-1], x - lost))
        qs.append(robot.integrate(qs[-1], h * vs[-1]))
    return np.stack(qs, axis=-2), np.stack(vs, axis=-2)


# --- linear systems


def test_a_linear_system_takes_one_step_and_has_the_gains_of_riccatis_equation() -> None:
    robot, h, knots = sliders(3), 0.1, 200
    n = robot.nv
    ocp = fw.OptimalControl(robot, dt=h, knots=knots)
    ocp.add(fw.PostureTask(), weight=2.0, at="running")
    ocp.add(fw.JointVelocities(), weight=0.5, at="running")
    ocp.add(fw.Effort(weight=[1.0, 2.0, 3.0]), weight=0.1, at="running")
    plan = ocp.solve(np.array([0.1, -0.2, 0.3]), targets={"posture": np.zeros(3)})
    assert plan.converged and plan.iterations == 1
    by_force = h * robot.inverse_mass_matrix(np.zeros(n))
    A = np.block([[np.eye(n), h * np.eye(n)], [np.zeros((n, n)), np.eye(n)]])
    B = np.vstack([h * by_force, by_force])
    Q, R = h * np.diag([2.0] * n + [0.5] * n), 0.1 * h * np.diag([1.0, 2.0, 3.0])
    P = solve_discrete_are(A, B, Q, R)
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    np.testing.assert_allclose(-plan.gains[0], K, rtol=0, atol=1e-8 * abs(K).max())
    x = np.concatenate([plan.q[0], plan.v[0]])
    assert plan.cost == pytest.approx(0.5 * x @ P @ x, rel=1e-8)


def test_constraints_of_a_linear_system_hold_with_the_least_effort() -> None:
    """Check a motion to rest, for which the equations of all knots determine the least-squares forces."""
    robot, h, knots = sliders(2), 0.05, 20
    ocp = fw.OptimalControl(robot, dt=h, knots=knots)
    ocp.add(fw.Effort(), weight=1.0)
    ocp.require(fw.PostureTask(), at="end")
    ocp.require(fw.JointVelocities(), at="end")
    goal = np.array([0.2, -0.1])
    plan = ocp.solve(np.zeros(2), targets={"posture": goal}, constraint_tolerance=1e-9)
    assert plan.converged and plan.violation < 1e-9
    W = h * robot.inverse_mass_matrix(np.zeros(2))
    to_speed = np.hstack([W] * knots)
    to_place = np.hstack([h * (knots - k) * W for k in range(knots)])
    expected = np.linalg.lstsq(np.vstack([to_place, to_speed]), np.concatenate([goal, np.zeros(2)]))[0]
    np.testing.assert_allclose(plan.u.ravel(), expected, rtol=0, atol=1e-6 * abs(expected).max())


# --- SciPy


def test_a_small_problem_with_bounds_is_as_scipy_has_it() -> None:
    """Check a double pendulum that lifts its tip with forces that are at their bounds for a while."""
    robot, h, knots = pendulum(), 0.04, 12
    ocp = fw.OptimalControl(robot, dt=h, knots=knots)
    ocp.add(fw.Effort(), weight=0.05)
    ocp.add(fw.JointVelocities(), weight=0.2)
    ocp.add(fw.FrameTask("tip", kind="position", weight=[1, 0, 1]), weight=20.0, at="end")
    ocp.limit(efforts=True)
    target = np.array([0.7, 0.0, -0.4])
    plan = ocp.solve(np.zeros(2), targets={"tip": target}, tolerance=1e-10, constraint_tolerance=1e-7)
    assert plan.converged
    tip = robot.frame_placement("tip")

    def costs(flat: Array) -> Array:
        u = flat.reshape(*flat.shape[:-1], knots, 2)
        q, v = rolled_out(robot, np.zeros(2), np.zeros(2), u, h)
        off = (target - tip(q[..., -1, :])[..., :3, 3])[..., [0, 2]]
        running = 0.05 * (u**2).sum(axis=(-2, -1)) + 0.2 * (v[..., :-1, :] ** 2).sum(axis=(-2, -1))
        final = 0.2 * (v[..., -1, :] ** 2).sum(axis=-1) + 20.0 * (off**2).sum(axis=-1)
        total: Array = 0.5 * (h * running + final)
        return total

    def gradient(flat: Array) -> Array:
        change = 1e-6 * np.eye(len(flat))
        return (costs(flat + change) - costs(flat - change)) / 2e-6

    assert costs(plan.u.ravel()) == pytest.approx(plan.cost, rel=1e-9)
    bounds = [(-x, x) for x in np.tile(robot.effort_limit, knots)]
    how = {"maxiter": 3000, "ftol": 1e-15, "gtol": 1e-9}
    theirs = minimize(costs, np.zeros(2 * knots), jac=gradient, bounds=bounds, method="L-BFGS-B", options=how)
    assert plan.cost == pytest.approx(theirs.fun, rel=1e-5)
    assert (abs(plan.u) > 0.999 * robot.effort_limit).any()
    np.testing.assert_allclose(plan.u.ravel(), theirs.x, rtol=0, atol=0.02)


def test_no_change_of_controls_makes_a_reach_cheaper() -> None:
    """Check that the derivative of the cost by all controls is zero, by differences of motions that are computed step by
    step.
    """
    rng = np.random.default_rng(0)
    ocp = panda(8)
    arguments = panda_arguments(ocp)
    plan = ocp.solve(PANDA_START, **arguments, tolerance=1e-12)
    assert plan.converged

    def costs(u: Array) -> Array:
        q, v = rolled_out(ocp.robot, PANDA_START, np.zeros(ocp.robot.nv), u, 0.02)
        return np.array([ocp.cost_of_motions(*x, **arguments, start=PANDA_START) for x in zip(q, v, u, strict=True)])

    assert costs(plan.u[None]) == pytest.approx(plan.cost, rel=1e-9)
    still, d = np.tile(ocp.robot.gravity_force(PANDA_START), (8, 1)), 1e-3 * rng.normal(size=(20, *plan.u.shape))
    slopes, others = ((costs(u + d) - costs(u - d)) / 2e-3 for u in (plan.u, still))
    assert (abs(slopes) < 1e-4 * np.maximum(1.0, abs(others))).all()


# --- contacts, loops, limits


def test_a_quadruped_jumps_within_friction_cones() -> None:
    """Check that forces are those of the dynamics under contacts, and that the constraint changes the motion."""
    free, bound = hyq(5.0), hyq(0.12)
    plans = [ocp.solve(start, **arguments) for ocp, start, arguments in (free, bound)]
    ratios = []
    for (ocp, _, _), plan in zip((free, bound), plans, strict=True):
        assert plan.converged, plan.reason
        assert plan.q[-1][2] - plan.q[0][2] == pytest.approx(0.2, abs=5e-3)
        force = ocp.contact_forces(plan)[0].reshape(12, 4, 3)
        R = ocp.robot.frame_placement([c.frame for c in ocp.phases[0].contacts])(plan.q[:12])[..., :3, :3]
        world = np.einsum("kfij,kfj->kfi", R, force)
        ratios.append((np.linalg.norm(world[..., :2], axis=-1) / world[..., 2]).max())
        assert world[..., 2].min() > 0.0
        motion = ocp.trajectory(plan)  # contact forces change the momentum
        total = np.array([motion.contacts(k).forces.sum(axis=0) for k in range(len(motion))])
        away = np.diff(ocp.robot.center_of_mass_velocity(plan.q, plan.v), axis=0) / np.diff(motion.times)[:, None]
        weight = ocp.robot.mass * np.array(ocp.robot.gravity)
        np.testing.assert_allclose(total[1:6], ocp.robot.mass * away[:5] - weight, rtol=0, atol=0.5)  # to first order in h
        np.testing.assert_array_equal(total[13:], 0.0)
        np.testing.assert_array_equal(motion.tau[1:, 6:], plan.u)
    assert ratios[0] > 0.2 and ratios[1] < 0.125
    assert plans[1].cost > plans[0].cost


def test_a_leg_with_a_loop_jumps_and_its_loop_stays_closed() -> None:
    ocp, start = leg()
    goal = start.copy()
    goal[0] += 0.2
    plan = ocp.solve(start, targets={"height": goal, "toe": ocp.robot.frame_placement("toe")(start)[:3, 3]})
    assert plan.converged
    assert plan.q[-1][0] - start[0] == pytest.approx(0.2, abs=0.01)
    assert isinstance(ocp.robot, fw.ClosedRobot)
    closed = ocp.robot.close(plan.q[-1])
    np.testing.assert_allclose(plan.q[-1], closed, rtol=0, atol=1e-6)
    toe = ocp.robot.frame_placement("toe")(plan.q[:21])[:, :2, 3]
    np.testing.assert_allclose(toe, np.broadcast_to(toe[0], toe.shape), rtol=0, atol=2e-3)


def test_a_leg_lands_with_an_impact() -> None:
    """Check a landing on the toe, which stays in place; the trunk comes to rest at the requested height."""
    robot = leg()[0].robot
    toe = [fw.BilateralContact("toe", rows=np.eye(6)[:2])]
    drives = ["base_to_thigh", "thigh_to_driver"]
    ocp = fw.OptimalControl(robot, dt=0.005, phases=[fw.Phase(16), fw.Phase(40, toe, impact=True)], driven=drives)
    ocp.add(fw.Effort(), weight=1.0)
    ocp.add(fw.JointVelocities(), weight=np.append(np.full(57, 0.1), 100.0))
    ocp.add(fw.PostureTask(), weight=np.append(np.full(57, 1.0), 1e3))
    ocp.require(fw.FrameTask("toe", kind="position", weight=[1, 0, 0]), at=[16])
    start = robot.close(np.array([0.25, 3.7269, -1.5, 1.5, -1.5]))  # type: ignore[attr-defined]
    goal = start.copy()
    goal[0] = 0.17
    ground = [robot.frame_placement("toe")(start)[0, 3] - 0.03, 0.0, 0.0]
    plan = ocp.solve(start, targets={"posture": goal, "toe": ground}, iterations=200)
    assert plan.converged, plan.reason
    height = robot.frame_placement("toe")(plan.q)[:, 0, 3] - ground[0]
    assert height[0] == pytest.approx(0.03) and abs(height[16:]).max() < 1e-3
    speed = np.einsum("ni,ni->n", robot.frame_jacobian("toe")(plan.q)[:, 0], plan.v)
    assert speed[16] < -0.1 and abs(speed[17:]).max() < 0.02
    flight, impulse, stance = ocp.contact_forces(plan)
    assert flight.shape == (16, 0) and impulse.shape == (1, 2) and stance.shape == (40, 2)
    assert abs(impulse).max() > 0.01
    assert abs(plan.u[16]).max() < 1e-9  # an impact has no controls
    assert np.diff(ocp.trajectory(plan).first).tolist() == [0] * 18 + [1] * 40


def test_limits_of_the_file_hold() -> None:
    robot = fw.load(fw.example("panda"))
    ocp = fw.OptimalControl(robot, dt=0.02, knots=30)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.require(fw.FrameTask(HAND, kind="position"), at="end")
    ocp.limit(positions=True, velocities=True, efforts=True)
    target = np.array([-0.3, 0.5, 0.6])
    plan = ocp.solve(PANDA_START, targets={HAND: target})
    assert plan.converged
    assert abs(robot.frame_placement(HAND)(plan.q[-1])[:3, 3] - target).max() < 1e-4
    assert (plan.q < robot.upper + 1e-4).all() and (plan.q > robot.lower - 1e-4).all()
    assert (abs(plan.v) < robot.velocity_limit + 1e-4).all()
    assert (abs(plan.u) < robot.effort_limit + 1e-4).all()
    assert (abs(plan.v) > 0.99 * robot.velocity_limit).any()


def test_a_problem_without_a_solution_says_so() -> None:
    robot = fw.load(fw.example("panda"))
    ocp = fw.OptimalControl(robot, dt=0.02, knots=10)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.require(fw.FrameTask(HAND, kind="position"), at="end")
    plan = ocp.solve(PANDA_START, targets={HAND: [3.0, 0.0, 0.0]}, iterations=60)
    assert not plan.converged
    assert plan.reason
    assert plan.violation > 1.0
    worst = ocp.violations(plan, {HAND: [3.0, 0.0, 0.0]})
    assert worst[HAND] == pytest.approx(plan.violation, rel=1e-6)


# --- many problems, guesses


def test_problems_of_a_batch_are_those_alone_on_any_number_of_threads() -> None:
    ocp = panda()
    arguments = panda_arguments(ocp)
    q = PANDA_START + 0.05 * np.random.default_rng(0).normal(size=(6, 8)) * [1, 1, 1, 1, 1, 1, 1, 0]
    targets = np.tile(arguments["targets"][HAND], (6, 1, 1, 1))
    targets[:, 0, :3, 3] += 0.02 * np.random.default_rng(1).normal(size=(6, 3))
    many = {"targets": {HAND: targets}, "parameters": arguments["parameters"]}
    one, two = (panda(threads=k).solve(q, **many) for k in (1, 2))
    assert one.converged.all()
    for x, y in zip(one, two, strict=True):
        np.testing.assert_array_equal(x, y)
    alone = ocp.solve(q[3], targets={HAND: targets[3, 0]}, parameters=arguments["parameters"])
    for x, y in zip(alone, one, strict=True):
        np.testing.assert_array_equal(x, y[3])


def test_a_plan_is_a_guess_that_needs_no_more_steps() -> None:
    ocp = panda()
    arguments = panda_arguments(ocp)
    plan = ocp.solve(PANDA_START, **arguments)
    again = ocp.solve(PANDA_START, **arguments, guess=plan)
    assert plan.iterations > 3 and again.iterations <= 1
    assert again.cost == pytest.approx(plan.cost, rel=1e-5)


def test_a_guess_need_not_be_a_motion() -> None:
    """Check a guess of configurations on a line, to which the given forces do not lead; the solution has no gaps."""
    ocp = panda()
    arguments = panda_arguments(ocp)
    plan = ocp.solve(PANDA_START, **arguments, tolerance=1e-10)
    q = np.linspace(PANDA_START, plan.q[-1], 21)
    guess = plan._replace(q=q, v=np.zeros_like(plan.v), u=0.0 * plan.u)
    found = ocp.solve(PANDA_START, **arguments, guess=guess, tolerance=1e-10)
    assert found.converged
    assert found.cost == pytest.approx(plan.cost, rel=1e-6)
    qs, vs = rolled_out(ocp.robot, PANDA_START, np.zeros(8), found.u, 0.02)
    np.testing.assert_allclose(found.q, qs, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.v, vs, rtol=0, atol=1e-7)


def test_targets_may_move_along_the_horizon() -> None:
    robot, knots = fw.load(fw.example("panda")), 60
    ocp = fw.OptimalControl(robot, dt=0.02, knots=knots)
    ocp.add(fw.FrameTask(HAND, kind="position"), weight=1e4)
    ocp.add(fw.JointVelocities(), weight=1e-2)
    ocp.add(fw.Effort(), weight=1e-5)
    center, t = robot.frame_placement(HAND)(PANDA_START)[:3, 3], np.linspace(0.0, 2.0 * np.pi, knots + 1)
    circle = center + 0.05 * np.column_stack([0.0 * t, np.sin(t), np.cos(t) - 1.0])
    plan = ocp.solve(PANDA_START, targets={HAND: circle})
    assert plan.converged
    away = np.linalg.norm(robot.frame_placement(HAND)(plan.q)[:, :3, 3] - circle, axis=1)
    assert away[5:].max() < 3e-3


def test_parameters_and_weights_of_knots_need_no_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    ocp = panda()
    arguments = panda_arguments(ocp)
    ocp.solve(PANDA_START, **arguments)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("it compiles")

    monkeypatch.setattr("featherweight.engine.backends.llvm.backend.compile_object", refuse)
    costs = [
        ocp.solve(PANDA_START, targets=arguments["targets"], parameters={"away": p}).cost
        for p in ([0.3, 0.1, 0.2], [5.0, 0.0, 0.0])
    ]
    assert costs[1] > costs[0] + 0.1


def test_hubers_width_makes_far_targets_pull_with_a_constant_force() -> None:
    robot = sliders(1)
    found = []
    for width in (np.inf, 0.1):
        ocp = fw.OptimalControl(robot, dt=0.1, knots=1)
        ocp.add(fw.Effort(), weight=10.0)
        ocp.add(fw.PostureTask(), weight=1.0, at="end", width=width)
        found += [ocp.solve(np.zeros(1), targets={"posture": [x]}, tolerance=1e-12).u[0, 0] for x in (100.0, 200.0)]
    assert found[1] == pytest.approx(2.0 * found[0], rel=1e-6)
    by_force = 0.01 / float(robot.mass_matrix(np.zeros(1))[0, 0])  # final position over force
    assert found[2] == pytest.approx(found[3], rel=1e-6) == pytest.approx(0.1 * by_force / (10.0 * 0.1), rel=1e-6)


# --- refusals


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda r: fw.OptimalControl(r, dt=0.01), "give knots, or phases that have them"),
        (lambda r: fw.OptimalControl(r, dt=-0.01, knots=3), "dt must be a positive number"),
        (lambda r: fw.OptimalControl(r, knots=0), "knots must be at least 1"),
        (lambda r: fw.OptimalControl(r, knots=3, threads=0), "threads must be a whole number of at least 1, or None; got 0"),
        (lambda r: fw.OptimalControl(r, knots=cast(Any, 2.5)), "knots must be at least 1, a whole number; got 2.5"),
        (lambda r: fw.OptimalControl(r, phases=[]), "at least one phase"),
        (lambda r: fw.OptimalControl(r, phases=cast(Any, [20])), "phases must be a list of Phase"),
        (lambda r: fw.OptimalControl(r, phases=cast(Any, fw.Phase(20))), "put the Phase into one"),
        (lambda r: fw.OptimalControl(r, phases=[fw.Phase(cast(Any, 2.5))]), "knots must be at least 1, a whole number"),
        (
            lambda r: fw.OptimalControl(r, phases=[fw.Phase(3, cast(Any, fw.BilateralContact(HAND)))]),
            "put the BilateralContact into one",
        ),
        (lambda r: fw.OptimalControl(r, knots=3, driven=[]), "nothing drives panda"),
        (lambda r: fw.OptimalControl(r, knots=3, driven="panda_joint1"), "driven must be a list of names"),
        (lambda r: fw.OptimalControl(r, knots=3, actuators=cast(Any, "motor")), "actuators must be a list of Actuator"),
        (lambda r: fw.OptimalControl(r, knots=3, driven=["nose"]), "nose"),
        (lambda r: fw.OptimalControl(r, knots=3).solve(np.zeros(8)), "no term of the knots from 0 on depends on controls"),
        (lambda r: fw.OptimalControl(r, knots=3).add(fw.Effort(), weight=-1.0), "the weight of 'effort'"),
        (lambda r: fw.OptimalControl(r, knots=3).add(fw.Effort(), at="begin"), "at must be"),
        (lambda r: fw.OptimalControl(r, knots=3).add(fw.Effort(), at=cast(Any, [1.5])), "must be numbers from 0 to 3"),
        (lambda r: fw.OptimalControl(r, knots=3).add(fw.Effort(), at=[True, False, False, True]), "must be numbers from 0"),
        (lambda r: fw.OptimalControl(r, knots=3).add(cast(Any, "tool")), "a term is a FrameTask"),
        (lambda r: fw.OptimalControl(r, knots=3).add(fw.Residual(lambda x: [x], size=1, name="f")), "its function takes 'x'"),
        (lambda r: fw.OptimalControl(r, knots=3).add(fw.Residual(lambda: [1.0], size=1, name="f")), "takes no arguments"),
        (
            lambda r: fw.OptimalControl(r, knots=3).add(fw.Residual(lambda placements: [1.0], size=1, name="f")),
            "'f': its function takes placements; give their frames",
        ),
        (
            lambda r: fw.OptimalControl(r, knots=3).add(fw.Residual(lambda parameters: [1.0], size=1, name="f")),
            "'f': its function takes parameters; give their number",
        ),
        (
            lambda r: fw.OptimalControl(r, knots=3).add(fw.Residual(lambda q: [q[0]], size=cast(Any, 1.0), name="f")),
            "'f': size must be at least 0, a whole number",
        ),
        (lambda r: fw.OptimalControl(r, knots=3).add(fw.Residual(cast(Any, 3), size=1, name="f")), "must be callable; got 3"),
        (lambda r: fw.OptimalControl(r, knots=3, dt=cast(Any, "long")), "dt must be .* got 'long'"),
        (lambda r: fw.OptimalControl(r, knots=3).add(fw.Effort(), weight=cast(Any, "heavy")), "the weight of 'effort'"),
        (lambda r: fw.OptimalControl(r, knots=3).add(fw.Effort(), width=cast(Any, "wide")), "the width of 'effort'"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(wrong: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError, KeyError), match=words):
        wrong(fw.load(fw.example("panda")))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda ocp: ocp.add(fw.Effort(weight=[1.0, 2.0], name="few")), "weight of 'few' must be a number or 8 of them"),
        (lambda ocp: ocp.add(fw.Effort(weight=-1.0, name="gain")), "weight of 'gain' must be .* none negative"),
        (lambda ocp: ocp.add(fw.Effort(weight=np.inf, name="gain")), "weight of 'gain' must be .* finite"),
        (lambda ocp: ocp.add(fw.Effort(weight=cast(Any, "all"), name="gain")), "weight of 'gain' must be .* got 'all'"),
        (lambda ocp: ocp.require(fw.JointVelocities(name="slow"), low=1.0, high=-1.0), "low of 'slow' exceeds high"),
        (lambda ocp: ocp.require(fw.JointVelocities(name="slow"), low=np.inf, high=np.inf), "no number is within .* 'slow'"),
        (lambda ocp: ocp.add(fw.Residual(lambda q: q[0], size=1, name="bare")), "'bare': its function must return a list"),
        (lambda ocp: ocp.require(fw.JointVelocities(name="slow"), low=[0.0] * 3), "low of 'slow' must be a number or 8"),
        (lambda ocp: ocp.add(fw.Effort(name="late"), at=[7]), "knots of 'late' must be numbers from 0 to 3"),
        (lambda ocp: ocp.add(fw.Effort(name="never"), at="end"), "'never' applies to none of the knots"),
        (lambda ocp: ocp.add(fw.ContactForces()), "'contact forces' applies to none of the knots"),
        (lambda ocp: ocp.limit(friction=0.5), "friction needs contacts"),
    ],
)
def test_terms_that_do_not_fit_are_refused_by_name(wrong: Any, words: str) -> None:
    ocp = panda(3)

    def use() -> None:
        wrong(ocp)
        ocp.solve(PANDA_START, **panda_arguments(ocp))

    with pytest.raises((ValueError, TypeError), match=words):
        use()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"targets": {}}, "OptimalControl: targets must be those of the tasks"),
        ({"targets": np.eye(4)}, "targets must be a dict with names as keys; got ndarray"),
        ({"targets": {"hands": np.eye(4)}}, r"got \['hands'\]"),
        ({"iterations": 1.5}, "iterations must be at least 0, a whole number"),
        ({"tolerance": np.nan}, "tolerance must not be negative; got nan"),
        ({"constraint_tolerance": -1.0}, "constraint_tolerance must not be negative"),
        ({"parameters": {}}, "parameters of 'away' are missing"),
        ({"parameters": {"away": [1.0, 2.0]}}, "parameters of 'away' must be 3"),
        ({"parameters": {"away": [1.0, 2.0, 3.0], "far": [1.0]}}, "no function 'far'"),
    ],
)
def test_arguments_of_wrong_shapes_are_refused_by_name(change: dict[str, Any], words: str) -> None:
    ocp = panda(3)
    with pytest.raises(ValueError, match=words):
        ocp.solve(PANDA_START, **(panda_arguments(ocp) | change))
    with pytest.raises(ValueError, match="q must have shape"):
        ocp.solve(np.zeros(5), **panda_arguments(ocp))
    with pytest.raises(ValueError, match="problems do not broadcast"):
        ocp.solve(np.zeros((3, 8)), np.zeros((2, 8)), **panda_arguments(ocp))
    with pytest.raises(ValueError, match="no problems to solve"):
        ocp.solve(np.zeros((0, 8)), **panda_arguments(ocp))
    with pytest.raises(ValueError, match="iterations must be at least 0"):
        ocp.solve(PANDA_START, **panda_arguments(ocp), iterations=-1)
    plan = ocp.solve(PANDA_START, **panda_arguments(ocp), iterations=0)
    with pytest.raises(ValueError, match=r"q of the guess must be finite, of shape \(4, 8\)"):
        ocp.solve(PANDA_START, **panda_arguments(ocp), guess=plan._replace(q=plan.q[1:]))
    with pytest.raises(TypeError, match="guess must be a Plan"):
        ocp.solve(PANDA_START, **panda_arguments(ocp), guess=cast(Any, (plan.q, plan.v, plan.u)))
    with pytest.raises(ValueError, match="q has numbers that are not finite"):
        ocp.solve(np.full(8, np.nan), **panda_arguments(ocp))


def test_plans_of_other_problems_are_refused() -> None:
    long, short = panda(4), panda(3)
    plan = short.solve(PANDA_START, **panda_arguments(short), iterations=0)
    for use in (long.trajectory, long.contact_forces, lambda x: long.violations(x, **panda_arguments(long))):
        with pytest.raises(ValueError, match=r"q of the plan must be of shape \(5, 8\); got \(4, 8\)"):
            use(plan)


def test_quaternions_of_the_start_have_unit_length() -> None:
    """Check that other lengths are refused, and that lengths rounded to few digits are corrected."""
    robot, q = hopper()
    ocp = fw.OptimalControl(robot, knots=3)
    ocp.add(fw.Effort())
    ocp.add(fw.PostureTask(name="posture"), weight=10.0)
    for length in (0.0, 2.0):
        with pytest.raises(ValueError, match="the quaternion of joint 'root'"):
            ocp.solve(q * np.where(np.arange(robot.nq) // 4 == 1, length, 1.0))
    tilted = q.copy()
    tilted[3:7] = [0.6001, 0.0, 0.0, 0.8]
    np.testing.assert_allclose(np.linalg.norm(ocp.solve(tilted).q[:, 3:7], axis=1), 1.0, atol=1e-12)


def test_functions_of_users_may_be_methods_and_have_defaults() -> None:
    class Far:
        def rows(self, q: Any) -> list[Any]:
            return [q[0] - 1.0]

    ocp = fw.OptimalControl(sliders(1), knots=5)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.Residual(Far().rows, size=1, name="method"), weight=100.0)
    costs = [ocp.solve(np.zeros(1)).cost]
    for function in (lambda q, far=1.0: [q[0] - far], partial(lambda q, far: [q[0] - far], far=1.0)):
        other = fw.OptimalControl(sliders(1), knots=5)
        other.add(fw.Effort(), weight=1e-3)
        other.add(fw.Residual(function, size=1), weight=100.0)
        costs.append(other.solve(np.zeros(1)).cost)
    assert costs[0] == costs[1] == costs[2]


def test_a_task_may_be_a_cost_and_a_constraint() -> None:
    """Check that the cost and the constraint have their own rows, and one target."""
    robot = fw.load(fw.example("panda"))
    ocp = fw.OptimalControl(robot, dt=0.02, knots=20)
    hand = fw.FrameTask(HAND, kind="position")
    ocp.add(hand, weight=1.0)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.require(hand, at="end")
    plan = ocp.solve(PANDA_START, targets={HAND: [0.4, -0.3, 0.4]})
    assert plan.converged
    off = robot.frame_placement(HAND)(plan.q)[:, :3, 3] - [0.4, -0.3, 0.4]
    assert abs(off[-1]).max() < 1e-4
    squares = 0.5 * 0.02 * ((off[:-1] ** 2).sum() + 1e-3 * (plan.u**2).sum() + 0.1 * (plan.v[:-1] ** 2).sum())
    assert plan.cost == pytest.approx(squares + 0.5 * (off[-1] @ off[-1] + 0.1 * plan.v[-1] @ plan.v[-1]), rel=1e-6)
    with pytest.raises(ValueError, match="two terms are called 'panda_hand_tcp'"):
        ocp.add(fw.FrameTask(HAND, kind="pose"))


def test_problems_are_pickled_without_what_is_compiled() -> None:
    ocp = panda(10)
    first = ocp.solve(PANDA_START, **panda_arguments(ocp))
    again = pickle.loads(pickle.dumps(ocp)).solve(PANDA_START, **panda_arguments(ocp))
    np.testing.assert_array_equal(again.q, first.q)


def test_the_least_time_of_a_mass_is_that_of_bang_bang_control() -> None:
    """Check a motion from rest to rest over d with a force of at most f: 2 sqrt(d m / f), to the step size; without new
    compilation.
    """
    robot = sliders(1)
    mass, d, f = float(robot.mass_matrix(np.zeros(1))[0, 0]), 0.8, 3.0
    ocp = fw.OptimalControl(robot, dt=0.1, knots=40)
    ocp.add(fw.Effort(), weight=1e-4)
    ocp.require(fw.PostureTask(), at="end")
    ocp.require(fw.JointVelocities(), at="end")
    ocp.require(fw.Residual(lambda u: [u[0]], size=1, name="force"), -f, f, at="running")
    quick, plan = ocp.fastest(np.zeros(1), shortest=0.01, targets={"posture": [d]}, iterations=300)
    expected = 2.0 * np.sqrt(d * mass / f)
    assert plan.converged and expected * 0.97 < quick.dt.sum() < expected * 1.05
    assert np.abs(plan.u).max() < f * (1.0 + 1e-3) and abs(plan.q[-1, 0] - d) < 1e-3
    assert layout_of(quick).stages[0] is layout_of(ocp).stages[0]
    with pytest.raises(ValueError, match=r"even the longest duration, 0.4 s, has no solution.*violated: .*posture"):
        ocp.fastest(np.zeros(1), shortest=0.01, longest=0.1, targets={"posture": [d]})
    with pytest.raises(ValueError, match="shortest must be positive and less than longest"):
        ocp.fastest(np.zeros(1), shortest=2.0, targets={"posture": [d]})


def test_other_steps_need_no_other_functions() -> None:
    """Check that a scaled problem is the problem with those steps."""
    ocp, other = (fw.OptimalControl(pendulum(), dt=h, knots=20) for h in (0.02, 0.05))
    for x in (ocp, other):
        x.add(fw.PostureTask(), weight=1.0)
        x.add(fw.Effort(), weight=1e-2)
    targets = {"posture": [0.5, -0.3]}
    one, two = ocp.scaled(2.5).solve([0.0, 0.0], targets=targets), other.solve([0.0, 0.0], targets=targets)
    np.testing.assert_allclose(one.q, two.q, atol=1e-9)
    with pytest.raises(ValueError, match="the scale of time must be a positive number"):
        ocp.scaled(0.0)
    drives = fw.OptimalControl(pendulum(), knots=3, actuators=[fw.Actuator("a", "elbow", bias=(0.0, -1.0, 0.0))])
    with pytest.raises(ValueError, match="stiffness and damping of actuators depend on the step"):
        drives.scaled(2.0)


def test_friction_of_contacts_that_have_no_cone_is_refused_by_name() -> None:
    def ocp(**contact: Any) -> fw.OptimalControl:
        held = fw.BilateralContact(HAND, **contact)
        return fw.OptimalControl(fw.load(fw.example("panda")), phases=[fw.Phase(3, [held])])

    with pytest.raises(ValueError, match="surface contacts needs sole="):
        ocp().limit(friction=0.5)
    with pytest.raises(ValueError, match=r"needs sole=\(length, width\) in m; got \(0.1, -1.0\)"):
        ocp().limit(friction=0.5, sole=(0.1, -1.0))
    with pytest.raises(ValueError, match="has rows of its own"):
        ocp(rows=np.eye(6)[:2]).limit(friction=0.5)


Force = Callable[[Array, Array, Array], Array]
"""A function of q, v and u that returns joint forces."""


def exact_motion(
    robot: fw.Robot, q: Array, v: Array, u: Array, h: float, contacts: Any = (), force: Force | None = None
) -> Array:
    """Return the state (q, v) after controls u (k, nu) that are held for h each. Without `force`, controls are joint forces."""
    space = robot.operational_space(contacts) if contacts else None

    def rate(_: float, y: Array, held: Array) -> Array:
        q, v, along = y[: robot.nq], y[robot.nq :], 1e-5 * y[robot.nq :]
        tau = held if force is None else force(q, v, held)
        moving = (robot.integrate(q, along) - robot.integrate(q, -along)) / 2e-5
        a = robot.forward_dynamics(q, v, tau) if space is None else space.forward_dynamics(q, v, tau).acceleration
        return np.concatenate([moving, a])

    y: Array = np.concatenate([q, v])
    for held in u:
        y = solve_ivp(rate, (0.0, h), y, args=(held,), rtol=1e-11, atol=1e-11).y[:, -1]
    return y


def servo_forces(q: Array, v: Array, u: Array) -> Array:
    return np.array([3.0 * u[0], 0.5 * (40.0 * u[1] + 1.0 - 20.0 * q[1] - v[1])])


def runge_kutta_cases() -> dict[str, tuple[fw.Robot, Array, float, dict[str, Any]]]:
    """Return robots, configurations, steps, and options: contacts, drives, and the joint forces of controls."""
    wheel = fw.build(from_parents([-1, 0], rng=1, joint_types=["planar", "spherical"]))
    closed, start = leg()
    ends = np.eye(8)[[6, 7]]
    return {
        "arm": (pendulum(), np.array([0.3, -0.2]), 0.04, {}),
        "servos": (pendulum(), np.array([0.3, -0.2]), 0.008, {"force": servo_forces, "actuators": [MOTOR, SERVO]}),
        "manifolds": (wheel, wheel.neutral(), 0.03, {"driven": ["joint0", "joint1"]}),
        "contact": (*hopper(), 0.04, {"contacts": [fw.BilateralContact("foot", "point")], "force": lambda q, v, u: u @ ends}),
        "loop": (closed.robot, start, 0.01, {"contacts": [fw.BilateralContact("toe", rows=np.eye(6)[:2])]}),
    }


@pytest.mark.parametrize("case", ["arm", "servos", "manifolds", "contact", "loop"])
def test_runge_kutta_steps_have_order_four(case: str) -> None:
    """Check that half the step follows the motion under held controls about sixteen times as well."""
    robot, q, h, options = runge_kutta_cases()[case]
    contacts, force, errors = options.pop("contacts", ()), options.pop("force", None), list[float]()
    rng = np.random.default_rng(0)
    v = rng.normal(size=robot.nv)
    if contacts:
        v = robot.operational_space(contacts).impulse_dynamics(q, v).velocity
    problems = [
        fw.OptimalControl(robot, dt=h / halves, phases=[fw.Phase(3, contacts)], integrator="rk4", **options)
        for halves in (4, 8)
    ]
    u = rng.uniform(-3.0, 3.0, (3, problems[0].nu))
    expected = exact_motion(robot, q, v, u, h, contacts, force)
    for ocp, halves in zip(problems, (4, 8), strict=True):
        ocp.add(fw.Effort())
        step, x, y = layout_of(ocp).stages[0].step, q, v
        for held in np.repeat(u, halves, axis=0):
            known = {"q": x, "v": y, "u": held, "h": h / halves}
            x, y, _ = step(*(known[a.name] for a in step.program.inputs))
        off = robot.difference(expected[: robot.nq], x), expected[robot.nq :] - y
        errors.append(abs(np.concatenate(off)).max())
    assert errors[1] < 1e-5 and errors[0] / errors[1] > 14.0, errors


def test_runge_kutta_steps_swing_a_pendulum_up() -> None:
    """Check that planned forces with long steps lead to the plan's end; those planned with semi-implicit steps do not."""
    robot, off = pendulum(), []
    for integrator in ("rk4", "semi-implicit"):
        ocp = fw.OptimalControl(robot, dt=0.05, knots=20, integrator=integrator)
        ocp.add(fw.FrameTask("tip", kind="position"), weight=50.0)
        ocp.add(fw.JointVelocities(), weight=0.05)
        ocp.add(fw.Effort(), weight=1e-2)
        plan = ocp.solve(np.zeros(2), targets={"tip": [0.7, 0.0, -0.4]})
        assert plan.converged
        off.append(np.linalg.norm(exact_motion(robot, np.zeros(2), np.zeros(2), plan.u, 0.05)[:2] - plan.q[-1]))
    assert off[0] < 0.05 < off[1]


def hop() -> tuple[fw.OptimalControl, Array, dict[str, Any]]:
    """Return a floating leg that hops ahead and lands."""
    (robot, start), foot = hopper(), [fw.BilateralContact("foot", "point")]
    phases = [fw.Phase(8, foot), fw.Phase(6), fw.Phase(6, foot, impact=True)]
    ocp = fw.OptimalControl(robot, dt=0.02, phases=phases, integrator="rk4")
    ocp.add(fw.PostureTask(), weight=np.append(np.ones(ocp.knots), 1e3))
    ocp.add(fw.FrameTask("foot", kind="position"), weight=1e3, at="end")
    ocp.add(fw.JointVelocities(), weight=np.append(np.full(ocp.knots, 0.1), 1.0))
    ocp.add(fw.Effort(), weight=1e-3)
    ahead = np.array([0.1, 0.0, 0.0])
    goal = start + np.append(ahead, np.zeros(robot.nq - 3))
    return ocp, start, {"posture": goal, "foot": robot.frame_placement("foot")(start)[:3, 3] + ahead}


def jump() -> tuple[fw.OptimalControl, Array, dict[str, Any]]:
    """Return a leg with a loop that jumps along a slider."""
    ocp, start = leg(10, 10, integrator="rk4")
    return ocp, start, {"height": start + np.eye(5)[0] * 0.1, "toe": np.zeros(3)}


@pytest.mark.parametrize("problem", [hop, jump])
def test_runge_kutta_plans_cannot_be_improved(problem: Any) -> None:
    """Check that along random changes of all controls the derivative of the cost is zero.

    Contacts rest, and loops stay closed.
    """
    ocp, start, targets = problem()
    robot, layout, rng = ocp.robot, layout_of(ocp), np.random.default_rng(0)
    plan = ocp.solve(start, targets=targets, tolerance=1e-12)
    assert plan.converged and plan.iterations < 20
    flat = layout.parameters(start, targets, None)[0]

    def moved(u: Array) -> tuple[Array, Array]:
        qs, vs = [start], [np.zeros(robot.nv)]
        for k, x in enumerate(u):
            step = layout.stages[layout.stage_of_knot[k]].step
            known = {"q": qs[-1], "v": vs[-1], "u": x, "h": layout.h[k], "parameters": flat}
            found = step(*(known[a.name] for a in step.program.inputs))
            qs.append(found.ahead)
            vs.append(found.velocity)
        return np.array(qs), np.array(vs)

    def slope(u: Array, d: Array) -> float:
        ends = [float(ocp.cost_of_motions(*moved(u + x * d), u + x * d, targets, start=start)) for x in (1e-4, -1e-4)]
        return (ends[0] - ends[1]) / 2e-4

    np.testing.assert_allclose(moved(plan.u)[0], plan.q, atol=1e-9)
    other = plan.u + rng.normal(size=plan.u.shape)
    for _ in range(3):
        d = rng.normal(size=plan.u.shape)
        assert abs(slope(plan.u, d)) < 1e-4 * max(1.0, abs(slope(other, d)))
    space = layout.stages[0].space
    assert space is not None
    J = space.jacobian(plan.q[:8])
    assert abs(J @ plan.v[:8, :, None]).max() < 1e-3
    if robot.closed:
        np.testing.assert_allclose(robot.close(plan.q), plan.q, atol=1e-9)


def test_integrators_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="integrator must be 'semi-implicit' or 'rk4'; got 'euler'"):
        fw.OptimalControl(pendulum(), knots=3, integrator="euler")


def test_joints_that_loops_determine_in_part_are_refused() -> None:
    """Check a ball joint with one independent velocity."""
    ball = fw.Joint("ball", fw.JointType.SPHERICAL, None, "rod")
    joints = [ball, fw.Joint("hinge", fw.JointType.REVOLUTE, "rod", "tip", fw.Pose(p=(0.4, 0.0, 0.0)), (0.0, 1.0, 0.0))]
    bodies = [fw.Body(name, fw.Inertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))) for name in ("rod", "tip")]
    loop = fw.Loop("loop", fw.LoopType.SPHERICAL, None, "tip", fw.Pose(p=(0.6, 0.0, 0.1)), fw.Pose(p=(0.2, 0.0, 0.1)))
    robot = fw.build(fw.describe(bodies, joints, loops=[loop]))
    with pytest.raises(NotImplementedError, match="determine a part of the velocities of joint 'ball'"):
        fw.OptimalControl(robot, knots=3)


def test_several_plans_have_their_own_violations_and_guesses() -> None:
    ocp = fw.OptimalControl(pendulum(), dt=0.01, knots=5)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.require(fw.PostureTask(name="there"), at="end")
    ocp.require(fw.JointVelocities(name="slow"), -0.1, 0.1)
    q, ends = np.array([[0.1, 0.2], [0.3, 0.4], [1.0, 1.0]]), np.array([[0.2, 0.3], [0.4, 0.4], [2.0, 2.0]])
    targets = np.stack([np.tile(ends[:, None], (1, 6, 1)), np.tile(0.5 * ends[:, None], (1, 6, 1))])  # (2, 3, 6, nq)
    plans = ocp.solve(q, targets={"there": targets}, iterations=3)
    found = ocp.violations(plans, {"there": targets})
    again = ocp.solve(q, targets={"there": targets}, iterations=2, guess=plans)
    for i, k in np.ndindex(2, 3):
        given = {"there": targets[i, k]}
        plan = ocp.solve(q[k], targets=given, iterations=3)
        assert {name: x[i, k] for name, x in found.items()} == ocp.violations(plan, given)
        np.testing.assert_array_equal(again.u[i, k], ocp.solve(q[k], targets=given, iterations=2, guess=plan).u)
    np.testing.assert_array_equal(np.maximum(found["there"], found["slow"]), plans.violation)
    with pytest.raises(ValueError, match=r"the guess must be one plan, or one for each problem, \(3,\); got \(2, 3\)"):
        ocp.solve(q, targets={"there": targets[0]}, guess=plans)
    with pytest.raises(ValueError, match="fastest takes one problem"):
        ocp.fastest(q, shortest=0.2)
    with pytest.raises(ValueError, match="penalty must be a finite number, zero or more; got nan"):
        ocp.cost_of_motions(plans.q, plans.v, plans.u, penalty=np.nan)
