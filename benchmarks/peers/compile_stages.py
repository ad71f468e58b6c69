"""What the stages of a compilation take, from the trace to code that is linked: processor time of all threads.

Stages are functions of the engine. Each counts its own time, without that of stages within it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm

from featherweight.engine import derivative_program, lane_trace, program_trace
from featherweight.engine.backends.llvm import backend, emit, jit, lanes

STAGES: dict[str, list[tuple[Any, str]]] = {  # and where the engine looks for the functions
    "trace": [(program_trace, "trace"), (derivative_program, "trace"), (program_trace, "count")],
    "differentiate": [(derivative_program, "forward"), (derivative_program, "lane_trace"), (lane_trace, "forward")],
    "plan": [(emit, "plan_trace"), (lanes, "plan_lanes")],
    "write": [(backend, "emit_loop"), (backend, "emit_single"), (backend, "emit_single_in_lanes")],
    "parse": [(llvm, "parse_assembly")],
    "generate code": [(jit, "emitted")],
    "link": [(backend, "load_object")],
}


class Stages:
    """Processor time by stage [s]."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._thread = threading.local()

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Count the time of stages meanwhile."""
        known = [(module, name, getattr(module, name), stage) for stage, places in STAGES.items() for module, name in places]
        for module, name, function, stage in known:
            setattr(module, name, self._timed(function, stage))
        try:
            yield
        finally:
            for module, name, function, _ in known:
                setattr(module, name, function)

    def _timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            outer = getattr(self._thread, "inside", 0.0)
            self._thread.inside = 0.0  # of stages within this one
            begun = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                taken = time.thread_time() - begun
                self.spent[stage] += taken - self._thread.inside
                self._thread.inside = outer + taken

        return call
