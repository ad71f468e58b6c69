"""Readable C99 source of routines, for any compiler.

Long routines are cut into functions, which hand values on in the workspace, as the machine code's are. A product that goes into
one sum only is written as FW_MULADD, which may be the processor's own instruction.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence

from ..engine.backends.llvm.emit import Emitter
from ..engine.backends.llvm.ir import CACHE_LINE, Type
from ..engine.operations import ADD, CONSTANT, COS, DIV, INPUT, MUL, SIN, SQRT, SUB
from .c_names import check_distinct
from .c_sincos import c_number, sincos_source
from .export_targets import ITEM_BYTES
from .routine import Routine

PART = 500  # values of a function: compilers take longer and longer for more
SYMBOLS = {ADD: "+", SUB: "-", MUL: "*", DIV: "/"}

_MACROS = """\
#ifndef FW_MULADD /* a b + c: compilers may fuse it, or -D'FW_MULADD(a,b,c)=fma(a,b,c)' asks for it */
#define FW_MULADD(a, b, c) ((a) * (b) + (c))
#endif
"""
_SQRT = """\
#ifndef FW_SQRT /* compilers have an instruction for it; some call the library for numbers below zero: -fno-math-errno */
#include <math.h>
#define FW_SQRT(x) sqrt@F(x)
#endif
"""


def c_source(routines: Sequence[Routine], precision: str, header: str, title: str) -> tuple[str, dict[str, int]]:
    """The text of a source file, and the bytes of workspace that each routine needs. `title` is a comment."""
    written = [_Source(r, precision) for r in routines]
    bodies = {w.routine.name: w.bodies() for w in written}
    check_distinct({name: [name, *own] for name, own in bodies.items()})
    operations = {r.trace.graph.op[i] for r in routines for i in r.trace.live}
    suffix = "f" if precision == "float" else ""
    blocks = [f'{title}\n#include "{header}"\n\n#include <stdint.h>\n', _MACROS if any(w.fused for w in written) else ""]
    blocks.append(_SQRT.replace("@F", suffix) if SQRT in operations else "")
    blocks.append(sincos_source(precision) if operations & {SIN, COS} else "")
    blocks += [w.source(bodies[w.routine.name]) for w in written]
    return "\n".join(b for b in blocks if b), {w.routine.name: w.bytes for w in written}


class _Source(Emitter):
    """What a routine is written by: the emitter's plan of parts and workspace, in C."""

    def __init__(self, routine: Routine, precision: str) -> None:
        self.routine, self.precision = routine, precision
        super().__init__(routine.trace, Type(precision, 1), True, [y.size for y in routine.outputs], 1)
        names = routine.c_names
        self.names = dict(zip([f"%in{k}" for k in range(len(routine.inputs))], names, strict=False))
        self.names |= dict(zip([f"%out{k}" for k in range(len(routine.outputs))], names[len(routine.inputs) :], strict=True))
        self.names["%ws"] = "w"

    @property
    def bytes(self) -> int:
        return self.workspace * ITEM_BYTES[self.precision] + CACHE_LINE if self.workspace else 0

    def _ordered(self, nodes: Sequence[int]) -> list[int]:
        return list(nodes)  # along one limb at a time, which is easiest to read; compilers order instructions themselves

    def _part_size(self) -> int:
        return PART

    def bodies(self) -> dict[str, list[str]]:
        """Lines of the functions that it is made of, by their names; of those that do something."""
        bodies = {"turns": self._turns_body() if self.turns else []}
        bodies |= {f"part{k}": self._part_body(k) for k in range(self.parts)}
        bodies["rest"] = self._rest_body()
        return {f"{self.routine.name}_{title}": body for title, body in bodies.items() if body}

    def source(self, bodies: Mapping[str, Sequence[str]]) -> str:
        functions, calls = [], []
        for name, body in bodies.items():
            used = [n for n in self.names.values() if any(re.search(rf"\b{n}\[", line) for line in body)]
            arguments = ", ".join(self._declared(n) for n in used)
            functions.append(f"static void {name}({arguments})\n{{\n" + "\n".join(f"    {x}" for x in body) + "\n}\n")
            calls.append(f"{name}({', '.join(used)});")
        return "\n".join([*functions, self._entry(calls)])

    def _declared(self, name: str) -> str:
        constant = "const " if name in self.routine.c_names[: len(self.routine.inputs)] else ""
        return f"{constant}{self.precision} *restrict {name}"

    def _entry(self, calls: Sequence[str]) -> str:
        name = self.routine.name
        declared = ", ".join([*map(self._declared, self.routine.c_names), "void *workspace"])
        lines = [f"int {name}({declared.replace('restrict ', '')})", "{"]
        if self.workspace:
            round_up = f"((uintptr_t)workspace + {CACHE_LINE - 1}u) & ~(uintptr_t){CACHE_LINE - 1}u"
            lines += [f"    {self.precision} *w = ({self.precision} *)({round_up});", "", "    if (!workspace) {"]
            lines += ["        return 1;", "    }"]
        else:
            lines.append("    (void)workspace;")
        used = {n for call in calls for n in re.findall(r"\w+", call.partition("(")[2])}
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

    # bodies

    def _turns_body(self) -> list[str]:
        lines = []
        self.here: set[int] = set()
        for angle in self.turns:
            if self.graph.op[angle] != INPUT:
                lines.append(self._statement(angle))
                self.here.add(angle)
            sine, cosine = self.turn_slot[SIN, angle], self.turn_slot[COS, angle]
            lines.append(f"fw_sincos({self._name(angle)}, &w[{sine}], &w[{cosine}]);")
        return lines

    def _part_body(self, part: int) -> list[str]:
        lines: list[str] = []
        self.here = set()
        self.angles: set[int] = set()
        for i in self.nodes[part * self.part : (part + 1) * self.part]:
            lines += self._lines(i)
            self.here.add(i)
            if i in self.slot:
                lines.append(f"w[{self.slot[i]}] = {self._name(i)};")
            lines += self._results(i)
        return lines

    def _rest_body(self) -> list[str]:
        """Results that are arguments handed on, sines of them, or constants."""
        self.here = set()
        lines = [line for i in list(self.outputs) if not self._is_written(i) for line in self._results(i)]
        for k, x in enumerate(self.trace.outputs):
            if not isinstance(x, tuple):
                lines.append(f"{self._place(k)} = {self._literal(x)};")
        return lines

    def _is_written(self, i: int) -> bool:
        return i in self.part_of

    def _results(self, i: int) -> list[str]:
        return [f"{self._place(k)} = {'-' * negative}{self._name(i)};" for k, negative in self.outputs.get(i, ())]

    def _place(self, k: int) -> str:
        array = max(a for a, first in enumerate(self.first) if first <= k)
        return f"{self.names[f'%out{array}']}[{k - self.first[array]}]"

    # values

    def _lines(self, i: int) -> list[str]:
        if self.graph.op[i] not in (SIN, COS):
            return [self._statement(i)]
        angle = self.graph.operands(i)[0]
        lines = []
        if angle not in self.angles:
            self.angles.add(angle)
            lines.append(f"{self.precision} s{angle}, c{angle};")
            lines.append(f"fw_sincos({self._name(angle)}, &s{angle}, &c{angle});")
        return lines

    def _statement(self, i: int) -> str:
        return f"const {self.precision} t{i} = {self._expression(i)};"

    def _expression(self, i: int) -> str:
        g = self.graph
        op, operands = g.op[i], g.operands(i)
        if i in self.fused:
            return self._sum_with_product(i)
        if op == SQRT:
            return f"FW_SQRT({self._name(operands[0])})"
        return f" {SYMBOLS[op]} ".join(map(self._name, operands))

    def _sum_with_product(self, i: int) -> str:
        g, product = self.graph, self.fused[i]
        x, y = map(self._name, g.operands(product))
        a, b = g.operands(i)
        if g.op[i] == ADD:
            return f"FW_MULADD({x}, {y}, {self._name(b if product == a else a)})"
        if product == a:
            return f"FW_MULADD({x}, {y}, -{self._name(b)})"
        return f"FW_MULADD(-{x}, {y}, {self._name(a)})"

    def _name(self, i: int) -> str:
        g = self.graph
        op = g.op[i]
        if op == CONSTANT:
            return self._literal(g.a[i])
        if op == INPUT:
            return f"{self.names[f'%in{int(g.a[i])}']}[{g.b[i]}]"
        if op in (SIN, COS) and (op, g.operands(i)[0]) in self.turn_slot:
            return f"w[{self.turn_slot[op, g.operands(i)[0]]}]"
        if i not in self.here:
            return f"w[{self.slot[i]}]"
        return f"{'s' if op == SIN else 'c'}{g.operands(i)[0]}" if op in (SIN, COS) else f"t{i}"

    def _literal(self, x: float) -> str:
        if not math.isfinite(x):
            raise ValueError(f"{self.routine.name}: C has no number {x}, which the function has as a constant")
        if self.precision == "float":
            x = struct.unpack("f", struct.pack("f", x))[0]
        return c_number(x, self.precision)
