"""A robot that lands on a foot while it turns, for tests of steps and derivatives: a free trunk, a driven leg, a sphere."""

from __future__ import annotations

from typing import Any

import numpy as np

import featherweight as fw
from featherweight.model.types import WORLD, Activation, Actuator, ControlDelay

INERTIA = fw.Inertia(2.0, (0.05, 0.02, 0.01), (0.02, 0.0, 0.0, 0.03, 0.0, 0.04))


def landing(robots: int = 3, **drive: Any) -> tuple[fw.Simulation, tuple[Any, Any, Any, Any]]:
    """Return a simulation, and states and inputs of robots: the first flies, the feet of the others hit the ground and
    slide or stick. `drive` has further parts of the hip's actuator.
    """
    bodies = [fw.Body("trunk", INERTIA), fw.Body("leg", INERTIA)]
    joints = [
        fw.Joint("root", fw.JointType.FLOATING, WORLD, "trunk"),
        fw.Joint("hip", fw.JointType.REVOLUTE, "trunk", "leg", axis=(0.0, 1.0, 0.0)),
    ]
    hip = Actuator("hip", "hip", gain=1.0, control=(-9.0, 9.0), **drive)
    description = fw.describe(bodies, joints, name="lander", actuators=[hip])
    foot = fw.ContactSphere("leg", 0.05, (0.0, 0.1, -0.4))
    contact = fw.ContactOptions(tolerance=1e-13, friction=0.4)
    rng = np.random.default_rng(4)
    q = np.zeros((robots, 8))
    q[:, 6], q[:, 7] = 1.0, 0.2
    v = rng.standard_normal((robots, 7)) * 0.5
    robot = fw.build(description)
    center = robot.frame_placement(fw.Frame("foot", "leg", fw.Pose(p=(0.0, 0.1, -0.4))))(q)[:, 2, 3]
    q[:, 2] = 0.05 - center + 0.0005
    q[0, 2] += 0.3
    v[1:, 2] = -1.0
    v[1, 0] = 3.0
    sim = fw.Simulation(robot, 1e-3, q=q[0], spheres=[foot], ground=True, contact=contact)
    return sim, (q, v, 0.1 * rng.standard_normal((robots, 7)), rng.standard_normal((robots, 1)))


def slow_drive() -> dict[str, Any]:
    """Return parts of an actuator whose control acts later and slowly."""
    return {"activation": Activation("filter", 0.02), "delay": ControlDelay(0.003, 4)}
