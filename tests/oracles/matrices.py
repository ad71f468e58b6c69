"""Matrices with the sparsity of a tree, products of known factors, on difficult trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from featherweight import generators
from featherweight.model.topology import Topology

Array = npt.NDArray[Any]


def symmetric(six: Any) -> Array:
    """Return the symmetric matrix of xx, xy, xz, yy, yz and zz."""
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def random_parents(n: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    return [int(rng.integers(-1, i)) for i in range(n)]


PARENTS: dict[str, list[int]] = {
    "one": [-1],
    "diagonal": [-1] * 6,
    "two": [-1, 0],
    "binary": [-1, 0, 0, 1, 1, 2, 2],  # figure 1
    "expanded": [-1, 0, 1, 2, 1, 3, 3, 4, 7, 8, 4],  # figure 2
    "unlike_siblings": [-1, 0, 1, 2, 0, 4, 0, 4, 7, 7],
    "star": [-1] + [0] * 7,
    "interleaved": [-1, -1, 0, 1, 2, 3, 4, 5],
    "chain_on_a_star": [-1, 0, 0, 0, 0, 0, 2, 6, 7, 8],
    "star_on_a_chain": [-1, 0, 1, 2, 3, 3, 3, 3],
    "unbranched": generators.unbranched_parents(9),
    "side_branches": generators.short_side_branches_parents(5),
    "balanced": generators.balanced_tree_parents(4),
    "grid": generators.span_grid_parents(4),
    **{f"random_{n}_{seed}": random_parents(n, seed) for n, seed in ((3, 0), (5, 1), (8, 2), (13, 3), (21, 4))},
}
DOUBLE, SINGLE = float(np.finfo(np.float64).eps), float(np.finfo(np.float32).eps)
BATCH = (3, 2)


def pattern(parent: Sequence[int]) -> Array:
    """Return the pattern of L."""
    tree = Topology(parent)
    allowed = np.zeros((len(parent), len(parent)), dtype=bool)
    for i in range(len(parent)):
        allowed[i, list(tree.support(i))] = True
    return allowed


def sample(parent: Sequence[int], batch: tuple[int, ...] = BATCH, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return H, L and D, whose product is exact to rounding; they are well conditioned, so that rounding stays small."""
    rng, n = np.random.default_rng(seed), len(parent)
    L = np.where(pattern(parent), rng.uniform(-1.0, 1.0, (*batch, n, n)) / np.sqrt(n), 0.0)
    L[..., range(n), range(n)] = 1.0
    D = rng.uniform(0.5, 2.0, (*batch, n))
    H = np.swapaxes(L, -1, -2) @ (D[..., None] * L)
    return np.where(pattern(parent) | pattern(parent).T, H, 0.0), L, D


def vectors(parent: Sequence[int], shape: tuple[int, ...] = BATCH) -> Array:
    return np.random.default_rng(1).standard_normal((*shape, len(parent)))


def close(x: Any, y: Any, eps: float = DOUBLE) -> None:
    """Compare to some hundred roundings; condition numbers of matrices here are below a hundred."""
    np.testing.assert_allclose(x, y, rtol=200 * eps, atol=200 * eps)
