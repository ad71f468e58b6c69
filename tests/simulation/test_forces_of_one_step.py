"""Tests that forces on bodies act only in their steps, regardless of contacts."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight import Body, Inertia, Joint, JointType

BALL = Inertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
X = (1.0, 0.0, 0.0)


def standing(v: np.ndarray | None = None, q: np.ndarray | None = None) -> fw.Simulation:
    """Return a foot on the ground, with a slide on it that touches nothing."""
    joints = [
        Joint("slide", JointType.PRISMATIC, None, "foot", axis=X),
        Joint("up", JointType.PRISMATIC, "foot", "top", axis=X),
    ]
    robot = fw.build(fw.describe([Body("foot", BALL), Body("top", BALL)], joints))
    return fw.Simulation(robot, 1e-3, q=q, v=v, spheres=[fw.ContactPoint("foot")], ground=fw.Plane(friction=0.5))


@pytest.mark.parametrize("way", ["step", "run"])
def test_a_push_ends_with_its_step(way: str) -> None:
    push = np.zeros((2, 6))
    push[1, 0] = 10.0
    pushed = standing()
    pushed.step(external_forces=push)
    fresh = standing(pushed.v, pushed.q)
    for sim in (pushed, fresh):
        sim.step() if way == "step" else sim.run(2e-3)
    assert pushed.v[1] > 0.0
    np.testing.assert_array_equal(pushed.v, fresh.v)
    np.testing.assert_array_equal(pushed.q, fresh.q)
