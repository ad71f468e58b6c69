"""Object code kept on disk, so that a second process does not compile.

An entry is named by the hash of everything that its content follows from: the engine's own source, the kernel with all that
it calls (`sources`), the model, the function's options, precision, processor and its features, and the versions of LLVM and of
the format. The IR is a function of these, so it need not be made again to find the entry. A file starts with the hash of its
content; one that is cut short or damaged does not match and is made anew. Files are written aside and renamed, so two
processes may write at once. A disk that cannot be written is only slower.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

log = logging.getLogger("featherweight")

MAGIC = b"featherweight object 1\n"


def directory() -> Path:
    """Where entries are kept: `FEATHERWEIGHT_CACHE`, or the platform's folder for caches."""
    chosen = os.environ.get("FEATHERWEIGHT_CACHE")
    if chosen:
        return Path(chosen)
    home = Path(os.path.expanduser("~"))  # a user without a home is no error
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "featherweight"


def _engine_digest() -> str:
    """Hash of every file that makes code of kernels."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(f for room in ("engine", "spatial") for f in (package / room).rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


ENGINE = _engine_digest()  # when it is imported: files that change later are not what runs


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
    try:
        data = (directory() / f"{name}.bin").read_bytes()
    except OSError:
        return None
    head = len(MAGIC) + 32
    content = data[head:]
    if not data.startswith(MAGIC) or hashlib.sha256(content).digest() != data[len(MAGIC) : head]:
        log.warning("featherweight: cache entry %s is damaged and will be made anew", directory() / f"{name}.bin")
        return None
    facts, _, code = content.partition(b"\n")
    return json.loads(facts), code


def write(name: str, facts: dict[str, Any], code: bytes) -> None:
    """Keep an entry, if the disk allows."""
    content = json.dumps(facts).encode() + b"\n" + code
    folder = directory()
    temporary = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(content).digest() + content)
        os.replace(temporary, folder / f"{name}.bin")
    except OSError as error:
        log.info("featherweight: compiled code is not kept in %s: %s", folder, error)
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
