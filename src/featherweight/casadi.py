"""Functions of robots in CasADi: machine code with exact, sparse Jacobians in place of expression graphs.

    from featherweight.casadi import wrap

    forward_dynamics = wrap(robot.forward_dynamics)
    a = forward_dynamics.map(45)(q, v, tau)

CasADi calls the machine code directly on Linux on x86-64 and AArch64, and through Python elsewhere.
"""

from .extras import imports_from_extra

with imports_from_extra("casadi", "featherweight.casadi needs CasADi", "casadi"):
    from .bridges.casadi_functions import wrap

__all__ = ["wrap"]
