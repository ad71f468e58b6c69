"""The command that opens the window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..model.types import ModelError
from ..names import choose_from
from ..robot.robot import Robot
from ..robot.trajectory import Trajectory
from .console import make_console, wait_for_interrupt
from .options import RobotFile, of_robot_file

FILMS, FILM_RATE = (".gif", ".mp4"), 25.0  # frames per second


@of_robot_file
def view_robot(
    file: RobotFile,
    trajectory: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Motion to play: an .npz file with times, q, v, and contacts.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Save the page as one HTML file, and exit.")] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the first state (.png) or all (.gif, .mp4) without a browser, and exit."),
    ] = None,
    camera: Annotated[str | None, typer.Option(metavar="NAME", help="Camera of the file for the --picture.")] = None,
    ground: Annotated[float | None, typer.Option(help="Height of the ground [m].", show_default="under the robot")] = None,
    host: Annotated[str, typer.Option(help="Address of the page; 0.0.0.0 admits other machines.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port of the page; 0 for any.", show_default="8080, or the next free port"),
    ] = None,
) -> None:
    """Show a robot in the browser: move its joints, play a motion, and show frames, loops and contact forces."""
    if camera is not None and picture is None:
        raise ModelError(f"--camera {camera} needs --picture")
    loaded = file.load()
    motion = None if trajectory is None else Trajectory.load(trajectory, loaded)
    height: Any = "below" if ground is None else ground
    console = make_console()
    if picture is not None:
        draw_picture(picture, loaded, motion, height, camera)
        console.print(f"Picture: {picture}", soft_wrap=True)
        return
    from ..viewer import Window  # imports viser

    if motion is not None and motion.q.ndim == 3:
        motion = motion.of(0)
    where = ("127.0.0.1", 0) if save is not None else (host, port)
    with Window(loaded, motion, *where, ground=height, quiet=True) as window:
        if save is not None:
            window.save(save)
            console.print(f"Recording: {save}", soft_wrap=True)
            return
        console.print(f"Window: {window.url}   (open it in a browser; Ctrl-C ends)", soft_wrap=True)
        wait_for_interrupt()


def draw_picture(
    path: Path, robot: Robot, motion: Trajectory | None, ground: float | Literal["below"] | None, camera: str | None = None
) -> None:
    """Draw the initial configuration of a robot, or a motion. Raises ModelError for other kinds of files."""
    kind = path.suffix.lower()
    if kind not in (".png", *FILMS):
        raise ModelError(f"{path}: pictures are .png, {' or '.join(FILMS)} files")
    if kind in FILMS and motion is None:
        raise ModelError(f"{path}: a film needs a --trajectory")
    from ..viewer import OffscreenScene, save_film, save_picture
    from ..viewer.clock import frames_to_draw

    if camera is not None and camera not in [c.name for c in robot.cameras]:
        raise ModelError(f"--camera: {robot.name} has no camera {choose_from(camera, [c.name for c in robot.cameras])}")
    scene = OffscreenScene(robot, ground=ground, camera=camera)
    if motion is None:
        save_picture(path, scene.frame(scene.start))
    elif kind == ".png":
        save_picture(path, scene.frame(motion.q[0]))
    else:
        save_film(path, (scene.frame(motion.q[k]) for k in frames_to_draw(motion, FILM_RATE)[0]), FILM_RATE)
