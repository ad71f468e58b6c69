"""A plan as LLVM IR: functions in static single assignment form.

A value is a tuple of registers: one for a number, address and lengths of an array, the registers of all items of a tuple, or
the address of a table. Long tuples are in memory where they are arguments or variables: functions that pass them on pass an
address, and load the words that they use.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from ..backends.llvm.ir import Function
from ..backends.llvm.ir import Type as MachineType
from ..backends.llvm.python_objects import DATA, DIMS
from ..backends.llvm.trig import sincos_ir, sincos_name
from .kernel_sources import KernelError
from .kernel_types import BOOL, FLOAT, INT, ArrayType, Number, TableListType, TableType, TupleType, Type
from .plan import (
    Allocate,
    ArrayValue,
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
    FromEnd,
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
    TableItem,
    TupleItem,
    Value,
    While,
)  # fmt: skip
from .views import LANES, TILE
from .workspaces import (
    ALLOCATE,
    Mark,
    begin_workspace,
    end_workspace,
    has_failed,
    holds_arrays,
    loops_that_release,
    mark_workspace,
    nodes,
    release_workspace,
    that_allocate,
    workspace_parts,
)

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

WORKSPACE, FAILED_BLOCK = "%workspace", "no.memory"  # in functions that make lists
RESULT = "%result"  # the address of a long result
SUBTRACT, WRITE = "subtract_product", "write_product"  # functions of matrix products
ATTRIBUTES = "nounwind"  # attributes of all functions

LONG = 16  # words from which a tuple is in memory

INDEX, RANGE, SHAPE, COPY, CONVERSION, DIVISION, LENGTH = range(1, 8)  # checks of checked kernels

Registers = tuple[str, ...]
Values = dict[int, Registers]  # values of variables, by number


class Held(Registers):
    """The address of a long tuple in memory, which does not change while the variable has this value."""

    __slots__ = ()


def words_of(type: Type) -> list[str]:
    """Return the machine types of a value's registers."""
    if isinstance(type, Number):
        return [WORDS[type]]
    if isinstance(type, ArrayType):
        return ["ptr"] + ["i64"] * type.axes
    if isinstance(type, TupleType):
        return [w for x in type.items for w in words_of(x)]
    return ["ptr"] if isinstance(type, TableType | TableListType) else []


def is_long(type: Type) -> bool:
    """Return whether values of a type are in memory where they are arguments or variables."""
    return isinstance(type, TupleType) and len(words_of(type)) >= LONG


def bundle(words: Sequence[str]) -> str:
    """Return the machine type for several words, as a function returns them."""
    return words[0] if len(words) == 1 else f"{{ {', '.join(words)} }}" if words else "void"


def give_back(f: Function, words: Sequence[str], registers: Sequence[str]) -> None:
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


def element_kind(type: ArrayType) -> str:
    """Return the machine type of an array's elements in memory."""
    return f"[{len(words_of(type.dtype))} x i64]" if isinstance(type.dtype, TupleType) else ITEMS[type.dtype]


def element_bytes(type: ArrayType) -> int:
    return 8 * len(words_of(type.dtype)) if isinstance(type.dtype, TupleType) else BYTES[ITEMS[type.dtype]]


def real(x: float) -> str:
    return REAL.constant(x)


class Edge:
    """An edge to a block that is not written yet: its origin, and the values of variables."""

    def __init__(self, block: str, values: Values) -> None:
        self.block, self.values = block, values


class OpenLoop:
    """A loop that is being written: the labels where an iteration and the loop end, and the edges to them."""

    def __init__(self, following: str, done: str) -> None:
        self.following, self.done = following, done
        self.continued: list[Edge] = []
        self.left: list[Edge] = []


class FunctionWriter:
    """Writes one function of a plan."""

    def __init__(
        self,
        plan: FunctionPlan,
        names: dict[int, str],
        fused: bool,
        allocating: set[int],
        checked: bool,
        dispatcher: str = "",
        kernel: bool = False,
    ) -> None:
        self.plan, self.names, self.fused_sums, self.allocating, self.checked = plan, names, fused, allocating, checked
        self.dispatcher = dispatcher
        self.allocates = id(plan) in allocating
        self.releasing = loops_that_release(plan, allocating) if self.allocates else set()
        self.values: Values = {}
        self.words: dict[int, list[str]] = {}
        self.gives_long = is_long(plan.result) and not kernel
        arguments = [f"ptr {WORKSPACE}"] * self.allocates + ["ptr %record"] * checked
        arguments += [f"ptr noalias {RESULT}"] * self.gives_long
        self.sets = Counter(v.number for v in plan.parameters)
        self.sets.update(s.variable.number for s in nodes(plan.body) if isinstance(s, Assign))
        for v in plan.parameters:
            registers = tuple(f"%a{v.number}.{k}" for k in range(len(words_of(v.type))))
            self.values[v.number], self.words[v.number] = registers, words_of(v.type)
            if is_long(v.type) and not kernel:
                arguments.append(f"ptr noalias readonly %a{v.number}")
                self.values[v.number], self.words[v.number] = Held((f"%a{v.number}",)), ["ptr"]
            else:
                arguments += [f"{w} {r}" for w, r in zip(words_of(v.type), registers, strict=True)]
        self.result = ["i1"] * checked + ([] if self.gives_long else words_of(plan.result))
        self.f = Function(bundle(self.result), names[id(plan)], arguments, attributes=ATTRIBUTES)
        self.loops: list[OpenLoop] = []
        self.mark: Mark | None = None  # size of the workspace in use before the function
        self.ended = False  # whether the current block has its last instruction
        self.shared: dict[str, None] = {}  # what the module needs in addition to declarations
        self.slots: list[str] = []  # memory for long tuples

    def written(self) -> Function:
        begin = self.f.reserve()
        for v in self.plan.parameters:
            if is_long(v.type) and not isinstance(self.values[v.number], Held):
                self.values[v.number], self.words[v.number] = Held((self.stored(v.type, self.values[v.number]),)), ["ptr"]
        if self.allocates and not holds_arrays(self.plan.result):
            self.mark = mark_workspace(self.f, WORKSPACE)
        self.block(self.plan.body)
        self.f.fill_in(begin, self.slots)
        if not self.ended:
            self.f.line("unreachable")
        if self.allocates:  # reached without memory, here or in a called function
            self.f.label(FAILED_BLOCK)
            self.f.ret(bundle(self.result), "zeroinitializer") if self.result else self.f.ret()
        return self.f

    # blocks

    def block(self, statements: list[Statement]) -> None:
        for s in statements:
            if self.ended:
                return
            STATEMENTS[type(s)](self, s)

    def end(self, label: str) -> Edge:
        """Go to a label; return the edge."""
        edge = Edge(self.f.block, self.values)
        self.f.jump(label)
        self.ended = True
        return edge

    def begin(self, label: str, ways: list[Edge]) -> None:
        """Begin a block at the end of some edges."""
        f = self.f
        f.label(label)
        self.ended = False
        if not ways:
            f.line("unreachable")
            self.ended = True
            return
        if len(ways) == 1:
            self.values = dict(ways[0].values)
            return
        first, merged = ways[0].values, {}
        for number, registers in first.items():
            others = [w.values.get(number) for w in ways]
            if None in others:
                continue
            if all(x is registers or x == registers for x in others):
                merged[number] = registers
            else:
                words = self.words[number]
                merged[number] = type(registers)(
                    r if all(w.values[number][k] == r for w in ways)
                    else f.phi(words[k], *((w.values[number][k], w.block) for w in ways))
                    for k, r in enumerate(registers)
                )  # fmt: skip
        self.values = merged

    # statements

    def assign(self, s: Assign) -> None:
        number = s.variable.number
        if is_long(s.variable.type):
            once = self.sets[number] == 1
            stays = self.stays(s.value, once) or (once and isinstance(s.value, Call))  # otherwise it may be an argument
            address = self.in_memory(s.value) if stays else self.stored(s.variable.type, self.registers(s.value))
            self.values[number], self.words[number] = Held((address,)), ["ptr"]
        else:
            self.values[number] = self.registers(s.value)
            self.words.setdefault(number, words_of(s.variable.type))

    def do(self, s: Do) -> None:
        self.registers(s.value)

    def choose(self, s: If) -> None:
        f = self.f
        (condition,) = self.registers(s.test)
        then, otherwise, after = f.fresh("then"), f.fresh("else"), f.fresh("after")
        ways = []
        before = self.values
        f.branch(condition, then, otherwise if s.otherwise else after)
        if not s.otherwise:
            ways.append(Edge(f.block, dict(before)))
        for label, statements in ((then, s.then), (otherwise, s.otherwise)):
            if label == otherwise and not s.otherwise:
                continue
            f.label(label)
            self.values, self.ended = dict(before), False
            self.block(statements)
            if not self.ended:
                ways.append(self.end(after))
        self.begin(after, ways)

    def loop_for(self, s: For) -> None:
        """Write a loop with a test before the first iteration, and one after each."""
        f = self.f
        (begin,), (end,) = self.registers(s.begin), self.registers(s.end)
        body, following, done = f.fresh("body"), f.fresh("next"), f.fresh("done")
        loop = OpenLoop(following, done)
        test = "slt" if s.step > 0 else "sgt"
        known = is_number(begin) and is_number(end)
        if known and not (int(end) - int(begin)) * s.step > 0:
            return
        before = dict(self.values)
        mark = mark_workspace(f, WORKSPACE) if id(s) in self.releasing else None
        if known:
            f.jump(body)
        else:
            f.branch(f.value(f"icmp {test} i64 {begin}, {end}"), body, done)
            loop.left.append(Edge(f.block, before))
        entry, line, heads = self.head(body, s.body)
        if mark is not None:
            release_workspace(f, WORKSPACE, mark)
        index, after = f"%{f.fresh('i')}", f"%{f.fresh('j')}"
        self.values[s.counter.number] = (index,)
        self.words[s.counter.number] = ["i64"]
        self.loops.append(loop)
        self.block(s.body)
        self.loops.pop()
        if not self.ended:
            loop.continued.append(self.end(following))
        back: list[Edge] = []
        if loop.continued:
            self.begin(following, loop.continued)
            f.line(f"{after} = add i64 {index}, {s.step}")
            f.branch(f.value(f"icmp {test} i64 {after}, {end}"), body, done)
            back = [Edge(f.block, self.values)]
            loop.left.append(back[0])
        phi = f"  {index} = phi i64 " + ", ".join([f"[ {begin}, %{entry} ]", *(f"[ {after}, %{e.block} ]" for e in back)])
        self.close(line, heads, entry, back, [phi])
        self.begin(done, loop.left)

    def loop_while(self, s: While) -> None:
        f = self.f
        head, body, done = f.fresh("head"), f.fresh("body"), f.fresh("done")
        loop = OpenLoop(head, done)
        mark = mark_workspace(f, WORKSPACE) if id(s) in self.releasing else None
        f.jump(head)
        entry, line, heads = self.head(head, [*s.head, *s.body])
        if mark is not None:
            release_workspace(f, WORKSPACE, mark)
        self.block(s.head)
        if isinstance(s.test, Constant):
            f.jump(body)
        else:
            f.branch(self.registers(s.test)[0], body, done)
            loop.left.append(Edge(f.block, dict(self.values)))
        f.label(body)
        self.loops.append(loop)
        self.block(s.body)
        self.loops.pop()
        if not self.ended:
            loop.continued.append(self.end(head))
        self.close(line, heads, entry, loop.continued, [])
        self.begin(done, loop.left)

    def rounds(self, s: Rounds) -> None:
        f = self.f
        loop = OpenLoop("", f.fresh("done"))
        for statements in s.rounds:
            if self.ended:
                break
            loop.following, loop.continued = f.fresh("next"), []
            self.loops.append(loop)
            self.block(statements)
            self.loops.pop()
            if loop.continued:
                if not self.ended:
                    loop.continued.append(self.end(loop.following))
                self.begin(loop.following, loop.continued)
        if loop.left:
            if not self.ended:
                loop.left.append(self.end(loop.done))
            self.begin(loop.done, loop.left)

    def head(self, label: str, body: list[Statement]) -> tuple[str, int, dict[int, tuple[Registers, Registers]]]:
        """Begin a loop's first block; return its entry, the line for its phis, and the variables with phis."""
        f, entry = self.f, self.f.block
        f.label(label)
        mark = f.reserve()
        heads = {}
        for number in assigned(body):
            old = self.values.get(number)
            if old is not None:
                new = type(old)(f"%{f.fresh('h')}" for _ in old)
                heads[number] = old, new
                self.values[number] = new
        return entry, mark, heads

    def close(
        self, mark: int, heads: dict[int, tuple[Registers, Registers]], entry: str, back: list[Edge], lines: list[str]
    ) -> None:
        """Write the phis of a loop's first block."""
        for number, (old, new) in heads.items():
            for k, w in enumerate(self.words[number]):
                ways = [f"[ {old[k]}, %{entry} ]", *(f"[ {e.values[number][k]}, %{e.block} ]" for e in back)]
                lines.append(f"  {new[k]} = phi {w} " + ", ".join(ways))
        self.f.fill_in(mark, lines)

    def leave(self, s: Break) -> None:
        self.loops[-1].left.append(self.end(self.loops[-1].done))

    def go_on(self, s: Continue) -> None:
        self.loops[-1].continued.append(self.end(self.loops[-1].following))

    def give(self, s: Return) -> None:
        f = self.f
        found = self.registers(s.value)
        if self.gives_long:
            self.write(RESULT, self.plan.result, found)
            found = ()
        registers = (*["false"] * self.checked, *found)
        if self.mark is not None:
            release_workspace(f, WORKSPACE, self.mark)
        give_back(f, self.result, registers)
        self.ended = True

    # # checks of checked kernels

    def require(self, condition: str, what: int, where: int, *values: str) -> None:
        """Continue if a condition holds; otherwise leave the kernel, with the place and the values in the record."""
        f = self.f
        on, failed = f.fresh("on"), f.fresh("failed")
        f.branch(condition, on, failed, odds=(1_000_000, 1))
        f.label(failed)
        for k, x in enumerate((str(what), str(where), *values)):
            f.store("i64", x, f.at("i64", "%record", k))
        self.leave_failed()
        f.label(on)

    def leave_failed(self) -> None:
        """Return from a function of a failed kernel."""
        value = "true" if len(self.result) == 1 else f"{{ i1 true, {', '.join(f'{w} poison' for w in self.result[1:])} }}"
        self.f.ret(bundle(self.result), value)

    def require_index(self, k: str, n: str, where: int) -> None:
        if self.checked:
            self.require(self.f.binary("icmp ult", "i64", k, n), INDEX, where, k, n)

    def store(self, s: Store) -> None:
        value = self.registers(s.value)
        address = self.element(s.array, s.indices, s.where)
        self.put(s.array.type.dtype, value, address)

    def put(self, dtype: str | TupleType, registers: Registers, address: str) -> None:
        """Write a number, or the numbers of a tuple, to an address."""
        f = self.f
        if isinstance(dtype, TupleType):
            self.write(address, dtype, registers)
            return
        (value,), kind = registers, ITEMS[dtype]
        if dtype == "bool":
            value = f.cast("zext", "i1", value, "i8")
        elif kind == "float":
            value = f.cast("fptrunc", "double", value, "float")
        elif kind not in ("double", "i64"):
            value = f.cast("trunc", "i64", value, kind)
        f.store(kind, value, address)

    def get(self, dtype: str | TupleType, address: str) -> Registers:
        """Return the number, or the tuple, at an address."""
        f = self.f
        if isinstance(dtype, TupleType):
            return self.loaded(address, dtype)
        kind = ITEMS[dtype]
        value = f.load(kind, address)
        if dtype == "bool":
            return (f.cast("trunc", "i8", value, "i1"),)
        if kind == "float":
            return (f.cast("fpext", "float", value, "double"),)
        if kind in ("double", "i64"):
            return (value,)
        return (f.cast("zext" if dtype.startswith("u") else "sext", kind, value, "i64"),)

    def fill(self, s: Fill) -> None:
        data, *shape = self.registers(s.array)
        value = self.registers(s.value)
        size = self.product(shape)
        if all(x in (real(0.0), "0", "false") for x in value):
            self.f.clear_bytes(data, self.times(size, element_bytes(s.array.type)))
            return
        with self.f.loop(size) as i:
            self.put(s.array.type.dtype, value, self.f.at(element_kind(s.array.type), data, i))

    def copy(self, s: CopyArray) -> None:
        data, *shape = self.registers(s.array)
        source, *lengths = self.registers(s.source)
        if self.checked:
            for n, m in zip(shape, lengths, strict=True):
                self.require(self.f.equal(n, m), COPY, s.where, m, n)
        kind, dtype = element_kind(s.array.type), s.array.type.dtype
        with self.f.loop(self.product(shape)) as i:
            self.put(dtype, self.get(dtype, self.f.at(kind, source, i)), self.f.at(kind, data, i))

    def product(self, numbers: Sequence[str]) -> str:
        result = numbers[0]
        for n in numbers[1:]:
            result = self.times(result, n)
        return result

    def times(self, a: str, b: str | int) -> str:
        return a if b == 1 else self.f.mul(a, b)

    # expressions

    def registers(self, x: Value) -> Registers:
        return EXPRESSIONS[type(x)](self, x)

    def constant(self, x: Constant) -> Registers:
        if x.type == FLOAT:
            return (real(x.value),)
        return (("true" if x.value else "false") if x.type == BOOL else str(int(x.value)),)

    def static(self, x: Static) -> Registers:
        return ()

    def read(self, x: Read[Type]) -> Registers:
        registers = self.values[x.variable.number]
        return self.loaded(registers[0], x.type) if isinstance(registers, Held) else registers

    def make_tuple(self, x: MakeTuple) -> Registers:
        return tuple(r for item in x.items for r in self.registers(item))

    def item(self, x: TupleItem) -> Registers:
        address = self.address(x)
        if address:
            return self.loaded(address, x.type)
        whole = self.registers(x.whole)
        sizes = [len(words_of(t)) for t in x.whole.type.items]
        begin = sum(sizes[: x.number])
        return whole[begin : begin + sizes[x.number]]

    def address(self, x: Value) -> str:
        """Return the address of a variable in memory, or of an item of it; an empty text for other values."""
        if isinstance(x, Read):
            registers = self.values[x.variable.number]
            return registers[0] if isinstance(registers, Held) else ""
        if isinstance(x, TupleItem) and (whole := self.address(x.whole)):
            return self.f.at("i64", whole, sum(len(words_of(t)) for t in x.whole.type.items[: x.number]))
        return ""

    def in_memory(self, x: Value) -> str:
        """Return the address of a long tuple, which is written to memory unless it is there."""
        if isinstance(x, Call):
            address = self.slot(x.type)
            self.call_function(x, address)
            return address
        return self.address(x) or self.stored(x.type, self.registers(x))

    def stored(self, type: Type, registers: Registers) -> str:
        """Write a long tuple to memory of its own; return the address."""
        address = self.slot(type)
        self.write(address, type, registers)
        return address

    def slot(self, type: Type) -> str:
        """Return the address of memory for a long tuple, which LLVM requires in the first block."""
        address = f"%{self.f.fresh('slot')}"
        self.slots.append(f"  {address} = alloca i64, i64 {len(words_of(type))}, align 8")
        return address

    def write(self, address: str, type: Type, registers: Registers) -> None:
        """Write the words of a value to memory."""
        f = self.f
        for k, (w, r) in enumerate(zip(words_of(type), registers, strict=True)):
            f.store(*(("i64", f.cast("zext", "i1", r, "i64")) if w == "i1" else (w, r)), f.at("i64", address, k), align=8)

    def stays(self, x: Value, once: bool) -> bool:
        """Return whether the memory of a value stays as it is while a variable has this value, which is set `once` or often.

        The memory of a variable that is set once is written again when an iteration sets it again.
        """
        while isinstance(x, TupleItem):
            x = x.whole
        return isinstance(x, Read) and self.sets[x.variable.number] == 1 and (once or x.variable in self.plan.parameters)

    def loaded(self, address: str, type: Type) -> Registers:
        """Return the registers of a value in memory."""
        return tuple(loaded_words(self.f, words_of(type), address))

    def pick(self, x: Pick) -> Registers:
        """Select by a chain of selections, because items are few."""
        items = [self.registers(item) for item in x.items]
        (index,) = self.registers(x.at)
        self.require_index(index, str(len(items)), x.where)
        chosen, words = items[0], words_of(x.type)
        for k, item in enumerate(items[1:], 1):
            c = self.f.equal(index, k)
            chosen = tuple(self.f.select(c, b, a, w) if a != b else a for a, b, w in zip(chosen, item, words, strict=True))
        return chosen

    def field(self, x: Field) -> Registers:
        f = self.f
        (table,) = self.registers(x.table)

        def word(kind: str, k: int) -> str:
            return f.value(f"load {kind}, ptr {f.at('i64', table, k)}, align 8, !invariant.load !0")

        if isinstance(x.type, TableType | TableListType):
            return (f.at("i64", table, x.word),)
        if isinstance(x.type, ArrayType):
            return (word("ptr", x.word), *(word("i64", x.word + 1 + k) for k in range(x.type.axes)))
        if x.type == BOOL:
            return (f.cast("trunc", "i64", word("i64", x.word), "i1"),)
        return (word(WORDS[x.type], x.word),)  # type: ignore[index]

    def table_item(self, x: TableItem) -> Registers:
        (tables,), (index,) = self.registers(x.tables), self.registers(x.at)
        self.require_index(index, str(x.tables.type.length), x.where)
        return (self.f.at("i64", tables, self.f.mul(index, x.type.layout.words)),)

    def binary(self, x: Binary) -> Registers:
        f = self.f
        (a,), (b,) = self.registers(x.left), self.registers(x.right)
        if x.operator in ("//", "%"):
            if self.checked and not is_number(b):
                self.require(f.negation(f.equal(b, 0)), DIVISION, x.where, a)
            return (self.divided(x.operator, a, b),)
        if x.operator in ("<<", ">>"):
            b = f.binary("and", "i64", b, 63)
        return (f.binary(INSTRUCTIONS[x.type][x.operator], WORDS[x.type], a, b),)

    def divided(self, operator: str, a: str, b: str) -> str:
        """Write Python's division of whole numbers: rounded down, with a remainder of the divisor's sign."""
        f = self.f
        if is_number(b) and int(b) > 0:
            rest = f.binary("srem", "i64", a, b)
            negative = f.less(rest, 0)
            if operator == "%":
                return f.add(rest, f.select(negative, b, 0))
            return f.add(f.binary("sdiv", "i64", a, b), f.cast("sext", "i1", negative, "i64"))
        special = f.binary("icmp ult", "i64", f.add(b, 1), 2)  # divisors 0 and -1, for which processors may trap
        quotient = f.binary("sdiv", "i64", a, f.select(special, 1, b))
        quotient = f.select(f.equal(b, -1), f.sub(0, a), quotient)
        rest = f.sub(a, f.mul(quotient, b))
        apart = f.both(f.negation(f.equal(rest, 0)), f.less(f.binary("xor", "i64", rest, b), 0))
        if operator == "%":
            return f.add(rest, f.select(apart, b, 0))
        return f.sub(quotient, f.cast("zext", "i1", apart, "i64"))

    def fused(self, x: Fused) -> Registers:
        f = self.f
        if x.product_first:
            (a,), (b,), (c,) = self.registers(x.left), self.registers(x.right), self.registers(x.more)
        else:
            (c,), (a,), (b,) = self.registers(x.more), self.registers(x.left), self.registers(x.right)
        if x.minus_product:
            a = f.value(f"fneg double {a}")
        if x.minus_more:
            c = f.value(f"fneg double {c}")
        return (f.intrinsic("fma", REAL, a, b, c),)

    def negative(self, x: Negative) -> Registers:
        (a,) = self.registers(x.value)
        return (self.f.value(f"fneg double {a}") if x.type == FLOAT else self.f.sub(0, a),)

    def opposite(self, x: Not) -> Registers:
        return (self.f.negation(self.registers(x.value)[0]),)

    def compare(self, x: Compare) -> Registers:
        (a,), (b,) = self.registers(x.left), self.registers(x.right)
        return (self.compared(x.operator, x.left.type, a, b),)

    def compared(self, operator: str, type: Number, a: str, b: str) -> str:
        return self.f.binary(name_of_test(operator, type), WORDS[type], a, b)

    def convert(self, x: Convert) -> Registers:
        f, old = self.f, x.value.type
        (a,) = self.registers(x.value)
        if x.type == FLOAT:
            return (f.cast("uitofp" if old == BOOL else "sitofp", WORDS[old], a, "double"),)
        if x.type == INT:
            if self.checked and old == FLOAT:
                fits = f.value(f"fcmp olt double {f.intrinsic('fabs', REAL, a)}, {real(2.0**63)}")
                self.require(fits, CONVERSION, x.where, f.cast("bitcast", "double", a, "i64"))
            return (f.cast("zext", "i1", a, "i64") if old == BOOL else self.truncated(a),)
        return (f.value(f"fcmp une double {a}, {real(0.0)}") if old == FLOAT else f.value(f"icmp ne i64 {a}, 0"),)

    def truncated(self, a: str) -> str:
        """Return a float without its fraction; an arbitrary number if it does not fit."""
        self.f.declarations["declare i64 @llvm.fptosi.sat.i64.f64(double)"] = None
        return self.f.call("i64", "@llvm.fptosi.sat.i64.f64", f"double {a}")

    def numeric(self, x: Numeric) -> Registers:
        f, name = self.f, x.name
        a, *rest = (self.registers(y)[0] for y in x.arguments)
        if name in ("min", "max"):
            for b in rest:
                a = f.select(self.compared("<" if name == "min" else ">", x.type, b, a), b, a, WORDS[x.type])
            return (a,)
        if name in ("minimum", "maximum"):
            (b,) = rest
            test = "ult" if name == "minimum" else "ugt"
            chosen = f.select(f.value(f"fcmp {test} double {a}, {b}"), a, b, "double")  # a if a or b is NaN
            return (f.select(f.value(f"fcmp uno double {b}, {real(0.0)}"), b, chosen, "double"),)
        if name == "abs" and x.type == INT:
            return (f.select(f.less(a, 0), f.sub(0, a), a),)
        if name == "isfinite":
            return (f.value(f"fcmp olt double {f.intrinsic('fabs', REAL, a)}, {real(math.inf)}"),)
        if name in ("sin", "cos"):
            both = f.call("{ double, double }", f"@{sincos_name(REAL)}", f"double {a}")
            self.shared["sincos"] = None
            return (f.member("double", both, int(name == "cos")),)
        return (f.intrinsic({"abs": "fabs"}.get(name, name), REAL, a),)

    def places(self, shape: Sequence[str], indices: Sequence[Value], where: int) -> list[str]:
        """Return leading indices."""
        places = [self.registers(i)[0] for i in indices]
        for k, n in zip(places, shape, strict=False):
            self.require_index(k, n, where)
        return places

    def element(self, array: ArrayValue, indices: Sequence[Value], where: int) -> str:
        """Return the address of an element."""
        data, *shape = self.registers(array)
        places = self.places(shape, indices, where)
        return self.f.at(element_kind(array.type), data, self.offset(shape, places))

    def offset(self, shape: Sequence[str], places: Sequence[str]) -> str:
        """Return the count of elements of the remaining axes before leading indices."""
        result = places[0]
        for n, k in zip(shape[1:], places[1:], strict=False):
            scaled = "0" if result == "0" else self.f.mul(result, n)
            result = k if scaled == "0" else scaled if k == "0" else self.f.add(scaled, k)
        return result

    def load(self, x: Load) -> Registers:
        return self.get(x.array.type.dtype, self.element(x.array, x.indices, x.where))

    def view(self, x: ArrayView) -> Registers:
        data, *shape = self.registers(x.array)
        places = self.places(shape, x.indices, x.where)
        rest = shape[len(places) :]
        count = self.offset(shape, places)
        count = "0" if count == "0" else self.f.mul(count, self.product(rest))
        return (self.f.at(element_kind(x.array.type), data, count), *rest)

    def slice(self, x: Slice) -> Registers:
        f = self.f
        data, first, *rest = self.registers(x.array)
        begin = self.registers(x.begin)[0] if x.begin is not None else "0"
        end = first
        if x.end is not None:
            (wanted,) = self.registers(x.end)
            end = f.least(wanted, first)
            if self.checked:
                self.require(f.less(-1, wanted), RANGE, x.where, begin, wanted, first)
        if self.checked:
            self.require(f.less(-1, begin), RANGE, x.where, begin, end, first)
        if begin == "0":
            return (data, end, *rest)
        skipped = self.times(begin, self.product(rest)) if rest else begin
        return (f.at(element_kind(x.array.type), data, skipped), f.sub(end, f.least(begin, end)), *rest)

    def reshape(self, x: Reshape) -> Registers:
        data, length = self.registers(x.array)
        shape = [self.registers(n)[0] for n in x.shape]
        if self.checked:
            for n in shape:
                self.require(self.f.less(-1, n), SHAPE, x.where, *shape, length)
            self.require(self.f.binary("icmp ule", "i64", self.product(shape), length), SHAPE, x.where, *shape, length)
        return (data, *shape)

    def allocate(self, x: Allocate) -> Registers:
        f = self.f
        shape = [self.registers(n)[0] for n in x.shape]
        size = f.mul(self.product(shape), element_bytes(x.type))
        data = f.call("ptr", f"@{ALLOCATE}", f"ptr {WORKSPACE}", f"i64 {size}")
        there = f.fresh("there")
        f.branch(f.value(f"icmp eq ptr {data}, null"), FAILED_BLOCK, there)
        f.label(there)
        return (data, *shape)

    def from_end(self, x: FromEnd) -> Registers:
        (index,), (length,) = self.registers(x.at), self.registers(x.length)
        if is_number(index):
            return (index if int(index) >= 0 else self.f.add(length, index),)
        return (self.f.select(self.f.less(index, 0), self.f.add(index, length), index),)

    def length(self, x: Length) -> Registers:
        return (self.registers(x.array)[1 + x.axis],)

    def call(self, x: Call) -> Registers:
        return self.loaded(self.in_memory(x), x.type) if is_long(x.type) else self.call_function(x)

    def call_function(self, x: Call, result: str = "") -> Registers:
        """Write a call; a long result goes to the address `result`."""
        allocates = id(x.function) in self.allocating
        given = [f"ptr {WORKSPACE}"] * allocates + ["ptr %record"] * self.checked + [f"ptr {result}"] * bool(result)
        for argument in x.arguments:
            if is_long(argument.type):
                given.append(f"ptr {self.in_memory(argument)}")
            else:
                given += [f"{w} {r}" for w, r in zip(words_of(argument.type), self.registers(argument), strict=True)]
        f, words = self.f, ["i1"] * self.checked + ([] if result else words_of(x.type))
        value = f.call(bundle(words), f"@{self.names[id(x.function)]}", *given)
        if allocates:
            there = f.fresh("there")
            f.branch(has_failed(f, WORKSPACE), FAILED_BLOCK, there)
            f.label(there)
        if len(words) < 2:
            registers: Registers = (value,) if words else ()
        else:
            registers = tuple(f.value(f"extractvalue {bundle(words)} {value}, {k}") for k in range(len(words)))
        if self.checked:
            failed, on = f.fresh("failed"), f.fresh("on")
            f.branch(registers[0], failed, on, odds=(1, 1_000_000))
            f.label(failed)
            self.leave_failed()
            f.label(on)
        return registers[self.checked :]

    def special(self, x: Special) -> Registers:
        registers = [self.registers(a) for a in x.arguments]
        return SPECIAL[x.name](self, registers, x.where)


def write_machine_call(w: FunctionWriter, arguments: list[Registers], where: int) -> Registers:
    """Write `call_machine`: `int f(double **arguments)` at a nonzero address, or the dispatcher's function for this number."""
    f = w.f
    (address,), (pointers, _) = arguments
    if w.dispatcher:
        f.call("void", f"@{w.dispatcher}", f"i64 {address}", f"ptr {pointers}")
        return ()
    there, after = f.fresh("there"), f.fresh("after")
    f.branch(f.equal(address, 0), after, there)
    f.label(there)
    f.call("i32", f.cast("inttoptr", "i64", address, "ptr"), f"ptr {pointers}")
    f.jump(after)
    f.label(after)
    return ()


def write_multiples(w: FunctionWriter, arguments: list[Registers], where: int, from_zero: bool = False) -> Registers:
    """Write `subtract_multiples` with vectors: LLVM could not know that rows of one matrix do not overlap."""
    f, lanes = w.f, MachineType("double", LANES)
    (data, size), (target,), (source,), (stride,), (length,), *factors = arguments
    starts = [f.add(source, f.mul(stride, k)) for k in range(len(factors))]
    require_lanes(w, [(start, size) for start in (target, *starts)], length, where)
    spread = [f.shuffle(lanes, f.insert(lanes, "poison", x, 0), "poison", [0] * LANES) for (x,) in factors]
    with f.loop(length, step=LANES) as j:
        place = f.at("double", data, f.add(target, j))
        total = "zeroinitializer" if from_zero else f.load(lanes.ir, place, align=8)
        for start, x in zip(starts, spread, strict=True):
            row = f.load(lanes.ir, f.at("double", data, f.add(start, j)), align=8)
            total = less_product(f, lanes, total, x, row, w.fused_sums)
        f.store(lanes.ir, total, place, align=8)
    return ()


def less_product(f: Function, type: MachineType, total: str, a: str, b: str, fused: bool) -> str:
    """Return total - a b, rounded once if `fused`."""
    if fused:
        return f.intrinsic("fma", type, f.value(f"fneg {type.ir} {a}"), b, total)
    return f.binary("fsub", type.ir, total, f.binary("fmul", type.ir, a, b))


def write_product(w: FunctionWriter, arguments: list[Registers], where: int, name: str = SUBTRACT) -> Registers:
    """Write `subtract_product` as a call of a shared function."""
    f = w.f
    (data, size), *numbers = arguments
    (target,), (stride,), (source,), (step,), (at,), (across,), (along,), (rows,), (length,), (count,) = numbers
    if w.checked:
        some = f.both(f.less(0, rows), f.less(0, count))
        last, further = (f.select(some, f.sub(x, 1), 0) for x in (rows, count))
        ends = [target, f.add(target, f.mul(last, stride)), source, f.add(source, f.mul(further, step))]
        require_lanes(w, [(x, size) for x in ends], f.select(some, length, 0), where)
        for row, factor in product(("0", last), ("0", further)):
            corner = f.add(at, f.add(f.mul(row, across), f.mul(factor, along)))
            inside = f.both(f.less(-1, corner), f.less(corner, size))
            w.require(f.either(inside, f.negation(some)), INDEX, where, corner, size)
    w.shared[name] = None
    f.call("void", f"@{name}", f"ptr {data}", *(f"i64 {x}" for (x,) in numbers))
    return ()


def product_function(name: str, fused: bool) -> Function:
    """Return the function of `subtract_product`, or of the same from zero: a few rows at a time stay in registers."""
    lanes = MachineType("double", LANES)
    words = "target", "stride", "source", "step", "at", "across", "along", "rows", "length", "count"
    f = Function("void", name, ["ptr %data", *(f"i64 %{x}" for x in words)], "internal", f"noinline {ATTRIBUTES}")
    done: str | int = 0
    for tile in (TILE, 2, 1):
        tiles = f.add(done, f.mul(f.div(f.sub("%rows", done), tile), tile))
        with f.loop(tiles, begin=done, step=tile) as i:
            first, factors = f.add("%target", f.mul(i, "%stride")), f.add("%at", f.mul(i, "%across"))
            rows = [f.add(first, f.mul("%stride", t)) for t in range(tile)]
            starts = [f.add(factors, f.mul("%across", t)) for t in range(tile)]
            with f.loop("%length", step=LANES) as j:
                places = [f.at("double", "%data", f.add(row, j)) for row in rows]
                begin = ["zeroinitializer" if name == WRITE else f.load(lanes.ir, x, align=8) for x in places]
                totals = _tile(f, lanes, begin, starts, f.add("%source", j), fused)
                for x, total in zip(places, totals, strict=True):
                    f.store(lanes.ir, total, x, align=8)
        done = tiles
    f.ret()
    return f


def _tile(f: Function, lanes: MachineType, begin: list[str], factors: list[str], source: str, fused: bool) -> list[str]:
    """Subtract all source rows from some target rows in registers."""
    head, body, done = (f.fresh(name) for name in ("head", "body", "done"))
    before, k, following = f.block, f"%{f.fresh('k')}", f"%{f.fresh('n')}"
    sums, nexts = ([f"%{f.fresh(name)}" for _ in begin] for name in ("sum", "next"))
    f.jump(head)
    f.label(head)
    f.line(f"{k} = phi i64 [ 0, %{before} ], [ {following}, %{body} ]")
    for total, new, old in zip(sums, nexts, begin, strict=True):
        f.line(f"{total} = phi {lanes.ir} [ {old}, %{before} ], [ {new}, %{body} ]")
    f.branch(f.less(k, "%count"), body, done)
    f.label(body)
    row = f.load(lanes.ir, f.at("double", "%data", f.add(source, f.mul(k, "%step"))), align=8)
    for total, new, at in zip(sums, nexts, factors, strict=True):
        x = f.load("double", "%data", f.add(at, f.mul(k, "%along")))
        x = f.shuffle(lanes, f.insert(lanes, "poison", x, 0), "poison", [0] * LANES)
        made = less_product(f, lanes, total, x, row, fused)
        f.line(f"{new} = bitcast {lanes.ir} {made} to {lanes.ir}")
    f.line(f"{following} = add i64 {k}, 1")
    f.jump(head)
    f.label(done)
    return sums


def write_products(w: FunctionWriter, arguments: list[Registers], where: int) -> Registers:
    """Write `sum_of_products` with vectors: LLVM would not change the order of a sum."""
    f, lanes = w.f, MachineType("double", LANES)
    (a, size), (b, other), (at,), (begin,), (length,) = arguments
    require_lanes(w, [(at, size), (begin, other)], length, where)
    head, body, done = (f.fresh(name) for name in ("head", "body", "done"))
    following, more, before = f"%{f.fresh('j')}", f"%{f.fresh('more')}", f.block
    f.jump(head)
    f.label(head)
    j = f.phi("i64", (0, before), (following, body))
    sums = f.phi(lanes.ir, ("zeroinitializer", before), (more, body))
    f.branch(f.less(j, length), body, done)
    f.label(body)
    rows = [f.load(lanes.ir, f.at("double", data, f.add(start, j)), align=8) for data, start in ((a, at), (b, begin))]
    if w.fused_sums:
        total = f.intrinsic("fma", lanes, *rows, sums)
    else:
        total = f.binary("fadd", lanes.ir, sums, f.binary("fmul", lanes.ir, *rows))
    f.line(f"{more} = bitcast {lanes.ir} {total} to {lanes.ir}")
    f.line(f"{following} = add i64 {j}, {LANES}")
    f.jump(head)
    f.label(done)
    count = LANES
    while count > 2:
        wide, count = MachineType("double", count), count // 2
        low, high = (f.shuffle(wide, sums, "poison", range(first, first + count)) for first in (0, count))
        sums = f.binary("fadd", MachineType("double", count).ir, low, high)
    low, high = (f.value(f"extractelement <2 x double> {sums}, i64 {lane}") for lane in (0, 1))
    return (f.binary("fadd", "double", low, high),)


def require_lanes(w: FunctionWriter, starts: list[tuple[str, str]], length: str, where: int) -> None:
    """Check ranges of `length` numbers, each given by its start and the size of its array."""
    f = w.f
    if w.checked:
        for start, size in starts:
            w.require(f.less(-1, start), RANGE, where, start, f.add(start, length), size)
            w.require(f.less(f.add(start, length), f.add(size, 1)), RANGE, where, start, f.add(start, length), size)
        w.require(f.equal(f.binary("and", "i64", length, LANES - 1), 0), LENGTH, where, length)


SPECIAL: dict[str, Callable[[FunctionWriter, list[Registers], int], Registers]] = {
    "call_machine": write_machine_call, "subtract_multiples": write_multiples,
    "write_multiples": functools.partial(write_multiples, from_zero=True), "subtract_product": write_product,
    "write_product": functools.partial(write_product, name=WRITE), "sum_of_products": write_products,
}  # fmt: skip
W = FunctionWriter
STATEMENTS: dict[type, Callable[[FunctionWriter, Any], None]] = {
    Assign: W.assign, Do: W.do, If: W.choose,
    For: W.loop_for, While: W.loop_while, Rounds: W.rounds, Break: W.leave, Continue: W.go_on,
    Return: W.give, Store: W.store, Fill: W.fill, CopyArray: W.copy,
}  # fmt: skip
EXPRESSIONS: dict[type, Callable[[FunctionWriter, Any], Registers]] = {
    Constant: W.constant, Static: W.static, Read: W.read, MakeTuple: W.make_tuple, TupleItem: W.item, Pick: W.pick,
    Field: W.field, TableItem: W.table_item,
    Binary: W.binary, Fused: W.fused, Negative: W.negative, Not: W.opposite, Compare: W.compare, Convert: W.convert,
    Numeric: W.numeric, Load: W.load, ArrayView: W.view, Slice: W.slice, Reshape: W.reshape, Allocate: W.allocate,
    FromEnd: W.from_end, Length: W.length, Call: W.call, Special: W.special,
}  # fmt: skip


def is_number(register: str) -> bool:
    """Return whether a register is a known whole number."""
    return register.lstrip("-").isdigit()


def assigned(statements: list[Statement]) -> dict[int, None]:
    """Return the variables that statements set, in order."""
    found: dict[int, None] = {}
    for s in statements:
        if isinstance(s, Assign):
            found[s.variable.number] = None
        elif isinstance(s, If):
            found |= assigned(s.then) | assigned(s.otherwise)
        elif isinstance(s, For):
            found |= assigned(s.body)
        elif isinstance(s, Rounds):
            found |= assigned([x for r in s.rounds for x in r])
        elif isinstance(s, While):
            found |= assigned(s.head) | assigned(s.body)
    return found


def write_module(plan: Plan, fused: bool, fma: bool, checked: bool = False, dispatcher: str = "") -> tuple[list[str], str]:
    """Return the text of a plan's functions with everything they need, and the name of the last one, the kernel.

    Calls of machine code go to `void dispatcher(i64 number, ptr arguments)`, if it has a name, with numbers instead of
    addresses.
    """
    names = {id(p): f'"{p.name}.{k}"' for k, p in enumerate(plan.functions)}
    allocating = that_allocate(plan)
    kernel = plan.functions[-1]
    writers = [FunctionWriter(p, names, fused, allocating, checked, dispatcher, p is kernel) for p in plan.functions]
    texts: list[str] = []
    declarations: dict[str, None] = {}
    for w in writers:
        f = w.written()
        texts.append(str(f))
        declarations |= f.declarations
    if any("sincos" in w.shared for w in writers):
        made = sincos_ir("double", 1, fma)
        declarations |= dict.fromkeys(made.declarations)
        texts.append(made.definition)
    for name in sorted({SUBTRACT, WRITE} & {name for w in writers for name in w.shared}):
        shared = product_function(name, fused)
        declarations |= shared.declarations
        texts.append(str(shared))
    if allocating:
        further, functions = workspace_parts()
        declarations |= dict.fromkeys(further)
        texts += functions
    return [*declarations, *texts, "!0 = !{}"], names[id(plan.functions[-1])]


def write_entry(plan: Plan, kernel: str, name: str, objects: bool, checked: bool) -> str:
    """Return `i64 name(ptr words, ptr results, ptr record)`, with concatenated arguments as words; results go to `results`.

    With `objects`, the word of an array is the address of NumPy's object. The entry returns 1 without memory for the kernel's
    lists, otherwise 0.
    """
    p = plan.functions[-1]
    f = Function("i64", name, ["ptr %words", "ptr %results", "ptr %record"], "external", ATTRIBUTES)
    workspace = begin_workspace(f) if id(p) in that_allocate(plan) else ""
    given = [f"ptr {workspace}"] if workspace else []
    given += ["ptr %record"] * checked
    if objects:
        given += object_words(f, [v.type for v in p.parameters])
    else:
        given += argument_words(f, [w for v in p.parameters for w in words_of(v.type)], "%words")
    words = ["i1"] * checked + words_of(p.result)
    value = f.call(bundle(words), f"@{kernel}", *given)
    for k, w in enumerate(words[checked:]):
        x = value if len(words) == 1 else f.value(f"extractvalue {bundle(words)} {value}, {k + checked}")
        x, w = (f.cast("zext", "i1", x, "i64"), "i64") if w == "i1" else (x, w)
        f.store(w, x, f.at("i64", "%results", k))
    failed = f.cast("zext", "i1", has_failed(f, workspace), "i64") if workspace else "0"
    if workspace:
        end_workspace(f, workspace)
    f.ret("i64", failed)
    return str(f)


def object_words(f: Function, types: Sequence[Type]) -> list[str]:
    """Return arguments with their machine types, from words in which an array is NumPy's object."""
    given = []
    for k, type in enumerate(number_types(types)):
        if isinstance(type, ArrayType):
            array = f.load("ptr", f.at("i64", "%words", k))
            lengths = f.field("ptr", array, DIMS)
            given.append(f"ptr {f.field('ptr', array, DATA)}")
            given += [f"i64 {f.load('i64', lengths, axis)}" for axis in range(type.axes)]
        else:
            given += argument_words(f, words_of(type), f.at("i64", "%words", k))
    return given


def number_types(types: Sequence[Type]) -> Iterator[Type]:
    """Yield the types of numbers and arrays inside types."""
    for type in types:
        if isinstance(type, TupleType):
            yield from number_types(type.items)
        elif words_of(type):
            yield type


def argument_words(f: Function, kinds: Sequence[str], words: str) -> list[str]:
    """Return arguments with their machine types, from words in memory."""
    return [f"{w} {r}" for w, r in zip(kinds, loaded_words(f, kinds, words), strict=True)]


def loaded_words(f: Function, kinds: Sequence[str], words: str) -> list[str]:
    """Return the registers of values of machine types, one for each word in memory."""
    found = []
    for k, w in enumerate(kinds):
        word = f.load("i64" if w == "i1" else w, f.at("i64", words, k), align=8)
        found.append(f.cast("trunc", "i64", word, "i1") if w == "i1" else word)
    return found


def table_arguments(f: Function, kernel: FunctionPlan) -> list[str]:
    """Return the arguments of a kernel of tables and whole numbers, which are %x0, %x1, ... as whole numbers."""
    return [
        f"ptr {f.cast('inttoptr', 'i64', f'%x{k}', 'ptr')}" if isinstance(v.type, TableType) else f"i64 %x{k}"
        for k, v in enumerate(kernel.parameters)
    ]


def write_table_entry(plan: Plan, kernel: str, name: str, checked: bool) -> str:
    """Return `i64 name(i64 ...)`, whose arguments are addresses of tables, whole numbers, and the record if `checked`."""
    p = plan.functions[-1]
    if id(p) in that_allocate(plan):
        raise KernelError(f"{p.name}: a loop over tables cannot make lists; pass it arrays as workspace")
    parameters = [f"i64 %x{k}" for k in range(len(p.parameters))]
    f = Function("i64", name, [*parameters, *["ptr %record"] * checked], "external", ATTRIBUTES)
    given = [*["ptr %record"] * checked, *table_arguments(f, p)]
    words = ["i1"] * checked + ["i64"]
    value = f.call(bundle(words), f"@{kernel}", *given)
    f.ret("i64", f.value(f"extractvalue {bundle(words)} {value}, 1") if checked else value)
    return str(f)
