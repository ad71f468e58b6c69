"""The command that counts operations."""

from __future__ import annotations

from typing import Annotated

import typer

from ..model.types import ModelError
from ..robot.constraints.contact import BilateralContact
from . import tables
from .console import make_console
from .options import (
    Base,
    BaseOption,
    Mimic,
    MimicOption,
    PackagePathOption,
    Reading,
    RobotPath,
    UnsupportedElements,
    UnsupportedOption,
    XacroOption,
    load_robot,
)

ContactOption = Annotated[
    list[str] | None,
    typer.Option(metavar="FRAME", help="A frame with a 6-D contact; once for each contact. Compares Delassus algorithms."),
]


def count_operations(
    robot: RobotPath,
    base: BaseOption = Base.FIXED,
    mimic: MimicOption = Mimic.FOLLOW,
    unsupported: UnsupportedOption = UnsupportedElements.REFUSE,
    package_path: PackagePathOption = None,
    xacro_arg: XacroOption = None,
    contact: ContactOption = None,
) -> None:
    """Count the operations of each function exactly."""
    loaded = load_robot(robot, base, Reading(package_path, xacro_arg, mimic, unsupported))
    console = make_console()
    try:
        delassus = loaded.delassus([BilateralContact(frame) for frame in contact]) if contact else None
    except ValueError as unknown:
        raise ModelError(str(unknown)) from unknown
    console.print(tables.operations_table(loaded))
    if delassus is not None:
        console.print("", tables.delassus_table(delassus), sep="\n")
