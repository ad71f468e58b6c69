"""Energy that a step brings though no force has worked for it: the sign of a step that is too long.

Gravity and springs have potentials, what else works on joints is given, and contacts, limits, friction and dampers only take.
What a step has more is its own error. Of smooth motion that is of the order of (h v)², but the motion after an impact, or of
bodies that turn by a good part of a radian in a step, may be anything: velocity products are those of the step's beginning.
The guard does not see the work of forces that are given: a controller whose gains are too high for the step drives a joint to
and fro, faster in each step, and works. So velocities are bounded too.

The displacement that parts bodies may lift them, which is no gain; where velocities would grow by it, it is left out.
"""

from __future__ import annotations

SLOW = 0.02  # [rad, m] of any joint in a step, below which nothing is looked at: velocity products are small
FARTHEST = 100.0  # [rad, m] of any joint in a step, beyond which a motion diverges: 16 turns at once are no motion of a robot
ALLOWED = 0.05  # of the sum of the kinetic energies before and after
ROUNDING = 1e-12  # of the potential energy


def excess_energy(kinetic: tuple[float, float], potential: tuple[float, float], work: float, least: float) -> float:
    """Return the gain of energy beyond what a step may bring [J].

    `kinetic` and `potential` are the energies before and after the step. `work` is the most that forces of users and drives
    did. `least` is the energy of a body that falls for a step, which is as small as errors of a step get.
    """
    gained = kinetic[1] - kinetic[0] + (potential[1] - potential[0]) - work
    return gained - ALLOWED * (kinetic[0] + kinetic[1]) - least - ROUNDING * (abs(potential[0]) + abs(potential[1]))


def greatest_work(force: float, start: float, end: float, h: float) -> float:
    """The most that a joint's force may have done in a step [J], for its velocities at the start and the end."""
    return h * max(force * start, force * end, 0.0)


def mean_work(forces: tuple[float, float], start: float, end: float, h: float) -> float:
    """The work of a joint's forces, at the start and the end, at the mean of its velocities [J].

    That is the work of a spring, as a drive with stiffness is one, over a step that goes far.
    """
    return 0.25 * h * (forces[0] + forces[1]) * (start + end)
