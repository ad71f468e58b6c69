"""Arrays of other libraries: which they are, where they lie, and in which order work on them is done."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from engine.backends.cuda.driver_double import DriverDouble
from engine.backends.cuda.stand_ins import (
    CUPY_STREAM,
    JAX_STREAM,
    TORCH_STREAM,
    CuPyArray,
    DlpackArray,
    InterfaceArray,
    JaxArray,
    JaxTracer,
    Parameter,
    Tensor,
    modules,
)
from featherweight.engine.backends.cuda import dlpack
from featherweight.engine.backends.cuda.arrays import DeviceArray, library_of, on_device
from featherweight.engine.backends.cuda.device_array import LEGACY
from featherweight.engine.backends.cuda.driver import device

ARRAYS = (Tensor, CuPyArray, JaxArray, InterfaceArray, DlpackArray)


@pytest.fixture(autouse=True)
def _libraries(double: DriverDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in modules().items():
        monkeypatch.setitem(sys.modules, name, module)


def host(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(float(np.prod(shape))).reshape(shape)


def on_host(view: DeviceArray) -> np.ndarray[Any, Any]:
    """What a view sees: the stand-ins' memory is the host's."""
    spans = [s * (n - 1) for s, n in zip(view.strides, view.shape, strict=True)]
    begin = sum(min(s, 0) for s in spans)
    size = sum(map(abs, spans)) + view.dtype.itemsize
    memory = memoryview((ctypes.c_char * size).from_address(view.pointer + begin))
    return np.ndarray(view.shape, view.dtype, memory, -begin, view.strides)


def view(x: Any) -> DeviceArray:
    library = library_of([x], ["q"])
    return library.view(x, library.stream(library.ordinal(x, "q")), "q")


def view_to_write(x: Any) -> DeviceArray:
    library = library_of([x], ["out"])
    return library.view_to_write(x, library.stream(library.ordinal(x, "out")), "out")


# which they are


@pytest.mark.parametrize("make", ARRAYS)
def test_arrays_on_a_device_are_known(make: Any) -> None:
    assert on_device(make(host(3)))


def test_a_class_derived_from_a_librarys_is_known() -> None:
    assert on_device(Parameter(host(3))) and not on_device(Parameter(host(3), None))


class Odd:
    """Of no library."""


@pytest.mark.parametrize(
    "x",
    [
        np.zeros(3), np.float64(1), np.int8(1), np.ma.zeros(3), 1, 1.0, True, [1.0], (1.0,), None, "q", Odd(),
        Tensor(host(3), None), JaxArray(host(3), platform="cpu"), JaxTracer(host(3)), DlpackArray(host(3), dlpack.CPU),
    ],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
def test_what_is_on_the_host_is_not_on_a_device(x: Any) -> None:
    assert not on_device(x)
    assert not on_device(x)  # also once its class is known


def test_our_own_arrays_are_on_a_device() -> None:
    assert on_device(DeviceArray(0, (0,), (8,), np.dtype(float), 0))


def test_managed_memory_is_on_a_device() -> None:
    assert on_device(DlpackArray(host(3), dlpack.CUDA_MANAGED))


def test_the_library_is_that_of_all_arrays() -> None:
    titles = [library_of([make(host(3)), make(host(3))], ["q", "v"]).title for make in ARRAYS]
    assert titles == ["PyTorch", "CuPy", "JAX", *["the CUDA array interface"] * 2]


def test_arrays_of_two_libraries_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^q is an array of PyTorch and v one of CuPy; give arrays of one library$"):
        library_of([Tensor(host(3)), CuPyArray(host(3))], ["q", "v"])


@pytest.mark.parametrize("make", [Tensor, CuPyArray, JaxArray])
def test_arrays_on_two_devices_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"^q is on CUDA device 0 and a on 1; give arrays on one device$"):
        library_of([make(host(3), 0), make(host(3), 0), make(host(3), 1)], ["q", "v", "a"])


def test_a_spread_array_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^q is spread over 2 devices; give an array on one$"):
        library_of([JaxArray(host(3), spread=2)], ["q"])


def test_no_library_is_imported() -> None:
    script = (
        "import sys, numpy\nfrom featherweight.engine.backends.cuda.arrays import on_device\n"
        "assert not on_device(numpy.zeros(3)) and not on_device(object())\n"
        "assert not {'torch', 'cupy', 'jax', 'cuda', 'numba'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# where they lie


@pytest.mark.parametrize("make", ARRAYS)
@pytest.mark.parametrize("cut", [np.s_[:], np.s_[::2, 1:], np.s_[::-1], np.s_[0, 0]], ids=str)
def test_views_see_the_elements(make: Any, cut: Any) -> None:
    x = host(4, 6).astype(np.float32)[cut]
    if make is Tensor and any(s < 0 for s in x.strides):
        pytest.skip("tensors have no negative strides")
    x = make(np.asarray(x))
    seen = view(x)
    np.testing.assert_array_equal(on_host(seen), x.host)
    assert seen.dtype == np.float32 and seen.ndim == x.host.ndim and seen.writable


def test_a_view_keeps_the_memory() -> None:
    x = JaxArray(host(3))
    seen = view(x)
    before = sys.getrefcount(x)
    del seen
    assert sys.getrefcount(x) == before - 1


def test_an_interface_tells_no_device_so_the_driver_is_asked() -> None:
    assert view(InterfaceArray(host(3))).ordinal == 1
    assert view(InterfaceArray(host(0), data=(0, False))).ordinal == 0


def test_elements_that_numpy_does_not_know_are_refused() -> None:
    with pytest.raises(
        TypeError, match=r"^q holds torch.bfloat16, which NumPy does not know; convert it to float32 or float64$"
    ):
        view(Tensor(host(3), dtype="bfloat16"))


@pytest.mark.parametrize(
    ("x", "error"),
    [
        (Tensor(host(3), requires_grad=True), r"^q requires a gradient, which does not pass .*; give q\.detach\(\)$"),
        (Tensor(host(3), layout="torch.sparse_coo"), r"^q has layout torch\.sparse_coo; give q\.to_dense\(\)$"),
        (Tensor(host(3), zeros=True), r"^q is a tensor of zeros that PyTorch does not store; give q\.clone\(\)$"),
        (InterfaceArray(host(3), mask=InterfaceArray(host(3))), "^q has a mask; fill its elements with numbers$"),
    ],
    ids=["gradient", "sparse", "zeros", "mask"],
)
def test_arrays_that_are_more_than_numbers_are_refused(x: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        view(x)


def test_a_tensor_that_is_negated_when_read_is_read_negated() -> None:
    seen = view(Tensor(host(3), neg=True))
    np.testing.assert_array_equal(on_host(seen), -host(3))
    with pytest.raises(ValueError, match=r"^out is a view whose elements are negated or conjugated when read"):
        view_to_write(Tensor(host(3), neg=True))


# results


@pytest.mark.parametrize("make", [Tensor, CuPyArray, InterfaceArray, DlpackArray])
def test_results_are_written_where_the_caller_says(make: Any) -> None:
    out = make(np.zeros((4, 6))[:, ::2])
    on_host(view_to_write(out))[...] = 1
    np.testing.assert_array_equal(out.host, np.ones((4, 3)))


def test_arrays_of_jax_are_not_written() -> None:
    with pytest.raises(TypeError, match=r"^out is an array of JAX's, which cannot be written; call without out=$"):
        view_to_write(JaxArray(host(3)))


def test_a_read_only_array_is_not_written() -> None:
    x = host(3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match=r"^out is read-only$"):
        view_to_write(InterfaceArray(x))


@pytest.mark.parametrize("strides", [(0, 8), (8, 8), (16, 16)])
def test_an_array_whose_elements_share_memory_is_not_written(strides: tuple[int, int]) -> None:
    shared = np.lib.stride_tricks.as_strided(host(40), (3, 4), strides)
    with pytest.raises(ValueError, match=r"^out has elements that share memory"):
        view_to_write(CuPyArray(shared))


@pytest.mark.parametrize("make", [Tensor, CuPyArray, JaxArray, InterfaceArray])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_results_are_arrays_of_the_library(make: Any, dtype: str) -> None:
    x = make(host(3))
    library = library_of([x], ["q"])
    ordinal = library.ordinal(x, "q")
    stream = library.stream(ordinal)
    made = [library.empty((2, 3), np.dtype(dtype), ordinal, stream) for _ in range(2)]
    for k, (_, where) in enumerate(made):
        on_host(where)[...] = k
    for k, result in enumerate(library.finish([pending for pending, _ in made], ordinal, stream)):
        assert type(result) is (DeviceArray if make is InterfaceArray else make)
        np.testing.assert_array_equal(on_host(view(result)), np.full((2, 3), k, dtype))


@pytest.mark.parametrize("make", [JaxArray, InterfaceArray])
def test_memory_of_results_is_given_back_at_a_later_call(make: Any, double: DriverDouble) -> None:
    x = make(host(3))
    library = library_of([x], ["q"])
    (result,) = library.finish([library.empty((3,), np.dtype("f8"), 0, LEGACY)[0]], 0, LEGACY)
    before = len(double.told)
    del result
    assert len(double.told) == before  # who lets go may not call the driver there
    again = library.empty((3,), np.dtype("f8"), 0, LEGACY)
    assert double.counts["cuMemFreeAsync"] == 1 and len(double.memory) == 1
    del again


# order in time


def test_work_is_on_the_librarys_current_stream() -> None:
    streams = [library_of([make(host(3))], ["q"]).stream(1) for make in (Tensor, CuPyArray, InterfaceArray)]
    assert streams == [TORCH_STREAM + 1, CUPY_STREAM, LEGACY]


def test_our_stream_waits_for_arguments_of_jax_and_we_for_our_stream(double: DriverDouble) -> None:
    x = JaxArray(host(3))
    view(x)
    library, stream = library_of([x], ["q"]), device(0).own_stream
    assert x.waiting == [stream] and stream > 2
    library.finish([library.empty((3,), np.dtype("f8"), 0, stream)[0]], 0, stream)
    assert double.calls("cuStreamSynchronize") == [[stream]]
    assert all(waiting != JAX_STREAM for waiting, *_ in double.calls("cuStreamWaitEvent"))  # nothing is left to wait for


def test_the_stream_that_an_interface_tells_is_waited_for(double: DriverDouble) -> None:
    view(InterfaceArray(host(3), stream=None))
    view(InterfaceArray(host(3), stream=LEGACY))
    assert double.calls("cuEventRecord") == []
    view(InterfaceArray(host(3), stream=0x99))
    assert [stream for _, stream in double.calls("cuEventRecord")] == [0x99]
    assert [stream for stream, *_ in double.calls("cuStreamWaitEvent")] == [LEGACY]


def array_at_work(stream: int | None) -> DeviceArray:
    return DeviceArray(0x1000, (3,), (8,), np.dtype(float), 0, stream=stream)


@pytest.mark.parametrize(("stream", "told"), [(None, None), (0, 1), (1, 1), (0x99, 0x99)])
def test_our_interface_tells_the_stream(stream: int | None, told: int | None) -> None:
    assert array_at_work(stream).__cuda_array_interface__["stream"] == told


@pytest.mark.parametrize(
    ("stream", "asked", "waits"),
    [(0x99, None, LEGACY), (0x99, 1, LEGACY), (0x99, 0x55, 0x55), (0, 0x55, 0x55)],
)
def test_who_takes_our_array_by_dlpack_waits_for_it(double: DriverDouble, stream: int, asked: int | None, waits: int) -> None:
    array_at_work(stream).__dlpack__(stream=asked)
    assert [s for s, *_ in double.calls("cuStreamWaitEvent")] == [waits]
    assert [s for _, s in double.calls("cuEventRecord")] == [stream or LEGACY]


@pytest.mark.parametrize(("stream", "asked"), [(None, 0x55), (0x99, -1), (0x99, 0x99), (0, 1), (1, None)])
def test_who_need_not_wait_does_not(double: DriverDouble, stream: int | None, asked: int | None) -> None:
    array_at_work(stream).__dlpack__(stream=asked)
    assert double.calls("cuStreamWaitEvent") == []


def test_our_array_is_told_whole() -> None:
    x = DeviceArray(0x1000, (3, 2), (32, 8), np.dtype("f4"), 1, writable=False)
    told = x.__cuda_array_interface__
    assert (told["version"], told["shape"], told["strides"], told["typestr"], told["data"]) == (
        3, (3, 2), (32, 8), "<f4", (0x1000, True),
    )  # fmt: skip
    assert x.__dlpack_device__() == (dlpack.CUDA, 1)
    layout, where = dlpack.read(x.__dlpack__(max_version=(1, 0), dl_device=(dlpack.CUDA, 1)))
    assert layout == (0x1000, (3, 2), (32, 8), np.dtype("f4"), False) and where == (dlpack.CUDA, 1)


@pytest.mark.parametrize("asked", [{"copy": True}, {"dl_device": (dlpack.CPU, 0)}])
def test_our_array_is_not_copied(asked: dict[str, Any]) -> None:
    with pytest.raises(BufferError, match="an array on CUDA device 0 is handed on as it is, without a copy"):
        array_at_work(None).__dlpack__(**asked)


def test_our_array_does_not_print_what_it_keeps() -> None:
    assert "owner" not in repr(DeviceArray(0x1000, (3,), (8,), np.dtype(float), 0, host(3)))


def test_numpy_says_that_our_array_is_not_on_the_host() -> None:
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(array_at_work(None))
