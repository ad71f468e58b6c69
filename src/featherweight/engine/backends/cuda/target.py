"""Target machines with one thread per state: NVIDIA's processors, and this one, for tests."""

from __future__ import annotations

from typing import NamedTuple

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
