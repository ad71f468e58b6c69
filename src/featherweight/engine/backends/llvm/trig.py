"""Sine and cosine of all lanes at once, as LLVM IR.

Reduction (Cody & Waite 1980): with n = round(|x| 2/pi) and pi/2 = P1 + P2 + P3, each piece the correctly rounded rest,

    r = ((|x| - n P1) - n P2) - n P3        each step one fma, the first exact since n < 2^16 and |r| < 1
    sin r = r + r^3 S(r^2)        cos r = 1 + r^2 (-1/2 + r^2 C(r^2))        |r| <= pi/4

and n mod 4 picks which of the two, and its sign. S and C interpolate at Chebyshev nodes; `tests/engine/test_trig.py`
computes them again. Error bound for |x| <= 1e5, in units in the last place of the result: 1/2 from the last addition,
1/4 from the polynomial, 1/2 from r, which counts nearly twice where sin r < 2^-k < r: below 1.7 in all. The largest
seen is 1.55 among all floats >= 2^-9, 1.5 among doubles. Lanes beyond 1e5 call the C library, in double precision.

The operations are the same for any number of lanes and carry no fast-math flag: results are equal bit by bit.
"""

import struct
from typing import Final, NamedTuple

REACH: Final = 1e5
"""Largest |x| reduced here; beyond it the C library answers."""


class Constants(NamedTuple):
    """What depends on the precision: bits of the format, pieces of pi/2, coefficients from the lowest power up."""

    bits: int
    mantissa: int
    pieces: tuple[float, float, float]
    two_over_pi: float
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


CONSTANTS: Final = {
    "double": Constants(
        bits=64,
        mantissa=52,
        pieces=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
        two_over_pi=0.6366197723675814,
        sine=(
            *(-0.1666666666666663, 0.008333333333321685, -0.00019841269829159097),
            *(2.7557313451079063e-06, -2.5050718488555713e-08, 1.589440706182143e-10),
        ),
        cosine=(
            *(0.041666666666666644, -0.0013888888888881604, 2.480158729401202e-05),
            *(-2.755731561303795e-07, 2.0875887674593854e-09, -1.1367791654665783e-11),
        ),
    ),
    "float": Constants(
        bits=32,
        mantissa=23,
        pieces=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        two_over_pi=0.6366197466850281,
        sine=(-0.16666653752326965, 0.008332116529345512, -0.00019509802223183215),
        cosine=(0.041666653007268906, -0.0013887641252949834, 2.4466902686981484e-05),
    ),
}


class SinCos(NamedTuple):
    """IR text: what the module must declare (it may do so already), and the definition."""

    declarations: tuple[str, ...]
    definition: str


def sincos_ir(precision: str, lanes: int, fma: bool = True) -> SinCos:
    """`{ T, T } @fw.sincos(T %x)` = (sin x, cos x), with T the `precision` ("double", "float") or a vector of `lanes`.

    Infinities and NaN give NaN, and sin(-0.0) is -0.0. Without `fma` in hardware every lane calls the C library.
    """
    if precision not in CONSTANTS:
        raise ValueError(f"precision must be one of {', '.join(CONSTANTS)}; got {precision!r}")
    if lanes < 1:
        raise ValueError(f"lanes must be at least 1; got {lanes}")
    libm = ("declare double @sin(double) nounwind", "declare double @cos(double) nounwind")
    if not fma:
        return SinCos(libm, _libm("fw.sincos", precision, lanes))
    text = _Text(precision, lanes)
    declarations = (
        f"declare {text.real} @llvm.fma.{text.suffix}({text.real}, {text.real}, {text.real})",
        f"declare {text.real} @llvm.fabs.{text.suffix}({text.real})",
        *libm,
    )
    return SinCos(declarations, _libm("fw.sincos.libm", precision, lanes) + "\n" + _reduced(text))


class _Text:
    """Types, constants and instructions of one width, written out line by line."""

    def __init__(self, precision: str, lanes: int) -> None:
        self.constants = CONSTANTS[precision]
        self.lanes = lanes
        self.scalar, self.scalar_int = precision, f"i{self.constants.bits}"
        self.real, self.int, self.bool = (
            kind if lanes == 1 else f"<{lanes} x {kind}>" for kind in (self.scalar, self.scalar_int, "i1")
        )
        self.suffix = ("" if lanes == 1 else f"v{lanes}") + f"f{self.constants.bits}"
        self.lines: list[str] = []

    def literal(self, value: float) -> str:
        return self._everywhere(self.scalar, f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}")

    def integer(self, value: int) -> str:
        return self._everywhere(self.scalar_int, str(value))

    def _everywhere(self, kind: str, text: str) -> str:
        return text if self.lanes == 1 else f"splat ({kind} {text})"

    def line(self, name: str, instruction: str) -> str:
        self.lines.append(f"  %{name} = {instruction}")
        return f"%{name}"

    def call(self, name: str, intrinsic: str, *arguments: str) -> str:
        operands = ", ".join(f"{self.real} {argument}" for argument in arguments)
        return self.line(name, f"call {self.real} @llvm.{intrinsic}.{self.suffix}({operands})")

    def horner(self, name: str, coefficients: tuple[float, ...], variable: str) -> str:
        value = self.literal(coefficients[-1])
        for power in reversed(range(len(coefficients) - 1)):
            value = self.call(f"{name}{power}", "fma", value, variable, self.literal(coefficients[power]))
        return value


def _reduced(t: _Text) -> str:
    """The definition by reduction, with a branch to the C library if any lane lies beyond `REACH`."""
    real, integer, k = t.real, t.int, t.constants
    size = t.call("size", "fabs", "%x")
    magic = t.literal(1.5 * 2.0**k.mantissa)
    shifted = t.call("shifted", "fma", size, t.literal(k.two_over_pi), magic)
    n = t.line("n", f"fsub {real} {shifted}, {magic}")
    r = size
    for step, piece in enumerate(k.pieces, 1):
        r = t.call(f"r{step}", "fma", n, t.literal(-piece), r)

    z = t.line("z", f"fmul {real} {r}, {r}")
    cube = t.line("cube", f"fmul {real} {r}, {z}")
    sine = t.call("sine", "fma", cube, t.horner("s", k.sine, z), r)
    cosine = t.call("cosine", "fma", z, t.horner("c", (-0.5, *k.cosine), z), t.literal(1.0))

    # The low bits of `shifted` are n: bit 0 swaps sine and cosine, bit 1 of n and of n + 1 are their signs.
    quadrant = t.line("quadrant", f"bitcast {real} {shifted} to {integer}")
    swap_bit = t.line("swap.bit", f"shl {integer} {quadrant}, {t.integer(k.bits - 1)}")
    swap = t.line("swap", f"icmp slt {integer} {swap_bit}, {t.integer(0)}")
    x_bits = t.line("x.bits", f"bitcast {real} %x to {integer}")
    turn = t.line("turn", f"shl {integer} {quadrant}, {t.integer(k.bits - 2)}")
    sine_sign = t.line("sine.sign", f"xor {integer} {turn}, {x_bits}")
    next_quadrant = t.line("next.quadrant", f"add {integer} {quadrant}, {t.integer(1)}")
    cosine_sign = t.line("cosine.sign", f"shl {integer} {next_quadrant}, {t.integer(k.bits - 2)}")
    for name, even, odd, sign in (("sin", sine, cosine, sine_sign), ("cos", cosine, sine, cosine_sign)):
        chosen = t.line(f"{name}.size", f"select {t.bool} {swap}, {real} {odd}, {real} {even}")
        bits = t.line(f"{name}.bits", f"bitcast {real} {chosen} to {integer}")
        sign_bit = t.line(f"{name}.sign", f"and {integer} {sign}, {t.integer(-(2 ** (k.bits - 1)))}")
        signed = t.line(f"{name}.signed", f"xor {integer} {bits}, {sign_bit}")
        t.line(name, f"bitcast {integer} {signed} to {real}")

    far = t.line("far", f"fcmp ogt {real} {size}, {t.literal(REACH)}")
    if t.lanes > 1:
        mask = t.line("mask", f"bitcast {t.bool} {far} to i{t.lanes}")
        far = t.line("any", f"icmp ne i{t.lanes} {mask}, 0")
    pair = f"{{ {real}, {real} }}"
    body = "\n".join(t.lines)
    # noinline: a kernel with 32 calls is 6 to 8 times smaller, each call 0.3 to 0.9 ns slower (of 4; 8 lanes, Zen 5).
    return f"""\
define internal {pair} @fw.sincos({real} %x) noinline nounwind {{
{body}
  %near.0 = insertvalue {pair} poison, {real} %sin, 0
  %near.1 = insertvalue {pair} %near.0, {real} %cos, 1
  br i1 {far}, label %beyond, label %done, !prof !{{!"branch_weights", i32 1, i32 1000000}}
beyond:
  %libm = call {pair} @fw.sincos.libm({real} %x)
  %libm.sin = extractvalue {pair} %libm, 0
  %libm.cos = extractvalue {pair} %libm, 1
  %either.sin = select {t.bool} %far, {real} %libm.sin, {real} %sin
  %either.cos = select {t.bool} %far, {real} %libm.cos, {real} %cos
  %either.0 = insertvalue {pair} poison, {real} %either.sin, 0
  %either.1 = insertvalue {pair} %either.0, {real} %either.cos, 1
  ret {pair} %either.1
done:
  ret {pair} %near.1
}}
"""


def _libm(name: str, precision: str, lanes: int) -> str:
    """The definition that calls the C library for one lane after the other, in double precision."""
    real = precision if lanes == 1 else f"<{lanes} x {precision}>"
    pair = f"{{ {real}, {real} }}"
    lines = []
    sine = cosine = "poison"
    for lane in range(lanes):
        x, s, c = (f"%{letter}{lane}" for letter in "xsc")
        lines.append(f"{x} = freeze {real} %x" if lanes == 1 else f"{x} = extractelement {real} %x, i32 {lane}")
        if precision == "float":
            lines.append(f"{x}.wide = fpext float {x} to double")
            x += ".wide"
        lines += (f"{s} = call double @sin(double {x})", f"{c} = call double @cos(double {x})")
        if precision == "float":
            lines += (f"{value}.narrow = fptrunc double {value} to float" for value in (s, c))
            s, c = s + ".narrow", c + ".narrow"
        if lanes > 1:
            lines.append(f"{s}.all = insertelement {real} {sine}, {precision} {s}, i32 {lane}")
            lines.append(f"{c}.all = insertelement {real} {cosine}, {precision} {c}, i32 {lane}")
            s, c = s + ".all", c + ".all"
        sine, cosine = s, c
    body = "\n".join("  " + line for line in lines)
    return f"""\
define internal {pair} @{name}({real} %x) noinline nounwind {{
{body}
  %half = insertvalue {pair} poison, {real} {sine}, 0
  %whole = insertvalue {pair} %half, {real} {cosine}, 1
  ret {pair} %whole
}}
"""
