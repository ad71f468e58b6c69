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
from featherweight.version import __version__

ROOT = Path(__file__).parents[2]
FIGURES = runpy.run_path(str(ROOT / "benchmarks" / "figures.py"))
CHARTS = runpy.run_path(str(ROOT / "benchmarks" / "charts.py"))
PICTURES = runpy.run_path(str(ROOT / "docs" / "draw_pictures.py"))
SHOWN = {path: FIGURES["places"](text) for path, text in FIGURES["pages"]().items()}
TELL_COUNTS = ("how_it_works/index.md", "how_fast.md")  # pages that say how many operations Talos takes
TIME = re.compile(r"\b(µs|us|ns|ms)\b|\[s\]|(steps|states|iterations)/s\b")
TIMES_OF_OTHERS = {"gpu.md"}  # a device that most machines lack: the page says which state of the library was measured


@pytest.fixture(scope="module")
def talos() -> fw.Robot:
    return fw.load(fw.example("talos_reduced"), base="floating", mimic="independent")


def test_every_table_is_what_a_command_printed() -> None:
    assert sum(map(len, SHOWN.values())) > 5
    for page, places in SHOWN.items():
        for command, text in places.items():
            assert (FIGURES["PEERS"] / shlex.split(command)[0]).is_file(), (page, command)
            assert text.lstrip().startswith("|"), f"{page}: no figures of {command}; run make figures"
            assert FIGURES["source"](command) in text.replace("\n", " "), f"{page}: {command} is of another version"


def test_pages_show_one_run() -> None:
    """Check that the figures of a command are equal on all pages, and those of all commands of one machine."""
    texts: dict[str, set[str]] = {}
    for places in SHOWN.values():
        for command, text in places.items():
            texts.setdefault(command, set()).add(text)
    assert all(len(each) == 1 for each in texts.values())
    machines = set()
    for command, (text,) in texts.items():
        described = text.replace("\n", " ").partition(f"{FIGURES['source'](command)}: ")[2]
        machines.add(tuple(re.split("[,;]", described)[:2]))
    assert len(machines) == 1, machines


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name)
def test_times_in_tables_are_measured_for_this_version(page: Path) -> None:
    """Check that all tables with times stand between marks, or that a line of the page names the version."""
    if page.name in TIMES_OF_OTHERS:
        assert re.search(r"of version \d+\.\d+\.\d+", page.read_text().replace("\n", " "))
        return
    text = page.read_text()
    if page.parent.name == "papers":
        assert f"Featherweight {__version__}" in text.partition("\n## ")[0]
        return
    for marked in FIGURES["places"](text).values():
        text = text.replace(marked, "")
    tables = re.findall(r"(?m)(?:^\|.*\n)+", text)
    assert [table for table in tables if TIME.search(table.partition("\n")[0]) or "µs" in table] == []


def test_all_tables_are_measured_or_those_that_are_named() -> None:
    every = FIGURES["chosen"]([])
    assert sorted(every) == sorted({command for places in SHOWN.values() for command in places})
    assert FIGURES["chosen"](["loops.py", every[-1]]) == ["loops.py", every[-1]]
    with pytest.raises(SystemExit):
        FIGURES["chosen"](["colls.py"])


def test_what_is_printed_beside_tables_is_left_out() -> None:
    text = FIGURES["shown"]("a.py", "a machine\n\nall is well\n\n| a |\n| --- |\n| 1 |\n\n| b |\n")
    last = f"`python benchmarks/peers/a.py`, Featherweight {__version__}: a machine"
    assert text == f"\n| a |\n| --- |\n| 1 |\n\n| b |\n\n{last}\n\n"
    with pytest.raises(ValueError, match=r"a\.py printed no table"):
        FIGURES["shown"]("a.py", "a machine\n")


def test_counts_in_the_text_are_counted(talos: fw.Robot) -> None:
    wanted = f"{talos.forward_dynamics.operations.flops:,}"
    texts = {name: (ROOT / "docs" / name).read_text() for name in TELL_COUNTS}
    found = {name: re.findall(r"([\d,]+)\s+multiplications and additions", text) for name, text in texts.items()}
    assert found == {name: [wanted] for name in TELL_COUNTS}


def test_the_picture_of_the_demonstration_shows_what_is_counted(talos: fw.Robot) -> None:
    with Image.open(ROOT / "docs" / "pictures" / "demo.png") as picture:
        assert picture.info["Description"] == operations_shown(shown_functions(talos))


@pytest.mark.parametrize(("name", "chart"), CHARTS["charts"](CHARTS["PAGE"].read_text()).items())
def test_charts_show_the_tables_of_their_page(name: str, chart: tuple[str, list[Any]]) -> None:
    with Image.open(ROOT / "docs" / "pictures" / name) as picture:
        assert picture.info["Description"] == CHARTS["description"](chart[1])
    assert f"(pictures/{name})" in CHARTS["PAGE"].read_text()


@pytest.mark.parametrize("picture", PICTURES["pictures"]())
def test_every_picture_has_its_command(picture: str) -> None:
    line, environment = PICTURES["command"](picture)
    script = line.split()[0]
    assert script == "-m" or (ROOT / script).is_file()
    if script.startswith("examples/"):
        assert Path(picture).name in (ROOT / script).read_text()
    if environment:
        assert f"$(VENV)-{environment}/.made" in (ROOT / "Makefile").read_text()
