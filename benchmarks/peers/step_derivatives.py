"""Times of the derivatives of a step beside MuJoCo's differences (`mjd_transitionFD`), of robots that lie on a floor.

    pip install --no-deps mjlab gymnasium-robotics
    python benchmarks/peers/step_derivatives.py [--only NAME] [--steps 300] [--torque 0.2]

Scenes are those of `step_times.py`. Robots fall for --steps steps under random joint forces, in both simulators; then each is
differentiated at its own state. MuJoCo takes central differences over 1e-6 for one column of each velocity, control and
activation; ours has a column for each velocity, joint force and control. Both are single calls from Python. The products are
those of one cotangent of the state after the step. The last columns are times of each robot of a fleet of --robots such robots,
on one thread: a step, its derivatives, and products.
"""

from __future__ import annotations

import argparse
import warnings

import mujoco
import numpy as np
from falling_scenes import FallingScene, falling_scenes
from measure import machine, markdown, median_times

import featherweight as fw

SMALL = 1e-6


def row(scene: FallingScene, steps: int, torque: float, seconds: float, robots: int) -> list[str]:
    """Return the cells of a scene's row."""
    model = scene.mujoco_model
    data = mujoco.MjData(model)
    sim = fw.Simulation(fw.load(scene.text), contact="file", integrator="semi-implicit", threads=1)
    rng, nv, na, nu = np.random.default_rng(0), model.nv, model.na, model.nu
    control = np.zeros(nu) if nu else None
    for _ in range(steps):
        data.qfrc_applied[:] = torque * rng.standard_normal(nv)
        mujoco.mj_step(model, data)
        tau = torque * rng.standard_normal(sim.robot.nv)
        sim.step(tau, control=control)
    size = 2 * nv + na
    A, B = np.zeros((size, size)), np.zeros((size, nu))

    def differences() -> None:
        mujoco.mjd_transitionFD(model, data, SMALL, 1, A, B, None, None)

    def derivatives() -> None:
        sim.derivatives(tau, control)

    state = sim.state
    bars = rng.standard_normal(len(sim.derivatives(tau, control).A))

    def products() -> None:
        sim.derivative_products(bars, tau, control)

    def step() -> None:
        sim.state = state
        sim.step(tau, control=control)

    one, ours, pulled, theirs = (1e6 * t for t in median_times((step, derivatives, products, differences), seconds))
    contacts = len(sim.contacts().names)
    state = state.repeated(robots)
    sim.state = state
    each = [1e6 * t / robots for t in median_times((step, derivatives, products), seconds)]
    cells = str(contacts), *(f"{t:.0f}" for t in (one, ours, pulled, theirs)), f"{theirs / ours:.1f}"
    return [scene.name, str(nv), *cells, *(f"{t:.0f}" for t in each)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of the names of scenes")
    parser.add_argument("--steps", type=int, default=300, help="steps before the one that is differentiated")
    parser.add_argument("--torque", type=float, default=0.2, help="standard deviation of joint forces [N m]")
    parser.add_argument("--seconds", type=float, default=2.0, help="time of each scene's measurement [s]")
    parser.add_argument("--robots", type=int, default=64, help="robots of a fleet")
    given = parser.parse_args()
    warnings.simplefilter("ignore", fw.ModelWarning)
    rows = []
    for scene in falling_scenes([], given.only):
        try:
            rows.append(row(scene, given.steps, given.torque, given.seconds, given.robots))
        except (NotImplementedError, fw.SimulationError) as error:
            print(f"{scene.name}: {error}")
    header = ["robot", "nv", "contacts", "a step, µs", "derivatives, µs", "products, µs", "`mjd_transitionFD`, µs", "ratio"]
    header += ["in a fleet: a step", "derivatives", "products"]
    print(machine())
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
