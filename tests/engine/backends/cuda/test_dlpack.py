"""DLPack's capsules, of arrays on the CPU, so that NumPy takes and gives them."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from featherweight.engine.backends.cuda import dlpack
from featherweight.engine.backends.cuda.dlpack import CPU, Strided, compact, export, read


class Exporter:
    """Hands on an array, and tells whether someone has it."""

    def __init__(self, array: np.ndarray[Any, Any], writable: bool = True, most: tuple[int, int] = (1, 0)) -> None:
        self.array, self.writable, self.most = array, writable, most
        self._owner: weakref.ref[Any] | None = None

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **_: Any) -> Any:
        class Owner:
            array = self.array

        owner = Owner()
        self._owner = weakref.ref(owner)
        a = self.array
        layout = Strided(a.ctypes.data, a.shape, a.strides, a.dtype, self.writable)
        return export(layout, (CPU, 0), owner, min(max_version or (0, 0), self.most) >= (1, 0))

    @property
    def held(self) -> bool:
        return self._owner is not None and self._owner() is not None


asks_by_version = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy 2.0 knows no versions of DLPack"
)

ARRAYS = [
    np.arange(24.0).reshape(4, 6),
    np.arange(24.0, dtype=np.float32).reshape(4, 6)[::2, 1:].T,
    np.arange(6, dtype=np.int8),
    np.arange(6, dtype=np.uint64)[::-1],
    np.array([True, False]),
    np.array(3.0, np.float16),
    np.zeros((0, 3)),
]


@pytest.mark.parametrize("most", [(1, 0), (0, 8)])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_numpy_takes_an_array_and_lets_go_of_it(array: np.ndarray[Any, Any], most: tuple[int, int]) -> None:
    exporter = Exporter(array, most=most)
    taken = np.from_dlpack(exporter)
    assert taken.dtype == array.dtype
    np.testing.assert_array_equal(taken, array)
    assert array.size == 0 or np.shares_memory(taken, array)
    assert exporter.held
    del taken
    assert not exporter.held


@pytest.mark.parametrize("most", [(1, 0), (0, 8)])
def test_a_capsule_that_nobody_uses_lets_go(most: tuple[int, int]) -> None:
    exporter = Exporter(np.arange(3.0), most=most)
    capsule = exporter.__dlpack__(max_version=(1, 1))
    assert exporter.held
    del capsule
    assert not exporter.held


def test_nothing_is_kept_of_many_arrays() -> None:
    exporter = Exporter(np.arange(3.0))
    np.from_dlpack(exporter)
    before = sys.getrefcount(exporter.array)
    for _ in range(100):
        np.from_dlpack(exporter)
        exporter.__dlpack__()
    gc.collect()
    assert sys.getrefcount(exporter.array) <= before + 1


def test_an_error_under_way_is_not_lost_when_an_array_goes() -> None:
    exporter = Exporter(np.arange(3.0))

    def failing() -> Any:
        raise ValueError("of the caller's")

    with pytest.raises(ValueError, match=r"^of the caller's$"):
        np.from_dlpack(exporter) + failing()  # the sum's first term goes while the error is raised
    assert not exporter.held


def test_an_array_may_go_on_another_thread() -> None:
    exporter = Exporter(np.arange(3.0))
    taken = [np.from_dlpack(exporter)]
    thread = threading.Thread(target=taken.clear)
    thread.start()
    thread.join()
    assert not exporter.held


@asks_by_version
def test_a_read_only_array_stays_one() -> None:
    assert not np.from_dlpack(Exporter(np.arange(3.0), writable=False)).flags.writeable


def test_a_read_only_array_is_refused_where_nothing_would_say_so() -> None:
    with pytest.raises(BufferError, match="before version 1 cannot say that an array is read-only"):
        Exporter(np.arange(3.0), writable=False).__dlpack__()


@pytest.mark.parametrize(
    "array", [np.zeros(3, ">f8"), np.zeros(3, "M8[s]"), np.zeros(3, "f4,f8")["f1"]], ids=lambda a: str(a.dtype)
)
def test_what_cannot_be_told_is_refused(array: np.ndarray[Any, Any]) -> None:
    with pytest.raises(BufferError, match="DLPack cannot tell of"):
        Exporter(array).__dlpack__()


@pytest.mark.parametrize("version", [{}, pytest.param({"max_version": (1, 0)}, marks=asks_by_version)], ids=["oldest", "1.0"])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_numpys_capsules_are_read(array: np.ndarray[Any, Any], version: dict[str, Any]) -> None:
    capsule = array.__dlpack__(**version)
    layout, device = read(capsule)
    assert device == (CPU, 0)
    assert (layout.pointer, layout.shape, layout.dtype, layout.writable) == (array.ctypes.data, array.shape, array.dtype, True)
    assert array.size == 0 or layout.strides == array.strides


def test_our_capsules_are_read() -> None:
    array = np.arange(24.0).reshape(4, 6)[1:, ::2]
    layout, device = read(Exporter(array, writable=False).__dlpack__(max_version=(1, 0)))
    assert layout == (array.ctypes.data, array.shape, array.strides, array.dtype, False) and device == (CPU, 0)


def test_a_used_capsule_is_refused() -> None:
    exporter = Exporter(np.arange(3.0))
    capsule = exporter.__dlpack__()

    class Given:
        def __dlpack__(self, **_: Any) -> Any:
            return capsule

        __dlpack_device__ = exporter.__dlpack_device__

    kept = np.from_dlpack(Given())
    with pytest.raises(TypeError, match="not a DLPack capsule, or one that was used already"):
        read(capsule)
    del kept
    assert not exporter.held


def test_elements_that_numpy_has_not_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dlpack.CODES, "f", 4)  # bfloat16
    capsule = Exporter(np.zeros(3, np.float16)).__dlpack__()
    monkeypatch.undo()
    with pytest.raises(TypeError, match="NumPy has no element type for DLPack's code 4, 16 bits, 1 lanes"):
        read(capsule)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (2, 1, 4)])
def test_compact_strides_are_numpys(shape: tuple[int, ...]) -> None:
    assert compact(shape, 8) == np.zeros(shape).strides
