"""Processor times of first calls, which compile, for one state and for a batch, with an empty cache.

    python benchmarks/peers/first_calls.py

Processor time does not depend on other programs. The waiting time of a call is shorter if several processors compile.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import machine, markdown

import featherweight

ROBOTS = {"my_robot.urdf": Path(__file__).parents[2] / "docs" / "files" / "my_robot.urdf"}
FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "forward_dynamics_derivatives")


def first_calls(robot: featherweight.Robot, name: str) -> tuple[float, float]:
    """Return the times [s] of the first call for one state, including access to the function, and for a batch."""
    times = [time.process_time()]
    function = getattr(robot, name)
    state = [robot.neutral() if x.rate else np.zeros(x.shape) for x in function.program.inputs]
    for arguments in (state, [np.tile(x, (16, 1)) for x in state]):
        function(*arguments)
        times.append(time.process_time())
    return times[1] - times[0], times[2] - times[1]


def main() -> None:
    os.environ["FEATHERWEIGHT_CACHE"] = tempfile.mkdtemp(prefix="featherweight-")
    rows = []
    for file, path in (ROBOTS | {"talos_reduced": featherweight.example("talos_reduced")}).items():
        robot = featherweight.load(path, base="floating")
        robot.gravity_force(robot.neutral())  # prepares data that all functions share
        for name in FUNCTIONS:
            one, batch = first_calls(robot, name)
            rows.append([f"{file}, {robot.nv} DoF", f"`{name}`", f"{one:.1f} s", f"{batch:.1f} s"])
    print(machine() + "\n")
    print(markdown(["robot", "function", "first call, one state", "first call, batch"], rows))


if __name__ == "__main__":
    main()
