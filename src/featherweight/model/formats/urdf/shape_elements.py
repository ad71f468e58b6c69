"""Writing of shapes as <visual> and <collision> elements."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

from ...types import Color, Shape, ShapeType
from .notation import write_origin, written

KEYS = {ShapeType.SPHERE: ("radius",), ShapeType.CYLINDER: ("radius", "length"), ShapeType.CAPSULE: ("radius", "length")}
WITHOUT_ELEMENT = (ShapeType.ELLIPSOID, ShapeType.PLANE, ShapeType.HEIGHTFIELD)


def write_shape(shape: Shape, folder: Path) -> Iterator[Element]:
    """Write a <visual>, a <collision>, or both; nothing for a shape that URDF cannot express."""
    if _has_element(shape):
        roles = (("visual", shape.visual), ("collision", shape.collision))
        yield from (_element(role, shape, folder) for role, there in roles if there)


def _has_element(shape: Shape) -> bool:
    return shape.type not in WITHOUT_ELEMENT and (shape.type is not ShapeType.MESH or shape.path is not None)


def _element(role: str, shape: Shape, folder: Path) -> Element:
    element = Element(role, name=shape.name)
    write_origin(element, shape.placement)
    geometry = SubElement(element, "geometry")
    if shape.type is ShapeType.MESH:
        SubElement(geometry, "mesh", filename=_filename(str(shape.path), folder), scale=written(*shape.size))
    elif shape.type is ShapeType.BOX:
        SubElement(geometry, "box", size=written(*shape.size))
    else:
        numbers = zip(KEYS[shape.type], shape.size, strict=True)
        SubElement(geometry, str(shape.type), {key: written(x) for key, x in numbers})
    if shape.color is not None:
        _paint(element, shape.color)
    return element


def _filename(path: str, folder: Path) -> str:
    """Return the path relative to the folder if the file is below it, otherwise the path as it is."""
    if os.path.isabs(path):
        relative = os.path.relpath(path, os.path.abspath(folder))
        return path if relative.startswith(os.pardir) else relative
    return path


def _paint(element: Element, color: Color) -> None:
    """Write the colour; materials with the same name are the same, so the name contains the colour."""
    rgba = written(*color)
    SubElement(SubElement(element, "material", name=f"rgba {rgba}"), "color", rgba=rgba)


def unsayable(shapes: Iterable[Shape]) -> dict[str, list[str]]:
    """Return names of shapes with properties that URDF cannot express, by property."""
    lost: dict[str, list[str]] = {}
    for s in shapes:
        if s.type is ShapeType.MESH and s.path is None:
            lost.setdefault("meshes without a file", []).append(s.name)
        elif s.type in WITHOUT_ELEMENT:
            lost.setdefault(f"{s.type}s", []).append(s.name)
        elif not s.visual and not s.collision:
            lost.setdefault("shapes that neither show nor touch", []).append(s.name)
        elif s.friction is not None:
            lost.setdefault("friction of the shapes", []).append(s.name)
    return lost
