"""Shapes that are not convex, in convex parts of CoACD, beside MuJoCo: a ball in a cup, a peg in a hole, a nut on a bolt.

    python benchmarks/peers/concave_shapes.py [cup peg nut] [--iterations 60]

All meshes are made here. Rows: our simulation with convex hulls, and with convex parts at several thresholds; MuJoCo with
the same parts, from the file that `Description.save` writes; MuJoCo with signed distance fields of the same meshes (geoms of
type "sdf"). All use the contact law of MJCF files. Times are processor times of a step, in the last half of the motion.
The rows "parts along the thread" have nut and bolt in parts with the edges of the meshes, without the error of a decomposition.

| scene | motion | result without error |
|---|---|---|
| cup | a ball falls off-centre into a free cup on a plane, 1 s | its centre is 19 mm above the plane |
| peg | a cylinder of radius 9.5 mm falls into a hole of radius 10 mm, 0.3 mm off-centre | it sinks by 50 mm, to the plane |
| nut | a nut turns down a fixed bolt by its weight, friction 0.01, 1 s | it sinks by the pitch, 6 mm, in each turn |
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from measure import machine, markdown

import featherweight as fw
from featherweight.array_types import Array

STEP, SECONDS = 2e-3, 1.0
PITCH, DEPTH, CORE, PLAY = 6e-3, 3e-3, 8e-3, 5e-4  # [m] of the thread: depth, least radius, and the nut's clearance
Surface = tuple[Array, Array]  # vertices (n, 3) and triangles (k, 3)


def turned(radii: Array, heights: Array) -> Surface:
    """Return the solid whose section at each of n angles is a polygon of m corners, counter-clockwise in (radius, height).

    Radii have shape (n, m) or (m,) for 24 equal sections; heights (m,) [m].
    """
    radii = np.atleast_2d(radii) if radii.ndim == 2 else np.tile(radii, (24, 1))
    n, m = radii.shape
    angle = 2.0 * np.pi * np.arange(n)[:, None] / n
    points = np.stack([radii * np.cos(angle), radii * np.sin(angle), np.broadcast_to(heights, (n, m))], -1).reshape(-1, 3)
    i, j = (x.ravel() for x in np.meshgrid(np.arange(n), np.arange(m), indexing="ij"))
    a, b, c, d = (k % n * m + h % m for k, h in ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)))
    _, first, number = np.unique(np.round(points, 9) + 0.0, axis=0, return_index=True, return_inverse=True)
    faces = number.ravel()[np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])]
    three = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    return points[first], faces[three]


def profile(*corners: tuple[float, float]) -> Surface:
    """Return a solid of revolution; corners (radius, height) in mm."""
    radii, heights = 1e-3 * np.array(corners).T
    return turned(radii, heights)


def thread(turns: int, n: int = 16, steps: int = 4) -> tuple[Array, Array]:
    """Return radii (n, m) and heights (m,) of a thread, from below."""
    heights = PITCH * np.arange(turns * steps + 1) / steps
    phase = (heights / PITCH - np.arange(n)[:, None] / n) % 1.0
    return CORE + DEPTH * np.abs(2.0 * phase - 1.0), heights


def along_the_thread(turns: int, edge: float | None, n: int = 16) -> list[Array]:
    """Return the corners (k, 3) of convex parts between neighbouring sections and heights of a thread.

    A bolt's parts reach to its axis (`edge` None); those of a nut, from the radius `edge` to the thread with its clearance.
    """
    radii, heights = thread(turns, n)
    inside, play = (0.0, 0.0) if edge is None else (edge, PLAY)
    parts = []
    for i in range(n):
        for k in range(len(heights) - 1):
            around = [(a, b, r) for a in (i, (i + 1) % n) for b in (k, k + 1) for r in (radii[a, b] + play, inside)]
            turn = [2.0 * np.pi * a / n for a, _, _ in around]
            parts.append(
                np.array([(r * np.cos(t), r * np.sin(t), heights[b]) for t, (_, b, r) in zip(turn, around, strict=True)])
            )
    return parts


def exact_nut() -> str:
    """Return the nut on the bolt as MJCF with `along_the_thread` parts; those of one body do not touch each other."""
    parts = {"bolt": along_the_thread(6, None), "nut": along_the_thread(2, 0.02)}
    written = {f"{name}{k}": part for name in parts for k, part in enumerate(parts[name])}
    assets = "".join(f'<mesh name="{k}" vertex="{" ".join(f"{x:.9g}" for x in v.ravel())}"/>' for k, v in written.items())
    geoms = {
        name: "".join(f'<geom type="mesh" mesh="{name}{k}" mass="0" friction="0.01" {bits}/>' for k in range(len(parts[name])))
        for name, bits in (("bolt", 'contype="1" conaffinity="2"'), ("nut", 'contype="2" conaffinity="1"'))
    }
    vertices, faces = nut()
    assets += f'<mesh name="nut" vertex="{" ".join(f"{x:.9g}" for x in np.ravel(vertices))}" '
    assets += f'face="{" ".join(map(str, np.ravel(faces)))}"/>'
    weight = '<geom type="mesh" mesh="nut" mass="0.1" contype="0" conaffinity="0"/>'
    body = f'<body pos="0 0 0.024"><freejoint/>{weight}{geoms["nut"]}</body>'
    option = f'<option timestep="{STEP}" cone="elliptic"/>'
    return f"<mujoco>{option}<asset>{assets}</asset><worldbody>{geoms['bolt']}{body}</worldbody></mujoco>"


def bolt() -> Surface:
    radii, heights = thread(6)
    axis = np.zeros((len(radii), 1))
    return turned(np.hstack([axis, radii, axis]), np.concatenate([heights[:1], heights, heights[-1:]]))


def nut() -> Surface:
    radii, heights = thread(2)
    outside = np.full((len(radii), 1), 0.02)
    return turned(np.hstack([outside, outside, radii[:, ::-1] + PLAY]), np.concatenate([heights[[0, -1]], heights[::-1]]))


CUP = profile((0, 0), (40, 0), (40, 100), (36, 100), (36, 4), (0, 4))
BLOCK = profile((10, 0), (40, 0), (40, 50), (10, 50))


@dataclass(frozen=True)
class Scene:
    """A scene as MJCF with {kind} in place of the type of geoms with meshes, and what is measured of its end."""

    meshes: dict[str, Surface]
    bodies: str
    result: Callable[[Array, Array], str]  # of qpos at the start and at the end

    def mjcf(self, kind: str) -> str:
        assets = "".join(
            f'<mesh name="{name}" vertex="{" ".join(f"{x:.9g}" for x in np.ravel(v))}" '
            f'face="{" ".join(map(str, np.ravel(f)))}"/>'
            for name, (v, f) in self.meshes.items()
        )
        option = f'<option timestep="{STEP}" cone="elliptic" sdf_iterations="20" sdf_initpoints="40"/>'
        bodies = self.bodies.format(kind=kind)
        return f"<mujoco>{option}<asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>"


def height(start: Array, end: Array) -> str:
    return f"{1e3 * end[9]:.1f} mm"


def sunk(start: Array, end: Array) -> str:
    return f"{1e3 * (start[2] - end[2]):.1f} mm"


def lead(start: Array, end: Array) -> str:
    """Return the height that the nut loses in each turn; it turns by less than two turns."""
    turn = 2.0 * np.arctan2(end[6], end[3]) / (2.0 * np.pi)
    down = 1e3 * (start[2] - end[2])
    return f"{down:.2f} mm in {turn:.2f} turns"


SCENES = {
    "cup": Scene(
        {"cup": CUP},
        """<geom type="plane" size="1 1 1"/>
        <body><freejoint/><geom name="cup" type="{kind}" mesh="cup" mass="0.2"/></body>
        <body pos="0.005 0 0.12"><freejoint/><geom type="sphere" size="0.015" mass="0.03"/></body>""",
        height,
    ),
    "peg": Scene(
        {"block": BLOCK},
        """<geom type="plane" size="1 1 1"/><geom name="block" type="{kind}" mesh="block"/>
        <body pos="0.0003 0 0.08"><freejoint/><geom type="cylinder" size="0.0095 0.03" mass="0.1"/></body>""",
        sunk,
    ),
    "nut": Scene(
        {"bolt": bolt(), "nut": nut()},
        """<geom name="bolt" type="{kind}" mesh="bolt" friction="0.01"/>
        <body pos="0 0 0.024"><freejoint/><geom name="nut" type="{kind}" mesh="nut" mass="0.1" friction="0.01"/></body>""",
        lead,
    ),
}


def ours(scene: Scene, decompose: bool | fw.Decomposition, text: str = "") -> list[str]:
    """Return the cells of our row; `text` is a scene in parts already."""
    robot = fw.load(text or scene.mjcf("mesh"), decompose=decompose)
    parts = sum(s.part_of is not None or (bool(text) and s.collision) for s in robot.shapes)
    sim = fw.Simulation(robot)
    start, half = sim.q.copy(), round(SECONDS / STEP / 2)
    try:
        sim.run(half * STEP)
        begun = time.process_time()
        sim.run(half * STEP)
        spent = 1e6 * (time.process_time() - begun) / half
    except fw.SimulationError as error:
        return [str(parts or "–"), f"refused: {error}".partition(";")[0][:80], "–"]
    order = fw.MujocoOrder(robot, mujoco.MjModel.from_xml_string(scene.mjcf("mesh")))
    ends = (np.asarray(order.state(q, np.zeros(robot.nv)).qpos) for q in (start, sim.q))
    return [str(parts or "–"), scene.result(*ends), f"{spent:.0f}"]


def theirs(scene: Scene, model: mujoco.MjModel) -> list[str]:
    """Return the cells of MuJoCo's row."""
    data = mujoco.MjData(model)
    start, half = data.qpos.copy(), round(SECONDS / STEP / 2)
    for _ in range(half):
        mujoco.mj_step(model, data)
    begun = time.process_time()
    for _ in range(half):
        mujoco.mj_step(model, data)
    spent = 1e6 * (time.process_time() - begun) / half
    return [scene.result(start, data.qpos), f"{spent:.0f}"]


def rows_of(name: str, scene: Scene, thresholds: Sequence[float], iterations: int) -> list[list[str]]:
    """Return the rows of a scene."""
    rows = [[name, "Featherweight, convex hulls", *ours(scene, False)]]
    for threshold in thresholds:
        begun = time.perf_counter()
        options = fw.Decomposition(threshold=threshold, iterations=iterations)
        cells = ours(scene, options)
        took = time.perf_counter() - begun
        rows.append([name, f"Featherweight, threshold {threshold:g}", *cells])
        print(f"{name}, threshold {threshold:g}: {took:.0f} s with its decomposition, unless it was kept", flush=True)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", fw.ModelWarning)  # of what MJCF cannot hold
            path = Path(folder) / "parts.xml"
            fw.read(scene.mjcf("mesh"), decompose=options).save(path)
            rows.append([name, "MuJoCo, the same parts", cells[0], *theirs(scene, mujoco.MjModel.from_xml_path(str(path)))])
    if name == "nut":
        cells = ours(scene, False, text := exact_nut())
        rows.append([name, "Featherweight, parts along the thread", *cells])
        rows.append([name, "MuJoCo, the same parts", cells[0], *theirs(scene, mujoco.MjModel.from_xml_string(text))])
    rows.append(
        [name, "MuJoCo, signed distance fields", "–", *theirs(scene, mujoco.MjModel.from_xml_string(scene.mjcf("sdf")))]
    )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=f"of {', '.join(SCENES)}; all by default")
    parser.add_argument("--thresholds", type=float, nargs="+", default=[0.05, 0.02])
    parser.add_argument("--iterations", type=int, default=60, help="of CoACD's search for each cut")
    options = parser.parse_args()
    rows = []
    for name in options.scenes or SCENES:
        rows += rows_of(name, SCENES[name], options.thresholds, options.iterations)
    print(markdown(["scene", "shapes", "parts", "result", "µs per step"], rows))
    print(f"\n{machine()}, MuJoCo {mujoco.__version__}")


if __name__ == "__main__":
    main()
