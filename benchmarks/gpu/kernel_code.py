"""Access to the machine code that a call compiles for a device, through the cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from featherweight.engine import cache
from featherweight.engine.cache_folder import SUFFIX, directory

VARIABLE = "FEATHERWEIGHT_CACHE"
ELF = b"\x7fELF"
MACHINE = slice(18, 20)  # the machine in the header of an ELF file
CUDA = (190).to_bytes(2, "little")


@contextmanager
def empty_cache() -> Iterator[None]:
    """Use an empty cache within, and remove it afterwards."""
    before = os.environ.get(VARIABLE)
    with TemporaryDirectory(prefix="featherweight-") as folder:
        os.environ[VARIABLE] = folder
        try:
            yield
        finally:
            os.environ.pop(VARIABLE)
            if before is not None:
                os.environ[VARIABLE] = before


@contextmanager
def compiled() -> Iterator[list[bytes]]:
    """Yield a list that contains, at the end, the CUDA codes that were cached within, the largest first."""
    found: list[bytes] = []
    before = _entries()
    yield found
    codes = [entry[1] for name, _ in _entries() - before if (entry := cache.read(name)) is not None]
    found += sorted(filter(for_cuda, codes), key=len, reverse=True)


def for_cuda(code: bytes) -> bool:
    return code.startswith(ELF) and code[MACHINE] == CUDA


def _entries() -> set[tuple[str, int]]:
    """Return names of entries and their modification times."""
    folder: Path | None = directory()
    return set() if folder is None else {(p.stem, p.stat().st_mtime_ns) for p in folder.glob(f"*{SUFFIX}")}
