"""Words of a block of zeros as few constants: runs of constants, and copies of words that precede them in the block.

This is the method of Lempel and Ziv (1977) with words for letters. Windows of a plan have equal constants, as have knots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Integers

GAP = 4  # zeros that are stored with their neighbours
LEAST = 8  # words of a copy; more than a gap, so that runs and copies do not overlap
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of hashes


class Copy(NamedTuple):
    """Words to write: their place in the block, the first source word, and their number."""

    to: int
    source: int
    size: int


class PackedWords(NamedTuple):
    """Copies `constants` from `words`, then, in order and word by word, copies `repeats` from the block itself."""

    words: list[int]
    constants: list[Copy]
    repeats: list[Copy]


def packed_words(words: Integers) -> PackedWords:
    """Return the words of a block, packed."""
    earlier, nonzero = _earlier(words), np.flatnonzero(words)
    repeats: list[Copy] = []
    runs: list[tuple[int, int]] = []
    k = 0
    while k < len(nonzero):
        at = int(nonzero[k])
        count = _equal(words, int(earlier[at]), at) if earlier[at] >= 0 else 0
        if count >= LEAST:
            repeats.append(Copy(at, int(earlier[at]), count))
            k = int(np.searchsorted(nonzero, at + count))
            continue
        if runs and at - runs[-1][1] <= GAP:
            runs[-1] = runs[-1][0], at + 1
        else:
            runs.append((at, at + 1))
        k += 1
    constants, stored = list[Copy](), list[int]()
    for begin, end in runs:
        constants.append(Copy(begin, len(stored), end - begin))
        stored += words[begin:end].tolist()
    return PackedWords(stored, constants, repeats)


def _earlier(words: Integers) -> Integers:
    """Return, for each word, the last place before it where the words of a copy have the same hash; -1 if there is none."""
    n = max(0, len(words) - LEAST + 1)
    hashes = np.zeros(n, np.uint64)
    for k in range(LEAST):
        hashes = hashes * FACTOR + words[k : k + n].view(np.uint64) + np.uint64(k)
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    earlier = np.full(len(words), -1)
    earlier[order[same + 1]] = order[same]
    return earlier


def _equal(words: Integers, first: int, second: int) -> int:
    """Return how many words from two places on are equal; the first place precedes the second."""
    count, ahead = 0, LEAST
    while second + count < len(words):
        a, b = words[first + count :][:ahead], words[second + count :][:ahead]
        different = np.flatnonzero(a[: len(b)] != b)
        if len(different):
            return count + int(different[0])
        count, ahead = count + len(b), 2 * ahead
    return count
