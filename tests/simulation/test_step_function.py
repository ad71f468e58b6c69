"""Tests of a step as a function of arrays: it has the bits of pure steps, and products with its transposed derivative."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.simulation.step_function import StateArrays, StepFunction
from simulation.scenes import boxes
from simulation.stepped_robot import landing, slow_drive
from simulation.test_sensor_history import text as sampled_sensors
from simulation.test_state import SLIDERS


def with_sampled_sensors() -> fw.Simulation:
    return fw.Simulation(fw.load(sampled_sensors()), q=np.zeros((3, 2)), v=[1.0, -2.0])


def with_slow_drives() -> fw.Simulation:
    sim, (q, v, *_) = landing(**slow_drive())
    sim.reset(q, v)
    return sim


SIMULATIONS = {
    "slow drives": with_slow_drives,
    "contacts": lambda: boxes([0.1, 0.1003, 0.3]),
    "sampled sensors": with_sampled_sensors,
}


@pytest.mark.parametrize("name", SIMULATIONS)
def test_steps_have_the_bits_of_pure_steps(name: str) -> None:
    """Check many robots and one, from states in the middle of a motion, with two leading axes, and after pickling."""
    sim, rng = SIMULATIONS[name](), np.random.default_rng(0)
    tau, control = rng.standard_normal((30, 3, sim.robot.nv)), rng.standard_normal((30, 3, len(sim.robot.controls)))
    drives = control.shape[2] > 0
    step = sim.step_function()
    for k in range(10):
        sim.step(tau[k], control[k] if drives else None)
    before = state = sim.state
    arrays, alone, again = step.arrays(state), step.arrays(state[1]), pickle.loads(pickle.dumps(step))
    assert step.state(arrays) == state and step.state(alone) == state[1]
    for k in range(10, 30):
        state = sim.advance(state, tau=tau[k], control=control[k] if drives else None)
        folded = StateArrays(*(x.reshape(3, 1, -1) for x in arrays))
        folded = again(folded, tau[k][:, None], control[k][:, None])
        arrays, alone = step(arrays, tau[k], control[k]), step(alone, tau[k, 1], control[k, 1])
        for x, y in zip(folded, arrays, strict=True):
            np.testing.assert_array_equal(x[:, 0], y)
    assert step.state(arrays) == state and step.state(alone) == state[1]
    assert sim.state == before
    assert step([x[:0] for x in arrays], tau[0, :0], control[0, :0]).q.shape == (0, sim.robot.nq)


def test_a_start_is_the_state_after_a_reset() -> None:
    sim, (q, v, tau, control) = landing()
    sim.run(0.01)
    step = sim.step_function()
    rest = (np.broadcast_to(x, (3, len(x))) for x in (step.started.activation, step.started.memory))
    many = step(StateArrays(q, v, *rest), tau, control)
    for i in range(len(q)):
        sim.reset(q[i], v[i])
        sim.step(tau[i], control[i])
        assert step.state(StateArrays(*(x[i] for x in many))) == sim.state
        assert (len(sim.contacts()[0]) > 0) == (i > 0)


def test_pairs_that_a_reset_excluded_do_not_touch(tmp_path: Path) -> None:
    """Check a function that is made after the shapes have moved apart, and states that exclude other pairs."""
    path = tmp_path / "sliders.urdf"
    path.write_text(SLIDERS)
    sim = fw.Simulation(fw.load(path), shapes=True, q=np.zeros(2))
    apart = sim.state
    sim.reset([0.05, -0.4])
    begin = end = sim.state
    sim.step(steps=300)
    step = pickle.loads(pickle.dumps(sim.step_function()))
    arrays, zero = step.arrays(begin), (np.zeros(2), np.zeros(0))
    for _ in range(300):
        arrays, end = step(arrays, *zero), sim.advance(end)
    assert step.state(arrays) == end == sim.state
    with pytest.raises(ValueError, match="the state excludes other pairs of shapes"):
        step.arrays(apart)


def test_states_have_room_for_a_number_of_contacts() -> None:
    sim = boxes([0.1])
    sim.run(0.02)
    with pytest.raises(ValueError, match=r"a robot has 4 contacts, but capacity for 2: give step\(\.\.\., contacts=4\)"):
        sim.step_function(contacts=2).arrays(sim.state)
    few, many, inputs = sim.step_function(contacts=4), sim.step_function(contacts=100), (np.zeros((1, 6)), np.zeros((1, 0)))
    ends = [f.state(f(f.arrays(sim.state), *inputs)) for f in (few, many)]
    assert ends[0] == ends[1] == sim.advance(sim.state)
    small, high = sim.step_function(contacts=2), boxes([0.1005]).state
    state = small.arrays(high)
    with pytest.raises(ValueError, match="a robot has 4 contacts, but capacity for 2"):
        fall(small, state, 100)


def fall(step: StepFunction, state: StateArrays, steps: int) -> None:
    for _ in range(steps):
        state = step(state, np.zeros((1, 6)), np.zeros((1, 0)))


@pytest.mark.parametrize("slow", [False, True], ids=["direct drives", "slow drives"])
def test_pullbacks_and_pushforwards_are_derivatives(slow: bool) -> None:
    """Compare with central differences of the step along changes that velocities make, with contact too."""
    sim, (q, v, tau, control) = landing(**(slow_drive() if slow else {}))
    step, rng, h = sim.step_function(), np.random.default_rng(1), 1e-6
    memory = np.broadcast_to(step.started.memory, (3, len(step.started.memory)))
    activation = rng.uniform(0.2, 0.8, (3, step.sizes["activation"]))
    state = StateArrays(q, v, activation, memory)
    bars = [rng.standard_normal(x.shape) for x in (q, v, activation)]
    found = step.pullback(state, tau, control, step(state, tau, control).q, bars)
    given = {"q": q, "v": v, "activation": activation, "tau": tau, "control": control}

    def value(**changed: Any) -> np.ndarray:
        x = given | changed
        after = step(StateArrays(x["q"], x["v"], x["activation"], memory), x["tau"], x["control"])
        total: np.ndarray = sum((bar * y).sum(axis=1) for bar, y in zip(bars, after, strict=False))
        return total

    for name, scale in {"v": 1.0, "activation": 1.0, "tau": 100.0, "control": 100.0}.items():
        dx = scale * rng.standard_normal(given[name].shape)
        expected = (value(**{name: given[name] + h * dx}) - value(**{name: given[name] - h * dx})) / (2.0 * h)
        np.testing.assert_allclose((getattr(found, name) * dx).sum(axis=1), expected, rtol=1e-5, atol=1e-6, err_msg=name)
    u = rng.standard_normal(v.shape)
    ahead, behind = (sim.robot.integrate(q, w * h * u) for w in (1.0, -1.0))
    expected = (value(q=ahead) - value(q=behind)) / (2.0 * h)
    np.testing.assert_allclose((found.q * (ahead - behind)).sum(axis=1) / (2.0 * h), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose((found.q[:, 3:7] * q[:, 3:7]).sum(axis=1), 0.0, atol=1e-9)  # tangent to unit quaternions
    rates = [rng.standard_normal(x.shape) for x in given.values()]
    ends = step.pushforward(state, tau, control, step(state, tau, control).q, rates)
    forward, backward = (
        sum((x * y).sum(axis=1) for x, y in zip(*pairs, strict=True)) for pairs in ((ends, bars), (rates, found))
    )
    np.testing.assert_allclose(forward, backward, rtol=1e-9)
    np.testing.assert_allclose((ends.q[:, 3:7] * step(state, tau, control).q[:, 3:7]).sum(axis=1), 0.0, atol=1e-9)


def test_wrong_arguments_are_refused_by_name() -> None:
    sim, (q, v, tau, control) = landing()
    step = sim.step_function()
    state = step.arrays(sim.state.repeated(3))
    with pytest.raises(ValueError, match=r"step of lander: v must have shape \(3, 7\); got \(3, 6\)"):
        step(state._replace(v=v[:, :6]), tau, control)
    with pytest.raises(ValueError, match=r"the quaternion of joint 'root'.* must have unit length"):
        step(state._replace(q=2.0 * q), tau, control)
    with pytest.raises(ValueError, match="a State has one leading axis or none; got 2"):
        step.state([x[None] for x in state])
    with pytest.raises(ValueError, match="the state belongs to another robot or scene"):
        step.arrays(boxes([0.1]).state)
    with pytest.raises(ValueError, match="contacts"):
        sim.step_function(contacts=0)
