"""Views of numbers, and sums of rows, in Python; writers of compiled kernels translate them separately."""

from __future__ import annotations

from collections.abc import Sequence

from ...array_types import Matrix, Vector

LANES = 8  # numbers that `subtract_multiples` and `sum_of_products` process at a time
TILE = 6  # target rows that `subtract_product` keeps in registers


def as_matrix(numbers: Vector, rows: int, columns: int) -> Matrix:
    """Return the first numbers (float64, contiguous) as a matrix (rows, columns), without a copy."""
    return numbers[: rows * columns].reshape(rows, columns)


def subtract_multiples(
    numbers: Vector,
    target: int,
    source: int,
    stride: int,
    length: int,
    factors: Sequence[float],
    from_zero: bool = False,
) -> None:
    """Compute numbers[target + j] -= sum of factors[k] numbers[source + k stride + j], j < length, a multiple of `LANES`.

    The target must not overlap the sources. With `from_zero`, it starts as zeros.
    """
    into = numbers[target : target + length]
    if from_zero:
        into[:] = 0.0
    for k, factor in enumerate(factors):
        into -= factor * numbers[source + k * stride : source + k * stride + length]


def subtract_product(
    numbers: Vector,
    target: tuple[int, int],
    source: tuple[int, int],
    factors: tuple[int, int, int],
    sizes: tuple[int, int, int],
    from_zero: bool = False,
) -> None:
    """Subtract a product of matrices: target row i -= sum of factor (i, k) times source row k.

    `target` and `source` are the places of the first rows, and the distances to the next ones. `sizes` are the number of target
    rows, the length of rows, a multiple of `LANES`, and the number of source rows. `factors` are the place of factor (0, 0)
    and the distances to factors (1, 0) and (0, 1). Target rows must not overlap each other, the sources or the factors. With
    `from_zero`, they start as zeros.
    """
    (into, stride), (begin, step), (at, across, along), (rows, length, count) = target, source, factors, sizes
    for i in range(rows):
        row = numbers[into + i * stride : into + i * stride + length]
        if from_zero:
            row[:] = 0.0
        for k in range(count):
            row -= numbers[at + i * across + k * along] * numbers[begin + k * step : begin + k * step + length]


def sum_of_products(a: Vector, at: int, b: Vector, begin: int, length: int) -> float:
    """Return the sum of a[at + j] b[begin + j], j < length, a multiple of `LANES`.

    It is computed as `LANES` partial sums, which are added by halves.
    """
    sums = (a[at : at + length] * b[begin : begin + length]).reshape(-1, LANES).sum(axis=0)
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    return float(sums[0])


def lane() -> int:
    """Return the number of the lane that executes the kernel; 0 if one robot is computed at a time."""
    return 0


def lanes() -> int:
    """Return the number of lanes that execute the kernel side by side; 1 if one robot is computed at a time."""
    return 1


def first_of_lanes(x: int) -> int:
    """Return the number x of the first active lane: x if one robot is computed at a time.

    All lanes read an element of an interleaved array at this index by one instruction. Lanes with other numbers wait:

        waits = True
        while waits:
            i = first_of_lanes(number)
            if i == number:
                ...
                waits = False
    """
    return x
