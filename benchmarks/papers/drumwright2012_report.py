"""Drumwright (2012), figures 2 to 4: times of the inverse inertia matrix and of simulations with it, beside LAPACK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from drumwright2012_times import THREADS
from matplotlib.axes import Axes
from report import MINUS, Report, rounded

from featherweight.cli.tables import format_duration
from featherweight.engine.threads import processors
from featherweight.viewer.chart_style import BLUE, GREEN, INK, ORANGE, PALE, RED

CROSSOVER = 130  # the paper: n from which LAPACK is slower
GAINS = {2: 34, 4: 117}  # the paper: gain of threads over one thread in per cent
EXPONENT_GOAL, RATIO_GOAL = 2.15, 3.0  # ours
EXPONENT_RANGE = (128, 1024)
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


def exponent(times: Series, within: tuple[int, int] = EXPONENT_RANGE) -> float:
    """Return the slope of log time against log n."""
    n = [k for k in times if within[0] <= k <= within[1]]
    return float(np.polyfit(np.log(n), np.log([times[k] for k in n]), 1)[0])


def crossover(ours: Series, theirs: Series) -> str:
    """Return the n from which on ours is faster, interpolated between two sizes by the logarithms of times."""
    sizes = sorted(ours)
    gain = [float(np.log(theirs[n] / ours[n])) for n in sizes]
    slower = [k for k, g in enumerate(gain) if g < 0]
    if not slower:
        return f"below {sizes[0]}"
    k = slower[-1]
    if k + 1 == len(sizes):
        return f"above {sizes[k]:,}"
    part = gain[k] / (gain[k] - gain[k + 1])
    return f"{sizes[k] * (sizes[k + 1] / sizes[k]) ** part:.0f}"


def percent(x: float) -> str:
    return f"{100 * x:.0f} %".replace("-", MINUS)


def sections(report: Report) -> None:
    one = inverse_times(1)
    shared = {threads: inverse_times(threads)["lapack"] for threads in THREADS}
    chain, small = one["chain"], one["small"]
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
    _summary(report, chain, given, small)
    figure3(report, {1: ours} | {n: series(chain, f"{n} threads") for n in THREADS}, {1: lapack} | shared)
    _residuals(report, one["residuals"])


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


def _summary(report: Report, chain: dict[int, dict[str, float]], given: Series, small: dict[int, dict[str, Any]]) -> None:
    ours, lapack = series(chain, "ours"), series(chain, "lapack")
    rows: list[list[object]] = [
        ["n from which ours is faster than LAPACK", CROSSOVER, "", crossover(ours, lapack)],
        ["— with the matrix given to LAPACK", "", "", crossover(ours, given)],
        ["— than forming and factorizing, without the inverse", "", "", crossover(ours, series(chain, "factor"))],
        ["exponent of n from {} to {:,}".format(*EXPONENT_RANGE), 2, f"< {EXPONENT_GOAL}", f"{exponent(ours):.2f}"],
        ["LAPACK's time to ours at n = 1,000", "", f"≥ {RATIO_GOAL:g}", f"{lapack[1000] / ours[1000]:.1f}"],
        ["— with the matrix given to LAPACK", "", "", f"{given[1000] / ours[1000]:.1f}"],
    ]
    report.table(["", "the paper", "goal", "measured"], rows)
    report.text("Times of short chains in microseconds, unrolled for the robot, which is the default:")
    rows = [
        [n, *(microseconds(t[k]) for k in ("lapack", "factor", "ours")), t["algorithm"], f"{t['lapack'] / t['ours']:.2f}"]
        for n, t in small.items()
    ]
    header = ["n", "LAPACK", "formation and Cholesky only", "ours", "algorithm selected", "LAPACK to ours"]
    report.table(header, rows)


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


def _residuals(report: Report, found: dict[int, dict[str, float]]) -> None:
    report.heading("Accuracy")
    report.text("The Frobenius norm of M M⁻¹ − 1 for a chain:")
    rows = [[n, *(f"{r[k]:.1e}" for k in ("condition", "lapack", "ours"))] for n, r in found.items()]
    report.table(["n", "condition of M", "LAPACK", "ours"], rows)


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
    _walk_parts(report, walks, best)
    _walk_summary(report, walks, best)


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


def _walk_parts(report: Report, walks: Walks, best: dict[int, str]) -> None:
    report.text(
        """The parts of the time in seconds for 1,000 steps. The contact solver and the rest do the same work for all
        algorithms; the rest of a short centipede is mostly Python."""
    )
    rows: list[list[object]] = []
    for n, ways in walks.items():
        parts = []
        for way in (best[n], "lapack"):
            w = ways[way]
            parts += [f"{x:.3g}" for x in (w["inertia"], w["solver"], w["seconds"] - w["inertia"] - w["solver"])]
        rows.append([n, best[n], *parts, ways["pv-osimr"]["changes"]])
    header = ["segments", "best", "contact inertia", "contact solver", "rest"]
    report.table([*header, "LAPACK: contact inertia", "contact solver", "rest", "changes of the set of contacts"], rows)


def _walk_summary(report: Report, walks: Walks, best: dict[int, str]) -> None:
    def growth(way: str) -> float:
        return exponent({n: ways[way]["seconds"] - ways[way]["solver"] for n, ways in walks.items()}, WALK_RANGE)

    most = max(walks)
    lapack = walks[most]["lapack"]["seconds"]
    whole = [w for ways in walks.values() for w in ways.values()]
    ratio, power = WALK_GOALS
    low, high = (f(w["carried"] for w in whole) for f in (min, max))
    others: list[list[object]] = [[f"— {LINES[way][0]}", "", f"{growth(way):.2f}"] for way in LINES if way != best[most]]
    rows: list[list[object]] = [
        [f"LAPACK to the best of ours, {most} segments", f"≥ {ratio:g}", f"{lapack / walks[most][best[most]]['seconds']:.1f}"],
        [f"LAPACK to the Θ(n²) inverse, {most} segments", "", f"{lapack / walks[most]['global']['seconds']:.1f}"],
        ["exponent from {} to {} segments, without the contact solver: best".format(*WALK_RANGE), f"≤ {power:g}",
         f"{growth(best[most]):.2f}"],
        *others,
        ["weight that contacts carry, the mean of all steps", "", f"{percent(low)} to {percent(high)}"],
        ["greatest depth of a foot in the ground", "", f"{1e9 * max(w['depth'] for w in whole):.2g} nm"],
        ["greatest residual of the contact solver", "", f"{max(w['residual'] for w in whole):.1e} m/s"],
    ]  # fmt: skip
    report.table(["", "goal", "measured"], rows)
