"""Tests that names in backticks on pages exist: members of classes, modules, and names with an underscore."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import featherweight as fw

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "featherweight"
PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "README.md", "SECURITY.md")] + sorted((ROOT / "docs").rglob("*.md"))

SPOKEN = {
    "robot": ("Robot", "ClosedRobot"),
    "self": ("Robot", "ClosedRobot"),
    "sim": ("Simulation",),
    "description": ("Description",),
    "ocp": ("OptimalControl",),
    "plan": ("Plan",),
    "fw": ("featherweight",),
}
"""Names that pages use for objects of these classes, and for the package."""

OTHERS = ("casadi", "data", "jax", "llvm", "model", "plant", "result", "torch")
"""Modules whose names are also those of other libraries, or of variables in pages."""

FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
QUOTED = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)*)(?:\([^`]*\))?`")
MODULE = re.compile(r"`((?:\w+/)*\w+\.py)`")
FILES = re.compile(r"\.(py|md|json|xml|urdf|png|toml|yml|so|c|h|html|npz|gif)$")


@cache
def members() -> dict[str, set[str]]:
    """Return the members of classes and modules of the package by name; members of equal names together."""
    found: dict[str, set[str]] = {}
    bases: dict[str, list[str]] = {}
    for file in SOURCES.rglob("*.py"):
        tree = ast.parse(file.read_text())
        name = file.parent.name if file.stem == "__init__" else file.stem
        found.setdefault(name, set()).update(defined(tree))
        if file.stem == "__init__":
            found[name] |= {x.stem for x in file.parent.iterdir()}
        for node in statements(tree):
            if isinstance(node, ast.ClassDef):
                own = {x.attr for x in ast.walk(node) if isinstance(x, ast.Attribute)}
                found.setdefault(node.name, set()).update(defined(node) | own)
                bases.setdefault(node.name, []).extend(b.id for b in node.bases if isinstance(b, ast.Name))
    for name in bases:
        for base in every_base(name, bases):
            found[name] |= found.get(base, set())
    found["featherweight"] |= set(fw.__all__)
    return {name: own for name, own in found.items() if name not in OTHERS}


def every_base(name: str, bases: dict[str, list[str]]) -> Iterator[str]:
    for base in bases.get(name, ()):
        yield base
        yield from every_base(base, bases)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements inside a node, without their expressions, where no class is defined."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for x in getattr(node, field, ()):
            yield x
            yield from statements(x)


def defined(node: ast.AST) -> set[str]:
    """Return names that the body of a class or a module binds."""
    names: set[str] = set()
    for x in ast.walk(node):
        if isinstance(x, (ast.FunctionDef, ast.ClassDef)):
            names.add(x.name)
        elif isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store):
            names.add(x.id)
        elif isinstance(x, ast.alias):
            names.add((x.asname or x.name).partition(".")[0])
    return names


def missing(name: str) -> bool:
    """Return whether a name looks like one of the package but does not exist."""
    head, *rest = name.split(".")
    known = members()
    if not rest:
        return head.startswith("_") and not head.startswith("__") and all(head not in own for own in known.values())
    owners = [o for o in SPOKEN.get(head, (head,)) if o in known]
    return bool(owners) and all(rest[0] not in known[o] for o in owners)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_of_ours_exist(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    names = {m[1] for m in QUOTED.finditer(text) if not FILES.search(m[1])}
    assert not sorted(filter(missing, names))


@cache
def modules() -> tuple[str, ...]:
    folders = (ROOT / name for name in ("src", "tests", "benchmarks", "docs", "examples", "release"))
    return tuple(f"/{file.relative_to(ROOT).as_posix()}" for folder in folders for file in folder.rglob("*.py"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name != "extending"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_modules_on_a_page_exist(page: Path) -> None:
    """Check all pages but the recipes, whose modules the reader writes."""
    names = MODULE.findall(FENCE.sub("", page.read_text()))
    assert [name for name in names if not any(module.endswith(f"/{name}") for module in modules())] == []


def test_names_that_do_not_exist_are_found() -> None:
    assert missing("self.argument") and missing("System.argument") and missing("_Emitter") and missing("robot.no_such_thing")
    assert not any(map(missing, ("self.bind", "System.input", "robot.nq", "numpy.bind", "spatial.Coriolis", "Emitter.f")))
