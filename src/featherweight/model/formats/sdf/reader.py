"""SDF files, 1.5 to 1.12: links become bodies, joints become joints and loops; all other elements are listed.

Poses and attachments of frames follow the specification; included models are read from their files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from xml.etree.ElementTree import Element

from ...contact_rules import NeighbourRule
from ...description import Description
from ...editing.renaming import all_names, with_names
from ...solids import WATER, shape_solid, summed
from ...types import START, Body, Configuration, Frame, Inertia, JointType, Pose, Shape
from ..robot_numbers import free_coordinates, inertia_at, unused_inertias
from ..robot_source import RobotSource
from ..unsupported import FOLLOW, excused, file_notes
from ..xml import only, read_scalar, read_vector
from .elements import FLAGS, base_of, flag, raw_pose, with_values
from .frame_graph import GROUND
from .joint_elements import Mechanism
from .models import Models, NamedElement
from .schema import unused_elements
from .shapes import read_shapes

MOMENTS = {"ixx": 1.0, "ixy": 0.0, "ixz": 0.0, "iyy": 1.0, "iyz": 0.0, "izz": 1.0}  # values without <inertial>
IN_WORLDS = "0 0 -9.8"  # default gravity


def read_sdf(file: RobotSource, options: Mapping[str, str]) -> Description:
    """Read an SDF file, in SI units. The only option is `mimic`; its default is "follow".

    Bodies and joints keep the file's order. A link that no joint moves floats freely on a joint `root_joint`; the
    configuration "qpos0" is its pose in the file. Static models are fixed to the world. A joint whose child already has a
    joint closes a loop. A joint with two axes becomes NAME_axis and NAME_axis2; a screw becomes NAME and NAME_slide, which
    follows it. Gearboxes and <mimic> become couplings. Frames become frames. Links of one model do not collide unless the
    model or they set self_collide, and neither do links that a joint connects.

    All models of a <world> and all included files are read. Names begin with the name of the model and "::", including nested
    models, except if the world has only one model that is not static.

    Included files that are not found and screws that close loops are left out and noted (`file_notes`). Raises `ModelError`,
    which names file and element, for a file that is damaged, or that has unknown names or cyclic frames. Raises `OSError` for a
    file that cannot be opened.
    """
    unsupported = file_notes()
    models = Models(file, unsupported)
    mechanism = Mechanism(models, options.get("mimic", FOLLOW), unsupported)
    couplings = mechanism.couplings(file.name)
    densities: dict[str, float] = {}
    shapes = read_shapes(models, file, densities)
    bodies = [_body(part, models, shapes.shapes, densities) for part in models.links]
    joints = mechanism.joints
    flying = {j.name: models.frames.pose(j.child, GROUND, file.name) for j in joints if j.type is JointType.FLOATING}
    start = Configuration(START, tuple((name, free_coordinates(pose)) for name, pose in flying.items()))
    world, gravity = models.world, (0.0, 0.0, -9.81)
    if world is not None:
        gravity = read_vector(with_values(world, file.name), "gravity", IN_WORLDS, f"{file.name}: <world>")
    unused = (*shapes.unused, *_unused(models, mechanism), *unused_inertias(bodies))
    d = Description(
        name=models.name,
        source=file.name,
        bodies=(*bodies, *mechanism.virtual),
        joints=tuple(joints),
        frames=tuple(_frames(models)),
        gravity=gravity,
        unused=unused,
        virtual=frozenset(body.name for body in mechanism.virtual),
        loops=tuple(mechanism.loops),
        couplings=couplings,
        shapes=shapes.shapes,
        configurations=(start,) if any(pose != Pose() for pose in flying.values()) else (),
        disabled_collisions=tuple(_apart(models, mechanism)),
        neighbours=NeighbourRule.NONE,
        timestep=None if world is None else _timestep(world, file.name),
    )
    return _with_own_names(d, models)


def _body(part: NamedElement, models: Models, shapes: Sequence[Shape], densities: Mapping[str, float]) -> Body:
    """Return a link; the weight of a link without gravity is compensated."""
    weighs = flag(part.element, "gravity", True, part.where)
    inertial = part.element.find("inertial")
    if inertial is not None and FLAGS.get(inertial.get("auto", "").lower(), False):
        inertia = _inertia_of_shapes(part, inertial, [s for s in shapes if s.body == part.name], densities)
    else:
        inertia = _inertia(part, models)
    return Body(part.name, inertia, gravity_compensation=0.0 if weighs else 1.0)


def _inertia_of_shapes(
    part: NamedElement, inertial: Element, shapes: Sequence[Shape], densities: Mapping[str, float]
) -> Inertia:
    """Return the inertia of a link's collision shapes, as libsdformat computes it for <inertial auto="true">.

    The <density> of a collision, or that of the <inertial>, or 1000 kg/m³ gives the masses; a <mass> scales their sum.
    """
    values = with_values(inertial, part.where)
    usual = read_scalar(values, "density", part.where, WATER)
    try:
        solids = [(densities.get(s.name, usual), shape_solid(s)) for s in shapes if not s.visual]
    except (ValueError, ImportError) as error:  # a mesh that cannot be read
        problem = f"its inertia is to be computed from its shapes (auto), and that fails ({error})"
        file_notes().refuse(part.where, problem, "write its <mass> and <inertia>")
        return Inertia()
    whole = summed([solid.of_mass(density * solid.volume) for density, solid in solids if solid is not None])
    if whole.mass > 0.0 and "mass" in values.attrib:
        ratio = read_scalar(values, "mass", part.where) / whole.mass
        whole = Inertia(ratio * whole.mass, whole.center, tuple(ratio * x for x in whole.rotational))
    return whole


def _inertia(part: NamedElement, models: Models) -> Inertia:
    """Return the inertia of a link; without <inertial>, it is 1 kg and 1 kg m² about each axis."""
    inertial = only(part.element, "inertial", part.where)
    if inertial is None:
        return inertia_at(Pose(), 1.0, [*MOMENTS.values()], part.where)
    tensor, pose = only(inertial, "inertia", part.where), only(inertial, "pose", part.where)
    values = with_values(inertial, part.where)
    mass = None
    with excused("taken as a link without mass"):
        mass = read_scalar(values, "mass", part.where, 1.0)
    if mass is None:
        return Inertia()
    written = Element("inertia") if tensor is None else with_values(tensor, part.where)
    moments = [read_scalar(written, key, part.where, x) for key, x in MOMENTS.items()]
    frame = raw_pose(pose, part.where)
    if base := base_of(pose):
        with excused("so the pose of its <inertial> is in the link"):
            frame = models.frames.pose(part.scope.absolute(base), part.name, part.where) @ frame
    return inertia_at(frame, mass, moments, part.where)


def _frames(models: Models) -> Iterator[Frame]:
    for part in models.named_frames:
        link = models.frames.link(part.frame, part.where)
        yield Frame(part.name, link or None, models.frames.pose(part.frame, link, part.where))


def _apart(models: Models, mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """Yield pairs of links that do not collide: neighbours, and links of one model unless one of them sets self_collide."""
    yield from mechanism.neighbours
    joined = {*map(frozenset, mechanism.neighbours)}
    models_links: dict[str, list[str]] = {}
    for part in models.links:
        if part.element.find("collision") is not None and not part.scope.static:
            models_links.setdefault(part.scope.outermost, []).append(part.name)
    for links in models_links.values():
        for pair in combinations(links, 2):
            if models.self_colliding.isdisjoint(pair) and frozenset(pair) not in joined:
                yield pair


def _with_own_names(d: Description, models: Models) -> Description:
    """Return the description with names without the model's prefix, if only one model moves and the names stay unique."""
    if models.world is None or len(models.moving_models) != 1:
        return d
    prefix = f"{models.moving_models[0]}::"
    plain = with_names(d, lambda name: name.removeprefix(prefix))
    names = [*all_names(plain)]
    return plain if len(names) == len({*names}) else d


# --- worlds


def _timestep(world: Element, source: str) -> float | None:
    """Return the time step of the default physics, which is the first unless another is marked."""
    physics = sorted(world.findall("physics"), key=lambda e: not FLAGS.get(e.get("default", "").lower(), False))
    where = f"{source}: <physics>"
    values = with_values(physics[0], where) if physics else None
    return read_scalar(values, "max_step_size", where) if values is not None and "max_step_size" in values.attrib else None


# --- unused elements


def _unused(models: Models, mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    textures = sum(1 for root in models.elements for tag in ("script", "pbr") for _ in root.iterfind(f".//material/{tag}"))
    kinds = (
        ("limits and forces of joints that close loops, gear others or have no axis", ", ".join(dict.fromkeys(mechanism.lost))),
        ("position limits of joints without limits", ", ".join(mechanism.ranged)),
        ("joints that their limits hold, taken as fixed", ", ".join(mechanism.fixed_by_limits)),
        ("joints of static models", ", ".join(mechanism.on_static)),
        ("couplings", f"mimic of {', '.join(mechanism.independent)}, taken as independent" if mechanism.independent else ""),
        ("textures", f"{textures}" if textures else ""),
    )
    yield from ((kind, said) for kind, said in kinds if said)
    yield from unused_elements(models.elements)
