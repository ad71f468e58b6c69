"""Tests of contacts, limits and dry friction that yield as in MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from simulation.beside_mujoco import BesideMujoco, beside_mujoco
from simulation.step_differences import watched

mujoco = pytest.importorskip("mujoco")

SCENE = """<mujoco><option timestep="0.002" cone="{cone}" {option}/>
<default><geom {geom}/><joint {joint}/></default><worldbody>
<geom type="plane" size="0 0 1"/>
<body pos="0 0 0.15"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
<body pos="1 0 0.4"><freejoint/><geom type="sphere" size=".1" mass="2"/></body>
<body pos="3 0 1"><joint name="limited" axis="0 1 0" range="-50 50"/>
  <geom type="capsule" fromto="0 0 0 .5 0 0" size=".05" mass="1" contype="0" conaffinity="0"/></body>
<body pos="5 0 1"><joint name="dry" axis="0 1 0" frictionloss="3"/>
  <geom type="capsule" fromto="0 0 0 .5 0 0" size=".05" mass="1" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>"""
SOFTNESS: tuple[dict[str, str], ...] = (
    {"option": "", "geom": "", "joint": ""},
    {
        "option": 'impratio="3"',
        "geom": 'solref="0.05 0.7" solimp="0.5 0.9 0.01 0.3 3.5" friction="0.3"',
        "joint": 'solreflimit="0.1 0.5" solreffriction="0.01 1" solimpfriction="0.5 0.9 0.01 0.5 2"',
    },
    {"option": "", "geom": 'solref="-1000 -20"', "joint": 'solreflimit="-500 -3"'},
)


@pytest.mark.parametrize("softness", SOFTNESS)
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_what_falls_and_rests_moves_as_in_mujoco(cone: str, softness: dict[str, str]) -> None:
    """Check boxes and balls that fall and come to rest, a joint at its limit, and a joint that creeps under dry friction.

    The tolerance is that of MuJoCo's solver.
    """
    sim, data, away = beside_mujoco(SCENE.format(cone=cone, **softness), 1500)
    assert away.max() < 1e-7
    np.testing.assert_allclose(sim.contacts()[1].sum(axis=0), [0.0, 0.0, 3 * 9.81], atol=1e-6)
    limited = sim.limit_forces[[12, 13]]
    np.testing.assert_allclose(limited, data.qfrc_constraint[[12, 13]], atol=1e-6)


@pytest.mark.parametrize("softness", SOFTNESS)
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_what_slides_and_tumbles_moves_as_in_mujoco(cone: str, softness: dict[str, str]) -> None:
    """Check a thrown box and a spinning ball: friction comes from MuJoCo's convex problem, with cones or pyramids."""
    v = np.array([1.0, 0.5, 0.0, 1.0, 2.0, 3.0, -1.0, 0.3, 0.0, 4.0, 5.0, 1.0, 0.0, 0.0])
    sim, _, away = beside_mujoco(SCENE.format(cone=cone, **softness), 400, v=v)
    assert away[:150].max() < 1e-6  # the box lands on an edge; then each bounce doubles differences
    assert sim.solver["inexact_steps"] == 0


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_varied_friction_is_that_of_a_file(cone: str) -> None:
    """Compare varied friction with that of a file: with pyramids, the compliance of contacts depends on it, too."""
    v = np.array([1.0, 0.5, 0.0, 1.0, 2.0, 3.0, -1.0, 0.3, 0.0, 4.0, 5.0, 1.0, 0.0, 0.0])
    text = SCENE.format(cone=cone, option="", geom='friction="{mu}"', joint="")
    rough, varied, smooth = (fw.Simulation(fw.load(text.replace("{mu}", mu)), v=v) for mu in ("0.8", "0.8", "0.4"))
    varied.vary(friction=0.5)
    for sim in (rough, varied, smooth):
        sim.run(0.3)
    np.testing.assert_allclose(varied.q, smooth.q, atol=1e-9)
    assert np.abs(rough.q - smooth.q).max() > 1e-2


@pytest.mark.parametrize("nominal", ["0.05 0.7", "0.003 1", "-1000 -20"])
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_varied_softness_is_that_of_a_file(cone: str, nominal: str) -> None:
    """Compare robots of a fleet with those of files; time constants of two are less than two steps.

    Stiffness k and damping b of a file have the time constant 2 / b and the damping ratio b / (2 sqrt(k)).
    """
    own, factors, alone = [float(x) for x in nominal.split()], ((1.0, 0.5), (0.05, 1.5), (2.0, 1.2)), []
    v = np.array([1.0, 0.5, 0.0, 1.0, 2.0, 3.0, -1.0, 0.3, 0.0, 4.0, 5.0, 1.0, 0.0, 0.0])
    text = SCENE.format(cone=cone, option="", geom='solref="{ref}" solimp="0.5 0.9 0.01 0.3 3.5"', joint="")
    for time, ratio in factors:
        x, y = (own[0] * time, own[1] * ratio) if own[0] > 0.0 else (own[0] / (time * ratio) ** 2, own[1] / time)
        alone.append(fw.Simulation(fw.load(text.replace("{ref}", f"{x!r} {y!r}")), v=v))
    robot = fw.load(text.replace("{ref}", nominal))
    fleet = fw.Simulation(robot, q=np.tile(robot.start(), (3, 1)), v=np.tile(v, (3, 1)))
    fleet.vary(solref=factors)
    for sim in (fleet, *alone):
        sim.run(0.3)
    for q, sim in zip(fleet.q, alone, strict=True):
        np.testing.assert_allclose(q, sim.q, atol=1e-9)
    assert np.abs(fleet.q[0] - fleet.q[2]).max() > 1e-3


def test_softness_varies_where_contacts_yield() -> None:
    robot = fw.load(SCENE.format(cone="elliptic", option="", geom="", joint=""))
    with pytest.raises(ValueError, match="needs compliant contacts"):
        fw.Simulation(robot, contact="rigid").vary(solref=2.0)
    with pytest.raises(ValueError, match="solref must be positive"):
        fw.Simulation(robot).vary(solref=[[1.0, 0.0]])


def test_sliding_contacts_obey_coulomb() -> None:
    """Check that sliding bodies decelerate by mu g and stay on the ground; in MuJoCo they lift off."""
    text = SCENE.format(cone="elliptic", option="", geom='friction="0.3"', joint="")
    robot = fw.load(text)
    sim = fw.Simulation(robot, contact="compliant")
    sim.run(1.5)
    height, v = sim.q[2], sim.v.copy()
    v[0] = 2.0
    sim.v = v
    sim.run(0.3)
    assert sim.v[0] == pytest.approx(2.0 - 0.3 * 0.3 * 9.81, rel=2e-3)
    assert sim.q[2] == pytest.approx(height, abs=2e-5)


def test_a_robot_starts_beyond_limits_that_yield() -> None:
    text = """<mujoco><worldbody><body pos="0 0 1"><joint name="j" axis="0 1 0" range="30 50"/>
    <geom size="0.1" pos="0.2 0 0" mass="1"/></body></worldbody></mujoco>"""
    sim, _, away = beside_mujoco(text, 500)
    assert away.max() < 1e-7
    assert fw.Simulation(sim.robot).q[0] == 0.0
    assert fw.Simulation(sim.robot, contact="rigid").q[0] == pytest.approx(np.radians(30))


LINK = """<joint name="{0}" axis="0 1 0" range="{1}"/><geom type="capsule" size=".02" fromto="0 0 0 .1 0 -.3"/>"""
HIPS = f"""<mujoco><option timestep="0.01"/><compiler angle="radian"/><worldbody>
<body pos="0 0 1"><freejoint/><geom type="capsule" size=".02" fromto="0 0 0 .1 0 -.3"/>
  <body pos=".1 0 -.3">{LINK.format("a", "0.3 1")}<body pos=".1 0 -.3">{LINK.format("b", "-1 -.4")}</body></body></body>
</worldbody></mujoco>"""


def test_the_softness_of_limits_beyond_which_a_robot_starts_is_mujocos() -> None:
    """Check two joints of a floating chain, whose inverse inertias in qpos0 and at their limits differ."""
    _, _, away = beside_mujoco(HIPS, 100)
    assert away.max() < 1e-9


ROUND = """<mujoco><option timestep="0.005" cone="{cone}"/><worldbody><geom type="plane" size="5 5 .1" margin=".005"/>
<body pos="0 0 .06"><freejoint/><geom type="sphere" size=".05" mass="1" margin=".01" gap="{gap}"/></body>
<body pos="0 1 .08"><freejoint/>
  <geom type="capsule" size=".03" fromto="-.1 0 -.02 .1 0 .03" mass="1" margin=".01" gap="{gap}"/></body>
<body pos="0 2 .1"><freejoint/><geom type="box" size=".05 .05 .05" mass="1" margin=".01" gap="{gap}"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("gap", [0.0, 0.004])
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_bodies_roll_on_their_margins_as_in_mujoco(cone: str, gap: float) -> None:
    """Check a ball, a capsule and a box; contact points are midway between the surfaces, to which a margin belongs."""
    v = np.array([0.3, 0.1, 0.0, 0.0, 0.0, 0.0] * 3)
    sim, data, away = beside_mujoco(ROUND.format(cone=cone, gap=gap), 200, v=v)
    assert away.max() < 1e-7
    points = np.array([c.pos for c in data.contact])
    apart = np.linalg.norm(sim.contacts()[0][:, None] - points, axis=2)
    assert len(points) >= 7 and apart.shape == (len(points), len(points)) and apart.min(axis=1).max() < 1e-6


def test_a_rigid_ball_rolls_on_its_margin() -> None:
    """Check the speed of rolling: the contact point is midway between both surfaces, at half the margin above the floor."""
    robot = fw.load(ROUND.format(cone="elliptic", gap=0.0))
    sim = fw.Simulation(robot, v=[0.3] + [0.0] * 17, contact="rigid")
    sim.run(1.0)
    assert sim.q[2] == pytest.approx(0.065, abs=1e-6)
    assert np.linalg.norm(sim.v[:3]) == pytest.approx((0.05 + 0.0075) * np.linalg.norm(sim.v[3:6]), rel=1e-4)  # the slop
    assert sim.contacts()[0][0, 2] == pytest.approx(0.0075, abs=1e-6)


def test_limits_begin_by_their_margin_before_the_range_ends() -> None:
    """Check limits of joints and of tendons; rigid limits stop at the end of the range."""
    body = """<body pos="{0} 0 1"><joint name="j{0}" axis="0 1 0" {1}/><geom size="0.1" pos="0.2 0 0" mass="1"/></body>"""
    text = f"""<mujoco><worldbody>{body.format(0, 'range="-50 20" margin="0.2"')}{body.format(1, "")}</worldbody>
    <tendon><fixed range="-1 1" limited="true" margin="0.5"><joint joint="j1" coef="1"/></fixed></tendon></mujoco>"""
    sim, _, away = beside_mujoco(text, 500)
    assert away.max() < 1e-7
    rigid = fw.Simulation(sim.robot, contact="rigid")
    rigid.run(2.0)
    np.testing.assert_allclose(rigid.q, [np.radians(20) - 0.2, 0.5], atol=1e-5)


def test_joints_that_equalities_hold_stay_as_in_mujoco() -> None:
    """Check joints under a stiff equality of MuJoCo, which first pulls them to its solution."""
    link = '<joint name="{0}" axis="0 1 0"/><geom size=".1" pos=".3 0 0" mass="1"/>'
    bodies = f'<body pos="0 0 1">{link.format("a")}<body pos=".3 0 0">{link.format("b")}</body></body>'
    text = f"""<mujoco><option timestep="0.001"/><worldbody>{bodies}</worldbody>
    <equality><joint joint1="b" solref="0.002 1" solimp="0.9999 0.9999 0.001"/></equality></mujoco>"""
    pair, away = BesideMujoco(fw.load(text, equalities="exact"), mujoco.MjModel.from_xml_string(text)), 0.0
    for _ in range(300):
        pair.step()
        away = max(away, pair.away)
    assert away < 2e-4


def test_files_without_softness_are_rigid_as_in_the_file() -> None:
    """Check that contacts have MuJoCo's defaults where compliance is requested: a ball of 1 kg rests at the same depth."""
    body = fw.Body("ball", fw.Inertia(1.0, (0, 0, 0), (0.004, 0, 0, 0.004, 0, 0.004)))
    joint = fw.Joint("free", fw.JointType.FLOATING, None, "ball")
    robot = fw.build(fw.describe([body], [joint]))
    spheres, depth = [fw.ContactSphere("ball", 0.1)], {}
    for law in ("rigid", "file", "compliant"):
        sim = fw.Simulation(robot, 2e-3, q=[0, 0, 0.1, 0, 0, 0, 1], spheres=spheres, ground=True, contact=law)
        sim.run(1.0)
        depth[law] = 0.1 - sim.q[2]
    ball = '<body pos="0 0 .1"><freejoint/><geom size=".1" mass="1"/></body>'
    text = f'<mujoco><option cone="elliptic"/><worldbody><geom type="plane" size="0 0 1"/>{ball}</worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for _ in range(500):
        mujoco.mj_step(model, data)
    assert depth["rigid"] == depth["file"] == pytest.approx(0.0, abs=2e-6)
    assert depth["compliant"] == pytest.approx(0.1 - data.qpos[2], rel=1e-5)


def test_robots_of_a_fleet_yield_as_one_alone() -> None:
    text = SCENE.format(cone="elliptic", **SOFTNESS[1])
    robot = fw.load(text)
    start = robot.start()
    q = np.stack([start, start, start])
    q[:, 2] += [0.0, 0.05, -0.05]
    many = fw.Simulation(robot, q=q, contact="compliant")
    many.run(0.4)
    for i in range(3):
        alone = fw.Simulation(robot, q=q[i], contact="compliant")
        alone.run(0.4)
        np.testing.assert_array_equal(many.q[i], alone.q)


def test_what_is_not_there_says_so() -> None:
    robot = fw.load(SCENE.format(cone="elliptic", **SOFTNESS[0]))
    with pytest.raises(ValueError, match="law must be one of rigid, compliant, file; got 'soft'"):
        fw.Simulation(robot, contact="soft")


def test_steps_have_derivatives() -> None:
    robot = fw.load(SCENE.format(cone="elliptic", **SOFTNESS[0]))
    watched(fw.Simulation(robot, contact=fw.ContactOptions(law="compliant", tolerance=1e-12)), most=1e-5)


WELDED = """<mujoco><option timestep="0.002" cone="elliptic"/><worldbody><geom type="plane" size="0 0 1"/>
<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/>
<body pos=".5 0 0"><geom type="box" size=".1 .1 .1" mass="3" pos=".1 0 0"/>
<body pos="0 .4 0"><geom size=".1" mass=".1"/></body></body></body></worldbody></mujoco>"""


def test_links_that_are_fixed_to_others_yield_by_their_own_inverse_mass() -> None:
    """Check the inverse mass of each geom's body at its centre of mass, as in MuJoCo, for three bodies that move as one."""
    _, _, away = beside_mujoco(WELDED, 300)
    assert away.max() < 1e-9


@pytest.mark.parametrize(
    "tendon", ['range="-.1 .6" limited="true" solreflimit=".1 .5"', 'frictionloss=".4" solreffriction=".1 1"']
)
def test_the_softness_of_a_tendon_on_one_joint_is_its_own(tendon: str) -> None:
    text = f"""<mujoco><worldbody><body pos="0 0 1"><joint name="j" axis="0 1 0" range="-60 60"/>
    <geom size="0.1" pos="0.2 0 0" mass="1"/></body></worldbody>
    <tendon><fixed {tendon}><joint joint="j" coef="1"/></fixed></tendon></mujoco>"""
    _, _, away = beside_mujoco(text, 300)
    assert away.max() < 1e-7
