"""Which pairs of shapes may be near, by spheres and boxes around them, for many states at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

PAD = 1e-9  # [m] what rounding may take from a distance
FEW = 32  # pairs that cost less as they are than boxes around them do


class BoundingVolumes(NamedTuple):
    """Of n geometries in their own frames: boxes along the axes, the spheres around their centres; planes have none."""

    center: Array  # (n, 3) [m]
    half: Array  # (n, 3) half of the box's lengths [m]
    radius: Array  # (n,) [m]
    plane: Array  # (n,) bool: the half space below z = 0


def bounding_volumes(geometries: Sequence[Any], planes: Sequence[bool]) -> BoundingVolumes:
    """Those of coal's geometries."""
    n, plane = len(geometries), np.array(planes, dtype=bool)
    low, high, radius = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n)
    for k in np.flatnonzero(~plane).tolist():
        box = geometries[k].aabb_local
        low[k], high[k], radius[k] = box.min_, box.max_, geometries[k].aabb_radius
    return BoundingVolumes(0.5 * (low + high), 0.5 * (high - low), radius, plane)


def near_pairs(volumes: BoundingVolumes, placement: Array, pairs: Array, reach: float) -> tuple[Array, Array]:
    """For placements (states, n, 4, 4) and `pairs` (p, 2) of geometries: the states (k,) and the pairs (k,) that may be within
    `reach` [m] of each other, in order."""
    frames = np.ascontiguousarray(placement[:, :, :3].transpose(1, 2, 3, 0))  # (n, 3, 4, states): states side by side
    c, reach = volumes.center[..., None, None], reach + PAD
    center = frames[:, :, 3] + c[:, 0] * frames[:, :, 0] + c[:, 1] * frames[:, :, 1] + c[:, 2] * frames[:, :, 2]
    i, j = pairs.T
    flat = volumes.plane[i] | volumes.plane[j]
    gap = center[i] - center[j]
    most = np.where(flat, np.inf, (volumes.radius[i] + volumes.radius[j] + reach) ** 2)
    within = gap[:, 0] ** 2 + gap[:, 1] ** 2 + gap[:, 2] ** 2 <= most[:, None]
    state, pair = np.nonzero(np.ascontiguousarray(within.T))
    if len(state) < FEW or reach == np.inf:
        return state, pair
    keep, plane = np.empty(len(state), dtype=bool), flat[pair]
    for test, chosen in ((_boxes_meet, ~plane), (_box_reaches_plane, plane)):
        if not chosen.any():
            continue
        numbers, at = pairs[pair[chosen]].T, state[chosen]
        one, other = (_boxes(volumes, placement[at, k], k) for k in numbers)
        keep[chosen] = test(one, other, volumes.plane[numbers[0]], reach)
    return state[keep], pair[keep]


class _Boxes(NamedTuple):
    """In the world, k of them."""

    axes: Array  # (3, 3, k) columns are the axes
    center: Array  # (3, k)
    half: Array  # (3, k)


def _boxes(volumes: BoundingVolumes, placement: Array, number: Array) -> _Boxes:
    """Those of k geometries by their numbers, at placements (k, 4, 4)."""
    axes = np.ascontiguousarray(placement[:, :3].transpose(1, 2, 0))
    c = volumes.center[number].T
    return _Boxes(axes[:, :3], axes[:, 3] + np.einsum("xak,ak->xk", axes[:, :3], c), volumes.half[number].T)


def _boxes_meet(one: _Boxes, other: _Boxes, _: Array, reach: float) -> Array:
    """Whether no face of either box separates them (Gottschalk, Lin and Manocha 1996, without the pairs of edges)."""
    between = other.center - one.center
    turn = np.abs(np.einsum("xak,xbk->abk", one.axes, other.axes))
    by_one = one.half + np.einsum("abk,bk->ak", turn, other.half) + reach
    by_other = other.half + np.einsum("abk,ak->bk", turn, one.half) + reach
    apart = np.abs(np.einsum("xk,xak->ak", between, one.axes)) > by_one
    apart |= np.abs(np.einsum("xk,xak->ak", between, other.axes)) > by_other
    return np.asarray(~apart.any(axis=0))


def _box_reaches_plane(one: _Boxes, other: _Boxes, first: Array, reach: float) -> Array:
    """Of which the first, or else the other, is the plane."""
    normal = np.where(first, one.axes[:, 2], other.axes[:, 2])
    height = np.where(first, 1.0, -1.0) * np.einsum("xk,xk->k", other.center - one.center, normal)
    down = [np.einsum("ak,ak->k", np.abs(np.einsum("xk,xak->ak", normal, box.axes)), box.half) for box in (one, other)]
    return np.asarray(height - down[0] - down[1] <= reach)  # a plane's half lengths are zero
