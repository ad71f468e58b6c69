"""Sine and cosine in C99 without a library, from the constants of the machine code (`trig`, `payne_hanek`).

The angle is reduced in double precision without fma, and beyond `REACH` in integers. For all finite angles, the results equal
those of the machine code without fma, except for rounding.
"""

from __future__ import annotations

from ..engine.backends.llvm.payne_hanek import HALF_PI, PADDING, TWO_OVER_PI
from ..engine.backends.llvm.trig import CONSTANTS, REACH, UNFUSED_PIECES

_TEMPLATE = """\
#ifdef FW_LIBM /* sine and cosine of the C library, in place of those below */
#include <math.h>
static void fw_sincos(@T x, @T *sine, @T *cosine)
{
    *sine = sin@F(x);
    *cosine = cos@F(x);
}
#else
/* Angles beyond @REACH modulo pi/2, in integers (Payne and Hanek 1983). Returns the number of quarter turns. */
static unsigned fw_reduce_far(double x, double *angle)
{
    /* the bits of 2/pi behind the point, after words of zeros */
    static const uint32_t two_over_pi[@WORDS] = {
@TABLE
    };
    union { double value; uint64_t bits; } number;
    uint32_t window[6], product[6] = {0, 0, 0, 0, 0, 0};
    uint64_t whole, high, low, left, sign, head, upper;
    int start, k, zeros = 0;
    unsigned quadrant, i, j;

    number.value = x < 0.0 ? -x : x;
    whole = (number.bits & 0xFFFFFFFFFFFFFu) | 0x10000000000000u;
    start = (int)(number.bits >> 52) - @START;
    for (k = 0; k < 6; k++) { /* the lowest word first */
        const uint64_t both = (uint64_t)two_over_pi[start / 32 + 5 - k] << 32 | two_over_pi[start / 32 + 6 - k];
        window[k] = (uint32_t)(both << (start % 32) >> 32);
    }
    for (i = 0; i < 2; i++) {
        const uint64_t limb = (uint32_t)(whole >> (32 * i));
        uint64_t carry = 0;
        for (j = 0; i + j < 6; j++) {
            const uint64_t total = limb * window[j] + product[i + j] + carry;
            product[i + j] = (uint32_t)total;
            carry = total >> 32;
        }
    }
    high = (uint64_t)product[5] << 32 | product[4];
    low = (uint64_t)product[3] << 32 | product[2];
    quadrant = (unsigned)((high + ((uint64_t)1 << 61)) >> 62);
    left = high << 2 | low >> 62;
    sign = left >> 63 ? ~(uint64_t)0 : 0;
    left ^= sign;
    low = (low << 2) ^ sign;
    while (zeros < 63 && !((left | 1) << zeros >> 63)) {
        zeros++;
    }
    head = zeros ? left << zeros | low >> (64 - zeros) : left;
    { /* times pi/2: the upper half of the product */
        const uint64_t a = head >> 32, b = (uint32_t)head, c = @HIGHu, d = @LOWu;
        const uint64_t middle = (b * d >> 32) + (uint32_t)(a * d) + (uint32_t)(b * c);
        upper = a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32);
    }
    if (!(upper >> 63)) {
        upper <<= 1;
        zeros++;
    }
    number.bits = ((uint64_t)(1022 - zeros) << 52) + (upper >> 11) + (upper >> 10 & 1);
    *angle = (x < 0.0) != (sign != 0) ? -number.value : number.value;
    return x < 0.0 ? (4u - quadrant) & 3u : quadrant & 3u;
}

/* Sine and cosine of an angle (Cody and Waite 1980); needs arithmetic as IEEE 754 has it, so no -ffast-math. */
static void fw_sincos(@T x, @T *sine, @T *cosine)
{
    const double far = x;
    double angle;
    unsigned quadrant;
    @T r, z, s, c;

    if (far >= -@REACH && far <= @REACH) {
        const double n = (far * @TWO_OVER_PI + 6755399441055744.0) - 6755399441055744.0; /* rounds to a whole number */
        const double exact = far - n * @P1, second = n * @P2;
        const double rest = exact - second, lost = (exact - rest) - second;
        angle = rest + (lost - n * @P3);
        quadrant = (unsigned)(int)n & 3u;
    } else if (far - far == 0.0) {
        quadrant = fw_reduce_far(far, &angle);
    } else { /* not a number, or infinite */
        *sine = *cosine = x - x;
        return;
    }
    r = (@T)angle;
    z = r * r;
    s = r + r * z * (@SINE);
    c = @ONE + z * (@COSINE);
    *sine = quadrant & 1u ? c : s;
    *cosine = quadrant & 1u ? s : c;
    if (quadrant & 2u) {
        *sine = -*sine;
    }
    if ((quadrant + 1u) & 2u) {
        *cosine = -*cosine;
    }
}
#endif
"""


def c_number(x: float, precision: str) -> str:
    """Return the literal of a number: the shortest decimal that is read back as the same number."""
    return f"{x!r}f" if precision == "float" else repr(x)


def sincos_source(precision: str) -> str:
    """Return the source of `static void fw_sincos(T x, T *sine, T *cosine)`."""
    k = CONSTANTS[precision]
    digits = "0" * 8 * PADDING + TWO_OVER_PI
    words = [f"0x{digits[i : i + 8]}u," for i in range(0, len(digits), 8)]
    rows = ["        " + " ".join(words[i : i + 8]) for i in range(0, len(words), 8)]
    values = {
        "@TABLE": "\n".join(rows),
        "@WORDS": str(len(words)),
        "@START": str(1023 + 52 + 2 - 32 * PADDING),
        "@HIGH": hex(HALF_PI >> 32),
        "@LOW": hex(HALF_PI & 0xFFFFFFFF),
        "@REACH": repr(REACH),
        "@TWO_OVER_PI": repr(CONSTANTS["double"].two_over_pi),
        **{f"@P{i}": repr(piece) for i, piece in enumerate(UNFUSED_PIECES, 1)},
        "@SINE": _horner(k.sine, "z", precision),
        "@COSINE": _horner((-0.5, *k.cosine), "z", precision),
        "@ONE": c_number(1.0, precision),
        "@T": precision,
        "@F": "f" if precision == "float" else "",
    }
    text = _TEMPLATE
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(name, values[name])
    return text


def _horner(coefficients: tuple[float, ...], variable: str, precision: str) -> str:
    """Return the source of a polynomial, with coefficients from the lowest power up."""
    text = c_number(coefficients[-1], precision)
    for k in reversed(coefficients[:-1]):
        text = f"{c_number(k, precision)} + {variable} * ({text})"
    return text
