"""Public names: names of modules, members of their classes, and classes of results."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from source_facts import is_member, own_fields, plain

import featherweight

PACKAGE = "featherweight"
MODULES = ["", "identification", "se3", "paths", "robots", "generators", "viewer"]
MODULES += ["environments", "gym", "jax", "torch", "casadi", "unisim"]


@cache
def exported() -> dict[str, Any]:
    """Return the exported objects by full name; an object with two names keeps that of the first module."""
    found: dict[str, Any] = {}
    for name in MODULES:
        full = f"{PACKAGE}.{name}".rstrip(".")
        module = featherweight.generators if name == "generators" else import_module(full)
        for x in getattr(module, "__all__", None) or _functions_of(module):
            value = getattr(module, x)
            if not x.startswith("_") and not inspect.ismodule(value) and not any(value is other for other in found.values()):
                found[f"{full}.{x}"] = value
    return found


@cache
def public() -> dict[str, Any]:
    """Return all exported objects, and result classes that no module exports under their full names."""
    found = dict(exported())
    for x in exported().values():
        for function in [x, *members(x).values()] if is_class(x) else [x]:
            found |= {f"{c.__module__}.{c.__name__}": c for c in _classes_of_results(function) if full_name(c, found) is None}
    return found


@cache
def all_names() -> frozenset[str]:
    """Return the full names that the reference must list."""
    ours = public()
    return frozenset(ours) | {f"{full}.{member}" for full, x in ours.items() if is_class(x) for member in members(x)}


@cache
def members(cls: Any) -> dict[str, Any]:
    """Return the public members of a class, without the members of exported bases; the value of a field is its name."""
    classes = [x for x in exported().values() if is_class(x)]
    elsewhere = {base for other in classes if other is not cls and other in cls.__mro__ for base in other.__mro__}
    found: dict[str, Any] = {f.name: f.name for f in own_fields(cls) if f.declared_by not in elsewhere}
    for base in reversed(cls.__mro__):
        if base in elsewhere or not base.__module__.startswith(PACKAGE):
            continue
        for name, x in vars(base).items():
            if not name.startswith("_") and name not in found and inspect.getdoc(x) and is_member(x):
                found[name] = inspect.getattr_static(cls, name)
    return found


def docstring(full: str) -> str:
    """Return the docstring of a public name; empty if it has none, as most fields."""
    owner, name = full.rpartition(".")[::2]
    x = members(public()[owner])[name] if owner in public() else public()[full]
    if isinstance(x, featherweight.CompiledFunction):
        return x.program.doc
    return "" if isinstance(x, str) else inspect.getdoc(x) or ""


def is_class(x: Any) -> bool:
    """Return whether an object is a class. With `inspect.isclass`, mypy would take classes for values without a hash."""
    return isinstance(x, type)


def full_name(x: Any, among: dict[str, Any]) -> str | None:
    """Return the name of an object in a dictionary, or None."""
    return next((name for name, other in among.items() if other is x), None)


def lookup(cls: type | None, module: str) -> Callable[[str], str | None]:
    """Return a function that finds the full name of a name in a docstring of a class or module."""
    owner = full_name(cls, public()) if cls else None

    def found(name: str) -> str | None:
        candidates = [f"{prefix}.{name}" for prefix in (owner, module, PACKAGE) if prefix]
        return next((full for full in [*candidates, name] if full in all_names()), None)

    return found


def _functions_of(module: Any) -> list[str]:
    """Return the names of a module's functions, for modules without `__all__`."""
    return [n for n, x in vars(module).items() if inspect.isfunction(x) and x.__module__ == module.__name__]


def _classes_of_results(x: Any) -> Iterator[type]:
    """Yield the classes of this package in the return annotation of a function or property."""
    function = plain(x)
    returned = str(getattr(function, "__annotations__", {}).get("return", ""))
    for name in re.findall(r"[A-Za-z]\w*", returned):
        found = getattr(function, "__globals__", {}).get(name)
        if inspect.isclass(found) and found.__module__.startswith(PACKAGE):
            yield found
