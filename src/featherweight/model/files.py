"""Reading of files: only regular files are opened, because pipes and devices may never end."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from .types import ModelError


class MissingFile(str):
    """The name of a file that a robot file refers to, and that is not where it belongs. It is never looked up again."""

    __slots__ = ()


def require_regular(path: str | os.PathLike[str], where: str = "") -> None:
    """Raise ModelError for pipes and devices; `where` names the element. A path to nothing, or to a folder, passes."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise _irregular(path, where)


def open_regular(path: str | os.PathLike[str], where: str = "") -> BinaryIO:
    """Open a regular file for reading. Raises ModelError for pipes and devices, and OSError as `open` does."""
    require_regular(path, where)  # first: even opening a pipe or a device may have an effect
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115  # the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _irregular(path, where)
    return file


def read_regular(path: str | os.PathLike[str], where: str = "") -> bytes:
    """Return the content of a regular file. Raises as `open_regular` does."""
    with open_regular(path, where) as file:
        return file.read(os.fstat(file.fileno()).st_size)  # files of the system may have no end


def is_mesh_there(path: str) -> bool:
    """Return whether `read_mesh` finds a file that is not the pointer of Git LFS to one."""
    return not isinstance(path, MissingFile) and os.path.isfile(path) and not is_pointer(path)


POINTER, LONGEST_POINTER = b"version https://git-lfs.github.com/spec/", 1024  # first and most bytes
SOUGHT = " (robot.report() lists the folders that were searched)"
FETCH = "a pointer of Git LFS, not the file; fetch the file by `git lfs pull`"


def is_pointer(path: str) -> bool:
    """Return whether a file is the pointer that a repository with Git LFS has in its place."""
    if not os.path.isfile(path) or os.path.getsize(path) > LONGEST_POINTER:
        return False
    with open_regular(path) as file:
        return file.read(len(POINTER)) == POINTER


def read_mesh(path: str) -> bytes:
    """Return the content of a mesh file. Raises ValueError, which names the file, for one that is missing or unreadable."""
    if not is_mesh_there(path):
        missing = isinstance(path, MissingFile)
        raise ValueError(f"{path}: {FETCH if not missing and is_pointer(path) else 'no such file'}{SOUGHT * missing}")
    try:
        return read_regular(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error


def _irregular(path: str | os.PathLike[str], where: str) -> ModelError:
    named_by = f"{where}: " if where else ""
    problem = "a pipe, socket or device, not a file; copy its contents to a file, and name that"
    return ModelError(f"{named_by}{os.fspath(path)}: {problem}")


def _without_waiting(path: str, flags: int) -> int:
    """Open a path, of which another process may have made a pipe, without waiting for the pipe's other end."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
