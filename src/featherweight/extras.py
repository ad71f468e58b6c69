"""Optional packages: error messages that name the extra to install, and calls without their Python warnings."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

NAME = "featherweight"


@contextmanager
def imports_from_extra(extra: str, problem: str, package: str | None = None) -> Iterator[None]:
    """Raise ImportError with the problem and the command that installs the extra, if an import in the block fails.

    Other errors than that a given package is missing remain as they are.
    """
    try:
        yield
    except ImportError as error:
        if package and (type(error) is not ModuleNotFoundError or error.name != package):
            raise
        raise ImportError(f"{problem}: {install_command(extra)}", name=error.name) from error


def install_command(extra: str) -> str:
    """Return a command that installs the packages of an extra, for messages of ImportErrors.

    If Featherweight is installed, pip adds the packages to it, whatever its source. If it is only on the path, the command
    installs the clone with the extra.
    """
    from importlib import metadata  # only errors need it, and its import is slow

    source = NAME
    try:
        metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        clone = Path(__file__).parents[2]
        if (clone / "pyproject.toml").is_file():
            source = str(clone)
    return f'pip install "{source}[{extra}]"'  # all shells understand these quotes, those of Windows too


def without_warnings(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that sees only its arguments and built-in names; warnings about its own lines are dropped.

    Python drops warnings about code whose module has no name. `warnings.catch_warnings` would change the filters of all
    threads, and for good if two threads use it at a time.
    """
    code = getattr(function, "__code__")  # noqa: B009  # of a function, which a Callable need not be
    return cast(Callable[P, R], FunctionType(code, {"__name__": None, "__builtins__": builtins}, function.__name__))
