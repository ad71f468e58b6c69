"""Structure of the package: allowed imports, and few parameters."""

from __future__ import annotations

import ast
import gc
import importlib
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import featherweight
from featherweight import array_types

ROOT = Path(featherweight.__file__).parent
PATHS = {".".join(p.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): p for p in ROOT.rglob("*.py")}

BELOW_ROBOT = {"algorithms", "array_types", "checks", "engine", "extras", "model", "names", "spatial", "summaries"}
BELOW = {  # what each package may import
    "array_types": set[str](),
    "spatial": set[str](),
    "extras": set[str](),
    "summaries": set[str](),
    "caller": set[str](),
    "names": {"caller", "summaries"},
    "providers": set[str](),
    "checks": {"array_types", "caller", "names", "summaries"},
    "engine": {"array_types", "checks", "extras", "names", "spatial", "summaries"},
    "model": {"array_types", "checks", "extras", "names", "providers", "spatial", "summaries"},
    "se3": BELOW_ROBOT,
    "paths": {"robot", "se3", *BELOW_ROBOT},
    "algorithms": {"model", "spatial"},
    "robots": BELOW_ROBOT,
    "collision": {"array_types", "engine", "extras", "model"},
    "contact": {"array_types", "collision", "engine", "extras", "model"},
    "robot": {"collision", "providers", "quadratic_programs", *BELOW_ROBOT},
    "identification": {"simulation", "contact", "collision", "robot", *BELOW_ROBOT},
    "exporting": {"robot", "version", *BELOW_ROBOT},
    "viewer": {"simulation", "contact", "collision", "robot", *BELOW_ROBOT},
    "simulation": {"contact", "collision", "providers", "robot", *BELOW_ROBOT},
    "environments": {"simulation", "contact", "collision", "robot", "robots", *BELOW_ROBOT},
    "optimal_control": {"simulation", "contact", "collision", "robot", *BELOW_ROBOT},
    "quadratic_programs": {"array_types", "engine"},
    "whole_body": {"simulation", "contact", "quadratic_programs", "robot", *BELOW_ROBOT},
    "cli": {"exporting", "simulation", "viewer", "robot", "robots", "version", *BELOW_ROBOT},
    "bridges": {"environments", "exporting", "optimal_control", "simulation", "robot", *BELOW_ROBOT},
    **{name: {"bridges", "extras"} for name in ("casadi", "gym", "jax", "torch", "unisim")},
    "version": set[str](),
    "__main__": {"cli"},
}
OF_NAMED_TUPLES = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}
CALLED_BY_KEYWORDS = {
    *featherweight.__all__,
    "RobotVectorEnv",
    "excite",
    "rollout",
    "vary",
    "with_joint",
}  # public functions, constructors of public classes


def imports(module: str, node: ast.AST) -> Iterator[str]:
    """Yield the modules of the package that an import names."""
    if isinstance(node, ast.Import):
        yield from {alias.name for alias in node.names} & PATHS.keys()
    if isinstance(node, ast.ImportFrom):
        parts = [*module.split("."), "__init__"] if PATHS[module].stem == "__init__" else module.split(".")
        source = ".".join([*(parts[: -node.level] if node.level else ()), *filter(None, [node.module])])
        for alias in node.names:
            yield from {f"{source}.{alias.name}" if f"{source}.{alias.name}" in PATHS else source} & PATHS.keys()


def package(module: str) -> str:
    return [*module.split("."), ""][1]


Node = tuple[str, ast.AST]


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    """Return all syntax nodes of the package with the names of their modules: a million objects, freed after the tests of
    this file.
    """
    gc.disable()  # it took two thirds of the time
    try:
        trees = {name: ast.parse(path.read_text()) for name, path in PATHS.items()}
        return [(name, node) for name, tree in trees.items() for node in ast.walk(tree)]
    finally:
        gc.enable()


@pytest.fixture(scope="module")
def imported(nodes: list[Node]) -> set[tuple[str, str]]:
    """Return the pairs (importing module, imported module), including imports inside functions or for types only."""
    return {(name, other) for name, node in nodes for other in imports(name, node)}


def test_no_imports_in_a_circle(imported: set[tuple[str, str]]) -> None:
    """Check modules and packages; `prepare` raises CycleError with the cycle."""
    TopologicalSorter({name: {b for a, b in imported if a == name} for name in PATHS}).prepare()
    TopologicalSorter({p: {package(b) for a, b in imported if package(a) == p} - {p} for p in ["", *BELOW]}).prepare()


@pytest.mark.parametrize("name", BELOW)
def test_a_package_imports_what_is_below_it_only(name: str, imported: set[tuple[str, str]]) -> None:
    assert [(a, b) for a, b in imported if package(a) == name and package(b) not in {name, *BELOW[name]}] == []


def test_all_packages_have_their_place() -> None:
    assert {*map(package, PATHS)} == {"", *BELOW}


def defined(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement gives to functions, classes, fields and variables."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.id if isinstance(node, ast.Name) else node.attr


def private(node: ast.AST) -> Iterator[str]:
    """Yield the names with a leading underscore that are taken from other objects, or imported."""
    if isinstance(node, ast.ImportFrom):
        names = [alias.name for alias in node.names]
    else:
        names = [node.attr] if isinstance(node, ast.Attribute) else []
    yield from (name for name in names if name.startswith("_") and not name.startswith("__"))


def test_no_underscore_crosses_the_wall_of_a_package(nodes: list[Node]) -> None:
    """Check that names that other packages use are public."""
    homes: dict[str, set[str]] = {}
    for module, node in nodes:
        for name in defined(node):
            homes.setdefault(name, set()).add(package(module))
    assert [
        (module, name)
        for module, node in nodes
        for name in private(node)
        if name in homes and name not in OF_NAMED_TUPLES and package(module) not in homes[name]
    ] == []


def test_a_bridge_imports_no_other(imported: set[tuple[str, str]]) -> None:
    """Bridges share `arguments`; the handlers for XLA belong to the bridge to JAX."""
    within = {tuple(x.split(".")[2] for x in pair) for pair in imported if {*map(package, pair)} == {"bridges"}}
    assert {(a, b) for a, b in within if a != b != "arguments"} == {("jax_arrays", "xla")}


@pytest.mark.parametrize("name", ["bridges", "engine", "robot"])
def test_a_package_says_which_modules_others_use(name: str, imported: set[tuple[str, str]]) -> None:
    """Check that the package's docstring lists these modules."""
    whole = f"{ROOT.name}.{name}"
    listed = (importlib.import_module(whole).__doc__ or "").partition("\nOther packages use these modules:\n")[2]
    doors = {f"{whole}.{module}" for module in re.findall(r"^    ([\w.]+) ", listed, re.MULTILINE)}
    assert doors == {b for a, b in imported if package(b) == name != package(a)}


def arguments_of(f: ast.FunctionDef) -> list[ast.arg]:
    given = [*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs]
    return [x for x in given if x.arg not in ("self", "cls")]


def size(annotation: ast.AST | None) -> int:
    """Return the number of elements of a tuple, of those of a union the greatest; 1 for anything else."""
    if isinstance(annotation, ast.BinOp):
        return max(size(annotation.left), size(annotation.right))
    if not (isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple)):
        return 1
    elements = annotation.slice.elts
    many = ast.unparse(annotation.value) != "tuple" or any(isinstance(x, ast.Constant) for x in elements)
    return 1 if many else sum(map(size, elements))


def is_kernel(f: ast.FunctionDef, records: set[str]) -> bool:
    """Return whether a function takes only numbers, arrays and records of these, and no defaults that say what it does."""
    words = {x.id for a in arguments_of(f) if a.annotation for x in ast.walk(a.annotation) if isinstance(x, ast.Name)}
    return all(a.annotation for a in arguments_of(f)) and words <= records | NUMBERS


NUMBERS = {"bool", "float", "int", "tuple", "Triple", "TripleLike", *(x for x in vars(array_types) if x[0].isupper())}


def test_functions_have_few_parameters(nodes: list[Node]) -> None:
    """Check that functions have at most 8, and kernels 12, which pass elements of tuples; users call the others by keyword."""
    classes = [c for _, c in nodes if isinstance(c, ast.ClassDef)]
    inits = {f: c.name for c in classes for f in c.body if getattr(f, "name", "") == "__init__"}
    records = {c.name for c in classes if "NamedTuple" in map(ast.unparse, c.bases)}
    functions = [(module, node) for module, node in nodes if isinstance(node, ast.FunctionDef) and package(module) != "cli"]
    assert [
        f"{module}.{f.name}"
        for module, f in functions
        if sum(size(a.annotation) for a in arguments_of(f)) > (12 if is_kernel(f, records) else 8)
        if inits.get(f, f.name) not in CALLED_BY_KEYWORDS
    ] == []


# ---- what is compiled from a robot is the same on every machine

FROM_FILES_TO_TRACES = ("spatial", "model", "algorithms", "robots", "engine", "robot.closing", "robot.constraints")
ELSEWHERE = {  # modules or packages in those packages that do not affect traces
    "model.equivalent_box": "pictures, and stand-ins for shapes",
    "spatial.elementary": "begins with the library's values, and corrects them",
    "engine.loops.intrinsics": "names of functions that kernels may call",
    "model.solids": "takes faces of convex hulls from Qhull, and sums over them in order",
    "model.random_numbers": "takes normal numbers that come from a table",
    "robot.closing.assembly": "`singularity`, of configurations that users ask for",
}
BY_PROCESSOR = {  # functions whose last digits depend on the processor, or on the system's library
    "np": {"linalg", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "exp", "log", "power", "hypot", "dot",
           "vdot", "inner", "outer", "einsum", "tensordot", "matmul", "convolve", "kron", "trace", "mean", "average"},
    "math": {"sin", "cos", "tan", "asin", "acos", "atan", "atan2", "exp", "log", "pow", "hypot", "dist"},
    "rng": {"uniform", "normal", "standard_normal", "exponential"},
}  # fmt: skip


def depends_on_the_processor(node: ast.AST) -> bool:
    """Return whether a node multiplies a transposed array by BLAS, or uses a function of `BY_PROCESSOR`.

    Types of other products are unknown.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return any(isinstance(side, ast.Attribute) and side.attr == "T" for side in (node.left, node.right))
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == "scipy" or node.module in ("numpy.linalg", "math")
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr in BY_PROCESSOR.get(node.value.id if isinstance(node.value, ast.Name) else "", set())


def test_what_leads_to_traces_computes_alike_everywhere(nodes: list[Node]) -> None:
    """Check imports and calls; `spatial.elementary` and `spatial.ordered` have replacements; `model/trace_hashes.py`
    compares results.
    """
    found = set()
    for module, node in nodes:
        within = module.removeprefix("featherweight.")
        if f"{within}.".startswith(tuple(f"{package}." for package in FROM_FILES_TO_TRACES)) and depends_on_the_processor(node):
            found.add(within)
    known = {name for name in found if f"{name}.".startswith(tuple(f"{other}." for other in ELSEWHERE))}
    assert found - known == set()
    assert {*ELSEWHERE} == {other for other in ELSEWHERE if any(f"{name}.".startswith(f"{other}.") for name in found)}


NUMBERED = {"given", "plan", "report"}  # small arrays of the records of steps; `counts` and `energy` of one robot, too


def takes_an_entry_by_number(node: ast.AST) -> bool:
    """Return whether a node is an entry of a record's small array, whose numbers have names, by a literal number."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.value, ast.Attribute)):
        return False
    owner = ast.unparse(node.value.value)
    of_one_robot = node.value.attr == "counts" and (owner == "t" or owner.endswith("touching"))
    return of_one_robot or node.value.attr in NUMBERED or (node.value.attr == "energy" and owner.endswith("step"))


def test_entries_of_records_are_taken_by_name(nodes: list[Node]) -> None:
    """Check that no number whose position is its meaning is left in simulations."""
    found = [(m, ast.unparse(n)) for m, n in nodes if package(m) == "simulation" and takes_an_entry_by_number(n)]
    assert found == []
    for text in (
        "t.counts[0]",
        "one.touching.counts[2]",
        "states.plan[1]",
        "s.state.given[0]",
        "t.report[4]",
        "step.energy[0]",
    ):
        assert takes_an_entry_by_number(ast.parse(text, mode="eval").body)
