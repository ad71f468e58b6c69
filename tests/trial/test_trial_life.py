"""Tests of long-lived processes: a million calls, robots created and deleted, forks, threads, signals, and early exits."""

from __future__ import annotations

import gc
import multiprocessing
import operator
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from children import holds, started_child
from engine.interrupted import computed_after_ctrl_c
from engine.kernels import expected, swinging
from patience import PATIENCE
from trial.conftest import Rounds

CALLS = 1_000_000
ROBOTS = 100_000
KINDS = 40  # kinds of robots, whose code is compiled once
MEGABYTE = 1 << 20
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


def memory() -> int:
    """Return the memory of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def regions() -> int:
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


@linux
def test_a_million_calls_take_no_memory() -> None:
    robot = fw.build(fw.generators.chain(3))
    q = robot.neutral()
    Q, out, dynamics = np.zeros((4, 3)), np.zeros(3), robot.forward_dynamics

    def call(times: int) -> None:
        for _ in range(times):
            dynamics(q, q, q)
            dynamics(q, q, tau=[0.0, 0.0, 0.0], out=out)
            dynamics(Q, q, q)

    call(1000)
    before = memory()
    call(CALLS // 3)
    assert memory() - before < MEGABYTE


@linux
def test_robots_come_and_go(rounds: Rounds) -> None:
    """Build, call and delete robots with their code in one process: a hundred thousand if there is time."""
    before = (0, 0)
    for k, rng in enumerate(rounds(0.35, ROBOTS)):
        robot = fw.build(fw.generators.chain(1 + k % 4, rng=int(rng.integers(KINDS // 4))))
        q = robot.neutral()
        result = robot.forward_dynamics(q, q, q) if k % 2 else robot.inverse_dynamics(np.zeros((9, robot.nq)), q, q)
        assert np.isfinite(result).all()
        if k == 3 * KINDS:
            before = (memory(), regions())
        if before != (0, 0) and k % 100 == 0:
            assert memory() - before[0] < 64 * MEGABYTE and regions() - before[1] < 1000
    del robot
    gc.collect()


@linux
def test_code_for_which_the_system_has_no_more_room_is_memory_error() -> None:
    """Occupy all but a few of the memory regions of a process, which Linux limits to about 65,000."""
    script = """
import mmap
import numpy as np
import featherweight as fw

def maps():
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)

with open("/proc/sys/vm/max_map_count") as file:
    most = int(file.read())
robots = [fw.build(fw.generators.chain(2, rng=seed)) for seed in range(60)]
robots[0].bias_force(np.zeros(2), np.zeros(2))
taken, rights = [], (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)
try:
    while True:
        taken.append(mmap.mmap(-1, mmap.PAGESIZE, prot=rights[len(taken) % 2]))
except OSError:
    del taken[-60:]
failed = 0
for robot in robots:
    try:
        robot.bias_force(np.zeros(2), np.zeros(2))
    except MemoryError:
        failed += 1
del taken
assert robots[-1].bias_force(np.zeros(2), np.zeros(2)).shape == (2,)
print(failed)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert 0 < int(done.stdout) < 60


def run(script: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run a process with the helpers of this folder."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    }
    command = [sys.executable, "-X", "faulthandler", "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)


WORKING = """
import os, signal, sys, threading, time
import numpy as np
from engine.kernels import expected, swinging

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for processes in the background
n, way = int(sys.argv[1]), sys.argv[2]
f, x = swinging(n), np.linspace(-3, 3, n * 50_000).reshape(-1, n)

def work():
    while True:
        f(x, x, threads=2), f(x[0], x[0]), swinging(n % 7 + 2)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
print("working", flush=True)
time.sleep(float(sys.argv[3]))
if way == "exit":
    sys.exit(3)
if way == "_exit":
    os._exit(3)
if way == "raise":
    raise SystemExit(3)
os.kill(os.getpid(), getattr(signal, way))
time.sleep(30)
"""


SIGNALS = () if sys.platform == "win32" else ("SIGINT", "SIGTERM", "SIGKILL")


@pytest.mark.parametrize("way", ["exit", "_exit", "raise", *SIGNALS])
def test_processes_end_in_the_middle(way: str, rounds: Rounds) -> None:
    for rng in rounds(0.005, 50):
        done = run(WORKING, rng.integers(2, 9), way, rng.uniform(0, 0.3))
        status = 3 if not way.startswith("SIG") else -signal.SIGINT if way == "SIGINT" else -getattr(signal, way)
        assert done.returncode == status, done.stderr
        assert "Fatal" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_children_of_a_process_at_work_compute_too(rounds: Rounds) -> None:
    for rng in rounds(0.01, 200):
        n = int(rng.integers(2, 30))
        f, x = swinging(n), rng.standard_normal((20_000, n))
        wanted = expected(x, x)
        f(x, x)  # a fork during a compilation would copy locks of Python and LLVM that the child waits for
        ended = threading.Event()

        def work(f: Any = f, x: Any = x, ended: threading.Event = ended) -> None:
            while not ended.is_set():
                f(x, x, threads=2)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()

        def computes(f: Any = f, x: Any = x, wanted: Any = wanted) -> bool:
            return np.allclose(f(x, x, threads=3), wanted, atol=1e-12)

        children = [started_child(computes, int(PATIENCE)) for _ in range(3)]
        fine = [holds(child) for child in children]
        ended.set()
        for thread in threads:
            thread.join()
        assert all(fine)


def test_spawned_processes_compute_the_same_bits(rounds: Rounds) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for rng in rounds(0.005, 500):
            robot = fw.build(fw.generators.chain(int(rng.integers(1, 5)), rng=int(rng.integers(KINDS))))
            q = rng.standard_normal((6, 50, robot.nq))
            f = robot.together(robot.forward_dynamics, robot.mass_matrix) if rng.random() < 0.3 else robot.forward_dynamics
            jobs = pool.starmap_async(operator.call, [(f, *q[k : k + 3]) for k in range(4)])  # functions are pickled
            for k, theirs in enumerate(jobs.get(PATIENCE)):
                for a, b in zip(f(*q[k : k + 3]), theirs, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_threads_race_from_the_first_call_on(rounds: Rounds) -> None:
    for rng in rounds(0.02, 1000):
        robot = fw.build(fw.generators.chain(int(rng.integers(1, 5)), rng=int(rng.integers(KINDS))))
        q = rng.standard_normal((3, 40, robot.nq))
        wrong: list[BaseException] = []
        barrier = threading.Barrier(6)

        def work(k: int, robot: Any = robot, q: Any = q, wrong: list[Any] = wrong, barrier: Any = barrier) -> None:
            try:
                barrier.wait()
                one = robot.inverse_dynamics(*q[:, 0]) if k % 2 else robot.inverse_dynamics(*q)[0]
                single = robot.mass_matrix(q[0].astype(np.float32))
                np.testing.assert_array_equal(one, robot.inverse_dynamics(*q, threads=2)[0])
                assert single.dtype == np.float32
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_long_batch(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check interrupts at any time, and after a small part of the batch."""
    f, x = swinging(12), np.zeros((1_000_000, 12))
    f(x[:8], x[:8])
    for rng in rounds(0.01, 200):
        assert computed_after_ctrl_c(f, x, int(rng.integers(1, 4)), int(rng.integers(100)), monkeypatch) <= len(x) / 4
