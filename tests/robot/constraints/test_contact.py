"""Tests of contacts as users define them, their errors, and their functions."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.constraints.operational_space import DELASSUS
from oracles.robots import example
from oracles.states import random_states, state

HAND, FINGER = "panda_hand", "panda_leftfinger"
PAIR = (fw.BilateralContact(HAND), fw.BilateralContact(FINGER, "point"))


@pytest.fixture
def panda() -> fw.Robot:
    return example("panda")


@pytest.fixture
def plain() -> fw.Robot:
    """Return a robot in plain Python, which needs no compilation."""
    return example("panda", "interpreted")


def placed(x: float = 0.1) -> Any:
    """Return a quarter turn about z, and a displacement along x."""
    return np.array([[0.0, -1.0, 0.0, x], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


# contacts


def test_a_surface_holds_all_of_the_velocity_and_a_point_what_is_linear() -> None:
    np.testing.assert_array_equal(fw.BilateralContact(HAND).matrix, np.eye(6))
    np.testing.assert_array_equal(fw.BilateralContact(HAND, "point").matrix, np.eye(6)[:3])
    assert [fw.BilateralContact(HAND).size, fw.BilateralContact(HAND, "point").size] == [6, 3]


@pytest.mark.parametrize("size", range(1, 13))
def test_rows_are_taken_in_place_of_a_kinds(size: int) -> None:
    K = np.random.default_rng(size).standard_normal((size, 6))
    c = fw.BilateralContact(HAND, rows=K.tolist())
    assert c.size == size
    np.testing.assert_array_equal(c.matrix, K)


def test_a_contact_does_not_change_with_the_arrays_it_is_made_of() -> None:
    K, T = np.eye(6), placed()
    c = fw.BilateralContact(HAND, rows=K, placement=T)
    before = c.key
    K[:], T[:] = 7.0, 7.0
    assert c.key == before
    np.testing.assert_array_equal(c.matrix, np.eye(6))
    with pytest.raises(ValueError, match="read-only"):
        c.matrix[0, 0] = 2.0


def test_rows_are_of_the_frames_own_axes_and_origin(plain: fw.Robot) -> None:
    q = state(plain, 0).q
    J = plain.frame_jacobian(HAND, "local")(q)
    np.testing.assert_allclose(plain.contact_jacobian(fw.BilateralContact(HAND))(q), J, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(plain.contact_jacobian(fw.BilateralContact(HAND, "point"))(q), J[:3], rtol=0.0, atol=1e-14)
    K = np.arange(12.0).reshape(2, 6)
    np.testing.assert_allclose(plain.contact_jacobian(fw.BilateralContact(HAND, rows=K))(q), K @ J, rtol=0.0, atol=1e-12)


def test_rows_of_a_placed_contact_are_of_its_axes_and_origin(plain: fw.Robot) -> None:
    """Check v_c = R^T (v + omega x p), omega_c = R^T omega."""
    q, T = state(plain, 1).q, placed(0.3)
    J = plain.frame_jacobian(HAND, "local")(q)
    linear, angular = J[:3] + np.cross(J[3:].T, T[:3, 3]).T, J[3:]
    expected = np.vstack([T[:3, :3].T @ linear, T[:3, :3].T @ angular])
    np.testing.assert_allclose(
        plain.contact_jacobian(fw.BilateralContact(HAND, placement=T))(q), expected, rtol=0.0, atol=1e-14
    )


def test_constraint_rows_are_in_the_order_of_the_contacts(plain: fw.Robot) -> None:
    q = state(plain, 2).q
    both = plain.contact_jacobian(PAIR)(q)
    np.testing.assert_array_equal(both[:6], plain.contact_jacobian(PAIR[0])(q))
    np.testing.assert_array_equal(both[6:], plain.contact_jacobian(PAIR[1])(q))
    D, swapped = plain.delassus(PAIR, "ltl")(q), plain.delassus(PAIR[::-1], "ltl")(q)
    np.testing.assert_allclose(D[6:, :6], swapped[:3, 3:], rtol=0.0, atol=1e-12 * np.abs(D).max())


# refusals


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: fw.BilateralContact(HAND, "line"), r"kind must be one of point, weld; got 'line'"),
        (lambda: fw.BilateralContact(HAND, ""), r"kind must be one of point, weld"),
        (lambda: fw.BilateralContact(HAND, rows=np.eye(5)), r"rows .*'panda_hand' .*\(m, 6\).*\(5, 5\)"),
        (lambda: fw.BilateralContact(HAND, rows=np.ones(6)), r"rows .*'panda_hand' .*\(m, 6\).*\(6,\)"),
        (lambda: fw.BilateralContact(HAND, rows=np.ones((2, 3, 6))), r"rows .*\(m, 6\).*\(2, 3, 6\)"),
        (lambda: fw.BilateralContact(HAND, rows=np.ones((0, 6))), r"rows .*m at least 1; got \(0, 6\)"),
        (lambda: fw.BilateralContact(HAND, rows=[]), r"rows .*\(m, 6\)"),
        (lambda: fw.BilateralContact(HAND, rows=np.full((1, 6), np.nan)), r"rows .*'panda_hand' .*finite"),
        (lambda: fw.BilateralContact(HAND, rows=np.diag([1.0, np.inf, 1.0, 1.0, 1.0, 1.0])), r"rows .*finite"),
        (lambda: fw.BilateralContact(HAND, placement=np.eye(3)), r"placement .*'panda_hand' .*\(4, 4\).*\(3, 3\)"),
        (lambda: fw.BilateralContact(HAND, placement=[0.1, 0.2, 0.3]), r"placement .*\(4, 4\).*; got \[0\.1"),
        (lambda: fw.BilateralContact(HAND, placement=placed(np.nan)), r"placement .*finite"),
        (lambda: fw.BilateralContact(HAND, placement=placed(np.inf)), r"placement .*finite"),
        (lambda: fw.BilateralContact(HAND, placement=2.0 * np.eye(4)), r"placement .*'panda_hand' .*a rotation"),
        (lambda: fw.BilateralContact(HAND, placement=np.diag([1.0, 1.0, -1.0, 1.0])), r"placement .*a rotation"),
        (lambda: fw.BilateralContact(HAND, placement=placed().T), r"placement .*0, 0, 0, 1 as its last row"),
        (lambda: fw.BilateralContact(HAND, placement=np.diag([1.0, 1.0, 1.0, 2.0])), r"placement .*0, 0, 0, 1 as its last row"),
    ],
)
def test_what_is_no_contact_is_refused_in_words(made: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        made()


@pytest.mark.parametrize("function", ["delassus", "contact_jacobian"])
def test_unknown_frames_are_named_with_those_there_are(panda: fw.Robot, function: str) -> None:
    with pytest.raises(ValueError, match=r"panda has no frame 'paw'; it has panda_link0, .*panda_hand"):
        getattr(panda, function)([fw.BilateralContact(HAND), fw.BilateralContact("paw")])


@pytest.mark.parametrize("function", ["delassus", "contact_jacobian"])
@pytest.mark.parametrize("none", [[], (), iter(())])
def test_no_contacts_are_refused(panda: fw.Robot, function: str, none: Any) -> None:
    with pytest.raises(ValueError, match=f"{function} needs at least one contact; got none"):
        getattr(panda, function)(none)


@pytest.mark.parametrize("function", ["delassus", "contact_jacobian"])
@pytest.mark.parametrize(
    ("given", "shown"), [([HAND], f"'{HAND}'"), (HAND, f"'{HAND}'"), ([PAIR[0], None], "None"), ([PAIR], r"\(Bila")]
)
def test_what_is_not_a_contact_is_refused(panda: fw.Robot, function: str, given: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=rf"{function} takes featherweight\.BilateralContact.*; got {shown}"):
        getattr(panda, function)(given)


@pytest.mark.parametrize("algorithm", ["", "pv_osim", "AUTO", "crba-ltdl"])
def test_unknown_algorithms_are_named_with_those_there_are(panda: fw.Robot, algorithm: str) -> None:
    known = ", ".join(DELASSUS)
    with pytest.raises(ValueError, match=f"algorithm must be auto or one of {known}; got '{algorithm}'"):
        panda.delassus(PAIR, algorithm)


def test_unknown_algorithms_of_a_call_are_refused(plain: fw.Robot) -> None:
    q = plain.neutral()
    with pytest.raises(ValueError, match=r"delassus: algorithm must be one of pv-osimr, .*ltl; got 'aba'"):
        plain.delassus(PAIR)(q, algorithm="aba")
    with pytest.raises(ValueError, match=r"delassus: algorithm must be one of kjr; got 'ltl'"):
        plain.delassus(PAIR, "kjr")(q, algorithm="ltl")


def test_wrong_states_are_refused_by_name(panda: fw.Robot) -> None:
    with pytest.raises(ValueError, match=r"delassus: q must have shape \(\.\.\., 9\); got \(8,\)"):
        panda.delassus(PAIR)(np.zeros(8))
    with pytest.raises(ValueError, match=r"jacobian: q must have shape \(\.\.\., 9\); got \(8,\)"):
        panda.contact_jacobian(PAIR)(np.zeros(8))


# functions of contacts


@pytest.mark.parametrize("algorithm", ["auto", *DELASSUS])
def test_functions_of_the_same_contacts_are_made_once(panda: fw.Robot, algorithm: str) -> None:
    f = panda.delassus(PAIR, algorithm)
    assert panda.delassus(list(PAIR), algorithm) is f
    assert panda.delassus((c for c in PAIR), algorithm) is f
    again = [fw.BilateralContact(HAND, rows=np.eye(6)), fw.BilateralContact(FINGER, "point", placement=np.eye(4))]
    assert panda.delassus(again, algorithm) is f


def test_functions_of_other_contacts_are_others(panda: fw.Robot) -> None:
    others = [
        PAIR,
        PAIR[::-1],
        (PAIR[0], fw.BilateralContact(FINGER)),
        (PAIR[0], fw.BilateralContact(HAND, "point")),
        (PAIR[0], fw.BilateralContact(FINGER, rows=2.0 * np.eye(6)[:3])),
        (PAIR[0], fw.BilateralContact(FINGER, "point", placement=placed(0.1))),
        (PAIR[0], fw.BilateralContact(FINGER, "point", placement=placed(0.2))),
        PAIR[:1],
    ]
    for algorithm in ("auto", "pv-osimr", "pv-osim"):
        assert len({id(panda.delassus(contacts, algorithm)) for contacts in others}) == len(others)
    assert len({id(panda.contact_jacobian(contacts)) for contacts in others}) == len(others)
    assert len({id(panda.delassus(PAIR, algorithm)) for algorithm in ("auto", *DELASSUS)}) == 1 + len(DELASSUS)


def test_jacobians_of_the_same_contacts_are_made_once(panda: fw.Robot) -> None:
    assert panda.contact_jacobian(PAIR) is panda.contact_jacobian(list(PAIR))
    assert panda.contact_jacobian(PAIR[:1]) is panda.contact_jacobian(PAIR[0])
    assert panda.contact_jacobian(PAIR) is not panda.delassus(PAIR)


def test_a_single_contact_is_a_list_of_one(panda: fw.Robot) -> None:
    for algorithm in ("auto", "kjr"):
        assert panda.delassus(PAIR[0], algorithm) is panda.delassus([PAIR[0]], algorithm)


def test_signatures_tell_the_constraint_rows(panda: fw.Robot) -> None:
    assert panda.delassus(PAIR).signature == "(9)->(9,9)"
    assert panda.delassus(PAIR[1], "ltl").signature == "(9)->(3,3)"
    assert panda.contact_jacobian(PAIR[:1]).signature == "(9)->(6,9)"
    for f in (panda.delassus(PAIR), panda.contact_jacobian(PAIR)):
        assert f.__doc__ and f.operations.flops > 0


def test_algorithms_have_their_names(panda: fw.Robot) -> None:
    for algorithm in DELASSUS:
        f = panda.delassus(PAIR, algorithm)
        assert f.algorithm == algorithm
        assert f.candidates == {}
    auto = panda.delassus(PAIR)
    assert auto.algorithm in DELASSUS
    assert list(auto.candidates) == list(DELASSUS)
    assert auto.operations == auto.candidates[auto.algorithm]
    assert panda.contact_jacobian(PAIR).algorithm == "contact_jacobian"


def test_a_call_may_insist_on_an_algorithm(plain: fw.Robot) -> None:
    q = state(plain, 3).q
    auto = plain.delassus(PAIR)
    for algorithm in DELASSUS:
        np.testing.assert_array_equal(auto(q, algorithm=algorithm), plain.delassus(PAIR, algorithm)(q))
    np.testing.assert_array_equal(auto(q), auto(q, algorithm=auto.algorithm))


def test_choosing_leaves_the_functions_of_one_algorithm_alone(plain: fw.Robot) -> None:
    contacts = [fw.BilateralContact(HAND, "point"), fw.BilateralContact(FINGER)]
    one = plain.delassus(contacts, "pv-osimr")
    auto = plain.delassus(contacts)
    assert one.candidates == {} and auto.candidates
    assert plain.delassus(contacts, "pv-osimr") is one
    assert plain.delassus(contacts, auto.algorithm) is not auto


def test_a_robot_whose_loops_are_kept_takes_the_first() -> None:
    assert example("panda", "rolled").delassus(PAIR).algorithm == next(iter(DELASSUS))


def test_the_same_contact_twice_gives_its_block_four_times(plain: fw.Robot) -> None:
    q = state(plain, 4).q
    D = plain.delassus(PAIR[0], "ltl")(q)
    for algorithm in DELASSUS:
        twice = plain.delassus([PAIR[0], PAIR[0]], algorithm)(q)
        np.testing.assert_allclose(twice, np.tile(D, (2, 2)), rtol=0.0, atol=1e-11 * np.abs(D).max())


def test_results_are_taken_by_out(panda: fw.Robot) -> None:
    f, q = panda.delassus(PAIR), random_states(panda, 3).q
    out = np.full((3, 9, 9), np.nan)
    assert f(q, out=out) is out
    np.testing.assert_array_equal(out, f(q))


# pickles


def test_robots_pickle_with_functions_of_contacts_made(panda: fw.Robot) -> None:
    q = state(panda, 5).q
    expected, J = panda.delassus(PAIR)(q), panda.contact_jacobian(PAIR)(q)
    again = pickle.loads(pickle.dumps(panda))
    np.testing.assert_array_equal(again.delassus(PAIR)(q), expected)
    np.testing.assert_array_equal(again.contact_jacobian(PAIR)(q), J)


def test_functions_of_contacts_pickle_with_their_candidates(panda: fw.Robot) -> None:
    q = state(panda, 6).q
    auto, one = panda.delassus(PAIR), panda.delassus(PAIR, "efpa")
    expected = auto(q)
    again, same = pickle.loads(pickle.dumps((auto, one)))
    np.testing.assert_array_equal(again(q), expected)
    assert again.algorithm == auto.algorithm
    assert again.candidates == auto.candidates
    assert [same.algorithm, same.candidates] == ["efpa", {}]
    np.testing.assert_array_equal(same(q), auto(q, algorithm="efpa"))


def test_contacts_pickle(panda: fw.Robot) -> None:
    c = fw.BilateralContact(FINGER, "point", placement=placed(0.2))
    again = pickle.loads(pickle.dumps(c))
    assert again.key == c.key
    assert panda.contact_jacobian(again) is panda.contact_jacobian(c)
