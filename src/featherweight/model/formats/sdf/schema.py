"""Known elements of SDF files: those that are read, and those for display only. The report lists all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element

from ..urdf.schema import Known, unknown_attributes
from ..xml import counted
from .elements import text_of

SILENT = Known(opaque=True)
NO = {"0", "false", "0.0", "0 0 0", ""}  # texts of elements without effect


def _element(attributes: str = "", values: str = "", /, **inside: Known) -> Known:
    """Return an element with these attributes, elements of one value, and other elements."""
    return Known(frozenset(attributes.split()), dict.fromkeys(values.split(), Known()) | inside)


POSE = _element("relative_to frame rotation_format degrees")
AXIS = _element(
    "",
    "use_parent_model_frame",
    xyz=_element("expressed_in"),
    dynamics=_element("", "damping friction spring_reference spring_stiffness"),
    limit=_element("", "lower upper effort velocity"),
    mimic=_element("joint axis", "multiplier offset reference"),
)
GEOMETRY = _element(
    "",
    "empty",
    box=_element("", "size"),
    sphere=_element("", "radius"),
    cylinder=_element("", "radius length"),
    capsule=_element("", "radius length"),
    cone=_element("", "radius length"),
    ellipsoid=_element("", "radii"),
    plane=_element("", "normal size"),
    mesh=_element("", "uri scale", submesh=SILENT),
    heightmap=SILENT,
    polyline=SILENT,
    image=SILENT,
)
SURFACE = _element(
    "",
    friction=_element("", ode=_element("", "mu mu2"), torsional=SILENT),
    contact=_element("", "collide_bitmask category_bitmask collide_without_contact"),
)
FRAME = _element("name attached_to", pose=POSE)
LINK = _element(
    "name",
    "gravity self_collide",
    pose=POSE,
    inertial=_element("auto", "mass density", pose=POSE, inertia=_element("", "ixx ixy ixz iyy iyz izz")),
    visual=_element(
        "name",
        "transparency cast_shadows laser_retro visibility_flags",
        pose=POSE,
        geometry=GEOMETRY,
        material=SILENT,
        meta=SILENT,
    ),
    collision=_element("name", "laser_retro max_contacts density", pose=POSE, geometry=GEOMETRY, surface=SURFACE),
)
JOINT = _element(
    "name type",
    "parent child gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch",
    pose=POSE,
    axis=AXIS,
    axis2=AXIS,
)
INCLUDE = _element("merge", "uri name namespace static placement_frame", pose=POSE)
MODEL_PARTS = {"pose": POSE, "link": LINK, "joint": JOINT, "frame": FRAME, "include": INCLUDE}
MODEL = Known(frozenset({"name", "namespace", "canonical_link", "placement_frame"}), MODEL_PARTS)
MODEL_PARTS |= dict.fromkeys(("static", "self_collide", "allow_auto_disable"), Known()) | {"model": MODEL}
PHYSICS = _element(
    "name default type",
    "max_step_size real_time_factor real_time_update_rate max_contacts",
    **dict.fromkeys(("ode", "bullet", "dart", "simbody"), SILENT),
)
WORLD = _element("name", "gravity", model=MODEL, include=INCLUDE, joint=JOINT, frame=FRAME, physics=PHYSICS)
SDF = _element("version", model=MODEL, world=WORLD)

COUNTED = {"sensor": "sensors", "plugin": "plugins", "light": "lights", "actor": "actors", "gripper": "grippers"}


def unused_elements(roots: Iterable[Element]) -> Iterator[tuple[str, str]]:
    """Yield the entries of a report for elements that the reader ignores."""
    roots = tuple(roots)
    found = [pair for root in roots for pair in _unknown(root, SDF)]
    kinds = Counter(COUNTED[tag] for _, tag in found if tag in COUNTED)
    yield from ((kind, f"{number}") for kind, number in kinds.items())
    if counts := counted(f"{parent}/{tag}" for parent, tag in found if tag not in COUNTED):
        yield "elements that are not used", counts
    if counts := counted(name for root in roots for name in unknown_attributes(root, SDF)):
        yield "attributes that are not used", counts


def _unknown(element: Element, known: Known) -> Iterator[tuple[str, str]]:
    for child in element:
        meant = known.inside.get(child.tag)
        if meant is None and not _asks_for_nothing(child):
            yield element.tag, child.tag
        elif meant is not None and not meant.opaque:
            yield from _unknown(child, meant)


def _asks_for_nothing(element: Element) -> bool:
    """Return whether all its texts are "no" or zero; files write defaults."""
    values = [text_of(e) for e in element.iter() if len(e) == 0]
    return element.tag not in COUNTED and any(values) and NO.issuperset(value.lower() for value in values)
