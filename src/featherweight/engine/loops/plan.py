"""The plan of a kernel: typed functions, statements and expressions, in the order of execution.

An expression is evaluated in place, its parts from left to right. `where` is the number of a source line (`Plan.places`), for
writers that check indices and numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .kernel_types import BOOL, FLOAT, INT, ArrayType, Number, StaticType, Type


class Variable:
    """A local variable of one type."""

    __slots__ = ("name", "number", "type")

    def __init__(self, name: str, type: Type, number: int) -> None:
        self.name, self.type, self.number = name, type, number


class FunctionPlan:
    """A function for arguments of given types."""

    def __init__(self, name: str, parameters: list[Variable], result: Type, body: list[Any]) -> None:
        self.name, self.parameters, self.result, self.body = name, parameters, result, body


# expressions, each with a type


class Static(NamedTuple):
    """A value known at compilation: a number, a tuple of these, None, a function, a class, a string or a module."""

    value: Any

    @property
    def type(self) -> Type:
        return StaticType(self.value)


class Constant(NamedTuple):
    """A number."""

    type: Number
    value: Any


class Read(NamedTuple):
    variable: Variable

    @property
    def type(self) -> Type:
        return self.variable.type


class MakeTuple(NamedTuple):
    type: Type
    items: tuple[Any, ...]


class TupleItem(NamedTuple):
    """An item of a tuple."""

    type: Type
    whole: Any
    number: int


class Pick(NamedTuple):
    """One of several values of one type, by an index unknown at compilation."""

    type: Type
    items: tuple[Any, ...]
    index: Any
    where: int


class Field(NamedTuple):
    """A field of a table, from a word on."""

    type: Type
    table: Any
    word: int


class Binary(NamedTuple):
    """+ - * / of floats; + - * // % & | ^ << >> of ints; & | ^ of truth values."""

    type: Number
    operator: str
    left: Any
    right: Any
    where: int = 0


class Fused(NamedTuple):
    """left * right + more, rounded once; the product or `more` may be negated."""

    left: Any
    right: Any
    more: Any
    minus_product: bool = False
    minus_more: bool = False
    product_first: bool = True  # whether the product is evaluated before `more`

    @property
    def type(self) -> Type:
        return FLOAT


class Negative(NamedTuple):
    type: Number
    value: Any


class Not(NamedTuple):
    value: Any

    @property
    def type(self) -> Type:
        return BOOL


class Compare(NamedTuple):
    """== != < <= > >= of two numbers of one type."""

    operator: str
    left: Any
    right: Any

    @property
    def type(self) -> Type:
        return BOOL


class Convert(NamedTuple):
    """A number converted to another type; floats become whole numbers by truncation."""

    type: Number
    value: Any
    where: int = 0


class Numeric(NamedTuple):
    """A function with a known translation: min max abs sqrt floor ceil sin cos minimum maximum isfinite isnan isinf."""

    type: Number
    name: str
    arguments: tuple[Any, ...]


class Load(NamedTuple):
    """An element of an array."""

    type: Number
    array: Any
    indices: tuple[Any, ...]
    where: int


class ArrayView(NamedTuple):
    """The part of an array at leading indices."""

    type: Type
    array: Any
    indices: tuple[Any, ...]
    where: int


class Slice(NamedTuple):
    """A range of the first axis of an array; None for its start or its end."""

    type: Type
    array: Any
    begin: Any
    end: Any
    where: int


class Reshape(NamedTuple):
    """The first numbers of an array as an array of a new shape."""

    type: Type
    array: Any
    shape: tuple[Any, ...]
    where: int


class Allocate(NamedTuple):
    """A new, uninitialized array in the workspace of the call."""

    type: ArrayType
    shape: tuple[Any, ...]


class FromEnd(NamedTuple):
    """An index that counts from the end of an axis if it is negative."""

    index: Any
    length: Any

    @property
    def type(self) -> Type:
        return INT


class Length(NamedTuple):
    """The length of an array along an axis."""

    array: Any
    axis: int

    @property
    def type(self) -> Type:
        return INT


class Call(NamedTuple):
    """A call of another function of the plan."""

    function: FunctionPlan
    arguments: tuple[Any, ...]

    @property
    def type(self) -> Type:
        return self.function.result


class Special(NamedTuple):
    """A call of a function of this package with its own translation (`special_functions`)."""

    type: Type
    name: str
    arguments: tuple[Any, ...]
    where: int


# statements


class Assign(NamedTuple):
    variable: Variable
    value: Any


class Store(NamedTuple):
    """Write an element of an array."""

    array: Any
    indices: tuple[Any, ...]
    value: Any
    where: int


class Fill(NamedTuple):
    """Write one number to all elements of an array."""

    array: Any
    value: Any


class CopyArray(NamedTuple):
    """Copy all elements of an array to one of the same shape."""

    array: Any
    source: Any
    where: int


class Do(NamedTuple):
    """Evaluate an expression for its side effects."""

    value: Any


class If(NamedTuple):
    test: Any
    then: list[Any]
    otherwise: list[Any]


class For(NamedTuple):
    """A loop over begin, begin + step ... before end, which are evaluated once."""

    counter: Variable
    begin: Any
    end: Any
    step: int
    body: list[Any]


class Rounds(NamedTuple):
    """The iterations of a loop over a tuple; `Continue` goes to the next one, `Break` after the last."""

    rounds: list[list[Any]]


class While(NamedTuple):
    """A loop: statements, a test that ends it if false, and a body."""

    head: list[Any]
    test: Any
    body: list[Any]


class Break(NamedTuple):
    pass


class Continue(NamedTuple):
    pass


class Return(NamedTuple):
    value: Any


class Plan(NamedTuple):
    """All functions, callees first; the last one is the kernel."""

    functions: list[FunctionPlan]
    places: list[tuple[str, int]]  # (file, line), by number
