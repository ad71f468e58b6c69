"""The frame with which XLA calls a handler, and the requests to XLA, in LLVM IR.

XLA's foreign function interface is `xla/ffi/api/c_api.h`, version 0. Buffers are dense and in row-major order. Their leading
axes are those of the batch; an argument without batch axes is one row for all states.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...engine.backends.llvm.ir import Function
from ...engine.program import CoreShape

# offsets in bytes in XLA's structures, each of which starts with its size and its extensions
EXTENSION = 8
API, CONTEXT, ARGUMENTS, RESULTS = 16, 24, 72, 112  # in a frame
EXTENSION_KIND, METADATA_OF_EXTENSION, METADATA = 8, 24, 1
MAJOR_VERSION, MINOR_VERSION, TRAITS = 24, 28, 32  # in metadata
VERSION_OF_API = 36  # the minor version
DATA, RANK, DIMS = 24, 32, 40  # in a buffer
CREATE_ERROR, DESTROY_ERROR, STREAM, SCHEDULE, COUNT_THREADS, ORDINAL = 48, 64, 80, 136, 144, 184  # in the table of functions
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, INTERNAL = 8, 9, 13  # error codes
OLDEST_VERSION = 1  # used without a table of functions
REQUEST = 5  # greatest number of words of a request


class Handler(Function):
    """The function `ptr @handler(ptr frame)`, which returns null or an error."""

    def __init__(self, shapes: Sequence[CoreShape], inputs: int) -> None:
        super().__init__("ptr", "handler", ["ptr %frame"], linkage="external")
        self.shapes, self.inputs = shapes, inputs
        self.constants: list[str] = []
        self.request = self.slot("i64", REQUEST)

    def answer_questions(self) -> None:
        """Answer XLA's request for the version, before any call: that of the table, whose new features are not used.

        "fine" ends the answer.
        """
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

    # arguments

    def buffers(self) -> list[str]:
        """Return the buffers of the arguments and the results."""
        arguments, results = self.field("ptr", "%frame", ARGUMENTS), self.field("ptr", "%frame", RESULTS)
        given = [self.load("ptr", arguments, k) for k in range(self.inputs)]
        return given + [self.load("ptr", results, k) for k in range(len(self.shapes) - self.inputs)]

    def data(self, buffer: str) -> str:
        return self.field("ptr", buffer, DATA)

    def step(self, buffer: str, shape: CoreShape, size: int) -> str:
        """Return the row stride: the size of a row, or 0 if one row serves all states."""
        return self.select(self.equal(self.field("i64", buffer, RANK), len(shape)), 0, size)

    def count_states(self, result: str, shape: CoreShape, states: str) -> str:
        """Return the number of states, from the axes of a result; `states` is memory for the number."""
        self.store("i64", 1, states)
        dims = self.field("ptr", result, DIMS)
        with self.loop(self.sub(self.field("i64", result, RANK), len(shape))) as axis:
            self.store("i64", self.mul(self.load("i64", states), self.load("i64", dims, axis)), states)
        return self.load("i64", states)

    # requests

    @property
    def context(self) -> str:
        return self.field("i64", "%frame", CONTEXT)

    def ask(self, function: int, bytes: int, *words: str) -> str:
        """Call a function of the table with a structure of `bytes` bytes in `request`; return the error, or null."""
        for k, word in enumerate((str(bytes), "0", *words)):
            self.store("i64", word, self.request, k)
        return self.call("ptr", self.field("ptr", self.field("ptr", "%frame", API), function), f"ptr {self.request}")

    def destroy_error(self, error: str) -> None:
        """Continue without the requested item."""
        with self.unless(self.equal(error, "null", "ptr")):
            for k, word in enumerate(("24", "0")):
                self.store("i64", word, self.request, k)
            self.store("ptr", error, self.request, 2)
            self.call("void", self.field("ptr", self.field("ptr", "%frame", API), DESTROY_ERROR), f"ptr {self.request}")

    def return_error(self, error: str) -> None:
        """Return XLA's error, if there is one."""
        self.return_if(self.negation(self.equal(error, "null", "ptr")), "ptr", error)

    def text(self, message: str) -> str:
        """Return the address of a text of the module."""
        name = f"@text.{len(self.constants)}"
        self.constants.append(f'{name} = private constant [{len(message) + 1} x i8] c"{message}\\00"')
        return name

    def fail(self, kind: int, message: str) -> None:
        """Return an error with a message."""
        self.ret("ptr", self.ask(CREATE_ERROR, 28, self.cast("ptrtoint", "ptr", message, "i64"), str(kind)))
