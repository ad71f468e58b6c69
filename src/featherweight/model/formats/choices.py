"""Options of readers, and their possible values; the first value is the default."""

from __future__ import annotations

from collections.abc import Iterator

FOLLOW, INDEPENDENT, REFUSE, REPORT = "follow", "independent", "refuse", "report"

MIMIC = (FOLLOW, INDEPENDENT, REFUSE)  # treatment of joints that follow others
UNSUPPORTED = (REFUSE, REPORT)  # treatment of unsupported parts that could be left out

INTEGRATORS = ("euler", "implicitfast", "semi-implicit", "rk4", "midpoint")  # integrators in files that simulations use


def unused_integrator(word: str | None) -> Iterator[tuple[str, str]]:
    """Yield the entry of a report for the integrator of a file."""
    if word is not None and word not in INTEGRATORS:
        yield "integrator, in place of which a simulation is semi-implicit", word
