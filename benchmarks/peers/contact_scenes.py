"""Contacts of robots on flat ground and of stacked boxes, with 3 to 3000 unknowns, for comparisons of contact solvers.

Drives hold the robot of a scene at rest, except for small velocities, so that in the next step some contacts stick, some slide
and some open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from measure import FILES, ROBOTS

import featherweight as fw
from featherweight.array_types import Array
from featherweight.contact.laws import Problem

STEP = 2e-3  # [s]
UPWARD = np.eye(6)[[2, 0, 1]]  # rows of a contact on flat ground: normal, tangents


@dataclass(frozen=True, eq=False)
class Scene:
    """A contact problem, and the same problem one step later."""

    name: str
    now: Problem
    later: Problem


def scene(
    name: str, robot: fw.Robot, q: Array, at: Sequence[fw.BilateralContact], v: Array, mu: float, W: Array | None = None
) -> Scene:
    """Return contacts of a robot that drives hold at rest, except for velocities v; contact rows are W times those of `at`."""
    J, A = robot.contact_jacobian(at)(q), robot.delassus(at, "pv-osim")(q)
    if W is not None:
        J, A = W @ J, W @ A @ W.T
    loose = [k for j in robot.joints if j.type == "floating" for k in range(j.v_slice.start, j.v_slice.stop)]
    gravity = robot.gravity_force(q)
    tau = gravity - J.T @ np.linalg.lstsq(J[:, loose].T, gravity[loose], rcond=None)[0]
    tau[loose] = 0.0
    none, k = np.zeros(0), len(A) // 3
    changed = v * (1.0 + 0.01 * np.random.default_rng(9).standard_normal(len(v)))
    b = [J @ (w + STEP * robot.forward_dynamics(q, w, tau)) for w in (v, changed)]
    first, second = (Problem(np.ascontiguousarray(A), x, np.full(k, mu), none, none) for x in b)
    return Scene(name, first, second)


def block(mass: float, x: float, y: float, z: float) -> fw.Inertia:
    """Return the inertia of a solid box with the lengths x, y, z."""
    xx, yy, zz = (mass / 12 * square for square in (y * y + z * z, x * x + z * z, x * x + y * y))
    return fw.Inertia(mass, (0.0, 0.0, 0.0), (xx, 0.0, 0.0, yy, 0.0, zz))


def at(x: float, y: float, z: float) -> Array:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def corners(x: float, y: float, z: float) -> list[Array]:
    return [at(i * x, j * y, z) for i in (-1, 1) for j in (-1, 1)]


def free_bodies(inertias: Sequence[fw.Inertia]) -> fw.Robot:
    names = [f"body{i}" for i in range(len(inertias))]
    bodies = [fw.Body(n, i) for n, i in zip(names, inertias, strict=True)]
    return fw.build(fw.describe(bodies, [fw.Joint(f"free{n}", fw.JointType.FLOATING, "world", n) for n in names]))


def point() -> Scene:
    robot = free_bodies([block(1.0, 0.1, 0.1, 0.1)])
    contact = [fw.BilateralContact("body0", rows=UPWARD, placement=at(0.0, 0.0, -0.05))]
    return scene("point on a cube", robot, robot.neutral(), contact, np.array([0.1, 0.05, -0.1, 0, 0, 0]), 0.5)


def box() -> Scene:
    robot = free_bodies([block(1.0, 0.4, 0.3, 0.2)])
    contacts = [fw.BilateralContact("body0", rows=UPWARD, placement=T) for T in corners(0.2, 0.15, -0.1)]
    return scene("box", robot, robot.neutral(), contacts, np.array([0.02, 0, 0, 0.25, 0.1, 0.1]), 0.5)


def talos() -> Scene:
    path, base = FILES["talos_reduced"]
    robot = fw.load(ROBOTS / path, base=base)
    q = robot.neutral()
    for joint in robot.joints:
        for k, angle in ((3, -0.411354), (4, 0.859395), (5, -0.448041)):
            if joint.name in (f"leg_left_{k}_joint", f"leg_right_{k}_joint"):
                q[joint.q_slice] = angle  # half-sitting, with the soles on the ground
    feet = [
        fw.BilateralContact(f"{s}_sole_link", rows=UPWARD, placement=T)
        for s in ("left", "right")
        for T in corners(0.1, 0.06, 0.0)
    ]
    v = 0.05 * np.random.default_rng(0).standard_normal(robot.nv)
    return scene("talos", robot, q, feet, v, 0.6)


def stack(heavy: float) -> Scene:
    """Return a stack of ten boxes; the top box is `heavy` times as heavy as the others."""
    half, n = np.array([0.2, 0.15, 0.1]), 10
    robot = free_bodies([block(1.0 if i < n - 1 else heavy, *2 * half) for i in range(n)])
    W = np.zeros((12 * n, 6 * n))
    for i in range(n):
        for c, T in enumerate(corners(half[0], half[1], 0.0)):
            rows = slice(12 * i + 3 * c, 12 * i + 3 * c + 3)
            for body, sign in ((i, 1.0), (i - 1, -1.0)):
                if body >= 0:
                    x, y, z = T[0, 3], T[1, 3], -sign * half[2]
                    across = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])
                    W[rows, 6 * body : 6 * body + 6] = sign * (UPWARD[:, :3] @ np.hstack([np.eye(3), across]))
    v = 0.01 * np.random.default_rng(1).standard_normal(robot.nv)
    contacts = [fw.BilateralContact(f"body{i}") for i in range(n)]
    name = "ten boxes" + (f", the top {heavy:g} times as heavy" if heavy != 1.0 else "")
    return scene(name, robot, robot.neutral(), contacts, v, 0.5, W)


def centipede(feet: int) -> Scene:
    """Return segments on joints about y, z and x in turn, with two legs of two joints each and point feet."""
    rng = np.random.default_rng(feet)
    bodies, joints, contacts = [], [], []
    for i in range(feet // 2):
        bodies.append(fw.Body(f"segment{i}", block(rng.uniform(0.5, 2.0), 0.1, 0.1, 0.05)))
        if i:
            axis = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))[i % 3]
            place = fw.Pose(p=(0.12, 0.0, 0.0))
            joints.append(
                fw.Joint(f"spine{i}", fw.JointType.REVOLUTE, f"segment{i - 1}", f"segment{i}", place, axis, armature=0.01)
            )
        for side, name in ((1.0, f"left{i}"), (-1.0, f"right{i}")):
            bodies += [fw.Body("hip" + name, block(0.1, 0.03, 0.03, 0.03)), fw.Body("leg" + name, block(0.2, 0.02, 0.1, 0.05))]
            for kind, parent, child, y, axis in (
                ("yaw", f"segment{i}", "hip" + name, 0.06, (0.0, 0.0, 1.0)),
                ("lift", "hip" + name, "leg" + name, 0.03, (1.0, 0.0, 0.0)),
            ):
                place = fw.Pose(p=(0.0, side * y, 0.0))
                joints.append(fw.Joint(kind + name, fw.JointType.REVOLUTE, parent, child, place, axis, armature=0.01))
            contacts.append(
                fw.BilateralContact("leg" + name, rows=UPWARD, placement=at(rng.uniform(-0.02, 0.02), side * 0.1, -0.1))
            )
    robot = fw.build(fw.describe(bodies, joints), base="floating", execution="rolled")
    v = 0.2 * rng.standard_normal(robot.nv)
    v[:3] *= 0.05
    v[3:6] /= feet
    for joint in robot.joints:
        if joint.name.startswith("spine"):
            v[joint.v_slice] /= feet  # distant feet would be fast
    return scene(f"centipede, {feet} feet", robot, robot.neutral(), contacts, v, 0.6)


SCENES: dict[str, Callable[[], Scene]] = {
    "point": point,
    "box": box,
    "talos": talos,
    "stack": lambda: stack(1.0),
    "heavy": lambda: stack(1000.0),
    **{f"centipede{n}": (lambda n=n: centipede(n)) for n in (30, 100, 300, 1000)},  # type: ignore[misc]
}
