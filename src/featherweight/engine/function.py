"""Compiled functions: what users call like a NumPy gufunc."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, cast

import numpy as np

from ..names import missing_attribute, unknown_keyword
from .ambient_program import AmbientProgram, is_ambient, is_plain
from .backends import EXECUTIONS, backend
from .backends.host_arrays import TYPES
from .backends.protocol import Executable
from .call_arrays import batch_axes, bound, given_results, result_type
from .call_signature import OfInstances, call_text, described
from .derivative_program import JacobianProgram, PullbackProgram, PushforwardProgram
from .lazy import some_are_lazy
from .operations import Operations
from .program import FusedProgram, Program
from .result_class import result_class
from .trace import Trace
from .traced import NODE_BUDGET, Traced
from .waiting import told

Array = np.ndarray[Any, np.dtype[Any]]

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # whose stubs type checkers have: a default is Python 3.13's

    from .backends.cuda.device_code import DeviceCode
    from .backends.llvm.backend import MachineCode

    R = TypeVar("R", default=Array, covariant=True)
else:
    from typing import TypeVar

    R = TypeVar("R", covariant=True)


def require_execution(execution: str) -> None:
    """Raise ValueError for an execution that there is not."""
    if execution not in EXECUTIONS:
        raise ValueError(f"execution must be one of {', '.join(EXECUTIONS)}; got {execution!r}")


class CompiledFunction(Generic[R]):
    """A function of arrays, compiled for one robot at its first call and kept on disk.

    Called like a NumPy gufunc: leading axes broadcast, results are float32 if every argument is and float64 otherwise,
    `out=` takes the result. A function with several results returns a named tuple of them, and `out=` is a tuple. `threads=`
    says how many threads share a large batch (all processors by default). The GIL is released while it computes. NaN in a
    state gives NaN in that state's results and nowhere else.

    For type checkers the result is a NumPy array, or what stands in brackets: `CompiledFunction[Any]` where it is a float for
    one state, and of functions made while a program runs. Given arrays of other libraries it is theirs: `typing.cast` says so.

    Raises TypeError for a wrong number or name of arguments and ValueError for a wrong shape, naming the argument.
    """

    def __init__(self, program: Program, execution: str = "auto", algorithm: str = "") -> None:
        require_execution(execution)
        self.program = program
        self.algorithm = algorithm or program.kernels[0].kernel.__name__
        self._asked = execution
        self._variants: dict[str, CompiledFunction[R]] = {}
        self._candidates: dict[str, CompiledFunction[R]] = {}
        self._derivatives: dict[tuple[str, ...], CompiledFunction[Any]] = {}
        self._traced = Traced(program, bounded=execution != "traced")
        self.__name__ = self.__qualname__ = program.name
        self.__doc__ = described(program)

    __signature__ = OfInstances()

    if not TYPE_CHECKING:  # type checkers would take every attribute to be there
        __getattr__ = missing_attribute

    # what it is

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def signature(self) -> str:
        """Core shapes, as NumPy writes them, for `dask.array.apply_gufunc` and others: "(39),(38)->(38)"."""
        return self.program.signature

    @property
    def nin(self) -> int:
        """Arguments, as of NumPy's ufuncs."""
        return len(self.program.inputs)

    @property
    def nout(self) -> int:
        """Results."""
        return len(self.program.outputs)

    @property
    def operations(self) -> Operations:
        """Exact counts for one state, from the trace that is compiled."""
        return self._traced.operations

    @property
    def trace(self) -> Trace:
        """The expression graph that is counted and compiled, for `evaluate`."""
        return self._traced.trace

    @cached_property
    def execution(self) -> str:
        """ "traced", "rolled" or "interpreted": how it runs."""
        if self._asked != "auto":
            return self._asked
        return "rolled" if self.program.rollable and self.too_large else "traced"

    @property
    def too_large(self) -> bool:
        """Whether its trace goes past the node budget, which only a function that is to be traced may do."""
        return self._traced.too_large

    def variant(self, option: str) -> CompiledFunction[R]:
        """The function with a further argument, which is also used when that argument is given in a call."""
        if option not in self._variants:
            if option not in self.program.options:
                raise TypeError(f"{self.program} has no argument {option!r}")
            self._variants[option] = CompiledFunction(self.program.given(option), self._asked, self.algorithm)
        return self._variants[option]

    def copy(self, algorithm: str = "") -> CompiledFunction[R]:
        """The same function, not compiled yet, without the algorithms that it was compared with; it may be called another."""
        same: CompiledFunction[R] = CompiledFunction(self.program, self._asked, algorithm or self.algorithm)
        same._traced = self._traced
        return same

    @property
    def candidates(self) -> dict[str, Operations]:
        """Operation counts of the algorithms that were compared, this one's included, by name."""
        return {name: f.operations for name, f in self._candidates.items()}

    @property
    def alternatives(self) -> dict[str, CompiledFunction[R]]:
        """The functions that were compared, this one included, by the names of their algorithms."""
        return dict(self._candidates) or {self.algorithm: self}

    @property
    def parts(self) -> dict[str, Operations]:
        """Operation counts of each function alone where this one fuses several (`Robot.together`); otherwise empty."""
        if not isinstance(self.program, FusedProgram):
            return {}
        bounded = self._asked != "traced"
        names = [", ".join(names) for names in self.program.names]
        return {n: Traced(p, bounded).operations for n, p in zip(names, self.program.alone or self.program.parts, strict=True)}

    # derivatives

    def derivative(self, *by: str) -> CompiledFunction[Any]:
        """The derivatives of all results by the arguments named, or by all: dy_dx, of shape (..., *result, *argument).

        Exact, by forward differentiation of the trace (Griewank and Walther 2008, chapter 3). Where the function may be
        computed by several algorithms, that with the fewest operations is taken; but where an argument is on a manifold, as a
        configuration with a quaternion, it is that of the value: off the manifold they are not the same function. A
        configuration changes along velocities, as by `Robot.integrate`, so that derivatives by it have nv columns; those of a
        result that is a placement are local tangents. Naming an optional argument makes the function one that takes it.

        For one state, compiled code computes several directions at once, in the lanes of vectors. The derivatives differ by
        rounding from those of the same state in a batch, and where one of them is infinite, others may be NaN.

        Raises TypeError for an argument that the function does not have, ValueError for a function too large to be traced.
        """
        for name in by:
            if name in self.program.options:
                return self.variant(name).derivative(*by)
        names = tuple(x.name for x in self.program.inputs)
        if unknown := set(by) - set(names):
            raise unknown_keyword(str(self.program), min(unknown), names)
        chosen = tuple(n for n in names if n in by) or names
        what = f"Derivatives of {self.name} by {', '.join(chosen)}. {self.program.doc}"
        return self._derived(("derivative", *chosen), lambda p: JacobianProgram(p, what, chosen))

    @property
    def pushforward(self) -> CompiledFunction[Any]:
        """The rates of the results along one direction, without the Jacobian: of the arguments x and their rates x_dot.

        Rates of configurations are velocities. By forward differentiation of the trace.
        """
        what = f"Rates of {self.name} along one direction. {self.program.doc}"
        return self._derived(("pushforward",), lambda p: PushforwardProgram(p, what))

    @property
    def pullback(self) -> CompiledFunction[Any]:
        """The cotangents x_bar = y_barᵀ dy/dx of the arguments, without the Jacobian, of these and cotangents y_bar of results.

        The cotangent of a configuration is that of its velocity (nv). Computed by backward differentiation of the trace
        (Griewank and Walther 2008, chapter 4), which takes a few times as long as the function itself, however many arguments
        there are.
        """
        what = f"Cotangents of {self.name}. {self.program.doc}"
        return self._derived(("pullback",), lambda p: PullbackProgram(p, what))

    @property
    def ambient(self) -> CompiledFunction[R]:
        """The same function for libraries that know arrays and no manifolds: derivatives are changes of arrays by arrays.

        Changes that lead away from a manifold, as along a quaternion, count by their projection on its tangents, and cotangents
        are projected alike: <x_bar, dx> = <v_bar, v> for a change dx along a velocity v.
        """
        return self if is_ambient(self.program) else self._derived(("ambient",), AmbientProgram)

    def _derived(self, key: tuple[str, ...], made: Callable[[Program], Program]) -> CompiledFunction[Any]:
        """Return a derivative, made from each of the algorithms.

        Where an argument is on a manifold, the value's algorithm is taken, otherwise the cheapest. Raises ValueError for a
        function too large to be traced.
        """
        if key not in self._derivatives:
            sources = {name: f for name, f in self.alternatives.items() if not f.too_large}
            if not sources:
                raise ValueError(f"{self.name} is too large to be differentiated: its trace goes past the budget of operations")
            how = "interpreted" if self._asked == "interpreted" else "traced"
            derived: dict[str, CompiledFunction[Any]] = {
                name: CompiledFunction(made(f.program), how, name) for name, f in sources.items()
            }
            if self.algorithm in derived and not all(map(is_plain, self.program.inputs)):
                self._derivatives[key] = one_of(derived, self.algorithm)
            else:
                self._derivatives[key] = only_or_cheapest(derived)
        return self._derivatives[key]

    def __repr__(self) -> str:
        return f"<CompiledFunction {call_text(self.program)}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a function does not change

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, ([f._recipe for f in self._candidates.values()] or [self._recipe], self.algorithm)

    @property
    def _recipe(self) -> tuple[Program, str, str]:
        return self.program, self._asked, self.algorithm

    # calling it

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None, device: str | None = None, **named: Any) -> R:
        f = self.chosen(named)
        if f is not self:
            return f(*args, out=out, threads=threads, device=device, **named)
        result: R = self._general(bound(self.program, args, named), out, threads, device)
        return result

    def chosen(self, named: dict[str, Any]) -> CompiledFunction[R]:
        """Return the function for a call with these named arguments: of the algorithm asked for, with the options given.

        Entries of `named` that only select the function, and are no arguments of it, are removed.
        """
        algorithm = named.pop("algorithm", None)
        if algorithm is not None and algorithm != self.algorithm:
            if algorithm not in self._candidates:
                known = ", ".join(self._candidates or (self.algorithm,))
                raise ValueError(f"{self.name}: algorithm must be one of {known}; got {algorithm!r}")
            return self._candidates[algorithm].chosen(named)
        for option in self.program.options:
            if named.get(option) is not None:
                return self.variant(option).chosen(named)
            named.pop(option, None)
        return self

    def _general(self, args: tuple[Any, ...], out: Any, threads: int | None, device: str | None) -> Any:
        code: DeviceCode | None = self.__dict__.get("device_code")  # once it has been called on a device
        if code is not None and (again := code.again(args, out, threads, device)) is not None:
            return again[0] if self._result_class is None else self._result_class(*again)
        if threads is not None and (not isinstance(threads, (int, np.integer)) or threads < 1):
            raise ValueError(f"{self.name}: threads must be a whole number of at least 1; got {threads!r}")
        if not all(type(x) in TYPES for x in args) and some_are_lazy(args):
            return self._lazily(args, out, threads, device)
        executable = self._executable_for(args, out, device)
        arrays = [executable.array(x, f"{self.name}: {p.name}") for x, p in zip(args, self.program.inputs, strict=True)]
        batch = batch_axes(self.program, arrays)
        results = None if out is None else given_results(self.program, executable, out, batch)
        dtype = result_type(a.dtype for a in arrays)
        values = executable.run(arrays, batch, dtype, results, threads)
        return values[0] if self._result_class is None else self._result_class(*values)

    def _lazily(self, args: tuple[Any, ...], out: Any, threads: int | None, device: str | None) -> Any:
        """Dask arrays of the results, of arguments of which some are Dask arrays."""
        if out is not None:
            raise TypeError(f"{self.name}: out= is for arrays that exist; results of Dask arrays are computed later")
        from .lazy_blocks import OnBlocks, Result, of_blocks, shaped, taken  # only where Dask is

        arrays = [taken(x, f"{self.name}: {p.name}") for x, p in zip(args, self.program.inputs, strict=True)]
        batch_axes(self.program, [shaped(x, len(p.shape)) for x, p in zip(arrays, self.program.inputs, strict=True)])
        call = OnBlocks(CompiledFunction, self._recipe, threads, device, self)
        cores, dtype = [p.shape for p in self.program.inputs], result_type(a.dtype for a in arrays)
        results = [Result(r.name, r.shape, dtype) for r in self.program.outputs]
        values = of_blocks(call, self.name, list(zip(arrays, cores, strict=True)), results)
        return values[0] if self._result_class is None else self._result_class(*values)

    def _executable_for(self, args: tuple[Any, ...], out: Any, device: str | None) -> Executable:
        """Return the executable for the place where the arguments are, or for the device that is named."""
        if device is None and all(type(x) in TYPES for x in args) and type(out) in TYPES:
            return self._executable
        from .devices import executable_on_device  # only where there may be one

        return executable_on_device(self.program, lambda: self.device_code, args, out, device) or self._executable

    def tune(self, *args: Any, **named: Any) -> None:
        """Measure, for arguments on a device, the ways in which the function can be written for it, and keep the quickest.

        That takes some compilations and some calls. Later calls in the precision of these arguments use the result, also in
        other processes. Raises ValueError for arguments that are not on a device, and as a call does.
        """
        f = self.chosen(named)
        if f is not self:
            f.tune(*args, **named)
            return
        args = bound(self.program, args, named)
        executable: Any = self._executable_for(args, None, None)
        if not hasattr(executable, "tune"):
            raise ValueError(f"{self.name}: tune takes arrays on a device (CuPy's, PyTorch's or JAX's)")
        arrays = [executable.array(x, f"{self.name}: {p.name}") for x, p in zip(args, self.program.inputs, strict=True)]
        batch = batch_axes(self.program, arrays)
        if 0 in batch:
            raise ValueError(f"{self.name}: tune needs states to measure; got a batch of shape {batch}")
        executable.tune(arrays, batch, result_type(a.dtype for a in arrays))

    @cached_property
    def device_code(self) -> DeviceCode:
        """Kernels for devices, for bridges to other libraries, too. Raises ValueError for a function that is not traced."""
        from .backends.cuda.device_code import DeviceCode

        self._require_traced("run on a device")
        return DeviceCode(self.program, self._traced)

    @property
    def machine_code(self) -> MachineCode:
        """Machine code of the function, for bridges to other libraries. Raises ValueError for a function that is not traced."""
        self._require_traced("are machine code that other libraries can call")
        return cast("MachineCode", self._executable)

    def _require_traced(self, what: str) -> None:
        if self.execution != "traced":
            reason = "too large to be traced" if self._asked == "auto" else f"asked to be {self._asked}"
            raise ValueError(f"{self.name}: only traced functions {what}, and this one is {reason}")

    @cached_property
    def _executable(self) -> Executable:
        """Executable for calls from Python.

        Where the back end has an entry of its own, calls go there: Python looks for `__call__` in an object's class, so from
        here on this object is the only one of its own class, whose `__call__` is the entry.
        """
        executable = self._made_executable
        entry = executable.entry(self.name, self._result_class, CompiledFunction.__call__.__get__(self))
        if entry is not None:
            self.__class__ = type("CompiledFunction", (CompiledFunction,), {"__call__": entry, "__module__": __name__})
        return executable

    @cached_property
    def _made_executable(self) -> Executable:
        """Executable that the back end makes of the program."""
        return backend(self.execution).compile(self.program, self._traced)

    @cached_property
    def _result_class(self) -> type | None:
        """Class of the named tuple of several results; None for one result."""
        outputs = self.program.outputs
        return None if len(outputs) == 1 else result_class(self.name, tuple(r.name for r in outputs))

    def woven_address(self, lanes: int) -> int | None:
        """Address of `int f(double **arguments, mask *lanes)` for states that are woven, None where there is none."""
        return self.machine_code.woven_address(lanes) if self.execution == "traced" else None

    @property
    def address(self) -> int | None:
        """Address of machine code `int f(double **arguments)` for one state, the results last; None for interpreted functions.

        Compiled callers (steps of simulations, C by ctypes) may release the GIL. The code returns 0. If it runs out of memory,
        it returns 1 and the results are NaN. It stays in memory as long as this function exists. Raises MemoryError.
        """
        return self._made_executable.address  # an entry for calls from Python is compiled when one comes


DIVISION = 8  # multiplications that a division or a root takes the time of


def cost(o: Operations) -> int:
    """Return the cost by which algorithms are compared: a division or a root counts as `DIVISION` multiplications.

    Sines and cosines do not count: all algorithms have the same ones.
    """
    return o.flops + DIVISION * (o.div + o.sqrt)


def cheapest(candidates: dict[str, CompiledFunction[R]]) -> CompiledFunction[R]:
    """A function that is the candidate with the fewest operations, and answers for the others where a call insists on one.

    Candidates whose trace goes past the node budget, or far past the operations of one before, are out, unless all are, or
    loops were asked for: then the first is taken.
    """
    first = next(iter(candidates))
    costs: dict[str, int] = {}
    with told(f"{candidates[first].program.title} (comparing {len(candidates)} algorithms)"):
        for name, f in candidates.items():
            budget = f.program.nodes_for(min(costs.values())) if costs else NODE_BUDGET
            if f._asked != "rolled" and f._traced.within(budget):
                costs[name] = cost(f.operations)
    return one_of(candidates, min(costs, key=costs.__getitem__) if costs else first)


def one_of(candidates: dict[str, CompiledFunction[R]], algorithm: str) -> CompiledFunction[R]:
    """A function that is one of the candidates, and answers for the others; those that are given stay as they are."""
    own = {name: f.copy(name) for name, f in candidates.items()}
    own[algorithm]._candidates = own
    return own[algorithm]


def only_or_cheapest(candidates: dict[str, CompiledFunction[R]]) -> CompiledFunction[R]:
    """The cheapest of several; the only one as it is, not traced yet and without others to insist on."""
    return cheapest(candidates) if len(candidates) > 1 else next(iter(candidates.values()))


def _rebuilt(recipes: list[tuple[Program, str, str]], algorithm: str) -> CompiledFunction[Any]:
    """A function from its pickle."""
    functions: dict[str, CompiledFunction[Any]] = {recipe[2]: CompiledFunction(*recipe) for recipe in recipes}
    return one_of(functions, algorithm) if len(functions) > 1 else functions[algorithm]
