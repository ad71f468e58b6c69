"""Tests of parts in assembly: each instruction computes the plan's step, and results are bitwise those of LLVM's code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.backends import straight_steps as steps
from featherweight.engine.backends.llvm import emit
from featherweight.engine.backends.llvm.emit import host_options
from featherweight.engine.backends.llvm.ir import Type
from featherweight.engine.backends.llvm.jit import emitted, host, machine_for, parsed
from featherweight.engine.backends.llvm.loop import emit_loop
from featherweight.engine.backends.llvm.single import emit_single, emit_single_in_lanes
from featherweight.engine.backends.llvm.x86_assembly import BIAS, AssemblyPart, assembled
from featherweight.engine.backends.straight_plan import StraightPlan, plan_lanes, plan_trace
from featherweight.engine.function import CompiledFunction
from featherweight.engine.operations import ADD, OPERATIONS
from featherweight.model.generators import random_tree

ITEMS = {"double": np.float64, "float": np.float32}
WIDTHS = [(precision, bytes) for precision in ITEMS for bytes in (32, 64)]
Memory = dict[str, np.ndarray[Any, Any]]


@pytest.fixture(scope="module")
def robot() -> fw.Robot:
    return fw.build(random_tree(4, rng=3), execution="traced")


class Processor:
    """An interpreter of the writer's instructions, on arrays by the numbers of pointers."""

    def __init__(self, assembly: AssemblyPart, memory: Sequence[np.ndarray[Any, Any]], item: Any) -> None:
        self.item, self.size = np.dtype(item), np.dtype(item).itemsize
        self.memory = memory
        self.vectors = [np.full(64 // self.size, np.nan, item) for _ in range(32)]
        self.mask = 0
        for line in assembly.text.split("\n"):
            name, _, operands = line.partition(" ")
            self.step(name, re.findall(r"(?:[^,(]|\([^)]*\))+", operands.replace(", ", ",")))

    def step(self, name: str, operands: Sequence[str]) -> None:
        *sources, target = operands
        if name == "kmovw":
            self.mask = int(self.bytes(sources[0], 2).view(np.uint16)[0])
            return
        masked = "{%k1}" in target
        target = target.replace(" {%k1}", "")
        sizes = {"x": 16, "y": 32, "z": 64}
        kinds = [x[1] for x in (*sources, target) if x.startswith("%")]
        bytes = self.size if name.endswith(("sd", "ss")) and "broadcast" not in name else sizes[max(kinds)]
        value = self.result(name, sources, target, bytes // self.size)
        lanes = np.arange(len(value))
        if name.startswith("vmaskmov"):
            masked, self.mask = True, sum(1 << k for k, x in enumerate(self.integers(sources[1], len(value))) if x)
        chosen = (self.mask >> lanes & 1).astype(bool) if masked else np.ones(len(value), bool)
        if target.startswith("%"):
            register = self.vectors[int(target[4:])]
            register[lanes[chosen]] = value[chosen]
        else:
            at, begin = self.place(target)
            for k in lanes[chosen]:
                at[begin + k * self.size : begin + (k + 1) * self.size].view(self.item)[0] = value[k]

    def result(self, name: str, sources: Sequence[str], target: str, count: int) -> np.ndarray[Any, Any]:
        if match := re.fullmatch(r"vf(n?)m(add|sub)(\d)(\d)(\d)..", name):
            numbers = [self.value(x, count) for x in (target, *reversed(sources))]
            a, b, c = (numbers[int(k) - 1] for k in match.groups()[2:])
            return (-a if match[1] else a) * b + (-c if match[2] == "sub" else c)
        operation = re.fullmatch(r"v(add|sub|mul|div)..", name)
        if operation:
            b, a = (self.value(x, count) for x in sources)
            return np.asarray(next(o.value for o in OPERATIONS if o.name == operation[1])(a, b))
        if name.startswith("vsqrt"):
            return np.sqrt(self.value(sources[0], count))
        if name.startswith("vxor"):
            pair = [self.integers(x, count) for x in sources]
            return (pair[0] ^ pair[1]).view(self.item)
        if name.startswith("vbroadcast"):
            return np.full(count, self.value(sources[0], 1)[0], self.item)
        if name.startswith("vblend"):
            new, old = (self.value(x, count) for x in sources[1:])
            return np.where(int(sources[0][2:]) >> np.arange(count) & 1, new, old)
        if name.startswith("vperm"):
            source = self.value(sources[1] if sources[0].startswith("$$") else sources[0], count)
            if sources[0].startswith("$$"):
                return source[[int(sources[0][2:]) >> 2 * k & 3 for k in range(4)]]
            return source[self.integers(sources[1], count)]
        assert name.startswith(("vmov", "vmaskmov")), name
        return self.value(sources[0], count)

    def value(self, x: str, count: int) -> np.ndarray[Any, Any]:
        if x.startswith("%"):
            return self.vectors[int(x[4:])][:count].copy()
        if spread := re.fullmatch(r"(.*)\{1to(\d+)\}", x):
            assert int(spread[2]) == count
            return np.full(count, self.value(spread[1], 1)[0])
        return self.bytes(x, count * self.size).view(self.item)

    def integers(self, x: str, count: int) -> np.ndarray[Any, Any]:
        return self.value(x, count).view({8: np.int64, 4: np.int32}[self.size])

    def bytes(self, address: str, count: int) -> np.ndarray[Any, Any]:
        at, begin = self.place(address)
        assert 0 <= begin <= len(at) - count
        return at[begin : begin + count].copy()

    def place(self, address: str) -> tuple[np.ndarray[Any, Any], int]:
        match = re.fullmatch(r"(-?\d+)\(\$(\d+)\)", address)
        assert match
        number = int(match[2])
        return self.memory[number], int(match[1]) + BIAS * (number >= len(self.memory) - 3)


def run_steps(part: Sequence[steps.Step], memory: Memory, types: tuple[Type, Type], item: Any) -> None:
    """Evaluate the steps of a plan with numbers of the given type."""
    values: dict[Any, np.ndarray[Any, Any]] = {}

    def value(x: steps.Operand, wide: bool) -> Any:
        return values[x] if isinstance(x, int) else np.full(types[wide].lanes, x).astype(item)

    for s in part:
        match s:
            case steps.SpillStep():
                memory[s.spill] = np.full(16, np.nan, item)
            case steps.LoadStep():
                n = types[s.wide].lanes
                values[s.value] = memory[s.array][s.element * n : (s.element + 1) * n].copy()
            case steps.StoreStep():
                n = types[s.wide].lanes
                memory[s.array][s.element * n : (s.element + 1) * n] = value(s.operand, s.wide)
            case steps.StoreLanesStep():
                memory[s.array][s.element : s.element + len(s.lanes)] = value(s.operand, True)[list(s.lanes)]
            case steps.OperationStep():
                operands = [value(x, s.wide) for x in s.operands]
                name = OPERATIONS[s.op].name
                values[s.value] = np.sqrt(*operands) if name == "sqrt" else OPERATIONS[s.op].value(*operands)
            case steps.FmaStep():
                values[s.value] = value(s.a, s.wide) * value(s.b, s.wide) + value(s.c, s.wide)
            case steps.NegateStep():
                values[s.value] = -value(s.operand, s.wide)
            case steps.SpreadStep():
                values[s.value] = np.full(types[True].lanes, value(s.scalar, False)[0], item)
            case steps.InsertStep():
                vector = value(0.0 if s.vector is None else s.vector, True).copy()
                vector[s.lane] = value(s.scalar, False)[0]
                values[s.value] = vector


def plans(robot: fw.Robot, precision: str, bytes: int) -> Iterator[tuple[StraightPlan, tuple[Type, Type]]]:
    """Yield plans for one state, for batches, and in lanes, of derivatives, so that many values are alive."""
    W = bytes // Type(precision, 1).bytes
    one, many = Type(precision, 1), Type(precision, W)
    derivative = robot.forward_dynamics.derivative()
    t = derivative.trace
    yield plan_trace(t, [len(t.outputs)], host_options(one, True, W)), (one, many)
    yield plan_trace(t, [len(t.outputs)], host_options(many, True, 1)), (many, many)
    in_lanes = derivative.program.in_lanes(W)
    assert in_lanes
    yield plan_lanes(in_lanes, host_options(one, True, W)), (one, many)


@pytest.mark.parametrize(("precision", "bytes"), WIDTHS)
def test_instructions_do_what_steps_say(robot: fw.Robot, precision: str, bytes: int) -> None:
    rng = np.random.default_rng(0)
    item, met = ITEMS[precision], set[type]()
    for plan, types in plans(robot, precision, bytes):
        for part in (p for p in plan.parts if p.numbered):
            assembly = assembled(part.steps, plan.arrays, types)
            assert assembly
            met |= {type(s) for s in part.steps}
            memory = {name: rng.uniform(0.5, 1.5, 200_000).astype(item) for name in plan.arrays}
            pointers = [memory[name].copy() for name in plan.arrays]
            bytes_of = [*(x.view(np.uint8) for x in pointers), np.zeros(assembly.spills, np.uint8)]
            with np.errstate(all="ignore"):
                Processor(assembly, [*bytes_of, np.frombuffer(assembly.constants, np.uint8)], item)
                run_steps(part.steps, memory, types, item)
            for name, found in zip(plan.arrays, pointers, strict=True):
                np.testing.assert_array_equal(found.view(np.uint8), memory[name].view(np.uint8))
    assert met == {
        steps.LoadStep, steps.StoreStep, steps.StoreLanesStep, steps.OperationStep, steps.FmaStep, steps.NegateStep,
        steps.SpreadStep, steps.InsertStep, steps.SpillStep,
    }  # fmt: skip


def without_assembly(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    real = host()
    monkeypatch.setattr(emit, "host", lambda: real._replace(assembly=False))
    monkeypatch.setenv("FEATHERWEIGHT_CACHE", str(tmp_path))


@pytest.mark.skipif(not host().assembly, reason="LLVM writes all code for this processor")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bits_are_those_of_llvm(robot: fw.Robot, dtype: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    rng = np.random.default_rng(1)
    state = [robot.random_configuration(rng=rng, size=21), *rng.standard_normal((2, 21, robot.nv))]
    state = [x.astype(dtype) for x in state]
    functions = [robot.inverse_dynamics, robot.forward_dynamics.derivative()]

    def results() -> list[Any]:
        fresh = [CompiledFunction(f.program, "traced") for f in functions]
        return [f(*arguments) for f in fresh for arguments in ([x[0] for x in state], state)]

    assert "vfmadd" in "".join(
        emit_loop(functions[0].trace, functions[0].program.shapes, Type("double", host().lanes("double")), True)
    )
    monkeypatch.setenv("FEATHERWEIGHT_CACHE", str(tmp_path / "assembly"))
    found = results()
    without_assembly(monkeypatch, tmp_path / "llvm")
    for x, y in zip(found, results(), strict=True):
        for own, theirs in zip(x, y, strict=True) if isinstance(x, tuple) else [(x, y)]:
            assert own.tobytes() == theirs.tobytes()


@pytest.mark.skipif(not host().assembly, reason="LLVM has this processor's assembler only")
@pytest.mark.parametrize(("precision", "bytes"), WIDTHS)
def test_assembler_knows_the_instructions(robot: fw.Robot, precision: str, bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = host()
    monkeypatch.setattr(emit, "host", lambda: real._replace(vector_bytes=bytes))
    f, W = robot.forward_dynamics.derivative(), bytes // Type(precision, 1).bytes
    in_lanes = f.program.in_lanes(W)
    assert in_lanes
    modules = [
        *emit_loop(f.trace, f.program.shapes, Type(precision, W), True),
        *emit_single(f.trace, [y.size for y in f.program.outputs], Type(precision, 1), W, True),
        *emit_single_in_lanes(in_lanes, Type(precision, W), True),
    ]
    machine = machine_for("x86_64-unknown-linux-gnu", {32: "haswell", 64: "skylake-avx512"}[bytes])
    for ir in modules:
        assert "asm sideeffect" in ir
        with parsed(ir, machine) as module:
            assert emitted(machine, module)


def test_what_llvm_is_to_write() -> None:
    types = Type("double", 4), Type("double", 4)
    angle: list[steps.Step] = [steps.LoadStep(0, "in0", 0, False, False), steps.SincosStep(0)]
    assert assembled(angle, ["in0", "out0", "ws"], types) is None
    assert assembled(angle[:1], ["in0", "out0", "ws"], types) is not None
    assert assembled(angle[:1], [f"in{k}" for k in range(12)], types) is None
    sums: list[steps.Step] = [steps.OperationStep(k, ADD, (1.0, 2.0), False) for k in range(17)]
    stores: list[steps.Step] = [steps.StoreStep("out0", k, k, False) for k in range(17)]
    assert assembled([*sums, *stores], ["in0", "out0", "ws"], types) is None
    assert assembled([*sums[:16], *stores[:16]], ["in0", "out0", "ws"], types) is not None
