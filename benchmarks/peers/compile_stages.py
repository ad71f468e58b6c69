"""Processor times of the stages of a compilation, from the trace to linked code, of all threads.

Stages are functions of the engine. The time of a stage excludes stages within it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm

from featherweight.engine import derivative_program, jacobian_trace, program_trace
from featherweight.engine.backends.llvm import backend, emit, jit, single

STAGES: dict[str, list[tuple[Any, str]]] = {  # functions of the stages, and the modules in which the engine looks them up
    "trace": [(program_trace, "trace"), (derivative_program, "trace"), (program_trace, "count")],
    "differentiate": [(derivative_program, "forward"), (derivative_program, "jacobian_trace"), (jacobian_trace, "forward")],
    "plan": [(emit, "plan_trace"), (single, "plan_lanes")],
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
        """Measure the stages within."""
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
            self._thread.inside = 0.0  # time of nested stages
            begun = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                taken = time.thread_time() - begun
                self.spent[stage] += taken - self._thread.inside
                self._thread.inside = outer + taken

        return call
