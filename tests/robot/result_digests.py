"""Print results, one line for each robot and function; the output of two processors must be the same.

    python tests/robot/result_digests.py

The robots are one for each file format and one with rotors; a simulation is added. Functions of robots have the same bits
wherever a product and a sum are one instruction, so these lines have a hash. Other lines have nine digits: MuJoCo's compiler
computes numbers of its files, derivatives use as many lanes as the processor has, and steps of simulations sum in another
order.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import featherweight as fw

LINK = """<inertial><origin xyz="0.1 0 0.2"/><mass value="{m}"/>
<inertia ixx=".3" iyy=".2" izz=".1" ixy="0" ixz=".01" iyz="0"/></inertial>"""
URDF = f"""<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
<link name="base"/><link name="upper">{LINK.format(m=2)}</link><link name="lower">{LINK.format(m=1)}</link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 .5" rpy="0.3 0.2 0.1"/>
<axis xyz="1 2 2"/><limit lower="-2" upper="2" effort="9" velocity="9"/></joint>
<joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0 .1 .4" rpy="0 0.7 0"/>
<axis xyz="0 1 0"/></joint></robot>"""
SRDF = '<robot name="arm"><group_state name="bent" group="all"><joint name="elbow" value="0.5"/></group_state></robot>'
MJCF = """<mujoco><worldbody><body name="trunk" pos="0 0 1"><freejoint/><geom type="box" size=".2 .1 .05"/>
<body name="ball" pos=".2 0 0" euler="10 20 30"><joint type="ball"/><geom type="capsule" size=".03" fromto="0 0 0 0 0 -.4"/>
<body name="shin" pos="0 0 -.4"><joint axis="0 1 0" ref="10"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 -.3"/>
</body></body></body></worldbody></mujoco>"""


def robots() -> Iterator[tuple[str, fw.Robot]]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"arm.urdf": URDF, "arm.urdf.xacro": URDF, "walker.xml": MJCF}.items():
            file = Path(folder) / name
            file.write_text(text, encoding="utf-8")
            yield name, fw.load(file, srdf=SRDF if name == "arm.urdf" else None)
    yield "mini_cheetah", fw.build(fw.robots.mini_cheetah())


def lines(name: str, robot: fw.Robot) -> Iterator[str]:
    rng = np.random.default_rng(0)
    v, a = 4.0 * rng.random((2, 7, robot.nv)) - 2.0
    q = robot.integrate(robot.neutral(), 0.3 * v)
    q[0] = next(iter(robot.configurations.values()), robot.neutral())
    functions = {
        "inverse_dynamics": (robot.inverse_dynamics, (q, v, a)),
        "forward_dynamics": (robot.forward_dynamics, (q, v, a)),
        "mass_matrix": (robot.mass_matrix, (q,)),
        "inverse_mass_matrix": (robot.inverse_mass_matrix, (q,)),
        "derivative": (robot.inverse_dynamics.derivative("q"), (q, v, a)),
    }
    for what, (function, arguments) in functions.items():
        batch, one = function(*arguments), function(*(x[3] for x in arguments))
        single = function(*(x.astype(np.float32) for x in arguments))
        if name.endswith(".xml") or what == "derivative":
            yield f"{name} {what} {digits(batch)}"
            assert np.allclose(one, batch[3], rtol=0, atol=1e-12 * abs(batch).max())
        else:
            digest = hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in (batch, one, single)))
            yield f"{name} {what} {digest.hexdigest()}"


def digits(x: np.ndarray[Any, Any]) -> str:
    """Return the largest number, and the others relative to it; the last rounding may end on either side of zero."""
    parts = np.round(x / abs(x).max(), 9) + 0.0
    return f"{abs(x).max():.9g} {hashlib.sha256(parts.tobytes()).hexdigest()}"


def dropped() -> str:
    """Return the result of a chain that swings for a hundred steps."""
    simulation = fw.Simulation(fw.build(fw.generators.chain(3)))
    for _ in range(100):
        simulation.step()
    return " ".join(f"{x:.9g}" for x in simulation.q)


if __name__ == "__main__":
    for name, robot in robots():
        print(*lines(name, robot), sep="\n", flush=True)
    print("simulation", dropped())
