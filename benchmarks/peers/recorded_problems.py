"""Contact problems of simulations, recorded by step and solved again: success rates and times.

    python benchmarks/peers/recorded_problems.py record FOLDER [FILE.xml ...] [--problems 2000] [--only NAME]
    python benchmarks/peers/recorded_problems.py solve FOLDER|FILE.npz ... [--failed FOLDER]
    PYTHONPATH=tests python benchmarks/peers/recorded_problems.py families [--problems 100000] [--seed 0] [--failed FOLDER]

`record` runs the scenes of `falling_scenes`, and the robots of example-robot-data, which fall onto a floor. Scenes start again
and again with small random velocities, and get random controls. Each step gives a problem, also a step that fails. Files are
chunks of about 64 MB, which `solve` reads one after the other. A problem with a factor B is stored with the nonzero columns of
B, and solved with B in one branch. `families` draws problems from the families of `tests/contact/problem_families.py` and
solves them without files.

`solve` starts from the recorded impulses, unless they are zero, and from zero. For each scene, its table has the share that
reaches the tolerance, the iterations of the solver, and the largest ratio of residual and tolerance. The residual is computed
from the impulses; the table counts solvers that report another one. `--failed` stores problems that miss the tolerance.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from falling_scenes import STEP, falling_scenes, kick
from measure import ROBOTS, machine, markdown

import featherweight as fw
from featherweight.array_types import Array
from featherweight.contact.contact_problem import find_active_rows, problem_in
from featherweight.contact.factors.block_equations import place_of
from featherweight.contact.factors.branches import padded
from featherweight.contact.factors.row_factor import (
    RowFactor,
    factor_of_matrix,
    planned_factor,
    row_factor_work,
    sizes_of,
    sizes_of_one_branch,
    write_column,
)
from featherweight.contact.impulses import Solution, natural_residual_in, of_arrays, solve_in_workspace, solver_work
from featherweight.contact.laws import Problem
from featherweight.contact.rigid.newton import newton_work
from featherweight.engine.loops.kernels import compiled

residual_in_room = compiled(natural_residual_in)

CHUNK = 8_000_000  # numbers in a file
HELD, ANEW = 10, 200  # steps between changes of controls, and between resets
RANDOM = 0.3  # [rad/s, m/s] of initial velocities, and of changes with new controls
DROP = 2.0  # [m], initial height of robots of URDF files
TOLERANCE = 1e-8  # relative to the largest velocity, for generated problems
RECORDED, ZERO = "recorded start", "zero"
UNSOLVABLE = ", without a solution"  # suffix of names of families
DIFFERS = 1e-3  # relative to residual or tolerance; a larger error of a reported residual is wrong
ROUNDING = 16 * np.finfo(float).eps  # relative to |A| |f|, accepted difference of residuals


class Recorded(NamedTuple):
    """A problem, the starting impulses, and the required residual [m/s]."""

    scene: str
    problem: Problem
    start: Array
    tolerance: float


# ---- factors


def dense_factor(problem: Problem) -> Array:
    """Return the nonzero columns of B (m, columns) of a problem, or no columns without a factor."""
    transposed = np.zeros((problem.B.size, len(problem.b)))
    if problem.factored:
        write_columns_of_factor(problem.B, len(problem.mu), len(problem.b), transposed.ravel())
    return np.ascontiguousarray(transposed[transposed.any(axis=1)].T)


@compiled
def write_columns_of_factor(B: RowFactor, k: int, m: int, transposed: Array) -> None:
    """Write Bᵀ, of k contacts and further rows, to m columns of zeros."""
    for i in range(m):
        c, l = place_of(i, k)
        write_column(B, c, l, transposed, i, m)


def in_one_branch(matrix: Array, k: int) -> RowFactor:
    """Return the factor of k contacts and further rows from a matrix (m, columns)."""
    m, rank = matrix.shape
    values = np.zeros((m, padded(rank)))
    values[:, :rank] = matrix
    return factor_of_matrix(k, m - 3 * k, rank, values.ravel(), row_factor_work(m - 2 * k, sizes_of_one_branch(rank)))


def matrix_of(problem: Problem) -> Array:
    """Return A of a problem, also from its factor."""
    if not problem.factored:
        return problem.A
    B = dense_factor(problem)
    return np.asarray(B @ B.T + np.diag(problem.R))


# ---- files


class Writer:
    """Writer of problems to files FOLDER/0000.npz and so on, with a few thousand problems each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.waiting, self.numbers, self.files, self.count = folder, list[Recorded](), 0, 0, 0
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("*.npz")):
            raise SystemExit(f"{folder} has recorded problems already; name another folder")

    def add(self, recorded: Recorded) -> None:
        self.waiting.append(recorded)
        self.count += 1
        self.numbers += recorded.problem.A.size + recorded.problem.B.values.size
        if self.numbers > CHUNK:
            self.write()

    def write(self) -> None:
        """Write the collected problems to a file: arrays one after the other, and their sizes."""
        if not self.waiting:
            return
        problems = [r.problem for r in self.waiting]
        factors = [dense_factor(p) for p in problems]
        names = "A", "b", "mu", "lower", "upper", "R", "pair"
        arrays: dict[str, Any] = {name: np.concatenate([getattr(p, name).ravel() for p in problems]) for name in names}
        np.savez(
            self.folder / f"{self.files:04d}.npz",
            **arrays,
            B=np.concatenate([B.ravel() for B in factors]),
            columns=np.array([B.shape[1] if p.factored else -1 for p, B in zip(problems, factors, strict=True)]),
            start=np.concatenate([r.start for r in self.waiting]),
            scene=np.array([r.scene for r in self.waiting]),
            contacts=np.array([len(p.mu) for p in problems]),
            rows=np.array([len(p.lower) for p in problems]),
            pyramid=np.array([p.pyramid for p in problems]),
            paired=np.array([len(p.pair) == len(p.mu) for p in problems]),
            tolerance=np.array([r.tolerance for r in self.waiting]),
        )
        self.waiting, self.numbers, self.files = [], 0, self.files + 1


def read(path: Path) -> Iterator[Recorded]:
    """Yield the problems of a file."""
    with np.load(path) as stored:
        x = dict(stored)
    at = dict.fromkeys(("A", "b", "mu", "lower", "upper", "B", "R", "pair", "start"), 0)

    def take(name: str, count: int) -> Array:
        at[name] += count
        return np.asarray(x[name][at[name] - count : at[name]])

    for i, scene in enumerate(x["scene"]):
        k, n, columns = (int(x[name][i]) for name in ("contacts", "rows", "columns"))
        m = 3 * k + n
        size = m if columns < 0 else 0
        A, b, mu = take("A", size * size).reshape(size, size), take("b", m), take("mu", k)
        problem = Problem(A, b, mu, take("lower", n), take("upper", n), bool(x["pyramid"][i]))
        problem = problem._replace(pair=take("pair", k if x["paired"][i] else 0))
        if columns >= 0:
            B = in_one_branch(take("B", m * columns).reshape(m, columns), k)
            problem = problem._replace(B=B, R=take("R", m))
        yield Recorded(str(scene), problem, take("start", m), float(x["tolerance"][i]))


# ---- recording


def problem_of_step(sim: fw.Simulation) -> tuple[Problem, Array, float] | None:
    """Return the contact problem of the last attempted step, its start and its tolerance, or None without contacts.

    Simulations have no interface for it: the data are those that the step has left. A factor has one branch.
    """
    touching = sim._fleet.last_table().content.touching
    settings, contacts = touching.model.settings, int(touching.counts[2]) if touching.counts[0] > 0 else 0
    found = np.empty(len(touching.model.rows.joint), np.int64)
    rows = find_active_rows(touching.model, touching.kinematics, found) if touching.counts[1] else 0
    if contacts + rows == 0:
        return None
    assembly = touching.workspace.assembly
    p = problem_in(assembly, settings.pyramid, contacts, rows)
    A, b, mu, lower, upper = (np.array(x) for x in p.problem[:5])
    problem = Problem(A, b, mu, lower, upper, settings.pyramid, pair=assembly.pair[:contacts].copy())
    if assembly.columns[0] >= 0:
        work, blocks = assembly.factor_rows, contacts + rows
        groups = int(work.group[:blocks].max()) + 1
        branches = int(work.branch[: work.run_begin[groups]].max()) + 1
        numbers = int(work.begin[groups - 1] + work.rows[groups - 1] * work.width[groups - 1])
        B = planned_factor(work, blocks, groups, int(assembly.columns[0]), branches, numbers)
        problem = problem._replace(A=np.zeros((0, 0)), B=B, R=p.problem.R.copy())
        problem = problem._replace(B=in_one_branch(dense_factor(problem), contacts))
    if not (np.isfinite(matrix_of(problem)).all() and np.isfinite(b).all()):
        return None
    return problem, p.start.copy(), settings.tolerance * float(np.abs(b).max())


def dropped(path: Path) -> fw.Simulation:
    """Return a robot of a URDF file just above the floor, in its neutral configuration."""
    robot = fw.load(path, base="floating")
    q = np.clip(robot.neutral(), robot.lower, robot.upper)
    q[2] = DROP
    sim = fw.Simulation(robot, STEP, ground=True, q=q)
    while sim.time < 1.0 and not len(sim.contacts()[0]):
        q = sim.q.copy()
        sim.step()
    if not len(sim.contacts()[0]):
        raise ValueError("no part of it touches the floor")
    sim.reset(q)
    return sim


def simulations(files: Iterable[Path], only: str) -> Iterator[tuple[str, Callable[[], fw.Simulation]]]:
    """Yield names and functions that make simulations."""
    for scene in falling_scenes(files, only):
        yield scene.name, partial(scene.simulation, "rigid")
    for path in sorted(ROBOTS.glob("**/*.urdf")):
        if only in path.stem:
            yield f"{path.stem}, dropped", lambda path=path: dropped(path)  # type: ignore[misc]


def steps_of(sim: fw.Simulation, rng: np.random.Generator) -> Iterator[None]:
    """Take steps forever with random controls and velocities; reset at intervals, and if a step fails."""
    q, v, k, control = sim.q.copy(), sim.v.copy(), 0, None
    low, high = np.array([a.control for a in sim.forces.actuators]).reshape(-1, 2).T
    low, high = np.where(np.isfinite(low), low, -1.0), np.where(np.isfinite(high), high, 1.0)
    while True:
        if k % ANEW == 0:
            sim.reset(q, v)
        if k % HELD == 0:
            kick(sim, RANDOM * rng.standard_normal(len(v)), q)
            control = rng.uniform(low, high) if len(low) else None
        k += 1
        try:
            sim.step(control=control)
        except fw.SimulationError:
            k = 0
        yield


def record(make: Callable[[], fw.Simulation], name: str, count: int, seconds: float, writer: Writer) -> str:
    """Record problems of a simulation; return a report."""
    try:
        sim = make()
    except (ValueError, NotImplementedError, ImportError, fw.SimulationError) as error:
        return f"not simulated: {str(error)[:80]}"
    ends, found = time.perf_counter() + seconds, 0
    for taken, _ in enumerate(steps_of(sim, np.random.default_rng(0)), start=1):
        read_out = problem_of_step(sim)
        if read_out is not None:
            writer.add(Recorded(name, *read_out))
            found += 1
        if found == count or taken == 5 * count or time.perf_counter() > ends:
            break
    return f"{found} problems of {taken} steps"


# ---- problems to solve


def stored(paths: Iterable[Path]) -> Iterator[Recorded]:
    """Yield the problems of files and folders."""
    for path in paths:
        for file in sorted(path.glob("*.npz")) if path.is_dir() else [path]:
            yield from read(file)


def drawn(count: int, seed: int) -> Iterator[Recorded]:
    """Yield problems of families."""
    from contact.problem_families import WITHOUT_SOLUTION, generate  # of the tests

    for name, p in generate(count, seed):
        tolerance = TOLERANCE * float(np.abs(p.b).max())
        yield Recorded(name + UNSOLVABLE * (name in WITHOUT_SOLUTION), p, np.zeros(len(p.b)), tolerance)


# ---- solving


class Outcome(NamedTuple):
    """Result of a solver on a problem."""

    reached: bool
    iterations: int
    ratio: float  # ratio of residual and tolerance
    honest: bool  # whether the solver reports this residual
    seconds: float


def solve(recorded: Recorded, start: Array) -> Outcome:
    problem, size = of_arrays(recorded.problem), len(start)
    begun = time.perf_counter()
    work = solver_work(size, sizes_of(problem.B))
    solution = Solution(work.best, *solve_in_workspace(problem, start, recorded.tolerance, work))
    spent = time.perf_counter() - begun
    counts = (int(n) for name, n in solution._asdict().items() if name not in ("impulses", "residual"))
    residual = float(residual_in_room(problem, solution.impulses, newton_work(size, sizes_of(problem.B))))
    rounding = ROUNDING * float((np.abs(matrix_of(problem)) @ np.abs(solution.impulses)).max())
    differs = DIFFERS * max(residual, recorded.tolerance) + rounding
    ratio = residual / recorded.tolerance if recorded.tolerance > 0.0 else 0.0 if residual == 0.0 else np.inf
    return Outcome(ratio <= 1.0, sum(counts), ratio, bool(abs(solution.residual - residual) <= differs), spent)


def cells(scene: str, start: str, outcomes: list[Outcome]) -> list[str]:
    """Return a row of the table."""
    reached, iterations, ratio, honest, seconds = (np.array(x) for x in zip(*outcomes, strict=True))
    half, most, worst = np.median(iterations), np.quantile(iterations, 0.99), iterations.max()
    return [
        scene, start, f"{len(outcomes):,}", f"{100.0 * reached.mean():.3f}", f"{(~reached).sum():,}", f"{half:.0f}",
        f"{most:.0f}", f"{worst}", f"{ratio.max():.2g}", f"{(~honest).sum():,}",
        f"{1e6 * np.median(seconds):.0f}", f"{1e6 * np.quantile(seconds, 0.99):.0f}", f"{1e6 * seconds.max():.0f}",
    ]  # fmt: skip


HEADER = [
    "scene", "from", "problems", "reach the tolerance, %", "miss it", "iterations: median", "p99", "most",
    "largest residual / tolerance", "reported wrong", "µs: median", "p99", "longest",
]  # fmt: skip


def solve_all(problems: Iterable[Recorded], failed: Writer | None) -> None:
    """Solve problems and print the table; `failed` gets those that miss the tolerance from any start."""
    outcomes: dict[tuple[str, str], list[Outcome]] = {}
    for recorded in problems:
        starts = {RECORDED: recorded.start} if recorded.start.any() else {}
        starts[ZERO] = np.zeros(len(recorded.start))
        found = {name: solve(recorded, start) for name, start in starts.items()}
        for name, outcome in found.items():
            outcomes.setdefault((recorded.scene, name), []).append(outcome)
        if failed is not None and not all(outcome.reached for outcome in found.values()):
            failed.add(recorded)
    if failed is not None:
        failed.write()
    rows = [cells(scene, start, listed) for (scene, start), listed in sorted(outcomes.items())]
    for start in (RECORDED, ZERO):
        every = [listed for (scene, name), listed in outcomes.items() if name == start and not scene.endswith(UNSOLVABLE)]
        if every:
            rows.append(cells("all with a solution", start, [x for listed in every for x in listed]))
    print(markdown(HEADER, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    recording, solving, drawing = (modes.add_parser(name) for name in ("record", "solve", "families"))
    recording.add_argument("folder", type=Path)
    recording.add_argument("files", nargs="*", type=Path)
    recording.add_argument("--problems", type=int, default=2000, help="number of problems per scene")
    recording.add_argument("--seconds", type=float, default=60.0, help="time limit per scene [s]")
    recording.add_argument("--only", default="", metavar="NAME", help="only scenes whose names contain this text")
    solving.add_argument("paths", nargs="+", type=Path)
    drawing.add_argument("--problems", type=int, default=100_000)
    drawing.add_argument("--seed", type=int, default=0)
    for mode in (solving, drawing):
        mode.add_argument("--failed", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # warnings of features that are not simulated
    if options.mode == "record":
        writer = Writer(options.folder)
        for name, make in simulations(options.files, options.only):
            print(f"{name}: {record(make, name, options.problems, options.seconds, writer)}", flush=True)
        writer.write()
        print(f"{writer.count:,} problems in {writer.files} files of {options.folder}")
        return
    print(f"{machine()}\n")
    problems = stored(options.paths) if options.mode == "solve" else drawn(options.problems, options.seed)
    solve_all(problems, Writer(options.failed) if options.failed else None)


if __name__ == "__main__":
    main()
