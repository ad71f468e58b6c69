"""Functions for all readers of shapes: they find the mesh files that robots name, and list what of the shapes is not used."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..types import Shape, ShapeType
from .packages import NONE_GIVEN, Packages, package_of
from .xml import shortened

SCHEME = re.compile(r"[A-Za-z][\w+.-]*:")  # of a URI
QUOTED = 200  # characters of a mesh's name


class Shapes(NamedTuple):
    """The shapes of a file, and what of them is not used, in words."""

    shapes: tuple[Shape, ...]
    unused: tuple[tuple[str, str], ...]


def shapes_of_file(
    shapes: Iterable[Shape], unused: Counter[str], folder: Path | None = None, packages: Packages = NONE_GIVEN
) -> Shapes:
    """The shapes with `unused`, which counts by kind what was left out, and with the mesh files that were not found."""
    shapes = tuple(shapes)
    missing = _missing_meshes(shapes, folder, packages)
    return Shapes(shapes, (*missing, *((kind, f"{count}") for kind, count in unused.items() if count)))


def find_mesh(filename: str, folder: Path | None, packages: Packages = NONE_GIVEN) -> str:
    """The absolute path of a mesh that a file in `folder` names; the name itself where there is none.

    A relative name lies in the folder, that of a package where `packages` say. Text that lies nowhere has no folder.
    """
    for path in _candidates(filename, None if folder is None else Path(os.path.abspath(folder)), packages):
        if os.path.isfile(path):  # of names that are too long for a path Path says OSError
            return os.path.abspath(path)
    return filename


def _candidates(filename: str, folder: Path | None, packages: Packages) -> Iterator[Path]:
    package = package_of(filename)
    if package is not None:
        yield from (found / package[1] for found in packages.folders(package[0], folder))
        return
    path = local_path(filename)
    if folder is not None:
        yield folder / path
    elif os.path.isabs(path):
        yield Path(path)


def local_path(filename: str, windows: bool = os.name == "nt") -> str:
    """The path that a name says, with `file://` before it or without; on Windows a slash comes before the drive there."""
    path = filename.removeprefix("file://")
    return path[1:] if windows and path != filename and re.match("/[A-Za-z]:", path) else path


def _missing_meshes(shapes: Iterable[Shape], folder: Path | None, packages: Packages) -> Iterator[tuple[str, str]]:
    """How many mesh files of these shapes were not found, in words."""
    files = dict.fromkeys(s.path for s in shapes if s.type == ShapeType.MESH and s.path)
    if missing := [f for f in files if not (os.path.isabs(f) and os.path.isfile(f))]:
        first = f"'{shortened(missing[0], QUOTED)}'{_remedy(missing[0], folder, packages)}"
        yield "meshes not found", f"{len(missing)}, the first is {first}"


def _remedy(filename: str, folder: Path | None, packages: Packages) -> str:
    """Where a missing mesh was sought, and what to do, where a user can do more than to supply the file."""
    package = package_of(filename)
    if package is not None:
        near = None if folder is None else Path(os.path.abspath(folder))
        found = next(packages.folders(package[0], near), None)
        return f"; {packages.not_found(package[0], near)}" if found is None else f"; it is not in {found}"
    relative = not os.path.isabs(filename) and not SCHEME.match(filename)
    return "; the name is relative, and the text lies in no folder: pass folder=" if relative and folder is None else ""
