"""Phases that repeat: windows of their cycle, and controllers that move along it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robots.example_files import example
from optimal_control.problems import FEET, standing

Array = np.ndarray[Any, np.dtype[Any]]
LEFT, RIGHT = [FEET[0], FEET[3]], [FEET[1], FEET[2]]  # diagonal pairs
LONG, SHORT = 4, 2


def phases() -> list[fw.Phase]:
    """A pair, flight, the other pair, and flight."""
    first, second = ([fw.BilateralContact(foot, "point") for foot in pair] for pair in (LEFT, RIGHT))
    return [fw.Phase(LONG, first), fw.Phase(SHORT), fw.Phase(LONG, second), fw.Phase(SHORT)]


def completed(ocp: fw.OptimalControl) -> fw.OptimalControl:
    """The same terms for any phases."""
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
    ocp = fw.OptimalControl(robot, step=0.02, knots=15, phases=phases())
    assert ocp.repeats and ocp.period == 2 * (LONG + SHORT) and ocp.knots == 15
    for begin in range(2 * ocp.period):
        shown = [[str(c.frame) for c in span.contacts] for span in ocp._spans(begin) for _ in range(span.knots)]
        cycle = [LEFT] * LONG + [[]] * SHORT + [RIGHT] * LONG + [[]] * SHORT
        assert shown == [cycle[(begin + k) % ocp.period] for k in range(15)]
        assert all(a.contacts != b.contacts for a, b in zip(ocp._spans(begin), ocp._spans(begin)[1:], strict=False))
    np.testing.assert_array_equal(ocp.steps, 0.02)
    whole = fw.OptimalControl(robot, step=0.02, knots=30, phases=[fw.Phase(7)])
    assert [span.knots for span in whole._spans(3)] == [30]


def test_a_solution_is_that_of_the_same_phases_one_after_the_other() -> None:
    robot, start = hyq()
    p = phases()
    repeated = completed(fw.OptimalControl(robot, step=0.02, knots=15, phases=p))
    listed = completed(fw.OptimalControl(robot, step=0.02, phases=[*p, fw.Phase(3, p[0].contacts)]))
    one, other = (ocp.solve(start) for ocp in (repeated, listed))
    assert one.converged and one.violation < 1e-4
    np.testing.assert_array_equal(one.q, other.q)
    assert len(repeated.contact_forces(one)) == 5


def test_a_controller_moves_along_the_cycle() -> None:
    """Each tick's plan is that of the window then, with many iterations; functions are compiled once for all windows."""
    robot, start = hyq()
    ocp = completed(fw.OptimalControl(robot, step=0.02, knots=10, phases=phases()))
    mpc = fw.Controller(ocp, rate=50, iterations=60)
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
    """The plan after them costs what that of the same phases costs from there, once it has converged."""
    robot, start = hyq()
    ocp = completed(fw.OptimalControl(robot, step=0.02, knots=10, phases=phases()))
    posture = {"posture": start}
    mpc = fw.Controller(ocp, rate=10, iterations=80, targets=posture)
    mpc(0.0, start, np.zeros(robot.nv))
    q, v = mpc._work.horizon.q[5].copy(), mpc._work.horizon.v[5].copy()
    mpc(0.1, q, v)
    assert mpc.knot == 5
    parts = [fw.Phase(span.knots, span.contacts) for span in ocp._spans(5)]
    alone = completed(fw.OptimalControl(robot, step=0.02, phases=parts)).solve(q, v, targets=posture, iterations=300)
    np.testing.assert_allclose(mpc.cost, alone.cost, rtol=1e-3)


def test_what_repeats_has_one_step_and_no_impacts() -> None:
    robot, _ = hyq()
    contacts = phases()[0].contacts
    for wrong in ([fw.Phase(3, contacts), fw.Phase(3, step=0.01)], [fw.Phase(3), fw.Phase(3, contacts, impact=True)]):
        with pytest.raises(ValueError, match="phases that repeat need one step, and no impacts"):
            fw.OptimalControl(robot, step=0.02, knots=6, phases=wrong)
    with pytest.raises(ValueError, match="phases that repeat"):
        fw.Controller(completed(fw.OptimalControl(robot, phases=phases())), rate=50)
    with pytest.raises(ValueError, match="need at least one knot"):
        fw.OptimalControl(robot, knots=0, phases=phases())
