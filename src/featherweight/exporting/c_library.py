"""Functions in C99 that exported source uses in place of the C library: their results do not depend on a library.

Sine and cosine are those of `engine.backends.llvm.trig`, with its constants, and the comments there explain the method.
`sqrt` and `fabs` of math.h are instructions of the processor for compilers with -fno-math-errno.
"""

from __future__ import annotations

import re

from ..engine.backends.llvm.payne_hanek import HALF_PI, PADDING, TWO_OVER_PI
from ..engine.backends.llvm.trig import CONSTANTS, REACH, UNFUSED_PIECES
from ..engine.loops.kernels import LANES

INCLUDES = "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n"

MULADD = """\
#ifdef FW_FMA /* -DFW_FMA: a product in a sum is not rounded, as in the object code; with -ffp-contract=off, bits are equal */
#define FW_MULADD(a, b, c) fma(a, b, c)
#else
#define FW_MULADD(a, b, c) ((a) * (b) + (c))
#endif
"""

_K = CONSTANTS["double"]


def _words() -> str:
    digits = "0" * 8 * PADDING + TWO_OVER_PI
    words = [f"0x{digits[k : k + 8]}u" for k in range(0, len(digits), 8)]
    return ",\n    ".join(", ".join(words[k : k + 8]) for k in range(0, len(words), 8))


def _horner(coefficients: tuple[float, ...], variable: str) -> str:
    text = repr(coefficients[-1])
    for x in reversed(coefficients[:-1]):
        text = f"FW_MULADD({text}, {variable}, {x!r})"
    return text


LIBRARY = {
    "fw_least": """\
static int64_t fw_least(int64_t a, int64_t b)
{
    return b < a ? b : a;
}
""",
    "fw_greatest": """\
static int64_t fw_greatest(int64_t a, int64_t b)
{
    return b > a ? b : a;
}
""",
    "fw_size": """\
static int64_t fw_size(int64_t a)
{
    return a < 0 ? -a : a;
}
""",
    "fw_difference": """\
/* Return a - b, at least 0. */
static int64_t fw_difference(int64_t a, int64_t b)
{
    return a > b ? a - b : 0;
}
""",
    "fw_quotient": """\
/* Return a / b rounded down; a if b is 0. */
static int64_t fw_quotient(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) {
        return b == 0 ? a : (int64_t)(0 - (uint64_t)a);
    }
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
""",
    "fw_remainder": """\
/* Return a - b (a / b rounded down), with the sign of b; a if b is 0. */
static int64_t fw_remainder(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) {
        return b == 0 ? a : 0;
    }
    return a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0);
}
""",
    "fw_shifted_left": """\
static int64_t fw_shifted_left(int64_t a, int64_t bits)
{
    return (int64_t)((uint64_t)a << (bits & 63));
}
""",
    "fw_whole": """\
/* Return a number without its fraction; the nearest whole number if it is too large, and 0 for NaN. */
static int64_t fw_whole(double x)
{
    if (x >= 9223372036854775808.0) {
        return INT64_MAX;
    }
    return x > -9223372036854775808.0 ? (int64_t)x : x <= -9223372036854775808.0 ? INT64_MIN : 0;
}
""",
    "fw_lesser": """\
static double fw_lesser(double a, double b)
{
    return b < a ? b : a;
}
""",
    "fw_greater": """\
static double fw_greater(double a, double b)
{
    return b > a ? b : a;
}
""",
    "fw_minimum": """\
/* Return the lesser number, and NaN if one is NaN. */
static double fw_minimum(double a, double b)
{
    return b != b || b <= a ? b : a;
}
""",
    "fw_maximum": """\
/* Return the greater number, and NaN if one is NaN. */
static double fw_maximum(double a, double b)
{
    return b != b || b >= a ? b : a;
}
""",
    "fw_is_finite": """\
static bool fw_is_finite(double x)
{
    return fabs(x) < HUGE_VAL;
}
""",
    "fw_floor": """\
static double fw_floor(double x)
{
    double whole;

    if (!(fabs(x) < 4503599627370496.0)) {
        return x;
    }
    whole = (double)(int64_t)x;
    return whole == x ? x : whole > x ? whole - 1.0 : whole;
}
""",
    "fw_ceil": """\
static double fw_ceil(double x)
{
    return -fw_floor(-x);
}
""",
    "fw_bits": """\
static uint64_t fw_bits(double x)
{
    union {
        double number;
        uint64_t bits;
    } both;

    both.number = x;
    return both.bits;
}
""",
    "fw_of_bits": """\
static double fw_of_bits(uint64_t bits)
{
    union {
        double number;
        uint64_t bits;
    } both;

    both.bits = bits;
    return both.number;
}
""",
    "fw_product": """\
/* Write the lowest `count` limbs of the product of two numbers of `m` and `n` limbs, of 32 bits each, the lowest first. */
static void fw_product(uint64_t *result, int count, const uint64_t *a, int m, const uint64_t *b, int n)
{
    for (int k = 0; k < count; k++) {
        result[k] = 0;
    }
    for (int i = 0; i < m; i++) {
        uint64_t carry = 0;
        for (int k = 0; k < n && i + k < count; k++) {
            const uint64_t total = a[i] * b[k] + result[i + k] + carry;
            result[i + k] = total & 0xFFFFFFFFu;
            carry = total >> 32;
        }
        if (i + n < count) {
            result[i + n] = carry;
        }
    }
}
""",
    "fw_far_angle": f"""\
/* Return the angle in [-pi/4, pi/4] of a large number modulo pi/2, and the quarter turns (Payne & Hanek 1983). */
static double fw_far_angle(double size, uint64_t *quadrant)
{{
    static const uint32_t two_over_pi[] = {{
    {_words()}}};
    const uint64_t bits = fw_bits(size);
    const int64_t from = (int64_t)(bits >> {_K.mantissa}) - {2**10 - 1 + _K.mantissa + 2 - 32 * PADDING};
    const int64_t start = from < 0 ? 0 : from;
    const uint32_t *words = two_over_pi + (start >> 5);
    const uint64_t whole = (bits & UINT64_C({2**_K.mantissa - 1:#X})) | UINT64_C({2**_K.mantissa:#X});
    const uint64_t factor[2] = {{whole & 0xFFFFFFFFu, whole >> 32}};
    const uint64_t half_pi[2] = {{{HALF_PI & 0xFFFFFFFF:#X}u, {HALF_PI >> 32:#X}u}};
    uint64_t window[6], product[6], head[2], angle[4], high, low, left, sign, rest, top, one_more, next_bit, digits;
    int zeros = 0;

    for (int k = 0; k < 6; k++) {{
        window[5 - k] = ((((uint64_t)words[k] << 32) | words[k + 1]) << (start & 31)) >> 32;
    }}
    fw_product(product, 6, factor, 2, window, 6);
    high = (product[5] << 32) | product[4];
    low = (product[3] << 32) | product[2];
    *quadrant = (high + (UINT64_C(1) << 61)) >> 62;
    left = (high << 2) | (low >> 62);
    sign = left >> 63 ? ~UINT64_C(0) : 0;
    left ^= sign;
    rest = (low << 2) ^ sign;
    while (zeros < 63 && !((left | 1) << zeros >> 63)) {{
        zeros++;
    }}
    top = zeros ? (left << zeros) | (rest >> (64 - zeros)) : left;
    head[0] = top & 0xFFFFFFFFu;
    head[1] = top >> 32;
    fw_product(angle, 4, head, 2, half_pi, 2);
    top = (angle[3] << 32) | angle[2];
    one_more = top >> 63 ? 0 : 1;
    top <<= one_more;
    next_bit = (top >> {64 - _K.mantissa - 2}) & 1;
    digits = (top >> {64 - _K.mantissa - 1}) + next_bit;
    return fw_of_bits((((1022 - ((uint64_t)zeros + one_more)) << {_K.mantissa}) + digits) | (sign & (UINT64_C(1) << 63)));
}}
""",
    "fw_sincos": f"""\
/* Sine and cosine: the angle less quarter turns (Cody & Waite 1980), polynomials, and the quadrant. */
static void fw_sincos(double x, double *sine, double *cosine)
{{
    const double size = fabs(x), shifted = FW_MULADD(size, {_K.two_over_pi!r}, {1.5 * 2.0**_K.mantissa!r});
    const double n = shifted - {1.5 * 2.0**_K.mantissa!r};
    uint64_t quadrant = fw_bits(shifted);
    double r, z, s, c;

    if (size > {REACH!r}) {{
        r = fw_far_angle(size, &quadrant) + (x - x);
    }} else {{
#ifdef FW_FMA
        r = fma(n, {-_K.pieces[0]!r}, size);
        r = fma(n, {-_K.pieces[1]!r}, r);
        r = fma(n, {-_K.pieces[2]!r}, r);
#else
        const double first = n * {UNFUSED_PIECES[0]!r}, second = n * {UNFUSED_PIECES[1]!r}, exact = size - first;
        r = exact - second;
        r = r + (((exact - r) - second) - n * {UNFUSED_PIECES[2]!r});
#endif
    }}
    z = r * r;
    s = FW_MULADD(r * z, {_horner(_K.sine, "z")}, r);
    c = FW_MULADD(z, {_horner((-0.5, *_K.cosine), "z")}, 1.0);
    *sine = fw_of_bits(fw_bits(quadrant & 1 ? c : s) ^ (((quadrant << 62) ^ fw_bits(x)) & (UINT64_C(1) << 63)));
    *cosine = fw_of_bits(fw_bits(quadrant & 1 ? s : c) ^ (((quadrant + 1) << 62) & (UINT64_C(1) << 63)));
}}
""",
    "fw_sin": """\
static double fw_sin(double x)
{
    double sine, cosine;

    fw_sincos(x, &sine, &cosine);
    return sine;
}
""",
    "fw_cos": """\
static double fw_cos(double x)
{
    double sine, cosine;

    fw_sincos(x, &sine, &cosine);
    return cosine;
}
""",
    "fw_subtract_multiples": """\
/* Subtract multiples of rows: numbers[target + j] -= sum of factors[k] numbers[source + k stride + j]; or start from zeros. */
static void fw_subtract_multiples(double *numbers, int64_t target, int64_t source, int64_t stride, int64_t length,
                                  const double *factors, int count, bool from_zero)
{
    for (int64_t j = 0; j < length; j++) {
        double total = from_zero ? 0.0 : numbers[target + j];
        for (int k = 0; k < count; k++) {
            total = FW_MULADD(-factors[k], numbers[source + k * stride + j], total);
        }
        numbers[target + j] = total;
    }
}
""",
    "fw_subtract_product": """\
/* Subtract a product of matrices: target row i -= sum of factor (i, k) times source row k; or start from zeros.
 * The factors begin at `at`; `across` and `along` are the distances to the next i and k. */
static void fw_subtract_product(double *numbers, int64_t target, int64_t stride, int64_t source, int64_t step, int64_t at,
                                int64_t across, int64_t along, int64_t rows, int64_t length, int64_t count, bool from_zero)
{
    for (int64_t i = 0; i < rows; i++) {
        double *row = numbers + target + i * stride;
        if (from_zero) {
            for (int64_t j = 0; j < length; j++) {
                row[j] = 0.0;
            }
        }
        for (int64_t k = 0; k < count; k++) {
            const double factor = -numbers[at + i * across + k * along], *other = numbers + source + k * step;
            for (int64_t j = 0; j < length; j++) {
                row[j] = FW_MULADD(factor, other[j], row[j]);
            }
        }
    }
}
""",
    "fw_sum_of_products": f"""\
/* Return the sum of a[at + j] b[begin + j], j < length, as {LANES} partial sums. */
static double fw_sum_of_products(const double *a, const double *b, int64_t at, int64_t begin, int64_t length)
{{
    double sums[{LANES}] = {{0.0}};

    for (int64_t j = 0; j < length; j += {LANES}) {{
        for (int64_t k = 0; k < {LANES}; k++) {{
            sums[k] = FW_MULADD(a[at + j + k], b[begin + j + k], sums[k]);
        }}
    }}
    for (int64_t width = {LANES // 2}; width > 0; width /= 2) {{
        for (int64_t k = 0; k < width; k++) {{
            sums[k] += sums[k + width];
        }}
    }}
    return sums[0];
}}
""",
}


def library_for(text: str) -> str:
    """Return the functions that a source text calls, with those that they call."""
    found: set[str] = set()
    pending = [text]
    while pending:
        for name in set(re.findall(r"\bfw_\w+", pending.pop())) & LIBRARY.keys() - found:
            found.add(name)
            pending.append(LIBRARY[name])
    return "\n".join(x for name, x in LIBRARY.items() if name in found)
