"""Motion along a velocity on the configuration manifold, q exp(v), joint by joint, and the rate of q.

    line           q + v
    SO(3)          q exp(v)                           v = w
    SE(3)          (p + R l', R exp(w))               v = (l, w), exp(v) = (l', exp(w))
    SE(2)          the same in the plane

with the exponentials of spatial/lie.py. Rotations are normalized, so they stay normalized over any number of steps.
"""

from __future__ import annotations

from ..model.tree import FLOATING, INNER, PLANAR, SPHERICAL, Tree
from ..spatial import (
    Mat3,
    Quaternion,
    Vec3,
    exp_se2,
    exp_se3,
    exp_so3,
    log_se2,
    log_se3,
    log_so3,
    quaternion_at,
    sincos,
    sqrt,
)
from ..spatial.lie import half_turn, of_exponential, of_logarithm
from .frames import write_vec3
from .kinematics import clear


def integrate(tree: Tree, q, v, result) -> None:
    """Write the configuration reached from q with the velocity v in a unit of time."""
    for j in range(len(tree.parent)):
        move_joint(tree, j, q, v, result)


def move_joint(tree: Tree, j: int, q, v, result) -> None:
    """Write the coordinates of the joint whose first row is j after the motion v; for a further row, write nothing."""
    kind = tree.kind[j]
    k = tree.q_index[j]
    if kind == SPHERICAL:
        spherical(j, k, q, v, result)
    elif kind == FLOATING:
        floating(j, k, q, v, result)
    elif kind == PLANAR:
        planar(j, k, q, v, result)
    elif kind != INNER:
        result[k] = q[k] + v[j]


def difference(tree: Tree, q0, q1, result) -> None:
    """Write the velocity that moves from q0 to q1 in a unit of time."""
    for j in range(len(tree.parent)):
        kind = tree.kind[j]
        k = tree.q_index[j]
        if kind == SPHERICAL:
            write_vec3(log_so3(turn_between(q0, q1, k)), result, j)
        elif kind == FLOATING:
            l, w = log_se3(displacement(q0, q1, k), turn_between(q0, q1, k + 3))
            write_vec3(l, result, j)
            write_vec3(w, result, j + 3)
        elif kind == PLANAR:
            x, y, c, s = planar_motion(q0, q1, k)
            write_vec3(Vec3(*log_se2(x, y, c, s)), result, j)
        elif kind != INNER:
            result[j] = q1[k] - q0[k]


def turn_between(q0, q1, k: int) -> Quaternion:
    """Return the rotation from the quaternion of q0 at k to that of q1, in the axes of q0."""
    return quaternion_at(q0, k).normalized().conjugate().product(quaternion_at(q1, k).normalized())


def displacement(q0, q1, k: int) -> Vec3:
    """Return the displacement of a floating joint from q0 to q1, in the axes of q0."""
    start = quaternion_at(q0, k + 3).normalized()
    return start.rotate_back(Vec3(q1[k] - q0[k], q1[k + 1] - q0[k + 1], q1[k + 2] - q0[k + 2]))


def planar_motion(q0, q1, k: int):
    """Return the displacement of a planar joint from q0 to q1, in the axes of q0, and cosine and sine of its turn."""
    c0, s0 = unit_pair(q0, k + 2)
    c1, s1 = unit_pair(q1, k + 2)
    x, y = q1[k] - q0[k], q1[k + 1] - q0[k + 1]
    return c0 * x + s0 * y, c0 * y - s0 * x, c0 * c1 + s0 * s1, c0 * s1 - s0 * c1


# Jacobians, by velocities in the axes of their configurations: exp(-ad v) and the right Jacobian of exp for q exp(v), the
# inverse of that Jacobian for log(q0^-1 q1).


def integrate_derivatives(tree: Tree, q, v, results) -> None:
    """Write the Jacobians of `integrate` by q and by v; they do not depend on q."""
    by_q, by_v = results
    clear(by_q)
    clear(by_v)
    for j in range(len(tree.parent)):
        write_slopes(tree.kind[j], j, v, by_q, by_v)


def write_slopes(kind: int, j: int, v, by_q, by_v) -> None:
    """Write the Jacobians of the joint whose first row is j; for a further row, write nothing."""
    if kind == SPHERICAL:
        w = Vec3(v[j], v[j + 1], v[j + 2])
        write_block(exp_so3(w).matrix().transpose(), by_q, j, j)
        write_block(of_exponential(w).turning(w), by_v, j, j)
    elif kind == FLOATING:
        write_motion_slopes(Vec3(v[j], v[j + 1], v[j + 2]), Vec3(v[j + 3], v[j + 4], v[j + 5]), by_q, by_v, j)
    elif kind == PLANAR:
        l, w = Vec3(v[j], v[j + 1], 0.0), Vec3(0.0, 0.0, v[j + 2])
        step, e = exp_se3(l, w)
        back, f = e.matrix().transpose(), of_exponential(w)
        write_planar(back, lever(back, step), by_q, j)
        write_planar(f.turning(w), f.moving(l, w), by_v, j)
    elif kind != INNER:
        by_q[j][j] = 1.0
        by_v[j][j] = 1.0


def write_motion_slopes(l: Vec3, w: Vec3, by_q, by_v, j: int) -> None:
    step, e = exp_se3(l, w)
    back, f = e.matrix().transpose(), of_exponential(w)
    write_motion_block(back, lever(back, step), by_q, j)
    write_motion_block(f.turning(w), f.moving(l, w), by_v, j)


def lever(back: Mat3, p: Vec3) -> Mat3:
    """Return -Rᵀ [p], of the inverse of a motion (R, p)."""
    return Mat3(p.cross(back.x), p.cross(back.y), p.cross(back.z))


def difference_derivatives(tree: Tree, q0, q1, results) -> None:
    """Write the Jacobians of `difference` by q0 and by q1."""
    by_q0, by_q1 = results
    clear(by_q0)
    clear(by_q1)
    for j in range(len(tree.parent)):
        kind = tree.kind[j]
        k = tree.q_index[j]
        if kind == SPHERICAL:
            x = turn_between(q0, q1, k)
            w = log_so3(x)
            f = of_logarithm(x, w)
            write_block(negative(f.opposite().turning(w)), by_q0, j, j)
            write_block(f.turning(w), by_q1, j, j)
        elif kind == FLOATING:
            x = turn_between(q0, q1, k + 3)
            l, w = log_se3(displacement(q0, q1, k), x)
            f = of_logarithm(x, w)
            o = f.opposite()
            write_motion_block(negative(o.turning(w)), negative(o.moving(l, w)), by_q0, j)
            write_motion_block(f.turning(w), f.moving(l, w), by_q1, j)
        elif kind == PLANAR:
            x, y, c, s = planar_motion(q0, q1, k)
            turned, cosine, sine = half_turn(c, s)
            p, e = Vec3(x, y, 0.0), Quaternion(Vec3(0.0, 0.0, turned * sine), cosine)
            l, w = log_se3(p, e)
            f = of_logarithm(e, w)
            o = f.opposite()
            write_planar(negative(o.turning(w)), negative(o.moving(l, w)), by_q0, j)
            write_planar(f.turning(w), f.moving(l, w), by_q1, j)
        elif kind != INNER:
            by_q0[j][j] = -1.0
            by_q1[j][j] = 1.0


def negative(M: Mat3) -> Mat3:
    return Mat3(-1.0 * M.x, -1.0 * M.y, -1.0 * M.z)


def write_block(M: Mat3, out, i: int, j: int) -> None:
    write_vec3(M.x, out[i], j)
    write_vec3(M.y, out[i + 1], j)
    write_vec3(M.z, out[i + 2], j)


def write_motion_block(turning: Mat3, moving: Mat3, out, j: int) -> None:
    """Write a matrix of velocities (linear, angular) from its diagonal block and its upper right block."""
    write_block(turning, out, j, j)
    write_block(turning, out, j + 3, j + 3)
    write_block(moving, out, j, j + 3)


def write_planar(turning: Mat3, moving: Mat3, out, j: int) -> None:
    """Write the rows and columns of a motion in the plane."""
    write_vec3(Vec3(turning.x.x, turning.x.y, moving.x.z), out[j], j)
    write_vec3(Vec3(turning.y.x, turning.y.y, moving.y.z), out[j + 1], j)
    out[j + 2][j + 2] = turning.z.z


def spherical(j: int, k: int, q, v, result) -> None:
    e = exp_so3(Vec3(v[j], v[j + 1], v[j + 2]))
    write_quaternion(quaternion_at(q, k).product(e).normalized(), result, k)


def floating(j: int, k: int, q, v, result) -> None:
    step, e = exp_se3(Vec3(v[j], v[j + 1], v[j + 2]), Vec3(v[j + 3], v[j + 4], v[j + 5]))
    start = quaternion_at(q, k + 3).normalized()
    moved = start.matrix() @ step
    result[k] = q[k] + moved.x
    result[k + 1] = q[k + 1] + moved.y
    result[k + 2] = q[k + 2] + moved.z
    turned(start, e, result, k + 3)


def planar(j: int, k: int, q, v, result) -> None:
    x, y, turn_c, turn_s = exp_se2(v[j], v[j + 1], v[j + 2])
    cosine0, sine0 = unit_pair(q, k + 2)
    result[k] = q[k] + cosine0 * x - sine0 * y
    result[k + 1] = q[k + 1] + sine0 * x + cosine0 * y
    result[k + 2] = cosine0 * turn_c - sine0 * turn_s
    result[k + 3] = sine0 * turn_c + cosine0 * turn_s


def turned(start: Quaternion, turn: Quaternion, result, k: int) -> None:
    """Write the quaternion after a rotation, with the sign nearer to the one before, by the sign of cos h."""
    end = start.product(turn)
    write_quaternion(Quaternion(turn.s * end.u, turn.s * end.s).normalized(), result, k)


def unit_pair(q, k: int):
    scale = 1.0 / sqrt(q[k] * q[k] + q[k + 1] * q[k + 1])
    return scale * q[k], scale * q[k + 1]


def write_quaternion(x: Quaternion, result, k: int) -> None:
    write_vec3(x.u, result, k)
    result[k + 3] = x.s


def configuration_rate(tree: Tree, q, v):
    """Return the rate of change of q at the velocity v."""
    rate = [0.0] * len(q)
    for j in range(len(tree.parent)):
        k = tree.q_index[j]
        kind = tree.kind[j]
        if kind == PLANAR:
            c, s = q[k + 2], q[k + 3]
            rate[k] = c * v[j] - s * v[j + 1]
            rate[k + 1] = s * v[j] + c * v[j + 1]
            rate[k + 2] = 0.0 - s * v[j + 2]
            rate[k + 3] = c * v[j + 2]
        elif kind == SPHERICAL:
            write_quaternion(quaternion_at(q, k).derivative(Vec3(v[j], v[j + 1], v[j + 2])), rate, k)
        elif kind == FLOATING:
            x = quaternion_at(q, k + 3)
            write_vec3(x.matrix() @ Vec3(v[j], v[j + 1], v[j + 2]), rate, k)
            write_quaternion(x.derivative(Vec3(v[j + 3], v[j + 4], v[j + 5])), rate, k + 3)
        elif kind != INNER:
            rate[k] = v[j]
    return rate


def write_configuration_rate(tree: Tree, q, v, rate) -> None:
    """Write the rate of change of q at the velocity v."""
    for k, x in enumerate(configuration_rate(tree, q, v)):
        rate[k] = x


def configuration_velocity(tree: Tree, q, rate, v) -> None:
    """Write the velocity at which a configuration q with unit quaternions changes by `rate`.

    This is the inverse of `configuration_rate`.
    """
    for j in range(len(tree.parent)):
        k = tree.q_index[j]
        kind = tree.kind[j]
        if kind == PLANAR:
            c, s = q[k + 2], q[k + 3]
            v[j] = c * rate[k] + s * rate[k + 1]
            v[j + 1] = c * rate[k + 1] - s * rate[k]
            v[j + 2] = c * rate[k + 3] - s * rate[k + 2]
        elif kind == SPHERICAL:
            write_vec3(turning_velocity(quaternion_at(q, k), quaternion_at(rate, k)), v, j)
        elif kind == FLOATING:
            x = quaternion_at(q, k + 3)
            write_vec3(x.rotate_back(Vec3(rate[k], rate[k + 1], rate[k + 2])), v, j)
            write_vec3(turning_velocity(x, quaternion_at(rate, k + 3)), v, j + 3)
        elif kind != INNER:
            v[j] = rate[k]


def turning_velocity(x: Quaternion, rate: Quaternion) -> Vec3:
    """Return the angular velocity, in the rotated frame, of a unit quaternion with this rate of change."""
    w: Vec3 = 2.0 * x.conjugate().product(rate).u
    return w


# The semi-implicit step of rotating bodies. Linear velocities of floating and planar joints are in axes that rotate with the
# body, where the step v + h v' of a body that only spins would increase its speed by h² w². Therefore they are stepped in the
# fixed axes at the start, and then expressed in those at the end. `turning[i]` is the joint's kind at its first row.


def free_velocity(turning, v, a, h, result) -> None:
    """Write u = v + h (v' + w x v), in the axes at the start."""
    for i in range(len(turning)):
        result[i] = v[i] + h * a[i]
    for i in range(len(turning)):
        if turning[i] == FLOATING:
            c = Vec3(v[i + 3], v[i + 4], v[i + 5]).cross(Vec3(v[i], v[i + 1], v[i + 2]))
            result[i] = result[i] + h * c.x
            result[i + 1] = result[i + 1] + h * c.y
            result[i + 2] = result[i + 2] + h * c.z
        elif turning[i] == PLANAR:
            result[i] = result[i] - h * (v[i + 2] * v[i + 1])
            result[i + 1] = result[i + 1] + h * (v[i + 2] * v[i])


def advance(tree: Tree, q, u, d, h, results) -> None:
    """Write the configuration reached from q by the velocity u and a displacement d, and u in the axes there.

    u is given in the axes at the start. Origins move along straight lines, by l = h u + d. Through the exponential they would
    have to start with V(w)⁻¹ l, which is not defined for a whole turn w.
    """
    ahead, velocity = results
    n = len(tree.parent)
    x = [0.0] * n
    for j in range(n):
        x[j] = h * u[j] + d[j]
    carry(tree.kind, u, d, h, velocity)
    for j in range(n):
        move_joint_straight(tree, j, q, x, ahead)


def move_joint_straight(tree: Tree, j: int, q, x, ahead) -> None:
    """Do the same as `move_joint`, but move the origins of floating and planar joints along straight lines."""
    kind = tree.kind[j]
    k = tree.q_index[j]
    if kind == FLOATING:
        start = quaternion_at(q, k + 3).normalized()
        moved = start.matrix() @ Vec3(x[j], x[j + 1], x[j + 2])
        ahead[k] = q[k] + moved.x
        ahead[k + 1] = q[k + 1] + moved.y
        ahead[k + 2] = q[k + 2] + moved.z
        turned(start, exp_so3(Vec3(x[j + 3], x[j + 4], x[j + 5])), ahead, k + 3)
    elif kind == PLANAR:
        cosine, sine = unit_pair(q, k + 2)
        ahead[k] = q[k] + cosine * x[j] - sine * x[j + 1]
        ahead[k + 1] = q[k + 1] + sine * x[j] + cosine * x[j + 1]
        turn_s, turn_c = sincos(x[j + 2])
        ahead[k + 2] = cosine * turn_c - sine * turn_s
        ahead[k + 3] = sine * turn_c + cosine * turn_s
    else:
        move_joint(tree, j, q, x, ahead)


def carry(turning, u, d, h, velocity) -> None:
    """Write the velocity u, in the axes at the start, in the axes after the displacement h u + d."""
    for i in range(len(turning)):
        velocity[i] = u[i]
    for i in range(len(turning)):
        if turning[i] == FLOATING:
            w = Vec3(h * u[i + 3] + d[i + 3], h * u[i + 4] + d[i + 4], h * u[i + 5] + d[i + 5])
            back = exp_so3(w).rotate_back(Vec3(u[i], u[i + 1], u[i + 2]))
            write_vec3(back, velocity, i)
        elif turning[i] == PLANAR:
            sine, cosine = sincos(h * u[i + 2] + d[i + 2])
            velocity[i] = cosine * u[i] + sine * u[i + 1]
            velocity[i + 1] = cosine * u[i + 1] - sine * u[i]


def hand_on(v, q_dot) -> None:
    """Pass a velocity on as the direction in which a configuration changes, for derivatives along it."""
    for i in range(len(v)):
        q_dot[i] = v[i]
