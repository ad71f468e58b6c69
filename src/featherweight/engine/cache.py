"""Cache of object code on disk, so that a second process does not compile.

The name of an entry is the hash of everything that its content depends on: the engine's source, the kernel with all that it
calls (`sources`), the model, the function's options, precision, processor and its features, and the versions of LLVM and of the
format. The IR is a function of these, so finding the entry does not need the IR. A file starts with the hash of its name and
its content. A truncated, damaged or foreign file does not match this hash and is made again. Two processes may write at once.
If the disk is not writable, programs are only slower. `cache_folder` manages the files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from .cache_folder import log, read_file, write_file

MAGIC = b"featherweight object 2\n"


def digest_of_files(folder: Path, files: Iterable[Path]) -> str:
    """Return the hash of files in a folder and of their relative paths."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(folder).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _engine_digest() -> str:
    """Return the hash of every file that generates code of kernels."""
    package = Path(__file__).parents[1]
    return digest_of_files(package, (f for part in ("engine", "spatial") for f in (package / part).rglob("*.py")))


ENGINE = _engine_digest()  # at import: files that change later do not affect the running code
_mixed = False  # whether some running code comes from files that changed since


def notice_changed_files() -> None:
    """Disable the cache if files have changed. Call this when more of the engine is imported."""
    global _mixed
    if not _mixed and _engine_digest() != ENGINE:
        _mixed = True
        log.warning("featherweight: the package's files changed since it was imported; compiled code is not kept")


def key(*parts: object) -> str:
    """Return the name of an entry that depends on `parts` and on the engine. The repr of `parts` must be complete."""
    return hashlib.sha256(repr((ENGINE, parts)).encode()).hexdigest()


def kept(make: Callable[[], bytes], *what: object) -> bytes:
    """Return the code for `what` from the cache, or make and store it."""
    name = key(*what)
    entry = read(name)
    if entry is not None:
        return entry[1]
    code = make()
    write(name, {}, code)
    return code


def read(name: str) -> tuple[dict[str, Any], bytes] | None:
    """Return facts and object code of an entry, or None if there is no valid one."""
    data = None if _mixed else read_file(name)
    return None if data is None else unpacked(name, data)


def unpacked(name: str, data: bytes) -> tuple[dict[str, Any], bytes] | None:
    """Return facts and object code from the file of an entry, or None if it is damaged."""
    head = len(MAGIC) + 32
    content = data[head:]
    if not data.startswith(MAGIC) or _digest(name, content) != data[len(MAGIC) : head]:
        log.warning("featherweight: cache entry %s is damaged and will be replaced", name)
        return None
    facts, _, code = content.partition(b"\n")
    return json.loads(facts), code


def write(name: str, facts: Mapping[str, object], code: bytes) -> None:
    """Store an entry, if the disk allows."""
    if not _mixed:
        write_file(name, packed(name, facts, code))


def packed(name: str, facts: Mapping[str, object], code: bytes) -> bytes:
    """Return the content of an entry's file."""
    content = json.dumps(facts).encode() + b"\n" + code
    return MAGIC + _digest(name, content) + content


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()
