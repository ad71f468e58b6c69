"""Rollouts of our fleets; as a script, in its own process with vectors of at most 256 bits.

    python our_fleet.py NAME CONTACT FOLDER

The folder contains the robots' states and controls in `start.npz`. After each rollout, `ends.npy` contains the final
configurations.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import featherweight as fw
from featherweight.array_types import Array


class OurFleet:
    """Rollouts from states (robots, ...) with controls (robots, steps, nu); robots that fail keep their last state."""

    def __init__(self, sim: fw.Simulation, q: Array, v: Array, control: Array) -> None:
        self.sim, self.q, self.v, self.control = sim, q, v, control
        self.ends = q, v
        self.failed = 0  # number of robots that did not take all steps of the last rollout

    def run(self) -> None:
        states = self.sim.rollout(self.q, self.v, control=self.control, every=self.control.shape[1])
        self.ends = states.q[:, -1], states.v[:, -1]
        self.failed = int(np.count_nonzero(states.failed))

    @property
    def in_lanes(self) -> bool:
        """Return whether robots step in vector lanes."""
        return bool(self.sim._apart(len(self.q))._fleet.vectors.ready(len(self.q)))

    @property
    def contacts(self) -> float:
        """The mean number of contacts per robot in a step from the ends of the last rollout."""
        self.sim.reset(*self.ends)
        self.sim.step(control=self.control[:, -1])
        return len(self.sim.contacts_of_many().robot) / len(self.q)


def simulation_of(scene: Any, contact: str) -> fw.Simulation:
    """Return the simulation of a scene for fleets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of features that are not simulated
        made: fw.Simulation = scene.simulation(contact=contact, on_failure="stop")
    return made


def main() -> None:
    from limited_vectors import limit_vectors

    limit_vectors()  # before anything is compiled
    from fleet_scenes import FLEETS
    from measure import machine
    from measured_row import clock
    from peer_process import serve
    from simulation_gymnasium import compile_vectors

    name, contact, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    given = np.load(folder / "start.npz")
    fleet = OurFleet(simulation_of(FLEETS[name].scene(), contact), given["q"], given["v"], given["control"])
    compile_vectors(fleet.run)

    def run() -> float:
        begun = clock()
        fleet.run()
        spent = clock() - begun
        np.save(folder / "ends.npy", fleet.ends[0])
        return spent

    serve(machine(), run)


if __name__ == "__main__":
    main()
