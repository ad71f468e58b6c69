"""The scopes of a plan's variables, for writers in which lanes may take different control-flow paths."""

from __future__ import annotations

from typing import NamedTuple

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


def scopes_of(plan: FunctionPlan) -> Scopes:
    """Return the scopes of a function's variables."""
    uses: dict[int, list[tuple[Path, bool]]] = {}  # (path, whether the variable is set there)
    loops: set[int] = set()
    counters: set[int] = set()

    def use(variable: Variable[Type], path: Path, sets: bool) -> None:
        uses.setdefault(variable.number, []).append((path, sets))

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
                loops.add(id(s.body))
                counters.add(s.counter.number)
                use(s.counter, (*path, id(s.body)), True)
                walk(s.body, path)
            elif isinstance(s, While):
                loops.update((id(s.head), id(s.body)))
                walk(s.head, path)
                read(s.test, path)
                walk(s.body, path)
            elif isinstance(s, Rounds):
                for statements_of_round in s.rounds:
                    walk(statements_of_round, path)
            else:
                read(s, path)

    for v in plan.parameters:
        use(v, (id(plan.body),), True)
    walk(plan.body, ())
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
