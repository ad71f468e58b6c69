"""Tests of repeating phases: windows of their cycle, and controllers that move along the cycle."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from featherweight.robots.example_files import example
from optimal_control.problems import FEET, layout_of, leg, spans_of, standing

LEFT, RIGHT = [FEET[0], FEET[3]], [FEET[1], FEET[2]]  # diagonal pairs
LONG, SHORT = 4, 2


def phases() -> list[fw.Phase]:
    """Return a pair, flight, the other pair, and flight."""
    first, second = ([fw.BilateralContact(foot, "point") for foot in pair] for pair in (LEFT, RIGHT))
    return [fw.Phase(LONG, first), fw.Phase(SHORT), fw.Phase(LONG, second), fw.Phase(SHORT)]


def completed(ocp: fw.OptimalControl) -> fw.OptimalControl:
    """Return the same terms for any phases."""
    ocp.add(fw.PostureTask(), weight=np.append(np.full(ocp.knots, 10.0), 100.0))
    ocp.add(fw.JointVelocities(), weight=1.0)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.ContactForces(), weight=1e-5)
    ocp.limit(friction=0.7)
    return ocp


def hyq() -> tuple[fw.Robot, Array]:
    robot = fw.load(example("hyq_no_sensors"), base="floating")
    return robot, standing(robot, 0.75)


def test_windows_are_cut_from_the_cycle() -> None:
    robot, _ = hyq()
    ocp = fw.OptimalControl(robot, dt=0.02, knots=15, phases=phases())
    assert ocp.repeats and ocp.period == 2 * (LONG + SHORT) and ocp.knots == 15
    for begin in range(2 * ocp.period):
        shown = [[str(c.frame) for c in span.contacts] for span in spans_of(ocp, begin) for _ in range(span.knots)]
        cycle = [LEFT] * LONG + [[]] * SHORT + [RIGHT] * LONG + [[]] * SHORT
        assert shown == [cycle[(begin + k) % ocp.period] for k in range(15)]
        assert all(a.contacts != b.contacts for a, b in zip(spans_of(ocp, begin), spans_of(ocp, begin)[1:], strict=False))
    np.testing.assert_array_equal(ocp.dt, 0.02)
    whole = fw.OptimalControl(robot, dt=0.02, knots=30, phases=[fw.Phase(7)])
    assert [span.knots for span in spans_of(whole, 3)] == [30]


def test_a_solution_is_that_of_the_same_phases_one_after_the_other() -> None:
    robot, start = hyq()
    p = phases()
    repeated = completed(fw.OptimalControl(robot, dt=0.02, knots=15, phases=p))
    listed = completed(fw.OptimalControl(robot, dt=0.02, phases=[*p, fw.Phase(3, p[0].contacts)]))
    one, other = (ocp.solve(start) for ocp in (repeated, listed))
    assert one.converged and one.violation < 1e-4
    np.testing.assert_array_equal(one.q, other.q)
    assert len(repeated.contact_forces(one)) == 5


def test_a_controller_moves_along_the_cycle() -> None:
    """Check that each tick's plan is that of the current window, after many iterations; functions are compiled once for
    all windows.
    """
    robot, start = hyq()
    ocp = completed(fw.OptimalControl(robot, dt=0.02, knots=10, phases=phases()))
    mpc = fw.Controller(ocp, frequency=50, iterations=60)
    stages = {id(stage) for k in range(ocp.period) for stage in ocp._window(k).layout.stages}
    assert len(stages) == 3 + 1  # two pairs, flight, and the end
    q, v = start, np.zeros(robot.nv)
    for k in range(ocp.period + 2):
        mpc(0.02 * k, q, v)
        assert mpc.knot == k % ocp.period and mpc.violation < 1e-3
        work = mpc._work
        q, v = work.horizon.q[1].copy(), work.horizon.v[1].copy()
    mpc.reset()
    mpc(0.0, start, np.zeros(robot.nv))
    assert mpc.knot == 0


def test_several_knots_may_pass_between_ticks() -> None:
    """Check that the following plan, once converged, has the cost of the plan for the same phases from there."""
    robot, start = hyq()
    ocp = completed(fw.OptimalControl(robot, dt=0.02, knots=10, phases=phases()))
    posture = {"posture": start}
    mpc = fw.Controller(ocp, frequency=10, iterations=80, targets=posture)
    mpc(0.0, start, np.zeros(robot.nv))
    q, v = mpc._work.horizon.q[5].copy(), mpc._work.horizon.v[5].copy()
    mpc(0.1, q, v)
    assert mpc.knot == 5
    parts = [fw.Phase(span.knots, span.contacts) for span in spans_of(ocp, 5)]
    alone = completed(fw.OptimalControl(robot, dt=0.02, phases=parts)).solve(q, v, targets=posture, iterations=300)
    np.testing.assert_allclose(mpc.cost, alone.cost, rtol=1e-3)


@pytest.mark.parametrize("part", [0.5, 0.3, 1.5])
def test_ticks_between_knots_move_along_the_cycle(part: float) -> None:
    """Check that the knot is the nearest one to the time, also if each tick alone would round to none."""
    robot, start = hyq()
    ocp = completed(fw.OptimalControl(robot, dt=0.02, knots=10, phases=phases()))
    mpc = fw.Controller(ocp, frequency=50 / part)
    for k in range(7):
        mpc(0.02 * part * k, start, np.zeros(robot.nv))
        assert mpc.knot == int(part * k + 0.5 + 1e-9) % ocp.period


def test_phases_that_repeat_have_one_step() -> None:
    robot, _ = hyq()
    contacts = phases()[0].contacts
    with pytest.raises(ValueError, match=r"phases that repeat \(knots=\) need the same step; got \[0.01, 0.02\] s"):
        fw.OptimalControl(robot, dt=0.02, knots=6, phases=[fw.Phase(3, contacts), fw.Phase(3, dt=0.01)])
    for once in (phases(), [fw.Phase(3, contacts, impact=True)]):
        with pytest.raises(ValueError, match="phases of the problem do not repeat; give it phases= and knots="):
            fw.Controller(completed(fw.OptimalControl(robot, phases=once)), frequency=50)
    with pytest.raises(ValueError, match="knots must be at least 1"):
        fw.OptimalControl(robot, knots=0, phases=phases())


# impacts: a hopping leg

STEP, HALF, AHEAD = 0.01, 6, 15  # [s]; knots of flight and of stance, and of the horizon


def hopper(parts: list[fw.Phase] | None = None) -> tuple[fw.OptimalControl, Array]:
    """Return a hopping leg, in phases that repeat or in parts, and its first configuration."""
    robot = leg()[0].robot
    start = robot.close(np.array([0.22, 3.7269, -1.5, 1.5, -1.5]))  # type: ignore[attr-defined]
    toe = [fw.BilateralContact("toe", rows=np.eye(6)[:2])]
    cycle = [fw.Phase(HALF), fw.Phase(HALF, toe, impact=True)]
    driven, knots = ["base_to_thigh", "thigh_to_driver"], AHEAD if parts is None else None
    return fw.OptimalControl(robot, dt=STEP, driven=driven, phases=parts or cycle, knots=knots), start


def with_costs(ocp: fw.OptimalControl, numbers: Array) -> fw.OptimalControl:
    """Return the problem with the same costs for any phases, by the numbers of knots; the cost of the toe's height grows."""
    ocp.add(fw.Effort(), weight=0.02)
    ocp.add(fw.JointVelocities(), weight=0.01)
    ocp.add(fw.PostureTask(), weight=3.0)
    ocp.add(fw.FrameTask("toe", kind="position", weight=[1, 0, 0]), weight=1e3 + 50.0 * numbers)
    return ocp


def heights(ocp: fw.OptimalControl, start: Array, numbers: Array) -> dict[str, Array]:
    """Return targets: the toe's height over time, and the posture."""
    ground = ocp.robot.frame_placement("toe")(start)[0, 3] - 0.005
    part = numbers % (2 * HALF) / HALF
    x = ground + np.where(part < 1.0, 0.08 * part * (1.0 - part), 0.0)
    return {"toe": np.stack([x, 0.0 * x, 0.0 * x], axis=1), "posture": start}


def test_impacts_are_knots_of_windows_that_take_no_time() -> None:
    """Check that a window that begins with a phase has its impact, and that a window that ends before the phase does not."""
    ocp, _ = hopper()
    assert (ocp.knots, ocp.period) == (AHEAD, 2 * HALF)
    steps = np.tile([False] * HALF + [True] * HALF, 4)  # in contact
    for begin in range(2 * ocp.period):
        first = begin % ocp.period
        expected = []
        for k in range(first, first + AHEAD):
            expected += [(True, True)] * (k % ocp.period == HALF) + [(bool(steps[k]), False)]
        spans = spans_of(ocp, begin)
        assert [(bool(s.contacts), s.impact) for s in spans for _ in range(s.knots)] == expected
        assert all(s.knots == 1 for s in spans if s.impact)
    np.testing.assert_array_equal(ocp.dt, np.insert(np.full(AHEAD, STEP), HALF, 0.0))


def test_a_hopping_controller_solves_the_same_phases_written_out() -> None:
    """Check that over more than a cycle, the plan is that of explicit phases, whose impacts count as knots, from the same
    state.
    """
    ocp, start = hopper()
    every = np.arange(AHEAD + 1)
    with_costs(ocp, every)
    mpc, single = fw.Controller(ocp, frequency=1 / STEP, iterations=40), fw.Controller(ocp, frequency=1 / STEP)
    q, v, impulses = start, np.zeros(ocp.robot.nv), 0
    for tick in range(3 * HALF + 2):
        mpc.targets = single.targets = heights(ocp, start, tick + every)
        mpc(STEP * tick, q, v)
        single(STEP * tick, q, v)
        assert mpc.knot == tick % ocp.period
        spans, z = spans_of(ocp, tick), mpc._work.horizon
        landing = [False, *(s.impact for s in spans)]
        parts = [fw.Phase(s.knots, s.contacts, impact=x) for s, x in zip(spans, landing, strict=False) if not s.impact]
        numbers = mpc._work.layout.numbers
        listed = with_costs(hopper(parts)[0], numbers)
        listed._stages = ocp._stages  # compiled once
        targets = heights(ocp, start, tick + numbers)
        plan = listed.solve(q, v, targets=targets, iterations=100, tolerance=1e-13)
        assert plan.converged and len(plan.u) == AHEAD + sum(s.impact for s in spans)
        np.testing.assert_allclose(z.q, plan.q, rtol=0, atol=2e-5)  # near a minimum, costs differ by the square of this
        np.testing.assert_allclose(mpc.cost, plan.cost, rtol=1e-7)
        np.testing.assert_allclose(single.cost, plan.cost, rtol=0.03)  # with one iteration per tick
        for span, force in zip(spans, listed.contact_forces(plan), strict=True):
            assert force.shape == (span.knots, 2 if span.contacts else 0)
            if span.impact:
                impulses += 1
                assert abs(force[0, 0]) > 1e-3
        ahead = np.searchsorted(numbers, 1)
        q, v = z.q[ahead].copy(), z.v[ahead].copy()
    assert impulses >= 3 * HALF


def test_feedback_between_ticks_counts_time() -> None:
    """Check that at states of the plan the controls are those of the plan, also just before and after the impact."""
    ocp, start = hopper()
    with_costs(ocp, np.arange(AHEAD + 1))
    mpc = fw.Controller(ocp, frequency=5.0, targets=heights(ocp, start, np.arange(AHEAD + 1)))
    mpc(0.0, start, np.zeros(ocp.robot.nv))
    z, steps = mpc._work.horizon, ocp.dt
    assert abs(z.v[HALF] - z.v[HALF + 1]).max() > 0.05
    for k, time in enumerate(np.cumsum(steps) - steps):
        u = z.u[k + (k == HALF)]  # the state before the impact has the controls of the step after it
        np.testing.assert_allclose(mpc(float(time), z.q[k], z.v[k])[list(ocp.driven)], u, rtol=0, atol=1e-12)


def test_plans_with_impacts_have_gradients_by_targets_and_are_trajectories() -> None:
    """Check that a target at the number of an impact holds at the impact and at the next step, with equal weights."""
    ocp, start = hopper()
    with_costs(ocp, np.arange(AHEAD + 1))
    layout = layout_of(ocp)
    weights = np.split(layout.laws.weight, layout.rows[1:-1])
    assert ocp.dt[HALF] == 0.0 and weights[HALF].any()
    np.testing.assert_array_equal(weights[HALF], weights[HALF + 1])
    given = heights(ocp, start, np.arange(AHEAD + 1))
    function = ocp.plan_function(tolerance=1e-12, iterations=100)
    values = [given[name][None] if given[name].ndim == 2 else given[name][None, None] for name in function.targets]
    found = function(start[None], np.zeros((1, ocp.robot.nv)), *values)
    bars = [np.zeros(x.shape) for x in found[:3]]
    by_toe = function.pullback(found, values, [*bars, np.ones(1)])[2 + function.targets.index("toe")]
    assert by_toe.shape == (1, AHEAD + 1, 3)
    for k in (HALF - 1, HALF, AHEAD):
        costs = []
        for change in (1e-4, -1e-4):
            moved = given["toe"].copy()
            moved[k, 0] += change
            costs.append(ocp.solve(start, targets=given | {"toe": moved}, tolerance=1e-12).cost)
        np.testing.assert_allclose(by_toe[0, k, 0], (costs[0] - costs[1]) / 2e-4, rtol=1e-4, atol=1e-5)
    plan = ocp.solve(start, targets=given)
    motion = ocp.trajectory(plan)
    assert motion.times[-1] == pytest.approx(AHEAD * STEP) and len(motion.times) == AHEAD + 2
    again = ocp.solve(start, targets=given, guess=plan)
    assert again.iterations <= 1
