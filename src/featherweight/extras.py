"""Optional packages: error messages that name the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
