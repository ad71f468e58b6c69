"""Compile the kernels of `FIRST_USES` to object code for all kinds of processors, for wheels.

    python release/objects.py FOLDER

Run in an environment where the package is installed from the sources of the wheel. FOLDER is
src/featherweight/engine/loops/objects of those sources. To ship another kernel, add a function that calls it to `FIRST_USES`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

os.environ["FEATHERWEIGHT_CACHE_SIZE"] = "0"  # disable the cache: all kernels are compiled

import first_simulation
import smoke

import featherweight as fw
from featherweight.engine.loops import kernel_code
from featherweight.model.types import Sensor, SensorKind


def folded_arm() -> None:
    """Check which configurations of an arm with primitive shapes collide with themselves."""
    with tempfile.TemporaryDirectory() as folder:
        fw.load(smoke.urdf(Path(folder))).in_collision(smoke.FOLDED_AND_STRETCHED)


def derivatives_of_a_fall() -> None:
    """Differentiate a step of a body in the air."""
    ball = fw.Description("ball", "", (fw.Body("ball", fw.Inertia(1.0, (0, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01))),), ())
    fw.Simulation(fw.build(ball, base="floating"), dt=1e-3).derivatives()


def body_with_a_clock() -> None:
    """Read a sensor of a simulation."""
    body = fw.Body("body", fw.Inertia(1.0, (0, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01)))
    robot = fw.build(fw.describe([body], [], sensors=[Sensor("time", SensorKind.CLOCK)]), base="floating")
    assert fw.Simulation(robot, dt=1e-3).sensors()["time"] == 0.0


def ball_of_a_file() -> None:
    """Step a ball on the ground by the law of MJCF files, which has a solver of its own."""
    first_simulation.ball_on_the_ground("pyramidal")


FIRST_USES = (first_simulation.ball_on_the_ground, ball_of_a_file, folded_arm, derivatives_of_a_fall, body_with_a_clock)


def main(folder: Path) -> None:
    sizes: dict[str, list[int]] = {}

    def ship(kernel: kernel_code.Specialization, facts: kernel_code.Facts, ir: str) -> None:
        sizes[kernel.function.__qualname__] = [p.stat().st_size for p in kernel_code.ship(kernel.name, facts, ir, folder)]

    kernel_code.compilation_observers.append(ship)
    for use in FIRST_USES:
        use()
    targets = ", ".join(target.name for target in kernel_code.TARGETS)
    for name, bytes in sizes.items():
        print(f"    {name}: {', '.join(f'{b / 1e3:.0f}' for b in bytes)} kB for {targets}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
