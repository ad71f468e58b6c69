"""Tests of polynomial springs and dampers of joints, tendons and actuators, against MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.not_simulated import not_simulated
from oracles.states import random_states
from simulation.beside_mujoco import BesideMujoco, require_motion, require_springs
from simulation.step_differences import watched

mujoco = pytest.importorskip("mujoco", minversion="3.8")

BODIES = """<body name="a" pos="0 0 1"><joint name="a" axis="0 1 0" damping="0 .2 .3" stiffness="5 -1 2" springref="20"/>
<geom size=".1" pos=".2 0 0"/><body name="b" pos=".3 0 0"><joint name="b" type="slide" axis="1 0 .5" damping=".5 0 .4"
stiffness="0 3 40" springref=".1"/><geom size=".1" pos=".2 0.1 0"/></body></body>
<body name="c" pos="0 0 2" euler="10 20 30"><joint name="c" type="ball" damping=".04 .03 .02" stiffness="4 1 .5"/>
<geom type="box" size=".1 .2 .3" pos=".1 .2 .3"/><body pos=".2 0 0"><joint name="d" type="ball" stiffness="0 0 2"/>
<geom type="box" size=".1 .2 .3"/><site name="tip" pos=".2 0 0"/></body></body>"""
SITES = '<site name="hook" pos="1 1 2"/>'
TENDONS = """<tendon><fixed name="both" stiffness="3 0 2" damping=".3 .2 .1" springlength=".1"><joint joint="a" coef=".7"/>
<joint joint="b" coef="-1"/></fixed>
<fixed name="one" stiffness="2 1 1" springlength="-.1 .2"><joint joint="a" coef="2"/></fixed>
<spatial name="string" stiffness="30 -5 9" damping="1 2 3" springlength=".3 .6"><site site="hook"/><site site="tip"/></spatial>
</tendon>"""
ACTUATORS = """<actuator><motor joint="a" gear="2" damping=".1 .2 .3"/><motor tendon="both" gear="3" damping=".01 .02 .03"/>
<motor tendon="string" gear="-1.5" damping=".2"/><motor joint="c" gear="2 1 0" damping=".03 .01 .02"/></actuator>"""


def xml(flags: str = "", body: str = BODIES, more: str = TENDONS + ACTUATORS, integrator: str = "RK4") -> str:
    option = f'<option timestep="0.001" integrator="{integrator}"><flag energy="enable" contact="disable" {flags}/></option>'
    return f"<mujoco>{option}<worldbody>{SITES}{body}</worldbody>{more}</mujoco>"


def beside(text: str, **options: Any) -> tuple[fw.Robot, fw.MujocoOrder, Any]:
    robot, model = fw.load(text, equalities="exact", **options), mujoco.MjModel.from_xml_string(text)
    assert isinstance(robot, fw.Robot | fw.ClosedRobot) and not_simulated(robot) == {}
    return robot, fw.MujocoOrder(robot, model), mujoco.MjData(model)


FOLLOWERS = '<equality><joint joint1="{0}" joint2="{1}" polycoef="{2}"/></equality>'
COUPLED = [
    xml(more=FOLLOWERS.format("b", "a", ".1 .7 0 0 0") + TENDONS),
    xml(more=FOLLOWERS.format("a", "b", ".1 -.7 0 0 0")),
    xml(more=FOLLOWERS.format("a", "b", ".1 .7 .2 0 0") + TENDONS),
    xml(more='<tendon><fixed stiffness="3" springlength=".5"><joint joint="a" coef="2"/></fixed></tendon>'),
    xml(body=BODIES.replace('stiffness="5 -1 2"', 'stiffness="5"'), more=FOLLOWERS.format("a", "b", ".1 .7 0 0 0")),
]


@pytest.mark.parametrize(
    "text", [xml(), *COUPLED], ids=["tree", "in proportion", "turned", "by a square", "tendon", "of a bent one"]
)
def test_forces_and_energies_are_mujocos(text: str) -> None:
    """Check random states to rounding; forces of all joints are mapped to the independent joints."""
    require_springs(*beside(text, execution="interpreted"), 1e-11)


@pytest.mark.parametrize("execution", ["traced", "interpreted"])
def test_motion_is_mujocos(execution: str) -> None:
    """Check half a second of "rk4", with the same truncation errors in both, for one robot and for two."""
    require_motion(*beside(xml(), execution=execution), 500 if execution == "traced" else 20, 1e-9)


DAMPED = """<body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".1 2 3"/><geom size=".1" pos=".4 0 0"/>
<body pos=".4 0 0"><joint name="b" type="slide" axis="1 0 .5" damping="0 .5 30"/><geom size=".1" pos=".4 0 0"/>
<body pos=".4 0 0"><joint name="c" axis="0 1 0" damping=".1"/><geom size=".1" pos=".2 0 0"/></body></body></body>"""
SERVO = '<actuator><position joint="a" kp="1" kv=".5" forcerange="-1 1"/><motor joint="c" damping="0 1 0"/></actuator>'


@pytest.mark.parametrize("more", ["", '<actuator><motor joint="c" damping="0 1 0"/></actuator>'])
def test_dampers_are_met_at_the_end_of_a_step_as_by_mujocos_euler(more: str) -> None:
    """Check that the step uses the slope at its start: without springs, the two steps are equal."""
    robot, _, data = beside(xml(body=DAMPED, more=more, integrator="Euler"))
    x = random_states(robot, 1)
    pair = BesideMujoco(robot, data.model, dt=0.001, q=x.q[0], v=20.0 * x.v[0])
    assert pair.sim.integrator == "semi-implicit"
    for _ in range(300):
        pair.step()
    assert pair.away < 1e-11


def test_steps_beside_drives_that_are_met_at_the_end_converge() -> None:
    """Check that semi-implicit steps with springs, dampers and a servo converge to those of "rk4" in proportion to the
    step size.
    """
    robot = fw.load(xml(body=DAMPED.replace("damping", 'stiffness="3 2 9" damping'), more=SERVO))
    ends = []
    for step, integrator in ((1e-3, "rk4"), (1e-3, "semi-implicit"), (5e-4, "semi-implicit")):
        sim = fw.Simulation(robot, step, integrator, v=[3.0, -2.0, 5.0])
        sim.run(0.3, control=[0.5, 0.0])
        ends.append(sim.q)
    errors = [np.abs(q - ends[0]).max() for q in ends[1:]]
    assert 0.0 < errors[0] < 0.02 and errors[1] / errors[0] == pytest.approx(0.5, abs=0.05)


def test_stiff_springs_and_dampers_that_are_not_linear_keep_steps_stable() -> None:
    """Check steps that would be unstable if explicit: above 3 ms for this spring at its start, above 0.1 ms for this damper."""
    stiff = '<body><joint name="a" axis="0 1 0" {0}/><geom size=".1" pos=".4 0 0"/></body>'
    spring, damper = (fw.load(xml(body=stiff.format(x), more="")) for x in ('stiffness="0 0 1e7"', 'damping="0 0 10"'))
    sim = fw.Simulation(spring, 1e-2, "semi-implicit", q=[0.1], contact="rigid")
    sim.run(1.0)
    assert abs(sim.q[0]) < 0.1
    sim = fw.Simulation(damper, 1e-2, "semi-implicit", v=[30.0], contact="rigid")
    speeds = []
    for _ in range(50):
        sim.step()
        speeds.append(float(sim.v[0]))
    assert min(speeds) > 0.0 and max(np.diff(speeds[:20])) < 0.0


@pytest.mark.parametrize(("integrator", "lost"), [("semi-implicit", 0.5), ("rk4", 1e-5), ("midpoint", 1e-9)])
def test_the_energy_of_springs_counts(integrator: str, lost: float) -> None:
    """Check that joints without dampers conserve the sum of energies, to the order of each integrator."""
    text = xml(more=TENDONS)
    for damping in ('damping="0 .2 .3"', 'damping=".5 0 .4"', 'damping=".04 .03 .02"', 'damping=".3 .2 .1"', 'damping="1 2 3"'):
        text = text.replace(damping, "")
    robot = fw.load(text)
    x = random_states(robot, 1)
    sim = fw.Simulation(robot, 1e-3, integrator, q=x.q[0], v=x.v[0])
    energy = sim.energy()
    sim.run(0.3)
    assert sim.energy() == pytest.approx(energy, abs=lost)


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4", "midpoint"])
def test_robots_of_a_fleet_may_differ_in_all_coefficients(integrator: str) -> None:
    body = DAMPED.replace("damping=", 'stiffness="1 2 4" damping=')
    robot, twice = fw.load(xml(body=body, more="")), body.replace('"1 2 4"', '"2 4 8"')
    for one, other in ((".1 2 3", ".3 6 9"), ("0 .5 30", "0 1.5 90"), ('g=".1"', 'g=".3"')):
        twice = twice.replace(one, other)
    many = fw.Simulation(robot, 1e-3, integrator, q=np.zeros((2, 3)), v=np.full((2, 3), 2.0))
    many.vary(stiffness=np.array([1.0, 2.0]), damping=np.array([1.0, 3.0]))
    many.run(0.05)
    for i, one_robot in enumerate((robot, fw.load(xml(body=twice, more="")))):
        alone = fw.Simulation(one_robot, 1e-3, integrator, v=np.full(3, 2.0))
        alone.run(0.05)
        np.testing.assert_allclose(many.q[i], alone.q, atol=1e-12)
        assert many.energy()[i] == pytest.approx(alone.energy(), abs=1e-10)


def having(d: fw.Description) -> list[Any]:
    return [*d.joints, *d.tendons]


def test_files_and_descriptions_carry_them(tmp_path: Path) -> None:
    described = fw.read(xml())
    described.save(tmp_path / "again.xml")
    again = fw.read(tmp_path / "again.xml")
    for x, y in zip(having(described), having(again), strict=True):
        assert (x.stiffness_poly, x.damping_poly) == (y.stiffness_poly, y.damping_poly)
        assert (x.stiffness, x.damping) == pytest.approx((y.stiffness, y.damping), rel=1e-15)
    joints = {j.name: j for j in described.joints}
    assert joints["a"].stiffness_poly == (-1.0, 2.0) and joints["a"].damping_poly == pytest.approx((0.2 + 0.8, 0.3 + 1.2))
    assert [t.name for t in described.tendons] == ["both", "one", "string"]
    with pytest.warns(fw.ModelWarning, match="springs and dampers that are not linear, of the joints a, b, c, d"):
        described.save(tmp_path / "robot.urdf")
    off = fw.read(xml('spring="disable" damper="disable"'))
    assert not any(any(j.stiffness_poly) or any(j.damping_poly) for j in having(off))


def test_what_is_not_there_says_so() -> None:
    robot = fw.load(xml(body=DAMPED, more=""))
    watched(fw.Simulation(robot, contact="rigid"))
    body = fw.Body("b", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    hinge = fw.Joint("j", fw.JointType.REVOLUTE, None, "b", stiffness_poly=(np.inf, 0.0))
    with pytest.raises(fw.ModelError, match="joint 'j' has the number inf in its stiffness_poly"):
        fw.build(fw.describe([body], [hinge]))
    with pytest.raises(ValueError, match=r"Joint 'j': stiffness_poly must be 2 numbers; got \(1.0,\)"):
        replace(hinge, stiffness_poly=(1.0,))  # type: ignore[arg-type]
