"""Straight-line LLVM IR for one state and the derivatives along many directions, which lie in the lanes of vectors.

Scalars are computed as elsewhere, and multiply vectors in all lanes. A result's row is put together from the lanes that hold
its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...lane_trace import LaneTrace, Scalar
from ...operations import CONSTANT, INPUT
from .emit import Emitter, Kernel
from .ir import Type, Vector


def emit_lanes(t: LaneTrace, precision: str, fma: bool) -> Kernel:
    """The IR of a whole trace. The derivatives of a result by one argument after the other are arrays of their own.

    Its workspace is in scalars. Sines and cosines of inputs are computed as many at a time as there are lanes.
    """
    return LaneEmitter(t, precision, fma).kernel()


class LaneEmitter(Emitter):
    """What such a kernel is written by."""

    def __init__(self, t: LaneTrace, precision: str, fma: bool) -> None:
        self.lane_trace, self.vectors = t, t.vectors
        self.seeds = len(t.trace.inputs) - 1  # the number of the input that they are
        self.wide, self.item = Type(precision, t.lanes), Vector(precision, t.lanes)
        self.rows = [(result, row) for result, count in enumerate(t.rows) for row in range(count)]
        super().__init__(t.trace, Type(precision, 1), fma, [1] * (len(t.rows) * len(t.columns)), t.lanes)
        del self.arguments[self.seeds]

    # nodes

    def _seed(self, i: int) -> tuple[Scalar, ...] | None:
        """The scalars in the lanes of a node that is a seed."""
        g = self.trace.graph
        return self.lane_trace.seeds[g.b[i]] if g.op[i] == INPUT and g.a[i] == self.seeds else None

    def operands(self, i: int) -> tuple[int, ...]:
        seed = self._seed(i)
        return self.graph.operands(i) if seed is None else tuple(x[0] for x in seed if isinstance(x, tuple))

    def _is_computed(self, i: int) -> bool:
        return bool(self.operands(i)) if self._seed(i) else super()._is_computed(i)

    def type_of(self, i: int) -> Type:
        return self.wide if i in self.vectors else self.type

    @property
    def result_type(self) -> Type:
        return self.wide

    def _slots(self) -> tuple[dict[int, int], int]:
        """Those of scalars, then those of vectors, which are numbered as if all were vectors."""
        lanes = self.lane_trace.lanes
        scalars, size = self._allocate([i for i in self.nodes if i not in self.vectors], self._place_turns())
        vectors, size = self._allocate([i for i in self.nodes if i in self.vectors], -(-size // lanes))
        return scalars | vectors, size * lanes

    # instructions

    def _value(self, i: int) -> str:
        seed = self._seed(i)
        if seed is None or self.operands(i):
            return super()._value(i)
        items = ", ".join(f"{self.type.ir} {self.type.constant(float(x))}" for x in seed if not isinstance(x, tuple))
        return f"<{items}>"

    def _operand(self, i: int, type: Type) -> str:
        if type.lanes == 1 or i in self.vectors:
            return self._value(i)
        if self.graph.op[i] == CONSTANT:
            return type.constant(self.graph.a[i])
        if i not in self.held.spread:
            first = self.f.insert(type, "poison", self._value(i), 0)
            self.held.spread[i] = self.f.shuffle(type, first, "poison", [0] * type.lanes)
        return self.held.spread[i]

    def _instruction(self, i: int) -> str:
        seed = self._seed(i)
        if seed is None:
            return super()._instruction(i)
        vector = "zeroinitializer"
        for lane, x in enumerate(seed):
            if isinstance(x, tuple):
                value = self._negated(x[0], self.type) if x[1] else self._value(x[0])
                vector = self.f.insert(self.wide, vector, value, lane)
            elif x != 0.0:
                vector = self.f.insert(self.wide, vector, self.type.constant(x), lane)
        return vector

    def _output(self, k: int, value: str) -> None:
        """A vector of a row: its lanes go to the columns that they hold."""
        row, group = divmod(k, len(self.lane_trace.pieces))
        result, row = self.rows[row]
        for piece in self.lane_trace.pieces[group]:
            array = f"%out{result * len(self.lane_trace.columns) + piece.argument}"
            place = self.f.at(self.type.ir, array, row * self.lane_trace.columns[piece.argument] + piece.column)
            self.f.store_first(self.item, self._gathered_lanes(value, piece.lanes), place, len(piece.lanes))

    def _arrays_of(self, outputs: Iterable[int]) -> dict[int, int]:
        arrays: dict[int, int] = {}
        t = self.lane_trace
        for k in outputs:
            row, group = divmod(k, len(t.pieces))
            result, _ = self.rows[row]
            for piece in t.pieces[group]:
                arrays[result * len(t.columns) + piece.argument] = t.rows[result] * t.columns[piece.argument]
        return arrays

    def _gathered_lanes(self, vector: str, lanes: Sequence[int]) -> str:
        """These lanes as the first."""
        if list(lanes) == list(range(len(lanes))):
            return vector
        rest = [-1] * (self.wide.lanes - len(lanes))
        return self.f.shuffle(self.wide, vector, "poison", [*lanes, *rest])
