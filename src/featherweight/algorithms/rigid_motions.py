"""Rotations and rigid motions as matrices: exponentials, logarithms, their Jacobians, and changes of representation.

A motion is a homogeneous matrix (4, 4) of a rotation R and a translation p, a velocity is (linear, angular) in the axes of the
frame that moves, and a quaternion (x, y, z, w). The formulas are those of `spatial/lie.py`.
"""

from __future__ import annotations

from typing import Any

from ..spatial import Mat3, Quaternion, Scalar, Vec3, exp_se3, exp_so3, log_se3, log_so3, quaternion_at, sqrt
from ..spatial.lie import SIGN, angle_over_sine, half_turn, of_exponential, of_logarithm, quaternion_of_matrix
from .frames import write_placement, write_vec3
from .integration import lever, turning_velocity, write_block, write_motion_block, write_quaternion


def rotation_of(T) -> Mat3:
    """Return the rotation of a motion, or a rotation."""
    return Mat3(Vec3(T[0][0], T[0][1], T[0][2]), Vec3(T[1][0], T[1][1], T[1][2]), Vec3(T[2][0], T[2][1], T[2][2]))


def translation_of(T) -> Vec3:
    return Vec3(T[0][3], T[1][3], T[2][3])


def vector_at(x, k: int) -> Vec3:
    return Vec3(x[k], x[k + 1], x[k + 2])


# the group


def exponential(v, T) -> None:
    p, q = exp_se3(vector_at(v, 0), vector_at(v, 3))
    write_placement(q.matrix(), p, T)


def logarithm(T, v) -> None:
    l, w = log_se3(translation_of(T), quaternion_of_matrix(rotation_of(T)))
    write_vec3(l, v, 0)
    write_vec3(w, v, 3)


def exponential_jacobian(v, J) -> None:
    l, w = vector_at(v, 0), vector_at(v, 3)
    f = of_exponential(w)
    write_motion_matrix(f.turning(w), f.moving(l, w), J)


def logarithm_jacobian(T, J) -> None:
    q = quaternion_of_matrix(rotation_of(T))
    l, w = log_se3(translation_of(T), q)
    f = of_logarithm(q, w)
    write_motion_matrix(f.turning(w), f.moving(l, w), J)


def rotation_exponential(w, R) -> None:
    write_block(exp_so3(vector_at(w, 0)).matrix(), R, 0, 0)


def rotation_logarithm(R, w) -> None:
    write_vec3(log_so3(quaternion_of_matrix(rotation_of(R))), w, 0)


def rotation_exponential_jacobian(w, J) -> None:
    x = vector_at(w, 0)
    write_block(of_exponential(x).turning(x), J, 0, 0)


def rotation_logarithm_jacobian(R, J) -> None:
    q = quaternion_of_matrix(rotation_of(R))
    w = log_so3(q)
    write_block(of_logarithm(q, w).turning(w), J, 0, 0)


def inverse(T, result) -> None:
    back = rotation_of(T).transpose()
    write_placement(back, -1.0 * (back @ translation_of(T)), result)


def composition(A, B, result) -> None:
    R = rotation_of(A)
    write_placement(R.product(rotation_of(B)), R @ translation_of(B) + translation_of(A), result)


def adjoint(T, result) -> None:
    """Write the matrix with R in the diagonal blocks and [p] R in the upper right block."""
    R, p = rotation_of(T), translation_of(T)
    write_motion_matrix(R, lever(R.transpose(), p).transpose(), result)


def interpolation(A, B, t, result) -> None:
    """Write A exp(t log(A⁻¹ B))."""
    R, p = rotation_of(A), translation_of(A)
    back = R.transpose()
    l, w = log_se3(back @ (translation_of(B) - p), quaternion_of_matrix(back.product(rotation_of(B))))
    step, q = exp_se3(t * l, t * w)
    write_placement(R.product(q.matrix()), R @ step + p, result)


def write_motion_matrix(turning: Mat3, moving: Mat3, out) -> None:
    """Write a matrix (6, 6) of velocities from its diagonal block and its upper right block."""
    write_motion_block(turning, moving, out, 0)
    for i in range(3):
        for j in range(3):
            out[i + 3][j] = 0.0


# representations


def homogeneous(R, p, T) -> None:
    write_placement(rotation_of(R), vector_at(p, 0), T)


def matrix_of_quaternion(q, R) -> None:
    write_block(quaternion_at(q, 0).normalized().matrix(), R, 0, 0)


def quaternion_of_rotation(R, q) -> None:
    write_quaternion(quaternion_of_matrix(rotation_of(R)), q, 0)


def matrix_of_angles(rpy, R) -> None:
    write_block(quaternion_of_rpy(rpy).matrix(), R, 0, 0)


def angles_of_matrix(R, rpy) -> None:
    write_vec3(rpy_of(rotation_of(R)), rpy, 0)


def quaternion_of_angles(rpy, q) -> None:
    write_quaternion(quaternion_of_rpy(rpy).upright(), q, 0)


def angles_of_quaternion(q, rpy) -> None:
    write_vec3(rpy_of(quaternion_at(q, 0).normalized().matrix()), rpy, 0)


def motion_of_coordinates(x, T) -> None:
    write_placement(quaternion_at(x, 3).normalized().matrix(), vector_at(x, 0), T)


def coordinates_of_motion(T, x) -> None:
    write_vec3(translation_of(T), x, 0)
    write_quaternion(quaternion_of_matrix(rotation_of(T)), x, 3)


def quaternion_of_rpy(rpy) -> Quaternion:
    """Return the rotation by roll, pitch and yaw, about the fixed axes x, y and z in turn."""
    roll, pitch = exp_so3(Vec3(rpy[0], 0.0, 0.0)), exp_so3(Vec3(0.0, rpy[1], 0.0))
    return exp_so3(Vec3(0.0, 0.0, rpy[2])).product(pitch).product(roll)


def rpy_of(R: Mat3) -> Vec3:
    """Return roll, pitch and yaw.

    With the yaw known, roll comes from the rows that yaw rotates back, which do not vanish at a pitch of ±π/2. There, the yaw
    is zero or that of rounding errors.
    """
    x, y = R.x.x + SIGN, R.y.x
    r = sqrt(x * x + y * y)
    c, s = x / r, y / r
    roll = angle_of(c * R.y.y - s * R.x.y, s * R.x.z - c * R.y.z)
    return Vec3(roll, angle_of(r, 0.0 - R.z.x), angle_of(c, s))


def angle_of(x, y):
    """Return the angle in ±π of the point (x, y), which is not the origin."""
    scale = 1.0 / sqrt(x * x + y * y)
    turned, cosine, sine = half_turn(scale * x, scale * y)
    return 2.0 * turned * angle_over_sine(cosine, sine * sine) * sine


# manifolds: rates along velocities, and the velocities of rates


def motion_rate(T, v, rate) -> None:
    """Write the rate of a motion whose frame moves with a velocity in its own axes."""
    R = rotation_of(T)
    p = R @ vector_at(v, 0)
    rows = rate_of(R, vector_at(v, 3))
    for i in range(4):
        rate[3][i] = 0.0
    write_block(rows, rate, 0, 0)
    rate[0][3] = p.x
    rate[1][3] = p.y
    rate[2][3] = p.z


def rotation_rate(R, w, rate) -> None:
    write_block(rate_of(rotation_of(R), vector_at(w, 0)), rate, 0, 0)


def rate_of(R: Mat3, w: Vec3) -> Mat3:
    """Return R [w]."""
    return Mat3(R.x.cross(w), R.y.cross(w), R.z.cross(w))


def rotation_velocity(R, rate, w) -> None:
    """Write the angular velocity, in the rotated axes, of a rotation that changes by `rate`."""
    x, y, z = (Vec3(R[0][i], R[1][i], R[2][i]) for i in range(3))
    dx, dy, dz = (Vec3(rate[0][i], rate[1][i], rate[2][i]) for i in range(3))
    write_vec3(Vec3(z.dot(dy), x.dot(dz), y.dot(dx)), w, 0)


def quaternion_rate(q, w, rate) -> None:
    write_quaternion(quaternion_at(q, 0).derivative(vector_at(w, 0)), rate, 0)


def quaternion_velocity(q, rate, w) -> None:
    write_vec3(turning_velocity(quaternion_at(q, 0), quaternion_at(rate, 0)), w, 0)


def coordinates_rate(x, v, rate) -> None:
    """Write the rate of (x, y, z, qx, qy, qz, qw), the configuration of a floating joint."""
    q = quaternion_at(x, 3)
    write_vec3(q.normalized().matrix() @ vector_at(v, 0), rate, 0)
    write_quaternion(q.derivative(vector_at(v, 3)), rate, 3)


def coordinates_velocity(x, rate, v) -> None:
    q = quaternion_at(x, 3)
    write_vec3(q.rotate_back(vector_at(rate, 0)), v, 0)
    write_vec3(turning_velocity(q, quaternion_at(rate, 3)), v, 3)


# validity


def rotation_error(R: Mat3) -> Scalar:
    """Return the sum of squares of R Rᵀ - 1, above the diagonal and on it, and of the determinant minus one."""
    x, y, z = R
    xx, yy, zz = x.dot(x) - 1.0, y.dot(y) - 1.0, z.dot(z) - 1.0
    xy, yz, zx = x.dot(y), y.dot(z), z.dot(x)
    volume = x.dot(y.cross(z)) - 1.0
    return xx * xx + yy * yy + zz * zz + xy * xy + yz * yz + zx * zx + volume * volume


def last_row_error(T: Any) -> Scalar:
    """Return the sum of squares of the last row of a motion minus (0, 0, 0, 1)."""
    a, b, c, d = T[3][0], T[3][1], T[3][2], T[3][3] - 1.0
    return a * a + b * b + c * c + d * d


def motion_error(T):
    """Return the sum of squares by which a matrix differs from a rigid motion."""
    return rotation_error(rotation_of(T)) + last_row_error(T)


def check_motion(T, error) -> None:
    error[0] = motion_error(T)


def check_rotation(R, error) -> None:
    error[0] = rotation_error(rotation_of(R))


def check_motions(A, B, error) -> None:
    error[0] = motion_error(A) + motion_error(B)
