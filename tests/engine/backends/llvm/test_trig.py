"""Tests of sine and cosine in SIMD lanes: accuracy against mpmath, special values, equal bits for any number of lanes."""

import ctypes
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf

from featherweight.engine.backends.llvm.ir import Type
from featherweight.engine.backends.llvm.trig import CONSTANTS, REACH, UNFUSED_PIECES, sincos_ir, sincos_name

Floats = npt.NDArray[Any]
SinCosFunction = Callable[[Floats], tuple[Floats, Floats]]

DTYPES: dict[str, type[Any]] = {"double": np.float64, "float": np.float32}
SMALL = {"double": 1e-300, "float": 1e-37}
QUARTER_TURNS = np.arange(63662) * (np.pi / 2)

# The bound in the docstring of trig.py.
BOUND = 1.7

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


FMA = [
    pytest.param(True, id="fma", marks=pytest.mark.skipif(not host_has_fma(), reason="no fused multiply-add on this machine")),
    pytest.param(False, id="no fma"),
]


def module_text(precision: str, lanes: int, fma: bool) -> str:
    """Return a module with `loop(x, sines, cosines, blocks)` over contiguous arrays of `blocks * lanes` numbers."""
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


def worst_error(precision: str, fma: bool, x: Floats) -> float:
    """Return the largest error in units in the last place: longdouble finds the candidates, mpmath with 200 bits measures."""
    worst = 0.0
    x = x.astype(DTYPES[precision])
    wide = x.astype(np.longdouble if precision == "double" else np.float64)
    sine, cosine = compiled(precision, 8, fma)(x)
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
    """Return the multiples of pi/2 up to `REACH` and their neighbours on both sides, where one function cancels."""
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


@pytest.mark.parametrize("fma", FMA)
@pytest.mark.parametrize("precision", CONSTANTS)
@pytest.mark.parametrize("name", RANGES)
def test_error_stays_within_the_bound(name: str, precision: str, fma: bool) -> None:
    x = RANGES[name](np.random.default_rng(1), precision)
    assert worst_error(precision, fma, x) <= BOUND


def far_arguments(precision: str) -> Floats:
    """Return arguments with all exponents beyond `REACH`, including multiples of pi/2 and the double that is nearest to one
    (Muller 2016)."""
    kind, rng = DTYPES[precision], np.random.default_rng(2)
    largest = float(np.finfo(kind).max)
    quarter_turns = np.round(log_uniform(rng, REACH, largest**0.5, 1000)) * (np.pi / 2)
    closest = 6381956970095103 * 2.0**797 if precision == "double" else 1e38
    edges = [np.nextafter(kind(REACH), kind(np.inf)), largest, -largest, closest]
    return np.concatenate([log_uniform(rng, REACH, largest, 2000), quarter_turns, edges]).astype(kind)


@pytest.mark.parametrize("fma", FMA)
@pytest.mark.parametrize("precision", CONSTANTS)
def test_error_of_large_angles_stays_within_the_bound(precision: str, fma: bool) -> None:
    assert worst_error(precision, fma, far_arguments(precision)) <= BOUND


def mixed_arguments(precision: str) -> Floats:
    rng = np.random.default_rng(3)
    mostly_near, some_far = rng.uniform(-10, 10, 999), log_uniform(rng, 1e-30, 1e30, 1000)
    return rng.permutation(np.concatenate([mostly_near, some_far, around_quarter_turns(precision), far_arguments(precision)]))


@pytest.mark.parametrize("fma", FMA)
@pytest.mark.parametrize("precision", CONSTANTS)
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_bits_do_not_depend_on_the_number_of_lanes(precision: str, lanes: int, fma: bool) -> None:
    x = mixed_arguments(precision)
    for alone, together in zip(compiled(precision, 1, fma)(x), compiled(precision, lanes, fma)(x), strict=True):
        assert alone.tobytes() == together.tobytes()


@pytest.mark.parametrize("fma", FMA)
@pytest.mark.parametrize("precision", CONSTANTS)
def test_sine_is_odd_and_cosine_even_bit_by_bit(precision: str, fma: bool) -> None:
    x = np.append(mixed_arguments(precision), 0.0)
    (sine, cosine), (sine_of_negative, cosine_of_negative) = (compiled(precision, 8, fma)(y) for y in (x, -x))
    assert (-sine).tobytes() == sine_of_negative.tobytes()
    assert cosine.tobytes() == cosine_of_negative.tobytes()


@pytest.mark.parametrize("precision", CONSTANTS)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("fma", FMA)
def test_special_values(precision: str, lanes: int, fma: bool) -> None:
    tiny = np.finfo(DTYPES[precision]).smallest_subnormal
    x = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, tiny, -tiny, 1.0, 1e6], DTYPES[precision])
    sine, cosine = compiled(precision, lanes, fma)(x)
    assert np.array_equal(np.isnan(sine), ~np.isfinite(x))
    assert np.array_equal(np.isnan(cosine), ~np.isfinite(x))
    assert np.array_equal(sine[[0, 1, 5, 6]], x[[0, 1, 5, 6]])
    assert list(np.signbit(sine[:2])) == [False, True]
    assert np.array_equal(cosine[[0, 1, 5, 6]], np.ones(4))
    assert sine[7:] == pytest.approx(np.sin(x[7:].astype(float)), rel=3 * float(np.finfo(x.dtype).eps))


def assembly(triple: str, cpu: str, precision: str, lanes: int, fma: bool, features: str = "") -> str:
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=2)
    module = llvm.parse_assembly(f'target triple = "{triple}"\n{module_text(precision, lanes, fma)}')
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


def functions_of_libraries(text: str) -> set[str]:
    """Return names of the C library's functions, and of those that replace missing instructions, such as __multi3."""
    own = r"(?:sin|cos|sincos|fma|ldexp|memcpy|memset)f?"
    return set(re.findall(rf"(?<![\w.])(?:__\w+|{own})(?![\w.])", text)) - {"__stack_pointer"}


@pytest.mark.parametrize("precision", CONSTANTS)
@pytest.mark.parametrize(
    ("triple", "cpu", "features", "fma"),
    [
        ("x86_64-unknown-linux-gnu", "haswell", "", True),
        ("x86_64-unknown-linux-gnu", "x86-64", "", False),
        ("aarch64-unknown-linux-gnu", "generic", "", True),
        ("riscv64-unknown-elf", "generic-rv64", "+m,+f,+d", True),
        ("riscv32-unknown-elf", "generic-rv32", "+m,+f,+d", True),
        ("thumbv7em-none-eabihf", "cortex-m7", "", True),
        ("wasm32-unknown-unknown", "generic", "", False),
        ("amdgcn-amd-amdhsa", "gfx90a", "", True),
        ("nvptx64-nvidia-cuda", "sm_80", "+ptx71", True),
    ],
)
def test_no_library_is_called_on_any_target(triple: str, cpu: str, features: str, fma: bool, precision: str) -> None:
    assert not functions_of_libraries(assembly(triple, cpu, precision, 1, fma, features))


def test_a_small_processor_needs_its_single_precision_only() -> None:
    text = assembly("thumbv7em-none-eabihf", "cortex-m4", "float", 1, fma=True)
    assert not functions_of_libraries(text)
    assert "f64" not in text


def test_calls_of_libraries_would_be_seen() -> None:
    assert functions_of_libraries(assembly("x86_64-unknown-linux-gnu", "x86-64", "double", 1, fma=True)) == {"fma"}
    assert "__muldf3" in functions_of_libraries(assembly("thumbv7em-none-eabihf", "cortex-m4", "double", 1, fma=False))


@pytest.mark.parametrize("precision", CONSTANTS)
def test_a_gpu_neither_fuses_by_itself_nor_looks_for_a_symbol(precision: str) -> None:
    text = assembly("nvptx64-nvidia-cuda", "sm_80", precision, 1, fma=True, features="+ptx71")
    assert ".extern" not in text
    operations = re.findall(r"\b((?:mul|add|sub|fma)\.\S*f(?:32|64))\b", text)
    assert len(operations) >= 2 * (3 + 2 * len(CONSTANTS[precision].sine))
    assert {x.split(".")[1] for x in operations} == {"rn"}, "an operation that the assembler may fuse, or flushes to zero"
    assert re.search(r"(?:const|global)\S* \.align 4 \.b8 \S*two\S*pi\S*\[156\]", text)
    assert re.search(r"\bld\.(?:global\.nc|const)\b", text)


@pytest.mark.parametrize("fma", [True, False])
def test_a_module_takes_several_widths(fma: bool) -> None:
    """Check that shared declarations have the same text, so that a set contains each once."""
    widths = [sincos_ir("double", lanes, fma) for lanes in (1, 4, 8)]
    shared = dict.fromkeys(line for width in widths for line in width.declarations)
    llvm.parse_assembly("\n".join([*shared, *(width.definition for width in widths)])).verify()


@pytest.mark.parametrize(("precision", "lanes", "message"), [("half", 8, "precision"), ("double", 0, "lanes")])
def test_unknown_widths_are_refused_by_name(precision: str, lanes: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sincos_ir(precision, lanes)


def rounded(value: mpf, digits: int) -> float:
    with mp.workprec(digits):
        return float(+value)


def interpolate(function: Callable[[mpf], mpf], nodes: Sequence[mpf], digits: int) -> tuple[float, ...]:
    """Return the polynomial through `function` at `nodes`; each coefficient compensates the rounding of those before it."""
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
        unfused, rest = [], mp.pi / 2
        for bits in (36, 36, 53):
            unfused.append(rounded(rest, bits))
            rest -= unfused[-1]
        assert tuple(unfused) == UNFUSED_PIECES

        # The Chebyshev nodes of [0, end], stretched so that the first is zero, where the errors z S and z C vanish. The end
        # includes an n rounded the wrong way: 63662 times the error of 2/pi.
        end = (mp.pi / 4 * (1 + mpf(2) ** -7)) ** 2
        chebyshev = [-mp.cos((2 * i + 1) * mp.pi / (2 * (terms + 1))) for i in range(terms + 1)]
        nodes = [end * (t - chebyshev[0]) / (1 - chebyshev[0]) for t in chebyshev[1:]]
        assert table.sine == interpolate(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, nodes, digits)
        assert table.cosine == interpolate(lambda z: ((mp.cos(mp.sqrt(z)) - 1) / z + 0.5) / z, nodes, digits)


if __name__ == "__main__":
    for fma in (True, False):
        for precision in CONSTANTS:
            draws = {name: draw(np.random.default_rng(1), precision) for name, draw in RANGES.items()}
            for name, x in {**draws, "large": far_arguments(precision)}.items():
                error = worst_error(precision, fma, x)
                print(f"{'fma' if fma else 'no fma':7} {precision:7} {name:22} {error:.3f} units in the last place")
