"""Readable C99 source of routines, for any compiler and its C library, which has sqrt, sin and cos.

Long routines are split into functions that pass values in the workspace, as in the machine code. A product that is used only in
one sum is written as FW_MULADD, which may map to a processor instruction.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

from ..engine.backends import straight_steps as steps
from ..engine.backends.llvm.ir import CACHE_LINE
from ..engine.backends.straight_plan import PlanOptions, PlanPart, plan_trace
from ..engine.backends.straight_steps import Operand
from ..engine.operations import ADD, COS, DIV, MUL, SIN, SQRT, SUB
from .c_names import check_distinct
from .export_targets import ITEM_BYTES
from .header import comment, folded
from .routine import Routine

PART = 500  # values in a function: compile times grow faster than linearly
SYMBOLS = {ADD: "+", SUB: "-", MUL: "*", DIV: "/"}

_MACROS = """\
#ifndef FW_MULADD /* a b + c: compilers may fuse it, or -D'FW_MULADD(a,b,c)=fma(a,b,c)' asks for it */
#define FW_MULADD(a, b, c) ((a) * (b) + (c))
#endif
"""


def c_source(routines: Sequence[Routine], precision: str, header: str, title: str) -> tuple[str, dict[str, int]]:
    """Return the text of a source file, and the bytes of workspace for each routine. `title` is a comment."""
    written = [RoutineSource(r, precision) for r in routines]
    functions = [w.functions() for w in written]
    check_distinct({r.name: [r.name, *(f.name for f in own)] for r, own in zip(routines, functions, strict=True)})
    operations = {r.trace.graph.op[i] for r in routines for i in r.trace.live}
    math_header = "#include <math.h>\n" if operations & {SQRT, SIN, COS} else ""
    blocks = [f'{title}\n#include "{header}"\n\n{math_header}#include <stdint.h>\n']
    blocks.append(_MACROS if any(w.fuses for w in written) else "")
    blocks += [w.source(own) for w, own in zip(written, functions, strict=True)]
    return "\n".join(b for b in blocks if b), {w.routine.name: w.bytes for w in written}


class _CFunction(NamedTuple):
    """Code of a part of a plan."""

    name: str
    arrays: list[str]  # its arguments
    lines: list[str]


class RoutineSource:
    """Writer of one routine; it turns the steps of a plan into statements of C.

    With `own`, the source has sine and cosine itself (`c_library`), and arguments and results may overlap.
    """

    def __init__(self, routine: Routine, precision: str, own: bool = False) -> None:
        self.routine, self.precision, self.own = routine, precision, own
        self.suffix = "f" if precision == "float" else ""  # of numbers, and of functions of the C library
        # Trace order follows one limb at a time, which is easiest to read; compilers reorder instructions themselves.
        self.plan = plan_trace(routine.trace, [y.size for y in routine.outputs], PlanOptions(True, PART, ordered=False))
        self.names = dict(zip(self.plan.arrays, [*routine.c_names, "w"], strict=True))
        self.fuses = any(type(step) is steps.FmaStep for part in self.plan.parts for step in part.steps)
        self.table: dict[Any, Callable[[Any], str]] = {
            steps.LoadStep: self._load,
            steps.StoreStep: lambda s: f"{self._at(s.array, s.element)} = {self._value(s.operand)};",
            steps.OperationStep: self._operation,
            steps.FmaStep: lambda s: self._defined(s.value, f"FW_MULADD({', '.join(map(self._value, (s.a, s.b, s.c)))})"),
            steps.NegateStep: self._negate,
            steps.SincosStep: self._sincos,
            steps.SincosGroupStep: self._sincos_of_input,
        }

    @property
    def bytes(self) -> int:
        return self.plan.workspace * ITEM_BYTES[self.precision] + CACHE_LINE if self.plan.workspace else 0

    def functions(self) -> list[_CFunction]:
        """Return the functions of the routine that have statements."""
        written = [self._function(part) for part in self.plan.parts]
        return [f for f in written if f.lines]

    def static(self, title: str) -> str:
        """Return the text of the routine as `static void NAME(arguments, results, workspace)`."""
        texts, calls, used = self._parts(self.functions())
        names = [*self.routine.c_names, "w"]
        head = f"static void {self.routine.name}({', '.join(map(self._declared, names))})"
        lines = [*(f"    (void){n};" for n in names if n not in used), *(f"    {call}" for call in calls)]
        return "\n".join([*texts, comment([title]), folded(head), "{", *lines, "}", ""])

    def source(self, functions: Sequence[_CFunction]) -> str:
        texts, calls, used = self._parts(functions)
        return "\n".join([*texts, self._entry(calls, used)])

    def _parts(self, functions: Sequence[_CFunction]) -> tuple[list[str], list[str], set[str]]:
        """Return the texts of functions, their calls, and the arrays that they use."""
        texts, calls = [], []
        for f in functions:
            arguments = ", ".join(self._declared(n) for n in f.arrays)
            texts.append(f"static void {f.name}({arguments})\n{{\n" + "\n".join(f"    {x}" for x in f.lines) + "\n}\n")
            calls.append(f"{f.name}({', '.join(f.arrays)});")
        return texts, calls, {n for f in functions for n in f.arrays}

    def _declared(self, name: str) -> str:
        constant = "const " if name in self.routine.c_names[: len(self.routine.inputs)] else ""
        return f"{constant}{self.precision} *{'' if self.own else 'restrict '}{name}"

    def _entry(self, calls: Sequence[str], used: Container[str]) -> str:
        name = self.routine.name
        declared = ", ".join([*map(self._declared, self.routine.c_names), "void *workspace"])
        lines = [f"int {name}({declared.replace('restrict ', '')})", "{"]
        if self.plan.workspace:
            round_up = f"((uintptr_t)workspace + {CACHE_LINE - 1}u) & ~(uintptr_t){CACHE_LINE - 1}u"
            lines += [f"    {self.precision} *w = ({self.precision} *)({round_up});", "", "    if (!workspace) {"]
            lines += ["        return 1;", "    }"]
        else:
            lines.append("    (void)workspace;")
        lines += [f"    (void){n};" for n in self.routine.c_names if n not in used]
        lines += [f"    {call}" for call in calls]
        lines += [
            "    return 0;",
            "}",
            "",
            f"int {name}_workspace_bytes(void)",
            "{",
            f"    return {name.upper()}_WORKSPACE_BYTES;",
            "}",
        ]
        return "\n".join(lines) + "\n"

    # statements

    def _function(self, part: PlanPart) -> _CFunction:
        self.values: dict[Operand, str] = {}  # expressions, by the numbers of values
        self.used: set[str] = set()  # arrays
        lines = [self.table[type(step)](step) for step in part.steps]
        title = f"{self.routine.name}_{'part' * part.numbered}{part.title}"
        return _CFunction(title, [name for array, name in self.names.items() if array in self.used], list(filter(None, lines)))

    def _load(self, s: steps.LoadStep) -> str:
        """Write no statement: memory is read where the value is used."""
        self.values[s.value] = self._at(s.array, s.element)
        return ""

    def _negate(self, s: steps.NegateStep) -> str:
        self.values[s.value] = f"-{self._value(s.operand)}"
        return ""

    def _sincos(self, s: steps.SincosStep) -> str:
        if self.own:
            names = f"s{s.angle}", f"c{s.angle}"
            return f"double {', '.join(names)};\n    fw_sincos({self._value(s.angle)}, &{names[0]}, &{names[1]});"
        sine, cosine = self._turned(s.angle)
        return f"const {self.precision} s{s.angle} = {sine}, c{s.angle} = {cosine};"

    def _sincos_of_input(self, s: steps.SincosGroupStep) -> str:
        if self.own:
            return f"fw_sincos({self._value(s.angles)}, &{self._at('ws', s.slot)}, &{self._at('ws', s.slot + 1)});"
        sine, cosine = self._turned(s.angles)
        return f"{self._at('ws', s.slot)} = {sine};\n    {self._at('ws', s.slot + 1)} = {cosine};"

    def _turned(self, angle: Operand) -> tuple[str, str]:
        return f"sin{self.suffix}({self._value(angle)})", f"cos{self.suffix}({self._value(angle)})"

    def _operation(self, s: steps.OperationStep) -> str:
        if s.op in (SIN, COS):
            self.values[s.value] = f"{'s' if s.op == SIN else 'c'}{s.operands[0]}"
            return ""
        operands = [self._value(x) for x in s.operands]
        root = f"sqrt{self.suffix}({operands[0]})"
        return self._defined(s.value, root if s.op == SQRT else f" {SYMBOLS[s.op]} ".join(operands))

    def _defined(self, value: int, expression: str) -> str:
        self.values[value] = f"t{value}"
        return f"const {self.precision} t{value} = {expression};"

    def _at(self, array: str, index: int) -> str:
        self.used.add(array)
        return f"{self.names[array]}[{index}]"

    def _value(self, x: Operand) -> str:
        return self._literal(x) if isinstance(x, float) else self.values[x]

    def _literal(self, x: float) -> str:
        if not math.isfinite(x):
            raise ValueError(f"{self.routine.name}: the function contains the constant {x}, which C cannot represent")
        if self.precision == "float":
            x = struct.unpack("f", struct.pack("f", x))[0]
        return f"{x!r}{self.suffix}"  # the shortest decimal number that is read as this one
