"""Large angles modulo pi/2, in integer arithmetic, as LLVM IR.

Reduction (Payne & Hanek 1983): x = m 2^e with an integer m below 2^53 (2^24 for floats). Only a window of 2/pi in binary
matters: bits of weight 2^(2-e) and more give whole turns, and bits far after it have no visible effect. With W the bits from
weight 2^(1-e) on, as many as three words of the format have,

    m W = 2 bits of the quadrant n, then the bits of the fraction x 2/pi - n          all modulo whole turns

of which the two upper words are kept. The reduced angle is the fraction, rounded to the nearest n, times pi/2. There are only
integer additions and multiplications, 32 bits by 32 bits at a time: results are equal on every machine, and no library is
called.

Error: no double is closer to a multiple of pi/2 than 2^-61, no float than 2^-30 (Kahan's search by continued fractions; the
tests repeat it). The fraction is accurate to 2^-125 and 2^-61. Its first 64 or 32 nonzero bits times as many of pi/2 have
relative errors of 2^-61 and 2^-29 before rounding: the error of the angle is at most 0.51 and 0.53 units in the last place.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from .ir import Function, Type

TWO_OVER_PI: Final = (
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921C"
    "FE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D08"
    "56033046"
)
"""The first 1184 bits behind the point, in hexadecimal: the largest double takes the last of them."""

HALF_PI: Final = 0xC90FDAA22168C235  # times 2^63, rounded
PADDING: Final = 2  # zero words before 2/pi, for bits of weight 1 and more
NAME: Final = "fw.two.over.pi"


def table() -> str:
    """Return the global constant that `reduce` reads: 2/pi in 32-bit words, most significant first."""
    digits = "0" * 8 * PADDING + TWO_OVER_PI
    words = [int(digits[k : k + 8], 16) for k in range(0, len(digits), 8)]
    return f"@{NAME} = internal unnamed_addr constant [{len(words)} x i32] [{', '.join(f'i32 {word}' for word in words)}]"


def reduce(f: Function, bits: int, mantissa: int, size: str) -> tuple[str, str]:
    """Return the bits of the reduced angle in [-pi/4, pi/4] of a number >= 1, and n, whose low two bits matter.

    `size` contains the bits of the number. Its format has `bits` bits, of which `mantissa` store the fraction. Smaller and
    infinite numbers give arbitrary results.
    """
    word, limbs, bias = f"i{bits}", bits // 32, 2 ** (bits - mantissa - 2) - 1
    exponent = f.binary("lshr", word, size, mantissa)
    wide = f.cast("zext", word, exponent, "i64") if bits < 64 else exponent
    start = f.sub(wide, bias + mantissa + 2 - 32 * PADDING)  # start of the window, in bits of the table
    start = f.select(f.less(start, 0), 0, start)
    fraction = f.binary("and", word, size, 2**mantissa - 1)
    whole = f.binary("or", word, fraction, 2**mantissa)
    product = _product(f, _limbs(f, whole, limbs), _window(f, start, 3 * limbs), 3 * limbs)
    high, low = _word(f, product[2 * limbs :]), _word(f, product[limbs : 2 * limbs])

    # The bit after the quadrant rounds it, and is the sign of the remaining fraction, in two's complement.
    rounded = f.binary("add", word, high, 2 ** (bits - 3))
    quadrant = f.binary("lshr", word, rounded, bits - 2)
    left = _funnel(f, word, high, low, 2)
    sign = f.binary("ashr", word, left, bits - 1)
    left = f.binary("xor", word, left, sign)
    rest = f.binary("xor", word, f.binary("shl", word, low, 2), sign)
    angle = _times_half_pi(f, bits, mantissa, left, rest)
    return f.binary("or", word, angle, f.binary("and", word, sign, -(2 ** (bits - 1)))), quadrant


def _times_half_pi(f: Function, bits: int, mantissa: int, high: str, low: str) -> str:
    """Return the bits of pi/2 times the fraction of two words, rounded to nearest."""
    word, limbs, bias = f"i{bits}", bits // 32, 2 ** (bits - mantissa - 2) - 1
    zeros = _leading_zeros(f, word, f.binary("or", word, high, 1))
    head = _funnel(f, word, high, low, zeros)
    half_pi = [str(HALF_PI >> 32 * k & 0xFFFFFFFF) for k in range(2 - limbs, 2)]
    product = _word(f, _product(f, _limbs(f, head, limbs), half_pi, 2 * limbs)[limbs:])
    one_more = f.cast("zext", "i1", f.binary("icmp sge", word, product, 0), word)
    product = f.binary("shl", word, product, one_more)
    # The first bit of the product is the implicit one: it adds one to the exponent.
    cut = bits - mantissa - 1
    next_bit = f.binary("and", word, f.binary("lshr", word, product, cut - 1), 1)
    digits = f.binary("add", word, f.binary("lshr", word, product, cut), next_bit)
    exponent = f.binary("sub", word, bias - 1, f.binary("add", word, zeros, one_more))
    return f.binary("add", word, f.binary("shl", word, exponent, mantissa), digits)


def _window(f: Function, start: str, count: int) -> list[str]:
    """Return `count` limbs of the table from a bit on, least significant first."""
    index, shift = f.binary("lshr", "i64", start, 5), f.binary("and", "i64", start, 31)
    first = f.at("i32", f"@{NAME}", index)
    words = [f.cast("zext", "i32", f.load("i32", first, k), "i64") for k in range(count + 1)]
    limbs = []
    for upper, lower in pairwise(words):
        both = f.binary("or", "i64", f.binary("shl", "i64", upper, 32), lower)
        limbs.append(f.binary("lshr", "i64", f.binary("shl", "i64", both, shift), 32))
    return limbs[::-1]


def _product(f: Function, a: Sequence[str], b: Sequence[str], count: int) -> list[str]:
    """Return the lowest limbs of a product; a limb is a 32-bit number in an i64, least significant first."""
    result: list[str] = ["0"] * count
    for i, x in enumerate(a):
        carry = "0"
        for k, y in enumerate(b[: count - i], i):
            total = f.add(f.add(f.mul(x, y), result[k]), carry)  # at most 2^64 - 1
            result[k], carry = f.binary("and", "i64", total, 0xFFFFFFFF), f.binary("lshr", "i64", total, 32)
        if i + len(b) < count:
            result[i + len(b)] = carry
    return result


def _limbs(f: Function, value: str, count: int) -> list[str]:
    """Return a word as limbs, least significant first."""
    if count == 1:
        return [f.cast("zext", "i32", value, "i64")]
    return [f.binary("and", "i64", value, 0xFFFFFFFF), f.binary("lshr", "i64", value, 32)]


def _word(f: Function, limbs: Sequence[str]) -> str:
    """Return a word from its limbs, least significant first."""
    if len(limbs) == 1:
        return f.cast("trunc", "i64", limbs[0], "i32")
    return f.binary("or", "i64", f.binary("shl", "i64", limbs[1], 32), limbs[0])


def _funnel(f: Function, word: str, high: str, low: str, shift: str | int) -> str:
    """Return the upper one of two words shifted left together."""
    return f.intrinsic("fshl", Type(word, 1), high, low, str(shift))


def _leading_zeros(f: Function, word: str, value: str) -> str:
    """Return the number of leading zeros of a nonzero word."""
    f.declarations[f"declare {word} @llvm.ctlz.{word}({word}, i1)"] = None
    return f.call(word, f"@llvm.ctlz.{word}", f"{word} {value}", "i1 true")
