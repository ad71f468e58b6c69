"""Tests of damping, springs and gravity compensation in plans, against simulations and MuJoCo."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from featherweight.optimal_control.passive_forces import PassiveForces
from optimal_control.problems import PANDA_START, hopper, layout_of, leg, pendulum
from optimal_control.test_stage_functions import check

FREE = fw.JointOptions(limits=False, dry_friction=False)
ARM = """<mujoco><compiler autolimits="false"/><option timestep="{step}" integrator="{integrator}"/><worldbody>
  <body gravcomp="0.4">
    <joint name="hip" axis="0 1 0" damping="0.7" stiffness="{k}" springref="17" armature="0.01"/>
    <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" contype="0"/>
    <body pos="0 0 -0.5">
      <joint name="knee" axis="1 0 0" damping="0.3"/>
      <geom type="box" size="0.05 0.08 0.2" pos="0 0 -0.2" contype="0"/>
      <body pos="0 0 -0.4" gravcomp="1">
        {wrist} <joint name="rail" type="slide" axis="0 0 1" damping="5" stiffness="{k}"/>
        <geom size="0.07" pos="0.02 0 0" contype="0"/>
      </body>
    </body>
  </body></worldbody>
  <actuator><motor joint="hip"/><motor joint="knee"/><motor joint="rail"/></actuator></mujoco>"""
BALL = '<joint name="wrist" type="ball" damping="0.05" stiffness="4"/>'


def arm(wrist: str = BALL, step: float = 0.02, integrator: str = "implicitfast", k: float = 40.0) -> str:
    """Return two hinges, a ball joint and a slider, with dampers, springs and gravity compensation."""
    return ARM.format(wrist=wrist, step=step, integrator=integrator, k=k)


def linkage() -> fw.Robot:
    """Return a leg with a loop, with dampers at all joints and springs at independent ones."""
    robot: Any = leg()[0].robot
    own = {j.name for j in robot.joints if j.independent}
    joints = [
        replace(j, damping=0.002 * i, **({"stiffness": 3.0, "rest": 0.2 * i} if j.name in own else {}))
        for i, j in enumerate(robot.description.joints)
    ]
    return fw.build(replace(robot.description, joints=tuple(joints)))


def sprung_hopper() -> tuple[fw.Robot, Array]:
    """Return a leg under a floating trunk, whose damping is that of a fluid."""
    return hopper(root={"damping": 0.4}, hip={"damping": 0.5, "stiffness": 30.0, "rest": -0.3}, knee={"damping": 0.2})


def mixed(q: Any, a: Any, tau: Any) -> Any:
    return [a[0] * q[1] + tau[1] * tau[0]]


def problem(robot: fw.Robot, **options: Any) -> fw.OptimalControl:
    ocp = fw.OptimalControl(robot, **({"dt": 0.02} | ({} if "phases" in options else {"knots": 4}) | options))
    ocp.add(fw.Effort(), weight=0.1)
    ocp.add(fw.JointVelocities(), weight=1.0)
    ocp.add(fw.Residual(mixed, size=1), weight=1.0)
    return ocp


def state(robot: fw.Robot, rng: np.random.Generator) -> tuple[Array, Array]:
    start = leg()[1] if robot.closed else robot.neutral()
    return robot.integrate(start, 0.4 * rng.normal(size=robot.nv)), rng.normal(size=robot.nv)


@pytest.mark.parametrize(("integrator", "step"), [("semi-implicit", 1e-3), ("semi-implicit", 0.03), ("rk4", 1e-3)])
def test_steps_are_those_of_a_simulation(integrator: str, step: float) -> None:
    """Check joints that a loop or a coupling moves, too; without these forces, velocities would differ much."""
    rng = np.random.default_rng(0)
    for robot in (fw.load(arm()), linkage(), sprung_hopper()[0], fw.load(fw.example("panda"))):
        ocp = problem(robot, dt=step, integrator=integrator)
        q, v = (PANDA_START, rng.normal(size=robot.nv)) if robot.name == "panda" else state(robot, rng)
        u = 3.0 * rng.normal(size=ocp.nu)
        tau = np.zeros(robot.nv)
        tau[list(ocp.driven)] = u
        sim, bare = (
            fw.Simulation(robot, step, integrator, q=q, v=v, actuators=[], joints=joints, shapes=False, contact="rigid")
            for joints in (FREE, replace(FREE, passive=False))
        )
        sim.step(tau)
        bare.step(tau)
        found = layout_of(ocp).stages[0].step(q, v, u, step)
        place = 3 if robot.name == "hopper" else 0  # in a simulation's step, the linear velocity of a base has other axes
        np.testing.assert_allclose(found.velocity[place:], sim.v[place:], rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.ahead[place:], sim.q[place:], rtol=0, atol=1e-12)
        assert np.abs(bare.v - sim.v).max() > 1e-4 * step / 1e-3


@pytest.mark.parametrize(("integrator", "wrist"), [("implicitfast", BALL), ("RK4", "")])
def test_controls_of_a_plan_move_mujocos_model_along_it(integrator: str, wrist: str) -> None:
    """Check motions; implicitfast takes springs at the beginning of a step, so that case has none; ball joints need Euler
    steps.
    """
    k = 0.0 if wrist else 40.0
    text = arm(wrist.replace(' stiffness="4"', ""), 0.01, integrator, k)
    robot, model = fw.load(text), mujoco.MjModel.from_xml_string(text)
    own = "rk4" if integrator == "RK4" else "semi-implicit"
    ocp = fw.OptimalControl(robot, dt=0.01, knots=60, driven=["hip", "knee", "rail"], integrator=own)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.PostureTask(["hip", "knee"]), weight=10.0)
    start = robot.neutral()
    start[0] = 0.5
    goal = start.copy()
    goal[:2] = [-0.4, 0.6]
    plan = ocp.solve(start, targets={"posture": goal})
    assert plan.converged and np.abs(plan.q[-1, :2] - goal[:2]).max() < 0.2
    data = mujoco.MjData(model)
    data.qpos[0] = 0.5
    for u, v in zip(plan.u, plan.v[1:], strict=True):
        data.ctrl[:] = u
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(data.qvel, v, rtol=0, atol=1e-9)


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4"])
def test_derivatives_are_those_of_differences(integrator: str) -> None:
    rng = np.random.default_rng(0)
    foot = [fw.BilateralContact("foot", "point")]
    for robot, phases in (
        (fw.load(arm()), [fw.Phase(2)]),
        (linkage(), [fw.Phase(2)]),
        (linkage(), [fw.Phase(2, [fw.BilateralContact("toe", rows=np.eye(6)[:2])])]),
        (sprung_hopper()[0], [fw.Phase(2, foot, impact=True), fw.Phase(2)]),
    ):
        ocp = problem(robot, phases=phases, integrator=integrator)
        ocp.add(fw.Residual(lambda a: [a[0] + a[2] * a[1]], size=1, name="accelerations"), weight=1.0)
        if phases[0].contacts:
            ocp.add(fw.ContactForces(), weight=1e-3)
        for stage in layout_of(ocp).stages:
            check(ocp, stage, state(robot, rng)[0], layout_of(ocp).parameters(np.zeros(0), None, None)[0], rng)


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4"])
def test_free_steps_change_what_dampers_and_springs_do(integrator: str) -> None:
    rng = np.random.default_rng(0)
    foot = [fw.BilateralContact("foot", "point")]
    for robot, phases in ((fw.load(arm()), [fw.Phase(2)]), (sprung_hopper()[0], [fw.Phase(2, foot)])):
        ocp = problem(robot, phases=phases, dt=(0.005, 0.02), integrator=integrator)
        ocp.add(fw.Duration(), weight=0.3)
        check(ocp, layout_of(ocp).stages[0], state(robot, rng)[0], layout_of(ocp).parameters(np.zeros(0), None, None)[0], rng)


def test_steps_of_all_lengths_share_compiled_functions_and_are_stable() -> None:
    """Check springs for which explicit steps of these lengths are unstable; a scaled problem is the one with its steps."""
    robot = fw.load(arm(k=1e7))
    ocps = [fw.OptimalControl(robot, dt=h, knots=20) for h in (0.02, 0.05)]
    for ocp in ocps:
        ocp.add(fw.Effort(), weight=1e-3)
        ocp.add(fw.JointVelocities(), weight=1.0)
    one, two = ocps[0].scaled(2.5).solve(robot.neutral()), ocps[1].solve(robot.neutral())
    assert one.converged and np.abs(one.v).max() < 50.0
    np.testing.assert_allclose(one.q, two.q, rtol=0, atol=1e-9)


def test_the_first_guess_holds_a_robot_against_its_springs() -> None:
    robot = fw.load(arm())
    q, _ = state(robot, np.random.default_rng(0))
    plan = problem(robot, knots=2).solve(q, iterations=0)
    stage = layout_of(problem(robot)).stages[0]
    np.testing.assert_allclose(stage.step(q, np.zeros(robot.nv), plan.u[0], 0.02).velocity, 0.0, rtol=0, atol=1e-12)


def test_a_controller_keeps_a_robot_with_strong_springs_at_its_target() -> None:
    """Check that it stays within 3 mrad, which the cost of efforts explains; a controller without the springs is 27 mrad
    off.
    """
    robot, off = fw.load(arm(wrist="", k=200.0)), []
    goal = np.array([0.6, -0.4, 0.05])
    for known in (robot, fw.load(arm(wrist="", k=0.0))):
        ocp = fw.OptimalControl(known, dt=0.02, knots=20)
        ocp.add(fw.Effort(), weight=1e-4)
        ocp.add(fw.PostureTask(), weight=1e3)
        ocp.add(fw.JointVelocities(), weight=10.0)
        sim = fw.Simulation(robot, 2e-3, q=robot.neutral(), actuators=[], joints=FREE, shapes=False)
        sim.run(2.0, fw.Controller(ocp, frequency=50, targets={"posture": goal}))
        off.append(float(np.abs(sim.q - goal).max()))
    assert off[0] < 3e-3 and off[1] > 0.02


def test_samples_follow_the_steps_of_a_simulation() -> None:
    robot = fw.load(arm())
    ocp = problem(robot, knots=10)
    rng = np.random.default_rng(0)
    q, v = state(robot, rng)
    u = 2.0 * rng.normal(size=(8, 10, robot.nv))
    sim = fw.Simulation(robot, 0.02, actuators=[], joints=FREE, shapes=False, contact="rigid", on_failure="stop")
    own, simulated = (fw.SamplingController(ocp, *given, samples=8).costs(q, v, u) for given in ((), (sim,)))
    np.testing.assert_allclose(own, simulated, rtol=1e-9)


@pytest.mark.parametrize("step", [0.05, (0.02, 0.05)])
def test_gradients_of_a_plan_are_those_of_differences(step: Any) -> None:
    ocp = fw.OptimalControl(fw.load(arm(wrist="")), dt=step, knots=10)
    ocp.add(fw.Effort(), weight=0.1)
    ocp.add(fw.PostureTask(), weight=10.0)
    ocp.add(fw.Duration(), weight=0.3)
    f = ocp.plan_function(tolerance=1e-12, iterations=300)
    q, v, goal = np.array([[0.1, -0.2, 0.02]]), np.array([[0.5, 0.1, 0.0]]), np.array([[[0.6, 0.3, 0.0]]])
    solved = f(q, v, goal)
    bars = [np.zeros(x.shape) for x in (solved.q, solved.v, solved.u, solved.cost, solved.steps)]
    bars[2][0] = np.random.default_rng(0).normal(size=solved.u.shape[1:])
    found = f.pullback(solved, [goal], bars)
    for k, given in enumerate((q, v)):
        moved, differences = [q, v, goal], []
        for change in 1e-3 * np.eye(3):
            ends = []
            for moved[k] in (given + change, given - change):
                ends.append(float((f(*moved).u * bars[2]).sum()))
            differences.append((ends[0] - ends[1]) / 2e-3)
        np.testing.assert_allclose(found[k][0], differences, rtol=0, atol=3e-4 * np.abs(differences).max())


LEFT_OUT = """<mujoco><worldbody>
  <body><freejoint name="root"/><geom size="0.1"/>
    <body pos="0 0 -0.2"><joint name="a" axis="0 1 0" frictionloss="0.2" damping="1"/><geom size="0.1"/></body>
    <body pos="0 0 0.2"><joint name="b" axis="0 1 0"/><geom size="0.1"/></body>
  </body></worldbody>
  <tendon><fixed name="cord" stiffness="3"><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed></tendon></mujoco>"""


def test_what_is_left_out_is_told_once_a_problem() -> None:
    robot = fw.load(LEFT_OUT)
    with pytest.warns(fw.ModelWarning) as told:
        ocp = problem(robot)
    assert [str(x.message) for x in told] == [
        f"{robot.name}: plans leave out forces that simulations include: dry friction of a; tendons cord"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ocp.solve(robot.neutral(), iterations=1)
        pickle.loads(pickle.dumps(ocp))
        problem(pendulum())


def test_springs_without_a_coordinate_of_their_own_are_left_out_by_name() -> None:
    closed: Any = leg()[0].robot
    joints = tuple(replace(j, stiffness=2.0) for j in closed.description.joints)
    robot = fw.build(replace(closed.description, joints=joints))
    others = tuple(sorted(j.name for j in robot.joints if not j.independent))
    passive = PassiveForces(robot)
    assert passive.left_out == {"springs of floating joints or joints that depend on others, of": others}
    assert len(passive.springs) == len([j for j in robot.joints if j.independent])
