"""Unsupported parts of files: refused, or left out and listed, as the user chooses."""

from __future__ import annotations

from ..types import ModelError
from .choices import REFUSE, REPORT

LEFT_OUT = "not supported, and left out"  # in a report, as below
UNDRIVEN = "gravity compensation by drives (actuatorgravcomp) of a file without actuators, which acts"
MESHES_IN_FLUID = "meshes with drag of their own (fluidshape), taken as their links' boxes"


class Unsupported:
    """One file's: raises ModelError for the first, or keeps all in `left_out`, as `choice` is "refuse" or "report"."""

    def __init__(self, choice: str = REFUSE) -> None:
        self.choice = choice
        self.left_out: list[str] = []

    def refuse(self, where: str, problem: str, remedy: str) -> None:
        """For an element (file and name) without which the robot may be used; returns where it is to be left out."""
        if self.choice == REFUSE:
            raise ModelError(f'{where}: {problem}; {remedy}, or read the file with unsupported="{REPORT}", which leaves it out')
        self.left_out.append(where.split(": ", 1)[-1])

    def listed(self) -> list[tuple[str, str]]:
        return [(LEFT_OUT, ", ".join(self.left_out))] if self.left_out else []
