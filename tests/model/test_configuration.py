"""Tests of configurations against Pinocchio, and of their algebra."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from children import holds_in_a_child
from featherweight.model.configuration import (
    AT_ONCE,
    Coordinates,
    Joints,
    UnseededConfigurations,
    difference,
    integrate,
    neutral,
    random_configuration,
)
from featherweight.model.types import JointType

# Both sides are correct to a few units in the last place of numbers of size 1 to 10.
TOLERANCE = 1e-12
# Pinocchio's logarithms of rigid motions divide by 1 - cos θ and lose digits of the translation for small θ; at the random
# angles here, they are accurate to ten digits. A test below checks that ours keep all digits, by inverting motions to rounding.
LOGARITHM = 1e-10

JOINTS = {
    JointType.FLOATING: pin.JointModelFreeFlyer,
    JointType.SPHERICAL: pin.JointModelSpherical,
    JointType.PLANAR: pin.JointModelPlanar,
    JointType.REVOLUTE: pin.JointModelRX,
    JointType.CONTINUOUS: pin.JointModelRY,
    JointType.PRISMATIC: pin.JointModelPX,
}
ONE_OF_EACH = tuple(JOINTS)
MIXED = tuple(JointType(kind) for kind in ("revolute", "spherical", "prismatic", "floating", "spherical", "continuous"))
TURN = {JointType.SPHERICAL: slice(0, 3), JointType.PLANAR: slice(2, 3), JointType.FLOATING: slice(3, 6)}
SPEEDS = [0.0, 1e-160, 1e-9, 1e-7, 1e-5, 1e-3, 0.05, 0.1, 0.14, 0.3, 1.0, 3.0, 10.0]
TYPES, SEEDS = st.lists(st.sampled_from(ONE_OF_EACH), min_size=1, max_size=6), st.integers(0, 2**32)


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def coordinates(*types: JointType) -> list[Coordinates]:
    coords, q, v = [], 0, 0
    for kind in types:
        coords.append(Coordinates(kind, slice(q, q + kind.nq), slice(v, v + kind.nv)))
        q, v = q + kind.nq, v + kind.nv
    return coords


def lengths(coords: list[Coordinates]) -> tuple[int, int]:
    return sum(j.type.nq for j in coords), sum(j.type.nv for j in coords)


def pinocchio_model(*types: JointType) -> pin.Model:
    model = pin.Model()
    for i, kind in enumerate(types):
        model.addJoint(i, JOINTS[kind](), pin.SE3.Identity(), f"joint{i}")
    return model


def turning(kind: JointType, rng: np.random.Generator, angles: np.ndarray) -> np.ndarray:
    """Return random velocities of a joint, with angular parts of the given magnitudes."""
    v = rng.standard_normal((len(angles), kind.nv))
    w = v[:, TURN[kind]]
    w *= angles[:, None] / np.linalg.norm(w, axis=1, keepdims=True)
    return v


def test_neutral_is_zero_and_the_identity_rotation() -> None:
    coords, model = coordinates(*ONE_OF_EACH), pinocchio_model(*ONE_OF_EACH)
    np.testing.assert_array_equal(neutral(coords, model.nq), pin.neutral(model))


def test_no_joints_have_an_empty_configuration() -> None:
    assert neutral([], 0).shape == (0,)
    assert random_configuration([], 0, 0, size=3).shape == (3, 0)
    assert integrate([], np.zeros((3, 0)), np.zeros(0)).shape == (3, 0)
    assert difference([], np.zeros((3, 0)), np.zeros(0)).shape == (3, 0)


# ---- Pinocchio


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("types", [(kind,) for kind in JOINTS if kind is not JointType.PLANAR] + [MIXED], ids=str)
def test_integrate_and_difference_agree_with_pinocchio(types: Sequence[JointType], speed: float) -> None:
    coords, model, rng = coordinates(*types), pinocchio_model(*types), np.random.default_rng(1)
    q = random_configuration(coords, model.nq, rng, size=50)
    v = speed * rng.standard_normal((50, model.nv))
    moved = integrate(coords, q, v)
    expected = [pin.integrate(model, a, b) for a, b in zip(q, v, strict=True)]
    np.testing.assert_allclose(moved, expected, rtol=TOLERANCE, atol=TOLERANCE)
    expected = [pin.difference(model, a, b) for a, b in zip(q, moved, strict=True)]
    tolerance = LOGARITHM if JointType.FLOATING in types else TOLERANCE
    np.testing.assert_allclose(difference(coords, q, moved), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("speed", SPEEDS)
def test_planar_joint_moves_as_pinocchios_free_flyer_in_the_plane(speed: float) -> None:
    # Pinocchio's planar joint loses up to half of the digits at small angles; its free-flyer is better.
    coords, model, rng = coordinates(JointType.PLANAR), pinocchio_model(JointType.FLOATING), np.random.default_rng(3)
    q = random_configuration(coords, 4, rng, size=50)
    v = speed * rng.standard_normal((50, 3))
    moved = integrate(coords, q, v)
    back = difference(coords, q, moved)
    for a, b, got, twist in zip(q, v, moved, back, strict=True):
        expected = pin.integrate(model, in_space(a), np.array([b[0], b[1], 0, 0, 0, b[2]]))
        np.testing.assert_allclose(in_space(got)[:3], expected[:3], atol=TOLERANCE)
        assert abs(in_space(got)[3:] @ expected[3:]) == pytest.approx(1, abs=TOLERANCE)
        shortest = pin.difference(model, in_space(a), in_space(got))
        np.testing.assert_allclose(twist, shortest[[0, 1, 5]], rtol=LOGARITHM, atol=LOGARITHM)


def in_space(q: np.ndarray) -> np.ndarray:
    half = math.atan2(q[3], q[2]) / 2
    return np.array([q[0], q[1], 0, 0, 0, math.sin(half), math.cos(half)])


@pytest.mark.parametrize("speed", [0.3, 1.0, 3.0])
def test_planar_joint_agrees_with_pinocchios_planar_joint(speed: float) -> None:
    coords, model, rng = coordinates(JointType.PLANAR), pinocchio_model(JointType.PLANAR), np.random.default_rng(4)
    q, v = random_configuration(coords, 4, rng, size=50), speed * rng.standard_normal((50, 3))
    moved = integrate(coords, q, v)
    for a, b, got, twist in zip(q, v, moved, difference(coords, q, moved), strict=True):
        np.testing.assert_allclose(got, pin.integrate(model, a, b), atol=LOGARITHM)
        np.testing.assert_allclose(twist, pin.difference(model, a, got), atol=LOGARITHM)


# ---- rotations that are tiny, close to half a turn, or have two quaternions


@pytest.mark.parametrize("angle", [1e-160, 1e-9, 1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.2499, 0.2501, 1.0, 3.0])
@pytest.mark.parametrize("kind", TURN)
def test_motions_of_any_angle_come_back_to_rounding(kind: JointType, angle: float) -> None:
    coords, q = coordinates(kind), neutral(coordinates(kind), kind.nq)
    v = turning(kind, np.random.default_rng(5), np.full(50, angle))
    back = difference(coords, q, integrate(coords, q, v))
    np.testing.assert_allclose(back, v, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(back[:, TURN[kind]], v[:, TURN[kind]], rtol=1e-14, atol=1e-15 * angle)


@pytest.mark.parametrize("kind", TURN)
def test_angles_near_half_a_turn_take_the_short_way(kind: JointType) -> None:
    coords, rng = coordinates(kind), np.random.default_rng(6)
    angles = math.pi + np.array([-1e-3, -1e-6, -1e-9, -1e-12, 1e-12, 1e-9, 1e-6, 1e-3])
    v = turning(kind, rng, angles)
    q0 = random_configuration(coords, kind.nq, rng, size=len(angles))
    back = difference(coords, q0, integrate(coords, q0, v))[:, TURN[kind]]
    short = np.array([math.remainder(angle, 2 * math.pi) for angle in angles])
    np.testing.assert_allclose(np.linalg.norm(back, axis=1), np.abs(short), atol=TOLERANCE)
    np.testing.assert_allclose(back, (short / angles)[:, None] * v[:, TURN[kind]], atol=TOLERANCE)


def test_the_sign_of_a_quaternion_does_not_matter_to_the_difference() -> None:
    coords, rng = coordinates(JointType.SPHERICAL), np.random.default_rng(7)
    q0, q1 = random_configuration(coords, 4, rng, size=(2, 50))
    v = difference(coords, q0, q1)
    for a, b in ((-q0, q1), (q0, -q1), (-q0, -q1)):
        np.testing.assert_allclose(difference(coords, a, b), v, atol=TOLERANCE)
    assert np.all(np.linalg.norm(v, axis=1) <= math.pi * (1 + 1e-15))


def test_rotations_come_back_normalised_and_need_not_be() -> None:
    coords, rng = coordinates(*ONE_OF_EACH), np.random.default_rng(8)
    nq, nv = lengths(coords)
    q, v = random_configuration(coords, nq, rng), rng.standard_normal(nv)
    scaled = q.copy()
    rotations = (slice(3, 7), slice(7, 11), slice(13, 15))
    for rows in rotations:
        scaled[rows] *= 1.01
    moved = integrate(coords, scaled, v)
    np.testing.assert_allclose(moved, integrate(coords, q, v), atol=TOLERANCE)
    assert [np.linalg.norm(moved[rows]) for rows in rotations] == pytest.approx([1, 1, 1], abs=1e-15)
    np.testing.assert_allclose(difference(coords, scaled, integrate(coords, scaled, 0.1 * v)), 0.1 * v, atol=TOLERANCE)


# ---- algebra


@settings(max_examples=60, deadline=None)
@given(TYPES, SEEDS, st.floats(-9, 0))
def test_difference_undoes_integrate(types: Sequence[JointType], seed: int, exponent: float) -> None:
    coords, rng = coordinates(*types), np.random.default_rng(seed)
    nq, nv = lengths(coords)
    q, v = random_configuration(coords, nq, rng, size=4), 10**exponent * rng.uniform(-1, 1, (4, nv))
    np.testing.assert_allclose(difference(coords, q, integrate(coords, q, v)), v, atol=TOLERANCE)


@settings(max_examples=60, deadline=None)
@given(TYPES, SEEDS)
def test_integrate_undoes_difference(types: Sequence[JointType], seed: int) -> None:
    coords = coordinates(*types)
    q0, q1 = random_configuration(coords, lengths(coords)[0], seed, size=(2, 4))
    reached = integrate(coords, q0, difference(coords, q0, q1))
    for joint in coords:
        a, b = reached[:, joint.q], q1[:, joint.q]
        if joint.type in (JointType.SPHERICAL, JointType.FLOATING):
            assert np.abs(np.sum(a[:, -4:] * b[:, -4:], axis=1)) == pytest.approx(1, abs=TOLERANCE)
            a, b = a[:, :-4], b[:, :-4]
        np.testing.assert_allclose(a, b, atol=TOLERANCE)


# ---- shapes, dtypes, refusals


def test_leading_axes_broadcast() -> None:
    coords, rng = coordinates(*ONE_OF_EACH), np.random.default_rng(10)
    nq, nv = lengths(coords)
    q, v = random_configuration(coords, nq, rng, size=(5, 1)), rng.standard_normal((3, nv))
    moved = integrate(coords, q, v)
    assert moved.shape == (5, 3, nq)
    np.testing.assert_array_equal(moved[4, 2], integrate(coords, q[4, 0], v[2]))
    back = difference(coords, q, moved)
    assert back.shape == (5, 3, nv)
    np.testing.assert_array_equal(back[4, 2], difference(coords, q[4, 0], moved[4, 2]))
    assert integrate(coords, q[:0], v).shape == (0, 3, nq)


def test_dtype_is_double_unless_both_are_single() -> None:
    coords = coordinates(*ONE_OF_EACH)
    nq, nv = lengths(coords)
    q = neutral(coords, nq)
    double, single, half, integer = np.float64, np.float32, np.float16, np.int64
    for first, second, result in ((single, single, single), (single, double, double), (half, half, double)):
        assert integrate(coords, q.astype(first), np.ones(nv, second)).dtype == result
        assert difference(coords, q.astype(first), q.astype(second)).dtype == result
    assert integrate(coords, q.astype(integer), np.ones(nv, integer)).dtype == double


@pytest.mark.parametrize("kind", JOINTS)
def test_nan_stays_with_its_joint(kind: JointType) -> None:
    coords = coordinates(kind, JointType.REVOLUTE)
    q, v = neutral(coords, kind.nq + 1), np.zeros(kind.nv + 1)
    bad_q = np.where(np.eye(kind.nq, kind.nq + 1), math.nan, q)  # in row i, coordinate i is NaN
    bad_v = np.where(np.eye(kind.nv, kind.nv + 1), math.nan, v)
    for moved in (integrate(coords, q, bad_v), integrate(coords, bad_q, v)):
        assert np.isnan(moved[:, : kind.nq]).any(axis=1).all()
        assert np.isfinite(moved[:, kind.nq]).all()
    for back in (difference(coords, q, bad_q), difference(coords, bad_q, q)):
        assert np.isnan(back[:, : kind.nv]).any(axis=1).all()
        assert np.isfinite(back[:, kind.nv]).all()


def test_wrong_lengths_are_refused_by_name() -> None:
    coords = coordinates(JointType.FLOATING, JointType.REVOLUTE)
    q, v = neutral(coords, 8), np.zeros(7)
    with pytest.raises(ValueError, match=r"^q: expected last axis of length 8, got 7$"):
        integrate(coords, q[:7], v)
    with pytest.raises(ValueError, match=r"^v: expected last axis of length 7, got 8$"):
        integrate(coords, q, q)
    with pytest.raises(ValueError, match=r"^q0: expected an array whose last axis has length 8, got a scalar$"):
        difference(coords, 0.0, q)
    with pytest.raises(ValueError, match=r"^q1: expected last axis of length 8, got 7$"):
        difference(coords, q, v)
    with pytest.raises(ValueError, match=r"do not broadcast: q \(2, 8\) and v \(3, 7\)"):
        integrate(coords, np.tile(q, (2, 1)), np.tile(v, (3, 1)))


# ---- random configurations


def test_random_configurations_come_from_the_seed() -> None:
    coords = coordinates(*ONE_OF_EACH)
    nq, rng = lengths(coords)[0], np.random.default_rng(3)
    np.testing.assert_array_equal(random_configuration(coords, nq, 3), random_configuration(coords, nq, 3))
    np.testing.assert_array_equal(random_configuration(coords, nq, rng), random_configuration(coords, nq, 3))
    assert not np.array_equal(random_configuration(coords, nq, rng), random_configuration(coords, nq, 3))
    for size, shape in ((None, ()), ((), ()), (3, (3,)), ((2, 3), (2, 3))):
        assert random_configuration(coords, nq, size=size).shape == (*shape, nq)


def test_a_seed_stands_for_the_same_numbers_always() -> None:
    """Check that programs with a seed reproduce their results: numbers are drawn by group, and in a group joint by joint."""
    types = (JointType.REVOLUTE, JointType.FLOATING, JointType.PRISMATIC, JointType.PLANAR, JointType.SPHERICAL)
    coords, rng = coordinates(*types), np.random.default_rng(11)
    one_dof, spherical = rng.random(2), rng.standard_normal(4)
    angle, planar = rng.uniform(-math.pi, math.pi), rng.uniform(-1.0, 1.0, 2)
    floating = rng.uniform(-1.0, 1.0, 3), rng.standard_normal(4)
    expected: list[Any] = [
        *(-math.pi + 2.0 * math.pi * one_dof[:1], floating[0], floating[1] / np.linalg.norm(floating[1])),
        *(2.0 * one_dof[1:] - 1.0, planar, [math.cos(angle), math.sin(angle)], spherical / np.linalg.norm(spherical)),
    ]
    np.testing.assert_allclose(
        random_configuration(coords, lengths(coords)[0], 11), np.concatenate(expected), rtol=1e-15, atol=1e-15
    )


def test_random_coordinates_fill_their_limits() -> None:
    revolute, prismatic, inf, pi = JointType.REVOLUTE, JointType.PRISMATIC, math.inf, math.pi
    for kind, limits, (low, high) in (
        (revolute, (-0.5, 2.0), (-0.5, 2.0)),
        (revolute, (0.25, 0.25), (0.25, 0.25)),
        (revolute, (1.0, inf), (1.0, 1.0 + 2 * pi)),
        (prismatic, (-inf, 3.0), (1.0, 3.0)),
        (prismatic, (-inf, inf), (-1.0, 1.0)),
        (JointType.CONTINUOUS, (-inf, inf), (-pi, pi)),
    ):
        q = random_configuration([Coordinates(kind, slice(0, 1), slice(0, 1), *limits)], 1, 0, size=2000)
        assert low <= q.min() <= q.max() <= high
        assert q.max() - q.min() >= 0.98 * (high - low)


def test_random_rotations_are_uniform() -> None:
    # The mean of x xᵀ over the unit sphere in four dimensions is 1/4; 0.01 is over five standard errors.
    q = random_configuration(coordinates(JointType.SPHERICAL), 4, 0, size=20000)
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(q.T @ q / len(q), np.eye(4) / 4, atol=0.01)


def test_random_bases_stay_within_a_metre() -> None:
    q = random_configuration(coordinates(JointType.FLOATING, JointType.PLANAR), 11, 0, size=2000)
    assert 0.99 < np.abs(q[:, [0, 1, 2, 7, 8]]).max() <= 1
    np.testing.assert_allclose(np.linalg.norm(q[:, 9:], axis=1), 1, atol=1e-15)


def test_limits_of_zero_and_minus_zero_are_a_point() -> None:
    coords = [Coordinates(JointType.REVOLUTE, slice(0, 1), slice(0, 1), 0.0, -0.0)]
    np.testing.assert_array_equal(random_configuration(coords, 1, 0, 5), np.zeros((5, 1)))


@pytest.mark.parametrize("size", [np.int64(3), (np.int32(3),), [3], np.array([3])])
def test_sizes_may_be_numbers_of_numpy(size: Any) -> None:
    assert random_configuration(coordinates(JointType.REVOLUTE), 1, 0, size).shape == (3, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_configurations_without_a_seed_differ_also_in_a_forked_process() -> None:
    coords = Joints(coordinates(JointType.FLOATING, JointType.REVOLUTE))
    drawn = UnseededConfigurations(coords, 8)
    first = [drawn.drawn() for _ in range(3 * AT_ONCE)]
    assert len({q.tobytes() for q in first}) == len(first)
    assert all(q.shape == (8,) and np.linalg.norm(q[3:7]) == pytest.approx(1.0) for q in first)
    read, write = os.pipe()
    warnings.simplefilter("ignore")  # of forks while other threads run
    assert holds_in_a_child(lambda: os.write(write, drawn.drawn().tobytes()) == 64)
    assert os.read(read, 64) != drawn.drawn().tobytes()
