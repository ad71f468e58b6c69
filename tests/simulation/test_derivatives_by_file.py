"""Tests of derivatives of steps with the contact law of MJCF files against central differences of whole steps."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.simulation.derivatives.fleet_derivatives import StepDerivatives
from simulation.step_differences import SMALL, agreed
from simulation.step_differences import watched as steps_watched
from simulation.test_steps_of_mujoco import IMPLICIT

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start", "ignore:.*not simulated")

FLOOR = '<geom type="plane" size="0 0 1" condim="3"/>'
LINK = '<geom type="capsule" size=".02" fromto="0 0 0 0 0 -.2" contype="0" conaffinity="0"/>'


def watched(xml: str, options: dict[str, Any] | None = None, **how: Any) -> list[StepDerivatives]:
    """Compare the derivatives of some steps of a robot under random controls and forces."""
    return steps_watched(fw.Simulation(fw.load(f"<mujoco>{xml}</mujoco>", **(options or {})), contact="file"), **how)


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


def test_two_bodies_on_balls_in_stages() -> None:
    """Check joints that turn about three axes, at different rows, in stages that are differentiated one after the other."""
    leg = '<body pos="{} 0 -.1"><joint type="ball" damping=".05"/><geom type="capsule" size=".04 .1" pos="0 .02 -.16"/></body>'
    xml = (
        '<option integrator="RK4" timestep=".004"/><worldbody>'
        f'{FLOOR}<body pos="0 0 .38"><freejoint/><geom type="box" size=".2 .1 .05"/>{leg.format(0.15)}{leg.format(-0.15)}'
        "</body></worldbody>"
    )
    assert len(watched(xml)) == 5


def test_rotations_of_a_radian_in_stages() -> None:
    """Check bodies in the air that turn so fast that their rotation vectors have other rates than angular velocities."""
    link = '<body pos="{}"><joint type="ball" damping=".1"/><geom type="box" size=".1 .05 .07" pos=".1 0 0"/></body>'
    xml = f"""<option integrator="RK4" timestep=".05"/><worldbody><body pos="0 0 9"><freejoint/>
    <geom type="box" size=".1 .2 .3" pos=".1 0 .1"/>{link.format(".4 0 0")}{link.format("0 0 .6")}</body></worldbody>"""
    sim = fw.Simulation(fw.load(f"<mujoco>{xml}</mujoco>"), contact="file")
    rng = np.random.default_rng(0)
    for _ in range(5):
        sim.v = rng.normal(scale=8.0, size=sim.robot.nv)
        agreed(sim, rng.normal(size=sim.robot.nv), np.zeros(0))


@pytest.mark.parametrize("integrator", ["implicitfast", "RK4"])
def test_a_walker_with_loops(integrator: str) -> None:
    """Check joints that follow others, which are solved for by the factor of the contact problem."""
    extra = '<equality><joint joint1="ankle0" joint2="hip0" polycoef="0 -.8 .2 0 0"/></equality>'
    xml = walker(integrator=integrator, extra=extra, joint='armature=".01"')
    assert fw.load(f"<mujoco>{xml}</mujoco>").closed
    watched(xml, {"equalities": "exact"})


def test_limits_of_a_robot_that_touches_nothing() -> None:
    legs = "".join(
        f'<body pos="0 0 -.2"><joint axis="0 1 0" range="-5 5" limited="true" frictionloss=".02"/>{LINK}' for _ in range(3)
    )
    watched(f"<option timestep='.002'/><worldbody>{legs}{'</body>' * 3}</worldbody>", steps=200, every=40)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("condim", [1, 4, 6])
def test_friction_of_all_kinds(cone: str, condim: int) -> None:
    watched(walker(cone, condim=condim))


@pytest.mark.parametrize(("integrator", "step"), [("Euler", 0.001), ("implicitfast", 0.01)])
def test_dampers_along_lengths_and_free_bodies(integrator: str, step: float) -> None:
    """Check what acts at the end of a step: also along strings, and of a body that spins and touches the floor."""
    xml = IMPLICIT.format(integrator=integrator, step=step).removeprefix("<mujoco>").removesuffix("</mujoco>")
    watched(xml.replace("<worldbody>", f"<worldbody>{FLOOR}"), steps=60, every=12)


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


def test_bodies_on_shapes_of_the_world_that_come_first() -> None:
    """Check a cube and a capsule on a fixed box, whose shape has a lower number than theirs."""
    xml = (
        "<option timestep='.002'/><worldbody><geom type='box' size='.5 .5 .1'/>"
        "<body pos='0 0 .1499' euler='0 0 20'><freejoint/><geom type='box' size='.05 .05 .05' mass='.5'/></body>"
        "<body pos='.2 0 .13' euler='89 0 10'><freejoint/><geom type='capsule' size='.03 .1'/></body></worldbody>"
    )
    assert not any(step.doubtful for step in watched(xml, steps=40, every=10, push=0.01))


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


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_fixed_tendons_and_linear_equalities(integrator: str) -> None:
    """Check springs with slack, dampers, limits and dry friction along constant moment arms, by the laws of their forces."""
    links = "".join(
        f'<body pos="0 0 -.3"><joint name="{name}" axis="0 1 0" damping=".1" stiffness="2"/>'
        '<geom type="capsule" size=".04" fromto="0 0 0 0 0 -.3"/>'
        for name in "bcd"
    )
    xml = f"""
    <option timestep=".002" integrator="{integrator}"/>
    <worldbody>{FLOOR}<body pos="0 0 1.2"><joint name="a" axis="0 1 0"/><geom type="sphere" size=".1"/>{links}
      {"</body>" * 4}</worldbody>
    <tendon>
      <fixed name="spring" springlength="-.1 .1" stiffness="40" damping=".5"><joint joint="a" coef="1"/>
        <joint joint="b" coef="-.5"/></fixed>
      <fixed name="limited" limited="true" range="-.05 .05" frictionloss=".02" springlength="-1 1" stiffness="30">
        <joint joint="b" coef="1"/><joint joint="c" coef="-1"/></fixed>
    </tendon>
    <actuator><position joint="a" kp="30" kv="1" ctrlrange="-1 1"/><motor joint="d" gear="3"/></actuator>"""
    equality = '<equality><joint joint1="d" joint2="c" polycoef="0 .8 0 0 0" solimp=".5 .9 .2 .5 2"/></equality>'
    robot = fw.load(f"<mujoco>{xml}{equality}</mujoco>", equalities="compliant")
    sim = fw.Simulation(robot, contact="file")
    assert sim.forces.plain and not len(sim.forces.springs.nonlinear)
    assert len(steps_watched(sim, steps=400, every=40, push=0.5)) == 10


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
    watched(xml, {"equalities": "compliant"}, steps=100, every=20)


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


@pytest.mark.parametrize(("joints", "known"), [("x", True), ("xz", True), ("xr", False)])
def test_where_the_axis_of_a_capsule_pierces_a_face(joints: str, known: bool) -> None:
    """Check a contact that follows the axis and the face. If the box can rotate, it may jump to another face."""
    made = {"x": '<joint type="slide" axis="1 0 0"/>', "z": '<joint type="slide" axis="0 0 1"/>', "r": '<joint axis="0 0 1"/>'}
    rail = '<geom name="rail" type="capsule" size=".02 2" zaxis="1 0 0"/>'
    cart = f'<body>{"".join(made[j] for j in joints)}<geom name="cart" type="box" size=".2 .15 .1"/></body>'
    xml = f"<worldbody>{rail}{cart}</worldbody>"
    if known:
        assert len(watched(xml, steps=40, every=10)) > 2
    else:
        sim = fw.Simulation(fw.load(f"<mujoco>{xml}</mujoco>"), contact="file")
        sim.step([0.1, 0.1], steps=5)
        assert any("rail" in name for name in sim.derivatives().doubtful)


def test_a_contact_that_no_joint_moves_along_its_normal_does_not_begin() -> None:
    """Check a ball that slides on the floor at a gap of exactly zero."""
    ball = '<joint type="slide" axis="1 0 0"/><joint type="hinge" axis="0 0 1"/><geom type="sphere" size=".1"/>'
    text = f'<mujoco><worldbody>{FLOOR}<body pos="0 0 .1">{ball}</body></worldbody></mujoco>'
    sim = fw.Simulation(fw.load(text), contact="file")
    sim.step([0.1, 0.2], steps=5)
    assert len(sim.contacts().names) == 1
    assert sim.derivatives().doubtful == ()


def test_rigid_contacts_at_rest_and_without_motion_are_not_doubtful() -> None:
    """Check a joint at its limit, and a body that slides on the floor, which no joint moves along the normal."""
    arm = '<joint name="hinge" axis="0 1 0" range="-20 20"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>'
    box = f'<joint type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1"/><body pos="0 0 .3">{arm}</body>'
    text = f'<mujoco><worldbody>{FLOOR}<body pos="0 0 .1">{box}</body></worldbody></mujoco>'
    sim = fw.Simulation(fw.load(text), contact="rigid")
    sim.step(steps=400)  # the link falls to its limit
    assert sim.q[1] > 0.34
    assert sim.derivatives([0.3, 0.0]).doubtful == ()
    A = sim.derivatives([0.3, 0.0]).A
    np.testing.assert_allclose(A[1], np.eye(4)[1], atol=1e-9)  # the limit persists
    np.testing.assert_allclose(A[3], 0.0, atol=1e-9)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_drives_with_activations_delays_and_muscles(integrator: str) -> None:
    """Check states of drives, and their rates, next to q and v."""
    drives = (
        '<general joint="hip0" gear="5" dyntype="filterexact" dynprm=".05"/>'
        '<general joint="ankle1" dyntype="integrator" gainprm="5" biastype="affine" biasprm="0 -5 -.2" actrange="-1 1"/>'
        '<muscle joint="ankle0" ctrlrange="-1 1" lengthrange="-1 1" force="3" timeconst=".02 .05" tausmooth=".2"/></actuator>'
    )
    found = watched(walker(integrator=integrator).replace("</actuator>", drives), seed=3)
    assert all(x.A.shape == (23, 23) and x.B.shape == (23, 10) and x.B_control.shape == (23, 6) for x in found)


def test_a_control_at_its_limit_is_doubtful_and_counts_within() -> None:
    """Check the side within the limits, by differences of one side."""
    drive = '<general name="slow" joint="hip0" ctrlrange="0 1" ctrllimited="true" dyntype="filter" dynprm=".1"/></actuator>'
    sim = fw.Simulation(fw.load(f"<mujoco>{walker().replace('</actuator>', drive)}</mujoco>"), contact="file")
    control = np.zeros(sim.forces.nu)
    found = sim.derivatives(control=control)
    assert found.doubtful == ("actuator 'slow'",)
    ahead = sim.advance(sim.state, control=np.where(np.arange(len(control)) == len(control) - 1, 1e-6, 0.0))
    here = sim.advance(sim.state, control=control)
    np.testing.assert_allclose(found.B_control[-1, -1], (ahead.activation - here.activation)[-1] / 1e-6, rtol=1e-8)


def sticky_walker() -> str:
    text = walker().replace("</actuator>", '<adhesion body="foot" ctrlrange="0 1" gain="5"/></actuator>')
    return text.replace('<body pos="0 0 -.3">', '<body pos="0 0 -.3" name="foot">', 1)


WHOLE_STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "adhesion": (sticky_walker(), {"integrator": "semi-implicit"}),
    "compliant contact in the midpoint rule": (walker(), {"integrator": "midpoint"}),
    "friction iterations": (walker().replace("<option", '<option noslip_iterations="3"'), {}),
    "rigid contact with muscles": (
        walker().replace("</actuator>", '<muscle joint="ankle0" lengthrange="-1 1" force="20"/></actuator>'),
        {"contact": "rigid"},
    ),
    "a surface that moves": (walker().replace('size="0 0 1"', 'size="0 0 1" surfacevel=".2 .1 0"'), {}),
}


@pytest.mark.parametrize("name", WHOLE_STEPS)
def test_differences_of_whole_steps(name: str) -> None:
    """Check steps whose equations have no derivatives."""
    xml, options = WHOLE_STEPS[name]
    sim = fw.Simulation(fw.load(f"<mujoco>{xml}</mujoco>"), **{"contact": "file", **options})
    assert len(steps_watched(sim, most=1e-5)) == 5


def test_many_robots_with_their_own_parameters() -> None:
    """Compare those of robots that differ with differences, on threads, and products with those of matrices."""
    robot, rng, robots = fw.load(f"<mujoco>{walker()}</mujoco>"), np.random.default_rng(5), 9
    sim = fw.Simulation(robot, contact="file", q=np.tile(robot.start(), (robots, 1)))
    heavier = robot.inertial_parameters * rng.uniform(0.7, 1.3, (robots, len(robot.bodies), 1))
    sim.vary(
        parameters=heavier, armature=rng.uniform(0.0, 0.02, (robots, 4)), friction=rng.uniform(0.3, 1.2, robots),
        damping=rng.uniform(0.5, 2.0, robots), gains=rng.uniform(0.5, 2.0, robots),
        dry_friction=rng.uniform(0.0, 2.0, robots),
    )  # fmt: skip
    tau, control = 0.1 * rng.standard_normal((robots, robot.nv)), rng.uniform(-0.5, 0.5, (robots, 3))
    sim.step(tau, control, steps=60)
    found = sim.derivatives(tau, control)
    state, nv = sim.state, robot.nv
    sure = [not names for names in found.doubtful]
    assert sum(sure) > 6
    for column in range(2 * nv):
        errors = []
        for step in (SMALL, 0.1 * SMALL):
            ends = []
            for small in (step, -step):
                moved = copy.copy(state)
                d = small * np.eye(2 * nv)[column]
                moved.arrays["q"][:], moved.arrays["v"][:] = robot.integrate(state.q, d[:nv]), state.v + d[nv:]
                ends.append(sim.advance(moved, tau=tau, control=control))
            change = np.hstack([robot.difference(ends[1].q, ends[0].q), ends[0].v - ends[1].v]) / (2.0 * step)
            scale = np.maximum(1.0, np.abs(change).max(axis=1))
            errors.append(np.abs(found.A[:, :, column] - change).max(axis=1) / scale)
        assert np.minimum(*errors)[sure].max() < 1e-6
    bars = rng.standard_normal((robots, 2 * nv))
    products = sim.derivative_products(bars, tau, control)
    whole = np.concatenate([found.A, found.B, found.B_control], axis=2)
    np.testing.assert_allclose(products, np.einsum("ri,rij->rj", bars, whole), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("axis", ["0.5 0.866 0.007", "-0.3 0.9 -0.004", "0 1 0.01", "0 1 -0.003"])
@pytest.mark.parametrize("moves", ["cylinder", "box"])
def test_a_cylinder_across_an_edge_of_a_box(axis: str, moves: str) -> None:
    """Check contacts with the normal of a face, on a line of the cylinder that follows the edge and its axis."""
    shapes = (
        '<geom type="box" size=".05 .03 .04"/>',
        f'<geom type="cylinder" size=".05 .087" pos=".004 .006 .08" zaxis="{axis}"/>',
    )
    fixed, free = shapes if moves == "cylinder" else shapes[::-1]
    xml = f"<option timestep='.002' gravity='0 0 0'/><worldbody>{fixed}<body><freejoint/>{free}</body></worldbody>"
    sim = fw.Simulation(fw.load(f"<mujoco>{xml}</mujoco>"), contact="file", v=[0.1, 0.2, -0.3, 0.5, -0.4, 0.3])
    assert agreed(sim, np.zeros(6), np.zeros(0)).doubtful == ()
    sim.step()
    assert len(sim.contacts().names) >= 1


def test_limits_of_tendons_that_no_joint_changes_have_no_effect() -> None:
    """Check the steps with a string within one body, longer than its limit, beside the steps without the limit."""
    body = '<freejoint/><geom type="box" size=".1 .08 .05"/><site name="a" pos=".1 0 0"/><site name="b" pos="-.1 0 0"/>'
    ends = []
    for limit in ('limited="true" range="0 .1"', ""):
        string = f'<tendon><spatial {limit} stiffness="3"><site site="a"/><site site="b"/></spatial></tendon>'
        xml = f"<mujoco><worldbody>{FLOOR}<body pos='0 0 .049'>{body}</body></worldbody>{string}</mujoco>"
        sim = fw.Simulation(fw.load(xml), contact="file", v=[0.5, 0.2, 0.0, 0.3, -0.2, 1.0])
        sim.run(0.05)
        agreed(sim, np.zeros(6), np.zeros(0))
        ends.append(sim.v)
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)
