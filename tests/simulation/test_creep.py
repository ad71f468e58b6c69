"""Test that friction holds without creep: a capsule between two plates (MuJoCo's issue 3328: soft contacts let it creep)."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.types import Pose
from simulation.scenes import FREE, SLIDE, X, solid_box

STEP, FORCE, MASS = 1e-3, 20.0, 0.2
CREEP = 1e-9  # [m] in 10 s: residuals of 1e-8 of g h in each step


def placed(x: float) -> Pose:
    T = np.eye(4)
    T[0, 3] = x
    return Pose.of(T, "plate")


def pinched() -> fw.Simulation:
    """Return a plate on a rail that presses a capsule of radius 0.05 against a wall at x > 0.05; only friction holds it."""
    bodies = [fw.Body(name, solid_box(MASS, (0.1, 0.1, 0.2))) for name in ("wall", "plate", "capsule")]
    joints = [
        fw.Joint("fixed", fw.JointType.FIXED, "world", "wall"),
        fw.Joint("rail", SLIDE, "world", "plate", axis=X),
        fw.Joint("free", FREE, "world", "capsule"),
    ]
    plate = (0.02, 0.4, 0.4)
    shapes = [
        fw.Shape("wall", "wall", fw.ShapeType.BOX, plate, placed(0.06)),
        fw.Shape("plate", "plate", fw.ShapeType.BOX, plate, placed(-0.06)),
        fw.Shape("capsule", "capsule", fw.ShapeType.CAPSULE, (0.05, 0.1)),
    ]
    return fw.Simulation(fw.build(fw.describe(bodies, joints, shapes=shapes)), STEP, shapes=True)


def test_a_pinched_capsule_does_not_creep() -> None:
    sim = pinched()
    tau = np.zeros(7)
    tau[0] = FORCE
    sim.run(0.1, tau=tau)
    assert len(sim.contacts()[0]) >= 2
    before = sim.q.copy()
    sim.run(10.0, tau=tau)
    assert sim.time == pytest.approx(10.1)
    np.testing.assert_allclose(sim.q, before, rtol=0.0, atol=CREEP)
    assert np.abs(sim.v).max() <= CREEP
    assert abs(sim.contacts()[1][:, 2].sum()) == pytest.approx(MASS * 9.81, rel=1e-6)
    assert sim.solver["inexact_steps"] == 0
