"""Python blocks of a Markdown page, with the instructions in its hidden comments.

<!-- not run: why -->       the next block is not run
<!-- run first:             code that the next block needs and readers do not
q = robot.neutral()
-->
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import shutil
import textwrap
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

FILES = Path(__file__).parents[2] / "docs" / "files"
_PARTS = re.compile(
    r"^<!--\s*not run:(?P<why>.*?)-->"
    r"|^<!--\s*run first:(?P<first>.*?)-->"
    r"|^(?P<indent> *)```python\n(?P<block>.*?)^(?P=indent)```\s*$",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """A block of code, its position, and the reason why it is not run, if any."""

    code: str
    line: int  # line of the page where the code begins
    left_out: str = ""

    def tree(self, path: Path) -> ast.Module:
        """Return the syntax tree, with the line numbers of the page."""
        return ast.increment_lineno(ast.parse(self.code, str(path)), self.line - 1)


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page in order, including hidden ones."""
    why = ""
    for part in _PARTS.finditer(text):
        kind = part.lastgroup if part.lastgroup != "indent" else "block"
        if kind == "why":
            why = " ".join(part["why"].split())
            assert why, "a comment that skips a block must give the reason"
            continue
        group = "first" if part["first"] is not None else "block"
        line = text.count("\n", 0, part.start(group)) + 1
        yield Block(textwrap.dedent(part[group]), line, why)
        why = why if group == "first" else ""


@contextlib.contextmanager
def in_the_folder_of_a_reader(folder: Path) -> Iterator[None]:
    """Run pages in a folder with the files that they name, and restore variables and environments afterwards."""
    shutil.copytree(FILES, folder, dirs_exist_ok=True)
    registry: dict[str, Any] = {}
    if find_spec("gymnasium"):
        import_module("featherweight.gym")  # registers the package's environments, which stay
        registry = import_module("gymnasium").registry
    with contextlib.chdir(folder), mock.patch.dict(os.environ), mock.patch.dict(registry):
        yield


def run(path: Path, text: str) -> list[str]:
    """Run the blocks of a page in one namespace; return the skipped blocks with the reasons.

    A block is skipped if a comment says so, if it imports a package that is not installed, or if it uses a name that only
    skipped blocks define.
    """
    namespace: dict[str, Any] = {"__name__": path.stem}
    missing: dict[str, str] = {}
    left_out = []
    for block in blocks(text):
        tree = block.tree(path)
        why = block.left_out or next(_absent(tree), "") or next((missing[n] for n in _uses(tree) if n in missing), "")
        if why:
            missing |= {name: why for name in _gives(tree) if name not in namespace}
            left_out.append(f"{path.name}:{block.line}: {why}")
            continue
        exec(compile(tree, str(path), "exec"), namespace)
        for name in _gives(tree):
            missing.pop(name, None)
    return left_out


def _absent(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a block imports and that are not installed."""
    for node in ast.walk(tree):
        modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        for module in modules:
            for package in {module.partition(".")[0], module.removeprefix("featherweight.").partition(".")[0]}:
                if package in BRIDGED and find_spec(package) is None:
                    yield f"needs {package}"


BRIDGED = {"casadi", "cupy", "dask", "dask_jobqueue", "dask_kubernetes", "gymnasium", "jax", "scipy", "torch", "unisim"}
"""Packages that have their own environments, or are missing in those."""


def _uses(tree: ast.Module) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} - _gives(tree)


def _gives(tree: ast.Module) -> set[str]:
    """Return the names that a block binds."""
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    aliases = [a for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names]
    return found | {(a.asname or a.name).partition(".")[0] for a in aliases}
