"""Humanoids on their feet, and problems of whole-body control as matrices, independent of the kernel."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.array_types import Array

FEET = ("left_sole_link", "right_sole_link")
CORNERS = np.array([(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.06, 0.06)])
FRICTION = 0.6


class Standing(NamedTuple):
    """A robot and its configuration on level feet."""

    robot: fw.Robot
    q: Array


@functools.cache
def talos() -> Standing:
    robot = fw.load(fw.example("talos_reduced"), base="floating", srdf=fw.example("talos.srdf"))
    q = robot.configurations["half_sitting"]
    soles = robot.frame_placement(FEET)(q)
    soles[:, :3, :3], soles[:, 2, 3] = np.eye(3), 0.0
    ik = fw.InverseKinematics(robot, [*map(fw.FrameTask, FEET), fw.PostureTask(priority=1)])
    return Standing(robot, ik.solve({**dict(zip(FEET, soles, strict=True)), "posture": q}, q0=q).q)


def soles(**options: Any) -> list[fw.UnilateralContact]:
    return [fw.UnilateralContact(foot, CORNERS, friction=FRICTION, **options) for foot in FEET]


def targets(tasks: Any, robot: fw.Robot, q: Array) -> dict[str, Array]:
    """Return the targets that q meets."""
    found = {}
    for task in tasks:
        if isinstance(task, fw.FrameTask):
            T = robot.frame_placement(task.frame)(q)
            found[task.called] = {"pose": T, "position": T[:3, 3], "orientation": T[:3, :3]}[task.kind]
        elif isinstance(task, fw.CenterOfMassTask):
            found[task.called] = robot.center_of_mass(q)
        elif isinstance(task, fw.PostureTask):
            found[task.called] = q
    return found


class Problem(NamedTuple):
    """The cost ½ |A x - b|² of accelerations and forces, equalities E x = e, and the dynamics N x + h of the drives."""

    A: Array
    b: Array
    E: Array
    e: Array
    N: Array
    h: Array


def problem(wbc: fw.WholeBodyControl, q: Array, v: Array, given: dict[str, Array]) -> Problem:
    """Return the problem of all tasks, which have one priority, with closed contacts."""
    robot, n, points = wbc.robot, wbc.robot.nv, sum(len(c.corners) for c in wbc.contacts)
    A, b = list[Array](), list[float]()
    for task in wbc.tasks:
        rows, wanted = task_rows(robot, task, q, v, given.get(task.called))
        weight = np.broadcast_to(np.asarray(task.weight, float), len(rows)) ** 0.5
        A += [np.append(w * row, np.zeros(3 * points)) for w, row in zip(weight, rows, strict=True)]
        b += [*(weight * wanted)]
    size = n + 3 * points
    A += [*(np.diag([1e-6] * n + [1e-8] * (3 * points)) ** 0.5)]
    b += [0.0] * size
    J, G, still = list[Array](), list[Array](), list[float]()
    for c in wbc.contacts:
        local, drift = robot.frame_jacobian(c.frame, "local")(q), robot.frame_bias_acceleration(c.frame, "local")(q, v)
        J += [*local]
        still += [*(-drift - c.damping * (local @ v))]
        G += [local[:3, :].T - local[3:, :].T @ skew(p).T for p in c.corners]
    dynamics = np.hstack([robot.mass_matrix(q), -np.hstack(G)]) if G else robot.mass_matrix(q)
    h = robot.bias_force(q, v)
    E = np.vstack([dynamics[:6], np.hstack([np.reshape(J, (-1, n)), np.zeros((len(J), 3 * points))])])
    return Problem(np.array(A), np.array(b), E, np.append(-h[:6], still), dynamics[6:], h[6:])


def task_rows(robot: fw.Robot, task: Any, q: Array, v: Array, target: Any) -> tuple[Array, Array]:
    """Return the rows of a task, and its wanted accelerations."""
    n = robot.nv
    if isinstance(task, fw.AngularMomentumTask):
        A = robot.centroidal_map(q)[3:]
        return A, -task.damping * (A @ v) - robot.centroidal_bias(q, v)[3:]
    kp, kd = task.stiffness, 2.0 * task.stiffness**0.5 if task.damping is None else task.damping
    if isinstance(task, fw.CenterOfMassTask):
        J, drift = robot.center_of_mass_jacobian(q), robot.center_of_mass_acceleration(q, v, np.zeros(n))
        return J, kp * (target - robot.center_of_mass(q)) - kd * (J @ v) - drift
    if isinstance(task, fw.PostureTask):
        return np.eye(n)[6:], (kp * robot.difference(q, target) - kd * v)[6:]
    T, J = robot.frame_placement(task.frame)(q), robot.frame_jacobian(task.frame)(q)
    drift = robot.frame_bias_acceleration(task.frame)(q, v)
    R = T[:3, :3]
    wanted = target[:3, :3] if task.kind == "pose" else target if task.kind == "orientation" else R
    place = target[:3, 3] if task.kind == "pose" else target if task.kind == "position" else T[:3, 3]
    error = np.append(place - T[:3, 3], Rotation.from_matrix(wanted @ R.T).as_rotvec())
    turn = np.kron(np.eye(2), wanted.T if task.kind != "position" else np.eye(3))
    J, acceleration = turn @ J, turn @ (kp * error - kd * (J @ v) - drift)
    part = {"pose": slice(0, 6), "position": slice(0, 3), "orientation": slice(3, 6)}[task.kind]
    return J[part], acceleration[part]


def skew(p: Array) -> Array:
    x, y, z = p
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def residual(wbc: fw.WholeBodyControl, p: Problem, result: Any) -> float:
    """Return the residual of the conditions of optimality, relative to the largest part of the gradient.

    The gradient is a combination of normals: of equalities, and with positive factors of limits that hold with equality. At the
    apex of a cone, these are all its tangent planes, of which the solver's are enough.
    """
    x, n = np.append(result.acceleration, result.forces), wbc.robot.nv
    gradient = p.A.T @ (p.A @ x - p.b)
    least, most = wbc.robot.effort_bounds
    normals, tau = [*p.E, *-p.E], p.N @ x + p.h
    normals += [*p.N[tau - least[6:] < 1e-6], *-p.N[most[6:] - tau < 1e-6]]
    for k, force in enumerate(result.forces):
        if FRICTION * force[2] - np.hypot(*force[:2]) < 1e-6:
            planes = [-force[:2] / max(np.hypot(*force[:2]), 1e-300)] if force[2] > 1e-6 else []
            active = wbc.state
            planes += [
                np.array([-active.cosine[i], -active.sine[i]])
                for i in range(active.size[0])
                if active.kind[i] == 2 and active.which[i] == k
            ]
            for plane in planes:
                normal = np.zeros(len(x))
                normal[n + 3 * k : n + 3 * k + 3] = *plane, FRICTION
                normals.append(normal)
    return float(nnls(np.array(normals).T, gradient, maxiter=10_000)[1] / np.abs(p.A.T @ p.b).max())
