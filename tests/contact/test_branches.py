"""Tests of branches of trees of velocities, against paths that follow parents one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from contact.given_matrices import branches_from, one_branch, path_of
from featherweight.contact.factors.branches import branch_of_velocity, branches_of, longest_path, padded, widest_row
from featherweight.engine.loops.kernels import LANES

TREES = pytest.mark.parametrize(
    ("parent", "first"),
    [
        ((), []),
        ((-1,), [0]),
        ((-1, 0, 1, 2), [0]),
        ((-1, 0, 1, 1, 3), [0, 2, 3]),
        ((-1, 0, 0), [0, 1, 2]),
        ((-1, 0, 1, 0, 3), [0, 1, 3]),
        ((-1, 0, -1, 2, 3, -1), [0, 2, 5]),
        ((-1, -1, 0, 1), [0, 1, 2, 3]),  # the second tree lies within the first: all runs have gaps
        ((-1, 0, 1, 0, 3, 3, 5, 5, 7, 7), [0, 1, 3, 4, 5, 6, 7, 8, 9]),
    ],
    ids=["none", "one", "chain", "fork", "fork at once", "two arms", "trees", "mingled", "deep"],
)


def random_parents(seed: int, n: int) -> list[int]:
    """Return parents close to their children, so that there are runs, forks and roots."""
    rng = np.random.default_rng(seed)
    return [-1, *(max(int(i - rng.choice([1, 2, 5, n], p=[0.7, 0.15, 0.1, 0.05])), -1) for i in range(1, n))]


@TREES
def test_a_branch_ends_where_the_tree_forks_or_ends(parent: Sequence[int], first: list[int]) -> None:
    branches = branches_from(parent)
    assert branches.first.tolist() == [*first, len(parent)]
    assert branch_of_velocity(parent) == [sum(x <= i for x in first) - 1 for i in range(len(parent))]


@pytest.mark.parametrize("seed", range(10))
def test_paths_are_those_of_velocities_from_the_ground_on(seed: int) -> None:
    parent = random_parents(seed, 5 * seed + 1)
    branches, of_velocity = branches_from(parent), branch_of_velocity(parent)
    for b, last in enumerate(branches.first[1:] - 1):
        path = branches.path[branches.begin[b] : branches.begin[b + 1]]
        moved = [v for x in path for v in range(branches.first[x], branches.first[x + 1])]
        assert moved == path_of(parent, int(last)) and path[-1] == b
        assert {of_velocity[v] for v in moved} == set(path.tolist())
    children = [parent.count(i) for i in range(len(parent))]
    for b, (begin, stop) in enumerate(zip(branches.first[:-1], branches.first[1:], strict=True)):
        assert all(children[v] == 1 and parent[v + 1] == v for v in range(begin, stop - 1))
        assert of_velocity[begin:stop] == [b] * int(stop - begin)


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_paths_begin_at_whole_vectors(seed: int) -> None:
    parent = random_parents(seed, 60)
    branches = branches_from(parent)
    wide = [padded(int(n)) for n in np.diff(branches.first)]
    for b, width in enumerate(branches.width):
        path = branches.path[branches.begin[b] : branches.begin[b + 1]]
        spots = branches.spot[branches.begin[b] : branches.begin[b + 1]]
        assert [width, *spots] == [sum(wide[x] for x in path[i:]) for i in range(len(path) + 1)]
        assert (spots % LANES == 0).all()


def test_paths_share_branches_up_to_a_fork() -> None:
    """Check that columns are counted from the last branch, so that a branch's ancestors have the same columns in all
    paths that contain it.
    """
    branches = branches_from((-1, 0, 1, 2, 2, 4, 4))
    paths = [branches.path[i:j].tolist() for i, j in zip(branches.begin[:-1], branches.begin[1:], strict=True)]
    assert paths == [[0], [0, 1], [0, 2], [0, 2, 3], [0, 2, 4]]
    assert branches.first.tolist() == [0, 3, 4, 5, 6, 7]


def test_the_shift_of_a_branch_is_that_of_its_velocities() -> None:
    assert branches_of((-1, 0, 0, -1, 3), (0, 0, 0, 3, 3)).shift.tolist() == [0, 0, 0, 3]


def test_deep_paths_are_written_out() -> None:
    """Check a spine of 40 vertebrae with a rib on each."""
    parent = [-1, *(j for i in range(40) for j in (2 * i, 2 * i))]
    branches = branches_from(parent)
    assert len(branches.width) == 81 and longest_path(branches) == 41
    assert branches.width.max() == 41 * LANES


@pytest.mark.parametrize(("size", "columns"), [(1, 8), (8, 8), (9, 16), (35, 40)])
def test_rows_of_two_paths_have_the_columns_of_the_widest(size: int, columns: int) -> None:
    """Check paths in one tree, and in two trees beside a tree with a single velocity."""
    assert padded(size) == widest_row(one_branch(size)) == columns
    assert widest_row(branches_from([-1, -1, *range(1, size), -1, *range(size + 1, 2 * size)])) == 2 * columns
    assert widest_row(one_branch(0)) == longest_path(one_branch(0)) == 0
