"""Contact laws, which relate impulses and velocities of contacts and joint rows; each law is one record.

With A the Delassus matrix of the active rows of a step, three for each contact and then those of joints, the impulses f leave
the velocities A f + v, where v are those without impulses. A law adds its compliance R (diagonal) and a target velocity:

    u = (A + R) f + b
    contacts      f_n >= 0,  u_n >= 0,  f_n u_n = 0;  |f_t| <= mu f_n, and friction opposes u_t if it is mu f_n
    joint rows    lower <= f <= upper;  u = 0 within, u >= 0 at the lower, u <= 0 at the upper bound

A rigid contact has R = 0 and b = v + gap / h: its gap at the end of the step of length h is not negative. A spring k with a
damper d, evaluated at the end of the step, f = -h (k (gap + h v') + d v') with v' = A f + v, has R = 1 / (h (h k + d)) and b =
v + k gap / (h k + d), and stores k gap² / 2.

Adhesion translates the cone of a contact along its normal: with a pull p = h δ, f_n + p is nonnegative and bounds friction, in
either law. The problem is solved for f + p, with b - (A + R) p (see `contact_solver.translate`).

`compliant.compliance` contains MuJoCo's springs and dampers for compliant contacts. A further law is a kernel like
`write_rigid_law`, a number beside `RIGID`, and a line in `write_law`.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Vector
from .compliant.compliance import IMMOVABLE, Yielding, impedance, with_friction, yielding_of
from .contact_model import ContactModel
from .contact_settings import ContactSettings
from .factors.row_factor import NO_ROWS, RowFactor

COULOMB, CONES, PYRAMIDS = range(3)  # kinds of friction, for `Problem.cones`
RIGID, COMPLIANT = range(2)  # numbers of laws, for `ContactSettings.law`

MOST_LATE = 0.04  # [m] greatest overlap at which a contact may bounce
STIFF = 1e4  # least ratio of the inverse inertia to the compliance from which rounding errors count
PARTING_SPEED = 1.0  # [m/s] speed at which overlapping bodies separate
RETURN_SPEED = 1.0
"""[rad/s, m/s] speed at which a joint beyond its limit moves back; no other joint moves faster because of it. At 1 rad/s, the
tip of a link of one metre moves by 1 mm, the margin of contacts, in a step of 1 ms, so contacts are found before the step."""


class Problem(NamedTuple):
    """Equations of the impulses f of contacts (their number is that of `mu`), and of rows with bounds: velocities u = A f + b.

    The matrix A is given itself, or as B Bᵀ + R if that is cheaper; A then has no rows. Convex problems have B; those with
    rounds have both.
    """

    A: Matrix  # (m, m), with the compliance on its diagonal, or (0, 0)
    b: Vector  # (m,) [m/s, rad/s]
    mu: Vector  # (k,)
    lower: Vector = np.zeros(0)  # (m - 3k,) [N s, N m s]
    upper: Vector = np.zeros(0)
    pyramid: bool = False
    B: RowFactor = NO_ROWS
    R: Vector = np.zeros(0)  # (m,) compliance, if B is given
    pair: Integers = np.zeros(0, np.int64)  # (k,) numbers of the pairs of touching bodies, or (0,) if unknown
    cones: int = 0  # COULOMB, or a convex problem: CONES or PYRAMIDS
    turning: int = 0  # number of contacts with rows of spinning and rolling, which are in their cones
    rounds: int = 0  # number of rounds that remove slip from friction, see `compliant.no_slip`
    stiff: bool = True  # whether R may be so small that rounding errors of convex problems count

    @property
    def factored(self) -> bool:
        """Return whether A is given as B Bᵀ + R."""
        return len(self.A) < len(self.b)


class RowMotion(NamedTuple):
    """The k contacts and n joint rows of one robot's step, m = 3 k + n, and their motion without impulses."""

    candidate: Integers  # (k,) candidates of contacts
    active: Integers  # (n,) numbers of joint rows
    gap: Vector  # (k + n,) [m, rad], infinite for dry friction of joints
    approach: Vector  # (m,) [m/s, rad/s] velocities after the step
    before: Vector  # (m,) velocities at the start of the step, if needed


class ContactLaw(NamedTuple):
    """Numbers of a law, as the solver reads them, for k contacts and n joint rows, m = 3 k + n."""

    bias: Vector  # (m,) b [m/s, rad/s]
    compliance: Vector  # (m,) R [m/s per N s]
    friction: Vector  # (k,) mu
    lower: Vector  # (n,) [N s, N m s]
    upper: Vector  # (n,)
    elasticity: Vector  # (k,) ratio of the returned normal impulse to that of compression, if the contact bounces
    restitution: Vector  # (k,) this ratio, or zero for a contact that does not bounce
    allowed: Vector  # (k,) [m/s] part of b: the speed at which the contact may close in the step
    distance: Vector  # (k + n,) [m, rad] gap that the displacement makes nonnegative; infinite without displacement
    stiffness: Vector  # (k + n,) [N/m] of the springs that store energy
    pyramid: bool  # the two tangential impulses have separate bounds


def empty_law(contacts: int, rows: int) -> ContactLaw:
    """Return memory for the law of contacts and joint rows."""
    m, n = 3 * contacts + rows, contacts + rows
    bias, compliance = np.empty((2, m))
    friction, elasticity, restitution, allowed = np.empty((4, contacts))
    lower, upper = np.empty((2, rows))
    distance, stiffness = np.empty((2, n))
    return ContactLaw(bias, compliance, friction, lower, upper, elasticity, restitution, allowed, distance, stiffness, False)


def law_in(arrays: ContactLaw, pyramid: bool, k: int, n: int) -> ContactLaw:
    """Return the law of k contacts and n joint rows in memory for more."""
    m = 3 * k + n
    return ContactLaw(
        arrays.bias[:m], arrays.compliance[:m], arrays.friction[:k], arrays.lower[:n], arrays.upper[:n], arrays.elasticity[:k],
        arrays.restitution[:k], arrays.allowed[:k], arrays.distance[: k + n], arrays.stiffness[: k + n], pyramid,
    )  # fmt: skip


def write_law(model: ContactModel, motion: RowMotion, law: ContactLaw) -> None:
    """Write the law that the settings name."""
    if model.settings.law == RIGID:
        write_rigid_law(model, motion, law)
    else:
        write_compliant_law(model, motion, law)


def write_rigid_law(model: ContactModel, motion: RowMotion, law: ContactLaw) -> None:
    """Write Signorini's condition on gaps at the end of the step, Coulomb's friction, and Poisson's restitution."""
    settings, joint_rows, gap = model.settings, model.rows, motion.gap
    h, k = settings.step, len(law.friction)
    deepest = PARTING_SPEED * h + settings.slop
    for i in range(len(law.bias)):
        law.bias[i], law.compliance[i] = motion.approach[i], 0.0
    for i in range(len(law.stiffness)):
        law.distance[i], law.stiffness[i] = max(gap[i], -deepest) if i < k else gap[i], 0.0
    for c in range(k):
        candidate = motion.candidate[c]
        law.friction[c], law.elasticity[c] = model.friction[candidate], model.restitution[candidate]
        write_bounce(settings, motion.before[3 * c], motion.approach[3 * c], law, c)
        law.bias[3 * c] += law.allowed[c]
    for i in range(len(law.lower)):
        r = motion.active[i]
        if r < 0:
            continue
        law.lower[i], law.upper[i] = joint_rows.lower[r], joint_rows.upper[r]
        if not joint_rows.friction[r]:
            law.bias[3 * k + i] += max(gap[k + i], 0.0) / h
            law.distance[k + i] = max(gap[k + i], -(RETURN_SPEED * h + settings.slop))


def write_compliant_law(model: ContactModel, motion: RowMotion, law: ContactLaw) -> None:
    """Write MuJoCo's springs and dampers, with Coulomb's friction, without displacement and restitution.

    See `compliant.compliance`. Contacts and limits are closed, or adhesion pulls contacts across their gap, without friction.
    """
    h, k, joint_rows = model.settings.step, len(law.friction), model.rows
    for i in range(len(law.distance)):
        law.distance[i], law.stiffness[i] = np.inf, 0.0
    for c in range(k):
        candidate, i = motion.candidate[c], 3 * c
        y = with_friction(yielding_of(model.yielding, candidate), model.friction[candidate])
        law.friction[c] = model.friction[candidate]
        law.elasticity[c] = law.restitution[c] = law.allowed[c] = 0.0
        if motion.gap[c] < 0.0:
            law.stiffness[c] = write_yielding_row(y, motion, law, i, motion.gap[c], motion.gap[c], h)
        else:
            law.friction[c] = 0.0
            apart = y._replace(inverse=y.alone)
            write_yielding_row(apart, motion, law, i, motion.gap[c], motion.gap[c], h)
        for l in range(1, 3):
            law.compliance[i + l] = law.compliance[i] * y.friction
            law.bias[i + l] = motion.approach[i + l] + (h * y.damping - 1.0) * motion.before[i + l]
    for i in range(len(law.lower)):
        row = motion.active[i]
        if row < 0:
            continue
        y, j, gap = yielding_of(model.yielding_rows, row), 3 * k + i, motion.gap[k + i]
        law.lower[i], law.upper[i] = joint_rows.lower[row], joint_rows.upper[row]
        if joint_rows.holds[row] > 0:
            first, square = k + i - (row - joint_rows.first[row]), 0.0
            for x in range(first, first + joint_rows.holds[row]):  # all are active and adjacent
                square += motion.gap[x] * motion.gap[x]
            write_yielding_row(y, motion, law, j, gap, sqrt(square), h)
        elif joint_rows.friction[row]:
            write_yielding_row(y, motion, law, j, 0.0, 0.0, h)
        else:
            law.stiffness[k + i] = write_yielding_row(y, motion, law, j, gap, gap, h)


def is_stiff(model: ContactModel, candidate: Integers, active: Integers, law: ContactLaw) -> bool:
    """Return whether a contact or joint row yields by less than a small part of its inverse inertia in the file."""
    k, stiff = len(law.friction), False
    for c in range(k):
        y = with_friction(yielding_of(model.yielding, candidate[c]), model.friction[candidate[c]])
        edges = 0.5 * y.square * (1.0 + y.square) if y.square > 0.0 else 1.0  # of pyramids, see `weights_of_cones`
        stiff = stiff or STIFF * edges * min(y.friction, 1.0) * law.compliance[3 * c] < y.inverse
    for i in range(len(law.lower)):
        if active[i] >= 0:
            stiff = stiff or STIFF * law.compliance[3 * k + i] < yielding_of(model.yielding_rows, active[i]).inverse
    return stiff


def write_yielding_row(y: Yielding, motion: RowMotion, law: ContactLaw, i: int, gap: float, distance: float, h: float) -> float:
    """Write compliance and bias of a row at a gap, and return the stiffness [N/m] there.

    The impedance is evaluated at a distance: for several rows of one equality, their common distance.
    """
    d = impedance(y, distance)
    least = IMMOVABLE / y.friction if y.square > 0.0 else IMMOVABLE  # MuJoCo bounds R of a single edge of a pyramid
    law.compliance[i] = max((1.0 - d) / d * y.inverse if y.inverse > IMMOVABLE else 0.0, least)
    law.bias[i] = motion.approach[i] - motion.before[i] + h * (y.damping * motion.before[i] + y.stiffness * d * gap)
    return y.stiffness * d / law.compliance[i]


def stored_energy(law: ContactLaw, gap: Vector) -> float:
    """Return the energy [J] of springs at gaps (k + n,), for the energy guard; zero for rigid contacts."""
    total = 0.0
    for i in range(len(law.stiffness)):
        if law.stiffness[i] > 0.0:
            overlap = min(gap[i], 0.0)
            total += 0.5 * law.stiffness[i] * overlap * overlap
    return total


# ---- Coulomb's cone


def project(aim: Vector, mu: float, pyramid: bool, r: int, slope: Matrix) -> None:
    """Project one contact's impulses, from row r on, in place: f_n >= 0, then |f_t| <= mu f_n; write the derivative (3, 3)."""
    for i in range(3):
        slope[i, 0] = slope[i, 1] = slope[i, 2] = 0.0
    if not aim[r] > 0.0:
        aim[r] = aim[r + 1] = aim[r + 2] = 0.0
        return
    slope[0, 0] = 1.0
    most = mu * aim[r]
    if pyramid:
        for i in range(1, 3):
            if abs(aim[r + i]) <= most:
                slope[i, i] = 1.0
            else:
                way = 1.0 if aim[r + i] > 0.0 else -1.0
                aim[r + i], slope[i, 0] = way * most, way * mu
        return
    x, y = aim[r + 1], aim[r + 2]
    length = sqrt(x * x + y * y)
    if length <= most:
        slope[1, 1] = slope[2, 2] = 1.0
        return
    x, y, shrink = x / length, y / length, most / length
    aim[r + 1], aim[r + 2] = most * x, most * y
    slope[1, 0], slope[2, 0] = mu * x, mu * y
    slope[1, 1], slope[2, 2] = shrink * (1.0 - x * x), shrink * (1.0 - y * y)
    slope[1, 2] = slope[2, 1] = -shrink * x * y


def project_contact(problem: Problem, aim: Vector, c: int, slope: Matrix) -> None:
    """Project the impulses of contact c on the admissible ones."""
    project(aim, problem.mu[c], problem.pyramid, 3 * c, slope)


# ---- restitution


def write_bounce(settings: ContactSettings, before: float, approach: float, law: ContactLaw, c: int) -> None:
    """Write whether contact c bounces, at normal velocities at the start and the end of the step, and the speed allowed to it.

    An elastic contact that closes faster than `bounce` bounces in the step that is nearer to the time of contact. Any other
    contact has no overlap at the end of the step.
    """
    h, gap = settings.step, law.distance[c]
    law.restitution[c], law.allowed[c] = 0.0, max(gap, 0.0) / h
    if law.elasticity[c] > 0.0 and before < -settings.bounce:
        if gap + 0.5 * h * approach > 0.0 and gap + h * approach > -MOST_LATE:
            law.allowed[c] += MOST_LATE / h  # it bounces in the next step
        else:
            law.restitution[c], law.allowed[c] = law.elasticity[c], 0.0


def bounces(law: ContactLaw) -> bool:
    """Return whether any contact has restitution."""
    found = False
    for restitution in law.restitution:
        found |= restitution != 0.0
    return found


def write_restitution(law: ContactLaw, compression: Vector, back: Vector) -> None:
    """Write the impulses of restitution: a fraction of those of compression."""
    for i in range(len(back)):
        back[i] = 0.0
    for c in range(len(law.restitution)):
        back[3 * c] = law.restitution[c] * compression[3 * c]


def part_of_restitution(velocities: tuple[Vector, Vector], f: Vector, back: Vector, changes: tuple[Vector, Vector]) -> float:
    """Return the greatest common factor of the impulses of restitution that adds no energy.

    `velocities` are those without f at the start and the end of the interval in which f acts; `changes` are those by f and by
    `back`. With friction, restitution may add energy (Kane and Levinson 1985). The work of impulses f is fᵀ (u + u') / 2, for
    the velocities u and u' before and after them.
    """
    (start, end), (by_f, by_back) = velocities, changes
    before = first = second = 0.0  # the work is before + s first + s² second, for the factor s
    for i in range(len(f)):
        mean = 0.5 * (start[i] + end[i])
        before += f[i] * (0.5 * by_f[i] + mean)
        first += back[i] * (by_f[i] + mean)
        second += 0.5 * back[i] * by_back[i]
    part = 1.0
    if before + first + second > 0.0 and second > 0.0:
        part = min(max((sqrt(max(first * first - 4.0 * second * before, 0.0)) - first) / (2.0 * second), 0.0), 1.0)
    return part
