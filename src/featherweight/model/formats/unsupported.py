"""Unsupported parts of files: an error, or left out and listed, as the user chooses."""

from __future__ import annotations

from ..types import ModelError
from .choices import REFUSE, REPORT

LEFT_OUT = "not supported, and left out"  # key of reports, as below
UNDRIVEN = "gravity compensation by drives (actuatorgravcomp) of a file without actuators, which acts"
MESHES_IN_FLUID = "meshes with drag of their own (fluidshape), taken as their links' boxes"


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
