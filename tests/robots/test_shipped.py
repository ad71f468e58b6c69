"""Tests of the library's robots: sizes, masses and constraints against published numbers.

The numbers are those of the URDF files and C++ models of https://github.com/ROAM-Lab-ND/generalized_rbda, commit 45fa7c4, and
of Chignoli et al. (2023), section IX: independent and spanning-tree velocities, bodies, and rows of constraints.
"""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import robots
from featherweight.engine.trace import trace
from featherweight.model.description import Description
from featherweight.model.types import Body, Joint
from featherweight.robots import linkages, tello_humanoid
from oracles.matrices import symmetric
from oracles.spanning import hip_rotors, knee_ankle_rotors

SHIPPED = {
    "mini_cheetah": robots.mini_cheetah,
    "mit_humanoid": robots.mit_humanoid,
    "tello": robots.tello,
    "tello_legs": lambda: robots.tello(arms=False),
    "jvrc1": robots.jvrc1,
    "jvrc1_published": lambda: robots.jvrc1(rotors="published"),
    "geared_chain": lambda: robots.geared_chain(12),
    "belt_chain": lambda: robots.belt_chain(12),
    "random_geared_chain": lambda: robots.geared_chain(12, rng=1),
    "random_belt_chain": lambda: robots.belt_chain(12, rng=1),
    "four_bar": robots.four_bar,
    "six_bar": robots.six_bar,
    "planar_leg_linkage": robots.planar_leg_linkage,
}
SIDES = {
    "mini_cheetah": ("FL", "FR"),
    "mit_humanoid": ("left", "right"),
    "jvrc1": ("left", "right"),
}


def spanning_tree(d: Description) -> Description:
    return replace(d, loops=(), couplings=(), closures=())


def velocities(d: Description) -> int:
    return sum(j.type.nv for j in d.joints)


@pytest.mark.parametrize(
    ("name", "bodies", "nv_tree", "nv", "couplings", "closures", "loops"),
    [
        ("mini_cheetah", 25, 30, 18, 12, 0, 0),
        ("mit_humanoid", 37, 42, 24, 18, 0, 0),
        ("tello", 37, 42, 24, 10, 4, 0),
        ("tello_legs", 21, 26, 16, 2, 4, 0),
        ("jvrc1", 65, 70, 38, 32, 0, 0),
        ("jvrc1_published", 58, 63, 38, 25, 0, 0),
        ("geared_chain", 24, 24, 12, 12, 0, 0),
        ("belt_chain", 24, 24, 12, 12, 0, 0),
        ("four_bar", 3, 3, 1, 0, 0, 1),
        ("six_bar", 5, 5, 3, 0, 0, 1),
        ("planar_leg_linkage", 4, 4, 2, 0, 0, 1),
    ],
)
def test_sizes_are_the_published_ones(
    name: str, bodies: int, nv_tree: int, nv: int, couplings: int, closures: int, loops: int
) -> None:
    d = SHIPPED[name]()
    assert len(d.bodies) == bodies
    assert velocities(d) == nv_tree
    assert nv_tree - len(d.dependent) == nv
    assert (len(d.couplings), len(d.closures), len(d.loops)) == (couplings, closures, loops)


@pytest.mark.parametrize(
    ("name", "mass"),
    [  # the sum of all <mass> of the URDF file; JVRC-1 has seven additional rotors of 0.07 kg
        ("mini_cheetah", 8.912),
        ("mit_humanoid", 25.96855),
        ("tello", 16.136868),
        ("jvrc1_published", 61.75),
        ("jvrc1", 61.75 + 7 * 0.07),
        ("geared_chain", 12.0),
        ("four_bar", 9.9),
        ("planar_leg_linkage", 0.476),
    ],
)
def test_masses_are_the_published_ones(name: str, mass: float) -> None:
    assert sum(b.inertia.mass for b in SHIPPED[name]().bodies) == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize("name", SHIPPED)
def test_constraints_name_joints_of_the_robot(name: str) -> None:
    d = SHIPPED[name]()
    joints, bodies = {j.name: j for j in d.joints}, {b.name for b in d.bodies}
    assert len(joints) == len(d.joints) and len(bodies) == len(d.bodies)
    named = (
        {c.joint for c in d.couplings}
        | {j for c in d.couplings for j, _ in c.terms}
        | {j for c in d.closures for j in c.joints}
    )
    assert {*named, *d.dependent, *d.independent} <= set(joints)
    assert all(joints[j].type.nv == 1 for j in named)
    assert not set(d.dependent) & set(d.independent)
    assert {c.joint for c in d.couplings} <= set(d.dependent)
    assert {body for loop in d.loops for body in (loop.predecessor, loop.successor)} <= bodies
    assert pickle.loads(pickle.dumps(d)) == d


@pytest.mark.parametrize("name", SHIPPED)
def test_spanning_tree_has_a_positive_definite_mass_matrix(name: str) -> None:
    robot = fw.build(spanning_tree(SHIPPED[name]()), execution="interpreted")
    M = robot.mass_matrix(robot.random_configuration(rng=0))
    np.testing.assert_allclose(M, M.T, atol=1e-12 * np.abs(M).max())
    # Scaled to a unit diagonal: rotors are 1e-5 of a robot's mass and spin with less than 1e-9 of its inertia.
    scale = 1.0 / np.sqrt(np.diag(M))
    assert np.linalg.eigvalsh(scale[:, None] * M * scale)[0] > 1e-6


def test_ratios_are_the_published_ones() -> None:
    def ratios(d: Description) -> list[float]:
        return sorted(ratio for c in d.couplings for _, (ratio,) in c.terms)

    assert ratios(robots.mini_cheetah()) == [6.0] * 8 + [9.33] * 4
    assert ratios(robots.mit_humanoid()) == [6.0] * 12 + [9.0] * 2 + [12.0] * 6
    assert ratios(robots.tello()) == [6.0] * 8 + [9.0] * 2
    assert ratios(robots.jvrc1()) == [6.0] * 32
    assert ratios(robots.geared_chain(4)) == [6.0] * 4
    assert ratios(robots.belt_chain(4)) == [6.0] * 6


@pytest.mark.parametrize(
    ("d", "rotors", "links", "matrix"),
    [
        (
            robots.mit_humanoid(),
            ("left_hipy_to_knee_rotor", "left_hipy_to_ankle_rotor"),
            ("left_hipy_to_knee_link", "left_knee_to_ankle"),
            [[12, 0], [12, 12]],
        ),
        (robots.belt_chain(4), ("joint3r", "joint4r"), ("joint3", "joint4"), [[6, 0], [6, 6]]),
    ],
    ids=["mit_humanoid", "belt_chain"],
)
def test_belts_turn_the_second_rotor_with_both_links(
    d: Description, rotors: tuple[str, ...], links: tuple[str, ...], matrix: list[list[float]]
) -> None:
    terms = {c.joint: {joint: c1 for joint, (c1,) in c.terms} for c in d.couplings}
    assert [[terms[rotor].get(link, 0.0) for link in links] for rotor in rotors] == matrix


# ---- mirrored sides


def mirror_images(name: str) -> list[tuple[tuple[Body, Joint], tuple[Body, Joint]]]:
    d, (left, right) = SHIPPED[name](), SIDES[name]
    bodies, joints = {b.name: b for b in d.bodies}, {j.child: j for j in d.joints}
    pairs = [(b, b.replace(left, right)) for b in bodies if left in b]
    if name == "mini_cheetah":
        pairs += [(b, b.replace("HL", "HR")) for b in bodies if "HL" in b]
    return [((bodies[a], joints[a]), (bodies[b], joints[b])) for a, b in pairs]


@pytest.mark.parametrize(("name", "pairs"), [("mini_cheetah", 12), ("mit_humanoid", 18), ("jvrc1", 26)])
def test_sides_mirror_one_another(name: str, pairs: int) -> None:
    images = mirror_images(name)
    assert len(images) == pairs
    S = np.diag((1.0, -1.0, 1.0))
    for (body, joint), (other, opposite) in images:
        assert body.inertia.mass == other.inertia.mass
        np.testing.assert_array_equal(S @ body.inertia.center, other.inertia.center)
        np.testing.assert_array_equal(S @ symmetric(body.inertia.rotational) @ S, symmetric(other.inertia.rotational))
        np.testing.assert_array_equal(S @ joint.placement.p, opposite.placement.p)
        np.testing.assert_array_equal(S @ np.array(joint.placement.R) @ S, opposite.placement.R)
        assert joint.axis == opposite.axis


def test_tellos_legs_are_shifted_not_mirrored() -> None:
    d = robots.tello()
    bodies, joints = {b.name: b for b in d.bodies}, {j.child: j for j in d.joints}
    for name in ("hip-clamp", "hip-clamp-rotor", "hip-rotor-1", "gimbal", "thigh", "knee-ankle-rotor-2", "shin", "foot"):
        left, right = joints[f"left-{name}"], joints[f"right-{name}"]
        assert bodies[f"left-{name}"].inertia == bodies[f"right-{name}"].inertia
        assert left.placement.R == right.placement.R
        shift = np.subtract(left.placement.p, right.placement.p)
        np.testing.assert_array_equal(shift, [0.0, 0.252 if left.parent == "torso" else 0.0, 0.0])


def test_rotors_spin_about_their_heaviest_axis() -> None:
    for d in (robots.mini_cheetah(), robots.mit_humanoid(), robots.tello()):
        bodies = {b.name: b for b in d.bodies}
        for joint in d.joints:
            if "rotor" in joint.child:
                I = symmetric(bodies[joint.child].inertia.rotational)
                assert np.dot(joint.axis, I @ joint.axis) == I.max() > 0.0


# ---- Tello's differentials


@pytest.mark.parametrize(
    ("part", "links", "cranks"),
    [
        ("hip", (0.0, 0.0), (0.15685349478899663, 0.15685349478899663)),
        ("hip", (0.1, 0.2), (0.4549341463436637, 0.26970074142568196)),
        ("hip", (-0.2, 0.3), (0.27504611582592503, 0.6576601486724897)),
        ("knee_ankle", (0.0, 0.0), (4.5839007210002336e-05, -4.5839007210002336e-05)),
        ("knee_ankle", (0.5, 0.2), (0.30965774054372464, 0.6903422594562754)),
        ("knee_ankle", (0.9, -0.3), (1.1767956212189472, 0.623204378781053)),
    ],
)
def test_differentials_hold_at_the_known_solutions(part: str, links: tuple[float, ...], cranks: tuple[float, ...]) -> None:
    differential, of_links = (
        getattr(tello_humanoid, f"{part}_differential"),
        {"hip": hip_rotors, "knee_ankle": knee_ankle_rotors}[part],
    )
    rotors, near_zero = 6.0 * np.array(cranks), 0.0 if part == "hip" else 1e-14
    assert np.abs(differential(np.array([*rotors, *links]))).max() < 1e-12
    np.testing.assert_allclose(of_links(*links), rotors, rtol=1e-14, atol=near_zero)


def test_differentials_are_of_rotors_and_links_in_this_order() -> None:
    hip, leg = robots.tello().closures[:2]
    clamp, thigh = "left-hip-clamp-to", "left-thigh-to"
    assert hip.joints == (f"{clamp}-hip-rotor-1", f"{clamp}-hip-rotor-2", f"{clamp}-gimbal", "left-gimbal-to-thigh")
    assert leg.joints == (
        f"{thigh}-knee-ankle-rotor-1", f"{thigh}-knee-ankle-rotor-2", f"{thigh}-shin", "left-shin-to-foot"
    )  # fmt: skip
    assert hip.joints[:2] + leg.joints[:2] == robots.tello().independent[:4]
    assert {*hip.joints[2:], *leg.joints[2:]} <= set(robots.tello().dependent)


@pytest.mark.parametrize("closure", [tello_humanoid.hip_differential, tello_humanoid.knee_ankle_differential])
def test_differentials_accept_symbolic_coordinates(closure: Any) -> None:
    assert len(trace(closure, (4,)).outputs) == 2


# ---- loops


def gap(d: Description, q: dict[str, float]) -> float:
    """Return the distance between the two points of the loop joint [m]."""
    [loop] = d.loops
    ends = (
        fw.Frame("end", loop.predecessor, loop.predecessor_frame),
        fw.Frame("other", loop.successor, loop.successor_frame),
    )
    robot = fw.build(replace(spanning_tree(d), frames=ends), execution="interpreted")
    at = robot.frame_placement(["end", "other"])([q[j.name] for j in robot.joints])
    return float(np.abs(at[0, :3, 3] - at[1, :3, 3]).max())


GEOMETRIES = [  # lengths and offset angle of upstream's unit test of four-bars
    ((0.5, 1.0, 0.5, 1.0), 0.0),
    ((0.096, 0.031, 0.096, 0.031), 0.0),
    ((1.0, 1.0, 1.0, 1.0), 1.0),
    ((5.0, 12.0, 12.0, 10.0), 2.0),
]


@pytest.mark.parametrize("branch", [1, -1])
@pytest.mark.parametrize(("lengths", "offset_angle"), GEOMETRIES)
def test_four_bar_closes_at_its_configurations(lengths: tuple[float, ...], offset_angle: float, branch: int) -> None:
    d = robots.four_bar(lengths, offset_angle=offset_angle)
    for crank in (-2.0, 0.3, 1.2):
        q = linkages.four_bar_configuration(crank, lengths, offset_angle, branch)
        assert q[0] == crank
        assert gap(d, dict(zip(("joint1", "joint2", "joint3"), q, strict=True))) < 1e-13 * max(lengths)


def test_default_four_bar_closes_at_zero() -> None:
    assert gap(robots.four_bar(), {"joint1": 0.0, "joint2": 0.0, "joint3": 0.0}) == 0.0


@pytest.mark.parametrize("branch", [1, -1])
def test_six_bar_closes_at_its_configurations(branch: int) -> None:
    q = linkages.six_bar_configuration(0.4, -0.9, 1.3, branch)
    assert gap(robots.six_bar(), {f"joint{k + 1}": x for k, x in enumerate(q)}) < 1e-14


def test_planar_leg_closes_as_a_parallelogram() -> None:
    a = 0.7
    q = {"base_to_thigh": 0.4, "thigh_to_driver": a, "driver_to_foot": -a, "thigh_to_support": a}
    assert gap(robots.planar_leg_linkage(), q) < 1e-15


def test_four_bar_out_of_reach_is_refused() -> None:
    with pytest.raises(fw.ModelError, match="do not reach"):
        linkages.four_bar_configuration(math.pi, (1.0, 0.2, 0.2, 1.0))


@pytest.mark.parametrize("joint", ["joint1", "joint2", "joint3"])
def test_any_joint_of_the_four_bar_may_be_independent(joint: str) -> None:
    d = robots.four_bar(independent=joint)
    assert d.independent == (joint,)
    assert sorted(d.independent + d.dependent) == ["joint1", "joint2", "joint3"]


# ---- chains


@pytest.mark.parametrize("chain", [robots.geared_chain, robots.belt_chain])
def test_random_chains_are_their_seeds(chain: Any) -> None:
    assert chain(6, rng=3) == chain(6, rng=3)
    assert chain(6, rng=3) != chain(6, rng=4)
    ratios = [c1 for c in chain(40, rng=0).couplings for _, (c1,) in c.terms]
    assert all(ratio == int(ratio) >= 1 for ratio in ratios)
    assert len(set(ratios)) >= 4


@pytest.mark.parametrize(("chain", "n"), [(robots.geared_chain, 0), (robots.belt_chain, 3), (robots.belt_chain, 0)])
def test_chains_of_impossible_lengths_are_refused(chain: Any, n: int) -> None:
    with pytest.raises(ValueError, match="n: expected"):
        chain(n)


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="rotors: expected"):
        robots.jvrc1(rotors="some")
    with pytest.raises(ValueError, match="independent: expected"):
        robots.four_bar(independent="joint4")


# ---- without rotors


@pytest.mark.parametrize(
    ("name", "bodies", "nv"),  # from the *_approximate.urdf files of the same repository
    [("mini_cheetah", 13, 18), ("mit_humanoid", 19, 24), ("tello", 19, 24), ("jvrc1", 33, 38)],
)
def test_independent_tree_has_the_published_size(name: str, bodies: int, nv: int) -> None:
    for reduced in (robots.unconstrained(SHIPPED[name]()), robots.approximate(SHIPPED[name]())):
        assert (len(reduced.bodies), velocities(reduced)) == (bodies, nv)
        assert not any("rotor" in b.name for b in reduced.bodies)
        assert not reduced.couplings and not reduced.closures and not reduced.dependent
        assert fw.build(reduced).nv == nv


def test_armature_is_the_reflected_inertia_of_the_rotors() -> None:
    armature = {j.name: j.armature for j in robots.approximate(robots.mit_humanoid()).joints}
    assert armature["left_hipx_to_hipy_link"] == pytest.approx(36 * 5.548e-4, rel=1e-14)
    assert armature["left_knee_to_ankle"] == pytest.approx(144 * 1.6841e-4, rel=1e-14)
    assert armature["left_hipy_to_knee_link"] == pytest.approx(144 * (5.548e-4 + 1.6841e-4), rel=1e-14)
    assert all(j.armature == 0.0 for j in robots.unconstrained(robots.mit_humanoid()).joints)


@pytest.mark.parametrize("name", ["mini_cheetah", "mit_humanoid", "belt_chain", "random_geared_chain", "random_belt_chain"])
def test_approximation_is_exact_for_the_inertia_of_outermost_joints(name: str) -> None:
    """Check joints that move no rotors: their rotors add only N² I_rotor to the diagonal in G^T H G."""
    d = SHIPPED[name]()
    tree, reduced = (fw.build(x, execution="interpreted") for x in (spanning_tree(d), robots.approximate(d)))
    rows, columns = ({j.name: j.v_slice.start for j in robot.joints} for robot in (tree, reduced))
    G = np.zeros((tree.nv, reduced.nv))
    for joint in columns:
        G[rows[joint], columns[joint]] = 1.0
    for c in d.couplings:
        for joint, (ratio,) in c.terms:
            G[rows[c.joint], columns[joint]] = ratio
    exact = np.diag(G.T @ tree.mass_matrix(tree.neutral()) @ G)
    approximate = np.diag(reduced.mass_matrix(reduced.neutral()))
    outermost = [columns[j.name] for j in reduced.joints if j.child not in {k.parent for k in reduced.joints}]
    assert outermost
    np.testing.assert_allclose(approximate[outermost], exact[outermost], rtol=1e-12)


# a centipede


@pytest.mark.parametrize("segments", [1, 2, 7])
def test_a_centipede_has_the_joints_of_the_paper(segments: int) -> None:
    """Check Drumwright (2012), section 6.3: upper legs on spherical joints, lower legs on revolute ones."""
    d = robots.centipede(segments)
    robot = fw.build(d)
    assert robot.nv == 6 + (segments - 1) + 8 * segments
    assert (len(robot.bodies), len(robot.joints)) == (5 * segments, 5 * segments)
    types = [j.type for j in robot.joints if j.name.startswith(("hip", "knee"))]
    assert types.count(fw.JointType.SPHERICAL) == types.count(fw.JointType.CONTINUOUS) == 2 * segments
    assert robot.mass == pytest.approx(segments * (0.1 + 2 * (0.01 + 0.006)))


def test_a_centipede_stands_on_feet_in_two_rows() -> None:
    robot = fw.build(robots.centipede(3))
    for i in range(3):
        for side, y in (("left", 0.08), ("right", -0.08)):
            T = robot.frame_placement(f"foot-{i}-{side}")(robot.neutral())
            np.testing.assert_allclose(T[:3, 3], [-0.1 * i, y, -0.06], rtol=0.0, atol=1e-15)
    center = robot.center_of_mass(robot.neutral())
    np.testing.assert_allclose(center[:2], [-0.1, 0.0], rtol=0.0, atol=1e-15)


def test_a_centipede_is_symmetric() -> None:
    """Check that mirrored motions have mirrored legs: rotations about x and z change sign, those about y do not."""
    robot = fw.build(robots.centipede(2))
    rng = np.random.default_rng(0)
    v = np.zeros(robot.nv)
    mirrored = np.zeros(robot.nv)
    twist = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    columns = {j.name: j.v_slice for j in robot.joints}
    v[:6] = rng.standard_normal(6)
    mirrored[:6] = twist * v[:6]
    v[columns["bend-1"]] = rng.standard_normal(1)
    mirrored[columns["bend-1"]] = -v[columns["bend-1"]]
    for i in range(2):
        for part, signs in (("hip", [-1.0, 1.0, -1.0]), ("knee", [-1.0])):
            left, right = columns[f"{part}-{i}-left"], columns[f"{part}-{i}-right"]
            for one, other in ((left, right), (right, left)):
                v[one] = rng.standard_normal(len(signs))
                mirrored[other] = signs * v[one]
    q, mirrored_q = robot.integrate(robot.neutral(), 0.3 * v), robot.integrate(robot.neutral(), 0.3 * mirrored)
    for energy in (robot.kinetic_energy(q, v), robot.kinetic_energy(robot.neutral(), v)):
        assert energy > 1e-3
    assert robot.kinetic_energy(q, v) == pytest.approx(robot.kinetic_energy(mirrored_q, mirrored), rel=1e-12)
    for i in range(2):
        a, b = (robot.frame_placement(f"foot-{i}-{side}") for side in ("left", "right"))
        np.testing.assert_allclose(a(q)[:3, 3] * [1, -1, 1], b(mirrored_q)[:3, 3], rtol=0.0, atol=1e-14)


def test_a_centipede_needs_a_segment() -> None:
    with pytest.raises(ValueError, match="segments: expected 1 or more, got 0"):
        robots.centipede(0)
