"""Checks that a robot's dynamics are defined: no joint may move without moving mass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...algorithms.crba import composite_inertias
from ...algorithms.kinematics import joint_transforms, rigid_inertia
from ...algorithms.mechanisms.articulated import SharedInertia, articulate_cluster, articulate_row, before_articulation
from ...algorithms.mechanisms.cluster_tree import ClusterTree, unconstrained
from ...algorithms.mechanisms.crba import projected_block, unit_forces
from ...array_types import Array
from ...model.configuration import Coordinates, random_configuration
from ...model.model import Model, MovingJoint
from ...model.tree import INNER
from ...model.types import SMALLEST_INERTIA, ModelError
from ...spatial import ZERO_ARTICULATED

NOTHING = 1e-12  # of the inertia that a joint moves with all further joints locked; rounding errors are 1e-16


def require_mass(model: Model) -> None:
    """Raise ModelError for a robot with a loose joint."""
    joint = loose_joint(model)
    if joint is None:
        return
    raise ModelError(
        f"{model.source}: joint {joint.name!r} moves a body without mass: {joint.child!r} can move along it without moving "
        "any mass. Give it an inertia, or make the joint fixed"
    )


def with_massless(model: Model, loose: MovingJoint | None) -> Model:
    """Return the model with the names of its links without mass, if it has a loose joint."""
    return replace(model, massless=() if loose is None else _massless(model) or (loose.child,))


def _massless(model: Model) -> tuple[str, ...]:
    """Return the moving bodies without mass that carry no body with mass."""
    tree = model.tree
    mass = list(tree.mass)
    for row in range(model.nv - 1, -1, -1):
        if tree.parent[row] >= 0:
            mass[tree.parent[row]] += mass[row]
    return tuple(b.name for b, at in zip(model.bodies, model.placed_bodies, strict=True) if not mass[at.row])


def loose_joint(model: Model) -> MovingJoint | None:
    """Return a joint that can move without inertia if the further joints move accordingly, or None.

    Bodies without mass are allowed between joints if the bodies beyond them have mass in every direction. If all bodies are
    solid, no joint is loose; otherwise a configuration in general position decides.
    """
    if model.solid:
        return None
    coordinates = [Coordinates(j.type, j.q_slice, j.v_slice, j.lower, j.upper) for j in model.joints]
    row = loose_rows(model, random_configuration(coordinates, model.nq, 0)[None])[0]
    return next((j for j in model.joints if row >= 0 and j.v_slice.start <= row < j.v_slice.stop), None)


class Outermost:
    """The outermost velocity, of each state, whose articulated inertia is negligible against its composite inertia."""

    def __init__(self, states: int, least: float) -> None:
        self.number = np.full(states, -1)  # -1 if there is none
        self._least = least

    def add(self, number: int, moved: Any, whole: Any) -> None:
        """Compare the inertias of a velocity; those further out come first."""
        nothing = (moved <= SMALLEST_INERTIA) | (moved <= self._least * whole)
        self.number[(self.number < 0) & nothing] = number

    @property
    def complete(self) -> bool:
        """Return whether there is one for each state."""
        return bool((self.number >= 0).all())


def _coordinates(q: Array) -> list[Any]:
    """Return the coordinates of q (states, nq) as arrays, or as floats, which are faster, for one state."""
    return q[0].tolist() if len(q) == 1 else list(q.T)


def loose_rows(model: Model, q: Array, least: float = NOTHING) -> Array:
    """Return the outermost row that moves no mass at each of the configurations q (states, nq); -1 if there is none."""
    tree, n = model.tree, model.nv
    found = Outermost(len(q), least)
    X = joint_transforms(tree, _coordinates(q))
    composite, articulated = composite_inertias(tree, X), [ZERO_ARTICULATED] * n
    with np.errstate(all="ignore"):
        for j in range(n - 1, -1, -1):
            p, k = tree.parent[j], tree.axis[j]
            if tree.last[j] == j:
                articulated[j] = articulated[j] + rigid_inertia(tree, j).articulated()
            U = articulated[j].column(k)
            moved = U.component(k) + tree.armature[j]
            found.add(j, moved, composite[j].column(k).component(k) + tree.armature[j])
            if found.complete:
                break
            if p >= 0:
                Ia = articulated[j].minus_dyad(U, (1.0 / moved) * U)
                articulated[p] = articulated[p] + (Ia if tree.kind[j] == INNER else X[j].inertia_to_parent(Ia))
    return found.number


def loose_velocities(mech: ClusterTree, q: Array, least: float = NOTHING) -> Array:
    """Return the outermost independent velocity that moves no mass at each of q (states, nq); -1 if there is none."""
    tree = mech.tree
    found = Outermost(len(q), least)
    with np.errstate(all="ignore"):
        A, IA = before_articulation(mech, _coordinates(q))
        composite, shared = composite_inertias(tree, A.X), SharedInertia()
        for number in range(len(mech.clusters) - 1, -1, -1):
            cluster = mech.clusters[number]
            if unconstrained(cluster):
                for k in range(len(cluster.rows) - 1, -1, -1):
                    j, axis = cluster.rows[k], tree.axis[cluster.rows[k]]
                    moved, whole = (I[j].column(axis).component(axis) + tree.armature[j] for I in (IA, composite))
                    found.add(cluster.start + k, moved, whole)
                    if found.complete:
                        return found.number
                    articulate_row(A, IA, j)
                continue
            locked = projected_block(cluster, A.maps[number], unit_forces(mech, cluster, A.X, composite)[1])
            own = [locked[k][k] for k in range(len(locked))]
            try:
                articulate_cluster(A, IA, shared, number)
                inertias = [np.divide(1.0, x) for x in A.reciprocal[number]]
            except ZeroDivisionError:  # inertias that do not depend on q
                least_of_all = min(map(np.max, own))
                inertias = [np.where(np.max(x) == least_of_all, 0.0, x) for x in own]
            for k, x in enumerate(inertias):
                found.add(cluster.start + k, x, own[k])
            if found.complete:
                break
    return found.number
