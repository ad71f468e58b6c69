"""Tests of the papers' figures: formulae against counts, our counts against the papers', and the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import drumwright2012
import drumwright2012_report
import featherstone2005
import featherstone2005_humanoid as humanoid
import featherstone2005_order as order
import mpmath
import numpy as np
import pytest
from costs import Cost, dynamics, factorization_operations, rotation_cost
from mechanisms import branched
from report import Report

import featherweight as fw
from featherweight.robot import factorization
from oracles.matrices import sample

TREES = [(family, m) for family in featherstone2005.FAMILIES for m in family.counted[:4]]
NAMES = [f"{family.name}, m = {m}" for family, m in TREES]


@pytest.mark.parametrize(("family", "m"), TREES, ids=NAMES)
def test_sparse_factors_take_the_operations_of_the_formulae(family: featherstone2005.Family, m: int) -> None:
    """Check Featherstone (2005), tables 1 and 2."""
    parent = family.parents(m)
    D = (family.D1(m), family.D2(m))
    ltdl = factorization_operations(parent, True)
    assert D == featherstone2005.distances(parent) == (ltdl.mul - ltdl.add, ltdl.add)
    for operation in featherstone2005.TABLE1:
        assert featherstone2005.table1_differences(operation, parent, True) == 0
        assert featherstone2005.table1_differences(operation, parent, False) == 0


@pytest.mark.parametrize(("factorize", "unit"), [(fw.ltdl, True), (fw.ltl, False)])
def test_the_counted_factorization_is_the_one_that_users_call(
    factorize: Callable[..., fw.Factorization], unit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[fw.CompiledFunction] = []
    make = factorization.factors_function

    def watched(*arguments: Any) -> fw.CompiledFunction:
        called.append(make(*arguments))
        return called[-1]

    monkeypatch.setattr(factorization, "factors_function", watched)
    parent = featherstone2005.BALANCED.parents(3)
    factorize(np.eye(len(parent)), parent)
    monkeypatch.undo()
    assert [f.operations for f in called] == [factorization_operations(parent, unit)]


def test_solutions_are_more_accurate_than_cholesky_with_many_zeros_and_less_without() -> None:
    """Check Featherstone (2005), section 2; other kernels of LAPACK change the ratios by some per cent."""
    robots = order.robots()
    many = order.errors(robots["balanced tree of 63"], 60).solutions
    none = order.errors(robots["chain of section 6"], 400).solutions
    for sparse in ("LTL", "LTDL"):
        assert many[sparse] < 0.85 * many["Cholesky"] and none[sparse] > 1.05 * none["Cholesky"]


def test_refined_solutions_are_exact_to_more_digits() -> None:
    robot = order.robots()["humanoid of section 6"]
    H, b = robot.mass_matrix(robot.random_configuration(rng=0)), np.random.default_rng(0).standard_normal(robot.nv)
    x = order.refined(H, fw.ltdl(H, robot.model.tree.parent), b)
    with mpmath.workdps(50):
        exact = mpmath.lu_solve(mpmath.matrix(H.tolist()), mpmath.matrix(b.tolist()))
        high = x.astype(float)
        parts = zip(high, (x - high).astype(float), exact, strict=True)
        off = max(abs(mpmath.mpf(float(a)) + mpmath.mpf(float(b)) - e) for a, b, e in parts)
    assert off < 1e-18 * np.abs(b).max() / np.linalg.eigvalsh(H)[0]


@pytest.mark.parametrize("reverse", [1, -1])
def test_the_entries_that_cholesky_fills_in_are_those_of_its_factor(reverse: int) -> None:
    """Check Featherstone (2005), section 3: only reversed rows keep all zeros."""
    H, L, _ = sample(order.TREE1, ())
    filled = np.linalg.cholesky(H[::reverse, ::reverse]) != 0.0
    sizes = order.cholesky_sizes(order.pattern(order.TREE1)[::reverse, ::reverse])
    assert sizes.entries == filled.sum() and (sizes.entries == np.count_nonzero(L)) == (reverse < 0)


def test_the_cost_of_crba_follows_from_the_parent_array() -> None:
    """Check Featherstone (2005), equations (19) and (21) and the formulae of section 6, against its printed numbers."""
    for k, (name, parent) in enumerate(humanoid.MECHANISMS.items()):
        printed = {quantity: values[k] for quantity, values in humanoid.D_QUANTITIES.items()}
        assert humanoid.crba_quantities(parent) == printed, name
        assert humanoid.formulae(parent) == {what: costs[k] for what, costs in humanoid.PAPER.items()}, name


@pytest.mark.parametrize("name", humanoid.MECHANISMS)
def test_dynamics_take_no_more_operations_than_the_paper(name: str) -> None:
    """Check Featherstone (2005), section 6."""
    k = list(humanoid.MECHANISMS).index(name)
    ours = humanoid.ours(name)
    reciprocals = Cost(humanoid.robot(name).nv - 1, 0)
    assert ours["factorize"] == humanoid.PAPER["factorize"][k] + reciprocals
    assert ours["back-substitute"] == humanoid.PAPER["back-substitute"][k]
    for what in ("CRBA", "RNEA", "ABA", "by CRBA"):
        paper = humanoid.PAPER[what][k]
        assert ours[what].m <= paper.m and ours[what].a <= paper.a, what


def test_the_humanoid_has_the_zeros_of_the_paper() -> None:
    assert round(humanoid.zeros("humanoid")[0]) == humanoid.EXPANDED["zeros"]
    assert humanoid.zeros("chain")[0] == 0.0


def test_the_rotation_of_the_base_is_counted_where_it_is_used() -> None:
    """Check that the inertia matrix does not depend on the base's orientation, and that gravity uses one row of the
    rotation.
    """
    functions = dynamics(humanoid.robot("humanoid"))
    assert rotation_cost(functions["CRBA"]) == Cost(0, 0)
    assert rotation_cost(functions["RNEA"]) == Cost(6, 6)
    forward = humanoid.robot("humanoid").frame_placement("body0")
    assert rotation_cost(forward) == Cost(9, 15)


def test_rows_of_the_tables_add_up_to_their_totals() -> None:
    """Check Drumwright (2012), tables 1 to 3."""
    tables = {"table 1": drumwright2012.TABLE1, "table 2": drumwright2012.TABLE2, "table 3": drumwright2012.TABLE3}
    for name, printed in drumwright2012.PRINTED_TOTALS.items():
        for n in (10, 100):
            assert drumwright2012.total(tables[name], n) == drumwright2012.total({"all": printed}, n), name


@pytest.mark.parametrize("n", [2, 5, 10, 30])
def test_the_inverse_of_a_chain_takes_no_more_operations_than_the_paper(n: int) -> None:
    """Check Drumwright (2012), table 1."""
    paper, ours = drumwright2012.total(drumwright2012.TABLE1, n), drumwright2012.inverse_cost(n, "global")
    assert ours.m <= paper.m and ours.a <= paper.a


@pytest.mark.parametrize("threads", [(2,), (2, 4)])
def test_figure_3_has_a_line_for_each_number_of_threads_that_the_machine_has(
    threads: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check Drumwright (2012), figure 3: the paper has one, two and four threads."""
    monkeypatch.setattr(drumwright2012_report, "THREADS", threads)
    monkeypatch.setattr(drumwright2012_report, "processors", lambda: max(threads))
    times = {n: {512: 1.0 / n, 1024: 4.0 / n} for n in (1, *threads)}
    report = Report(tmp_path)
    drumwright2012_report.figure3(report, times, times)
    rows = [line for line in report.markdown.splitlines() if line.startswith("| 512 |")]
    assert [row.count("| 100 |") for row in rows] == [2] and [row.count("| 300 |") for row in rows] == [2 * (4 in threads)]
    assert ("This machine has 2 processors: lines with 4 threads are left out." in report.markdown) == (4 not in threads)


def test_branched_trees_are_half_as_deep_as_they_have_links() -> None:
    """Check Drumwright (2012), section 6.1."""
    n = 400
    joints = branched(n).joints
    parents = [j.parent for j in joints]
    assert max(parents.count(p) for p in parents) == 2
    robot = fw.build(branched(n), execution="rolled")
    depth = [0] * n
    for i, p in enumerate(robot.model.tree.parent):
        depth[i] = depth[p] + 1 if p >= 0 else 1
    assert abs(max(depth) / n - 0.5) < 0.05
