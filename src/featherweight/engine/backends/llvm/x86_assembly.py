"""Parts of a plan as x86-64 assembly: LLVM's assembler takes a fifteenth of the time of its code generator.

Robots differ, so most functions compile on the user's machine. With assembly, derivatives of Talos' forward dynamics compile in
5.0 instead of 9.5 s for one state and in 2.8 instead of 6.7 s for batches (process time, Zen 3 with AVX2), and their code is
17 % and 12 % shorter.

The plan determines the values in registers at each step. This module assigns registers, lets an instruction read a value from
memory if no other instruction reads it, and chooses the form of a fused product that overwrites a dead value.

Code larger than the first-level cache runs as fast as it is fetched, so instructions are short: registers with low numbers come
first, and the most used data is within reach of a one-byte displacement. The last three operands point `BIAS` bytes into their
memory for this reason.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from ...operations import ADD, DIV, MUL, SQRT, SUB
from .. import straight_steps as steps
from ..straight_steps import Operand, Step
from .ir import Function, Type

BIAS = 128
SPARE = 2  # registers that an instruction needs in addition to those of values
MOST_ARRAYS = 11  # greatest number of arrays in general registers, besides the spills and the constants
INSTRUCTIONS = {ADD: "vadd", SUB: "vsub", MUL: "vmul", DIV: "vdiv", SQRT: "vsqrt"}
FUSED = {(False, False): "vfmadd", (True, False): "vfnmadd", (False, True): "vfmsub", (True, True): "vfnmsub"}


class AssemblyPart(NamedTuple):
    """A part in assembly. Its operands $0, $1, ... are the arrays, then its spills, then its constants."""

    text: str
    registers: tuple[str, ...]  # clobbered registers
    spills: int  # size of the spills in bytes
    constants: bytes


class OutOfRegisters(Exception):
    """Error of a part that holds more values than there are registers."""


Place = tuple[str, int, bool]
"""An operand: its text, its register or `IN_MEMORY`, and whether this is the last time that the register is read."""

IN_MEMORY = -1


class _InMemory(NamedTuple):
    """The place of a value that instructions read from memory."""

    text: str


class _Negative(NamedTuple):
    """A value that is the negative of another, and is read once."""

    of: Operand


def assembled(part: Sequence[Step], arrays: Sequence[str], types: tuple[Type, Type]) -> AssemblyPart | None:
    """Return the steps of a part for the machine types of scalars and vectors, one of which has the processor's vector size.

    Return None for a part that LLVM's code generator must write: one with calls, or with too many arrays or values.
    """
    known = all(type(s) in _WRITTEN and getattr(s, "op", ADD) in INSTRUCTIONS for s in part)
    if len(arrays) > MOST_ARRAYS or not known:
        return None
    try:
        return _AssemblyWriter(part, arrays, types).written(part)
    except OutOfRegisters:
        return None


def write_assembly(f: Function, arrays: Sequence[str], a: AssemblyPart) -> None:
    """Write the body of a function that consists of assembly; LLVM saves and names registers by the system's conventions."""
    operands = [f"%{name}" for name in arrays]
    operands[-1] = f.at("i8", operands[-1], BIAS)
    operands.append(f.at("i8", f.slot("i8", a.spills, 64), BIAS) if a.spills else "null")
    table = f"@{f.name}.constants"
    operands.append(f.at("i8", table, BIAS) if a.constants else "null")
    if a.constants:
        words = "".join(f"\\{byte:02X}" for byte in a.constants)
        f.tables.append(f'{table} = internal constant [{len(a.constants)} x i8] c"{words}", align 64')
    short = 3  # the first eight registers make instructions shorter
    constraints = ["r"] * (len(operands) - short) + ["R"] * short
    constraints += [f"~{{{name}}}" for name in (*a.registers, "memory")]
    text = a.text.replace("\n", "\\0A")
    f.line(f'call void asm sideeffect "{text}", "{",".join(constraints)}"({", ".join(f"ptr {x}" for x in operands)})')
    f.ret()


class _AssemblyWriter:
    """Writes steps, each by a method in the table."""

    def __init__(self, part: Sequence[Step], arrays: Sequence[str], types: tuple[Type, Type]) -> None:
        self.arrays, self.types = arrays, types
        scalar, _ = types
        self.has_masks = max(t.bytes for t in types) == 64
        self.registers = 32 if self.has_masks else 16
        kinds = ["xmm" if t.lanes == 1 else "zmm" if self.has_masks else "ymm" for t in types]
        self.names = [[f"%{kind}{k}" for k in range(self.registers)] for kind in kinds]
        self.item = "d" if scalar.precision == "double" else "s"
        self.item_bytes = scalar.item_bytes
        self.suffixes = [("s" if t.lanes == 1 else "p") + self.item for t in types]
        self.move = [f"vmov{'' if t.lanes == 1 else 'u'}{suffix}" for t, suffix in zip(types, self.suffixes, strict=True)]
        self.reads = _reads(part)
        self.free = list(range(self.registers))
        self.places: dict[int, int | _InMemory | _Negative] = {}  # places of values: registers or others
        self.left: dict[int, int] = {}  # remaining reads of a value
        last = len(arrays) - 1
        self.at = {array: (-BIAS * (k == last), f"(${k})") for k, array in enumerate(arrays)}  # start of arrays and spills
        self.spill_bytes = self._lay_out_spills(part)
        self.constants, self.offsets = bytearray(), dict[bytes, int]()
        self.lines: list[str] = []

    def written(self, part: Sequence[Step]) -> AssemblyPart:
        for step, reads in zip(part, self.reads, strict=True):
            _WRITTEN[type(step)](self, step, reads)
        changed = [name[1:] for name in self.names[any(getattr(step, "wide", True) for step in part)]]
        return AssemblyPart(
            "\n".join(self.lines), (*changed, *["k1"] * self.has_masks), self.spill_bytes, bytes(self.constants)
        )

    # memory

    def _lay_out_spills(self, part: Sequence[Step]) -> int:
        """Assign places to spills, the most used first; return their total size in bytes."""
        spills = [s.spill for s in part if isinstance(s, steps.SpillStep)]
        size = max((self.types[s.wide].bytes for s in part if isinstance(s, steps.SpillStep)), default=0)
        used = Counter(s.array for s in part if isinstance(s, steps.LoadStep | steps.StoreStep))
        spills.sort(key=lambda spill: -used[spill])
        self.at |= {spill: (k * size - BIAS, f"(${len(self.arrays)})") for k, spill in enumerate(spills)}
        return len(spills) * size

    def _address(self, array: str, element: int, wide: bool) -> str:
        begin, base = self.at[array]
        return f"{begin + element * self.types[wide].bytes}{base}"

    def _constant(self, values: Sequence[float], kind: str = "") -> str:
        """Return the address of numbers of the item's type, or of another type of `struct`."""
        data = struct.pack(f"<{len(values)}{kind or {'d': 'd', 's': 'f'}[self.item]}", *values)
        at = self.offsets.get(data)
        if at is None:
            self.constants += bytes(-len(self.constants) % len(data))
            at = self.offsets[data] = len(self.constants)
            self.constants += data
        return f"{at - BIAS}(${len(self.arrays) + 1})"

    def _number(self, x: float | tuple[float, ...], lanes: int) -> str:
        """Return the address of a number for all lanes, which masked instructions broadcast, or of one number for each lane."""
        if isinstance(x, float) and self.has_masks and lanes * self.item_bytes == 64:
            return f"{self._constant((x,))}{{1to{lanes}}}"
        return self._constant(x if isinstance(x, tuple) else (x,) * lanes)

    # operands

    def _new(self, wide: bool) -> Place:
        """Return a free register."""
        if not self.free:
            raise OutOfRegisters
        register = heappop(self.free)
        return self.names[wide][register], register, True

    def _let_go(self, *operands: Place) -> None:
        """Free registers without further reads."""
        for _, register, last in operands:
            if last:
                heappush(self.free, register)

    def _define(self, value: int, register: int, reads: int) -> None:
        """Record that the value is in a register, with its number of reads."""
        self.places[value], self.left[value] = register, reads
        if not reads:
            heappush(self.free, register)

    def _read(self, x: Operand, wide: bool) -> Place:
        """Return an operand that an instruction reads."""
        if not isinstance(x, int):
            return self._number(x, self.types[wide].lanes), IN_MEMORY, False
        place = self.places[x]
        if isinstance(place, _Negative):
            return self._negated(place.of, wide)
        if isinstance(place, _InMemory):
            return place.text, IN_MEMORY, False
        self.left[x] -= 1
        return self.names[wide][place], place, self.left[x] == 0

    def _loaded(self, x: Place, wide: bool) -> Place:
        """Return an operand in a register."""
        if x[1] != IN_MEMORY:
            return x
        loaded = self._new(wide)
        address, spread, _ = x[0].partition("{")
        self.lines.append(f"{f'vbroadcasts{self.item}' if spread else self.move[wide]} {address}, {loaded[0]}")
        return loaded

    def _negated(self, x: Operand, wide: bool) -> Place:
        """Return the negative of an operand, in a register."""
        source = self._loaded(self._read(x, wide), wide)
        signs = self._number(-0.0, max(self.types[wide].lanes, 16 // self.types[wide].item_bytes))
        self._let_go(source)
        result = self._new(wide)
        self.lines.append(f"vxorp{self.item} {signs}, {source[0]}, {result[0]}")
        return result

    def _factor(self, x: Operand, wide: bool) -> tuple[Place, bool]:
        """Return an operand of a fused product, and whether it is the negative of the required value."""
        if isinstance(x, int):
            place = self.places[x]
            if isinstance(place, _Negative):
                return self._read(place.of, wide), True
        return self._read(x, wide), False

    # steps

    def _load(self, s: steps.LoadStep, reads: int) -> None:
        address = self._address(s.array, s.element, s.wide)
        if reads == 1 or len(self.free) <= SPARE:  # values without further reads in this part stay in memory
            self.places[s.value] = _InMemory(address)
        else:
            self._define(s.value, self._loaded((address, IN_MEMORY, False), s.wide)[1], reads)

    def _store(self, s: steps.StoreStep, _: int) -> None:
        source = self._loaded(self._read(s.operand, s.wide), s.wide)
        self.lines.append(f"{self.move[s.wide]} {source[0]}, {self._address(s.array, s.element, s.wide)}")
        self._let_go(source)

    def _spill(self, _s: steps.SpillStep, _: int) -> None:
        """Write nothing, because spills are already laid out."""

    def _operation(self, s: steps.OperationStep, reads: int) -> None:
        wide, suffix = s.wide, self.suffixes[s.wide]
        operands = [self._read(x, wide) for x in s.operands]
        if s.op in (ADD, MUL) and operands[0][1] == IN_MEMORY:
            operands.reverse()
        first = operands[0] = self._loaded(operands[0], wide)
        text = first[0]
        if len(operands) == 2:
            text = f"{operands[1][0]}, {text}"
        elif self.types[wide].lanes == 1:
            text = f"{text}, {text}"
        self._let_go(*operands)
        result = self._new(wide)
        self.lines.append(f"{INSTRUCTIONS[s.op]}{suffix} {text}, {result[0]}")
        self._define(s.value, result[1], reads)

    def _fma(self, s: steps.FmaStep, reads: int) -> None:
        """Write a b + c in the form that overwrites a dead operand: the addend (231), or a factor (213, 132)."""
        wide = s.wide
        a, minus_a = self._factor(s.a, wide)
        b, minus_b = self._factor(s.b, wide)
        c, minus_c = self._factor(s.c, wide)
        if a[1] == IN_MEMORY:
            a, b = b, a
        if not (a[2] or b[2] or c[2]):
            if c[1] == IN_MEMORY:
                c = self._loaded(c, wide)
            elif b[1] == IN_MEMORY:
                b = self._loaded(b, wide)
            else:
                addend, c = c, self._new(wide)
                self.lines.append(f"vmovap{self.item} {addend[0]}, {c[0]}")
        if c[2]:
            a = self._loaded(a, wide)
            self._let_go(a, b)
            form, first, second, target = "231", b, a, c
        else:
            target, other = (a, b) if a[2] else (b, a)
            if other[1] == c[1] == IN_MEMORY:
                other = self._loaded(other, wide)
            self._let_go(other)
            form, first, second = ("132", other, c) if other[1] == IN_MEMORY else ("213", c, other)
        name = FUSED[minus_a != minus_b, minus_c]
        self.lines.append(f"{name}{form}{self.suffixes[wide]} {first[0]}, {second[0]}, {target[0]}")
        self._define(s.value, target[1], reads)

    def _negate(self, s: steps.NegateStep, reads: int) -> None:
        if reads == 1:  # a fused product may negate it
            self.places[s.value] = _Negative(s.operand)
        else:
            self._define(s.value, self._negated(s.operand, s.wide)[1], reads)

    # lanes

    def _spread(self, s: steps.SpreadStep, reads: int) -> None:
        scalar = self._read(s.scalar, False)
        self._let_go(scalar)
        result = self._new(True)
        self.lines.append(f"vbroadcasts{self.item} {scalar[0]}, {result[0]}")
        self._define(s.value, result[1], reads)

    def _insert(self, s: steps.InsertStep, reads: int) -> None:
        item, scalar = self.item, self._read(s.scalar, False)
        vector = (0.0,) * self.types[True].lanes if s.vector is None else s.vector
        old = self._loaded(self._read(vector, True), True)
        result = self._new(True)
        if self.has_masks:
            self.lines.append(f"vmovap{item} {old[0]}, {result[0]}")
            self._mask(1 << s.lane)
            self.lines.append(f"vbroadcasts{item} {scalar[0]}, {result[0]} {{%k1}}")
        else:
            self.lines.append(f"vbroadcasts{item} {scalar[0]}, {result[0]}")
            self.lines.append(f"vblendp{item} $${1 << s.lane}, {result[0]}, {old[0]}, {result[0]}")
        self._let_go(scalar, old)
        self._define(s.value, result[1], reads)

    def _store_lanes(self, s: steps.StoreLanesStep, _: int) -> None:
        source = self._loaded(self._read(s.operand, True), True)
        type, count, address = self.types[True], len(s.lanes), self._address(s.array, s.element, False)
        in_order = s.lanes == tuple(range(count))
        picked = source if in_order else self._permuted(source, [*s.lanes, *range(count, type.lanes)])
        name = {16: "%xmm", 32: "%ymm", 64: "%zmm"}.get(count * type.item_bytes)
        if count == 1:
            self.lines.append(f"vmovs{self.item} %xmm{picked[1]}, {address}")
        elif name:
            self.lines.append(f"vmovup{self.item} {name}{picked[1]}, {address}")
        elif self.has_masks:
            self._mask((1 << count) - 1)
            self.lines.append(f"vmovup{self.item} {picked[0]}, {address} {{%k1}}")
        else:
            chosen = self._integers([-1] * count + [0] * (type.lanes - count))
            mask = self._loaded((chosen, IN_MEMORY, False), True)
            self.lines.append(f"vmaskmovp{self.item} {picked[0]}, {mask[0]}, {address}")
            self._let_go(mask)
        self._let_go(*{source, picked})

    def _permuted(self, source: Place, lanes: Sequence[int]) -> Place:
        """Return a vector of these lanes of another one."""
        if self.types[True].lanes == 4:
            result = self._new(True)
            picks = sum(lane << 2 * k for k, lane in enumerate(lanes))
            self.lines.append(f"vpermpd $${picks}, {source[0]}, {result[0]}")
        else:
            result = self._loaded((self._integers(lanes), IN_MEMORY, False), True)
            self.lines.append(f"vpermp{self.item} {source[0]}, {result[0]}, {result[0]}")
        return result

    def _integers(self, values: Sequence[int]) -> str:
        """Return the address of integers of the item's size."""
        return self._constant(values, {"d": "q", "s": "i"}[self.item])

    def _mask(self, bits: int) -> None:
        """Set the first mask register to these bits, one for each lane."""
        self.lines.append(f"kmovw {self._constant([bits], 'H')}, %k1")


_WRITTEN: dict[type, Callable[[Any, Any, int], None]] = {
    steps.LoadStep: _AssemblyWriter._load,
    steps.StoreStep: _AssemblyWriter._store,
    steps.StoreLanesStep: _AssemblyWriter._store_lanes,
    steps.OperationStep: _AssemblyWriter._operation,
    steps.FmaStep: _AssemblyWriter._fma,
    steps.NegateStep: _AssemblyWriter._negate,
    steps.SpreadStep: _AssemblyWriter._spread,
    steps.InsertStep: _AssemblyWriter._insert,
    steps.SpillStep: _AssemblyWriter._spill,
}


def _reads(part: Sequence[Step]) -> list[int]:
    """Return, for each step, the number of reads of its value until a step defines it again."""
    counts: dict[int, int] = {}
    reads = []
    for s in reversed(part):
        kind = type(s)
        reads.append(0 if kind in _WITHOUT_VALUE else counts.pop(s.value, 0))  # type: ignore[union-attr]
        for x in _operands(s, kind):
            if type(x) is int:
                counts[x] = counts.get(x, 0) + 1
    return reads[::-1]


_WITHOUT_VALUE = {steps.StoreStep, steps.StoreLanesStep, steps.SpillStep}


def _operands(s: Any, kind: type[Step]) -> Sequence[Any]:
    """Return the operands that a step reads."""
    if kind is steps.FmaStep:
        return s.a, s.b, s.c
    if kind is steps.OperationStep:
        operands: tuple[Operand, ...] = s.operands
        return operands
    if kind in (steps.StoreStep, steps.StoreLanesStep, steps.NegateStep):
        return (s.operand,)
    if kind is steps.SpreadStep:
        return (s.scalar,)
    return (s.scalar, s.vector) if kind is steps.InsertStep else ()
