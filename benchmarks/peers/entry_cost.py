"""Figures of the engine: the time to move rows relative to the arithmetic, and the errors of sine and cosine.

python benchmarks/peers/entry_cost.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from measure import FILES, ROBOTS, machine, markdown, median_times

import featherweight
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.spatial import sincos

POINTS = 20_000
RANGES: dict[str, Callable[[np.random.Generator], Any]] = {
    "abs x ≤ π/4": lambda rng: rng.uniform(-np.pi / 4, np.pi / 4, POINTS),
    "abs x ≤ 10": lambda rng: rng.uniform(-10, 10, POINTS),
    "abs x ≤ 1e5": lambda rng: rng.uniform(-1e5, 1e5, POINTS),
    "near kπ/2 ≤ 1e5": lambda rng: np.nextafter(
        rng.integers(-63_000, 63_000, POINTS) * (np.pi / 2), rng.choice([-np.inf, np.inf], POINTS)
    ),
    "1e5 to 1e15": lambda rng: 10 ** rng.uniform(5, 15, POINTS),
}


def both(x: Any, out: Any) -> None:
    """Write the sine and cosine of each element."""
    for i in range(len(x)):
        out[2 * i], out[2 * i + 1] = sincos(x[i])


def copied(x: Any, y: Any, z: Any, out: Any) -> None:
    """Read and write the rows of forward dynamics with almost no arithmetic."""
    for i in range(len(out)):
        out[i] = x[i] + y[i] + z[i]


def errors_in_ulp() -> list[list[str]]:
    """Return rows of the largest errors in each range, compared with mpmath at 200 bits."""
    mpmath.mp.prec = 200
    n = 8
    f = CompiledFunction(KernelProgram("both", both, (), (Input("x", (n,)),), (Output("out", (2 * n,)),)), "traced")
    rng = np.random.default_rng(0)
    rows = []
    for name, draw in RANGES.items():
        x = np.asarray(draw(rng))
        results = f(x.reshape(-1, n)).reshape(-1, 2)
        worst = []
        for column, exact in enumerate((mpmath.sin, mpmath.cos)):
            true = [exact(mpmath.mpf(float(a))) for a in x]
            ulp = np.spacing(np.abs(np.array(true, dtype=float)))
            error = [
                abs(mpmath.mpf(r) - t) / u for r, t, u in zip(results[:, column].tolist(), true, ulp.tolist(), strict=True)
            ]
            worst.append(f"{float(max(error)):.2f}")
        rows.append([name, *worst])
    return rows


def cost_of_rows(name: str, batch: int = 4096) -> list[str]:
    """Return the times of moving the rows alone, and of forward dynamics [µs per state]."""
    file, base = FILES[name]
    robot = featherweight.load(ROBOTS / file, base, mimic="independent")
    inputs = robot.forward_dynamics.program.inputs
    rows = CompiledFunction(KernelProgram("copied", copied, (), inputs, (Output("out", (robot.nv,)),)), "traced")
    q = robot.random_configuration(rng=0, size=batch)
    v, tau = np.random.default_rng(0).standard_normal((2, batch, robot.nv))
    out = np.empty_like(v)
    moved, whole = median_times(
        [lambda: rows(q, v, tau, out=out, threads=1), lambda: robot.forward_dynamics(q, v, tau, out=out, threads=1)], 2.0
    )
    share = moved / (whole - moved)
    return [name, f"{1e6 * moved / batch:.3f}", f"{1e6 * whole / batch:.3f}", f"{100 * share:.0f} %"]


def main() -> None:
    print(machine() + "\n")
    header = ["robot", "moving rows [µs per state]", "forward dynamics [µs per state]", "moving rows / arithmetic"]
    print(markdown(header, [cost_of_rows(n) for n in FILES]))
    print()
    print(markdown(["range", "error of sine [ulp]", "error of cosine [ulp]"], errors_in_ulp()))


if __name__ == "__main__":
    main()
