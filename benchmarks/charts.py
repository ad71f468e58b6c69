"""Draw the charts of docs/how_fast.md from the tables of the page: `python benchmarks/charts.py`.

The script measures nothing. The file of a chart contains its numbers (Description), which a test compares with the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featherweight.viewer.chart_style import BLUE, DPI, FAINT, GRID, style

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "how_fast.md"
GREY = "#aab2bb"


class Bar(NamedTuple):
    """Two times [µs], ours and the other library's, and their ratio as in the table."""

    name: str
    ours: float
    theirs: float
    ratio: str


Panel = tuple[str, list[Bar]]  # title and bars


def table(page: str, script: str) -> list[list[str]]:
    """Return the cells of the first table that a script has written into the page, header first."""
    text = page.partition(f"<!-- figures: {script} -->")[2].partition("<!-- end -->")[0].strip().partition("\n\n")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return [lines[0], *lines[2:]]


def beside_pinocchio(page: str) -> list[Panel]:
    """Return a panel for each function of the table of dynamics."""
    header, *rows = table(page, "pinocchio_peer.py")
    panels = []
    for column, title in enumerate(header[1:], 1):
        cells = [(row[0], re.findall(r"[\d.]+", row[column])) for row in rows]
        panels.append((title, [Bar(name, float(x[0]), float(x[1]), x[2]) for name, x in cells]))
    return panels


def beside_mujoco(page: str) -> list[Panel]:
    """Return the panels of single robots and of rollouts; runs of several steps in a call and robots at rest are left out."""
    _, *rows = table(page, "simulation_peer.py --contact rigid")
    single: list[Bar] = []
    many: list[Bar] = []
    for what, call, ours, theirs, ratio, _ in rows:
        name = what.removesuffix(", random controls")
        if call == "rollout":
            many.append(Bar(name, float(ours), float(theirs), ratio))
        elif not re.fullmatch(r"\d+ steps", call) and not what.endswith("at rest"):
            controlled = ", run()" if call.startswith("`run`") else ""
            single.append(Bar(name + controlled, float(ours), float(theirs), ratio))
    return [("One robot", single), ("Rollouts of many robots", many)]


def charts(page: str) -> dict[str, tuple[str, list[Panel]]]:
    """Return the title and the panels of each chart, by its file name."""
    dynamics, simulation = beside_pinocchio(page), beside_mujoco(page)
    one = [panel for panel in dynamics if not panel[0].endswith(", batch")]
    batch = [(title.removesuffix(", batch"), bars) for title, bars in dynamics if title.endswith(", batch")]
    return {
        "how_fast_one_call.png": ("Time of one call from Python [µs]", one),
        "how_fast_batch.png": ("Time per state in a batch of 4096, one thread [µs]", batch),
        "how_fast_simulation.png": ("Time per simulation step [µs]", simulation),
    }


def description(panels: Sequence[Panel]) -> str:
    """Return the numbers of a chart as text."""
    lines = [f"{title}, {x.name}: {x.ours:g}, {x.theirs:g}, {x.ratio}" for title, bars in panels for x in bars]
    return "\n".join(lines)


def draw_bars(ax: Axes, title: str, bars: Sequence[Bar], other: str) -> None:
    """Draw two bars a row, on a linear axis from zero, and the ratio beside them."""
    longest = max(max(bar.ours, bar.theirs) for bar in bars)
    for row, bar in enumerate(bars):
        first = row == 0
        ax.barh(row - 0.19, bar.ours, height=0.36, color=BLUE, label="Featherweight" if first else None)
        ax.barh(row + 0.19, bar.theirs, height=0.36, color=GREY, label=other if first else None)
        end = max(bar.ours, bar.theirs) + 0.02 * longest
        ax.text(end, row, f"{bar.ratio} ×", va="center", fontsize=8.0, color=FAINT)
    ax.set_xlim(0.0, 1.22 * longest)
    ax.set_yticks(range(len(bars)), [bar.name for bar in bars])
    ax.set_ylim(len(bars) - 0.45, -0.55)
    ax.grid(axis="x", color=GRID)
    ax.set_title(title)


def save_chart(path: Path, title: str, panels: Sequence[Panel], other: str, stacked: bool) -> None:
    """Save panels one above the other or side by side, with one legend."""
    heights = [len(bars) + 1.4 for _, bars in panels]
    with style():
        size = (7.2, 0.30 * sum(heights) + 0.8) if stacked else (8.4, 2.9)
        figure = Figure(figsize=size, dpi=DPI)
        figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08)
        shape, ratios = ((len(panels), 1), heights) if stacked else ((1, len(panels)), [1.0])
        axes = figure.subplots(*shape, squeeze=False, sharey="none" if stacked else "row", height_ratios=ratios)
        for ax, (name, bars) in zip(axes.flat, panels, strict=True):
            draw_bars(ax, name[0].upper() + name[1:], bars, other)
        figure.supxlabel(f"{title}; “×”: {other}'s time / Featherweight's", fontsize=9.0, color=FAINT)
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", ncols=2)
        figure.savefig(path, metadata={"Description": description(panels)})


def main() -> None:
    for name, (title, panels) in charts(PAGE.read_text()).items():
        simulation = "simulation" in name
        save_chart(DOCS / "pictures" / name, title, panels, "MuJoCo" if simulation else "Pinocchio", stacked=simulation)
        print(DOCS / "pictures" / name)


if __name__ == "__main__":
    main()
