"""Conformance of MJCF files: compare motions with MuJoCo for every model of installed packages, under the same controls.

    pip install --no-deps playground mjlab dm_control robosuite gymnasium gymnasium-robotics metaworld myosuite myo-sim
    python benchmarks/peers/conformance.py [FILE.xml or FOLDER ...] [--only NAME] [--limit N] [--seconds 1] [--jobs 1]

Both simulators start at qpos0 at rest, with the file's step. Controls are random, the same for both, constant for a tenth of a
second, and within a tenth of their ranges about zero; controls of actuators that we lack stay zero. Contacts, limits and
equalities are compliant as in the file. Motions are compared until the first contact or limit acts in either simulator, because
they are chaotic afterwards. If that happens within a tenth of a second, motions without contacts and limits are compared
instead ("free"). For files that are in contact at the start and at rest at the end, bodies must end in the same places, to 5
mm.

| verdict | |
|---|---|
| not a model | MuJoCo does not load the file, or nothing in it moves; not counted |
| refused | `load` or `Simulation` raises, or a step fails |
| reported | a ModelWarning names an ignored feature that would change the compared motion, or the motion agrees otherwise |
| agree | coordinates agree to 1 mm and 1e-3 rad; forces and energies at rest agree within 2 % |
| agree at short steps | the difference shrinks to a third, or below the tolerance, with an eighth of the step in both |
| agree where rigid | likewise at a 64th of the step, with equality constraints and dry friction of MuJoCo nearly rigid |
| differs | none of these: an unexplained difference |
| crashed | the process ends by an unexpected exception or a signal, or takes longer than `--time-limit` |

"Agree while something acts" counts files in which a contact or a limit acts within the second, and among these the files whose
coordinates agree to the same tolerance until the end of the second, with contacts as in MuJoCo. Most motions are chaotic by
then.

Each file runs in a process of its own. `--json FILE` writes all numbers.
"""

from __future__ import annotations

import argparse
import copy
import inspect
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
from featherweight.model import contact_rules
from featherweight.robot.not_simulated import not_simulated

TOLD = fw.ModelWarning, RuntimeWarning
PACKAGES = {  # names for pip, and the modules with the files
    "playground": ("mujoco_playground",), "mjlab": ("mjlab",), "dm_control": ("dm_control",), "robosuite": ("robosuite",),
    "gymnasium": ("gymnasium",), "gymnasium_robotics": ("gymnasium_robotics",), "metaworld": ("metaworld",),
    "myosuite": ("myosuite", "myo_sim"),
}  # fmt: skip
TOLERANCE = 1e-3  # [m, rad]
EARLY = 0.1  # [s]; a contact or limit before this time acts from the start
HELD = 0.1  # [s] between changes of controls
AMPLITUDE = 0.1  # relative to half a range
SHORTER, SHRUNK = 8, 1 / 3  # factor of the step, and the largest remainder of a first-order error
SHORTEST = 64  # factor of the step, so that nearly rigid constraints settle quickly
AT_REST = 1e-2  # [m/s, rad/s]
LOOSE = 5e-3  # [m] between bodies at rest
ROUNDED = 1e-5  # [J]
SAME = 0.02  # relative difference of forces and energies at rest
SHOWN = 160  # characters of a message that are shown

IN_CONTACT = (  # reports that matter only in contact
    contact_rules.TWO_FRICTIONS, contact_rules.TOUCHING_LEFT_OUT, contact_rules.TOUCHING_AS_MESHES,
)  # fmt: skip
RIGID = (contact_rules.SOFT, contact_rules.SOFT_HOLDS)  # in reports, without a warning
COUNTED = ("agree", "agree at short steps", "agree where rigid", "reported", "refused", "differs", "crashed")
HEADER = ["package", "files", *COUNTED, "in contact at start", "agree while something acts", "not models"]
LINE_HEADER = [
    "file", "verdict", "nv", "step", "first contact or limit", "compared", "error at 0.1 s", "at first contact", "at 1 s",
    "1e-3 passed", "joint", "explanation",
]  # fmt: skip
SOFTNESS: dict[str, Any] = (  # options of contacts, if simulations have them
    {"contact": "as in the file"} if "as in the file" in (inspect.getdoc(fw.Simulation) or "") else {}
)


@dataclass(frozen=True)
class Conditions:
    """Conditions of both simulators: with or without contacts and limits, and steps that are `shorter` by a factor.

    MuJoCo's constraints may be nearly `rigid`, and its model `bare`: without the actuators that we lack.
    """

    touching: bool = True
    shorter: int = 1
    rigid: bool = False
    bare: bool = False
    seconds: float = 1.0
    seed: int = 0


@dataclass
class Motion:
    """Observations of a motion: errors by step, and the first contact or limit that acts."""

    step: float
    errors: list[float] = field(default_factory=list)  # after each step, the largest of all joints
    joints: list[int] = field(default_factory=list)  # joint with the largest error after each step, by MuJoCo's numbers
    acts: float | None = None  # [s]
    what_acts: str = ""
    at_rest: str | None = None  # differences of motions at rest, "" if there is none; None for other motions
    stopped: str = ""  # error of our failed step
    diverged: bool = False  # whether MuJoCo diverged

    def until(self) -> int:
        """The number of steps before a contact or limit acts."""
        return len(self.errors) if self.acts is None else min(len(self.errors), round(self.acts / self.step))

    def at(self, time: float) -> float | None:
        """Return the error at a time [s], or None if the motion is shorter."""
        k = round(time / self.step) - 1
        return self.errors[max(k, 0)] if k < len(self.errors) else None

    def passed(self) -> int | None:
        """Return the first step before a contact or limit acts after which the error exceeds the tolerance."""
        return next((k for k, error in enumerate(self.errors[: self.until()]) if not error <= TOLERANCE), None)


@dataclass
class Outcome:
    """Result for a file."""

    package: str
    file: str
    verdict: str = "crashed"
    told: str = ""
    nv: int = 0
    step: float = 0.0
    acts: float | None = None
    what_acts: str = ""
    in_contact: bool = False
    compared: str = ""  # "as is", or "free"
    early_error: float | None = None
    contact_error: float | None = None
    last_error: float | None = None
    greatest_error: float | None = None  # also after a contact or limit acts
    passed: float | None = None
    joint: str = ""
    kinds: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def line(self) -> list[str]:
        """Return a row of the table of files."""
        acts = "" if self.acts is None else f"{self.what_acts} {self.acts:.3g} s"
        errors = (self.early_error, self.contact_error, self.last_error)
        passed = "" if self.passed is None else f"{self.passed:.3g} s"
        return [
            f"{self.package}: {self.file}", self.verdict, f"{self.nv}", f"{1e3 * self.step:.3g} ms", acts, self.compared,
            *("" if e is None else f"{e:.1e}" for e in errors), passed, self.joint, self.told.replace("|", "/"),
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


# --- motions


class RefusedError(Exception):
    """Error of `load` or `Simulation` for a file."""


@contextmanager
def refusals() -> Iterator[None]:
    """Turn the exceptions by which the library refuses a file into `RefusedError`."""
    try:
        yield
    except (ValueError, TypeError, NotImplementedError, ImportError, OSError, fw.SimulationError) as error:
        raise RefusedError(shortened(error)) from error


class Side:
    """A file in both simulators, under the same conditions and controls."""

    def __init__(self, robot: fw.Robot, model: Any, conditions: Conditions) -> None:
        self.conditions, self.model = conditions, changed(model, conditions)
        options: dict[str, Any] = (
            SOFTNESS if conditions.touching else SOFTNESS | {"shapes": False, "joints": fw.JointOptions(limits=False)}
        )
        with refusals():
            self.sim = fw.Simulation(robot, self.model.opt.timestep, q="qpos0", **options)
            self.order = fw.MujocoOrder(robot, self.model)
        if conditions.bare:
            strip(self.model, self.order.ctrl(np.ones(len(robot.controls))) == 0.0)
        self.data = mujoco.MjData(self.model)
        self.data.qpos[:] = self.qpos()
        self.controls = np.random.default_rng(conditions.seed)
        self.start = self.sim.energy(), self.energy()

    def qpos(self) -> Array:
        return self.order.state(self.sim.q, self.sim.v).qpos

    def energy(self) -> float:
        """Return MuJoCo's energy [J]."""
        copied = copy.copy(self.data)
        mujoco.mj_forward(self.model, copied)
        mujoco.mj_energyPos(self.model, copied)
        mujoco.mj_energyVel(self.model, copied)
        return float(copied.energy.sum())

    def drawn_controls(self) -> tuple[Array, Array]:
        """Draw random controls of MuJoCo and ours; controls of actuators that we lack are zero."""
        m = self.model
        limited, (low, high) = m.actuator_ctrllimited.astype(bool), m.actuator_ctrlrange.T
        low, high = (np.where(limited, x, y) for x, y in ((low, -1.0), (high, 1.0)))
        draws = AMPLITUDE * 0.5 * (high - low) * self.controls.uniform(-1.0, 1.0, len(low))
        control = self.order.control(np.clip(np.clip(0.0, low, high) + draws, low, high))
        return self.order.ctrl(control), control

    def move(self, motion: Motion) -> None:
        """Take all steps, and record errors and the first contact or limit."""
        held = max(1, round(HELD / motion.step))
        for k in range(round(self.conditions.seconds / motion.step)):
            if k % held == 0:
                self.data.ctrl[:], control = self.drawn_controls()
            mujoco.mj_step(self.model, self.data)
            motion.diverged = bool(self.data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number)
            try:
                self.sim.step(control=control if len(control) else None)
            except fw.SimulationError as error:
                motion.stopped = f"at {k * motion.step:.3g} s: {error.what}"
                return
            errors = joint_errors(self.model, self.qpos(), self.data.qpos)
            motion.joints.append(int(np.argmax(errors)))
            motion.errors.append(float(errors.max()))
            acting = self.acting()
            if acting and motion.acts is None:
                motion.acts, motion.what_acts = k * motion.step, acting
            if motion.diverged:
                return
        motion.at_rest = self.difference_at_rest()

    def acting(self) -> str:
        """Return "contact" or "limit" if either simulator has such a force."""
        if not self.conditions.touching:
            return ""
        if (self.data.ncon and (self.data.contact.efc_address >= 0).any()) or self.our_forces().any():
            return "contact"
        limits = (mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT, mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)
        return "limit" if np.isin(self.data.efc_type, limits).any() or at_limit(self.model, self.qpos()).any() else ""

    def our_forces(self) -> Array:
        """Return the forces [N] of our contacts."""
        return np.asarray(np.linalg.norm(self.sim.contacts()[1], axis=-1))

    def difference_at_rest(self) -> str | None:
        """Return differences of contact forces and energies at rest in words, or None if one simulator moves."""
        if max(np.abs(self.sim.v).max(initial=0.0), np.abs(self.data.qvel).max(initial=0.0)) > AT_REST:
            return None
        changes = self.sim.energy() - self.start[0], self.energy() - self.start[1]
        weight = float(self.model.body_mass.sum() * np.linalg.norm(self.model.opt.gravity))
        ours, theirs = self.our_net_force(), self.net_force()
        told = []
        if np.linalg.norm(ours - theirs) > SAME * max(weight, float(np.linalg.norm(theirs))):
            told.append(f"net contact force at rest {ours.round(3).tolist()} / {theirs.round(3).tolist()} N")
        if abs(changes[0] - changes[1]) > SAME * max(map(abs, changes)) + weight * TOLERANCE + ROUNDED:
            told.append(f"change of energy at rest {changes[0]:.4g} / {changes[1]:.4g} J")
        return ", ".join(told)

    def our_net_force(self) -> Array:
        """Return the sum (3,) of our contact forces on all bodies in the world [N]."""
        m, data, total = self.model, self.posed(), np.zeros(3)
        numbers = {m.body(i).name or f"body{i}": i for i in range(m.nbody)}
        for body, wrench in zip(self.sim.robot.bodies, self.sim.contact_forces, strict=True):
            if body.name in numbers and wrench.any():
                total += data.xmat[numbers[body.name]].reshape(3, 3) @ wrench[:3]
        return total

    def net_force(self) -> Array:
        """Return the sum (3,) of MuJoCo's contact forces of static bodies on all others [N]."""
        m, d, force, total = self.model, self.data, np.zeros(6), np.zeros(3)
        for i, contact in enumerate(d.contact):
            fixed = [m.body_weldid[m.geom_bodyid[g]] == 0 for g in contact.geom]
            if fixed[0] != fixed[1]:
                mujoco.mj_contactForce(m, d, i, force)
                total += (1.0 if fixed[0] else -1.0) * (contact.frame.reshape(3, 3).T @ force[:3])
        return total

    def posed(self) -> Any:
        """Return MuJoCo's data at our configuration."""
        data = mujoco.MjData(self.model)
        data.qpos[:] = self.qpos()
        mujoco.mj_kinematics(self.model, data)
        return data

    def bodies_apart(self) -> float:
        """Return the largest distance between bodies of both simulators [m]."""
        data = copy.copy(self.data)
        mujoco.mj_kinematics(self.model, data)
        return float(np.linalg.norm(self.posed().xpos - data.xpos, axis=1).max())


def changed(model: Any, conditions: Conditions) -> Any:
    """Return a copy of MuJoCo's model for these conditions."""
    m, flags = copy.copy(model), mujoco.mjtDisableBit
    m.opt.timestep /= conditions.shorter
    if not conditions.touching:
        m.opt.disableflags |= flags.mjDSBL_CONTACT | flags.mjDSBL_LIMIT
    if conditions.rigid:
        m.opt.solver, m.opt.iterations, m.opt.ls_iterations, m.opt.tolerance = mujoco.mjtSolver.mjSOL_NEWTON, 100, 50, 1e-10
        for solref, solimp in (
            (m.eq_solref, m.eq_solimp),
            (m.dof_solref, m.dof_solimp),
            (m.tendon_solref_fri, m.tendon_solimp_fri),
        ):
            solref[:] = 2.0 * m.opt.timestep, 1.0
            solimp[:] = 0.9999, 0.9999, 1e-3, 0.5, 2.0
    return m


def strip(m: Any, lacking: Array) -> None:
    """Remove the actuators that we lack from MuJoCo's model."""
    gone = [a for a, u in enumerate(m.actuator_ctrladr) if m.actuator_ctrlnum[a] and lacking[u]]
    m.actuator_gainprm[gone], m.actuator_biasprm[gone] = 0.0, 0.0
    for kinds in (m.actuator_gaintype, m.actuator_biastype):
        kinds[gone] = 0


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


def at_limit(m: Any, qpos: Array) -> Array:
    """Return which joints are at a limit or beyond it."""
    limited = m.jnt_limited.astype(bool) & (m.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE))
    limited &= not m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_LIMIT
    x, (low, high) = qpos[m.jnt_qposadr], m.jnt_range.T
    return np.asarray(limited & ((x <= low + 1e-9) | (x >= high - 1e-9)))


def moved(robot: fw.Robot, model: Any, conditions: Conditions) -> tuple[Side, Motion]:
    """Simulate a file under these conditions."""
    side = Side(robot, model, conditions)
    motion = Motion(side.model.opt.timestep)
    side.move(motion)
    return side, motion


# --- verdicts


def examined(outcome: Outcome, path: Path, conditions: Conditions) -> None:
    """Examine a file and fill in its outcome."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, RuntimeError) as error:
        outcome.verdict, outcome.told = "not a model", shortened(error)
        return
    outcome.nv, outcome.step = int(model.nv), float(model.opt.timestep)
    if not model.nv:
        outcome.verdict, outcome.told = "not a model", "nothing moves"
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with refusals():
                robot = fw.load(str(path), equalities="compliant")
            outcome.kinds = {k: x for k, x in not_simulated(robot).items() if k not in RIGID}
            judge(outcome, robot, model, conditions)
        except RefusedError as error:
            outcome.verdict, outcome.told = "refused", str(error)
    outcome.warnings = list(dict.fromkeys(str(w.message) for w in told if issubclass(w.category, TOLD)))
    singular = [text for text in outcome.warnings if "near a singular configuration" in text]
    if singular and outcome.verdict == "differs":
        outcome.verdict, outcome.told = "reported", f"{shortened(singular[0])} ({outcome.told})"


def judge(outcome: Outcome, robot: fw.Robot, model: Any, conditions: Conditions) -> None:
    """Fill in the verdict of a file that both load."""
    side, motion = moved(robot, model, conditions)
    outcome.acts, outcome.what_acts = motion.acts, motion.what_acts
    outcome.early_error, outcome.last_error = motion.at(EARLY), motion.at(conditions.seconds)
    outcome.greatest_error = max(motion.errors, default=None) if not motion.stopped else None
    outcome.contact_error = None if motion.acts is None else motion.at(motion.acts)
    outcome.in_contact = motion.acts == 0.0 and motion.what_acts == "contact"
    rest, chosen = motion.at_rest or "", motion
    if outcome.in_contact and motion.at_rest is not None and (apart := side.bodies_apart()) > LOOSE:
        rest = f"bodies at rest are {apart:.2g} m apart"
    outcome.compared = "as is"
    if motion.stopped or (motion.acts is not None and motion.acts < EARLY):
        conditions, outcome.compared = replace(conditions, touching=False), "free"
        chosen = moved(robot, model, conditions)[1]
        if chosen.stopped:
            also = " (MuJoCo diverges)" if motion.diverged or chosen.diverged else ""
            outcome.verdict, outcome.told = "refused", f"{motion.stopped} free: {chosen.stopped}{also}".strip()
            return
    compare(outcome, chosen, partial(moved, robot, model), conditions)
    if rest and outcome.verdict.startswith("agree"):
        outcome.verdict, outcome.told = "differs", rest
    excuses = [k for k in outcome.kinds if k not in IN_CONTACT or outcome.verdict.startswith("agree") or rest == outcome.told]
    if excuses:
        besides = outcome.verdict if not outcome.told else f"{outcome.verdict}: {outcome.told}"
        if outcome.verdict == "differs" and not rest:
            besides = f"differs, and without these in MuJoCo {without_them(partial(moved, robot, model), conditions)}"
        kinds = "; ".join(f"{k}: {outcome.kinds[k]}" for k in excuses)
        outcome.verdict, outcome.told = "reported", f"{kinds} ({besides})"
    if motion.stopped:
        outcome.verdict, outcome.told = "refused", f"{motion.stopped} (free: {outcome.verdict}: {outcome.told})"
    if motion.diverged or chosen.diverged:
        outcome.told += " (MuJoCo diverges)"


def without_them(again: Any, conditions: Conditions) -> str:
    """Return the verdict, in words, for MuJoCo's model without the reported features."""
    conditions, rest = replace(conditions, bare=True), Outcome("", "")
    compare(rest, again(conditions)[1], again, conditions)
    return f"{rest.verdict}: {rest.joint} {rest.told}" if rest.verdict == "differs" else rest.verdict


def compare(outcome: Outcome, motion: Motion, again: Any, conditions: Conditions) -> None:
    """Fill in whether motions agree, or else under which other conditions they do."""
    passed = motion.passed()
    if passed is None:
        outcome.verdict = "agree"
        return
    outcome.passed = (passed + 1) * motion.step
    steps = max(passed + 1, min(2 * passed, motion.until()))
    side, short = again(replace(conditions, shorter=SHORTER, seconds=steps * motion.step))
    outcome.joint = side.model.joint(motion.joints[passed]).name or f"number {motion.joints[passed]}"
    error = motion.errors[steps - 1]
    if shrunk(short, error):
        outcome.verdict, outcome.told = "agree at short steps", f"integrator {integrator(side.model)}"
    elif shrunk(again(replace(conditions, shorter=SHORTEST, rigid=True, seconds=steps * motion.step))[1], error):
        outcome.verdict, outcome.told = "agree where rigid", held_softly(side.model)
    else:
        outcome.verdict = "differs"
        left = f"{short.errors[-1]:.1e}" if short.errors else "none"
        outcome.told = f"error {error:.1e}, at short steps {left}; {accelerations(again, conditions)}"


def integrator(m: Any) -> str:
    return str(mujoco.mjtIntegrator(m.opt.integrator).name.removeprefix("mjINT_"))


def held_softly(m: Any) -> str:
    """Return MuJoCo's compliant constraints and solver iterations in words."""
    names = Counter(mujoco.mjtEq(kind).name.removeprefix("mjEQ_").lower() for kind in m.eq_type[m.eq_active0.astype(bool)])
    rubbed = int(np.count_nonzero(m.dof_frictionloss))
    what = [
        *(f"{n} equalities of kind {kind}" for kind, n in names.items()),
        *([f"dry friction of {rubbed} joints"] if rubbed else []),
    ]
    return ", ".join([*what, f"{m.opt.iterations} iterations"])


def shrunk(motion: Motion, error: float) -> bool:
    """Return whether the error of another motion at the same time is smaller by the expected factor."""
    return bool(motion.errors) and not motion.stopped and motion.errors[-1] <= max(SHRUNK * error, 0.1 * TOLERANCE)


def accelerations(again: Any, conditions: Conditions) -> str:
    """Return the largest difference of accelerations in a short first step, in words."""
    side, motion = again(replace(conditions, shorter=1000, seconds=0.0))
    side.data.ctrl[:], control = side.drawn_controls()
    mujoco.mj_step(side.model, side.data)
    side.sim.step(control=control if len(control) else None)
    ours, theirs = side.order.state(side.sim.q, side.sim.v).qvel / motion.step, side.data.qvel / motion.step
    k = int(np.argmax(np.abs(ours - theirs)))
    name = side.model.joint(int(side.model.dof_jntid[k])).name
    return f"acceleration of '{name}' at start {ours[k]:.4g} / {theirs[k]:.4g}"


def shortened(error: BaseException | str) -> str:
    """Return a message on one line without its path."""
    text = " ".join(str(error).split())
    return text if len(text) <= SHOWN else f"… {text[-SHOWN:]}" if "/" in text[:40] else f"{text[:SHOWN]} …"


# --- all files


def in_own_process(entry: tuple[str, str, Path], options: argparse.Namespace) -> Outcome:
    """Examine a file in a process of its own, which may crash or hang."""
    package, name, path = entry
    given = ["--seconds", f"{options.seconds}", "--seed", f"{options.seed}"]
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--one", package, name, str(path), *given],
            capture_output=True, text=True, timeout=options.time_limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Outcome(package, name, told=f"takes longer than {options.time_limit:g} s")
    if done.returncode:
        return Outcome(package, name, told=shortened((done.stderr.strip() or f"ends with {done.returncode}").splitlines()[-1]))
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def tables(outcomes: Sequence[Outcome], each: bool) -> str:
    """Return the table by package, and with `each` the table of files that do not agree."""
    rows = []
    for package in [*dict.fromkeys(o.package for o in outcomes), "all"]:
        own = [o for o in outcomes if package in (o.package, "all")]
        counts = Counter(o.verdict for o in own)
        not_models = counts["not a model"]
        in_contact = sum(o.in_contact for o in own)
        acting = [o.greatest_error for o in own if o.acts is not None and o.greatest_error is not None]
        through = f"{sum(error <= TOLERANCE for error in acting)} of {len(acting)}"
        numbers = *(counts[v] for v in COUNTED), in_contact, through, not_models
        rows.append([package, *map(str, (len(own) - not_models, *numbers))])
    if not each:
        return markdown(HEADER, rows)
    order = {verdict: k for k, verdict in enumerate(reversed(COUNTED))}
    others = [o for o in outcomes if o.verdict not in ("agree", "not a model")]
    lines = [o.line() for o in sorted(others, key=lambda o: (order[o.verdict], o.package, o.file))]
    return f"{markdown(HEADER, rows)}\n\n{markdown(LINE_HEADER, lines)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--only", default="", metavar="NAME", help="only files whose package or name contains this text")
    parser.add_argument("--limit", type=int, metavar="N", help="largest number of files per package")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of the motion [s]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the controls")
    parser.add_argument("--jobs", type=int, default=1, help="number of files in parallel")
    parser.add_argument("--time-limit", type=float, default=120.0, metavar="SECONDS", help="time limit of a file [s]")
    parser.add_argument("--totals", action="store_true", help="only the table by package")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for all outcomes")
    parser.add_argument("--one", nargs=3, metavar=("PACKAGE", "NAME", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        outcome = Outcome(*options.one[:2])
        examined(outcome, Path(options.one[2]), Conditions(seconds=options.seconds, seed=options.seed))
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
