"""Parts of a robot: a body with the bodies that it carries, or the robot without them."""

from __future__ import annotations

from ..types import ModelError
from .dropping import kept_bodies
from .references import D, carried, grounded, require_body


def subtree(d: D, body: str) -> D:
    """Return the body, on the ground in place of its joint, with all bodies that it carries."""
    d = grounded(d)
    require_body(d, body, "subtree")
    return kept_bodies(d, carried(d, body), ground=False)


def without(d: D, bodies: tuple[str, ...]) -> D:
    """Return the description without the bodies and the bodies that they carry."""
    d = grounded(d)
    gone: set[str] = set()
    inward = {j.child: j.parent for j in d.joints}
    for body in bodies:
        require_body(d, body, "without")
        gone |= carried(d, body)
        above = inward.get(body)
        while above in d.virtual:  # bodies between the joints of the removed body
            gone.add(str(above))
            above = inward.get(str(above))
    left = [b.name for b in d.bodies if b.name not in gone]
    if not left:
        raise ModelError(
            f"{d.source}: without {', '.join(map(repr, bodies))}, which carry all others, nothing is left; keep one"
        )
    return kept_bodies(d, left, ground=True)
