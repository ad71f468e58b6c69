"""Tests that inertias and velocities about the centre of mass add up to those of the whole robot."""

from __future__ import annotations

from typing import Any

import numpy as np

import featherweight as fw
from featherweight.environments.snapshot import Links

BODIES = [
    fw.Body("base", fw.Inertia(2.0, (0.1, -0.2, 0.3), (0.3, 0.01, 0.02, 0.25, -0.03, 0.2))),
    fw.Body("arm", fw.Inertia(1.0, (0.0, 0.3, 0.1), (0.1, 0.0, 0.01, 0.2, 0.02, 0.15))),
    fw.Body("tool", fw.Inertia(0.5, (0.2, 0.0, 0.0), (0.02, 0.001, 0.0, 0.03, 0.0, 0.01))),
]
JOINTS = [
    fw.Joint("free", fw.JointType.FLOATING, None, "base"),
    fw.Joint("hinge", fw.JointType.REVOLUTE, "base", "arm", fw.Pose(p=(0.0, 0.5, 0.0)), (0.6, 0.0, 0.8)),
    fw.Joint("weld", fw.JointType.FIXED, "arm", "tool", fw.Pose(p=(0.1, 0.0, 0.4))),
]


def momentum(inertia: Any, velocity: Any) -> Any:
    """Return the momentum (angular, linear) of links (10) with velocities (angular, linear)."""
    (xx, yy, zz, xy, xz, yz), moment, mass = inertia[:6], inertia[6:9], inertia[9]
    w, v = velocity[:3], velocity[3:]
    rotational = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.concatenate([rotational @ w + np.cross(moment, v), mass * v - np.cross(moment, w)])


def test_they_add_up_to_the_robot() -> None:
    description = fw.describe(BODIES, JOINTS, name="flyer")
    robot = fw.build(description)
    links = Links(description, robot)
    assert links.names == ["base", "arm", "tool"]
    q, v = robot.random_configuration(rng=0), np.random.default_rng(1).standard_normal(robot.nv)
    found = np.array(fw.evaluate(links.about_center_of_mass.trace, [q, v]), dtype=np.float64)
    center, inertia, velocity = found[:3], found[3:33].reshape(3, 10), found[33:].reshape(3, 6)
    np.testing.assert_allclose(center, fw.evaluate(robot.center_of_mass.trace, [q]), rtol=0, atol=1e-14)
    np.testing.assert_allclose(inertia[:, 9], [2.0, 1.0, 0.5])
    np.testing.assert_allclose(inertia[:, 6:9].sum(axis=0), 0.0, atol=1e-14)
    total = sum(momentum(i, u) for i, u in zip(inertia, velocity, strict=True))
    theirs = np.array(fw.evaluate(robot.centroidal_momentum.trace, [q, v]))  # (linear, angular)
    np.testing.assert_allclose(np.roll(total, 3), theirs, rtol=0, atol=1e-13)
    kinetic = sum(0.5 * momentum(i, u) @ u for i, u in zip(inertia, velocity, strict=True))
    np.testing.assert_allclose(kinetic, fw.evaluate(robot.kinetic_energy.trace, [q, v]), rtol=1e-13)
