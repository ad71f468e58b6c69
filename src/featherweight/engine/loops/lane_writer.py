"""A plan as LLVM IR that computes one robot in each vector lane.

Each register is *uniform*, one number for all lanes, or *varying*, a vector with a number for each lane (Pharr and Mark 2012).
Varying conditions become masks: both branches are executed, each for its lanes, and a branch without lanes is skipped. A loop
runs while any lane takes part. A lane does exactly what the kernel does for one robot, so its results are bitwise the same.

Arrays are shared by all lanes, or interleaved: for each element, the numbers of all lanes. An array is an address, the number
of its first element and its lengths. An interleaved array is read by one instruction if the index is uniform; if it varies,
each lane reads separately.

Variables are on the stack, and LLVM moves them to registers. A function is rewritten until it is known which variables vary.
There is one version of each function for each choice of varying arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..backends.llvm.ir import Function
from ..backends.llvm.ir import Type as MachineType
from ..backends.llvm.trig import sincos_ir, sincos_name
from .kernel_sources import KernelError
from .kernel_types import BOOL, FLOAT, INT, ArrayType, Number, TableType, TupleType, Type
from .loop_writer import (
    ATTRIBUTES,
    BYTES,
    INSTRUCTIONS,
    ITEMS,
    WORDS,
    bundle,
    give_back,
    is_number,
    name_of_test,
    real,
    table_arguments,
)
from .plan import (
    ArrayView,
    Assign,
    Binary,
    Break,
    Call,
    Compare,
    Constant,
    Continue,
    Convert,
    CopyArray,
    Do,
    Field,
    Fill,
    For,
    FunctionPlan,
    Fused,
    If,
    Length,
    Load,
    MakeTuple,
    Negative,
    Not,
    Numeric,
    Pick,
    Plan,
    Read,
    Reshape,
    Return,
    Rounds,
    Slice,
    Special,
    Statement,
    Static,
    Store,
    TupleItem,
    Value,
    Variable,
    While,
    is_array,
)  # fmt: skip
from .variable_scopes import may_end, scopes_of
from .views import LANES

ALL_BITS, ALL = "splat (i64 -1)", "splat (i1 true)"
MANGLED = {"double": "f64", "float": "f32", "i64": "i64", "i32": "i32", "i16": "i16", "i8": "i8"}


class Register(NamedTuple):
    """A uniform number, or a vector with one for each lane; varying truth values have 64 equal bits per lane."""

    text: str
    varies: bool = False


Registers = tuple[Register, ...]
ZERO = Register("0")


def lane_words(type: Type) -> list[str]:
    """Return the machine types of the registers of a value for one lane."""
    if isinstance(type, Number):
        return [WORDS[type]]
    if isinstance(type, ArrayType):
        return ["ptr", "i64"] + ["i64"] * type.axes
    if isinstance(type, TupleType):
        return [w for x in type.items for w in lane_words(x)]
    return ["ptr"] if isinstance(type, TableType) else []


class LaneFunction(NamedTuple):
    """A written function: its name, and which words of its result vary."""

    name: str
    varies: tuple[bool, ...]


class LaneModule:
    """The functions of a plan for some lanes, each for all choices of varying arguments."""

    def __init__(self, lanes: int, fused: bool) -> None:
        self.lanes, self.fused = lanes, fused
        self.functions: dict[tuple[int, tuple[bool, ...], bool], LaneFunction] = {}
        self.written: list[Function] = []
        self.sincos: set[int] = set()  # vector widths of sine and cosine

    def function(self, plan: FunctionPlan, varying: tuple[bool, ...], by_all: bool) -> LaneFunction:
        """Return a function for this choice of varying arguments; `by_all` says whether all lanes execute it."""
        key = id(plan), varying, by_all
        if key not in self.functions:
            name = f'"{plan.name}.{len(self.functions)}"'
            self.functions[key] = LaneFunction(name, ())  # reserves its name
            writer = LaneWriter(self, plan, name, varying, by_all)
            self.functions[key] = LaneFunction(name, writer.written())
            self.written.append(writer.f)
        return self.functions[key]


class _Again(Exception):
    """Signal that more words vary than was known, and that a function is called with them."""


class LaneLoop(NamedTuple):
    """A loop that is being written: its statement, its position among blocks, and the lanes that left it or its iteration."""

    statement: Any
    depth: int
    left: str
    skipped: str


class LaneWriter:
    """Writes one function for lanes."""

    f: Function

    def __init__(self, module: LaneModule, plan: FunctionPlan, name: str, varying: tuple[bool, ...], by_all: bool) -> None:
        self.module, self.plan, self.name, self.given, self.lanes = module, plan, name, varying, module.lanes
        self.by_all = by_all
        self.scopes = scopes_of(plan)
        self.result = lane_words(plan.result)
        self.varying: set[tuple[int, int]] = set()  # (variable, word)
        self.varying_results = [False] * len(self.result)
        self.varying_loops: set[int] = set()
        self.lanes_end = False  # whether some lanes may return, or leave a loop or its iteration, while others go on

    def written(self) -> tuple[bool, ...]:
        """Write the function until no further words vary; return which words of the result do."""
        while True:
            self.changed = False
            try:
                self._write()
            except _Again:
                continue
            if not self.changed:
                return tuple(self.varying_results)

    def _write(self) -> None:
        arguments, given = [f"{self.vector('i1')} %live"], iter(self.given)
        parameters: list[tuple[Any, Registers]] = []
        for v in self.plan.parameters:
            registers = []
            for k, word in enumerate(lane_words(v.type)):
                registers.append(Register(f"%a{v.number}.{k}", next(given)))
                arguments.append(f"{self.type(word, registers[-1].varies)} {registers[-1].text}")
            parameters.append((v, tuple(registers)))
        self.kinds = [self.type(w, v) for w, v in zip(self.result, self.varying_results, strict=True)]
        self.result_varies = tuple(self.varying_results)
        self.f = f = Function(bundle(self.kinds), self.name, arguments, attributes=ATTRIBUTES)
        self.slots = {
            (number, k): (f.slot(self.type(w, (number, k) in self.varying), align=64), (number, k) in self.varying)
            for number, type in self.scopes.type.items()
            if number not in self.scopes.final
            for k, w in enumerate(lane_words(type))
        }
        self.values: dict[int, Registers] = {}  # values of final variables
        self.results = [f.slot(kind, align=64) for kind in self.kinds]
        self.live_slot = f.slot(self.vector("i1"), align=64)
        self.loops: list[LaneLoop] = []
        self.blocks: list[tuple[int, bool]] = []  # open blocks, and whether lanes may have left them
        self.masks = f.reserve()  # place for slots of loops
        self.mask_slots: list[str] = []
        f.store(self.vector("i1"), ALL_BITS if self.by_all else "%live", self.live_slot)
        self.blocks.append((id(self.plan.body), False))
        for v, values in parameters:
            self.set(v, values)
        self.blocks.pop()
        self.block(self.plan.body, False)
        results = [f.load(kind, slot) for kind, slot in zip(self.kinds, self.results, strict=True)]
        give_back(f, self.kinds, results)
        f.fill_in(self.masks, self.mask_slots)

    # machine types and lanes

    def vector(self, word: str) -> str:
        """Return the machine type of a varying word."""
        return f"<{self.lanes} x {'i64' if word == 'i1' else word}>"

    def type(self, word: str, varies: bool) -> str:
        return self.vector(word) if varies else word

    def spread(self, x: Register, word: str) -> str:
        """Broadcast a word to all lanes."""
        if x.varies:
            return x.text
        if word == "i1":
            if x.text in ("true", "false"):
                return ALL_BITS if x.text == "true" else "zeroinitializer"
            return self.spread(Register(self.f.cast("sext", "i1", x.text, "i64")), "i64")
        if not x.text.startswith("%"):
            return "zeroinitializer" if x.text in ("0", "null") else f"splat ({word} {x.text})"
        kind = self.vector(word)
        one = self.f.value(f"insertelement {kind} poison, {word} {x.text}, i64 0")
        return self.f.value(f"shufflevector {kind} {one}, {kind} poison, <{self.lanes} x i32> zeroinitializer")

    @property
    def numbers(self) -> str:
        """Return the numbers of the lanes."""
        return f"<{', '.join(f'i64 {k}' for k in range(self.lanes))}>"

    def bits(self, mask: str) -> str:
        """Return a mask as a vector of bits."""
        return self.f.value(f"icmp slt {self.vector('i1')} {mask}, zeroinitializer")

    def mask(self, bits: str) -> Register:
        return Register(self.f.value(f"sext <{self.lanes} x i1> {bits} to {self.vector('i1')}"), True)

    def any(self, mask: str) -> str:
        """Return whether a mask contains any lane."""
        n = self.lanes
        return self.f.value(f"icmp ne i{n} {self.f.value(f'bitcast <{n} x i1> {self.bits(mask)} to i{n}')}, 0")

    @property
    def live(self) -> str:
        """Return the active lanes as a mask."""
        return self.f.load(self.vector("i1"), self.live_slot)

    @live.setter
    def live(self, mask: str) -> None:
        self.f.store(self.vector("i1"), mask, self.live_slot)

    def both(self, a: str, b: str) -> str:
        return self.f.binary("and", self.vector("i1"), a, b)

    def either(self, a: str, b: str) -> str:
        return self.f.binary("or", self.vector("i1"), a, b)

    def without(self, a: str, b: str) -> str:
        """Return the lanes of a that are not in b."""
        return self.both(a, self.f.binary("xor", self.vector("i1"), b, ALL_BITS))

    def mask_slot(self) -> str:
        """Return memory for a mask, which LLVM requires in the first block."""
        name = f"%{self.f.fresh('mask')}"
        self.mask_slots.append(f"  {name} = alloca {self.vector('i1')}, align 64")
        return name

    # arithmetic of registers

    def binary(self, instruction: str, word: str, a: Register, b: Register) -> Register:
        """Write an instruction on two words; their type is that of the result."""
        varies = a.varies or b.varies
        x, y = (self.spread(r, word) if varies else r.text for r in (a, b))
        return Register(self.f.binary(instruction, self.type(word, varies), x, y), varies)

    def compared(self, test: str, word: str, a: Register, b: Register) -> Register:
        """Write a comparison by LLVM's name."""
        if word == "i1" and (a.varies or b.varies):
            word, a, b = "i64", Register(self.spread(a, "i1"), True), Register(self.spread(b, "i1"), True)
        varies = a.varies or b.varies
        x, y = (self.spread(r, word) if varies else r.text for r in (a, b))
        bits = self.f.binary(test, self.type(word, varies), x, y)
        return self.mask(bits) if varies else Register(bits)

    def select(self, condition: Register, yes: Register, no: Register, word: str) -> Register:
        if yes == no:
            return yes
        if not condition.varies:
            varies = yes.varies or no.varies
            kind = self.type(word, varies)
            x, y = (self.spread(r, word) if varies else r.text for r in (yes, no))
            return Register(self.f.select(condition.text, x, y, kind), varies)
        return Register(self.blended(self.bits(condition.text), self.spread(yes, word), self.spread(no, word), word), True)

    def blended(self, bits: str, yes: str, no: str, word: str) -> str:
        return self.f.select(bits, yes, no, self.vector(word), f"<{self.lanes} x i1>")

    def intrinsic(self, name: str, *arguments: Register) -> Register:
        """Call one of LLVM's functions of floats."""
        varies = any(a.varies for a in arguments)
        values = [self.spread(a, "double") if varies else a.text for a in arguments]
        return Register(self.f.intrinsic(name, MachineType("double", self.lanes if varies else 1), *values), varies)

    def negated(self, a: Register) -> Register:
        return Register(self.f.value(f"fneg {self.type('double', a.varies)} {a.text}"), a.varies)

    def less_product(self, total: Register, a: Register, b: Register) -> Register:
        """Return total - a b, rounded once if the module fuses."""
        if self.module.fused:
            return self.intrinsic("fma", self.negated(a), b, total)
        return self.binary("fsub", "double", total, self.binary("fmul", "double", a, b))

    def added(self, a: Register, b: Register) -> Register:
        if "0" in (a.text, b.text):
            return b if a.text == "0" else a
        return self.binary("add", "i64", a, b)

    def times(self, a: Register, b: Register) -> Register:
        """Return the product of two counts of elements, which have 32 bits: processors lack products of 64-bit vectors."""
        if "0" in (a.text, b.text) or a.text == "1":
            return ZERO if "0" in (a.text, b.text) else b
        if b.text == "1":
            return a
        if a.varies or b.varies:
            low = Register("4294967295")
            a, b = (self.binary("and", "i64", x, low) for x in (a, b))
        return self.binary("mul", "i64", a, b)

    def product(self, numbers: Sequence[Register]) -> Register:
        result = numbers[0]
        for n in numbers[1:]:
            result = self.times(result, n)
        return result

    # memory

    def addresses(self, kind: str, interleaved: bool, data: Register, at: Register) -> str:
        """Return addresses of an element for each lane; inactive lanes get a readable address."""
        f, many = self.f, self.vector("i64")
        number = self.both(self.spread(at, "i64"), self.live)
        if interleaved:
            shifted = f.binary("shl", many, number, f"splat (i64 {self.lanes.bit_length() - 1})")
            number = f.binary("or", many, shifted, self.numbers)
        base = f"{self.type('ptr', data.varies)} {data.text}"
        return f.value(f"getelementptr {kind}, {base}, {many} {number}")

    def gathered(self, kind: str, places: str, bits: str) -> str:
        """Return the elements at addresses."""
        n, size, wide = self.lanes, BYTES[kind], f"<{self.lanes} x {kind}>"
        name = f"@llvm.masked.gather.v{n}{MANGLED[kind]}.v{n}p0"  # with LLVM 20's form of the alignment
        self.f.declarations[f"declare {wide} {name}(<{n} x ptr>, i32, <{n} x i1>, {wide})"] = None
        return self.f.call(wide, name, f"<{n} x ptr> {places}", f"i32 {size}", f"<{n} x i1> {bits}", f"{wide} poison")

    def scattered(self, kind: str, x: str, places: str, bits: str) -> None:
        """Write elements to addresses."""
        n, size, wide = self.lanes, BYTES[kind], f"<{self.lanes} x {kind}>"
        name = f"@llvm.masked.scatter.v{n}{MANGLED[kind]}.v{n}p0"
        self.f.declarations[f"declare void {name}({wide}, <{n} x ptr>, i32, <{n} x i1>)"] = None
        self.f.call("void", name, f"{wide} {x}", f"<{n} x ptr> {places}", f"i32 {size}", f"<{n} x i1> {bits}")

    def fetched(self, kind: str, interleaved: bool, data: Register, at: Register) -> Register:
        """Return an element in its memory format."""
        f, wide = self.f, f"<{self.lanes} x {kind}>"
        if not data.varies and not at.varies:
            if not interleaved:
                return Register(f.load(kind, data.text, at.text))
            return Register(f.load(wide, data.text, at.text, align=self.lanes * BYTES[kind]), True)
        places = self.addresses(kind, interleaved, data, at)
        return Register(self.gathered(kind, places, self.bits(self.live) if data.varies else ALL), True)

    def get(self, type: ArrayType, data: Register, at: Register) -> Register:
        """Return the number at an element."""
        f, kind, dtype = self.f, ITEMS[type.dtype], type.dtype
        x = self.fetched(kind, type.interleaved, data, at)
        many = f"<{self.lanes} x %s>" if x.varies else "%s"
        if dtype == "bool":
            if x.varies:
                return self.mask(f.value(f"icmp ne {many % 'i8'} {x.text}, zeroinitializer"))
            return Register(f.cast("trunc", "i8", x.text, "i1"))
        if kind in ("double", "i64"):
            return x
        to = "double" if kind == "float" else "i64"
        cast = "fpext" if kind == "float" else "zext" if dtype.startswith("u") else "sext"
        return Register(f.cast(cast, many % kind, x.text, many % to), x.varies)

    def put(self, type: ArrayType, data: Register, at: Register, value: Register) -> None:
        """Write a number to an element, in the active lanes."""
        f, kind, dtype, n = self.f, ITEMS[type.dtype], type.dtype, self.lanes
        wide, word = f"<{n} x {kind}>", WORDS[type.item]
        x = self.spread(value, word)
        if dtype == "bool":
            x = f.value(f"zext <{n} x i1> {self.bits(x)} to {wide}")
        elif kind not in ("double", "i64"):
            x = f.cast("fptrunc" if kind == "float" else "trunc", f"<{n} x {word}>", x, wide)
        bits = self.bits(self.live)
        if not data.varies and not at.varies:
            if not type.interleaved:
                self.require_knowledge()
                raise KernelError(f"{self.plan.name}: all lanes write to the same element of a shared array")
            place = f.at(wide, data.text, at.text)
            old = f.load(wide, place, align=n * BYTES[kind])
            f.store(wide, self.merged(kind, x, old, bits), place, align=n * BYTES[kind])
            return
        places = self.addresses(kind, type.interleaved, data, at)
        if type.interleaved and not data.varies:  # inactive lanes write their old number again
            x, bits = f.select(bits, x, self.gathered(kind, places, ALL), wide, f"<{n} x i1>"), ALL
        self.scattered(kind, x, places, bits)

    def merged(self, kind: str, new: str, old: str, bits: str) -> str:
        """Return numbers for memory, new in the active lanes.

        Bit operations select them, because masked stores are slow on many processors.
        """
        f, wide = self.f, f"<{self.lanes} x {kind}>"
        if BYTES[kind] != 8:
            return f.select(bits, new, old, wide, f"<{self.lanes} x i1>")
        words, mask = self.vector("i64"), self.live
        a, b = (x if kind == "i64" else f.cast("bitcast", wide, x, words) for x in (new, old))
        chosen = self.either(self.both(a, mask), self.without(b, mask))
        return chosen if kind == "i64" else f.cast("bitcast", words, chosen, wide)

    @contextmanager
    def each(self, count: Register, step: int = 1) -> Iterator[Register]:
        """Write a loop over indices below a count, separate for each lane."""
        f = self.f
        if not count.varies:
            with f.loop(count.text, step=step) as i:
                yield Register(i)
            return
        before, head, body, done = self.live, f.fresh("head"), f.fresh("body"), f.fresh("done")
        entry, index, following = f.block, f"%{f.fresh('i')}", f"%{f.fresh('j')}"
        f.jump(head)
        f.label(head)
        mark = f.reserve()
        mask = self.both(before, self.compared("icmp slt", "i64", Register(index), count).text)
        self.live = mask
        f.branch(self.any(mask), body, done)
        f.label(body)
        yield Register(index)
        f.line(f"{following} = add i64 {index}, {step}")
        f.fill_in(mark, [f"  {index} = phi i64 [ 0, %{entry} ], [ {following}, %{f.block} ]"])
        f.jump(head)
        f.label(done)
        self.live = before

    # statements

    def block(self, statements: list[Statement], varies: bool) -> None:
        """Write statements; `varies` says whether active lanes of the surrounding block may be inactive here.

        The code that follows is executed in any case, possibly without lanes.
        """
        f = self.f
        rest = f.fresh("rest")
        self.blocks.append((id(statements), varies))
        for k, s in enumerate(statements):
            STATEMENTS[type(s)](self, s)
            if isinstance(s, (Return, Break, Continue)):
                break
            if may_end(s) and k + 1 < len(statements):
                on = f.fresh("on")
                f.branch(self.any(self.live), on, rest)
                f.label(on)
        self.blocks.pop()
        f.jump(rest)
        f.label(rest)

    def set(self, v: Variable[Type], values: Registers) -> None:
        """Set a variable in the active lanes."""
        if v.number in self.scopes.final:
            self.values[v.number] = values
            return
        block = self.scopes.block[v.number]
        depth = next(k for k in range(len(self.blocks) - 1, -1, -1) if self.blocks[k][0] == block)
        some = any(varies for _, varies in self.blocks[depth + 1 :])
        bits = ""
        for k, (word, x) in enumerate(zip(lane_words(v.type), values, strict=True)):
            slot, wide = self.slots[v.number, k]
            if not wide:
                if x.varies or some:
                    self.varying.add((v.number, k))
                    self.changed = True
                else:
                    self.f.store(word, x.text, slot)
                continue
            text, kind = self.spread(x, word), self.vector(word)
            if some:
                bits = bits or self.bits(self.live)
                text = self.blended(bits, text, self.f.load(kind, slot), word)
            self.f.store(kind, text, slot)

    def assign(self, s: Assign) -> None:
        self.set(s.variable, self.registers(s.value))

    def do(self, s: Do) -> None:
        self.registers(s.value)

    def choose(self, s: If) -> None:
        f = self.f
        (condition,) = self.registers(s.test)
        then, otherwise, after = f.fresh("then"), f.fresh("else"), f.fresh("after")
        if not condition.varies:
            f.branch(condition.text, then, otherwise if s.otherwise else after)
            for label, statements in ((then, s.then), (otherwise, s.otherwise)):
                if statements or label == then:
                    f.label(label)
                    self.block(statements, False)
                    f.jump(after)
            f.label(after)
            return
        before = self.live
        yes, no = self.both(before, condition.text), self.without(before, condition.text)
        remaining = []
        for lanes, statements in ((yes, s.then), (no, s.otherwise)):
            if not statements:
                remaining.append(lanes)
                continue
            some, none = f.fresh("some"), f.fresh("none")
            self.live = lanes
            f.branch(self.any(lanes), some, none)
            f.label(some)
            self.block(statements, True)
            f.jump(none)
            f.label(none)
            remaining.append(self.live)
        self.live = self.either(*remaining)

    def loop_for(self, s: For) -> None:
        f, counter = self.f, s.counter
        (begin,), (end,) = self.registers(s.begin), self.registers(s.end)
        loop, outside = self.open(s)
        varies = begin.varies or end.varies or id(s) in self.varying_loops
        head, body, done = f.fresh("head"), f.fresh("body"), f.fresh("done")
        slot, wide = self.slots[counter.number, 0]
        if begin.varies and not wide:
            self.varying.add((counter.number, 0))
            self.changed = True
        kind = self.type("i64", wide)
        f.store(kind, self.spread(begin, "i64") if wide else begin.text, slot)
        f.jump(head)
        f.label(head)
        i = Register(f.load(kind, slot), wide)
        self.test(self.compared(f"icmp {'slt' if s.step > 0 else 'sgt'}", "i64", i, end), outside, body, done)
        self.round(loop, s.body, varies)
        following = self.binary("add", "i64", Register(f.load(kind, slot), wide), Register(str(s.step)))
        f.store(kind, following.text, slot)
        f.branch(self.any(self.live), head, done) if may_end(s.body) else f.jump(head)
        f.label(done)
        self.close(loop, outside)

    def loop_while(self, s: While) -> None:
        f = self.f
        loop, outside = self.open(s)
        head, body, done = f.fresh("head"), f.fresh("body"), f.fresh("done")
        f.jump(head)
        f.label(head)
        if s.head:
            self.block(s.head, id(s) in self.varying_loops)
        (condition,) = self.registers(s.test)
        if condition.varies and id(s) not in self.varying_loops:
            self.varying_loops.add(id(s))
            self.changed = True
        self.test(condition, outside, body, done)
        self.round(loop, s.body, id(s) in self.varying_loops)
        f.branch(self.any(self.live), head, done) if may_end(s.body) else f.jump(head)
        f.label(done)
        self.close(loop, outside)

    def rounds(self, s: Rounds) -> None:
        f = self.f
        loop, outside = self.open(s)
        done = f.fresh("done")
        for statements in s.rounds:
            self.round(loop, statements, id(s) in self.varying_loops)
            if may_end(statements):
                following = f.fresh("next")
                f.branch(self.any(self.live), following, done)
                f.label(following)
        f.jump(done)
        f.label(done)
        self.close(loop, outside)

    def open(self, s: Statement) -> tuple[LaneLoop, str]:
        """Begin a loop; return it, and memory for the lanes that its test ends."""
        loop = LaneLoop(s, len(self.blocks), self.mask_slot(), self.mask_slot())
        outside = self.mask_slot()
        for slot in (loop.left, loop.skipped, outside):
            self.f.store(self.vector("i1"), "zeroinitializer", slot)
        return loop, outside

    def test(self, condition: Register, outside: str, body: str, done: str) -> None:
        """Continue in the lanes for which a condition holds."""
        f, kind = self.f, self.vector("i1")
        if not condition.varies:
            f.branch(condition.text, body, done)
        else:
            before = self.live
            f.store(kind, self.either(f.load(kind, outside), self.without(before, condition.text)), outside)
            on = self.both(before, condition.text)
            self.live = on
            f.branch(self.any(on), body, done)
        f.label(body)

    def round(self, loop: LaneLoop, statements: list[Statement], varies: bool) -> None:
        """Write one iteration of a loop."""
        self.loops.append(loop)
        self.block(statements, varies)
        self.loops.pop()
        kind = self.vector("i1")
        self.live = self.either(self.live, self.f.load(kind, loop.skipped))
        self.f.store(kind, "zeroinitializer", loop.skipped)

    def close(self, loop: LaneLoop, outside: str) -> None:
        """Continue after a loop with all lanes that reached it."""
        kind = self.vector("i1")
        self.live = self.either(self.either(self.live, self.f.load(kind, outside)), self.f.load(kind, loop.left))

    def leave(self, s: Break) -> None:
        self.end_round(self.loops[-1].left)

    def go_on(self, s: Continue) -> None:
        self.end_round(self.loops[-1].skipped)

    def end_round(self, slot: str) -> None:
        """Move the active lanes to those of a slot."""
        loop, kind = self.loops[-1], self.vector("i1")
        self.note_end(any(varies for _, varies in self.blocks))
        if any(varies for _, varies in self.blocks[loop.depth + 1 :]) and id(loop.statement) not in self.varying_loops:
            self.varying_loops.add(id(loop.statement))
            self.changed = True
        self.f.store(kind, self.either(self.f.load(kind, slot), self.live), slot)
        self.live = "zeroinitializer"

    def note_end(self, varies: bool) -> None:
        """Note that lanes end here, some of them alone."""
        if varies and not self.lanes_end:
            self.lanes_end = self.changed = True

    def give(self, s: Return) -> None:
        f, values = self.f, self.registers(s.value)
        some = any(varies for _, varies in self.blocks)
        self.note_end(some)
        for k, (word, x) in enumerate(zip(self.result, values, strict=True)):
            if (x.varies or some) and not self.varying_results[k]:
                self.varying_results[k] = True
                self.changed = True
            if self.result_varies[k]:
                kind = self.kinds[k]
                old = f.load(kind, self.results[k])
                f.store(kind, self.blended(self.bits(self.live), self.spread(x, word), old, word), self.results[k])
            elif not x.varies:
                f.store(word, x.text, self.results[k])
        self.live = "zeroinitializer"

    def store(self, s: Store) -> None:
        (value,) = self.registers(s.value)
        data, at, *shape = self.registers(s.array)
        self.put(s.array.type, data, self.added(at, self.offset(shape, s.indices)), value)

    def fill(self, s: Fill) -> None:
        data, at, *shape = self.registers(s.array)
        (value,) = self.registers(s.value)
        with self.each(self.product(shape)) as i:
            self.put(s.array.type, data, self.added(at, i), value)

    def copy(self, s: CopyArray) -> None:
        data, at, *shape = self.registers(s.array)
        source, begin, *_ = self.registers(s.source)
        with self.each(self.product(shape)) as i:
            self.put(s.array.type, data, self.added(at, i), self.get(s.source.type, source, self.added(begin, i)))

    # expressions

    def registers(self, x: Value) -> Registers:
        return EXPRESSIONS[type(x)](self, x)

    def constant(self, x: Constant) -> Registers:
        if x.type == FLOAT:
            return (Register(real(x.value)),)
        return (Register(("true" if x.value else "false") if x.type == BOOL else str(int(x.value))),)

    def static(self, x: Static) -> Registers:
        return ()

    def read(self, x: Read[Type]) -> Registers:
        return self.words(x.variable, 0, len(lane_words(x.variable.type)))

    def words(self, v: Variable[Type], begin: int, end: int) -> Registers:
        """Return some words of a variable."""
        if v.number in self.values:
            return self.values[v.number][begin:end]
        found = []
        for k, word in enumerate(lane_words(v.type)[begin:end], begin):
            slot, wide = self.slots[v.number, k]
            found.append(Register(self.f.load(self.type(word, wide), slot), (v.number, k) in self.varying))
        return tuple(found)

    def make_tuple(self, x: MakeTuple) -> Registers:
        return tuple(r for item in x.items for r in self.registers(item))

    def item(self, x: TupleItem) -> Registers:
        begin = 0
        whole: Value = x
        count = len(lane_words(x.type))
        while isinstance(whole, TupleItem):
            begin += sum(len(lane_words(t)) for t in whole.whole.type.items[: whole.number])
            whole = whole.whole
        if isinstance(whole, Read):
            return self.words(whole.variable, begin, begin + count)
        return self.registers(whole)[begin : begin + count]

    def pick(self, x: Pick) -> Registers:
        items = [self.registers(item) for item in x.items]
        (index,) = self.registers(x.at)
        chosen, words = items[0], lane_words(x.type)
        for k, item in enumerate(items[1:], 1):
            c = self.compared("icmp eq", "i64", index, Register(str(k)))
            chosen = tuple(self.select(c, b, a, w) for a, b, w in zip(chosen, item, words, strict=True))
        return chosen

    def field(self, x: Field) -> Registers:
        f = self.f
        (table,) = self.registers(x.table)
        if table.varies:
            self.require_knowledge()
            raise KernelError(f"{self.plan.name}: different lanes use different tables")

        def word(kind: str, k: int) -> Register:
            return Register(f.value(f"load {kind}, ptr {f.at('i64', table.text, k)}, align 8, !invariant.load !0"))

        if isinstance(x.type, TableType):
            return (Register(f.at("i64", table.text, x.word)),)
        if isinstance(x.type, ArrayType):
            return (word("ptr", x.word), ZERO, *(word("i64", x.word + 1 + k) for k in range(x.type.axes)))
        if x.type == BOOL:
            return (Register(f.cast("trunc", "i64", word("i64", x.word).text, "i1")),)
        return (word(WORDS[x.type], x.word),)  # type: ignore[index]

    def operation(self, x: Binary) -> Registers:
        (a,), (b,) = self.registers(x.left), self.registers(x.right)
        if x.operator in ("//", "%"):
            return (self.divided(x.operator, a, b),)
        if x.operator in ("<<", ">>"):
            b = self.binary("and", "i64", b, Register("63"))
        return (self.binary(INSTRUCTIONS[x.type][x.operator], WORDS[x.type], a, b),)

    def divided(self, operator: str, a: Register, b: Register) -> Register:
        """Write Python's division of whole numbers: rounded down, with a remainder of the divisor's sign."""
        zero, one = ZERO, Register("1")
        if not is_number(b.text) or int(b.text) <= 0:
            if b.varies:  # inactive lanes may have any number
                b = self.select(Register(self.live, True), b, one, "i64")
            special = self.compared("icmp ult", "i64", self.binary("add", "i64", b, one), Register("2"))
            quotient = self.binary("sdiv", "i64", a, self.select(special, one, b, "i64"))
            minus = self.compared("icmp eq", "i64", b, Register("-1"))
            quotient = self.select(minus, self.binary("sub", "i64", zero, a), quotient, "i64")
            rest = self.binary("sub", "i64", a, self.binary("mul", "i64", quotient, b))
            unlike = self.compared("icmp slt", "i64", self.binary("xor", "i64", rest, b), zero)
            apart = self.binary("and", "i1", self.compared("icmp ne", "i64", rest, zero), unlike)
        else:
            rest = self.binary("srem", "i64", a, b)
            quotient = self.binary("sdiv", "i64", a, b)
            apart = self.compared("icmp slt", "i64", rest, zero)
        if operator == "%":
            return self.binary("add", "i64", rest, self.select(apart, b, zero, "i64"))
        return self.binary("sub", "i64", quotient, self.select(apart, one, zero, "i64"))

    def fused(self, x: Fused) -> Registers:
        if x.product_first:
            (a,), (b,), (c,) = self.registers(x.left), self.registers(x.right), self.registers(x.more)
        else:
            (c,), (a,), (b,) = self.registers(x.more), self.registers(x.left), self.registers(x.right)
        return (self.intrinsic("fma", self.negated(a) if x.minus_product else a, b, self.negated(c) if x.minus_more else c),)

    def negative(self, x: Negative) -> Registers:
        (a,) = self.registers(x.value)
        return (self.negated(a) if x.type == FLOAT else self.binary("sub", "i64", ZERO, a),)

    def opposite(self, x: Not) -> Registers:
        return (self.negation(self.registers(x.value)[0]),)

    def negation(self, a: Register) -> Register:
        return self.binary("xor", "i1", a, Register(ALL_BITS, True) if a.varies else Register("true"))

    def compare(self, x: Compare) -> Registers:
        (a,), (b,) = self.registers(x.left), self.registers(x.right)
        return (self.compared(name_of_test(x.operator, x.left.type), WORDS[x.left.type], a, b),)

    def convert(self, x: Convert) -> Registers:
        f, old = self.f, x.value.type
        (a,) = self.registers(x.value)
        if x.type == BOOL:
            zero = Register(real(0.0)) if old == FLOAT else ZERO
            return (self.compared("fcmp une" if old == FLOAT else "icmp ne", WORDS[old], a, zero),)
        if old == BOOL:
            one, zero = (Register("1"), ZERO) if x.type == INT else (Register(real(1.0)), Register(real(0.0)))
            return (self.select(a, one, zero, WORDS[x.type]),)
        if x.type == FLOAT:
            return (Register(f.cast("sitofp", self.type("i64", a.varies), a.text, self.type("double", a.varies)), a.varies),)
        source, target = (MachineType(k, self.lanes if a.varies else 1) for k in ("double", "i64"))
        name = f"@llvm.fptosi.sat.{target.mangled}.{source.mangled}"
        f.declarations[f"declare {target.ir} {name}({source.ir})"] = None
        return (Register(f.call(target.ir, name, f"{source.ir} {a.text}"), a.varies),)

    def numeric(self, x: Numeric) -> Registers:
        name, word = x.name, WORDS[x.type]
        a, *rest = (self.registers(y)[0] for y in x.arguments)
        if name in ("min", "max"):
            for b in rest:
                a = self.select(self.compared(name_of_test("<" if name == "min" else ">", x.type), word, b, a), b, a, word)
            return (a,)
        if name in ("minimum", "maximum"):
            (b,) = rest
            test = "fcmp ult" if name == "minimum" else "fcmp ugt"
            chosen = self.select(self.compared(test, word, a, b), a, b, word)  # a if a or b is NaN
            return (self.select(self.compared("fcmp uno", word, b, Register(real(0.0))), b, chosen, word),)
        if name == "abs" and x.type == INT:
            return (self.select(self.compared("icmp slt", word, a, ZERO), self.binary("sub", word, ZERO, a), a, word),)
        if name == "isfinite":
            return (self.compared("fcmp olt", "double", self.intrinsic("fabs", a), Register(real(math.inf))),)
        if name in ("sin", "cos"):
            machine = MachineType("double", self.lanes if a.varies else 1)
            self.module.sincos.add(machine.lanes)
            pair = self.f.call(f"{{ {machine.ir}, {machine.ir} }}", f"@{sincos_name(machine)}", f"{machine.ir} {a.text}")
            return (Register(self.f.member(machine.ir, pair, int(name == "cos")), a.varies),)
        return (self.intrinsic({"abs": "fabs"}.get(name, name), a),)

    def offset(self, shape: Sequence[Register], indices: Sequence[Value]) -> Register:
        """Return the count of elements of the remaining axes before leading indices."""
        result, *places = (self.registers(i)[0] for i in indices)
        for n, k in zip(shape[1:], places, strict=False):
            result = self.added(self.times(result, n), k)
        return result

    def load(self, x: Load) -> Registers:
        data, at, *shape = self.registers(x.array)
        return (self.get(x.array.type, data, self.added(at, self.offset(shape, x.indices))),)

    def view(self, x: ArrayView) -> Registers:
        data, at, *shape = self.registers(x.array)
        rest = shape[len(x.indices) :]
        return (data, self.added(at, self.times(self.offset(shape, x.indices), self.product(rest))), *rest)

    def slice(self, x: Slice) -> Registers:
        data, at, first, *rest = self.registers(x.array)
        begin = self.registers(x.begin)[0] if x.begin is not None else ZERO
        end = self.least(self.registers(x.end)[0], first) if x.end is not None else first
        if begin.text == "0":
            return (data, at, end, *rest)
        length = self.binary("sub", "i64", end, self.least(begin, end))
        return (data, self.added(at, self.times(begin, self.product([Register("1"), *rest]))), length, *rest)

    def least(self, a: Register, b: Register) -> Register:
        return self.select(self.compared("icmp slt", "i64", a, b), a, b, "i64")

    def reshape(self, x: Reshape) -> Registers:
        data, at, _ = self.registers(x.array)
        return (data, at, *(self.registers(n)[0] for n in x.shape))

    def length(self, x: Length) -> Registers:
        return (self.registers(x.array)[2 + x.axis],)

    def require_knowledge(self) -> None:
        """Continue if everything that varies was known before."""
        if self.changed:
            raise _Again

    def call(self, x: Call) -> Registers:
        f = self.f
        given, registers = [""], list[Register]()
        for argument in x.arguments:
            values = self.registers(argument)
            for w, r in zip(lane_words(argument.type), values, strict=True):
                given.append(f"{self.type(w, r.varies)} {r.text}")
                registers.append(r)
        self.require_knowledge()
        by_all = self.by_all and not self.lanes_end and not any(varies for _, varies in self.blocks)
        function = self.module.function(x.function, tuple(r.varies for r in registers), by_all)
        given[0] = f"{self.vector('i1')} {self.live}"
        kinds = [self.type(w, v) for w, v in zip(lane_words(x.type), function.varies, strict=True)]
        value = f.call(bundle(kinds), f"@{function.name}", *given)
        if len(kinds) < 2:
            return tuple(Register(value, v) for v in function.varies)
        members = [f.value(f"extractvalue {bundle(kinds)} {value}, {k}") for k in range(len(kinds))]
        return tuple(Register(x, v) for x, v in zip(members, function.varies, strict=True))

    def special(self, x: Special) -> Registers:
        return SPECIAL[x.name](self, x, [self.registers(a) for a in x.arguments])


def write_machine_call(w: LaneWriter, x: Special, arguments: list[Registers]) -> Registers:
    """Write `call_machine`: `int f(double **arguments, mask *lanes)` at a nonzero address."""
    f = w.f
    (address,), (pointers, *_) = arguments
    there, after = f.fresh("there"), f.fresh("after")
    f.branch(f.equal(address.text, 0), after, there)
    f.label(there)
    mask = w.mask_slot()
    f.store(w.vector("i1"), w.live, mask)
    f.call("i32", f.cast("inttoptr", "i64", address.text, "ptr"), f"ptr {pointers.text}", f"ptr {mask}")
    f.jump(after)
    f.label(after)
    return ()


def write_multiples(w: LaneWriter, x: Special, arguments: list[Registers]) -> Registers:
    """Write `subtract_multiples`."""
    type = x.arguments[0].type
    assert isinstance(type, ArrayType)
    (data, at, _), (target,), (source,), (stride,), (length,), *factors = arguments
    with w.each(length) as j:
        place = w.added(w.added(at, target), j)
        total, start = Register(real(0.0)) if x.name == "write_multiples" else w.get(type, data, place), w.added(at, source)
        for (factor,) in factors:
            total = w.less_product(total, factor, w.get(type, data, w.added(start, j)))
            start = w.added(start, stride)
        w.put(type, data, place, total)
    return ()


def write_product(w: LaneWriter, x: Special, arguments: list[Registers]) -> Registers:
    """Write `subtract_product`."""
    type = x.arguments[0].type
    assert isinstance(type, ArrayType)
    (data, start, _), *numbers = arguments
    (target,), (stride,), (source,), (step,), (at,), (across,), (along,), (rows,), (length,), (count,) = numbers
    with w.each(rows) as i:
        row, factors = w.added(start, w.added(target, w.times(i, stride))), w.added(start, w.added(at, w.times(i, across)))
        if x.name == "write_product":
            with w.each(length) as j:
                w.put(type, data, w.added(row, j), Register(real(0.0)))
        with w.each(count) as k:
            factor = w.get(type, data, w.added(factors, w.times(k, along)))
            begin = w.added(start, w.added(source, w.times(k, step)))
            with w.each(length) as j:
                old, new = w.get(type, data, w.added(row, j)), w.get(type, data, w.added(begin, j))
                w.put(type, data, w.added(row, j), w.less_product(old, factor, new))
    return ()


def write_products(w: LaneWriter, x: Special, arguments: list[Registers]) -> Registers:
    """Write `sum_of_products`, with as many partial sums as for one robot."""
    f, kind = w.f, w.vector("double")
    first_type, second_type = (a.type for a in x.arguments[:2] if is_array(a))
    (a, a_at, _), (b, b_at, _), (at,), (begin,), (length,) = arguments
    slots = []
    for _ in range(LANES):
        name = f"%{f.fresh('sum')}"
        w.mask_slots.append(f"  {name} = alloca {kind}, align 64")
        f.store(kind, "zeroinitializer", name)
        slots.append(name)
    first, second = w.added(a_at, at), w.added(b_at, begin)
    with w.each(length, LANES) as j:
        bits = w.bits(w.live) if length.varies else ""
        for k, slot in enumerate(slots):
            index = w.added(j, Register(str(k)))
            left, right = w.get(first_type, a, w.added(first, index)), w.get(second_type, b, w.added(second, index))
            old = Register(f.load(kind, slot), True)
            if w.module.fused:
                total = w.intrinsic("fma", left, right, old)
            else:
                total = w.binary("fadd", "double", old, w.binary("fmul", "double", left, right))
            f.store(kind, w.blended(bits, total.text, old.text, "double") if bits else total.text, slot)
    sums = [Register(f.load(kind, slot), True) for slot in slots]
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [w.binary("fadd", "double", x, y) for x, y in zip(sums[:half], sums[half:], strict=True)]
    return (sums[0],)


SPECIAL: dict[str, Callable[[LaneWriter, Special, list[Registers]], Registers]] = {
    "call_machine": write_machine_call, "subtract_multiples": write_multiples,
    "write_multiples": write_multiples,
    "subtract_product": write_product, "write_product": write_product, "sum_of_products": write_products,
    "lane": lambda w, *_: (Register(w.numbers, True),),
}  # fmt: skip
W = LaneWriter
STATEMENTS: dict[type, Callable[[LaneWriter, Any], None]] = {
    Assign: W.assign, Do: W.do, If: W.choose,
    For: W.loop_for, While: W.loop_while, Rounds: W.rounds, Break: W.leave, Continue: W.go_on,
    Return: W.give, Store: W.store, Fill: W.fill, CopyArray: W.copy,
}  # fmt: skip
EXPRESSIONS: dict[type, Callable[[LaneWriter, Any], Registers]] = {
    Constant: W.constant, Static: W.static, Read: W.read, MakeTuple: W.make_tuple, TupleItem: W.item, Pick: W.pick,
    Field: W.field,
    Binary: W.operation, Fused: W.fused, Negative: W.negative, Not: W.opposite, Compare: W.compare, Convert: W.convert,
    Numeric: W.numeric, Load: W.load, ArrayView: W.view, Slice: W.slice, Reshape: W.reshape,
    Length: W.length, Call: W.call, Special: W.special,
}  # fmt: skip


def write_lanes(plan: Plan, lanes: int, fused: bool, fma: bool, name: str) -> str:
    """Return a module with `i64 name(i64 ...)`, a kernel of tables and whole numbers in `lanes` lanes.

    The function returns the sum of the lanes' results.
    """
    module, p = LaneModule(lanes, fused), plan.functions[-1]
    kernel = module.function(p, (False,) * len(p.parameters), True)
    f = Function("i64", name, [f"i64 %x{k}" for k in range(len(p.parameters))], "external", ATTRIBUTES)
    given = [f"<{lanes} x i64> {ALL_BITS}", *table_arguments(f, p)]
    kind = f"<{lanes} x i64>" if kernel.varies[0] else "i64"
    value = f.call(kind, f"@{kernel.name}", *given)
    if kernel.varies[0]:
        reduce = f"@llvm.vector.reduce.add.v{lanes}i64"
        f.declarations[f"declare i64 {reduce}({kind})"] = None
        value = f.call("i64", reduce, f"{kind} {value}")
    f.ret("i64", value)
    functions = [*module.written, f]
    texts, declarations = [str(x) for x in functions], {d: None for x in functions for d in x.declarations}
    for width in sorted(module.sincos):
        made = sincos_ir("double", width, fma)
        declarations |= dict.fromkeys(made.declarations)
        texts.append(made.definition)
    return "\n".join([*declarations, *texts, "!0 = !{}"])
