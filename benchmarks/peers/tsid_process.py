"""Ticks of TSID in its own process, because its packages need another version of Pinocchio.

This module does not import Featherweight. The folder in its argument contains `ticks.npz` of `whole_body_ticks.py`, and gets
`times.npz` with the processor times of ticks.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from joint_orders import Orders
from peer_process import serve

tsid = import_module("tsid.tsid_pywrap")  # by name, because type checkers do not have the package; wheels lack more of it

FRICTION, MOST_FORCE = 0.6, 5000.0


def main() -> None:
    folder = Path(sys.argv[1])
    given = np.load(folder / "ticks.npz")
    robot = tsid.RobotWrapper(str(given["urdf"]), [str(given["package"])], pin.JointModelFreeFlyer(), False)
    model = robot.model()
    order = Orders(model, [str(x) for x in given["names"]])
    q, v = order.state(given["start"], np.zeros(robot.nv))
    control = tsid.InverseDynamicsFormulationAccForce("tsid", robot, False)
    control.computeProblemData(0.0, q, v)
    data = control.data()
    half = given["sole"]
    corners = np.array([(x * half[0], y * half[1], 0.0) for x in (-1, 1) for y in (-1, 1)]).T
    contacts = []
    for name in (str(x) for x in given["feet"]):
        contact = tsid.Contact6d(name, robot, name, corners, np.array([0.0, 0, 1]), FRICTION, 0.0, MOST_FORCE)
        contact.setKp(np.zeros(6))
        contact.setKd(20.0 * np.ones(6))
        contact.setReference(robot.framePosition(data, model.getFrameId(name)))
        control.addRigidContact(contact, 1e-6)
        contacts.append(contact)
    center = tsid.TaskComEquality("com", robot)
    posture = tsid.TaskJointPosture("posture", robot)
    trunk = tsid.TaskSE3Equality("trunk", robot, str(given["trunk"]))
    bounds = tsid.TaskActuationBounds("effort", robot)
    for task, size, stiffness, damping in (
        (center, 3, 100.0, 20.0),
        (posture, robot.nv - 6, 50.0, 2 * 50.0**0.5),
        (trunk, 6, 100.0, 20.0),
    ):
        task.setKp(stiffness * np.ones(size))
        task.setKd(damping * np.ones(size))
    trunk.setMask(np.array([0.0, 0, 0, 1, 1, 1]))
    most = model.effortLimit[6:]
    bounds.setBounds(-most, most)
    control.addMotionTask(center, 1.0, 1, 0.0)
    control.addMotionTask(posture, 0.01, 1, 0.0)
    control.addMotionTask(trunk, 0.5, 1, 0.0)
    control.addActuationTask(bounds, 1.0, 0, 0.0)
    fixed = tsid.TrajectoryEuclidianConstant("posture", q[7:]).computeNext()
    posture.setReference(fixed)
    trunk.setReference(
        tsid.TrajectorySE3Constant("trunk", robot.framePosition(data, model.getFrameId(str(given["trunk"])))).computeNext()
    )
    solver = tsid.SolverHQuadProgFast("solver")
    solver.resize(control.nVar, control.nEq, control.nIn)
    sample = tsid.TrajectorySample(3)

    def run() -> float:
        times = []
        for q, v, place, speed, acceleration in zip(
            *(given[x] for x in ("q", "v", "place", "speed", "acceleration")), strict=True
        ):
            x, u = order.state(q, v)
            begun = time.process_time()
            sample.value(place)
            sample.derivative(speed)
            sample.second_derivative(acceleration)
            center.setReference(sample)
            problem = control.computeProblemData(0.0, x, u)
            solution = solver.solve(problem)
            control.getActuatorForces(solution)
            times.append(time.process_time() - begun)
            if solution.status != 0:
                raise RuntimeError(f"TSID: status {solution.status}")
        results: Any = {"TSID (EiquadprogFast)": times}
        np.savez(folder / "times.npz", **results)
        return sum(times)

    serve("TSID", run)


if __name__ == "__main__":
    main()
