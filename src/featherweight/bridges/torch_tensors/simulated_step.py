"""A step of a simulation as a function of tensors, with gradients through contact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..arguments import function_of
from .conversions import numbers, require_on_processor, tensors

if TYPE_CHECKING:
    from ...simulation import Simulation
    from ...simulation.step_function import StepFunction


def step(simulation: Simulation) -> SimulatedStep:
    """Return the step of a `Simulation` as a function of tensors, with gradients through contact.

        step = featherweight.torch.step(simulation)
        q, v = step(q, v, tau=tau, control=control)

    q (..., nq), v (..., nv), tau (..., nv) and control (..., nu) broadcast; tau and control default to zero. The function uses
    the robot, step size, ground and contact model of the simulation, not its state, and does not change it. `backward` and
    `torch.func` (grad, vjp, jacrev, vmap) work; forward differentiation and second derivatives do not. The derivative is that
    of `Simulation.derivatives`, which processes one robot after the other.

    Gradients with respect to configurations are tangent to their manifold, as with `wrap`. Raises TypeError for an argument
    that is not a simulation. Calls raise as `Simulation.step` and `Simulation.derivatives` do.
    """
    return SimulatedStep(function_of(simulation, "step", "Simulation"))


class TensorState(NamedTuple):
    """The state after a step."""

    q: torch.Tensor  # (..., nq)
    v: torch.Tensor  # (..., nv)


@dataclass(frozen=True)
class SimulatedStep:
    """A step of a simulation as a function of tensors, made by `featherweight.torch.step`."""

    function: StepFunction

    def __call__(
        self, q: torch.Tensor, v: torch.Tensor, tau: torch.Tensor | None = None, control: torch.Tensor | None = None
    ) -> TensorState:
        """Return the state after a step, as `step` describes. Raises TypeError for arguments that are not tensors."""
        f = self.function
        require_on_processor(f.name, {"q": q, "v": v})
        inputs = {"tau": tau, "control": control}
        given = {"q": q, "v": v} | {name: q.new_zeros(f.sizes[name]) if x is None else x for name, x in inputs.items()}
        require_on_processor(f.name, given)
        return TensorState(*_Called.apply(f, *f.arranged([*given.values()], torch)))


class _Called(torch.autograd.Function):  # type: ignore[misc]
    """A function of NumPy's arrays, whose derivative by `backward` and `torch.func` is its `pullback`."""

    @staticmethod
    def forward(function: Any, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensors(function(*map(numbers, args)), args[0].dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.function = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor) -> Any:
        if not hasattr(ctx.function, "pullback"):  # it is a pullback
            raise NotImplementedError(f"{ctx.function.__self__.name}: second derivatives of a step are not implemented")
        return None, *_Called.apply(ctx.function.pullback, *ctx.saved_tensors, *bars)

    @staticmethod
    def vmap(info: Any, axes: Any, function: Any, *args: torch.Tensor) -> Any:
        pairs = zip(args, axes[1:], strict=True)  # the batch axis moves to the front
        found = _Called.apply(
            function, *(x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0) for x, axis in pairs)
        )
        return found, (0,) * len(found)
