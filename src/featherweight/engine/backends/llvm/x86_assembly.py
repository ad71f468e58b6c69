"""Parts of a plan as x86-64 assembly: LLVM's assembler takes a fifteenth of the time of its code generator.

The plan says which values registers hold, and when. What is left is to name the registers, to let an instruction read from
memory what nobody else reads, and to choose the form of a fused product that overwrites a value which is read no more.

Code that is longer than the first-level cache runs as fast as it is fetched, so instructions are short: registers with low
numbers come first, and what is used most lies within the reach of a displacement of one byte. The last three operands point
`BIAS` bytes into their memory for that.
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
MOST_ARRAYS = 11  # that general registers point to, beside the rooms and the constants
INSTRUCTIONS = {ADD: "vadd", SUB: "vsub", MUL: "vmul", DIV: "vdiv", SQRT: "vsqrt"}
FUSED = {(False, False): "vfmadd", (True, False): "vfnmadd", (False, True): "vfmsub", (True, True): "vfnmsub"}


class Assembly(NamedTuple):
    """A part in assembly. Its operands $0, $1, ... are the arrays, then its rooms, then its constants."""

    text: str
    registers: int  # that the processor has for vectors
    rooms: int  # bytes
    constants: bytes


class OutOfRegisters(Exception):
    """A part holds more values than there are registers."""


class _Place(NamedTuple):
    """An operand: its text, its register if it is in one, and whether nobody reads that register after this."""

    text: str
    register: int | None = None
    last: bool = False


class _Memory(NamedTuple):
    """Where a value lies that is read once."""

    text: str


class _Negative(NamedTuple):
    """A value that is the negative of another, and read once."""

    of: Operand


def assembled(part: Sequence[Step], arrays: Sequence[str], types: tuple[Type, Type]) -> Assembly | None:
    """The steps of a part for the machine types of scalars and vectors, of which one has the processor's vectors.

    None for a part that LLVM's code generator is to write: one with calls, or with too many arrays or values.
    """
    if len(arrays) > MOST_ARRAYS or not all(type(s) in _WRITTEN for s in part):
        return None
    try:
        return _AssemblyWriter(part, arrays, types).written(part)
    except OutOfRegisters:
        return None


def write_assembly(f: Function, arrays: Sequence[str], a: Assembly) -> None:
    """The body of a function that consists of assembly; LLVM saves and names registers as the system wants it."""
    operands = [f"%{name}" for name in arrays]
    operands[-1] = f.at("i8", operands[-1], BIAS)
    operands.append(f.at("i8", f.slot("i8", a.rooms, 64), BIAS) if a.rooms else "null")
    table = f"@{f.name}.constants"
    operands.append(f.at("i8", table, BIAS) if a.constants else "null")
    if a.constants:
        words = "".join(f"\\{byte:02X}" for byte in a.constants)
        f.data.append(f'{table} = internal constant [{len(a.constants)} x i8] c"{words}", align 64')
    short = 3  # registers of the first eight make instructions shorter
    constraints = ["r"] * (len(operands) - short) + ["R"] * short
    constraints += [f"~{{{'ymm' if a.registers == 16 else 'zmm'}{k}}}" for k in range(a.registers)]
    constraints += ["~{k1}"] * (a.registers == 32) + ["~{memory}"]
    text = a.text.replace("\n", "\\0A")
    f.line(f'call void asm sideeffect "{text}", "{",".join(constraints)}"({", ".join(f"ptr {x}" for x in operands)})')
    f.ret()


class _AssemblyWriter:
    """Writes down steps, each by a method that the table has."""

    def __init__(self, part: Sequence[Step], arrays: Sequence[str], types: tuple[Type, Type]) -> None:
        self.arrays, self.types = arrays, types
        scalar, vector = types
        self.wide = max(t.bytes for t in types) == 64
        self.registers = 32 if self.wide else 16
        self.names = [f"%{'xmm' if t.lanes == 1 else 'zmm' if t.bytes == 64 else 'ymm'}" for t in types]
        self.item = "d" if scalar.precision == "double" else "s"
        self.suffixes = [("s" if t.lanes == 1 else "p") + self.item for t in types]
        self.move = [f"vmov{'' if t.lanes == 1 else 'u'}{suffix}" for t, suffix in zip(types, self.suffixes, strict=True)]
        self.reads = _reads(part)
        self.free = list(range(self.registers))
        self.places: dict[int, int | _Memory | _Negative] = {}  # of values: registers, or what else
        self.left: dict[int, int] = {}  # times that a value will be read
        self.rooms, self.room_bytes = self._laid_out(part)
        self.constants, self.offsets = bytearray(), dict[bytes, int]()
        self.lines: list[str] = []

    def written(self, part: Sequence[Step]) -> Assembly:
        for step, reads in zip(part, self.reads, strict=True):
            _WRITTEN[type(step)](self, step, reads)
        return Assembly("\n".join(self.lines), self.registers, self.room_bytes, bytes(self.constants))

    # memory

    def _laid_out(self, part: Sequence[Step]) -> tuple[dict[str, int], int]:
        """Where rooms lie, those first that are used most, and the bytes of all."""
        size = max((self.types[s.wide].bytes for s in part if type(s) is steps.RoomStep), default=0)
        rooms = [s.room for s in part if type(s) is steps.RoomStep]
        used = Counter(s.array for s in part if type(s) in (steps.LoadStep, steps.StoreStep))
        rooms.sort(key=lambda room: -used[room])
        return {room: k * size for k, room in enumerate(rooms)}, len(rooms) * size

    def _address(self, array: str, element: int, wide: bool) -> str:
        at = self.rooms.get(array)
        if at is not None:
            return f"{at - BIAS}(${len(self.arrays)})"
        last = len(self.arrays) - 1
        at = element * self.types[wide].bytes
        return f"{at - BIAS}(${last})" if array == self.arrays[last] else f"{at}(${self.arrays.index(array)})"

    def _constant(self, values: Sequence[float], kind: str = "") -> str:
        """The address of numbers of the item's type, or of another of `struct`."""
        data = struct.pack(f"<{len(values)}{kind or {'d': 'd', 's': 'f'}[self.item]}", *values)
        at = self.offsets.get(data)
        if at is None:
            self.constants += bytes(-len(self.constants) % len(data))
            at = self.offsets[data] = len(self.constants)
            self.constants += data
        return f"{at - BIAS}(${len(self.arrays) + 1})"

    # operands

    def _new(self, wide: bool) -> _Place:
        """A register that is free."""
        if not self.free:
            raise OutOfRegisters
        register = heappop(self.free)
        return _Place(f"{self.names[wide]}{register}", register, True)

    def _let_go(self, *operands: _Place) -> None:
        """Registers that are read no more are free."""
        for register in {x.register for x in operands if x.last}:
            heappush(self.free, register)  # type: ignore[arg-type]  # only registers are read for the last time

    def _define(self, value: int, place: _Place, reads: int) -> None:
        """The value is in a register, and read so many times."""
        assert place.register is not None
        self.places[value], self.left[value] = place.register, reads
        if not reads:
            heappush(self.free, place.register)

    def _read(self, x: Operand, wide: bool) -> _Place:
        """An operand that an instruction reads."""
        if not isinstance(x, int):
            return _Place(self._constant(x if isinstance(x, tuple) else (x,) * self.types[wide].lanes))
        place = self.places[x]
        if isinstance(place, _Negative):
            return self._negated(place.of, wide)
        self.left[x] -= 1
        if isinstance(place, _Memory):
            return _Place(place.text)
        return _Place(f"{self.names[wide]}{place}", place, self.left[x] == 0)

    def _loaded(self, x: _Place, wide: bool) -> _Place:
        """An operand in a register."""
        if x.register is not None:
            return x
        loaded = self._new(wide)
        self.lines.append(f"{self.move[wide]} {x.text}, {loaded.text}")
        return loaded

    def _negated(self, x: Operand, wide: bool) -> _Place:
        """The negative of an operand, in a register."""
        source = self._loaded(self._read(x, wide), wide)
        signs = self._constant((-0.0,) * max(self.types[wide].lanes, 16 // self.types[wide].item_bytes))
        self._let_go(source)
        result = self._new(wide)
        self.lines.append(f"vxorp{self.item} {signs}, {source.text}, {result.text}")
        return result

    def _factor(self, x: Operand, wide: bool) -> tuple[_Place, bool]:
        """An operand of a fused product, and whether it is the negative of that which is meant."""
        if isinstance(x, int):
            place = self.places[x]
            if isinstance(place, _Negative):
                return self._read(place.of, wide), True
        return self._read(x, wide), False

    # steps

    def _load(self, s: steps.LoadStep, reads: int) -> None:
        address = self._address(s.array, s.element, s.wide)
        if reads == 1:
            self.places[s.value], self.left[s.value] = _Memory(address), 1
        else:
            self._define(s.value, self._loaded(_Place(address), s.wide), reads)

    def _store(self, s: steps.StoreStep, _: int) -> None:
        source = self._loaded(self._read(s.operand, s.wide), s.wide)
        self.lines.append(f"{self.move[s.wide]} {source.text}, {self._address(s.array, s.element, s.wide)}")
        self._let_go(source)

    def _room(self, _s: steps.RoomStep, _: int) -> None:
        """Rooms are laid out before."""

    def _operation(self, s: steps.OperationStep, reads: int) -> None:
        wide, suffix = s.wide, self.suffixes[s.wide]
        operands = [self._read(x, wide) for x in s.operands]
        if s.op in (ADD, MUL) and operands[0].register is None:
            operands.reverse()
        first = self._loaded(operands[0], wide)
        if len(operands) == 2:
            text = f"{operands[1].text}, {first.text}"
        else:
            text = f"{first.text}, {first.text}" if self.types[wide].lanes == 1 else first.text
        self._let_go(first, *operands[1:])
        result = self._new(wide)
        self.lines.append(f"{INSTRUCTIONS[s.op]}{suffix} {text}, {result.text}")
        self._define(s.value, result, reads)

    def _fma(self, s: steps.FmaStep, reads: int) -> None:
        """a b + c by the form that overwrites an operand that is read no more: the addend (231), or a factor (213, 132)."""
        wide = s.wide
        (a, minus_a), (b, minus_b), (c, minus_c) = (self._factor(x, wide) for x in (s.a, s.b, s.c))
        done = {x.register for x in (a, b, c) if x.last}  # an operand may be there twice
        a, b, c = (x._replace(last=x.register in done) for x in (a, b, c))
        if not (a.last or b.last or c.last):
            if c.register is None:
                c = self._loaded(c, wide)
            elif a.register is None:
                a = self._loaded(a, wide)
            elif b.register is None:
                b = self._loaded(b, wide)
            else:
                c, addend = self._new(wide), c
                self.lines.append(f"vmovap{self.item} {addend.text}, {c.text}")
        if a.register is None:
            a, b = b, a
        if c.last:
            x = self._loaded(a, wide)
            form, target, operands = "231", c, (b, x)
        else:
            target, x = (a, b) if a.last else (b, a)
            if x.register is None and c.register is None:
                x = self._loaded(x, wide)
            form, operands = ("132", (x, c)) if x.register is None else ("213", (c, x))
        name = f"{FUSED[minus_a != minus_b, minus_c]}{form}{self.suffixes[wide]}"
        self.lines.append(f"{name} {operands[0].text}, {operands[1].text}, {target.text}")
        self._let_go(*(y._replace(last=y.last and y.register != target.register) for y in (a, b, c, x)))
        self._define(s.value, target, reads)

    def _negate(self, s: steps.NegateStep, reads: int) -> None:
        if reads == 1:  # a fused product may do it
            self.places[s.value] = _Negative(s.operand)
        else:
            self._define(s.value, self._negated(s.operand, s.wide), reads)

    # lanes

    def _spread(self, s: steps.SpreadStep, reads: int) -> None:
        scalar = self._read(s.scalar, False)
        self._let_go(scalar)
        result = self._new(True)
        self.lines.append(f"vbroadcasts{self.item} {scalar.text}, {result.text}")
        self._define(s.value, result, reads)

    def _insert(self, s: steps.InsertStep, reads: int) -> None:
        scalar = self._read(s.scalar, False)
        old = self._loaded(self._read((0.0,) * self.types[True].lanes if s.vector is None else s.vector, True), True)
        result = self._new(True)
        if self.wide:
            self.lines.append(f"vmovap{self.item} {old.text}, {result.text}")
            self._mask(1 << s.lane)
            self.lines.append(f"vbroadcasts{self.item} {scalar.text}, {result.text} {{%k1}}")
        else:
            self.lines.append(f"vbroadcasts{self.item} {scalar.text}, {result.text}")
            self.lines.append(f"vblendp{self.item} $${1 << s.lane}, {result.text}, {old.text}, {result.text}")
        self._let_go(scalar, old)
        self._define(s.value, result, reads)

    def _store_lanes(self, s: steps.StoreLanesStep, _: int) -> None:
        source = self._loaded(self._read(s.operand, True), True)
        type, count, address = self.types[True], len(s.lanes), self._address(s.array, s.element, False)
        picked = source if s.lanes == tuple(range(count)) else self._permuted(source, [*s.lanes, *range(count, type.lanes)])
        name = {16: "%xmm", 32: "%ymm", 64: "%zmm"}.get(count * type.item_bytes)
        if count == 1:
            self.lines.append(f"vmovs{self.item} %xmm{picked.register}, {address}")
        elif name:
            self.lines.append(f"vmovup{self.item} {name}{picked.register}, {address}")
        elif self.wide:
            self._mask((1 << count) - 1)
            self.lines.append(f"vmovup{self.item} {picked.text}, {address} {{%k1}}")
        else:
            mask = self._loaded(_Place(self._integers([-1] * count + [0] * (type.lanes - count))), True)
            self.lines.append(f"vmaskmovp{self.item} {picked.text}, {mask.text}, {address}")
            self._let_go(mask)
        self._let_go(source, picked)

    def _permuted(self, source: _Place, lanes: Sequence[int]) -> _Place:
        """A vector of these lanes of another."""
        if self.types[True].lanes == 4:
            result = self._new(True)
            picks = sum(lane << 2 * k for k, lane in enumerate(lanes))
            self.lines.append(f"vpermpd $${picks}, {source.text}, {result.text}")
        else:
            result = self._loaded(_Place(self._integers(lanes)), True)
            self.lines.append(f"vpermp{self.item} {source.text}, {result.text}, {result.text}")
        return result

    def _integers(self, values: Sequence[int]) -> str:
        """The address of integers as large as the item."""
        return self._constant(values, {"d": "q", "s": "i"}[self.item])

    def _mask(self, bits: int) -> None:
        """The first mask register has these bits, one for each lane."""
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
    steps.RoomStep: _AssemblyWriter._room,
}


def _reads(part: Sequence[Step]) -> list[int]:
    """For each step, how often the value that it gives is read until a step gives it again."""
    counts: dict[int, int] = {}
    reads = []
    for s in reversed(part):
        kind = type(s)
        reads.append(0 if kind in _WITHOUT_VALUE else counts.pop(s.value, 0))  # type: ignore[union-attr]
        if kind in _OPERANDS:
            for x in _OPERANDS[kind](s):
                if type(x) is int:
                    counts[x] = counts.get(x, 0) + 1
    return reads[::-1]


_WITHOUT_VALUE = {steps.StoreStep, steps.StoreLanesStep, steps.RoomStep}
_OPERANDS: dict[type, Callable[[Any], Sequence[Any]]] = {
    steps.FmaStep: lambda s: (s.a, s.b, s.c),
    steps.OperationStep: lambda s: s.operands,
    steps.StoreStep: lambda s: (s.operand,),
    steps.StoreLanesStep: lambda s: (s.operand,),
    steps.NegateStep: lambda s: (s.operand,),
    steps.SpreadStep: lambda s: (s.scalar,),
    steps.InsertStep: lambda s: (s.scalar, s.vector),
}
