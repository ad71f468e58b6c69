"""Shapes of compiled functions with symbolic sizes, read from the functions' programs.

The programs come from example robots. Their sizes differ from each other and from sizes that all robots share; therefore each
number identifies its symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import featherweight as fw
from featherweight import CompiledFunction, JointType

_COMMON = {1, 2, 3, 4, 6, 10}


class Example(NamedTuple):
    """An object with compiled functions, arguments for its methods, and the symbols of its sizes."""

    object: Any
    arguments: dict[str, Any]
    sizes: dict[int, str]

    def shape(self, numbers: Iterable[int]) -> str:
        """Return a shape as text, such as "(nq,)"."""
        sizes = [self.sizes.get(n, str(n)) for n in numbers]
        assert all(n in _COMMON or n in self.sizes for n in numbers), f"no symbol for a size among {sizes}"
        return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"

    def takes(self, f: CompiledFunction[Any]) -> list[tuple[str, str, bool]]:
        """Return names and shapes of a function's arguments, and whether each is optional."""
        whole = f
        for option in f.program.options:
            whole = whole.variant(option)
        return [(x.name, self.shape(x.shape), x.name in f.program.options) for x in whole.program.inputs]

    def gives(self, f: CompiledFunction[Any]) -> list[tuple[str, str]]:
        """Return names and shapes of a function's results."""
        return [(y.name, self.shape(y.shape)) for y in f.program.outputs]

    def made(self, method: Callable[..., Any], parameters: Iterable[str]) -> CompiledFunction | None:
        """Return the function that a method returns, or None if the example lacks an argument of the method."""
        if not self.arguments.keys() >= {*parameters}:
            return None
        function = method(*(self.arguments[name] for name in parameters))
        return function if isinstance(function, CompiledFunction) else None


def example(owner: Any) -> Example | None:
    """Return the example for a class with compiled functions, or None for other classes."""
    if owner is fw.OperationalSpace:
        tree = _tree()
        return tree._replace(object=tree.object.operational_space(tree.arguments["contacts"]))
    if owner is fw.ClosedRobot:
        return _humanoid()
    return _tree() if owner is fw.Robot else None


@cache
def _tree() -> Example:
    """Return the example for `Robot`: a floating body, a ball joint and fifteen hinges: nq = 26, nv = 24, 17 bodies."""
    kinds = [JointType.FLOATING, JointType.SPHERICAL, *[JointType.REVOLUTE] * 15]
    names = [f"link{k}" for k in range(len(kinds))]
    inertia = fw.Inertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.0, 0.0, 0.2, 0.0, 0.2))
    place, axes = fw.Pose(p=(0.2, 0.1, 0.3)), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    joints = [
        fw.Joint(f"joint{k}", kind, names[k - 1] if k else None, names[k], place, axes[k % 3]) for k, kind in enumerate(kinds)
    ]
    return _with_names(fw.build(fw.describe([fw.Body(name, inertia) for name in names], joints)), names[2:17:3])


@cache
def _humanoid() -> Example:
    """Return the example for `ClosedRobot`: its spanning tree has n = 42 degrees of freedom, its loops 8 rows."""
    robot = fw.build(fw.robots.tello())
    assert isinstance(robot, fw.ClosedRobot)
    feet = ["left-foot", "right-foot", "left-elbow", "right-elbow", "torso"]
    found = _with_names(robot, feet)
    found.sizes.update({len(robot.model.tree.parent): "n", robot.residual.program.outputs[0].size: "rows"})
    return found


def _with_names(robot: fw.Robot, points: list[str]) -> Example:
    contacts = [fw.BilateralContact(name, kind="point") for name in points]
    bodies = len(robot.bodies)
    sizes = {robot.nq: "nq", robot.nv: "nv", bodies: "nbodies", 10 * bodies: "10 * nbodies", 15: "m", 5: "k"}
    assert len(sizes) == 6 and sizes.keys().isdisjoint(_COMMON)
    return Example(robot, {"frame": points[-1], "contacts": contacts}, sizes)
