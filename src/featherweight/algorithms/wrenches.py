"""Forces at frames as rows of external forces on bodies."""

from __future__ import annotations

from .frames import write_vec3
from .kinematics import mat3, vec3


def wrench_on_body(body: int, R, p, in_world: bool, placement, wrench, at, rows) -> None:
    """Write external forces (nbodies, 6) of a wrench (force, moment) at a point `at` of a frame, in axes of world or frame.

    The frame is placed on its body by R (rows) and p; `placement` is that of the frame in the world.
    """
    force, moment = vec3([wrench], 0), vec3([wrench[3:]], 0)
    if in_world:
        back = mat3([placement[:3]], 0).transpose()
        force, moment = back @ force, back @ moment
    moment = moment + vec3([at], 0).cross(force)
    to_body = mat3([R], 0)
    force, moment = to_body @ force, to_body @ moment
    write_vec3(force, rows[body], 0)
    write_vec3(moment + vec3([p], 0).cross(force), rows[body], 3)
