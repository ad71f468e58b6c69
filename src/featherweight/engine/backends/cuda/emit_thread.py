"""Straight-line LLVM IR of a trace for one state a thread, with values in registers as far as there are any.

The operations are those of the other back end in the same order of rounding: a state gives the same bits on a device as on
this machine. Where values do not fit the registers, they may go to the thread's own memory by the rule that `Registers`
follows: in forward dynamics the device's assembler makes two to three times the traffic by itself, in other functions less.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...trace import Trace
from ..llvm.emit import FEW_ZEROS, Kernel, KernelStyle, write_kernel
from ..llvm.ir import Type
from ..straight_plan import PlanOptions, plan_trace
from .target import OWN

REGISTERS = {"float": 240, "double": 112}  # of 255 words: the assembler wants some for addresses and calls
INLINED, OUTLINED = "#0", "#1"  # functions that become part of their callers, and those that do not
SHORT = ", !llvm.loop !0"  # of loops that assemblers shall not unroll
OF_FUNCTIONS = f"attributes {INLINED} = {{ alwaysinline nounwind }}\nattributes {OUTLINED} = {{ noinline nounwind }}"
ATTRIBUTES = f"""{OF_FUNCTIONS}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.unroll.disable"}}"""
PART = 20_000  # nodes of a function: the assembler's time grows faster than linearly


def emit_thread(
    t: Trace, type: Type, sizes: Sequence[int], spaces: Sequence[int], keeps: bool, name: str = "fw.kernel"
) -> Kernel:
    """The IR of a whole trace for results of these sizes, one after the other.

    `spaces` say in which memory each argument and each result of the state lies. With `keeps`, registers are left to the
    assembler; without, values go where `Registers` puts them. The workspace is in the thread's own memory.
    """
    bases = [*(f"in{k}" for k in range(len(t.inputs))), *(f"out{k}" for k in range(len(sizes)))]
    style = KernelStyle(
        name, "internal", INLINED, OUTLINED, freestanding=True, spaces=dict(zip(bases, spaces, strict=True)), space=OWN,
        rooms_in_workspace=True,
    )  # fmt: skip
    # In trace order values live for the shortest time, and other threads fill the waits.
    held = None if keeps else REGISTERS[type.precision]
    options = PlanOptions(True, PART, ordered=False, registers=held, few_zeros=FEW_ZEROS)
    return write_kernel(plan_trace(t, sizes, options), type, style)
