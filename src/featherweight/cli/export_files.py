"""The command that exports functions as files for other programs and machines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..engine.function import CompiledFunction
from ..exporting.export_targets import TARGETS
from ..exporting.library import KINDS, export
from ..model.types import ModelError
from ..names import choose_from
from ..robot.robot import Robot
from .console import make_console
from .options import RobotFile, of_robot_file

FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder for the files.", show_default=False)]
FunctionsOption = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        help="Names separated by commas; frame_placement:FRAME names a frame, NAME.derivative and NAME.pullback derivatives.",
    ),
]
FilesOption = Annotated[str, typer.Option(metavar="KINDS", help=f"Kinds of files, separated by commas: {', '.join(KINDS)}.")]
TargetOption = Annotated[str, typer.Option(metavar="MACHINE", help=f"Target machine: host, {', '.join(TARGETS)}.")]


DERIVED = ("derivative", "pullback", "pushforward")


@of_robot_file
def export_files(
    file: RobotFile,
    folder: FolderArgument,
    functions: FunctionsOption = "forward_dynamics,inverse_dynamics",
    files: FilesOption = "static,source",
    target: TargetOption = "host",
    precision: Annotated[Literal["double", "float"], typer.Option(help="Precision of numbers.")] = "double",
    prefix: Annotated[str, typer.Option(help="Prefix of the functions' names in C.")] = "",
    interface: Annotated[Literal["c", "casadi"], typer.Option(help="Calling convention of the functions.")] = "c",
) -> None:
    """Export functions of a robot as C source, object code and libraries, for this or another machine."""
    loaded = file.load()
    kinds = [kind.strip() for kind in files.split(",") if kind.strip()]
    chosen = _chosen(loaded, functions)
    try:
        paths = export(
            chosen,
            folder,
            robot=loaded,
            files=kinds,
            target=target,
            precision=precision,
            prefix=prefix,
            interface=interface,
        )
    except (ValueError, RuntimeError) as error:
        raise ModelError(str(error)) from error
    _show(paths)


def _chosen(robot: Robot, names: str) -> dict[str, CompiledFunction[Any]]:
    """Return functions by their names in C. Raises ModelError if two names become the same name in C."""
    chosen: dict[str, CompiledFunction[Any]] = {}
    meant: dict[str, str] = {}
    for name in dict.fromkeys(filter(None, map(str.strip, names.split(",")))):
        c_name = re.sub(r"\W+", "_", name, flags=re.ASCII)
        if c_name in chosen:
            raise ModelError(
                f"functions {meant[c_name]!r} and {name!r} would have the same name {c_name}: export them by two commands"
            )
        meant[c_name], chosen[c_name] = name, find_function(robot, name)
    return chosen


def _show(paths: Iterable[Path]) -> None:
    console = make_console()
    for path in paths:
        console.print(f"{path}  {path.stat().st_size} bytes", soft_wrap=True)


def find_function(robot: Robot, name: str) -> CompiledFunction[Any]:
    """Return a function of the robot by its name, with the frame and the derivative in the name.

    Raises ModelError for unknown names.
    """
    own, colon, frame = name.partition(":")
    own, _, derived = own.partition(".")
    if frame.rpartition(".")[2] in DERIVED:  # frame names may contain dots
        frame, _, derived = frame.rpartition(".")
    f = None if own.startswith("_") else getattr(robot, own, None)
    if colon and isinstance(f, CompiledFunction):
        raise ModelError(f"function {name!r}: {own} takes no frame")
    try:
        f = f(frame) if frame and callable(f) and not isinstance(f, CompiledFunction) else f
    except (TypeError, ValueError) as error:
        raise ModelError(f"function {name!r}: {error}") from error
    if not isinstance(f, CompiledFunction):
        raise ModelError(f"robot {robot.name!r} has no function {choose_from(name, [*robot.functions])}")
    if not derived:
        return f
    if derived not in DERIVED:
        raise ModelError(f"function {name!r}: the derivatives of a function are derivative, pullback and pushforward")
    return f.derivative() if derived == "derivative" else getattr(f, derived)
