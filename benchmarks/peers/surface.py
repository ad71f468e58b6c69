"""All calls that a user makes one at a time, beside Pinocchio and MuJoCo in one run: the worst ratio first.

    pip install --no-deps mjlab         # for Go1 and G1
    python benchmarks/peers/surface.py [--seconds 0.3] [--least 1.25]

These are the calls of robots and of `featherweight.se3`, which robot_calls.py finds by inspection and compares with Pinocchio,
and those around a simulation step, which simulation_calls.py compares with MuJoCo; their heads say how. A ratio is the peer's
time divided by ours. Shown are calls with a ratio below `--least`, and how many have a larger one.
"""

from __future__ import annotations

import argparse

import mujoco
import pinocchio as pin
import robot_calls
import simulation_calls
from measure import machine, markdown

from featherweight.simulation.simulation_options import FILE, LAWS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="*", default=["hyq", "panda", "talos_reduced"], help="robots beside Pinocchio")
    parser.add_argument("--scenes", nargs="*", choices=simulation_calls.SCENES, default=[*simulation_calls.SCENES])
    parser.add_argument("--seconds", type=float, default=0.3, help="time of each comparison [s]")
    parser.add_argument("--least", type=float, default=1.25, help="ratio from which calls are only counted")
    parser.add_argument("--contact", choices=LAWS, default=FILE, help="contact law of robots from MJCF files")
    given = parser.parse_args()
    times: dict[tuple[str, str], tuple[float, ...]] = {}
    for name in given.robots:
        times |= {(name, call): x for call, x in robot_calls.measured(name, given.seconds).times.items()}
    for name in given.scenes:
        times |= {(name, call): x for call, x in simulation_calls.measured(name, given.seconds, given.contact).items()}
    compared = {what: x for what, x in times.items() if len(x) > 1}
    shown = {what: x for what, x in compared.items() if x[1] / x[0] < given.least}
    print(f"{machine()}; Pinocchio {pin.__version__}; MuJoCo {mujoco.__version__}\n")
    print(markdown(["robot", "call", "ours [µs]", "peer's [µs]", "ratio"], robot_calls.worst_first(shown)))
    print(f"\n{len(compared) - len(shown)} of {len(compared)} calls have a ratio of {given.least:g} or more")


if __name__ == "__main__":
    main()
