"""Tests of simulations and threads: one thread at a time uses a simulation, and copies run side by side."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from engine.used import REFUSED, used_by_another_thread
from simulation.scenes import boxes, corners, free_bodies, pendulum, solid_box

STATE = boxes([0.11, 0.2]).state
CALLS: dict[str, Callable[[fw.Simulation], object]] = {
    "step": lambda sim: sim.step(),
    "run": lambda sim: sim.run(0.01),
    "rollout": lambda sim: sim.rollout(sim.q, steps=2),
    "reset": lambda sim: sim.reset(),
    "reset some": lambda sim: sim.reset(sim.q[0], which=[0]),
    "vary": lambda sim: sim.vary(friction=np.ones(2)),
    "derivatives": lambda sim: sim.derivatives(),
    "step function": lambda sim: sim.step_function(),
    "contacts": lambda sim: sim.contacts(),
    "contacts of many": lambda sim: sim.contacts_of_many(),
    "contact forces": lambda sim: sim.contact_forces,
    "limit forces": lambda sim: sim.limit_forces,
    "energy": lambda sim: sim.energy(),
    "sensors": lambda sim: sim.sensors(),
    "render": lambda sim: sim.render(8, 8),
    "time": lambda sim: setattr(sim, "time", 1.0),
    "q": lambda sim: setattr(sim, "q", sim.q),
    "v": lambda sim: setattr(sim, "v", sim.v),
    "activation": lambda sim: setattr(sim, "activation", sim.activation),
    "state": lambda sim: sim.state,
    "set the state": lambda sim: setattr(sim, "state", STATE),
    "advance": lambda sim: sim.advance(STATE),
    "copy": copy.copy,
    "pickle": pickle.dumps,
}


@pytest.mark.parametrize("call", CALLS)
def test_a_second_thread_is_refused(call: str) -> None:
    sim = boxes([0.11, 0.2])
    with used_by_another_thread(sim), pytest.raises(RuntimeError, match=f"^the simulation of 'mechanism' {REFUSED}"):
        CALLS[call](sim)


def test_a_second_thread_may_watch_the_state() -> None:
    sim = boxes([0.11, 0.2])
    with used_by_another_thread(sim):
        assert (sim.time, sim.steps, sim.q.shape, sim.v.shape, sim.failed.tolist()) == (0.0, 0, (2, 7), (2, 6), [False] * 2)


def test_a_run_keeps_other_threads_out_until_it_ends() -> None:
    """Check that the thread that intrudes gets the error, and not the run."""
    sim, errors = boxes([0.11, 0.2]), list[str]()

    def intrude() -> None:
        try:
            sim.reset()
        except RuntimeError as error:
            errors.append(str(error))

    def controller(time: float, q: Any, v: Any) -> Any:
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        return np.zeros(6)

    sim.run(0.003, controller)
    assert len(errors) == sim.steps == 3
    intrude()
    assert len(errors) == 3


def test_a_controller_may_use_the_simulation_that_calls_it() -> None:
    sim, energies = fw.Simulation(pendulum(), 1e-3, q=[0.3]), list[float]()

    def controller(time: float, q: Any, v: Any) -> Any:
        energies.append(sim.energy())
        sim.contacts(), copy.copy(sim)
        if len(energies) == 2:
            sim.reset([0.1])
        return np.zeros(1)

    sim.run(0.004, controller)
    assert energies[0] == pytest.approx(energies[1]) and energies[1] > energies[2] + 0.1
    assert sim.steps == 3


@pytest.mark.usefixtures("hasty")
def test_steps_of_two_threads_are_taken_or_refused() -> None:
    sim, done = boxes([0.11, 0.2]), list[int]()
    twin = copy.copy(sim)

    def work() -> None:
        for _ in range(100):
            with suppress(RuntimeError):
                sim.step(steps=3)
                done.append(3)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sim.steps == sum(done) > 0
    twin.step(steps=sim.steps)
    assert (sim.q == twin.q).all() and (sim.v == twin.v).all()


@pytest.mark.usefixtures("hasty")
def test_copies_run_in_threads_of_their_own() -> None:
    sim = boxes([0.11, 0.2])
    sim.step()
    copies = [copy.copy(sim) for _ in range(4)]
    threads = [threading.Thread(target=lambda x=x: [x.step() for _ in range(50)] and x.contacts()) for x in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sim.step(steps=50)
    assert all((x.q == sim.q).all() and x.time == sim.time for x in copies)


def test_a_pickle_has_the_state_of_its_beginning() -> None:
    """Check that arrays of a pickle are copies, because it is written when another thread may step."""
    sim = boxes([0.11, 0.2])
    state: Any = sim.__getstate__()
    sim.step()
    other = object.__new__(fw.Simulation)
    vars(other).update(state)
    assert other.steps == 0 and (other.q != sim.q).any()


def test_time_may_be_set() -> None:
    sim = fw.Simulation(pendulum(), 1e-3, q=[0.3])
    sim.step()
    sim.time = 5.0
    assert (sim.time, sim.steps) == (5.0, 1)
    sim.step(steps=2)
    assert (sim.time, sim.steps) == (5.0 + 2 * 1e-3, 3)
    with pytest.raises(ValueError, match="finite number of seconds"):
        sim.time = np.nan


def test_tables_outlive_the_step_that_reads_them() -> None:
    """Check a function that a step calls, and that replaces what the step reads. The process would crash."""
    sides, robot = (0.4, 0.3, 0.2), free_bodies(solid_box(2.0, (0.4, 0.3, 0.2)))
    start, made = robot.neutral(), list[fw.Simulation]()
    start[2] = 0.0999

    def delassus(contacts: Any, q: Any) -> Any:
        for sim in made:
            sim.vary(friction=np.ones(1))
            sim.vary()
            sim.reset(start)
            sim.energy()  # gets machine code for the new arrays
        return robot.delassus(contacts)(q)

    options = fw.ContactOptions(delassus=delassus)
    made.append(fw.Simulation(robot, 1e-3, q=start, spheres=corners("body0", sides), ground=fw.Plane(), contact=options))
    for k in range(50):
        made[0].step(steps=1 + k % 3)
    assert np.isfinite(made[0].q).all()
