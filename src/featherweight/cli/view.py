"""The command that opens the window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..model.types import ModelError
from ..robot.robot import Robot
from ..robot.trajectory import Trajectory
from .console import make_console, wait_for_interrupt
from .options import Base, BaseOption, Mimic, MimicOption, RobotPath, load_robot

REQUIRED, OPTIONAL = ("times", "q", "v"), ("first", "points", "forces")


def view_robot(
    robot: RobotPath,
    base: BaseOption = Base.FIXED,
    mimic: MimicOption = Mimic.FOLLOW,
    trajectory: Annotated[
        Path | None, typer.Option(metavar="FILE", help="States to play: an .npz file with times, q, v, and contacts.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the page as one HTML file, and end.")] = None,
    ground: Annotated[float | None, typer.Option(help="Height of the ground [m].", show_default="under the robot")] = None,
    host: Annotated[str, typer.Option(help="Who may see the page: 0.0.0.0 lets other machines.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Where the page is; 0 for any.", show_default="8080, or the next that is free"),
    ] = None,
) -> None:
    """Show a robot in the browser: move its joints, play a motion, see its frames, loops and contact forces."""
    from ..viewer import Window  # brings viser

    loaded = load_robot(robot, base, mimic)
    motion = None if trajectory is None else read_trajectory(trajectory, loaded)
    where = ("127.0.0.1", 0) if save is not None else (host, port)
    console = make_console()
    with Window(loaded, motion, *where, ground="below" if ground is None else ground) as window:
        if save is not None:
            window.save(save)
            console.print(f"Recording: {save}", soft_wrap=True)
            return
        console.print(f"Window: {window.url}   (Ctrl-C ends)", soft_wrap=True)
        wait_for_interrupt()


def read_trajectory(path: Path, robot: Robot) -> Trajectory:
    """A trajectory of this robot from an .npz file with its fields by name; contacts may be left out.

    Raises ModelError for a file that is none.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            if not hasattr(file, "files"):
                raise ModelError(f"{path}: one array, where times, q and v are needed in an .npz file")
            arrays: dict[str, Any] = {name: file[name] for name in (*REQUIRED, *OPTIONAL) if name in file.files}
    except (ValueError, EOFError) as error:
        raise ModelError(f"{path}: no .npz file: {error}") from error
    if missing := [name for name in REQUIRED if name not in arrays]:
        raise ModelError(f"{path}: no array {', '.join(missing)}; a trajectory has {', '.join(REQUIRED)}")
    count = len(np.atleast_1d(arrays["times"]))
    shapes = {"times": (count,), "q": (count, robot.nq), "v": (count, robot.nv)}
    for name, shape in shapes.items():
        if arrays[name].shape != shape or not count:
            raise ModelError(f"{path}: {name} must have shape {shape} for {robot.name}; it has {arrays[name].shape}")
    return Trajectory(**arrays)
