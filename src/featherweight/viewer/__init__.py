"""Windows in the browser that show a robot, move its joints and play motions with contact forces; pictures without a window."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..extras import imports_from_extra

if TYPE_CHECKING:
    from .film import save_film, save_picture
    from .offscreen import OffscreenScene, picture
    from .window import Window, view

__all__ = ["OffscreenScene", "Window", "picture", "save_film", "save_picture", "view"]

_WINDOW = ("the window needs", "window", "fast_simplification", "trimesh", "viser")
_PICTURES = ("pictures need", "render", "fast_simplification", "trimesh", "PIL")
_MODULES = {
    "Window": ("window", _WINDOW),
    "view": ("window", _WINDOW),
    "SimulationPictures": ("simulation_pictures", _PICTURES),
    "OffscreenScene": ("offscreen", _PICTURES),
    "picture": ("offscreen", _PICTURES),
    "save_film": ("film", ("films need", "film", "fast_simplification", "trimesh", "PIL")),
    "png_of": ("film", _PICTURES),
    "save_motion": ("film", _PICTURES),
    "save_picture": ("film", _PICTURES),
    "plot_motion": ("motion_chart", ("charts need", "cli", "matplotlib")),
}


def __getattr__(name: str) -> Any:
    """Import a name from its module on first use, because windows and pictures need different packages."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, (who, extra, *packages) = _MODULES[name]
    _need(who, extra, packages)
    return getattr(importlib.import_module(f".{module}", __name__), name)


def _need(who: str, extra: str, packages: Sequence[str]) -> None:
    """Raise ImportError for a package that is not installed."""
    for package in packages:
        with imports_from_extra(extra, f"{who} {package}"):
            importlib.import_module(package)
