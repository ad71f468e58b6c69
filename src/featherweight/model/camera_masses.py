"""Cameras of a description: checks of their bodies, and the masses whose centres they follow."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..names import hint, listed
from .editing.references import links_of_subtree
from .model import PointMass
from .types import WORLD, Camera, CameraMode, Contents, ModelError, Vector

CENTERED = (CameraMode.TRACKCOM, CameraMode.TARGETBODYCOM)


def require_cameras(d: Contents) -> None:
    """Raise ModelError for cameras with the same name, on unknown bodies, or with an invalid field of view."""
    known = {b.name for b in d.bodies} | {WORLD, None}
    names = [c.name for c in d.cameras]
    for k, c in enumerate(d.cameras):
        where = f"{d.source}: camera {c.name!r}"
        if c.name in names[:k]:
            raise ModelError(f"{where}: another camera has this name; rename one of them")
        for body in (c.body, c.target):
            if body not in known:
                shown = [b.name for b in d.bodies if b.name not in d.virtual]
                remedy = f"the bodies are {listed(shown)}"
                raise ModelError(f"{where}: {body!r} is not a body{hint(str(body), shown)}; {remedy}")
        if not (c.field_of_view > 0.0 and (c.orthographic or c.field_of_view < math.pi)):
            raise ModelError(f"{where}: its field_of_view is {c.field_of_view:g}; give an angle in rad between 0 and π")


def followed(c: Camera) -> str | None:
    """Return the link that a camera follows or looks at, in addition to the link that carries it."""
    return c.target if c.has_target else c.body


def followed_masses(
    d: Contents, point: Callable[[str, Vector], tuple[str | None, Vector]]
) -> tuple[tuple[PointMass, ...], ...]:
    """Return, for each camera, the masses whose centre it follows or looks at: a link and all links that it carries.

    `point` returns the position of a link's point on its moving body.
    """
    if not any(c.mode in CENTERED for c in d.cameras):
        return ((),) * len(d.cameras)
    inertias = {b.name: b.inertia for b in d.bodies}

    def masses(c: Camera) -> tuple[PointMass, ...]:
        if c.mode not in CENTERED:
            return ()
        links = [name for name in links_of_subtree(d, followed(c)) if inertias[name].mass > 0.0]
        return tuple(_point_mass(point(name, inertias[name].center), inertias[name].mass) for name in links)

    return tuple(map(masses, d.cameras))


def _point_mass(at: tuple[str | None, Vector], mass: float) -> PointMass:
    return PointMass(at[0], mass, at[1])
