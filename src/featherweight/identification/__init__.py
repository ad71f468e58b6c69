"""From measured motions and forces to the inertias of a robot.

`base_parameters` finds what the forces of joints depend on at all, and fits it; `fit_inertial_parameters` fits inertias that
bodies can have; `pseudo_inertia` and `inconsistent_bodies` say which those are. Regressors are those of
`Robot.extended_regressor`: for fixed and floating bases, trees and loops. `random_parameters` draws inertias that bodies can
have around those of a robot, for functions that take them as arguments (`Robot.parametric`).
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
