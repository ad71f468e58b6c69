"""LLVM IR of the handler that XLA calls on processors: it wraps a kernel.

A large batch is split into pieces, which XLA's threads and the calling thread take from a counter. The caller waits for pieces
in progress, not for threads: a late thread finds no pieces left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from mmap import PAGESIZE

from ...engine.backends.llvm.ir import Function, Type
from ...engine.program import CoreShape, Program
from .call_frame import COUNT_THREADS, RESOURCE_EXHAUSTED, SCHEDULE, Handler

WORK = ("users", "next", "done", "pieces", "states", "of_piece", "without_memory")  # words, before rows and steps
PIECES = 4  # pieces per thread
ROUND = 64  # pieces are multiples of this number of states, so that vectors are full
LARGE = 4 << 20  # least size in bytes of a result for which huge pages are requested, as NumPy does
HUGE_PAGES = 14  # Linux's number of that request


def emit_handler(program: Program, precision: str, many: bool, triple: str) -> str:
    """Return a module with `ptr @handler(ptr frame)` and `@words`: the address of the kernel, and states worth a thread."""
    shapes, inputs = program.shapes, len(program.inputs)
    handler = _HostHandler(shapes, inputs, Type(precision, 1).item_bytes, triple)
    first = handler.of_many() if many else handler.of_one()
    functions = [first, handler.pieces(), _task(), _leave()] if many else [first]
    declarations = dict.fromkeys(d for f in functions for d in f.declarations)
    head = ["@words = global [2 x i64] zeroinitializer", *first.constants, *declarations]
    return "\n".join([*head, *map(str, functions), "attributes #0 = { nounwind }"])


class _HostHandler:
    """The functions of a module; `shapes` are core shapes of the arguments and the results."""

    def __init__(self, shapes: Sequence[CoreShape], inputs: int, item_bytes: int, triple: str) -> None:
        self.shapes, self.inputs = shapes, inputs
        self.give_way = "SwitchToThread" if "windows" in triple else "sched_yield"
        self.has_huge_pages = "linux" in triple
        self.sizes = [math.prod(shape) * item_bytes for shape in shapes]  # sizes of rows in bytes
        self.strides = [math.prod(shape[d + 1 :]) * item_bytes for shape in shapes for d in range(len(shape))]
        self.steps = len(WORK) + len(shapes)  # after the rows
        self.bytes = 8 * (self.steps + len(shapes) + len(self.strides))

    def of_one(self) -> Handler:
        """Return the handler for one state: the kernel of pointers."""
        f = Handler(self.shapes, self.inputs)
        data = f.slot("ptr", len(self.shapes))
        f.answer_questions()
        for k, buffer in enumerate(f.buffers()):
            f.store("ptr", f.data(buffer), data, k)
        failed = f.call("i32", f.load("ptr", "@words"), f"ptr {data}")
        f.branch(f.equal(failed, 0, "i32"), "fine", "no.memory")
        _end(f)
        return f

    def of_many(self) -> Handler:
        """Return the handler for a batch: the loop, on this thread or shared."""
        f = Handler(self.shapes, self.inputs)
        called = "declare ptr @malloc(i64)", "declare void @free(ptr)", f"declare i32 @{self.give_way}()"
        f.declarations |= dict.fromkeys(called)
        own, count = f.slot("i8", self.bytes), f.slot("i64")
        f.answer_questions()
        states = self._describe(f, own)
        f.require(f.less(0, states), "fine")
        if self.has_huge_pages:
            self._ask_for_huge_pages(f, own, states)
        wanted = f.div(states, f.load("i64", "@words", 1))
        f.require(f.less(1, wanted), "alone")
        threads = f.least(wanted, _threads(f, count))
        f.require(f.less(1, threads), "alone")
        work = f.call("ptr", "@malloc", f"i64 {self.bytes}")
        f.require(f.negation(f.equal(work, "null", "ptr")), "alone")
        f.copy_bytes(work, own, str(self.bytes))
        failed = self._share(f, work, states, threads)
        f.branch(f.equal(failed, 0), "fine", "no.memory")
        f.label("alone")
        self._run(f, own, f.at("ptr", own, len(WORK)), _at(f, own, "states"))
        f.branch(f.equal(_word(f, own, "without_memory"), 0), "fine", "no.memory")
        _end(f)
        return f

    def _describe(self, f: Handler, work: str) -> str:
        """Write the number of states, the rows of all arrays and NumPy's steps to their places."""
        buffers = f.buffers()
        for k, (buffer, shape, size) in enumerate(zip(buffers, self.shapes, self.sizes, strict=True)):
            f.store("ptr", f.data(buffer), work, len(WORK) + k)
            f.store("i64", f.step(buffer, shape, size), work, self.steps + k)
        for d, stride in enumerate(self.strides):
            f.store("i64", stride, work, self.steps + len(self.shapes) + d)
        _set(f, work, "without_memory", 0)
        return f.count_states(buffers[self.inputs], self.shapes[self.inputs], _at(f, work, "states"))

    def _ask_for_huge_pages(self, f: Handler, work: str, states: str) -> None:
        """Request huge pages for large results, because XLA gives them new memory, which is slow to get in small pages."""
        f.declarations["declare i32 @madvise(ptr, i64, i32)"] = None
        for k, size in enumerate(self.sizes[self.inputs :], self.inputs):
            bytes = f.mul(states, size)
            with f.unless(f.less(bytes, LARGE)):
                begin = f.cast("ptrtoint", "ptr", f.load("ptr", work, len(WORK) + k), "i64")
                page = f.binary("and", "i64", f.add(begin, PAGESIZE - 1), -PAGESIZE)
                rest = f.sub(bytes, f.sub(page, begin))
                address = f.cast("inttoptr", "i64", page, "ptr")
                f.call("i32", "@madvise", f"ptr {address}", f"i64 {rest}", f"i32 {HUGE_PAGES}")

    def _run(self, f: Function, work: str, rows: str, count: str) -> None:
        """Run the loop over `count` states from some rows on."""
        steps, without = f.at("i64", work, self.steps), _at(f, work, "without_memory")
        f.call("void", f.load("ptr", "@words"), f"ptr {rows}", f"ptr {count}", f"ptr {steps}", f"ptr {without}")

    def _share(self, f: Handler, work: str, states: str, threads: str) -> str:
        """Share states among threads; return the number of pieces without memory."""
        share = f.div(f.add(states, f.mul(threads, PIECES)), f.mul(threads, PIECES))
        of_piece = f.mul(f.div(f.add(share, ROUND - 1), ROUND), ROUND)
        pieces = f.div(f.add(states, f.sub(of_piece, 1)), of_piece)
        for word, size in {"users": threads, "next": "0", "done": "0", "pieces": pieces, "of_piece": of_piece}.items():
            _set(f, work, word, size)
        number = f.cast("ptrtoint", "ptr", work, "i64")
        with f.loop(f.sub(threads, 1)):
            error = f.ask(SCHEDULE, 40, f.context, "ptrtoint (ptr @task to i64)", number)
            with f.unless(f.equal(error, "null", "ptr")):
                f.destroy_error(error)
                f.call("void", "@leave", f"ptr {work}")
        f.call("void", "@pieces", f"ptr {work}")
        f.jump("wait")
        f.label("wait")
        done = f.value(f"load atomic i64, ptr {_at(f, work, 'done')} acquire, align 8")
        f.branch(f.equal(done, pieces), "computed", "yield")
        f.label("yield")
        f.call("i32", f"@{self.give_way}")
        f.jump("wait")
        f.label("computed")
        failed = _word(f, work, "without_memory")
        f.call("void", "@leave", f"ptr {work}")
        return failed

    def pieces(self) -> Function:
        """Return `void @pieces(ptr work)`, which computes pieces until none are left."""
        f = Function("void", "pieces", ["ptr %work"])
        rows, count = f.slot("ptr", len(self.shapes)), f.slot("i64")
        f.jump("next")
        f.label("next")
        k = f.value(f"atomicrmw add ptr {_at(f, '%work', 'next')}, i64 1 acq_rel")
        f.require(f.less(k, _word(f, "%work", "pieces")), "none")
        of_piece = _word(f, "%work", "of_piece")
        first = f.mul(k, of_piece)
        f.store("i64", f.least(of_piece, f.sub(_word(f, "%work", "states"), first)), count)
        for a in range(len(self.shapes)):
            begin, step = f.load("ptr", "%work", len(WORK) + a), f.load("i64", "%work", self.steps + a)
            f.store("ptr", f.at("i8", begin, f.mul(first, step)), rows, a)
        self._run(f, "%work", rows, count)
        f.value(f"atomicrmw add ptr {_at(f, '%work', 'done')}, i64 1 release")
        f.jump("next")
        f.label("none")
        f.ret()
        return f


def _end(f: Handler) -> None:
    f.label("no.memory")
    f.fail(RESOURCE_EXHAUSTED, f.text("no memory for the workspace of a batch"))
    f.label("fine")
    f.ret("ptr", "null")


def _task() -> Function:
    """Return `void @task(ptr work)`, which XLA's threads call, possibly after everything is done."""
    f = Function("void", "task", ["ptr %work"])
    f.call("void", "@pieces", "ptr %work")
    f.call("void", "@leave", "ptr %work")
    f.ret()
    return f


def _leave() -> Function:
    """Return `void @leave(ptr work)`: the last user frees the work."""
    f = Function("void", "leave", ["ptr %work"])
    users = f.value(f"atomicrmw sub ptr {_at(f, '%work', 'users')}, i64 1 acq_rel")
    f.branch(f.equal(users, 1), "last", "others")
    f.label("last")
    f.call("void", "@free", "ptr %work")
    f.jump("others")
    f.label("others")
    f.ret()
    return f


def _threads(f: Handler, count: str) -> str:
    """Return the number of XLA's threads; `count` is memory for the number."""
    f.store("i64", 1, count)
    f.destroy_error(f.ask(COUNT_THREADS, 32, f.context, f.cast("ptrtoint", "ptr", count, "i64")))
    return f.load("i64", count)


def _at(f: Function, work: str, word: str) -> str:
    return f.at("i64", work, WORK.index(word))


def _word(f: Function, work: str, word: str) -> str:
    return f.load("i64", _at(f, work, word))


def _set(f: Function, work: str, word: str, value: str | int) -> None:
    f.store("i64", value, _at(f, work, word))
