"""Robot files by their suffix."""

from __future__ import annotations

import os
from pathlib import Path

from .mjcf import load_mjcf
from .types import Description, ModelError
from .urdf import load_urdf


def load_description(path: str | os.PathLike[str], mimic: str = "refuse") -> Description:
    """Read a URDF (.urdf) or MJCF (.xml, .mjcf) file.

    `mimic` says what to do with URDF joints that follow others: "refuse" them by name, or take them as "independent".
    Raises ModelError for a file that cannot be used as it is, FileNotFoundError where there is none.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".urdf":
        return load_urdf(path, mimic=mimic)
    if suffix in (".xml", ".mjcf"):
        return load_mjcf(path)
    raise ModelError(f"{os.fspath(path)}: unknown suffix {suffix!r}; a robot is read from .urdf or .xml (MJCF)")
