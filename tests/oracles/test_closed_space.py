"""Tests of frames, contacts and operational space of mechanisms with loops, against the spanning tree and definitions."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import pytest
import scipy.linalg

import featherweight as fw
from featherweight.robot.constraints.contact import Constraint
from oracles.mechanisms import MECHANISMS
from oracles.robots import watched_frames
from oracles.spanning import maps, mechanism, rate, regular_states, spanning
from oracles.states import Array, assert_close, norms
from oracles.test_operational_space import times

REFERENCES = ("local", "local_world_aligned", "world")
DELASSUS = ("pv-osim", "ltl")

PROJECTED = 1e-10
"""Tolerance for the same sums in another order, times moderate G in regular states; the largest measured error is 1e-13."""

DIFFERENCE = 1e-7
"""Tolerance of differences: five points lose 1e-11 of a function, Newton's method 1e-12 / h = 1e-9, and K_d some more."""

TOLERANCE = 1e-9
"""Tolerance relative to the norm of a result, for inverted constraint matrices."""

names = pytest.mark.parametrize("name", MECHANISMS)


def expanded(name: str) -> Array:
    return np.array([spanning(name).expand(q) for q in regular_states(name).q])


# frames


@names
def test_frames_are_where_the_spanning_tree_has_them(name: str) -> None:
    robot, peer, q, Q = mechanism(name), spanning(name).peer, regular_states(name).q, expanded(name)
    frames = [b.name for b in robot.bodies]
    assert_close(robot.frame_placement(frames)(q), peer.frame_placement(frames, Q), PROJECTED)
    single = watched_frames(robot)[0]
    np.testing.assert_array_equal(robot.frame_placement(single)(q), robot.frame_placement([single])(q)[:, 0])


@pytest.mark.parametrize("reference", REFERENCES)
@names
def test_jacobians_are_those_of_the_tree_times_its_map(name: str, reference: str) -> None:
    robot, peer, (q, v, _), Q = mechanism(name), spanning(name).peer, regular_states(name), expanded(name)
    frames = [b.name for b in robot.bodies]
    J = robot.frame_jacobian(frames, reference)(q)
    assert_close(J, peer.frame_jacobian(frames, reference, Q) @ maps(robot, q)[:, None], PROJECTED)
    velocity = robot.frame_velocity(frames, reference)(q, v)
    assert_close(velocity, np.einsum("kfij,kj->kfi", J, v), PROJECTED)
    assert_close(velocity, peer.frame_velocity(frames, reference, Q, times(maps(robot, q), v)), PROJECTED)


@names
def test_velocities_of_frames_are_the_rates_of_their_placements(name: str) -> None:
    robot, (q, v, _) = mechanism(name), regular_states(name)
    for frame in watched_frames(robot):
        velocity, place = robot.frame_velocity(frame, "local"), robot.frame_placement(frame)
        for k in range(len(q)):
            start = pin.SE3(place(q[k])).inverse()

            def travelled(t: float, k: int = k, start: pin.SE3 = start, place: fw.CompiledFunction = place) -> Array:
                return np.asarray(pin.log6(start * pin.SE3(place(robot.integrate(q[k], t * v[k])))).vector)

            found, expected = velocity(q[k], v[k]), rate(travelled)
            assert np.linalg.norm(found - expected) <= DIFFERENCE * (1.0 + np.linalg.norm(found))


@pytest.mark.parametrize("reference", REFERENCES)
@names
def test_bias_accelerations_of_frames_are_rates_of_their_velocities(name: str, reference: str) -> None:
    """Check J' v, where J changes along the motion and v is constant."""
    robot, (q, v, _) = mechanism(name), regular_states(name)
    frames = watched_frames(robot)
    J, bias = robot.frame_jacobian(frames, reference), robot.frame_bias_acceleration(frames, reference)
    for k in range(len(q)):
        expected = rate(lambda t, k=k: J(robot.integrate(q[k], t * v[k])) @ v[k])
        found = bias(q[k], v[k])
        assert np.linalg.norm(found - expected) <= DIFFERENCE * (1.0 + np.linalg.norm(found))


@functools.cache
def interpreted(name: str) -> fw.Robot:
    return fw.build(MECHANISMS[name](), execution="interpreted")


CHANGING = ("crank_and_rocker", "coupled", "two_loops", "own", "geared")
"""Mechanisms with loops, couplings and user-defined constraints, whose maps from independent velocities change."""


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("name", CHANGING)
def test_rates_of_jacobians_have_those_of_the_maps(name: str, reference: str) -> None:
    robot, x = interpreted(name), regular_states(name)
    q, v, a = (part[0] for part in x)
    frames, other = watched_frames(robot), robot.bodies[0].name
    for more in ({}, {"relative_to": other}):
        J, rates = (f(frames, reference, **more) for f in (robot.frame_jacobian, robot.frame_jacobian_rate))
        found, expected = rates(q, v), rate(lambda t, J=J: J(robot.integrate(q, t * v)))
        assert np.linalg.norm(found - expected) <= DIFFERENCE * (1.0 + np.linalg.norm(found))
        bias = robot.frame_bias_acceleration(frames, reference, **more)(q, v)
        assert np.linalg.norm(found @ v - bias) <= TOLERANCE * (1.0 + np.linalg.norm(bias))
        point = robot.frame_classical_acceleration if reference == "local_world_aligned" else robot.frame_acceleration
        gained = point(frames, reference, **more)(q, v, a) - J(q) @ a
        assert np.linalg.norm(gained - bias) <= TOLERANCE * (1.0 + np.linalg.norm(bias))


@pytest.mark.parametrize("name", CHANGING)
def test_motion_relative_to_another_frame(name: str) -> None:
    """Check that relative placements change by relative velocities, which are those of the Jacobian; the joints of the
    tree likewise.
    """
    robot, (q, v, _) = interpreted(name), (part[0] for part in regular_states(name))
    frame, other = robot.bodies[-1].name, fw.Frame("mark", robot.bodies[0].name, fw.Pose(p=(0.1, 0.2, 0.3)))
    place = robot.frame_placement(frame, relative_to=other)
    start = pin.SE3(place(q)).inverse()
    travelled = rate(lambda t: pin.log6(start * pin.SE3(place(robot.integrate(q, t * v)))).vector)
    velocity = robot.frame_velocity(frame, "local", relative_to=other)(q, v)
    assert np.linalg.norm(velocity - travelled) <= DIFFERENCE * (1.0 + np.linalg.norm(velocity))
    assert_close(robot.frame_jacobian(frame, "local", relative_to=other)(q)[None] @ v, velocity[None], TOLERANCE)
    S = robot.joint_jacobian
    found, expected = robot.joint_jacobian_rate(q, v), rate(lambda t: S(robot.integrate(q, t * v)))
    assert np.linalg.norm(found - expected) <= DIFFERENCE * (1.0 + np.linalg.norm(found))


# contacts and operational space


def constraints(name: str) -> list[Constraint]:
    """Return independent constraints of every kind except custom rows, few enough that the mechanism can move."""
    robot, rng = mechanism(name), np.random.default_rng(5)
    links = [b.name for b in robot.bodies]
    last, middle = links[-1], links[len(links) // 2]
    large = robot.nv >= 12
    tried: list[Constraint] = [
        fw.BilateralContact(middle, **({"kind": "point"} if large else {"rows": rng.standard_normal((1, 6))})),
        fw.Difference(links[0], last, rows=rng.standard_normal((1, 6))),
        fw.CenterOfMass(rng.standard_normal((1, 3))),
        fw.BilateralContact(last, rows=rng.standard_normal((2 if large else 1, 6))),
        fw.BilateralContact(links[0], rows=rng.standard_normal((1, 6))),
    ]
    made: list[Constraint] = []
    for c in tried:
        rows = jacobian_of(name, [*made, c])
        strength = np.linalg.svd(rows, compute_uv=False)[:, -1].min()
        if rows.shape[1] <= max(1, robot.nv - 1) and strength > 1e-3:
            made.append(c)
    assert made
    return made


def jacobian_of(name: str, made: list[Constraint]) -> Array:
    """Return the Jacobian: rows on the spanning tree times its map."""
    on_tree = spanning(name).open.operational_space(made).jacobian(expanded(name))
    return np.asarray(on_tree @ maps(mechanism(name), regular_states(name).q))


def ways(function: fw.CompiledFunction[Any]) -> Iterator[str]:
    yield from function.candidates or (function.algorithm,)


class Reference:
    """Results by the definitions, from the inertia matrix, bias forces and the Jacobian of the spanning tree."""

    def __init__(self, name: str) -> None:
        self.robot, self.states = mechanism(name), regular_states(name)
        q, v, _ = self.states
        made = constraints(name)
        self.space = self.robot.operational_space(made)
        on_tree = spanning(name).open.operational_space(made).jacobian
        self.J = jacobian_of(name, made)
        self.Minv = np.linalg.inv(self.robot.mass_matrix(q))
        self.h = self.robot.bias_force(q, v)
        self.delassus = self.J @ self.Minv @ self.J.swapaxes(1, 2)

        def seen(t: float, k: int) -> Array:
            moved = self.robot.integrate(q[k], t * v[k])
            return np.asarray(on_tree(spanning(name).expand(moved)) @ maps(self.robot, moved) @ v[k])

        self.gained = np.array([rate(lambda t, k=k: seen(t, k)) for k in range(len(q))])


@pytest.fixture(scope="module", params=MECHANISMS)
def reference(request: pytest.FixtureRequest) -> Reference:
    return Reference(request.param)


def test_rows_and_delassus_matrix(reference: Reference) -> None:
    q, space = reference.states.q, reference.space
    assert not space.dependence
    assert_close(space.jacobian(q), reference.J, TOLERANCE)
    assert set(DELASSUS) <= set(space.delassus().candidates)
    for algorithm in space.delassus().candidates:
        assert_close(space.delassus(algorithm)(q), reference.delassus, TOLERANCE)
        np.testing.assert_array_equal(space.delassus()(q, algorithm=algorithm), space.delassus(algorithm)(q))
    x = np.random.default_rng(6).standard_normal((len(q), space.size))
    assert_close(space.apply_delassus(q, x), times(reference.delassus, x), TOLERANCE)


@pytest.mark.parametrize("algorithm", ["pv-osim", "ltl", "efpa", "pv-osimr", "pv-osimr-some"])
@names
def test_delassus_matrix_of_contacts_all_over(name: str, algorithm: str) -> None:
    """Check surfaces, points and rows on links of all branches, two on one link, one on a link that a loop may hold, and
    on the ground.
    """
    robot, q = mechanism(name), regular_states(name).q
    rng = np.random.default_rng(8)
    links = [b.name for b in robot.bodies]
    contacts: list[Constraint] = [
        fw.BilateralContact(links[-1], "point"),
        fw.BilateralContact(links[0], rows=rng.standard_normal((2, 6))),
        fw.BilateralContact(links[len(links) // 2]),
        fw.BilateralContact(
            links[-1], rows=rng.standard_normal((1, 6)), placement=pin.exp6(rng.standard_normal(6)).homogeneous
        ),
    ]
    contacts += [fw.BilateralContact(link, "point") for link in links[2::5]]
    contacts += [fw.BilateralContact(f.name, "point") for f in robot.frames if f.body is None][:1]
    J = jacobian_of(name, contacts)
    space = robot.operational_space(contacts)
    assert_close(space.jacobian(q), J, PROJECTED)
    expected = J @ np.linalg.solve(robot.mass_matrix(q), J.swapaxes(1, 2))
    assert_close(space.delassus(algorithm)(q), expected, TOLERANCE)


@pytest.mark.parametrize("name", ["crank_and_rocker", "coupled", "geared"])
def test_rows_of_one_s_own(name: str) -> None:
    """Check functions of q, which give rows on the independent velocities; J' v is their rate along the motion."""
    robot, (q, v, _) = mechanism(name), regular_states(name)

    def rows(q: Array) -> list[list[object]]:
        return [[np.sin(q[k % robot.nq]) + 0.3 * q[-1] * q[0] + 0.1 * k for k in range(robot.nv)]]

    space = robot.operational_space(fw.JacobianRows(rows))
    J = np.array([rows(x) for x in q], dtype=np.float64)
    assert_close(space.jacobian(q), J, PROJECTED)
    D = J @ np.linalg.solve(robot.mass_matrix(q), J.swapaxes(1, 2))
    for algorithm in ways(space.delassus()):
        assert_close(space.delassus()(q, algorithm=algorithm), D, TOLERANCE)
    lost = times(J, np.linalg.solve(robot.mass_matrix(q), robot.bias_force(q, v)[..., None])[..., 0])
    for k in range(len(q)):
        gained = rate(lambda t, k=k: np.array(rows(robot.integrate(q[k], t * v[k])), dtype=np.float64) @ v[k])
        assert np.linalg.norm(space.bias(q[k], v[k]) - (gained - lost[k])) <= DIFFERENCE * (1.0 + np.linalg.norm(lost[k]))


def test_inertia_and_what_follows_from_it(reference: Reference) -> None:
    q, space = reference.states.q, reference.space
    inertia = np.linalg.inv(reference.delassus)
    inverse = reference.Minv @ reference.J.swapaxes(1, 2) @ inertia
    projector = np.eye(reference.robot.nv) - inverse @ reference.J
    assert_close(space.inertia(q), inertia, TOLERANCE)
    assert_close(space.consistent_inverse(q), inverse, TOLERANCE)
    scale = 1.0 + norms(inverse, len(q)) * norms(reference.J, len(q))  # nothing remains if the rows hold everything
    assert np.all(norms(space.null_space_projector(q) - projector, len(q)) <= TOLERANCE * scale)


def test_bias_of_rows(reference: Reference) -> None:
    """Check J' v - J M^-1 (c + g), with J' v by differences along the motion."""
    q, v, _ = reference.states
    expected = reference.gained - times(reference.J @ reference.Minv, reference.h)
    scale = norms(reference.gained, len(q)) + norms(reference.J, len(q)) * (norms(reference.h, len(q)) + norms(v, len(q)) ** 2)
    for algorithm in ways(reference.space.bias):
        found = reference.space.bias(q, v, algorithm=algorithm)
        assert np.all(norms(found - expected, len(q)) <= DIFFERENCE * scale * norms(reference.Minv, len(q)))


@pytest.mark.parametrize("aimed", [False, True])
def test_constrained_dynamics_satisfies_its_equations(reference: Reference, aimed: bool) -> None:
    """Check M a + c + g = tau + J^T f to rounding, and J a + J' v = target."""
    q, v, tau = reference.states
    target = np.random.default_rng(7).standard_normal((len(q), reference.space.size)) * aimed
    drift = reference.space.bias(q, v) + times(reference.J @ reference.Minv, reference.h)
    for algorithm in ways(reference.space.constrained_dynamics):
        motion = reference.space.forward_dynamics(q, v, tau, target if aimed else None, algorithm=algorithm)
        assert motion.least_squares is False
        inertial = times(reference.robot.mass_matrix(q), motion.acceleration)
        push = times(reference.J.swapaxes(1, 2), motion.force)
        forces = norms(inertial, len(q)) + norms(push, len(q)) + norms(reference.h, len(q))
        assert np.all(norms(inertial + reference.h - tau - push, len(q)) <= TOLERANCE * forces)
        gained = times(reference.J, motion.acceleration) + drift
        size = norms(target, len(q)) + norms(reference.J, len(q)) * (norms(motion.acceleration, len(q)) + norms(v, len(q)) ** 2)
        assert np.all(norms(gained - target, len(q)) <= TOLERANCE * size)


# contacts, by recursions and by factors

OF_CONTACTS = {
    "inertia": {"pv-osim", "pv-osimr", "ltl"},
    "bias": {"aba", "ltl"},
    "apply_delassus": {"aba", "ltl"},
    "consistent_inverse": {"efp", "ltl"},
    "null_space_projector": {"efp", "ltl"},
    "constrained_dynamics": {"pv-osim", "pv-osimr", "ltl"},
}
"""The algorithms of each function for contacts: recursions over clusters, and sparse factors."""


def touching(name: str, count: int) -> list[fw.BilateralContact]:
    """Return contacts of random rows on up to three links, with `count` rows in total."""
    links = [b.name for b in mechanism(name).bodies]
    rng = np.random.default_rng(9)
    on = list(dict.fromkeys([links[len(links) // 2], links[-1], links[len(links) // 3]]))
    shares = [k for k in np.bincount(np.arange(count) % len(on)) if k > 0]
    return [fw.BilateralContact(link, rows=rng.standard_normal((k, 6))) for link, k in zip(on, shares, strict=False)]


def independent(name: str) -> list[fw.BilateralContact]:
    """Return as many independent rows as leave a degree of freedom, at most four."""
    for count in range(max(1, min(4, mechanism(name).nv - 1)), 0, -1):
        contacts = touching(name, count)
        if np.linalg.svd(jacobian_of(name, [*contacts]), compute_uv=False)[:, -1].min() > 1e-2:
            return contacts
    raise AssertionError(f"{name}: no contact is independent")


@names
def test_functions_of_contacts_by_every_algorithm(name: str) -> None:
    robot, (q, v, tau), contacts = mechanism(name), regular_states(name), independent(name)
    space = robot.operational_space(contacts)
    J, Minv = jacobian_of(name, [*contacts]), np.linalg.inv(robot.mass_matrix(q))
    D = J @ Minv @ J.swapaxes(1, 2)
    inverse = Minv @ J.swapaxes(1, 2) @ np.linalg.inv(D)
    gained = robot.frame_bias_acceleration([c.frame for c in contacts], "local")(q, v)
    drift = np.concatenate([times(c.matrix, gained[:, k]) for k, c in enumerate(contacts)], axis=1)
    beta = drift - times(J @ Minv, robot.bias_force(q, v))
    x = np.random.default_rng(6).standard_normal((len(q), space.size))
    f = times(np.linalg.inv(D), x - beta - times(J @ Minv, tau))
    acceleration = times(Minv, tau - robot.bias_force(q, v) + times(J.swapaxes(1, 2), f))
    for algorithm in same_algorithms(space.inertia):
        assert_close(space.inertia(q, algorithm=algorithm), np.linalg.inv(D), TOLERANCE)
    for algorithm in same_algorithms(space.bias):
        assert_close(space.bias(q, v, algorithm=algorithm), beta, TOLERANCE)
    for algorithm in same_algorithms(space.apply_delassus):
        assert_close(space.apply_delassus(q, x, algorithm=algorithm), times(D, x), TOLERANCE)
    for algorithm in same_algorithms(space.consistent_inverse):
        assert_close(space.consistent_inverse(q, algorithm=algorithm), inverse, TOLERANCE)
    for algorithm in same_algorithms(space.null_space_projector):
        found = space.null_space_projector(q, algorithm=algorithm)
        scale = 1.0 + norms(inverse, len(q)) * norms(J, len(q))  # nothing remains if the rows hold everything
        assert np.all(norms(found - (np.eye(robot.nv) - inverse @ J), len(q)) <= TOLERANCE * scale)
    for algorithm in same_algorithms(space.constrained_dynamics):
        motion = space.forward_dynamics(q, v, tau, x, algorithm=algorithm)
        assert_close(motion.acceleration, acceleration, TOLERANCE)
        assert_close(motion.force, f, TOLERANCE)


def same_algorithms(function: fw.CompiledFunction[Any]) -> set[str]:
    """Return the algorithms of a function of contacts, which are those that trees have."""
    assert set(function.candidates) == OF_CONTACTS[function.name]
    return OF_CONTACTS[function.name]


class Cut(NamedTuple):
    """The tree of a mechanism, cut open, in Pinocchio: M a + h = tau + K^T l + J^T f, K a = k, J a = wanted."""

    M: Array
    rest: Array  # tau - h
    K: Array
    k: Array
    J: Array
    wanted: Array

    def accelerations(self) -> Array:
        """Return the accelerations by Gauss's principle; constraints that contradict each other are met by least squares."""
        a = np.linalg.pinv(self.K, rcond=RANK) @ self.k
        for A, b in ((self.K, self.k), (self.J, self.wanted)):
            free = self.free() if A is self.J else np.eye(len(a))
            a = a + free @ (np.linalg.pinv(A @ free, rcond=RANK) @ (b - A @ a))
        free = scipy.linalg.null_space(np.concatenate([self.K, self.J]), rcond=RANK)
        return np.asarray(a + free @ np.linalg.solve(free.T @ self.M @ free, free.T @ (self.rest - self.M @ a)))

    def free(self) -> Array:
        """Return the velocities that the loops allow."""
        return np.asarray(scipy.linalg.null_space(self.K, rcond=RANK))


RANK = 1e-6
"""Relative size of singular values that are errors of the differences in K."""


def cut_open(name: str, contacts: list[fw.BilateralContact], k: int, target: Array) -> Cut:
    robot, tree, (q, v, tau) = mechanism(name), spanning(name), (x[k] for x in regular_states(name))
    Q, V = tree.expand(q), maps(robot, q) @ v
    loops = tree.constraints(Q, V)
    M, h = tree.peer.mass_matrix(Q[None])[0], tree.peer.bias_force(Q[None], V[None])[0]
    frames = [str(c.frame) for c in contacts]
    J = tree.peer.frame_jacobian(frames, "local", Q[None])[0]
    drift = tree.peer.frame_bias_acceleration(frames, "local", Q[None], V[None])[0]
    rows, gained = (np.concatenate([c.matrix @ x[i] for i, c in enumerate(contacts)]) for x in (J, drift))
    return Cut(M, tree.tree_forces(tau) - h, loops.K, loops.k, rows, target - gained)


def doubled(contacts: list[fw.BilateralContact]) -> list[fw.BilateralContact]:
    """Return contacts with further rows on their bodies that depend on theirs."""
    return [*contacts, *(fw.BilateralContact(c.frame, rows=-2.0 * c.matrix[:1]) for c in contacts)]


@names
def test_motion_under_contacts_is_that_of_the_cut_tree(name: str) -> None:
    """Check accelerations and forces with rows that depend on others of their body, and a contact on the ground."""
    robot, (q, v, tau), contacts = mechanism(name), regular_states(name), doubled(independent(name))
    space = robot.operational_space([*contacts, fw.BilateralContact(fw.Frame("floor", None), "point")])
    assert "independent" in space.dependence
    rates = np.random.default_rng(8).standard_normal(robot.nv)
    for k in range(len(q)):
        target = met_by(robot, contacts, q[k], v[k], rates)
        cut = cut_open(name, contacts, k, target)
        expected = cut.accelerations()
        scale = np.linalg.norm(cut.M @ expected) + np.linalg.norm(cut.rest)
        for algorithm in same_algorithms(space.constrained_dynamics):
            motion = space.forward_dynamics(q[k], v[k], tau[k], np.append(target, np.zeros(3)), algorithm=algorithm)
            difference = motion.acceleration - expected[spanning(name).independent]
            assert np.linalg.norm(difference) <= DIFFERENCE * np.linalg.norm(expected)
            left = cut.free().T @ (cut.M @ expected - cut.rest - cut.J.T @ motion.force[:-3])
            assert np.linalg.norm(left) <= DIFFERENCE * scale


def met_by(robot: fw.ClosedRobot, contacts: list[fw.BilateralContact], q: Array, v: Array, a: Array) -> Array:
    """Return the targets that independent accelerations meet."""
    frames = [str(c.frame) for c in contacts]
    motions = robot.frame_jacobian(frames, "local")(q) @ a + robot.frame_bias_acceleration(frames, "local")(q, v)
    return np.concatenate([c.matrix @ x for c, x in zip(contacts, motions, strict=True)])


OVERCONSTRAINED = ("six_bar", "platform", "geared_chain", "belt_chain", "flying_linkage")
"""Mechanisms with loops and couplings, of which contacts on several clusters can hold more than they can move."""


@pytest.mark.parametrize("name", OVERCONSTRAINED)
def test_motion_under_contacts_that_depend_on_each_other_is_that_of_the_cut_tree(name: str) -> None:
    """Check contacts with more rows than degrees of freedom, which no choice of rows on one body makes independent."""
    robot, (q, v, tau) = mechanism(name), regular_states(name)
    contacts = touching(name, min(robot.nv + 2, 18))
    space = robot.operational_space(contacts)
    assert "together have rank" in space.dependence
    rates = np.random.default_rng(8).standard_normal(robot.nv)
    for k in range(len(q)):
        target = met_by(robot, contacts, q[k], v[k], rates)
        expected = cut_open(name, contacts, k, target).accelerations()[spanning(name).independent]
        for algorithm in same_algorithms(space.constrained_dynamics):
            motion = space.forward_dynamics(q[k], v[k], tau[k], target, algorithm=algorithm)
            assert motion.least_squares is True
            assert np.linalg.norm(motion.acceleration - expected) <= 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize("name", ["geared", "coupled"])
def test_derivatives_of_constrained_motion_by_every_algorithm(name: str) -> None:
    """Check rates along a direction, by differentiation of the algorithm, against differences of the function."""
    robot, (q, v, tau) = mechanism(name), (x[0] for x in regular_states(name))
    space = robot.operational_space(independent(name))
    rng = np.random.default_rng(3)
    by_q, by_v, by_tau = rng.standard_normal((3, robot.nv))
    for algorithm in same_algorithms(space.constrained_dynamics):
        f = space.constrained_dynamics.alternatives[algorithm]

        def moved(t: float, f: fw.CompiledFunction[Any] = f) -> Array:
            a, force, _ = f(robot.integrate(q, t * by_q), v + t * by_v, tau + t * by_tau)
            return np.concatenate([a, force])

        found = f.pushforward(q, v, tau, by_q, by_v, by_tau)
        expected = rate(moved)
        difference = np.concatenate([found[0], found[1]]) - expected
        assert np.linalg.norm(difference) <= DIFFERENCE * np.linalg.norm(expected)


def test_one_state_and_batches_of_contacts_by_every_algorithm() -> None:
    robot, (q, v, tau) = mechanism("geared", "auto"), regular_states("geared")
    space = robot.operational_space(independent("geared"))
    for algorithm in same_algorithms(space.constrained_dynamics):
        motions = space.forward_dynamics(q, v, tau, algorithm=algorithm)
        for k in range(len(q)):
            motion = space.forward_dynamics(q[k], v[k], tau[k], algorithm=algorithm)
            np.testing.assert_allclose(motion.acceleration, motions.acceleration[k], rtol=1e-11)
            np.testing.assert_allclose(motion.force, motions.force[k], rtol=1e-11)


def test_rows_that_depend_on_each_other_through_the_loop_are_known() -> None:
    """Check two rows on a four-bar, which has one degree of freedom: they depend on each other only through the loop."""
    space = mechanism("four_bar").operational_space(
        [fw.BilateralContact("link1", rows=np.eye(6)[1:2]), fw.CenterOfMass([[0, 1, 0]])]
    )
    assert "together have rank 1" in space.dependence
    with pytest.raises(ValueError, match="rows depend on each other"):
        space.inertia  # noqa: B018


def test_rows_on_a_link_that_the_loop_holds_still_are_known() -> None:
    """Check a link without motion, because of a weld to the ground: rows on it are rounding errors, which must not be
    inverted.
    """
    robot, (q, v, tau) = mechanism("chain_weld"), regular_states("chain_weld")
    held = MECHANISMS["chain_weld"]().loops[0].successor
    moving = fw.BilateralContact(robot.bodies[3].name, rows=np.eye(6)[:1])
    space = robot.operational_space([fw.BilateralContact(str(held), rows=np.eye(6)[1:2]), moving])
    assert np.abs(space.jacobian(q)[:, 0]).max() <= 1e-12
    assert space.dependence
    motion = space.forward_dynamics(q, v, tau)
    alone = robot.operational_space(moving).forward_dynamics(q, v, tau)
    assert motion.least_squares is True
    assert_close(motion.acceleration, alone.acceleration, TOLERANCE)


def test_stabilization_holds_contacts_of_a_mechanism() -> None:
    """Check the target -K (gains · (error, velocity)); without error it damps the motion along the rows."""
    robot, (q, v, _) = mechanism("platform"), regular_states("platform")
    space = robot.operational_space(fw.BilateralContact("plate", "point"))
    held = space.placements(q)
    assert_close(space.stabilization(q, v, held, np.array([25.0, 10.0])), -10.0 * times(space.jacobian(q), v), TOLERANCE)
    away = held.copy()
    away[:, 0, :3, 3] += held[:, 0, :3, :3] @ np.array([0.1, -0.2, 0.3])
    found = space.stabilization(q, np.zeros_like(v), away, np.array([25.0, 10.0]))
    np.testing.assert_allclose(found, np.tile([2.5, -5.0, 7.5], (len(q), 1)), atol=1e-9)


def test_algorithms_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"algorithm must be auto or one of .*pv-osim.*; got 'magic'"):
        mechanism("four_bar").delassus(fw.BilateralContact("link1", rows=np.eye(6)[:1]), "magic")
