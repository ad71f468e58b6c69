"""Mechanisms with loops that tests share: every loop type, in the plane and in space."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import featherweight as fw
from featherweight import robots
from featherweight.model.generators import chain, from_parents, unbranched_parents
from featherweight.model.types import WORLD, Closure, Coupling, Loop, LoopType, Pose, as_matrix, as_vector

HINGE, SLIDE, BALL = fw.JointType.REVOLUTE, fw.JointType.PRISMATIC, fw.JointType.SPHERICAL
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def closed(description: fw.Description, **options: Any) -> fw.ClosedRobot:
    """Return a robot with loops or couplings; the return type of `build` says only that it is a robot."""
    robot = fw.build(description, **options)
    assert isinstance(robot, fw.ClosedRobot)
    return robot


def body(name: str, mass: float = 1.0) -> fw.Body:
    return fw.Body(name, fw.Inertia(mass, (0.3, 0.02, 0.05), (0.1, 0.01, 0.0, 0.2, 0.02, 0.25)))


def at(x: float, y: float, z: float = 0.0) -> Pose:
    return Pose(p=(x, y, z))


def bodies(*names: str) -> tuple[fw.Body, ...]:
    return tuple(body(name) for name in names)


def crank_and_rocker() -> fw.Description:
    """Return a spatial mechanism: a crank, a rod on a ball joint, and a rocker about a skew axis, on a ball at the rod's
    end."""
    joints = (
        fw.Joint("crank", HINGE, WORLD, "a", Pose(), Z),
        fw.Joint("ball", BALL, "a", "b", at(0.3, 0.0)),
        fw.Joint("rocker", HINGE, WORLD, "c", at(1.0, 0.2, 0.1), (0.0, 0.8, 0.6)),
    )
    loop = Loop("rod", LoopType.SPHERICAL, "b", "c", at(1.0, 0.0), at(0.0, 0.1, 0.7))
    return fw.Description("crank_and_rocker", "made", bodies("a", "b", "c"), joints, loops=(loop,), independent=("crank",))


def platform() -> fw.Description:
    """Return a flying platform on three legs that end in balls on the ground."""
    joints = [fw.Joint("flight", fw.JointType.FLOATING, WORLD, "plate")]
    made = [body("plate", 3.0)]
    loops = []
    for k, (x, y) in enumerate(((0.3, 0.0), (-0.2, 0.3), (-0.2, -0.3))):
        joints += [fw.Joint(f"hip{k}", HINGE, "plate", f"leg{k}", at(x, y, -0.1), X)]
        joints += [fw.Joint(f"slide{k}", SLIDE, f"leg{k}", f"shank{k}", at(0.0, 0.0, -0.3), Z)]
        made += [body(f"leg{k}", 0.5), body(f"shank{k}", 0.3)]
        loops.append(Loop(f"foot{k}", LoopType.SPHERICAL, WORLD, f"shank{k}", at(1.2 * x, 1.3 * y, -1.0), at(0.0, 0.0, -0.4)))
    return fw.Description("platform", "made", tuple(made), tuple(joints), loops=tuple(loops))


def of_type(kind: LoopType) -> Callable[[], fw.Description]:
    """Return a chain of seven general joints, some prismatic, whose end is held at its current place by a loop joint."""

    def make() -> fw.Description:
        made = from_parents(unbranched_parents(8), rng=3, joint_types=("revolute", "prismatic"), masses=(0.5, 2.0))
        robot = fw.build(made)
        q = robot.random_configuration(rng=5)
        last = made.joints[-1].child
        T = robot.frame_placement(last)(q)
        place = Pose(as_matrix(T[:3, :3]), as_vector(T[:3, 3]))
        return dataclasses.replace(made, name=f"chain_{kind}", loops=(Loop("end", kind, WORLD, last, place),))

    return make


def two_loops_on_one_body() -> fw.Description:
    """Return two spatial loops that share a body: one cluster."""
    joints = (
        fw.Joint("a", HINGE, WORLD, "a", Pose(), Z),
        fw.Joint("b", BALL, "a", "b", at(0.5, 0.0)),
        fw.Joint("c", BALL, WORLD, "c", at(1.0, 0.0)),
        fw.Joint("d", BALL, WORLD, "d", at(1.0, 0.8)),
        fw.Joint("e", HINGE, "b", "e", at(0.3, 0.0, 0.1), X),
    )
    loops = (
        Loop("first", LoopType.SPHERICAL, "b", "c", at(0.7, 0.1, 0.0), at(0.1, 0.5, 0.2)),
        Loop("second", LoopType.SPHERICAL, "b", "d", at(0.4, 0.3, 0.2), at(0.2, -0.3, 0.4)),
    )
    return fw.Description("two_loops", "made", bodies("a", "b", "c", "d", "e"), joints, loops=loops)


def coupled_across_branches() -> fw.Description:
    """Return a tree with a floating root and couplings, of higher degree and in sequence, between joints of different
    branches.
    """
    made = from_parents([-1, 0, 1, 1, 3, 0, 5, 6], rng=4, joint_types=("revolute", "prismatic"), masses=(0.5, 2.0))
    root = dataclasses.replace(made.joints[0], type=fw.JointType.FLOATING)
    couplings = (
        Coupling("gear", "joint4", (("joint2", (2.5,)),)),
        Coupling("cam", "joint7", (("joint5", (0.5, -0.3, 0.1)),), 0.2),
        Coupling("sum", "joint6", (("joint7", (1.5,)), ("joint5", (-0.5,)))),
    )
    return dataclasses.replace(made, name="coupled", joints=(root, *made.joints[1:]), couplings=couplings)


def with_locked_link() -> fw.Description:
    """Return a robot with a link that a coupling without terms holds at an angle; its parent and its child move."""
    couplings = (Coupling("lock", "joint4", (), 0.3), Coupling("gear", "joint3", (("joint1", (2.0,)),)))
    return dataclasses.replace(from_parents([-1, 0, 0, 0, 3, 4], rng=1), name="locked", couplings=couplings)


def with_repeated_term() -> fw.Description:
    """Return a coupling that names the same joint twice: its terms add up."""
    coupling = Coupling("twice", "joint3", (("joint1", (2.0,)), ("joint1", (0.5, 0.3))))
    return dataclasses.replace(from_parents([-1, 0, 0, 0, 3, 4], rng=1), name="repeated", couplings=(coupling,))


def geared_linkage() -> fw.Description:
    """Return a four-bar whose crank turns with a gear, and which carries a chain."""
    base = robots.four_bar()
    joints = (*base.joints, fw.Joint("gear", HINGE, WORLD, "wheel", at(0.0, 0.3), Z))
    joints += (fw.Joint("carried", HINGE, base.joints[1].child, "arm", at(0.2, 0.1), X),)
    coupling = Coupling("teeth", "gear", ((base.joints[0].name, (-3.0,)),))
    return dataclasses.replace(
        base, name="geared", bodies=(*base.bodies, *bodies("wheel", "arm")), joints=joints, couplings=(coupling,)
    )


def flying_linkage() -> fw.Description:
    """Return a flying body with the linkage of `crank_and_rocker`, each body of which carries arms; one arm turns a wheel."""
    base = crank_and_rocker()
    on_torso = (dataclasses.replace(j, parent="torso" if j.parent == WORLD else j.parent) for j in base.joints)
    joints = (
        fw.Joint("flight", fw.JointType.FLOATING, WORLD, "torso"),
        *on_torso,
        fw.Joint("arm_a", HINGE, "a", "arm_a", at(0.1, 0.2), X),
        fw.Joint("slide_b", SLIDE, "b", "slide_b", at(0.2, 0.1, 0.3), Y),
        fw.Joint("arm_b", HINGE, "slide_b", "arm_b", at(0.0, 0.3), Z),
        fw.Joint("other_b", HINGE, "b", "other_b", at(0.5, 0.0, -0.1), Y),
        fw.Joint("arm_c", HINGE, "c", "arm_c", at(0.0, 0.2, 0.1), X),
        fw.Joint("wheel_c", HINGE, "c", "wheel_c", at(0.1, 0.0), Y),
    )
    made = (body("torso", 3.0), *base.bodies, *bodies(*(j.child for j in joints[4:])))
    gear = Coupling("teeth", "wheel_c", (("arm_c", (-3.0,)),))
    return dataclasses.replace(base, name="flying_linkage", bodies=made, joints=joints, couplings=(gear,))


def on_several_bodies() -> fw.Description:
    """Return the mechanism of Chignoli et al., figure 5, whose clusters of two or three bodies hang on bodies of another."""
    made = from_parents([-1, 0, 1, 0, 3, 0, 1], rng=5, joint_types=("revolute", "prismatic"), masses=(0.5, 2.0))
    couplings = (
        Coupling("first", "joint2", (("joint0", (0.7,)), ("joint1", (-1.1, 0.2)))),
        Coupling("second", "joint4", (("joint3", (2.0,)),)),
        Coupling("third", "joint6", (("joint5", (-3.0,)),)),
    )
    return dataclasses.replace(made, name="several", couplings=couplings)


def with_rotors_two_links_up() -> fw.Description:
    """Return a flying chain of four links on hinges and a ball, with rotors two links up.

    One rotor drives a four-bar on the third link; a branch on the second link and a rotor of the first turn together.
    """
    made = from_parents([-1, 0, 1, 2, 3, 0, 1, 2, 2], rng=6, masses=(0.5, 2.0))
    joints = list(made.joints)
    for k, kind in ((0, fw.JointType.FLOATING), (4, BALL)):
        joints[k] = dataclasses.replace(joints[k], type=kind, lower=-np.inf, upper=np.inf)
    names = [b.name for b in made.bodies]
    bars = [("crank", names[3], (0.1, 0.0)), ("coupler", "crank", (0.2, 0.1)), ("rocker", names[3], (0.5, 0.0))]
    joints += [fw.Joint(name, HINGE, parent, name, at(*place), Z) for name, parent, place in bars]
    joints += [fw.Joint("rotor", HINGE, names[1], "rotor", at(0.1, 0.2, 0.3), (0.0, 0.6, 0.8))]
    loop = Loop("bars", LoopType.REVOLUTE, "coupler", "rocker", at(0.3, 0.0), at(0.1, 0.1))
    couplings = (
        Coupling("second", "joint5", (("joint2", (4.0,)),)),
        Coupling("third", "joint6", (("joint3", (-5.0,)),)),
        Coupling("motor", "rotor", (("crank", (3.0,)),)),
        Coupling("together", "joint8", (("joint7", (0.5,)), ("joint1", (1.5, 0.3)))),
    )
    made_bodies = (*made.bodies, *bodies("crank", "coupler", "rocker", "rotor"))
    return dataclasses.replace(
        made, name="rotors_up", bodies=made_bodies, joints=tuple(joints), couplings=couplings, loops=(loop,)
    )


def coupled_at_random(seed: int) -> fw.Description:
    """Return a random tree, often long, with random couplings and sometimes a floating root, balls and armatures."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 11))
    parents = [-1] + [k - 1 if rng.random() < 0.5 else int(rng.integers(0, k)) for k in range(1, n)]
    made = from_parents(parents, rng=seed, joint_types=("revolute", "prismatic"), masses=(0.5, 2.0))
    balls = set(rng.choice(n, 1)) if rng.random() < 0.3 else set()
    joints = [
        dataclasses.replace(j, type=BALL if k in balls else j.type, armature=0.0 if k in balls else rng.choice([0.0, 0.1]))
        for k, j in enumerate(made.joints)
    ]
    if rng.random() < 0.4:
        joints[0] = dataclasses.replace(joints[0], type=fw.JointType.FLOATING, armature=0.0)
    hinges = [j.name for j in joints if j.type not in (BALL, fw.JointType.FLOATING)]
    couplings: list[Coupling] = []
    for follower in rng.choice(hinges, min(3, len(hinges) // 2), replace=False):
        others = [name for name in hinges if name != follower and name not in {c.joint for c in couplings}]
        leaders = rng.choice(others, int(rng.integers(1, 3)), replace=False)
        hinges = [name for name in hinges if name not in (follower, *leaders)] + [str(name) for name in leaders]
        terms = tuple((str(name), tuple(map(float, rng.uniform(-2.0, 2.0, int(rng.integers(1, 3)))))) for name in leaders)
        couplings.append(Coupling(f"to {follower}", str(follower), terms, float(rng.uniform(-1.0, 1.0))))
    return dataclasses.replace(made, name=f"coupled_{seed}", joints=tuple(joints), couplings=tuple(couplings))


def ladder(n: int) -> fw.Description:
    """Return two chains of n links on a floating body, where the joints of one follow those of the other."""
    made = from_parents([-1, 0, *range(1, n), 0, *range(n + 1, 2 * n)], rng=n)
    root = dataclasses.replace(made.joints[0], type=fw.JointType.FLOATING)
    couplings = tuple(Coupling(f"rung {k}", f"joint{n + k}", ((f"joint{k}", (0.8,)),)) for k in range(1, n + 1))
    return dataclasses.replace(made, name=f"ladder_{n}", joints=(root, *made.joints[1:]), couplings=couplings)


def with_own_constraint() -> fw.Description:
    """Return a chain with a constraint function between two joints."""

    def tied(q: np.ndarray) -> list[object]:
        return [np.sin(q[0]) + 0.3 * q[1] * q[1] - np.cos(q[2]) * 0.5]

    closure = Closure("tie", ("joint1", "joint2", "joint4"), tied)
    return dataclasses.replace(chain(6, rng=8), name="own", closures=(closure,))


MECHANISMS: dict[str, Callable[[], fw.Description]] = {
    "four_bar": robots.four_bar,
    "six_bar": robots.six_bar,
    "planar_leg": robots.planar_leg_linkage,
    "crank_and_rocker": crank_and_rocker,
    "platform": platform,
    "two_loops": two_loops_on_one_body,
    "coupled": coupled_across_branches,
    "locked": with_locked_link,
    "repeated": with_repeated_term,
    "geared": geared_linkage,
    "flying_linkage": flying_linkage,
    "own": with_own_constraint,
    "several": on_several_bodies,
    "rotors_up": with_rotors_two_links_up,
    **{f"chain_{kind}": of_type(kind) for kind in LoopType},
    "geared_chain": lambda: robots.geared_chain(4, rng=1),
    "belt_chain": lambda: robots.belt_chain(4, rng=2),
    "mini_cheetah": robots.mini_cheetah,
    "tello": robots.tello,
}
