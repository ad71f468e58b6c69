"""Random reaches of Panda within limits, compared with CSQP of mim-solvers and FATROP of CasADi, each on one thread.

    make .venv-crocoddyl/.made
    python benchmarks/peers/limited_reaches.py [--csqp .venv-crocoddyl/bin/python] [--fatrop PYTHON] [--count 100]

FATROP's interpreter needs this library, CasADi and gcc; with pin 4.1.0, CSQP ends with a segmentation fault.

Positions, velocities and efforts stay within limits. At the end, the hand is at a point and the arm is at rest. Starts are
random in the inner 80 % of the joint ranges. The hand's target is its position in another configuration, whose joints differ by
up to SPREADS [rad]. All solvers minimize the same cost over the same semi-implicit Euler steps, with a robot that is held still
as the initial guess. A reach is solved if the solver reports success and, by our functions, no constraint or step is violated
by more than 1e-4. Times are processor times, which depend little on other programs. Each time is the smallest of three, or that
of one solution if it takes more than 0.2 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import machine, markdown
from optimal_control_peer import without_losses
from peer_process import least_time

import featherweight as fw
from featherweight.array_types import Array

HAND = "panda_hand_tcp"
STEP, KNOTS = 0.02, 40
VELOCITY, EFFORT = 0.1, 1e-3  # weights
SPREADS = (1.0, 1.5)  # [rad]
ALLOWED = 1e-4  # accepted violation


class Found(NamedTuple):
    """A solution of one reach by one solver."""

    seconds: float
    converged: bool
    iterations: int
    q: Array  # (knots + 1, nq)
    v: Array
    u: Array  # (knots, nv)


def reaches(robot: fw.Robot, count: int, spread: float) -> list[dict[str, list[float]]]:
    """Return starts, targets of the hand, and joint forces that hold the arm at the start."""
    rng, place = np.random.default_rng(1), robot.frame_placement(HAND)
    middle, half = 0.5 * (robot.lower + robot.upper), 0.5 * (robot.upper - robot.lower)
    arm = np.array([j.name.startswith("panda_joint") for j in robot.joints])
    found = []
    for _ in range(count):
        start = middle + 0.8 * half * rng.uniform(-1.0, 1.0, robot.nq)
        goal = np.clip(start + spread * arm * rng.uniform(-1.0, 1.0, robot.nq), middle - 0.9 * half, middle + 0.9 * half)
        hold = robot.gravity_force(start)
        found.append({"start": start.tolist(), "target": place(goal)[:3, 3].tolist(), "hold": hold.tolist()})
    return found


def ours(robot: fw.Robot, many: list[dict[str, Any]]) -> list[Found]:
    """Return our solutions. The constraint of the hand weighs 10, the best of 1, 10 and 100 on several random sets."""
    ocp = fw.OptimalControl(robot, dt=STEP, knots=KNOTS, threads=1)
    ocp.add(fw.JointVelocities(), weight=VELOCITY)
    ocp.add(fw.Effort(), weight=EFFORT)
    ocp.require(fw.FrameTask(HAND, kind="position", name="hand"), at="end", weight=10.0)
    ocp.require(fw.JointVelocities(name="rest"), at="end")
    ocp.limit(positions=True, velocities=True, efforts=True)
    still = np.zeros((KNOTS + 1, robot.nv))

    def solved(one: dict[str, Any]) -> Found:
        q = np.array(one["start"])
        u = np.tile(one["hold"], (KNOTS, 1))
        guess = fw.optimal_control.problem.Plan(np.tile(q, (KNOTS + 1, 1)), still, u, np.zeros(0), 0.0, 0.0, False, 0, "")
        passed, plan = least_time(lambda: ocp.solve(q, targets={"hand": one["target"]}, guess=guess, iterations=1000))
        return Found(passed, plan.converged, plan.iterations, plan.q, plan.v, plan.u)

    solved(many[0])
    return [solved(one) for one in many]


def theirs(script: str, python: str, numbers: Path) -> list[Found]:
    """Return the solutions of a peer."""
    output = numbers.with_name(f"{script}.json")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([python, Path(__file__).parent / script, numbers, output], check=True, env=environment)
    return [Found(*one[:3], *map(np.array, one[3:])) for one in json.loads(output.read_text())]


def violation(robot: fw.Robot, one: dict[str, Any], found: Found) -> float:
    """Return the largest violation of a constraint or a step."""
    q, v, u = found.q, found.v, found.u
    after = v[:-1] + STEP * robot.forward_dynamics(q[:-1], v[:-1], u)
    away = [
        robot.lower - q, q - robot.upper, abs(v) - robot.velocity_limit, abs(u) - robot.effort_limit, abs(v[-1]),
        abs(q[0] - one["start"]), abs(v[0]), abs(v[1:] - after), abs(q[1:] - q[:-1] - STEP * v[1:]),
        abs(robot.frame_placement(HAND)(q[-1])[:3, 3] - one["target"]),
    ]  # fmt: skip
    return float(max(x.max() for x in away))


def cost(found: Found) -> float:
    """Return the integral of weighted squares."""
    return float(0.5 * STEP * (VELOCITY * (found.v[:-1] ** 2).sum() + EFFORT * (found.u**2).sum()))


def rows(robot: fw.Robot, many: list[dict[str, Any]], spread: float, results: dict[str, list[Found]]) -> list[tuple[str, ...]]:
    """Return a row of the table for each solver."""
    lines: list[tuple[str, ...]] = []
    good, costs, first = {}, {}, np.zeros(0)
    for name, found in results.items():
        good[name] = np.array([x.converged and violation(robot, one, x) <= ALLOWED for one, x in zip(many, found, strict=True)])
        costs[name] = np.array([cost(x) for x in found])
    for name, found in results.items():
        both = good["ours"] & good[name]
        times = 1e3 * np.array([x.seconds for x in found])
        first = first if len(first) else times
        p50, p99 = np.percentile(times, [50, 99])
        ratios = p50 / np.percentile(first, 50), p99 / np.percentile(first, 99)
        lines.append((
            f"{spread} rad", name, f"{good[name].sum()} of {len(many)}", f"{np.median([x.iterations for x in found]):.0f}",
            f"{p50:.2f}", f"{p99:.1f}", f"{ratios[0]:.1f}", f"{ratios[1]:.1f}",
            f"{costs['ours'][both].mean():.4f} / {costs[name][both].mean():.4f}",
        ))  # fmt: skip
    return lines


HEAD = (
    "joints differ by up to", "solver", "solved", "iterations", "p50 [ms]", "p99 [ms]", "p50 / ours", "p99 / ours",
    "mean cost where both solve, ours / theirs",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csqp", metavar="PYTHON", help="a Python interpreter with mim-solvers")
    parser.add_argument("--fatrop", metavar="PYTHON", nargs="?", const=sys.executable, help="a Python interpreter with CasADi")
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    robot = without_losses(str(fw.example("panda")))
    print(machine())
    peers = {"FATROP": ("fatrop_peer.py", options.fatrop), "CSQP": ("csqp_peer.py", options.csqp)}
    sets = [reaches(robot, options.count, spread) for spread in SPREADS]
    every = [one for many in sets for one in many]
    results = {"ours": ours(robot, every)}
    limits = robot.lower, robot.upper, robot.velocity_limit, robot.effort_limit
    common = {"path": str(fw.example("panda")), "hand": HAND, "step": STEP, "knots": KNOTS, "weights": [VELOCITY, EFFORT]}
    with tempfile.TemporaryDirectory() as folder:
        numbers = Path(folder) / "numbers.json"
        numbers.write_text(json.dumps(common | {"limits": [x.tolist() for x in limits], "reaches": every}))
        for name, (script, python) in peers.items():
            if python:
                results[name] = theirs(script, python, numbers)
    table = []
    for i, (spread, many) in enumerate(zip(SPREADS, sets, strict=True)):
        part = slice(i * options.count, (i + 1) * options.count)
        table += rows(robot, many, spread, {name: found[part] for name, found in results.items()})
    print(markdown(HEAD, table))


if __name__ == "__main__":
    main()
