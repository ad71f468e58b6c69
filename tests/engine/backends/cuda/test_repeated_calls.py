"""Tests of repeated calls: arrays with the layouts of an earlier call are not inspected again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.backends.cuda.host_device import Array, HostDevice, computed, needs_fma, view_of
from engine.kernels import swinging
from featherweight.engine.backends.cuda.libraries import OTHERS

pytestmark = needs_fma

X, Y = np.random.default_rng(0).standard_normal((2, 40, 5))


@pytest.fixture
def looked_at(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of inspected arrays, for a library with few layouts to learn."""
    names: list[str] = []

    def view(x: Any, stream: int, name: str) -> Any:
        names.append(name)
        return view_of(x, stream, name)

    monkeypatch.setattr("featherweight.engine.backends.cuda.libraries.seen", view)
    monkeypatch.setattr(OTHERS, "layout", lambda x: (x.x.shape, x.x.strides, x.x.dtype), raising=False)
    monkeypatch.setattr(OTHERS, "address", lambda x: x.__cuda_array_interface__["data"][0], raising=False)
    return names


def test_the_same_layouts_are_looked_at_once(looked_at: list[str]) -> None:
    f = swinging(5)
    expected = f(X, Y)
    np.testing.assert_array_equal(computed(f, X, Y), expected)
    assert looked_at
    looked_at.clear()
    np.testing.assert_array_equal(computed(f, Y.copy(), X.copy()), f(Y, X))
    assert not looked_at
    np.testing.assert_array_equal(computed(f, X[:7], Y[:7]), expected[:7])
    assert looked_at
    looked_at.clear()
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(computed(f, X[0].astype(dtype), Y), f(X[0].astype(dtype), Y))
    assert looked_at


def test_results_that_share_memory_with_arguments_are_computed_aside(looked_at: list[str]) -> None:
    f = swinging(5)
    rows = np.concatenate([X, Y])
    result = Array(np.empty_like(X))
    for _ in range(2):
        f(Array(X), Array(Y), out=result)
    np.testing.assert_array_equal(result.x, f(X, Y))
    looked_at.clear()
    f(Array(rows[:40]), Array(rows[40:]), out=Array(rows[20:60]))
    assert looked_at
    np.testing.assert_array_equal(rows[20:60], f(X, Y))


def test_what_a_call_refuses_is_refused_again(looked_at: list[str]) -> None:
    f = swinging(5)
    result = Array(np.empty_like(X))
    f(Array(X), Array(Y), out=result)
    wrong: Any = (result,)
    with pytest.raises(ValueError, match="out must be"):
        f(Array(X), Array(Y), out=wrong)
    with pytest.raises(ValueError, match="threads= is for this machine's processors"):
        f(Array(X), Array(Y), out=result, threads=2)
