"""USD files as text, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import featherweight as fw

BODY = 'prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]'
MASS = "float physics:mass = 2\nfloat3 physics:diagonalInertia = (0.3, 0.4, 0.5)\npoint3f physics:centerOfMass = (0, 0, 0)"


def prim(kind: str, name: str, inside: str = "", schemas: str = "", more: str = "") -> str:
    """Return one prim; `schemas` has names of API schemas with blanks between."""
    applied = ", ".join(f'"{schema}"' for schema in schemas.split())
    meta = [f"prepend apiSchemas = [{applied}]"] * bool(applied) + [more] * bool(more)
    return f'def {kind} "{name}" (\n' + "\n".join(meta) + f"\n) {{\n{inside}\n}}\n"


def placed(x: float, y: float, z: float, turn: str = "", scale: str = "") -> str:
    """Return a pose: `turn` is a quaternion "w, x, y, z", `scale` three numbers."""
    ops = ["translate", *(["orient"] if turn else []), *(["scale"] if scale else [])]
    text = f"double3 xformOp:translate = ({x}, {y}, {z})\n"
    text += f"quatd xformOp:orient = ({turn})\n" * bool(turn) + f"double3 xformOp:scale = ({scale})\n" * bool(scale)
    listed = ", ".join(f'"xformOp:{op}"' for op in ops)
    return text + f"uniform token[] xformOpOrder = [{listed}]\n"


def body(name: str, inside: str = "", mass: str = MASS, schemas: str = "") -> str:
    return prim("Xform", name, f"{mass}\n{inside}", f"PhysicsRigidBodyAPI PhysicsMassAPI {schemas}")


def joint(kind: str, name: str, parent: str, child: str, inside: str = "", schemas: str = "") -> str:
    """Return a joint between two prims below /r; "" is the world."""
    ends = "".join(f"rel physics:body{k} = </r/{end}>\n" for k, end in enumerate((parent, child)) if end)
    return prim(f"Physics{kind}Joint", name, ends + inside, schemas)


def file(inside: str, folder: Path, meta: str = 'metersPerUnit = 1\nupAxis = "Z"', outside: str = "") -> Path:
    """Return a stage whose default prim is /r."""
    path = folder / "robot.usda"
    path.write_text(f'#usda 1.0\n(\ndefaultPrim = "r"\n{meta}\n)\n{prim("Xform", "r", inside)}{outside}')
    return path


def read(inside: str, folder: Path, meta: str = 'metersPerUnit = 1\nupAxis = "Z"', outside: str = "", **options: Any) -> Any:
    return fw.read(file(inside, folder, meta, outside), **options)


GROUND = joint("Fixed", "ground", "", "a")
ARM = body("a") + body("b") + GROUND
