"""Tests of plans of small traces: steps, order, fusion, parts, and locations of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.backends import straight_steps as steps
from featherweight.engine.backends.llvm.emit import host_options
from featherweight.engine.backends.llvm.ir import Type
from featherweight.engine.backends.straight_plan import PlanOptions, StraightPlan, fused_products, plan_lanes, plan_trace
from featherweight.engine.operations import ADD, COS, MUL, OPERATIONS, SIN, SQRT
from featherweight.engine.trace import Trace, evaluate, live_nodes, trace
from featherweight.model.generators import random_tree
from featherweight.spatial import sincos, sqrt

IN_TRACE_ORDER = PlanOptions(fma=True, part=1000, ordered=False)


def traced(function: Callable[..., list[Any]], *lengths: int) -> Trace:
    return trace(function, lengths)


def planned(function: Callable[..., list[Any]], inputs: int, **options: Any) -> StraightPlan:
    """Return the plan of a function of one argument, in trace order and one part unless `options` say otherwise."""
    t = traced(function, inputs)
    given = {"fma": True, "part": 1000, "ordered": False} | options
    return plan_trace(t, [len(t.outputs)], PlanOptions(**given))


def kinds(plan: StraightPlan, *omitted: type) -> list[str]:
    return [type(s).__name__.removesuffix("Step") for p in plan.parts for s in p.steps if not isinstance(s, omitted)]


def of_kind(plan: StraightPlan, kind: type) -> list[Any]:
    return [s for p in plan.parts for s in p.steps if isinstance(s, kind)]


def computed(plan: StraightPlan, arguments: Sequence[Sequence[float]], sizes: Sequence[int]) -> list[float]:
    """Return the results of a plan with Python's numbers: each value must exist when a step reads it."""
    memory: dict[tuple[str, int], float] = {
        (f"in{k}", i): float(x) for k, row in enumerate(arguments) for i, x in enumerate(row)
    }
    for part in plan.parts:
        values: dict[Any, Any] = {}
        spills: set[str] = set()

        def value(x: steps.Operand, values: dict[Any, Any] = values) -> Any:
            return x if isinstance(x, float) else values[x]

        for s in part.steps:
            if isinstance(s, steps.LoadStep):
                assert s.array in plan.arrays or s.array in spills
                values[s.value] = memory[s.array, s.element]
            elif isinstance(s, steps.StoreStep):
                assert s.array in plan.arrays or s.array in spills
                memory[s.array, s.element] = value(s.operand)
            elif isinstance(s, steps.OperationStep):
                operands = [value(x) for x in s.operands]
                values[s.value] = OPERATIONS[s.op].value(*operands)
            elif isinstance(s, steps.FmaStep):
                values[s.value] = value(s.a) * value(s.b) + value(s.c)
            elif isinstance(s, steps.NegateStep):
                values[s.value] = -value(s.operand)
            elif isinstance(s, steps.InsertStep):
                values[s.value] = {**(values[s.vector] if s.vector is not None else {}), s.lane: value(s.scalar)}
            elif isinstance(s, steps.SincosStep):
                assert s.angle in values
            elif isinstance(s, steps.SincosGroupStep):
                angles = value(s.angles) if plan.lanes > 1 else {0: value(s.angles)}
                for lane in range(plan.lanes):
                    memory["ws", s.slot + lane] = math.sin(angles.get(lane, 0.0))
                    memory["ws", s.slot + plan.lanes + lane] = math.cos(angles.get(lane, 0.0))
            elif isinstance(s, steps.SpillStep):
                spills.add(s.spill)
            else:
                assert isinstance(s, steps.ClearStep)
                memory |= {(s.array, i): 0.0 for i in range(s.elements)}
    assert all(element < plan.workspace for array, element in memory if array == "ws")
    return [memory[f"out{k}", i] for k, size in enumerate(sizes) for i in range(size)]


# fusing


def test_a_product_that_feeds_one_sum_is_fused_into_it() -> None:
    plan = planned(lambda x: [x[0] * x[1] + x[2]], 3)
    assert kinds(plan) == ["Load", "Load", "Load", "Fma", "Store"]
    assert plan.arrays == ("in0", "out0", "ws")
    fma, store = of_kind(plan, steps.FmaStep)[0], of_kind(plan, steps.StoreStep)[0]
    names = {s.value: s.element for s in of_kind(plan, steps.LoadStep)}
    assert ({names[fma.a], names[fma.b]}, names[fma.c]) == ({0, 1}, 2)
    assert store == steps.StoreStep("out0", 0, fma.value, wide=False)


def test_differences_are_fused_with_one_negation() -> None:
    """Check that the addend or a factor is negated, because operands of a sum are in trace order."""

    def product_first(x: Any) -> list[Any]:
        product = x[0] * x[1]
        return [product - x[2] / x[0]]

    def product_last(x: Any) -> list[Any]:
        quotient = x[2] / x[0]
        return [quotient - x[0] * x[1]]

    for function, addend in ((product_first, True), (product_last, False)):
        plan = planned(function, 3)
        assert kinds(plan, steps.LoadStep, steps.StoreStep) == ["Operation", "Negate", "Fma"]
        [negation], [fma] = of_kind(plan, steps.NegateStep), of_kind(plan, steps.FmaStep)
        assert negation.value == (fma.c if addend else fma.a)


def test_products_of_several_readers_are_not_fused() -> None:
    plan = planned(lambda x: [x[0] * x[1] + x[2], x[0] * x[1]], 3)
    assert [s.op for s in of_kind(plan, steps.OperationStep)] == [MUL, ADD]


def test_nothing_is_fused_without_fma() -> None:
    plan = planned(lambda x: [x[0] * x[1] + x[2]], 3, fma=False)
    assert [s.op for s in of_kind(plan, steps.OperationStep)] == [MUL, ADD]
    assert not of_kind(plan, steps.FmaStep)


# order


def test_waits_for_results_are_filled_with_other_work() -> None:
    """Check a sum that waits for a root; in trace order, it would precede a product that is ready."""

    def function(x: Any) -> list[Any]:
        return [sqrt(x[0]) + x[1], x[1] * x[2]]

    assert [s.op for s in of_kind(planned(function, 3), steps.OperationStep)] == [SQRT, ADD, MUL]
    assert [s.op for s in of_kind(planned(function, 3, ordered=True), steps.OperationStep)] == [SQRT, MUL, ADD]


# sines


def test_sines_of_inputs_are_computed_in_groups_before_all_else() -> None:
    plan = planned(lambda x: [sincos(x[0])[0], sincos(x[1] + 0.5)[1], *sincos(x[2])], 3, lanes=2)
    assert [p.title for p in plan.parts] == ["turns", "rest"]
    assert [s.slot for s in of_kind(plan, steps.SincosGroupStep)] == [0, 4]
    slots = [s.element for s in plan.parts[1].steps if isinstance(s, steps.LoadStep)]
    assert slots == [0, 3, 4, 6]  # two sines and two cosines, then two more of each
    assert plan.workspace == 8


def test_sine_and_cosine_of_a_computed_angle_are_one_step() -> None:
    plan = planned(lambda x: [*sincos(x[0] * x[1])], 2)
    assert kinds(plan, steps.LoadStep, steps.StoreStep) == ["Operation", "Sincos", "Operation", "Operation"]
    assert [s.op for s in of_kind(plan, steps.OperationStep)] == [MUL, SIN, COS]


# parts and places


def test_values_go_from_one_part_to_another_in_slots_that_are_used_again() -> None:
    def function(x: Any) -> list[Any]:
        y = x[0]
        for _ in range(12):
            y = y / x[1]
        return [y]

    plan = planned(function, 2, part=3)
    assert [p.title for p in plan.parts] == ["0", "1", "2", "3"]
    assert all(len([s for s in p.steps if isinstance(s, steps.OperationStep)]) == 3 for p in plan.parts)
    assert [(s.array, s.element) for s in of_kind(plan, steps.StoreStep)] == [("ws", 0), ("ws", 1), ("ws", 0), ("out0", 0)]
    assert plan.workspace == 2
    assert plan.cut


def test_long_traces_have_parts_of_their_own_size() -> None:
    def function(x: Any) -> list[Any]:
        return [x[0] / x[k] for k in range(1, 9)]

    assert len(planned(function, 9, part=4, long=9, part_of_long=2).parts) == 2
    assert len(planned(function, 9, part=4, long=8, part_of_long=2).parts) == 4


def test_what_registers_do_not_hold_goes_to_the_stack_and_is_loaded_again() -> None:
    def function(x: Any) -> list[Any]:
        quotients = [x[k] / x[4] for k in range(4)]
        return [quotients[0] / (quotients[1] / (quotients[2] / quotients[3]))]

    assert not of_kind(planned(function, 5), steps.SpillStep)
    plan = planned(function, 5, registers=3)
    assert plan.spills == len(of_kind(plan, steps.SpillStep)) > 0
    assert {s.array for s in of_kind(plan, steps.LoadStep) if s.again} >= {"spill0"}
    assert plan.workspace == 0


def test_many_zeros_are_cleared_before_all_else() -> None:
    def function(x: Any) -> list[Any]:
        return [x[0] / x[1], *[0.0] * 5, 2.0, -0.0]

    few = planned(function, 2, few_zeros=5)
    assert [p.title for p in few.parts] == ["0", "rest"]
    many = planned(function, 2, few_zeros=4)
    assert [p.title for p in many.parts] == ["zeros", "0", "rest"]
    assert many.parts[0].steps == (steps.ClearStep("out0", 8),)
    assert [s.element for s in many.parts[2].steps if isinstance(s, steps.StoreStep)] == [6, 7]


def test_results_go_to_arrays_one_after_the_other() -> None:
    t = traced(lambda x: [x[0], x[1], -x[0]], 2)
    plan = plan_trace(t, [0, 1, 2], IN_TRACE_ORDER)
    assert plan.arrays == ("in0", "out0", "out1", "out2", "ws")
    assert [(s.array, s.element) for s in of_kind(plan, steps.StoreStep)] == [("out1", 0), ("out2", 1), ("out2", 0)]


def test_a_trace_without_results_has_a_part() -> None:
    plan = plan_trace(traced(lambda x: [], 2), [0], IN_TRACE_ORDER)
    assert [(p.title, p.steps) for p in plan.parts] == [("rest", ())]


# whole robots


@pytest.mark.parametrize(
    "options",
    [
        IN_TRACE_ORDER,
        PlanOptions(fma=False, part=70),
        PlanOptions(fma=True, part=50, registers=6, lanes=4, few_zeros=3),
        host_options(Type("double", 1), fma=True, group=8),
        PlanOptions(fma=True, part=50, registers=6, rereads=True),
    ],
)
def test_plans_compute_what_traces_do(options: PlanOptions) -> None:
    robot = fw.build(random_tree(4, rng=4), execution="traced")
    rng = np.random.default_rng(0)
    arguments = [robot.random_configuration(rng=rng).tolist(), *rng.standard_normal((2, robot.nv)).tolist()]
    placement = robot.frame_placement(robot.frames[-1].name)  # sines and cosines are among the results
    for f, given in ((robot.forward_dynamics, arguments), (robot.mass_matrix, arguments[:1]), (placement, arguments[:1])):
        sizes = [y.size for y in f.program.outputs]
        results = computed(plan_trace(f.trace, sizes, options), given, sizes)
        np.testing.assert_allclose(results, evaluate(f.trace, given), rtol=1e-10, atol=1e-10)


def test_values_that_are_results_are_read_where_they_lie() -> None:
    """Check a sine of an argument that is a result: it is written at the end, and so read from the workspace."""

    def function(x: list[Any]) -> list[Any]:
        s, _ = sincos(x[0])
        y = s * x[1]
        return [s, y, sqrt(y + x[2])]

    t = traced(function, 3)
    plan = plan_trace(t, [3], PlanOptions(fma=True, part=1, rereads=True))
    assert {(s.array, s.element) for s in of_kind(plan, steps.LoadStep)} >= {("out0", 1), ("ws", 0)}
    assert not {("out0", 0)} & {(s.array, s.element) for s in of_kind(plan, steps.LoadStep)}
    given = [[0.3, 2.0, 1.0]]
    np.testing.assert_allclose(computed(plan, given, [3]), evaluate(t, given), rtol=1e-15, atol=0)


def test_fusing_of_a_larger_trace_holds_for_its_parts() -> None:
    """Check that a product with two sums is not fused, also if a part has only one of them."""

    def function(x: list[Any]) -> list[Any]:
        return [x[0] * x[1] + x[2], x[0] * x[1] + x[3]]

    t = traced(function, 4)
    whole = fused_products(t, {i: t.graph.operands(i) for i in t.live})
    part = t._replace(outputs=t.outputs[:1])
    part = part._replace(live=live_nodes(t.graph, [i for i, _ in part.outputs]))  # type: ignore[misc]
    options = PlanOptions(fma=True, part=10, ordered=False)
    assert of_kind(plan_trace(part, [1], options, whole), steps.FmaStep) == []
    assert len(of_kind(plan_trace(part, [1], options), steps.FmaStep)) == 1


def test_a_plan_is_the_same_each_time() -> None:
    robot = fw.build(random_tree(3, rng=2), execution="traced")
    f = robot.forward_dynamics
    options = host_options(Type("double", 1), fma=True, group=8)
    assert plan_trace(f.trace, [f.program.outputs[0].size], options) == plan_trace(
        f.trace, [f.program.outputs[0].size], options
    )


# directions in lanes


def test_scalars_multiply_vectors_in_all_lanes() -> None:
    robot = fw.build(random_tree(3, rng=3), execution="traced")
    t = robot.inverse_dynamics.derivative().program.in_lanes(4)
    assert t is not None
    plan = plan_lanes(t, host_options(Type("double", 1), fma=True, group=4))
    assert (plan.lanes, plan.arguments) == (4, 3)
    for part in plan.parts:
        numbers = (steps.LoadStep, steps.OperationStep, steps.FmaStep, steps.NegateStep)
        wide = {s.value: s.wide for s in part.steps if isinstance(s, numbers)}
        wide |= {s.value: True for s in part.steps if isinstance(s, (steps.SpreadStep, steps.InsertStep))}
        for s in part.steps:
            if isinstance(s, steps.FmaStep):
                assert {wide[x] for x in (s.a, s.b, s.c) if isinstance(x, int)} == {s.wide}
            if isinstance(s, steps.SpreadStep):
                assert isinstance(s.scalar, int) and not wide[s.scalar]
    assert {s.wide for s in of_kind(plan, steps.FmaStep)} == {False, True}
    columns = [(s.array, s.element + k) for s in of_kind(plan, steps.StoreLanesStep) for k in range(len(s.lanes))]
    assert len(columns) == len({*columns})
    cleared = {(s.array, k) for s in of_kind(plan, steps.ClearStep) for k in range(s.elements)}
    assert {*columns} | cleared == {(f"out{k}", i) for k, n in enumerate(t.columns) for i in range(t.rows[0] * n)}
