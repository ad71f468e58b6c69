"""Tests of rigid motions of arrays, against mpmath with fifty digits, Pinocchio and SciPy."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight import se3

EXACT = 1e-14
"""Tolerance relative to a vector's or matrix's norm: rounding of a few dozen operations."""

ANGLES = (0.0, 1e-300, 1e-160, 1e-16, 1e-9, 1e-4, 0.1, 0.5, 1.0, 2.0, 3.0, np.pi - 1e-3, np.pi - 1e-8, np.pi - 1e-15, np.pi)
AXES = ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0), (0.6, -0.8, 0.0), (-0.48, 0.6, 0.64), (1e-9, 1.0, -1e-5))


def _velocities() -> Any:
    rng = np.random.default_rng(0)
    every = []
    for angle, axis in itertools.product(ANGLES, (*AXES, tuple(rng.standard_normal(3)))):
        every.append([*rng.standard_normal(3), *(angle * np.array(axis) / np.linalg.norm(axis))])
    return np.array(every)


V = _velocities()
ANGLE = np.linalg.norm(V[:, 3:], axis=1)
SHORT = ANGLE < 3.1415926  # rotations by less than a half turn, whose logarithm is unique


def exact_exp(v: Any) -> Any:
    """Return the exponential of a velocity's matrix."""
    with mpmath.workdps(50):
        l, (x, y, z) = v[:3], v[3:]
        return mpmath.expm(mpmath.matrix([[0, -z, y, l[0]], [z, 0, -x, l[1]], [-y, x, 0, l[2]], [0, 0, 0, 0]]), method="taylor")


def exact_jacobian(v: Any) -> tuple[Any, Any]:
    """Return the Jacobians of the exponential and the logarithm, by the series of (1 - exp(-ad))/ad."""
    with mpmath.workdps(30):
        (a, b, c), (x, y, z) = v[:3], v[3:]
        ad = mpmath.matrix(
            [
                [0, -z, y, 0, -c, b],
                [z, 0, -x, c, 0, -a],
                [-y, x, 0, -b, a, 0],
                [0, 0, 0, 0, -z, y],
                [0, 0, 0, z, 0, -x],
                [0, 0, 0, -y, x, 0],
            ]
        )
        J, term = mpmath.zeros(6), mpmath.eye(6)
        for n in range(1, 40):
            J += term / mpmath.factorial(n)
            term = -ad * term
        return numbers(J), numbers(J**-1)


def numbers(M: Any) -> Any:
    return np.array(M.tolist(), dtype=float)


T = np.array([numbers(exact_exp(v)) for v in V])


def norms(x: Any, axes: int) -> Any:
    return np.linalg.norm(x.reshape(*x.shape[: x.ndim - axes], -1), axis=-1)


def assert_exact(found: Any, expected: Any, axes: int = 1) -> None:
    assert found.shape == expected.shape
    assert (norms(found - expected, axes) <= EXACT * norms(expected, axes)).all()


# the group


def test_exponentials_are_exact() -> None:
    assert_exact(se3.exp(V)[:, :3, :3], T[:, :3, :3], 2)
    assert_exact(se3.exp(V)[:, :3, 3], T[:, :3, 3])
    assert_exact(se3.exp3(V[:, 3:]), T[:, :3, :3], 2)
    R, exact = (x[ANGLE < 2.0] for x in (se3.exp3(V[:, 3:]), T[:, :3, :3]))
    assert_exact(R - np.swapaxes(R, 1, 2), exact - np.swapaxes(exact, 1, 2), 2)  # the sine, however small


def test_logarithms_are_exact() -> None:
    """Check logarithms, including those with a tiny angular part."""
    found = se3.log(T)
    assert_exact(found[SHORT, 3:], V[SHORT, 3:])
    assert_exact(found[SHORT, :3], V[SHORT, :3])
    np.testing.assert_array_equal(found[:, 3:], se3.log3(T[:, :3, :3]))


def test_half_turns_are_about_one_of_two_opposite_axes() -> None:
    w = se3.log3(T[~SHORT, :3, :3])
    side = np.sign(np.einsum("ij,ij->i", w, V[~SHORT, 3:]))[:, None]
    assert len(w) == 21
    np.testing.assert_allclose(side * w, V[~SHORT, 3:], rtol=0.0, atol=4e-15)
    np.testing.assert_allclose(se3.exp(se3.log(T[~SHORT])), T[~SHORT], rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("axis", AXES[:5])
def test_exact_half_turns(axis: tuple[float, float, float]) -> None:
    """Check symmetric rotation matrices, whose sine does not give the direction."""
    n = np.array(axis)
    R = 2.0 * np.outer(n, n) - np.eye(3)
    np.testing.assert_allclose(np.abs(se3.log3(R)), np.pi * np.abs(n), rtol=0.0, atol=2e-15)
    np.testing.assert_allclose(se3.exp3(se3.log3(R)), R, rtol=0.0, atol=2e-15)


def test_jacobians_are_exact() -> None:
    some = slice(None, None, 4)  # a subset of all angles and axes
    J, inverse = (np.array(x) for x in zip(*map(exact_jacobian, V[some]), strict=True))
    assert_exact(se3.Jexp(V[some]), J, 2)
    assert_exact(se3.Jexp3(V[some, 3:]), J[:, 3:, 3:], 2)
    short = SHORT[some]
    assert_exact(se3.Jlog(T[some][short]), inverse[short], 2)
    assert_exact(se3.Jlog3(T[some][short, :3, :3]), inverse[short, 3:, 3:], 2)


def test_all_are_pinocchios() -> None:
    rng = np.random.default_rng(1)
    v = rng.standard_normal((20, 6))
    motions = [pin.exp6(pin.Motion(x)) for x in v]
    M = np.array([m.homogeneous for m in motions])
    np.testing.assert_allclose(se3.exp(v), M, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(se3.log(M), [pin.log6(m).vector for m in motions], rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(se3.Jexp(v), [pin.Jexp6(pin.Motion(x)) for x in v], rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(se3.Jlog(M), [pin.Jlog6(m) for m in motions], rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(se3.Jexp3(v[:, 3:]), [pin.Jexp3(x[3:]) for x in v], rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(se3.Jlog3(M[:, :3, :3]), [pin.Jlog3(m.rotation) for m in motions], rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(se3.adjoint(M), [m.action for m in motions], rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(se3.inverse(M), [m.inverse().homogeneous for m in motions], rtol=0.0, atol=1e-14)
    pairs = list(itertools.pairwise(motions))
    np.testing.assert_allclose(se3.compose(M[:-1], M[1:]), [(a * b).homogeneous for a, b in pairs], rtol=0.0, atol=1e-14)
    between = [pin.SE3.Interpolate(a, b, 0.3).homogeneous for a, b in pairs]
    np.testing.assert_allclose(se3.interpolate(M[:-1], M[1:], 0.3), between, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(se3.xyzquat_from_homogeneous(M)[:, :3], M[:, :3, 3], rtol=0.0, atol=0.0)
    seven = np.array([pin.SE3ToXYZQUAT(m) for m in motions])
    np.testing.assert_allclose(se3.homogeneous_from_xyzquat(seven), M, rtol=0.0, atol=1e-14)
    rpy = np.array([pin.rpy.matrixToRpy(m.rotation) for m in motions])
    np.testing.assert_allclose(se3.rpy_from_matrix(M[:, :3, :3]), rpy, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(se3.matrix_from_rpy(rpy), M[:, :3, :3], rtol=0.0, atol=1e-14)


def test_interpolation_ends_where_it_should() -> None:
    A, B = se3.exp([0.1, 0.2, 0.3, 1.0, -2.0, 0.5]), se3.exp([-1.0, 0.0, 2.0, 0.4, 0.4, 0.4])
    way = se3.interpolate(A, B, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(way[[0, 2]], [A, B], rtol=0.0, atol=1e-14)
    half = se3.compose(se3.inverse(A), way[1])
    np.testing.assert_allclose(se3.compose(way[1], half), B, rtol=0.0, atol=1e-14)


# representations


def test_quaternions_are_exact() -> None:
    """Check quaternions, some with tiny components."""
    rng = np.random.default_rng(2)
    scales = np.array(list(itertools.product((1.0, 1e-6, 1e-17, 0.0), repeat=4))[:-1])
    q = scales * rng.choice([-1.0, 1.0], scales.shape) * rng.uniform(0.5, 1.0, scales.shape)
    q /= np.linalg.norm(q, axis=1)[:, None]
    R = se3.matrix_from_quaternion(q)
    np.testing.assert_allclose(R, Rotation.from_quat(q).as_matrix(), rtol=0.0, atol=3e-15)
    found = se3.quaternion_from_matrix(R)
    side = np.sign(np.einsum("ij,ij->i", found, q))[:, None]
    np.testing.assert_allclose(side * found, q, rtol=0.0, atol=3e-15)
    assert (found[:, 3] >= 0.0).all()
    np.testing.assert_allclose(se3.matrix_from_quaternion(-3.0 * q), R, rtol=0.0, atol=3e-15)


PITCHES = (0.0, 1e-9, 0.7, np.pi / 2 - 1e-9, np.pi / 2, -np.pi / 2, -1.5)


@pytest.mark.parametrize("pitch", PITCHES)
def test_roll_pitch_yaw(pitch: float) -> None:
    """Check angles; at a pitch of a right angle, roll and yaw are not unique, but the rotation is."""
    rng = np.random.default_rng(3)
    rpy = np.column_stack([rng.uniform(-np.pi, np.pi, 20), np.full(20, pitch), rng.uniform(-np.pi, np.pi, 20)])
    R = se3.matrix_from_rpy(rpy)
    np.testing.assert_allclose(R, Rotation.from_euler("xyz", rpy).as_matrix(), rtol=0.0, atol=3e-15)
    np.testing.assert_allclose(se3.matrix_from_rpy(se3.rpy_from_matrix(R)), R, rtol=0.0, atol=3e-15)
    q = se3.quaternion_from_rpy(rpy)
    np.testing.assert_allclose(se3.matrix_from_quaternion(q), R, rtol=0.0, atol=3e-15)
    assert (q[:, 3] >= 0.0).all()
    np.testing.assert_allclose(se3.matrix_from_rpy(se3.rpy_from_quaternion(q)), R, rtol=0.0, atol=3e-15)
    if abs(pitch) < 1.5:
        np.testing.assert_allclose(se3.rpy_from_matrix(R), rpy, rtol=0.0, atol=1e-14)


def test_seven_numbers() -> None:
    x = np.array([1.0, 2.0, 3.0, 0.5, -0.5, 0.5, 0.5])
    M = se3.homogeneous_from_xyzquat(x)
    np.testing.assert_allclose(se3.xyzquat_from_homogeneous(M), x, rtol=0.0, atol=3e-15)
    np.testing.assert_array_equal(se3.homogeneous(M[:3, :3], M[:3, 3]), M)


# arrays

UNARY = {
    **dict.fromkeys(("exp", "Jexp"), (6,)),
    **dict.fromkeys(("exp3", "Jexp3", "matrix_from_rpy", "quaternion_from_rpy"), (3,)),
    **dict.fromkeys(("log", "Jlog", "adjoint", "inverse", "compose", "xyzquat_from_homogeneous"), (4, 4)),
    **dict.fromkeys(("log3", "Jlog3", "quaternion_from_matrix", "rpy_from_matrix"), (3, 3)),
    **dict.fromkeys(("matrix_from_quaternion", "rpy_from_quaternion"), (4,)),
    "homogeneous_from_xyzquat": (7,),
}
"""All functions of one argument, and its shape."""


def batch(core: tuple[int, ...]) -> Any:
    """Return arguments (2, 3, *core)."""
    x = np.random.default_rng(4).standard_normal((2, 3, 7))
    if len(core) == 1:
        return x[..., : core[0]]
    return se3.exp(x[..., :6])[..., : core[0], : core[1]]


@pytest.mark.parametrize("name", UNARY)
def test_functions_broadcast(name: str) -> None:
    function, x = getattr(se3, name), batch(UNARY[name])
    before = x.copy()
    result = function(x)
    core = result.shape[2:]
    for k in np.ndindex(2, 3):
        one = function(x[k])
        assert one.shape == core
        np.testing.assert_allclose(one, result[k], rtol=0.0, atol=2e-15)
        np.testing.assert_array_equal(one, function(x[k].tolist()))
    assert function(x[:0]).shape == (0, 3, *core)
    assert not np.shares_memory(result, x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", UNARY)
def test_dtypes_and_nan(name: str) -> None:
    function, x = getattr(se3, name), batch(UNARY[name])
    assert (function(x).dtype, function(x.astype(np.float32)).dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(function(x.astype(np.float32)), function(x), rtol=0.0, atol=1e-4)
    x = x.copy()
    x[(0, 1, *(0 for _ in UNARY[name]))] = np.nan
    result = function(x)
    assert np.isnan(result[0, 1]).any()
    assert np.isfinite(result[1]).all() and np.isfinite(result[0, ::2]).all()


@pytest.mark.parametrize("name", UNARY)
def test_wrong_arguments_are_refused_by_name(name: str) -> None:
    function, core = getattr(se3, name), UNARY[name]
    shape = ", ".join(map(str, core))
    for wrong in (np.zeros((5, 2)), 1.0):
        with pytest.raises(ValueError, match=rf"^{name}: .+ must have shape \(\.\.\., {shape}\)"):
            function(wrong)
    with pytest.raises(ValueError, match=rf"^{name}: .+ must hold real numbers"):
        function(np.zeros(core, dtype=complex))
    with pytest.raises(ValueError, match=rf"^{name}: .+ is not an array of numbers"):
        function([[1.0, 2.0], [1.0]])


@pytest.mark.parametrize("name", ["log3", "Jlog3", "quaternion_from_matrix", "rpy_from_matrix", "log", "Jlog"])
def test_matrices_that_are_no_rotations_are_refused(name: str) -> None:
    x = batch(UNARY[name])
    x[1, 2, :3, 0] *= -1.0
    with pytest.raises(ValueError, match=rf"^{name}: [RT]\[1, 2\] is not a rotation"):
        getattr(se3, name)(x)
    with pytest.raises(ValueError, match=rf"^{name}: [RT] is not a rotation"):
        getattr(se3, name)(1.001 * x[0, 0] + 0.0 * np.eye(len(x[0, 0])) if x.shape[-1] == 3 else np.diag([1.0, 1.0, 1.1, 1.0]))


def test_other_refusals() -> None:
    M = batch((4, 4))
    M[0, 2, 3, 0] = 0.5
    with pytest.raises(ValueError, match=r"log: T\[0, 2\] must have 0, 0, 0, 1 as its last row"):
        se3.log(M)
    with pytest.raises(ValueError, match=r"compose: leading axes do not broadcast: \(2, 3\) and \(2,\)"):
        se3.compose(M, M[:, 0])
    with pytest.raises(ValueError, match="compose needs one motion"):
        se3.compose()
    with pytest.raises(ValueError, match=r"interpolate: leading axes do not broadcast"):
        se3.interpolate(M[1], M[1], np.zeros(2))


def test_the_module_is_there_when_it_is_asked_for() -> None:
    assert fw.se3 is se3
    assert all(callable(getattr(se3, name)) for name in se3.__all__)
