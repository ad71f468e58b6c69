"""Films of robots that fall and walk.

PYTHONPATH=benchmarks/papers:examples python benchmarks/peers/make_pictures.py [--output docs/pictures]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from drumwright2012_centipede import Gait
from measure import FILES, ROBOTS
from pictures import film

import featherweight
from featherweight.array_types import Array
from featherweight.cli.simulate import above_ground, with_springs
from featherweight.model.formats.registry import load_description
from featherweight.robot.robot import Robot
from featherweight.robot.trajectory import Trajectory
from featherweight.simulation.standins import spheres_of

FALLING, WALKING = 5, 4  # states of a simulation, 16 ms apart, between two pictures
Camera = tuple[Array, Array]  # its place and its target [m]


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
    return robot, sim.run(4.0, gait.forces, every=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("docs/pictures"))
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)

    def aside(q: Array) -> Camera:
        return np.array([q[0] + 2.6, q[1] - 2.3, 1.3]), np.array([q[0], q[1], 0.85])

    robot, motion = falling_humanoid()
    film(output / "talos_falls.gif", robot, motion.q[::FALLING], aside, 1.0 / (FALLING * 16e-3), (400, 320), ground=0.0)

    def at_rest(_: Array) -> Camera:
        return np.array([0.5, -1.1, 0.55]), np.array([-0.3, 0.0, 0.0])

    robot, motion = walking_centipede()
    film(output / "centipede_walks.gif", robot, motion.q[::WALKING], at_rest, 1.0 / (WALKING * 16e-3), (400, 320), ground=0.0)


if __name__ == "__main__":
    main()
