"""Chignoli et al. (2023), figures 11 and 13: geared and belt chains that grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from chignoli2023_robots import SEED, cost
from compared import candidate
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator
from report import Report

from featherweight import BilateralContact, ClosedRobot, Description, build, robots
from featherweight.algorithms import aba
from featherweight.cli.tables import format_duration
from featherweight.engine.function import CompiledFunction
from featherweight.robot.dynamics import cheapest_accelerations
from featherweight.robot.robot import Robot
from featherweight.viewer.chart_style import BLUE, GREEN, ORANGE, PURPLE, RED

LENGTHS = (2, 4, 8, 12, 16, 24, 32, 48)  # links; the paper's chains end at 24
GOAL = 1.05  # ours, for the exponent of C-ABA
RANGES = ((8, 24), (24, 48))
LONG = (48, 96)  # C-ABA alone

FORWARD = {"aba": "C-ABA", "projection": "projection", "multipliers": "multipliers"}
OSIM = {"efpa": "C-EFPA", "pv-osim": "PV-OSIM on clusters", "ltl": "sparse factors"}
COLORS = {"aba": BLUE, "projection": ORANGE, "multipliers": RED, "efpa": BLUE, "pv-osim": GREEN, "ltl": PURPLE}


class Chain(NamedTuple):
    """A family of chains, geared or belt: general geometry with a seed, planar without."""

    name: str
    made: Callable[[int, int | None], Description]
    seed: int | None

    def robot(self, n: int) -> Robot:
        return _robot(self, n)


@cache
def _robot(chain: Chain, n: int) -> Robot:
    """Return a chain whose functions are always traced."""
    return build(chain.made(n, chain.seed), execution="traced")


GEARED, BELT = Chain("GT", robots.geared_chain, SEED), Chain("PBT", robots.belt_chain, SEED)
CHAINS = (GEARED, BELT, Chain("GT in a plane", robots.geared_chain, None), Chain("PBT in a plane", robots.belt_chain, None))


def functions(chain: Chain, n: int) -> dict[str, CompiledFunction[Any]]:
    """Return forward dynamics, and the inverse operational-space inertia of the tip, by algorithm."""
    r = chain.robot(n)
    tip = BilateralContact(f"link-{n - 1}")
    return {a: candidate(r.forward_dynamics, a) for a in FORWARD} | {a: r.delassus(tip, a) for a in OSIM}


@cache
def counted(chain: Chain, n: int) -> dict[str, int]:
    return {algorithm: cost(f) for algorithm, f in functions(chain, n).items()}


def exponent(values: Mapping[int, float], first: int, last: int) -> float:
    """Return the least-squares slope of log value against log length between two lengths."""
    sizes = [n for n in values if first <= n <= last]
    return float(np.polyfit(np.log(sizes), np.log([values[n] for n in sizes]), 1)[0])


def counts(chain: Chain, algorithm: str) -> dict[int, float]:
    return {n: counted(chain, n)[algorithm] for n in LENGTHS}


def sections(report: Report) -> None:
    report.heading("Figures 11 and 13: chains that grow")
    report.text(
        f"""Geared (GT) and parallel-belt (PBT) chains of {LENGTHS[0]} to {LENGTHS[-1]} links; the paper ends at 24. Chains have
        general geometry. Exponents are slopes of logarithms."""
    )
    names = FORWARD | OSIM
    shown = [n for n in (2, 12, 24, 48) if n in LENGTHS]
    ranges = [(a, b) for a, b in RANGES if a in LENGTHS and b in LENGTHS]
    header = ["chain", "algorithm", *(f"{n} links" for n in shown), *(f"exponent, {a} to {b}" for a, b in ranges)]
    rows: list[list[object]] = []
    for chain in (GEARED, BELT):
        for k, (algorithm, label) in enumerate(names.items()):
            found = counts(chain, algorithm)
            slopes = (f"{exponent(found, a, b):.3f}" for a, b in ranges)
            rows.append([chain.name if k == 0 else "", label, *(int(found[n]) for n in shown), *slopes])
    report.table(header, rows)
    with report.panels("chignoli2023_figure11", "Operations of forward dynamics against links", (1, 2), (7.6, 3.3)) as axes:
        for ax, chain in zip(axes, (GEARED, BELT), strict=True):
            draw(ax, f"Forward dynamics, {chain.name} chain", FORWARD, {a: counts(chain, a) for a in FORWARD}, False)
    with report.panels("chignoli2023_figure13", "Operations of the inverse inertia against links", (1, 2), (7.6, 3.3)) as axes:
        for ax, chain in zip(axes, (GEARED, BELT), strict=True):
            draw(ax, f"Inverse inertia of the tip, {chain.name} chain", OSIM, {a: counts(chain, a) for a in OSIM}, False)


def long_counts(chain: Chain) -> dict[int, float]:
    """Return the counts of C-ABA, also for chains that are too long for the other algorithms."""
    return {n: _long(chain, n) for n in LONG}


@cache
def _long(chain: Chain, n: int) -> int:
    robot = build(chain.made(n, chain.seed))
    assert isinstance(robot, ClosedRobot)
    return cost(cheapest_accelerations(ClosedRobot.forward_dynamics, robot, {"aba": aba.aba}))


def draw(ax: Axes, title: str, names: Mapping[str, str], values: Mapping[str, Mapping[int, float]], seconds: bool) -> None:
    for algorithm, label in names.items():
        line = values[algorithm]
        ax.plot(list(line), list(line.values()), "o-", color=COLORS[algorithm], markersize=3.5, linewidth=1.3, label=label)
    ax.set(xscale="log", yscale="log", xlabel="links")
    sizes = list(values[next(iter(names))])
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.yaxis.set_major_formatter(
        lambda y, position: format_duration(y).replace(".00", "").replace(".0", "") if seconds else f"{y:,.0f}"
    )
    if seconds:
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.minorticks_off()
    ax.grid()
    ax.legend(fontsize=8.0, handlelength=2.4)
    ax.set_title(title, fontsize=9.5)
