"""Tests of operational space and constrained dynamics against Pinocchio, and against definitions, by every algorithm."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight.robot.constraints.contact import Constraint
from oracles.pinocchio_models import Peer, peer_of
from oracles.robots import example, robot_of
from oracles.states import Array, assert_close, random_states
from oracles.trees import TREES

ROBOTS = {
    "talos": ("left_sole_link", "right_sole_link", "gripper_left_base_link"),
    "g1": ("left_ankle_roll_link", "right_ankle_roll_link", "torso_link"),
    "hyq": ("lf_foot", "rh_foot", "trunk"),
    "icub": ("l_sole", "r_sole", "chest"),
    "panda": ("panda_link7",),
    "allegro": ("link_3.0_tip", "link_7.0_tip", "link_11.0_tip"),
    "mixed_13": ("body12", "body4"),
    "roots": ("body3", "body5"),
}
LARGE = ("talos", "g1", "icub")
STATES = 3

TOLERANCE = 1e-9
"""Tolerance relative to the norm of a result, for inverted constraint matrices with condition numbers up to 1e5."""


def contacts(name: str) -> list[fw.BilateralContact]:
    """Return surfaces and points with at most as many rows as there are joints that move them."""
    frames = ROBOTS[name]
    if name in ("allegro", "mixed_13"):
        return [fw.BilateralContact(frame, "point") for frame in frames]
    return [fw.BilateralContact(frame, "point" if k == 1 or "foot" in frame else "weld") for k, frame in enumerate(frames)]


def ways(function: fw.CompiledFunction[Any]) -> Iterator[str]:
    yield from function.candidates or (function.algorithm,)


class Reference:
    """Results by the definitions, from Pinocchio's mass matrix and Jacobians."""

    def __init__(self, name: str) -> None:
        # plain Python, because compiling dozens of functions would take longer than evaluating all their states
        self.robot = example(name, "interpreted") if name in LARGE else robot_of(name)
        self.peer = peer_of(name)
        self.states = random_states(self.robot, STATES)
        self.M = self.peer.mass_matrix(self.states.q)
        self.contacts = contacts(name)
        frames = [str(c.frame) for c in self.contacts]
        J = self.peer.frame_jacobian(frames, "local", self.states.q)
        self.J = self.stack(J)
        self.gained = self.stack(self.peer.frame_bias_acceleration(frames, "local", self.states.q, self.states.v))
        bias = self.peer.bias_force(self.states.q, self.states.v)
        self.Minv = np.linalg.inv(self.M)
        self.delassus = self.J @ self.Minv @ self.J.swapaxes(1, 2)
        self.bias_force = bias
        self.bias = self.gained - times(self.J @ self.Minv, bias)
        self.space = self.robot.operational_space(self.contacts)

    def stack(self, parts: Array) -> Array:
        """Convert rows of frames (states, frames, 6, ...) to those of the contacts."""
        return np.concatenate([parts[:, k, : c.size] for k, c in enumerate(self.contacts)], axis=1)


def times(A: Array, x: Array) -> Array:
    return np.asarray(np.einsum("...ij,...j->...i", A, x))


@pytest.fixture(scope="module", params=ROBOTS)
def reference(request: pytest.FixtureRequest) -> Reference:
    return Reference(request.param)


def test_jacobian_and_bias(reference: Reference) -> None:
    q, v, _ = reference.states
    assert_close(reference.space.jacobian(q), reference.J, TOLERANCE)
    for algorithm in ways(reference.space.bias):
        assert_close(reference.space.bias(q, v, algorithm=algorithm), reference.bias, TOLERANCE)


def test_inertia_and_what_follows_from_it(reference: Reference) -> None:
    """Check Khatib (1987): Λ, the dynamically consistent inverse, and the null-space projector of the constraints."""
    q = reference.states.q
    inertia = np.linalg.inv(reference.delassus)
    inverse = reference.Minv @ reference.J.swapaxes(1, 2) @ inertia
    projector = np.eye(reference.robot.nv) - inverse @ reference.J
    space = reference.space
    for function, expected in (
        (space.inertia, inertia),
        (space.consistent_inverse, inverse),
        (space.null_space_projector, projector),
    ):
        for algorithm in ways(function):
            assert_close(function(q, algorithm=algorithm), expected, TOLERANCE)


def test_product_without_the_matrix(reference: Reference) -> None:
    q, _, x = reference.states
    x = x[:, : reference.space.size] if x.shape[1] >= reference.space.size else np.ones((STATES, reference.space.size))
    for algorithm in ways(reference.space.apply_delassus):
        y = reference.space.apply_delassus(q, x, algorithm=algorithm)
        assert_close(y, times(reference.delassus, x), TOLERANCE)


@pytest.mark.parametrize("aimed", [False, True])
def test_constrained_dynamics(reference: Reference, aimed: bool) -> None:
    """Check Gauss's principle with a dense solution: M a + c + g = tau + Jᵀ f, J a + J' v = target."""
    q, v, tau = reference.states
    m = reference.space.size
    target = np.random.default_rng(1).standard_normal((STATES, m)) if aimed else np.zeros((STATES, m))
    free = times(reference.Minv, tau - reference.bias_force)
    f = np.linalg.solve(reference.delassus, (target - reference.gained - times(reference.J, free))[..., None])[..., 0]
    a = free + times(reference.Minv, times(reference.J.swapaxes(1, 2), f))
    for algorithm in ways(reference.space.constrained_dynamics):
        motion = reference.space.forward_dynamics(q, v, tau, target if aimed else None, algorithm=algorithm)
        assert_close(motion.acceleration, a, TOLERANCE)
        assert_close(motion.force, f, TOLERANCE)
        assert motion.least_squares is False
        one = reference.space.forward_dynamics(q[0], v[0], tau[0], target[0], algorithm=algorithm)
        assert_close(one.acceleration[None], a[:1], TOLERANCE)


KINDS = {"talos": ("weld", "point"), "g1": ("point", "weld"), "hyq": ("point", "point")}


@pytest.mark.parametrize("name", KINDS)
def test_pinocchio_s_own_constrained_dynamics(name: str) -> None:
    """Check velocities that do not move the contacts: otherwise a point's drift depends on the reference."""
    robot, peer = example(name), peer_of(name)
    q, v, tau = random_states(robot, 1)
    made = [fw.BilateralContact(frame, kind) for frame, kind in zip(ROBOTS[name], KINDS[name], strict=False)]
    space = robot.operational_space(made)
    v = times(space.null_space_projector(q), v)
    expected = constrained(peer, made, q[0], v[0], tau[0])
    assert_close(space.forward_dynamics(q, v, tau).acceleration, expected[None], TOLERANCE)


def constrained(peer: Peer, made: Sequence[fw.BilateralContact], q: Array, v: Array, tau: Array) -> Array:
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for contact in made:
        frame = peer.model.frames[peer._frame(str(contact.frame))]
        kind = pin.ContactType.CONTACT_6D if contact.size == 6 else pin.ContactType.CONTACT_3D
        models.append(pin.RigidConstraintModel(kind, peer.model, frame.parentJoint, frame.placement, pin.LOCAL))
        datas.append(models[-1].createData())
    data = peer.model.createData()
    pin.initConstraintDynamics(peer.model, data, models, datas)
    settings = pin.ProximalSettings(1e-12, 0.0, 1)
    a = pin.constraintDynamics(peer.model, data, peer.q(q), peer.v(v), peer.v(tau), models, datas, settings)
    return np.asarray(a)[peer.columns]


# constraints between several bodies


@pytest.mark.parametrize("name", ["hyq", "panda", "mixed_13", "roots"])
def test_centre_of_mass(name: str) -> None:
    robot, peer = robot_of(name), peer_of(name)
    q, v, _ = random_states(robot, STATES)
    space = robot.operational_space(fw.CenterOfMass())
    jacobians, gained = [], []
    for k in range(STATES):
        jacobians.append(pin.jacobianCenterOfMass(peer.model, peer.data, peer.q(q[k]))[:, peer.columns])
        pin.centerOfMass(peer.model, peer.data, peer.q(q[k]), peer.v(v[k]), np.zeros(robot.nv))
        gained.append(peer.data.acom[0].copy())
    assert_close(space.jacobian(q), np.array(jacobians), TOLERANCE)
    drift = velocity_products(space, q, v)
    np.testing.assert_allclose(drift, gained, atol=TOLERANCE * np.abs(gained).max() + 1e-8)


PAIRS = {"hyq": ("lf_foot", "rh_lowerleg"), "panda": ("panda_link5", "panda_link2")}


@pytest.mark.parametrize("name", PAIRS)
def test_difference_of_two_frames(name: str) -> None:
    """Check the definition, from Pinocchio's Jacobians on the world's axes; J' v by differences of J along the motion."""
    robot, peer, frames = robot_of(name), peer_of(name), PAIRS[name]
    q, v, _ = random_states(robot, STATES)
    K = np.random.default_rng(3).standard_normal((3, 6))
    space = robot.operational_space(fw.Difference(*frames, rows=K))
    J = peer.frame_jacobian(list(frames), "local_world_aligned", q)
    R = peer.frame_placement([frames[0]], q)[:, 0, :3, :3].swapaxes(1, 2)
    difference = J[:, 0] - J[:, 1]
    assert_close(space.jacobian(q), K @ np.concatenate([R @ difference[:, :3], R @ difference[:, 3:]], axis=1), TOLERANCE)
    require_derivative(space, q, v)


def velocity_products(space: fw.OperationalSpace, q: Array, v: Array) -> Array:
    """Return J' v = β + J M⁻¹ (c + g)."""
    robot: Any = space.robot
    still = np.linalg.solve(robot.mass_matrix(q), robot.bias_force(q, v)[..., None])[..., 0]
    return np.asarray(space.bias(q, v) + times(space.jacobian(q), still))


def require_derivative(space: fw.OperationalSpace, q: Array, v: Array) -> None:
    robot: Any = space.robot
    step = 1e-6
    J = space.jacobian
    rate = (J(robot.integrate(q, step * v)) - J(robot.integrate(q, -step * v))) / (2 * step)
    assert_close(velocity_products(space, q, v), times(rate, v), 1e-6)  # error of central differences


def own_rows(robot: fw.Robot) -> Any:
    def function(q: Any) -> Any:
        J = np.zeros((2, robot.nv), dtype=object)
        for k in range(robot.nv):
            x = q[k % robot.nq]
            J[0, k] = np.sin(x) * q[-1] + 0.5 * k
            J[1, k] = np.cos(x) / np.sqrt(4.0 + x * x) - q[0]
        return J

    return function


@pytest.mark.parametrize("name", ["mixed_13", "roots", "floating_inside", "all_planar", "all_spherical", "panda"])
def test_rows_of_one_s_own(name: str) -> None:
    """Check entries against the function's values, and their exact derivative along the motion of every joint type."""
    robot = robot_of(name)
    q, v, _ = random_states(robot, STATES)
    function = own_rows(robot)
    space = robot.operational_space(fw.JacobianRows(function))
    assert_close(space.jacobian(q), np.array([function(x).astype(float) for x in q]), 1e-12)
    require_derivative(space, q, v)


@pytest.mark.parametrize("name", ["talos", "mixed_13"])
def test_mixed_constraints(name: str) -> None:
    """Check all functions by their definitions from J and M."""
    robot = example(name, "interpreted") if name in LARGE else robot_of(name)
    q, v, tau = random_states(robot, STATES)
    frames = ROBOTS[name]
    made: list[Constraint] = [
        fw.CenterOfMass([[0.0, 0.0, 1.0]]),
        fw.BilateralContact(frames[0], "point"),
        fw.JacobianRows(own_rows(robot)),
        fw.Difference(frames[0], frames[1], "point", rows=np.eye(6)[2:4]),
    ]
    space = robot.operational_space(made)
    J, M = space.jacobian(q), robot.mass_matrix(q)
    D = J @ np.linalg.solve(M, J.swapaxes(1, 2))
    for algorithm in ways(space.delassus()):
        assert_close(space.delassus()(q, algorithm=algorithm), D, TOLERANCE)
    inverse = np.linalg.solve(M, J.swapaxes(1, 2)) @ np.linalg.inv(D)
    assert_close(space.consistent_inverse(q), inverse, 1e-7)
    assert_close(space.null_space_projector(q), np.eye(robot.nv) - inverse @ J, 1e-7)
    motion = space.forward_dynamics(q, v, tau)
    unbalanced = times(M, motion.acceleration) + robot.bias_force(q, v) - tau - times(J.swapaxes(1, 2), motion.force)
    assert np.abs(unbalanced).max() <= 1e-9 * np.abs(times(M, motion.acceleration)).max()
    drift = velocity_products(space, q, v)
    assert np.abs(times(J, motion.acceleration) + drift).max() <= 1e-8 * np.abs(drift).max()


# rows that depend on each other


def test_twelve_rows_on_a_foot_move_it_as_six_do() -> None:
    robot = example("talos")
    q, v, tau = random_states(robot, STATES)
    feet = ROBOTS["talos"][:2]
    rng = np.random.default_rng(2)
    K = {foot: rng.standard_normal((12, 6)) for foot in feet}
    space = robot.operational_space([fw.BilateralContact(foot, rows=K[foot]) for foot in feet])
    plain = robot.operational_space([fw.BilateralContact(foot) for foot in feet]).forward_dynamics(q, v, tau)
    assert "12 rows of which 6 are independent" in space.dependence
    for algorithm in ways(space.constrained_dynamics):
        motion = space.forward_dynamics(q, v, tau, algorithm=algorithm)
        assert motion.least_squares is True
        assert_close(motion.acceleration, plain.acceleration, TOLERANCE)
        for k, foot in enumerate(feet):
            wrench = plain.force[:, 6 * k : 6 * k + 6]
            least = times(np.linalg.pinv(K[foot].T), wrench)
            assert_close(motion.force[:, 12 * k : 12 * k + 12], least, TOLERANCE)
    target = rng.standard_normal((STATES, 24))
    aimed = np.concatenate([times(np.linalg.pinv(K[f]), target[:, 12 * k : 12 * k + 12]) for k, f in enumerate(feet)], 1)
    expected = robot.operational_space([fw.BilateralContact(foot) for foot in feet]).forward_dynamics(q, v, tau, aimed)
    assert_close(space.forward_dynamics(q, v, tau, target).acceleration, expected.acceleration, TOLERANCE)


def test_more_rows_than_joints_hold_still_what_they_can() -> None:
    """Check a panda whose hand and elbow are held: 12 rows, 9 joints, two of which are fingers."""
    robot = example("panda")
    q, _, tau = random_states(robot, STATES)
    v = np.zeros_like(tau)
    space = robot.operational_space([fw.BilateralContact("panda_link7"), fw.BilateralContact("panda_link4")])
    assert "together have rank" in space.dependence
    J, M, h = space.jacobian(q), robot.mass_matrix(q), robot.bias_force(q, v)
    D = J @ np.linalg.solve(M, J.swapaxes(1, 2))
    free = np.linalg.solve(M, (tau - h)[..., None])[..., 0]
    f = times(np.linalg.pinv(D, 1e-11, hermitian=True), -times(J, free))
    a = free + np.linalg.solve(M, times(J.swapaxes(1, 2), f)[..., None])[..., 0]
    for algorithm in ways(space.constrained_dynamics):
        motion = space.forward_dynamics(q, v, tau, algorithm=algorithm)
        assert motion.least_squares is True
        np.testing.assert_allclose(motion.acceleration, a, atol=1e-5 * np.abs(free).max())
        assert np.abs(times(J, motion.acceleration)).max() <= 1e-5 * np.abs(times(J, free)).max()


ARMS = {
    "ur5_robot": "tool0",
    "ur10_robot": "tool0",
    "xarm7": "link_eef",
    "kinova": "j2s6s200_link_6",
    "panda": "panda_hand",  # a robot with a loop: its fingers follow each other
    "talos_left_arm": "gripper_left_base_link",
}
DEPENDENT = {
    "two contacts": ["panda_link7", "panda_link7"],
    "the ground": ["panda_link0", "panda_link7"],
}


def dense(space: fw.OperationalSpace, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return M⁻¹, J, the pseudo-inverse of J M⁻¹ Jᵀ, and the acceleration and forces of least squares and least norm."""
    robot: Any = space.robot
    Minv, J = np.linalg.inv(robot.mass_matrix(q)), space.jacobian(q)
    inertia = np.linalg.pinv(J @ Minv @ J.T, 1e-11, hermitian=True)
    free = Minv @ (tau - robot.bias_force(q, v))
    force = -inertia @ (space.bias(q, v) + J @ Minv @ tau)
    return Minv, J, inertia, free + Minv @ J.T @ force, force


@pytest.mark.parametrize("name", ARMS)
def test_an_arm_at_its_neutral_configuration(name: str) -> None:
    """Check hands that are welded where the arm is singular: least squares of least norm, and one warning for each call."""
    robot = robot_of_file(name)
    space = robot.operational_space(fw.BilateralContact(ARMS[name]))
    q, v, tau = robot.neutral(), np.linspace(-0.5, 1.0, robot.nv), np.arange(robot.nv) * 1.0
    Minv, J, inertia, acceleration, force = dense(space, q, v, tau)
    assert not space.dependence
    for algorithm in ways(space.constrained_dynamics):
        with pytest.warns(RuntimeWarning, match="depend on each other at this configuration") as seen:
            motion = space.forward_dynamics(q, v, tau, algorithm=algorithm)
        assert len(seen) == 1 and seen[0].filename == __file__
        assert motion.least_squares is True
        assert_close(motion.acceleration[None], acceleration[None], 1e-9)
        assert_close(motion.force[None], force[None], 1e-9)
    with pytest.warns(RuntimeWarning):
        impact = space.impulse_dynamics(q, v)
    assert_close(impact.impulse[None], -(inertia @ J @ v)[None], 1e-9)
    inverse = Minv @ J.T @ inertia
    for function, expected in (
        (space.inertia, inertia),
        (space.consistent_inverse, inverse),
        (space.null_space_projector, np.eye(robot.nv) - inverse @ J),
    ):
        with pytest.warns(RuntimeWarning):
            one = function(q)
        with pytest.warns(RuntimeWarning, match=r"at state \(1,\)"):
            many = function(np.array([robot.random_configuration(rng=0), q]))
        assert_close(one[None], expected[None], 1e-9)
        np.testing.assert_array_equal(many[1], one)
    with pytest.warns(RuntimeWarning):
        slopes = space.forward_dynamics_derivatives(q, v, tau)
    assert all(np.isfinite(x).all() for x in slopes)
    assert_close(slopes.dacceleration_dtau[None], (Minv - inverse @ J @ Minv)[None], 1e-9)
    assert_close(slopes.dforce_dtau[None], -(inertia @ J @ Minv)[None], 1e-9)


def robot_of_file(name: str) -> fw.Robot:
    return fw.load(fw.example(name))


@pytest.mark.parametrize("name", DEPENDENT)
def test_rows_that_depend_on_each_other_everywhere(name: str) -> None:
    robot = example("panda")
    space = robot.operational_space([fw.BilateralContact(frame) for frame in DEPENDENT[name]])
    q, v, tau = random_states(robot, 1)
    Minv, J, inertia, acceleration, force = dense(space, q[0], v[0], tau[0])
    assert space.dependence
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motion = space.forward_dynamics(q[0], v[0], tau[0])
        assert_close(motion.acceleration[None], acceleration[None], TOLERANCE)
        assert_close(motion.force[None], force[None], TOLERANCE)
        assert_close(space.inertia(q), inertia[None], TOLERANCE)
        assert_close(space.consistent_inverse(q), (Minv @ J.T @ inertia)[None], TOLERANCE)
        assert_close(space.null_space_projector(q), (np.eye(robot.nv) - Minv @ J.T @ inertia @ J)[None], TOLERANCE)


@pytest.mark.parametrize("speed", [0.0, 1e-6, 1e-3, 1.0])
def test_rows_that_contradict_each_other_have_the_forces_of_least_norm(speed: float) -> None:
    """Check two welded arms of three joints, whose velocities the welds do not allow: 12 rows of rank 6."""
    robot = fw.build(fw.generators.from_parents([-1, 0, 1, -1, 3, 4], rng=8))
    space = robot.operational_space([fw.BilateralContact("body2"), fw.BilateralContact("body5")])
    q, v, tau = robot.random_configuration(rng=2), np.full(6, speed), np.ones(6)
    _, _, _, acceleration, force = dense(space, q, v, tau)
    motion = space.forward_dynamics(q, v, tau)
    assert motion.least_squares is True
    assert_close(motion.force[None], force[None], 1e-9)
    np.testing.assert_allclose(motion.acceleration, acceleration, atol=1e-9)
    exact = space.forward_dynamics_derivatives(q, v, tau)
    h = 1e-4

    def along(k: int, change: Array) -> Array:
        moved = [robot.integrate(q, change) if k == 0 else q, v + (k == 1) * change, tau + (k == 2) * change]
        return np.concatenate(dense(space, *moved)[3:])

    change = np.random.default_rng(5).standard_normal(6)
    for k in range(3):
        expected = (along(k, h * change) - along(k, -h * change)) / (2 * h)
        got = np.concatenate([exact[k] @ change, exact[3 + k] @ change])
        np.testing.assert_allclose(got, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))


def test_damping_keeps_forces_finite_and_misses_targets_by_itself() -> None:
    robot = robot_of_file("ur5_robot")
    space, mu = robot.operational_space(fw.BilateralContact("tool0")), 1e-3
    v, tau, target = np.ones(6), np.arange(6) * 1.0, np.linspace(0.0, 1.0, 6)
    for q in (robot.neutral(), robot.random_configuration(rng=1)):
        Minv, J = np.linalg.inv(robot.mass_matrix(q)), space.jacobian(q)
        damped = np.linalg.inv(J @ Minv @ J.T + mu * np.eye(6))
        force = damped @ (target - space.bias(q, v) - J @ Minv @ tau)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            motion = space.forward_dynamics(q, v, tau, target, damping=mu)
            assert_close(space.inertia(q, damping=mu)[None], damped[None], TOLERANCE)
            slopes = space.forward_dynamics_derivatives(q, v, tau, damping=mu)
        assert_close(motion.force[None], force[None], TOLERANCE)
        assert_close(slopes.dforce_dtau[None], -(damped @ J @ Minv)[None], TOLERANCE)
    twice = robot.operational_space([fw.BilateralContact("tool0")] * 2)
    J, m = twice.jacobian(q), twice.size
    damped = np.linalg.inv(J @ Minv @ J.T + mu * np.eye(m))
    force = damped @ (-twice.bias(q, v) - J @ Minv @ tau)
    assert_close(twice.forward_dynamics(q, v, tau, damping=mu).force[None], force[None], TOLERANCE)


def test_results_of_singular_states_go_to_given_arrays_and_pickles_keep_the_guard() -> None:
    robot = robot_of_file("ur5_robot")
    space, q = robot.operational_space(fw.BilateralContact("tool0")), robot.neutral()
    out, strained = np.empty((6, 6)), (np.empty(6), np.empty(6), np.empty(()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert space.inertia(q, out=out) is out
        np.testing.assert_array_equal(out, pickle.loads(pickle.dumps(space.inertia))(q))
        expected = space.constrained_dynamics(q, np.ones(6), np.ones(6))
        space.constrained_dynamics(q, np.ones(6), np.ones(6), out=strained)
    assert expected.strain == strained[2] == np.inf
    np.testing.assert_array_equal(expected.force, strained[1])
    assert np.isnan(space.inertia(np.full(6, np.nan))).any()


def test_a_row_that_nothing_can_move_changes_nothing() -> None:
    """Check a row across the plane of a linkage: its row of J is structurally zero."""
    robot = example("double_pendulum")
    q, v, tau = np.array([0.3, 0.7]), np.array([1.0, -0.5]), np.zeros(2)
    J = robot.frame_jacobian("link2", "local")(np.array([q, q + 0.5]))[:, :3]
    [across] = [row for row in np.eye(3) if np.abs(row @ J).max() == 0.0]
    space = robot.operational_space(fw.BilateralContact("link2", rows=[[*across, 0.0, 0.0, 0.0]]))
    assert space.dependence
    for algorithm in ways(space.constrained_dynamics):
        motion = space.forward_dynamics(q, v, tau, algorithm=algorithm)
        assert motion.least_squares is True
        np.testing.assert_allclose(motion.acceleration, robot.forward_dynamics(q, v, tau), rtol=1e-12)
        assert motion.force == 0.0


def test_contacts_on_the_ground_alone_are_refused() -> None:
    robot = example("panda")
    ground = next(f.name for f in robot.frames if f.body is None)
    with pytest.raises(ValueError, match="no constraint moves with the robot"):
        robot.operational_space(fw.BilateralContact(ground)).forward_dynamics(robot.neutral(), np.zeros(9), np.zeros(9))


def test_a_stretched_arm_is_reported() -> None:
    """Check two links in line, which cannot move their tip along themselves."""
    planar = example("double_pendulum")
    v = tau = np.zeros(planar.nv)
    tip = np.eye(4)
    tip[:3, 3] = planar.frame_placement("link2")(np.zeros(2))[:3, 3] - planar.frame_placement("link1")(np.zeros(2))[:3, 3]
    J = planar.operational_space(fw.BilateralContact("link2", placement=tip)).jacobian(np.array([0.3, 0.7]))[:3]
    rows = np.zeros((2, 6))
    rows[:, :3] = np.linalg.svd(J)[0][:, :2].T  # in the plane of motion
    space = planar.operational_space(fw.BilateralContact("link2", rows=rows, placement=tip))
    assert not space.dependence
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        space.forward_dynamics(np.array([0.3, 0.7]), v, tau)
    with pytest.warns(RuntimeWarning, match="depend on each other at this configuration"):
        space.forward_dynamics(np.array([0.3, 1e-9]), v, tau)
    with pytest.warns(RuntimeWarning, match=r"at state \(1,\)"):
        space.forward_dynamics(np.array([[0.3, 0.7], [0.3, 0.0]]), v, tau)


# executions, stabilization, objects


KERNELS = (
    "jacobian",
    "inertia",
    "bias",
    "apply_delassus",
    "consistent_inverse",
    "null_space_projector",
    "constrained_dynamics",
)


ROLLED = {
    "contacts": {
        "inertia": "pv-osimr",
        "apply_delassus": "",
        "null_space_projector": "",
        "constrained_dynamics": "pv-osimr",
        "stabilization": "",
    },
    "any rows": {"jacobian": "", "delassus": "", "constrained_dynamics": ""},
}
"""Functions that are compiled with their loops, by one algorithm or all; other loops are parts of these, or of Delassus
matrices.
"""


@pytest.mark.parametrize("what", [*KERNELS, "delassus", "stabilization"])
@pytest.mark.parametrize("kind", ["contacts", "any rows"])
@pytest.mark.parametrize("execution", ["traced", "rolled"])
def test_executions_agree(execution: str, kind: str, what: str) -> None:
    if execution == "rolled" and what not in ROLLED[kind]:
        pytest.skip("another compiled function contains its loops")
    if (what, kind) in (("stabilization", "any rows"), ("delassus", "contacts")):
        pytest.skip("for contacts only, or tested with the Delassus matrix")
    robot, plain = (fw.build(TREES["roots"](), execution=e) for e in (execution, "interpreted"))
    made: list[Constraint] = [fw.BilateralContact("body5", "point"), fw.BilateralContact("body3", rows=np.ones((1, 6)))]
    if kind == "any rows":
        made += [fw.CenterOfMass([[1.0, 0.0, 0.0]]), fw.Difference("body3", "body9", rows=np.eye(6)[:1])]
        made += [fw.JacobianRows(own_rows(robot))]
    one, other = robot.operational_space(made), plain.operational_space(made)
    q, v, tau = random_states(robot, 2)
    x = np.random.default_rng(0).standard_normal((2, one.size))
    held = other.placements(q[::-1]) if kind == "contacts" else None
    values = {"q": q, "v": v, "tau": tau, "x": x, "target": x, "placements": held, "gains": np.array([4.0, 3.0])}
    function, reference = (s.delassus() if what == "delassus" else getattr(s, what) for s in (one, other))
    for algorithm in ways(function):
        if execution == "rolled" and ROLLED[kind][what] not in ("", algorithm):
            continue
        f, g = (x.alternatives.get(algorithm, x) for x in (function, reference))
        if what == "constrained_dynamics":
            f, g = f.variant("target"), g.variant("target")
        assert f.execution == execution
        args = [values[argument.name] for argument in f.program.inputs]
        ours: Any = f(*args)
        theirs: Any = g(*args)
        if what == "constrained_dynamics":  # the strain is not a result of the dynamics
            assert_close(ours.force, theirs.force, 1e-10)
            ours, theirs = ours.acceleration, theirs.acceleration
        assert_close(ours, theirs, 1e-10)


def test_stabilization_is_baumgarte_s() -> None:
    """Check the position and the sine of the angle, on the axes of the contact frame."""
    robot = example("talos")
    q, v, _ = random_states(robot, 1)
    frame = ROBOTS["talos"][0]
    placement = np.array(pin.SE3.Random().homogeneous)
    contact = fw.BilateralContact(frame, placement=placement)
    space = robot.operational_space(contact)
    place = robot.frame_placement(frame)(q[0]) @ placement
    assert_close(space.placements(q)[0], place[None], TOLERANCE)
    offset = pin.exp6(np.array([0.1, -0.2, 0.3, 0.4, 0.1, -0.2]))
    held = place @ offset.inverse().homogeneous  # the frame is off by `offset` from its target
    angle = pin.log3(offset.rotation)
    size = np.linalg.norm(angle)
    error = np.concatenate([offset.rotation.T @ offset.translation, angle * np.sin(size) / size])
    target = space.stabilization(q, v, held[None, None], np.array([25.0, 10.0]))
    assert_close(target, -25.0 * error[None] - 10.0 * times(space.jacobian(q), v), TOLERANCE)


def test_stabilization_brings_a_contact_back() -> None:
    robot = example("panda")
    space = robot.operational_space(fw.BilateralContact("panda_link7", "point"))
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng=rng), 0.5 * rng.standard_normal(robot.nv)
    held = space.placements(robot.integrate(q, 0.05 * rng.standard_normal(robot.nv)))
    errors = []
    step, gains = 1e-3, np.array([400.0, 40.0])
    for _ in range(400):
        target = space.stabilization(q, v, held, gains)
        motion = space.forward_dynamics(q, v, robot.bias_force(q, v), target)
        v = v + step * motion.acceleration
        q = robot.integrate(q, step * v)
        errors.append(np.linalg.norm(space.placements(q)[0, :3, 3] - held[0, :3, 3]))
    assert errors[-1] < 0.02 * errors[0]


def test_spaces_are_kept_and_pickled() -> None:
    robot = example("panda")
    contact = fw.BilateralContact("panda_link7", "point")
    space = robot.operational_space(contact)
    assert robot.operational_space([fw.BilateralContact("panda_link7", "point")]) is space
    assert space.inertia is space.inertia and space.delassus() is robot.delassus(contact)
    again = pickle.loads(pickle.dumps(space))
    q = robot.random_configuration(rng=0)
    np.testing.assert_array_equal(again.inertia(q), space.inertia(q))
    assert "panda_link7" in repr(space) and str(space.size) in repr(space)


def test_what_is_no_constraint_is_refused() -> None:
    robot = example("panda")
    with pytest.raises(TypeError, match="operational_space takes"):
        robot.operational_space(["panda_link7"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="no frame 'nowhere'"):
        robot.operational_space(fw.Difference("panda_link7", "nowhere"))
    with pytest.raises(ValueError, match=r"rows of the centre of mass must have shape \(m, 3\)"):
        fw.CenterOfMass(np.eye(6))
    with pytest.raises(ValueError, match=r"must have shape \(m, 9\), m at least 1; got \(3, 3\)"):
        robot.operational_space(fw.JacobianRows(lambda q: np.eye(3)))
    with pytest.raises(TypeError, match="may not branch on a value"):
        robot.operational_space(fw.JacobianRows(lambda q: [[1.0 if q[0] > 0 else 0.0] * 9]))
    with pytest.raises(ValueError, match="stabilization is defined for contacts only; got the centre of mass"):
        robot.operational_space(fw.CenterOfMass()).stabilization  # noqa: B018
