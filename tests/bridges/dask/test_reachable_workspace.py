"""Tests that the example's counts are correct for its random states, for any division into chunks."""

from __future__ import annotations

import numpy as np
import pytest

dask = pytest.importorskip("dask")
pytest.importorskip("dask.array")
pytest.importorskip("distributed")
pytest.importorskip("matplotlib")

import reachable_workspace as example  # noqa: E402

import featherweight as fw  # noqa: E402

try:
    fw.example(example.TALOS)
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)

PORTIONS, BLOCKS = 9, 2  # more portions than one sum takes


def test_maps_are_counts_and_greatest_singular_volumes() -> None:
    robot = example.arm()
    with dask.config.set(scheduler="synchronous"):
        counts, best = dask.compute(*example.maps(robot, PORTIONS, BLOCKS))
    lower, upper = example.limits(robot)
    expected, volumes = np.zeros(counts.size), np.zeros(counts.size)
    for number in range(PORTIONS):
        share = np.random.default_rng([0, number]).random((BLOCKS * example.BLOCK, robot.nq), dtype=np.float32)
        q = lower + (upper - lower) * share
        cells = example.cells_of(robot.frame_placement(example.HAND)(q)[:, :3, 3])
        J = robot.frame_jacobian(example.HAND)(q.astype(float))[:, :3]  # in double precision, by another algorithm
        np.add.at(expected, cells, 1.0)
        np.maximum.at(volumes, cells, np.linalg.svd(J, compute_uv=False).prod(axis=-1))
    assert counts.shape == best.shape == example.CELLS and counts.sum() == PORTIONS * BLOCKS * example.BLOCK
    assert abs(counts.ravel() - expected).sum() <= 20  # a state on the wall between two cells may count in either
    np.testing.assert_allclose(best.ravel(), volumes, rtol=1e-3, atol=1e-4)  # singular states lose half the digits


def test_places_that_are_in_no_cell_are_told() -> None:
    with pytest.raises(ValueError, match="invalid entry"):
        example.cells_of(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -1.21]], np.float32))
