"""A step of a simulation as a function of tensors, with gradients through contact."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .host_tensors import numbers, require_on_processor, tensors


class TensorState(NamedTuple):
    """The state after a step."""

    q: torch.Tensor  # (..., nq)
    v: torch.Tensor  # (..., nv)


class SimulatedStep:
    """A step of a simulation as a function of tensors, made by `featherweight.torch.step`."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, q: Any, v: Any, tau: Any = None, control: Any = None) -> TensorState:
        """Return the state after a step from q (..., nq) and v (..., nv) under tau (..., nv) and control (..., nu).

        tau and control default to zero; leading axes broadcast. Raises TypeError for arguments that are not tensors on the
        processor.
        """
        sizes = self.function.sizes
        like = next((x for x in (q, v, tau, control) if isinstance(x, torch.Tensor)), None)
        given = {"q": q, "v": v, "tau": tau, "control": control}
        tensors = []
        for name, x in given.items():
            if x is None and name in ("tau", "control") and like is not None:
                x = like.new_zeros(sizes[name])
            require_on_processor(self.function.name, name, x)
            if x.ndim == 0 or x.shape[-1] != sizes[name]:
                raise ValueError(f"{self.function.name}: {name} must have shape (..., {sizes[name]}); got {tuple(x.shape)}")
            tensors.append(x)
        batch = torch.broadcast_shapes(*(x.shape[:-1] for x in tensors))
        return TensorState(*_Step.apply(self.function, *(x.expand(*batch, x.shape[-1]) for x in tensors)))

    def __repr__(self) -> str:
        return f"<featherweight.torch {self.function.name}>"


class _Step(torch.autograd.Function):  # type: ignore[misc]
    """The step, with its derivative by `backward` and `torch.func`."""

    @staticmethod
    def forward(function: Any, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensors(function(*map(numbers, args)), args[0].dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.function = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, q_bar: torch.Tensor, v_bar: torch.Tensor) -> Any:
        return None, *_Pullback.apply(ctx.function, *ctx.saved_tensors, q_bar, v_bar)

    @staticmethod
    def vmap(info: Any, axes: Any, function: Any, *args: torch.Tensor) -> Any:
        return _Step.apply(function, *_in_front(info, axes[1:], args)), (0, 0)


class _Pullback(torch.autograd.Function):  # type: ignore[misc]
    """The product with the transposed derivative, which itself has no derivative."""

    @staticmethod
    def forward(function: Any, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensors(function.pullback(*map(numbers, args)), args[0].dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.function = inputs[0]

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        raise NotImplementedError(f"{ctx.function.name}: second derivatives of a step are not implemented")

    @staticmethod
    def vmap(info: Any, axes: Any, function: Any, *args: torch.Tensor) -> Any:
        return _Pullback.apply(function, *_in_front(info, axes[1:], args)), (0, 0, 0, 0)


def _in_front(info: Any, axes: Any, args: Any) -> list[torch.Tensor]:
    """Return arguments with the batch axis in front."""
    pairs = zip(args, axes, strict=True)
    return [x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0) for x, axis in pairs]
