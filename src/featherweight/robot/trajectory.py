"""Trajectories of simulations: states over time, contact forces, and their files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Matrix, Vector
from ..checks import WHOLE, PixelSize, Positive, argument, checked
from ..model.files import open_regular
from ..model.types import ModelError
from ..names import SuggestsNames
from ..providers import provided
from ..summaries import summarized
from .system import System

FORMAT = 1  # of files; older files have no version and no names
REQUIRED, OTHERS, NAMES = ("times", "q", "v"), ("first", "points", "forces", "internal", "tau"), ("robot", "joints")
IN_FILES = REQUIRED + OTHERS + NAMES
KINDS = {"U": "text", "b": "booleans", "fiu": "numbers"}  # of arrays, by NumPy's letters
FILMS = (".gif", ".mp4")


def _none() -> Matrix:
    return np.zeros((0, 3))


def _no_marks() -> Array:
    return np.zeros(0, dtype=bool)


def _no_forces() -> Matrix:
    return np.zeros((0, 0))


@summarized
class Contacts(NamedTuple):
    """The contacts of an instant: points (k, 3) [m] and forces (k, 3) [N] on the robot, in the world.

    Of two bodies of the robot that touch, the force acts on the first, and its opposite on the second.
    """

    points: Matrix
    forces: Matrix


@summarized
@dataclass(frozen=True, eq=False)
class Trajectory(SuggestsNames):
    """States at T instants, and all K contacts of these instants, in the world.

    The contacts of instant k are rows `first[k]:first[k + 1]` of `points`, `forces` and `internal`. For many robots, q and v
    have an axis for robots after that of the instants.
    """

    times: Array  # (T,) [s]
    q: Array  # (T, nq)
    v: Array  # (T, nv)
    first: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))  # (T + 1,)
    points: Matrix = field(default_factory=_none)  # (K, 3) [m]
    forces: Matrix = field(default_factory=_none)  # (K, 3) [N], on the robot
    robot: str = ""  # its name, if known
    joints: tuple[str, ...] = ()  # the names of its moving joints, in their order
    tau: Array = field(default_factory=_no_forces)  # (T, nv) [N m, N] joint forces given in the step to each state, if known
    system: System | None = field(default=None, repr=False)  # the robot itself, for charts and films; files do not contain it
    ground: Any = field(default=None, repr=False)  # the ground of its simulation, for films; files do not contain it
    internal: Array = field(default_factory=_no_marks)  # (K,) contacts between two bodies of the robot; empty: unknown

    @property
    def ground_force(self) -> Matrix:
        """Return the sum (T, 3) [N] of the contact forces of the world on the robot, at each instant, in the world's axes.

        Contacts between two bodies of the robot add nothing, because their forces are equal and opposite.
        """
        sums = np.zeros((len(self), 3))
        if len(self.first) == len(sums) + 1:
            forces = np.where(self.internal[:, None], 0.0, self.forces) if len(self.internal) else self.forces
            np.add.at(sums, np.repeat(np.arange(len(sums)), np.diff(self.first)), forces)
        return sums

    def contacts(self, k: int) -> Contacts:
        """Return the points and forces of the contacts at instant k, which counts from the end if it is negative."""
        T = len(self)
        k = argument("Trajectory.contacts: k", k, WHOLE)
        if not -T <= k < T:
            raise ValueError(f"Trajectory.contacts: k must be an instant, from 0 to {T - 1}; got {k}")
        k %= T
        if len(self.first) <= k + 1:
            return Contacts(_none(), _none())
        rows = slice(int(self.first[k]), int(self.first[k + 1]))
        return Contacts(self.points[rows], self.forces[rows])

    def __len__(self) -> int:
        return len(self.times)

    @checked
    def save(
        self, path: str | os.PathLike[str], *, fps: Positive = 25.0, size: PixelSize = (640, 480), camera: str | None = None
    ) -> None:
        """Write an .npz file with all arrays, bitwise exact, and the names; or a film, if the path ends with .gif or .mp4.

        `load` and `featherweight view --trajectory` read the .npz file. A film shows the motion in real time, with `fps`
        frames per second of `size` (width, height) pixels, through a `camera` of the robot's file, or from a place that sees
        the whole motion. It needs the robot: `Simulation.run` and `OptimalControl.trajectory` store it in the trajectory, and
        so does `load` if it is given one. Films need the extra `render`, and .mp4 the extra `film`.

        Raises ImportError without these packages, and ValueError for a film of an unknown robot, a camera that the robot does
        not have, an invalid number of frames or size, or another ending of the path.
        """
        if os.fspath(path).lower().endswith(FILMS):
            provided("Trajectory.save")(path, self, fps, size, camera)
            return
        if (suffix := Path(path).suffix.lower()) not in (".npz", ""):
            raise ValueError(f"save: the path must end with .npz, .gif or .mp4; got {suffix!r}")
        arrays: dict[str, Any] = {name: np.asarray(getattr(self, name)) for name in IN_FILES}
        arrays["joints"] = np.array(self.joints, dtype=str)  # an empty array would otherwise hold floats
        with open(path, "wb") as file:
            np.savez_compressed(file, format=np.array(FORMAT), **arrays)

    @checked
    def plot(self, path: str | os.PathLike[str] | None = None, joints: Sequence[str] | None = None) -> Any:
        """Draw positions, velocities and joint forces by joint, and `ground_force`, over time, with units.

        With a path, write the chart to that file (.png, .pdf, .svg). Without one, return the Matplotlib axes; `plt.show()` and
        notebooks then show the chart. `joints` selects joints by name. Raises ImportError without matplotlib (extra `cli`), and
        ValueError for joints that the robot does not have and for the motion of many robots (`of` selects one).
        """
        return provided("Trajectory.plot")(self, path, joints)

    @staticmethod
    @checked
    def load(path: str | os.PathLike[str], robot: System | None = None) -> Trajectory:
        """Read an .npz file that `save` wrote, or one with arrays times (T), q and v; contacts and names are optional.

        A robot, if given, must have the joints that the file names, in the same order, and the same nq and nv. Nothing in the
        file is executed.

        Raises ModelError, which names the file and the problem, for a file that is damaged, of a later version, or of another
        robot. Raises OSError for a file that cannot be opened.
        """
        arrays = _read_arrays(path)
        if missing := [name for name in REQUIRED if name not in arrays]:
            raise ModelError(f"{path}: no array {', '.join(missing)}; a trajectory has {', '.join(REQUIRED)}")
        version = arrays.pop("format", FORMAT)
        if np.shape(version) or version != FORMAT:
            raise ModelError(
                f"{path}: written in format {version}, but this version of Featherweight reads {FORMAT}; use the version "
                "that wrote it, or a later one"
            )
        for name, kind in ((name, "U" if name in NAMES else "b" if name == "internal" else "fiu") for name in arrays):
            if arrays[name].dtype.kind not in kind:
                raise ModelError(f"{path}: {name} must hold {KINDS[kind]}; got {arrays[name].dtype}")
        arrays |= {"robot": str(arrays.get("robot", "")), "joints": tuple(map(str, np.ravel(arrays.get("joints", ()))))}
        trajectory = Trajectory(**arrays)
        _check_shapes(path, trajectory)
        if robot is None:
            return trajectory
        _check_robot(path, trajectory, robot)
        return replace(trajectory, system=robot)

    @checked
    def of(self, number: int) -> Trajectory:
        """Return the motion of one of many robots. Contacts are recorded for the first robot only."""
        if self.q.ndim != 3:
            raise ValueError("this trajectory has one robot; `of` selects a robot of a trajectory with many")
        if not 0 <= number < self.q.shape[1]:
            raise ValueError(f"number must be from 0 to {self.q.shape[1] - 1}; got {number}")
        tau = self.tau[:, number] if self.tau.ndim == 3 else self.tau
        one = replace(self, q=self.q[:, number], v=self.v[:, number], tau=tau)
        none: dict[str, Any] = {"first": np.zeros(1, dtype=int), "points": _none(), "forces": _none(), "internal": _no_marks()}
        return one if number == 0 else replace(one, **none)

    def last(self) -> Trajectory:
        """The last instant alone."""
        points, forces = self.contacts(len(self) - 1)
        first = np.array([0, len(points)])
        states = {name: getattr(self, name)[-1:] for name in ("times", "q", "v", "tau")}
        internal = self.internal[len(self.internal) - len(points) :]
        return replace(self, **states, first=first, points=points, forces=forces, internal=internal)

    @staticmethod
    @checked
    def joined(parts: Sequence[Trajectory]) -> Trajectory:
        """Concatenate trajectories of the first one's robot."""
        if not parts:
            raise ValueError("Trajectory.joined: give at least one trajectory; got none")
        each = [p.contacts(k) for p in parts for k in range(len(p))]
        first = np.cumsum([0, *(len(points) for points, _ in each)])
        points, forces = (np.concatenate([_none(), *x]) for x in zip(*each, strict=True))
        times, q, v = (np.concatenate([getattr(p, name) for p in parts]) for name in ("times", "q", "v"))
        tau = np.concatenate([p.tau for p in parts]) if all(len(p.tau) for p in parts) else _no_forces()
        known = all(len(p.internal) == len(p.forces) for p in parts)
        internal = np.concatenate([p.internal for p in parts]) if known else _no_marks()
        return replace(parts[0], times=times, q=q, v=v, first=first, points=points, forces=forces, internal=internal, tau=tau)


def _read_arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return those arrays of a file that a trajectory may have."""
    with open_regular(path) as file:  # np.load leaves the file open if it fails
        try:
            found = np.load(file, allow_pickle=False)
            names = [name for name in ("format", *IN_FILES) if name in getattr(found, "files", ())]
            arrays = {name: found[name] for name in names}
        except MemoryError:
            raise
        except Exception as error:  # each compression of archives has its own errors
            if isinstance(error, OSError) and error.errno is not None:  # of the disk, not of the content
                raise
            reason = "it is not an archive" if isinstance(error, ValueError) else str(error)  # else pickles
            raise ModelError(f"{path}: no .npz file of a trajectory, or damaged: {reason}") from error
    if isinstance(found, np.ndarray):
        raise ModelError(f"{path}: contains one array; a trajectory is an .npz file with times, q and v")
    return arrays


def _check_shapes(path: str | os.PathLike[str], t: Trajectory) -> None:
    """Raise ModelError if the shapes of arrays do not match."""
    count, contacts = len(np.ravel(t.times)), len(np.atleast_1d(t.points))
    if t.times.shape != (count,) or not count:
        raise ModelError(f"{path}: times must have shape (T,) with at least one instant; got {t.times.shape}")
    for name, x in (("q", t.q), ("v", t.v)):
        if x.ndim not in (2, 3) or len(x) != count or x.shape[1:-1] != t.q.shape[1:-1]:
            raise ModelError(f"{path}: {name} must have shape ({count}, n) or ({count}, robots, n); got {x.shape}")
    if len(t.tau) and t.tau.shape != t.v.shape:
        raise ModelError(f"{path}: tau must have the shape of v, {t.v.shape}; got {t.tau.shape}")
    if t.points.shape != (contacts, 3) or t.forces.shape != (contacts, 3):
        raise ModelError(f"{path}: points and forces must both have shape (K, 3); got {t.points.shape}, {t.forces.shape}")
    if t.internal.shape not in ((0,), (contacts,)):
        raise ModelError(f"{path}: internal must have shape ({contacts},); got {t.internal.shape}")
    ends = t.first.tolist()
    if t.first.ndim != 1 or t.first.dtype.kind not in "iu" or len(ends) not in (1, count + 1):
        raise ModelError(f"{path}: first must hold {count + 1} integers; got {t.first.dtype} {t.first.shape}")
    if ends[0] != 0 or ends != sorted(ends) or ends[-1] != contacts:
        raise ModelError(f"{path}: first must ascend from 0 to the number of contacts, {contacts}; got {ends[0]} to {ends[-1]}")


def _check_robot(path: str | os.PathLike[str], t: Trajectory, robot: System) -> None:
    """Raise ModelError if the states do not belong to this robot."""
    names = joint_names(robot)
    if t.joints and t.joints != names:
        k, pair = next((k, p) for k, p in enumerate(itertools.zip_longest(t.joints, names)) if p[0] != p[1])
        words = [f"{name!r}" if name else "nothing" for name in pair]
        raise ModelError(
            f"{path}: a trajectory of {t.robot!r}: its joint {k} is {words[0]}; that of {robot.name!r} is {words[1]}"
        )
    for name, x, n in (("q", t.q, robot.nq), ("v", t.v, robot.nv)):
        if x.shape[-1] != n:
            shape = (*x.shape[:-1], n)
            raise ModelError(f"{path}: {name} must have shape {shape} for {robot.name}; it has {x.shape}")


def joint_names(robot: System) -> tuple[str, ...]:
    """Return the names of the moving joints, in their order."""
    return tuple(j.name for j in robot.joints)


class Recorded(NamedTuple):
    """k states of a motion, in arrays that are never modified, with their n contacts."""

    times: Vector  # (k,) [s]
    q: Array  # (k, ...)
    v: Array
    counts: Array  # (k,) contacts
    points: Matrix  # (n, 3)
    forces: Matrix  # (n, 3)
    internal: Array  # (n,) between two bodies of the robot

    @classmethod
    def of_one(cls, time: float, q: Array, v: Array, contacts: tuple[Matrix, Matrix, Array]) -> Recorded:
        """Return one state with points, forces and marks of its contacts."""
        return cls(np.array([time]), q[None], v[None], np.array([len(contacts[0])]), *contacts)


class Recorder:
    """The parts of a motion, the first of which is its first state."""

    def __init__(self) -> None:
        self._tau: list[Array | None] = []  # of each part
        self._parts: list[Recorded] = []

    def add(self, part: Recorded, tau: Array | None = None) -> None:
        """Add states, and the joint forces (k, ...) of the steps that led to them; none by default."""
        self._parts.append(part)
        self._tau.append(tau)

    def trajectory(self, robot: System, joints: tuple[str, ...], ground: object = None) -> Trajectory:
        """Return the motion of a robot with these joints on a ground."""
        times, q, v, counts, points, forces, internal = (np.concatenate(x) for x in zip(*self._parts, strict=True))
        first = np.concatenate([[0], np.cumsum(counts)])
        tau: Array = _no_forces()
        if any(x is not None for x in self._tau):
            parts = zip(self._tau, self._parts, strict=True)
            tau = np.concatenate([np.zeros(part.v.shape) if x is None else x for x, part in parts])
            tau[0] = tau[1]  # the first state has no step
        return Trajectory(times, q, v, first, points, forces, robot.name, joints, tau, robot, ground, internal)
