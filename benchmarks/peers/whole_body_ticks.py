"""Ticks of whole-body control of humanoids on both feet, compared with TSID and pink, in one run.

    python benchmarks/peers/whole_body_ticks.py [--tsid PYTHON] [--pink PYTHON] [--ticks 1000]

PYTHON are interpreters with the packages tsid, or pin-pink with quadprog, daqp and proxsuite. The robots squat and shift their
weight in a simulation with our controller, and all controllers then compute the same recorded ticks. Tasks: centre of mass,
posture, orientation of the trunk, both feet at rest. We and TSID (EiquadprogFast) compute joint forces within their limits, and
forces at the corners of the soles: ours are in friction cones, or in pyramids with four planes as those of TSID. pink computes
velocities within limits, without forces. A tick includes the references that change, and the robot's functions. Times are
medians and greatest values of processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import FILES, ROBOTS, machine, markdown
from peer_process import PeerProcess

import featherweight as fw
from featherweight.array_types import Array

CORNERS = np.array([(x, y, 0.0) for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
SHIFT, SQUAT, STEP = 0.02, 0.03, 1e-3  # [m], [m], [s]


class Humanoid(NamedTuple):
    """A robot, its feet and trunk, half length and width of a sole [m], and bent joints of its posture."""

    robot: str
    feet: tuple[str, str]
    trunk: str
    sole: tuple[float, float]
    bent: dict[str, float]


LEGS = {"hip_pitch_joint": -0.4, "knee_joint": 0.8, "ankle_pitch_joint": -0.4}
HUMANOIDS = (
    Humanoid(
        "talos_reduced",
        ("left_sole_link", "right_sole_link"),
        "torso_2_link",
        (0.1, 0.06),
        {f"leg_{side}_{k}_joint": x for side in ("left", "right") for k, x in ((3, -0.45), (4, 0.9), (5, -0.45))},
    ),
    Humanoid(
        "g1_29dof",
        ("left_ankle_roll_link", "right_ankle_roll_link"),
        "torso_link",
        (0.06, 0.025),
        {f"{side}_{joint}": x for side in ("left", "right") for joint, x in LEGS.items()},
    ),
)


class Ticks(NamedTuple):
    """Recorded states, and references of the centre of mass."""

    q: Array
    v: Array
    place: Array
    speed: Array
    acceleration: Array


class Standing:
    """A humanoid on both feet, with its controller."""

    def __init__(self, one: Humanoid) -> None:
        self.path = ROBOTS / FILES[one.robot][0]
        self.one, self.robot = one, fw.load(self.path, base="floating")
        q = self.robot.neutral()
        for name, x in one.bent.items():
            q[self.robot.joint(name).q_slice] = x
        q[2] -= self.robot.frame_placement(one.feet[0])(q)[2, 3]
        self.q, self.center = q, self.robot.center_of_mass(q)
        self.trunk = self.robot.frame_placement(one.trunk)(q)[:3, :3]

    def controller(self, edges: int) -> fw.WholeBodyControl:
        """Return our controller."""
        tasks = [
            fw.CenterOfMassTask(),
            fw.FrameTask(self.one.trunk, "orientation", weight=0.5),
            fw.PostureTask(weight=0.01, stiffness=50.0),
        ]
        corners = CORNERS * [*self.one.sole, 0.0]
        feet = [fw.UnilateralContact(foot, corners, friction=0.6) for foot in self.one.feet]
        wbc = fw.WholeBodyControl(self.robot, tasks, feet, friction_edges=edges)
        wbc(self.q, np.zeros(self.robot.nv), {self.one.trunk: self.trunk, "posture": self.q, "center of mass": self.center})
        return wbc

    def references(self, t: float) -> tuple[Array, Array, Array]:
        """Return place, speed and acceleration of the centre of mass."""
        w = np.pi
        s, c = np.sin(w * t), np.cos(w * t)
        place = self.center + np.array([0.0, SHIFT * (1.0 - c), SQUAT * (np.cos(2.0 * w * t) - 1.0)])
        speed = np.array([0.0, SHIFT * w * s, -2.0 * SQUAT * w * np.sin(2.0 * w * t)])
        return place, speed, np.array([0.0, SHIFT * w * w * c, -4.0 * SQUAT * w * w * np.cos(2.0 * w * t)])

    def recorded(self, count: int) -> Ticks:
        """Return the ticks of a simulated motion."""
        wbc, found = self.controller(0), list[tuple[Array, ...]]()
        points = [fw.ContactPoint(foot, tuple(x)) for foot in self.one.feet for x in CORNERS * [*self.one.sole, 0.0]]
        sim = fw.Simulation(self.robot, STEP, q=self.q, spheres=points, ground=fw.Plane(friction=0.8))

        def control(t: float, q: Array, v: Array) -> Array:
            references = self.references(t)
            found.append((q.copy(), v.copy(), *references))
            tau: Array = tick(wbc, *found[-1]).tau
            return tau

        sim.run(count * STEP, control)
        return Ticks(*map(np.array, zip(*found, strict=True)))


def tick(wbc: fw.WholeBodyControl, q: Array, v: Array, place: Array, speed: Array, acceleration: Array) -> Any:
    """Return the result of our tick."""
    name = "center of mass"
    return wbc(q, v, {name: place}, velocities={name: speed}, accelerations={name: acceleration})


def times_of(call: Callable[..., Any], ticks: Ticks) -> list[float]:
    """Return the processor times of all ticks [s]."""
    found = []
    for x in zip(*ticks, strict=True):
        begun = time.process_time()
        call(*x)
        found.append(time.process_time() - begun)
    return found


def rows(one: Humanoid, arguments: argparse.Namespace) -> list[list[str]]:
    """Return the rows of a humanoid's table."""
    standing = Standing(one)
    ticks = standing.recorded(arguments.ticks)
    table = []

    def add(what: str, times: list[float], steps: str = "") -> None:
        table.append([one.robot, what, f"{1e6 * np.median(times):.0f}", f"{1e6 * np.quantile(times, 0.99):.0f}", steps])

    for edges, what in ((0, "Featherweight, cones"), (4, "Featherweight, pyramids")):
        wbc = standing.controller(edges)
        results = [tick(wbc, *x) for x in zip(*ticks, strict=True)]
        assert {r.status for r in results} == {"solved"}
        add(what, times_of(lambda *x, wbc=wbc: tick(wbc, *x), ticks), f"{np.mean([r.steps for r in results]):.1f}")
    with tempfile.TemporaryDirectory() as folder:
        names = [j.name for j in standing.robot.joints[1:]]
        given: dict[str, Any] = {
            "names": names,
            "feet": one.feet,
            "trunk": one.trunk,
            "sole": one.sole,
            "start": standing.q,
            "dt": STEP,
        }
        np.savez(
            Path(folder) / "ticks.npz", **ticks._asdict(), **given, urdf=str(standing.path), package=str(ROBOTS.parent.parent)
        )
        for script, interpreter in (("tsid_process.py", arguments.tsid), ("pink_process.py", arguments.pink)):
            if interpreter:
                with PeerProcess(script, [folder], interpreter) as peer:
                    peer.run()
                    for what, times in np.load(Path(folder) / "times.npz").items():
                        add(what, times)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tsid", metavar="PYTHON", help="a Python interpreter with tsid")
    parser.add_argument("--pink", metavar="PYTHON", help="a Python interpreter with pin-pink")
    parser.add_argument("--ticks", type=int, default=1000)
    arguments = parser.parse_args()
    print(machine())
    heading = ["robot", "controller", "median [µs]", "99 % [µs]", "steps"]
    print(markdown(heading, [x for one in HUMANOIDS for x in rows(one, arguments)]))


if __name__ == "__main__":
    main()
