"""Tests of resets of one robot in one compiled call: their states, and all that such a call must leave to the other way."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import featherweight as fw

MODEL = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
  <body name="base" pos="0 0 0.3"><freejoint name="root"/><geom type="box" size=".1 .1 .1" mass="1"/>
    <body name="arm" pos="0 0 0.1"><joint name="hinge" axis="0 1 0" range="-40 40"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.2" size="0.02" mass="0.2"/></body></body></worldbody>
  <actuator><general name="motor" joint="hinge" dyntype="filter" dynprm="0.1"/></actuator>
  <sensor><accelerometer name="felt" site="s"/></sensor></mujoco>""".replace(
    '<geom type="capsule"', '<site name="s"/><geom type="capsule"'
)


def simulation(**options: Any) -> fw.Simulation:
    """Return a simulation that has moved, so that it has contacts, activations and a time."""
    sim = fw.Simulation(fw.load(MODEL), **options)
    sim.step(control=[1.0], steps=150)
    return sim


@pytest.mark.parametrize("law", ["file", "rigid"])
@pytest.mark.parametrize("kind", [np.array, list, tuple, lambda x: np.array(x, np.float32), lambda x: np.repeat(x, 2)[::2]])
def test_a_reset_forgets_all_that_came_before(law: str, kind: Any) -> None:
    sim, fresh = simulation(contact=law), fw.Simulation(fw.load(MODEL), contact=law)
    q, v = sim.robot.start(), np.linspace(-0.5, 0.5, sim.robot.nv)
    for state in ((q, v), (q, None), (None, v), (None, None)):
        given_q, given_v = (None if x is None else kind(x) for x in state)
        many_q, many_v = (None if x is None else np.array(x)[None] for x in (given_q, given_v))
        fresh.reset(many_q, many_v)  # many robots take the other way
        sim.reset(given_q, given_v, time=1)
        assert sim.time == 1.0 and sim.steps == 0 and not sim.activation.any() and not sim.contacts().names
        np.testing.assert_array_equal(sim.q, fresh.q[0] if fresh.q.ndim > 1 else fresh.q)
        np.testing.assert_array_equal(sim.v, fresh.v[0] if fresh.v.ndim > 1 else fresh.v)
        np.testing.assert_array_equal(sim.sensors(), np.ravel(fresh.sensors()))
        for x in (sim, fresh):
            x.step(control=np.ones(1), steps=150)
        np.testing.assert_array_equal(sim.q, fresh.q[0] if fresh.q.ndim > 1 else fresh.q)


def test_a_robot_that_fails_returns_to_the_state_of_the_last_reset() -> None:
    sim = simulation(on_failure="reset")
    q = sim.robot.start()
    q[2] = 0.7
    sim.reset(q)
    q[2] = 0.9  # the caller's own array
    sim.step(tau=[np.nan, *[0.0] * 6])
    assert sim.failed[0] and sim.q[2] == 0.7


def test_a_refused_reset_changes_nothing() -> None:
    sim = simulation(contact="rigid")
    before, q, v = sim.state, sim.robot.start(), np.zeros(sim.robot.nv)
    for what, message, wrong in (
        (q[:-1], r"q must have shape \(8,\) or \(robots, 8\); got \(7,\)", {}),
        (np.where(np.arange(8) == 7, np.nan, q), "number 7, of joint 'hinge', is not finite", {}),
        (np.where(np.arange(8) == 6, 1.1, q), "the quaternion of joint 'root', q.3:7., must have unit length, but has 1.1", {}),
        (np.where(np.arange(8) == 7, 1.0, q), "beyond joint limits: joint 'hinge' at 1", {}),
        (q, "v must be finite numbers; number 2, of joint 'root'", {"v": np.where(np.arange(7) == 2, np.inf, v)}),
        (q, r"v must have shape \(7,\)", {"v": v[:3]}),
        (q, "time must be a finite number", {"time": np.inf}),
        (["x"] * 8, "q must be an array of real numbers", {}),
        (q.astype(complex), "q must be an array of real numbers", {}),
    ):
        with pytest.raises(ValueError, match=message):
            sim.reset(what, **wrong)
        assert sim.state == before


def test_rounded_quaternions_are_mended_and_those_with_w_first_give_a_warning() -> None:
    sim = simulation()
    q = sim.robot.start()
    q[3:7] = [0.0, 0.0, 0.6, 0.8001]
    sim.reset(q)
    assert np.linalg.norm(sim.q[3:7]) == pytest.approx(1.0, abs=1e-12)
    q[3:7] = [1.0, 0.0, 0.0, 0.0]
    with pytest.warns(fw.ModelWarning, match="w is last here"):
        sim.reset(q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.reset(np.array([*q[:3], 0.0, 1.0, 0.0, 0.0, 0.0]))


def test_copies_and_robots_that_were_varied_are_reset_alone() -> None:
    sim = simulation()
    sim.reset()
    copied = fw.Simulation.__copy__(sim)
    q = sim.robot.start()
    q[2] = 0.5
    copied.step()
    copied.reset(q)
    assert sim.q[2] != 0.5 and copied.q[2] == 0.5
    sim.vary(friction=np.ones(1))
    sim.step()
    sim.reset(q)
    assert sim.q[2] == 0.5 and copied.steps == 0
    sim.vary()
    sim.reset(np.tile(q, (3, 1)))
    assert sim.q.shape == (3, 8)
    sim.step()
    sim.reset(q)
    assert sim.q.shape == (8,)
