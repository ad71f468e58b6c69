"""Solutions of optimal control as functions of JAX's arrays, with gradients by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..arguments import function_of
from .conversions import arrays_of, call_python, like, promoted

if TYPE_CHECKING:
    from ...optimal_control.plan_function import PlanFunction
    from ...optimal_control.problem import OptimalControl


def plan(ocp: OptimalControl, **options: Any) -> OptimalPlan:
    """Return the solutions of an `OptimalControl` problem as a function of JAX's arrays, with gradients.

        plan = featherweight.jax.plan(ocp, iterations=200)
        q, v, u, cost, dt = plan(q, v, targets={"hand": target}, parameters={...})

    Arguments are those of `OptimalControl.solve`, and `options` its keywords: q (nq,) with targets and parameters, or q (n, nq)
    for n problems. Gradients with respect to q, v, targets and parameters follow from the implicit function theorem at the
    solution, with exact curvature, through contacts, loops and active constraints. They are as accurate as the solution, which
    `tolerance=1e-10` or less makes precise. `jit`, `grad`, `vjp` and vmap (one problem after the other) work; forward
    differentiation and second derivatives do not. XLA calls Python for each call.

    Gradients with respect to configurations are tangent to their manifold, as with `wrap`. Raises TypeError for an argument
    that is not a problem; calls raise ValueError where the solver does not converge.
    """
    return OptimalPlan(function_of(ocp, "plan", "OptimalControl", **options))


class ArrayPlan(NamedTuple):
    """A solution, or many along a first axis."""

    q: jax.Array  # (..., knots + 1, nq)
    v: jax.Array  # (..., knots + 1, nv)
    u: jax.Array  # (..., knots, nu)
    cost: jax.Array  # (...)
    dt: jax.Array  # (..., knots) [s]


@dataclass(frozen=True)
class OptimalPlan:
    """Solutions of a problem as a function of JAX's arrays, made by `featherweight.jax.plan`."""

    function: PlanFunction

    def __call__(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        targets: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> ArrayPlan:
        """Return the solution, as `plan` describes. Raises TypeError for arguments that are not arrays of numbers."""
        f = self.function
        v = jnp.zeros(f.sizes["v"], jnp.float32) if v is None else v
        start, targets, parameters = (arrays_of(f.name, x or {}) for x in ({"q": q, "v": v}, targets, parameters))
        arrays = f.arranged(start["q"], start["v"], targets, parameters, jnp.broadcast_to)
        found = _plan(f, *promoted(arrays, arrays))
        return ArrayPlan(*(found if start["q"].ndim == 2 else (x[0] for x in found)))


def _value(function: PlanFunction, *args: jax.Array) -> tuple[jax.Array, ...]:
    n, sizes, knots = args[0].shape[0], function.sizes, function.knots
    shapes = (n, knots + 1, sizes["q"]), (n, knots + 1, sizes["v"]), (n, knots, sizes["u"]), (n,), (n, knots)
    results = [jax.ShapeDtypeStruct(shape, args[0].dtype) for shape in shapes]
    return call_python(lambda *x: function(*x)[:5], results, args)


def _backward(function: PlanFunction, args: Any, bars: Any) -> Any:
    def on_numbers(*arrays: Any) -> Any:  # in double precision from the start, also where JAX has single precision
        given, own_bars = arrays[: len(args)], arrays[len(args) :]
        return function.pullback(function(*given), given[2:], own_bars)

    return call_python(on_numbers, like(args), (*args, *bars))


_plan: Any = jax.custom_vjp(_value, nondiff_argnums=(0,))
_plan.defvjp(lambda function, *args: (_value(function, *args), args), _backward)
