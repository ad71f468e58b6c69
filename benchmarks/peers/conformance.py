"""Conformance of MJCF files: compare motions with MuJoCo for every model of installed packages.

    pip install --no-deps playground mjlab dm_control robosuite gymnasium gymnasium-robotics metaworld myosuite myo-sim
    python benchmarks/peers/conformance.py [FILE.xml or FOLDER ...] [--only NAME] [--limit N] [--jobs 1]

MuJoCo and two simulations start at qpos0 at rest and move for half a second, with the file's step and controls of zero, through
all contacts, limits and equalities:

    by default    Simulation(FILE): contacts, limits and equalities by the file's law
    rigid         Simulation(FILE, contact="rigid"): exact equalities, rigid contacts and limits

A motion agrees if all joint coordinates agree to 5 mm and 5e-3 rad after every step. In addition, single steps by default
start from the states of a motion of MuJoCo under random controls, within half of their ranges and constant for a tenth of
a second, whose solver iterates until it has converged. A step agrees if its velocities do to 1e-4, relative to the greatest
velocity if that is above 1: the law is then the same, and motions differ only because they are chaotic. A file's steps agree if
99 % of them do.

Where they differ, columns of their own say why; they do not count as agreement:

    exact search  steps agree if MuJoCo's search for contacts iterates to 1e-12 m in place of 1e-6 m (`ccd_tolerance`)
    by rounding   MuJoCo moves or steps otherwise itself, by more than the same tolerance and no later, from one of several
                  starts that differ from its own by 1e-12 at random

| verdict | |
|---|---|
| not a model | MuJoCo does not load the file, or nothing in it moves; not counted |
| agree | the motion by default agrees |
| refused | `load` or `Simulation` raises, or a step fails |
| differs | another motion by default |
| crashed | the process ends by an unexpected exception or a signal, or takes longer than `--time-limit` |

Each file runs in a process of its own. `--json FILE` writes all numbers.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from measure import machine, markdown

import featherweight as fw
from featherweight.array_types import Array
from featherweight.robot.not_simulated import not_simulated

PACKAGES = {  # names for pip, and the modules with the files
    "playground": ("mujoco_playground",), "mjlab": ("mjlab",), "dm_control": ("dm_control",), "robosuite": ("robosuite",),
    "gymnasium": ("gymnasium",), "gymnasium_robotics": ("gymnasium_robotics",), "metaworld": ("metaworld",),
    "myosuite": ("myosuite", "myo_sim"),
}  # fmt: skip
SECONDS = 0.5  # [s] of each motion
TOLERANCE = 5e-3  # [m, rad]
STEP_TOLERANCE = 1e-4  # [m/s, rad/s], relative to velocities above 1
NEARLY_ALL = 0.99  # least part of steps that agree
HELD = 0.1  # [s] between changes of controls
AMPLITUDE = 0.5  # of half a range
EXACT = 1e-12, 200  # [m] tolerance and iterations of the exact search
PERTURBED = 1e-12  # [m, rad, m/s, rad/s] standard deviation of the other starts of MuJoCo
STARTS = 8  # of these
SHOWN = 160  # characters of a message that are shown
AGREE, REFUSED, DIFFERS, CRASHED = "agree", "refused", "differs", "crashed"
NO_MODEL = "not a model"
HEADER = [
    "package", "files", "agree", "single steps", "exact search", "by rounding", "rigid", "refused", "differs", "by rounding",
    "crashed", "not models",
]  # fmt: skip
LINE_HEADER = [
    "file",
    "verdict",
    "nv",
    "integrator",
    "step",
    "greatest error",
    "from",
    "joint",
    "steps that agree",
    "exact search",
    "by rounding",
    "MuJoCo beside itself",
    "from",
    "explanation",
]


@dataclass
class Motion:
    """Comparison of a motion with MuJoCo's."""

    error: float = 0.0  # the greatest of all joints and steps
    since: float | None = None  # [s] time after which a joint first differs by more than the tolerance
    joint: str = ""  # that joint
    told: str = ""  # error of `load`, `Simulation` or a step
    diverged: bool = False  # whether MuJoCo diverged

    @property
    def agrees(self) -> bool:
        """Return whether the whole motion agrees."""
        return not self.told and self.since is None


@dataclass
class Outcome:
    """Result for a file."""

    package: str
    file: str
    verdict: str = CRASHED
    told: str = ""
    nv: int = 0
    step: float = 0.0
    integrator: str = ""
    motion: Motion = field(default_factory=Motion)
    rigid: bool = False  # whether the motion with rigid contacts agrees
    steps: float = 0.0  # part of the single steps that agree
    exact: float = 0.0  # part that agrees if MuJoCo searches for contacts to `EXACT`
    by_rounding: float = 0.0  # part that then differs, and that MuJoCo takes otherwise from a state nearby
    itself: Motion = field(default_factory=Motion)  # MuJoCo's, from a start nearby, if the motion does not agree

    @property
    def is_chaotic(self) -> bool:
        """Return whether the motion differs, and MuJoCo's from a start nearby no later."""
        since, own = self.motion.since, self.itself.since
        return self.verdict == DIFFERS and own is not None and since is not None and own <= since

    def line(self) -> list[str]:
        """Return a row of the table of files."""
        since, own = ("" if m.since is None else f"{m.since:.3g} s" for m in (self.motion, self.itself))
        return [
            f"{self.package}: {self.file}", self.verdict, f"{self.nv}", self.integrator, f"{1e3 * self.step:.3g} ms",
            f"{self.motion.error:.1e}", since, self.motion.joint, f"{self.steps:.0%}", f"{self.exact:.0%}",
            f"{self.by_rounding:.0%}", f"{self.itself.error:.1e}", own, self.told.replace("|", "/"),
        ]  # fmt: skip


# --- files


def mjcf_files(folder: Path) -> Iterator[Path]:
    """Yield the MJCF files of a folder, or the file itself."""
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*.xml")):
        try:
            if ElementTree.parse(path).getroot().tag == "mujoco":
                yield path
        except (ElementTree.ParseError, OSError):
            continue


def folders_of(package: str) -> Iterator[Path]:
    """Yield folders of the installed modules of a package without an import."""
    for module in PACKAGES[package]:
        found = find_spec(module)
        yield from (Path(folder) for folder in (found.submodule_search_locations or () if found else ()))


def files_by_package(given: Sequence[Path], only: str, limit: int | None) -> list[tuple[str, str, Path]]:
    """Return package, short name and path of each file, at most `limit` per package."""
    folders = [(path.name, path) for path in given] or [(p, folder) for p in PACKAGES for folder in folders_of(p)]
    found = [(p, str(f.relative_to(d)) if d.is_dir() else f.name, f) for p, d in folders for f in mjcf_files(d)]
    chosen, counts = [], Counter[str]()
    for package, name, path in found:
        if only in f"{package}: {name}" and (limit is None or counts[package] < limit):
            counts[package] += 1
            chosen.append((package, name, path))
    return chosen


def parser_of_files(description: str | None, seconds: float) -> argparse.ArgumentParser:
    """Return a parser of the arguments that select files, and of the time limit of each."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--only", default="", metavar="NAME", help="only files whose package or name contains this text")
    parser.add_argument("--limit", type=int, metavar="N", help="largest number of files per package")
    parser.add_argument("--time-limit", type=float, default=seconds, metavar="SECONDS", help="time limit of a file [s]")
    return parser


# --- motions


class RefusedError(Exception):
    """Error of `load` or `Simulation` for a file."""


@contextmanager
def refusals() -> Iterator[None]:
    """Turn the exceptions by which the library refuses a file into `RefusedError`."""
    try:
        yield
    except (ValueError, TypeError, NotImplementedError, ImportError, OSError) as error:
        raise RefusedError(shortened(error)) from error
    except fw.SimulationError as error:
        raise RefusedError(shortened(error.what)) from error


def moved(sim: fw.Simulation, model: Any) -> Motion:
    """Compare the motion of a simulation with MuJoCo's."""
    motion, data, robot = Motion(), mujoco.MjData(model), sim.robot
    order = fw.MujocoOrder(robot, model)
    control = np.zeros(len(robot.controls)) if robot.controls else None
    for k in range(round(SECONDS / model.opt.timestep)):
        mujoco.mj_step(model, data)
        sim.step(control=control)
        if diverged(data):
            motion.diverged = True
            break
        note(motion, model, k, order.state(sim.q, sim.v).qpos, data.qpos)
    return motion


def moved_itself(model: Any) -> Motion:
    """Compare MuJoCo's motion with its motions from starts nearby: the greatest error, and where the first one differs."""
    motions, rng = list[Motion](), np.random.default_rng(0)
    for _ in range(STARTS):
        motion, data, other = Motion(), mujoco.MjData(model), mujoco.MjData(model)
        perturb(model, other, rng)
        for k in range(round(SECONDS / model.opt.timestep)):
            mujoco.mj_step(model, data)
            mujoco.mj_step(model, other)
            if diverged(data) or diverged(other):
                break
            note(motion, model, k, other.qpos, data.qpos)
        motions.append(motion)
    first = min(motions, key=lambda m: SECONDS if m.since is None else m.since)
    return replace(first, error=max(m.error for m in motions))


def diverged(data: Any) -> bool:
    """Return whether MuJoCo has reset a motion that diverged."""
    return bool(data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number)


def perturb(model: Any, data: Any, rng: np.random.Generator) -> None:
    """Move a state of MuJoCo by rounding errors."""
    mujoco.mj_integratePos(model, data.qpos, rng.normal(scale=PERTURBED, size=model.nv), 1.0)
    data.qvel[:] += rng.normal(scale=PERTURBED, size=model.nv)


def note(motion: Motion, model: Any, k: int, qpos: Array, expected: Array) -> None:
    """Add the difference of two configurations after step k to a comparison."""
    errors = joint_errors(model, qpos, expected)
    motion.error = max(motion.error, float(errors.max()))
    if motion.since is None and not errors.max() <= TOLERANCE:
        worst = int(np.argmax(errors))
        motion.since, motion.joint = (k + 1) * model.opt.timestep, model.joint(worst).name or f"number {worst}"


def steps_that_agree(sim: fw.Simulation, model: Any, exact: bool) -> tuple[float, float]:
    """Return the part of single steps that agree, from the states of a motion of MuJoCo under random controls.

    If `exact`, MuJoCo's search for contacts is exact. The second number is then the part of the steps that differ, and that
    MuJoCo takes otherwise from a state nearby.
    """
    model = copy.copy(model)
    if exact:
        model.opt.ccd_tolerance, model.opt.ccd_iterations = EXACT
    model.opt.solver, model.opt.iterations, model.opt.ls_iterations = mujoco.mjtSolver.mjSOL_NEWTON, 200, 100
    model.opt.tolerance, model.opt.ls_tolerance = 0.0, 1e-10
    data, start, rng, robot = mujoco.MjData(model), mujoco.MjData(model), np.random.default_rng(0), sim.robot
    agree, by_rounding = 0, 0
    order = fw.MujocoOrder(robot, model)
    limited, (low, high) = model.actuator_ctrllimited.astype(bool), model.actuator_ctrlrange.T
    low, high = np.where(limited, low, -1.0), np.where(limited, high, 1.0)
    control, held, count = None, max(1, round(HELD / model.opt.timestep)), round(SECONDS / model.opt.timestep)
    for k in range(count):
        if len(robot.controls) and k % held == 0:
            draws = AMPLITUDE * 0.5 * (high - low) * rng.uniform(-1.0, 1.0, len(low))
            control = order.control(0.5 * (low + high) + draws)
        if control is not None:
            data.ctrl[:] = order.ctrl(control)  # MuJoCo sets controls to zero if it diverges
        sim.q, sim.v = order.robot_state(data.qpos, data.qvel)
        if model.na:
            sim.activation = data.act
        mujoco.mj_copyData(start, model, data)
        mujoco.mj_step(model, data)
        try:
            sim.step(control=control)
            same = is_same(order.state(sim.q, sim.v).qvel, data.qvel)
        except fw.SimulationError:
            same = False
        agree += same
        by_rounding += exact and not same and steps_otherwise(model, start, data)
    return agree / count, by_rounding / count


def is_same(qvel: Array, expected: Array) -> bool:
    """Return whether velocities after a step agree."""
    return float(np.abs(qvel - expected).max()) <= STEP_TOLERANCE * max(1.0, float(np.abs(expected).max()))


def steps_otherwise(model: Any, start: Any, after: Any) -> bool:
    """Return whether MuJoCo takes another step from a state nearby."""
    other, rng = mujoco.MjData(model), np.random.default_rng(0)
    for _ in range(STARTS):
        mujoco.mj_copyData(other, model, start)
        perturb(model, other, rng)
        mujoco.mj_step(model, other)
        if not is_same(other.qvel, after.qvel):
            return True
    return False


def joint_errors(m: Any, ours: Array, theirs: Array) -> Array:
    """Return the differences of joints [m, rad]; for free joints, the larger of translation and rotation."""
    errors = np.zeros(m.njnt)
    for j in range(m.njnt):
        k, kind = int(m.jnt_qposadr[j]), mujoco.mjtJoint(int(m.jnt_type[j]))
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            errors[j] = np.linalg.norm(ours[k : k + 3] - theirs[k : k + 3])
            k += 3
        if kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            p, r = (x[k : k + 4] / np.linalg.norm(x[k : k + 4]) for x in (ours, theirs))
            errors[j] = max(errors[j], 2.0 * min(np.linalg.norm(p - r), np.linalg.norm(p + r)))
        else:
            errors[j] = abs(ours[k] - theirs[k])
    return errors


# --- verdicts


def examined(outcome: Outcome, path: Path) -> None:
    """Examine a file and fill in its outcome."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, RuntimeError) as error:
        outcome.verdict, outcome.told = NO_MODEL, shortened(error)
        return
    outcome.nv, outcome.step = int(model.nv), float(model.opt.timestep)
    outcome.integrator = mujoco.mjtIntegrator(model.opt.integrator).name.removeprefix("mjINT_")
    if not model.nv:
        outcome.verdict, outcome.told = NO_MODEL, "nothing moves"
        return
    warnings.simplefilter("ignore")
    try:
        with refusals():
            sim = fw.Simulation(str(path), q="qpos0")
            left_out = [f"{kind}: {text}" for kind, text in not_simulated(sim.robot).items()]
            outcome.motion = moved(sim, model)
            sim.reset("qpos0")
            outcome.steps, _ = steps_that_agree(sim, model, exact=False)
            if outcome.steps < NEARLY_ALL:
                sim.reset("qpos0")
                outcome.exact, outcome.by_rounding = steps_that_agree(sim, model, exact=True)
            outcome.verdict = AGREE if outcome.motion.agrees else DIFFERS
            outcome.told = "; ".join(left_out + ["MuJoCo diverges"] * outcome.motion.diverged)
    except RefusedError as error:
        outcome.verdict, outcome.told = REFUSED, str(error)
    if outcome.verdict != AGREE:
        outcome.itself = moved_itself(model)
    try:
        with refusals():
            outcome.rigid = moved(fw.Simulation(str(path), q="qpos0", contact="rigid"), model).agrees
    except RefusedError as error:
        outcome.told = f"{outcome.told} (rigid: {error})"


def shortened(error: BaseException | str) -> str:
    """Return a message on one line without its path."""
    text = " ".join(str(error).split())
    return text if len(text) <= SHOWN else f"… {text[-SHOWN:]}" if "/" in text[:40] else f"{text[:SHOWN]} …"


# --- all files


def in_own_process(entry: tuple[str, str, Path], options: argparse.Namespace) -> Outcome:
    """Examine a file in a process of its own, which may crash or hang."""
    package, name, path = entry
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--one", package, name, str(path)],
            capture_output=True, text=True, timeout=options.time_limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Outcome(package, name, told=f"takes longer than {options.time_limit:g} s")
    if done.returncode:
        return Outcome(package, name, told=shortened((done.stderr.strip() or f"ends with {done.returncode}").splitlines()[-1]))
    found = json.loads(done.stdout.splitlines()[-1])
    return Outcome(**found | {name: Motion(**found[name]) for name in ("motion", "itself")})


def tables(outcomes: Sequence[Outcome], each: bool) -> str:
    """Return the table by package, and with `each` the table of files that do not agree."""
    rows = []
    for package in [*dict.fromkeys(o.package for o in outcomes), "all"]:
        own = [o for o in outcomes if package in (o.package, "all")]
        models = [o for o in own if o.verdict != NO_MODEL]
        counts = Counter(o.verdict for o in models)
        steps, rigid = sum(o.steps >= NEARLY_ALL for o in models), sum(o.rigid for o in models)
        exact = sum(o.steps < NEARLY_ALL <= o.exact for o in models)
        rounded = sum(max(o.steps, o.exact) < NEARLY_ALL <= o.exact + o.by_rounding for o in models)
        chaotic = sum(o.is_chaotic for o in models)
        numbers = (
            len(models), counts[AGREE], steps, exact, rounded, rigid, counts[REFUSED], counts[DIFFERS], chaotic,
            counts[CRASHED], len(own) - len(models),
        )  # fmt: skip
        rows.append([package, *map(str, numbers)])
    if not each:
        return markdown(HEADER, rows)
    others = [o for o in outcomes if o.verdict not in (AGREE, NO_MODEL)]
    lines = [o.line() for o in sorted(others, key=lambda o: (o.verdict, o.package, o.file))]
    return f"{markdown(HEADER, rows)}\n\n{markdown(LINE_HEADER, lines)}"


def main() -> None:
    parser = parser_of_files(__doc__, 600.0)
    parser.add_argument("--jobs", type=int, default=1, help="number of files in parallel")
    parser.add_argument("--totals", action="store_true", help="only the table by package")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for all outcomes")
    parser.add_argument("--one", nargs=3, metavar=("PACKAGE", "NAME", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        outcome = Outcome(*options.one[:2])
        examined(outcome, Path(options.one[2]))
        print(json.dumps(asdict(outcome)))
        return
    entries = files_by_package(options.files, options.only, options.limit)
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(partial(in_own_process, options=options), entries):
            outcomes.append(outcome)
            print(f"{outcome.package}: {outcome.file}: {outcome.verdict} {outcome.told}", file=sys.stderr, flush=True)
            if options.json:
                options.json.write_text("\n".join(json.dumps(asdict(o)) for o in outcomes))
    print(f"{machine()}, MuJoCo {mujoco.__version__}\n\n{tables(outcomes, not options.totals)}")


if __name__ == "__main__":
    main()
