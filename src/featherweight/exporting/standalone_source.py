"""C99 source of a standalone kernel: its functions, the functions that it calls, its constants, and its interface.

The workspace is a struct of the tables, and of arrays of numbers to which they point. Addresses are whole numbers where a
kernel computes with them, in calls of functions: `call_function` gets the number of a function and the addresses of its arrays.
"""

from __future__ import annotations

import ctypes
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..engine.backends.llvm.ir import CACHE_LINE
from ..engine.loops.kernel_tables import Layout, LayoutList, Table, arrays_of
from ..engine.loops.kernel_types import BOOL, FLOAT, INT, ArrayType, Number, TableType
from ..engine.loops.machine_calls import MachineCall
from ..engine.loops.memory_spans import MemorySpans
from ..engine.loops.prepared_calls import BatchCalls
from ..engine.loops.standalone import ANY, POSITIVE, Port, StandaloneLoop
from ..version import __version__
from .c_library import INCLUDES, MULADD, library_for
from .c_source import RoutineSource
from .header import comment, folded
from .loop_source import ITEMS, CNames, distinct, length_names, literal, loop_source, used_fields
from .routine import Routine
from .standalone_code import BAD_INPUT, NOT_READY, STATUS_OF_ALL, UNKNOWN
from .standalone_header import named
from .standalone_image import LINE, arrays_in, function_of, functions_of, whole_array

GROUPS = {"float64": ("numbers", FLOAT), "int64": ("integers", INT), "bool": ("flags", BOOL)}  # members of the workspace
GAP = 8  # zeros that are stored with their neighbours
OWN = {
    "addresses", "call_for_states", "call_function", "first", "function", "input", "integers_at", "numbers_at", "output",
    "space", "state", "states", "status", "step", "words", "workspace", "Workspace", "workspace_fits",
}  # names in functions of this file  # fmt: skip
FOR_STATES = -1  # number of the function that calls functions for several states
FEW = 2  # numbers that are written one by one

_CALLS = """\
static double *numbers_at(int64_t address)
{
    return (double *)(intptr_t)address;
}
"""
_BATCHES = """\
static const int64_t *integers_at(int64_t address)
{
    return (const int64_t *)(intptr_t)address;
}
"""


class StandaloneSource(NamedTuple):
    """The text of a source file, and the bytes of the workspace."""

    text: str
    workspace: int


class _Function(NamedTuple):
    """A function that the kernel calls: its number, its name in C, the number of its arrays, and whether for many states."""

    number: int
    name: str
    arrays: int
    many: bool


class _Memory:
    """The arrays of a workspace, by their types."""

    def __init__(self, exported: StandaloneLoop) -> None:
        own = [a for content in exported.tables for a in arrays_of(content)]
        self._arrays = [*own, *map(whole_array, arrays_in(exported.kept))]
        self.kinds = [*dict.fromkeys(a.dtype.name for a in self._arrays if a.nbytes)]
        self._spans = {kind: self._spans_of(kind, exported) for kind in self.kinds}
        self._more = 0
        self._kept: list[tuple[int, Array]] = []
        for a in self._arrays:
            if a.nbytes:
                self.find(a.ctypes.data)  # raises for memory with two types

    def _spans_of(self, kind: str, exported: StandaloneLoop) -> MemorySpans:
        overlaid = [[[a for a in group if a.dtype.name == kind] for group in groups] for groups in exported.overlaid]
        return MemorySpans([a for a in self._arrays if a.dtype.name == kind], LINE, overlaid)

    def find(self, address: int) -> tuple[str, int]:
        """Return the type of the array at an address, and the first element."""
        found = [(kind, place) for kind, spans in self._spans.items() if (place := spans.place(address)) is not None]
        if len(found) != 1:
            raise LookupError("export: an address is not in arrays of one type")
        [(kind, place)] = found
        return kind, place // np.dtype(kind).itemsize

    def place(self, array: Array) -> str:
        """Return the expression of an array's first address in the workspace."""
        return self.at(array.ctypes.data) if array.size else self.member(array.dtype.name)

    def at(self, address: int) -> str:
        kind, place = self.find(address)
        return f"{self.member(kind)} + {place}"

    def member(self, kind: str) -> str:
        return f"space->{GROUPS[kind][0] if kind in GROUPS else kind + '_numbers'}"

    def new_integers(self, numbers: Sequence[int]) -> str:
        """Return the expression of the address of further whole numbers."""
        begin = self._size("int64") + self._more
        self._more += len(numbers)
        self._kept.append((begin, np.array(numbers, np.int64)))
        return f"{self.member('int64')} + {begin}"

    def _size(self, kind: str) -> int:
        return self._spans[kind].size // np.dtype(kind).itemsize if kind in self._spans else 0

    def sizes(self) -> dict[str, int]:
        """Return the numbers of elements, by type."""
        kinds = dict.fromkeys([*GROUPS, *self.kinds])
        return {kind: max(1, self._size(kind) + (self._more if kind == "int64" else 0)) for kind in kinds}

    def content(self, kind: str, stale: Sequence[Array]) -> Array:
        """Return all elements of a type; `stale` arrays of addresses are zeros."""
        memory = np.zeros(self.sizes()[kind], kind)
        if kind in self._spans:
            self._spans[kind].put(memory.view(np.uint8))
        for array in stale:
            if array.size and array.dtype == kind:
                _, begin = self.find(array.ctypes.data)
                memory[begin : begin + array.size] = 0
        for begin, numbers in self._kept if kind == "int64" else ():
            memory[begin : begin + len(numbers)] = numbers
        return memory


def standalone_source(name: str, title: str, exported: StandaloneLoop) -> StandaloneSource:
    """Return the source of a kernel whose functions begin with a name.

    Raises NotImplementedError for a kernel that calls functions in Python.
    """
    return _Writer(name, exported).written(title)


class _Writer:
    """Writer of one source file."""

    def __init__(self, name: str, exported: StandaloneLoop) -> None:
        self.name, self.exported = name, exported
        tables = [Table(content) for content in exported.tables]
        self.layouts = [t.layout for t in tables]
        self.plan = exported.loop.plan(self.layouts)
        self.names = CNames(_interface(name, exported), frozenset(OWN), used_fields(self.plan))
        self.memory = _Memory(exported)
        self.functions: dict[tuple[int, bool], _Function] = {}
        self.straight: list[str] = []  # their texts
        self.scratch = 0
        self.stale: list[Array] = []
        self.assigned: list[str] = []  # statements that write tables and addresses

    def written(self, title: str) -> StandaloneSource:
        members = self._members()
        for member, layout, content in zip(members, self.layouts, self.exported.tables, strict=True):
            self._table(f"space->{member}", layout, content)
        loop = loop_source(self.plan, self.names)
        workspace = self._workspace(members)
        constants, copies = self._constants()
        parts = [*self._functions_for_callers(loop.kernel, members, copies)]
        body = "\n".join([*self.straight, *self._calls(), loop.text, *constants, *parts])
        types = "\n".join([*self.names.definitions, *workspace])
        texts = [title, f'#include "{self.name}.h"\n', INCLUDES, MULADD, types, library_for(body), body]
        return StandaloneSource("\n".join(texts), self._bytes())

    def _members(self) -> list[str]:
        """Return the names of the tables in the workspace."""
        found: list[str] = []
        for v in self.plan.functions[-1].parameters[: len(self.layouts)]:
            found.append(distinct(v.name, found))
        return found

    def _bytes(self) -> int:
        sizes = [np.dtype(kind).itemsize * size for kind, size in self.memory.sizes().items()]
        tables = sum(8 * x.words + 8 for x in self.layouts)
        return 8 + tables + sum(-(-n // 8) * 8 for n in sizes) + 8 * max(1, self.scratch) + CACHE_LINE

    def _workspace(self, members: Sequence[str]) -> Iterator[str]:
        """Yield the struct of the workspace, and a check of its size."""
        lines = ["typedef struct {", "    int64_t ready;"]
        for member, layout in zip(members, self.layouts, strict=True):
            lines.append(f"    {self.names.table(TableType(layout))} {member};")
        for kind, size in self.memory.sizes().items():
            lines.append(f"    {ITEMS[kind]} {self.memory.member(kind).removeprefix('space->')}[{size}];")
        lines.append(f"    double scratch[{max(1, self.scratch)}]; /* of the functions that the kernel calls */")
        yield "\n".join([*lines, "} Workspace;", ""])
        fits = f"sizeof(Workspace) + {CACHE_LINE} <= {self.name.upper()}_WORKSPACE_BYTES"
        yield f"typedef char workspace_fits[{fits} ? 1 : -1];\n"

    # tables

    def _table(self, path: str, layout: Layout, content: Any) -> None:
        """Write the fields of a table, and the functions that it calls."""
        there = dict(zip(layout.kind._fields, content, strict=True))  # type: ignore[attr-defined]
        for field, inner, _ in self.names.fields(TableType(layout)):
            member, x = f"{path}.{distinct(field, ())}", there[field]
            if isinstance(inner, Layout):
                if isinstance(x, MachineCall):
                    self._machine_call(member, x)
                elif isinstance(x, BatchCalls):
                    self._batch_calls(member, inner, x)
                else:
                    self._table(member, inner, x)
            elif isinstance(inner, LayoutList):
                for k, table in enumerate(x):
                    self._table(f"{member}[{k}]", inner.each, table)
            elif isinstance(inner, tuple):
                self._array(member, x, self.memory.place(x))
            else:
                self.assigned.append(f"{member} = {literal(Number(inner), x).text};")

    def _array(self, member: str, array: Array, at: str) -> None:
        for part, value in zip(("at", *length_names(array.ndim)), (at, *map(str, array.shape)), strict=True):
            self.assigned.append(f"{member}.{part} = {value};")
        self.names.array(ArrayType(array.dtype.name, array.ndim))

    def _address(self, into: str, at: str) -> None:
        self.assigned.append(f"{into} = (int64_t)(intptr_t)({at});")

    def _machine_call(self, member: str, call: MachineCall) -> None:
        self.stale.append(call.pointers)
        if call.address == 0:
            self._array(f"{member}.pointers", call.pointers, self.memory.place(call.pointers))
            self.assigned.append(f"{member}.address = 0;")
            return
        function = function_of(call)
        sizes = [x.size for x in (*function.program.inputs, *function.program.outputs)]
        at = self.memory.new_integers([0] * (len(sizes) + 1))
        self.assigned.append(f"{member}.address = {self._function(function, False).number}; {comment([_title(function)])}")
        self._array(f"{member}.pointers", call.pointers, at)
        for k, (address, size) in enumerate(zip(call.pointers.tolist(), sizes, strict=True)):
            self._address(f"{member}.pointers.at[{k}]", self.memory.at(address) if size else self.memory.member("float64"))
        self._address(f"{member}.pointers.at[{len(sizes)}]", "space->scratch")

    def _batch_calls(self, member: str, layout: Layout, calls: BatchCalls) -> None:
        self.stale += [calls.words, calls.first, calls.begins]
        self._table(member, layout, calls._replace(caller=FOR_STATES))
        functions = functions_of(calls)
        for k, function in enumerate(functions):
            shapes = function.program.shapes
            count = sum(1 + len(shape) for shape in shapes)
            steps = [*(ctypes.c_int64 * count).from_address(int(calls.words[k, 3]))]
            _check_contiguous(function, shapes, steps)
            words = f"{member}.words.at[{k * calls.words.shape[1]}"
            self.assigned.append(f"{words}] = {self._function(function, True).number}; {comment([_title(function)])}")
            self._address(f"{words} + 1]", self.memory.at(int(calls.words[k, 1])))
            self._address(f"{words} + 2]", self.memory.at(int(calls.words[k, 2])))
            self._address(f"{words} + 3]", self.memory.new_integers(steps[: len(shapes)]))
            self._address(f"{words} + 4]", "space->scratch")
            for j, shape in enumerate(shapes):
                at = self.memory.at(int(calls.first[k, j])) if math.prod(shape) else self.memory.member("float64")
                self._address(f"{member}.first.at[{k * calls.first.shape[1] + j}]", at)

    # functions that the kernel calls

    def _function(self, function: Any, many: bool) -> _Function:
        key = id(function), many
        if key not in self.functions:
            same = self.functions.get((id(function), not many))
            arrays = len(function.program.inputs) + len(function.program.outputs)
            made = same.name if same else self._straight(function)
            self.functions[key] = _Function(len(self.functions) + 1, made, arrays, many)
        return self.functions[key]

    def _straight(self, function: Any) -> str:
        """Write a function of one state; return its name."""
        program = function.program
        routine = Routine(
            self.names.new(program.name), program.inputs, program.outputs, function.trace, program.in_lanes, program.doc
        )
        source = RoutineSource(routine, "double", own=True)
        self.straight.append(source.static(_title(function)))
        self.scratch = max(self.scratch, source.plan.workspace)
        return routine.name

    def _calls(self) -> Iterator[str]:
        """Yield the function that calls functions by number."""
        if not self.functions:
            return
        yield _CALLS
        many = [f for f in self.functions.values() if f.many]
        lines = ["/* Call a function by its number, with the addresses of its arrays and of its memory. */"]
        if many:
            yield _BATCHES
            yield self._batches(many)
        lines += ["static void call_function(int64_t function, const int64_t *addresses)", "{", "    switch (function) {"]
        for f in self.functions.values():
            if not f.many:
                given = ", ".join(f"numbers_at(addresses[{k}])" for k in range(f.arrays + 1))
                lines += [f"    case {f.number}:", folded(f"        {f.name}({given});"), "        break;"]
        if many:
            lines += [f"    case {FOR_STATES}:", "        call_for_states(addresses);", "        break;"]
        yield "\n".join([*lines, "    default:", "        break;", "    }", "}", ""])

    def _batches(self, many: Sequence[_Function]) -> str:
        lines = [
            "/* Call a function for several states. The words are its number, and the addresses of the first state's arrays,",
            " * of the number of states, of the distances in bytes to the next state's arrays, and of its memory. */",
            "static void call_for_states(const int64_t *words)",
            "{",
            "    const int64_t *first = integers_at(words[1]), *step = integers_at(words[3]), states = *integers_at(words[2]);",
            "",
            "    for (int64_t state = 0; state < states; state++) {",
            "        switch (words[0]) {",
        ]
        for f in many:
            given = ", ".join(f"numbers_at(first[{j}] + state * step[{j}])" for j in range(f.arrays))
            call = folded(f"            {f.name}({given}, numbers_at(words[4]));")
            lines += [f"        case {f.number}:", call, "            break;"]
        return "\n".join([*lines, "        default:", "            break;", "        }", "    }", "}", ""])

    # constants

    def _constants(self) -> tuple[list[str], list[str]]:
        """Return arrays of constants, and the statements that copy them to the workspace."""
        texts, copies = [], []
        names: dict[tuple[str, bytes], str] = {}  # of constants, which several arrays may share
        for kind in self.memory.kinds:
            begins = self._begins(kind)
            content = self.memory.content(kind, self.stale)
            member, type = self.memory.member(kind), GROUPS[kind][1] if kind in GROUPS else (FLOAT if "float" in kind else INT)
            for begin, end in _runs(content, [*begins]):
                part, size = content[begin:end], end - begin
                if size <= FEW:
                    copies += [f"{member}[{begin + k}] = {literal(type, x).text};" for k, x in enumerate(part.tolist())]
                    continue
                key = kind, part.tobytes()
                if key not in names:
                    owner = max((x for x in begins if x <= begin), default=None)
                    names[key] = self.names.new(begins[owner] if owner is not None else "memory")
                    values = [literal(type, x).text for x in part.tolist()]
                    texts.append(_array_of_numbers(f"static const {ITEMS[kind]} {names[key]}[{size}]", values))
                place = f"{begin} + k" if begin else "k"
                copies += [f"for (int k = 0; k < {size}; k++) {{", f"    {member}[{place}] = {names[key]}[k];", "}"]
        return texts, copies

    def _begins(self, kind: str) -> dict[int, str]:
        """Return the names of arrays of a type, by their places."""
        found: dict[int, str] = {}
        for member, layout, content in zip(self._members(), self.layouts, self.exported.tables, strict=True):
            for (name, _, _), array in zip(layout.arrays(), arrays_of(content), strict=True):
                if array.dtype == kind and array.size:
                    found.setdefault(self.memory.find(array.ctypes.data)[1], f"{member}_{name.replace('.', '_')}")
        return dict(sorted(found.items()))

    # functions for callers

    def _functions_for_callers(self, kernel: str, members: Sequence[str], copies: Sequence[str]) -> Iterator[str]:
        exported, name = self.exported, self.name
        for key, names in exported.names.items():
            if names:
                yield _array_of_texts(f"const char {name}_{key}", names)
        for key, numbers in exported.constants.items():
            if numbers.size:
                shape = "".join(f"[{n}]" for n in numbers.shape)
                yield f"const double {name}_{key}{shape} = {_nested(numbers)};\n"
        lines = [f"int {name}_reset(void *workspace)", "{", *_begin_workspace()]
        for kind in self.memory.sizes():
            zero = {FLOAT: "0.0", BOOL: "false"}.get(GROUPS[kind][1] if kind in GROUPS else INT, "0")
            size = self.memory.sizes()[kind]
            lines += [f"    for (int k = 0; k < {size}; k++) {{", f"        {self.memory.member(kind)}[k] = {zero};", "    }"]
        lines += [f"    {x}" for x in (*copies, *self.assigned, "space->ready = 1;", "return 0;")]
        yield "\n".join([*lines, "}", ""])
        yield self._tick(kernel, members)
        yield self._defaults()
        cases = [(s.number, s.words) for s in (*STATUS_OF_ALL, *exported.status)]
        lines = [f"const char *{name}_status_words(int status)", "{", "    switch (status) {"]
        for number, words in cases:
            lines += [f"    case {number}:", f"        return {_quoted(words)};"]
        yield "\n".join([*lines, "    default:", f"        return {_quoted(UNKNOWN)};", "    }", "}", ""])
        yield f"const char *{name}_version(void)\n{{\n    return {_quoted(__version__)};\n}}\n"
        yield f"int {name}_workspace_bytes(void)\n{{\n    return {name.upper()}_WORKSPACE_BYTES;\n}}\n"

    def _tick(self, kernel: str, members: Sequence[str]) -> str:
        name, exported = self.name, self.exported
        head = f"int {name}_tick(void *workspace, const {name}_input *input, {name}_output *output)"
        lines = [head, "{", *_begin_workspace()]
        lines += ["    if (space->ready != 1) {", f"        return {NOT_READY};", "    }"]
        inputs, outputs = _named(exported.inputs), _named(exported.outputs)
        for port, member in inputs:
            if port.whole or port.allowed == ANY:
                continue
            x = f"input->{member}{'[k]' if port.outer else ''}"
            test = f"{x} > 0.0" if port.allowed == POSITIVE else f"fw_is_finite({x})"
            refused = [f"if (!({test})) {{", f"    return {BAD_INPUT};", "}"]
            if port.outer:
                refused = [f"for (int k = 0; k < {port.defaults.size}; k++) {{", *(f"    {x}" for x in refused), "}"]
            lines += [f"    {x}" for x in refused]
        for port, member in inputs:
            lines += [f"    {x}" for x in self._moved(port, f"input->{member}", inward=True)]
        given = [*(f"&space->{m}" for m in members), *map(str, exported.numbers)]
        lines.append(f"    const int64_t status = {kernel}({', '.join(given)});")
        lines.append(f"    if ({' || '.join(f'status == {x}' for x in exported.valid)}) {{")
        for port, member in outputs:
            lines += [f"        {x}" for x in self._moved(port, f"output->{member}", inward=False)]
        return "\n".join([*lines, "    }", "    return (int)status;", "}", ""])

    def _moved(self, port: Port, outer: str, inward: bool) -> Iterator[str]:
        """Yield statements that copy numbers between an array of the tables and a member of a record."""
        inner, element = self.memory.place(port.array), outer + ("[%s]" if port.outer else "")
        base, _, first = inner.partition(" + ")
        start = "" if first == "0" else f"{first} + "

        def copied(i: str, j: str) -> str:
            into, source = f"{base}[{i}]", element % j if port.outer else element
            if port.array.dtype == bool:
                return f"{into} = {source} != 0;" if inward else f"{source} = {into};"
            return f"{into} = {source};" if inward else f"{source} = {into};"

        if port.picked is None and port.outer:
            yield f"for (int k = 0; k < {port.array.size}; k++) {{"
            yield f"    {copied(start + 'k', 'k')}"
            yield "}"
            return
        places = (0,) * port.array.size if port.picked is None else port.picked
        straight = len(places) > FEW and all(x >= 0 for x in places)
        if straight and len({x - k for k, x in enumerate(places)}) == 1:
            yield f"for (int k = 0; k < {len(places)}; k++) {{"
            yield f"    {copied(start + 'k', f'{places[0]} + k' if places[0] else 'k')}"
            yield "}"
            return
        for k, place in enumerate(places):
            if place >= 0:
                yield copied(str(int(first) + k), str(place))

    def _defaults(self) -> str:
        lines = [f"void {self.name}_defaults({self.name}_input *input)", "{"]
        for port, member in _named(self.exported.inputs):
            numbers = port.defaults.reshape(-1)
            values = [literal(INT if port.whole else FLOAT, x).text for x in numbers.tolist()]
            if not port.outer:
                lines.append(f"    input->{member} = {values[0]};")
            elif len(set(values)) == 1:
                lines += [f"    for (int k = 0; k < {len(values)}; k++) {{"]
                lines += [f"        input->{member}[k] = {values[0]};", "    }"]
            else:
                lines += [f"    input->{member}[{k}] = {x};" for k, x in enumerate(values)]
        return "\n".join([*lines, "}", ""])


def _interface(name: str, exported: StandaloneLoop) -> set[str]:
    """Return names of the header that the source must not use otherwise."""
    functions = "reset", "defaults", "tick", "status_words", "version", "workspace_bytes", "input", "output"
    return {f"{name}_{x}" for x in (*functions, *exported.names, *exported.constants)}


def _named(ports: Sequence[Port]) -> list[tuple[Port, str]]:
    """Return ports with numbers, and their members in the record."""
    there = [p for p in ports if p.defaults.size]
    return [*zip(there, (x.name for x in named(ports)), strict=True)]


def _begin_workspace() -> list[str]:
    round_up = f"((uintptr_t)workspace + {CACHE_LINE - 1}u) & ~(uintptr_t){CACHE_LINE - 1}u"
    lines = [f"    Workspace *space = (Workspace *)({round_up});", ""]
    return [*lines, "    if (!workspace) {", f"        return {NOT_READY};", "    }"]


def _title(function: Any) -> str:
    return str(function.program.title)


def _check_contiguous(function: Any, shapes: Sequence[tuple[int, ...]], steps: Sequence[int]) -> None:
    """Raise NotImplementedError for arrays of which a state is not contiguous."""
    at = len(shapes)
    for shape in shapes:
        expected = 8
        for n, step in zip(reversed(shape), reversed(steps[at : at + len(shape)]), strict=True):
            if n > 1 and step != expected:
                raise NotImplementedError(f"export: {_title(function)} reads rows that are not contiguous; there is no source")
            expected *= n
        at += len(shape)


def _runs(content: Array, begins: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of elements that are not zero, with short gaps, each in one array."""
    bits = content.view(np.int64) if content.dtype.itemsize == 8 else content
    begin = end = -1
    for k in np.flatnonzero(bits).tolist():
        apart = begin >= 0 and (k - end > GAP or bisect_right(begins, k) != bisect_right(begins, begin))
        if apart:
            yield begin, end
        begin, end = (k if apart or begin < 0 else begin), k + 1
    if begin >= 0:
        yield begin, end


def _array_of_numbers(head: str, values: Sequence[str]) -> str:
    lines = [", ".join(values[k : k + 8]) for k in range(0, len(values), 8)]
    return f"{head} = {{\n    " + ",\n    ".join(lines) + "};\n"


def _array_of_texts(head: str, texts: Sequence[str]) -> str:
    size = max(len(x.encode()) for x in texts) + 1
    rows = ",\n    ".join(map(_quoted, texts))
    return f"{head}[{len(texts)}][{size}] = {{\n    {rows}}};\n"


def _nested(numbers: Any) -> str:
    if np.ndim(numbers) == 0:
        return literal(FLOAT, float(numbers)).text
    return "{" + ", ".join(map(_nested, numbers)) + "}"


def _quoted(text: str) -> str:
    """Return a string of C."""
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return '"' + "".join(plain) + '"'
