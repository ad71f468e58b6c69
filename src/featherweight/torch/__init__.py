"""Functions of robots in PyTorch: operators with derivatives of any order, for `torch.compile` and `torch.func`.

    dynamics = featherweight.torch.wrap(robot.forward_dynamics)
    a = dynamics(q, v, tau)          # tensors whose leading axes broadcast; a.sum().backward() goes through it

A point of a manifold (a configuration with a quaternion) is an array of numbers here: gradients by it are tangent to
the manifold, q_bar = R (Rᵀ R)⁻¹ v_bar for the cotangent v_bar of velocities and the rates R v of q
(`CompiledFunction.ambient`).
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain, combinations
from typing import Any, NamedTuple

from ..extras import install_command

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(f"featherweight.torch needs PyTorch: {install_command('torch')}") from error

import numpy as np
from torch.autograd import forward_ad

from ..engine.call_arrays import bound
from ..engine.function import CompiledFunction
from ..engine.program import Input, Output
from ..engine.result_class import result_class
from ..engine.threads import processors
from .simulated_step import SimulatedStep
from .straight import straight_entry

NAMESPACE = "featherweight"
_library = torch.library.Library(NAMESPACE, "FRAGMENT")  # operators live as long as this, which is as long as the process
_operators: dict[str, _Operator] = {}
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))  # no subclasses: those see what is done to them
_REAL = frozenset((torch.float64, torch.float32))


def wrap(function: CompiledFunction[Any]) -> Wrapped:
    """The function for PyTorch's tensors, float32 or float64; optional arguments by keyword, several results a named tuple.

    Tensors on the processor are read where they lie, on as many threads as `torch.get_num_threads` says at most; those on CUDA
    devices are computed with there. Gradients of any order, by `Tensor.backward` and `torch.func` (grad, vjp, jvp, jacrev,
    jacfwd, hessian, vmap), are exact. `torch.compile` takes it whole, for values, `backward` and
    vmap; it has no derivatives by `torch.func` inside of what it compiles.

    Raises TypeError for what is no compiled function. Calls raise TypeError and ValueError as the function's do, by argument;
    a derivative of a function too large to be traced raises ValueError.
    """
    if not isinstance(function, CompiledFunction):
        raise TypeError(f"wrap takes a compiled function, as robot.forward_dynamics; got {function!r}")
    return Wrapped(function)


def step(simulation: Any) -> SimulatedStep:
    """Return the step of a `Simulation` as a function of tensors, with gradients through contact.

        step = featherweight.torch.step(simulation)
        q, v = step(q, v, tau=tau, control=control)

    q (..., nq), v (..., nv), tau (..., nv) and control (..., nu) broadcast; tau and control are zero unless given. The
    simulation stays as it is: its robot, step size, ground and contact model are taken, not its state. `backward` and
    `torch.func` (grad, vjp, jacrev, vmap) go through; there is no forward differentiation and no second derivative. The
    derivative is that of `Simulation.derivatives`, which works on one robot after the other.

    Gradients by configurations are tangent to their manifold, as those of `wrap`. Raises TypeError for what is no simulation.
    Calls raise as `Simulation.step` and `Simulation.derivatives` do.
    """
    if not hasattr(simulation, "step_function"):
        raise TypeError(f"step takes a featherweight.Simulation; got {simulation!r}")
    return SimulatedStep(simulation.step_function())


class Wrapped:
    """A compiled function that takes and gives tensors, made by `wrap`."""

    def __init__(self, function: CompiledFunction[Any]) -> None:
        self.function, self.name = function, function.name
        self._options = options = tuple(function.program.options)
        choices = chain.from_iterable(combinations(options, k) for k in range(len(options) + 1))
        self._operators = {
            chosen: _operator(_variant(function, chosen)) for chosen in choices
        }  # now: none when a compiler looks
        self._alone = self._operators[()]
        fields = tuple(y.name for y in function.program.outputs)
        self._results = result_class(function.name, fields) if len(fields) > 1 else None

    def __call__(self, *args: Any, **named: Any) -> Any:
        operator = self._alone
        if named or len(args) != len(operator.names):
            operator, args = self._bound(args, named)
        values = operator(*args)
        return values if self._results is None else self._results(*values)

    def _bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[_Operator, tuple[Any, ...]]:
        """The operator that takes the options given, and its arguments in order."""
        chosen = tuple(option for option in self._options if named.get(option) is not None)
        operator = self._operators[chosen]
        named = {name: x for name, x in named.items() if name in chosen or name not in self._options}
        rest = operator.names[len(args) :]
        if len(args) > len(operator.names) or {*rest} != named.keys():
            bound(operator.function.program, args, named)  # raises
        return operator, (*args, *(named[name] for name in rest))

    def __repr__(self) -> str:
        return f"featherweight.torch.wrap({self.function!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self.function,)


def _variant(function: CompiledFunction[Any], options: Sequence[str]) -> CompiledFunction[Any]:
    for option in options:
        function = function.variant(option)
    return function


def _operator(function: CompiledFunction[Any]) -> _Operator:
    """The operator of a function, which is registered once; equal functions have one, of one name in all processes."""
    recipes, algorithm = function.__reduce__()[1]  # all that a function is made of
    told = [(p.identity(), [_identity(x) for x in p.inputs], [_identity(y) for y in p.outputs], how) for p, *how in recipes]
    readable = re.sub(r"\W", "_", function.name)
    name = f"{readable}_{hashlib.sha256(repr((told, algorithm)).encode()).hexdigest()[:16]}"
    if name not in _operators:
        _operators[name] = _Operator(function, name)
    return _operators[name]


def _identity(x: Input | Output) -> tuple[Any, ...]:
    manifold = x.rate if isinstance(x, Input) else x.along
    return x.name, x.shape, manifold and manifold.identity()


class _Watchers(NamedTuple):
    """PyTorch's own questions for who may look on as operators are called. They are not public, and may go."""

    transforms: Callable[[], Any]  # of torch.func
    dispatch_modes: Callable[[], Any]
    function_modes: Callable[[], Any]
    tracing: Callable[[], Any]  # by torch.jit

    @classmethod
    def of(cls, torch_c: Any) -> _Watchers:
        """Return PyTorch's questions. A missing one is answered by yes: then all calls go the way that all can watch."""
        names = ("_are_functorch_transforms_active", "_len_torch_dispatch_stack", "_len_torch_function_stack", "_is_tracing")
        return cls(*(getattr(torch_c, name, lambda: True) for name in names))


_watchers = _Watchers.of(torch._C)


def _unwatched() -> bool:
    """Whether only the value, and what `backward` needs, is wanted of a call: nothing transforms, traces or watches it."""
    transforms, dispatch_modes, function_modes, tracing = _watchers
    return not (
        forward_ad._current_level >= 0 or transforms() or dispatch_modes() or function_modes() or tracing()
    )  # fmt: skip


class _Operator:
    """A function as an operator of PyTorch's, with what its compiler and its transformations ask for.

    `call` is what compilers see, of one name and one schema; it has derivatives by `backward`. What they make of it, and all
    else in the end, calls `value`, an operator without derivatives: there PyTorch enters no Python on the way to the function.
    `apply` has a derivative for `torch.func` and for forward differentiation, too, which operators cannot register. `recorded`
    has one for `backward` alone, at a fraction of the price.
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

        forward.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]  # PyTorch looks for it at each call
        self.apply = _differentiable(
            name, forward=forward, setup_context=self._keep, backward=self._pulled_back, jvp=self._pushed_forward,
            vmap=lambda info, axes, *args: self._batched(self.apply, axes, args),
        )  # fmt: skip
        self.recorded = _differentiable(name, forward=self._recorded, backward=self._pulled_back)
        self._unseen = _differentiable(name, forward=self._recorded_straight, backward=self._pulled_back)
        _library.impl(f"{name}_value", torch.library.fallthrough_kernel, "Autograd")
        _library.impl(name, self._called, "Autograd")

    def _defined(self, name: str) -> Any:
        """An operator without derivatives."""
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
        """The results, by the shortest way that gives all that is asked for."""
        if torch.compiler.is_compiling():
            self._check(args)
            if forward_ad._current_level >= 0:  # an operator would drop the tangents without a word
                raise NotImplementedError(
                    f"{self.function.name}: torch.compile has no forward derivatives of it; call jvp uncompiled"
                )
            return self.call(*args)
        moving = False
        for x in args:
            if type(x) not in _PLAIN or x.is_neg():
                break
            moving = moving or x.requires_grad
        else:
            if _unwatched():
                try:  # as `suppress`, which takes its time
                    return self._unseen(*args) if moving and torch.is_grad_enabled() else self._straight(*args)
                except (RuntimeError, TypeError):  # for tensors elsewhere, or that stand for a batch; or wrong ones
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
                raise TypeError(f"{self.function.name}: {name} must be a dense tensor (as of `to_dense()`); got {kind}")

    # values

    def _computed(self, *args: Any) -> Any:
        """For PyTorch's dispatcher."""
        if all(x.is_cpu for x in args):
            return self._straight(*args)
        return self._one_or_tuple(self.function(*(x.detach() for x in args)))

    def _straight(self, *args: Any) -> Any:
        """On the processor, past PyTorch's dispatcher. Raises TypeError or RuntimeError for what must go through it."""
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
            if x._is_zerotensor() or torch._is_functional_tensor(x):  # the dispatcher knows what to do with both
                raise TypeError(f"{self.function.name}: {name} stands for a tensor, and has no elements of its own")
            if x.numel() and not x.untyped_storage().nbytes():
                raise ValueError(f"{self.function.name}: {name} has no elements any more: its storage was freed")
        arrays = [x.numpy(force=True) for x in args]
        values = self._of_arrays(arrays)
        if dtype not in self._entries and [x.ndim for x in arrays] == self._ranks and all(x.dtype == dtype for x in args):
            self._entries[dtype] = straight_entry(self.function, dtype)
        return values

    def _of_arrays(self, arrays: Sequence[Any]) -> Any:
        """On the processor, without copies."""
        how = {}
        if [a.ndim for a in arrays] != self._ranks:  # of one state it goes without saying
            threads = torch.get_num_threads()
            if threads < processors():
                how["threads"] = threads
        values = self.function(*arrays, **how)
        return _tensor(values) if len(self.outputs) == 1 else tuple([_tensor(y) for y in values])

    def _described(self, *args: Any) -> Any:
        """Tensors like the results, without elements."""
        for x, own in zip(args, self.inputs, strict=True):
            if tuple(x.shape[max(x.ndim - len(own.shape), 0) :]) != own.shape:
                core = ", ".join(["...", *map(str, own.shape)])
                raise ValueError(f"{self.function.name}: {own.name} must have shape ({core}); got {tuple(x.shape)}")
        batch = torch.broadcast_shapes(*(x.shape[: x.ndim - len(own.shape)] for x, own in zip(args, self.inputs, strict=True)))
        dtype = torch.float32 if all(x.dtype == torch.float32 for x in args) else torch.float64
        return self._one_or_tuple([torch.empty((*batch, *y.shape), dtype=dtype, device=args[0].device) for y in self.outputs])

    def _one_or_tuple(self, values: Any) -> Any:
        """Results as a schema has them."""
        if len(self.outputs) > 1:
            return tuple(values)
        return values[0] if isinstance(values, list) else values

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
        """The operator where tensors may have gradients."""
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
    """A derivative of an operator, of its arguments and further ones, which are in order but may come before optional ones."""

    def __init__(self, function: CompiledFunction[Any], known: Sequence[str]) -> None:
        self._operator = _operator(function)
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
    """Summed over what was broadcast, in the precision of the argument."""
    bar = bar if bar.shape == x.shape else bar.sum_to_size(x.shape)
    return bar if bar.dtype == x.dtype else bar.to(x.dtype)


def _tensor(y: Any) -> Any:
    """Return the tensor of an array, whose memory it shares, or of a number."""
    return torch.from_numpy(y) if type(y) is np.ndarray else torch.as_tensor(y)
