"""The folder of the cache: its location, ownership and size.

Machine code in the folder runs without further checks. Therefore nothing is read that another user could have written: the
folder and its files must belong to the user and be writable by nobody else. When the folder exceeds its size limit, the least
recently used files are removed.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger("featherweight")

SUFFIX, UNFINISHED = ".bin", ".part"
DEFAULT_BOUND = 1_000_000_000  # bytes
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
FULL = 0.8  # fraction of the limit to which the folder is reduced
CHECKED = 1 / 16  # fraction of the limit that a process writes between checks of the size
EVERY = 3600.0  # [s] longest time between checks; also the age from which an unfinished file is abandoned
STAMP = "looked"
QUOTED = 40  # most characters of an invalid size in a message

_warned: set[str] = set()
_written = 0  # bytes written by this process since its last check


def directory() -> Path | None:
    """Return the folder of the cache: `FEATHERWEIGHT_CACHE`, or the platform's cache folder; None for a user without a home."""
    chosen = os.environ.get("FEATHERWEIGHT_CACHE")
    if chosen:
        return Path(chosen).absolute()
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "featherweight" if base.is_absolute() else None


def bound() -> int:
    """Return the size limit in bytes: `FEATHERWEIGHT_CACHE_SIZE`, such as 500M or 2 GB; default 1 GB. 0 disables the cache."""
    text = os.environ.get("FEATHERWEIGHT_CACHE_SIZE", "").strip()
    if not text:
        return DEFAULT_BOUND
    number = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([KMGT]?)I?B?", text.upper())
    size = math.nan if number is None else float(number[1]) * UNITS[number[2]]
    if not math.isfinite(size):
        given = f"{text[:QUOTED]}{'…' * (len(text) > QUOTED)}"
        _warn(f"FEATHERWEIGHT_CACHE_SIZE={given} is not a size such as 500M or 2 GB; the cache holds a gigabyte at most")
        return DEFAULT_BOUND
    return int(size)


def usable() -> Path | None:
    """Return the folder, created if necessary. If it is not safe for code, warn and return None."""
    folder = directory()
    if folder is None or bound() == 0:
        return None
    try:
        if not folder.is_dir():
            _make(folder)
        reason = _foreign(folder.stat())
    except OSError as error:
        log.info("featherweight: compiled code is not kept in %s: %s", folder, error)
        return None
    if reason:
        _warn(
            f"the folder {folder} {reason}, and code from it would run: compiled code is neither read from it nor kept in it. "
            "Remove it, or let FEATHERWEIGHT_CACHE name a folder of your own that nobody else may write to (chmod 700)"
        )
        return None
    return folder


def _make(folder: Path) -> None:
    """Create the folder and its parents, for the user alone."""
    for missing in [p for p in (*reversed(folder.parents), folder) if not p.exists()]:
        with contextlib.suppress(FileExistsError):  # another process was faster
            missing.mkdir(0o700)


def read_file(name: str) -> bytes | None:
    """Return the content of a file, or None unless it is a regular file of the user. Reading counts as a use."""
    folder = usable()
    if folder is None:
        return None
    path = folder / f"{name}{SUFFIX}"
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            info = os.fstat(file.fileno())
            reason = _foreign(info) or ("" if stat.S_ISREG(info.st_mode) else "is not a file")
            if reason:
                _warn(f"the file {path} {reason}: it is not used")
                return None
            with contextlib.suppress(OSError):  # a read-only disk
                os.utime(file.fileno() if os.utime in os.supports_fd else path)
            return file.read()
    except OSError:
        return None


def write_file(name: str, data: bytes) -> None:
    """Store a file, if the disk allows.

    It is written under another name and renamed, so that other processes see all or nothing.
    """
    global _written
    folder = usable()
    if folder is None:
        return
    temporary = None
    try:
        import tempfile  # slow to import, and only needed after a compilation

        handle, temporary = tempfile.mkstemp(dir=folder, suffix=UNFINISHED)  # which only the user may read and write
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, folder / f"{name}{SUFFIX}")
    except OSError as error:
        log.info("featherweight: compiled code is not kept in %s: %s", folder, error)
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return
    _written += len(data)
    if _written > CHECKED * bound() or _not_looked_at_lately(folder):
        _written = 0
        trim(folder)


class Kept(NamedTuple):
    """A file of the cache: when it was last used [s since 1970], and its size in bytes."""

    used: float
    size: int
    path: Path


def kept_files(folder: Path) -> list[Kept]:
    """Return the files of the cache, least recently used first; ignore other files in the folder."""
    files = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((SUFFIX, UNFINISHED)):
                with contextlib.suppress(OSError):  # removed in the meantime
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode):
                        files.append(Kept(info.st_mtime, info.st_size, Path(entry.path)))
    return sorted(files)


def trim(folder: Path) -> None:
    """Remove files beyond the limit, and unfinished files of killed processes."""
    with contextlib.suppress(OSError):
        (folder / STAMP).touch()
    files, now = kept_files(folder), time.time()
    dead = [f for f in files if f.path.suffix == UNFINISHED and f.used < now - EVERY]
    live = [f for f in files if f.path.suffix == SUFFIX]
    total = sum(f.size for f in live)
    if total > bound():
        for file in live:
            if total <= FULL * bound():
                break
            dead.append(file)
            total -= file.size
    remove_files(dead)


def remove_files(files: list[Kept]) -> None:
    """Remove files; skip those that do not exist or cannot be removed."""
    for file in files:
        with contextlib.suppress(OSError):
            file.path.unlink()


def _not_looked_at_lately(folder: Path) -> bool:
    try:
        return (folder / STAMP).stat().st_mtime < time.time() - EVERY
    except OSError:
        return True


def _foreign(info: os.stat_result) -> str:
    """Return the reason why a file or folder may contain data of another user, or "". Windows separates users' folders."""
    if not hasattr(os, "geteuid"):
        return ""
    if info.st_uid != os.geteuid():
        return "belongs to another user"
    return "may be written by other users" if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def _warn(message: str) -> None:
    """Warn once per process."""
    if message not in _warned:
        _warned.add(message)
        log.warning("featherweight: %s", message)
