"""Functions of tables as machine code of this package's own cache: see `machine_code`."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from ..engine import cache
from ..engine.backends.llvm.jit import compile_optimized, host, load_object
from ..engine.waiting import told
from .machine_code import Layout, Table, package_digest


class CompiledLoop:
    """A function of tables and whole numbers, as machine code: `run(*tables, *numbers)` returns a whole number.

    It is compiled at the first call for tables of a layout, and runs without the GIL.
    """

    def __init__(self, function: Callable[..., int], numbers: int) -> None:
        self.function, self.numbers = function, numbers
        self._loaded: dict[str, Any] = {}
        self._compiling = threading.Lock()

    def for_tables(self, *tables: Table) -> Callable[..., int]:
        """The function for tables of these layouts, of their addresses and of the numbers."""
        text = " ".join(t.layout.text() for t in tables)
        with self._compiling:  # it takes long: other threads wait for the first
            if text not in self._loaded:
                self._loaded[text] = self._load(text, [t.layout for t in tables])
        compiled: Callable[..., int] = self._loaded[text]
        return compiled

    def _load(self, text: str, layouts: list[Layout]) -> Any:
        kept = cache.kept(lambda: self._compiled(layouts), "loop", self.function.__name__, host(), package_digest(), text)
        code = load_object(kept, "loop")
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_int64] * (len(layouts) + self.numbers)))
        run: Any = kind(code.address("loop"))
        run.code = code  # which lives as long
        return run

    def _compiled(self, layouts: list[Layout]) -> bytes:
        from .table_types import llvm_ir

        with told("the steps of simulations", "some tens of seconds"):
            return compile_optimized(llvm_ir(self.function, layouts, self.numbers))
