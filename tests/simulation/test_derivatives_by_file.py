"""Tests of derivatives of steps with the contact law of MJCF files against central differences of whole steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.simulation.derivatives import StepDerivatives
from oracles.states import Array

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start", "ignore:.*not simulated")

FLOOR = '<geom type="plane" size="0 0 1" condim="3"/>'
LINK = '<geom type="capsule" size=".02" fromto="0 0 0 0 0 -.2" contype="0" conaffinity="0"/>'
SMALL = 1e-6


def differences(sim: fw.Simulation, tau: Array, control: Array) -> list[Array]:
    """Return central differences of the step from the current state over 1e-6 and 1e-7."""
    robot, state = sim.robot, sim.state
    nv, q, v = robot.nv, state.q.copy(), state.v.copy()

    def after(x: Array) -> tuple[Array, Array]:
        sim.state = state
        sim.q, sim.v = robot.integrate(q, x[:nv]), v + x[nv : 2 * nv]
        sim.step(tau + x[2 * nv : 3 * nv], control=control + x[3 * nv :])
        return sim.q, sim.v

    columns = []
    for step in (SMALL, 0.1 * SMALL):
        each = []
        for e in step * np.eye(3 * nv + len(control)):
            (qa, va), (qb, vb) = after(e), after(-e)
            each.append(np.concatenate([robot.difference(qb, qa), va - vb]) / (2.0 * step))
        columns.append(np.stack(each, axis=1))
    sim.state = state
    return columns


def agreed(sim: fw.Simulation, tau: Array, control: Array, most: float = 1e-6) -> StepDerivatives:
    """Return the derivatives of the next step, compared with differences, where these do not cross a boundary themselves."""
    found = sim.derivatives(tau, control if len(control) else None)
    expected, finer = differences(sim, tau, control)
    whole = np.hstack([found.A, found.B, found.B_control])[:, : expected.shape[1]]
    scale = np.maximum(1.0, np.abs(expected).max(axis=0))
    error = np.minimum(*(np.abs(whole - x).max(axis=0) / scale for x in (expected, finer)))  # stiff contacts, and rounding
    smooth = np.abs(expected - finer).max(axis=0) / scale < 1e-3
    assert smooth.mean() > 0.9
    assert error[smooth].max() < most
    return found


def watched(
    xml: str, steps: int = 60, every: int = 12, seed: int = 0, most: float = 1e-6, **options: Any
) -> list[StepDerivatives]:
    """Compare the derivatives of some steps of a robot under random controls and forces."""
    sim = fw.Simulation(fw.load(f"<mujoco>{xml}</mujoco>", **options), contact="file")
    rng, found = np.random.default_rng(seed), []
    for t in range(steps):
        tau, control = 0.1 * rng.standard_normal(sim.robot.nv), rng.uniform(-0.5, 0.5, sim.forces.nu)
        if t % every == every - 1:
            found.append(agreed(sim, tau, control, most))
        sim.step(tau, control=control if len(control) else None)
    return found


def walker(cone: str = "pyramidal", integrator: str = "Euler", condim: int = 3, extra: str = "", joint: str = "") -> str:
    """Return a floating body with two legs of different shapes, limits, friction, damping and motors, on a floor."""
    legs = "".join(
        f'<body pos="0 {y} -.1"><joint name="hip{i}" axis="0 1 0" range="-20 20" limited="true" frictionloss=".1" {joint}/>'
        f'<geom type="capsule" size=".04 .1" pos="0 0 -.15"/>'
        f'<body pos="0 0 -.3"><joint name="ankle{i}" axis="{axis}" damping=".05" stiffness="2" {joint}/>{foot}</body></body>'
        for i, (y, axis, foot) in enumerate(
            (
                (0.1, "0 1 0", '<geom type="box" size=".1 .05 .03"/>'),
                (-0.1, "1 0 0", '<geom type="ellipsoid" size=".1 .06 .04"/>'),
            )
        )
    )
    return (
        f'<option cone="{cone}" integrator="{integrator}" timestep=".004" impratio="2"/>'
        f'<default><geom condim="{condim}" friction=".8 .02 .01"/></default>'
        f"<worldbody>{FLOOR}<body pos='0 0 .42'><freejoint/><geom type='box' size='.1 .15 .08'/>{legs}</body></worldbody>"
        f'<actuator><motor joint="hip0" gear="5"/><position joint="hip1" kp="20" kv="1"/><motor joint="ankle0" gear="2"/>'
        f"</actuator>{extra}"
    )


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_a_walker_on_its_feet(cone: str, integrator: str) -> None:
    assert len(watched(walker(cone, integrator))) == 5


@pytest.mark.parametrize("integrator", ["implicitfast", "RK4"])
def test_a_walker_with_loops(integrator: str) -> None:
    """Check joints that follow others, which are solved for by the factor of the contact problem."""
    extra = '<equality><joint joint1="ankle0" joint2="hip0" polycoef="0 -.8 .2 0 0"/></equality>'
    xml = walker(integrator=integrator, extra=extra, joint='armature=".01"')
    assert fw.load(f"<mujoco>{xml}</mujoco>").closed
    watched(xml)


def test_limits_of_a_robot_that_touches_nothing() -> None:
    legs = "".join(
        f'<body pos="0 0 -.2"><joint axis="0 1 0" range="-5 5" limited="true" frictionloss=".02"/>{LINK}' for _ in range(3)
    )
    watched(f"<option timestep='.002'/><worldbody>{legs}{'</body>' * 3}</worldbody>", steps=200, every=40)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("condim", [1, 4, 6])
def test_friction_of_all_kinds(cone: str, condim: int) -> None:
    watched(walker(cone, condim=condim))


def test_bodies_that_touch_each_other() -> None:
    """Check a ball, capsules and a box in a bowl of capsules on hinges with springs."""
    bowl = "".join(
        f'<body pos="{x} {y} .02"><joint axis="{axis} 0" stiffness="5" damping=".1"/>'
        f'<geom type="capsule" size=".03" fromto="{-y} {x} .02 {y} {-x} .02" contype="2"/></body>'
        for x, y, axis in ((0.12, 0.0, "0 1"), (-0.12, 0.0, "0 1"), (0.0, 0.12, "1 0"), (0.0, -0.12, "1 0"))
    )
    free = (
        "<body pos='0 0 .1'><freejoint/><geom type='sphere' size='.05' conaffinity='3'/></body>"
        "<body pos='.02 .01 .2'><freejoint/><geom type='capsule' size='.03 .05' euler='80 0 10' conaffinity='3'/></body>"
        "<body pos='-.02 .02 .3'><freejoint/><geom type='box' size='.04 .05 .03' euler='10 20 30' conaffinity='3'/></body>"
        "<body pos='.01 -.02 .4'><freejoint/><geom type='capsule' size='.02 .04' euler='10 60 30' conaffinity='3'/></body>"
    )
    xml = f"<option timestep='.002' cone='elliptic'/><worldbody>{FLOOR}{bowl}{free}</worldbody>"
    watched(xml, steps=240, every=40)


def test_softness_that_varies_with_the_gap_of_limits_and_contacts() -> None:
    soft = "<default><geom solimp='.3 .9 .05 .4 3' solref='.02 .7' margin='.01'/>"
    soft += "<joint solimplimit='.2 .95 .1 .3 2.5' solreflimit='-300 -5'/></default>"
    xml = (
        f"{soft}<worldbody>{FLOOR}<body pos='0 0 .1'><joint type='slide' axis='0 0 1'/><joint axis='0 1 0' range='-5 5' "
        "limited='true' ref='0'/><geom type='box' size='.1 .1 .05' mass='2'/></body></worldbody>"
    )
    watched(xml, steps=100, every=20)


def test_tendons_with_limits_friction_springs_and_muscles() -> None:
    xml = """
    <option timestep=".002" integrator="implicitfast"/>
    <worldbody><geom type="plane" size="0 0 1" pos="0 0 -.9"/>
      <site name="s0" pos=".1 0 .1"/>
      <geom name="pulley" type="cylinder" size=".03 .1" pos=".05 0 -.1" euler="90 0 0" contype="0" conaffinity="0"/>
      <body><joint name="a" axis="0 1 0" damping=".1"/><geom type="capsule" size=".04" fromto="0 0 0 0 0 -.4"/>
        <site name="s1" pos=".04 0 -.3"/>
        <body pos="0 0 -.4"><joint name="b" axis="0 1 0" damping=".1"/><geom type="capsule" size=".04" fromto="0 0 0 0 0 -.4"/>
          <site name="s2" pos=".04 0 -.2"/></body></body></worldbody>
    <tendon>
      <spatial name="t" limited="true" range="0 .71" frictionloss=".5" stiffness="30" damping="1" springlength=".6">
        <site site="s0"/><geom geom="pulley"/><site site="s1"/><site site="s2"/></spatial>
      <fixed name="f" limited="true" range="-.3 .3"><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/></fixed>
    </tendon>
    <actuator><muscle tendon="t" ctrlrange="0 1"/><general joint="b" dyntype="filter" dynprm=".1" gainprm="5"/>
      <motor tendon="f" gear="2"/></actuator>"""
    watched(xml, steps=120, every=24)


def test_springs_of_balls_gravity_compensation_and_fluids() -> None:
    xml = """
    <option timestep=".002" density="100" viscosity=".5" wind="1 0 .5"/>
    <worldbody><geom type="plane" size="0 0 1" pos="0 0 -.5"/>
      <body gravcomp=".7"><joint type="ball" stiffness="3" damping=".1"/>
        <geom type="capsule" size=".04" fromto="0 0 0 .1 0 -.3"/>
        <body pos=".1 0 -.3"><joint axis="0 1 0" stiffness="2" springref="20" damping=".05" frictionloss=".05"/>
          <geom type="ellipsoid" size=".1 .05 .03" pos="0 0 -.1" fluidshape="ellipsoid"/></body></body>
      <body pos=".6 0 .1"><freejoint/><geom type="box" size=".1 .05 .03"/></body></worldbody>"""
    watched(xml, steps=400, every=80, most=2e-6)


def test_equalities_that_yield() -> None:
    xml = """
    <option timestep=".002"/>
    <worldbody><body><joint name="a" axis="0 1 0"/><geom type="capsule" size=".04" fromto="0 0 0 0 0 -.4"/>
      <body pos="0 0 -.4"><joint name="b" axis="0 1 0"/><geom type="capsule" size=".03" fromto="0 0 0 0 0 -.3"/></body></body>
      <body name="c" pos=".5 0 0"><joint name="c" axis="0 1 0"/><geom type="capsule" size=".04" fromto="0 0 0 0 0 -.4"/></body>
      <body name="d" pos=".5 .1 -.4"><freejoint/><geom type="box" size=".05 .05 .05"/></body></worldbody>
    <equality><joint joint1="b" joint2="a" polycoef="0 .5 .3 0 0" solimp=".5 .9 .2 .5 2"/>
      <connect body1="c" body2="d" anchor="0 0 -.4" solimp=".4 .9 .1 .5 2"/></equality>"""
    watched(xml, steps=100, every=20, equalities="compliant")


def test_contacts_between_two_states_are_doubtful_and_others_are_not() -> None:
    """Check a ball at the very edge of contact, beside one that rests, and a limit there."""
    xml = (
        "<worldbody><geom type='plane' size='0 0 1'/>"
        "<body name='edge' pos='0 0 .1'><freejoint/><geom name='edge' type='sphere' size='.1'/></body>"
        "<body name='low' pos='1 0 .0999'><freejoint/><geom name='low' type='sphere' size='.1'/></body></worldbody>"
    )
    sim = fw.Simulation(fw.load(f"<mujoco>{xml}</mujoco>"), contact="file")
    for _ in range(3):
        sim.step()
    assert sim.derivatives().doubtful == ()
    sim.reset()
    sim.q = np.where(np.arange(14) == 2, 0.1 - 1e-14, sim.q)
    [name] = sim.derivatives().doubtful
    assert "edge" in name


def test_what_has_no_derivative_is_refused_with_what_to_do() -> None:
    sticky = walker(extra="") + ""
    xml = sticky.replace("</actuator>", '<adhesion body="foot" ctrlrange="0 1" gain="5"/></actuator>')
    xml = xml.replace('<body pos="0 0 -.3">', '<body pos="0 0 -.3" name="foot">', 1)
    sim = fw.Simulation(fw.load(f"<mujoco>{xml}</mujoco>"), contact="file", integrator="semi-implicit")
    with pytest.raises(NotImplementedError, match="adhesion"):
        sim.derivatives()
    muscle = '<general joint="ankle1" dyntype="filter" dynprm=".1"/></actuator>'
    xml = walker(integrator="RK4").replace("</actuator>", muscle)
    with pytest.raises(NotImplementedError, match=r"by 'rk4', within which activations .* use the integrator 'semi-implicit'"):
        fw.Simulation(fw.load(f"<mujoco>{xml}</mujoco>"), contact="file").derivatives()
