"""Pages of the site from Jupyter notebooks: text, code and the stored outputs, without Jupyter."""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Read files .ipynb of the folder of pages."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class NotebookParser(MystParser):  # type: ignore[misc]  # as in api.py
    """Parser of notebooks, which reads their cells as Markdown."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse a notebook, after the heading of its first cell with a link to the file."""
        title, *rest = (part for cell in json.loads(inputstring)["cells"] for part in _parts(cell))
        heading, _, text = title.partition("\n")
        name = document["source"].replace("\\", "/").rpartition("/")[2]
        download = f"{{download}}`Download this notebook <{name}>`, with its outputs."
        super().parse("\n\n".join([heading, download, text, *rest]), document)


def _parts(cell: dict[str, Any]) -> list[str]:
    """Return the text of a cell and its outputs as Markdown."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    printed = ["".join(output["text"]).rstrip("\n") for output in cell["outputs"]]
    return [f"```python\n{source}\n```", *(f"```text\n{text}\n```" for text in printed)]
