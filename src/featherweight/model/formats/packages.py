"""Where the packages lie that robot files name: package://NAME/..., model://NAME/..., and xacro's $(find NAME)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from ..types import ModelError
from .xml import parse_xml, shortened

PREFIXES = ("package:/", "model:/")  # MuJoCo hands on one slash of the two
VARIABLES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH")
QUOTED = 120  # characters of a package's name, and of those of folders
MANIFEST = "package.xml"  # where ROS writes a package's name

PackagePath = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True)
class Packages:
    """Where packages are sought: in the folders of `path`, in those that ROS's and Gazebo's variables name, and around a file.

    Each folder is a package itself, by its package.xml or else by its name, or holds packages, directly or in share/, as ROS
    installs them.
    """

    path: tuple[Path, ...] = ()

    @classmethod
    def of(cls, package_path: PackagePath | None) -> Packages:
        """Return the packages of the argument `package_path` of users; raises ModelError for a path that is no folder."""
        if package_path is None:
            return cls()
        given = [package_path] if isinstance(package_path, str | os.PathLike) else list(package_path)
        folders = [os.path.abspath(os.fspath(entry)) for entry in given]
        for folder in folders:
            if not os.path.isdir(folder):
                raise ModelError(f"package_path: {shortened(folder)}: no such folder; give that of a package, or of several")
        return cls(tuple(map(Path, folders)))

    def folders(self, name: str, near: Path | None) -> Iterator[Path]:
        """The folders that a package of this name may be, the likeliest first; `near` is that of the file that names it."""
        if name in ("", ".", "..") or PureWindowsPath(name).name != name:  # one with a separator or a drive, on any system
            return
        for place in self._places(near):
            for folder in _in(place, name):
                if os.path.isdir(folder):  # of names that are too long for a path Path says OSError
                    yield folder

    def _places(self, near: Path | None) -> Iterator[Path]:
        yield from self.path
        for variable in VARIABLES:
            yield from map(Path, _entries(variable))
        if near is not None:
            yield from (near, *near.parents)

    def not_found(self, name: str, near: Path | None) -> str:
        """Words for a package that is nowhere: where it was sought, and what to do."""
        sought = [f"package_path ({_listed(self.path)})"]
        sought += [f"{variable} ({_listed(_entries(variable))})" for variable in VARIABLES]
        sought += [] if near is None else [f"{near} and the folders above it"]
        return (
            f"package {shortened(name, QUOTED)!r} is in none of {', '.join(sought)}; "
            "pass package_path=, the folder of the package or the one that it lies in"
        )


NONE_GIVEN = Packages()


def package_of(filename: str) -> tuple[str, str] | None:
    """The package that a file's name begins with, and the rest of it; None for a name without."""
    prefix = next((p for p in PREFIXES if filename.startswith(p)), None)
    if prefix is None:
        return None
    package, _, rest = filename.removeprefix(prefix).lstrip("/").partition("/")
    return package, rest


def _entries(variable: str) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def _listed(folders: Iterable[str | os.PathLike[str]]) -> str:
    return shortened(", ".join(map(str, folders))) or "none"


def _in(place: Path, name: str) -> Iterator[Path]:
    if _written_name(place) == name:  # first: a package of Python's may lie in it, under the same name
        yield place
    yield place / name
    yield place / "share" / name
    if place.name == name:
        yield place


def _written_name(folder: Path) -> str | None:
    manifest = os.path.join(folder, MANIFEST)
    if not os.path.isfile(manifest):
        return None
    try:
        return parse_xml(manifest).findtext("name", "").strip()
    except (ModelError, OSError):  # the file of another, which says nothing of this robot
        return None
