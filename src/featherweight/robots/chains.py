"""Serial chains whose links are driven by gears, or in pairs by parallel belts (Chignoli et al. 2023, section IX).

Numbers and distributions are those of SerialChains/ in generalized_rbda (MIT licence). The uniform chains move in the x–y
plane under gravity (9.81, 0, 0) m/s². Their links have a length of 1 m, a mass of 1 kg at the middle and 1 kg m² about each
axis (about z alone in the C++ model, which is equivalent in the plane); their rotors have 1e-4 kg m² and no mass. In random
chains every placement, axis, ratio and inertia is random: masses in [0, 1] kg, centres in [-1, 1]³ m, inertias A A^T with the
elements of A in [-1, 1], the rotors' mass and inertia 1e-4 times as large, gear and belt ratios 1 to 5, axes x, y or z,
offsets in [-1, 1]³ m. Few solids have such inertias, but they are positive definite.
"""

from __future__ import annotations

import numpy as np

from ..checks import SeedOrNone, checked
from ..model.description import Description
from ..model.generators import random_rotation
from ..model.random_numbers import uniform
from ..model.types import WORLD, Inertia, Vector, as_matrix, as_vector
from ..spatial.ordered import product
from .parts import AXES, Part, robot_of_parts

LINK = Inertia(1.0, (0.5, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
ROTOR = Inertia(0.0, rotational=(1e-4, 0.0, 0.0, 1e-4, 0.0, 1e-4))
GRAVITY: Vector = (9.81, 0.0, 0.0)


@checked
def geared_chain(n: int, rng: SeedOrNone = None) -> Description:
    """Return a chain of `n` links, link-0 ..., each with a rotor on the body below it that turns 6 times as fast.

    `rng` is the seed, or the generator, of a random chain, with gears of 1 to 5 and the usual gravity; without it, the chain is
    uniform. Raises ValueError if `n` < 1.
    """
    if n < 1:
        raise ValueError(f"n: expected 1 or more, got {n}")
    generator = None if rng is None else np.random.default_rng(rng)
    parts: list[Part] = []
    for i in range(n):
        below = f"link-{i - 1}" if i else WORLD
        ratio = 6.0 if generator is None else float(generator.integers(1, 6))
        parts += [
            _part(generator, f"link-{i}", f"joint{i + 1}", below),
            _part(generator, f"rotor-{i}", f"joint{i + 1}r", below)._replace(follows=((f"joint{i + 1}", ratio),)),
        ]
    return _chain("geared_chain", n, rng, parts)


@checked
def belt_chain(n: int, rng: SeedOrNone = None) -> Description:
    """Return a chain of `n` links; the two rotors of each pair of links, A and B, are on the body below A.

    Gears of 2 and belts of 3, and 1 from A on to B: q_rotor_A = 6 q_A and q_rotor_B = 6 (q_A + q_B). `rng` is the seed, or the
    generator, of a random chain, with gears and belts of 1 to 5 and the usual gravity. Raises ValueError if `n` is odd or < 2.
    """
    if n < 2 or n % 2:
        raise ValueError(f"n: expected an even number, 2 or more, got {n}")
    generator = None if rng is None else np.random.default_rng(rng)
    parts: list[Part] = []
    for i in range(0, n, 2):
        below, A, B = f"link-{i - 1}" if i else WORLD, f"joint{i + 1}", f"joint{i + 2}"
        gear_A, belt_A, gear_B, belt_B, belt_AB = (
            (2, 3, 2, 3, 1) if generator is None else map(int, generator.integers(1, 6, 5))
        )
        through_A = float(gear_B * belt_B)
        parts += [
            _part(generator, f"link-{i}", A, below),
            _part(generator, f"rotor-{i}", f"{A}r", below)._replace(follows=((A, float(gear_A * belt_A)),)),
            _part(generator, f"rotor-{i + 1}", f"{B}r", below)._replace(follows=((A, through_A), (B, through_A * belt_AB))),
            _part(generator, f"link-{i + 1}", B, f"link-{i}"),
        ]
    return _chain("belt_chain", n, rng, parts)


def _chain(kind: str, n: int, rng: np.random.Generator | int | None, parts: list[Part]) -> Description:
    if rng is None:
        return robot_of_parts(f"{kind}_{n}", parts, gravity=GRAVITY)
    return robot_of_parts(f"random_{kind}_{n}", parts)


def _part(rng: np.random.Generator | None, body: str, joint: str, parent: str) -> Part:
    """Return a link or a rotor, at the end of its parent or anywhere on it."""
    rotor = body.startswith("rotor")
    if rng is None:
        at = (0.0 if parent == WORLD else 1.0, 0.0, 0.0)
        return Part(body, ROTOR if rotor else LINK, joint, parent, "z", at)
    inertia = _random_inertia(rng, 1e-4 if rotor else 1.0)
    at, R = as_vector(uniform(rng, -1.0, 1.0, 3)), as_matrix(random_rotation(rng))
    return Part(body, inertia, joint, parent, str(rng.choice(list(AXES))), at, R)


def _random_inertia(rng: np.random.Generator, scale: float) -> Inertia:
    A = uniform(rng, -1.0, 1.0, (3, 3))
    J = product(scale * A, A.T)
    xx, xy, xz, yy, yz, zz = (float(J[i, j]) for i in range(3) for j in range(i, 3))
    return Inertia(scale * float(rng.random()), as_vector(uniform(rng, -1.0, 1.0, 3)), (xx, xy, xz, yy, yz, zz))
