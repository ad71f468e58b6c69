"""Tables that programs write into pages, between <!-- KIND: NAME --> and <!-- end -->."""

from __future__ import annotations

import re
from collections.abc import Callable


def _marked(kind: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- {kind}: )(\S[^\n]*?)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def shown(page: str, kind: str) -> dict[str, str]:
    """Return the text between the marks of a page, by name."""
    return {name: text for name, _, text in _marked(kind).findall(page)}


def written(page: str, kind: str, made: Callable[[str], str]) -> str:
    """Return the page with the text that `made` returns for each name."""
    return _marked(kind).sub(lambda found: f"{found[1]}{found[2]}{made(found[1])}", page)
