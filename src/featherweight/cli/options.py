"""Arguments and options that commands share, and the robot that they stand for."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple

import typer

from ..model.description import Description
from ..model.formats.unsupported import REFUSE, REPORT
from ..model.types import ModelError
from ..robot.build import load, read
from ..robot.robot import Robot


class Base(StrEnum):
    """How the root hangs on the world."""

    FIXED = "fixed"
    FLOATING = "floating"


class Mimic(StrEnum):
    """What becomes of joints that follow others."""

    FOLLOW = "follow"
    INDEPENDENT = "independent"


class UnsupportedElements(StrEnum):
    """What becomes of elements that are not supported."""

    REFUSE = REFUSE
    REPORT = REPORT


STANDARD_INPUT = Path("-")

RobotPath = Annotated[
    Path,
    typer.Argument(metavar="ROBOT", help="A .urdf, .xml (MJCF) or .xacro file; - for standard input.", show_default=False),
]
PackagePathOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="DIR", help="Where package://NAME/ is: a package, or what packages lie in; may be repeated."),
]
XacroOption = Annotated[
    list[str] | None,
    typer.Option("--xacro-arg", metavar="NAME=VALUE", help="An argument of a xacro file; may be repeated."),
]
BaseOption = Annotated[Base, typer.Option(help="What carries the root: nothing, or a free-flyer.")]
MimicOption = Annotated[Mimic, typer.Option(help="URDF joints that follow others: they do, or move by themselves.")]
UnsupportedOption = Annotated[
    UnsupportedElements, typer.Option(help="What MJCF files ask for and is not supported: an error, or left out and listed.")
]
OutputOption = Annotated[Path, typer.Option(metavar="DIR", help="Where the picture goes.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="Threads of a batch.", show_default="all processors")]
RepeatsOption = Annotated[int, typer.Option(min=1, help="Measurements of which the median is taken.")]


class Reading(NamedTuple):
    """What of the options says how files are read."""

    package_path: list[Path] | None
    xacro_arg: list[str] | None
    mimic: Mimic
    unsupported: UnsupportedElements

    def keywords(self, path: Path) -> dict[str, Any]:
        """Those of `load` and `read`; relative names of standard input are those of the shell."""
        return {
            "folder": "." if path == STANDARD_INPUT else None,
            "package_path": self.package_path,
            "xacro_args": None if self.xacro_arg is None else dict(map(_assignment, self.xacro_arg)),
            "mimic": self.mimic.value,
            "unsupported": self.unsupported.value,
        }


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ModelError(f"--xacro-arg {text}: it is not NAME=VALUE")
    return name.removesuffix(":"), value  # xacro's own command line writes NAME:=VALUE


def opened(path: Path) -> Path | IO[bytes]:
    """The file, or standard input."""
    return sys.stdin.buffer if path == STANDARD_INPUT else path


def load_robot(path: Path, base: Base, reading: Reading) -> Robot:
    """The robot of a file; raises ModelError where it cannot be used."""
    return load(opened(path), base.value, **reading.keywords(path))


def read_robot(path: Path, reading: Reading) -> Description:
    """What is in a file; raises ModelError where it cannot be used."""
    return read(opened(path), **reading.keywords(path))


def stem_of(path: Path) -> str:
    """For the names of files that are written."""
    return "robot" if path == STANDARD_INPUT else path.stem
