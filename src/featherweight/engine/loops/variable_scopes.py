"""The scopes of a plan's variables, for writers in which lanes may take different control-flow paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .kernel_types import Type
from .plan import Assign, Break, Continue, For, FunctionPlan, If, Read, Return, Rounds, Statement, Variable, While

Path = tuple[int, ...]  # nested blocks from the function's body inwards, by `id`


class Scopes(NamedTuple):
    """Variables of a function, by number.

    The scope of a variable is the innermost block that contains all its uses: no other code sees the values that lanes leave in
    it. It is not the block of a loop if an iteration may read a value of an earlier iteration. A variable that is set once, in
    its scope and before any other use, is *final*.
    """

    block: dict[int, int]  # scope of each variable, by `id`
    final: set[int]


class Uses(NamedTuple):
    """Uses of variables in the order of the statements, by number."""

    found: dict[int, list[tuple[Path, bool]]]  # (path, whether the variable is set there)
    loops: set[int]  # blocks that are repeated, by `id`
    counters: set[int]


def uses_of(parameters: list[Variable[Type]], body: list[Statement]) -> Uses:
    """Return the uses of a function's variables."""
    uses = Uses({}, set(), set())

    def use(variable: Variable[Type], path: Path, sets: bool) -> None:
        uses.found.setdefault(variable.number, []).append((path, sets))

    def read(x: object, path: Path) -> None:
        if isinstance(x, Read):
            use(x.variable, path, False)
        elif isinstance(x, tuple) and not isinstance(x, FunctionPlan):
            for y in x:
                if isinstance(y, tuple):
                    read(y, path)

    def walk(statements: list[Statement], path: Path) -> None:
        path = (*path, id(statements))
        for s in statements:
            if isinstance(s, Assign):
                read(s.value, path)
                use(s.variable, path, True)
            elif isinstance(s, If):
                read(s.test, path)
                walk(s.then, path)
                walk(s.otherwise, path)
            elif isinstance(s, For):
                read((s.begin, s.end), path)
                uses.loops.add(id(s.body))
                uses.counters.add(s.counter.number)
                use(s.counter, (*path, id(s.body)), True)
                walk(s.body, path)
            elif isinstance(s, While):
                uses.loops.update((id(s.head), id(s.body)))
                walk(s.head, path)
                read(s.test, path)
                walk(s.body, path)
            elif isinstance(s, Rounds):
                for statements_of_round in s.rounds:
                    walk(statements_of_round, path)
            else:
                read(s, path)

    for v in parameters:
        use(v, (id(body),), True)
    walk(body, ())
    return uses


def scopes_of(plan: FunctionPlan) -> Scopes:
    """Return the scopes of a function's variables."""
    uses, loops, counters = uses_of(plan.parameters, plan.body)
    scopes = {number: _scope(found, loops) for number, found in uses.items()}
    final = {number for number, found in uses.items() if found[0] == (scopes[number], True) and sum(s for _, s in found) == 1}
    return Scopes({number: path[-1] for number, path in scopes.items()}, final - counters)


def _scope(uses: list[tuple[Path, bool]], loops: set[int]) -> Path:
    common = uses[0][0]
    for path, _ in uses[1:]:
        n = 0
        while n < min(len(common), len(path)) and common[n] == path[n]:
            n += 1
        common = common[:n]
    first, sets = uses[0]
    while len(common) > 1 and common[-1] in loops and not (sets and first == common):
        common = common[:-1]
    return common


def separated(
    parameters: list[Variable[Type]], body: list[Statement], fresh: Callable[[str, Type], Variable[Type]]
) -> list[Statement]:  # fmt: skip
    """Return statements in which separate blocks have separate variables; `fresh` returns a new one for a name and a type.

    Each of these blocks sets the variable before any other use, and no other code uses it. Loops that count by the same name
    then have counters of their own: a counter that lanes share in one loop does not vary because of another loop.
    """
    several: dict[int, dict[int, Variable[Any] | None]] = {}
    for number, found in uses_of(parameters, body).found.items():
        blocks = _blocks_of(found, 1)
        if len(blocks) > 1:
            several[number] = dict.fromkeys(blocks)

    def own(v: Variable[Any], path: Path) -> Variable[Any]:
        variables = several.get(v.number)
        if variables is None:
            return v
        block = next(x for x in path if x in variables)
        found = variables[block] = variables[block] or fresh(v.name, v.type)
        return found

    def changed(x: Any, path: Path) -> Any:
        if isinstance(x, Read):
            return Read(own(x.variable, path))
        if not isinstance(x, tuple):
            return x
        items = [changed(y, path) for y in x]
        if all(a is b for a, b in zip(items, x, strict=True)):
            return x
        return type(x)(*items) if hasattr(x, "_fields") else tuple(items)

    def walk(statements: list[Statement], path: Path) -> list[Statement]:
        path = (*path, id(statements))
        made: list[Statement] = []
        for s in statements:
            if isinstance(s, Assign):
                made.append(Assign(own(s.variable, path), changed(s.value, path)))
            elif isinstance(s, If):
                made.append(If(changed(s.test, path), walk(s.then, path), walk(s.otherwise, path)))
            elif isinstance(s, For):
                counter = own(s.counter, (*path, id(s.body)))
                made.append(For(counter, changed(s.begin, path), changed(s.end, path), s.step, walk(s.body, path)))
            elif isinstance(s, While):
                made.append(While(walk(s.head, path), changed(s.test, path), walk(s.body, path)))
            elif isinstance(s, Rounds):
                made.append(Rounds([walk(x, path) for x in s.rounds]))
            else:
                made.append(changed(s, path))
        return made

    return walk(body, ()) if several else body


def _blocks_of(uses: list[tuple[Path, bool]], depth: int) -> list[int]:
    """Return the outermost blocks that set a variable before its other uses, if these contain all uses, or one block.

    All uses are in the same block at a depth.
    """
    path, sets = uses[0]
    block = path[depth - 1]
    if sets and len(path) == depth:
        return [block]
    inner: dict[int, list[tuple[Path, bool]]] = {}
    for use in uses:
        if len(use[0]) == depth:
            return []
        inner.setdefault(use[0][depth], []).append(use)
    parts = [_blocks_of(x, depth + 1) for x in inner.values()]
    return [x for part in parts for x in part] if all(parts) else []


def may_end(x: Statement | list[Statement]) -> bool:
    """Return whether a statement, or any of a list, may let lanes leave its block."""
    if isinstance(x, list):
        return any(map(may_end, x))
    if isinstance(x, If):
        return may_end(x.then) or may_end(x.otherwise)
    return isinstance(x, (Return, Break, Continue)) or returns(x)


def returns(x: Statement | list[Statement]) -> bool:
    """Return whether statements may end the function."""
    if isinstance(x, list):
        return any(map(returns, x))
    if isinstance(x, If):
        return returns(x.then) or returns(x.otherwise)
    if isinstance(x, (For, While)):
        return returns(x.body)
    return isinstance(x, Return) or (isinstance(x, Rounds) and any(map(returns, x.rounds)))
