"""On a device, with the libraries that are installed there: memory, streams, code, and arrays there and back."""

from __future__ import annotations

import gc
import struct
from typing import Any

import numpy as np
import pytest

from featherweight.engine.backends.cuda.arrays import DeviceArray, library_of, on_device
from featherweight.engine.backends.cuda.driver import Device, DeviceKernel, device, devices


def _there() -> bool:
    try:
        return devices() > 0
    except (ImportError, RuntimeError):
        return False


pytestmark = [
    pytest.mark.skipif(not _there(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),  # those libraries' warnings are theirs
]

# y[i] = 2 x[i], elements at strides in bytes; then it waits, where it is told, so that who does not wait for it is found out
DOUBLE = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 y, .param .u64 x, .param .u64 step, .param .u64 n, .param .u64 spins)
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .reg .b64 %d<12>;
  .reg .f64 %f<3>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r0, %r1, %r2;
  cvt.u64.u32 %d0, %r3;
  ld.param.u64 %d1, [n];
  setp.ge.u64 %p0, %d0, %d1;
  @%p0 bra END;
  ld.param.u64 %d2, [spins];
  mov.u64 %d3, 0;
SPIN:
  setp.ge.u64 %p1, %d3, %d2;
  @%p1 bra GO;
  mov.u64 %d4, %clock64;
  and.b64 %d4, %d4, 0;
  add.u64 %d3, %d3, 1;
  add.u64 %d3, %d3, %d4;
  bra SPIN;
GO:
  ld.param.u64 %d5, [x];
  ld.param.u64 %d6, [step];
  mad.lo.u64 %d7, %d0, %d6, %d5;
  cvta.to.global.u64 %d7, %d7;
  ld.global.f64 %f0, [%d7];
  add.f64 %f1, %f0, %f0;
  ld.param.u64 %d8, [y];
  shl.b64 %d9, %d0, 3;
  add.u64 %d10, %d8, %d9;
  cvta.to.global.u64 %d10, %d10;
  st.global.f64 [%d10], %f1;
END:
  ret;
}
"""
SPINS = 300_000  # some milliseconds
N = 1000


@pytest.fixture(scope="module")
def kernel() -> DeviceKernel:
    d = device(0)
    return d.load(d.assemble(DOUBLE, 64)).kernel("twice")


def twice(kernel: DeviceKernel, y: DeviceArray, x: DeviceArray, stream: int, spins: int = 0) -> None:
    arguments = struct.pack("<5Q", y.pointer, x.pointer, x.strides[0], x.shape[0], spins)
    kernel.module.device.launch(kernel, -(-x.shape[0] // 128), 128, 0, stream, arguments)


def run(kernel: DeviceKernel, x: Any, out: Any = None, spins: int = 0) -> Any:
    """As a back end does."""
    assert on_device(x)
    library = library_of([x], ["x"])
    ordinal = library.ordinal(x, "x")
    stream = library.stream(ordinal)
    seen = library.view(x, stream, "x")
    if out is not None:
        twice(kernel, library.view_to_write(out, stream, "out"), seen, stream, spins)
        return out
    pending, where = library.empty(seen.shape, seen.dtype, ordinal, stream)
    twice(kernel, where, seen, stream, spins)
    (result,) = library.finish([pending], ordinal, stream)
    return result


# the driver


def test_the_device_is_told_of() -> None:
    d = device(0)
    assert d.name and d.capability >= (5, 0) and d.processors > 0 and d.shared_bytes >= 48 << 10 and d.free_bytes() > 0


def test_the_kernel_is_told_of(kernel: DeviceKernel) -> None:
    whole = kernel.module.device.load(DOUBLE + b"\0", 64).kernel("twice")
    assert (whole.registers, whole.local_bytes) == (kernel.registers, kernel.local_bytes)
    assert 0 < kernel.registers <= 64 and kernel.local_bytes == 0 and kernel.most_threads >= 128
    kernel.allow_shared(device(0).shared_bytes)


def test_what_the_assembler_says_is_in_the_error() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)CUDA_ERROR_INVALID_PTX.*ptxas"):
        device(0).assemble(b".version 7.0\n.target sm_70\n.address_size 64\nnonsense")


def test_what_is_no_code_is_not_loaded() -> None:
    with pytest.raises(RuntimeError, match="cuModuleLoadDataEx failed"):
        device(0).load(b"nonsense" * 100)


def test_more_memory_than_there_is_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="on CUDA device 0"):
        device(0).allocate(1 << 42, 0)


def test_numbers_go_there_and_back(kernel: DeviceKernel) -> None:
    d = device(0)
    stream, begin, end = d.stream(), d.event(timing=True), d.event(timing=True)
    buffer = d.pinned(8 * N)
    numbers = buffer.array.view(np.float64)
    numbers[:] = np.arange(N)
    x, y = (d.allocate(8 * N, stream) for _ in range(2))
    d.to_device(x, buffer.pointer, 8 * N, stream)
    d.record(begin, stream)
    d.launch(kernel, 8, 128, 0, stream, struct.pack("<5Q", y, x, 8, N, SPINS))
    d.record(end, stream)
    d.to_host(buffer.pointer, y, 8 * N, stream)
    d.synchronize(stream)
    np.testing.assert_array_equal(numbers, 2.0 * np.arange(N))
    assert d.milliseconds(begin, end) > 0.1
    for pointer in (x, y):
        d.free(pointer, stream)


def test_a_stream_waits_for_another(kernel: DeviceKernel) -> None:
    d = device(0)
    first, second = d.stream(), d.stream()
    memory = _values(d, first, np.arange(float(N)))
    middle, last = (_values(d, first, np.zeros(N)) for _ in range(2))
    twice(kernel, middle, memory, first, SPINS)
    d.follow(second, first)
    twice(kernel, last, middle, second)
    np.testing.assert_array_equal(_numbers(d, last, second), 4.0 * np.arange(N))


def _values(d: Device, stream: int, x: np.ndarray[Any, Any]) -> DeviceArray:
    """An array on the device, which stays there."""
    pointer = d.allocate(x.nbytes, stream)
    d.to_device(pointer, x.ctypes.data, x.nbytes, stream)
    d.synchronize(stream)
    return DeviceArray(pointer, x.shape, x.strides, x.dtype, d.ordinal, stream=stream)


def _numbers(d: Device, x: DeviceArray, stream: int) -> np.ndarray[Any, Any]:
    host = np.empty(x.shape, x.dtype)
    d.to_host(host.ctypes.data, x.pointer, host.nbytes, stream)
    d.synchronize(stream)
    return host


def test_our_arrays_are_taken_and_given(kernel: DeviceKernel) -> None:
    d = device(0)
    x = _values(d, d.stream(), np.arange(float(N)))
    result = run(kernel, x, spins=SPINS)
    assert isinstance(result, DeviceArray)
    np.testing.assert_array_equal(_numbers(d, result, 0), 2.0 * np.arange(N))


# libraries


def test_pytorch(kernel: DeviceKernel) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    x = torch.arange(2 * N, dtype=torch.float64, device="cuda:0")[::2]
    expected = 2 * x.cpu().numpy()
    assert not on_device(torch.zeros(3))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = run(kernel, x, spins=SPINS)  # what PyTorch does with it is on the same stream, so later
        again = result + 0
    stream.synchronize()
    np.testing.assert_array_equal(again.cpu().numpy(), expected)
    out = torch.zeros(N, dtype=torch.float64, device="cuda:0")
    assert run(kernel, x, out) is out
    np.testing.assert_array_equal(out.cpu().numpy(), expected)
    with pytest.raises(TypeError, match="requires a gradient"):
        run(kernel, x.clone().requires_grad_())
    with pytest.raises(TypeError, match=r"torch\.bfloat16"):
        run(kernel, x.to(torch.bfloat16))
    with pytest.raises(ValueError, match="share memory"):
        run(kernel, x, torch.zeros(1, dtype=torch.float64, device="cuda:0").expand(N))
    ours = run(kernel, DeviceArray(x.data_ptr(), (N,), (16,), np.dtype(float), 0, x, True, 0))
    taken = torch.from_dlpack(ours)
    del ours
    gc.collect()
    np.testing.assert_array_equal(taken.cpu().numpy(), expected)


def test_cupy(kernel: DeviceKernel) -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(2.0 * N)[::2]
    expected = 2 * cupy.asnumpy(x)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        result = run(kernel, x, spins=SPINS)
        again = result + 0
    stream.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(again), expected)
    out = cupy.zeros(N)
    assert run(kernel, x, out) is out
    np.testing.assert_array_equal(cupy.asnumpy(out), expected)
    ours = run(kernel, DeviceArray(x.data.ptr, (N,), (16,), np.dtype(float), 0, x, True, 0), spins=SPINS)
    np.testing.assert_array_equal(cupy.asnumpy(cupy.asarray(ours)), expected)  # by the interface
    np.testing.assert_array_equal(cupy.asnumpy(cupy.from_dlpack(ours)), expected)


def test_jax(kernel: DeviceKernel) -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() not in ("gpu", "cuda"):
        pytest.skip("JAX without CUDA")
    with jax.enable_x64(True):
        x = jax.numpy.arange(float(N))
        for _ in range(3):  # work that is not done yet when the kernel is begun
            x = jax.numpy.sort(x)
        result = run(kernel, x, spins=SPINS)
        assert isinstance(result, jax.Array) and result.dtype == np.float64
        np.testing.assert_array_equal(np.asarray(result + 0), 2.0 * np.arange(N))
        for _ in range(20):
            result = run(kernel, result)  # memory of results is given back meanwhile
        np.testing.assert_array_equal(np.asarray(result), 2.0**21 * np.arange(N))
        with pytest.raises(TypeError, match="which cannot be written; call without out="):
            run(kernel, x, result)


def test_numba(kernel: DeviceKernel) -> None:
    cuda = pytest.importorskip("numba.cuda", exc_type=ImportError)
    if not cuda.is_available():
        pytest.skip("Numba without CUDA")
    x = cuda.to_device(np.arange(float(N)))
    result = run(kernel, x, spins=SPINS)
    np.testing.assert_array_equal(cuda.as_cuda_array(result).copy_to_host(), 2.0 * np.arange(N))
    out = cuda.to_device(np.zeros(N))
    assert run(kernel, x, out) is out
    np.testing.assert_array_equal(out.copy_to_host(), 2.0 * np.arange(N))


def test_arrays_of_two_libraries_are_refused() -> None:
    torch, cupy = pytest.importorskip("torch"), pytest.importorskip("cupy")
    with pytest.raises(TypeError, match="give arrays of one library"):
        library_of([torch.zeros(3, device="cuda:0"), cupy.zeros(3)], ["q", "v"])
