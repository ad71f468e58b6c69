"""Robots that the library contains: those of Chignoli et al. (2023), section IX, small linkages, and a centipede.

Each function returns a `Description`: the spanning tree with its rotors, and the gears, belts, differentials and loop joints
that connect them. For the robots of that paper, names and order of bodies and joints, and all numbers, are those of the URDF
files in the paper's repository, https://github.com/ROAM-Lab-ND/generalized_rbda (commit 45fa7c4, MIT licence). Its position
limits of ±10 rad are placeholders and are left out. A floating base is a floating joint from the world to the root.

SI units; gravity is (0, 0, -9.81) m/s² unless stated otherwise.
"""

from .centipede_walker import centipede
from .chains import belt_chain, geared_chain
from .jvrc1_humanoid import jvrc1
from .linkages import four_bar, planar_leg_linkage, six_bar
from .mit import mini_cheetah, mit_humanoid
from .reduced import approximate, unconstrained
from .tello_humanoid import tello

__all__ = [
    "approximate",
    "belt_chain",
    "centipede",
    "four_bar",
    "geared_chain",
    "jvrc1",
    "mini_cheetah",
    "mit_humanoid",
    "planar_leg_linkage",
    "six_bar",
    "tello",
    "unconstrained",
]
