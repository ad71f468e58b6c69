"""Tests that notebooks have the text and code of the guides; test_pages.py runs the code."""

from __future__ import annotations

import ast
import json
import runpy
from pathlib import Path

import pytest

from docs.page_blocks import blocks

DOCS = Path(__file__).parents[2] / "docs"
WRITER = runpy.run_path(str(DOCS / "write_notebooks.py"))
GUIDES: tuple[str, ...] = WRITER["GUIDES"]


def test_there_is_a_notebook_of_each_of_these_guides_and_no_other() -> None:
    assert {path.stem for path in (DOCS / "notebooks").iterdir()} == {*GUIDES}
    linked = {path.stem for path in (DOCS / "guides").glob("*.md") if f"notebooks/{path.stem}.ipynb" in path.read_text()}
    assert linked == {*GUIDES}


@pytest.mark.parametrize("guide", GUIDES)
def test_a_notebook_is_what_the_script_writes_from_its_page(guide: str) -> None:
    """Compare text and code; outputs, which may differ by rounding, are those of the machine that wrote the notebook."""
    committed = json.loads((DOCS / "notebooks" / f"{guide}.ipynb").read_text(encoding="utf-8"))
    for cell in committed["cells"]:
        if cell["cell_type"] == "code":
            assert bool(cell["outputs"]) == ("print(" in "".join(cell["source"])), cell["source"]
            cell |= {"execution_count": None, "outputs": []}
    page = (DOCS / "guides" / f"{guide}.md").read_text(encoding="utf-8")
    assert committed == WRITER["notebook"](page), "run: python docs/write_notebooks.py"


def test_running_a_notebook_stores_what_its_cells_print(tmp_path: Path) -> None:
    notebook = WRITER["notebook"]("# Title\n\n```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n")
    WRITER["run"](notebook, tmp_path)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [1, 2]
    assert [cell["outputs"] for cell in code] == [[], [{"name": "stdout", "output_type": "stream", "text": ["2\n"]}]]


@pytest.mark.parametrize("guide", GUIDES)
def test_a_notebook_has_all_code_of_its_page_but_checks(guide: str) -> None:
    """Check that a notebook runs like its page: hidden code binds no names."""
    cells = json.loads((DOCS / "notebooks" / f"{guide}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]).replace("../files/", "") for cell in cells if cell["cell_type"] == "code"]
    page = [block.code.strip("\n") for block in blocks((DOCS / "guides" / f"{guide}.md").read_text())]
    hidden = [text for text in page if text not in code]
    assert [text for text in page if text in code] == code
    assert all(isinstance(statement, ast.Assert) for text in hidden for statement in ast.parse(text).body)


def test_links_of_notebooks_lead_somewhere() -> None:
    cell = WRITER["notebook"]("[a](simulation.md#a-step), [b](../files/arm.urdf), [c](https://x.org), [d](#here)\n")["cells"][0]
    assert cell["source"] == ["[a](../guides/simulation.md#a-step), [b](../files/arm.urdf), [c](https://x.org), [d](#here)"]
