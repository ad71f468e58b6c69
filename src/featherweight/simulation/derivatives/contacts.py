"""Contacts and joint rows in the derivatives of the acceleration (`acceleration`).

Contacts of the same bodies are a bundle: their terms are those of the wrenches and velocities of these bodies, with the factors
of one block (`contact.contact_slopes`). Terms are added to the matrix first; and either to the right-hand sides of all
directions at once, or, when the matrix has given a cotangent w of the right-hand sides, to the product of w and these. A bundle
and a joint row add the same rows in both cases: times the columns of J, or times J w.
"""

from __future__ import annotations

from math import sqrt

from ...array_types import Matrix, Vector
from ...collision.collision_scene import PLANE
from ...collision.detection import body_of
from ...collision.triples import along, component, outer, plus
from ...contact.compliant.answers import (
    BOUNDARY,
    Answering,
    answer_of_row,
    answering_of,
    directions_of,
    is_between,
    row_of,
    write_answer,
)
from ...contact.compliant.compliance import impedance, yielding_of
from ...contact.contact_problem import ProblemRows, RowWork, find_active_rows, rows_in
from ...contact.contact_slopes import (
    BLOCK,
    DIRECTIONS,
    GAP,
    KEPT,
    OF_SIDE,
    PAIR,
    SEEN,
    STORED,
    TOTAL,
    WIDE,
    ContactAt,
    add_to_block,
    impedance_slope,
    keep_rigid_rows,
    range_of,
    write_contact_slopes,
)
from ...contact.factors.branches import padded
from ...contact.impulses import greatest_of
from ...contact.rigid.answers import EDGE, EDGE_OF_GAPS, write_rigid_answer, write_rigid_row
from ...engine.loops.kernels import call_machine, subtract_multiples, sum_of_products
from ...model.tree import FLOATING, PLANAR
from ..robot_stages import turns
from ..smooth_motion import clear, ordered_product
from ..stage_records import FOUND, SOLVED, RobotStages
from .records import AccelerationSlopes

ROUNDED = 1e-12  # [m, rad] gap that counts as zero
BUNDLES, JOINT_ROWS = 0, 1  # indices of `Bundles.counts`


def add_touching(s: RobotStages, y: AccelerationSlopes, whole: bool) -> None:
    """Add Jᵀ G J to the matrix, and, if `whole`, the terms of contacts and joint rows to the right-hand sides."""
    t = s.touching
    if t.counts[FOUND] > 0 and t.counts[SOLVED] > 0:
        call_machine(y.calls.jacobian)
        if y.calls.motions.address != 0:
            call_machine(y.calls.motions)
        if y.calls.motions_before.address != 0:
            call_machine(y.calls.motions_before)
    if s.calls.contact_factor.address != 0:
        add_rows(s, y, t.passes.rows, whole)
    else:
        add_rows(s, y, t.workspace.assembly.of_rows, whole)


def add_rows(s: RobotStages, y: AccelerationSlopes, work: RowWork, whole: bool) -> None:
    """Add the terms of the rows that the last problem of the robot has in its workspace."""
    t, settings, many = s.touching, s.touching.model.settings, y.bundles
    k, turning = (t.counts[SOLVED] if t.counts[FOUND] > 0 else 0), 0
    for c in range(k if settings.turning else 0):
        turning += 1 if turns(t, c) else 0
    count = 3 * turning + find_active_rows(t.model, t.kinematics, work.active[3 * turning :])
    p = rows_in(work, settings.pyramid, k, count, turning)
    own = answering_of(p.law, settings.cones, turning, work.turning, work.turning_friction)
    if y.is_rigid:
        y.rigid.edge[0] = EDGE * settings.tolerance * max(greatest_of(p.law.bias), greatest_of(p.approach))
        y.rigid.scale[0] = 0.0
    bundle = -1
    for c in range(k):
        if bundle < 0 or not is_in_bundle(s, y, c, bundle):
            if bundle >= 0:
                add_bundle(s, y, bundle, whole)
            bundle += 1
            begin_bundle(s, y, c, bundle, whole)
        many.of[c] = bundle
        write_row_numbers(s, y, p, own, c)
        add_contact(s, y, p, own, c, whole)
    if bundle >= 0:
        add_bundle(s, y, bundle, whole)
    many.counts[BUNDLES], many.counts[JOINT_ROWS] = bundle + 1, count - 3 * turning
    for i in range(3 * turning, count):
        add_joint_row(s, y, p, own, i, first_kept_row(s, y) + i - 3 * turning, whole)


def first_kept_row(s: RobotStages, y: AccelerationSlopes) -> int:
    """Return the number of the first joint row of those that are kept."""
    t = s.touching
    return 3 * t.counts[SOLVED] if y.is_rigid and t.counts[FOUND] > 0 else 0


def write_row_numbers(s: RobotStages, y: AccelerationSlopes, p: ProblemRows, own: Answering, c: int) -> None:
    """Write the impulses of a contact, the velocities y to which they answer, and G."""
    t, count = s.touching, directions_of(c, own)
    for l in range(count):
        row, turning = row_of(c, l, own), l > 2
        at = len(own.mu) + own.group[c] if turning else c
        axis, impulse = p.axes[at, l % 3], t.impulses.turn[c] if turning else t.impulses.force[c]
        y.responding[row] = p.law.bias[row]
        y.impulses[row] = ordered_product(axis, impulse) / ordered_product(axis, axis)
        for side in range(2):
            body = body_of(t.contacts, c, side)
            if body >= 0:
                for j in range(6):
                    change = y.velocity[body, j] - t.kinematics.velocity[body, j]
                    y.responding[row] += p.rows[at, side, l % 3, j] * change
    if not y.is_rigid:
        write_answer(own, y.responding, c, y.spare, y.slope)


# ---- contacts


def is_in_bundle(s: RobotStages, y: AccelerationSlopes, c: int, bundle: int) -> bool:
    """Return whether a contact belongs to a bundle."""
    t, many = s.touching, y.bundles
    alike = many.bodies[bundle, 0] == body_of(t.contacts, c, 0) and many.bodies[bundle, 1] == body_of(t.contacts, c, 1)
    return bool(alike and many.before[bundle] == weight_of_contact(s, y, c))


def weight_of_contact(s: RobotStages, y: AccelerationSlopes, c: int) -> float:
    """Return `weight_before` of a contact."""
    t = s.touching
    return 0.0 if y.is_rigid else s.numbers.step * yielding_of(t.model.yielding, t.contacts.candidate[c]).damping - 1.0


def begin_bundle(s: RobotStages, y: AccelerationSlopes, c: int, bundle: int, whole: bool) -> None:
    """Begin a bundle with a contact, with the velocities of both bodies."""
    many, block = y.bundles, STORED + bundle * BLOCK
    many.before[bundle] = weight_of_contact(s, y, c)
    for side in range(2):
        many.bodies[bundle, side] = body_of(s.touching.contacts, c, side)
        write_velocities_of_body(s, y, many.bodies[bundle, side], many.before[bundle])
    clear(y.contact.numbers[block : block + BLOCK])
    if whole:
        turn_bundle(s, y, bundle)


def write_velocities_of_body(s: RobotStages, y: AccelerationSlopes, body: int, before: float) -> None:
    """Write the velocities of a body at w, and those at w and v, weighted by 1 and `before`."""
    n, x, v = len(y.after), y.numbers, s.state.v
    for i in range(6 if body >= 0 else 0):
        row = y.at.jacobian + (6 * body + i) * n
        after = earlier = 0.0
        for j in range(n):
            if x[row + j] != 0.0:
                after += x[row + j] * y.after[j]
                earlier += x[row + j] * v[j]
        y.velocity[body, i], y.velocity_seen[body, i] = after, after + before * earlier


def turn_bundle(s: RobotStages, y: AccelerationSlopes, bundle: int) -> None:
    """Write the derivatives by q of the velocities of both bodies, for robots without loops."""
    if y.calls.motions.address == 0:
        for side in range(2):
            turn_jacobian(s, y, y.bundles.bodies[bundle, side], y.bundles.before[bundle])


def add_bundle(s: RobotStages, y: AccelerationSlopes, bundle: int, whole: bool) -> None:
    """Add a bundle to the matrix, and, if `whole`, to the right-hand sides of all directions."""
    n, at, x, unit = len(y.after), y.at, y.numbers, 1.0 / s.numbers.step
    for side in range(2):
        body = y.bundles.bodies[bundle, side]
        if body >= 0:
            J, felt, straight = at.jacobian + 6 * n * body, at.felt + 12 * side * at.stride, at.straight + 6 * side * at.stride
            for i in range(6):
                factors = STORED + bundle * BLOCK + (6 * side + i) * PAIR
                if whole:
                    write_row_of_bundle(s, y, bundle, factors, felt + 2 * i * at.stride, straight + i * at.stride)
                else:
                    write_straight_row(y, bundle, factors + WIDE, straight + i * at.stride)
            for j in range(n):
                a, b, c = x[J + j], x[J + n + j], x[J + 2 * n + j]
                d, e, f = x[J + 3 * n + j], x[J + 4 * n + j], x[J + 5 * n + j]
                if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0 or e != 0.0 or f != 0.0:
                    length = at.stride if y.is_rigid else padded(j + 1)
                    subtract_multiples(x, at.matrix + j * at.stride, straight, at.stride, length, (a, b, c, d, e, f))
                    if whole:
                        six = -unit * a, -unit * b, -unit * c, -unit * d, -unit * e, -unit * f
                        subtract_multiples(x, at.rates + j * at.width, felt, 2 * at.stride, 2 * at.stride, six)


def write_straight_row(y: AccelerationSlopes, bundle: int, factors: int, straight: int) -> None:
    """Write a combination of the rows J of both bodies."""
    n, at, f = len(y.after), y.at, y.contact.numbers
    clear(y.numbers[straight : straight + at.stride])
    for side in range(2):
        body = y.bundles.bodies[bundle, side]
        if body >= 0:
            own = factors + OF_SIDE * side
            add_six(y.numbers, straight, at.jacobian + 6 * n * body, n, at.stride, f[own : own + 6], 1.0)


def write_row_of_bundle(
    s: RobotStages, y: AccelerationSlopes, bundle: int, factors: int, target: int, straight: int
) -> None:  # fmt: skip
    """Write the derivatives by q and v of a combination of motions of both bodies, and of velocities y of these.

    The place `factors` has a pair of rows of `contact_slopes`, with the factors of both. `straight` gets the velocities.
    """
    n, at, x, f, before = len(y.after), y.at, y.numbers, y.contact.numbers, y.bundles.before[bundle]
    write_straight_row(y, bundle, factors + WIDE, straight)
    clear(x[target : target + 2 * at.stride])
    for side in range(2):
        body = y.bundles.bodies[bundle, side]
        if body >= 0:
            moves, turns_at = factors + OF_SIDE * side, factors + WIDE + OF_SIDE * side
            J = 6 * n * body
            add_six(x, target, at.jacobian + J, n, at.stride, f[moves : moves + 6], 1.0)
            add_six(x, target, at.turned + J, n, at.stride, f[turns_at : turns_at + 6], 1.0)
            if y.calls.motions_before.address != 0:
                add_six(x, target, at.turned_before + J, n, at.stride, f[turns_at : turns_at + 6], before)
    by_v = target + at.stride
    subtract_multiples(x, by_v, straight, 0, at.stride, (-1.0 - before,))
    add_curved(s, x[straight : straight + n], x[by_v : by_v + n])


def add_contact(s: RobotStages, y: AccelerationSlopes, p: ProblemRows, own: Answering, c: int, whole: bool) -> None:
    """Add one contact to the block of its bundle."""
    t, h, slopes, gap = s.touching, s.numbers.step, y.contact, s.touching.contacts.gap[c]
    candidate, count, bundle = t.contacts.candidate[c], directions_of(c, own), y.bundles.of[c]
    pair, block = t.pair_of[candidate], STORED + bundle * BLOCK
    for l in range(DIRECTIONS):
        slopes.impulse[l] = y.impulses[row_of(c, l, own)] if l < count else 0.0
    shapes = t.scene.pair[pair, 0], t.scene.pair[pair, 1]
    if t.scene.body[shapes[0]] < 0:  # the world comes second in contacts
        shapes = shapes[1], shapes[0]
    on_ground = y.is_rigid and t.scene.kind[shapes[1]] >= PLANE
    tangents = t.model.tangents[candidate] if len(t.model.tangents) > 0 else t.model.friction[:0]
    at = ContactAt(c, shapes, t.scene.margin[pair], count, tangents, on_ground)
    unique = write_contact_slopes(
        t.scene, t.collisions.placement, t.contacts, t.kinematics.placement, at, y.velocity_seen, slopes
    ) or not (turns_body(y, y.bundles.bodies[bundle, 0]) or turns_body(y, y.bundles.bodies[bundle, 1]))  # fmt: skip
    first, length = range_of(t.contacts, c)
    x, normal, opening = slopes.numbers, SEEN + first, GAP + first
    if y.is_rigid:
        if closes(s, gap):
            subtract_multiples(x, normal, opening, 0, length, (-1.0 / h,))
        keep_contact(s, y, p, c, bundle, whole)
        y.doubtful[c] = y.impulses[3 * c] != 0.0 and not unique and not is_immovable(y, c)
        add_to_block(t.contacts, at, y.rigid.G[c], 0.0, block, slopes)
        return
    pushes = slopes.impulse[0] != 0.0
    y.doubtful[c] = (pushes and (y.doubtful[c] or not unique)) or is_between(own, y.responding, c)
    yields = yielding_of(t.model.yielding, candidate)
    d, slope = impedance(yields, gap), impedance_slope(yields, gap)
    subtract_multiples(x, normal, opening, 0, length, (-h * yields.stiffness * (d + slope * gap),))
    add_to_block(t.contacts, at, y.slope, slope / (d * (1.0 - d)), block, slopes)  # R'/R = -d' / (d (1 - d))


def turns_body(y: AccelerationSlopes, body: int) -> bool:
    """Return whether a joint rotates a body; otherwise it does not matter at which of its points a contact is."""
    n, turns_it = len(y.after), False
    for i in range(3 * n if body >= 0 else 0):
        turns_it = turns_it or y.numbers[y.at.jacobian + (6 * body + 3) * n + i] != 0.0
    return turns_it


def place_of_rigid(y: AccelerationSlopes, c: int) -> int:
    """Return the place of the rows of a rigid contact, after all blocks."""
    return STORED + len(y.bundles.of) * BLOCK + c * KEPT


def keep_contact(s: RobotStages, y: AccelerationSlopes, p: ProblemRows, c: int, bundle: int, whole: bool) -> None:
    """Keep J of a rigid contact, write its answers, and keep the derivatives of its impulses at constant acceleration."""
    at, x, place, own = y.at, y.numbers, place_of_rigid(y, c), 3 * c
    keep_rigid_rows(s.touching.contacts, c, place, y.contact)
    for l in range(3):
        kept = at.kept + (own + l) * at.stride
        if whole:
            write_row_of_bundle(s, y, bundle, place + l * PAIR, at.seen + 2 * l * at.stride, kept)
        else:
            write_straight_row(y, bundle, place + l * PAIR + WIDE, kept)
    write_rigid_answer(p.law, c, rho_of(y, own, 3), y.impulses[own : own + 3], y.responding[own : own + 3], y.rigid)
    for l in range(3 if whole else 0):
        moved, G = at.moved + (own + l) * at.width, y.rigid.G[c]
        for j in range(2 * at.stride, at.width):
            x[moved + j] = 0.0
        subtract_multiples(x, moved, at.seen, 2 * at.stride, 2 * at.stride, (G[l, 0], G[l, 1], G[l, 2]), True)
        if y.rigid.pushing[c]:
            note_scale(y, at.seen + 2 * l * at.stride)


def weight_before(y: AccelerationSlopes, h: float, yielding: Matrix, i: int) -> float:
    """Return the weight of the velocity at the start of the step in the velocity to which a contact or row answers."""
    if y.is_rigid:
        return 0.0
    return h * yielding_of(yielding, i).damping - 1.0


def closes(s: RobotStages, gap: float) -> bool:
    """Return whether a rigid contact or limit may close the gap within the step."""
    return bool(gap > EDGE_OF_GAPS * s.touching.model.settings.slop)


def rho_of(y: AccelerationSlopes, row: int, count: int) -> float:
    """Return a velocity per impulse for `count` rows J: the greatest J D⁻¹ Jᵀ, with the diagonal D of the mass matrix."""
    n, at, x, most = len(y.after), y.at, y.numbers, 0.0
    for l in range(count):
        J, total = at.kept + (row + l) * at.stride, 0.0
        for j in range(n):
            if x[J + j] != 0.0:
                total += x[J + j] * x[J + j] / x[at.mass + j * n + j]
        most = max(most, total)
    return most if most > 0.0 else 1.0


def is_immovable(y: AccelerationSlopes, c: int) -> bool:
    """Return whether the normal row of J of a contact is zero up to rounding."""
    J, x, normal, every = y.at.kept + 3 * c * y.at.stride, y.numbers, 0.0, 0.0
    for l in range(3):
        for j in range(len(y.after)):
            every = max(every, abs(x[J + l * y.at.stride + j]))
    for j in range(len(y.after)):
        normal = max(normal, abs(x[J + j]))
    return bool(normal <= ROUNDED * every)


def note_scale(y: AccelerationSlopes, seen: int) -> None:
    """Note the size of the derivatives of a velocity by q and v."""
    x, by_v = y.numbers, seen + y.at.stride
    for j in range(len(y.after)):
        y.rigid.scale[0] = max(y.rigid.scale[0], abs(x[seen + j]), abs(x[by_v + j]))


def turn_jacobian(s: RobotStages, y: AccelerationSlopes, body: int, before: float) -> None:
    """Write the derivatives by q of a body's velocity at w and v, weighted by 1 and `before`, for a robot without loops.

    A joint turns the body's axes relative to the joints above it, whose velocity of the body is P: the derivative by its
    coordinate is P x J, with its column of J.
    """
    if body < 0:
        return
    n, x, J, turned = len(y.after), y.numbers, y.at.jacobian + 6 * len(y.after) * body, y.at.turned + 6 * len(y.after) * body
    l, w = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)  # velocity by the joints above the joint of row j
    more_l, more_w = l, w  # and by this joint
    for j in range(n):
        if y.paths.moves[body, j]:
            if y.paths.first[j] == j:
                l, w = more_l, more_w
            a = x[J + j], x[J + n + j], x[J + 2 * n + j]
            b = x[J + 3 * n + j], x[J + 4 * n + j], x[J + 5 * n + j]
            u, v = plus(outer(w, a), outer(l, b)), outer(w, b)
            for i in range(3):
                x[turned + i * n + j], x[turned + (3 + i) * n + j] = component(u, i), component(v, i)
            rate = y.after[j] + before * s.state.v[j]
            more_l, more_w = along(more_l, rate, a), along(more_w, rate, b)


def add_six(x: Vector, target: int, rows: int, stride: int, length: int, f: Vector, factor: float) -> None:
    """Add a combination of six rows with the factors f, all times `factor`."""
    a, b, c, d, e, g = f[0], f[1], f[2], f[3], f[4], f[5]
    u = -factor
    subtract_multiples(x, target, rows, stride, length, (u * a, u * b, u * c, u * d, u * e, u * g))


# ---- joint rows


def add_joint_row(
    s: RobotStages, y: AccelerationSlopes, p: ProblemRows, own: Answering, i: int, row: int, whole: bool
) -> None:  # fmt: skip
    """Add the terms of a limit, of dry friction or of an equality of a joint or a length, which is kept as a row."""
    t, h, n, at, x, sliding = s.touching, s.numbers.step, len(y.after), y.at, y.numbers, len(p.law.friction)
    rows, r = t.model.rows, p.active[i]
    dof, sign, before = t.dofs[rows.joint[r]], rows.sign[r], weight_before(y, h, t.model.yielding_rows, r)
    gap, f, at_row = t.kinematics.gap[r], t.impulses.next_row[r], 3 * sliding + i
    alike, change = s.joints.driving.alike, 0.0
    J, seen, by_v, moved = at.kept + row * at.stride, at.seen, at.seen + at.stride, at.moved + row * at.width
    for j in range(at.stride):
        x[J + j] = x[seen + j] = x[by_v + j] = x[at.opening + j] = 0.0
    if dof < alike:
        x[J + dof], change = sign, sign * (y.after[dof] - s.step.free[dof])
    else:
        for j in range(n):
            x[J + j] = sign * s.point.S[dof, j]
            change += x[J + j] * (y.after[j] - s.step.free[j])
            if y.by_differences:
                x[seen + j] = sign * x[at.arms + r * n + j]
            elif y.calls.spanning_after.address != 0:
                x[seen + j] = sign * (x[at.swept_after + dof * n + j] + before * x[at.swept + dof * n + j])
            if rows.holds[r] > 0 and y.by_differences:
                x[seen + j] += h * x[at.drifts + 2 * r * at.stride + j]
                x[by_v + j] = h * x[at.drifts + (2 * r + 1) * at.stride + j]
    y.responding[at_row] = p.law.bias[at_row] + change
    add_curved(s, x[J : J + n], x[by_v : by_v + n])
    G, at_gap = 0.0, len(t.contacts.gap) + r
    if y.is_rigid:
        write_rigid_row(p.law, i, rho_of(y, row, 1), f, y.responding[at_row], y.rigid)
        G = y.rigid.G[sliding + i, 0, 0]
    else:
        _, G = answer_of_row(own, at_row, y.responding[at_row])
        y.doubtful[at_gap] = (y.doubtful[at_gap] and f != 0.0) or is_row_between(p, at_row, y.responding)
    if y.is_rigid:
        if not rows.friction[r] and closes(s, gap):
            subtract_multiples(x, seen, J, 0, at.stride, (-1.0 / h,))
    elif rows.holds[r] > 0:
        add_gaps_of_equality(s, y, r, J)
    elif not rows.friction[r]:
        yields = yielding_of(t.model.yielding_rows, r)
        d, slope = impedance(yields, gap), impedance_slope(yields, gap)
        subtract_multiples(x, at.opening, J, 0, at.stride, (-slope / (d * (1.0 - d)),))
        subtract_multiples(x, seen, J, 0, at.stride, (-h * yields.stiffness * (d + slope * gap),))
    subtract_multiples(x, by_v, J, 0, at.stride, (-1.0 - before,))
    subtract_multiples(x, moved, seen, 0, 2 * at.stride, (G,), True)
    subtract_multiples(x, moved, at.opening, 0, at.stride, (-f,))
    for j in range(2 * at.stride, at.width):
        x[moved + j] = 0.0
    if y.is_rigid and y.rigid.pushing[sliding + i]:
        note_scale(y, seen)
    first, stop = (dof, dof + 1) if dof < alike else (0, n)
    for j in range(first, stop):
        force = x[J + j]
        if force != 0.0:
            length = at.stride if y.is_rigid else padded(j + 1)
            subtract_multiples(x, at.matrix + j * at.stride, J, 0, length, (-force * G,))
            if whole:
                subtract_multiples(x, at.rates + j * at.width, moved, 0, 2 * at.stride, (-force / h,))


def add_gaps_of_equality(s: RobotStages, y: AccelerationSlopes, r: int, J: int) -> None:
    """Add the terms of the gaps of an equality to its row r; their common distance determines the impedance."""
    t, at, x, n, seen = s.touching, y.at, y.numbers, len(y.after), y.at.seen
    rows, yields, gap = t.model.rows, yielding_of(t.model.yielding_rows, r), t.kinematics.gap[r]
    first, count, square, stiffness = rows.first[r], rows.holds[r], 0.0, s.numbers.step * yields.stiffness
    for k in range(first, first + count):
        square += t.kinematics.gap[k] * t.kinematics.gap[k]
    distance = sqrt(square)
    d, slope = impedance(yields, distance), impedance_slope(yields, distance)
    subtract_multiples(x, seen, J, 0, at.stride, (-stiffness * d,))
    for k in range(first, first + count if slope != 0.0 else first):
        part, dof = slope * t.kinematics.gap[k] / distance, t.dofs[rows.joint[k]]
        for j in range(n):
            own = s.point.S[dof, j] if dof >= s.joints.driving.alike else (1.0 if dof == j else 0.0)
            farther = part * rows.sign[k] * own
            x[seen + j] += stiffness * gap * farther
            x[at.opening + j] += farther / (d * (1.0 - d))


def is_row_between(p: ProblemRows, i: int, velocity: Vector) -> bool:
    """Return whether a row with bounds is at one of them without force."""
    j, f = i - 3 * len(p.law.friction), -velocity[i] / p.law.compliance[i]
    lower, upper = p.law.lower[j], p.law.upper[j]
    return bool(abs(f - lower) < BOUNDARY * abs(f) or abs(f - upper) < BOUNDARY * abs(f))


def are_impulses_constant(s: RobotStages, y: AccelerationSlopes) -> bool:
    """Return whether only dry friction of joints acts in passes, and all of it at its bounds."""
    t, settings = s.touching, s.touching.model.settings
    if s.calls.contact_factor.address == 0 or (t.counts[FOUND] > 0 and t.counts[SOLVED] > 0):
        return False
    count, rows = find_active_rows(t.model, t.kinematics, t.passes.rows.active), t.model.rows
    p = rows_in(t.passes.rows, settings.pyramid, 0, count)
    own = answering_of(p.law, settings.cones, 0, t.passes.rows.turning, t.passes.rows.turning_friction)
    for i in range(count):
        r = p.active[i]
        dof = t.dofs[rows.joint[r]]
        if not rows.friction[r] or dof >= s.joints.driving.alike:
            return False
        y.responding[i] = p.law.bias[i] + rows.sign[r] * t.passes.change[dof]
        _, G = answer_of_row(own, i, y.responding[i])
        if G != 0.0 or is_row_between(p, i, y.responding):
            return False
    return True


def add_curved(s: RobotStages, row: Vector, target: Vector) -> None:
    """Add h times a row times the derivative of w x v of joints whose velocities do not commute (see `free_velocity`)."""
    joints, v, h = s.joints.curved, s.state.v, s.numbers.step
    for k in range(len(joints)):
        kind, i = joints[k, 0], joints[k, 1]
        if kind == FLOATING:
            a, b, c, x, y, z = v[i + 3], v[i + 4], v[i + 5], v[i], v[i + 1], v[i + 2]
            p, q, r = h * row[i], h * row[i + 1], h * row[i + 2]
            target[i] += q * c - r * b
            target[i + 1] += r * a - p * c
            target[i + 2] += p * b - q * a
            target[i + 3] += y * r - z * q
            target[i + 4] += z * p - x * r
            target[i + 5] += x * q - y * p
        elif kind == PLANAR:
            p, q = h * row[i], h * row[i + 1]
            target[i] += q * v[i + 2]
            target[i + 1] -= p * v[i + 2]
            target[i + 2] += q * v[i] - p * v[i + 1]


# ---- products with cotangents


def pull_back_touching(s: RobotStages, y: AccelerationSlopes) -> None:
    """Add the product of the cotangents (of right-hand sides, and rigid impulses) and the terms of contacts and joint rows."""
    at, x, f, unit, many = y.at, y.numbers, y.contact.numbers, 1.0 / s.numbers.step, y.bundles
    contact, first = 0, first_kept_row(s, y)
    for bundle in range(many.counts[BUNDLES]):
        for j in range(PAIR):
            f[TOTAL + j] = 0.0
        for side in range(2):
            body = many.bodies[bundle, side]
            if body >= 0:
                block = STORED + bundle * BLOCK + 6 * side * PAIR
                a, b, c = seen_by(y, body, 0), seen_by(y, body, 1), seen_by(y, body, 2)
                d, e, g = seen_by(y, body, 3), seen_by(y, body, 4), seen_by(y, body, 5)
                six = -unit * a, -unit * b, -unit * c, -unit * d, -unit * e, -unit * g
                subtract_multiples(f, TOTAL, block, PAIR, PAIR, six)
        while y.is_rigid and contact * 3 < first and many.of[contact] == bundle:
            pull, G = at.answering + 3 * contact, y.rigid.G[contact]
            u, v, w = x[pull], x[pull + 1], x[pull + 2]
            a, b = G[0, 0] * u + G[1, 0] * v + G[2, 0] * w, G[0, 1] * u + G[1, 1] * v + G[2, 1] * w
            c = G[0, 2] * u + G[1, 2] * v + G[2, 2] * w
            subtract_multiples(f, TOTAL, place_of_rigid(y, contact), PAIR, PAIR, (a, b, c))
            contact += 1
        turn_bundle(s, y, bundle)
        write_row_of_bundle(s, y, bundle, TOTAL, at.felt, at.straight)
        subtract_multiples(x, at.product, at.felt, 0, 2 * at.stride, (-1.0,))
    for row in range(first, first + many.counts[JOINT_ROWS]):
        force = 0.0
        for j in range(len(y.after)):
            force += x[at.kept + row * at.stride + j] * x[at.cotangent + j]
        force = unit * force + (x[at.answering + row] if y.is_rigid else 0.0)
        subtract_multiples(x, at.product, at.moved + row * at.width, 0, 2 * at.stride, (-force,))


def seen_by(y: AccelerationSlopes, body: int, i: int) -> float:
    """Return velocity i of a body at the cotangent of the right-hand sides."""
    J = y.at.jacobian + (6 * body + i) * len(y.after)
    return sum_of_products(y.numbers, J, y.numbers, y.at.cotangent, y.at.stride)
