"""Straight-line LLVM IR of a trace for one state per thread, with values in registers while there are any.

The operations are those of the other back end with the same rounding: results on a device are bitwise those of this machine.
Values that do not fit the registers can go to the thread's own memory by the rule of `Registers`: in forward dynamics, the
device's assembler alone causes two to three times the traffic; in other functions, less.

The code around a kernel differs between target machines: NVIDIA's processors, and this one, for tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...trace import Trace
from ..llvm.emit import FEW_ZEROS, Kernel, KernelStyle, write_kernel
from ..llvm.ir import Type
from ..straight_plan import PlanOptions, plan_trace

GLOBAL, SHARED, OWN = 1, 3, 5
"""Address spaces: device memory, shared memory of a block, and local memory of a thread."""


class Target(NamedTuple):
    """Differences between machines in the code around a kernel."""

    triple: str
    convention: str  # calling convention of kernels
    stack: int  # address space of LLVM's stack
    thread: str  # i32 value of a thread's number in the block
    block: str  # i32 value of the block's number
    barrier: str  # instruction after which all threads of a block see its shared memory
    declarations: tuple[str, ...]


NVIDIA = Target(
    "nvptx64-nvidia-cuda",
    "ptx_kernel",
    0,
    "call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
    "call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
    "call void @llvm.nvvm.barrier0()",
    (
        "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
        "declare void @llvm.nvvm.barrier0()",
    ),
)


REGISTERS = {"float": 240, "double": 112}  # of 255 words: the assembler needs some for addresses and calls
INLINED, OUTLINED = "#0", "#1"  # attributes of functions to inline, and not to inline
SHORT = ", !llvm.loop !0"  # attribute of loops that must not be unrolled
OF_FUNCTIONS = f"attributes {INLINED} = {{ alwaysinline nounwind }}\nattributes {OUTLINED} = {{ noinline nounwind }}"
ATTRIBUTES = f"""{OF_FUNCTIONS}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.unroll.disable"}}"""
PART = 20_000  # greatest number of nodes of a function: the assembler's time grows faster than linearly


def emit_thread(
    t: Trace, type: Type, sizes: Sequence[int], spaces: Sequence[int], keeps: bool, name: str = "fw.kernel"
) -> Kernel:
    """Return the IR of a whole trace for concatenated results of these sizes.

    `spaces` are the address spaces of the arguments and results of the state. With `keeps`, the assembler allocates registers;
    without, values go where `Registers` puts them. The workspace is in the thread's own memory.
    """
    bases = [*(f"in{k}" for k in range(len(t.inputs))), *(f"out{k}" for k in range(len(sizes)))]
    style = KernelStyle(
        name, "internal", INLINED, OUTLINED, freestanding=True, spaces=dict(zip(bases, spaces, strict=True)), space=OWN,
        spills_in_workspace=True,
    )  # fmt: skip
    # In trace order, values have the shortest lifetimes, and other threads fill the waits.
    count = None if keeps else REGISTERS[type.precision]
    options = PlanOptions(True, PART, ordered=False, registers=count, few_zeros=FEW_ZEROS)
    return write_kernel(plan_trace(t, sizes, options), type, style)
