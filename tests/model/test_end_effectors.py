"""Tests of end-effectors: their bodies, the branching of their paths, and propagation between branching rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featherweight.model.end_effectors import MOVE, PAIR, PRODUCT, STEP, EndEffectors, Spans, stations, worthwhile_stations
from featherweight.model.generators import balanced_tree_parents, unbranched_parents
from featherweight.model.topology import Topology

trees = st.lists(st.integers(0, 2**16), min_size=1, max_size=14).map(
    lambda draws: [d % (i + 1) - 1 for i, d in enumerate(draws)]
)


@st.composite
def ends_on_trees(draw: st.DrawFn) -> EndEffectors:
    """Return up to seven end-effectors on any rows, several on a row and some on the ground."""
    parent = draw(trees)
    return EndEffectors(Topology(parent), draw(st.lists(st.integers(-1, len(parent) - 1), min_size=1, max_size=7)))


@st.composite
def spans_on_trees(draw: st.DrawFn) -> tuple[Spans, list[int]]:
    """Return spans between any rows that carry end-effectors, which need not be branching."""
    ends = draw(ends_on_trees())
    carrying = [i for i, carried in enumerate(ends.supported) if carried]
    at = draw(st.lists(st.sampled_from(carrying), unique=True)) if carrying else []
    sizes = draw(st.lists(st.integers(1, 12), min_size=len(ends.links), max_size=len(ends.links)))
    return Spans(ends, at, sizes), sizes


def of(parent: list[int], *links: int) -> EndEffectors:
    return EndEffectors(Topology(parent), links)


def rows(flags: tuple[bool, ...]) -> list[int]:
    return [i for i, flag in enumerate(flags) if flag]


# the six-link tree of figure 1: the paper's link i is row i - 1, and its end-effectors 7, 8 and 9 are 0, 1 and 2

PAPER = of([-1, 0, 1, 2, 3, 1], 5, 2, 4)


def test_the_papers_supported_end_effectors() -> None:
    assert PAPER.supported[5 - 1] == (2,)
    assert PAPER.supported[3 - 1] == (1, 2)
    assert PAPER.supported[2 - 1] == (0, 1, 2)


def test_the_papers_branching_links() -> None:
    assert rows(PAPER.branching) == [2 - 1, 3 - 1]


def test_the_papers_closest_common_ancestors() -> None:
    assert PAPER.common_ancestors[1, 2] == 3 - 1
    assert PAPER.common_ancestors[0, 2] == 2 - 1


def test_the_papers_branching_ancestors() -> None:
    """Check the table of A(i); its zero is -1 here."""
    spans = Spans(PAPER, rows(PAPER.branching), [6, 6, 6])
    above = [spans.at[k] + 1 if k >= 0 else 0 for k in (spans.above(0), spans.above(1))]
    assert above == [0, 2]  # of links 2 and 3
    assert [spans.at[spans.end_above(e)] + 1 for e in range(3)] == [2, 3, 3]  # of 7, 8 and 9


def test_the_papers_branching_descendants() -> None:
    """Check the table of D(i), which a joint's columns start from: 2 2 3 9 9 7."""
    spans = Spans(PAPER, rows(PAPER.branching), [6, 6, 6])
    start = {spans.columns[0]: 7, spans.columns[1]: 8, spans.columns[2]: 9, spans.columns[3]: 2, spans.columns[4]: 3}
    found = [[number for columns, number in start.items() if set(columns) & set(passing)] for passing in spans.passing]
    assert found == [[2], [2], [3], [9], [9], [7]]


# examples by hand


def test_one_end_effector_meets_none() -> None:
    ends = of([-1, 0, 1, 0], 2)
    assert ends.supported == ((0,), (0,), (0,), ())
    assert rows(ends.branching) == []
    assert ends.common_ancestors[0, 0] == 2


def test_two_on_one_row_meet_there() -> None:
    ends = of([-1, 0, 1], 1, 1)
    assert rows(ends.branching) == [1]
    assert ends.common_ancestors[0, 1] == 1


def test_one_on_an_ancestor_of_the_other_meets_it_there() -> None:
    ends = of([-1, 0, 1, 2], 3, 1)
    assert ends.supported == ((0, 1), (0, 1), (0,), (0,))
    assert rows(ends.branching) == [1]
    assert ends.common_ancestors[0, 1] == ends.common_ancestors[1, 0] == 1


def test_a_fork_with_one_side_free_is_no_branching_row() -> None:
    assert rows(of([-1, 0, 0, 1, 1], 3, 4).branching) == [1]


def test_paths_from_different_roots_meet_on_the_ground() -> None:
    ends = of([-1, 0, -1, 2], 1, 3)
    assert rows(ends.branching) == []
    assert ends.common_ancestors[0, 1] == -1
    assert Spans(ends, [], [6, 6]).meet(0, 1) == -1


def test_end_effectors_on_the_ground_are_carried_by_none() -> None:
    ends = of([-1, 0], -1, 1, -1)
    assert ends.supported == ((1,), (1,))
    assert rows(ends.branching) == []
    assert ends.common_ancestors[0].tolist() == [-1, -1, -1]
    spans = Spans(ends, [0], [1, 2, 3])
    assert [spans.end_above(e) for e in range(3)] == [-1, 0, -1]
    assert spans.passing == ((6, 7, 8, 9, 10, 11), (1, 2))


def test_three_forks_of_a_balanced_tree() -> None:
    parent = balanced_tree_parents(3)  # 0 carries 1 and 4, they carry 2 and 3, and 5 and 6
    ends = of(parent, 2, 3, 5, 6)
    assert rows(ends.branching) == [0, 1, 4]
    spans = Spans(ends, [4, 0, 1], [1, 1, 1, 1])
    assert spans.at == (0, 1, 4)
    assert [spans.above(k) for k in range(3)] == [-1, 0, 0]
    assert [spans.meet(0, f) for f in range(4)] == [1, 1, 0, 0]
    assert spans.passing[1] == tuple(spans.columns[4 + 1])


def test_columns_are_those_of_constraints_and_six_for_each_branching_row() -> None:
    spans = Spans(of([-1, 0, 0], 1, 2, 2), [2, 0], [1, 12, 3])
    assert spans.columns == [range(1), range(1, 13), range(13, 16), range(16, 22), range(22, 28)]
    assert spans.passing == (tuple(range(16, 22)), (0,), tuple(range(22, 28)))


def test_without_branching_rows_all_columns_pass() -> None:
    spans = Spans(of([-1, 0, 0], 2, 0, 1), [], [2, 3, 1])
    assert spans.passing == ((0, 1, 2, 3, 4, 5), (5,), (0, 1))
    assert [spans.end_above(e) for e in range(3)] == [-1, -1, -1]


@pytest.mark.parametrize("link", [-2, 3, 7])
def test_rows_that_the_tree_does_not_have_are_refused(link: int) -> None:
    with pytest.raises(ValueError, match=f"no row {link}; the tree has 3"):
        of([-1, 0, 1], 0, link)


# the definitions on random trees


def ancestors(parent: tuple[int, ...], i: int) -> set[int]:
    """Return the ancestors of i including i, without the ground."""
    return set() if i < 0 else {i} | ancestors(parent, parent[i])


@given(ends_on_trees())
def test_supported_are_those_that_descend(ends: EndEffectors) -> None:
    for i, carried in enumerate(ends.supported):
        assert list(carried) == [e for e, link in enumerate(ends.links) if i in ancestors(ends.tree.parent, link)]


@given(ends_on_trees())
def test_branching_is_the_papers(ends: EndEffectors) -> None:
    """Check {i | ES(j) is a proper subset of ES(i) for all children j}, with end-effectors as children, and i with
    end-effectors.
    """
    n = len(ends.tree)
    parent = [*ends.tree.parent, *ends.links]  # in the paper's tree
    carried = [set(s) for s in ends.supported] + [{e} for e in range(len(ends.links))]
    expected = [all(carried[j] < carried[i] for j in range(len(parent)) if parent[j] == i) for i in range(n)]
    assert list(ends.branching) == [proper and bool(carried[i]) for i, proper in enumerate(expected)]


@given(ends_on_trees())
def test_branching_rows_are_where_two_paths_meet(ends: EndEffectors) -> None:
    pairs = {(e, f) for f in range(len(ends.links)) for e in range(f)}
    assert set(rows(ends.branching)) == {ends.common_ancestors[e, f] for e, f in pairs} - {-1}


@given(ends_on_trees())
def test_common_ancestors_are_the_last_in_both_supports(ends: EndEffectors) -> None:
    parent, links = ends.tree.parent, ends.links
    for e in range(len(links)):
        for f in range(len(links)):
            both = ancestors(parent, links[e]) & ancestors(parent, links[f])
            assert ends.common_ancestors[e, f] == max(both, default=-1)


@given(spans_on_trees())
def test_nearest_rows_above(drawn: tuple[Spans, list[int]]) -> None:
    spans, _ = drawn
    ends, at = spans.ends, spans.at
    parent = ends.tree.parent

    def last(among: set[int]) -> int:
        found = [k for k, row in enumerate(at) if row in among]
        return max(found, default=-1)

    assert list(at) == sorted(at)
    for k, row in enumerate(at):
        assert spans.above(k) == last(ancestors(parent, row) - {row})
    for e, link in enumerate(ends.links):
        assert spans.end_above(e) == last(ancestors(parent, link))
        for f, other in enumerate(ends.links):
            assert spans.meet(e, f) == last(ancestors(parent, link) & ancestors(parent, other))


@given(spans_on_trees())
def test_columns_pass_from_where_they_start_to_the_next_row_that_replaces_them(drawn: tuple[Spans, list[int]]) -> None:
    spans, sizes = drawn
    parent, at = spans.ends.tree.parent, set(spans.at)
    assert [len(columns) for columns in spans.columns] == [*sizes, *(6 for _ in at)]
    expected: list[set[int]] = [set() for _ in parent]
    for e, link in enumerate(spans.ends.links):
        i = link
        while i >= 0 and i not in at:
            expected[i] |= set(spans.columns[e])
            i = parent[i]
    for k, row in enumerate(spans.at):
        i = row
        while i >= 0 and (i == row or i not in at):
            expected[i] |= set(spans.columns[len(sizes) + k])
            i = parent[i]
    assert spans.passing == tuple(tuple(sorted(columns)) for columns in expected)


@given(spans_on_trees())
def test_each_pair_of_constraint_columns_is_in_the_ranges_of_the_row_where_it_meets(drawn: tuple[Spans, list[int]]) -> None:
    spans, sizes = drawn
    count = len(sizes)
    expected: list[set[tuple[int, int]]] = [set() for _ in range(len(spans.at) + 1)]
    for f in range(count):
        for e in range(f, count):
            expected[spans.meet(e, f)] |= {(f, c) for c in spans.columns[e]}
    for found, pairs in zip(spans.pairs, expected, strict=True):
        listed = [(f, c) for f, begin, stop in found for c in range(begin, stop)]
        assert len(listed) == len(set(listed)) and set(listed) == pairs


@given(spans_on_trees())
def test_ranges_that_go_on_are_the_columns_of_what_is_carried(drawn: tuple[Spans, list[int]]) -> None:
    spans, _ = drawn
    for row, ranges in zip(spans.at, spans.supporting_ranges, strict=True):
        carried = [c for e in spans.ends.supported[row] for c in spans.columns[e]]
        assert [c for begin, stop in ranges for c in range(begin, stop)] == carried


@given(spans_on_trees())
def test_no_column_passes_a_joint_with_one_before_its_earliest(drawn: tuple[Spans, list[int]]) -> None:
    spans, _ = drawn
    for column, earliest in enumerate(spans.earliest):
        together = {c for passing in spans.passing if column in passing for c in passing}
        assert earliest == min(together | {column})


# where six columns pay


@given(ends_on_trees(), st.data())
def test_worthwhile_rows_branch_and_so_do_all_above_them_that_branch(ends: EndEffectors, data: st.DataObject) -> None:
    count = len(ends.links)
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=count, max_size=count), label="rows")
    inner = data.draw(st.lists(st.booleans(), min_size=len(ends.tree), max_size=len(ends.tree)), label="inner")
    chosen = worthwhile_stations(ends, sizes, inner)
    assert list(chosen) == sorted(set(chosen))
    possible = set(stations(ends, sizes))
    own = {i: sum(size for link, size in zip(ends.links, sizes, strict=True) if link == i) for i in range(len(ends.tree))}
    assert possible == set(rows(ends.branching)) | {i for i, size in own.items() if size > 6}
    assert set(chosen) <= possible
    for i in chosen:
        assert {j for j in ancestors(ends.tree.parent, i) if j in possible} <= set(chosen)


def forked(length: int) -> EndEffectors:
    """Return a stem of `length` rows with two branches of one row at its end."""
    parent = [*unbranched_parents(length), length - 1, length - 1]
    return of(parent, length, length + 1)


@pytest.mark.parametrize("size", [6, 12])
def test_it_is_worth_the_while_over_stems_that_are_long_enough(size: int) -> None:
    """Check that six columns instead of 2 m_i save the same over each joint of the stem, and cost a constant at the fork."""
    c = 2 * size
    saved = STEP * (c - 6) + PAIR * (c * (c + 1) // 2 - 21)
    cost = MOVE * (6 + 2 * c) + PRODUCT * c * (c + 1) // 2
    even = cost // saved
    for length in (even - 1, even, even + 1, even + 5):
        chosen = worthwhile_stations(forked(length), [size, size], [False] * (length + 2))
        assert chosen == ((length - 1,) if length > cost / saved else ())
    assert even >= 2


def test_it_is_never_worth_the_while_for_six_columns() -> None:
    assert worthwhile_stations(forked(100), [3, 3], [False] * 102) == ()


def test_inner_rows_cost_less() -> None:
    """Check that the rows of one joint of six degrees of freedom are a shorter path than six joints."""
    assert worthwhile_stations(forked(8), [6, 6], [False] * 10) == (7,)
    assert worthwhile_stations(forked(8), [6, 6], [False, *[True] * 7, False, False]) == ()


def test_rows_above_one_that_is_chosen_are_chosen_with_it() -> None:
    """Check a path from row 0 to the ground that is too short on its own."""
    parent = [*unbranched_parents(11), 10, 10, 0]
    assert worthwhile_stations(of(parent, 11, 12, 13), [6, 6, 6], [False] * 14) == (0, 10)
    assert worthwhile_stations(of(parent, 11, 13), [6, 6], [False] * 14) == ()


def test_the_way_counts_to_the_next_branching_row_only() -> None:
    """Check row 20, one joint below row 19, which has a long path to the ground."""
    parent = [*unbranched_parents(21), 20, 20, 19]
    assert worthwhile_stations(of(parent, 21, 22, 23), [6, 6, 6], [False] * 24) == (19,)


def test_supports_agree_with_the_topology() -> None:
    rng = np.random.default_rng(0)
    tree = Topology([int(rng.integers(-1, i)) for i in range(30)])
    ends = EndEffectors(tree, range(30))
    for i in range(30):
        assert ends.supported[i] == tree.subtree(i)
