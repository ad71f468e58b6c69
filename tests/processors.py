"""Settings under which NumPy and its BLAS compute as on other processors, limited to those that this processor can run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module

NUMPY = import_module("numpy._core._multiarray_umath")
FEATURES: Mapping[str, bool] = NUMPY.__cpu_features__

NEEDED = {  # targets of OpenBLAS, and the features in NumPy's list that their code needs
    "Prescott": ("SSE3",),
    "Nehalem": ("SSE42",),
    "Sandybridge": ("AVX",),
    "Haswell": ("AVX2", "FMA3"),
    "Zen": ("AVX2", "FMA3"),
    "SkylakeX": ("AVX512_SKX",),
    "ARMV8": ("ASIMD",),
    "CORTEXA57": ("ASIMD",),
    "NEOVERSEN1": ("ASIMDDP",),
    "NEOVERSEV1": ("SVE",),
}


def runnable(features: Mapping[str, bool] = FEATURES) -> list[str]:
    """Return the processors above whose code runs on a processor with these features."""
    return [name for name, needed in NEEDED.items() if all(features.get(feature, False) for feature in needed)]


def without_features() -> str:
    """Return the value of NPY_DISABLE_CPU_FEATURES with which NumPy uses code for the oldest processors only."""
    return " ".join(name for name in NUMPY.__cpu_dispatch__ if FEATURES.get(name, False))


def settings(processor: str, threads: int = 1, seed: int = 0, old: bool = False) -> dict[str, str]:
    """Return the environment variables of a process."""
    env = {**os.environ, "OPENBLAS_CORETYPE": processor, "OPENBLAS_NUM_THREADS": f"{threads}", "PYTHONHASHSEED": f"{seed}"}
    return {**env, "NPY_DISABLE_CPU_FEATURES": without_features()} if old else env
