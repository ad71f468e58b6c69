"""Geoms of MJCF files. Visual parts and their files are read and removed before MuJoCo compiles the file.

A geom whose shape depends on a file and whose mass does not becomes a sphere for the compiler, so that its compiled pose is
that of the file. A mesh that carries mass is compiled: MuJoCo then moves its vertices to its inertial frame, which is reversed
here.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .....array_types import Array
from .....spatial.elementary import norm
from ....contact_rules import TOUCHING_AS_MESHES
from ....files import FETCH, MissingFile, is_pointer, read_regular, require_regular
from ....types import Color, FluidCoefficients, ModelError, Pose, Shape, ShapeType, Vector, as_vector, rotate, transpose
from ...geometry import Shapes, shapes_of_file
from ...robot_source import RobotSource
from ...unsupported import nonnegative
from ...xml import Names, shortened
from ..mujoco_types import MjModel, MjsGeom, MjsHField, MjsMesh, MjSpec, Mujoco
from ..numbers import as_pose, as_rotation, compiled, disabled, softness_of
from .contacts import in_pairs, overrides, values_of

UNPAINTED = (0.5, 0.5, 0.5, 1.0)  # MuJoCo's default: a geom of this color has the color of its material
MOST_BYTES = 50_000_000  # largest file that MuJoCo reads: of a mesh with mass, whose hull it computes, or of a height field
FITTED = {*ShapeType} - {
    ShapeType.PLANE,
    ShapeType.MESH,
    ShapeType.HEIGHTFIELD,
}  # shapes with an equivalent ellipsoid in a fluid
SEEN_GROUPS = 3  # by convention in MuJoCo, geoms of this group and above are for collision only


class Mesh(NamedTuple):
    """A mesh asset: its file or vertices, and its frame in that of the geom."""

    path: str | None
    vertices: Any
    faces: Any
    scale: Vector
    placement: Pose | None  # None if no pose with scales along the axes exists


class HeightGrid(NamedTuple):
    """A height field asset: heights (nx, ny) [m], and the size of the shape."""

    heights: Any
    size: Vector


class Drawing(NamedTuple):
    """The appearance of a geom in the file."""

    geom: MjsGeom
    color: Color | None
    mesh: Mesh | None
    ground: HeightGrid | None
    kind: Any  # mjtGeom


# --- before compiling


def take_appearance(mujoco: Mujoco, spec: MjSpec, source: RobotSource) -> list[Drawing]:
    """Return the appearance of all geoms, and remove every reference to a file that no mass depends on from `spec`.

    Geoms remain as massless spheres, because contacts, tendons and actuators may name them.
    """
    materials = {m.name: _color(m.rgba) for m in spec.materials}
    meshes = {m.name: _mesh(m, source) for m in spec.meshes}
    used = {geom.hfieldname for geom in spec.geoms}
    grids = {f.name: _height_grid(mujoco, f, source) for f in spec.hfields if f.name in used}
    drawings = []
    for geom in spec.geoms:
        own = _color(geom.rgba)
        color = own if own != UNPAINTED else materials.get(geom.material)
        drawings.append(Drawing(geom, color, meshes.get(geom.meshname), grids.get(geom.hfieldname), geom.type))
    _strip(mujoco, spec, source)
    return drawings


def _color(rgba: Iterable[float]) -> Color:
    r, g, b, a = (round(min(max(float(x), 0.0), 1.0), 6) for x in rgba)  # values have single precision
    return (r, g, b, a)


def _mesh(mesh: MjsMesh, source: RobotSource) -> Mesh | None:
    """Return a mesh; None for one that has neither a file nor vertices, because a plugin creates it."""
    stretch = as_vector(mesh.scale)
    path = (mesh.file if os.path.isabs(mesh.file) else MissingFile(mesh.file)) if mesh.file else None
    where = f"{source}: mesh '{mesh.name}'"
    vertices = _rows_of_three(mesh.uservert, np.float64, "vertex", where)
    faces = _rows_of_three(mesh.userface, np.int64, "face", where)
    if path is None and vertices is None:
        return None
    if faces is not None and (vertices is None or faces.min() < 0 or faces.max() >= len(vertices)):
        raise ModelError(f"{where}: 'face' names a vertex that does not exist; correct it")
    return Mesh(path, vertices, faces, stretch, _asset_placement(mesh, stretch, where))


def _rows_of_three(numbers: Sequence[float], dtype: type[np.generic], key: str, where: str) -> Array | None:
    """Return numbers (3 n,) as an array (n, 3); None for none."""
    if len(numbers) % 3:
        raise ModelError(f"{where}: '{key}' has {len(numbers)} numbers, not three for each; correct it")
    return np.array(numbers, dtype=dtype).reshape(-1, 3) if len(numbers) else None


def _asset_placement(mesh: MjsMesh, stretch: Vector, where: str) -> Pose | None:
    """Return the placement of a mesh: MuJoCo moves a vertex x to S R'(x - p), with refpos p, refquat R and scale S."""
    quaternion = np.asarray(mesh.refquat, dtype=np.float64)
    length = norm(*quaternion.tolist())
    if not length > 0.0:
        raise ModelError(f"{where}: 'refquat' is zero; give it a rotation")
    R = transpose(as_rotation(quaternion / length))
    if Pose().R != R and len(set(stretch)) > 1:
        return None
    x, y, z = (-s * a for s, a in zip(stretch, rotate(R, as_vector(mesh.refpos)), strict=True))
    return Pose(R, (x, y, z))


def _height_grid(mujoco: Mujoco, field: MjsHField, source: RobotSource) -> HeightGrid | None:
    """Return a height field; None if its file cannot be read. MuJoCo scales its heights to the range from zero to one."""
    alone = mujoco.MjSpec()
    if field.file:
        path = _found(field.file, f"{source}: hfield '{field.name}'")
        if isinstance(path, MissingFile) or os.path.getsize(path) > MOST_BYTES:
            return None
        alone.assets = {path: read_regular(path)}
    copy = alone.add_hfield(name="field", file=field.file, size=field.size, content_type=field.content_type)
    copy.nrow, copy.ncol, copy.userdata = field.nrow, field.ncol, field.userdata
    try:
        model = compiled(alone)
    except ValueError:
        return None
    x, y, up, down = (float(length) for length in model.hfield_size[0])
    rows = model.hfield_data.reshape(int(model.hfield_nrow[0]), int(model.hfield_ncol[0]))  # rows of y, each along x
    return HeightGrid(up * rows.T.astype(np.float64), (2.0 * x, 2.0 * y, down))


def _content(mesh: MjsMesh | MjsHField, spec: MjSpec, source: RobotSource) -> bytes:
    """Return the content of a mesh or height field from which MuJoCo computes mass.

    Raises ModelError for a file that MuJoCo cannot use.
    """
    where = f"{source}: mesh '{mesh.name}'"
    path = _found(mesh.file, where)
    if isinstance(path, MissingFile) or is_pointer(path):
        raise unusable_mesh([mesh], spec, source, "no such file" if isinstance(path, MissingFile) else FETCH)
    if (size := os.path.getsize(path)) > MOST_BYTES:
        named = f"its file '{os.path.basename(path)}'"
        problem = f"{named} has {size / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f}, to take an inertia from"
        raise ModelError(f"{where}: {problem}; give the body an <inertial>, or simplify the mesh")
    try:
        return read_regular(path, where)
    except OSError as error:
        raise unusable_mesh([mesh], spec, source, error.strerror or "unreadable") from error


def _found(name: str, where: str) -> str:
    """Return the path that `Documents` gave a file, or the name of a missing file. Raises ModelError for a pipe or device."""
    if not os.path.isabs(name):
        return MissingFile(name)
    require_regular(name, where)
    return name if os.path.isfile(name) else MissingFile(name)


def unusable_mesh(meshes: Sequence[MjsMesh], spec: MjSpec, source: RobotSource, problem: str) -> ModelError:
    """Return the error about bodies whose mass depends on meshes that MuJoCo cannot use."""
    names = {mesh.name for mesh in meshes}
    owners = dict.fromkeys(
        f"'{geom.parent.name}'" if geom.parent.name else "without a name" for geom in spec.geoms if geom.meshname in names
    )
    remedy = "supply the file, or give the body an <inertial>"
    if source.folder is None:
        remedy = f"the text lies in no folder, so pass folder=, {remedy}"
    message = f"its inertia comes from mesh '{shortened(meshes[0].file)}', which MuJoCo cannot use ({problem})"
    return ModelError(f"{source}: body {', '.join(owners)}: {message}; {remedy}")


def _strip(mujoco: Mujoco, spec: MjSpec, source: RobotSource) -> None:
    spec.compiler.fusestatic = False  # all bodies of the file keep their names
    spec.compiler.discardvisual = False  # and all geoms remain
    file_types = (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_SDF)
    needed, fields, contents = set(), set(), dict[str, bytes]()
    for geom in spec.geoms:
        geom.material = ""
        if geom.meshname and _carries_mass(mujoco, spec, geom):
            needed.add(geom.meshname)
        elif geom.hfieldname and _carries_mass(mujoco, spec, geom):
            fields.add(geom.hfieldname)
        elif geom.meshname or geom.type in file_types:
            geom.type, geom.size, geom.mass = mujoco.mjtGeom.mjGEOM_SPHERE, [1.0, 1.0, 1.0], 0.0
            geom.meshname = geom.hfieldname = ""
            geom.plugin.active = False
    for site in spec.sites:
        site.material = ""
        if getattr(site, "meshname", ""):  # MuJoCo 3.3 has no such sites
            site.type, site.size, site.meshname = mujoco.mjtGeom.mjGEOM_SPHERE, [1.0, 1.0, 1.0], ""
    for tendon in spec.tendons:
        tendon.material = ""
    for light in spec.lights:
        if getattr(light, "texture", ""):  # MuJoCo 3.3 has no such lights
            light.texture = ""
    for mesh in list(spec.meshes):
        mesh.material = ""
        if mesh.name not in needed:
            spec.delete(mesh)
        elif mesh.file:
            contents[mesh.file] = _content(mesh, spec, source)
    for field in list(spec.hfields):
        if field.name not in fields:
            spec.delete(field)
        elif field.file:
            contents[field.file] = _content(field, spec, source)
    spec.assets = contents
    for elements in (spec.tuples, spec.skins, spec.materials, spec.textures):
        for element in list(elements):
            spec.delete(element)


def _carries_mass(mujoco: Mujoco, spec: MjSpec, geom: MjsGeom) -> bool:
    """Return whether MuJoCo computes mass from this geom."""
    body, rule = geom.parent, mujoco.mjtInertiaFromGeom
    if body == spec.worldbody or spec.compiler.inertiafromgeom == rule.mjINERTIAFROMGEOM_FALSE:
        return False
    if body.explicitinertial and spec.compiler.inertiafromgeom != rule.mjINERTIAFROMGEOM_TRUE:
        return False
    low, high = spec.compiler.inertiagrouprange
    heavy = geom.density > 0.0 if math.isnan(geom.mass) else geom.mass > 0.0
    return bool(heavy and low <= geom.group <= high)


# --- after compiling


def read_shapes(
    mujoco: Mujoco, model: MjModel, drawings: Iterable[Drawing], bodies: Sequence[str], source: RobotSource
) -> tuple[Shapes, dict[int, str]]:
    """Return one shape for each geom, in the order of the compiled model, and their names by the geoms' numbers.

    `bodies` are the names of all bodies.
    """
    names = Names(model.geom(i).name for i in range(model.ngeom))
    touching, over = not disabled(mujoco, model.opt, "CONTACT"), overrides(mujoco, model)
    paired, velocities, adhesion = in_pairs(model), values_of(model, "geom_surfacevel"), values_of(model, "geom_adhesion")
    shapes: dict[int, Shape] = {}
    unused: Counter[str] = Counter()
    for drawing in sorted(drawings, key=lambda d: int(d.geom.id)):
        i = int(drawing.geom.id)
        body = bodies[int(model.geom_bodyid[i])]
        form = _form(mujoco, model, i, drawing)
        if isinstance(form, str):
            unused[form] += 1
            continue
        touches = touching and bool(model.geom_contype[i] or model.geom_conaffinity[i] or i in paired)
        if form.type == ShapeType.MESH and drawing.kind != mujoco.mjtGeom.mjGEOM_MESH:
            unused[TOUCHING_AS_MESHES if touches else "primitives fitted to meshes, taken as those meshes"] += 1
        color = drawing.color
        shapes[i] = Shape(
            model.geom(i).name or names.new(f"{body}_geom"),
            body,
            form.type,
            form.size,
            form.placement,
            visual=int(model.geom_group[i]) < SEEN_GROUPS and (color is None or color[3] > 0.0),
            collision=touches,
            color=color,
            friction=over.frictions[0] if over else float(model.geom_friction[i, 0]),
            path=form.mesh.path if form.mesh else None,
            vertices=form.mesh.vertices if form.mesh else None,
            faces=form.mesh.faces if form.mesh else None,
            contype=int(model.geom_contype[i]),
            conaffinity=int(model.geom_conaffinity[i]),
            condim=int(model.geom_condim[i]),
            margin=over.margin / 2.0 if over else float(model.geom_margin[i]),  # the margins of two shapes are added
            priority=int(model.geom_priority[i]),
            heights=form.heights,
            turning_friction=over.turning if over else (float(model.geom_friction[i, 1]), float(model.geom_friction[i, 2])),
            softness=over.softness if over else softness_of(model.geom_solref[i], model.geom_solimp[i], model.geom_solmix[i]),
            surface_velocity=_surface_velocity(velocities[i], as_pose(model.geom_pos[i], model.geom_quat[i]), form.placement),
            adhesion=float(adhesion[i, 0]),
            gap=nonnegative(float(model.geom_gap[i]), "gap", f"{source}: geom '{model.geom(i).name or i}'"),
            fluid=_fluid(model.geom_fluid[i]) if form.type in FITTED else None,
        )
    found = shapes_of_file(shapes.values(), unused, source.folder, source.packages)
    return found, {i: shape.name for i, shape in shapes.items()}


def _surface_velocity(velocity: Array, geom: Pose, shape: Pose) -> tuple[float, ...]:
    """Return the surface velocity (six numbers), given at the origin of a geom's frame, in the frame of its shape."""
    if shape == geom or not np.any(velocity):
        return tuple(map(float, velocity))
    at = shape.inverse() @ geom
    R, p = np.array(at.R), np.array(at.p)
    angular = R @ velocity[3:]
    return tuple(map(float, (*(R @ velocity[:3] - np.cross(angular, p)), *angular)))


def _fluid(numbers: Array) -> FluidCoefficients | None:
    """Return the coefficients of a geom's ellipsoid, from MuJoCo's row.

    The row contains a flag, five coefficients of the file, and those that MuJoCo integrates.
    """
    blunt, slender, angular, kutta, magnus = map(float, numbers[1:6])
    own = FluidCoefficients(blunt, slender, angular, kutta, magnus, as_vector(numbers[6:9]), as_vector(numbers[9:12]))
    return own if numbers[0] else None


class _Form(NamedTuple):
    type: ShapeType
    size: tuple[float, ...]
    placement: Pose
    mesh: Mesh | None = None
    heights: Any = None


def _form(mujoco: Mujoco, model: MjModel, i: int, drawing: Drawing) -> _Form | str:
    """Return the form of a geom, or its description among unused elements."""
    kinds = mujoco.mjtGeom
    compiled, at = int(model.geom_type[i]), as_pose(model.geom_pos[i], model.geom_quat[i])
    if drawing.kind == kinds.mjGEOM_HFIELD:
        if drawing.ground is None:
            return "height fields whose files cannot be read"
        return _Form(ShapeType.HEIGHTFIELD, drawing.ground.size, at, heights=drawing.ground.heights)
    mesh = drawing.mesh
    if mesh is None:
        if drawing.kind in (kinds.mjGEOM_MESH, kinds.mjGEOM_SDF):
            return "geoms made by plugins"
    elif mesh.placement is None:
        return "meshes that their asset turns and stretches"
    elif not drawing.geom.meshname:
        return _Form(ShapeType.MESH, mesh.scale, at @ mesh.placement, mesh)
    elif compiled in (kinds.mjGEOM_MESH, kinds.mjGEOM_SDF):
        m = int(model.geom_dataid[i])
        centered = as_pose(model.mesh_pos[m], model.mesh_quat[m])
        return _Form(ShapeType.MESH, mesh.scale, at @ centered.inverse() @ mesh.placement, mesh)
    kind, size = primitive(mujoco, compiled, as_vector(model.geom_size[i]))
    return _Form(kind, size, at)


def primitive(mujoco: Mujoco, kind: int, size: Vector) -> tuple[ShapeType, tuple[float, ...]]:
    """Return type and size of a geom or site without a mesh, in the conventions of shapes."""
    kinds, (a, b, c) = mujoco.mjtGeom, size
    return {
        int(kinds.mjGEOM_SPHERE): (ShapeType.SPHERE, (a,)),
        int(kinds.mjGEOM_BOX): (ShapeType.BOX, (2 * a, 2 * b, 2 * c)),
        int(kinds.mjGEOM_CYLINDER): (ShapeType.CYLINDER, (a, 2 * b)),
        int(kinds.mjGEOM_CAPSULE): (ShapeType.CAPSULE, (a, 2 * b)),
        int(kinds.mjGEOM_ELLIPSOID): (ShapeType.ELLIPSOID, (a, b, c)),
        int(kinds.mjGEOM_PLANE): (ShapeType.PLANE, ()),
    }[kind]
