"""Tests of FEATHERWEIGHT_CHECKED=1: results equal those without it, and an invalid index raises an error with its location."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.loops.kernels import CompiledLoop
from featherweight.simulation.fleet_loop import work_on_robots
from simulation.plain_python import CHECKED, steps_by
from simulation.test_plain_python import driven, legs, linkage, many_bodies, touching

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")


@pytest.mark.parametrize("make", [legs, driven, linkage, many_bodies, touching("box on box"), touching("hull on heights")])
@pytest.mark.parametrize("robots", [1, 2])
def test_checked_steps_have_the_bits_of_others(robots: int, make: object, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    for checked in (False, True):
        monkeypatch.setenv("FEATHERWEIGHT_CHECKED", str(int(checked)))
        with steps_by(CHECKED if checked else CompiledLoop(work_on_robots, numbers=3)):
            sim: fw.Simulation = make("semi-implicit", robots)  # type: ignore[operator]
            sim.run(0.02, control=np.full(sim.forces.nu, 0.1) if sim.forces.nu else None)
            ends.append((sim.q, sim.v, sim.contacts(0)[1]))
    for mine, theirs in zip(*ends, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("robots", [1, 2])
def test_a_contact_without_room_is_an_error_with_file_and_line(robots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a state, changed by hand, that counts more contacts than it holds."""
    monkeypatch.setenv("FEATHERWEIGHT_CHECKED", "1")
    with steps_by(CHECKED):
        sim = legs("semi-implicit", robots)
        sim.step()
        state = sim.state
        room = state.layout.capacity
        state.arrays["counts"][-1] = room + 1
        sim.state = state
        with pytest.raises(IndexError, match=rf"fleet_loop\.py:\d+: index {room} of {room}"):
            sim.step()
