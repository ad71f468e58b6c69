"""Options of readers, and the values that they may have; the first is that of a reader that is given none."""

from __future__ import annotations

from collections.abc import Iterator

FOLLOW, INDEPENDENT, REFUSE, REPORT = "follow", "independent", "refuse", "report"

MIMIC = (FOLLOW, INDEPENDENT, REFUSE)  # what becomes of joints that follow others
UNSUPPORTED = (REFUSE, REPORT)  # and of what is not supported, and may be left out

INTEGRATORS = ("euler", "implicitfast", "semi-implicit", "rk4", "midpoint")  # words of files that a simulation honours


def unused_integrator(word: str | None) -> Iterator[tuple[str, str]]:
    """Yield the entry of a report for the integrator of a file."""
    if word is not None and word not in INTEGRATORS:
        yield "integrator, in place of which a simulation is semi-implicit", word
