"""Each public compiled function in PyTorch: one state, batches and vmap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from robot.every_function import Function, as_tuple, functions_of, functions_of_motions, linkage, states_of

torch = pytest.importorskip("torch")

from featherweight.torch import wrap  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")  # warnings of PyTorch's own compiler
ROUNDING = 1e-11


def problems_of(f: Function, robot: fw.Robot | None) -> Iterator[str]:
    """Yield which ways to call a wrapped function differ from calls with NumPy arrays."""
    rng = np.random.default_rng(3)
    many = [states_of(robot, x, rng, (3,)) for x in f.program.inputs]
    wrapped, tensors = wrap(f), [torch.as_tensor(x) for x in many]
    calls: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
        "one state": (lambda: wrapped(*(x[0] for x in tensors)), as_tuple(f(*(x[0] for x in many)))),
        "a batch": (lambda: wrapped(*tensors), as_tuple(f(*many))),
        "vmap": (lambda: torch.func.vmap(wrapped)(*tensors), as_tuple(f(*many))),
    }
    for what, (call, expected) in calls.items():
        for a, b in zip((x.numpy() for x in as_tuple(call())), expected, strict=True):
            if np.shape(a) != np.shape(b) or not np.linalg.norm(a - b) <= ROUNDING * max(1.0, float(np.linalg.norm(b))):
                yield what


def test_functions_of_a_robot() -> None:
    robot = linkage()
    assert [f"{name}: {problem}" for name, f in functions_of(robot) for problem in problems_of(f, robot)] == []


def test_functions_of_rigid_motions() -> None:
    assert [f"{name}: {problem}" for name, f in functions_of_motions().items() for problem in problems_of(f, None)] == []
