"""Descriptions of robots as users see them: values, with methods that return changed ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..names import Named, missing_attribute
from . import editing
from .formats.saving import save_description
from .types import Closure, Contents, Coupling, Inertia, JointType, Loop, Pose, Vector

BY_NAME = "bodies", "joints", "frames", "loops", "couplings", "closures", "shapes", "tendons", "actuators", "cameras", "sensors"


@dataclass(frozen=True, slots=True, repr=False)
class Description(Contents):
    """A description of a robot: `featherweight.read` and `describe` return it, and `featherweight.build` makes a robot of it.

        arm = featherweight.read("arm.urdf").locked({"wrist": 0.5})
        robot = featherweight.build(arm.attached(featherweight.read("gripper.urdf"), "flange", prefix="gripper_"))

    Each method below returns a new description and leaves this one unchanged. When a part is removed, everything that refers to
    it is removed, too: actuators of locked joints, shapes of bodies that are cut off. `unused`, and so the robot's `report()`,
    lists what was left out. Where a robot may then move in a way it could not before (a loop was cut), a ModelWarning says so,
    too. Bodies, frames and joints are named as in the file:
    `arm.joints["wrist"]`. All methods raise ModelError for unknown names, and list the known
    ones.
    """

    if not TYPE_CHECKING:  # type checkers would take every attribute to be there

        def __getattr__(self, name: str) -> Any:
            return missing_attribute(self, name, "featherweight.build makes a Robot, which computes, of a Description")

    def __post_init__(self) -> None:
        """Let parts be found by their names, and have short texts."""
        for name in BY_NAME:
            object.__setattr__(self, name, Named(getattr(self, name)))

    def __repr__(self) -> str:
        moving = sum(joint.type is not JointType.FIXED for joint in self.joints)
        ties = {"loops": self.loops, "couplings": self.couplings, "closures": self.closures}
        tied = "".join(f", {kind}: {len(found)}" for kind, found in ties.items() if found)
        return f"<Description {self.name!r}: {len(self.bodies)} bodies, {moving} moving joints{tied}>"

    def locked(self, positions: Mapping[str, Any]) -> Description:
        """With joints fixed: {joint: position [rad or m]}; of a joint with more coordinates its part of q, as in `Robot`.

        Joints that couplings let follow are held with them. Loops stay, but for those in which nothing moves any more, which
        must be closed at these positions. Raises ModelError for positions that contradict couplings or leave loops open.
        """
        return editing.locking.locked(self, positions)

    def subtree(self, body: str) -> Description:
        """The body with all that it carries, its frame on that of the ground. Loops and couplings that are cut are dropped."""
        return editing.cutting.subtree(self, body)

    def without(self, *bodies: str) -> Description:
        """Without these bodies and all that they carry. Loops and couplings that are cut are dropped."""
        return editing.cutting.without(self, bodies)

    def attached(
        self, other: Description, frame: str | None = None, placement: Pose | None = None, prefix: str = ""
    ) -> Description:
        """With another description whose ground lies at `placement` on a frame, body or fixed joint of this one (None: on the
        ground): its roots are fixed there, and its joints on the ground join it to there.

        `prefix` is put before all names of the other but those of configurations: where both have one of a name, it has the
        coordinates of both. Gravity, time step, integrator and the rule for contacts of neighbours are this one's; the time
        step and the integrator are the other's where this one has none, and so is the rule where this one has no shapes that
        touch. `unused` lists those of the other that differ. Raises ModelError where both have bodies, joints, ... of one name.
        """
        return editing.attaching.attached(self, other, frame, placement or Pose(), prefix)

    def with_loop(self, loop: Loop) -> Description:
        """With one more loop, between bodies, frames or fixed joints."""
        return editing.adding.with_loop(self, loop)

    def with_coupling(self, coupling: Coupling) -> Description:
        """With one more joint that follows others."""
        return editing.adding.with_coupling(self, coupling)

    def with_closure(self, closure: Closure) -> Description:
        """With one more constraint of one's own."""
        return editing.adding.with_closure(self, closure)

    def with_payload(self, on: str, inertia: Inertia) -> Description:
        """With more mass on a body, in its frame; or on the body that carries a frame, in that frame. It is added exactly."""
        return editing.adding.with_payload(self, on, inertia)

    def with_joint_type(self, joint: str | Sequence[str], kind: JointType | str, axis: Vector | None = None) -> Description:
        """With a joint of another type, where it is; `axis`, in the child's frame, is the one that it has unless given.

        Three hinges in a row with nothing on the bodies between them, whose axes meet in a point, become one spherical joint
        with the name of the first. Limits go, and couplings, closures and actuators of coordinates that are no more.
        """
        return editing.joint_types.with_joint_type(
            self, (joint,) if isinstance(joint, str) else tuple(joint), JointType(kind), axis
        )

    def renamed(self, names: Mapping[str, str]) -> Description:
        """With other names, {old: new}, of all bodies, joints, frames, ... that have them, and of what refers to them."""
        return editing.renaming.renamed(self, names)

    def mirrored(self, axis: str) -> Description:
        """The image in the plane through the ground's origin across "x", "y" or "z", with the same names: the left arm of a
        right one. Coordinates of joints that have one stay as they are; those of the others are mirrored."""
        return editing.mirroring.mirrored(self, axis)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file in the format of its suffix: .urdf, with elements of this package's own for what URDF has no words for;
        .xml or .mjcf, for MuJoCo; .srdf, for configurations and disabled collisions, which `read(..., srdf=path)` adds to those
        of a URDF.

        Warns (ModelWarning) of what the file cannot hold, by name. Raises ModelError for closures in a .urdf file, and for
        bodies in more bodies than MuJoCo reads.
        """
        save_description(self, path)
