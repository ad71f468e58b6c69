"""Arguments that users give: checks by type hints, which convert what has an obvious meaning and refuse the rest.

`checked` lets a function, a dataclass or a named tuple check its arguments. A `Kind` belongs to each type hint: `float` is any
number, `Positive` a positive one, `Iterable[str]` a list of names, `JointType` a member of the enumeration, or its text. Hints
without a kind are not checked. `argument` checks one value where no hint can, such as an array whose shape depends on a robot.

An error names the function, the argument, what it must be, and the value: "Joint 'elbow': axis must be 3 numbers; got 0.5".
Wrong numbers, arrays and choices raise ValueError; objects of another class, texts and switches raise TypeError.
"""

from .checking import checked
from .hints import CHECKED_LATER
from .kinds import (
    ARRAY,
    NAME,
    NUMBER,
    ONE_OR_SEVERAL,
    PATH,
    Bound,
    Count,
    Finite,
    Fraction,
    Kind,
    NonNegative,
    Positive,
    PositiveCount,
    Refused,
    Seed,
    argument,
    array_of,
    dict_of,
    either,
    generator,
    list_of,
    number_in,
    numbers,
    one_of,
    pairs_by_name,
    real_array,
    rows_of_numbers,
    shown,
    tuple_of,
    whole,
)

__all__ = [
    "ARRAY", "CHECKED_LATER", "NAME", "NUMBER", "ONE_OR_SEVERAL", "PATH", "Bound", "Count", "Finite", "Fraction",
    "Kind", "NonNegative", "Positive", "PositiveCount", "Refused", "Seed", "argument", "array_of", "checked",
    "dict_of", "either", "generator", "list_of", "number_in", "numbers", "one_of", "pairs_by_name", "real_array",
    "rows_of_numbers", "shown", "tuple_of", "whole",
]  # fmt: skip
