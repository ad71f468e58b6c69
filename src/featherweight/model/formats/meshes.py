"""Where the mesh files that robots name lie on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..types import Shape, ShapeType

PACKAGES = ("package://", "model://")
SEARCH_PATHS = (("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share"))  # and where packages lie in their folders


def find_mesh(filename: str, folder: Path) -> str:
    """The absolute path of a mesh that a file in `folder` names; the name itself where there is none.

    A package is looked for beside the folder, beside each of those that it lies in, in their share/ (as ROS installs them),
    and then where ROS_PACKAGE_PATH and AMENT_PREFIX_PATH say.
    """
    for path in _candidates(filename, Path(os.path.abspath(folder))):
        if path.is_file():
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


def missing_meshes(shapes: Iterable[Shape]) -> Iterator[tuple[str, str]]:
    """How many mesh files of these shapes were not found, in words."""
    files = dict.fromkeys(s.path for s in shapes if s.type == ShapeType.MESH and s.path)
    if missing := [f for f in files if not os.path.isfile(f)]:
        yield "meshes not found", f"{len(missing)}, the first is '{missing[0]}'"
