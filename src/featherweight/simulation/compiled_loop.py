"""Functions of tables as machine code of this package's own cache: see `machine_code`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ..engine import cache
from ..engine.backends.llvm.jit import compile_optimized, host, load_object
from ..engine.cache_folder import log
from .machine_code import Layout, Table, package_digest


class CompiledLoop:
    """A function of tables and whole numbers, as machine code: `run(*tables, *numbers)` returns a whole number.

    It is compiled at the first call for tables of a layout, and runs without the GIL.
    """

    def __init__(self, function: Callable[..., int], numbers: int) -> None:
        self.function, self.numbers = function, numbers
        self._loaded: dict[str, Any] = {}

    def for_tables(self, *tables: Table) -> Callable[..., int]:
        """The function for tables of these layouts, of their addresses and of the numbers."""
        text = " ".join(t.layout.text() for t in tables)
        if text not in self._loaded:
            name = self.function.__name__
            layouts = [t.layout for t in tables]
            kept = cache.kept(lambda: self._compiled(layouts), "loop", name, host(), package_digest(), text)
            code = load_object(kept, "loop")
            kind = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_int64] * (len(tables) + self.numbers)))
            self._loaded[text] = kind(code.address("loop"))
            self._loaded[text].code = code  # which lives as long
        compiled: Callable[..., int] = self._loaded[text]
        return compiled

    def _compiled(self, layouts: list[Layout]) -> bytes:
        log.warning("featherweight: compiling the steps of simulations, once for this machine: some tens of seconds")
        from .table_types import llvm_ir

        return compile_optimized(llvm_ir(self.function, layouts, self.numbers))
