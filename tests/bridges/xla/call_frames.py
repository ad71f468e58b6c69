"""Call frames as XLA makes them (`xla/ffi/api/c_api.h`), and a table of functions that records calls, in ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from featherweight.engine.backends.llvm.jit import Code, compile_optimized

Pointer, Word, Int = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
DTYPES = {np.dtype(np.float32): 11, np.dtype(np.float64): 12}
REFUSED = 0xBAD  # an error that XLA returns
METADATA = 1  # the kind of an extension
CONTEXT, TASK = 0xC0, ctypes.CFUNCTYPE(None, Pointer)


class Head(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", Pointer)]


class Version(Head):
    _fields_ = [("major", Int), ("minor", Int)]


class Api(Head):
    _fields_ = [
        ("version", Version), ("internal", Pointer),
        *((name, Pointer) for name in (
            *("create_error", "message", "destroy_error", "register", "stream", "register_type", "context_get", "state_set"),
            *("state_get", "allocate", "free", "schedule", "count_threads", "future_create", "future_set", "future_fail"),
            *("run_id", "ordinal"),
        )),
    ]  # fmt: skip


class Buffer(Head):
    _fields_ = [("dtype", Int), ("data", Pointer), ("rank", Word), ("dims", Pointer)]


class Buffers(Head):
    _fields_ = [("count", Word), ("types", Pointer), ("buffers", Pointer)]


class Attributes(Head):
    _fields_ = [("count", Word), ("types", Pointer), ("names", Pointer), ("values", Pointer)]


class Frame(Head):
    _fields_ = [("api", Pointer), ("context", Pointer), ("stage", Int), ("arguments", Buffers), ("results", Buffers),
                ("attributes", Attributes), ("future", Pointer)]  # fmt: skip


class Metadata(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("version", Version), ("traits", ctypes.c_uint32), ("state_type", Word)]


class MetadataExtension(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("kind", Int), ("next", Pointer), ("metadata", Pointer)]


class ErrorRequest(Head):
    _fields_ = [("message", ctypes.c_char_p), ("kind", Int)]


class Request(Head):
    _fields_ = [("context", Pointer), ("answer", Pointer)]


class TaskRequest(Head):
    _fields_ = [("context", Pointer), ("task", Pointer), ("data", Pointer)]


SIZES = {"create_error": 28, "destroy_error": 24, "stream": 32, "ordinal": 28, "count_threads": 32, "schedule": 40}


class Module:
    """A handler's machine code, with its words."""

    def __init__(self, ir: str, words: Sequence[int], refers_to: Any = None) -> None:
        self._refers_to = refers_to
        self._code = Code(compile_optimized(ir), "handler", "words")
        self.address = self._code.address("handler")
        ctypes.memmove(self._code.address("words"), (ctypes.c_uint64 * len(words))(*words), 8 * len(words))


class Xla:
    """A stand-in for the used functions of XLA.

    `refuses` names the functions that return errors; its threads run at once, or on demand.
    """

    def __init__(self, threads: int = 1, late: bool = True, ordinal: int = 0, stream: int = 0) -> None:
        self.threads, self.late, self.ordinal, self.stream = threads, late, ordinal, stream
        self.refuses: set[str] = set()
        self.errors: list[tuple[int, str]] = []
        self.dropped: list[int] = []
        self.tasks: list[tuple[int, int]] = []
        self.api = Api()
        self.api.version.minor = 3
        self._kept: list[Any] = [self.api]
        for name in SIZES:
            made = ctypes.CFUNCTYPE(Pointer, Pointer)(lambda request, name=name: self._answered(name, request))
            self._kept.append(made)
            setattr(self.api, name, ctypes.cast(made, Pointer).value)

    def _answered(self, name: str, request: int) -> int:
        size, extension = (ctypes.c_size_t * 2).from_address(request)
        assert (size, extension) == (SIZES[name], 0)
        if name in self.refuses:
            return REFUSED
        return getattr(self, f"_{name}")(request) or 0

    def _create_error(self, request: int) -> int:
        error = ErrorRequest.from_address(request)
        self.errors.append((error.kind, error.message.decode()))
        return len(self.errors)

    def _destroy_error(self, request: int) -> None:
        self.dropped.append(Word.from_address(request + 16).value)

    def _stream(self, request: int) -> None:
        assert Request.from_address(request).context == CONTEXT
        Word.from_address(request + 24).value = self.stream

    def _ordinal(self, request: int) -> None:
        assert Request.from_address(request).context == CONTEXT
        Int.from_address(request + 24).value = self.ordinal

    def _count_threads(self, request: int) -> None:
        assert Request.from_address(request).context == CONTEXT
        Word.from_address(Request.from_address(request).answer or 0).value = self.threads

    def _schedule(self, request: int) -> None:
        task = TaskRequest.from_address(request)
        assert task.context == CONTEXT
        self.tasks.append((task.task or 0, task.data or 0))
        if not self.late:
            self.run_tasks()

    def run_tasks(self) -> None:
        """Run tasks in the way of XLA's threads."""
        while self.tasks:
            task, data = self.tasks.pop(0)
            TASK(task)(data)

    def call(self, handler: Module, arguments: Sequence[Any], results: Sequence[Any]) -> int | None:
        """Return the error that a handler returns for arrays."""
        kept: list[Any] = []
        frame = Frame(ctypes.sizeof(Frame), None, ctypes.addressof(self.api), CONTEXT, 3)
        frame.arguments, frame.results = (_buffers(arrays, kept) for arrays in (arguments, results))
        return _called(handler, frame)

    def asks(self, handler: Module, with_api: bool = True) -> tuple[int, int, int]:
        """Return the versions and traits that a handler reports."""
        metadata = Metadata(ctypes.sizeof(Metadata))
        metadata.version = Version(ctypes.sizeof(Version), None, -1, -1)
        metadata.traits = 99
        extension = MetadataExtension(ctypes.sizeof(MetadataExtension), METADATA, None, ctypes.addressof(metadata))
        frame = Frame(ctypes.sizeof(Frame), ctypes.addressof(extension))
        if with_api:
            frame.api = ctypes.addressof(self.api)
        assert not _called(handler, frame)
        return metadata.version.major, metadata.version.minor, metadata.traits


def _called(handler: Module, frame: Frame) -> int | None:
    error = ctypes.CFUNCTYPE(Pointer, Pointer)(handler.address)(ctypes.addressof(frame))
    return None if error is None else int(error)


def _buffers(arrays: Sequence[Any], kept: list[Any]) -> Buffers:
    buffers = []
    for x in arrays:
        dims = (Word * max(x.ndim, 1))(*x.shape)
        assert x.flags.c_contiguous
        buffers.append(Buffer(ctypes.sizeof(Buffer), None, DTYPES[x.dtype], x.ctypes.data, x.ndim, ctypes.addressof(dims)))
        kept += [x, dims, buffers[-1]]
    pointers = (Pointer * max(len(buffers), 1))(*map(ctypes.addressof, buffers))
    types = (Int * max(len(buffers), 1))(*[1] * len(buffers))
    kept += [pointers, types]
    return Buffers(ctypes.sizeof(Buffers), None, len(buffers), ctypes.addressof(types), ctypes.addressof(pointers))
