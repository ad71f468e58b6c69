"""Tests of the contact problems that benchmarks record: they are those of a simulation's steps, and files preserve them."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import falling_scenes
import numpy as np
import pytest
import recorded_problems
from falling_scenes import STEP, FallingScene
from recorded_problems import Recorded, Writer, matrix_of, problem_of_step, steps_of

from featherweight.contact.impulses import solve_problem

BOXES, WEIGHT = 2, 9.81  # boxes of 1 kg


@pytest.fixture(scope="module")
def scene() -> FallingScene:
    return falling_scenes.stack(BOXES)


def test_a_recorded_problem_is_that_of_the_last_step(scene: FallingScene) -> None:
    """Check boxes at rest on each other: the floor carries both, and the lower box one."""
    sim = scene.simulation("rigid")
    sim.step(steps=100)
    recorded = problem_of_step(sim)
    assert recorded is not None
    problem, start, tolerance = recorded
    forces = sim.contacts()[1]
    assert len(problem.mu) == len(forces)
    solution = solve_problem(problem, start, tolerance)
    assert solution.residual <= tolerance
    carried = BOXES * (BOXES + 1) / 2 * WEIGHT
    np.testing.assert_allclose(np.abs(forces[:, 2]).sum(), carried, rtol=1e-4)
    np.testing.assert_allclose(solution.impulses[: 3 * len(forces) : 3].sum() / STEP, carried, rtol=1e-4)


def test_in_free_fall_there_is_no_problem() -> None:
    sim = falling_scenes.boxes("a box in the air", [(0.0, 0.0, 5.0)], 0.0).simulation("rigid")
    sim.step()
    assert problem_of_step(sim) is None


def test_files_give_problems_back(scene: FallingScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check files with small chunks."""
    monkeypatch.setattr(recorded_problems, "CHUNK", 2000)
    sim, given, writer = scene.simulation("rigid"), list[Recorded](), Writer(tmp_path / "problems")
    for _ in islice(steps_of(sim, np.random.default_rng(0)), 12):
        found = problem_of_step(sim)
        if found is not None:
            given.append(Recorded("two boxes", *found))
            writer.add(given[-1])
    writer.write()
    back = list(recorded_problems.stored([tmp_path / "problems"]))
    assert len(back) == len(given) == writer.count > 5
    assert writer.files > 1
    for (scene_name, problem, start, tolerance), (name, same, from_file, most) in zip(given, back, strict=True):
        assert (scene_name, problem.pyramid, tolerance) == (name, same.pyramid, most)
        np.testing.assert_array_equal(start, from_file)
        for name in ("A", "b", "mu", "lower", "upper", "R", "pair"):
            np.testing.assert_array_equal(getattr(problem, name), getattr(same, name))
        np.testing.assert_array_equal(matrix_of(problem), matrix_of(same))
    with pytest.raises(SystemExit, match="name another folder"):
        Writer(tmp_path / "problems")


def test_what_misses_the_tolerance_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = Writer(tmp_path / "failed")
    recorded_problems.solve_all(recorded_problems.drawn(34, 0), failed)
    back = list(recorded_problems.stored([tmp_path / "failed"]))
    assert "squeezed, without a solution" in {recorded.scene for recorded in back}
    assert len(back) == failed.count
    assert "| all with a solution | zero | 32 |" in capsys.readouterr().out
