"""Checks of the arguments of `wrap`, `step` and `plan`, which are the same in all bridges."""

from __future__ import annotations

from typing import Any, TypeVar

from ..engine.function import CompiledFunction

State = TypeVar("State")


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


def array_state(owner: str, x: object, kind: type[State]) -> State:
    """Return the state that a step takes. Raises TypeError unless x is of the library's class of states."""
    if not isinstance(x, kind):
        made = "such as step.start(q, v) or step.from_state(simulation.state)"
        raise TypeError(f"{owner}: state must be the {kind.__name__} of a step, {made}; got {x!r}")
    return x
