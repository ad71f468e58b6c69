"""Recompute the tables and figures of the papers behind the library, in one Markdown report with pictures.

PYTHONPATH=benchmarks/peers python benchmarks/papers/make_report.py [--output docs/papers] [--no-times] [--robots FOLDER]
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import chignoli2023
import drumwright2012
import featherstone2005
import sathya2023
import wensing2012
from measure import machine
from report import Report, arguments

from featherweight.engine.threads import processors
from featherweight.version import __version__

PAPERS: tuple[Callable[[Report], None], ...] = (
    featherstone2005.sections,
    drumwright2012.sections,
    wensing2012.sections,
    sathya2023.sections,
    chignoli2023.sections,
)


def write_report(folder: Path, times: bool, robots: Path | None = None) -> Path:
    """Write README.md and the pictures to a folder; `robots` is a folder of robot files that no package has."""
    report = Report(folder, times, robots)
    report.heading("The papers' tables and figures", 1)
    report.text(
        """This page recomputes the tables and figures of five papers and compares them with the papers' numbers. `make papers`
        writes it. Operations are counted in the traced functions that the library compiles, so the counts are exact. *m* is a
        multiplication, *a* an addition or subtraction. Differences are our count minus the paper's."""
    )
    if times:
        cores = f"{processors()} cores" if processors() > 1 else "one core"
        report.text(f"Times are medians of interleaved runs on {cores}. Featherweight {__version__}; {machine()}.")
    else:
        report.text(f"Featherweight {__version__}.")
    for sections in PAPERS:
        sections(report)
    path = folder / "README.md"
    path.write_text(report.markdown)
    return path


def main() -> None:
    given = arguments(__doc__, Path("docs/papers"))
    print(write_report(given.output, not given.no_times, given.robots))


if __name__ == "__main__":
    main()
