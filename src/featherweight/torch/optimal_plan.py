"""Solutions of optimal control as functions of tensors, with gradients by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from .host_tensors import numbers, require_on_processor, tensors


class TensorPlan(NamedTuple):
    """A solution, or many along a first axis."""

    q: torch.Tensor  # (..., knots + 1, nq)
    v: torch.Tensor  # (..., knots + 1, nv)
    u: torch.Tensor  # (..., knots, nu)
    cost: torch.Tensor  # (...)


class OptimalPlan:
    """Solutions of a problem as a function of tensors, made by `featherweight.torch.plan`."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(
        self, q: Any, v: Any = None, *, targets: Mapping[str, Any] | None = None, parameters: Mapping[str, Any] | None = None
    ) -> TensorPlan:
        """Return the solution from q (nq,) and v (nv,), or n solutions from q (n, nq), as `OptimalControl.solve` does.

        Raises TypeError for arguments that are not tensors on the processor, and ValueError as `OptimalControl.solve` does and
        where the solver does not converge.
        """
        v = q.new_zeros(self.function.sizes["v"]) if v is None and isinstance(q, torch.Tensor) else v
        for name, x in {"q": q, "v": v, **(targets or {}), **(parameters or {})}.items():
            require_on_processor(self.function.name, name, x)
        given = self.function.arranged(q, v, targets or {}, parameters or {}, torch.broadcast_to)
        *found, _ = _Plan.apply(self.function, *(x.double() for x in given))
        return TensorPlan(*((x if q.ndim == 2 else x[0]).to(q.dtype) for x in found))

    def __repr__(self) -> str:
        return f"<featherweight.torch {self.function.name}>"


class _Plan(torch.autograd.Function):  # type: ignore[misc]
    """The solutions and their multipliers, with the derivative by `backward`."""

    @staticmethod
    def forward(function: Any, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
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
