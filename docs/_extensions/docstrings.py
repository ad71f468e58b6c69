"""Conversion of docstrings to Markdown; names in backticks become links."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([*<$|\\\[\]])")

Lookup = Callable[[str], str | None]  # returns the full name of a name in backticks if the reference lists it


def markdown(doc: str, found: Lookup) -> Iterator[str]:
    """Yield the lines of a docstring: indented lines are code, the rest is text."""
    for line in inspect.cleandoc(doc).splitlines():
        yield line if line.startswith("    ") else "".join(_part(part, found) for part in _CODE.split(line))


def first_sentence(doc: str) -> str:
    """Return the first sentence of a docstring on one line."""
    paragraph = inspect.cleandoc(doc).partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.;])\s", paragraph, maxsplit=1)[0].rstrip(".:;")


def summary(doc: str, found: Lookup) -> str:
    """Return the first sentence of a docstring as Markdown."""
    return " ".join(markdown(first_sentence(doc), found))


def _part(part: str, found: Lookup) -> str:
    if not part.startswith("`"):
        return _SPECIAL.sub(r"\\\1", part)
    name = part.strip("`").removesuffix("()")
    target = found(name) if re.fullmatch(r"[\w.]+", name) else None
    return f"{{py:obj}}`{name} <{target}>`" if target else part
