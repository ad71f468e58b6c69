"""Contacts of random pairs of shapes of every type: differences from MuJoCo and coal, and processor time per pair.

`contact_geometry.py [pairs of each kind]`. Distances are compared for separate shapes, depths for overlapping ones. The other
libraries are approximate for curved shapes, to 1e-6 of their size. The last column is therefore an exact criterion: the
difference between the gap and that of the two planes across the normal that touch the shapes.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import coal
import mujoco
import numpy as np
from coal_shapes import coal_geometry
from contact_pairs import PAIRS, PlacedShape, TouchingPair, Type, random_rotation, random_shape, support_gap
from measure import machine, markdown

import featherweight as fw
from featherweight.array_types import Array, IntegerMatrix, Integers, Matrix, Tensor, Tensor4
from featherweight.collision.collision_scene import CollisionScene, CollisionWork
from featherweight.collision.detection import ContactPoints, find_contacts
from featherweight.engine.loops.kernels import compiled

FAR = 2.0  # [m] reach
STEP = 1e-3  # [s]
STATES = 100  # of each pair of shapes
ROOM = 9
HEADER = [
    "pair", "ours [µs]", "MuJoCo [µs]", "coal [µs]", "from MuJoCo [m]", "from coal [m]", "from touching planes [m]"
]  # fmt: skip
GEOMS = {
    Type.SPHERE: "sphere",
    Type.CAPSULE: "capsule",
    Type.BOX: "box",
    Type.CYLINDER: "cylinder",
    Type.ELLIPSOID: "ellipsoid",
}


def random_states(pair: TouchingPair, rng: np.random.Generator) -> Array:
    """Return placements (states, 2, 4, 4), about half of which overlap."""
    T = np.tile(np.eye(4), (STATES, 2, 1, 1))
    for i in range(STATES):
        one, other = (PlacedShape(s, random_rotation(rng), np.zeros(3)) for s in pair.shapes)
        d = rng.normal(size=(1, 3))
        d = other.R[None, :, 2] if other.shape.type is Type.PLANE else d / np.linalg.norm(d)
        T[i, 0, :3, :3], T[i, 1, :3, :3] = one.R, other.R
        T[i, 0, :3, 3] = d[0] * (rng.uniform(-0.2, 0.1) - float(support_gap(one, other, d)[0]))
    return T


class ContactsOfStates(NamedTuple):
    """`ContactPoints` of many states."""

    candidate: IntegerMatrix  # (states, ROOM)
    a: IntegerMatrix
    b: IntegerMatrix
    point: Tensor  # (states, ROOM, 3)
    normal: Tensor
    gap: Matrix


@compiled
def find_contacts_of_states(
    stop: int,
    scene: CollisionScene,
    placement: Tensor4,
    still: Matrix,
    margin: float,
    contacts: ContactsOfStates,
    counts: Integers,
    work: CollisionWork,
) -> None:
    """Find the contacts of states 0 to `stop` of static bodies, and the number of contacts of each state."""
    for i in range(stop):
        own = ContactPoints(
            contacts.candidate[i], contacts.a[i], contacts.b[i], contacts.point[i], contacts.normal[i], contacts.gap[i]
        )
        counts[i] = find_contacts(scene, placement[i], still, STEP, margin, own, work)


def ours(pair: TouchingPair, T: Array) -> tuple[Array, Array, float]:
    """Return the smallest gaps (states,), their normals (states, 3), and the time [us]."""
    n, still = len(T), np.zeros((2, 6))
    candidate, a, b = (np.zeros((n, ROOM), np.int64) for _ in range(3))
    contacts = ContactsOfStates(candidate, a, b, np.zeros((n, ROOM, 3)), np.zeros((n, ROOM, 3)), np.zeros((n, ROOM)))
    counts = np.zeros(n, np.int64)
    find_contacts_of_states(1, pair.scene, T, still, FAR, contacts, counts, pair.work)
    begun = time.thread_time()
    find_contacts_of_states(n, pair.scene, T, still, FAR, contacts, counts, pair.work)
    wall = time.thread_time() - begun
    gap = np.where(np.arange(ROOM) < counts[:, None], contacts.gap, np.inf)
    best = gap.argmin(axis=1)
    rows = np.arange(n)
    return gap[rows, best], contacts.normal[rows, best], 1e6 * wall / n


def by_mujoco(pair: TouchingPair, T: Array) -> tuple[Array, float] | None:
    """Return distances (states,) by `mj_geomDistance` and the time [us], or None for meshes and planes."""
    if any(s.type not in GEOMS for s in pair.shapes):
        return None
    sizes = [" ".join(str(x) for x in PlacedShape(s, np.eye(3), np.zeros(3)).size) for s in pair.shapes]
    geoms = [f'<geom type="{GEOMS[s.type]}" size="{size}"/>' for s, size in zip(pair.shapes, sizes, strict=True)]
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{''.join(geoms)}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    distance, wall = np.empty(len(T)), 0.0
    for i, placements in enumerate(T):
        data.geom_xpos[:] = placements[:, :3, 3]
        data.geom_xmat[:] = placements[:, :3, :3].reshape(2, 9)
        begun = time.thread_time()
        distance[i] = mujoco.mj_geomDistance(model, data, 0, 1, FAR, None)
        wall += time.thread_time() - begun
    return distance, 1e6 * wall / len(T)


def by_coal(pair: TouchingPair, T: Array) -> tuple[Array, float]:
    """Return distances (states,) and the time [us]."""
    one, other = (coal_geometry(s) for s in pair.shapes)
    query, request, result = coal.ComputeDistance(one, other), coal.DistanceRequest(), coal.DistanceResult()
    distance, wall = np.empty(len(T)), 0.0
    for i, placements in enumerate(T):
        poses = [coal.Transform3s(P[:3, :3], P[:3, 3]) for P in placements]
        result.clear()
        begun = time.thread_time()
        distance[i] = query(*poses, request, result)
        wall += time.thread_time() - begun
    return distance, 1e6 * wall / len(T)


def support_error(pair: TouchingPair, T: Array, gap: Array, normal: Array) -> float:
    """Return the largest difference between gaps and those of the planes across their normals."""
    worst = 0.0
    for placements, g, n in zip(T, gap, normal, strict=True):
        if np.isfinite(g):
            one, other = (PlacedShape(s, P[:3, :3], P[:3, 3]) for s, P in zip(pair.shapes, placements, strict=True))
            worst = max(worst, abs(float(support_gap(one, other, n[None])[0]) - g))
    return worst


def compare(a: fw.ShapeType, b: fw.ShapeType, count: int, rng: np.random.Generator) -> list[str]:
    """Return a row of the table."""
    worst, times, rounds = np.zeros(3), np.zeros(3), max(1, count // STATES)
    for _ in range(rounds):
        pair = TouchingPair(random_shape(a, "a", rng), random_shape(b, "b", rng))
        T = random_states(pair, rng)
        gap, normal, took = ours(pair, T)
        peers = [by_mujoco(pair, T), by_coal(pair, T)]
        times += [took, *(p[1] if p else np.nan for p in peers)]
        for k, p in enumerate(peers):
            if p:
                near = p[0] < 0.9 * FAR
                worst[k] = max(worst[k], float(np.abs(p[0] - gap)[near].max(initial=0.0)))
        worst[2] = max(worst[2], support_error(pair, T, gap, normal))
    us = ["" if np.isnan(t) else f"{t / rounds:.2f}" for t in times]
    return [f"{a}, {b}", *us, *("" if t == "" else f"{w:.0e}" for t, w in zip((*us[1:], us[0]), worst, strict=True))]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rng = np.random.default_rng(0)
    print(f"{machine()}; MuJoCo {mujoco.__version__}, coal {coal.__version__}; {count} states of each pair\n")
    print(markdown(HEADER, []), flush=True)
    for a, b in PAIRS:
        print(markdown(compare(a, b, count, rng), []).splitlines()[0], flush=True)


if __name__ == "__main__":
    main()
