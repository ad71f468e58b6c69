"""Lengths and moment arms of a robot's tendons, for one configuration or many."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.types import Tendon
from ...names import Named
from ..system import System

if TYPE_CHECKING:
    from .length_functions import LengthFunctions

Array = np.ndarray[Any, np.dtype[Any]]


class TendonFunctions(System):
    """A system with tendons."""

    @cached_property
    def tendons(self) -> Named[Tendon]:
        """Tendons of the file. Points of their paths are on moving bodies, in the frames of the file of these bodies."""
        return Named(self.model.tendons)

    @cached_property
    def _tendons(self) -> LengthFunctions:
        from .length_functions import LengthFunctions  # imports the compiler, which few robots need
        from .tendon_table import length_table

        return LengthFunctions(self, length_table(self, self.model.tendons))

    def tendon_lengths(self, q: Any) -> Array:
        """Return the lengths [m, or sums of coordinates] (..., tendons) of the tendons at q (..., nq).

        A string takes the shortest path around the spheres and cylinders that it passes. Lengths of branches behind pulleys
        are divided by the divisors of the pulleys. Raises ValueError for a wrong length of q.
        """
        q = self._checked("q", q, self.nq)
        coordinates, _ = self._tendons.evaluate(q)
        return coordinates[..., coordinates.shape[-1] - len(self.model.tendons) :]

    def tendon_moment_arms(self, q: Any) -> Array:
        """Return the moment arms J (..., tendons, nv) of the tendons at q (..., nq).

        J v are the rates of the lengths. Forces F along the tendons, positive if they lengthen them, are equivalent to the
        joint forces Jᵀ F.

        Raises ValueError for a wrong length of q.
        """
        q = self._checked("q", q, self.nq)
        _, S = self._tendons.evaluate(q)
        return S[..., S.shape[-2] - len(self.model.tendons) :, :]
