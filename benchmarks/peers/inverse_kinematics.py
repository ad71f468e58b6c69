"""Inverse kinematics of Panda's hand, compared with pink, mink and the Robotics Toolbox, in one run.

    pip install featherweight pin-pink daqp mink roboticstoolbox-python
    python benchmarks/peers/inverse_kinematics.py [--batch 10000] [--seconds 2]

Targets are poses of random configurations within limits, with tolerances of 1e-6 m and 1e-6 rad, and starts are random. If 30
steps do not reach the target, an attempt starts again from another configuration, at most 100 times. Only Featherweight has
batches: the other libraries solve one problem after the other. A controller's call has a target near the present configuration
(0.02 rad); a differential step is one velocity within joint limits. pink and mink take full steps (dt = 1) with DAQP. The
Robotics Toolbox is its C++ solver (Haviland and Corke 2022) with a tolerance of the same size. Libraries that are not installed
are left out, and the output says so.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from measure import FILES, ROBOTS, machine, markdown, median_times

import featherweight
from featherweight.array_types import Array

URDF, HAND = ROBOTS / FILES["panda"][0], "panda_hand"
WITHIN, STEPS, ATTEMPTS = 1e-6, 30, 101
NEAR = 0.02  # [rad] of a controller's target
FEW = 100  # problems for slow solvers
REPEATS = 5  # rounds of batches


class Problems:
    """Targets, configurations that reach them, and starting configurations."""

    def __init__(self, count: int) -> None:
        self.robot = featherweight.load(URDF, mimic="independent")
        self.lower = np.array([j.lower for j in self.robot.joints])
        self.upper = np.array([j.upper for j in self.robot.joints])
        self.reached = self.robot.random_configuration(rng=0, size=count)
        self.targets = self.robot.frame_placement(HAND)(self.reached)
        self.start = self.robot.random_configuration(rng=1, size=count)
        away = NEAR * np.random.default_rng(2).standard_normal(self.reached.shape)
        self.near = np.clip(self.reached + away, self.lower, self.upper)


class WholeSteps:
    """Full differential steps by quadratic programs, with one interface for pink and mink."""

    _solve: Callable[..., Any]
    _task: Any
    _limits: list[Any]
    _configuration: Any

    def step(self) -> None:
        v = self._solve(
            self._configuration, [self._task], 1.0, solver="daqp", damping=1e-9, limits=self._limits, safety_break=False
        )
        self._configuration.integrate_inplace(v, 1.0)

    def error(self) -> Array:
        return np.asarray(self._task.compute_error(self._configuration))


class Pink(WholeSteps):
    """Steps of pink, with Pinocchio."""

    name = "pink"

    def __init__(self, problems: Problems) -> None:
        import pink
        import pinocchio
        from pink.limits import ConfigurationLimit

        self._solve, self._pin = pink.solve_ik, pinocchio
        self._model = pinocchio.buildModelFromUrdf(str(URDF))
        self._data = self._model.createData()
        self._task = pink.FrameTask(HAND, position_cost=1.0, orientation_cost=1.0, lm_damping=1e-3)
        self._limits = [ConfigurationLimit(self._model, config_limit_gain=1.0)]
        self._configuration = pink.Configuration(self._model, self._data, problems.start[0])

    def aim(self, target: Array, q: Array) -> None:
        self._task.set_target(self._pin.SE3(target[:3, :3], target[:3, 3]))
        self._configuration.update(q)


class Mink(WholeSteps):
    """Steps of mink, with MuJoCo."""

    name = "mink"

    def __init__(self, problems: Problems) -> None:
        import mink
        import mujoco

        self._solve, self._motion = mink.solve_ik, mink.SE3
        text = re.sub(r"<(visual|collision)>.*?</\1>", "", URDF.read_text(), flags=re.S)
        text = text.replace("</robot>", '<mujoco><compiler fusestatic="false"/></mujoco></robot>')
        self._model = mujoco.MjModel.from_xml_string(text)
        self._task = mink.FrameTask(HAND, "body", position_cost=1.0, orientation_cost=1.0, lm_damping=1e-3)
        self._limits = [mink.ConfigurationLimit(self._model, gain=1.0)]
        self._configuration = mink.Configuration(self._model, problems.start[0])

    def aim(self, target: Array, q: Array) -> None:
        self._task.set_target(self._motion.from_matrix(target))
        self._configuration.update(q)


class Toolbox:
    """Levenberg-Marquardt iterations with restarts in C++, on the arm without the hand's fingers."""

    name = "Robotics Toolbox"

    def __init__(self, problems: Problems) -> None:
        from roboticstoolbox import ET

        limits = iter(zip(problems.lower[:7], problems.upper[:7], strict=True))
        quarter = np.pi / 2

        def turn() -> Any:
            return ET.Rz(qlim=next(limits))

        arm = ET.tz(0.333) * turn() * ET.Rx(-quarter) * turn() * ET.Rx(quarter) * ET.tz(0.316) * turn()
        arm = arm * ET.tx(0.0825) * ET.Rx(quarter) * turn() * ET.tx(-0.0825) * ET.Rx(-quarter) * ET.tz(0.384) * turn()
        arm = arm * ET.Rx(quarter) * turn() * ET.tx(0.088) * ET.Rx(quarter) * turn() * ET.tz(0.107)
        self._arm = arm * ET.Rz(-np.pi / 4)
        assert abs(self._arm.eval(problems.reached[0, :7]) - problems.targets[0]).max() < 1e-9, "not the same arm"

    def solve(self, target: Array, q: Array, attempts: int = ATTEMPTS) -> bool:
        found = self._arm.ik_LM(
            target, q0=q[:7], tol=0.5 * WITHIN**2, ilimit=STEPS, slimit=attempts, k=0.1, method="chan", joint_limits=True
        )
        return bool(np.all(found.success))


def by_steps(peer: Any, problems: Problems) -> Callable[[Array, Array], bool]:
    """Return a solver that takes steps from the start, and then from random configurations, until it reaches the target."""
    rng = np.random.default_rng(3)

    def solve(target: Array, q: Array) -> bool:
        for _ in range(ATTEMPTS):
            peer.aim(target, q)
            for _ in range(STEPS):
                error = peer.error()
                if np.linalg.norm(error[:3]) <= WITHIN and np.linalg.norm(error[3:]) <= WITHIN:
                    return True
                peer.step()
            q = problems.robot.random_configuration(rng=rng)
        return False

    return solve


def peers(problems: Problems) -> Iterator[Any]:
    for kind in (Pink, Mink, Toolbox):
        try:
            yield kind(problems)
        except ImportError as error:
            print(f"{kind.name} is left out: {error}")


def one_by_one(solve: Callable[[Array, Array], Any], targets: Array, starts: Array) -> tuple[float, float, float]:
    """Return mean and median times [s], and the share of solved problems."""
    times, solved = [], 0
    solve(targets[0], starts[0])
    for target, q in zip(targets, starts, strict=True):
        begun = time.perf_counter()
        solved += bool(solve(target, q))
        times.append(time.perf_counter() - begun)
    return statistics.mean(times), statistics.median(times), solved / len(times)


def batches(ik: Any, problems: Problems) -> tuple[float, float]:
    """Return the median time of a batch [s], and the share of solved problems."""
    times, shares = [], []
    for seed in range(REPEATS + 1):
        begun = time.perf_counter()
        found = ik.solve(problems.targets, problems.start, rng=seed)
        times.append(time.perf_counter() - begun)
        shares.append(found.converged.mean())
    return statistics.median(times[1:]), float(np.mean(shares[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for the differential step [s]")
    arguments = parser.parse_args()
    problems = Problems(arguments.batch)
    ik = featherweight.InverseKinematics(problems.robot, featherweight.FrameTask(HAND))
    seconds, share = batches(ik, problems)
    count = len(problems.targets)
    print(machine())
    print(f"Featherweight, {count} targets: {1e3 * seconds:.1f} ms, {count / seconds:.0f}/s, {100 * share:.2f} % solved\n")

    def solve(target: Array, q: Array) -> bool:
        return bool(ik.solve(target, q).converged)

    few = slice(0, FEW)
    every = list(peers(problems))
    ways: list[tuple[str, Callable[[Array, Array], bool]]] = [("Featherweight", solve)]
    ways += [(peer.name, peer.solve if isinstance(peer, Toolbox) else by_steps(peer, problems)) for peer in every]
    rows = []
    for name, way in ways:
        far = one_by_one(way, problems.targets[few], problems.start[few])
        near = one_by_one(way, problems.targets[few], problems.near[few])
        rate = count / seconds * far[0]
        numbers = f"{1e6 * far[0]:.0f}", f"{1e6 * far[1]:.0f}", f"{100 * far[2]:.0f}", f"{1e6 * near[1]:.1f}"
        rows.append([name, *numbers, f"{rate:.0f}"])
    header = ["solver, one target per call", "random start, mean [µs]", "random start, median [µs]", "solved [%]"]
    header += ["start 0.02 rad away, median [µs]", "mean / Featherweight's batch, per target"]
    print(markdown(header, rows), "\n")

    steps = [("Featherweight", differential(ik, problems))]
    for peer in every:
        if not isinstance(peer, Toolbox):
            peer.aim(problems.targets[0], problems.near[0])
            steps.append((peer.name, peer.step))
    times = median_times([call for _, call in steps], arguments.seconds)
    print(
        markdown(
            ["differential step", "median [µs]"], [[name, f"{1e6 * t:.0f}"] for (name, _), t in zip(steps, times, strict=True)]
        )
    )


def differential(ik: Any, problems: Problems) -> Callable[[], Any]:
    target, q = problems.targets[0], problems.near[0]
    ik.velocity(q, target, 1.0)
    return lambda: ik.velocity(q, target, 1.0)


if __name__ == "__main__":
    main()
