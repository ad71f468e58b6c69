"""Compiled functions, which users call like NumPy gufuncs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self

from ..array_types import Array
from ..checks import NAME, argument, one_of
from ..names import SuggestsNames, unknown_keyword
from .ambient_program import AmbientProgram, is_ambient
from .backends import EXECUTIONS
from .backends.protocol import Executable
from .derivative_program import JacobianProgram, PullbackProgram, PushforwardProgram
from .direct_calls import DirectlyCalled, call_directly
from .execution import Execution, bound, cheapest_of, derived
from .guarded import WatchedCalls, WatchedProgram
from .operations import Operations
from .program import FusedProgram, Program
from .signature import OfInstances, call_text, described
from .trace import Trace

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # for the default, which typing has from Python 3.13 on

    from .backends.cuda.device_code import DeviceCode
    from .backends.llvm.backend import MachineCode

    R = TypeVar("R", default=Array, covariant=True)
else:
    from typing import TypeVar

    R = TypeVar("R", covariant=True)


def require_execution(execution: str) -> None:
    """Raise ValueError for an unknown execution."""
    argument("execution", execution, one_of(EXECUTIONS))


class CompiledFunction(DirectlyCalled, SuggestsNames, Generic[R]):
    """A function of arrays, compiled for one robot at its first call and cached on disk.

    Call it like a NumPy gufunc: leading axes broadcast, and `out=` takes the result array. Results are float32 if all arguments
    are float32, otherwise float64. A function with several results returns a named tuple, and `out=` is a tuple. `threads=`
    limits the threads that share a large batch (default: all processors). Calls release the GIL. NaN in one state affects only
    the results of that state.

    For type checkers, the result is a NumPy array, or the type in brackets. It is `CompiledFunction[Any]` for functions that
    return a float for one state, and for functions made at run time. For arrays of other libraries, the result has their type,
    which `typing.cast` declares.

    Raises TypeError for a wrong number or name of arguments and ValueError for a wrong shape, naming the argument.
    """

    def __init__(self, program: Program, execution: str = "auto", algorithm: str = "") -> None:
        require_execution(execution)
        own = Execution(program, execution, algorithm)
        self._take({own.algorithm: own}, own.algorithm)

    @classmethod
    def of_executions(cls, executions: Mapping[str, Execution], algorithm: str) -> CompiledFunction[Any]:
        """Return a function with several algorithms by name, and the name of the one that it uses.

        No other function uses these executions.
        """
        function = cls.__new__(cls)
        function._take(executions, algorithm)
        return function

    def _take(self, executions: Mapping[str, Execution], algorithm: str) -> None:
        self.executions, self.algorithm = executions, algorithm
        self.own = executions[algorithm]
        self.program = self.own.program
        self._guarded: WatchedCalls | None = None
        if isinstance(self.program, WatchedProgram):
            self._guarded = self.program.calls(self.own.asked, algorithm)
        self._alternatives: dict[str, CompiledFunction[R]] = {self.algorithm: self}
        self._variants: dict[str, CompiledFunction[R]] = {}
        self._derivatives: dict[tuple[str, ...], CompiledFunction[Any]] = {}
        self.__name__ = self.__qualname__ = self.program.name
        self.__doc__ = described(self.program)

    __signature__ = OfInstances()

    # # properties

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def signature(self) -> str:
        """Core shapes in NumPy's notation, for `dask.array.apply_gufunc` and others: "(39),(38)->(38)"."""
        return self.program.signature

    @property
    def nin(self) -> int:
        """Number of arguments, as in NumPy's ufuncs."""
        return len(self.program.inputs)

    @property
    def nout(self) -> int:
        """Number of results."""
        return len(self.program.outputs)

    @property
    def operations(self) -> Operations:
        """Exact operation counts for one state, from the trace that is compiled."""
        return self.own.traced.operations

    @property
    def trace(self) -> Trace:
        """The expression graph that is counted and compiled; an argument of `evaluate`."""
        return self.own.traced.trace

    @property
    def execution(self) -> str:
        """The way in which the function runs: "traced", "rolled" or "interpreted"."""
        return self.own.how

    @property
    def too_large(self) -> bool:
        """Return whether the trace exceeds the node budget, which is possible only with execution "traced"."""
        return self.own.too_large

    def variant(self, option: str) -> CompiledFunction[R]:
        """Return the function with an optional argument added. A call that gives this argument uses the same variant."""
        argument(f"{self.name}: option", option, NAME)
        if option not in self._variants:
            if option not in self.program.options:
                raise TypeError(f"{self.program} has no argument {option!r}")
            self._variants[option] = CompiledFunction(self.program.given(option), self.own.asked, self.algorithm)
        return self._variants[option]

    def copy(self, algorithm: str = "") -> CompiledFunction[R]:
        """Return a function with the same program, not yet compiled, without alternative algorithms.

        `algorithm` renames its algorithm.
        """
        argument(f"{self.name}: algorithm", algorithm, NAME)
        own = self.own.renamed(algorithm or self.algorithm)
        return CompiledFunction.of_executions({own.algorithm: own}, own.algorithm)

    @property
    def candidates(self) -> dict[str, Operations]:
        """Operation counts of the compared algorithms by name, including the one in use.

        Algorithms whose trace exceeds the node budget are not counted; `alternatives` includes them.
        """
        several = self.executions if len(self.executions) > 1 else {}
        return {name: x.traced.operations for name, x in several.items() if not x.too_large}

    @property
    def alternatives(self) -> dict[str, CompiledFunction[R]]:
        """Functions of the compared algorithms by name, including the one in use."""
        return {name: self._by(name) for name in self.executions}

    def _by(self, algorithm: str) -> CompiledFunction[R]:
        """Return the function with another one of its algorithms, and without the rest."""
        if algorithm not in self._alternatives:
            one = {algorithm: self.executions[algorithm]}
            self._alternatives[algorithm] = CompiledFunction.of_executions(one, algorithm)
        return self._alternatives[algorithm]

    @property
    def parts(self) -> dict[str, Operations]:
        """Operation counts of each part of a fused function (`Robot.together`); empty for other functions."""
        if not isinstance(self.program, FusedProgram):
            return {}
        names, parts = map(", ".join, self.program.names), self.program.alone or self.program.parts
        return {n: Execution(p, self.own.asked).traced.operations for n, p in zip(names, parts, strict=True)}

    # derivatives

    def derivative(self, *by: str) -> CompiledFunction[Any]:
        """Return the function of the derivatives of all results with respect to the named arguments, or to all arguments.

        Its results dy_dx have shape (..., *result, *argument). They are exact, by forward differentiation of the trace
        (Griewank and Walther 2008, chapter 3). Among several algorithms, the one with the fewest operations is differentiated.
        The exception are functions of a manifold, such as configurations with quaternions: off the manifold the algorithms
        differ, so the algorithm of the value is differentiated. A configuration changes along velocities, as in
        `Robot.integrate`, so its derivatives have nv columns. Derivatives of placements are local tangents. Naming an optional
        argument makes it an argument of the derivative.

        For one state, compiled code computes several directions at once in vector lanes. The results differ by rounding errors
        from those of the same state in a batch. If one derivative is infinite, others may be NaN.

        Raises TypeError for an unknown argument, and ValueError for a function too large to be traced.
        """
        for name in by:
            argument(f"{self.name}.derivative: by", name, NAME)
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
        """Return the function of the rates of the results along one direction, without the Jacobian.

        Its arguments are the arguments x and their rates x_dot. Rates of configurations are velocities. It is computed by
        forward differentiation of the trace.
        """
        what = f"Rates of {self.name} along one direction. {self.program.doc}"
        return self._derived(("pushforward",), lambda p: PushforwardProgram(p, what))

    @property
    def pullback(self) -> CompiledFunction[Any]:
        """Return the function of the cotangents x_bar = y_barᵀ dy/dx of the arguments, without the Jacobian.

        Its arguments are the arguments x and cotangents y_bar of the results. The cotangent of a configuration is that of its
        velocity (nv). It is computed by backward differentiation of the trace (Griewank and Walther 2008, chapter 4), which
        takes a few times as long as the function itself, for any number of arguments.
        """
        what = f"Cotangents of {self.name}. {self.program.doc}"
        return self._derived(("pullback",), lambda p: PullbackProgram(p, what))

    @property
    def ambient(self) -> CompiledFunction[R]:
        """Return the function for libraries without manifolds: its derivatives are those of arrays with respect to arrays.

        A change that leaves a manifold, as along a quaternion, counts by its projection on the tangent space. Cotangents are
        projected in the same way: <x_bar, dx> = <v_bar, v> for a change dx along a velocity v.
        """
        return self if is_ambient(self.program) else self._derived(("ambient",), AmbientProgram)

    def _derived(self, key: tuple[str, ...], made: Callable[[Program], Program]) -> CompiledFunction[Any]:
        """Return the function of the programs that `made` derives from the programs of this function; the result is cached."""
        if key not in self._derivatives:
            self._derivatives[key] = CompiledFunction.of_executions(*derived(self.executions, self.algorithm, made))
        return self._derivatives[key]

    def __repr__(self) -> str:
        return f"<CompiledFunction {call_text(self.program)}>"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # functions are immutable

    def __reduce__(self) -> tuple[object, ...]:
        return CompiledFunction.of_executions, (self.executions, self.algorithm)

    # # calls

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None, device: str | None = None, **named: Any) -> R:
        f = self.chosen(named)
        if f is not self:
            return f(*args, out=out, threads=threads, device=device, **named)
        given = bound(self.program, args, named)
        if self._guarded is not None:
            return self._call_guarded(self._guarded, given, out, threads, device)
        result: R = self.own(*given, out=out, threads=threads, device=device, begin=self._take_entry)
        return result

    def _call_guarded(self, calls: WatchedCalls, args: tuple[Any, ...], out: Any, threads: int | None, device: str | None) -> R:
        """Return the results of a guarded call."""
        if not calls.watch.hidden:
            whole: R = calls(args, out, threads, device, self._take_entry)  # type: ignore[assignment]
            return whole
        *results, _ = calls(args, None, threads, device, self._take_entry)
        result: R = self.own.given(results, args, out)
        return result

    def chosen(self, named: dict[str, Any]) -> CompiledFunction[R]:
        """Return the function for a call with these named arguments: with the requested algorithm and the given options.

        Entries of `named` that only select the function, and are not its arguments, are removed.
        """
        algorithm = named.pop("algorithm", None)
        if algorithm is not None and (not isinstance(algorithm, str) or algorithm != self.algorithm):
            argument(f"{self.name}: algorithm", algorithm, one_of(self.executions))
            return self._by(algorithm).chosen(named)
        for option in self.program.options:
            if named.get(option) is not None:
                return self.variant(option).chosen(named)
            named.pop(option, None)
        return self

    def tune(self, *args: Any, **named: Any) -> None:
        """Measure the variants of the kernel for arguments on a device, and keep the fastest.

        This takes several compilations and calls. Later calls in the precision of these arguments use the result, also in other
        processes. Raises ValueError for arguments that are not on a device, and the errors of a call.
        """
        f = self.chosen(named)
        if f is not self:
            f.tune(*args, **named)
            return
        self.own.tune(bound(self.program, args, named))

    @property
    def device_code(self) -> DeviceCode:
        """Kernels for devices, also for bridges to other libraries. Raises ValueError for a function that is not traced."""
        return self.own.device_code

    @property
    def machine_code(self) -> MachineCode:
        """Machine code of the function, for bridges to other libraries. Raises ValueError for a function that is not traced."""
        return self.own.machine_code

    def _take_entry(self, executable: Executable) -> None:
        """Make Python call the entry of the back end directly, if there is one."""
        watch = None if self._guarded is None else self._guarded.watch
        entry = executable.entry(self.own.result_class, type(self).__call__.__get__(self), watch)
        if entry is not None:
            call_directly(self, entry)

    def interleaved_address(self, lanes: int) -> int | None:
        """Address of `int f(double **arguments, mask *lanes)` for interleaved states; None if there is none."""
        return self.machine_code.interleaved_address(lanes) if self.execution == "traced" else None

    @property
    def address(self) -> int | None:
        """Address of machine code `int f(double **arguments)` for one state, results last; None for interpreted functions.

        Compiled callers (time steps of simulations, C by ctypes) may release the GIL. The code returns 0. If it runs out of
        memory, it returns 1 and the results are NaN. The code stays in memory as long as this function exists. Raises
        MemoryError.
        """
        return self.own.executable.address  # the entry for calls from Python is compiled at the first such call


def traced(function: CompiledFunction[R]) -> CompiledFunction[R]:
    """Return a function as straight-line machine code, which compiled callers need, whatever its own execution is."""
    return function if function.execution == "traced" else CompiledFunction(function.program, "traced")


def cheapest(candidates: Mapping[str, CompiledFunction[R]]) -> CompiledFunction[R]:
    """Return a function that uses the candidate with the fewest operations, and other candidates if a call requests them.

    It is a new function, which shares the traces of the candidates; the candidates do not change. Candidates whose trace
    exceeds the node budget, or has far more operations than an earlier one, are excluded. If all are excluded, or rolled
    execution was requested, the first one is used.
    """
    executions = {name: f.own.renamed(name) for name, f in candidates.items()}
    return CompiledFunction.of_executions(executions, cheapest_of(executions))
