"""Contact impulses of robots: our solver compared with convex solvers by time and residual, with 3 to 3000 unknowns.

    pip install 'featherweight[solvers]'
    python benchmarks/peers/contact_solvers.py [--limit 20] [--only talos]

All solvers get the same A and b of the same robots, and iterate until the natural residual of Coulomb's law is 1e-8 of the
largest velocity. Convex solvers solve a sequence of problems, shifted by s_n = mu |u_t| of the previous solution
(mu (|u_t1| + |u_t2|) for friction pyramids), with relaxation if the shift oscillates. They are set up once. The problems of the
sequence differ only in the vector, and start from the previous solution if the solver can. There are three cases:

    convex   one problem without a shift, the convex part of Coulomb's law (with its own residual)
    cold     Coulomb's law from zero
    warm     from impulses and shifts of the previous step; velocities differ by 1 %

The setup counts, because A changes in every step. Contacts are scaled to unit diagonals for the other solvers. Each solver runs
on one thread in its own process. Cells contain milliseconds, the residual over the largest velocity, and in brackets the number
of convex problems (for our solver, of Newton and interior-point steps). A cell ends in ! if the residual is missed, and
contains "over 20 s" after the time limit.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from contact_scenes import SCENES, Scene
from measure import machine, markdown

from featherweight.array_types import Array
from featherweight.contact import impulses
from featherweight.contact.laws import Problem

TOLERANCE = 1e-8  # relative to the largest velocity
INNER = 1e-10  # tolerance of convex solvers, in scaled variables
RELAXED = 0.7  # relaxation if full steps to the next shift oscillate
GAP = 1e-13  # tolerance of energy, in scaled variables
CASES = ("convex", "cold", "warm")


# ---- solvers


class Convex:
    """Minimization of 1/2 xᵀ P x + qᵀ x over cones, set up once; `solve` takes any q and can start from x with velocities u."""

    module = ""
    pyramid = False

    def __init__(self, P: Array, mu: Array, limit: float) -> None:
        self.api = import_module(self.module)
        self.P, self.mu, self.limit, self.fresh = P, mu, limit, True
        k, m = len(mu), len(P)
        self.G = np.zeros((4 * k if self.pyramid else m, m))  # G x in the cones: nonnegative, or of second order
        for i in range(k):
            if self.pyramid:
                self.G[4 * i : 4 * i + 4, 3 * i : 3 * i + 3] = [[mu[i], 1, 0], [mu[i], -1, 0], [mu[i], 0, 1], [mu[i], 0, -1]]
            else:
                self.G[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = np.diag([mu[i], 1, 1])
        self.setup()

    def setup(self) -> None:
        raise NotImplementedError

    def solve(self, q: Array, x: Array, u: Array) -> Array:
        raise NotImplementedError

    def multipliers(self, u: Array) -> Array:
        """Return y in the dual cones with Gᵀ y = u."""
        k = len(self.mu)
        un, ut = u.reshape(k, 3)[:, 0], u.reshape(k, 3)[:, 1:]
        if not self.pyramid:
            return np.column_stack([un / self.mu, ut]).ravel()
        spare = np.maximum(un / self.mu - np.abs(ut).sum(axis=1), 0.0)[:, None] / 4
        return np.stack([np.maximum(ut, 0.0) + spare, np.maximum(-ut, 0.0) + spare], axis=2).ravel()


def sparse(M: Array) -> Any:
    return import_module("scipy.sparse").csc_matrix(M)


class Clarabel(Convex):
    module = "clarabel"

    def setup(self) -> None:
        settings = self.api.DefaultSettings()
        settings.verbose = settings.presolve_enable = False
        settings.tol_gap_abs = settings.tol_gap_rel = 1e-16  # complementarity is the square of the residual
        settings.tol_feas = INNER
        settings.time_limit, settings.max_threads = self.limit, 1
        k, m = len(self.mu), len(self.P)
        self.solver = self.api.DefaultSolver(
            sparse(np.triu(self.P)), np.zeros(m), sparse(-self.G), np.zeros(m), [self.api.SecondOrderConeT(3)] * k, settings
        )

    def solve(self, q: Array, x: Array, u: Array) -> Array:
        self.solver.update(q=q)
        return np.array(self.solver.solve().x)


class Scs(Convex):
    module = "scs"

    def setup(self) -> None:
        data = {"P": sparse(np.triu(self.P)), "A": sparse(-self.G), "b": np.zeros(len(self.P)), "c": np.zeros(len(self.P))}
        settings = {"verbose": False, "eps_abs": INNER, "eps_rel": 0.0, "max_iters": 1000000, "time_limit_secs": self.limit}
        self.solver = self.api.SCS(data, {"q": [3] * len(self.mu)}, **settings)

    def solve(self, q: Array, x: Array, u: Array) -> Array:
        self.solver.update(c=q)
        return np.array(self.solver.solve(True, x, self.multipliers(u), self.G @ x)["x"])


class ProxQp(Convex):
    module = "proxsuite"
    pyramid = True

    def setup(self) -> None:
        dense = self.api.proxqp.dense
        self.solver = dense.QP(len(self.P), 0, len(self.G))
        self.solver.settings.eps_abs, self.solver.settings.eps_rel = INNER, 0.0
        self.solver.settings.check_duality_gap = True  # otherwise the solver accepts a balanced start as the solution
        self.solver.settings.eps_duality_gap_abs = GAP
        self.solver.settings.initial_guess = self.api.proxqp.InitialGuess.WARM_START
        low = np.zeros(len(self.G))
        self.solver.init(self.P, np.zeros(len(self.P)), None, None, self.G, low, low + 1e20)

    def solve(self, q: Array, x: Array, u: Array) -> Array:
        self.solver.update(g=q)
        self.solver.solve(x, np.zeros(0), -self.multipliers(u))
        return np.array(self.solver.results.x)


class Piqp(Convex):
    module = "piqp"
    pyramid = True

    def setup(self) -> None:
        self.solver = self.api.DenseSolver()
        s = self.solver.settings
        s.eps_abs, s.eps_rel, s.eps_duality_gap_abs, s.eps_duality_gap_rel = INNER, 0.0, GAP, 0.0
        self.solver.setup(
            np.asfortranarray(self.P), np.zeros(len(self.P)), G=np.asfortranarray(self.G), h_l=np.zeros(len(self.G))
        )

    def solve(self, q: Array, x: Array, u: Array) -> Array:
        self.solver.update(c=q)
        self.solver.solve()
        return np.array(self.solver.result.x)


class Osqp(Convex):
    module = "osqp"
    pyramid = True

    def setup(self) -> None:
        self.solver = self.api.OSQP()
        settings = {"verbose": False, "eps_abs": INNER, "eps_rel": 0.0, "max_iter": 1000000, "time_limit": self.limit}
        low = np.zeros(len(self.G))
        self.solver.setup(
            sparse(np.triu(self.P)), np.zeros(len(self.P)), sparse(self.G), low, low + np.inf, polishing=True, **settings
        )

    def solve(self, q: Array, x: Array, u: Array) -> Array:
        self.solver.update(q=q)
        self.solver.warm_start(x=x, y=-self.multipliers(u))
        return np.array(self.solver.solve(raise_error=False).x)


SOLVERS: dict[str, type[Convex] | None] = {
    "ours": None,
    "clarabel": Clarabel,
    "scs": Scs,
    "ours, pyramids": None,
    "proxqp": ProxQp,
    "piqp": Piqp,
    "osqp": Osqp,
}


def shift(problem: Problem, f: Array) -> Array:
    """Return the shift s: mu |u_t| of contacts on their normals."""
    u = (problem.A @ f + problem.b).reshape(-1, 3)
    s = np.zeros_like(u)
    s[:, 0] = problem.mu * np.linalg.norm(u[:, 1:], ord=1 if problem.pyramid else 2, axis=1)
    return np.asarray(s.ravel())


def by_convex(kind: type[Convex], problem: Problem, case: str, start: Array, limit: float) -> tuple[float, str]:
    """Return the residual over the largest velocity, and the number of convex problems."""
    ends = time.perf_counter() + limit
    unit = float(np.abs(problem.b).max())
    # one factor for all rows of a contact, so that cones remain cones
    D = np.repeat(1.0 / np.sqrt(np.diag(problem.A).reshape(-1, 3).max(axis=1)), 3)
    solver = kind(D[:, None] * problem.A * D, problem.mu, limit)
    f, s = start, shift(problem, start) if case == "warm" else np.zeros(len(D))
    part, history = 1.0, [np.inf]  # share of the step to the new shift
    for count in range(1, 1000000):
        u = problem.A @ f + problem.b + s
        f = unit * D * solver.solve(D * (problem.b + s) / unit, f / (unit * D), D * u / unit)
        found = shift(problem, f)
        if case == "convex":  # impulses of the convex problem obey Coulomb's law if its own shift is subtracted from b
            return impulses.natural_residual(problem._replace(b=problem.b - found), f) / unit, f"{count}"
        history.append(impulses.natural_residual(problem, f) / unit)
        if history[-1] <= TOLERANCE or not history[-1] < 1e9 or time.perf_counter() > ends:
            break
        if count > 10 and history[-1] > 0.5 * history[-11]:
            part = RELAXED
        s = s + part * (found - s)
    return history[-1], f"{count}"


def by_ours(problem: Problem, start: Array) -> tuple[float, str]:
    unit = float(np.abs(problem.b).max())
    solution = impulses.solve_problem(problem, start, TOLERANCE * unit)
    return impulses.natural_residual(problem, solution.impulses) / unit, f"{solution.newton_steps}+{solution.interior_steps}"


# ---- measuring


def measure(given: Scene, name: str, starts: tuple[Array, Array], limit: float, send: Any) -> None:
    """Send a cell for each case, after a signal that all is loaded. Runs in its own process."""
    kind, pyramid = SOLVERS[name], "pyramids" in name or bool(SOLVERS[name] and SOLVERS[name].pyramid)  # type: ignore[union-attr]
    tiny = Problem(np.eye(3), -np.ones(3), np.ones(1), np.zeros(0), np.zeros(0), pyramid)

    def run(problem: Problem, case: str, start: Array) -> tuple[float, str]:
        return by_convex(kind, problem, case, start, limit) if kind else by_ours(problem, start)

    run(tiny, "cold", np.zeros(3))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # OSQP prints even if verbose is off
    send.send("ready")
    for case in CASES:
        problem = (given.later if case == "warm" else given.now)._replace(pyramid=pyramid)
        start = starts[pyramid] if case == "warm" else np.zeros(len(problem.b))
        if case == "convex" and not kind:
            send.send("")
            continue
        times: list[float] = []
        while sum(times) < 1.0 and len(times) < 200:
            begun = time.perf_counter()
            left, count = run(problem, case, start)
            times.append(time.perf_counter() - begun)
        if times[0] > limit:
            send.send(f"over {limit:g} s, {left:.0e} ({count})")
            continue
        cell = f"{1e3 * statistics.median(times):.3g}, {left:.0e} ({count})"
        send.send(cell + ("" if left <= TOLERANCE else "!"))


def cells(given: Scene, name: str, starts: tuple[Array, Array], limit: float) -> list[str]:
    """Return the cells of a solver for a scene."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(False)
    process = context.Process(target=measure, args=(given, name, starts, limit, send))
    process.start()
    send.close()
    found: list[str] = []
    try:
        receive.poll(60.0) and receive.recv()
        while len(found) < len(CASES):
            found.append(receive.recv() if receive.poll(2.5 * limit) else f"over {limit:g} s")
            if found[-1] == f"over {limit:g} s":
                found += ["not tried"] * (len(CASES) - len(found))
    except EOFError:
        found += ["failed"] * (len(CASES) - len(found))
    process.kill()
    process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=20.0, help="time limit of a solution [s]")
    parser.add_argument("--only", nargs="*", default=list(SCENES), choices=SCENES)
    options = parser.parse_args()
    for library in ("OPENBLAS", "OMP", "MKL", "RAYON"):  # one thread in the processes that start now
        os.environ[f"{library}_NUM_THREADS"] = "1"
    names = [n for n, kind in SOLVERS.items() if kind is None or find_spec(kind.module)]
    print(
        f"{machine()}; {', '.join(f'{n} is not installed' for n in SOLVERS if n not in names) or 'all solvers'}\n", flush=True
    )
    header = ["problem (unknowns)", "case", *names]
    print(markdown(header, []), flush=True)
    for key in options.only:
        given = SCENES[key]()
        m = len(given.now.b)
        tolerance = TOLERANCE * float(np.abs(given.now.b).max())
        first, second = (
            impulses.solve_problem(given.now._replace(pyramid=p), np.zeros(m), tolerance).impulses for p in (False, True)
        )
        columns = [cells(given, n, (first, second), options.limit) for n in names]
        rows = [[f"{given.name} ({m})", case, *(c[i] for c in columns)] for i, case in enumerate(CASES)]
        print("\n".join(markdown(header, rows).splitlines()[2:]), flush=True)


if __name__ == "__main__":
    main()
