"""Instructions of single ticks of exported controllers, which other programs on the machine do not change; or their times.

    python benchmarks/peers/tick_instructions.py [--ticks 3000] [--clock REPEATS]

valgrind (callgrind) counts the instructions of each tick in a program in C, for x86-64-v3. The hand of Panda follows a circle,
which jumps by up to 10 cm each half second, by inverse kinematics with a limit of 1 rad/s, and by model predictive control of
30 knots with a tick of one iteration at each knot. The velocity is disturbed before each tick. The first ticks, in which a plan
begins, are not counted. The table has the least, the median, the 99.9th percentile and the greatest number of instructions, and
the last two by the median. With `--clock`, the ticks run so many times on one processor, and the table has times [µs] by the
wall, and the median times of the repetitions of each tick, which other programs change less.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import markdown

import featherweight as fw
from featherweight.array_types import Array

HAND = "panda_hand"
START = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8, 0.02])
STEP, RADIUS, TURN, JUMP, NOISE = 0.01, 0.1, 4.0, 0.1, 1e-3  # [s], [m], [s], [m], [rad/s]
WARM = 20  # ticks that are not counted

MAIN = """
#include "tick.h"
#include <stdio.h>
#include <valgrind/callgrind.h>
static unsigned char workspace[TICK_WORKSPACE_BYTES];
int main(void)
{
    tick_input input;
    tick_output output;
    tick_reset(workspace);
    while (fread(&input, sizeof input, 1, stdin) == 1) {
        CALLGRIND_TOGGLE_COLLECT;
        tick_tick(workspace, &input, &output);
        CALLGRIND_TOGGLE_COLLECT;
        CALLGRIND_DUMP_STATS;
    }
    return 0;
}
"""

CLOCK = """
#include "tick.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static unsigned char workspace[TICK_WORKSPACE_BYTES];
int main(int count, char **arguments)
{
    size_t n = strtoul(arguments[1], NULL, 10), repeats = strtoul(arguments[count - 1], NULL, 10);
    tick_input *input = malloc(n * sizeof *input);
    double *spent = malloc(n * repeats * sizeof *spent);
    tick_output output;
    if (fread(input, sizeof *input, n, stdin) != n) return 1;
    for (size_t r = 0; r < repeats; r++) {
        tick_reset(workspace);
        for (size_t k = 0; k < n; k++) {
            struct timespec begin, end;
            clock_gettime(CLOCK_MONOTONIC, &begin);
            tick_tick(workspace, &input[k], &output);
            clock_gettime(CLOCK_MONOTONIC, &end);
            spent[r * n + k] = 1e6 * (double)(end.tv_sec - begin.tv_sec) + 1e-3 * (double)(end.tv_nsec - begin.tv_nsec);
        }
    }
    return fwrite(spent, sizeof *spent, n * repeats, stdout) != n * repeats;
}
"""


class Ticks(NamedTuple):
    """A controller, and the records of the inputs of its ticks."""

    name: str
    controller: Any
    records: list[bytes]


def circle(robot: fw.Robot, time: float) -> Array:
    """Return the pose of the hand at a time."""
    pose, angle = robot.frame_placement(HAND)(START), 2.0 * np.pi * time / TURN
    pose[:3, 3] += RADIUS * np.array([0.0, np.sin(angle), 1.0 - np.cos(angle)])
    pose[:3, 3] += JUMP * (np.random.default_rng(int(2.0 * time + 1e-9)).random(3) - 0.5)
    return pose


def inverse_kinematics(robot: fw.Robot, ticks: int) -> Ticks:
    ik = fw.InverseKinematics(robot, [fw.FrameTask(HAND), fw.PostureTask(weight=1e-3)])
    alone, records, q, rng = fw.Standalone(ik), [], START.copy(), np.random.default_rng(0)
    for k in range(ticks):
        target = circle(robot, 1e-3 * k)
        result = alone(q=q, target_panda_hand=target, target_posture=START, dt=1e-3, gain=0.1, speed=np.ones(robot.nv))
        records.append(record(alone))
        q = robot.integrate(q, 1e-3 * (result.velocity + NOISE * rng.standard_normal(robot.nv)))
    return Ticks("Panda, inverse kinematics", ik, records)


def predictive(robot: fw.Robot, ticks: int) -> Ticks:
    ocp = fw.OptimalControl(robot, dt=STEP, knots=30)
    ocp.add(fw.FrameTask(HAND, kind="position", name="tool"), weight=100.0)
    ocp.add(fw.PostureTask(), weight=0.1)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.limit(efforts=True)
    mpc = fw.Controller(ocp, frequency=1.0 / STEP, targets={"tool": circle(robot, 0.0)[:3, 3], "posture": START})
    alone, records, q, v = fw.Standalone(mpc), [], START.copy(), np.zeros(robot.nv)
    rng = np.random.default_rng(0)
    for k in range(ticks):
        tau = alone(now=STEP * k, q=q, v=v, target_tool=circle(robot, STEP * k)[:3, 3], target_posture=START).tau
        records.append(record(alone))
        v = v + STEP * robot.forward_dynamics(q, v, tau) + NOISE * rng.standard_normal(robot.nv)
        q = robot.integrate(q, STEP * v)
    return Ticks("Panda, MPC of 30 knots", mpc, records)


def record(alone: fw.Standalone) -> bytes:
    """Return the input of the last tick as the program reads it."""
    return b"".join(x.tobytes() for x in alone.inputs)


def instructions(ticks: Ticks, folder: Path) -> Iterator[int]:
    """Yield the instructions of each tick."""
    fw.export(ticks.controller, folder, name="tick", target="x86-64-v3")
    (folder / "main.c").write_text(MAIN)
    subprocess.run(["gcc", "-O2", "main.c", "libtick.a", "-o", "main"], cwd=folder, check=True)
    command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--callgrind-out-file=count", "./main"]
    subprocess.run(command, cwd=folder, input=b"".join(ticks.records), check=True, capture_output=True)
    for k in range(1, len(ticks.records) + 1):
        lines = (folder / f"count.{k}").read_text().splitlines()
        yield next(int(line.split()[1]) for line in lines if line.startswith(("totals:", "summary:")))


def times(ticks: Ticks, folder: Path, repeats: int) -> Array:
    """Return the times (repeats, ticks) [µs] of each tick."""
    fw.export(ticks.controller, folder, name="tick")
    (folder / "main.c").write_text(CLOCK)
    subprocess.run(["gcc", "-O2", "main.c", "libtick.a", "-o", "main"], cwd=folder, check=True)
    command = ["taskset", "--cpu-list", "0", "./main", f"{len(ticks.records)}", f"{repeats}"]
    done = subprocess.run(command, cwd=folder, input=b"".join(ticks.records), check=True, capture_output=True)
    return np.frombuffer(done.stdout).reshape(repeats, -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=3000)
    parser.add_argument("--clock", type=int, metavar="REPEATS")
    given = parser.parse_args()
    robot, found, digits = fw.load(fw.example("panda")), dict[str, Array](), 1 if given.clock else 0
    for made in (inverse_kinematics, predictive):
        ticks = made(robot, given.ticks + WARM)
        with tempfile.TemporaryDirectory() as folder:
            if given.clock:
                measured = times(ticks, Path(folder), given.clock)[:, WARM:]
                found |= {ticks.name: measured, f"{ticks.name}, medians": np.median(measured, axis=0)}
            else:
                found[ticks.name] = np.array([*instructions(ticks, Path(folder))][WARM:])
    rows = []
    for name, x in found.items():
        middle, high = np.percentile(x, [50, 99.9])
        written = [f"{y:,.{digits}f}" for y in (x.min(), middle, high, x.max())]
        rows.append([name, *written, f"{high / middle:.3f}", f"{x.max() / middle:.3f}"])
    print(markdown(["tick", "least", "median", "99.9 %", "most", "99.9 % / median", "most / median"], rows))


if __name__ == "__main__":
    main()
