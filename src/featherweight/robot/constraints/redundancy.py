"""Detection and elimination of dependent constraint rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...algorithms.contact.operational_space.dense_factors import Reduction
from ...array_types import Array
from ...engine.function import CompiledFunction
from ...engine.trace import evaluate
from ...spatial.ordered import lengths, product, pseudo_inverse, singular_values
from ..system import System
from .constraint import KnownConstraint, ResolvedRows
from .contact import BilateralContact, wrenches

TOLERANCE = 1e-9  # relative to the largest singular value of normalized rows
ROUNDING = 1e-13  # tolerance for 0 and ±1 among the entries of a reduction
STATES = 3  # number of configurations in general position


class Independence:
    """The constraints without rows that depend on others of the same body, and the map between the two sets of rows.

    `rank` is the number of independent rows in general position. `jacobian` returns the function of q that computes the
    Jacobian of constraints. Raises ValueError if no constraint moves with the robot.
    """

    def __init__(
        self,
        system: System,
        constraints: tuple[KnownConstraint, ...],
        resolved: ResolvedRows,
        jacobian: Callable[[tuple[KnownConstraint, ...]], CompiledFunction[Any]],
    ) -> None:
        kept, spread, gather, notes = _by_bodies(system, constraints, resolved)
        if not kept:
            names = ", ".join(map(str, constraints))
            raise ValueError(f"{names}: no constraint moves with the robot; remove constraints on the ground")
        whole = len(kept) == sum(resolved.sizes)
        self.constraints = constraints if whole else _with_rows(constraints, resolved.sizes, kept)
        J = jacobian(self.constraints)
        self.rank = rank = max(_rank(_evaluated(J, system.random_configuration(rng=seed))) for seed in range(STATES))
        if rank < len(kept):
            what = "all rows" if whole else "the others"
            notes.append(f"{what} together have rank {rank} instead of {len(kept)}")
        self.report = "; ".join(notes)
        norm = product(spread.T, spread)
        self.reduction = Reduction(_tuples(spread), _tuples(gather), _tuples(norm), int(rank < len(kept)))


def _by_bodies(
    system: System, constraints: tuple[KnownConstraint, ...], resolved: ResolvedRows
) -> tuple[list[int], Array, Array, list[str]]:
    """Return the rows to keep, the matrices of a reduction, and a description of the dependent rows."""
    begin = np.cumsum([0, *resolved.sizes])
    m = int(begin[-1])
    on_body: dict[int, list[int]] = {}  # rows of the contacts on each body
    K = np.zeros((m, 6))
    for c, start, size in zip(constraints, begin, resolved.sizes, strict=False):
        if isinstance(c, BilateralContact):
            placed = system._placed(c.frame)
            K[start : start + size] = wrenches(c.matrix, placed.pose @ c.pose)
            on_body.setdefault(placed.row, []).extend(range(start, start + size))
    kept = sorted(set(range(m)).difference(*on_body.values()))
    chosen: dict[int, list[int]] = {}
    for body, own in on_body.items():
        chosen[body] = [] if body < 0 else _independent_rows(K, own)
        kept = sorted(kept + chosen[body])
    spread, gather = np.zeros((m, len(kept))), np.zeros((len(kept), m))
    place = {r: k for k, r in enumerate(kept)}
    notes = []
    for r in kept:
        spread[r, place[r]] = gather[place[r], r] = 1.0
    for body, own in on_body.items():
        columns = [place[r] for r in chosen[body]]
        if len(columns) < len(own):
            basis = K[chosen[body]]
            spread[np.ix_(own, columns)] = product(pseudo_inverse(K[own].T), basis.T)
            gather[np.ix_(columns, own)] = product(basis, pseudo_inverse(K[own]))
            notes.append(_note(constraints, body, begin, own, len(columns)))
    return kept, spread, gather, notes


def _independent_rows(K: Array, own: list[int]) -> list[int]:
    """Return the first rows that are independent of earlier rows."""
    chosen: list[int] = []
    for r in own:
        tried = K[[*chosen, r]]
        size = lengths(tried)[:, None]
        if size.all() and _count(tried / size) == len(tried):
            chosen.append(r)
    return chosen


def _note(constraints: tuple[KnownConstraint, ...], body: int, begin: Array, own: list[int], rank: int) -> str:
    which = sorted({int(np.searchsorted(begin, r, side="right")) - 1 for r in own})
    names = " and ".join(str(constraints[k]) for k in which)
    where = "the ground" if body < 0 else "one body"
    verb = "has" if len(which) == 1 else "have"
    return f"{names}, on {where}, {verb} {len(own)} rows of which {rank} are independent"


def _with_rows(constraints: tuple[KnownConstraint, ...], sizes: Sequence[int], rows: list[int]) -> tuple[KnownConstraint, ...]:
    """Return the constraints restricted to some rows: whole constraints, and parts of contacts."""
    left: list[KnownConstraint] = []
    begin = 0
    for c, size in zip(constraints, sizes, strict=True):
        own = [r - begin for r in rows if begin <= r < begin + size]
        begin += size
        if isinstance(c, BilateralContact) and own:
            left.append(BilateralContact(c.frame, rows=c.matrix[own], placement=c.placement))
        elif not isinstance(c, BilateralContact):
            left.append(c)
    return tuple(left)


def _evaluated(J: CompiledFunction[Any], q: Array) -> Array:
    """Return the Jacobian, evaluated by its trace if available: the last digits of compiled code depend on the processor."""
    if J.too_large or J.execution != "traced":
        return np.asarray(J(q))
    return np.array(evaluate(J.trace, [q.tolist()])).reshape(J.program.outputs[0].shape)


def _rank(J: Array) -> int:
    length = lengths(J)[:, None]
    seen = length > TOLERANCE * length.max(initial=0.0)  # smaller rows are rounding errors: rows on bodies that cannot move
    return _count(np.where(seen, J / np.where(seen, length, 1.0), 0.0))


def _count(rows: Array) -> int:
    """Return the number of independent rows; all rows have length one."""
    return int((singular_values(rows) > TOLERANCE).sum())


def _tuples(A: Array) -> tuple[tuple[float, ...], ...]:
    """Return rows of numbers; 0 and ±1 up to rounding become exact and then take no operation."""
    whole = np.rint(A)
    near = (np.abs(A - whole) < ROUNDING) & (np.abs(whole) <= 1.0)
    return tuple(tuple(map(float, row)) for row in np.where(near, whole + 0.0, A))


def all_rows(m: int) -> Reduction:
    """Return the reduction that keeps all of m rows."""
    same = _tuples(np.eye(m))
    return Reduction(same, same, same, 0)
