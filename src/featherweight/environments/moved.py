"""Results of a step of an environment."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..array_types import Array, Booleans, Matrix, Vector
from ..summaries import summarized


@summarized
class Told(NamedTuple):
    """Entries of `info`, until the next step: numbers (robots, names), and other arrays with a row for each robot."""

    names: tuple[str, ...]
    numbers: Matrix
    others: dict[str, Array]

    def arrays(self) -> dict[str, Array]:
        """Return the entries of all robots."""
        return dict(zip(self.names, self.numbers.T.copy(), strict=True)) | self.others

    def of(self, i: int) -> dict[str, Any]:
        """Return the entries of robot i."""
        entries: dict[str, Any] = dict(zip(self.names, self.numbers[i].tolist(), strict=True))
        for name, x in self.others.items():
            entries[name] = x[i]
        return entries


@summarized
class Moved(NamedTuple):
    """Results of a step of all robots, without ending or beginning episodes."""

    observation: Matrix  # (robots, numbers)
    reward: Vector  # (robots,)
    terminated: Booleans  # (robots,)
    told: Told
