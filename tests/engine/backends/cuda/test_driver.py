"""The driver's calls, against a stand-in; that the bindings offer what is called is checked where they are installed."""

from __future__ import annotations

import ast
import inspect
import os
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.backends.cuda.driver_double import (
    CONTEXT,
    FUNCTION,
    INVALID_PTX,
    LARGEST,
    NO_DEVICE,
    NOT_FOUND,
    OTHER_CONTEXT,
    DriverDouble,
)
from featherweight.engine.backends.cuda import driver
from featherweight.engine.backends.cuda.driver import address, device, devices, ordinal_of


def use_everything(double: DriverDouble) -> None:
    """Call all that is offered."""
    d = device(0)
    d.free_bytes()
    kernel = d.load(d.assemble(b".version 8.0", 64)).kernel("rows")
    kernel.allow_shared(100_000)
    stream, begin, end = d.own_stream, d.event(timing=True), d.event(timing=True)
    pointer, buffer = d.allocate(8, stream), d.pinned(8)
    d.record(begin, stream)
    d.to_device(pointer, buffer.pointer, 8, stream)
    d.launch(kernel, 10, 128, 0, stream, b"12345678")
    d.to_host(buffer.pointer, pointer, 8, stream)
    d.record(end, stream)
    d.follow(0, stream)
    for what in (begin, stream, None):
        d.synchronize(what)
    d.milliseconds(begin, end)
    ordinal_of(pointer)
    address("cuLaunchKernel")
    d.free(pointer, stream)
    d._pools = False
    d.free(d.allocate(8, stream), stream)
    del kernel, begin, end, buffer


def test_every_call_is_known_and_has_the_bindings_number_of_arguments(double: DriverDouble) -> None:
    bindings = pytest.importorskip("cuda.bindings.driver")
    use_everything(double)
    double.failing["cuCtxSynchronize"] = NOT_FOUND
    with pytest.raises(RuntimeError):
        device(0).synchronize()
    for name, *arguments in double.told:
        first = (getattr(bindings, name).__doc__ or "").splitlines()[0]
        parameters = re.sub(r"\[[^]]*]", "", re.sub(r"\[[^][]*]", "", first)).partition("(")[2].rpartition(")")[0]
        assert len(arguments) == len([p for p in parameters.split(",") if p.strip()]), first
    for enumeration, member in double.constants:
        assert hasattr(getattr(bindings, enumeration), member), member
    assert int(bindings.cuuint64_t(5)) == 5
    assert bindings.CUresult.CUDA_ERROR_OUT_OF_MEMORY == 2 and bindings.CUresult.CUDA_ERROR_NO_DEVICE == NO_DEVICE
    assert not bindings.CUresult.CUDA_SUCCESS


def test_no_call_is_left_out_of_that(double: DriverDouble) -> None:
    use_everything(double)
    errors = {"cuGetErrorName", "cuGetErrorString"}
    folder = Path(inspect.getfile(driver)).parent
    nodes = [node for file in folder.glob("*.py") for node in ast.walk(ast.parse(file.read_text()))]
    words = {node.value for node in nodes if isinstance(node, ast.Constant)} | {getattr(node, "attr", "") for node in nodes}
    assert {w for w in words if isinstance(w, str) and re.fullmatch(r"cu[A-Z]\w+", w)} == double.counts.keys() | errors


# devices


def test_a_device_is_told_of(double: DriverDouble) -> None:
    assert devices() == 2
    d = device(1)
    assert d is device(1) and d is not device(0)
    assert (d.ordinal, d.name, d.capability, d.processors) == (1, "Stand-in", (9, 0), 132)
    assert (d.shared_bytes, d.driver_version, d.free_bytes()) == (232448, 13000, LARGEST // 2)
    assert repr(d) == "<Device 1: Stand-in, sm_90>"


def test_a_number_without_a_device_is_an_error(double: DriverDouble) -> None:
    for ordinal in (2, -1):
        with pytest.raises(RuntimeError, match=rf"CUDA has no device {ordinal}: there are 2, numbered from 0"):
            device(ordinal)


def test_no_device_is_an_error(double: DriverDouble) -> None:
    double.failing["cuInit"] = NO_DEVICE
    with pytest.raises(RuntimeError, match="CUDA finds no device on this machine"):
        devices()


def test_a_driver_that_does_not_start_is_an_error(double: DriverDouble) -> None:
    double.failing["cuInit"] = NOT_FOUND
    with pytest.raises(RuntimeError, match=r"^cuInit failed: CUDA_ERROR_NOT_FOUND \(named symbol not found\)$"):
        device(0)


SCRIPT = """
import sys
from featherweight.engine.backends.cuda import driver
assert "cuda" not in sys.modules
try:
    driver.device(0)
except (ImportError, RuntimeError) as error:
    print(type(error).__name__, error)
"""


def test_without_the_bindings_the_error_says_what_to_install() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("import sys", "import sys\nsys.modules['cuda.bindings'] = None", 1)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.startswith('ImportError CUDA needs the package cuda-bindings: pip install "featherweight[cuda]" (')


def test_without_a_driver_the_error_says_so() -> None:
    pytest.importorskip("cuda.bindings.driver")
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    if not run.stdout:
        pytest.skip("there is a device")
    without_driver = "RuntimeError CUDA needs NVIDIA's driver, which is not on this machine or is not found: "
    assert run.stdout.startswith((without_driver, "RuntimeError CUDA finds no device on this machine"))


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def fork(check: Callable[[], bool]) -> bool:
    """What a forked child finds."""
    child = os.fork()
    if child == 0:
        os._exit(0 if check() else 1)
    return os.waitpid(child, 0)[1] == 0


@forks
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_is_told_that_it_cannot_use_cuda(double: DriverDouble) -> None:
    events = [device(0).event()]
    told = len(double.told)

    def refused() -> bool:
        try:
            device(0).synchronize()
        except RuntimeError as error:
            said = "does not survive that: start processes by 'spawn' or 'forkserver'" in str(error)
        events.clear()
        return said and len(double.told) == told  # the parent's event is the parent's to release

    assert fork(refused)
    device(0).synchronize()  # the parent goes on


@forks
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_may_use_cuda_if_its_parent_did_not(double: DriverDouble) -> None:
    assert fork(lambda: devices() == 2)


AT_EXIT = """
import atexit
atexit.register(lambda: print(dict(stand_in.counts)))  # the first is called last
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from engine.backends.cuda.driver_double import DriverDouble
from engine.backends.cuda.test_dlpack import Exporter
from featherweight.engine.backends.cuda import driver, driver_calls
stand_in = DriverDouble()
driver_calls.import_module = lambda name: stand_in
kept = driver.device(0).load(b"cubin").kernel("rows"), driver.device(0).pinned(8), np.from_dlpack(Exporter(np.zeros(3)))
sys.modules["kept"] = kept  # it lasts longer than this module
"""


def test_nothing_is_released_at_the_interpreters_end() -> None:
    tests = str(Path(__file__).parents[3])
    run = subprocess.run([sys.executable, "-c", AT_EXIT.format(tests=tests)], capture_output=True, text=True, check=True)
    told = ast.literal_eval(run.stdout)
    assert run.stderr == "" and told["cuMemHostAlloc"] == 1
    assert not {"cuModuleUnload", "cuMemFreeHost"} & told.keys()


# contexts


def test_the_context_is_pushed_for_a_call_and_popped_after_it(double: DriverDouble) -> None:
    d = device(0)
    double.contexts.append(OTHER_CONTEXT)
    d.synchronize()
    assert [n for n, *_ in double.told[-4:]] == ["cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxSynchronize", "cuCtxPopCurrent"]
    double.failing["cuCtxSynchronize"] = NOT_FOUND
    with pytest.raises(RuntimeError, match="cuCtxSynchronize failed"):
        d.synchronize()
    assert double.contexts == [OTHER_CONTEXT]


def test_the_context_is_left_where_it_is_current(double: DriverDouble) -> None:
    d = device(0)
    with d.current():
        before = double.counts["cuCtxPushCurrent"]
        d.synchronize()
        assert double.contexts == [CONTEXT]
        assert double.counts["cuCtxPushCurrent"] == before
    assert double.contexts == []


# code


def test_assembling_asks_for_what_was_said(double: DriverDouble) -> None:
    assert device(0).assemble(b".version 8.0", 64) == b"cubin"
    ((count, names, values),) = double.calls("cuLinkCreate")
    options = dict(zip(names, values, strict=True))
    assert count == 4 and options["CU_JIT_MAX_REGISTERS"] == 64 and options["CU_JIT_OPTIMIZATION_LEVEL"] == 4
    assert len(options["CU_JIT_ERROR_LOG_BUFFER"]) == options["CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES"]
    ((_, kind, text, size, *_),) = double.calls("cuLinkAddData")
    assert (kind, text, size) == ("CU_JIT_INPUT_PTX", b".version 8.0\0", 13)
    device(0).assemble(b".version 8.0")
    assert "CU_JIT_MAX_REGISTERS" not in double.calls("cuLinkCreate")[-1][1]


def test_ptx_may_be_loaded_as_it_is(double: DriverDouble) -> None:
    device(0).load(b".version 8.0\0", 64)
    device(0).load(b"cubin")
    limits = [dict(zip(names, values, strict=True)) for _, _, names, values in double.calls("cuModuleLoadDataEx")]
    assert [limit.get("CU_JIT_MAX_REGISTERS") for limit in limits] == [64, None]
    assert all(limit["CU_JIT_OPTIMIZATION_LEVEL"] == 4 for limit in limits)


def test_what_the_assembler_says_is_in_the_error(double: DriverDouble) -> None:
    double.failing["cuLinkAddData"] = INVALID_PTX
    expected = r"^cuLinkAddData failed: CUDA_ERROR_INVALID_PTX \(a PTX JIT compilation failed\)\nptxas: line$"
    with pytest.raises(RuntimeError, match=expected):
        device(0).assemble(b"nonsense")
    assert double.counts["cuLinkDestroy"] == 1


def test_a_kernel_is_told_of(double: DriverDouble) -> None:
    kernel = device(0).load(b"cubin").kernel("rows")
    assert (kernel.registers, kernel.local_bytes, kernel.most_threads) == (64, 16, 1024)
    kernel.allow_shared(100_000)
    assert double.calls("cuFuncSetAttribute") == [[FUNCTION, "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", 100_000]]


def test_a_name_without_a_kernel_is_an_error(double: DriverDouble) -> None:
    with pytest.raises(RuntimeError, match="cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND"):
        device(0).load(b"cubin").kernel("columns")


def test_code_is_unloaded_once_no_kernel_of_it_is_left(double: DriverDouble) -> None:
    kernel = device(0).load(b"cubin").kernel("rows")
    assert double.counts["cuModuleUnload"] == 0
    del kernel
    assert double.counts["cuModuleUnload"] == 1


def test_a_launch_hands_on_shape_stream_and_arguments(double: DriverDouble) -> None:
    d = device(0)
    kernel = d.load(b"cubin").kernel("rows")
    arguments = [struct.pack("<3Q", 7, 8, 9), struct.pack("<QdI", 1, 2.0, 3), b""]
    for packed in arguments:
        d.launch(kernel, 10, 128, 4096, 5, packed)
    assert double.launched == arguments
    assert double.calls("cuLaunchKernel")[0][:9] == [FUNCTION, 10, 1, 1, 128, 1, 1, 4096, 5]


def test_threads_do_not_share_the_place_of_arguments(double: DriverDouble) -> None:
    d = device(0)
    kernel = d.load(b"cubin").kernel("rows")
    threads = [threading.Thread(target=d.launch, args=(kernel, 1, 1, 0, 0, b"12345678")) for _ in range(2)]
    d.launch(kernel, 1, 1, 0, 0, b"12345678")
    for thread in threads:
        thread.start()
        thread.join()
    assert double.launched == [b"12345678"] * 3
    assert len({arguments[-1] for arguments in double.calls("cuLaunchKernel")}) > 1


def test_arguments_beyond_what_a_launch_takes_are_an_error(double: DriverDouble) -> None:
    d = device(0)
    with pytest.raises(ValueError, match=r"arguments of 4104 bytes, but a launch takes at most 4096"):
        d.launch(d.load(b"cubin").kernel("rows"), 1, 1, 0, 0, bytes(4104))


# memory


def test_copies_go_there_and_back(double: DriverDouble) -> None:
    d = device(0)
    pointer, buffer = d.allocate(64, 0), d.pinned(64)
    buffer.array[:] = np.arange(64)
    d.to_device(pointer, buffer.pointer, 64, 0)
    buffer.array[:] = 0
    d.to_host(buffer.pointer, pointer, 64, 0)
    np.testing.assert_array_equal(buffer.array, np.arange(64))


@pytest.mark.parametrize(("pools", "take", "give"), [(1, "cuMemAllocAsync", "cuMemFreeAsync"), (0, "cuMemAlloc", "cuMemFree")])
def test_memory_is_of_the_pool_where_there_is_one(double: DriverDouble, pools: int, take: str, give: str) -> None:
    double.attributes["CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED"] = pools
    d = device(0)
    for size in (0, 64):
        d.free(d.allocate(size, 5), 5)
    assert double.counts[take] == double.counts[give] == 2
    kept = [[*asked, driver.POOLED_BYTES] for asked in double.calls("cuMemPoolGetAttribute")]
    assert double.calls("cuMemPoolSetAttribute") == kept and len(kept) == pools


def test_no_memory_is_a_memory_error(double: DriverDouble) -> None:
    expected = (
        rf"no memory for {LARGEST + 1} bytes on CUDA device 0 \(Stand-in\): cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY"
    )
    with pytest.raises(MemoryError, match=expected):
        device(0).allocate(LARGEST + 1, 0)
    with pytest.raises(MemoryError, match="cuMemHostAlloc failed: CUDA_ERROR_OUT_OF_MEMORY"):
        device(0).pinned(LARGEST + 1)


def test_a_pinned_buffer_lasts_as_long_as_its_array(double: DriverDouble) -> None:
    array = device(0).pinned(16).array[3:]
    assert double.counts["cuMemFreeHost"] == 0
    array[:] = 1
    del array
    assert double.counts["cuMemFreeHost"] == 1
    assert device(0).pinned(0).array.shape == (0,)


def test_dropped_memory_is_given_back_later_and_when_nothing_runs(double: DriverDouble) -> None:
    d = device(0)
    d.reclaim()
    assert double.counts["cuCtxSynchronize"] == 0
    pointer = d.allocate(8, 0)
    before = len(double.told)
    d.drop(pointer)
    assert len(double.told) == before
    d.reclaim()
    names = [n for n, *_ in double.told]
    assert names.index("cuCtxSynchronize") < names.index("cuMemFreeAsync")
    assert double.memory == {}


# order in time


def test_a_stream_waits_for_what_another_has_begun(double: DriverDouble) -> None:
    d = device(0)
    d.follow(7, 7)
    assert double.counts["cuEventCreate"] == 0
    d.follow(7, 8)
    ((_, recorded),), ((waiting, *_),) = double.calls("cuEventRecord"), double.calls("cuStreamWaitEvent")
    assert (recorded, waiting) == (8, 7)
    assert double.counts["cuEventDestroy"] == 1


def test_time_is_between_events(double: DriverDouble) -> None:
    d = device(0)
    begin, end = d.event(timing=True), d.event(timing=True)
    assert d.milliseconds(begin, end) == 2.5
    d.event()
    assert [flags for (flags,) in double.calls("cuEventCreate")] == ["CU_EVENT_DEFAULT"] * 2 + ["CU_EVENT_DISABLE_TIMING"]


def test_a_device_has_one_stream_of_our_own(double: DriverDouble) -> None:
    d = device(0)
    assert d.own_stream == d.own_stream != d.stream()
    assert double.calls("cuStreamCreate") == [["CU_STREAM_NON_BLOCKING"]] * 2
