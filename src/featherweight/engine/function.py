"""Compiled functions: what users call like a NumPy gufunc."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self

import numpy as np

from ..names import missing_attribute, unknown_keyword
from .ambient_program import AmbientProgram, is_ambient
from .backends import EXECUTIONS
from .backends.protocol import Executable
from .call_arrays import bound
from .call_signature import OfInstances, call_text, described
from .derivative_program import JacobianProgram, PullbackProgram, PushforwardProgram
from .operations import Operations
from .program import FusedProgram, Program
from .runner import Runner
from .trace import Trace
from .ways import Way, Ways, cheapest_way

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
        way = Way.of(program, execution, algorithm)
        self._set_ways(Ways({way.algorithm: way}, way.algorithm))

    @classmethod
    def of_ways(cls, ways: Ways) -> CompiledFunction[Any]:
        """Return the function with several algorithms, which share their traces with the functions that they come from."""
        function = cls.__new__(cls)
        function._set_ways(ways)
        return function

    def _set_ways(self, ways: Ways) -> None:
        self.ways, self.program, self.algorithm = ways, ways.own.program, ways.algorithm
        self.runner = Runner(ways.own)
        self._alternatives: dict[str, CompiledFunction[R]] = {self.algorithm: self}
        self._variants: dict[str, CompiledFunction[R]] = {}
        self._derivatives: dict[tuple[str, ...], CompiledFunction[Any]] = {}
        self.__name__ = self.__qualname__ = self.program.name
        self.__doc__ = described(self.program)

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
        return self.ways.own.traced.operations

    @property
    def trace(self) -> Trace:
        """The expression graph that is counted and compiled, for `evaluate`."""
        return self.ways.own.traced.trace

    @property
    def execution(self) -> str:
        """ "traced", "rolled" or "interpreted": how it runs."""
        return self.ways.own.execution

    @property
    def too_large(self) -> bool:
        """Whether its trace goes past the node budget, which only a function that is to be traced may do."""
        return self.ways.own.too_large

    def variant(self, option: str) -> CompiledFunction[R]:
        """The function with a further argument, which is also used when that argument is given in a call."""
        if option not in self._variants:
            if option not in self.program.options:
                raise TypeError(f"{self.program} has no argument {option!r}")
            self._variants[option] = CompiledFunction(self.program.given(option), self.ways.own.asked, self.algorithm)
        return self._variants[option]

    def copy(self, algorithm: str = "") -> CompiledFunction[R]:
        """The same function, not compiled yet, without the algorithms that it was compared with; it may be called another."""
        way = self.ways.own._replace(algorithm=algorithm or self.algorithm)
        return CompiledFunction.of_ways(Ways({way.algorithm: way}, way.algorithm))

    @property
    def candidates(self) -> dict[str, Operations]:
        """Operation counts of the algorithms that were compared, this one's included, by name."""
        several = self.ways.every if len(self.ways.every) > 1 else {}
        return {name: way.traced.operations for name, way in several.items()}

    @property
    def alternatives(self) -> dict[str, CompiledFunction[R]]:
        """The functions that were compared, this one included, by the names of their algorithms."""
        return {name: self._by(name) for name in self.ways.every}

    def _by(self, algorithm: str) -> CompiledFunction[R]:
        """Return the function by another of its algorithms, and without the others."""
        if algorithm not in self._alternatives:
            way = self.ways.every[algorithm]
            self._alternatives[algorithm] = CompiledFunction.of_ways(Ways({algorithm: way}, algorithm))
        return self._alternatives[algorithm]

    @property
    def parts(self) -> dict[str, Operations]:
        """Operation counts of each function alone where this one fuses several (`Robot.together`); otherwise empty."""
        if not isinstance(self.program, FusedProgram):
            return {}
        names, parts = map(", ".join, self.program.names), self.program.alone or self.program.parts
        return {n: Way.of(p, self.ways.own.asked).traced.operations for n, p in zip(names, parts, strict=True)}

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
        """Return the function whose programs `made` makes of those of this function; it is made once."""
        if key not in self._derivatives:
            self._derivatives[key] = CompiledFunction.of_ways(self.ways.derived(made))
        return self._derivatives[key]

    def __repr__(self) -> str:
        return f"<CompiledFunction {call_text(self.program)}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a function does not change

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledFunction.of_ways, (self.ways,)

    # calling it

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None, device: str | None = None, **named: Any) -> R:
        f = self.chosen(named)
        if f is not self:
            return f(*args, out=out, threads=threads, device=device, **named)
        given = bound(self.program, args, named)
        result: R = self.runner(*given, out=out, threads=threads, device=device, begin=self._take_entry)
        return result

    def chosen(self, named: dict[str, Any]) -> CompiledFunction[R]:
        """Return the function for a call with these named arguments: of the algorithm asked for, with the options given.

        Entries of `named` that only select the function, and are no arguments of it, are removed.
        """
        algorithm = named.pop("algorithm", None)
        if algorithm is not None and algorithm != self.algorithm:
            if algorithm not in self.ways.every:
                raise ValueError(f"{self.name}: algorithm must be one of {', '.join(self.ways.every)}; got {algorithm!r}")
            return self._by(algorithm).chosen(named)
        for option in self.program.options:
            if named.get(option) is not None:
                return self.variant(option).chosen(named)
            named.pop(option, None)
        return self

    def tune(self, *args: Any, **named: Any) -> None:
        """Measure, for arguments on a device, the ways in which the function can be written for it, and keep the quickest.

        That takes some compilations and some calls. Later calls in the precision of these arguments use the result, also in
        other processes. Raises ValueError for arguments that are not on a device, and as a call does.
        """
        f = self.chosen(named)
        if f is not self:
            f.tune(*args, **named)
            return
        self.runner.tune(bound(self.program, args, named))

    @property
    def device_code(self) -> DeviceCode:
        """Kernels for devices, for bridges to other libraries, too. Raises ValueError for a function that is not traced."""
        return self.runner.device_code

    @property
    def machine_code(self) -> MachineCode:
        """Machine code of the function, for bridges to other libraries. Raises ValueError for a function that is not traced."""
        return self.runner.machine_code

    def _take_entry(self, executable: Executable) -> None:
        """Have Python call the entry of the back end, if it has one.

        Python looks for `__call__` in an object's class. From here on this object is therefore the only one of its own class,
        whose `__call__` is the entry; another way would take longer than the entry itself.
        """
        entry = executable.entry(self.name, self.runner.result_class, CompiledFunction.__call__.__get__(self))
        if entry is not None:
            self.__class__ = type("CompiledFunction", (CompiledFunction,), {"__call__": entry, "__module__": __name__})

    def woven_address(self, lanes: int) -> int | None:
        """Address of `int f(double **arguments, mask *lanes)` for states that are woven, None where there is none."""
        return self.machine_code.woven_address(lanes) if self.execution == "traced" else None

    @property
    def address(self) -> int | None:
        """Address of machine code `int f(double **arguments)` for one state, the results last; None for interpreted functions.

        Compiled callers (steps of simulations, C by ctypes) may release the GIL. The code returns 0. If it runs out of memory,
        it returns 1 and the results are NaN. It stays in memory as long as this function exists. Raises MemoryError.
        """
        return self.runner.executable.address  # an entry for calls from Python is compiled when one comes


def cheapest(candidates: Mapping[str, CompiledFunction[R]]) -> CompiledFunction[R]:
    """Return a function that uses the candidate with the fewest operations, and the others where a call insists on one.

    It is a new function, which shares the traces of the candidates. They stay as they are. Candidates whose trace exceeds the
    node budget, or far exceeds the operations of one before, are out, unless all are, or loops were asked for: then the first
    is taken.
    """
    ways = {name: f.ways.own._replace(algorithm=name) for name, f in candidates.items()}
    return CompiledFunction.of_ways(Ways(ways, cheapest_way(ways)))
