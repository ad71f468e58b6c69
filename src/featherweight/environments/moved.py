"""Results of a step of an environment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Moved(NamedTuple):
    """Results of a step of all robots, whether or not it ends their episodes."""

    observation: Array  # (robots, numbers)
    reward: Array  # (robots,)
    terminated: Array  # (robots,)
    told: dict[str, Array]  # what `info` tells
