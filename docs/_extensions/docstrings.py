"""Docstrings as Markdown, whose names in backticks lead to what they name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([*<$|\\\[\]])")

Lookup = Callable[[str], str | None]  # the full name of what a name in backticks means, if the reference has it


def markdown(doc: str, found: Lookup) -> Iterator[str]:
    """The lines of a docstring: indented ones are code, and the rest is text."""
    for line in inspect.cleandoc(doc).splitlines():
        yield line if line.startswith("    ") else "".join(_part(part, found) for part in _CODE.split(line))


def summary(doc: str, found: Lookup) -> str:
    """Its first sentence, on one line."""
    paragraph = inspect.cleandoc(doc).partition("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<=[.])\s|(?<=[:;])\s", paragraph, maxsplit=1)[0].rstrip(".:;")
    return " ".join(markdown(sentence, found))


def _part(part: str, found: Lookup) -> str:
    if not part.startswith("`"):
        return _SPECIAL.sub(r"\\\1", part)
    name = part.strip("`").removesuffix("()")
    target = found(name) if re.fullmatch(r"[\w.]+", name) else None
    return f"{{py:obj}}`{name} <{target}>`" if target else part
