"""How the package is built: what may import what, one name for one thing, and few parameters."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import permutations
from pathlib import Path

import pytest

import featherweight

ROOT = Path(featherweight.__file__).parent
PATHS = {".".join(p.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): p for p in ROOT.rglob("*.py")}
MODULES = {name: ast.parse(path.read_text()) for name, path in PATHS.items()}
NODES = [(name, node) for name, tree in MODULES.items() for node in ast.walk(tree)]

BELOW_ROBOT = {"algorithms", "engine", "extras", "model", "names", "spatial"}
BELOW = {  # what each package may import
    "spatial": set[str](),
    "extras": set[str](),
    "names": set[str](),
    "engine": {"extras", "names", "spatial"},
    "model": {"extras", "names", "spatial"},
    "se3": {"spatial"},
    "algorithms": {"model", "spatial"},
    "robots": BELOW_ROBOT,
    "robot": BELOW_ROBOT,
    "identification": {"robot", *BELOW_ROBOT},
    "exporting": {"robot", "version", *BELOW_ROBOT},
    "casadi": {"exporting", "engine", "extras"},
    "viewer": {"robot", *BELOW_ROBOT},
    "simulation": {"viewer", "robot", *BELOW_ROBOT},
    "environments": {"simulation", "robot", *BELOW_ROBOT},
    "cli": {"exporting", "simulation", "viewer", "robot", "robots", "version", *BELOW_ROBOT},
    "jax": {"engine", "extras"},
    "gym": {"environments", "simulation", "robot", *BELOW_ROBOT},
    "torch": {"engine", "extras"},
    "version": set[str](),
    "__main__": {"cli"},
}
MIRRORED = (("algorithms.mechanisms", "algorithms"), ("model.formats.mjcf", "model.formats.urdf"))  # same name, same role
CALLED_BY_KEYWORDS = {*featherweight.__all__}  # public functions, and the constructors of public classes


def imports(module: str, node: ast.AST) -> Iterator[str]:
    """The modules of the package that an import names."""
    if isinstance(node, ast.Import):
        yield from {alias.name for alias in node.names} & MODULES.keys()
    if isinstance(node, ast.ImportFrom):
        parts = [*module.split("."), "__init__"] if PATHS[module].stem == "__init__" else module.split(".")
        source = ".".join([*(parts[: -node.level] if node.level else ()), *filter(None, [node.module])])
        for alias in node.names:
            yield from {f"{source}.{alias.name}" if f"{source}.{alias.name}" in MODULES else source} & MODULES.keys()


def package(module: str) -> str:
    return [*module.split("."), ""][1]


def in_room(module: str, room: str) -> bool:
    return module.startswith(f"featherweight.{room}.")


IMPORTS = {(name, other) for name, node in NODES for other in imports(name, node)}  # also inside functions, or for types only


def test_no_imports_in_a_circle() -> None:
    """`prepare` raises CycleError, with the circle."""
    TopologicalSorter({name: {b for a, b in IMPORTS if a == name} for name in MODULES}).prepare()
    TopologicalSorter({p: {package(b) for a, b in IMPORTS if package(a) == p} - {p} for p in ["", *BELOW]}).prepare()


@pytest.mark.parametrize("name", BELOW)
def test_a_package_imports_what_is_below_it_only(name: str) -> None:
    assert [(a, b) for a, b in IMPORTS if package(a) == name and package(b) not in {name, *BELOW[name]}] == []


def test_all_packages_have_their_place() -> None:
    assert {*map(package, MODULES)} == {"", *BELOW}


def test_file_names_occur_once_but_in_mirrored_rooms() -> None:
    files = [name for name, path in PATHS.items() if path.stem != "__init__"]
    same = {(a, b) for a, b in permutations(files, 2) if PATHS[a].stem == PATHS[b].stem}
    mirrored = {(a, b) for a, b in same for one, other in MIRRORED if in_room(a, one) and in_room(b, other)}
    assert {*map(frozenset, same)} - {*map(frozenset, mirrored)} == set()


def test_class_names_occur_once() -> None:
    names = Counter(node.name for _, node in NODES if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_functions_have_at_most_eight_parameters() -> None:
    """But for those that users call with keywords, and commands, whose parameters are options."""
    inits = {f: c.name for _, c in NODES if isinstance(c, ast.ClassDef) for f in c.body if getattr(f, "name", "") == "__init__"}
    functions = [(module, node) for module, node in NODES if isinstance(node, ast.FunctionDef) and package(module) != "cli"]
    assert [
        f"{module}.{f.name}"
        for module, f in functions
        if len({a.arg for a in [*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs]} - {"self", "cls"}) > 8
        if inits.get(f, f.name) not in CALLED_BY_KEYWORDS
    ] == []
