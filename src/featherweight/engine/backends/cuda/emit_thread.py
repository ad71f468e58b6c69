"""Straight-line LLVM IR of a trace for one state a thread, with values in registers as far as there are any.

The operations are those of the other back end in the same order of rounding: a state gives the same bits on a device as on
this machine. Where values do not fit the registers, they may go to the thread's own memory by the rule that `Registers`
follows: in forward dynamics the device's assembler makes two to three times the traffic by itself, in other functions less.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...trace import Trace
from ..llvm.emit import Emitter, Kernel
from ..llvm.ir import Function, Type
from .target import OWN

REGISTERS = {"float": 240, "double": 112}  # of 255 words: the assembler wants some for addresses and calls
INLINED, OUTLINED = "#0", "#1"  # functions that become part of their callers, and those that do not
SHORT = ", !llvm.loop !0"  # of loops that assemblers shall not unroll
ATTRIBUTES = f"""attributes {INLINED} = {{ alwaysinline nounwind }}
attributes {OUTLINED} = {{ noinline nounwind }}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.unroll.disable"}}"""
PART = 20_000  # nodes of a function: the assembler's time grows faster than linearly


def emit_thread(
    t: Trace, type: Type, sizes: Sequence[int], spaces: Sequence[int], keeps: bool, name: str = "fw.kernel", fma: bool = True
) -> Kernel:
    """The IR of a whole trace for results of these sizes, one after the other.

    `spaces` say in which memory each argument and each result of the state lies. With `keeps`, registers are left to the
    assembler; without, values go where `Registers` puts them. The workspace is in the thread's own memory. Without `fma`
    nothing is fused, as NumPy rounds.
    """
    emitter = _ThreadEmitter(t, type, sizes, spaces, keeps, fma)
    emitter.name = name
    return emitter.kernel()


class _ThreadEmitter(Emitter):
    freestanding = True

    def __init__(self, t: Trace, type: Type, sizes: Sequence[int], spaces: Sequence[int], keeps: bool, fma: bool) -> None:
        bases = [f"%in{k}" for k in range(len(t.inputs))] + [f"%out{k}" for k in range(len(sizes))]
        self.spaces = dict(zip(bases, spaces, strict=True))
        super().__init__(t, type, fma, sizes, 1)
        self.registers = 10**9 if keeps else REGISTERS[type.precision]
        self.first_room = self.workspace

    def _ordered(self, nodes: Sequence[int]) -> list[int]:
        """As they were traced: values live for the shortest time then, and other threads fill the waits."""
        return list(nodes)

    def _part_size(self) -> int:
        return PART

    def _new_function(self, part: str) -> Function:
        """Part of the kernel's own code, unless the trace was cut."""
        attributes = OUTLINED if self.parts > 1 and part.isdecimal() else INLINED
        return Function("void", f"{self.name}.{part}", self.arguments, "internal", attributes)

    def _space(self, base: str) -> int:
        return self.spaces.get(base, OWN)

    def _room(self, type: Type) -> str:
        """Behind the slots of the workspace; functions share it, since what lies there is used in one."""
        place = self.first_room + len(self.rooms) + sum(map(len, self.free_rooms.values()))
        self.workspace = max(self.workspace, place + 1)
        return self.f.at(type.ir, "%ws", place, OWN)
