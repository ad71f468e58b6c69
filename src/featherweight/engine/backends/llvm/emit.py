"""LLVM IR of a straight-line plan: for one state, W states in vector lanes, directions in lanes, or a device's thread.

Fused products are explicit `llvm.fma` calls, and the compiler has no freedom: there are no fast-math flags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...compilation_messages import report_if_long
from ...operations import COS, OPERATIONS, SIN
from ...trace import Trace
from .. import straight_steps as steps
from ..straight_plan import PlanOptions, PlanPart, StraightPlan, plan_trace
from ..straight_steps import Operand
from .ir import Function, Type, Vector, pointer_type
from .jit import host
from .trig import sincos_name
from .x86_assembly import assembled, write_assembly

FEW_ZEROS = 32  # up to this number, zero outputs are written one by one
PART = 1400  # nodes of a function, whose code should fit the first-level instruction cache
SHORT_PART, LONG = 500, 40_000  # nodes of a function in code from this size on: faster for batches, and for LLVM
SPARE = 4  # registers for loaded operands, and for addresses that LLVM computes


class Kernel(NamedTuple):
    """IR of the parts of a plan, `void @PART(ptr in0, ..., ptr out0, ..., ptr workspace)`, to be called in order.

    They work on one block of arrays of lanes, index-major: x[index][lane].
    """

    definitions: tuple[str, ...]  # definitions of the parts
    declarations: tuple[str, ...]
    parts: tuple[str, ...]
    sincos_lanes: tuple[int, ...]  # widths of its calls of sine and cosine
    workspace: int  # slots of one machine type each


@dataclass(frozen=True)
class KernelStyle:
    """Text that surrounds the steps of a kernel in a module."""

    name: str = "fw.kernel"
    linkage: str = "hidden"
    attributes: str = "#0"
    attributes_of_cut: str = "#0"  # attributes of the parts of a split trace
    freestanding: bool = False  # whether it must call no library, not even for zeros
    spaces: Mapping[str, int] = field(default_factory=dict)  # address spaces of arrays
    space: int = 0  # address space of all others
    spills_in_workspace: bool = False  # whether spills are after the slots of the workspace, not on the stack
    assembly: bool = False  # whether parts are written in this processor's assembly, if it is supported


HOST = KernelStyle(assembly=True)


def emit_kernel(
    t: Trace,
    type: Type,
    fma: bool,
    sizes: Sequence[int] = (),
    group: int = 1,
    style: KernelStyle = HOST,
    fused: Mapping[int, int] | None = None,
) -> Kernel:
    """Return the IR of a whole trace.

    Without hardware `fma`, nothing is fused; otherwise `fused`, or the products that `plan_trace` finds. Outputs go to
    consecutive arrays of the given sizes, or all to one array. A scalar kernel computes the sines and cosines of its inputs
    `group` at a time.
    """
    options = host_options(type, fma, group)
    return write_kernel(plan_trace(t, sizes or (len(t.outputs),), options, fused), type, style)


def host_options(type: Type, fma: bool, group: int) -> PlanOptions:
    """Return options for processors, whose vectors have the size of the type, or of `group` values of the type."""
    count, lanes = registers(type.item_bytes * max(type.lanes, group)), group if type.lanes == 1 else 1
    rereads = type.lanes > 1  # results of batches are in lanes, close in memory
    return PlanOptions(fma, PART, LONG, SHORT_PART, registers=count, lanes=lanes, rereads=rereads, few_zeros=FEW_ZEROS)


def registers(vector_bytes: int) -> int:
    """Return the number of registers for values, by the size of vectors; SSE has fewer registers, and LLVM allocates them."""
    return (16 if vector_bytes == 32 else 32) - SPARE


def write_kernel(plan: StraightPlan, type: Type, style: KernelStyle = HOST) -> Kernel:
    """Return the IR of a plan whose scalars are of this type."""
    report_if_long()
    writer = _KernelWriter(plan, type, style)
    functions = [writer.function(part) for part in plan.parts]
    declarations = dict.fromkeys(d for f in functions for d in f.declarations)
    names = tuple(f.name for f in functions)
    workspace = plan.workspace + plan.spills * style.spills_in_workspace
    return Kernel(tuple(map(str, functions)), tuple(declarations), names, tuple(sorted(writer.sincos_lanes)), workspace)


class _KernelWriter:
    """Writes steps, each by a method in the table."""

    def __init__(self, plan: StraightPlan, type: Type, style: KernelStyle) -> None:
        self.plan, self.style = plan, style
        self.scalar, self.vector = type, Type(type.precision, type.lanes * plan.lanes)
        self.types = (self.scalar, self.vector)  # types of narrow and wide steps
        self.kinds = [(type.ir, type.bytes) for type in self.types]
        self.assembly = style.assembly and host().assembly and self.vector.bytes == host().vector_bytes
        self.sincos_lanes: set[int] = set()
        self.spaces = {array: style.spaces.get(array, style.space) for array in plan.arrays}
        self.arguments = [
            f"{pointer_type(space)} noalias {'readonly ' * array.startswith('in')}%{array}"
            for array, space in self.spaces.items()
        ]
        self.table: dict[Any, Callable[[Any], None]] = {
            steps.LoadStep: self._load,
            steps.StoreStep: self._store,
            steps.StoreLanesStep: self._store_lanes,
            steps.OperationStep: self._operation,
            steps.FmaStep: self._fma,
            steps.NegateStep: self._negate,
            steps.SpreadStep: self._spread,
            steps.InsertStep: self._insert,
            steps.SincosStep: self._sincos,
            steps.SincosGroupStep: self._sincos_group,
            steps.SpillStep: self._spill,
            steps.ClearStep: self._clear,
        }

    def function(self, part: PlanPart) -> Function:
        style = self.style
        attributes = style.attributes_of_cut if part.numbered and self.plan.cut else style.attributes
        self.f = Function("void", f"{style.name}.{part.title}", self.arguments, style.linkage, attributes)
        self.pointers = {array: f"%{array}" for array in self.spaces}
        self.names: dict[int, str] = {}  # names of values
        self.pairs: dict[Operand, str] = {}  # sines and cosines of values
        assembly = assembled(part.steps, list(self.spaces), self.types) if self.assembly else None
        if assembly:
            write_assembly(self.f, list(self.spaces), assembly)
            return self.f
        table = self.table
        for step in part.steps:
            table[type(step)](step)
        self.f.ret()
        return self.f

    def _name(self, x: Operand, type: Type) -> str:
        """Return an operand of an instruction of a type."""
        if isinstance(x, int):
            return self.names[x]
        if isinstance(x, float):
            return type.constant(x)
        return "<" + ", ".join(f"{self.scalar.ir} {self.scalar.constant(item)}" for item in x) + ">"

    # memory

    def _load(self, s: steps.LoadStep) -> None:
        kind, bytes = self.kinds[s.wide]
        self.names[s.value] = self.f.load(kind, self.pointers[s.array], s.element, bytes, s.again, self._space(s.array))

    def _store(self, s: steps.StoreStep) -> None:
        (kind, bytes), operand = self.kinds[s.wide], self._name(s.operand, self.types[s.wide])
        self.f.store(kind, operand, self.pointers[s.array], s.element, bytes, self._space(s.array))

    def _store_lanes(self, s: steps.StoreLanesStep) -> None:
        lanes, vector = len(s.lanes), self._name(s.operand, self.vector)
        place = self.f.at(self.scalar.ir, self.pointers[s.array], s.element)
        if list(s.lanes) != list(range(lanes)):
            vector = self.f.shuffle(self.vector, vector, "poison", [*s.lanes, *[-1] * (self.vector.lanes - lanes)])
        self.f.store_first(Vector(*self.vector), vector, place, lanes)

    def _space(self, array: str) -> int:
        return self.spaces.get(array, self.style.space)

    def _spill(self, s: steps.SpillStep) -> None:
        type = self.types[s.wide]
        if self.style.spills_in_workspace:
            place = self.plan.workspace + len(self.pointers) - len(self.spaces)
            self.pointers[s.spill] = self.f.at(type.ir, "%ws", place, self._space("ws"))
        else:
            self.pointers[s.spill] = self.f.slot(type.ir, 1, type.bytes)

    def _clear(self, s: steps.ClearStep) -> None:
        type = self.scalar
        if self.style.freestanding:
            with self.f.loop(s.elements) as index:
                self.f.store(type.ir, type.constant(0.0), self.pointers[s.array], index, type.bytes, self._space(s.array))
        else:
            self.f.clear_bytes(self.pointers[s.array], s.elements * type.bytes)

    # numbers

    def _operation(self, s: steps.OperationStep) -> None:
        type = self.types[s.wide]
        if s.op in (SIN, COS):
            self.names[s.value] = self.f.member(type.ir, self.pairs[s.operands[0]], 0 if s.op == SIN else 1)
            return
        operands = [self._name(x, type) for x in s.operands]
        instruction = OPERATIONS[s.op].instruction
        if len(operands) == 1:
            self.names[s.value] = self.f.intrinsic(instruction, type, *operands)
        else:
            self.names[s.value] = self.f.binary(instruction, type.ir, *operands)

    def _fma(self, s: steps.FmaStep) -> None:
        type = self.types[s.wide]
        a, b, c = self._name(s.a, type), self._name(s.b, type), self._name(s.c, type)
        self.names[s.value] = self.f.intrinsic("fma", type, a, b, c)

    def _negate(self, s: steps.NegateStep) -> None:
        type = self.types[s.wide]
        self.names[s.value] = self.f.value(f"fneg {type.ir} {self._name(s.operand, type)}")

    def _sincos(self, s: steps.SincosStep) -> None:
        self.pairs[s.angle] = self._pair(self.scalar, self.names[s.angle])

    def _sincos_group(self, s: steps.SincosGroupStep) -> None:
        f, one, all = self.f, self.scalar, self.vector
        pair, space = self._pair(all, self._name(s.angles, all)), self._space("ws")
        for which in range(2):
            address = f.at(one.ir, "%ws", s.slot + which * self.plan.lanes, space)
            f.store(all.ir, f.member(all.ir, pair, which), address, 0, one.bytes, space)

    def _pair(self, type: Type, angle: str) -> str:
        """Return the sine and the cosine."""
        self.sincos_lanes.add(type.lanes)
        return self.f.call(f"{{ {type.ir}, {type.ir} }}", f"@{sincos_name(type)}", f"{type.ir} {angle}")

    # vectors

    def _spread(self, s: steps.SpreadStep) -> None:
        first = self.f.insert(self.vector, "poison", self._name(s.scalar, self.scalar), 0)
        self.names[s.value] = self.f.shuffle(self.vector, first, "poison", [0] * self.vector.lanes)

    def _insert(self, s: steps.InsertStep) -> None:
        vector = "zeroinitializer" if s.vector is None else self.names[s.vector]
        self.names[s.value] = self.f.insert(self.vector, vector, self._name(s.scalar, self.scalar), s.lane)
