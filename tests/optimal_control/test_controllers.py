"""Tests of controllers in a loop with simulations."""

from __future__ import annotations

import copy
import threading
from typing import Any, cast

import numpy as np
import pytest

import featherweight as fw
from engine.used import REFUSED, used_by_another_thread
from featherweight.array_types import Array
from featherweight.optimal_control.solver import CONVERGED
from featherweight.optimal_control.workspace import Settings, Workspace
from optimal_control.problems import HAND, PANDA_START, hyq, layout_of, pendulum

TARGET = [0.35, -0.45, 0.35]


def reach() -> fw.OptimalControl:
    ocp = fw.OptimalControl(fw.load(fw.example("panda")), dt=0.02, knots=15)
    ocp.add(fw.FrameTask(HAND, kind="position"), weight=1e3)
    ocp.add(fw.JointVelocities(), weight=1.0)
    ocp.add(fw.Effort(), weight=1e-4)
    ocp.limit(efforts=True)
    return ocp


def test_a_controller_takes_the_hand_to_a_target_that_changes() -> None:
    ocp = reach()
    robot = ocp.robot
    hand = robot.frame_placement(HAND)
    mpc = fw.Controller(ocp, frequency=50, targets={HAND: TARGET})
    sim = fw.Simulation(robot, dt=2e-3, q=PANDA_START)
    first = sim.run(1.5, mpc)
    assert np.linalg.norm(hand(first.q[-1])[:3, 3] - TARGET) < 0.01
    other = [0.45, 0.2, 0.5]
    mpc.targets = {HAND: other}
    second = sim.run(1.5, mpc)
    assert np.linalg.norm(hand(second.q[-1])[:3, 3] - other) < 0.01
    assert mpc.violation < 0.1


@pytest.mark.parametrize("execution", ["rolled", "interpreted"])
def test_robots_without_straight_code_have_the_same_controls(execution: str) -> None:
    found = []
    for own in ("traced", execution):
        robot = fw.load(fw.example("so100"), execution=own)
        ocp = fw.OptimalControl(robot, dt=0.02, knots=10)
        ocp.add(fw.PostureTask(), weight=10.0)
        ocp.add(fw.Effort(), weight=1e-3)
        q, v = robot.neutral(), np.zeros(robot.nv)
        mpc = fw.Controller(ocp, frequency=50, targets={"posture": q + 0.1})
        plan = ocp.solve(q, targets=mpc.targets)
        found.append([plan.u[0], *(mpc(t, q, v) for t in (0.0, 0.005, 0.02))])
    straight, other = found
    np.testing.assert_allclose(other, straight, rtol=0.0, atol=1e-9)


def test_the_feedback_after_a_tick_that_converges_is_the_change_of_the_best_control() -> None:
    robot = fw.load(fw.example("so100"))
    ocp = fw.OptimalControl(robot, dt=0.02, knots=10)
    ocp.add(fw.PostureTask(), weight=10.0)
    ocp.add(fw.Effort(), weight=1e-3)
    q, v, step = robot.neutral(), np.zeros(robot.nv), 1e-4
    mpc = fw.Controller(ocp, frequency=50, targets={"posture": q + 0.1})
    mpc(0.0, q, v)
    for change in step * np.eye(robot.nv):
        feedback = mpc(0.0, q + change, v) - mpc(0.0, q, v)
        first, other = (ocp.solve(x, targets=mpc.targets, tolerance=1e-12).u[0] for x in (q, q + change))
        np.testing.assert_allclose(feedback / step, (other - first) / step, rtol=0.05, atol=0.02)  # Gauss-Newton curvature


def test_states_of_a_controller_are_lists_or_arrays_of_the_right_shape() -> None:
    ocp = reach()
    mpc = fw.Controller(ocp, frequency=50, targets={HAND: TARGET})
    forces = mpc(0.0, [*PANDA_START], [0.0] * 8)
    mpc.reset()
    np.testing.assert_array_equal(forces, mpc(0.0, PANDA_START, np.zeros(8)))
    with pytest.raises(ValueError, match=r"Controller: v must have shape \(8,\); got \(7,\)"):
        mpc(0.0, PANDA_START, np.zeros(7))
    with pytest.raises(ValueError, match="Controller: iterations must be at least 1, a whole number"):
        fw.Controller(ocp, frequency=50, iterations=cast(Any, 1.5), targets={HAND: TARGET})


def test_a_second_thread_needs_a_controller_of_its_own() -> None:
    problem, q, v = lift()[0], np.zeros(2), np.zeros(2)
    sampling = fw.SamplingController(problem, targets={"tip": [0.7, 0.0, -0.4]}, samples=32)
    for control in (fw.Controller(problem, frequency=25, targets={"tip": [0.7, 0.0, -0.4]}), sampling):
        control(0.0, q, v)
        other = copy.copy(control)
        calls: list[Any] = [lambda x: x(0.04, q, v), lambda x: x.update(0.04, q, v), copy.copy, lambda x: x.reset()]
        with used_by_another_thread(control):
            for call in calls:
                with pytest.raises(RuntimeError, match=f"controller of 'double pendulum' {REFUSED}"):
                    call(control)
            for call in calls:
                call(other)
        for call in calls:
            call(control)


@pytest.mark.usefixtures("hasty")
def test_threads_share_a_problem() -> None:
    ocp, targets = lift()[0], {"tip": [0.7, 0.0, -0.4]}
    starts = np.linspace(-0.5, 0.5, 8)[:, None] * np.ones(2)
    alone = [lift()[0].solve(q, targets=targets, iterations=5) for q in starts]
    plans: dict[int, fw.Plan] = {}
    threads = [
        threading.Thread(target=lambda k=k: plans.update({k: ocp.solve(starts[k], targets=targets, iterations=5)}))
        for k in range(len(starts))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, plan in enumerate(alone):
        assert np.array_equal(plans[k].q, plan.q) and np.array_equal(plans[k].u, plan.u)


def test_a_controller_begins_anew_after_reset() -> None:
    mpc = fw.Controller(reach(), frequency=50, targets={HAND: TARGET})
    v = np.zeros(8)
    ends = []
    for _ in range(2):
        ends.append([mpc(0.02 * k, PANDA_START, v) for k in range(4)])
        mpc.reset()
    np.testing.assert_array_equal(ends[0], ends[1])


def test_between_ticks_controls_follow_the_plan_with_its_feedback() -> None:
    ocp = reach()
    mpc = fw.Controller(ocp, frequency=10, targets={HAND: TARGET})
    v = np.zeros(8)
    at_plan = mpc(0.0, PANDA_START, v)
    moved = PANDA_START + np.append(0.01, np.zeros(7))
    plan = ocp.solve(PANDA_START, targets={HAND: TARGET}, iterations=50, tolerance=0.0, constraint_tolerance=0.0)
    part = 0.001 / ocp.dt[0]  # the reference moves between knots
    away = np.concatenate([moved - PANDA_START - part * (plan.q[1] - PANDA_START), v - part * plan.v[1]])
    np.testing.assert_allclose(mpc(0.001, moved, v) - at_plan, plan.gains[0] @ away, rtol=1e-3, atol=1e-2)


def test_limits_hold_in_a_fast_motion_with_one_iteration_per_tick() -> None:
    """Check also a large cost of the target; without multipliers, velocities exceeded their limits many times."""
    robot = fw.load(fw.example("panda"))
    ocp = fw.OptimalControl(robot, dt=0.01, knots=30)
    ocp.add(fw.FrameTask(HAND, kind="position"), weight=1000.0)
    ocp.add(fw.JointVelocities(), weight=np.append(np.full(30, 0.01), 1.0))
    ocp.add(fw.PostureTask(), weight=0.01)
    ocp.add(fw.Effort(), weight=1e-4)
    ocp.limit(efforts=True, velocities=True)
    for offset in np.random.default_rng(0).uniform(-0.05, 0.05, (7, 3)):
        mpc = fw.Controller(ocp, frequency=100, targets={HAND: TARGET + offset, "posture": PANDA_START})
        motion = fw.Simulation(robot, dt=2e-3, q=PANDA_START).run(1.0, mpc)
        away = np.linalg.norm(robot.frame_placement(HAND)(motion.q)[:, :3, 3] - TARGET - offset, axis=1)
        assert away[motion.times > 0.5].max() < 5e-3 and away[-1] < 1e-3
        most = np.abs(motion.tau) / robot.effort_bounds[1]
        assert 1.0 - 1e-9 < most.max() < 1.0 + 1e-9


def test_ticks_recover_after_steps_that_the_line_search_rejects() -> None:
    """Check long steps of light wrists, which diverge near limits: ticks then damp, and hold multipliers, which grew
    until Panda tumbled.
    """
    robot = fw.load(fw.example("panda"))
    tip, knots, step = robot.bodies[-1].name, 30, 0.02
    ocp = fw.OptimalControl(robot, dt=step, knots=knots)
    ocp.add(fw.FrameTask(tip, kind="position", name="tip"), weight=100.0)
    ocp.add(fw.PostureTask(), weight=0.01)
    ocp.add(fw.JointVelocities(), weight=np.append(np.full(knots, 0.1), 1.0))
    ocp.add(fw.Effort(), weight=1e-4)
    ocp.limit(positions=True, velocities=True, efforts=True)
    rng, away = np.random.default_rng(1), []
    for _ in range(4):
        q, goal = robot.random_configuration(rng=rng), robot.random_configuration(rng=rng)
        target = robot.frame_placement(tip)(goal)[:3, 3]
        mpc = fw.Controller(ocp, frequency=1 / step, iterations=3, targets={"tip": target, "posture": goal})
        sim = fw.Simulation(robot, dt=step / 4, q=q)
        sim.run(3.0, mpc)
        away.append(np.linalg.norm(robot.frame_placement(tip)(sim.q)[:3, 3] - target))
    assert max(away) < 0.03, away


# --- free steps


def quick() -> fw.OptimalControl:
    """Return a reach in the least time, of 0.04 s or more."""
    ocp = fw.OptimalControl(fw.load(fw.example("panda")), dt=(0.002, 0.04), knots=20)
    ocp.add(fw.Duration())
    ocp.add(fw.JointVelocities(), weight=0.01)
    ocp.add(fw.Effort(), weight=1e-5)
    ocp.require(fw.FrameTask(HAND, kind="position"), at="end", weight=100.0)
    ocp.require(fw.JointVelocities(name="rest"), at="end")
    ocp.limit(positions=True, velocities=True, efforts=True)
    return ocp


@pytest.mark.parametrize("push", [0.0, 60.0])
def test_a_target_is_reached_in_the_least_time_and_kept(push: float) -> None:
    """Check the target to 3 mm, 30 ms later than the open-loop optimum; also after a push for 50 ms, and at a second target."""
    ocp, hand = quick(), fw.load(fw.example("panda")).frame_placement(HAND)
    mpc = fw.Controller(ocp, frequency=100)
    sim = fw.Simulation(ocp.robot, dt=2e-3, q=PANDA_START)
    for target in (TARGET, [0.45, 0.15, 0.45]):
        begin, mpc.targets = sim.time, {HAND: target}
        mpc.reset()
        best = ocp.solve(sim.q, sim.v, targets=mpc.targets, iterations=500)
        left: list[tuple[float, float]] = []

        def control(time: float, q: Array, v: Array, begin: float = begin, left: Any = left) -> Array:
            tau: Array = mpc(time, q, v)
            left.append((time - begin, mpc.duration))
            pushed = push if begin == 0.0 and 0.1 < time < 0.15 else 0.0
            tau[1] += pushed
            return tau

        motion = sim.run(1.0, control)
        times, away = motion.times - begin, np.linalg.norm(hand(motion.q)[:, :3, 3] - target, axis=1)
        duration, late = best.dt.sum(), times > 0.5
        assert best.converged and 0.25 < duration < 0.36
        assert away[times > duration + 0.03].max() < 3e-3 and away[times < 0.8 * duration].min() > 0.02
        assert away[late].max() < 3e-4 and abs(motion.v[late]).max() < 0.02
        assert abs(np.diff(motion.tau[late], axis=0)).max() < 0.1  # [N m] in 2 ms, without chatter
        assert (abs(motion.tau) < 1.05 * ocp.robot.effort_bounds[1]).all() or push
        if not push:
            ends = [t + rest for t, rest in left if rest > 0.041]
            assert max(ends) - min(ends) < 0.01 and duration - 0.01 < min(ends) < 1.15 * duration
        assert left[-1][1] == pytest.approx(0.04)


def test_the_rest_of_a_plan_is_the_next_plan() -> None:
    """Check plans after times that are not multiples of their steps, against new solutions; after the end the robot stays
    there.
    """
    ocp = fw.OptimalControl(pendulum(), dt=(0.01, 0.1), knots=20, integrator="rk4")
    ocp.add(fw.Effort(), weight=1e-2)
    ocp.add(fw.Duration())
    ocp.require(fw.PostureTask(), at="end", weight=100.0)
    ocp.require(fw.JointVelocities(), at="end", weight=100.0)
    work, goal, settings = Workspace(layout_of(ocp)), np.array([1.5, 0.3]), Settings(100, 1e-9, 1e-4)
    work.begin(np.zeros(2), np.zeros(2), layout_of(ocp).parameters(np.zeros(2), {"posture": goal}, None), None)
    assert work.run_on(settings) == CONVERGED
    z = work.horizon
    for passed in (2.5, 5.25):
        k, part = int(passed), passed % 1.0
        q, v = ((1.0 - part) * x[k] + part * x[k + 1] for x in (z.q, z.v))
        left = (20.0 - passed) * work.free_step
        work.move_in_time(passed * work.free_step, q, v)
        assert 20.0 * work.free_step == pytest.approx(left, rel=1e-12)
        moved = z.q.copy()
        assert work.run_on(settings) == CONVERGED
        assert 20.0 * work.free_step == pytest.approx(left, rel=0.02)
        np.testing.assert_allclose(z.q, moved, rtol=0, atol=0.02)  # motions between knots are curved
    work.move_in_time(2.0, goal, np.zeros(2))
    assert work.free_step == pytest.approx(0.01)
    np.testing.assert_allclose(z.q, np.tile(goal, (21, 1)), rtol=0, atol=1e-3)
    np.testing.assert_allclose(z.u[:, 1:], np.tile(ocp.robot.gravity_force(z.q[-1]), (20, 1)), rtol=0, atol=1e-9)


def test_problems_of_several_phases_are_refused() -> None:
    with pytest.raises(ValueError, match="the 2 phases of the problem do not repeat; give it phases= and knots="):
        fw.Controller(hyq(1.0)[0], frequency=100)
    with pytest.raises(ValueError, match="frequency must be a positive number"):
        fw.Controller(reach(), frequency=0.0)


# --- sampling


def lift() -> tuple[fw.OptimalControl, fw.Simulation]:
    robot = pendulum()
    ocp = fw.OptimalControl(robot, dt=0.04, knots=20)
    ocp.add(fw.FrameTask("tip", kind="position"), weight=50.0)
    ocp.add(fw.JointVelocities(), weight=0.05)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.limit(efforts=True)
    return ocp, fw.Simulation(robot, dt=0.01, q=np.zeros(2), on_failure="stop")


@pytest.mark.parametrize("simulated", [True, False])
@pytest.mark.parametrize("temperature", [0.0, 0.05])
def test_sampling_lifts_a_pendulum(temperature: float, simulated: bool) -> None:
    ocp, inner = lift()
    target = [0.7, 0.0, -0.4]
    control = fw.SamplingController(
        ocp, inner if simulated else None, samples=256, noise=0.7, temperature=temperature, targets={"tip": target}, rng=1
    )
    sim = fw.Simulation(ocp.robot, dt=0.005, q=np.zeros(2))
    motion = sim.run(3.0, control)
    away = np.linalg.norm(ocp.robot.frame_placement("tip")(motion.q)[:, :3, 3] - target, axis=1)
    assert away[0] > 0.8 and away[-100:].mean() < 0.1


@pytest.mark.parametrize("simulated", [True, False])
def test_sampling_gives_the_same_for_the_same_seed(simulated: bool) -> None:
    """Check any number of threads."""
    ends = []
    for seed, threads in ((1, 1), (1, 2), (2, 1)):
        ocp, inner = lift()
        ocp.threads = threads
        control = fw.SamplingController(
            ocp, inner if simulated else None, samples=160, noise=2.0, targets={"tip": [0.7, 0.0, -0.4]}, rng=seed
        )
        ends.append(np.array([control(0.04 * k, np.zeros(2), np.zeros(2)) for k in range(3)]))
    np.testing.assert_array_equal(ends[0], ends[1])
    assert (ends[0] != ends[2]).any()


def test_costs_of_samples_are_those_of_plans() -> None:
    """Check costs of motions without contact, with steps of the simulation as long as those of the problem."""
    ocp, _ = lift()
    inner = fw.Simulation(ocp.robot, dt=0.04, q=np.zeros(2), on_failure="stop")
    targets = {"tip": [0.7, 0.0, -0.4]}
    plan = ocp.solve(np.zeros(2), targets=targets, constraint_tolerance=1e-9)
    for simulation in (inner, None):
        control = fw.SamplingController(ocp, simulation, targets=targets)
        np.testing.assert_allclose(control.costs(np.zeros(2), np.zeros(2), plan.u[None]), plan.cost, rtol=1e-6)


def test_costs_of_samples_are_those_of_motions() -> None:
    """Check contacts, Huber's function and violated constraints, with more motions than run at once."""
    rng = np.random.default_rng(0)
    phases = [fw.Phase(3, [fw.BilateralContact("tip", "point", rows=[[0.0] * 5 + [1.0]])]), fw.Phase(4)]
    ocp = fw.OptimalControl(pendulum(), dt=0.01, phases=phases)
    ocp.add(fw.FrameTask("tip", kind="position"), weight=50.0, width=0.1)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.limit(efforts=True)
    ocp.require(fw.JointVelocities(), low=-0.1, high=0.1)
    q, v, u = np.array([0.3, -0.6]), rng.standard_normal(2), 20.0 * rng.standard_normal((150, 7, 2))
    targets = {"tip": [0.7, 0.0, -0.4]}
    found = fw.SamplingController(ocp, penalty=30.0, targets=targets).costs(q, v, u)
    layout = ocp._window().layout
    qs, vs = [np.tile(q, (150, 1))], [np.tile(v, (150, 1))]
    flat = np.broadcast_to(layout.parameters(q, targets, None), (8, layout.size))
    for k in range(7):
        step = layout.stages[k >= 3].step
        known = {"q": qs[k], "v": vs[k], "u": u[:, k], "h": 0.01, "parameters": flat[k]}
        q_next, v_next, _ = step(*(known[x.name] for x in step.program.inputs))
        qs.append(q_next)
        vs.append(v_next)
    moved = ocp.cost_of_motions(np.stack(qs, 1), np.stack(vs, 1), u, targets, penalty=30.0, start=q)
    np.testing.assert_allclose(found, moved, rtol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"samples": 2.5}, "samples must be at least 2, a whole number; got 2.5"),
        ({"noise": -1.0}, "noise must be a number or 2 of them, none negative"),
        ({"noise": [1.0, 2.0, 3.0]}, "noise must be a number or 2 of them"),
        ({"temperature": np.nan}, "temperature must not be negative; got nan"),
        ({"penalty": -1.0}, "penalty must be a finite number, zero or more; got -1.0"),
    ],
)
def test_settings_of_sampling_that_make_no_sense_are_refused(wrong: dict[str, Any], words: str) -> None:
    ocp = fw.OptimalControl(pendulum(), knots=10)
    ocp.add(fw.Effort())
    with pytest.raises(ValueError, match=words):
        fw.SamplingController(ocp, **wrong)


@pytest.mark.parametrize("kind", [fw.Controller, fw.SamplingController])
def test_controllers_refuse_numbers_that_are_not_finite_and_go_on(kind: Any) -> None:
    ocp = fw.OptimalControl(pendulum(), dt=0.01, knots=5)
    ocp.add(fw.Effort())
    ocp.add(fw.PostureTask(name="there"))
    options = {"frequency": 100} if kind is fw.Controller else {"samples": 8, "rng": 0}
    one, other = (kind(ocp, **options) for _ in range(2))
    still = np.zeros(2)
    for wrong, words in (
        ((0.0, [np.nan, 0.0], still), "q has numbers that are not finite"),
        ((0.0, still, [0.0, np.inf]), "v has numbers that are not finite"),
        ((np.nan, still, still), "time must be a finite number of seconds; got nan"),
        ((np.inf, still, still), "time must be a finite number of seconds; got inf"),
    ):
        with pytest.raises(ValueError, match=f"{kind.__name__}: {words}"):
            one(*wrong)
    for time in (0.0, 0.005, 0.012):
        np.testing.assert_array_equal(one(time, still, still), other(time, still, still))
    with pytest.raises(ValueError, match=f"{kind.__name__}: q must have shape"):
        one(0.012, np.zeros(3), still)  # within a tick, too
    with pytest.raises(ValueError, match="targets and parameters must be those of one problem"):
        kind(ocp, **options, targets={"there": np.zeros((3, 1, 2))})(0.0, still, still)
    with pytest.raises(TypeError, match=f"{kind.__name__}: ocp must be an OptimalControl; got Robot"):
        kind(cast(Any, ocp.robot), **options)


def test_sampling_goes_on_after_a_state_that_it_refuses() -> None:
    ocp = fw.OptimalControl(pendulum(), knots=10)
    ocp.add(fw.Effort())
    ocp.add(fw.JointVelocities())
    mppi, other = (fw.SamplingController(ocp, samples=8) for _ in range(2))
    with pytest.raises(ValueError, match=r"SamplingController: q must have shape \(2,\); got \(3,\)"):
        mppi(0.0, np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match="the motions of all samples fail"):
        other(0.0, np.zeros(2), [1e300, 0.0])
    for controller in (mppi, other):
        assert np.isfinite(controller(0.01, [0.1, 0.2], [0.0, 0.0])).all()


def test_samples_stay_within_limits_and_the_first_is_the_plan() -> None:
    ocp, _ = lift()
    control = fw.SamplingController(ocp, samples=9, noise=[1.0, 1e3], targets={"tip": [0.7, 0.0, -0.4]})
    control.update(0.0, np.zeros(2), np.zeros(2))
    u = control._draws.u
    np.testing.assert_array_equal(u[:, 0], control._draws.plan)
    low, high = ocp.robot.effort_bounds
    assert (u >= low).all() and (u <= high).all() and (u[..., 1] == high[1]).any()


def test_simulations_that_do_not_fit_are_refused() -> None:
    ocp, inner = lift()
    robot = ocp.robot
    with pytest.raises(ValueError, match="must be a multiple of the simulation's"):
        fw.SamplingController(ocp, fw.Simulation(robot, dt=0.03, q=np.zeros(2), on_failure="stop"))
    with pytest.raises(ValueError, match='on_failure="stop"'):
        fw.SamplingController(ocp, fw.Simulation(robot, dt=0.01, q=np.zeros(2)))
    with pytest.raises(ValueError, match="samples must be at least 2"):
        fw.SamplingController(ocp, inner, samples=1)
    with pytest.raises(ValueError, match="contacts come from the simulation"):
        fw.SamplingController(hyq(1.0)[0], inner)
    cycle = fw.OptimalControl(robot, dt=0.04, knots=3, phases=[fw.Phase(2)])
    with pytest.raises(ValueError, match="phases of one time step, without impacts, that do not repeat"):
        fw.SamplingController(cycle)
