"""Calls of one program, on the host and on devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..checks import check_labels
from .algorithm_choice import Way
from .arguments import batch_axes, given_results, result_type
from .backends import backend
from .backends.host_arrays import TYPES
from .backends.protocol import Executable
from .forks import new_lock
from .result_class import result_class
from .threads import check_threads

if TYPE_CHECKING:
    from .backends.cuda.device_code import DeviceCode
    from .backends.llvm.backend import MachineCode


class Runner:
    """Runs a program on arrays. The first call compiles it for the device of the arguments."""

    def __init__(self, way: Way) -> None:
        self.way, self.program = way, way.program
        self._begun, self._beginning = False, new_lock()

    @property
    def name(self) -> str:
        return self.program.name

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
        return backend(self.way.execution).compile(self.program, self.way.traced)

    @cached_property
    def device_code(self) -> DeviceCode:
        """Kernels for devices. Raises ValueError for a function that is not traced."""
        from .backends.cuda.device_code import DeviceCode

        self._require_traced("run on a device")
        return DeviceCode(self.program, self.way.traced)

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
            from .devices import executable_on_device  # only where there may be one

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
        if self.way.execution != "traced":
            reason = "too large to be traced" if self.way.asked == "auto" else f"asked to be {self.way.asked}"
            raise ValueError(f"{self.name}: only traced functions {what}, and this one is {reason}")
