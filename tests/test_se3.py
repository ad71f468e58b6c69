"""Tests of rigid motions of arrays, against mpmath with fifty digits, Pinocchio and SciPy."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
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


@pytest.fixture(scope="module")
def T() -> Any:
    """Return the exponentials of V, (n, 4, 4)."""
    return np.array([numbers(exact_exp(v)) for v in V])


def norms(x: Any, axes: int) -> Any:
    return np.linalg.norm(x.reshape(*x.shape[: x.ndim - axes], -1), axis=-1)


def assert_exact(found: Any, expected: Any, axes: int = 1) -> None:
    assert found.shape == expected.shape
    assert (norms(found - expected, axes) <= EXACT * norms(expected, axes)).all()


# the group


def test_exponentials_are_exact(T: Any) -> None:
    assert_exact(se3.exp(V)[:, :3, :3], T[:, :3, :3], 2)
    assert_exact(se3.exp(V)[:, :3, 3], T[:, :3, 3])
    assert_exact(se3.exp3(V[:, 3:]), T[:, :3, :3], 2)
    R, exact = (x[ANGLE < 2.0] for x in (se3.exp3(V[:, 3:]), T[:, :3, :3]))
    assert_exact(R - np.swapaxes(R, 1, 2), exact - np.swapaxes(exact, 1, 2), 2)  # the sine, however small


def test_logarithms_are_exact(T: Any) -> None:
    """Check logarithms, including those with a tiny angular part."""
    found = se3.log(T)
    assert_exact(found[SHORT, 3:], V[SHORT, 3:])
    assert_exact(found[SHORT, :3], V[SHORT, :3])
    np.testing.assert_array_equal(found[:, 3:], se3.log3(T[:, :3, :3]))


def test_half_turns_are_about_one_of_two_opposite_axes(T: Any) -> None:
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


def test_jacobians_are_exact(T: Any) -> None:
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
    with pytest.raises(TypeError, match=rf"^{name}: .+ must hold real numbers"):
        function(np.zeros(core, dtype=complex))
    with pytest.raises(ValueError, match=rf"^{name}: .+ must be an array of real numbers"):
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
    with pytest.raises(ValueError, match=r"compose: batch axes do not broadcast: A \(2, 3, 4, 4\), B \(2, 4, 4\)"):
        se3.compose(M, M[:, 0])
    with pytest.raises(TypeError, match=r"compose\(A, B\) takes A, B; missing: A, B"):
        se3.compose()
    with pytest.raises(ValueError, match=r"interpolate: batch axes do not broadcast"):
        se3.interpolate(M[1], M[1], np.zeros(2))
    with pytest.raises(ValueError, match=r"interpolate: B is not a rotation"):
        se3.interpolate(M[1, 0], np.diag([1.0, 1.0, -1.0, 1.0]), 0.5)


def test_many_motions_are_composed_from_left_to_right() -> None:
    a, b, c, d = se3.exp(np.random.default_rng(5).standard_normal((4, 6)))
    out = np.empty((4, 4))
    for _ in range(3):  # the first call compiles, and later ones are machine code
        np.testing.assert_allclose(se3.compose(a, b, c, d, out=out), a @ b @ c @ d, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(out, a @ b @ c @ d, rtol=0.0, atol=1e-14)
        np.testing.assert_array_equal(se3.compose(A=a, B=b), se3.compose(a, b))
        np.testing.assert_allclose(se3.compose(a), a, rtol=0.0, atol=0.0)
    same = pickle.loads(pickle.dumps(se3.compose))
    np.testing.assert_array_equal(same(a, b, c), se3.compose(a, b, c))


# functions of the engine


@pytest.mark.parametrize("name", UNARY)
def test_results_go_to_the_arrays_of_users(name: str) -> None:
    function, x = getattr(se3, name), batch(UNARY[name])
    for given in (x[0, 0], x[0], x, x[0, 0].astype(np.float32)):
        expected = function(given)
        out = np.full_like(expected, np.nan)
        assert function(given, out=out) is out
        np.testing.assert_allclose(out, expected, rtol=0.0, atol=1e-6 if out.dtype == np.float32 else 2e-15)


def test_derivatives_of_the_group_are_its_jacobians(T: Any) -> None:
    for v, M in zip(V[::7], T[::7], strict=True):
        np.testing.assert_allclose(se3.exp.derivative()(v), se3.Jexp(v), rtol=0.0, atol=2e-15)
        np.testing.assert_allclose(se3.exp3.derivative()(v[3:]), se3.Jexp3(v[3:]), rtol=0.0, atol=2e-15)
        if np.linalg.norm(v[3:]) < 3.1:
            np.testing.assert_allclose(se3.log.derivative()(M), se3.Jlog(M), rtol=0.0, atol=1e-13)
            np.testing.assert_allclose(se3.log3.derivative()(M[:3, :3]), se3.Jlog3(M[:3, :3]), rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(se3.inverse.derivative()(M), -se3.adjoint(M), rtol=0.0, atol=1e-14)
        by_A, by_B = se3.compose.derivative()(M, T[3])
        np.testing.assert_allclose(by_A, se3.adjoint(se3.inverse(T[3])), rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(by_B, np.eye(6), rtol=0.0, atol=1e-14)


TANGENTS: dict[tuple[int, ...], Callable[[Any, Any], Any]] = {  # steps along velocities of arguments
    (6,): lambda x, d: x + d,
    (3,): lambda x, d: x + d,
    (4, 4): lambda x, d: x @ se3.exp(d),
    (3, 3): lambda x, d: x @ se3.exp3(d),
    (4,): lambda x, d: moved(x, d),
    (7,): lambda x, d: np.append(x[:3] + se3.matrix_from_quaternion(x[3:]) @ d[:3], moved(x[3:], d[3:])),
}


def moved(q: Any, w: Any) -> Any:
    """Return a quaternion after a small rotation w in its own axes."""
    return (Rotation.from_quat(q) * Rotation.from_rotvec(w)).as_quat() * np.linalg.norm(q)


def between(x: Any, y: Any, core: tuple[int, ...]) -> Any:
    """Return the velocity from a result to another."""
    if core == (4, 4):
        return se3.log(se3.inverse(x) @ y)
    if core == (3, 3):
        return se3.log3(x.T @ y)
    if core in ((4,), (7,)):
        turn = (Rotation.from_quat(x[-4:]).inv() * Rotation.from_quat(y[-4:])).as_rotvec()
        return turn if core == (4,) else np.append(se3.matrix_from_quaternion(x[3:]).T @ (y - x)[:3], turn)
    return y - x


@pytest.mark.parametrize("name", sorted({*UNARY} - {"Jexp", "Jlog", "Jexp3", "Jlog3", "adjoint", "compose"}))
def test_derivatives_are_those_of_small_steps(name: str) -> None:
    function, core, small = getattr(se3, name), UNARY[name], 1e-5
    x = batch(core)[1, 1]
    y = function(x)
    tangents = {(4, 4): 6, (3, 3): 3, (4,): 3, (7,): 6}.get(core, core[0])
    step = TANGENTS[core]
    results = {"xyzquat_from_homogeneous": (7,), "quaternion_from_matrix": (4,), "quaternion_from_rpy": (4,)}.get(name, y.shape)
    columns = [
        (between(y, function(step(x, small * e)), results) - between(y, function(step(x, -small * e)), results)) / (2 * small)
        for e in np.eye(tangents)
    ]
    np.testing.assert_allclose(function.derivative()(x), np.stack(columns, axis=-1), rtol=0.0, atol=2e-9)


@pytest.mark.parametrize("angle", [0.0, 1e-12, np.pi / 2, np.pi / 2 + 1e-16, 2.0 * np.pi / 3, 3.0])
def test_derivatives_are_finite_where_rotations_are_chosen(angle: float) -> None:
    """Check logarithms at rotations about coordinate axes and diagonals, whose matrices have zeros and equal entries."""
    for axis in (*np.eye(3), *-np.eye(3), np.ones(3) / np.sqrt(3.0)):
        R = se3.exp3(angle * axis)
        for exact in (R, np.round(R) if np.allclose(R, np.round(R), atol=1e-10) else R):
            np.testing.assert_allclose(se3.log3.derivative()(exact), se3.Jlog3(exact), rtol=0.0, atol=1e-13)


def test_functions_have_what_functions_of_robots_have(tmp_path: Any, T: Any) -> None:
    v = V[40]
    assert se3.exp.signature == "(6)->(4,4)" and "exp(v (6)) -> T (4, 4)" in (se3.exp.__doc__ or "")
    same = pickle.loads(pickle.dumps(se3.log))
    np.testing.assert_array_equal(same(T[40]), se3.log(T[40]))
    numbers = iter(fw.evaluate(se3.exp.trace, [v.tolist()]))
    np.testing.assert_allclose([*numbers], se3.exp(v).ravel(), rtol=0.0, atol=1e-15)
    fw.export([se3.log, se3.exp], tmp_path, name="motions", files="source", prefix="se3_")
    assert {"motions.c", "motions.h"} <= {p.name for p in tmp_path.iterdir()}


def test_the_module_is_there_when_it_is_asked_for() -> None:
    assert fw.se3 is se3
    assert all(callable(getattr(se3, name)) for name in se3.__all__)
