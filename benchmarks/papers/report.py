"""A report of Markdown sections, tables and pictures, for the papers' scripts.

A paper's script has a function `sections(report)` that adds its tables and figures; `make_report.py` runs them all.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from measure import markdown

from featherweight.viewer.chart_style import style

DPI = 150
MINUS = "−"


class Report:
    """Markdown text in the order of its additions, and pictures, which are saved to `folder` immediately."""

    def __init__(self, folder: Path, times: bool = True, robots: Path | None = None) -> None:
        self.folder = folder
        self.times = times  # whether to measure times
        self.robots = robots  # folder of robot files that no package has
        self._parts: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    def heading(self, title: str, level: int = 3) -> None:
        self._parts.append(f"{'#' * level} {title}")

    def text(self, paragraph: str) -> None:
        self._parts.append(" ".join(paragraph.split()))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Add a table, in which integers get thousands separators."""
        self._parts.append(markdown(header, [[cell(x) for x in row] for row in rows]))

    @contextmanager
    def picture(self, name: str, caption: str, size: tuple[float, float] = (6.4, 3.8)) -> Iterator[Axes]:
        """Yield axes, and save the picture as name.png."""
        with self.panels(name, caption, (1, 1), size) as [ax]:
            yield ax

    @contextmanager
    def panels(self, name: str, caption: str, shape: tuple[int, int], size: tuple[float, float]) -> Iterator[list[Axes]]:
        """Yield the axes of a grid, row by row, and save the picture as name.png."""
        with style():
            figure = Figure(figsize=size, dpi=DPI)
            figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08)
            yield list(figure.subplots(*shape, squeeze=False).flat)
            figure.savefig(self.folder / f"{name}.png")
        self._parts.append(f"![{caption}]({name}.png)")

    @property
    def markdown(self) -> str:
        return "\n\n".join(self._parts) + "\n"


def cell(x: object) -> str:
    return f"{x:,}".replace("-", MINUS) if isinstance(x, int) else str(x)


def percentage(ours: float, paper: float) -> str:
    """Return the difference between our number and the paper's in per cent of the paper's."""
    return f"{100 * (ours / paper - 1):+.1f}".replace("-", MINUS) if ours != paper else "0"


def rounded(x: float) -> str:
    """Return a number with three digits, without an exponent."""
    return f"{float(f'{x:.3g}'):,.10g}"


def arguments(doc: str, output: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--output", type=Path, default=output, help=f"folder for the report (default: {output})")
    parser.add_argument("--no-times", action="store_true", help="do not measure times")
    parser.add_argument("--robots", type=Path, help="folder of robot files that no package has (default: skip them)")
    return parser.parse_args()


def run(sections: Callable[[Report], None], doc: str) -> None:
    """Print the sections of one paper, and save its pictures."""
    given = arguments(doc, Path("output/papers"))
    report = Report(given.output, not given.no_times, given.robots)
    sections(report)
    print(report.markdown)
