"""Tests of the choice between several kernels on an emulated device, and of its storage on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from engine.backends.cuda import host_device
from engine.backends.cuda.host_device import Array, HostDevice, HostKernel, assert_same, computed, needs_fma
from engine.kernels import SEVERAL, arguments, swinging
from featherweight.engine.backends.cuda.code import processor
from featherweight.engine.function import CompiledFunction

pytestmark = needs_fma

TRIED = 2  # variants of a kernel that are compared if none is stored
X, Y = np.random.default_rng(0).standard_normal((2, 300, 4))
Anew = Callable[..., HostDevice]


@pytest.fixture
def anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Anew:
    """Return a device as in a new process, with its own cache files."""
    monkeypatch.setenv("FEATHERWEIGHT_CACHE", str(tmp_path))

    def device(**changes: Any) -> HostDevice:
        place = host_device.install(monkeypatch)
        vars(place).update(changes)
        return place

    return device


def test_a_second_process_assembles_nothing(anew: Anew) -> None:
    first = anew()
    assert_same(swinging(4), X, Y[:, ::-1])
    assert first.assembled == TRIED + 1  # and a copy
    second = anew()
    assert_same(swinging(4), X, Y[:, ::-1])
    assert second.assembled == 0
    assert_same(swinging(4), X.astype(np.float32), Y.astype(np.float32))
    assert second.assembled == TRIED


@pytest.mark.parametrize("change", [{"name": "another"}, {"driver_version": 13000}, {"capability": (8, 0)}])
def test_code_is_of_a_device_and_its_driver(change: dict[str, Any], anew: Anew) -> None:
    for changes in ({}, change):
        device = anew(**changes)
        assert_same(swinging(4), X, Y)
        assert device.assembled == TRIED


def test_damaged_files_are_made_anew(anew: Anew, tmp_path: Path) -> None:
    anew()
    assert_same(swinging(4), X, Y)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-9])
    device = anew()
    assert_same(swinging(4), X, Y)
    assert device.assembled == TRIED


@pytest.mark.parametrize("shortest", [0, 1])
def test_the_shorter_code_is_taken_and_remembered(shortest: int, anew: Anew, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    loaded: list[bytes] = []
    load = HostDevice.load

    def assemble(self: HostDevice, ptx: bytes, most_registers: int | None = None) -> bytes:
        keeps = b"lshr i64 %states, 62" not in ptx
        made.append(ptx + b"\n" + b";" * 10**5 * (keeps == shortest))
        return made[-1]

    def note(self: HostDevice, cubin: bytes, entry: str, shared_bytes: int = 0) -> HostKernel:
        loaded.append(cubin)
        return load(self, cubin, entry, shared_bytes)

    monkeypatch.setattr(HostDevice, "assemble", assemble)
    monkeypatch.setattr(HostDevice, "load", note)
    for _ in range(2):
        anew()
        computed(swinging(4), X, Y)
    assert len(made) == TRIED
    assert loaded == 2 * [min(made, key=len)]


def test_tuning_keeps_what_is_quickest(anew: Anew, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check 300 states, which need 320 threads in blocks of 32, and 384 in blocks of 128; the stand-in is fast with few
    or with many threads.
    """
    for sign, threads in ((1.0, 32), (-1.0, 128)):
        device, f = anew(name=f"quick with {threads}"), swinging(4)
        mark = device.mark
        monkeypatch.setattr(device, "mark", lambda stream, sign=sign, mark=mark: sign * mark(stream))
        f.tune(Array(X), Array(Y))
        assert device.assembled > TRIED
        for g in (f, swinging(4)):
            device.launches.clear()
            assert_same(g, X, Y)
            assert [n for _, n, _ in device.launches] == [threads]
        assert not device.memory


def test_functions_with_optional_arguments_are_tuned(anew: Anew) -> None:
    device, f, args = anew(), CompiledFunction(SEVERAL, "traced"), [Array(x) for x in arguments((9,))]
    f.tune(*args, load=args[0])
    tuned = device.assembled
    f(*args, load=args[0])
    assert device.assembled == tuned > TRIED
    f.tune(*args, load=None, algorithm=f.algorithm)
    with pytest.raises(ValueError, match="several: algorithm must be one of several; got 'aba'"):
        f.tune(*args, algorithm="aba")
    with pytest.raises(ValueError, match=r"several: tune takes arrays on a device"):
        f.tune(*arguments((9,)))


def test_old_devices_are_refused_and_new_ones_served_as_those_before() -> None:
    newest = (12, 1) if llvm.llvm_version_info >= (21,) else (12, 0)  # the newest that LLVM knows
    assert [processor(c) for c in ((7, 5), (8, 8), (9, 9), (13, 0))] == [(7, 5), (8, 7), (9, 0), newest]
    with pytest.raises(RuntimeError, match=r"compute capability 7\.0; 7\.5 \(Turing, 2018\) is the oldest"):
        processor((7, 0))
