"""Object code kept on disk, so that a second process does not compile.

An entry is named by the hash of everything that its content follows from: the engine's own source, the kernel with all that
it calls (`sources`), the model, the function's options, precision, processor and its features, and the versions of LLVM and of
the format. The IR is a function of these, so it need not be made again to find the entry. A file starts with the hash of that
name and of its content: one that is cut short, damaged, or another's under this name does not match and is made anew. Two
processes may write at once. A disk that cannot be written is only slower. `cache_folder` has the files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .cache_folder import log, read_file, write_file

MAGIC = b"featherweight object 2\n"


def digest_of_files(folder: Path, files: Iterable[Path]) -> str:
    """Hash of files in a folder, and of where they are in it."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(folder).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _engine_digest() -> str:
    """Hash of every file that makes code of kernels."""
    package = Path(__file__).parents[1]
    return digest_of_files(package, (f for room in ("engine", "spatial") for f in (package / room).rglob("*.py")))


ENGINE = _engine_digest()  # when it is imported: files that change later are not what runs
_mixed = False  # whether some of what runs is of files that changed since


def notice_changed_files() -> None:
    """To be called when more of the engine is imported: where files are not what they were, nothing is read or kept."""
    global _mixed
    if not _mixed and _engine_digest() != ENGINE:
        _mixed = True
        log.warning("featherweight: the package's files changed since it was imported; compiled code is not kept")


def key(*parts: Any) -> str:
    """The name of an entry that follows from `parts`, whose repr must say all about them, and from the engine."""
    return hashlib.sha256(repr((ENGINE, parts)).encode()).hexdigest()


def kept(make: Callable[[], bytes], *what: Any) -> bytes:
    """The code that follows from `what`, and is made where there is none yet."""
    name = key(*what)
    entry = read(name)
    if entry is not None:
        return entry[1]
    code = make()
    write(name, {}, code)
    return code


def read(name: str) -> tuple[dict[str, Any], bytes] | None:
    """Facts and object code of an entry, or None if there is none that is whole."""
    data = None if _mixed else read_file(name)
    return None if data is None else unpacked(name, data)


def unpacked(name: str, data: bytes) -> tuple[dict[str, Any], bytes] | None:
    """Facts and object code of what `packed` made under this name, or None if it is damaged."""
    head = len(MAGIC) + 32
    content = data[head:]
    if not data.startswith(MAGIC) or _digest(name, content) != data[len(MAGIC) : head]:
        log.warning("featherweight: cache entry %s is damaged and will be made anew", name)
        return None
    facts, _, code = content.partition(b"\n")
    return json.loads(facts), code


def write(name: str, facts: dict[str, Any], code: bytes) -> None:
    """Keep an entry, if the disk allows."""
    if not _mixed:
        write_file(name, packed(name, facts, code))


def packed(name: str, facts: dict[str, Any], code: bytes) -> bytes:
    """The file of an entry."""
    content = json.dumps(facts).encode() + b"\n" + code
    return MAGIC + _digest(name, content) + content


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()
