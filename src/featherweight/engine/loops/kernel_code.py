"""Object code of kernels with loops: cached on disk, shipped with the package, or compiled.

A wheel has the kernels that users need first, compiled for a few kinds of processors, as entries of the cache in a folder for
each kind (release/objects.py writes them). A clone or a source archive has none. The name of an entry is the hash of the kernel
with its types and of all source files of the package: code of other sources is not found. Bytecode, which is part of the names
of cache entries, depends on the version of Python, but a wheel serves several versions. Object code of one LLVM version runs
with every other one.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from .. import cache, sources
from ..backends.llvm.jit import compile_loops, compile_optimized, host, machine_for
from ..compilation_messages import report_if_long, reporting

Facts = dict[str, Any]  # facts about a kernel, stored with its code


class Specialization(NamedTuple):
    """A function for parameters of given types."""

    function: Any
    fused: bool  # whether a b + c is rounded once
    types: str
    classes: tuple[type, ...]  # classes of named tuples among the parameters
    what: str  # description for users who wait for the compilation
    checked: bool = False  # whether indices are checked
    thorough: bool = False  # whether LLVM's further optimizations pay off

    @property
    def name(self) -> str:
        """The function and its types, in a form that all versions of Python share."""
        return f"{self.function.__module__}.{self.function.__qualname__} {self.fused} {self.types}"


compilation_observers: list[Callable[[Specialization, Facts, str], None]] = []
"""Called with the facts and the IR of each kernel that this process compiles."""


def code_of(kernel: Specialization, write: Callable[[], tuple[Facts, str]]) -> tuple[Facts, bytes]:
    """Return facts and object code of a kernel; `write` returns its facts and its IR."""
    digest = sources.digest(kernel.function, kernel.classes)
    name = cache.key("kernel", digest, kernel.fused, kernel.checked, host(), kernel.types)
    entry = cache.read(name)
    if entry is None:
        shipped = None if kernel.checked else precompiled_entry(kernel.name)
        entry = shipped or _compiled(kernel, write)
        cache.write(name, *entry)
    return entry


def _compiled(kernel: Specialization, write: Callable[[], tuple[Facts, str]]) -> tuple[Facts, bytes]:
    with reporting(kernel.what):
        facts, ir = write()
        report_if_long()
        for observe in compilation_observers:
            observe(kernel, facts, ir)
        return facts, compile_optimized(ir) if kernel.thorough else compile_loops(ir)


FOLDER = Path(__file__).with_name("objects")

_V3 = "cx16 popcnt sahf sse4.2 avx2 bmi bmi2 f16c fma lzcnt movbe xsave"


class PrecompiledTarget(NamedTuple):
    """A kind of processor."""

    name: str
    triple: str
    cpu: str
    architectures: tuple[str, ...]  # prefixes of triples
    needed: frozenset[str] = frozenset()  # required features

    def suits_host(self) -> bool:
        """Return whether this process can run its code."""
        architecture, _, system = host().triple.partition("-")
        if architecture not in self.architectures or "linux" not in system:
            return False
        features = llvm.get_host_cpu_features()
        return all(features.get(name, False) for name in self.needed)


TARGETS = (
    PrecompiledTarget(
        "x86-64-v4", "x86_64-unknown-linux-gnu", "x86-64-v4", ("x86_64", "amd64"),
        frozenset(f"{_V3} avx512f avx512bw avx512cd avx512dq avx512vl".split()),
    ),
    PrecompiledTarget("x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", ("x86_64", "amd64"), frozenset(_V3.split())),
    PrecompiledTarget("aarch64", "aarch64-unknown-linux-gnu", "generic", ("aarch64", "arm64")),
)  # fmt: skip
"""The better first. All multiply and add in one instruction, so that all give the same bits."""


def precompiled_entry(kernel: str) -> tuple[dict[str, Any], bytes] | None:
    """Return the facts and the code of a kernel, or None if the package has none for this processor."""
    folder = _folder_for_host()
    if folder is None:
        return None
    name = _entry_name(kernel)
    try:
        data = (folder / f"{name}.bin").read_bytes()
    except OSError:
        return None
    return cache.unpacked(name, data)


def ship(kernel: str, facts: Mapping[str, object], ir: str, folder: Path) -> Iterator[Path]:
    """Write entries of a kernel for all targets, and yield their paths.

    Its IR must be for processors with fused multiply-add.
    """
    assert host().fma, "objects are made on a processor with fused multiplication and addition"
    for target in TARGETS:
        name = _entry_name(kernel)
        path = folder / target.name / f"{name}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(cache.packed(name, facts, compile_loops(ir, machine_for(target.triple, target.cpu))))
        yield path


def _entry_name(kernel: str) -> str:
    return hashlib.sha256(repr((_package_digest(), kernel)).encode()).hexdigest()


@functools.cache
def _folder_for_host() -> Path | None:
    """Return the folder of the first target that suits this process."""
    if not FOLDER.is_dir():
        return None
    suiting = (FOLDER / target.name for target in TARGETS if target.suits_host())
    return next((folder for folder in suiting if folder.is_dir()), None)


@functools.cache
def _package_digest() -> str:
    package = Path(__file__).parents[2]
    return cache.digest_of_files(package, package.rglob("*.py"))
