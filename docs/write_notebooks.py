"""Write guides as Jupyter notebooks and run them: `python docs/write_notebooks.py`, after a change of one of these pages.

The outputs are what the cells print. The extension `notebooks` of the site shows both.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
GUIDES = ("contact_rich_control", "inverse_kinematics", "simulation")
INVISIBLE = re.compile(r"^<!--.*?-->\n", re.DOTALL | re.MULTILINE)
ITSELF = re.compile(r"^This guide is also a \[notebook\].*\n", re.MULTILINE)
CODE = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
SIBLING = re.compile(r"\]\((?=[^)./:#][^)/:]*\))")  # a link to a file beside the page
FILE = re.compile(r'"(\w+\.(?:urdf|xml))"')


def notebook(page: str) -> dict[str, Any]:
    """Return a page as a notebook: code in code cells, text in Markdown cells, links relative to the notebooks' folder."""
    cells: list[dict[str, Any]] = []
    for k, text in enumerate(CODE.split(ITSELF.sub("", INVISIBLE.sub("", page)))):
        code = bool(k % 2)
        text = FILE.sub(_found, text) if code else SIBLING.sub("](../guides/", text)
        if source := text.strip("\n").splitlines(keepends=True):
            cell: dict[str, Any] = {
                "cell_type": "code" if code else "markdown",
                "id": f"cell-{k}",
                "metadata": {},
                "source": source,
            }
            cells.append(cell | {"execution_count": None, "outputs": []} if code else cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _found(file: re.Match[str]) -> str:
    """Return the path of a file of the pages, relative to the folder of the notebooks."""
    return f'"../files/{file[1]}"' if (DOCS / "files" / file[1]).exists() else file[0]


def run(written: dict[str, Any], folder: Path) -> None:
    """Run the code cells of a notebook in a folder, and store what they print."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for count, cell in enumerate((c for c in written["cells"] if c["cell_type"] == "code"), 1):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile("".join(cell["source"]), f"cell {count}", "exec"), names)
            cell["execution_count"] = count
            if text := printed.getvalue().splitlines(keepends=True):
                cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}]


def main() -> None:
    for guide in GUIDES:
        written = notebook((DOCS / "guides" / f"{guide}.md").read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(DOCS / "files", Path(place) / "files")
            (folder := Path(place) / "notebooks").mkdir()
            run(written, folder)
        text = json.dumps(written, indent=1, ensure_ascii=False) + "\n"
        (DOCS / "notebooks" / f"{guide}.ipynb").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
