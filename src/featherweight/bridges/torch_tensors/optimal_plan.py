"""Solutions of optimal control as functions of tensors, with gradients by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..arguments import function_of
from .conversions import numbers, require_on_processor, tensors

if TYPE_CHECKING:
    from ...optimal_control.plan_function import PlanFunction
    from ...optimal_control.problem import OptimalControl


def plan(ocp: OptimalControl, **options: Any) -> OptimalPlan:
    """Return the solutions of an `OptimalControl` problem as a function of tensors, with gradients.

        plan = featherweight.torch.plan(ocp, iterations=200)
        q, v, u, cost, dt = plan(q, v, targets={"hand": target}, parameters={...})

    Arguments are those of `OptimalControl.solve`, and `options` its keywords: q (nq,) with targets and parameters, or q (n, nq)
    for n problems. Gradients with respect to q, v, targets and parameters follow from the implicit function theorem at the
    solution, with exact curvature, through contacts, loops and active constraints. They are as accurate as the solution, which
    `tolerance=1e-10` or less makes precise. `backward` works; forward differentiation, vmap and second derivatives do not.

    Gradients with respect to configurations are tangent to their manifold, as with `wrap`. Raises TypeError for an argument
    that is not a problem; calls raise ValueError where the solver does not converge.
    """
    return OptimalPlan(function_of(ocp, "plan", "OptimalControl", **options))


class TensorPlan(NamedTuple):
    """A solution, or many along a first axis."""

    q: torch.Tensor  # (..., knots + 1, nq)
    v: torch.Tensor  # (..., knots + 1, nv)
    u: torch.Tensor  # (..., knots, nu)
    cost: torch.Tensor  # (...)
    dt: torch.Tensor  # (..., knots) [s]


@dataclass(frozen=True)
class OptimalPlan:
    """Solutions of a problem as a function of tensors, made by `featherweight.torch.plan`."""

    function: PlanFunction

    def __call__(
        self,
        q: torch.Tensor,
        v: torch.Tensor | None = None,
        *,
        targets: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> TensorPlan:
        """Return the solution, as `plan` describes. Raises TypeError unless arguments are tensors on the processor."""
        f = self.function
        require_on_processor(f.name, {"q": q})
        v = q.new_zeros(f.sizes["v"]) if v is None else v
        require_on_processor(f.name, {"v": v, **(targets or {}), **(parameters or {})})
        arranged = f.arranged(q, v, targets or {}, parameters or {}, torch.broadcast_to)
        *found, _ = _Plan.apply(f, *(x.double() for x in arranged))
        return TensorPlan(*((x if q.ndim == 2 else x[0]).to(q.dtype) for x in found))


class _Plan(torch.autograd.Function):  # type: ignore[misc]
    """The solutions and their multipliers, with the derivative by `backward`."""

    @staticmethod
    def forward(function: PlanFunction, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensors(function(*map(numbers, args)), torch.float64)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.function, ctx.arguments = inputs[0], len(inputs) - 1
        ctx.mark_non_differentiable(output[-1])
        ctx.save_for_backward(*inputs[1:], *output)

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor) -> Any:
        saved = [*map(numbers, ctx.saved_tensors)]
        found = ctx.function.pullback(saved[ctx.arguments :], saved[2 : ctx.arguments], [*map(numbers, bars[:-1])])
        return None, *tensors(found, torch.float64)
