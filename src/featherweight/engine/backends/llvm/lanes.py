"""Straight-line LLVM IR for one state and the derivatives along many directions, which lie in the lanes of vectors.

Scalars are computed as elsewhere, and multiply vectors in all lanes. A result's row is put together from the lanes that hold
its columns.
"""

from __future__ import annotations

from ...lane_trace import LaneTrace
from ..straight_plan import plan_lanes
from .emit import HOST, Kernel, KernelStyle, host_options, write_kernel
from .ir import Type


def emit_lanes(t: LaneTrace, precision: str, fma: bool, style: KernelStyle = HOST) -> Kernel:
    """The IR of a whole trace. The derivatives of a result by one argument after the other are arrays of their own.

    Its workspace is in scalars. Sines and cosines of inputs are computed as many at a time as there are lanes.
    """
    scalar = Type(precision, 1)
    return write_kernel(plan_lanes(t, host_options(scalar, fma, t.lanes)), scalar, style)
