"""Kinds of arguments: what a value may be, and how another value with an obvious meaning becomes one."""

from __future__ import annotations

import math
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import chain
from numbers import Integral, Real
from typing import Annotated, Any, NamedTuple, SupportsIndex

import numpy as np

from ..array_types import Array
from ..names import hint, listed

SHOWN = 60  # characters of a value in a message


class Refused(Exception):
    """Raised by a kind for a value that it does not take, with a note for the end of the message, or with other wanted text."""

    def __init__(self, note: str = "", wanted: str = "") -> None:
        self.note, self.wanted = note, wanted

    def message(self, what: str, kind: Kind, x: object) -> str:
        """Return the message about a value, which begins with the argument."""
        return f"{what} must be {self.wanted or kind.wanted}; got {shown(x)}{self.note}"


class Kind(NamedTuple):
    """The values that an argument may have.

    `wanted` names them in messages, `convert` makes one of another value or raises `Refused`, and objects of the types `fits`
    are taken as they are.
    """

    wanted: str
    convert: Callable[[Any], Any]
    fits: frozenset[type] = frozenset()
    error: type[Exception] = ValueError
    several: str = ""  # the text for a list of them


def argument(what: str, x: object, kind: Kind) -> Any:
    """Return a value as its kind has it. Raises the kind's error, which begins with `what`."""
    if type(x) in kind.fits:
        return x
    try:
        return kind.convert(x)
    except Refused as refused:
        raise kind.error(refused.message(what, kind, x)) from None


_SHOWN_AS_THEY_ARE = str, bytes, Real, complex, list, tuple, dict, set, np.generic, np.ndarray, os.PathLike


def shown(x: object) -> str:
    """Return a value in a few words, for a message."""
    if isinstance(x, np.ndarray) and (x.size > 4 or x.dtype.kind not in "fiub"):
        return f"an array of shape {x.shape}" + (f" and type {x.dtype}" if x.dtype.kind not in "fiub" else "")
    if isinstance(x, type):
        return f"the class {x.__name__}"
    x = x.item() if isinstance(x, np.generic) else x
    if x is None or isinstance(x, _SHOWN_AS_THEY_ARE):
        said = " ".join(repr(x).split())
        return said if len(said) <= SHOWN else f"{said[: SHOWN - 3]}..."
    name = getattr(x, "__name__", None) or getattr(x, "name", None)
    return f"{type(x).__name__} {name!r}" if isinstance(name, str) else f"{type(x).__name__} object"


# --- numbers


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
        return NUMBERS.convert(x)  # type: ignore[no-any-return]


ONE_OR_SEVERAL = Kind("a number or a list of numbers", _one_or_several, several="numbers")


def rows_of_numbers(m: int, n: int, wanted: str = "") -> Kind:
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

    return Kind(wanted or f"a matrix ({m}, {n}) of numbers", convert)


def _same(a: object, b: object) -> bool:
    return a is b


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


def _seed(x: Any) -> Any:
    return x if isinstance(x, np.random.Generator | np.random.BitGenerator | np.random.SeedSequence) else whole(0).convert(x)


SEED = Kind("a seed (a whole number of at least 0) or a numpy.random.Generator", _seed)
SEED_OR_NONE = Kind(f"{SEED.wanted}, or None", lambda x: None if x is None else _seed(x))

# texts, because NumPy loads its generators only when they are used
Seed = Annotated["np.random.Generator | int", SEED]
SeedOrNone = Annotated["np.random.Generator | int | None", SEED_OR_NONE]


# --- texts, switches, choices, lists


def _switch(x: Any) -> bool:
    if not isinstance(x, np.bool_):
        raise Refused
    return bool(x)


def _text(x: Any) -> str:
    if not isinstance(x, str):
        raise Refused
    return x


def _path(x: Any) -> Any:
    if not isinstance(x, str | os.PathLike):
        raise Refused
    return x


def _function(x: Any) -> Any:
    if not callable(x):
        raise Refused
    return x


def _mapping(x: Any) -> Any:
    if not isinstance(x, Mapping):
        raise Refused
    return x


SWITCH = Kind("True or False", _switch, frozenset({bool}), TypeError)
NAME = Kind("a name (text)", _text, frozenset({str}), TypeError, "names")
PATH = Kind("a path", _path, frozenset({str}), TypeError, "paths")
FUNCTION = Kind("a function", _function, frozenset({types.FunctionType, types.MethodType}), TypeError, "functions")
BY_NAME = Kind("a dict", _mapping, frozenset({dict}), TypeError)


def _nothing(x: Any) -> None:
    raise Refused


NOTHING = Kind("None", _nothing, frozenset({type(None)}), TypeError)


def one_of(choices: Collection[Any]) -> Kind:
    """Return the kind of some values, such as names."""

    def convert(x: Any) -> Any:
        for choice in choices:
            if x is choice or (isinstance(x, str) and isinstance(choice, str) and x == choice):
                return choice
        raise Refused(hint(x, [c for c in choices if isinstance(c, str)]) if isinstance(x, str) else "")

    return Kind(f"one of {', '.join(map(str, choices))}", convert)


def member_of(members: type[Enum]) -> Kind:
    """Return the kind of the members of an enumeration, and of the texts that are their values."""
    names = [str(m.value) for m in members]

    def convert(x: Any) -> Any:
        if not isinstance(x, str) or x not in names:
            other = VALUES_HERE.get(x) if isinstance(x, str) else None
            raise Refused(f"; here it is {other!r}" if other in names else hint(x, names) if isinstance(x, str) else "")
        return members(x)

    return Kind(f"one of {listed(names)}", convert, frozenset({members}), several=f"members of {members.__name__}")


VALUES_HERE = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "floating"}
"""Words of MuJoCo for members of enumerations, and ours."""


def list_of(item: Kind, length: int | None = None) -> Kind:
    """Return the kind of tuples of items of a kind, made of lists and other iterables too."""

    def convert(x: Any) -> tuple[Any, ...]:
        if not isinstance(x, list | tuple | np.ndarray) or hasattr(x, "_fields"):
            if _takes(item, x):
                raise Refused("; put it into a list" + (f": [{x!r}]" if isinstance(x, str) else ""))
            if isinstance(x, str | bytes | Mapping) or not isinstance(x, Iterable):
                raise Refused
        if isinstance(x, np.ndarray) and x.ndim == 0:
            raise Refused
        items = tuple(x)
        if length is not None and len(items) != length:
            raise Refused
        if item.fits.issuperset(map(type, items)):
            return x if isinstance(x, tuple) else items
        for k, one in enumerate(items):
            if not _takes(item, one):
                raise Refused(f", whose item {k} is {shown(one)}")
        return tuple(map(item.convert, items))

    count = "a list of" if length is None else f"{length}"
    return Kind(f"{count} {item.several or item.wanted}", convert, error=item.error, several=f"lists of {item.several}")


def tuple_of(*items: Kind) -> Kind:
    """Return the kind of tuples with an item of each kind."""

    def convert(x: Any) -> tuple[Any, ...]:
        if not (isinstance(x, tuple | list) or (isinstance(x, np.ndarray) and x.ndim)) or len(x) != len(items):
            raise Refused
        made = tuple(y if type(y) in kind.fits else kind.convert(y) for kind, y in zip(items, x, strict=True))
        return x if type(x) is tuple and all(map(_same, x, made)) else made

    wanted = f"({', '.join(kind.wanted for kind in items)})"
    return Kind(wanted, convert, several=wanted)


def pairs_by_name(value: Kind) -> Kind:
    """Return the kind of tuples of pairs (name, value), made of dicts and lists of pairs too."""
    pairs = list_of(tuple_of(NAME, value))

    def convert(x: Any) -> Any:
        return pairs.convert(tuple(x.items()) if isinstance(x, Mapping) else x)

    return Kind(f"a dict of names and {value.several}, or a list of such pairs", convert)


def dict_of(key: Kind | None, value: Kind | None) -> Kind:
    """Return the kind of dicts with keys and values of these kinds."""

    def convert(x: Any) -> Mapping[Any, Any]:
        if not isinstance(x, Mapping):
            raise Refused
        for name, one in x.items():
            if (key and not _takes(key, name)) or (value and not _takes(value, one)):
                raise Refused(f", which has {shown(name)}: {shown(one)}")
        if (key and key.fits.issuperset(map(type, x))) and (value is None or value.fits.issuperset(map(type, x.values()))):
            return x
        return {name: one if value is None or type(one) in value.fits else value.convert(one) for name, one in x.items()}

    what = " and ".join(kind.several or kind.wanted for kind in (key, value) if kind)
    return Kind(f"a dict of {what}" if what else "a dict", convert, error=TypeError)


def _takes(kind: Kind, x: object) -> bool:
    if type(x) in kind.fits:
        return True
    try:
        kind.convert(x)
    except Refused:
        return False
    return True


# --- objects


def object_of(cls: type) -> Kind:
    """Return the kind of the objects of a class."""

    def convert(x: Any) -> Any:
        if not isinstance(x, cls):
            raise Refused(_advice(cls.__name__, x))
        return x

    own = cls.__module__.partition(".")[0] == __name__.partition(".")[0]
    name = f"featherweight.{cls.__name__}(...)" if own else cls.__name__
    return Kind(MADE_BY.get(cls.__name__, f"a {name}"), convert, frozenset({cls}), TypeError, name)


_ROBOT = "a Robot, as featherweight.load returns it"
MADE_BY = {
    "Robot": _ROBOT,
    "System": _ROBOT,
    "Contents": "a Description, as featherweight.read returns it",
    "Description": "a Description, as featherweight.read returns it",
    "Generator": "a numpy.random.Generator",
    "CompiledFunction": "a function of a robot, such as robot.mass_matrix",
    "Plan": "a Plan, as OptimalControl.solve returns it",
    "Regressor": "a Regressor, as Robot.extended_regressor returns it",
    "Distances": "Distances, as Robot.distances returns them",
    "Trajectory": "a Trajectory, as Simulation.run returns it",
    "Constraint": "a featherweight.BilateralContact(...), CenterOfMass, Difference or JacobianRows",
    "IkTask": "a FrameTask, CenterOfMassTask, PostureTask or ClearanceTask",
}
"""Classes whose objects users get from functions, or have of a class under it, and the words for them."""


def _advice(wanted: str, x: object) -> str:
    """Return the end of a message about an object of another class: what to write instead."""
    found = type(x).__name__
    if wanted in ("Robot", "System") and isinstance(x, str | os.PathLike):
        return f"; load it: featherweight.load({os.fspath(x)!r})"
    if wanted in ("Robot", "System") and found == "Description":
        return "; build it: featherweight.build(description)"
    if wanted in ("Description", "Contents") and isinstance(x, str | os.PathLike):
        return f"; read it: featherweight.read({os.fspath(x)!r})"
    if wanted in ("Description", "Contents") and found in ("Robot", "ClosedRobot"):
        return "; give the description from which it was built"
    return ""


def either(kinds: Sequence[Kind]) -> Kind:
    """Return the kind of values that one of several kinds takes; the first that does converts it."""
    *before, last = [kind.wanted for kind in kinds]

    def convert(x: Any) -> Any:
        refusals = []
        for kind in kinds:
            if type(x) in kind.fits:
                return x
            try:
                return kind.convert(x)
            except Refused as refused:
                refusals.append(refused)
        raise max(refusals, key=lambda refused: len(refused.note + refused.wanted))

    errors = {kind.error for kind in kinds}
    fits = frozenset[type]().union(*(kind.fits for kind in kinds))
    error = TypeError if errors == {TypeError} else ValueError
    several = " or ".join(filter(None, (kind.several for kind in kinds)))
    joined = f"{', '.join(before)}{',' * (' or ' in ''.join(before))} or {last}" if before else last
    return Kind(joined, convert, fits, error, several)


SIZE = either([whole(0), list_of(whole(0))])._replace(wanted="a whole number of at least 0, such numbers in a list, or None")

Size = Annotated[SupportsIndex | Sequence[SupportsIndex] | None, either([SIZE, NOTHING])._replace(wanted=SIZE.wanted)]

PixelSize = Annotated[tuple[int, int], tuple_of(whole(1), whole(1))._replace(wanted="(width, height) in pixels, both positive")]
