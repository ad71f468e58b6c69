"""Optimal control problems as numbers, for peers in other environments. This module does not import the library.

All problems have semi-implicit Euler steps, and weighted squares of residuals: per second along the way, and at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HYQ_FEET = ("lf_foot", "rf_foot", "lh_foot", "rh_foot")
TALOS_FEET = ("left_sole_link", "right_sole_link")


@dataclass(frozen=True)
class ControlProblem:
    """A robot of example-robot-data from `start`; residuals are (weight on the way, weight at the end)."""

    robot: str  # file in example-robot-data/robots
    step: float  # [s]
    phases: tuple[tuple[int, tuple[str, ...]], ...]  # knots, and frames in contact
    posture: tuple[float, float]  # joints, relative to their targets
    velocity: tuple[float, float]
    effort: float
    floating: bool = False
    size: int = 3  # rows of a contact
    hand: tuple[str, tuple[float, float, float], float, float] | None = None  # frame, position [m], weights
    base: tuple[float, float] = (0.0, 0.0)  # of position and velocity of a floating base
    rise: float = 0.0  # [m] of the base at the end
    center: tuple[float, float, float] | None = None  # descent [m] of the centre of mass, weights
    arms: dict[str, float] = field(default_factory=dict)  # joints that do not start at zero

    @property
    def knots(self) -> int:
        """The number of knots of all phases."""
        return sum(knots for knots, _ in self.phases)


PROBLEMS = {
    "Panda, reach": ControlProblem(
        "panda_description/urdf/panda.urdf", 0.01, ((100, ()),), (0.1, 0.1), (0.1, 100.0), 1e-3,
        hand=("panda_hand_tcp", (0.35, -0.45, 0.35), 1.0, 1e4),
        arms={"panda_joint2": -0.8, "panda_joint4": -2.3, "panda_joint6": 1.6, "panda_joint7": 0.8},
    ),
    "HyQ, jump": ControlProblem(
        "hyq_description/robots/hyq_no_sensors.urdf", 0.01, ((30, HYQ_FEET), (20, ())), (10.0, 100.0), (0.1, 10.0), 1e-3,
        floating=True, base=(1e5, 1e4), rise=0.3,
        arms={f"{leg}_{joint}": sign * x for leg, sign in (("lf", 1), ("rf", 1), ("lh", -1), ("rh", -1)) for joint, x in
              (("hfe_joint", 0.75), ("kfe_joint", -1.5))},
    ),
    "Talos, squat": ControlProblem(
        "talos_data/robots/talos_reduced.urdf", 0.01, ((100, TALOS_FEET),), (0.1, 0.1), (0.1, 10.0), 1e-4, floating=True,
        size=6, center=(0.15, 10.0, 1e4),
        arms={f"leg_{side}_{k}_joint": x for side in ("left", "right") for k, x in ((3, -0.41), (4, 0.86), (5, -0.45))},
    ),
}  # fmt: skip


def as_json(names: list[str], start: Any, goal: Any, controls: Any, path: str) -> dict[str, Any]:
    """Return the other data that the peer needs; `names` are the joints after the base in our order."""
    states = {"start": list(map(float, start)), "goal": list(map(float, goal))}
    return {"names": names, **states, "controls": controls, "path": path}
