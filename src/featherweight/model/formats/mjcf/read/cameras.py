"""`<camera>` elements of MJCF files, from MuJoCo's compiled model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ....types import Camera, CameraMode, CameraSensor
from ...unsupported import tolerate
from ...xml import Names
from ..mujoco_types import MjModel
from ..numbers import as_pose


def read_cameras(model: MjModel, bodies: Sequence[str], source: str) -> Iterator[Camera]:
    """Yield all cameras, on bodies of these names.

    The compiled angles are in degrees, whatever the file's compiler setting.
    """
    names = Names(model.camera(k).name for k in range(model.ncam))
    for k in range(model.ncam):
        target = int(model.cam_targetbodyid[k])
        mode = MODES[int(model.cam_mode[k])]
        if target < 0 and mode in (CameraMode.TARGETBODY, CameraMode.TARGETBODYCOM):
            mode = CameraMode.FIXED  # MuJoCo does the same
        orthographic = bool(model.cam_projection[k] if hasattr(model, "cam_projection") else model.cam_orthographic[k])
        extent = float(model.cam_fovy[k])
        if extent <= 0.0:
            name = model.camera(k).name or f"number {k}"
            tolerate(
                f"{source}: camera '{name}'", f"its fovy is {extent:g}", "give a positive angle", f"taken as {USUAL_FOVY:g}"
            )
            extent = USUAL_FOVY
        sensor, resolution = None, (int(model.cam_resolution[k][0]), int(model.cam_resolution[k][1]))
        width, height = map(float, model.cam_sensorsize[k])
        if width > 0.0 and height > 0.0:
            fx, fy, cx, cy = map(float, model.cam_intrinsic[k])
            sensor = CameraSensor((width, height), (fx, fy), (cx, cy))
        yield Camera(
            model.camera(k).name or names.new(f"camera{k}"),
            bodies[model.cam_bodyid[k]],
            as_pose(model.cam_pos[k], model.cam_quat[k]),
            extent if orthographic else math.radians(extent),
            mode,
            bodies[target] if target >= 0 else None,
            sensor,
            None if resolution == ONE_PIXEL else resolution,
            orthographic,
        )


MODES = tuple(CameraMode)  # in the order of MuJoCo's numbers
USUAL_FOVY = 45.0  # [°] MuJoCo's default
ONE_PIXEL = (1, 1)  # MuJoCo's default
