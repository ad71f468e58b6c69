"""Results of a step of an environment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..summaries import summarized

Array = np.ndarray[Any, np.dtype[Any]]


@summarized
class Moved(NamedTuple):
    """Results of a step of all robots, without ending or beginning episodes."""

    observation: Array  # (robots, numbers)
    reward: Array  # (robots,)
    terminated: Array  # (robots,)
    told: dict[str, Array]  # entries of `info`
