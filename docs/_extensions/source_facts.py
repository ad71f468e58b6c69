"""Facts from the source of a function or class that the object lacks: defaults as written, and comments on fields."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple


class Field(NamedTuple):
    """A field of a named tuple, a dataclass or an enumeration."""

    name: str
    annotation: str
    default: str
    comment: str
    declared_by: type


def plain(x: Any) -> Any:
    """Return the function of a method or property, without decorators."""
    if isinstance(x, property):
        return x.fget
    x = x.func if isinstance(x, cached_property) else x
    return inspect.unwrap(getattr(x, "__func__", x))


def signature(function: Callable[..., Any], bound: bool) -> tuple[str, str]:
    """Return the parameters and the result type as written; a method's parameters omit `self`."""
    node = _parsed(inspect.unwrap(function))
    assert isinstance(node, ast.FunctionDef)
    if bound:
        (node.args.posonlyargs or node.args.args).pop(0)
    known = inspect.unwrap(function).__globals__
    for defaults in (node.args.defaults, node.args.kw_defaults):
        for k, x in enumerate(defaults):
            value = known.get(x.id) if isinstance(x, ast.Name) else None
            if isinstance(value, str | int | float):  # users do not know the name of a constant of the module
                defaults[k] = ast.Constant(value)
    return ast.unparse(node.args), ast.unparse(node.returns) if node.returns else ""


def required(function: Callable[..., Any]) -> list[str]:
    """Return the parameters of a method without a default, except `self`.

    `*args` and `**kwargs` count as parameters without a default.
    """
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return [p.name for p in parameters if p.default is p.empty]


def is_member(x: Any) -> bool:
    """Return whether an attribute of a class is a method or a property."""
    return inspect.isfunction(x) or isinstance(x, (property, cached_property, staticmethod, classmethod))


def own_fields(cls: Any) -> Iterator[Field]:
    """Yield the fields that a class and its bases declare, in order; those that are keyword arguments only come last."""
    met: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("featherweight"):
            met |= {f.name: f for f in _declared(base)}
    keywords = {f.name for f in getattr(cls, "__dataclass_fields__", {}).values() if f.kw_only}
    yield from sorted((f for f in met.values() if not f.name.startswith("_")), key=lambda f: f.name in keywords)


@cache
def _declared(cls: type) -> list[Field]:
    source = textwrap.dedent(inspect.getsource(cls))
    lines, node = source.splitlines(), _parsed(cls)
    assert isinstance(node, ast.ClassDef)
    found = []
    for x in node.body:
        comment = lines[x.end_lineno - 1][x.end_col_offset :].partition("#")[2].strip() if x.end_lineno else ""
        value = ast.unparse(x.value) if isinstance(x, ast.AnnAssign | ast.Assign) and x.value else ""
        if isinstance(x, ast.AnnAssign) and isinstance(x.target, ast.Name):
            default = "..." if value.startswith("field(default_factory") else _default(value)
            found.append(Field(x.target.id, ast.unparse(x.annotation), default, comment, cls))
        if isinstance(x, ast.Assign) and isinstance(x.targets[0], ast.Name) and not is_member(vars(cls).get(x.targets[0].id)):
            found.append(Field(x.targets[0].id, "", value, comment, cls))
        if isinstance(x, ast.FunctionDef) and x.name == "__init__":
            found += _set_on_self(cls, x, lines)
    return found


def _set_on_self(cls: type, init: ast.FunctionDef, lines: list[str]) -> Iterator[Field]:
    """Yield the attributes that a constructor sets on a line with a comment."""
    for x in ast.walk(init):
        target = x.targets[0] if isinstance(x, ast.Assign) else x.target if isinstance(x, ast.AnnAssign) else None
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
            assert isinstance(x, ast.Assign | ast.AnnAssign) and x.end_lineno is not None
            comment = lines[x.end_lineno - 1][x.end_col_offset :].partition("#")[2].strip()
            if comment and not target.attr.startswith("_"):
                annotation = ast.unparse(x.annotation) if isinstance(x, ast.AnnAssign) else ""
                yield Field(target.attr, annotation, "", comment, cls)


def _default(value: str) -> str:
    """Return the default of a field; that of `field(default=None, ...)` is None."""
    call = ast.parse(value, mode="eval").body if value.startswith("field(") else None
    if not isinstance(call, ast.Call):
        return value
    return next((ast.unparse(k.value) for k in call.keywords if k.arg == "default"), "...")


def _parsed(of: Any) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(of))).body[0]
