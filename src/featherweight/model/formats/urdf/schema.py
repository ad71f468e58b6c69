"""Known elements of URDF files, including those of this package, and their places. The report lists all other elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ...types import ShapeType


class Known(NamedTuple):
    """An element: its attributes and the elements inside it; or an opaque element, whose contents are ignored."""

    attributes: frozenset[str] = frozenset()
    inside: Mapping[str, Known] = {}
    opaque: bool = False


def _element(attributes: str = "", /, **inside: Known) -> Known:
    return Known(frozenset(attributes.split()), inside)


WHOLE = Known(opaque=True)  # counted, or listed by its parent
ORIGIN = _element("xyz rpy quat_xyzw")
AXIS = _element("xyz")
MATERIAL = _element("name", color=_element("rgba"), texture=_element("filename"))
GEOMETRIES: Mapping[str, Known] = {
    ShapeType.SPHERE.value: _element("radius"),
    ShapeType.BOX.value: _element("size"),
    ShapeType.CYLINDER.value: _element("radius length"),
    ShapeType.CAPSULE.value: _element("radius length"),
    ShapeType.MESH.value: _element("filename scale"),
}
DRAWN = _element("name", origin=ORIGIN, geometry=_element(**GEOMETRIES), material=MATERIAL)
END = _element("link", origin=ORIGIN)  # an end of a loop

LINK = _element(
    "name",
    inertial=_element("", origin=ORIGIN, mass=_element("value"), inertia=_element("ixx ixy ixz iyy iyz izz")),
    visual=DRAWN,
    collision=DRAWN,
)
JOINT = _element(
    "name type independent",
    origin=ORIGIN,
    parent=_element("link"),
    child=_element("link"),
    axis=AXIS,
    limit=_element("lower upper effort velocity acceleration deceleration jerk"),
    dynamics=_element("damping friction armature stiffness rest"),
    mimic=_element("joint multiplier offset"),
    safety_controller=WHOLE,
    calibration=WHOLE,
)
ROBOT = _element(
    "name version",
    link=LINK,
    joint=JOINT,
    material=MATERIAL,
    loop=_element("name type", predecessor=END, successor=END, axis=AXIS, axis2=AXIS),
    coupling=_element(
        "name type joint offset",
        predecessor=_element("link"),
        successor=_element("link"),
        ratio=_element("value"),
        term=_element("joint coefficients"),
    ),
    actuator=_element("name joint gear gain bias control force"),
    simulation=_element("timestep integrator"),
    transmission=WHOLE,
    gazebo=WHOLE,
    sensor=WHOLE,
)


def unknown_elements(element: Element, known: Known = ROBOT) -> Iterator[str]:
    """Yield elements below this one that the reader ignores, as "joint/arm"."""
    yield from (f"{element.tag}/{child.tag}" for child in element if child.tag not in known.inside)
    for child, meant in _known(element, known):
        yield from unknown_elements(child, meant)


def unknown_attributes(element: Element, known: Known = ROBOT) -> Iterator[str]:
    """Yield attributes of this element and of the known ones below it that the reader ignores, as "limit@jerk"."""
    yield from (f"{element.tag}@{key}" for key in element.attrib if key not in known.attributes)
    for child, meant in _known(element, known):
        yield from unknown_attributes(child, meant)


def _known(element: Element, known: Known) -> Iterator[tuple[Element, Known]]:
    """Yield the known elements inside this one whose contents are read."""
    for child in element:
        meant = known.inside.get(child.tag)
        if meant is not None and not meant.opaque:
            yield child, meant
