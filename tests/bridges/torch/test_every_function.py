"""Each public compiled function in PyTorch: one state, batches and vmap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from robot.every_function import Function, differs, functions_of, functions_of_motions, linkage, states_of

torch = pytest.importorskip("torch")

from featherweight.torch import wrap  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")  # warnings of PyTorch's own compiler


def problems_of(f: Function, robot: fw.Robot | None) -> Iterator[str]:
    """Yield which ways to call a wrapped function differ from calls with NumPy arrays."""
    rng = np.random.default_rng(3)
    many = [states_of(robot, x, rng, (3,)) for x in f.program.inputs]
    wrapped, tensors = wrap(f), [torch.as_tensor(x) for x in many]
    calls: dict[str, tuple[Callable[[], Any], Any]] = {
        "one state": (lambda: wrapped(*(x[0] for x in tensors)), f(*(x[0] for x in many))),
        "a batch": (lambda: wrapped(*tensors), f(*many)),
        "vmap": (lambda: torch.func.vmap(wrapped)(*tensors), f(*many)),
    }
    for what, (call, expected) in calls.items():
        if differs(call(), expected):
            yield what


def test_functions_of_a_robot() -> None:
    robot = linkage()
    assert [f"{name}: {problem}" for name, f in functions_of(robot) for problem in problems_of(f, robot)] == []


def test_functions_of_rigid_motions() -> None:
    assert [f"{name}: {problem}" for name, f in functions_of_motions().items() for problem in problems_of(f, None)] == []
