"""Tests of moving surfaces, adhesion, and two sliding frictions: against MuJoCo, and closed forms."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from simulation.beside_mujoco import beside_mujoco
from simulation.plain_python import plain_python

if tuple(map(int, mujoco.__version__.split(".")[:2])) < (3, 11):
    pytest.skip("this version of MuJoCo has neither surfacevel nor contact adhesion", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")
G = 9.81
# so that differences come from MuJoCo, whose solver stops earlier
TIGHT = fw.ContactOptions(law="file", tolerance=1e-14)

BELTS = """<mujoco><option timestep="0.002" cone="{cone}"/><compiler angle="radian"/>
<default><default class="cart"><geom surfacevel="-.3 .1 0 0 0 .4"/></default></default><worldbody>
<geom name="belt" type="box" size="3 1 .1" pos="0 0 -.1" surfacevel="1 .2 .7 0 0 .3" friction=".4"/>
<geom name="table" type="cylinder" size="1 .05" pos="0 4 0" euler=".2 0 .3" surfacevel="0 0 0 0 0 2" condim="{dim}"/>
<geom name="floor" type="plane" size="0 0 1" pos="0 0 -1"/>
<body name="brick" pos="-1 .2 .05"><freejoint/><geom type="box" size=".1 .1 .05" mass="1"/></body>
<body name="ball" pos=".3 4.2 .25"><freejoint/><geom name="ball" size=".1" mass="1"/></body>
<body name="walker" pos="0 -4 -.85"><freejoint/><geom size=".15" mass="1" euler=".3 .2 0" surfacevel="0 0 0 1 2 .5"/></body>
<body name="cart" pos="4 0 0"><joint type="slide" axis="1 0 0"/><joint axis="0 0 1"/>
  <geom class="cart" name="cart" type="box" size="1 .5 .1" pos=".1 0 0" euler="0 0 .2" mass="4" friction=".6"/></body>
<body name="load" pos="4 .1 .2"><freejoint/><geom type="box" size=".1 .1 .1" mass="1" friction=".3"/></body>
</worldbody></mujoco>"""

STICKY = """<mujoco><option timestep="0.002" cone="{cone}" impratio="2"/><worldbody>
<geom name="ceiling" type="box" size="1 1 .1" pos="0 0 1.1" adhesion="3" gap=".01"/>
<geom name="wall" type="box" size=".1 9 5" pos="1.1 0 0" adhesion="4"/>
<geom name="floor" type="plane" size="0 0 1" adhesion="2"/>
<body name="hangs" pos="0 0 .9495"><freejoint/><geom name="hangs" size=".05" mass=".5" adhesion="5" gap=".01"/></body>
<body pos="0 .4 .9"><freejoint/><geom size=".05" mass=".5" adhesion="1" gap=".1" condim="{dim}" margin=".001"/></body>
<body pos=".9495 0 .4"><freejoint/><geom size=".05" mass=".5" adhesion="8" condim="{dim}"/></body>
<body pos=".8999 1 .4"><freejoint/><geom type="box" size=".1 .05 .1" mass=".5" adhesion=".5"/></body>
<body pos="0 2 .12"><freejoint/><geom type="box" size=".1 .05 .1" mass=".5" adhesion="7" priority="1"/>
  <site name="under" type="box" size=".2 .2 .2"/></body>
<body pos="0 3 .2"><joint axis="0 1 0"/><geom name="arm" type="capsule" size=".05" fromto="0 0 0 .5 0 0" mass=".5"/></body>
</worldbody><contact><pair geom1="arm" geom2="floor" adhesion="7" gap=".2" friction=".3 .3 .01 .001 .001"/></contact>
<sensor><touch site="under"/></sensor></mujoco>"""

TWO = """<mujoco><option timestep="0.002" cone="{cone}"/><worldbody>
<geom name="floor" type="plane" size="0 0 1" euler="20 10 0"/><geom name="wall" type="box" size=".05 5 9" pos="3 0 5"/>
<body pos="0 0 .35"><freejoint/><geom name="a" type="box" size=".1 .1 .05" mass="1"/></body>
<body pos="0 3 .9"><freejoint/><geom name="b" size=".1" mass="1"/></body>
<body pos="0 -3 -.4"><freejoint/><geom name="c" type="capsule" size=".1 .2" euler="80 10 30" mass="1"/></body>
<body pos="2.84 0 9"><freejoint/><geom name="d" size=".1" mass="1"/></body></worldbody>
<contact><pair geom1="floor" geom2="a" friction=".2 .6 .01 .001 .001"/>
<pair geom1="floor" geom2="b" friction="0 .1 .02 .002 .002"/>
<pair geom1="floor" geom2="c" friction=".1 .5 .01 .001 .001"/><pair geom1="d" geom2="wall" friction=".1 .5 .01 .001 .001"/>
</contact></mujoco>"""
THROWN = np.array([1, 0.5, 0, 0.2, 0.1, 2, 1, 1, 0, 3, 0, 2, 1, -1, 0, 0, 1, 1, 1, 0.5, 0, 1, 2, 3])


@pytest.mark.parametrize(("cone", "dim"), [("elliptic", 3), ("pyramidal", 3), ("pyramidal", 4)])
def test_what_lies_on_belts_and_turntables_moves_as_in_mujoco(cone: str, dim: int) -> None:
    """Check a brick on a belt, a ball on a tilted turntable, a ball whose own surface moves, and a belt on a cart.

    The motion lasts a second. MuJoCo's solver, at its limit of rounding, is less accurate. Elliptic cones of condim 4 and 6
    differ also without moving surfaces.
    """
    sim, _, away = beside_mujoco(BELTS.format(cone=cone, dim=dim), 500, contact=TIGHT)
    assert away.max() < 1e-9
    assert sim.v[0] > 0.8 and sim.q[14] > 0.05  # the belt carries the brick, and the walker walks


@pytest.mark.parametrize("dim", [3, 6])
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_what_sticks_moves_as_in_mujoco(cone: str, dim: int) -> None:
    """Check balls that hang from the ceiling, rise to it, stick to a wall and slide; and an arm that is pulled to the floor."""
    sim, data, away = beside_mujoco(STICKY.format(cone=cone, dim=dim), 500, contact=TIGHT)
    assert away.max() < 1e-9
    assert sim.q[2] > 0.9 and sim.q[9] < 0.9  # one hangs; the other was too far away
    np.testing.assert_allclose(sim.sensors(), data.sensordata, rtol=1e-7)
    # forces of about 5 N, some of them adhesive
    np.testing.assert_allclose(normal_forces(sim), normal_forces_of(data), atol=1e-6)
    assert min(normal_forces(sim)) < -4.0


def normal_forces(sim: fw.Simulation) -> list[float]:
    """Return normal forces of contacts with a force; each is along an axis of the world."""
    points, forces, _ = sim.contacts()
    carries = np.abs(forces).max(axis=1) > 1e-12  # other contacts are near but without force
    points, forces = points[carries], forces[carries]
    up, aside = points[:, 2] < 0.5, points[:, 0] > 0.9
    return sorted(np.where(up, forces[:, 2], np.where(aside, -forces[:, 0], -forces[:, 2])))


def normal_forces_of(data: Any) -> list[float]:
    result, found = np.zeros(6), []
    for k in range(data.ncon):
        mujoco.mj_contactForce(data.model, data, k, result)
        found.append(result[0])
    return sorted(found)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_two_sliding_frictions_are_those_of_mujocos_axes(cone: str) -> None:
    """Check a box, a ball and a capsule on an inclined plane, and a ball on a wall, each with two frictions of its own."""
    _, _, away = beside_mujoco(TWO.format(cone=cone), 500, v=THROWN, contact=TIGHT)
    assert away.max() < 1e-9


LEGGED = """<mujoco><option timestep="0.002" cone="{cone}"/><worldbody>
<geom type="plane" size="0 0 1" surfacevel=".5 .1 0 0 0 .2" friction="{mu}"/>
<body pos="0 0 .5"><freejoint/><geom type="box" size=".2 .1 .05" mass="3" surfacevel="0 1 0 0 0 0" adhesion="1"/>{legs}</body>
</worldbody></mujoco>"""
LEG = """<body pos="{x} {y} 0"><joint axis="0 1 0" frictionloss="2" armature=".01"/>
<geom type="capsule" fromto="0 0 0 .05 0 -.2" size=".02" contype="0" conaffinity="0" mass=".3"/>
<body pos=".05 0 -.2"><joint axis="0 1 0" range="-60 60" frictionloss="2"/>
<geom type="capsule" fromto="0 0 0 -.05 0 -.2" size=".02" contype="0" conaffinity="0" mass=".2"/>
<geom pos="-.05 0 -.2" size=".03" mass=".1" adhesion="{pull}" gap=".002"/></body></body>"""


@pytest.mark.parametrize(("cone", "mu", "pull"), [("elliptic", 0.3, 4), ("pyramidal", 0.7, 1), ("elliptic", 0.1, 20)])
def test_legged_robots_on_belts_with_sticky_feet_move_as_in_mujoco(cone: str, mu: float, pull: float) -> None:
    """Check a robot whose dry joints slip; in two of the scenes it slides."""
    legs = "".join(LEG.format(x=x, y=y, pull=pull) for x in (-0.2, 0.2) for y in (-0.1, 0.1))
    sim, data, away = beside_mujoco(LEGGED.format(cone=cone, mu=mu, legs=legs), 500, contact=TIGHT)
    assert away.max() < 1e-8
    assert data.ncon >= 4 and np.abs(sim.q[0]) > 0.05


# --- rigid contacts


def rigid(text: str, time: float, step: float = 0.002, **more: Any) -> fw.Simulation:
    sim = fw.Simulation(fw.load(text), step, contact="rigid", **more)
    sim.run(time)
    return sim


BELT = """<mujoco><worldbody><geom type="box" size="30 1 .1" pos="0 0 -.1" surfacevel="1 0 0 0 0 0" friction="{mu}"/>
<body pos="-1 .2 .05"><freejoint/><geom type="box" size=".1 .1 .05" mass="1" friction="{mu}"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
def test_belts_speed_up_what_lies_on_them_by_friction_until_it_is_as_fast(integrator: str) -> None:
    sim = rigid(BELT.format(mu=0.4), 0.1, integrator=integrator)
    assert sim.v[0] == pytest.approx(0.4 * G * 0.1, rel=1e-8)
    np.testing.assert_allclose(sim.contacts()[1].sum(axis=0), [0.4 * G, 0.0, G], atol=1e-6)
    sim.run(0.4)
    np.testing.assert_allclose(sim.v, [1, 0, 0, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(sim.contacts()[1].sum(axis=0), [0, 0, G], atol=1e-6)


def test_the_work_of_belts_and_adhesion_is_not_taken_for_energy_from_nowhere() -> None:
    """Check that a brick reaches the speed of its belt in one step, and that a magnet pulls across a gap."""
    fast = rigid(BELT.format(mu=200.0).replace('"1 0 0 0 0 0"', '"5 0 0 0 0 0"').replace(".1 .1 .05", "9 9 .05"), 0.02, 0.01)
    assert fast.v[0] == pytest.approx(5.0, abs=1e-6)
    magnet = rigid(HANGING.format(pull=5000.0, more="0", gap=0.5, z=0.5), 0.008)
    assert magnet.v[2] == pytest.approx((5000.0 - G) * 0.008, rel=1e-9)


def test_a_turntable_spins_a_ball_by_friction_against_spinning() -> None:
    text = """<mujoco><worldbody><geom type="plane" size="0 0 1" surfacevel="0 0 0 0 0 2" condim="4" friction=".5 .02 0"/>
    <body pos="0 0 .1"><freejoint/><geom size=".1" mass="1" friction=".5 .02 0"/></body></worldbody></mujoco>"""
    sim = rigid(text, 0.02)
    assert sim.v[5] == pytest.approx(0.02 * G * 0.018 / (0.4 * 0.01), rel=1e-8)  # no friction in the first step
    sim.run(0.1)
    np.testing.assert_allclose(sim.v, [0, 0, 0, 0, 0, 2], atol=1e-8)


HANGING = """<mujoco><worldbody><geom type="box" size="1 1 .1" pos="0 0 1.1" adhesion="{pull}" gap="{gap}"/>
<body pos="0 0 {z}"><freejoint/><geom size=".1" mass="1" adhesion="{more}"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
@pytest.mark.parametrize(("force", "stays"), [(15.0 - G - 0.01, True), (15.0 - G + 0.01, False)])
def test_a_ball_hangs_until_it_is_pulled_by_more_than_the_adhesion(integrator: str, force: float, stays: bool) -> None:
    sim = fw.Simulation(fw.load(HANGING.format(pull=12.0, more="3", gap=0, z=0.9)), 0.002, integrator, contact="rigid")
    down = np.array([[0.0, 0.0, -force, 0.0, 0.0, 0.0]])
    sim.run(0.5, external_forces=down)
    if stays:
        assert sim.q[2] == pytest.approx(0.9, abs=1e-9)
        np.testing.assert_allclose(sim.contacts()[1], [[0.0, 0.0, G + force]], rtol=1e-6)
    else:
        assert sim.v[2] < -6.0 and not len(sim.contacts()[1])


def test_adhesion_pulls_across_its_gap() -> None:
    sim = rigid(HANGING.format(pull=15.0, more="0", gap=0.1, z=0.85), 0.05, 0.0005)
    assert sim.v[2] == pytest.approx((15.0 - G) * 0.05, rel=1e-9)
    sim.run(0.3)
    np.testing.assert_allclose(np.append(sim.v, sim.q[2]), [0, 0, 0, 0, 0, 0, 0.9], atol=1e-8)
    assert rigid(HANGING.format(pull=15.0, more="0", gap=0.01, z=0.85), 0.05).v[2] == pytest.approx(-G * 0.05)


@pytest.mark.parametrize("adhesion", [4.0, 4.8, 5.0])
def test_adhesion_adds_to_the_friction_of_a_brick_on_a_wall(adhesion: float) -> None:
    """Check the increase of friction: mu times the adhesion of four corners."""
    text = f"""<mujoco><worldbody><geom type="box" size=".1 1 1" pos=".1 0 1.1" adhesion="{adhesion}" friction=".5"/>
    <body pos="-.1 0 .9"><freejoint/><geom type="box" size=".1 .1 .1" mass="1" friction=".5"/></body></worldbody></mujoco>"""
    sim = rigid(text, 0.2)
    assert sim.v[2] == pytest.approx(min(0.5 * 4.0 * adhesion - G, 0.0) * 0.2, abs=1e-8)


def test_an_adhesive_ball_rolls_around_a_ball_and_keeps_its_energy() -> None:
    """Check that the ball follows the curved surface without separation. Steps and energy are of first order."""
    text = """<mujoco><worldbody><geom size="1" adhesion="40" friction="2"/>
    <body pos="0 0 1.1"><freejoint/><geom size=".1" mass="1" friction="2"/></body></worldbody></mujoco>"""
    start = np.array([0.66, 0.0, 0.88, 0.0, 0.0, 0.0, 1.0])
    sim, lowest = fw.Simulation(fw.load(text), 0.002, contact="rigid", q=start), 1.0
    for _ in range(120):
        sim.run(0.01)
        energy = 0.5 * sim.v[:3] @ sim.v[:3] + 0.002 * sim.v[3:] @ sim.v[3:] + G * sim.q[2]
        assert energy == pytest.approx(G * 0.88, rel=6e-3) and np.linalg.norm(sim.q[:3]) == pytest.approx(1.1, abs=1e-4)
        lowest = min(lowest, sim.q[2])
    assert lowest == pytest.approx(-1.1, abs=0.01)


def test_a_brick_slides_further_along_the_axis_with_less_friction() -> None:
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/>
    <body pos="0 0 .02"><freejoint/><geom name="a" type="box" size=".2 .2 .02" mass="1"/></body></worldbody>
    <contact><pair geom1="floor" geom2="a" friction=".1 .4 .01 .001 .001"/></contact></mujoco>"""
    for axis, mu in ((0, 0.4), (1, 0.1)):  # MuJoCo's first tangent of a floor is y
        v = np.zeros(6)
        v[axis] = 1.0
        sim = rigid(text, 0.1, v=v)
        assert sim.v[axis] == pytest.approx(1.0 - mu * G * 0.1, rel=1e-4)
    sim = rigid(text, 0.002, v=np.array([0.6, 0.6, 0, 0, 0, 0]))
    x, y, z = sim.contacts()[1].sum(axis=0)
    assert np.hypot(x / 0.4, y / 0.1) == pytest.approx(z, rel=1e-4)  # on the ellipse
    assert x / y == pytest.approx(16.0, rel=0.05)  # friction dissipates most along the ellipse's normal


# --- ways to simulate


@pytest.mark.parametrize("law", ["rigid", "file"])
@pytest.mark.parametrize("text", [BELTS, STICKY, TWO], ids=["belts", "sticky", "two"])
def test_robots_of_a_fleet_move_as_one_alone_and_as_plain_python(law: str, text: str) -> None:
    """Check states bitwise; in Python each operation is rounded, and results differ by rounding."""
    robot = fw.load(text.format(cone="pyramidal", dim=4))
    v = np.random.default_rng(0).standard_normal((3, robot.nv))
    q = np.tile(robot.start(), (3, 1))
    fleet = fw.Simulation(robot, q=q, v=v, contact=law)
    fleet.run(0.06)
    for k in range(3):
        alone = fw.Simulation(robot, q=q[k], v=v[k], contact=law)
        alone.run(0.06)
        assert np.array_equal(alone.q, fleet.q[k]) and np.array_equal(alone.v, fleet.v[k])
    with plain_python():
        plain = fw.Simulation(robot, q=q[0], v=v[0], contact=law)
        plain.run(0.06)
    np.testing.assert_allclose(plain.q, fleet.q[0], atol=1e-7)


def test_actuators_with_adhesion_pull_across_gaps_as_in_mujoco() -> None:
    text = """<mujoco><option timestep="0.001" cone="elliptic"/><worldbody>
    <geom type="box" size="1 1 .1" pos="0 0 1.1" gap=".02"/>
    <body name="pad" pos="0 0 .91"><freejoint/><geom size=".05" mass="1" gap=".03"/></body></worldbody>
    <actuator><adhesion body="pad" ctrlrange="0 1" gain="30"/></actuator></mujoco>"""
    sim, _, away = beside_mujoco(text, 500, lambda _: np.ones(1), contact=TIGHT)
    assert away.max() < 1e-10
    assert sim.q[2] > 0.94


def test_the_ground_of_a_simulation_moves_and_pulls_shapes() -> None:
    ball = '<body pos="0 0 {z}"><freejoint/><geom size=".1" mass="1" {more}/></body>'
    more = 'surfacevel="0 0 0 0 3 0" adhesion="20" gap=".05" friction=".7"'
    robot = fw.load(f"<mujoco><worldbody>{ball.format(z=0.12, more=more)}</worldbody></mujoco>")
    sim = fw.Simulation(robot, 1e-3, ground=fw.Plane(friction=0.7), contact="rigid")
    sim.run(0.02)
    assert sim.v[2] == pytest.approx(-(G + 20.0) * 0.02)
    sim.run(1.0)
    x, y, z, w = sim.q[3:]
    along = np.array([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)])  # the world's x in the ball's axes
    assert along @ sim.v[:3] - 0.1 * sim.v[4] == pytest.approx(0.3, abs=1e-6)  # at the contact point; its surface moves by -0.3


# --- descriptions


def test_numbers_of_surfaces_are_saved_renamed_and_mirrored(tmp_path: Path) -> None:
    text = BELTS.format(cone="elliptic", dim=3).replace(
        "</worldbody>",
        """</worldbody><contact>
    <pair geom1="floor" geom2="ball" adhesion="2" gap=".1" condim="6" friction=".2 .6 .01 .001 .002"/></contact>""",
    )
    text = text.replace('size=".1" mass="1"/>', 'size=".1" mass="1" adhesion=".5" gap=".2"/>')
    d = fw.read(text)
    pair = d.contact_pairs[0]
    assert (pair.adhesion, pair.gap, pair.friction, pair.second_friction) == (2.0, 0.1, 0.2, 0.6)
    assert (pair.turning_friction, pair.second_rolling) == ((0.01, 0.001), 0.002)
    shapes = {s.name: s for s in d.shapes}
    assert (shapes["ball"].adhesion, shapes["ball"].gap) == (0.5, 0.2)
    assert shapes["cart"].surface_velocity == (-0.3, 0.1, 0.0, 0.0, 0.0, 0.4)
    d.save(tmp_path / "saved.xml")
    again = fw.read(tmp_path / "saved.xml")
    assert again.contact_pairs == d.contact_pairs
    for one, other in zip(again.shapes, d.shapes, strict=True):
        assert (one.name, one.surface_velocity, one.adhesion, one.gap) == (
            other.name,
            other.surface_velocity,
            other.adhesion,
            other.gap,
        )
    assert d.renamed({"ball": "sphere"}).contact_pairs[0].adhesion == 2.0
    image = {s.name: s for s in d.mirrored("x").shapes}
    assert image["belt"].surface_velocity == (-1.0, 0.2, 0.7, 0.0, 0.0, -0.3)
    with pytest.warns(fw.ModelWarning, match="adhesion and velocities of the surfaces of the shapes"):
        d.save(tmp_path / "saved.urdf")


def test_an_image_of_a_belt_moves_as_the_image_of_what_lies_on_it() -> None:
    d = fw.read(BELT.format(mu=0.4).replace("1 0 0 0 0 0", "1 .5 0 0 0 .6"))
    exact = fw.ContactOptions(tolerance=1e-13)
    sim, image = (fw.Simulation(fw.build(x), 0.002, contact=exact) for x in (d, d.mirrored("y")))
    for x in (sim, image):
        x.run(0.3)
    # The distribution of load over the four corners is not unique, and determines friction while the body slides and turns.
    np.testing.assert_allclose(image.v * [1, -1, 1, -1, 1, -1], sim.v, atol=1e-6)


def test_a_mesh_with_a_moving_surface_moves_as_in_mujoco(tmp_path: Path) -> None:
    """Check axes: MuJoCo turns the mesh to its principal axes and uses these; such a file cannot be written."""
    corners = "-1 -1 -1 1.5 -1 -1 1.5 1 -1 -1 1 -1 -1 -1 0 1.5 -1 0 1.5 1 0 -1 1 0"
    text = f"""<mujoco><option timestep="0.002" cone="elliptic"/><asset><mesh name="m" vertex="{corners}"/></asset><worldbody>
    <geom type="mesh" mesh="m" surfacevel=".3 .4 .5 .6 .7 .8" pos="0 0 .1" euler="3 2 10"/>
    <body pos=".1 .2 .2"><freejoint/><geom size=".1" mass="1"/></body></worldbody></mujoco>"""
    d = fw.read(text)
    with pytest.warns(fw.ModelWarning, match="surface velocities of the meshes"):
        d.save(tmp_path / "saved.xml")
    sim, _, away = beside_mujoco(text, 100, contact=TIGHT)
    assert np.abs(sim.v[:2]).min() > 0.01
    assert away.max() < 1e-6  # MuJoCo finds contact points of convex meshes by iteration


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"adhesion": -1.0}, "shape 'g': the adhesion is negative .-1.; give zero or more"),
        ({"gap": -1.0}, "shape 'g': the gap is negative"),
        ({"adhesion": np.nan}, "shape 'g' has the number nan"),
        ({"surface_velocity": (0.0, np.inf, 0.0, 0.0, 0.0, 0.0)}, "shape 'g' has the number inf"),
        ({"surface_velocity": (1.0, 0.0, 0.0)}, "shape 'g': its surface_velocity has 3 numbers; give three"),
    ],
)
def test_numbers_of_no_surface_are_refused(change: dict[str, Any], told: str) -> None:
    d = fw.read('<mujoco><worldbody><geom name="g" size=".1"/></worldbody></mujoco>')
    with pytest.raises(fw.ModelError, match=told):
        fw.build(dataclasses.replace(d, shapes=(dataclasses.replace(d.shapes[0], **change),)))


def test_a_second_friction_without_a_first_is_refused() -> None:
    d = fw.read(TWO.format(cone="elliptic"))
    pair = dataclasses.replace(d.contact_pairs[0], friction=None)
    with pytest.raises(fw.ModelError, match="it has a second friction and no first; give friction="):
        fw.build(dataclasses.replace(d, contact_pairs=(pair,)))


def test_numbers_of_no_pair_are_refused_or_reported() -> None:
    """Check a negative adhesion, which MuJoCo refuses, and a negative gap, which it compiles."""
    said = r"contact pair of 'floor' and 'a': the {} is negative \(-1\)"
    with pytest.raises(fw.ModelError, match=said.format("adhesion")):
        fw.load(TWO.format(cone="elliptic").replace('geom2="a"', 'geom2="a" adhesion="-1"'))
    with pytest.warns(fw.ModelWarning, match=said.format("gap")):
        fw.load(TWO.format(cone="elliptic").replace('geom2="a"', 'geom2="a" gap="-1"'))


TILTED = """<mujoco><option timestep="0.002" cone="pyramidal"/><worldbody><geom type="plane" size="0 0 1" euler="15 25 40"/>
<body pos="0 0 .3"><freejoint/><geom type="{kind}" size=".1 .15 .12" mass="1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "ellipsoid"])
def test_pyramids_lie_as_mujocos_do(kind: str) -> None:
    """Check a plane that is tilted about three axes, because friction of pyramids depends on the tangents."""
    assert beside_mujoco(TILTED.format(kind=kind), 300)[2].max() < 1e-8
