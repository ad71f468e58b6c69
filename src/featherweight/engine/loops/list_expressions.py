"""Lists that kernels make: `[x] * n`, `[a, b, c]` and comprehensions, as arrays in the workspace of a call.

Lists of lists are arrays with several axes: all rows have the same length. Items are numbers, or tuples of numbers.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from .arithmetic import of_numbers
from .expressions import OPERATORS, PLANNERS, Bound, at_index, expression, operands, whole
from .kernel_types import INT, ArrayType, Number, TupleType, Type, dtype_of, unified
from .plan import (
    Allocate,
    ArrayValue,
    ArrayView,
    Assign,
    Constant,
    Fill,
    For,
    Length,
    NumberValue,
    Numeric,
    Read,
    Static,
    Store,
    Value,
    is_array,
)
from .planning_state import Planned


class NewList(NamedTuple):
    """A list before it is made: its length, and properties of its items."""

    node: ast.expr
    length: NumberValue  # its length, in a variable
    begin: NumberValue | None  # first number of a comprehension over a range; None for a comprehension over an array
    over: ArrayValue | None  # the array of a comprehension
    inner: NewList | None  # each item, if items are lists


def is_list(node: ast.expr) -> bool:
    """Return whether an expression makes a list."""
    return isinstance(node, (ast.List, ast.ListComp)) or is_repeated(node)


def is_repeated(node: ast.expr) -> bool:
    """Return whether an expression is `[x] * n`."""
    return isinstance(node, ast.BinOp) and OPERATORS.get(type(node.op)) == "*" and isinstance(node.left, ast.List)


def make_list(p: Planned, node: ast.expr) -> Value:
    """Plan an expression that makes a list: an array in a variable."""
    new = _measured(p, node)
    item = _item_type(p, new)
    shape, inner = [new.length], new.inner
    while inner is not None:
        shape.append(inner.length)
        inner = inner.inner
    type = ArrayType(dtype_of(item), len(shape))
    array = p.variable("list", type)
    p.statements.append(Assign(array, Allocate(type, tuple(shape))))
    _fill(p, new, Read(array), item)
    return Read(array)


def _measured(p: Planned, node: ast.expr) -> NewList:
    """Return the lengths of a list and of the lists in it."""
    if isinstance(node, ast.BinOp):
        assert isinstance(node.left, ast.List)
        if len(node.left.elts) != 1 or is_list(node.left.elts[0]):
            p.fail("a list of several items, or of lists, times a number; a kernel has [x] * n, and comprehensions", node)
        return NewList(node, _length(p, expression(p, node.right)), None, None, None)
    if isinstance(node, ast.List):
        if not node.elts or any(isinstance(x, ast.Starred) or is_list(x) for x in node.elts):
            p.fail("an empty list, or one of lists; a kernel has [a, b, c] of numbers and tuples, and comprehensions", node)
        return NewList(node, Constant(INT, len(node.elts)), None, None, None)
    assert isinstance(node, ast.ListComp)
    (generator, *more) = node.generators
    if more or generator.ifs:
        p.fail("a comprehension with several loops, or with a condition; write a loop", node)
    begin = over = None
    if _is_range(p, generator.iter):
        assert isinstance(generator.iter, ast.Call)
        begin, end, *step = [
            whole(p, x) for x in ([Static(0)] * (len(generator.iter.args) < 2) + operands(p, generator.iter.args))
        ]
        if step:
            p.fail("a comprehension over range() with a step; write a loop", node)
        begin, length = p.bound(begin, "begin"), end
        if not isinstance(begin, Constant) or begin.value != 0:
            length = of_numbers(p, "-", end, begin)
        length = _length(p, length)
    else:
        array = expression(p, generator.iter)
        if not is_array(array):
            p.fail(f"a comprehension over {array.type}; a kernel has them over range() and arrays", node)
        over = p.bound(array, "array")
        length = Length(over, 0)
    return NewList(node, length, begin, over, _measured(p, node.elt) if is_list(node.elt) else None)


def _is_range(p: Planned, node: ast.expr) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    function = p.value_of(node.func.id)
    return isinstance(function, Static) and function.value is range


def _length(p: Planned, wanted: Value) -> NumberValue:
    """Return a length: zero for a negative number."""
    number = whole(p, wanted)
    if isinstance(number, Constant):
        return Constant(INT, max(number.value, 0))
    return p.bound(Numeric(INT, "max", (number, Constant(INT, 0))), "length")


def _item_type(p: Planned, new: NewList) -> Type:
    """Return the type of the items of the innermost lists; the statements planned for this are planned again."""
    kept_statements, kept_names = p.statements, p.names
    p.statements, p.names = [], dict(p.names or {})
    if isinstance(new.node, ast.ListComp):
        _begin_round(p, new, Read(p.variable("index", INT)))
    if new.inner is not None:
        type = _item_type(p, new.inner)
    else:
        types = [x.type for x in _items(p, new.node)]
        type = types[0]
        for other in types[1:]:
            both = unified(type, other)
            type = both if both is not None else p.fail(f"a list of {type} and {other}; items need one type", new.node)
    if not _is_plain(type):
        p.fail(f"a list of {type}; items are numbers, or tuples of numbers", new.node)
    p.statements, p.names = kept_statements, kept_names
    return type


def _is_plain(type: Type) -> bool:
    return isinstance(type, Number) or (isinstance(type, TupleType) and all(map(_is_plain, type.items)))


def _items(p: Planned, node: ast.expr) -> list[Value]:
    """Return the items of a list display."""
    if isinstance(node, ast.ListComp):
        nodes = [node.elt]
    else:
        nodes = (node.left if isinstance(node, ast.BinOp) else node).elts  # type: ignore[attr-defined]
    return [p.solid(x) for x in operands(p, nodes)]


def _begin_round(p: Planned, new: NewList, index: NumberValue) -> None:
    """Set the variable of a comprehension to the number or the element of its array."""
    assert isinstance(new.node, ast.ListComp)
    target, array = new.node.generators[0].target, new.over
    if not isinstance(target, ast.Name):
        p.fail("several names in a comprehension; write a loop", target)
    if array is None:
        assert new.begin is not None
        p.assign(target.id, of_numbers(p, "+", new.begin, index))
    else:
        p.assign(target.id, at_index(p, array, index))


def _fill(p: Planned, new: NewList, array: ArrayValue, item: Type) -> None:
    """Write all items."""
    if isinstance(new.node, ast.BinOp):
        (value,) = _items(p, new.node)
        p.statements.append(Fill(array, p.bound(p.converted(value, item))))
    elif isinstance(new.node, ast.List):
        for k, value in enumerate(_items(p, new.node)):
            p.statements.append(Store(array, (Constant(INT, k),), p.converted(value, item), p.place()))
    else:
        kept_statements, kept_names = p.statements, p.names
        p.statements, p.names = [], dict(p.names or {})
        index = p.variable("index", INT)
        _begin_round(p, new, Read(index))
        if new.inner is not None:
            row = p.bound(ArrayView(array.type.part(1), array, (Read(index),), p.place()), "row")
            _fill(p, new.inner, row, item)
        else:
            (value,) = _items(p, new.node)
            p.statements.append(Store(array, (Read(index),), p.converted(value, item), p.place()))
        body, p.statements, p.names = p.statements, kept_statements, kept_names
        p.statements.append(For(index, Constant(INT, 0), new.length, 1, body))


def _binary(p: Planned, node: ast.BinOp) -> Value | Bound:
    return make_list(p, node) if is_repeated(node) else _OF_NUMBERS(p, node)


_OF_NUMBERS = PLANNERS[ast.BinOp]
PLANNERS |= {ast.List: make_list, ast.ListComp: make_list, ast.BinOp: _binary}
