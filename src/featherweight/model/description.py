"""Robot descriptions: immutable values with methods that return changed descriptions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from ..checks import (
    NAME,
    NOTHING,
    NUMBER,
    POSITIVE,
    Count,
    Kind,
    Positive,
    PositiveCount,
    Refused,
    argument,
    checked,
    dict_of,
    either,
    list_of,
    number_in,
    object_of,
    one_of,
    whole,
)
from ..names import Named, missing_attribute
from ..providers import provided
from . import editing
from .contact_rules import Softness
from .formats.saving import save_description
from .types import NAMED_PARTS, Closure, Contents, Coupling, Inertia, JointType, Loop, Pose, PoseLike, Shape, VectorLike

THRESHOLD = number_in("a number from 0.01 to 1", 0.01, 1.0)
BODIES = either([NOTHING, list_of(NAME)]).worded("a list of names of bodies, or None")
LIMIT = either([NOTHING, whole(1)]).worded("a whole number of at least 1, or None")
CORNERS = either([NOTHING, whole(4)]).worded("a whole number of at least 4, or None")


@checked
@dataclass(frozen=True, slots=True)
class Decomposition:
    """Options for the replacement of collision meshes by convex parts: `load(..., decompose=Decomposition(threshold=0.02))`.

    The method is CoACD (Wei et al. 2022): it cuts the mesh by planes along its axes, found by a tree search, until no part is
    more concave than `threshold`. Concavity is a distance between a part and its convex hull, relative to half of the mesh's
    greatest extent. Meshes that are not closed, or intersect themselves, are first replaced by a closed surface with
    `resolution` cells along their greatest extent.
    """

    threshold: Annotated[float, THRESHOLD] = 0.05
    bodies: Annotated[Iterable[str] | None, BODIES] = None  # bodies whose meshes are decomposed; default: all
    most_parts: Annotated[int | None, LIMIT] = None  # of a mesh; further parts are merged, whatever their concavity
    most_corners: Annotated[int | None, CORNERS] = None  # of a part; parts with more are simplified
    resolution: PositiveCount = 50
    iterations: PositiveCount = 150  # of the tree search for each cut; the time grows in proportion
    seed: Count = 0


POSITIONS = dict_of(NAME, None).worded("a dict {joint: position}, such as {'elbow': 0.5}")
NEW_NAMES = dict_of(NAME, None).worded("a dict {old name: new name}")
AXIS = one_of("xyz").worded('"x", "y" or "z", the normal of the mirror plane')


def _payload(x: Any) -> Inertia:
    if isinstance(x, Inertia):
        return x
    try:
        return Inertia(NUMBER.convert(x))
    except Refused:
        raise Refused("; write its .inertia" if hasattr(x, "inertia") else "") from None


INERTIAS = dict_of(NAME, object_of(Inertia)).worded("a dict {body: featherweight.Inertia(...)}")
DENSITY = either([NOTHING, POSITIVE]).worded("a density [kg/m³], more than zero, or None")
PAYLOAD = Kind("a featherweight.Inertia(...), or the mass of a point in kg", _payload, frozenset({Inertia}), TypeError)


@checked
@dataclass(frozen=True, slots=True, repr=False)
class Description(Contents):
    """A description of a robot. `featherweight.read` and `describe` return it; `featherweight.build` builds a robot from it.

        arm = featherweight.read("arm.urdf").locked({"wrist": 0.5})
        robot = featherweight.build(arm.attached(featherweight.read("gripper.urdf"), "flange", prefix="gripper_"))

    Each method below returns a new description and leaves this one unchanged. If a method removes a part, it also removes
    everything that refers to the part, such as actuators of locked joints and shapes of removed bodies. `unused`, and
    therefore the robot's `report()`, lists the removed parts. If the robot gains freedom of motion (because a loop was cut), a
    ModelWarning is issued too. Bodies, frames and joints have the names of the file: `arm.joints["wrist"]`. All methods raise
    ModelError for unknown names, and list the known names.
    """

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            return missing_attribute(self, name, "featherweight.build makes a Robot, which computes, of a Description")

    def __post_init__(self) -> None:
        """Make parts accessible by name, and shorten their `repr`."""
        for name in NAMED_PARTS.values():
            object.__setattr__(self, name, Named(getattr(self, name)))

    def __repr__(self) -> str:
        moving = sum(joint.type is not JointType.FIXED for joint in self.joints)
        ties = {"loops": self.loops, "couplings": self.couplings, "closures": self.closures}
        tied = "".join(f", {kind}: {len(found)}" for kind, found in ties.items() if found)
        return f"<Description {self.name!r}: {len(self.bodies)} bodies, {moving} moving joints{tied}>"

    @checked
    def locked(self, positions: Annotated[Mapping[str, Any], POSITIONS]) -> Description:
        """Return the description with joints fixed: {joint: position [rad or m]}.

        For a joint with several coordinates, the position is its part of q, as in `Robot`. Joints that follow locked joints by
        couplings are locked too. Loops remain, except those in which nothing can move; these must be closed at the given
        positions. Raises ModelError for positions that contradict couplings or leave loops open.

            featherweight.read("arm.urdf").locked({"elbow": 0.5})
        """
        return editing.locking.locked(self, positions)

    @checked
    def subtree(self, body: str) -> Description:
        """Return the body and its descendants, with its frame at the ground's frame.

        Loops and couplings that are cut are removed.
        """
        return editing.cutting.subtree(self, body)

    def without(self, *bodies: str | Iterable[str]) -> Description:
        """Return the description without these bodies and their descendants: names, or one list of names.

        Loops and couplings that are cut are removed.
        """
        names = bodies[0] if len(bodies) == 1 and not isinstance(bodies[0], str) else bodies
        return editing.cutting.without(self, argument("Description.without: bodies", names, list_of(NAME)))

    @checked
    def attached(
        self, other: Contents, frame: str | None = None, placement: PoseLike | None = None, prefix: str = ""
    ) -> Description:
        """Return the description with another one, whose ground is fixed at `placement` on a frame of this one.

        The placement is a `Pose` or a homogeneous matrix (4, 4); the default is the frame itself.

        The frame may be a frame, a body or a fixed joint; None is the ground. Roots of the other description are fixed there,
        and its joints on the ground become joints on the frame's body.

        `prefix` is added to all names of the other description, except those of configurations: configurations of the same
        name are merged. Gravity, time step, integrator and the rule for contacts of neighbours are those of this description.
        If this one has no time step or integrator, the other's are used; if this one has no collision shapes, the other's rule
        is used. `unused` lists the settings of the other that differ. Raises ModelError if both have bodies, joints, ... of
        the same name, and ValueError for a matrix that is not a rigid motion.
        """
        return editing.attaching.attached(self, other, frame, Pose() if placement is None else placement, prefix)

    @checked
    def with_loop(self, loop: Loop) -> Description:
        """Return the description with an additional loop between bodies, frames or fixed joints."""
        return editing.adding.with_loop(self, loop)

    @checked
    def with_coupling(self, coupling: Coupling) -> Description:
        """Return the description with an additional joint that follows others."""
        return editing.adding.with_coupling(self, coupling)

    @checked
    def with_closure(self, closure: Closure) -> Description:
        """Return the description with an additional user-defined constraint."""
        return editing.adding.with_closure(self, closure)

    @checked
    def with_backlash(self, joint: str, gap: Positive, *, solref: tuple[float, float] = (0.02, 1.0)) -> Description:
        """Return the description with backlash between the drive of a joint and its link.

        The drive becomes a joint of its own, `<joint>_drive`, between the same bodies, with the armature, damping, dry
        friction, effort and actuators of the joint. It moves freely in a `gap` [rad, m], at whose ends it meets the link: a
        tendon with limits, `<joint>_backlash`, whose length is the drive's coordinate minus the joint's, at most gap / 2 of
        either sign. Limits, springs and sensors remain those of the joint. Where limits yield, `solref` are the time constant
        [s] and the damping ratio of the teeth. Raises ModelError for a joint without armature, which is the inertia of the
        drive, and for joints with several coordinates.

            featherweight.read("arm.urdf").with_joint("elbow", armature=0.05).with_backlash("elbow", 0.01)
        """
        return editing.adding.with_backlash(self, joint, gap, Softness(solref))

    @checked
    def with_payload(self, on: str, inertia: Annotated[Inertia | float, PAYLOAD]) -> Description:
        """Return the description with mass added to a body, in its frame, or to the body of a frame, in that frame.

        A number is the mass [kg] of a point at the origin of the body or frame. The combined inertia is exact.

            featherweight.read("arm.urdf").with_payload("hand", 0.5)  # [kg]
        """
        return editing.adding.with_payload(self, on, _payload(inertia))

    @checked
    def with_inertias(
        self, given: Annotated[Mapping[str, Any], INERTIAS] = {}, *, density: Annotated[float | None, DENSITY] = None
    ) -> Description:
        """Return the description with inertias of bodies: those `given`, and those of shapes for other bodies without mass.

        `given` has an Inertia for each body that it names, in the body's frame. With a `density` [kg/m³], each other body
        without an inertia in the file has that of its collision shapes, filled with this density, or of its visual shapes if
        it has no collision shapes; overlaps count twice. Warns (ModelWarning) about bodies without a shape that has a volume.
        Raises ModelError for unknown bodies, and MeshError for mesh files that cannot be read.
        """
        return editing.properties.with_inertias(self, given, density)

    @checked
    def decomposed(self, options: Decomposition = Decomposition()) -> Description:  # frozen
        """Return the description with collision meshes replaced by convex parts, which CoACD computes (extra "decomposition").

        Otherwise the convex hull of a mesh stands for it in contacts and distances. The mesh itself remains for pictures. A
        mesh that is convex, flat or missing remains as it is. Sensors and contact pairs of a mesh are those of its parts. The
        parts are kept on disk, by the content of the mesh and the options. `unused` and `report()` list the numbers of parts.

        Raises ImportError without the package coacd, ModelError for unknown bodies and for a mesh that CoACD cannot decompose,
        and MeshError for a mesh file that cannot be read.
        """
        found: Description = provided("Description.decomposed")(self, options)
        return found

    @checked
    def with_joint(
        self,
        joint: str | Sequence[str],
        *,
        limits: tuple[float, float] | None = None,
        effort: float | None = None,
        velocity: float | None = None,
        damping: float | None = None,
        dry_friction: float | None = None,
        stiffness: float | None = None,
        rest: float | None = None,
        armature: float | None = None,
    ) -> Description:
        """Return the description with other numbers of a joint, or of several: those that are given.

        `limits` are the least and the greatest coordinate [rad, m], infinite for none; `effort` [N m, N] and `velocity`
        [rad/s, m/s] are the greatest of either sign. The others are those of `Joint`: damping [N m s/rad, N s/m], dry friction
        [N m, N], stiffness [N m/rad, N/m] and rest position of the spring, and armature [kg m², kg]. Actuators of MJCF files
        keep their own ranges. Raises ValueError for limits in the wrong order and for negative numbers.

            featherweight.read("arm.urdf").with_joint("elbow", limits=(-1.0, 1.0), dry_friction=0.2)
        """
        given = {
            "velocity": velocity, "damping": damping, "dry_friction": dry_friction, "stiffness": stiffness, "armature": armature
        }  # fmt: skip
        for name, x in {**given, "effort": effort}.items():
            if x is not None and not x >= 0.0:
                raise ValueError(f"with_joint: {name} must not be negative; got {x!r}")
        changes: dict[str, Any] = {name: x for name, x in {**given, "rest": rest}.items() if x is not None}
        if effort is not None:
            changes |= {"effort": effort, "effort_range": None}
        if limits is not None:
            lower, upper = limits
            if not lower <= upper:
                raise ValueError(f"with_joint: limits must be (lower, upper), with lower <= upper; got {limits!r}")
            changes |= {"lower": lower, "upper": upper}
        return editing.properties.with_joint(self, (joint,) if isinstance(joint, str) else tuple(joint), changes)

    @checked
    def with_shape(self, shape: Shape) -> Description:
        """Return the description with an additional shape, on a link or on the ground (None or "world").

        `Robot.with_obstacles` adds shapes to a robot that is built already. Raises ModelError for the name of another shape and
        for an unknown link; `build` checks its size.

            ball = featherweight.Shape("ball", "hand", "sphere", (0.05,))
            featherweight.read("arm.urdf").with_shape(ball)
        """
        return editing.adding.with_shape(self, shape)

    @checked
    def with_friction(self, friction: float, on: str | Sequence[str] | None = None) -> Description:
        """Return the description with a coefficient of Coulomb friction of its collision shapes.

        They are all, or those `on` a link or of a name, or several of these. The friction of joints is `dry_friction` of
        `with_joint`. Contact pairs of MJCF files keep their own. Raises ValueError for a negative coefficient.

            featherweight.read("arm.urdf").with_friction(0.4, on="hand")
        """
        if not friction >= 0.0:
            raise ValueError(f"with_friction: friction must not be negative; got {friction!r}")
        names = (on,) if isinstance(on, str) else None if on is None else tuple(on)
        return editing.properties.with_friction(self, friction, names)

    @checked
    def with_joint_type(self, joint: str | Sequence[str], kind: JointType | Any, axis: VectorLike | None = None) -> Description:
        """Return the description with another type of joint; `axis`, in the child's frame, is the present axis by default.

        Three consecutive hinges become one spherical joint with the name of the first, if their axes meet in a point and the
        bodies between them are empty. Limits are removed, and so are couplings, closures and actuators of coordinates that no
        longer exist.
        """
        return editing.joint_types.with_joint_type(self, (joint,) if isinstance(joint, str) else tuple(joint), kind, axis)

    @checked
    def renamed(self, names: Annotated[Mapping[str, str], NEW_NAMES]) -> Description:
        """Return the description with other names, {old: new}, for all bodies, joints, frames, ... with these names.

        References to them are renamed too.
        """
        return editing.renaming.renamed(self, names)

    @checked
    def mirrored(self, axis: Annotated[str, AXIS]) -> Description:
        """Return the mirror image in the plane through the ground's origin across "x", "y" or "z", with the same names.

        The mirror image of a right arm is a left arm. Joints with one coordinate keep their coordinates; those of other joints
        are mirrored.
        """
        return editing.mirroring.mirrored(self, axis)

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file in the format of its suffix.

        .urdf files contain elements of this package for contents that URDF cannot express. .xml and .mjcf files are for
        MuJoCo. .srdf files contain configurations and disabled collisions; `read(..., srdf=path)` adds them to those of a
        URDF.

        Warns (ModelWarning) about contents that the file cannot hold, by name. Raises ModelError for closures in a .urdf file,
        and for bodies nested deeper than MuJoCo reads.

            featherweight.read("arm.urdf").locked({"elbow": 0.5}).save("stiff.urdf")
        """
        save_description(self, path)
