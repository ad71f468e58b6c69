"""Arguments and options that commands share, and the robot that they describe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import IO, Annotated, Any, Concatenate, Literal, NamedTuple, ParamSpec, get_type_hints

import typer

from ..model.description import Description
from ..model.types import ModelError
from ..robot.build import load, read
from ..robot.robot import Robot

Base = Literal["fixed", "floating"]
P = ParamSpec("P")

STANDARD_INPUT = Path("-")

OutputOption = Annotated[Path, typer.Option(metavar="DIR", help="Folder for the picture.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="Number of threads for a batch.", show_default="all processors")]
RepeatsOption = Annotated[int, typer.Option(min=1, help="Number of measurements; the result is their median.")]


class RobotFile(NamedTuple):
    """The robot of a command: its file, its base, and options for reading the file.

    Each field is a parameter of the command.
    """

    robot: Annotated[
        Path,
        typer.Argument(metavar="ROBOT", help="A .urdf, .xml (MJCF) or .xacro file; - for standard input.", show_default=False),
    ]
    base: Annotated[Base, typer.Option(help="Base of the robot: fixed to the world or floating.")] = "fixed"
    mimic: Annotated[
        Literal["follow", "independent"], typer.Option(help="URDF mimic joints: follow their leaders, or move independently.")
    ] = "follow"
    unsupported: Annotated[
        Literal["report", "raise"],
        typer.Option(help="Unsupported or odd contents of files: report them and read on, or raise an error."),
    ] = "report"
    package_path: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Folder for package://NAME/: a package, or a folder of packages; repeatable."),
    ] = None
    xacro_arg: Annotated[
        list[str] | None,
        typer.Option("--xacro-arg", metavar="NAME=VALUE", help="An argument of a xacro file; repeatable."),
    ] = None

    def load(self) -> Robot:
        """Return the robot. Raises ModelError if the file is invalid."""
        return load(self._opened(), self.base, **self._keywords())

    def read(self, equalities: str | None = None) -> Description:
        """Return the description in the file. Raises ModelError if the file is invalid."""
        return read(self._opened(), equalities=equalities, **self._keywords())

    @property
    def stem(self) -> str:
        """Base name for output files."""
        return "robot" if self.robot == STANDARD_INPUT else self.robot.stem

    def _opened(self) -> Path | IO[bytes]:
        return sys.stdin.buffer if self.robot == STANDARD_INPUT else self.robot

    def _keywords(self) -> dict[str, Any]:
        """Return the keyword arguments of `load` and `read`. Names in standard input are relative to the shell's folder."""
        return {
            "folder": "." if self.robot == STANDARD_INPUT else None,
            "package_path": self.package_path,
            "xacro_args": None if self.xacro_arg is None else dict(map(_assignment, self.xacro_arg)),
            "mimic": self.mimic,
            "unsupported": self.unsupported,
        }


def of_robot_file(command: Callable[Concatenate[RobotFile, P], None]) -> Callable[..., None]:
    """Give a command a signature for Typer that has the fields of `RobotFile` and the command's own parameters.

    If a field and a parameter have the same name, the parameter replaces the field.
    """
    _, *parameters = signature(command, eval_str=True).parameters.values()
    own = {x.name: x.replace(kind=Parameter.KEYWORD_ONLY) for x in parameters}
    hints, defaults = get_type_hints(RobotFile, include_extras=True), RobotFile._field_defaults
    of_file = {
        name: Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name, Parameter.empty), annotation=hints[name])
        for name in RobotFile._fields
    }

    @wraps(command)
    def called(**given: Any) -> None:
        file = RobotFile(**{name: given.pop(name) for name in of_file if name not in own})
        command(file, **given)  # type: ignore[call-arg]

    shown = {**of_file, **own}
    called.__signature__ = Signature(list(shown.values()))  # type: ignore[attr-defined]
    called.__annotations__ = {name: x.annotation for name, x in shown.items()}
    return called


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ModelError(f"--xacro-arg {text}: must have the form NAME=VALUE")
    return name.removesuffix(":"), value  # xacro's command line writes NAME:=VALUE
