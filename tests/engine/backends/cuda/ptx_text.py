"""Rounding modes in PTX code."""

from __future__ import annotations

import re

ARITHMETIC = "add|sub|mul|mad|fma|div|rcp|sqrt|rsqrt|sin|cos|ex2|lg2|tanh"
ROUNDED = re.compile(rf"^\s+(?:@%p\d+ )?((?:{ARITHMETIC})(?:\.\w+)*\.f(?:16|32|64))\b", re.M)
"""Instructions on floating-point numbers whose results are rounded."""


def assert_rounded_as_here(text: str, least: int) -> None:
    """Check that the assembler fuses no operations, that none is approximate, that subnormal numbers are kept, and that
    no library is called.
    """
    rounded = ROUNDED.findall(text)
    assert len(rounded) > least
    assert {x for x in rounded if ".rn." not in x} == set()
    assert not re.search(r"\.(approx|ftz|full|sat)\b|\.extern \.func", text)
