"""Checks of the arguments of `wrap`, `step` and `plan`, which are the same in all bridges."""

from __future__ import annotations

from typing import Any

from ..engine.function import CompiledFunction


def compiled_function(x: object, name: str = "function") -> CompiledFunction[Any]:
    """Return the argument of `wrap`. Raises TypeError unless it is a compiled function."""
    if not isinstance(x, CompiledFunction):
        closes = hasattr(getattr(x, "__self__", None), "tangent_step")
        advice = "; for a robot with loops, wrap robot.tangent_step" if closes else ""
        wanted = "a compiled function of a robot, such as robot.forward_dynamics"
        raise TypeError(f"wrap: {name} must be {wanted}; got {x!r}{advice}")
    return x


def function_of(x: object, kind: str, wanted: str, **options: Any) -> Any:
    """Return the function of NumPy's arrays for `step` or `plan`. Raises TypeError unless x is of the wanted class."""
    if not hasattr(x, f"{kind}_function"):
        raise TypeError(f"{kind} takes a featherweight.{wanted}; got {x!r}")
    return getattr(x, f"{kind}_function")(**options)
