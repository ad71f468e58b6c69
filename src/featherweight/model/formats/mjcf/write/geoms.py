"""Shapes as <geom> elements, and the meshes and height fields that they name."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from .....spatial.lie import quaternion_of_matrix
from .....spatial.ordered import product, singular_values
from ....contact_rules import DEFAULT_SOFTNESS, Softness
from ....files import is_mesh_there, open_regular
from ....types import Contents, Pose, Shape, ShapeType
from ...xml import Names, written
from ..read.shapes import SEEN_GROUPS, UNPAINTED
from .losses import Losses

HALVES = {
    ShapeType.SPHERE: (1.0,),
    ShapeType.BOX: (0.5, 0.5, 0.5),
    ShapeType.CYLINDER: (1.0, 0.5),
    ShapeType.CAPSULE: (1.0, 0.5),
    ShapeType.ELLIPSOID: (1.0, 1.0, 1.0),
}
"""Factors of MuJoCo's sizes, radii and half lengths."""

FRICTION = (1.0, 0.005, 0.0001)  # MuJoCo's default: sliding, torsional and rolling
MESH_FILES = (".stl", ".obj", ".msh")
MOST_FACES = 200_000  # most faces of an STL file
THINNEST = 1e-12  # [m] replaces sizes of zero, which MuJoCo refuses
FLAT = 1e-12  # of the squared extents: MuJoCo computes no hull of points in a plane


def place(element: Element, pose: Pose) -> None:
    """Write `pos` and `quat`, unless they are the defaults."""
    if any(pose.p):
        element.set("pos", written(*pose.p))
    if pose.R != Pose().R:
        (x, y, z), w = quaternion_of_matrix(pose.R)
        element.set("quat", written(w, x, y, z))


def soften(element: Element, softness: Softness, suffix: str = "") -> None:
    """Write `solref` and `solimp`, unless they are MuJoCo's defaults."""
    for key, value, usual in zip(("solref", "solimp"), softness[:2], DEFAULT_SOFTNESS[:2], strict=True):
        if value != usual:
            element.set(f"{key}{suffix}", written(*value))


class Geoms:
    """Writes shapes of a description, and assets to the root element; `names` are those of the geoms, by the shapes' numbers.

    Only bodies that are `still` may have planes and height fields.
    """

    def __init__(self, root: Element, folder: Path, d: Contents, still: Collection[str | None], lost: Losses) -> None:
        self.assets, self.folder, self.still, self.lost = SubElement(root, "asset"), folder, still, lost
        self.paired = {name for pair in d.contact_pairs for name in pair.shapes}
        self.asset_names, self.meshes = Names(), dict[tuple[str, str], str]()
        self.shapes, self.names = d.shapes, dict(enumerate(lost.unique([s.name for s in d.shapes], "shapes")))

    def write(self, body: Element, k: int) -> None:
        """Write a shape on its body; a shape that MuJoCo cannot read is lost."""
        s = self.shapes[k]
        if problem := self._problem(s):
            self.lost.add(problem, s.name)
            del self.names[k]
            return
        element = SubElement(body, "geom", name=self.names[k], type=str(s.type).replace("heightfield", "hfield"))
        at = s.placement
        if s.type is ShapeType.MESH:
            element.set("mesh", self._mesh(s))
        elif s.type is ShapeType.HEIGHTFIELD:
            element.set("hfield", self._height_field(s))
            at = at @ Pose(p=(0.0, 0.0, float(np.min(s.heights))))
        elif s.type is ShapeType.PLANE:
            element.set("size", "0 0 1")
        else:
            size = [x * half for x, half in zip(s.size, HALVES[s.type], strict=True)]
            if min(size) <= 0.0:
                self.lost.add(f"the sizes of the shapes {{}}, which are zero ({THINNEST:g} m in the file)", s.name)
            element.set("size", written(*(max(x, THINNEST) for x in size)))
        place(element, at)
        if s.fluid is not None:
            element.set("fluidshape", "ellipsoid")
            element.set("fluidcoef", written(*s.fluid[:5]))
        self._paint(element, s)
        self._touch(element, s)
        if any(s.surface_velocity):
            self._move_surface(element, s, at)

    def _paint(self, element: Element, s: Shape) -> None:
        if not s.visual:
            element.set("group", str(SEEN_GROUPS))
        if s.color == UNPAINTED:  # MuJoCo treats this color of a geom as none
            if self.assets.find("material") is None:
                SubElement(self.assets, "material", name="grey", rgba=written(*UNPAINTED))
            element.set("material", "grey")
        elif s.color is not None:
            element.set("rgba", written(*s.color))

    def _touch(self, element: Element, s: Shape) -> None:
        numbers = {"contype": s.contype, "conaffinity": s.conaffinity} if s.collision else {"contype": 0, "conaffinity": 0}
        for key, value, usual in (
            *((key, value, 1) for key, value in numbers.items()),
            ("condim", s.condim, 3),
            ("priority", s.priority, 0),
            ("margin", s.margin, 0.0),
            ("solmix", s.softness.solmix, 1.0),
            ("adhesion", s.adhesion, 0.0),
            ("gap", s.gap, 0.0),
        ):
            if value != usual:
                element.set(key, written(value))
        sliding = 1.0 if s.friction is None else s.friction
        if (sliding, *s.turning_friction) != FRICTION:
            element.set("friction", written(sliding, *s.turning_friction))
        soften(element, s.softness)
        if s.collision and not s.contype and not s.conaffinity and s.name not in self.paired:
            self.lost.add("the collisions of the shapes {}, whose contype and conaffinity are 0", s.name)
        if s.collision and s.friction is None:
            self.lost.add("the friction of the shapes {}, which have none of their own (1 in the file)", s.name)

    def _move_surface(self, element: Element, s: Shape, at: Pose) -> None:
        """Write the velocity of the surface at the origin of the geom; MuJoCo moves the origin of a mesh."""
        if s.type is ShapeType.MESH:
            self.lost.add("the surface velocities of the meshes {}", s.name)
            return
        linear, angular = np.array(s.surface_velocity[:3]), np.array(s.surface_velocity[3:])
        linear = linear + np.cross(angular, (s.placement.inverse() @ at).p) if at != s.placement else linear
        element.set("surfacevel", written(*linear.tolist(), *angular.tolist()))

    # --- assets

    def _problem(self, s: Shape) -> str:
        """Return the reason why MuJoCo does not read a shape, as a kind of loss."""
        if s.type in (ShapeType.PLANE, ShapeType.HEIGHTFIELD) and s.body not in self.still:
            return "the planes and height fields {}, on bodies that move"
        if s.type is ShapeType.MESH and s.path is None:
            return _problem_of_vertices(s)
        return _problem_of_file(s.path or "") if s.type is ShapeType.MESH else ""

    def _mesh(self, s: Shape) -> str:
        file = "" if s.path is None else _relative(s.path, self.folder)
        key = (file or f"vertices of {s.name}", written(*s.size))
        if key not in self.meshes:
            self.meshes[key] = self.asset_names.new(Path(file).stem if file else s.name)
            mesh = SubElement(self.assets, "mesh", name=self.meshes[key], inertia="shell")
            if file:
                mesh.set("file", file)
            else:
                mesh.set("vertex", written(*np.ravel(s.vertices).tolist()))
                if s.faces is not None:
                    mesh.set("face", " ".join(map(str, np.ravel(s.faces).tolist())))
            if s.size != (1.0, 1.0, 1.0):
                mesh.set("scale", key[1])
        return self.meshes[key]

    def _height_field(self, s: Shape) -> str:
        """Write a height field. MuJoCo scales heights to 0..1, and reads the row of the greatest y first."""
        heights = np.asarray(s.heights, dtype=float)
        least, span = float(heights.min()), float(heights.max() - heights.min())
        size = (s.size[0] / 2.0, s.size[1] / 2.0, span or 1.0, max(s.size[2] + least, THINNEST))
        name = self.asset_names.new(s.name)
        rows = heights.T[::-1] - least
        element = SubElement(self.assets, "hfield", name=name, nrow=str(len(rows)), ncol=str(len(rows[0])), size=written(*size))
        element.set("elevation", written(*np.ravel(rows).tolist()))
        return name


def _relative(path: str, folder: Path) -> str:
    """Return the path relative to the folder if the file is below it, otherwise the whole path."""
    relative = os.path.relpath(os.path.abspath(path), os.path.abspath(folder))
    return os.path.abspath(path) if relative.startswith(os.pardir) else Path(relative).as_posix()


def _problem_of_file(path: str) -> str:
    if not is_mesh_there(path):
        return "the meshes {}, whose files are not there"
    if not path.lower().endswith(MESH_FILES):
        return "the meshes {}, in files that MuJoCo does not read"
    if path.lower().endswith(".stl"):
        with open_regular(path) as stream:
            count = int.from_bytes(stream.read(84)[80:], "little")
        if os.path.getsize(path) != 84 + 50 * count or not 0 < count <= MOST_FACES:
            return f"the meshes {{}}, in STL files that are text, or of more than {MOST_FACES} triangles"
    return ""


def _problem_of_vertices(s: Shape) -> str:
    points = np.asarray(s.vertices, dtype=float) * s.size
    if len(points) < 4:
        return "the meshes {}, of fewer than four vertices"
    spread = points - points[0]
    extents = singular_values(product(spread.T.copy(), spread))
    flat = extents[-1] <= FLAT * extents[0]
    return "the meshes {}, which touch and are flat" if s.collision and flat else ""
