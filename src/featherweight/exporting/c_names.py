"""Valid names in C and C++ that compilers, their libraries and build tools do not use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_WORDS = """
alignas alignof and and_eq asm atomic_cancel auto bitand bitor bool break case catch char char8_t char16_t char32_t class
co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new
noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_LIBRARY = """
EOF NULL abort abs acos acosh asctime asin asinh assert atan atan2 atanh atexit atof atoi atol bsearch calloc cbrt ceil clock
close copysign cos cosh ctime difftime div environ erf erfc errno exit exp exp2 expm1 fabs fclose fdim feof ferror fflush fgetc
fgets floor fma fmax fmin fmod fopen fprintf fputc fputs fread free freopen frexp fscanf fseek ftell fwrite getc getchar getenv
gets gmtime hypot ilogb index isalnum isalpha isdigit isfinite isinf isnan isnormal isspace labs ldexp ldiv lgamma linux
localtime log log10 log1p log2 logb longjmp lrint lround main malloc memchr memcmp memcpy memmove memset mktime modf nan
nearbyint nextafter open perror pipe pow printf ptrdiff_t putc putchar puts qsort raise rand read realloc remainder remove
remquo rename rewind rint round scalbn scanf setjmp signal signbit sin sinh size_t sleep snprintf sprintf sqrt srand sscanf
stderr stdin stdout strcat strchr strcmp strcpy strlen strtod strtol system tan tanh tgamma time tmpfile tolower toupper trunc
ungetc unix vprintf wait write y0 y1 yn j0 j1 jn
"""
_OURS = "FW_MULADD workspace"  # names in the source
_FILES = """
assert complex ctype errno fenv float inttypes iso646 limits locale math memory setjmp signal stdalign stdarg stdatomic
stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
c dl m pthread rt stdc++
all clean edit_cache help install package package_source rebuild_cache test
"""  # the library's headers, libraries, and CMake's targets; our header would hide theirs
RESERVED = frozenset([*_WORDS.split(), *_LIBRARY.split(), *_OURS.split()])
RESERVED_FILES = frozenset(_FILES.split())
_INTEGERS = re.compile(r"u?int(_fast|_least)?\d+_t|u?int(ptr|max)_t")


def is_free(name: str) -> bool:
    """Return whether a name is valid in C and not used otherwise."""
    return re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) is not None and name not in RESERVED and not _INTEGERS.fullmatch(name)


def check_name(name: str, what: str) -> str:
    """Return a name for a function. Raises ValueError for names that are invalid in C or C++, or have a meaning there."""
    if not is_free(name):
        why = "is taken in C or C++" if name.isidentifier() and name.isascii() and name[:1] != "_" else "cannot be a name in C"
        raise ValueError(f"export: {name!r} {why}: give {what} another name, of letters, digits and underscores")
    return name


def check_file_name(name: str) -> str:
    """Return a name for a library. Raises ValueError also for names of C's headers and libraries, and of CMake's targets."""
    if name.lower() in RESERVED_FILES:
        raise ValueError(f"export: {name!r} is taken by C's library or by CMake: give the library another name")
    return check_name(name, "the library")


def plain_name(name: str, taken: Iterable[str] = ()) -> str:
    """Make a library's name from any other name.

    The result has its letters and digits, after `robot_` if they alone are not a valid name; it is "" for a name without any.
    """
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).strip("_")
    free = is_free(plain) and plain.lower() not in RESERVED_FILES and plain not in taken
    return plain if free else f"robot_{plain}" if plain else ""


def check_distinct(defined: Mapping[str, Iterable[str]]) -> None:
    """Raise ValueError unless all symbols that functions define are distinct."""
    owner: dict[str, str] = {}
    for name, symbols in defined.items():
        for symbol in symbols:
            if owner.setdefault(symbol, name) != name:
                raise ValueError(
                    f"export: functions {owner[symbol]!r} and {name!r} both define {symbol}: give one another name"
                )
