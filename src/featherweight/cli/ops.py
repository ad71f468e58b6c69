"""The command that counts operations."""

from __future__ import annotations

from typing import Annotated

import typer

from ..model.types import ModelError
from ..robot.constraints.contact import BilateralContact
from . import tables
from .console import make_console
from .options import RobotFile, of_robot_file

ContactOption = Annotated[
    list[str] | None,
    typer.Option(metavar="FRAME", help="A frame with a 6-D contact, to compare Delassus algorithms; repeatable."),
]


@of_robot_file
def count_operations(
    file: RobotFile,
    contact: ContactOption = None,
) -> None:
    """Count the operations of each function."""
    loaded = file.load()
    console = make_console()
    try:
        delassus = loaded.delassus([BilateralContact(frame) for frame in contact]) if contact else None
    except ValueError as unknown:
        raise ModelError(str(unknown)) from unknown
    console.print(tables.operations_table(loaded.functions))
    if delassus is not None:
        console.print("", tables.delassus_table(delassus), sep="\n")
