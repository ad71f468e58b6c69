"""Crocoddyl on a problem of `control_problems`, in its own environment: `PeerProcess` asks for times of solutions.

python benchmarks/peers/crocoddyl_peer.py "Panda, reach" numbers.json [SQP]

With SQP, the solver is that of mim-solvers on Crocoddyl's model. It stops by the norm of the KKT conditions. Its tolerance is
the largest power of ten whose solution has the cost of FDDP's solution, within STOP of 1 + the cost.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ["OMP_NUM_THREADS"] = "1"  # more threads wait for each other, even if one thread solves the problem

import crocoddyl
import pinocchio as pin
from control_problems import PROBLEMS, ControlProblem
from peer_process import least_time, serve

Array = Any
STOP = 1e-6  # expected decrease of an iteration over 1 + the cost


def squares(state: Any, weights: Any, residual: Any) -> Any:
    return crocoddyl.CostModelResidual(state, crocoddyl.ActivationModelWeightedQuad(np.asarray(weights, float)), residual)


def costs(p: ControlProblem, state: Any, goal: Array, center: Array, nu: int, end: bool) -> Any:
    """Return the sum of costs of a knot along the way, or of the end."""
    n, k, total = state.nv, int(end), crocoddyl.CostModelSum(state, nu)
    joints = n - 6 if p.floating else n
    base_place, base_speed = ([w if end else 0.0] * 6 for w in p.base)
    if not any(p.base):
        base_speed = [p.velocity[k]] * 6
    place, speed = [p.posture[k]] * joints, [p.velocity[k]] * joints
    if p.floating:
        place, speed = base_place + place, base_speed + speed
    aim = np.concatenate([goal, np.zeros(n)])
    total.addCost("state", squares(state, place + speed, crocoddyl.ResidualModelState(state, aim, nu)), 1.0)
    if p.hand:
        frame, target, *weights = p.hand
        number = state.pinocchio.getFrameId(frame)
        residual = crocoddyl.ResidualModelFrameTranslation(state, number, np.array(target), nu)
        total.addCost("hand", crocoddyl.CostModelResidual(state, residual), weights[k])
    if p.center:
        residual = crocoddyl.ResidualModelCoMPosition(state, center - [0.0, 0.0, p.center[0]], nu)
        total.addCost("center", crocoddyl.CostModelResidual(state, residual), p.center[1 + k])
    if not end:
        total.addCost("effort", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, nu)), p.effort)
    return total


def solver_of(p: ControlProblem, numbers: dict[str, Any]) -> tuple[Any, list[Array], list[Array]]:
    """Return the solver and the initial guess."""
    root = [pin.JointModelFreeFlyer()] if p.floating else []
    model = pin.buildModelFromUrdf(numbers["path"], *root)
    state = crocoddyl.StateMultibody(model)
    drive = crocoddyl.ActuationModelFloatingBase(state) if p.floating else crocoddyl.ActuationModelFull(state)
    ours = numbers["names"]
    order = [ours.index(name) for name in list(model.names)[1:] if name in ours]  # Pinocchio sorts children by their names
    assert len(order) == len(numbers["names"]), "joints of both models differ"
    base = 7 if p.floating else 0
    start, goal = (np.concatenate([x[:base], x[base:][order]]) for x in map(np.array, (numbers["start"], numbers["goal"])))
    data = model.createData()
    center = pin.centerOfMass(model, data, start)
    x0 = np.concatenate([start, np.zeros(model.nv)])

    def action(contacts: tuple[str, ...], end: bool) -> Any:
        held = crocoddyl.ContactModelMultiple(state, drive.nu)
        pin.framesForwardKinematics(model, data, start)
        for name in contacts:
            number = model.getFrameId(name)
            gains = np.array([0.0, 1.0 / p.step])
            if p.size == 3:
                place = data.oMf[number].translation
                contact = crocoddyl.ContactModel3D(state, number, place, pin.LOCAL, drive.nu, gains)
            else:
                contact = crocoddyl.ContactModel6D(state, number, data.oMf[number], pin.LOCAL, drive.nu, gains)
            held.addContact(name, contact)
        terms = costs(p, state, goal, center, drive.nu, end)
        if contacts:
            model_ = crocoddyl.DifferentialActionModelContactFwdDynamics(state, drive, held, terms, 0.0, True)
        else:
            model_ = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, drive, terms)
        return crocoddyl.IntegratedActionModelEuler(model_, 0.0 if end else p.step)

    running = [m for knots, contacts in p.phases for m in [action(contacts, False)] * knots]
    problem = crocoddyl.ShootingProblem(x0, running, action((), True))
    problem.nthreads = 1
    solver = crocoddyl.SolverFDDP(problem)
    return solver, [x0] * (p.knots + 1), [np.array(u)[order] for u in numbers["controls"]]


def sqp_of(problem: Any, guess: tuple[list[Array], list[Array]], cost: float) -> Any:
    """Return the solver of mim-solvers with the tolerance at which it reaches the cost."""
    import mim_solvers

    solver, tolerance = mim_solvers.SolverSQP(problem), 1.0
    while tolerance == 1.0 or solver.cost > cost + STOP * (1.0 + abs(cost)):
        tolerance *= 0.1
        if tolerance < 1e-9:
            raise RuntimeError(f"SQP does not reach the cost {cost}")
        solver.termination_tolerance = tolerance
        solver.solve(*guess, 200, False)
    return solver


def main() -> None:
    name, path, *sqp = sys.argv[1:]
    solver, *guess = solver_of(PROBLEMS[name], json.loads(Path(path).read_text()))
    solver.th_stop = STOP
    solver.solve(*guess, 200, False)
    if sqp:
        solver = sqp_of(solver.problem, (guess[0], guess[1]), solver.cost)
    limit = STOP * (1.0 + abs(solver.cost))

    def solved() -> None:
        if not sqp:
            solver.th_stop = limit
        solver.solve(*guess, 200, False)

    def run() -> float:
        return least_time(solved, long=10.0)[0]

    run()
    serve({"cost": float(solver.cost), "iterations": solver.iter + 1, "version": crocoddyl.__version__}, run)


if __name__ == "__main__":
    main()
