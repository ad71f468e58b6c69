"""Properties of the Delassus matrix of any contacts on any robot, by any algorithm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.model.generators import MOVING, from_parents
from featherweight.model.types import WORLD, JointType
from featherweight.robot.constraints.operational_space import DELASSUS
from oracles.states import Array
from oracles.trees import awkward

SIMPLE = (JointType.REVOLUTE, JointType.PRISMATIC, JointType.CONTINUOUS)
GROUND = "ground"

TOLERANCE = 1e-9
"""Tolerance relative to the two contacts' own blocks, far above eps times the condition number of M, about 1e5 here."""

algorithms = st.sampled_from(list(DELASSUS))


class Case(NamedTuple):
    """A robot in plain Python, in one state, with contacts."""

    robot: fw.Robot
    q: Array
    contacts: list[fw.BilateralContact]

    def delassus(self, algorithm: str, contacts: list[fw.BilateralContact] | None = None) -> Array:
        result: Array = self.robot.delassus(contacts or self.contacts, algorithm)(self.q)
        return result


@st.composite
def cases(draw: st.DrawFn, fewest: int = 1) -> Case:
    """Return trees of one to eight bodies, with one to five contacts of one to twelve rows, some of them on the ground."""
    parents = [draw(st.integers(-1, i - 1), label=f"parent of {i}") for i in range(draw(st.integers(1, 8), label="bodies"))]
    seed = draw(st.integers(0, 2**32 - 1), label="seed")
    kinds = draw(st.sampled_from([SIMPLE, MOVING]), label="joints")
    made = awkward(from_parents(parents, rng=seed, joint_types=kinds, aligned=0.5), np.random.default_rng(seed))
    frames = (fw.Frame(GROUND, WORLD, made.joints[0].placement),)
    robot = fw.build(fw.Description(made.name, made.source, made.bodies, made.joints, frames), execution="interpreted")
    rng = np.random.default_rng(seed)
    places = st.sampled_from([*(body.name for body in robot.bodies), GROUND])
    contacts = []
    for frame in draw(st.lists(places, min_size=fewest, max_size=5), label="frames"):
        size = draw(st.integers(1, 12), label="rows")
        contacts.append(fw.BilateralContact(frame, rows=rng.standard_normal((size, 6)), placement=placement(rng)))
    return Case(robot, robot.random_configuration(rng=rng), contacts)


def placement(rng: np.random.Generator) -> Array | None:
    """Return any frame up to about 0.5 m away, or none."""
    if rng.random() < 0.3:
        return None
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.random(rng=rng).as_matrix(), rng.uniform(-0.3, 0.3, 3)
    return T


def blocks(D: Array, contacts: list[fw.BilateralContact]) -> list[list[Array]]:
    ends = np.cumsum([c.size for c in contacts])[:-1]
    return [np.split(rows, ends, axis=1) for rows in np.split(D, ends, axis=0)]


def assert_blocks_close(result: list[list[Array]], expected: list[list[Array]], what: str = "") -> None:
    """Compare relative to the contacts' own diagonal blocks, which are zero for the ground's."""
    size = [np.sqrt(np.linalg.norm(expected[e][e])) for e in range(len(expected))]
    for e in range(len(expected)):
        for f in range(len(expected)):
            error = np.linalg.norm(result[e][f] - expected[e][f])
            assert error <= TOLERANCE * size[e] * size[f], f"{what}: block {e}, {f} differs by {error}"


@settings(deadline=None, max_examples=120)
@given(cases())
def test_all_algorithms_agree_with_the_mass_matrix(case: Case) -> None:
    """Check against J M^-1 J^T, with M scaled to unit diagonal."""
    M, J = case.robot.mass_matrix(case.q), case.robot.contact_jacobian(case.contacts)(case.q)
    size = np.sqrt(np.diagonal(M))
    J = J / size
    expected = blocks(J @ np.linalg.solve(M / np.outer(size, size), J.T), case.contacts)
    for algorithm in DELASSUS:
        assert_blocks_close(blocks(case.delassus(algorithm), case.contacts), expected, algorithm)


@settings(deadline=None, max_examples=60)
@given(cases())
def test_contact_jacobian_is_that_of_velocities(case: Case) -> None:
    """Check against K times the velocity of the frame, converted to the contact's own frame."""
    v = np.random.default_rng(0).standard_normal(case.robot.nv)
    expected = []
    for c in case.contacts:
        T = np.eye(4) if c.placement is None else np.asarray(c.placement)
        velocity = case.robot.frame_velocity(c.frame, "local")(case.q, v)
        linear, angular = velocity[:3] + np.cross(velocity[3:], T[:3, 3]), velocity[3:]
        expected.append(c.matrix @ np.concatenate([T[:3, :3].T @ linear, T[:3, :3].T @ angular]))
    J = case.robot.contact_jacobian(case.contacts)(case.q)
    x = np.concatenate(expected)
    assert np.linalg.norm(J @ v - x) <= 1e-12 * (np.linalg.norm(J) * np.linalg.norm(v) + np.linalg.norm(x))


@settings(deadline=None, max_examples=80)
@given(cases(), algorithms)
def test_symmetric_to_the_last_bit_and_positive_semidefinite(case: Case, algorithm: str) -> None:
    D = case.delassus(algorithm)
    np.testing.assert_array_equal(D, D.T)
    size = np.sqrt(np.diagonal(D))
    unit = D / np.where(np.outer(size, size) > 0.0, np.outer(size, size), 1.0)
    assert np.linalg.eigvalsh(unit)[0] >= -1e-10 * len(D)


@settings(deadline=None, max_examples=80)
@given(cases(fewest=2), algorithms, st.data())
def test_permuted_contacts_permute_the_blocks(case: Case, algorithm: str, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(case.contacts))), label="order")
    permuted = [case.contacts[k] for k in order]
    D = blocks(case.delassus(algorithm), case.contacts)
    assert_blocks_close(blocks(case.delassus(algorithm, permuted), permuted), [[D[e][f] for f in order] for e in order])


@settings(deadline=None, max_examples=80)
@given(cases(fewest=2), algorithms, st.data())
def test_one_contact_more_leaves_the_blocks_of_the_others_alone(case: Case, algorithm: str, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, len(case.contacts) - 1), label="the one")
    others = [c for e, c in enumerate(case.contacts) if e != k]
    rest = [e for e in range(len(case.contacts)) if e != k]
    D = blocks(case.delassus(algorithm), case.contacts)
    assert_blocks_close([[D[e][f] for f in rest] for e in rest], blocks(case.delassus(algorithm, others), others))


@settings(deadline=None, max_examples=60)
@given(cases(), algorithms)
def test_contacts_on_the_ground_give_zeros(case: Case, algorithm: str) -> None:
    contacts = [*case.contacts, fw.BilateralContact(GROUND)]
    D = blocks(case.delassus(algorithm, contacts), contacts)
    J = np.split(case.robot.contact_jacobian(contacts)(case.q), np.cumsum([c.size for c in contacts])[:-1])
    for e, c in enumerate(contacts):
        assert np.any(D[e][e]) == np.any(J[e]) == (c.frame != GROUND)
        if c.frame == GROUND:
            assert not any(np.any(block) for block in D[e])


@settings(deadline=None, max_examples=60)
@given(cases(), algorithms)
def test_inverse_inertias_are_those_of_rows_combined(case: Case, algorithm: str) -> None:
    """Check that combinations A K of rows give the matrix A D A^T."""
    rng = np.random.default_rng(1)
    mix = [rng.standard_normal((c.size, c.size)) for c in case.contacts]
    mixed = [
        fw.BilateralContact(c.frame, rows=A @ c.matrix, placement=c.placement) for A, c in zip(mix, case.contacts, strict=True)
    ]
    D = blocks(case.delassus(algorithm), case.contacts)
    expected = [[A @ D[e][f] @ B.T for f, B in enumerate(mix)] for e, A in enumerate(mix)]
    assert_blocks_close(blocks(case.delassus(algorithm, mixed), mixed), expected)
