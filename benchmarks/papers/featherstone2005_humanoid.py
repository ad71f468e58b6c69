"""Featherstone (2005), sections 5 and 6: costs of the composite-rigid-body algorithm and of forward dynamics for a humanoid
and for a chain, both with 25 bodies and 30 degrees of freedom."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from costs import Cost, cost, dynamics, factorization_operations, product_operations, rotation_cost, turn_cost
from matplotlib.axes import Axes
from mechanisms import CHAIN, HUMANOID, floating
from report import Report, percentage

from featherweight import Robot, build
from featherweight.algorithms import ltdl as kernels
from featherweight.engine.function import CompiledFunction
from featherweight.model.topology import Topology
from featherweight.viewer.chart_style import BLUE, FAINT, PALE

MECHANISMS = {"humanoid": HUMANOID, "chain": CHAIN}
GREY, DARK = "#b9c0c8", "#7c8794"

# The paper's costs of one operation (section 5): rigid-body add; rigid-body and vector transforms at nodes with
# Denavit-Hartenberg parameters and at others; and the savings of both at a floating parent.
RA = Cost(0, 10)
RX_A, RX_B, RX_C = Cost(32, 33), Cost(47, 48), Cost(18, 21)
VX_A, VX_B, VX_C = Cost(20, 12), Cost(24, 18), Cost(12, 8)

# Section 6, as printed: (humanoid, chain).
D_QUANTITIES = {
    "D0a": (21, 24),
    "D1a": (66, 300),
    "D0b": (3, 0),
    "D1b": (18, 0),
    "D0c": (1, 1),
    "D1c": (6, 24),
}
PAPER = {
    "factorize": (Cost(1258, 1039), Cost(4930, 4495)),
    "back-substitute": (Cost(468, 438), Cost(900, 870)),
    "CRBA": (Cost(2475, 2124), Cost(6462, 4419)),
    "RNEA": (Cost(2275, 1996), Cost(2263, 1972)),
    "ABA": (Cost(5544, 5054), Cost(5346, 4883)),
    "by CRBA": (Cost(6476, 5597), Cost(14555, 11756)),
}
EXPANDED = {"D1": 219, "D2": 1039, "zeros": 48.0}  # of the humanoid's expanded tree; zeros in per cent


def crba_quantities(parent: Sequence[int]) -> dict[str, int]:
    """Return D0a to D1c, equation (19). The child of a body with the most descendants is the DH node.

    Body 0 is a floating base.
    """
    tree = Topology(parent)
    size = [len(tree.subtree(i)) for i in range(len(tree))]
    with_dh = [max(children, key=size.__getitem__) for children in tree.children if children]
    without = [i for i, p in enumerate(parent) if p >= 0 and i not in with_dh]
    on_base = [i for i in with_dh if parent[i] == 0]
    sets = {"a": with_dh, "b": without, "c": on_base}
    return {f"D{k}{x}": sum(size[i] if k else 1 for i in nodes) for x, nodes in sets.items() for k in (0, 1)}


def crba_formula(D: dict[str, int]) -> Cost:
    """Return the cost by equation (21)."""
    at_dh = D["D0a"] * (RA + RX_A) + D["D1a"] * VX_A
    at_others = D["D0b"] * (RA + RX_B) + D["D1b"] * VX_B
    return at_dh + at_others - D["D0c"] * RX_C - D["D1c"] * VX_C


def formulae(parent: Sequence[int]) -> dict[str, Cost]:
    """Return the costs of section 6 by the formulas that it names, to check the printed numbers."""
    D = crba_quantities(parent)
    bodies, branches = len(parent), D["D0b"]
    depth = [d + 5 for d in Topology(parent).depth]  # in the expanded tree, where the base is six rows
    D1 = sum(d - 1 for d in [1, 2, 3, 4, 5, *depth])
    D2 = sum(d * (d - 1) // 2 for d in [1, 2, 3, 4, 5, *depth])
    n = len(depth) + 5
    found = {
        "factorize": Cost(D1 + D2, D2),
        "back-substitute": Cost(n + 2 * D1, 2 * D1),
        "CRBA": crba_formula(D),
        "RNEA": Cost(93 * bodies - 69 + 7, 81 * bodies - 66 + 13) + branches * Cost(4, 8),
        "ABA": Cost(224 * (bodies - 1) - 30, 205 * (bodies - 1) - 37) + branches * Cost(66, 57),
    }
    parts = ("CRBA", "RNEA", "factorize", "back-substitute")
    return found | {"by CRBA": sum((found[p] for p in parts), Cost(0, 0))}


@cache
def robot(name: str) -> Robot:
    return build(floating(MECHANISMS[name]))


@cache
def ours(name: str) -> dict[str, Cost]:
    """Return counts of our functions, without the base's rotation matrix, and sines and cosines of sums of angles."""
    tree = tuple(robot(name).model.tree.parent)
    found = {
        "factorize": cost(factorization_operations(tree, True)),
        "back-substitute": cost(product_operations(kernels.solve, tree, True)),
    }
    for algorithm, function in dynamics(robot(name)).items():
        found[algorithm] = cost(function.operations) - given_cost(name, function)
    return found


def given_cost(name: str, function: CompiledFunction[Any]) -> Cost:
    """Return the cost of what the paper assumes to be given."""
    return rotation_cost(function) + turn_cost(function, robot(name).model.tree)


def zeros(name: str) -> tuple[float, float]:
    """Return the zeros of the inertia matrix at a random configuration in per cent: those due to branches, and all."""
    M = robot(name).mass_matrix(robot(name).random_configuration(rng=0))
    tree = Topology(robot(name).model.tree.parent)
    apart = np.ones(M.shape, dtype=bool)
    for i in range(len(tree)):
        path = list(tree.support(i))
        apart[i, path] = apart[path, i] = False
    assert not M[apart].any()
    return float(100 * apart.mean()), float(100 * np.mean(M == 0.0))


def sections(report: Report) -> None:
    _section6(report)
    report.heading("Figure 7: forward dynamics by both algorithms")
    with report.picture("featherstone2005_figure7", "Operations of forward dynamics, the paper's and ours", (6.4, 3.4)) as ax:
        draw_figure7(ax)


def _section6(report: Report) -> None:
    report.heading("Section 6: a humanoid and a chain of 30 degrees of freedom")
    tree = Topology(robot("humanoid").model.tree.parent)
    D1, D2 = sum(d - 1 for d in tree.depth), sum(d * (d - 1) // 2 for d in tree.depth)
    branching, every = zeros("humanoid")
    report.text(
        f"""The humanoid's expanded tree has D1 = {D1} (the paper: {EXPANDED["D1"]}) and D2 = {D2:,} ({EXPANDED["D2"]:,}).
        Branching makes {branching:.0f} % of its inertia matrix zero ({EXPANDED["zeros"]:.0f} %). With the zeros inside the
        block of the base, {every:.0f} % are zero. The matrix of the chain is dense."""
    )
    report.text(
        """A division counts as a multiplication, although it takes as long as about eight. The paper assumes that sines,
        cosines and the rotation matrix of the base are given; the table omits what our functions spend on them. `ltdl` adds one
        reciprocal for each row except the first."""
    )
    rows: list[list[object]] = []
    for k, name in enumerate(MECHANISMS):
        for what, printed in PAPER.items():
            paper, us = printed[k], ours(name)[what]
            columns = (paper.m, us.m, percentage(us.m, paper.m), paper.a, us.a, percentage(us.a, paper.a))
            rows.append([f"{name}: {what}", *columns])
    report.table(["", "m, the paper", "m, ours", "%", "a, the paper", "a, ours", "%"], rows)


def draw_figure7(ax: Axes) -> None:
    """Draw a pair of bars for each mechanism and algorithm."""
    bars = [(name, what) for name in MECHANISMS for what in ("by CRBA", "ABA")]
    labels = []
    for row, (name, what) in enumerate(bars):
        k = list(MECHANISMS).index(name)
        for shift, c, colors in ((-0.2, PAPER[what][k], (DARK, GREY)), (0.2, ours(name)[what], (BLUE, PALE))):
            ax.barh(row + shift, c.m, height=0.36, color=colors[0])
            ax.barh(row + shift, c.a, left=c.m, height=0.36, color=colors[1])
            ax.text(c.m + c.a + 250, row + shift, f"{c.m + c.a:,}", va="center", fontsize=8.0, color=FAINT)
        labels.append(f"{name}, {what}")
    ax.set_yticks(range(len(bars)), labels)
    ax.invert_yaxis()
    ax.set_xlim(0, 30000)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid(axis="x")
    handles = [ax.barh(0, 0, color=color) for color in (DARK, GREY, BLUE, PALE)]
    names = ["the paper, multiplications", "additions", "ours, multiplications", "additions"]
    ax.legend(handles, names, loc="lower right", fontsize=8.0)
    ax.set_title("Operations of forward dynamics")
