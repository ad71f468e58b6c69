"""Tests of functions of robots as operators of PyTorch. `make test-torch` runs them in an environment with PyTorch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import featherweight  # noqa: E402
from featherweight.model import generators  # noqa: E402
from featherweight.torch import wrap  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")  # warnings of PyTorch's own compiler


@pytest.fixture(scope="module")
def arm() -> Any:
    return featherweight.build(generators.chain(3))


@pytest.fixture(scope="module")
def flying() -> Any:
    """Return a free-flyer with a joint of each other kind of rotation."""
    types = ("floating", "revolute", "spherical", "planar")
    return featherweight.build(generators.from_parents([-1, 0, 0], rng=27, joint_types=types))


def tensors(robot: Any, *batch: int, dtype: Any = torch.float64) -> list[Any]:
    rng = np.random.default_rng(4)
    q = robot.random_configuration(rng=rng, size=batch)
    return [
        torch.as_tensor(x).to(dtype)
        for x in (q, rng.standard_normal((*batch, robot.nv)), rng.standard_normal((*batch, robot.nv)))
    ]


def test_values_are_the_functions_bit_by_bit(arm: Any) -> None:
    f = arm.forward_dynamics
    for dtype in (torch.float64, torch.float32):
        q, v, tau = tensors(arm, 5, dtype=dtype)
        y = wrap(f)(q, v, tau=tau)
        assert y.dtype == dtype
        np.testing.assert_array_equal(y.numpy(), f(q.numpy(), v.numpy(), tau.numpy()))
    assert wrap(f)(q, v.double(), tau).dtype == torch.float64


def test_leading_axes_broadcast_and_strides_are_any(arm: Any) -> None:
    q, v, tau = tensors(arm, 4, 5)
    f, strided = wrap(arm.forward_dynamics), q.transpose(0, 1).contiguous().transpose(0, 1)
    assert torch.equal(f(strided, v, tau), f(q, v, tau))
    assert torch.equal(f(q, v[0, 0], tau[:1]), f(q, v[0, 0].expand(4, 5, 3), tau[:1].expand(4, 5, 3)))
    assert f(q[:0], v[:0], tau[:0]).shape == (0, 5, 3)


def test_arguments_on_the_processor_are_not_copied(arm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = wrap(arm.mass_matrix)
    seen: list[Any] = []
    [operator] = wrapped._operators.values()

    def noted(*args: Any) -> Any:
        seen.extend(args)
        return arm.mass_matrix(*args)

    monkeypatch.setattr(operator, "function", noted)
    q = tensors(arm, 5)[0]
    wrapped(q.requires_grad_())
    assert [x.ctypes.data for x in seen] == [q.data_ptr()]


def test_several_results_are_a_named_tuple_with_gradients_of_each(arm: Any) -> None:
    f = wrap(arm.together(arm.mass_matrix, arm.bias_force))
    q, v, _ = tensors(arm, 2)
    q.requires_grad_()
    both = f(q, v)
    assert both._fields == ("mass_matrix", "bias_force")
    [own] = torch.autograd.grad(both.bias_force.sum(), q)
    [expected] = torch.autograd.grad(wrap(arm.bias_force)(q, v).sum(), q)
    torch.testing.assert_close(own, expected, rtol=1e-11, atol=1e-11)


def test_gradients_of_first_and_second_order_are_those_of_differences(arm: Any) -> None:
    args = [x.requires_grad_() for x in tensors(arm, 2)]
    args[2] = args[2].detach()[:1].requires_grad_()  # broadcast: its gradient is a sum
    f = wrap(arm.inverse_dynamics)
    assert torch.autograd.gradcheck(f, args, fast_mode=True)
    assert torch.autograd.gradgradcheck(f, args, fast_mode=True)
    assert torch.autograd.gradcheck(f, args, check_forward_ad=True, check_backward_ad=False, fast_mode=True)


def test_optional_arguments_by_keyword_have_gradients(arm: Any) -> None:
    q, v, tau = tensors(arm)
    forces = torch.ones(len(arm.bodies), 6, dtype=torch.float64, requires_grad=True)
    f = wrap(arm.forward_dynamics)
    assert torch.autograd.gradcheck(lambda x: f(q, v, tau, external_forces=x), forces, fast_mode=True)
    assert torch.equal(f(q, v, tau, external_forces=None), f(q, v, tau))


def test_gradients_of_configurations_are_tangent_and_agree_along_the_manifold(flying: Any) -> None:
    q, v, tau = tensors(flying)
    q.requires_grad_()
    f, w, h = wrap(flying.forward_dynamics), tau.flip(0), 1e-6
    y_bar = torch.linspace(1, 2, flying.nv, dtype=torch.float64)
    [q_bar] = torch.autograd.grad(f(q, v, tau), q, y_bar)
    at = q.detach().numpy()
    ends = [torch.as_tensor(flying.integrate(at, s * h * w.numpy())) for s in (1, -1)]
    q_dot = (ends[0] - ends[1]) / (2 * h)
    slope = y_bar @ (f(ends[0], v, tau) - f(ends[1], v, tau)) / (2 * h)
    torch.testing.assert_close(q_bar @ q_dot, slope, rtol=1e-7, atol=1e-6)  # differences: 1e-12 / 1e-6, times curvature
    v_bar = flying.forward_dynamics.pullback(at, v.numpy(), tau.numpy(), y_bar.numpy())[0]
    assert float(q_bar @ q_dot) == pytest.approx(v_bar @ w.numpy(), rel=1e-7)
    normals = [q.detach()[3:7] @ q_bar[3:7]]  # normal of a unit quaternion
    assert max(map(abs, normals)) < 1e-10 * q_bar.abs().max()


def test_gradients_pass_through_integration(flying: Any) -> None:
    """Check the gradient of a rollout with respect to the velocities of two steps."""
    q, v, tau = tensors(flying)
    step, f, h = wrap(flying.integrate), wrap(flying.forward_dynamics), 1e-6

    def rollout(v: Any) -> Any:
        x = q
        for _ in range(2):
            v = v + 0.01 * f(x, v, tau)
            x = step(x, 0.01 * v)
        return x.square() @ torch.arange(1.0, len(x) + 1, dtype=torch.float64)

    v.requires_grad_()
    [v_bar] = torch.autograd.grad(rollout(v), v)
    with torch.no_grad():
        expected = [(rollout(v + h * e) - rollout(v - h * e)) / (2 * h) for e in torch.eye(flying.nv, dtype=torch.float64)]
    torch.testing.assert_close(v_bar, torch.stack(expected), rtol=1e-6, atol=1e-7)


def test_the_operator_passes_torchs_own_checks(arm: Any, flying: Any) -> None:
    for function, args in ((flying.integrate, tensors(flying)[:2]), (arm.forward_dynamics, tensors(arm, 2))):
        [operator] = {k: v for k, v in wrap(function)._operators.items() if not k}.values()
        args = [args[0].requires_grad_(), *args[1:]]
        results = torch.library.opcheck(operator.call, tuple(args))
        assert set(results.values()) == {"SUCCESS"}


def test_transformations_agree_with_own_derivatives(arm: Any) -> None:
    q, v, tau = tensors(arm, 4)
    f, n = wrap(arm.forward_dynamics), arm.forward_dynamics.derivative("q")
    expected = torch.as_tensor(n(q.numpy(), v.numpy(), tau.numpy()))
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        own = torch.func.vmap(jacobian(f), (0, 0, None))(q, v, tau[0])
        torch.testing.assert_close(own[0], expected[0], rtol=1e-9, atol=1e-9)
    assert torch.equal(torch.func.vmap(f, (1, None, 0), 0)(q.T, v[0], tau), f(q, v[0], tau))
    nested = torch.func.vmap(torch.func.vmap(f, (0, None, None)), (None, None, 0))(q, v, tau)
    assert torch.equal(nested, f(q[None, :, None], v, tau[:, None, None]))
    hessian = torch.func.hessian(lambda tau: f(q[0], v[0], tau).square().sum())(tau[0])
    inverse = torch.linalg.inv(wrap(arm.mass_matrix)(q[0]))
    torch.testing.assert_close(hessian, 2 * inverse @ inverse, rtol=1e-8, atol=1e-8)


def test_compiled_whole_with_gradients(arm: Any) -> None:
    q, v, tau = tensors(arm, 4)
    f, both = wrap(arm.forward_dynamics), wrap(arm.together(arm.mass_matrix, arm.bias_force))

    def loss(q: Any) -> Any:
        r = both(torch.sin(q), v)
        return (f(q.cos(), v, tau=tau).square() + r.bias_force).sum() + r.mass_matrix.sum()

    grads = []
    for g in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        x = q.clone().requires_grad_()
        g(x).backward()
        grads.append(x.grad)
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-12, atol=1e-12)
    vmapped = torch.compile(lambda q: torch.func.vmap(f, (0, 0, None))(q, v, tau[0]), fullgraph=True, backend="aot_eager")
    assert torch.equal(vmapped(q), f(q, v, tau[0]))


def test_forward_derivatives_are_not_lost_in_what_is_compiled(arm: Any) -> None:
    q, v, tau = tensors(arm)
    f = wrap(arm.forward_dynamics)
    jvp = torch.compile(lambda q: torch.func.jvp(lambda q: f(q, v, tau), (q,), (v,))[1], fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match=r"(?s)exception|not support forward derivatives"):
        jvp(q)


def test_equal_functions_have_one_operator(arm: Any) -> None:
    again = featherweight.build(generators.chain(3))
    f = wrap(arm.forward_dynamics)
    assert wrap(again.forward_dynamics)._operators[()] is f._operators[()]
    assert wrap(arm.inverse_dynamics)._operators[()] is not f._operators[()]
    for other in (copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert other._operators[()] is f._operators[()]


def test_no_more_threads_than_torch_has(arm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = wrap(arm.mass_matrix)
    told: list[int | None] = []
    q = tensors(arm, 2)[0]
    [operator] = f._operators.values()

    def noted(q: Any, threads: int | None = None) -> Any:
        told.append(threads)
        return arm.mass_matrix(q)

    monkeypatch.setattr(operator, "function", noted)
    monkeypatch.setattr("featherweight.bridges.torch_tensors.operators.processors", lambda: 2)
    for n in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=n: n)
        f(q)
    assert told == [1, None, None]


def test_what_is_wrong_is_told_by_argument(arm: Any) -> None:
    q, v, tau = tensors(arm)
    f = wrap(arm.forward_dynamics)
    with pytest.raises(ValueError, match=r"tau must have shape \(..., 3\); got \(2,\)"):
        f(q, v, tau[:2])
    with pytest.raises(TypeError, match="takes q, v, tau"):
        f(q, v)
    with pytest.raises(TypeError, match="takes q, v, tau"):
        f(q, v, torque=tau)
    with pytest.raises(TypeError, match="v must be a tensor; got ndarray"):
        f(q, v.numpy(), tau)
    with pytest.raises(TypeError, match=r"q must hold float32 or float64; got torch\.float16"):
        f(q.half(), v, tau)
    with pytest.raises(TypeError, match="function must be a compiled function of a robot"):
        wrap(arm.random_configuration)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_as_here(arm: Any) -> None:
    here = [x.requires_grad_() for x in tensors(arm, 64)]
    there = [x.detach().cuda().requires_grad_() for x in here]
    f = wrap(arm.forward_dynamics)
    values = [f(*args) for args in (here, there)]
    assert values[1].is_cuda
    torch.testing.assert_close(values[1].cpu(), values[0], rtol=1e-9, atol=1e-9)
    grads = [torch.autograd.grad(y.square().sum(), args) for y, args in zip(values, (here, there), strict=True)]
    for own, other in zip(*grads, strict=True):
        torch.testing.assert_close(other.cpu(), own, rtol=1e-8, atol=1e-8)
    with pytest.raises(TypeError, match="is on a device"):
        f(there[0], there[1], here[2])
