"""Inertias as <inertial> elements, by principal moments, which MuJoCo takes unchanged.

MuJoCo before 4.0 computes the principal moments of a `fullinertia` only to 1e-12 kg m², and rounding makes it refuse flat
bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from .....spatial import Vec3
from .....spatial.ordered import singular
from ....types import Body, Matrix, Pose, Vector, as_matrix, matmul, transpose
from ...xml import written
from .as_bodies import Limb
from .geoms import place
from .losses import Losses

LEAST = 1e-14  # [kg, kg m²] least values of a moving body: MuJoCo refuses less than 1e-15
ROUNDED = 1e-12  # relative rounding error of a moment
NO_BODY = "the inertias of {}, which no rigid body has, and MuJoCo refuses (raised in the file)"
NO_INERTIA = f"the masses of the bodies {{}}, which have none or no inertia ({LEAST:g} kg and kg m² in the file)"


class Principal(NamedTuple):
    """Principal moments of an inertia, and their axes as columns of a rotation; None for those of the body's frame."""

    mass: float
    center: Vector
    moments: Vector
    axes: Matrix | None


def principal(body: Body) -> Principal:
    """Return principal moments and axes, with the axes in the body's file if they are principal."""
    mass, center, moments = body.inertia
    tensor: Matrix = moments.matrix
    if body.principal is None and not any((moments.xy, moments.xz, moments.yz)):
        return Principal(mass, center, (moments.xx, moments.yy, moments.zz), None)
    for axes in (body.principal, _axes(tensor)):
        if axes is not None:
            (a, b, c), (_, e, f), (_, _, i) = matmul(matmul(transpose(axes), tensor), axes)
            if max(map(abs, (b, c, f))) <= ROUNDED * max(map(abs, (a, e, i))):
                break
    return Principal(mass, center, (a, e, i), axes)


def _axes(tensor: Matrix) -> Matrix:
    """Return the principal axes as columns: right singular vectors of the tensor, shifted to be positive."""
    J = np.array(tensor)
    axes = as_matrix(singular(J + np.abs(J).sum() * np.eye(3)).right)
    x, y, z = (Vec3(*column) for column in transpose(axes))
    return axes if x.cross(y).dot(z) > 0.0 else as_matrix(-np.array(axes))


class Inertials:
    """Inertias that MuJoCo accepts, for all bodies of a file.

    MuJoCo refuses negative moments, which become zero, and moments A, B and C with A + B < C: A and B are then increased by
    the difference. It also refuses moving bodies without mass or inertia, unless a body that is fixed to them has both.
    """

    def __init__(self, file: Sequence[Limb], lost: Losses) -> None:
        self.found = {limb.body.name: _possible(limb.body, lost) for limb in file}
        solid = {name for name, x in self.found.items() if min(x.mass, *x.moments) >= LEAST}
        for limb in reversed(file):  # children first
            name = limb.body.name
            if limb.joints and name not in solid:
                lost.add(NO_INERTIA, name)
                x = self.found[name]
                a, b, c = (m + LEAST for m in x.moments)
                self.found[name] = x._replace(mass=max(x.mass, LEAST), moments=(a, b, c))
            elif name in solid and not limb.joints and limb.parent is not None:
                solid.add(limb.parent)

    def write(self, element: Element, name: str) -> None:
        """Write the inertia of a body on its element; nothing if there is none."""
        x = self.found[name]
        if x.mass or any(x.moments):
            inertial = SubElement(element, "inertial", mass=written(x.mass))
            place(inertial, Pose(Pose().R if x.axes is None else x.axes))
            inertial.set("pos", written(*x.center))
            inertial.set("diaginertia", written(*x.moments))


def _possible(body: Body, lost: Losses) -> Principal:
    x = principal(body)
    moments = [max(m, 0.0) for m in x.moments]
    least, middle, highest = sorted(range(3), key=lambda k: moments[k])
    a, b, c = moments[least], moments[middle], moments[highest]
    if a + b < c:
        a += (c - a - b) / 2.0
        moments[least], moments[middle] = a + ROUNDED * c, max(b, c - a)
    if max(abs(m - n) for m, n in zip(moments, x.moments, strict=True)) > 2.0 * ROUNDED * c:
        lost.add(NO_BODY, body.name)
    return x._replace(moments=(moments[0], moments[1], moments[2]))
