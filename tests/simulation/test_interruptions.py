"""Tests of Ctrl-C at each point of a call: time and states of a simulation belong together, and it goes on from there."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from engine.interrupted import interrupted_everywhere
from simulation.scenes import boxes, pendulum

SAMPLED = """
<mujoco>
  <worldbody>
    <body> <joint name="a" axis="0 1 0"/> <geom size="0.05" pos="0.2 0 0.1" mass="1"/> <site name="tip"/> </body>
  </worldbody>
  <sensor> <gyro site="tip" nsample="3" delay="0.004"/> <accelerometer site="tip" nsample="2" interval="0.004"/> </sensor>
</mujoco>"""


def alone(**options: Any) -> fw.Simulation:
    sim = boxes([0.11], **options)
    sim.reset(sim.q[0])
    return sim


def with_a_failure(sim: fw.Simulation) -> fw.Simulation:
    v = np.zeros_like(sim.v)
    v[..., -6] = 1e6
    sim.v = v
    return sim


def sampled(robots: int) -> fw.Simulation:
    robot = fw.load(SAMPLED)
    return fw.Simulation(robot, v=np.ones(1) if robots == 1 else np.ones((robots, 1)))


SIMULATIONS: dict[str, Callable[[], fw.Simulation]] = {
    "one robot": alone,
    "one robot that stops": lambda: with_a_failure(alone(on_failure="stop")),
    "one robot that restarts": lambda: with_a_failure(alone(on_failure="reset")),
    "several robots": lambda: boxes([0.11, 0.2]),
    "robots on threads": lambda: boxes(np.linspace(0.11, 0.2, 9), threads=2),
    "robots that stop": lambda: with_a_failure(boxes([0.11, 0.2], on_failure="stop")),
    "robots side by side": lambda: fw.Simulation(pendulum(0.5), 1e-3, q=np.linspace(-1.0, 1.0, 9)[:, None], threads=1),
    "sampled sensors": lambda: sampled(1),
    "sampled sensors of several robots": lambda: sampled(2),
}
CALLS: dict[str, Callable[[fw.Simulation], object]] = {
    "step": lambda sim: sim.step(),
    "steps": lambda sim: sim.step(np.zeros(sim.robot.nv), steps=3),
    "run": lambda sim: sim.run(3 * sim.dt, every=2),
    "controlled run": lambda sim: sim.run(2 * sim.dt, lambda time, q, v: np.zeros_like(v)),
}


CASES = [  # with distances between the points where Ctrl-C strikes
    *(("one robot", call, 1) for call in CALLS),
    ("one robot that stops", "steps", 1),
    ("one robot that restarts", "run", 1),
    ("several robots", "step", 1),
    ("several robots", "controlled run", 5),
    ("robots on threads", "run", 5),
    ("robots that stop", "steps", 1),
    ("robots side by side", "steps", 17),
    ("sampled sensors", "step", 5),
    ("sampled sensors of several robots", "run", 37),
]


def seen(sim: fw.Simulation) -> list[Any]:
    return [sim.time, sim.steps, sim.q, sim.v, *([sim.sensors()] if sim.robot.sensors else [])]


def same(sim: fw.Simulation, other: fw.Simulation) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(seen(sim), seen(other), strict=True))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Ctrl-C while a generator is freed
@pytest.mark.parametrize(("kind", "call", "stride"), CASES)
def test_time_and_state_advance_together(kind: str, call: str, stride: int) -> None:
    sim = SIMULATIONS[kind]()
    CALLS[call](sim)
    twin = copy.copy(sim)
    for _ in interrupted_everywhere(lambda: CALLS[call](sim), stride):
        for _ in range(2):  # where Ctrl-C struck, and a step later
            while twin.steps < sim.steps:
                twin.step()
            assert same(sim, twin)
            sim.step()


def test_a_rollout_ends_between_two_steps() -> None:
    sim, twin = SIMULATIONS["several robots"](), SIMULATIONS["several robots"]()
    q, v = sim.q, sim.v
    states = twin.rollout(q, v, 4)
    sim.rollout(q, v, 4)
    for _ in interrupted_everywhere(lambda: sim.rollout(q, v, 4), 997):
        assert np.array_equal(sim.q, states.q[:, sim.steps]) and sim.time == sim.steps * sim.dt


@pytest.mark.parametrize("kind", ["one robot", "several robots"])
def test_rollouts_and_steps_after_an_interrupted_rollout_are_as_without_it(kind: str) -> None:
    sim, twin = SIMULATIONS[kind](), SIMULATIONS[kind]()
    push = np.random.default_rng(0).uniform(-1.0, 1.0, (1, 3, sim.robot.nv))
    steps, step = twin.rollout(sim.state, tau=push), twin.advance(sim.state)
    for _ in interrupted_everywhere(lambda: sim.rollout(sim.state, tau=push), 7):
        assert sim.advance(sim.state) == step
        assert sim.rollout(sim.state, tau=push).final == steps.final


def test_a_reset_is_complete_or_has_not_begun() -> None:
    sim, before, after = (boxes([0.11, 0.2]) for _ in range(3))
    start, sim_q = after.q[0] + [0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0], sim.q
    before.step()
    after.reset(start, time=1.0)
    done = 0
    for _ in interrupted_everywhere(lambda: sim.reset(start, time=1.0)):
        if sim.q.shape == after.q.shape:
            done += 1
            assert same(sim, after)
            sim.step()
        else:
            sim.step()
            assert same(sim, before)
        sim.reset(sim_q)
    assert done > 1
