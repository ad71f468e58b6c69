"""Optimal control compared with Crocoddyl and mim-solvers: times of a solution and of an iteration, on one thread.

    make .venv-crocoddyl/.made
    python benchmarks/peers/optimal_control_peer.py --peers .venv-crocoddyl/bin/python [--only "Panda, reach"] [--rounds 15]

All solvers minimize the same costs from the same guess, with Gauss-Newton curvature: Crocoddyl by FDDP and mim-solvers by SQP,
both with Crocoddyl's models. They run in another process, because they need their own Pinocchio. Ours and FDDP stop if an
iteration promises less than 1e-6 of 1 + the cost, SQP at this cost. Solvers alternate, with three solutions in a row; times are
the smallest processor times, which depend little on other programs. Then the script measures model predictive control of Panda
(30 knots, one iteration and shift per tick), a thousand problems of 30 knots on all processors, and ticks of MPPI, by which
Panda reaches around a wall.

`limited_reaches.py` compares with solvers that support limits; `optimal_control_loops.py` has robots with loops.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from control_problems import PROBLEMS, ControlProblem, as_json
from measure import machine, markdown
from peer_process import PeerProcess, least_time

import featherweight as fw
from featherweight.array_types import Array
from featherweight.engine.threads import processors


def without_losses(path: str, base: str = "fixed") -> fw.Robot:
    """Return the robot of a file without couplings, damping and dry friction."""
    description = fw.read(path, mimic="independent")
    joints = tuple(replace(j, damping=0.0, dry_friction=0.0) for j in description.joints)
    return fw.build(replace(description, joints=joints), base)


def robot_of(p: ControlProblem) -> tuple[fw.Robot, str]:
    """Return the robot without couplings, damping and friction, which Crocoddyl does not support, and its file."""
    path = str(fw.example(Path(p.robot).stem))
    return without_losses(path, "floating" if p.floating else "fixed"), path


def states_of(p: ControlProblem, robot: fw.Robot) -> tuple[Array, Array]:
    """Return start and goal (nq)."""
    start = robot.neutral()
    for name, x in p.arms.items():
        start[robot.joint(name).q_slice] = x
    feet = [frame for _, frames in p.phases for frame in frames]
    if feet:
        start[2] = -robot.frame_placement(feet)(start)[:, 2, 3].min()
    goal = start.copy()
    if p.rise:
        goal[2] += p.rise
    return start, goal


def problem_of(p: ControlProblem, robot: fw.Robot) -> fw.OptimalControl:
    """Return our optimal control problem."""
    kind = "point" if p.size == 3 else "weld"
    phases = [fw.Phase(knots, [fw.BilateralContact(frame, kind) for frame in frames]) for knots, frames in p.phases]
    ocp = fw.OptimalControl(robot, dt=p.step, phases=phases, threads=1)

    def weights(way: float, end: float) -> Array:
        return np.append(np.full(p.knots, way), end)

    joints = [j.name for j in robot.joints if j.type.nv < 6]
    ocp.add(fw.PostureTask(joints, name="joints"), weight=weights(*p.posture))
    speeds = np.ones(robot.nv)
    if p.floating and any(p.base):
        root = robot.joints[0].name
        ocp.add(fw.PostureTask([root], name="base"), weight=p.base[0], at="end")
        speeds[:6] = 0.0
        ocp.add(fw.JointVelocities(1.0 - speeds, name="speed of the base"), weight=p.base[1], at="end")
    ocp.add(fw.JointVelocities(speeds), weight=weights(*p.velocity))
    ocp.add(fw.Effort(), weight=p.effort)
    if p.hand:
        ocp.add(fw.FrameTask(p.hand[0], kind="position", name="hand"), weight=weights(*p.hand[2:]))
    if p.center:
        ocp.add(fw.CenterOfMassTask(), weight=weights(*p.center[1:]))
    return ocp


def targets_of(p: ControlProblem, robot: fw.Robot, start: Array, goal: Array) -> dict[str, Any]:
    targets: dict[str, Any] = {"joints": goal}
    if p.floating and any(p.base):
        targets["base"] = goal
    if p.hand:
        targets["hand"] = p.hand[1]
    if p.center:
        targets["center of mass"] = robot.center_of_mass(start) - [0.0, 0.0, p.center[0]]
    return targets


def still_controls(p: ControlProblem, robot: fw.Robot, ocp: fw.OptimalControl, start: Array) -> Array:
    """Return least-squares controls that hold the robot still, zero in flight."""
    found = []
    for phase in ocp.phases:
        columns = [np.eye(robot.nv)[list(ocp.driven)].T]
        if phase.contacts:
            columns.append(robot.operational_space(phase.contacts).jacobian(start).T)
        u = np.linalg.lstsq(np.hstack(columns), robot.gravity_force(start))[0][: ocp.nu]
        found.append(np.tile(u if phase.contacts or not p.floating else 0.0 * u, (phase.knots, 1)))
    return np.concatenate(found)


PEERS: dict[str, list[str]] = {"Crocoddyl, FDDP": [], "mim-solvers, SQP": ["SQP"]}


def rows(name: str, python: str, rounds: int) -> list[tuple[str, ...]]:
    """Return the rows of our solver and of the peers."""
    p = PROBLEMS[name]
    robot, path = robot_of(p)
    start, goal = states_of(p, robot)
    ocp = problem_of(p, robot)
    u = still_controls(p, robot, ocp, start)
    targets = targets_of(p, robot, start, goal)
    guess = fw.optimal_control.problem.Plan(
        np.tile(start, (p.knots + 1, 1)), np.zeros((p.knots + 1, robot.nv)), u, np.zeros(0), 0.0, 0.0, False, 0, ""
    )
    names = [j.name for j in robot.joints if j.type.nv < 6]
    plan = ocp.solve(start, targets=targets, guess=guess, iterations=200)
    times: dict[str, list[float]] = {solver: [] for solver in ("ours", *PEERS)}
    found = {"ours": (plan.cost, plan.iterations)}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        numbers = Path(folder) / "numbers.json"
        numbers.write_text(json.dumps(as_json(names, start, goal, u.tolist(), path)))
        peers = {}
        for solver, more in PEERS.items():
            peers[solver] = stack.enter_context(PeerProcess("crocoddyl_peer.py", [name, str(numbers), *more], python))
            found[solver] = (peers[solver].ready["cost"], peers[solver].ready["iterations"] - 1)
        for _ in range(rounds):
            solve = partial(ocp.solve, start, targets=targets, guess=guess, iterations=200)
            times["ours"].append(least_time(solve, long=10.0)[0])
            for solver, peer in peers.items():
                times[solver].append(peer.run())
    lines: list[tuple[str, ...]] = []
    first = (1.0, 1.0)
    for solver, (cost, iterations) in found.items():
        took = 1e3 * min(times[solver])
        each = 1e3 * took / (iterations + 1) / p.knots
        first = (took, each) if solver == "ours" else first
        lines.append((
            name, str(robot.nv), str(p.knots), solver, f"{cost:.6g}", str(iterations), f"{took:.2f}", f"{took / first[0]:.1f}",
            f"{each:.2f}", f"{each / first[1]:.1f}",
        ))  # fmt: skip
    return lines


HEAD = (
    "problem", "velocities", "knots", "solver", "cost", "iterations", "solution [ms]", "times ours",
    "iteration per knot [µs]", "times ours",
)  # fmt: skip


def reach(knots: int, threads: int | None) -> tuple[fw.OptimalControl, Array, list[float]]:
    """Return Panda's reach for ticks and batches, with coupled fingers."""
    robot = fw.load(fw.example("panda"))
    ocp = fw.OptimalControl(robot, dt=0.01, knots=knots, threads=threads)
    ocp.add(fw.FrameTask("panda_hand_tcp", kind="position", name="hand"), weight=100.0)
    ocp.add(fw.PostureTask(), weight=0.1)
    ocp.add(fw.JointVelocities(), weight=np.append(np.full(knots, 0.1), 1.0))
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.limit(efforts=True)
    return ocp, np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8, 0.02]), [0.35, -0.45, 0.35]


def ticks(count: int) -> Array:
    """Return the times [ms] of ticks of a controller in a loop with a simulation."""
    ocp, q, target = reach(30, 1)
    mpc = fw.Controller(ocp, frequency=100, targets={"hand": target, "posture": q})
    sim = fw.Simulation(ocp.robot, dt=0.01, q=q)
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        tau = mpc(sim.time, sim.q, sim.v)
        times.append(time.perf_counter() - begun)
        sim.step(tau)
    return 1e3 * np.array(times[1:])


def iterations_of_many(count: int) -> tuple[float, int]:
    """Return iterations per second of parallel problems, and the number that converge."""
    ocp, q, _ = reach(30, None)
    targets = np.random.default_rng(0).uniform([0.2, -0.5, 0.2], [0.6, 0.5, 0.7], (count, 1, 3))
    many = np.tile(q, (count, 1))
    rates, plans = [], None
    for _ in range(5):
        begun = time.perf_counter()
        plans = ocp.solve(many, targets={"hand": targets})
        rates.append(plans.iterations.sum() / (time.perf_counter() - begun))
    assert plans is not None
    return float(np.median(rates)), int(plans.converged.sum())


def sampling_ticks(count: int) -> tuple[Array, Array]:
    """Return times [ms] of ticks of MPPI with 1000 samples of 30 knots, and distances [m] of the hand from its target."""
    robot, drives = fw.load(fw.example("panda")), fw.PD(stiffness=300.0, damping=40.0)
    wall = fw.Shape("wall", None, fw.ShapeType.BOX, (0.5, 0.03, 0.45), fw.Pose(p=(0.65, 0.0, 0.225)))
    arm, target = ["panda_link4", "panda_link5", "panda_link6", "panda_link7"], [0.5, 0.35, 0.4]
    ocp = fw.OptimalControl(robot, dt=0.03, knots=30, actuators=drives)
    ocp.add(fw.FrameTask("panda_hand_tcp", kind="position", name="hand"), weight=300.0)
    ocp.add(fw.JointVelocities(), weight=1.0)
    ocp.add(fw.JointForces(), weight=1e-5)
    ocp.require(fw.clearance(robot, [wall], bodies=arm, balls=3, name="wall"), 0.02, np.inf, weight=100.0)
    mppi = fw.SamplingController(ocp, samples=1000, noise=0.1, temperature=1.0, penalty=1e3, targets={"hand": target})
    sim = fw.Simulation(robot, 5e-3, q=[-0.9, 0.3, 0.0, -2.0, 0.0, 2.3, 0.8, 0.02], shapes=False, actuators=drives)
    times, away = [], []
    for _ in range(count):
        begun = time.perf_counter()
        tau, control = mppi(sim.time, sim.q, sim.v)
        times.append(time.perf_counter() - begun)
        for _ in range(6):
            sim.step(tau, control)
        away.append(np.linalg.norm(robot.frame_placement("panda_hand_tcp")(sim.q)[:3, 3] - target))
    return 1e3 * np.array(times[1:]), np.array(away)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", metavar="PYTHON", help="a Python interpreter with mim-solvers; without it, no table")
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print(f"{machine()}; {processors()} threads for many problems and for samples\n")
    if options.peers:
        found = [line for name in options.only for line in rows(name, options.peers, options.rounds)]
        print(markdown(HEAD, found), end="\n\n", flush=True)
    tick, (sampled, away) = ticks(1000), sampling_ticks(200)
    table = [
        [name, *(f"{x:.3f}" for x in np.percentile(times, [50, 99, 100]))]
        for name, times in (
            ("Panda, one iteration, 30 knots", tick),
            ("Panda around a wall, MPPI, 1000 samples of 30 knots", sampled),
        )
    ]
    print(markdown(["tick of a controller", "median [ms]", "p99 [ms]", "longest [ms]"], table), end="\n\n")
    rate, converged = iterations_of_many(1024)
    many = [["1024 of Panda, 30 knots", f"{rate:,.0f}", str(converged)]]
    print(markdown(["problems at once", "iterations/s", "converge"], many))
    print(f"\nAfter MPPI the hand is {1e3 * away[-50:].mean():.0f} mm from its target")


if __name__ == "__main__":
    main()
