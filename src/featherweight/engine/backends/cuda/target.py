"""The machines that one thread a state is written for: NVIDIA's processors, and this one, which tests run."""

from __future__ import annotations

from typing import NamedTuple

GLOBAL, SHARED, OWN = 1, 3, 5
"""Address spaces: the device's memory, that of a block of threads, and that of a thread."""


class Target(NamedTuple):
    """Differences between machines in the code around a kernel."""

    triple: str
    convention: str  # of kernels
    room: int  # the address space in which LLVM makes room on the stack
    thread: str  # how a thread is told its number in the block, as a value of i32
    block: str  # and the block's number
    barrier: str  # after which all threads of a block see what they wrote to its memory
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
