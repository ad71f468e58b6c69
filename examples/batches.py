"""Evaluate a million states at once: batches, out=, threads, float32, and files that are larger than memory.

    python examples/batches.py [--output output]        pip install 'featherweight[demo]'

The example evaluates forward dynamics of Panda one state at a time, in batches, and from files into a file. It processes files
in chunks, so only one chunk is in memory. The picture is batches.png.
"""

import os
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from guide_pictures import BLUE, COLORS, FAINT, GROUND, RED, output_folder, panels, save

import featherweight as fw

PANDA = "panda"
FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
STATES, TIMED, CHUNK, SINGLE = 1_000_000, 200_000, 20_000, 2_000


def states(robot, count, rng):
    """Return random q, v and tau (count, 7)."""
    v, tau = rng.standard_normal((2, count, robot.nv))
    return robot.random_configuration(rng=rng, size=count), v, 10.0 * tau


def seconds(call, times=20):
    """Return the time of the fastest call. The first call, which may compile, does not count."""
    call()
    best = np.inf
    for _ in range(times):
        begun = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begun)
    return best


def one_by_one(f, q, v, tau):
    for row in zip(q, v, tau, strict=True):
        f(*row)


def own_memory():
    """Return the memory of this process without mapped files [bytes]; 0 on systems other than Linux."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else ()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def through_files(robot, folder, count, rng):
    """Compute accelerations from files to a file in chunks; return the arrays on disk and the growth of memory."""
    shape = (count, robot.nv)
    files = {name: np.memmap(Path(folder, name), np.float32, "w+", shape=shape) for name in ("q", "v", "tau", "a")}
    grown, before = 0, own_memory()
    for k in range(0, count, CHUNK):
        rows = slice(k, k + CHUNK)
        for name, x in zip(("q", "v", "tau"), states(robot, len(files["q"][rows]), rng), strict=True):
            files[name][rows] = x
    for k in range(0, count, CHUNK):
        rows = slice(k, k + CHUNK)
        robot.forward_dynamics(files["q"][rows], files["v"][rows], files["tau"][rows], out=files["a"][rows])
        grown = max(grown, own_memory() - before)
    return files, grown


def solve(count=STATES):
    """Return µs per state by kind of call, errors of float32, the size of files and the growth of memory [bytes]."""
    rng = np.random.default_rng(0)
    robot = fw.build(fw.read(fw.example(PANDA)).locked(FINGERS))
    f, x = robot.forward_dynamics, states(robot, count, rng)
    exact = f(*x)
    error = abs(f(*(y.astype(np.float32) for y in x)) - exact).max(axis=1) / abs(exact).max(axis=1)
    first, x = [y[:SINGLE] for y in x], [y[:TIMED] for y in x]
    x32, n = [y.astype(np.float32) for y in x], len(x[0])
    out, out32 = np.empty((n, robot.nv)), np.empty((n, robot.nv), np.float32)
    ways = {
        "single calls": seconds(lambda: one_by_one(f, *first)) / len(first[0]),
        "batch, one thread": seconds(lambda: f(*x, threads=1)) / n,
        "and out=": seconds(lambda: f(*x, out=out, threads=1)) / n,
        "and float32": seconds(lambda: f(*x32, out=out32, threads=1)) / n,
        f"and {os.cpu_count()} threads": seconds(lambda: f(*x32, out=out32)) / n,
    }
    with tempfile.TemporaryDirectory() as folder:
        files, grown = through_files(robot, folder, count, rng)
        size = sum(y.nbytes for y in files.values())
        again = robot.forward_dynamics(*(np.array(files[name][:1000]) for name in ("q", "v", "tau")))
        same = bool((again == files["a"][:1000]).all())
    return SimpleNamespace(microseconds={n: 1e6 * s for n, s in ways.items()}, error=error, size=size, grown=grown, same=same)


def main():
    output = output_folder(__doc__)
    found = solve()
    for name, t in found.microseconds.items():
        print(f"{name:20s}{t:9.4f} us per state")
    middle, most = np.median(found.error), found.error.max()
    print(f"error of float32 relative to the largest acceleration: {middle:.1e} (median), {most:.1e} (maximum)")
    print(f"{found.size / 1e6:.0f} MB of files, while memory grew by {found.grown / 1e6:.0f} MB; same bits: {found.same}")
    figure, (bars, errors) = panels(2, width_ratios=(1.3, 1.0))
    names = list(found.microseconds)
    drawn = bars.barh(names[::-1], list(found.microseconds.values())[::-1], color=(BLUE, COLORS[3], COLORS[2], RED, GROUND))
    bars.bar_label(drawn, fmt=" %.3g", fontsize=8.5, color=FAINT)
    bars.margins(x=0.15)
    bars.set(title="Forward dynamics of Panda, cumulative changes", xlabel="microseconds per state")
    errors.hist(np.log10(found.error), bins=60, color=BLUE)
    errors.set(title="Error of float32", xlabel="log₁₀ of error / largest acceleration", ylabel="states")
    save(figure, output / "batches.png")


if __name__ == "__main__":
    main()
