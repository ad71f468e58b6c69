"""Arrays of a `CollisionScene`, from a robot and the objects that may touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Array
from ..collision.collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHTS, HULL, PLANE, SPHERE, CollisionScene
from ..collision.face_clipping import MOST_POINTS
from ..collision.height_fields import MOST_PATCHES
from ..collision.hulls import NO_HULL, Hull
from ..collision.shape_parts import KINDS, SampledHeights, joined_fields, joined_hulls, part_ranges, shape_part
from ..contact.contact_model import NO_SURFACES, NO_TANGENTS
from ..engine.progress import Progress
from ..model.contact_rules import DEFAULT_SOFTNESS, NeighbourRule, Softness
from ..model.types import WORLD, JointType, Shape, ShapeType, frame_name
from ..robot.collision.shape_pairs import TouchingPair, touching_pairs
from ..robot.robot import Robot
from .scene import LEAST_FRICTION, ContactSphere, HeightField, Plane, TouchingParts, common_coefficient

OVERLAP = 1e-3  # [m] least initial overlap for which two shapes count as parts of one body
ON_A_PLANE = {SPHERE: 1, CAPSULE: 2, BOX: 8, CYLINDER: 6, ELLIPSOID: 1, HULL: MOST_POINTS}  # candidates


NO_SHAPES = np.zeros(0, np.int64)


Links = tuple[str | None, str | None]


class ScenePart(NamedTuple):
    """One object that may touch. Its balls represent it on height fields."""

    kind: int
    body: str | None
    placement: Array  # (4, 4) in the body's frame
    size: Sequence[float]
    radius: float
    name: str
    friction: float | None
    restitution: float | None
    balls: Array = np.zeros((0, 4))
    hull: Hull = NO_HULL
    field: HeightField | SampledHeights | None = None
    link: str | None = None  # link in the file, or frame of a sphere; None for the ground
    softness: Softness = DEFAULT_SOFTNESS
    surface: Array = np.zeros(6)  # velocity of the surface relative to its body, in the body's frame and at its origin
    adhesion: float = 0.0  # [N]
    gap: float = 0.0  # [m]


class TouchingScene(NamedTuple):
    """A scene, with the names and parameters of its candidates."""

    scene: CollisionScene
    bodies: list[str]  # bodies that may touch
    names: list[str]  # names of candidates
    links: list[Links]  # links of candidates: forces act on the first; the world comes second
    pairs: Array  # (candidates,) int, pair of each candidate
    friction: Array  # (candidates,)
    restitution: Array  # (candidates,)
    sphere_count: int  # shapes with smaller numbers are the spheres given to the simulation
    softness: Sequence[Softness]  # (candidates,)
    turning: Array  # (candidates, 3) [m] friction against spinning, and rolling about both tangents
    drawn: Array  # (pairs,) bool, two shapes of one robot in a file without contact rules, which may be drawn overlapping
    adhesion: Array  # (candidates,) [N]
    surfaces: Array  # (candidates, 2, 6) or empty: velocities of both surfaces, see `ContactModel`
    tangents: Array  # (candidates, 5) or empty: see `ContactModel`
    shapes: Array = NO_SHAPES  # (parts,) int, numbers of the robot's shapes, -1 for others


def make_scene(robot: Robot, parts: TouchingParts) -> TouchingScene:
    """Return the scene of spheres, ground and, if requested, shapes of the file.

    Raises ValueError for spheres that are fixed to the world or to one another, and for meshes without volume.
    """
    things = [sphere_part(robot, s) for s in parts.spheres]
    count = len(things)
    ground = None
    if parts.ground is not None:
        ground = len(things)
        things.append(ground_part(parts.ground))
    pairs: list[TouchingPair] = [] if ground is None else [TouchingPair(s, ground) for s in range(count)]
    for i, j in parts.pairs:
        check_pair(parts.spheres, things, i, j)
        pairs.append(TouchingPair(i, j))
    drawn = [False] * len(pairs)
    number: dict[int, int] = {}
    if parts.shapes:
        used = [k for k, s in enumerate(robot.shapes) if s.collision]
        with Progress(f"shapes and convex hulls of {robot.name!r}", len(used)) as progress:
            for k in progress.counting(used):
                number[k] = len(things)
                things.append(part_of_shape(robot.shapes[k], robot.model.shape_links[k], parts.by_file))
        touching = touching_pairs(robot)
        if not parts.by_file:  # the last of a pair that the file names several times
            touching = [*{(p.i, p.j): p for p in touching}.values()]
        pairs += [numbered_pair(p, number, parts.least_friction) for p in touching]
        # contact rules of the file decide; without rules, shapes at joints may overlap
        ruled = robot.model.neighbours is not NeighbourRule.JOINED
        roots = roots_of_bodies(robot)
        drawn += [not ruled and of_one_robot(robot.shapes[p.i], robot.shapes[p.j], roots) for p in touching]
        if ground is not None:
            on_ground = [number[k] for k in used if robot.shapes[k].body is not None and KINDS[robot.shapes[k].type] < PLANE]
            pairs += [
                TouchingPair(k, ground, softness=things[k].softness, adhesion=things[k].adhesion, gap=things[k].gap)
                for k in on_ground
            ]
            drawn += [False] * len(on_ground)
    order = [b.name for b in robot.bodies]  # the order of rows, in which bodies of a tree are adjacent
    sticky = {a.adhesion for a in robot.actuators if a.adhesion is not None}
    pulled = [bool(p.adhesion or sticky.intersection((things[p.i].link, things[p.j].link))) for p in pairs]
    pairs = [p if pull else p._replace(gap=0.0) for p, pull in zip(pairs, pulled, strict=True)]
    shapes = np.full(len(things), -1)
    for k, part in number.items():
        shapes[part] = k
    return assembled_scene(things, pairs, parts, count, drawn, order)._replace(shapes=shapes)


def numbered_pair(p: TouchingPair, number: Mapping[int, int], least: float) -> TouchingPair:
    """Return a pair of shapes as one of parts by number, with `least` friction in all directions that condim includes."""
    sliding = p.friction if p.friction is None or p.condim == 1 else max(p.friction, least)
    spinning, first, second = (max(x, least) if p.condim >= n else 0.0 for x, n in zip(p.turning, (4, 6, 6), strict=True))
    return p._replace(i=number[p.i], j=number[p.j], friction=sliding, turning=(spinning, first, second))


def roots_of_bodies(robot: Robot) -> dict[str | None, str | None]:
    """Return, for each body, the floating body that carries it; None for bodies joined to the world."""
    roots: dict[str | None, str | None] = {None: None}
    for j in robot.joints:  # parents first
        roots[j.child] = j.child if j.type is JointType.FLOATING else roots[j.parent]
    return roots


def of_one_robot(a: Shape, b: Shape, roots: dict[str | None, str | None]) -> bool:
    """Return whether two shapes belong to one robot (its bodies or its base), so that they may be drawn overlapping."""
    return not {a.type, b.type} & {ShapeType.PLANE, ShapeType.HEIGHTFIELD} and roots[a.body] == roots[b.body]


def sphere_part(robot: Robot, s: ContactSphere) -> ScenePart:
    f = robot.frame(s.frame)
    if f.body is None:
        raise ValueError(f"the {_kind(s)} on {frame_name(s.frame)!r} is fixed to the world: only moving bodies can touch")
    T = np.eye(4)
    T[:3, 3] = np.array(f.placement.R) @ np.asarray(s.center, float) + np.array(f.placement.p)
    link = frame_name(s.frame)
    name = f"the {_kind(s)} on {link!r}"
    balls = np.array([[0.0, 0.0, 0.0, s.radius]])
    return ScenePart(SPHERE, f.body, T, (s.radius, 0.0, 0.0), s.radius, name, s.friction, s.restitution, balls, link=link)


def check_pair(spheres: Sequence[ContactSphere], things: Sequence[ScenePart], i: int, j: int) -> None:
    """Raise ValueError for a pair of spheres that cannot move against each other."""
    if things[i].body == things[j].body:
        a, b = (f"the {_kind(spheres[k])} {k} on {frame_name(spheres[k].frame)!r}" for k in (i, j))
        raise ValueError(f"pair {(i, j)}: {a} and {b} are both fixed to body {things[i].body!r}, so they never touch")


def ground_part(ground: Plane | HeightField) -> ScenePart:
    surface = "the ground", ground.friction, ground.restitution
    if isinstance(ground, HeightField):
        return ScenePart(HEIGHTS, None, np.eye(4), (0.0, 0.0, 0.0), 0.0, *surface, field=ground)
    z = np.array(ground.normal)
    x = np.eye(3)[int(np.abs(z).argmin())]
    x = x - z * (z @ x)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = x, np.cross(z, x), z, ground.point
    return ScenePart(PLANE, None, T, (0.0, 0.0, 0.0), 0.0, *surface)


def part_of_shape(shape: Shape, link: str | None, by_file: bool = False) -> ScenePart:
    """Return a shape of the file. Raises ValueError for a mesh without volume."""
    part = shape_part(shape, by_file)
    name = f"the shape {shape.name!r} on {shape.body or WORLD!r}"
    return ScenePart(
        part.kind, shape.body, part.placement, part.size, part.radius, name, shape.friction, None, part.balls, part.hull,
        part.field, link, shape.softness, _surface_of(shape), shape.adhesion, shape.gap,
    )  # fmt: skip


def _surface_of(shape: Shape) -> Array:
    """Return the velocity of a shape's surface in the frame of its body, at its origin."""
    R, p, velocity = np.array(shape.placement.R), np.array(shape.placement.p), np.array(shape.surface_velocity)
    angular = R @ velocity[3:]
    return np.concatenate([R @ velocity[:3] - np.cross(angular, p), angular])


def assembled_scene(
    things: Sequence[ScenePart], pairs: Sequence[TouchingPair], parts: TouchingParts, spheres: int,
    drawn: Sequence[bool], order: Sequence[str],
) -> TouchingScene:  # fmt: skip
    """Return the arrays of the scene. In a pair (i, j, friction, margin), the object of the lower kind comes first.

    Bodies that may touch are those of `order` that have a part.
    """
    touching = {t.body for t in things}
    bodies = [body for body in order if body in touching]
    ordered = [p if things[p.i].kind <= things[p.j].kind else p._replace(i=p.j, j=p.i) for p in pairs]
    candidates = [_candidates(things[p.i], things[p.j]) for p in ordered]
    first = np.cumsum([0, *candidates]).astype(np.int64)
    scene = CollisionScene(
        kind=np.array([t.kind for t in things], np.int64),
        body=np.array([-1 if t.body is None else bodies.index(t.body) for t in things], np.int64),
        placement=np.array([[*t.placement[:3, :3].ravel(), *t.placement[:3, 3]] for t in things]).reshape(-1, 12),
        size=np.array([[float(s) for s in t.size] for t in things]).reshape(-1, 3),
        radius=np.array([t.radius for t in things], float),
        data=part_ranges(things),
        pair=np.array([p[:2] for p in ordered], np.int64).reshape(-1, 2),
        margin=np.array([p.margin for p in ordered], float),
        gap=np.array([p.gap for p in ordered], float),
        first=first[:-1].copy(),
        enabled=np.ones(len(ordered), bool),
        balls=np.concatenate([np.zeros((0, 4)), *(t.balls for t in things)]),
        fields=joined_fields(things),
        hulls=joined_hulls(things),
        by_file=parts.by_file,
    )  # fmt: skip
    owner = np.repeat(np.arange(len(ordered)), candidates)
    both = [(things[p.i], things[p.j]) for p in ordered]
    friction = [_friction(a, b, p, parts) for (a, b), p in zip(both, ordered, strict=True)]
    bounce = [common_coefficient(a.restitution, b.restitution, parts.restitution) for a, b in both]
    along = parts.file_axes or any(_has_directions(p) for p in ordered)
    names, links = [_pair_name(a, b) for a, b in both], [_links(a, b) for a, b in both]
    return TouchingScene(
        scene, bodies, [names[p] for p in owner], [links[p] for p in owner], owner,
        np.array(friction, float)[owner], np.array(bounce, float)[owner], spheres, [ordered[p].softness for p in owner],
        np.array([p.turning for p in ordered], float).reshape(-1, 3)[owner],
        np.array(drawn, bool), np.array([p.adhesion for p in ordered], float)[owner],
        _surfaces(both)[owner] if any(t.surface.any() for t in things) else NO_SURFACES,
        _tangents(both, ordered, parts.file_axes)[owner] if along else NO_TANGENTS,
    )  # fmt: skip


def _sides(a: ScenePart, b: ScenePart) -> tuple[ScenePart, ScenePart]:
    """Return two objects in the order of their contacts: the world comes second."""
    return (b, a) if a.body is None else (a, b)


def _surfaces(both: Sequence[tuple[ScenePart, ScenePart]]) -> Array:
    return np.array([[side.surface for side in _sides(a, b)] for a, b in both]).reshape(-1, 2, 6)


def _tangents(both: Sequence[tuple[ScenePart, ScenePart]], pairs: Sequence[TouchingPair], file_axes: bool) -> Array:
    """Return `ContactModel.tangents` of pairs: MuJoCo aligns contacts of a capsule and a plane with the capsule."""
    rows = np.zeros((len(pairs), 5))
    for row, (a, b), p in zip(rows, both, pairs, strict=True):
        if file_axes or _has_directions(p):
            two = _two_frictions(p) if p.second_friction is not None else (1.0, 1.0)
            row[:2] = np.array(two) / max(two)
            if a.kind == CAPSULE and b.kind == PLANE:
                row[2:] = a.placement[:3, 2]
    return rows


def _has_directions(p: TouchingPair) -> bool:
    """Return whether friction depends on the direction in the contact plane."""
    return p.second_friction is not None or p.turning[1] != p.turning[2]


def _friction(a: ScenePart, b: ScenePart, p: TouchingPair, parts: TouchingParts) -> float:
    if p.friction is None:
        return common_coefficient(a.friction, b.friction, parts.friction)
    return max(_two_frictions(p)) if p.second_friction is not None else p.friction


def _two_frictions(p: TouchingPair) -> tuple[float, float]:
    return max(p.friction or 0.0, LEAST_FRICTION), max(p.second_friction or 0.0, LEAST_FRICTION)


def _pair_name(a: ScenePart, b: ScenePart) -> str:
    if b.name == "the ground":
        return a.name
    return " and ".join(side.name for side in _sides(a, b))


def _links(a: ScenePart, b: ScenePart) -> Links:
    first, second = _sides(a, b)
    return first.link, second.link


def _candidates(a: ScenePart, b: ScenePart) -> int:
    """Return the number of possible contact points of two objects, the one of the lower kind first."""
    if b.kind == HEIGHTS:
        return MOST_PATCHES * len(a.balls)
    if b.kind == PLANE:
        return ON_A_PLANE[a.kind]
    if a.kind == SPHERE:
        return 1
    return 3 if a.kind == CAPSULE and b.kind in (CAPSULE, BOX) else MOST_POINTS + 1


def _kind(s: ContactSphere) -> str:
    return "sphere" if s.radius else "point"
