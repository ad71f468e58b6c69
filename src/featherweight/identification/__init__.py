"""Identification of robots from logs, and of inertias from measured motions and forces.

`fit` finds parameters with which a simulation reproduces a `Log` of encoders and other sensors, and their errors.
`excite` finds motions within limits that determine parameters well.

`base_parameters` finds the combinations of parameters that determine the joint forces, and fits them.
`fit_inertial_parameters` fits physically consistent inertias; `pseudo_inertia` and `inconsistent_bodies` check consistency.
Regressors are those of `Robot.extended_regressor`, for fixed and floating bases, trees and loops. `random_parameters` draws
physically consistent inertias around those of a robot, for functions that take them as arguments (`Robot.parametric`).
"""

from .base_parameters import BaseFit, BaseParameters, base_parameters
from .consistency import inconsistent_bodies, parameters_of, pseudo_inertia
from .consistent_fit import InertialFit, fit_inertial_parameters
from .excitation import Excitation, excite
from .fitting import FittedMotion, LogFit, fit
from .logs import Channel, Log
from .randomization import random_parameters
from .unknowns import Parameter

__all__ = [
    "BaseFit",
    "BaseParameters",
    "Channel",
    "Excitation",
    "FittedMotion",
    "InertialFit",
    "Log",
    "LogFit",
    "Parameter",
    "base_parameters",
    "excite",
    "fit",
    "fit_inertial_parameters",
    "inconsistent_bodies",
    "parameters_of",
    "pseudo_inertia",
    "random_parameters",
]
