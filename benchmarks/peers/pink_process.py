"""Ticks of pink in its own process, which may have other versions of its packages.

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

pink = import_module("pink")  # by name, because type checkers do not have the package
tasks = import_module("pink.tasks")
SOLVERS = ("daqp", "quadprog", "proxqp")


def main() -> None:
    folder = Path(sys.argv[1])
    given = np.load(folder / "ticks.npz")
    model = pin.buildModelFromUrdf(str(given["urdf"]), pin.JointModelFreeFlyer())
    data = model.createData()
    order = Orders(model, [str(x) for x in given["names"]])
    q, _ = order.state(given["start"], np.zeros(model.nv))
    configuration = pink.Configuration(model, data, q)
    center = tasks.ComTask(cost=1.0)
    feet = [tasks.FrameTask(str(x), position_cost=10.0, orientation_cost=10.0) for x in given["feet"]]
    trunk = tasks.FrameTask(str(given["trunk"]), position_cost=0.0, orientation_cost=0.5**0.5)
    posture = tasks.PostureTask(cost=0.1)
    every = [center, *feet, trunk, posture]
    for task in every:
        task.set_target_from_configuration(configuration)

    def run() -> float:
        found = {}
        for solver in SOLVERS:
            times = []
            for q, v, place in zip(given["q"], given["v"], given["place"], strict=True):
                x, _ = order.state(q, v)
                begun = time.process_time()
                configuration.update(x)
                center.set_target(place)
                pink.solve_ik(configuration, every, float(given["dt"]), solver=solver, safety_break=False)
                times.append(time.process_time() - begun)
            found[f"pink ({solver}), velocities only"] = times
        results: Any = found
        np.savez(folder / "times.npz", **results)
        return sum(map(sum, found.values()))

    serve("pink", run)


if __name__ == "__main__":
    main()
