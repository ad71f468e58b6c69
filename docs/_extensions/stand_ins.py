"""Stand-ins for the packages of the bridges in the reference, which uses only names of these packages."""

from __future__ import annotations

import sys
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import MockFinder, _MockObject

_PACKAGES = [
    "PIL",
    "casadi",
    "fast_simplification",
    "jax",
    "rich",
    "scipy",
    "torch",
    "trimesh",
    "unisim",
    "viser",
    "websockets",
]

_MockObject.__setitem__ = lambda self, key, value: None  # modules add entries to registries
sys.meta_path.insert(0, MockFinder(_PACKAGES))  # first, so that the site does not depend on the installed packages


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension. Importing this module, the first extension, installs the stand-ins."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
