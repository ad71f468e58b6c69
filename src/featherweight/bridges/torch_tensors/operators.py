"""Compiled functions as operators of PyTorch, with derivatives of any order."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from ...engine.function import CompiledFunction
from ...engine.program import Input, Output
from ...engine.threads import processors
from .straight import straight_entry

NAMESPACE = "featherweight"
_library = torch.library.Library(NAMESPACE, "FRAGMENT")  # keeps the operators alive until the process ends
_operators: dict[str, Operator] = {}
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))  # no subclasses, which may override operators
_REAL = frozenset((torch.float64, torch.float32))


def operator_of(function: CompiledFunction[Any]) -> Operator:
    """Return the operator of a function, which is registered once.

    Equal functions share an operator, whose name is the same in all processes.
    """
    identity = [
        (name, x.asked, x.program.identity(), *(list(map(_identity, y)) for y in (x.program.inputs, x.program.outputs)))
        for name, x in function.executions.items()
    ]
    readable = re.sub(r"\W", "_", function.name)
    name = f"{readable}_{hashlib.sha256(repr((identity, function.algorithm)).encode()).hexdigest()[:16]}"
    if name not in _operators:
        _operators[name] = Operator(function, name)
    return _operators[name]


def _identity(x: Input | Output) -> tuple[Any, ...]:
    manifold = x.rate if isinstance(x, Input) else x.along
    return x.name, x.shape, manifold and manifold.identity()


def _watchers_of(torch_c: Any) -> list[Callable[[], Any]]:
    """Return PyTorch's private checks for transformations, modes and tracers that observe calls of operators.

    A check that a version does not have answers yes, so that all calls take the path that modes can observe.
    """
    names = ("_are_functorch_transforms_active", "_len_torch_dispatch_stack", "_len_torch_function_stack", "_is_tracing")
    return [getattr(torch_c, name, lambda: True) for name in names]


_watchers = _watchers_of(torch._C)


def _unwatched() -> bool:
    """Return whether a call needs only its value and `backward`: no transformation, tracer or mode observes it."""
    transforms, dispatch_modes, function_modes, tracing = _watchers
    return not (forward_ad._current_level >= 0 or transforms() or dispatch_modes() or function_modes() or tracing())


class Operator:
    """A function as operators of PyTorch, with the rules that its compiler and its transformations need.

    Compilers see `call`, which has one name, one schema and a derivative by `backward`. Compiled code, and in the end every
    other path, calls `value`, an operator without derivatives, which PyTorch reaches without Python. `apply` also has
    derivatives for `torch.func` and for forward differentiation, which operators cannot register. `recorded` has a derivative
    by `backward` only, at a fraction of the overhead.
    """

    def __init__(self, function: CompiledFunction[Any], name: str) -> None:
        self.function = function
        self.inputs, self.outputs = function.program.inputs, function.program.outputs
        self.names = tuple(x.name for x in self.inputs)
        self._ranks = [len(x.shape) for x in self.inputs]
        self._entries: dict[Any, Callable[..., Any] | None] = {}
        self.value, self.call = self._defined(f"{name}_value"), self._defined(name)

        def forward(*args: Any) -> Any:
            return self.value(*args)

        forward.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]  # PyTorch reads it at each call
        self.apply = _differentiable(
            name, forward=forward, setup_context=self._keep, backward=self._pulled_back, jvp=self._pushed_forward,
            vmap=lambda info, axes, *args: self._batched(self.apply, axes, args),
        )  # fmt: skip
        self.recorded = _differentiable(name, forward=self._recorded, backward=self._pulled_back)
        self._unseen = _differentiable(name, forward=self._recorded_straight, backward=self._pulled_back)
        _library.impl(f"{name}_value", torch.library.fallthrough_kernel, "Autograd")
        _library.impl(name, self._called, "Autograd")

    def _defined(self, name: str) -> Any:
        """Return an operator without derivatives."""
        taken, given = ", ".join(f"Tensor {name}" for name in self.names), ", ".join("Tensor" for _ in self.outputs)
        _library.define(f"{name}({taken}) -> ({given})", tags=(torch.Tag.pt2_compliant_tag,))
        for device in ("CPU", "CUDA"):
            _library.impl(name, self._computed, device)
        torch.library.register_fake(f"{NAMESPACE}::{name}", self._described, lib=_library)
        defined = getattr(getattr(torch.ops, NAMESPACE), name).default
        batched = lambda info, axes, *args: self._batched(defined, axes, args)  # noqa: E731
        torch.library.register_vmap(f"{NAMESPACE}::{name}", batched, lib=_library)
        return defined

    def __call__(self, *args: Any) -> Any:
        """Return the results, by the fastest path that provides what the caller needs."""
        if torch.compiler.is_compiling():
            self._check(args)
            if forward_ad._current_level >= 0:  # an operator would drop the tangents silently
                raise NotImplementedError(
                    f"{self.function.name}: torch.compile does not support forward derivatives of it; call jvp uncompiled"
                )
            return self.call(*args)
        moving = False
        for x in args:
            if type(x) not in _PLAIN or x.is_neg():
                break
            moving = moving or x.requires_grad
        else:
            if _unwatched():
                try:  # contextlib.suppress is slower
                    return self._unseen(*args) if moving and torch.is_grad_enabled() else self._straight(*args)
                except (RuntimeError, TypeError):  # tensors on other devices, batched tensors, or invalid ones
                    pass
        self._check(args)
        return self.apply(*args)

    def _check(self, args: Sequence[Any]) -> None:
        for x, name in zip(args, self.names, strict=True):
            if not isinstance(x, torch.Tensor):
                raise TypeError(f"{self.function.name}: {name} must be a tensor; got {type(x).__name__}")
            if x.dtype not in _REAL:
                raise TypeError(f"{self.function.name}: {name} must hold float32 or float64; got {x.dtype}")
            if x.layout is not torch.strided or x.is_nested:
                kind = "a nested tensor" if x.is_nested else f"layout {x.layout}"
                raise TypeError(f"{self.function.name}: {name} must be a dense tensor (see `to_dense()`); got {kind}")

    # values

    def _computed(self, *args: Any) -> Any:
        """Compute the results when PyTorch's dispatcher calls."""
        if all(x.is_cpu for x in args):
            return self._straight(*args)
        values = self.function(*(x.detach() for x in args))
        return values if len(self.outputs) == 1 else tuple(values)

    def _straight(self, *args: Any) -> Any:
        """Compute on the processor, bypassing PyTorch's dispatcher. Raises TypeError or RuntimeError for calls that need it."""
        dtype = args[0].dtype
        entry = self._entries.get(dtype)
        if entry is not None:
            values = entry(*args)
            if values is not None:
                return values
        for x, name in zip(args, self.names, strict=True):
            if x.dtype not in _REAL or not x.is_cpu or x.layout is not torch.strided:
                self._check(args)
                raise TypeError(f"{self.function.name}: not all tensors are on the processor")
            if x._is_zerotensor() or torch._is_functional_tensor(x):  # the dispatcher handles both
                raise TypeError(f"{self.function.name}: {name} represents a tensor, and has no elements of its own")
            if x.numel() and not x.untyped_storage().nbytes():
                raise ValueError(f"{self.function.name}: {name} has no elements: its storage was freed")
        arrays = [x.numpy(force=True) for x in args]
        values = self._of_arrays(arrays)
        if dtype not in self._entries and [x.ndim for x in arrays] == self._ranks and all(x.dtype == dtype for x in args):
            self._entries[dtype] = straight_entry(self.function, dtype)
        return values

    def _of_arrays(self, arrays: Sequence[Any]) -> Any:
        """Compute on the processor, without copies."""
        how = {}
        if [a.ndim for a in arrays] != self._ranks:  # calls of one state need no check
            threads = torch.get_num_threads()
            if threads < processors():
                how["threads"] = threads
        values = self.function(*arrays, **how)
        return _tensor(values) if len(self.outputs) == 1 else tuple([_tensor(y) for y in values])

    def _described(self, *args: Any) -> Any:
        """Return tensors like the results, without elements."""
        for x, own in zip(args, self.inputs, strict=True):
            if tuple(x.shape[max(x.ndim - len(own.shape), 0) :]) != own.shape:
                core = ", ".join(["...", *map(str, own.shape)])
                raise ValueError(f"{self.function.name}: {own.name} must have shape ({core}); got {tuple(x.shape)}")
        batch = torch.broadcast_shapes(*(x.shape[: x.ndim - len(own.shape)] for x, own in zip(args, self.inputs, strict=True)))
        dtype = torch.float32 if all(x.dtype == torch.float32 for x in args) else torch.float64
        values = tuple(torch.empty((*batch, *y.shape), dtype=dtype, device=args[0].device) for y in self.outputs)
        return values[0] if len(values) == 1 else values

    # batches

    def _batched(self, call: Callable[..., Any], axes: Sequence[int | None], args: Sequence[Any]) -> Any:
        """Call with each batch axis moved to the front, followed by axes of length one in place of missing leading axes."""
        own = [x.ndim - len(a.shape) - (k is not None) for x, k, a in zip(args, axes, self.inputs, strict=True)]
        moved = []
        for x, k, n in zip(args, axes, own, strict=True):
            if k is not None:
                x = x.movedim(k, 0)
                x = x.reshape(x.shape[0], *[1] * (max(own) - n), *x.shape[1:])
            moved.append(x)
        return call(*moved), (0 if len(self.outputs) == 1 else (0,) * len(self.outputs))

    # derivatives

    @cached_property
    def _pullback(self) -> _Derivative:
        return _Derivative(self.function.ambient.pullback, self.names)

    @cached_property
    def _pushforward(self) -> _Derivative:
        return _Derivative(self.function.ambient.pushforward, self.names)

    def _recorded(self, ctx: Any, *args: Any) -> Any:
        ctx.save_for_backward(*args)
        return self.value(*args)

    def _recorded_straight(self, ctx: Any, *args: Any) -> Any:
        ctx.save_for_backward(*args)
        return self._straight(*args)

    def _called(self, *args: Any) -> Any:
        """Call the operator for tensors that may need gradients."""
        if torch.is_grad_enabled() and any(x.requires_grad for x in args):
            return self.recorded(*args)
        return self.value(*args)

    def _keep(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def _pulled_back(self, ctx: Any, *bars: Any) -> Any:
        args = ctx.saved_tensors
        own = self._pullback(args, bars)
        wanted = zip(args, own if len(args) > 1 else (own,), ctx.needs_input_grad, strict=True)
        return tuple([_cotangent(bar, x) if needed else None for x, bar, needed in wanted])

    def _pushed_forward(self, ctx: Any, *rates: Any) -> Any:
        return self._pushforward(ctx.saved_tensors, rates)


class _Derivative:
    """A derivative of an operator: a function of its arguments and further ones.

    The arguments are in order, but further ones may come before optional ones.
    """

    def __init__(self, function: CompiledFunction[Any], known: Sequence[str]) -> None:
        self._operator = operator_of(function)
        order = [*known, *(name for name in self._operator.names if name not in known)]
        self._places = [order.index(name) for name in self._operator.names]

    def __call__(self, args: Sequence[Any], more: Sequence[Any]) -> Any:
        given = (*args, *more)
        return self._operator(*[given[k] for k in self._places])


def _differentiable(name: str, **rules: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that `torch.autograd.Function` makes from rules."""
    made: Any = type(name, (torch.autograd.Function,), {k: staticmethod(rule) for k, rule in rules.items()})
    function: Callable[..., Any] = made.apply
    return function


def _cotangent(bar: Any, x: Any) -> Any:
    """Sum a cotangent over the broadcast axes of x, in the precision of x."""
    bar = bar if bar.shape == x.shape else bar.sum_to_size(x.shape)
    return bar if bar.dtype == x.dtype else bar.to(x.dtype)


def _tensor(y: Any) -> Any:
    """Return a tensor that shares the memory of an array, or the tensor of a number."""
    return torch.from_numpy(y) if type(y) is np.ndarray else torch.as_tensor(y)
