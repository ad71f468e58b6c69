"""Panda reaches a point: CasADi and Ipopt optimize with our dynamics and derivatives.

    python examples/reach_with_casadi.py [--output output] [--compare]        pip install 'featherweight[casadi,demo]'

The example uses direct transcription by the trapezoidal rule. The unknowns are the configurations, velocities and joint forces
of all knots. `--compare` also solves with the same operations as a CasADi expression graph, the usual form of dynamics in
CasADi, and prints the times of Jacobians and solutions. The picture is reach_with_casadi.png.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from pictures import picture_of_reach

import featherweight as fw

try:
    import casadi

    from featherweight.casadi import wrap
except ImportError as error:
    raise SystemExit(f"{error}: this example needs pip install 'featherweight[casadi,demo]'") from None

PANDA = "panda"
HAND = "panda_hand_tcp"
STEP, KNOTS = 0.02, 45  # [s], and the number of steps
START = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8, 0.02])  # q; one finger follows the other
TARGET = np.array([0.35, -0.45, 0.35])  # position of the hand [m]
EFFORT, SPEED = 1e-3, 0.1  # weights of squared joint forces, relative to gravity, and of squared velocities


def expression_graph(f, name):
    """Return one of our functions as a CasADi expression graph."""
    arguments = [casadi.SX.sym(x.name, x.size) for x in f.program.inputs]
    arithmetic = fw.Arithmetic(casadi.SX, casadi.sqrt, casadi.sin, casadi.cos)
    flat = fw.evaluate(f.trace, [[x[i] for i in range(x.numel())] for x in arguments], arithmetic)
    [y] = f.program.outputs
    columns = y.shape[1] if len(y.shape) > 1 else 1
    return casadi.Function(name, arguments, [casadi.reshape(casadi.vertcat(*flat), columns, y.shape[0]).T])


def transcribed(robot, dynamics, hand):
    """Return the problem for Ipopt and an initial guess."""
    n = robot.nv
    q, v, tau = (casadi.MX.sym(name, n, KNOTS + 1) for name in ("q", "v", "tau"))
    a = dynamics.map(KNOTS + 1)(q, v, tau)
    steps_v = v[:, 1:] - v[:, :-1] - 0.5 * STEP * (a[:, 1:] + a[:, :-1])
    steps_q = q[:, 1:] - q[:, :-1] - 0.5 * STEP * (v[:, 1:] + v[:, :-1])
    reached = hand(q[:, -1])[:3, 3] - TARGET
    ends = [q[:, 0] - START, v[:, 0], v[:, -1], reached]
    hold = robot.gravity_force(START)
    cost = STEP * (EFFORT * casadi.sumsqr(tau - hold) + SPEED * casadi.sumsqr(v))
    constraints = casadi.vertcat(casadi.vec(steps_q), casadi.vec(steps_v), *ends)
    unknowns = casadi.vertcat(casadi.vec(q), casadi.vec(v), casadi.vec(tau))
    rest = np.concatenate([np.tile(START, KNOTS + 1), np.zeros(n * (KNOTS + 1)), np.tile(hold, KNOTS + 1)])
    return {"x": unknowns, "f": cost, "g": constraints}, rest


def solve(robot, dynamics, hand, hessian):
    """Return q, v and tau (knots, nv), the seconds of a constraint Jacobian and of the solution, and the costs by iteration."""
    problem, guess = transcribed(robot, dynamics, hand)
    options = {"ipopt.print_level": 0, "print_time": False, "ipopt.sb": "yes", "ipopt.max_iter": 500}
    if not hessian:
        options["ipopt.hessian_approximation"] = "limited-memory"
    solver = casadi.nlpsol("solver", "ipopt", problem, options)
    jacobian, point = solver.get_function("nlp_jac_g"), casadi.DM(guess)
    times = []
    for _ in range(20):
        begun = time.perf_counter()
        jacobian(point, [])
        times.append(time.perf_counter() - begun)
    begun = time.perf_counter()
    result = solver(x0=guess, lbg=0.0, ubg=0.0)
    passed = time.perf_counter() - begun
    stats = solver.stats()
    if not stats["success"]:
        raise RuntimeError(f"Ipopt: {stats['return_status']}")
    x = np.array(result["x"]).reshape(3, KNOTS + 1, robot.nv)
    return x, float(np.median(times)), passed, stats["iterations"]["obj"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("output"))
    parser.add_argument("--compare", action="store_true")
    given = parser.parse_args()
    robot = fw.load(fw.example(PANDA))
    hand = wrap(robot.frame_placement(HAND), "hand", hessian=True)
    slopes = robot.forward_dynamics_derivatives
    ways = [("ours", wrap(robot.forward_dynamics, "dynamics", hessian=True, jacobian=slopes), hand)]
    if given.compare:
        dynamics = expression_graph(robot.forward_dynamics, "dynamics")
        ways.append(("expression graph", dynamics, expression_graph(robot.frame_placement(HAND), "hand")))
    for hessian in (False, True):
        for what, dynamics, placement in ways:
            x, jacobian, passed, costs = solve(robot, dynamics, placement, hessian)
            about = f"{what}, {'exact Hessians' if hessian else 'limited-memory'}:"
            took = f"{len(costs) - 1:3} iterations in {passed:5.2f} s"
            print(f"{about:35} Jacobian {1e3 * jacobian:7.3f} ms, {took}, cost {costs[-1]:.6f}")
            if what == "ours":
                q, _, tau = x
    place = robot.frame_placement(HAND)(q)[:, :3, 3]
    print(f"At the end the hand is {1e3 * np.linalg.norm(place[-1] - TARGET):.2g} mm from its target.")
    given.output.mkdir(parents=True, exist_ok=True)
    picture_of_reach(given.output / "reach_with_casadi.png", robot, q, tau[:-1], [c for c in costs if c > 0], STEP, TARGET)


if __name__ == "__main__":
    main()
