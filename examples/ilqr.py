"""iLQR (Tassa, Erez and Todorov 2012: DDP without second derivatives of the dynamics), by batched calls.

One call gives the derivatives at all knots of a phase, and one rollout tries all steps of the line search. A step in time is
v' = v + h a, q' = q ⊕ h v'; differences of configurations are velocities, on the manifold (`integrate`, `difference`).
"""

import time
from typing import Any, NamedTuple

import numpy as np

import featherweight as fw

STEPS = 0.5 ** np.arange(12.0)[:, None]  # of the line search


class Task(NamedTuple):
    robot: fw.Robot
    phases: list[tuple[Any, Any, int]]  # dynamics, their derivatives, and the number of knots that they hold for
    drives: list[int]  # the velocities that are driven
    h: float  # [s]
    start: Any  # q at rest
    goal: Any  # q at rest
    final: list[float]  # weights of the squares of q - goal and v at the end
    running: list[float]  # the same, per second
    effort: float  # weight of the squares of joint forces, per second


def errors(t, q, v):
    """How far q and v are from the goal (..., 2 nv)."""
    return np.concatenate([t.robot.difference(np.broadcast_to(t.goal, q.shape), q), v], axis=-1)


def rollout(t, Q, V, U, k, K, steps):
    """Costs (s), q (n+1, s, nq), v (n+1, s, nv) and u (n, s, nu) with u = U + step k + K (x - X), of s steps at once."""
    q, v = np.tile(t.start, (len(steps), 1)), np.zeros((len(steps), t.robot.nv))
    tau, qs, vs, us = np.zeros_like(v), [q], [v], []
    for i, dynamics in enumerate(f for f, _, knots in t.phases for _ in range(knots)):
        us.append(U[i] + steps * k[i] + np.hstack([t.robot.difference(Q[i], q), v - V[i]]) @ K[i].T)
        tau[:, t.drives] = us[-1]
        a = dynamics(q, v, tau)
        v = v + t.h * (a[0] if isinstance(a, tuple) else a)
        q = t.robot.integrate(q, t.h * v)
        qs, vs = [*qs, q], [*vs, v]
    q, v, u = map(np.array, (qs, vs, us))
    squares = errors(t, q, v) ** 2
    return 0.5 * (squares[-1] @ t.final + t.h * ((squares @ t.running).sum(0) + t.effort * (u**2).sum((0, 2)))), q, v, u


def linearized(t, q, v, u):
    """A (n, 2 nv, 2 nv) and B (n, 2 nv, nu) of all knots: the derivatives of each phase's dynamics in one call."""
    nv, tau = t.robot.nv, np.zeros_like(v[:-1])
    tau[:, t.drives] = u
    begins = np.cumsum([knots for *_, knots in t.phases])[:-1]
    states = zip(*(np.split(x, begins) for x in (q[:-1], v[:-1], tau)), strict=True)
    slopes = [np.concatenate(f(*x)[:3], axis=-1) for (_, f, _), x in zip(t.phases, states, strict=True)]  # of a, by q, v, tau
    dv = t.h * np.concatenate(slopes)[..., np.r_[: 2 * nv, 2 * nv + np.array(t.drives)]]
    dv[..., nv : 2 * nv] += np.eye(nv)
    by_q, by_step = t.robot.integrate_derivatives(q[:-1], t.h * v[1:])
    dq = t.h * by_step @ dv
    dq[..., :nv] += by_q
    return np.split(np.concatenate([dq, dv], axis=1), [2 * nv], axis=-1)


def backward(t, q, v, u, A, B, damping):
    """Steps k (n, nu), gains K (n, nu, 2 nv), and what they promise to take off the cost."""
    e, R, J, nv = errors(t, q, v), t.h * t.effort * np.eye(u.shape[1]), np.zeros((len(q), *A.shape[1:])), t.robot.nv
    J[:, :nv, :nv], J[:, nv:, nv:] = t.robot.difference_derivatives(t.goal, q).dresult_dq1, np.eye(nv)
    k, K, promise = np.zeros_like(u), np.zeros_like(B).swapaxes(1, 2), 0.0
    Vx, Vxx = J[-1].T @ (t.final * e[-1]), J[-1].T * t.final @ J[-1]
    for i in reversed(range(len(u))):
        Qx, Qu = t.h * J[i].T @ (t.running * e[i]) + A[i].T @ Vx, R @ u[i] + B[i].T @ Vx
        Qxx, Qux = t.h * J[i].T * t.running @ J[i] + A[i].T @ Vxx @ A[i], B[i].T @ Vxx @ A[i]
        Quu = R + B[i].T @ Vxx @ B[i]
        step = -np.linalg.solve(Quu + damping * np.eye(len(R)), np.column_stack([Qu, Qux]))
        k[i], K[i] = step[:, 0], step[:, 1:]
        promise -= k[i] @ (Qu + 0.5 * Quu @ k[i])
        Vx = Qx + K[i].T @ (Quu @ k[i] + Qu) + Qux.T @ k[i]
        Vxx = Qxx + K[i].T @ (Quu @ K[i] + Qux) + Qux.T @ K[i]
    return k, K, promise


def solve(t, guess, iterations=100, tolerance=1e-4):
    """q, v, u, and all costs, until an iteration promises to take less than `tolerance` off; `guess` are forces (n, nu)."""
    n, nv, damping = len(guess), t.robot.nv, 1e-6
    still = np.tile(t.start, (n, 1)), np.zeros((n, nv)), guess, 0.0 * guess, np.zeros((*guess.shape, 2 * nv))
    costs, q, v, u = (x[:, 0] if x.ndim > 1 else x.tolist() for x in rollout(t, *still, np.ones((1, 1))))
    clock = time.perf_counter
    linearized(t, q, v, u)  # compiles the derivatives, or reads them from the cache
    for i in range(iterations):
        t0, AB, t1 = clock(), linearized(t, q, v, u), clock()
        (k, K, promise), t2 = backward(t, q, v, u, *AB, damping), clock()
        if promise < tolerance * costs[-1]:
            return q, v, u, costs
        with np.errstate(over="ignore", invalid="ignore"):  # of steps that are too long
            (tried, *x), t3 = rollout(t, q, v, u, k, K, STEPS), clock()
        best = np.nanargmin(tried)
        step = STEPS[best, 0] if tried[best] < costs[-1] else 0.0
        if step:
            q, v, u = (y[:, best] for y in x)
        costs.append(min(costs[-1], float(tried[best])))
        damping *= 0.25 if step == 1.0 else 1.0 if step > 0.2 else 4.0
        times = f"derivatives {1e3 * (t1 - t0):.2f}, backward pass {1e3 * (t2 - t1):.1f}, line search {1e3 * (t3 - t2):.1f}"
        print(f"{i + 1:4}  cost {costs[-1]:11.5f}  step {step:.4f}  {1e3 * (t3 - t0):5.1f} ms: {times}")
    raise RuntimeError(f"{t.robot.name}: no convergence in {iterations} iterations")
