"""Tests of contact points of convex shapes by the law of MJCF files against MuJoCo's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array

mujoco = pytest.importorskip("mujoco")

CLOUD = np.random.default_rng(3).normal(size=(60, 3))
CLOUD = CLOUD / np.linalg.norm(CLOUD, axis=1)[:, None] * [0.05, 0.04, 0.06]
ANGLES = np.arange(12) * np.pi / 6.0
PRISM = [(0.05 * np.cos(t), 0.05 * np.sin(t), z) for z in (-0.03, 0.03) for t in ANGLES]
SHAPES = {
    "sphere": 'type="sphere" size=".04"',
    "capsule": 'type="capsule" size=".03 .05"',
    "box": 'type="box" size=".05 .04 .03"',
    "cylinder": 'type="cylinder" size=".04 .05"',
    "ellipsoid": 'type="ellipsoid" size=".05 .04 .03"',
    "cloud": 'type="mesh" mesh="cloud"',
    "prism": 'type="mesh" mesh="prism"',
}
PAIRS = [
    *(
        "sphere ellipsoid",
        "sphere cloud",
        "sphere prism",
        "capsule cylinder",
        "capsule ellipsoid",
        "capsule cloud",
        "capsule prism",
    ),
    *("box cylinder", "box ellipsoid", "box cloud", "box prism", "cylinder cylinder", "cylinder ellipsoid", "cylinder cloud"),
    *("cylinder prism", "ellipsoid ellipsoid", "ellipsoid prism", "cloud cloud", "cloud prism", "prism prism"),
]
POSES = 60
SAME = 1e-9  # [m] for boxes and meshes both searches take the same steps in double precision, and end at the same face
CURVED = 1e-3  # [m] for other shapes, where MuJoCo's search ends at a depth that is exact to 1e-6 m
NEARLY_ALL = 0.98  # part of pairs that agree; where rounding decides between two faces, searches may end at either


def scene(folder: Path, margin: float) -> str:
    """Write a file with pairs of free bodies, a metre apart, and return its path."""
    vertices = {n: " ".join(f"{x:.6g}" for x in np.ravel(v)) for n, v in (("cloud", CLOUD), ("prism", PRISM))}
    meshes = "".join(f'<mesh name="{name}" vertex="{v}"/>' for name, v in vertices.items())
    bodies = "".join(
        f'<body name="{i}{side}" pos="{i} 0 0"><freejoint/><geom margin="{margin}" {SHAPES[shape]}/></body>'
        for i, pair in enumerate(PAIRS)
        for side, shape in enumerate(pair.split())
    )
    path = folder / "pairs.xml"
    path.write_text(f"<mujoco><option gravity='0 0 0'/><asset>{meshes}</asset><worldbody>{bodies}</worldbody></mujoco>")
    return str(path)


def random_poses(rng: np.random.Generator) -> Array:
    """Return coordinates of pairs of bodies that nearly all overlap."""
    poses = rng.standard_normal((len(PAIRS), 2, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    away = poses[:, 1, :3] / np.linalg.norm(poses[:, 1, :3], axis=-1, keepdims=True)
    poses[..., :3] = np.arange(len(PAIRS))[:, None, None] * [1.0, 0.0, 0.0]
    poses[:, 1, :3] += rng.uniform(0.02, 0.08, (len(PAIRS), 1)) * away
    return poses.ravel()


@pytest.mark.parametrize("margin", [0.0, 0.004])
def test_contact_points_of_convex_shapes_are_those_of_mujoco(tmp_path: Path, margin: float) -> None:
    path, rng = scene(tmp_path, margin), np.random.default_rng(7)
    model = mujoco.MjModel.from_xml_path(path)
    data, sim = mujoco.MjData(model), fw.Simulation(path)
    order, agree, count = fw.MujocoOrder(sim.robot, model), 0, 0
    same = [SAME if set(pair.split()) <= {"box", "cloud", "prism"} else CURVED for pair in PAIRS]
    for _ in range(POSES):
        data.qpos[:] = random_poses(rng)
        mujoco.mj_fwdPosition(model, data)
        sim.reset()
        sim.q, sim.v = order.robot_state(data.qpos, data.qvel)
        sim.step()
        points = np.reshape(sim.contacts()[0], (-1, 3))
        theirs = np.array([c.pos for c in data.contact[: data.ncon]])
        for i in range(len(PAIRS)):
            own, other = (x[np.rint(x[:, 0]) == i] for x in (points, theirs))
            if len(other):
                apart = np.linalg.norm(own[:, None] - other, axis=-1)
                agree += len(own) == len(other) and bool(apart.min(axis=0).max() < same[i])
                count += 1
    assert count > 0.8 * POSES * len(PAIRS)
    assert agree > NEARLY_ALL * count


@pytest.mark.parametrize("other", ['type="plane" size="1 1 .1"', SHAPES["box"]])
def test_contacts_of_capsules_are_those_of_mujoco_in_its_order(other: str) -> None:
    """Check pairs of contacts, which may be the same one twice: `noslip_iterations` depend on the order, stiffness on both."""
    text = f"""<mujoco><worldbody><geom {other}/><body><freejoint/><geom {SHAPES["capsule"]}/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data, sim, rng, twice = mujoco.MjData(model), fw.Simulation(fw.load(text)), np.random.default_rng(0), 0
    order = fw.MujocoOrder(sim.robot, model)
    for _ in range(300):
        mujoco.mj_resetData(model, data)
        mujoco.mj_integratePos(model, data.qpos, np.r_[rng.uniform(-0.1, 0.1, 3), rng.normal(size=3)], 1.0)
        mujoco.mj_fwdPosition(model, data)
        sim.q, sim.v = order.robot_state(data.qpos, data.qvel)
        sim.step()
        theirs = np.reshape([c.pos for c in data.contact[: data.ncon]], (-1, 3))
        points = np.reshape(sim.contacts()[0], (-1, 3))[: len(theirs)]  # before those that do not touch yet
        np.testing.assert_allclose(points, theirs, rtol=0, atol=1e-9)
        twice += len(theirs) == 2 and bool(np.linalg.norm(theirs[1] - theirs[0]) < 1e-12)
    assert twice or "plane" in other
