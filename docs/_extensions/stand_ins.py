"""Stand-ins for packages whose bridges the reference describes: nothing of them is used but their names."""

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

_MockObject.__setitem__ = lambda self, key, value: None  # registries, to which modules add
sys.meta_path.insert(0, MockFinder(_PACKAGES))  # first, so that the site is the same wherever it is built


def setup(app: Sphinx) -> dict[str, Any]:
    """They are there once this module is: the first of the extensions."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
