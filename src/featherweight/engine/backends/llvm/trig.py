"""Sine and cosine of all lanes at once, as LLVM IR.

Reduction (Cody & Waite 1980): with n = round(|x| 2/pi) and pi/2 = P1 + P2 + P3, each piece the correctly rounded rest,

    r = ((|x| - n P1) - n P2) - n P3        each step one fma, the first exact since n < 2^16 and |r| < 1
    sin r = r + r^3 S(r^2)        cos r = 1 + r^2 (-1/2 + r^2 C(r^2))        |r| <= pi/4

and n mod 4 picks which of the two, and its sign. S and C interpolate at Chebyshev nodes; its tests, in
`tests/engine/backends/llvm/test_trig.py`, compute them again.

Error bound for |x| <= 1e5, in units in the last place of the result: 1/2 from the last addition,
1/4 from the polynomial, 1/2 from r, which counts nearly twice where sin r < 2^-k < r: below 1.7 in all. The largest
seen is 1.55 among all floats >= 2^-9, 1.5 among doubles. Lanes beyond 1e5 call the C library, in double precision.

The operations are the same for any number of lanes and carry no fast-math flag: results are equal bit by bit.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from .ir import Function, Type

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


LIBRARY: Final = ("declare double @sin(double) nounwind", "declare double @cos(double) nounwind")


def sincos_ir(precision: str, lanes: int, fma: bool = True) -> SinCos:
    """`{ T, T } @NAME(T %x)` = (sin x, cos x), with T the `precision` ("double", "float") or a vector of `lanes`.

    The name is `sincos_name` of T. Infinities and NaN give NaN, and sin(-0.0) is -0.0. Without `fma` in hardware every lane
    calls the C library.
    """
    if precision not in CONSTANTS:
        raise ValueError(f"precision must be one of {', '.join(CONSTANTS)}; got {precision!r}")
    if lanes < 1:
        raise ValueError(f"lanes must be at least 1; got {lanes}")
    T = Type(precision, lanes)
    if not fma:
        return SinCos(LIBRARY, str(_library(T, sincos_name(T))))
    beyond = sincos_name(T) + ".libm"
    reduced = _reduced(T, beyond)
    return SinCos((*reduced.declarations, *LIBRARY), f"{_library(T, beyond)}\n{reduced}")


def sincos_name(type: Type) -> str:
    """What the function for a machine type is called."""
    return f"fw.sincos.{type.mangled}"


def _function(type: Type, name: str) -> Function:
    # noinline: a kernel with 32 calls is 6 to 8 times smaller, each call 0.3 to 0.9 ns slower (of 4; 8 lanes, Zen 5).
    return Function(f"{{ {type.ir}, {type.ir} }}", name, [f"{type.ir} %x"], "hidden", "noinline nounwind")


def _reduced(type: Type, beyond: str) -> Function:
    """The function by reduction, with a branch to the C library, by the name `beyond`, if any lane lies beyond `REACH`."""
    f, k, real = _function(type, sincos_name(type)), CONSTANTS[type.precision], type.ir
    integer, condition = type.of(f"i{k.bits}"), type.of("i1")
    size = f.intrinsic("fabs", type, "%x")
    magic = type.constant(1.5 * 2.0**k.mantissa)
    shifted = f.intrinsic("fma", type, size, type.constant(k.two_over_pi), magic)
    n = f.binary("fsub", real, shifted, magic)
    r = size
    for piece in k.pieces:
        r = f.intrinsic("fma", type, n, type.constant(-piece), r)
    sine, cosine = _polynomials(f, type, r)

    # The low bits of `shifted` are n: bit 0 swaps sine and cosine, bit 1 of n and of n + 1 are their signs.
    quadrant = f.cast("bitcast", real, shifted, integer.ir)
    swap_bit = f.binary("shl", integer.ir, quadrant, integer.constant(k.bits - 1))
    swap = f.binary("icmp slt", integer.ir, swap_bit, integer.constant(0))
    x_bits = f.cast("bitcast", real, "%x", integer.ir)
    turn = f.binary("shl", integer.ir, quadrant, integer.constant(k.bits - 2))
    sine_sign = f.binary("xor", integer.ir, turn, x_bits)
    next_quadrant = f.binary("add", integer.ir, quadrant, integer.constant(1))
    cosine_sign = f.binary("shl", integer.ir, next_quadrant, integer.constant(k.bits - 2))
    near = []
    for even, odd, sign in ((sine, cosine, sine_sign), (cosine, sine, cosine_sign)):
        chosen = f.select(swap, odd, even, real, condition.ir)
        near.append(_flipped(f, type, integer, chosen, sign))

    far = f.binary("fcmp ogt", real, size, type.constant(REACH))
    _nearly_always(f, type, near, far, beyond)
    return f


def _polynomials(f: Function, type: Type, r: str) -> tuple[str, str]:
    """Sine and cosine of the reduced angle."""
    k = CONSTANTS[type.precision]
    z = f.binary("fmul", type.ir, r, r)
    cube = f.binary("fmul", type.ir, r, z)
    sine = f.intrinsic("fma", type, cube, _horner(f, type, k.sine, z), r)
    return sine, f.intrinsic("fma", type, z, _horner(f, type, (-0.5, *k.cosine), z), type.constant(1.0))


def _horner(f: Function, type: Type, coefficients: Sequence[float], variable: str) -> str:
    """A polynomial, of coefficients from the lowest power up."""
    value = type.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = f.intrinsic("fma", type, value, variable, type.constant(coefficient))
    return value


def _flipped(f: Function, type: Type, integer: Type, value: str, sign: str) -> str:
    """The value with another sign where the first bit of `sign` is set."""
    bits = f.cast("bitcast", type.ir, value, integer.ir)
    first_bit = f.binary("and", integer.ir, sign, integer.constant(-(2 ** (CONSTANTS[type.precision].bits - 1))))
    return f.cast("bitcast", integer.ir, f.binary("xor", integer.ir, bits, first_bit), type.ir)


def _nearly_always(f: Function, type: Type, near: Sequence[str], far: str, beyond: str) -> None:
    """Return the sine and cosine `near`, or the C library's in the lanes that are `far`."""
    real, lanes, any_far = type.ir, type.lanes, far
    if lanes > 1:
        any_far = f.binary("icmp ne", f"i{lanes}", f.cast("bitcast", type.of("i1").ir, far, f"i{lanes}"), 0)
    pair = f"{{ {real}, {real} }}"
    answer = f.pair(real, *near)
    f.branch(any_far, "beyond", "done", odds=(1, 1_000_000))
    f.label("beyond")
    library = f.call(pair, f"@{beyond}", f"{real} %x")
    exact = [f.member(real, library, k) for k in range(2)]
    chosen = [f.select(far, e, n, real, type.of("i1").ir) for e, n in zip(exact, near, strict=True)]
    f.ret(pair, f.pair(real, *chosen))
    f.label("done")
    f.ret(pair, answer)


def _library(type: Type, name: str) -> Function:
    """The function that calls the C library for one lane after the other, in double precision."""
    f = _function(type, name)
    single = type.precision == "float"
    values = ["poison", "poison"]
    for lane in range(type.lanes):
        x = "%x" if type.lanes == 1 else f.extract(type, "%x", lane)
        wide = f.cast("fpext", "float", x, "double") if single else x
        both = [f.call("double", function, f"double {wide}") for function in ("@sin", "@cos")]
        if single:
            both = [f.cast("fptrunc", "double", y, "float") for y in both]
        values = both if type.lanes == 1 else [f.insert(type, v, y, lane) for v, y in zip(values, both, strict=True)]
    f.ret(f"{{ {type.ir}, {type.ir} }}", f.pair(type.ir, *values))
    return f
