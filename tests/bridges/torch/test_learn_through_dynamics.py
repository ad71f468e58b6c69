"""Test that the example of learning through the dynamics gives the results that it describes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import learn_through_dynamics


def test_a_few_updates_bring_the_tip_nearer() -> None:
    costs = learn_through_dynamics.Reaching(learn_through_dynamics.arm()).learn(updates=25, told=None)
    assert sum(costs[-5:]) < 0.8 * sum(costs[:5])
