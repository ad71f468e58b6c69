"""Figures that others have published, with their devices. None of them was measured here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

GRID = "github.com/A2R-Lab/GRiD, tables in docs/source/_static/release: data on the device"
RTX = "RTX 5090"


class Published(NamedTuple):
    """Published time per state [s] of a library on a device."""

    library: str
    robot: str
    function: str
    batch: str
    precision: str
    device: str
    seconds: float
    source: str


def _grid(library: str, function: str, microseconds: float) -> Published:
    """Return a row of GRiD's table, from its time of 1024 states of G1 with a floating base [us]."""
    return Published(library, "g1_29dof", function, "1024", "float32", RTX, 1e-6 * microseconds / 1024, GRID)


FIGURES = (
    _grid("GRiD 0.6", "forward dynamics", 459.261),
    Published("GRiD 0.6", "g1_29dof", "inverse dynamics", "1024", "float32", RTX, 71e-9, GRID),
    _grid("GRiD 0.6", "inverse mass matrix", 344.859),
    _grid("GRiD 0.6", "derivatives of forward dynamics", 878.810),
    _grid("MuJoCo Warp", "forward dynamics", 419.316),
    _grid("MJX", "forward dynamics", 788.233),
    Published("frax", "panda", "dynamics", "at best", "float32", "a GPU", 1e-8, "arXiv:2604.04310: 100 million a second"),
)


def seconds(library: str, robot: str, function: str) -> float:
    """Return the published time per state of a library [s]."""
    return next(f.seconds for f in FIGURES if (f.library, f.robot, f.function) == (library, robot, function))


HEADER = ["library", "robot", "function", "batch", "precision", "device", "ns per state", "states/s", "source"]


def rows() -> Sequence[Sequence[str]]:
    return [[*f[:6], f"{1e9 * f.seconds:.0f}", f"{1 / f.seconds:.1e}", f.source] for f in FIGURES]
