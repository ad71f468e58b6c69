"""Compiled functions in CasADi's expressions: machine code with exact, sparse Jacobians in place of expression graphs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .extras import install_command

try:
    import casadi
except ModuleNotFoundError as error:
    if error.name != "casadi":
        raise
    raise ImportError(f"featherweight.casadi needs CasADi: {install_command('casadi')}") from error

import numpy as np

from .engine import cache
from .engine.backends.llvm.jit import host
from .engine.function import CompiledFunction
from .exporting.c_names import check_name
from .exporting.casadi_code import SOURCE, CasadiFunction, casadi_functions, compile_for_casadi
from .exporting.export_targets import this_machine
from .exporting.linking import links_itself
from .exporting.shared_library import link


def wrap(
    f: CompiledFunction[Any], name: str | None = None, *, hessian: bool = False, jacobian: CompiledFunction[Any] | None = None
) -> Any:
    """A `casadi.Function` that is f for one state, with the exact Jacobian, its sparsity, and gradients.

    Its arguments and results have the names of f's. A vector (n,) is n x 1; an array with more than two axes has its first
    ones as rows, row by row. `hessian` also compiles second derivatives, for exact Hessians (Ipopt's default; without, ask for
    "ipopt.hessian_approximation": "limited-memory"); that takes ten times as long, once: compiled code is kept on disk. Where
    second derivatives are asked for and not compiled, CasADi says "Derivatives cannot be calculated for adj1_NAME".

    Configurations are nq plain numbers to CasADi, so derivatives are those of the code by each of them, also where a
    quaternion's length is not one, which the solver has to be asked for; dq is no velocity.

    `jacobian` is a function of the same arguments with the derivatives of each result by each of them, where there is one that
    takes fewer operations than f differentiated: `robot.forward_dynamics_derivatives` of robots whose joints all have one
    coordinate.

    Under Linux on x86-64 and AArch64 the function is machine code that CasADi calls by itself, on any thread. Elsewhere it
    calls back into Python, which costs 15 to 40 µs a call, and has no second derivatives.

    Other processes cannot load it from a pickle: export a library with `interface="casadi"` for them, and for acados.

    Raises TypeError for what is no compiled function, and ValueError for functions too large to be traced, names that C or
    CasADi do not take, and Jacobians of other functions.
    """
    for what, given in (("f", f), ("jacobian", jacobian)):
        if not isinstance(given, CompiledFunction) and (given is not None or what == "f"):
            raise TypeError(f"wrap: {what} must be a compiled function of a robot; got {type(given).__name__}")
    name = check_name(name or f.name, "the function")
    if not links_itself(this_machine()):
        if hessian:
            raise ValueError(f"{f.name}: second derivatives are for Linux on x86-64 and AArch64; this is {host().triple}")
        return CalledBack(name, f, casadi_functions(name, f, False, jacobian))
    algorithms = tuple(g.program.identity() for g in f.alternatives.values())
    slopes = jacobian.program.identity() if jacobian else None
    library = cache.kept(
        lambda: link([o.data for o in compile_for_casadi({name: f}, this_machine(), "", hessian, jacobian).values()], name),
        *("casadi", SOURCE, host(), name, algorithms, f.program.identity(), slopes, hessian),
        tuple((x.name, x.shape) for x in f.program.inputs), tuple((y.name, y.shape) for y in f.program.outputs),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:  # the file may go once it is loaded
        path = Path(folder, f"{name}.so")
        path.write_bytes(library)
        return casadi.external(name, str(path))


class CalledBack(casadi.Callback):  # type: ignore[misc]  # CasADi has no types
    """A function that CasADi calls through Python, where it cannot load our machine code."""

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

    def get_sparsity_in(self, i: int) -> Any:
        return _sparsity(self.own.interface.patterns_in[i])

    def get_sparsity_out(self, i: int) -> Any:
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
                f"{self.f.name}: second derivatives are for Linux on x86-64 and AArch64. Ask Ipopt for "
                '{"ipopt.hessian_approximation": "limited-memory"}'
            )
        self.jacobian_function = CalledBack(name, self.f, self.made, 1)
        return self.jacobian_function


def _sparsity(pattern: Any) -> Any:
    (rows, columns), places = pattern
    return casadi.Sparsity.triplet(rows, columns, [k % rows for k in places], [k // rows for k in places])
