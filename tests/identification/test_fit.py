"""Tests of fits to logs: truth within the errors, gaps, rates, offsets, delays, contacts, loops, and an oracle."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import featherweight as fw
from featherweight.identification import Channel, Log, LogFit, Parameter, fit, fitting
from featherweight.identification.first_states import first_states
from featherweight.identification.logs import checked_log, source_of, windows_of
from featherweight.identification.shooting import Shooting, Starts
from featherweight.identification.unknowns import INPUTS, Unknowns

mujoco = pytest.importorskip("mujoco")
Floats = NDArray[np.float64]
STEP = 5e-3
NOISE = 1e-3  # [rad] of encoders

PENDULUM = """<mujoco><option timestep="0.005" integrator="Euler"/><worldbody><body name="rod"><joint name="hinge" axis="0 1 0"
damping="{damping}" armature="{armature}"/><geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="1" contype="0"
conaffinity="0"/></body></worldbody></mujoco>"""

TWO_JOINTS = """<mujoco><option timestep="0.005"/><worldbody><body name="upper"><joint name="shoulder" axis="0 1 0"
damping="{d}" armature="{a}" frictionloss="{f}"/><geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" mass="1.5"/>
<body name="lower" pos="0 0 -0.4"><joint name="elbow" axis="0 1 0" damping="{d}" armature="{a}" frictionloss="{f}"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="{m}"/></body></body></worldbody>
<contact><exclude body1="upper" body2="lower"/>
</contact></mujoco>"""


@cache
def pendulum(damping: float = 0.05, armature: float = 0.02) -> fw.Robot:
    return fw.load(PENDULUM.format(damping=damping, armature=armature))


@cache
def two_joints(d: float = 0.1, a: float = 0.02, f: float = 0.1, m: float = 0.8) -> fw.Robot:
    return fw.load(TWO_JOINTS.format(d=d, a=a, f=f, m=m))


def driven(
    robot: fw.Robot, seconds: float, size: float, seed: int = 0, start: Floats | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return time (n,), tau (n, nv), and the states q, v (n + 1, .) of a robot under smooth random forces."""
    rng, n = np.random.default_rng(seed), round(seconds / STEP)
    time: Floats = np.arange(n) * np.float64(STEP)
    rate, phase = rng.uniform(2.0, 12.0, (4, robot.nv)), rng.uniform(0.0, 6.0, (4, robot.nv))
    tau = size * np.sin(time[:, None, None] * rate + phase).sum(axis=1)
    sim = fw.Simulation(robot, dt=STEP, q=start)
    q, v = sim.rollout(sim.q[None], sim.v[None], tau=tau[None])
    return time, tau, q[0], v[0]


def noisy(x: Floats, seed: int = 1, noise: float = NOISE) -> Floats:
    return x + noise * np.random.default_rng(seed).standard_normal(x.shape)


def assert_within(found: LogFit, truth: dict[str, float], deviations: float = 3.5) -> None:
    for name, value in truth.items():
        k = found.names.index(name)
        assert abs(found.values[k] - value) < deviations * found.deviations[k], f"{name}: {found}"


@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.92), (0.8, 0.85)])
def test_truth_is_within_two_deviations_in_95_of_100_trials(correlation: float, least: float) -> None:
    """Fit three parameters of a pendulum to 200 logs with different noise: 600 normalized errors.

    Two deviations hold 95 % of white noise; binomial, with the errors of one trial correlated, 95 ± 1.5 %. Noise that follows
    itself at 0.8 (five samples count as half of one) needs more than the covariance of white noise, in which 50 % would lie.
    """
    time, tau, q, _ = driven(pendulum(0.08, 0.03), 1.5, 0.4)
    sim, errors = fw.Simulation(pendulum(), dt=STEP), []
    for trial in range(200):
        e = noisy(np.zeros(len(time)), trial)
        for k in range(1, len(e)):
            e[k] = correlation * e[k - 1] + np.sqrt(1.0 - correlation**2) * e[k]
        found = fit(sim, Log(time, {"q": q[:-1] + 0.01 + e[:, None]}, tau=tau), ["damping", "armature", "offset"])
        assert found.converged
        errors.append((found.values - [0.08, 0.03, 0.01]) / found.deviations)
    assert least < np.mean(np.abs(errors) < 2.0) < 0.99
    assert abs(np.mean(errors)) < 0.25


def test_a_two_joint_arm_with_gaps_and_a_slow_encoder() -> None:
    time, tau, q, _ = driven(two_joints(0.2, 0.03, 0.15, 1.1), 6.0, 1.0)
    y = noisy(q[:-1])
    y[200:240] = np.nan
    y[np.random.default_rng(5).random(y.shape) < 0.2] = np.nan
    slow = Channel(noisy(q[:-1:4, 1], 7), time[::4] + 0.4 * STEP)
    between = q[:-1, 1] + 0.4 * np.diff(q[:, 1])
    slow = dataclasses.replace(slow, values=noisy(between[::4], 7))
    log = Log(time, {"shoulder": y[:, 0], "elbow": slow}, tau=tau)
    kinds: list[Parameter | str] = ["damping", "dry_friction", Parameter("armature", shared=True), Parameter("mass", "lower")]
    found = fit(fw.Simulation(two_joints(), dt=STEP), log, kinds)
    assert found.converged
    truth = {f"{j}.{k}": x for j in ("shoulder", "elbow") for k, x in (("damping", 0.2), ("dry_friction", 0.15))}
    assert_within(found, {**truth, "shoulder+elbow.armature": 0.03, "lower.mass": 1.1})
    np.testing.assert_allclose([found.noise["shoulder"][0], found.noise["elbow"][0]], NOISE, rtol=0.1)
    again = found.simulation
    Q, _ = again.rollout(q[:1], np.zeros((1, 2)), tau=tau[None, :200])
    assert np.abs(Q[0] - q[:201]).max() < 0.02  # the fitted robot moves as the true one does


def test_offsets_and_a_delay() -> None:
    time, tau, q, _ = driven(two_joints(0.2, 0.03, 0.0), 5.0, 1.0)
    late = 0.0123
    at = np.clip((time - late) / STEP, 0.0, None)
    low = at.astype(int)
    y = q[low] + (at - low)[:, None] * (q[low + 1] - q[low]) + [0.03, -0.02]
    log = Log(time[5:], {"q": noisy(y)[5:]}, tau=tau[5:])
    sim = fw.Simulation(two_joints(0.1, 0.02, 0.0), dt=STEP)
    found = fit(sim, log, ["damping", "armature", "offset", "delay"])
    assert_within(found, {"shoulder.damping": 0.2, "elbow.armature": 0.03, "shoulder.offset": 0.03, "elbow.offset": -0.02})
    assert_within(found, {"q.delay": late})


def test_a_latency_of_drives() -> None:
    """A servo follows its controls 12.3 ms late: two steps and a part of one, in which both controls act."""
    time, control, _, q, _ = moved_by_a_servo(4.0, 0.0123)
    sim = fw.Simulation(fw.load(SERVO.format(k=2.0, d=0.05)), shapes=False)
    kinds: list[Parameter | str] = [Parameter("gain", initial=0.8), Parameter("latency", "control")]
    found = fit(sim, Log(time, {"q": noisy(q, 2)}, control=control), kinds)
    assert found.converged
    assert_within(found, {"s.gain": 1.0, "control.latency": 0.0123})
    assert found.deviations[1] < 5e-4
    with pytest.raises(ValueError, match=r"no part 'controls'"):
        fit(sim, Log(time, {"q": q}, control=control), [Parameter("latency", "controls")])


def test_parameters_without_effect_are_named() -> None:
    """Without gravity and with the mass on the axis, a mass moves like armature: only their sum is determined."""
    time, tau, q, _ = driven(pendulum(0.08, 0.03), 2.0, 0.4)
    log = Log(time, {"q": noisy(q[:-1])}, tau=tau)
    sim = fw.Simulation(pendulum(), dt=STEP)
    found = fit(sim, log, ["damping", "armature", "friction"])
    assert found.undetermined == ("friction",)
    assert "not determined by these logs: friction" in str(found)
    assert_within(found, {"hinge.damping": 0.08, "hinge.armature": 0.03})
    both = fit(sim, log, ["armature", Parameter("inertia", "rod")])
    assert len(both.undetermined) > 0
    assert_within(both, {"rod.m": 1.0})  # the prior of the mass, which has no effect by itself
    known = fit(sim, log, ["damping", Parameter("armature", prior=0.03, deviation=1e-6)])
    assert known.values[1] == pytest.approx(0.03, abs=5e-6)


def test_agrees_with_least_squares_of_scipy() -> None:
    """Compare with scipy's least squares on the residuals of one window with a start of its own: the same minimum."""
    optimize = pytest.importorskip("scipy.optimize")
    time, tau, q, _ = driven(two_joints(0.2, 0.02, 0.0, 1.1), 0.75, 1.0)
    y, sim = noisy(q[:-1]), fw.Simulation(two_joints(0.1, 0.02, 0.0), dt=STEP)
    log = Log(time, {"q": Channel(y, noise=NOISE)}, tau=tau)
    found = fit(sim, log, ["damping", Parameter("mass", "lower")], window=0.75, iterations=100)
    moving = fw.Simulation(two_joints(0.1, 0.02, 0.0), dt=STEP)
    P = moving.robot.inertial_parameters

    def residuals(x: Floats) -> Floats:
        own = P.copy()
        own[1] *= x[2] / P[1, 0]
        moving.vary(damping=x[None, :2] / 0.1, parameters=own[None])
        Q, _ = moving.rollout(x[None, 3:5], x[None, 5:7], tau=tau[None])
        return np.asarray(((y - Q[0, : len(y)]) / NOISE).ravel())

    moving.reset(moving.q[None], moving.v[None])
    start = np.concatenate([found.values, found.motions[0].q[0], found.motions[0].v[0]])
    bounds = np.array([1e-3] * 3 + [-np.inf] * 4), np.inf
    scale = np.array([0.1, 0.1, 1.0, 0.1, 0.1, 1.0, 1.0])
    best = optimize.least_squares(residuals, start + 0.01 * scale, x_scale=scale, xtol=1e-12, ftol=1e-12, bounds=bounds)
    cov = np.linalg.inv(best.jac.T @ best.jac)[:3, :3]
    assert np.abs((best.x[:3] - found.values) / found.deviations).max() < 0.1  # the fit stops a tenth of a deviation away
    np.testing.assert_allclose(found.deviations, np.sqrt(np.diagonal(cov)), rtol=0.02)  # of forward differences


def test_a_window_that_starts_far_away_continues_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """One start is so fast that its window turns over, a local minimum of its velocity."""
    time, tau, q, _ = driven(pendulum(0.08, 0.03), 4.0, 0.4)

    def far(*given: Any) -> Starts:
        starts = first_states(*given)
        starts.v[3] += 60.0
        return starts

    monkeypatch.setattr(fitting, "first_states", far)
    log = Log(time, {"hinge": noisy(q[:-1])}, tau=tau)
    found = fit(fw.Simulation(pendulum()), log, ["damping", "armature"])
    assert found.noise["hinge"] == pytest.approx(NOISE, rel=0.1)
    assert_within(found, {"hinge.damping": 0.08, "hinge.armature": 0.03})


BOX = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1" friction="1"/><body name="box"
pos="0 0 0.03"><freejoint name="free"/><geom type="box" size="0.15 0.1 0.03" mass="2" friction="{friction}"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("turns", [False, True])
def test_friction_of_a_box_that_is_pushed(turns: bool) -> None:
    """A force pushes a box across the floor; poses of the box determine the friction of the contacts.

    Without noise of turns, their residuals are errors of the model much smaller than the noise that the log gives.
    """
    seconds, step = 1.6, 2e-3
    time = np.arange(round(seconds / step)) * step
    tau = np.zeros((len(time), 6))
    tau[:, 0] = np.where((time % 0.8) < 0.4, 16.0, 0.0)
    true = fw.Simulation(fw.load(BOX.format(friction=0.55)), contact="rigid")
    robot = fw.load(BOX.format(friction=0.4))
    true.vary(friction=0.55)
    q, _ = true.rollout(true.q[None], true.v[None], tau=tau[None])
    y = noisy(q[0, :-1], 3, 1e-4)
    if not turns:
        y[:, 3:] = q[0, :-1, 3:]
    log = Log(time, {"free": y if turns else Channel(y, noise=1e-4)}, tau=tau)
    found = fit(fw.Simulation(robot, contact="rigid"), log, [Parameter("friction", initial=0.4)], window=0.2)
    assert found.converged
    assert abs(found.values[0] - 0.55) < max(3.5 * found.deviations[0], 1e-3)
    assert found.deviations[0] < 1e-3


TURNED = """<mujoco><option timestep="{step}"/><worldbody><geom type="plane" size="5 5 1" friction=".1"/><body name="body"
pos="0 0 0.0295"><freejoint name="free"/><geom type="{shape}" mass="2" friction="{friction}"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("shape", "friction", "force", "first"), [
    ('box" size="0.15 0.1 0.03', 0.55, 16.0, 0.4), ('box" size="0.15 0.1 0.03', 0.25, 8.0, 0.5),
    ('cylinder" size="0.1 0.03', 0.55, 16.0, 0.4),
])  # fmt: skip
def test_friction_of_a_body_that_is_pushed_off_its_center(shape: str, friction: float, force: float, first: float) -> None:
    """MuJoCo pushes with steps of a quarter; the body slides, turns and rocks. With 0.5 it sticks instead of sliding."""
    step, fine, center = 2e-3, 4, 0.05
    model = mujoco.MjModel.from_xml_string(TURNED.format(step=step / fine, shape=shape, friction=friction))
    data, time = mujoco.MjData(model), np.arange(1200) * step
    q, tau = np.empty((len(time), 7)), np.zeros((len(time), 6))
    for k in range(len(time)):
        q[k] = data.qpos
        push = np.array([force if time[k] % 0.8 < 0.4 else 0.0, 0.0, 0.0])
        tau[k, :3] = data.xmat[1].reshape(3, 3).T @ push
        tau[k, 3:] = np.cross([0.0, center, 0.0], tau[k, :3])
        data.qfrc_applied[:] = *push, *tau[k, 3:]
        mujoco.mj_step(model, data, fine)
    y = noisy(q, 3, 1e-4)
    y[:, 3:] = np.roll(y[:, 3:], -1, axis=1) / np.linalg.norm(y[:, 3:], axis=1, keepdims=True)
    robot = fw.load(TURNED.format(step=step, shape=shape, friction=1.0))
    found = fit(fw.Simulation(robot), Log(time, {"free": y}, tau=tau), [Parameter("friction", initial=first)], window=0.2)
    assert found.converged
    assert found.values[0] == pytest.approx(friction, rel=0.06)


GEARED = """<mujoco><option timestep="{step}"/><worldbody>{drive}<body name="link"><joint name="hinge" axis="0 1 0" {own}/>
<geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" mass="1.5"/></body></worldbody>{tendon}
<actuator><motor joint="{joint}" name="motor"/></actuator></mujoco>"""
DRIVE = """<body name="hinge_drive"><joint name="hinge_drive" axis="0 1 0" damping="0.1" armature="0.03"/>
<inertial pos="0 0 0" mass="1e-12" diaginertia="1e-12 1e-12 1e-12"/></body>"""
TEETH = """<tendon><fixed limited="true" range="-0.015 0.015" solreflimit="0.005 1"><joint joint="hinge_drive" coef="1"/>
<joint joint="hinge" coef="-1"/></fixed></tendon>"""


@pytest.mark.parametrize("encoders", [["hinge_drive", "hinge"], ["hinge_drive"]])
def test_backlash_from_a_log_of_mujoco(encoders: list[str]) -> None:
    """Encoders of the drive, with or without one of the link, determine the gap; MuJoCo's steps are four times shorter."""
    step, fine = 1e-3, 4
    text = GEARED.format(step=step / fine, drive=DRIVE, own="", tendon=TEETH, joint="hinge_drive")
    model = mujoco.MjModel.from_xml_string(text)
    data, time = mujoco.MjData(model), step * np.arange(4000)
    u, q = 1.2 * np.sin(6.0 * time) + 0.8 * np.sin(17.0 * time + 1.0) + 0.5 * np.sin(41.0 * time), np.empty((len(time), 2))
    for k in range(len(time)):
        q[k], data.ctrl[0] = data.qpos, u[k]
        mujoco.mj_step(model, data, fine)
    y = noisy(q, 3, 5e-4)
    plain = GEARED.format(step=step, drive="", own='damping="0.1" armature="0.03"', tendon="", joint="hinge")
    robot = fw.build(fw.read(plain).with_backlash("hinge", 0.06, solref=(0.005, 1.0)))
    log = Log(time, {name: y[:, k : k + 1] for k, name in enumerate(encoders)}, control=u[:, None])
    found = fit(fw.Simulation(robot), log, ["backlash"], window=0.25)
    assert found.converged and found.names == ("hinge.backlash",) and found.units == ("rad",)
    assert abs(found.values[0] - 0.03) < 3.5 * found.deviations[0] + 3e-4  # 1 % for the step
    assert found.deviations[0] < 5e-4


BOUNCING = """<mujoco><option timestep="{step}"/><default><geom solref="{time} {ratio}" solimp="{imp} .003"/></default>
<worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 0.3"><freejoint name="ball"/><geom size="0.05" mass="0.7"/></body>
<body pos="1 0 0.1"><freejoint name="box"/><geom type="box" size="0.15 0.1 0.03" mass="2"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("fine", "most"), [(1, 0.0), (4, 0.06)])
def test_softness_of_contacts_from_a_log_of_mujoco(fine: int, most: float) -> None:
    """A ball and a box bounce: with MuJoCo's steps of the same length the truth is within the errors, else within 6 %."""
    step, time, ratio, d = 1e-3, 0.04, 0.4, (0.6, 0.95)
    impedance = "{} {}".format(*d)
    model = mujoco.MjModel.from_xml_string(BOUNCING.format(step=step / fine, time=time, ratio=ratio, imp=impedance))
    data, q = mujoco.MjData(model), np.empty((1000, 14))
    data.qvel[:2] = 0.3, -0.2
    for k in range(len(q)):
        q[k] = data.qpos
        mujoco.mj_step(model, data, fine)
    for turn in (q[:, 3:7], q[:, 10:]):
        turn[:] = np.roll(turn, -1, axis=1)  # (x, y, z, w)
    log = Log(step * np.arange(len(q)), {"q": noisy(q, 3, 1e-4)})
    kinds, truth = ["time_constant", "damping_ratio", "least_impedance"], (time / 0.03, ratio / 0.7, d[0] / 0.8)
    found = fit(fw.Simulation(fw.load(BOUNCING.format(step=step, time=0.03, ratio=0.7, imp=f"0.8 {d[1]}"))), log, kinds)
    assert found.converged
    for value, deviation, x in zip(found.values, found.deviations, truth, strict=True):
        assert abs(value - x) < 3.5 * deviation + most * x
        assert deviation < 0.05 * x
    two = np.tile(found.simulation.q, (2, 1))
    assert found.simulation.rollout(two, steps=3).q.shape == (2, 4, 14)


FOOT = """<mujoco><option timestep=".002"/><default><geom solref=".1 1"/></default><worldbody><geom type="plane" size="5 5 1"/>
<body name="trunk" pos="0 0 .52">
<joint name="x" type="slide" axis="1 0 0" damping="9"/><joint name="z" type="slide" axis="0 0 1" damping="9"/>
<inertial pos="0 0 0" mass="2" diaginertia=".02 .02 .02"/>
<body name="leg"><joint name="hip" axis="0 1 0" damping="2" stiffness="40" armature=".02"/>
<inertial pos="0 0 -.2" mass="1" diaginertia=".02 .02 .01"/><geom name="foot" size=".03" pos="{} 0 {}"/></body></body>
</worldbody></mujoco>"""


WHEEL = """<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="5 5 1"/>
<body pos="0 0 .099"><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1" damping="20"/>
<inertial pos="0 0 0" mass="2" diaginertia=".02 .02 .02"/><body><joint name="wheel" axis="0 1 0" armature=".02" damping=".02"/>
<inertial pos="0 0 0" mass=".5" diaginertia=".01 .01 .01"/>
<geom name="rim" type="cylinder" euler="90 0 0" size="{} .03"/></body></body>
<body pos="1 0 .2"><joint name="drop" type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia=".02 .02 .02"/>
<geom name="box" type="box" size=".1 .08 {}"/></body></worldbody></mujoco>"""


def test_the_radius_of_a_wheel_and_the_size_of_a_box_from_a_log_of_mujoco() -> None:
    """A wheel rolls, and a box falls on a floor; the size of the box aside has no effect."""
    model = mujoco.MjModel.from_xml_string(WHEEL.format(0.1, 0.05))
    data, time, q = mujoco.MjData(model), 2e-3 * np.arange(1000), np.empty((1000, 4))
    tau = np.outer(np.sin(5.0 * time), [0.0, 0.0, 0.5, 0.0])
    for k in range(len(time)):
        q[k], data.qfrc_applied[:] = data.qpos, tau[k]
        mujoco.mj_step(model, data)
    log = Log(time, {"q": noisy(q, 3, 1e-4)}, tau=tau)
    kinds = [Parameter("radius", "rim"), Parameter("size", "box")]
    found = fit(fw.Simulation(fw.load(WHEEL.format(0.095, 0.04))), log, kinds, window=0.2)
    assert found.converged and found.names == ("rim.radius", *(f"box.size[{i}]" for i in range(3)))
    assert set(found.undetermined) == {"box.size[0]", "box.size[1]"} and found.units == ("m",) * 4
    assert_within(found, {"rim.radius": 0.1, "box.size[2]": 0.1})
    assert found.deviations[[0, 3]].max() < 1e-3
    sizes = found.simulation.varied("sizes")
    assert sizes is not None
    np.testing.assert_allclose(sizes[0, 1:3, 0], [found.values[0], 0.1])
    with pytest.raises(ValueError, match=r"Parameter\('radius'\) needs names in `of`; there are rim$"):
        fit(fw.Simulation(fw.load(WHEEL.format(0.1, 0.05))), log, ["radius"])
    with pytest.raises(ValueError, match=r"shape 'box' is a box, whose radius cannot be fitted; use Parameter\('size'\)"):
        fit(fw.Simulation(fw.load(WHEEL.format(0.1, 0.05))), log, [Parameter("radius", "box")])


def test_the_position_of_a_foot_from_a_log_of_mujoco() -> None:
    """A leg lands and slides on a foot that is elsewhere than in the file. Its coordinate along the hinge has no effect."""
    true = 0.03, -0.47
    model = mujoco.MjModel.from_xml_string(FOOT.format(*true))
    data, time, q = mujoco.MjData(model), 2e-3 * np.arange(1000), np.empty((1000, 3))
    tau = np.sin(np.outer(time, [5.0, 7.0, 9.0])) * [6.0, 12.0, 4.0]
    for k in range(len(time)):
        q[k], data.qfrc_applied[:] = data.qpos, tau[k]
        mujoco.mj_step(model, data)
    log = Log(time, {"q": noisy(q, 3, 1e-4)}, tau=tau)
    found = fit(fw.Simulation(fw.load(FOOT.format(0.02, -0.475))), log, [Parameter("position", "foot")], window=0.2)
    assert found.converged and found.names == tuple(f"foot.position.{axis}" for axis in "xyz")
    assert found.undetermined == ("foot.position.y",) and found.units == ("m",) * 3
    assert_within(found, {"foot.position.x": true[0], "foot.position.z": true[1]})
    assert found.deviations[[0, 2]].max() < 1e-3
    offsets = found.simulation.varied("shapes")
    assert offsets is not None
    np.testing.assert_allclose(offsets[0, 1], found.values - np.array([0.02, 0.0, -0.475]))


@pytest.mark.parametrize("kind", [fw.JointType.FLOATING, fw.JointType.SPHERICAL, fw.JointType.PLANAR])
def test_states_from_noisy_turns_are_valid(kind: fw.JointType) -> None:
    """Starts of windows have unit quaternions, cosines and sines, although noise changes the length of measured ones."""
    robot = fw.build(fw.generators.random_tree(2, rng=4, joint_types=(kind.value,)))
    sim, time = fw.Simulation(robot, dt=STEP, shapes=False), np.arange(30) * STEP
    for q, some in ((robot.neutral(), slice(None)), (robot.random_configuration(rng=1), slice(None, None, 10))):
        log = Log(time[some], {"q": noisy(np.tile(q, (30, 1)), 2, 0.05)[some]})
        sources = {"q": source_of(sim, "q")}
        read = [checked_log(sim, log, sources)]
        starts = first_states(sim, read, sources, windows_of(read, 10), {}, {})
        sim.reset(*starts)  # raises for others
        assert np.abs(robot.difference(q, starts.q)).max() < 0.3


def test_a_four_bar_linkage() -> None:
    """The robot has one independent velocity and four joints in a loop; the encoder of a dependent joint is enough."""
    description = fw.robots.four_bar((0.3, 0.9, 0.7, 1.0))  # a crank that turns, without singular configurations
    robot, hidden = fw.build(description), fw.build(description.with_joint("joint1", damping=0.3, armature=0.4))
    start = robot.random_configuration(rng=0)
    time, tau, q, _ = driven(hidden, 3.0, 0.5, start=start)
    log = Log(time, {"joint3": noisy(q[:-1, 2])}, tau=tau)
    sim = fw.Simulation(robot, dt=STEP, q=start)
    found = fit(sim, log, [Parameter("damping", "joint1"), Parameter("armature", "joint1")], window=0.25)
    assert found.converged
    assert_within(found, {"joint1.damping": 0.3, "joint1.armature": 0.4})


def test_outliers_matter_less_with_robust_laws() -> None:
    time, tau, q, _ = driven(pendulum(0.08, 0.03), 3.0, 0.4)
    y, rng = noisy(q[:-1]), np.random.default_rng(3)
    y[rng.random(y.shape) < 0.05] += 0.3
    log, sim = Log(time, {"q": y}, tau=tau), fw.Simulation(pendulum(), dt=STEP)
    for law in ("huber", "student"):
        found = fit(sim, log, ["damping", "armature"], law=law)
        assert_within(found, {"hinge.damping": 0.08, "hinge.armature": 0.03})
        assert found.noise["q"][0] < 4.0 * NOISE
    assert fit(sim, log, ["damping"]).noise["q"][0] > 0.05


def test_robust_errors_are_those_of_white_noise_where_it_is_white() -> None:
    time, tau, q, _ = driven(pendulum(0.08, 0.03), 30.0, 0.4)
    log, sim = Log(time, {"q": noisy(q[:-1])}, tau=tau), fw.Simulation(pendulum(), dt=STEP)
    of_noise, robust = (fit(sim, log, ["damping", "armature"], errors=e) for e in ("noise", "robust"))
    ratio = robust.deviations / of_noise.deviations
    assert (ratio >= 1.0).all() and (ratio < 1.35).all()  # of 60 windows: 1 / sqrt(120) = 9 %
    assert of_noise.correlation < 0.1


SERVO = """<mujoco><option timestep="0.005"/><worldbody><body name="a"><joint name="a" axis="0 1 0" damping=".1"
stiffness="{k}"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03" mass="1"/><body name="b" pos="0 0 -.4"><joint
name="b" type="ball" damping="{d}"/><geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".03" mass="1"/></body></body>
</worldbody><actuator><position name="s" joint="a" kp="20" kv="1"/></actuator></mujoco>"""


def moved_by_a_servo(seconds: float, late: float = 0.0) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return time, controls, forces, and states of the robot above with a stiffness of 2 and a damping of 0.05.

    The drive follows controls `late` seconds later; then there are no forces.
    """
    time: Floats = np.arange(round(seconds / STEP)) * np.float64(STEP)
    control, tau = np.sin(9.0 * time)[:, None], 0.2 * np.sin(np.outer(time, [0.0, 5.0, 7.0, 9.0]))
    true = fw.Simulation(fw.load(SERVO.format(k=2.0, d=0.05)), shapes=False)
    whole, part = divmod(late / STEP, 1.0)
    first, second = (control[np.maximum(np.arange(len(time)) - int(whole) - k, 0)] for k in (0, 1))
    acting = (1.0 - part) * first + part * second
    q, v = true.rollout(true.q[None], true.v[None], tau=(tau if late == 0.0 else 0.0 * tau)[None], control=acting[None])
    return time, control, tau, q[0, :-1], v[0, :-1]


def test_derivatives_of_motions_are_those_of_differences() -> None:
    """Compare the normal equations with those of perturbed motions, for a servo, a spring, a ball joint and inertias."""
    time, control, tau, q, v = moved_by_a_servo(0.5)
    sim = fw.Simulation(fw.load(SERVO.format(k=2.0, d=0.05)), shapes=False)
    log = Log(time, {"q": q, "v": v}, tau=tau, control=control)
    sources = {name: source_of(sim, name) for name in log.measured}
    kinds: list[Parameter | str] = [
        "gain", Parameter("stiffness", "a"), "damping", Parameter("inertia", "b"), "armature", Parameter("mass", "a"),
        Parameter("latency", INPUTS, shared=True, initial=0.3 * STEP),
    ]  # fmt: skip
    unknowns = Unknowns(sim, kinds, list(sources))
    shooting = Shooting(unknowns, [checked_log(sim, log, sources)], sources, windows_of([checked_log(sim, log, sources)], 33))
    assert shooting.by_equations
    assert_slopes_are_differences(shooting, q, v + 0.1)


def assert_slopes_are_differences(shooting: Shooting, q: Floats, v: Floats) -> None:
    """Compare the normal equations from slopes of steps with those of perturbed motions, for windows that start in a motion."""
    x, first = shooting.unknowns.field("initial"), shooting.windows.first
    starts, places = Starts(q[first], v[first]), shooting.places(x)
    residuals, motion = shooting.predicted(x, starts, places, x)
    exact = shooting.grams(x, starts, motion, places, residuals)
    shooting.by_equations = False
    near = shooting.grams(x, starts, motion, places, residuals)
    for name in shooting.sources:
        a, b = exact.sums[name].sum(axis=(0, 1)), near.sums[name].sum(axis=(0, 1))
        size = np.sqrt(np.diagonal(b)) + 1e-6
        assert np.abs((a - b) / np.outer(size, size)).max() < 2e-3  # of forward differences


STICKY = """<mujoco><option timestep=".002"/><worldbody>{floor}<body><joint name="a" axis="0 1 0" frictionloss=".5"
armature=".02" solimpfriction=".5 .6 .01"/><inertial pos="0 0 -.2" mass="1" diaginertia=".02 .02 .01"/>
<body name="b" pos="0 0 -.4">
<joint name="b" axis="0 1 0" frictionloss=".6" range="-20 20" solreflimit=".03 .6" damping=".05" armature=".01"/>
<geom type="sphere" size=".03" pos="0 0 -.4" mass="0"/><inertial pos=".03 .01 -.2" mass=".5" diaginertia=".01 .01 .005"/></body>
</body></worldbody></mujoco>"""
FLOOR = '<geom type="plane" size="5 5 1" pos="0 0 -.79" solref=".1 1" solimp=".5 .6 .01"/>'


@pytest.mark.parametrize(("floor", "effort"), [("", 0.6), ("", 6.0), (FLOOR, 0.6)])
def test_derivatives_by_inertias_include_the_compliance(floor: str, effort: float) -> None:
    """Dry friction sticks, or slides up to a limit, or a foot presses on a floor: their compliance depends on inertias."""
    time = 2e-3 * np.arange(100)
    sim = fw.Simulation(fw.load(STICKY.format(floor=floor)), q=[0.1, 0.3])
    tau = effort * np.sin(np.outer(time, [9.0, 18.0]))
    motion = sim.rollout(np.array([[0.1, 0.3]]), np.zeros((1, 2)), tau=tau[None])
    q, v = (x[0, :-1] for x in (motion.q, motion.v))
    log, sources = Log(time, {"q": q}, tau=tau), {"q": source_of(sim, "q")}
    unknowns, read = Unknowns(sim, ["armature", "mass"], ["q"]), [checked_log(sim, log, sources)]
    assert unknowns.as_forces.tolist() == [not floor] * 4
    assert_slopes_are_differences(Shooting(unknowns, read, sources, windows_of(read, 33)), q, v + 0.01)


def test_dry_friction_from_zero() -> None:
    """A fit that starts without dry friction finds it: its slope at zero is that of friction against the velocity."""
    time, tau, q, _ = driven(two_joints(f=0.2), 2.0, 0.8)
    log = Log(time, {"q": noisy(q[:-1], 1, 1e-4)}, tau=tau)
    found = fit(fw.Simulation(two_joints(f=0.0), dt=STEP), log, ["dry_friction"])
    assert found.converged and not found.undetermined
    np.testing.assert_allclose(found.values, 0.2, atol=0.01)


def test_gains_stiffness_and_a_ball_joint() -> None:
    """Fit a servo's gain, a spring and the damping of a ball joint, which is measured by quaternions with noise."""
    time, control, tau, q, _ = moved_by_a_servo(3.0)
    sim = fw.Simulation(fw.load(SERVO.format(k=1.0, d=0.1)), shapes=False)
    kinds: list[Parameter | str] = [Parameter("gain", initial=0.8), Parameter("stiffness", "a"), Parameter("damping", "b")]
    found = fit(sim, Log(time, {"q": noisy(q, 2)}, tau=tau, control=control), kinds)
    assert found.converged
    assert_within(found, {"s.gain": 1.0, "a.stiffness": 2.0, "b.damping": 0.05})


def test_an_accelerometer_and_a_torque_sensor() -> None:
    """Fit a mass and a damping to the sensors of a pendulum whose angle is not measured."""
    text = """<mujoco><option timestep="0.005"/><worldbody><body name="rod"><joint name="hinge" axis="0 1 0" damping="{d}"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="{m}"/><site name="tip" pos="0 0 -0.5"/></body></worldbody>
    <sensor><accelerometer name="acc" site="tip"/><gyro name="gyro" site="tip"/></sensor></mujoco>"""
    true, time = fw.Simulation(fw.load(text.format(d=0.08, m=1.2)), shapes=False), np.arange(300) * STEP
    tau, acc, gyro = 2.0 * np.sin(7.0 * time)[:, None], np.empty((300, 3)), np.empty((300, 3))
    for k in range(300):
        readings = np.ravel(true.sensors())
        acc[k], gyro[k] = readings[:3], readings[3:]
        true.step(tau[k])
    log = Log(time, {"acc": noisy(acc, 3, 0.05), "gyro": noisy(gyro, 4, 1e-3)}, tau=tau)
    sim = fw.Simulation(fw.load(text.format(d=0.05, m=1.0)), shapes=False)
    found = fit(sim, log, ["damping", "mass"])
    assert found.converged
    assert_within(found, {"hinge.damping": 0.08, "rod.mass": 1.2})
    np.testing.assert_allclose(found.noise["gyro"][1], 1e-3, rtol=0.15)


def test_logs_that_cannot_be_fitted_are_refused() -> None:
    sim, time = fw.Simulation(pendulum(), dt=STEP), np.arange(20) * STEP
    good = {"q": np.zeros((20, 1))}
    with pytest.raises(ValueError, match=r"no joint or sensor 'hinges'.*hinge"):
        fit(sim, Log(time, {"hinges": np.zeros(20)}), ["damping"])
    with pytest.raises(ValueError, match=r"'q' must have shape \(20, 1\)"):
        fit(sim, Log(time, {"q": np.zeros((19, 1))}), ["damping"])
    bounded = fw.read(PENDULUM.format(damping=0.05, armature=0.02)).with_joint("hinge", limits=(-2.0, 2.0))
    with pytest.raises(ValueError, match=r"'q' has joint 'hinge' at 90, far beyond its limits from -2 to 2; .* not degrees"):
        fit(fw.Simulation(fw.build(bounded), dt=STEP), Log(time, {"q": np.full((20, 1), 90.0)}), ["damping"])
    with pytest.raises(ValueError, match="ascending"):
        fit(sim, Log(time[::-1], good), ["damping"])
    with pytest.raises(ValueError, match="Parameter: kind must be"):
        fit(sim, Log(time, good), ["dampings"])
    with pytest.raises(ValueError, match="no part 'rot'"):
        fit(sim, Log(time, good), [Parameter("mass", "rot")])
    with pytest.raises(ValueError, match="outside of its bounds"):
        fit(sim, Log(time, good), [Parameter("damping", upper=0.01)])
    with pytest.raises(ValueError, match="twice"):
        fit(sim, Log(time, good), ["damping", Parameter("damping", "hinge")])
    with pytest.raises(ValueError, match="empty"):
        fit(sim, Log(time), ["damping"])


def test_steps_take_the_means_of_inputs() -> None:
    """Inputs at other rates than the step, as in a log of a faster controller, act by their means over each step."""
    sim, rng = fw.Simulation(pendulum(), dt=0.01), np.random.default_rng(0)
    time = np.sort(rng.uniform(0.0, 0.2, 37))
    tau = rng.standard_normal((37, 1))
    log = Log(time, {"q": Channel(np.zeros(2), time=time[[0, -1]])}, tau=tau)
    read = checked_log(sim, log, {"q": source_of(sim, "q")})
    fine = (np.arange(read.steps)[:, None] + (np.arange(20000) + 0.5) / 20000) * 0.01
    held = tau[np.searchsorted(time - time[0], fine, side="right") - 1]
    assert read.tau is not None
    np.testing.assert_allclose(read.tau, held.mean(axis=1), atol=2e-3)


def test_names_of_shared_parameters_stay_short() -> None:
    robot = fw.load(fw.example("ur5_robot"))
    names = [j.name for j in robot.joints][:6]
    unknowns = Unknowns(fw.Simulation(robot), [Parameter("damping", names, shared=True)], ["q"])
    assert unknowns.list[0].name == "shoulder_pan_joint+5 others.damping"
