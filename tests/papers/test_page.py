"""Tests of docs/papers: what the page says of counts is what is counted now."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import make_report
import pytest
from report import Report

PAGE = Path(__file__).parents[2] / "docs" / "papers" / "README.md"
WITHOUT = ("Times were not measured", "Skipped: no folder", "Featherweight ")  # lines of reports without times and robots


@pytest.mark.parametrize("sections", make_report.PAPERS, ids=lambda sections: sections.__module__)
def test_the_page_has_the_counts_and_pictures_of_this_version(
    sections: Callable[[Report], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_report, "PAPERS", (sections,))
    text = make_report.write_report(tmp_path, times=False).read_text()
    lines, page = text.splitlines(), set(PAGE.read_text().splitlines())
    assert sum(line.startswith("|") for line in lines) > 10
    assert [line for line in lines if line not in page and not line.startswith(WITHOUT)] == []
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == set(re.findall(r"\((\w+\.png)\)", text))
    assert all((tmp_path / name).stat().st_size < 150_000 for name in pictures)
