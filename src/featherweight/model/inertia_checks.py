"""Properties of inertias: principal moments, and whether a body can have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Array
from ..spatial import RigidInertia, Sym3, Vec3
from ..spatial.ordered import product, singular, singular_values, total
from .model import Model
from .types import ROUNDING_RADIUS, SMALLEST_INERTIA, Inertia, Moments

ROUNDED = 0.01  # excess of a flat body's moments when they are rounded to three digits


def principal_moments(rotational: Sequence[Sequence[float]] | Array) -> Array:
    """Return the principal moments, in ascending order (n, 3), of tensors (n, 6) as in `Inertia`."""
    xx, xy, xz, yy, yz, zz = np.asarray(rotational, dtype=float).reshape(-1, 6).T
    tensors = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1).reshape(-1, 3, 3)
    shift = total(np.abs(tensors)).max(axis=-1)  # makes them positive, so that their singular values are eigenvalues
    shifted = tensors + shift[:, None, None] * np.eye(3)
    return np.asarray((singular_values(shifted) - shift[:, None])[:, ::-1])


def excess_moments(inertias: Sequence[Inertia]) -> Array:
    """Return by how much the greatest principal moment (n,) exceeds the sum of the two others, as a fraction of this sum.

    For any distribution of mass, the excess is zero or less. It is infinite for rotational inertia without mass.
    """
    if not inertias:
        return np.zeros(0)
    moments = principal_moments([i.rotational for i in inertias])
    mass = np.array([i.mass for i in inertias])
    others = np.maximum(moments[:, 0] + moments[:, 1], 0.0)
    excess = np.maximum(moments[:, 2] - others - ROUNDING_RADIUS**2 * mass, 0.0)
    with np.errstate(divide="ignore"):
        relative = np.divide(excess, others, out=np.zeros(len(mass)), where=excess > 0.0)
    return np.asarray(np.where((mass == 0.0) & (moments[:, 2] > 0.0), np.inf, relative))


def impossible_bodies(model: Model) -> str:
    """Describe the moving bodies with physically impossible inertias, and the excess of their moments; empty if there are none.

    The inertia of a moving body is that of all links that are fixed together.
    """
    tree = model.tree
    rows = [placed.row for placed in model.placed_bodies]
    bodies = [(b, row) for b, row in zip(model.bodies, rows, strict=True) if tree.mass[row] > 0.0]
    rigid = [rigid_inertia_of_row(model, row) for _, row in bodies]
    inertias = [Inertia(I.mass, rotational=tuple(about_center(I))) for I in rigid]
    excess = excess_moments(inertias)
    found = [f"{bodies[k][0].name!r} by {100 * excess[k]:.3g} %" for k in np.flatnonzero(excess > ROUNDED)]
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")


class Verdict(NamedTuple):
    """The properties of an inertia."""

    lowest: float  # least principal moment about the centre of mass
    possible: bool  # True unless a moment is negative beyond rounding
    solid: bool  # True with mass, and inertia about every axis


def judged_inertias(inertias: Sequence[RigidInertia]) -> list[Verdict]:
    """Return a verdict on each inertia, in any frame."""
    moments = principal_moments([tuple(about_center(I)) for I in inertias])
    verdicts = []
    for I, (lowest, _, largest) in zip(inertias, moments.tolist(), strict=True):
        highest = max(abs(largest), abs(I.rotational.xx), abs(I.rotational.yy), abs(I.rotational.zz))
        possible = lowest >= -1e-9 * highest - ROUNDING_RADIUS**2 * I.mass
        verdicts.append(Verdict(lowest, possible, I.mass > 0.0 and lowest > max(1e-9 * highest, SMALLEST_INERTIA)))
    return verdicts


def without_negative_moments(I: RigidInertia) -> RigidInertia:
    """Return an inertia whose negative principal moments about the centre of mass are zero."""
    tensor = np.array(Moments(*about_center(I)).matrix)
    shift = float(total(np.abs(tensor)).max())  # makes the tensor positive, so that its singular values are eigenvalues
    values, _, axes = singular(tensor + shift * np.eye(3))
    positive = product(axes * np.maximum(values - shift, 0.0), axes.T)
    rotational = Sym3(*(float(positive[k]) for k in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))))
    about = RigidInertia(I.mass, Vec3(0.0, 0.0, 0.0), rotational)
    return about.translate(1.0 / I.mass * I.moment) if I.mass else about


def rigid_inertia_of_row(model: Model, row: int) -> RigidInertia:
    """Return the rigid-body inertia of the body in one row of the tree, in the row's frame."""
    tree = model.tree
    return RigidInertia(tree.mass[row], Vec3(*tree.moment[row]), Sym3(*tree.inertia[row]))


def about_center(I: RigidInertia) -> Sym3:
    """Return the rotational inertia about the centre of mass; for a body without mass, unchanged."""
    return (I.translate(-1.0 / I.mass * I.moment) if I.mass else I).rotational
