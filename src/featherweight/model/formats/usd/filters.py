"""Pairs that do not collide: jointed bodies, filtered pairs, collision groups, articulations without self-collision.

Pairs of whole bodies become pairs of links. Filters of single colliders become bits: colliders in the same groups and under
the same filters form a class, which has a bit and lists the classes with which it collides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product

from ...types import Shape
from .mechanism import UsdMechanism
from .schemas import Usd, UsdPhysics
from .shapes import Geometry
from .stage import Prim, UsdStage, path_of

MOST = 31  # most classes whose bits all formats can hold
LinkPair = tuple[str | None, str | None]


class Filters:
    """The filters of a stage: pairs of links, and shapes with the bits of their classes."""

    def __init__(self, stage: UsdStage, geometries: Sequence[Geometry], mechanism: UsdMechanism) -> None:
        self.stage, self.geometries, self.mechanism = stage, geometries, mechanism
        self.colliders = [g for g in geometries if g.collider is not None]
        self.links: dict[frozenset[str | None], LinkPair] = {}
        for joined in [*mechanism.jointed, *self._articulated()]:
            self._part(joined)
        partial: list[tuple[set[str], set[str]]] = []
        for prim in stage.prims:
            if prim.HasAPI(UsdPhysics.FilteredPairsAPI):
                for target in prim.GetRelationship("physics:filteredPairs").GetForwardedTargets():
                    ends = [self._under(str(path)) for path in (prim.GetPath(), target)]
                    if all(whole for whole, _ in ends):
                        for pair in product(ends[0][0], ends[1][0]):
                            self._part(pair)
                    elif all(under for _, under in ends):
                        partial.append((ends[0][1], ends[1][1]))
        self.shapes = self._with_bits(partial)

    def _part(self, pair: LinkPair) -> None:
        if pair[0] != pair[1]:
            self.links.setdefault(frozenset(pair), pair)

    def _articulated(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of bodies of articulations without self-collision."""
        for prim in self.stage.prims:
            switches = [
                prim.GetAttribute(key) for key in ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions")
            ]
            if any(s and self.stage.value(prim, s.GetName(), True) is False for s in switches):
                yield from combinations(self._articulation(prim), 2)

    def _articulation(self, prim: Prim) -> list[str]:
        """Return the bodies below the root of an articulation, and all that are connected to them."""
        names = {path_of(b): self.stage.names[path_of(b)] for b in self.stage.bodies}
        below = {name for path, name in names.items() if f"{path}/".startswith(f"{prim.GetPath()}/")}
        below |= {end for j in self.mechanism.read if j.prim == prim for end in j.ends if end}
        trees = {self.mechanism.tree_of(name) for name in below}
        return [name for name in names.values() if name in below or self.mechanism.tree_of(name) in trees]

    def _under(self, path: str) -> tuple[set[str | None], set[str]]:
        """Return the links whose colliders all lie at or below a path, if these are all colliders there, and the colliders."""
        under = {g.shape.name for g in self.colliders if f"{g.prim.GetPath()}/".startswith(f"{path}/")}
        links = {g.shape.body for g in self.colliders if g.shape.name in under}
        all_of_links = {g.shape.name for g in self.colliders if g.shape.body in links}
        return (links if under == all_of_links else set()), under

    def _with_bits(self, partial: list[tuple[set[str], set[str]]]) -> list[Shape]:
        groups = [p for p in self.stage.prims if p.IsA(UsdPhysics.CollisionGroup)]
        queries = [Usd.CollectionAPI(group, "colliders").ComputeMembershipQuery() for group in groups]
        members = [{c.shape.name for c in self.colliders if q.IsPathIncluded(c.prim.GetPath())} for q in queries]
        table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(self.stage.stage)
        sets = [*members, *(end for pair in partial for end in pair)]
        forbidden = {
            frozenset((i, j))
            for i, j in combinations_with_replacement(range(len(groups)), 2)
            if not table.IsCollisionEnabled(groups[i].GetPath(), groups[j].GetPath())
        } | {frozenset((len(groups) + 2 * k, len(groups) + 2 * k + 1)) for k in range(len(partial))}
        keys = {g.shape.name: frozenset(k for k, s in enumerate(sets) if g.shape.name in s) for g in self.colliders}
        classes = list(dict.fromkeys(keys.values()))
        shapes = [g.shape for g in self.geometries]
        if not forbidden or len(classes) < 1:
            return shapes
        if len(classes) > MOST:
            for prim in groups:
                self.stage.note("filters of single colliders, of more kinds than 31", path_of(prim))
            return shapes
        touched = {
            a: sum(1 << n for n, b in enumerate(classes) if not any(frozenset((i, j)) in forbidden for i in a for j in b))
            for a in classes
        }
        return [
            s if s.name not in keys else replace(s, contype=1 << classes.index(keys[s.name]), conaffinity=touched[keys[s.name]])
            for s in shapes
        ]
