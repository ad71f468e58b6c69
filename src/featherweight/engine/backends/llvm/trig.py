"""Sine and cosine of all lanes at once, as LLVM IR, without a library.

Reduction (Cody & Waite 1980): with n = round(|x| 2/pi) and pi/2 = P1 + P2 + P3, each piece the correctly rounded rest,

    r = ((|x| - n P1) - n P2) - n P3        each step one fma, the first exact since n < 2^16 and |r| < 1
    sin r = r + r^3 S(r^2)        cos r = 1 + r^2 (-1/2 + r^2 C(r^2))        |r| <= pi/4

and n mod 4 selects one of the two, and its sign. S and C interpolate at Chebyshev nodes; the tests, in
`tests/engine/backends/llvm/test_trig.py`, recompute them. Lanes beyond 1e5 get their n and r from integer arithmetic, lane by
lane (`payne_hanek`), followed by the same polynomials.

Without hardware fma, P1 and P2 have 36 bits, so that n P1 and n P2 are exact: with w = (|x| - n P1) - n P2, rounded,
r = w + (e - n P3), where e is the rounding error. Floats use the same method in double precision.

Error bound for all finite x, in units in the last place of the result: 1/2 from the last addition; 1/2 from r, or nearly 1 just
above r = 1/2, 1/4, ..., where sin r < 2^-k < r; and up to 1/4 from the polynomial, at r = pi/4, where r counts 1/2. The sum is
below 1.7. Without fma, the last product is also rounded; this adds 1/4 in a cosine, where r counts for less. The largest
observed error is 1.55 among floats >= 2^-9, 1.51 among doubles.

The operations are the same for any number of lanes and have no fast-math flags: results are bitwise equal on all machines with
fma, and on all machines without. The bits of NaN may differ.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from . import payne_hanek
from .ir import Function, Type

REACH: Final = 1e5
"""Largest |x| of which n has few enough bits; beyond it the reduction is that of Payne and Hanek."""


class Constants(NamedTuple):
    """Constants of a precision: bits of the format, pieces of pi/2, coefficients from the lowest power up."""

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


UNFUSED_PIECES: Final = (1.5707963267923333, 2.5633441515839558e-12, 1.0562999066987428e-23)
"""Pieces of pi/2 for machines without fma, in double precision; the first two have 36 bits."""


class SinCos(NamedTuple):
    """IR text: shared definitions, which a module must contain once for all widths, and the definition of the function."""

    declarations: tuple[str, ...]
    definition: str


def sincos_ir(precision: str, lanes: int, fma: bool = True) -> SinCos:
    """Return `{ T, T } @NAME(T %x)` = (sin x, cos x), with T the `precision` ("double", "float") or a vector of `lanes`.

    The name is `sincos_name` of T. Infinities and NaN give NaN, and sin(-0.0) is -0.0. `fma` requires hardware support.
    """
    if precision not in CONSTANTS:
        raise ValueError(f"precision must be one of {', '.join(CONSTANTS)}; got {precision!r}")
    if lanes < 1:
        raise ValueError(f"lanes must be at least 1; got {lanes}")
    T = Type(precision, lanes)
    far = _far(Type(precision, 1), fma)
    near = _near(T, far.name if lanes == 1 else f"{sincos_name(T)}.far", fma)
    shared = dict.fromkeys([payne_hanek.table(), *far.declarations, str(far), *near.declarations])
    return SinCos(tuple(shared), str(near) if lanes == 1 else f"{_lane_by_lane(T, far.name)}\n{near}")


def sincos_name(type: Type) -> str:
    """Return the name of the function for a machine type."""
    return f"fw.sincos.{type.mangled}"


def _function(type: Type, name: str, linkage: str = "hidden") -> Function:
    # noinline: a kernel with 32 calls is 6 to 8 times smaller, each call 0.3 to 0.9 ns slower (of 4; 8 lanes, Zen 5).
    return Function(f"{{ {type.ir}, {type.ir} }}", name, [f"{type.ir} %x"], linkage, "noinline nounwind")


def _near(type: Type, beyond: str, fma: bool) -> Function:
    """Return the function by reduction, which branches to the function `beyond` if any lane is beyond `REACH`."""
    f, k, real = _function(type, sincos_name(type)), CONSTANTS[type.precision], type.ir
    size = f.intrinsic("fabs", type, "%x")
    magic = type.constant(1.5 * 2.0**k.mantissa)
    shifted = _fma(f, type, size, type.constant(k.two_over_pi), magic, fma)
    n = f.binary("fsub", real, shifted, magic)
    r = _cody_waite(f, type, size, n) if fma else _cody_waite_unfused(f, type, size, n)
    unturned = _polynomials(f, type, r, fma)
    near = _turned(f, type, unturned, f.cast("bitcast", real, shifted, type.of(f"i{k.bits}").ir))  # the low bits are n
    far = f.binary("fcmp ogt", real, size, type.constant(REACH))
    _nearly_always(f, type, near, far, beyond)
    return f


def _cody_waite(f: Function, type: Type, size: str, n: str) -> str:
    """Return the reduced angle of `size` after n quarter turns."""
    r = size
    for piece in CONSTANTS[type.precision].pieces:
        r = f.intrinsic("fma", type, n, type.constant(-piece), r)
    return r


def _cody_waite_unfused(f: Function, type: Type, size: str, n: str) -> str:
    """Return the same without fma, in double precision."""
    double, single = type.of("double"), type.precision == "float"
    if single:
        size, n = (f.cast("fpext", type.ir, x, double.ir) for x in (size, n))
    first, second, third = (f.binary("fmul", double.ir, n, double.constant(piece)) for piece in UNFUSED_PIECES)
    exact = f.binary("fsub", double.ir, size, first)
    r = f.binary("fsub", double.ir, exact, second)
    lost = f.binary("fsub", double.ir, f.binary("fsub", double.ir, exact, r), second)
    r = f.binary("fadd", double.ir, r, f.binary("fsub", double.ir, lost, third))
    return f.cast("fptrunc", double.ir, r, type.ir) if single else r


def _turned(f: Function, type: Type, unturned: tuple[str, str], quadrant: str) -> list[str]:
    """Return sine and cosine of %x from those of the reduced angle; `quadrant` has the low bits of the quarter turns."""
    k, real = CONSTANTS[type.precision], type.ir
    integer, condition = type.of(f"i{k.bits}"), type.of("i1")
    sine, cosine = unturned
    # Bit 0 of the quadrant swaps sine and cosine; its bit 1, and that of the next quadrant, are their signs.
    swap_bit = f.binary("shl", integer.ir, quadrant, integer.constant(k.bits - 1))
    swap = f.binary("icmp slt", integer.ir, swap_bit, integer.constant(0))
    x_bits = f.cast("bitcast", real, "%x", integer.ir)
    turn = f.binary("shl", integer.ir, quadrant, integer.constant(k.bits - 2))
    sine_sign = f.binary("xor", integer.ir, turn, x_bits)
    next_quadrant = f.binary("add", integer.ir, quadrant, integer.constant(1))
    cosine_sign = f.binary("shl", integer.ir, next_quadrant, integer.constant(k.bits - 2))
    both = []
    for even, odd, sign in ((sine, cosine, sine_sign), (cosine, sine, cosine_sign)):
        chosen = f.select(swap, odd, even, real, condition.ir)
        both.append(_flipped(f, type, integer, chosen, sign))
    return both


def _fma(f: Function, type: Type, a: str, b: str, c: str, fma: bool) -> str:
    """Return a b + c, rounded once, or twice."""
    return f.intrinsic("fma", type, a, b, c) if fma else f.binary("fadd", type.ir, f.binary("fmul", type.ir, a, b), c)


def _polynomials(f: Function, type: Type, r: str, fma: bool) -> tuple[str, str]:
    """Return sine and cosine of the reduced angle."""
    k = CONSTANTS[type.precision]
    z = f.binary("fmul", type.ir, r, r)
    cube = f.binary("fmul", type.ir, r, z)
    sine = _fma(f, type, cube, _horner(f, type, k.sine, z, fma), r, fma)
    return sine, _fma(f, type, z, _horner(f, type, (-0.5, *k.cosine), z, fma), type.constant(1.0), fma)


def _horner(f: Function, type: Type, coefficients: Sequence[float], variable: str, fma: bool) -> str:
    """Return a polynomial, with coefficients from the lowest power up."""
    value = type.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = _fma(f, type, value, variable, type.constant(coefficient), fma)
    return value


def _flipped(f: Function, type: Type, integer: Type, value: str, sign: str) -> str:
    """Return the value with the opposite sign if the sign bit of `sign` is set."""
    bits = f.cast("bitcast", type.ir, value, integer.ir)
    first_bit = f.binary("and", integer.ir, sign, integer.constant(-(2 ** (CONSTANTS[type.precision].bits - 1))))
    return f.cast("bitcast", integer.ir, f.binary("xor", integer.ir, bits, first_bit), type.ir)


def _nearly_always(f: Function, type: Type, near: Sequence[str], far: str, beyond: str) -> None:
    """Return the sine and cosine `near`, or those of the function `beyond` in the lanes that are `far`."""
    real, lanes, any_far = type.ir, type.lanes, far
    if lanes > 1:
        any_far = f.binary("icmp ne", f"i{lanes}", f.cast("bitcast", type.of("i1").ir, far, f"i{lanes}"), 0)
    pair = f"{{ {real}, {real} }}"
    answer = f.pair(real, *near)
    f.branch(any_far, "beyond", "done", odds=(1, 1_000_000))
    f.label("beyond")
    large = f.call(pair, f"@{beyond}", f"{real} %x")
    both = [f.member(real, large, k) for k in range(2)]
    chosen = [f.select(far, e, n, real, type.of("i1").ir) for e, n in zip(both, near, strict=True)]
    f.ret(pair, f.pair(real, *chosen))
    f.label("done")
    f.ret(pair, answer)


def _lane_by_lane(type: Type, scalar: str) -> Function:
    """Return the function that calls the scalar function for one lane after the other."""
    f, one = _function(type, f"{sincos_name(type)}.far", "internal"), type.precision
    values = ["poison", "poison"]
    for lane in range(type.lanes):
        both = f.call(f"{{ {one}, {one} }}", f"@{scalar}", f"{one} {f.extract(type, '%x', lane)}")
        values = [f.insert(type, v, f.member(one, both, k), lane) for k, v in enumerate(values)]
    f.ret(f"{{ {type.ir}, {type.ir} }}", f.pair(type.ir, *values))
    return f


def _far(type: Type, fma: bool) -> Function:
    """Return the function for large numbers; for others, its result is arbitrary."""
    f, k = _function(type, f"{sincos_name(type)}.far", "internal"), CONSTANTS[type.precision]
    word = f"i{k.bits}"
    size = f.cast("bitcast", type.ir, f.intrinsic("fabs", type, "%x"), word)
    angle, quadrant = payne_hanek.reduce(f, k.bits, k.mantissa, size)
    # x - x is zero, but NaN for infinities.
    r = f.binary("fadd", type.ir, f.cast("bitcast", word, angle, type.ir), f.binary("fsub", type.ir, "%x", "%x"))
    f.ret(f"{{ {type.ir}, {type.ir} }}", f.pair(type.ir, *_turned(f, type, _polynomials(f, type, r, fma), quadrant)))
    return f
