"""Families of contact problems that are hard for solvers: each function returns a problem for a seed and sizes.

A = J M⁻¹ Jᵀ of rigid bodies, b = J v with their velocities after a step of 5 ms without contacts. All families except
`squeezed` have a solution: bodies can move so that all contacts open, u_n > 0, and then Coulomb's law has a solution (Klarbring
and Pang 1998).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import cos, inf, pi, sin
from typing import Any

import numpy as np

from featherweight.array_types import Array
from featherweight.contact.laws import Problem

FALL = 5e-3 * 9.81  # [m/s] gained in a step
MOTIONS = ("rest", "slide", "turn", "tip", "fall")
LAYOUTS = ("row", "grid", "random")
NONE = np.zeros(0)


# ---- rows of contacts, and problems of bodies


def contact_rows(normal: Any, point: Any) -> Array:
    """Return rows (3, 6) of the normal and two tangents on the velocity (linear, angular) of a body, at a point relative
    to its centre.
    """
    n, (x, y, z) = np.asarray(normal, float), point
    n = n / np.linalg.norm(n)
    tangent = np.cross(n, np.eye(3)[np.abs(n).argmin()])
    tangent /= np.linalg.norm(tangent)
    rows: Array = np.array([n, tangent, np.cross(n, tangent)]) @ [[1, 0, 0, 0, z, -y], [0, 1, 0, -z, 0, x], [0, 0, 1, y, -x, 0]]
    return rows


def inverse_inertia(mass: float, edges: Any) -> Array:
    """Return the inverse inertia (6,) of a solid box."""
    square = np.asarray(edges, float) ** 2
    return np.asarray(1.0 / (mass * np.r_[np.ones(3), (square.sum() - square) / 12.0]))


def problem_of(J: Array, inverse: Array, v: Array, mu: Any, lower: Array = NONE, upper: Array = NONE) -> Problem:
    """Return the problem of rows J on velocities v of bodies with the inverse inertia (n,) or (n, n)."""
    contacts = (len(J) - len(lower)) // 3
    A = (J * inverse if inverse.ndim == 1 else J @ inverse) @ J.T
    return Problem(0.5 * (A + A.T), J @ v, np.broadcast_to(np.asarray(mu, float), contacts).copy(), lower, upper)


def spots(rng: np.random.Generator, layout: str, count: int) -> Array:
    """Return points (count, 2) in a square with edges of 2."""
    if layout == "random":
        return rng.uniform(-1.0, 1.0, (count, 2))
    if layout == "row":
        return np.column_stack([np.linspace(-1.0, 1.0, count), np.zeros(count)])
    side = int(np.ceil(np.sqrt(count)))
    x, y = np.meshgrid(*2 * [np.linspace(-1.0, 1.0, max(side, 2))])
    return np.column_stack([x.ravel(), y.ravel()])[:count]


def velocity(rng: np.random.Generator, motion: str) -> Array:
    """Return a velocity (6,) of a body above the ground."""
    v, random = np.array([0.0, 0.0, -FALL, 0.0, 0.0, 0.0]), rng.standard_normal(6)
    if motion == "slide":
        v[:2] += random[:2]
    if motion == "turn":
        v[5] += 5.0 * random[5]
    if motion == "tip":
        v[3:5] += random[3:5]
    if motion == "fall":
        v += random
    return v


# ---- one body


def foot(seed: int, contacts: int, mu: float, motion: str, layout: str) -> Problem:
    """Return a body on points of its flat sole: the rank is at most 6, and 5 if the points are collinear."""
    rng = np.random.default_rng(seed)
    edges = rng.uniform(0.05, 0.5, 3)
    points = np.column_stack([0.5 * edges[:2] * spots(rng, layout, contacts), np.full(contacts, -0.5 * edges[2])])
    J = np.concatenate([contact_rows((0, 0, 1), p) for p in points])
    return problem_of(J, inverse_inertia(rng.uniform(0.1, 50.0), edges), velocity(rng, motion), mu)


def patch(seed: int, contacts: int, mu: float, speed: float) -> Problem:
    """Return a flat sole that turns about one of its contacts, whose sliding velocity is zero, and may slide at `speed`
    [m/s].
    """
    rng = np.random.default_rng(seed)
    points = np.column_stack([0.1 * spots(rng, "grid", contacts), np.full(contacts, -0.05)])
    x, y, _ = points[rng.integers(contacts)]
    spin = rng.uniform(-10.0, 10.0)
    v = np.array([spin * y + speed, -spin * x, -FALL, 0.0, 0.0, spin])
    J = np.concatenate([contact_rows((0, 0, 1), p) for p in points])
    return problem_of(J, inverse_inertia(1.0, (0.2, 0.2, 0.1)), v, mu)


def wedge(seed: int, contacts: int, mu: float, angle: float, motion: str) -> Problem:
    """Return a body between two planes, each inclined by an angle [rad] to the horizontal, with as many contacts on each."""
    rng = np.random.default_rng(seed)
    J = []
    for side in (-1.0, 1.0):
        normal = (-side * sin(angle), 0.0, cos(angle))
        for along, down in 0.1 * spots(rng, "grid", contacts):
            J.append(contact_rows(normal, (side * (0.1 + down * cos(angle)), along, down * sin(angle))))
    return problem_of(np.concatenate(J), inverse_inertia(rng.uniform(0.1, 10.0), (0.2, 0.2, 0.2)), velocity(rng, motion), mu)


def twins(seed: int, contacts: int, mu: float, distance: float, motion: str) -> Problem:
    """Return a body on contacts, each of which has another at a tiny distance [m] with nearly the same normal."""
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.uniform(-0.1, 0.1, (contacts, 2)), np.full(contacts, -0.1)])
    J = []
    for p in points:
        J += [contact_rows((0, 0, 1), p)]
        J += [contact_rows(np.array([0, 0, 1]) + distance * rng.standard_normal(3), p + distance * rng.standard_normal(3))]
    return problem_of(np.concatenate(J), inverse_inertia(1.0, (0.2, 0.2, 0.2)), velocity(rng, motion), mu)


def scaled(seed: int, mass: float, speed: float, mu: float, motion: str) -> Problem:
    """Return a body on four corners, in units that make its mass or its velocities tiny or huge."""
    p = foot(seed, 4, mu, motion, "grid")
    return p._replace(A=p.A / mass, b=p.b * speed)


def immovable(seed: int, contacts: int, mu: float) -> Problem:
    """Return a body on four corners, and contacts between immovable bodies: rows and columns of zeros."""
    p = foot(seed, 4, mu, "fall", "grid")
    m = 3 * contacts
    A, b = np.zeros((12 + m, 12 + m)), np.r_[p.b, np.zeros(m)]
    A[:12, :12] = p.A
    return Problem(A, b, np.full(4 + contacts, mu))


def single(seed: int, mu: float, aim: str) -> Problem:
    """Return one contact with coupled tangents and normal, which shall be open, stick, slide, or be at the edge of the cone."""
    rng = np.random.default_rng(seed)
    J = rng.standard_normal((3, 6))
    A = J @ J.T
    angle, f = rng.uniform(0.0, 2.0 * pi), rng.uniform(0.1, 2.0)
    way = np.array([0.0, cos(angle), sin(angle)])
    part = {"open": 0.0, "stick": rng.uniform(0.0, 0.9), "slide": 1.0, "edge": 1.0}[aim]
    impulse = 0.0 * way if aim == "open" else np.array([f, 0.0, 0.0]) + part * mu * f * way
    left = {"open": np.r_[rng.random(), rng.standard_normal(2)], "slide": -rng.random() * way}.get(aim, np.zeros(3))
    return Problem(A, left - A @ impulse, np.array([mu]))


def still(seed: int, contacts: int, mu: float) -> Problem:
    """Return a body at rest on its sole: b = 0."""
    p = foot(seed, contacts, mu, "rest", "grid")
    return p._replace(b=np.zeros(len(p.b)))


def squeezed(seed: int, contacts: int, mu: float) -> Problem:
    """Return a body between two closing planes: u_n >= 0 cannot hold at both, so there is no solution."""
    rng = np.random.default_rng(seed)
    J = []
    for side in (-1.0, 1.0):
        J += [contact_rows((0, 0, -side), (x, y, side * 0.1)) for x, y in 0.1 * spots(rng, "grid", contacts)]
    p = problem_of(np.concatenate(J), inverse_inertia(1.0, (0.2, 0.2, 0.2)), velocity(rng, "fall"), mu)
    p.b[::3] -= 10.0
    return p


# ---- several bodies


def pinch(seed: int, contacts: int, mu: float, ratio: float, load: float) -> Problem:
    """Return a body between two others that are pressed together; the load is a part of the maximum friction."""
    rng = np.random.default_rng(seed)
    mass, force = rng.uniform(0.1, 10.0), rng.uniform(0.1, 10.0)  # [N s] force as an impulse
    inverse = np.concatenate([inverse_inertia(m, (0.2, 0.2, 0.1)) for m in (mass, mass / ratio, mass)])
    v = np.zeros(18)
    v[2], v[14] = force / mass, -force / mass
    v[6:8] = 2.0 * load * mu * force * ratio / mass * np.array([0.6, 0.8])
    J = np.zeros((6 * contacts, 18))
    for face, (below, above) in enumerate(((0, 1), (1, 2))):
        for i, (x, y) in enumerate(0.1 * spots(rng, "grid", contacts)):
            rows = slice(3 * (face * contacts + i), 3 * (face * contacts + i) + 3)
            J[rows, 6 * above : 6 * above + 6] = contact_rows((0, 0, 1), (x, y, -0.05))
            J[rows, 6 * below : 6 * below + 6] = -contact_rows((0, 0, 1), (x, y, 0.05))
    return problem_of(J, inverse, v, mu)


def grasp(seed: int, fingers: int, contacts: int, mu: float, needed: float) -> Problem:
    """Return a block held by fingers, with given numbers of contacts, which use a given part of the available friction.

    The joints of a finger press with a force, and can move along the finger's normal; at rest nothing slides, u = 0.
    """
    rng = np.random.default_rng(seed)
    mass, lightness = rng.uniform(0.05, 2.0), rng.uniform(0.5, 20.0, fingers)
    press = mass * FALL / (mu * fingers * needed)  # [N s] for each contact
    inverse = np.r_[inverse_inertia(mass, (0.06, 0.06, 0.1)), lightness]
    v = np.r_[0.0, 0.0, -FALL, np.zeros(3), lightness * press]
    J = np.zeros((3 * contacts * fingers, 6 + fingers))
    for i in range(fingers):
        angle = 2.0 * pi * i / fingers
        out, along = np.array([cos(angle), sin(angle), 0.0]), np.array([-sin(angle), cos(angle), 0.0])
        for k, (x, z) in enumerate(spots(rng, "grid", contacts) if contacts > 1 else np.zeros((1, 2))):
            rows = slice(3 * (contacts * i + k), 3 * (contacts * i + k) + 3)
            J[rows, :6] = contact_rows(-out, 0.03 * out + 0.008 * x * along + 0.008 * z * np.array([0.0, 0.0, 1.0]))
            J[rows.start, 6 + i] = -1.0  # the finger moves inward along the normal
    return problem_of(J, inverse, v, mu)


def stack(seed: int, boxes: int, ratio: float, heavy: str, mu: float) -> Problem:
    """Return boxes on one another's corners after a step of free fall; one is heavier by a ratio, or all masses differ."""
    rng = np.random.default_rng(seed)
    masses = np.exp(rng.uniform(0.0, np.log(ratio), boxes)) if heavy == "all differ" else np.ones(boxes)
    if heavy != "all differ":
        masses[-1 if heavy == "top" else 0] = ratio
    J = np.zeros((12 * boxes, 6 * boxes))
    for i in range(boxes):
        for c, (x, y) in enumerate(0.1 * spots(rng, "grid", 4)):
            rows = slice(12 * i + 3 * c, 12 * i + 3 * c + 3)
            J[rows, 6 * i : 6 * i + 6] = contact_rows((0, 0, 1), (x, y, -0.1))
            if i:
                J[rows, 6 * i - 6 : 6 * i] = -contact_rows((0, 0, 1), (x, y, 0.1))
    inverse = np.concatenate([inverse_inertia(m, (0.2, 0.2, 0.2)) for m in masses])
    v = np.tile([0.0, 0.0, -FALL, 0.0, 0.0, 0.0], boxes) + 0.01 * rng.standard_normal(6 * boxes)
    return problem_of(J, inverse, v, mu)


def heap(seed: int, bodies: int, contacts: int, ratio: float, mu: float) -> Problem:
    """Return bodies that touch the ground or each other at random points from above, with mass ratios up to a bound."""
    rng = np.random.default_rng(seed)
    inverse = np.concatenate([inverse_inertia(m, (0.2, 0.3, 0.2)) for m in np.exp(rng.uniform(0, np.log(ratio), bodies))])
    J = np.zeros((3 * contacts, 6 * bodies))
    for c in range(contacts):
        above = rng.integers(bodies)
        below, normal = rng.integers(-1, above), np.r_[0.3 * rng.standard_normal(2), 1.0]  # -1 is the ground
        J[3 * c : 3 * c + 3, 6 * above : 6 * above + 6] = contact_rows(normal, rng.uniform(-0.1, 0.1, 3))
        if below >= 0:
            J[3 * c : 3 * c + 3, 6 * below : 6 * below + 6] = -contact_rows(normal, rng.uniform(-0.1, 0.1, 3))
    v = np.tile([0.0, 0.0, -FALL, 0.0, 0.0, 0.0], bodies) + 0.1 * rng.standard_normal(6 * bodies)
    return problem_of(J, inverse, v, mu)


def chain(seed: int, bodies: int, contacts: int, limits: int, dry: int, mu: float = 0.5) -> Problem:
    """Return a chain of bodies, fixed at one end, with limits and dry friction of some joints, and contacts of some bodies with
    the ground.

    There are fewer contacts and rows than joints, so that rows of J are independent except those of contacts on one body.
    """
    rng = np.random.default_rng(seed)
    axes = np.eye(3)[rng.integers(0, 3, bodies)]
    links = 0.1 * rng.standard_normal((bodies, 3))
    joints = np.cumsum(np.vstack([np.zeros(3), links]), axis=0)[:-1]
    within = np.tril(np.ones((bodies, bodies)))[:, :, None]  # whether a joint moves a body
    arms = (joints + 0.5 * links)[:, None] - joints[None]
    linear, angular = within * np.cross(axes, arms), within * axes
    masses = rng.uniform(0.1, 2.0, bodies)
    M = np.einsum("b,bix,bjx->ij", masses, linear, linear) + np.einsum("b,bix,bjx->ij", 1e-3 * masses, angular, angular)
    M += np.diag(np.full(bodies, 1e-3))  # inertia of rotors
    J = []
    for body in rng.integers(bodies // 2, bodies, contacts):
        at = joints[body] + 0.5 * links[body] + 0.05 * rng.standard_normal(3)
        twists = np.hstack([np.cross(joints, axes), axes]) * within[body]  # along the ground's axes at its origin
        J.append(contact_rows((0, 0, 1), at) @ twists.T)
    chosen = rng.permutation(bodies)[: limits + dry]
    sign = np.r_[rng.choice([-1.0, 1.0], limits), np.ones(dry)]
    J.append(sign[:, None] * np.eye(bodies)[chosen])
    most = np.exp(rng.uniform(-9.0, 0.0, dry))
    lower, upper = np.r_[np.zeros(limits), -most], np.r_[np.full(limits, inf), most]
    v = 0.1 * rng.standard_normal(bodies)
    return problem_of(np.concatenate(J), np.linalg.inv(M), v, mu, lower, upper)


def random_rank(seed: int, contacts: int, rank: int, rows: int, mu: float) -> Problem:
    """Return random rows of a given rank; each normal has a component along one direction, in which all contacts open."""
    rng = np.random.default_rng(seed)
    J = rng.standard_normal((3 * contacts + rows, rank))
    J[: 3 * contacts : 3] *= np.where(J[: 3 * contacts : 3, :1] < 0.0, -1.0, 1.0)
    most = rng.uniform(0.01, 1.0, rows)
    return problem_of(J, np.ones(rank), rng.standard_normal(rank), mu, -most, most)


# ---- all of them

MU = (0.0, 1e-3, 0.3, 1.0, 10.0)
FRICTION = MU[1:]
COUNTS = (2, 3, 4, 8, 20, 50, 100)
FEW = (1, 2, 4, 9)
RATIOS = (1.0, 1e2, 1e4, 1e6)
NEEDED = (0.2, 0.5, 0.8, 0.95)
SLOW_AND_FAST = (1e-9, 1e-3, 1.0, 1e3)

Family = tuple[Callable[..., Problem], dict[str, tuple[Any, ...]]]
FAMILIES: dict[str, Family] = {  # functions, and the ranges of random sizes
    "foot": (foot, {"contacts": COUNTS, "mu": MU, "motion": MOTIONS, "layout": LAYOUTS}),
    "patch": (patch, {"contacts": COUNTS, "mu": FRICTION, "speed": (0.0, 1e-3, 0.1, 2.0)}),
    "wedge": (wedge, {"contacts": FEW, "mu": MU, "angle": (0.1, 0.5, 1.0, 1.4), "motion": MOTIONS}),
    "twins": (twins, {"contacts": (1, 3, 4, 10), "mu": MU, "distance": (0.0, 1e-12, 1e-9, 1e-6), "motion": MOTIONS}),
    "scaled": (scaled, {"mass": (1e-8, 1e-4, 1e4, 1e8), "speed": SLOW_AND_FAST, "mu": MU, "motion": MOTIONS}),
    "immovable": (immovable, {"contacts": FEW, "mu": MU}),
    "single": (single, {"mu": MU, "aim": ("open", "stick", "slide", "edge")}),
    "still": (still, {"contacts": COUNTS, "mu": MU}),
    "pinch": (pinch, {"contacts": FEW, "mu": FRICTION, "ratio": RATIOS, "load": (0.2, 0.95, 1.05, 2.0)}),
    "grasp": (grasp, {"fingers": (2, 3, 4, 5), "contacts": FEW, "mu": FRICTION, "needed": NEEDED}),
    "stack": (stack, {"boxes": (2, 5, 10, 20), "ratio": RATIOS, "heavy": ("top", "bottom", "all differ"), "mu": MU}),
    "heap": (heap, {"bodies": (2, 5, 10), "contacts": (4, 10, 30), "ratio": RATIOS, "mu": MU}),
    "chain with limits": (chain, {"bodies": (100,), "contacts": (0,), "limits": (1, 10, 60), "dry": (0,)}),
    "chain with contacts": (chain, {"bodies": (100,), "contacts": FEW, "limits": (0, 10, 40), "dry": (0, 20), "mu": MU}),
    "dry friction": (chain, {"bodies": (10, 30), "contacts": (0, 2), "limits": (0, 2), "dry": (1, 4), "mu": MU}),
    "random rank": (random_rank, {"contacts": (1, 3, 10, 20), "rank": (1, 3, 6, 20), "rows": (0, 5), "mu": MU}),
    "squeezed": (squeezed, {"contacts": FEW, "mu": MU}),
}
WITHOUT_SOLUTION = {"squeezed"}


def drawn(name: str, seed: int) -> Problem:
    """Return a problem of a family, with random sizes."""
    function, sizes = FAMILIES[name]
    rng = np.random.default_rng(seed)
    chosen = {size: values[rng.integers(len(values))] for size, values in sizes.items()}
    return function(seed, **chosen)._replace(pyramid=bool(rng.random() < 0.25))


def generate(count: int, seed: int = 0) -> Iterator[tuple[str, Problem]]:
    """Yield names of families, and problems, one of each family in turn."""
    names = list(FAMILIES)
    for i in range(count):
        yield names[i % len(names)], drawn(names[i % len(names)], seed + i)
