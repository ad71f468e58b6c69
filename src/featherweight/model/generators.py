"""Generated robots: chains, random trees, and the tree topologies of Featherstone (2005), section 4.2.

A topology is a parent array: `parents[i]` is the parent of body i, -1 for the ground, and parents[i] < i. `from_parents` turns
it into a robot of general geometry: bodies "body0", "body1", ... on joints "joint0", "joint1", ..., with random placements,
axes, masses and inertias. All random numbers come from `rng`, a seed or a generator. The arrays of the named topologies are
numbered depth-first, so that joint i of the description is joint i of the robot.

SI units throughout. Joint offsets are 0.1 to 0.3 m long; a body is a solid ellipsoid with semi-axes of 0.05 to 0.3 m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..checks import Fraction, Seed, checked
from ..spatial.elementary import exp, log
from ..spatial.ordered import product, total
from ..spatial.vectors import rotation_from_quaternion
from .description import Description
from .random_numbers import uniform, unit_vectors
from .types import WORLD, Body, Inertia, Joint, JointType, Pose, as_matrix, as_vector

MOVING = tuple(kind for kind in JointType if kind is not JointType.FIXED)


@checked
def chain(n: int, *, joint: JointType | Any = "revolute", rng: Seed = 0) -> Description:
    """Return a chain of `n` bodies, on joints of the type `joint`, with general geometry and inertias of 0.5 to 5 kg."""
    return from_parents(unbranched_parents(n), rng=rng, joint_types=(joint,), name=f"chain_{n}")


@checked
def random_tree(
    n: int,
    *,
    rng: Seed,
    branching: float = 0.5,
    joint_types: Sequence[JointType | Any] = MOVING,
    masses: tuple[float, float] = (1e-4, 1e4),
) -> Description:
    """Return a random tree of `n` bodies, for tests of every kind of robot.

    The first joint is on the ground. The parent of each later body is, with probability `branching`, a uniformly random
    earlier body, otherwise the body before it: 0 gives a chain, 1 a uniformly random recursive tree. Its joint's type is a
    uniformly random one of `joint_types`; half of the axes lie along ±x, ±y or ±z. Masses are log-uniform between the two in
    `masses` [kg].

    Raises ValueError if `n` < 1 or `branching` is outside [0, 1], and as `from_parents` does.
    """
    _positive("n", n)
    if not 0 <= branching <= 1:
        raise ValueError(f"branching: expected a probability between 0 and 1, got {branching}")
    rng = np.random.default_rng(rng)
    parents = [-1]
    for i in range(1, n):
        parents.append(int(rng.integers(i)) if rng.random() < branching else i - 1)
    return from_parents(parents, rng=rng, joint_types=joint_types, masses=masses, aligned=0.5, name=f"random_tree_{n}")


@checked
def from_parents(
    parents: Sequence[int],
    *,
    rng: Seed = 0,
    joint_types: Sequence[JointType | Any] = (JointType.REVOLUTE,),
    masses: tuple[float, float] = (0.5, 5.0),
    aligned: Fraction = 0.0,
    name: str = "tree",
) -> Description:
    """Return the robot with the topology `parents`, -1 for the ground, and random geometry and inertias.

    Types are drawn uniformly from `joint_types`. `masses` [kg] are the ends of a log-uniform distribution. `aligned` is the
    fraction of joint axes that lie along ±x, ±y or ±z of the child's frame; the others have any direction. Limits are at most
    [-π, π] rad for revolute joints and [-0.5, 0.5] m for prismatic joints; other joints have none.

    Raises ValueError if a parent does not come before its child, a joint type is unknown, or the masses are not a range of
    positive numbers.
    """
    for i, parent in enumerate(parents):
        if not -1 <= parent < i:
            raise ValueError(f"parents[{i}]: expected an earlier body or -1 for the ground, got {parent}")
    if not 0 < masses[0] <= masses[1] < math.inf:
        raise ValueError(f"masses: expected 0 < lightest <= heaviest, got {masses}")
    if not joint_types:
        raise ValueError("joint_types: expected at least one type, got none")
    types = [JointType(kind) for kind in joint_types]
    rng = np.random.default_rng(rng)
    bodies, joints = [], []
    for i, parent in enumerate(parents):
        above = WORLD if parent < 0 else f"body{parent}"
        joints.append(_joint(rng, f"joint{i}", types[rng.integers(len(types))], above, f"body{i}", aligned))
        bodies.append(Body(f"body{i}", random_inertia(rng, masses)))
    return Description(name, f"generated: {name}", tuple(bodies), tuple(joints))


# ---- the topologies of Featherstone (2005), table 2 and figure 4


def unbranched_parents(n: int) -> list[int]:
    """Return an unbranched chain of `n` bodies."""
    return list(range(-1, _positive("n", n) - 1))


def short_side_branches_parents(m: int) -> list[int]:
    """Return a chain of `m` bodies, each with a side branch of one body: n = 2m (figure 4a)."""
    return [parent for k in range(_positive("m", m)) for parent in (2 * k - 2 if k else -1, 2 * k)]


def balanced_tree_parents(m: int) -> list[int]:
    """Return a balanced binary tree of `m` levels: n = 2^m - 1 (figure 4b)."""
    if _positive("m", m) == 1:
        return [-1]
    half = balanced_tree_parents(m - 1)
    return [-1, *(p + 1 for p in half), *(p + 1 + len(half) if p >= 0 else 0 for p in half)]


def span_grid_parents(m: int) -> list[int]:
    """Return a spanning tree of the m × m grid with the shortest paths to the root at one corner: n = m² (figure 4c).

    Of several such trees, this is the one in which the first column is a chain, and each row is a chain that starts there.
    """
    rows = range(_positive("m", m))
    return [row * m + column - 1 if column else (row - 1) * m if row else -1 for row in rows for column in range(m)]


@checked
def unbranched(n: int, *, rng: Seed = 0) -> Description:
    """Return the robot of `unbranched_parents(n)` with revolute joints."""
    return from_parents(unbranched_parents(n), rng=rng, name=f"unbranched_{n}")


@checked
def short_side_branches(m: int, *, rng: Seed = 0) -> Description:
    """Return the robot of `short_side_branches_parents(m)` with revolute joints."""
    return from_parents(short_side_branches_parents(m), rng=rng, name=f"short_side_branches_{m}")


@checked
def balanced_tree(m: int, *, rng: Seed = 0) -> Description:
    """Return the robot of `balanced_tree_parents(m)` with revolute joints."""
    return from_parents(balanced_tree_parents(m), rng=rng, name=f"balanced_tree_{m}")


@checked
def span_grid(m: int, *, rng: Seed = 0) -> Description:
    """Return the robot of `span_grid_parents(m)` with revolute joints."""
    return from_parents(span_grid_parents(m), rng=rng, name=f"span_grid_{m}")


# ---- random parts


def _joint(rng: np.random.Generator, name: str, kind: JointType, parent: str, child: str, aligned: float) -> Joint:
    placement = Pose(as_matrix(random_rotation(rng)), as_vector(uniform(rng, 0.1, 0.3, ()) * random_direction(rng)))
    if rng.random() < aligned:
        axis = np.eye(3)[rng.integers(3)] * rng.choice((-1.0, 1.0)) + 0.0  # no negative zeros
    else:
        axis = random_direction(rng)
    lower, upper = -math.inf, math.inf
    if kind in (JointType.REVOLUTE, JointType.PRISMATIC):
        reach = math.pi if kind is JointType.REVOLUTE else 0.5
        lower, upper = -float(uniform(rng, reach / 5, reach, ())), float(uniform(rng, reach / 5, reach, ()))
    return Joint(name, kind, parent, child, placement, as_vector(axis), lower=lower, upper=upper)


def random_inertia(rng: np.random.Generator, masses: tuple[float, float]) -> Inertia:
    """Return the inertia of a solid ellipsoid in a random pose: its second moment about the principal axis k is m a_k² / 5."""
    mass = float(np.clip(exp(float(uniform(rng, log(masses[0]), log(masses[1]), ()))), *masses))
    moments = mass / 5 * uniform(rng, 0.05, 0.3, 3) ** 2
    R = random_rotation(rng)
    J = product(R * (total(moments) - moments), R.T)
    xx, xy, xz, yy, yz, zz = (float(J[i, j]) for i in range(3) for j in range(i, 3))
    return Inertia(mass, as_vector(uniform(rng, -0.1, 0.1, 3)), (xx, xy, xz, yy, yz, zz))


def random_direction(rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return a unit vector, uniform on the sphere."""
    return unit_vectors(rng, (3,))


def random_rotation(rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return a rotation matrix, uniform on SO(3), from a random unit quaternion."""
    return np.array(rotation_from_quaternion(*unit_vectors(rng, (4,)).tolist()))


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name}: expected 1 or more, got {value}")
    return value
