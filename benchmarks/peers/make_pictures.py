"""Animated pictures of robots, drawn by the viewer in a headless Chromium.

    PYTHONPATH=benchmarks/papers python benchmarks/peers/make_pictures.py [--output docs/pictures]

Each animation takes a minute or two, because Chromium draws in software.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
from chromium import chromium
from drumwright2012_centipede import Gait
from measure import FILES, ROBOTS
from PIL import Image

import featherweight
from featherweight.array_types import Array
from featherweight.cli.simulate import above_ground, with_springs
from featherweight.model.formats.registry import load_description
from featherweight.robot.robot import Robot
from featherweight.robot.trajectory import Trajectory
from featherweight.simulation.standins import spheres_of
from featherweight.viewer import Window, save_film
from featherweight.viewer.clock import frames_to_draw

FINER = 2  # factor of oversampling in each direction
DETAIL = 60_000  # triangles


def film(
    robot: Robot,
    trajectory: Trajectory,
    path: str | Path,
    *,
    size: tuple[int, int] = (400, 320),
    fps: float = 15.0,
    camera: tuple[Any, Any] | None = None,
    follow: str | None = None,
    ground: float | Literal["below"] | None = "below",
) -> None:
    """Write a trajectory as a GIF of `size` (width, height) pixels that repeats, with `fps` pictures a second.

    `camera` is its position and its target [m] in the world; it follows the frame `follow` over the ground.
    """
    chosen, _ = frames_to_draw(trajectory, fps)
    with Window(robot, trajectory, port=0, ground=ground, faces=DETAIL) as window, chromium((1280, 960)) as page:
        page.open(window.url)
        _wait_for_page(window)
        position, at = window.camera if camera is None else (np.asarray(x, dtype=float) for x in camera)
        place = robot.frame_placement(follow) if follow else None
        start = place(trajectory.q[chosen[0]])[:2, 3] if place else np.zeros(2)
        pictures = []
        for k in chosen:
            moved = np.append(place(trajectory.q[k])[:2, 3] - start, 0.0) if place else np.zeros(3)
            window.look(position + moved, at + moved)
            window.show(trajectory.q[k], *trajectory.contacts(int(k)))
            pictures.append(_drawn(window, size))
    save_film(path, pictures, fps)


def _wait_for_page(window: Window, seconds: float = 60.0) -> None:
    """Wait until the page is open and two successive pictures are equal: meshes and shaders are then ready."""
    end, before = time.monotonic() + seconds, None
    while time.monotonic() < end:
        time.sleep(0.5)
        try:
            now = window.picture((160, 120))
        except RuntimeError:
            continue
        if before is not None and now.std() > 0 and np.array_equal(before, now):
            return
        before = now
    raise TimeoutError(f"the page {window.url} did not finish drawing")


def _drawn(window: Window, size: tuple[int, int]) -> Array:
    """Return the window's picture of the last state."""
    window.picture((16, 16))  # states and pictures use two connections; this round trip ensures that the state has arrived
    fine = Image.fromarray(window.picture((FINER * size[0], FINER * size[1])))
    return np.asarray(fine.resize(size, Image.Resampling.LANCZOS))


def falling_humanoid() -> tuple[Robot, Trajectory]:
    """Simulate Talos with springs at its joints, which falls and then topples."""
    robot = featherweight.build(with_springs(load_description(ROBOTS / FILES["talos_reduced"][0]), 1000.0), "floating")
    spheres = spheres_of(robot)
    v = np.zeros(robot.nv)
    v[0] = 0.35
    q = above_ground(robot, spheres, 0.25)
    sim = featherweight.Simulation(robot, q=q, v=v, spheres=spheres, shapes=False, ground=featherweight.Plane())
    return robot, sim.run(2.4, every=16)


def walking_centipede() -> tuple[Robot, Trajectory]:
    """Simulate a centipede of twelve segments; only contact forces hold the standing feet."""
    segments = 12
    robot = featherweight.build(featherweight.robots.centipede(segments))
    gait = Gait(robot)
    q, v = gait.start()
    feet = [featherweight.ContactPoint(f"foot-{i}-{side}") for i in range(segments) for side in ("left", "right")]
    sim = featherweight.Simulation(robot, 2e-4, q=q, v=v, spheres=feet, shapes=False, ground=featherweight.Plane())
    return robot, sim.run(1.2, gait.forces, every=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("docs/pictures"))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    robot, motion = falling_humanoid()
    camera = (3.6, -2.9, 1.5), (0.4, 0.0, 0.78)
    film(
        robot, motion, given.output / "talos_falls.gif", size=(400, 300), fps=12.5, camera=camera,
        follow=robot.bodies[0].name, ground=0.0,
    )  # fmt: skip
    robot, motion = walking_centipede()
    camera = (0.35, -0.95, 0.45), (-0.5, 0.0, 0.0)
    film(
        robot, motion, given.output / "centipede_walks.gif", size=(400, 300), fps=20.0, camera=camera, follow="segment-0",
        ground=0.0,
    )  # fmt: skip


if __name__ == "__main__":
    main()
