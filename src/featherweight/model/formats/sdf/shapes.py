"""Geometries of SDF links: <visual> and <collision>. The reader searches for mesh files, but does not open them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ....array_types import Array
from ....spatial.elementary import cos, sin
from ...contact_rules import TWO_FRICTIONS
from ...types import Color, ModelError, Pose, Shape, ShapeType
from ..geometry import Shapes, shapes_of_file
from ..robot_numbers import unit_axis
from ..robot_source import RobotSource
from ..unsupported import excused, tolerate
from ..urdf.loop_elements import along_z
from ..urdf.shapes import SIZES, Size, form_of, positive, require_positive
from ..xml import Names, only, parse_numbers, read_scalar, read_tuple, read_vector, required, shortened
from .elements import base_of, flag, raw_pose, text_of, with_values
from .models import Models, NamedElement

SIDES = 32  # sides of the pyramid that replaces a cone
ALL_BITS = 65535
NOT_READ = ("heightmap", "polyline", "image")
CONES = f"cones, as pyramids of {SIDES} sides"


def _radii(element: Element, where: str) -> Size:
    size = tuple(read_tuple(element, "radii", 3, where))
    require_positive(size, element, where)
    return size


OWN_SIZES: dict[str, Callable[[Element, str], Size]] = {str(kind): size for kind, size in SIZES.items()} | {
    "ellipsoid": _radii,
    "plane": lambda element, where: (),
    "cone": lambda element, where: positive(element, ("radius", "length"), where),
}


def read_shapes(models: Models, file: RobotSource, densities: dict[str, float]) -> Shapes:
    """Return a shape for each <visual> and each <collision>, in the file's order, and a count of the parts not used.

    `densities` receives the <density> [kg/m³] of shapes by their names.
    """
    names, shapes, unused = Names(), [], Counter[str]()
    for link in models.links:
        for child in link.element:
            if child.tag in ("visual", "collision"):
                name = names.new(link.scope.prefix + child.get("name", "") if child.get("name") else f"{link.name}_{child.tag}")
                with excused("left out"):
                    shapes += _shapes(name, link, child, models, unused, densities)
    return shapes_of_file(shapes, unused, file.folder, file.packages)


def _shapes(
    name: str, link: NamedElement, element: Element, models: Models, unused: Counter[str], densities: dict[str, float]
) -> list[Shape]:
    """Return the shape in a list; empty for a geometry that is empty or not supported."""
    where = f"{link.where}: {element.tag} '{name}'"
    geometry = only(element, "geometry", where)
    given = [] if geometry is None else [*geometry]
    found = form_of(geometry, OWN_SIZES, where)
    unused["visuals and collisions without geometry"] += geometry is None
    unused.update(f"geometries that are not read ({tag})" for tag in {form.tag for form in given if form.tag in NOT_READ})
    if found is None:
        return []
    form, values, visual = found.tag, with_values(found, where), element.tag == "visual"
    size, pose = OWN_SIZES[form](values, where), only(element, "pose", where)
    placement = raw_pose(pose, where)
    if base := base_of(pose):
        placement = models.frames.pose(link.scope.absolute(base), link.name, where) @ placement
    more: dict[str, Any] = {"color": _color(element, where)} if visual else _surface(element, where, unused)
    if form == "mesh":
        more["path"] = link.scope.file.mesh(text_of(required(found, "uri", where)))
        unused["submeshes, in place of which the whole mesh is taken"] += found.find("submesh") is not None
    elif form == "plane":
        normal = read_vector(values, "normal", "0 0 1", where)
        placement = placement @ Pose(along_z(unit_axis(normal, "normal of its plane", where)))
    elif form == "cone":
        more["vertices"], more["faces"] = cone_pyramid(*size)
        size, form = (1.0, 1.0, 1.0), "mesh"
        unused[CONES] += 1
    touches = not visual and more.pop("touches", True)
    if not visual and text_of(element.find("density")):
        densities[name] = read_scalar(with_values(element, where), "density", where)
    return [Shape(name, link.name, ShapeType(form), size, placement, visual=visual, collision=touches, **more)]


def cone_pyramid(radius: float, length: float) -> tuple[Array, Array]:
    """Return vertices and faces of the pyramid in a cone about z, with its middle at the origin."""
    angles = [2.0 * math.pi * k / SIDES for k in range(SIDES)]
    ring = [(radius * cos(a), radius * sin(a), -length / 2) for a in angles]
    vertices = np.array([*ring, (0.0, 0.0, length / 2)])
    sides = [(k, (k + 1) % SIDES, SIDES) for k in range(SIDES)]
    base = [(0, k + 1, k) for k in range(1, SIDES - 1)]
    return vertices, np.array(sides + base)


def _color(element: Element, where: str) -> Color | None:
    """Return the diffuse colour of the material, or the ambient one if there is no other."""
    material = only(element, "material", where)
    if material is None:
        return None
    written = text_of(only(material, "diffuse", where)) or text_of(only(material, "ambient", where))
    if not written:
        return None
    count = 3 if len(written.split()) == 3 else 4
    r, g, b, a = (min(max(x, 0.0), 1.0) for x in [*parse_numbers(written, count, "diffuse", where), 1.0][:4])
    values = with_values(element, where)
    through = read_scalar(values, "transparency", where, 0.0)
    return (r, g, b, a * (1.0 - min(max(through, 0.0), 1.0)))


def _bits(text: str, where: str) -> int:
    try:
        return int(text, 0) & ALL_BITS
    except ValueError:
        raise ModelError(f"{where}: a bitmask is '{shortened(text)}'; write a whole number, or 0x and its digits") from None


def _surface(element: Element, where: str, unused: Counter[str]) -> dict[str, Any]:
    """Return friction and collision bits of a shape; without <mu> the shape has no friction of its own."""
    surface = only(element, "surface", where)
    ode = None if surface is None else surface.find("friction/ode")
    contact = None if surface is None else only(surface, "contact", where)
    found: dict[str, Any] = {"contype": ALL_BITS, "conaffinity": ALL_BITS}
    if surface is not None and surface.find("friction/torsional") is not None:
        unused["friction against spinning"] += 1
    if ode is not None:
        values = with_values(ode, where)
        mu = {key: read_scalar(values, key, where) for key in ("mu", "mu2") if key in values.attrib}
        if any(x < 0.0 for x in mu.values()):
            tolerate(where, f"its friction is negative ({min(mu.values()):g})", "correct it", "left out")
        elif mu:
            found["friction"] = mu.get("mu", 1.0)
            unused[TWO_FRICTIONS] += mu.get("mu", 1.0) != mu.get("mu2", 1.0)
    if contact is not None:
        values = with_values(contact, where)
        bits = _bits(values.get("collide_bitmask", f"{ALL_BITS}"), where)
        own = _bits(values.get("category_bitmask", f"{bits}"), where)
        found |= {"contype": own, "conaffinity": bits}
        found["touches"] = not flag(contact, "collide_without_contact", False, where)
    return found
