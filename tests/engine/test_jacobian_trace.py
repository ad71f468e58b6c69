"""Tests of groups of directions, and of traces that carry a group at a time."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels import swinging
from featherweight.engine.derivative_program import JacobianProgram
from featherweight.engine.jacobian_trace import Piece, groups_of_directions


def test_directions_that_reach_the_same_share_a_group() -> None:
    """Check two limbs, each with positions first and velocities after the positions of all."""
    reach = np.zeros((8, 2), bool)
    reach[[0, 1, 4, 5], 0] = True
    reach[[2, 3, 6, 7], 1] = True
    assert groups_of_directions(reach, np.array([10, 10]), 4) == [[0, 1, 4, 5], [2, 3, 6, 7]]


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_each_direction_is_in_one_group(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    groups = groups_of_directions(rng.random((29, 40)) < 0.3, rng.integers(1, 9, 40), lanes)
    assert sorted(d for group in groups for d in group) == list(range(29))
    assert max(map(len, groups)) <= lanes
    assert len(groups) == -(-29 // lanes)


def test_pieces_cover_every_column_once() -> None:
    program = JacobianProgram(swinging(11).program, "", ("x", "y"))
    t = program.in_lanes(8)
    assert t is not None
    assert t.rows == (11,)
    assert t.columns == (11, 11)
    covered = [(p.argument, p.column + k) for group in t.pieces for p in group for k in range(len(p.lanes))]
    assert sorted(covered) == [(argument, column) for argument in range(2) for column in range(11)]
    assert all(isinstance(p, Piece) and list(p.lanes) == sorted(p.lanes) for group in t.pieces for p in group)


def test_what_no_direction_of_a_group_reaches_is_not_carried() -> None:
    program = JacobianProgram(swinging(32).program, "", ("y",))
    t = program.in_lanes(8)
    assert t is not None
    zeros = sum(isinstance(y, float) for y in t.trace.outputs)
    assert zeros == 32 * 4 - 32  # y[i] affects out[i] alone


def test_lanes_need_half_as_many_directions() -> None:
    program = JacobianProgram(swinging(7).program, "", ("x",))
    assert program.in_lanes(16) is None
    assert program.in_lanes(8) is not None
