"""Tests of random numbers of many environments."""

from __future__ import annotations

import numpy as np

from featherweight.environments.reset_noise import ResetNoise, mixed

ALL = np.arange(1000)


def test_the_hash_is_splitmix() -> None:
    """Check the first numbers of the published generator, for the seed 1234567."""
    state = np.uint64(1234567) + np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert mixed(state).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_uniform_and_normal_numbers_are_so() -> None:
    """Check moments, within five standard errors, and no correlation between environments, places or episodes."""
    noise = ResetNoise(ALL)
    u, z = noise.uniform(ALL, 0, 50), noise.normal(ALL, 50, 50)
    assert ((u >= 0.0) & (u < 1.0)).all() and np.isfinite(z).all()
    error = 5.0 / np.sqrt(u.size)
    assert abs(u.mean() - 0.5) < error / np.sqrt(12.0) and abs(u.var() - 1.0 / 12.0) < error * np.sqrt(1.0 / 180.0)
    assert abs(z.mean()) < error and abs(z.var() - 1.0) < error * np.sqrt(2.0)
    noise.begin(ALL)
    later = noise.uniform(ALL, 0, 50)
    for a, b in ((u[1:], u[:-1]), (u[:, 1:], u[:, :-1]), (u, later), (u, z)):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 5.0 / np.sqrt(a.size)
    assert len(np.unique(np.concatenate([u, later]))) == 2 * u.size


def test_an_environment_has_its_own_sequence_whatever_the_others_do() -> None:
    together, alone = ResetNoise([3, 4, 5]), ResetNoise([4])
    one = np.array([0])
    for which in ([0, 1, 2], [0, 2], [1], [0], [1, 2]):
        together.begin(np.array(which))
        if 1 in which:
            alone.begin(one)
        np.testing.assert_array_equal(together.uniform(np.array([1]), 0, 5), alone.uniform(one, 0, 5))
    together.seed(np.array([1]), np.array([4]))
    np.testing.assert_array_equal(together.uniform(np.array([1]), 2, 3), ResetNoise([4]).uniform(one, 0, 5)[:, 2:])
