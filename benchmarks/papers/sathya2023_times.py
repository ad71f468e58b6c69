"""Sathya, Decré and Swevers (2023), table I as times: functions that keep their loops, on growing mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from measure import median_times
from report import Report, rounded
from sathya2023_counts import LABELS, Mechanism, chain_of_squares, polynomial, stem_with_tips

from featherweight.cli.tables import format_duration
from featherweight.viewer.chart_style import BLUE, FAINT, GREEN, ORANGE, PURPLE

ALGORITHMS = {"pv-osimr": BLUE, "efpa": GREEN, "pv-osim": ORANGE, "kjr": PURPLE, "ltl": FAINT}
SLOPE_GOAL = 2.2  # our goal for the slope of PV-OSIMr in k

Times = dict[int, float]


def chain(n: int) -> Mechanism:
    """Return a chain with a constraint on its tip."""
    return Mechanism(range(-1, n - 1), (n - 1,))


def tips(c: int) -> Mechanism:
    """Return c constrained links on a short stem."""
    return stem_with_tips(8, c)


def deep(d: int) -> Mechanism:
    """Return sixteen constraints on a stem of d links, with 256 links in total."""
    return stem_with_tips(d, 16, 240 - d)


class Family(NamedTuple):
    """Mechanisms of one parameter: timed and counted sizes, and the slopes of table I."""

    what: str
    mechanism: Callable[[int], Mechanism]
    timed: tuple[int, ...]
    counted: tuple[int, ...]
    slopes: Mapping[str, str]


FAMILIES = {
    "n": Family(
        "a chain of n links, one constraint",
        chain,
        (128, 256, 512, 1024),
        (4, 5, 6, 7, 8, 20),
        {"pv-osimr": "1", "efpa": "1", "pv-osim": "1", "kjr": "1", "ltl": "3"},
    ),
    "m": Family(
        "m = 6c constraints, one link each, on a stem of 8",
        tips,
        (8, 16, 32, 64),
        (2, 3, 4, 5, 6),
        {"pv-osimr": "2", "efpa": "2", "pv-osim": "2", "kjr": "2", "ltl": "2"},
    ),
    "d": Family(
        "m = 96 at a depth of d, n = 256",
        deep,
        (16, 64, 128, 224),
        (8, 12, 16, 20, 24),
        {"pv-osimr": "0", "efpa": "≤ 1", "pv-osim": "≤ 1", "kjr": "≤ 1", "ltl": "≤ 2"},
    ),
    "k": Family(
        "a chain of k² links, every k-th constrained",
        chain_of_squares,
        (8, 12, 16, 24, 32),
        (3, 4, 5, 6, 7, 8, 9, 10),
        {"pv-osimr": "2", "efpa": "3", "pv-osim": "4", "kjr": "≤ 4", "ltl": "6"},
    ),
}


def measure(family: Family, algorithm: str) -> Times:
    """Return the median times of one state on one thread [s], with interleaved sizes."""
    return dict(
        zip(family.timed, median_times([_call(family.mechanism(x), algorithm) for x in family.timed], 2.0, 15), strict=True)
    )


def _call(mechanism: Mechanism, algorithm: str) -> Callable[[], object]:
    robot = mechanism.robot("rolled")
    function = robot.delassus(mechanism.contacts(), algorithm)
    q = robot.random_configuration(rng=0)
    return partial(function, q, out=np.empty(function.program.outputs[0].shape), threads=1)


def fitted_slope(times: Times) -> float:
    """Return the least-squares slope of log time against log size."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def counted_slope(family: Family, algorithm: str) -> float:
    """Return the slope of counts between the first and the last size, by the polynomial through counts of smaller sizes."""
    counts = polynomial(family.mechanism, algorithm, family.counted)
    first, last = family.timed[0], family.timed[-1]
    return math.log(counts(last) / counts(first)) / math.log(last / first)


def sections(report: Report) -> None:
    measured = {x: {algorithm: measure(family, algorithm) for algorithm in ALGORITHMS} for x, family in FAMILIES.items()}
    report.text(
        """Times of one state on one thread, with loops (`execution="rolled"`), so that one kernel serves every mechanism.
        Slopes of times are fitted over all sizes, slopes of counts are those from the first size to the last. Lower powers and
        the overhead of a call make a slope less than the power."""
    )
    rows: list[list[object]] = []
    for x, family in FAMILIES.items():
        row: list[object] = [f"{x} = {family.timed[0]} to {family.timed[-1]}: {family.what}"]
        for algorithm, times in measured[x].items():
            slopes = (family.slopes[algorithm], f"{counted_slope(family, algorithm):.2f}", f"{fitted_slope(times):.2f}")
            row.append(f"{', '.join(slopes)}; {rounded(1e6 * times[family.timed[-1]])}")
        rows.append(row)
    report.table(["slopes by table I, counted, timed; longest time [µs]", *(LABELS[x] for x in ALGORITHMS)], rows)
    with report.picture("sathya2023_times", "Times of the Delassus matrix against k for a chain of k² links") as ax:
        draw_times(ax, measured["k"])
    slope = fitted_slope(measured["k"]["pv-osimr"])
    report.text(
        f"""Our goal for the slope of PV-OSIMr in k is at most {SLOPE_GOAL}. The measured slope is {slope:.2f}, which
        {"meets" if slope <= SLOPE_GOAL else "misses"} the goal."""
    )


def draw_times(ax: Axes, measured: dict[str, Times]) -> None:
    for algorithm, color in ALGORITHMS.items():
        times = measured[algorithm]
        ax.plot(list(times), list(times.values()), "o-", color=color, markersize=3.5, linewidth=1.3, label=LABELS[algorithm])
    ax.set(xscale="log", yscale="log", xlabel="k")
    sizes = FAMILIES["k"].timed
    ax.set_xticks(sizes, [str(k) for k in sizes])
    ax.yaxis.set_major_formatter(lambda y, position: format_duration(y).replace(".00", "").replace(".0", ""))
    ax.minorticks_off()
    ax.grid()
    ax.legend(fontsize=8.0, handlelength=2.4)
    ax.set_title("A chain of k² links, every k-th constrained: time")
