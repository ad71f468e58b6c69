"""Sine and cosine on SIMD lanes: accuracy against mpmath, special values, equal bits on any number of lanes."""

import ctypes
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf  # type: ignore[import-untyped]

from featherweight.engine.backends.llvm.ir import Type
from featherweight.engine.backends.llvm.trig import CONSTANTS, REACH, sincos_ir, sincos_name

Floats = npt.NDArray[Any]
SinCosFunction = Callable[[Floats], tuple[Floats, Floats]]

DTYPES: dict[str, type[Any]] = {"double": np.float64, "float": np.float32}
SMALL = {"double": 1e-300, "float": 1e-37}
QUARTER_TURNS = np.arange(63662) * (np.pi / 2)

# The bound in the docstring of trig.py, for |x| <= REACH.
BOUND = 1.7
# Beyond, the C library in double precision, whose own error glibc and musl keep below one unit.
BOUND_BEYOND = 1.0

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()


@functools.cache
def host() -> Any:
    return llvm.Target.from_default_triple()


def host_machine() -> Any:
    features = llvm.get_host_cpu_features().flatten()
    return host().create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=2)


def host_has_fma() -> bool:
    return "aarch64" in llvm.get_default_triple() or bool(llvm.get_host_cpu_features().get("fma"))


def module_text(precision: str, lanes: int, fma: bool) -> str:
    """A module with `loop(x, sines, cosines, blocks)` over contiguous arrays of `blocks * lanes` numbers."""
    real = precision if lanes == 1 else f"<{lanes} x {precision}>"
    pair, align = f"{{ {real}, {real} }}", np.dtype(DTYPES[precision]).itemsize
    declarations, definition = sincos_ir(precision, lanes, fma)
    return f"""\
{"".join(line + chr(10) for line in declarations)}
{definition}
define void @loop(ptr %x, ptr %sines, ptr %cosines, i64 %blocks) {{
entry:
  br label %block
block:
  %k = phi i64 [ 0, %entry ], [ %next, %block ]
  %from = getelementptr {real}, ptr %x, i64 %k
  %value = load {real}, ptr %from, align {align}
  %both = call {pair} @{sincos_name(Type(precision, lanes))}({real} %value)
  %sine = extractvalue {pair} %both, 0
  %cosine = extractvalue {pair} %both, 1
  %sine.to = getelementptr {real}, ptr %sines, i64 %k
  %cosine.to = getelementptr {real}, ptr %cosines, i64 %k
  store {real} %sine, ptr %sine.to, align {align}
  store {real} %cosine, ptr %cosine.to, align {align}
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %blocks
  br i1 %more, label %block, label %done
done:
  ret void
}}
"""


@functools.cache
def compiled(precision: str, lanes: int, fma: bool) -> SinCosFunction:
    module = llvm.parse_assembly(module_text(precision, lanes, fma))
    module.verify()
    engine = llvm.create_mcjit_compiler(module, host_machine())
    engine.finalize_object()
    pointer = ctypes.c_void_p
    loop = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, ctypes.c_int64)(engine.get_function_address("loop"))

    def call(x: Floats, engine: Any = engine) -> tuple[Floats, Floats]:
        blocks = -(-len(x) // lanes)
        padded = np.zeros(blocks * lanes, DTYPES[precision])
        padded[: len(x)] = x
        sines, cosines = np.empty_like(padded), np.empty_like(padded)
        loop(padded.ctypes.data, sines.ctypes.data, cosines.ctypes.data, blocks)
        return sines[: len(x)], cosines[: len(x)]

    return call


def sincos(precision: str, lanes: int = 8) -> SinCosFunction:
    return compiled(precision, lanes, host_has_fma())


def worst_error(precision: str, x: Floats, lanes: int = 8) -> float:
    """The largest error in units in the last place: longdouble finds the candidates, mpmath at 200 bits measures."""
    worst = 0.0
    x = x.astype(DTYPES[precision])
    wide = x.astype(np.longdouble if precision == "double" else np.float64)
    sine, cosine = sincos(precision, lanes)(x)
    for values, screen, exact in ((sine, np.sin(wide), mp.sin), (cosine, np.cos(wide), mp.cos)):
        suspicion = np.abs(values - screen) / np.spacing(np.abs(values))
        candidates = np.concatenate([np.argsort(suspicion)[-100:], np.arange(0, len(x), 1 + len(x) // 100)])
        with mp.workprec(200):
            for i in candidates:
                true = exact(mpf(float(x[i])))
                unit = np.spacing(np.abs(DTYPES[precision](float(true))))
                worst = max(worst, float(abs(mpf(float(values[i])) - true) / mpf(float(unit))))
    return worst


def log_uniform(rng: np.random.Generator, low: float, high: float, size: int) -> Floats:
    return np.asarray(np.exp(rng.uniform(np.log(low), np.log(high), size)) * rng.choice([-1.0, 1.0], size))


def around_quarter_turns(precision: str) -> Floats:
    """The multiples of pi/2 up to `REACH` and their neighbours on both sides: there one function cancels."""
    nearest = QUARTER_TURNS.astype(DTYPES[precision])
    x = np.concatenate([nearest, np.nextafter(nearest, -np.inf), np.nextafter(nearest, np.inf)])
    return np.asarray(x[np.abs(x) <= REACH])


RANGES: dict[str, Callable[[np.random.Generator, str], Floats]] = {
    "no reduction": lambda rng, _: rng.uniform(-np.pi / 4, np.pi / 4, 50_000),
    "joint angles": lambda rng, _: rng.uniform(-10, 10, 100_000),
    "all reduced": lambda rng, _: rng.uniform(-REACH, REACH, 100_000),
    "all magnitudes": lambda rng, precision: log_uniform(rng, SMALL[precision], REACH, 50_000),
    "near quarter turns": lambda _, precision: around_quarter_turns(precision),
    "between quarter turns": lambda _, precision: around_quarter_turns(precision) - np.pi / 4,
}


@pytest.mark.parametrize("precision", CONSTANTS)
@pytest.mark.parametrize("name", RANGES)
def test_error_stays_within_the_bound(name: str, precision: str) -> None:
    x = RANGES[name](np.random.default_rng(1), precision)
    assert worst_error(precision, x) <= BOUND


@pytest.mark.parametrize(("precision", "largest"), [("double", 1e300), ("float", 1e38)])
def test_arguments_beyond_the_reduction_are_right(precision: str, largest: float) -> None:
    x = log_uniform(np.random.default_rng(2), REACH, largest, 2000)
    x[:2] = np.nextafter(DTYPES[precision](REACH), DTYPES[precision](np.inf)), largest
    assert worst_error(precision, x) <= BOUND_BEYOND


def mixed_arguments(precision: str) -> Floats:
    rng = np.random.default_rng(3)
    mostly_near, some_far = rng.uniform(-10, 10, 999), log_uniform(rng, 1e-30, 1e30, 1000)
    return rng.permutation(np.concatenate([mostly_near, some_far, around_quarter_turns(precision)]))


@pytest.mark.parametrize("precision", CONSTANTS)
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_bits_do_not_depend_on_the_number_of_lanes(precision: str, lanes: int) -> None:
    x = mixed_arguments(precision)
    for alone, together in zip(sincos(precision, 1)(x), sincos(precision, lanes)(x), strict=True):
        assert alone.tobytes() == together.tobytes()


@pytest.mark.parametrize("precision", CONSTANTS)
def test_sine_is_odd_and_cosine_even_bit_by_bit(precision: str) -> None:
    x = np.append(mixed_arguments(precision), 0.0)
    (sine, cosine), (sine_of_negative, cosine_of_negative) = sincos(precision)(x), sincos(precision)(-x)
    assert (-sine).tobytes() == sine_of_negative.tobytes()
    assert cosine.tobytes() == cosine_of_negative.tobytes()


@pytest.mark.parametrize("precision", CONSTANTS)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("fma", [True, False])
def test_special_values(precision: str, lanes: int, fma: bool) -> None:
    if fma and not host_has_fma():
        pytest.skip("no fused multiply-add on this machine")
    tiny = np.finfo(DTYPES[precision]).smallest_subnormal
    x = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, tiny, -tiny, 1.0, 1e6], DTYPES[precision])
    sine, cosine = compiled(precision, lanes, fma)(x)
    assert np.array_equal(np.isnan(sine), ~np.isfinite(x))
    assert np.array_equal(np.isnan(cosine), ~np.isfinite(x))
    assert np.array_equal(sine[[0, 1, 5, 6]], x[[0, 1, 5, 6]])
    assert list(np.signbit(sine[:2])) == [False, True]
    assert np.array_equal(cosine[[0, 1, 5, 6]], np.ones(4))
    assert sine[7:] == pytest.approx(np.sin(x[7:].astype(float)), rel=3 * float(np.finfo(x.dtype).eps))


@pytest.mark.parametrize("precision", CONSTANTS)
def test_without_fma_every_lane_is_the_c_library(precision: str) -> None:
    x = mixed_arguments(precision)
    for alone, together in zip(compiled(precision, 1, False)(x), compiled(precision, 8, False)(x), strict=True):
        assert alone.tobytes() == together.tobytes()
    assert compiled(precision, 8, False)(x)[1] == pytest.approx(np.cos(x.astype(DTYPES[precision]).astype(float)))


def assembly(triple: str, cpu: str, precision: str, lanes: int, fma: bool) -> str:
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
    module = llvm.parse_assembly(module_text(precision, lanes, fma))
    module.triple = triple
    return str(machine.emit_assembly(module))


@pytest.mark.parametrize("precision", CONSTANTS)
@pytest.mark.parametrize(
    ("triple", "cpu", "lanes", "fused"),
    [
        ("aarch64-unknown-linux-gnu", "generic", 2, r"\bfml[as]\b"),
        ("aarch64-unknown-linux-gnu", "generic", 1, r"\bfn?m(add|sub)\b"),
        ("x86_64-unknown-linux-gnu", "haswell", 4, r"\bvfn?m(add|sub)\w*p[ds]\b"),
        ("x86_64-unknown-linux-gnu", "haswell", 1, r"\bvfn?m(add|sub)\w*s[ds]\b"),
    ],
)
def test_other_targets_fuse_in_hardware(triple: str, cpu: str, lanes: int, fused: str, precision: str) -> None:
    text = assembly(triple, cpu, precision, lanes, fma=True)
    assert len(re.findall(fused, text)) >= 3 + 2 * len(CONSTANTS[precision].sine)
    assert not re.search(r"\bfmaf?\b", text), "a call of the C library's fma"


def test_plain_x86_does_not_fuse() -> None:
    assert "fma" not in assembly("x86_64-unknown-linux-gnu", "x86-64", "double", 2, fma=False)


@pytest.mark.parametrize(("precision", "lanes", "message"), [("half", 8, "precision"), ("double", 0, "lanes")])
def test_unknown_widths_are_refused_by_name(precision: str, lanes: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sincos_ir(precision, lanes)


def rounded(value: mpf, digits: int) -> float:
    with mp.workprec(digits):
        return float(+value)


def interpolate(function: Callable[[mpf], mpf], nodes: Sequence[mpf], digits: int) -> tuple[float, ...]:
    """The polynomial through `function` at `nodes`; each coefficient makes up for the rounding of those before it."""
    values, coefficients = [function(z) for z in nodes], []
    while nodes:
        vandermonde = mp.matrix([[z**power for power in range(len(nodes))] for z in nodes])
        coefficients.append(rounded(mp.lu_solve(vandermonde, mp.matrix(values))[0], digits))
        values = [(value - coefficients[-1]) / z for value, z in zip(values, nodes, strict=True)][1:]
        nodes = nodes[1:]
    return tuple(coefficients)


@pytest.mark.parametrize("precision", CONSTANTS)
def test_constants_can_be_computed_again(precision: str) -> None:
    table, digits = CONSTANTS[precision], CONSTANTS[precision].mantissa + 1
    terms = len(table.sine)
    with mp.workprec(400):
        pieces, rest = [], mp.pi / 2
        for _ in table.pieces:
            pieces.append(rounded(rest, digits))
            rest -= pieces[-1]
        assert table.pieces == tuple(pieces)
        assert table.two_over_pi == rounded(2 / mp.pi, digits)

        # The Chebyshev nodes of [0, end], stretched so that the first falls on zero, where the errors z S and z C
        # vanish by themselves. The end leaves room for an n rounded the wrong way: 63662 times the error of 2/pi.
        end = (mp.pi / 4 * (1 + mpf(2) ** -7)) ** 2
        chebyshev = [-mp.cos((2 * i + 1) * mp.pi / (2 * (terms + 1))) for i in range(terms + 1)]
        nodes = [end * (t - chebyshev[0]) / (1 - chebyshev[0]) for t in chebyshev[1:]]
        assert table.sine == interpolate(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, nodes, digits)
        assert table.cosine == interpolate(lambda z: ((mp.cos(mp.sqrt(z)) - 1) / z + 0.5) / z, nodes, digits)


if __name__ == "__main__":
    for precision in CONSTANTS:
        for name, draw in RANGES.items():
            error = worst_error(precision, draw(np.random.default_rng(1), precision))
            print(f"{precision:7} {name:22} {error:.3f} units in the last place")
