"""Compiled functions as CasADi's functions: machine code with exact, sparse Jacobians in place of expression graphs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import casadi
import numpy as np

from ..engine import cache
from ..engine.backends.llvm.jit import host
from ..engine.function import CompiledFunction
from ..exporting.c_names import check_name
from ..exporting.casadi_code import SOURCE, CasadiFunction, casadi_functions, compile_for_casadi
from ..exporting.casadi_entries import Pattern
from ..exporting.export_targets import this_machine
from ..exporting.shared_library import link, links_itself
from .arguments import compiled_function


def wrap(
    function: CompiledFunction[Any],
    name: str | None = None,
    *,
    hessian: bool = False,
    jacobian: CompiledFunction[Any] | None = None,
) -> casadi.Function:
    """Return a function of a robot as a `casadi.Function` of one state, with the exact, sparse Jacobian and gradients.

    Arguments and results have the names of those of the function. A vector (n,) is n x 1. An array with more than two axes is a
    matrix whose rows are the first axes, in row-major order.

    `hessian` also compiles second derivatives, for exact Hessians, which are Ipopt's default. This takes ten times as long, but
    only once, because the cache keeps compiled code. Without second derivatives, solvers that need them fail with CasADi's
    "Derivatives cannot be calculated for adj1_NAME": set "ipopt.hessian_approximation" to "limited-memory".

    `jacobian` is a function of the same arguments that returns the derivatives of each result by each argument with fewer
    operations: `robot.forward_dynamics_derivatives` for robots whose joints all have one coordinate.

    CasADi treats a configuration as nq plain numbers. Derivatives are with respect to each of them, also where a quaternion
    does not have unit length; the problem must constrain the length. A change dq is not a velocity.

    On Linux on x86-64 and AArch64 CasADi calls the machine code directly, on any thread. Elsewhere each call goes through
    Python, which takes 15 to 40 µs, and there are no second derivatives.

    Other processes cannot load the function from a pickle: export a library with `interface="casadi"` for them, and for acados.

    Raises TypeError for an argument that is not a compiled function, and ValueError for functions that are too large to be
    traced, for names that are invalid in C or CasADi, and for a `jacobian` that is not that of the function.
    """
    f = compiled_function(function)
    if jacobian is not None:
        compiled_function(jacobian, "jacobian")
    name = check_name(name or f.name, "the function")
    if not links_itself(this_machine()):
        if hessian:
            raise ValueError(f"{f.name}: second derivatives need Linux on x86-64 or AArch64; this is {host().triple}")
        return CalledBack(name, f, casadi_functions(name, f, False, jacobian))
    algorithms = tuple(g.program.identity() for g in f.alternatives.values())
    slopes = jacobian.program.identity() if jacobian else None
    library = cache.kept(
        lambda: link([o.data for o in compile_for_casadi({name: f}, this_machine(), "", hessian, jacobian).values()], name),
        *("casadi", SOURCE, host(), name, algorithms, f.program.identity(), slopes, hessian),
        tuple((x.name, x.shape) for x in f.program.inputs), tuple((y.name, y.shape) for y in f.program.outputs),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:  # a loaded file can be removed
        path = Path(folder, f"{name}.so")
        path.write_bytes(library)
        return casadi.external(name, str(path))


class CalledBack(casadi.Callback):  # type: ignore[misc]  # CasADi has no types
    """A function that CasADi calls through Python, on systems where it cannot load the machine code."""

    def __init__(self, name: str, f: CompiledFunction[Any], made: list[CasadiFunction], which: int = 0) -> None:
        super().__init__()
        self.made, self.which, self.f = made, which, f
        self.own = made[which]
        self.compiled = self.own.callable()
        self.jacobian_function: Any = None
        self.construct(name, {})

    def get_n_in(self) -> int:
        return len(self.own.interface.names_in)

    def get_n_out(self) -> int:
        return len(self.own.interface.names_out)

    def get_name_in(self, i: int) -> str:
        return self.own.interface.names_in[i]

    def get_name_out(self, i: int) -> str:
        return self.own.interface.names_out[i]

    def get_sparsity_in(self, i: int) -> casadi.Sparsity:
        return _sparsity(self.own.interface.patterns_in[i])

    def get_sparsity_out(self, i: int) -> casadi.Sparsity:
        return _sparsity(self.own.interface.patterns_out[i])

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(self, arguments: Any, results: Any) -> int:
        given = [np.frombuffer(arguments[k], np.float64) for k in self.own.interface.read]
        values = self.compiled(*given)
        for buffer, value in zip(results, values if isinstance(values, tuple) else (values,), strict=True):
            if buffer is not None:
                np.frombuffer(buffer, np.float64)[:] = value
        return 0

    def has_jacobian(self) -> bool:
        return True

    def get_jacobian(self, name: str, *_: Any) -> Any:
        if self.which > 0:
            raise NotImplementedError(
                f"{self.f.name}: second derivatives need Linux on x86-64 or AArch64. Set Ipopt's option "
                '{"ipopt.hessian_approximation": "limited-memory"}'
            )
        self.jacobian_function = CalledBack(name, self.f, self.made, 1)
        return self.jacobian_function


def _sparsity(pattern: Pattern) -> casadi.Sparsity:
    (rows, columns), places = pattern
    return casadi.Sparsity.triplet(rows, columns, [k % rows for k in places], [k // rows for k in places])
