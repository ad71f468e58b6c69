"""Lookup of the files that <include> names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...types import ModelError
from ..geometry import SCHEME, local_path
from ..packages import package_of
from ..robot_source import RobotSource
from ..unsupported import file_notes
from ..xml import parse_xml, shortened

CONFIG = "model.config"  # in a model's folder; it lists the files of each version
NEWEST = (1, 12)
VERSION_NUMBER = re.compile("[0-9]{1,9}")


def version_of(written: str) -> tuple[int, ...]:
    """Return the version of the format as comparable numbers; empty for an invalid version."""
    parts = written.strip().split(".")
    return tuple(map(int, parts)) if all(VERSION_NUMBER.fullmatch(part) for part in parts) else ()


def find_include(uri: str, file: RobotSource) -> str | None:
    """Return the path of the file that a URI names, directly or by the model's folder; None if it does not exist.

    Raises ModelError for a URI that cannot refer to a file on this machine, and for a folder without a readable file.
    """
    if package_of(uri) is None and SCHEME.match(uri) and not uri.startswith("file://"):
        problem, remedy = f"'{shortened(uri)}' is to be downloaded", "download it, write model://NAME, and pass package_path="
        file_notes().refuse(f"{file}: <include>", f"{problem}, and nothing is downloaded here", remedy)
        return None
    for path in _places(uri, file):
        found = _file_of(Path(path), file) if os.path.isdir(path) else str(path)
        if os.path.exists(found):
            return os.path.realpath(found)
    return None


def _places(uri: str, file: RobotSource) -> Iterator[Path]:
    package, folder = package_of(uri), None if file.folder is None else Path(os.path.abspath(file.folder))
    if package is not None:
        yield from (found / package[1] for found in file.packages.folders(package[0], folder))
    elif folder is not None:
        yield folder / local_path(uri)
        name, _, rest = uri.partition("/")
        yield from (found / rest for found in file.packages.folders(name, folder))
    elif os.path.isabs(local_path(uri)):
        yield Path(local_path(uri))


def _file_of(folder: Path, file: RobotSource) -> str:
    """Return the newest file in the folder's model.config that can be read, or model.sdf without a model.config."""
    config = os.path.join(folder, CONFIG)
    if not os.path.isfile(config):
        return os.path.join(folder, "model.sdf")
    written = [(version_of(e.get("version", "1.5")), (e.text or "").strip()) for e in parse_xml(config).iter("sdf")]
    known = [entry for entry in written if entry[0] <= NEWEST]
    if not known:
        raise ModelError(f"{config}: it names no <sdf> of a version up to 1.12, which {file} includes; add one")
    return os.path.join(folder, max(known)[1])
