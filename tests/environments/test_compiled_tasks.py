"""Tests of user-defined compiled tasks: their functions are called as `episode_loop` says, and mistakes are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from featherweight.array_types import Vector
from featherweight.environments import CompiledTask, Hopper, RobotVectorEnv, Task
from featherweight.environments.episode_loop import Now
from featherweight.environments.parallel_robots import ParallelRobots
from featherweight.environments.snapshot import Links
from featherweight.environments.task_numbers import drawn_number
from featherweight.simulation.stage_records import FleetArrays


class CountingText(NamedTuple):
    """A task that counts steps from a random number, and ends at the third step."""

    weight: float

    def begin(self, now: Now) -> None:
        now.memory[0], now.memory[1] = 0.0, drawn_number(now.drawn)

    def act(self, now: Now) -> None:
        for k in range(len(now.control)):
            now.control[k] = 0.5 * now.action[k]

    def measure(self, now: Now, fleet: FleetArrays, i: int) -> None:
        now.memory[2] = fleet.states.q[i, 0]

    def observe(self, now: Now, seen: Vector) -> None:
        seen[0], seen[1], seen[2] = now.memory[0], now.memory[1], now.qpos[1]

    def reward(self, now: Now, terms: Vector) -> None:
        terms[0], terms[1] = now.memory[0], now.control[0]

    def total(self, terms: Vector) -> float:
        return float(self.weight * terms[0] + terms[1])

    def write_info(self, now: Now, info: Vector) -> None:
        info[0] = now.memory[2]

    def ended(self, now: Now) -> bool:
        return bool(now.memory[0] >= 2.0)

    def remember(self, now: Now) -> None:
        now.memory[0] += 1.0


@dataclass(frozen=True)
class Counting(CompiledTask):
    xml_file: str = "hopper.xml"
    frame_skip: int = 2
    reset_noise_scale: float = 5e-3
    weight: float = 10.0

    info: ClassVar[tuple[str, ...]] = ("place",)
    places: ClassVar[int] = 1
    terms: ClassVar[tuple[str, ...]] = ("steps", "control")

    def seen(self, links: Links) -> int:
        return 3

    def memory(self, links: Links) -> int:
        return 3

    def text(self, robots: ParallelRobots, now: Now) -> CountingText:
        return CountingText(self.weight)


@pytest.mark.parametrize("robots", [2, 40])
def test_a_text_of_ones_own_runs_as_the_loop_says(robots: int) -> None:
    """Check few robots and several threads, over several episodes of three steps."""
    envs = RobotVectorEnv(Counting(weight=3.0), robots, autoreset_mode="SameStep")
    seen, info = envs.reset(seed=1)
    np.testing.assert_array_equal(info["place"], envs.simulation.q[:, 0])
    numbers = [seen[:, 1]]
    action = np.random.default_rng(0).uniform(-1.0, 1.0, (robots, 3)).astype(np.float32)
    for k in range(7):
        seen, reward, terminated, _, info = envs.step(action)
        assert terminated.all() == (k % 3 == 2) and terminated.any() == terminated.all()
        told = info["final_info"] if terminated.any() else info
        np.testing.assert_array_equal(told["steps"], k % 3)
        np.testing.assert_allclose(reward, 3.0 * (k % 3) + 0.5 * action[:, 0].astype(float), rtol=1e-15)
        np.testing.assert_array_equal(seen[:, 0], 0 if terminated.any() else k % 3)  # observed before the update of the memory
        np.testing.assert_array_equal(seen[:, 2], envs.simulation.q[:, 1])
        if terminated.any():
            np.testing.assert_array_equal(info["final_obs"][:, 1], numbers[-1])
            numbers.append(seen[:, 1])
    action[-1, 0], q = np.nan, envs.simulation.q
    with pytest.raises(ValueError, match="actions must be finite"):
        envs.step(action)
    np.testing.assert_array_equal(envs.simulation.q, q)
    drawn = np.array(numbers)
    assert len(np.unique(drawn)) == drawn.size and ((drawn >= 0.0) & (drawn < 1.0)).all()


def test_functions_of_snapshots_have_no_place_in_compiled_tasks() -> None:
    with pytest.raises(TypeError, match=r"Own\.rewards: .* derive it from SnapshotTask"):

        class Own(Hopper):
            def rewards(self, *snapshots: Any) -> Any:
                return {}


def test_a_task_of_no_kind_is_refused() -> None:
    @dataclass(frozen=True)
    class Plain(Task):
        xml_file: str = "hopper.xml"
        frame_skip: int = 4
        reset_noise_scale: float = 0.0

    with pytest.raises(TypeError, match="a SnapshotTask, a RobotTask or a CompiledTask; got Plain"):
        RobotVectorEnv(Plain(), 1)
