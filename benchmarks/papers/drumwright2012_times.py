"""Times of the inverse inertia matrix, ours and LAPACK's, as JSON. The script drumwright2012.py starts it in its own process.

    OPENBLAS_NUM_THREADS=1 PYTHONPATH=benchmarks/peers python benchmarks/papers/drumwright2012_times.py

It needs its own process, because OpenBLAS reads its number of threads and selects its kernels when it is loaded. With one
thread, the script measures all algorithms; with more threads, only LAPACK.

LAPACK is called in its fastest way: our composite-rigid-body algorithm writes the full inertia matrix, which is symmetric and
so already in Fortran order; dpotrf and dpotri work in place, without copies. They compute one triangle of the inverse; our
inverse is full.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import median_times
from mechanisms import branched
from scipy.linalg import lapack

from featherweight import Robot, build, generators
from featherweight.engine.threads import processors

SIZES = (8, 16, 24, 32, 48, 64, 96, 128, 181, 256, 362, 512, 724, 1000, 1024, 1448)
CHAIN_LIMIT = 1024  # largest size for sparse factors: longer chains take seconds
SHARED_FROM = 128  # for smaller matrices, threads only wait for each other
THREADS = tuple(n for n in (2, 4) if n <= processors())  # figure 3, as far as this machine has processors

Array = np.ndarray[Any, np.dtype[np.float64]]
LOWER = 1  # triangle of the Fortran matrix; at least as fast as upper


class Case:
    """A robot, a configuration, and arrays for results."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.q = robot.random_configuration(rng=0)
        self.M: Array = np.empty((robot.nv, robot.nv))
        self.inverse: Array = np.empty((robot.nv, robot.nv))

    def form(self) -> None:
        self.robot.mass_matrix(self.q, out=self.M, threads=1)

    def factor(self) -> None:
        self.form()
        lapack.dpotrf(self.M.T, lower=LOWER, clean=0, overwrite_a=1)

    def lapack(self) -> None:
        self.factor()
        lapack.dpotri(self.M.T, lower=LOWER, overwrite_c=1)

    def lapack_inverse(self) -> Array:
        """Return LAPACK's inverse with both triangles, after a check that LAPACK worked in place in M."""
        self.form()
        M = self.M.copy()
        self.lapack()
        half: Array = np.tril(self.M.T)
        inverse: Array = half + np.tril(half, -1).T
        assert np.abs(M @ inverse - np.eye(len(M))).max() < 1e-6
        return inverse

    def ours(self, threads: int = 1) -> None:
        self.robot.inverse_mass_matrix(self.q, out=self.inverse, threads=threads)

    def sparse(self) -> None:
        self.robot.inverse_mass_matrix(self.q, out=self.inverse, threads=1, algorithm="crba-ltdl")


def rolled(n: int) -> Case:
    return Case(build(generators.chain(n), execution="rolled"))


def timed(calls: dict[str, Callable[[], None]]) -> dict[str, float]:
    return dict(zip(calls, median_times(list(calls.values())), strict=True))


def times(n: int) -> dict[str, float]:
    """Return the times of all algorithms for the inverse of a chain [s]."""
    case = rolled(n)
    case.lapack_inverse()
    calls: dict[str, Callable[[], None]] = {"form": case.form, "factor": case.factor, "lapack": case.lapack}
    shared = {f"{threads} threads": partial(case.ours, threads) for threads in THREADS}
    return timed(calls | {"ours": case.ours} | shared)


def sparse_times(n: int) -> dict[str, float]:
    """Return times by sparse factors, for a chain and for a branched tree, and ours for that tree [s]."""
    tree = Case(build(branched(n), execution="rolled"))
    calls = {"branched": tree.sparse, "ours branched": tree.ours}
    if n <= CHAIN_LIMIT:
        calls["serial"] = rolled(n).sparse
    return dict(zip(calls, median_times(list(calls.values()), 0.5, 20 if n <= 256 else 3), strict=True))


def main() -> None:
    found: dict[str, Any] = {}
    if os.environ["OPENBLAS_NUM_THREADS"] == "1":
        found["chain"] = {n: times(n) for n in SIZES}
        found["sparse"] = {n: sparse_times(n) for n in SIZES}
    else:
        found["lapack"] = {n: timed({"lapack": rolled(n).lapack})["lapack"] for n in SIZES if n >= SHARED_FROM}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
