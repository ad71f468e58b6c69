"""What readers of shapes share: where the mesh files that robots name lie, and what of the shapes is not used."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..types import Shape, ShapeType
from .xml import shortened

PACKAGES = ("package://", "model://")
SEARCH_PATHS = (("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share"))  # and where packages lie in their folders


class Shapes(NamedTuple):
    """The shapes of a file, and what of them is not used, in words."""

    shapes: tuple[Shape, ...]
    unused: tuple[tuple[str, str], ...]


def shapes_of_file(shapes: Iterable[Shape], unused: Counter[str]) -> Shapes:
    """The shapes with `unused`, which counts by kind what was left out, and with the mesh files that were not found."""
    shapes = tuple(shapes)
    return Shapes(shapes, (*_missing_meshes(shapes), *((kind, f"{count}") for kind, count in unused.items() if count)))


def find_mesh(filename: str, folder: Path) -> str:
    """The absolute path of a mesh that a file in `folder` names; the name itself where there is none.

    A package is looked for beside the folder, beside each of those that it lies in, in their share/ (as ROS installs them),
    and then where ROS_PACKAGE_PATH and AMENT_PREFIX_PATH say.
    """
    for path in _candidates(filename, Path(os.path.abspath(folder))):
        if os.path.isfile(path):  # of names that are too long for a path Path says OSError
            return os.path.abspath(path)
    return filename


def _candidates(filename: str, folder: Path) -> Iterator[Path]:
    prefix = next((p for p in PACKAGES if filename.startswith(p)), None)
    if prefix is None:
        yield folder / filename.removeprefix("file://")
        return
    inside = filename.removeprefix(prefix).lstrip("/")
    package, _, rest = inside.partition("/")
    for parent in (folder, *folder.parents):
        yield parent / inside
        yield parent / "share" / inside
    for variable, below in SEARCH_PATHS:
        for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(entry) / below / inside
            if Path(entry).name == package:
                yield Path(entry) / rest


def _missing_meshes(shapes: Iterable[Shape]) -> Iterator[tuple[str, str]]:
    """How many mesh files of these shapes were not found, in words."""
    files = dict.fromkeys(s.path for s in shapes if s.type == ShapeType.MESH and s.path)
    if missing := [f for f in files if not os.path.isfile(f)]:
        yield "meshes not found", f"{len(missing)}, the first is '{shortened(missing[0])}'"
