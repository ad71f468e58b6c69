"""Pieces of a range, each to one thread."""

from __future__ import annotations

import threading

import pytest

from featherweight.engine.threads import share_out


@pytest.mark.parametrize("grain", [1, 3, 1000])
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 64, 1001])
def test_pieces_cover_the_range_once(n: int, threads: int, grain: int) -> None:
    seen: list[int] = []
    lock = threading.Lock()

    def run(start: int, stop: int) -> None:
        with lock:
            seen.extend(range(start, stop))

    share_out(run, n, threads, grain)
    assert sorted(seen) == list(range(n))


def test_an_error_in_any_thread_reaches_the_caller() -> None:
    def run(start: int, stop: int) -> None:
        if start > 0:
            raise ValueError("in a piece")

    with pytest.raises(ValueError, match="in a piece"):
        share_out(run, 100, 2)
