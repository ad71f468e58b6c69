"""Tests of kinds of arguments."""

from __future__ import annotations

import math
from collections import deque
from enum import StrEnum
from typing import Any

import numpy as np
import pytest

from featherweight.checks import (
    ARRAY,
    FINITE,
    FRACTION,
    NAME,
    NONNEGATIVE,
    NOTHING,
    NUMBER,
    ONE_OR_SEVERAL,
    POSITIVE,
    SWITCH,
    Kind,
    argument,
    array_of,
    dict_of,
    either,
    generator,
    list_of,
    member_of,
    number_in,
    numbers,
    object_of,
    one_of,
    pairs_by_name,
    real_array,
    rows_of_numbers,
    shown,
    tuple_of,
    whole,
)


class Metal(StrEnum):
    """Metals of springs."""

    STEEL = "steel"
    BRASS = "brass"


TAKEN: list[tuple[Kind, Any, Any]] = [
    (NUMBER, np.float32(0.5), 0.5),
    (NUMBER, np.array(2), 2.0),
    (NUMBER, math.nan, math.nan),
    (FINITE, 3, 3),
    (POSITIVE, 1e-300, 1e-300),
    (NONNEGATIVE, 0.0, 0.0),
    (FRACTION, 1, 1),
    (number_in("x", 0.0, 1.0, ends="(]"), 1.0, 1.0),
    (whole(1, 3), np.int64(3), 3),
    (numbers(3), np.arange(3), (0, 1, 2)),
    (numbers(), [], ()),
    (ONE_OR_SEVERAL, 2.0, (2.0,)),
    (ONE_OR_SEVERAL, [2.0, 3.0], (2.0, 3.0)),
    (rows_of_numbers(2, 2), np.eye(2), ((1.0, 0.0), (0.0, 1.0))),
    (SWITCH, np.True_, True),
    (member_of(Metal), "steel", Metal.STEEL),
    (one_of(("below", None)), None, None),
    (list_of(NAME), {"a": 1}.keys(), ("a",)),
    (list_of(whole()), (k for k in range(2)), (0, 1)),
    (tuple_of(NAME, NUMBER), ["a", 1.0], ("a", 1.0)),
    (pairs_by_name(NUMBER), {"a": 1.0}, (("a", 1.0),)),
    (pairs_by_name(NUMBER), [("a", np.float64(1.0))], (("a", 1.0),)),
    (dict_of(NAME, ONE_OR_SEVERAL), {"a": 1.0}, {"a": (1.0,)}),
    (either([NUMBER, NAME, NOTHING]), None, None),
    (object_of(np.ndarray), np.zeros(0), np.zeros(0)),
]


@pytest.mark.parametrize(("kind", "given", "made"), TAKEN)
def test_what_a_kind_takes(kind: Kind, given: Any, made: Any) -> None:
    result = argument("x", given, kind)
    assert type(result) is type(made)
    np.testing.assert_equal(result, made)


REFUSED: list[tuple[Kind, Any, type[Exception], str]] = [
    (NUMBER, True, ValueError, "x must be a number; got True"),
    (NUMBER, "1", ValueError, "got '1'"),
    (NUMBER, np.array(1j), ValueError, "got"),
    (FINITE, math.inf, ValueError, "x must be a finite number; got inf"),
    (FINITE, math.nan, ValueError, "got nan"),
    (POSITIVE, 0.0, ValueError, "x must be a positive number; got 0.0"),
    (NONNEGATIVE, -1, ValueError, "x must be a finite number, zero or more; got -1"),
    (FRACTION, 1.5, ValueError, "x must be a number between 0 and 1; got 1.5"),
    (whole(1), 0, ValueError, "x must be a whole number of at least 1; got 0"),
    (whole(1, 3), 4, ValueError, "got 4"),
    (whole(), 1.0, ValueError, "x must be a whole number; got 1.0"),
    (whole(), True, ValueError, "got True"),
    (numbers(3), (1.0, 2.0), ValueError, "x must be 3 numbers; got (1.0, 2.0)"),
    (numbers(3), 1.0, ValueError, "got 1.0"),
    (numbers(1), "1", ValueError, "got '1'"),
    (rows_of_numbers(2, 2), np.eye(3), ValueError, "x must be a matrix (2, 2) of numbers; got an array of shape (3, 3)"),
    (SWITCH, 1, TypeError, "x must be True or False; got 1"),
    (NAME, None, TypeError, "x must be a name (text); got None"),
    (member_of(Metal), "stel", ValueError, "x must be one of steel, brass; got 'stel' (is it 'steel'?)"),
    (one_of(("below", None)), "belwo", ValueError, "got 'belwo' (is it 'below'?)"),
    (list_of(NAME), "a", TypeError, "x must be a list of names; got 'a'; put it into a list: ['a']"),
    (list_of(NAME), ["a", 1], TypeError, "got ['a', 1], whose item 1 is 1"),
    (list_of(NUMBER), 3, ValueError, "got 3; put it into a list"),
    (tuple_of(NAME, NUMBER), ("a",), ValueError, "x must be (a name (text), a number); got ('a',)"),
    (dict_of(NAME, NUMBER), [1], TypeError, "x must be a dict of names and numbers; got [1]"),
    (dict_of(NAME, NUMBER), {"a": "b"}, TypeError, "got {'a': 'b'}, which has 'a': 'b'"),
    (either([NUMBER, NOTHING]), "a", ValueError, "x must be a number or None; got 'a'"),
    (either([NONNEGATIVE, NOTHING]), "a", ValueError, "x must be a finite number, zero or more, or None; got 'a'"),
    (object_of(deque), dict, TypeError, "x must be a deque; got the class dict"),
    (ARRAY, "ab", ValueError, "x must be an array of real numbers; got 'ab'"),
    (ARRAY, [[1.0], [1.0, 2.0]], ValueError, "give rows of one length"),
    (ARRAY, np.array(["a"]), ValueError, "got an array of shape (1,) and type <U1"),
    (ARRAY, None, ValueError, "got None"),
]


@pytest.mark.parametrize(("kind", "given", "error", "said"), REFUSED)
def test_what_a_kind_refuses(kind: Kind, given: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        argument("x", given, kind)
    assert said in str(caught.value)


def test_tuples_that_fit_are_not_made_again() -> None:
    rows, names = ((1.0, 0.0), (0.0, 1.0)), ("a", "b")
    assert argument("x", rows, rows_of_numbers(2, 2)) is rows
    assert argument("x", names, list_of(NAME)) is names
    assert argument("x", rows[0], numbers(2)) is rows[0]


@pytest.mark.parametrize("given", [range(3), deque([0, 1, 2]), memoryview(bytes([0, 1, 2])), np.arange(3), [0, 1, 2]])
def test_arrays_are_made_of_sequences(given: Any) -> None:
    np.testing.assert_array_equal(array_of("x", given, 3), [0.0, 1.0, 2.0])


def test_shapes_have_letters_and_leading_axes() -> None:
    assert array_of("x", np.zeros((4, 3)), "n", 3).shape == (4, 3)
    assert array_of("x", np.zeros((2, 4, 3)), "...", 3).shape == (2, 4, 3)
    with pytest.raises(ValueError, match=r"x must be finite numbers of shape \(n, 3\); got shape \(3,\)"):
        array_of("x", np.zeros(3), "n", 3)
    with pytest.raises(ValueError, match=r"x must be finite numbers; got some that are not"):
        array_of("x", np.full(5, np.nan), 5)
    assert np.isnan(array_of("x", [np.nan], 1, finite=False)).all()
    assert real_array("x", 1).dtype == np.float64


def test_generators_have_seeds() -> None:
    rng = np.random.default_rng(0)
    assert generator("rng", rng) is rng
    assert generator("rng", 3).integers(100) == np.random.default_rng(3).integers(100)
    with pytest.raises(ValueError, match=r"rng must be a seed .* or a numpy.random.Generator, or None; got 'a'"):
        generator("rng", "a")


def test_values_in_messages_are_short() -> None:
    assert shown(np.arange(3.0)) == "array([0., 1., 2.])" and shown(np.float64(0.5)) == "0.5"
    assert shown(np.zeros((5, 5))) == "an array of shape (5, 5)"
    assert len(shown([1.0] * 100)) <= 60 and shown(list) == "the class list" and shown(object()) == "object object"
