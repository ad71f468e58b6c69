"""Differential inverse kinematics: the step that reduces the tasks' errors within limits, by a quadratic program per priority.

    minimize  |A x - gain e|² + damping |x|²      subject to      lower <= x <= upper,    K x = -phi,    v = x / dt

A and e are the rows and errors of a priority. Later priorities have x = x0 + Z w, where Z is the null space of all earlier
rows. The solver is DAQP, a dual active-set method (Arnström, Bemporad and Axehill 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.inverse_kinematics import iteration
from ...algorithms.inverse_kinematics.task_rows import TaskList
from ...algorithms.mechanisms.cluster_tree import constraint_count, moving
from ...array_types import Array
from ...engine.function import CompiledFunction
from ...engine.program import Output
from ...extras import imports_from_extra
from ..closed import ClosedRobot
from ..robot import Robot

FEASIBLE = 1e-11  # [rad, m] tolerance of bounds
RANK = 1e-9  # relative to the largest singular value
SOLVED = 1  # DAQP's exit flag


class VelocityProblem(NamedTuple):
    """The time of a step [s], the fraction of the errors that a step removes, damping, and velocity limits (nv) or a number."""

    dt: float
    gain: float
    damping: float
    speed: Array

    @property
    def unlimited(self) -> bool:
        """True without velocity limits."""
        return self.speed.ndim == 0 and math.isinf(self.speed)


class Differential:
    """Steps for the tasks of a robot; `bound` turns a kernel into a function of q and flat targets."""

    def __init__(
        self,
        robot: Robot,
        tasks: TaskList,
        bound: Callable[..., CompiledFunction[Any]],
        spare: CompiledFunction[Any] | None = None,
    ) -> None:
        with imports_from_extra("ik", "InverseKinematics.velocity needs the package daqp"):
            self._solve = import_module("daqp").solve
        n = robot.model.nv
        clusters = robot._mechanism.clusters if isinstance(robot, ClosedRobot) else ()
        self._columns = sorted(r for c in clusters for r in moving(c)) if clusters else list(range(n))
        rows = [r for c in clusters for r in c.independent] if clusters else self._columns
        self._independent = [self._columns.index(r) for r in rows]
        self._tree = not clusters  # whether the columns are the velocities
        self._zeros = np.zeros(len(self._columns))
        self._nothing = np.zeros((0, len(self._columns))), np.zeros(0)
        loops = sum(map(constraint_count, clusters))
        counts: dict[int, int] = {}
        for task in sorted(tasks.every, key=lambda task: task.level):
            counts[task.level] = counts.get(task.level, 0) + sum(w > 0.0 for w in task.weight)
        self._exact = int(loops > 0)
        ends = np.cumsum([0, *([loops] if loops else []), *counts.values()]).tolist()
        self._levels = [slice(*pair) for pair in pairwise(ends)]
        outputs = Output("jacobian", (ends[-1], n)), Output("errors", (ends[-1],))
        self._rows = bound(iteration.weighted_rows, (), outputs)
        self._spare = spare
        self._set_limits(robot)

    def _set_limits(self, robot: Robot) -> None:
        """Set the limits of the columns. Columns without limits have infinite ones, and an arbitrary coordinate."""
        lower, upper = robot.row_limits()
        place = {robot.model.joints[j.index].v_slice.start: j.q_slice.start for j in robot.joints if j.type.nv == 1}
        limited = np.array([r in place for r in self._columns])
        self._coordinates = np.array([place.get(r, 0) for r in self._columns])
        self._lower = np.where(limited, np.array(lower)[self._columns], -np.inf)
        self._upper = np.where(limited, np.array(upper)[self._columns], np.inf)

    def velocity(self, q: Array, targets: Array, problem: VelocityProblem) -> Array:
        """Return v (nv)."""
        J, errors = self._rows(q, targets)
        if len(self._columns) < J.shape[1]:
            J = J[:, self._columns]
        wanted = errors if problem.gain == 1.0 else problem.gain * errors
        if self._exact:
            wanted[self._levels[0]] = errors[self._levels[0]]
        levels = [(J[rows], wanted[rows]) for rows in self._levels] if len(self._levels) > 1 else [(J, wanted)]
        box, (G, spare) = self._box(q, problem), self._spare_distances(q, targets)
        least = -min(problem.gain, 1.0) * spare  # spare distances shrink by a fraction, and those that lack grow by it
        try:
            x = self._prioritized(levels, box, (G, least), problem.damping)
        except ValueError:
            if not (least > 0.0).any():
                raise
            x = self._prioritized(levels, box, (G, np.minimum(least, 0.0)), problem.damping)  # or do not shrink further
        v: Array = (x if self._tree else x[self._independent]) / problem.dt
        return v if problem.unlimited else np.minimum(np.maximum(v, -problem.speed), problem.speed)

    def _box(self, q: Array, problem: VelocityProblem) -> tuple[Array, Array]:
        """Return the least and greatest steps within velocity and joint limits; a q beyond a limit moves back."""
        at = q[self._coordinates]
        down, up = self._lower - at, self._upper - at
        if problem.unlimited:
            return down, up
        most = problem.dt * problem.speed
        if not self._tree:
            most, own = np.full(len(self._columns), math.inf), most
            most[self._independent] = own
        least = -most
        return np.minimum(np.maximum(down, least), most), np.maximum(np.minimum(up, most), least)

    def _spare_distances(self, q: Array, targets: Array) -> tuple[Array, Array]:
        """Return the slopes (m, n) of distances, and how much the distances exceed those required (m)."""
        if self._spare is None:
            return self._nothing
        results = [np.asarray(x) for x in self._spare(q, targets)]
        G = np.zeros((sum(map(len, results[::2])), len(self._columns)))
        G[:, self._independent] = np.concatenate(results[1::2])
        return G, np.concatenate(results[::2])

    def _prioritized(
        self, levels: list[tuple[Array, Array]], box: tuple[Array, Array], approach: tuple[Array, Array], damping: float
    ) -> Array:
        """Return x (n) for the rows and errors of each level; loops take precedence over all."""
        G, least = approach
        lower, upper = box
        x = self._zeros
        Z: Array | None = None  # the identity
        for k, (A, wanted) in enumerate(levels):
            B, left = (A, wanted) if Z is None else (A @ Z, wanted - A @ x)
            if k < self._exact:
                w = np.linalg.lstsq(B, left, rcond=RANK)[0]
            else:
                H, f = B.T @ B, -(B.T @ left)
                H.flat[:: len(f) + 1] += damping
                if Z is None:
                    w = self._program(H, f, G, np.append(lower, least) if len(least) else lower, upper)
                else:
                    rows = np.vstack([Z, G @ Z])
                    w = self._program(H, f + damping * (Z.T @ x), rows, np.append(lower - x, least - G @ x), upper - x)
            x = w if Z is None else x + Z @ w
            if k + 1 < len(levels):
                Z = _null_space(B) if Z is None else Z @ _null_space(B)
                if not Z.shape[1]:
                    break
        return np.minimum(np.maximum(x, lower), upper)  # removes rounding errors

    def _program(self, H: Array, f: Array, A: Array, lower: Array, upper: Array) -> Array:
        """Return the w of least cost for which w, if bounds are more than rows of A, and A w are within bounds.

        Bounds that `upper` lacks are infinite.
        """
        if more := len(lower) - len(upper):
            upper = np.append(upper, np.full(more, np.inf))
        sense = np.zeros(len(lower), dtype=np.int32)
        w, _, flag, _ = self._solve(H, f, A, upper, lower, sense, primal_tol=FEASIBLE)
        if flag != SOLVED:
            raise ValueError(
                f"InverseKinematics: no velocity within limits keeps the loops closed (DAQP's exit flag {flag}). The loops "
                "at q are too far open, or q violates limits by more than the velocity limits can correct in one step"
            )
        return np.asarray(w)


def _null_space(B: Array) -> Array:
    _, sizes, V = np.linalg.svd(B)
    return np.asarray(V[np.count_nonzero(sizes > RANK * sizes.max(initial=0.0)) :].T)
