"""The package mjbatch in a process of its own: each version needs one version of MuJoCo, which other environments have.

It imports nothing of Featherweight. The folder that is its argument has `scene.xml`, and in `start.npz` MuJoCo's states, the
controls (robots, steps, nu), and for how many steps they are held.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from importlib.metadata import packages_distributions, version
from pathlib import Path

import mujoco
import numpy as np
from peer_process import serve

mjbatch = import_module("mjbatch")  # by name: type checkers do not have it


def name() -> str:
    """Return which package this is, and its MuJoCo."""
    package = packages_distributions()["mjbatch"][0]
    return f"{package} {version(package)}, MuJoCo {mujoco.__version__}"


def main() -> None:
    if sys.argv[1] == "--name":
        serve(name(), lambda: 0.0)
        return
    folder = Path(sys.argv[1])
    m = mujoco.MjModel.from_xml_path(str(folder / "scene.xml"))
    given = np.load(folder / "start.npz")
    states, control, held = given["states"], given["control"], int(given["held"])
    batch = mjbatch.Batch(m, len(states))
    fields = [batch.bind(field) for field in ("qpos", "qvel", "ctrl", "qacc_warmstart")]
    qpos, qvel, ctrl, warm = fields

    def run() -> float:
        begun = time.perf_counter()
        qpos[:], qvel[:], warm[:] = states[:, 1 : 1 + m.nq], states[:, 1 + m.nq : 1 + m.nq + m.nv], 0.0
        for k in range(0, control.shape[1], held):
            ctrl[:] = control[:, k]
            batch.step(nstep=held)
        spent = time.perf_counter() - begun
        np.save(folder / "mjbatch.npy", qpos)
        return spent

    serve(name(), run)


if __name__ == "__main__":
    main()
