"""Tests of solutions of optimal control in JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import featherweight as fw  # noqa: E402
from featherweight.jax import plan  # noqa: E402
from optimal_control.problems import pendulum  # noqa: E402
from optimal_control.test_free_steps import swing  # noqa: E402


def test_gradients_are_those_of_the_plan_function() -> None:
    """Check gradients, also compiled, under vmap, and with free step sizes."""
    ocp = fw.OptimalControl(pendulum(), dt=0.04, knots=20)
    ocp.add(fw.FrameTask("tip", kind="position"), weight=50.0)
    ocp.add(fw.JointVelocities(), weight=0.05)
    ocp.add(fw.Effort(), weight=1e-2)
    with jax.enable_x64(True):
        solve = plan(ocp, tolerance=1e-10)

        def loss(q: Any, tip: Any) -> Any:
            found = solve(q, targets={"tip": tip})
            return (found.u**2).sum() + found.cost

        q, tip = jnp.array([0.1, 0.2]), jnp.array([0.7, 0.0, -0.4])
        grads = jax.jit(jax.grad(loss, argnums=(0, 1)))(q, tip)
        f, given = ocp.plan_function(tolerance=1e-10), [np.array(q)[None], np.zeros((1, 2)), np.array(tip)[None, None]]
        solved = f(*given)
        bars = [np.zeros_like(solved.q), np.zeros_like(solved.v), 2.0 * solved.u, np.ones(1)]
        expected = f.pullback(solved, given[2:], bars)
        np.testing.assert_allclose(grads[0], expected[0][0], rtol=1e-9)
        np.testing.assert_allclose(grads[1], expected[2][0, 0], rtol=1e-9)
        several = jax.vmap(jax.grad(loss), in_axes=(0, None))(jnp.stack([q, q]), tip)
        np.testing.assert_allclose(several, [grads[0]] * 2, rtol=1e-9)
        free, posture = (
            plan(swing((0.01, 0.1)), tolerance=1e-14, constraint_tolerance=1e-9, iterations=500),
            jnp.array([0.5, -0.3]),
        )

        def duration(posture: Any) -> Any:
            return free(jnp.zeros(2), targets={"posture": posture}).dt.sum()

        slope = jax.grad(duration)(posture)
        change = 1e-3 * slope / jnp.linalg.norm(slope)
        difference = float(duration(posture + change) - duration(posture - change))
        assert difference == pytest.approx(2e-3 * float(jnp.linalg.norm(slope)), rel=1e-3)
    with pytest.raises(TypeError, match=r"plan takes a featherweight\.OptimalControl"):
        plan(ocp.robot)  # type: ignore[arg-type]
