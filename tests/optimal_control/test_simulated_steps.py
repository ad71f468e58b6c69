"""Tests of optimal control problems whose knots are steps of a simulation, with contacts that its solver finds."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from featherweight.optimal_control.problem import Plan
from featherweight.optimal_control.simulated_steps import SimulatedKnots, SimulatedSteps

KNOTS = 40
GOAL = np.array([0.0, 0.0, -0.02, 0.08, 0.0])
TARGETS = {"box": GOAL}


def pusher(margin: float = 0.0, solimp: str = "0.9 0.95 0.001", options: str = "", actuators: str = "") -> fw.Robot:
    """Return an arm with two joints, whose finger pushes a box over a plane with dry friction, seen from above."""
    return fw.load(f"""<mujoco><compiler angle="radian"/><option timestep="0.01" cone="elliptic" {options}/><worldbody>
<body><joint name="shoulder" axis="0 0 1" damping="0.05"/><geom type="capsule" fromto="0 0 0 0.35 0 0" size="0.015" mass="0.8"
 contype="0" conaffinity="0"/><body pos="0.35 0 0"><joint name="elbow" axis="0 0 1" damping="0.05"/>
<geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.015" mass="0.5" contype="0" conaffinity="0"/>
<geom name="finger" pos="0.3 0 0" size="0.02" mass="0.05"/></body></body>
<body name="box" pos="0.45 0.25 0"><joint name="x" type="slide" axis="1 0 0" frictionloss="0.5" damping="0.5"/>
<joint name="y" type="slide" axis="0 1 0" frictionloss="0.5" damping="0.5"/>
<joint name="turn" axis="0 0 1" frictionloss="0.02" damping="0.02"/>
<geom name="side" type="box" size="0.05 0.05 0.05" mass="0.3"/></body></worldbody>
<contact><pair geom1="finger" geom2="side" friction="0.5 0.5" margin="{margin}" solimp="{solimp}"/></contact>
<actuator><motor joint="shoulder" ctrllimited="true" ctrlrange="-3 3"/>
<motor joint="elbow" ctrllimited="true" ctrlrange="-3 3"/>{actuators}</actuator></mujoco>""")


def before_the_box(gap: float) -> Array:
    """Return the configuration with the finger so far from the box [m]."""
    x, y = 0.45, 0.25 - 0.05 - 0.02 - gap
    elbow = np.arccos((x * x + y * y - 0.35**2 - 0.3**2) / (2 * 0.35 * 0.3))
    return np.array([np.arctan2(y, x) - np.arctan2(0.3 * np.sin(elbow), 0.35 + 0.3 * np.cos(elbow)), elbow, 0.0, 0.0, 0.0])


START = before_the_box(0.01)


def pushing(simulation: fw.Simulation | None = None, knots: int = KNOTS, **options: Any) -> fw.OptimalControl:
    """Return the problem of a push."""
    ocp = fw.OptimalControl(fw.Simulation(pusher()) if simulation is None else simulation, knots=knots, **options)
    ocp.add(fw.PostureTask(["x", "y", "turn"], name="box"), weight=1e4, at="end")
    ocp.add(fw.JointVelocities(), weight=np.append(np.full(knots, 0.01), 1.0))
    ocp.add(fw.Effort(), weight=0.1)
    return ocp


def touching(ocp: fw.OptimalControl) -> Array:
    """Return controls (knots, 2) under which the finger touches the box."""
    return np.tile([0.3, -0.05], (ocp.knots, 1))[:, : ocp.nu]


def tumbling() -> fw.Robot:
    """Return a finger on two slides beside a box that is free, on a floor."""
    return fw.load("""<mujoco><option timestep="0.005" cone="elliptic"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 0.15"><joint name="ahead" type="slide" axis="1 0 0"/><joint name="up" type="slide" axis="0 0 1"/>
<geom size="0.03" mass="0.5"/></body><body pos="0.14 0.01 0.0998"><freejoint name="free"/>
<geom type="box" size="0.1 0.1 0.1" mass="1"/></body></worldbody></mujoco>""")


@pytest.fixture(scope="module")
def pushed() -> tuple[fw.OptimalControl, Plan]:
    ocp = pushing()
    ocp.limit(controls=True)
    return ocp, ocp.solve(START, targets=TARGETS, guess=touching(ocp), iterations=200)


# derivatives


def differences(ocp: fw.OptimalControl, q: Array, u: Array, targets: Any) -> tuple[Array, Array, Array]:
    """Return central differences of the cost of simulated motions by controls, and by the initial q and v."""
    robot, e = ocp.robot, 1e-6

    def cost(u: Array = u, dq: Array | float = 0.0, dv: Array | float = 0.0) -> float:
        start = robot.integrate(q, dq + np.zeros(robot.nv)), dv + np.zeros(robot.nv)
        return float(ocp.solve(*start, targets=targets, guess=u, iterations=0).cost)

    by_u = np.zeros(u.shape)
    for k in np.ndindex(u.shape):
        change = np.zeros(u.shape)
        change[k] = e
        by_u[k] = (cost(u + change) - cost(u - change)) / (2 * e)
    by_q, by_v = (
        np.array([(cost(**{x: e * d}) - cost(**{x: -e * d})) / (2 * e) for d in np.eye(robot.nv)]) for x in ("dq", "dv")
    )
    return by_u, by_q, by_v


@pytest.mark.parametrize(
    ("law", "every", "driven"), [("file", 1, None), ("file", 3, None), ("file", 2, ["shoulder", "elbow"]), ("rigid", 1, None)]
)
def test_the_gradient_of_a_push_is_that_of_differences(law: str, every: int, driven: list[str] | None) -> None:
    """Check all inputs of a motion that meets the box, by controls of motors and by joint forces. The cost is about 20, so that
    differences over 1e-6 have errors of 1e-8.
    """
    ocp = pushing(fw.Simulation(pusher(), contact=law), KNOTS // every, every=every, driven=driven)
    u = touching(ocp) + 0.02 * np.random.default_rng(1).normal(size=(ocp.knots, 2))
    plan = ocp.solve(START, targets=TARGETS, guess=u, iterations=0)
    assert np.abs(plan.q[-1, 2:]).max() > 0.02  # the box moves
    found = ocp.gradient(plan, targets=TARGETS)
    for x, y in zip(found, differences(ocp, START, u, TARGETS), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-5 * np.abs(y).max())


def test_the_gradient_of_a_free_body_is_by_velocities() -> None:
    """Check a box that is pushed over a floor and turns; its corners stick and slide, with differences accurate to 1e-5."""
    robot = tumbling()
    sim = fw.Simulation(robot)
    ocp = fw.OptimalControl(sim, knots=20, every=2, driven=["ahead", "up"])
    ocp.add(fw.PostureTask(["free"], name="box"), weight=10.0, at="end")
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.add(fw.Effort(), weight=1e-3)
    u = np.tile([12.0, 0.5 * 9.81], (20, 1))
    q = robot.start()
    goal = q.copy()
    goal[robot.joint("free").q_slice.start] += 0.1
    targets = {"box": goal}
    plan = ocp.solve(q, targets=targets, guess=u, iterations=0)
    assert robot.difference(q, plan.q[-1])[2] > 0.005  # pushed
    found = ocp.gradient(plan, targets=targets)
    for x, y in zip(found, differences(ocp, q, u, targets), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-5 * np.abs(y).max())


def test_nothing_that_does_not_touch_has_a_gradient_unless_a_margin_gives_one() -> None:
    """Check that the gradient of controls of zero vanishes, and that the plan of a simulation with a margin is a good guess."""
    ocp, soft = pushing(), pushing(fw.Simulation(pusher(0.05, "0.001 0.95 0.05")))
    none = np.zeros((KNOTS, 2))
    plan = ocp.solve(START, targets=TARGETS, guess=none, iterations=0)
    assert (ocp.gradient(plan, targets=TARGETS).u == 0.0).all()
    assert ocp.solve(START, targets=TARGETS, guess=none).cost == plan.cost
    ahead = soft.solve(START, targets=TARGETS, guess=none)
    assert ocp.solve(START, targets=TARGETS, guess=ahead.u).cost < 0.1 * plan.cost


# solutions


def test_an_arm_pushes_a_box_to_its_goal(pushed: tuple[fw.OptimalControl, Plan]) -> None:
    ocp, plan = pushed
    assert plan.converged, plan.reason
    assert np.abs(plan.q[-1] - GOAL)[2:].max() < 2e-3
    assert np.abs(plan.u).max() < 3.0 + 1e-3
    gradient = ocp.gradient(plan, targets=TARGETS).u  # no constraint is active
    first = ocp.gradient(ocp.solve(START, targets=TARGETS, guess=touching(ocp), iterations=0), targets=TARGETS).u
    assert np.abs(gradient).max() < 1e-2 * np.abs(first).max()


def test_a_simulation_that_takes_the_controls_ends_where_the_plan_says_to_the_bit(
    pushed: tuple[fw.OptimalControl, Plan],
) -> None:
    plan = pushed[1]
    sim = fw.Simulation(pusher(), q=START)
    for k, u in enumerate(plan.u):
        np.testing.assert_array_equal(sim.q, plan.q[k])
        sim.step(control=u)
    np.testing.assert_array_equal(sim.q, plan.q[-1])
    np.testing.assert_array_equal(sim.v, plan.v[-1])


def test_a_plan_without_contact_is_that_of_the_robot() -> None:
    """Check that a simulation in which nothing touches has the optimum of the problem of its robot, whose steps are the same,
    also from a guess that does not follow from its steps: standing still under gravity.
    """
    arm = fw.load("""<mujoco><compiler angle="radian"/><option timestep="0.02"/><worldbody>
<body><joint name="shoulder" axis="0 1 0" damping="0.1"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
<body pos="0.3 0 0"><joint name="elbow" axis="0 1 0" damping="0.1"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
<site name="tip" pos="0.3 0 0"/></body></body></worldbody>
<actuator><motor joint="shoulder" gear="2"/><motor joint="elbow"/></actuator></mujoco>""")
    plans = []
    for ocp in (fw.OptimalControl(arm, dt=0.02, knots=40, actuators=True), fw.OptimalControl(fw.Simulation(arm), knots=40)):
        ocp.add(fw.FrameTask("tip", kind="position"), weight=1e3, at="end")
        ocp.add(fw.JointVelocities(), weight=np.append(np.full(40, 0.1), 10.0), width=5.0)
        ocp.add(fw.Effort(), weight=1e-2)
        ocp.require(fw.PostureTask(["elbow"], name="bent"), low=-1.0, high=1.0, at=[20])
        targets = {"tip": [0.3, 0.0, 0.4], "bent": [0.0, 0.0]}
        plans.append(ocp.solve([0.1, 0.2], targets=targets, tolerance=1e-10))
    still = plans[0]._replace(q=np.tile([0.1, 0.2], (41, 1)), v=np.zeros((41, 2)), u=np.ones((40, 2)))
    plans.append(ocp.solve([0.1, 0.2], targets=targets, tolerance=1e-10, guess=still))
    of_robot, *others = plans
    for plan in others:
        assert of_robot.converged and plan.converged
        assert plan.cost == pytest.approx(of_robot.cost, rel=1e-8)
        np.testing.assert_allclose(plan.q, of_robot.q, rtol=0, atol=1e-5)
        np.testing.assert_allclose(plan.u, of_robot.u, rtol=0, atol=1e-4 * np.abs(of_robot.u).max())


def test_a_plan_that_the_simulation_does_not_follow_has_not_converged() -> None:
    """Check gaps within the tolerance in a guess of an inverted pendulum, whose motion grows by a factor of e in 0.2 s."""
    robot = fw.load("""<mujoco><worldbody><body pos="0 0 1"><joint name="top" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.02"/></body></worldbody></mujoco>""")
    ocp = fw.OptimalControl(fw.Simulation(robot, dt=0.02), knots=200)
    ocp.add(fw.Effort())
    still = ocp.solve([0.0], guess=np.zeros((200, 1)), iterations=0)
    assert ocp.solve([0.0], guess=still).converged
    plan = ocp.solve([0.0], guess=still._replace(u=np.full((200, 1), 1e-8)), tolerance=1e9)
    assert not plan.converged and plan.reason == "the simulation departs from the plan"
    assert abs(plan.q[-1, 0]) > 0.1  # the simulation's motion


def test_many_problems_are_solved_as_each_alone() -> None:
    ocp = pushing(threads=2)
    goals = GOAL + np.array([[0.0, 0.0, 0.01 * k, 0.0, 0.0] for k in range(3)])
    u = touching(ocp)
    many = ocp.solve(np.tile(START, (3, 1)), targets={"box": goals[:, None]}, guess=u, iterations=10)
    for k, goal in enumerate(goals):
        one = ocp.solve(START, targets={"box": goal}, guess=u, iterations=10)
        np.testing.assert_array_equal(many.u[k], one.u)
        np.testing.assert_array_equal(many.q[k], one.q)


def test_a_pickle_and_a_copy_solve_the_same_problem() -> None:
    ocp = pushing()
    plans = [x.solve(START, targets=TARGETS, guess=touching(ocp), iterations=5) for x in (ocp, pickle.loads(pickle.dumps(ocp)))]
    np.testing.assert_array_equal(plans[0].u, plans[1].u)


def test_later_changes_of_the_simulation_do_not_change_the_problem() -> None:
    sim = fw.Simulation(pusher())
    ocp = pushing(sim)
    first = ocp.solve(START, targets=TARGETS, guess=touching(ocp), iterations=0)
    sim.reset(START, np.ones(5))
    sim.step()
    again = ocp.solve(START, targets=TARGETS, guess=touching(ocp), iterations=0)
    np.testing.assert_array_equal(first.q, again.q)
    assert sim.steps == 1


def test_a_trajectory_has_the_contacts(pushed: tuple[fw.OptimalControl, Plan]) -> None:
    ocp, plan = pushed
    motion = ocp.trajectory(plan)
    np.testing.assert_array_equal(motion.q, plan.q)
    assert len(motion.times) == KNOTS + 1 and motion.times[-1] == pytest.approx(0.4)
    assert np.linalg.norm(motion.forces, axis=1).max() > 1.0


# controllers


def test_a_controller_pushes_the_box_without_a_guess_from_where_it_touches() -> None:
    """Check that ticks of two iterations move the box by 80 mm to its goal, to a tenth of that."""
    ocp = pushing(knots=30)
    mpc = fw.Controller(ocp, frequency=100, iterations=2, targets=TARGETS)
    sim = fw.Simulation(pusher(), q=before_the_box(-0.002))
    motion = sim.run(0.6, mpc)
    assert np.abs(motion.q[-1] - GOAL)[2:4].max() < 8e-3
    other = copy.copy(mpc)
    for x, y in zip(mpc(0.61, sim.q, sim.v), other(0.61, sim.q, sim.v), strict=True):
        np.testing.assert_array_equal(x, y)


def test_sampling_takes_the_simulation_of_the_problem() -> None:
    ocp = pushing(knots=20)
    sampling = fw.SamplingController(ocp, samples=16, targets=TARGETS)
    tau, control = sampling(0.0, START, np.zeros(5))
    assert not tau.any() and control.shape == (2,) and np.isfinite(sampling.cost)


# failures and refusals


def test_robots_whose_steps_fail_are_lost_and_others_go_on() -> None:
    steps = SimulatedSteps(fw.Simulation(pusher()), 1, None)
    knots, q, v = SimulatedKnots(steps), np.tile(START, (3, 1)), np.zeros((3, 5))
    u = np.zeros((3, 2))
    v[1] = 1e200  # which a step does not survive
    ahead, velocity = knots.moved(q, v, u, True)
    assert np.isnan(ahead[1]).all() and np.isnan(velocity[1]).all() and np.isfinite(ahead[[0, 2]]).all()
    ahead, _ = knots.moved(ahead, velocity, np.full((3, 2), np.nan) * [[0.0], [1.0], [0.0]], False)
    assert np.isnan(ahead).any(axis=1).tolist() == [True, True, True]  # controls that are not finite
    with pytest.raises(fw.SimulationError):
        knots.motion(START, v[1], np.zeros((4, 2)))


@pytest.mark.parametrize("name", ["moved", "slopes"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_errors_of_steps_reach_the_caller(name: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check exceptions in calls from the compiled solver, after which the problem is solved as before, and a start that no step
    survives.
    """
    ocp = pushing()
    before = ocp.solve(START, targets=TARGETS, guess=touching(ocp), iterations=3)
    with monkeypatch.context() as patch:

        def fail(*_: Any) -> None:
            raise error

        patch.setattr(SimulatedKnots, name, fail)
        with pytest.raises(error):
            ocp.solve(START, targets=TARGETS, guess=touching(ocp), iterations=3)
    after = ocp.solve(START, targets=TARGETS, guess=touching(ocp), iterations=3)
    np.testing.assert_array_equal(before.u, after.u)
    with pytest.raises(fw.SimulationError):
        ocp.solve(START, np.full(5, 1e200), targets=TARGETS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": 0.01}, "dt does not apply to a simulation"),
        ({"phases": [fw.Phase(3)]}, "phases does not apply"),
        ({"integrator": "rk4"}, "integrator does not apply"),
        ({"actuators": True}, "actuators does not apply"),
        ({"exact": True}, "exact does not apply"),
        ({"every": 0}, "every must be at least 1"),
    ],
)
def test_options_of_robots_are_refused(options: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        fw.OptimalControl(fw.Simulation(pusher()), **{"knots": 3, **options})


def test_what_a_simulation_does_not_support_is_refused() -> None:
    sim = fw.Simulation(pusher())
    with pytest.raises(ValueError, match="every= is for a Simulation"):
        fw.OptimalControl(pusher(), knots=3, every=2)
    lagging = pusher(actuators='<general joint="elbow" dyntype="filter" dynprm="0.1"/>')
    with pytest.raises(NotImplementedError, match="activations or delays"):
        fw.OptimalControl(fw.Simulation(lagging), knots=3)
    ocp = pushing(sim)
    for term in (fw.JointForces(), fw.ContactForces(), fw.Duration(), fw.Residual(lambda a: [a[0]], size=1, name="jerk")):
        with pytest.raises(ValueError, match="terms of a simulation depend on q, v and u"):
            ocp.add(term)
    plan = ocp.solve(START, targets=TARGETS, iterations=0)
    calls: list[Any] = [
        ocp.plan_function,
        lambda: ocp.scaled(0.5),
        lambda: ocp.fastest(START, shortest=0.1),
        lambda: ocp.contact_forces(plan),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match="for problems of a Simulation"):
            call()
    with pytest.raises(ValueError, match=r"guess must be finite numbers of shape \(\.\.\., 40, 2\)"):
        ocp.solve(START, targets=TARGETS, guess=np.zeros((3, 2)))
    many = replace_all(plan, 2)
    with pytest.raises(ValueError, match="gradient takes one plan"):
        ocp.gradient(many, targets=TARGETS)
    robot = fw.OptimalControl(fw.build(fw.robots.planar_leg_linkage()), knots=3)
    with pytest.raises(ValueError, match="gradient is for problems of a Simulation"):
        robot.gradient(plan)


def replace_all(plan: Plan, count: int) -> Plan:
    """Return a plan several times."""
    return plan._replace(**{name: np.array([x] * count) for name, x in plan._asdict().items()})
