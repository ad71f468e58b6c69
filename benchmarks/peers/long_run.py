"""Long runs: growth of memory, drift of energy, and closure of loops.

    python benchmarks/peers/long_run.py [--steps 1000000]

Gymnasium's ant moves under random controls with the step and the integrator of its file, and the crank of a four-bar rotates.
Memory is first measured after a tenth of the steps, because pools and caches grow until then.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from measure import machine, markdown
from robots_in_mujoco import STEP
from simulation_models import four_bar, gymnasium_simulation

import featherweight as fw

PARTS = 10
HELD = 5  # steps under the same controls


class Seen(NamedTuple):
    """Measurements after a part of a run."""

    steps: int
    memory: float  # [MB], the largest so far
    energy: float  # [J], the largest of the part
    opening: float  # misclosure of loops, the largest of the part
    seconds: float


def memory() -> float:
    """Return the peak memory of this process [MB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def seen(sim: fw.Simulation, steps: int, go_on: Callable[[], None]) -> Iterator[Seen]:
    """Yield measurements after each part of a run of `steps`; `go_on` takes HELD steps."""
    taken = 0
    for _ in range(PARTS):
        begun, energy, opening = time.perf_counter(), -np.inf, 0.0
        for _ in range(steps // PARTS // HELD):
            go_on()
            taken += HELD
            energy, opening = max(energy, sim.energy()), max(opening, sim.opened)
        assert np.isfinite(sim.q).all() and np.isfinite(sim.v).all()
        yield Seen(taken, memory(), energy, opening, time.perf_counter() - begun)


def ant(steps: int) -> Iterator[Seen]:
    sim, rng = gymnasium_simulation("ant"), np.random.default_rng(0)

    def go_on() -> None:
        u = rng.uniform(-1.0, 1.0, 8)
        for _ in range(HELD):
            sim.step(control=u)

    return seen(sim, steps, go_on)


def crank(steps: int) -> Iterator[Seen]:
    """Run a four-bar under gravity without damping, with forces that remove the energy that they add."""
    robot = fw.build(four_bar())
    q = robot.close(np.array([0.3, 0.3, 0.3]))  # type: ignore[attr-defined]
    sim = fw.Simulation(robot, STEP, q=q, v=[4.0])

    def go_on() -> None:
        tau = -20.0 * (sim.v - 4.0)
        for _ in range(HELD):
            sim.step(tau)

    return seen(sim, steps, go_on)


RUNS: dict[str, Callable[[int], Iterator[Seen]]] = {"ant, random controls": ant, "four-bar": crank}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    options = parser.parse_args()
    print(f"{machine()}\n")
    rows = []
    for name, run in RUNS.items():
        parts = list(run(options.steps))
        grown, most, opening = parts[-1].memory - parts[0].memory, max(p.energy for p in parts), max(p.opening for p in parts)
        each = 1e6 * sum(p.seconds for p in parts) / parts[-1].steps
        rows.append([name, f"{parts[-1].steps:,}", f"{each:.1f}", f"{grown:.1f}", f"{most:.4g}", f"{opening:.1g}"])
    header = ["long run", "steps", "µs per step", "memory growth, MB", "largest energy, J", "loop misclosure"]
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
