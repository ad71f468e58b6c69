"""Tests of a simulation step in PyTorch: bits of pure steps, gradients through contact, and transformations."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from featherweight.torch import TensorState, step  # noqa: E402
from simulation.stepped_robot import landing, slow_drive  # noqa: E402

STEPS = 30


@pytest.mark.parametrize("drive", [{}, slow_drive()], ids=["direct", "slow"])
def test_steps_have_the_bits_of_pure_steps(drive: dict[str, Any]) -> None:
    """Check all robots together, robot by robot under vmap, and one alone; activations and delays go on."""
    sim, (q, v, tau, control) = landing(**drive)
    sim.reset(q, v)
    sim.step(tau, control, steps=3)
    ours, begin, end = step(sim), sim.state, sim.state
    for _ in range(STEPS):
        end = sim.advance(end, tau=tau, control=control)
    assert end.arrays["counts"].any() and bool(drive) == (end.activation.size > 0 and end.activation.all())
    inputs = torch.tensor(tau), torch.tensor(control)
    for once in (ours, torch.func.vmap(ours), pickle.loads(pickle.dumps(ours))):
        state = ours.from_state(begin)
        for _ in range(STEPS):
            state = once(state, *inputs)
        assert isinstance(state, TensorState) and ours.to_state(state) == end
    alone = ours.from_state(begin[1])
    for _ in range(STEPS):
        alone = ours(alone, inputs[0][1], inputs[1][1])
    assert ours.to_state(alone) == end[1]


def test_a_start_is_the_state_after_a_reset() -> None:
    sim, (q, v, *_) = landing(**slow_drive())
    ours = step(sim)
    sim.reset(q, v)
    assert ours.to_state(ours.start(torch.tensor(q), torch.tensor(v))) == sim.state
    sim.reset(q[1])
    assert ours.to_state(ours.start(torch.tensor(q[1]))) == sim.state


def test_leading_axes_of_states_and_inputs_broadcast() -> None:
    sim, (q, v, *_) = landing()
    ours, futures = step(sim), torch.linspace(-1.0, 1.0, 5, dtype=torch.float64)[:, None]
    begin = ours.start(torch.tensor(q[1]), torch.tensor(v[1]))
    after = ours(begin, control=futures)
    assert [x.shape for x in after] == [(5, n) for n in list(ours.function.sizes.values())[:4]]
    for k in range(5):
        for x, y in zip(after, ours(begin, control=futures[k]), strict=True):
            np.testing.assert_array_equal(x[k], y)


def test_gradients_are_those_of_the_step_function() -> None:
    """Check `backward` and `torch.func`, in the middle of a motion, and robot by robot under vmap."""
    sim, (q, v, tau, control) = landing()
    ours, function, rng = step(sim), sim.step_function(), np.random.default_rng(0)
    bars = rng.standard_normal((3, 8)), rng.standard_normal((3, 7))
    q_bar, v_bar = map(torch.tensor, bars)
    inputs = torch.tensor(tau), torch.tensor(control)
    state = ours(ours.start(torch.tensor(q), torch.tensor(v)), *inputs)
    numbers = [x.numpy() for x in state]
    ends = *bars, np.zeros((3, 0))
    found = function.pullback(numbers, tau, control, function(numbers, tau, control).q, ends)
    expected = found.q, found.v, found.tau, found.control
    given = [x.clone().requires_grad_() for x in (state.q, state.v, *inputs)]
    after = ours(state._replace(q=given[0], v=given[1]), *given[2:])
    assert not after.memory.requires_grad
    ((after.q * q_bar).sum() + (after.v * v_bar).sum()).backward()
    for x, y in zip(given, expected, strict=True):
        np.testing.assert_allclose(x.grad, y, rtol=1e-12, atol=1e-12)

    def total(q: Any, v: Any, tau: Any, control: Any, memory: Any, bars: Any) -> Any:
        after = ours(TensorState(q, v, q.new_zeros(*q.shape[:-1], 0), memory), tau, control)
        return (after.q * bars[0]).sum() + (after.v * bars[1]).sum()

    gradient = torch.func.grad(total, (0, 1, 2, 3))
    for apply in (gradient, torch.func.vmap(gradient)):
        for x, y in zip(apply(state.q, state.v, *inputs, state.memory, (q_bar, v_bar)), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    jacobian = torch.func.jacrev(lambda v: ours(state._replace(v=v)).v)(state.v)
    assert jacobian.shape == (3, 7, 3, 7)


def test_gradients_go_through_a_landing() -> None:
    """Check the gradient of the trunk's velocity after 20 steps with respect to a constant control, against differences."""
    sim, (q, v, _, control) = landing()
    ours = step(sim)

    def landed(u: Any) -> Any:
        state = ours.start(torch.tensor(q[2]), torch.tensor(v[2]))
        for _ in range(20):
            state = ours(state, control=u)
        return state.v[2]

    u, h = torch.tensor(control[2], requires_grad=True), 1e-4
    landed(u).backward()
    with torch.no_grad():
        assert float(u.grad[0]) == pytest.approx(float(landed(u + h) - landed(u - h)) / (2.0 * h), rel=1e-4)


def test_single_precision_rounds_configurations_and_velocities_only() -> None:
    sim, (q, v, tau, control) = landing()
    ours, given = step(sim), [torch.tensor(x).float() for x in (q, v, tau, control)]
    state = ours(ours.start(*given[:2]), *given[2:])
    assert [x.dtype for x in state] == [torch.float32] * 3 + [torch.int32]
    sim.reset(*(x.double().numpy() for x in given[:2]))
    sim.step(*(x.double().numpy() for x in given[2:]))
    for x, y in zip(state, ours.from_state(sim.state), strict=True):
        np.testing.assert_array_equal(x, y.to(x.dtype))


def test_inputs_may_be_left_out_and_wrong_ones_are_refused() -> None:
    sim, (q, v, _, _) = landing()
    ours, x, u = step(sim), torch.tensor(q), torch.tensor(v)
    state = ours.start(x, u)
    np.testing.assert_array_equal(ours(state).v, ours(state, torch.zeros_like(u), torch.zeros(1, dtype=x.dtype)).v)
    with pytest.raises(ValueError, match=r"tau must have shape \(\.\.\., 7\)"):
        ours(state, x)
    with pytest.raises(TypeError, match="v must be a tensor"):
        ours(state._replace(v=v))
    with pytest.raises(TypeError, match="memory of a state must have the type int32"):
        ours(state._replace(memory=state.memory.double()))
    with pytest.raises(TypeError, match=r"state must be the TensorState of a step, such as step\.start\(q, v\)"):
        ours(x, u)
    with pytest.raises(TypeError, match=r"featherweight\.Simulation"):
        step(sim.robot)  # type: ignore[arg-type]
    y = torch.tensor(v, requires_grad=True)
    (slope,) = torch.autograd.grad(ours(state._replace(v=y)).v.square().sum(), y, create_graph=True)
    total = slope.sum()
    with pytest.raises(NotImplementedError, match="second derivatives"):
        total.backward()


def test_activations_have_gradients() -> None:
    """Compare with central differences of the state after a step."""
    sim, (q, v, tau, control) = landing(**slow_drive())
    ours = step(sim)
    start = ours.start(torch.tensor(q[0]), torch.tensor(v[0]))

    def total(activation: Any, control: Any) -> Any:
        after = ours(start._replace(activation=activation), torch.tensor(tau[0]), control)
        return after.v.sum() + after.activation.sum()

    activation = torch.linspace(0.2, 0.6, len(start.activation), dtype=torch.float64, requires_grad=True)
    given = activation, torch.tensor(control[0], requires_grad=True)
    for k, gradient in enumerate(torch.autograd.grad(total(*given), given)):
        ends = [total(*(y.detach() + h if i == k else y.detach() for i, y in enumerate(given))) for h in (1e-6, -1e-6)]
        np.testing.assert_allclose(gradient.sum(), (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("drive", [{}, slow_drive()], ids=["direct", "slow"])
def test_forward_differentiation_has_the_jacobians_of_reverse_differentiation(drive: dict[str, Any]) -> None:
    """Check all arguments, in the middle of a motion: one robot, robot by robot, along one direction, and dual tensors."""
    sim, (q, v, tau, control) = landing(**drive)
    ours = step(sim)
    inputs = torch.tensor(tau), torch.tensor(control)
    state = ours(ours.start(torch.tensor(q), torch.tensor(v)), *inputs)

    def ends(q: Any, v: Any, activation: Any, tau: Any, control: Any, memory: Any) -> Any:
        return tuple(ours(TensorState(q, v, activation, memory), tau, control))[:3]

    every = (0, 1, 2, 3, 4)
    args = *state[:3], *inputs, state.memory
    forward, reverse = (torch.func.vmap(f(ends, every))(*args) for f in (torch.func.jacfwd, torch.func.jacrev))
    one = torch.func.jacfwd(ends, every)(*(x[1] for x in args))
    for rows, others, own in zip(forward, reverse, one, strict=True):
        for x, y, z in zip(rows, others, own, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(x[1], z, rtol=1e-12, atol=1e-12)
    along = tuple(torch.ones_like(x) for x in args[:5])

    def from_here(q: Any, v: Any, activation: Any, tau: Any, control: Any) -> Any:
        return ends(q, v, activation, tau, control, state.memory)

    _, rates = torch.func.jvp(from_here, args[:5], along)
    with torch.autograd.forward_ad.dual_level():
        duals = [torch.autograd.forward_ad.make_dual(x, y) for x, y in zip(args[:5], along, strict=True)]
        of_duals = [torch.autograd.forward_ad.unpack_dual(x).tangent for x in from_here(*duals)]
    for rate, other, jacobians in zip(rates, of_duals, forward, strict=True):
        np.testing.assert_allclose(rate, sum(x.sum(2) for x in jacobians), rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(rate, other)
