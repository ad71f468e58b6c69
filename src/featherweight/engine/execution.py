"""The execution of one algorithm of a function: its program, its trace, and its calls, on the host and on devices.

Of several algorithms, a function uses the one with the fewest operations.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..checks import check_labels
from ..names import unknown_keyword
from ..summaries import summary
from .ambient_program import is_plain
from .backends import backend
from .backends.host_arrays import TYPES
from .backends.protocol import Executable
from .compilation_messages import reporting
from .forks import new_lock
from .operations import Operations
from .program import Program
from .program_trace import NODE_BUDGET, ProgramTrace
from .threads import check_threads

if TYPE_CHECKING:
    from .backends.cuda.device_code import DeviceCode
    from .backends.llvm.backend import MachineCode

LEAST_BUDGET = 2000  # nodes; smaller traces are always compared, because inputs and dead nodes are a large part of them
DIVISION = 8  # cost of a division or a root in multiplications


class Execution:
    """Runs the program of an algorithm on arrays. The first call compiles it for the device of the arguments.

    The algorithm is named after the program's first kernel by default. `asked` is the way to execute it that was requested.
    Executions of the same program may share its trace.
    """

    def __init__(self, program: Program, asked: str = "auto", algorithm: str = "", traced: ProgramTrace | None = None) -> None:
        self.program, self.asked = program, asked
        self.algorithm = algorithm or program.kernels[0].kernel.__name__
        self.traced = traced or ProgramTrace(program, bounded=asked != "traced")
        self._begun, self._beginning = False, new_lock()

    def renamed(self, algorithm: str) -> Execution:
        """Return an execution of the same trace by another name, not yet compiled."""
        return Execution(self.program, self.asked, algorithm, self.traced)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without trace and code."""
        return Execution, (self.program, self.asked, self.algorithm)

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def too_large(self) -> bool:
        """Return whether the trace exceeds the node budget."""
        return self.traced.too_large

    @property
    def how(self) -> str:
        """The way in which the program runs: "traced", "rolled" or "interpreted"."""
        if self.asked != "auto":
            return self.asked
        return "rolled" if self.program.rollable and self.too_large else "traced"

    def __call__(
        self,
        *args: Any,
        out: object = None,
        threads: int | None = None,
        device: str | None = None,
        begin: Callable[[Executable], None] | None = None,
    ) -> Any:
        """Return the results for the arguments in order, as a call of `CompiledFunction` does.

        The first call on the host passes its executable to `begin`.
        """
        code: DeviceCode | None = self.__dict__.get("device_code")  # once it has been called on a device
        if code is not None and (again := code.again(args, out, threads, device)) is not None:
            return again[0] if self.result_class is None else self.result_class(*again)
        check_threads(self.name, threads)
        executable = self._executable_for(args, out, device, begin)
        arrays = self._arrays(executable, args)
        batch = batch_axes(self.program, arrays)
        results = None if out is None else given_results(self.program, executable, out, batch)
        dtype = result_type(a.dtype for a in arrays)
        values = executable.run(arrays, batch, dtype, results, threads)
        return values[0] if self.result_class is None else self.result_class(*values)

    def given(self, values: Sequence[Any], args: tuple[Any, ...], out: object) -> Any:
        """Return results for these arguments that have been computed already, in `out` if it is given."""
        if out is not None:
            executable = self._executable_for(args, out, None)
            arrays = given_results(self.program, executable, out, batch_axes(self.program, self._arrays(executable, args)))
            for own, value in zip(arrays, values, strict=True):
                np.copyto(own, value, casting="same_kind")
            values = arrays
        return values[0] if self.result_class is None else self.result_class(*values)

    def tune(self, args: tuple[Any, ...]) -> None:
        """Measure the ways to write the program for the device of the arguments; see `CompiledFunction.tune`."""
        executable: Any = self._executable_for(args, None, None)
        if not hasattr(executable, "tune"):
            raise ValueError(f"{self.name}: tune takes arrays on a device (of CuPy, PyTorch or JAX)")
        arrays = self._arrays(executable, args)
        batch = batch_axes(self.program, arrays)
        if 0 in batch:
            raise ValueError(f"{self.name}: tune needs states to measure; got a batch of shape {batch}")
        executable.tune(arrays, batch, result_type(a.dtype for a in arrays))

    @cached_property
    def executable(self) -> Executable:
        """Executable for the host, made by the back end from the program."""
        return backend(self.how).compile(self.program, self.traced)

    @cached_property
    def device_code(self) -> DeviceCode:
        """Kernels for devices. Raises ValueError for a function that is not traced."""
        from .backends.cuda.device_code import DeviceCode

        self._require_traced("run on a device")
        return DeviceCode(self.program, self.traced)

    @property
    def machine_code(self) -> MachineCode:
        """Machine code of the program. Raises ValueError for a function that is not traced."""
        self._require_traced("are machine code that other libraries can call")
        return cast("MachineCode", self.executable)

    @cached_property
    def result_class(self) -> type | None:
        """Class of the named tuple of several results; None for one result."""
        outputs = self.program.outputs
        return None if len(outputs) == 1 else result_class(self.name, tuple(r.name for r in outputs))

    def _executable_for(
        self, args: tuple[Any, ...], out: object, device: str | None, begin: Callable[[Executable], None] | None = None
    ) -> Executable:
        """Return the executable for the place where the arguments are, or for the device that is named."""
        if device is not None or type(out) not in TYPES or not all(type(x) in TYPES for x in args):
            from .backends.cuda.device_code import executable_on_device  # only where there may be one

            if there := executable_on_device(self.program, lambda: self.device_code, args, out, device):
                return there
        if begin is not None and not self._begun:
            with self._beginning:
                if not self._begun:
                    begin(self.executable)
                    self._begun = True
        return self.executable

    def _arrays(self, executable: Executable, args: tuple[Any, ...]) -> list[Any]:
        for x, p in zip(args, self.program.inputs, strict=True):
            if p.labels and type(x) not in TYPES:
                check_labels(f"{self.name}: {p.name}", x, p.labels)
        return [executable.array(x, f"{self.name}: {p.name}") for x, p in zip(args, self.program.inputs, strict=True)]

    def _require_traced(self, what: str) -> None:
        if self.how != "traced":
            reason = "too large to be traced" if self.asked == "auto" else f"asked to be {self.asked}"
            raise ValueError(f"{self.name}: only traced functions {what}, and this one is {reason}")


def derived(
    executions: Mapping[str, Execution], algorithm: str, made: Callable[[Program], Program]
) -> tuple[dict[str, Execution], str]:
    """Return executions of a derivative, which `made` makes of each program, and the name of the one to use.

    `algorithm` is that of the value. If an argument is on a manifold, the derivative uses it too, otherwise the cheapest.
    Raises ValueError if all traces are too large.
    """
    own = executions[algorithm]
    how = "interpreted" if own.asked == "interpreted" else "traced"
    each = {name: Execution(made(x.program), how, name) for name, x in executions.items() if not x.too_large}
    if not each:
        raise ValueError(f"{own.name} is too large to be differentiated: its trace exceeds the node budget")
    if algorithm in each and not all(map(is_plain, own.program.inputs)):
        return each, algorithm
    return each, cheapest_of(each)


def cost(o: Operations) -> int:
    """Return the cost by which algorithms are compared: a division or a root counts as `DIVISION` multiplications.

    Sines and cosines do not count: all algorithms have the same ones.
    """
    return o.flops + DIVISION * (o.div + o.sqrt)


def cheapest_of(executions: Mapping[str, Execution]) -> str:
    """Return the name of the algorithm with the lowest cost.

    Traces that exceed the node budget, or far exceed the operations of one before, are out. If all are, or if rolled execution
    was requested, it is the first. A single algorithm is not traced.
    """
    first = next(iter(executions))
    if len(executions) == 1:
        return first
    costs: dict[str, int] = {}
    with reporting(f"{executions[first].program.title} (comparing {len(executions)} algorithms)"):
        for name, x in executions.items():
            budget = max(x.program.nodes_for(min(costs.values())), LEAST_BUDGET) if costs else NODE_BUDGET
            if x.asked != "rolled" and x.traced.within(budget):
                costs[name] = cost(x.traced.operations)
    return min(costs, key=costs.__getitem__) if costs else first


@cache
def result_class(name: str, fields: tuple[str, ...]) -> type:
    """Return a class of named tuples for several results, which can be pickled."""
    base: Any = namedtuple(name, fields)  # type: ignore[misc]  # its fields are known when the function is

    def reduce(self: tuple[Any, ...]) -> tuple[Any, ...]:
        return _result, (name, fields, tuple(self))

    return type(name, (base,), {"__slots__": (), "__reduce__": reduce, "__repr__": summary, "__module__": __name__})


def _result(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Return a named tuple from its pickle."""
    return result_class(name, fields)(*values)


_DOUBLE = np.dtype(np.float64)
_SINGLE = np.dtype(np.float32)


def bound(program: Program, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return positional and named arguments in order."""
    names = [a.name for a in program.inputs]
    missing = names[len(args) :]
    if len(args) > len(names) or set(missing) != set(named):
        if len(args) > len(names):
            raise TypeError(f"{program} takes {', '.join(names)}; got {len(args)} arguments")
        if unknown := [x for x in named if x not in names]:
            raise unknown_keyword(str(program), unknown[0], [*names, *program.options])
        if twice := [x for x in named if x not in missing]:
            raise TypeError(f"{program} got {twice[0]} twice, by position and by name")
        raise TypeError(f"{program} takes {', '.join(names)}; missing: {', '.join(x for x in missing if x not in named)}")
    return (*args, *(named[n] for n in missing))


def batch_axes(program: Program, arrays: Sequence[Any]) -> tuple[int, ...]:
    """Return the batch axes. Raises TypeError or ValueError for an invalid argument, with its name."""
    batch: tuple[int, ...] | None = None
    for a, argument in zip(arrays, program.inputs, strict=True):
        if a.dtype is not _DOUBLE and a.dtype.kind not in "fiub":
            raise TypeError(f"{program.name}: {argument.name} must hold real numbers; got dtype {a.dtype}")
        axes = a.ndim - len(argument.shape)
        if axes < 0 or a.shape[axes:] != argument.shape:
            expected = ", ".join(["...", *map(str, argument.shape)])
            raise ValueError(f"{program.name}: {argument.name} must have shape ({expected}); got {a.shape}")
        if batch is None:
            batch = a.shape[:axes]
        elif batch != a.shape[:axes]:
            batch = _broadcast(program, arrays, batch, a.shape[:axes])
    assert batch is not None
    return batch


def _broadcast(program: Program, arrays: Sequence[Any], a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        shapes = ", ".join(f"{p.name} {x.shape}" for x, p in zip(arrays, program.inputs, strict=True))
        raise ValueError(f"{program.name}: batch axes do not broadcast: {shapes}") from None


def given_results(program: Program, executable: Executable, out: Any, batch: tuple[int, ...]) -> Sequence[Any]:
    """Return the caller's arrays for the results. Raises ValueError if they do not fit."""
    outputs = program.outputs
    if len(outputs) > 1 and (not isinstance(out, tuple) or len(out) != len(outputs)):
        names = ", ".join(r.name for r in outputs)
        given = str(out.shape) if isinstance(out, np.ndarray) else type(out).__name__
        raise ValueError(f"{program.name}: out must be a tuple of {len(outputs)} arrays ({names}); got {given}")
    arrays: list[Any] = []
    for x, output in zip(out if len(outputs) > 1 else (out,), outputs, strict=True):
        what = f"{program.name}: out" if len(outputs) == 1 else f"{program.name}: out for {output.name}"
        array, shape = executable.result(x, what), batch + output.shape
        if array.shape != shape:
            raise ValueError(f"{what} must be an array of shape {shape}; got {array.shape}")
        if array.dtype.kind not in "fc":  # NumPy would also cast to strings and objects
            raise TypeError(f"{what} must hold floating-point numbers; got dtype {array.dtype}")
        if any(executable.overlap(array, other) for other in arrays):
            raise ValueError(f"{program.name}: the array for {output.name} overlaps with another of out; give each its own")
        arrays.append(array)
    return arrays


def result_type(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return float32 if all arguments are floating-point numbers of at most single precision, otherwise float64."""
    return _SINGLE if all(d.kind == "f" and d.itemsize <= 4 for d in dtypes) else _DOUBLE
