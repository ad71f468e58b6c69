"""The frame that XLA calls a handler with, and what it can be asked for, in LLVM IR.

Its foreign function interface is `xla/ffi/api/c_api.h`, version 0. Buffers are dense and in row-major order; their leading axes
are those of the batch, and an argument that has none is the same row for all states.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...program import CoreShape
from ..llvm.ir import Function

# bytes from the beginnings of XLA's structures, each of which begins with its size and its extensions
EXTENSION = 8
API, CONTEXT, ARGUMENTS, RESULTS = 16, 24, 72, 112  # of a frame
EXTENSION_KIND, METADATA_OF_EXTENSION, METADATA = 8, 24, 1
MAJOR_VERSION, MINOR_VERSION, TRAITS = 24, 28, 32  # of metadata
VERSION_OF_API = 36  # the minor one
DATA, RANK, DIMS = 24, 32, 40  # of a buffer
CREATE_ERROR, DESTROY_ERROR, STREAM, SCHEDULE, COUNT_THREADS, ORDINAL = 48, 64, 80, 136, 144, 184  # in the table of functions
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, INTERNAL = 8, 9, 13  # kinds of errors
OLDEST_VERSION = 1  # without a table to ask
REQUEST = 5  # words, at most


class Handler(Function):
    """`ptr @handler(ptr frame)`, which returns null or an error."""

    def __init__(self, shapes: Sequence[CoreShape], inputs: int) -> None:
        super().__init__("ptr", "handler", ["ptr %frame"], linkage="external")
        self.shapes, self.inputs = shapes, inputs
        self.constants: list[str] = []
        self.request = self.slot("i64", REQUEST)

    def answer_questions(self) -> None:
        """XLA asks for the version before it calls: that of the table, of which nothing is used that is new. "fine" ends it."""
        extension = self.field("ptr", "%frame", EXTENSION)
        self.branch(self.equal(extension, "null", "ptr"), "compute", "extended")
        self.label("extended")
        self.require(self.equal(self.field("i32", extension, EXTENSION_KIND), METADATA, "i32"), "compute")
        metadata, api = self.field("ptr", extension, METADATA_OF_EXTENSION), self.field("ptr", "%frame", API)
        self.store("i32", 0, self.at("i8", metadata, MAJOR_VERSION))
        self.store("i32", 0, self.at("i8", metadata, TRAITS))
        minor = self.at("i8", metadata, MINOR_VERSION)
        self.store("i32", OLDEST_VERSION, minor)
        self.require(self.negation(self.equal(api, "null", "ptr")), "fine")
        self.store("i32", self.field("i32", api, VERSION_OF_API), minor)
        self.jump("fine")
        self.label("compute")

    # what it is given

    def buffers(self) -> list[str]:
        """Return the buffers of the arguments and the results."""
        arguments, results = self.field("ptr", "%frame", ARGUMENTS), self.field("ptr", "%frame", RESULTS)
        given = [self.load("ptr", arguments, k) for k in range(self.inputs)]
        return given + [self.load("ptr", results, k) for k in range(len(self.shapes) - self.inputs)]

    def data(self, buffer: str) -> str:
        return self.field("ptr", buffer, DATA)

    def step(self, buffer: str, shape: CoreShape, size: int) -> str:
        """From row to row: the size of one, or 0 where one serves all states."""
        return self.select(self.equal(self.field("i64", buffer, RANK), len(shape)), 0, size)

    def count_states(self, result: str, shape: CoreShape, states: str) -> str:
        """How many there are, by the axes of a result; `states` is room for the number."""
        self.store("i64", 1, states)
        dims = self.field("ptr", result, DIMS)
        with self.loop(self.sub(self.field("i64", result, RANK), len(shape))) as axis:
            self.store("i64", self.mul(self.load("i64", states), self.load("i64", dims, axis)), states)
        return self.load("i64", states)

    # what it asks for

    @property
    def context(self) -> str:
        return self.field("i64", "%frame", CONTEXT)

    def ask(self, function: int, bytes: int, *words: str) -> str:
        """Call a function of the table with a structure of so many bytes, which lies in `request`. The error, or null."""
        for k, word in enumerate((str(bytes), "0", *words)):
            self.store("i64", word, self.request, k)
        return self.call("ptr", self.field("ptr", self.field("ptr", "%frame", API), function), f"ptr {self.request}")

    def drop(self, error: str) -> None:
        """Go on without what was asked for."""
        some, none = self.fresh("error"), self.fresh("none")
        self.branch(self.equal(error, "null", "ptr"), none, some)
        self.label(some)
        for k, word in enumerate(("24", "0")):
            self.store("i64", word, self.request, k)
        self.store("ptr", error, self.request, 2)
        self.call("void", self.field("ptr", self.field("ptr", "%frame", API), DESTROY_ERROR), f"ptr {self.request}")
        self.jump(none)
        self.label(none)

    def hand_on(self, error: str) -> None:
        """Return an error of XLA's, if there is one."""
        some, none = self.fresh("error"), self.fresh("none")
        self.branch(self.equal(error, "null", "ptr"), none, some)
        self.label(some)
        self.ret("ptr", error)
        self.label(none)

    def text(self, message: str) -> str:
        """The address of a text of the module."""
        name = f"@text.{len(self.constants)}"
        self.constants.append(f'{name} = private constant [{len(message) + 1} x i8] c"{message}\\00"')
        return name

    def fail(self, kind: int, message: str) -> None:
        """Return an error, with what a pointer points to."""
        self.ret("ptr", self.ask(CREATE_ERROR, 28, self.cast("ptrtoint", "ptr", message, "i64"), str(kind)))
