"""Tests of starts of simulations: the file's configuration, overlapping bodies, and pairs that never touch."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.simulation.simulation_options import LAWS

H = 2e-3
FLOOR = '<geom name="floor" type="plane" size="0 0 1"/>'
BOX = '<body name="{0}" pos="{1}"><freejoint name="{0}"/><geom name="{0}" type="box" size=".1 .1 .1" mass="1"/></body>'
ARM = """<robot name="arm">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <link name="upper"><inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
    <collision><geometry><sphere radius="0.05"/></geometry></collision></link>
  <link name="fore"><inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
    <collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 0.12"/><limit lower="-2" upper="2" effort="9" velocity="9"/></joint>
  <joint name="elbow" type="prismatic"><parent link="upper"/><child link="fore"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="1" effort="9" velocity="9"/></joint>
</robot>"""


def scene(*bodies: str) -> fw.Robot:
    robot = fw.load(f"<mujoco><worldbody>{FLOOR}{''.join(bodies)}</worldbody></mujoco>")
    assert isinstance(robot, fw.Robot)
    return robot


def test_a_robot_starts_where_its_file_does() -> None:
    """Check that an MJCF file starts at qpos0; rigid limits move joints beyond them to the limits."""
    hinge = '<body pos="2 0 1"><joint name="j" range="10 50" ref="5" axis="0 1 0"/><geom size="0.1" mass="1"/></body>'
    robot = scene(BOX.format("a", "0 0 0.4"), hinge)
    expected = np.array([0, 0, 0.4, 0, 0, 0, 1, np.radians(10)])
    np.testing.assert_allclose(robot.start(), expected)
    np.testing.assert_allclose(fw.Simulation(robot, H, contact="rigid").q, expected)
    np.testing.assert_allclose(fw.Simulation(robot, H).q, [*expected[:7], np.radians(5)])
    assert robot.neutral()[2] == 0.0


def test_a_robot_without_configurations_starts_at_neutral() -> None:
    robot = fw.build(fw.generators.chain(3))
    np.testing.assert_array_equal(robot.start(), robot.neutral())


def test_a_robot_of_urdf_that_starts_in_the_ground_is_told_of() -> None:
    """Check that the robot's own pairs, some of which are ignored because they overlap at the start, are determined
    before the first step.
    """
    inertia = '<inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
    robot = fw.load(ARM.replace('<link name="base">', f'<link name="base">{inertia}'), base="floating")
    q = robot.start()
    q[2] -= 0.05
    sim = fw.Simulation(robot, H, ground=fw.Plane(), q=q)
    with pytest.warns(fw.ModelWarning, match="overlap at the start"):
        sim.step()


def test_bodies_that_overlap_at_the_start_are_parted_slowly_and_named() -> None:
    """Check separation at 1 m/s without velocity, for any depth; deeper overlaps are refused."""
    robot = scene(BOX.format("a", "0 0 -0.3"), BOX.format("b", "1 0 0.1"), BOX.format("c", "1 0 0.25"))
    sim = fw.Simulation(robot, H, contact="rigid")
    with pytest.warns(fw.ModelWarning, match=r"at the start: .*'a'.* by 0\.4 m, .*'b'.*'c'.* by 0\.05 m\. "):
        sim.step()
    for step in range(2, 400):
        sim.step()
        assert sim.q[2] == pytest.approx(min(-0.3 + step * H, 0.1), abs=1e-5)
        np.testing.assert_allclose(sim.v, 0.0, atol=1e-8)
    np.testing.assert_allclose(sim.q[[2, 9, 16]], [0.1, 0.1, 0.3], atol=1e-5)
    sim.q = [*robot.start()[:2], -0.5, *sim.q[3:]]  # an assigned configuration is a start, too
    sim.step()
    assert sim.q[2] == pytest.approx(-0.5 + H, abs=1e-5)


@pytest.mark.parametrize("law", LAWS)
def test_a_start_in_another_body_can_be_refused(law: str) -> None:
    sim = fw.Simulation(scene(BOX.format("a", "0 0 -0.3")), H, contact=fw.ContactOptions(overlaps="refuse", law=law))
    with pytest.raises(fw.SimulationError, match=r"'a'.* overlap by 0\.4 m, more than 0\.1 m"):
        sim.step()


def test_a_body_that_sinks_deeper_than_at_the_start_is_refused() -> None:
    """Check that an overlap at the start does not hide a body that passes through another later."""
    robot = scene(BOX.format("a", "0 0 -0.3"))
    sim = fw.Simulation(robot, H, contact="rigid")
    with pytest.warns(fw.ModelWarning, match="overlap at the start"):
        sim.run(0.5)
    assert sim.state.arrays["deepest"] == pytest.approx(0.1)


def test_shapes_of_one_robot_that_its_file_draws_in_one_another_never_touch() -> None:
    """Check fixed bases too, and shapes that overlap only at the start; warnings name them."""
    robot = fw.load(ARM)
    sim = fw.Simulation(robot, H, shapes=True, q=[0.0, 0.5])
    assert [set(pair) for pair in sim.excluded_pairs] == [{"base", "fore"}]
    sim.run(0.1)
    assert sim.contacts()[2] == []


def test_bodies_of_several_robots_touch_wherever_they_are_drawn() -> None:
    """Check two boxes of a file without rules for pairs, which overlap at the origin in its configuration."""
    cube = fw.Body("cube", fw.Inertia(1.0, (0, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01)))
    bodies = [cube, fw.Body("other", cube.inertia)]
    joints = [fw.Joint(b.name, fw.JointType.FLOATING, None, b.name) for b in bodies]
    shapes = [fw.Shape(b.name, b.name, fw.ShapeType.BOX, (0.2, 0.2, 0.2)) for b in bodies]
    robot = fw.build(fw.describe(bodies, joints, shapes=shapes))
    q = np.array([0, 0, 0.1, 0, 0, 0, 1, 0, 0, 0.3, 0, 0, 0, 1.0])
    sim = fw.Simulation(robot, H, q=q, ground=True)
    sim.run(0.2)
    assert sim.excluded_pairs == ()
    np.testing.assert_allclose(sim.q, q, atol=1e-5)


def test_a_robot_is_put_on_the_ground() -> None:
    """Check that the distance of turned shapes of all kinds to the floor is the height."""
    geoms = ("sphere 0.1", "capsule 0.1 0.2", "box 0.1 0.2 0.3", "cylinder 0.1 0.2", "ellipsoid 0.1 0.2 0.3")
    rng = np.random.default_rng(0)
    mesh = '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
    for geom in [*geoms, "mesh"]:
        kind, *size = geom.split()
        given = 'type="mesh" mesh="m"' if kind == "mesh" else f'type="{kind}" size="{" ".join(size)}"'
        body = f'<body name="b"><freejoint/><geom name="g" {given} pos="0.1 0.2 0.3" euler="10 20 30" mass="1"/></body>'
        robot = fw.load(f"<mujoco>{mesh if kind == 'mesh' else ''}<worldbody>{FLOOR}{body}</worldbody></mujoco>")
        q = robot.random_configuration(rng=rng, size=5)
        q[:, 2] += 3.0
        on = robot.on_ground(q, height=0.02)
        np.testing.assert_allclose(robot.distances(on, pairs=[("g", None)]).distance[:, 0], 0.02, atol=1e-9)
        np.testing.assert_allclose(on[:, [0, 1, 3, 4, 5, 6]], q[:, [0, 1, 3, 4, 5, 6]], atol=1e-14)
        assert robot.on_ground(q[0]).shape == (7,)


def test_what_cannot_be_put_on_the_ground_says_why() -> None:
    with pytest.raises(ValueError, match="arm: its base does not float"):
        fw.load(ARM).on_ground()
    two = scene(BOX.format("a", "0 0 1"), BOX.format("b", "0 0 2"))
    with pytest.raises(ValueError, match=r"several free joints, 'a', 'b': select one with root="):
        two.on_ground()
    np.testing.assert_allclose(two.on_ground(root="b")[[2, 9]], [1.0, 0.1])
    with pytest.raises(ValueError, match="no free joint 'c'"):
        two.on_ground(root="c")
    bare = fw.load(
        '<mujoco><worldbody><body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match="has no lowest point"):
        bare.on_ground()
