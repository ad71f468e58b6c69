"""Tests of random mechanisms: couplings across branches and loops of all types, several in one tree."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.model.generators import from_parents
from featherweight.model.types import (
    WORLD,
    Coupling,
    Loop,
    LoopType,
    ModelError,
    ModelWarning,
    Pose,
    as_matrix,
    as_vector,
)
from oracles.spanning import SpanningTree, maps
from oracles.states import Array
from oracles.trees import awkward

FORWARD = ("aba", "crba-ltdl", "projection")
KINDS = (("revolute", "prismatic", "continuous"), ("revolute", "prismatic", "spherical"), ("revolute", "planar", "floating"))

MODERATE = 1e4
"""Bound of `singularity`, |K_d|² / R_kk² in total: two digits are lost."""

TOLERANCE = 1e-9
"""Tolerance for forces and accelerations: eps, times about 1e2 by K_d and 1e4 by M, is below 1e-10."""


class Case(NamedTuple):
    """A mechanism in plain Python, in one state."""

    description: fw.Description
    robot: fw.ClosedRobot
    q: Array
    v: Array
    a: Array


def pose(rng: np.random.Generator) -> Pose:
    return as_pose(Rotation.random(random_state=rng).as_matrix(), rng.uniform(-0.3, 0.3, 3))


def as_pose(R: Array, p: Array) -> Pose:
    return Pose(as_matrix(R), as_vector(p))


def random_couplings(rng: np.random.Generator, made: fw.Description, count: int) -> tuple[Coupling, ...]:
    """Return joints that follow two earlier ones in some order, or one, or one twice, or stand still."""
    simple = [j.name for j in made.joints if j.type.nv == 1]
    order = [simple[i] for i in rng.permutation(len(simple))]
    couplings = []
    for k in sorted(rng.permutation(np.arange(1, len(order)))[:count]):
        leaders = rng.integers(k, size=rng.integers(0, 3))
        degree = 1 if rng.random() < 0.5 else 3
        terms = tuple((order[i], tuple(map(float, rng.uniform(-1.0, 1.0, degree)))) for i in leaders)
        couplings.append(Coupling(f"coupling{k}", order[k], terms, float(rng.uniform(-0.2, 0.2))))
    return tuple(couplings)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Return trees of three to nine bodies; loops are closed at the tree's configuration, near its neutral one."""
    n = draw(st.integers(3, 9), label="bodies")
    parents = [-1, *(draw(st.integers(max(-1, i - 3), i - 1), label=f"parent of {i}") for i in range(1, n))]
    seed = draw(st.integers(0, 2**32 - 1), label="seed")
    rng = np.random.default_rng(seed)
    made = from_parents(parents, rng=seed, joint_types=draw(st.sampled_from(KINDS), label="joints"), aligned=0.3)
    made = awkward(made, rng)
    couplings = random_couplings(rng, made, draw(st.integers(0, 3), label="couplings"))
    kinds = draw(st.lists(st.sampled_from(LoopType), max_size=2), label="loops")
    assume(couplings or kinds)
    try:
        q, loops = closed_by(rng, dataclasses.replace(made, couplings=couplings), kinds)
        made = dataclasses.replace(made, couplings=couplings, loops=loops)
        robot = fw.build(made, execution="interpreted")
    except (ModelError, ModelWarning):  # no other configuration found, loops hold all joints, or a joint moves no mass
        reject()
    assert isinstance(robot, fw.ClosedRobot)
    assume(robot.nv > 0 and robot.singularity(q) <= MODERATE)
    return Case(made, robot, q, rng.standard_normal(robot.nv), rng.standard_normal(robot.nv))


def closed_by(rng: np.random.Generator, made: fw.Description, kinds: list[LoopType]) -> tuple[Array, tuple[Loop, ...]]:
    """Return a configuration, and loops between links of different bodies that hold there."""
    robot = fw.build(made, execution="interpreted")
    q = robot.neutral()
    for j in robot.joints:
        mine = q[j.q_slice]  # length zero for a joint that follows
        turn = Rotation.from_rotvec(rng.uniform(-0.4, 0.4, 3)).as_quat()
        angle = rng.uniform(-0.5, 0.5)
        values = {1: [angle], 4: turn, 7: [*rng.uniform(-0.3, 0.3, 3), *turn]}.get(len(mine), [])
        mine[:] = [*rng.uniform(-0.3, 0.3, 2), np.cos(angle), np.sin(angle)] if j.type == "planar" else values
    loops = []
    for k, kind in enumerate(kinds):
        a, b = (str(x) for x in rng.permutation([WORLD, *(body.name for body in made.bodies)])[:2])
        places = [np.eye(4) if x == WORLD else robot.frame_placement(x)(q) for x in (a, b)]
        on_a = pose(rng)
        world = places[0] @ homogeneous(on_a)
        on_b = np.linalg.inv(places[1]) @ world
        loops.append(Loop(f"loop{k}", kind, a, b, on_a, as_pose(on_b[:3, :3], on_b[:3, 3])))
    return q, tuple(loops)


def homogeneous(x: Pose) -> Array:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.array(x.R), np.array(x.p)
    return T


@settings(deadline=None, max_examples=40)
@given(cases())
def test_all_algorithms_undo_inverse_dynamics(case: Case) -> None:
    """Check to the rounding of the cancelling forces, amplified by the softest motion of M in units of its diagonal."""
    robot, q, v, a = case.robot, case.q, case.v, case.a
    tau, M = robot.inverse_dynamics(q, v, a), robot.mass_matrix(q)
    size = np.sqrt(np.diagonal(M))
    found = {name: robot.forward_dynamics(q, v, tau, algorithm=name) for name in FORWARD}
    forces = np.linalg.norm(robot.bias_force(q, v) / size) + np.linalg.norm(M @ a / size)
    for x in found.values():
        assert np.linalg.norm((x - a) * size) <= TOLERANCE * (forces + np.linalg.norm(a * size))
        assert np.linalg.norm((x - found["aba"]) * size) <= TOLERANCE * (forces + np.linalg.norm(a * size))


@settings(deadline=None, max_examples=40)
@given(cases())
def test_maps_and_dynamics_are_those_of_the_cut_tree_under_its_constraints(case: Case) -> None:
    """Check K G = 0 for constraints by differences, and accelerations by Gauss's principle, to the error of differences
    in k.
    """
    tree, robot, q = SpanningTree(case.description, case.robot), case.robot, case.q
    Q, G = tree.expand(q), maps(robot, q)
    assert np.abs(tree.residual(Q)).max() <= 1e-9
    K = tree.constraints(Q, np.zeros(tree.open.nv)).K
    assert np.linalg.norm(K @ G) <= 1e-8 * (1.0 + np.linalg.norm(K)) * (1.0 + np.linalg.norm(G))
    M = robot.mass_matrix(q)
    H = tree.peer.mass_matrix(Q[None])[0]
    assert np.linalg.norm(M - G.T @ H @ G) <= 1e-10 * np.linalg.norm(M)
    free = tree.open.nv - np.linalg.matrix_rank(K, tol=1e-6 * np.linalg.norm(K, 2))
    assume(free == robot.nv)  # elsewhere the configuration is singular
    tau = robot.inverse_dynamics(q, case.v, case.a)
    expected = tree.forward_dynamics(q, case.v, tau)[tree.independent]
    scale = (1.0 + np.linalg.norm(G)) ** 3 * (1.0 + np.linalg.norm(case.v)) ** 2 + np.linalg.norm(case.a)
    assert np.linalg.norm(case.a - expected) <= 1e-6 * scale


@pytest.mark.parametrize("algorithm", ["pv-osim", "ltl", "efpa", "pv-osimr", "pv-osimr-some"])
@settings(deadline=None, max_examples=25)
@given(cases(), st.integers(0, 2**32 - 1))
def test_delassus_matrix_is_that_of_its_definition(algorithm: str, case: Case, seed: int) -> None:
    """Check J M^-1 J^T of three contacts on any links, some on the same link."""
    robot, q = case.robot, case.q
    rng = np.random.default_rng(seed)
    links = [b.name for b in robot.bodies]
    contacts = [
        fw.BilateralContact(links[rng.integers(len(links))], rows=rng.standard_normal((rng.integers(1, 7), 6)))
        for _ in range(3)
    ]
    space = robot.operational_space(contacts)
    J, M = space.jacobian(q), robot.mass_matrix(q)
    expected = J @ np.linalg.solve(M, J.T)
    scale = np.linalg.norm(J) ** 2 * np.linalg.norm(np.linalg.inv(M)) + 1e-3
    assert np.linalg.norm(space.delassus(algorithm)(q) - expected) <= TOLERANCE * scale


@pytest.mark.parametrize("algorithm", ["pv-osim", "pv-osimr", "pv-osimr-some"])
def test_delassus_matrix_where_forces_of_a_coupling_pass_a_contact_of_higher_number(algorithm: str) -> None:
    """Check contacts on the ground's second body and on its child, whose joint a coupling ties to the ground's first joint."""
    made = from_parents([-1, -1, 1], rng=8)
    first, _, third = (made.joints[k].name for k in range(3))
    made = dataclasses.replace(made, couplings=(Coupling("tie", third, ((first, (0.7,)),), 0.1),))
    robot = fw.build(made, execution="interpreted")
    rng = np.random.default_rng(8)
    links = [made.joints[k].child for k in (1, 1, 2)]
    space = robot.operational_space([fw.BilateralContact(link, rows=rng.standard_normal((3, 6))) for link in links])
    q = robot.random_configuration(rng=rng)
    J, M = space.jacobian(q), robot.mass_matrix(q)
    expected = J @ np.linalg.solve(M, J.T)
    assert np.abs(expected[6:, :6]).max() > 0.1
    np.testing.assert_allclose(space.delassus(algorithm)(q), expected, atol=1e-12 * np.abs(expected).max())


@settings(deadline=None, max_examples=40)
@given(cases())
def test_integrate_stays_closed(case: Case) -> None:
    """Check steps so short that no singular configuration is near."""
    tree, robot = SpanningTree(case.description, case.robot), case.robot
    moved = robot.integrate(case.q, 1e-3 * case.v)
    assert np.abs(tree.residual(tree.expand(moved))).max() <= 1e-9
    back = robot.difference(case.q, moved)
    assert np.linalg.norm(back - 1e-3 * case.v) <= 1e-4 * (1.0 + np.linalg.norm(maps(robot, case.q))) ** 2
