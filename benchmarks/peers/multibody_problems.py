"""Group A of the library of computational benchmark problems of multibody dynamics: required accuracy and its cost.

    PYTHONPATH=tests python benchmarks/peers/multibody_problems.py [--rounds 5]

tests/simulation/multibody_problems.py builds the mechanisms and names the sources of their numbers. Requirements:

- A01 and A02 of the University of A Coruña (http://lim.ii.udc.es/mbsbenchmark/dist/A01/A01_specification.xml, and A02): 2000 s
  of the pendulum, 20 s of forty four-bars. The largest allowed errors are 1e-1 (low precision) and 1e-3 (high precision), of
  4000 and 400 outputs, with a threshold of 1e-3. We did not find the formula: errors here are root mean squares over outputs
  and coordinates of |y - reference| / max(|reference|, threshold).
- The same two problems in IFToMM's version (https://www.iftomm-multibody.org/benchmark): 10 s, the pendulum from x = -1 m, two
  four-bars. Exudyn's example `pendulumIftommBenchmark.py` has the requirement of the first, a change of energy of less than
  5e-5 J. We did not find that of the second; Exudyn's `fourBarMechanismIftomm.py` measures a run whose energy changes by
  0.11 J, so we require 0.1 J.
- A03, A04, A05: we did not find the requirements. A03 is compared with the angles after 0.03 s of the test set for initial
  value problem solvers, and by the balance of energy over 0.05 s; A04 by the change of energy and with shorter steps; A05 with
  an integration of its equations. The required error is the 1e-3 of A01 and A02.

The script reports the cheapest of several integrators and steps that meets the requirement. Its time is that of
`Simulation.run` with states recorded at the outputs, without compilation and construction of models. Published times are those
of OpenSim 3.2 on an Intel Core i5-4570 at 3.2 GHz (the pages "MBS benchmarks in OpenSim", help/benchmarks), and those in
comments of Exudyn's examples. They have their own accuracy, and their machines are older than this one.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from measure import machine, markdown

import featherweight as fw
from featherweight.array_types import Array
from simulation.multibody_problems import (
    MOTOR,
    SQUEEZED,
    bricard,
    four_bars,
    four_bars_angle,
    governor,
    governor_motion,
    governor_start,
    pendulum_position,
    simple_pendulum,
    squeezer,
    squeezer_start,
)

Ways = Sequence[tuple[str, float]]
THRESHOLD = 1e-3
OPENSIM = "OpenSim 3.2, i5-4570"
NO_DEMAND = "1e-3 (ours)"


@dataclass(frozen=True, eq=False)
class Problem:
    """A motion with its error."""

    name: str
    robot: fw.Robot
    q: Array
    v: Array
    duration: float
    output: float  # time between outputs [s]
    measure: str
    error: Callable[[fw.Trajectory], float]
    demand: float
    ways: Ways  # integrators and steps
    told: str = ""  # our requirement, if no source has one
    published: str = ""
    tau: Array | None = None

    def simulation(self, integrator: str, step: float) -> fw.Simulation:
        return fw.Simulation(self.robot, step, integrator, q=self.q, v=self.v, joints=fw.JointOptions(limits=False))

    def row(self, rounds: int) -> list[str]:
        """Return the row of the cheapest integrator and step that meet the requirement, or of the most accurate."""
        tried = []
        for integrator, step in self.ways:
            try:
                sim = self.simulation(integrator, step)
                tried.append((self.error(self.run(sim)), sim))
            except fw.SimulationError:  # the step is too long
                continue
        met = [(error, self.seconds(sim, rounds), sim) for error, sim in tried if error <= self.demand]
        if not met:
            met = [(error, self.seconds(sim, rounds), sim) for error, sim in [min(tried, key=lambda x: x[0])]]
        error, spent, sim = min(met, key=lambda x: x[1])
        return [
            self.name, self.measure, self.told or f"{self.demand:.0e}", f"{error:.1e}", "yes" if error <= self.demand else "no",
            f"{sim.integrator}, {1e3 * sim.dt:g} ms", f"{1e3 * spent:.3g}", self.published,
        ]  # fmt: skip

    def run(self, sim: fw.Simulation) -> fw.Trajectory:
        return sim.run(self.duration, every=round(self.output / sim.dt), tau=self.tau)

    def seconds(self, sim: fw.Simulation, rounds: int) -> float:
        """Return the median time of a run, after one that compiles."""
        samples = []
        for _ in range(rounds):
            sim.reset(self.q, self.v)
            begun = time.perf_counter()
            self.run(sim)
            samples.append(time.perf_counter() - begun)
        return statistics.median(samples)


HEADER = ["problem", "error", "demanded", "reached", "met", "integrator and step", "ours, ms", "published, ms"]


def relative(found: Array, reference: Array) -> float:
    """Return the root mean square of errors relative to the reference, or to the threshold if that is larger."""
    return float(np.sqrt((((found - reference) / np.maximum(np.abs(reference), THRESHOLD)) ** 2).mean()))


def energies(robot: fw.Robot, trajectory: fw.Trajectory, spring: int | None = None) -> Array:
    """Return the mechanical energy of all states, with the squeezer's spring at joint number `spring`."""
    energy = robot.kinetic_energy(trajectory.q, trajectory.v) + robot.potential_energy(trajectory.q)
    if spring is not None:
        joint = robot.joints[spring]
        energy = energy + 0.5 * joint.stiffness * (trajectory.q[:, joint.q_slice.start] - joint.rest) ** 2
    return np.asarray(energy)


def energy_change(robot: fw.Robot) -> Callable[[fw.Trajectory], float]:
    def change(trajectory: fw.Trajectory) -> float:
        energy = energies(robot, trajectory)
        return float(np.abs(energy - energy[0]).max())

    return change


def steps(integrators: Sequence[str], lengths: Sequence[float]) -> Ways:
    return [(integrator, length) for integrator in integrators for length in lengths]


def pendula() -> Iterator[Problem]:
    robot = simple_pendulum()

    def from_closed_form(trajectory: fw.Trajectory) -> float:
        angle = trajectory.q[:, 0]
        return relative(np.stack([np.sin(angle), -np.cos(angle)], axis=-1), pendulum_position(trajectory.times, 1.0))

    for precision, demand, ways in (
        ("low", 1e-1, steps(("rk4", "midpoint"), (0.02, 0.0125, 0.01, 0.005, 0.002))),
        ("high", 1e-3, steps(("rk4",), (0.01, 0.00625, 0.005, 0.004, 0.0025))),
    ):
        yield Problem(
            f"A01 pendulum, 2000 s, {precision} precision", robot, np.array([0.5 * np.pi]), np.zeros(1), 2000.0, 0.5,
            "x, y", from_closed_form, demand, ways,
        )  # fmt: skip
    yield Problem(
        "A01 pendulum, 10 s", robot, np.array([-0.5 * np.pi]), np.zeros(1), 10.0, 0.1, "energy, J", energy_change(robot), 5e-5,
        steps(("rk4", "midpoint", "semi-implicit"), (0.05, 0.025, 0.02, 0.0125, 0.01, 0.005, 0.0025, 0.001)),
        published=f"637 ({OPENSIM}); 37 (Exudyn, i7)",
    )  # fmt: skip


def rows_of_four_bars() -> Iterator[Problem]:
    names = {2: "two", 40: "forty"}
    for count, duration, demands in ((40, 20.0, (1e-1, 1e-3)), (2, 10.0, (0.1,))):
        robot = four_bars(count)
        assert isinstance(robot, fw.ClosedRobot)
        q, rate = robot.close(np.zeros(robot.nq)), np.array([-1.0])

        def from_equation(trajectory: fw.Trajectory, count: int = count) -> float:
            found, reference = (
                np.stack([-np.sin(a), np.cos(a), -np.cos(a) * w, -np.sin(a) * w], axis=-1)
                for a, w in (
                    (trajectory.q[:, 0], trajectory.v[:, 0]),
                    four_bars_angle(count, trajectory.times, -1.0).T,
                )
            )
            return relative(found, reference)

        ways = steps(("rk4", "midpoint", "semi-implicit"), (0.05, 0.025, 0.0125, 0.01, 0.005, 0.0025, 0.001))
        if count == 2:
            yield Problem(
                "A02 two four-bars, 10 s", robot, q, rate, duration, 0.05, "energy, J", energy_change(robot), 0.1, ways,
                "0.1 (ours)", f"455 ({OPENSIM}); 77.6 (Exudyn, 10 ms, 0.11 J, i9)",
            )  # fmt: skip
            demands, told = (1e-3,), NO_DEMAND
        else:
            told = ""
        for demand in demands:
            yield Problem(
                f"A02 {names[count]} four-bars, {duration:g} s", robot, q, rate, duration, 0.05, "B0: x, y and rates",
                from_equation, demand, ways, told,
            )  # fmt: skip


def squeezers() -> Iterator[Problem]:
    robot = squeezer()
    assert isinstance(robot, fw.ClosedRobot)
    q = squeezer_start(robot)
    spring = next(k for k, joint in enumerate(robot.joints) if joint.name == "spring")

    def from_test_set(trajectory: fw.Trajectory) -> float:
        ends = {joint.name: trajectory.q[-1, joint.q_slice.start] for joint in robot.joints}
        found, reference = (np.array(x) for x in zip(*((ends[n], a[1]) for n, a in SQUEEZED.items()), strict=True))
        return relative(found, reference)

    def balance(trajectory: fw.Trajectory) -> float:
        energy = energies(robot, trajectory, spring) - MOTOR * trajectory.q[:, 0]
        return float(np.abs(energy - energy[0]).max() / np.abs(energies(robot, trajectory, spring)).max())

    ways = steps(("rk4", "midpoint", "semi-implicit"), (2.5e-4, 1.25e-4, 1e-4, 5e-5, 2.5e-5, 1e-5, 5e-6))
    shared: dict[str, Any] = {"tau": np.array([MOTOR]), "told": NO_DEMAND}
    yield Problem(
        "A03 Andrews' squeezer, 0.03 s", robot, q, np.zeros(1), 0.03, 5e-4, "seven angles", from_test_set, 1e-3, ways, **shared
    )
    yield Problem(
        "A03 Andrews' squeezer, 0.05 s", robot, q, np.zeros(1), 0.05, 5e-4, "balance of energy, relative", balance, 1e-3, ways,
        published=f"384 ({OPENSIM})", **shared,
    )  # fmt: skip


def bricards() -> Iterator[Problem]:
    robot = bricard()
    assert isinstance(robot, fw.ClosedRobot)
    q = robot.close(np.zeros(robot.nq))
    ways = steps(("rk4", "midpoint", "semi-implicit"), (0.1, 0.05, 0.025, 0.02, 0.01, 0.005, 0.0025, 0.001))
    shared: dict[str, Any] = {"told": NO_DEMAND}

    def corner(trajectory: fw.Trajectory) -> Array:
        """Return the motion of P3, the lower end of the second rod."""
        end = np.eye(4)
        end[:3, 3] = 0.0, -1.0, 0.0
        return np.asarray(robot.frame_placement("rod1")(trajectory.q) @ end)[:, :3, 3]

    problem = Problem("", robot, q, np.zeros(1), 10.0, 0.1, "", energy_change(robot), 1e-3, ())
    fine = corner(problem.simulation("rk4", 2e-4).run(10.0, every=500))
    yield Problem(
        "A04 Bricard, 10 s", robot, q, np.zeros(1), 10.0, 0.1, "energy, J", energy_change(robot), 1e-3, ways,
        published=f"258 ({OPENSIM})", **shared,
    )  # fmt: skip
    yield Problem(
        "A04 Bricard, 10 s", robot, q, np.zeros(1), 10.0, 0.1, "P3: x, y, z", lambda t: relative(corner(t), fine), 1e-3, ways,
        **shared,
    )  # fmt: skip


def governors() -> Iterator[Problem]:
    robot = governor()
    assert isinstance(robot, fw.ClosedRobot)
    q, v = governor_start(robot), np.array([2.0 * np.pi, 0.0, 0.0, 0.0])

    def from_equations(trajectory: fw.Trajectory) -> float:
        return relative(trajectory.q[:, 1], governor_motion(trajectory.times, v[0])[:, 0])

    yield Problem(
        "A05 flyball governor, 10 s", robot, q, v, 10.0, 0.1, "s", from_equations, 1e-3,
        steps(("midpoint", "rk4", "semi-implicit"), (0.01, 0.005, 0.0025, 0.001, 2.5e-4, 1e-4)), NO_DEMAND, f"233 ({OPENSIM})",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{machine()}\n")
    rows = []
    for problems in (pendula, rows_of_four_bars, squeezers, bricards, governors):
        rows += [problem.row(options.rounds) for problem in problems()]
    print(markdown(HEADER, rows))


if __name__ == "__main__":
    main()
