"""Tests of paths over time: closed forms, limits, and velocities and accelerations as derivatives of the path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import paths, se3
from featherweight.array_types import Array


@pytest.fixture(scope="module")
def arm() -> fw.Robot:
    return fw.build(fw.generators.chain(3), execution="interpreted")


@pytest.fixture(scope="module")
def flyer() -> fw.Robot:
    """Return a robot with a floating body, a ball joint and a hinge."""
    inertia = fw.Inertia(1.0, (0.0, 0.0, 0.1), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    joints = [fw.Joint("ball", fw.JointType.SPHERICAL, "base", "ball"), fw.Joint("hinge", fw.JointType.REVOLUTE, "ball", "tip")]
    bodies = [fw.Body(name, inertia) for name in ("base", "ball", "tip")]
    return fw.build(fw.describe(bodies, joints), base="floating", execution="interpreted")


def assert_derivatives(robot: fw.Robot, path: paths.JointPath, t: Array, h: float = 1e-4) -> None:
    """Compare derivatives with central differences, whose error is of second order in h."""
    _, v, a = path(t)
    before, after = path(t - h), path(t + h)
    scale = max(1.0, np.abs(a).max())
    np.testing.assert_allclose(robot.difference(before.q, after.q) / (2.0 * h), v, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose((after.v - before.v) / (2.0 * h), a, rtol=0, atol=1e-5 * scale)


def test_a_quintic_between_two_points_is_the_minimum_jerk_path(arm: fw.Robot) -> None:
    """Check x(10 s³ - 15 s⁴ + 6 s⁵), with s the fraction of the time (Flash and Hogan 1985)."""
    q, t = np.array([[0.0, 1.0, -2.0], [1.0, 0.5, 2.0]]), np.linspace(1.0, 3.0, 41)
    path = paths.quintic(arm, q, [1.0, 3.0])
    s, d = ((t - 1.0) / 2.0)[:, None], q[1] - q[0]
    np.testing.assert_allclose(path(t).q, q[0] + d * (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5), rtol=0, atol=1e-13)
    np.testing.assert_allclose(path(t).v, d * (30.0 * s**2 - 60.0 * s**3 + 30.0 * s**4) / 2.0, rtol=0, atol=1e-13)
    np.testing.assert_allclose(path(t).a, d * (60.0 * s - 180.0 * s**2 + 120.0 * s**3) / 4.0, rtol=0, atol=1e-13)
    assert path.duration == 2.0
    many = path(np.linspace(1.0, 3.0, 2001))
    assert np.abs(many.v).max() == pytest.approx(15.0 / 8.0 * 4.0 / 2.0, rel=1e-6)
    assert np.abs(many.a).max() == pytest.approx(10.0 / np.sqrt(3.0) * 4.0 / 4.0, rel=1e-6)


def test_a_quintic_reproduces_a_polynomial_of_degree_five(arm: fw.Robot) -> None:
    """Check that the path through points of a polynomial, with its velocities and accelerations, equals the polynomial on
    all segments.
    """
    p = [np.polynomial.Polynomial(c) for c in np.random.default_rng(0).uniform(-1.0, 1.0, (3, 6))]

    def values(t: Any, order: int) -> Array:
        return np.stack([(x.deriv(order) if order else x)(np.asarray(t)) for x in p], axis=-1)

    knots, t = np.array([0.0, 0.3, 0.5, 1.2]), np.linspace(0.0, 1.2, 50)
    path = paths.quintic(arm, values(knots, 0), knots, values(knots, 1), values(knots, 2))
    for order, x in enumerate(path(t)):
        np.testing.assert_allclose(x, values(t, order), rtol=0, atol=1e-10)


def test_a_quintic_of_floating_and_ball_joints_has_the_velocities_and_accelerations_asked_for(flyer: fw.Robot) -> None:
    rng, knots = np.random.default_rng(1), np.array([0.0, 0.7, 1.5, 2.0])
    q = flyer.random_configuration(rng=rng, size=4)
    v, a = rng.standard_normal((2, 4, flyer.nv))
    path = paths.quintic(flyer, q, knots, v, a)
    for end in (knots, knots - 1e-12):
        found = path(end[1:])
        np.testing.assert_allclose(flyer.difference(q[1:], found.q), np.zeros((3, flyer.nv)), rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.v, v[1:], rtol=0, atol=1e-8)
        np.testing.assert_allclose(found.a, a[1:], rtol=0, atol=1e-7)
    assert_derivatives(flyer, path, np.array([0.1, 0.5, 0.9, 1.3, 1.6, 1.9]))
    resting = paths.quintic(flyer, q, knots)
    assert_derivatives(flyer, resting, np.array([0.1, 0.5, 0.9, 1.3]))
    np.testing.assert_allclose(resting(knots).v, 0.0, atol=1e-10)


def test_a_trapezoid_has_the_times_of_its_closed_form(arm: fw.Robot) -> None:
    """Check the duration: d/v + v/a for a distance d if the velocity reaches its limit, else 2 √(d/a)."""
    long, short = np.array([2.0, -1.0, 0.5]), np.array([0.1, 0.2, -0.1])
    q = np.cumsum([np.zeros(3), long, short], axis=0)
    path = paths.trapezoidal(arm, q, acceleration_limit=4.0, velocity_limit=[1.0, 1.0, 0.1])
    lengths = 5.0 + 0.1, 1.0 + 0.05  # joint 2 limits both velocities; joints 0 and 1 limit the accelerations
    assert path.duration == pytest.approx(sum(lengths))
    found = path(np.linspace(0.0, path.duration, 5001))
    np.testing.assert_allclose(path([0.0, lengths[0], path.duration]).q, q, atol=1e-12)
    assert (np.abs(found.v) <= np.array([1.0, 1.0, 0.1]) + 1e-12).all() and (np.abs(found.a) <= 4.0 + 1e-12).all()
    assert np.abs(found.v[:, 2]).max() == pytest.approx(0.1) and np.abs(found.a).max() == pytest.approx(4.0)
    assert_derivatives(arm, path, np.array([0.05, 1.0, lengths[0] - 0.05]))
    along = found.q[found.q[:, 0] < 1.99] / long  # synchronized joints: all have covered the same fraction of their distance
    np.testing.assert_allclose(along, along[:, :1] * np.ones(3), atol=1e-12)
    triangle = paths.trapezoidal(arm, q[:2], acceleration_limit=[2.0, 9.0, 9.0], velocity_limit=np.inf)
    assert triangle.duration == pytest.approx(2.0)


def test_a_trapezoid_of_a_floating_base_keeps_the_limits_of_its_velocities(flyer: fw.Robot) -> None:
    q = flyer.random_configuration(rng=2, size=3)
    path = paths.trapezoidal(flyer, q, acceleration_limit=3.0, velocity_limit=np.linspace(0.5, 2.0, flyer.nv))
    found = path(np.linspace(0.0, path.duration, 2001))
    assert (np.abs(found.v) <= np.linspace(0.5, 2.0, flyer.nv) + 1e-9).all() and (np.abs(found.a) <= 3.0 + 1e-9).all()
    assert_derivatives(flyer, path, np.linspace(0.0101, path.duration, 11)[:-1])


def test_points_that_do_not_differ_take_no_time_and_paths_rest_outside(arm: fw.Robot) -> None:
    q = np.array([[0.0, 0.0, 0.0]] * 2 + [[1.0, 0.0, 0.0]] * 2)
    path = paths.trapezoidal(arm, q, 1.0, 10.0)
    assert path.duration == pytest.approx(2.0)
    outside = path([-1.0, 5.0])
    np.testing.assert_array_equal(outside.q, q[[0, -1]])
    assert not outside.v.any() and not outside.a.any()
    assert path(0.5).q.shape == (3,) and path(np.zeros((4, 5))).v.shape == (4, 5, 3)


def test_lines_are_straight_and_turn_about_one_axis() -> None:
    rng = np.random.default_rng(3)
    T = se3.homogeneous(se3.exp3(rng.uniform(-1.0, 1.0, (3, 3))), rng.uniform(-1.0, 1.0, (3, 3)))
    limits: dict[str, Any] = {"velocity_limit": (0.4, 1.0), "acceleration_limit": (1.0, 2.0)}
    for path in (paths.line(T, **limits), paths.line(T, [0.0, 1.0, 2.5])):
        ends = [*path.times[np.searchsorted(path.bases, [0, 1])].tolist(), path.end]
        np.testing.assert_allclose(path(ends).T, T, atol=1e-9)
        t = np.linspace(path.times[0], path.end, 1001)[1:-1]
        p, d = path(t).T[:, :3, 3], np.diff(T[:, :3, 3], axis=0)[path.bases[np.searchsorted(path.times, t, side="right") - 1]]
        off = np.cross(p - T[(t >= ends[1]).astype(int), :3, 3], d)
        np.testing.assert_allclose(off, 0.0, atol=1e-12)
        k = 300  # the first segment equals the interpolation of rotations
        part = np.linalg.norm(p[k] - T[0, :3, 3]) / np.linalg.norm(d[k])
        turned = T[0, :3, :3] @ se3.exp3(part * se3.log3(T[0, :3, :3].T @ T[1, :3, :3]))
        np.testing.assert_allclose(path(t[k]).T[:3, :3], turned, atol=1e-10)
        h = 1e-5
        _, v, a = path(t[k])
        before, after = path(t[k] - h), path(t[k] + h)
        turn = se3.log3(after.T[:3, :3] @ before.T[:3, :3].T)
        np.testing.assert_allclose(np.append(after.T[:3, 3] - before.T[:3, 3], turn) / (2.0 * h), v, atol=1e-8)
        np.testing.assert_allclose((after.v - before.v) / (2.0 * h), a, atol=1e-6)
    fastest = paths.line(T, **limits)
    found = fastest(np.linspace(0.0, fastest.end, 4001))
    sizes = [np.linalg.norm(x.reshape(-1, 2, 3), axis=-1).max(axis=0) for x in (found.v, found.a)]
    assert (sizes[0] <= [0.4 + 1e-9, 1.0 + 1e-9]).all() and (sizes[1] <= [1.0 + 1e-9, 2.0 + 1e-9]).all()
    assert max(sizes[0] / [0.4, 1.0]) > 0.999 or max(sizes[1] / [1.0, 2.0]) > 0.999


def test_robots_with_couplings_follow_paths() -> None:
    robot = fw.build(fw.robots.four_bar())
    q = np.stack([robot.close(np.array([x, 0.3, 0.3])) for x in (0.2, 0.5)])  # type: ignore[attr-defined]
    path = paths.quintic(robot, q, [0.0, 1.0])
    np.testing.assert_allclose(path(1.0).q, q[1], atol=1e-9)
    assert np.abs(robot.residual(path(np.linspace(0.0, 1.0, 9)).q)).max() < 1e-9  # type: ignore[attr-defined]


def test_a_path_is_a_trajectory(arm: fw.Robot) -> None:
    path = paths.quintic(arm, [[0.0] * 3, [1.0] * 3], [0.0, 1.0])
    motion = path.trajectory(0.3)
    np.testing.assert_allclose(motion.times, [0.0, 0.3, 0.6, 0.9, 1.0])
    np.testing.assert_array_equal(motion.q, path(motion.times).q)
    assert motion.system is arm and len(path.trajectory(0.25)) == 5


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda arm: paths.quintic(arm, [[0.0] * 3], [0.0]), "q must be two configurations at least"),
        (lambda arm: paths.quintic(arm, [[0.0] * 3] * 2, [0.0, 0.0]), "times must increase"),
        (lambda arm: paths.quintic(arm, [[0.0] * 3] * 2, [0.0, 1.0], velocities=[0.0]), r"velocities must .* \(2, 3\)"),
        (lambda arm: paths.quintic(arm, [[0.0, np.nan, 0.0]] * 2, [0.0, 1.0]), "q must be finite"),
        (lambda arm: paths.trapezoidal(arm, [[0.0] * 3, [1.0] * 3], 0.0), "limits must be positive"),
        (lambda arm: paths.trapezoidal(arm, [[0.0] * 3, [1.0] * 3], [1.0, 2.0]), "a number or 3 of them"),
        (lambda arm: paths.trapezoidal(arm, [[0.0] * 3, [1.0] * 3], np.inf, 1.0), "give acceleration_limit"),
        (lambda arm: paths.line(np.eye(4)), r"T must be finite numbers of shape \(n, 4, 4\)"),
        (lambda arm: paths.line([np.eye(4)]), r"T must have shape \(n, 4, 4\), with two placements at least"),
        (lambda arm: paths.line([np.eye(4), np.full((4, 4), np.nan)]), "line: T must be finite numbers"),
        (lambda arm: paths.line([2.0 * np.eye(4), np.eye(4)]), r"line: T\[0\] must have 0, 0, 0, 1 as its last row"),
        (lambda arm: paths.line([np.diag([1.0, 1.0, -1.0, 1.0])] * 2), r"line: T\[0\] is not a rotation"),
        (lambda arm: paths.line([np.eye(4), se3.homogeneous(np.eye(3), [1.0, 0.0, 0.0])]), "give acceleration_limit"),
    ],
)
def test_what_makes_no_path_is_refused_by_name(make: Any, said: str, arm: fw.Robot) -> None:
    with pytest.raises(ValueError, match=said):
        make(arm)
