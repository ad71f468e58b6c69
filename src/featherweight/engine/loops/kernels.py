"""Kernels with loops: what others import."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from .. import cache, sources
from ..backends.llvm.jit import compile_loops, host, load_object
from ..waiting import tell_if_long, told
from .checked_kernels import Record, is_checked, raise_violation
from .compiled_functions import CompiledKernel, compiled
from .kernel_sources import KernelError
from .kernel_tables import Layout, Table
from .kernel_types import INT, TableType
from .loop_writer import write_module, write_table_entry
from .machine_calls import MachineCall, call_machine, machine_call
from .planner import Planner
from .views import LANES, as_matrix, subtract_multiples

__all__ = [
    "LANES", "CompiledKernel", "CompiledLoop", "KernelError", "Layout", "MachineCall", "Table", "as_matrix", "call_machine",
    "compiled",
    "machine_call", "subtract_multiples",
]  # fmt: skip


class CompiledLoop:
    """A function of tables and whole numbers as machine code: `run(*addresses, *numbers)` returns a whole number.

    It is compiled at the first call for tables of a layout, is kept on disk, and runs without the GIL.
    """

    def __init__(self, function: Callable[..., int], numbers: int, fused: bool = True) -> None:
        self.function, self.numbers, self.fused = function, numbers, fused
        self._loaded: dict[str, Any] = {}
        self._compiling = threading.Lock()

    def for_tables(self, *tables: Table) -> Callable[..., int]:
        """The function for tables of these layouts: of their addresses and of the numbers."""
        text = " ".join(t.layout.text() for t in tables)
        with self._compiling:  # it takes long: other threads wait for the first
            if text not in self._loaded:
                self._loaded[text] = self._load(text, [t.layout for t in tables])
        compiled: Callable[..., int] = self._loaded[text]
        return compiled

    def _load(self, text: str, layouts: list[Layout]) -> Any:
        checked = is_checked()
        digest = sources.digest(self.function, tuple(c for x in layouts for c in x.classes()))
        name = cache.key("loop", digest, self.numbers, self.fused, checked, host(), text)
        entry = cache.read(name)
        if entry is None:
            with told(f"the kernel {self.function.__name__}"):
                entry = self._machine_code(layouts, checked)
            cache.write(name, *entry)
        facts, machine_code = entry
        code = load_object(machine_code, "loop")
        words = [ctypes.c_int64] * (len(layouts) + self.numbers)
        run: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *words, *[ctypes.c_void_p] * checked)(code.address("loop"))
        run.code = code  # which lives as long
        return _raising(run, facts["places"]) if checked else run

    def _machine_code(self, layouts: list[Layout], checked: bool) -> tuple[dict[str, Any], bytes]:
        planner = self.planned(layouts)
        lines, name = write_module(planner.plan, planner.fused, host().fma, checked)
        tell_if_long()
        code = compile_loops("\n".join([*lines, write_table_entry(planner.plan, name, "loop", checked)]))
        return {"places": planner.plan.places if checked else []}, code

    def planned(self, layouts: list[Layout]) -> Planner:
        """The plan for tables of these layouts. Raises KernelError."""
        planner = Planner(self.fused and host().fma)
        types = (*(TableType(layout) for layout in layouts), *[INT] * self.numbers)
        kernel = planner.kernel(self.function, types)  # type: ignore[arg-type]
        if kernel.result != INT:
            raise KernelError(f"{self.function.__qualname__} returns {kernel.result}; a compiled loop returns a whole number")
        return planner


def _raising(run: Any, places: list[Any]) -> Callable[..., int]:
    """A checked function, which raises IndexError and ValueError."""

    def call(*words: int) -> int:
        record = Record()
        result: int = run(*words, ctypes.addressof(record))
        raise_violation(record, places)
        return result

    return call
