"""All calls that a user makes one at a time, beside Pinocchio and MuJoCo in one run: how many are slower, and which.

    pip install --no-deps mjlab         # for Go1 and G1
    python benchmarks/peers/surface.py [--seconds 0.3] [--least 0.8]

These are the calls of robots and of `featherweight.se3`, which robot_calls.py finds by inspection and compares with Pinocchio,
and those around a simulation step, which simulation_calls.py compares with MuJoCo; their heads say how, and they print the
times. A ratio is the peer's time divided by ours. The first table counts the calls of each robot. The second one lists those
with a ratio below `--least` for a robot, the worst first: the number of such robots, and the robot with the least ratio.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping

import mujoco
import pinocchio as pin
import robot_calls
import simulation_calls
from measure import machine, markdown

from featherweight.simulation.simulation_options import FILE, LAWS

BOUNDS = 0.8, 1.0
"""Ratios between which calls are counted."""


def counted(robot: str, ratios: list[float]) -> list[str]:
    """Return a row: the robot, its calls, those of each range of ratios, and the median."""
    low, high = BOUNDS
    less, more = sum(x < low for x in ratios), sum(x >= high for x in ratios)
    return [robot, *map(str, (len(ratios), more, len(ratios) - more - less, less)), f"{statistics.median(ratios):.1f}"]


def slow(ratios: dict[tuple[str, str], float], least: float) -> list[list[str]]:
    """Return a row of each call that has a lower ratio: the call, the number of robots, the worst one, and its ratio."""
    found: dict[str, list[tuple[float, str]]] = {}
    for (robot, call), ratio in ratios.items():
        if ratio < least:
            found.setdefault(call, []).append((ratio, robot))
    worst = sorted((min(every), len(every), call) for call, every in found.items())
    return [[f"`{call}`", str(count), robot, f"{ratio:.2f}"] for (ratio, robot), count, call in worst]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="*", default=["hyq", "panda", "talos_reduced"], help="robots beside Pinocchio")
    parser.add_argument("--scenes", nargs="*", choices=simulation_calls.SCENES, default=[*simulation_calls.SCENES])
    parser.add_argument("--seconds", type=float, default=0.3, help="time of each comparison [s]")
    parser.add_argument("--least", type=float, default=0.8, help="ratio from which calls are only counted")
    parser.add_argument("--contact", choices=LAWS, default=FILE, help="contact law of robots from MJCF files")
    given = parser.parse_args()
    measured: dict[str, Mapping[str, tuple[float, ...]]] = {
        f"{name}, beside Pinocchio": robot_calls.measured(name, given.seconds).times for name in given.robots
    }
    for name in given.scenes:
        measured[f"{name}, beside MuJoCo"] = simulation_calls.measured(name, given.seconds, given.contact)
    ratios = {(robot, call): x[1] / x[0] for robot, times in measured.items() for call, x in times.items() if len(x) > 1}
    rows = [counted(robot, found) for robot in measured if (found := [x for (name, _), x in ratios.items() if name == robot])]
    low, high = BOUNDS
    print(f"{machine()}; Pinocchio {pin.__version__}; MuJoCo {mujoco.__version__}\n")
    print(markdown(["robot", "calls", f"{high:g} or more", f"{low:g} to {high:g}", f"less than {low:g}", "median ratio"], rows))
    print()
    print(markdown(["call", "robots", "worst", "its ratio"], slow(ratios, given.least)))


if __name__ == "__main__":
    main()
