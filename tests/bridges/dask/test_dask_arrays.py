"""Functions of Dask arrays are what they are of NumPy's, block by block, and are computed when they are asked for."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from engine.kernels import SEVERAL, arguments, swinging  # noqa: E402
from featherweight.engine.function import CompiledFunction  # noqa: E402

N = 4


@pytest.fixture(scope="module")
def one() -> CompiledFunction:
    return swinging(N)


@pytest.fixture(scope="module")
def many() -> CompiledFunction:
    return CompiledFunction(SEVERAL, "traced")


@pytest.fixture(autouse=True)
def _in_this_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


def lazily(x: Any, *chunks: Any) -> Any:
    return da.from_array(x, chunks=(*chunks, *(-1,) * (x.ndim - len(chunks))))


def test_featherweight_does_not_import_dask() -> None:
    code = "import sys, featherweight as f; f.Simulation; f.build(f.generators.chain(2)); sys.exit('dask' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_results_are_lazy_and_their_chunks_and_types_known(one: CompiledFunction[Any]) -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 30, 5, N))
    found = one(lazily(x, 7, 2), y)
    assert isinstance(found, da.Array)
    assert found.chunks == ((7, 7, 7, 7, 2), (2, 2, 1), (N,)) and found.dtype == np.float64
    np.testing.assert_array_equal(found.compute(), one(x, y))
    single = one(lazily(x.astype(np.float32), 10), y.astype(np.float32))
    assert single.dtype == np.float32
    assert one(lazily(x.astype(np.float32), 10), y).dtype == np.float64
    computed = single.compute()
    assert computed.dtype == np.float32
    np.testing.assert_array_equal(computed, one(x.astype(np.float32), y.astype(np.float32)))


def test_arguments_of_dask_and_of_numpy_broadcast(one: CompiledFunction[Any]) -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 6, 10, N))
    for a, b in ((x, y[0]), (x[0], y), (x, y[:, :1]), (x[:1], y), (x, y[0, 0]), (x[0, 0], y)):
        for chunked, other in ((lazily(a, *(4,) * (a.ndim - 1)), b), (a, lazily(b, *(3,) * (b.ndim - 1)))):
            np.testing.assert_array_equal(one(chunked, other).compute(), one(a, b))
    np.testing.assert_array_equal(one(lazily(x, 2, 5), lazily(y, 3, 10)).compute(), one(x, y))  # unlike chunks
    np.testing.assert_array_equal(one(lazily(x, 3), y=y[0, 0].tolist()).compute(), one(x, y[0, 0]))


def test_core_axes_are_put_together(one: CompiledFunction[Any]) -> None:
    x, y = np.random.default_rng(2).normal(size=(2, 8, N))
    found = one(da.from_array(x, chunks=(3, 3)), y)
    assert found.chunks == ((3, 3, 2), (N,))
    np.testing.assert_array_equal(found.compute(), one(x, y))


def test_lengths_need_not_be_known(one: CompiledFunction[Any]) -> None:
    x = np.random.default_rng(3).normal(size=(20, N))
    chosen = lazily(x, 6)
    chosen = chosen[chosen[:, 0] > 0.0]
    kept = x[x[:, 0] > 0.0]
    np.testing.assert_array_equal(one(chosen, chosen).compute(), one(kept, kept))
    np.testing.assert_array_equal(one(chosen, x[0]).compute(), one(kept, x[0]))


def test_a_variable_whose_data_are_a_dask_array_is_one(one: CompiledFunction[Any]) -> None:
    """As xarray's are; computed here, it would be all in memory at once."""

    class Variable:
        def __init__(self, data: Any) -> None:
            self.data = data

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.asarray(self.data)

    x, y = np.random.default_rng(5).normal(size=(2, 10, N))
    found = one(Variable(lazily(x, 4)), y)
    assert isinstance(found, da.Array) and found.chunks == ((4, 4, 2), (N,))
    np.testing.assert_array_equal(found.compute(), one(x, y))
    assert isinstance(one(Variable(x), y), np.ndarray)


def test_chunks_may_be_empty(many: CompiledFunction[Any]) -> None:
    plain = arguments((9,))
    chunked = [da.from_array(x, chunks=((5, 0, 4), *(-1,) * (x.ndim - 1))) for x in plain]
    for x, y in zip(dask.compute(*many(*chunked)), many(*plain), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("batch", [(), (11,)])
def test_several_results_are_a_named_tuple_and_computed_once(batch: tuple[int, ...], many: CompiledFunction[Any]) -> None:
    plain = arguments(batch)
    expected = many(*plain)
    found = many(*(lazily(x, *(4,) * len(batch)) for x in plain))
    assert type(found) is type(expected)
    for x, y in zip(dask.compute(*found), expected, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
    given = many(lazily(plain[0]), *plain[1:], load=np.ones(3))
    np.testing.assert_array_equal(given.y.compute(), many(*plain, load=np.ones(3)).y)


def test_what_is_wrong_is_told_before_anything_is_computed(one: CompiledFunction[Any]) -> None:
    x = da.zeros((6, N), chunks=3)
    with pytest.raises(ValueError, match=r"swing: y must have shape \(..., 4\); got \(6, 3\)"):
        one(x, x[:, :3])
    with pytest.raises(ValueError, match="do not broadcast"):
        one(x, np.zeros((5, N)))
    with pytest.raises(TypeError, match="real numbers"):
        one(x, x.astype(complex))
    with pytest.raises(ValueError, match=r"y must have shape \(\.\.\., 4\); got \(6, nan\)"):
        one(x, da.zeros((6, N), chunks=(3, N)).map_blocks(np.copy, chunks=((3, 3), (np.nan,))))
    with pytest.raises(TypeError, match="out= does not support Dask arrays"):
        one(x, x, out=np.zeros((6, N)))
    with pytest.raises(ValueError, match="threads"):
        one(x, x, threads=0)


def test_blocks_have_one_thread_each_unless_told(one: CompiledFunction[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    run = type(one.runner.executable).run

    def noting(self: Any, arrays: Any, batch: Any, dtype: Any, out: Any, threads: Any) -> Any:
        asked.append(threads)
        return run(self, arrays, batch, dtype, out, threads)

    monkeypatch.setattr(type(one.runner.executable), "run", noting)
    x = np.zeros((2, 3, 5, N))  # of two axes: not for the entry
    one(lazily(x, 1), x).compute()
    one(lazily(x, 1), x, threads=3).compute()
    assert asked == [1, 1, 3, 3]


def test_a_process_has_one_of_each_function_that_is_sent_to_it(one: CompiledFunction[Any]) -> None:
    from featherweight.engine.lazy_blocks import OnBlocks
    from featherweight.engine.runner import Runner

    call = OnBlocks(Runner, one.ways.own, None, None, one.runner)
    sent = pickle.dumps(call)
    again, more = pickle.loads(sent), pickle.loads(sent)
    assert again is more
    assert pickle.loads(pickle.dumps(OnBlocks(Runner, one.ways.own, 2, None, one.runner))) is not again
    assert again.__dask_tokenize__() == call.__dask_tokenize__()
    x, y = np.random.default_rng(4).normal(size=(2, 8, N))
    np.testing.assert_array_equal(again(x, y), one(x, y))


def test_results_have_the_same_names_in_every_process(one: CompiledFunction[Any]) -> None:
    x = da.zeros((6, N), chunks=3)
    again: CompiledFunction[Any] = swinging(N)
    assert one(x, x).name == again(x, x).name != again(x, x + 1.0).name
