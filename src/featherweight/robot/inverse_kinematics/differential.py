"""Differential inverse kinematics: the step that tasks want now, within limits, as a quadratic program for each priority.

    minimize  |A x - gain e|² + damping |x|²      subject to      lower <= x <= upper,    K x = -phi,    v = x / dt

for the rows A and errors e of a priority; those after it have x = x0 + Z w with Z the null space of all rows before. By DAQP, a
dual active-set method (Arnström, Bemporad and Axehill 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.inverse_kinematics import iteration
from ...algorithms.inverse_kinematics.task_rows import TaskList
from ...algorithms.mechanisms.cluster_tree import constraint_count, moving
from ...engine.function import CompiledFunction
from ...engine.program import Output
from ..closed import ClosedRobot
from ..robot import Robot
from .limits import row_limits

Array = np.ndarray[Any, np.dtype[Any]]

FEASIBLE = 1e-11  # [rad, m] of bounds
RANK = 1e-9  # of the largest singular value
SOLVED = 1  # DAQP's exit flag


class VelocityProblem(NamedTuple):
    """The time of a step [s], the share of errors that it is to take away, damping, and velocity limits (nv) or a number."""

    dt: float
    gain: float
    damping: float
    speed: Array


class Differential:
    """Steps for the tasks of a robot; `bound` makes a kernel a function of q and flat targets."""

    def __init__(self, robot: Robot, tasks: TaskList, bound: Callable[..., CompiledFunction]) -> None:
        try:
            self._solve = import_module("daqp").solve
        except ImportError:
            raise ImportError("InverseKinematics.velocity needs the package daqp: pip install 'featherweight[ik]'") from None
        n = robot.model.nv
        clusters = robot.mechanism.clusters if isinstance(robot, ClosedRobot) else ()
        self._columns = sorted(r for c in clusters for r in moving(c)) if clusters else list(range(n))
        rows = [r for c in clusters for r in c.independent] if clusters else self._columns
        self._independent = [self._columns.index(r) for r in rows]
        loops = sum(map(constraint_count, clusters))
        counts: dict[int, int] = {}
        for task in sorted(tasks.every, key=lambda task: task.level):
            counts[task.level] = counts.get(task.level, 0) + sum(w > 0.0 for w in task.weight)
        self._exact = int(loops > 0)
        self._sizes = ([loops] if loops else []) + list(counts.values())
        m = sum(self._sizes)
        self._rows = bound(iteration.weighted_rows, (), (Output("jacobian", (m, n)), Output("errors", (m,))))
        lower, upper = row_limits(robot)
        place = {robot.model.joints[j.index].v_slice.start: j.q_slice.start for j in robot.joints if j.type.nv == 1}
        self._limited = [k for k, r in enumerate(self._columns) if r in place]
        self._coordinates = [place[self._columns[k]] for k in self._limited]
        self._lower = np.array([lower[self._columns[k]] for k in self._limited])
        self._upper = np.array([upper[self._columns[k]] for k in self._limited])

    def velocity(self, q: Array, targets: Array, problem: VelocityProblem) -> Array:
        """v (nv)."""
        J, errors = self._rows(q, targets)
        ends = np.cumsum(self._sizes)[:-1]
        A = np.split(J[:, self._columns], ends)
        e = np.split(errors, ends)
        wanted = [x if k < self._exact else problem.gain * x for k, x in enumerate(e)]
        x = self._prioritized(list(zip(A, wanted, strict=True)), self._box(q, problem), problem.damping)
        return np.clip(x[self._independent] / problem.dt, -problem.speed, problem.speed)

    def _box(self, q: Array, problem: VelocityProblem) -> tuple[Array, Array]:
        """Least and greatest steps: as far as the velocity limits let it, and limits of joints; where q is past one, back."""
        most = np.full(len(self._columns), math.inf)
        most[self._independent] = problem.dt * problem.speed
        lower, upper = -most, most.copy()
        k, at = self._limited, q[self._coordinates]
        lower[k] = np.clip(self._lower - at, -most[k], most[k])
        upper[k] = np.clip(self._upper - at, -most[k], most[k])
        return lower, upper

    def _prioritized(self, levels: list[tuple[Array, Array]], box: tuple[Array, Array], damping: float) -> Array:
        """x (n) for the rows of each level and what they are to give; loops hold at any cost."""
        lower, upper = box
        n = len(lower)
        x, Z = np.zeros(n), np.eye(n)
        for k, (A, wanted) in enumerate(levels):
            B, left = A @ Z, wanted - A @ x
            if k < self._exact:
                w = np.linalg.lstsq(B, left, rcond=RANK)[0]
            else:
                H = B.T @ B + damping * np.eye(Z.shape[1])
                w = self._program(H, damping * (Z.T @ x) - B.T @ left, Z if k else None, (lower - x, upper - x))
            x = x + Z @ w
            if k + 1 < len(levels):
                Z = Z @ _null_space(B)
                if not Z.shape[1]:
                    break
        return np.clip(x, lower, upper)  # which differs by rounding only

    def _program(self, H: Array, f: Array, Z: Array | None, box: tuple[Array, Array]) -> Array:
        """The w of least cost with Z w, or w itself, within a box."""
        lower, upper = box
        A = np.zeros((0, len(f))) if Z is None else np.ascontiguousarray(Z)
        sense = np.zeros(len(lower), dtype=np.int32)
        w, _, flag, _ = self._solve(H, f, A, upper.copy(), lower.copy(), sense, primal_tol=FEASIBLE)
        if flag != SOLVED:
            raise ValueError(
                f"InverseKinematics: no velocity within limits keeps the loops (DAQP's exit flag {flag}); "
                "q is too far from closed, or farther past limits than the velocity limits make good in one step"
            )
        return np.asarray(w)


def _null_space(B: Array) -> Array:
    _, sizes, V = np.linalg.svd(B)
    return np.asarray(V[np.count_nonzero(sizes > RANK * sizes.max(initial=0.0)) :].T)
