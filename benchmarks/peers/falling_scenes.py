"""Scenes in which robots fall from the starting pose of their files: models of installed packages, and piles of boxes.

    pip install --no-deps mjlab gymnasium-robotics

A scene is an MJCF file as text, which both simulators load: semi-implicit Euler, steps of 5 ms, and a floor if the file has no
plane.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import featherweight as fw
from featherweight.array_types import Array

STEP = 5e-3  # [s]
FILES = {  # patterns of files of packages
    "gymnasium": [f"envs/mujoco/assets/{name}.xml" for name in ("ant", "humanoid", "humanoidstandup", "half_cheetah")]
    + ["envs/mujoco/assets/hopper.xml", "envs/mujoco/assets/walker2d.xml"],
    "mjlab": [f"asset_zoo/robots/*/xmls/{name}.xml" for name in ("go1", "g1", "yam")],
    "gymnasium_robotics": ["envs/assets/hand/manipulate_block.xml", "envs/assets/fetch/pick_and_place.xml"],
}
HALF = 0.05  # [m] half an edge of a box
SQUARE = 25  # boxes in a layer of a pile


@dataclass(frozen=True)
class FallingScene:
    """A named scene as the text of an MJCF file with absolute names of meshes."""

    name: str
    text: str

    @classmethod
    def of_spec(cls, name: str, spec: Any, integrator: Any = mujoco.mjtIntegrator.mjINT_EULER) -> FallingScene:
        """Set the step and the integrator of a specification, and add a floor if it has no plane."""
        plane = mujoco.mjtGeom.mjGEOM_PLANE
        if not any(g.type == plane for g in spec.geoms):
            spec.worldbody.add_geom(type=plane, size=[0.0, 0.0, 1.0], name="added_floor")
        spec.option.timestep, spec.option.integrator = STEP, integrator
        spec.compile()
        return cls(name, spec.to_xml())

    @classmethod
    def of_file(cls, path: Path) -> FallingScene:
        """Load a file."""
        return cls.of_spec(path.stem, spec_of_file(path))

    @cached_property
    def mujoco_model(self) -> Any:
        return mujoco.MjModel.from_xml_string(self.text)

    def simulation(self, contact: str) -> fw.Simulation:
        """Return our simulation at the starting configuration of the file, with a contact law."""
        return fw.Simulation(fw.load(self.text, folder="/"), q="qpos0", contact=contact)

    def random_controls(self, rng: np.random.Generator, size: int) -> Array:
        """Draw controls within their ranges, for the actuators that one simulator has of the file."""
        limited, (low, high) = self.mujoco_model.actuator_ctrllimited, self.mujoco_model.actuator_ctrlrange.T
        low, high = np.where(limited, low, -1.0), np.where(limited, high, 1.0)
        return np.asarray(rng.uniform(low, high)[:size])


def spec_of_file(path: Path) -> Any:
    """Load an MJCF file, with absolute folders of meshes and textures."""
    spec = mujoco.MjSpec.from_file(str(path))
    for folder in ("meshdir", "texturedir"):
        setattr(spec.compiler, folder, str((path.parent / getattr(spec.compiler, folder)).resolve()))
    return spec


def folder_of(package: str) -> Path | None:
    """Return the folder of an installed package without an import."""
    found = find_spec(package)
    return Path(found.origin).parent if found and found.origin else None


def boxes(name: str, places: Iterable[tuple[float, float, float]], turned: float) -> FallingScene:
    """Return cubes of 1 kg at these places [m], rotated by random angles of this size [rad]."""
    spec, rng = mujoco.MjSpec(), np.random.default_rng(0)
    for i, place in enumerate(places):
        body = spec.worldbody.add_body(name=f"box {i}", pos=place, quat=[1.0, *(0.5 * turned * rng.standard_normal(3))])
        body.add_freejoint()
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[HALF] * 3, mass=1.0, name=f"box {i}")
    return FallingScene.of_spec(name, spec)


def stack(count: int) -> FallingScene:
    """Return a stack of boxes with initial gaps of a tenth of a millimetre."""
    return boxes(f"{count} boxes in a stack", [(0.0, 0.0, HALF + (2.0 * HALF + 1e-4) * i) for i in range(count)], 0.0)


def pile(count: int) -> FallingScene:
    """Return boxes that fall onto each other in layers, slightly rotated."""
    rng, side = np.random.default_rng(0), round(SQUARE**0.5)
    places = []
    for i in range(count):
        x, y, z = i % side, i // side % side, i // SQUARE
        places.append((2.6 * HALF * x + 0.02 * rng.random(), 2.6 * HALF * y + 0.02 * rng.random(), HALF * (1.5 + 3.4 * z)))
    return boxes(f"{count} boxes in a pile", places, 0.2)


def kick(sim: fw.Simulation, change: Array, start: Array) -> None:
    """Change the velocity, or reset to `start` if joints are too far beyond their limits for a new state."""
    try:
        sim.v = sim.v + change
    except ValueError:
        sim.reset(start, change)


def falling_scenes(files: Iterable[Path], only: str = "") -> Iterator[FallingScene]:
    """Yield scenes of installed packages, of these files, and piles of boxes, whose names contain `only`."""
    for package, patterns in FILES.items():
        folder = folder_of(package)
        files = [*files, *(path for p in patterns for path in (sorted(folder.glob(p)) if folder else ()))]
    yield from (FallingScene.of_file(path) for path in files if only in path.stem)
    yield from (scene for scene in (stack(20), pile(100)) if only in scene.name)
