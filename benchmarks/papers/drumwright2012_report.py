"""Drumwright (2012), figures 2 and 3: times of the inverse inertia matrix beside LAPACK's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from matplotlib.axes import Axes
from report import MINUS, Report

from featherweight.cli.charts import BLUE, INK, PALE
from featherweight.cli.figure import GREEN, ORANGE, RED
from featherweight.cli.tables import duration

CROSSOVER, TWO_THREADS = 130, 34  # the paper: n at which LAPACK is overtaken, and per cent that two threads gain
EXPONENT_GOAL, RATIO_GOAL = 2.15, 3.0  # ours
EXPONENT_RANGE = (128, 1024)
FIGURE3_FROM = 128

Series = dict[int, float]


def measure(threads: int) -> dict[str, Any]:
    """What drumwright2012_times.py finds, with sizes as numbers.

    OpenBLAS chooses its kernels for the processor by itself, whatever the environment prefers.
    """
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads))
    environment.pop("OPENBLAS_CORETYPE", None)
    script = Path(__file__).with_name("drumwright2012_times.py")
    done = subprocess.run([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return {name: {int(n): x for n, x in rows.items()} for name, rows in json.loads(done.stdout).items()}


def series(rows: dict[int, dict[str, float]], name: str) -> Series:
    return {n: row[name] for n, row in rows.items() if name in row}


def exponent(times: Series) -> float:
    """The slope of log time against log n."""
    n = [k for k in times if EXPONENT_RANGE[0] <= k <= EXPONENT_RANGE[1]]
    return float(np.polyfit(np.log(n), np.log([times[k] for k in n]), 1)[0])


def crossover(ours: Series, theirs: Series) -> str:
    """The n from which ours takes less time, between two sizes by the logarithms of times."""
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
    one, two = measure(1), measure(2)
    chain, small = one["chain"], one["small"]
    ours, lapack, form = (series(chain, name) for name in ("ours", "lapack", "form"))
    given = {n: lapack[n] - form[n] for n in lapack}
    library = scipy.show_config(mode="dicts")["Build Dependencies"]["lapack"]
    report.heading("Figure 2: time of the inverse on one thread")
    report.text(
        f"""LAPACK is `dpotrf` and `dpotri` from SciPy's wheel ({library["name"]} {library["version"]}), in place, in Fortran's
        order, no copies, with the kernels that OpenBLAS takes for this processor, after our composite-rigid-body algorithm has
        formed the matrix. It leaves one triangle of the inverse, ours is full. Ours is `inverse_mass_matrix` with loops kept
        (`execution="rolled"`), which is what robots of more than about a hundred joints get, and so are the matrix and the
        sparse factors (`algorithm="crba-ltdl"`). Our formation is not the cheapest for long chains (table 2), so that times
        without it are given, too. The branched tree is made as in the paper."""
    )
    with report.picture("drumwright2012_figure2", "Time of the inverse inertia matrix against n", (6.4, 4.2)) as ax:
        draw_figure2(ax, one)
    _times(report, one, given)
    _summary(report, chain, given, small)
    _figure3(report, ours, series(chain, "two"), lapack, two["lapack"])
    _residuals(report, one["residuals"])


def _times(report: Report, one: dict[str, Any], given: Series) -> None:
    rows: list[list[object]] = []
    for n, t in one["chain"].items():
        s = one["sparse"][n]
        serial = duration(s["serial"]) if "serial" in s else "—"
        all_times = (t["lapack"], given[n], t["factor"], t["ours"])
        ratio = f"{t['lapack'] / t['ours']:.2f}"
        rows.append([n, *map(duration, all_times), ratio, serial, duration(s["branched"]), duration(s["ours branched"])])
    header = ["n", "LAPACK", "less formation", "formation and Cholesky only", "ours", "LAPACK to ours"]
    report.table([*header, "sparse, chain", "sparse, branched", "ours, branched"], rows)


def _summary(report: Report, chain: dict[int, dict[str, float]], given: Series, small: dict[int, dict[str, Any]]) -> None:
    ours, lapack = series(chain, "ours"), series(chain, "lapack")
    report.text("What follows from these times:")
    rows: list[list[object]] = [
        ["n from which ours is faster than LAPACK", CROSSOVER, "", crossover(ours, lapack)],
        ["— with the matrix given to LAPACK", "", "", crossover(ours, given)],
        ["— than forming and factorizing, without the inverse", "", "", crossover(ours, series(chain, "factor"))],
        ["exponent of n from {} to {:,}".format(*EXPONENT_RANGE), 2, f"< {EXPONENT_GOAL}", f"{exponent(ours):.2f}"],
        ["LAPACK's time to ours at n = 1,000", "", f"≥ {RATIO_GOAL:g}", f"{lapack[1000] / ours[1000]:.1f}"],
        ["— with the matrix given to LAPACK", "", "", f"{given[1000] / ours[1000]:.1f}"],
    ]
    report.table(["", "the paper", "goal", "measured"], rows)
    report.text("Short chains, with all functions compiled for the robot, as they are unless loops are asked for:")
    rows = [
        [n, *(duration(t[k]) for k in ("lapack", "factor", "ours")), t["algorithm"], f"{t['lapack'] / t['ours']:.2f}"]
        for n, t in small.items()
    ]
    header = ["n", "LAPACK", "formation and Cholesky only", "ours", "algorithm taken", "LAPACK to ours"]
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


def draw_figure3(ax: Axes, lines: tuple[tuple[str, Series, str, str], ...]) -> None:
    for label, times, color, mark in lines:
        _line(ax, {n: t for n, t in times.items() if n >= FIGURE3_FROM}, mark, color, label)
    _axes(ax)
    ax.set_title("Time of the inverse inertia matrix, one thread and two")


def _line(ax: Axes, times: Series, mark: str, color: str, label: str) -> None:
    shown = {n: t for n, t in times.items() if n != 1000}  # 1024 is near
    ax.plot(list(shown), list(shown.values()), mark, color=color, markersize=3.5, linewidth=1.3, label=label)


def _axes(ax: Axes) -> None:
    ax.set(xscale="log", yscale="log", xlabel="n")
    low, high = ax.get_xlim()
    ticks = [n for n in (8, 16, 32, 64, 128, 256, 512, 1024) if low <= n <= high]
    ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
    ax.yaxis.set_major_formatter(lambda y, position: duration(y).replace(".00", "").replace(".0", ""))
    ax.minorticks_off()
    ax.grid()
    ax.legend(fontsize=8.0, handlelength=2.4)


def _figure3(report: Report, one: Series, two: Series, lapack: Series, lapack_two: Series) -> None:
    report.heading("Figure 3: one thread and two")
    report.text(
        f"""The columns of the inverse are shared by threads. In the paper two threads gain {TWO_THREADS} %; its third line,
        four threads, needs more processors than this machine has. A gain is the speed with two threads over that with one,
        less one. LAPACK includes the formation of the matrix, which has one thread."""
    )
    lines = (
        ("formation and LAPACK, one thread", lapack, BLUE, "o-"),
        ("formation and LAPACK, two threads", lapack_two, BLUE, "o:"),
        ("ours, one thread", one, RED, "o-"),
        ("ours, two threads", two, RED, "o:"),
    )
    with report.picture("drumwright2012_figure3", "Time of the inverse inertia matrix with one thread and two") as ax:
        draw_figure3(ax, lines)
    rows: list[list[object]] = []
    for n in (n for n in lapack_two if n >= 512):
        pairs = ((one[n], two[n]), (lapack[n], lapack_two[n]))
        rows.append([n, *(x for a, b in pairs for x in (duration(a), duration(b), percent(a / b - 1)))])
    report.table(["n", "ours, one", "two", "gain", "LAPACK, one", "two", "gain"], rows)


def _residuals(report: Report, found: dict[int, dict[str, float]]) -> None:
    report.heading("Accuracy")
    report.text("The Frobenius norm of M M⁻¹ − 1 for the inverses of a chain, with M as the library computes it:")
    rows = [[n, *(f"{r[k]:.1e}" for k in ("condition", "lapack", "ours"))] for n, r in found.items()]
    report.table(["n", "condition of M", "LAPACK", "ours"], rows)
