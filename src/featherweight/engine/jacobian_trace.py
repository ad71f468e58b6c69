"""The trace of a Jacobian for one state, with its directions in vector lanes.

Rates are linear: each is a sum of rates of operands times scalars. One pass over a trace therefore computes `lanes` directions
at once. Directions that reach the same values share a vector (`groups_of_directions`). A vector that no direction of its group
reaches is left out.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .differentiation import Rates, forward, is_zero
from .graph import Expression, Graph
from .operations import INPUT
from .trace import Trace, live_nodes, outputs_of, values_of

Scalar = tuple[int, bool] | float  # (node, negative), or a number


class Piece(NamedTuple):
    """Adjacent columns of the derivatives with respect to one argument, and the lanes of a group that contain them."""

    argument: int
    column: int
    lanes: tuple[int, ...]


class JacobianTrace(NamedTuple):
    """A trace of scalars and vectors. Vectors follow from the last input, which is not an argument but the vectors of `seeds`.

    Outputs are the vectors of each row of derivatives, one for each group of directions, or zero.
    """

    trace: Trace
    lanes: int
    seeds: tuple[tuple[Scalar, ...], ...]  # scalars in the lanes of each seed
    pieces: tuple[tuple[Piece, ...], ...]  # pieces of each group
    rows: tuple[int, ...]  # rows of the derivatives of each result
    columns: tuple[int, ...]  # columns of the derivatives with respect to each argument
    values: int = 0  # number of scalars at the end of the outputs: results that are not differentiated

    @property
    def vectors(self) -> set[int]:
        """Return the nodes that are vectors."""
        g, last = self.trace.graph, len(self.trace.inputs) - 1
        vectors: set[int] = set()
        for i in self.trace.live:
            if (g.op[i] == INPUT and g.a[i] == last) or any(j in vectors for j in g.operands(i)):
                vectors.add(i)
        return vectors


def jacobian_trace(
    t: Trace,
    seeds: Callable[[Sequence[list[Any]]], Sequence[Sequence[Rates]]],
    rows: Sequence[int],
    columns: Sequence[int],
    lanes: int,
    values: int = 0,
) -> JacobianTrace:
    """Return the derivatives of a trace along directions; the last `values` outputs are not differentiated.

    `seeds` returns the rates of the arguments' scalars from these scalars. Directions are the concatenated columns of
    derivatives with respect to arguments; the outputs of the trace are the rows.
    """
    g = Graph()
    given = [[g.input(k, i) for i in range(n)] for k, n in enumerate(t.inputs)]
    rates = seeds(given)
    reached = _reached(t, rates)
    groups = groups_of_directions(*_sets(reached, sum(columns)), lanes)
    vectors = _Seeds(g, len(t.inputs), groups, lanes)
    x = values_of(t, given)
    moving = [[vectors.of(own) for own in scalars] for scalars in rates]
    results = []
    for k, group in enumerate(groups):
        mask = sum(1 << d for d in group)
        on_the_way = t._replace(live=tuple(i for i in t.live if reached[i] & mask))
        results.append(forward(on_the_way, x, [[{k: own[k]} if k in own else {} for own in scalars] for scalars in moving]))
    outputs: list[Scalar] = []
    for of_groups in itertools.islice(zip(*results, strict=True), sum(rows)):
        for k, row in enumerate(of_groups):
            y = row.get(k, 0.0)
            outputs.append((y.node, y.negative) if isinstance(y, Expression) else 0.0)
    for y in outputs_of(t, x)[sum(rows) : sum(rows) + values]:
        outputs.append((y.node, y.negative) if isinstance(y, Expression) else float(y))
    return JacobianTrace(
        Trace(g, (*t.inputs, len(vectors.entries)), tuple(outputs), _live(g, outputs, list(vectors.entries), len(t.inputs))),
        lanes,
        tuple(vectors.entries),
        tuple(_pieces(group, columns) for group in groups),
        tuple(rows),
        tuple(columns),
        values,
    )


class _Seeds:
    """The rates of scalars of arguments as vectors; equal vectors are one input."""

    def __init__(self, g: Graph, argument: int, groups: Sequence[Sequence[int]], lanes: int) -> None:
        self.graph, self.argument, self.groups, self.lanes = g, argument, groups, lanes
        self.entries: dict[tuple[Scalar, ...], int] = {}

    def of(self, rates: Rates) -> Rates:
        """Return the vectors of rates by group."""
        own: Rates = {}
        for k, group in enumerate(self.groups):
            scalars = [rates.get(d, 0.0) for d in group] + [0.0] * (self.lanes - len(group))
            if not all(is_zero(x) for x in scalars):
                entry = tuple((x.node, x.negative) if isinstance(x, Expression) else float(x) for x in scalars)
                own[k] = self.graph.input(self.argument, self.entries.setdefault(entry, len(self.entries)))
        return own


def _live(g: Graph, outputs: Sequence[Scalar], seeds: Sequence[Sequence[Scalar]], argument: int) -> tuple[int, ...]:
    """Return the nodes that outputs depend on, including those in the lanes of the seeds."""
    nodes = {x[0] for x in outputs if isinstance(x, tuple)}
    own = [i for i in live_nodes(g, nodes) if g.op[i] == INPUT and g.a[i] == argument]
    return live_nodes(g, nodes | {x[0] for i in own for x in seeds[g.b[i]] if isinstance(x, tuple)})


def _pieces(group: Sequence[int], columns: Sequence[int]) -> tuple[Piece, ...]:
    """Return the pieces of a group, each with adjacent lanes and columns; the group's directions are sorted."""
    pieces: list[Piece] = []
    place = [(k, c) for k, n in enumerate(columns) for c in range(n)]
    for lane, direction in enumerate(group):
        argument, column = place[direction]
        last = pieces[-1] if pieces else None
        if last and last.argument == argument and last.column + len(last.lanes) == column:
            pieces[-1] = last._replace(lanes=(*last.lanes, lane))
        else:
            pieces.append(Piece(argument, column, (lane,)))
    return tuple(pieces)


def _reached(t: Trace, seeds: Sequence[Sequence[Rates]]) -> dict[int, int]:
    """Return the directions that reach each node, as a bit mask."""
    g = t.graph
    masks: dict[int, int] = {}
    for i in t.live:
        if g.op[i] == INPUT:
            mask = sum(1 << d for d in seeds[int(g.a[i])][g.b[i]])
        else:
            mask = 0
            for j in g.operands(i):
                mask |= masks[j]
        masks[i] = mask
    return masks


def _sets(masks: Mapping[int, int], count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the sets of nodes that each direction reaches (directions, sets), and the size of each set."""
    weights = Counter(masks.values())
    reach = np.array([[mask >> d & 1 for mask in weights] for d in range(count)], bool)
    return reach, np.array(list(weights.values()))


def groups_of_directions(reach: np.ndarray[Any, Any], weights: np.ndarray[Any, Any], lanes: int) -> list[list[int]]:
    """Return groups of `lanes` directions such that few groups reach each node.

    A group starts with the direction that reaches least. Then it repeatedly adds the direction that extends its reach least and
    overlaps most with it.
    """
    left = list(range(len(reach)))
    size = reach @ weights
    groups: list[list[int]] = []
    while left:
        first = min(left, key=lambda d: (size[d], d))
        group, covered = [first], reach[first].copy()
        left.remove(first)
        while left and len(group) < lanes:
            added = (reach[left] & ~covered) @ weights
            common = size[left] - added
            best = left[int(np.lexsort((left, -common, added))[0])]
            group.append(best)
            covered |= reach[best]
            left.remove(best)
        groups.append(sorted(group))
    return groups
