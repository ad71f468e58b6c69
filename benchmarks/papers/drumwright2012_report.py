"""Drumwright (2012), figures 2 to 4: times of the inverse inertia matrix and of simulations with it, beside LAPACK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scipy
from drumwright2012_times import THREADS
from matplotlib.axes import Axes
from report import Report, rounded

from featherweight.cli.tables import format_duration
from featherweight.engine.threads import processors
from featherweight.viewer.chart_style import BLUE, GREEN, INK, ORANGE, PALE, RED

GAINS = {2: 34, 4: 117}  # the paper: gain of threads over one thread in per cent
EXPONENT_GOAL, RATIO_GOAL = 2.15, 3.0  # ours
FIGURE3_FROM = 128
TABLED = (8, 16, 32, 64, 128, 256, 512, 1000, 1448)  # sizes of the table; the picture has all
WALK_GOALS, WALK_RANGE = (10.0, 2.1), (50, 250)  # ours for figure 4: ratio and exponent; first segments for the exponent

Series = dict[int, float]


def measure(script: str, threads: int) -> Any:
    """Return the JSON output of a script of this folder.

    Variables that select kernels of OpenBLAS are removed, so that it selects those of this processor.
    """
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads))
    environment.pop("OPENBLAS_CORETYPE", None)
    path = Path(__file__).with_name(script)
    done = subprocess.run([sys.executable, str(path)], env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def inverse_times(threads: int) -> dict[str, Any]:
    """Return the output of drumwright2012_times.py, with sizes as numbers."""
    found = measure("drumwright2012_times.py", threads)
    return {name: {int(n): x for n, x in rows.items()} for name, rows in found.items()}


def series(rows: dict[int, dict[str, float]], name: str) -> Series:
    return {n: row[name] for n, row in rows.items() if name in row}


def sections(report: Report) -> None:
    one = inverse_times(1)
    shared = {threads: inverse_times(threads)["lapack"] for threads in THREADS}
    chain = one["chain"]
    ours, lapack, form = (series(chain, name) for name in ("ours", "lapack", "form"))
    given = {n: lapack[n] - form[n] for n in lapack}
    library = scipy.show_config(mode="dicts")["Build Dependencies"]["lapack"]
    report.heading("Figure 2: time of the inverse on one thread")
    report.text(
        f"""LAPACK is `dpotrf` and `dpotri` ({library["name"]} {library["version"]}), in place, after our composite-rigid-body
        algorithm. Because that is not the cheapest formation for long chains (table 2), the table also has times without it.
        LAPACK computes one triangle of the inverse, our inverse both. Our functions keep their loops (`execution="rolled"`), as
        for robots with more than about a hundred joints. The sparse factors are `algorithm="crba-ltdl"`, the branched tree that
        of the paper. Times are in microseconds; the picture has more sizes."""
    )
    with report.picture("drumwright2012_figure2", "Time of the inverse inertia matrix against n", (6.4, 4.2)) as ax:
        draw_figure2(ax, one)
    _times(report, one, given)
    figure3(report, {1: ours} | {n: series(chain, f"{n} threads") for n in THREADS}, {1: lapack} | shared)


def microseconds(seconds: float) -> str:
    return rounded(1e6 * seconds)


def _times(report: Report, one: dict[str, Any], given: Series) -> None:
    rows: list[list[object]] = []
    for n in TABLED:
        t, s = one["chain"][n], one["sparse"][n]
        serial = microseconds(s["serial"]) if "serial" in s else "—"
        all_times = (t["lapack"], given[n], t["factor"], t["ours"])
        ratio = f"{t['lapack'] / t['ours']:.2f}"
        branched = (microseconds(s[k]) for k in ("branched", "ours branched"))
        rows.append([n, *map(microseconds, all_times), ratio, serial, *branched])
    header = ["n", "LAPACK", "less formation", "formation and Cholesky only", "ours", "LAPACK to ours"]
    report.table([*header, "sparse, chain", "sparse, branched", "ours, branched"], rows)


def draw_figure2(ax: Axes, one: dict[str, Any]) -> None:
    lines = (
        ("sparse factors, chain", one["sparse"], "serial", GREEN, "--"),
        ("sparse factors, branched tree", one["sparse"], "branched", INK, "D"),
        ("formation and LAPACK", one["chain"], "lapack", BLUE, "o-"),
        ("formation and Cholesky only", one["chain"], "factor", PALE, "o-"),
        ("Θ(n²), ours, chain", one["chain"], "ours", RED, "o-."),
        ("Θ(n²), ours, branched tree", one["sparse"], "ours branched", ORANGE, "D"),
    )
    for label, rows, name, color, mark in lines:
        _line(ax, series(rows, name), mark, color, label)
    _axes(ax)
    ax.set_title("Time of the inverse inertia matrix, one thread")


def draw_figure3(ax: Axes, lines: Sequence[tuple[str, Series, str, str]]) -> None:
    for label, times, color, mark in lines:
        _line(ax, {n: t for n, t in times.items() if n >= FIGURE3_FROM}, mark, color, label)
    _axes(ax)
    ax.set_title("Time of the inverse inertia matrix, one thread and more")


def _line(ax: Axes, times: Series, mark: str, color: str, label: str) -> None:
    shown = {n: t for n, t in times.items() if n != 1000}  # 1024 is near
    ax.plot(list(shown), list(shown.values()), mark, color=color, markersize=3.5, linewidth=1.3, label=label)


def _axes(ax: Axes) -> None:
    ax.set(xscale="log", yscale="log", xlabel="n")
    low, high = ax.get_xlim()
    ticks = [n for n in (8, 16, 32, 64, 128, 256, 512, 1024) if low <= n <= high]
    ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
    ax.yaxis.set_major_formatter(lambda y, position: format_duration(y).replace(".00", "").replace(".0", ""))
    ax.minorticks_off()
    ax.grid()
    ax.legend(fontsize=8.0, handlelength=2.4)


def figure3(report: Report, ours: dict[int, Series], lapack: dict[int, Series]) -> None:
    """Report times by the number of threads."""
    report.heading("Figure 3: one thread and more")
    missing = [n for n in GAINS if n not in ours]
    without = f" This machine has {processors()} processors: lines with {missing[0]} threads are left out." if missing else ""
    report.text(
        f"""The threads share the columns of the inverse. In the paper, two threads gain {GAINS[2]} % and four gain
        {GAINS[4]} %, on two cores with two threads each.{without} The formation of the matrix for LAPACK runs on one thread.
        Times are in microseconds."""
    )
    lines = [
        (f"{label}, {n} {'thread' if n == 1 else 'threads'}", times, color, mark)
        for label, found, color in (("formation and LAPACK", lapack, BLUE), ("ours", ours, RED))
        for (n, times), mark in zip(found.items(), ("o-", "o:", "D--"), strict=False)
    ]
    with report.picture("drumwright2012_figure3", "Time of the inverse inertia matrix with one thread and more") as ax:
        draw_figure3(ax, lines)
    rows: list[list[object]] = []
    for n in (n for n in lapack[THREADS[0]] if n >= 512) if THREADS else ():
        cells: list[object] = []
        for found in (ours, lapack):
            cells.append(microseconds(found[1][n]))
            for times in (found[k] for k in THREADS):
                cells += [microseconds(times[n]), f"{100 * (found[1][n] / times[n] - 1):.0f}"]
        rows.append([n, *cells])
    several = [x for k in THREADS for x in (f"{k} threads", "gain, %")]
    report.table(["n", "ours, one", *several, "LAPACK, one", *several], rows)


Walks = dict[int, dict[str, dict[str, Any]]]  # results of drumwright2012_centipede.py by segments and algorithm

LINES = {
    "lapack": ("Cholesky and back-substitution, LAPACK", BLUE, "o-"),
    "ltl": ("sparse factors and back-substitution", GREEN, "o--"),
    "global": ("Θ(n²) inverse", RED, "o-."),
    "pv-osimr": ("PV-OSIMr, without the inverse", INK, "o-"),
}
OURS = ("global", "pv-osimr")


def centipedes(report: Report) -> None:
    """Report figure 4."""
    walks: Walks = {int(n): ways for n, ways in measure("drumwright2012_centipede.py", 1).items()}
    best = {n: min(OURS, key=lambda way: ways[way]["seconds"]) for n, ways in walks.items()}
    report.text(
        """Centipedes (`featherweight.robots.centipede`) walk on a plane for 1,000 steps of 10 µs by semi-implicit Euler. The
        paper gives the joints and the greatest number of segments; sizes, masses and gait are our choice. Times are processor
        times of one thread. They include control, dynamics, collision detection, the contact inertia J M⁻¹ Jᵀ and impulses, and
        exclude compilation. All functions keep their loops (`execution="rolled"`). LAPACK is `dpotrf`, `dtrtrs` and `dsyrk`;
        products with the Θ(n²) inverse use the zeros of J."""
    )
    with report.picture("drumwright2012_figure4", "Time of the simulation of a centipede against its segments") as ax:
        draw_figure4(ax, walks)
    report.text(
        """The paper's figure 4 shows the first three lines. Its text has no numbers: the Θ(n²) inverse is competitive with
        LAPACK below 100 degrees of freedom and clearly better above. Seconds for 1,000 steps:"""
    )
    _walk_times(report, walks, best)


def draw_figure4(ax: Axes, walks: Walks) -> None:
    for way, (label, color, mark) in LINES.items():
        times = {n: ways[way]["seconds"] for n, ways in walks.items()}
        ax.plot(list(times), list(times.values()), mark, color=color, markersize=3.5, linewidth=1.3, label=label)
    ax.set(yscale="log", xlabel="segments", ylabel="seconds for 1,000 steps")
    ax.yaxis.set_major_formatter(lambda y, position: f"{y:g}")
    ax.grid()
    ax.set_title("Simulation of a centipede that walks, one thread")
    ax.legend(fontsize=8.0, handlelength=2.4)


def _walk_times(report: Report, walks: Walks, best: dict[int, str]) -> None:
    rows: list[list[object]] = []
    for n, ways in walks.items():
        first = ways["pv-osimr"]
        times = [f"{w['seconds']:.3g}" + ("" if w["steps"] == first["steps"] else " *") for w in (ways[x] for x in LINES)]
        ratios = [f"{ways['lapack']['seconds'] / ways[x]['seconds']:.1f}" for x in ("global", best[n])]
        rows.append([n, first["nv"], first["contacts"], *times, *ratios])
    header = ["segments", "degrees of freedom", "contacts", *(label for label, _, _ in LINES.values())]
    report.table([*header, "LAPACK to Θ(n²)", "LAPACK to the best"], rows)
    slower = [f"{n}" for n, ways in walks.items() if ways["global"]["seconds"] > ways["lapack"]["seconds"]]
    report.text(
        f"""A star marks times scaled from fewer steps; LAPACK took {min(ways["lapack"]["steps"] for ways in walks.values())}
        steps or more. In the paper, Cholesky factorization is slower than the inverse in this experiment; here it is
        faster for these numbers of segments: {", ".join(slower) or "none"}."""
    )
