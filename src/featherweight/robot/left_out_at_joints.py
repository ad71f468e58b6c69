"""Forces at joints that a description has and no simulation here computes, because they need a coordinate that q does not have.

A limit and a drive act on the coordinate of a joint with one degree of freedom, and so does a spring, or on the rotation vector
of a ball joint. q has that coordinate, unless the joint follows others. If the joint follows one other in proportion, its
coordinate is that of the leader times a ratio, plus an offset, and its spring, its limits and its drives act on the leader's
coordinate. Damping, dry friction and armature act on velocities, which all joints have.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..model.model import MovingJoint
from ..model.types import Actuator, JointType

SPRINGS_OF_SEVERAL = "springs of joints with several degrees of freedom"  # in a report, as below
LIMITS_OF_SEVERAL = "limits of joints with several degrees of freedom"
SPRINGS_OF_FOLLOWERS = "springs of joints that follow others not in proportion"
LIMITS_OF_FOLLOWERS = "limits of joints that follow others not in proportion"
LIMITS_WITHOUT_ROOM = "limits of joints that follow others and leave these no room"
DRIVES_OF_FOLLOWERS = "actuators on joints that follow others not in proportion"
EFFORTS_OF_FOLLOWERS = "effort limits of joints that move together with one that is driven and follows"
OF_JOINTS = (SPRINGS_OF_SEVERAL, LIMITS_OF_SEVERAL, SPRINGS_OF_FOLLOWERS, LIMITS_OF_FOLLOWERS, LIMITS_WITHOUT_ROOM)


def left_out_at_joints(
    spanning: Sequence[MovingJoint],
    joints: Sequence[MovingJoint],
    carried: Collection[int],
    clusters: Iterable[Collection[str]],
    actuators: Iterable[Actuator],
) -> Mapping[str, tuple[str, ...]]:
    """Names of joints and actuators by what of them is left out.

    `spanning` are the joints of the spanning tree and `joints` the same ones with their places in q and v; `carried` are the
    first rows of the joints that follow one other in proportion; `clusters` are names of joints that move together. Forces of
    drives are cut to efforts at independent joints, after those of all drives are added up: where a joint that follows is
    driven, that is not what the efforts in its cluster mean.
    """
    own = {j.name: j.q_slice.stop > j.q_slice.start for j in joints}
    several = [j for j in spanning if j.type.nq != 1]
    lost = [j for j in spanning if j.type.nq == 1 and not own[j.name] and j.v_slice.start not in carried]
    dependent = {j.name for j in joints if j.v_slice.stop == j.v_slice.start}
    drives = tuple(actuators)
    driven = dependent & {a.joint for a in drives}
    beside = {name for cluster in clusters if not driven.isdisjoint(cluster) for name in cluster}
    found = {
        SPRINGS_OF_SEVERAL: [j.name for j in several if j.stiffness and j.type is not JointType.SPHERICAL],
        LIMITS_OF_SEVERAL: [j.name for j in several if _limited(j)],
        SPRINGS_OF_FOLLOWERS: [j.name for j in lost if j.stiffness],
        LIMITS_OF_FOLLOWERS: [j.name for j in lost if _limited(j)],
        DRIVES_OF_FOLLOWERS: [a.name for a in drives if a.joint in {j.name for j in lost}],
        EFFORTS_OF_FOLLOWERS: [j.name for j in spanning if j.name in beside and 0.0 < j.effort < math.inf],
    }
    return {kind: tuple(names) for kind, names in found.items() if names}


def _limited(j: MovingJoint) -> bool:
    return math.isfinite(j.lower) or math.isfinite(j.upper)
