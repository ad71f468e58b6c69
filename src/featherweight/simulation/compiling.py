"""Numba, as the compiled parts of simulation use it. It is imported when the first of them is compiled."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..engine.waiting import tell_begin, tell_end
from .machine_code import package_digest

F = TypeVar("F", bound=Callable[..., Any])

# Sums keep their order: with another for vectors, results would hang on where arrays lie in memory.
FAST = {"contract", "nsz"}

CALLED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # functions that only compiled ones call

PARTS = "further parts of simulations"

_untaught: list[tuple[Any, Any, dict[str, Any]]] = []  # functions, what is compiled for them, and how


class Compilation:
    """How long this process has compiled functions of simulations, beside the steps that most take (`compiled_loop`).

    It is said once, since a step may wait for it that is taken in another way than those before.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._begun: list[tuple[float, bool]] = []  # of those that are being compiled: when, and whether they are ours
        self._said = self._listening = False

    def listen(self) -> None:
        """From now on, once."""
        if self._listening:
            return
        self._listening = True
        from numba.core import event

        event.Listener.register(Compilation)
        event.register("numba:compile", self)

    def notify(self, event: Any) -> None:
        """What Numba calls before it compiles a function that is not on the disk, and after; others are compiled meanwhile.

        Those that are made elsewhere, as loops of simulations are, have their own words.
        """
        if event.is_start:
            ours = str(event.data["dispatcher"].py_func.__module__).startswith(__package__)
            if ours and not self._begun and not self._said:
                tell_begin(PARTS, "up to a minute")
                self._said = True
            self._begun.append((time.perf_counter(), ours))
        elif self._begun:
            begun, ours = self._begun.pop()
            if ours and not self._begun:
                took = time.perf_counter() - begun
                self.seconds += took
                tell_end(PARTS, took)


compilation = Compilation()


def jitable(function: F) -> F:
    """A function that compiled ones call, and is compiled as part of them; plain Python otherwise."""
    _untaught.append((function, function, {}))
    return function


def rounded_alike(function: F) -> F:
    """As `jitable`, with each operation rounded by itself, so that NumPy has the same bits."""
    _untaught.append((function, function, {"fastmath": False}))
    return function


def compiled(function: F) -> F:
    """The function as machine code that runs without the GIL and is kept on disk, where there is a place for it."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return _dispatcher(function)(*args)

    _untaught.append((call, function, {}))
    return call  # type: ignore[return-value]


def teach_numba() -> None:
    """Tell Numba of all functions that compiled ones may call."""
    from numba.extending import overload

    from . import intrinsics  # noqa: F401  # registers itself

    while _untaught:
        known_as, function, options = _untaught.pop()
        overload(known_as, jit_options=CALLED | options, strict=False)(_implementation(function))


def _implementation(function: Any) -> Callable[..., Any]:
    def typed(*args, **named):  # type: ignore[no-untyped-def]
        return function

    return typed


@functools.cache
def _dispatcher(function: Any) -> Any:
    import numba

    teach_numba()
    compilation.listen()
    options: dict[str, Any] = dict(nogil=True, error_model="numpy", fastmath=FAST)
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that can be written
        return numba.njit(**options)(function)
    # Numba compiles anew if the function's own file has changed; code of the others is part of it too
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = package_digest()
    return dispatcher
