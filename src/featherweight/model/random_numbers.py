"""Random numbers that are the same on every machine for a seed.

NumPy's bit generators, its `random` and its integers are. Its `uniform` rounds once on processors that multiply and add in one
step, twice on others, and the tails of its normal numbers are logarithms of the system's library.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..spatial.ordered import lengths

Array = npt.NDArray[np.float64]

CERTAIN = 3.65  # normal numbers up to it come from a table and integers (Marsaglia and Tsang's ziggurat), larger ones do not


def uniform(rng: np.random.Generator, low: float, high: float, shape: int | tuple[int, ...]) -> Array:
    """Numbers between two, all alike."""
    return np.asarray(low + (high - low) * rng.random(shape))


def unit_vectors(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Vectors along the last axis, their directions all alike but for the tails of the normal distribution."""
    x = rng.standard_normal(shape)
    while (unlikely := np.abs(x) > CERTAIN).any():  # one of 4000
        x[unlikely] = rng.standard_normal(int(unlikely.sum()))
    return np.asarray(x / lengths(x)[..., None])
