"""Tests of mechanisms with loops against their spanning trees, Pinocchio's constrained dynamics, and laws of mechanics."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight import robots
from featherweight.algorithms.mechanisms import multipliers
from featherweight.model.expansion import build_model
from featherweight.model.generators import chain
from featherweight.robot.closing.loops import Loops
from featherweight.robots.linkages import four_bar_configuration, six_bar_configuration
from oracles.mechanisms import MECHANISMS, body, closed
from oracles.robots import DYNAMICS
from oracles.runge_kutta import after_a_step
from oracles.spanning import SpanningTree, amplified, maps, mechanism, rate, regular_configurations, regular_states, spanning
from oracles.states import Array, assert_close, norms
from oracles.trees import TREES

FORWARD = ("aba", "crba-ltdl", "projection")
LOADED = ("aba", "crba-ltdl")  # with external forces
LARGE = {"six_bar", "own", *(f"chain_{kind}" for kind in ("spherical", "planar", "cylindrical", "universal"))}
"""Mechanisms with as many independent velocities as constraint rows, or more."""


ROUNDTRIP = 1e-9
"""Tolerance for regular states: the condition numbers of K_d and M together are at most 1e4; the largest measured error
is 1e-12.
"""

PROJECTED = 1e-10
"""Tolerance for the same sums in another order, times G with entries up to 30; the largest measured error is 1e-13."""

DIFFERENCE = 1e-7
"""Tolerance of differences: five points lose 1e-11 of a function, Newton's method 1e-12 / h = 1e-9, and K_d some more."""

names = pytest.mark.parametrize("name", MECHANISMS)


def each(name: str) -> tuple[fw.ClosedRobot, SpanningTree, Array, Array]:
    """Return a mechanism with its spanning tree, and configurations of both."""
    robot, tree = mechanism(name), spanning(name)
    q = regular_states(name).q
    return robot, tree, q, np.array([tree.expand(x) for x in q])


def times(A: Array, x: Array) -> Array:
    return np.asarray(np.einsum("...ij,...j->...i", A, x))


# dynamics


@names
def test_forward_dynamics_undoes_inverse_dynamics(name: str) -> None:
    robot, (q, v, a) = mechanism(name), regular_states(name)
    tau = robot.inverse_dynamics(q, v, a)
    algorithms = {*FORWARD, "aba-multipliers"} if name in LARGE else set(FORWARD)
    assert set(robot.forward_dynamics.candidates) == algorithms
    for algorithm in algorithms:
        assert_close(robot.forward_dynamics(q, v, tau, algorithm=algorithm), a, ROUNDTRIP)


@names
def test_forward_dynamics_is_that_of_the_cut_tree_under_its_constraints(name: str) -> None:
    """Check Gauss's principle with Pinocchio's M and bias, and constraints by differences; the largest measured error is
    7e-10.
    """
    robot, tree, (q, v, tau) = mechanism(name), spanning(name), regular_states(name)
    expected = np.array([tree.forward_dynamics(*x)[tree.independent] for x in zip(q, v, tau, strict=True)])
    for algorithm in FORWARD:
        assert_close(robot.forward_dynamics(q, v, tau, algorithm=algorithm), expected, 1e-8)


@names
def test_multipliers_serve_every_kind_of_loop_and_coupling(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check them also for loops that are so small that clusters are cheaper; the largest measured difference is 7e-15."""
    monkeypatch.setattr(multipliers, "is_large", lambda cluster: bool(cluster.dependent))
    robot, (q, v, tau) = fw.ClosedRobot(mechanism(name)._loops, "interpreted"), regular_states(name)
    f = np.random.default_rng(2).standard_normal((len(q), len(robot.bodies), 6))
    ways = robot.forward_dynamics.alternatives
    clusters = robot._mechanism.clusters
    assert ("aba-multipliers" in ways) == (any(c.dependent for c in clusters) and not any(c.crossed for c in clusters))
    if "aba-multipliers" in ways:
        expected = ways["aba"](q, v, tau, external_forces=f)
        assert_close(ways["aba-multipliers"](q, v, tau, external_forces=f), expected, 1e-12)


@names
def test_maps_satisfy_constraints_that_are_taken_by_differences(name: str) -> None:
    """Check that K G = 0, that G is the identity for the independent velocities, and that its width is the nullity of K."""
    robot, tree, q, Q = each(name)
    G = maps(robot, q)
    for k in range(len(q)):
        K = tree.constraints(Q[k], np.zeros(tree.open.nv)).K
        assert np.linalg.norm(K @ G[k]) <= 1e-9 * np.linalg.norm(K) * np.linalg.norm(G[k])
        np.testing.assert_array_equal(G[k][tree.independent], np.eye(robot.nv))
        assert robot.nv == tree.open.nv - np.linalg.matrix_rank(K, tol=1e-7 * np.linalg.norm(K, 2))


@pytest.mark.parametrize("name", ["crank_and_rocker", "platform", "two_loops", "chain_weld", "chain_spherical"])
def test_agrees_with_pinocchio_s_constrained_dynamics(name: str) -> None:
    """Check to 1e-7: proximal iterations with mu = 1e-10 are accurate to 1e-9; the rest is for the conditioning of K."""
    robot, tree, q, Q = each(name)
    _, v, tau = regular_states(name)
    model, peer = tree.peer.model, tree.peer
    data, held, held_data = model.createData(), pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in tree.description.loops:
        (i, a), (j, b) = tree.seats(loop)
        kind = pin.ContactType.CONTACT_6D if loop.type == "weld" else pin.ContactType.CONTACT_3D
        held.append(pin.RigidConstraintModel(kind, model, i, a, j, b, pin.ReferenceFrame.LOCAL))
    held_data.extend([c.createData() for c in held])
    pin.initConstraintDynamics(model, data, held, held_data)
    V = robot.spanning_velocity(q, v)
    found = []
    for k in range(len(q)):
        force = peer.v(tree.tree_forces(tau[k]))
        settings = pin.ProximalSettings(1e-14, 1e-10, 50)
        a = pin.constraintDynamics(model, data, peer.q(Q[k]), peer.v(V[k]), force, held, held_data, settings)
        found.append(a[peer.columns][tree.independent])
    for algorithm in FORWARD:
        assert_close(robot.forward_dynamics(q, v, tau, algorithm=algorithm), found, 1e-7)


@names
def test_mass_matrix_and_energies_are_projections_of_the_tree_s(name: str) -> None:
    robot, tree, q, Q = each(name)
    v = regular_states(name).v
    M, G, H = robot.mass_matrix(q), maps(robot, q), tree.peer.mass_matrix(Q)
    assert_close(M, G.swapaxes(1, 2) @ H @ G, PROJECTED)
    np.testing.assert_array_equal(M, M.swapaxes(1, 2))
    size = np.sqrt(np.diagonal(M, axis1=1, axis2=2))
    assert np.all(np.linalg.eigvalsh(M / (size[:, :, None] * size[:, None, :])) > 0.0)
    V = times(G, v)
    np.testing.assert_allclose(robot.kinetic_energy(q, v), tree.peer.kinetic_energy(Q, V), rtol=PROJECTED)
    np.testing.assert_allclose(robot.kinetic_energy(q, v), 0.5 * np.einsum("ki,kij,kj->k", v, M, v), rtol=PROJECTED)
    assert_close(robot.center_of_mass(q), tree.peer.center_of_mass(Q), PROJECTED)
    scale = robot.mass * float(np.linalg.norm(robot.gravity)) + np.abs(tree.peer.potential_energy(Q)).max()
    np.testing.assert_allclose(robot.potential_energy(q), tree.peer.potential_energy(Q), atol=PROJECTED * scale)


@names
def test_bias_force_is_the_virtual_work_of_the_tree_s(name: str) -> None:
    """Check G^T (c + M g), with g the derivative of G v along the motion."""
    robot, tree, q, Q = each(name)
    v = regular_states(name).v
    G, V = maps(robot, q), robot.spanning_velocity(q, v)
    h, H = tree.peer.bias_force(Q, V), tree.peer.mass_matrix(Q)
    g = np.array([rate(lambda t, k=k: robot.spanning_velocity(robot.integrate(q[k], t * v[k]), v[k])) for k in range(len(q))])
    forces = h + times(H, g)
    inertial = np.linalg.norm(H, axis=(1, 2)) * norms(V, len(q)) ** 2  # a parallelogram has no bias force
    scale = norms(G, len(q)) * (norms(forces, len(q)) + inertial)
    assert np.all(norms(robot.bias_force(q, v) - times(G.swapaxes(1, 2), forces), len(q)) <= DIFFERENCE * scale)
    assert_close(robot.inverse_dynamics(q, v, np.zeros_like(v)), robot.bias_force(q, v), PROJECTED)


@names
def test_gravity_force_is_the_gradient_of_potential_energy(name: str) -> None:
    robot, tree, q, Q = each(name)
    found = robot.gravity_force(q)
    scale = robot.mass * float(np.linalg.norm(robot.gravity))  # some linkages have no bias force in their plane
    expected = times(maps(robot, q).swapaxes(1, 2), tree.peer.gravity_force(Q))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=PROJECTED * scale)
    for k in range(len(q)):
        slope = [rate(lambda t, e=e, k=k: robot.potential_energy(robot.integrate(q[k], t * e))) for e in np.eye(robot.nv)]
        np.testing.assert_allclose(found[k], slope, rtol=0.0, atol=DIFFERENCE * scale)


@names
def test_what_follows_from_the_mass_matrix(name: str) -> None:
    robot, q = mechanism(name), regular_states(name).q
    M, B = robot.mass_matrix(q), np.random.default_rng(3).standard_normal((len(q), robot.nv, 2))
    for algorithm in ("global", "local", "crba-ltdl"):
        inverse = robot.inverse_mass_matrix(q, algorithm=algorithm)
        assert_close(inverse, np.linalg.inv(M), ROUNDTRIP)
        np.testing.assert_array_equal(inverse, inverse.swapaxes(1, 2))
    assert_close(robot.solve_mass_matrix(q, B), np.linalg.solve(M, B), ROUNDTRIP)
    factors = robot.factorize(q)
    L, D = factors.L, factors.D
    assert_close(L.swapaxes(1, 2) @ (D[:, :, None] * L), M, PROJECTED)
    assert_close(factors.solve(B[..., 0]), np.linalg.solve(M, B)[..., 0], ROUNDTRIP)
    np.testing.assert_allclose(factors.logdet(), np.linalg.slogdet(M)[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["flying_linkage", "belt_chain", "mini_cheetah"])
def test_parts_of_the_inverse_mass_matrix_together_are_the_whole(name: str) -> None:
    robot = mechanism(name)
    program: Any = robot.inverse_mass_matrix.alternatives["global"].program
    q, n = regular_states(name).q[0].tolist(), robot.nv
    whole, together = np.full((n, n), np.nan), np.full((n, n), np.nan)
    program.kernel(robot._mechanism, (0, n), q, whole)
    for part in ((0, 2), (2, n // 2), (n // 2, n)):
        assert np.isnan(together).any()
        program.kernel(robot._mechanism, part, q, together)
        np.testing.assert_array_equal(together[: part[1], : part[1]], whole[: part[1], : part[1]])


@names
def test_forces_on_bodies_do_the_power_of_their_jacobians(name: str) -> None:
    robot, (q, v, a) = mechanism(name), regular_states(name)
    f = np.random.default_rng(2).standard_normal((len(q), len(robot.bodies), 6))
    J = robot.frame_jacobian([b.name for b in robot.bodies], "local")(q)
    free, pushed = robot.inverse_dynamics(q, v, a), robot.inverse_dynamics(q, v, a, external_forces=f)
    expected = -np.einsum("kbij,kbi->kj", J, f)
    assert np.all(norms(pushed - free - expected, len(q)) <= PROJECTED * (norms(free, len(q)) + norms(expected, len(q))))
    for algorithm in LOADED:
        assert_close(robot.forward_dynamics(q, v, pushed, external_forces=f, algorithm=algorithm), a, ROUNDTRIP)


@names
def test_forward_dynamics_takes_forces_on_bodies_by_whatever_algorithm_it_chose(name: str) -> None:
    robot, (q, v, tau) = mechanism(name), regular_states(name)
    f = np.random.default_rng(2).standard_normal((len(robot.bodies), 6))
    found = robot.forward_dynamics(q, v, tau, external_forces=f)
    assert_close(found, robot.forward_dynamics(q, v, tau, external_forces=f, algorithm="aba"), ROUNDTRIP)


@names
def test_forces_on_all_joints_are_those_of_the_cut_tree(name: str) -> None:
    """Check that, by Gauss's principle, they give its accelerations, and do the same work on the mechanism as the drives."""
    robot, tree, q, Q = each(name)
    _, v, a = regular_states(name)
    tau = robot.inverse_dynamics(q, v, a)
    V = robot.spanning_velocity(q, v)
    accelerations = np.array([tree.forward_dynamics(*x) for x in zip(q, v, tau, strict=True)])
    found = robot.spanning_torque(q, v, a)
    assert_close(found, tree.peer.inverse_dynamics(Q, V, accelerations), 1e-7)
    assert np.all(norms(times(maps(robot, q).swapaxes(1, 2), found) - tau, len(q)) <= PROJECTED * norms(found, len(q)) * 30.0)


@pytest.mark.parametrize("name", ["crank_and_rocker", "platform", "two_loops", "chain_spherical", "own"])
def test_loop_forces_are_what_the_joints_miss(name: str) -> None:
    """Check M q'' + h = tau + K^T f, with K by differences: of points on the axes of the predecessor's frame."""
    robot, tree, q, Q = each(name)
    _, v, a = regular_states(name)
    tau, whole, f = robot.inverse_dynamics(q, v, a), robot.spanning_torque(q, v, a), robot.loop_forces(q, v, a)
    assert f.shape == (len(q), len(robot.loop_rows))
    for k in range(len(q)):
        K = tree.constraints(Q[k], np.zeros(tree.open.nv)).K
        assert_close((K.T @ f[k])[None], (whole[k] - tree.tree_forces(tau[k]))[None], 1e-8)


# configurations


def test_singular_configurations_are_told_apart() -> None:
    """Check a parallelogram near the line of its bars, where its crank hardly determines its motion."""
    robot = mechanism("four_bar")
    regular = np.array(four_bar_configuration(1.0))
    assert 1.0 <= robot.singularity(regular) <= 1e2
    near, nearer = (robot.singularity(np.array(four_bar_configuration(x))) for x in (1e-3, 1e-5))
    assert near > 1e4 and nearer > 1e8


@pytest.mark.parametrize("execution", ["interpreted", "traced"])
def test_close_warns_of_singular_configurations(execution: str) -> None:
    """Check bars in line, where K_d has a zero pivot."""
    with pytest.warns(RuntimeWarning, match="near a singular configuration"):
        mechanism("four_bar", execution).close(np.zeros(3))


def test_loops_of_the_code_are_not_kept() -> None:
    with pytest.raises(ValueError, match="rolled is not offered"):
        fw.build(robots.four_bar(), execution="rolled")


@names
def test_random_configurations_are_put_together_as_the_description_says(name: str) -> None:
    """Check that a weld holds the exact pose, and that joined axes point the same way, not only that some products vanish."""
    robot, tree = mechanism(name), spanning(name)
    q = robot.random_configuration(rng=1, size=(2, 5))
    assert q.shape == (2, 5, robot.nq)
    for x in q.reshape(-1, robot.nq):
        assert np.abs(tree.residual(tree.expand(x))).max() <= 1e-9
    np.testing.assert_array_equal(q, robot.random_configuration(rng=1, size=(2, 5)))


@pytest.mark.parametrize("name", ["crank_and_rocker", "platform", "two_loops", "chain_spherical", "own"])
def test_residual_of_open_loops(name: str) -> None:
    """Check spherical loops, whose residual is the distance in the predecessor's frame, and other constraints, whose
    residual is their value.
    """
    robot, tree = mechanism(name), spanning(name)
    rng = np.random.default_rng(0)
    q = fw.Robot.random_configuration(robot, rng=rng)
    assert_close(robot.residual(q)[None], tree.residual(tree.expand(q))[None], PROJECTED)


@names
def test_integrate_stays_closed_and_moves_as_asked(name: str) -> None:
    robot, tree, q, _ = each(name)
    v = regular_states(name).v
    for k in range(len(q)):
        moved = robot.integrate(q[k], 0.02 * v[k])
        assert np.abs(tree.residual(tree.expand(moved))).max() <= 1e-9
        start = tree.expand(q[k])

        def travelled(t: float, k: int = k, start: Array = start) -> Array:
            return tree.open.difference(start, tree.expand(robot.integrate(q[k], t * v[k])))

        assert_close(rate(travelled)[None], robot.spanning_velocity(q[k], v[k])[None], DIFFERENCE)
    steps = np.linspace(-0.02, 0.02, 3)[:, None, None] * v
    many = robot.integrate(q, steps)
    np.testing.assert_allclose(many[2, 0], robot.integrate(q[0], 0.02 * v[0]), atol=1e-11)


@names
def test_difference_is_what_integrate_needs_to_first_order(name: str) -> None:
    """Check that the remainder is of second order: for steps of 1e-3, it is below 1e-4 of them times the mechanism's
    curvature.
    """
    robot, tree, q, Q = each(name)
    v = regular_states(name).v
    for k in range(len(q)):
        p = robot.integrate(q[k], 1e-3 * v[k])
        step = robot.difference(q[k], p)
        assert np.linalg.norm(step - 1e-3 * v[k]) <= 1e-4 * np.linalg.norm(v[k])
        again = robot.integrate(q[k], step)
        moved = np.linalg.norm(tree.open.difference(Q[k], tree.expand(p)))
        assert np.linalg.norm(tree.open.difference(tree.expand(p), tree.expand(again))) <= 0.02 * moved


@names
def test_close_moves_what_it_may(name: str) -> None:
    """Check that the independent joints do not move, to the rounding of a quaternion."""
    robot, tree, q, Q = each(name)
    rng = np.random.default_rng(4)
    bent = tree.open.integrate(Q, 1e-2 * rng.standard_normal((len(q), tree.open.nv)))
    bent = np.concatenate([bent[:, tree.slices[j.name]] for j in robot.joints if j.q_slice.stop > j.q_slice.start], axis=1)
    closed = robot.close(bent)
    for before, after in zip(bent, closed, strict=True):
        assert np.abs(tree.residual(tree.expand(after))).max() <= 1e-9
        moved = {r for c in robot._mechanism.clusters for r in c.dependent}
        step = tree.open.difference(tree.expand(before), tree.expand(after))
        followers = {r for c in robot._mechanism.clusters for f in c.followers for r in [f.row]}
        still = [r for j in tree.open.joints for r in rows_of(j) if not moved.intersection(rows_of(j)) and r not in followers]
        assert np.abs(step[still]).max(initial=0.0) <= 1e-12
    np.testing.assert_allclose(robot.close(closed), closed, rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(robot.close(bent[:1])[0], robot.close(bent[0]))


def rows_of(joint: Any) -> range:
    return range(joint.v_slice.start, joint.v_slice.stop)


def test_close_keeps_the_joints_it_is_told_to() -> None:
    robot = mechanism("four_bar")
    lengths = (0.5, 1.0, 0.5, 1.0)
    q = np.array(four_bar_configuration(1.0, lengths))
    guess = q + np.array([0.05, -0.03, 0.0])
    np.testing.assert_allclose(robot.close(guess, keep=["joint3"]), q, atol=1e-9)
    assert robot.close(guess)[0] == guess[0]


def test_what_cannot_be_closed_is_said() -> None:
    robot = mechanism("four_bar")
    q = np.array(four_bar_configuration(1.0))
    with pytest.raises(ValueError, match="has no joint 'elbow'"):
        robot.close(q, keep=["elbow"])
    every = ["joint1", "joint2", "joint3"]
    with pytest.raises(ValueError, match="the loops cannot be closed from this guess"):
        robot.close(q + 0.1, keep=every)
    np.testing.assert_array_equal(robot.close(q, keep=every), q)
    short = closed(robots.four_bar((0.5, 1.0, 0.2, 1.0)), execution="interpreted")
    with pytest.raises(ValueError, match=r"from this guess: the best of \d+ attempts leaves 0\.297 m of 'loop' open"):
        short.close([3.0, 0.0, 0.0])  # 1.5 m, which bars of 1 m and 0.2 m do not reach


def test_report_tells_which_constraints_follow_from_others() -> None:
    """Check a revolute loop in the plane, which has five constraints, two of them independent."""
    assert mechanism("four_bar").report()["redundant constraints"] == "3 of 'loop'"
    assert "redundant constraints" not in mechanism("crank_and_rocker").report()


# energy over time


def energy_drift(robot: fw.ClosedRobot, q: Array, v: Array, span: float, steps: int) -> float:
    """Return the change of total energy, by the classical Runge-Kutta method in the independent coordinates."""

    def total(q: Array, v: Array) -> float:
        return float(robot.kinetic_energy(q, v) + robot.potential_energy(q))

    start = total(q, v)
    for _ in range(steps):
        q, v = after_a_step(robot, q, v, span / steps)
    return abs(total(q, v) - start)


def tello_legs() -> fw.Description:
    """Return Tello without arms, its torso held still, so that independent coordinates are numbers, as Runge-Kutta requires."""
    made = robots.tello(arms=False)
    joints = [dataclasses.replace(j, type=fw.JointType.FIXED) if j.child == "torso" else j for j in made.joints]
    return dataclasses.replace(made, joints=tuple(joints))


@pytest.mark.parametrize(
    ("made", "gravity", "q", "speed", "span", "steps"),
    [
        (robots.four_bar, (0.0, -9.81, 0.0), four_bar_configuration(1.0), 1.0, 0.4, 16),
        (robots.six_bar, (0.0, -9.81, 0.0), six_bar_configuration(0.3, 0.4, 0.5), 0.5, 0.1, 16),
        (tello_legs, (0.0, 0.0, 0.0), None, 8.0, 0.3, 8),
    ],
    ids=["four_bar", "six_bar", "tello_legs"],
)
def test_energy_is_kept_to_fourth_order(made: Any, gravity: Any, q: Any, speed: float, span: float, steps: int) -> None:
    """Check that half the step leaves a sixteenth of the error."""
    robot = fw.build(made(), gravity=gravity)
    assert isinstance(robot, fw.ClosedRobot)
    start = robot.close(robot.neutral()) if q is None else np.array(q)
    v = speed * np.random.default_rng(0).uniform(0.5, 1.0, robot.nv)
    coarse, fine = (energy_drift(robot, start, v, span, n) for n in (steps, 2 * steps))
    assert fine > 1e-12 * robot.kinetic_energy(start, v), "rounding hides the order"
    assert coarse / fine >= 12.0


# trees without loops


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["mixed_8", "all_revolute", "floating_inside", "roots", "side_branches", "anchored"])
def test_a_tree_costs_what_it_costs_without_clusters(name: str, base: str) -> None:
    """Check clusters that are single joints, for which the algorithms have the same operations as those of trees."""
    description = TREES[name]()
    if base == "floating":
        description = fixed_to_a_root(description)
    plain = fw.build(description, base, execution="interpreted")
    clustered = fw.ClosedRobot(Loops(description, build_model(description, base, None)), "interpreted")
    assert clustered.nv == plain.nv and clustered.parent == plain.parent
    rng = np.random.default_rng(0)
    q, v, a = plain.random_configuration(rng=rng), rng.standard_normal(plain.nv), rng.standard_normal(plain.nv)
    for function in ("inverse_dynamics", "bias_force", "gravity_force"):
        assert getattr(clustered, function).operations == getattr(plain, function).operations
    ours, theirs = clustered.mass_matrix.operations, plain.mass_matrix.operations
    spared = 1 if name == "anchored" else 0  # the order of sums of composite inertias differs
    assert ours == theirs._replace(add=theirs.add - spared)
    assert clustered.forward_dynamics.candidates["aba"] == plain.forward_dynamics.candidates["aba"]
    assert_close(clustered.inverse_dynamics(q, v, a)[None], plain.inverse_dynamics(q, v, a)[None])
    assert_close(clustered.forward_dynamics(q, v, a)[None], plain.forward_dynamics(q, v, a)[None], ROUNDTRIP)


def fixed_to_a_root(description: fw.Description) -> fw.Description:
    """Return the mechanism on a body, instead of the world, which a floating base can carry."""
    joints = [dataclasses.replace(j, parent="root") if j.parent == "world" else j for j in description.joints]
    return dataclasses.replace(description, bodies=(body("root"), *description.bodies), joints=tuple(joints))


# executions, batches, pickles


@pytest.mark.parametrize("name", ["four_bar", "crank_and_rocker", "geared", "own", "belt_chain"])
def test_compiled_code_agrees_with_plain_python_and_batches_with_states(name: str) -> None:
    """Check to rounding, which differs where the compiler fuses multiplications and additions."""
    plain, robot = mechanism(name), mechanism(name, "traced")
    values = dict(zip(("q", "v", "tau"), regular_states(name), strict=True))
    values["a"] = values["tau"]
    functions = {n: f for n, f in robot.functions.items() if n in (*DYNAMICS, "spanning_velocity")}
    if any(c.dependent for c in robot._mechanism.clusters):
        functions["residual"] = robot.residual
    assert len(functions) >= 12
    for key, function in functions.items():
        reference = getattr(plain, key)
        args = [values[argument.name] for argument in function.program.inputs]
        ways = function.candidates or (function.algorithm,) if len(robot.parent) > 2 else (function.algorithm,)
        for algorithm in ways:
            found, expected = function(*args, algorithm=algorithm), reference(*args, algorithm=algorithm)
            if key == "residual":
                assert np.abs(found).max() <= 1e-11 and np.abs(expected).max() <= 1e-11
                continue
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(expected).max()))
        one = function(*(x[1] for x in args))
        np.testing.assert_allclose(one, found[1] if key != "residual" else one, rtol=1e-9, atol=1e-9 * np.abs(one).max())
        np.testing.assert_array_equal(function(*(np.stack([x, x[::-1]]) for x in args))[1, ::-1], function(*args))


@pytest.mark.parametrize("execution", ["interpreted", "traced"])
def test_couplings_alone_leave_no_residual(execution: str) -> None:
    robot = fw.build(robots.belt_chain(2), execution=execution)
    assert isinstance(robot, fw.ClosedRobot)
    assert robot.residual(robot.neutral()).shape == (0,)
    np.testing.assert_array_equal(robot.close([0.1, 0.2]), [0.1, 0.2])


URDF = """
<robot name="bars">
  <link name="base"/>
  <link name="a">{inertia}</link><link name="b">{inertia}</link><link name="c">{inertia}</link><link name="d">{inertia}</link>
  <joint name="ja" type="continuous" independent="true"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
  <joint name="jb" type="continuous"><origin xyz="0.4 0 0"/><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
  <joint name="jc" type="continuous"><origin xyz="1 0 0"/><parent link="base"/><child link="c"/><axis xyz="0 0 1"/></joint>
  <joint name="jd" type="continuous"><parent link="c"/><child link="d"/><axis xyz="1 0 0"/>
    <mimic joint="ja" multiplier="3" offset="0.1"/></joint>
  <loop name="ring" type="revolute"><axis xyz="0 0 1"/>
    <predecessor link="b"><origin xyz="0.9 0 0"/></predecessor><successor link="c"><origin xyz="0.5 0 0"/></successor></loop>
</robot>""".replace(
    "{inertia}",
    '<inertial><origin xyz="0.1 0.02 0.03"/><mass value="1.5"/>'
    '<inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.2" iyz="0.02" izz="0.25"/></inertial>',
)


@pytest.fixture
def loaded(tmp_path: Path) -> fw.ClosedRobot:
    path = tmp_path / "bars.urdf"
    path.write_text(URDF)
    robot = fw.load(path, execution="interpreted")
    assert isinstance(robot, fw.ClosedRobot)
    return robot


@pytest.mark.parametrize("name", ["crank_and_rocker", "belt_chain"])
def test_single_precision(name: str) -> None:
    """Check to 1e-3: eps of 6e-8, through K_d and M of moderate condition."""
    robot, (q, v, tau) = mechanism(name, "traced"), regular_states(name)
    for f in (robot.inverse_dynamics, robot.forward_dynamics):
        found = f(*(x.astype(np.float32) for x in (q, v, tau)))
        assert found.dtype == np.float32
        assert_close(found, f(q, v, tau), 1e-3)


def test_a_file_s_mechanism_on_a_floating_base(loaded: fw.ClosedRobot) -> None:
    """Check that the base is a cluster, and that the bars move as on the ground if it is at rest."""
    robot = fw.build(loaded._loops.d, "floating", execution="interpreted")
    assert isinstance(robot, fw.ClosedRobot)
    assert (loaded.nq, loaded.nv) == (3, 1) and (robot.nq, robot.nv) == (10, 7)
    q = robot.random_configuration(rng=0)
    v, a = np.arange(7.0), np.arange(7.0)[::-1]
    tau = robot.inverse_dynamics(q, v, a)
    for algorithm in FORWARD:
        assert_close(robot.forward_dynamics(q, v, tau, algorithm=algorithm)[None], a[None], ROUNDTRIP)
    grounded = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, *q[7:]])
    still = np.array([*np.zeros(6), 2.0])
    found = robot.inverse_dynamics(grounded, still, still)[6:]
    assert_close(found[None], loaded.inverse_dynamics(q[7:], [2.0], [2.0])[None])


def test_pickles_of_a_file_s_mechanism(loaded: fw.ClosedRobot) -> None:
    assert_pickles(loaded)


@pytest.mark.parametrize("name", ["tello", "platform", "coupled"])
def test_pickles(name: str) -> None:
    assert_pickles(mechanism(name))


def assert_pickles(robot: fw.ClosedRobot) -> None:
    again = pickle.loads(pickle.dumps(robot))
    assert isinstance(again, fw.ClosedRobot) and again.execution == robot.execution
    q = robot.random_configuration(rng=0)
    np.testing.assert_array_equal(again.random_configuration(rng=0), q)
    v, tau = np.ones(robot.nv), np.arange(robot.nv, dtype=float)
    assert again.clusters == robot.clusters
    for algorithm in FORWARD:
        found = again.forward_dynamics(q, v, tau, algorithm=algorithm)
        np.testing.assert_array_equal(found, robot.forward_dynamics(q, v, tau, algorithm=algorithm))
    function = pickle.loads(pickle.dumps(robot.forward_dynamics))
    np.testing.assert_array_equal(function(q, v, tau), robot.forward_dynamics(q, v, tau))


def test_a_tree_that_is_a_chain_has_regular_configurations_only() -> None:
    """Check that the selection of states for these tests rejects a four-bar in line."""
    found = regular_configurations("four_bar", 5, seed=9)
    assert amplified(mechanism("four_bar"), found) <= 4.0
    plain = fw.build(chain(3), execution="interpreted")
    assert not plain.closed and mechanism("four_bar").closed
