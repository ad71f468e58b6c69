"""Operations on numbers in plans: types, known values, and fusion of products with sums.

`a * b + c`, `c + a * b`, `a * b - c` and `c - a * b` of floats are rounded once, as a fused multiply-add; in a sum of two
products, the right one is fused. This depends only on the text of a kernel, and is the same on all machines with the
instruction.
"""

from __future__ import annotations

import operator
from typing import Any, TypeGuard

from .kernel_types import BOOL, FLOAT, INT, Number, StaticType, TupleType
from .plan import (
    Binary,
    Compare,
    Constant,
    Fused,
    MakeTuple,
    Negative,
    Not,
    NumberValue,
    Numeric,
    Static,
    TupleValue,
    Value,
    is_number,
    is_tuple,
)
from .planning_state import Planned, constant, item_of

KNOWN = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "**": operator.pow,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
METHODS = {
    "+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "//": "__floordiv__", "%": "__mod__", "@": "__matmul__",
    "&": "__and__", "|": "__or__", "^": "__xor__", "**": "__pow__", "<<": "__lshift__", ">>": "__rshift__",
    "==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__",
}  # fmt: skip
OF_INTS, OF_BITS = {"//", "%", "<<", ">>"}, {"&", "|", "^"}
MOST_FACTORS = 64  # greatest whole exponent of a power
Truth = Static | NumberValue  # a known truth value, or an expression for one


def binary(p: Planned, op: str, a: Value, b: Value) -> Value:
    """Return `a op b` for numbers or tuples."""
    if isinstance(a, Static) and isinstance(b, Static):
        return Static(folded(p, op, a.value, b.value))
    if op == "**":
        return power(p, a, b)
    a, b = p.solid(a), p.solid(b)
    if op == "+" and is_tuple(a) and is_tuple(b):
        items = (*p.items(a), *p.items(b))
        return MakeTuple(TupleType(tuple(x.type for x in items)), items)
    if not (is_number(a) and is_number(b)):
        p.fail(f"{op} of {a.type} and {b.type}; a kernel has it for numbers, and for classes that define it")
    return of_numbers(p, op, a, b)


def of_numbers(p: Planned, op: str, a: NumberValue, b: NumberValue) -> NumberValue:
    """Return `a op b`."""
    if isinstance(a, Constant) and isinstance(b, Constant) and not (op in ("/", "//", "%") and b.value == 0):
        return constant(wrapped(folded(p, op, a.value, b.value)))
    if a.type == BOOL and b.type == BOOL and op in OF_BITS:
        return Binary(BOOL, op, a, b)
    if FLOAT in (a.type, b.type) or op == "/":
        if op in OF_BITS or op in OF_INTS:
            p.fail(f"{op} of {a.type} and {b.type}; a kernel has it for whole numbers, see math.floor")
        return of_floats(p, op, p.as_number(a, FLOAT), p.as_number(b, FLOAT))
    return Binary(INT, op, p.as_number(a, INT), p.as_number(b, INT), p.place() if op in OF_INTS else 0)


def wrapped(x: object) -> Any:
    """Return a whole number wrapped to 64 bits."""
    return (x + 2**63) % 2**64 - 2**63 if isinstance(x, int) and not isinstance(x, bool) else x


def folded(p: Planned, op: str, a: object, b: object) -> Any:
    """Return the value of an operation on known values."""
    try:
        return KNOWN[op](a, b)
    except (TypeError, ValueError, ArithmeticError, KeyError) as e:
        p.fail(f"{a!r} {op} {b!r} has no value: {e}")


def of_floats(p: Planned, op: str, a: NumberValue, b: NumberValue) -> NumberValue:
    """Return `a op b`, with a fused product if there is one."""
    if p.specializer.fused and op in "+-":
        if is_product(b):
            return Fused(b.left, b.right, a, minus_product=op == "-", product_first=False)
        if is_product(a):
            return Fused(a.left, a.right, b, minus_more=op == "-")
    return Binary(FLOAT, op, a, b)


def is_product(x: Value) -> TypeGuard[Binary]:
    return isinstance(x, Binary) and x.operator == "*" and x.type == FLOAT


def power(p: Planned, a: Value, b: Value) -> Value:
    """Return a power with a known exponent, by products; or a square root."""
    if not isinstance(b, (Static, Constant)):
        p.fail("** with an exponent that is not a constant; write the product out")
    exponent = b.value
    a = p.bound(a, "base")
    if not is_number(a):
        p.fail(f"** of {a.type}; a kernel has it for numbers")
    if exponent == 0.5:
        return Numeric(FLOAT, "sqrt", (p.as_number(a, FLOAT),))
    whole = isinstance(exponent, (int, float)) and exponent == int(exponent) and abs(exponent) <= MOST_FACTORS
    if not whole or (exponent < 0 and a.type != FLOAT):
        p.fail(f"** {exponent!r}; a kernel has 0.5 and whole exponents up to {MOST_FACTORS}, negative ones of floats")
    if isinstance(exponent, float):
        a = p.as_number(a, FLOAT)
    left, square = abs(int(exponent)), p.bound(a)
    result: NumberValue | None = None
    while left:
        if left & 1:
            result = square if result is None else of_numbers(p, "*", p.bound(result), square)
        left >>= 1
        if left:
            square = of_numbers(p, "*", p.bound(square), p.bound(square))
            square = square if left == 1 and result is None else p.bound(square)
    if result is None:
        return Constant(a.type, 1)
    return of_floats(p, "/", Constant(FLOAT, 1.0), p.as_number(result, FLOAT)) if exponent < 0 else result


def negative(p: Planned, a: Value) -> Value:
    if isinstance(a, (Static, Constant)):
        return Static(-a.value) if isinstance(a, Static) else p.solid(Static(-a.value))
    if not is_number(a):
        p.fail(f"- of {a.type}; a kernel has it for numbers")
    return Negative(a.type, a) if a.type != BOOL else Negative(INT, p.as_number(a, INT))


def negation(a: Truth) -> Truth:
    """Return the negation of a truth value."""
    if isinstance(a, Static):
        return Static(not a.value)
    return Constant(BOOL, not a.value) if isinstance(a, Constant) else a.value if isinstance(a, Not) else Not(a)


def truth(p: Planned, a: Value) -> Truth:
    """Return whether a value counts as true: a Static, or an expression."""
    if isinstance(a, Static):
        return Static(bool(a.value))
    if isinstance(a, Constant):
        return Static(bool(a.value))
    if isinstance(a.type, TupleType):
        return Static(len(a.type.items) > 0)
    if not is_number(a):
        p.fail(f"the truth of {a.type}; compare it, with None for example")
    return a if a.type == BOOL else Compare("!=", a, Constant(a.type, {INT: 0, FLOAT: 0.0}[a.type]))


def compare(p: Planned, op: str, a: Value, b: Value) -> Truth:
    """Return `a op b` for numbers, tuples, or known values."""
    if op in ("is", "is not"):
        if isinstance(a.type, StaticType) and isinstance(b.type, StaticType):
            return Static((a.type.value is b.type.value) == (op == "is"))
        if None not in (getattr(a, "value", 0), getattr(b, "value", 0)):
            p.fail("`is` of values that are not known at compilation; use ==, or compare with None")
        return Static(op == "is not")
    if op in ("in", "not in"):
        return contains(p, op, a, b)
    if isinstance(a, Static) and isinstance(b, Static):
        return Static(folded(p, op, a.value, b.value))
    a, b = p.solid(a), p.solid(b)
    if is_tuple(a) and is_tuple(b) and op in ("==", "!="):
        return tuples_compared(p, op, a, b)
    if not (isinstance(a.type, Number) and isinstance(b.type, Number)):
        p.fail(f"{op} of {a.type} and {b.type}; a kernel compares numbers, and tuples for == and !=")
    if isinstance(a, Constant) and isinstance(b, Constant):
        return Static(folded(p, op, a.value, b.value))
    type = FLOAT if FLOAT in (a.type, b.type) else INT if INT in (a.type, b.type) or op not in ("==", "!=") else BOOL
    return Compare(op, p.as_number(a, type), p.as_number(b, type))


def tuples_compared(p: Planned, op: str, a: TupleValue, b: TupleValue) -> Truth:
    a, b = p.bound(a), p.bound(b)
    n = len(a.type.items)
    if n != len(b.type.items):
        return Static(op == "!=")
    result: Truth = Static(True)
    for k in range(n):
        result = both(result, compare(p, "==", item_of(a, k), item_of(b, k)))
    return result if op == "==" else negation(result)


def contains(p: Planned, op: str, a: Value, b: Value) -> Truth:
    if isinstance(a, Static) and isinstance(b, Static):
        return Static((a.value in b.value) == (op == "in"))
    if not isinstance(p.solid(b).type, TupleType):
        p.fail(f"`in` of {b.type}; a kernel has it for tuples")
    a = p.bound(a)
    result: Truth = Static(False)
    for x in p.items(b):
        result = either(result, compare(p, "==", a, x))
    return result if op == "in" else negation(result)


def both(a: Truth, b: Truth) -> Truth:
    """Return `a and b` for truth values that are both evaluated."""
    if isinstance(a, (Static, Constant)):
        return b if a.value else Static(False)
    if isinstance(b, (Static, Constant)) and b.value:
        return a
    return Binary(BOOL, "&", a, Constant(BOOL, False) if isinstance(b, Static) else b)


def either(a: Truth, b: Truth) -> Truth:
    if isinstance(a, Static) or isinstance(b, Static):
        return negation(both(negation(a), negation(b)))
    return Binary(BOOL, "|", a, b)
