"""Tests on a device, with the installed array libraries: code, memory, and arrays in both directions."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from engine.kernels import swinging
from featherweight.engine.backends.cuda.driver import Device, device
from featherweight.engine.backends.cuda.libraries import DeviceArray, library_of
from simulation.scenes import corners, free_bodies, solid_box


def _there() -> bool:
    try:
        return device(0).context != 0
    except (ImportError, RuntimeError):
        return False


pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not _there(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),  # warnings of those libraries
]

SWING = swinging(5)
X, Y = np.random.default_rng(0).standard_normal((2, 1000, 5))


def test_the_device_is_known() -> None:
    d = device(0)
    assert d.name and d.capability >= (7, 5) and d.shared_bytes >= 48 << 10 and d.driver_version >= 12000


def test_what_the_assembler_says_is_in_the_error() -> None:
    with pytest.raises(Exception, match=r"(?s)nonsense"):
        device(0).assemble(b".version 7.0\n.target sm_75\n.address_size 64\nnonsense")


def test_more_memory_than_there_is_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="on CUDA device 0"):
        device(0).allocate(1 << 46, 0)


def test_arrays_of_the_host_go_there_and_come_back() -> None:
    for x, y in ((X, Y), (X.astype(np.float32), Y.astype(np.float32)), (X[0], Y[::-1])):
        np.testing.assert_array_equal(SWING(x, y, device="cuda"), SWING(x, y))


def test_simulations_with_contact() -> None:
    sides = (0.4, 0.3, 0.2)
    robot = free_bodies(solid_box(2.0, sides))
    simulation = fw.Simulation(robot, ground=fw.Plane(), spheres=corners("body0", sides))
    q = np.tile(robot.neutral(), (64, 1))
    q[:, 2] = np.linspace(0.11, 0.2, 64)
    for there, here in zip(simulation.rollout(q, steps=200, device="cuda"), simulation.rollout(q, steps=200), strict=True):
        np.testing.assert_array_equal(there, here)


def _values(d: Device, x: np.ndarray[Any, Any]) -> DeviceArray:
    """Return an array on the device."""
    stream = d.own_stream
    memory = d.allocate(x.nbytes, stream)
    d.copy(int(memory.handle), x.ctypes.data, x.nbytes, stream)
    d.synchronize(stream)
    return DeviceArray(int(memory.handle), x.shape, x.strides, x.dtype, d.ordinal, memory, stream=stream)


def _numbers(d: Device, x: DeviceArray) -> np.ndarray[Any, Any]:
    host = np.empty(x.shape, x.dtype)
    d.copy(host.ctypes.data, x.pointer, host.nbytes, x.stream or 0)
    d.synchronize(x.stream or 0)
    return host


def test_our_arrays_are_taken_and_given() -> None:
    d = device(0)
    result: Any = SWING(_values(d, X), _values(d, Y))
    assert isinstance(result, DeviceArray)
    np.testing.assert_array_equal(_numbers(d, result), SWING(X, Y))


def test_pytorch() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    x, y = (torch.as_tensor(a, device="cuda:0") for a in (X, Y))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(20):  # work on the same stream, before and after
            result: Any = SWING(x + 0, y)
            again = result + 0
    stream.synchronize()
    np.testing.assert_array_equal(again.cpu().numpy(), SWING(X, Y))
    out: Any = torch.zeros((1000, 10), dtype=torch.float64, device="cuda:0")[:, ::2]
    filled: Any = SWING(x, y.flip(0), out=out)
    assert filled is out
    np.testing.assert_array_equal(out.cpu().numpy(), SWING(X, Y[::-1]))
    with pytest.raises(TypeError, match="requires a gradient"):
        SWING(x.clone().requires_grad_(), y)
    with pytest.raises(TypeError, match="x"):
        SWING(x.to(torch.bfloat16), y)
    with pytest.raises(ValueError, match="share memory"):
        SWING(x, y, out=torch.zeros(1, dtype=torch.float64, device="cuda:0").expand(1000, 5))
    ours: Any = SWING(_values(device(0), X), _values(device(0), Y))
    taken = torch.from_dlpack(ours)
    del ours
    gc.collect()
    np.testing.assert_array_equal(taken.cpu().numpy(), SWING(X, Y))


def test_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    x, y = map(cupy.asarray, (X, Y))
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        result: Any = SWING(x + 0, y)
        again = result + 0
    stream.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(again), SWING(X, Y))
    ours: Any = SWING(_values(device(0), X), _values(device(0), Y))
    for taken in (cupy.asarray(ours), cupy.from_dlpack(ours)):
        np.testing.assert_array_equal(cupy.asnumpy(taken), SWING(X, Y))


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() not in ("gpu", "cuda"):
        pytest.skip("JAX without CUDA")
    with jax.enable_x64(True):
        x, y = map(jax.numpy.asarray, (X, Y))
        for _ in range(20):  # memory of results is freed meanwhile
            result: Any = SWING(x + 0, y)
            assert isinstance(result, jax.Array) and result.dtype == np.float64
        np.testing.assert_array_equal(np.asarray(result + 0), SWING(X, Y))
        with pytest.raises(TypeError, match="which cannot be written; call without out="):
            SWING(x, y, out=result)


def test_numba() -> None:
    cuda = pytest.importorskip("numba.cuda", exc_type=ImportError)
    if not cuda.is_available():
        pytest.skip("Numba without CUDA")
    x, y = map(cuda.to_device, (X, Y))
    result: Any = SWING(x, y)
    np.testing.assert_array_equal(cuda.as_cuda_array(result).copy_to_host(), SWING(X, Y))


def test_arrays_of_two_libraries_are_refused() -> None:
    torch, cupy = pytest.importorskip("torch"), pytest.importorskip("cupy")
    with pytest.raises(TypeError, match="use arrays of one library"):
        library_of([torch.zeros(3, device="cuda:0"), cupy.zeros(3)], ["q", "v"])
