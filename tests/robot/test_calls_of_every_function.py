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
from featherweight import se3
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input
from featherweight.robot.system import NotDefinedError

ROUNDING = 1e-11  # relative to the norm of a result: batches run the same operations in lanes, which may fuse others
SINGLE = 2e-3  # the same in single precision, whose rounding is 6e-8: the inverse of the mass matrix loses four digits

FLYING = """<mujoco><worldbody><body name="base" pos="0 0 1"><freejoint/><geom size="0.1" mass="2"/>
<body name="hand" pos=".3 0 0"><joint type="slide" axis="1 0 0" range="-.2 .2"/><geom type="box" size=".4 .2 .3" mass="1"/>
<body pos="0 0 .4"><joint type="ball"/><geom size=".1" mass="1" pos=".2 0 .1"/></body></body></body></worldbody></mujoco>"""

PARTS = {"collisions": "touching", "distances": "distance", "factorize": "packed"}  # of results with several arrays
OF_ALL_STATES = {
    "check": "returns nothing",
    "irregular": "returns the first irregular state",
    "require_regular": "returns nothing",
    "warn_where_irregular": "returns nothing",
}
"""Methods of q whose result is not an array over the states, and why."""

Function = CompiledFunction[Any]


def flying() -> fw.Robot:
    """Return a robot with a free, a prismatic and a spherical joint."""
    return fw.load(FLYING)


def linkage() -> fw.Robot:
    """Return a robot with a loop."""
    return fw.build(fw.robots.planar_leg_linkage())


def functions_of(robot: fw.Robot) -> Iterator[tuple[str, Function]]:
    """Yield the functions of a robot, and those that its methods return for a frame and for contacts."""
    yield from robot.functions.items()
    frame = robot.bodies[-1].name
    given = {"frame": frame, "contacts": fw.BilateralContact(frame)}
    for name in (x for x in dir(robot) if not x.startswith("_")):
        with suppress(NotDefinedError):
            member = getattr(robot, name)
            if callable(member) and not isinstance(member, CompiledFunction | type):
                required = [p.name for p in inspect.signature(member).parameters.values() if p.default is p.empty]
                if required in (["frame"], ["contacts"]):
                    made = member(*(given[x] for x in required))
                    if isinstance(made, CompiledFunction):
                        yield name, made


def states_of(robot: fw.Robot | None, x: Input, rng: np.random.Generator, batch: tuple[int, ...]) -> Any:
    """Return values of an argument: points of its manifold, or random numbers."""
    if x.rate is None:
        return rng.standard_normal((*batch, *x.shape))
    if robot is not None:
        return robot.random_configuration(rng=rng, size=batch)
    motions = se3.exp(rng.standard_normal((*batch, 6)))
    on_manifold: dict[tuple[int, ...], Callable[[Any], Any]] = {
        (4, 4): lambda T: T,
        (3, 3): lambda T: np.ascontiguousarray(T[..., :3, :3]),
        (4,): lambda T: se3.quaternion_from_matrix(np.ascontiguousarray(T[..., :3, :3])),
        (7,): se3.xyzquat_from_homogeneous,
    }
    return on_manifold[x.shape](motions)


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


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
    found = {name: getattr(se3, name) for name in se3.__all__}
    assert all(isinstance(f, CompiledFunction) for f in found.values())
    assert [f"{name}: {problem}" for name, f in found.items() for problem in problems_of(f, None)] == []


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
