"""Tests of observers, which follow `run`: all recorded states, and the motion at its end."""

from __future__ import annotations

import copy
import logging
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import providers
from featherweight.engine import progress
from oracles.states import Array
from simulation.scenes import free_bodies, pendulum, pose, solid_ball


class Notes:
    """An observer that stores its inputs, and closes after some states."""

    def __init__(self, most: int = 1000) -> None:
        self.states: list[tuple[Array, Array, Array]] = []
        self.motions: list[tuple[fw.Trajectory, bool]] = []
        self.most = most

    @property
    def closed(self) -> bool:
        return len(self.states) >= self.most

    def live(self, q: Array, points: Array, forces: Array) -> None:
        self.states.append((q.copy(), points, forces))

    def play(self, trajectory: fw.Trajectory, *, start: bool) -> None:
        self.motions.append((trajectory, start))


def test_an_observer_has_the_recorded_states_and_the_motion() -> None:
    robot = free_bodies(solid_ball(1.0, 0.1))
    sim = fw.Simulation(robot, 1e-3, q=pose((0, 0, 0.1)), spheres=[fw.ContactSphere("body0", 0.1)], ground=True)
    notes = Notes()
    sim.watch(notes)
    motion = sim.run(0.02, every=5)
    np.testing.assert_array_equal([q for q, _, _ in notes.states], motion.q[1:])
    _, points, forces = notes.states[-1]
    np.testing.assert_array_equal(points, sim.contacts()[0])
    np.testing.assert_allclose(forces, [[0.0, 0.0, 9.81]], atol=1e-6)
    ((played, start),) = notes.motions
    assert played is motion and start is False


def test_an_observer_of_many_robots_has_the_first() -> None:
    sim = fw.Simulation(pendulum(), 1e-3, q=[[0.3], [0.7]])
    notes = Notes()
    sim.watch(notes)
    sim.run(0.01, every=10)
    np.testing.assert_array_equal(notes.states[-1][0], sim.q[0])
    assert notes.motions == []


def test_an_observer_that_closes_hears_no_more() -> None:
    sim = fw.Simulation(pendulum(), 1e-3, q=[0.3])
    notes, others = Notes(most=3), Notes()
    sim.watch(notes)
    sim.watch(others)
    sim.run(0.01)
    assert len(notes.states) == 3 and notes.motions == []
    assert len(others.states) == 10 and len(others.motions) == 1


def test_a_run_goes_on_when_another_thread_closes_its_window() -> None:
    """Check an observer that is closed while it draws, and one that fails."""

    class Window(Notes):
        def live(self, q: Array, points: Array, forces: Array) -> None:
            super().live(q, points, forces)
            raise RuntimeError("the window is closed")

    sim = fw.Simulation(pendulum(), 1e-3, q=[0.3])
    sim.watch(Window(1))
    sim.run(0.002)
    assert sim.steps == 2
    sim.watch(Window(2))
    with pytest.raises(RuntimeError, match="the window is closed"):
        sim.run(0.002)


def test_copies_have_no_observers() -> None:
    sim = fw.Simulation(pendulum(), 1e-3, q=[0.3])
    notes = Notes()
    sim.watch(notes)
    copy.copy(sim).run(0.01)
    assert notes.states == [] and notes.motions == []


def test_view_and_render_call_what_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    sim, seen = fw.Simulation(pendulum(), 1e-3, q=[0.3]), []

    def view(simulation: fw.Simulation, *where: Any) -> Notes:
        seen.append((simulation, *where))
        return Notes()

    monkeypatch.setattr("featherweight.viewer.view", view, raising=False)
    assert isinstance(sim.view(port=7), Notes)
    assert seen == [(sim, "127.0.0.1", 7)]
    with pytest.raises(LookupError, match=r"no function is registered for Simulation\.hear"):
        providers.provided("Simulation.hear")


def test_long_runs_and_rollouts_report_their_progress(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "FIRST", 0.0)
    robot = pendulum()
    sim = fw.Simulation(robot, 1e-3, q=np.full((20, 1), 0.3), threads=2)
    caplog.set_level(logging.INFO, "featherweight")
    sim.run(0.01, lambda time, q, v: np.zeros((20, 1)))
    sim.rollout(sim.q, steps=30)
    said = [r.getMessage().split(":")[1].strip() for r in caplog.records if "%" in r.getMessage()]
    assert said == [f"simulation of {robot.name!r}, 0.01 s", f"simulation of 20 robots {robot.name!r}, 30 steps"]
