"""Tests of generated robots: their topologies, and that their geometry and inertias are physical."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featherweight.model import generators
from featherweight.model.description import Description
from featherweight.model.types import WORLD, JointType


def depths(parents: list[int]) -> list[int]:
    """Return the number of joints between each body and the root."""
    d: list[int] = []
    for parent in parents:
        d.append(1 if parent < 0 else d[parent] + 1)
    return d


def D1(parents: list[int]) -> int:
    """Return D1 by Featherstone (2005), equation (8)."""
    return sum(d - 1 for d in depths(parents))


def D2(parents: list[int]) -> int:
    """Return D2 by Featherstone (2005), equation (9)."""
    return sum(d * (d - 1) // 2 for d in depths(parents))


def parents_of(robot: Description) -> list[int]:
    return [-1 if j.parent == WORLD else int(str(j.parent).removeprefix("body")) for j in robot.joints]


def depth_first(parents: list[int]) -> list[int]:
    """Return the bodies in depth-first order, children by number."""
    order, stack = [], [i for i in reversed(range(len(parents))) if parents[i] < 0]
    while stack:
        order.append(stack.pop())
        stack.extend(i for i in reversed(range(len(parents))) if parents[i] == order[-1])
    return order


# ---- Featherstone (2005), table 2

SIZES = [1, 2, 3, 4, 5, 6, 7, 16]


@pytest.mark.parametrize("n", SIZES)
def test_unbranched_has_the_cost_of_table_2(n: int) -> None:
    parents = generators.unbranched_parents(n)
    assert len(parents) == n
    assert D1(parents) == (n**2 - n) // 2
    assert D2(parents) == (n**3 - n) // 6


@pytest.mark.parametrize("m", SIZES)
def test_short_side_branches_have_the_cost_of_table_2(m: int) -> None:
    parents = generators.short_side_branches_parents(m)
    assert len(parents) == 2 * m
    assert D1(parents) == m**2
    assert D2(parents) == (2 * m**3 + 3 * m**2 + m) // 6


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 8])
def test_balanced_tree_has_the_cost_of_table_2(m: int) -> None:
    parents = generators.balanced_tree_parents(m)
    assert len(parents) == 2**m - 1
    assert D1(parents) == sum(i * 2**i for i in range(1, m))
    assert D2(parents) == sum(i * (i + 1) * 2 ** (i - 1) for i in range(1, m))
    assert max(np.bincount(np.array(parents) + 1)) <= 2


@pytest.mark.parametrize("m", SIZES)
def test_span_grid_has_the_cost_of_table_2(m: int) -> None:
    parents = generators.span_grid_parents(m)
    assert len(parents) == m**2
    assert D1(parents) == m**3 - m**2
    assert D2(parents) == (7 * m**4 - 6 * m**3 - m**2) // 12


@pytest.mark.parametrize("m", [2, 5])
def test_span_grid_joins_neighbours_by_shortest_paths(m: int) -> None:
    parents = generators.span_grid_parents(m)
    for i, (parent, depth) in enumerate(zip(parents, depths(parents), strict=True)):
        assert depth == i // m + i % m + 1
        assert i == 0 or abs(i // m - parent // m) + abs(i % m - parent % m) == 1


def test_factorization_saves_what_the_paper_says() -> None:
    # Section 4.2, D1 + 2 D2 of a dense matrix over that of the tree: "7.8 times less at n = 15, and 430 times less at n = 255"
    # (balanced tree), "5.3 times less at n = 16, and 74 times less at n = 256" (grid).
    cases = [(generators.balanced_tree_parents, 4, 7.8), (generators.balanced_tree_parents, 8, 430)]
    cases += [(generators.span_grid_parents, 4, 5.3), (generators.span_grid_parents, 16, 74)]
    for topology, m, saving in cases:
        tree = topology(m)
        dense = generators.unbranched_parents(len(tree))
        ratio = (D1(dense) + 2 * D2(dense)) / (D1(tree) + 2 * D2(tree))
        assert f"{ratio:.2g}" == f"{saving:.2g}"


@pytest.mark.parametrize("topology", ["unbranched", "short_side_branches", "balanced_tree", "span_grid"])
def test_topologies_are_numbered_depth_first_and_have_revolute_joints(topology: str) -> None:
    parents = getattr(generators, f"{topology}_parents")(4)
    robot = getattr(generators, topology)(4, rng=1)
    assert parents_of(robot) == parents
    assert depth_first(parents) == list(range(len(parents)))
    assert {j.type for j in robot.joints} == {JointType.REVOLUTE}
    assert robot == getattr(generators, topology)(4, rng=1)
    assert robot.name == f"{topology}_4"


# ---- random trees


def test_names_count_up_and_the_first_joint_hangs_on_the_ground() -> None:
    robot = generators.random_tree(5, rng=0)
    assert [b.name for b in robot.bodies] == [j.child for j in robot.joints] == [f"body{i}" for i in range(5)]
    assert [j.name for j in robot.joints] == [f"joint{i}" for i in range(5)]
    assert [j.parent == WORLD for j in robot.joints] == [True, False, False, False, False]


def test_the_same_seed_gives_the_same_robot() -> None:
    for make in (generators.chain, generators.random_tree, generators.unbranched):
        assert make(6, rng=4) == make(6, rng=4)
        assert make(6, rng=4) != make(6, rng=5)


def test_a_seed_means_the_same_robot_from_version_to_version() -> None:
    robot = generators.random_tree(3, rng=0)
    assert robot.bodies[2].inertia.mass == pytest.approx(0.0005321381126426485, rel=1e-12)
    offset = (0.0727279696432387, 0.07912267346794202, 0.12811680035139109)
    assert robot.joints[2].placement.p == pytest.approx(offset, rel=1e-12)


def test_branching_runs_from_a_chain_to_uniform_parents() -> None:
    assert parents_of(generators.random_tree(20, rng=0, branching=0)) == generators.unbranched_parents(20)
    # A uniformly random recursive tree of n bodies has mean depth H_n, about 5.2 for 100; a chain has 50.5.
    mean = {b: np.mean(depths(parents_of(generators.random_tree(100, rng=1, branching=b)))) for b in (0, 0.3, 1)}
    assert mean[0] == 50.5
    assert mean[1] < mean[0.3] < mean[0]
    assert 3 < mean[1] < 8


def test_every_moving_joint_type_is_drawn_by_default_and_fixed_on_request() -> None:
    drawn = {j.type for j in generators.random_tree(100, rng=0).joints}
    assert drawn == set(JointType) - {JointType.FIXED}
    some = {j.type for j in generators.random_tree(50, rng=0, joint_types=("fixed", "revolute")).joints}
    assert some == {JointType.FIXED, JointType.REVOLUTE}


def test_half_of_the_axes_of_a_random_tree_are_aligned_and_none_of_a_chain() -> None:
    axes = [j.axis for j in generators.random_tree(200, rng=0).joints]
    aligned = [axis for axis in axes if sorted(map(abs, axis)) == [0, 0, 1]]
    assert 70 < len(aligned) < 130
    assert len(set(aligned)) == 6
    assert not [x for axis in axes for x in axis if x == 0 and math.copysign(1, x) < 0]
    assert min(abs(x) for j in generators.chain(20).joints for x in j.axis) > 0


def test_masses_spread_over_all_magnitudes() -> None:
    masses = [b.inertia.mass for b in generators.random_tree(200, rng=0).bodies]
    assert 1e-4 <= min(masses) < 1e-3
    assert 1e3 < max(masses) <= 1e4
    assert {b.inertia.mass for b in generators.random_tree(3, rng=0, masses=(3, 3)).bodies} == {3}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 20), st.floats(0, 1))
def test_geometry_and_inertias_are_physical(seed: int, n: int, branching: float) -> None:
    robot = generators.random_tree(n, rng=seed, branching=branching)
    for joint in robot.joints:
        R = np.array(joint.placement.R)
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(R) == pytest.approx(1)
        assert 0.1 <= np.linalg.norm(joint.placement.p) <= 0.3 + 1e-15
        assert np.linalg.norm(joint.axis) == pytest.approx(1, abs=1e-15)
        if joint.type in (JointType.REVOLUTE, JointType.PRISMATIC):
            assert -math.pi <= joint.lower < 0 < joint.upper <= math.pi
        else:
            assert (joint.lower, joint.upper) == (-math.inf, math.inf)
    for body in robot.bodies:
        mass, _, (xx, xy, xz, yy, yz, zz) = body.inertia
        small, middle, large = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        assert 2 / 5 * mass * 0.05**2 <= small * (1 + 1e-12)
        assert large <= 2 / 5 * mass * 0.3**2 * (1 + 1e-12)
        assert large < small + middle


def test_descriptions_hold_plain_numbers() -> None:
    robot = generators.random_tree(6, rng=0, joint_types=("prismatic",))
    joint, inertia = robot.joints[3], robot.bodies[3].inertia
    numbers = [*joint.axis, *joint.placement.p, *joint.placement.R[1], joint.lower, joint.upper]
    assert {type(x) for x in [*numbers, inertia.mass, *inertia.center, *inertia.rotational]} == {float}


# ---- builders and refusals


def test_chain_takes_a_joint_type() -> None:
    robot = generators.chain(4, joint="prismatic")
    assert parents_of(robot) == [-1, 0, 1, 2]
    assert {j.type for j in robot.joints} == {JointType.PRISMATIC}


def test_from_parents_may_put_several_trees_on_the_ground() -> None:
    assert parents_of(generators.from_parents([-1, 0, -1, 2, 2])) == [-1, 0, -1, 2, 2]


def test_senseless_arguments_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^parents\[2\]: expected an earlier body or -1 for the ground, got 2$"):
        generators.from_parents([-1, 0, 2])
    with pytest.raises(ValueError, match=r"^parents\[0\]: "):
        generators.from_parents([-2])
    with pytest.raises(ValueError, match=r"^masses: "):
        generators.from_parents([-1], masses=(0, 1))
    with pytest.raises(ValueError, match=r"^joint_types: "):
        generators.from_parents([-1], joint_types=())
    with pytest.raises(ValueError, match="ball"):
        generators.chain(2, joint="ball")
    with pytest.raises(ValueError, match=r"^branching: "):
        generators.random_tree(2, rng=0, branching=1.5)
    for make in (generators.chain, generators.unbranched, generators.balanced_tree, generators.span_grid):
        with pytest.raises(ValueError, match=r"^[nm]: expected 1 or more, got 0$"):
            make(0)
