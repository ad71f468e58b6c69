"""Target machines of exported code, in one table by name."""

from __future__ import annotations

import functools
from typing import NamedTuple

import llvmlite.binding as llvm

from ..checks import shown
from ..engine.backends.llvm.jit import host

ITEM_BYTES = {"double": 8, "float": 4}


class ExportTarget(NamedTuple):
    """A target machine, as LLVM names it, with settings for its code."""

    name: str
    triple: str
    cpu: str = "generic"
    features: str = ""  # in LLVM's notation: "+fma,-sse4a"
    vector_bytes: int = 0  # size of the vectors for both precisions; 0 without vectors
    fma: bool = True  # whether a b + c, rounded once, is an instruction
    abi: str = ""  # LLVM's name, if the triple does not determine it
    precisions: tuple[str, ...] = ("double", "float")  # precisions with instructions
    what: str = ""

    def lanes(self, precision: str) -> int:
        """Return the count of numbers in one vector."""
        return max(1, self.vector_bytes // ITEM_BYTES[precision])

    @property
    def has_system(self) -> bool:
        """Return whether an operating system loads programs at any address."""
        return "-none-" not in self.triple and "-unknown-unknown" not in self.triple

    @property
    def full_triple(self) -> str:
        """The triple with the vendor that short triples omit, because LLVM reads its parts by position."""
        parts = self.triple.split("-")
        return "-".join([parts[0], "unknown", *parts[1:]]) if len(parts) == 3 and parts[1] in ("none", "linux") else self.triple

    def machine(self) -> llvm.TargetMachine:
        """Return LLVM's code generator for the target. Raises ValueError for a triple that LLVM does not know."""
        _initialize()
        try:
            known = llvm.Target.from_triple(self.full_triple)
        except RuntimeError as error:
            raise ValueError(f"target {self.name}: LLVM has no code for {self.triple!r}: {error}") from None
        far = self.triple.startswith("riscv")  # its small code model is limited to the first 2 GiB
        return known.create_target_machine(
            cpu=self.cpu,
            features=self.features,
            opt=2,
            reloc="pic" if self.has_system else "static",
            codemodel="medium" if far else "small",
            abiname=self.abi,
        )


_LINUX = (
    ExportTarget("x86-64-v2", "x86_64-unknown-linux-gnu", "x86-64-v2", "", 16, False, what="SSE4.2: since 2009"),
    ExportTarget("x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", "", 32, what="AVX2 and FMA: since 2013"),
    ExportTarget("x86-64-v4", "x86_64-unknown-linux-gnu", "x86-64-v4", "", 64, what="AVX-512"),
    ExportTarget("aarch64", "aarch64-unknown-linux-gnu", "generic", "", 16, what="any 64-bit Arm"),
    ExportTarget("cortex-a72", "aarch64-unknown-linux-gnu", "cortex-a72", "", 16, what="Raspberry Pi 4"),
    ExportTarget("cortex-a76", "aarch64-unknown-linux-gnu", "cortex-a76", "", 16, what="Raspberry Pi 5"),
    ExportTarget("cortex-a78ae", "aarch64-unknown-linux-gnu", "cortex-a78ae", "", 16, what="Jetson Orin"),
    ExportTarget("cortex-a7", "armv7-unknown-linux-gnueabihf", "cortex-a7", what="32-bit Arm with VFPv4"),
    ExportTarget("cortex-a53", "armv7-unknown-linux-gnueabihf", "cortex-a53", what="32-bit programs on Cortex-A53"),
    ExportTarget("riscv64", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", abi="lp64d", what="RV64GC"),
)
_BARE = (
    ExportTarget("cortex-m4", "thumbv7em-none-eabihf", "cortex-m4", precisions=("float",), what="microcontrollers"),
    ExportTarget("cortex-m7", "thumbv7em-none-eabihf", "cortex-m7", what="microcontrollers, doubles in hardware"),
    ExportTarget(
        "cortex-m7-single",
        "thumbv7em-none-eabihf",
        "cortex-m7",
        "-fp64,-fpregs64",
        precisions=("float",),
        what="the same without doubles",
    ),
)
TARGETS = {t.name: t for t in (*_LINUX, *_BARE)}
"""Targets by name. 32-bit Arm has no vectors here, because its vector instructions flush small numbers to zero."""


def this_machine() -> ExportTarget:
    """Return the machine of this process; its code returns bitwise the same results as the function does here."""
    h = host()
    return ExportTarget("host", h.triple, h.cpu, h.features, h.vector_bytes, h.fma, what="this machine")


def find_target(target: str | ExportTarget, precision: str) -> ExportTarget:
    """Return a target of the table, or the given one. Raises ValueError for unknown names, and for unsupported precisions."""
    if isinstance(target, str):
        if target != "host" and target not in TARGETS:
            raise ValueError(f"target must be host, {', '.join(TARGETS)}, or an ExportTarget; got {target!r}")
        target = this_machine() if target == "host" else TARGETS[target]
    if not isinstance(target, ExportTarget):
        raise TypeError(f"target must be host, {', '.join(TARGETS)}, or an ExportTarget; got {shown(target)}")
    if precision not in ITEM_BYTES:
        raise ValueError(f"precision must be double or float; got {precision!r}")
    if precision not in target.precisions:
        other = target.precisions[0]
        raise ValueError(f"target {target.name} has no instructions for {precision}: export with precision={other!r}")
    return target


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
