"""A window in the browser: the robot, its joints to move, its motion to play, its contact forces."""

from __future__ import annotations

try:
    import fast_simplification  # noqa: F401
    import trimesh  # noqa: F401
    import viser  # noqa: F401
except ImportError as missing:
    raise ImportError(f"the window needs {missing.name}: pip install 'featherweight[window]'") from missing

from .window import Window

__all__ = ["Window"]
