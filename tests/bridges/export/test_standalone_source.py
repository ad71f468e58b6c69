"""Source of controllers: other compilers give the numbers of our own, without warnings and without errors at run time."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import featherweight as fw
from bridges.export.standalone_cases import CASES, Case, check
from bridges.export.standalone_programs import built_from_source, emulated
from bridges.export.test_standalone import needs_gcc
from featherweight.array_types import Array
from featherweight.engine.backends.llvm.jit import host
from featherweight.engine.loops.kernels import CompiledLoop, Table, compiled
from featherweight.engine.loops.standalone import ANY, Port, StandaloneLoop, Status
from featherweight.exporting.c_library import INCLUDES, MULADD, library_for
from featherweight.exporting.elf import Elf
from featherweight.exporting.standalone_header import standalone_header
from featherweight.exporting.standalone_source import standalone_source
from patience import PATIENCE

FUSED = ["-DFW_FMA", "-ffp-contract=off"]
SAME_BITS = ["-O2", *FUSED, "-fno-math-errno"]
SANITIZED = ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-lm"]
ROUNDING = 1e-5  # of the greatest result: iterations that end at their tolerances, up to 1e-6, amplify rounding
DECIDED_BY_ROUNDING = {  # differences of the greatest result without fused instructions
    "hopping leg",  # 5e-5: its speeds stay at their bounds
    "configurations",  # 5e-5: for poses out of reach, the last iterations end before the posture is at rest
    "steps of a simulation",  # 5e-3: where the box is at rest, rounding decides which side's gains a plan has, in Python, too
}
FROM_COMPILERS = {"memcpy", "memmove", "memset", "memcmp"}  # which compilers call for structs and arrays

pytestmark = needs_gcc


def processor() -> list[str]:
    """Return the options for fused instructions; skip the test where there are none."""
    if not host().fma:
        pytest.skip("needs a processor with fma")
    return ["-mfma"] if host().triple.startswith("x86_64") else []


@pytest.mark.parametrize("kind", CASES)
def test_the_source_gives_the_bits_of_python_without_a_library(kind: str, tmp_path: Path) -> None:
    case = CASES[kind]()
    fw.export(case.controller, tmp_path, name="leg", files="source")
    check(case, [str(built_from_source(tmp_path, "leg", *SAME_BITS, *processor()))])
    elf = Elf((tmp_path / "leg.o").read_bytes())
    assert {*elf.undefined} <= FROM_COMPILERS
    assert all(name.startswith("leg_") for name in elf.defined)
    assert not [s.name for s in elf.sections if s.flags & 1 and s.flags & 2 and s.size], "variables outside the workspace"
    assert (tmp_path / "leg.o").stat().st_size < 1 << 20


@pytest.mark.parametrize("kind", CASES)
def test_sanitizers_find_no_error(kind: str, tmp_path: Path) -> None:
    """Check also that results agree without fused instructions, where no bound becomes active by rounding."""
    case = CASES[kind]()
    fw.export(case.controller, tmp_path, name="leg", files="source")
    if kind in DECIDED_BY_ROUNDING:
        check(case, [str(built_from_source(tmp_path, "leg", *SANITIZED, *FUSED, *processor()))])
    else:
        check(case, [str(built_from_source(tmp_path, "leg", *SANITIZED))], ROUNDING)


@pytest.mark.parametrize("kind", ["inverse kinematics", "closed leg"])
def test_other_compilers_give_the_bits_of_this_processor_on_aarch64(kind: str, tmp_path: Path) -> None:
    if not host().fma:
        pytest.skip("needs a processor with fma")
    case = CASES[kind]()
    fw.export(case.controller, tmp_path, name="leg", files="source")
    check(case, emulated(tmp_path, "leg", *SAME_BITS))


def test_the_source_reads_like_the_kernel(tmp_path: Path) -> None:
    fw.export(CASES["inverse kinematics"]().controller, tmp_path, name="leg", files=("source", "object", "cmake"))
    text = (tmp_path / "leg.c").read_text()
    assert "static int64_t velocity_step(const VelocityStep *w, int64_t" in text
    assert "const int64_t count = a->size.at[0] - 1;" in text, "of active_set.drop"
    assert "for (int64_t j = leaving; j < count; j++) {" in text
    assert "/* Drop an active inequality; rotations make R triangular again" in text
    assert "add_library(leg STATIC leg.c)" in (tmp_path / "CMakeLists.txt").read_text()


class Pair(NamedTuple):
    """Two numbers."""

    first: float
    second: float


class Numbers(NamedTuple):
    """Arrays of several types, and numbers."""

    x: Array  # (n,)
    whole: Array  # (n,) int64
    short: Array  # (n,) int32
    single: Array  # (n,) float32
    flags: Array  # (n,) bool
    grid: Array  # (n, n)
    out: Array
    found: Array  # int64
    unread: int
    scale: float
    on: bool


def every_statement(t: Numbers, more: int) -> int:
    """Use the statements and expressions of kernels."""
    n = len(t.x)
    for i in range(n):
        t.whole[i] = (t.whole[i] // 3 + t.whole[i] % -4 + (t.whole[i] << 2) + (t.whole[i] >> 1)) ^ more
        t.short[i] += 2
        t.single[i] = t.single[i] * 0.1
        t.flags[i] = t.x[i] > 0.0 or (t.whole[i] > 2 and not t.flags[i])
    for i in reversed(range(1, n)):
        t.grid[i, 0] = np.minimum(t.x[i], t.x[i - 1]) - t.grid[i, i] * t.x[i]
    t.grid[0] = t.x
    t.grid[1, 1:] = 2.5
    part = t.grid[2, 1 : n - 1]
    for y in part:
        t.out[0] += y
    total, k = changed(t.out, 1), 0
    while True:
        k += 1
        if k % 2 == 0:
            continue
        total += between(Pair(t.scale, float(k)), t.x[k])
        if total > 3.0 or k > n - 3:
            break
    t.out[1] = total + changed(t.out, 2) * changed(t.out, 2)
    for place, factor in ((2, 0.5), (3, -1.5), (4, 2.0)):
        if t.x[place] < -0.5:
            continue
        if t.x[place] > 1.5:
            break
        t.out[2] += factor * t.x[place]
    t.out[3] = (1.0, t.scale, 2.0)[min(max(k, 0), 2)]
    t.out[4] = abs(t.x[0]) ** 0.5 + float(np.floor(t.x[1])) + float(np.ceil(t.x[2]))
    t.out[5] = np.sin(t.x[3]) * np.cos(t.x[4])
    t.found[0] = int(1e3 * t.x[0]) + abs(more - 5) + t.short[1] + int(t.on)
    t.found[1] = k if np.isfinite(t.out[5]) else -1
    return k


def changed(out: Array, by: int) -> float:
    """Change an array, and return a number of it."""
    out[6] += by
    return out[6]


def between(p: Pair, x: float) -> float:
    """Return x, or the nearer one of two numbers."""
    return p.first if x < p.first else p.second if x > p.second else x


def numbers() -> Numbers:
    """Return arrays with arbitrary content."""
    rng, n = np.random.default_rng(0), 6
    return Numbers(
        rng.standard_normal(n), np.arange(-3, n - 3), np.arange(n, dtype=np.int32), np.ones(n, np.float32), np.zeros(n, bool),
        rng.standard_normal((n, n)), np.zeros(7), np.zeros(2, np.int64), 4, 0.25, True,
    )  # fmt: skip


@pytest.mark.parametrize("flags", [SAME_BITS, SANITIZED], ids=["bits", "sanitized"])
def test_every_statement_of_kernels(flags: list[str], tmp_path: Path) -> None:
    """Compare with the machine code of the same kernel, and with plain Python."""
    fused = flags is SAME_BITS
    loop = CompiledLoop(every_statement, 1)
    own, other, plain = numbers(), numbers(), numbers()
    results = (own.x, own.grid, own.out, own.found, own.whole, own.flags)
    outputs = tuple(Port(f"y{k}", x, "", None, None, ANY) for k, x in enumerate(results))
    exported = StandaloneLoop(
        "All.", loop, (own,), (7,), (Port("x", own.x),), outputs, tuple(Status(k, f"S{k}", "words") for k in range(6)),
        valid=tuple(range(6)), names={"joint_names": ["a \"b\"?"]},
    )  # fmt: skip
    source = standalone_source("every", "/* every */", exported)
    (tmp_path / "every.c").write_text(source.text)
    (tmp_path / "every.h").write_text(standalone_header("every", "/* every */", exported, source.workspace))
    program = built_from_source(tmp_path, "every", *flags, *(processor() if fused else []))
    table = Table(other)
    made = loop.for_tables(table)(table.address, 7)
    expected = [other.x, other.grid, other.out, other.found, other.whole, other.flags]
    case = Case(_Given(exported), [{"x": numbers().x}], [expected], [made])
    check(case, [str(program)], 0.0 if fused else 1e-14)
    assert every_statement(plain, 7) == made
    np.testing.assert_array_equal(plain.found, other.found)
    np.testing.assert_allclose(plain.out, other.out, rtol=0, atol=1e-14)


class _Given(NamedTuple):
    """A controller whose kernel is given."""

    exported: StandaloneLoop

    def standalone(self) -> StandaloneLoop:
        return self.exported


def sines_and_cosines(x: Array, sine: Array, cosine: Array) -> None:
    for i in range(len(x)):
        sine[i], cosine[i] = np.sin(x[i]), np.cos(x[i])


ANGLES = """
#include <stdio.h>
int main(void)
{
    double x, both[2];
    while (fread(&x, sizeof x, 1, stdin) == 1) {
        fw_sincos(x, both, both + 1);
        fwrite(both, sizeof both, 1, stdout);
    }
    return 0;
}
"""


@pytest.mark.parametrize("fused", [True, False])
def test_sine_and_cosine_are_those_of_machine_code(fused: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(20000) * 10.0 ** rng.uniform(-10, 300, 20000)
    x = np.concatenate([x, rng.uniform(-2e5, 2e5, 20000), rng.uniform(-7, 7, 20000), [0.0, -0.0, np.inf, np.nan, 1e308, 1e5]])
    (tmp_path / "angles.c").write_text("\n".join([INCLUDES, MULADD, library_for("fw_sincos"), ANGLES]))
    flags = [*SAME_BITS, *processor()] if fused else ["-O2", "-ffp-contract=off"]
    subprocess.run(["gcc", "-std=c99", *flags, "angles.c", "-o", "angles", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "angles"], input=x.tobytes(), capture_output=True, check=True, timeout=PATIENCE)
    sine, cosine = np.frombuffer(done.stdout).reshape(-1, 2).T
    expected = np.empty_like(x), np.empty_like(x)
    compiled(sines_and_cosines)(x, *expected)
    for got, right in zip((sine, cosine), expected, strict=True):
        if fused:
            np.testing.assert_array_equal(got, right)
            assert np.signbit(got[-6]) == np.signbit(right[-6])
            assert np.signbit(got[-5]) == np.signbit(right[-5])
        else:
            np.testing.assert_allclose(got, right, rtol=3 * 2.0**-52, atol=0, equal_nan=True)
