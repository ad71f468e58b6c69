"""Tests of functions of robots in JAX, against calls with NumPy arrays, their derivatives, and differences."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import robots
from featherweight.engine.backends.cuda import driver
from featherweight.model.generators import chain, from_parents
from featherweight.robots.linkages import four_bar_configuration
from oracles.mechanisms import closed

jax = pytest.importorskip("jax")

jax.config.update("jax_num_cpu_devices", 2)

import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, PartitionSpec  # noqa: E402

from featherweight.bridges.jax_arrays import xla_target  # noqa: E402
from featherweight.jax import wrap  # noqa: E402

RNG = np.random.default_rng(5)
SINGLE = 1e-5  # tolerance in single precision
EXACT = 1e-12  # relative: derivatives by other algorithms round differently
H = 1e-3  # [s]
FLYING = fw.build(from_parents([-1, 0], rng=1, joint_types=("floating", "revolute"), masses=(0.5, 2.0)))
ARM = fw.build(chain(2))


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def on_cuda() -> list[Any]:
    try:
        return jax.devices("cuda")
    except RuntimeError:
        return []


def state(robot: fw.Robot, *batch: int) -> list[Any]:
    return [robot.random_configuration(rng=RNG, size=batch), *RNG.standard_normal((2, *batch, robot.nv))]


def close(x: Any, y: Any, tolerance: float = EXACT) -> None:
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * np.abs(y).max())


def test_values_and_batches_are_those_from_numpy() -> None:
    f, g = wrap(FLYING.forward_dynamics), FLYING.forward_dynamics
    q, v, tau = state(FLYING, 3, 5)
    np.testing.assert_array_equal(jax.jit(f)(q[0, 0], v[0, 0], tau[0, 0]), g(q[0, 0], v[0, 0], tau[0, 0]))
    for args in ((q, v, tau), (q, v[0, 0], tau[0]), (q[:, :1], v[0], tau[0, 0]), (q[:1, :1], v[:1, :1], tau[0, 0])):
        np.testing.assert_array_equal(jax.jit(f)(*args), g(*args))
    by_columns = jax.vmap(jax.vmap(f, (0, None, 0)), (2, None, 2), 1)
    expected = g(q, v[0, 0], tau)
    np.testing.assert_array_equal(by_columns(np.transpose(q, (0, 2, 1)), v[0, 0], np.transpose(tau, (0, 2, 1))), expected)
    assert f(q[:0], v[:0], tau[:0]).shape == (0, 5, FLYING.nv)


def test_large_batches_are_shared_among_threads() -> None:
    states = 3 * FLYING.forward_dynamics.machine_code.states_of_thread + 7
    q, v, tau = state(FLYING, states)
    np.testing.assert_array_equal(jax.jit(wrap(FLYING.forward_dynamics))(q, v[0], tau), FLYING.forward_dynamics(q, v[0], tau))


def test_dtypes_promote() -> None:
    f, (q, v, tau) = wrap(ARM.forward_dynamics), state(ARM)
    single = [jnp.float32(x) for x in (q, v, tau)]
    assert f(*single).dtype == jnp.float32
    np.testing.assert_array_equal(f(*single), ARM.forward_dynamics(*map(np.asarray, single)))
    assert f(single[0], v, single[2]).dtype == jnp.float64
    assert f([0, 0], [0, 1], [1, 0]).dtype == jnp.float64
    assert f(*(x.astype(jnp.float16) for x in single)).dtype == jnp.float32
    by_q = jax.grad(lambda q: f(q, v, tau).sum())(q)
    with jax.enable_x64(False):
        a, by_q32 = f(q, v, tau), jax.grad(lambda q: f(q, v, tau).sum())(jnp.asarray(q))
    assert a.dtype == by_q32.dtype == jnp.float32
    np.testing.assert_array_equal(a, ARM.forward_dynamics(*map(np.asarray, single)))
    close(by_q32, by_q, SINGLE)


def test_several_results_options_and_algorithms() -> None:
    both = FLYING.together(FLYING.mass_matrix, FLYING.bias_force)
    q, v, a = state(FLYING, 2)
    results = jax.jit(wrap(both))(q, v)
    assert results._fields == both(q, v)._fields
    for x, y in zip(results, both(q, v), strict=True):
        np.testing.assert_array_equal(x, y)
    forces = RNG.standard_normal((2, len(FLYING.bodies), 6))
    f = wrap(FLYING.inverse_dynamics)
    np.testing.assert_array_equal(
        f(q, v=v, a=a, external_forces=forces), FLYING.inverse_dynamics(q, v, a, external_forces=forces)
    )
    by_forces = jax.jacrev(lambda x: f(q[0], v[0], a[0], external_forces=x))(forces[0])
    close(by_forces, FLYING.inverse_dynamics.derivative("external_forces")(q[0], v[0], a[0], external_forces=forces[0]))
    np.testing.assert_array_equal(f(q, v, a, external_forces=None), FLYING.inverse_dynamics(q, v, a))


def rates(robot: fw.Robot, q: Any) -> Any:
    _, by_v = jax.jacfwd(wrap(robot.integrate), (0, 1))(q, np.zeros(robot.nv))
    return np.asarray(by_v)


def test_derivatives_are_those_of_the_function_along_velocities() -> None:
    f, x = wrap(FLYING.forward_dynamics), state(FLYING)
    by_q, by_v, by_tau = FLYING.forward_dynamics.derivative()(*x)
    R = rates(FLYING, x[0])
    P = R @ np.linalg.pinv(R)
    for jacobian in (jax.jacfwd, jax.jacrev):
        J = jax.jit(jacobian(f, (0, 1, 2)))(*x)
        close(J[0] @ R, by_q)
        close(J[0] @ P, J[0])  # the derivative along the quaternion's norm is zero
        close(J[1], by_v)
        close(J[2], by_tau)
    dx = [RNG.standard_normal(np.shape(a)) for a in x]
    _, a_dot = jax.jvp(f, x, dx)
    close(a_dot, by_q @ np.linalg.pinv(R) @ dx[0] + by_v @ dx[1] + by_tau @ dx[2])
    bar = RNG.standard_normal(FLYING.nv)
    _, back = jax.vjp(f, *x)
    close(back(bar)[0] @ (P @ dx[0]), bar @ by_q @ np.linalg.pinv(R) @ dx[0])


def test_derivatives_of_placements_are_those_of_their_entries() -> None:
    f, q = wrap(FLYING.frame_placement(FLYING.frames[-1].name)), state(FLYING)[0]
    R, step = rates(FLYING, q), 1e-5
    ends = [[f(FLYING.integrate(q, s * step * e)) for s in (1, -1)] for e in np.eye(FLYING.nv)]
    close(jax.jacrev(f)(q) @ R, np.stack([(a - b) / (2 * step) for a, b in ends], -1), 1e-8)


def test_second_derivatives_by_all_ways_agree() -> None:
    x, f = state(FLYING), wrap(FLYING.forward_dynamics)

    def loss(q: Any, v: Any) -> Any:
        return jnp.sin(f(q, v, x[2])).sum()

    ways = [a(b(loss, (0, 1)), (0, 1)) for a in (jax.jacfwd, jax.jacrev) for b in (jax.jacfwd, jax.jacrev)]
    H = [jax.tree.leaves(jax.jit(way)(*x[:2])) for way in ways]
    for other in H[1:]:
        for a, b in zip(H[0], other, strict=True):
            close(a, b, 1e-9)
    R, step = rates(FLYING, x[0]), 1e-6
    for k, e in enumerate(np.eye(FLYING.nv)):
        ends = [jax.grad(loss)(FLYING.integrate(x[0], s * step * e), x[1]) for s in (1, -1)]
        close(H[0][0] @ R[:, k], (ends[0] - ends[1]) / (2 * step), 1e-5)


def rolled_out(robot: fw.Robot, steps: int) -> Any:
    forward_dynamics, integrate = wrap(robot.forward_dynamics), wrap(robot.integrate)

    def end(q: Any, v: Any, tau: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            q, v = x
            v = v + H * forward_dynamics(q, v, tau)
            return (integrate(q, H * v), v), None

        (q, v), _ = jax.lax.scan(step, (q, v), None, length=steps)
        return (q * jnp.arange(1.0, 1.0 + robot.nq)).sum() + (v**2).sum()

    return jax.jit(end)


def test_gradients_through_a_thousand_steps() -> None:
    end, x = rolled_out(FLYING, 1000), state(FLYING)
    g = jax.jit(jax.grad(end, (0, 1, 2)))(*x)
    steps = [*RNG.standard_normal((3, FLYING.nv))]
    exact = g[0] @ (rates(FLYING, x[0]) @ steps[0]) + g[1] @ steps[1] + g[2] @ steps[2]

    def at(s: float) -> Any:
        return end(FLYING.integrate(x[0], s * steps[0]), x[1] + s * steps[1], x[2] + s * steps[2])

    d = 1e-5
    close(exact, (8 * (at(d) - at(-d)) - (at(2 * d) - at(-2 * d))) / (12 * d), 1e-6)
    assert abs(g[0][3:7] @ x[0][3:7]) < EXACT * np.abs(g[0]).max()


def test_gradients_of_states_that_share_an_argument() -> None:
    f, (q, v, tau) = wrap(FLYING.forward_dynamics), state(FLYING, 4)

    def loss(q: Any, v: Any, tau: Any) -> Any:
        return (f(q, v, tau) ** 2).sum()

    shared = jax.grad(loss, 2)(q, v, tau[0])
    each = jax.vmap(jax.grad(loss, 2), (0, 0, None))(q, v, tau[0])
    close(shared, each.sum(0))


def test_shard_map() -> None:
    f, (q, v, tau) = wrap(FLYING.forward_dynamics), state(FLYING, 4)
    mesh, rows, all_of = Mesh(np.array(jax.devices("cpu")), ("x",)), PartitionSpec("x"), PartitionSpec()

    def gradient(tau: Any, q: Any, v: Any) -> Any:
        return jax.grad(lambda tau: (f(q, v, tau) ** 2).sum())(tau)

    assert mesh.size == 2
    spread = jax.shard_map(f, mesh=mesh, in_specs=(rows, rows, all_of), out_specs=rows)
    np.testing.assert_array_equal(jax.jit(spread)(q, v, tau[0]), FLYING.forward_dynamics(q, v, tau[0]))
    spread = jax.shard_map(gradient, mesh=mesh, in_specs=(all_of, rows, rows), out_specs=all_of)
    close(jax.jit(spread)(tau[0], q, v), gradient(tau[0], q, v))


def test_donated_arrays_are_written_after_they_are_read() -> None:
    q, v, tau = state(FLYING, 70)
    expected = FLYING.forward_dynamics(q, v, tau)
    given = jnp.asarray(v)
    a = jax.jit(wrap(FLYING.forward_dynamics), donate_argnums=1)(q, given, tau)
    assert given.is_deleted()
    np.testing.assert_array_equal(a, expected)


def test_equal_functions_are_one_program() -> None:
    x = state(ARM, 4)
    other = pickle.loads(pickle.dumps(ARM.forward_dynamics))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(wrap(other)))(*x), ARM.forward_dynamics(*x))
    texts = [jax.jit(wrap(f)).lower(*x).as_text() for f in (ARM.forward_dynamics, other)]
    targets = len(xla_target._targets)
    assert texts[0] == texts[1] and "custom_call @featherweight." in texts[0] and "callback" not in texts[0]
    assert jax.jit(wrap(fw.build(chain(2)).forward_dynamics)).lower(*x).as_text() == texts[0]
    assert jax.jit(wrap(fw.build(chain(2, rng=1)).forward_dynamics)).lower(*x).as_text() != texts[0]
    assert len(xla_target._targets) == targets + 1


def test_robots_with_loops() -> None:
    lengths = (0.3, 1.0, 0.6, 1.1)
    robot = closed(robots.four_bar(lengths))
    q, v, tau = np.array(four_bar_configuration(0.7, lengths)), np.array([2.0]), np.array([0.5])
    f = wrap(robot.forward_dynamics)
    np.testing.assert_array_equal(f(q, v, tau), robot.forward_dynamics(q, v, tau))
    R = np.asarray(jax.jacfwd(wrap(robot.tangent_step), 1)(q, np.zeros(robot.nv)))
    by_q = robot.forward_dynamics.derivative("q")(q, v, tau)
    assert abs(by_q) > 0.1
    close(jax.jacrev(f)(q, v, tau) @ R, by_q, 1e-9)
    with pytest.raises(TypeError, match=r"wrap robot\.tangent_step"):
        wrap(robot.integrate)  # type: ignore[arg-type]


def test_errors_name_the_argument() -> None:
    f, (q, v, tau) = wrap(ARM.forward_dynamics), state(ARM)
    with pytest.raises(ValueError, match=r"forward_dynamics: v must have shape \(\.\.\., 2\); got \(3,\)"):
        jax.jit(f)(q, np.zeros(3), tau)
    with pytest.raises(TypeError, match="takes q, v, tau; missing: tau"):
        f(q, v)
    with pytest.raises(TypeError, match="forward_dynamics: tau must hold real numbers; got dtype complex"):
        f(q, v, 1j * tau)
    with pytest.raises(TypeError, match="forward_dynamics: tau must be an array of numbers"):
        f(q, v, "none")
    with pytest.raises(ValueError, match="batch axes do not broadcast"):
        f(np.zeros((2, 2)), np.zeros((3, 2)), tau)
    with pytest.raises(ValueError, match=r"only traced functions are machine code.*interpreted"):
        wrap(fw.build(chain(2), execution="interpreted").forward_dynamics)
    with pytest.raises(TypeError, match="function must be a compiled function of a robot"):
        wrap(np.sin)  # type: ignore[arg-type]


def test_other_platforms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = wrap(ARM.forward_dynamics), state(ARM)
    with pytest.raises(NotImplementedError, match="forward_dynamics computes on processors and CUDA devices"):
        jax.jit(f).trace(*x).lower(lowering_platforms=("tpu",))
    if not on_cuda():
        with pytest.raises(NotImplementedError, match=r"forward_dynamics does not compute on CUDA devices here: .*device_put"):
            jax.jit(f).trace(*x).lower(lowering_platforms=("cuda",))
        monkeypatch.setattr(jax, "local_devices", lambda backend: [SimpleNamespace(local_hardware_id=0)])
        with pytest.raises(NotImplementedError, match="CUDA needs"):
            jax.jit(f).trace(*x).lower(lowering_platforms=("cuda",))


def test_on_cuda_devices_a_call_is_of_a_handler_with_kernels_for_jaxs_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the choice of a handler for CUDA; tests of such handlers without JAX check that they launch kernels."""
    loaded: list[tuple[int, str]] = []

    class Kernel:
        def row(self, device: int) -> tuple[int, ...]:
            return 5, 6, 32, 0

    class Code:
        identity = "code"

        def kernel(self, device: int, precision: str) -> Kernel:
            loaded.append((device, precision))
            return Kernel()

    robot = fw.build(chain(3))
    f, x = robot.forward_dynamics, state(robot, 4)
    vars(f.own)["device_code"] = Code()
    monkeypatch.setattr(jax, "local_devices", lambda backend: [SimpleNamespace(local_hardware_id=k) for k in (2, 0)])
    monkeypatch.setattr(driver, "device", lambda ordinal: ordinal)
    monkeypatch.setattr(driver, "address", lambda name: 7)
    for _ in range(2):
        lowered = jax.jit(wrap(f)).trace(*x).lower(lowering_platforms=("cuda",)).as_text()
    handler, (table, _) = next(kept for name, kept in xla_target._targets.items() if name in lowered)
    assert loaded == [(0, "double"), (2, "double")]
    assert table.tolist() == [[5, 6, 32, 0], [0] * 4, [5, 6, 32, 0]]
    words = (ctypes.c_uint64 * 5).from_address(handler.address("words"))
    assert [*words] == [7, 7, 7, table.ctypes.data, 3]


@pytest.mark.gpu
@pytest.mark.skipif(not on_cuda(), reason="JAX has no CUDA device")
def test_on_a_device() -> None:
    f, x = wrap(FLYING.forward_dynamics), [jax.device_put(a, on_cuda()[0]) for a in state(FLYING, 1000)]

    def loss(q: Any, v: Any, tau: Any) -> Any:
        return (jax.vmap(f)(q, v, tau) ** 2).sum()

    by_all = jax.jit(jax.grad(loss, (0, 1, 2)))
    close(jax.jit(f)(*x), FLYING.forward_dynamics(*map(np.asarray, x)), 1e-9)
    for there, here in zip(*(by_all(*y) for y in (x, jax.device_put(x, jax.devices("cpu")[0]))), strict=True):
        close(there, here, 1e-9)
