"""From contacts to impulses on bodies, compiled by Numba: one robot after another, without the GIL.

The Delassus matrix G is that of the bodies that may touch (six rows each, linear and angular in the body's axes and at its
origin, or three at the one point that it may touch with), and of joints with limits and dry friction. Contacts come and go;
G does not: what a contact sees is a combination R of its bodies' rows, so A = R G Rᵀ is made of the blocks of bodies that
touch, and nothing is compiled for a set of contacts.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..compiling import compiled
from .detection import Contacts
from .impulses import GOOD, solve_problem
from .sweeps import solve_by_sweeps

PUSH_SWEEPS = 200
JOINT_MARGIN = 0.1  # of the margin of contacts: gap of a joint's limit [rad, m] from which on it counts


class Space(NamedTuple):
    """The rows of G, and surfaces of candidates for contact.

    Where the rows of each body begin in G, and those of joints after them, is an array `begin` (bodies + 1,) beside it.
    """

    width: Any  # (bodies,) int, 6 or 3
    friction: Any  # (candidates,)
    restitution: Any  # (candidates,)
    joint: Any  # (rows,) int, of each joint row which joint of those with limits or friction it is about
    sign: Any  # (rows,) 1.0, or -1.0 for an upper limit
    dry: Any  # (rows,) bool, friction, which is always there and has no gap


class Settings(NamedTuple):
    """How a step is taken."""

    step: float  # [s]
    margin: float  # [m] contacts with wider gaps do not count
    slop: float  # [m] overlap that is left alone
    bounce: float  # [m/s] approach below which nothing bounces
    tolerance: float  # of the residual, times the greatest velocity
    pyramid: bool


class Scratch(NamedTuple):
    """One robot's problem: the velocities are A f + b, and A f + approach without gaps."""

    A: Any
    b: Any
    approach: Any
    mu: Any
    restitution: Any
    lower: Any
    upper: Any
    rows: Any  # (contacts, 2, 3, 6) of normal and tangents, on the body a and on b
    axes: Any  # (contacts, 3, 3) normal and tangents in the world
    start: Any  # impulses of the step before
    active: Any  # (joint rows,) int, which are there


@compiled
def write_axes(n: Any, axes: Any) -> None:
    """A normal and two tangents, rows of `axes`."""
    x, y, z = n[0], n[1], n[2]
    if abs(x) < 0.9:
        tx, ty, tz = 1.0 - x * x, -x * y, -x * z
    else:
        tx, ty, tz = -y * x, 1.0 - y * y, -y * z
    length = sqrt(tx * tx + ty * ty + tz * tz)
    tx, ty, tz = tx / length, ty / length, tz / length
    axes[0, 0], axes[0, 1], axes[0, 2] = x, y, z
    axes[1, 0], axes[1, 1], axes[1, 2] = tx, ty, tz
    axes[2, 0], axes[2, 1], axes[2, 2] = y * tz - z * ty, z * tx - x * tz, x * ty - y * tx


@compiled
def write_rows(axes: Any, point: Any, T: Any, sign: float, rows: Any) -> None:
    """Rows (3, 6) on the (linear, angular) velocity of a body with placement T, in its axes."""
    dx, dy, dz = point[0] - T[0, 3], point[1] - T[1, 3], point[2] - T[2, 3]
    px = T[0, 0] * dx + T[1, 0] * dy + T[2, 0] * dz
    py = T[0, 1] * dx + T[1, 1] * dy + T[2, 1] * dz
    pz = T[0, 2] * dx + T[1, 2] * dy + T[2, 2] * dz
    for k in range(3):
        a, b, c = sign * axes[k, 0], sign * axes[k, 1], sign * axes[k, 2]
        x = T[0, 0] * a + T[1, 0] * b + T[2, 0] * c
        y = T[0, 1] * a + T[1, 1] * b + T[2, 1] * c
        z = T[0, 2] * a + T[1, 2] * b + T[2, 2] * c
        rows[k, 0], rows[k, 1], rows[k, 2] = x, y, z
        rows[k, 3], rows[k, 4], rows[k, 5] = py * z - pz * y, pz * x - px * z, px * y - py * x


@compiled
def side(found: Any, c: int, s: int) -> int:
    return found.a[c] if s == 0 else found.b[c]  # type: ignore[no-any-return]


@compiled
def prepare(
    space: Any, begin: Any, settings: Any, found: Any, count: int, placement: Any, velocity: Any, G: Any,
    gap: Any, speed: Any, least: Any, most: Any, memory: Any, joint_memory: Any,
) -> Any:  # fmt: skip
    """The problem of one robot, for `count` contacts and the joint rows that would close within the step."""
    h, k = settings.step, count
    active = np.empty(len(gap), np.int64)
    nr = 0
    for r in range(len(gap)):
        if space.dry[r] or min(gap[r], gap[r] + h * speed[r]) < JOINT_MARGIN * settings.margin:
            active[nr] = r
            nr += 1
    m = 3 * k + nr
    rows, axes = np.empty((k, 2, 3, 6)), np.empty((k, 3, 3))
    b, approach, start = np.empty(m), np.empty(m), np.zeros(m)
    mu, restitution = np.empty(k), np.empty(k)
    for c in range(k):
        candidate = found.candidate[c]
        mu[c], restitution[c] = space.friction[candidate], space.restitution[candidate]
        write_axes(found.normal[c], axes[c])
        for i in range(3):
            approach[3 * c + i] = 0.0
        for s in range(2):
            body = side(found, c, s)
            if body >= 0:
                write_rows(axes[c], found.point[c], placement[body], 1.0 - 2.0 * s, rows[c, s])
                for i in range(3):
                    for j in range(6):
                        approach[3 * c + i] += rows[c, s, i, j] * velocity[body, j]
        for i in range(3):
            b[3 * c + i] = approach[3 * c + i]
            for j in range(3):
                start[3 * c + i] += axes[c, i, j] * memory[candidate, j]
        bounces = restitution[c] > 0.0 and approach[3 * c] < -settings.bounce
        if not bounces:
            restitution[c] = 0.0
            b[3 * c] += max(found.gap[c], 0.0) / h
    lower, upper = np.empty(nr), np.empty(nr)
    for i in range(nr):
        r = active[i]
        approach[3 * k + i] = speed[r]
        b[3 * k + i] = speed[r] + (0.0 if space.dry[r] else max(gap[r], 0.0) / h)
        lower[i], upper[i] = least[r], most[r]
        start[3 * k + i] = joint_memory[r]
    A = np.empty((m, m))
    write_delassus(space, begin, found, count, rows, G, active, nr, A)
    return Scratch(A, b, approach, mu, restitution, lower, upper, rows, axes, start, active[:nr])


@compiled
def write_delassus(space: Any, begin: Any, found: Any, count: int, rows: Any, G: Any, active: Any, nr: int, A: Any) -> None:
    """A = R G Rᵀ for contacts and joint rows."""
    k = 3 * count
    end = begin[len(space.width)]
    columns = end
    for r in range(nr):
        columns = max(columns, end + space.joint[active[r]] + 1)
    half = np.empty((3, columns))
    for c in range(count):
        for i in range(3):
            for j in range(columns):
                half[i, j] = 0.0
        for s in range(2):
            body = side(found, c, s)
            if body >= 0:
                first = begin[body]
                for x in range(space.width[body]):
                    for i in range(3):
                        row = rows[c, s, i, x]
                        for j in range(columns):
                            half[i, j] += row * G[first + x, j]
        for d in range(c, count):
            for i in range(3):
                for j in range(3):
                    total = 0.0
                    for s in range(2):
                        body = side(found, d, s)
                        if body >= 0:
                            first = begin[body]
                            for x in range(space.width[body]):
                                total += half[i, first + x] * rows[d, s, j, x]
                    A[3 * c + i, 3 * d + j] = total
                    A[3 * d + j, 3 * c + i] = total
        for j in range(nr):
            r = active[j]
            for i in range(3):
                total = half[i, end + space.joint[r]] * space.sign[r]
                A[3 * c + i, k + j] = total
                A[k + j, 3 * c + i] = total
    for i in range(nr):
        for j in range(nr):
            r, t = active[i], active[j]
            A[k + i, k + j] = space.sign[r] * space.sign[t] * G[end + space.joint[r], end + space.joint[t]]


@compiled
def bounce(p: Any, f: Any) -> bool:
    """Add the impulses of restitution to those of compression, f, in place; whether any contact takes off into another.

    Poisson's: the restitution times the normal impulse of compression, of all contacts the same part less where together
    with friction they would add kinetic energy (Kane and Levinson 1985 show that they may).
    """
    k, m = len(p.mu), len(f)
    back = np.zeros(m)
    any_bounces = False
    for c in range(k):
        if p.restitution[c] > 0.0 and f[3 * c] > 0.0:
            back[3 * c] = p.restitution[c] * f[3 * c]
            any_bounces = True
    if not any_bounces:
        return False
    before = first = second = 0.0  # kinetic energy gained: before + s first + s² second, by the part s of `back`
    for i in range(m):
        Af = Ab = 0.0
        for j in range(m):
            Af += p.A[i, j] * f[j]
            Ab += p.A[i, j] * back[j]
        before += f[i] * (0.5 * Af + p.approach[i])
        first += back[i] * (Af + p.approach[i])
        second += 0.5 * back[i] * Ab
    part = 1.0
    if before + first + second > 0.0 and second > 0.0:
        part = min(max((sqrt(max(first * first - 4.0 * second * before, 0.0)) - first) / (2.0 * second), 0.0), 1.0)
    for i in range(m):
        f[i] += part * back[i]
    for c in range(k):
        u = p.b[3 * c]
        for j in range(m):
            u += p.A[3 * c, j] * f[j]
        if u < -1e-12:
            return True
    return False


@compiled
def scale_of(b: Any) -> float:
    worst = 0.0
    for x in b:
        worst = max(worst, abs(x))
    return worst


@compiled
def finish(
    settings: Any, space: Any, found: Any, p: Any, f: Any, gap: Any,
    wrench: Any, force: Any, joint_impulse: Any, memory: Any, joint_memory: Any, push: Any, joint_push: Any,
) -> bool:  # fmt: skip
    """Impulses on bodies and joints, and the displacements' "impulses" where bodies overlap; whether there are any."""
    k = len(p.mu)
    wrench[:], joint_impulse[:], memory[:], joint_memory[:] = 0.0, 0.0, 0.0, 0.0
    for c in range(k):
        for j in range(3):
            total = 0.0
            for i in range(3):
                total += p.axes[c, i, j] * f[3 * c + i]
            force[c, j] = total
            memory[found.candidate[c], j] = total
        add_wrench(found, c, p.rows, f[3 * c], f[3 * c + 1], f[3 * c + 2], wrench)
    overlap = False
    for i in range(len(p.active)):
        r = p.active[i]
        joint_impulse[space.joint[r]] += space.sign[r] * f[3 * k + i]
        joint_memory[r] = f[3 * k + i]
        overlap |= gap[r] < -settings.slop and not space.dry[r]
    for c in range(k):
        overlap |= found.gap[c] < -settings.slop
    if overlap:
        write_push(settings, space, found, p, gap, push, joint_push)
    return overlap


@compiled
def add_wrench(found: Any, c: int, rows: Any, fn: float, fx: float, fy: float, wrench: Any) -> None:
    for s in range(2):
        body = side(found, c, s)
        if body >= 0:
            for j in range(6):
                wrench[body, j] += rows[c, s, 0, j] * fn + rows[c, s, 1, j] * fx + rows[c, s, 2, j] * fy


@compiled
def write_push(settings: Any, space: Any, found: Any, p: Any, gap: Any, push: Any, joint_push: Any) -> None:
    """The least displacement, in the metric of the mass matrix, that leaves no overlap: M⁻¹ Nᵀ l, N M⁻¹ Nᵀ l + gap >= 0 = l."""
    k, n = len(p.mu), len(p.active)
    index = np.empty(k + n, np.int64)
    open_ = np.empty(k + n)
    for c in range(k):
        index[c], open_[c] = 3 * c, found.gap[c] + settings.slop
    kept = k
    for i in range(n):
        if not space.dry[p.active[i]]:
            index[kept], open_[kept] = 3 * k + i, gap[p.active[i]] + settings.slop
            kept += 1
    A = np.empty((kept, kept))
    for i in range(kept):
        for j in range(kept):
            A[i, j] = p.A[index[i], index[j]]
    l = np.zeros(kept)
    nothing = np.zeros(0)
    solve_by_sweeps(A, open_[:kept], nothing, np.zeros(kept), np.full(kept, np.inf), False, l, PUSH_SWEEPS, 0.1 * settings.slop)
    push[:], joint_push[:] = 0.0, 0.0
    for c in range(k):
        add_wrench(found, c, p.rows, l[c], 0.0, 0.0, push)
    for i in range(k, kept):
        r = p.active[index[i] - 3 * k]
        joint_push[space.joint[r]] += space.sign[r] * l[i]


@compiled
def resolve(
    space: Any, begin: Any, settings: Any, found: Any, count: int, placement: Any, velocity: Any, G: Any,
    gap: Any, speed: Any, least: Any, most: Any,
    wrench: Any, force: Any, joint_impulse: Any, memory: Any, joint_memory: Any, push: Any, joint_push: Any,
) -> tuple[float, float, int, int, bool]:  # fmt: skip
    """One robot's impulses: the residual left and the one allowed [m/s], sweeps, Newton steps, and whether to push."""
    p = prepare(space, begin, settings, found, count, placement, velocity, G, gap, speed, least, most, memory, joint_memory)
    tolerance = settings.tolerance * scale_of(p.b)
    allowed = GOOD * tolerance
    f, b, guess, lower, upper = np.zeros(len(p.b)), p.b, p.start, p.lower, p.upper
    swept = steps = 0
    left = 0.0
    for again in range(2):  # once more, without bouncing, where restitution leads bodies into one another
        more, left, count_of_sweeps, count_of_steps = solve_problem(
            p.A, b, p.mu, lower, upper, settings.pyramid, guess, tolerance
        )
        f, swept, steps = f + more, swept + count_of_sweeps, steps + count_of_steps
        if again or not left <= allowed or not bounce(p, f):
            break
        b, guess = p.A @ f + p.b, np.zeros(len(f))
        lower, upper = p.lower - f[3 * count :], p.upper - f[3 * count :]
    if not left <= allowed:
        return left, allowed, swept, steps, False
    pushed = finish(settings, space, found, p, f, gap, wrench, force, joint_impulse, memory, joint_memory, push, joint_push)
    return left, allowed, swept, steps, pushed


@compiled
def resolve_range(
    first: int, stop: int, robots: Any,
    space: Any, begin: Any, settings: Any, found: Any, count: Any, placement: Any, velocity: Any, G: Any, gap: Any, speed: Any,
    least: Any, most: Any, wrench: Any, force: Any, joint_impulse: Any, memory: Any, joint_memory: Any, push: Any,
    joint_push: Any, left: Any, allowed: Any, swept: Any, steps: Any, pushed: Any,
) -> None:  # fmt: skip
    """`resolve` for the robots numbered `robots[first:stop]`, of which G and `begin` have one row after the other."""
    for n in range(first, stop):
        i = robots[n]
        one = Contacts(found.candidate[i], found.a[i], found.b[i], found.point[i], found.normal[i], found.gap[i])
        left[i], allowed[i], swept[i], steps[i], pushed[i] = resolve(
            space, begin[n], settings, one, count[i], placement[i], velocity[i], G[n], gap[i], speed[i], least, most,
            wrench[i], force[i], joint_impulse[i], memory[i], joint_memory[i], push[i], joint_push[i],
        )  # fmt: skip
