"""From a robot and what is to touch to the arrays of a `CollisionScene`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..collision.collision_scene import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    HEIGHTS,
    HULL,
    PLANE,
    SPHERE,
    CollisionScene,
    HeightFields,
    Hulls,
)  # fmt: skip
from ..collision.face_clipping import MOST_POINTS
from ..collision.height_fields import MOST_PATCHES
from ..collision.hulls import Hull, hull_of
from ..model.contact_rules import NeighbourRule
from ..model.types import WORLD, Shape, ShapeType, frame_name
from ..robot.collision.geometries import hull_vertices
from ..robot.collision.shape_pairs import touching_pairs
from ..robot.robot import Robot
from .scene import ContactSphere, HeightField, Plane, TouchingParts, common_coefficient
from .standins import local_stand_ins

Array = np.ndarray[Any, np.dtype[Any]]

OVERLAP = 1e-3  # [m] at the beginning, from which on two shapes are taken for parts of one
NO_HULL = Hull(
    np.zeros((0, 3)), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64),
    np.zeros((0, 3)), np.zeros(1, np.int64), np.zeros(0, np.int64),
)  # fmt: skip
ON_A_PLANE = {SPHERE: 1, CAPSULE: 2, BOX: 8, CYLINDER: 6, ELLIPSOID: 1, HULL: MOST_POINTS}  # candidates
KINDS = {
    ShapeType.SPHERE: SPHERE,
    ShapeType.CAPSULE: CAPSULE,
    ShapeType.BOX: BOX,
    ShapeType.CYLINDER: CYLINDER,
    ShapeType.ELLIPSOID: ELLIPSOID,
    ShapeType.MESH: HULL,
    ShapeType.PLANE: PLANE,
    ShapeType.HEIGHTFIELD: HEIGHTS,
}
NumberedPair = tuple[int, int, float | None, float]  # two things, friction of their own, and margin [m]
Links = tuple[str | None, str | None]


class ScenePart(NamedTuple):
    """One thing that may touch. Its balls stand for it on height fields."""

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
    field: HeightField | None = None
    link: str | None = None  # of the file, or the frame of a sphere; None for the ground


class TouchingScene(NamedTuple):
    """A scene, and what belongs to its numbers."""

    scene: CollisionScene
    bodies: list[str]  # that may touch
    names: list[str]  # of candidates
    links: list[Links]  # and what touches there: forces are on the first, and the world is the second
    pairs: Array  # (candidates,) int, the pair of each
    friction: Array  # (candidates,)
    restitution: Array  # (candidates,)
    sphere_count: int  # shapes numbered below it are the spheres that a simulation was given
    drawn: Array  # (pairs,) bool, of two shapes of the file on different bodies


def make_scene(robot: Robot, parts: TouchingParts) -> TouchingScene:
    """The scene of spheres, ground and, where they are wanted, shapes of the file.

    Raises ValueError for spheres that are fixed to the world or to one another, and for meshes without volume.
    """
    things = [sphere_part(robot, s) for s in parts.spheres]
    count = len(things)
    ground = None
    if parts.ground is not None:
        ground = len(things)
        things.append(ground_part(parts.ground))
    pairs: list[NumberedPair] = [] if ground is None else [(s, ground, None, 0.0) for s in range(count)]
    for i, j in parts.pairs:
        check_pair(parts.spheres, things, i, j)
        pairs.append((i, j, None, 0.0))
    drawn = [False] * len(pairs)
    if parts.shapes:
        number = {}
        used = [k for k, s in enumerate(robot.shapes) if s.collision]
        for k in used:
            number[k] = len(things)
            things.append(shape_part(robot.shapes[k])._replace(link=robot.model.shape_links[k]))
        touching = touching_pairs(robot)
        pairs += [(number[p.i], number[p.j], p.friction, p.margin) for p in touching]
        # a file's own rule says what touches; without one, shapes at joints may overlap
        ruled = robot.model.neighbours is not NeighbourRule.JOINED
        drawn += [not ruled and None not in (robot.shapes[p.i].body, robot.shapes[p.j].body) for p in touching]
        if ground is not None:
            on_ground = [number[k] for k in used if robot.shapes[k].body is not None and KINDS[robot.shapes[k].type] < PLANE]
            pairs += [(k, ground, None, 0.0) for k in on_ground]
            drawn += [False] * len(on_ground)
    return assembled_scene(things, pairs, parts, count, drawn)


def sphere_part(robot: Robot, s: ContactSphere) -> ScenePart:
    """A sphere, or point, in its body's frame of the file."""
    f = robot.frame(s.frame)
    if f.body is None:
        raise ValueError(f"the {_kind(s)} on {frame_name(s.frame)!r} is fixed to the world: only moving bodies touch")
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
        raise ValueError(f"pair {(i, j)}: {a} and {b} are both fixed to body {things[i].body!r}, and never move apart")


def ground_part(ground: Plane | HeightField) -> ScenePart:
    """The ground that a simulation was given."""
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


def shape_part(shape: Shape) -> ScenePart:
    """A shape of the file. Raises ValueError for a mesh without volume."""
    if shape.type is ShapeType.HEIGHTFIELD:
        return field_part(shape)
    kind, size, hull, T = KINDS[shape.type], [*shape.size, 0.0, 0.0, 0.0], NO_HULL, np.eye(4)
    T[:3, :3], T[:3, 3] = shape.placement
    radius, centers = (0.0, np.zeros((0, 3))) if kind == PLANE else local_stand_ins(shape)
    match kind:
        case 1 | 3:  # capsules and cylinders: half the length
            size[1] *= 0.5
            around = size[0] + size[1] if kind == CAPSULE else float(np.hypot(size[0], size[1]))
        case 2:
            size = [0.5 * s for s in shape.size]
            around = float(np.linalg.norm(size))
        case 5:
            T = np.eye(4)
            hull = hull_of(hull_vertices(shape))
            middle = 0.5 * (hull.vertices.min(axis=0) + hull.vertices.max(axis=0))
            hull, T[:3, 3] = hull._replace(vertices=hull.vertices - middle), middle
            centers = np.asarray(centers) - middle
            around, size = float(np.linalg.norm(hull.vertices, axis=1).max()), [0.0, 0.0, 0.0]
        case 6:
            around = 0.0
        case _:
            around = max(size)
    balls = np.array([(*c, radius) for c in centers], dtype=float).reshape(-1, 4)
    name = f"the shape {shape.name!r} on {shape.body or WORLD!r}"
    return ScenePart(kind, shape.body, T, size[:3], around, name, shape.friction, None, balls, hull)


def field_part(shape: Shape) -> ScenePart:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = shape.placement
    x, y = (0.5 * length for length in shape.size[:2])
    name = f"the shape {shape.name!r} on {shape.body or WORLD!r}"
    field = HeightField(shape.heights, (-x, x), (-y, y), base=shape.size[2])
    return ScenePart(HEIGHTS, shape.body, T, (0.0, 0.0, 0.0), 0.0, name, shape.friction, None, field=field)


def assembled_scene(
    things: Sequence[ScenePart], pairs: Sequence[NumberedPair], parts: TouchingParts, spheres: int,
    drawn: Sequence[bool],
) -> TouchingScene:  # fmt: skip
    """Arrays of everything; of a pair (i, j, friction, margin) the thing of the lower kind comes first."""
    bodies = list(dict.fromkeys(t.body for t in things if t.body is not None))
    fields = [t.field for t in things if t.field is not None]
    data = np.zeros((len(things), 7), np.int64)
    data[:, 0] = np.cumsum([0, *(t.field is not None for t in things)])[:-1]
    for column, sizes in (
        (1, [len(t.balls) for t in things]),
        (3, [len(t.hull.vertices) for t in things]),
        (5, [len(t.hull.normals) for t in things]),
    ):
        ends = np.cumsum([0, *sizes])
        data[:, column], data[:, column + 1] = ends[:-1], ends[1:]
    ordered = [(i, j, f, m) if things[i].kind <= things[j].kind else (j, i, f, m) for i, j, f, m in pairs]
    candidates = [_candidates(things[i], things[j]) for i, j, _, _ in ordered]
    first = np.cumsum([0, *candidates]).astype(np.int64)
    scene = CollisionScene(
        kind=np.array([t.kind for t in things], np.int64),
        body=np.array([-1 if t.body is None else bodies.index(t.body) for t in things], np.int64),
        placement=np.array([[*t.placement[:3, :3].ravel(), *t.placement[:3, 3]] for t in things]).reshape(-1, 12),
        size=np.array([[float(s) for s in t.size] for t in things]).reshape(-1, 3),
        radius=np.array([t.radius for t in things], float),
        data=data,
        pair=np.array([p[:2] for p in ordered], np.int64).reshape(-1, 2),
        margin=np.array([p[3] for p in ordered], float),
        first=first[:-1].copy(),
        enabled=np.ones(len(ordered), bool),
        balls=np.concatenate([np.zeros((0, 4)), *(t.balls for t in things)]),
        fields=_fields(fields),
        hulls=hulls_of(things),
    )  # fmt: skip
    owner = np.repeat(np.arange(len(ordered)), candidates)
    friction = [_friction(things[i], things[j], f, parts) for i, j, f, _ in ordered]
    bounce = [common_coefficient(things[i].restitution, things[j].restitution, parts.restitution) for i, j, _, _ in ordered]
    names = [_pair_name(things[i], things[j]) for i, j, _, _ in ordered]
    links = [_links(things[i], things[j]) for i, j, _, _ in ordered]
    return TouchingScene(
        scene, bodies, [names[p] for p in owner], [links[p] for p in owner], owner,
        np.array(friction, float)[owner], np.array(bounce, float)[owner], spheres, np.array(drawn, bool),
    )  # fmt: skip


def _friction(a: ScenePart, b: ScenePart, of_pair: float | None, parts: TouchingParts) -> float:
    return common_coefficient(a.friction, b.friction, parts.friction) if of_pair is None else of_pair


def _pair_name(a: ScenePart, b: ScenePart) -> str:
    if b.name == "the ground":
        return a.name
    return f"{b.name} and {a.name}" if a.body is None else f"{a.name} and {b.name}"


def _links(a: ScenePart, b: ScenePart) -> Links:
    return (b.link, a.link) if a.body is None else (a.link, b.link)


def _candidates(a: ScenePart, b: ScenePart) -> int:
    """How many points two things may touch at, the one of the lower kind first."""
    if b.kind == HEIGHTS:
        return MOST_PATCHES * len(a.balls)
    if b.kind == PLANE:
        return ON_A_PLANE[a.kind]
    if a.kind == SPHERE:
        return 1
    return 3 if a.kind == CAPSULE and b.kind in (CAPSULE, BOX) else MOST_POINTS + 1


def _fields(fields: Sequence[HeightField]) -> HeightFields:
    starts = itertools.accumulate((f.grid.size for f in fields), initial=0)
    edges = [
        (f.x[0], f.y[0], (f.x[1] - f.x[0]) / (f.grid.shape[0] - 1), (f.y[1] - f.y[0]) / (f.grid.shape[1] - 1),
         f.grid.max(), f.base)
        for f in fields
    ]  # fmt: skip
    return HeightFields(
        heights=np.concatenate([np.zeros(0), *(f.grid.ravel() for f in fields)]),
        grid=np.array([(start, *f.grid.shape) for start, f in zip(starts, fields, strict=False)], np.int64).reshape(-1, 3),
        edges=np.array(edges, float).reshape(-1, 6),
    )


def hulls_of(things: Sequence[ScenePart]) -> Hulls:
    """All hulls in one set of arrays, with numbers counted from the first of all."""
    hulls = [t.hull for t in things]
    vertex = np.cumsum([0, *(len(h.vertices) for h in hulls)])
    face = np.cumsum([0, *(len(h.normals) for h in hulls)])

    def ranges(name: str) -> Array:
        lists = [np.diff(getattr(h, name)) for h in hulls]
        return np.cumsum(np.concatenate([[0], *lists])).astype(np.int64)

    def numbers(name: str, shift: Array) -> Array:
        lists = [getattr(h, name) + s for h, s in zip(hulls, shift, strict=False)]
        return np.concatenate([np.zeros(0, np.int64), *lists]).astype(np.int64)

    return Hulls(
        vertices=np.concatenate([np.zeros((0, 3)), *(h.vertices for h in hulls)]),
        normals=np.concatenate([np.zeros((0, 3)), *(h.normals for h in hulls)]),
        links=ranges("links"), linked=numbers("linked", vertex), faces=ranges("faces"), corners=numbers("corners", vertex),
        owners=ranges("owners"), owned=numbers("owned", face),
    )  # fmt: skip


def _kind(s: ContactSphere) -> str:
    return "sphere" if s.radius else "point"
