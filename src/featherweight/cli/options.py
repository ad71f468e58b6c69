"""Arguments and options that commands share, and the robot that they stand for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..model.formats.unsupported import REFUSE, REPORT
from ..robot.build import load
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


RobotPath = Annotated[Path, typer.Argument(metavar="ROBOT", help="A .urdf or .xml (MJCF) file.", show_default=False)]
BaseOption = Annotated[Base, typer.Option(help="What carries the root: nothing, or a free-flyer.")]
MimicOption = Annotated[Mimic, typer.Option(help="URDF joints that follow others: they do, or move by themselves.")]
UnsupportedOption = Annotated[
    UnsupportedElements, typer.Option(help="What MJCF files ask for and is not supported: an error, or left out and listed.")
]
OutputOption = Annotated[Path, typer.Option(metavar="DIR", help="Where the picture goes.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="Threads of a batch.", show_default="all processors")]
RepeatsOption = Annotated[int, typer.Option(min=1, help="Measurements of which the median is taken.")]


def load_robot(path: Path, base: Base, mimic: Mimic, unsupported: UnsupportedElements) -> Robot:
    """The robot of a file; raises ModelError where it cannot be used."""
    return load(path, base.value, mimic=mimic.value, unsupported=unsupported.value)
