"""Tests of robots with functions too large to trace: steps equal those of a robot with all functions traced."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine import execution, program_trace

LENGTH = 16
BUDGET = 7500  # number of nodes between forward dynamics and the inverse mass matrix


def moved(sim: fw.Simulation) -> list[np.ndarray]:
    sim.run(0.01, every=10)
    return [sim.q, sim.v, sim.contacts()[1], sim.limit_forces]


def test_limits_dry_friction_and_contacts_without_a_traced_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = fw.generators.chain(LENGTH)
    joints = tuple(replace(j, lower=-0.2, upper=0.3 + 1e-5, dry_friction=0.01) for j in chain.joints)
    description = replace(chain, joints=joints)
    q = np.where(np.arange(LENGTH) % 3 == 0, 0.3, 0.1)
    robot = fw.build(description)
    low = float(robot.frame_placement("body15")(q)[2, 3])
    touching = {
        "spheres": [fw.ContactSphere("body15", 0.05)], "ground": fw.Plane((0.0, 0.0, low - 0.05)),
        "contact": fw.ContactOptions(tolerance=1e-12),
    }  # fmt: skip
    v = np.full(LENGTH, 0.1)
    with monkeypatch.context() as patch:
        for module in (program_trace, execution):
            patch.setattr(module, "NODE_BUDGET", BUDGET)
        large = fw.build(description)
        assert large.forward_dynamics.execution == "traced" and large.inverse_mass_matrix.execution == "rolled"
        kept = moved(fw.Simulation(large, 1e-3, q=q, v=v, **touching))  # type: ignore[arg-type]
        stopped = fw.Simulation(large, 1e-3, q=np.stack([q, q]), v=v, on_failure="stop", **touching)  # type: ignore[arg-type]
        stopped.step(np.stack([np.full(LENGTH, np.nan), np.zeros(LENGTH)]))
        assert stopped.failed.tolist() == [True, False]
        stopped.run(0.009, every=9)
    expected = moved(fw.Simulation(robot, 1e-3, q=q, v=v, **touching))  # type: ignore[arg-type]
    np.testing.assert_array_equal(stopped.q[0], q)
    np.testing.assert_allclose(stopped.q[1], expected[0], rtol=1e-6, atol=1e-8)
    assert len(kept[2]) == 1 and np.abs(kept[3]).max() > 0.0
    for mine, theirs in zip(kept, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-8)
