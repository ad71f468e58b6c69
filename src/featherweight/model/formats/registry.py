"""Robot files by their suffix."""

from __future__ import annotations

import os
from pathlib import Path

from ..types import Description, ModelError


def load_description(path: str | os.PathLike[str], mimic: str = "follow") -> Description:
    """Read a URDF (.urdf) or MJCF (.xml, .mjcf) file.

    URDF joints that follow others by `<mimic>` do so, or with `mimic="independent"` move by themselves.
    Raises ModelError for a file that cannot be used as it is, FileNotFoundError where there is none.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".urdf":
        from .urdf.reader import load_urdf  # readers are imported when they are needed

        return load_urdf(path, mimic=mimic)
    if suffix in (".xml", ".mjcf"):
        from .mjcf.reader import load_mjcf

        return load_mjcf(path)
    raise ModelError(f"{os.fspath(path)}: unknown suffix {suffix!r}; a robot is read from .urdf or .xml (MJCF)")
