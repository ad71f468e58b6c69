"""Trajectories of simulations: states over time, contact forces, and their files."""

from __future__ import annotations

import itertools
import os
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..model.types import ModelError
from ..names import missing_attribute
from ..summaries import summarized
from .system import System

Array = np.ndarray[Any, np.dtype[Any]]

FORMAT = 1  # of files; older files have no version and no names
REQUIRED, CONTACTS, NAMES = ("times", "q", "v"), ("first", "points", "forces"), ("robot", "joints")
DAMAGED = (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, KeyError)  # from NumPy


def _none() -> Array:
    return np.zeros((0, 3))


@summarized
class Contacts(NamedTuple):
    """The contacts of an instant: points (k, 3) [m] and forces (k, 3) [N] on the robot, in the world."""

    points: Array
    forces: Array


@summarized
@dataclass(frozen=True, eq=False)
class Trajectory:
    """States at T instants, and all K contacts of these instants, in the world.

    The contacts of instant k are rows `first[k]:first[k + 1]` of `points` and `forces`. For many robots, q and v have an axis
    for robots after that of the instants.
    """

    if not TYPE_CHECKING:  # type checkers would take every attribute to be there
        __getattr__ = missing_attribute

    times: Array  # (T,) [s]
    q: Array  # (T, nq)
    v: Array  # (T, nv)
    first: Array = field(default_factory=lambda: np.zeros(1, dtype=int))  # (T + 1,)
    points: Array = field(default_factory=_none)  # (K, 3) [m]
    forces: Array = field(default_factory=_none)  # (K, 3) [N], on the robot
    robot: str = ""  # its name, if known
    joints: tuple[str, ...] = ()  # the names of its moving joints, in their order

    def contacts(self, k: int) -> Contacts:
        """Return the points and forces of the contacts at instant k."""
        if len(self.first) <= k + 1:
            return Contacts(_none(), _none())
        rows = slice(int(self.first[k]), int(self.first[k + 1]))
        return Contacts(self.points[rows], self.forces[rows])

    def __len__(self) -> int:
        return len(self.times)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz file with all arrays, bitwise exact, and the names.

        `load` and `featherweight view --trajectory` read the file.
        """
        arrays: dict[str, Any] = {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}
        arrays["joints"] = np.array(self.joints, dtype=str)  # an empty array would otherwise hold floats
        with open(path, "wb") as file:
            np.savez_compressed(file, format=np.array(FORMAT), **arrays)

    @staticmethod
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
        for name, kind in ((name, "U" if name in NAMES else "fiu") for name in arrays):
            if arrays[name].dtype.kind not in kind:
                raise ModelError(f"{path}: {name} must hold {'text' if kind == 'U' else 'numbers'}; got {arrays[name].dtype}")
        arrays |= {"robot": str(arrays.get("robot", "")), "joints": tuple(map(str, np.ravel(arrays.get("joints", ()))))}
        trajectory = Trajectory(**arrays)
        _check_shapes(path, trajectory)
        if robot is not None:
            _check_robot(path, trajectory, robot)
        return trajectory

    def of(self, number: int) -> Trajectory:
        """Return the motion of one of many robots. Contacts are recorded for the first robot only."""
        if self.q.ndim != 3:
            raise ValueError("this trajectory has one robot; `of` selects a robot of a trajectory with many")
        if not 0 <= number < self.q.shape[1]:
            raise ValueError(f"number must be from 0 to {self.q.shape[1] - 1}; got {number}")
        one = replace(self, q=self.q[:, number], v=self.v[:, number])
        return one if number == 0 else replace(one, first=np.zeros(1, dtype=int), points=_none(), forces=_none())

    def last(self) -> Trajectory:
        """The last instant alone."""
        points, forces = self.contacts(len(self) - 1)
        first = np.array([0, len(points)])
        return replace(self, times=self.times[-1:], q=self.q[-1:], v=self.v[-1:], first=first, points=points, forces=forces)

    @staticmethod
    def joined(parts: Sequence[Trajectory]) -> Trajectory:
        """Concatenate trajectories of the first one's robot."""
        each = [p.contacts(k) for p in parts for k in range(len(p))]
        first = np.cumsum([0, *(len(points) for points, _ in each)])
        points, forces = (np.concatenate([_none(), *x]) for x in zip(*each, strict=True))
        times, q, v = (np.concatenate([getattr(p, name) for p in parts]) for name in ("times", "q", "v"))
        return Trajectory(times, q, v, first, points, forces, parts[0].robot, parts[0].joints)


def _read_arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return those arrays of a file that a trajectory may have."""
    with open(path, "rb") as file:  # np.load leaves the file open if it fails
        try:
            found = np.load(file, allow_pickle=False)
            names = [name for name in ("format", *REQUIRED, *CONTACTS, *NAMES) if name in getattr(found, "files", ())]
            arrays = {name: found[name] for name in names}
        except DAMAGED as error:
            reason = "it is no archive" if isinstance(error, ValueError) else str(error)  # else pickles
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
    if t.points.shape != (contacts, 3) or t.forces.shape != (contacts, 3):
        raise ModelError(f"{path}: points and forces must both have shape (K, 3); got {t.points.shape}, {t.forces.shape}")
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
        told = [f"{name!r}" if name else "nothing" for name in pair]
        raise ModelError(
            f"{path}: a trajectory of {t.robot!r}: its joint {k} is {told[0]}; that of {robot.name!r} is {told[1]}"
        )
    for name, x, n in (("q", t.q, robot.nq), ("v", t.v, robot.nv)):
        if x.shape[-1] != n:
            shape = (*x.shape[:-1], n)
            raise ModelError(f"{path}: {name} must have shape {shape} for {robot.name}; it has {x.shape}")


def joint_names(robot: System) -> tuple[str, ...]:
    """Return the names of the moving joints, in their order."""
    return tuple(j.name for j in robot.joints)


class Recorder:
    """Records every `every`-th state of a motion, with its contacts.

    `state` returns time, q, v, and points and forces of contacts, in arrays that are never modified afterwards.
    """

    def __init__(self, state: Callable[[], tuple[float, Array, Array, Array, Array]], every: int) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1; got {every}")
        self._state, self._every = state, every
        time, q, v, *_ = state()
        self._states = [(time, q, v, _none(), _none())]  # contacts of an earlier step do not belong to the motion

    def note(self, step: int, last: bool = False) -> None:
        """Record the state after a step, if it is due."""
        if last or step % self._every == 0:
            self._states.append(self._state())

    def trajectory(self, robot: str, joints: tuple[str, ...]) -> Trajectory:
        """Return the motion of a robot with these joints."""
        times, q, v, points, forces = zip(*self._states, strict=True)
        first = np.array([*itertools.accumulate(map(len, points), initial=0)])
        touched = [k for k, some in enumerate(points) if len(some)]
        where, what = (np.concatenate([x[k] for k in touched]) if touched else _none() for x in (points, forces))
        return Trajectory(np.array(times), np.array(q), np.array(v), first, where, what, robot, joints)
