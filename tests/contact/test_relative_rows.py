"""Tests of groups of contacts that share rows: the position of their rows, and the velocities at contacts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from featherweight.array_types import Array
from featherweight.collision.detection import ContactPoints
from featherweight.contact.contact_model import ContactModel, joint_rows
from featherweight.contact.contact_problem import write_axes, write_rows
from featherweight.contact.contact_settings import ContactSettings
from featherweight.contact.factors.relative_rows import (
    Columns,
    RowsOfBody,
    add_rows_of_body,
    add_rows_of_contact,
    group_contacts,
    has_own_rows,
    joint_groups,
    place_groups,
    write_ends,
)
from featherweight.contact.factors.row_factor import MOST_ROWS, RowFactorWork, row_factor_work, sizes_of_one_branch

SIX, POINT = 6, 3  # rows of bodies


def room_for(blocks: int, columns: int = 0) -> RowFactorWork:
    """Return a workspace that contained other numbers; Y is zero."""
    room = row_factor_work(blocks, sizes_of_one_branch(columns))
    for x in (room.members, room.rows, room.first, room.second, room.group, room.at):
        x.fill(MOST_ROWS)
    room.ends.fill(np.nan)
    room.values.fill(0.0)
    return room


def model_of(width: list[int]) -> ContactModel:
    none, ints = np.zeros(0), np.zeros(0, np.int64)
    settings, rows = ContactSettings(1e-3, 0.01, 1e-4, 0.01, 1e-10, False, False), joint_rows(ints, none, none, none, 1e-3)
    return ContactModel(np.array(width), none, none, rows, settings, np.zeros(len(width), np.int64), ints, sum(width))


def touching(pairs: list[tuple[int, int]], point: Array | None = None) -> ContactPoints:
    k = len(pairs)
    a, b = (np.array([p[side] for p in pairs], np.int64) for side in (0, 1))
    return ContactPoints(np.arange(k), a, b, np.zeros((k, 3)) if point is None else point, np.zeros((k, 3)), np.zeros(k))


# ---- groups


def test_contacts_of_the_same_bodies_in_the_same_order_are_a_group() -> None:
    """Check rows: one contact takes three, two contacts six, and more contacts share six. -1 is the world."""
    room = room_for(8)
    pairs = [(0, 1), (1, 0), (0, 1), (2, -1), (-1, 2), (2, -1), (2, -1), (1, -1)]
    assert group_contacts(model_of([SIX] * 3), touching(pairs), room) == 5
    assert room.group.tolist() == [0, 1, 0, 2, 3, 2, 2, 4]
    assert room.rows[:5].tolist() == [6, 3, 6, 3, 3]
    assert list(zip(room.first[:5].tolist(), room.second[:5].tolist(), strict=True)) == [pairs[c] for c in (0, 1, 3, 4, 7)]


@pytest.mark.parametrize("pair", [(1, -1), (-1, 1), (0, 1), (1, 0), (1, 2)])
def test_several_contacts_of_one_point_have_three_rows(pair: tuple[int, int]) -> None:
    room = room_for(3)
    assert group_contacts(model_of([SIX, POINT, POINT]), touching([pair] * 3), room) == 1
    assert room.rows[0] == 3


@pytest.mark.parametrize("n", [0, 5, MOST_ROWS, MOST_ROWS + 1, 3 * MOST_ROWS])
def test_joint_rows_of_a_branch_are_groups_of_the_most_rows(n: int) -> None:
    """Check that their branch may have the number of a body, and that rows of another branch are separate."""
    room, k = room_for(2 * n + 3), 3
    groups = group_contacts(model_of([SIX] * 2), touching([(1, -1), (0, -1), (1, -1)]), room)
    total = joint_groups(k, np.array([1, 7] * n, np.int64), 2 * n, groups, room)
    each = -(-n // MOST_ROWS)
    assert (groups, total) == (2, 2 + 2 * each)
    assert room.rows[2:total].sum() == 2 * n and room.rows[:total].max() <= MOST_ROWS
    for side in range(2):
        own = room.group[k + side : k + 2 * n : 2].tolist()
        assert own == [own[i // MOST_ROWS * MOST_ROWS] for i in range(n)] and len(set(own)) == each and min(own, default=2) >= 2


def test_rows_of_groups_follow_one_another() -> None:
    """Check that rows E of contacts that share rows are contiguous; others, and joint rows, have places among the Y of
    their group, in order.
    """
    room, k, n = room_for(15), 5, 10
    groups = group_contacts(model_of([SIX] * 2), touching([(0, -1), (0, 1), (0, -1), (0, 1), (0, -1)]), room)
    groups = joint_groups(k, np.zeros(n, np.int64), n, groups, room)
    assert room.rows[:groups].tolist() == [6, 6, 8, 2]
    room.width[:groups] = 16, 24, 8, 8
    assert place_groups(k, n, groups, room) == 6 * 16 + 6 * 24 + 8 * 8 + 2 * 8
    assert room.begin[:groups].tolist() == [0, 96, 240, 304]
    assert room.at.tolist() == [0, -1, 18, -4, 36, *range(-1, -9, -1), -1, -2]
    assert [has_own_rows(g, room) for g in range(groups)] == [False, True, True, True]


# ---- numbers


class Bodies:
    """Bodies at random positions, contacts of pairs of them, and Y of their groups on the velocities of all bodies."""

    def __init__(self, rng: np.random.Generator, width: list[int], pairs: list[tuple[int, int]]) -> None:
        n, k, wide = len(width), len(pairs), sum(width)
        self.pairs, self.width, self.begin = pairs, width, np.cumsum([0, *width])
        self.T, self.axes = np.tile(np.eye(4), (n, 1, 1)), np.empty((k, 3, 3))
        self.T[:, :3, :3], self.T[:, :3, 3] = Rotation.random(n, rng=rng).as_matrix(), rng.standard_normal((n, 3))
        self.point, normal = rng.standard_normal((2, k, 3))
        for c, pair in enumerate(pairs):
            write_axes(normal[c] / np.linalg.norm(normal[c]), self.axes[c])
            for body in pair:
                if width[body] == POINT:
                    self.point[c] = self.T[body, :3, 3]
        self.room, contacts = room_for(k, wide), touching(pairs, self.point)
        groups = group_contacts(model_of(width), contacts, self.room)
        self.wide = self.room.width[:groups] = wide
        place_groups(k, 0, groups, self.room)
        for c in range(k):
            g, on_body = self.room.group[c], np.empty((3, 6))
            first, own = self.room.group.tolist().index(g), has_own_rows(g, self.room)
            for sign, body in zip((1.0, -1.0), pairs[c], strict=True):
                if body < 0:
                    continue
                rows = RowsOfBody(np.eye(wide)[self.begin[body] : self.begin[body + 1]].ravel(), 0, wide)
                columns = Columns(wide, wide, 0, 0)
                if own:
                    at = self.room.begin[g] - (1 + self.room.at[c]) * wide
                    write_rows(self.axes[c], self.point[c], self.T[body], sign, on_body)
                    add_rows_of_contact(on_body, width[body], rows, columns, at, wide, self.room.values)
                elif c == first:
                    add_rows_of_body(sign, self.point[c], self.T[body], width[body], rows, columns, g, self.room)
            if not own:
                write_ends(contacts, self.axes, c, first, self.room)

    def ends(self, c: int) -> Array:
        rows, at = self.room.rows[self.room.group[c]], self.room.at[c]
        return self.room.ends[at:][: 3 * rows].reshape(3, rows) if at >= 0 else np.eye(rows)[-1 - at :][:3]

    def relative(self, g: int) -> Array:
        rows = self.room.rows[g]
        return self.room.values[self.room.begin[g] :][: rows * self.wide].reshape(rows, self.wide)

    def expected(self, c: int) -> Array:
        """Return the rows of a contact on the velocities of both bodies."""
        rows, whole = np.empty((3, 6)), np.zeros((3, self.wide))
        for sign, body in zip((1.0, -1.0), self.pairs[c], strict=True):
            if body >= 0:
                write_rows(self.axes[c], self.point[c], self.T[body], sign, rows)
                whole[:, self.begin[body] : self.begin[body + 1]] += rows[:, : self.width[body]]
        return whole


@pytest.mark.parametrize(
    "pairs",
    [
        [(0, -1)],
        [(0, -1)] * 3,
        [(0, 1)] * 4,
        [(-1, 1)] * 2,
        [(0, 1), (1, 0), (0, 1), (1, 0)],
        [(0, 2)],
        [(2, 1)] * 3,
        [(2, -1)] * 2,
    ],
    ids=str,
)
def test_contacts_see_the_velocity_of_their_point(pairs: list[tuple[int, int]]) -> None:
    """Check that E Y are the rows on both bodies, also for many contacts that use the rows of their first."""
    bodies = Bodies(np.random.default_rng(len(pairs)), [SIX, SIX, POINT], pairs)
    for c in range(len(pairs)):
        found = bodies.ends(c) @ bodies.relative(bodies.room.group[c])
        np.testing.assert_allclose(found, bodies.expected(c), rtol=0.0, atol=1e-13)


def test_the_first_contact_of_a_group_sees_linear_velocity_alone() -> None:
    bodies = Bodies(np.random.default_rng(0), [SIX, SIX], [(0, 1)] * 3)
    np.testing.assert_array_equal(bodies.ends(0), np.hstack([bodies.axes[0], np.zeros((3, 3))]))
    assert np.abs(bodies.ends(1)[:, 3:]).min() > 0.0


def test_columns_of_a_body_have_their_places_in_a_group() -> None:
    """Check that its own columns come first, then those that it shares with the other body; shared rows add up."""
    room, rng = room_for(3, 40), np.random.default_rng(0)
    group_contacts(model_of([SIX]), touching([(0, -1)] * 3), room)
    room.width[0], T, numbers = 40, np.eye(4), rng.standard_normal(5 + 6 * 32)
    place_groups(3, 0, 1, room)
    for _ in range(2):
        add_rows_of_body(-0.5, np.zeros(3), T, SIX, RowsOfBody(numbers, 5, 32), Columns(16, 8, 24, 0), 0, room)
    Y, source = room.values[: 6 * 40].reshape(6, 40), numbers[5:].reshape(6, 32)
    np.testing.assert_allclose(Y[:, 24:32], -source[:, :8], rtol=1e-15)
    np.testing.assert_allclose(Y[:, 8:16], -source[:, 8:16], rtol=1e-15)
    assert not Y[:, :8].any() and not Y[:, 16:24].any() and not Y[:, 32:].any()
