"""Tests of integration along a velocity, and of the velocity between two configurations, for joints of every kind."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.configuration import difference
from featherweight.model.generators import from_parents

KINDS = (fw.JointType.FLOATING, fw.JointType.SPHERICAL, fw.JointType.PLANAR, fw.JointType.REVOLUTE)


@pytest.fixture(scope="module")
def robot() -> fw.Robot:
    made = from_parents([-1, 0, 1, 1], rng=4)
    joints = tuple(dataclasses.replace(j, type=kind) for j, kind in zip(made.joints, KINDS, strict=True))
    return fw.build(dataclasses.replace(made, joints=joints), execution="interpreted")


def test_the_difference_of_random_configurations_is_that_of_the_model(robot: fw.Robot) -> None:
    q = robot.random_configuration(rng=0, size=30)
    np.testing.assert_allclose(robot.difference(q, q[::-1]), difference(robot._coordinates, q, q[::-1]), rtol=0.0, atol=2e-14)
    trace = robot.difference.trace
    for a, b in zip(q[:5], q[::-1][:5], strict=True):
        np.testing.assert_allclose(fw.evaluate(trace, [a.tolist(), b.tolist()]), robot.difference(a, b), rtol=0.0, atol=2e-14)


@pytest.mark.parametrize("turn", [0.0, 1e-160, 1e-9, 1e-3, 1.0, 1.8])  # [rad] about each axis, up to a total of pi
def test_the_difference_undoes_integrate(robot: fw.Robot, turn: float) -> None:
    rng = np.random.default_rng(1)
    q, v = robot.random_configuration(rng=rng, size=20), turn * rng.choice([-1.0, 1.0], (20, robot.nv))
    for j in robot.joints:
        if j.type in (fw.JointType.FLOATING, fw.JointType.PLANAR):
            v[:, j.v_slice.start] = rng.standard_normal(20)
    np.testing.assert_allclose(robot.difference(q, robot.integrate(q, v)), v, rtol=1e-14, atol=1e-14)
