"""Tests of steps that the solver chooses: derivatives, least times, and problems with the same steps given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.algorithms import knots as kernels
from featherweight.array_types import Array
from featherweight.engine.loops.kernels import compiled
from featherweight.model.generators import from_parents
from featherweight.optimal_control.riccati import KnotSlopes, Riccati, begin_value, riccati, step_back
from optimal_control.problems import PANDA_START, hopper, layout_of, leg, pendulum, sliders
from optimal_control.test_riccati import lower, semidefinite
from optimal_control.test_stage_functions import check

FREE = (0.005, 0.05)


def pull(a: Any, force: Any) -> Any:
    return [a[0] * force[2]]


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4"])
def test_derivatives_by_the_step(integrator: str) -> None:
    """Check manifolds, contact forces and accelerations, loops, and knots whose steps are given."""
    rng, foot = np.random.default_rng(0), [fw.BilateralContact("foot", "point")]
    wheel = fw.build(from_parents([-1, 0], rng=1, joint_types=["planar", "spherical"]))
    closed, toe = leg()[0].robot, [fw.BilateralContact("toe", rows=np.eye(6)[:2])]
    phases = [fw.Phase(2, foot, impact=True, dt=FREE), fw.Phase(2)]
    for robot, parts in ((hopper()[0], phases), (wheel, [fw.Phase(2, dt=FREE)]), (closed, [fw.Phase(2, toe, dt=FREE)])):
        ocp = fw.OptimalControl(robot, phases=parts, integrator=integrator)
        ocp.add(fw.Effort())
        ocp.add(fw.PostureTask())
        ocp.require(fw.JointVelocities(), -1.0, 1.0)
        if len(parts) > 1:
            ocp.add(fw.ContactForces(), weight=1e-3)
            ocp.require(fw.Residual(pull, size=1), at=[1, 2])
        q = leg()[1] if robot.closed else robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
        for stage in layout_of(ocp).stages:
            check(ocp, stage, q, layout_of(ocp).parameters(q, None, None)[0], rng)


@compiled
def passed_back(r: Riccati, knot: KnotSlopes, damping: float, feedback: Array, k: Array) -> bool:
    return step_back(r, knot, damping, feedback, k)


@pytest.mark.parametrize("bounds", [(-9.0, 9.0), (-9.0, -5.0), (0.0, 0.0)])
def test_the_recursion_is_elimination_from_whole_matrices(bounds: tuple[float, float]) -> None:
    """Check a knot that shares the step of the previous knot, which chooses the step within bounds."""
    n, m, rng = 3, 3, np.random.default_rng(2)
    rows, width = 2 * n + 1, 2 * n + m
    r = riccati(n, m, rows, [], 1)
    V, g = np.zeros((rows, rows)), np.zeros(rows)
    V[:-1, :-1], g[:-1] = semidefinite(rng, 2 * n), rng.normal(size=2 * n)
    begin_value(r, np.append(g, np.zeros(m)), *lower(V))
    for tied in (1, 0):
        D, cost, slope = rng.normal(size=(rows, width)), semidefinite(rng, width), rng.normal(size=width)
        D[-1] = np.eye(width)[2 * n]
        r.numbers[: rows * r.long].reshape(rows, r.long)[:, :width] = D
        feedback, k = np.zeros(rows * 8), np.zeros(m)
        knot = KnotSlopes(0, np.zeros(0), slope, *lower(cost), 0.1, tied, *bounds)
        assert passed_back(r, knot, 0.0, feedback, k)
        F = D + np.eye(rows, width) * (np.arange(rows) < n)[:, None]
        Q, q = cost + F.T @ V @ F, slope + F.T @ g
        states = 2 * n + tied
        controls, best = np.arange(states, width), -np.linalg.solve(Q[states:, states:], q[states:])
        fixed = np.zeros(width)  # a step at its bound has no feedback
        if not tied and not bounds[0] <= best[0] <= bounds[1]:
            fixed[2 * n], controls = np.clip(best[0], *bounds), controls[1:]
        q = q + Q @ fixed
        inverse = np.linalg.inv(Q[np.ix_(controls, controls)])
        K, change = -inverse @ Q[controls, :states], fixed.copy()
        change[controls] = -inverse @ q[controls]
        np.testing.assert_allclose(k[tied:], change[states:], rtol=0, atol=1e-9 * abs(change).max())
        found = -feedback.reshape(rows, 8)[:states, controls - 2 * n].T
        np.testing.assert_allclose(found, K, rtol=0, atol=1e-9 * abs(K).max())
        V, g = np.zeros((rows, rows)), np.zeros(rows)
        V[:states, :states] = Q[:states, :states] + Q[:states, controls] @ K
        g[:states] = q[:states] + K.T @ q[controls]
        value = r.numbers[r.value : r.value + rows * r.wide].reshape(rows, r.wide)[:, :rows]
        np.testing.assert_allclose(value, V, rtol=0, atol=1e-9 * abs(V).max())
        np.testing.assert_allclose(r.slope[:rows], g, rtol=0, atol=1e-9 * abs(g).max())


@pytest.mark.parametrize(
    ("integrator", "phases"), [("semi-implicit", [20]), ("rk4", [20]), ("rk4", [10, 10]), ("rk4", [1] * 20)]
)
def test_the_least_time_of_a_mass_is_that_of_bang_bang_control(integrator: str, phases: list[int]) -> None:
    """Check a motion from rest to rest over d with a force of at most f: 2 sqrt(d m / f)."""
    robot, d, f = sliders(1), 0.8, 3.0
    mass = float(robot.mass_matrix(np.zeros(1))[0, 0])
    parts = [fw.Phase(knots, dt=(0.001, 0.1)) for knots in phases]
    ocp = fw.OptimalControl(robot, phases=parts, integrator=integrator)
    ocp.add(fw.Duration())
    ocp.add(fw.Effort(), weight=1e-4)
    ocp.require(fw.PostureTask(), at="end")
    ocp.require(fw.JointVelocities(), at="end")
    ocp.require(fw.Residual(lambda u: [u[0]], size=1, name="force"), -f, f, at="running")
    plan = ocp.solve(np.zeros(1), targets={"posture": [d]}, iterations=300)
    assert plan.converged, plan.reason
    assert plan.dt.sum() == pytest.approx(2.0 * np.sqrt(d * mass / f), rel=1e-3)
    assert abs(plan.u).max() < f * (1.0 + 1e-3) and plan.q[-1, 0] == pytest.approx(d, abs=1e-3)
    firsts = np.cumsum([0, *phases[:-1]])
    np.testing.assert_array_equal(plan.dt, np.repeat(plan.dt[firsts], phases))
    assert ocp.trajectory(plan).times[-1] == pytest.approx(plan.dt.sum())


def test_a_reach_takes_as_long_as_by_bisection() -> None:
    """Check that the cost of time dominates, and that the cost is less than at the duration that bisection finds."""

    def reach(step: Any) -> fw.OptimalControl:
        ocp = fw.OptimalControl(fw.load(fw.example("panda")), dt=step, knots=40)
        ocp.add(fw.JointVelocities(), weight=0.01)
        ocp.add(fw.Effort(), weight=1e-5)
        ocp.require(fw.FrameTask("panda_hand_tcp", kind="position", name="hand"), at="end", weight=100.0)
        ocp.require(fw.JointVelocities(name="rest"), at="end")
        ocp.limit(positions=True, velocities=True, efforts=True)
        return ocp

    targets, free = {"hand": [0.35, -0.45, 0.35]}, reach((0.004, 0.04))
    free.add(fw.Duration())
    plan = free.solve(PANDA_START, targets=targets, iterations=500)
    quick, slower = reach(0.04).fastest(PANDA_START, shortest=0.1, targets=targets, iterations=300)
    assert plan.converged and slower.converged
    assert plan.dt.sum() == pytest.approx(quick.dt.sum(), rel=0.03)
    assert plan.cost < slower.cost + quick.dt.sum()
    given = quick.scaled(plan.dt[0] / quick.dt[0])
    same = given.solve(PANDA_START, targets=targets, guess=plan, iterations=300)
    assert same.converged and same.cost + plan.dt.sum() == pytest.approx(plan.cost, rel=1e-3)


def hop(steps: Any) -> tuple[fw.OptimalControl, Array, dict[str, Any]]:
    """Return a floating leg that hops ahead and lands: stance, flight and stance after an impact."""
    (robot, start), foot = hopper(), [fw.BilateralContact("foot", "point")]
    parts = [fw.Phase(8, foot, steps[0]), fw.Phase(6, (), steps[1]), fw.Phase(6, foot, steps[2], impact=True)]
    ocp = fw.OptimalControl(robot, phases=parts)
    ocp.add(fw.PostureTask(), weight=np.append(np.ones(ocp.knots), 1e3))
    ocp.add(fw.FrameTask("foot", kind="position"), weight=1e3, at="end")
    ocp.add(fw.JointVelocities(), weight=np.append(np.full(ocp.knots, 0.1), 1.0))
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.Duration(), weight=1.0)
    ahead = np.array([0.1, 0.0, 0.0])
    goal = start + np.append(ahead, np.zeros(robot.nq - 3))
    return ocp, start, {"posture": goal, "foot": robot.frame_placement("foot")(start)[:3, 3] + ahead}


def test_no_other_durations_of_a_hop_are_cheaper() -> None:
    """Check that the problem with the solver's steps given has the same cost, and that other steps cost more.

    The step of the first phase is at its upper bound, and only longer steps would cost less.
    """
    ocp, start, targets = hop([(0.005, 0.045), FREE, FREE])
    plan = ocp.solve(start, targets=targets, iterations=300, tolerance=1e-9)
    assert plan.converged, plan.reason
    steps, begins = plan.dt[[0, 8, 15]], [0, 8, 14, 15, 21]
    np.testing.assert_array_equal(plan.dt, np.repeat([*steps[:2], 0.0, steps[2]], np.diff(begins)))
    assert steps[0] == 0.045 and (1.1 * FREE[0] < steps[1:]).all() and (steps[1:] < 0.9 * FREE[1]).all()
    assert [len(x) for x in ocp.contact_forces(plan)] == [8, 6, 1, 6]

    functions: dict[Any, Any] = {}  # they do not depend on given steps

    def cost(i: int, factor: float) -> float:
        factors = np.where(np.arange(3) == i, factor, 1.0)
        given, _, _ = hop([float(x) for x in steps * factors])
        given._stages = functions
        return float(given.solve(start, targets=targets, guess=plan, tolerance=1e-9).cost)

    assert cost(0, 1.0) == pytest.approx(plan.cost, abs=1e-6)
    assert cost(0, 0.98) > plan.cost + 1e-5 and cost(0, 1.02) < plan.cost - 1e-5
    for i in (1, 2):
        assert min(cost(i, 0.98), cost(i, 1.02)) > plan.cost + 1e-5


def swing(step: Any) -> fw.OptimalControl:
    """Return a double pendulum that moves from rest to rest."""
    ocp = fw.OptimalControl(pendulum(), dt=step, knots=20, integrator="rk4")
    ocp.add(fw.Effort(), weight=1e-2)
    ocp.add(fw.Duration())
    ocp.require(fw.PostureTask(), at="end")
    ocp.require(fw.JointVelocities(), at="end")
    return ocp


def test_a_plan_is_a_guess_and_problems_of_a_batch_choose_their_own_steps() -> None:
    """Check that no other durations are cheaper."""
    ocp = swing((0.01, 0.1))
    targets = {"posture": np.array([[0.5, -0.3], [1.5, 0.3]])[:, None]}
    many = ocp.solve(np.zeros((2, 2)), targets=targets, iterations=200)
    assert many.converged.all() and many.dt.shape == (2, 20) and many.dt[0, 0] < 0.9 * many.dt[1, 0]
    one = ocp.solve(np.zeros(2), targets={"posture": targets["posture"][1]}, iterations=200)
    np.testing.assert_array_equal(one.dt, many.dt[1])
    again = ocp.solve(np.zeros(2), targets={"posture": targets["posture"][1]}, guess=one, iterations=200)
    assert again.converged and again.iterations < 0.7 * one.iterations
    np.testing.assert_allclose(again.dt, one.dt, rtol=1e-3)
    given = swing(float(one.dt[0]))
    options: dict[str, Any] = {"targets": {"posture": targets["posture"][1]}, "tolerance": 1e-9}
    shorter, same, longer = (given.scaled(x).solve(np.zeros(2), guess=one, **options).cost for x in (0.97, 1.0, 1.03))
    assert same == pytest.approx(one.cost, rel=1e-3) and same < min(shorter, longer)


@pytest.mark.parametrize("exact", [False, True])
def test_costs_with_a_width_are_those_of_given_steps(exact: bool) -> None:
    """Check that no other durations are cheaper."""

    def reach(step: Any) -> fw.OptimalControl:
        ocp = fw.OptimalControl(pendulum(), dt=step, knots=20)
        ocp.add(fw.FrameTask("tip", kind="position"), weight=20.0, width=0.3, exact=exact)
        ocp.add(fw.Residual(lambda v: [v[0]], size=1, name="speed"), weight=0.2, width=0.5, exact=exact)
        ocp.add(fw.Effort(), weight=1e-2)
        ocp.add(fw.Duration(), weight=0.5)
        return ocp

    tip, start = [0.7, 0.0, 0.4], np.array([-0.5, -0.5])
    free, options = reach((0.005, 0.1)), dict[str, Any](targets={"tip": tip}, tolerance=1e-10, iterations=300)
    plan = free.solve(start, **options)
    assert plan.converged and 0.006 < plan.dt[0] < 0.09
    away = np.linalg.norm(free.robot.frame_placement("tip")(plan.q)[:, :3, 3] - tip, axis=1)
    assert abs(plan.v[:, 0]).max() > 0.6 and abs(plan.v[:, 0]).min() < 0.4 and away.max() > 0.6 and away.min() < 0.3
    given = reach(float(plan.dt[0]))
    shorter, same, longer = (given.scaled(x).solve(start, guess=plan, **options).cost for x in (0.97, 1.0, 1.03))
    assert same == pytest.approx(plan.cost, rel=1e-9) and same < min(shorter, longer)


def test_derivatives_of_costs_with_a_width() -> None:
    """Check inside the width, beyond it, and at its bound."""
    rng = np.random.default_rng(0)
    ocp = fw.OptimalControl(pendulum(), dt=FREE, knots=2)
    ocp.add(fw.Effort(), width=1e-3)
    ocp.add(fw.FrameTask("tip", kind="position"), width=0.4)
    q = np.array([0.2, 0.5])
    for stage in layout_of(ocp).stages:
        check(ocp, stage, q, layout_of(ocp).parameters(q, {"tip": [0.7, 0.0, 0.4]}, None)[0], rng)
    found, expected = [], np.array([[0, 0], [-0.5, 0.5], [-1, 1], [-1, 1], [-np.sqrt(5), 3]])
    for x in (0.0, 0.5, 1.0, 1.0 + 1e-12, 3.0):
        rows = [0.0, 0.0]
        kernels.huber_rows((1.0, np.inf), (-x, x), rows)
        found.append(rows)
    np.testing.assert_allclose(np.array(found), expected, rtol=0, atol=1e-11)


def free_problem(**options: Any) -> fw.OptimalControl:
    ocp = fw.OptimalControl(pendulum(), **{"dt": (0.01, 0.1), "knots": 5, **options})
    ocp.add(fw.Effort())
    return ocp


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: free_problem(dt=(0.1, 0.01)), "dt must be a positive number of seconds or two, ascending"),
        (lambda: free_problem(dt=(0.1, 0.2, 0.3)), r"or two, ascending; got \(0.1, 0.2, 0.3\)"),
        (lambda: free_problem(phases=[fw.Phase(3)]), "need a given step, not a free one"),
        (lambda: free_problem(actuators=fw.PD(10.0, 1.0)), "stiffness and damping of actuators depend on the step"),
        (lambda: free_problem().add(fw.JointVelocities(), width=0.0), "width of 'joint velocities' must be positive; got 0.0"),
        (lambda: free_problem().require(fw.Duration()), "Duration is a cost"),
        (lambda: free_problem().add(fw.Duration(), at="end"), "'duration' applies to none of the knots"),
        (lambda: fw.SamplingController(free_problem()), "SamplingController: steps of the problem are free"),
        (lambda: free_problem().fastest(np.zeros(2), shortest=0.1), "fastest: steps of the problem are free"),
    ],
)
def test_what_free_steps_do_not_support_is_refused_by_name(wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        wrong()


def test_the_duration_of_given_steps_is_a_part_of_the_cost() -> None:
    """Check durations; impacts take no time."""
    ocp, start, _ = hop([0.01, 0.02, 0.03])
    motion = np.tile(start, (22, 1)), np.zeros((22, 8)), np.zeros((21, 2))
    targets = {"posture": start, "foot": ocp.robot.frame_placement("foot")(start)[:3, 3]}
    assert ocp.cost_of_motions(*motion, targets) == pytest.approx(8 * 0.01 + 6 * 0.02 + 6 * 0.03)
