"""Functions of Python, NumPy and this package that kernels may call and that have no plan, with their translations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...spatial.elementary import sin_and_cos
from . import views
from .arithmetic import binary, truth
from .kernel_types import BOOL, FLOAT, INT, NONE, ArrayType, Number, TableListType, TableType, TupleType, Type
from .machine_calls import call_machine
from .plan import (
    Compare,
    Constant,
    Field,
    Length,
    MakeTuple,
    NumberValue,
    Numeric,
    Reshape,
    Special,
    Static,
    Value,
    is_array,
    is_number,
)
from .planning_state import Planned

Intrinsic = Callable[[Planned, list[Value]], Value]


def number(p: Planned, x: Value, what: str) -> NumberValue:
    """Return the argument, which must be a number."""
    x = p.solid(x)
    if not is_number(x):
        p.fail(f"{what} of {x.type}; a kernel has it for numbers")
    return x


def require(p: Planned, args: list[Value], least: int, most: int, what: str) -> None:
    if not least <= len(args) <= most:
        p.fail(f"{what} with {len(args)} arguments; a kernel has it with {least if least == most else f'{least} to {most}'}")


def extreme(name: str) -> Intrinsic:
    def planned(p: Planned, args: list[Value]) -> Value:
        if len(args) == 1:
            args = list(p.items(args[0])) if isinstance(p.solid(args[0]).type, TupleType) else args
        numbers = [number(p, x, name) for x in args]
        if len(numbers) < 2:
            return numbers[0] if numbers else p.fail(f"{name} of nothing")
        types = {x.type for x in numbers}
        type = FLOAT if FLOAT in types else INT if INT in types else BOOL
        return Numeric(type, name, tuple(p.as_number(x, type) for x in numbers))

    return planned


def of_float(name: str, result: Number = FLOAT) -> Intrinsic:
    """Translate a function of one float."""

    def planned(p: Planned, args: list[Value]) -> Value:
        require(p, args, 1, 1, name)
        if isinstance(args[0], Static) and name in FOLDED:
            return Static(FOLDED[name](args[0].value))
        return Numeric(result, name, (p.as_number(number(p, args[0], name), FLOAT),))

    return planned


FOLDED: dict[str, Callable[[Any], Any]] = {"floor": np.floor, "ceil": np.ceil, "sqrt": math.sqrt}


def to_whole(name: str) -> Intrinsic:
    """Translate `math.floor` and `math.ceil`, which return whole numbers."""

    def planned(p: Planned, args: list[Value]) -> Value:
        require(p, args, 1, 1, name)
        x = number(p, args[0], name)
        return x if x.type == INT else p.as_number(Numeric(FLOAT, name, (p.as_number(x, FLOAT),)), INT)

    return planned


def of_two(name: str) -> Intrinsic:
    """Translate `np.minimum` and `np.maximum`: NaN if either is."""

    def planned(p: Planned, args: list[Value]) -> Value:
        require(p, args, 2, 2, name)
        a, b = (number(p, x, name) for x in args)
        if FLOAT in (a.type, b.type):
            return Numeric(FLOAT, name, (p.as_number(a, FLOAT), p.as_number(b, FLOAT)))
        return Numeric(INT, name[:3], (p.as_number(a, INT), p.as_number(b, INT)))

    return planned


def absolute(p: Planned, args: list[Value]) -> Value:
    require(p, args, 1, 1, "abs")
    x = number(p, args[0], "abs")
    return Numeric(x.type, "abs", (x,)) if x.type != BOOL else p.as_number(x, INT)


def conversion(type: Number) -> Intrinsic:
    def planned(p: Planned, args: list[Value]) -> Value:
        require(p, args, 1, 1, str(type))
        if type == BOOL:
            return p.as_number(truth(p, args[0]), BOOL)
        return p.as_number(number(p, args[0], str(type)), type)

    return planned


def operation(op: str) -> Intrinsic:
    """Translate a function of `operator`."""

    def planned(p: Planned, args: list[Value]) -> Value:
        require(p, args, 2, 2, op)
        return binary(p, op, *args)

    return planned


def length(p: Planned, args: list[Value]) -> Value:
    require(p, args, 1, 1, "len")
    (x,) = args
    if isinstance(x, Static):
        return Static(len(x.value))
    if is_array(x):
        return Length(x, 0)
    if isinstance(x.type, TableListType):
        return Static(x.type.length)
    if not isinstance(x.type, TupleType):
        p.fail(f"the length of {x.type}")
    return Static(len(x.type.items))


def matrix(p: Planned, args: list[Value]) -> Value:
    """Translate `as_matrix`."""
    require(p, args, 3, 3, "as_matrix")
    array, *shape = args
    if not is_array(array) or array.type.axes != 1:
        p.fail(f"as_matrix of {array.type}; it needs an array with 1 axis")
    sizes = tuple(p.as_number(x, INT) for x in shape)
    return Reshape(array.type._replace(axes=2), array, sizes, p.place())


def multiples(p: Planned, args: list[Value]) -> Value:
    """Translate `subtract_multiples`."""
    require(p, args, 6, 7, "subtract_multiples")
    array, *places, factors = args[:6]
    if not is_vector(array.type):
        p.fail(f"subtract_multiples in {array.type}; it needs an array of float64 with 1 axis")
    numbers = [p.as_number(x, INT) for x in places]
    numbers += [p.as_number(x, FLOAT) for x in p.items(factors)]
    return Special(
        NONE, "write_multiples" if starts_from_zero(p, args, 6) else "subtract_multiples", (array, *numbers), p.place()
    )


def product(p: Planned, args: list[Value]) -> Value:
    """Translate `subtract_product`."""
    require(p, args, 5, 6, "subtract_product")
    array, *groups = args[:5]
    if not is_vector(array.type):
        p.fail(f"subtract_product in {array.type}; it needs an array of float64 with 1 axis")
    numbers = [p.as_number(x, INT) for group in groups for x in p.items(group)]
    name = "write_product" if starts_from_zero(p, args, 5) else "subtract_product"
    return Special(NONE, name, (array, *numbers), p.place())


def starts_from_zero(p: Planned, args: list[Value], place: int) -> bool:
    """Return whether rows start as zeros, by the argument at a place, which may be missing."""
    if len(args) == place:
        return False
    given = args[place]
    if not isinstance(given, Static):
        p.fail("from_zero must be known at compilation; write True or False")
    return bool(given.value)


def is_vector(type: Type) -> bool:
    """Return whether a type is an array of float64 with one axis."""
    return isinstance(type, ArrayType) and (type.dtype, type.axes) == ("float64", 1)


def lane_number(p: Planned, args: list[Value]) -> Value:
    """Translate `lane`."""
    require(p, args, 0, 0, "lane")
    return Special(INT, "lane", (), p.place()) if p.specializer.lanes > 1 else Static(0)


def first_number_of_lanes(p: Planned, args: list[Value]) -> Value:
    """Translate `first_of_lanes`."""
    require(p, args, 1, 1, "first_of_lanes")
    x = p.as_number(number(p, args[0], "first_of_lanes"), INT)
    return Special(INT, "first_of_lanes", (x,), p.place()) if p.specializer.lanes > 1 else x


def lane_count(p: Planned, args: list[Value]) -> Value:
    """Translate `lanes`."""
    require(p, args, 0, 0, "lanes")
    return Static(p.specializer.lanes)


def products(p: Planned, args: list[Value]) -> Value:
    """Translate `sum_of_products`."""
    require(p, args, 5, 5, "sum_of_products")
    first, at, second, begin, length = args
    for array in (first, second):
        if not is_vector(array.type):
            p.fail(f"sum_of_products of {array.type}; it needs arrays of float64 with 1 axis")
    numbers = [p.as_number(x, INT) for x in (at, begin, length)]
    return p.bound(Special(FLOAT, "sum_of_products", (first, second, *numbers), p.place()))


def machine(p: Planned, args: list[Value]) -> Value:
    """Translate `call_machine`."""
    require(p, args, 1, 1, "call_machine")
    call = args[0]
    if isinstance(call.type, TableType):
        fields = {name: (inner, at) for name, inner, at in call.type.layout.fields}
        at = fields["pointers"][1]
        fields_of_call = Field(INT, call, fields["address"][1]), Field(ArrayType("int64", 1), call, at)
        return Special(NONE, "call_machine", fields_of_call, p.place())
    return Special(NONE, "call_machine", p.items(p.bound(call))[:2], p.place())


def is_nan(p: Planned, args: list[Value]) -> Value:
    require(p, args, 1, 1, "isnan")
    x = p.bound(p.as_number(number(p, args[0], "isnan"), FLOAT))
    return Compare("!=", x, x)


def is_infinite(p: Planned, args: list[Value]) -> Value:
    require(p, args, 1, 1, "isinf")
    x = p.as_number(number(p, args[0], "isinf"), FLOAT)
    return Compare("==", Numeric(FLOAT, "abs", (x,)), Constant(FLOAT, math.inf))


def tangent(p: Planned, args: list[Value]) -> Value:
    require(p, args, 1, 1, "tan")
    x = p.bound(p.as_number(number(p, args[0], "tan"), FLOAT))
    return binary(p, "/", Numeric(FLOAT, "sin", (x,)), Numeric(FLOAT, "cos", (x,)))


def is_instance(p: Planned, args: list[Value]) -> Value:
    """Translate `isinstance`, which is decided at compilation: for numbers, arrays, named tuples and tables."""
    require(p, args, 2, 2, "isinstance")
    x, classes = args
    if not isinstance(classes, Static):
        p.fail("isinstance of a class that is not known at compilation")
    if isinstance(x, Static):
        return Static(isinstance(x.value, classes.value))
    if isinstance(x.type, TableType):
        kind = x.type.layout.kind
    elif isinstance(x.type, TupleType):
        kind = x.type.kind or tuple
    else:
        kind = {BOOL: bool, INT: int, FLOAT: float}[x.type] if isinstance(x.type, Number) else np.ndarray
    return Static(issubclass(kind, classes.value))


def sine_and_cosine(p: Planned, args: list[Value]) -> Value:
    """Translate `elementary.sin_and_cos`; the machine code is accurate to about one unit in the last place."""
    require(p, args, 1, 1, "sin_and_cos")
    x = p.bound(p.as_number(number(p, args[0], "sin_and_cos"), FLOAT))
    return MakeTuple(TupleType((FLOAT, FLOAT)), (Numeric(FLOAT, "sin", (x,)), Numeric(FLOAT, "cos", (x,))))


INTRINSICS: dict[Any, Intrinsic] = {
    len: length, min: extreme("min"), max: extreme("max"), abs: absolute, np.abs: absolute, math.fabs: of_float("abs"),
    int: conversion(INT), float: conversion(FLOAT), bool: conversion(BOOL),
    math.sqrt: of_float("sqrt"), np.sqrt: of_float("sqrt"), math.sin: of_float("sin"), np.sin: of_float("sin"),
    math.cos: of_float("cos"), np.cos: of_float("cos"), math.tan: tangent, np.tan: tangent,
    math.floor: to_whole("floor"), math.ceil: to_whole("ceil"), np.floor: of_float("floor"), np.ceil: of_float("ceil"),
    math.isfinite: of_float("isfinite", BOOL), np.isfinite: of_float("isfinite", BOOL),
    math.isnan: is_nan, np.isnan: is_nan, math.isinf: is_infinite, np.isinf: is_infinite,
    np.minimum: of_two("minimum"), np.maximum: of_two("maximum"),
    isinstance: is_instance, sin_and_cos: sine_and_cosine, operator.add: operation("+"), operator.sub: operation("-"),
    operator.mul: operation("*"), operator.truediv: operation("/"),
    views.as_matrix: matrix, views.subtract_multiples: multiples, views.subtract_product: product,
    views.sum_of_products: products, views.lane: lane_number, views.lanes: lane_count,
    views.first_of_lanes: first_number_of_lanes, call_machine: machine,
}  # fmt: skip
"""Planners of calls, by the function that is called."""
