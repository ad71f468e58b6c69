"""Tests of sparse factors: exact operation counts, and one result in all executions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from costs import ltdl_with_divisions_in_situ

import featherweight as fw
from featherweight import generators
from featherweight.algorithms import ltdl as kernels
from featherweight.engine.function import CompiledFunction
from featherweight.engine.operations import Operations
from featherweight.engine.program import Input, KernelProgram, Output, flattened
from featherweight.engine.trace import count, trace
from featherweight.model.topology import Topology
from featherweight.robot.factorization import packed_size
from oracles.matrices import PARENTS, close, sample, vectors


@pytest.fixture(params=PARENTS)
def parent(request: pytest.FixtureRequest) -> list[int]:
    return PARENTS[request.param]


# exact counts: table 1 of Featherstone (2005)


def distances(parent: Sequence[int]) -> tuple[int, int]:
    """Return D1 and D2."""
    depth = Topology(parent).depth
    return sum(d - 1 for d in depth), sum(d * (d - 1) // 2 for d in depth)


def counted(kernel: Callable[..., None], parent: list[int]) -> Operations:
    """Return the cost of a kernel in place, for a full lower triangle."""
    n = len(parent)

    def run(flat: list[Any]) -> list[Any]:
        H = [flat[i * n : (i + 1) * n] for i in range(n)]
        kernel(parent, H)
        return [H[i][j] for i in range(n) for j in range(i + 1)]

    return count(trace(run, [n * n]))


def counted_product(kernel: Callable[..., None], parent: list[int], unit: int) -> Operations:
    n = len(parent)

    def run(flat: list[Any], x: list[Any]) -> list[Any]:
        y = [0.0] * n
        kernel(parent, unit, flat, x, y)
        return flattened(y)

    return count(trace(run, [packed_size(tuple(parent)), n]))


def test_factors_take_the_operations_of_the_paper(parent: list[int]) -> None:
    D1, D2 = distances(parent)
    assert counted(ltdl_with_divisions_in_situ, parent) == Operations(mul=D2, add=D2, div=D1, sqrt=0, trig=0)
    assert counted(kernels.ltl_in_situ, parent) == Operations(mul=D2, add=D2, div=D1, sqrt=len(parent), trig=0)


def test_ldl_factors_take_one_reciprocal_a_row(parent: list[int]) -> None:
    """Check that a reciprocal replaces a division for each entry below the diagonal; rows without such entries need none."""
    D1, D2 = distances(parent)
    carried = sum(p >= 0 for p in parent)
    assert counted(kernels.ltdl_in_situ, parent) == Operations(mul=D1 + D2, add=D2, div=carried, sqrt=0, trig=0)


@pytest.mark.parametrize("m", range(1, 7))
def test_the_topologies_of_the_paper_have_its_formulae(m: int) -> None:
    """Check table 2."""
    expected = {
        tuple(generators.unbranched_parents(m)): ((m**2 - m) // 2, (m**3 - m) // 6),
        tuple(generators.short_side_branches_parents(m)): (m**2, (2 * m**3 + 3 * m**2 + m) // 6),
        tuple(generators.balanced_tree_parents(m)): (
            sum(i * 2**i for i in range(1, m)),
            sum(i * (i + 1) * 2 ** (i - 1) for i in range(1, m)),
        ),
        tuple(generators.span_grid_parents(m)): (m**3 - m**2, (7 * m**4 - 6 * m**3 - m**2) // 12),
    }
    for parent, (D1, D2) in expected.items():
        assert counted(ltdl_with_divisions_in_situ, list(parent)) == Operations(mul=D2, add=D2, div=D1, sqrt=0, trig=0)
        n = len(parent)
        assert counted(kernels.ltl_in_situ, list(parent)) == Operations(mul=D2, add=D2, div=D1, sqrt=n, trig=0)


def test_products_take_the_operations_of_the_paper(parent: list[int]) -> None:
    n, (D1, _) = len(parent), distances(parent)
    for kernel in (kernels.multiply, kernels.multiply_transposed):
        assert counted_product(kernel, parent, 1) == Operations(mul=D1, add=D1, div=0, sqrt=0, trig=0)
        assert counted_product(kernel, parent, 0) == Operations(mul=n + D1, add=D1, div=0, sqrt=0, trig=0)
    for kernel in (kernels.divide, kernels.divide_transposed):
        assert counted_product(kernel, parent, 1) == Operations(mul=D1, add=D1, div=0, sqrt=0, trig=0)
        assert counted_product(kernel, parent, 0) == Operations(mul=D1, add=D1, div=n, sqrt=0, trig=0)
    assert counted_product(kernels.solve, parent, 1) == Operations(mul=2 * D1, add=2 * D1, div=n, sqrt=0, trig=0)
    assert counted_product(kernels.solve, parent, 0) == Operations(mul=2 * D1, add=2 * D1, div=2 * n, sqrt=0, trig=0)


# executions


def program(kernel: Callable[..., None], parent: tuple[int, ...], unit: int | None) -> KernelProgram:
    n = len(parent)
    entries = packed_size(parent)
    if unit is None:
        return KernelProgram(kernel.__name__, kernel, (parent,), (Input("H", (n, n)),), (Output("out", (entries,)),))
    inputs = (Input("F", (entries,)), Input("x", (n,)))
    return KernelProgram(kernel.__name__, kernel, (parent, unit), inputs, (Output("y", (n,)),))


@pytest.mark.parametrize("kernel", [kernels.ltdl, kernels.ltl], ids=lambda k: k.__name__)
def test_factors_are_the_same_in_all_executions(kernel: Callable[..., None]) -> None:
    for name in ("one", "diagonal", "expanded", "interleaved", "random_13_3"):
        H, made = sample(PARENTS[name])[0], program(kernel, tuple(PARENTS[name]), None)
        traced = CompiledFunction(made, "traced")(H)
        close(CompiledFunction(made, "rolled")(H), traced)
        close(CompiledFunction(made, "interpreted")(H), traced)


PRODUCTS = [kernels.multiply, kernels.multiply_transposed, kernels.divide, kernels.divide_transposed, kernels.solve]


@pytest.mark.parametrize("kernel", PRODUCTS, ids=lambda k: k.__name__)
def test_products_are_the_same_in_all_executions(kernel: Callable[..., None]) -> None:
    for name in ("one", "diagonal", "expanded", "interleaved", "random_13_3"):
        parent = PARENTS[name]
        x = vectors(parent)
        for unit, factorize in ((1, fw.ltdl), (0, fw.ltl)):
            L, made = factorize(sample(parent)[0], parent).packed, program(kernel, tuple(parent), unit)
            traced = CompiledFunction(made, "traced")(L, x)
            close(CompiledFunction(made, "rolled")(L, x), traced)
            close(CompiledFunction(made, "interpreted")(L, x), traced)
