"""How long a user waits for the first step with contacts: on a new machine, with empty caches, and in a second process.

    python benchmarks/peers/first_step.py [--times 3]

Seconds from before `import featherweight` to after the first step in which something touches, in fresh processes: for Talos on
its feet and gymnasium's ant as it falls on the ground. Beside them MuJoCo with the ant, from before its import.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile

from measure import fresh_process, machine, markdown
from simulation_models import ASSETS, HEIGHT, POSTURE, SOLES
from simulation_models import TALOS as TALOS_FILE

GOALS = {"new machine": 5.0, "second process": 0.3}  # [s]

TALOS = """
import time
begun = time.perf_counter()
import featherweight as fw
path, height, soles = {path!r}, {height!r}, {soles!r}
robot = fw.load(path, base="floating")
q = robot.neutral()
q[2] = height
for j in robot.joints:
    if j.name in {posture!r}:
        q[j.q_slice] = {posture!r}[j.name]
sim = fw.Simulation(robot, 1e-3, q=q, spheres=[fw.Point(f, at) for f, at in soles], ground=fw.Plane())
sim.step()
assert len(sim.contacts()[0]) == 8
print(time.perf_counter() - begun)
"""
ANT = """
import time
begun = time.perf_counter()
import featherweight as fw
robot = fw.load({path!r})
sim = fw.Simulation(robot, 0.01, "rk4", q=robot.configurations["qpos0"], shapes=True)
while not len(sim.contacts()[0]):
    sim.step()
print(time.perf_counter() - begun)
"""
MUJOCO = """
import time
begun = time.perf_counter()
import mujoco
m = mujoco.MjModel.from_xml_path({path!r})
d = mujoco.MjData(m)
while not d.ncon:
    mujoco.mj_step(m, d)
print(time.perf_counter() - begun)
"""


def seconds(code: str, cache: str) -> float:
    """What `code` prints in a fresh process with its caches in a folder."""
    environment = {**fresh_process(), "FEATHERWEIGHT_CACHE": cache}
    made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return float(made.stdout.splitlines()[-1])


def scripts() -> dict[str, str]:
    ant = str(ASSETS / "ant.xml")
    talos = TALOS.format(path=str(TALOS_FILE), height=HEIGHT, soles=SOLES, posture=POSTURE)
    return {"Talos on its feet": talos, "ant, which falls": ANT.format(path=ant), "MuJoCo's ant": MUJOCO.format(path=ant)}


def rows(times: int) -> list[list[str]]:
    made = []
    for what, code in scripts().items():
        first, second = [], []
        for _ in range(times):
            with tempfile.TemporaryDirectory(prefix="featherweight-") as cache:
                first.append(seconds(code, cache))
                second.append(statistics.median(seconds(code, cache) for _ in range(3)))
        for when, measured in zip(GOALS, (statistics.median(first), statistics.median(second)), strict=True):
            goal = GOALS[when]
            met = "" if "MuJoCo" in what else "yes" if measured <= goal else "no"
            made.append([what, when, f"{measured:.2f}", f"{goal:g}", met])
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    print(f"{machine()}\n")
    print(markdown(["first step with contacts", "on", "seconds", "goal", "met"], rows(options.times)))


if __name__ == "__main__":
    main()
