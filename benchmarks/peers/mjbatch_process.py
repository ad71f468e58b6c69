"""The package mjbatch in its own process, because each of its versions needs one version of MuJoCo.

This module does not import Featherweight. The folder in its argument contains `scene.xml`, and `start.npz` with MuJoCo's
states, the controls (robots, steps, nu), and the number of steps between changes of controls.
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

mjbatch = import_module("mjbatch")  # by name, because type checkers do not have the package


def name() -> str:
    """Return the package and its MuJoCo with their versions."""
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
