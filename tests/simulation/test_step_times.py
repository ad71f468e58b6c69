"""Tests of the benchmark of step times: its rows, and its reports of failed steps."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
from falling_scenes import FallingScene, pile, stack
from step_times import HEADER, Timed, timed

import featherweight as fw


def options(**changed: Any) -> Namespace:
    return Namespace(**{"contact": "rigid", "torque": 0.0, "seconds": 60.0, "steps": 30, "long": 0} | changed)


@pytest.mark.parametrize("changed", [{}, {"long": 30}, {"contact": "file", "torque": 0.1}])
def test_a_row_has_a_cell_for_each_column(changed: dict[str, Any]) -> None:
    row = dict(zip(HEADER, timed(stack(2), options(**changed)), strict=True))
    assert (row["scene"], row["nv"], row["steps"], row["failed steps"]) == ("2 boxes in a stack", "12", "30", "0")
    assert int(row["contacts of MuJoCo"]) == 8


def test_a_scene_has_a_floor_and_the_step_of_the_benchmark() -> None:
    m = pile(3).mujoco_model
    assert m.nv == 18 and m.ngeom == 4
    assert m.opt.timestep == 0.005


def test_a_step_that_cannot_be_taken_is_counted_and_the_robot_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Timed(stack(1), "rigid", 0.0)

    def refuse(*inputs: object) -> None:
        raise fw.SimulationError("too long a step", 0.0)

    for _ in range(11):
        times.step()
    moved = times.sim.q.copy()
    with monkeypatch.context() as patched:
        patched.setattr(times.sim, "step", refuse)
        times.step()
    times.step()
    assert times.cells()[-1] == "1: too long a step"
    assert (times.sim.q != moved).any()


def test_what_cannot_be_loaded_has_a_row_that_says_so() -> None:
    row = timed(FallingScene("nothing", "<mujoco><worldbody><body><joint/></body></worldbody>"), options())
    assert row[0] == "nothing" and row[-1].startswith("not simulated: ")
