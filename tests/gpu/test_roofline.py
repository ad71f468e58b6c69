"""Tests of lower bounds on times, with arithmetic that can be done by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gpu_arrays
import numpy as np
import pytest
import roofline
from gpu_arrays import (
    BUS,
    CLOCK,
    MEMORY_CLOCK,
    MULTIPROCESSORS,
    RATIO,
    copy_bandwidth,
    described,
    driver_device,
    library,
    median_by_events,
    median_of,
)
from roofline import DEVICES, RESOURCES, Device, Work, assembled, binding, bounds, counted, in_words, moved
from sass import Instructions

import featherweight as fw

# 256 instructions of threads, 32 special functions, 256 bytes per cycle
SMALL = Device("of a round numbers' world", 2, 1e9, 1e12)


def test_each_bound_is_its_work_over_its_rate() -> None:
    found = bounds(Work(256, 128, 32, 1000, 256, 512), SMALL)
    assert tuple(found) == RESOURCES
    assert list(found.values()) == pytest.approx([1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 2e-9], rel=1e-12)
    assert binding(found) == "shared"
    assert in_words(found, 6e-9) == "3.0 times the bound by shared (2.000 ns)"


def test_rates_of_an_h200_are_those_of_its_data_sheet() -> None:
    """Check 67 Tflop/s in single precision and 34 in double precision: two operations per instruction."""
    device = DEVICES["nvidia-h200"]
    assert 2 * device.issued == pytest.approx(67e12, rel=0.01)
    assert 2 * device.issued * device.double == pytest.approx(34e12, rel=0.02)


def test_the_drivers_attributes_give_the_devices_numbers() -> None:
    found = described("H200", {MULTIPROCESSORS: 132, CLOCK: 1_980_000, MEMORY_CLOCK: 3_201_000, BUS: 6144, RATIO: 2})
    sheet = DEVICES["nvidia-h200"]
    assert found[:3] == sheet[:3] and found.double == sheet.double
    assert found.bandwidth == pytest.approx(sheet.bandwidth, rel=0.03)


def test_operations_bound_what_machine_code_takes() -> None:
    """Check the bound if a multiplication and an addition may be one instruction: the number of the more frequent ones."""
    function = fw.build(fw.robots.four_bar()).forward_dynamics
    o = function.operations
    least = counted(function, "float64")
    assert least.instructions == max(o.mul, o.add) + o.div + o.sqrt
    assert least.double == max(o.mul, o.add) and counted(function, "float32").double == 0
    entries = sum(x.size for x in (*function.program.inputs,)) + function.program.outputs[0].size
    assert moved(function, "float64") == 8 * entries == 2 * moved(function, "float32")
    code = Instructions(o.flops, {"DFMA": 7, "DMUL": 2, "MUFU": 3}, 16, 24)
    assert assembled(function, "float64", code) == Work(o.flops, 9, 3, 8 * entries, 16, 24)


def test_bounds_are_printed_without_a_device_as_bounds(tmp_path: Path) -> None:
    """Check bounds without robot files, for the robots that the library defines."""
    folders = [str(Path(roofline.__file__).parent), str(Path(roofline.__file__).parents[1] / "peers")]
    code = f"import sys; sys.path[:0] = {folders}; import roofline; roofline.main()"
    command = [sys.executable, "-c", code, "--robots", str(tmp_path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert text.startswith("Bounds, not measurements: H200: 132 multiprocessors at 1.98 GHz, 4.8 TB/s")
    assert "| mini_cheetah | forward dynamics, rotors | float32 |" in text
    assert "talos_reduced is left out: no file talos_data" in text


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_arrays_of_a_device_by_either_library(name: str) -> None:
    """Check arrays on a device in both directions, copies, and times by events; needs a device."""
    try:
        lib = library(name)
    except ImportError as error:
        pytest.skip(str(error))
    x = np.arange(12.0).reshape(3, 4)
    there = lib.array(x)
    other = lib.empty(there)
    lib.copy(there, other)
    lib.synchronize()
    assert (lib.numpy(other) == x).all()
    spent = median_by_events(lib, lambda: lib.copy(there, other), 0.1)
    assert 0.0 < spent < 0.1 and median_of(lambda: lib.copy(there, other), lib.synchronize, 0.1) > 0.0
    assert copy_bandwidth(lib, 2**20) > 1e6
    assert driver_device().multiprocessors > 0


def test_no_library_with_a_device_is_an_error_that_says_of_each_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise ImportError("it sees no device")

    monkeypatch.setattr(gpu_arrays, "LIBRARIES", {"torch": none, "cupy": none})
    with pytest.raises(ImportError, match="no array library with a device: torch: it sees no device; cupy: it sees no device"):
        library()
