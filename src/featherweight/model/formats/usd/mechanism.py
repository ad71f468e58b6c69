"""The joints of a stage as a tree, the joints that close loops, and couplings.

Joints connect two bodies in any order, so the tree is found by Kruskal's algorithm: a joint closes a loop if earlier joints
connect its bodies. Joints on the ground come first, and joints that are excluded from articulations last. The tree is followed
outwards from the ground, or from the root of a floating body; a joint that leads from body1 to body0 turns about the opposite
axis, so that its coordinate is that of the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ....spatial import Vec3, exp_so3, log_so3
from ....spatial.elementary import norm
from ....spatial.lie import quaternion_of_matrix
from ...types import (
    ROOT_JOINT,
    Actuator,
    Body,
    Coupling,
    Joint,
    JointType,
    Loop,
    LoopType,
    Matrix,
    ModelError,
    Pose,
    Vector,
    dot,
    rotate,
    scale,
)
from ..robot_numbers import free_coordinates, rotation_by_quaternion
from ..unsupported import INDEPENDENT, REFUSE, excused
from ..urdf.couplings import Equation, JointMarks, break_circles, exact, following, mimic_refused, solve_couplings
from ..urdf.loop_elements import loop_turns
from ..xml import Names
from .joint_prims import (
    DRIVES,
    Freedom,
    JointPrim,
    UsdMimic,
    keeps_apart,
    passive_numbers,
    read_drive,
    read_joint,
    read_mimic,
    stacks,
)
from .schemas import UsdPhysics
from .stage import UsdStage, path_of

CLOSE = 1e-4  # [m, rad] largest distance of a body from the pose that its joint gives
ZERO = 1e-6  # [m, rad] largest coordinate that is zero up to rounding to single precision
APART = "joints whose bodies lie elsewhere in the file, and start at zero"
SEVERAL = "joints of two bodies that have another joint, with which they hold at once"
LOST = "limits, forces and drives of joints that close loops"
Ends = tuple[str | None, str | None]


class UsdMechanism:
    """The joints of a stage; the ground is None."""

    def __init__(self, stage: UsdStage, mimic: str) -> None:
        self.stage, self.mimic = stage, mimic
        self.joints: list[Joint] = []
        self.loops: list[Loop] = []
        self.virtual: list[Body] = []
        self.actuators: list[Actuator] = []
        self.start: dict[str, tuple[float, ...]] = {}  # nonzero coordinates of joints at the bodies' poses in the file
        self.targets: dict[str, float] = {}  # targets of drives
        self.independent: list[str] = []  # joints made independent
        self.tree: dict[str | None, str | None] = {}  # for each body, a representative of all bodies connected to it
        self._placed: set[str] = set()
        self._above: dict[str, str | None] = {}
        self._equations: dict[str, Equation] = {}
        self._by_prim: dict[tuple[str, str | None], str] = {}
        self._poses = {stage.names[path_of(b)]: stage.pose(b) for b in stage.bodies}
        self.read = [j for p in stage.prims if p.IsA(UsdPhysics.Joint) and (j := read_joint(stage, p)) is not None]
        self._short = stage.short_names(j.prim for j in self.read)
        self._names = Names([*self._short.values(), *stage.names.values()])
        self.jointed = [(a, b) for j in self.read for a, b in [j.ends] if a and b and keeps_apart(stage, j)]
        edges, closing = self._spanning(self._edges())
        self._grow(edges)
        for joints in closing:
            for joint in joints:
                self._add_loop(joint)
        self._add_mimics()

    def couplings(self) -> tuple[Coupling, ...]:
        break_circles(self._equations, self.stage.file.name)
        return solve_couplings([*self._equations.values()], JointMarks({}, (), ()))

    def name(self, joint: JointPrim) -> str:
        return self._short[path_of(joint.prim)]

    def tree_of(self, body: str) -> str:
        """Return the body below the ground that carries all bodies to which joints connect this one."""
        while (above := self._above.get(body)) is not None:
            body = above
        return body

    # --- the tree

    def _edges(self) -> list[list[JointPrim]]:
        """Return joints that each connect two bodies, or several that do so one after another."""
        edges: list[list[JointPrim]] = []
        stacked: dict[Ends, list[JointPrim]] = {}
        seen: set[frozenset[str | None]] = set()
        for joint in self.read:
            if len(joint.freedoms) == 6:
                continue
            if not joint.excluded and joint.freedoms and stacks(self.stage, joint):
                if joint.ends in stacked:
                    stacked[joint.ends].append(joint)
                    continue
                stacked[joint.ends] = edge = [joint]
            else:
                edge = [joint]
                if frozenset(joint.ends) in seen:
                    self.stage.note(SEVERAL, path_of(joint.prim))
            seen.add(frozenset(joint.ends))
            edges.append(edge)
        return edges

    def _spanning(self, edges: list[list[JointPrim]]) -> tuple[list[list[JointPrim]], list[list[JointPrim]]]:
        """Return the edges of the tree, and those that close loops."""
        kinematic = [p for p in self.stage.bodies if self.stage.value(p, "physics:kinematicEnabled", False)]
        self.stage.note_prims("kinematic bodies, which stay where they are", kinematic)
        self.kinematic = [self.stage.names[path_of(p)] for p in kinematic]
        self.tree = dict.fromkeys(self.kinematic, None)
        closing = []
        for edge in sorted(edges, key=lambda e: (e[0].excluded, None not in e[0].ends)):
            a, b = map(self.root, edge[0].ends)
            if a == b:
                closing.append(edge)
            else:
                self.tree |= {b: a} if b is not None else {a: b}
        still = {None, *self.kinematic}
        loops = [edge for edge in closing if not still.issuperset(edge[0].ends)]
        closed = {*map(id, closing)}
        return [edge for edge in edges if id(edge) not in closed], loops

    def root(self, body: str | None) -> str | None:
        """Return the representative of all bodies that are connected to this one."""
        while body in self.tree:
            body = self.tree[body]
        return body

    def _grow(self, edges: list[list[JointPrim]]) -> None:
        around: dict[str | None, list[list[JointPrim]]] = {}
        for edge in edges:
            for end in edge[0].ends:
                around.setdefault(end, []).append(edge)
        for name in self.kinematic:
            joint = Joint(self._names.new(f"{name}_fixed"), JointType.FIXED, None, name, self._poses[name])
            self._append(joint)
            self._follow(name, around)
        self._follow(None, around)
        for name in self._roots(edges):
            if name not in self._placed:
                root = Joint(self._names.new(ROOT_JOINT), JointType.FLOATING, None, name)
                self._append(root)
                if self._poses[name] != Pose():
                    self.start[root.name] = free_coordinates(self._poses[name])
                self._follow(name, around)

    def _roots(self, edges: list[list[JointPrim]]) -> Iterator[str]:
        """Yield bodies in order of preference as roots: roots of articulations, bodies that are nobody's body1, and others."""
        bodies = [(b, self.stage.names[path_of(b)]) for b in self.stage.bodies]
        children = {edge[0].ends[1] for edge in edges}
        yield from (name for b, name in bodies if b.HasAPI(UsdPhysics.ArticulationRootAPI))
        yield from (name for _, name in bodies if name not in children)
        yield from (name for _, name in bodies)

    def _follow(self, start: str | None, around: Mapping[str | None, list[list[JointPrim]]]) -> None:
        stack = [start]
        while stack:
            parent = stack.pop()
            outward = []
            for edge in around.get(parent, ()):
                ends = edge[0].ends
                child = ends[1] if ends[0] == parent else ends[0]
                if child is not None and child not in self._placed:
                    self._add_edge(edge, parent, child)
                    outward.append(child)
            stack += reversed(outward)

    def _append(self, joint: Joint) -> None:
        self.joints.append(joint)
        self._placed.add(joint.child)
        self._above[joint.child] = joint.parent

    def _add_edge(self, edge: list[JointPrim], parent: str | None, child: str) -> None:
        """Add a joint for each degree of freedom, or one spherical joint for three rotations.

        Between the joints are massless bodies, whose frame is the child's at zero.
        """
        flipped = edge[0].ends[0] != parent
        steps = [(joint, freedoms) for joint in edge for freedoms in _steps(joint.freedoms)]
        first, last = (1, 0) if flipped else (0, 1)
        zero = edge[0].frames[first] @ edge[0].frames[last].inverse()
        for joint in edge[1:]:
            if _distance(zero, joint.frames[first] @ joint.frames[last].inverse()) > CLOSE:
                raise ModelError(
                    f"{joint.where}: at zero it places its bodies differently from <{edge[0].prim.GetPath()}>; correct it"
                )
        placement, above, made = zero, parent, []
        for k, (joint, freedoms) in enumerate(steps[::-1] if flipped else steps):
            alone = len(_steps(joint.freedoms)) == 1
            name = (
                self.name(joint) if alone else self._names.new(f"{self.name(joint)}_{freedoms[0].tag if freedoms else 'fixed'}")
            )
            below = child
            if k + 1 < len(steps):
                below = self._names.new(f"{child}/{name}")
                self.virtual.append(Body(below))
            made.append(self._joint(joint, freedoms, name, (above, below), placement, last))
            self._append(made[-1])
            above, placement = below, Pose()
        self._start(made, zero, parent, child, edge[0])

    def _joint(
        self,
        joint: JointPrim,
        freedoms: tuple[Freedom, ...],
        name: str,
        bodies: tuple[str | None, str],
        placement: Pose,
        end: int,
    ) -> Joint:
        frame, (parent, child) = joint.frames[end], bodies
        numbers: dict[str, Any] = {}
        for freedom in freedoms[:1]:
            numbers = passive_numbers(self.stage, joint, freedom)
        if len(freedoms) != 1:
            for freedom in freedoms:
                self._by_prim[path_of(joint.prim), freedom.tag] = name
                if drive := read_drive(self.stage, joint, freedom, name):
                    self.stage.note(DRIVES, f"{freedom.tag} of the ball joint {joint.prim.GetPath()}")
            kind = JointType.SPHERICAL if freedoms else JointType.FIXED
            return Joint(name, kind, parent, child, placement, anchor=frame.p if freedoms else Pose().p, **numbers)
        one = freedoms[0]
        if len(joint.freedoms) == 1:
            self._by_prim[path_of(joint.prim), None] = name
        self._by_prim[path_of(joint.prim), one.tag] = name
        drive = read_drive(self.stage, joint, one, name)
        if drive is not None:
            self.actuators.append(drive.actuator)
            numbers["effort"] = drive.effort
            if drive.target:
                self.targets[drive.actuator.name] = drive.target
        limited = one.lower > -math.inf or one.upper < math.inf
        kind = (JointType.REVOLUTE if limited else JointType.CONTINUOUS) if one.turns else JointType.PRISMATIC
        axis = rotate(frame.R, one.axis if end == 1 else scale(-1.0, one.axis))
        anchor = frame.p if one.turns else Pose().p
        return Joint(name, kind, parent, child, placement, axis, anchor, lower=one.lower, upper=one.upper, **numbers)

    def _start(self, made: list[Joint], zero: Pose, parent: str | None, child: str, joint: JointPrim) -> None:
        """Store the coordinates of the child's pose in the file."""
        above = Pose() if parent is None else self._poses[parent]
        motion = zero.inverse() @ above.inverse() @ self._poses[child]
        expected, coordinates = _coordinates(made[0], motion) if len(made) == 1 else (Pose(), ())
        if _distance(expected, motion) > CLOSE:
            self.stage.note(APART, path_of(joint.prim))
        elif coordinates:
            self.start[made[0].name] = coordinates

    # --- loops

    def _add_loop(self, joint: JointPrim) -> None:
        kind, turns = _loop(joint)
        if kind is None:
            free = ", ".join(f.tag for f in joint.freedoms)
            remedy = "reorder the joints so that another joint closes this loop"
            self.stage.unsupported.refuse(
                joint.where, f"a joint that closes a loop and leaves {free} free is not supported", remedy
            )
            return
        numbers = [n for f in joint.freedoms for n in passive_numbers(self.stage, joint, f).values()]
        drives = [read_drive(self.stage, joint, f, "") for f in joint.freedoms]
        ranged = any(abs(x) < math.inf for f in joint.freedoms for x in (f.lower, f.upper))
        if ranged or any(numbers) or any(drives):
            self.stage.note(LOST, path_of(joint.prim))
        there, here = (frame @ Pose(turn) for frame, turn in zip(joint.frames, turns, strict=True))
        self.loops.append(Loop(self.name(joint), kind, *joint.ends, there, here))

    # --- couplings

    def _add_mimics(self) -> None:
        for joint in self.read:
            for freedom in joint.freedoms:
                mimic = None
                with excused("so it moves independently"):
                    mimic = read_mimic(self.stage, joint, freedom)
                    if mimic is not None and self.mimic == INDEPENDENT:
                        self.independent.append(path_of(joint.prim))
                    elif mimic is not None and self.mimic != REFUSE:
                        self._add_mimic(joint, mimic)
                if mimic is not None and self.mimic == REFUSE:
                    raise mimic_refused(joint.where)

    def _add_mimic(self, joint: JointPrim, mimic: UsdMimic) -> None:
        follower = self._by_prim.get((path_of(joint.prim), mimic.tag))
        leader = self._by_prim.get((path_of(mimic.leader), mimic.leader_tag))
        slides = {j.name: j.type is JointType.PRISMATIC for j in self.joints if j.type.nv == 1}
        if leader not in slides or follower not in slides or slides[leader] is not slides[follower]:
            problem = f"it mimics <{mimic.leader.GetPath()}>, and not both slide, or turn about one axis, in the tree"
            raise ModelError(f'{joint.where}: {problem}; correct it, or load with mimic="independent"')
        factor, offset = exact(mimic.factor), exact(mimic.offset)
        self._equations[follower] = following(follower, joint.where, follower, leader, factor, offset)


def _steps(freedoms: tuple[Freedom, ...]) -> list[tuple[Freedom, ...]]:
    """Return the degrees of freedom of each joint: three rotations form one joint, and none form a fixed joint."""
    turning = tuple(f for f in freedoms if f.turns)
    if len(turning) == 3:
        return [*((f,) for f in freedoms if not f.turns), turning]
    return [(f,) for f in freedoms] or [()]


def _loop(joint: JointPrim) -> tuple[LoopType | None, tuple[Matrix, Matrix]]:
    """Return the type of a loop with the same freedom, and the poses of its frames in those of the joint."""
    turning, sliding = ([f.axis for f in joint.freedoms if f.turns is turns] for turns in (True, False))
    plain = (Pose().R, Pose().R)
    match len(turning), len(sliding):
        case 0, 0:
            return LoopType.WELD, plain
        case 3, 0:
            return LoopType.SPHERICAL, plain
        case 1, 0:
            return LoopType.REVOLUTE, loop_turns(turning[0], None, joint.where)
        case 0, 1:
            return LoopType.PRISMATIC, loop_turns(sliding[0], None, joint.where)
        case 1, 1 if turning == sliding:
            return LoopType.CYLINDRICAL, loop_turns(turning[0], None, joint.where)
        case 2, 0:
            return LoopType.UNIVERSAL, loop_turns(turning[0], turning[1], joint.where)
        case 1, 2 if turning[0] not in sliding:
            return LoopType.PLANAR, loop_turns(turning[0], None, joint.where)
    return None, plain


def _turn_of(R: Matrix) -> Vector:
    w = log_so3(quaternion_of_matrix(R))
    return (w.x, w.y, w.z)


def _distance(a: Pose, b: Pose) -> float:
    apart = a.inverse() @ b
    return max(norm(*apart.p), norm(*_turn_of(apart.R)))


def _coordinates(joint: Joint, motion: Pose) -> tuple[Pose, tuple[float, ...]]:
    """Return the motion of a joint nearest to that of its child's frame, and its coordinates; none if they are zero."""
    if joint.type is JointType.PRISMATIC:
        d = dot(joint.axis, motion.p)
        return Pose(p=scale(d, joint.axis)), (d,) if abs(d) > ZERO else ()
    if joint.type is JointType.FIXED:
        return Pose(), ()
    x, y, z = _turn_of(motion.R)
    if joint.type is not JointType.SPHERICAL:
        angle = dot(joint.axis, (x, y, z))
        x, y, z = scale(angle, joint.axis)
    q = exp_so3(Vec3(x, y, z))
    R = motion.R if joint.type is JointType.SPHERICAL else rotation_by_quaternion((*q.u, q.s), joint.name)
    expected = Pose(p=joint.anchor) @ Pose(R) @ Pose(p=scale(-1.0, joint.anchor))
    if norm(x, y, z) <= ZERO:
        return expected, ()
    return expected, (free_coordinates(Pose(R))[3:] if joint.type is JointType.SPHERICAL else (angle,))
