"""Random numbers of many environments at once: each environment has its own sequence, independent of all others.

The k-th number of an episode is a hash of the environment's seed, the episode's number and k (SplitMix64 of Steele, Lea and
Flood 2014). The only state is therefore a count of episodes, and there is no loop over environments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..array_types import Array

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio, odd
FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(x: Array) -> Array:
    """Return the result of SplitMix64's finalizer: each of its 64 bits depends on all bits of x."""
    x = (x ^ (x >> np.uint64(30))) * FACTORS[0]
    x = (x ^ (x >> np.uint64(27))) * FACTORS[1]
    y: Array = x ^ (x >> np.uint64(31))
    return y


class ResetNoise:
    """Uniform and normal random numbers for the start of episodes, by environment."""

    def __init__(self, seeds: Sequence[int] | Array) -> None:
        self._seeds = np.asarray(seeds, dtype=np.uint64)
        self._episodes = np.zeros(len(self._seeds), np.uint64)

    def seed(self, which: Array, seeds: Array) -> None:
        """Restart environments (k,) with seeds (k,)."""
        self._seeds[which] = seeds.astype(np.uint64)
        self._episodes[which] = 0

    def begin(self, which: Array) -> None:
        """Begin the next episode of environments (k,)."""
        self._episodes[which] += np.uint64(1)

    def keys(self, which: Array) -> Array:
        """Return the keys (k,) of the present episodes, int64; `drawn_number` makes random numbers from a key."""
        return self._keys(which).view(np.int64)

    def _keys(self, which: Array) -> Array:
        keys: Array = mixed(mixed(self._seeds[which] + GOLDEN) + self._episodes[which] * GOLDEN)
        return keys

    def uniform(self, which: Array, first: int, columns: int) -> Array:
        """Return numbers (k, columns) of the present episodes, in [0, 1), from the number `first` on."""
        places = np.arange(first + 1, first + columns + 1, dtype=np.uint64) * GOLDEN
        numbers: Array = (mixed(self._keys(which)[:, None] + places) >> np.uint64(11)) * 2.0**-53
        return numbers

    def normal(self, which: Array, first: int, columns: int) -> Array:
        """Return standard normal numbers (k, columns), from twice as many uniform ones (Box and Muller 1958)."""
        u = self.uniform(which, first, 2 * columns)
        radius = np.sqrt(-2.0 * np.log1p(-u[:, :columns]))
        numbers: Array = radius * np.cos(2.0 * np.pi * u[:, columns:])
        return numbers
