"""Code for a processor with shorter vectors than this one has, in a process that has not compiled anything yet."""

from __future__ import annotations

import llvmlite.binding as llvm

from featherweight.engine.backends.llvm.jit import host

AVX2 = 256  # bits, the longest vectors of AMD's processors before 2022 and of Intel's for desktops
LONGER = ("avx512", "avx10", "evex512")  # prefixes of features that AVX2 lacks


def limit_vectors() -> None:
    """Make LLVM detect a processor with vectors of at most 256 bits, and compile functions, loops and lanes for it.

    Raises RuntimeError after the first compilation, which detects the processor.
    """
    if host.cache_info().currsize:
        raise RuntimeError("limit_vectors must be called before anything is compiled: call it in a new process")
    features = llvm.get_host_cpu_features()
    limited = type(features)({name: on and not name.startswith(LONGER) for name, on in features.items()})
    llvm.get_host_cpu_features = lambda: limited
