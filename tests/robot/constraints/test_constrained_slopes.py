"""Tests of derivatives of constrained dynamics: against the function, with every kind of rows, and against Pinocchio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight import robots
from featherweight.engine.trace import evaluate
from oracles.pinocchio_models import example
from oracles.robots import robot_of
from oracles.states import Array, state

FEET = [f"{leg}_foot" for leg in ("lf", "rf", "lh", "rh")]


def own_rows(q: Array) -> Any:
    """Return two rows on the last joints of HyQ, which are nonlinear in the configuration."""
    J = np.zeros((2, 18), dtype=object)
    J[0, 17], J[0, 16] = np.sin(q[17]), q[18] * q[18]
    J[1, 15] = 1.0
    return J


def quadruped() -> fw.Robot:
    return robot_of("hyq")


def leg() -> fw.Robot:
    return fw.build(robots.planar_leg_linkage())


SPACES: dict[str, tuple[Callable[[], fw.Robot], list[Any]]] = {
    "points": (quadruped, [fw.BilateralContact(foot, "point") for foot in FEET]),
    "one body": (quadruped, [fw.BilateralContact("lf_foot", "point"), fw.BilateralContact("lf_foot")]),
    "dependent": (quadruped, [*(fw.BilateralContact(foot) for foot in FEET)]),
    "any rows": (
        quadruped,
        [fw.CenterOfMass(), fw.BilateralContact("lf_foot", "point"), fw.Difference("rf_foot", "lh_foot", "point")],
    ),
    "own": (quadruped, [fw.BilateralContact("rf_foot", "point"), fw.JacobianRows(own_rows)]),
    "loops": (leg, [fw.BilateralContact(robots.planar_leg_linkage().bodies[-1].name, rows=np.eye(6)[:1])]),
}


@pytest.mark.parametrize("name", SPACES)
def test_are_those_of_the_function(name: str) -> None:
    """Check along a direction, by the pushforward of the function, which is independent of the equations."""
    make, constraints = SPACES[name]
    robot = make()
    space = robot.operational_space(constraints)
    f = space.forward_dynamics_derivatives
    assert f.algorithm == ("forward" if name == "dependent" else "ltl")
    x = state(robot, 3)
    arguments = [list(map(float, part)) for part in x]
    sizes = [r.size for r in f.program.outputs]
    parts = np.split(np.array(evaluate(f.trace, arguments)), np.cumsum(sizes)[:-1])
    matrices = [part.reshape(r.shape) for part, r in zip(parts, f.program.outputs, strict=True)]
    directions = np.random.default_rng(1).standard_normal((3, robot.nv))
    pushforward = space.constrained_dynamics.alternatives["ltl"].pushforward
    exact = np.array(evaluate(pushforward.trace, [*arguments, *directions.tolist()]))[: robot.nv + space.size]
    ours = np.concatenate([sum(J @ d for J, d in zip(matrices[k : k + 3], directions, strict=True)) for k in (0, 3)])
    assert np.abs(ours - exact).max() <= (1e-6 if name == "dependent" else 1e-9) * np.abs(exact).max()


def test_names_batches_and_targets() -> None:
    robot = leg()
    space = robot.operational_space(SPACES["loops"][1])
    f = space.forward_dynamics_derivatives
    assert [r.name for r in f.program.outputs] == [f"d{y}_d{x}" for y in ("acceleration", "force") for x in ("q", "v", "tau")]
    assert [x.name for x in f.program.inputs] == ["q", "v", "tau"]
    x = [np.array(part) for part in zip(state(robot, 0), state(robot, 1), strict=True)]
    for k in range(2):
        for one, many in zip(f(*(part[k] for part in x)), f(*x), strict=True):
            np.testing.assert_allclose(one, many[k], rtol=1e-10, atol=1e-10)
    moved = f(*(part[0] for part in x), target=np.ones(space.size))
    assert np.abs(moved.dacceleration_dq - f(*x).dacceleration_dq[0]).max() > 1e-3


def test_stabilization_depends_on_the_state() -> None:
    robot = quadruped()
    space = robot.operational_space([fw.BilateralContact(foot, "point") for foot in FEET[:2]])
    x = state(robot, 3)
    rng = np.random.default_rng(2)
    placements, gains = space.placements(x.q) + 0.01 * rng.standard_normal((2, 4, 4)), np.array([100.0, 20.0])
    ours = space.stabilized_derivatives(*x, placements, gains)
    by_q, by_v = rng.standard_normal((2, robot.nv))
    h = 1e-6

    def dynamics(step: float) -> Array:
        q, v = robot.integrate(x.q, step * by_q), x.v + step * by_v
        motion = space.forward_dynamics(q, v, x.a, space.stabilization(q, v, placements, gains))
        return np.concatenate([motion.acceleration, motion.force])

    exact = (dynamics(h) - dynamics(-h)) / (2 * h)
    got = [ours.dacceleration_dq @ by_q + ours.dacceleration_dv @ by_v, ours.dforce_dq @ by_q + ours.dforce_dv @ by_v]
    assert np.abs(np.concatenate(got) - exact).max() <= 1e-6 * np.abs(exact).max()


def test_agree_with_pinocchio() -> None:
    """Check two held feet of a humanoid, at rest and in motion, without stabilization."""
    peer = example("talos")
    names = ["left_sole_link", "right_sole_link"]
    f = peer.robot.operational_space([fw.BilateralContact(name) for name in names]).forward_dynamics_derivatives
    x = state(peer.robot, 2, 0.5)
    values = np.array(evaluate(f.trace, [list(map(float, part)) for part in x]))
    ours = np.split(values, np.cumsum([r.size for r in f.program.outputs])[:-1])
    matrices = [part.reshape(r.shape) for part, r in zip(ours, f.program.outputs, strict=True)]
    assert_are_pinocchio(matrices, peer.model, names, [peer.q(x.q), peer.v(x.v), peer.v(x.a)], peer.columns)


def assert_are_pinocchio(ours: Sequence[Array], model: Any, names: list[str], x: Sequence[Array], columns: Any) -> None:
    """Check derivatives with two surfaces on the frames, for Pinocchio's state and our velocities among its columns."""
    models, data, own = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData(), model.createData()
    for name in names:
        frame = model.frames[model.getFrameId(name)]
        placed = (model, frame.parentJoint, frame.placement, pin.ReferenceFrame.LOCAL)
        models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, *placed))
    data.extend([m.createData() for m in models])
    pin.initConstraintDynamics(model, own, models, data)
    settings = pin.ProximalSettings(1e-14, 0.0, 10)
    pin.constraintDynamics(model, own, *x, models, data, settings)
    pin.computeConstraintDynamicsDerivatives(model, own, models, data, settings)
    theirs = [*(y[np.ix_(columns, columns)] for y in (own.ddq_dq, own.ddq_dv, own.ddq_dtau))]
    theirs += [y[:, columns] for y in (own.dlambda_dq, own.dlambda_dv, own.dlambda_dtau)]
    for mine, y in zip(ours, theirs, strict=True):
        assert np.abs(mine - y).max() <= 1e-8 * np.abs(y).max()


def test_large_robots_agree_with_pinocchio() -> None:
    """Check a chain whose straight code would be too large to compile."""
    text = '<robot name="chain"><link name="l0"/>'
    for k in range(60):
        text += f"""<link name="l{k + 1}"><inertial><origin xyz="0.01 0.02 0.05"/><mass value="{1 + k % 3}"/>
        <inertia ixx="0.02" ixy="0.001" ixz="0.002" iyy="0.03" iyz="0.0005" izz="0.025"/></inertial></link>
        <joint name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{k + 1}"/>
        <origin xyz="0.01 0 0.1" rpy="0.1 0.2 0"/><axis xyz="{int(k % 3 == 0)} {int(k % 3 == 1)} {int(k % 3 == 2)}"/>
        <limit lower="-2" upper="2" effort="1" velocity="1"/></joint>"""
    text += "</robot>"
    robot, model, names = fw.load(text), pin.buildModelFromXML(text), ["l30", "l60"]
    f = robot.operational_space([fw.BilateralContact(name) for name in names]).forward_dynamics_derivatives
    assert f.execution == "rolled"
    x = state(robot, 2, 0.5)
    assert_are_pinocchio(f(*x), model, names, list(x), np.arange(60))


@pytest.mark.parametrize("name", ["points", "one body", "any rows", "own"])
def test_columns_one_by_one_are_those_of_straight_code(name: str) -> None:
    make, constraints = SPACES[name]
    robot = make()
    x = state(robot, 3)
    straight, rolled = (
        type(robot)(robot.model, execution).operational_space(constraints).forward_dynamics_derivatives
        for execution in ("auto", "rolled")
    )
    assert (straight.execution, rolled.execution) == ("traced", "rolled")
    targets: tuple[dict[str, Any], ...] = ({}, {"target": np.ones(straight.program.outputs[3].shape[0])})
    for target in targets:
        for ours, y in zip(rolled(*x, **target), straight(*x, **target), strict=True):
            assert np.abs(ours - y).max() <= 1e-11 * np.abs(y).max()
