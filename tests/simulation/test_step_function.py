"""Tests of a step as a function of arrays: it equals the simulation's, and so do products with its transposed derivative."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from simulation.stepped_robot import landing


def test_it_is_the_step_and_leaves_the_simulation_alone() -> None:
    sim, (q, v, tau, control) = landing()
    before, step = sim.q.copy(), sim.step_function()
    many = step(q, v, tau, control)
    np.testing.assert_array_equal(sim.q, before)
    for i in range(len(q)):
        sim.reset(q[i], v[i])
        sim.step(tau[i], control[i])
        np.testing.assert_array_equal(many.q[i], sim.q)
        np.testing.assert_array_equal(many.v[i], sim.v)
        assert (len(sim.contacts()[0]) > 0) == (i > 0)
    alone = step(q[1], v[1], tau[1], control[1])
    np.testing.assert_array_equal(alone.v, many.v[1])
    again = pickle.loads(pickle.dumps(step))(*(x.reshape(3, 1, -1) for x in (q, v, tau, control)))
    np.testing.assert_array_equal(again.v[:, 0], many.v)
    assert step(*(x[:0] for x in (q, v, tau, control))).q.shape == (0, 8)


def test_pullbacks_are_transposed_derivatives() -> None:
    """Compare with central differences of the step along changes that velocities make, with contact too."""
    sim, given = landing()
    step, rng, h = sim.step_function(), np.random.default_rng(1), 1e-6
    q_bar, v_bar = rng.standard_normal((3, 8)), rng.standard_normal((3, 7))
    found = step.pullback(*given, q_bar, v_bar)
    q, v, tau, control = given

    def value(*arguments: np.ndarray) -> np.ndarray:
        after = step(*arguments)
        total: np.ndarray = (q_bar * after.q).sum(axis=1) + (v_bar * after.v).sum(axis=1)
        return total

    for name, x, scale in (("v", v, 1.0), ("tau", tau, 100.0), ("control", control, 100.0)):
        dx = scale * rng.standard_normal(x.shape)
        ends = [value(*(y + w * h * dx if y is x else y for y in given)) for w in (1.0, -1.0)]
        expected = (ends[0] - ends[1]) / (2.0 * h)
        np.testing.assert_allclose((getattr(found, name) * dx).sum(axis=1), expected, rtol=1e-5, atol=1e-6, err_msg=name)
    u = rng.standard_normal(v.shape)
    ahead, behind = (sim.robot.integrate(q, w * h * u) for w in (1.0, -1.0))
    expected = (value(ahead, v, tau, control) - value(behind, v, tau, control)) / (2.0 * h)
    np.testing.assert_allclose((found.q * (ahead - behind)).sum(axis=1) / (2.0 * h), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose((found.q[:, 3:7] * q[:, 3:7]).sum(axis=1), 0.0, atol=1e-9)  # tangent to unit quaternions


def test_wrong_shapes_are_refused_by_name() -> None:
    sim, (q, v, tau, control) = landing()
    with pytest.raises(ValueError, match=r"step of lander: v must have shape \(3, 7\); got \(3, 6\)"):
        sim.step_function()(q, v[:, :6], tau, control)
