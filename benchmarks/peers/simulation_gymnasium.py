"""Gymnasium's robots compared with MuJoCo, with the shapes, the step, the integrator and the solver of their files.

A single robot starts at the configuration of the file. With random controls, held for as many steps as in gymnasium, it falls
and moves on the ground. Without controls, it starts from its state at rest. Many robots start from states within such motions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from measured_row import Row, alternating, warned
from mujoco_fleet import MujocoFleet
from robots_in_mujoco import mujoco_states
from simulation_models import FRAME_SKIP, gymnasium_in_mujoco, gymnasium_simulation, set_state

import featherweight as fw
from featherweight.array_types import Array
from featherweight.simulation.fleet_vectors import PATIENCE, THREAD

HELD = 100  # changes of controls in a motion of one robot
SETTLE = 3.0  # [s] without controls


def random_controls(m: Any, *shape: int) -> Array:
    rng = np.random.default_rng(0)
    low, high = m.actuator_ctrlrange.T
    return np.asarray(rng.uniform(low, high, (*shape, m.nu)))


def one_moving(name: str, rounds: int, contact: str) -> list[Row]:
    """Return rows of a moving robot, for single steps, and for calls with as many steps as controls are held."""
    sim, m, skip = gymnasium_simulation(name, contact=contact), gymnasium_in_mujoco(name), FRAME_SKIP[name]
    data, controls = mujoco.MjData(m), random_controls(m, HELD)
    q0, v0 = sim.q.copy(), sim.v.copy()
    start = mujoco_states(m, sim.robot, q0[None], v0[None])[0]

    def ours_by_step() -> None:
        sim.reset(q0, v0)
        for u in controls:
            for _ in range(skip):
                sim.step(control=u)

    def theirs_by_step() -> None:
        set_state(m, data, start)
        for u in controls:
            data.ctrl[:] = u
            for _ in range(skip):
                mujoco.mj_step(m, data)

    def ours_held() -> None:
        sim.reset(q0, v0)
        for u in controls:
            sim.step(control=u, steps=skip)

    def theirs_held() -> None:
        set_state(m, data, start)
        for u in controls:
            data.ctrl[:] = u
            mujoco.mj_step(m, data, skip)

    times = alternating((ours_by_step, theirs_by_step, ours_held, theirs_held), rounds)
    each = [1e6 * t / (HELD * skip) for t in times]
    told = warned(data)
    return [
        Row(f"{name}, random controls", "a step", each[0], each[1], told),
        Row(f"{name}, random controls", f"{skip} steps", each[2], each[3], told),
    ]


def one_at_rest(name: str, rounds: int, contact: str) -> Row:
    sim, m = gymnasium_simulation(name, contact=contact), gymnasium_in_mujoco(name)
    data, settle, steps = mujoco.MjData(m), round(SETTLE / m.opt.timestep), 200
    set_state(m, data, mujoco_states(m, sim.robot, sim.q[None], sim.v[None])[0])
    sim.run(settle * sim.dt, every=settle)
    mujoco.mj_step(m, data, settle)

    def ours() -> None:
        for _ in range(steps):
            sim.step()

    def theirs() -> None:
        for _ in range(steps):
            mujoco.mj_step(m, data)

    a, b = alternating((ours, theirs), rounds)
    told = f"{len(sim.contacts()[0])} contacts of ours, {data.ncon} of MuJoCo"
    return Row(f"{name}, at rest", "a step", 1e6 * a / steps, 1e6 * b / steps, told)


def many(name: str, robots: int, steps: int, rounds: int, contact: str) -> Row:
    sim, m = gymnasium_simulation(name, threads=2, contact=contact), gymnasium_in_mujoco(name)
    skip = FRAME_SKIP[name]
    q, v = states_of_many(sim, m, robots, round(1.0 / m.opt.timestep))
    controls = np.repeat(random_controls(m, robots, -(-steps // skip)), skip, axis=1)[:, :steps]
    states = mujoco_states(m, sim.robot, q, v)
    compile_vectors(lambda: sim.rollout(q, v, control=controls, every=steps))
    with MujocoFleet(m, states, steps, controls) as theirs:
        a, b = alternating((lambda: sim.rollout(q, v, control=controls, every=steps) and None, theirs.run), rounds)
    each = 1e6 / (robots * steps)
    return Row(f"{robots} × {name}, random controls", "rollout", each * a, each * b, warned(*theirs.datas))


def compile_vectors(run: Callable[[], object]) -> None:
    """Take steps of a fleet until the code for vector lanes is compiled, which happens in the background."""
    run()  # compiles the code without lanes
    begun = time.perf_counter()
    while time.perf_counter() - begun < 1.5 * PATIENCE:
        run()
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join()


def states_of_many(sim: fw.Simulation, m: Any, robots: int, steps: int) -> tuple[Array, Array]:
    """Return states of robots that have moved with random controls, for different times."""
    start = sim.q.copy()
    qs, vs = sim.rollout(start[None], control=random_controls(m, 1, steps), every=1)
    chosen = np.random.default_rng(0).integers(steps // 4, steps, robots)
    return qs[0, chosen], vs[0, chosen]


def rows(robots: int, steps: int, rounds: int, contact: str) -> list[Row]:
    found = []
    for name in FRAME_SKIP:
        found += one_moving(name, rounds, contact)
        found.append(one_at_rest(name, rounds, contact))
        found.append(many(name, robots, steps, rounds, contact))
    return found
