"""Types of MuJoCo's objects, for annotations. MuJoCo is imported only when a file is read."""

from __future__ import annotations

from types import ModuleType as Mujoco  # the package itself
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mujoco import MjModel, MjsGeom, MjsHField, MjsMesh, MjSpec, MjsSensor
else:
    MjModel = MjsGeom = MjsHField = MjsMesh = MjSpec = MjsSensor = Any

__all__ = ["MjModel", "MjSpec", "MjsGeom", "MjsHField", "MjsMesh", "MjsSensor", "Mujoco"]
