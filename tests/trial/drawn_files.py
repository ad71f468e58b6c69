"""Random MJCF files: joints, springs, couplings, tendons and actuators of many kinds, with and without names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

Rng = np.random.Generator

OF_JOINTS = {
    "stiffness": (0.5, 9.0), "springref": (-1.0, 1.0), "damping": (0.1, 2.0), "armature": (0.01, 0.5),
    "frictionloss": (0.1, 1.0),
}  # fmt: skip
BENT = ("stiffness", "damping")  # these may have further coefficients
ACTUATORS = (
    "motor", "motor", "position", "velocity", "general", "damper", "intvelocity",
)  # fmt: skip
SEVERAL = ("pid", "orientation")  # with several controls, since MuJoCo 4


def drawn_file(rng: Rng, several_controls: bool) -> str:
    """Return a file with some bodies on a chain and on the ground, and forces at their joints."""
    kinds = [str(rng.choice(["hinge", "slide", "ball"], p=[0.6, 0.25, 0.15])) for _ in range(rng.integers(2, 6))]
    free = rng.random() < 0.3
    bodies = "".join(_body(k, kind, rng) for k, kind in enumerate(kinds))
    trunk = (
        f'<body><joint name="fly" type="free"{_some("damping", rng)}{_some("stiffness", rng)}/><geom size=".1"/>{bodies}</body>'
        if free
        else bodies
    )
    scalars = [k for k, kind in enumerate(kinds) if kind != "ball"]
    balls = [k for k, kind in enumerate(kinds) if kind == "ball"]
    tendons = [_tendon(n, scalars, rng) for n in range(rng.integers(0, 3))] if scalars else []
    acting = "".join(_actuator(scalars, balls, len(tendons), several_controls, rng) for _ in range(rng.integers(1, 6)))
    equalities = "".join(_equalities(scalars, rng)) if len(scalars) > 1 else ""
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody><site name="eye"/>{trunk}</worldbody>'
        f"<tendon>{''.join(tendons)}</tendon><equality>{equalities}</equality><actuator>{acting}</actuator></mujoco>"
    )


def _number(rng: Rng, low: float, high: float) -> str:
    return f"{rng.uniform(low, high):.3g}"


def _some(name: str, rng: Rng) -> str:
    bent = f" {_number(rng, 0.0, 1.0)} {_number(rng, 0.0, 1.0)}" if name in BENT and rng.random() < 0.3 else ""
    return f' {name}="{_number(rng, *OF_JOINTS[name])}{bent}"' if rng.random() < 0.4 else ""


def _body(k: int, kind: str, rng: Rng) -> str:
    own = "".join(_some(name, rng) for name in OF_JOINTS if not (kind == "ball" and name == "springref"))
    if kind != "ball":
        own += f' axis="{" ".join(_number(rng, -1.0, 1.0) for _ in range(3))}"'
        own += f' ref="{_number(rng, -0.5, 0.5)}"' if rng.random() < 0.3 else ""
        own += f' range="-2 {_number(rng, 1.0, 3.0)}"' if rng.random() < 0.3 else ""
        own += f' actuatorfrcrange="-3 {rng.choice([3, 3, 4])}"' if rng.random() < 0.2 else ""
    place = " ".join(_number(rng, -0.5, 0.5) for _ in range(3))
    box = f'<geom type="box" size=".1 .2 .3" pos="{place}" contype="0" conaffinity="0"/>'
    return f'<body name="b{k}" pos="{place}"><joint name="j{k}" type="{kind}"{own}/>{box}<site name="s{k}"/></body>'


def _tendon(n: int, scalars: Sequence[int], rng: Rng) -> str:
    joints = rng.choice(scalars, size=min(len(scalars), 1 + int(rng.random() < 0.25)), replace=False)
    terms = "".join(f'<joint joint="j{k}" coef="{_number(rng, 0.5, 3.0)}"/>' for k in joints)
    own = "".join(_some(name, rng) for name in ("stiffness", "damping", "frictionloss"))
    return f'<fixed name="t{n}"{own}>{terms}</fixed>'


def _actuator(scalars: Sequence[int], balls: Sequence[int], tendons: int, several: bool, rng: Rng) -> str:
    kind = str(rng.choice(ACTUATORS if not several or rng.random() < 0.7 else SEVERAL))
    named = f' name="a{rng.integers(1_000_000)}"' if rng.random() < 0.5 else ""
    on = f' tendon="t{rng.integers(tendons)}"' if tendons and rng.random() < 0.4 else ""
    if kind == "orientation" or not (on or scalars):
        return f'<orientation{named} joint="j{rng.choice(balls)}" kp="2"/>' if several and balls else ""
    own = {
        "position": f' kp="{_number(rng, 1.0, 9.0)}" kv="{_number(rng, 0.0, 2.0)}"',
        "velocity": f' kv="{_number(rng, 0.1, 2.0)}"',
        "general": ' gainprm="2" biastype="affine" biasprm="1 -2 -0.5"', "damper": ' ctrlrange="0 1" kv="1"',
        "intvelocity": ' actrange="-1 1" kp="2"', "pid": f' kp="2" input="{rng.choice(["pos", "pos vel"])}"',
    }.get(kind, "")  # fmt: skip
    limits = f' gear="{_number(rng, -3.0, 3.0)}"'
    limits += ' ctrlrange="-.5 .7"' if kind != "damper" and rng.random() < 0.5 else ""
    limits += ' forcerange="-2 3"' if rng.random() < 0.3 else ""
    limits += _some("damping", rng) if several else ""
    on = on or f' joint="j{rng.choice(scalars)}"'
    return f"<{kind}{named}{on}{own}{limits}/>"


def _equalities(scalars: Sequence[int], rng: Rng) -> Iterator[str]:
    """Couple each joint to an earlier one, so that couplings have no cycles: by a ratio, or sometimes a square."""
    for k, follower in enumerate(scalars[1:], 1):
        if rng.random() < 0.6:
            square = _number(rng, 0.1, 0.5) if rng.random() < 0.15 else "0"
            numbers = f"{_number(rng, -0.3, 0.3)} {_number(rng, 0.5, 2.0)} {square} 0 0"
            yield f'<joint joint1="j{follower}" joint2="j{rng.choice(scalars[:k])}" polycoef="{numbers}"/>'
