"""Optimal control of robots that the other solvers do not model: a pendulum with one drive, a leg with a loop, and rotors.

    PYTHONPATH=examples python benchmarks/peers/optimal_control_loops.py [--rounds 25]

Pendulum and leg are those of examples/swing_and_jump.py, which needs the extra `demo`. The Mini Cheetah jumps from four feet
within friction cones. Gears couple its twelve rotors to the joints; the rotors are bodies with inertia, not an armature. Times
are processor times on one thread, the smallest of all rounds. Initial guesses stand still.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import swing_and_jump
from measure import machine, markdown
from peer_process import least_time

import featherweight as fw
from featherweight.array_types import Array

Problem = tuple[fw.OptimalControl, Array, dict[str, Any]]  # with the start and targets

LEGS = ("FR", "FL", "HR", "HL")
SHANK = 0.195  # [m]


def of_example(ocp: fw.OptimalControl, start: Array, goal: Array) -> Problem:
    """Return a problem of the example, in which all postures have the same goal."""
    return ocp, start, {name: goal for name, term in ocp.terms.items() if isinstance(term, fw.PostureTask)}


def cheetah_jumps(rise: float = 0.2) -> Problem:
    """Return the jump of the Mini Cheetah: 0.3 s of stance, and 0.2 s up to the apex."""
    description = fw.robots.mini_cheetah()
    feet = [f"{leg}_foot" for leg in LEGS]
    frames = [fw.Frame(f, f"{leg}_knee_link", fw.Pose(p=(0.0, 0.0, -SHANK))) for f, leg in zip(feet, LEGS, strict=True)]
    robot = fw.build(replace(description, frames=tuple(frames)))
    bent = {f"{leg}_abad_to_hip_j": -0.8 for leg in LEGS} | {f"{leg}_hip_to_knee_j": 1.6 for leg in LEGS}
    legs = [*(f"torso_to_{leg}_abad_j" for leg in LEGS), *bent]
    start = robot.neutral()
    for name, angle in bent.items():
        start[robot.joint(name).q_slice] = angle
    start[2] = -robot.frame_placement(feet)(start)[:, 2, 3].min()
    goal = start.copy()
    goal[2] += rise

    contacts = [fw.BilateralContact(foot, "point") for foot in feet]
    ocp = fw.OptimalControl(robot, dt=0.01, phases=[fw.Phase(30, contacts), fw.Phase(20)], driven=legs, threads=1)
    base, end = np.append(np.ones(6), np.zeros(12)), np.arange(ocp.knots + 1) == ocp.knots
    ocp.add(fw.PostureTask([robot.joints[0].name], name="base"), weight=1e5, at="end")
    ocp.add(fw.JointVelocities(base, name="speed of the base"), weight=1e4, at="end")
    ocp.add(fw.PostureTask(legs, name="joints"), weight=np.where(end, 100.0, 10.0))
    ocp.add(fw.JointVelocities(1.0 - base), weight=np.where(end, 10.0, 0.1))
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.limit(friction=0.6)
    return of_example(ocp, start, goal)


def row(name: str, problem: Problem, rounds: int) -> tuple[str, ...]:
    """Return a row of the table."""
    ocp, start, targets = problem
    ocp.solve(start, targets=targets)
    seconds, plan = least_time(lambda: ocp.solve(start, targets=targets), rounds)
    if not plan.converged:
        raise RuntimeError(f"{name}: {plan.reason}")
    took, robot = 1e3 * seconds, ocp.robot
    each = 1e3 * took / (plan.iterations + 1) / ocp.knots
    counts = (len(robot.bodies), robot.nv, ocp.knots, plan.iterations)
    return name, *map(str, counts), f"{plan.cost:.5g}", f"{took:.2f}", f"{each:.2f}"


HEAD = ("problem", "bodies", "velocities", "knots", "iterations", "cost", "solution [ms]", "iteration per knot [µs]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    print(machine())
    problems = {
        "double pendulum, swing-up by its shoulder": of_example(*swing_and_jump.pendulum()),
        "leg with a loop, jump": of_example(*swing_and_jump.leg()),
        "Mini Cheetah with rotors, jump within friction cones": cheetah_jumps(),
    }
    print(markdown(HEAD, [row(name, problem, rounds) for name, problem in problems.items()]))


if __name__ == "__main__":
    main()
