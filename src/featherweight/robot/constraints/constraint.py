"""Constraints that do not belong to one body: the centre of mass, the difference of two frames, user-defined rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from ...algorithms.contact.constraint_rows import ConstraintRows, FunctionEntries
from ...array_types import Array, Matrix
from ...checks import CHECKED_LATER, checked, shown
from ...engine.differentiation import rates_of_expressions
from ...engine.graph import Expression, Graph
from ...engine.tape import record
from ...model.model import Model, Placed
from ...model.types import AnyFrame, Pose, frame_name
from .contact import BilateralContact, Constraint, GivenRows, checked_rows, wrenches


@checked
@dataclass(frozen=True, eq=False)
class CenterOfMass(GivenRows):
    """Constraint rows (m, 3) on the velocity of the centre of mass, in the world's axes; the default is all three components.

    The centre of mass is that of all moving bodies. Raises ValueError for rows that are not m by 3 finite numbers.
    """

    rows: Annotated[npt.ArrayLike | None, CHECKED_LATER] = None
    matrix: Matrix = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", checked_rows(self.rows, np.eye(3), "the centre of mass"))

    @property
    def key(self) -> Hashable:
        """A hashable value that identifies the constraint."""
        return ("centre of mass", self.matrix.tobytes())

    def __str__(self) -> str:
        return "the centre of mass"


@checked
@dataclass(frozen=True, eq=False)
class Difference(GivenRows):
    """Constraint rows (m, 6) on the (linear, angular) velocity of `frame` minus that of `other`, in the axes of `frame`.

    Each velocity is that of the frame's own origin. `kind` is as for a contact. Raises ValueError as `BilateralContact` does.
    """

    frame: AnyFrame
    other: AnyFrame
    kind: Annotated[str, CHECKED_LATER] = "weld"
    rows: Annotated[npt.ArrayLike | None, CHECKED_LATER] = None
    matrix: Matrix = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", BilateralContact(self.frame, self.kind, self.rows).matrix)

    @property
    def key(self) -> Hashable:
        """A hashable value that identifies the constraint."""
        return ("difference", self.frame, self.other, self.matrix.tobytes())

    def __str__(self) -> str:
        return f"the difference of {frame_name(self.frame)!r} and {frame_name(self.other)!r}"


@checked
@dataclass(frozen=True, eq=False)
class JacobianRows(Constraint):
    """User-defined constraint rows: `function(q)` returns an array or nested sequence (m, nv).

    The function is called once for a robot, with an object array q (nq,) of symbolic numbers. Arithmetic, numpy.sin, numpy.cos
    and numpy.sqrt accept these numbers; comparisons do not. J' v follows from the exact derivative of the function.
    """

    function: Callable[[Array], Any]

    @property
    def key(self) -> Hashable:
        """The object itself, because functions cannot be compared."""
        return self

    def __str__(self) -> str:
        return f"rows by {getattr(self.function, '__name__', 'a function')}"


KnownConstraint = BilateralContact | CenterOfMass | Difference | JacobianRows


def as_constraints(constraints: Constraint | Iterable[Constraint], what: str) -> tuple[KnownConstraint, ...]:
    """Return the constraints as a tuple.

    Raises ValueError for an empty sequence and TypeError for an object that is not a constraint.
    """
    given: Any = constraints
    one = isinstance(given, Constraint | str) or not isinstance(given, Iterable)
    every = (given,) if one else tuple(given)
    if not every:
        raise ValueError(f"{what} needs at least one contact; got none")
    return tuple(_known(c, what) for c in every)


def _known(c: Constraint, what: str) -> KnownConstraint:
    if not isinstance(c, KnownConstraint):
        advice = f"; write featherweight.BilateralContact({c!r})" if isinstance(c, str) else ""
        kinds = "featherweight.BilateralContact, CenterOfMass, Difference or JacobianRows"
        raise TypeError(f"{what} takes {kinds}; got {shown(c)}{advice}")
    return c


class ResolvedRows:
    """Constraint rows of any kind, in the form that algorithms read; `placed` gives the placements of frames."""

    def __init__(
        self,
        model: Model,
        constraints: Sequence[KnownConstraint],
        placed: Callable[[AnyFrame], Placed],
        lengths: tuple[int, int],
    ) -> None:
        self._lengths = lengths  # lengths of q and v
        self._of_masses = any(isinstance(c, CenterOfMass) for c in constraints)
        self.sizes: list[int] = []
        self._K: list[Sequence[float]] = []
        self._groups: list[tuple[int, int, int, Any]] = []  # first and last row, body that carries the axes, axes on it
        self._points: list[list[tuple[int, tuple[float, ...], float]]] = []
        self._entries: list[tuple[int, int, Any, Any]] = []  # entries of functions: row, column, value and rate
        for c in constraints:
            begin = len(self._K)
            if isinstance(c, JacobianRows):
                self._add_block(c)
            elif isinstance(c, CenterOfMass):
                tree = model.tree
                total = math.fsum(tree.mass)
                bodies = [i for i, mass in enumerate(tree.mass) if mass > 0.0]
                at = {i: tuple(float(x) / tree.mass[i] for x in tree.moment[i]) for i in bodies}
                rows = np.hstack([c.matrix, np.zeros_like(c.matrix)])
                self._add(rows, -1, Pose(), [(i, at[i], tree.mass[i] / total) for i in bodies])
            elif isinstance(c, Difference):
                a, b = placed(c.frame), placed(c.other)
                self._add(c.matrix, a.row, a.pose, [(a.row, a.pose.p, 1.0), (b.row, b.pose.p, -1.0)])
            else:
                a = placed(c.frame)
                self._K += wrenches(c.matrix, a.pose @ c.pose)
                self._close(begin, a.row, Pose(), [(a.row, (0.0, 0.0, 0.0), 1.0)])
            self.sizes.append(len(self._K) - begin)

    def _add(self, K: Array, axes: int, pose: Pose, points: list[tuple[int, tuple[float, ...], float]]) -> None:
        begin = len(self._K)
        self._K += [tuple(map(float, (*row[3:], *row[:3]))) for row in K]
        self._close(begin, axes, pose, points)

    def _close(self, begin: int, axes: int, pose: Pose, points: list[tuple[int, tuple[float, ...], float]]) -> None:
        self._groups.append((begin, len(self._K), axes, pose.R))
        self._points.append(points)

    def _add_block(self, c: JacobianRows) -> None:
        """Add rows of the user's function: its entries and their rates, as expressions of q and the rate of q."""
        nq, nv = self._lengths
        g = Graph()
        q, rate = ([g.input(0, part * nq + i) for i in range(nq)] for part in range(2))
        array = np.empty(nq, dtype=object)
        array[:] = q
        block = np.array(c.function(array), dtype=object)
        if block.ndim != 2 or block.shape[1] != nv or len(block) == 0:
            raise ValueError(f"{c} must have shape (m, {nv}), m at least 1; got {block.shape}")
        seeds = [*((x, {0: dx}) for x, dx in zip(q, rate, strict=True)), *((dx, {}) for dx in rate)]
        begin, values = len(self._K), list(block.ravel())
        for k, (x, own) in enumerate(zip(values, rates_of_expressions(values, seeds), strict=True)):
            if isinstance(x, Expression) or float(x) != 0.0:
                self._entries.append((begin + k // nv, k % nv, x, own.get(0, 0.0)))
        self._K += [(0.0,) * 6 for _ in block]

    @property
    def rows(self) -> ConstraintRows:
        """The constants of the algorithms. A meaningless entry gives empty lists a type."""
        groups = self._groups or [(0, 0, -1, Pose().R)]
        points = self._points or [[]]
        flat = [p for group in points for p in group] or [(-1, (0.0, 0.0, 0.0), 0.0)]
        first = np.cumsum([0, *map(len, points)])
        return ConstraintRows(
            K=tuple(self._K),
            start=tuple(g[0] for g in groups),
            stop=tuple(g[1] for g in groups),
            axes=tuple(g[2] for g in groups),
            turned=tuple(g[3] for g in groups),
            first=tuple(map(int, first)),
            link=tuple(p[0] for p in flat),
            point=tuple(p[1] for p in flat),
            weight=tuple(p[2] for p in flat),
            entries=self._function_entries(),
            of_masses=self._of_masses,
        )

    def _function_entries(self) -> FunctionEntries:
        """Return the entries of functions on two tapes: one of all values and one of all rates."""
        row, column, values, rates = zip(*(self._entries or [(0, 0, 0.0, 0.0)]), strict=True)
        return FunctionEntries(row, column, record(values), record(rates))
