"""Tests of random inertias: within their ranges, and physically possible."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.identification import inconsistent_bodies, pseudo_inertia, random_parameters
from featherweight.robots import planar_leg_linkage
from oracles.robots import example


def test_they_are_within_their_ranges_and_possible() -> None:
    robot = example("ur5")
    before = robot.inertial_parameters
    drawn = random_parameters(robot, (40, 5), mass=(0.5, 2.0), center=1.0, lengths=(0.5, 1.5), rng=0)
    assert drawn.shape == (40, 5, len(robot.bodies), 10)
    factor = drawn[..., 0] / before[:, 0]
    assert 0.5 <= factor.min() < 0.52 and 1.95 < factor.max() <= 2.0
    assert not any(inconsistent_bodies(robot, p) for p in drawn.reshape(-1, *before.shape)[:20])
    assert np.linalg.eigvalsh(pseudo_inertia(drawn)).min() > 0.0


def test_centres_stay_in_the_equivalent_box_and_inertias_scale_with_mass() -> None:
    # a box of 0.1, 0.2, 0.3 m
    body = fw.Inertia(2.0, (0.1, 0.0, 0.2), (2 / 12 * 0.13, 0.0, 0.0, 2 / 12 * 0.1, 0.0, 2 / 12 * 0.05))
    description = fw.Description(
        "box", "", (fw.Body("box", body),), (fw.Joint("hinge", fw.JointType.REVOLUTE, fw.model.types.WORLD, "box"),)
    )
    robot = fw.build(description)
    drawn = random_parameters(robot, 2000, mass=(1.0, 1.0), center=0.5, rng=0)[:, 0]
    shift = np.abs(drawn[:, 1:4] / drawn[:, :1] - body.center).max(axis=0)
    np.testing.assert_allclose(shift, 0.5 * np.array([0.05, 0.1, 0.15]), rtol=0.01)
    assert (shift <= 0.5 * np.array([0.05, 0.1, 0.15]) + 1e-15).all()
    (heavy,) = random_parameters(robot, mass=(3.0, 3.0), center=0.0)
    np.testing.assert_allclose(heavy, 3.0 * robot.inertial_parameters[0], rtol=1e-12, atol=1e-15)
    (wide,) = random_parameters(robot, mass=(1.0, 1.0), center=0.0, lengths=(2.0, 2.0))
    about_center = 4.0 * 2.0 / 12.0 * np.array([0.01, 0.04, 0.09])
    np.testing.assert_allclose(np.diag(pseudo_inertia(wide))[:3], np.add(about_center, [0.02, 0.0, 0.08]), rtol=1e-12)


def test_planar_bodies_stay_planar() -> None:
    """Check bodies of planar models, which have a moment about one axis only; no body in space can have such an inertia."""
    robot = fw.build(planar_leg_linkage())
    drawn = random_parameters(robot, 5, center=1.0, lengths=(0.5, 2.0), rng=0)
    for parameters in drawn:
        robot.with_inertial_parameters(parameters)


def test_bad_ranges_are_refused() -> None:
    robot = example("ur5")
    for bad in ((0.0, 1.0), (1.2, 0.8), (1.0, np.nan), 1.0):
        with pytest.raises(ValueError, match="mass must be two positive numbers"):
            random_parameters(robot, mass=bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="center"):
        random_parameters(robot, center=-0.1)
