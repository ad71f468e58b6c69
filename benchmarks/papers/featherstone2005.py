"""Featherstone (2005), "Efficient Factorization of the Joint-Space Inertia Matrix for Branched Kinematic Trees".

    PYTHONPATH=benchmarks/peers python benchmarks/papers/featherstone2005.py [--output output/papers]

Section 4 is here, section 2 is in featherstone2005_order.py, and sections 5 and 6 in featherstone2005_humanoid.py.
International Journal of Robotics Research 24(6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import featherstone2005_humanoid
import featherstone2005_order
from costs import factorization_operations, product_operations
from matplotlib.axes import Axes
from report import Report, run

from featherweight import generators
from featherweight.algorithms import ltdl as kernels
from featherweight.engine.operations import Operations
from featherweight.model.topology import Topology
from featherweight.viewer.chart_style import BLUE, GREEN, INK, ORANGE

Parent = Sequence[int]


class Family(NamedTuple):
    """A row of table 2."""

    name: str
    parents: Callable[[int], list[int]]
    D1: Callable[[int], int]
    D2: Callable[[int], int]
    formulae: tuple[str, str, str]  # D1, D2 and the order, as text
    counted: tuple[int, ...]  # m of the trees that are traced
    plotted: tuple[int, ...]  # m of figure 5
    color: str


FAMILIES = (
    Family(
        "unbranched",
        generators.unbranched_parents,
        lambda n: (n**2 - n) // 2,
        lambda n: (n**3 - n) // 6,
        ("(n² − n)/2", "(n³ − n)/6", "n³"),
        (1, 4, 16, 30, 48, 64),
        tuple(range(2, 257)),
        INK,
    ),
    Family(
        "short side branches",
        generators.short_side_branches_parents,
        lambda m: m**2,
        lambda m: (2 * m**3 + 3 * m**2 + m) // 6,
        ("m²", "(2m³ + 3m² + m)/6", "n³"),
        (1, 3, 8, 16, 32, 48),
        tuple(range(1, 129)),
        ORANGE,
    ),
    Family(
        "balanced tree",
        generators.balanced_tree_parents,
        lambda m: sum(i * 2**i for i in range(1, m)),
        lambda m: sum(i * (i + 1) * 2 ** (i - 1) for i in range(1, m)),
        ("Σ i 2ⁱ", "Σ i (i + 1) 2ⁱ⁻¹", "n (log n)²"),
        (1, 2, 3, 4, 5, 6, 7, 8),
        tuple(range(2, 9)),
        GREEN,
    ),
    Family(
        "spanning tree of a grid",
        generators.span_grid_parents,
        lambda m: m**3 - m**2,
        lambda m: (7 * m**4 - 6 * m**3 - m**2) // 12,
        ("m³ − m²", "(7m⁴ − 6m³ − m²)/12", "n²"),
        (1, 2, 4, 6, 8, 12, 16),
        tuple(range(2, 17)),
        BLUE,
    ),
)
UNBRANCHED, _, BALANCED, GRID = FAMILIES

# Section 4.2: savings relative to a dense matrix in D1 + 2 D2, by m of the tree.
RATIOS = ((BALANCED, 4, 7.8), (BALANCED, 8, 430.0), (GRID, 4, 5.3), (GRID, 16, 74.0))


def distances(parent: Parent) -> tuple[int, int]:
    """Return D1 and D2 as sums over the depths of all nodes, equations (8) and (9)."""
    depth = Topology(parent).depth
    return sum(d - 1 for d in depth), sum(d * (d - 1) // 2 for d in depth)


# Table 1: an operation, its costs with LTL and with LTDL, and the functions that are counted.
# Costs are functions of n, p (the number of rows with a parent), D1 and D2.


class Operation(NamedTuple):
    name: str
    formulae: tuple[str, str]  # of the paper, LTL and LTDL
    ltl: Callable[[int, int, int, int], Operations]  # of the paper and ours
    ltdl: Callable[[int, int, int, int], Operations]  # ours
    kernels: tuple[Callable[..., None], ...]  # those of `ltl` and `ltdl` if empty
    ours: str = "the same"  # LTDL


def _operations(mul: int, add: int, div: int = 0, sqrt: int = 0) -> Operations:
    return Operations(mul, add, div, sqrt, 0)


TABLE1 = (
    Operation(
        "factorize",
        ("n √ + D1 div + D2 (m + a)", "D1 div + D2 (m + a)"),
        lambda n, p, D1, D2: _operations(D2, D2, D1, n),
        lambda n, p, D1, D2: _operations(D1 + D2, D2, p),
        (),
        "p div + D1 m + D2 (m + a)",
    ),
    Operation(
        "back-substitute",
        ("2n div + 2 D1 (m + a)", "n div + 2 D1 (m + a)"),
        lambda n, p, D1, D2: _operations(2 * D1, 2 * D1, 2 * n),
        lambda n, p, D1, D2: _operations(2 * D1, 2 * D1, n),
        (kernels.solve,),
    ),
    Operation(
        "L x, Lᵀ x",
        ("n m + D1 (m + a)", "D1 (m + a)"),
        lambda n, p, D1, D2: _operations(n + D1, D1),
        lambda n, p, D1, D2: _operations(D1, D1),
        (kernels.multiply, kernels.multiply_transposed),
    ),
    Operation(
        "L⁻¹ x, L⁻ᵀ x",
        ("n div + D1 (m + a)", "D1 (m + a)"),
        lambda n, p, D1, D2: _operations(D1, D1, n),
        lambda n, p, D1, D2: _operations(D1, D1),
        (kernels.divide, kernels.divide_transposed),
    ),
)


def table1_differences(operation: Operation, parent: Parent, unit: bool) -> int:
    """Return the difference between counts and our formula, summed over all kinds of operations."""
    formula = (operation.ltdl if unit else operation.ltl)(len(parent), sum(i >= 0 for i in parent), *distances(parent))
    counts = [product_operations(k, parent, unit) for k in operation.kernels] or [factorization_operations(parent, unit)]
    return sum(abs(x - y) for c in counts for x, y in zip(c, formula, strict=True))


def dense_cost(n: int) -> int:
    return UNBRANCHED.D1(n) + 2 * UNBRANCHED.D2(n)


def traced_cost(parent: Parent) -> int:
    """Return D1 + 2 D2 by section 4.2: all operations of our LTDL factorization but the reciprocals, fewer than n."""
    return factorization_operations(parent, True).flops


def sections(report: Report) -> None:
    report.heading("Featherstone (2005): sparse factorization of the inertia matrix", 2)
    if report.times:
        featherstone2005_order.accuracy(report)
    _table1(report)
    _table2(report)
    _figure5(report)
    featherstone2005_humanoid.sections(report)


def _table1(report: Report) -> None:
    trees = [family.parents(m) for family in FAMILIES for m in family.counted if m < 48]
    report.heading("Table 1: costs with sparse factors")
    report.text(
        f"""`ltl` divides each entry, as the paper does. `ltdl` computes one reciprocal for each of the p rows that have a
        parent: D1 divisions become D1 multiplications and p divisions. The table sums the differences between counts and
        formulas over {len(trees)} trees of the families of table 2, the largest with {max(map(len, trees))} bodies."""
    )
    rows = []
    for operation in TABLE1:
        ltl, ltdl = (sum(table1_differences(operation, tree, unit) for tree in trees) for unit in (False, True))
        rows.append([operation.name, operation.formulae[0], ltl, operation.formulae[1], operation.ours, ltdl])
    report.table(["", "LTL, the paper", "counts less formula", "LTDL, the paper", "LTDL, ours", "counts less formula"], rows)


def _table2(report: Report) -> None:
    report.heading("Table 2: D1 and D2 of four families of trees")
    rows: list[list[object]] = []
    equal = trees = 0
    for family in FAMILIES:
        D1, D2, order = family.formulae
        for m in family.counted:
            parent = family.parents(m)
            o = factorization_operations(parent, True)
            equal += (family.D1(m), family.D2(m)) == distances(parent) == (o.mul - o.add, o.add)
            trees += 1
        rows.append([family.name, order, D1, D2, len(parent), family.D1(m), family.D2(m)])
    report.text(
        f"""The paper's formulas, the sums over the depths of all bodies (equations 8 and 9) and the traces of our LTDL
        factorization agree for {equal} of {trees} trees. The table has the largest tree of each family."""
    )
    report.table(["tree", "order", "D1", "D2", "n", "D1", "D2"], rows)
    report.text("n is 2m with short side branches, 2ᵐ − 1 in the balanced tree (sums from 1 to m − 1), and m² in the grid.")


def _figure5(report: Report) -> None:
    report.heading("Figure 5: cost of factorization against n")
    with report.picture("featherstone2005_figure5", "Cost of factorization against n for four families of trees") as ax:
        draw_figure5(ax)
    report.text(
        """Traced numbers omit the reciprocals of our factorization, fewer than n. Savings through branches against a dense
        factorization (section 4.2):"""
    )
    rows = []
    for family, m, paper in RATIOS:
        parent = family.parents(m)
        ours = dense_cost(len(parent)) / traced_cost(parent)
        rows.append([family.name, len(parent), f"{paper:g}", f"{ours:.{1 if ours < 10 else 0}f}"])
    report.table(["tree", "n", "times cheaper, the paper", "ours, traced"], rows)


def draw_figure5(ax: Axes) -> None:
    for family in FAMILIES:
        line = [(len(family.parents(m)), family.D1(m) + 2 * family.D2(m)) for m in family.plotted]
        ax.plot(*zip(*line, strict=True), color=family.color, linewidth=1.4)
        dots = [(len(p), traced_cost(p)) for p in map(family.parents, family.counted[2:])]
        ax.plot(*zip(*dots, strict=True), "o", color=family.color, markersize=4.0)
        n, top = line[-1]
        ax.annotate(family.name, (n, top), (6, 0), "data", "offset points", va="center", color=family.color)
    ax.set(xscale="log", yscale="log", xlabel="n", xlim=(3, 1400), ylim=(3, 3e7))
    ax.set_xticks([4, 8, 16, 32, 64, 128, 256], ["4", "8", "16", "32", "64", "128", "256"])
    ax.minorticks_off()
    ax.grid()
    ax.set_title("D1 + 2 D2: lines by the formulae, dots as traced")


if __name__ == "__main__":
    run(sections, __doc__)
