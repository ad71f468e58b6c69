"""Object code of a standalone kernel: the kernel, the functions that it calls, its constants, and an interface in C."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Protocol

from ..array_types import Array
from ..engine import cache
from ..engine.backends.llvm.emit import KernelStyle
from ..engine.backends.llvm.ir import CACHE_LINE, Function, Type
from ..engine.backends.llvm.jit import compile_together, host
from ..engine.backends.llvm.loop import assemble, emit_loop_in_workspace
from ..engine.loops.standalone import ANY, POSITIVE, Port, StandaloneLoop, Status
from ..robot.system import System
from ..version import __version__
from .export_targets import ExportTarget, this_machine
from .object_code import ObjectCode, emit_for_one_state, undefined_symbols
from .standalone_image import Code, Copy, Image

NOT_READY, BAD_INPUT = -1, -2
STATUS_OF_ALL = (
    Status(NOT_READY, "NOT_READY", "the workspace has not been reset"),
    Status(BAD_INPUT, "BAD_INPUT", "an input is not finite, or not positive where it must be"),
)
UNKNOWN = "no such status"
MARK = 0x5F7265_6164795F  # in the first word of a workspace after a reset
REAL = Type("double", 1)
HELPERS = ("__aeabi_", "__udivdi3", "__divdi3", "__umoddi3", "__moddi3")  # of the compiler's own runtime on 32-bit processors


class Controller(Protocol):
    """An object that says what a program without Python needs, for a robot."""

    @property
    def robot(self) -> System: ...
    def standalone(self) -> StandaloneLoop: ...


def compile_standalone(name: str, exported: StandaloneLoop, target: ExportTarget) -> ObjectCode:
    """Return the object file of a kernel whose functions in C begin with a name.

    Raises NotImplementedError for a kernel that calls functions in Python, and RuntimeError for one that calls libraries.
    """
    image = Image(exported)
    functions, scratch = _functions(image, target)
    names = {key: f"code.{k}" for k, key in enumerate(functions)}
    size = len(image.content) + scratch
    texts = [*_data(name, exported, image), *_library(target), _batch_caller()]
    entries = [_reset(name, image, names), _tick(name, exported, image), _defaults(name, exported)]
    entries += [_words(name, exported), _version(name), _workspace_bytes(name, size + CACHE_LINE)]
    declared = dict.fromkeys(d for f in entries for d in f.declarations)
    lines = [*declared, *texts, *map(str, entries), f"declare i64 @loop({', '.join(['i64'] * _arguments(exported))})"]
    lines += [f"declare void @{n}()" for n in names.values()]
    symbols = [f.name for f in entries] + [
        f"{name}_{key}" for key, x in (*exported.names.items(), *exported.constants.items()) if len(x)
    ]
    loop = exported.loop.module(image.layouts, target.fma)
    others = {names[key]: modules for key, modules in functions.items()}
    further = "\n".join(lines) + '\nattributes #0 = { noinline nounwind "no-builtins" }'
    data = cache.kept(
        lambda: compile_together(loop, others, further, symbols, target.machine()),
        "standalone", loop, others, further, symbols, target, host().llvm,
    )  # fmt: skip
    if missing := [x for x in undefined_symbols(data) if not x.startswith(HELPERS)]:
        raise RuntimeError(f"{name}: code for {target.name} ({target.triple}) would call {', '.join(missing)}")
    return ObjectCode(data, tuple(symbols), size + CACHE_LINE)


def _arguments(exported: StandaloneLoop) -> int:
    return len(exported.tables) + len(exported.numbers)


# functions that the kernel calls


def _functions(image: Image, target: ExportTarget) -> tuple[dict[tuple[int, bool], list[str]], int]:
    """Return the modules of all functions, by identity and kind, and the bytes of the memory that they share."""
    style = KernelStyle(freestanding=True, assembly=target == this_machine())
    modules: dict[tuple[int, bool], list[str]] = {}
    scratch = 0
    for code in image.codes.values():
        if code.function is None or _key(code) in modules:
            continue
        written, size = (_batch if code.many else _single)(code.function, target, style)
        modules[_key(code)], scratch = written, max(scratch, size)
    return modules, scratch


def _key(code: Code) -> tuple[int, bool]:
    return id(code.function), code.many


def _batch(function: Any, target: ExportTarget, style: KernelStyle) -> tuple[list[str], int]:
    """Return a function of many states."""
    type = Type("double", max(2, target.lanes("double")))
    return emit_loop_in_workspace(function.trace, function.program.shapes, type, target.fma, style)


def _single(function: Any, target: ExportTarget, style: KernelStyle) -> tuple[list[str], int]:
    """Return a function of one state, `i32 f(ptr arguments)`; its workspace is the last of the arguments."""
    program = function.program
    sizes = [y.size for y in program.outputs]
    kernel = emit_for_one_state(function.trace, program.in_lanes, sizes, target, "double", style)
    f = Function("i32", "single", ["ptr %arguments"], linkage="external")
    count = len(program.inputs) + len(program.outputs)
    pointers = [f"ptr {f.load('ptr', f.at('i64', '%arguments', k), align=8)}" for k in range(count + 1)]
    for part in kernel.parts:
        f.call("void", f"@{part}", *pointers)
    f.ret("i32", "0")
    return assemble([kernel], REAL, [], [str(f)], target.fma), REAL.bytes * kernel.workspace + CACHE_LINE


def _batch_caller() -> str:
    """Return `i32 call(ptr words)`, which calls the loop at the first word with the next four words."""
    f = Function("i32", "call.batch", ["ptr %words"], linkage="internal")
    loop, *arguments = (f.load("ptr", f.at("i64", "%words", k), align=8) for k in range(5))
    f.call("void", loop, *(f"ptr {x}" for x in arguments))
    f.ret("i32", "0")
    return str(f)


def _library(target: ExportTarget) -> Iterator[str]:
    """Yield functions that LLVM calls for arrays, under the names of the target."""
    short = "p:32:" in str(target.machine().target_data)
    size = "i32" if short else "i64"

    def begun(name: str, *arguments: str) -> tuple[Function, str]:
        f = Function("ptr", name, arguments, linkage="external")
        return f, f.cast("zext", "i32", "%n", "i64") if short else "%n"

    arm = [f"__aeabi_mem{{}}{suffix}" for suffix in ("", "4", "8")] if short else []
    kinds = [(name.format(kind), kind) for name in arm for kind in ("clr", "set", "cpy", "move")]
    for name, kind in (("memset", "set"), ("memcpy", "cpy"), ("memmove", "move"), *kinds):
        if kind in ("clr", "set"):
            filled = (
                [f"{size} %n"]
                if kind == "clr"
                else [f"{size} %n", "i32 %x"]
                if name.startswith("__")
                else ["i32 %x", f"{size} %n"]
            )
            f, count = begun(name, "ptr %to", *filled)
            byte = "0" if kind == "clr" else f.cast("trunc", "i32", "%x", "i8")
            with f.loop(count) as i:
                f.store("i8", byte, f.at("i8", "%to", i))
        else:
            f, count = begun(name, "ptr %to", "ptr %from", f"{size} %n")
            with f.choice(f.value("icmp ult ptr %from, %to")) as (down, up):
                with down, f.loop(count) as i:
                    at = f.sub(f.sub(count, i), 1)
                    f.store("i8", f.load("i8", f.at("i8", "%from", at)), f.at("i8", "%to", at))
                with up, f.loop(count) as i:
                    f.store("i8", f.load("i8", f.at("i8", "%from", i)), f.at("i8", "%to", i))
        f.ret("ptr", "%to")
        yield str(f)


# constants


def _data(name: str, exported: StandaloneLoop, image: Image) -> Iterator[str]:
    """Yield constants: the content of the workspace, addresses in it, and arrays for callers."""
    yield _words_constant("image.words", image.packed.words)
    yield _integers("image.constants", [*chain.from_iterable(image.packed.constants)])
    yield _integers("image.repeats", [*chain.from_iterable(image.packed.repeats)])
    yield _integers("image.pointers", [x for at, to in image.pointers.items() for x in (at, _target(image, to))])
    yield _words_constant("input.defaults", [w for port in exported.inputs for w in _words_of(port.defaults)])
    yield _texts("status.words", _words_of_status(exported))
    yield f"@version = internal constant {_text(__version__)}"
    for key, names in exported.names.items():
        if not names:
            continue
        yield _texts(f"{name}_{key}", names, "external")
    for key, numbers in exported.constants.items():
        if not numbers.size:
            continue
        values = ", ".join(f"double {REAL.constant(x)}" for x in numbers.reshape(-1).tolist())
        yield f"@{name}_{key} = constant [{numbers.size} x double] [{values}], align 8"


def _target(image: Image, to: int) -> int:
    return len(image.content) if to == image.scratch else to


def _words_of(numbers: Array) -> list[int]:
    return [*struct.unpack(f"<{numbers.size}q", numbers.tobytes())]


def _words_constant(name: str, words: Any) -> str:
    values = [f"i64 {w}" for w in words] or ["i64 0"]
    return f"@{name} = internal constant [{len(values)} x i64] [{', '.join(values)}], align 8"


def _integers(name: str, numbers: Sequence[int]) -> str:
    values = [f"i32 {x}" for x in numbers] or ["i32 0"]
    return f"@{name} = internal constant [{len(values)} x i32] [{', '.join(values)}]"


def text_bytes(texts: Sequence[str]) -> int:
    """Return the length of each row of an array of texts, with their ends."""
    return max((len(x.encode()) for x in texts), default=0) + 1


def _words_of_status(exported: StandaloneLoop) -> list[str]:
    return [*(s.words for s in (*STATUS_OF_ALL, *exported.status)), UNKNOWN]


def _texts(name: str, texts: Sequence[str], linkage: str = "internal") -> str:
    """Return an array of texts of equal length: unlike pointers, it needs no relocation."""
    size = text_bytes(texts)
    rows = ", ".join(f"[{size} x i8] {_escaped(x, size)}" for x in texts)
    kind = "" if linkage == "external" else f"{linkage} "
    return f"@{name} = {kind}constant [{len(texts)} x [{size} x i8]] [{rows}]"


def _text(text: str) -> str:
    size = len(text.encode()) + 1
    return f"[{size} x i8] {_escaped(text, size)}"


def _escaped(text: str, size: int) -> str:
    return 'c"' + "".join(f"\\{b:02X}" for b in text.encode().ljust(size, b"\0")) + '"'


# functions for callers


def _entry(result: str, name: str, arguments: Sequence[str]) -> Function:
    return Function(result, name, arguments, linkage="external", attributes="nounwind")


def _reset(name: str, image: Image, names: dict[tuple[int, bool], str]) -> Function:
    """Return `int NAME_reset(void *workspace)`."""
    f = _entry("i32", f"{name}_reset", ["ptr %workspace"])
    f.return_if(f.equal("%workspace", "null", "ptr"), "i32", str(NOT_READY))
    base = f.aligned("%workspace")
    with f.loop(len(image.content) // 8) as i:
        f.store("i64", 0, base, i)
    for table, copies, source in (
        ("@image.constants", image.packed.constants, "@image.words"),
        ("@image.repeats", image.packed.repeats, base),
    ):
        with f.loop(len(copies)) as k:
            to, first, count = (_loaded32(f, table, f.add(f.mul(k, 3), j)) for j in range(3))
            with f.loop(count) as i:
                f.store("i64", f.load("i64", source, f.add(first, i)), base, f.add(to, i))
    number = f.cast("ptrtoint", "ptr", base, "i64")
    with f.loop(len(image.pointers)) as k:
        at, target = (_loaded32(f, "@image.pointers", f.add(f.mul(k, 2), j)) for j in range(2))
        f.store("i64", f.add(number, target), f.at("i8", base, at))
    for place, code in image.codes.items():
        symbol = "@call.batch" if code.function is None else f"@{names[_key(code)]}"
        f.store("i64", f.cast("ptrtoint", "ptr", symbol, "i64"), f.at("i8", base, place))
    f.store("i64", MARK, base)
    f.ret("i32", "0")
    return f


def _loaded32(f: Function, array: str, index: str) -> str:
    return f.cast("zext", "i32", f.load("i32", array, index), "i64")


def _tick(name: str, exported: StandaloneLoop, image: Image) -> Function:
    """Return `int NAME_tick(void *workspace, const NAME_input *input, NAME_output *output)`."""
    f = _entry("i32", f"{name}_tick", ["ptr %workspace", "ptr %input", "ptr %output"])
    f.return_if(f.equal("%workspace", "null", "ptr"), "i32", str(NOT_READY))
    base = f.aligned("%workspace")
    f.return_if(f.negation(f.equal(f.load("i64", base), MARK)), "i32", str(NOT_READY))
    given = [*_places("%input", exported.inputs, f)]
    for port, source in given:
        _check(f, port, source)
    for port, source in given:
        _move(f, port, f.at("i8", base, image.place(port.array)), source, inward=True)
    number = f.cast("ptrtoint", "ptr", base, "i64")
    words = [f"i64 {f.add(number, at)}" for at in image.tables] + [f"i64 {x}" for x in exported.numbers]
    status = f.call("i64", "@loop", *words)
    valid, after = f.fresh("valid"), f.fresh("after")
    f.line(f"switch i64 {status}, label %{after} [ {' '.join(f'i64 {x}, label %{valid}' for x in exported.valid)} ]")
    f.label(valid)
    for port, to in _places("%output", exported.outputs, f):
        _move(f, port, f.at("i8", base, image.place(port.array)), to, inward=False)
    f.jump(after)
    f.label(after)
    f.ret("i32", f.cast("trunc", "i64", status, "i32"))
    f.label("refused")
    f.ret("i32", str(BAD_INPUT))
    return f


def _places(record: str, ports: Sequence[Port], f: Function) -> Iterator[tuple[Port, str]]:
    """Yield ports and their places in a record."""
    at = 0
    for port in ports:
        yield port, f.at("i64", record, at)
        at += port.defaults.size


def _check(f: Function, port: Port, source: str) -> None:
    """Refuse numbers that are not allowed."""
    if port.whole or port.allowed == ANY:
        return
    with f.loop(port.defaults.size) as i:
        x = f.load("double", source, i)
        test = f"fcmp oeq double {f.value(f'fsub double {x}, {x}')}, {REAL.constant(0.0)}"
        if port.allowed == POSITIVE:
            test = f"fcmp ogt double {x}, {REAL.constant(0.0)}"
        f.require(f.value(test), "refused")


def _move(f: Function, port: Port, inner: str, outer: str, inward: bool) -> None:
    """Copy numbers between an array of the tables and a record."""
    kind = {"f": "double", "i": "i64", "b": "i8"}[port.array.dtype.kind]

    def copy(i: str | int, j: str | int) -> None:
        if inward:
            x = f.load("double" if kind == "double" else "i64", outer, j)
            x = f.cast("zext", "i1", f.value(f"icmp ne i64 {x}, 0"), "i8") if kind == "i8" else x
            f.store(kind, x, inner, i)
        else:
            x = f.load(kind, inner, i)
            x = f.cast("zext", "i8", x, "i64") if kind == "i8" else x
            f.store("double" if kind == "double" else "i64", x, outer, j)

    if port.picked is None:
        with f.loop(port.array.size) as i:
            copy(i, i)
        return
    table, runs = f.fresh("picked"), _runs(port.picked)
    f.declarations[_integers(table, [*chain.from_iterable(runs)])] = None
    with f.loop(len(runs)) as k:
        inside, outside, count = (_loaded32(f, f"@{table}", f.add(f.mul(k, 3), j)) for j in range(3))
        with f.loop(count) as i:
            copy(f.add(inside, i), f.add(outside, i))


def _runs(picked: Sequence[int]) -> list[Copy]:
    """Return the numbers that are picked, those next to each other together."""
    runs: list[Copy] = []
    for inside, outside in enumerate(picked):
        if outside >= 0:
            last = runs[-1] if runs else Copy(-1, -1, 0)
            if (inside, outside) == (last.to + last.size, last.source + last.size):
                runs[-1] = last._replace(size=last.size + 1)
            else:
                runs.append(Copy(inside, outside, 1))
    return runs


def _defaults(name: str, exported: StandaloneLoop) -> Function:
    """Return `void NAME_defaults(NAME_input *input)`."""
    f = _entry("void", f"{name}_defaults", ["ptr %input"])
    with f.loop(sum(port.defaults.size for port in exported.inputs)) as i:
        f.store("i64", f.load("i64", "@input.defaults", i), "%input", i)
    f.ret()
    return f


def _words(name: str, exported: StandaloneLoop) -> Function:
    """Return `const char *NAME_status_words(int status)`."""
    f = _entry("ptr", f"{name}_status_words", ["i32 %status"])
    numbers = [s.number for s in (*STATUS_OF_ALL, *exported.status)]
    size = text_bytes(_words_of_status(exported))
    ways = [f.fresh("way") for _ in numbers]
    f.line(
        f"switch i32 %status, label %other [ {' '.join(f'i32 {n}, label %{w}' for n, w in zip(numbers, ways, strict=True))} ]"
    )
    for k, way in enumerate((*ways, "other")):
        f.label(way)
        f.ret("ptr", f.at("i8", "@status.words", k * size))
    return f


def _version(name: str) -> Function:
    f = _entry("ptr", f"{name}_version", [])
    f.ret("ptr", "@version")
    return f


def _workspace_bytes(name: str, size: int) -> Function:
    f = _entry("i32", f"{name}_workspace_bytes", [])
    f.ret("i32", str(size))
    return f
