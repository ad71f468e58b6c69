"""C99 source of kernels with loops: the functions of a plan, with the names of their Python.

A function of Python becomes one function of C for each set of argument types. A named tuple is a struct with its fields, and so
is a table; an array is a struct of an address and lengths. Values are written where the plan evaluates them. C leaves the order
of operands open: a value before a call that writes to arrays is stored in a variable first.
"""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..engine.loops.kernel_tables import Layout, LayoutList
from ..engine.loops.kernel_types import BOOL, FLOAT, INT, ArrayType, Number, StaticType, TableType, TupleType, Type
from ..engine.loops.kernels import KernelError
from ..engine.loops.plan import (
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
    Store,
    TableItem,
    TupleItem,
    Value,
    Variable,
    While,
)
from ..engine.loops.planning_state import is_stable
from ..engine.loops.variable_scopes import scopes_of
from ..engine.loops.workspaces import nodes
from .c_names import is_free
from .header import WIDTH, comment, folded

OPERAND, UNARY, PRODUCT, SUM, ORDER, EQUALITY, BITS, AND, OR, CHOICE = range(10, 0, -1)  # how tightly operators bind
LEVELS = {"*": PRODUCT, "/": PRODUCT, "+": SUM, "-": SUM, "<": ORDER, "<=": ORDER, ">": ORDER, ">=": ORDER, "==": EQUALITY,
          "!=": EQUALITY}  # fmt: skip
NUMBERS = {BOOL: "bool", INT: "int64_t", FLOAT: "double"}
ITEMS = {
    "float64": "double", "float32": "float", "int64": "int64_t", "uint64": "uint64_t", "int32": "int32_t", "uint32": "uint32_t",
    "int16": "int16_t", "uint16": "uint16_t", "int8": "int8_t", "uint8": "uint8_t", "bool": "bool",
}  # fmt: skip
ARRAYS = {"float64": "doubles", "float32": "floats", "int64": "integers", "bool": "bools"}
FUNCTIONS = {
    "abs": "fabs", "sin": "fw_sin", "cos": "fw_cos", "sqrt": "sqrt", "floor": "fw_floor", "ceil": "fw_ceil",
    "minimum": "fw_minimum", "maximum": "fw_maximum", "isfinite": "fw_is_finite",
}  # fmt: skip
EXTREMES = {("min", FLOAT): "fw_lesser", ("max", FLOAT): "fw_greater", ("min", INT): "fw_least", ("max", INT): "fw_greatest"}


class Code(NamedTuple):
    """An expression, and how tightly its outermost operator binds."""

    text: str
    level: int = OPERAND

    def within(self, level: int) -> str:
        """Return the expression as an operand of an operator that binds so tightly."""
        return self.text if self.level >= level else f"({self.text})"


@dataclass
class ArrayCode:
    """An array: the expression of its first address, elements that are skipped there, and lengths."""

    at: str
    skipped: Code | None
    lengths: list[Code]
    whole: str = ""  # the same as a struct, if there is one


ZERO, ONE = Code("0"), Code("1")


def length_names(axes: int) -> list[str]:
    """Return the members of an array's struct that have its lengths."""
    return ["n"] if axes == 1 else [f"n{k}" for k in range(axes)]


def has_words(type: Type) -> bool:
    """Return whether values of a type exist when the program runs."""
    if isinstance(type, TupleType):
        return any(map(has_words, type.items))
    return not isinstance(type, StaticType)


@dataclass
class CNames:
    """Names at the level of the file, and the types that functions use; `avoided` are names of other variables in the file."""

    taken: set[str]
    avoided: frozenset[str] = frozenset()
    used: set[tuple[TableType, str]] = field(default_factory=set)  # fields of tables that functions read; others are left out
    tables: dict[TableType, str] = field(default_factory=dict)
    tuples: dict[tuple[Any, ...], str] = field(default_factory=dict)
    arrays: dict[ArrayType, str] = field(default_factory=dict)
    definitions: list[str] = field(default_factory=list)  # of types, in order

    def new(self, wish: str) -> str:
        """Return a name like a wish that nothing else at the level of the file has."""
        name = distinct(wish, self.taken | self.avoided)
        self.taken.add(name)
        return name

    def type(self, type: Type) -> str:
        """Return the name of a type."""
        if isinstance(type, Number):
            return NUMBERS[type]
        if isinstance(type, TableType):
            return f"const {self.table(type)} *"
        return self.array(type) if isinstance(type, ArrayType) else self.record(type)  # type: ignore[arg-type]

    def declared(self, type: Type, name: str) -> str:
        """Return the declaration of a variable."""
        return f"{self.type(type)}{name}" if isinstance(type, TableType) else f"{self.type(type)} {name}"

    def array(self, type: ArrayType) -> str:
        if type not in self.arrays:
            if type.dtype not in ITEMS or type.interleaved:
                raise KernelError(f"there is no source in C for an {type}")
            kind = ITEMS[type.dtype]
            name = self.new(f"{ARRAYS.get(type.dtype, type.dtype + 's')}{type.axes if type.axes > 1 else ''}")
            self.arrays[type] = name
            self._define(name, [f"{kind} *at", *(f"int64_t {n}" for n in length_names(type.axes))])
        return self.arrays[type]

    def members(self, type: TupleType) -> dict[int, str]:
        """Return the names of a tuple's items that have words, by their numbers."""
        names = type.kind._fields if type.kind is not None else [f"item{k}" for k in range(len(type.items))]
        return {k: distinct(names[k], ()) for k, t in enumerate(type.items) if has_words(t)}

    def record(self, type: TupleType) -> str:
        members = self.members(type)
        key = type.kind, *((name, type.items[k]) for k, name in members.items())
        if key not in self.tuples:
            declared = [self.declared(type.items[k], name) for k, name in members.items()]
            self.tuples[key] = self.new(type.kind.__name__ if type.kind is not None else "tuple")
            self._define(self.tuples[key], declared)
        return self.tuples[key]

    def table(self, type: TableType) -> str:
        if type not in self.tables:
            declared = []
            for name, inner, _ in self.fields(type):
                kept = distinct(name, ())
                if isinstance(inner, Layout):
                    declared.append(f"{self.table(TableType(inner))} {kept}")
                elif isinstance(inner, LayoutList):
                    declared.append(f"{self.table(TableType(inner.each))} {kept}[{inner.count}]")
                elif isinstance(inner, tuple):
                    declared.append(f"{self.array(ArrayType(*inner))} {kept}")
                else:
                    declared.append(f"{NUMBERS[Number(inner)]} {kept}")
            self.tables[type] = self.new(type.layout.kind.__name__)
            self._define(self.tables[type], declared or ["char unused;"])
        return self.tables[type]

    def fields(self, type: TableType) -> list[tuple[str, Any, int]]:
        """Return the fields of a table that functions read, as in its layout."""
        return [x for x in type.layout.fields if (type, x[0]) in self.used]

    def _define(self, name: str, members: Sequence[str]) -> None:
        self.definitions.append("\n".join(["typedef struct {", *(f"    {m};" for m in members), f"}} {name};", ""]))


def field_name(x: Field) -> str:
    """Return the name of a field."""
    assert isinstance(x.table.type, TableType)
    for name, inner, word in x.table.type.layout.fields:
        if word == x.word and inner is not None and not (isinstance(inner, Layout) and inner.words == 0):
            return str(name)
    raise KernelError(f"{x.table.type} has no field at {x.word}")


def used_fields(plan: Plan) -> set[tuple[TableType, str]]:
    """Return the fields of tables that a plan reads."""
    fields = {x for f in reached(plan) for x in nodes(f.body) if isinstance(x, Field)}
    return {(x.table.type, field_name(x)) for x in fields if isinstance(x.table.type, TableType)}


def distinct(wish: str, taken: Any) -> str:
    """Return a valid name like a wish that is not taken."""
    plain = re.sub(r"\W", "_", wish, flags=re.ASCII).strip("_") or "unused"
    plain = plain if plain[0].isalpha() else f"x_{plain}"
    name, count = plain, 1
    while name in taken or not is_free(name):
        count += 1
        name = f"{plain}_{count}" if is_free(plain) else f"{plain}_" if count == 2 else f"{plain}_{count}"
    return name


class LoopSource(NamedTuple):
    """The functions of a plan in C, callees first; the last one is `kernel`. `text` uses the library's functions."""

    text: str
    kernel: str


def loop_source(plan: Plan, names: CNames) -> LoopSource:
    """Return the functions of a plan. Raises KernelError for a plan that makes lists."""
    called: dict[int, str] = {}
    writing: set[int] = set()
    texts: dict[int, str] = {}
    calls: dict[int, set[int]] = {}  # of functions in the text of each function, from which calls without effect are left out
    for f in reached(plan):
        called[id(f)] = names.new(f.name)
        if _writes(f, writing):
            writing.add(id(f))
        source = FunctionSource(f, names, called, writing)
        texts[id(f)], calls[id(f)] = source.written(), source.calls
    needed = {id(plan.functions[-1])}
    for caller in reversed(list(calls)):
        needed |= calls[caller] if caller in needed else set()
    return LoopSource("\n".join(text for function, text in texts.items() if function in needed), called[id(plan.functions[-1])])


def reached(plan: Plan) -> list[FunctionPlan]:
    """Return the functions that a plan's kernel calls, callees first, and the kernel."""
    kernel = plan.functions[-1]
    found, pending = {id(kernel)}, [kernel]
    while pending:
        for x in nodes(pending.pop().body):
            if isinstance(x, Call) and id(x.function) not in found:
                found.add(id(x.function))
                pending.append(x.function)
    return [f for f in plan.functions if id(f) in found]


def _writes(f: FunctionPlan, writing: set[int]) -> bool:
    """Return whether a function changes arrays, where callees in `writing` do."""
    return any(
        isinstance(x, (Store, Fill, CopyArray, Special)) or (isinstance(x, Call) and id(x.function) in writing)
        for x in nodes(f.body)
    )


class FunctionSource:
    """Writer of one function of a plan."""

    def __init__(self, plan: FunctionPlan, names: CNames, called: dict[int, str], writing: set[int]) -> None:
        self.plan, self.names, self.called, self.writing = plan, names, called, writing
        self.scopes = scopes_of(plan)
        self.lines: list[str] = []
        self.calls: set[int] = set()  # identities of the functions that the text calls
        self.depth = 1
        self.local: set[str] = set()
        self.variables: dict[int, str] = {}  # names of variables that are declared, by number
        self.reads = _live_reads(plan, self.impure)
        self.sets = Counter(x.variable.number for x in nodes(plan.body) if isinstance(x, Assign))
        self.counted = _counted(plan)
        self.renamed = self._renamed()
        self.loops: list[_Loop] = []
        self.labels = 0
        self.temporary = -1
        self.calm = False  # whether no part of the statement changes arrays

    def written(self) -> str:
        kept = [v for v in self.plan.parameters if has_words(v.type)]
        parameters = [self.names.declared(v.type, self._name(v)) for v in kept]
        result = self.names.type(self.plan.result) if has_words(self.plan.result) else "void"
        space = "" if result.endswith("*") else " "
        body = self._without_copies()
        for v in kept:
            if not any(self.reads[n] for n, name in self.variables.items() if name == self.variables[v.number]):
                self.line(f"(void){self.variables[v.number]};")
        self.block(body, last=True)
        head = f"static {result}{space}{self.called[id(self.plan)]}({', '.join(parameters) or 'void'})"
        return "\n".join([*self._about(), folded(head), "{", *self.lines, "}", ""])

    def _renamed(self) -> dict[int, Variable[Any]]:
        """Return variables that another one copies and nothing else reads, by their numbers, with the other one."""
        parameters = {v.number for v in self.plan.parameters}
        found = {}
        for x in nodes(self.plan.body):
            if isinstance(x, Assign) and isinstance(x.value, Read):
                old, new = x.value.variable.number, x.variable.number
                final = {old, new} <= self.scopes.final and self.scopes.block[old] == self.scopes.block[new]
                if final and self.reads[old] == 1 and self._exists(x.variable) and not {old, new} & (parameters | self.counted):
                    found[old] = x.variable
        return found

    def _final(self, v: Variable[Any]) -> Variable[Any]:
        """Return the last of the variables that copy a variable."""
        while v.number in self.renamed:
            v = self.renamed[v.number]
        return v

    def _without_copies(self) -> list[Statement]:
        """Return the body without copies of parameters at its begin, whose variables become the parameters."""
        body = self.plan.body
        while (
            body and isinstance(s := body[0], Assign) and isinstance(s.value, Read) and s.value.variable in self.plan.parameters
        ):
            if self.reads[s.value.variable.number] > 1:
                break
            self.variables[self._final(s.variable).number] = self.variables[s.value.variable.number]
            self.reads[s.value.variable.number] = 0
            body = body[1:]
        self.body = body
        return body

    def _about(self) -> list[str]:
        function = self.plan.function
        if function is None:
            return []
        paragraph = re.split(r"\n\s*\n", inspect.getdoc(function) or "")[0]
        text = f"{' '.join(paragraph.split())} ({function.__module__})".strip()
        return [comment(textwrap.wrap(text, WIDTH - 10))]

    def line(self, text: str) -> None:
        self.lines.append(folded("    " * self.depth + text))

    def _name(self, v: Variable[Any]) -> str:
        """Return a new name for a variable, which is declared from here on."""
        name = distinct(v.name, self.local | self.names.taken)
        self.local.add(name)
        self.variables[v.number] = name
        return name

    # statements

    def block(self, statements: Sequence[Statement], last: bool = False) -> bool:
        """Write statements; return whether the end of the block is reached."""
        scope = id(self.plan.body) if statements is self.body else id(statements)
        for s in statements:
            self.calm = not self.impure(s)
            if not isinstance(s, Assign):
                self._declare_for(s, scope)
            if isinstance(s, Return) and last and not has_words(self.plan.result):
                return False
            self.inside = scope
            STATEMENTS[type(s)](self, s)
            if isinstance(s, (Return, Break, Continue)):
                return False
        return True

    def inner(self, statements: Sequence[Statement]) -> None:
        self.depth += 1
        self.block(statements)
        self.depth -= 1

    def _declare_for(self, s: Statement, block: int) -> None:
        """Declare variables of a block that a statement with blocks of its own sets first."""
        if not isinstance(s, (If, For, While, Rounds)):
            return
        for x in reversed([*nodes(s)]):
            if isinstance(x, Assign):
                v = x.variable
                if self.scopes.block[v.number] == block and v.number not in self.variables and self._exists(v):
                    start = {BOOL: "false", INT: "0", FLOAT: "0.0"}.get(v.type, "{0}") if isinstance(v.type, Number) else "{0}"
                    start = "0" if isinstance(v.type, TableType) else start
                    self.line(f"{self.names.declared(v.type, self._name(v))} = {start};")

    def _exists(self, v: Variable[Any]) -> bool:
        return self.reads[v.number] > 0 and has_words(v.type) and v.number not in self.counted

    def assign(self, s: Assign) -> None:
        v = self._final(s.variable)
        copied = isinstance(s.value, Read) and s.value.variable.number in self.renamed
        if copied or v.number in self.counted:
            return
        if not self._exists(v):
            if self.impure(s.value):
                code = self.value(s.value, True)
                self.line(f"(void){code.within(UNARY)};" if has_words(s.value.type) else f"{code.text};")
            return
        block, code = self.inside, self.value(s.value, True)
        if v.number in self.variables:
            self.line(f"{self.variables[v.number]} = {code.text};")
        else:
            assert self.scopes.block[v.number] == block
            constant = "const " if self.sets[v.number] == 1 and isinstance(v.type, Number) else ""
            self.line(f"{constant}{self.names.declared(v.type, self._name(v))} = {code.text};")

    def do(self, s: Do) -> None:
        if isinstance(s.value, Call) and not self.impure(s.value):
            return
        self.line(f"{self.value(s.value, True).text};")

    def if_statement(self, s: If) -> None:
        test = self.value(s.test)
        if not s.then and s.otherwise:
            self.line(f"if (!{test.within(UNARY)}) {{")
            self.inner(s.otherwise)
        else:
            self.line(f"if ({test.text}) {{")
            self.inner(s.then)
            if s.otherwise:
                self.line("} else {")
                self.inner(s.otherwise)
        self.line("}")

    def loop_for(self, s: For) -> None:
        begin, end = self.settled(s.begin, s.end)
        changed = {x.variable.number for x in nodes(s.body) if isinstance(x, Assign)}
        if not _stays(end, changed):
            end = self.bound(end, "end")
        begins = self.value(begin).text
        target = s.body[0].variable if s.body and _takes_counter(s, s.body[0]) else None  # type: ignore[union-attr]
        if target is not None and target.number in self.counted:
            name = self.variables.get(target.number) or self._name(target)
            self.variables[target.number] = name
        else:
            name = self._name(s.counter)
        step = {1: f"{name}++", -1: f"{name}--"}.get(s.step, f"{name} += {s.step}")
        test = f"{name} {'<' if s.step > 0 else '>'} {self.value(end).within(SUM)}"
        self.line(f"for (int64_t {name} = {begins}; {test}; {step}) {{")
        self.loops.append(_Loop())
        self.inner(s.body)
        self.loops.pop()
        self.line("}")

    def loop_while(self, s: While) -> None:
        endless = isinstance(s.test, Constant)
        plain = not s.head and not self.impure(s.test)
        self.line(f"while ({self.value(s.test).text}) {{" if plain and not endless else "for (;;) {")
        self.loops.append(_Loop())
        self.depth += 1
        self.block(s.head)
        if not plain and not endless:
            self.calm = not self.impure(s.test)
            test = self.value(s.test)
            self.line(f"if (!{test.within(UNARY)}) {{")
            self.line("    break;")
            self.line("}")
        self.block(s.body)
        self.depth -= 1
        self.loops.pop()
        self.line("}")

    def rounds(self, s: Rounds) -> None:
        self.labels += 1
        done = f"done_{self.labels}"
        used = False
        for k, statements in enumerate(s.rounds):
            loop = _Loop(done, f"next_{self.labels}_{k}" if k + 1 < len(s.rounds) else done)
            self.loops.append(loop)
            self.line("{")
            self.inner(statements)
            self.line("}")
            self.loops.pop()
            if loop.following != done and loop.following in loop.used:
                self.line(f"{loop.following}:;")
            used = used or done in loop.used
        if used:
            self.line(f"{done}:;")

    def break_statement(self, s: Break) -> None:
        self.line(self.loops[-1].jump(self.loops[-1].done, "break;"))

    def continue_statement(self, s: Continue) -> None:
        self.line(self.loops[-1].jump(self.loops[-1].following, "continue;"))

    def return_statement(self, s: Return) -> None:
        self.line(f"return {self.value(s.value, True).text};" if has_words(self.plan.result) else "return;")

    def store(self, s: Store) -> None:
        value, array, *indices = self.settled(s.value, s.array, *s.indices)
        dtype = s.array.type.dtype
        code = self.value(value)
        if dtype not in ("float64", "int64", "bool"):
            code = Code(f"({ITEMS[dtype]}){code.within(UNARY)}", UNARY)
        self.line(f"{self.element(self.array(array), indices)} = {code.text};")

    def fill(self, s: Fill) -> None:
        array, value = self.settled(s.array, s.value)
        into, value = self.array(self.bound(array, "array")), self.bound(value)
        self._each(into, lambda k: f"{into.at}[{k}] = {self.value(value).text};")

    def copy(self, s: CopyArray) -> None:
        array, source = self.settled(s.array, s.source)
        into, taken = self.array(self.bound(array, "array")), self.array(self.bound(source, "source"))
        self._each(into, lambda k: f"{into.at}[{k}] = {taken.at}[{k}];")

    def _each(self, array: ArrayCode, statement: Callable[[str], str]) -> None:
        """Write a loop over all elements."""
        k = distinct("k", self.local | self.names.taken)
        self.line(f"for (int64_t {k} = 0; {k} < {_product(array.lengths).within(SUM)}; {k}++) {{")
        self.line(f"    {statement(k)}")
        self.line("}")

    # order of evaluation

    def impure(self, x: Any) -> bool:
        """Return whether a value or a statement changes arrays by a call."""
        return any((isinstance(y, Call) and id(y.function) in self.writing) or isinstance(y, Special) for y in nodes(x))

    def settled(self, *values: Any) -> list[Any]:
        """Return values, of which those are in variables that are evaluated before a call that changes arrays."""
        if self.calm:
            return [*values]
        last = max((k for k, x in enumerate(values) if self.impure(x)), default=-1)
        return [self.bound(x) if k <= last else x for k, x in enumerate(values)]

    def bound(self, x: Any, wish: str = "value") -> Any:
        """Return a value that is evaluated here, in a variable unless it is stable."""
        if is_stable(x) or isinstance(x, Field):
            return x
        v: Variable[Any] = Variable(wish, x.type, self.temporary)
        self.temporary -= 1
        code = self.value(x, True)
        self.line(f"{self.names.declared(v.type, self._name(v))} = {code.text};")
        return Read(v)

    # expressions

    def value(self, x: Any, alone: bool = False) -> Code:
        """Return an expression; `alone` if it is the last that its statement evaluates."""
        if isinstance(x, Call) and not alone and self.impure(x):
            x = self.bound(x)
        return EXPRESSIONS[type(x)](self, x)

    def values(self, xs: Sequence[Any]) -> list[Code]:
        return [self.value(x) for x in self.settled(*xs)]

    def constant(self, x: Constant) -> Code:
        return literal(x.type, x.value)

    def read(self, x: Read[Any]) -> Code:
        return Code(self.variables[x.variable.number])

    def make_tuple(self, x: MakeTuple) -> Code:
        items = [self.value(y).text for y in self.settled(*(y for y in x.items if has_words(y.type)))]
        return Code(f"({self.names.record(x.type)}){{{', '.join(items)}}}")

    def item(self, x: TupleItem) -> Code:
        if isinstance(x.whole, MakeTuple):
            return self.value(x.whole.items[x.number])
        return Code(f"{self.value(x.whole).within(OPERAND)}.{self.names.members(x.whole.type)[x.number]}")

    def pick(self, x: Pick) -> Code:
        *items, at = self.settled(*x.items, x.at)
        index = self.value(self.bound(at, "index")).within(ORDER)
        codes = [self.value(y) for y in items]
        text = codes[0].within(OR)
        for k, code in enumerate(codes[1:], 1):
            text = f"{index} == {k} ? {code.within(OR)} : {text}"
        return Code(text, CHOICE)

    def field(self, x: Field) -> Code:
        path = self.path(x)
        return Code(f"&{path}", UNARY) if isinstance(x.type, TableType) else Code(path)

    def table_item(self, x: TableItem) -> Code:
        tables, at = self.values((x.tables, x.at))
        return Code(f"&{tables.within(OPERAND)}[{at.text}]", UNARY)

    def path(self, x: Field) -> str:
        """Return a field as a member of a table."""
        assert isinstance(x.table.type, TableType)
        outer = f"{self.path(x.table)}." if isinstance(x.table, Field) else f"{self.value(x.table).within(OPERAND)}->"
        return outer + distinct(field_name(x), ())

    def binary(self, x: Binary) -> Code:
        a, b = self.values((x.left, x.right))
        op = x.operator
        if op in ("//", "%"):
            return Code(f"{'fw_quotient' if op == '//' else 'fw_remainder'}({a.text}, {b.text})")
        if op == "<<":
            return Code(f"fw_shifted_left({a.text}, {b.text})")
        if op == ">>":
            return Code(f"{a.within(OPERAND)} >> ({b.within(OPERAND)} & 63)", BITS)
        if x.type == BOOL and op in "&|":
            level = AND if op == "&" else OR
            sides = [y.text if y.level == level or y.level > AND else f"({y.text})" for y in (a, b)]
            return Code(f" {op * 2} ".join(sides), level)
        if op in "&|^":
            op = "!=" if x.type == BOOL else op
            return Code(f"{a.within(OPERAND)} {op} {b.within(OPERAND)}", BITS)
        level = LEVELS[op]
        return Code(f"{a.within(level)} {op} {b.within(level + 1)}", level)

    def fused(self, x: Fused) -> Code:
        if x.product_first:
            a, b, c = self.values((x.left, x.right, x.more))
        else:
            c, a, b = self.values((x.more, x.left, x.right))
        a, c = (Code(f"-{y.within(UNARY)}", UNARY) if minus else y for y, minus in ((a, x.minus_product), (c, x.minus_more)))
        return Code(f"FW_MULADD({a.text}, {b.text}, {c.text})")

    def negative(self, x: Negative) -> Code:
        code = self.value(x.value)
        return Code(f"-{code.text if code.level == OPERAND else f'({code.text})'}", UNARY)

    def opposite(self, x: Not) -> Code:
        return Code(f"!{self.value(x.value).within(UNARY)}", UNARY)

    def compare(self, x: Compare) -> Code:
        a, b = self.values((x.left, x.right))
        return Code(f"{a.within(SUM)} {x.operator} {b.within(SUM)}", LEVELS[x.operator])

    def convert(self, x: Convert) -> Code:
        code, old = self.value(x.value), x.value.type
        if x.type == BOOL:
            return Code(f"{code.within(SUM)} != {'0.0' if old == FLOAT else '0'}", EQUALITY)
        if x.type == INT and old == FLOAT:
            return Code(f"fw_whole({code.text})")
        return Code(f"({NUMBERS[x.type]}){code.within(UNARY)}", UNARY)

    def numeric(self, x: Numeric) -> Code:
        codes = self.values(x.arguments)
        if x.name in ("min", "max"):
            if x.type == BOOL:
                return Code(f" {'&&' if x.name == 'min' else '||'} ".join(c.within(EQUALITY) for c in codes), OR)
            text = codes[0].text
            for code in codes[1:]:
                text = f"{EXTREMES[x.name, x.type]}({text}, {code.text})"
            return Code(text)
        name = "fw_size" if (x.name, x.type) == ("abs", INT) else FUNCTIONS.get(x.name)
        if name is None:
            raise KernelError(f"there is no source in C for {x.name}: add its name to FUNCTIONS of exporting/loop_source.py")
        return Code(f"{name}({', '.join(c.text for c in codes)})")

    def load(self, x: Load) -> Code:
        array, *indices = self.settled(x.array, *x.indices)
        text, dtype = self.element(self.array(array), indices), x.array.type.dtype
        if dtype in ("float64", "int64", "bool"):
            return Code(text)
        return Code(f"({NUMBERS[x.array.type.item]}){text}", UNARY)

    def length(self, x: Length) -> Code:
        return self.array(x.array).lengths[x.axis]

    def call(self, x: Call) -> Code:
        given = [c.text for c in self.values([y for y in x.arguments if has_words(y.type)])]
        self.calls.add(id(x.function))
        return Code(f"{self.called[id(x.function)]}({', '.join(given)})")

    def special(self, x: Special) -> Code:
        codes = self.values(x.arguments)
        if x.name == "call_machine":
            address, pointers = codes
            return Code(f"call_function({address.text}, {pointers.within(OPERAND)}.at)")
        if x.name in ("subtract_multiples", "write_multiples"):
            places, factors = codes[:5], codes[5:]
            given = f"(const double[]){{{', '.join(c.text for c in factors)}}}, {len(factors)}"
            zero = ("false", "true")[x.name == "write_multiples"]
            places[0] = Code(f"{places[0].within(OPERAND)}.at")
            return Code(f"fw_subtract_multiples({', '.join(c.text for c in places)}, {given}, {zero})")
        arrays = [k for k, y in enumerate(x.arguments) if isinstance(y.type, ArrayType)]
        given = ", ".join(f"{c.within(OPERAND)}.at" if k in arrays else c.text for k, c in enumerate(codes))
        if x.name in ("subtract_product", "write_product"):
            return Code(f"fw_subtract_product({given}, {('false', 'true')[x.name == 'write_product']})")
        if x.name == "sum_of_products":
            return Code(f"fw_sum_of_products({given})")
        raise KernelError(f"there is no source in C for {x.name}")

    # arrays

    def array_value(self, x: Any) -> Code:
        """Return an array as a struct."""
        array = self.array(x)
        if array.whole:
            return Code(array.whole)
        at = array.at if array.skipped is None else f"{array.at} + {array.skipped.within(SUM)}"
        return Code(f"({self.names.array(x.type)}){{{', '.join([at, *(c.text for c in array.lengths)])}}}")

    def array(self, x: Any) -> ArrayCode:
        """Return an array; its address and lengths may be written several times."""
        if isinstance(x, ArrayView):
            array, *indices = self.settled(x.array, *x.indices)
            outer = self.array(array)
            rest = outer.lengths[len(indices) :]
            skipped = self.offset(outer.lengths, [self.value(i) for i in indices])
            if skipped.text != "0":
                skipped = _times(skipped, _product(rest))
            return ArrayCode(outer.at, _plus(outer.skipped, skipped), rest)
        if isinstance(x, Slice):
            array, begin, end = self.settled(x.array, x.begin, x.end)
            outer = self.array(array)
            first, *rest = outer.lengths
            if end is not None:
                first = Code(f"fw_least({self.value(end).text}, {first.text})")
            if begin is None or (isinstance(begin, Constant) and begin.value == 0):
                return ArrayCode(outer.at, outer.skipped, [first, *rest])
            begin = self.bound(begin, "begin")
            skipped = self.value(begin)
            lengths = [Code(f"fw_difference({first.text}, {skipped.text})"), *rest]
            return ArrayCode(outer.at, _plus(outer.skipped, _times(skipped, _product(rest))), lengths)
        if isinstance(x, Reshape):
            array, *shape = self.settled(x.array, *x.shape)
            outer = self.array(array)
            return ArrayCode(outer.at, outer.skipped, [self.value(n) for n in shape])
        if isinstance(x, (Call, Pick)):
            x = self.bound(x, "array")
        if isinstance(x, (Read, Field, TupleItem)):
            assert isinstance(x.type, ArrayType)
            text = ARRAY_VALUES[type(x)](self, x).within(OPERAND)
            return ArrayCode(f"{text}.at", None, [Code(f"{text}.{n}") for n in length_names(x.type.axes)], text)
        raise KernelError(f"there is no source in C for {type(x).__name__}: a program without Python makes no lists")

    def element(self, array: ArrayCode, indices: Sequence[Value]) -> str:
        """Return an element of an array."""
        place = self.offset(array.lengths, [self.value(i) for i in indices])
        return f"{array.at}[{(_plus(array.skipped, place) or ZERO).text}]"

    def offset(self, lengths: Sequence[Code], places: Sequence[Code]) -> Code:
        """Return the number of elements of the remaining axes before leading indices."""
        result = places[0]
        for n, k in zip(lengths[1:], places[1:], strict=False):
            result = _plus(None if result.text == "0" else _times(result, n), k) or ZERO
        return result


class _Loop:
    """A loop that is being written: its labels if its iterations are written one after the other."""

    def __init__(self, done: str = "", following: str = "") -> None:
        self.done, self.following = done, following
        self.used: set[str] = set()

    def jump(self, label: str, otherwise: str) -> str:
        self.used.add(label)
        return f"goto {label};" if label else otherwise


F = FunctionSource
STATEMENTS: dict[type, Callable[[FunctionSource, Any], None]] = {
    Assign: F.assign, Do: F.do, If: F.if_statement, For: F.loop_for, While: F.loop_while, Rounds: F.rounds,
    Break: F.break_statement, Continue: F.continue_statement, Return: F.return_statement, Store: F.store, Fill: F.fill,
    CopyArray: F.copy,
}  # fmt: skip
EXPRESSIONS: dict[type, Callable[[FunctionSource, Any], Code]] = {
    Constant: F.constant, Read: F.read, MakeTuple: F.make_tuple, TupleItem: F.item, Pick: F.pick, Field: F.field,
    TableItem: F.table_item,
    Binary: F.binary, Fused: F.fused, Negative: F.negative, Not: F.opposite, Compare: F.compare, Convert: F.convert,
    Numeric: F.numeric, Load: F.load, ArrayView: F.array_value, Slice: F.array_value, Reshape: F.array_value, Length: F.length,
    Call: F.call, Special: F.special,
}  # fmt: skip
ARRAY_VALUES: dict[type, Callable[[FunctionSource, Any], Code]] = {Read: F.read, Field: F.field, TupleItem: F.item}


def literal(type: Number, value: Any) -> Code:
    """Return a number in C."""
    if type == BOOL:
        return Code("true" if value else "false")
    if type == INT:
        number = int(value)
        text = str(number) if abs(number) < 2**31 else f"INT64_C({number})" if number > -(2**63) else "INT64_MIN"
        return Code(text, OPERAND if number >= 0 else UNARY)
    if math.isnan(value):
        return Code("NAN")
    text = "HUGE_VAL" if math.isinf(value) else repr(abs(float(value)))
    return Code(f"-{text}", UNARY) if math.copysign(1.0, value) < 0 else Code(text)


def _plus(a: Code | None, b: Code) -> Code | None:
    if a is None or a.text == "0":
        return b
    return a if b.text == "0" else Code(f"{a.within(SUM)} + {b.within(PRODUCT)}", SUM)


def _times(a: Code, b: Code) -> Code:
    if "1" in (a.text, b.text):
        return b if a.text == "1" else a
    return Code(f"{a.within(PRODUCT)} * {b.within(UNARY)}", PRODUCT)


def _product(codes: Sequence[Code]) -> Code:
    result = ONE
    for code in codes:
        result = _times(result, code)
    return result


def _live_reads(plan: FunctionPlan, impure: Callable[[Any], bool]) -> Counter[int]:
    """Return how often each variable is read by values that matter."""
    assigned: dict[int, list[Any]] = {}
    reads: Counter[int] = Counter()
    for x in nodes(plan.body):
        if isinstance(x, Read):
            reads[x.variable.number] += 1
        elif isinstance(x, Assign):
            assigned.setdefault(x.variable.number, []).append(x.value)
    pending = [n for n in assigned if reads[n] == 0]
    while pending:
        for value in assigned.pop(pending.pop(), []):
            if impure(value):
                continue
            for x in nodes(value):
                if isinstance(x, Read):
                    reads[x.variable.number] -= 1
                    if reads[x.variable.number] == 0 and x.variable.number in assigned:
                        pending.append(x.variable.number)
    return reads


def _takes_counter(loop: For, s: Statement) -> bool:
    return isinstance(s, Assign) and isinstance(s.value, Read) and s.value.variable is loop.counter


def _counted(plan: FunctionPlan) -> set[int]:
    """Return variables that loops set from their counters, and nothing else sets or reads: they can be the counters."""
    loops = [x for x in nodes(plan.body) if isinstance(x, For) and x.body and _takes_counter(x, x.body[0])]
    uses = Counter(x.variable.number for x in nodes(plan.body) if isinstance(x, (Assign, Read)))
    within: Counter[int] = Counter()
    found: set[int] = set()
    for loop in loops:
        number = loop.body[0].variable.number  # type: ignore[union-attr]
        own = Counter(x.variable.number for x in nodes(loop.body) if isinstance(x, (Assign, Read)))
        sets = sum(isinstance(x, Assign) and x.variable.number == number for x in nodes(loop.body))
        if sets == 1 and own[loop.counter.number] == 1:
            within[number] += own[number]
            found.add(number)
        else:
            within[number] -= 1 << 30
    return {n for n in found if within[n] == uses[n]}


def _stays(x: Any, changed: set[int]) -> bool:
    """Return whether a value is the same, and costs little, in all iterations that change some variables."""
    if isinstance(x, Constant):
        return True
    if isinstance(x, Read):
        return x.variable.number not in changed
    if isinstance(x, Length):
        return _stays(x.array, changed)
    if isinstance(x, Field):
        return isinstance(x.table, (Read, Field)) and _stays(x.table, changed)
    if isinstance(x, Binary) and x.type == INT and x.operator in "+-":
        return _stays(x.left, changed) and _stays(x.right, changed)
    return False
