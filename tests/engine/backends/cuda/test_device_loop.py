"""Tests of kernels with loops on an emulated device: arrays of threads, and calls of traced functions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from register_use import assembled, version

from engine.backends.cuda.host_device import HostDevice, needs_fma
from engine.backends.cuda.ptx_text import assert_rounded_as_here
from engine.kernels import swinging
from featherweight.array_types import Matrix, Vector
from featherweight.engine.backends.cuda.code import CAPABILITIES, assembly
from featherweight.engine.backends.cuda.device_loop import DeviceLoop, NumberedCalls
from featherweight.engine.loops.kernels import CompiledLoop, Layout, MachineCall, Table, call_machine, machine_call
from featherweight.engine.loops.memory_spans import MemorySpans

pytestmark = needs_fma
N = 5
SWING = swinging(N)


class Room(NamedTuple):
    """The data of each thread, except the weights."""

    x: Vector  # (N,)
    y: Vector
    result: Vector
    part: Vector  # for the result
    weights: Vector  # read by all threads
    none: Vector  # (0,)
    swing: MachineCall
    nothing: MachineCall


class Batch(NamedTuple):
    x: Matrix  # (numbers, N)
    total: Matrix  # (numbers, N)
    rounds: int


WEIGHTS = np.linspace(-1.0, 2.0, N)
NO_CALL = MachineCall(0, np.zeros(0, np.int64))


def add_swings(room: Room, batch: Batch, i: int) -> int:
    """Add the results of the traced function for row i repeatedly."""
    total = 0.0
    for j in range(len(room.x)):
        room.x[j] = batch.x[i, j]
    for _ in range(batch.rounds):
        call_machine(room.nothing)
        call_machine(room.swing)
        for j in range(len(room.x)):
            room.y[j] = room.weights[j] * room.result[j] + math.sin(room.x[j] + i)
            batch.total[i, j] += room.y[j] + (room.part[0] if room.x[j] > 0.0 else float(len(room.none)))
            total += room.y[j]
    return 1 if total > 0.0 else 0


def work(room: Room, batch: Batch, first: int, stop: int) -> int:
    """Do the same work on this machine, one number after the other."""
    done = 0
    for i in range(first, stop):
        done += add_swings(room, batch, i)
    return done


def new_room() -> Room:
    x, y, result = np.zeros(N), np.linspace(0.0, 1.0, N), np.zeros(N)
    return Room(x, y, result, result[1:3], WEIGHTS, np.zeros(0), NO_CALL, NO_CALL)


def new_batch(count: int) -> Batch:
    return Batch(np.random.default_rng(count).standard_normal((count, N)), np.zeros((count, N)), 3)


def loop() -> DeviceLoop:
    calls, content = NumberedCalls(), new_room()
    content = content._replace(swing=calls.call(SWING, content.x, content.y, content.result), nothing=calls.call(None))
    twin = new_room()._replace(swing=MachineCall(0, np.zeros(3, np.int64)))
    return DeviceLoop(add_swings, content, twin, calls, Layout(Batch, new_batch(1)))


def expected(count: int) -> Batch:
    batch = new_batch(count)
    for i in range(count):  # each thread begins with the original arrays
        content = new_room()
        content = content._replace(swing=machine_call(SWING, content.x, content.y, content.result))
        tables = Table(content), Table(batch)
        CompiledLoop(work, numbers=2).for_tables(*tables)(tables[0].address, tables[1].address, i, i + 1)
    return batch


@pytest.mark.parametrize("count", [1, 33, 70])
def test_results_are_those_of_this_machine(count: int, device: HostDevice) -> None:
    made: Any = device
    batch = new_batch(count)
    loop().run(made, 0, batch, count)
    assert batch.total.any()
    np.testing.assert_array_equal(batch.total, expected(count).total)


def test_arrays_of_the_device_are_worked_on_where_they_are(device: HostDevice) -> None:
    made: Any = device
    batch = new_batch(40)
    there = [device.allocate(a.nbytes, 0) for a in batch[:2]]
    for memory, a in zip(there, batch[:2], strict=True):
        device.copy(memory.handle, a.ctypes.data, a.nbytes, 0)
    placeholders = batch._replace(x=np.empty_like(batch.x), total=np.full_like(batch.total, np.nan))
    elsewhere = [(a, memory.handle) for a, memory in zip(placeholders[:2], there, strict=True)]
    loop().run(made, 0, placeholders, 40, elsewhere)
    assert np.isnan(placeholders.total).all()
    device.copy(batch.total.ctypes.data, there[1].handle, batch.total.nbytes, 0)
    np.testing.assert_array_equal(batch.total, expected(40).total)


def test_threads_share_what_their_tables_share() -> None:
    made = loop()
    assert made.own_bytes == 8 * made.layouts[0].words + sum(-(-8 * n // 16) * 16 for n in (N, N, N, 3))
    assert made._shared.size == -(-8 * N // 16) * 16


def test_spans_join_what_overlaps() -> None:
    x, other = np.arange(10.0), np.arange(4)
    spans = MemorySpans([x[2:6], x[5:9], other, np.zeros(0)])
    memory = np.zeros(spans.size, np.uint8)
    spans.put(memory)
    place = spans.place(x.ctypes.data + 8 * 7)
    assert place is not None and spans.place(x.ctypes.data + 8) is None and spans.size == 64 + 32
    assert memory[place : place + 8].view(np.float64)[0] == 7.0
    memory[place : place + 8].view(np.float64)[0] = -1.0
    spans.take(memory)
    assert x[7] == -1.0 and x[6] == 6.0


def test_other_functions_make_other_kernels() -> None:
    calls = NumberedCalls()
    with pytest.raises(ValueError, match="only traced functions run on a device"):
        calls.call(swinging(N, "interpreted"), *np.zeros((3, N)))
    assert loop().identity == loop().identity
    other = loop()
    other.calls.functions = [swinging(N + 1)]
    assert other.identity != loop().identity


@pytest.mark.parametrize("capability", [(7, 5), (9, 0), max(CAPABILITIES)])
def test_rounding_is_that_of_this_machine(capability: tuple[int, int]) -> None:
    text = assembly(loop().module(), capability, loops=True).decode()
    assert_rounded_as_here(text, 30)
    if version():
        assembled(text.encode(), capability)
