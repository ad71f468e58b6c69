"""Tests that run the code of the pages: all Python blocks of a page in order, in a folder with the files that they name."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from docs.page_blocks import blocks, in_the_folder_of_a_reader, run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RECIPES = ROOT / "docs" / "extending"  # test_recipes.py follows them
WITH_CODE = [page for page in PAGES if page.parent != RECIPES and any(blocks(page.read_text()))]


def name(page: Path) -> str:
    """Return the name of a test, with a word that assigns it to the process that compiles simulations (conftest.py)."""
    return page.relative_to(ROOT).as_posix() + (" simulation" if "Simulation(" in page.read_text() else "")


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """Run a page. With PICTURES=1, the pictures that it makes and shows are stored in docs/pictures."""
    with in_the_folder_of_a_reader(tmp_path):
        for left_out in run(page, page.read_text()):
            print(left_out)
    for picture in tmp_path.glob("*.png") if os.environ.get("PICTURES") else ():
        shutil.copy(picture, ROOT / "docs" / "pictures")


def test_blocks_run_in_order_with_what_is_hidden_and_without_what_is_left_out(tmp_path: Path) -> None:
    text = """
<!-- run first:
x = 1
-->

```python
y = x + 1
```

<!-- not run: there is no moon -->

```python
moon = land()
```

1. A list

   ```python
   z = moon.size
   ```

```python
import torch_that_is_not_there  # a module of no bridge: an error
```
"""
    assert [block.line for block in blocks(text)] == [2, 7, 13, 19, 23]
    with pytest.raises(ModuleNotFoundError) as error:
        run(tmp_path / "page.md", text)
    assert error.traceback[-1].lineno + 1 == 23
    assert run(tmp_path / "page.md", text.replace("import torch_that", "# ")) == [
        "page.md:13: there is no moon",
        "page.md:19: there is no moon",
    ]


def test_the_table_of_the_first_page_leads_to_all_guides() -> None:
    table = (ROOT / "README.md").read_text().partition("<!-- table:")[2].partition("<!-- end of the table -->")[0]
    assert {page.name for page in (ROOT / "docs" / "guides").glob("*.md")} <= {*re.findall(r"guides/(\w+\.md)", table)}


def test_the_tour_has_no_hidden_code() -> None:
    assert "run first:" not in (ROOT / "docs" / "tour.md").read_text()


def test_a_block_that_fails_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run(tmp_path / "page.md", "```python\nassert 1 == 2\n```\n")
