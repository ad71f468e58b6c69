"""USD files: rigid bodies and joints of UsdPhysics, with attributes of Newton's and PhysX's schemas; all others are listed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...contact_rules import NeighbourRule
from ...description import Description
from ...types import START, Body, Configuration, Frame, ModelError, Vector, scale
from ..robot_numbers import unit_axis, unused_inertias
from ..robot_source import RobotSource
from ..unsupported import FOLLOW, file_notes, tolerate
from .filters import Filters
from .mass_elements import read_body
from .mechanism import UsdMechanism
from .schemas import UsdGeom, UsdPhysics
from .shapes import counted_shapes, is_site, read_shapes
from .stage import AXES, UsdStage, path_of, usd_errors

EARTH = 9.81  # [m/s²] default gravity


def read_usd(file: RobotSource, options: Mapping[str, str]) -> Description:
    """Read a USD file, in SI units. The only option is `mimic`; its default is "follow".

    Rigid bodies, joints and geometries have the names of their prims, or their paths if several prims have the same name. A
    body that no joint connects to the world floats freely on a joint `root_joint`; the configuration "qpos0" contains the
    poses of bodies in the file, with the targets of drives. A joint closes a loop if other joints connect its bodies. A joint
    with several degrees of freedom becomes several joints, NAME_transX, ..., NAME_rotZ; three rotations become one spherical
    joint. The axes of the world are those of the file, so z need not point up.

    Missing references, distance joints and colliders that are not supported are left out and noted (`file_notes`). Raises
    `ModelError`, which names file and prim, for a file that USD cannot open, prims that refer to missing prims, and damaged
    numbers. Raises `ImportError` without usd-core, and `OSError` for a missing file.
    """
    with usd_errors(file):
        return _description(UsdStage(file, file_notes()), options)


def _description(stage: UsdStage, options: Mapping[str, str]) -> Description:
    file = stage.file
    if not stage.bodies:
        raise ModelError(f"{file.name}: no prim has an enabled PhysicsRigidBodyAPI; apply it to each link of the robot")
    geometries = read_shapes(stage)
    mechanism = UsdMechanism(stage, options.get("mimic", FOLLOW))
    couplings = mechanism.couplings()
    filters = Filters(stage, geometries, mechanism)
    bodies = [
        read_body(stage, prim, [g.collider for g in geometries if g.collider is not None and stage.body_of(g.prim) == prim])
        for prim in stage.bodies
    ]
    start = Configuration(START, tuple(mechanism.start.items()), tuple(mechanism.targets.items()))
    gravity, timestep = _scene(stage)
    frames = tuple(_frames(stage, bodies))
    counted = counted_shapes(stage, geometries)
    if mechanism.independent:
        stage.note("couplings", f"mimic of {', '.join(mechanism.independent)}, taken as independent")
    velocities = [f"physics:{key}" for key in ("velocity", "angularVelocity")]
    stage.note_prims("initial velocities", (b for b in stage.bodies if sum(any(stage.value(b, v, ())) for v in velocities)))
    root = stage.stage.GetDefaultPrim()
    return Description(
        name=root.GetName() if root else file.stem,
        source=file.name,
        bodies=(*bodies, *mechanism.virtual),
        joints=tuple(mechanism.joints),
        frames=frames,
        gravity=gravity,
        unused=(*counted.unused, *stage.unused(), *unused_inertias(bodies)),
        virtual=frozenset(body.name for body in mechanism.virtual),
        loops=tuple(mechanism.loops),
        couplings=couplings,
        shapes=tuple(filters.shapes),
        actuators=tuple(mechanism.actuators),
        configurations=(start,) if start.coordinates or start.controls else (),
        disabled_collisions=tuple(filters.links.values()),
        neighbours=NeighbourRule.NONE,
        timestep=timestep,
    )


def _frames(stage: UsdStage, bodies: list[Body]) -> Iterator[Frame]:
    sites = [p for p in stage.prims if is_site(stage, p)]
    names = stage.short_names(sites, (b.name for b in bodies))
    for prim in sites:
        split = stage.in_body(prim).split()
        if split is None:
            problem = "the axes of the site are sheared, or its scale is zero"
            tolerate(stage.where(prim), problem, "correct its scale", "left out")
            continue
        yield Frame(names[path_of(prim)], stage.body_name(prim), split[0])


def _scene(stage: UsdStage) -> tuple[Vector, float | None]:
    """Return gravity [m/s²] and the time step [s] of the first physics scene."""
    up = str(UsdGeom.GetStageUpAxis(stage.stage))
    if up not in AXES:
        raise ModelError(f"{stage.file.name}: its upAxis is '{up}'; use Y or Z")
    down = scale(-1.0, AXES[up])
    scenes = [p for p in stage.prims if p.IsA(UsdPhysics.Scene)]
    stage.note_prims("physics scenes but for the first", scenes[1:])
    if not scenes:
        return scale(EARTH, down), None
    scene = scenes[0]
    direction = stage.value(scene, "physics:gravityDirection", (0.0, 0.0, 0.0))
    magnitude = stage.number(scene, "physics:gravityMagnitude", -1.0)
    g = EARTH if magnitude < 0.0 else stage.meter * magnitude
    if not stage.value(scene, "newton:gravityEnabled", True):
        g = 0.0
    rates = (stage.value(scene, f"{space}:timeStepsPerSecond", like=0.0) for space in ("newton", "physxScene"))
    rate = next(filter(None, rates), None)
    where = stage.where(scene)
    return scale(g, unit_axis(direction, "gravity", where) if any(direction) else down), 1.0 / rate if rate else None
