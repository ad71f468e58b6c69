"""LLVM IR to code for devices: assembly text by LLVM, machine code by NVIDIA's linker, kept on disk."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from ... import cache
from ...threads import processors, share_out
from ..llvm.jit import emitted, host, optimize_loops, parsed
from .driver import Device
from .target import NVIDIA


class PtxVersion(NamedTuple):
    """The oldest assembly language (PTX) that has what devices of a capability have, and the first LLVM that knows both."""

    version: str
    llvm: int


CAPABILITIES = {
    (7, 5): PtxVersion("63", 11), (8, 0): PtxVersion("70", 11), (8, 6): PtxVersion("71", 13), (8, 7): PtxVersion("74", 16),
    (8, 9): PtxVersion("78", 16), (9, 0): PtxVersion("78", 16), (10, 0): PtxVersion("86", 20), (10, 3): PtxVersion("88", 21),
    (12, 0): PtxVersion("87", 20), (12, 1): PtxVersion("88", 21),
}  # fmt: skip
"""Compute capabilities that code is made for."""


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def processor(capability: tuple[int, int]) -> tuple[int, int]:
    """The capability that code is made for: the device's, or the nearest before it that LLVM knows; drivers read that, too.

    Raises RuntimeError for devices before 7.5.
    """
    known = [c for c, needed in CAPABILITIES.items() if c <= capability and needed.llvm <= llvm.llvm_version_info[0]]
    if not known:
        raise RuntimeError(
            f"the device has compute capability {capability[0]}.{capability[1]}; "
            "7.5 (Turing, 2018) is the oldest that is served"
        )
    return max(known)


LONG = 2_000_000  # bytes of IR from which on LLVM only translates: its search for accesses to pair takes longest then


def assembly(ir: str, capability: tuple[int, int], loops: bool = False) -> bytes:
    """PTX of a module; with `loops`, LLVM optimizes functions that have some."""
    _initialize()
    major, minor = made_for = processor(capability)
    machine = llvm.Target.from_triple(NVIDIA.triple).create_target_machine(
        cpu=f"sm_{major}{minor}", features=f"+ptx{CAPABILITIES[made_for].version}", opt=3 if len(ir) < LONG or loops else 0
    )
    with parsed(ir, machine) as module:
        (optimize_loops if loops else _inline)(module, machine)
        return emitted(machine, module, text=True)


def _inline(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Put functions in their callers that are to be part of them: a call between functions takes and keeps registers."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.run(module, builder)


class KernelRow(NamedTuple):
    """Words from which compiled callers start a kernel; all zeros if there is no kernel for a device."""

    kernel: int
    context: int
    threads: int  # of a block
    shared_bytes: int


class Loaded(NamedTuple):
    """A kernel on a device, and how it is started."""

    kernel: Any
    threads: int  # of a block
    shared_bytes: int

    def launch(self, device: Device, stream: int, count: int, words: Sequence[int]) -> None:
        """Begin with a thread for each of so many states or elements; parameters are words of eight bytes."""
        blocks = -(-count // self.threads)
        device.launch(self.kernel, blocks, self.threads, self.shared_bytes, stream, words)

    def row(self, device: Device) -> KernelRow:
        """It, as a word of each."""
        return KernelRow(int(self.kernel.handle), device.context, self.threads, self.shared_bytes)


class Candidate(NamedTuple):
    """A way to write a kernel."""

    ir: Callable[[], str]
    threads: int
    shared_bytes: int = 0
    most_registers: int | None = None
    loops: bool = False  # whether it has loops that LLVM is to optimize

    def loaded(self, device: Device, entry: str, cubin: bytes) -> Loaded:
        return Loaded(device.load(cubin, entry, self.shared_bytes), self.threads, self.shared_bytes)


Choice = tuple[int, bytes]  # the number of a candidate, and its machine code


class Kernels:
    """Ways to write one kernel for a device, of which one is chosen and kept for the device and its driver."""

    def __init__(self, device: Device, entry: str, candidates: Sequence[Candidate], compared: int, *what: Any) -> None:
        self.device, self.entry, self.candidates = device, entry, candidates
        self.compared = compared  # the first so many, where none was kept
        self._name = cache.key("device", host().llvm, device.name, device.capability, device.driver_version, *what)

    def chosen(self) -> Loaded:
        """The one that was kept. Else that of those compared which has the shortest code: it moves least from and to memory."""
        kept = cache.read(self._name)
        if kept is not None:
            return self._loaded((int(kept[0]["candidate"]), kept[1]))
        best = min(self.assembled(range(self.compared)), key=lambda choice: len(choice[1]))
        self._keep(best)
        return self._loaded(best)

    def quickest(self, milliseconds: Callable[[Loaded], float]) -> Loaded:
        """The one of all candidates that takes least time, which is kept."""
        loaded = {choice: self._loaded(choice) for choice in self.assembled(range(len(self.candidates)))}
        best = min(loaded, key=lambda choice: milliseconds(loaded[choice]))
        self._keep(best)
        return loaded[best]

    def assembled(self, numbers: Iterable[int]) -> list[Choice]:
        """Machine code of candidates, side by side; once of those that are alike."""
        different: dict[tuple[Any, ...], tuple[int, str]] = {}
        for number in numbers:
            candidate = self.candidates[number]
            ir = candidate.ir()
            different.setdefault((ir, *candidate[1:]), (number, ir))
        waiting = list(different.values())
        done: dict[int, bytes] = {}

        def assemble_some(start: int, stop: int) -> None:
            for number, ir in waiting[start:stop]:
                text = assembly(ir, self.device.capability, self.candidates[number].loops)
                done[number] = self.device.assemble(text, self.candidates[number].most_registers)

        share_out(assemble_some, len(waiting), min(processors(), len(waiting)))
        return [(number, done[number]) for number, _ in waiting]

    def _keep(self, choice: Choice) -> None:
        cache.write(self._name, {"candidate": choice[0]}, choice[1])

    def _loaded(self, choice: Choice) -> Loaded:
        number, cubin = choice
        return self.candidates[number].loaded(self.device, self.entry, cubin)


class DeviceKernels(ABC):
    """A kernel in each precision, on each device, compiled when it is first wanted there and kept on disk."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[int, str], Loaded] = {}
        self._lock = threading.Lock()

    def kernel(self, device: Device, precision: str) -> Loaded:
        """Return the kernel for a device and a precision."""
        key = device.ordinal, precision
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = self.kernels(device, precision).chosen()
            return self._loaded[key]

    @abstractmethod
    def kernels(self, device: Device, precision: str) -> Kernels:
        """The ways to write it."""
