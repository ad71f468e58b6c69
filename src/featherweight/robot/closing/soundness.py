"""Check that a robot's motion is defined: no joint may move without moving mass."""

from __future__ import annotations

from ...algorithms.composite import composite_inertias
from ...algorithms.kinematics import joint_transforms, rigid_inertia
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
        if moved <= SMALLEST_INERTIA or moved <= NOTHING * (composite[j].column(k).component(k) + tree.armature[j]):
            return j
        if p >= 0:
            Ia = articulated[j].minus_dyad(U, (1.0 / moved) * U)
            articulated[p] = articulated[p] + (Ia if tree.kind[j] == INNER else X[j].inertia_to_parent(Ia))
    return None
