"""Kernels with loops: the names that other packages import."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from ..backends.llvm.jit import host, load_object
from ..forks import new_lock
from .compiled_functions import CompiledKernel, compiled
from .kernel_code import Facts, Specialization, code_of
from .kernel_sources import KernelError, Record, is_checked, raise_violation
from .kernel_tables import Interleaved, Layout, Table, aligned_numbers
from .kernel_types import INT, TableType
from .lane_writer import write_lanes
from .loop_writer import write_module, write_table_entry
from .machine_calls import MachineCall, call_machine, interleaved_call, machine_call
from .plan import Plan
from .planner import Planner
from .scalarized_calls import Counted, call_apart, then_separated
from .views import LANES, TILE, as_matrix, first_of_lanes, lane, lanes, subtract_multiples, subtract_product, sum_of_products

__all__ = [
    "LANES",
    "TILE",
    "CompiledKernel",
    "CompiledLoop",
    "Counted",
    "Interleaved",
    "KernelError",
    "Layout",
    "MachineCall",
    "Table",
    "aligned_numbers",
    "as_matrix",
    "call_apart",
    "call_machine",
    "compiled",
    "first_of_lanes",
    "interleaved_call",
    "is_checked",
    "lane",
    "lanes",
    "machine_call",
    "subtract_multiples",
    "subtract_product",
    "sum_of_products",
    "then_separated",
]  # fmt: skip


class CompiledLoop:
    """A function of tables and whole numbers as machine code: `run(*addresses, *numbers)` returns a whole number.

    It is compiled at the first call for tables of a layout, cached on disk, and runs without the GIL. `what` describes it to
    users who wait for the compilation.
    """

    def __init__(self, function: Callable[..., int], numbers: int, fused: bool = True, what: str = "", lanes: int = 1) -> None:
        self.function, self.numbers, self.fused, self.lanes = function, numbers, fused, lanes
        self.what = what or f"the kernel {function.__name__}"
        self._loaded: dict[str, Any] = {}
        self._compiling = new_lock()

    def for_tables(self, *tables: Table) -> Callable[..., int]:
        """Return the function of addresses of tables with these layouts, and of numbers."""
        return self.for_layouts(*(t.layout for t in tables))

    def for_layouts(self, *layouts: Layout) -> Callable[..., int]:
        """Return the function for tables that will have these layouts."""
        text = " ".join(x.text() for x in layouts) + (f" in {self.lanes} lanes" if self.lanes > 1 else "")
        with self._compiling:  # slow: other threads wait for the first one
            if text not in self._loaded:
                self._loaded[text] = self._load(text, [*layouts])
        compiled: Callable[..., int] = self._loaded[text]
        return compiled

    def _load(self, text: str, layouts: list[Layout]) -> Callable[..., int]:
        classes = tuple(c for x in layouts for c in x.classes())
        kernel = Specialization(
            self.function, self.fused, f"{text} {self.numbers} numbers", classes, self.what, is_checked() and self.lanes == 1
        )
        facts, object_code = code_of(kernel, lambda: self._written(layouts, kernel.checked))
        code = load_object(object_code, "loop")
        words = [ctypes.c_int64] * (len(layouts) + self.numbers)
        run: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *words, *[ctypes.c_void_p] * kernel.checked)(code.address("loop"))
        run.code = code  # kept alive
        return _raising(run, facts["places"]) if kernel.checked else run

    def module(self, layouts: Sequence[Layout], fma: bool) -> str:
        """Return the IR of `i64 loop(i64 ...)` for tables of these layouts, for processors with `fma` or without."""
        return self._written([*layouts], False, fma)[1]

    def plan(self, layouts: Sequence[Layout]) -> Plan:
        """Return the plan for tables of these layouts, with fused products, for writers of other languages."""
        return self._planned(layouts, True).plan

    def _planned(self, layouts: Sequence[Layout], fma: bool) -> Planner:
        planner = Planner(self.fused and fma, lanes=self.lanes)
        types = (*(TableType(layout) for layout in layouts), *[INT] * self.numbers)
        kernel = planner.kernel(self.function, types)  # type: ignore[arg-type]
        if kernel.result != INT:
            raise KernelError(f"{self.function.__qualname__} returns {kernel.result}; a compiled loop returns a whole number")
        return planner

    def _written(self, layouts: list[Layout], checked: bool, fma: bool | None = None) -> tuple[Facts, str]:
        """Return facts and IR of the module for tables of these layouts, for this machine by default. Raises KernelError."""
        fma = host().fma if fma is None else fma
        planner = self._planned(layouts, fma)
        if self.lanes > 1:
            return {"places": []}, write_lanes(planner.plan, self.lanes, planner.fused, fma, "loop")
        lines, name = write_module(planner.plan, planner.fused, fma, checked)
        facts = {"places": planner.plan.places if checked else []}
        return facts, "\n".join([*lines, write_table_entry(planner.plan, name, "loop", checked)])


def _raising(run: Callable[..., int], places: Sequence[tuple[str, int]]) -> Callable[..., int]:
    """Return a checked function, which raises IndexError and ValueError."""

    def call(*words: int) -> int:
        record = Record()
        result: int = run(*words, ctypes.addressof(record))
        raise_violation([*record], places)
        return result

    return call
