"""Duration and seed of the trial.

`TRIAL_MINUTES` is the length of the whole trial (default half a minute; `make trial` sets 20); each test takes its share.
`TRIAL_SEED` sets the random seed (default 0; `make trial` draws one). `TRIAL_ROUND` runs one round of a test alone. The end of
the output lists what was tried, and how often.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from simulation.plain_python import CHECKED, steps_by

MINUTES = float(os.environ.get("TRIAL_MINUTES", "0.5"))
SEED = int(os.environ.get("TRIAL_SEED", "0"))
ONLY = os.environ.get("TRIAL_ROUND")

Rounds = Callable[..., Iterator[np.random.Generator]]


@pytest.fixture(params=["as for users", "checked"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a test with compiled steps as users have them, and again with a check of each index, range and length."""
    if request.param != "checked":
        yield
        return
    monkeypatch.setenv("FEATHERWEIGHT_CHECKED", "1")
    with steps_by(CHECKED):
        yield


@pytest.fixture
def rounds(request: pytest.FixtureRequest, record_property: Callable[[str, Any], None]) -> Iterator[Rounds]:
    """Return `rounds(share, most)`, which yields a random generator for each round, until the share of time is used or
    `most` rounds ran.
    """
    name = request.node.nodeid.rpartition("/")[2]
    count = 0

    def numbered(share: float, most: int | None = None) -> Iterator[np.random.Generator]:
        nonlocal count
        seed = (SEED, zlib.crc32(name.encode()))
        if ONLY is not None:
            count = int(ONLY)
            yield np.random.default_rng([*seed, count])
            return
        end = time.monotonic() + 60 * MINUTES * share
        while (count == 0 or time.monotonic() < end) and (most is None or count < most):
            yield np.random.default_rng([*seed, count])
            count += 1

    yield numbered
    record_property("rounds", count)
    print(f"TRIAL_SEED={SEED} TRIAL_ROUND={count}")  # the last round; pytest shows it if the test failed


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.section(f"trial of {MINUTES:g} minutes, TRIAL_SEED={SEED}")
    for reports in terminalreporter.stats.values():
        for report in reports:
            for key, value in getattr(report, "user_properties", ()):
                if getattr(report, "when", "") == "teardown" and isinstance(value, int):
                    terminalreporter.write_line(f"{value:9d} {key}  {report.nodeid.rpartition('/')[2]}")
