"""Pixar's USD library, which the extra `usd` installs."""

from __future__ import annotations

from ....extras import install_command

try:
    from pxr import Gf, Tf, Usd, UsdGeom, UsdPhysics, UsdShade
except ImportError as error:
    raise ImportError(f"reading USD needs the package usd-core: {install_command('usd')}") from error

__all__ = ["Gf", "Tf", "Usd", "UsdGeom", "UsdPhysics", "UsdShade"]
