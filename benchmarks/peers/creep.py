"""Creep of static friction: a capsule pinched between a wall and a plate for ten seconds, compared with MuJoCo.

    python benchmarks/peers/creep.py [--seconds 10]

The plate presses with a multiple of the least force that holds the capsule by Coulomb's law (MuJoCo's issue 3328). Our
contacts are rigid. Steps are 1 ms. MuJoCo runs with its defaults, and with elliptic cones and impratio = 100.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import mujoco
import numpy as np
from measure import machine, markdown

import featherweight as fw

MASS, FRICTION, STEP = 0.2, 1.0, 1e-3
MARGINS = 20, 45, 95  # multiples of the least force that holds the capsule
SCENE = """
<mujoco>
  <option timestep="{step}" {options}/>
  <default><geom friction="{friction} 0 0" condim="3"/></default>
  <worldbody>
    <geom name="wall" type="box" size="0.01 0.2 0.2" pos="0.06 0 0"/>
    <body name="plate" pos="-0.06 0 0">
      <joint name="rail" type="slide" axis="1 0 0"/>
      <geom name="plate" type="box" size="0.01 0.2 0.2" mass="{mass}"/>
    </body>
    <body name="capsule">
      <freejoint/>
      <geom name="capsule" type="capsule" size="0.05 0.05" mass="{mass}"/>
    </body>
  </worldbody>
  <actuator><motor name="press" joint="rail"/></actuator>
  <contact><exclude body1="world" body2="plate"/></contact>
</mujoco>
"""


def scene(options: str = "") -> str:
    """Return the MJCF scene with options."""
    return SCENE.format(step=STEP, options=options, friction=FRICTION, mass=MASS)


def ours(path: Path, force: float, seconds: float) -> float:
    """Return the distance [m] that the capsule sinks after the first tenth of a second."""
    sim = fw.Simulation(fw.load(path), contact="rigid")
    control = np.array([force])
    sim.run(0.1, control=control)
    before = sim.q.copy()
    sim.run(seconds, control=control)
    return float(np.abs(sim.q - before)[1:4].max())


def theirs(text: str, force: float, seconds: float) -> float:
    """Return the distance [m] in MuJoCo."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = force
    for _ in range(round(0.1 / STEP)):
        mujoco.mj_step(model, data)
    before = data.qpos.copy()
    for _ in range(round(seconds / STEP)):
        mujoco.mj_step(model, data)
    return float(np.abs(data.qpos - before)[1:4].max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    print(f"{machine()}, MuJoCo {mujoco.__version__}, {options.seconds:g} s\n")
    rows = []
    stiff = scene('cone="elliptic" impratio="100"')
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pinched.xml"
        path.write_text(scene())
        for margin in MARGINS:
            force = margin * MASS * 9.81 / (2.0 * FRICTION)
            found = (
                ours(path, force, options.seconds),
                theirs(scene(), force, options.seconds),
                theirs(stiff, force, options.seconds),
            )
            rows.append([f"{margin}", *(f"{1e6 * x / options.seconds:.3g}" for x in found)])
    header = ["force / least holding force", "ours, µm/s", "MuJoCo, µm/s", "MuJoCo with impratio 100, µm/s"]
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
