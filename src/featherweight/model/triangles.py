"""The triangles of shapes: of mesh files, read by trimesh (an extra), of primitives, and of ground given by heights."""

from __future__ import annotations

import codecs
import io
import os

import numpy as np
import trimesh
from defusedxml import ElementTree  # type: ignore[import-untyped, unused-ignore]
from numpy.typing import ArrayLike

from ..array_types import Array
from ..checks import array_of
from ..extras import install_command
from ..summaries import VisibleMessage
from .files import read_mesh, require_regular
from .types import Shape, ShapeType
from .types import homogeneous_matrix as homogeneous_matrix

RGB = tuple[int, int, int]  # 0..255
KNOWN = (".stl", ".obj", ".dae", ".ply", ".off", ".glb", ".gltf", ".msh")  # formats that need no further packages
COLLADA = "{http://www.collada.org/2005/11/COLLADASchema}"


class MeshError(VisibleMessage, ValueError):
    """Raised for a mesh file that is missing or cannot be read."""


@np.errstate(all="ignore")  # of files whose numbers are too large
def shape_meshes(shape: Shape) -> list[tuple[trimesh.Trimesh, RGB | None]]:
    """Return the triangles of a shape in its body's frame [m], and the colours in its file.

    A mesh without faces is the convex hull of its vertices. Raises MeshError for a mesh that cannot be read, and ImportError if
    the convex hull needs SciPy, which is not installed.
    """
    parts: list[tuple[trimesh.Trimesh, RGB | None]] = (
        _mesh(shape) if shape.type == ShapeType.MESH else [(primitive(shape), None)]
    )
    pose = homogeneous_matrix(shape.placement)
    for mesh, _ in parts:
        mesh.apply_transform(pose)
    return parts


def primitive(shape: Shape) -> trimesh.Trimesh:
    """Return the triangles of a shape that is neither mesh nor plane, in its own frame."""
    size = shape.size
    match shape.type:
        case ShapeType.BOX:
            return trimesh.creation.box(size)
        case ShapeType.SPHERE:
            return trimesh.creation.icosphere(subdivisions=2, radius=size[0] or 1e-3)
        case ShapeType.ELLIPSOID:
            ball = trimesh.creation.icosphere(subdivisions=2)
            ball.apply_scale(size)
            return ball
        case ShapeType.CYLINDER:
            return trimesh.creation.cylinder(size[0], size[1], sections=24)
        case ShapeType.CAPSULE:
            capsule = trimesh.creation.capsule(height=size[1], radius=size[0], count=(12, 16))
            capsule.apply_translation(-capsule.bounds.mean(axis=0))
            return capsule
        case ShapeType.HEIGHTFIELD:
            x, y = (np.linspace(-0.5 * l, 0.5 * l, n) for l, n in zip(shape.size[:2], shape.heights.shape, strict=True))
            return trimesh.Trimesh(*height_surface(x, y, shape.heights), process=False)
    raise ValueError(f"{shape.name}: a {shape.type} has no triangles of its own")


def _mesh(shape: Shape) -> list[tuple[trimesh.Trimesh, RGB | None]]:
    """Return the triangles of a mesh, scaled, in the frame of its file."""
    if shape.vertices is not None:
        vertices = np.asarray(shape.vertices, dtype=float)
        if shape.faces is None:
            parts: list[tuple[trimesh.Trimesh, RGB | None]] = [(_convex_hull(vertices), None)]
        else:
            parts = [(trimesh.Trimesh(vertices, np.asarray(shape.faces)), None)]
    else:
        parts = _read(shape.path or "")
    scale = np.diag([*shape.size, 1.0])
    for mesh, _ in parts:
        mesh.apply_transform(scale)
    return parts


def _read(path: str) -> list[tuple[trimesh.Trimesh, RGB | None]]:
    """Return the meshes of a file. Any exception of a reader becomes a MeshError."""
    parts: list[tuple[trimesh.Trimesh, RGB | None]]
    try:
        content = read_mesh(path)
    except ValueError as error:
        raise MeshError(str(error)) from error
    try:
        scene = _scene(path, content)
        found = [m for m in scene.dump() if isinstance(m, trimesh.Trimesh) and len(m.faces)]
        parts = [(trimesh.Trimesh(m.vertices, m.faces), _color(m)) for m in found]
    except Exception as error:
        if isinstance(error, ImportError) and error.name == "scipy":
            raise
        foreign = "" if path.lower().endswith(KNOWN) else "; convert it to STL, OBJ, COLLADA, PLY or glTF"
        raise MeshError(f"{path}: {error}{foreign}") from error
    if not parts:
        raise MeshError(f"{path}: no triangles")
    return parts


def _scene(path: str, content: bytes) -> trimesh.Scene:
    """Return the scene that trimesh reads from the content of a file."""
    if path.lower().endswith(".msh"):
        return trimesh.Scene(_mujoco_mesh(content))
    if path.lower().endswith(".dae") and b"<texture" in content:
        content = _without_textures(content)
    if path.lower().endswith((".obj", ".off")):
        content = content.removeprefix(codecs.BOM_UTF8)  # trimesh would not see the first line
    kind = trimesh.util.split_extension(path, special=["tar.gz", "tar.bz2"])
    return trimesh.load_scene(io.BytesIO(content), file_type=kind, resolver=_RegularFiles(path))


class _RegularFiles(trimesh.resolvers.FilePathResolver):  # type: ignore[misc, unused-ignore]
    """The files that a mesh file names, such as materials and images: pipes and devices are not opened."""

    def get(self, name: str) -> bytes:
        """Return the content of a file."""
        for place in (name.strip(), name.strip().lstrip("/"), os.path.basename(name)):  # that trimesh tries
            require_regular(os.path.join(self.parent, place))
        return super().get(name)  # type: ignore[no-any-return, unused-ignore]


def _mujoco_mesh(data: bytes) -> trimesh.Trimesh:
    """Return a mesh in MuJoCo's binary format: numbers of vertices, normals, texture coordinates and faces, then their data.

    Without faces it is the convex hull of the vertices.
    """
    counts = np.frombuffer(data[:16], "<i4").astype(int)
    if len(counts) < 4 or counts.min() < 0 or len(data) != 16 + 4 * int(counts @ (3, 3, 2, 3)):
        raise ValueError("not in MuJoCo's binary MSH format (those of Gmsh are another one); convert it to STL or OBJ")
    vertices, _, _, faces = counts
    points = np.frombuffer(data, "<f4", 3 * vertices, 16).reshape(-1, 3).astype(float)
    corners = np.frombuffer(data, "<i4", 3 * faces, len(data) - 12 * faces).reshape(-1, 3)
    if faces == 0:
        return _convex_hull(points)
    if corners.min() < 0 or corners.max() >= vertices:
        raise ValueError("a face names a vertex that does not exist; correct it")
    return trimesh.Trimesh(points, corners)


def _convex_hull(points: Array) -> trimesh.Trimesh:
    """Return the convex hull of points (n, 3). Raises ImportError without SciPy."""
    try:
        return trimesh.Trimesh(points).convex_hull
    except ImportError as error:
        raise ImportError(f"convex hulls of meshes need scipy: {install_command('shapes')}", name="scipy") from error


def _without_textures(document: bytes) -> bytes:
    """Return a COLLADA document with white effects in place of textures, which are not drawn.

    The reader would leave out geometries with a material whose textures are not found.
    """
    root = ElementTree.fromstring(document)
    for effect in root.iter(f"{COLLADA}effect"):
        for parent in list(effect.iter()):
            for child in list(parent):
                if child.tag == f"{COLLADA}texture":
                    child.clear()
                    child.tag, child.text = f"{COLLADA}color", "1 1 1 1"
                elif child.find(f"{COLLADA}surface") is not None or child.find(f"{COLLADA}sampler2D") is not None:
                    parent.remove(child)
    written: bytes = ElementTree.tostring(root)
    return written


def _color(mesh: trimesh.Trimesh) -> RGB | None:
    """Return the main colour that a file gives a mesh, if any."""
    if not mesh.visual.defined:
        return None
    source = getattr(mesh.visual, "material", mesh.visual)
    r, g, b = (int(x) for x in source.main_color[:3])
    return (r, g, b)


def height_surface(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> tuple[Array, Array]:
    """Return vertices (n m, 3) and faces (k, 3) of heights z (n, m) [m] at x (n,) and y (m,) [m].

    A cell has two triangles, which share the diagonal from its point (i, j) to (i + 1, j + 1), as in simulations. Raises
    ValueError if the shapes do not match.
    """
    x, y = array_of("add_heights: x", x, "n"), array_of("add_heights: y", y, "m")
    z = array_of("add_heights: z", z, "n", "m")
    if z.shape != (len(x), len(y)):
        raise ValueError(f"add_heights: z must have shape {(len(x), len(y))}; got {z.shape}")
    X, Y = np.meshgrid(x, y, indexing="ij")
    k = np.arange(z.size).reshape(z.shape)
    a, b, c, d = (k[i, j].ravel() for i in (slice(-1), slice(1, None)) for j in (slice(-1), slice(1, None)))
    faces = np.concatenate([np.stack([a, c, d], 1), np.stack([a, d, b], 1)])
    return np.stack([X, Y, z], axis=-1).reshape(-1, 3), faces
