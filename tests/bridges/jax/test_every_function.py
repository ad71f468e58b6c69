"""Each public compiled function in JAX: one state, batches, vmap and jit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from robot.every_function import Function, as_tuple, flying, functions_of, functions_of_motions, states_of

jax = pytest.importorskip("jax")

from featherweight.jax import wrap  # noqa: E402

ROUNDING = 1e-11


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def problems_of(f: Function, robot: fw.Robot | None) -> Iterator[str]:
    """Yield which ways to call a wrapped function differ from calls with NumPy arrays."""
    rng = np.random.default_rng(3)
    many = [states_of(robot, x, rng, (3,)) for x in f.program.inputs]
    wrapped = wrap(f)
    calls: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
        "one state": (lambda: wrapped(*(x[0] for x in many)), as_tuple(f(*(x[0] for x in many)))),
        "a batch": (lambda: wrapped(*many), as_tuple(f(*many))),
        "vmap and jit": (lambda: jax.jit(jax.vmap(wrapped))(*many), as_tuple(f(*many))),
    }
    for what, (call, expected) in calls.items():
        for a, b in zip(as_tuple(call()), expected, strict=True):
            if np.shape(a) != np.shape(b) or not np.linalg.norm(a - b) <= ROUNDING * max(1.0, float(np.linalg.norm(b))):
                yield what


def test_functions_of_a_robot() -> None:
    robot = flying()
    assert [f"{name}: {problem}" for name, f in functions_of(robot) for problem in problems_of(f, robot)] == []


def test_functions_of_rigid_motions() -> None:
    assert [f"{name}: {problem}" for name, f in functions_of_motions().items() for problem in problems_of(f, None)] == []
