"""Waiting times of users: import, compilation, a second process, large trees; and the stages of a compilation.

    python benchmarks/peers/start_up.py

Each row is the median of several new processes, or of several compilations into an empty cache. The last table has the
processor times of first calls of Talos's functions with an empty cache, by stage: for one state, and then for a batch.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from compile_stages import STAGES, Stages
from measure import FILES, ROBOTS, fresh_process, machine, markdown, median_times

import featherweight
from featherweight.engine.function import CompiledFunction
from featherweight.model.generators import chain

TALOS = str(ROBOTS / FILES["talos_reduced"][0])

FIRST_RESULT = """
import sys, time
import featherweight, numpy
begun = time.perf_counter()
robot = featherweight.load(sys.argv[1], "floating", mimic="independent")
q, v = robot.neutral(), numpy.zeros(robot.nv)
robot.forward_dynamics(q, v, v)
print(time.perf_counter() - begun)
"""
IMPORT = "import time; begun = time.perf_counter(); import featherweight; print(time.perf_counter() - begun)"


def in_processes(code: str, *arguments: str, times: int = 9) -> float:
    """Return the median of the numbers that `code` prints in new processes."""
    command = [sys.executable, "-c", code, *arguments]
    results = [
        subprocess.run(command, env=fresh_process(), capture_output=True, text=True, check=True).stdout for _ in range(times)
    ]
    return statistics.median(map(float, results))


def cold(function: CompiledFunction[Any], batch: bool, times: int = 5) -> float:
    """Return the median time of a first call with an empty cache [s]."""
    inputs = [np.ones(a.shape) for a in function.program.inputs]
    if batch:
        inputs = [np.tile(x, (16, 1)) for x in inputs]
    spent = []
    for _ in range(times):
        os.environ["FEATHERWEIGHT_CACHE"] = tempfile.mkdtemp(prefix="featherweight-")
        fresh = CompiledFunction(function.program, "traced")
        begun = time.perf_counter()
        fresh(*inputs)
        spent.append(time.perf_counter() - begun)
    return statistics.median(spent)


FEET = ("left_sole_link", "right_sole_link")
LARGE: dict[str, Callable[[featherweight.Robot], CompiledFunction[Any]]] = {
    "forward dynamics": lambda robot: robot.forward_dynamics,
    "its derivatives": lambda robot: robot.forward_dynamics_derivatives,
    "with two feet in contact": lambda robot: (
        robot.operational_space([featherweight.BilateralContact(foot) for foot in FEET]).forward_dynamics_derivatives
    ),
}


def by_stages(name: str) -> list[list[str]]:
    """Return the rows of the table of stages for a function, including access to it: for one state, then for a batch."""
    os.environ["FEATHERWEIGHT_CACHE"] = tempfile.mkdtemp(prefix="featherweight-")
    robot = featherweight.load(TALOS, "floating", mimic="independent")
    robot.gravity_force(robot.neutral())  # prepares data that all functions share
    function, rows = None, []
    for states in ("one state", "batch"):
        stages, begun = Stages(), time.process_time()
        with stages.measured():
            function = function or LARGE[name](robot)
            state = [robot.neutral() if x.rate else np.zeros(x.shape) for x in function.program.inputs]
            function(*(state if states == "one state" else [np.tile(x, (16, 1)) for x in state]))
        whole = time.process_time() - begun
        others = whole - stages.spent.total()
        rows.append([f"{name}, {states}", *(f"{x:.2f}" for x in (*(stages.spent[s] for s in STAGES), others, whole))])
    return rows


def rolled_per_body(n: int) -> float:
    """Return the time per body of forward dynamics of a random chain on one thread [s]."""
    robot = featherweight.build(chain(n), execution="rolled")
    q, v, tau = np.random.default_rng(0).standard_normal((3, 8, n))
    [t] = median_times([lambda: robot.forward_dynamics(q, v, tau, threads=1)])
    return t / (8 * n)


def main() -> None:
    print(machine() + "\n")
    talos = featherweight.load(TALOS, "floating", mimic="independent")
    long = featherweight.build(chain(200), execution="traced")
    os.environ["FEATHERWEIGHT_CACHE"] = tempfile.mkdtemp(prefix="featherweight-")
    in_processes(FIRST_RESULT, TALOS, times=1)
    rows = [
        ["import featherweight", f"{in_processes(IMPORT):.3f}"],
        ["new process, load to first result, cache warm", f"{in_processes(FIRST_RESULT, TALOS):.3f}"],
        ["compile forward dynamics of talos_reduced, one state", f"{cold(talos.forward_dynamics, False):.2f}"],
        ["compile forward dynamics of talos_reduced, batch", f"{cold(talos.forward_dynamics, True):.2f}"],
        ["compile forward dynamics of 200 revolute joints, one state", f"{cold(long.forward_dynamics, False, 1):.1f}"],
        ["compile forward dynamics of 200 revolute joints, batch", f"{cold(long.forward_dynamics, True, 1):.1f}"],
    ]
    print(markdown(["step", "median [s]"], rows) + "\n")
    rolled = [[f"{n}", f"{1e9 * rolled_per_body(n):.0f}"] for n in (100, 300, 1000, 3000)]
    print(markdown(["bodies of a chain, rolled code", "forward dynamics [ns per body]"], rolled) + "\n")
    stages = [row for name in LARGE for row in by_stages(name)]
    print(markdown(["talos_reduced", *(f"{x} [s]" for x in (*STAGES, "others", "whole"))], stages))


if __name__ == "__main__":
    main()
