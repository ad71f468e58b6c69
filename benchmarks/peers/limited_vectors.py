"""Code for a processor with shorter vectors than this one has, in a process that has compiled nothing yet."""

from __future__ import annotations

import llvmlite.binding as llvm

from featherweight.engine.backends.llvm.jit import host

AVX2 = 256  # bits; AMD's processors before 2022 and Intel's for desktops have no longer vectors
LONGER = ("avx512", "avx10", "evex512")  # how features that AVX2 lacks begin


def limit_vectors() -> None:
    """Let LLVM find a processor whose vectors have 256 bits at most: functions, loops and lanes are compiled for it.

    Raises RuntimeError after the first compilation, which asks for the processor.
    """
    if host.cache_info().currsize:
        raise RuntimeError("limit_vectors must be called before anything is compiled: call it in a new process")
    features = llvm.get_host_cpu_features()
    limited = type(features)({name: on and not name.startswith(LONGER) for name, on in features.items()})
    llvm.get_host_cpu_features = lambda: limited
