"""Pages of the folder above `docs`: the site includes their text, and links to them lead to these pages.

GitHub shows them as written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_FOLDER = "project/"
_TO_ROOT = re.compile(r"\]\((?:\.\./)*(README|CHANGELOG|CONTRIBUTING|SECURITY)\.md(#[^)]*)?\)")
_RELATIVE = re.compile(r"\]\((?!\w+:|#)(docs/)?")


def setup(app: Sphinx) -> dict[str, Any]:
    """Read pages with changed links, and include the pages of the folder above."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read(app: Sphinx, docname: str, content: list[str]) -> None:
    text = content[0]
    if docname.startswith(_FOLDER):
        path = Path(app.srcdir).parent / f"{docname.removeprefix(_FOLDER).upper()}.md"
        app.env.note_dependency(str(path))
        text = _RELATIVE.sub(lambda m: "](/" if m[1] else "](../../", path.read_text())
    content[0] = _TO_ROOT.sub(lambda m: f"](/{_FOLDER}{m[1].lower()}.md{m[2] or ''})", text)
