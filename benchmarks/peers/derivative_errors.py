"""Derivatives of random steps of many robots, beside central differences of the steps, by both contact laws.

    pip install --no-deps gymnasium-robotics mjlab ...        (the packages of conformance.py)
    python benchmarks/peers/derivative_errors.py [FILE_OR_FOLDER ...] [--only NAME] [--limit N] [--steps 100]

Each MJCF file moves by its own law and integrator, and with rigid contact and semi-implicit steps, under random controls and
joint forces of 0.01 N m. Every tenth step is differentiated. Differences are over 1e-6 and 1e-7, of steps of one fleet from the
same state; the error of a column is that of the nearest of both and of the one-sided differences over 1e-7, relative to the
greatest number of the column above 1. Columns along which the step bends here (differences over both distances, or of both
sides, differ by more than 1e-3) are not compared, but counted: a rigid contact at rest has a gap of zero, where most directions
bend. A step is doubtful if `doubtful` names anything. Errors are the greatest of a step: their median and worst over the steps
that are not doubtful.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from conformance import files_by_package, parser_of_files
from measure import markdown

import featherweight as fw
from featherweight.array_types import Array

EVERY = 10  # steps from one that is differentiated to the next
PUSH = 0.01  # [N m] standard deviation of joint forces
SMALL = 1e-6
BENT = 1e-3
EXACT = 1e-12  # tolerance of rigid contacts, so that differences of steps are
LAWS = ("file", "rigid")


@dataclass
class Outcome:
    """Errors of the derivatives of steps of a file by one law."""

    package: str
    file: str
    law: str
    nv: int = 0
    steps: int = 0
    doubtful: int = 0
    contacts: float = 0.0  # mean number
    errors: list[float] = field(default_factory=list)  # of steps that are not doubtful
    bent: float = 0.0  # part of the columns of these along which the step bends
    worst: str = ""  # direction of the greatest error
    names: list[str] = field(default_factory=list)  # what is doubtful most often
    told: str = ""

    def line(self) -> list[str]:
        """Return a row of the table."""
        if not self.steps:
            return [f"{self.package}: {self.file}", self.law, str(self.nv), *6 * [""], self.told]
        median, worst = (f"{f(self.errors):.0e}" if self.errors else "" for f in (np.median, np.max))
        counts = f"{self.contacts:.1f}", str(self.steps), f"{self.doubtful / self.steps:.0%}", f"{self.bent:.1%}"
        return [f"{self.package}: {self.file}", self.law, str(self.nv), *counts, median, worst, self.worst or self.told]


def differences(sim: fw.Simulation, state: fw.State, tau: Array, control: Array | None) -> tuple[Array, Array, Array, Array]:
    """Return differences (2 nv + na, columns) of the step, from steps of one fleet.

    They are central ones over 1e-6 and 1e-7, and those of both sides over 1e-7.
    """
    robot, nv, nu = sim.robot, sim.robot.nv, 0 if control is None else len(control)
    na = state.arrays["act"].shape[1]
    n = 3 * nv + na + nu
    moves = np.concatenate([*(step * np.eye(n) for step in (SMALL, -SMALL, 0.1 * SMALL, -0.1 * SMALL)), np.zeros((1, n))])
    dq, dv, da, dtau, du = np.split(moves, np.cumsum([nv, nv, na, nv]), axis=1)
    many = state.repeated(len(moves))
    rows = many.arrays
    rows["q"][:] = [robot.integrate(state.q, d) for d in dq]
    rows["v"][:] += dv
    rows["act"][:] += da
    after = sim.advance(many, tau=tau + dtau, control=None if control is None else control + du)
    turned = np.array([robot.difference(after.q[-1], q) for q in after.q])
    ends = np.hstack([turned, after.v - after.v[-1], after.arrays["act"] - after.arrays["act"][-1]])
    ahead, behind, near_ahead, near_behind = ends[:-1].reshape(4, n, -1).swapaxes(1, 2)
    central = (ahead - behind) / (2.0 * SMALL), (near_ahead - near_behind) / (0.2 * SMALL)
    return *central, near_ahead / (0.1 * SMALL), -near_behind / (0.1 * SMALL)


def examine(outcome: Outcome, path: Path, steps: int) -> None:
    """Compare the derivatives of steps of a file."""
    robot = fw.load(path)
    if outcome.law == "file":
        sim = fw.Simulation(robot, contact="file")
    else:
        sim = fw.Simulation(robot, contact=fw.ContactOptions(law="rigid", tolerance=EXACT), integrator="semi-implicit")
    rng = np.random.default_rng(0)
    outcome.nv, bent, columns, worst = robot.nv, 0, 0, 0.0
    ranges = np.array(list(robot.controls.values()), dtype=np.float64).reshape(-1, 2)
    low, high = np.maximum(ranges[:, 0], -1.0), np.minimum(ranges[:, 1], 1.0)
    names: dict[str, int] = {}
    while outcome.steps < steps:
        control = rng.uniform(np.minimum(low, high), np.maximum(low, high)) if len(low) else None
        tau = PUSH * rng.standard_normal(robot.nv)
        try:
            sim.step(tau, control=control, steps=EVERY)
            given, state = sim.derivatives(tau, control), sim.state
            every = differences(sim, state, tau, control)
        except fw.SimulationError as failed:
            outcome.told = failed.what
            if not outcome.steps:
                return
            sim.reset()
            outcome.steps += 1
            continue
        outcome.steps += 1
        outcome.contacts += len(sim.contacts().names) / steps
        if given.doubtful:
            outcome.doubtful += 1
            names |= {name: names.get(name, 0) + 1 for name in given.doubtful}
            continue
        whole = np.hstack([given.A, given.B, given.B_control])[:, : every[0].shape[1]]
        scale = np.maximum(1.0, np.abs(every[0]).max(axis=0))
        error = np.min([np.abs(whole - x).max(axis=0) / scale for x in every], axis=0)
        spread = np.max([np.abs(x - every[1]).max(axis=0) / scale for x in every], axis=0)
        bent, columns = bent + int((spread > BENT).sum()), columns + len(spread)
        error[spread > BENT] = 0.0
        outcome.errors.append(float(error.max()))
        if error.max() > worst:
            worst = float(error.max())
            outcome.worst = sim._fleet.model.directions_named[int(error.argmax())]
    outcome.bent = bent / max(columns, 1)
    outcome.names = sorted(names, key=lambda name: -names[name])[:3]


def in_own_process(package: str, name: str, path: Path, law: str, steps: int, limit: float) -> Outcome:
    """Examine a file in a process of its own, which may crash or hang."""
    command = [sys.executable, __file__, "--one", package, name, str(path), law, "--steps", str(steps)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(package, name, law, told=f"takes longer than {limit:g} s")
    if done.returncode:
        return Outcome(package, name, law, told=(done.stderr.strip() or f"ends with {done.returncode}").splitlines()[-1][:160])
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def summary(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """Return rows with all files of a law."""
    rows = []
    for law in LAWS:
        own = [o for o in outcomes if o.law == law and o.steps]
        errors = [e for o in own for e in o.errors]
        if own:
            steps, doubtful = sum(o.steps for o in own), sum(o.doubtful for o in own)
            figures = f"{np.median(errors):.0e}", f"{np.quantile(errors, 0.99):.0e}", f"{max(errors):.0e}"
            rows.append([law, str(len(own)), str(steps), f"{doubtful / steps:.1%}", *figures])
    return rows


def main() -> None:
    parser = parser_of_files(__doc__, 600.0)
    parser.add_argument("--steps", type=int, default=100, help="steps of each file and law that are differentiated")
    parser.add_argument("--one", nargs=4, metavar=("PACKAGE", "NAME", "PATH", "LAW"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        package, name, path, law = options.one
        outcome = Outcome(package, name, law)
        warnings.simplefilter("ignore")
        try:
            examine(outcome, Path(path), options.steps)
        except (ValueError, TypeError, NotImplementedError, ImportError, OSError, fw.SimulationError) as error:
            outcome.told = f"{type(error).__name__}: {error}"[:160]
        print(json.dumps(asdict(outcome)))
        return
    outcomes = []
    for package, name, path in files_by_package(options.files, options.only, options.limit):
        for law in LAWS:
            outcomes.append(in_own_process(package, name, path, law, options.steps, options.time_limit))
            print(" | ".join([*outcomes[-1].line(), *outcomes[-1].names]), file=sys.stderr, flush=True)
    header = ["file", "law", "nv", "contacts", "steps", "doubtful", "bent", "median error", "worst error", "worst along"]
    print(markdown(header, [o.line() for o in outcomes]))
    print()
    print(markdown(["law", "files", "steps", "doubtful", "median error", "p99", "worst"], summary(outcomes)))


if __name__ == "__main__":
    main()
