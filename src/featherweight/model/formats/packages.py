"""Lookup of the packages that robot files name: package://NAME/..., model://NAME/..., and xacro's $(find NAME)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from ...checks import PATH, argument, either, list_of
from ..types import ModelError
from .xml import parse_xml, shortened

PREFIXES = ("package:/", "model:/")  # MuJoCo passes on one of the two slashes
VARIABLES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH")
QUOTED = 120  # most characters of names of packages and folders in a message
MANIFEST = "package.xml"  # file that contains a package's name in ROS

PackagePath = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


FOLDERS = either([PATH, list_of(PATH)])


@dataclass(frozen=True)
class Packages:
    """The search path of packages: the folders of `path`, those in ROS's and Gazebo's variables, and those around a file.

    Each folder is a package itself (by its package.xml or its name), or contains packages, directly or in share/, as ROS
    installs them.
    """

    path: tuple[Path, ...] = ()

    @classmethod
    def of(cls, package_path: PackagePath | None) -> Packages:
        """Return the packages of the user's argument `package_path`. Raises ModelError for a path that is not a folder."""
        if package_path is None:
            return cls()
        found = argument("package_path", package_path, FOLDERS)
        folders = [os.path.abspath(os.fspath(entry)) for entry in ([found] if isinstance(found, str | os.PathLike) else found)]
        for folder in folders:
            if not os.path.isdir(folder):
                raise ModelError(
                    f"package_path: {shortened(folder)}: no such folder; give the folder of a package, or of several"
                )
        return cls(tuple(map(Path, folders)))

    def folders(self, name: str, near: Path | None) -> Iterator[Path]:
        """Yield the candidate folders of a package, the most likely first; `near` is the folder of the file that names it."""
        if name in ("", ".", "..") or PureWindowsPath(name).name != name:  # a name with a separator or a drive, on any system
            return
        for place in self._places(near):
            for folder in _in(place, name):
                if os.path.isdir(folder):  # Path raises OSError for names that are too long
                    yield folder

    def _places(self, near: Path | None) -> Iterator[Path]:
        yield from self.path
        for variable in VARIABLES:
            yield from map(Path, _entries(variable))
        if near is not None:
            yield from (near, *near.parents)

    def not_found(self, name: str, near: Path | None) -> str:
        """Describe where a missing package was searched, and a remedy."""
        sought = [f"package_path ({_listed(self.path)})"]
        sought += [f"{variable} ({_listed(_entries(variable))})" for variable in VARIABLES]
        sought += [] if near is None else [f"{near} and the folders above it"]
        return (
            f"package {shortened(name, QUOTED)!r} is in none of {', '.join(sought)}; "
            "pass package_path=, the folder of the package or the one that it lies in"
        )


NONE_GIVEN = Packages()


def package_of(filename: str) -> tuple[str, str] | None:
    """Return the package at the beginning of a file's name, and the rest of the name; None without a package."""
    name = without_package_prefix(filename)
    if name is None:
        return None
    package, _, rest = name.partition("/")
    return package, rest


def without_package_prefix(filename: str) -> str | None:
    """Return a file's name without package://, or None if it does not begin so."""
    prefix = next((p for p in PREFIXES if filename.startswith(p)), None)
    return None if prefix is None else filename.removeprefix(prefix).lstrip("/")


def _entries(variable: str) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def _listed(folders: Iterable[str | os.PathLike[str]]) -> str:
    return shortened(", ".join(map(str, folders))) or "none"


def _in(place: Path, name: str) -> Iterator[Path]:
    if _written_name(place) == name:  # first: it may contain a Python package of the same name
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
    except (ModelError, OSError):  # another package's file, which does not concern this robot
        return None
