"""Forces at joints that a description contains and simulations ignore.

Limits, drives and springs act on the coordinate of a joint with one degree of freedom. Springs act also on the rotation vector
of a ball or free joint and on the displacement of a free joint; an upper limit of a ball joint acts on its angle. Followers
have no coordinate in q. If a follower follows one leader in proportion, its springs, limits and drives act on the leader's
coordinate; otherwise they act on a length that the simulation computes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..model.model import MovingJoint
from ..model.types import Actuator, JointType, Tendon

SPRINGS_OF_SEVERAL = "springs of joints with several degrees of freedom"  # keys of reports, here and below
LIMITS_OF_SEVERAL = "limits of joints with several degrees of freedom"
CONFLICTING_LIMITS = "limits of joints that follow others and leave these no range of motion"
EFFORTS_OF_FOLLOWERS = "effort limits of joints that move together, beside drives along strings or at frames"
COMPENSATED_TOGETHER = "gravity compensation by drives with limits (actuatorgravcomp), of joints that move together"
OF_JOINTS = (SPRINGS_OF_SEVERAL, LIMITS_OF_SEVERAL, CONFLICTING_LIMITS)


def left_out_at_joints(
    spanning: Sequence[MovingJoint],
    joints: Sequence[MovingJoint],
    clusters: Collection[Collection[str]],
    actuators: Iterable[Actuator],
    tendons: Iterable[Tendon],
    weights: bool,
) -> Mapping[str, tuple[str, ...]]:
    """Return the names of joints and actuators whose forces are ignored, by kind.

    `spanning` are the joints of the spanning tree, and `joints` are the same joints with their slices of q and v. `clusters`
    are names of joints that move together. Forces along tendons and at frames are known only for the independent joints; a
    drive that may move a follower this way does not act with the efforts of its cluster. `weights` says whether gravity
    compensation carries any body.
    """
    several = [j for j in spanning if j.type.nq != 1]
    dependent = {j.name for j in joints if j.v_slice.stop == j.v_slice.start}
    drives = tuple(actuators)
    pulled = {a.tendon for a in drives}
    acted = [t for t in tendons if t.name in pulled]
    unknown = any(t.path for t in acted) or any(a.at is not None for a in drives)
    driven = dependent if unknown else set[str]()  # any of them may move with the tendon or the frame
    together = {name for cluster in clusters if len(cluster) > 1 for name in cluster} if weights else set[str]()
    beside = {name for cluster in clusters if not driven.isdisjoint(cluster) for name in cluster}
    found = {
        SPRINGS_OF_SEVERAL: [j.name for j in several if j.has_spring and j.type is JointType.PLANAR],
        LIMITS_OF_SEVERAL: [j.name for j in several if _limited(j)],
        COMPENSATED_TOGETHER: [
            j.name for j in spanning if j.name in together and j.drive_compensates and any(map(math.isfinite, j.efforts))
        ],
        EFFORTS_OF_FOLLOWERS: [j.name for j in spanning if j.name in beside and 0.0 < j.effort < math.inf],
    }
    return {kind: tuple(names) for kind, names in found.items() if names}


def _limited(j: MovingJoint) -> bool:
    """Return whether a joint with several degrees of freedom has a limit that simulations ignore."""
    return math.isfinite(j.lower) or (math.isfinite(j.upper) and j.type is not JointType.SPHERICAL)
