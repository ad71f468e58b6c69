"""Time of a step by stage, of robots that lie on a floor: where a step's time goes.

    pip install --no-deps mjlab gymnasium-robotics
    python benchmarks/peers/step_stages.py [--only NAME] [--contact file] [--steps 300] [--torque 0.2]

Scenes are those of `step_times.py`. Robots fall for --steps steps under random joint forces. Then the next step is
computed again and again without taking it, up to the end of each stage. A stage takes the difference to the one before it:

    motion      forces at joints, and the velocity without contacts
    detection   placements and contacts
    impulses    the contact law, and Newton's method
    end         velocities and configuration after the step, and their checks
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from falling_scenes import FallingScene, falling_scenes
from measure import machine, markdown

import featherweight as fw
from featherweight.engine.loops.kernels import CompiledLoop
from featherweight.engine.loops.prepared_calls import prepared_call
from featherweight.simulation.robot_stages import detect, find_impulses, is_touched, move_freely
from featherweight.simulation.stage_records import FOUND, SOLVED, RobotStages
from featherweight.simulation.step import try_step
from featherweight.simulation.step_status import TAKEN

ROUNDS, CALLS = 20, 100


def until_motion(s: RobotStages) -> int:
    """Compute the velocity without contacts."""
    return move_freely(s)


def until_detection(s: RobotStages) -> int:
    """Compute this, and the contacts."""
    status = move_freely(s)
    return detect(s) if status == TAKEN else status


def until_impulses(s: RobotStages) -> int:
    """Compute this, and the impulses."""
    status = until_detection(s)
    return find_impulses(s) if status == TAKEN and is_touched(s) else status


def until_end(s: RobotStages) -> int:
    """Compute the whole step."""
    return try_step(s)


STAGES = [CompiledLoop(f, numbers=0) for f in (until_motion, until_detection, until_impulses, until_end)]


def median_time(call: Callable[[], int]) -> float:
    """Return the median over rounds of the processor time of a call [µs]."""
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(CALLS):
            call()
        times.append((time.process_time() - begin) / CALLS)
    return 1e6 * float(np.median(times))


def row(scene: FallingScene, contact: str, steps: int, torque: float) -> list[str]:
    """Return the cells of a scene's row."""
    sim = fw.Simulation(fw.load(scene.text), contact=contact, integrator="semi-implicit")
    rng = np.random.default_rng(0)
    for _ in range(steps):
        sim.step(torque * rng.standard_normal(sim.robot.nv))
    sim.step()
    table = sim._fleet.last_table()
    counts = table.content.touching.counts
    table.content.touching.collisions.remembers[0] = True
    ends = [median_time(prepared_call(loop.for_tables(table), table.address, kept=table)) for loop in STAGES]
    stages = np.diff([0.0, *ends])
    return [
        scene.name,
        str(sim.robot.nv),
        f"{counts[FOUND]}, {counts[SOLVED]}",
        *(f"{x:.1f}" for x in stages),
        f"{ends[-1]:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of the names of scenes")
    parser.add_argument("--contact", default="file", help="contact law")
    parser.add_argument("--steps", type=int, default=300, help="steps before the one that is measured")
    parser.add_argument("--torque", type=float, default=0.2, help="standard deviation of joint forces [N m]")
    given = parser.parse_args()
    warnings.simplefilter("ignore", fw.ModelWarning)
    rows = [row(scene, given.contact, given.steps, given.torque) for scene in falling_scenes([], given.only)]
    header = ["robot", "nv", "contacts, solved", "motion, µs", "detection, µs", "impulses, µs", "end, µs", "a step, µs"]
    print(machine())
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
