"""The prims of a USD stage in SI units: values, poses, rigid bodies, and a record of unused contents.

x_world = x_prim S R T      USD's matrices act on rows: S scales a prim's axes, R and T are its pose
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ....spatial.elementary import norm
from ...files import open_regular, require_regular
from ...types import Matrix, ModelError, Pose, Vector, as_matrix, as_vector, dot, scale, transpose
from ..robot_source import RobotSource
from ..unsupported import Unsupported, tolerate
from ..xml import Names, shortened
from .schemas import Ar, Gf, Sdf, Tf, Usd, UsdGeom, UsdPhysics

Prim = Any  # pxr has no types
DEGREE = math.pi / 180.0
AXES: dict[str, Vector] = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
SHEARED = 1e-6  # cosine between axes that are not perpendicular, and relative difference of scales
UNITS = 1e9  # largest unit of length [m] or mass [kg], and reciprocal of the smallest
LISTED = 5  # most paths of a kind in a report
ATTRIBUTES = "attributes that are not used"
PHYSICS = "physics that is not used"
OTHERS = "prims that are not used"
OF_PHYSICS = ("Physics", "Physx", "Newton", "Mjc")  # prefixes of types of prims
DRAWN = {"", "Xform", "Scope", "Material", "Shader", "NodeGraph", "GeomSubset"}  # types that do not affect a robot
READ = {"PhysicsScene", "PhysicsCollisionGroup"}
NAMESPACES = ("physics", "drive", "limit", "state", "newton", "mjc")
OF_SOLVERS = ("physxScene:", "newton:xpbd:", "newton:kamino:", "newton:vbd:", "newton:mpm:")


def path_of(prim: Prim) -> str:
    return str(prim.GetPath())


class Affine(NamedTuple):
    """A map x -> A x + p of a prim's own space into a frame."""

    A: Matrix
    p: Vector

    def split(self) -> tuple[Pose, Vector] | None:
        """Return the pose of the axes and the scale along each, a mirrored one along x; None for sheared axes."""
        columns = transpose(self.A)
        lengths = [norm(*c) for c in columns]
        if min(lengths) == 0.0:
            return None
        units = [scale(1.0 / s, c) for s, c in zip(lengths, columns, strict=True)]
        x, y, z = units
        if max(abs(dot(x, y)), abs(dot(x, z)), abs(dot(y, z))) > SHEARED:
            return None
        if dot(x, (y[1] * z[2] - y[2] * z[1], y[2] * z[0] - y[0] * z[2], y[0] * z[1] - y[1] * z[0])) < 0.0:
            lengths[0], x = -lengths[0], scale(-1.0, x)
        return Pose(transpose((x, y, z)), self.p), as_vector(round(s, 12) for s in lengths)


class UsdStage:
    """An opened stage, with its rigid bodies in the file's order, and its unused contents."""

    def __init__(self, file: RobotSource, unsupported: Unsupported) -> None:
        self.file, self.unsupported = file, unsupported
        self.stage = _opened(file)
        self.meter = float(UsdGeom.GetStageMetersPerUnit(self.stage))
        self.kilogram = float(UsdPhysics.GetStageKilogramsPerUnit(self.stage))
        if not all(1.0 / UNITS <= unit <= UNITS for unit in (self.meter, self.kilogram)):
            raise ModelError(
                f"{file.name}: metersPerUnit and kilogramsPerUnit are not from {1 / UNITS:g} to {UNITS:g}; correct them"
            )
        self.force = self.kilogram * self.meter
        self.torque = self.force * self.meter
        self.notes: dict[str, dict[str, None]] = {}
        self._used: set[tuple[str, str]] = set()
        self._cache = UsdGeom.XformCache()
        traversed = Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)
        self.prims = list(Usd.PrimRange.Stage(self.stage, traversed))
        for error in self.stage.GetCompositionErrors():
            unsupported.refuse(
                file.name, f"USD cannot compose it ({error})", "supply the file that is not found, or correct the path"
            )
        if not UsdGeom.StageHasAuthoredMetersPerUnit(self.stage):
            self.note("lengths without metersPerUnit", "read as centimetres")
        rigid = [p for p in self.prims if p.HasAPI(UsdPhysics.RigidBodyAPI)]
        self.bodies = [p for p in rigid if self.value(p, "physics:rigidBodyEnabled", True)]
        self.note_prims(
            "rigid bodies that are disabled, and are part of the ground", (p for p in rigid if p not in self.bodies)
        )
        self.names = self.short_names(self.bodies)

    def note(self, kind: str, said: str) -> None:
        self.notes.setdefault(kind, {})[said] = None

    def note_prims(self, kind: str, prims: Iterable[Prim]) -> None:
        for prim in prims:
            self.note(kind, path_of(prim))

    def short_names(self, prims: Iterable[Prim], taken: Iterable[str] = ()) -> dict[str, str]:
        """Return a name for each path: the prim's name, or the path without its first slash if several prims have that name."""
        prims = list(prims)
        counts, names = Counter(p.GetName() for p in prims), Names(taken)
        return {path_of(p): names.new(p.GetName() if counts[p.GetName()] == 1 else path_of(p)[1:]) for p in prims}

    def where(self, prim: Prim) -> str:
        return f"{self.file.name}: <{prim.GetPath()}>"

    # --- values

    def value(self, prim: Prim, name: str, default: object = None, like: object = None) -> Any:
        """Return an attribute in Python's numbers, or the default without one.

        Numbers of 32 bits become the shortest decimals that read as the same number, so those of a text file are unchanged.
        Quaternions are x, y, z, w. Raises ModelError for a value of another kind than the default, or than `like`.
        """
        attribute = prim.GetAttribute(name)
        self._used.add((path_of(prim), name))
        given: Any = attribute.Get() if attribute else None
        if given is None:
            return default
        single = str(attribute.GetTypeName()) in ("float", "float3", "point3f", "vector3f", "quatf", "color3f", "color4f")
        value, wanted = _in_python(given, single), like if default is None else default
        if value is None or not (wanted is None or _alike(value, wanted)):
            kind = "text" if isinstance(wanted, str) else "numbers" if isinstance(wanted, tuple) else "a number"
            raise ModelError(f"{self.where(prim)}: {name} is {shortened(str(given), 80)}, not {kind}; correct it")
        return value

    def number(self, prim: Prim, name: str, default: float) -> float:
        """Return a number that is not NaN."""
        x = float(self.value(prim, name, default))
        if math.isnan(x):
            raise ModelError(f"{self.where(prim)}: {name} is not a number; correct it")
        return x

    def finite(self, prim: Prim, name: str, default: float) -> float:
        """Return a number that is neither NaN nor infinite."""
        x = self.number(prim, name, default)
        if math.isinf(x):
            raise ModelError(f"{self.where(prim)}: {name} is infinite; correct it")
        return x

    def axis(self, prim: Prim, name: str, default: str) -> Vector:
        """Return the axis for a letter."""
        letter = self.value(prim, name, default)
        if letter not in AXES:
            raise ModelError(f"{self.where(prim)}: its axis is '{letter}'; use X, Y or Z")
        return AXES[letter]

    def target(self, prim: Prim, name: str) -> Prim | None:
        """Return the prim that a relationship names; None for one without targets."""
        relation = prim.GetRelationship(name)
        targets = relation.GetForwardedTargets() if relation else []
        if len(targets) > 1:
            tolerate(self.where(prim), f"{name} has {len(targets)} targets", "keep one", "the first counts")
        if not targets:
            return None
        found = self.stage.GetPrimAtPath(targets[0])
        if not found:
            raise ModelError(f"{self.where(prim)}: {name} is <{targets[0]}>, and there is no such prim; correct the path")
        return found

    def has_schema(self, prim: Prim, schema: str) -> bool:
        """Return whether an API schema is applied, including schemas that the library does not know."""
        written = prim.GetMetadata("apiSchemas")
        return written is not None and schema in written.GetAppliedItems()

    # --- poses

    def affine(self, prim: Prim) -> Affine:
        """Return the prim's space, in the file's unit of length, in the world [m]."""
        return self._affine(self._cache.GetLocalToWorldTransform(prim))

    def _affine(self, matrix: Any) -> Affine:
        rows = as_matrix(matrix.GetRow3(k) for k in range(3))
        return Affine(transpose(rows), scale(self.meter, as_vector(matrix.ExtractTranslation())))

    def placed(self, prim: Prim) -> tuple[Pose, Vector]:
        """Return the pose of a prim in the world [m], and its scale. Raises ModelError for sheared or mirrored axes."""
        split = self.affine(prim).split()
        if split is None or min(split[1]) < 0.0:
            problem = "its axes are mirrored" if split else "its axes are sheared, or its scale is zero"
            raise ModelError(f"{self.where(prim)}: {problem}; scale bodies along their axes only, and shapes below them")
        return split

    def pose(self, prim: Prim) -> Pose:
        return self.placed(prim)[0]

    def body_of(self, prim: Prim) -> Prim | None:
        """Return the rigid body to which the prim belongs; None for the ground."""
        while prim and not prim.IsPseudoRoot():
            if path_of(prim) in self.names:
                return prim
            prim = prim.GetParent()
        return None

    def in_body(self, prim: Prim) -> Affine:
        """Return the space of a prim, in the file's unit, in the frame of its body [m], or in the world."""
        body = self.body_of(prim)
        if body is None:
            return self.affine(prim)
        pose, (sx, sy, sz) = self.placed(body)
        if prim == body:
            return Affine(((sx, 0.0, 0.0), (0.0, sy, 0.0), (0.0, 0.0, sz)), (0.0, 0.0, 0.0))
        matrix, reset = self._cache.ComputeRelativeTransform(prim, body)
        if reset:
            A, p = self.affine(prim)
            inverse = pose.inverse()
            columns = [as_vector((Pose(inverse.R) @ Pose(p=c)).p) for c in transpose(A)]
            return Affine(transpose(as_matrix(columns)), (inverse @ Pose(p=p)).p)
        (a, b, c), (x, y, z) = self._affine(matrix)
        return Affine((scale(sx, a), scale(sy, b), scale(sz, c)), (sx * x, sy * y, sz * z))

    def body_name(self, prim: Prim) -> str | None:
        body = self.body_of(prim)
        return None if body is None else self.names[path_of(body)]

    # --- unused contents

    def unused(self) -> Iterator[tuple[str, str]]:
        """Yield kinds of unused contents, and the prims that have them."""
        attributes: dict[str, list[str]] = {}
        for prim in self.prims:
            kind, path = str(prim.GetTypeName()), path_of(prim)
            if not (kind in DRAWN | READ or prim.IsA(UsdGeom.Gprim) or prim.IsA(UsdPhysics.Joint)):
                self.note(PHYSICS if kind.startswith(OF_PHYSICS) else OTHERS, f"{kind} {path}")
            for attribute in prim.GetAuthoredAttributes():
                name = attribute.GetName()
                space = name.split(":")[0]
                physical = space in NAMESPACES or space.startswith("physx")
                if physical and (path, name) not in self._used and not name.startswith(OF_SOLVERS) and _says(attribute.Get()):
                    attributes.setdefault(name, []).append(path)
        yield from ((kind, _listed([*said])) for kind, said in self.notes.items())
        if attributes:
            yield ATTRIBUTES, "; ".join(f"{name} ({_listed(paths)})" for name, paths in attributes.items())


def _listed(said: list[str]) -> str:
    return ", ".join(said[:LISTED]) + (f" and {len(said) - LISTED} more" if len(said) > LISTED else "")


@contextmanager
def usd_errors(file: RobotSource) -> Iterator[None]:
    """Convert errors of USD to ModelErrors: of a file that it cannot open, and of damaged values, which it reads later."""
    try:
        yield
    except Tf.ErrorException as error:
        said = " ".join(re.findall(r" : '(.*?)'?$", _text(error), re.MULTILINE)[:1])
        raise ModelError(f"{file.name}: USD cannot open it ({said[:300]}); correct the file") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"{file.name}: USD cannot open it: it has text that is not UTF-8; correct the file") from error


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except UnicodeDecodeError:  # it quotes the file
        return " : 'there is text that is not UTF-8'"


def _opened(file: RobotSource) -> Any:
    layers = open_layers(file)
    stage = Usd.Stage.Open(os.fspath(file))
    del layers  # only now: USD does not read open layers again
    return stage


def _in_python(given: Any, single: bool) -> Any:
    """Return a value of USD in Python's types; None for one that is neither number, text nor several numbers."""
    if isinstance(given, Gf.Quatf | Gf.Quatd):
        given = (*given.GetImaginary(), given.GetReal())
    if isinstance(given, str | bool | int):
        return given
    try:
        if hasattr(given, "__len__"):
            return tuple(_shortest(x) if single else float(x) for x in given)
        return _shortest(given) if single else float(given)
    except (TypeError, ValueError):
        return None


def _alike(value: Any, wanted: object) -> bool:
    """Return whether a value is text, a number or as many numbers as another one, of which an empty tuple stands for any."""
    if isinstance(wanted, tuple):
        return isinstance(value, tuple) and len(wanted) in (0, len(value))
    return isinstance(value, str) == isinstance(wanted, str) and not isinstance(value, tuple)


def _shortest(x: float) -> float:
    return float(str(np.float32(x)))


def _says(value: Any) -> bool:
    """Return whether an unused value is other than zero, false, infinite or empty."""
    if value is None or isinstance(value, bool | str | int):
        return bool(value)
    if isinstance(value, Gf.Quatf | Gf.Quatd):
        value = (*value.GetImaginary(), value.GetReal())
    if hasattr(value, "__len__"):
        return any(_says(x) for x in value)
    return isinstance(value, float) and value != 0.0 and math.isfinite(value)


# --- the layers of a file: each must be a regular file before USD opens it, because a pipe never ends


Layer = Any  # pxr has no types


def open_layers(file: RobotSource) -> list[Layer]:
    """Return the layers that a stage of the file composes, without those that USD cannot open.

    Raises ModelError, which names the layer, for a pipe or a device, and OSError for a missing file. Raises USD's error for a
    damaged file.
    """
    open_regular(file.name).close()
    root = Sdf.Layer.FindOrOpen(file.name)
    found: dict[tuple[str, str], Layer] = {}
    pending: list[tuple[Layer, dict[str, Any]]] = [(root, dict(root.expressionVariables))] if root else []
    while pending:
        layer, variables = pending.pop()
        key = (layer.identifier, repr(sorted(variables.items())))
        if key not in found:
            found[key] = layer
            for path in _paths(layer, variables):
                require_regular(Ar.SplitPackageRelativePathOuter(path)[0], f"{file.name}: @{layer.identifier}@")
                other = _layer(path)
                if other:
                    pending.append((other, {**other.expressionVariables, **variables}))
    return [*found.values()]


def _paths(layer: Layer, variables: Mapping[str, Any]) -> Iterator[str]:
    """Yield the resolved paths of the layers that a layer names."""
    for name in layer.GetCompositionAssetDependencies():
        if Sdf.VariableExpression.IsExpression(name):
            name = Sdf.VariableExpression(name).Evaluate(variables).value
        if name:
            identifier, _ = Sdf.Layer.SplitIdentifier(Sdf.ComputeAssetPathRelativeToLayer(layer, name))
            path = str(Ar.GetResolver().Resolve(identifier))
            if path:
                yield path


def _layer(path: str) -> Layer | None:
    """Return a layer; None for a damaged one, which composition reports."""
    try:
        return Sdf.Layer.FindOrOpen(path)
    except Tf.ErrorException:
        return None
