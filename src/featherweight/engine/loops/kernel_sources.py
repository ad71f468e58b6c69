"""Syntax trees of functions, errors with file and line, and checked kernels.

With FEATHERWEIGHT_CHECKED=1 each index, range, length and conversion of a kernel is checked. The first violation ends the
kernel and its callers, without further effects, and Python raises an exception with the file, the line and the values. A kernel
writes the kind of violation, the line number and the values to a record.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import inspect
import linecache
import os
import struct
import textwrap
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from .views import LANES

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
    known = _trees.get(function)
    if known is not None and known[0] is lines:
        return known[1]
    found = _functions_near("".join(lines), code) if lines else []
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)]
    found = [tree for tree in found if parameters_of(tree) == named]
    if len(found) != 1:
        why = "there are several such functions on this line; put each on its own" if found else "its source was not found"
        raise error(function, code.co_firstlineno, f"{why}; a kernel needs the file it was defined in, unchanged")
    _trees[function] = lines, found[0]
    return found[0]


_trees: weakref.WeakKeyDictionary[FunctionType, tuple[list[str], Tree]] = weakref.WeakKeyDictionary()
"""The trees of functions, with the lines of their files."""


def _functions_near(source: str, code: CodeType) -> list[Tree]:
    """Return the functions of a code's name and first line in a file, or in its block if the file is a page with code."""
    line = code.co_firstlineno
    try:
        tree = _parsed(source)
    except SyntaxError:
        block = inspect.getblock(source.splitlines(keepends=True)[line - 1 :])
        tree = _parsed("\n" * (line - 1) + textwrap.dedent("".join(block)))
    return _functions_at(tree, code.co_name, line)


_parsed = functools.lru_cache(maxsize=256)(ast.parse)


def _functions_at(tree: ast.AST, name: str, line: int) -> list[Tree]:
    """Return the functions in a tree with a name that begin at a line, decorators included."""
    found: list[Tree] = []
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            if node.name == name and _first_line(node) == line:
                found.append(node)
        elif isinstance(node, ast.Lambda) and name == "<lambda>" and node.lineno == line:
            found.append(node)
        pending += [x for x in ast.iter_child_nodes(node) if not hasattr(x, "lineno") or _has_line(x, line)]
    return found


def _has_line(node: Any, line: int) -> bool:
    return _first_line(node) <= line <= node.end_lineno


def _first_line(node: Any) -> int:
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


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


VARIABLE = "FEATHERWEIGHT_CHECKED"
RECORD_WORDS = 5
INDEX, RANGE, SHAPE, COPY, CONVERSION, DIVISION, LENGTH = range(1, 8)  # kinds of violations
Record = ctypes.c_int64 * RECORD_WORDS

MESSAGES: dict[int, tuple[type[Exception], Callable[..., str]]] = {
    INDEX: (IndexError, lambda k, n, _: f"index {k} of {n}"),
    RANGE: (IndexError, lambda a, b, n: f"the range {a}:{b} of {n}"),
    SHAPE: (ValueError, lambda m, k, n: f"{n} numbers as a matrix of {m} rows and {k} columns"),
    COPY: (ValueError, lambda n, m, _: f"an axis of length {n} written to one of length {m}"),
    CONVERSION: (ValueError, lambda x, *_: f"{struct.unpack('<d', struct.pack('<q', x))[0]} as a whole number"),
    DIVISION: (ValueError, lambda a, *_: f"{a} divided by zero"),
    LENGTH: (ValueError, lambda n, *_: f"a length of {n}, which is not a multiple of {LANES}"),
}  # fmt: skip


def is_checked() -> bool:
    """Return whether kernels compiled from now on are checked."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def raise_violation(record: Sequence[int], places: Sequence[tuple[str, int]]) -> None:
    """Raise the exception of a record, if it contains a violation."""
    kind, where, *values = record
    if kind:
        exception, words = MESSAGES[kind]
        file, line = places[where]
        raise exception(f"{file}:{line}: {words(*values)}")
