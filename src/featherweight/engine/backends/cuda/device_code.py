"""The traced execution on devices: one thread per state, on arrays on the device, or on NumPy arrays, copied in pieces.

The arguments of a call, or its option `device`, choose the device.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ...direct_calls import DirectCall
from ...program import CoreShape, Program
from ...program_trace import ProgramTrace
from ..host_arrays import may_overlap
from ..llvm.ir import Type
from ..protocol import Executable, Watch
from . import copies
from .code import Candidate, DeviceKernels, Kernels, Launchable, Loaded
from .device_array import compact
from .driver import Device
from .driver import device as device_of
from .emit_thread import NVIDIA, PART
from .kernel import ENTRY, KernelLayout, emit_module, padded
from .libraries import DeviceArray, Library, library_of, library_of_class, on_device
from .transfers import OnHost

C = TypeVar("C", bound=Launchable)

THREADS = 32  # threads per block: one warp, which does not wait for other warps
MORE_THREADS = 128
LONG = 8000  # operations from which fetching the code takes longer than accessing rows in place
REGISTERS = (168, 128)  # register limits for 1.5 and 2 times as many threads on a multiprocessor
RUNS = 5  # timed runs of a candidate
PRECISIONS = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}
SHARE = 8  # target number of warps on a multiprocessor: two for each of its schedulers
RESERVED = 1 << 10  # bytes of a multiprocessor's memory that a block uses in addition to its request


class DeviceCode(DeviceKernels):
    """A program as kernels, in each precision, on each device."""

    def __init__(self, program: Program, traced: ProgramTrace) -> None:
        super().__init__()
        self.program, self._traced = program, traced
        self.repeated = RepeatedCalls()

    def again(self, args: Sequence[Any], out: object, threads: int | None, device: str | None) -> Sequence[Any] | None:
        """Return the results of a call that differs from an earlier one only in addresses; None for another call."""
        given = () if out is None else out if isinstance(out, tuple) and len(self.program.outputs) > 1 else (out,)
        call = self.repeated.find(args, given) if threads is None and device is None else None
        if call is None:
            return None
        stream = call.library.stream(call.device.ordinal)
        results: Sequence[Any] = given
        if not given:
            made = [
                call.library.empty(call.batch + r.shape, call.dtype, call.device.ordinal, stream) for r in self.program.outputs
            ]
            results = [x for x, _ in made]
        rows = call.rows([*args, *results])
        if rows is None:
            return None
        self.launch(call.device, stream, call.dtype, call.states, rows)
        return results

    @property
    def identity(self) -> str:
        """Hash of everything that kernels depend on, except the device and the engine."""
        return self._traced.identity

    def launch(self, device: Device, stream: int, dtype: np.dtype[Any], states: int, rows: Sequence[tuple[int, int]]) -> None:
        """Start to compute states. Each argument and result has the address of its first row, and a row stride in elements."""
        self.kernel(device, PRECISIONS[dtype]).launch(device, stream, states, _words(states, rows))

    def tune(self, device: Device, stream: int, dtype: np.dtype[Any], states: int, rows: Sequence[tuple[int, int]]) -> Loaded:
        """Find the fastest candidate for these states, and use it from now on and in later processes."""

        def milliseconds(loaded: Loaded) -> float:
            marks = []
            for _ in range(RUNS + 1):
                loaded.launch(device, stream, states, _words(states, rows))
                marks.append(device.mark(stream))
            device.synchronize(stream)
            return float(statistics.median(b - a for a, b in pairwise(marks)))

        with self._lock:
            precision = PRECISIONS[dtype]
            self._loaded[device.ordinal, precision] = loaded = self.kernels(device, precision).quickest(milliseconds)
        return loaded

    def kernels(self, device: Device, precision: str) -> Kernels:
        """Return the variants of the kernel: those compared by their code, then those that only `tune` compares."""
        type, none = Type(precision, 1), (False,) * len(self._sizes)
        staged, flops = self._staged(type, device.shared_bytes), self._traced.operations.flops
        first, second = (none, staged) if flops > LONG else (staged, none)
        layouts = [KernelLayout(first, keeps, THREADS) for keeps in (True, False)]
        more = [KernelLayout(way, keeps, MORE_THREADS) for way in (first, second) for keeps in (True, False)]
        if flops > PART:  # far more values than registers, and minutes in the assembler
            layouts, more = [layouts[1]], [more[1]]
        candidates = [self._candidate(device, type, layout) for layout in [*layouts, *more]]
        candidates += [self._candidate(device, type, layouts[0], registers) for registers in REGISTERS]
        return Kernels(device, ENTRY, candidates, len(layouts), "kernel", self._traced.identity, precision)

    def _candidate(self, device: Device, type: Type, layout: KernelLayout, registers: int | None = None) -> Candidate:
        def ir() -> str:
            return emit_module(self._traced.trace, self.program.shapes, type, layout, NVIDIA)

        shared = layout.shared_bytes(self._sizes, type)
        if any(layout.waits(n, k, type) for k, n in enumerate(self._sizes) if k >= len(self.program.inputs)):
            # Few threads at once, so that their writes stay in the device's cache until sectors are complete.
            shared = max(shared, device.shared_bytes * layout.threads // (SHARE * THREADS) - RESERVED)
        return Candidate(ir, layout.threads, shared, registers)

    @cached_property
    def _sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.program.shapes]

    def _staged(self, type: Type, shared_bytes: int) -> tuple[bool, ...]:
        """Return which arguments and results fit into a block's share of its multiprocessor's memory."""
        left = shared_bytes // SHARE // THREADS // type.bytes  # elements per thread
        staged = []
        for n in self._sizes:
            staged.append(n > 0 and padded(n) <= left)
            left -= padded(n) * staged[-1]
        return tuple(staged)


def _words(states: int, rows: Sequence[tuple[int, int]]) -> list[int]:
    """Return the kernel's parameters."""
    return [states, *(word for row in rows for word in row)]


class OnArrays(Generic[C]):
    """A program on arrays of one library on one device, on that library's stream, for one call."""

    address = None

    def __init__(self, code: C, library: Library, device: Device) -> None:
        self.code, self.program, self.library, self.device = code, code.program, library, device
        self.stream = library.stream(device.ordinal)
        self._given: dict[int, Any] = {}  # the caller's arrays for results, by the identity of their descriptions
        self._args: list[Any] = []  # the caller's arguments

    def array(self, x: object, what: str) -> DeviceArray:
        self._args.append(x)
        return _checked(self.library.view(x, self.stream, what), what)

    def result(self, x: object, what: str) -> DeviceArray:
        if not on_device(x):
            raise ValueError(f"{what} must be an array on the device; got {type(x).__name__}")
        view = _checked(self.library.view_to_write(x, self.stream, what), what)
        self._given[id(view)] = x
        return view

    def overlap(self, a: DeviceArray, b: DeviceArray) -> bool:
        return may_overlap(_shadow(a), _shadow(b))

    def entry(self, result_class: type | None, general: Callable[..., Any], watch: Watch | None = None) -> DirectCall | None:
        return None

    def run(
        self, arrays: Sequence[DeviceArray], batch: tuple[int, ...], dtype: np.dtype[Any], out: Sequence[DeviceArray] | None,
        threads: int | None,
    ) -> Sequence[Any]:  # fmt: skip
        """Return results in arrays of the library. Their computation has started, and may not be finished."""
        if threads is not None:
            raise ValueError(f"{self.program.name}: threads= is for this machine's processors; the arrays are on a device")
        results: list[Any] = [] if out is None else [self._given[id(view)] for view in out]
        views = list(out or ())
        if out is None:
            for r in self.program.outputs:
                result, view = self.library.empty(batch + r.shape, dtype, self.device.ordinal, self.stream)
                results.append(result)
                views.append(view)
        if math.prod(batch):
            with self._rows(arrays, views, batch, dtype, may_overlap=out is not None) as rows:
                self.code.launch(self.device, self.stream, dtype, math.prod(batch), rows)
            views = [*arrays, *views]
            if isinstance(self.code, DeviceCode) and all(row[0] == x.pointer for row, x in zip(rows, views, strict=True)):
                steps = tuple(step for _, step in rows)
                call = Repeated(self.library, self.device, dtype, batch, math.prod(batch), steps, (), len(arrays))
                self.code.repeated.keep(call, self._args, results if out is not None else (), views)
        return results if out is not None else self.library.finish(results, self.device.ordinal, self.stream)

    def tune(self: OnArrays[DeviceCode], arrays: Sequence[DeviceArray], batch: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Time the variants of the kernel, and keep the fastest."""
        with self._scratch() as scratch:
            results = [scratch(batch + r.shape, dtype) for r in self.program.outputs]
            with self._rows(arrays, results, batch, dtype, may_overlap=False) as rows:
                self.code.tune(self.device, self.stream, dtype, math.prod(batch), rows)

    @contextmanager
    def _rows(
        self, arrays: Sequence[DeviceArray], results: Sequence[DeviceArray], batch: tuple[int, ...], dtype: np.dtype[Any],
        may_overlap: bool,
    ) -> Iterator[list[tuple[int, int]]]:  # fmt: skip
        """Yield rows of arguments and results in place, or of copies of those that the kernel does not support."""
        with self._scratch() as scratch:
            rows, later = [], []
            for a, argument in zip(arrays, self.program.inputs, strict=True):
                row = row_of(a, argument.shape, batch, dtype)
                if row is None:
                    copy = scratch(batch + argument.shape, dtype)
                    self._copy(a, copy)
                    row = copy.pointer, argument.size
                rows.append(row)
            for view, r in zip(results, self.program.outputs, strict=True):
                row = row_of(view, r.shape, batch, dtype)
                if row is None or (may_overlap and any(self.overlap(view, a) for a in arrays)):
                    copy = scratch(batch + r.shape, dtype)
                    later.append((copy, view))
                    row = copy.pointer, r.size
                rows.append(row)
            yield rows
            for copy, view in later:
                self._copy(copy, view)

    @contextmanager
    def _scratch(self) -> Iterator[Callable[[tuple[int, ...], np.dtype[Any]], DeviceArray]]:
        """Yield a function that allocates arrays on the device; they are freed after the work started meanwhile."""
        taken: list[Any] = []

        def scratch(shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
            taken.append(self.device.allocate(math.prod(shape) * dtype.itemsize, self.stream))
            return DeviceArray(int(taken[-1].handle), shape, compact(shape, dtype.itemsize), dtype, self.device.ordinal)

        try:
            yield scratch
        finally:
            for memory in taken:
                memory.close()

    def _copy(self, source: DeviceArray, goal: DeviceArray) -> None:
        """Start to copy and convert elements; the source's axes broadcast to the goal's."""
        strides = np.broadcast_to(_shadow(source), goal.shape).strides
        loaded = copy_kernel(self.device, source.dtype, goal.dtype)
        for count, parameters in copies.copy_parameters(goal.shape, (source.pointer, strides), (goal.pointer, goal.strides)):
            loaded.launch(self.device, self.stream, count, parameters)


@cache
def copy_kernel(device: Device, source: np.dtype[Any], goal: np.dtype[Any]) -> Loaded:
    """Return the kernel that copies elements of one type to another."""
    candidate = Candidate(lambda: copies.emit_copy(source, goal, NVIDIA), copies.THREADS)
    return Kernels(device, copies.ENTRY, [candidate], 1, "copy", source.str, goal.str).chosen()


def row_of(a: DeviceArray, core: CoreShape, batch: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, int] | None:
    """Return the address of an array's first row and its row stride in elements; None if it has no such rows.

    The stride is 0 for a shared row.
    """
    axes, item = a.ndim - len(core), dtype.itemsize
    expected = compact(core, item)
    inner = [(s, e) for n, s, e in zip(core, a.strides[axes:], expected, strict=True) if n > 1]
    if a.dtype != dtype or a.pointer % item or any(s != e for s, e in inner):
        return None
    step: int | None = None
    rows = 1
    own = (0,) * (len(batch) - axes) + tuple(s if n > 1 else 0 for s, n in zip(a.strides, a.shape, strict=False))[:axes]
    for stride, n in zip(reversed(own), reversed(batch), strict=True):
        if n > 1:
            if step is None:
                step = stride
            elif stride != step * rows:
                return None
            rows *= n
    if (step or 0) % item:
        return None
    return a.pointer, (step or 0) // item


def _checked(view: DeviceArray, what: str) -> DeviceArray:
    """Return the view, unless its number type is unsupported on devices; the caller checks other types."""
    if view.dtype.kind in "fciub" and not copies.takes(view.dtype):
        raise TypeError(f"{what} has dtype {view.dtype}, which devices do not support; convert it to float32 or float64")
    return view


class _Shadow:
    """The addresses of a device's memory, in a form that NumPy can compare; nobody reads the elements."""

    def __init__(self, a: DeviceArray) -> None:
        self.__array_interface__ = {
            "version": 3, "shape": a.shape, "strides": a.strides, "typestr": a.dtype.str, "data": (a.pointer, True),
        }  # fmt: skip


def _shadow(a: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
    return np.asarray(_Shadow(a)) if math.prod(a.shape) else np.empty(a.shape, a.dtype)


class Repeated(NamedTuple):
    """Results of the checks of an earlier call; arrays are the arguments, then the results."""

    library: Library
    device: Device
    dtype: np.dtype[Any]
    batch: tuple[int, ...]
    states: int
    steps: tuple[int, ...]  # row stride of each array in elements
    bytes: tuple[int, ...]  # extent of each array
    inputs: int

    def rows(self, arrays: Sequence[Any]) -> list[tuple[int, int]] | None:
        """Return the rows of arrays with the same layouts; None if a result shares memory with another array."""
        addresses = [self.library.address(x) for x in arrays]
        spans = [(begin, begin + size) for begin, size in zip(addresses, self.bytes, strict=False)]
        for k in range(self.inputs, len(spans)):
            begin, end = spans[k]
            if any(other[0] < end and begin < other[1] for other in spans[:k]):
                return None
        return list(zip(addresses, self.steps, strict=False))


class RepeatedCalls:
    """The layouts of earlier calls of one function."""

    MOST = 64  # greatest number of layouts

    def __init__(self) -> None:
        self._calls: dict[Hashable, Repeated] = {}

    def find(self, args: Sequence[Any], results: Sequence[Any]) -> Repeated | None:
        """Return the stored results for arguments, and for arrays of results if given."""
        if not self._calls:
            return None
        library = library_of_class(type(args[0]))
        return None if library is None else self._calls.get(_key(library, args, results))

    def keep(self, call: Repeated, args: Sequence[Any], results: Sequence[Any], views: Sequence[DeviceArray]) -> None:
        """Store a call that used all arrays in place."""
        key = _key(call.library, args, results)
        if key is not None and all(step >= 0 for view in views for step in view.strides):
            if len(self._calls) >= self.MOST:
                self._calls.clear()
            self._calls[key] = call._replace(bytes=tuple(map(_reach, views)))


def _key(library: Library, args: Sequence[Any], results: Sequence[Any]) -> Hashable:
    """Return all layouts; None if one is unknown, or belongs to another library."""
    layouts = []
    for x in (*args, *results):
        layout = library.layout(x) if library_of_class(type(x)) is library else None
        if layout is None:
            return None
        layouts.append(layout)
    return (library, len(results), *layouts)


def _reach(view: DeviceArray) -> int:
    """Return the bytes from the first element to the end of the last."""
    if 0 in view.shape:
        return 0
    return view.dtype.itemsize + sum(step * (n - 1) for step, n in zip(view.strides, view.shape, strict=True))


def executable_on_device(
    program: Program, code: Callable[[], Launchable], args: Sequence[Any], out: object, device: str | None
) -> Executable | None:
    """Return the executable for the arguments' device, or for `device` ("cuda", "cuda:1"); None for this machine.

    Raises TypeError if only some arguments are on a device, or if arguments belong to different libraries; ValueError if
    arguments are on different devices, or not on `device`; ImportError without cuda-core; RuntimeError without a driver or
    without that device.
    """
    results = out if isinstance(out, (tuple, list)) else (out,)  # a list raises an error later, when all results are known
    given = [(x, p.name) for x, p in zip(args, program.inputs, strict=True)] + [(x, "out") for x in results if x is not None]
    place = place_of(program.name, given, device)
    return None if place is None else place.executable(code())


class ComputingPlace(NamedTuple):
    """A device, and the library of the arrays there; None for NumPy, whose arrays are copied to the device."""

    device: Device
    library: Library | None

    def executable(self, code: Launchable) -> OnArrays[Launchable] | OnHost:
        """Return an executable that runs `code` at this place."""
        return OnHost(code, self.device) if self.library is None else OnArrays(code, self.library, self.device)


def place_of(name: str, given: Sequence[tuple[Any, str]], device: str | None) -> ComputingPlace | None:
    """Return the place where the arrays of a call are computed, given each argument's name; see `executable_on_device`."""
    ordinal = _ordinal(device, name)
    there = [(x, argument) for x, argument in given if on_device(x)]
    if not there:
        return None if ordinal is None else ComputingPlace(device_of(ordinal), None)
    if len(there) < len(given):
        here = next(argument for x, argument in given if not on_device(x))
        raise TypeError(f"{name}: {there[0][1]} is on a device and {here} is not; move all arguments to the device, or none")
    arrays = [x for x, _ in there]
    arguments = [f"{name}: {argument}" for _, argument in there]
    library = library_of(arrays, arguments)
    lies = library.ordinal(arrays[0], arguments[0])
    if device is not None and ordinal != lies:
        raise ValueError(f"{name}: {there[0][1]} is on CUDA device {lies}; got device={device!r}")
    return ComputingPlace(device_of(lies), library)


def _ordinal(device: str | None, name: str) -> int | None:
    """Return the number of a device by its name; None for this machine."""
    if device is None or (isinstance(device, str) and device == "cpu"):
        return None
    kind, colon, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise ValueError(f'{name}: device must be "cpu", "cuda" or "cuda:N"; got {device!r}')
    return int(number or 0)
