"""Functions that methods call though they belong to a package above: the top package registers where they are.

A package imports only what is below it. A method such as `Simulation.view` therefore asks here for the function that does its
work, by its own name; the first call imports the module that has it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PLACES: dict[str, tuple[str, str]] = {}


def register(method: str, module: str, name: str) -> None:
    """Note that a method's work is done by the function or class of this name in a module."""
    _PLACES[method] = module, name


def provided(method: str) -> Any:
    """Return the function or class that does a method's work.

    Raises ImportError where its module needs packages that are not installed, and LookupError where none is registered.
    """
    if method not in _PLACES:
        raise LookupError(f"no function is registered for {method} (featherweight.providers.register)")
    module, name = _PLACES[method]
    return getattr(import_module(module), name)
