"""Compliant contacts, limits and dry friction, as in MuJoCo.

With r the gap, negative for overlaps, and v the velocity at the start of the step, MuJoCo prescribes the acceleration

    a + R F = -b v - k d(r) r        d(r) the impedance, R = (1 - d) / d times the inverse inertia there

(Todorov 2014, and the chapter Computation of MuJoCo's documentation). With the impulse f = h F and the velocity after the step,
this is a law of impulses: u = A f + R f + v_free - v + h (b v + k d r). Friction of contacts has k = 0 and its own R. MuJoCo
lets sliding contacts lift off, because its problem is convex. The same holds for problems with `CONES` and `PYRAMIDS` (see
`laws`), but not for those with `COULOMB`.

The inverse inertia w is that of the touching bodies, each alone at its centre of mass, in the file's configuration. With
elliptic cones, R follows from w, divided by `impratio` for friction. With pyramidal cones, MuJoCo has four impulses l >= 0
along the edges, with R' = 2 mu² / impratio times the R of w (1 + mu²) each. If all are positive, this is R' / 4 for the normal
impulse sum(l), and R' / (2 mu²) for friction, mu times the difference of two. With friction against spinning and rolling, there
are six or ten edges instead of four.
"""

from __future__ import annotations

from math import floor, sqrt
from typing import NamedTuple

import numpy as np

from ...array_types import Array, Matrix, Vector

LEAST, MOST = 1e-4, 0.9999  # impedance
FLAT = 1e-15  # [m, rad] width of the impedance curve below which the impedance is the mean of both ends
IMMOVABLE = 1e-15  # [1/kg, 1/(kg m²)] least inverse inertia and R, for example of a point on the axis of a hinge
BITS = 30  # bits of the fraction of an exponent
NONE = np.zeros((0, 12))


class Yielding(NamedTuple):
    """Parameters of a contact or row: k [1/s²], b [1/s], the impedance curve, inverse inertia [1/kg], and R of friction.

    With pyramids, `inverse` and `friction` depend on the friction, which robots may vary; these are those of `own` friction.
    """

    stiffness: float
    damping: float
    least: float
    greatest: float
    width: float
    midpoint: float
    power: float
    inverse: float
    friction: float  # R of friction relative to that of the normal
    own: float  # friction
    square: float  # of the friction along the first tangent; zero if R does not depend on it
    alone: float  # inverse inertia without friction: that of contacts that adhesion pulls across a gap


def numbers_of(
    solref: Array, solimp: Array, inverse: Array, friction: Array, step: float, own: Array | float = 0.0,
    square: Array | float = 0.0, alone: Array | None = None,
) -> Array:  # fmt: skip
    """Return the fields of `Yielding` as rows (..., n, 12), for `solref` (..., n, 2) and `solimp` (..., n, 5) of a file.

    `inverse`, `friction`, `own`, `square` and `alone` (..., n), by default `inverse`, are the last fields; `step` is the time
    step.
    """
    least, greatest = (np.clip(solimp[..., i], LEAST, MOST) for i in range(2))
    x, y = solref[..., 0], solref[..., 1]
    timed = x > 0.0  # time constant, at least two steps as in MuJoCo, and damping ratio; otherwise stiffness and damping
    time, ratio = np.where(timed, np.maximum(x, 2.0 * step), 1.0), np.where(timed, y, 1.0)
    k = np.where(timed, 1.0 / (greatest * time * ratio) ** 2, -x / greatest**2)
    b = np.where(timed, 2.0 / (greatest * time), -y / greatest)
    flat, mean = solimp[..., 2] <= FLAT, 0.5 * (least + greatest)
    fields = (
        k, b, np.where(flat, mean, least), np.where(flat, mean, greatest), np.maximum(solimp[..., 2], FLAT),
        np.clip(solimp[..., 3], LEAST, MOST), np.maximum(solimp[..., 4], 1.0), np.maximum(inverse, IMMOVABLE), friction, own,
        square, np.maximum(inverse if alone is None else alone, IMMOVABLE),
    )  # fmt: skip
    return np.stack(np.broadcast_arrays(*fields), axis=-1)


def weights_of_cones(
    inverse: Array, mu: Vector, impratio: float, pyramidal: bool, edges: Vector | float = 4.0
) -> tuple[Array, Vector]:
    """Return the inverse inertia (..., n) for normal impulses of contacts, and R (n,) of friction relative to the normal's."""
    if not pyramidal:
        return inverse, np.full(len(mu), 1.0 / impratio)
    square = mu * mu
    rough = square > 0.0
    normal = np.where(rough, 2.0 / edges * inverse * (1.0 + square) * square / impratio, inverse)
    return normal, np.where(rough, 0.5 * edges / np.where(rough, square, 1.0), 1.0)


def yielding_of(rows: Matrix, i: int) -> Yielding:
    """Return the numbers of a row."""
    return Yielding(
        rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3], rows[i, 4], rows[i, 5], rows[i, 6], rows[i, 7], rows[i, 8], rows[i, 9],
        rows[i, 10], rows[i, 11],
    )  # fmt: skip


def with_friction(y: Yielding, mu: float) -> Yielding:
    """Return the numbers of a contact for another friction: those of `weights_of_cones`."""
    if y.square == 0.0 or mu == y.own or mu == 0.0:
        return y
    square = y.square * (mu / y.own) * (mu / y.own)
    inverse = y.inverse * square * (1.0 + square) / (y.square * (1.0 + y.square))
    return y._replace(inverse=inverse, friction=y.friction * y.square / square)


def impedance(y: Yielding, gap: float) -> float:
    """Return the impedance at a gap."""
    x = min(abs(gap) / y.width, 1.0)
    part = x
    if 0.0 < x < 1.0 and y.power != 1.0:
        if x <= y.midpoint:
            part = y.midpoint * power(x / y.midpoint, y.power)
        else:
            rest = 1.0 - y.midpoint
            part = 1.0 - rest * power((1.0 - x) / rest, y.power)
    return y.least + part * (y.greatest - y.least)


def power(x: float, exponent: float) -> float:
    """Return a power of x >= 0 with a positive exponent."""
    whole = floor(exponent)
    result, rest, root = 1.0, exponent - whole, x
    for _ in range(whole):
        result *= x
    for _ in range(BITS if rest > 0.0 else 0):
        root, rest = sqrt(root), 2.0 * rest
        if rest >= 1.0:
            result, rest = result * root, rest - 1.0
    return result
