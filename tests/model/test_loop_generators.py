"""Tests of generated mechanisms: they close at the generated configuration, to the rounding of their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from loop_generators import KINDS, LEAST, closed_mechanism

from featherweight.model.types import Pose


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("digits", [3, 6, 14])
def test_loops_are_closed_where_nothing_was_turned_back(kind: str, digits: int) -> None:
    made = closed_mechanism(kind, LEAST[kind], rng=1, digits=digits, spread=0.0)
    assert len(made.joints) == LEAST[kind]
    places: dict[str | None, Pose] = {"world": Pose()}
    for j in made.joints:
        places[j.child] = places[j.parent] @ j.placement
    for loop in made.loops:
        a, b = places[loop.predecessor] @ loop.predecessor_frame, places[loop.successor] @ loop.successor_frame
        gap = a.inverse() @ b
        left = max(np.abs(np.array(gap.R) - np.eye(3)).max(), np.abs(gap.p).max())
        assert left <= 10.0 * len(made.joints) * 10.0**-digits
        assert left > 0.0


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="kind: expected one of planar, spatial, linkage, platform, got 'ring'"):
        closed_mechanism("ring", 8, rng=0)
    with pytest.raises(ValueError, match="joints: expected 7 or more for a spatial mechanism, got 6"):
        closed_mechanism("spatial", 6, rng=0)
    assert closed_mechanism("planar", 5, rng=3) == closed_mechanism("planar", 5, rng=3)
