"""The command that opens the window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..robot.trajectory import Trajectory
from .console import make_console, wait_for_interrupt
from .options import Base, BaseOption, Mimic, MimicOption, RobotPath, load_robot


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
    motion = None if trajectory is None else Trajectory.load(trajectory, loaded)
    if motion is not None and motion.q.ndim == 3:
        motion = motion.of(0)
    where = ("127.0.0.1", 0) if save is not None else (host, port)
    console = make_console()
    with Window(loaded, motion, *where, ground="below" if ground is None else ground) as window:
        if save is not None:
            window.save(save)
            console.print(f"Recording: {save}", soft_wrap=True)
            return
        console.print(f"Window: {window.url}   (Ctrl-C ends)", soft_wrap=True)
        wait_for_interrupt()
