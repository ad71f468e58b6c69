"""Geometries of a stage: visual shapes, and colliders with the parameters of their materials."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ....array_types import Array
from ....spatial.ordered import product
from ...types import Color, ModelError, Pose, Shape, ShapeType, dot, transpose
from ..geometry import Shapes, shapes_of_file
from ..sdf.shapes import CONES, cone_pyramid
from ..unsupported import excused, nonnegative, tolerate
from ..urdf.loop_elements import along_z
from .mass_elements import Collider
from .schemas import Usd, UsdGeom, UsdPhysics, UsdShade
from .stage import SHEARED, Prim, UsdStage, path_of

ROUND = ("Sphere", "Cylinder", "Capsule", "Cone")
KINDS = ("Cube", "Plane", "Mesh", *ROUND)
AS_HULLS = "meshes that touch as their convex hulls, for which the file has another approximation"
STATIC = "static frictions that differ from dynamic ones, which count"
BOUNCING = "restitution"
COLORS = ("inputs:diffuseColor", "inputs:diffuse_color_constant")


class Geometry(NamedTuple):
    """A shape of the description with its prim, and its collider if it has one."""

    prim: Prim
    shape: Shape
    collider: Collider | None


def read_shapes(stage: UsdStage) -> list[Geometry]:
    """Return the geometries of a stage, in its order."""
    prims = [p for p in stage.prims if p.IsA(UsdGeom.Gprim) and not is_site(stage, p)]
    names = stage.short_names(prims)
    found = [_geometry(stage, prim, names[path_of(prim)]) for prim in prims]
    return [geometry for geometry in found if geometry is not None]


def counted_shapes(stage: UsdStage, geometries: list[Geometry]) -> Shapes:
    """Return the shapes, and their unused parts in words."""
    cones = sum(str(g.prim.GetTypeName()) == "Cone" for g in geometries)
    return shapes_of_file((g.shape for g in geometries), Counter({CONES: cones}), stage.file.folder, stage.file.packages)


def is_site(stage: UsdStage, prim: Prim) -> bool:
    """Return whether a prim marks a frame, and is neither drawn nor a collider."""
    return any(stage.has_schema(prim, schema) for schema in ("NewtonSiteAPI", "MjcSiteAPI"))


def _geometry(stage: UsdStage, prim: Prim, name: str) -> Geometry | None:
    where, kind = stage.where(prim), str(prim.GetTypeName())
    owner = _collider_owner(stage, prim)
    imageable = UsdGeom.Imageable(prim)
    visible = imageable.ComputeVisibility() != "invisible" and imageable.ComputePurpose() != "guide"
    if owner is None and not visible:
        return None
    if kind not in KINDS:
        if owner is None:
            stage.note("geometries that are not read", f"{kind} {prim.GetPath()}")
        else:
            stage.unsupported.refuse(where, f"colliders of the type {kind} are not supported", f"use one of {', '.join(KINDS)}")
        return None
    formed = None
    with excused("left out"):
        formed = _form(stage, prim, kind, where)
    if formed is None:
        return None
    form, size, placement, more = formed
    material, hull = None, False
    if owner is not None:
        material = _material(prim, "physics")
        more |= _surface(stage, owner, material)
        if form is ShapeType.MESH and kind == "Mesh":
            wanted = stage.value(owner, "physics:approximation", "none")
            hull = wanted == "convexHull"
            if not hull:
                stage.note(AS_HULLS, f"{prim.GetPath()} ({wanted})")
    color = _color(stage, prim) if visible else None
    body = stage.body_name(prim)
    shape = Shape(name, body, form, size, placement, visible, owner is not None, color, **more)
    collider = Collider(prim, shape, material, hull) if owner is not None else None
    return Geometry(prim, shape, collider)


def _collider_owner(stage: UsdStage, prim: Prim) -> Prim | None:
    """Return the prim whose enabled CollisionAPI makes this prim a collider: itself, or one above it that is not a geometry."""
    body, above = stage.body_of(prim), prim
    while above and not above.IsPseudoRoot():
        if above.HasAPI(UsdPhysics.CollisionAPI) and (above == prim or not above.IsA(UsdGeom.Gprim)):
            return above if stage.value(above, "physics:collisionEnabled", True) else None
        if above == body:
            return None
        above = above.GetParent()
    return None


# --- forms

Formed = tuple[ShapeType, tuple[float, ...], Pose, dict[str, Any]]


def _form(stage: UsdStage, prim: Prim, kind: str, where: str) -> Formed | None:
    """Return type, size [m] and placement of a shape, and the arrays of a mesh; None for a shape that is left out."""
    affine = stage.in_body(prim)
    split = affine.split()
    if kind in ("Mesh", "Cone"):
        found = _mesh(stage, prim, where) if kind == "Mesh" else _cone(stage, prim)
        if found is None:
            return None
        points, faces = found
        if split is None:  # sheared: its vertices are converted to the body's frame
            points, split = product(points, transpose(affine.A)), (Pose(p=affine.p), (1.0, 1.0, 1.0))
        return ShapeType.MESH, split[1], split[0], {"vertices": points, "faces": faces}
    if split is None:
        stage.unsupported.refuse(where, "its axes are sheared, or its scale is zero", "make it a mesh")
        return None
    pose, scales = split
    x, y, z = (abs(s) for s in scales)
    if kind == "Cube":
        edge = _length(stage, prim, "size", 2.0)
        return ShapeType.BOX, (x * edge, y * edge, z * edge), pose, {}
    if kind == "Sphere":
        r = _length(stage, prim, "radius", 1.0)
        return (
            (ShapeType.SPHERE, (r * x,), pose, {}) if _same(x, y, z) else (ShapeType.ELLIPSOID, (r * x, r * y, r * z), pose, {})
        )
    axis = stage.axis(prim, "axis", "Z")
    pose = pose @ Pose(along_z(axis))
    if kind == "Plane":
        return ShapeType.PLANE, (), pose, {}
    along = dot(axis, (x, y, z))
    across = [s for s, here in zip((x, y, z), axis, strict=True) if not here]
    capsule = kind == "Capsule"
    if not _same(*across, *([along] if capsule else [])):
        round_one = f"a {kind.lower()} with scales ({x:g}, {y:g}, {z:g}) is none any more"
        stage.unsupported.refuse(where, round_one, "scale it alike across its axis" + (" and along it" if capsule else ""))
        return None
    radius = across[0] * _length(stage, prim, "radius", 0.5 if capsule else 1.0)
    height = along * _length(stage, prim, "height", 1.0 if capsule else 2.0, zero=capsule)
    return (ShapeType.CAPSULE if capsule else ShapeType.CYLINDER), (radius, height), pose, {}


def _length(stage: UsdStage, prim: Prim, name: str, default: float, zero: bool = False) -> float:
    """Return a positive length [m], or zero where allowed."""
    x = stage.finite(prim, name, default)
    if x < 0.0 or (x == 0.0 and not zero):
        raise ModelError(f"{stage.where(prim)}: its {name} is {x:g}; give a positive number")
    return stage.meter * x


def _same(*scales: float) -> bool:
    return max(scales) - min(scales) <= SHEARED * max(scales)


def _cone(stage: UsdStage, prim: Prim) -> tuple[Array, Array]:
    radius, height = (_length(stage, prim, key, default) for key, default in (("radius", 1.0), ("height", 2.0)))
    points, faces = cone_pyramid(radius, height)
    return product(points, transpose(along_z(stage.axis(prim, "axis", "Z")))), faces


def _mesh(stage: UsdStage, prim: Prim, where: str) -> tuple[Array, Array] | None:
    """Return points [m] and triangles: faces of more corners are fans."""
    mesh = UsdGeom.Mesh(prim)
    points, counts, corners = (
        np.array(x.Get() or ()) for x in (mesh.GetPointsAttr(), mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr())
    )
    kinds = ((points, "f", (3,)), (counts, "i", ()), (corners, "i", ()))
    if not all(x.ndim and x.dtype.kind == kind and x.shape[1:] == row for x, kind, row in kinds if x.size):
        raise ModelError(f"{where}: its points or faces are not lists of numbers; correct the mesh")
    if not len(points) or not len(counts):
        stage.note("meshes without faces", path_of(prim))
        return None
    if counts.sum() != len(corners) or corners.min() < 0 or corners.max() >= len(points):
        raise ModelError(f"{where}: its faces refer to missing points; correct the mesh")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    fans = [
        np.stack([corners[starts[m]], corners[starts[m] + k], corners[starts[m] + k + 1]], axis=1)
        for k in range(1, int(counts.max()) - 1)
        if len(m := np.flatnonzero(counts > k + 1))
    ]
    faces = np.concatenate(fans) if fans else np.zeros((0, 3), int)
    if mesh.GetOrientationAttr().Get() == "leftHanded":
        faces = faces[:, ::-1]
    return np.asarray(points, dtype=float) * stage.meter, faces


# --- materials


def _material(prim: Prim, purpose: str) -> Prim | None:
    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial(purpose)
    return material.GetPrim() if material else None


def _surface(stage: UsdStage, owner: Prim, material: Prim | None) -> dict[str, Any]:
    """Return friction and margin of a collider; without a physics material it has no friction of its own."""
    found: dict[str, Any] = {}
    margin = stage.meter * stage.number(owner, "newton:contactMargin", 0.0)
    if margin:
        found["margin"] = margin
    if material is None or not material.HasAPI(UsdPhysics.MaterialAPI):
        return found
    dynamic, static = (stage.number(material, f"physics:{key}Friction", 0.0) for key in ("dynamic", "static"))
    dynamic, static = (nonnegative(x, "friction", stage.where(material)) for x in (dynamic, static))
    if dynamic != static:
        stage.note(STATIC, path_of(material))
    if stage.number(material, "physics:restitution", 0.0):
        stage.note(BOUNCING, path_of(material))
    return found | {"friction": dynamic}


def _color(stage: UsdStage, prim: Prim) -> Color | None:
    """Return the surface colour of the material, or the colour that the geometry displays."""
    opacity = _first(UsdGeom.Gprim(prim).GetDisplayOpacityAttr().Get())
    shown = _first(UsdGeom.Gprim(prim).GetDisplayColorAttr().Get())
    material = _material(prim, UsdShade.Tokens.full)
    for shader in Usd.PrimRange(material) if material is not None else ():
        given = [shader.GetAttribute(key) for key in COLORS]
        if found := [a for a in given if a and a.Get() is not None and not a.GetConnections()]:
            shown, opacity = found[0].Get(), stage.value(shader, "inputs:opacity", opacity)
            break
        if any(a and a.GetConnections() for a in given):
            stage.note("textures", path_of(shader))
    if shown is None:
        return None
    try:
        r, g, b, a = (min(max(float(x), 0.0), 1.0) for x in (*shown, 1.0 if opacity is None else opacity))
    except (TypeError, ValueError):
        tolerate(stage.where(prim), "its color or opacity is not made of numbers", "correct it", "without a colour")
        return None
    return (r, g, b, a)


def _first(values: Any) -> Any:
    """Return the first of several values; a value that is not a list itself."""
    return next(iter(values), None) if hasattr(values, "__iter__") else values
