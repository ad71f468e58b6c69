"""Tests of friction against spinning and rolling (condim 4 and 6)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.collision.shape_pairs import touching_pairs
from featherweight.simulation import fleet
from featherweight.simulation.contact_inertia import ContactInertia
from simulation.beside_mujoco import beside_mujoco
from simulation.made import made
from simulation.plain_python import plain_python

SCENE = """<mujoco><option timestep="0.002" cone="{cone}" {option}/>
<default><geom condim="{condim}" friction="{friction}" {geom}/></default><worldbody>
<geom name="floor" type="plane" size="0 0 1"/>
<body pos="0 0 0.11"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="1"/></body>
<body pos="1 0 0.1"><freejoint/><geom name="ball" type="sphere" size=".1" mass="2"/></body>
</worldbody></mujoco>"""
VELOCITY = np.array([0.0, 0.5, 0.0, 0.0, 0.0, 2.0, -0.3, 0.1, 0.0, 1.0, -3.0, 9.0])
G = 9.81


def text(condim: int, friction: str = "1 0.02 0.005", cone: str = "pyramidal", option: str = "", geom: str = "") -> str:
    return SCENE.format(cone=cone, option=option, condim=condim, friction=friction, geom=geom)


@pytest.mark.parametrize("condim", [3, 4, 6])
@pytest.mark.parametrize(("friction", "option"), [("1 0.02 0.005", ""), ("0.5 0.005 0.0001", 'impratio="3"')])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_pyramids_and_cones_with_turning_are_mujocos(condim: int, friction: str, option: str, cone: str) -> None:
    """Check a box that slides and turns, and a ball that spins and rolls, to the tolerance of MuJoCo's solver."""
    away = beside_mujoco(text(condim, friction, cone, option), 300, v=VELOCITY)[2]
    assert away.max() < (1e-6 if cone == "pyramidal" else 1e-8)


PAIRS = """</worldbody><contact><pair geom1="floor" geom2="ball" condim="6" friction="{0}"/>
<pair geom1="floor" geom2="box" condim="6" friction="{0}"/></contact>"""


@pytest.mark.parametrize("friction", ["1 1 .02 .01 .002", ".5 .9 .02 .001 .03", ".5 .5 .02 .01 0"])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_frictions_against_rolling_differ_by_direction_as_in_mujoco(cone: str, friction: str) -> None:
    given = text(3, cone=cone).replace("</worldbody>", PAIRS.format(friction))
    assert beside_mujoco(given, 300, v=VELOCITY)[2].max() < 1e-7


@pytest.mark.parametrize(("condim", "friction"), [(3, "0 0 0"), (4, "1 0 0"), (6, "1 0.02 0"), (6, "0 0 0")])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_frictions_of_zero_are_mujocos_least(cone: str, condim: int, friction: str) -> None:
    """Check that frictions below 1e-5 are raised to it, so that contacts yield as those with as many friction directions."""
    assert beside_mujoco(text(condim, friction, cone), 300, v=VELOCITY)[2].max() < 1e-7


def test_a_ball_rolls_farther_about_the_tangent_with_less_friction() -> None:
    """Check axes: MuJoCo's first tangent of a floor is y, and the second is -x: a ball that rolls along x turns about y."""
    robot = fw.load(text(3).replace("</worldbody>", PAIRS.format("1 1 .02 .01 .002")))
    for along, turning, rolling in ((6, 10, 0.01), (7, 9, 0.002)):
        v = np.zeros(12)
        v[along], v[turning] = 0.3, 3.0 if turning == 10 else -3.0
        sim = fw.Simulation(robot, v=v, contact="rigid")
        sim.run(0.2)
        assert np.linalg.norm(sim.v[6:9]) == pytest.approx(0.3 - 0.2 * 5.0 / 7.0 * rolling * G / 0.1, rel=1e-2)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_a_ball_that_spins_slows_down_by_its_friction(law: str) -> None:
    """Check the deceleration mu m g / (2/5 m r²) with its weight m g; condim 3 does not stop rotation about the normal."""
    for condim, expected in ((3, 9.0), (4, 9.0 - 0.1 * 0.02 * G / (0.4 * 0.01))):
        robot = fw.load(text(condim))
        sim = fw.Simulation(robot, v=[*np.zeros(11), 9.0], contact=law)
        sim.run(0.1)  # until the compliant contact is at rest
        sim.v = [*np.zeros(11), 9.0]
        sim.run(0.1)
        assert sim.v[11] == pytest.approx(expected, abs=0.02)


def test_a_ball_that_rolls_comes_to_rest() -> None:
    """Check the rolling torque mu m g, which brakes 7/5 m r² v' / r = -mu g m: rest after v² / (2 a) with a = 5/7 mu g / r."""
    robot = fw.load(text(6))
    v = np.zeros(12)
    v[6], v[10] = 0.3, 3.0
    sim = fw.Simulation(robot, v=v, contact="rigid")
    braking = 5.0 / 7.0 * 0.005 * G / 0.1
    sim.run(0.3)
    assert np.linalg.norm(sim.v[6:9]) == pytest.approx(0.3 - 0.3 * braking, rel=5e-3)
    sim.run(1.0)
    assert sim.q[7] == pytest.approx(1.0 + 0.3**2 / (2.0 * braking), rel=5e-3)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-9)


def test_what_rests_stays_and_torques_are_on_both_bodies() -> None:
    """Check a ball on a box, with a torque below the bound: neither moves, and the floor holds both."""
    stack = text(4).replace('pos="1 0 0.1"', 'pos="0 0 0.3"').replace('pos="0 0 0.11"', 'pos="0 0 0.1"')
    robot = fw.load(stack)
    sim = fw.Simulation(robot, contact="rigid")
    torque = np.zeros((2, 6))
    torque[1, 5] = 0.9 * 0.02 * 2.0 * G
    sim.step()
    for _ in range(200):
        sim.step(external_forces=torque)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-8)
    np.testing.assert_allclose(sim.contact_forces[1, 5], -torque[1, 5], rtol=1e-6)


def test_robots_of_a_fleet_turn_as_one_alone() -> None:
    robot = fw.load(text(6))
    many = fw.Simulation(robot, q=np.tile(robot.start(), (3, 1)), v=np.tile(VELOCITY, (3, 1)) * [[1.0], [0.5], [2.0]])
    many.run(0.2)
    alone = fw.Simulation(robot, v=2.0 * VELOCITY)
    alone.run(0.2)
    np.testing.assert_array_equal(many.q[2], alone.q)


def test_torques_have_room_for_as_many_contacts_as_forces(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = fw.load(text(6))
    q, v = np.tile(robot.start(), (3, 1)), np.tile(VELOCITY, (3, 1))
    ends = []
    for room in (1, 16):
        monkeypatch.setattr(fleet, "CAPACITY", room)
        sim = fw.Simulation(robot, q=q, v=v, contact="file")
        sim.run(0.1, every=50)
        fields = sim.state.arrays
        assert fields["turn"].shape == fields["force"].shape
        ends.append(sim.q)
    np.testing.assert_array_equal(ends[0], ends[1])


def test_frictions_of_pairs_are_mixed_as_in_mujoco() -> None:
    """Check the rules: the greater of two, that of the geom of higher priority, or a pair's own; none below condim 4 and 6."""

    def pairs(given: str) -> dict[frozenset[str], tuple[float, float, float]]:
        robot = fw.load(given)
        return {frozenset((robot.shapes[p.i].name, robot.shapes[p.j].name)): p.turning for p in touching_pairs(robot)}

    floor = frozenset(("floor", "ball"))
    assert pairs(text(3))[floor] == (0.0, 0.0, 0.0)
    assert pairs(text(4))[floor] == (0.02, 0.0, 0.0)
    assert pairs(text(6))[floor] == (0.02, 0.005, 0.005)
    rough = text(6).replace('name="ball"', 'name="ball" friction="1 0.1 0.001"')
    assert pairs(rough)[floor] == (0.1, 0.005, 0.005)
    assert pairs(rough.replace('name="ball"', 'name="ball" priority="1"'))[floor] == (0.1, 0.001, 0.001)
    own = '</worldbody><contact><pair geom1="floor" geom2="ball" condim="6" friction="1 1 0.3 0.2 0.2"/></contact>'
    assert pairs(text(3).replace("</worldbody>", own))[floor] == (0.3, 0.2, 0.2)
    assert pairs(text(3).replace("</worldbody>", own.replace("0.2 0.2", "0.2 0.1")))[floor] == (0.3, 0.2, 0.1)


def test_a_robot_with_many_bodies_has_it_too() -> None:
    """Check a chain of ten links, whose contacts use the inverse mass matrix, against the Delassus matrix of all its bodies."""
    shape = '<geom type="capsule" fromto="0 0 0 .2 0 0" size=".05" mass="1"/>'
    links = f'<body pos="0.2 0 0"><joint axis="0 0 1"/>{shape}' * 9
    chain = f"""<mujoco><option timestep="0.002"/><default><geom condim="4" friction="1 0.05 0.001"/></default><worldbody>
    <geom type="plane" size="0 0 1"/><body pos="0 0 0.05"><freejoint/>{shape}{links}{"</body>" * 10}</worldbody></mujoco>"""
    robot = fw.load(chain)
    v: Any = np.zeros(robot.nv)
    v[0], v[5], v[6:] = 0.5, 1.0, 0.5
    found = []
    for algorithm in ("auto", "kjr"):
        with made(ContactInertia) as inertias:
            sim = fw.Simulation(robot, v=v, contact=fw.ContactOptions(delassus=algorithm))
        [inertia] = inertias
        assert inertia.by_inverse == (algorithm == "auto")
        sim.run(0.01)  # normal impulses of a chain on a plane, which bound friction, are not unique
        found.append(sim.v)
    assert abs(found[0][5] - v[5]) > 0.05
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_derivatives_of_bodies_at_rest_are_those_of_an_overlap_that_persists() -> None:
    """Compare with differences of steps in the middle of a tolerated overlap, where no contact opens, and none is separated."""
    contact = fw.ContactOptions(law="rigid", tolerance=1e-12, slop=1e-3)
    sim = fw.Simulation(fw.load(text(4)), contact=contact)
    sim.run(0.5)
    at_rest, state, robot, nv = sim.derivatives(), sim.state, sim.robot, sim.robot.nv
    assert at_rest.doubtful == ()
    for k in range(nv // 6):
        state.arrays["q"][0, 7 * k + 2] -= 1e-5
    here = sim.advance(state)
    for column in range(2 * nv):
        sides = []
        for small in (1e-6, -1e-6):
            moved, d = copy.copy(state), small * np.eye(2 * nv)[column]
            moved.arrays["q"][0], moved.arrays["v"][0] = robot.integrate(state.q, d[:nv]), state.v + d[nv:]
            end = sim.advance(moved)
            sides.append(np.concatenate([robot.difference(here.q, end.q), end.v - here.v]) / small)
        central = 0.5 * (sides[0] + sides[1])
        assert np.abs(sides[0] - sides[1]).max() < 1e-3  # no kink here
        assert np.abs(at_rest.A[:, column] - central).max() / max(1.0, np.abs(central).max()) < 1e-4


def test_impacts_of_turning_contacts_have_room() -> None:
    """Check in plain Python that nothing is written beyond arrays: bounds of turning count in the problem after an impact."""
    robot = fw.load(text(6))
    with plain_python():
        sim = fw.Simulation(robot, v=VELOCITY, contact="rigid", integrator="rk4")
        sim.run(0.08)
    assert len(sim.contacts()[1]) > 1
    beside = fw.Simulation(robot, v=VELOCITY, contact="rigid", integrator="rk4")
    beside.run(0.08)
    np.testing.assert_allclose(sim.q[7:], beside.q[7:], atol=1e-9)  # the ball; loads of the box's corners are not unique


def test_torques_of_friction_are_kept_for_the_next_step_of_each_robot() -> None:
    """Check that the ball's torques hold it against a torque, and that a robot at rest needs no further step."""
    robot = fw.load(text(6, "1 0.05 0.02", cone="elliptic"))
    for q in (robot.start(), np.tile(robot.start(), (3, 1))):
        sim = fw.Simulation(robot, q=q, contact="file")
        sim.run(0.6)
        assert np.all(np.asarray(sim.solver["newton_steps"]) <= 1)
        torque = np.zeros((2, 6))
        torque[1, 5] = 0.1
        for _ in range(100):
            sim.step(external_forces=torque)
        turns = sim.state.arrays["turn"].sum(axis=1)  # (robots, 3)
        np.testing.assert_allclose(turns, np.tile([0.0, 0.0, -0.1 * sim.dt], (len(turns), 1)), atol=1e-9)
