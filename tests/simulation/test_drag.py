"""Tests of drag of bodies in a fluid, against MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.simulation.derivatives.fleet_derivatives import StepDerivatives
from featherweight.simulation.forces.drag import add_drag, drag_parts
from simulation.beside_mujoco import BesideMujoco
from simulation.plain_python import ROUNDED, plain_python, steps_by
from simulation.scenes import require_alike_alone
from simulation.step_differences import watched

mujoco = pytest.importorskip("mujoco")

SWIMMING = """<mujoco><option density="{density}" viscosity="{viscosity}" timestep="0.002" gravity="0 0 -3"
  integrator="{integrator}"/><worldbody>
<body name="trunk" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .05" pos=".02 .03 .01" euler="10 20 30" mass="10"/>
  <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04" mass="2"/>
    <body pos=".3 .1 0" euler="0 40 0"><geom size=".05" pos="0 .1 0" mass="1"/></body></body></body>
<body pos="2 0 1"><joint axis="1 0 0"/><joint axis="0 1 0"/>
  <geom type="ellipsoid" size=".1 .2 .3" pos="0 0 -.5" mass="3"/></body>
<body pos="4 0 1"><joint type="ball"/><geom type="cylinder" size=".1 .2" pos="0 .3 -.5" mass="1"/></body>
</worldbody></mujoco>"""
FLUIDS = ((1000.0, 0.0), (0.0, 5.0), (4000.0, 0.1))


def swimming(density: float = 1000.0, viscosity: float = 0.1, integrator: str = "Euler") -> str:
    return SWIMMING.format(density=density, viscosity=viscosity, integrator=integrator)


def faster_than_mujoco(text: str, steps: int, external: Any = None, **options: Any) -> float:
    """Return the greatest difference of velocities from a random start, optionally under a force on the trunk."""
    robot, worst, given = fw.load(text), 0.0, None
    v = np.random.default_rng(0).standard_normal(robot.nv) * 2.0
    pair = BesideMujoco(robot, mujoco.MjModel.from_xml_string(text), v=v, **{"shapes": False, "contact": "rigid"} | options)
    model, data = pair.model, pair.data
    for _ in range(steps):
        if external is not None:
            given = np.zeros((len(robot.bodies), 6))
            R = np.asarray(robot.frame_placement("trunk")(pair.sim.q))[:3, :3]
            given[0, :3] = R.T @ external
            mujoco.mj_forward(model, data)
            data.qfrc_applied[:] = 0.0
            mujoco.mj_applyFT(model, data, external, np.zeros(3), data.xpos[1], 1, data.qfrc_applied)
        pair.step(external_forces=given)
        worst = max(worst, pair.faster)
    return worst


@pytest.mark.parametrize(("density", "viscosity"), FLUIDS)
def test_drag_is_mujocos(density: float, viscosity: float) -> None:
    """Check free bodies, hinges, bodies with several joints, ball joints, and links that are fixed to others, at every step."""
    assert faster_than_mujoco(swimming(density, viscosity), 200) < 1e-11


def test_drag_by_runge_kutta_is_mujocos() -> None:
    """Check to the order of the methods, which differ for rotations."""
    assert faster_than_mujoco(swimming(integrator="RK4"), 200) < 1e-7


def test_drag_and_forces_of_users_add_up() -> None:
    assert faster_than_mujoco(swimming(), 100, np.array([30.0, -20.0, 10.0])) < 1e-11


def test_robots_of_a_fleet_are_dragged_as_one_alone() -> None:
    require_alike_alone(fw.load(swimming()))


def test_a_swimmer_swims() -> None:
    """Check that Gymnasium's swimmer, driven by its motors, moves as in MuJoCo for half a second."""
    gymnasium = pytest.importorskip("gymnasium")
    from pathlib import Path

    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "swimmer.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    robot = fw.load(path)
    sim, order = fw.Simulation(robot), fw.MujocoOrder(robot, model)
    for k in range(50):
        control = np.array([np.sin(0.1 * k), np.cos(0.1 * k)])
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        sim.step(control=control)
    np.testing.assert_allclose(order.state(sim.q, sim.v).qpos, data.qpos, atol=2e-4)
    assert np.abs(data.qvel).max() > 0.5


def test_links_without_axes_of_the_file_have_those_of_their_inertia() -> None:
    """Check a description with an attached link that comes from no MJCF file."""
    body = fw.Body("link", fw.Inertia(1.0, (0.1, 0.0, 0.0), (0.01, 0, 0, 0.02, 0, 0.025)))
    part = fw.describe([body], [fw.Joint("hinge", fw.JointType.REVOLUTE, None, "link", axis=(0.0, 1.0, 0.0))])
    robot = fw.build(fw.read(swimming()).attached(part, "trunk"))
    (box,) = [x for x in robot.model.drag if x.body == "link"]
    a, b, c = sorted(box.size)
    squares = np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 12.0
    np.testing.assert_allclose(sorted(squares), [0.01, 0.02, 0.025], rtol=1e-12)


def test_what_is_not_there_says_so() -> None:
    robot = fw.load(swimming())
    with pytest.raises(ValueError, match="drag in a fluid needs integrator 'semi-implicit' or 'rk4'"):
        fw.Simulation(robot, integrator="midpoint")
    watched(fw.Simulation(robot, shapes=False, contact="rigid", integrator="rk4"))
    assert isinstance(fw.Simulation(fw.build(fw.generators.chain(2))).derivatives(), StepDerivatives)


FLYING = """<mujoco><compiler angle="radian"/><option density="{density}" viscosity="{viscosity}" wind="{wind}" timestep="0.001"
  integrator="{integrator}"/><default><geom fluidshape="ellipsoid"/><default class="plain"><geom fluidshape="none"/></default>
  <default class="light"><geom fluidcoef="0.2 0.9 0.3 1.7 0.4"/></default></default><worldbody>
<geom type="plane" size="1 1 1" fluidshape="none"/>
<body name="trunk" pos="0 0 1">{base}<geom type="ellipsoid" size=".1 .2 .05" pos=".02 .03 .01" euler="0.3 0.4 0.5" mass="2"/>
  <geom type="box" size=".05 .05 .05" class="plain" mass="1"/>
  <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04" mass="0.5" class="light"/>
    <body pos=".3 .1 0" euler="0 0.7 0"><geom type="box" size=".05 .1 .004" pos="0 .1 0" mass="0.1"/></body></body>
  <body pos="-.3 0 0"><joint type="slide" axis="0 1 1"/><geom type="cylinder" size=".1 .05" mass="0.4" euler="1 2 3"/>
    <geom size=".05" pos="0.2 0 0" mass="0.1" class="light"/></body>
  <body pos="0 0.4 0"><joint axis="1 0 0"/><geom size=".1 .05 .2" type="box" mass="0.4" class="plain"/></body></body>
<body pos="2 0 1">{ball}<geom type="ellipsoid" size=".001 .06 .12" pos="0 0.1 -.1" mass="0.2"/></body>
</worldbody></mujoco>"""
HINGES = '<joint axis="1 0 0"/><joint axis="0 1 0"/>'
WIND = "3 -2 1"


def flying(
    wind: str = "0 0 0", integrator: str = "Euler", hinged: bool = False, fluid: tuple[float, float] = (20.0, 0.5)
) -> str:
    base, ball = (HINGES, HINGES) if hinged else ("<freejoint/>", '<joint type="ball"/>')
    density, viscosity = fluid
    return FLYING.format(wind=wind, integrator=integrator, base=base, ball=ball, density=density, viscosity=viscosity)


@pytest.mark.parametrize("wind", ["0 0 0", WIND])
@pytest.mark.parametrize("fluid", [(1.2, 1.8e-5), (100.0, 0.0), (0.0, 5.0), (20.0, 0.5)])
def test_drag_of_ellipsoids_is_mujocos(wind: str, fluid: tuple[float, float]) -> None:
    """Check all primitives with their own coefficients, beside links with drag of boxes; tolerance: rounding, at every step."""
    assert faster_than_mujoco(flying(wind, fluid=fluid), 200) < 1e-11


@pytest.mark.parametrize(("hinged", "most"), [(True, 1e-11), (False, 1e-7)])
def test_drag_of_ellipsoids_by_runge_kutta_is_mujocos(hinged: bool, most: float) -> None:
    """Check to the order of the methods, which differ for rotations."""
    assert faster_than_mujoco(flying(WIND, "RK4", hinged), 200) < most


def test_wind_acts_on_boxes_as_in_mujoco() -> None:
    text = swimming(1.2, 1.8e-5).replace("<option", f'<option wind="{WIND}"')
    assert faster_than_mujoco(text, 200) < 1e-11


def test_robots_whose_joints_follow_others_move_as_under_the_forces_of_plain_python() -> None:
    """Check against a robot without fluid, with the drag of `add_drag`, called in Python, as forces on bodies."""
    gear = '<equality><joint joint1="arm" joint2="slide" polycoef="0 1 0 0 0"/></equality></mujoco>'
    text = flying(WIND).replace('<joint axis="0 1 0"', '<joint name="arm" axis="0 1 0"', 1)
    text = text.replace('<joint type="slide"', '<joint name="slide" type="slide"').replace("</mujoco>", gear)
    robot, bare = fw.load(text, equalities="exact"), fw.build(replace(fw.read(text, equalities="exact"), fluid=None))
    v = np.random.default_rng(2).standard_normal(robot.nv)
    dragged, given = (fw.Simulation(x, v=v, shapes=False) for x in (robot, bare))
    names = [b.name for b in robot.bodies]
    parts = drag_parts(robot.model.drag, names, robot.model.fluid)
    for _ in range(30):
        parts.velocity[:] = robot.frame_velocity(names, "local")(given.q, given.v)
        parts.placement[:] = robot.frame_placement(names)(given.q)
        forces = np.zeros((len(names), 6))
        add_drag(parts, forces)
        given.step(external_forces=forces)
        dragged.step()
    assert robot.closed and not bare.model.drag
    np.testing.assert_allclose(dragged.v, given.v, rtol=0.0, atol=1e-11)
    assert np.abs(dragged.v - v).max() > 0.1


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_steps_as_machine_code_have_the_bits_of_plain_python(integrator: str) -> None:
    """Check steps with boxes, ellipsoids, wind and dry friction, in which each operation is rounded."""
    robot, ends = fw.load(HELD.format(integrator=integrator, loss=' frictionloss="0.1"')), []
    v = np.random.default_rng(7).standard_normal(robot.nv)
    for by in (plain_python(), steps_by(ROUNDED)):
        with by:
            sim = fw.Simulation(robot, v=v, shapes=False)
            sim.run(0.02)
            ends.append(sim.v)
    np.testing.assert_array_equal(ends[0], ends[1])


@pytest.mark.parametrize("size", [1e-3, 1e-5])
def test_drag_of_small_ellipsoids_is_mujocos(size: float) -> None:
    """Check bodies as small as insects, whose sections have tiny squares; tolerances are relative to the largest force."""
    text = f"""<mujoco><option density="1" viscosity="1e-5"/><worldbody><body name="wing"><freejoint/>
      <inertial pos="0 0 0" mass="1e-6" diaginertia="1e-9 1e-9 1e-9"/>
      <geom type="ellipsoid" size="{size} {0.5 * size} {0.01 * size}" fluidshape="ellipsoid"/></body></worldbody></mujoco>"""
    model, robot = mujoco.MjModel.from_xml_string(text), fw.load(text)
    data, rng = mujoco.MjData(model), np.random.default_rng(3)
    parts = drag_parts(robot.model.drag, ["wing"], robot.model.fluid)
    for v in (rng.standard_normal(6), np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]), np.zeros(6)):
        data.qvel[:] = v
        mujoco.mj_forward(model, data)
        forces, parts.velocity[0] = np.zeros((1, 6)), v
        add_drag(parts, forces)
        np.testing.assert_allclose(forces[0, :3], data.qfrc_fluid[:3], rtol=0.0, atol=1e-13 * np.abs(forces[0, :3]).max())
        np.testing.assert_allclose(forces[0, 3:], data.qfrc_fluid[3:], rtol=0.0, atol=1e-13 * np.abs(forces[0, 3:]).max())


HELD = """<mujoco><option density="50" wind="0 1 0.5" timestep="0.002" integrator="{integrator}"/><worldbody>
<geom type="plane" size="5 5 1"/><body name="ball" pos="2 0 0.1"><freejoint/><geom size=".1" mass="1"/></body>
<body name="arm" pos="0 0 1"><joint axis="0 1 0" range="-10 10"{loss}/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".04"/>
  <body pos=".3 0 0"><joint axis="1 0 0"/><geom type="box" size=".1 .2 .01" pos="0 .1 0" fluidshape="ellipsoid"/></body></body>
<body name="kite" pos="4 0 3"><freejoint/><geom type="box" size=".1 .2 .01" mass="0.1" euler="20 30 0"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("loss", ["", ' frictionloss="0.1"'])
def test_drag_acts_where_contacts_limits_and_friction_do(loss: str) -> None:
    """Check to the tolerance of MuJoCo's solver."""
    assert faster_than_mujoco(HELD.format(integrator="Euler", loss=loss), 100, contact="compliant", shapes=True) < 1e-7


@pytest.mark.parametrize(("integrator", "most"), [("Euler", 1e-12), ("RK4", 1e-5)])
@pytest.mark.parametrize("contact", ["rigid", "compliant"])
def test_impulses_of_a_body_leave_others_their_drag(contact: str, integrator: str, most: float) -> None:
    """Check that a kite flies the same whether or not the ball beside it touches the ground: to rounding, and in
    Runge-Kutta steps with contacts to the error of the mean velocity, with which these steps move all bodies.
    """
    text = HELD.format(integrator=integrator, loss="")
    low, high = (fw.Simulation(fw.load(text.replace("0 0.1", z)), contact=contact) for z in ("0 0.1", "0 9"))
    v: Any = np.random.default_rng(4).standard_normal(low.v.shape)
    v[2] = -1.0
    for sim in (low, high):
        sim.reset(v=v)
        sim.run(0.1)
    np.testing.assert_allclose(low.v[-6:], high.v[-6:], rtol=0.0, atol=most)
    assert np.abs(low.v[:3] - high.v[:3]).max() > 0.1


def test_a_ball_is_blown_away() -> None:
    """Check a ball that starts at rest in a storm: its energy is the work of the wind, which the energy guard includes."""
    text = """<mujoco><option density="1.2" wind="60 0 0" timestep="0.005" gravity="0 0 0"/><worldbody><body><freejoint/>
      <geom size=".1" mass="0.6" fluidshape="ellipsoid"/></body></worldbody></mujoco>"""
    sim = fw.Simulation(fw.load(text), shapes=False)
    sim.run(0.5)
    assert 20.0 < sim.v[0] < 60.0


def test_robots_of_a_fleet_fly_as_one_alone() -> None:
    require_alike_alone(fw.load(flying(WIND)))


def test_saved_files_and_edits_keep_ellipsoids_and_wind(tmp_path: Path) -> None:
    d = fw.read(flying(WIND))
    d.save(tmp_path / "again.xml")
    again = fw.read(tmp_path / "again.xml")
    assert again.fluid == d.fluid == (20.0, 0.5, (3.0, -2.0, 1.0))
    own = [s.fluid for s in d.shapes]
    assert [s.fluid is None for s in d.shapes].count(False) == 6
    for x in (again, d.mirrored("y"), d.renamed({"trunk": "hull"})):
        for a, b in zip([s.fluid for s in x.shapes], own, strict=True):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                np.testing.assert_allclose(np.hstack(a), np.hstack(b), rtol=1e-12, atol=0.0)


def test_meshes_with_drag_of_their_own_are_told() -> None:
    mesh = '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>'
    text = flying().replace("<worldbody>", mesh).replace('type="box" size=".05 .1 .004"', 'type="mesh" mesh="m"')
    robot = fw.load(text)
    told = "meshes with drag of their own (fluidshape), taken as their links' boxes"
    assert robot.report()[told] == "1"
    assert told not in fw.load(flying()).report()
    with pytest.warns(fw.ModelWarning, match="fluidshape"):
        fw.Simulation(robot)
    assert len(robot.model.drag) == len(fw.load(flying()).model.drag)


def test_coefficients_of_shapes_without_an_ellipsoid_are_refused() -> None:
    d = fw.read(flying())
    plane = next(s for s in d.shapes if s.type == "plane")
    wrong = replace(d, shapes=(replace(plane, fluid=d.shapes[1].fluid),))
    with pytest.raises(fw.ModelError, match="a plane has no ellipsoid in a fluid; leave out fluid="):
        fw.build(wrong)


def test_files_that_turn_passive_forces_off_have_no_fluid() -> None:
    off = flying(WIND).replace('integrator="Euler"/>', '><flag spring="disable" damper="disable"/></option>')
    assert fw.read(off).fluid is None
    assert faster_than_mujoco(off, 20) < 1e-11
