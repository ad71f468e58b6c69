"""Tests of figures and pictures of the pages: each has a command, and counts are current."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import featherweight as fw
from featherweight.cli.demo import shown_functions
from featherweight.cli.picture import operations_shown

ROOT = Path(__file__).parents[2]
FIGURES = runpy.run_path(str(ROOT / "benchmarks" / "figures.py"))
CHARTS = runpy.run_path(str(ROOT / "benchmarks" / "charts.py"))
PICTURES = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
SHOWN = {path: FIGURES["places"](path.read_text()) for path in FIGURES["PAGES"]}


@pytest.fixture(scope="module")
def talos() -> fw.Robot:
    return fw.load(fw.example("talos_reduced"), base="floating", mimic="independent")


def test_every_table_is_what_a_command_printed() -> None:
    assert all(SHOWN.values())
    for page, places in SHOWN.items():
        for command, text in places.items():
            assert (FIGURES["PEERS"] / shlex.split(command)[0]).is_file(), (page, command)
            assert text.lstrip().startswith("|"), f"{page}: no figures of {command}; run make figures"
            assert f"`python benchmarks/peers/{command}`" in text


def test_pages_show_one_run_or_say_which_tables_are_of_another() -> None:
    """Check that the figures of a command are equal on all pages; if machines differ, the page with all figures says so."""
    first, *others = SHOWN.values()
    for places in others:
        assert first.items() <= places.items()
    machines = {re.search(r"`: ([^,;]*)", text)[1] for places in SHOWN.values() for text in places.values()}  # type: ignore[index]
    page = max(SHOWN, key=lambda path: len(SHOWN[path]))
    introduction = page.read_text().partition("\n## ")[0]
    assert len(machines) == 1 or all(machine in introduction for machine in machines)


def test_what_is_printed_beside_tables_is_left_out() -> None:
    text = FIGURES["shown"]("a.py", "a machine\n\nall is well\n\n| a |\n| --- |\n| 1 |\n\n| b |\n")
    assert text == "\n| a |\n| --- |\n| 1 |\n\n| b |\n\n`python benchmarks/peers/a.py`: a machine\n\n"
    with pytest.raises(SystemExit, match=r"a\.py printed no table"):
        FIGURES["shown"]("a.py", "a machine\n")


def test_counts_in_the_text_are_counted(talos: fw.Robot) -> None:
    wanted = f"{talos.forward_dynamics.operations.flops:,}"
    found = {path.name: re.findall(r"([\d,]+)\s+multiplications and additions", path.read_text()) for path in SHOWN}
    assert found == {path.name: [wanted] for path in SHOWN}


def test_the_picture_of_the_demonstration_shows_what_is_counted(talos: fw.Robot) -> None:
    with Image.open(ROOT / "docs" / "demo.png") as picture:
        assert picture.info["Description"] == operations_shown(shown_functions(talos))


@pytest.mark.parametrize(("name", "chart"), CHARTS["charts"](CHARTS["PAGE"].read_text()).items())
def test_charts_show_the_tables_of_their_page(name: str, chart: tuple[str, list[Any]]) -> None:
    with Image.open(ROOT / "docs" / name) as picture:
        assert picture.info["Description"] == CHARTS["description"](chart[1])
    assert f"({name})" in CHARTS["PAGE"].read_text()


@pytest.mark.parametrize("picture", PICTURES["pictures"]())
def test_every_picture_has_its_command(picture: str) -> None:
    line, environment = PICTURES["command"](picture)
    script = line.split()[0]
    assert script == "-m" or (ROOT / script).is_file()
    if script.startswith("examples/"):
        assert Path(picture).name in (ROOT / script).read_text()
    if environment:
        assert f"$(VENV)-{environment}/.made" in (ROOT / "Makefile").read_text()
