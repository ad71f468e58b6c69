"""Tests of the built-in function for one state: arguments that it takes and refuses, and its reference counts."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from featherweight import CompiledFunction

torch = pytest.importorskip("torch")

import featherweight  # noqa: E402
import featherweight.bridges.torch_tensors.straight as straight  # noqa: E402
from featherweight.bridges.torch_tensors.straight import straight_entry  # noqa: E402
from featherweight.model import generators  # noqa: E402
from featherweight.torch import wrap  # noqa: E402

needs_a_table = pytest.mark.skipif(straight._exchange() is None, reason="needs PyTorch's table of DLPack's functions")


@pytest.fixture(scope="module")
def arm() -> Any:
    return featherweight.build(generators.chain(2))


def state(dtype: Any = torch.float64) -> list[Any]:
    return list(torch.linspace(0.1, 0.6, 6, dtype=dtype).reshape(3, 2).unbind())


def entry_of(function: CompiledFunction[Any], dtype: Any) -> Any:
    """Return an entry of the table, if there is a table."""
    entry = straight_entry(function, dtype)
    assert entry is not None
    return entry


@needs_a_table
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
def test_results_are_the_functions_bit_by_bit(arm: Any, dtype: Any) -> None:
    several = arm.together(arm.mass_matrix, arm.bias_force, arm.kinetic_energy)
    for function, args in ((arm.forward_dynamics, state(dtype)), (several, state(dtype)[:2])):
        own, expected = entry_of(function, dtype)(*args), function(*(x.numpy() for x in args))
        if isinstance(own, torch.Tensor):
            own, expected = (own,), (expected,)
        assert type(own) is tuple
        for x, y in zip(own, expected, strict=True):
            assert x.dtype == dtype
            assert torch.equal(x, torch.as_tensor(y))
            assert x.is_contiguous()


@needs_a_table
def test_what_it_does_not_take_is_left_to_others(arm: Any) -> None:
    q, v, tau = state()
    entry = entry_of(arm.forward_dynamics, torch.float64)
    odd = torch.frombuffer(bytearray(25), dtype=torch.uint8)[1:17].numpy().view("f8")
    others: dict[str, tuple[Any, ...]] = {
        "one less": (q, v),
        "another length": (q, v, torch.ones(3, dtype=torch.float64)),
        "a batch": (q, v, tau[None]),
        "another precision": (q, v, tau.float()),
        "a stride": (q, v, torch.ones(4, dtype=torch.float64)[::2]),
        "an expanded one": (q, v, torch.ones(1, dtype=torch.float64).expand(2)),
        "no elements anywhere": (q, v, tau.to("meta")),
        "zeros that are not stored": (q, v, torch._efficientzerotensor(2, dtype=torch.float64)),
        "a part of zeros that are not stored": (q, v, torch._efficientzerotensor(4, dtype=torch.float64)[2:]),
        "one that stands for another": (q, v, torch._to_functional_tensor(tau)),
        "no tensor": (q, v, tau.numpy()),
        "an odd address": (q, v, torch.from_numpy(odd)),
    }
    assert {name: entry(*args) for name, args in others.items()} == dict.fromkeys(others)
    assert entry(q, v, tau) is not None


@needs_a_table
def test_it_keeps_what_it_needs_and_lets_all_go(arm: Any) -> None:
    q, v, tau = state()
    entry = entry_of(arm.forward_dynamics, torch.float64)
    own = weakref.ref(entry.__self__)
    result = entry(q, v, tau)
    seen = weakref.ref(result)
    gc.collect()
    assert torch.equal(entry(q, v, tau), result)
    del result
    assert seen() is None
    del entry
    gc.collect()
    assert own() is None


def test_without_the_table_calls_go_by_arrays(arm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.Tensor, "__dlpack_c_exchange_api__", raising=False)
    assert straight_entry(arm.inverse_dynamics, torch.float64) is None
    f, args = wrap(arm.inverse_dynamics), state()
    expected = torch.as_tensor(arm.inverse_dynamics(*(x.numpy() for x in args)))
    for _ in range(2):
        assert torch.equal(f(*args), expected)
    assert f._operators[()]._entries == {torch.float64: None}


def test_functions_that_are_not_traced_have_none(arm: Any) -> None:
    interpreted = featherweight.build(generators.chain(2), execution="interpreted").forward_dynamics
    assert straight_entry(interpreted, torch.float64) is None
