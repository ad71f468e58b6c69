"""Compiled functions in CasADi, compared with CasADi's expression graphs of our functions and of adam-robotics.

    python benchmarks/peers/casadi_peer.py [--seconds 2] [ROBOT ...]

Needs an environment with casadi, adam-robotics, liecasadi and example-robot-data, and gcc for the rows of compiled graphs.
CasADi's virtual machine evaluates a graph, or CasADi writes it and its derivatives as C, which gcc -O3 -march=native compiles
unless the graph has more than LIMIT operations. "Own kernels" are the operations of our machine code as a graph. Adam's graphs
use its CRBA, RNEA and CasADi's LDL' for a fixed base, and its ABA for a floating base, with common subexpressions eliminated.
Compared calls alternate. They run from buffer to buffer, without conversions in Python; each call evaluates several states, one
after the other.

The trajectory is that of examples/reach_with_casadi.py, by the trapezoidal rule, with fixed fingers, because adam's graphs have
no prismatic joints. The Jacobian of its constraints is evaluated as Ipopt does.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import adam
import casadi
import numpy as np
import reach_with_casadi as reach
from adam.casadi import KinDynComputations
from measure import FILES, ROBOTS, machine, markdown, median_times, pivoted

import featherweight as fw
from featherweight.casadi import wrap

LIMIT = 60_000  # largest graph for gcc [operations]; larger ones take minutes
GCC = ["gcc", "-O3", "-march=native", "-shared", "-fPIC"]
STATES = 16  # per call, so that the overhead of Python is small
SOLUTIONS = 3  # the median counts
OURS, GRAPH, ADAM = "ours", "own kernels as a graph", "adam's graph"
AGREE = 1e-9  # relative to the largest entry
TRAJECTORY = ["dynamics by", "Jacobian, ms", "times ours", "Hessians", "iterations", "s", "times ours", "cost"]


class Arm(NamedTuple):
    """A robot in both libraries, from the same file."""

    robot: fw.Robot
    adam: Any

    @property
    def free(self) -> bool:
        """Return whether the base floats."""
        return self.robot.nq != self.robot.nv


class Way(NamedTuple):
    """Forward dynamics in CasADi, and compiled by gcc if possible, with or without second derivatives."""

    by: str
    dynamics: Any
    compiled: Any = None
    twice: bool = False


def load(name: str, folder: Path) -> Arm:
    """Load a robot with fixed fingers, and with explicit origins of inertias, which adam needs."""
    file, base = FILES[name]
    root = ET.parse(ROBOTS / file).getroot()
    for inertial in root.iter("inertial"):
        if inertial.find("origin") is None:
            ET.SubElement(inertial, "origin", xyz="0 0 0", rpy="0 0 0")
    for joint in root.iter("joint"):
        if joint.get("type") == "prismatic":
            joint.set("type", "fixed")
            for mimic in joint.findall("mimic"):
                joint.remove(mimic)
        for dynamics in joint.findall("dynamics"):
            joint.remove(dynamics)
    path = folder / f"{name}.urdf"
    path.write_text(ET.tostring(root, encoding="unicode"))
    robot = fw.load(path, base)
    joints = [j.name for j in robot.joints if j.type.nv == 1]
    theirs = KinDynComputations(str(path), joints, gravity=np.array([*robot.gravity, 0.0, 0.0, 0.0]))
    theirs.set_frame_velocity_representation(adam.Representations.BODY_FIXED_REPRESENTATION)
    return Arm(robot, theirs)


def adams_dynamics(arm: Arm) -> Any:
    robot, kin = arm
    q, v, tau = (casadi.SX.sym(x, n) for x, n in (("q", robot.nq), ("v", robot.nv), ("tau", robot.nv)))
    if not arm.free:
        M, h = kin.mass_matrix(np.eye(4), q)[6:, 6:], kin.bias_force(np.eye(4), q, np.zeros(6), v)[6:]
        a = casadi.ldl_solve(tau - h, *casadi.ldl(M))
    else:
        a = kin.aba(placement(q), q[7:], v[:6], v[6:], tau[6:])
    return casadi.Function("dynamics", [q, v, tau], [a], {"cse": True})


def placement(q: Any) -> Any:
    """Return the placement (4, 4) of a floating base from x, y, z and the quaternion x, y, z, w."""
    x, y, z, w = (q[k] for k in range(3, 7))
    rows = [
        casadi.horzcat(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), q[0]),
        casadi.horzcat(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x), q[1]),
        casadi.horzcat(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y), q[2]),
        casadi.SX([[0, 0, 0, 1]]),
    ]
    return casadi.vertcat(*rows)


def ways_of(arm: Arm, folder: Path) -> list[Way]:
    """Return our compiled function and the graphs."""
    f = arm.robot.forward_dynamics
    slopes = None if arm.free else arm.robot.forward_dynamics_derivatives
    ours = wrap(f, "dynamics", hessian=not arm.free, jacobian=slopes)
    graphs = {GRAPH: reach.expression_graph(f, "dynamics"), ADAM: adams_dynamics(arm)}
    compiled = [Way(by, g, *by_gcc(g, folder / str(k))) for k, (by, g) in enumerate(graphs.items())]
    return [Way(OURS, ours), *compiled]


def by_gcc(f: Any, folder: Path) -> tuple[Any, bool]:
    """Return a graph and its derivatives, compiled from CasADi's C, and whether second derivatives are included. Return no
    function without gcc, or if the first derivatives are too large for it."""
    backward = f.reverse(1)
    parts = [f, f.jacobian(), backward]
    if not shutil.which("gcc") or max(p.n_instructions() for p in parts) > LIMIT:
        return None, False
    twice = backward.jacobian()
    known = twice.n_instructions() <= LIMIT
    code = casadi.CodeGenerator("graph.c")
    for part in [*parts, twice] if known else parts:
        code.add(part)
    folder.mkdir(parents=True)
    code.generate(f"{folder}/")
    begun = time.perf_counter()
    subprocess.run([*GCC, "graph.c", "-o", "graph.so", "-lm"], cwd=folder, check=True)
    print(f"gcc took {time.perf_counter() - begun:.0f} s for a graph of {f.n_instructions()} operations", flush=True)
    return casadi.external(f.name(), str(folder / "graph.so")), known


def call_of(f: Any, x: list[Any]) -> tuple[Callable[[], Any], list[Any]]:
    """Return a call and its result arrays: the nonzero entries, one state after the other."""
    buffer, run = f.buffer()
    for k, value in enumerate(x):
        buffer.set_arg(k, memoryview(value))
    results: list[Any] = [np.zeros(f.nnz_out(k)) for k in range(f.n_out())]
    for k, y in enumerate(results):
        buffer.set_res(k, memoryview(y))

    def call(_: Any = (buffer, x, results)) -> None:  # keeps the arrays alive
        run()

    return call, results


def full(f: Any, results: list[Any], matrices: bool) -> Any:
    """Return the results of a function for STATES states: dense matrices side by side, or vectors."""
    arrays = [np.array(casadi.DM(f.sparsity_out(k), y)) for k, y in enumerate(results)]
    one = [np.reshape(y, (len(y), STATES, -1)) for y in arrays]
    return np.concatenate(one, axis=2) if matrices else np.concatenate(one)[..., 0].T


def functions(name: str, arm: Arm, ways: list[Way], seconds: float) -> list[tuple[str, str, str]]:
    """Return the cells of forward dynamics and of its Jacobian."""
    robot = arm.robot
    rng = np.random.default_rng(0)
    x = [robot.random_configuration(rng=rng, size=STATES), *rng.standard_normal((2, STATES, robot.nv))]
    if arm.free:
        x[2][:, :6] = 0.0  # adam's base has no force of its own
    given = {(way.by, False): way.dynamics for way in ways} | {(way.by, True): way.compiled for way in ways if way.compiled}
    cells = []
    for what in ("forward dynamics", "its Jacobian"):
        first = what == "forward dynamics"
        made = given if first else {key: f.jacobian() for key, f in given.items()}
        many = {key: f.map(STATES) for key, f in made.items()}
        calls = {key: call_of(f, x) for key, f in many.items()}
        times = dict(zip(calls, median_times([call for call, _ in calls.values()], seconds), strict=True))
        kept = np.arange(robot.nv) >= 0 if first else comparable(arm)
        values = {key: full(f, calls[key][1], not first)[..., kept] for key, f in many.items()}
        own, ours = values[OURS, False], times[OURS, False]
        for by in (way.by for way in ways):
            error = max(float(abs(v - own).max() / abs(own).max()) for (who, _), v in values.items() if who == by)
            if not error < AGREE:
                raise ArithmeticError(f"{name}, {what}: {by} differs from ours by {error:.1e}")
            pair = [t for t in (times[by, False], times.get((by, True))) if t is not None]
            texts = [f"{1e6 * t / STATES:.2f}" + ("" if by == OURS else f" ({t / ours:.1f})") for t in pair]
            cells.append((f"{name}, {what}", by, ", by gcc ".join(texts)))
    return cells


def comparable(arm: Arm) -> Any:
    """Return the columns that are comparable: the functions differ off the sphere of unit quaternions, and by forces on the
    base."""
    robot, base = arm.robot, 6 if arm.free else 0
    by_q = np.ones(robot.nq, bool)
    by_q[3 : 3 + robot.nq - robot.nv + base // 2] = not arm.free
    return np.concatenate([by_q, np.ones(robot.nv, bool), np.arange(robot.nv) >= base])


def reaching(arm: Arm, ways: list[Way], seconds: float) -> list[list[str]]:
    """Return the rows of the example's trajectory: the Jacobian of its constraints, and solutions by Ipopt."""
    robot = arm.robot
    reach.START = reach.START[: robot.nq]
    place = robot.frame_placement(reach.HAND)
    q = casadi.SX.sym("q", robot.nq)
    theirs = casadi.Function("hand", [q], [arm.adam.forward_kinematics(reach.HAND, np.eye(4), q)], {"cse": True})
    hands = {OURS: wrap(place, "hand", hessian=True), GRAPH: reach.expression_graph(place, "hand"), ADAM: theirs}
    plain = [(way.by, way.dynamics, hands[way.by], True) for way in ways]
    compiled = [(f"{way.by}, by gcc", way.compiled, hands[way.by], way.twice) for way in ways if way.compiled]
    every = [*plain, *compiled]
    jacobians = median_times([constraints_jacobian(robot, f, hand) for _, f, hand, _ in every], seconds)
    rows = []
    for exact in (False, True):
        chosen = [(way, t) for way, t in zip(every, jacobians, strict=True) if way[3] or not exact]
        rounds = [[reach.solve(robot, f, hand, exact) for (_, f, hand, _), _ in chosen] for _ in range(SOLUTIONS)]
        passed = np.median([[solution[2] for solution in again] for again in rounds], axis=0)
        for ((by, _, _, _), t), seconds_passed, (_, _, _, costs) in zip(chosen, passed, rounds[0], strict=True):
            cells = [by, f"{1e3 * t:.3f}", f"{t / jacobians[0]:.1f}", "exact" if exact else "limited memory"]
            solved = [str(len(costs) - 1), f"{seconds_passed:.2f}", f"{seconds_passed / passed[0]:.1f}"]
            rows.append([*cells, *solved, f"{costs[-1]:.6f}"])
    return rows


def constraints_jacobian(robot: fw.Robot, dynamics: Any, hand: Any) -> Callable[[], Any]:
    """Return a call that evaluates the Jacobian as Ipopt does."""
    problem, guess = reach.transcribed(robot, dynamics, hand)
    solver = casadi.nlpsol("solver", "ipopt", problem, {"ipopt.hessian_approximation": "limited-memory"})
    return call_of(solver.get_function("nlp_jac_g"), [np.ascontiguousarray(guess)])[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", default=["panda", "talos_reduced"])
    parser.add_argument("--seconds", type=float, default=2.0, help="time of each comparison [s]")
    given = parser.parse_args()
    print(f"{machine()}; CasADi {casadi.__version__}\n")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        arms = {name: load(name, folder) for name in given.robots}
        ways = {name: ways_of(arm, folder / name) for name, arm in arms.items()}
        cells = [cell for name, arm in arms.items() for cell in functions(name, arm, ways[name], given.seconds)]
        print(pivoted("µs (times ours)", cells), end="\n\n", flush=True)
        if "panda" in arms:
            print(markdown(TRAJECTORY, reaching(arms["panda"], ways["panda"], given.seconds)))


if __name__ == "__main__":
    main()
