"""Tests of all functions of small robots whose joints have armatures, of every type and on the ground too.

They agree with one another and with differences of their values; there is a relation for each function.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import robots
from featherweight.model.generators import from_parents
from oracles.states import Array, state
from oracles.trees import awkward

KINDS = ("floating", "planar", "spherical", "revolute", "prismatic")
MECHANISMS = {"four_bar": robots.four_bar, "leg": robots.planar_leg_linkage}
OPEN = {"residual", "singularity", "tangent_step", "spanning_velocity", "spanning_torque", "loop_forces"}
"""Functions of mechanisms alone, which the tests of closed robots compare with the spanning tree."""

STEP = 1e-5
ROUNDING = 1e-9  # for matrices of condition up to 1e5
DIFFERENCE = 1e-6  # of central differences, whose error is about 1e-9 of the function values


def made(name: str) -> fw.Description:
    if name in MECHANISMS:
        return MECHANISMS[name]()
    tree = from_parents([-1, 0], rng=2, joint_types=(name,), masses=(0.5, 2.0))
    return awkward(tree, np.random.default_rng(2))


class Relations:
    """Relations between the functions of one robot at one state."""

    def __init__(self, name: str) -> None:
        description = made(name)
        joints = tuple(dataclasses.replace(j, armature=0.2 + 0.1 * i) for i, j in enumerate(description.joints))
        self.robot = fw.build(dataclasses.replace(description, joints=joints), execution="interpreted")
        self.x = state(self.robot, 3)
        self.checked: set[str] = set()

    def ways(self, name: str, *arguments: Any) -> list[Any]:
        """Return the results of each algorithm, after a check that they agree."""
        self.checked.add(name)
        f = getattr(self.robot, name)
        found = [f(*arguments, algorithm=way) for way in f.alternatives]
        for other in found[1:]:
            for a, b in zip(*(y if isinstance(y, tuple) else (y,) for y in (other, found[0])), strict=True):
                same(a, b, what=name)
        return found

    def value(self, name: str, *arguments: Any) -> Any:
        return self.ways(name, *arguments)[0]

    def along(self, f: Callable[..., Any], velocity: Array | None = None) -> Any:
        """Return the rate of f(q) along a velocity, or the rates along unit velocities (last axis)."""

        def rate(d: Array) -> Any:
            ends = [np.asarray(f(self.robot.integrate(self.x.q, side * STEP * d))) for side in (1.0, -1.0)]
            return (ends[0] - ends[1]) / (2 * STEP)

        return rate(velocity) if velocity is not None else np.stack([rate(d) for d in np.eye(self.robot.nv)], axis=-1)

    def by_velocity(self, f: Callable[..., Any]) -> Any:
        ends = [[np.asarray(f(self.x.v + side * STEP * d)) for side in (1.0, -1.0)] for d in np.eye(self.robot.nv)]
        return np.stack([(a - b) / (2 * STEP) for a, b in ends], axis=-1)


def same(ours: Any, theirs: Any, tolerance: float = ROUNDING, what: str = "") -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, what
    assert np.abs(ours - theirs).max(initial=0.0) <= tolerance * max(1.0, np.abs(theirs).max(initial=0.0)), what


@pytest.mark.parametrize("name", [*KINDS, *MECHANISMS])
def test_functions_agree_with_one_another(name: str) -> None:
    r = Relations(name)
    check_dynamics(r)
    check_first_derivatives(r)
    check_second_derivatives(r)
    check_regressors(r)
    check_momentum(r)
    check_constrained_derivatives(r)
    declared = set(r.robot.functions) - OPEN
    assert declared <= r.checked, f"no relation tests {', '.join(sorted(declared - r.checked))}"


def check_dynamics(r: Relations) -> None:
    robot, (q, v, a) = r.robot, r.x
    M, h, g = r.value("mass_matrix", q), r.value("bias_force", q, v), r.value("gravity_force", q)
    same(r.value("inverse_dynamics", q, v, a), M @ a + h)
    same(r.value("forward_dynamics", q, v, M @ a + h), a)
    same(r.value("inverse_mass_matrix", q) @ M, np.eye(robot.nv))
    same(robot.factorize(q).solve(M @ a), a)
    same(robot.solve_mass_matrix(q, M), np.eye(robot.nv))
    same(r.value("static_torque", q), g)
    C = r.value("coriolis_matrix", q, v)
    same(C @ v, h - g)
    same(C + C.T, r.along(robot.mass_matrix, v), DIFFERENCE)
    same(r.value("kinetic_energy", q, v), 0.5 * v @ M @ v)
    same(r.along(robot.potential_energy), g, DIFFERENCE)
    r.checked.add("potential_energy")
    same(r.value("mechanical_power", v, a), v @ a)
    same(r.value("difference", q, robot.integrate(q, 0.1 * v)), 0.1 * v, 1e-2 if robot.closed else ROUNDING)
    r.checked.add("integrate")
    by_q, by_v = r.value("integrate_derivatives", q, 0.1 * v)
    end, e = robot.integrate(q, 0.1 * v), STEP * a / np.abs(a).max()
    for slope, ahead, behind in (
        (by_q, robot.integrate(robot.integrate(q, e), 0.1 * v), robot.integrate(robot.integrate(q, -e), 0.1 * v)),
        (by_v, robot.integrate(q, 0.1 * v + e), robot.integrate(q, 0.1 * v - e)),
    ):
        same(slope @ e, 0.5 * robot.difference(behind, ahead), DIFFERENCE * STEP)
    by_start, by_end = r.value("difference_derivatives", q, end)
    for slope, ahead, behind in (
        (by_start, robot.difference(robot.integrate(q, e), end), robot.difference(robot.integrate(q, -e), end)),
        (by_end, robot.difference(q, robot.integrate(end, e)), robot.difference(q, robot.integrate(end, -e))),
    ):
        same(slope @ e, 0.5 * (ahead - behind), DIFFERENCE * STEP)
    same(r.value("joint_jacobian_rate", q, v), r.along(robot.joint_jacobian, v), DIFFERENCE)
    r.value("joint_jacobian", q)


def check_first_derivatives(r: Relations) -> None:
    robot, (q, v, a) = r.robot, r.x
    for f, name, by_last in (
        (robot.inverse_dynamics, "inverse_dynamics_derivatives", robot.mass_matrix(q)),
        (robot.forward_dynamics, "forward_dynamics_derivatives", robot.inverse_mass_matrix(q)),
    ):
        by_q, by_v, last = r.value(name, q, v, a)
        same(by_q, r.along(lambda y, f=f: f(y, v, a)), DIFFERENCE, name)
        same(by_v, r.by_velocity(lambda y, f=f: f(q, y, a)), DIFFERENCE, name)
        same(last, by_last, what=name)


def check_second_derivatives(r: Relations) -> None:
    robot, (q, v, a) = r.robot, r.x
    weights = np.random.default_rng(1).standard_normal(robot.nv)
    for first, second, hessian in (
        (robot.inverse_dynamics_derivatives, robot.inverse_dynamics_second_derivatives, "inverse_dynamics_hessian"),
        (robot.forward_dynamics_derivatives, robot.forward_dynamics_second_derivatives, "forward_dynamics_hessian"),
    ):
        qq, qv, vv, last = second(q, v, a)
        same(qq, r.along(lambda y, f=first: f(y, v, a)[0]), 10 * DIFFERENCE)
        same(qv, r.by_velocity(lambda y, f=first: f(q, y, a)[0]), 10 * DIFFERENCE)
        same(vv, r.by_velocity(lambda y, f=first: f(q, y, a)[1]), 10 * DIFFERENCE)
        same(last, r.along(lambda y, f=first: f(y, v, a)[2]), 10 * DIFFERENCE)
        expected = *(np.einsum("i,ijk->jk", weights, x) for x in (qq, qv, vv)), np.einsum("i,ijk->kj", weights, last)
        for ours, theirs in zip(r.value(hessian, q, v, a, weights), expected, strict=True):
            same(ours, theirs, what=hessian)
    r.checked.add("inverse_dynamics_second_derivatives")


def check_regressors(r: Relations) -> None:
    robot, (q, v, a) = r.robot, r.x
    pi = robot.inertial_parameters.ravel()
    names = [j.name for j in robot.joints]
    whole = robot.extended_regressor(armature=names)
    same(whole.function(q, v, a) @ whole.values, robot.inverse_dynamics(q, v, a))
    bare = robot.with_armature(dict.fromkeys(names, 0.0))
    same(r.value("inverse_dynamics_regressor", q, v, a) @ pi, bare.inverse_dynamics(q, v, a))
    same(r.value("kinetic_energy_regressor", q, v) @ pi, bare.kinetic_energy(q, v))
    same(r.value("potential_energy_regressor", q) @ pi, robot.potential_energy(q))
    armatures = [robot.joint(n).armature for n in names]
    for f in (robot.inverse_dynamics, robot.forward_dynamics, robot.mass_matrix, robot.forward_dynamics_derivatives):
        own = robot.parametric(f, bodies=False, armature=names)
        state = (q, v, a)[: f.nin]
        results = own(*state, armatures), f(*state)
        for ours, theirs in zip(*(y if isinstance(y, tuple) else (y,) for y in results), strict=True):
            same(ours, theirs, what=f"parametric {f.name}")


def check_momentum(r: Relations) -> None:
    robot, (q, v, a) = r.robot, r.x
    A, A_dot = r.value("centroidal_map", q), r.value("centroidal_map_rate", q, v)
    same(r.value("centroidal_momentum", q, v), A @ v)
    same(A_dot, r.along(robot.centroidal_map, v), DIFFERENCE)
    same(r.value("centroidal_bias", q, v), A_dot @ v)
    same(r.value("centroidal_momentum_rate", q, v, a), A @ a + A_dot @ v)
    I = r.value("centroidal_inertia", q)
    same(I, I.T)
    assert np.linalg.eigvalsh(I)[0] > 0.0
    J = r.value("center_of_mass_jacobian", q)
    same(J, r.along(robot.center_of_mass), DIFFERENCE)
    same(robot.mass * J, A[:3])
    r.value("center_of_mass", q)
    same(r.value("center_of_mass_velocity", q, v), J @ v)
    same(r.value("center_of_mass_acceleration", q, v, a), (A @ a + A_dot @ v)[:3] / robot.mass)


def check_constrained_derivatives(r: Relations) -> None:
    """Check derivatives with a force along one axis of the last body's frame."""
    robot, (q, v, a) = r.robot, r.x
    space = robot.operational_space([fw.BilateralContact(robot.bodies[-1].name, rows=np.eye(6)[:1])])
    a_q, a_v, _, f_q, f_v, _ = space.forward_dynamics_derivatives(q, v, a)
    f = space.constrained_dynamics
    for way in f.alternatives.values():
        for k, (by_q, by_v) in enumerate(((a_q, a_v), (f_q, f_v))):
            same(by_q, r.along(lambda y, k=k, way=way: way(y, v, a)[k]), DIFFERENCE, way.algorithm)
            same(by_v, r.by_velocity(lambda y, k=k, way=way: way(q, y, a)[k]), DIFFERENCE, way.algorithm)
