"""The same random numbers in each run: searches draw others in each call unless they get `rng=`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    made = np.random.default_rng
    draws = iter(range(10**9))

    def seeded(seed: Any = None) -> np.random.Generator:
        return made(next(draws) if seed is None else seed)

    monkeypatch.setattr(np.random, "default_rng", seeded)
