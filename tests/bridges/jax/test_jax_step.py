"""Tests of a simulation step in JAX: values, gradients through contact, and transformations."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from featherweight.jax import step  # noqa: E402
from simulation.stepped_robot import landing  # noqa: E402


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def test_values_and_gradients_are_those_of_the_step_function() -> None:
    """Check steps alone, compiled, and robot by robot under vmap."""
    sim, given = landing()
    ours, function, rng = step(sim), sim.step_function(), np.random.default_rng(0)
    bars = rng.standard_normal((3, 8)), rng.standard_normal((3, 7))
    expected, gradients = function(*given), function.pullback(*given, bars[0], bars[1])

    def total(*args: Any) -> Any:
        after = ours(*args)
        return (after.q * bars[0]).sum() + (after.v * bars[1]).sum()

    for apply in (ours, jax.jit(ours), jax.vmap(ours), pickle.loads(pickle.dumps(ours))):
        for x, y in zip(apply(*given), expected, strict=True):
            np.testing.assert_array_equal(x, y)
    for gradient in (jax.grad(total, (0, 1, 2, 3)), jax.jit(jax.grad(total, (0, 1, 2, 3)))):
        for x, y in zip(gradient(*given), gradients, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_gradients_go_through_a_landing() -> None:
    """Check the gradient of the trunk's velocity after 20 steps with respect to a constant control, against differences."""
    sim, (q, v, _, control) = landing()
    ours = step(sim)

    def landed(u: Any) -> Any:
        def once(state: tuple[Any, Any], _: Any) -> Any:
            return tuple(ours(*state, control=u)), None

        (_, after), _ = jax.lax.scan(once, (jnp.asarray(q[2]), jnp.asarray(v[2])), None, length=20)
        return after[2]

    u, h = jnp.asarray(control[2]), 1e-4
    slope = jax.grad(landed)(u)[0]
    assert float(slope) == pytest.approx(float(landed(u + h) - landed(u - h)) / (2.0 * h), rel=1e-4)


def test_inputs_may_be_left_out_and_wrong_ones_are_refused() -> None:
    sim, (q, v, _, _) = landing()
    ours = step(sim)
    zero = np.zeros((3, 7)), np.zeros((3, 1))
    np.testing.assert_array_equal(ours(q, v).v, ours(q, v, *zero).v)
    assert ours(jnp.asarray(q, jnp.float32), jnp.asarray(v, jnp.float32)).v.dtype == jnp.float32
    with pytest.raises(ValueError, match=r"tau must have shape \(\.\.\., 7\)"):
        ours(q, v, q)
    with pytest.raises(TypeError, match=r"featherweight\.Simulation"):
        step(sim.robot)  # type: ignore[arg-type]
