"""Chignoli, Adrian, Kim and Wensing (2023), "Recursive Rigid-Body Dynamics Algorithms for Systems with Kinematic Loops":
inverse and forward dynamics and inverse operational-space inertia of robots with gears, belts and differentials.

    PYTHONPATH=benchmarks/peers python benchmarks/papers/chignoli2023.py [--output output/papers] [--no-times]

The robots are in chignoli2023_robots.py, growing chains in chignoli2023_chains.py, torques of a leg in chignoli2023_leg.py, and
times in chignoli2023_times.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import chignoli2023_chains
import chignoli2023_leg
import chignoli2023_times
from chignoli2023_robots import (
    CLUSTER,
    FORWARD,
    GENERAL,
    INVERSE,
    OSIM,
    PAPER,
    ROBOTS,
    SHORT,
    TABLES,
    costs,
    costs_with_divisions,
    percent,
)
from chignoli2023_times import NATIVE
from matplotlib.axes import Axes
from report import MINUS, Report, run

from featherweight.viewer.chart_style import BLUE, FAINT, GREEN, PALE

LABELS = {
    "approximate": "approximate",
    "projected RNEA": "projected RNEA",
    "projection": "projection",
    "multipliers": "multipliers",
    "sparse factors": "sparse factors (paper: projected EFPA)",
    "crba-ltdl": "C-CRBA and sparse factors",
    "PV-OSIM": "PV-OSIM on clusters",
    "PV-OSIMr": "PV-OSIMr on clusters",
}
BARS = {"the paper, times": PALE, "ours, counts": BLUE, "ours, counts, general geometry": GREEN}


def signed(x: float) -> str:
    return f"{x:+.1f}".replace("-", MINUS)


def sections(report: Report) -> None:
    report.heading("Chignoli, Adrian, Kim and Wensing (2023): robots with loops", 2)
    report.text(
        """The paper's C-RNEA is our `inverse_dynamics` of a robot with loops or couplings, its C-ABA our `forward_dynamics` by
        "aba", its C-EFPA our `delassus` by "efpa". The paper gives times on an M1 Pro. Here operations are counted; a division
        or a root counts as eight. Chains have general geometry (random, one seed), as in the timing tables of the paper's
        repository. "Approximate" is the independent tree with the reflected inertia of the rotors;
        for Tello's differentials it has none."""
    )
    report.text(
        """Our tracer omits operations on the zeros of a robot's geometry and inertias. Each table therefore has a second count
        for the same joints without zeros ("general geometry")."""
    )
    for what, text in TEXTS.items():
        report.heading(f"Table {TABLES[what]}: {what}")
        report.text(text)
        _table(report, what)
    _sparse_factors(report)
    _picture(report)
    chignoli2023_times.sections(report)
    chignoli2023_chains.sections(report)
    chignoli2023_leg.sections(report)


TEXTS = {
    INVERSE: """Differences from C-RNEA in per cent. Our C-RNEA is the recursion on the spanning tree and the product of each
        cluster's block of Gᵀ with its joint forces, without the zeros of G. The paper calls this algorithm projected RNEA,
        which is counted here with all entries of G, the worst case in the paper.""",
    FORWARD: """Differences from C-ABA in per cent. Projection is (Gᵀ H G)⁻¹ Gᵀ (τ − c − H g) with a dense
        factorization, without operations on entries that are always zero in H and G. Multipliers use the sparse factors of H.
        C-CRBA with sparse factors is ours and not in the paper.""",
    OSIM: """Differences from C-EFPA in per cent, for six rows on the end-effector that the paper's repository
        marks: the tip of a chain, or one foot. "Approximate" is EFPA on the tree. Sparse factors are those of the inertia
        matrix by C-CRBA; the paper's projected EFPA computes this matrix from that of the spanning tree. PV-OSIM and PV-OSIMr
        on clusters are ours and not in the paper; for one end-effector they are the same.""",
}
SAME = {OSIM: "PV-OSIMr"}  # the same as PV-OSIM for one end-effector


def _table(report: Report, what: str) -> None:
    cluster = CLUSTER[what]
    found = {name: costs(what, name) for name in ROBOTS}
    rest = {name: costs(what, name + GENERAL) for name in ROBOTS}
    rows: list[list[object]] = [[f"**{cluster}**, operations", "counted", *(found[name][cluster] for name in ROBOTS)]]
    rows.append(["", "general geometry", *(rest[name][cluster] for name in ROBOTS)])
    for key in found[ROBOTS[0]]:
        if key in (cluster, SAME.get(what)):
            continue
        paper = PAPER[what].get(key)
        counted = [percent(found[name][key], found[name][cluster]) for name in ROBOTS]
        general = [percent(rest[name][key], rest[name][cluster]) for name in ROBOTS]
        lines: dict[str, list[float]] = {"the paper": list(paper)} if paper else {}
        lines["counted"] = counted
        lines["general geometry"] = general
        for k, (line, values) in enumerate(lines.items()):
            rows.append([LABELS[key] if k == 0 else "", line, *map(signed, values)])
    report.table(["", "%", *(SHORT[name] for name in ROBOTS)], rows)
    report.text(_signs(what, found, rest))


def _signs(what: str, found: dict[str, dict[str, int]], rest: dict[str, dict[str, int]]) -> str:
    """Return for which robots our counts have another sign than the paper's percentages, in words."""
    others = []
    for key, paper in PAPER[what].items():
        for counted, suffix in ((found, ""), (rest, " in general geometry")):
            names = [
                SHORT[name]
                for name, x in zip(ROBOTS, paper, strict=True)
                if (percent(counted[name][key], counted[name][CLUSTER[what]]) > 0) != (x > 0)
            ]
            others += [f"{key}{suffix} on {_list(names)}"] if names else []
    if not others:
        return "All counts of the six robots have the sign of the paper's percentage."
    return f"Counts with another sign than the paper's percentage: {'; '.join(others)}."


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names) or "none"


def _sparse_factors(report: Report) -> None:
    """Say why C-EFPA is not always cheaper than sparse factors, as the paper finds."""
    key, cluster = "sparse factors", CLUSTER[OSIM]
    ours, divided = ({name: f(OSIM, name) for name in ROBOTS} for f in (costs, costs_with_divisions))
    ahead, before = ([name for name in ROBOTS if c[name][cluster] < c[name][key]] for c in (ours, divided))
    changed = [name for name in before if name not in ahead]
    native = [name for name, x, y in zip(ROBOTS, NATIVE[OSIM][key], NATIVE[OSIM][cluster], strict=True) if x < y]
    percents = ", ".join(signed(percent(divided[name][key], divided[name][cluster])) for name in changed)
    report.text(
        f"""In the paper, C-EFPA takes less time than projected EFPA on all six robots. By our counts it needs fewer operations
        than sparse factors on {_list([SHORT[name] for name in ahead])} only, for two reasons. Our factors need one reciprocal a
        row: with a division for each entry, sparse factors would be at {percents} % on
        {_list([SHORT[name] for name in changed])}. C-CRBA computes the matrix of the independent coordinates from cluster to
        cluster, without H and Gᵀ H G. The C++ library itself is faster by projected EFPA than by C-EFPA on {len(native)} of the
        six robots. In long chains C-EFPA is cheaper (figure 13), because sparse factors grow with the third power."""
    )


def _picture(report: Report) -> None:
    caption = "Tables II to IV: operations relative to the cluster algorithm, counted and in the paper timed"
    with report.panels("chignoli2023_tables", caption, (3, 1), (9.4, 8.6)) as axes:
        for ax, what in zip(axes, TEXTS, strict=True):
            draw(ax, what)


def draw(ax: Axes, what: str) -> None:
    """Draw bars of the paper's percentages beside bars of our counts."""
    algorithms = PAPER[what]
    width = 0.84 / (3 * len(algorithms))
    found = [{name: costs(what, name + more) for name in ROBOTS} for more in ("", GENERAL)]
    for k, (key, paper) in enumerate(algorithms.items()):
        counted = ([percent(c[name][key], c[name][CLUSTER[what]]) for name in ROBOTS] for c in found)
        for j, (values, (label, color)) in enumerate(zip((paper, *counted), BARS.items(), strict=True)):
            x = [i - 0.42 + (3 * k + j + 0.5) * width for i in range(len(ROBOTS))]
            ax.bar(x, values, width=0.9 * width, color=color, label=label if k == 0 else None)
            for a, y in zip(x, values, strict=True):
                place, va = (y, "bottom") if y >= 0 else (y, "top")
                text = f"{y:+.0f}".replace("-", MINUS)
                ax.annotate(text, (a, place), (0, 1.5 if y >= 0 else -1.5), textcoords="offset points", ha="center", va=va,
                            fontsize=4.8, color=FAINT)  # fmt: skip
    ax.axhline(0, color=FAINT, linewidth=0.8)
    ax.set_xticks(range(len(ROBOTS)), [SHORT[name] for name in ROBOTS], fontsize=8.0)
    ax.margins(y=0.1)
    ax.grid(axis="y")
    ax.set_ylabel("%")
    ax.set_title(f"Table {TABLES[what]}: {', '.join(algorithms)}, compared with {CLUSTER[what]}", fontsize=9.5)
    ax.legend(fontsize=8.0, loc="upper left")


if __name__ == "__main__":
    run(sections, __doc__)
