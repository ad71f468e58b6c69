"""Controllers to export, with inputs of some ticks and what Python gives."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import featherweight as fw
from bridges.export.standalone_programs import records, run
from optimal_control.test_passive_forces import arm
from optimal_control.test_simulated_steps import TARGETS, before_the_box, pusher, pushing
from whole_body.humanoids import FEET, soles, talos, targets

TICKS = 8
HAND = "panda_hand"


class Case(NamedTuple):
    """A controller, the inputs of its ticks in the order of the record, and what Python gives."""

    controller: Any
    inputs: list[dict[str, Any]]
    results: list[list[Any]]
    status: list[int]


@functools.cache
def inverse_kinematics() -> Case:
    """Return velocities towards poses, with limits that act."""
    robot, rng = fw.load(fw.example("panda")), np.random.default_rng(0)
    ik = fw.InverseKinematics(robot, [fw.FrameTask(HAND), fw.PostureTask(weight=1e-3)])
    rest, inputs, results = robot.random_configuration(rng=1), [], []
    for k in range(TICKS):
        q, T = robot.random_configuration(rng=rng), robot.frame_placement(HAND)(robot.random_configuration(rng=rng))
        speed = np.full(robot.nv, 0.5 + 0.1 * k)
        inputs.append({"q": q, "hand": T, "rest": rest, "dt": 0.01, "gain": 0.5, "damping": 1e-4, "speed": speed})
        results.append([ik.velocity(q, [T, rest], 0.01, gain=0.5, damping=1e-4, speed=speed)])
    return Case(ik, inputs, results, [0] * TICKS)


@functools.cache
def configurations() -> Case:
    """Return configurations for poses, some out of reach, with a posture that decides what the pose leaves free."""
    robot, rng = fw.load(fw.example("panda")), np.random.default_rng(0)
    ik = fw.InverseKinematics(robot, [fw.FrameTask(HAND), fw.PostureTask(priority=1)])
    rest, inputs, results, status = robot.random_configuration(rng=1), [], [], []
    for k in range(2 * TICKS):
        q0, T = robot.random_configuration(rng=rng), robot.frame_placement(HAND)(robot.random_configuration(rng=rng))
        T[0, 3] += 2.0 * (k % 4 == 3)
        inputs.append({"q0": q0, "hand": T, "rest": rest})
        found = ik.solve([T, rest], q0, rng=5, restarts=6)
        results.append([found.q, found.errors, found.iterations, found.restarts])
        status.append(0 if found.converged else 1)
    assert {x[3] for x in results} > {0, 6}
    return Case(ik.solver(rng=5, restarts=6), inputs, results, status)


@functools.cache
def whole_body() -> Case:
    """Return ticks of a humanoid on two feet and on one."""
    (robot, start), rng = talos(), np.random.default_rng(0)
    tasks = (
        fw.CenterOfMassTask(weight=[1.0, 2.0, 3.0]),
        fw.FrameTask("torso_2_link", "orientation", weight=0.5),
        fw.FrameTask("gripper_right_base_link", "position", weight=0.1, damping=3.0),
        fw.AngularMomentumTask(weight=1e-3),
        fw.PostureTask(weight=0.01, stiffness=50.0, priority=1),
    )
    control = fw.WholeBodyControl(robot, tasks, soles())
    inputs, results, status = [], [], []
    for k in range(TICKS):
        q, v = robot.integrate(start, 0.02 * rng.standard_normal(robot.nv)), 0.1 * rng.standard_normal(robot.nv)
        given = targets(tasks, robot, start)
        given["center of mass"] = given["center of mass"] + 0.1 * rng.standard_normal(3)
        rates = {"center of mass": rng.standard_normal(3)}
        feet = FEET if k % 2 == 0 else FEET[:1]
        made = control(q, v, given, velocities=rates, contacts=feet)
        row: dict[str, Any] = {"q": q, "v": v} | {f"target {name}": x for name, x in given.items()}
        for task, n in zip(tasks, (3, 3, 3, 3, robot.nv - 6), strict=True):
            row |= {f"velocity {task.called}": rates.get(task.called, np.zeros(n)), f"rate {task.called}": np.zeros(n)}
        inputs.append(row | {"closed": np.array([f in feet for f in FEET])})
        results.append([made.tau, made.acceleration, made.forces.reshape(-1), made.wrenches.reshape(-1)])
        status.append(["solved", "infeasible", "inconsistent", "too many steps"].index(made.status))
    return Case(control, inputs, results, status)


def followed(robot: fw.Robot, mpc: fw.Controller, q: Any, targets: dict[str, Any]) -> Case:
    """Return a motion under a controller, disturbed, with two calls in each tick; later a target jumps, and time goes back."""
    rng, v, inputs, results = np.random.default_rng(0), np.zeros(robot.nv), [], []
    mpc.targets = targets
    for k in range(3 * TICKS):
        now = 0.005 * (k if k < 2 * TICKS else k - 2 * TICKS)
        if k == TICKS:
            mpc.targets = targets = targets | {"tool": targets["tool"] + 0.05}
        tau = mpc(now, q, v)
        inputs.append({"now": now, "q": q, "v": v, **targets})
        results.append([tau, mpc.cost, mpc.violation])
        v = v + 0.005 * robot.forward_dynamics(q, v, tau) + 1e-3 * rng.standard_normal(robot.nv)
        q = robot.integrate(q, 0.005 * v)
    return Case(mpc, inputs, results, [])


@functools.cache
def predictive() -> Case:
    """Return Panda's reach, with limits of forces."""
    robot = fw.load(fw.example("panda"))
    q = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8, 0.02])
    ocp = fw.OptimalControl(robot, dt=0.01, knots=10)
    ocp.add(fw.FrameTask(HAND, kind="position", name="tool"), weight=100.0)
    ocp.add(fw.PostureTask(), weight=0.1)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.limit(efforts=True)
    target = robot.frame_placement(HAND)(q)[:3, 3] + [0.1, 0.1, -0.1]
    return followed(robot, fw.Controller(ocp, frequency=100), q, {"tool": target, "posture": q})


@functools.cache
def closed_leg() -> Case:
    """Return a leg whose shank is moved by a four-bar linkage, and whose foot follows a target."""
    robot = fw.build(fw.robots.planar_leg_linkage())
    q = robot.random_configuration(rng=3)
    ocp = fw.OptimalControl(robot, dt=0.01, knots=10)
    ocp.add(fw.FrameTask("foot", kind="position", name="tool"), weight=100.0)
    ocp.add(fw.Effort(), weight=1e-2)
    ocp.add(fw.JointVelocities(), weight=0.1)
    target = robot.frame_placement("foot")(q)[:3, 3] + [0.02, 0.0, 0.02]
    return followed(robot, fw.Controller(ocp, frequency=100), q, {"tool": target})


@functools.cache
def sprung_arm() -> Case:
    """Return two hinges, a ball joint and a slider, with dampers, springs and gravity compensation, under free steps."""
    robot, rng = fw.load(arm()), np.random.default_rng(0)
    start = robot.random_configuration(rng=3)
    ocp = fw.OptimalControl(robot, dt=(0.005, 0.05), knots=10, integrator="rk4")
    ocp.add(fw.Effort(), weight=0.02)
    ocp.add(fw.Duration())
    ocp.require(fw.PostureTask(), at="end", weight=100.0)
    ocp.require(fw.JointVelocities(), at="end", weight=100.0)
    goal = robot.integrate(start, 0.1 * rng.standard_normal(robot.nv))
    mpc, inputs, results = fw.Controller(ocp, frequency=100, targets={"posture": goal}), [], []
    for k in range(30):
        now = 0.005 * (k if k < 24 else k - 24)
        q = robot.integrate(start, 0.02 * rng.standard_normal(robot.nv))
        v = 0.05 * rng.standard_normal(robot.nv)
        tau = mpc(now, q, v)
        inputs.append({"now": now, "q": q, "v": v, "posture": goal})
        results.append([tau, mpc.cost, mpc.violation])
    return Case(mpc, inputs, results, [])


@functools.cache
def pushing_finger() -> Case:
    """Return a finger that pushes a box over a plane, by steps of a simulation with contacts and dry friction."""
    return pushed(1)


def pushed(every: int, law: str = "file") -> Case:
    """Return a push with knots of so many steps."""
    ocp, rng = pushing(fw.Simulation(pusher(), contact=law), 12, every=every), np.random.default_rng(0)
    ocp.limit(controls=True)
    mpc, sim = fw.Controller(ocp, frequency=100, targets=TARGETS), fw.Simulation(pusher())
    start = before_the_box(0.001)
    sim.reset(start, (before_the_box(0.0) - start) / 0.005)
    inputs, results = [], []
    for k in range(16):
        now, q = 0.005 * (k if k < 12 else k - 12), sim.q.copy()
        v = sim.v + 1e-3 * rng.standard_normal(sim.robot.nv)
        _, u = mpc(now, q, v)
        inputs.append({"now": now, "q": q, "v": v, "box": TARGETS["box"]})
        results.append([u, mpc.cost, mpc.violation])
        sim.step(control=u)
    assert np.abs(sim.q[2:]).max() > 1e-5, "the box moves"
    return Case(mpc, inputs, results, [])


@functools.cache
def hopping_leg() -> Case:
    """Return a leg that hops: repeating phases with impacts, whose windows have different numbers of knots."""
    robot, rng, half, step = fw.build(fw.robots.planar_leg_linkage()), np.random.default_rng(0), 3, 0.01
    start = robot.random_configuration(rng=3)
    toe = [fw.BilateralContact("foot", rows=np.eye(6)[[0, 2]])]
    ocp = fw.OptimalControl(robot, dt=step, knots=8, phases=[fw.Phase(half), fw.Phase(half, toe, impact=True)])
    ocp.add(fw.Effort(), weight=0.02)
    ocp.add(fw.JointVelocities(), weight=0.01)
    ocp.add(fw.PostureTask(), weight=3.0)
    ocp.require(fw.JointVelocities(name="speed"), -0.5, 0.5)
    mpc, inputs, results = fw.Controller(ocp, frequency=1 / step, targets={"posture": start}), [], []
    for k in range(40):
        now = 0.5 * step * (k if k < 34 else k - 34)
        q = robot.integrate(start, 0.02 * rng.standard_normal(robot.nv))
        v = 0.05 * rng.standard_normal(robot.nv)
        tau = mpc(now, q, v)
        inputs.append({"now": now, "q": q, "v": v, "posture": start})
        results.append([tau, mpc.cost, mpc.violation, mpc.knot])
    assert {int(r[3]) for r in results} == {*range(2 * half)}
    return Case(mpc, inputs, results, [])


@functools.cache
def simulation() -> Case:
    """Return steps of a quadruped that falls on its feet."""
    robot, rng = fw.load(fw.example("solo12"), base="floating"), np.random.default_rng(0)
    feet = [fw.ContactSphere(foot, 0.02) for foot in ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")]
    sim = fw.Simulation(robot, 0.002, spheres=feet, ground=True, shapes=False)
    sim.reset(np.concatenate([[0.0, 0.0, 0.36], sim.q[3:]]))
    start, inputs, results, most = copy.copy(sim), [], [], 0
    for k in range(200):
        tau = np.concatenate([np.zeros(6), -0.05 * sim.v[6:] + 0.1 * rng.standard_normal(robot.nv - 6)])
        if k == 150:
            sim.q, sim.v = sim.robot.integrate(sim.q, 0.01 * np.ones(robot.nv)), 0.5 * sim.v
        row = {"put": int(k == 150), "q": sim.q.copy(), "v": sim.v.copy(), "tau": tau}
        sim.step(tau)
        count, wrench = sim.fleet_arrays.contacts.counts[0], sim.fleet_arrays.contacts.wrench[0]
        inputs.append(row)
        results.append([sim.q.copy(), sim.v.copy(), None, None, None if count == 0 else wrench.ravel().copy()])
        most = max(most, count)
    assert most == 4
    return Case(start, inputs, results, [0] * 200)


CASES: dict[str, Callable[[], Case]] = {
    "inverse kinematics": inverse_kinematics,
    "configurations": configurations,
    "whole body": whole_body,
    "predictive": predictive,
    "closed leg": closed_leg,
    "hopping leg": hopping_leg,
    "steps of a simulation": pushing_finger,
    "free steps and springs": sprung_arm,
    "simulation": simulation,
}


def check(case: Case, command: list[str], rounding: float = 0.0) -> None:
    """Check that a program gives the results of Python while a tick is one with results.

    They agree to the bit, or to a fraction of the greatest number among results of the same kind.
    """
    exported = case.controller.standalone()
    outputs = exported.outputs
    status, results = run(command, records(case.inputs), [port.defaults.size for port in outputs])
    assert status == case.status or (not case.status and {*status} <= {*exported.valid})
    columns = zip(*case.results, strict=True)
    scales = [max((np.abs(x).max(initial=0.0) for x in column if x is not None), default=0.0) for column in columns]
    for k, (got, expected) in enumerate(zip(results, case.results, strict=True)):
        if status[k] in exported.valid:
            for port, a, b, scale in zip(outputs, got, expected, scales, strict=True):
                if port.whole and b is not None:
                    np.testing.assert_array_equal(a.view(np.int64), np.reshape(b, -1))
                elif b is not None:
                    np.testing.assert_allclose(a, np.reshape(b, -1), rtol=0, atol=rounding * scale)
