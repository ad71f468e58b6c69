"""The folder of the cache: where it is, whose it is, and how large it grows.

Machine code in it runs as it is found. So nothing is read that another user could have written: the folder and its files must
be the user's own and writable by nobody else. When the folder exceeds a bound, the files that have not been used for the
longest time are removed.
"""

from __future__ import annotations

import contextlib
import logging
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
FULL = 0.8  # of the bound, which is left when it is passed
CHECKED = 1 / 16  # of the bound, that a process writes before it looks how large the folder is
EVERY = 3600.0  # seconds, in which some process looks anyway; and those after which a file that is not finished never will be
STAMP = "looked"

_warned: set[str] = set()
_written = 0  # bytes by this process, since it looked


def directory() -> Path | None:
    """Where entries are kept: `FEATHERWEIGHT_CACHE`, or the platform's folder for caches; None for a user without a home."""
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
    """Bytes that the folder may hold: `FEATHERWEIGHT_CACHE_SIZE`, such as 500M or 2 GB, or a gigabyte; 0 keeps nothing."""
    text = os.environ.get("FEATHERWEIGHT_CACHE_SIZE", "").strip()
    if not text:
        return DEFAULT_BOUND
    number = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([KMGT]?)I?B?", text.upper())
    if number is None:
        _warn(f"FEATHERWEIGHT_CACHE_SIZE={text} is not a size such as 500M or 2 GB; the cache holds a gigabyte at most")
        return DEFAULT_BOUND
    return int(float(number[1]) * UNITS[number[2]])


def usable() -> Path | None:
    """The folder, made where there is none, if it is fit to keep code in; else None, and a warning says why."""
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
    """The folder and those that it is in, for the user alone."""
    for missing in [p for p in (*reversed(folder.parents), folder) if not p.exists()]:
        with contextlib.suppress(FileExistsError):  # another process was quicker
            missing.mkdir(0o700)


def read_file(name: str) -> bytes | None:
    """Return the content of a file, or None if there is no regular file of the user's own. Reading counts as a use."""
    folder = usable()
    if folder is None:
        return None
    path = folder / f"{name}{SUFFIX}"
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            info = os.fstat(file.fileno())
            reason = _foreign(info) or ("" if stat.S_ISREG(info.st_mode) else "is no file")
            if reason:
                _warn(f"the file {path} {reason}: it is not used")
                return None
            with contextlib.suppress(OSError):  # a disk that cannot be written
                os.utime(file.fileno() if os.utime in os.supports_fd else path)
            return file.read()
    except OSError:
        return None


def write_file(name: str, data: bytes) -> None:
    """Keep a file, if the disk allows: written aside and renamed, so that others see all of it or nothing."""
    global _written
    folder = usable()
    if folder is None:
        return
    temporary = None
    try:
        import tempfile  # slow to import, and needed where something is compiled

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
    """Return the files of the cache, least recently used first; other files in the folder are left out."""
    files = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((SUFFIX, UNFINISHED)):
                with contextlib.suppress(OSError):  # gone meanwhile
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode):
                        files.append(Kept(info.st_mtime, info.st_size, Path(entry.path)))
    return sorted(files)


def trim(folder: Path) -> None:
    """Remove what is beyond the bound, and what processes left that were killed while they wrote."""
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
    """Why something on disk may hold what another user wrote; nothing if it may not. Windows keeps a user's folders apart."""
    if not hasattr(os, "geteuid"):
        return ""
    if info.st_uid != os.geteuid():
        return "belongs to another user"
    return "may be written by other users" if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def _warn(message: str) -> None:
    """Once a process."""
    if message not in _warned:
        _warned.add(message)
        log.warning("featherweight: %s", message)
