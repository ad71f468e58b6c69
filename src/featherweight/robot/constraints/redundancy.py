"""Which constraint rows depend on others, and how to do without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import matrix_rank, norm, pinv

from ...algorithms.contact.operational_space.reduction import Reduction
from .constraint import Constraint
from .contact import Contact, wrenches

if TYPE_CHECKING:
    from .operational_space import OperationalSpace

Array = np.ndarray[Any, np.dtype[Any]]

TOLERANCE = 1e-9  # relative to the largest singular value, of rows of length one
STATES = 3  # configurations in general position that are looked at


class Independent:
    """The same space with independent rows on each body, and what lies between the two."""

    def __init__(self, space: OperationalSpace) -> None:
        rows, spread, gather, notes = _by_bodies(space)
        if not rows:
            raise ValueError(f"{space!r}: no constraint moves with the robot; leave constraints on the ground out")
        whole = len(rows) == space.size
        self.space = space if whole else _with_rows(space, rows)
        rank = max(_rank(self.space, seed) for seed in range(STATES))
        if rank < len(rows):
            what = "all rows" if whole else "the others"
            notes.append(f"{what} together have rank {rank} instead of {len(rows)}")
        self.report = "; ".join(notes)
        self.reduction = Reduction(_tuples(spread), _tuples(gather), int(rank < len(rows)))


def _by_bodies(space: OperationalSpace) -> tuple[list[int], Array, Array, list[str]]:
    """Rows to keep, the matrices of a reduction, and what there is to say about the rest."""
    rows = space._rows
    begin = np.cumsum([0, *rows.sizes])
    m = int(begin[-1])
    on_body: dict[int, list[int]] = {}  # rows of contacts
    K = np.zeros((m, 6))
    for c, start, size in zip(space.constraints, begin, rows.sizes, strict=False):
        if isinstance(c, Contact):
            placed = space.robot.placed(c.frame)
            K[start : start + size] = wrenches(c.matrix, placed.pose @ c.pose)
            on_body.setdefault(placed.row, []).extend(range(start, start + size))
    kept = sorted(set(range(m)).difference(*on_body.values()))
    chosen: dict[int, list[int]] = {}
    for body, mine in on_body.items():
        chosen[body] = [] if body < 0 else _independent_rows(K, mine)
        kept = sorted(kept + chosen[body])
    spread, gather = np.zeros((m, len(kept))), np.zeros((len(kept), m))
    place = {r: k for k, r in enumerate(kept)}
    notes = []
    for r in kept:
        spread[r, place[r]] = gather[place[r], r] = 1.0
    for body, mine in on_body.items():
        columns = [place[r] for r in chosen[body]]
        if len(columns) < len(mine):
            basis = K[chosen[body]]
            spread[np.ix_(mine, columns)] = pinv(K[mine].T) @ basis.T
            gather[np.ix_(columns, mine)] = basis @ pinv(K[mine])
            notes.append(_note(space, body, begin, mine, len(columns)))
    return kept, spread, gather, notes


def _independent_rows(K: Array, mine: list[int]) -> list[int]:
    """The first rows that are independent of those before them."""
    chosen: list[int] = []
    for r in mine:
        tried = np.array([K[s] / norm(K[s]) for s in [*chosen, r] if norm(K[s]) > 0.0])
        if len(tried) == len(chosen) + 1 and matrix_rank(tried, TOLERANCE) == len(tried):
            chosen.append(r)
    return chosen


def _note(space: OperationalSpace, body: int, begin: Array, mine: list[int], rank: int) -> str:
    which = sorted({int(np.searchsorted(begin, r, side="right")) - 1 for r in mine})
    names = " and ".join(str(space.constraints[k]) for k in which)
    where = "the ground" if body < 0 else "one body"
    verb = "has" if len(which) == 1 else "have"
    return f"{names}, on {where}, {verb} {len(mine)} rows of which {rank} are independent"


def _with_rows(space: OperationalSpace, rows: list[int]) -> OperationalSpace:
    """The space with some rows only: whole constraints, and parts of contacts."""
    from .operational_space import OperationalSpace

    made: list[Constraint] = []
    begin = 0
    for c, size in zip(space.constraints, space._rows.sizes, strict=True):
        mine = [r - begin for r in rows if begin <= r < begin + size]
        begin += size
        if isinstance(c, Contact) and mine:
            made.append(Contact(c.frame, rows=c.matrix[mine], placement=c.placement))
        elif not isinstance(c, Contact):
            made.append(c)
    return OperationalSpace(space.robot, tuple(made))


def _rank(space: OperationalSpace, seed: int) -> int:
    J = space.jacobian(space.robot.random_configuration(seed))
    length = norm(J, axis=1, keepdims=True)
    seen = length > TOLERANCE * length.max(initial=0.0)  # what is left is rounding: rows on what cannot move
    return int(matrix_rank(np.where(seen, J / np.where(seen, length, 1.0), 0.0), TOLERANCE))


def _tuples(A: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in A)
