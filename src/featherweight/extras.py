"""Commands that install optional packages."""

from __future__ import annotations

from pathlib import Path

NAME = "featherweight"


def install_command(extra: str) -> str:
    """A command that installs what belongs to an extra, for messages of ImportErrors.

    Where the package is installed, pip takes it as it is, from whatever source it came, and adds what the extra lists. Where it
    only lies on the path, the extra is that of the clone.
    """
    from importlib import metadata  # only errors need it, and it takes longer to import than many modules

    source = NAME
    try:
        metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        clone = Path(__file__).parents[2]
        if (clone / "pyproject.toml").is_file():
            source = str(clone)
    return f'pip install "{source}[{extra}]"'  # quotes that all shells understand, those of Windows too
