"""Functions that Python calls by the vectorcall protocol are objects like others."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from engine.kernels import expected, swinging
from featherweight import se3
from featherweight.engine.backends.llvm.python_objects import layouts_known
from featherweight.engine.function import CompiledFunction

if not layouts_known():
    pytest.skip("functions have no entries in this Python", allow_module_level=True)

X, Y = np.random.default_rng(0).standard_normal((2, 4))


def test_functions_share_a_class_whose_name_is_that_of_functions() -> None:
    f, g = swinging(4), swinging(4)
    f(X, Y)
    g(X, Y)
    assert type(f) is type(g) is not CompiledFunction
    assert (type(f).__name__, type(f).__module__) == (CompiledFunction.__name__, CompiledFunction.__module__)
    assert isinstance(f, CompiledFunction) and callable(f)


def test_subclasses_keep_calls_of_their_own() -> None:
    T = se3.exp(np.arange(6.0) / 10.0)
    two = se3.compose(T, T)
    np.testing.assert_allclose(se3.compose(T, T, T), se3.compose(two, T), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(se3.compose(T), T)


def test_all_ways_to_call_are_equal() -> None:
    f = swinging(4)
    f(X, Y)
    wanted = expected(X, Y)
    for result in (f(X, Y), f(*(X, Y)), f(x=X, y=Y), f(X, y=Y), f.__call__(X, Y), type(f).__call__(f, X, Y)):
        np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-15)
    assert next(map(f, [X], [Y])).shape == (4,)


def test_a_function_and_its_code_are_freed() -> None:
    f = swinging(4)
    f(X, Y)
    f.itself = f  # type: ignore[attr-defined]
    freed = weakref.ref(f)
    kept = weakref.ref(vars(f)["_direct_call"].keeps)
    del f
    gc.collect()
    assert freed() is None and kept() is None


def test_an_error_names_the_function() -> None:
    f = swinging(4)
    f(X, Y)
    with pytest.raises(TypeError, match=f.name):
        f(X)
    with pytest.raises(ValueError, match=f"{f.name}: "):
        f(X, Y[:3])
