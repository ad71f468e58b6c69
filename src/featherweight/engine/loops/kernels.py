"""Kernels with loops: what others import."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from ..backends.llvm.jit import host, load_object
from .compiled_functions import CompiledKernel, compiled
from .kernel_code import Specialization, code_of
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

    It is compiled at the first call for tables of a layout, is kept on disk, and runs without the GIL. `what` is for users who
    wait for that.
    """

    def __init__(self, function: Callable[..., int], numbers: int, fused: bool = True, what: str = "") -> None:
        self.function, self.numbers, self.fused = function, numbers, fused
        self.what = what or f"the kernel {function.__name__}"
        self._loaded: dict[str, Any] = {}
        self._compiling = threading.Lock()

    def for_tables(self, *tables: Table) -> Callable[..., int]:
        """The function for tables of these layouts: of their addresses and of the numbers."""
        return self.for_layouts(*(t.layout for t in tables))

    def for_layouts(self, *layouts: Layout) -> Callable[..., int]:
        """The function for tables that will have these layouts."""
        text = " ".join(x.text() for x in layouts)
        with self._compiling:  # it takes long: other threads wait for the first
            if text not in self._loaded:
                self._loaded[text] = self._load(text, [*layouts])
        compiled: Callable[..., int] = self._loaded[text]
        return compiled

    def _load(self, text: str, layouts: list[Layout]) -> Any:
        classes = tuple(c for x in layouts for c in x.classes())
        kernel = Specialization(self.function, self.fused, f"{text} {self.numbers} numbers", classes, self.what)
        _, object_code = code_of(kernel, lambda: ({}, self.llvm_ir(layouts)))
        code = load_object(object_code, "loop")
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_int64] * (len(layouts) + self.numbers)))
        run: Any = kind(code.address("loop"))
        run.code = code  # which lives as long
        return run

    def llvm_ir(self, layouts: list[Layout]) -> str:
        """The module for tables of these layouts."""
        fma = host().fma
        planner = Planner(self.fused and fma)
        types = (*(TableType(layout) for layout in layouts), *[INT] * self.numbers)
        plan = planner.function(self.function, types)  # type: ignore[arg-type]
        if plan.result != INT:
            raise KernelError(f"{self.function.__qualname__} returns {plan.result}; a compiled loop returns a whole number")
        lines, kernel = write_module(planner.plan, planner.fused, fma)
        return "\n".join([*lines, write_table_entry(planner.plan, kernel, "loop")])
