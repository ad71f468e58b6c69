"""Syntax trees of functions, and errors with file and line."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import textwrap
from types import FunctionType
from typing import Any

Tree = ast.FunctionDef | ast.Lambda
COMPREHENSIONS = ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp


class KernelError(TypeError):
    """A kernel is outside the compiled subset of Python, or its types do not fit: "file:line: what; remedy"."""


def error(function: FunctionType, line: int, what: str) -> KernelError:
    """Return an error at a line of a function's file."""
    return KernelError(f"{function.__code__.co_filename}:{line}: in {function.__qualname__}: {what}")


def tree_of(function: FunctionType) -> Tree:
    """Return the syntax tree of a function, with the lines of its file. Raises KernelError."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    found = _functions_near("".join(lines), code.co_firstlineno).get((code.co_name, code.co_firstlineno), []) if lines else []
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)]
    found = [tree for tree in found if parameters_of(tree) == named]
    if len(found) != 1:
        why = "there are several such functions on this line; put each on its own" if found else "its source was not found"
        raise error(function, code.co_firstlineno, f"{why}; a kernel needs the file it was defined in, unchanged")
    return found[0]


def _functions_near(source: str, line: int) -> dict[tuple[str, int], list[Tree]]:
    """Return the functions of a file, or of the code block that starts at a line if the file is a page with code."""
    try:
        return _functions(source)
    except SyntaxError:
        block = inspect.getblock(source.splitlines(keepends=True)[line - 1 :])
        return _functions("\n" * (line - 1) + textwrap.dedent("".join(block)))


@functools.lru_cache(maxsize=256)
def _functions(source: str) -> dict[tuple[str, int], list[Tree]]:
    """Return the functions of a file by their names and first lines, decorators included."""
    functions: dict[tuple[str, int], list[Tree]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            functions.setdefault((node.name, first), []).append(node)
        elif isinstance(node, ast.Lambda):
            functions.setdefault(("<lambda>", node.lineno), []).append(node)
    return functions


def parameters_of(tree: Tree) -> tuple[str, ...]:
    """Return the names of parameters, in the order of a code object."""
    a = tree.args
    return tuple(x.arg for x in [*a.posonlyargs, *a.args, *a.kwonlyargs, *([a.vararg] if a.vararg else [])])


def local_names(tree: Tree) -> set[str]:
    """Return parameters and assigned names, without variables of comprehensions, which code objects of Python 3.12 include."""
    names, pending = set(parameters_of(tree)), list[ast.AST](tree.body if isinstance(tree, ast.FunctionDef) else [tree.body])
    while pending:
        node = pending.pop()
        if isinstance(node, COMPREHENSIONS):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        pending += ast.iter_child_nodes(node)
    return names


def named_values(function: FunctionType) -> dict[str, Any]:
    """Return the names in a function's closure, with their values."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = {}
    for name, cell in cells:
        try:
            values[name] = cell.cell_contents
        except ValueError:  # no value yet
            continue
    return values
