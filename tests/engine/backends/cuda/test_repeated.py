"""Kernels that take states on by many steps: what they give is what the stages give one by one, bit for bit."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sass import tool

from engine.backends.cuda import host_device
from engine.backends.cuda.host_device import Array, HostDevice, seen
from featherweight.engine.backends.cuda import target
from featherweight.engine.backends.cuda.code import amd_object, assembly
from featherweight.engine.backends.cuda.emit_repetition import emit_repetition
from featherweight.engine.backends.cuda.libraries import OTHERS
from featherweight.engine.backends.cuda.repeated import RepeatedCode
from featherweight.engine.backends.cuda.repetition import ConstantTable, Repetition, Stage, StepInput
from featherweight.engine.backends.llvm.ir import Type
from featherweight.engine.devices import ComputingPlace
from featherweight.engine.program import CoreShape, Input, KernelProgram, Output
from featherweight.engine.traced import Traced

INF = float("inf")
N = 19  # numbers in an array: more than are copied at a time
LOW, HIGH = (-INF, -0.5, *[-1.0] * (N - 2)), (0.25, INF, *[1.0] * (N - 2))

Numbers = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> HostDevice:
    return host_device.install(monkeypatch)


# programs


def begin(x: Any, results: Any) -> None:
    start, total = results
    for i in range(len(x)):
        start[i], total[i] = x[i], 0.0


def force(x: Any, push: Any, result: Any) -> None:
    """Each number is driven by its neighbour, and something is subtracted that fused operations round otherwise."""
    for i in range(len(x)):
        result[i] = push[i] - x[i] * x[i - 1]


def go(start: Any, total: Any, rate: Any, numbers: Any, results: Any) -> None:
    x, sums = results
    for i in range(len(start)):
        sums[i] = total[i] + numbers[1] * rate[i]
        x[i] = start[i] + numbers[0] * rate[i] + 0.01 * sums[i]


def turn(x: Any, phase: Any, rate: Any, results: Any) -> None:
    ahead, angle = results
    for i in range(len(x)):
        ahead[i] = x[i] + 0.1 * rate[i] * (phase[0] * phase[0])
    angle[0] = phase[0] + 0.1


def program(kernel: Callable[..., None], inputs: dict[str, CoreShape], outputs: dict[str, CoreShape]) -> KernelProgram:
    arguments = tuple(Input(*x) for x in inputs.items())
    return KernelProgram(kernel.__name__, kernel, (), arguments, tuple(Output(*y) for y in outputs.items()))


EACH = (N,)
FORCE = program(force, {"x": EACH, "push": EACH}, {"rate": EACH})
BEGIN = Stage(program(begin, {"x": EACH}, {"start": EACH, "total": EACH}), ("x",), ("start", "total"))
GO = program(go, {"start": EACH, "total": EACH, "rate": EACH, "numbers": (2,)}, {"x": EACH, "total": EACH})
TURN = program(turn, {"x": EACH, "phase": (1,), "rate": EACH}, {"x": EACH, "phase": (1,)})
PUSH = (StepInput("push", LOW, HIGH),)


def in_rounds(rounds: int, fused: bool = False) -> Repetition:
    rows = tuple((0.1 * (k + 1), 0.3 - 0.05 * k) for k in range(rounds))
    again = (Stage(FORCE, ("x", "push"), ("rate",), fused),
             Stage(GO, ("start", "total", "rate", "numbers"), ("x", "total"), fused))  # fmt: skip
    return Repetition("rounds", ("x",), PUSH, (ConstantTable("numbers", rows),), (BEGIN,), again, rounds)


def in_one(fused: bool = False) -> Repetition:
    stages = Stage(FORCE, ("x", "push"), ("rate",), fused), Stage(TURN, ("x", "phase", "rate"), ("x", "phase"), fused)
    return Repetition("one", ("x", "phase"), PUSH, (), (), stages)


def by_stages(r: Repetition, state: dict[str, list[float]], pushes: Numbers, every: int) -> list[Numbers]:
    """The results for one state, by stages on Python's numbers."""
    known: dict[str, Any] = {name: list(map(float, state[name])) for name in r.state}
    kept = {name: [known[name]] for name in r.state}

    def run(stage: Stage, number: int) -> None:
        known.update((x.name, list(x.rows[number if len(x.rows) > 1 else 0])) for x in r.tables)
        values = stage.program.flat(*(known[name] for name in stage.reads))
        for name in stage.writes:
            known[name], values = values[: r.sizes[name]], values[r.sizes[name] :]

    for step, push in enumerate(pushes, 1):
        known["push"] = np.minimum(np.maximum(push, LOW), HIGH).tolist()
        for stage in r.first:
            run(stage, 0)
        for number in range(r.rounds):
            for stage in r.again:
                run(stage, number)
        if step % every == 0:
            for name in r.state:
                kept[name].append(known[name])
    return [np.array(kept[name]) for name in r.state]


def computed(
    r: Repetition, device: HostDevice, given: dict[str, Numbers], steps: int, every: int = 1, states: int = 1
) -> list[Numbers]:
    """On arrays there, and the same by NumPy's through the device."""
    call = RepeatedCode(r).call(tuple(given), steps, every)
    ordered = [given[x.name] for x in call.program.inputs]
    dtype = np.result_type(*ordered)
    here: Any = device  # stands for a device
    there: Any = ComputingPlace(here, OTHERS).executable(call)
    by_transfers: Any = ComputingPlace(here, None).executable(call)
    views = [there.array(Array(x), "x") for x in ordered]
    results = [seen(y) for y in there.run(views, (states,), dtype, None, None)]
    for x, y in zip(results, by_transfers.run(ordered, (states,), dtype, None, None), strict=True):
        np.testing.assert_array_equal(x, y)
    return results


# what they give


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("every", [1, 3])
def test_rounds_lead_on_from_each_other(rounds: int, every: int, device: HostDevice) -> None:
    rng = np.random.default_rng(rounds)
    x, pushes = rng.standard_normal((40, N)), 2.0 * rng.standard_normal((40, 7, N))
    (result,) = computed(in_rounds(rounds), device, {"x": x, "push": pushes}, 7, every, 40)
    assert result.shape == (40, 1 + 7 // every, N)
    for k in range(40):
        (expected,) = by_stages(in_rounds(rounds), {"x": x[k]}, pushes[k], every)
        np.testing.assert_array_equal(result[k], expected)


def test_states_of_several_arrays_one_row_for_all_and_what_is_not_given(device: HostDevice) -> None:
    rng = np.random.default_rng(0)
    x, pushes = rng.standard_normal((5, N)), rng.standard_normal((1, 6, N))
    for given, phase, forces in (
        ({"x": x, "phase": np.full((1, 1), 0.5), "push": pushes}, 0.5, pushes),
        ({"x": x, "push": pushes}, 0.0, pushes),
        ({"x": x}, 0.0, 0.0 * pushes),
    ):
        results = computed(in_one(), device, given, 6, 2, 5)
        for k in range(5):
            for y, expected in zip(results, by_stages(in_one(), {"x": x[k], "phase": [phase]}, forces[0], 2), strict=True):
                np.testing.assert_array_equal(y[k], expected)


def test_single_precision(device: HostDevice) -> None:
    rng = np.random.default_rng(0)
    x, pushes = rng.standard_normal((3, N)).astype(np.float32), rng.standard_normal((3, 5, N)).astype(np.float32)
    (result,) = computed(in_rounds(2), device, {"x": x, "push": pushes}, 5, 1, 3)
    assert result.dtype == np.float32
    (expected,) = by_stages(in_rounds(2), {"x": x[1].tolist()}, pushes[1].astype(float), 1)
    np.testing.assert_allclose(result[1], expected, rtol=0, atol=3e-6)  # some 20 roundings of numbers near one


def test_only_stages_that_are_fused_round_once(device: HostDevice) -> None:
    x, plain = np.random.default_rng(1).standard_normal((1, N)), []
    for fused in (False, True):
        result, _ = computed(in_one(fused), device, {"x": x, "phase": np.ones((1, 1))}, 9)
        plain.append(np.array_equal(result[0], by_stages(in_one(), {"x": x[0], "phase": [1.0]}, np.zeros((9, N)), 1)[0]))
        np.testing.assert_allclose(result[0, 1], by_stages(in_one(), {"x": x[0], "phase": [1.0]}, np.zeros((1, N)), 1)[0][1],
                                   rtol=0, atol=1e-15)  # fmt: skip
    assert plain == [True, False]


def test_nan_stays_in_its_state(device: HostDevice) -> None:
    """That of an input, too, which bounds do not take for a number."""
    rng = np.random.default_rng(2)
    x, pushes = rng.standard_normal((4, N)), rng.standard_normal((4, 3, N))
    (sound,) = computed(in_rounds(2), device, {"x": x, "push": pushes}, 3, 1, 4)
    x[1, 4], pushes[2, 1, 0] = np.nan, np.nan
    (result,) = computed(in_rounds(2), device, {"x": x, "push": pushes}, 3, 1, 4)
    np.testing.assert_array_equal(result[[0, 3]], sound[[0, 3]])
    assert np.isnan(result[1, 1:, 4:6]).all() and np.isfinite(result[2, 1]).all() and np.isnan(result[2, 2:, 0]).all()


def test_kernels_are_compiled_once_and_kept(device: HostDevice) -> None:
    """For any number of steps and states, and of the arrays that are given."""
    r = replace(in_one(), inputs=(StepInput("push", (-9.0,) * N, (9.0,) * N),))
    computed(r, device, {"x": np.ones((1, N))}, 3)
    assert device.assembled == 2  # two ways to write it
    computed(r, device, {"x": np.ones((2, N)), "push": np.ones((2, 4, N))}, 4, 2, 2)
    assert device.assembled == 2


# what may be wrong


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"again": (Stage(FORCE, ("x", "pull"), ("rate",)),)}, "force reads pull, which nothing has written"),
        ({"again": (Stage(FORCE, ("x", "push"), ("push",)),)}, "force writes push, which is written already"),
        ({"first": (Stage(FORCE, ("x", "push"), ("x",)),)}, "force writes x, which it reads"),
        ({"again": (Stage(FORCE, ("x", "phase"), ("rate",)),)}, "no stage reads push"),
        ({"inputs": (*PUSH, StepInput("wind", (), ()))}, "no stage reads wind"),
        ({"inputs": (StepInput("push", (0.0,), (1.0,)),)}, "bounds have as many numbers as the input"),
        ({"tables": (ConstantTable("numbers", ((1.0,), (2.0,))),)}, "a table has one row, or 1, one for each round"),
    ],
)
def test_steps_that_make_no_sense(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(in_one(), **change)


def test_stages_that_do_not_agree_on_a_size() -> None:
    stages = Stage(FORCE, ("x", "push"), ("rate",)), Stage(TURN, ("x", "rate", "push"), ("x", "phase"))
    with pytest.raises(ValueError, match="one: rate has 19 numbers, and 1 in turn"):
        replace(in_one(), again=stages)


# for devices


@pytest.mark.parametrize("precision", ["float", "double"])
def test_the_assembler_takes_the_kernel(precision: str, tmp_path: Path) -> None:
    """A loop over rounds has the code of a round once."""
    assembler = tool("ptxas")
    if assembler is None:
        pytest.skip("ptxas is not on this machine")
    sizes = []
    for rounds in (2, 12):
        path = tmp_path / "kernel.ptx"
        path.write_bytes(assembly(module(in_rounds(rounds), precision, target.NVIDIA), (9, 0)))
        command = [str(assembler), "-v", "-arch=sm_90", str(path), "-o", str(tmp_path / "kernel.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert re.findall(r"(\d+) bytes spill stores", done.stderr + done.stdout) in (["0"], ["0", "0"])
        sizes.append((tmp_path / "kernel.cubin").stat().st_size)
    assert abs(sizes[1] - sizes[0]) < 0.1 * sizes[0]


def test_code_for_other_devices() -> None:
    assert amd_object(module(in_rounds(3), "double", target.AMD)).startswith(b"\x7fELF")


def module(r: Repetition, precision: str, where: target.Target) -> str:
    traces = [Traced(stage.program, bounded=False).trace for stage in r.stages]
    return emit_repetition(r, traces, Type(precision, 1), False, where)
