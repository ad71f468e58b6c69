"""Tests of Sathya, Decré and Swevers (2023): our counts compared with the paper's, and the report."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import sathya2023
import sathya2023_matrices as matrices
import sathya2023_robots as robots
from sathya2023_counts import (
    Mechanism,
    Polynomial,
    chain_of_squares,
    constrained_chain,
    count,
    leading_terms,
    long_branches,
    polynomial,
    stem_with_branches,
    stem_with_tips,
    sum_of,
)

from featherweight import build, generators
from featherweight.engine.execution import cost

SQUARES, CHAINS, STEMS = (3, 4, 5, 6, 7, 8), (4, 5, 6, 7, 8), (4, 6, 8)


def test_polynomials_are_found_from_their_values() -> None:
    p = Polynomial({x: 3 * x**3 - 2 * x + 5 for x in (1, 2, 4, 7, 9)})
    assert p.degree == 3 and p.coefficients == [5, -2, 0, 3] and p(20) == 3 * 20**3 - 35
    assert p.text("x") == "3 x³ − 2 x + 5"
    assert Polynomial({0: Fraction(7), 5: Fraction(7)}).coefficients == [7]
    with pytest.raises(AssertionError, match="not a polynomial"):
        Polynomial({1: 1, 2: 2, 3: 4})


def test_stems_have_branches_at_both_ends() -> None:
    """Check figure 3a."""
    made = stem_with_branches(3, 2)
    tree = build(generators.from_parents(made.parents)).model.topology
    assert len(made.parents) == 3 + 4 * 7 and len(made.ends) == 4
    assert sorted(tree.depth[i] for i in made.ends) == [8, 8, 10, 10]
    assert made.robot().nv == 3 + 4 * 7 + 5


@pytest.mark.parametrize(
    ("mechanism", "sizes", "slopes"),
    [
        (chain_of_squares, SQUARES, sathya2023.PAPER_SLOPES),
        (constrained_chain, CHAINS, sathya2023.PAPER_CHAIN_SLOPES),
    ],
)
def test_operations_grow_as_in_figure_4(
    mechanism: Callable[[int], Mechanism], sizes: tuple[int, ...], slopes: dict[str, int | None]
) -> None:
    """Check slopes of 2, 3 and 4 in k, and of 2, 2 and 3 in n."""
    for algorithm, power in slopes.items():
        if power is None:  # not in the paper's figure
            continue
        p = polynomial(mechanism, algorithm, sizes)
        assert p.degree == power
        assert abs(sathya2023.slope(p, 100, 1000) - power) < 0.05, algorithm


@pytest.mark.parametrize(("links", "cheapest"), [(6, "ltl"), (16, "kjr")])
def test_the_library_takes_the_cheapest_for_a_chain_with_every_link_constrained(links: int, cheapest: str) -> None:
    """Check that KJR needs fewer operations than PV-OSIMr in long chains of figure 4b, and that the library knows it."""
    made = constrained_chain(links)
    function = made.robot("auto").delassus(made.contacts())
    counts = {algorithm: cost(operations) for algorithm, operations in function.candidates.items()}
    assert function.algorithm == min(counts, key=counts.__getitem__) == cheapest
    assert (counts["kjr"] < counts["pv-osimr"]) == (cheapest == "kjr")


def test_counts_of_larger_mechanisms_lie_on_the_polynomials() -> None:
    for algorithm in sathya2023.ALGORITHMS:
        assert polynomial(chain_of_squares, algorithm, SQUARES)(10) == count(chain_of_squares, 10, algorithm=algorithm)
        stems = polynomial(sathya2023.stem_mechanism(2), algorithm, STEMS)
        assert stems(25) == count(sathya2023.stem_mechanism(2), 25, algorithm=algorithm)


@pytest.mark.parametrize("branches", [1, 2, 4])
def test_operations_stay_within_the_axes_of_figure_3(branches: int) -> None:
    """Check that the highest curve ends at or below the last label, and that PV-OSIMr is the lowest.

    For one branch, PV-OSIM needs as many operations.
    """
    found = {x: polynomial(sathya2023.stem_mechanism(branches), x, STEMS) for x in sathya2023.ALGORITHMS}
    at_end = {x: p(sathya2023.LONGEST) for x, p in found.items()}
    assert max(at_end.values()) <= sathya2023.LABELLED[branches]
    if branches == 1:
        assert found["pv-osimr"].coefficients == found["pv-osim"].coefficients
    else:
        assert at_end["pv-osimr"] < 0.75 * min(at_end["pv-osim"], at_end["efpa"])


@pytest.mark.parametrize(
    ("algorithm", "stem", "branches"),
    [("pv-osimr", "s + c²", "s c + c²"), ("efpa", "s c + c²", "s c + c²"), ("pv-osim", "s c²", "s c + c²")],
)
def test_operations_have_the_terms_of_table_1(algorithm: str, stem: str, branches: str) -> None:
    for mechanism, expected in ((stem_with_tips, stem), (long_branches, branches)):
        counts = {(s, c): count(mechanism, s, c, algorithm=algorithm) for s in (4, 5, 6) for c in (2, 3, 4, 5)}
        assert sum_of(leading_terms(counts)) == expected


@pytest.mark.parametrize("algorithm", ["pv-osim", "pv-osimr", "links first"])
@pytest.mark.parametrize("made", [stem_with_branches(3, 2), constrained_chain(4)], ids=["stem", "chain"])
def test_the_equations_by_matrices_give_the_same_matrix(made: Mechanism, algorithm: str) -> None:
    """Check to rounding: both are stable sums of the same products."""
    robot = made.robot("interpreted")
    q = robot.random_configuration(rng=1)
    found = matrices.delassus(robot, made.contacts(), algorithm, q.tolist()).astype(float)
    expected = robot.delassus(made.contacts(), "pv-osim")(q)
    assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()


def test_our_functions_take_fewer_operations_than_the_equations_by_matrices() -> None:
    made = stem_with_branches(3, 2)
    robot, contacts = made.robot(), made.contacts()
    for algorithm in ("pv-osim", "pv-osimr"):
        ours, theirs = robot.delassus(contacts, algorithm).operations, matrices.operations(robot, contacts, algorithm)
        assert ours.mul < 0.8 * theirs.mul and ours.add < 0.8 * theirs.add


def test_hands_are_fixed_to_links() -> None:
    arm, hand = generators.chain(3), generators.from_parents([-1, 0, 0])
    both = robots.with_hand(robots.with_hand(arm, hand, "body2", "left_"), hand, "body2", "right_")
    made = build(both)
    assert made.nv == 9 and made.model.topology.children[2] == (3, 6)
