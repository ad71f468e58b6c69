"""Tests of arrays of other libraries: whether they are on a device, the address of elements, and write access."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from engine.backends.cuda.host_device import Array
from featherweight.engine.backends.cuda.device_array import CUDA, compact, seen
from featherweight.engine.backends.cuda.driver import LEGACY
from featherweight.engine.backends.cuda.libraries import OTHERS, DeviceArray, library_of, on_device

NO_DEVICE = -1  # of cuda-core, for memory of the host


def host(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(float(np.prod(shape))).reshape(shape)


class Odd:
    """An object of no library."""


@pytest.mark.parametrize(
    "x",
    [np.zeros(3), np.float64(1), np.int8(1), np.ma.zeros(3), 1, 1.0, True, [1.0], (1.0,), None, "q", Odd()],
    ids=lambda x: type(x).__name__,
)
def test_what_is_on_the_host_is_not_on_a_device(x: Any) -> None:
    assert not on_device(x)
    assert not on_device(x)  # also for a known class


def test_arrays_that_offer_memory_of_a_device_are_there() -> None:
    assert on_device(Array(host(3)))
    ours = DeviceArray(0, (0,), (8,), np.dtype(float), 0)
    assert on_device(ours) and library_of([ours], ["q"]).title == "the CUDA array interface"


def test_no_library_is_imported() -> None:
    script = (
        "import sys, numpy\nfrom featherweight.engine.backends.cuda.libraries import on_device\n"
        "assert not on_device(numpy.zeros(3)) and not on_device(object())\n"
        "assert not {'torch', 'cupy', 'jax', 'cuda', 'numba'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("cut", [np.s_[:], np.s_[::2, 1:], np.s_[::-1], np.s_[0, 0], np.s_[:0]], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "u1", "?"])
def test_cuda_core_tells_where_elements_lie(cut: Any, dtype: str) -> None:
    """Check that it also reads arrays of the host, for which it needs no device."""
    pytest.importorskip("cuda.core")
    x = np.asarray(host(4, 6).astype(dtype)[cut])
    view = seen(x, -1, "q")
    assert (view.shape, view.dtype, view.ordinal, view.writable) == (x.shape, x.dtype, NO_DEVICE, True)
    if x.size:
        assert (view.pointer, view.strides) == (x.ctypes.data, x.strides)
    x.flags.writeable = False
    assert not seen(x, -1, "q").writable


def test_elements_that_cuda_core_does_not_know_are_refused() -> None:
    pytest.importorskip("cuda.core")
    with pytest.raises(TypeError, match=r"^q is not an array that can be read here \(DLPack only .*\); use one of float32"):
        seen(np.zeros(3, ">f8"), -1, "q")


def test_only_what_has_a_place_of_its_own_is_written() -> None:
    pytest.importorskip("cuda.core")
    shared = [np.lib.stride_tricks.as_strided(host(40), (3, 4), s) for s in ((0, 8), (8, 8), (16, 16))]
    for x in shared:
        with pytest.raises(ValueError, match=r"^out has elements that share memory"):
            OTHERS.view_to_write(x, -1, "out")
    fixed = host(3)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match=r"^out is read-only$"):
        OTHERS.view_to_write(fixed, -1, "out")
    for x in (host(4, 6)[:, ::2], host(4, 6).T, host(4, 6)[::-1]):
        assert OTHERS.view_to_write(x, -1, "out").shape == x.shape


@pytest.mark.parametrize(("stream", "told"), [(None, None), (0, LEGACY), (1, LEGACY), (0x99, 0x99)])
def test_our_interface_tells_the_stream(stream: int | None, told: int | None) -> None:
    x = DeviceArray(0x1000, (3, 2), (32, 8), np.dtype("f4"), 1, writable=False, stream=stream)
    interface = x.__cuda_array_interface__
    assert [interface[name] for name in ("version", "shape", "strides", "typestr", "data", "stream")] == [
        3, (3, 2), (32, 8), "<f4", (0x1000, True), told,
    ]  # fmt: skip
    assert x.__dlpack_device__() == (CUDA, 1)


def test_our_array_is_not_copied_and_is_none_of_numpy() -> None:
    x = DeviceArray(0x1000, (3,), (8,), np.dtype(float), 0, host(3))
    wrong: list[dict[str, Any]] = [{"copy": True}, {"dl_device": (1, 0)}]
    for asked in wrong:
        with pytest.raises(BufferError, match="an array on CUDA device 0 can only be exported without a copy"):
            x.__dlpack__(**asked)
    with pytest.raises(TypeError, match="an array on CUDA device 0 is not a NumPy array: copy it here"):
        np.asarray(x)
    assert "owner" not in repr(x)


def test_strides_of_rows() -> None:
    for shape in ((), (3,), (2, 3, 4)):
        assert compact(shape, 8) == np.zeros(shape).strides
