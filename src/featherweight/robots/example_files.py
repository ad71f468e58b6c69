"""Example robot files: those of the package example-robot-data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePosixPath

from ..checks import checked
from ..extras import install_command
from ..names import listed, suggestion

PACKAGE, FOLDER = "example-robot-data", "robots"
ROBOTS = (".urdf", ".sdf")
KINDS = (*ROBOTS, ".srdf")
CHANGES = ("approximate", "unconstrained")  # functions of featherweight.robots that change a description


@checked
def example(name: str) -> Path:
    """Return the path of an example robot's file: `featherweight.load(featherweight.example("panda"))`.

    The files are those of the package example-robot-data (0.4 GB with meshes; the extra `robots` installs it): arms ("panda",
    "ur5_robot"), hands ("allegro_right_hand"), quadrupeds ("go2", "hyq_no_sensors"), humanoids ("talos_reduced",
    "g1_29dof_rev_1_0"), and others, such as "cassie" in SDF. The name of a robot is the name of its URDF or SDF file without
    the suffix; "go2.srdf" is the SRDF file in the same folder. If a file name occurs more than once, its name includes folders,
    as in "anymal_c_simple_description/urdf/anymal".

    `featherweight.robots` has further robots, as functions that return a `Description`; they need no files.

    Raises ValueError, which lists the known names, for an unknown name, and ImportError without that package.
    """
    files = _files()
    path = files.get(name) or next((files[x] for x in map(name.removesuffix, ROBOTS) if x in files), None)
    if path is None:
        raise ValueError(_unknown(name, [x for x in files if not x.endswith(KINDS)]))
    return path


def example_names() -> list[str]:
    """Return the names of example robots; none without the package."""
    try:
        return [x for x in _files() if not x.endswith(KINDS)]
    except ImportError:
        return []


def _unknown(name: str, known: list[str]) -> str:
    from .. import robots

    made = [x for x in robots.__all__ if x not in CHANGES]
    if name in made:
        return f"the robot {name!r} has no file, a function makes it: featherweight.build(featherweight.robots.{name}(...))"
    there = f"there are {listed(sorted(known))}; and as functions of featherweight.robots {', '.join(made)}"
    return f"there is no example robot {name!r}{suggestion(name, [*known, *made])}; {there}"


def _files() -> dict[str, Path]:
    """The paths of all robots by the names that `example` takes."""
    from importlib import metadata  # imported on demand, because the import is slow

    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise ImportError(f"the example robots are in the package {PACKAGE}: {install_command('robots')}") from None
    found = {_within(file): Path(str(file.locate())).resolve() for file in files if file.suffix in KINDS}
    count = Counter(file.name for file in found)
    return {_name(PurePosixPath(file.name) if count[file.name] == 1 else file): path for file, path in found.items()}


def _within(file: PurePosixPath) -> PurePosixPath:
    """Return the path relative to the folder of all robots."""
    return PurePosixPath(*file.parts[file.parts.index(FOLDER) + 1 :])


def _name(file: PurePosixPath) -> str:
    return str(file.with_suffix("") if file.suffix in ROBOTS else file)
