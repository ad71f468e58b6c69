"""Object code of kernels with loops: cached on disk, shipped with the package, or compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import cache, sources
from ..backends.llvm.jit import compile_loops, compile_optimized, host
from ..compilation_messages import report_if_long, reporting
from .precompiled_code import precompiled_entry

Facts = dict[str, Any]  # facts about a kernel, stored with its code


class Specialization(NamedTuple):
    """A function for parameters of given types."""

    function: Any
    fused: bool  # whether a b + c is rounded once
    types: str
    classes: tuple[type, ...]  # classes of named tuples among the parameters
    what: str  # description for users who wait for the compilation
    checked: bool = False  # whether indices are checked
    thorough: bool = False  # whether LLVM's further optimizations pay off

    @property
    def name(self) -> str:
        """The function and its types, in a form that all versions of Python share."""
        return f"{self.function.__module__}.{self.function.__qualname__} {self.fused} {self.types}"


compilation_observers: list[Callable[[Specialization, Facts, str], None]] = []
"""Called with the facts and the IR of each kernel that this process compiles."""


def code_of(kernel: Specialization, write: Callable[[], tuple[Facts, str]]) -> tuple[Facts, bytes]:
    """Return facts and object code of a kernel; `write` returns its facts and its IR."""
    digest = sources.digest(kernel.function, kernel.classes)
    name = cache.key("kernel", digest, kernel.fused, kernel.checked, host(), kernel.types)
    entry = cache.read(name)
    if entry is None:
        shipped = None if kernel.checked else precompiled_entry(kernel.name)
        entry = shipped or _compiled(kernel, write)
        cache.write(name, *entry)
    return entry


def _compiled(kernel: Specialization, write: Callable[[], tuple[Facts, str]]) -> tuple[Facts, bytes]:
    with reporting(kernel.what):
        facts, ir = write()
        report_if_long()
        for observe in compilation_observers:
            observe(kernel, facts, ir)
        return facts, compile_optimized(ir) if kernel.thorough else compile_loops(ir)
