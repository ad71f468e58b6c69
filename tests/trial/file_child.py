"""Process that loads damaged files and checks the results. The parent process watches it, so that it may hang or crash."""

from __future__ import annotations

import os
import re
import resource
import sys
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import featherweight as fw
from featherweight.algorithms import aba
from featherweight.robot.dynamics import cheapest_accelerations, forward_dynamics

MEMORY = 4 << 30  # bytes of address space: libraries reserve more than they use
RESIDENT = 1 << 30  # maximum resident memory in bytes
SECONDS = 5.0  # processor time for one file
JOINTS = 40  # largest number of joints for which dynamics are checked in plain Python
COMPILED = 8  # largest number of degrees of freedom for which dynamics are also compiled
SAID = re.compile(r"['<\"]|line \d|\d")  # location in a message: an element in quotes or brackets, or a position in the file


class Mutant(NamedTuple):
    """A damaged file, and the options to load it."""

    suffix: str
    text: bytes
    base: str
    mimic: str
    compiled: bool  # whether to choose algorithms and to compile, if the robot is small


def serve(pipe: Connection, folder: str) -> None:
    """Report that all imports are done; then answer each mutant with its problem (empty for none), and whether it was
    loaded.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(folder)  # MuJoCo writes its log to the current folder
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", fw.ModelWarning)
    pipe.send("ready")
    while (mutant := pipe.recv()) is not None:
        pipe.send(verdict(mutant, Path(folder)))


def verdict(mutant: Mutant, folder: Path) -> tuple[str, bool]:
    path = folder / f"mutant{mutant.suffix}"
    path.write_bytes(mutant.text)
    loaded = False
    try:
        robot = fw.load(path, mutant.base, mimic=mutant.mimic, execution="interpreted")
        loaded = True
        if not robot.nv or robot.model.massless:
            _check_frames(robot)
        elif robot.nv <= JOINTS:
            _check(robot, robot.forward_dynamics if mutant.compiled and robot.nv <= COMPILED else _articulated(robot))
            if mutant.compiled and robot.nv <= COMPILED:
                _check_compiled(robot, fw.load(path, mutant.base, mimic=mutant.mimic))
    except fw.ModelError as error:
        about = str(error).replace(str(path), "")
        if loaded or str(folder) not in str(error) or not SAID.search(about):
            return f"a ModelError that does not name file and element, or is raised late: {error}", loaded
    except BaseException:
        return traceback.format_exc(), loaded
    used = most_memory()
    return (f"{used / 1e6:.0f} MB of memory" if used > RESIDENT else ""), loaded


def most_memory() -> int:
    """Return the peak resident memory of this process in bytes.

    On Linux, `getrusage` includes that of the parent, /proc does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _articulated(robot: fw.Robot) -> Any:
    """Return forward dynamics without the choice of an algorithm, which takes longer than loading the robot."""
    return cheapest_accelerations(forward_dynamics, robot, {"aba": aba.aba})


def _configuration(robot: fw.Robot) -> Any:
    """Return a random configuration, or None if no closed configuration is found."""
    try:
        return robot.random_configuration(rng=0)
    except ValueError as error:
        if robot.closed and "no closed configuration" in str(error):
            return None
        raise


def _check_frames(robot: fw.Robot) -> None:
    """Check that the last frames of a robot without dynamics are finite."""
    q = _configuration(robot)
    if q is not None:
        for frame in robot.frames[-JOINTS:]:
            placed = np.asarray(robot.frame_placement(frame.name)(q))
            assert np.isfinite(placed).all(), f"frame {frame.name!r} is not finite: {placed}"


def _check_compiled(robot: fw.Robot, fast: fw.Robot) -> None:
    """Check that compiled functions return the results of plain Python."""
    q = _configuration(robot)
    if q is not None:
        M = np.asarray(robot.mass_matrix(q))
        size = np.sqrt(np.diag(M))
        scale = np.outer(size, size)
        np.testing.assert_allclose(fast.mass_matrix(q) / scale, M / scale, atol=ROUNDING * spread(robot, size))


def _check(robot: fw.Robot, forward_dynamics: Any) -> None:
    """Check that the mass matrix is finite, symmetric, and positive definite to rounding; forward dynamics must invert
    inverse dynamics.
    """
    q = _configuration(robot)
    if q is None:
        return
    v, a = np.random.default_rng(0).standard_normal((2, robot.nv))
    M = np.asarray(robot.mass_matrix(q))
    assert np.isfinite(M).all(), f"M is not finite: {M}"
    assert (M == M.T).all(), f"M is not symmetric: {M}"
    size = np.sqrt(np.diag(M))
    assert (size > 0.0).all(), f"the diagonal of M is not positive: {np.diag(M)}"
    eigenvalues = np.linalg.eigvalsh(M / np.outer(size, size))
    assert eigenvalues[0] > -ROUNDING * spread(robot, size), f"M is not positive definite: {eigenvalues[0]:.3g}"
    if eigenvalues[-1] * spread(robot, size) < REGULAR * eigenvalues[0]:
        tau = np.asarray(robot.inverse_dynamics(q, v, a))
        again = np.asarray(forward_dynamics(q, v, tau))
        bias = np.asarray(robot.bias_force(q, v))
        scale = max(float(np.abs(x).max()) for x in (tau / size, bias / size, a * size))
        error = float(np.abs((again - a) * size).max())
        allowed = ROUNDING * scale * spread(robot, size) * eigenvalues[-1] / eigenvalues[0]
        assert error <= allowed, f"forward dynamics differ from inverse dynamics by {error:.3g}, {allowed:.3g} allowed"


ROUNDING = 1e-13  # relative error of terms that cancel: some hundred roundings
REGULAR = 1e9  # largest loss of digits for which dynamics are compared


def spread(robot: fw.Robot, size: Any) -> float:
    """Return the ratio of the largest possible moments of the links to those that joints move: the digits lost when large
    moments cancel.
    """
    tree = robot.model.tree
    reach = 1.0 + sum(float(np.abs(p).sum()) for p in tree.translation) + sum(abs(float(x)) for x in tree.slide)
    masses = sum(tree.mass)
    moments = masses * reach**2 + 2 * reach * float(np.abs(tree.moment).sum()) + float(np.abs(tree.inertia).sum())
    return max(1.0, (moments + masses + float(np.sum(tree.armature))) / float(size.min()) ** 2)
