"""Plan a trace: fuse products, order and cut the nodes, give places to values, and list the steps.

A product that feeds one sum only is fused into it, so that a state gives the same bits alone, in a vector, and at any place in
it. Long traces are cut into parts: the time of compilers grows faster than linearly in a function. Values that a later part
reads lie in the workspace.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, count
from typing import Protocol

from ..lane_trace import LaneTrace, Scalar
from ..operations import ADD, CONSTANT, COS, INPUT, MUL, OPERATIONS, SIN, SUB
from ..trace import Trace
from .registers import Registers
from .schedule import schedule
from .straight_plan import (
    ClearStep, FmaStep, InsertStep, LoadStep, NegateStep, Operand, OperationStep, PlanOptions, PlanPart, RoomStep,
    SincosGroupStep, SincosStep, SpreadStep, Step, StoreLanesStep, StoreStep, StraightPlan,
)  # fmt: skip


def plan_trace(t: Trace, sizes: Sequence[int], options: PlanOptions) -> StraightPlan:
    """The plan of a trace. Results go to arrays of the given sizes, one after the other."""
    return _Planner(_Arrangement(t, options), _ArraysInTurn(sizes)).plan(len(t.inputs), len(sizes))


def plan_lanes(t: LaneTrace, options: PlanOptions) -> StraightPlan:
    """The plan of derivatives with directions in lanes: those of a result by one argument after the other are arrays."""
    last = len(t.trace.inputs) - 1  # the input that is no argument but the seeds
    g = t.trace.graph
    seeds = {i: t.seeds[g.b[i]] for i in t.trace.live if g.op[i] == INPUT and g.a[i] == last}
    return _Planner(_Arrangement(t.trace, options, seeds, t.vectors), _RowsOfLanes(t)).plan(last, len(t.rows) * len(t.columns))


class _Results(Protocol):
    """Where results lie, by their numbers."""

    def stores(self, k: int, operand: Operand) -> list[Step]:
        """What writes a result."""

    def holding(self, results: Iterable[int]) -> dict[int, int]:
        """The numbers and sizes of the arrays that hold some results."""


class _ArraysInTurn:
    """Results one after the other, in one array after the other."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes, self.first = sizes, [0, *accumulate(sizes)][:-1]

    def stores(self, k: int, operand: Operand) -> list[Step]:
        array = bisect_right(self.first, k) - 1
        return [StoreStep(f"out{array}", k - self.first[array], operand, False)]

    def holding(self, results: Iterable[int]) -> dict[int, int]:
        return {array: self.sizes[array] for array in {bisect_right(self.first, k) - 1 for k in results}}


class _RowsOfLanes:
    """Vectors of rows of derivatives, whose lanes go to the columns that they hold."""

    def __init__(self, t: LaneTrace) -> None:
        self.trace = t
        self.rows = [(result, row) for result, number in enumerate(t.rows) for row in range(number)]

    def stores(self, k: int, operand: Operand) -> list[Step]:
        row, group = divmod(k, len(self.trace.pieces))
        result, row = self.rows[row]
        columns = self.trace.columns
        return [
            StoreLanesStep(f"out{result * len(columns) + p.argument}", row * columns[p.argument] + p.column, operand, p.lanes)
            for p in self.trace.pieces[group]
        ]

    def holding(self, results: Iterable[int]) -> dict[int, int]:
        t, arrays = self.trace, dict[int, int]()
        for k in results:
            row, group = divmod(k, len(t.pieces))
            result, _ = self.rows[row]
            for piece in t.pieces[group]:
                arrays[result * len(t.columns) + piece.argument] = t.rows[result] * t.columns[piece.argument]
        return arrays


class _Arrangement:
    """What is computed, in which order and parts, and the slots of the workspace.

    `seeds` are inputs that hold scalars of the trace in their lanes; `vectors` are the nodes that are vectors.
    """

    def __init__(
        self, t: Trace, options: PlanOptions, seeds: Mapping[int, tuple[Scalar, ...]] | None = None, vectors: Iterable[int] = ()
    ) -> None:
        self.trace, self.options, self.seeds, self.vectors = t, options, seeds or {}, frozenset(vectors)
        op, a = t.graph.op, t.graph.a
        self.operands = operands = {i: t.graph.operands(i) for i in t.live}
        for i, seed in self.seeds.items():
            operands[i] = tuple(x[0] for x in seed if isinstance(x, tuple))
        self.constants: dict[int, float | tuple[float, ...]] = {i: float(a[i]) for i in t.live if op[i] == CONSTANT}
        for i, seed in self.seeds.items():
            if not operands[i]:
                self.constants[i] = tuple(float(x) for x in seed if not isinstance(x, tuple))
        uses = Counter(chain.from_iterable(operands.values()))
        uses.update(x[0] for x in t.outputs if isinstance(x, tuple))
        self.fused = self._fused(uses) if options.fma else {}  # node of a sum -> the product fused into it
        self.turns = self._turns()
        turned = [i for i in t.live if op[i] in (SIN, COS) and operands[i][0] in self.turns]
        uses.subtract(operands[i][0] for i in turned)
        gone = {*self.fused.values(), *turned, *(i for i in self.turns if not uses[i])}
        nodes = [i for i in t.live if operands[i] and i not in gone]
        self.reads = {i: self._reads(i) for i in nodes}  # the nodes that are operands when node i is computed
        if options.ordered:
            nodes = schedule(nodes, self.reads, [OPERATIONS[op[i]].latency for i in nodes])
        part = options.part if len(nodes) < options.long else options.part_of_long
        self.parts = [nodes[k : k + part] for k in range(0, len(nodes), part)]
        self.part_of = {i: k for k, own in enumerate(self.parts) for i in own}
        self.slot: dict[int, int] = {}
        self.workspace = self._place(turned)

    def _turns(self) -> list[int]:
        """The inputs, and inputs with a constant added, whose sine or cosine is wanted, in order."""
        op, operands = self.trace.graph.op, self.operands

        def early(i: int) -> bool:
            shifted = op[i] in (ADD, SUB) and sorted(op[j] for j in operands[i]) == [INPUT, CONSTANT]
            return op[i] == INPUT or shifted

        angles = (operands[i][0] for i in self.trace.live if op[i] in (SIN, COS))
        return list(dict.fromkeys(angle for angle in angles if early(angle)))

    def _fused(self, uses: Mapping[int, int]) -> dict[int, int]:
        """For each sum that takes a product nobody else uses: that product."""
        op, fused = self.trace.graph.op, dict[int, int]()
        for i in self.trace.live:
            if op[i] in (ADD, SUB):
                for j in reversed(self.operands[i]):
                    if op[j] == MUL and uses[j] == 1:
                        fused[i] = j
                        break
        return fused

    def _reads(self, i: int) -> tuple[int, ...]:
        product = self.fused.get(i)
        if product is None:
            return self.operands[i]
        return tuple(j for j in self.operands[i] if j != product) + self.operands[product]

    # the workspace

    def _place(self, turned: Iterable[int]) -> int:
        """Give slots to the sines and cosines of inputs, group after group, all sines, then all cosines; then to scalars that
        a later part reads; then to such vectors, which are numbered as if all were vectors."""
        lanes, op = self.options.lanes, self.trace.graph.op
        base = {angle: 2 * (k - k % lanes) + k % lanes for k, angle in enumerate(self.turns)}
        for i in turned:
            self.slot[i] = base[self.operands[i][0]] + lanes * (op[i] == COS)
        last = {j: k for k, own in enumerate(self.parts) for i in own for j in self.reads[i] if j in self.part_of}
        size = self._allocate(last, False, 2 * -(-len(self.turns) // lanes) * lanes)
        return self._allocate(last, True, -(-size // lanes)) * lanes if self.vectors else size

    def _allocate(self, last: Mapping[int, int], wide: bool, size: int) -> int:
        """Slots from `size` on for what a later part reads, up to the part `last`; a slot is free after that."""
        expiring: list[list[int]] = [[] for _ in self.parts]
        free: list[int] = []
        for part, nodes in enumerate(self.parts):
            for i in nodes:
                end = last.get(i, part)
                if end > part and (i in self.vectors) == wide:
                    if not free:
                        free.append(size)
                        size += 1
                    self.slot[i] = free.pop()
                    expiring[end].append(self.slot[i])
            free += expiring[part]
        return size


class _Planner:
    """Steps, part by part."""

    def __init__(self, arrangement: _Arrangement, results: _Results) -> None:
        self.arrangement, self.results = arrangement, results
        self.trace, self.options = arrangement.trace, arrangement.options
        self.outputs: dict[int, list[tuple[int, bool]]] = {}  # node -> the outputs that are its value, or the negative of it
        for k, x in enumerate(self.trace.outputs):
            if isinstance(x, tuple):
                self.outputs.setdefault(x[0], []).append((k, x[1]))

    def plan(self, arguments: int, results: int) -> StraightPlan:
        a = self.arrangement
        parts = [PlanPart("turns", self._turns())] if a.turns else []
        parts += [PlanPart(str(k), self._part(nodes)) for k, nodes in enumerate(a.parts)]
        constants = [(k, x) for k, x in enumerate(self.trace.outputs) if not isinstance(x, tuple)]
        zeros = {k for k, x in constants if x == 0.0 and math.copysign(1.0, x) > 0.0}
        if len(zeros) > self.options.few_zeros:
            # Before all others are written. LLVM takes very long for many stores of zero.
            cleared = sorted(self.results.holding(zeros).items())
            parts.insert(0, PlanPart("zeros", tuple(ClearStep(f"out{array}", n) for array, n in cleared)))
            constants = [(k, x) for k, x in constants if k not in zeros]
        left = {i: places for i, places in self.outputs.items() if i not in a.part_of}
        if left or constants or not parts:
            parts.append(PlanPart("rest", self._rest(left, constants)))
        return StraightPlan(arguments, results, self.options.lanes, tuple(parts), a.workspace)

    def _turns(self) -> tuple[Step, ...]:
        """Sine and cosine of inputs, a vector of angles at a time."""
        a, lanes = self.arrangement, self.options.lanes
        steps = _Steps(a)
        for k in range(0, len(a.turns), lanes):
            group = a.turns[k : k + lanes]
            for angle in group:
                if a.operands[angle]:
                    steps.compute(angle)
            angles = steps.vector([(angle, False) for angle in group]) if lanes > 1 else steps.value(group[0])
            steps.list.append(SincosGroupStep(angles, 2 * k))
        return tuple(steps.list)

    def _part(self, nodes: Sequence[int]) -> tuple[Step, ...]:
        """Some thousand nodes, and what they are stored as: values for later parts, results."""
        a = self.arrangement
        steps = _Steps(a, nodes)
        for k, i in enumerate(nodes):
            steps.compute(i)
            if i in a.slot:
                steps.list.append(StoreStep("ws", a.slot[i], steps.value(i), i in a.vectors))
            if i in self.outputs:
                self._store(steps, i, self.outputs[i])
            if self.options.registers is not None:
                steps.let_go(i, k)
        return tuple(steps.list)

    def _rest(self, left: Mapping[int, list[tuple[int, bool]]], constants: Iterable[tuple[int, float]]) -> tuple[Step, ...]:
        """Results that are arguments, sines of arguments, or constants."""
        steps = _Steps(self.arrangement)
        for i, places in left.items():
            self._store(steps, i, places)
        for k, x in constants:
            steps.list.extend(self.results.stores(k, x))
        return tuple(steps.list)

    def _store(self, steps: _Steps, i: int, places: Iterable[tuple[int, bool]]) -> None:
        for k, negative in places:
            operand = steps.negated(i, i in self.arrangement.vectors) if negative else steps.value(i)
            steps.list.extend(self.results.stores(k, operand))


class _Steps:
    """Steps of one part, which computes `nodes`, and the values that registers hold meanwhile."""

    def __init__(self, arrangement: _Arrangement, nodes: Sequence[int] = ()) -> None:
        self.arrangement = arrangement
        self.list: list[Step] = []
        most = arrangement.options.registers
        self.held = Registers() if most is None else Registers([arrangement.reads[i] for i in nodes], most)
        self.known: set[int] = set()  # nodes that were loaded, or are in memory since they were let go
        self.pairs: set[int] = set()  # angles whose sines and cosines are there
        self.rooms: dict[int, str] = {}  # nodes whose value lies in a room
        self.free_rooms: dict[bool, list[str]] = {False: [], True: []}
        self.room_numbers = count()
        self.numbers = count(len(arrangement.trace.graph))

    def compute(self, i: int) -> None:
        """Node i."""
        a, number = self.arrangement, i
        op, wide = a.trace.graph.op[i], i in a.vectors
        if i in a.seeds:
            number = self.vector(a.seeds[i])
        elif op in (SIN, COS):
            angle = a.operands[i][0]
            if angle not in self.pairs:  # one step for both, where the first of them is met
                self.pairs.add(angle)
                self.value(angle)
                self.list.append(SincosStep(angle))
            self.list.append(OperationStep(i, op, (angle,), False))
        elif i in a.fused:
            self._fuse(i, wide)
        else:
            self.list.append(OperationStep(i, op, tuple([self._operand(j, wide) for j in a.operands[i]]), wide))
        self.held.values[i] = number

    def _fuse(self, i: int, wide: bool) -> None:
        a = self.arrangement
        product, difference = a.fused[i], a.trace.graph.op[i] == SUB
        (x, y), (first, second) = a.operands[product], a.operands[i]
        minus_addend, minus_product = difference and product == first, difference and product != first
        addend = second if product == first else first
        c = self.negated(addend, wide) if minus_addend else self._operand(addend, wide)
        left = self.negated(x, wide) if minus_product else self._operand(x, wide)
        self.list.append(FmaStep(i, left, self._operand(y, wide), c, wide))

    def value(self, i: int) -> Operand:
        """The value of node i, loaded if no register holds it."""
        number = self.held.values.get(i)
        if number is not None:
            return number
        a = self.arrangement
        constant = a.constants.get(i)
        if constant is not None:
            return constant
        self.list.append(LoadStep(i, *self._home(i), i in self.known, i in a.vectors))
        self.known.add(i)
        self.held.values[i] = i
        return i

    def _home(self, i: int) -> tuple[str, int]:
        """Where in memory the value of a node lies."""
        a = self.arrangement
        if i in self.rooms:
            return self.rooms[i], 0
        if i in a.slot:
            return "ws", a.slot[i]
        return f"in{int(a.trace.graph.a[i])}", a.trace.graph.b[i]

    def _operand(self, i: int, wide: bool) -> Operand:
        """The value of node i for a step: in all lanes, if the step is wide and the node a scalar."""
        a = self.arrangement
        if not wide or i in a.vectors or i in a.constants:
            return self.value(i)
        if i not in self.held.spread:
            scalar, number = self.value(i), next(self.numbers)
            self.list.append(SpreadStep(number, scalar))
            self.held.spread[i] = number
        return self.held.spread[i]

    def negated(self, i: int, wide: bool) -> Operand:
        """The negative of the value of node i, for a step."""
        operand = self._operand(i, wide)
        if isinstance(operand, float):
            return -operand
        number = next(self.numbers)
        self.list.append(NegateStep(number, operand, wide))
        return number

    def vector(self, scalars: Iterable[Scalar]) -> int:
        """The number of the vector with these scalars in its lanes, and zeros behind them."""
        vector = None
        for lane, x in enumerate(scalars):
            if x != 0.0:
                scalar: Operand = x if isinstance(x, float) else self.negated(x[0], False) if x[1] else self.value(x[0])
                number = next(self.numbers)
                self.list.append(InsertStep(number, vector, scalar, lane))
                vector = number
        assert vector is not None
        return vector

    def let_go(self, i: int, k: int) -> None:
        """After node i, the k-th: drop what is read no more, and what registers do not hold."""
        a = self.arrangement
        for j in self.held.read(k, (i, *a.reads[i])):
            if j in self.rooms:
                self.free_rooms[j in a.vectors].append(self.rooms.pop(j))
        for j, number in self.held.let_go():
            self.known.add(j)
            if j in a.part_of and j not in a.slot and j not in self.rooms:
                wide = j in a.vectors
                if not self.free_rooms[wide]:
                    self.free_rooms[wide].append(f"room{next(self.room_numbers)}")
                    self.list.append(RoomStep(self.free_rooms[wide][-1], wide))
                self.rooms[j] = self.free_rooms[wide].pop()
                self.list.append(StoreStep(self.rooms[j], 0, number, wide))
