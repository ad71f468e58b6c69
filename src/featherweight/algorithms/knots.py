"""Knots of optimal control problems: steps, rows of costs and constraints, and parts of their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..spatial import sqrt
from .inverse_kinematics.prioritized import is_zero

FELT = "felt"  # the joint forces at the end of a step
ROUNDED = 1e-3  # relative to the weight: smaller tangential forces are rounded off


class Drive(NamedTuple):
    """The action of a control u on a joint of one degree of freedom: gain u + stiffness q + damping v + force [N m, N].

    A drive that is evaluated at the end of a step has an armature, which reduces its force in proportion to the joint's
    acceleration.
    """

    velocity: int  # number of the joint's velocity
    gain: float = 1.0
    position: int = 0  # number of the joint's coordinate
    stiffness: float = 0.0
    damping: float = 0.0
    force: float = 0.0
    armature: float = 0.0  # [kg m², kg]

    @property
    def alone(self) -> bool:
        """True if the joint force depends on the control alone."""
        return self.stiffness == self.damping == self.force == 0.0


def joint_forces(drives: tuple[Drive, ...], u, *others: Any) -> None:
    """Write joint forces tau of drives, as functions of q and v too if drives need them; zero at other joints."""
    *state, tau = others
    for i, d in enumerate(drives):
        total = d.gain * u[i] if d.gain != 1.0 else u[i]
        if not d.alone:
            q, v = state
            total = total + d.stiffness * q[d.position] + d.damping * v[d.velocity] + d.force
        tau[d.velocity] = tau[d.velocity] + total


def felt_forces(drives: tuple[Drive, ...], tau, a, felt) -> None:
    """Write joint forces at the end of a step, given those without the drives' armatures."""
    for i, x in enumerate(tau):
        felt[i] = x
    for d in drives:
        felt[d.velocity] = felt[d.velocity] - d.armature * a[d.velocity]


def add_through_drives(drives: tuple[Drive, ...], n: int, by_tau, row) -> None:
    """Add the part of the derivatives by (dq, dv, du) that results from derivatives by the joint forces."""
    for i, d in enumerate(drives):
        for at, factor in ((2 * n + i, d.gain), (d.velocity, d.stiffness), (n + d.velocity, d.damping)):
            if factor != 0.0:
                row[at] = row[at] + (by_tau[d.velocity] if factor == 1.0 else factor * by_tau[d.velocity])


def next_velocity(impact: bool, v, a, h, results) -> None:
    """Write the velocity after a step h, and the displacement (semi-implicit Euler).

    After an impact, the velocity changes by the jump a.
    """
    velocity, displacement = results
    for i, x in enumerate(a):
        velocity[i] = v[i] + x if impact else v[i] + h * x
        displacement[i] = 0.0 if impact else h * velocity[i]


def stage_state(part: float, v, h, rate, a, results) -> None:
    """Write the velocity at a stage of the Runge-Kutta method, and the displacement to it, from rates of the stage before."""
    velocity, displacement = results
    for i, x in enumerate(a):
        velocity[i] = v[i] + part * h * x
        displacement[i] = part * h * rate[i]


def runge_kutta(h, v, *rates_and_results: Any) -> None:
    """Write the velocity after a step, and the displacement along it, by the classical method of order 4 (Kutta 1901).

    Displacements are coordinates u of the motion q exp(u) (Munthe-Kaas 1999); the first stage has the rate v.
    """
    k2, k3, k4, a, a2, a3, a4, (velocity, displacement) = rates_and_results
    sixth = h * (1.0 / 6.0)
    for i, x in enumerate(v):
        velocity[i] = x + sixth * (a[i] + 2.0 * (a2[i] + a3[i]) + a4[i])
        displacement[i] = sixth * (x + 2.0 * (k2[i] + k3[i]) + k4[i])


def runge_kutta_slopes(drives: tuple[Drive, ...], h, *given: Any) -> None:
    """Write derivatives of a step by (dq, dv, du): those of q' without the identity, and those of v'.

    `given` has derivatives of the four accelerations by q, v and tau; of the rates of stages 2 to 4 by displacement and
    velocity; of the configurations of stages 2 to 4 and of q' by q and displacement; and, if contacts have a target, those of
    the accelerations of stages 2 to 4 by the target, and of the target by q and v.
    """
    *arrays, motion = given
    left = iter(arrays)
    accelerations, rates, places = ([[next(left) for _ in range(k)] for _ in range(c)] for k, c in ((3, 4), (2, 3), (2, 4)))
    *by_target, target_q, target_v = [*left] or ((), ())
    n = len(motion) // 2
    width = 2 * n + len(drives)
    dq = [[1.0 if j == i else 0.0 for j in range(width)] for i in range(n)]
    dv = [[1.0 if j == n + i else 0.0 for j in range(width)] for i in range(n)]
    target = sums(product(target_q, dq), product(target_v, dv))
    k, a = [dv], [along(drives, accelerations[0], dq, dv)]
    for i, part in enumerate((0.5, 0.5, 1.0)):
        u, x = scaled(part * h, k[i]), sums(dv, scaled(part * h, a[i]))
        at = sums(product(places[i][0], dq), product(places[i][1], u))
        k.append(sums(product(rates[i][0], u), product(rates[i][1], x)))
        a.append(along(drives, accelerations[i + 1], at, x))
        if by_target:
            a[-1] = sums(a[-1], product(by_target[i], target))
    u, x = (scaled(h * (1.0 / 6.0), sums(y[0], scaled(2.0, sums(y[1], y[2])), y[3])) for y in (k, a))
    ahead = sums(product(places[3][0], dq), scaled(-1.0, dq), product(places[3][1], u))
    for i, row in enumerate([*ahead, *sums(dv, x)]):
        for j, y in enumerate(row):
            motion[i][j] = y


def scaled(by: Any, x: Any) -> list[list[Any]]:
    """Return a matrix times a number."""
    return [[by * a for a in row] for row in x]


def sums(*matrices: Any) -> list[list[Any]]:
    """Return the sum of matrices."""
    return [[sum(entries[1:], entries[0]) for entries in zip(*rows, strict=True)] for rows in zip(*matrices, strict=True)]


def product(x: Any, y: Any) -> list[list[Any]]:
    """Return the product of two matrices; zeros of the first take no operations."""
    columns = range(len(y[0]))
    nonzero = [[(k, a) for k, a in enumerate(row) if not is_zero(a)] for row in x]
    return [[sum((a * y[k][j] for k, a in row), 0.0) for j in columns] for row in nonzero]


def along(drives: tuple[Drive, ...], by: Sequence[Any], dq: list[list[Any]], dv: list[list[Any]]) -> list[list[Any]]:
    """Return the derivatives of an acceleration by (dq, dv, du) at the beginning, from those by its own q, v and tau."""
    by_q, by_v, by_tau = by
    n, width = len(dq), len(dq[0])
    force: list[list[Any]] = [[0.0] * width for _ in range(n)]
    for k, d in enumerate(drives):
        row = force[d.velocity]
        for j in range(width):
            own = d.gain if j == 2 * n + k else 0.0
            row[j] = row[j] + own + d.stiffness * dq[d.velocity][j] + d.damping * dv[d.velocity][j]
    return sums(product(by_q, dq), product(by_v, dv), product(by_tau, force))


def no_rebound(h, restitution) -> None:
    """Write a restitution of zero: contacts hold after an impact."""
    restitution[0] = 0.0


def jump(after, v, a) -> None:
    """Write the jump of the velocity at an impact."""
    for i, x in enumerate(after):
        a[i] = x - v[i]


def jump_slopes(by_q, by_v, results) -> None:
    """Write the derivatives of the jump by q, v and tau, given those of the velocity after it."""
    da_dq, da_dv, _ = results
    for i, row in enumerate(by_v):
        for j, x in enumerate(row):
            da_dq[i][j] = by_q[i][j]
            da_dv[i][j] = x - 1.0 if i == j else x


def rest_after_step(h, results) -> None:
    """Write gains that bring contacts to rest after a step, wherever they are."""
    _, gains = results
    gains[1] = 1.0 / h


def picked(which: tuple[int, ...], x, rows) -> None:
    """Write some entries of a quantity."""
    for i, k in enumerate(which):
        rows[i] = x[k]


def friction(mu: float, weight: float, sole: tuple[float, float], turns: tuple[Any, ...], placements, force, rows) -> None:
    """Write rows that are positive if contacts do not slip, tilt or turn, in units of the robot's weight.

    `turns` has for each contact whether it is a surface, and the axes of its frame in the frame that is placed. A point has
    the row mu f_z - |f_t|, with the normal z of the world. Close to zero |f_t| is rounded, so that it has a derivative. A
    surface has more rows: the centre of pressure lies within the sole (length along x, width along y), and the moment about
    the normal is at most mu f_z times a quarter of length and width.
    """
    length, width = sole
    reach = 0.5 * width, 0.5 * length, 0.25 * mu * (length + width)
    at = row = 0
    for T, (surface, R) in zip(placements, turns, strict=True):
        own = [sum((R[i][j] * force[at + j] for j in range(3)), 0.0) for i in range(3)]
        x, y, z = (sum((T[r][c] * own[c] for c in range(3)), 0.0) for r in range(3))
        small = ROUNDED * weight
        rows[row] = (mu * z - sqrt(x * x + y * y + small * small)) * (1.0 / weight)
        row += 1
        for i in range(3 * surface):
            moment = force[at + 3 + i] * (1.0 / reach[i])
            rows[row], rows[row + 1] = (z - moment) * (1.0 / weight), (z + moment) * (1.0 / weight)
            row += 2
        at += 6 if surface else 3


def gathered(sizes: tuple[int, ...], *parts_and_rows: Any) -> None:
    """Write all rows, one part after the other."""
    *parts, rows = parts_and_rows
    k = 0
    for part in parts:
        for x in part:
            rows[k] = x
            k += 1


def row_slopes(quantities: tuple[tuple[str, ...], ...], drives: tuple[Drive, ...], n: int, *given: Any) -> None:
    """Write derivatives of all rows by (dq, dv, du).

    `quantities` has the quantities by which each part's derivatives are given. Derivatives of a and force by q, v and tau come
    last, if parts depend on them.
    """
    *arrays, rows = given
    left = iter(arrays)
    parts = [(by, [next(left) for _ in by]) for by in quantities]
    through = {name: [next(left) for _ in range(3)] for name in ("a", "force") if depends(quantities, name)}
    k = 0
    for by, slopes in parts:
        for i in range(len(slopes[0])):
            for name, slope in zip(by, slopes, strict=True):
                add_slopes(name, slope[i], through.get("a" if name == FELT else name), drives, n, rows[k])
            k += 1


def depends(quantities: tuple[tuple[str, ...], ...], name: str) -> bool:
    """Return whether derivatives of a or force are needed."""
    return any(name in by or (name == "a" and FELT in by) for by in quantities)


def add_slopes(name: str, slope, through, drives: tuple[Drive, ...], n: int, row) -> None:
    """Add the derivatives of one row by one quantity."""
    if name == "u":
        for i, x in enumerate(slope):
            row[2 * n + i] = row[2 * n + i] + x
    elif name == "tau":
        add_through_drives(drives, n, slope, row)
    elif name == FELT:
        add_through_drives(drives, n, slope, row)
        armature = [sum(d.armature for d in drives if d.velocity == j) for j in range(n)]
        add_slopes("a", [-x * y if x else 0.0 for x, y in zip(armature, slope, strict=True)], through, drives, n, row)
    elif through is None:
        first = n if name == "v" else 0
        for j, x in enumerate(slope):
            row[first + j] = row[first + j] + x
    else:
        for i, x in enumerate(slope):
            if is_zero(x):
                continue
            by_q, by_v, by_tau = (part[i] for part in through)
            for j in range(n):
                row[j] = row[j] + x * by_q[j]
                row[n + j] = row[n + j] + x * by_v[j]
            add_through_drives(drives, n, [x * y for y in by_tau], row)


def gauss_newton(places: tuple[tuple[int, int], ...], rows, force, stiffness, results) -> None:
    """Write the gradient Jᵀ f and the entries of the Hessian Jᵀ diag(c) J of the cost, at `places`."""
    gradient, hessian = results
    own = {place: k for k, place in enumerate(places)}
    for i, row in enumerate(rows):
        nonzero = [j for j, x in enumerate(row) if not is_zero(x)]
        for j in nonzero:
            gradient[j] = gradient[j] + row[j] * force[i]
            by = row[j] * stiffness[i]
            for k in nonzero:
                if k <= j:
                    at = own[j, k]
                    hessian[at] = hessian[at] + by * row[k]


def motion_slopes(curved: tuple[tuple[int, int], ...], drives: tuple[Drive, ...], impact: bool, h, *given: Any) -> None:
    """Write D = dv' by (dq, dv, du) into the last rows, and for each curved block the derivatives of q' by q and by v'."""
    lasts = 0.0 if impact else h
    h = 1.0 if impact else h
    *by, results = given
    motion, blocks = results if isinstance(results, tuple) else (results, None)
    by_q, by_v, by_tau = by[:3]
    n = len(by_q)
    for i, row in enumerate(motion[len(motion) - n :]):
        for j in range(n):
            row[j] = h * by_q[i][j]
            row[n + j] = (1.0 if i == j else 0.0) + h * by_v[i][j]
        add_through_drives(drives, n, [h * x for x in by_tau[i]], row)
    at = 0
    for first, size in curved:
        for scale, slope in ((1.0, by[3]), (lasts, by[4])):
            for i in range(first, first + size):
                for j in range(first, first + size):
                    blocks[at] = scale * slope[i][j]
                    at += 1
