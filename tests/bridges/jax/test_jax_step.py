"""Tests of a simulation step in JAX: bits of pure steps, gradients through contact, and transformations."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from featherweight.jax import ArrayState, step  # noqa: E402
from simulation.stepped_robot import landing, slow_drive  # noqa: E402

STEPS = 30


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("drive", [{}, slow_drive()], ids=["direct", "slow"])
def test_steps_have_the_bits_of_pure_steps(drive: dict[str, Any]) -> None:
    """Check all robots together, compiled, robot by robot under vmap, and in a compiled loop; activations and delays go on."""
    sim, (q, v, tau, control) = landing(**drive)
    sim.reset(q, v)
    sim.step(tau, control, steps=3)
    ours, begin, end = step(sim), sim.state, sim.state
    for _ in range(STEPS):
        end = sim.advance(end, tau=tau, control=control)
    assert end.arrays["counts"].any() and bool(drive) == (end.activation.size > 0 and end.activation.all())

    def looped(state: ArrayState, tau: Any, control: Any) -> ArrayState:
        after, _ = jax.lax.scan(lambda s, _: (ours(s, tau, control), None), state, length=STEPS)
        return after

    again = pickle.loads(pickle.dumps(ours))
    for once in (ours, jax.jit(ours), jax.vmap(ours), jax.jit(jax.vmap(again))):
        state = ours.from_state(begin)
        for _ in range(STEPS):
            state = once(state, tau, control)
        assert isinstance(state, ArrayState) and ours.to_state(state) == end
    for loop in (looped, jax.jit(looped), jax.jit(jax.vmap(looped))):
        assert ours.to_state(loop(ours.from_state(begin), tau, control)) == end
    one = jax.jit(looped)(ours.from_state(begin[1]), tau[1], control[1])
    assert ours.to_state(one) == end[1]


def test_a_start_is_the_state_after_a_reset() -> None:
    sim, (q, v, *_) = landing(**slow_drive())
    ours = step(sim)
    sim.reset(q, v)
    assert ours.to_state(ours.start(q, v)) == ours.to_state(jax.jit(ours.start)(q, v)) == sim.state
    sim.reset(q[1])
    assert ours.to_state(ours.start(q[1])) == sim.state


def test_leading_axes_of_states_and_inputs_broadcast() -> None:
    sim, (q, v, *_) = landing()
    ours, futures = step(sim), np.linspace(-1.0, 1.0, 5)[:, None]
    after = ours(ours.start(q[1], v[1]), control=futures)
    assert [x.shape for x in after] == [(5, n) for n in list(ours.function.sizes.values())[:4]]
    for k in range(5):
        for x, y in zip(after, ours(ours.start(q[1], v[1]), np.zeros(7), futures[k]), strict=True):
            np.testing.assert_array_equal(x[k], y)


def test_gradients_are_those_of_the_step_function() -> None:
    """Check them in the middle of a motion, alone, compiled, and robot by robot under vmap."""
    sim, (q, v, tau, control) = landing()
    ours, function, rng = step(sim), sim.step_function(), np.random.default_rng(0)
    bars = rng.standard_normal((3, 8)), rng.standard_normal((3, 7))
    state = ours(ours.start(q, v), tau, control)
    numbers = [*map(np.asarray, state)]
    ends = *bars, np.zeros((3, 0))
    found = function.pullback(numbers, tau, control, function(numbers, tau, control).q, ends)
    expected = found.q, found.v, found.tau, found.control

    def total(q: Any, v: Any, tau: Any, control: Any, memory: Any, bars: Any) -> Any:
        after = ours(state._replace(q=q, v=v, activation=jnp.zeros((*q.shape[:-1], 0)), memory=memory), tau, control)
        return (after.q * bars[0]).sum() + (after.v * bars[1]).sum()

    gradient = jax.grad(total, (0, 1, 2, 3))
    for apply in (gradient, jax.jit(gradient), jax.vmap(gradient), jax.jit(jax.vmap(gradient))):
        for x, y in zip(apply(state.q, state.v, tau, control, state.memory, bars), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_gradients_go_through_a_landing() -> None:
    """Check the gradient of the trunk's velocity after 20 steps with respect to a constant control, against differences."""
    sim, (q, v, _, control) = landing()
    ours = step(sim)

    def landed(u: Any) -> Any:
        after, _ = jax.lax.scan(lambda s, _: (ours(s, control=u), None), ours.start(q[2], v[2]), length=20)
        return after.v[2]

    u, h = jnp.asarray(control[2]), 1e-4
    slope = jax.grad(landed)(u)[0]
    assert float(slope) == pytest.approx(float(landed(u + h) - landed(u - h)) / (2.0 * h), rel=1e-4)


def test_single_precision_rounds_configurations_and_velocities_only() -> None:
    sim, (q, v, tau, control) = landing()
    with jax.enable_x64(False):
        ours = step(sim)
        state = jax.jit(ours)(ours.start(q, v), tau, control)
        assert [x.dtype for x in state] == [jnp.float32] * 3 + [jnp.int32]
        sim.reset(q.astype(np.float32), v.astype(np.float32))
        sim.step(tau.astype(np.float32), control.astype(np.float32))
        for x, y in zip(state, ours.function.arrays(sim.state), strict=True):
            np.testing.assert_array_equal(x, y.astype(x.dtype))


def test_inputs_may_be_left_out_and_wrong_ones_are_refused() -> None:
    sim, (q, v, _, _) = landing()
    ours = step(sim)
    state = ours.start(q, v)
    np.testing.assert_array_equal(ours(state).v, ours(state, np.zeros((3, 7)), np.zeros((3, 1))).v)
    with pytest.raises(ValueError, match=r"tau must have shape \(\.\.\., 7\)"):
        ours(state, q)
    with pytest.raises(TypeError, match="memory of a state must have the type int32"):
        ours(jax.tree.map(jnp.asarray, state)._replace(memory=state.memory * 1.0))
    with pytest.raises(TypeError, match=r"state must be the ArrayState of a step, such as step\.start\(q, v\)"):
        ours(q, v)
    with pytest.raises(TypeError, match=r"featherweight\.Simulation"):
        step(sim.robot)  # type: ignore[arg-type]


def test_activations_have_gradients() -> None:
    """Compare with central differences of the state after a step."""
    sim, (q, v, tau, control) = landing(**slow_drive())
    ours = step(sim)
    state = ours.start(q[0], v[0])
    state = state._replace(activation=jnp.linspace(0.2, 0.6, len(state.activation)))

    def total(activation: Any, control: Any) -> Any:
        after = ours(state._replace(activation=activation), tau[0], control)
        return after.v.sum() + after.activation.sum()

    x, u = state.activation, jnp.asarray(control[0])
    for k, gradient in enumerate(jax.grad(total, (0, 1))(x, u)):
        ends = [total(*(y + h if i == k else y for i, y in enumerate((x, u)))) for h in (1e-6, -1e-6)]
        np.testing.assert_allclose(gradient.sum(), (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("drive", [{}, slow_drive()], ids=["direct", "slow"])
def test_forward_differentiation_has_the_jacobians_of_reverse_differentiation(drive: dict[str, Any]) -> None:
    """Check all arguments, in the middle of a motion: compiled, robot by robot, and along a single direction."""
    sim, (q, v, tau, control) = landing(**drive)
    ours = step(sim)
    state = ours(ours.start(q, v), tau, control)

    def ends(q: Any, v: Any, activation: Any, tau: Any, control: Any, memory: Any) -> Any:
        return ours(ArrayState(q, v, activation, memory), tau, control)[:3]

    every = (0, 1, 2, 3, 4)
    args = *state[:3], tau, control, state.memory
    forward, reverse = (jax.jit(jax.vmap(f(ends, every)))(*args) for f in (jax.jacfwd, jax.jacrev))
    one = jax.jacfwd(ends, every)(*(x[1] for x in args))
    for x, y, z in zip(jax.tree.leaves(forward), jax.tree.leaves(reverse), jax.tree.leaves(one), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(x[1], z, rtol=1e-12, atol=1e-12)
    along = tuple(jnp.ones_like(x) for x in args[:5])
    _, rates = jax.jvp(lambda q, v, a, tau, control: ends(q, v, a, tau, control, state.memory), args[:5], along)
    for rate, jacobians in zip(rates, forward, strict=True):
        np.testing.assert_allclose(rate, sum(x.sum(2) for x in jacobians), rtol=1e-9, atol=1e-9)


def test_second_derivatives_are_refused() -> None:
    sim, (q, v, *_) = landing()
    ours = step(sim)
    state = ours.start(q[1], v[1])
    with pytest.raises(NotImplementedError, match="second derivatives of a step are not implemented"):
        jax.hessian(lambda v: ours(state._replace(v=v)).v.sum())(state.v)
