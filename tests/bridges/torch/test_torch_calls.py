"""Tests of the two paths of a call from PyTorch: directly to the function, or through the operator if a mode of PyTorch
observes calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import featherweight  # noqa: E402
from featherweight.bridges.torch_tensors.operators import _watchers_of  # noqa: E402
from featherweight.model import generators  # noqa: E402
from featherweight.torch import wrap  # noqa: E402


@pytest.fixture(scope="module")
def arm() -> Any:
    return featherweight.build(generators.chain(2))


@pytest.fixture(scope="module")
def loop() -> Any:
    return featherweight.build(featherweight.robots.four_bar())


def tensors(robot: Any, *batch: int, dtype: Any = torch.float64) -> list[Any]:
    rng = np.random.default_rng(4)
    q = robot.random_configuration(rng=rng, size=batch)
    v, tau = rng.standard_normal((2, *batch, robot.nv))
    return [torch.as_tensor(x).to(dtype) for x in (q, v, tau)]


def test_calls_that_nothing_watches_go_straight(arm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f, (q, v, tau) = wrap(arm.forward_dynamics), tensors(arm)
    f(q.clone().requires_grad_(), v, tau).sum().backward()  # from now on it has a pullback
    for operator in (f._operators[()], f._operators[()]._pullback._operator):
        for way in ("apply", "recorded", "call", "value"):
            monkeypatch.setattr(operator, way, None)
    assert torch.equal(f(q, v, tau), torch.as_tensor(arm.forward_dynamics(q.numpy(), v.numpy(), tau.numpy())))
    q.requires_grad_()
    f(q, v, tau).sum().backward()
    assert q.grad.shape == q.shape
    with TorchDispatchMode(), pytest.raises(TypeError, match="'NoneType' object is not callable"):
        f(q, v, tau)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 0)], ids=str)
def test_straight_and_watched_ways_agree(arm: Any, batch: tuple[int, ...], dtype: Any) -> None:
    f = wrap(arm.forward_dynamics)
    operator = f._operators[()]
    args = tensors(arm, *batch, dtype=dtype)
    args[2] = args[2].expand(2, *args[2].shape)
    moving = [args[0].clone().requires_grad_(), args[1], args[2].detach().requires_grad_()]
    values, grads = [], []
    for way in (f, operator.apply, operator.recorded, operator.call):
        y = way(*moving)
        values.append((y, way(*args)))
        grads.append(torch.autograd.grad(y.sum(), [moving[0], moving[2]]))
    for own in values:
        assert all(torch.equal(y, values[0][1]) and y.dtype == dtype for y in own)
        assert [y.requires_grad for y in own] == [True, False]
    for g in grads:
        assert [(x.shape, x.dtype) for x in g] == [(moving[k].shape, dtype) for k in (0, 2)]
        assert all(torch.equal(a, b) for a, b in zip(g, grads[0], strict=True))


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("moving", [False, True])
def test_zeros_that_are_not_stored_are_zeros(arm: Any, place: int, moving: bool) -> None:
    """Check zero tensors without storage, as PyTorch's forward differentiation creates them; at a first call and at later
    ones.
    """
    args, other = tensors(arm), tensors(arm)
    args[place] = torch._efficientzerotensor(2, dtype=torch.float64)
    other[place] = torch.zeros(2, dtype=torch.float64)
    args[(place + 1) % 3].requires_grad_(moving)
    f = wrap(featherweight.build(generators.chain(2, rng=10 * place + moving)).forward_dynamics)
    for _ in range(2):
        assert torch.equal(f(*args), f(*other))


def test_tensors_that_stand_for_others_are_passed_to_the_dispatcher(arm: Any) -> None:
    q, v, tau = tensors(arm)
    f = wrap(arm.forward_dynamics)
    y = f(q, torch._to_functional_tensor(v), tau)
    torch._sync(y)
    assert torch.equal(torch._from_functional_tensor(y), f(q, v, tau))


def test_tensors_without_memory_or_in_pieces_are_refused_by_name(arm: Any) -> None:
    f, (q, v, tau) = wrap(arm.forward_dynamics), tensors(arm)
    freed = v.clone()
    freed.untyped_storage().resize_(0)
    for _ in range(2):
        with pytest.raises(ValueError, match="forward_dynamics: v has no elements: its storage was freed"):
            f(q, freed, tau)
    others = {
        "v must be a dense tensor .*; got layout torch.sparse_coo": v.to_sparse(),
        "v must be a dense tensor .*; got layout torch._mkldnn": v.float().to_mkldnn(),
        "v must be a dense tensor .*; got a nested tensor": torch.nested.nested_tensor([v, v[:1]]),
    }
    for _ in range(2):
        for message, other in others.items():
            with pytest.raises(TypeError, match=f"forward_dynamics: {message}"):
                f(q, other, tau)
        assert torch.equal(f(q, v, tau), f(q, v, tau))
    negated = torch._neg_view(v)
    assert torch.equal(f(q, negated, tau), f(q, -v, tau))


def test_modes_of_gradients_are_kept(arm: Any) -> None:
    f, (q, v, tau) = wrap(arm.forward_dynamics), tensors(arm)
    tau.requires_grad_()
    with torch.no_grad():
        assert not f(q, v, tau).requires_grad
    with torch.inference_mode():
        y = f(q, v, tau)
    assert y.is_inference()
    assert not y.requires_grad
    assert f(q, v, tau).requires_grad
    parameter = torch.nn.Parameter(q)
    assert f(parameter, v, tau.detach()).requires_grad
    assert torch.equal(f(torch._neg_view(-q), v, tau), f(q, v, tau))  # PyTorch negates at the time of reading


def seen_by(mode: type) -> Callable[[Any, list[Any]], bool]:
    hook = "__torch_dispatch__" if issubclass(mode, TorchDispatchMode) else "__torch_function__"
    seen: list[str] = []

    def look(self: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        seen.append(str(function))
        return function(*args, **(kwargs or {}))

    def run(f: Any, args: list[Any]) -> bool:
        with type("Looking", (mode,), {hook: look})():
            f(*args)
        return any("forward_dynamics" in name for name in seen)

    return run


def in_graph(**how: Any) -> Callable[[Any, list[Any]], bool]:
    def run(f: Any, args: list[Any]) -> bool:
        graph = make_fx(lambda *args: f(*args), **how)(*args)
        others = [x + 1 for x in args]
        return torch.equal(graph(*others), f(*others)) and "forward_dynamics" in graph.code

    return run


def faked(f: Any, args: list[Any]) -> bool:
    with FakeTensorMode() as mode:
        y = f(*map(mode.from_tensor, args))
    return type(y).__name__ == "FakeTensor" and y.shape == args[2].shape


def traced(f: Any, args: list[Any]) -> bool:
    graph = torch.jit.trace(lambda *args: f(*args), args)
    others = [x + 1 for x in args]
    return torch.equal(graph(*others), f(*others))


def subclassed(f: Any, args: list[Any]) -> bool:
    class Named(torch.Tensor):  # type: ignore[misc, name-defined]  # types are checked without PyTorch
        pass

    return type(f(args[0].as_subclass(Named), *args[1:])) is Named


def batched(f: Any, args: list[Any]) -> bool:
    rows = [torch.stack([x, x + 1]) for x in args]
    return torch.equal(torch.func.vmap(f)(*rows), f(*rows))


def dual(f: Any, args: list[Any]) -> bool:
    with torch.autograd.forward_ad.dual_level():
        y = f(torch.autograd.forward_ad.make_dual(args[0], args[1]), *args[1:])
        return torch.autograd.forward_ad.unpack_dual(y).tangent is not None


def batched_cotangents(f: Any, args: list[Any]) -> bool:
    def jacobian(vectorize: bool) -> Any:
        return torch.autograd.functional.jacobian(lambda q: f(q, *args[1:]), args[0], vectorize=vectorize)

    return torch.allclose(jacobian(True), jacobian(False), rtol=1e-12, atol=1e-12)


WATCHERS: dict[str, Callable[[Any, list[Any]], bool]] = {
    "a dispatch mode": seen_by(TorchDispatchMode),
    "a function mode": seen_by(TorchFunctionMode),
    "make_fx": in_graph(),
    "make_fx with fake tensors": in_graph(tracing_mode="fake"),
    "make_fx before dispatch": in_graph(pre_dispatch=True),
    "fake tensors": faked,
    "torch.jit": traced,
    "a subclass": subclassed,
    "vmap": batched,
    "forward differentiation": dual,
    "batches of cotangents": batched_cotangents,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("watcher", WATCHERS.values(), ids=WATCHERS.keys())
@pytest.mark.parametrize("asked", [True, False], ids=["asked", "PyTorch without these questions"])
def test_who_looks_on_sees_the_operator(arm: Any, watcher: Any, asked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not asked:
        monkeypatch.setattr("featherweight.bridges.torch_tensors.operators._watchers", _watchers_of(object()))
    assert watcher(wrap(arm.forward_dynamics), tensors(arm))


def test_a_robot_with_a_loop_has_gradients_of_several_results_and_of_options(loop: Any) -> None:
    q, v, tau = tensors(loop)
    f = wrap(loop.together(loop.forward_dynamics, loop.mass_matrix))
    forces = torch.linspace(0, 1, len(loop.bodies) * 6, dtype=torch.float64).reshape(-1, 6).requires_grad_()
    tau.requires_grad_()
    both = f(q, v, tau)
    assert both._fields == ("forward_dynamics", "mass_matrix")
    assert torch.autograd.gradcheck(lambda tau: f(q, v, tau).forward_dynamics, tau)
    dynamics = wrap(loop.inverse_dynamics)
    v.requires_grad_()

    def by(v: Any, forces: Any) -> Any:
        return dynamics(q, v, tau, external_forces=forces)

    assert torch.autograd.gradcheck(by, (v, forces), fast_mode=True)
    assert torch.autograd.gradgradcheck(by, (v, forces), fast_mode=True)
    operator = dynamics._operators[("external_forces",)]
    args = dict(zip(("q", "v", operator.names[2]), (q, v, tau), strict=True)) | {"external_forces": forces}
    results = torch.library.opcheck(operator.call, tuple(args[name] for name in operator.names))
    assert set(results.values()) == {"SUCCESS"}
