"""Results of ticks of whole-body control."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..array_types import Array, Matrix, Vector
from ..summaries import summarized


@summarized
class WholeBodyResult(NamedTuple):
    """The result of one tick of WholeBodyControl."""

    tau: Vector
    """Joint forces (nv) [N m, N]."""
    acceleration: Vector
    """Joint accelerations (nv) that they cause."""
    forces: Matrix
    """Forces (k, 3) at the points of all contacts [N], in the axes of the contacts' frames."""
    wrenches: Matrix
    """Force and moment (contacts, 6) of each contact at the origin of its frame, in its axes [N, N m]."""
    status: str
    """"solved"; "infeasible" if not all limits can be kept; "inconsistent" if contacts contradict each other."""
    blocking: tuple[str, ...]
    """Names of limits that exclude each other, if the status is "infeasible"."""
    open_contacts: tuple[str, ...]
    """Names of planned contacts that measurements show open."""
    steps: int
    """Steps of the active-set method."""


@summarized
class WholeBodyBatch(NamedTuple):
    """The results of one tick for each of many states, by WholeBodyControl.batch."""

    tau: Array
    """Joint forces (..., nv) [N m, N]."""
    acceleration: Array
    """Joint accelerations (..., nv) that they cause."""
    forces: Array
    """Forces (..., k, 3) at the points of all contacts [N], in the axes of the contacts' frames."""
    wrenches: Array
    """Force and moment (..., contacts, 6) of each contact at the origin of its frame, in its axes [N, N m]."""
    status: npt.NDArray[np.str_]
    """"solved", "infeasible" or "inconsistent" (...), as in WholeBodyResult."""
    steps: npt.NDArray[np.int64]
    """Steps (...) of the active-set method."""
