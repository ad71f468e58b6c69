"""Straight-line LLVM IR for one state and its derivatives along many directions, in vector lanes.

Scalars are computed as elsewhere, and multiply vectors in all lanes. A result's row is assembled from the lanes that contain
its columns.
"""

from __future__ import annotations

from ...jacobian_trace import JacobianTrace
from ..straight_plan import plan_lanes
from .emit import HOST, Kernel, KernelStyle, host_options, write_kernel
from .ir import Type


def emit_lanes(t: JacobianTrace, precision: str, fma: bool, style: KernelStyle = HOST) -> Kernel:
    """Return the IR of a whole trace. Each derivative of a result with respect to an argument is a separate array.

    Its workspace consists of scalars. Sines and cosines of inputs are computed as many at a time as there are lanes.
    """
    scalar = Type(precision, 1)
    return write_kernel(plan_lanes(t, host_options(scalar, fma, t.lanes)), scalar, style)
