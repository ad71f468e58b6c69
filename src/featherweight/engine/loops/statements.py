"""Translation of statements from syntax trees to plans."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from . import arithmetic
from .annotations import pattern_named, patterns_of, remedy, words
from .expressions import OPERATORS, ElementPlace, at_index, binary, expression, make_tuple, operands, place, read, test, whole
from .kernel_types import BOOL, FLOAT, INT, Number, TupleType, unified
from .plan import (
    ArrayValue,
    Assign,
    Break,
    Constant,
    Continue,
    CopyArray,
    Fill,
    For,
    If,
    Length,
    NumberValue,
    Read,
    Return,
    Rounds,
    Statement,
    Static,
    Store,
    Value,
    While,
    is_array,
)  # fmt: skip
from .planning_state import Clash, Names, Planned, PlannedLoop, Restart, assigned_names, is_stable


def block(p: Planned, nodes: list[ast.stmt]) -> None:
    """Plan statements up to the first after which execution does not continue."""
    for node in nodes:
        if p.names is None:
            return
        p.line = node.lineno
        planner = PLANNERS.get(type(node))
        if planner is None:
            p.fail(f"{UNKNOWN.get(type(node), type(node).__name__)} is outside the subset of Python for kernels")
        planner(p, node)


def inner_block(p: Planned, nodes: list[ast.stmt]) -> list[Statement]:
    """Return the statements of a nested block."""
    kept, p.statements = p.statements, []
    block(p, nodes)
    planned, p.statements = p.statements, kept
    return planned


def merged(*ways: Names | None) -> Names | None:
    """Merge the values of names where several control-flow paths meet; None stands for a path that execution does not reach."""
    there = [w for w in ways if w is not None]
    if not there:
        return None
    first, result = there[0], {}
    for name, value in first.items():
        values = [w.get(name) for w in there]
        if None in values:
            continue
        if all(x is value or same(x, value) for x in values):
            result[name] = value
        else:
            result[name] = Clash(*(t for x in values for t in (x.types if isinstance(x, Clash) else (x.type,))))  # type: ignore[union-attr]
    return result


def same(a: object, b: object) -> bool:
    return isinstance(a, Static) and isinstance(b, Static) and bool(a.type == b.type)


def _expression(p: Planned, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return
    value = expression(p, node.value)
    if not isinstance(value, Static) and not is_stable(value):
        p.bound(value, "unused")


def _pass(p: Planned, node: ast.stmt) -> None:
    """Plan nothing."""


def _return(p: Planned, node: ast.Return) -> None:
    leave_function(p, expression(p, node.value) if node.value else Static(None))


def leave_function(p: Planned, value: Value) -> None:
    """Return a value."""
    pattern = patterns_of(p.function).get("return")
    fitting = p.fitted(value, pattern)
    if fitting is None:
        given = p.solid(value).type
        p.fail(f"the function returns {words(pattern)} by its annotation, and {given} here{remedy(pattern, given)}")
    value = fitting
    if p.result is None:
        p.result = value.type
    type = unified(p.result, value.type)
    if type is None:
        p.fail(f"the function returns {p.result} elsewhere, and {value.type} here; return one type")
    if type != p.result:
        p.known.result = type
        raise Restart
    p.statements.append(Return(p.converted(value, type)))
    p.names = None


def _assign(p: Planned, node: ast.Assign) -> None:
    value = expression(p, node.value)
    if len(node.targets) > 1 and not isinstance(value, Static):
        value = p.bound(value)
    for target in node.targets:
        assign(p, target, value)


def _annotated(p: Planned, node: ast.AnnAssign) -> None:
    if node.value is not None:
        value, pattern = expression(p, node.value), pattern_named(ast.unparse(node.annotation), p.function)
        fitting = p.fitted(value, pattern)
        if fitting is None:
            given = p.solid(value).type
            p.fail(f"the value is {given}, and annotated {words(pattern)}{remedy(pattern, given)}")
        assign(p, node.target, fitting)


def assign(p: Planned, target: ast.expr, value: Value) -> None:
    """Write a value to a name, to several names, or to an array."""
    if isinstance(target, ast.Name):
        p.assign(target.id, value)
    elif isinstance(target, ast.Tuple):
        for one, part in zip(target.elts, parts_of(p, value, target), strict=True):
            assign(p, one, part)
    elif isinstance(target, ast.Subscript):
        value = value if isinstance(value, Static) else p.solid(value)
        marks = [len(p.statements)]
        array = expression(p, target.value)
        if not is_array(array):
            p.fail(f"an item of {array.type} cannot be written; a kernel writes elements of arrays")
        found = place(p, array, target.slice)
        if len(p.statements) > marks[0]:
            value = p.in_order([value], marks)[0]
        write(p, found, value)
    else:
        p.fail("a kernel writes to names and into arrays", target)


def parts_of(p: Planned, value: Value, target: ast.Tuple) -> list[Value]:
    """Return the items of a value for several targets, each evaluated before any of them is written."""
    count = len(target.elts)
    if any(isinstance(x, ast.Starred) for x in target.elts):
        p.fail("* in a target; name all items", target)
    value = p.solid(value)
    if is_array(value):
        array = p.bound(value, "array")
        return [p.bound(at_index(p, array, Constant(INT, k))) for k in range(count)]
    if not isinstance(value.type, TupleType):
        p.fail(f"{value.type} for {count} targets; it must be a tuple or an array")
    items = p.items(value)
    if len(items) != count:
        p.fail(f"{len(items)} values for {count} targets")
    reads = {n.id for x in target.elts for n in ast.walk(x) if isinstance(n, ast.Name)}
    return [x if isinstance(x, (Static, Constant)) else fixed(p, x, reads) for x in items]


def fixed(p: Planned, value: Value, changed: set[str]) -> Value:
    """Return a value that does not change while some names change."""
    if not is_stable(value) or not read_variables(value) & changed:
        return p.bound(value)
    v = p.variable("value", value.type)
    p.statements.append(Assign(v, value))
    return Read(v)


def read_variables(value: object) -> set[str]:
    """Return the names of the variables that a stable value reads."""
    if isinstance(value, Read):
        return {value.variable.name}
    parts = [x for x in value if isinstance(x, tuple)] if isinstance(value, tuple) else []
    return {
        name for x in parts for y in ([x] if hasattr(x, "_fields") else x) if isinstance(y, tuple) for name in read_variables(y)
    }


def write(p: Planned, found: ElementPlace, value: Value) -> None:
    """Write an element of an array, fill the array, or copy another array to it."""
    array, value = found.array, p.solid(value)
    item_type = array.type.item
    if is_array(value):
        if found.indices or value.type._replace(interleaved=array.type.interleaved) != array.type:
            p.fail(f"{value.type} written where {found.type()} is")
        p.statements.append(CopyArray(array, value, p.place()))
        return
    if isinstance(item_type, TupleType) and unified(item_type, value.type) == item_type:
        p.statements.append(Store(array, found.indices, p.converted(value, item_type), p.place()))
        return
    if not isinstance(value.type, Number) or not isinstance(item_type, Number):
        p.fail(f"{value.type} written into an {array.type}")
    if value.type == FLOAT and item_type != FLOAT:
        p.fail(f"a float written into an {array.type}; convert it by int()")
    value = p.as_number(value, item_type)
    p.statements.append(Store(array, found.indices, value, p.place()) if found.indices else Fill(array, value))


def _augmented(p: Planned, node: ast.AugAssign) -> None:
    op, target = OPERATORS[type(node.op)], node.target
    if isinstance(target, ast.Name):
        p.assign(
            target.id, binary(p, op, *operands(p, [ast.copy_location(ast.Name(target.id, ast.Load()), target), node.value]))
        )
        return
    if not isinstance(target, ast.Subscript):
        p.fail("a kernel writes to names and into arrays", target)
    array = expression(p, target.value)
    if not is_array(array):
        p.fail(f"an item of {array.type} cannot be written; a kernel writes elements of arrays")
    found = place(p, p.bound(array, "array"), target.slice)
    found = ElementPlace(p.bound(found.array, "array"), tuple(p.bound(i, "index") for i in found.indices))
    if not found.indices:
        p.fail(f"{op}= of a part of an array; write a loop over its elements")
    old = read(p, found)
    marks = [len(p.statements)]
    value = expression(p, node.value)
    old, value = p.in_order([old, value], [*marks, len(p.statements)])
    write(p, found, binary(p, op, old, value))


# branches


def _if(p: Planned, node: ast.If) -> None:
    condition = test(p, node.test)
    if isinstance(condition, Static):
        block(p, node.body if condition.value else node.orelse)
        return
    before = dict(p.names or {})
    then = inner_block(p, node.body)
    after, p.names = p.names, before
    otherwise = inner_block(p, node.orelse)
    p.names = merged(after, p.names)
    p.statements.append(If(condition, then, otherwise))


# loops


def _while(p: Planned, node: ast.While) -> None:
    if node.orelse:
        p.fail("else of a loop; set a variable before break")
    head, kept = begin_loop(p, node), p.statements
    p.statements = []
    condition = test(p, node.test)
    tested, p.statements = p.statements, kept
    if isinstance(condition, Static) and not condition.value:
        p.statements += tested
        return
    endless = isinstance(condition, Static)
    exit_names = None if endless else dict(p.names or {})
    loop, body = looped(p, node, head)
    p.statements.append(While(tested, Constant(BOOL, True) if endless else condition, body))
    p.names = merged(exit_names, *loop.left)


def begin_loop(p: Planned, node: ast.stmt) -> Names:
    """Return the names at the head of a loop."""
    assert p.names is not None
    for (where, name), clash in p.known.clashing.items():
        if where == (node.lineno, node.col_offset) and name in p.names:
            p.names[name] = clash
    return dict(p.names)


def looped(p: Planned, node: ast.While | ast.For, head: Names) -> tuple[PlannedLoop, list[Statement]]:
    """Return the body of a loop."""
    loop = PlannedLoop()
    p.loops.append(loop)
    body = inner_block(p, node.body)
    p.loops.pop()
    for names in [x for x in (*loop.continued, p.names) if x is not None]:
        for name, value in head.items():
            now = names.get(name)
            if now is not value and not same(now, value) and not isinstance(value, Clash):
                types = now.types if isinstance(now, Clash) else (now.type,)  # type: ignore[union-attr]
                p.known.clashing[(node.lineno, node.col_offset), name] = Clash(value.type, *types)
                raise Restart
    return loop, body


def _break(p: Planned, node: ast.Break) -> None:
    p.loops[-1].left.append(p.names)
    p.statements.append(Break())
    p.names = None


def _continue(p: Planned, node: ast.Continue) -> None:
    p.loops[-1].continued.append(p.names)
    p.statements.append(Continue())
    p.names = None


def _for(p: Planned, node: ast.For) -> None:
    if node.orelse:
        p.fail("else of a loop; set a variable before break")
    call, known = _known_call(p, node.iter)
    if call is not None and known is range:
        _over_range(p, node, call.args, False)
    elif call is not None and known is reversed and _known_call(p, call.args[0])[1] is range:
        _over_range(p, node, call.args[0].args, True)  # type: ignore[attr-defined]
    elif call is not None and known in (enumerate, zip, reversed):
        _unrolled(p, node, rows_of(p, known, call))
    else:
        values = p.solid(expression(p, node.iter))
        if is_array(values):
            _over_array(p, node, values)
        elif isinstance(values.type, TupleType):
            _unrolled(p, node, list(p.items(values)))
        else:
            p.fail(f"a loop over {values.type}; a kernel has loops over range(), arrays and tuples", node.iter)


def _known_call(p: Planned, node: ast.expr) -> tuple[ast.Call | None, Any]:
    """Return a call by a name, and the function bound to the name; None for anything else."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return None, None
    function = p.value_of(node.func.id)
    return node, function.value if isinstance(function, Static) else None


def rows_of(p: Planned, function: type, call: ast.Call) -> list[Value]:
    """Return the items of enumerate, zip and reversed of tuples."""
    named = {k.arg: getattr(expression(p, k.value), "value", None) for k in call.keywords}
    if named.keys() - ({"strict"} if function is zip else set()) or (function is not zip and len(call.args) != 1):
        p.fail(f"{function.__name__} with further arguments; a kernel has it of tuples alone, and zip with strict")
    columns = []
    for node in call.args:
        value = p.solid(expression(p, node))
        if not isinstance(value.type, TupleType):
            p.fail(f"{function.__name__} of {value.type}; it takes tuples, use range(len(...)) for arrays")
        columns.append([p.bound(x) for x in p.items(value)])
    if function is reversed:
        return columns[0][::-1]
    if function is enumerate:
        columns.insert(0, [Constant(INT, k) for k in range(len(columns[0]))])
    if named.get("strict") and len({*map(len, columns)}) > 1:
        p.fail(f"zip of tuples of {', '.join(str(len(x)) for x in columns)} items; strict, it takes tuples of one length")
    return [make_tuple(p, list(row)) for row in zip(*columns, strict=False)]


def _over_range(p: Planned, node: ast.For, arguments: list[ast.expr], backward: bool) -> None:
    values = [whole(p, x) for x in operands(p, arguments)]
    begin: NumberValue = Constant(INT, 0)
    end, step = values[0], 1
    if len(values) > 1:
        begin, end = values[:2]
    if len(values) > 2:
        if not isinstance(values[2], Constant) or values[2].value == 0:
            p.fail("range() with a step that is not a constant; write `while`")
        step = values[2].value
    if backward:
        if step != 1:
            p.fail("reversed range() with a step; write the range backwards")
        last = arithmetic.of_numbers(p, "-", p.bound(end, "end"), Constant(INT, 1))
        begin, end, step = last, arithmetic.of_numbers(p, "-", begin, Constant(INT, 1)), -1
    some = isinstance(begin, Constant) and isinstance(end, Constant) and (end.value - begin.value) * step > 0
    _rounds(p, node, (p.bound(begin), p.bound(end, "end"), step), None, some)


def _over_array(p: Planned, node: ast.For, array: ArrayValue) -> None:
    kept = fixed(p, p.bound(array, "array"), assigned_names(node.body))
    assert is_array(kept)
    _rounds(p, node, (Constant(INT, 0), Length(kept, 0), 1), kept, False)


def _rounds(p: Planned, node: ast.For, bounds: tuple[Value, Value, int], array: ArrayValue | None, some: bool) -> None:
    """Plan a loop over indices, or over the elements of an array; `some` if there is at least one iteration."""
    head = begin_loop(p, node)
    before = dict(head)
    index = p.variable("index", INT)
    value: Value = Read(index)
    kept_statements, p.statements = p.statements, []
    if array is not None:
        value = at_index(p, array, value)
    assign(p, node.target, value)
    first, p.statements = p.statements, kept_statements
    loop, body = looped(p, node, head)
    after = merged(*loop.continued, p.names)
    p.names = merged(*([] if some else [before]), after, *loop.left)
    p.statements.append(For(index, *bounds, [*first, *body]))


def _unrolled(p: Planned, node: ast.For, values: list[Value]) -> None:
    """Plan a loop over a tuple, iteration after iteration."""
    changed = assigned_names([node])
    values = [x if isinstance(x, Static) else fixed(p, x, changed) for x in values]
    changed = assigned_names(node.body)
    rounds: list[list[Statement]] = []
    left: list[Names | None] = []
    for value in values:
        if p.names is None:
            break
        loop = PlannedLoop()
        p.loops.append(loop)
        kept, p.statements = p.statements, []
        _set(p, node.target, value, changed)
        block(p, node.body)
        rounds.append(p.statements)
        p.statements = kept
        p.loops.pop()
        p.names = merged(p.names, *loop.continued)
        left += loop.left
    p.names = merged(p.names, *left)
    p.statements.append(Rounds(rounds))


def _set(p: Planned, target: ast.expr, value: Value, changed: set[str]) -> None:
    """Bind a loop's target to a value; a known number stays known unless the loop changes it."""
    if isinstance(target, ast.Tuple) and isinstance(p.solid(value).type, TupleType):
        parts = p.items(value)
        if len(parts) != len(target.elts):
            p.fail(f"{len(parts)} values for {len(target.elts)} targets")
        for one, part in zip(target.elts, parts, strict=True):
            _set(p, one, part, changed)
    elif isinstance(target, ast.Name) and isinstance(value, (Static, Constant)) and target.id not in changed:
        assert p.names is not None
        p.names[target.id] = value if isinstance(value, Static) else Static(value.value)
    else:
        assign(p, target, value)


def _assert(p: Planned, node: ast.Assert) -> None:
    p.fail("assert; kernels neither raise nor test, return a number instead")


PLANNERS: dict[type, Callable[[Planned, Any], None]] = {
    ast.Expr: _expression, ast.Pass: _pass, ast.Return: _return, ast.Assign: _assign, ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented, ast.If: _if, ast.While: _while, ast.For: _for, ast.Break: _break, ast.Continue: _continue,
    ast.Assert: _assert,
}  # fmt: skip
UNKNOWN = {
    ast.Raise: "raise", ast.Try: "try", ast.With: "with", ast.FunctionDef: "a function within a function",
    ast.ClassDef: "a class",
    ast.Delete: "del", ast.Global: "global", ast.Nonlocal: "nonlocal", ast.Import: "import", ast.ImportFrom: "import",
    ast.Match: "match",
}  # fmt: skip
