"""Times of `Simulation.sensors()` beside the three sensor stages of MuJoCo (`mj_sensorPos`, `mj_sensorVel`, `mj_sensorAcc`).

    python benchmarks/peers/sensor_readings.py [FILE.xml ...] [--seconds 2]

Robots are a quadruped with usual sensors, and the FILEs (MJCF). MuJoCo's stages read positions, velocities and accelerations of
all bodies, which its step has computed. Ours evaluates the motion of the sensors' frames at the current state, and at the start
of the last step with the mean acceleration of this step.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from measure import machine, markdown, median_times

import featherweight as fw

MANY = 64  # robots of a fleet
LEG = """<body name="thigh_{k}" pos="{x} {y} 0"> <joint name="roll_{k}" axis="1 0 0"/> <joint name="hip_{k}" axis="0 1 0"/>
  <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.2" contype="0" conaffinity="0"/>
  <body name="calf_{k}" pos="0 0 -0.2"> <joint name="knee_{k}" axis="0 1 0"/>
    <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2" contype="0" conaffinity="0"/>
    <geom size="0.025" pos="0 0 -0.2"/> <site name="foot_{k}" pos="0 0 -0.2" size="0.03"/> </body> </body>"""
OF_LEG = """<force name="force_{k}" site="foot_{k}"/> <torque name="torque_{k}" site="foot_{k}"/>
  <touch name="touch_{k}" site="foot_{k}"/> <framepos name="foot_{k}" objtype="site" objname="foot_{k}"/>"""
OF_JOINT = """<jointpos name="{j}_pos" joint="{j}"/> <jointvel name="{j}_vel" joint="{j}"/>
  <actuatorfrc name="{j}_frc" actuator="{j}"/>"""
QUADRUPED = """<mujoco model="quadruped"><option timestep="0.004"/> <worldbody> <geom type="plane" size="0 0 1"/>
  <body name="trunk" pos="0 0 0.43"> <freejoint/> <geom type="box" size="0.2 0.08 0.05" mass="6"/> <site name="imu"/>
  {legs} </body> </worldbody> <actuator>{drives}</actuator>
  <sensor> <gyro name="gyro" site="imu"/> <accelerometer name="acc" site="imu"/> <velocimeter name="vel" site="imu"/>
    <framequat name="quat" objtype="site" objname="imu"/> <framepos name="place" objtype="site" objname="imu"/>
    {sensors} </sensor></mujoco>"""


def quadruped() -> str:
    """Return the MJCF text of a quadruped with sensors of its trunk, joints, drives and feet."""
    places = [(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)]
    joints = [f"{name}_{k}" for k in range(4) for name in ("roll", "hip", "knee")]
    return QUADRUPED.format(
        legs="".join(LEG.format(k=k, x=x, y=y) for k, (x, y) in enumerate(places)),
        drives="".join(f'<position name="{j}" joint="{j}" kp="35" kv="0.5"/>' for j in joints),
        sensors="".join([*(OF_JOINT.format(j=j) for j in joints), *(OF_LEG.format(k=k) for k in range(4))]),
    )


def row(name: str, robot: fw.Robot, model: Any, seconds: float) -> list[str]:
    """Return the cells of a robot's row."""
    one, many = fw.Simulation(robot), fw.Simulation(robot, q=np.tile(robot.start(), (MANY, 1)))
    data = mujoco.MjData(model)
    for sim in (one, many):
        sim.step(steps=20)
    mujoco.mj_step(model, data, 20)

    def stages() -> None:
        mujoco.mj_sensorPos(model, data)
        mujoco.mj_sensorVel(model, data)
        mujoco.mj_sensorAcc(model, data)

    ours, fleet, theirs = (1e6 * t for t in median_times((one.sensors, many.sensors, stages), seconds))
    return [name, str(robot.nv), str(len(robot.sensors)), f"{ours:.1f}", f"{fleet / MANY:.2f}", f"{theirs:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seconds", type=float, default=2.0, help="time of each robot's measurement [s]")
    given = parser.parse_args()
    robots = [("quadruped", fw.load(quadruped()), mujoco.MjModel.from_xml_string(quadruped()))]
    robots += [(Path(f).stem, fw.load(f), mujoco.MjModel.from_xml_path(f)) for f in given.files]
    header = ["robot", "nv", "sensors", "ours, µs", f"of {MANY} robots, µs each", "MuJoCo, µs"]
    print(machine())
    print(markdown(header, [row(*robot, given.seconds) for robot in robots]))


if __name__ == "__main__":
    main()
