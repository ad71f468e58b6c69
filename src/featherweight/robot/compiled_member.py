"""Members that are compiled functions of a robot: one decorator declares, binds and lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..engine.function import CompiledFunction, R, cheapest
from ..engine.program import Output
from .arguments import Argument
from .system import NotDefinedError, System


class compiled(cached_property[CompiledFunction[R]]):  # a decorator
    """A compiled function of a robot, made when it is first used. Name and docstring are those of the decorated function.

        @compiled
        def gravity_force(robot: System) -> CompiledFunction:
            \"""The gravity force g(q) (nv).\"""
            return gravity_force.bind(robot, rnea.gravity_force, [Q], Output("tau", (robot.nv,)))

    As a member of a class it is a cached property, which `Robot.functions` lists. Called with a robot, it returns the robot's
    function, which a subclass may override. Errors for a robot that lacks what parts of the function need name the function.
    """

    if not TYPE_CHECKING:

        def __get__(self, instance, owner=None):
            try:
                return super().__get__(instance, owner)
            except NotDefinedError as error:
                if error.needs is None:
                    raise
                raise NotDefinedError.lacking(self.func.__name__, *error.needs) from None

    def __call__(self, robot: System) -> CompiledFunction[R]:
        function: CompiledFunction[R] = getattr(robot, self.func.__name__)
        return function

    def bind(
        self,
        robot: System,
        kernel: Callable[..., None],
        inputs: Sequence[Argument],
        outputs: Output | Sequence[Output],
        constants: tuple[Any, ...] = (),
        **how: Any,
    ) -> CompiledFunction[R]:
        """Return `robot.bind` of a kernel, with this member's name and docstring."""
        results = [outputs] if isinstance(outputs, Output) else outputs
        return robot.bind(self.func.__name__, kernel, inputs, results, constants, doc=self.func.__doc__, **how)

    def cheapest(
        self,
        robot: System,
        kernels: Mapping[str, Callable[..., None]],
        inputs: Sequence[Argument],
        output: Output,
        constants: tuple[Any, ...] = (),
    ) -> CompiledFunction[R]:
        """Bind several kernels, by the names of their algorithms, and return a function that uses the cheapest."""
        ways = {name: self.bind(robot, k, inputs, output, constants, algorithm=name) for name, k in kernels.items()}
        return cheapest(ways)


def functions_of(kind: type) -> list[str]:
    """Return the names of the public members of a class that are compiled functions, inherited members first."""
    members = {name: x for base in reversed(kind.__mro__) for name, x in vars(base).items() if isinstance(x, compiled)}
    return [name for name in members if not name.startswith("_")]
