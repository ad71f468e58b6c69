"""Kinds of arguments: what a value may be, and how another value with an obvious meaning becomes one."""

from __future__ import annotations

import operator
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from ..names import listed, suggestion

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

    def worded(self, wanted: str) -> Kind:
        """Return the kind with other words."""
        return self._replace(wanted=wanted)


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


# --- texts, switches, choices, lists


def _switch(x: Any) -> bool:
    if not isinstance(x, np.bool_):
        raise Refused
    return bool(x)


def _where(test: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """Return the conversion that takes values as they are if they pass a test."""

    def convert(x: Any) -> Any:
        if not test(x):
            raise Refused
        return x

    return convert


SWITCH = Kind("True or False", _switch, frozenset({bool}), TypeError)
NAME = Kind("a name (text)", _where(lambda x: isinstance(x, str)), frozenset({str}), TypeError, "names")
PATH = Kind("a path", _where(lambda x: isinstance(x, str | os.PathLike)), frozenset({str}), TypeError, "paths")
FUNCTION = Kind("a function", _where(callable), frozenset({types.FunctionType, types.MethodType}), TypeError, "functions")


NOTHING = Kind("None", _where(lambda x: x is None), frozenset({type(None)}), TypeError)


def one_of(choices: Collection[Any]) -> Kind:
    """Return the kind of some values, such as names."""

    def convert(x: Any) -> Any:
        for choice in choices:
            if x is choice or (isinstance(x, str) and isinstance(choice, str) and x == choice):
                return choice
        raise Refused(suggestion(x, [c for c in choices if isinstance(c, str)]) if isinstance(x, str) else "")

    return Kind(f"one of {', '.join(map(str, choices))}", convert)


def member_of(members: type[Enum]) -> Kind:
    """Return the kind of the members of an enumeration, and of the texts that are their values."""
    names = [str(m.value) for m in members]

    def convert(x: Any) -> Any:
        if not isinstance(x, str) or x not in names:
            other = VALUES_HERE.get(x) if isinstance(x, str) else None
            raise Refused(f"; here it is {other!r}" if other in names else suggestion(x, names) if isinstance(x, str) else "")
        return members(x)

    return Kind(f"one of {listed(names)}", convert, frozenset({members}), several=f"members of {members.__name__}")


VALUES_HERE = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "floating"}
"""Words of MuJoCo for members of enumerations, and ours."""


def list_of(item: Kind) -> Kind:
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
        if item.fits.issuperset(map(type, items)):
            return x if isinstance(x, tuple) else items
        for k, one in enumerate(items):
            if not _takes(item, one):
                raise Refused(f", whose item {k} is {shown(one)}")
        return tuple(map(item.convert, items))

    return Kind(f"a list of {item.several or item.wanted}", convert, error=item.error, several=f"lists of {item.several}")


def tuple_of(*items: Kind) -> Kind:
    """Return the kind of tuples with an item of each kind."""

    def convert(x: Any) -> tuple[Any, ...]:
        if not (isinstance(x, tuple | list) or (isinstance(x, np.ndarray) and x.ndim)) or len(x) != len(items):
            raise Refused
        made = tuple(y if type(y) in kind.fits else kind.convert(y) for kind, y in zip(items, x, strict=True))
        return x if type(x) is tuple and all(map(operator.is_, x, made)) else made

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
