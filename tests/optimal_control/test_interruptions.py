"""Tests of Ctrl-C during a solution: the solver returns to Python between slices of its iterations."""

from __future__ import annotations

import copy
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from engine.interrupted import interrupted_everywhere
from featherweight.optimal_control import workspace
from optimal_control.problems import HAND, PANDA_START, hyq, pendulum

Run = Callable[..., int]

pytestmark = pytest.mark.usefixtures("ctrl_c")


def reach() -> fw.OptimalControl:
    ocp = fw.OptimalControl(fw.load(fw.example("panda")), dt=0.02, knots=20)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.require(fw.FrameTask(HAND, kind="position", name="hand"), at="end")
    ocp.limit(positions=True, velocities=True, efforts=True)
    return ocp


TARGETS = {"hand": [0.35, -0.45, 0.35]}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the threads of all calls of the solver."""
    found: list[Any] = []
    load = workspace.SOLVE.for_tables

    def watched(*tables: Any) -> Run:
        run = load(*tables)

        def call(*words: int) -> int:
            found.append(threading.get_ident())
            return run(*words)

        return call

    monkeypatch.setattr(workspace.SOLVE, "for_tables", watched)
    return found


def test_slices_of_one_iteration_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, calls: list[Any]) -> None:
    """Check multipliers and penalties too, and those of a controller's first tick."""
    jump, start, arguments = hyq(0.3)
    for ocp, q, given in ((reach(), PANDA_START, {"targets": TARGETS}), (jump, start, arguments)):
        plans, ticks = [], []
        for longest in (1e3, 0.0):
            monkeypatch.setattr("featherweight.engine.threads.LONGEST", longest)
            other = ocp._copied()
            other._windows = {}
            calls.clear()
            plans.append(other.solve(q, **given))
            assert plans[-1].converged and (len(calls) == plans[-1].iterations + 1 if longest == 0.0 else len(calls) < 8)
        for x, y in zip(*plans, strict=True):
            np.testing.assert_array_equal(x, y)
    for longest in (1e3, 0.0):
        monkeypatch.setattr("featherweight.engine.threads.LONGEST", longest)
        ticks.append(fw.Controller(reach(), frequency=50, targets=TARGETS)(0.0, PANDA_START, np.zeros(8)))
    np.testing.assert_array_equal(*ticks)


@pytest.mark.parametrize(("problems", "threads"), [(1, 1), (8, 1), (8, 2)])
def test_ctrl_c_stops_all_threads_after_their_slices(
    problems: int, threads: int, monkeypatch: pytest.MonkeyPatch, calls: list[Any]
) -> None:
    monkeypatch.setattr("featherweight.engine.threads.LONGEST", 0.0)
    ocp = reach()
    ocp.threads = threads
    q = np.tile(PANDA_START, (problems, 1))
    expected = ocp.solve(q, targets=TARGETS)
    needed = len(calls)
    calls.clear()
    solve, pressed = workspace.Workspace.solve, threading.Event()

    def pressing(self: Any, *given: Any) -> None:
        run = self.run

        def call(*words: int) -> int:
            status = int(run(*words))
            if len(calls) >= 4 * threads and not pressed.is_set():
                pressed.set()
                calls.clear()
                signal.raise_signal(signal.SIGINT)
            return status

        self.run = call
        try:
            solve(self, *given)
        finally:
            self.run = run

    with monkeypatch.context() as patch:
        patch.setattr(workspace.Workspace, "solve", pressing)
        with pytest.raises(KeyboardInterrupt):
            ocp.solve(q, targets=TARGETS)
    assert len(calls) < needed / 2  # the slices of threads that had not yet received the signal
    calls.clear()
    again = ocp.solve(q, targets=TARGETS)
    assert len(calls) == needed  # no thread continues with the first problems
    np.testing.assert_array_equal(again.q, expected.q)


def test_a_controller_begins_anew_after_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    mpc = fw.Controller(reach(), frequency=50, targets=TARGETS)
    expected = mpc(0.0, PANDA_START, np.zeros(8))
    run = mpc._work.run

    def call(*words: int) -> int:
        signal.raise_signal(signal.SIGINT)
        return int(run(*words))

    with monkeypatch.context() as patch:
        patch.setattr(mpc._work, "run", call)
        with pytest.raises(KeyboardInterrupt):
            mpc(0.02, PANDA_START, np.zeros(8))
    np.testing.assert_array_equal(mpc(0.04, PANDA_START, np.zeros(8)), expected)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Ctrl-C while a generator is freed
@pytest.mark.parametrize("samples", [0, 32])
def test_a_controller_goes_on_or_begins_anew_wherever_ctrl_c_strikes(samples: int) -> None:
    """Check that the next tick is that of the plan before the interruption, of the plan after it, or of no plan."""
    ocp = fw.OptimalControl(pendulum(), dt=0.04, knots=8, threads=1)
    ocp.add(fw.FrameTask("tip", kind="position"), weight=50.0)
    ocp.add(fw.Effort(), weight=1e-3)
    given: dict[str, Any] = {"targets": {"tip": [0.7, 0.0, -0.4]}}
    kind: Any = fw.SamplingController if samples else fw.Controller
    options: dict[str, Any] = {"samples": samples, "noise": 0.0} if samples else {"frequency": 25}
    first, q, v = kind(ocp, **options, **given), np.array([0.1, -0.2]), np.zeros(2)
    first(0.0, q, v)

    def next_tick(controller: Any, time: float) -> Any:
        return copy.copy(controller)(time, q, v)

    fresh, before = next_tick(kind(ocp, **options, **given), 0.08), next_tick(first, 0.08)
    complete = copy.copy(first)
    complete(0.04, q, v)
    after = next_tick(complete, 0.08)
    controllers, ticks = [copy.copy(first)], []
    for _ in interrupted_everywhere(lambda: controllers[-1](0.04, q, v), 7):
        ticks.append(next_tick(controllers[-1], 0.08))
        controllers.append(copy.copy(first))
    assert all(any(np.array_equal(x, y) for y in (fresh, before, after)) for x in ticks)
    assert np.array_equal(ticks[-1], after)
