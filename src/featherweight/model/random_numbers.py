"""Random numbers that depend only on the seed, not on the machine.

NumPy's bit generators, `random` and integers are reproducible. Its `uniform` rounds once on processors with fused multiply-add
and twice on others, and the tails of its normal numbers use logarithms of the system's library.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..spatial.ordered import lengths

Array = npt.NDArray[np.float64]

CERTAIN = 3.65  # smaller normal numbers come from a table and integers (Marsaglia and Tsang's ziggurat)


def uniform(rng: np.random.Generator, low: float, high: float, shape: int | tuple[int, ...]) -> Array:
    """Return numbers uniform between two bounds."""
    return np.asarray(low + (high - low) * rng.random(shape))


def unit_vectors(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return random unit vectors along the last axis, uniform except for the tails of the normal distribution."""
    x = _certain(rng, rng.standard_normal(shape))
    return np.asarray(x / lengths(x)[..., None])


def draw_unit_quaternion(rng: np.random.Generator, x: Array) -> None:
    """Write the numbers of `unit_vectors(rng, 4)` to x (4,) in a fraction of its time."""
    rng.standard_normal(out=x)
    a, b, c, d = x.tolist()
    if not (max(a, b, c, d) <= CERTAIN and min(a, b, c, d) >= -CERTAIN):
        a, b, c, d = _certain(rng, x).tolist()
    x /= math.sqrt(a * a + b * b + c * c + d * d)


def _certain(rng: np.random.Generator, x: Array) -> Array:
    """Return normal numbers, of which those in the tails are drawn again."""
    while (unlikely := np.abs(x) > CERTAIN).any():  # one of 4000
        x[unlikely] = rng.standard_normal(int(unlikely.sum()))
    return x
