"""Conversion of a description to a model: fixed joints are merged, joints sorted depth-first, and degrees of freedom expanded.

A joint with k degrees of freedom becomes k rows of the expanded tree (Featherstone 2005, section 2). The child's internal
frame lies on the joint's axis. Everything that is fixed to the child is given in this frame, and the inertias are summed
there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..checks import Kind, Refused, argument, one_of
from ..names import listed
from ..spatial import ZERO_RIGID, RigidInertia, Vec3
from ..spatial.elementary import cos, norm, sin
from ..summaries import visible
from .checks import check
from .description import Description
from .editing.acting import moved_tendon
from .editing.notes import warn_caller
from .editing.references import links_of_subtree, named_frames
from .equivalent_box import box_of_link, semi_axes
from .inertia_checks import about_center, judged_inertias, without_negative_moments
from .model import DragPart, Model, ModelFrame, MovingBody, MovingJoint, Placed, PointMass
from .model_sensors import model_sensors, rigid_at
from .placement import ALONG_Z, Line, axial_screws, chained, exact_zeros, internal_frame, tidy
from .tree import FLOATING, INNER, PLANAR, PRISMATIC, REVOLUTE, SPHERICAL, Tree
from .types import (
    LARGEST,
    ROOT_JOINT,
    VECTOR,
    WORLD,
    Camera,
    CameraMode,
    Inertia,
    Joint,
    JointDynamics,
    JointType,
    ModelError,
    Moments,
    Pose,
    Shape,
    SharedContents,
    Vector,
    rotate,
    values_of,
)

_ROWS = {
    JointType.REVOLUTE: ((REVOLUTE, 2),),
    JointType.CONTINUOUS: ((REVOLUTE, 2),),
    JointType.PRISMATIC: ((PRISMATIC, 5),),
    JointType.SPHERICAL: ((SPHERICAL, 0), (INNER, 1), (INNER, 2)),
    JointType.FLOATING: ((FLOATING, 3), (INNER, 4), (INNER, 5), (INNER, 0), (INNER, 1), (INNER, 2)),
    JointType.PLANAR: ((PLANAR, 3), (INNER, 4), (INNER, 2)),
}
"""Kind and axis of each row of a joint, in the order of its velocities. A type may have several rows that are not INNER: its
coordinates are then theirs, one after the other.
"""

CURVED = {t: _ROWS[t][0][0] for t in (JointType.SPHERICAL, JointType.FLOATING, JointType.PLANAR)}
"""Types of joints whose velocities do not commute, and their kinds in the tree."""

NEGATIVE = "negative principal moments of inertia, taken as zero"  # a key of reports


class _Carrier(NamedTuple):
    """The carrier of a link of the file: the row of its moving body, and the link's pose in that body's internal frame."""

    body: str | None  # None for the ground
    row: int
    pose: Pose


GROUND = _Carrier(None, -1, Pose())


def build_model(
    description: Description, base: str = "fixed", gravity: Sequence[float] | None = None, strict: bool = False
) -> Model:
    """Merge, sort and expand a description.

    `base` is "fixed" (the root stays at its place in the file) or "floating" (a free-flyer carries it). `gravity` [m/s²]
    overrides that of the file. Warns about negative principal moments of inertia, which become zero. Raises ModelError for a
    robot whose motion is not defined and, if `strict`, for negative moments.
    """
    check(description)
    g = argument(f"{description.source}: gravity", description.gravity if gravity is None else gravity, GRAVITY)
    return _Expansion(description, _ordered_joints(description, base), strict).model((float(g[0]), float(g[1]), float(g[2])))


def _gravity(x: object) -> tuple[float, ...]:
    g: tuple[float, ...] = VECTOR.convert(x)
    if not all(abs(number) <= LARGEST for number in g):
        raise Refused
    return g


GRAVITY = Kind(f"three finite numbers within ±{LARGEST:g}", _gravity, error=ModelError)


BASES = one_of(("fixed", "floating")).worded('"fixed" or "floating"')


def _ordered_joints(d: Description, base: str) -> list[Joint]:
    """Return all joints depth-first in the file's order, and a joint that attaches each root to the world."""
    argument("base", base, BASES)
    moved = {j.child for j in d.joints}
    names = {b.name for b in d.bodies}
    roots = [b.name for b in d.bodies if b.name not in moved]
    joints = [Joint(f"{r}_to_world", JointType.FIXED, None, r) for r in roots] + [_on_ground(j, names) for j in d.joints]
    top = [j for j in joints if j.parent is None]
    if base == "floating" and not (len(top) == 1 and top[0].type == JointType.FLOATING):
        if len(top) != 1 or top[0].type != JointType.FIXED:
            raise ModelError(
                f'{d.source}: base="floating" needs one root body that is fixed to the world; this file has '
                + ", ".join(f"{j.child!r} ({j.type})" for j in top)
            )
        flyer = Joint(ROOT_JOINT, JointType.FLOATING, None, top[0].child)
        joints[joints.index(top[0])] = flyer
    children: dict[str | None, list[Joint]] = {}
    for j in joints:
        children.setdefault(j.parent, []).append(j)
    ordered: list[Joint] = []
    stack = list(reversed(children.get(None, [])))
    while stack:
        joint = stack.pop()
        ordered.append(joint)
        stack += reversed(children.get(joint.child, []))
    if len(ordered) != len(joints):
        lost = sorted({j.name for j in joints} - {j.name for j in ordered})
        raise ModelError(f"{d.source}: joints {', '.join(lost)} are not connected to the root")
    return ordered


def _on_ground(joint: Joint, bodies: set[str]) -> Joint:
    """Return the joint, with None as its parent if that is the ground."""
    return replace(joint, parent=None) if joint.parent == WORLD and WORLD not in bodies else joint


class _Load(NamedTuple):
    """The joint axes and masses that a moving body carries, in its frame of the file."""

    axes: list[Line]  # axes of joints, at zero
    masses: list[tuple[float, Vector]]  # masses, with their centres

    @property
    def center(self) -> Vector | None:
        mass = math.fsum(m for m, _ in self.masses)
        if mass <= 0.0:
            return None
        x, y, z = (math.fsum(m * c[k] for m, c in self.masses) / mass for k in range(3))
        return (x, y, z)


def _loads(d: Description, joints: list[Joint]) -> dict[str | None, _Load]:
    """Return the load of each moving body."""
    inertias = {b.name: b.inertia for b in d.bodies}
    loads: dict[str | None, _Load] = {}
    links: dict[str | None, tuple[str | None, Pose]] = {None: (None, Pose())}  # link -> moving body, and the link's pose on it
    for joint in joints:
        body, pose = links[joint.parent]
        at = pose @ joint.placement
        if joint.type != JointType.FIXED:
            if joint.type in ALONG_Z and body in loads:
                loads[body].axes.append(Line((at @ Pose(p=joint.anchor)).p, rotate(at.R, joint.axis)))
            body, at = joint.child, Pose()
        links[joint.child] = (body, at)
        I = inertias[joint.child]
        loads.setdefault(body, _Load([], [])).masses.append((I.mass, (at @ Pose(p=I.center)).p))
    return loads


class _Expansion:
    """The rows of the expanded tree so far, and the carriers of the links."""

    def __init__(self, description: Description, joints: list[Joint], strict: bool) -> None:
        self.d, self.strict = description, strict
        self.raised: list[str] = []  # bodies of negative moments
        self.joints = joints
        self.rows: list[dict[str, Any]] = []
        self.carriers: dict[str | None, _Carrier] = {None: GROUND}
        self.links: dict[str, list[str]] = {}  # moving body -> links
        self.moving: list[MovingJoint] = []
        self.nq = 0
        self.solid = True
        self.loads = _loads(description, joints)
        self.longest = max((norm(*j.placement.p) for j in joints), default=0.0)  # files have -1.11e-16 for zero

    def model(self, gravity: Vector) -> Model:
        for joint in self.joints:
            parent = self.carriers[joint.parent]
            if joint.type == JointType.FIXED:
                self.carriers[joint.child] = _Carrier(parent.body, parent.row, parent.pose @ joint.placement)
                if parent.body is not None:
                    self.links[parent.body].append(joint.child)
            else:
                self._add_joint(joint, parent)
        if not self.moving:
            problem = f'{self.d.source}: no joint of the robot moves; load a flying robot with base="floating"'
            if self.strict:
                raise ModelError(problem)
            warn_caller(f"{problem}, if it shall move")
        inertias = self._merged_inertias()
        self._check_inertias(inertias)
        virtual = self.d.virtual
        shown = [j for j in self.moving if j.child not in virtual]
        bodies = tuple(self._body(k, j.child, inertias) for k, j in enumerate(shown))
        frames, placed = self._frames()
        return Model(
            name=visible(self.d.name),
            source=self.d.source,
            joints=tuple(self.moving),
            bodies=bodies,
            frames=frames,
            tree=self._tree(inertias, gravity),
            placed_frames=placed,
            placed_bodies=tuple(Placed(*self.carriers[b.name][1:]) for b in bodies),
            unused=(*self.d.unused, *((NEGATIVE, listed(self.raised)) for _ in self.raised[:1])),
            solid=self.solid,
            shapes=tuple(map(self._shape, self.d.shapes)),
            tendons=tuple(moved_tendon(t, self._on_moving_body) for t in self.d.tendons),
            shape_links=tuple(self._link(s.body) for s in self.d.shapes),
            link_centers=tuple((b.name, b.inertia.center) for b in self.d.bodies if b.name in {s.body for s in self.d.shapes}),
            disabled_collisions=tuple((self._link(a), self._link(b)) for a, b in self.d.disabled_collisions),
            drag=tuple(self._drag()),
            weight_compensated=tuple(self._compensated_masses()),
            camera_masses=tuple(tuple(self._followed_masses(c)) for c in self.d.cameras),
            sensors=model_sensors(self.d, lambda link: self._on_moving_body(link, Pose())),
            **values_of(SharedContents, self.d),
        )

    def _add_joint(self, joint: Joint, parent: _Carrier) -> None:
        """Add the rows of a joint, and return the internal frame of its child."""
        kinds = _ROWS[joint.type]
        load = self.loads[joint.child]
        internal = internal_frame(joint, load.axes, load.center)  # in the child's frame of the file
        zero = tidy(parent.pose @ joint.placement @ internal)
        reach = max(self.longest, math.fsum(norm(*pose.p) for pose in (parent.pose, joint.placement, internal)))
        zero = Pose(zero.R, exact_zeros(zero.p, reach))
        if joint.zero:
            c, s = cos(joint.zero), -sin(joint.zero)
            shift = Pose(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))
            zero = zero @ (shift if kinds[0][0] == REVOLUTE else Pose(p=(0.0, 0.0, -joint.zero)))
        v = len(self.rows)
        starts = [k for k, (kind, _) in enumerate(kinds) if kind != INNER]
        for k, (kind, axis) in enumerate(kinds):
            at = zero if k == 0 else Pose()
            screws = axial_screws(at)
            self.rows.append(
                dict(
                    parent=parent.row if k == 0 else v + k - 1,
                    axis=axis,
                    first=v + max(x for x in starts if x <= k),
                    last=v + min((x for x in starts if x > k), default=len(kinds)) - 1,
                    kind=kind,
                    q_index=self.nq + sum(x <= k for x in starts[1:]),
                    rotation=at.R,
                    translation=at.p,
                    base=screws.base,
                    turns=(screws.yaw, screws.roll, screws.twist),
                    slide=screws.slide,
                    armature=joint.armature,
                )
            )
        self.carriers[joint.child] = _Carrier(joint.child, len(self.rows) - 1, chained(internal.inverse(), Pose()))
        self.links[joint.child] = [joint.child]
        q = self.nq
        self.nq += joint.type.nq
        self.moving.append(
            MovingJoint(
                len(self.moving), joint.name, joint.type, parent.body, joint.child, joint.axis,
                slice(q, self.nq), slice(v, len(self.rows)), **values_of(JointDynamics, joint),
            )
        )  # fmt: skip

    def _drag(self) -> Iterator[DragPart]:
        """Yield the ellipsoids or boxes of moving links with mass, if there is a fluid."""
        for body in self.d.bodies if self.d.fluid is not None else ():
            carrier = self.carriers[body.name]
            if carrier.body is None or not body.inertia.mass > 0.0:
                continue
            at = self.carriers[carrier.body].pose.inverse() @ carrier.pose
            shapes = [s for s in self.d.shapes if s.body == body.name and s.fluid is not None]
            for s in shapes:
                if size := semi_axes(s):
                    yield DragPart(carrier.body, at @ s.placement, size, s.fluid)
            if not shapes:
                axes, size = box_of_link(body)
                yield DragPart(carrier.body, at @ Pose(axes, body.inertia.center), size)

    def _compensated_masses(self) -> Iterator[PointMass]:
        """Yield the parts of the masses of moving links whose weight is compensated."""
        for body in self.d.bodies:
            owner, at = self._on_moving_body(body.name, Pose(p=body.inertia.center))
            if owner is not None and body.gravity_compensation * body.inertia.mass != 0.0:
                yield PointMass(owner, body.gravity_compensation * body.inertia.mass, at.p)

    def _followed_masses(self, c: Camera) -> Iterator[PointMass]:
        """Yield the masses whose centre a camera follows or looks at: those of a link and of all links of its subtree."""
        if c.mode in (CameraMode.TRACKCOM, CameraMode.TARGETBODYCOM):
            inertias = {b.name: b.inertia for b in self.d.bodies}
            for name in links_of_subtree(self.d, c.target if c.has_target else c.body):
                if inertias[name].mass > 0.0:
                    body, at = self._on_moving_body(name, Pose(p=inertias[name].center))
                    yield PointMass(body, inertias[name].mass, at.p)

    def _merged_inertias(self) -> dict[int, RigidInertia]:
        """Return, for the last row of each joint, the inertia of everything fixed to its body, in the internal frame."""
        inertias: dict[int, RigidInertia] = {}
        for body in self.d.bodies:
            carrier = self.carriers[body.name]
            if carrier.row >= 0:
                part = rigid_at(body.inertia, carrier.pose)
                inertias[carrier.row] = inertias.get(carrier.row, ZERO_RIGID) + part
        for row, I in inertias.items():
            h = (I.moment.x, I.moment.y, I.moment.z)
            inertias[row] = I._replace(moment=Vec3(*exact_zeros(h, norm(*h))))
        return inertias

    def _check_inertias(self, inertias: dict[int, RigidInertia]) -> None:
        """Set negative principal moments to zero, and record whether all bodies have mass and inertia about every axis."""
        rows = [joint.v_slice.stop - 1 for joint in self.moving]
        verdicts = judged_inertias([inertias.get(row, ZERO_RIGID) for row in rows])
        problems: dict[str, str] = {}
        for joint, row, verdict in zip(self.moving, rows, verdicts, strict=True):
            self.solid &= verdict.solid
            if not verdict.possible:
                links = listed(self.links[joint.child])
                problem = f"about the centre of mass has the principal moment {verdict.lowest:.3g} kg m²"
                problems[joint.child] = f"body {joint.child!r} (links {links}): its inertia {problem}"
                inertias[row] = without_negative_moments(inertias[row])
        if problems:
            message = f"{self.d.source}: {'; '.join(problems.values())}"
            if self.strict:
                raise ModelError(f"{message}; correct its <inertial>")
            warn_caller(f"{message}, taken as zero; correct the <inertial>")
        self.raised = [*problems]

    def _body(self, index: int, name: str, inertias: dict[int, RigidInertia]) -> MovingBody:
        carrier = self.carriers[name]
        I = inertias.get(carrier.row, ZERO_RIGID)
        pose = carrier.pose.inverse()
        h = (I.moment.x, I.moment.y, I.moment.z)
        center = pose @ Pose(p=tuple(x / I.mass for x in h)) if I.mass else Pose()
        inertia = Inertia(I.mass, center.p, Moments(*about_center(I)).rotated(pose.R))
        return MovingBody(index, name, inertia, tuple(self.links[name]))

    def _frames(self) -> tuple[tuple[ModelFrame, ...], tuple[Placed, ...]]:
        """Return one frame for each link, then the file's own frames."""
        frames, placed = [], []
        for frame in named_frames(self.d):
            carrier = self.carriers.get(frame.body, GROUND)
            frames.append(ModelFrame(frame.name, *self._on_moving_body(frame.body, frame.placement)))
            placed.append(Placed(carrier.row, chained(carrier.pose, frame.placement)))
        return tuple(frames), tuple(placed)

    def _shape(self, shape: Shape) -> Shape:
        body, placement = self._on_moving_body(shape.body, shape.placement)
        return replace(shape, body=body, placement=placement)

    def _on_moving_body(self, link: str | None, pose: Pose) -> tuple[str | None, Pose]:
        """Return the moving body that carries a link of the file, and a pose on the link in that body's frame of the file."""
        carrier = self.carriers.get(link, GROUND)
        internal = chained(carrier.pose, pose)
        whole = internal if carrier.body is None else chained(self.carriers[carrier.body].pose.inverse(), internal)
        return carrier.body, whole

    def _link(self, name: str | None) -> str | None:
        """Return a link of the file; None for the ground."""
        return name if name in self.carriers else None

    def _tree(self, inertias: dict[int, RigidInertia], gravity: Vector) -> Tree:
        for row, r in enumerate(self.rows):
            I = inertias.get(row, ZERO_RIGID)
            r |= dict(mass=I.mass, moment=tuple(I.moment), inertia=tuple(I.rotational))
        fields = [f for f in Tree._fields if f != "gravity"]
        columns = {f: tuple(r[f] for r in self.rows) for f in fields}
        return Tree(**columns, gravity=gravity)
