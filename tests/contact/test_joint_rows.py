"""Tests of rows of joints: their existence, their distances from closing, and the rows that count."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from featherweight.contact.contact_model import joint_rows, limited_rows
from featherweight.contact.contact_settings import ContactSettings
from featherweight.contact.joint_rows import (
    JOINT_MARGIN,
    LEAST_RETURN,
    JointRows,
    any_active,
    comes_back,
    farthest_beyond,
    is_active,
    write_row_gaps,
    write_row_speeds,
)

STEP, MARGIN = 1e-2, 1e-2
SETTINGS = ContactSettings(STEP, MARGIN, 1e-4, 0.01, 1e-10, False, False)
AT = np.array([7, 8, 9, 10, 11])  # coordinates after those of a free base
LOWER, UPPER = np.array([-1.0, -inf, -2.0, -inf, -inf]), np.array([1.0, 0.5, inf, inf, inf])
DRY = np.array([0.0, 0.0, 4.0, 5.0, 0.0])
ROWS = joint_rows(AT, LOWER, UPPER, DRY, STEP)


def test_joints_have_rows_for_lower_limits_then_upper_ones_then_friction() -> None:
    assert limited_rows(LOWER, UPPER, DRY).tolist() == [0, 1, 2, 3]
    assert ROWS.dof.tolist() == [0, 2, 0, 1, 2, 3] == ROWS.joint.tolist()
    assert ROWS.at.tolist() == [7, 9, 7, 8, 9, 10]
    assert ROWS.friction.tolist() == [False] * 4 + [True] * 2
    np.testing.assert_array_equal(ROWS.sign, [1.0, 1.0, -1.0, -1.0, 1.0, 1.0])
    np.testing.assert_allclose(ROWS.lower, [0.0, 0.0, 0.0, 0.0, -4.0 * STEP, -5.0 * STEP])
    np.testing.assert_allclose(ROWS.upper, [inf, inf, inf, inf, 4.0 * STEP, 5.0 * STEP])


def test_numbers_of_rows_are_among_the_joints_that_have_any() -> None:
    """Check a robot whose first joint has no rows."""
    rows = joint_rows(AT, np.roll(LOWER, 1), np.roll(UPPER, 1), np.roll(DRY, 1), STEP)
    assert (rows.dof - rows.joint).tolist() == [1] * 6 and (rows.at - rows.dof).tolist() == [7] * 6


def test_robots_without_limits_have_no_rows() -> None:
    rows = joint_rows(AT, np.full(5, -inf), np.full(5, inf), np.zeros(5), STEP)
    assert all(len(x) == 0 for x in rows)
    assert not any_active(rows, np.zeros(0), np.zeros(0), SETTINGS)


def test_gaps_are_distances_from_limits_and_speeds_their_rates() -> None:
    """Check against a finite difference along the motion of each coordinate."""
    rng = np.random.default_rng(0)
    q, v, gap, later, speed = rng.standard_normal(12), rng.standard_normal(5), np.empty(6), np.empty(6), np.empty(6)
    write_row_gaps(ROWS, q, gap)
    expected = [q[7] + 1.0, q[9] + 2.0, 1.0 - q[7], 0.5 - q[8], inf, inf]
    np.testing.assert_allclose(gap, expected)
    write_row_speeds(ROWS, v, speed)
    q[AT] += 1e-6 * v
    write_row_gaps(ROWS, q, later)
    np.testing.assert_allclose((later[:4] - gap[:4]) / 1e-6, speed[:4], atol=1e-9)
    np.testing.assert_array_equal(speed[4:], v[2:4])


@pytest.mark.parametrize(
    ("gap", "speed", "counts"),
    [(2.0, 0.0, False), (2.0, -300.0, True), (0.5 * JOINT_MARGIN * MARGIN, 9.0, True), (-1.0, 1e9, True), (2.0, -100.0, False)],
)
def test_a_limit_counts_that_is_near_or_would_be_at_the_end_of_the_step(gap: float, speed: float, counts: bool) -> None:
    assert bool(is_active(ROWS, 0, gap, speed, SETTINGS)) == counts
    gaps, speeds = np.full(4, 9.0), np.zeros(4)
    gaps[3], speeds[3] = gap, speed
    rows = JointRows._make(x[:4] for x in ROWS)
    assert any_active(rows, gaps, speeds, SETTINGS) == counts


def test_friction_always_counts() -> None:
    assert is_active(ROWS, 5, inf, 0.0, SETTINGS)
    assert any_active(ROWS, np.full(6, inf), np.zeros(6), SETTINGS)


def test_the_joint_farthest_beyond_its_limit() -> None:
    assert farthest_beyond(ROWS, np.array([0.1, -0.2, -0.3, 0.0, inf, inf])) == 2


def test_a_joint_of_a_loop_comes_back_by_half_of_what_it_should() -> None:
    """Check a dead centre, where the expected motion is zero: changes below rounding count as zero."""
    assert comes_back(0.6, 1.0, 1.0) and not comes_back(0.4, 1.0, 1.0)
    assert not comes_back(0.5 * LEAST_RETURN, 0.0, 1.0) and comes_back(2.0 * LEAST_RETURN, 0.0, 1.0)
