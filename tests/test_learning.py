"""Tests of the learning example: its gradients, and that it learns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("gymnasium")

import learn_to_hop
import train_go1
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from ppo import PPO, Network, Scale, Settings


def test_gradients_of_networks_are_those_of_differences() -> None:
    rng = np.random.default_rng(0)
    network = Network((3, 5, 4, 2), rng, 0.5, extra=2)
    network.vector = network.vector.astype(np.float64)
    at = 0
    for k, layer in enumerate(network.layers):
        network.layers[k] = network.vector[at : (at := at + layer.size)].reshape(layer.shape)
    x, y_bar = rng.standard_normal((7, 3)), rng.standard_normal((7, 2))
    network(x)
    gradient = network.pullback(y_bar, [0.25, -0.5])
    assert gradient[-2:].tolist() == [0.25, -0.5]
    for i in range(len(gradient) - 2):
        change = []
        for h in (1e-6, -1e-6):
            network.vector[i] += h
            change.append((network(x) * y_bar).sum())
            network.vector[i] -= h
        assert gradient[i] == pytest.approx((change[0] - change[1]) / 2e-6, rel=1e-6, abs=1e-7)


def test_scales_are_those_of_all_numbers_so_far() -> None:
    x = np.random.default_rng(0).normal(3.0, 2.0, (400, 2))
    scale = Scale(2)
    for part in np.split(x, [1, 10, 300]):
        scale.note(part)
    np.testing.assert_allclose(scale.mean, x.mean(axis=0), rtol=1e-5)  # the initial mean has the weight of a 1e-4th of a number
    np.testing.assert_allclose(scale.variance, x.var(axis=0), rtol=1e-4)


class Target(VectorEnv[Any, Any, Any]):
    """Episodes of ten steps whose reward is highest if the action equals the observation; half of them are truncated,
    half terminate.
    """

    def __init__(self, num_envs: int) -> None:
        self.num_envs, self.metadata = num_envs, {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space, self.single_action_space = (Box(-s, s, (1,), np.float32) for s in (np.inf, 2.0))
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.rng, self.left = np.random.default_rng(0), np.full(num_envs, 10)

    def reset(self, **_: Any) -> Any:
        self.goal = self.rng.uniform(-2.0, 2.0, (self.num_envs, 1))
        return self.goal, {}

    def step(self, actions: Any) -> Any:
        assert actions in self.action_space or np.abs(actions).max() <= 2.0
        reward = 1.0 - np.abs(actions - self.goal)[:, 0]
        self.left -= 1
        ended = self.left == 0
        self.left[ended] = 10
        final, self.goal = self.goal, self.rng.uniform(-2.0, 2.0, (self.num_envs, 1))
        cut = ended & (np.arange(self.num_envs) % 2 == 0)
        return self.goal, reward, ended & ~cut, cut, {"final_obs": final}


def test_it_learns_what_to_do() -> None:
    """Check that the return grows from zero to nearly ten."""
    ppo = PPO(Target(16), Settings(steps=32, minibatch=128, rate=3e-3, hidden=(16, 16)))
    progress = ppo.learn(30_000, told=None)
    assert progress.returns[0] < 3.0 and progress.returns[-1] > 7.0
    assert progress.lengths[-1] == 10.0 and progress.steps[-1] >= 30_000
    seen = np.linspace(-1.9, 1.9, 9)[:, None]
    np.testing.assert_allclose(ppo.act(seen), seen, atol=0.3)


def test_the_hopper_of_the_simulation_learns_a_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check two updates and the picture."""
    ppo, progress = learn_to_hop.learn(robots=8, steps=8 * 2 * 32, settings=Settings(steps=32))
    assert len(progress.returns) == 2 and np.isfinite(progress.returns[-1])
    total, length, motion, dt = learn_to_hop.hops(ppo, robots=4, steps=40)
    assert len(motion) == length[0] + 1 and (length <= 40).all() and dt == 0.008
    assert (total > 0.3 * length).all()  # each step upright gives a reward of one
    robot = ppo.envs.simulation.robot
    ends, radii = learn_to_hop.capsules(robot, motion)
    assert ends.shape == (len(motion), 4, 2, 3) and radii == [0.05, 0.05, 0.04, 0.06]
    lowest = (ends[..., 2] - np.array(radii)[:, None]).min(axis=(1, 2))
    assert (lowest > -0.02).all() and lowest.min() < 0.02  # on the floor, not below it
    monkeypatch.setattr(learn_to_hop, "learn", lambda: (ppo, progress))
    monkeypatch.setattr(learn_to_hop, "hops", lambda ppo: (total, length, motion, dt))
    monkeypatch.setattr("sys.argv", ["learn_to_hop.py", "--output", str(tmp_path)])
    learn_to_hop.main()
    assert (tmp_path / "learn_to_hop.png").stat().st_size > 10_000


def test_a_quadruped_learns_to_the_same_bits_on_any_number_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a few updates, because the example's run takes minutes; check that its picture is drawn."""
    learned = [
        train_go1.learn(robots=32, steps=2 * 32 * 16, settings=replace(train_go1.SETTINGS, minibatch=128), told=None, threads=k)
        for k in (1, 2)
    ]
    (ppo, progress), (other, _) = learned
    np.testing.assert_array_equal(ppo.policy.vector, other.policy.vector)
    np.testing.assert_array_equal(ppo.seen.mean, other.seen.mean)
    assert progress.steps == [512, 1024]
    way = ((0.1, (0.5, 0.0, 0.0)), (0.06, (0.0, 0.0, 0.5)))
    commands, velocities, motion, fallen, envs = train_go1.walk(ppo, robots=3, way=way)
    assert commands[:, 0].tolist() == [0.5] * 5 + [0.0] * 3 and velocities.shape == (8, 3, 3) and not fallen.any()
    assert motion.shape == (8, 19)
    monkeypatch.setattr(train_go1, "learn", lambda: (ppo, progress))
    monkeypatch.setattr(train_go1, "walk", lambda ppo: (commands, velocities, motion, fallen, envs))
    monkeypatch.setattr(train_go1, "film", lambda *drawn: None)
    monkeypatch.setattr("sys.argv", ["train_go1.py", "--output", str(tmp_path)])
    train_go1.main()
    assert (tmp_path / "train_go1.png").stat().st_size > 10_000
