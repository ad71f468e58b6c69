"""The plan of a straight-line kernel: operations of a trace, their order, and the location of values.

A plan lists steps. A writer expresses them in a language: LLVM IR (`llvm.emit`, also for threads of devices) or C
(`exporting.c_source`). A writer makes no choice that changes a bit of the results.

A product used in only one sum is fused into it, so that a state gives bitwise the same results alone, in a vector, and in any
lane. Long traces are split into parts, because compile times grow faster than linearly with the size of a function. Values that
a later part reads are in the workspace.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from types import MappingProxyType
from typing import NamedTuple

from ..jacobian_trace import JacobianTrace, Scalar
from ..operations import ADD, CONSTANT, COS, INPUT, MUL, OPERATIONS, SIN, SUB
from ..trace import Trace
from . import straight_steps as steps
from .schedule import Registers, schedule
from .straight_steps import Operand, Step


class PlanPart(NamedTuple):
    """Steps that become one function. Parts are called in order, and pass values in the workspace."""

    title: str  # "zeros", "turns", a number, or "rest"
    steps: tuple[Step, ...]

    @property
    def numbered(self) -> bool:
        """Return whether the part is a piece of the trace, and not the code before or after it."""
        return self.title.isdecimal()

    @property
    def spills(self) -> int:
        return sum(type(s) is steps.SpillStep for s in self.steps)


@dataclass(frozen=True)
class StraightPlan:
    """All parts of a kernel."""

    arguments: int
    results: int  # number of result arrays
    lanes: int  # lanes of its vectors; 1 without vectors
    parts: tuple[PlanPart, ...]
    workspace: int  # number of scalars that parts pass on; a vector counts as many as it has lanes

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arguments of each part in order, except spills."""
        return (*(f"in{k}" for k in range(self.arguments)), *(f"out{k}" for k in range(self.results)), "ws")

    @property
    def spills(self) -> int:
        """Greatest number of spills of a part."""
        return max(part.spills for part in self.parts)

    @property
    def cut(self) -> bool:
        """Return whether the trace is split into several parts."""
        return sum(part.numbered for part in self.parts) > 1


@dataclass(frozen=True)
class PlanOptions:
    """Options of a planner."""

    fma: bool  # whether products are fused into sums
    part: int  # nodes of a part
    long: int = 1 << 62  # number of nodes from which the next size applies
    part_of_long: int = 0  # nodes of a part of a long trace
    ordered: bool = True  # whether to fill waits for results with other work; otherwise nodes stay in trace order
    registers: int | None = None  # number of values in registers; others go to memory. None: the compiler decides
    lanes: int = 1  # number of angles whose sines are computed together
    rereads: bool = False  # whether values that are also results are read from the results
    few_zeros: int = 1 << 62  # up to this number, zero results are written one by one


def plan_trace(t: Trace, sizes: Sequence[int], options: PlanOptions, fused: Mapping[int, int] | None = None) -> StraightPlan:
    """Return the plan of a trace. Results go to consecutive arrays of the given sizes.

    `fused` are the products in sums of a larger trace that contains this one.
    """
    places = [[_ResultPlace(k, element)] for k, size in enumerate(sizes) for element in range(size)]
    return _plan(_Arrangement(t, options, places, fused), len(t.inputs), sizes)


def plan_lanes(t: JacobianTrace, options: PlanOptions) -> StraightPlan:
    """Return the plan of derivatives with directions in lanes: each derivative of a result by an argument is an array."""
    g, last, n = t.trace.graph, len(t.trace.inputs) - 1, len(t.columns)  # the last input is not an argument but the seeds
    seeds = {i: t.seeds[g.b[i]] for i in t.trace.live if g.op[i] == INPUT and g.a[i] == last}
    places = [
        [_ResultPlace(k * n + p.argument, row * t.columns[p.argument] + p.column, p.lanes) for p in pieces]
        for k, rows in enumerate(t.rows)
        for row in range(rows)
        for pieces in t.pieces
    ]
    sizes = sizes_in_lanes(t)
    places += [[_ResultPlace(len(sizes) - t.values + k, 0)] for k in range(t.values)]
    return _plan(_Arrangement(t.trace, options, places, None, seeds, t.vectors), last, sizes)


def sizes_in_lanes(t: JacobianTrace) -> list[int]:
    """Return the sizes of the arrays of derivatives, and of the scalars after them."""
    return [*(rows * columns for rows in t.rows for columns in t.columns), *(1 for _ in range(t.values))]


def fused_products(t: Trace, operands: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return the product fused into each sum: one that is used nowhere else."""
    op, uses, fused = t.graph.op, _uses(t, operands), dict[int, int]()
    for i in t.live:
        if op[i] in (ADD, SUB):
            for j in reversed(operands[i]):
                if op[j] == MUL and uses[j] == 1:
                    fused[i] = j
                    break
    return fused


def _uses(t: Trace, operands: Mapping[int, Sequence[int]]) -> Counter[int]:
    """Count how often each node is an operand or an output."""
    uses = Counter(chain.from_iterable(operands.values()))
    uses.update(x[0] for x in t.outputs if isinstance(x, tuple))
    return uses


class _ResultPlace(NamedTuple):
    """Location of a result, or of some lanes of it."""

    array: int
    element: int
    lanes: tuple[int, ...] | None = None

    def store(self, operand: Operand) -> Step:
        if self.lanes is None:
            return steps.StoreStep(f"out{self.array}", self.element, operand, False)
        return steps.StoreLanesStep(f"out{self.array}", self.element, operand, self.lanes)


class _Arrangement:
    """The order and the parts of the operations, and the slots of the workspace.

    Outputs go to `places`. `seeds` are inputs with scalars of the trace in their lanes; `vectors` are the nodes that are
    vectors.
    """

    def __init__(
        self,
        t: Trace,
        options: PlanOptions,
        places: Sequence[Sequence[_ResultPlace]],
        fused: Mapping[int, int] | None = None,
        seeds: Mapping[int, tuple[Scalar, ...]] = MappingProxyType({}),
        vectors: Iterable[int] = (),
    ) -> None:
        self.trace, self.options, self.places, self.seeds, self.vectors = t, options, places, seeds, frozenset(vectors)
        self.results: dict[int, list[tuple[int, bool]]] = {}  # node -> outputs equal to its value or negative
        for k, x in enumerate(t.outputs):
            if isinstance(x, tuple):
                self.results.setdefault(x[0], []).append((k, x[1]))
        op, a = t.graph.op, t.graph.a
        self.op = op
        self.operands = operands = {i: t.graph.operands(i) for i in t.live}
        for i, seed in self.seeds.items():
            operands[i] = tuple(x[0] for x in seed if isinstance(x, tuple))
        self.constants: dict[int, float | tuple[float, ...]] = {i: float(a[i]) for i in t.live if op[i] == CONSTANT}
        for i, seed in self.seeds.items():
            if not operands[i]:
                self.constants[i] = tuple(float(x) for x in seed if not isinstance(x, tuple))
        if fused is None:
            fused = fused_products(t, operands) if options.fma else {}
        self.fused = {i: j for i, j in fused.items() if i in operands}  # node of a sum -> the product fused into it
        uses = _uses(t, operands)
        self.turns = self._turns()
        turned = [i for i in t.live if op[i] in (SIN, COS) and operands[i][0] in self.turns]
        uses.subtract(operands[i][0] for i in turned)
        gone = {*self.fused.values(), *turned, *(i for i in self.turns if not uses[i])}
        nodes = [i for i in t.live if operands[i] and i not in gone]
        self.reads = {i: self._reads(i) for i in nodes}  # operands of node i
        if options.ordered:
            nodes = schedule(nodes, self.reads, [OPERATIONS[op[i]].latency for i in nodes])
        part = options.part if len(nodes) < options.long else options.part_of_long
        self.parts = [nodes[k : k + part] for k in range(0, len(nodes), part)]
        self.part_of = {i: k for k, own in enumerate(self.parts) for i in own}
        self.home = self._homes() if options.rereads else {}  # nodes that are read from the results
        self.slot: dict[int, int] = {}
        self.workspace = self._place(turned)

    def _homes(self) -> dict[int, tuple[str, int]]:
        """Return the places of nodes that are results with their own sign."""
        homes = {}
        for i in self.part_of:
            for k, negative in self.results.get(i, ()):
                if not negative:
                    [place, *_] = self.places[k]
                    homes[i] = f"out{place.array}", place.element
        return homes

    def _turns(self) -> dict[int, None]:
        """Return the inputs, and sums of an input and a constant, whose sine or cosine is needed, in order."""
        op, operands = self.op, self.operands

        def early(i: int) -> bool:
            shifted = op[i] in (ADD, SUB) and sorted(op[j] for j in operands[i]) == [INPUT, CONSTANT]
            return op[i] == INPUT or shifted

        angles = (operands[i][0] for i in self.trace.live if op[i] in (SIN, COS))
        return dict.fromkeys(angle for angle in angles if early(angle))

    def _reads(self, i: int) -> tuple[int, ...]:
        product = self.fused.get(i)
        if product is None:
            return self.operands[i]
        return tuple(j for j in self.operands[i] if j != product) + self.operands[product]

    # the workspace

    def _place(self, turned: Iterable[int]) -> int:
        """Assign slots of the workspace.

        First come the sines and cosines of inputs, group after group, all sines, then all cosines; then scalars that a later
        part reads; then such vectors, numbered as if all slots were vectors.
        """
        lanes, op = self.options.lanes, self.op
        base = {angle: 2 * (k - k % lanes) + k % lanes for k, angle in enumerate(self.turns)}
        for i in turned:
            self.slot[i] = base[self.operands[i][0]] + lanes * (op[i] == COS)
        last = {j: k for k, own in enumerate(self.parts) for i in own for j in self.reads[i] if j in self.part_of}
        size = self._allocate(last, False, 2 * -(-len(self.turns) // lanes) * lanes)
        return self._allocate(last, True, -(-size // lanes)) * lanes if self.vectors else size

    def _allocate(self, last: Mapping[int, int], wide: bool, size: int) -> int:
        """Assign slots from `size` on to values that later parts read, up to the part `last`, which frees the slot."""
        expiring: list[list[int]] = [[] for _ in self.parts]
        free: list[int] = []
        for part, nodes in enumerate(self.parts):
            for i in nodes:
                end = last.get(i, part)
                if end > part and (i in self.vectors) == wide and i not in self.home:
                    if not free:
                        free.append(size)
                        size += 1
                    self.slot[i] = free.pop()
                    expiring[end].append(self.slot[i])
            free += expiring[part]
        return size


def _plan(a: _Arrangement, arguments: int, sizes: Sequence[int]) -> StraightPlan:
    outputs = a.trace.outputs
    parts = [PlanPart("turns", _turns(a))] if a.turns else []
    parts += [PlanPart(str(k), _part(a, nodes)) for k, nodes in enumerate(a.parts)]
    constants = {k: x for k, x in enumerate(outputs) if not isinstance(x, tuple)}
    zeros = {k for k, x in constants.items() if x == 0.0 and math.copysign(1.0, x) > 0.0}
    if len(zeros) > a.options.few_zeros:
        # Zeros are written before all other results. LLVM takes very long for many stores of zero.
        cleared = sorted({place.array for k in zeros for place in a.places[k]})
        parts.insert(0, PlanPart("zeros", tuple(steps.ClearStep(f"out{k}", sizes[k]) for k in cleared)))
        constants = {k: x for k, x in constants.items() if k not in zeros}
    left = [i for i in a.results if i not in a.part_of]  # arguments, and their sines
    if left or constants or not parts:
        rest = _PartSteps(a)
        for i in left:
            rest.store(i)
        rest.list += [place.store(x) for k, x in constants.items() for place in a.places[k]]
        parts.append(PlanPart("rest", tuple(rest.list)))
    return StraightPlan(arguments, len(sizes), a.options.lanes, tuple(parts), a.workspace)


def _turns(a: _Arrangement) -> tuple[Step, ...]:
    """Return steps for sine and cosine of inputs, a vector of angles at a time."""
    own, lanes, angles = _PartSteps(a), a.options.lanes, list(a.turns)
    for k in range(0, len(angles), lanes):
        group = angles[k : k + lanes]
        for angle in group:
            if a.operands[angle]:
                own.compute(angle)
        together = own.vector([(angle, False) for angle in group]) if lanes > 1 else own.value(group[0])
        own.list.append(steps.SincosGroupStep(together, 2 * k))
    return tuple(own.list)


def _part(a: _Arrangement, nodes: Sequence[int]) -> tuple[Step, ...]:
    """Return the steps of some thousand nodes, with stores of values for later parts and of results."""
    own = _PartSteps(a, nodes)
    for k, i in enumerate(nodes):
        own.compute(i)
        if i in a.slot:
            own.list.append(steps.StoreStep("ws", a.slot[i], own.value(i), i in a.vectors))
        if i in a.results:
            own.store(i)
        if a.options.registers is not None:
            own.evict(i, k)
    return tuple(own.list)


class _PartSteps:
    """Steps of one part, which computes `nodes`, and the current values in registers."""

    def __init__(self, arrangement: _Arrangement, nodes: Sequence[int] = ()) -> None:
        self.arrangement = arrangement
        self.list: list[Step] = []
        most = arrangement.options.registers
        self.registers = Registers() if most is None else Registers([arrangement.reads[i] for i in nodes], most)
        self.known: set[int] = set()  # nodes that were loaded, or were evicted to memory
        self.pairs: set[int] = set()  # angles with computed sines and cosines
        self.spills: dict[int, str] = {}  # nodes whose value is in a spill
        self.free_spills: dict[bool, list[str]] = {False: [], True: []}
        self.spill_numbers = count()
        self.numbers = count(len(arrangement.trace.graph))

    def compute(self, i: int) -> None:
        """Compute node i."""
        a, number = self.arrangement, i
        op, wide = a.op[i], i in a.vectors
        if i in a.fused:
            self._fuse(i, wide)
        elif i in a.seeds:
            number = self.vector(a.seeds[i])
        elif op in (SIN, COS):
            angle = a.operands[i][0]
            if angle not in self.pairs:  # one step computes both, at the first use of either
                self.pairs.add(angle)
                self.value(angle)
                self.list.append(steps.SincosStep(angle))
            self.list.append(steps.OperationStep(i, op, (angle,), False))
        else:
            self.list.append(steps.OperationStep(i, op, tuple([self._operand(j, wide) for j in a.operands[i]]), wide))
        self.registers.values[i] = number

    def _fuse(self, i: int, wide: bool) -> None:
        """Compute a sum with a fused product; in a difference, the subtracted addend or a factor is negated."""
        a = self.arrangement
        product, plain = a.fused[i], self._operand
        (x, y), (first, second) = a.operands[product], a.operands[i]
        last = self.negated if a.op[i] == SUB else plain
        if product == first:
            c, left = last(second, wide), plain(x, wide)
        else:
            c, left = plain(first, wide), last(x, wide)
        self.list.append(steps.FmaStep(i, left, plain(y, wide), c, wide))

    def value(self, i: int) -> Operand:
        """Return the value of node i, loaded if no register holds it."""
        number = self.registers.values.get(i)
        if number is not None:
            return number
        a = self.arrangement
        constant = a.constants.get(i)
        if constant is not None:
            return constant
        self.list.append(steps.LoadStep(i, *self._home(i), i in self.known, i in a.vectors))
        self.known.add(i)
        self.registers.values[i] = i
        return i

    def store(self, i: int) -> None:
        """Store the results that equal node i or its negative."""
        a = self.arrangement
        for k, negative in a.results[i]:
            operand = self.negated(i, i in a.vectors) if negative else self.value(i)
            self.list += [place.store(operand) for place in a.places[k]]

    def _home(self, i: int) -> tuple[str, int]:
        """Return the location of a node's value in memory."""
        a = self.arrangement
        if i in self.spills:
            return self.spills[i], 0
        if i in a.slot:
            return "ws", a.slot[i]
        if i in a.home:
            return a.home[i]
        return f"in{int(a.trace.graph.a[i])}", a.trace.graph.b[i]

    def _operand(self, i: int, wide: bool) -> Operand:
        """Return the value of node i for a step: broadcast to all lanes, if the step is wide and the node a scalar."""
        if not wide or i in self.arrangement.vectors or i in self.arrangement.constants:
            return self.value(i)
        if i not in self.registers.spread:
            scalar, number = self.value(i), next(self.numbers)
            self.list.append(steps.SpreadStep(number, scalar))
            self.registers.spread[i] = number
        return self.registers.spread[i]

    def negated(self, i: int, wide: bool) -> Operand:
        """Return the negative of the value of node i, for a step."""
        operand = self._operand(i, wide)
        if isinstance(operand, float):
            return -operand
        number = next(self.numbers)
        self.list.append(steps.NegateStep(number, operand, wide))
        return number

    def vector(self, scalars: Iterable[Scalar]) -> int:
        """Return the number of the vector with these scalars in its lanes, and zeros in the other lanes."""
        vector = None
        for lane, x in enumerate(scalars):
            if x != 0.0:
                scalar: Operand = x if isinstance(x, float) else self.negated(x[0], False) if x[1] else self.value(x[0])
                number = next(self.numbers)
                self.list.append(steps.InsertStep(number, vector, scalar, lane))
                vector = number
        assert vector is not None
        return vector

    def evict(self, i: int, k: int) -> None:
        """After node i, the k-th, drop values without further readers, and evict values that do not fit registers."""
        a = self.arrangement
        for j in self.registers.read(k, (i, *a.reads[i])):
            if j in self.spills:
                self.free_spills[j in a.vectors].append(self.spills.pop(j))
        for j, number in self.registers.evict():
            self.known.add(j)
            if j in a.part_of and j not in a.slot and j not in a.home and j not in self.spills:
                wide = j in a.vectors
                if not self.free_spills[wide]:
                    self.free_spills[wide].append(f"spill{next(self.spill_numbers)}")
                    self.list.append(steps.SpillStep(self.free_spills[wide][-1], wide))
                self.spills[j] = self.free_spills[wide].pop()
                self.list.append(steps.StoreStep(self.spills[j], 0, number, wide))
