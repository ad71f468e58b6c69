"""Compiled functions as functions of tensors."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

from ...engine.execution import bound, result_class
from ...engine.function import CompiledFunction
from ..arguments import compiled_function
from .operators import Operator, operator_of


def wrap(function: CompiledFunction[Any]) -> Wrapped:
    """Return a function of a robot as a function of PyTorch's tensors, float32 or float64.

    Leading axes broadcast. Optional arguments are keywords; several results are a named tuple.

    Tensors on the processor are read without copies, on at most `torch.get_num_threads` threads. Tensors on CUDA devices are
    computed on their device. Gradients of any order, by `Tensor.backward` and `torch.func` (grad, vjp, jvp, jacrev, jacfwd,
    hessian, vmap), are exact. `torch.compile` compiles calls without a graph break, with values, `backward` and vmap, but
    without derivatives by `torch.func` inside the compiled code.

    Gradients with respect to configurations are tangent to their manifold: q_bar = R (Rᵀ R)⁻¹ v_bar, for the cotangent v_bar of
    velocities and the rates R v of q (`CompiledFunction.ambient`).

    Raises TypeError for an argument that is not a compiled function. Calls raise TypeError and ValueError as the function does,
    and name the argument. The derivative of a function that is too large to be traced raises ValueError.
    """
    return Wrapped(compiled_function(function))


class Wrapped:
    """A compiled function of tensors, made by `wrap`."""

    def __init__(self, function: CompiledFunction[Any]) -> None:
        self.function, self.__name__, self.__doc__ = function, function.name, function.__doc__
        self._options = options = tuple(function.program.options)
        choices = chain.from_iterable(combinations(options, k) for k in range(len(options) + 1))
        # made here, before a compiler traces calls
        self._operators = {chosen: operator_of(function.chosen(dict.fromkeys(chosen, True))) for chosen in choices}
        self._alone = self._operators[()]
        fields = tuple(y.name for y in function.program.outputs)
        self._results = result_class(function.name, fields) if len(fields) > 1 else None

    def __call__(self, *args: Any, **named: Any) -> Any:
        operator = self._alone
        if named or len(args) != len(operator.names):
            operator, args = self._bound(args, named)
        values = operator(*args)
        return values if self._results is None else self._results(*values)

    def _bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Operator, tuple[Any, ...]]:
        """Return the operator for the given options, and its arguments in order."""
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
