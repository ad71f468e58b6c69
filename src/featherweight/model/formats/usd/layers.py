"""The layers of a USD file: each must be a regular file before USD opens it, because a pipe never ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...files import open_regular, require_regular
from ..robot_source import RobotSource
from .schemas import Ar, Sdf, Tf

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
                other = _opened(path)
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


def _opened(path: str) -> Layer | None:
    """Return a layer; None for a damaged one, which composition reports."""
    try:
        return Sdf.Layer.FindOrOpen(path)
    except Tf.ErrorException:
        return None
