"""The plan of a kernel: typed functions, statements and expressions, in the order in which they are executed.

An expression is evaluated where it stands, its parts from left to right. Places (`where`) are numbers of source lines
(`Plan.places`), for writers that test indices and numbers.
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
    """A function for arguments of some types."""

    def __init__(self, name: str, parameters: list[Variable], result: Type, body: list[Any]) -> None:
        self.name, self.parameters, self.result, self.body = name, parameters, result, body


# expressions, each with a type


class Static(NamedTuple):
    """A value that is known at compilation: a number, a tuple of such, None, a function, a class, a string or a module."""

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
    """One of the items of a tuple."""

    type: Type
    whole: Any
    number: int


class Pick(NamedTuple):
    """One of some values of one type, by a number that is not known."""

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
    """left * right + more, rounded once; the product or `more` with the other sign."""

    left: Any
    right: Any
    more: Any
    minus_product: bool = False
    minus_more: bool = False
    product_first: bool = True  # it is evaluated before `more`

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
    """A number as another type; floats become whole numbers without their fraction."""

    type: Number
    value: Any
    where: int = 0


class Numeric(NamedTuple):
    """A function of numbers that writers know: min max abs sqrt floor ceil sin cos minimum maximum isfinite isnan isinf."""

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
    """A range of the first axis of an array; None for its beginning or its end."""

    type: Type
    array: Any
    begin: Any
    end: Any
    where: int


class Reshape(NamedTuple):
    """The first numbers of an array as an array of other lengths."""

    type: Type
    array: Any
    shape: tuple[Any, ...]
    where: int


class Allocate(NamedTuple):
    """A new array of some lengths in the workspace of the call, without elements yet."""

    type: ArrayType
    shape: tuple[Any, ...]


class FromEnd(NamedTuple):
    """An index, which counts from the end of an axis where it is negative."""

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
    """A call of one of the room's functions that writers have their own words for (`special_functions`)."""

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
    """Write all elements of an array to one of the same shape."""

    array: Any
    source: Any
    where: int


class Do(NamedTuple):
    """Evaluate an expression for what it does."""

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
    """The rounds of a loop over a tuple, one after the other; `Continue` goes to the next one, `Break` behind the last."""

    rounds: list[list[Any]]


class While(NamedTuple):
    """A loop: statements, a test that ends it where it is false, and a body."""

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
    """All functions, those that others call first; the last is the kernel."""

    functions: list[FunctionPlan]
    places: list[tuple[str, int]]  # files and lines, by number
