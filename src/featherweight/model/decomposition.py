"""Options of convex decomposition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from ..checks import NAME, NOTHING, Count, PositiveCount, checked, either, list_of, number_in, whole

THRESHOLD = number_in("a number from 0.01 to 1", 0.01, 1.0)
BODIES = either([NOTHING, list_of(NAME)]).worded("a list of names of bodies, or None")
LIMIT = either([NOTHING, whole(1)]).worded("a whole number of at least 1, or None")
CORNERS = either([NOTHING, whole(4)]).worded("a whole number of at least 4, or None")


@checked
@dataclass(frozen=True, slots=True)
class Decomposition:
    """Options for the replacement of collision meshes by convex parts: `load(..., decompose=Decomposition(threshold=0.02))`.

    The method is CoACD (Wei et al. 2022): it cuts the mesh by planes along its axes, found by a tree search, until no part is
    more concave than `threshold`. Concavity is a distance between a part and its convex hull, relative to half of the mesh's
    greatest extent. Meshes that are not closed, or intersect themselves, are first replaced by a closed surface with
    `resolution` cells along their greatest extent.
    """

    threshold: Annotated[float, THRESHOLD] = 0.05
    bodies: Annotated[Iterable[str] | None, BODIES] = None  # bodies whose meshes are decomposed; default: all
    most_parts: Annotated[int | None, LIMIT] = None  # of a mesh; further parts are merged, whatever their concavity
    most_corners: Annotated[int | None, CORNERS] = None  # of a part; parts with more are simplified
    resolution: PositiveCount = 50
    iterations: PositiveCount = 150  # of the tree search for each cut; the time grows in proportion
    seed: Count = 0
