"""The plan of a kernel: typed functions, statements and expressions, in the order of execution.

An expression is evaluated in place, its parts from left to right. `where` is the number of a source line (`Plan.places`), for
writers that check indices and numbers.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Generic, NamedTuple, Protocol, TypeGuard, TypeVar

from .kernel_types import BOOL, FLOAT, INT, ArrayType, Number, StaticType, TableListType, TableType, TupleType, Type

T_co = TypeVar("T_co", bound=Type, covariant=True)


class Variable(Generic[T_co]):
    """A local variable of one type."""

    __slots__ = ("name", "number", "type")

    def __init__(self, name: str, type: T_co, number: int) -> None:
        self.name, self.type, self.number = name, type, number


class FunctionPlan:
    """A function for arguments of given types; `function` is its source in Python, if it has one of its own."""

    def __init__(
        self,
        name: str,
        parameters: list[Variable[Type]],
        result: Type,
        body: list[Statement],
        function: FunctionType | None = None,
    ) -> None:
        self.name, self.parameters, self.result, self.body, self.function = name, parameters, result, body, function


# expressions


class Typed(Protocol[T_co]):
    """An expression: a value with a type, which is known at compilation."""

    @property
    def type(self) -> T_co:
        """The type of the value."""


Value = Typed[Type]
NumberValue = Typed[Number]
ArrayValue = Typed[ArrayType]
TupleValue = Typed[TupleType]


def is_number(x: Value) -> TypeGuard[NumberValue]:
    """Return whether the value of an expression is a number."""
    return isinstance(x.type, Number)


def is_array(x: Value) -> TypeGuard[ArrayValue]:
    """Return whether the value of an expression is an array."""
    return isinstance(x.type, ArrayType)


def is_tuple(x: Value) -> TypeGuard[TupleValue]:
    """Return whether the value of an expression is a tuple."""
    return isinstance(x.type, TupleType)


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


class Read(NamedTuple, Generic[T_co]):
    """The value of a variable."""

    variable: Variable[T_co]

    @property
    def type(self) -> T_co:
        return self.variable.type


class MakeTuple(NamedTuple):
    type: TupleType
    items: tuple[Value, ...]


class TupleItem(NamedTuple):
    """An item of a tuple."""

    type: Type
    whole: TupleValue
    number: int


class Pick(NamedTuple):
    """One of several values of one type, by an index unknown at compilation."""

    type: Type
    items: tuple[Value, ...]
    at: Value
    where: int


class Field(NamedTuple):
    """A field of a table, from a word on."""

    type: Type
    table: Value
    word: int


class TableItem(NamedTuple):
    """One of several tables of one layout."""

    type: TableType
    tables: Typed[TableListType]
    at: Value
    where: int


class Binary(NamedTuple):
    """+ - * / of floats; + - * // % & | ^ << >> of ints; & | ^ of truth values."""

    type: Number
    operator: str
    left: NumberValue
    right: NumberValue
    where: int = 0


class Fused(NamedTuple):
    """left * right + more, rounded once; the product or `more` may be negated."""

    left: NumberValue
    right: NumberValue
    more: NumberValue
    minus_product: bool = False
    minus_more: bool = False
    product_first: bool = True  # whether the product is evaluated before `more`
    type: Number = FLOAT


class Negative(NamedTuple):
    type: Number
    value: NumberValue


class Not(NamedTuple):
    value: NumberValue
    type: Number = BOOL


class Compare(NamedTuple):
    """== != < <= > >= of two numbers of one type."""

    operator: str
    left: NumberValue
    right: NumberValue
    type: Number = BOOL


class Convert(NamedTuple):
    """A number converted to another type; floats become whole numbers by truncation."""

    type: Number
    value: NumberValue
    where: int = 0


class Numeric(NamedTuple):
    """A function with a known translation: min max abs sqrt floor ceil sin cos minimum maximum isfinite isnan isinf."""

    type: Number
    name: str
    arguments: tuple[Value, ...]


class Load(NamedTuple):
    """An element of an array."""

    type: Number | TupleType
    array: ArrayValue
    indices: tuple[Value, ...]
    where: int


class ArrayView(NamedTuple):
    """The part of an array at leading indices."""

    type: ArrayType
    array: ArrayValue
    indices: tuple[Value, ...]
    where: int


class Slice(NamedTuple):
    """A range of the first axis of an array; None for its start or its end."""

    type: ArrayType
    array: ArrayValue
    begin: Value | None
    end: Value | None
    where: int


class Reshape(NamedTuple):
    """The first numbers of an array as an array of a new shape."""

    type: ArrayType
    array: ArrayValue
    shape: tuple[Value, ...]
    where: int


class Allocate(NamedTuple):
    """A new, uninitialized array in the workspace of the call."""

    type: ArrayType
    shape: tuple[Value, ...]


class FromEnd(NamedTuple):
    """An index that counts from the end of an axis if it is negative."""

    at: Value
    length: Value
    type: Number = INT


class Length(NamedTuple):
    """The length of an array along an axis."""

    array: ArrayValue
    axis: int
    type: Number = INT


class Call(NamedTuple):
    """A call of another function of the plan."""

    function: FunctionPlan
    arguments: tuple[Value, ...]

    @property
    def type(self) -> Type:
        return self.function.result


class Special(NamedTuple):
    """A call of a function of this package with its own translation (`special_functions`)."""

    type: Type
    name: str
    arguments: tuple[Value, ...]
    where: int


# statements


class Assign(NamedTuple):
    variable: Variable[Type]
    value: Value


class Store(NamedTuple):
    """Write an element of an array."""

    array: ArrayValue
    indices: tuple[Value, ...]
    value: Value
    where: int


class Fill(NamedTuple):
    """Write one number to all elements of an array."""

    array: ArrayValue
    value: Value


class CopyArray(NamedTuple):
    """Copy all elements of an array to one of the same shape."""

    array: ArrayValue
    source: ArrayValue
    where: int


class Do(NamedTuple):
    """Evaluate an expression for its side effects."""

    value: Value


class If(NamedTuple):
    test: Value
    then: list[Statement]
    otherwise: list[Statement]


class For(NamedTuple):
    """A loop over begin, begin + step ... before end, which are evaluated once."""

    counter: Variable[Number]
    begin: Value
    end: Value
    step: int
    body: list[Statement]


class Rounds(NamedTuple):
    """The iterations of a loop over a tuple; `Continue` goes to the next one, `Break` after the last."""

    rounds: list[list[Statement]]


class While(NamedTuple):
    """A loop: statements, a test that ends it if false, and a body."""

    head: list[Statement]
    test: Value
    body: list[Statement]


class Break(NamedTuple):
    pass


class Continue(NamedTuple):
    pass


class Return(NamedTuple):
    value: Value


Statement = Assign | Store | Fill | CopyArray | Do | If | For | Rounds | While | Break | Continue | Return


class Plan(NamedTuple):
    """All functions, callees first; the last one is the kernel."""

    functions: list[FunctionPlan]
    places: list[tuple[str, int]]  # (file, line), by number
