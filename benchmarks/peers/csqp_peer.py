"""CSQP of mim-solvers on the reaches of `limited_reaches`, in its own environment.

    python benchmarks/peers/csqp_peer.py numbers.json found.json

Dynamics, costs, constraints and derivatives are the compiled ones of Crocoddyl and Pinocchio. Options except the tolerance are
defaults: tighter tolerances of the quadratic programs took longer and did not solve more problems.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import crocoddyl  # before mim_solvers, which otherwise does not find its libraries
import mim_solvers
import numpy as np
import pinocchio as pin
from peer_process import least_time

Array = Any
TOLERANCE = 1e-4
ITERATIONS = 200


def problem_of(given: dict[str, Any], one: dict[str, Any], state: Any, hand: int) -> Any:
    """Return the shooting problem of a reach."""
    low, high, speed, effort = map(np.array, given["limits"])
    n, zero = state.nv, np.zeros(state.nv)
    drive = crocoddyl.ActuationModelFull(state)
    of_state, of_controls = crocoddyl.ResidualModelState(state, np.zeros(2 * n), n), crocoddyl.ResidualModelControl(state, n)
    velocity, torque = given["weights"]

    def knot(end: bool) -> Any:
        costs, limits = crocoddyl.CostModelSum(state, n), crocoddyl.ConstraintModelManager(state, n)
        squares = crocoddyl.ActivationModelWeightedQuad(np.append(zero, np.ones(n)))
        costs.addCost("velocities", crocoddyl.CostModelResidual(state, squares, of_state), velocity)

        def within(name: str, residual: Any, lower: Array, upper: Array) -> None:
            limits.addConstraint(name, crocoddyl.ConstraintModelResidual(state, residual, lower, upper))

        if end:
            reached = crocoddyl.ResidualModelFrameTranslation(state, hand, np.array(one["target"]), n)
            within("state", of_state, np.append(low, zero), np.append(high, zero))
            within("hand", reached, np.zeros(3), np.zeros(3))
        else:
            costs.addCost("efforts", crocoddyl.CostModelResidual(state, of_controls), torque)
            within("state", of_state, np.append(low, -speed), np.append(high, speed))
            within("efforts", of_controls, -effort, effort)
        model = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, drive, costs, limits)
        return crocoddyl.IntegratedActionModelEuler(model, 0.0 if end else given["step"])

    start = np.append(one["start"], zero)
    problem = crocoddyl.ShootingProblem(start, [knot(False)] * given["knots"], knot(True))
    problem.nthreads = 1
    return problem


def main() -> None:
    given, output = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    model = pin.buildModelFromUrdf(given["path"])
    state, hand, found = crocoddyl.StateMultibody(model), model.getFrameId(given["hand"]), []
    for one in given["reaches"]:
        problem = problem_of(given, one, state, hand)
        solver = mim_solvers.SolverCSQP(problem)
        solver.termination_tolerance = TOLERANCE
        guess = [problem.x0] * (given["knots"] + 1), [np.array(one["hold"])] * given["knots"]
        passed, done = least_time(partial(solver.solve, *guess, ITERATIONS, False))
        x, u = np.array(solver.xs), np.array(solver.us)
        q, v = x[:, : model.nq], x[:, model.nq :]
        found.append((passed, bool(done), int(solver.iter), q.tolist(), v.tolist(), u.tolist()))
    output.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
