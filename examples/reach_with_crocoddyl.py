"""Panda reaches a point: Crocoddyl optimizes with our dynamics and derivatives.

    python examples/reach_with_crocoddyl.py [--output output]        pip install 'featherweight[examples]'

Crocoddyl evaluates an action model for one knot at a time: `calc` returns the acceleration, `calcDiff` the derivatives. The
example prints for each iteration the cost, the step, the time, and the part of the time in our functions. The picture is
reach_with_crocoddyl.png.
"""

import time

import numpy as np
from pictures import output_folder, picture_of_reach

import featherweight as fw

try:
    import crocoddyl
except ImportError as error:
    raise SystemExit(f"{error}: this example needs pip install 'featherweight[examples]'") from None

PANDA = "panda"
HAND = "panda_hand_tcp"
STEP, KNOTS = 0.01, 75  # [s], and the number of steps
START = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8, 0.02])  # q; one finger follows the other
TARGET = np.array([0.35, -0.45, 0.35])  # position of the hand [m]


class Reach(crocoddyl.DifferentialActionModelAbstract):
    """Action model of Panda. The cost is quadratic in hand distance, posture, velocities, and forces relative to gravity."""

    def __init__(self, robot, distance, posture, velocity, effort):
        super().__init__(crocoddyl.StateVector(2 * robot.nv), robot.nv)
        self.nv, self.seconds = robot.nv, 0.0
        self.dynamics, self.derivatives = robot.forward_dynamics, robot.forward_dynamics_derivatives
        self.hand = robot.together(robot.frame_placement(HAND), robot.frame_jacobian(HAND))
        self.weights = np.repeat([posture, velocity], robot.nv)
        self.distance, self.effort = distance, effort
        self.rest, self.hold = np.append(START, np.zeros(robot.nv)), robot.gravity_force(START)

    def calc(self, data, x, u=None):
        begun = time.perf_counter()
        placement, _ = self.hand(x[: self.nv])
        if u is not None:
            data.xout = self.dynamics(x[: self.nv], x[self.nv :], u)
        self.seconds += time.perf_counter() - begun
        dx, d, du = x - self.rest, placement[:3, 3] - TARGET, 0.0 if u is None else u - self.hold
        data.cost = 0.5 * (dx @ (self.weights * dx) + self.distance * d @ d + self.effort * np.vdot(du, du))

    def calcDiff(self, data, x, u=None):
        begun = time.perf_counter()
        placement, J = self.hand(x[: self.nv])
        if u is not None:
            da_dq, da_dv, data.Fu = self.derivatives(x[: self.nv], x[self.nv :], u)
            data.Fx = np.hstack([da_dq, da_dv])
        self.seconds += time.perf_counter() - begun
        J = np.hstack([J[:3], np.zeros((3, self.nv))])
        data.Lx = self.weights * (x - self.rest) + self.distance * J.T @ (placement[:3, 3] - TARGET)
        data.Lxx = np.diag(self.weights) + self.distance * J.T @ J
        if u is not None:
            data.Lu, data.Luu = self.effort * (u - self.hold), self.effort * np.eye(self.nv)


class Log(crocoddyl.CallbackAbstract):
    """Callback that prints a line for each iteration."""

    def __init__(self, cost, *models):
        super().__init__()
        self.models, self.begun, self.costs = models, time.perf_counter(), [cost]

    def __call__(self, solver):
        passed, ours = time.perf_counter() - self.begun, sum(m.seconds for m in self.models)
        self.costs.append(solver.cost)
        step = f"step {solver.stepLength:.4f}  {1e3 * passed:5.1f} ms, of which our functions {1e3 * ours:.1f}"
        print(f"{solver.iter + 1:4}  cost {solver.cost:11.5f}  {step}")
        for m in self.models:
            m.seconds = 0.0
        self.begun = time.perf_counter()


def solve():
    """Return the robot, states q (n+1, nq) and v, joint forces u (n, nv), and costs."""
    robot = fw.load(fw.example(PANDA))
    running = Reach(robot, distance=1.0, posture=0.1, velocity=0.1, effort=1e-3)
    final = Reach(robot, distance=1e4, posture=0.1, velocity=1e2, effort=0.0)
    for model in (running, final):  # compiles the functions, or loads them from the cache
        data, x = model.createData(), model.rest
        model.calc(data, x, model.hold)
        model.calcDiff(data, x, model.hold)
        model.seconds = 0.0
    steps = [crocoddyl.IntegratedActionModelEuler(model, STEP) for model in (running, final)]
    solver = crocoddyl.SolverFDDP(crocoddyl.ShootingProblem(running.rest, [steps[0]] * KNOTS, steps[1]))
    solver.th_stop = 1e-5
    guess = [running.rest] * (KNOTS + 1), [running.hold] * KNOTS
    log = Log(solver.problem.calc(*guess), running, final)
    solver.setCallbacks([log])
    if not solver.solve(*guess, 100):
        raise RuntimeError("no convergence in 100 iterations")
    x = np.array(solver.xs)
    return robot, x[:, : robot.nq], x[:, robot.nq :], np.array(solver.us), log.costs


def main():
    output = output_folder(__doc__)
    robot, q, v, u, costs = solve()
    hand = robot.frame_placement(HAND)(q)[:, :3, 3]
    miss, speed = np.linalg.norm(hand[-1] - TARGET), abs(v[-1]).max()
    print(f"At the end the hand is {1e3 * miss:.1f} mm from its target, and joint speeds are at most {speed:.1g} rad/s.")
    picture_of_reach(output / "reach_with_crocoddyl.png", robot, q, u, costs, STEP, TARGET)


if __name__ == "__main__":
    main()
