"""What overlaps where a simulation is, before anything moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .simulation import Simulation


class Overlap(NamedTuple):
    """Two things that overlap: what they are in words, their links (None for the world), and how deep [m]."""

    names: str
    links: tuple[str | None, str | None]
    depth: float


def overlaps(simulation: Simulation) -> list[Overlap]:
    """What overlaps on the first robot as it is now, the deepest first."""
    stage = simulation._stage
    candidates, gaps = simulation._fleet.look()
    order = np.argsort(gaps, kind="stable")
    deepest: dict[str, Overlap] = {}
    for c, gap in zip(candidates[order], gaps[order], strict=True):
        if gap < 0.0:
            deepest.setdefault(stage.names[c], Overlap(stage.names[c], stage.touching.links[c], -float(gap)))
    return list(deepest.values())
