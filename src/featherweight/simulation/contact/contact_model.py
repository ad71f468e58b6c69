"""What may touch on a robot, as arrays for compiled functions: bodies, spheres, surfaces and joint rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...model.types import frame_name
from ...robot.robot import Robot
from ..forces import ForcesAtJoints
from ..scene import HeightField, Plane, Sphere, TouchingParts, common_coefficient
from .detection import HEIGHTS, NO_GROUND, PLANE, Spheres
from .joint_rows import JointRows

Array = np.ndarray[Any, np.dtype[Any]]
SurfaceValues = tuple[float | None, float | None]  # friction and restitution


class ContactModel(NamedTuple):
    """The rows of the bodies that may touch in G (see `contact_problem`), the surfaces of candidates, and joint rows."""

    width: Any  # (bodies,) int, 6 or 3
    friction: Any  # (candidates,)
    restitution: Any  # (candidates,)
    rows: Any  # JointRows
    settings: Any  # ContactSettings


def limited_rows(forces: ForcesAtJoints, parts: TouchingParts) -> Array:
    """The degrees of freedom of all joints that have limits or dry friction that count."""
    limited = np.isfinite(forces.lower) | np.isfinite(forces.upper)
    return np.flatnonzero((parts.joint_friction & (forces.friction > 0.0)) | (parts.joint_limits & limited))


def joint_rows(forces: ForcesAtJoints, parts: TouchingParts, step: float) -> JointRows:
    """The rows of `limited_rows`."""
    dof = limited_rows(forces, parts)
    each = range(len(dof))
    lower = [k for k in each if parts.joint_limits and np.isfinite(forces.lower[dof[k]])]
    upper = [k for k in each if parts.joint_limits and np.isfinite(forces.upper[dof[k]])]
    friction = [k for k in each if parts.joint_friction and forces.friction[dof[k]] > 0.0]
    joint = np.array([*lower, *upper, *friction], dtype=np.int64)
    limits, n = len(lower) + len(upper), len(friction)
    most = step * forces.friction[dof[friction]]
    return JointRows(
        joint=joint,
        dof=dof[joint].astype(np.int64),
        at=forces.at[dof[joint]].astype(np.int64),
        bound=np.concatenate([forces.lower[dof[lower]], forces.upper[dof[upper]], np.zeros(n)]),
        sign=np.concatenate([np.ones(len(lower)), -np.ones(len(upper)), np.ones(n)]),
        friction=np.concatenate([np.zeros(limits, bool), np.ones(n, bool)]),
        lower=np.concatenate([np.zeros(limits), -most]),
        upper=np.concatenate([np.full(limits, np.inf), most]),
    )


def surface_values(parts: TouchingParts, of_shapes: Sequence[tuple[SurfaceValues, SurfaceValues]]) -> tuple[Array, Array]:
    """Friction and restitution of all candidates: spheres on the ground, pairs of spheres, then those of shapes."""
    own = [(s.friction, s.restitution) for s in parts.spheres]
    ground = (parts.ground.friction, parts.ground.restitution) if parts.ground is not None else (None, None)
    sides = [*((a, ground) for a in own), *((own[i], own[j]) for i, j in parts.pairs), *of_shapes]
    friction = [common_coefficient(a[0], b[0], parts.friction) for a, b in sides]
    restitution = [common_coefficient(a[1], b[1], parts.restitution) for a, b in sides]
    return np.array(friction, dtype=float), np.array(restitution, dtype=float)


def candidate_names(parts: TouchingParts) -> list[str]:
    """What touches, for candidates of spheres and of pairs."""
    names = [f"the {_kind(s)} on {frame_name(s.frame)!r}" for s in parts.spheres]
    return names + [f"{names[i]} and {names[j]}" for i, j in parts.pairs]


def bodies_with_spheres(robot: Robot, spheres: Sequence[Sphere]) -> tuple[list[str], Array, Array]:
    """The bodies that carry spheres, for each sphere its body's number among them, and its centre in the body's frame."""
    bodies: list[str] = []
    owner, center = [], []
    for s in spheres:
        f = robot.frame(s.frame)
        if f.body is None:
            raise ValueError(f"the {_kind(s)} on {frame_name(s.frame)!r} is fixed to the world: only moving bodies touch")
        if f.body not in bodies:
            bodies.append(f.body)
        owner.append(bodies.index(f.body))
        center.append(np.array(f.placement.R) @ np.asarray(s.center, float) + np.array(f.placement.p))
    return bodies, np.array(owner, dtype=np.int64), np.array(center, dtype=float).reshape(-1, 3)


def check_pairs_part(parts: TouchingParts, owner: Array, bodies: Sequence[str]) -> None:
    """Raise ValueError for pairs of spheres that cannot move against each other."""
    for i, j in parts.pairs:
        if owner[i] == owner[j]:
            a, b = (f"the {_kind(s)} {k} on {frame_name(s.frame)!r}" for k, s in ((i, parts.spheres[i]), (j, parts.spheres[j])))
            raise ValueError(f"pair {(i, j)}: {a} and {b} are both fixed to body {bodies[owner[i]]!r}, and never move apart")


def sphere_arrays(parts: TouchingParts, owner: Array, center: Array) -> Spheres:
    """Spheres, pairs and ground for `find_contacts`."""
    ground = parts.ground
    kind, plane = NO_GROUND, np.zeros(4)
    heights, corner, spacing = np.zeros((2, 2)), np.zeros(2), np.ones(2)
    if isinstance(ground, Plane):
        kind = PLANE
        plane = np.array([*ground.normal, float(np.dot(ground.normal, ground.point))])
    elif isinstance(ground, HeightField):
        kind, heights = HEIGHTS, np.array(ground.grid)
        corner = np.array([ground.x[0], ground.y[0]], dtype=float)
        extent = np.array([ground.x[1] - ground.x[0], ground.y[1] - ground.y[0]])
        spacing = extent / (np.array(heights.shape) - 1)
    radius = np.array([s.radius for s in parts.spheres], dtype=float)
    pair = np.array(parts.pairs, dtype=np.int64).reshape(-1, 2)
    return Spheres(owner, center, radius, pair, kind, plane, heights, corner, spacing)


def _kind(s: Sphere) -> str:
    return "sphere" if s.radius else "point"
