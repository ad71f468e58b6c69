"""Contact impulses of robots: our solver beside convex ones, by time and residual, on 3 to 3000 unknowns.

    pip install 'featherweight[rolled,solvers]'
    python benchmarks/peers/contact_solvers.py [--limit 20] [--only talos]

All get the same A and b of the same robots, and go on until the natural residual of Coulomb's law is 1e-8 of the greatest
velocity. Convex solvers do that by a sequence of problems, shifted by s_n = mu |u_t| of the one before (mu (|u_t1| + |u_t2|)
where friction is a pyramid); they are set up once, each problem of the sequence changes the vector only, and goes on from the
one before if the solver can. Three cases:

    convex   one problem, no shift: what Coulomb's law is made of (its own residual)
    cold     Coulomb's law from nothing
    warm     from impulses and shifts of the step before; velocities differ by 1 %

Setting up counts, as A changes in every step. Contacts are scaled to unit diagonals for the others. One thread, a process for
each solver. Cells are milliseconds, residual over greatest velocity, and in brackets the number of convex problems, of ours
that of sweeps and Newton steps. A cell ends in ! where the residual is missed, and says "over 20 s" where the time is.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from measure import FILES, ROBOTS, machine, markdown

import featherweight as fw
from featherweight.simulation import impulses

Array = np.ndarray[Any, np.dtype[Any]]
TOLERANCE = 1e-8  # of the greatest velocity
INNER = 1e-10  # what convex solvers are asked for, in scaled variables
GAP = 1e-13  # of energy, in scaled variables
STEP = 2e-3  # [s]
UPWARD = np.eye(6)[[2, 0, 1]]  # rows of a contact on flat ground: normal, tangents
CASES = ("convex", "cold", "warm")


# ---- problems


@dataclass(frozen=True, eq=False)
class Scene:
    """A problem, and the same a step later."""

    name: str
    now: impulses.Problem
    later: impulses.Problem


def scene(name: str, robot: fw.Robot, q: Array, at: Sequence[fw.Contact], v: Array, mu: float, W: Array | None = None) -> Scene:
    """Contacts of a robot that drives hold at rest, but for velocities v; rows of contacts are W of those in `at`, if given."""
    J, A = robot.contact_jacobian(at)(q), robot.delassus(at)(q)
    if W is not None:
        J, A = W @ J, W @ A @ W.T
    loose = [k for j in robot.joints if j.type == "floating" for k in range(j.v_slice.start, j.v_slice.stop)]
    gravity = robot.gravity_force(q)
    tau = gravity - J.T @ np.linalg.lstsq(J[:, loose].T, gravity[loose], rcond=None)[0]
    tau[loose] = 0.0
    none, k = np.zeros(0), len(A) // 3
    changed = v * (1.0 + 0.01 * np.random.default_rng(9).standard_normal(len(v)))
    b = [J @ (w + STEP * robot.forward_dynamics(q, w, tau)) for w in (v, changed)]
    first, second = (impulses.Problem(np.ascontiguousarray(A), x, np.full(k, mu), none, none) for x in b)
    return Scene(name, first, second)


def block(mass: float, x: float, y: float, z: float) -> fw.Inertia:
    """A solid box with the lengths x, y, z."""
    xx, yy, zz = (mass / 12 * square for square in (y * y + z * z, x * x + z * z, x * x + y * y))
    return fw.Inertia(mass, (0.0, 0.0, 0.0), (xx, 0.0, 0.0, yy, 0.0, zz))


def at(x: float, y: float, z: float) -> Array:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def corners(x: float, y: float, z: float) -> list[Array]:
    return [at(i * x, j * y, z) for i in (-1, 1) for j in (-1, 1)]


def free_bodies(inertias: Sequence[fw.Inertia]) -> fw.Robot:
    names = [f"body{i}" for i in range(len(inertias))]
    bodies = [fw.Body(n, i) for n, i in zip(names, inertias, strict=True)]
    return fw.build(fw.Mechanism(bodies, [fw.Joint(f"free{n}", fw.JointType.FLOATING, "world", n) for n in names]))


def point() -> Scene:
    robot = free_bodies([block(1.0, 0.1, 0.1, 0.1)])
    contact = [fw.Contact("body0", rows=UPWARD, placement=at(0.0, 0.0, -0.05))]
    return scene("point on a cube", robot, robot.neutral(), contact, np.array([0.1, 0.05, -0.1, 0, 0, 0]), 0.5)


def box() -> Scene:
    robot = free_bodies([block(1.0, 0.4, 0.3, 0.2)])
    contacts = [fw.Contact("body0", rows=UPWARD, placement=T) for T in corners(0.2, 0.15, -0.1)]
    return scene("box", robot, robot.neutral(), contacts, np.array([0.02, 0, 0, 0.25, 0.1, 0.1]), 0.5)


def talos() -> Scene:
    path, base = FILES["talos_reduced"]
    robot = fw.load(ROBOTS / path, base=base)
    q = robot.neutral()
    for joint in robot.joints:
        for k, angle in ((3, -0.411354), (4, 0.859395), (5, -0.448041)):
            if joint.name in (f"leg_left_{k}_joint", f"leg_right_{k}_joint"):
                q[joint.q_slice] = angle  # half-sitting, soles on the ground
    feet = [fw.Contact(f"{s}_sole_link", rows=UPWARD, placement=T) for s in ("left", "right") for T in corners(0.1, 0.06, 0.0)]
    v = 0.05 * np.random.default_rng(0).standard_normal(robot.nv)
    return scene("talos", robot, q, feet, v, 0.6)


def stack(heavy: float) -> Scene:
    """Ten boxes; the one at the top is `heavy` times as heavy as the others."""
    half, n = np.array([0.2, 0.15, 0.1]), 10
    robot = free_bodies([block(1.0 if i < n - 1 else heavy, *2 * half) for i in range(n)])
    W = np.zeros((12 * n, 6 * n))
    for i in range(n):
        for c, T in enumerate(corners(half[0], half[1], 0.0)):
            rows = slice(12 * i + 3 * c, 12 * i + 3 * c + 3)
            for body, sign in ((i, 1.0), (i - 1, -1.0)):
                if body >= 0:
                    x, y, z = *T[:2, 3].tolist(), -sign * half[2]
                    across = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])
                    W[rows, 6 * body : 6 * body + 6] = sign * (UPWARD[:, :3] @ np.hstack([np.eye(3), across]))
    v = 0.01 * np.random.default_rng(1).standard_normal(robot.nv)
    contacts = [fw.Contact(f"body{i}") for i in range(n)]
    name = "ten boxes" + (f", the top {heavy:g} times as heavy" if heavy != 1.0 else "")
    return scene(name, robot, robot.neutral(), contacts, v, 0.5, W)


def centipede(feet: int) -> Scene:
    """Segments on joints that turn about y, z and x in turn, two legs of two joints on each, a point for a foot."""
    rng = np.random.default_rng(feet)
    bodies, joints, contacts = [], [], []
    for i in range(feet // 2):
        bodies.append(fw.Body(f"segment{i}", block(rng.uniform(0.5, 2.0), 0.1, 0.1, 0.05)))
        if i:
            axis = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))[i % 3]
            place = fw.Pose(p=(0.12, 0.0, 0.0))
            joints.append(
                fw.Joint(f"spine{i}", fw.JointType.REVOLUTE, f"segment{i - 1}", f"segment{i}", place, axis, armature=0.01)
            )
        for side, name in ((1.0, f"left{i}"), (-1.0, f"right{i}")):
            bodies += [fw.Body("hip" + name, block(0.1, 0.03, 0.03, 0.03)), fw.Body("leg" + name, block(0.2, 0.02, 0.1, 0.05))]
            for kind, parent, child, y, axis in (
                ("yaw", f"segment{i}", "hip" + name, 0.06, (0.0, 0.0, 1.0)),
                ("lift", "hip" + name, "leg" + name, 0.03, (1.0, 0.0, 0.0)),
            ):
                place = fw.Pose(p=(0.0, side * y, 0.0))
                joints.append(fw.Joint(kind + name, fw.JointType.REVOLUTE, parent, child, place, axis, armature=0.01))
            contacts.append(fw.Contact("leg" + name, rows=UPWARD, placement=at(rng.uniform(-0.02, 0.02), side * 0.1, -0.1)))
    robot = fw.build(fw.Mechanism(bodies, joints), base="floating", execution="rolled")
    v = 0.05 * rng.standard_normal(robot.nv)
    return scene(f"centipede, {feet} feet", robot, robot.neutral(), contacts, v, 0.6)


SCENES: dict[str, Callable[[], Scene]] = {
    "point": point,
    "box": box,
    "talos": talos,
    "stack": lambda: stack(1.0),
    "heavy": lambda: stack(1000.0),
    **{f"centipede{n}": (lambda n=n: centipede(n)) for n in (30, 100, 300, 1000)},  # type: ignore[misc]
}


# ---- solvers


class Convex:
    """min 1/2 xᵀ P x + qᵀ x over cones, set up for a problem once; `solve` for any q, from x with velocities u if it can."""

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
        """y in the dual cones with Gᵀ y = u."""
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
        settings.tol_gap_abs = settings.tol_gap_rel = 1e-16  # complementarity is the square of what the residual sees
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
        self.solver.settings.check_duality_gap = True  # else a start that balances is taken for the solution
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


def shift(problem: impulses.Problem, f: Array) -> Array:
    """s: mu |u_t| of contacts on their normals."""
    u = (problem.A @ f + problem.b).reshape(-1, 3)
    s = np.zeros_like(u)
    s[:, 0] = problem.mu * np.linalg.norm(u[:, 1:], ord=1 if problem.pyramid else 2, axis=1)
    return s.ravel()


def by_convex(kind: type[Convex], problem: impulses.Problem, case: str, start: Array, limit: float) -> tuple[float, str]:
    """Residual over greatest velocity, and the number of convex problems."""
    ends = time.perf_counter() + limit
    unit = float(np.abs(problem.b).max())
    D = np.repeat(1.0 / np.sqrt(np.diag(problem.A).reshape(-1, 3).max(axis=1)), 3)  # the same for a contact: cones stay
    solver = kind(D[:, None] * problem.A * D, problem.mu, limit)
    f, s = start, shift(problem, start) if case == "warm" else np.zeros(len(D))
    for count in range(1, 100000):
        u = problem.A @ f + problem.b + s
        f = unit * D * solver.solve(D * (problem.b + s) / unit, f / (unit * D), D * u / unit)
        s = shift(problem, f)
        if case == "convex":  # impulses of the convex problem obey Coulomb's law with its own shift taken from b
            return impulses.residual(replace(problem, b=problem.b - s), f) / unit, f"{count}"
        left = impulses.residual(problem, f) / unit
        if left <= TOLERANCE or not left < 1e9 or time.perf_counter() > ends:
            break
    return left, f"{count}"


def by_ours(problem: impulses.Problem, start: Array) -> tuple[float, str]:
    unit = float(np.abs(problem.b).max())
    solution = impulses.solve(problem, start, TOLERANCE * unit)
    return impulses.residual(problem, solution.impulses) / unit, f"{solution.sweeps}+{solution.newton_steps}"


# ---- measuring


def measure(given: Scene, name: str, starts: tuple[Array, Array], limit: float, send: Any) -> None:
    """In a process of its own: sends a cell for each case, after a sign that all is loaded."""
    kind, pyramid = SOLVERS[name], "pyramids" in name or bool(SOLVERS[name] and SOLVERS[name].pyramid)  # type: ignore[union-attr]
    tiny = impulses.Problem(np.eye(3), -np.ones(3), np.ones(1), np.zeros(0), np.zeros(0), pyramid)

    def run(problem: impulses.Problem, case: str, start: Array) -> tuple[float, str]:
        return by_convex(kind, problem, case, start, limit) if kind else by_ours(problem, start)

    run(tiny, "cold", np.zeros(3))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # OSQP prints even if it is not to
    send.send("ready")
    for case in CASES:
        problem = replace(given.later if case == "warm" else given.now, pyramid=pyramid)
        start = starts[pyramid] if case == "warm" else np.zeros(len(problem.b))
        if case == "convex" and not kind:
            send.send("")
            continue
        times: list[float] = []
        while len(times) < 3 or (sum(times) < 1.0 and len(times) < 200):
            begun = time.perf_counter()
            left, count = run(problem, case, start)
            times.append(time.perf_counter() - begun)
            if sum(times) > 2.0:
                break
        if times[0] > limit:
            send.send(f"over {limit:g} s, {left:.0e} ({count})")
            continue
        cell = f"{1e3 * statistics.median(times):.3g}, {left:.0e} ({count})"
        send.send(cell + ("" if left <= TOLERANCE else "!"))


def cells(given: Scene, name: str, starts: tuple[Array, Array], limit: float) -> list[str]:
    """The cells of a solver for a scene."""
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
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for one solution")
    parser.add_argument("--only", nargs="*", default=list(SCENES), choices=SCENES)
    options = parser.parse_args()
    os.environ.update(
        {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "RAYON")}
    )  # of processes to come
    names = [n for n, kind in SOLVERS.items() if kind is None or find_spec(kind.module)]
    print(f"{machine()}; {', '.join(f'{n} is not installed' for n in SOLVERS if n not in names) or 'all solvers'}", flush=True)
    rows = []
    for key in options.only:
        given = SCENES[key]()
        m = len(given.now.b)
        tolerance = TOLERANCE * float(np.abs(given.now.b).max())
        first, second = (impulses.solve(replace(given.now, pyramid=p), np.zeros(m), tolerance).impulses for p in (False, True))
        columns = [cells(given, n, (first, second), options.limit) for n in names]
        rows += [[f"{given.name} ({m})", case, *(c[i] for c in columns)] for i, case in enumerate(CASES)]
        print(markdown(["problem (unknowns)", "case", *names], rows[-len(CASES) :]), flush=True)
    print("\n" + markdown(["problem (unknowns)", "case", *names], rows))


if __name__ == "__main__":
    main()
