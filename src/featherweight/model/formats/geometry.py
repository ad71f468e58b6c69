"""Common functions of shape readers: they find mesh files, and list the unused parts of shapes."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from ..files import FETCH, MissingFile, is_mesh_there, is_pointer
from ..types import Shape, ShapeType
from .packages import NONE_GIVEN, Packages, package_of, without_package_prefix
from .xml import shortened

SCHEME = re.compile(r"[A-Za-z][\w+.-]*:")  # scheme of a URI
QUOTED = 200  # most characters of a mesh's name in a message


class Shapes(NamedTuple):
    """The shapes of a file, and their unused parts, in words."""

    shapes: tuple[Shape, ...]
    unused: tuple[tuple[str, str], ...]


def shapes_of_file(
    shapes: Iterable[Shape], unused: Counter[str], folder: Path | None = None, packages: Packages = NONE_GIVEN
) -> Shapes:
    """Return the shapes with `unused`, which counts the parts left out and the mesh files not found, by kind."""
    shapes = tuple(shapes)
    missing = _missing_meshes(shapes, folder, packages)
    return Shapes(shapes, (*missing, *((kind, f"{count}") for kind, count in unused.items() if count)))


def find_mesh(filename: str, folder: Path | None, packages: Packages = NONE_GIVEN) -> str:
    """Return the absolute path of a mesh that a file in `folder` names, or the name as a `MissingFile` if there is none.

    A relative name refers to the folder, a package name to `packages`. Text without a file has no folder. Backslashes separate
    folders where no file has them in its name, and %20 is a blank where no file has it.
    """
    near = None if folder is None else Path(os.path.abspath(folder))
    for name in dict.fromkeys((filename, filename.replace("\\", "/"), unquote(filename))):
        for path in _candidates(name, near, packages):
            if os.path.isfile(path):  # Path raises OSError for names that are too long
                return os.path.abspath(path)
    return MissingFile(filename)


def _candidates(filename: str, folder: Path | None, packages: Packages) -> Iterator[Path]:
    package = package_of(filename)
    if package is not None:
        yield from (found / package[1] for found in packages.folders(package[0], folder))
        name = without_package_prefix(filename) or ""  # package:///part.stl: a package without a name
        yield from (place / name for place in (*packages.path, *([] if folder is None else [folder])))
        return
    path = local_path(filename)
    if folder is not None:
        yield folder / path
    elif os.path.isabs(path):
        yield Path(path)


def local_path(filename: str, windows: bool = os.name == "nt") -> str:
    """Return the path in a name with or without `file://`; on Windows, a slash precedes the drive in a URI."""
    path = filename.removeprefix("file://")
    return path[1:] if windows and path != filename and re.match("/[A-Za-z]:", path) else path


def _missing_meshes(shapes: Iterable[Shape], folder: Path | None, packages: Packages) -> Iterator[tuple[str, str]]:
    """Describe how many mesh files of these shapes were not found."""
    files = dict.fromkeys(s.path for s in shapes if s.type == ShapeType.MESH and s.path)
    if missing := [f for f in files if not is_mesh_there(f)]:
        first = f"'{shortened(missing[0], QUOTED)}'{_remedy(missing[0], folder, packages)}"
        yield "meshes not found", f"{len(missing)}, the first is {first}"


def _remedy(filename: str, folder: Path | None, packages: Packages) -> str:
    """Describe where a missing mesh was searched, and a remedy if there is one besides supplying the file."""
    if not isinstance(filename, MissingFile) and is_pointer(filename):
        return f", {FETCH}"
    package = package_of(filename)
    if package is not None:
        near = None if folder is None else Path(os.path.abspath(folder))
        found = next(packages.folders(package[0], near), None)
        return f"; {packages.not_found(package[0], near)}" if found is None else f"; it is not in {found}"
    relative = not os.path.isabs(filename) and not SCHEME.match(filename)
    return "; the name is relative, but the text has no folder: pass folder=" if relative and folder is None else ""
