"""Inertias of rigid bodies: the values of MassAPI, otherwise those of their colliders, by density.

Missing values are those of the colliders, whose moments are scaled to the mass and moved to the given centre.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...solids import WATER, Solid, hull_faces, mesh_solid, of_point, primitive_solid, summed
from ...types import Body, Inertia, ModelError, Moments, Pose, Shape, ShapeType, add, as_vector, scale
from ..robot_numbers import inertia_at, rotation_by_quaternion
from ..unsupported import excused, nonnegative, tolerate
from .schemas import UsdPhysics
from .stage import Prim, UsdStage, path_of

WITHOUT_DENSITY = "colliders without density, taken as 1000 kg/m³"
MASSLESS = "bodies without mass and colliders, taken as massless"


class Collider(NamedTuple):
    """An enabled collider: its prim, its shape, its physics material, and whether a mesh stands for its convex hull."""

    prim: Prim
    shape: Shape
    material: Prim | None
    hull: bool = False


def read_body(stage: UsdStage, prim: Prim, colliders: Sequence[Collider]) -> Body:
    """Return a body with its inertia. Raises ModelError for an inertia that is not given and cannot be computed."""
    name, where = stage.names[path_of(prim)], stage.where(prim)
    weighs = not stage.value(prim, "physxRigidBody:disableGravity", False)
    floats = float(stage.value(prim, "mjc:body:gravcomp", 0.0)) if weighs else 1.0
    given = prim.HasAPI(UsdPhysics.MassAPI)
    unit = stage.kilogram
    mass = unit * _positive(stage, prim, "physics:mass") if given else 0.0
    density = unit / stage.meter**3 * _positive(stage, prim, "physics:density") if given else 0.0
    at = _value(stage, prim, "physics:centerOfMass", like=(0.0, 0.0, 0.0)) if given else None
    center = None
    if at is not None and all(map(math.isfinite, at)):
        _, scales = stage.placed(prim)
        center = as_vector(stage.meter * s * x for s, x in zip(scales, at, strict=True))
    moments, turn = _moments(stage, prim, where) if given else (None, None)
    if moments is not None and mass and center is not None:
        return Body(name, inertia_at(Pose(turn or Pose().R, center), mass, moments, where), turn, floats)
    sum_mass, sum_center, sum_moments = _colliders_inertia(stage, density, colliders)
    if sum_mass == 0.0:
        if mass == 0.0 and moments is None:
            stage.note(MASSLESS, path_of(prim))
            return Body(name, gravity_compensation=floats)
        if mass == 0.0 or moments is None:
            lacks = "its mass is not given" if mass == 0.0 else "its diagonalInertia is not given"
            problem = f"{lacks}, and it has no enabled collider from which it could be computed"
            tolerate(where, problem, "give it", "taken as massless" if mass == 0.0 else "taken as a point mass")
            at_rest = Inertia() if mass == 0.0 else Inertia(mass, center or (0.0, 0.0, 0.0))
            return Body(name, at_rest, gravity_compensation=floats)
    ratio = mass / sum_mass if mass and sum_mass else 1.0
    if center is None:
        center = sum_center if sum_mass else (0.0, 0.0, 0.0)
    if moments is None:
        mass = mass or sum_mass
        computed = [
            ratio * x + mass * y for x, y in zip(sum_moments, of_point(add(sum_center, scale(-1.0, center))), strict=True)
        ]
        return Body(name, inertia_at(Pose(p=center), mass, computed, where), None, floats)
    return Body(name, inertia_at(Pose(turn or Pose().R, center), mass or sum_mass, moments, where), turn, floats)


def _value(stage: UsdStage, prim: Prim, name: str, default: object = None, like: object = None) -> Any:
    """Return an attribute of mass; the default for a value of another kind."""
    with excused("left out"):
        return stage.value(prim, name, default, like)
    return default


def _positive(stage: UsdStage, prim: Prim, name: str) -> float:
    """Return a mass or density; zero means that it is not given."""
    with excused("taken as not known"):
        x = stage.number(prim, name, 0.0)
        if not 0.0 <= x < math.inf:
            raise ModelError(f"{stage.where(prim)}: {name} is {x:g}; give a positive number, or 0 for one that is not known")
        return x
    return 0.0


def _moments(stage: UsdStage, prim: Prim, where: str) -> tuple[list[float] | None, Any]:
    """Return moments in the axes of a rotation, or of the body if that is None; None if they are not given."""
    unit = stage.kilogram * stage.meter**2
    full = _value(stage, prim, "newton:inertia", ())
    diagonal = _value(stage, prim, "physics:diagonalInertia", (0.0, 0.0, 0.0))
    axes = _value(stage, prim, "physics:principalAxes", (0.0, 0.0, 0.0, 0.0))
    if len(full) not in (0, 6):
        tolerate(where, f"newton:inertia has {len(full)} numbers", "give 6", "left out")
        full = ()
    if full:
        xx, yy, zz, xy, xz, yz = (unit * x for x in full)
        return [xx, xy, xz, yy, yz, zz], None
    if not any(diagonal):
        return None, None
    x, y, z = (unit * nonnegative(m, "moment of its diagonalInertia", where) for m in diagonal)
    turn = rotation_by_quaternion(axes, where) if any(axes) else None
    return [x, 0.0, 0.0, y, 0.0, z], turn


def _colliders_inertia(stage: UsdStage, density: float, colliders: Sequence[Collider]) -> Inertia:
    """Return mass, centre, and moments about that, of a body's colliders."""
    parts = []
    for c in colliders:
        if c.shape.type is ShapeType.PLANE:
            continue
        own = c.prim.HasAPI(UsdPhysics.MassAPI) and c.prim != stage.body_of(c.prim)
        solid = _solid(stage, c)
        mass = stage.kilogram * _positive(stage, c.prim, "physics:mass") if own else 0.0
        if not mass:
            unit = stage.kilogram / stage.meter**3
            rho = unit * _positive(stage, c.prim, "physics:density") if own else 0.0
            of_material = c.material is not None and c.material.HasAPI(UsdPhysics.MaterialAPI)
            rho = rho or density or (unit * _positive(stage, c.material, "physics:density") if of_material else 0.0)
            if not rho:
                stage.note(WITHOUT_DENSITY, path_of(c.prim))
            mass = (rho or WATER) * solid.volume
        if stage.value(c.prim, "newton:massModel", "solid") != "solid":
            problem = "the mass of its shell (newton:massModel) is not supported"
            stage.unsupported.refuse(stage.where(c.prim), problem, "give its body mass, centerOfMass and diagonalInertia")
        parts.append(solid.of_mass(mass))
    return summed(parts)


def _solid(stage: UsdStage, collider: Collider) -> Solid:
    s = collider.shape
    if s.type is not ShapeType.MESH:
        return primitive_solid(s)
    points = np.asarray(s.vertices) * np.array(s.size)
    solid = mesh_solid(points, hull_faces(points) if collider.hull else np.asarray(s.faces), s.placement)
    if solid is None:
        problem, remedy = "the mesh has no volume, so its body's mass cannot be computed", "give the body mass and inertia"
        tolerate(stage.where(collider.prim), problem, remedy, "taken as massless")
        return Solid(0.0, (0.0, 0.0, 0.0), Moments(*(0.0,) * 6))
    return solid
