"""Check that pages load nothing from other sites, because the site must also work from a disk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

_ELSEWHERE = r"""=["'](?:https?:)?//[^"']*"""
_LOADED = {
    "*.html": re.compile(rf"<(?:script|img|iframe|video|source)\b[^>]*\bsrc{_ELSEWHERE}|<link\b[^>]*\bhref{_ELSEWHERE}"),
    "*.css": re.compile(r"""(?:@import|url\()\s*["'(]*(?:https?:)?//[^"')]*"""),
}


def setup(app: Sphinx) -> dict[str, Any]:
    """Check the written pages after the build."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _check(app: Sphinx, failure: Exception | None) -> None:
    if failure is not None or app.builder.format != "html":
        return
    for kind, pattern in _LOADED.items():
        for path in sorted(Path(app.outdir).rglob(kind)):
            if found := pattern.search(path.read_text()):
                raise ExtensionError(f"{path.relative_to(app.outdir)} loads from elsewhere: {found.group()}")
