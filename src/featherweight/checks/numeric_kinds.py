"""Kinds of numbers and arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import chain
from numbers import Integral, Real
from typing import Annotated, Any, SupportsIndex

import numpy as np

from ..array_types import Array
from .kinds import NOTHING, Kind, Refused, argument, either, list_of, shown, tuple_of


def _number(x: Any) -> float:
    if type(x) is float or type(x) is int:
        return x
    if isinstance(x, bool | np.bool_) or not (isinstance(x, Real) or (isinstance(x, np.ndarray) and x.ndim == 0)):
        raise Refused
    if isinstance(x, np.ndarray) and x.dtype.kind not in "fiu":
        raise Refused
    return float(x)


def number_in(wanted: str, low: float = -math.inf, high: float = math.inf, *, ends: str = "[]") -> Kind:
    """Return the kind of numbers from `low` to `high`; round brackets in `ends` leave out an end. NaN is none of them."""

    def convert(x: Any) -> float:
        number = _number(x)
        if not ((low <= number if ends[0] == "[" else low < number) and (number <= high if ends[1] == "]" else number < high)):
            raise Refused
        return number

    return Kind(wanted, convert)


NUMBER = Kind("a number", _number, frozenset({float, int}), several="numbers")
FINITE = number_in("a finite number", ends="()")
POSITIVE = number_in("a positive number", 0.0, ends="()")
NONNEGATIVE = number_in("a finite number, zero or more", 0.0, ends="[)")
BOUND = number_in("zero or more", 0.0)
FRACTION = number_in("a number between 0 and 1", 0.0, 1.0)

Finite = Annotated[float, FINITE]
Positive = Annotated[float, POSITIVE]
NonNegative = Annotated[float, NONNEGATIVE]
Bound = Annotated[float, BOUND]  # infinite where there is none
Fraction = Annotated[float, FRACTION]


def whole(least: int | None = None, most: float = math.inf) -> Kind:
    """Return the kind of whole numbers, of at least `least` and at most `most`."""

    def convert(x: Any) -> int:
        if isinstance(x, bool | np.bool_) or not isinstance(x, Integral):
            raise Refused
        number = int(x)
        if least is not None and not least <= number <= most:
            raise Refused
        return number

    return Kind("a whole number" if least is None else f"a whole number of at least {least}", convert, several="whole numbers")


WHOLE = whole()._replace(fits=frozenset({int}))

Count = Annotated[int, whole(0)]
PositiveCount = Annotated[int, whole(1)]


def numbers(n: int | None = None, wanted: str = "") -> Kind:
    """Return the kind of tuples of n numbers, made of arrays and lists too; of any count by default."""

    def convert(x: Any) -> tuple[float, ...]:
        if type(x) is tuple and (n is None or len(x) == n) and _PLAIN.issuperset(map(type, x)):
            return x
        if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "fiu":
            x = x.tolist()
        if not isinstance(x, tuple | list) or (n is not None and len(x) != n):
            raise Refused
        return tuple(map(_number, x))

    what = wanted or ("a list of numbers" if n is None else f"{n} numbers")
    return Kind(what, convert, several=f"tuples of {n} numbers" if n else "lists of numbers")


_PLAIN, _ROWS = frozenset({float, int}), frozenset({tuple})
NUMBERS = numbers()


def _one_or_several(x: Any) -> tuple[float, ...]:
    try:
        return (_number(x),)
    except Refused:
        return NUMBERS.convert(x)


ONE_OR_SEVERAL = Kind("a number or a list of numbers", _one_or_several, several="numbers")


def rows_of_numbers(m: int, n: int) -> Kind:
    """Return the kind of m tuples of n numbers, made of arrays and lists too."""
    row, lengths = numbers(n), [n] * m

    def convert(x: Any) -> tuple[tuple[float, ...], ...]:
        if isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind in "fiu":
            x = x.tolist()
        if not isinstance(x, tuple | list) or len(x) != m:
            raise Refused
        rows = type(x) is tuple and _ROWS.issuperset(map(type, x)) and [*map(len, x)] == lengths
        whole: Any = x
        return whole if rows and _PLAIN.issuperset(map(type, chain.from_iterable(x))) else tuple(map(row.convert, x))

    return Kind(f"a matrix ({m}, {n}) of numbers", convert)


def _real_array(x: Any) -> Any:
    """Return an array, or what NumPy can make one of, as it is."""
    if isinstance(x, np.ndarray | np.generic):
        if x.dtype.kind not in "fiu" and not (x.dtype.kind == "b" and x.ndim):
            raise Refused
    elif isinstance(x, Sequence) and not isinstance(x, str | bytes | bytearray):
        try:
            made = np.asarray(x)
        except ValueError:  # rows of different lengths
            raise Refused("; give rows of one length") from None
        if made.dtype.kind not in "fiub":
            raise Refused
    elif isinstance(x, bool) or not (isinstance(x, Real) or any(hasattr(x, way) for way in _ARRAYS)) or isinstance(x, type):
        raise Refused
    return x


_ARRAYS = ("__array__", "__dlpack__", "__array_interface__", "__cuda_array_interface__", "__buffer__")

ARRAY = Kind("an array of real numbers", _real_array)


def array_of(what: str, x: object, *shape: int | str, finite: bool = True) -> Array:
    """Return an array in double precision, of a shape in which letters stand for any lengths, and "..." for any leading axes.

    Raises ValueError, which begins with `what`.
    """
    made = real_array(what, x)
    last = shape[1:] if shape[:1] == ("...",) else shape
    right = made.ndim >= len(last) if last is not shape else made.ndim == len(last)
    right = right and all(isinstance(n, str) or n == m for n, m in zip(last[::-1], made.shape[::-1], strict=False))
    if not right:
        size = ", ".join(map(str, shape)) + "," * (len(shape) == 1)
        raise ValueError(f"{what} must be {'finite ' * finite}numbers of shape ({size}); got shape {made.shape}")
    if finite and not np.isfinite(made).all():
        raise ValueError(f"{what} must be finite numbers; got {shown(made) if made.size <= 4 else 'some that are not'}")
    return made


def real_array(what: str, x: object) -> Array:
    """Return an array in double precision. Raises ValueError, which begins with `what`, for no array of real numbers."""
    return np.asarray(argument(what, x, ARRAY), dtype=np.float64)


def generator(what: str, rng: object) -> np.random.Generator:
    """Return a generator, which is given or has a seed. Raises ValueError, which begins with `what`, for others."""
    return np.random.default_rng(argument(what, rng, SEED_OR_NONE))


@functools.cache
def _sources() -> tuple[type, ...]:
    """Return the classes of generators; NumPy loads them only when they are used."""
    return np.random.Generator, np.random.BitGenerator, np.random.SeedSequence


def _seed(x: Any) -> Any:
    return x if isinstance(x, _sources()) else whole(0).convert(x)


SEED = Kind("a seed (a whole number of at least 0) or a numpy.random.Generator", _seed)
SEED_OR_NONE = Kind(f"{SEED.wanted}, or None", lambda x: None if x is None else _seed(x))

# texts, because NumPy loads its generators only when they are used
Seed = Annotated["np.random.Generator | int", SEED]
SeedOrNone = Annotated["np.random.Generator | int | None", SEED_OR_NONE]


SIZE = either([whole(0), list_of(whole(0)), NOTHING]).worded("a whole number of at least 0, such numbers in a list, or None")

Size = Annotated[SupportsIndex | Sequence[SupportsIndex] | None, SIZE]

PixelSize = Annotated[tuple[int, int], tuple_of(whole(1), whole(1)).worded("(width, height) in pixels, both positive")]


def check_labels(what: str, x: Any, labels: Sequence[str]) -> None:
    """Raise ValueError for a table of pandas, or a series, whose names are labels of other places than theirs.

    NumPy would read its columns by their order alone.

    `labels` are the names of the numbers along the last axis, "" for those without one. Other names are ignored, and so are
    names of tables with another number of columns, which raise an error by their shape.
    """
    named = getattr(x, "columns", None)
    if named is None and getattr(x, "ndim", None) == 1:
        named = getattr(x, "index", None)
    if named is None or callable(named):
        return
    names = [*named]
    if len(names) != len(labels):
        return
    for k, name in enumerate(names):
        if isinstance(name, str) and name and name in labels and labels[k] != name:
            right = [x for x in labels if x]
            raise ValueError(
                f"{what}: column {k} is {name!r}, which belongs in column {labels.index(name)}, because numbers are read in "
                f"the order of the robot's joints; select the columns in this order: {right}"
            )
