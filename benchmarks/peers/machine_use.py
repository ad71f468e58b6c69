"""Use of the machine by batches of forward dynamics: share of the peak rate on one core, and gain by a second core.

    python benchmarks/peers/machine_use.py [--batch 4096] [--processes 7]

Operations are the multiplications and additions of one state, counted exactly. Sines, cosines, divisions and the movement of
rows take time but do not count. The peak is the rate of independent vector multiply-adds, two operations each, on the same
core. The addresses of memory change the rate of a process by 10 %, so numbers are medians over processes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

import numpy as np
from measure import FILES, ROBOTS, machine, markdown, median_times, peak_flops

import featherweight

LARGE = 65_536


def one_process(name: str, batch: int) -> list[float]:
    """Return rate and peak of one core [1/s], and the speedup by a second thread for `batch` and for many states."""
    file, base = FILES[name]
    robot = featherweight.load(ROBOTS / file, base, mimic="independent")
    fd = robot.forward_dynamics
    rng = np.random.default_rng(0)
    speedups = []
    rate = 0.0
    for states in (batch, LARGE):
        q = robot.random_configuration(rng=rng, size=states)
        v, tau = rng.standard_normal((2, states, robot.nv))
        out = np.empty_like(v)
        [one] = median_times([lambda: fd(q, v, tau, out=out, threads=1)], 0.6, 15)  # noqa: B023 - called at once
        [two] = median_times([lambda: fd(q, v, tau, out=out, threads=2)], 0.6, 15)  # noqa: B023
        speedups.append(one / two)
        rate = rate or fd.operations.flops * states / one
    peak = peak_flops()
    return [rate, statistics.median(peak() for _ in range(200)), *speedups]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--one", choices=list(FILES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(*one_process(options.one, options.batch))
        return
    rows = []
    for name in FILES:
        command = [sys.executable, __file__, "--one", name, "--batch", str(options.batch)]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(options.processes)]
        results = np.array([run.split() for run in runs], dtype=float)
        rate, peak, small, large = np.median(results, axis=0)
        shares = 100 * results[:, 0] / results[:, 1]
        share = f"{np.median(shares):.0f} % ({shares.min():.0f}–{shares.max():.0f})"
        rows.append([name, f"{rate / 1e9:.0f}", f"{peak / 1e9:.0f}", share, f"{small:.2f}", f"{large:.2f}"])
    print(f"{machine()}; medians over {options.processes} processes\n")
    header = ["robot", "rate [Gflop/s]", "peak rate [Gflop/s]", "share of peak (lowest–highest)"]
    header += [f"speedup by a second thread, {n} states" for n in (options.batch, LARGE)]
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
