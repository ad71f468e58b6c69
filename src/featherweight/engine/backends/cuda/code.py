"""Device code from LLVM IR: assembly text by LLVM, machine code by NVIDIA's linker, cached on disk."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import llvmlite.binding as llvm
import numpy as np

from ... import cache
from ...forks import new_lock
from ...program import CoreShape, Input, Output
from ...threads import processors, share_out
from ..llvm.jit import emitted, host, optimize_loops, parsed
from .driver import Device
from .emit_thread import NVIDIA


class PtxVersion(NamedTuple):
    """The oldest assembly language (PTX) for devices of a capability, and the first LLVM that supports both."""

    version: str
    llvm: int


CAPABILITIES = {
    (7, 5): PtxVersion("63", 11), (8, 0): PtxVersion("70", 11), (8, 6): PtxVersion("71", 13), (8, 7): PtxVersion("74", 16),
    (8, 9): PtxVersion("78", 16), (9, 0): PtxVersion("78", 16), (10, 0): PtxVersion("86", 20), (10, 3): PtxVersion("88", 21),
    (12, 0): PtxVersion("87", 20), (12, 1): PtxVersion("88", 21),
}  # fmt: skip
"""Compute capabilities for which code is compiled."""


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def processor(capability: tuple[int, int]) -> tuple[int, int]:
    """Return the capability to compile for: the device's, or the nearest lower one that LLVM supports, which drivers accept.

    Raises RuntimeError for devices before 7.5.
    """
    known = [c for c, needed in CAPABILITIES.items() if c <= capability and needed.llvm <= llvm.llvm_version_info[0]]
    if not known:
        raise RuntimeError(
            f"the device has compute capability {capability[0]}.{capability[1]}; "
            "7.5 (Turing, 2018) is the oldest that is supported"
        )
    return max(known)


LONG = 2_000_000  # bytes of IR from which LLVM only translates, because its search for accesses to pair would take too long


def assembly(ir: str, capability: tuple[int, int], loops: bool = False) -> bytes:
    """Return the PTX of a module; with `loops`, LLVM optimizes functions with loops."""
    _initialize()
    major, minor = made_for = processor(capability)
    machine = llvm.Target.from_triple(NVIDIA.triple).create_target_machine(
        cpu=f"sm_{major}{minor}", features=f"+ptx{CAPABILITIES[made_for].version}", opt=3 if len(ir) < LONG or loops else 0
    )
    with parsed(ir, machine) as module:
        (optimize_loops if loops else _inline)(module, machine)
        return emitted(machine, module, text=True)


def _inline(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Inline functions that must be part of their callers: calls between functions use and save registers."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.run(module, builder)


class KernelRow(NamedTuple):
    """Words with which compiled callers launch a kernel; all zeros if there is no kernel for a device."""

    kernel: int
    context: int
    threads: int  # threads per block
    shared_bytes: int


class Loaded(NamedTuple):
    """A kernel on a device, with its launch parameters."""

    kernel: Any
    threads: int  # threads per block
    shared_bytes: int

    def launch(self, device: Device, stream: int, count: int, words: Sequence[int]) -> None:
        """Launch one thread for each of `count` states or elements; parameters are words of eight bytes."""
        blocks = -(-count // self.threads)
        device.launch(self.kernel, blocks, self.threads, self.shared_bytes, stream, words)

    def row(self, device: Device) -> KernelRow:
        """Return the kernel as words."""
        return KernelRow(int(self.kernel.handle), device.context, self.threads, self.shared_bytes)


class Candidate(NamedTuple):
    """A variant of a kernel."""

    ir: Callable[[], str]
    threads: int
    shared_bytes: int = 0
    most_registers: int | None = None
    loops: bool = False  # whether it has loops for LLVM to optimize

    def loaded(self, device: Device, entry: str, cubin: bytes) -> Loaded:
        return Loaded(device.load(cubin, entry, self.shared_bytes), self.threads, self.shared_bytes)


Choice = tuple[int, bytes]  # number of a candidate, and its machine code


class Kernels:
    """Variants of one kernel for a device, one of which is chosen and cached for the device and its driver."""

    def __init__(self, device: Device, entry: str, candidates: Sequence[Candidate], compared: int, *what: Any) -> None:
        self.device, self.entry, self.candidates = device, entry, candidates
        self.compared = compared  # number of candidates to compare, if no choice is cached
        self._name = cache.key("device", host().llvm, device.name, device.capability, device.driver_version, *what)

    def chosen(self) -> Loaded:
        """Return the cached choice, or the compared candidate with the shortest code, which has the least memory traffic."""
        kept = cache.read(self._name)
        if kept is not None:
            return self._loaded((int(kept[0]["candidate"]), kept[1]))
        best = min(self.assembled(range(self.compared)), key=lambda choice: len(choice[1]))
        self._keep(best)
        return self._loaded(best)

    def quickest(self, milliseconds: Callable[[Loaded], float]) -> Loaded:
        """Return the fastest of all candidates, and cache this choice."""
        loaded = {choice: self._loaded(choice) for choice in self.assembled(range(len(self.candidates)))}
        best = min(loaded, key=lambda choice: milliseconds(loaded[choice]))
        self._keep(best)
        return loaded[best]

    def assembled(self, numbers: Iterable[int]) -> list[Choice]:
        """Return machine code of candidates, assembled in parallel; identical candidates once."""
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
    """A kernel in each precision, on each device, compiled on first use there and cached on disk."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[int, str], Loaded] = {}
        self._lock = new_lock()

    def kernel(self, device: Device, precision: str) -> Loaded:
        """Return the kernel for a device and a precision."""
        key = device.ordinal, precision
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = self.kernels(device, precision).chosen()
            return self._loaded[key]

    @abstractmethod
    def kernels(self, device: Device, precision: str) -> Kernels:
        """Return the variants of the kernel."""


class Signature(Protocol):
    """The name and the arrays of a function, as in `Program`."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> tuple[Input, ...]: ...

    @property
    def outputs(self) -> tuple[Output, ...]: ...

    @property
    def shapes(self) -> tuple[CoreShape, ...]:
        """Core shapes of inputs and outputs."""


class Launchable(Protocol):
    """Code for devices."""

    @property
    def program(self) -> Signature:
        """Name and arrays of the function that the code computes."""

    def launch(self, device: Device, stream: int, dtype: np.dtype[Any], states: int, rows: Sequence[tuple[int, int]]) -> None:
        """Start to compute states. Each argument and result has the address of its first row, and a row stride in elements."""
