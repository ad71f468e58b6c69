"""Test that the example with CasADi gives the results that it describes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("casadi")
pytest.importorskip("matplotlib")

import reach_with_casadi as example

import featherweight as fw
from featherweight.casadi import wrap


def panda() -> Path:
    try:
        return fw.example(example.PANDA)
    except ImportError as error:
        pytest.skip(str(error))


def test_panda_reaches_its_target_by_the_trapezoidal_rule() -> None:
    robot = fw.load(panda())
    dynamics = wrap(robot.forward_dynamics, "dynamics", jacobian=robot.forward_dynamics_derivatives)
    (q, v, tau), *_ = example.solve(robot, dynamics, wrap(robot.frame_placement(example.HAND), "hand"), False)
    a = robot.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(v[1:], v[:-1] + 0.5 * example.STEP * (a[1:] + a[:-1]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(q[1:], q[:-1] + 0.5 * example.STEP * (v[1:] + v[:-1]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(robot.frame_placement(example.HAND)(q[-1])[:3, 3], example.TARGET, rtol=0, atol=1e-6)
    np.testing.assert_allclose(v[[0, -1]], 0.0, rtol=0, atol=1e-8)
