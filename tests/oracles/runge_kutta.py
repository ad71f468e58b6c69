"""Motion of robots in their independent coordinates by the classical Runge-Kutta method."""

from __future__ import annotations

import featherweight as fw
from oracles.states import Array


def after_a_step(robot: fw.ClosedRobot, q: Array, v: Array, h: float) -> tuple[Array, Array]:
    """Return the state after a step without forces of joints."""
    tau = 0.0 * v
    a1 = robot.forward_dynamics(q, v, tau)
    v2 = v + h / 2 * a1
    a2 = robot.forward_dynamics(robot.integrate(q, h / 2 * v), v2, tau)
    v3 = v + h / 2 * a2
    a3 = robot.forward_dynamics(robot.integrate(q, h / 2 * v2), v3, tau)
    v4 = v + h * a3
    a4 = robot.forward_dynamics(robot.integrate(q, h * v3), v4, tau)
    return robot.integrate(q, h / 6 * (v + 2 * v2 + 2 * v3 + v4)), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
