"""Short rollouts of few robots, as a sampling controller makes them, compared with `mujoco.rollout`: microseconds per call.

    python benchmarks/peers/short_rollouts.py [hopper ant ...] [--seconds 1]

All robots start from the state of a robot of Gymnasium that has fallen, with random controls for each robot and step, on one
thread and on two. MuJoCo has prepared threads, data and results; ours makes its results. Other forms of the controls are for 16
robots. "Without steps" is the time of a rollout with no steps. Calls alternate; times are medians.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import product

import mujoco
import mujoco.rollout
import numpy as np
from measure import machine, markdown, median_times
from simulation_calls import PHYSICS, Scene, gymnasium_file

import featherweight as fw
from featherweight.array_types import Array

SIZES = (1, 10), (16, 10), (64, 30)  # robots and steps
THREADS = 1, 2


def controls(scene: Scene, robots: int, steps: int) -> Array:
    return np.random.default_rng(0).uniform(-1.0, 1.0, (robots, steps, len(scene.robot.controls)))


def fallen(scene: Scene, threads: int) -> fw.Simulation:
    """Return a simulation of one robot in the state of the scene."""
    sim = fw.Simulation(scene.robot, integrator="semi-implicit", threads=threads, on_failure="stop")
    sim.state = scene.sim.state
    return sim


def beside_mujoco(scene: Scene, threads: int, robots: int, steps: int, seconds: float) -> list[str]:
    """Return times of our rollout, of MuJoCo's, their ratio, and the time of ours without steps."""
    sim, m, u = fallen(scene, threads), scene.model, controls(scene, robots, steps)
    many, data = sim.state.repeated(robots), [mujoco.MjData(m) for _ in range(threads)]
    state = np.zeros(mujoco.mj_stateSize(m, PHYSICS))
    mujoco.mj_getState(m, scene.data, state, PHYSICS)
    states, readings = np.empty((robots, steps, len(state))), np.empty((robots, steps, m.nsensordata))
    start = np.tile(state, (robots, 1))
    with mujoco.rollout.Rollout(nthread=threads if threads > 1 else 0) as rollout:
        calls = (
            lambda: sim.rollout(many, control=u),
            lambda: rollout.rollout(m, data, start, u, nstep=steps, state=states, sensordata=readings),
            lambda: sim.rollout(many, steps=0),
        )
        ours, theirs, none = median_times(calls, seconds)
    return [f"{1e6 * ours:.0f}", f"{1e6 * theirs:.0f}", f"{theirs / ours:.2f}", f"{1e6 * none:.0f}"]


def by_form(name: str, scene: Scene, seconds: float) -> list[str]:
    """Return the times of forms of controls, and of a start from arrays, in a row."""
    robots, steps = SIZES[1]
    sim, u = fallen(scene, 1), controls(scene, robots, steps)
    many, single, listed, shared = sim.state.repeated(robots), u.astype(np.float32), u.tolist(), u[:1].copy()
    q, v = np.tile(sim.q, (robots, 1)), np.tile(sim.v, (robots, 1))
    calls = [partial(sim.rollout, many, control=x) for x in (u, single, listed, shared)]
    return [name, *(f"{1e6 * t:.0f}" for t in median_times([*calls, partial(sim.rollout, q, v, control=u)], seconds))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", default=["hopper"], help="names of Gymnasium's files")
    parser.add_argument("--seconds", type=float, default=1.0, help="time of each comparison [s]")
    given = parser.parse_args()
    print(f"{machine()}; MuJoCo {mujoco.__version__}\n")
    table, forms = [], []
    for name in given.robots:
        scene = gymnasium_file(name)
        for threads, (robots, steps) in product(THREADS, SIZES):
            cells = beside_mujoco(scene, threads, robots, steps, given.seconds)
            table.append([name, f"{robots} × {steps}", str(threads), *cells])
        forms.append(by_form(name, scene, given.seconds))
    head = ["robot", "robots × steps", "threads", "ours [µs]", "MuJoCo [µs]", "ratio", "without steps [µs]"]
    print(markdown(head, table))
    print()
    heads = ["robot", "float64 [µs]", "float32 [µs]", "a list [µs]", "shared [µs]", "from q and v [µs]"]
    print(markdown(heads, forms))


if __name__ == "__main__":
    main()
