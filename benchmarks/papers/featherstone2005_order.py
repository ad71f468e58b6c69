"""Featherstone (2005), sections 2 and 3: the order of rows in a factorization, and the accuracy of the factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mechanisms import CHAIN, HUMANOID, floating
from report import Report
from scipy.linalg import cho_factor, cho_solve

from featherweight import Factorization, Robot, build, generators, ltdl, ltl
from featherweight.model.topology import Topology

Array = np.ndarray[Any, np.dtype[Any]]
Parent = Sequence[int]

TREE1 = (-1, 0, 0, 1, 1, 2, 2)  # figure 1
CONFIGURATIONS = 400
METHODS = ("LTL", "LTDL", "Cholesky")


def robots() -> dict[str, Robot]:
    """Return robots from many zeros of the inertia matrix to none."""
    return {
        "balanced tree of 63": build(generators.balanced_tree(6)),
        "spanning tree of a grid of 64": build(generators.span_grid(8)),
        "short side branches, 32": build(generators.short_side_branches(16)),
        "humanoid of section 6": build(floating(HUMANOID)),
        "chain of section 6": build(floating(CHAIN)),
    }


# the order of rows


class Sizes(NamedTuple):
    """Entries on and below the diagonal that are not zero, and the multiplications of a factorization that fills them in."""

    entries: int
    multiplications: int


def pattern(parent: Parent) -> Array:
    """Return where the matrix of a tree has entries."""
    tree, n = Topology(parent), len(parent)
    full = np.zeros((n, n), dtype=bool)
    for i in range(n):
        path = list(tree.support(i))
        full[i, path] = full[path, i] = True
    return full


def cholesky_sizes(full: Array) -> Sizes:
    """Return the sizes of the factor L of L L^T, by symbolic elimination from the first row."""
    filled = full.copy()
    multiplications = 0
    for k in range(len(filled)):
        rows = k + 1 + np.flatnonzero(filled[k + 1 :, k])
        filled[np.ix_(rows, rows)] = True
        multiplications += len(rows) * (len(rows) + 1) // 2
    return Sizes(int(np.tril(filled).sum()), multiplications)


# accuracy


class Errors(NamedTuple):
    """Median errors by method, in units of 2^-53."""

    solutions: dict[str, float]
    factors: dict[str, float]


def residual(H: Array, L: Array, D: Array | float) -> float:
    """Return the norm of H - L^T D L relative to that of H, computed with more digits."""
    L, exact = L.astype(np.longdouble), H.astype(np.longdouble)
    return norm(exact - L.T @ (np.asarray(D)[..., None] * L)) / norm(exact)


def norm(x: Array) -> float:
    return float(np.linalg.norm(x.astype(float)))


def refined(H: Array, F: Factorization, b: Array) -> Array:
    """Return H^-1 b with more digits, by iterative refinement."""
    exact = H.astype(np.longdouble)
    x = F.solve(b).astype(np.longdouble)
    for _ in range(5):
        x = x + F.solve((b - exact @ x).astype(float))
    return x


def errors(robot: Robot, configurations: int) -> Errors:
    """Return errors of factors and solutions for the inertia matrix at random configurations and random right-hand sides."""
    parent, rng = robot.model.tree.parent, np.random.default_rng(0)
    solutions, factors = ({name: list[float]() for name in METHODS} for _ in range(2))
    for H in robot.mass_matrix(robot.random_configuration(rng=rng, size=configurations)):
        b = rng.standard_normal(len(H))
        root, unit, dense = ltl(H, parent), ltdl(H, parent), cho_factor(H, lower=True)
        x = refined(H, unit, b)
        found: dict[str, tuple[Array, Array, Array | float]] = {
            "LTL": (root.solve(b), root.L, 1.0),
            "LTDL": (unit.solve(b), unit.L, unit.D),
            "Cholesky": (cho_solve(dense, b), np.tril(dense[0]).T, 1.0),
        }
        for name, (y, L, D) in found.items():
            solutions[name].append(norm(y - x) / norm(x))
            factors[name].append(residual(H, L, D))
    medians = ({name: float(np.median(e)) * 2.0**53 for name, e in each.items()} for each in (solutions, factors))
    return Errors(*medians)


def accuracy(report: Report) -> None:
    report.heading("Section 2: accuracy of the factors")
    report.text(
        f"""The paper compares with MATLAB's Cholesky factorization in words: sparse factors are slightly more accurate on
        matrices with many zeros, slightly less on matrices with few. The table has medians for {CONFIGURATIONS} random
        configurations, in units of 2⁻⁵³: the relative error of H⁻¹ b, and the residual of the factors relative to H. Cholesky
        is LAPACK's `dpotrf` and `dpotrs`."""
    )
    rows: list[list[object]] = []
    better, smaller = [], 0
    for name, robot in robots().items():
        found = errors(robot, CONFIGURATIONS)
        zeros = f"{100 * (1 - pattern(robot.model.tree.parent).mean()):.0f} %"
        ratio = found.solutions["LTDL"] / found.solutions["Cholesky"]
        better += [f"the {name} ({zeros} zeros)"] if ratio < 1 else []
        smaller += found.factors["Cholesky"] < min(found.factors[x] for x in METHODS[:2])
        cells = [f"{each[x]:.3g}" for each in found for x in METHODS]
        rows.append([name, zeros, *cells[:3], f"{ratio:.2f}", *cells[3:]])
    header = ["matrix", "zeros by branches", *(f"{x}, solution" for x in METHODS), "LTDL to Cholesky"]
    report.table([*header, *(f"{x}, residual" for x in METHODS)], rows)
    report.text(
        f"""LTDL solves more accurately than Cholesky on {", ".join(better) or "none of these matrices"}. Cholesky's factors
        have the smaller residual on {smaller} of {len(rows)} matrices."""
    )
