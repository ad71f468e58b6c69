"""Sathya, Decré and Swevers (2023), "PV-OSIMr: A Lowest Order Complexity Algorithm for Computing the Delassus Matrix":
operations of the Delassus matrix.

    PYTHONPATH=benchmarks/peers python benchmarks/papers/sathya2023.py [--output output/papers] [--no-times] [--robots FOLDER]

Figures 3 and 4 are here, table I is in sathya2023_complexity.py, and figures 5 and 6 (robots) are in sathya2023_robots.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

import sathya2023_complexity
import sathya2023_robots
from matplotlib.axes import Axes
from report import Report, run
from sathya2023_counts import (
    BRANCH,
    LABELS,
    Mechanism,
    Polynomial,
    chain_of_squares,
    constrained_chain,
    count,
    polynomial,
    stem_with_branches,
)

from featherweight.viewer.chart_style import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RED

ALGORITHMS = ("pv-osimr", "pv-osim", "efpa")
COLORS = {"pv-osimr": BLUE, "pv-osim": ORANGE, "efpa": GREEN, "ltl": FAINT}
MORE_COLORS = COLORS | {"kjr": PURPLE}
BRANCHES = (1, 2, 4, 7, 10)  # on either side
LABELLED = {1: 100_000, 2: 150_000, 4: 300_000, 7: 500_000, 10: 800_000}  # the last label of the paper's axis of operations
STEMS = (4, 6, 8, 10, 12, 25)  # counted; counts of one and two links are not on the lines of the others
SHORT_STEMS = (1, 2)
LONGEST = 100
SQUARES = (3, 4, 5, 6, 7, 8, 9)  # k of figure 4a, counted
CHAINS = (4, 5, 6, 7, 8, 10, 20)  # n of figure 4b, counted
PAPER_SLOPES: dict[str, int | None] = {"pv-osimr": 2, "efpa": 3, "pv-osim": 4, "kjr": None}
PAPER_CHAIN_SLOPES: dict[str, int | None] = {"pv-osimr": 2, "efpa": 2, "pv-osim": 3, "kjr": None, "ltl": None}
GUIDE = 400  # k², the line in figure 4a


@cache
def stem_mechanism(branches: int) -> Callable[[int], Mechanism]:
    return partial(_stem_with, branches)


def _stem_with(branches: int, stem: int) -> Mechanism:
    return stem_with_branches(stem, branches)


def stem_counts(branches: int, algorithm: str) -> Polynomial:
    """Return the polynomial of counts in the length of the stem."""
    return polynomial(stem_mechanism(branches), algorithm, STEMS)


def slope(counts: Callable[[int], int], first: int, last: int) -> float:
    """Return the slope of log counts against log sizes."""
    return math.log(counts(last) / counts(first)) / math.log(last / first)


def sections(report: Report) -> None:
    report.heading("Sathya, Decré and Swevers (2023): the Delassus matrix by PV-OSIMr", 2)
    report.text(
        """Our function is `Robot.delassus(contacts, algorithm)`. All operations are counted: multiplications, additions,
        divisions, sines and cosines. The paper's counts are curves and bars without numbers, so the tables compare with the
        ratios in its text and the last label of each axis."""
    )
    _figure3(report)
    _figure4a(report)
    _figure4b(report)
    sathya2023_robots.sections(report)
    sathya2023_complexity.sections(report)


def _figure3(report: Report) -> None:
    report.heading("Figure 3: a stem with branches at both ends")
    report.text(
        f"""Branches of {BRANCH} links with a 6-D constraint at each tip are attached to both ends of a stem, whose first
        link is the floating base. Geometry is general, and equal for all links that are the b-th child of their parents. The
        counts for stems of {_listed(STEMS)} links agree exactly with polynomials of the length, linear for all algorithms
        but LTL. Lines and the operations for {LONGEST} links are values of these polynomials; dots are counts."""
    )
    with report.panels(
        "sathya2023_figure3", "Operations of the Delassus matrix against the stem's length", (2, 3), (8.6, 5.4)
    ) as ax:
        draw_figure3(ax)
    report.text(f"Operations for stems of {STEMS[-1]} and {LONGEST} links:")
    rows: list[list[object]] = []
    for b in BRANCHES:
        found = [stem_counts(b, algorithm) for algorithm in (*ALGORITHMS, "ltl")]
        rows.append([b, *(f"{counts(STEMS[-1]):,}; {counts(LONGEST):,}" for counts in found), LABELLED[b]])
    report.table(["branches", *(LABELS[x] for x in (*ALGORITHMS, "ltl")), "the paper's axis ends near"], rows)
    one = [stem_counts(1, x)(LONGEST) for x in ("pv-osimr", "pv-osim")]
    report.text(
        f"""With one branch, the paper finds no difference between PV-OSIMr and PV-OSIM; ours need {one[0]:,} and {one[1]:,}
        operations for {LONGEST} links. The paper's algorithm 3 forms an inverse inertia for the floating base. Our base is six
        rows with one motion axis each and needs no such matrix."""
    )
    report.text(_crossings())


def _crossings() -> str:
    """Return the stem lengths from which EFPA needs fewer operations than PV-OSIM, in words."""
    found = []
    for b in BRANCHES:
        efpa, straight = stem_counts(b, "efpa"), stem_counts(b, "pv-osim")
        begin = next((s for s in range(STEMS[0], 10 * LONGEST) if efpa(s) < straight(s)), None)
        found.append(f"{b}: {f'from {begin} links on' if begin else 'never'}")
    return f"""In the paper, EFPA needs fewer operations than PV-OSIM only in long stems with ten branches (figure 3f). Our EFPA
        needs fewer, by the number of branches, {", ".join(found)}."""


def _figure4a(report: Report) -> None:
    report.heading("Figure 4a: a chain of k² links, every k-th constrained")
    report.text(
        f"""A chain of equal links with general geometry on a fixed base, with 6-D constraints. The counts for k =
        {_listed(SQUARES)} agree exactly with the polynomials below, which yield the other values. The paper's line {GUIDE} k²
        only shows a slope."""
    )
    with report.picture("sathya2023_figure4a", "Operations against k for a chain of k² links") as ax:
        draw_chains(ax, chain_of_squares, SQUARES, 32, "k", "A chain of k² links, every k-th constrained")
        k = [SQUARES[0], 32]
        ax.plot(k, [GUIDE * x**2 for x in k], ":", color=INK, linewidth=1.2, label=f"{GUIDE} k²")
        ax.legend(fontsize=8.0, handlelength=2.4)
    _slopes(report, chain_of_squares, SQUARES, PAPER_SLOPES, "k", (8, 32, 100, 1000))


def _figure4b(report: Report) -> None:
    report.heading("Figure 4b: a chain with every link constrained")
    report.text(
        f"""The same chain with a 6-D constraint on each of n links, counted for n = {_listed(CHAINS)}; polynomials yield the
        other values. In the paper, PV-OSIMr and EFPA have the same slope and PV-OSIMr is significantly cheaper. The paper's
        figure 4 does not have KJR and LTL."""
    )
    with report.picture("sathya2023_figure4b", "Operations against n for a chain with every link constrained") as ax:
        draw_chains(ax, constrained_chain, CHAINS, 100, "n", "A chain of n links, all constrained")
        ax.legend(fontsize=8.0, handlelength=2.4)
    _slopes(report, constrained_chain, CHAINS, PAPER_CHAIN_SLOPES, "n", (10, 30, 100, 1000))


def _slopes(
    report: Report,
    mechanism: Callable[[int], Mechanism],
    counted: tuple[int, ...],
    paper: Mapping[str, int | None],
    x: str,
    at: tuple[int, int, int, int],
) -> None:
    first, last, far, farther = at
    header = ["algorithm", f"operations for {x}", f"{x} = {first}", f"{x} = {last}", f"{x} = {far}"]
    header += ["slope, the paper", f"slope from {first} to {last}", f"from {far} to {farther:,}"]
    rows: list[list[object]] = []
    for algorithm, power in paper.items():
        p = polynomial(mechanism, algorithm, counted)
        slopes = [f"{slope(p, a, b):.2f}" for a, b in ((first, last), (far, farther))]
        rows.append([LABELS[algorithm], p.text(x), p(first), p(last), p(far), power or "—", *slopes])
    report.table(header, rows)


def draw_figure3(axes: Sequence[Axes]) -> None:
    draw_mechanism(axes[0])
    for ax, b in zip(axes[1:], BRANCHES, strict=False):
        draw_stems(ax, b)
    for ax in axes[1 + len(BRANCHES) :]:
        ax.set_axis_off()
    lines, labels = axes[1].get_legend_handles_labels()
    axes[0].legend(lines, labels, loc="lower center", ncols=2, fontsize=8.0, handlelength=1.8)


def draw_stems(ax: Axes, branches: int) -> None:
    for algorithm, color in COLORS.items():
        counts = stem_counts(branches, algorithm)
        stems = range(STEMS[0], LONGEST + 1)
        ax.plot(stems, [counts(s) for s in stems], color=color, linewidth=1.4, label=LABELS[algorithm])
        counted = (*SHORT_STEMS, *STEMS)
        dots = [count(stem_mechanism(branches), s, algorithm=algorithm) for s in counted]
        ax.plot(counted, dots, "o", color=color, markersize=2.2)
    highest = max(stem_counts(branches, algorithm)(LONGEST) for algorithm in ALGORITHMS)
    ax.set(xlim=(0, LONGEST + 2), ylim=(0, 1.1 * highest), xlabel="links of the stem")
    ax.set_xticks([0, 25, 50, 75, 100])
    ax.yaxis.set_major_formatter(lambda y, position: f"{y / 1000:,.0f}k" if y else "0")
    ax.grid()
    ax.set_title(f"{branches} {'branch' if branches == 1 else 'branches'} on either side", fontsize=9.0)


def draw_mechanism(ax: Axes) -> None:
    """Draw a stem with two branches on either side."""
    stem, rise = 6, 0.55
    ax.plot(range(stem), [0.0] * stem, "o-", color=INK, markersize=4.0, linewidth=1.4)
    for end, way in ((0, -1), (stem - 1, 1)):
        for side in (-1, 1):
            x = [end + way * 0.62 * k for k in range(BRANCH + 1)]
            y = [side * rise * min(k, 2) for k in range(BRANCH + 1)]
            ax.plot(x, y, "o-", color=FAINT, markersize=2.6, linewidth=1.0, zorder=0)
            ax.plot(x[-1:], y[-1:], "s", color=RED, markersize=5.0)
    ax.text((stem - 1) / 2, 0.25, "stem", ha="center", fontsize=8.0, color=FAINT)
    ax.text(-3.4, 1.4, f"branches of {BRANCH} links", ha="center", fontsize=8.0, color=FAINT)
    ax.text(stem + 2.4, 1.4, "6-D constraint", ha="center", fontsize=8.0, color=RED)
    ax.set(xlim=(-6.2, stem + 5.2), ylim=(-4.4, 2.2))
    ax.set_axis_off()
    ax.set_title("Operations", fontsize=9.0)


def draw_chains(
    ax: Axes, mechanism: Callable[[int], Mechanism], counted: tuple[int, ...], last: int, x: str, title: str
) -> None:
    for algorithm in ("pv-osim", "efpa", "kjr", "pv-osimr"):
        p = polynomial(mechanism, algorithm, counted)
        sizes = range(counted[0], last + 1)
        ax.plot(sizes, [p(s) for s in sizes], color=MORE_COLORS[algorithm], linewidth=1.4, label=LABELS[algorithm])
        ax.plot(counted, [p(s) for s in counted], "o", color=MORE_COLORS[algorithm], markersize=3.6)
    ax.set(xscale="log", yscale="log", xlabel=x, ylabel="operations")
    ticks = [s for s in (3, 4, 5, 10, 20, 30, 50, 100) if counted[0] <= s <= last]
    ax.set_xticks(ticks, [str(s) for s in ticks])
    ax.minorticks_off()
    ax.grid()
    ax.set_title(title)


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes[:-1])) + f" and {sizes[-1]}"


if __name__ == "__main__":
    run(sections, __doc__)
