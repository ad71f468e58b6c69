"""Linking of shared libraries: by this package where possible, otherwise by a system linker."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import shared_library
from .export_targets import ExportTarget

_OWN = ("x86_64", "aarch64")  # processors that this package links for, under Linux


def shared_suffix(target: ExportTarget) -> str:
    """Return the suffix of the file names of shared libraries."""
    return ".dylib" if _is_mac(target) else ".so"


def links_itself(target: ExportTarget) -> bool:
    """Return whether this package links shared libraries for a target without a system linker."""
    return "linux" in target.triple and target.triple.partition("-")[0] in _OWN


def link_shared(objects: Sequence[bytes], name: str, target: ExportTarget) -> bytes:
    """Return a shared library for a target.

    Raises ValueError for a target without shared libraries, or if no linker for it is installed.
    """
    arch = target.triple.partition("-")[0]
    if links_itself(target):
        return shared_library.link(objects, name)
    if "-none-" in target.triple:
        raise ValueError(f"target {target.name} has no shared libraries: export a static library or objects")
    for command in _commands(target, arch, name):
        if shutil.which(command[0]):
            return _run(command, objects)
    tried = ", ".join(command[0] for command in _commands(target, arch, name))
    raise ValueError(
        f"target {target.name}: a shared library needs a linker for {target.triple}, but none of {tried} is installed; "
        "install one, or export a static library and link it on the target"
    )


def _commands(target: ExportTarget, arch: str, name: str) -> list[list[str]]:
    if _is_mac(target):
        return [["cc", "-dynamiclib", "-install_name", f"@rpath/{name}"]]
    gnu = "arm-linux-gnueabihf" if arch.startswith("arm") else f"{arch}-linux-gnu"
    return [[linker, "-shared", "-soname", name] for linker in ("ld.lld", f"{gnu}-ld")]


def _is_mac(target: ExportTarget) -> bool:
    return "apple" in target.triple


def _run(command: Sequence[str], objects: Sequence[bytes]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{k}.o") for k in range(len(objects))]
        for path, data in zip(paths, objects, strict=True):
            path.write_bytes(data)
        out = Path(folder, "out")
        done = subprocess.run([*command, "-o", out, *paths], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed to link: {done.stderr.strip()}")
        return out.read_bytes()
