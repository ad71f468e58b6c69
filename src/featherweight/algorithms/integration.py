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
            w = log_so3(quaternion_at(q0, k).normalized().conjugate().product(quaternion_at(q1, k).normalized()))
            write_vector(w, result, j)
        elif kind == FLOATING:
            start = quaternion_at(q0, k + 3).normalized()
            moved = start.rotate_back(Vec3(q1[k] - q0[k], q1[k + 1] - q0[k + 1], q1[k + 2] - q0[k + 2]))
            l, w = log_se3(moved, start.conjugate().product(quaternion_at(q1, k + 3).normalized()))
            write_vector(l, result, j)
            write_vector(w, result, j + 3)
        elif kind == PLANAR:
            c0, s0 = unit_pair(q0, k + 2)
            c1, s1 = unit_pair(q1, k + 2)
            x, y = q1[k] - q0[k], q1[k + 1] - q0[k + 1]
            step = log_se2(c0 * x + s0 * y, c0 * y - s0 * x, c0 * c1 + s0 * s1, c0 * s1 - s0 * c1)
            write_vector(Vec3(*step), result, j)
        elif kind != INNER:
            result[j] = q1[k] - q0[k]


def write_vector(x: Vec3, result, k: int) -> None:
    result[k] = x.x
    result[k + 1] = x.y
    result[k + 2] = x.z


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
    result[k] = x.u.x
    result[k + 1] = x.u.y
    result[k + 2] = x.u.z
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
            velocity = x.matrix() @ Vec3(v[j], v[j + 1], v[j + 2])
            rate[k] = velocity.x
            rate[k + 1] = velocity.y
            rate[k + 2] = velocity.z
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
            write_vector(turning_velocity(quaternion_at(q, k), quaternion_at(rate, k)), v, j)
        elif kind == FLOATING:
            x = quaternion_at(q, k + 3)
            write_vector(x.rotate_back(Vec3(rate[k], rate[k + 1], rate[k + 2])), v, j)
            write_vector(turning_velocity(x, quaternion_at(rate, k + 3)), v, j + 3)
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
            velocity[i] = back.x
            velocity[i + 1] = back.y
            velocity[i + 2] = back.z
        elif turning[i] == PLANAR:
            sine, cosine = sincos(h * u[i + 2] + d[i + 2])
            velocity[i] = cosine * u[i] + sine * u[i + 1]
            velocity[i + 1] = cosine * u[i + 1] - sine * u[i]


def hand_on(v, q_dot) -> None:
    """Pass a velocity on as the direction in which a configuration changes, for derivatives along it."""
    for i in range(len(v)):
        q_dot[i] = v[i]
