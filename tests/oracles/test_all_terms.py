"""Tests of the function that returns all terms of a controller, against Pinocchio's computeAllTerms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from oracles.mechanisms import closed
from oracles.pinocchio_models import peer_of
from oracles.robots import NAMES
from oracles.states import random_states

CLOSE = 1e-10  # relative to max(1, greatest entry): only our loader makes angles within 1e-11 of a right angle exact


def close(ours: object, theirs: object) -> None:
    theirs = np.asarray(theirs)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=0, atol=CLOSE * max(1.0, float(np.abs(theirs).max(initial=0.0))))


@pytest.mark.parametrize("name", [*NAMES, "mixed_8", "mixed_21", "roots", "all_spherical"])
def test_terms_are_those_of_pinocchio(name: str) -> None:
    peer = peer_of(name)
    robot, model, data = peer.robot, peer.model, peer.data
    tick = robot.together(
        robot.mass_matrix, robot.bias_force, robot.joint_jacobian, robot.center_of_mass, robot.center_of_mass_jacobian,
        robot.kinetic_energy, robot.potential_energy, gravity=robot.gravity_force,
    )  # fmt: skip
    columns = peer.columns
    states = random_states(robot, 3)
    for q, v in zip(states.q, states.v, strict=True):
        terms = tick(q, v)
        pin.computeAllTerms(model, data, peer.q(q), peer.v(v))
        close(terms.mass_matrix, (np.triu(data.M) + np.triu(data.M, 1).T)[np.ix_(columns, columns)])
        close(terms.bias_force, data.nle[columns])
        close(terms.gravity, pin.computeGeneralizedGravity(model, data, peer.q(q))[columns])
        close(terms.joint_jacobian, pin.computeJointJacobians(model, data, peer.q(q))[:, columns])
        moving = sum(body.mass for body in robot.bodies)
        close(terms.center_of_mass * moving, pin.centerOfMass(model, data, peer.q(q), peer.v(v)) * moving)
        close(terms.center_of_mass_jacobian, pin.jacobianCenterOfMass(model, data, peer.q(q))[:, columns])
        close(terms.kinetic_energy, pin.computeKineticEnergy(model, data, peer.q(q), peer.v(v)))
        weight = moving * np.linalg.norm(robot.gravity)  # energies at heights of about a metre may cancel
        close(terms.potential_energy / weight, pin.computePotentialEnergy(model, data, peer.q(q)) / weight)


@pytest.mark.parametrize("name", NAMES)
def test_together_gives_what_each_gives(name: str) -> None:
    robot = peer_of(name).robot
    functions = robot.mass_matrix, robot.kinetic_energy, robot.center_of_mass_jacobian
    states = random_states(robot, 2)
    together = robot.together(*functions)(states.q, states.v)
    M, energy, J = functions[0](states.q), functions[1](states.q, states.v), functions[2](states.q)
    close(together.mass_matrix, M)
    close(together.kinetic_energy, energy)
    close(together.center_of_mass_jacobian, J)
    rate = 1e-7
    for q, v, Jk in zip(states.q, states.v, J, strict=True):  # J v is the velocity of the centre of mass
        moved = [robot.center_of_mass(robot.integrate(q, sign * rate * v)) for sign in (-1.0, 1.0)]
        np.testing.assert_allclose((moved[1] - moved[0]) / (2 * rate), Jk @ v, rtol=1e-6, atol=1e-6 * np.abs(v).max())


@pytest.mark.parametrize("make", [fw.robots.four_bar, fw.robots.tello, fw.robots.mini_cheetah])
def test_jacobians_of_robots_with_loops(make: Callable[[], fw.Description]) -> None:
    robot = closed(make())
    q, rng = robot.random_configuration(rng=0), np.random.default_rng(1)
    v = rng.standard_normal(robot.nv)
    by_rows = robot.contact_jacobian(fw.CenterOfMass())(q)
    np.testing.assert_allclose(robot.center_of_mass_jacobian(q), by_rows, rtol=0, atol=1e-12)
    name = robot.bodies[-1].name
    whole = robot.joint_jacobian(q) * robot.spanning_velocity(q, v)  # the motion that each joint causes
    carried = robot.frame_velocity(name, "world")(q, v)
    row, on_the_way = robot._placed(name).row, []
    while row >= 0:
        on_the_way.append(row)
        row = robot.model.tree.parent[row]
    np.testing.assert_allclose(whole[:, on_the_way].sum(axis=1), carried, rtol=0, atol=1e-10 * max(1, np.abs(carried).max()))
    energy = robot.together(robot.mass_matrix, robot.kinetic_energy)(q, v)
    np.testing.assert_allclose(energy.kinetic_energy, 0.5 * v @ energy.mass_matrix @ v, rtol=1e-12)
