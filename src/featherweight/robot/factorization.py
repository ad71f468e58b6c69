"""Sparse factors of symmetric positive-definite matrices with the sparsity of a tree."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from ..algorithms import ltdl as algorithms
from ..array_types import Array
from ..checks import ARRAY, argument, checked, list_of, whole
from ..engine.function import CompiledFunction
from ..engine.program import Input, KernelProgram, Output
from ..model.topology import Topology
from ..names import SuggestsNames

PARENT = list_of(whole()).worded("a list of whole numbers, the parent of each row, -1 for the ground")

Parents = Annotated[Sequence[int], PARENT]
Symmetric = Annotated[npt.ArrayLike, ARRAY._replace(error=TypeError)]


class Factorization(SuggestsNames):
    """H = Lᵀ D L (LTDL, unit diagonal of L) or H = Lᵀ L (LTL), batched (Featherstone 2005).

    Vectors are arrays (..., n), matrices of m columns are (..., n, m); leading axes broadcast with those of the factors. L has
    an entry (i, j) only if j is i or an ancestor of i.
    """

    def __init__(self, packed: Array, pattern: Pattern, unit: bool) -> None:
        """Take the rows of L from `packed` (..., entries), each from the diagonal to the root's column.

        D is on the diagonal if `unit`.
        """
        self.packed, self._pattern, self.unit = packed, pattern, unit
        if packed.ndim == 1:
            diagonal = packed[pattern.diagonal]
            pivots = diagonal.tolist()  # of a few numbers, Python's functions are faster than NumPy's
            positive = not pivots or (min(pivots) > 0.0 and sum(pivots) > 0.0)  # `min` may ignore NaN
        else:
            diagonal = self._diagonal
            positive = bool((diagonal > 0.0).all())
        if not positive:
            _require_positive(diagonal)

    @property
    def parent(self) -> tuple[int, ...]:
        """The parent of each row."""
        return self._pattern.parent

    @property
    def _diagonal(self) -> Array:
        """The stored diagonal (..., n)."""
        return self.packed.take(self._pattern.diagonal, -1)

    @property
    def L(self) -> Array:
        """The lower triangular factor (..., n, n)."""
        n = len(self.parent)
        L = np.zeros((*self.packed.shape[:-1], n, n), self.packed.dtype)
        L[..., self._pattern.rows, self._pattern.columns] = self.packed
        if self.unit:
            L[..., range(n), range(n)] = 1.0
        return L

    @property
    def D(self) -> Array:
        """The diagonal of D (..., n); ones for LTL."""
        return self._diagonal if self.unit else np.ones_like(self._diagonal)

    def logdet(self) -> Any:
        """The logarithm of the determinant of H (...)."""
        return np.log(self._diagonal).sum(axis=-1) * (1.0 if self.unit else 2.0)

    def solve(self, b: npt.ArrayLike) -> Array:
        """Return H⁻¹ b for vectors b (..., n)."""
        return self._product(algorithms.solve, b)

    def solve_columns(self, B: npt.ArrayLike) -> Array:
        """Return H⁻¹ B for matrices B (..., n, m)."""
        return self.columns(self.solve, B)

    def multiply(self, x: npt.ArrayLike) -> Array:
        """Return L x."""
        return self._product(algorithms.multiply, x)

    def multiply_transposed(self, x: npt.ArrayLike) -> Array:
        """Return Lᵀ x."""
        return self._product(algorithms.multiply_transposed, x)

    def divide(self, x: npt.ArrayLike) -> Array:
        """Return L⁻¹ x."""
        return self._product(algorithms.divide, x)

    def divide_transposed(self, x: npt.ArrayLike) -> Array:
        """Return L⁻ᵀ x."""
        return self._product(algorithms.divide_transposed, x)

    def columns(self, product: Callable[[npt.ArrayLike], Array], X: npt.ArrayLike) -> Array:
        """Apply one of this object's products to every column of matrices X (..., n, m)."""
        X = np.asarray(argument("matrices", X, ARRAY))
        if X.ndim < 2 or X.shape[-2] != len(self.parent):
            raise ValueError(f"matrices must have shape (..., {len(self.parent)}, m); got {X.shape}")
        each = Factorization.__new__(Factorization)  # shares the factors among the columns of a matrix
        each.packed, each._pattern, each.unit = self.packed[..., None, :], self._pattern, self.unit
        rows = getattr(each, product.__name__)(np.ascontiguousarray(np.swapaxes(X, -1, -2)))
        return np.swapaxes(rows, -1, -2)

    def _product(self, kernel: Callable[..., None], x: npt.ArrayLike) -> Array:
        result: Array = self._pattern.products[kernel, self.unit](self.packed, x)
        return result


@checked
def ltdl(H: Symmetric, parent: Parents, *, check: bool = True, threads: int | None = None) -> Factorization:
    """Factorize symmetric positive-definite matrices H (..., n, n) as H = Lᵀ D L (Featherstone 2005, appendix).

    `parent` defines the sparsity: H[i, j] below the diagonal may be nonzero only if j is an ancestor of i. parent[i] < i, and
    -1 is the ground; parent[i] = i - 1 allows all entries. Only the lower triangle is read. `check=False` skips the check of
    the sparsity. `threads` threads share a large batch; the default is one thread for each processor.

    Raises ValueError for an invalid parent array and for an entry outside the pattern. Raises numpy.linalg.LinAlgError, which
    names the row and the matrix, for a matrix that is not positive definite.
    """
    return _factorize(algorithms.ltdl, H, parent, True, check, threads)


@checked
def ltl(H: Symmetric, parent: Parents, *, check: bool = True, threads: int | None = None) -> Factorization:
    """Factorize symmetric positive-definite matrices as H = Lᵀ L (Featherstone 2005, section 2).

    The arguments are those of `ltdl`.
    """
    return _factorize(algorithms.ltl, H, parent, False, check, threads)


def _factorize(
    kernel: Callable[..., None], H: npt.ArrayLike, parent: Sequence[int], unit: bool, check: bool, threads: int | None
) -> Factorization:
    tree = Topology(parent).parent
    H = np.asarray(H)
    n = len(tree)
    if H.ndim < 2 or H.shape[-2:] != (n, n):
        raise ValueError(f"H must have shape (..., {n}, {n}), as parent has {n} entries; got {H.shape}")
    if H.dtype.kind not in "fiub":
        raise TypeError(f"H must hold real numbers; got dtype {H.dtype}")
    if check:
        _require_pattern(H, tree)
    packed = factors_function(kernel, tree)(H, threads=threads)
    return Factorization(np.asarray(packed), pattern_of(tree), unit)


def factors_function(kernel: Callable[..., None], parent: tuple[int, ...]) -> CompiledFunction:
    """Return the function of matrices that `ltdl` or `ltl` calls; it returns packed factors."""
    return _matrix_function(kernel, parent, (packed_size(parent),))


def packed_size(parent: tuple[int, ...]) -> int:
    """Return the number of entries of a factor that may be nonzero."""
    return len(pattern_of(parent).rows)


class Pattern:
    """Rows and columns of the entries of a packed factor, the numbers of those on the diagonal, and the products."""

    def __init__(self, parent: tuple[int, ...]) -> None:
        self.parent, tree = parent, Topology(parent)
        pairs = [(i, j) for i in range(len(parent)) for j in tree.support(i)[::-1]]
        self.rows, self.columns = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        self.diagonal = np.flatnonzero(self.rows == self.columns)
        self.products = _Products(self)

    def __reduce__(self) -> tuple[object, ...]:
        return pattern_of, (self.parent,)


class _Products(dict[tuple[Any, bool], CompiledFunction]):
    """Functions of factors and a vector, by kernel and whether the diagonal of L is unit, made when they are needed."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        self._pattern = pattern

    def __missing__(self, key: tuple[Any, bool]) -> CompiledFunction:
        (kernel, unit), n = key, len(self._pattern.parent)
        inputs = (Input("factors", (len(self._pattern.rows),)), Input("x", (n,)))
        constants = (self._pattern.parent, int(unit))
        program = KernelProgram(kernel.__name__, kernel, constants, inputs, (Output("y", (n,)),))
        return self.setdefault(key, CompiledFunction(program))


@functools.lru_cache(maxsize=256)
def pattern_of(parent: tuple[int, ...]) -> Pattern:
    """Return the pattern of a tree; there is one of each."""
    return Pattern(parent)


@functools.lru_cache(maxsize=256)
def _matrix_function(kernel: Callable[..., None], parent: tuple[int, ...], output: tuple[int, ...]) -> CompiledFunction:
    n = len(parent)
    return CompiledFunction(KernelProgram(kernel.__name__, kernel, (parent,), (Input("H", (n, n)),), (Output("out", output),)))


def _require_pattern(H: Array, parent: tuple[int, ...]) -> None:
    """Raise ValueError for matrices with nonzero entries outside the tree's pattern."""
    large = np.asarray(H, dtype=np.float64) * 1e150  # keeps squares of small entries from underflowing
    outside = np.atleast_1d(_matrix_function(algorithms.outside_pattern, parent, ())(large))
    if np.count_nonzero(outside) == 0:
        return
    where = tuple(int(k) for k in np.argwhere(outside)[0])
    matrix = H[where] if H.ndim > 2 else H
    tree = Topology(parent)
    for i in range(len(parent)):
        for j in set(range(i)) - set(tree.support(i)):
            if matrix[i, j] != 0.0:
                at = f" of matrix {where}" if H.ndim > 2 else ""
                raise ValueError(
                    f"H[{i}, {j}]{at} is {matrix[i, j]:.3g}, but {j} is not an ancestor of {i} in parent; "
                    "give a parent array that fits the zeros of H"
                )


def _require_positive(diagonal: Array) -> None:
    """Raise LinAlgError for factors with a pivot that is not positive, and name its row; elimination starts at the last row."""
    good = diagonal > 0.0
    if good.all():
        return
    *where, _ = (int(k) for k in np.argwhere(~good)[0])
    row = int(np.flatnonzero(~good[tuple(where)])[-1])
    at = f" of matrix {tuple(where)}" if where else ""
    raise np.linalg.LinAlgError(
        f"the matrix is not positive definite: the pivot of row {row}{at} is {diagonal[(*where, row)]:.3g}"
    )
