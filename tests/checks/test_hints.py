"""Tests of kinds of type hints."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from featherweight.checks import CHECKED_LATER, POSITIVE
from featherweight.checks.hints import kind_of
from featherweight.model.types import JointType

WANTED = {
    "a number": float,
    "a whole number": int,
    "True or False": bool,
    "a name (text) or None": str | None,
    "a positive number": Annotated[float, POSITIVE],
    "a positive number or None": Annotated[float, POSITIVE] | None,
    "an array of real numbers": ArrayLike,
    "an array of real numbers or None": ArrayLike | None,
    "a path": str | os.PathLike[str],
    "2 numbers": tuple[float, float],
    "a list of numbers": tuple[float, ...],
    "a matrix (2, 3) of numbers": tuple[tuple[float, float, float], tuple[float, float, float]],
    "(a name (text), a number)": tuple[str, float],
    "a list of names": Iterable[str],
    "a list of whole numbers": Sequence[int],
    "a dict of names and numbers": Mapping[str, float],
    "a function": Callable[[float], float],
    "a numpy.random.Generator": np.random.Generator,
    "one of revolute, continuous, prismatic, fixed, floating, spherical, planar": JointType | Any,
}


@pytest.mark.parametrize("wanted", WANTED)
def test_hints_say_what_is_wanted(wanted: str) -> None:
    kind = kind_of(WANTED[wanted])
    assert kind is not None and kind.wanted == wanted


@pytest.mark.parametrize("hint", [Any, object, Annotated[float, CHECKED_LATER], Mapping[str, Any] | Any, Iterable[Any]])
def test_some_hints_say_nothing(hint: Any) -> None:
    kind = kind_of(hint)
    assert kind is None or kind.wanted == "a dict of names"
