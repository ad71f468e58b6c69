"""FATROP, by CasADi's nlpsol, on the reaches of `limited_reaches`.

    python benchmarks/peers/fatrop_peer.py numbers.json found.json

Needs this library, CasADi and gcc. The controls are accelerations, and inverse dynamics gives the joint forces in limits and
costs: the problem is the same, but its steps are linear, and derivatives need fewer operations than those of forward dynamics.
Inverse dynamics and the position of the hand are CasADi SX graphs of our operations; each stage is one function, mapped over
the knots. CasADi writes all functions of the problem, with exact Jacobians and Hessians, as C code, which gcc -O3 -march=native
compiles within some minutes. FATROP gets the structure of the stages.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import casadi
import numpy as np
from peer_process import least_time

import featherweight as fw

GCC = ["gcc", "-O3", "-march=native", "-shared", "-fPIC"]
TOLERANCE = 1e-4  # 1e-6 takes 10 % longer, and changes costs by less than 1e-3
ITERATIONS = 300


def graph(f: Any, name: str) -> Any:
    """Return one of our functions as an expression graph."""
    arguments = [casadi.SX.sym(x.name, x.size) for x in f.program.inputs]
    arithmetic = fw.Arithmetic(casadi.SX, casadi.sqrt, casadi.sin, casadi.cos)
    flat = fw.evaluate(f.trace, [[x[i] for i in range(x.numel())] for x in arguments], arithmetic)
    return casadi.Function(name, arguments, [casadi.vertcat(*flat)])


class Reach:
    """The problem of all reaches, with the target as a parameter."""

    def __init__(self, given: dict[str, Any], robot: fw.Robot, folder: Path) -> None:
        self.knots, self.n = given["knots"], robot.nv
        self.limits = [np.array(x) for x in given["limits"]]
        knots, n, step, (velocity, effort) = self.knots, self.n, given["step"], given["weights"]
        inverse, hand = graph(robot.inverse_dynamics, "inverse"), graph(robot.frame_placement(given["hand"]), "hand")
        x, a = casadi.SX.sym("x", 2 * n), casadi.SX.sym("a", n)
        q, v = x[:n], x[n:]
        tau, ahead = inverse(q, v, a), v + step * a
        cost = 0.5 * step * (velocity * casadi.sumsqr(v) + effort * casadi.sumsqr(tau))
        self.forces = casadi.Function("forces", [x, a], [tau]).map(knots)
        stage = casadi.Function("stage", [x, a], [casadi.vertcat(q + step * ahead, ahead), tau, cost]).map(knots)
        states = [casadi.MX.sym(f"x{k}", 2 * n) for k in range(knots + 1)]
        controls = [casadi.MX.sym(f"a{k}", n) for k in range(knots)]
        target = casadi.MX.sym("target", 3)
        after, taus, costs = stage(casadi.horzcat(*states[:-1]), casadi.horzcat(*controls))
        unknowns, g, equal = [], [], []
        for k in range(knots):
            unknowns += [states[k], controls[k]]
            g += [states[k + 1] - after[:, k], taus[:, k]]
            equal += [True] * (2 * n) + [False] * n
        g.append(hand(states[-1][:n])[[3, 7, 11]] - target)
        equal += [True] * 3
        highest = np.append(np.tile(np.append(np.zeros(2 * n), self.limits[3]), knots), np.zeros(3))
        self.rows = {"lbg": -highest, "ubg": highest}
        problem = {
            "x": casadi.vertcat(*unknowns, states[-1]), "f": casadi.sum2(costs), "g": casadi.vertcat(*g), "p": target
        }  # fmt: skip
        options: dict[str, Any] = {
            "print_time": False, "error_on_fail": False, "structure_detection": "manual", "equality": equal, "N": knots,
            "nx": [2 * n] * (knots + 1), "nu": [n] * knots + [0], "ng": [n] * knots + [3],
            "fatrop": {"print_level": 0, "max_iter": ITERATIONS, "tol": TOLERANCE},
        }  # fmt: skip
        library = folder / "reach.so"
        with chdir(folder):
            casadi.nlpsol("reach", "fatrop", problem, options).generate_dependencies("reach.c")
        subprocess.run([*GCC, folder / "reach.c", "-o", library], check=True)
        self.solver = casadi.nlpsol("reach", "fatrop", str(library), options)

    def solve(self, one: dict[str, Any]) -> tuple[Any, ...]:
        """Return seconds, success, iterations, q, v and joint forces."""
        n, knots, (low, high, speed, _) = self.n, self.knots, self.limits
        zero, free = np.zeros(n), np.full(n, np.inf)
        start = np.append(one["start"], zero)
        first, way = np.append(start, -free), np.concatenate([low, -speed, -free])
        lower = np.concatenate([first, np.tile(way, knots - 1), low, zero])
        upper = np.concatenate([start, free, np.tile(np.concatenate([high, speed, free]), knots - 1), high, zero])
        guess = np.append(np.tile(np.append(start, zero), knots), start)
        bounds = {"lbx": lower, "ubx": upper, **self.rows}
        passed, result = least_time(lambda: self.solver(x0=guess, p=one["target"], **bounds))
        stats, parts = self.solver.stats(), np.append(np.array(result["x"]), zero).reshape(knots + 1, 3 * n)
        x, a = parts[:, : 2 * n], parts[:-1, 2 * n :]
        u = np.array(self.forces(x[:-1].T, a.T)).T
        return passed, bool(stats["success"]), int(stats["iter_count"]), x[:, :n].tolist(), x[:, n:].tolist(), u.tolist()


def main() -> None:
    given, output = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    robot = fw.load(given["path"], mimic="independent")
    with tempfile.TemporaryDirectory() as folder:
        reach = Reach(given, robot, Path(folder))
        reach.solve(given["reaches"][0])
        found = [reach.solve(one) for one in given["reaches"]]
    output.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
