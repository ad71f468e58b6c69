"""Contact constraints on the motion of a robot's frames."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Annotated

import numpy as np
import numpy.typing as npt

from ...algorithms.contact.contact_rows import Branches, ContactRows
from ...array_types import Array, Matrix
from ...checks import CHECKED_LATER, checked, one_of, real_array
from ...model.end_effectors import EndEffectors, Spans, stations, worthwhile_stations
from ...model.model import Model, Placed
from ...model.topology import Topology
from ...model.tree import INNER
from ...model.types import AnyFrame, Pose, frame_name
from ...spatial.ordered import product, total

KINDS = {"point": 3, "weld": 6}  # constraint rows


KIND = one_of(KINDS)
EXACT = 1e-15  # of a sum's terms; a smaller sum is a rounding error


class Constraint:
    """A BilateralContact, CenterOfMass, Difference or JacobianRows: the common type of a list of these, for type checkers."""


class GivenRows(Constraint):
    """Constraints whose rows do not depend on the configuration."""

    matrix: Array

    @property
    def size(self) -> int:
        """The number of constraint rows."""
        return len(self.matrix)


@checked
@dataclass(frozen=True, eq=False)
class BilateralContact(GivenRows):
    """A contact that constrains a frame in both directions: m rows K on the frame's velocity.

    The velocity is (linear, angular), at the frame's origin and in its own axes. Unilateral contacts with friction are those
    of simulations: `ContactPoint`, `ContactSphere`, and shapes.

    `kind` "point" constrains the linear velocity (3 rows), "weld" the whole velocity (6 rows), as of a foot that lies flat;
    `rows` (m, 6) replace these. `frame` is the name of a frame ("world" is the ground), or a `Frame` that you create.
    `placement` (4, 4) is the placement of the contact frame in `frame`, if they differ.

    Raises ValueError for an unknown kind, rows that are not m by 6 finite numbers, or an invalid placement.
    """

    frame: AnyFrame
    kind: Annotated[str, KIND] = "weld"
    rows: Annotated[npt.ArrayLike | None, CHECKED_LATER] = None
    placement: Annotated[Pose | npt.ArrayLike | None, CHECKED_LATER] = None
    matrix: Matrix = field(init=False, repr=False)
    pose: Pose = field(init=False, repr=False)

    def __post_init__(self) -> None:
        K = checked_rows(self.rows, np.eye(6)[: KINDS[self.kind]], str(self))
        object.__setattr__(self, "matrix", K)
        object.__setattr__(self, "pose", Pose() if self.placement is None else Pose.of(self.placement, f"placement of {self}"))

    def __reduce__(self) -> tuple[object, ...]:
        return BilateralContact, (self.frame, self.kind, self.rows, self.placement)

    @property
    def key(self) -> Hashable:
        """A hashable value that identifies the contact."""
        return (self.frame, self.pose, self.matrix.tobytes())

    def __str__(self) -> str:
        return f"the contact on {frame_name(self.frame)!r}"


def checked_rows(rows: npt.ArrayLike | None, default: Matrix, what: str) -> Matrix:
    """Return rows as a read-only matrix. Raises ValueError unless they are finite and as wide as the default."""
    width = default.shape[1]
    K = default.copy() if rows is None else np.array(real_array(f"rows of {what}", rows))
    if K.ndim != 2 or K.shape[1] != width or len(K) == 0:
        raise ValueError(f"rows of {what} must have shape (m, {width}), m at least 1; got {K.shape}")
    if not np.isfinite(K).all():
        raise ValueError(f"rows of {what} must be finite numbers")
    K.flags.writeable = False
    return K


class Resolved:
    """Contacts on frames at `placed`, in the form that algorithms read."""

    def __init__(
        self, model: Model, contacts: Sequence[BilateralContact], placed: Sequence[Placed], topology: Topology | None = None
    ) -> None:
        self.sizes = [c.size for c in contacts]
        self._kinds = model.tree.kind
        self.ends = EndEffectors(topology or model.topology, [p.row for p in placed])
        begin = [0, *accumulate(self.sizes)]
        owner = [e for e, size in enumerate(self.sizes) for _ in range(size)]
        rows = [range(begin[e], begin[e + 1]) for e in range(len(contacts))]
        first, supported = _lists([[*chain.from_iterable([rows[e] for e in s])] for s in self.ends.supported])
        self.contacts = ContactRows(
            link=self.ends.links,
            begin=tuple(begin),
            wrench=tuple(w for c, at in zip(contacts, placed, strict=True) for w in wrenches(c.matrix, at.pose @ c.pose)),
            owner=tuple(owner),
            meet=_nested(self.ends.common_ancestors),
            first=first,
            supported=supported,
        )

    @property
    def branching(self) -> tuple[int, ...]:
        """The rows at which six columns may replace more columns."""
        return stations(self.ends, self.sizes)

    @property
    def some(self) -> tuple[int, ...]:
        """The rows at which a change to six columns saves operations."""
        return worthwhile_stations(self.ends, self.sizes, [kind == INNER for kind in self._kinds])

    def branches(self, at: Sequence[int]) -> Branches:
        """Return the branches between the rows `at`."""
        spans = Spans(self.ends, at, self.sizes)
        number = {row: k for k, row in enumerate(spans.at)}
        first, passing = _lists(spans.passing)
        begin = tuple(accumulate((c + 1 - low for c, low in enumerate(spans.earliest)), initial=0))
        return Branches(
            row=(*spans.at, -1),
            number=tuple(number.get(i, -1) for i in range(len(self.ends.tree))),
            above=(*(spans.above(k) for k in range(len(spans.at))), -1),
            end_above=tuple(spans.end_above(e) for e in range(len(self.sizes))),
            meet=_nested(spans.meets),
            first=first,
            passing=passing,
            earliest=tuple(spans.earliest),
            begin=begin,
            first_pair=(0, *accumulate(map(len, spans.pairs))),
            pairs=(*chain.from_iterable(spans.pairs), (-1, 0, 0)),
            first_range=(0, *accumulate(map(len, spans.supporting_ranges))),
            ranges=(*chain.from_iterable(spans.supporting_ranges), (0, 0)),
        )


def _lists(lists: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Concatenate lists: return the start of each, and all entries; a meaningless entry gives an empty list a type."""
    return (0, *accumulate(map(len, lists))), (*chain.from_iterable(lists), -1)


def _nested(matrix: Array) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, matrix.tolist()))


def wrenches(K: Matrix, pose: Pose) -> list[tuple[float, ...]]:
    """Return (torque, force) of unit forces of constraint rows K on (linear, angular) velocity.

    They are in the frame that contains `pose`.
    """
    R, p = np.array(pose.R), np.array(pose.p)
    forces = product(K[:, :3], R.T)
    x, y, z = forces.T
    moments = [p[1] * z - p[2] * y, p[2] * x - p[0] * z, p[0] * y - p[1] * x]  # numpy.cross is ten times slower
    torques = product(K[:, 3:], R.T) + np.array(moments).T
    size = total(np.abs(K[:, 3:])) + total(np.abs(forces)) * total(np.abs(p))  # scale of the rounding errors of zeros
    torques[np.abs(torques) <= EXACT * size[:, None]] = 0.0
    forces[np.abs(forces) <= EXACT * total(np.abs(K[:, :3]))[:, None]] = 0.0
    return [tuple(map(float, w + 0.0)) for w in np.hstack([torques, forces])]
