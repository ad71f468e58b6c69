"""Tests of Wensing, Featherstone and Orin (2012): the humanoid's zeros, our counts against the paper's, the report's
sections.
"""

from __future__ import annotations

import numpy as np
import pytest
import wensing2012
from wensing2012_mechanisms import (
    ASIMO,
    BODIES,
    MORE_LIMBS,
    SFA_TO_EFPA,
    ZEROS,
    contacts,
    counts,
    humanoid,
    matching,
    on_one_foot,
    robot,
    three_zeros,
    variants,
    zeros,
)
from wensing2012_prices import appendix, by_table1
from wensing2012_steps import HOOKS, merged, pairs_alone, steps, total

RECURSIVE = ("efpa", "kjr")
MANY = "HF, 2 more arms and legs"
ONE_FOOT = "HF, standing on one foot"


def test_the_humanoid_has_the_zeros_of_the_paper() -> None:
    """Check the printed 67 %, to half a per cent for its rounding."""
    assert len(humanoid(ASIMO).parents) == len(on_one_foot(ASIMO).parents) + 1 == BODIES
    for found, printed in zip(three_zeros(MORE_LIMBS), ZEROS, strict=True):
        assert abs(found - printed) <= 0.5
    others = [limbs for limbs, _ in matching() if limbs.fingers > 1 and (limbs.arm, limbs.leg) == (7, 6)]
    assert [(limbs.base, limbs.waist, limbs.neck) for limbs in others] == [("torso", 1, 3)]


def test_zeros_by_branching_are_those_of_our_matrices() -> None:
    """Check zeros except those within the six rows of the base and within blocks of J, which are not due to branching."""
    m = humanoid(ASIMO)
    r = robot(m)
    q = r.random_configuration(rng=0)
    H, J = r.mass_matrix(q) != 0.0, r.contact_jacobian(contacts(m.hands + m.feet))(q) != 0.0
    H[:6, :7] = H[:7, :6] = True
    in_J, in_H = zeros(m, m.hands + m.feet)
    assert 100 * np.mean(~H) == pytest.approx(in_H)
    assert 100 * np.mean(~J.reshape(4, 6, -1).any(axis=1)) == pytest.approx(in_J)


@pytest.mark.parametrize("algorithm", HOOKS)
def test_steps_add_up_to_the_count(algorithm: str) -> None:
    m = humanoid(ASIMO)
    ends = m.hands + m.feet
    assert total(steps(m, ends, algorithm)) == total(merged(steps(m, ends, algorithm)))
    assert total(steps(m, ends, algorithm)) == counts(m, ends, (algorithm,))[algorithm]


def test_steps_of_efpa_take_no_more_than_the_appendix_says() -> None:
    found = appendix(humanoid(ASIMO))
    for name, (_, paper, in_efpa) in wensing2012.APPENDIX.items():
        if in_efpa:
            assert found[name].m <= paper.m and found[name].a <= paper.a, name


def test_efpa_takes_no_more_than_table_1_at_the_prices_of_the_paper() -> None:
    m = humanoid(ASIMO)
    ends = m.hands + m.feet
    ours, paper = steps(m, ends, "efpa"), by_table1(m, ends)
    base = sum(c.m + c.a for step, c in ours.items() if step.endswith("base"))
    assert base <= paper["base"]
    assert total(ours) - total({"": ours["inertias"]}) <= sum(paper.values())


def test_without_the_jacobian_sparse_factors_take_the_part_of_efpa_that_the_paper_says() -> None:
    """Check 0.78 to 0.05, with our counts and with the papers' costs, because neither are the paper's own counts."""
    found = wensing2012.ratios()
    for name in ("our functions, the Jacobian not counted", "the papers' prices, the Jacobian not counted"):
        assert found[name][0] == pytest.approx(SFA_TO_EFPA, abs=0.05), name
        assert found[name][2] == pytest.approx(1.0, abs=0.05), name


def test_efpa_takes_less_than_rjk_but_on_one_foot() -> None:
    for name, case in variants().items():
        found = counts(*case, RECURSIVE)
        assert (found["efpa"] < found["kjr"]) == (name != ONE_FOOT), name


def test_blocks_of_two_end_effectors_are_most_of_rjk() -> None:
    m = humanoid(ASIMO)
    costs = merged(steps(m, m.hands + m.feet, "kjr"))
    assert 2 * total({"": costs["other blocks"]}) > total(costs)


def test_branches_favour_sparse_factors_and_dense_blocks_the_recursion() -> None:
    cases = variants()
    ratio = {}
    for name in ("HF", MANY, "HF, 4 more joints per arm", "HF, 4 more joints per leg", "HF, four-fingered hands"):
        found = counts(*cases[name], ("efpa", "ltl"))
        ratio[name] = found["ltl"] / found["efpa"]
    assert ratio["HF"] < 1 and ratio[MANY] < 1
    assert ratio["HF, four-fingered hands"] > 1
    assert all(x > ratio["HF"] for name, x in ratio.items() if name != "HF")


def test_rjk_falls_back_by_more_than_half_with_two_arms_and_two_legs_if_each_pair_pays_for_its_paths() -> None:
    found = {
        name: pairs_alone(*case) / counts(*case, ("ltl",))["ltl"] for name, case in variants().items() if name in ("HF", MANY)
    }
    assert found[MANY] / found["HF"] > 1.5
