"""Tests of the check that every independent velocity moves mass."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.closing import soundness
from featherweight.robots import belt_chain, geared_chain
from oracles.mechanisms import closed


def calls(n: int) -> int:
    """Count the calls in the check of a chain of geared links."""
    robot = closed(geared_chain(n, 0), execution="interpreted")
    q, count = [0.1] * n, 0

    def tell(frame: Any, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(tell)
    try:
        assert soundness.loose_velocity(robot._system, q) is None
    finally:
        sys.setprofile(None)
    return count


def test_the_check_takes_equally_long_for_each_cluster() -> None:
    assert calls(15) - calls(10) == pytest.approx(calls(10) - calls(5), rel=0.05)


@pytest.mark.parametrize(
    ("light", "loose"),
    [
        ((), None),
        (("link-3",), None),
        (("link-3", "rotor-3"), "joint4"),
        (("link-2", "link-3", "rotor-2", "rotor-3"), "joint[34]"),
        (("link-0", "link-1", "rotor-0", "rotor-1"), None),
    ],
)
def test_velocities_that_move_no_mass_are_found_in_clusters_of_two(light: tuple[str, ...], loose: str | None) -> None:
    """Check links that are driven in pairs by belts, without the mass of some links and rotors."""
    made = belt_chain(4, 1)
    made = dataclasses.replace(made, bodies=tuple(fw.Body(b.name) if b.name in light else b for b in made.bodies))
    if loose is None:
        robot = closed(made, execution="interpreted")
        M = robot.mass_matrix(robot.random_configuration(0))
        size = np.sqrt(np.diag(M))
        assert np.linalg.eigvalsh(M / size / size[:, None])[0] > 1e-12
    else:
        with pytest.raises(fw.ModelError, match=f"joint '{loose}', with .*, moves no mass"):
            closed(made)
