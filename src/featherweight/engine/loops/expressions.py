"""Translation of expressions from syntax trees to plans."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from . import arithmetic
from .annotations import patterns_of, remedy, words
from .intrinsics import INTRINSICS
from .kernel_sources import parameters_of, tree_of
from .kernel_tables import Layout, LayoutList
from .kernel_types import BOOL, FLOAT, INT, ArrayType, Number, StaticType, TableListType, TableType, TupleType, Type, unified
from .plan import (
    ArrayValue,
    ArrayView,
    Assign,
    Call,
    Constant,
    Do,
    Field,
    FromEnd,
    If,
    Length,
    Load,
    MakeTuple,
    NumberValue,
    Pick,
    Read,
    Slice,
    Statement,
    Static,
    TableItem,
    Value,
    is_array,
    is_number,
    is_tuple,
)
from .planning_state import Planned, is_stable

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


class Bound(NamedTuple):
    """A method bound to a value."""

    function: Callable[..., Any]
    self: Value


class ElementPlace(NamedTuple):
    """An element or a part of an array that is read or written."""

    array: ArrayValue
    indices: tuple[Value, ...]  # empty for a part

    def type(self) -> Type:
        return self.array.type.item if self.indices else self.array.type


def expression(p: Planned, node: ast.expr) -> Value:
    """Return the value of an expression; statements that it needs are added to the block."""
    value = value_or_method(p, node)
    if isinstance(value, Bound):
        p.fail("a method as a value; call it", node)
    return value


def value_or_method(p: Planned, node: ast.expr) -> Value | Bound:
    """Return the value of an expression, or the method that it names."""
    planner = PLANNERS.get(type(node))
    if planner is None:
        p.fail(f"{UNKNOWN.get(type(node), type(node).__name__)} is outside the subset of Python for kernels", node)
    line, p.line = p.line, node.lineno
    value = planner(p, node)
    p.line = line
    return value


def operands(p: Planned, nodes: list[ast.expr]) -> list[Value]:
    """Return values that are evaluated from left to right."""
    values, marks = [], []
    for node in nodes:
        values.append(expression(p, node))
        marks.append(len(p.statements))
    return p.in_order(values, marks)


def _constant(p: Planned, node: ast.Constant) -> Value:
    if isinstance(node.value, (complex, bytes)) or node.value is ...:
        p.fail(f"the constant {node.value!r}; a kernel has numbers, truth values, strings and None")
    return Static(node.value)


def _name(p: Planned, node: ast.Name) -> Value:
    return p.value_of(node.id)


def _tuple(p: Planned, node: ast.Tuple) -> Value:
    return make_tuple(p, _values(p, node.elts))


def _values(p: Planned, nodes: list[ast.expr]) -> list[Value]:
    """Return the values of expressions in order, with starred ones expanded."""
    values: list[Any] = []
    marks: list[int] = []
    for x in nodes:
        if isinstance(x, ast.Starred):
            items = p.items(expression(p, x.value))
            values += items
            marks += [len(p.statements)] * len(items)
        else:
            values.append(expression(p, x))
            marks.append(len(p.statements))
    return p.in_order(values, marks)


def make_tuple(p: Planned, values: list[Value], kind: type[NamedTuple] | None = None) -> Value:
    known = [x.value for x in values if isinstance(x, Static)]
    if len(known) == len(values) and kind is None:
        return Static(tuple(known))
    values = [p.solid(x) for x in values]
    return MakeTuple(TupleType(tuple(x.type for x in values), kind), tuple(values))


def _attribute(p: Planned, node: ast.Attribute) -> Value | Bound:
    return attribute(p, expression(p, node.value), node.attr)


def attribute(p: Planned, value: Value, name: str) -> Value | Bound:
    """Return a field, a property or a method of a value."""
    if isinstance(value, Static) and name == "_replace" and hasattr(value.value, "_fields"):
        value = p.solid(value)
    if isinstance(value, Static):
        if value.value is None or not hasattr(value.value, name):
            p.fail(f"{value.type} has no attribute {name!r}")
        return Static(getattr(value.value, name))
    kind = class_of(value.type)
    if isinstance(value.type, TableType):
        for field, inner, at in value.type.layout.fields:
            if field == name:
                return field_of(value, inner, at)
    elif kind is not None and name in kind._fields:
        return item(p, value, kind._fields.index(name))
    if is_array(value) and name == "shape":
        array = p.bound(value)
        return make_tuple(p, [Length(array, k) for k in range(array.type.axes)])
    if kind is not None and name == "_replace":
        return Bound(_replaced, value)
    member = getattr(kind, name, None)
    if isinstance(member, property) and member.fget is not None:
        return call(p, member.fget, [value], {})
    if isinstance(member, FunctionType):
        static = isinstance(vars(kind).get(name), staticmethod)
        return Static(member) if static else Bound(member, value)
    return p.fail(f"{value.type} has no attribute {name!r} that a kernel can use")


def class_of(type: Type) -> Any:
    """Return the class of a named tuple, or of a table's named tuple."""
    if isinstance(type, TableType):
        return type.layout.kind
    return type.kind if isinstance(type, TupleType) else None


def field_of(table: Value, inner: Any, at: int) -> Value:
    """Return a field of a table."""
    if isinstance(inner, Layout):
        return Field(TableType(inner), table, at)
    if isinstance(inner, LayoutList):
        return Field(TableListType.of(inner), table, at)
    if isinstance(inner, tuple):
        return Field(ArrayType(*inner), table, at)
    return Static(None) if inner is None else Field(Number(inner), table, at)


def _replaced(p: Planned, value: Value, named: dict[str, Value]) -> Value:
    """Return `value._replace(...)`."""
    kind = class_of(value.type)
    if isinstance(value.type, TableType):
        p.fail("_replace of a table; write into its arrays")
    items = list(p.items(value))
    for name, x in named.items():
        if name not in kind._fields:
            p.fail(f"{kind.__name__} has no field {name!r}")
        items[kind._fields.index(name)] = x
    return make_tuple(p, items, kind)


def item(p: Planned, value: Value, k: int) -> Value:
    """Return one item of a tuple."""
    if isinstance(value, MakeTuple):
        return value.items[k] if all(map(is_stable, value.items)) else p.items(p.bound(value))[k]
    return p.items(value)[k]


# subscripts


def _subscript(p: Planned, node: ast.Subscript) -> Value:
    value = expression(p, node.value)
    if is_array(value):
        return read(p, place(p, value, node.slice))
    if isinstance(node.slice, ast.Slice):
        return _part_of_tuple(p, value, node.slice)
    index = expression(p, node.slice)
    if isinstance(value, Static) and isinstance(index, Static):
        try:
            return Static(value.value[index.value])
        except (LookupError, TypeError) as e:
            p.fail(f"{value.value!r}[{index.value!r}] has no value: {e}")
    value = p.solid(value)
    if isinstance(value.type, TableListType):
        return p.bound(TableItem(value.type.item, value, whole(p, index), p.place()), "table")  # type: ignore[arg-type]
    if not isinstance(value.type, TupleType):
        p.fail(f"an item of {value.type}; a kernel has items of arrays and tuples")
    if isinstance(index, (Static, Constant)):
        n = len(value.type.items)
        if not isinstance(index.value, int) or not -n <= index.value < n:
            p.fail(f"item {index.value!r} of a tuple of {n}")
        return item(p, value, index.value % n)
    return picked(p, p.bound(value), index)


def _part_of_tuple(p: Planned, value: Value, node: ast.Slice) -> Value:
    bounds = [expression(p, x) if x else Static(None) for x in (node.lower, node.upper, node.step)]
    known = [x.value for x in bounds if isinstance(x, Static)]
    if not is_tuple(p.solid(value)) or len(known) < len(bounds):
        p.fail(f"a range of {value.type}; a kernel has ranges of arrays, and of tuples between constants")
    return make_tuple(p, list(p.items(value)[slice(*known)]))


def picked(p: Planned, value: Value, index: Value) -> Value:
    """Return an item of a tuple by an index that is unknown at compilation."""
    items = p.items(value)
    type: Type | None = items[0].type if items else None
    for x in items:
        type = unified(type, x.type) if type is not None else None
    if type is None:
        p.fail(f"an item of {value.type} by a number that is not known at compilation; its items have different types")
    return Pick(type, tuple(p.converted(x, type) for x in items), whole(p, index), p.place())


def whole(p: Planned, index: Value) -> NumberValue:
    """Return an index as a whole number."""
    index = p.solid(index)
    if index.type not in (INT, BOOL):
        p.fail(f"{index.type} as an index; it must be a whole number, see int()")
    return p.as_number(index, INT)


def place(p: Planned, array: ArrayValue, node: ast.expr) -> ElementPlace:
    """Return the place of `array[node]`."""
    if p.specializer.wraps:
        array = p.bound(array, "array")
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    leading: list[ast.expr] = []
    for k, part in enumerate(parts):
        if isinstance(part, ast.Slice):
            if k != len(parts) - 1:
                p.fail("indices behind a range; a kernel has leading indices, and then one range")
            array = part_of(p, array, indices_of(p, array, operands(p, leading)))
            return ElementPlace(_sliced(p, array, part), ())
        leading.append(part)
    values = operands(p, leading)
    if len(values) == 1 and isinstance(p.solid(values[0]).type, TupleType):
        values = list(p.items(values[0]))
    indices = indices_of(p, array, values)
    if len(indices) == array.type.axes:
        return ElementPlace(array, indices)
    return ElementPlace(part_of(p, array, indices), ())


def indices_of(p: Planned, array: ArrayValue, values: list[Value]) -> tuple[Value, ...]:
    """Return indices; negative constants count from the end."""
    if len(values) > array.type.axes:
        p.fail(f"{len(values)} indices of an {array.type}")
    indices: list[NumberValue] = [whole(p, x) for x in values]
    for k, x in enumerate(indices):
        if isinstance(x, Constant) and x.value < 0:
            if not is_stable(array):
                p.fail("a negative index of an array without a name; give it one")
            indices[k] = arithmetic.of_numbers(p, "+", Length(array, k), x)
        elif p.specializer.wraps and not isinstance(x, Constant):
            indices[k] = FromEnd(p.bound(x, "index"), Length(array, k))
    return tuple(indices)


def part_of(p: Planned, array: ArrayValue, indices: tuple[Value, ...]) -> ArrayValue:
    if not indices:
        return array
    if len(indices) == array.type.axes:
        p.fail(f"a range of an element of an {array.type}")
    return ArrayView(array.type.part(len(indices)), array, indices, p.place())


def _sliced(p: Planned, array: ArrayValue, node: ast.Slice) -> ArrayValue:
    if node.step is not None:
        p.fail("a range with a step; a kernel has ranges a:b")
    if node.lower is None and node.upper is None:
        return array
    array = p.bound(array, "array")
    begin, end = (None if x is None else whole(p, expression(p, x)) for x in (node.lower, node.upper))
    begin, end = (
        arithmetic.of_numbers(p, "+", Length(array, 0), x) if isinstance(x, Constant) and x.value < 0 else x
        for x in (begin, end)
    )
    return Slice(array.type, array, begin, end, p.place())


def read(p: Planned, found: ElementPlace) -> Value:
    """Return an element or a part of an array."""
    if not found.indices:
        return found.array
    return Load(found.array.type.item, found.array, found.indices, p.place())


def at_index(p: Planned, array: ArrayValue, index: Value) -> Value:
    """Return the element, or the part, of an array at an index of its first axis."""
    if array.type.axes == 1:
        return Load(array.type.item, array, (index,), p.place())
    return ArrayView(array.type.part(1), array, (index,), p.place())


# operations


def _binary(p: Planned, node: ast.BinOp) -> Value:
    a, b = operands(p, [node.left, node.right])
    return binary(p, OPERATORS[type(node.op)], a, b)


def binary(p: Planned, op: str, a: Value, b: Value) -> Value:
    """Return `a op b`, by a method if a class of named tuples defines it."""
    found = _by_method(p, op, a, b)
    return arithmetic.binary(p, op, a, b) if found is None else found


def _by_method(p: Planned, op: str, a: Value, b: Value) -> Value | None:
    for own, other, prefix in ((a, b, "__"), (b, a, "__r")):
        kind = class_of(own.type)
        if kind is None and isinstance(own, Static) and hasattr(own.value, "_fields"):
            kind = type(own.value)
        method = getattr(kind, arithmetic.METHODS[op].replace("__", prefix, 1), None) if op in arithmetic.METHODS else None
        if isinstance(method, FunctionType):
            return call(p, method, [own, other], {})
    return None


def _unary(p: Planned, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        return arithmetic.negation(test(p, node.operand))
    a = expression(p, node.operand)
    kind = class_of(a.type)
    if isinstance(node.op, ast.USub):
        method = getattr(kind, "__neg__", None)
        return arithmetic.negative(p, a) if method is None else call(p, method, [a], {})
    if isinstance(node.op, ast.UAdd):
        return a
    return arithmetic.binary(p, "^", a, Static(-1)) if p.solid(a).type == INT else p.fail(f"~ of {a.type}; use `not`")


def _compare(p: Planned, node: ast.Compare) -> Value:
    values = operands(p, [node.left, *node.comparators])
    if len(values) > 2:
        values[1:-1] = [p.bound(x) if not isinstance(x, Static) else x for x in values[1:-1]]
    result: arithmetic.Truth = Static(True)
    for op, a, b in zip(node.ops, values, values[1:], strict=False):
        found = _by_method(p, OPERATORS[type(op)], a, b)
        if found is not None and len(node.ops) == 1:
            return found
        one = arithmetic.compare(p, OPERATORS[type(op)], a, b) if found is None else arithmetic.truth(p, found)
        result = arithmetic.both(result, one)
    return result


def test(p: Planned, node: ast.expr) -> arithmetic.Truth:
    """Return whether an expression counts as true."""
    if isinstance(node, ast.BoolOp):
        return _logical(p, node, True)
    return arithmetic.truth(p, expression(p, node))


def _boolean(p: Planned, node: ast.BoolOp) -> arithmetic.Truth:
    return _logical(p, node, False)


def _logical(p: Planned, node: ast.BoolOp, as_test: bool) -> arithmetic.Truth:
    """Plan `and` and `or`: later operands are not evaluated if an earlier one decides, unless they cost nothing."""
    stops = isinstance(node.op, ast.Or)
    result: arithmetic.Truth | None = None
    blocks: list[tuple[list[Statement], NumberValue]] = []  # the other operands, with the statements that each needs
    for x in node.values:
        block, p.statements = p.statements, []
        line, p.line = p.line, x.lineno
        value = test(p, x) if as_test or isinstance(x, ast.BoolOp) else expression(p, x)
        p.line = line
        inner, p.statements = p.statements, block
        if not isinstance(value, Static) and not (is_number(value) and value.type == BOOL):
            p.fail(f"{'or' if stops else 'and'} of {value.type}; compare it, a kernel has this for truth values", x)
        if isinstance(value, (Static, Constant)):
            known = bool(value.value)
            if known == stops:
                result = Static(known) if result is None else result
                if result is not None and not isinstance(result, Static):
                    blocks.append(([], Constant(BOOL, known)))
                break
            continue
        if result is None:
            p.statements += inner
            result = value
        else:
            blocks.append((inner, value))
    if result is None:
        return Static(not stops)
    return _chained(p, result, blocks, stops)


def _chained(
    p: Planned, first: arithmetic.Truth, rest: list[tuple[list[Statement], NumberValue]], stops: bool
) -> arithmetic.Truth:
    while rest and not rest[0][0] and is_cheap(rest[0][1]):
        combine = arithmetic.either if stops else arithmetic.both
        first = combine(first, rest.pop(0)[1])
    if not rest:
        return first
    result = p.variable("condition", BOOL)
    p.statements.append(Assign(result, p.as_number(first, BOOL)))
    block, p.statements = p.statements, []
    inner, value = rest[0]
    p.statements += inner
    p.statements.append(Assign(result, p.as_number(_chained(p, value, rest[1:], stops), BOOL)))
    more, p.statements = p.statements, block
    p.statements.append(If(Read(result), [], more) if stops else If(Read(result), more, []))
    return Read(result)


def is_cheap(value: Value, depth: int = 3) -> bool:
    """Return whether a value costs less than a branch, and can be evaluated anywhere."""
    if is_stable(value):
        return True
    parts = {"Compare": ("left", "right"), "Not": ("value",), "Negative": ("value",), "Binary": ("left", "right")}
    names = parts.get(type(value).__name__)
    if names is None or depth == 0 or getattr(value, "operator", "") in arithmetic.OF_INTS | {"/"}:
        return False
    return all(is_cheap(getattr(value, name), depth - 1) for name in names)


def _conditional(p: Planned, node: ast.IfExp) -> Value:
    condition = test(p, node.test)
    if isinstance(condition, Static):
        return expression(p, node.body if condition.value else node.orelse)
    ways = []
    for part in (node.body, node.orelse):
        block, p.statements = p.statements, []
        value = expression(p, part)
        ways.append((p.statements, p.solid(value)))
        p.statements = block
    (then, a), (otherwise, b) = ways
    type = unified(a.type, b.type)
    if type is None:
        p.fail(f"{a.type} or {b.type}; both values of a condition need one type")
    if isinstance(type, StaticType):
        p.statements.append(If(condition, then, otherwise))
        return a
    result = p.variable("chosen", type)
    for statements, value in ways:
        block, p.statements = p.statements, statements
        value = p.converted(value, type)
        p.statements.append(Assign(result, value))
        p.statements = block
    p.statements.append(If(condition, then, otherwise))
    return Read(result)


# calls


def _call(p: Planned, node: ast.Call) -> Value:
    function = value_or_method(p, node.func)
    named = [k for k in node.keywords if k.arg is not None]
    if len(named) < len(node.keywords):
        p.fail("** in a call; name its arguments")
    values = _values(p, [*node.args, *(k.value for k in named)])
    count = len(values) - len(named)
    names = {str(k.arg): x for k, x in zip(named, values[count:], strict=True)}
    args = values[:count]
    if isinstance(function, Bound):
        if function.function is _replaced:
            return _replaced(p, function.self, names)
        return call(p, function.function, [function.self, *args], names)
    if not isinstance(function, Static):
        p.fail(f"a call of {function.type}")
    return call(p, function.value, args, names)


def call(p: Planned, function: Any, args: list[Value], named: dict[str, Value]) -> Value:
    """Plan a call of a known function."""
    if isinstance(function, MethodType):
        return call(p, function.__func__, [Static(function.__self__), *args], named)
    function = getattr(function, "python", function)  # of a kernel compiled for Python
    function = getattr(function, "rolled", function)  # a separate source for this execution
    try:
        known = INTRINSICS.get(function)
    except TypeError:  # the function is not hashable
        known = None
    if known is not None:
        if named:
            p.fail(f"names of arguments in a call of {function.__name__}; give them in order")
        return known(p, args)
    if isinstance(function, type) and hasattr(function, "_fields"):
        return _made(p, function, args, named)
    if not isinstance(function, FunctionType):
        name = getattr(function, "__name__", repr(function))
        p.fail(f"a call of {name!r}; kernels call plain functions, and those of Python and NumPy that the documentation lists")
    return called(p, function, fitted(p, function, args, named))


def called(p: Planned, function: FunctionType, values: list[Value]) -> Value:
    """Plan a call of a plain function with the values of its parameters."""
    values = annotated(p, function, values)
    plan = p.specializer.function(function, tuple(x.type for x in values))
    value = Call(plan, tuple(x for x in values if not isinstance(x.type, StaticType)))
    if isinstance(plan.result, StaticType):
        p.statements.append(Do(value))
        return Static(plan.result.value)
    return value


def _made(p: Planned, kind: Any, args: list[Value], named: dict[str, Value]) -> Value:
    """Return a named tuple."""
    values = dict(zip(kind._fields, args, strict=False)) | named
    defaults = kind._field_defaults
    missing = [name for name in kind._fields if name not in values and name not in defaults]
    unknown = [name for name in named if name not in kind._fields]
    if missing or unknown or len(args) > len(kind._fields):
        p.fail(
            f"{kind.__name__} has the fields {', '.join(kind._fields)}; {len(args)} values and the names {[*named]} are given"
        )
    for name in kind._fields:
        if name not in values:
            if isinstance(defaults[name], np.ndarray):
                p.fail(f"the default of {kind.__name__}.{name} is an array; give it")
            values[name] = Static(defaults[name])
    floats = {name for name, x in kind.__annotations__.items() if x in (float, "float")}
    for name in floats & values.keys():
        if p.solid(values[name]).type in (INT, BOOL):
            values[name] = p.as_number(values[name], FLOAT)
    return make_tuple(p, [values[name] for name in kind._fields], kind)


def fitted(p: Planned, function: FunctionType, args: list[Value], named: dict[str, Value]) -> list[Value]:
    """Return the values of a function's parameters, in order."""
    a = tree_of(function).args
    if a.kwarg is not None:
        p.fail(f"{function.__qualname__} takes **{a.kwarg.arg}; name its parameters")
    parameters = [x.arg for x in (*a.posonlyargs, *a.args)]
    last = function.__defaults__ or ()
    defaults = dict(zip(parameters[len(parameters) - len(last) :], last, strict=True)) | (function.__kwdefaults__ or {})
    values = dict(zip(parameters, args, strict=False))
    rest = args[len(parameters) :]
    every = [*parameters, *(x.arg for x in a.kwonlyargs)]
    wrong = [name for name in named if name not in every or name in values]
    values |= named
    missing = [name for name in every if name not in values and name not in defaults]
    if wrong or missing or (rest and a.vararg is None):
        p.fail(f"{function.__qualname__} takes ({', '.join(every)}); given are {len(args)} values and {[*named]}")
    ordered = [p.solid(values[name] if name in values else Static(defaults[name])) for name in every]
    return [*ordered, p.solid(make_tuple(p, rest))] if a.vararg is not None else ordered


def annotated(p: Planned, function: FunctionType, values: list[Value]) -> list[Value]:
    """Return the values of parameters, converted to their annotations."""
    tree = tree_of(function)
    patterns = patterns_of(function)
    for k, name in enumerate(parameters_of(tree)):
        pattern = patterns.get(name)
        if pattern is None or (tree.args.vararg is not None and name == tree.args.vararg.arg):
            continue
        fitting = p.fitted(values[k], pattern)
        if fitting is None:
            given = values[k].type
            p.fail(f"{name!r} of {function.__qualname__} is {words(pattern)}, and {given} is given{remedy(pattern, given)}")
        values[k] = fitting
    return values


PLANNERS: dict[type, Callable[[Planned, Any], Value | Bound]] = {
    ast.Constant: _constant, ast.Name: _name, ast.Tuple: _tuple, ast.Attribute: _attribute, ast.Subscript: _subscript,
    ast.BinOp: _binary, ast.UnaryOp: _unary, ast.Compare: _compare, ast.BoolOp: _boolean, ast.IfExp: _conditional,
    ast.Call: _call,
}  # fmt: skip
UNKNOWN = {
    ast.GeneratorExp: "a generator", ast.Dict: "a dictionary",
    ast.Set: "a set", ast.Lambda: "a lambda", ast.JoinedStr: "a formatted string", ast.NamedExpr: ":=", ast.Await: "await",
    ast.Starred: "*", ast.Yield: "yield", ast.DictComp: "a dictionary comprehension", ast.SetComp: "a set comprehension",
}  # fmt: skip
