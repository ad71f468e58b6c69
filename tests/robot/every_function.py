"""All public compiled functions, found by inspection, and states for their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

import featherweight as fw
from featherweight import se3
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input
from featherweight.model.generators import from_parents
from featherweight.robot.system import NotDefinedError

Function = CompiledFunction[Any]


def flying(execution: str = "auto") -> fw.Robot:
    """Return a robot with a free, a prismatic and a spherical joint, and shapes on its bodies."""
    made = from_parents([-1, 0, 0], rng=48, joint_types=("floating", "prismatic", "spherical"), masses=(0.5, 2.0))
    first, second, third = (joint.child for joint in made.joints)
    for shape in (
        fw.Shape("trunk", first, "sphere", (0.1,)),
        fw.Shape("slide", second, "box", (0.8, 0.4, 0.6)),
        fw.Shape("ball", third, "sphere", (0.1,)),
    ):
        made = made.with_shape(shape)
    return fw.build(made, execution=execution)


def linkage(execution: str = "auto") -> fw.Robot:
    """Return a robot with a loop."""
    return fw.build(fw.robots.planar_leg_linkage(), execution=execution)


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


def functions_of_motions() -> dict[str, Function]:
    """Return the functions of `featherweight.se3`."""
    return {name: getattr(se3, name) for name in se3.__all__}


def states_of(robot: fw.Robot | None, x: Input, rng: np.random.Generator, batch: tuple[int, ...]) -> Any:
    """Return values of an argument: points of its manifold, or random numbers."""
    if x.rate is None:
        return rng.standard_normal((*batch, *x.shape))
    if robot is not None:
        return robot.random_configuration(rng=rng, size=batch)
    return points(x, se3.exp(rng.standard_normal((*batch, 6))))


def points(x: Input, motions: Any) -> Any:
    """Return rigid motions (..., 4, 4), or their rotations, in the form of an argument of `featherweight.se3`."""
    forms: dict[tuple[int, ...], Callable[[Any], Any]] = {
        (4, 4): lambda T: T,
        (3, 3): lambda T: np.ascontiguousarray(T[..., :3, :3]),
        (4,): lambda T: se3.quaternion_from_matrix(np.ascontiguousarray(T[..., :3, :3])),
        (7,): se3.xyzquat_from_homogeneous,
    }
    return forms[x.shape](motions)


def lines_of(f: Function, robot: fw.Robot | None, rng: np.random.Generator) -> list[Callable[[float], Any]]:
    """Return random curves through the space of each argument, as functions of one number."""

    def line(x: Input) -> Callable[[float], Any]:
        if x.rate is None:
            start, rate = rng.standard_normal((2, *x.shape))
            return lambda t: start + t * rate
        if robot is not None:
            q, v = robot.random_configuration(rng=rng), rng.standard_normal(robot.nv)
            return lambda t: robot.integrate(q, t * v)
        T, twist = se3.exp(rng.standard_normal(6)), rng.standard_normal(6)
        return lambda t: points(x, T @ se3.exp(t * twist))

    return [line(x) for x in f.program.inputs]


def as_tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)
