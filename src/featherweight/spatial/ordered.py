"""Linear algebra on arrays of matrices, with the same bits on every machine.

BLAS and LAPACK select their code, and with it the order of sums, by the processor. Here every sum has a fixed order. All other
operations are NumPy's arithmetic and square roots on single elements, which are correctly rounded. Leading axes are batches of
matrices. The functions serve the building of robots, for matrices of up to a few hundred rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray[Any, np.dtype[np.float64]]

SWEEPS = 60  # Jacobi's method converges quadratically after about five sweeps
SQUARE = 4e-15  # largest cosine between perpendicular columns
NOTHING = 1e-15  # relative to the longest column: length of dependent columns, due to rounding


def total(x: Array, axis: int = -1) -> Array:
    """Return the sum along an axis, from the first to the last."""
    if x.shape[axis] == 0:
        return np.zeros(np.delete(x.shape, axis))
    return np.asarray(np.add.accumulate(x, axis=axis).take(-1, axis))


def product(A: ArrayLike, B: ArrayLike) -> Array:
    """Return A B (..., m, n) for matrices A (..., m, k) and B (..., k, n)."""
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    if A.shape[-1] == 0:
        return np.zeros((*np.broadcast_shapes(A.shape[:-2], B.shape[:-2]), A.shape[-2], B.shape[-1]))
    result = A[..., :, 0, None] * B[..., None, 0, :]
    for k in range(1, A.shape[-1]):
        result += A[..., :, k, None] * B[..., None, k, :]
    return np.asarray(result)


def times(A: ArrayLike, x: ArrayLike) -> Array:
    """Return A x (..., m) for matrices A (..., m, n) and vectors x (..., n)."""
    return total(np.asarray(A, dtype=np.float64) * np.asarray(x, dtype=np.float64)[..., None, :])


def lengths(x: ArrayLike, axis: int = -1) -> Array:
    """Return Euclidean norms along an axis."""
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(np.sqrt(total(x * x, axis)))


def solved(A: Array, b: Array) -> Array:
    """Return the solution x (..., n) of A x = b for positive definite A (..., n, n), by L D Lᵀ."""
    A, x, n = A.copy(), b.copy(), b.shape[-1]
    for k in range(n - 1):
        column = A[..., k + 1 :, k] / A[..., k, k, None]
        A[..., k + 1 :, k + 1 :] -= column[..., :, None] * A[..., None, k + 1 :, k]
        x[..., k + 1 :] -= column * x[..., k, None]
        A[..., k + 1 :, k] = column
    x /= np.diagonal(A, axis1=-2, axis2=-1)
    for k in reversed(range(1, n)):
        x[..., :k] -= A[..., k, :k] * x[..., k, None]
    return x


class Singular(NamedTuple):
    """A = U diag(values) Vᵀ, values descending: `scaled` is U diag(values) (..., m, n) and `right` is V (..., n, n)."""

    values: Array
    scaled: Array
    right: Array


def singular(A: Array) -> Singular:
    """Return the singular value decomposition of matrices (..., m, n)."""
    *leading, m, n = A.shape
    unit = np.broadcast_to(np.eye(n), (*leading, n, n))
    whole = perpendicular(np.concatenate([A, unit], axis=-2), m)
    values = lengths(whole[..., :m, :], -2)
    order = np.argsort(-values, axis=-1, kind="stable")
    whole = np.take_along_axis(whole, order[..., None, :], axis=-1)
    return Singular(np.take_along_axis(values, order, axis=-1), whole[..., :m, :], whole[..., m:, :])


def perpendicular(A: Array, m: int) -> Array:
    """Return A times a rotation, for matrices (..., k, n), such that the first m rows have perpendicular columns.

    Jacobi's method rotates pairs of columns in their plane until they are perpendicular (Hestenes 1958); pairs have a fixed
    order. Columns that are only rounding errors are left unchanged. Perpendicular pairs are not rotated, so no matrix depends
    on others in its batch.
    """
    n = A.shape[-1]
    whole = np.concatenate([A, np.zeros((*A.shape[:-1], n % 2))], axis=-1)
    whole = np.ascontiguousarray(np.moveaxis(whole, -1, 0))  # one column after the other
    ring = list(range(len(whole)))
    for _ in range(SWEEPS):
        squares, turned = total(whole[..., :m] * whole[..., :m]), False
        floor = NOTHING * NOTHING * squares.max(axis=0)
        for _ in range(len(ring) - 1):
            half = len(ring) // 2
            turned |= _make_perpendicular(whole, squares, floor, m, ring[:half], ring[: half - 1 : -1])
            ring = [ring[0], ring[-1], *ring[1:-1]]
        if not turned:
            break
    return np.moveaxis(whole[:n], 0, -1)


def _make_perpendicular(whole: Array, squares: Array, floor: Array, m: int, left: list[int], right: list[int]) -> bool:
    """Rotate pairs of columns (n, ..., k), whose first m entries have these squared lengths.

    Returns whether any pair was rotated.
    """
    a, b, aa, bb = whole[left], whole[right], squares[left], squares[right]
    ab = total(a[..., :m] * b[..., :m])
    turns = (np.abs(ab) > SQUARE * np.sqrt(aa * bb)) & (np.minimum(aa, bb) > floor)
    if not turns.any():
        return False
    ab, away = np.where(turns, ab, 0.0), bb - aa
    length = np.abs(away) + np.sqrt(away * away + 4.0 * ab * ab)
    tangent = np.where(away < 0.0, -2.0, 2.0) * ab / np.where(turns, length, 1.0)
    squares[left], squares[right] = np.maximum(aa - tangent * ab, 0.0), np.maximum(bb + tangent * ab, 0.0)
    c = (1.0 / np.sqrt(1.0 + tangent * tangent))[..., None]
    s = c * tangent[..., None]
    whole[left], whole[right] = c * a - s * b, s * a + c * b
    return True


def singular_values(A: Array) -> Array:
    """Return the min(m, n) singular values of matrices (..., m, n), descending."""
    A = A if A.shape[-2] >= A.shape[-1] else A.swapaxes(-1, -2)
    return -np.sort(-lengths(perpendicular(A, A.shape[-2]), -2), axis=-1)


def pseudo_inverse(A: Array, precision: float = 1e-15) -> Array:
    """Return the pseudo-inverse (..., n, m); singular values below `precision` times the greatest count as zero."""
    if A.shape[-2] < A.shape[-1]:
        return pseudo_inverse(A.swapaxes(-1, -2), precision).swapaxes(-1, -2)
    values, scaled, right = singular(A)
    counts = values > precision * values.max(axis=-1, keepdims=True, initial=0.0)
    inverse = np.where(counts, 1.0 / np.where(counts, values, 1.0), 0.0)
    return product(right * inverse[..., None, :], (scaled * inverse[..., None, :]).swapaxes(-1, -2))
