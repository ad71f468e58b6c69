"""Drumwright (2012), "Fast Dynamic Simulation of Highly Articulated Robots with Contact via Θ(n²) Time Dense Generalized
Inertia Matrix Inversion": operations of the inverse inertia matrix.

    PYTHONPATH=benchmarks/peers python benchmarks/papers/drumwright2012.py [--output output/papers] [--no-times]

Tables 1 to 3 and figure 1 here, figures 2 to 4, which are times, in drumwright2012_report.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any

import drumwright2012_report
from compared import candidate
from costs import Cost, cost, cost_of_nodes, needed
from matplotlib.axes import Axes
from report import Report, percentage, run

from featherweight import Robot, build, generators
from featherweight.algorithms.inverse import solve_mass_matrix
from featherweight.engine.graph import Expression
from featherweight.engine.trace import trace
from featherweight.robot.dynamics import packed_factors
from featherweight.viewer.chart_style import BLUE, FAINT, GREEN, INK, ORANGE, RED

Polynomial = Sequence[float]  # coefficients, the constant first

# The paper's tables: multiplications and additions of each step for n joints.
TABLE1: dict[str, tuple[Polynomial, Polynomial]] = {
    "spatial axes": ((0, 24), (0, 6)),
    "isolated inertias": ((0, 84), (0, 57)),
    "articulated inertias": ((0, 108), (0, 107)),
    "impulse propagation": ((0, 0, 13), (0, 0, 13)),
    "velocity updates": ((0, 0, 9.5), (0, 0, 13)),
}
CRBA: dict[str, tuple[Polynomial, Polynomial]] = {
    "spatial axes": ((0, 24), (0, 6)),
    "isolated inertias": ((0, 84), (0, 57)),
    "composite inertias": ((0,), (-13, 13)),
    "forces": ((0, 36), (0, 24)),
    "entries": ((0, 0, 3), (0, 0, 2.5)),
}
CHOLESKY: dict[str, tuple[Polynomial, Polynomial]] = {"Cholesky": ((0, 1, 0.5, 0.5), (0, 0, 0, 0.5))}
TABLE2 = CRBA | CHOLESKY
TABLE3: dict[str, tuple[Polynomial, Polynomial]] = {
    "spatial axes": ((24,), (6,)),
    "isolated inertias": ((84,), (57,)),
    "articulated inertias": ((0, 108), (0, 107)),
    "impulse propagation": ((0, 13), (0, 13)),
    "velocity updates": ((0, 9.5), (0, 13)),
}
PRINTED_TOTALS: dict[str, tuple[Polynomial, Polynomial]] = {
    "table 1": ((0, 216, 22.5), (0, 170, 26)),
    "table 2": ((0, 145, 3.5, 0.5), (-13, 100, 2.5, 0.5)),
    "table 3": ((108, 130.5), (63, 133)),
}

COUNTED = (10, 20, 30, 40, 60, 80, 100)
ALL_COUNTED = (10, 20, 30, 40, 60)  # lengths for all algorithms: tracing n³ operations takes long
EXTRAPOLATED = (200, 500, 1000)
PROCESSORS = (10, 20, 40, 80)
ALGORITHMS = ("global", "local", "crba-ltdl")


def value(polynomial: Polynomial, n: int) -> float:
    return float(sum(c * n**k for k, c in enumerate(polynomial)))


def total(table: Mapping[str, tuple[Polynomial, Polynomial]], n: int) -> Cost:
    """Return the sum of a table's rows."""
    m, a = (sum(value(row[k], n) for row in table.values()) for k in (0, 1))
    return Cost(round(m), round(a))


@cache
def chain(n: int) -> Robot:
    """Return a chain whose functions keep their loops, so that no tracing is needed to find the cheapest algorithm."""
    return build(generators.chain(n), execution="rolled")


@cache
def inverse_cost(n: int, algorithm: str) -> Cost:
    """Return the exact count of `inverse_mass_matrix` for a chain."""
    return cost(candidate(chain(n).inverse_mass_matrix, algorithm).operations)


def formation_cost(n: int) -> Cost:
    return cost(chain(n).mass_matrix.operations)


def formation_and_factors_cost(n: int) -> Cost:
    return cost(packed_factors(chain(n)).operations)


@cache
def column_costs(n: int) -> list[Cost]:
    """Return the cost of each column of the inverse down to the diagonal: the shares of n processors.

    ProgramTrace in `solve_mass_matrix` for the unit matrix; articulated inertias are in every column's cost.
    """
    tree = chain(n).model.tree

    def columns(q: list[Expression]) -> list[Expression]:
        result: Any = [[0.0] * n for _ in range(n)]
        solve_mass_matrix(tree, q, [[float(i == k) for k in range(n)] for i in range(n)], result)
        return [result[i][k] for k in range(n) for i in range(k + 1)]

    t = trace(columns, [n])
    outputs = iter(t.outputs)
    each = [[x[0] for x in islice(outputs, k + 1) if isinstance(x, tuple)] for k in range(n)]
    return [cost_of_nodes(t.graph, needed(t.graph, nodes)) for nodes in each]


class Quadratic:
    """The quadratic polynomial through counts, which must all lie on it exactly."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        (x, a), (y, b), (z, c) = sorted(counts.items())[:3]
        ab, bc = Fraction(b - a, y - x), Fraction(c - b, z - y)
        square = (bc - ab) / (z - x)
        linear = ab - square * (x + y)
        self.coefficients = (a - linear * x - square * x * x, linear, square)
        assert all(self(n) == found for n, found in counts.items()), "counts are not a quadratic polynomial of n"

    def __call__(self, n: int) -> int:
        found = sum(c * n**k for k, c in enumerate(self.coefficients))
        assert found.denominator == 1
        return int(found)

    def __str__(self) -> str:
        constant, linear, square = (float(c) for c in self.coefficients)
        return f"{square:g}n² {linear:+g}n {constant:+g}".replace("-", "− ").replace("+", "+ ")


@cache
def quadratics() -> tuple[Quadratic, Quadratic]:
    """Return the polynomials of multiplications and additions of the Θ(n²) inverse."""
    costs = {n: inverse_cost(n, "global") for n in COUNTED}
    return Quadratic({n: c.m for n, c in costs.items()}), Quadratic({n: c.a for n, c in costs.items()})


def sections(report: Report) -> None:
    report.heading("Drumwright (2012): the inverse of the inertia matrix in Θ(n²)", 2)
    report.text(
        """The mechanisms are unbranched chains of n revolute joints on a fixed base with general geometry. A division counts as
        a multiplication. Sines and cosines are not counted."""
    )
    _table1(report)
    _table2(report)
    _figure1(report)
    if report.times:
        drumwright2012_report.sections(report)
    report.heading("Figure 4: simulation of a centipede")
    if report.times:
        drumwright2012_report.centipedes(report)
    else:
        report.text("Times were not measured (--no-times).")


def _table1(report: Report) -> None:
    m, a = quadratics()
    report.heading("Table 1: operations of the inverse")
    report.text(
        f"""Ours is `inverse_mass_matrix` with `algorithm="global"`. The counts up to n = {max(COUNTED)} agree exactly with {m}
        multiplications and divisions and {a} additions. Rows with a star are values of these polynomials."""
    )
    rows: list[list[object]] = []
    for n in (*ALL_COUNTED, COUNTED[-1], *EXTRAPOLATED):
        paper, star = total(TABLE1, n), " *" if n in EXTRAPOLATED else ""
        columns = (paper.m, m(n), percentage(m(n), paper.m), paper.a, a(n), percentage(a(n), paper.a))
        rows.append([f"{n:,}{star}", *columns])
    report.table(["n", "m, the paper", "m, ours", "%", "a, the paper", "a, ours", "%"], rows)


def _table2(report: Report) -> None:
    report.heading("Table 2: forming and factorizing the inertia matrix")
    report.text(
        """Ours is `mass_matrix` and the LTDL factors of `factorize`. The paper's Cholesky factorization has n³/2
        multiplications, although n³/6 are enough. The paper forms the matrix in a single frame (3n² multiplications for large
        n); we transform from frame to frame (10n²), which costs more in long chains."""
    )
    rows: list[list[object]] = []
    for n in ALL_COUNTED:
        formed, both = formation_cost(n), formation_and_factors_cost(n)
        rows.append([n, total(CRBA, n), formed, total(CHOLESKY, n), both - formed])
    report.table(["n", "formation, the paper", "ours", "factorization, the paper", "ours"], rows)


def _figure1(report: Report) -> None:
    report.heading("Figure 1: multiplications against n")
    with report.picture("drumwright2012_figure1", "Multiplications for the inverse inertia matrix", (6.4, 4.0)) as ax:
        draw_figure1(ax)
    crossing = next(n for n in range(2, 1000) if total(TABLE1, n).m < total(TABLE2, n).m)
    ours = next(n for n in range(10, 1000) if quadratics()[0](n) < total(TABLE2, n).m)
    report.text(
        f"""The Θ(n²) inverse needs fewer multiplications than forming and factorizing the matrix from n = {crossing} on by the
        paper's formulae, from n = {ours} on by our counts."""
    )


def draw_figure1(ax: Axes) -> None:
    n = range(10, 1001, 10)
    lines = (
        ("formation and Cholesky, the paper", TABLE2, INK, "--"),
        ("Cholesky only, the paper", CHOLESKY, FAINT, "-"),
        ("Θ(n²) inverse, the paper", TABLE1, RED, "-."),
        ("n processors, each, the paper", TABLE3, GREEN, ":"),
    )
    for label, table, color, line in lines:
        ax.plot(n, [total(table, k).m for k in n], line, color=color, linewidth=1.4, label=label)
    ax.plot(n, [quadratics()[0](k) for k in n], color=BLUE, linewidth=1.4)
    ax.plot(COUNTED, [inverse_cost(k, "global").m for k in COUNTED], "o-", color=BLUE, markersize=4.0, label="global, ours")
    for algorithm, color, marker in (("local", ORANGE, "s"), ("crba-ltdl", INK, "^")):
        dots = [inverse_cost(k, algorithm).m for k in ALL_COUNTED]
        ax.plot(ALL_COUNTED, dots, marker, color=color, markersize=4.0, label=f"{algorithm}, ours")
    shares = {k: column_costs(k) for k in PROCESSORS}
    means = [sum(c.m for c in columns) / k for k, columns in shares.items()]
    ax.plot(PROCESSORS, means, "D", color=GREEN, markersize=4.0, label="n processors, each, ours (mean)")
    ax.set(xscale="log", yscale="log", xlabel="n", xlim=(9, 1100))
    ax.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])
    ax.minorticks_off()
    ax.grid()
    ax.set_title("Multiplications: lines by formulae, dots as counted")
    ax.legend(fontsize=8.0, handlelength=2.4)


if __name__ == "__main__":
    run(sections, __doc__)
