"""Shared libraries, by our own linker where it can and else by the system's."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import shared_library
from .export_targets import ExportTarget
from .wasm_module import link_wasm

_OWN = ("x86_64", "aarch64")  # processors, under Linux


def shared_suffix(target: ExportTarget) -> str:
    """Return the suffix of the file names of shared libraries."""
    return ".wasm" if _is_wasm(target) else ".dylib" if _is_mac(target) else ".so"


def links_itself(target: ExportTarget) -> bool:
    """Whether shared libraries are made without a linker of the system's."""
    return _is_wasm(target) or ("linux" in target.triple and target.triple.partition("-")[0] in _OWN)


def link_shared(objects: Sequence[bytes], name: str, target: ExportTarget, symbols: Sequence[str]) -> bytes:
    """A shared library for a target; a module, of WebAssembly. Raises ValueError where there are none, or no linker for it."""
    arch = target.triple.partition("-")[0]
    if _is_wasm(target):
        return link_wasm(objects, symbols)
    if links_itself(target):
        return shared_library.link(objects, name)
    if "-none-" in target.triple:
        raise ValueError(f"target {target.name} has no shared libraries: take the static library, or the objects")
    for command in _commands(target, arch, name):
        if shutil.which(command[0]):
            return _run(command, objects)
    tried = ", ".join(command[0] for command in _commands(target, arch, name))
    raise ValueError(
        f"target {target.name}: a shared library takes a linker for {target.triple}, and none of {tried} is there; install "
        "one, or export a static library and link it there"
    )


def _commands(target: ExportTarget, arch: str, name: str) -> list[list[str]]:
    if _is_mac(target):
        return [["cc", "-dynamiclib", "-install_name", f"@rpath/{name}"]]
    gnu = "arm-linux-gnueabihf" if arch.startswith("arm") else f"{arch}-linux-gnu"
    return [[linker, "-shared", "-soname", name] for linker in ("ld.lld", f"{gnu}-ld")]


def _is_wasm(target: ExportTarget) -> bool:
    return target.triple.startswith("wasm")


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
            raise RuntimeError(f"{command[0]} did not link: {done.stderr.strip()}")
        return out.read_bytes()
