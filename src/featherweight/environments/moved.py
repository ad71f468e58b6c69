"""Results of a step of an environment."""

from __future__ import annotations

from typing import NamedTuple

from ..array_types import Array, Booleans, Matrix, Vector
from ..summaries import summarized


@summarized
class Moved(NamedTuple):
    """Results of a step of all robots, without ending or beginning episodes."""

    observation: Matrix  # (robots, numbers)
    reward: Vector  # (robots,)
    terminated: Booleans  # (robots,)
    told: dict[str, Array]  # entries of `info`
