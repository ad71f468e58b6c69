"""Detection of energy gained without the work of a force, which indicates a step that is too long.

Gravity and springs have potentials; other forces at joints are known; contacts, limits, friction and dampers only dissipate.
Any further energy is an error of the step. For smooth motion the error is of order (h v)². After an impact, or for bodies that
turn by a large part of a radian in a step, it can be arbitrary, because velocity products are evaluated at the start of the
step. The guard does not see the work of given forces: a controller with gains too high for the step makes a joint oscillate
with growing speed, and does work. Velocities are therefore bounded, too.

The displacement that separates bodies may lift them, which does not count as a gain. If it would increase velocities, it is
left out.
"""

from __future__ import annotations

SLOW = 0.02  # [rad, m] motion of all joints in a step below which there is no check: velocity products are small
FARTHEST = 100.0  # [rad, m] motion of a joint in a step beyond which the simulation diverges: 16 turns in one step
ALLOWED = 0.05  # allowed gain relative to the sum of the kinetic energies before and after
ROUNDING = 1e-12  # rounding error relative to the potential energy


def excess_energy(kinetic: tuple[float, float], potential: tuple[float, float], work: float, least: float) -> float:
    """Return the gain of energy beyond the allowed gain of a step [J].

    `kinetic` and `potential` are the energies before and after the step. `work` is the most that forces of users and drives
    did. `least` is the energy that a body gains by falling for one step, a lower bound of errors of a step.
    """
    gained = kinetic[1] - kinetic[0] + (potential[1] - potential[0]) - work
    return gained - ALLOWED * (kinetic[0] + kinetic[1]) - least - ROUNDING * (abs(potential[0]) + abs(potential[1]))


def greatest_work(force: float, start: float, end: float, h: float) -> float:
    """Return the greatest work of a joint's force in a step [J], for its velocities at the start and the end."""
    return h * max(force * start, force * end, 0.0)


def mean_work(forces: tuple[float, float], start: float, end: float, h: float) -> float:
    """Return the work of a joint's forces at the start and the end, at the mean of its velocities [J].

    This is the work of a spring, or a drive with stiffness, over a long step.
    """
    return 0.25 * h * (forces[0] + forces[1]) * (start + end)
