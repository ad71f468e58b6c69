"""LLVM IR to code for devices: assembly text by LLVM, machine code by the device's driver, both kept on disk."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from ... import cache
from ..llvm.jit import emitted, host, parsed
from .driver import Device, DeviceKernel
from .target import AMD, NVIDIA

ASSEMBLY_VERSIONS = {
    (7, 5): "63", (8, 0): "70", (8, 6): "71", (8, 7): "74", (8, 9): "78", (9, 0): "78", (10, 0): "86", (10, 3): "88",
    (12, 0): "87", (12, 1): "88",
}  # fmt: skip
"""Of the assembly language (PTX), the oldest that has what a device of a capability has: older drivers read it, too."""


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def processor(capability: tuple[int, int]) -> tuple[int, int]:
    """The capability that code is made for: the device's, or the nearest before it that LLVM knows; drivers read that, too.

    Raises RuntimeError for devices before 7.5.
    """
    known = [c for c in ASSEMBLY_VERSIONS if c <= capability]
    if not known:
        raise RuntimeError(
            f"the device has compute capability {capability[0]}.{capability[1]}; "
            "7.5 (Turing, 2018) is the oldest that is served"
        )
    return max(known)


LONG = 2_000_000  # bytes of IR from which on LLVM only translates: its search for accesses to pair takes longest then


def assembly(ir: str, capability: tuple[int, int]) -> bytes:
    """PTX of a module."""
    _initialize()
    major, minor = made_for = processor(capability)
    machine = llvm.Target.from_triple(NVIDIA.triple).create_target_machine(
        cpu=f"sm_{major}{minor}", features=f"+ptx{ASSEMBLY_VERSIONS[made_for]}", opt=3 if len(ir) < LONG else 0
    )
    with parsed(ir, machine) as module:
        return emitted(machine, module, text=True)


def amd_object(ir: str, cpu: str = "gfx942") -> bytes:
    """An object file for AMD's processors, which their linker makes a code object of."""
    _initialize()
    machine = llvm.Target.from_triple(AMD.triple).create_target_machine(cpu=cpu, opt=3)
    with parsed(ir, machine) as module:
        return emitted(machine, module)


class Loaded(NamedTuple):
    """A kernel on a device, and how it is started."""

    kernel: DeviceKernel
    threads: int  # of a block
    shared_bytes: int


Candidate = tuple[Callable[[], str], int, int]  # its IR, threads of a block, bytes of the block's memory


def load_best(device: Device, entry: str, candidates: Sequence[Candidate], *what: Any) -> Loaded:
    """The one of several kernels that follow from `what`, which takes least memory of its own a thread: it spills least.

    Machine code and choice are kept for the device and its driver.
    """
    name = cache.key("device", host().llvm, device.name, device.capability, device.driver_version, *what)
    kept = cache.read(name)
    if kept is not None:
        number, cubin = int(kept[0]["candidate"]), kept[1]
        return _loaded(device, entry, cubin, candidates[number])
    best: tuple[int, int, bytes, Loaded] | None = None
    seen: set[str] = set()
    for number, candidate in enumerate(candidates):
        ir = candidate[0]()
        if ir in seen:
            continue
        seen.add(ir)
        cubin = device.assemble(assembly(ir, device.capability))
        loaded = _loaded(device, entry, cubin, candidate)
        if best is None or loaded.kernel.local_bytes < best[0]:
            best = loaded.kernel.local_bytes, number, cubin, loaded
    assert best is not None
    cache.write(name, {"candidate": best[1]}, best[2])
    return best[3]


def _loaded(device: Device, entry: str, cubin: bytes, candidate: Candidate) -> Loaded:
    _, threads, shared_bytes = candidate
    kernel = device.load(cubin).kernel(entry)
    if shared_bytes:
        kernel.allow_shared(shared_bytes)
    return Loaded(kernel, threads, shared_bytes)
