"""Dynamics of G1 by GRiD (grid-rbd): batches of 1024 in PyTorch tensors, also derivatives of forward dynamics.

    python benchmarks/gpu/grid_peer.py [--build] [--robots FOLDER]

GRiD writes CUDA code for a robot and compiles it with nvcc, which takes minutes. `--build` only does this; GRID_RBD_CACHE_DIR
keeps the result. Lines that begin with a brace are figures in JSON. The precision is float32, the only one of GRiD.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from cases import G1, cases, load, options
from figures import CHECKED
from gpu_arrays import Torch, median_by_events
from measure import FILES

import featherweight as fw

BATCH = 1024
FUNCTIONS = {
    "forward dynamics": "forward_dynamics",
    "inverse dynamics": "inverse_dynamics",
    "derivatives of forward dynamics": "forward_dynamics_gradient",
}


def built(given: argparse.Namespace) -> Any:
    """Return GRiD's robot, from its cache if it was built before."""
    grid = import_module("grid_rbd")
    path = str(given.robots / FILES[G1][0])
    more = dict(algorithm_list=list(FUNCTIONS.values()), enable_mujoco_kernels=False, max_batch_size=BATCH)
    return grid.load_robot(path, backend="torch", floating_base=True, **more)


def order(robot: fw.Robot, names: list[str]) -> tuple[list[int], list[int]]:
    """Return the places of GRiD's q and v in ours; the floating base, which has no name in the file, comes first."""
    joints = {j.name: j for j in robot.joints}
    base = next(j for j in robot.joints if j.type is fw.JointType.FLOATING)
    known = [base, *(joints[n] for n in names if n in joints and n != base.name)]
    q = [k for j in known for k in range(j.q_slice.start, j.q_slice.stop)]
    v = [k for j in known for k in range(j.v_slice.start, j.v_slice.stop)]
    if (sorted(q), sorted(v)) != (list(range(robot.nq)), list(range(robot.nv))):
        raise ValueError(f"GRiD's joints {names} are not those of {G1}")
    return q, v


def figures(given: argparse.Namespace, theirs: Any) -> Iterator[dict[str, Any]]:
    lib, ours = Torch(), load(G1, given.robots)
    q, v = order(ours, list(theirs._base.joint_names or ()))
    known = {c.name: c for c in cases(given).cases if c.robot == G1}
    for name, method in FUNCTIONS.items():
        case = known[name]
        states = [x[:BATCH, q if k == 0 else v].astype(np.float32) for k, x in enumerate(case.states)]
        arrays = [lib.array(x) for x in states]
        call = getattr(theirs, method)
        expected = case.function(*(x[:CHECKED] for x in case.states))
        if isinstance(expected, tuple):  # derivatives by q and v, side by side
            expected = np.concatenate([x[:, v][:, :, v] for x in expected[:2]], axis=2)
        else:
            expected = expected[:, v]
        result = lib.numpy(call(*arrays)[:CHECKED].detach())
        yield {
            "library": "GRiD",
            "robot": G1,
            "function": name,
            "precision": "float32",
            "batch": BATCH,
            "seconds": median_by_events(lib, partial(call, *arrays)),
            "difference": float(np.abs(result - expected).max() / np.abs(expected).max()),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(parser)
    parser.add_argument("--build", action="store_true", help="only compile")
    given = parser.parse_args()
    robot = built(given)
    if not given.build:
        for figure in figures(given, robot):
            print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
