"""Options of readers, and unsupported parts of files: an error, or left out and listed, as the user chooses.

The first value of an option is its default.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..types import EXPLICIT_EULER, ModelError

LEFT_OUT = "not supported, and left out"  # key of reports, as below
UNDRIVEN = "gravity compensation by drives (actuatorgravcomp) of a file without actuators, which acts"
MESHES_IN_FLUID = "meshes with drag of their own (fluidshape), taken as their links' boxes"

FOLLOW, INDEPENDENT, REFUSE, REPORT = "follow", "independent", "refuse", "report"

MIMIC = (FOLLOW, INDEPENDENT, REFUSE)  # treatment of joints that follow others
UNSUPPORTED = (REFUSE, REPORT)  # treatment of unsupported parts that could be left out

INTEGRATORS = "euler", EXPLICIT_EULER, "implicitfast", "semi-implicit", "rk4", "midpoint"
"""Integrators in files that simulations use."""


def unused_integrator(word: str | None) -> Iterator[tuple[str, str]]:
    """Yield the entry of a report for the integrator of a file."""
    if word is not None and word not in INTEGRATORS:
        yield "integrator, in place of which a simulation is semi-implicit", word


class Unsupported:
    """Unsupported parts of a file: raises ModelError for the first ("refuse"), or collects all in `left_out` ("report")."""

    def __init__(self, choice: str = REFUSE) -> None:
        self.choice = choice
        self.left_out: list[str] = []

    def refuse(self, where: str, problem: str, remedy: str) -> None:
        """Raise ModelError for an unsupported element (file and name), or note that it is left out."""
        if self.choice == REFUSE:
            raise ModelError(f'{where}: {problem}; {remedy}, or read the file with unsupported="{REPORT}", which leaves it out')
        self.left_out.append(where.split(": ", 1)[-1])

    def listed(self) -> list[tuple[str, str]]:
        return [(LEFT_OUT, ", ".join(self.left_out))] if self.left_out else []
