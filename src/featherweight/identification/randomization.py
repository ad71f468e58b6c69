"""Random, physically consistent inertias around those of a robot, for domain randomisation."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from ..array_types import Array
from ..checks import Kind, NonNegative, Refused, SeedOrNone, Size, checked, numbers
from ..model.configuration import shape_of
from ..robot.robot import Robot
from .consistency import SLIGHT, parameters_of, pseudo_inertia


def _range(x: Any) -> tuple[float, ...]:
    made: tuple[float, ...] = numbers(2).convert(x)
    if not 0.0 < made[0] <= made[1] < np.inf:
        raise Refused
    return made


Range = Annotated[tuple[float, float], Kind("two positive numbers, the least and the greatest", _range)]


@checked
def random_parameters(
    robot: Robot,
    size: Size = None,
    *,
    mass: Range = (0.8, 1.2),
    center: NonNegative = 0.1,
    lengths: Range = (1.0, 1.0),
    rng: SeedOrNone = None,
) -> Array:
    """Return random inertial parameters (*size, nbodies, 10) around the robot's, uniform and independent for each body.

    A body's density, and with it its inertia, is multiplied by a factor from `mass`. Its mass is moved along the principal
    axes, by up to `center` times the half lengths of the box of uniform density with the same inertia. It is stretched along
    these axes about its centre by factors from `lengths`, one for each axis. Consistent inertias remain consistent, because P
    becomes s H P Hᵀ with an affine map H of space (`pseudo_inertia`). Bodies without mass do not change. Physically impossible
    inertias, for example in planar models, are stretched equally along all axes.

    Raises ValueError for ranges that are not pairs of ascending positive numbers, and for a negative `center`.
    """
    rng = np.random.default_rng(rng)
    P = pseudo_inertia(robot.inertial_parameters)
    m = P[:, 3, 3]
    c = P[:, :3, 3] / np.where(m > 0.0, m, 1.0)[:, None]
    moments, axes = np.linalg.eigh(P[:, :3, :3] - m[:, None, None] * c[:, :, None] * c[:, None, :])
    variances = np.maximum(moments, 0.0) / np.where(m > 0.0, m, 1.0)[:, None]
    half_lengths = np.sqrt(3.0 * variances)  # the variance of a box is a third of the squared half length
    shape = (*shape_of(size), len(m))
    stretch, shift = rng.uniform(*lengths, (*shape, 3)), center * half_lengths * rng.uniform(-1.0, 1.0, (*shape, 3))
    odd = moments[:, 0] < -SLIGHT * moments[:, 2]
    stretch[..., odd, :] = stretch[..., odd, :1]
    H = np.zeros((*shape, 4, 4))
    H[..., :3, :3] = axes * stretch[..., None, :] @ np.swapaxes(axes, -1, -2)
    H[..., :3, 3] = c + (axes @ shift[..., None] - H[..., :3, :3] @ c[..., None])[..., 0]
    H[..., 3, 3] = 1.0
    factor = rng.uniform(*mass, shape)[..., None, None]
    return parameters_of(factor * (H @ P @ np.swapaxes(H, -1, -2)))
