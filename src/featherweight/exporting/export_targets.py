"""The machines that code is exported for: one table, by name."""

from __future__ import annotations

import functools
from typing import NamedTuple

import llvmlite.binding as llvm

from ..engine.backends.llvm.jit import host

ITEM_BYTES = {"double": 8, "float": 4}


class ExportTarget(NamedTuple):
    """A machine, as LLVM names it, and what suits it."""

    name: str
    triple: str
    cpu: str = "generic"
    features: str = ""  # as LLVM writes them: "+fma,-sse4a"
    vector_bytes: int = 0  # of the vectors that both precisions may use; 0 if there are none
    fma: bool = True  # whether a b + c, rounded once, is an instruction
    abi: str = ""  # by LLVM's name, where the triple leaves it open
    precisions: tuple[str, ...] = ("double", "float")  # that it has instructions for
    what: str = ""

    def lanes(self, precision: str) -> int:
        """Numbers that one vector holds."""
        return max(1, self.vector_bytes // ITEM_BYTES[precision])

    @property
    def has_system(self) -> bool:
        """Whether programs are loaded anywhere, by an operating system."""
        return "-none-" not in self.triple and "-unknown-unknown" not in self.triple

    @property
    def full_triple(self) -> str:
        """With the vendor that short ones leave out: LLVM reads the parts by their places, and how numbers are passed in the
        fourth."""
        parts = self.triple.split("-")
        return "-".join([parts[0], "unknown", *parts[1:]]) if len(parts) == 3 and parts[1] in ("none", "linux") else self.triple

    def machine(self) -> llvm.TargetMachine:
        """LLVM's code generator for it. Raises ValueError for a triple that it does not know."""
        _initialize()
        try:
            known = llvm.Target.from_triple(self.full_triple)
        except RuntimeError as error:
            raise ValueError(f"target {self.name}: LLVM has no code for {self.triple!r}: {error}") from None
        far = self.triple.startswith("riscv")  # whose small code lies in the first 2 GiB
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
    ExportTarget("wasm32", "wasm32-unknown-unknown", "generic", "", 0, False, what="WebAssembly"),
)
TARGETS = {t.name: t for t in (*_LINUX, *_BARE)}
"""By name. Vectors of 32-bit Arm flush small numbers to zero, so none are used there."""


def this_machine() -> ExportTarget:
    """The machine that this process runs on: its code gives the same bits as the function does here."""
    h = host()
    return ExportTarget("host", h.triple, h.cpu, h.features, h.vector_bytes, h.fma, what="this machine")


def find_target(target: str | ExportTarget, precision: str) -> ExportTarget:
    """A target of the table, or the one that is given. Raises ValueError for unknown names, and for doubles where there are
    none."""
    if isinstance(target, str):
        if target != "host" and target not in TARGETS:
            raise ValueError(f"target must be host, {', '.join(TARGETS)}, or an ExportTarget; got {target!r}")
        target = this_machine() if target == "host" else TARGETS[target]
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
