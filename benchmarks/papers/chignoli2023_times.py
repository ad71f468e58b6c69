"""Chignoli et al. (2023): times for tables II to IV, and figures 9, 10 and 12 beside native C++ code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from chignoli2023_robots import (
    CLUSTER,
    FORWARD,
    INVERSE,
    OSIM,
    ROBOTS,
    SHORT,
    Compared,
    compared,
)
from matplotlib.axes import Axes
from measure import median_times
from report import Report

from featherweight.viewer.chart_style import BLUE, FAINT, ORANGE, PALE

BATCH = 4096
TALOS = 7.6  # [µs] pin.aba of talos_reduced from Python, on the machine of NATIVE

# generalized_rbda 1.1.0, C++, one state [µs], measured for this comparison; in the order of ROBOTS.
NATIVE: dict[str, dict[str, tuple[float, ...]]] = {
    INVERSE: {CLUSTER[INVERSE]: (7.0, 7.3, 7.6, 11.6, 14.9, 18.8)},
    FORWARD: {
        CLUSTER[FORWARD]: (26.6, 36.0, 28.0, 45.0, 52.1, 70.6),
        "projection": (29.1, 28.3, 25.7, 40.8, 41.8, 88.8),
        "multipliers": (40.8, 41.1, 43.5, 73.2, 71.2, 171.5),
    },
    OSIM: {
        CLUSTER[OSIM]: (40.4, 56.0, 40.6, 66.8, 73.7, 100.5),
        "sparse factors": (27.8, 26.7, 25.6, 40.4, 41.7, 94.6),
    },
}
NATIVE_NAMES = {"sparse factors": "projected EFPA"}

# The paper's own times on an M1 Pro [µs], which its repository keeps (Benchmarking/Legacy/data); in the order of ROBOTS.
M1: dict[str, tuple[float, ...]] = {
    INVERSE: (12.898, 12.295, 14.083, 20.277, 29.13, 35.842),
    FORWARD: (29.692, 31.415, 34.317, 51.365, 60.781, 86.077),
    OSIM: (32.789, 44.994, 30.064, 48.198, 63.004, 73.26),
}


def states(c: Compared, batch: int | None) -> list[Any]:
    """Return random arguments of a function, for one state without a batch."""
    rng = np.random.default_rng(0)
    found = [c.robot.random_configuration(rng=rng, size=batch)]
    shape = (c.robot.nv,) if batch is None else (batch, c.robot.nv)
    return found + [rng.standard_normal(shape) for _ in c.function.program.inputs[1:]]


def call(c: Compared, batch: int | None) -> Callable[[], Any]:
    """Return a call for one state, or for a batch on one thread with a preallocated result."""
    if batch is None:
        return partial(c.function, *states(c, None))
    out = np.empty((batch, *c.function.program.outputs[0].shape))
    return partial(c.function, *states(c, batch), out=out, threads=1)


@cache
def per_state(what: str, name: str) -> dict[str, float]:
    """Return the median time per state of a batch [s] by algorithm, with interleaved algorithms."""
    found = compared(what, name)
    times = median_times([call(c, BATCH) for c in found.values()], 1.5, 31)
    return {key: t / BATCH for key, t in zip(found, times, strict=True)}


@cache
def one_call(what: str) -> dict[str, tuple[float, ...]]:
    """Return the median time of a call from Python for one state [s] by robot, with interleaved calls."""
    keys = list(NATIVE[what])
    calls = [call(compared(what, name)[key], None) for key in keys for name in ROBOTS]
    times = median_times(calls, 2.0, 31)
    return {key: tuple(times[k * len(ROBOTS) : (k + 1) * len(ROBOTS)]) for k, key in enumerate(keys)}


@cache
def pinocchio() -> float:
    """Return the time of pin.aba of talos_reduced from Python [s]."""
    from pinocchio_peer import Pair

    return median_times([Pair("talos_reduced", 1).one()["forward dynamics"][1]], 1.0, 25)[0]


def sections(report: Report) -> None:
    report.heading("Figures 9, 10 and 12: times")
    if not report.times:
        report.text("Times were not measured (--no-times).")
        return
    factor = 1e6 * pinocchio() / TALOS
    report.text(
        f"""Microseconds for one state: our functions in single calls from Python, and in batches of {BATCH:,} on one thread;
        and generalized_rbda 1.1.0 in native C++ on a similar machine. There `pin.aba` of talos_reduced took {TALOS} µs from
        Python, here {1e6 * pinocchio():.1f} µs, so the C++ times are multiplied by {factor:.2f}. The C++ library's projected
        EFPA is compared with our sparse factors by C-CRBA. The inverse operational-space inertia is that of six rows on one
        foot or tip."""
    )
    caption = "Figures 9, 10 and 12: times of one state beside native C++ code"
    with report.panels("chignoli2023_times", caption, (3, 1), (7.6, 7.4)) as axes:
        for ax, what in zip(axes, NATIVE, strict=True):
            draw(ax, what, factor)


def draw(ax: Axes, what: str, factor: float) -> None:
    key = CLUSTER[what]
    bars = {
        "generalized_rbda 1.1.0, C++, scaled": ([factor * t for t in NATIVE[what][key]], ORANGE),
        "ours, one call from Python": ([1e6 * t for t in one_call(what)[key]], BLUE),
        "ours, in a batch": ([1e6 * per_state(what, name)[key] for name in ROBOTS], PALE),
    }
    for k, (label, (values, color)) in enumerate(bars.items()):
        x = [i + 0.27 * (k - 1) for i in range(len(ROBOTS))]
        ax.bar(x, values, width=0.25, color=color, label=label)
        for a, y in zip(x, values, strict=True):
            ax.text(a, 1.06 * y, f"{y:.3g}", ha="center", fontsize=6.5, color=FAINT)
    ax.set_yscale("log")
    ax.margins(y=0.12)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.grid(axis="y")
    ax.set_xticks(range(len(ROBOTS)), [SHORT[name] for name in ROBOTS], fontsize=8.0)
    ax.set_ylabel("µs")
    ax.set_title(f"{what[0].upper()}{what[1:]}, {key}", fontsize=9.5)
    ax.legend(fontsize=7.5, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1))
