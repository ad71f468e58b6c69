"""Damping along tendons and frames at the end of a step, as in steps of MuJoCo.

A damper with the coefficient d along a length, whose rate is S v, adds h d Sᵀ S to the mass matrix. MuJoCo keeps the elements
of joints of which one is on the path from the other to the root, as in the mass matrix, and leaves out those of two branches.
With the part Pᵢ of S on the path to the joint i, and the number cᵢ of the next joints with a part in S, what is left is

    sum of (1 - cᵢ) h d Pᵢᵀ Pᵢ

over the joints i with a part in S: one term where S has a single branch.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from ...array_types import Integers, Matrix, Shared, Vector
from ...model.topology import Topology
from ...robot.robot import Robot
from .at_joints import ForcesAtJoints


class DampedLengths(NamedTuple):
    """The terms of all such lengths of a robot; may be empty."""

    row: Shared[Integers]  # (k,) the length
    on_path: Shared[Matrix]  # (k, nv) 1 for velocities of the path, else 0
    sign: Shared[Vector]  # (k,) 1 - cᵢ
    damping: Vector  # (k,) [N s/m, N m s] of a damper and of drives within their limits, times the sign
    direction: Matrix  # (k, nv) Pᵢ
    response: Matrix  # (k, nv) acceleration by a unit force along it
    share: Vector  # (k,) force along the direction, as a share of the acceleration along it
    load: Vector  # (nv,) forces of the step
    acceleration: Vector  # (nv,) acceleration under these


def damped_lengths(robot: Robot, forces: ForcesAtJoints, rows: list[int]) -> DampedLengths:
    """Return the terms of some rows of lengths."""
    terms: list[tuple[float, int, list[int]]] = []
    topology = Topology(robot.parent)
    for row, moved in forces.moved_by(rows).items():
        paths = {i: [j for j in topology.support(i) if j in moved] for i in moved}
        following = Counter(path[-2] for path in paths.values() if len(path) > 1)
        terms += [(1.0 - following[i], row, path) for i, path in paths.items() if following[i] != 1]
    terms.sort(key=lambda term: -term[0])  # branches meet last, so that the matrix remains positive definite
    k, n = len(terms), robot.nv if terms else 0
    on_path = np.zeros((k, n))
    for term, (_, _, path) in enumerate(terms):
        on_path[term, path] = 1.0
    rows_of_terms, signs = np.array([row for _, row, _ in terms], np.int64), np.array([sign for sign, _, _ in terms])
    damping, share, load, acceleration = np.zeros(k), np.zeros(k), np.zeros(n), np.zeros(n)
    work = np.zeros((k, n)), np.zeros((k, n))
    return DampedLengths(rows_of_terms, on_path, signs, damping, *work, share, load, acceleration)


def write_directions(x: DampedLengths, S: Matrix) -> None:
    for k in range(len(x.row)):
        for i in range(x.on_path.shape[1]):
            x.direction[k, i] = x.on_path[k, i] * S[x.row[k], i]


def subtract_response(x: DampedLengths, k: int, acceleration: Vector) -> None:
    """Subtract the response to the force of a term at an acceleration."""
    along = 0.0
    for i in range(len(acceleration)):
        along += x.direction[k, i] * acceleration[i]
    for i in range(len(acceleration)):
        acceleration[i] -= x.share[k] * along * x.response[k, i]
