"""A plan's expressions as LLVM IR, for kernels of one robot and of several robots in vector lanes.

A value is a tuple of registers: one for a number, address and lengths of an array, the registers of all items of a tuple, or
the address of a table. A register is *uniform*, one number for all lanes, or *varying*, a vector with a number for each lane.
Without lanes, all registers are uniform.

Variables that are set once, before any use, are registers. All others are on the stack, and LLVM moves them to registers.
`loop_writer` adds the control flow and memory of one robot, `lane_writer` those of lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..backends.llvm.ir import Function
from ..backends.llvm.ir import Type as MachineType
from ..backends.llvm.trig import sincos_name
from . import plan as nodes
from .kernel_sources import CONVERSION, COPY, DIVISION, INDEX, RANGE, SHAPE, KernelError
from .kernel_types import BOOL, FLOAT, INT, ArrayType, Number, TableListType, TableType, TupleType, Type
from .variable_scopes import scopes_of

REAL = MachineType("double", 1)
WORDS = {BOOL: "i1", INT: "i64", FLOAT: "double"}
ITEMS = {
    "float64": "double", "float32": "float", "int64": "i64", "uint64": "i64", "int32": "i32", "uint32": "i32", "int16": "i16",
    "uint16": "i16", "int8": "i8", "uint8": "i8", "bool": "i8",
}  # fmt: skip
BYTES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i16": 2, "i8": 1}
INSTRUCTIONS = {
    INT: {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "ashr"},
    BOOL: {"&": "and", "|": "or", "^": "xor"},
    FLOAT: {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"},
}
TESTS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
ATTRIBUTES = "nounwind"  # attributes of all functions
ALL_BITS = "splat (i64 -1)"  # the mask of all lanes


class Varying(str):
    """The text of a register with a number for each lane; truth values have 64 equal bits per lane."""

    __slots__ = ()


Registers = tuple[str, ...]


class Slot(NamedTuple):
    """Memory of one word of a variable."""

    address: str
    word: str
    varies: bool


def words_of(type: Type, place: Sequence[str] = ("ptr",)) -> list[str]:
    """Return the machine types of a value's registers; `place` are those of an array before its lengths."""
    if isinstance(type, Number):
        return [WORDS[type]]
    if isinstance(type, ArrayType):
        return [*place, *["i64"] * type.axes]
    if isinstance(type, TupleType):
        return [w for x in type.items for w in words_of(x, place)]
    return ["ptr"] if isinstance(type, TableType | TableListType) else []


def bundle(words: Sequence[str]) -> str:
    """Return the machine type for several words, as a function returns them."""
    return words[0] if len(words) == 1 else f"{{ {', '.join(words)} }}" if words else "void"


def members(f: Function, words: Sequence[str], value: str) -> list[str]:
    """Return the words of a function's result."""
    if len(words) < 2:
        return [value] * len(words)
    return [f.value(f"extractvalue {bundle(words)} {value}, {k}") for k in range(len(words))]


def write_return(f: Function, words: Sequence[str], registers: Sequence[str]) -> None:
    """Return some words."""
    value = registers[0] if registers else ""
    if len(registers) > 1:
        value = "poison"
        for k, (w, r) in enumerate(zip(words, registers, strict=True)):
            value = f.value(f"insertvalue {bundle(words)} {value}, {w} {r}, {k}")
    f.ret(bundle(words), value) if registers else f.ret()


def name_of_test(operator: str, type: Number) -> str:
    """Return LLVM's name of a comparison."""
    test = TESTS[operator]
    if type == FLOAT:
        return f"fcmp {'u' if test == 'ne' else 'o'}{test}"
    return f"icmp {test if operator in ('==', '!=') else 's' + test}"


def real(x: float) -> str:
    return REAL.constant(x)


def is_number(register: str) -> bool:
    """Return whether a register is a known whole number."""
    return register.lstrip("-").isdigit()


def vary(*registers: str) -> bool:
    """Return whether any of some registers varies."""
    return any(isinstance(r, Varying) for r in registers)


class KernelWriter:
    """Writes the expressions of one function, and the statements that need no control flow of their own."""

    place: tuple[str, ...] = ("ptr",)  # machine types of an array's registers before its lengths
    specials: Mapping[str, Callable[[Any, nodes.Special, list[Registers]], Registers]]  # writers of special functions
    lanes = 1
    checked = False

    def __init__(self, plan: nodes.FunctionPlan, fused: bool, sincos: set[int]) -> None:
        self.plan, self.fuses = plan, fused
        self.sincos = sincos  # widths of sines and cosines that the module needs
        self.scopes = scopes_of(plan)
        self.varying: set[tuple[int, int]] = set()  # words that vary: (variable, word)

    def begin(self, f: Function) -> None:
        """Begin to write the function."""
        self.f = f
        self.values: dict[int, Registers] = {}  # of variables that do not need slots
        self.slots: dict[int, list[Slot]] = {}
        self._memory, self._first = list[str](), f.reserve()

    def end(self) -> None:
        self.f.fill_in(self._first, self._memory)

    def memory(self, kind: str, count: int = 1) -> str:
        """Return memory on the stack, which LLVM requires in the first block."""
        address = f"%{self.f.fresh('slot')}"
        self._memory.append(f"  {address} = alloca {kind}, i64 {count}, align {8 if self.lanes == 1 else 64}")
        return address

    def words_of(self, type: Type) -> list[str]:
        return words_of(type, self.place)

    # what differs

    def call(self, x: nodes.Call) -> Registers:
        raise NotImplementedError

    def fetched(self, type: ArrayType, place: Registers) -> str:
        """Return the number at a place in its memory format."""
        raise NotImplementedError

    def put(self, type: ArrayType, place: Registers, values: Registers) -> None:
        """Write an element to a place."""
        raise NotImplementedError

    def moved(self, type: ArrayType, array: Registers, count: str) -> Registers:
        """Return the place of the element of an array after `count` others: the registers of an array before its lengths."""
        raise NotImplementedError

    def require(self, condition: str, what: int, where: int, *values: str) -> None:
        """End a checked kernel unless a condition holds."""
        raise NotImplementedError

    def allocate(self, x: nodes.Allocate) -> Registers:
        raise KernelError(f"{self.plan.name}: a loop over tables cannot make lists; pass it arrays as workspace")

    def passed_lanes(self) -> list[str]:
        """Return arguments of machine code that tell the active lanes."""
        return []

    # lanes

    def vector(self, word: str) -> str:
        """Return the machine type of a varying word."""
        return f"<{self.lanes} x {'i64' if word == 'i1' else word}>"

    def type(self, word: str, varies: bool) -> str:
        return self.vector(word) if varies else word

    def value(self, text: str, varies: bool) -> str:
        """Write an instruction and return its register."""
        made = self.f.value(text)
        return Varying(made) if varies else made

    def spread(self, x: str, word: str) -> str:
        """Broadcast a word to all lanes."""
        if isinstance(x, Varying):
            return x
        if word == "i1":
            if x in ("true", "false"):
                return ALL_BITS if x == "true" else "zeroinitializer"
            return self.spread(self.f.cast("sext", "i1", x, "i64"), "i64")
        if not x.startswith("%"):
            return "zeroinitializer" if x in ("0", "null") else f"splat ({word} {x})"
        kind = self.vector(word)
        one = self.f.value(f"insertelement {kind} poison, {word} {x}, i64 0")
        return self.f.value(f"shufflevector {kind} {one}, {kind} poison, <{self.lanes} x i32> zeroinitializer")

    def bits(self, mask: str) -> str:
        """Return a mask as a vector of bits."""
        return self.f.value(f"icmp slt {self.vector('i1')} {mask}, zeroinitializer")

    def mask(self, bits: str) -> str:
        return self.value(f"sext <{self.lanes} x i1> {bits} to {self.vector('i1')}", True)

    def blended(self, bits: str, yes: str, no: str, word: str) -> str:
        return self.f.select(bits, yes, no, self.vector(word), f"<{self.lanes} x i1>")

    # arithmetic of registers

    def binary(self, instruction: str, word: str, a: str, b: str) -> str:
        """Write an instruction on two words; their type is that of the result."""
        if not vary(a, b):
            return self.f.binary(instruction, word, a, b)
        return Varying(self.f.binary(instruction, self.vector(word), self.spread(a, word), self.spread(b, word)))

    def compared(self, test: str, word: str, a: str, b: str) -> str:
        """Write a comparison by LLVM's name."""
        if not vary(a, b):
            return self.f.binary(test, word, a, b)
        kind = "i64" if word == "i1" else word
        return self.mask(self.f.binary(test, self.vector(kind), self.spread(a, word), self.spread(b, word)))

    def select(self, condition: str, yes: str, no: str, word: str = "i64") -> str:
        if yes == no:
            return yes
        if vary(condition):
            return Varying(self.blended(self.bits(condition), self.spread(yes, word), self.spread(no, word), word))
        if not vary(yes, no):
            return self.f.select(condition, yes, no, word)
        return Varying(self.f.select(condition, self.spread(yes, word), self.spread(no, word), self.vector(word)))

    def intrinsic(self, name: str, *arguments: str) -> str:
        """Call one of LLVM's functions of floats."""
        if not vary(*arguments):
            return self.f.intrinsic(name, REAL, *arguments)
        values = (self.spread(a, "double") for a in arguments)
        return Varying(self.f.intrinsic(name, MachineType("double", self.lanes), *values))

    def cast(self, instruction: str, word: str, a: str, to: str) -> str:
        varies = vary(a)
        return self.value(f"{instruction} {self.type(word, varies)} {a} to {self.type(to, varies)}", varies)

    def negated(self, a: str) -> str:
        return self.value(f"fneg {self.type('double', vary(a))} {a}", vary(a))

    def negation(self, a: str) -> str:
        return self.binary("xor", "i1", a, "true")

    def less_product(self, total: str, a: str, b: str) -> str:
        """Return total - a b, rounded once if products are fused."""
        if self.fuses:
            return self.intrinsic("fma", self.negated(a), b, total)
        return self.binary("fsub", "double", total, self.binary("fmul", "double", a, b))

    def added(self, a: str, b: str) -> str:
        if "0" in (a, b):
            return b if a == "0" else a
        return self.binary("add", "i64", a, b)

    def times(self, a: str, b: str) -> str:
        """Return the product of two counts of elements, which have 32 bits: processors lack products of 64-bit vectors."""
        if "0" in (a, b):
            return "0"
        if "1" in (a, b):
            return b if a == "1" else a
        if vary(a, b):
            a, b = (self.binary("and", "i64", x, "4294967295") for x in (a, b))
        return self.binary("mul", "i64", a, b)

    def product(self, numbers: Sequence[str]) -> str:
        result = "1"
        for n in numbers:
            result = self.times(result, n)
        return result

    def less(self, a: str, b: str) -> str:
        return self.compared("icmp slt", "i64", a, b)

    def least(self, a: str, b: str) -> str:
        return self.select(self.less(a, b), a, b)

    # variables

    def slots_of(self, v: nodes.Variable[Type]) -> list[Slot]:
        """Return the memory of a variable's words."""
        if v.number not in self.slots:
            varies = [(word, (v.number, k) in self.varying) for k, word in enumerate(self.words_of(v.type))]
            self.slots[v.number] = [Slot(self.memory(self.type(word, wide)), word, wide) for word, wide in varies]
        return self.slots[v.number]

    def set(self, v: nodes.Variable[Type], values: Registers) -> None:
        """Set a variable."""
        if v.number in self.scopes.final:
            self.values[v.number] = values
        else:
            self.set_slots(v, values)

    def set_slots(self, v: nodes.Variable[Type], values: Registers) -> None:
        for slot, x in zip(self.slots_of(v), values, strict=True):
            self.f.store(slot.word, x, slot.address)

    def words(self, v: nodes.Variable[Type], begin: int, end: int) -> Registers:
        """Return some words of a variable."""
        if v.number in self.values:
            return self.values[v.number][begin:end]
        return tuple(
            self.value(f"load {self.type(slot.word, slot.varies)}, ptr {slot.address}", (v.number, k) in self.varying)
            for k, slot in enumerate(self.slots_of(v)[begin:end], begin)
        )

    # statements

    def block(self, statements: list[nodes.Statement], varies: bool = False) -> None:
        """Write statements; `varies` says whether active lanes of the surrounding block may be inactive here."""
        for s in statements:
            self.statement(s)
            if isinstance(s, (nodes.Return, nodes.Break, nodes.Continue)):
                break

    def statement(self, s: nodes.Statement) -> None:
        getattr(self, STATEMENTS[type(s)])(s)

    def assign(self, s: nodes.Assign) -> None:
        self.set(s.variable, self.registers(s.value))

    def do(self, s: nodes.Do) -> None:
        self.registers(s.value)

    def branch(self, s: nodes.If) -> None:
        (condition,) = self.registers(s.test)
        self.branch_on(condition, s)

    def branch_on(self, condition: str, s: nodes.If) -> None:
        """Write both branches of a uniform condition."""
        f = self.f
        then, otherwise, after = f.fresh("then"), f.fresh("else"), f.fresh("after")
        f.branch(condition, then, otherwise if s.otherwise else after)
        for label, statements in ((then, s.then), (otherwise, s.otherwise)):
            if statements or label == then:
                f.label(label)
                self.block(statements)
                f.jump(after)
        f.label(after)

    def store(self, s: nodes.Store) -> None:
        values = self.registers(s.value)
        self.put(s.array.type, self.element(s.array, s.indices, s.where), values)

    def fill(self, s: nodes.Fill) -> None:
        array, values = self.registers(s.array), self.registers(s.value)
        self.fill_with(s.array.type, array, self.product(self.shape(array)), values)

    def fill_with(self, type: ArrayType, array: Registers, size: str, values: Registers) -> None:
        with self.each(size) as i:
            self.put(type, self.moved(type, array, i), values)

    def copy(self, s: nodes.CopyArray) -> None:
        array, source = self.registers(s.array), self.registers(s.source)
        if self.checked:
            for n, m in zip(self.shape(array), self.shape(source), strict=True):
                self.require(self.f.equal(n, m), COPY, s.where, m, n)
        with self.each(self.product(self.shape(array))) as i:
            values = self.get(s.source.type, self.moved(s.source.type, source, i))
            self.put(s.array.type, self.moved(s.array.type, array, i), values)

    @contextmanager
    def each(self, count: str, step: int = 1) -> Iterator[str]:
        """Write a loop over indices below a count."""
        with self.f.loop(count, step=step) as i:
            yield i

    # expressions

    def registers(self, x: nodes.Value) -> Registers:
        found: Registers = getattr(self, EXPRESSIONS[type(x)])(x)
        return found

    def constant(self, x: nodes.Constant) -> Registers:
        if x.type == FLOAT:
            return (real(x.value),)
        return (("true" if x.value else "false") if x.type == BOOL else str(int(x.value)),)

    def static(self, x: nodes.Static) -> Registers:
        return ()

    def read(self, x: nodes.Read[Type]) -> Registers:
        return self.words(x.variable, 0, len(self.words_of(x.variable.type)))

    def make_tuple(self, x: nodes.MakeTuple) -> Registers:
        return tuple(r for item in x.items for r in self.registers(item))

    def item(self, x: nodes.TupleItem) -> Registers:
        begin, count = 0, len(self.words_of(x.type))
        whole: nodes.Value = x
        while isinstance(whole, nodes.TupleItem):
            begin += sum(len(self.words_of(t)) for t in whole.whole.type.items[: whole.number])
            whole = whole.whole
        if isinstance(whole, nodes.Read):
            return self.words(whole.variable, begin, begin + count)
        return self.registers(whole)[begin : begin + count]

    def pick(self, x: nodes.Pick) -> Registers:
        """Select by a chain of selections, because items are few."""
        items = [self.registers(item) for item in x.items]
        (index,) = self.registers(x.at)
        self.require_index(index, str(len(items)), x.where)
        chosen, words = items[0], self.words_of(x.type)
        for k, item in enumerate(items[1:], 1):
            c = self.compared("icmp eq", "i64", index, str(k))
            chosen = tuple(self.select(c, b, a, w) for a, b, w in zip(chosen, item, words, strict=True))
        return chosen

    def field(self, x: nodes.Field) -> Registers:
        f = self.f
        (table,) = self.registers(x.table)
        if vary(table):
            raise KernelError(f"{self.plan.name}: different lanes use different tables")

        def word(kind: str, k: int) -> str:
            return f.value(f"load {kind}, ptr {f.at('i64', table, k)}, align 8, !invariant.load !0")

        if isinstance(x.type, TableType | TableListType):
            return (f.at("i64", table, x.word),)
        if isinstance(x.type, ArrayType):
            offset = ["0"] * (len(self.place) - 1)
            return (word("ptr", x.word), *offset, *(word("i64", x.word + 1 + k) for k in range(x.type.axes)))
        if x.type == BOOL:
            return (f.cast("trunc", "i64", word("i64", x.word), "i1"),)
        return (word(WORDS[x.type], x.word),)  # type: ignore[index]

    def table_item(self, x: nodes.TableItem) -> Registers:
        (tables,), (index,) = self.registers(x.tables), self.registers(x.at)
        if vary(tables) or vary(index):
            raise KernelError(f"{self.plan.name}: different lanes use different tables")
        self.require_index(index, str(x.tables.type.length), x.where)
        return (self.f.at("i64", tables, self.f.mul(index, x.type.layout.words)),)

    def operation(self, x: nodes.Binary) -> Registers:
        (a,), (b,) = self.registers(x.left), self.registers(x.right)
        if x.operator in ("//", "%"):
            if self.checked and not is_number(b):
                self.require(self.compared("icmp ne", "i64", b, "0"), DIVISION, x.where, a)
            return (self.divided(x.operator, a, b),)
        if x.operator in ("<<", ">>"):
            b = self.binary("and", "i64", b, "63")
        return (self.binary(INSTRUCTIONS[x.type][x.operator], WORDS[x.type], a, b),)

    def divided(self, operator: str, a: str, b: str) -> str:
        """Write Python's division of whole numbers: rounded down, with a remainder of the divisor's sign."""
        if is_number(b) and int(b) > 0:
            rest, quotient = self.binary("srem", "i64", a, b), self.binary("sdiv", "i64", a, b)
            apart = self.less(rest, "0")
        else:  # divisors 0 and -1, for which processors may trap, are special; inactive lanes may have any number
            special = self.compared("icmp ult", "i64", self.binary("add", "i64", b, "1"), "2")
            quotient = self.binary("sdiv", "i64", a, self.select(special, "1", b))
            quotient = self.select(self.compared("icmp eq", "i64", b, "-1"), self.binary("sub", "i64", "0", a), quotient)
            rest = self.binary("sub", "i64", a, self.binary("mul", "i64", quotient, b))
            unlike = self.less(self.binary("xor", "i64", rest, b), "0")
            apart = self.binary("and", "i1", self.compared("icmp ne", "i64", rest, "0"), unlike)
        if operator == "%":
            return self.binary("add", "i64", rest, self.select(apart, b, "0"))
        return self.binary("sub", "i64", quotient, self.select(apart, "1", "0"))

    def fused(self, x: nodes.Fused) -> Registers:
        if x.product_first:
            (a,), (b,), (c,) = self.registers(x.left), self.registers(x.right), self.registers(x.more)
        else:
            (c,), (a,), (b,) = self.registers(x.more), self.registers(x.left), self.registers(x.right)
        return (self.intrinsic("fma", self.negated(a) if x.minus_product else a, b, self.negated(c) if x.minus_more else c),)

    def negative(self, x: nodes.Negative) -> Registers:
        (a,) = self.registers(x.value)
        return (self.negated(a) if x.type == FLOAT else self.binary("sub", "i64", "0", a),)

    def opposite(self, x: nodes.Not) -> Registers:
        return (self.negation(self.registers(x.value)[0]),)

    def compare(self, x: nodes.Compare) -> Registers:
        (a,), (b,) = self.registers(x.left), self.registers(x.right)
        return (self.compared(name_of_test(x.operator, x.left.type), WORDS[x.left.type], a, b),)

    def convert(self, x: nodes.Convert) -> Registers:
        f, old = self.f, x.value.type
        (a,) = self.registers(x.value)
        if x.type == BOOL:
            zero = real(0.0) if old == FLOAT else "0"
            return (self.compared("fcmp une" if old == FLOAT else "icmp ne", WORDS[old], a, zero),)
        if old == BOOL:
            one, zero = ("1", "0") if x.type == INT else (real(1.0), real(0.0))
            return (self.select(a, one, zero, WORDS[x.type]),)
        if x.type == FLOAT:
            return (self.cast("sitofp", "i64", a, "double"),)
        if self.checked:
            fits = self.compared("fcmp olt", "double", self.intrinsic("fabs", a), real(2.0**63))
            self.require(fits, CONVERSION, x.where, f.cast("bitcast", "double", a, "i64"))
        source, target = (MachineType(k, self.lanes if vary(a) else 1) for k in ("double", "i64"))
        name = f"@llvm.fptosi.sat.{target.mangled}.{source.mangled}"  # an arbitrary number if the float does not fit
        f.declarations[f"declare {target.ir} {name}({source.ir})"] = None
        return (self.value(f"call {target.ir} {name}({source.ir} {a})", vary(a)),)

    def numeric(self, x: nodes.Numeric) -> Registers:
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
            return (self.select(self.compared("fcmp uno", word, b, real(0.0)), b, chosen, word),)
        if name == "abs" and x.type == INT:
            return (self.select(self.less(a, "0"), self.binary("sub", word, "0", a), a),)
        if name == "isfinite":
            return (self.compared("fcmp olt", "double", self.intrinsic("fabs", a), real(math.inf)),)
        if name in ("sin", "cos"):
            machine = MachineType("double", self.lanes if vary(a) else 1)
            self.sincos.add(machine.lanes)
            pair = f"{{ {machine.ir}, {machine.ir} }}"
            both = self.f.call(pair, f"@{sincos_name(machine)}", f"{machine.ir} {a}")
            return (self.value(f"extractvalue {pair} {both}, {int(name == 'cos')}", vary(a)),)
        return (self.intrinsic({"abs": "fabs"}.get(name, name), a),)

    # arrays

    def shape(self, array: Registers) -> Registers:
        return array[len(self.place) :]

    def require_index(self, k: str, n: str, where: int) -> None:
        if self.checked:
            self.require(self.compared("icmp ult", "i64", k, n), INDEX, where, k, n)

    def leading(self, shape: Registers, indices: Sequence[nodes.Value], where: int) -> list[str]:
        """Return the registers of leading indices."""
        places = [self.registers(i)[0] for i in indices]
        for k, n in zip(places, shape, strict=False):
            self.require_index(k, n, where)
        return places

    def offset(self, shape: Registers, places: Sequence[str]) -> str:
        """Return the count of elements of the remaining axes before leading indices."""
        result = places[0]
        for n, k in zip(shape[1:], places[1:], strict=False):
            result = self.added(self.times(result, n), k)
        return result

    def element(self, x: nodes.ArrayValue, indices: Sequence[nodes.Value], where: int) -> Registers:
        """Return the place of an element."""
        array = self.registers(x)
        shape = self.shape(array)
        return self.moved(x.type, array, self.offset(shape, self.leading(shape, indices, where)))

    def get(self, type: ArrayType, place: Registers) -> Registers:
        """Return the element at a place."""
        kind, dtype = ITEMS[type.dtype], type.dtype
        x = self.fetched(type, place)
        if dtype == "bool" and vary(x):
            return (self.mask(self.f.value(f"icmp ne <{self.lanes} x i8> {x}, zeroinitializer")),)
        if dtype == "bool":
            return (self.f.cast("trunc", "i8", x, "i1"),)
        if kind == "float":
            return (self.cast("fpext", kind, x, "double"),)
        if kind in ("double", "i64"):
            return (x,)
        return (self.cast("zext" if dtype.startswith("u") else "sext", kind, x, "i64"),)

    def narrowed(self, type: ArrayType, x: str) -> str:
        """Return a number in the memory format of an array."""
        kind, word, varies = ITEMS[type.dtype], WORDS[type.item], vary(x)
        if type.dtype == "bool":
            source = f"<{self.lanes} x i1> {self.bits(x)}" if varies else f"i1 {x}"
            return self.value(f"zext {source} to {self.type(kind, varies)}", varies)
        if kind in ("double", "i64"):
            return x
        return self.cast("fptrunc" if kind == "float" else "trunc", word, x, kind)

    def load(self, x: nodes.Load) -> Registers:
        return self.get(x.array.type, self.element(x.array, x.indices, x.where))

    def view(self, x: nodes.ArrayView) -> Registers:
        array = self.registers(x.array)
        shape = self.shape(array)
        places = self.leading(shape, x.indices, x.where)
        rest = shape[len(places) :]
        return (*self.moved(x.array.type, array, self.times(self.offset(shape, places), self.product(rest))), *rest)

    def slice(self, x: nodes.Slice) -> Registers:
        array = self.registers(x.array)
        first, *rest = self.shape(array)
        begin = self.registers(x.begin)[0] if x.begin is not None else "0"
        end = first
        if x.end is not None:
            (wanted,) = self.registers(x.end)
            end = self.least(wanted, first)
            if self.checked:
                self.require(self.less("-1", wanted), RANGE, x.where, begin, wanted, first)
        if self.checked:
            self.require(self.less("-1", begin), RANGE, x.where, begin, end, first)
        if begin == "0":
            return (*array[: len(self.place)], end, *rest)
        length = self.binary("sub", "i64", end, self.least(begin, end))
        return (*self.moved(x.array.type, array, self.times(begin, self.product(rest))), length, *rest)

    def reshape(self, x: nodes.Reshape) -> Registers:
        *place, length = self.registers(x.array)
        shape = [self.registers(n)[0] for n in x.shape]
        if self.checked:
            for n in shape:
                self.require(self.less("-1", n), SHAPE, x.where, *shape, length)
            self.require(self.compared("icmp ule", "i64", self.product(shape), length), SHAPE, x.where, *shape, length)
        return (*place, *shape)

    def from_end(self, x: nodes.FromEnd) -> Registers:
        (index,), (length,) = self.registers(x.at), self.registers(x.length)
        if is_number(index):
            return (index if int(index) >= 0 else self.added(length, index),)
        return (self.select(self.less(index, "0"), self.added(index, length), index),)

    def length(self, x: nodes.Length) -> Registers:
        return (self.shape(self.registers(x.array))[x.axis],)

    def special(self, x: nodes.Special) -> Registers:
        return self.specials[x.name](self, x, [self.registers(a) for a in x.arguments])

    def machine_call(self, x: nodes.Special, arguments: list[Registers]) -> Registers:
        """Write `call_machine`: `int f(double **arguments)` at a nonzero address, with the active lanes if there are lanes."""
        f = self.f
        (address,), (pointers, *_) = arguments
        there, after = f.fresh("there"), f.fresh("after")
        f.branch(f.equal(address, 0), after, there)
        f.label(there)
        f.call("i32", f.cast("inttoptr", "i64", address, "ptr"), f"ptr {pointers}", *self.passed_lanes())
        f.jump(after)
        f.label(after)
        return ()


STATEMENTS: dict[type, str] = {
    nodes.Assign: "assign", nodes.Do: "do", nodes.If: "branch", nodes.For: "loop_for", nodes.While: "loop_while",
    nodes.Rounds: "rounds", nodes.Break: "leave_loop", nodes.Continue: "end_iteration", nodes.Return: "leave_function",
    nodes.Store: "store", nodes.Fill: "fill", nodes.CopyArray: "copy",
}  # fmt: skip
"""The method that writes each kind of statement."""
EXPRESSIONS: dict[type, str] = {
    nodes.Constant: "constant", nodes.Static: "static", nodes.Read: "read", nodes.MakeTuple: "make_tuple",
    nodes.TupleItem: "item", nodes.Pick: "pick", nodes.Field: "field", nodes.TableItem: "table_item",
    nodes.Binary: "operation", nodes.Fused: "fused", nodes.Negative: "negative", nodes.Not: "opposite",
    nodes.Compare: "compare", nodes.Convert: "convert", nodes.Numeric: "numeric", nodes.Load: "load", nodes.ArrayView: "view",
    nodes.Slice: "slice", nodes.Reshape: "reshape", nodes.Allocate: "allocate", nodes.FromEnd: "from_end",
    nodes.Length: "length", nodes.Call: "call", nodes.Special: "special",
}  # fmt: skip
"""The method that writes each kind of expression."""
