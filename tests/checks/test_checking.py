"""Tests of functions and classes that check their arguments."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from featherweight.checks import Positive, checked


@checked
def scaled(x: tuple[float, ...], factor: Positive = 1.0, *, name: str | None = None, **options: Any) -> Any:
    """Return numbers times a factor."""
    return (*(a * factor for a in x), name, options)


@checked
def drawn(width: int, height: int = 2) -> tuple[int, int]:
    """Return the size of a picture."""
    return width, height


@checked
@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel."""

    name: str
    radius: Positive = 1.0
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)


@checked
@dataclass(frozen=True)
class Tyre(Wheel):
    """A wheel with air in it."""

    pressure: Positive = 2.0


@checked
class Spoke(NamedTuple):
    """A spoke of a wheel."""

    length: Positive
    holes: tuple[int, int] = (1, 2)


class Cart:
    """A cart with wheels."""

    @checked
    def __init__(self, wheels: int = 2) -> None:
        self.wheels = wheels

    @checked
    def roll(self, far: Positive) -> float:
        return far

    @staticmethod
    @checked
    def made_of(wheels: int) -> Cart:
        return Cart(wheels)


here: Any = sys.modules[__name__]  # untyped, because type checkers would report the mistakes


def test_arguments_are_converted() -> None:
    assert here.scaled(np.array([1.0, 2.0]), factor=np.float64(2.0), name="a", more=3) == (2.0, 4.0, "a", {"more": 3})
    assert here.Wheel("w", axis=[0, 1, 0]).axis == (0, 1, 0)
    assert here.Spoke(1.0, np.array([3, 4])).holes == (3, 4)
    assert here.Tyre("t", 1.0, np.zeros(3)).axis == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: here.scaled(1.0), ValueError, "scaled: x must be a list of numbers; got 1.0"),
        (lambda: here.scaled((), -1.0), ValueError, "scaled: factor must be a positive number; got -1.0"),
        (lambda: here.scaled((), name=3), TypeError, "scaled: name must be a name (text) or None; got 3"),
        (lambda: here.drawn(1, heigt=3), TypeError, "drawn has no argument 'heigt' (is it 'height'?); it takes width, height"),
        (lambda: here.drawn(), TypeError, "drawn takes width, height; missing: width"),
        (lambda: here.drawn(1, 2, 3), TypeError, "drawn takes width, height; got 3 arguments by position"),
        (lambda: here.Wheel("w", 0.0), ValueError, "Wheel 'w': radius must be a positive number; got 0.0"),
        (lambda: here.Wheel(3), TypeError, "Wheel: name must be a name (text); got 3"),
        (lambda: here.Wheel("w", radus=1.0), TypeError, "Wheel has no argument 'radus' (is it 'radius'?)"),
        (lambda: replace(here.Wheel("w"), axis=1.0), ValueError, "Wheel 'w': axis must be 3 numbers; got 1.0"),
        (lambda: here.Tyre("t", pressure=-1.0), ValueError, "Tyre 't': pressure must be a positive number; got -1.0"),
        (lambda: here.Spoke(), TypeError, "Spoke takes length, holes; missing: length"),
        (lambda: here.Spoke(1.0)._replace(length=-1.0), ValueError, "Spoke: length must be a positive number; got -1.0"),
        (lambda: here.Cart("two"), ValueError, "Cart: wheels must be a whole number; got 'two'"),
        (lambda: here.Cart().roll(-1.0), ValueError, "Cart.roll: far must be a positive number; got -1.0"),
        (lambda: here.Cart().roll(fra=1.0), TypeError, "Cart.roll has no argument 'fra' (is it 'far'?); it takes far"),
        (lambda: here.Cart.made_of(1.5), ValueError, "made_of: wheels must be a whole number; got 1.5"),
    ],
)
def test_wrong_arguments_are_named(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert said in str(caught.value)


def test_an_error_inside_is_not_taken_for_a_wrong_call() -> None:
    @checked
    def broken(x: int) -> int:
        return x + "1"  # type: ignore[operator]

    with pytest.raises(TypeError, match="unsupported operand"):
        broken(1)


def test_defaults_are_not_checked() -> None:
    @checked
    def late(x: Positive = -1.0) -> float:
        return x

    assert late() == -1.0


def test_what_checks_looks_as_before() -> None:
    assert [*inspect.signature(scaled).parameters] == ["x", "factor", "name", "options"]
    assert scaled.__doc__ == "Return numbers times a factor." and Wheel.__doc__ == "A wheel."
    assert [f.name for f in fields(Wheel)] == ["name", "radius", "axis"] and Spoke._fields == ("length", "holes")
    wheel, spoke = Wheel("w", 2.0), Spoke(1.0)
    assert copy.deepcopy(wheel) == wheel == pickle.loads(pickle.dumps(wheel)) and hash(wheel) == hash(Wheel("w", 2.0))
    assert copy.deepcopy(spoke) == spoke == pickle.loads(pickle.dumps(spoke)) and (*spoke,) == (1.0, (1, 2))
