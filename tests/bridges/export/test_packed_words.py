"""Blocks of words are stored as constants and repeats, from which they follow."""

from __future__ import annotations

import numpy as np
import pytest

from featherweight.array_types import Integers
from featherweight.exporting.standalone_image import PackedWords, packed_words


def unpacked(packed: PackedWords, size: int) -> Integers:
    """Return the words of a block, copied one after the other."""
    words = np.zeros(size, np.int64)
    for to, source, count in packed.constants:
        words[to : to + count] = packed.words[source : source + count]
    for to, source, count in packed.repeats:
        for k in range(count):
            words[to + k] = words[source + k]
    return words


@pytest.mark.parametrize("seed", range(50))
def test_words_follow_from_what_is_stored(seed: int) -> None:
    """Check blocks of random words from a small set, of repeated pieces, of equal words and of zeros."""
    rng = np.random.default_rng(seed)
    pieces = [rng.integers(-2, rng.integers(1, 5), rng.integers(1, 40)) for _ in range(4)]
    pieces += [np.full(rng.integers(1, 60), 7), np.zeros(rng.integers(1, 30), np.int64)]
    words = np.concatenate([pieces[k] for k in rng.integers(0, len(pieces), rng.integers(1, 60))]).astype(np.int64)
    np.testing.assert_array_equal(unpacked(packed_words(words), len(words)), words)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9])
def test_short_blocks(size: int) -> None:
    for words in (np.zeros(size, np.int64), np.arange(size), np.full(size, -1)):
        np.testing.assert_array_equal(unpacked(packed_words(words), size), words)


def test_repeated_constants_are_stored_once() -> None:
    window = np.random.default_rng(0).integers(-(2**60), 2**60, 1000)
    packed = packed_words(np.concatenate([np.concatenate([[k], window]) for k in range(1, 31)] + [np.full(10_000, 5)]))
    assert len(packed.words) < 1000 + 30 + 20
    assert len(packed.constants) + len(packed.repeats) < 70
