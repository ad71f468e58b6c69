"""Collisions and distances of pairs of a robot's shapes: compiled placements, and kernels that loop over all pairs."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...algorithms import frames
from ...array_types import Array
from ...checks import ARRAY, BOUND, argument
from ...collision.pair_queries import (
    NOT_FINITE,
    DistanceQuery,
    EachTouchingQuery,
    TouchingQuery,
    all_distances,
    any_touching,
    each_touching,
)
from ...collision.query_tables import PairTable, QueryWork, pair_table, query_work
from ...collision.shape_parts import ShapePart, shape_part
from ...engine.function import CompiledFunction
from ...engine.loops.kernels import CompiledLoop, Table
from ...engine.program import Output
from ...engine.progress import Progress
from ...engine.threads import processors, share_out
from ...model.model import Placed
from ...model.types import Pose, Shape, as_matrix
from ...summaries import Several
from ..arguments import Q
from ..system import System, placements, rows_of
from .shape_pairs import CollisionPair, described_pair

# raised for memory that does not hold nq doubles, and for a thread without earlier queries
NOT_ONE_STATE = (AttributeError, TypeError, ValueError, BufferError, NotImplementedError)
ANSWERS = (np.False_, np.True_)
SHARE = 200.0  # [us] of work that justifies another thread
OF_STATE = 1.0  # [us] approximate time of a state, without its pairs


class ShapeQueries:
    """Queries about pairs of shapes of a robot, given by their numbers in `robot.shapes`.

    Raises ValueError and ImportError for shapes that `shape_part` refuses, with the robot's name.
    """

    def __init__(self, robot: System, pairs: Sequence[tuple[int, int]]) -> None:
        used = sorted({k for pair in pairs for k in pair})
        number = {k: n for n, k in enumerate(used)}
        shapes = [robot.shapes[k] for k in used]
        with Progress(f"shapes and convex hulls of {robot.name!r}", len(shapes)) as progress:
            parts = [_part(robot, s) for s in progress.counting(shapes)]
        self._robot = robot
        self.pairs: tuple[CollisionPair, ...] = Several(described_pair(robot, i, j) for i, j in pairs)
        self.number = {pair: k for k, pair in enumerate(self.pairs)}
        self._sides = np.array([(number[i], number[j]) for i, j in pairs], dtype=np.int64).reshape(-1, 2)
        self._table: PairTable = pair_table(parts, [(int(i), int(j)) for i, j in self._sides])
        self._bodies = [s.body for s in shapes]
        self._place = placement_rows(robot, "shape_rows", self._bodies, [_pose(part.placement) for part in parts])
        self._moving = list(dict.fromkeys(b for b in self._bodies if b is not None))
        placed = {b.name: p for b, p in zip(robot.bodies, robot.model.placed_bodies, strict=True)}
        self._carriers = [placed[b] for b in self._moving]
        self._own = threading.local()

    # queries

    def any_touching(self, q: npt.ArrayLike, margin: float) -> Any:
        """Return whether any pair (...) is within `margin` [m]."""
        try:
            row, reach, ask, query = self._own.one
            row[:] = q
        except NOT_ONE_STATE:
            return self._any_touching(q, margin)
        if margin != reach[0]:
            reach[0] = checked_length("margin", margin)
        found = ask(query)
        return ANSWERS[found] if found >= 0 else self._refuse_numbers()

    def _any_touching(self, q: npt.ArrayLike, margin: float) -> Any:
        """Return the same for any number of states, and prepare this thread for queries about single states."""
        if self._address and not hasattr(self._own, "one"):
            self._own.one = self._one_state()
        n, states = self._states(q)
        found = np.zeros(n, bool)
        self._ask(_ANY, n, {**states, "reach": np.array([checked_length("margin", margin)]), "found": found})
        return found.reshape(np.shape(q)[:-1])[()]

    def touching(self, q: npt.ArrayLike, margin: float) -> Array:
        """Return whether each pair (..., npairs) is within `margin` [m]."""
        n, states = self._states(q)
        found = np.zeros((n, len(self.pairs)), bool)
        self._ask(_EACH, n, {**states, "reach": np.array([checked_length("margin", margin)]), "found": found})
        return found.reshape((*np.shape(q)[:-1], len(self.pairs)))

    def distances(self, q: npt.ArrayLike, within: float) -> tuple[Array, Array, Array]:
        """Return signed distances (..., npairs), nearest points (..., npairs, 2, 3) and normals (..., npairs, 3).

        Beyond `within` [m], distances are infinite, and points and normals are NaN.
        """
        try:
            row, reach, ask, query, distance, points, normal = self._own.distances
            row[:] = q
        except NOT_ONE_STATE:
            return self._distances(q, within)
        reach[0] = checked_length("within", within)
        if ask(query) < 0:
            self._refuse_numbers()
        return distance.copy(), points.copy(), normal.copy()

    def _distances(self, q: npt.ArrayLike, within: float) -> tuple[Array, Array, Array]:
        """Return the same for any number of states, and prepare this thread for queries about single states."""
        if self._address and not hasattr(self._own, "distances"):
            self._own.distances = self._one_state_distances()
        n, states = self._states(q)
        batch, reach, results = np.shape(q)[:-1], np.array([checked_length("within", within)]), self._results(n)
        self._ask(_DISTANCES, n, {**states, "reach": reach, **results})
        pairs = len(self.pairs)
        distance, points, normal = results.values()
        return distance.reshape((*batch, pairs)), points.reshape((*batch, pairs, 2, 3)), normal.reshape((*batch, pairs, 3))

    def _results(self, n: int) -> dict[str, Array]:
        """Return memory for distances of n states."""
        pairs = len(self.pairs)
        return {"distance": np.empty((n, pairs)), "points": np.empty((n, pairs, 6)), "normal": np.empty((n, pairs, 3))}

    def jacobian(self, q: npt.ArrayLike, pairs: Sequence[CollisionPair], points: Array, normals: Array) -> Array:
        """Return the derivatives (..., npairs, nv) of distances (..., npairs) of some pairs by velocities: n · (J_b - J_a)."""
        chosen = self._sides[[self.number[pair] for pair in pairs]]
        whole = self._velocities(q)  # velocities of the body's point at the world's origin
        lines = np.empty((*points.shape[:-1], 6))
        lines[..., :3] = normals[..., None, :]
        lines[..., 3:] = np.cross(points, normals[..., None, :])
        result = np.zeros((*normals.shape[:-1], self._robot.nv))
        for side, sign in ((0, -1.0), (1, 1.0)):
            bodies = [self._bodies[k] for k in chosen[:, side]]
            moved = [p for p, body in enumerate(bodies) if body is not None]
            numbers = [self._moving.index(bodies[p]) for p in moved]
            result[..., moved, :] += sign * (lines[..., moved, side, None, :] @ whole[..., numbers, :, :])[..., 0, :]
        return result

    @cached_property
    def _velocities(self) -> CompiledFunction:
        output = Output("J", (len(self._carriers), 6, self._robot.nv))
        constants = (placements(self._carriers), frames.WORLD)
        return self._robot.bind("shape_jacobians", frames.frame_jacobian, (Q,), (output,), constants)

    # arrays and tables of queries

    def _states(self, q: npt.ArrayLike) -> tuple[int, dict[str, Array]]:
        """Return the number of states (..., nq), and the arrays that kernels read."""
        q = np.asarray(argument(f"{self._robot.name}: q", q, ARRAY))
        if q.ndim == 0 or q.shape[-1] != self._robot.nq or q.dtype.kind not in "fiub":
            self._place(q)  # raises an error that describes the problem
        rows = rows_of(q)
        if not self.pairs and not np.isfinite(rows).all():
            self._refuse_numbers()
        return len(rows), {"q": rows, "placement": self._unplaced}

    @cached_property
    def _address(self) -> int:
        """The address of the machine code that places shapes; 0 if the robot's functions are not machine code."""
        return (self._place.address or 0) if self.pairs and self._robot.nq else 0

    def _one_state(self) -> tuple[Any, ...]:
        """Return this thread's query whether any pair touches in one state.

        It consists of memory for q and for the margin, and the kernel with the address of its table.
        """
        question = self._own.of_one_state = self._about_one_state(_ANY, {"found": np.zeros(1, bool)})
        return *question.places, *question.call

    def _one_state_distances(self) -> tuple[Any, ...]:
        """Return this thread's query for distances in one state, and the memory of the results."""
        results = self._results(1)
        question = self._own.of_one_distance = self._about_one_state(_DISTANCES, results)
        distance, points, normal = (x[0] for x in results.values())
        return *question.places, *question.call, distance, points.reshape(-1, 2, 3), normal

    def _about_one_state(self, kind: _Kind, results: dict[str, Array]) -> _Question:
        """Return a query of this thread about the one state in its memory."""
        work = self._work
        arrays = {"q": work.q[None], "placement": self._unplaced, "reach": np.zeros(1), **results}
        return _Question(kind, self._table, work, arrays)

    @property
    def _unplaced(self) -> Array:
        """Empty placements, because machine code computes them."""
        return np.zeros((0, len(self._bodies), 12))

    @property
    def _work(self) -> QueryWork:
        """The memory of this thread."""
        if not hasattr(self._own, "work"):
            self._own.work = query_work(self._table, self._robot.nq, self._address)
        return self._own.work

    def _ask(self, kind: _Kind, n: int, arrays: dict[str, Array]) -> None:
        """Run a query for n states on as many threads as pay off. Raises ValueError for a q that is not finite."""
        if not self.pairs:
            return
        questions: dict[int, _Question] = {}
        finite = [True]

        def run(first: int, stop: int) -> None:
            thread = threading.get_ident()
            if thread not in questions:
                questions[thread] = self._question(kind, arrays)
            asked = first, stop
            if not self._address:
                part = {name: x if name == "reach" else x[first:stop] for name, x in arrays.items()}
                placed = np.ascontiguousarray(self._place(part["q"]), dtype=np.float64)
                questions[thread].point({**part, "placement": placed})
                asked = 0, stop - first
            if questions[thread].ask(*asked) == NOT_FINITE:
                finite[0] = False

        grain = max(1, int(SHARE / (OF_STATE + kind.microseconds * len(self.pairs))))
        try:
            if n <= grain:
                run(0, n)
            else:
                what = f"{len(self.pairs)} pairs of shapes of {self._robot.name!r}, {n} states"
                share_out(run, n, max(1, min(processors(), n // grain)), grain, what)
        finally:
            for question in questions.values():
                question.release()
        if not finite[0]:
            self._refuse_numbers()

    def _question(self, kind: _Kind, arrays: dict[str, Array]) -> _Question:
        """Return this thread's query of a kind, with these arrays."""
        if not hasattr(self._own, "questions"):
            self._own.questions = {}
        known: dict[_Kind, _Question] = self._own.questions
        if kind in known:
            known[kind].point(arrays)
        else:
            known[kind] = _Question(kind, self._table, self._work, arrays)
        return known[kind]

    def _refuse_numbers(self) -> None:
        raise ValueError(f"{self._robot.name}: q has numbers that are not finite; correct them")


class _Kind(NamedTuple):
    """A kind of query: the class of its table, the kernel that answers it, and its approximate time for a pair [us]."""

    table: type
    kernel: CompiledLoop
    microseconds: float


_ANY = _Kind(TouchingQuery, CompiledLoop(any_touching, 0), 0.02)
_EACH = _Kind(EachTouchingQuery, CompiledLoop(each_touching, 0), 0.1)
_DISTANCES = _Kind(DistanceQuery, CompiledLoop(all_distances, 0), 0.5)


class _Question:
    """A query of one thread: a table with its arrays, for the kernel that answers it."""

    def __init__(self, kind: _Kind, shapes: PairTable, work: QueryWork, arrays: dict[str, Array]) -> None:
        self._span, self._arrays = np.array([0, 1], np.int64), arrays
        self._table = Table(kind.table(span=self._span, shapes=shapes, work=work, **arrays))
        self.call = kind.kernel.for_tables(self._table), ctypes.c_int64(self._table.address)

    @property
    def places(self) -> tuple[memoryview, memoryview]:
        """The memory of one state, and of `within`."""
        q: Any = self._arrays["q"][0]
        reach: Any = self._arrays["reach"]
        return memoryview(q), memoryview(reach)

    def point(self, arrays: dict[str, Array]) -> None:
        """Set other arrays of the same kinds."""
        self._arrays = arrays
        for name, x in arrays.items():
            self._table.point(name, x)

    def release(self) -> None:
        """Release the arrays until the next query."""
        self._arrays = {}

    def ask(self, first: int, stop: int) -> int:
        """Run the kernel for states first to stop."""
        self._span[:] = first, stop
        run, table = self.call
        return run(table)


def placement_rows(robot: System, name: str, bodies: Sequence[str | None], poses: Sequence[Pose]) -> CompiledFunction:
    """Return a function of q: the placements (n, 12), as in `collision.triples`, of poses on bodies; None is the ground."""
    ground = Placed(-1, Pose())
    placed: dict[str | None, Placed] = {None: ground}
    placed |= {b.name: p for b, p in zip(robot.bodies, robot.model.placed_bodies, strict=True)}
    where = [Placed(placed[b].row, placed[b].pose @ pose) for b, pose in zip(bodies, poses, strict=True)] or [ground]
    return robot.bind(name, frames.placement_rows, (Q,), (Output("rows", (len(where), 12)),), (placements(where),))


LENGTH = BOUND.worded("zero or more [m]")


def checked_length(name: str, value: float) -> float:
    """Return a length. Raises ValueError for a negative length or another type."""
    return float(argument(name, value, LENGTH))


def _part(robot: System, shape: Shape) -> ShapePart:
    try:
        return shape_part(shape)
    except (ValueError, ImportError) as error:
        raise type(error)(f"{robot.name}: {error}") from error


def _pose(T: Array) -> Pose:
    return Pose(as_matrix(T[:3, :3]), (float(T[0, 3]), float(T[1, 3]), float(T[2, 3])))
