"""Check that a robot's motion is defined: no joint may move without moving mass."""

from __future__ import annotations

from ...algorithms.composite import composite_inertias
from ...algorithms.kinematics import joint_transforms, rigid_inertia
from ...algorithms.mechanisms.articulated import articulate_cluster, articulate_row, before_articulation, map_of
from ...algorithms.mechanisms.cluster_tree import ClusterTree, unconstrained
from ...algorithms.mechanisms.crba import projected_block, unit_forces
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


def loose_joint(model: Model) -> MovingJoint | None:
    """Return a joint that can move without inertia if the further joints move accordingly, or None.

    Bodies without mass are allowed between joints if the bodies beyond them have mass in every direction. If all bodies are
    solid, no joint is loose; otherwise a configuration in general position decides.
    """
    if model.solid:
        return None
    coordinates = [Coordinates(j.type, j.q_slice, j.v_slice, j.lower, j.upper) for j in model.joints]
    row = _loose_row(model, [float(x) for x in random_configuration(coordinates, model.nq, 0)])
    return next((j for j in model.joints if row is not None and j.v_slice.start <= row < j.v_slice.stop), None)


def _loose_row(model: Model, q: list[float]) -> int | None:
    """Return the outermost row whose articulated inertia along its axis is negligible against its composite inertia."""
    tree, n = model.tree, model.nv
    X = joint_transforms(tree, q)
    composite, articulated = composite_inertias(tree, X), [ZERO_ARTICULATED] * n
    for j in range(n - 1, -1, -1):
        p, k = tree.parent[j], tree.axis[j]
        if tree.last[j] == j:
            articulated[j] = articulated[j] + rigid_inertia(tree, j).articulated()
        U = articulated[j].column(k)
        moved = U.component(k) + tree.armature[j]
        if _is_nothing(moved, composite[j].column(k).component(k) + tree.armature[j]):
            return j
        if p >= 0:
            Ia = articulated[j].minus_dyad(U, (1.0 / moved) * U)
            articulated[p] = articulated[p] + (Ia if tree.kind[j] == INNER else X[j].inertia_to_parent(Ia))
    return None


def _is_nothing(moved: float, whole: float) -> bool:
    """Return whether an inertia is negligible against that with all further joints locked."""
    return moved <= SMALLEST_INERTIA or moved <= NOTHING * whole


def loose_velocity(mech: ClusterTree, q: list[float]) -> int | None:
    """Return the number of an independent velocity that moves no mass if the further joints move accordingly, or None."""
    tree = mech.tree
    A, IA = before_articulation(mech, q)
    composite = composite_inertias(tree, A.X)
    for number in range(len(mech.clusters) - 1, -1, -1):
        cluster = mech.clusters[number]
        if unconstrained(cluster):
            for k in range(len(cluster.rows) - 1, -1, -1):
                j = cluster.rows[k]
                moved, whole = (I[j].column(tree.axis[j]).component(tree.axis[j]) + tree.armature[j] for I in (IA, composite))
                if _is_nothing(moved, whole):
                    return cluster.start + k
                articulate_row(A, IA, j)
            continue
        locked = projected_block(cluster, map_of(A, number), unit_forces(mech, cluster, A.X, composite)[1])
        try:
            articulate_cluster(A, IA, number)
        except ZeroDivisionError:
            return cluster.start + min(range(len(locked)), key=lambda k: locked[k][k])
        for k, reciprocal in enumerate(A.reciprocal[number]):
            if _is_nothing(1.0 / reciprocal, locked[k][k]):
                return cluster.start + k
    return None
