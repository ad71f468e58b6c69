"""Simulations compared with MuJoCo: Talos, Panda, gymnasium's robots, and mechanisms.

    python benchmarks/peers/simulation_peer.py [--only talos gymnasium ...] [--rounds 9] [--contact rigid]

Both simulate the same file with the same step and integrator, in double precision. MuJoCo is called in its fastest way:
`mj_step` with all steps between changes of controls in one call, or single steps if ours are single; `mujoco.rollout` with its
own threads and preallocated results; the solver of the file. In free flight, contacts, limits and dry friction of joints are
off; damping remains. `--contact` chooses the law of gymnasium's robots; the default is that of their files, which is MuJoCo's.
Talos and the mechanisms have rigid contacts and loops. Ratios are of medians; runs alternate. With SIMULATION_CLOCK=cpu in the
environment, times are processor times, for machines with other users.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import simulation_controlled
import simulation_gymnasium
import simulation_mechanisms
from measure import machine, markdown
from measured_row import HEADER, Row, alternating
from mujoco_fleet import MujocoFleet
from robots_in_mujoco import STEP, angles, mujoco_states
from simulation_models import TALOS, soles, spread, standing_talos, talos_in_mujoco

import featherweight as fw
from featherweight.engine.threads import processors
from featherweight.simulation.simulation_options import FILE, LAWS


def rollouts(standing: bool, robots: int, steps: int, rounds: int) -> Row:
    """Return the row of many Talos robots in free flight or on their feet."""
    m = talos_in_mujoco(standing, friction=False)
    robot = standing_talos(friction=False) if standing else fw.load(TALOS, base="floating")
    options: dict[str, Any] = dict(spheres=soles(), shapes=False, ground=fw.Plane()) if standing else {}
    sim = fw.Simulation(robot, STEP, joints=fw.JointOptions(limits=standing, dry_friction=False), **options)
    q, v = spread(robot, robots)
    ends = np.empty_like(q)

    def ours() -> None:
        ends[:] = sim.rollout(q, v, steps)[0][:, -1]

    with MujocoFleet(m, mujoco_states(m, robot, q, v), steps) as theirs:
        seconds = alternating((ours, theirs.run), rounds)
    mine, other = angles(m, robot)
    difference = float(np.abs(theirs.end_positions[:, other] - ends[:, mine]).max())
    what = "on their feet" if standing else "in free flight"
    each = 1e6 / (robots * steps)
    remark = f"difference {difference:.1g} rad after {steps} steps"
    return Row(f"{robots} Talos {what}", "rollout", seconds[0] * each, seconds[1] * each, remark)


def talos(options: Any) -> list[Row]:
    rounds = options.rounds
    return [
        rollouts(False, 4 * options.robots, 20, rounds),
        rollouts(True, options.robots // 2, 20, rounds),
        *simulation_controlled.standing(False, rounds),
        *simulation_controlled.standing(True, rounds),
    ]


PARTS: dict[str, Callable[[Any], list[Row]]] = {
    "talos": talos,
    "panda": lambda o: simulation_controlled.computed_torque(o.rounds),
    "gymnasium": lambda o: simulation_gymnasium.rows(o.robots, o.steps, o.rounds, o.contact),
    "mechanisms": lambda o: simulation_mechanisms.rows(o.robots, o.steps, o.rounds),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*PARTS], default=[*PARTS])
    parser.add_argument("--robots", type=int, default=1024, help="number of small robots in rollouts")
    parser.add_argument("--steps", type=int, default=50, help="steps of these rollouts")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--contact", choices=LAWS, default=FILE, help="contact law of gymnasium's robots")
    options = parser.parse_args()
    print(f"{machine()}; MuJoCo {mujoco.__version__}; {processors()} threads for rollouts\n")
    rows = [row.cells() for part, measured in PARTS.items() if part in options.only for row in measured(options)]
    print(markdown(HEADER, rows))


if __name__ == "__main__":
    main()
