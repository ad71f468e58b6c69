"""Identification of a robot's inertias from measured motions and forces.

`base_parameters` finds the combinations of parameters that determine the joint forces, and fits them.
`fit_inertial_parameters` fits physically consistent inertias; `pseudo_inertia` and `inconsistent_bodies` check consistency.
Regressors are those of `Robot.extended_regressor`, for fixed and floating bases, trees and loops. `random_parameters` draws
physically consistent inertias around those of a robot, for functions that take them as arguments (`Robot.parametric`).
"""

from .base_parameters import BaseFit, BaseParameters, base_parameters
from .consistency import inconsistent_bodies, parameters_of, pseudo_inertia
from .consistent_fit import InertialFit, fit_inertial_parameters
from .randomization import random_parameters

__all__ = [
    "BaseFit",
    "BaseParameters",
    "InertialFit",
    "base_parameters",
    "fit_inertial_parameters",
    "inconsistent_bodies",
    "parameters_of",
    "pseudo_inertia",
    "random_parameters",
]
