"""Options of readers, and what is unsupported or odd in a file: an error, or reported and read on, as the user chooses.

A file that its format's own reader accepts is read. The first value of an option is its default.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..types import EXPLICIT_EULER, ModelError

LEFT_OUT = "not supported, and left out"  # key of reports, as below
ODD = "odd contents, taken as said"
UNDRIVEN = "gravity compensation by drives (actuatorgravcomp) of a file without actuators, which acts"
MESHES_IN_FLUID = "meshes with drag of their own (fluidshape), taken as their links' boxes"

FOLLOW, INDEPENDENT, REFUSE = "follow", "independent", "refuse"
REPORT, RAISE = "report", "raise"

MIMIC = (FOLLOW, INDEPENDENT, REFUSE)  # treatment of joints that follow others
UNSUPPORTED = (REPORT, RAISE)  # treatment of what is unsupported or odd

INTEGRATORS = "euler", EXPLICIT_EULER, "implicitfast", "semi-implicit", "rk4", "midpoint"
"""Integrators in files that simulations use."""


def unused_integrator(word: str | None) -> Iterator[tuple[str, str]]:
    """Yield the entry of a report for the integrator of a file."""
    if word is not None and word not in INTEGRATORS:
        yield "integrator, in place of which a simulation is semi-implicit", word


class Unsupported:
    """A collection of what is unsupported or odd in a file ("report"); with "raise", the first raises ModelError."""

    def __init__(self, choice: str = REPORT) -> None:
        self.choice = choice
        self.left_out: list[str] = []
        self.odd: list[str] = []

    def refuse(self, where: str, problem: str, remedy: str) -> None:
        """Note that an unsupported element (file and name) is left out, or raise ModelError for it."""
        if self.choice == RAISE:
            raise ModelError(f'{where}: {problem}; {remedy}, or read the file with unsupported="{REPORT}", which leaves it out')
        self.left_out.append(where.split(": ", 1)[-1])

    def listed(self) -> list[tuple[str, str]]:
        """Return the entries of a report."""
        kinds = ((LEFT_OUT, ", ".join(self.left_out)), (ODD, "; ".join(dict.fromkeys(self.odd))))
        return [(kind, said) for kind, said in kinds if said]


_READING: ContextVar[Unsupported] = ContextVar("the file that is read")


@contextmanager
def reading(choice: str) -> Iterator[Unsupported]:
    """Context of reading a file, in which `tolerate` and `file_notes` treat what is unsupported or odd in it as chosen."""
    token = _READING.set(Unsupported(choice))
    try:
        yield _READING.get()
    finally:
        _READING.reset(token)


def file_notes() -> Unsupported:
    """Return the notes on the file that is read; outside of `reading`, odd and unsupported content raises."""
    return _READING.get(Unsupported(RAISE))


def tolerate(where: str, problem: str, remedy: str, taken: str) -> None:
    """Note that odd content is read as the format's own reader reads it, in the words `taken`; or raise ModelError."""
    notes = file_notes()
    if notes.choice == RAISE:
        raise ModelError(f"{where}: {problem}; {remedy}")
    notes.odd.append(f"{where.split(': ', 1)[-1]}: {problem}, {taken}" if ": " in where else f"{problem}, {taken}")


def nonnegative(value: float, what: str, where: str) -> float:
    """Return the value; zero for a negative one, which is odd."""
    if value >= 0.0:
        return value
    tolerate(where, f"the {what} is negative ({value:g})", "correct it", "taken as zero")
    return 0.0


class excused:  # a context
    """Context in which an element with an error is read as the format's own reader reads it: noted, unless notes raise."""

    def __init__(self, taken: str) -> None:
        self._taken = taken

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        notes = file_notes()
        if not isinstance(error, ModelError) or notes.choice == RAISE:
            return False
        problem, _, remedy = str(error).split(": ", 1)[-1].rpartition("; ")
        notes.odd.append(f"{problem or remedy}, {self._taken}")
        return True
