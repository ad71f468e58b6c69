"""Calls of the CUDA driver through NVIDIA's own bindings (`cuda-bindings`, which need no toolkit): errors, logs, contexts.

Nothing of CUDA is loaded before the first call.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from functools import cache
from importlib import import_module
from typing import Any

from ....extras import install_command

LOG_BYTES = 16384  # of what the driver's assembler says
MOST_ARGUMENT_BYTES = 4096  # of one launch, that every device takes

_forked = False


@cache
def bindings() -> Any:
    """The module `cuda.bindings.driver`, and the driver started. Raises ImportError or RuntimeError, which say what to do."""
    try:
        api = import_module("cuda.bindings.driver")
    except ImportError as error:
        raise ImportError(f"CUDA needs the package cuda-bindings: {install_command('cuda')} ({error})") from None
    try:
        (status,) = api.cuInit(0)
    except RuntimeError as error:  # of the bindings: there is no such library
        raise RuntimeError(f"CUDA needs NVIDIA's driver, which is not on this machine or is not found: {error}") from None
    if status == api.CUresult.CUDA_ERROR_NO_DEVICE:
        raise RuntimeError("CUDA finds no device on this machine (CUDA_VISIBLE_DEVICES may hide some)")
    if status:
        raise failure(api, "cuInit", status)
    return api


def call(name: str, *arguments: Any) -> Any:
    """What a function of the driver returns, without the status. Raises RuntimeError, or MemoryError."""
    if _forked:
        raise RuntimeError(
            "CUDA was in use when this process was forked, and does not survive that: "
            "start processes by 'spawn' or 'forkserver' (multiprocessing.set_start_method)"
        )
    result = getattr(bindings(), name)(*arguments)
    if result[0]:
        raise failure(bindings(), name, result[0])
    return result[1] if len(result) == 2 else result[1:]


def failure(api: Any, name: str, status: Any) -> Exception:
    """The error for a call that did not succeed."""
    words = [api.cuGetErrorName(status)[1], api.cuGetErrorString(status)[1]]
    title, text = (w.decode() if w else f"unknown error {int(status)}" for w in words)
    kind = MemoryError if status == api.CUresult.CUDA_ERROR_OUT_OF_MEMORY else RuntimeError
    return kind(f"{name} failed: {title} ({text})")


def constant(enumeration: str, name: str) -> Any:
    return getattr(getattr(bindings(), enumeration), name)


class AssemblerLog:
    """Options for the driver's assembler, with a buffer for what it says of errors."""

    def __init__(self, **options: int) -> None:
        self.buffer = bytearray(LOG_BYTES)
        given = options | {"ERROR_LOG_BUFFER": self.buffer, "ERROR_LOG_BUFFER_SIZE_BYTES": LOG_BYTES}
        names = [constant("CUjit_option", f"CU_JIT_{name}") for name in given]
        self.options = len(names), names, list(given.values())

    def call(self, name: str, *arguments: Any) -> Any:
        """As `call`, with the log in the error."""
        try:
            return call(name, *arguments)
        except RuntimeError as error:
            text = self.buffer.partition(b"\0")[0].decode(errors="replace").strip()
            raise RuntimeError(f"{error}\n{text}" if text else str(error)) from None


class LaunchParameters(threading.local):
    """A thread's block for the arguments of a launch: the driver's list of keys and addresses, the size, the bytes."""

    def __init__(self) -> None:
        head = struct.calcsize("6P")
        block = ctypes.create_string_buffer(head + MOST_ARGUMENT_BYTES)
        self.address = ctypes.addressof(block)  # CU_LAUNCH_PARAM_BUFFER_POINTER is 1, ..._SIZE is 2, ..._END is 0
        struct.pack_into("6P", block, 0, 1, self.address + head, 2, self.address + head * 5 // 6, 0, 0)
        view = memoryview(block).cast("B")
        self.size, self.arguments = view[head * 5 // 6 : head].cast("P"), view[head:]


class Context:
    """A device's context."""

    def __init__(self, handle: Any) -> None:
        self._handle, self._number = handle, int(handle)
        self._nothing = _Nothing()

    def current(self) -> Any:
        """To be used at once, in `with`: it is the thread's context there, and then what was before."""
        return self._nothing if int(call("cuCtxGetCurrent")) == self._number else _Pushed(self._handle)


class _Nothing:
    """Does nothing in a `with` statement, in half the time of `contextlib.nullcontext`."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


class _Pushed:
    """Makes a context the thread's in a `with` statement."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def __enter__(self) -> None:
        call("cuCtxPushCurrent", self._handle)

    def __exit__(self, *error: object) -> None:
        call("cuCtxPopCurrent")


def forked() -> bool:
    """Whether a parent process had started CUDA."""
    return _forked


def _forget_driver() -> None:
    """In a forked child, where CUDA does not work if the parent had started it."""
    global _forked
    _forked = _forked or bindings.cache_info().currsize > 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_driver)
