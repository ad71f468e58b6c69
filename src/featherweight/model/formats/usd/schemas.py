"""Pixar's USD library, which the extra `usd` installs."""

from __future__ import annotations

from ....extras import imports_from_extra

with imports_from_extra("usd", "reading USD needs the package usd-core"):
    from pxr import Ar, Gf, Sdf, Tf, Usd, UsdGeom, UsdPhysics, UsdShade

__all__ = ["Ar", "Gf", "Sdf", "Tf", "Usd", "UsdGeom", "UsdPhysics", "UsdShade"]
