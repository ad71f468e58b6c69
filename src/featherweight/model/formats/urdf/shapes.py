"""Geometries of URDF links: <visual> and <collision>. The reader searches for mesh files, but does not open them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping
from xml.etree.ElementTree import Element

from ...types import Color, ModelError, Shape, ShapeType
from ..geometry import Shapes, shapes_of_file
from ..robot_source import RobotSource
from ..unsupported import excused, tolerate
from ..xml import Names, attribute, only, read_scalar, read_tuple, read_vector
from .elements import read_origin
from .schema import GEOMETRIES

Size = tuple[float, ...]


def read_shapes(robot: Element, links: Mapping[str, Element], file: RobotSource) -> Shapes:
    """Return one shape for each <visual> and each <collision>, in the file's order.

    The name is that in the file; if there is none or it is taken, a new name is generated.
    """
    source = file.name
    colors, names = _colors(robot, source), Names()
    shapes: list[Shape] = []
    unused: Counter[str] = Counter()
    for link, element in links.items():
        for child in element:
            if child.tag in ("visual", "collision"):
                name = names.new(child.get("name") or f"{link}_{child.tag}")
                where = f"{source}: link '{link}': {child.tag} '{name}'"
                with excused("left out"):
                    shape = _shape(name, link, child, file, colors, where)
                    shapes += [shape] if shape else []
                    unused["geometries of no known kind"] += shape is None
    unused["textures"] = len(robot.findall(".//material/texture"))
    return shapes_of_file(shapes, unused, file.folder, file.packages)


def _shape(name: str, link: str, element: Element, file: RobotSource, colors: Mapping[str, Color], where: str) -> Shape | None:
    """Return a shape; None for an empty or unknown geometry."""
    geometry = only(element, "geometry", where)
    form = form_of(geometry, GEOMETRIES, where)
    if form is None:
        return None
    kind = ShapeType(form.tag)
    return Shape(
        name,
        link,
        kind,
        SIZES[kind](form, where),
        read_origin(element, where),
        visual=element.tag == "visual",
        collision=element.tag == "collision",
        color=_color(element, colors, where),
        path=file.mesh(attribute(form, "filename", where).strip()) if kind == ShapeType.MESH else None,
    )


def form_of(geometry: Element | None, known: Container[str], where: str) -> Element | None:
    """Return the element of a known kind inside a <geometry>; the first counts, and there should be no further ones."""
    forms = [child for child in geometry if child.tag in known] if geometry is not None else []
    if len(forms) > 1:
        problem = f"its <geometry> holds {' and '.join(f'<{g.tag}>' for g in forms)}"
        tolerate(where, problem, "keep one", "the first counts")
    return forms[0] if forms else None


# --- sizes


def _radius(element: Element, where: str) -> Size:
    """Return the radius; zero makes the sphere a point, with which files mark contact points."""
    radius = read_scalar(element, "radius", where)
    if radius < 0.0:
        raise ModelError(f"{where}: the radius of its <sphere> is negative ({radius:g}); correct it")
    return (radius,)


def positive(element: Element, keys: tuple[str, ...], where: str) -> Size:
    """Return attributes of one positive number each."""
    size = tuple(read_scalar(element, key, where) for key in keys)
    require_positive(size, element, where)
    return size


def _sides(element: Element, where: str) -> Size:
    size = tuple(read_tuple(element, "size", 3, where))
    require_positive(size, element, where)
    return size


def _scale(element: Element, where: str) -> Size:
    """Return the scale; a negative one mirrors."""
    scale = read_vector(element, "scale", "1 1 1", where)
    if 0.0 in scale:
        raise ModelError(f"{where}: the scale of its mesh has a zero ({element.get('scale')}); correct it")
    return scale


def require_positive(size: Size, element: Element, where: str) -> None:
    """Raise ModelError for a size of this geometry that is not positive."""
    if min(size) <= 0.0:
        written = " ".join(f"{x:g}" for x in size)
        raise ModelError(f"{where}: the size of its <{element.tag}> must be positive, not {written}; correct it")


SIZES: dict[ShapeType, Callable[[Element, str], Size]] = {
    ShapeType.SPHERE: _radius,
    ShapeType.BOX: _sides,
    ShapeType.CYLINDER: lambda element, where: positive(element, ("radius", "length"), where),
    ShapeType.CAPSULE: lambda element, where: positive(element, ("radius", "length"), where),
    ShapeType.MESH: _scale,
}


# --- colors


def _colors(robot: Element, source: str) -> dict[str, Color]:
    """Return the colors of named materials; those of the robot come before those that a link defines for itself."""
    colors: dict[str, Color] = {}
    for path in ("material", "link/visual/material"):
        for material in robot.findall(path):
            name = material.get("name", "")
            color = _own_color(material, f"{source}: material '{name}'")
            if color is not None and name:
                colors.setdefault(name, color)
    return colors


def _color(element: Element, colors: Mapping[str, Color], where: str) -> Color | None:
    """Return the color of the geometry's material: the material's own, or the color known by its name; None without one."""
    material = only(element, "material", where)
    if material is None:
        return None
    own = _own_color(material, where)
    return colors.get(material.get("name", "")) if own is None else own


def _own_color(material: Element, where: str) -> Color | None:
    color = only(material, "color", where)
    if color is None:
        return None
    with excused("without a colour"):
        r, g, b, a = (min(max(x, 0.0), 1.0) for x in read_tuple(color, "rgba", 4, where))
        return (r, g, b, a)
    return None
