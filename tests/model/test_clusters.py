"""Tests of clusters against brute force on random trees, and of the messages with which `Loops` refuses mechanisms."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherweight as fw
from featherweight import robots
from featherweight.model.clusters import clusters, handles, owners, rows_between_bodies, whole_joints
from featherweight.model.description import Description
from featherweight.model.expansion import build_model
from featherweight.model.generators import chain, from_parents
from featherweight.model.tree import Tree
from featherweight.model.types import WORLD, Closure, Coupling, Loop, LoopType, ModelError, Pose, as_matrix, as_vector
from oracles.mechanisms import MECHANISMS, closed

KINDS = ("revolute", "prismatic", "spherical", "planar", "floating")


@st.composite
def trees(draw: st.DrawFn, most: int = 7) -> Tree:
    """Return trees of one to seven bodies on joints of all types, one row for each degree of freedom."""
    n = draw(st.integers(1, most), label="bodies")
    parents = [draw(st.integers(-1, i - 1), label=f"parent of {i}") for i in range(n)]
    kinds = draw(st.sampled_from([("revolute",), ("revolute", "spherical"), KINDS]), label="joints")
    return build_model(from_parents(parents, rng=draw(st.integers(0, 99)), joint_types=kinds), "fixed", None).tree


def joint_of(tree: Tree, row: int) -> frozenset[int]:
    return frozenset(range(tree.first[row], tree.last[row] + 1))


def joints(tree: Tree) -> list[frozenset[int]]:
    return [joint_of(tree, i) for i in range(len(tree.parent)) if tree.first[i] == i]


def above(tree: Tree, row: int) -> int:
    """Return the body that carries a row's joint, as its last row; -1 for the ground."""
    return int(tree.parent[tree.first[row]])


def moves(tree: Tree, joint: frozenset[int], body: int) -> bool:
    """Return whether a joint carries a body."""
    while body >= 0:
        if body in joint:
            return True
        body = int(tree.parent[body])
    return False


def hangs_on(tree: Tree, rows: Iterable[int]) -> set[int]:
    """Return the bodies outside a set of joints that carry joints of the set, without the ground."""
    return {above(tree, r) for r in rows} - {-1, *rows}


@st.composite
def ends(draw: st.DrawFn, tree: Tree) -> list[int]:
    """Return two different bodies, as their last rows, or the ground."""
    bodies = [-1, *(int(tree.last[i]) for i in range(len(tree.parent)) if tree.first[i] == i)]
    return draw(st.lists(st.sampled_from(bodies), min_size=2, max_size=2, unique=True), label="ends")


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_a_loop_ties_the_joints_that_move_one_end_and_not_the_other(data: st.DataObject) -> None:
    tree = data.draw(trees())
    a, b = data.draw(ends(tree))
    expected = [j for j in joints(tree) if moves(tree, j, a) != moves(tree, j, b)]
    assert rows_between_bodies(tree, [a, b]) == frozenset().union(*expected)


@st.composite
def tied_trees(draw: st.DrawFn) -> tuple[Tree, list[frozenset[int]]]:
    """Return a tree, and ties by loops and by couplings of up to three joints."""
    tree = draw(trees())
    ties = []
    for _ in range(draw(st.integers(0, 3), label="ties")):
        if draw(st.booleans(), label="loop"):
            ties.append(rows_between_bodies(tree, draw(ends(tree))))
        else:
            rows = draw(st.lists(st.sampled_from(range(len(tree.parent))), min_size=1, max_size=3), label="rows")
            ties.append(whole_joints(tree, rows))
    return tree, ties


@settings(deadline=None, max_examples=150)
@given(tied_trees())
def test_clusters_keep_ties_together_and_come_after_those_that_carry_them(made: tuple[Tree, list[frozenset[int]]]) -> None:
    tree, ties = made
    found = clusters(tree, ties)
    owner = owners(tree, found)
    assert sorted(r for c in found for r in c) == list(range(len(tree.parent)))
    assert all(len({owner[r] for r in tie}) == 1 for tie in ties if tie)
    for k, c in enumerate(found):
        assert c == tuple(sorted(c)) and all(joint_of(tree, r) <= set(c) for r in c)
        assert all(owner[h] < k for h in hangs_on(tree, c))


@settings(deadline=None, max_examples=150)
@given(tied_trees())
def test_handles_are_on_the_parent_or_carry_it(made: tuple[Tree, list[frozenset[int]]]) -> None:
    """Check that a cluster hangs on its handles, and that its parent has those that are not on the parent itself."""
    tree, ties = made
    found = clusters(tree, ties)
    owner, on = owners(tree, found), handles(tree, found)
    for c, own in zip(found, on, strict=True):
        assert hangs_on(tree, c) <= set(own) and not set(own) & set(c)
        assert [owner[h] for h in own] == sorted(owner[h] for h in own)
        if own:
            parent = found[owner[own[-1]]]
            beyond = set(own) - set(parent)
            assert beyond <= set(on[owner[own[-1]]])
            assert all(any(moves(tree, frozenset(found[owner[h]]), r) for r in parent) for h in beyond)


@settings(deadline=None, max_examples=150)
@given(tied_trees())
def test_clusters_are_the_finest_that_ties_and_carriers_allow(made: tuple[Tree, list[frozenset[int]]]) -> None:
    """Check that only clusters with handles on different branches are larger, up to the last body that carries them."""
    tree, ties = made
    found = clusters(tree, ties)
    fine = finest(tree, ties)
    for c in found:
        assert set(c) == set().union(*(f for f in fine if f & set(c)))
    if {frozenset(c) for c in found} != fine:
        assert not all_handles_on_one_path(tree, fine)


def all_handles_on_one_path(tree: Tree, found: Iterable[frozenset[int]]) -> bool:
    """Return whether of two bodies that carry a cluster always one carries the other."""
    return all(
        moves(tree, joint_of(tree, a), b) or moves(tree, joint_of(tree, b), a)
        for c in found
        for a, b in itertools.combinations(hangs_on(tree, c), 2)
    )


def finest(tree: Tree, ties: list[frozenset[int]]) -> set[frozenset[int]]:
    """Return the joints that reach each other along constraints and towards the ground."""
    n = len(tree.parent)
    near = np.eye(n, dtype=bool)
    for group in (*joints(tree), *ties):
        near[np.ix_(list(group), list(group))] = True
    for i, p in enumerate(tree.parent):
        if p >= 0:
            near[i, p] = True
    reached = np.linalg.matrix_power(near.astype(float), n) > 0.0
    return {frozenset(map(int, np.flatnonzero(row & column))) for row, column in zip(reached, reached.T, strict=True)}


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_no_finer_partition_of_a_cluster_keeps_its_ties_together(data: st.DataObject) -> None:
    """Check that every division of a cluster's joints into two sets cuts a constraint."""
    tree = data.draw(trees(6))
    ties = [rows_between_bodies(tree, data.draw(ends(tree))) for _ in range(data.draw(st.integers(1, 3)))]
    for cluster in clusters(tree, ties):
        parts = [j for j in joints(tree) if j <= set(cluster)]
        inside = [t for t in ties if t <= set(cluster)]
        for k in range(1, len(parts)):
            for some in itertools.combinations(parts, k):
                side = frozenset[int]().union(*some)
                assert any(t & side and t - side for t in inside)


# the structure of a mechanism


def bars(**changes: Any) -> Description:
    return dataclasses.replace(robots.four_bar(), **changes)


def geared(*couplings: Coupling, n: int = 5, **changes: Any) -> Description:
    return dataclasses.replace(chain(n), couplings=couplings, **changes)


def test_clusters_of_a_mechanism_hang_on_the_last_body_that_carries_them() -> None:
    """Check a gear between joints 2 and 4 of a chain, whose cluster includes joint 3, and not joints 0, 1 and 5."""
    robot = fw.build(geared(Coupling("gear", "joint4", (("joint2", (2.0,)),)), n=6))
    assert isinstance(robot, fw.ClosedRobot)
    assert robot.clusters == (("joint0",), ("joint1",), ("joint2", "joint3", "joint4"), ("joint5",))
    assert robot.nq == robot.nv == 5
    assert [j.name for j in robot.joints if j.v_slice.stop == j.v_slice.start] == ["joint4"]
    assert robot.parent == (-1, 0, 1, 2, 3)


def test_clusters_may_hang_on_several_bodies_of_another() -> None:
    """Check figure 5 of Chignoli et al., whose clusters have three, two and two bodies."""
    robot = closed(MECHANISMS["several"](), execution="interpreted")
    first, third, second = robot._mechanism.clusters
    assert [first.rows, second.rows, third.rows] == [(0, 1, 2), (4, 5), (3, 6)]
    assert [first.handles, second.handles, third.handles] == [(), (0,), (0, 1)]


def test_a_coupling_of_two_branches_connects_them_up_to_the_body_that_carries_both() -> None:
    made = dataclasses.replace(
        from_parents([-1, 0, 1, 2, 0, 4, 5]), couplings=(Coupling("both", "joint6", (("joint3", (1.0,)),)),)
    )
    robot = closed(made, execution="interpreted")
    assert [set(c) for c in robot.clusters] == [{"joint0"}, {f"joint{k}" for k in range(1, 7)}]


def test_couplings_are_followed_in_an_order_in_which_they_can_be_computed() -> None:
    made = geared(
        Coupling("last", "joint3", (("joint2", (1.0, 0.5)),), 0.1),
        Coupling("first", "joint2", (("joint0", (2.0,)), ("joint1", (-1.0,)))),
    )
    robot = fw.build(made, execution="interpreted")
    assert isinstance(robot, fw.ClosedRobot)
    q, v = np.array([0.2, -0.3, 0.4]), np.array([1.0, 2.0, 3.0])
    second, rate = 2.0 * 0.2 + 0.3, 2.0 * 1.0 - 2.0
    np.testing.assert_allclose(robot.spanning_velocity(q, v), [1.0, 2.0, rate, (1.0 + second) * rate, 3.0], atol=1e-15)
    plain = fw.build(chain(5), execution="interpreted")
    whole = np.array([0.2, -0.3, second, 0.1 + second + 0.5 * second**2, 0.4])
    np.testing.assert_allclose(robot.frame_placement("body4")(q), plain.frame_placement("body4")(whole), atol=1e-14)


@pytest.mark.parametrize("independent", ["joint1", "joint2", "joint3"])
def test_marked_joints_are_the_independent_ones(independent: str) -> None:
    robot = fw.build(robots.four_bar((0.3, 1.0, 0.7, 0.9), independent))
    assert [j.name for j in robot.joints if j.v_slice.stop > j.v_slice.start] == [independent]
    assert robot.nv == 1 and robot.nq == 3


def test_without_marks_one_joint_of_a_four_bar_is_independent() -> None:
    robot = fw.build(bars(independent=(), dependent=()))
    assert robot.nv == 1


# refusals

GEAR = Coupling("gear", "joint4", (("joint2", (2.0,)),))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (geared(Coupling("gear", "elbow", (("joint2", (2.0,)),))), "coupling 'gear': there is no moving joint 'elbow'"),
        (geared(Coupling("gear", "joint1", (("elbow", (2.0,)),))), "coupling 'gear': there is no moving joint 'elbow'"),
        (
            geared(closures=(Closure("own", ("joint0", "elbow"), lambda q: [q[0] - q[1]]),)),
            "constraint 'own': there is no moving joint 'elbow'",
        ),
        (
            geared(GEAR, Coupling("belt", "joint4", (("joint1", (1.0,)),))),
            "coupling 'belt': joint 'joint4' already follows by 'gear'; keep one",
        ),
        (
            geared(GEAR, Coupling("belt", "joint2", (("joint4", (1.0,)),))),
            "couplings 'gear', 'belt' form a cycle; remove one of them",
        ),
        (geared(Coupling("self", "joint2", (("joint2", (0.5,)),))), "couplings 'self' form a cycle"),
        (
            bars(loops=(Loop("ring", LoopType.SPHERICAL, "link2", "nowhere"),)),
            "loop 'ring': there is no body, frame or fixed joint 'nowhere'; there are link1, link2, link3",
        ),
        (
            bars(loops=(Loop("ring", LoopType.SPHERICAL, "link2", "link2", Pose(), Pose(p=(0.1, 0.0, 0.0))),)),
            "loop 'ring' connects links of the same body; remove it",
        ),
        (
            bars(loops=(Loop("ring", LoopType.REVOLUTE, "link2", "link3", Pose(p=(9.0, 0.0, 0.0))),)),
            "'ring' cannot be closed: no configuration was found that satisfies them",
        ),
        (
            dataclasses.replace(chain(3), closures=(Closure("own", ("joint0",), lambda q: [q[0] * q[0] + 1.0]),)),
            "'own' cannot be closed",
        ),
        (bars(independent=("joint1", "joint2"), dependent=()), "1 of 3 velocities stay free with 'loop', but the joints"),
        (bars(independent=(), dependent=("joint1", "joint2", "joint3")), "1 of 3 velocities stay free with 'loop'"),
    ],
)
def test_what_is_wrong_is_named(made: Description, message: str) -> None:
    with pytest.raises(ModelError) as error:
        fw.build(made)
    assert message in str(error.value)
    assert str(error.value).startswith(made.source)


@pytest.mark.parametrize("kind", ["spherical", "floating", "planar", "fixed"])
def test_couplings_are_of_joints_with_one_coordinate(kind: str) -> None:
    made = chain(4)
    bent = [dataclasses.replace(j, type=fw.JointType(kind)) if j.name == "joint1" else j for j in made.joints]
    made = dataclasses.replace(made, joints=tuple(bent))
    said = "there is no moving joint 'joint1'" if kind == "fixed" else f"joint 'joint1' is {kind} and has no single coordinate"
    for coupling in (Coupling("gear", "joint1", (("joint3", (1.0,)),)), Coupling("gear", "joint3", (("joint1", (1.0,)),))):
        with pytest.raises(ModelError) as error:
            fw.build(dataclasses.replace(made, couplings=(coupling,)))
        assert said in str(error.value)


def test_a_loop_between_links_that_a_fixed_joint_joins_is_refused() -> None:
    made = chain(3)
    fixed = [dataclasses.replace(j, type=fw.JointType.FIXED) if j.name == "joint2" else j for j in made.joints]
    loop = Loop("ring", LoopType.WELD, "body1", "body2")
    with pytest.raises(ModelError) as error:
        fw.build(dataclasses.replace(made, joints=tuple(fixed), loops=(loop,)))
    assert "loop 'ring' connects links of the same body" in str(error.value)
    rooted = [dataclasses.replace(j, type=fw.JointType.FIXED) if j.name == "joint0" else j for j in made.joints]
    with pytest.raises(ModelError) as error:
        fw.build(dataclasses.replace(made, joints=tuple(rooted), loops=(Loop("ring", LoopType.WELD, WORLD, "body0"),)))
    assert "loop 'ring' connects links of the same body" in str(error.value)


@pytest.mark.parametrize("mark", ["independent", "dependent"])
def test_marks_name_joints(mark: str) -> None:
    """Check that a misspelt mark is refused, because it would silently choose other coordinates."""
    made = bars(independent=(), dependent=())
    marks: dict[str, Any] = {mark: ("jiont1",)}
    with pytest.raises(ModelError) as error:
        fw.build(dataclasses.replace(made, **marks))
    assert "jiont1" in str(error.value)


def test_constraints_of_one_s_own_must_be_numbers() -> None:
    for function in (lambda q: q[0] - q[1], lambda q: [], lambda q: [[q[0]]]):
        with pytest.raises(ValueError, match="constraint 'own' must return a sequence of at least one number"):
            fw.build(dataclasses.replace(chain(3), closures=(Closure("own", ("joint0", "joint1"), function),)))


def test_joints_that_a_loop_stops_have_no_velocity_left() -> None:
    """Check a weld of a chain of six general joints to the ground, a structure. Alone it is fixed; bodies on it move."""
    made = chain(7, rng=3)
    robot = fw.build(made)
    T = robot.frame_placement("body5")(np.full(7, 0.4))
    held = Pose(as_matrix(T[:3, :3]), as_vector(T[:3, 3]))
    loops = (Loop("end", LoopType.WELD, WORLD, "body5", held),)
    alone = dataclasses.replace(made, bodies=made.bodies[:6], joints=made.joints[:6], loops=loops)
    with pytest.warns(fw.ModelWarning) as told:
        fixed = fw.build(alone)
    assert any("hold all joints, which are taken as fixed" in str(x.message) for x in told)
    np.testing.assert_allclose(fixed.frame_placement("body5")(np.zeros(0)), T, atol=1e-9)
    stiff = fw.build(dataclasses.replace(made, loops=loops))
    assert (stiff.nq, stiff.nv) == (7, 1)
    q = stiff.random_configuration(rng=0)
    last = robot.mass_matrix(q)[6, 6]
    assert stiff.mass_matrix(q)[0, 0] == pytest.approx(last, rel=1e-12)
    for algorithm in stiff.forward_dynamics.candidates:
        assert stiff.forward_dynamics(q, np.zeros(1), np.ones(1), algorithm=algorithm).shape == (1,)
