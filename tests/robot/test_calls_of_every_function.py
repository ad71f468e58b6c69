"""Each public compiled function takes one state and batches, `out=`, float32, strided and read-only arrays, and keywords.

The functions are found by inspection: those of a robot, those that its methods return for a frame or for contacts, and those of
`featherweight.se3`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.function import CompiledFunction
from featherweight.robot.system import NotDefinedError
from robot.every_function import Function, as_tuple, flying, functions_of, functions_of_motions, lines_of, linkage, states_of

ROUNDING = 1e-11  # relative to the norm of a result: batches run the same operations in lanes, which may fuse others
SINGLE = 2e-3  # the same in single precision, whose rounding is 6e-8: the inverse of the mass matrix loses four digits

PARTS = {"collisions": "touching", "distances": "distance", "factorize": "packed"}  # of results with several arrays
OF_ALL_STATES = {
    "check": "returns nothing",
    "irregular": "returns the first irregular state",
    "require_regular": "returns nothing",
    "warn_where_irregular": "returns nothing",
}
"""Methods of q whose result is not an array over the states, and why."""


def problems_of(f: Function, robot: fw.Robot | None) -> Iterator[str]:
    """Yield which ways to call a function differ from calls with one state each."""
    rng = np.random.default_rng(0)
    many = [states_of(robot, x, rng, (2, 3)) for x in f.program.inputs]
    cores = [y.shape for y in f.program.outputs]
    each = {k: as_tuple(f(*(x[k] for x in many))) for k in np.ndindex(2, 3)}
    expected = [np.array([each[k][j] for k in np.ndindex(2, 3)]).reshape(2, 3, *core) for j, core in enumerate(cores)]
    one = [x[0, 0] for x in many]

    def differs(results: Any, wanted: Any, tolerance: float = ROUNDING) -> bool:
        for a, b in zip(as_tuple(results), wanted, strict=True):
            size = max(1.0, float(np.linalg.norm(b)))
            if np.shape(a) != np.shape(b) or not np.linalg.norm(a - b) <= tolerance * size:
                return True
        return False

    alone = [x[0, 0] for x in expected]
    if differs(f(*many), expected):
        yield "a batch (2, 3)"
    if differs(f(*(x[0] for x in many)), [x[0] for x in expected]):
        yield "a batch (3,)"
    if any(np.shape(y) != (0, *core) for y, core in zip(as_tuple(f(*(x[0, :0] for x in many))), cores, strict=True)):
        yield "an empty batch"
    if differs(f(**dict(zip((x.name for x in f.program.inputs), one, strict=True))), alone):
        yield "keywords"
    for label, arrays, wanted in (("one state", one, alone), ("a batch", many, expected)):
        rooms = [np.full_like(y, np.nan) for y in wanted]
        made = f(*arrays, out=tuple(rooms) if len(rooms) > 1 else rooms[0])
        if any(a is not b for a, b in zip(as_tuple(made), rooms, strict=True)) or differs(tuple(rooms), wanted):
            yield f"out= for {label}"
        strided = [np.repeat(x, 2, axis=-1)[..., ::2] if np.ndim(x) else x for x in arrays]
        for x in strided:
            if isinstance(x, np.ndarray):
                x.flags.writeable = False
        if differs(f(*strided), wanted):
            yield f"strided read-only arrays, {label}"
        narrow = f(*(np.asarray(x, np.float32) for x in arrays))
        if any(np.asarray(y).dtype != np.float32 for y in as_tuple(narrow)) or differs(narrow, wanted, SINGLE):
            yield f"float32, {label}"


@pytest.mark.parametrize("make", [flying, linkage])
def test_functions_of_robots_take_all_forms_of_arguments(make: Callable[[], fw.Robot]) -> None:
    robot = make()
    found = dict(functions_of(robot))
    assert {"forward_dynamics", "frame_jacobian", "contact_jacobian"} <= found.keys()
    assert [f"{name}: {problem}" for name, f in found.items() for problem in problems_of(f, robot)] == []


def test_functions_of_rigid_motions_take_all_forms_of_arguments() -> None:
    found = functions_of_motions()
    assert all(isinstance(f, CompiledFunction) for f in found.values())
    assert [f"{name}: {problem}" for name, f in found.items() for problem in problems_of(f, None)] == []


H = 1e-5  # distance of differences, whose error is about 1e-10 times third derivatives

WITHOUT_DERIVATIVES = {
    "inverse_dynamics_second_derivatives", "forward_dynamics_second_derivatives", "inverse_dynamics_hessian",
    "forward_dynamics_hessian",
}  # fmt: skip
"""Derivatives themselves, whose derivatives nobody needs: they take seconds to trace."""


def slopes(f: Function, robot: fw.Robot | None) -> Iterator[str]:
    """Yield how rates of a function along a random direction, and cotangents, differ from differences of its results."""
    rng = np.random.default_rng(2)
    lines = lines_of(f, robot, rng)
    x = [line(0.0) for line in lines]
    rates = [np.asarray(line(H) - line(-H)) / (2 * H) for line in lines]
    expected = [
        (np.asarray(a) - np.asarray(b)) / (2 * H)
        for a, b in zip(*(as_tuple(f(*(line(t) for line in lines))) for t in (H, -H)), strict=True)
    ]
    found = as_tuple(f.ambient.pushforward(*x, *rates))
    for y, wanted in zip(found, expected, strict=True):
        error, size = float(np.linalg.norm(y - wanted)), max(1.0, float(np.linalg.norm(wanted)))
        if not error <= 1e-6 * size:
            yield f"its rate, by {error / size:.1e}"
    weights = [rng.standard_normal(np.shape(y)) for y in found]
    cotangents = as_tuple(f.ambient.pullback(*x, *weights))
    forward = sum(float(np.sum(w * y)) for w, y in zip(weights, found, strict=True))
    backward = sum(float(np.sum(c * r)) for c, r in zip(cotangents, rates, strict=True))
    size = sum(float(np.linalg.norm(w) * np.linalg.norm(y)) for w, y in zip(weights, found, strict=True))
    if not abs(forward - backward) <= 1e-8 * max(size, 1.0):
        yield f"its cotangents, by {abs(forward - backward) / max(size, 1.0):.1e}"


@pytest.mark.parametrize("make", [flying, linkage])
def test_functions_of_robots_have_derivatives(make: Callable[[str], fw.Robot]) -> None:
    robot = make("interpreted")
    found = {name: f for name, f in functions_of(robot) if name not in WITHOUT_DERIVATIVES}
    assert [f"{name}: {problem}" for name, f in found.items() for problem in slopes(f, robot)] == []


def test_functions_of_rigid_motions_have_derivatives() -> None:
    assert [f"{name}: {problem}" for name, f in functions_of_motions().items() for problem in slopes(f, None)] == []


@pytest.mark.parametrize("make", [flying, linkage])
def test_methods_of_configurations_take_batches(make: Callable[[], fw.Robot]) -> None:
    robot = make()
    q, B = robot.random_configuration(rng=0, size=(2, 3)), np.random.default_rng(0).standard_normal((robot.nv, 2))
    found = {}
    for name in (x for x in dir(robot) if not x.startswith("_") and x not in OF_ALL_STATES):
        with suppress(NotDefinedError):
            member = getattr(robot, name)
            if callable(member) and not isinstance(member, CompiledFunction | type):
                parameters = inspect.signature(member).parameters.values()
                required = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
                if required in (["q"], ["q", "B"]) or name == "on_ground":
                    found[name] = lambda x, m=member, more=required[1:]: m(x, *[B] * len(more))
    assert {"solve_mass_matrix", "factorize", "tendon_lengths"} <= found.keys()
    if make is linkage:
        found.pop("on_ground")  # its base does not float
    for name, call in found.items():
        results = [call(x) for x in (q, q[0], q[0, 0], q[:0])]
        many, some, one, none = (np.asarray(getattr(x, PARTS[name]) if name in PARTS else x) for x in results)
        np.testing.assert_allclose(many[0], some, rtol=0, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(some[0], one, rtol=0, atol=1e-12, err_msg=name)
        assert none.shape == (0, *many.shape[1:]), name
