"""The chart of a run: states per second against the batch size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from cases import TALOS
from figures import Figure

DASHES = {"float32": "-", "float64": "--"}


def draw(figures: Sequence[Figure], path: Path, what: str) -> None:
    """Draw forward dynamics of Talos by all libraries; draw nothing without matplotlib or without figures."""
    try:
        from matplotlib import figure

        from featherweight.viewer.chart_style import style
    except ImportError:
        print("no chart: matplotlib is missing")
        return
    lines = curves(figures)
    if not lines:
        return
    with style():
        drawing = figure.Figure(figsize=(7.0, 4.5), layout="constrained")
        axes = drawing.subplots()
        colors = {library: f"C{k}" for k, library in enumerate(dict.fromkeys(library for library, _ in lines))}
        for (library, precision), points in lines.items():
            batches, rates = zip(*sorted(points), strict=True)
            color, dashes = colors[library], DASHES[precision]
            axes.plot(batches, rates, color=color, linestyle=dashes, marker="o", markersize=3, label=f"{library}, {precision}")
        axes.set_xscale("log", base=2)
        axes.set(yscale="log", xlabel="states in a batch", ylabel="states/s")
        axes.set_title(f"Forward dynamics of Talos; {what}")
        axes.grid()
        axes.legend(fontsize=8)
        drawing.savefig(path, dpi=150)


def curves(figures: Sequence[Figure]) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Return points (batch, states per second) by library and precision."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for f in figures:
        if (f.robot, f.function) == (TALOS, "forward dynamics") and f.part in ("sweep", "processors", "peers"):
            found[f.library, f.precision].append((f.batch, f.rate))
    return dict(found)
