"""Tests of machine code in the process: loaded once, freed with its functions, and errors if memory is exhausted."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from engine.kernels import swinging
from featherweight.engine import cache
from featherweight.engine.backends.llvm import emit, jit, loop
from featherweight.engine.function import CompiledFunction
from patience import PATIENCE


def memory_maps() -> int:
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


def test_equal_code_is_loaded_once() -> None:
    a, b, x = swinging(3), swinging(3), np.ones(3)
    assert np.array_equal(a(x, x), b(x, x))
    assert a.address == b.address


def called(n: int) -> CompiledFunction:
    """Return a function of n numbers after calls of all kinds."""
    f, x = swinging(n), np.ones((4, n))
    f(x, x), f(x[0], x[0]), f(x.astype("f"), x.astype("f"))
    return f


def test_code_goes_with_its_functions() -> None:
    called(16)  # loads what all functions share
    gc.collect()
    before = set(jit._loaded)
    f = called(17)  # a length that only this test compiles a function for
    its_own = [weakref.ref(code) for key, code in jit._loaded.items() if key not in before]
    assert its_own
    del f
    gc.collect()
    assert [code() for code in its_own if code() is not None] == []


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no list of memory maps")
def test_functions_that_come_and_go_take_no_memory() -> None:
    x, counts = np.ones((4, 7)), []
    for n in (3, 100):
        for k in range(n):
            f = swinging(2 + k % 6)
            f(x[:, : 2 + k % 6], x[:, : 2 + k % 6]), f(x[0, : 2 + k % 6], x[0, : 2 + k % 6])
        del f
        gc.collect()
        counts.append(memory_maps())
    assert counts[1] <= counts[0] + 8


def test_code_that_cannot_be_loaded_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    one = jit.compile_object("define i32 @one() {\nret i32 1\n}")
    assert jit.load_object(one, "one").address("one") != 0
    with pytest.raises(MemoryError, match=r"machine code of two: .*not found"):
        jit.Code(one, "two")
    calls = jit.compile_object("declare i32 @fw_nobody()\ndefine i32 @one() {\n%x = call i32 @fw_nobody()\nret i32 %x\n}")
    with pytest.raises(MemoryError, match="machine code of one"):
        jit.Code(calls, "one")
    assert "fw_nobody" in capfd.readouterr().err


FULL_ADDRESS_SPACE = """
import mmap
import numpy as np
import featherweight as fw

def taken(mib):
    return mmap.mmap(-1, int(mib * 2**20), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=0)  # MAP_NORESERVE

f, x = fw.build(fw.generators.unbranched(40)).forward_dynamics, np.ones((2, 40))
small = fw.build(fw.generators.unbranched(2)).forward_dynamics
small(x[0, :2], x[0, :2], x[0, :2])
below = [taken(mib) for mib in (64, 4, 1, 0.25) for _ in range(100)]  # fills what is free between libraries
holes = [taken(0.0625) for _ in range(100)]
gap = [taken(6 << 10) for _ in range(2)]
del holes[-60::2]  # which constants fit into, and code does not
print(np.isfinite(f(x, x, x)).all(), np.isfinite(f(x[0], x[0], x[0])).all())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="depends on the layout of Linux's address space")
def test_code_and_its_constants_stay_together_in_a_full_address_space(tmp_path: Path) -> None:
    there = {**os.environ, "FEATHERWEIGHT_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FULL_ADDRESS_SPACE], capture_output=True, text=True, env=there)
    assert done.stdout == "True True\n", done.stderr


WITHOUT_MEMORY = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from engine.kernels import swinging
from featherweight import build, generators
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input, KernelProgram, Output

def mixed(x, out):  # which has many values at hand between its parts
    n = len(x)
    y = [x[i] * x[i - 1] for i in range(n)]
    for i in range(n):
        out[0] = out[0] + y[i] * y[7 * i % n]

wide = CompiledFunction(KernelProgram("mixed", mixed, (), (Input("x", (6000,)),), (Output("out", ()),)), "traced")
x = np.ones(6000)
assert wide(x) == 6000
robot = build(generators.chain(60))
q, Q = robot.neutral(), np.zeros((64, 60))
f, out, OUT = robot.mass_matrix, np.zeros((60, 60)), np.zeros((64, 60, 60))
right = f(q).copy()
assert np.array_equal(f(Q)[-1], right)

with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]), resource.RLIM_INFINITY))
hog, size, ended = [], 1 << 20, 0
while size > 64:
    try:
        hog.append(bytearray(size))
    except MemoryError:
        size //= 2
for states, results in ((q, out), (Q, OUT), (q, None), (Q, None), (Q[::-1], OUT)):
    for _ in range(20):
        try:
            f(states, out=results)
        except MemoryError:
            ended += 1
try:
    swinging(9)(q[:9], q[:9])
except MemoryError:
    ended += 1
for _ in range(20):
    try:
        assert wide(x) == 6000
    except MemoryError:
        ended += 100
hog.clear()
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
assert np.array_equal(f(q), right) and np.array_equal(f(Q, out=OUT)[7], right)
print(ended)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a memory limit that all system calls respect")
@pytest.mark.parametrize("room", [0, 1 << 20])
def test_where_memory_ends_there_is_memory_error(room: int) -> None:
    command = [sys.executable, "-c", WITHOUT_MEMORY, str(Path(__file__).parents[3]), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000  # at least ten functions with a workspace too large for the stack; and others


@pytest.mark.parametrize("locked", [False, True])
def test_code_in_several_modules_is_the_same(locked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that modules compile in parallel, or one after the other if llvmlite has another structure than expected."""
    f, x = swinging(40), np.random.default_rng(0).standard_normal((9, 40))
    usual, one = f(x, x), f(x[0], x[0])
    counts: list[int] = []
    joined = jit.joined

    def join(objects: list[bytes]) -> bytes:
        counts.append(len(objects))
        return joined(objects)

    monkeypatch.setattr(jit, "joined", join)
    monkeypatch.setattr(cache, "read", lambda name: None)
    monkeypatch.setattr(emit, "PART", 50)
    monkeypatch.setattr(loop, "MODULE_BYTES", 1000)
    if locked:
        monkeypatch.setattr(jit, "_emit_without_lock", lambda: None)
    g = f.copy()
    np.testing.assert_array_equal(g(x, x), usual)
    np.testing.assert_array_equal(g(x[0], x[0]), one)
    assert len(counts) == 2
    assert min(counts) > 1


def test_llvmlite_is_as_it_is_known_to_be() -> None:
    assert jit._emit_without_lock() is not None
