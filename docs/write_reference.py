"""Write the first sentence of each docstring beside its name in the reference: `.venv-docs/bin/python docs/write_reference.py`.

The site has the whole texts; these sentences are for readers of the pages in a clone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent
LISTING = re.compile(r"(?P<head>```\{api(?:-table)?\} (?P<module>[\w.]+)\n(?::\w+:.*\n)*)(?P<names>(?:\w.*\n)+)```")

sys.path.insert(0, str(DOCS / "_extensions"))


def described(page: str) -> str:
    """Return the text of a page with the first sentences of docstrings as they are now."""
    return LISTING.sub(lambda listing: listing["head"] + "".join(_lines(listing["module"], listing["names"])) + "```", page)


def _lines(module: str, listed: str) -> Iterator[str]:
    import stand_ins  # noqa: F401  # before this package's bridges are imported
    from api import SAID, name_and_sentence
    from docstrings import first_sentence
    from public_names import docstring

    names = [name_and_sentence(line)[0] for line in listed.splitlines()]
    width = max(map(len, names))
    for name in names:
        sentence = first_sentence(docstring(f"{module}.{name}"))
        yield f"{name:<{width}}{SAID}{sentence}\n" if sentence else f"{name}\n"


def main() -> None:
    for path in (DOCS / "reference").glob("*.md"):
        path.write_text(described(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
