"""Environment steps per second of Gymnasium's walking robots: ours, Gymnasium's with MuJoCo, and EnvPool's.

    python benchmarks/peers/environments.py [Hopper Ant] [--robots 1 64 1024] [--envpool PYTHON] [--seconds 1] [--alone]
                                            [--contact rigid]

All take random actions of the same task with the same time steps, in double precision; each library restarts episodes in its
own way. A step of the environment is 4 or 5 steps of the simulation (`frame_skip`). Contacts follow the law of the files, which
is MuJoCo's, unless `--contact` selects another one for ours. Gymnasium's environments run one after the other ("sync") or in
one process each ("async", for at most 64 robots). EnvPool runs MuJoCo in its own threads, by an interpreter that has it
(`--envpool venv/bin/python`) and needs nothing else. Rates are medians of alternating rounds. `--alone` compares the times of
steps of single environments (`gymnasium.make`), which take turns: medians, 99th percentiles and the longest times.

Published frame rates of EnvPool for MuJoCo's Ant-v3, with 5 frames per step (its README, https://pypi.org/project/envpool/):
66,622 frames per second (synchronous) and 105,126 (asynchronous) on a laptop with 12 processors, and 3,134,287 on 256
processors of a DGX-A100. "For-loop" and "subprocess" have 12,861 and 36,586 on the laptop. These are 13,324, 21,025, 626,857,
2,572 and 7,317 steps of the environment per second.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import gymnasium
import numpy as np
from measure import machine, markdown

import featherweight.environments  # noqa: F401  # registers featherweight/...
from featherweight.simulation.simulation_options import FILE, LAWS

MOST_PROCESSES = 64
TURN = 100  # steps of a single environment in a row
COLUMNS = ("featherweight", "Gymnasium, sync", "Gymnasium, async", "EnvPool")
Run = Callable[[float], float]  # least time [s] -> steps per second

ENVPOOL = """
import sys, time, envpool, numpy as np
name, robots = sys.argv[1], int(sys.argv[2])
envs = envpool.make_gymnasium(name, num_envs=robots)
space, rng = envs.action_space, np.random.default_rng(0)
actions = rng.uniform(space.low, space.high, (16, robots, *space.shape))
envs.reset()
k = 0
print("ready", flush=True)
for line in sys.stdin:
    begun, steps = time.perf_counter(), 0
    while steps == 0 or time.perf_counter() - begun < float(line):
        envs.step(actions[(k := k + 1) % 16])
        steps += 1
    print(robots * steps / (time.perf_counter() - begun), flush=True)
"""


def stepping(open_until: ExitStack, envs: Any) -> Run:
    """Return a function that takes steps with random actions."""
    open_until.callback(envs.close)
    rng, space = np.random.default_rng(0), envs.action_space
    actions = rng.uniform(space.low, space.high, (16, *space.shape)).astype(np.float32)
    envs.reset(seed=0)
    envs.step(actions[0])

    def run(seconds: float) -> float:
        begun, steps = time.perf_counter(), 0
        while steps == 0 or time.perf_counter() - begun < seconds:
            envs.step(actions[steps % 16])
            steps += 1
        return float(envs.num_envs * steps / (time.perf_counter() - begun))

    return run


class Alone:
    """One environment with random actions and resets, and the times of its steps [s]."""

    def __init__(self, env: Any) -> None:
        rng, space = np.random.default_rng(0), env.action_space
        self.env, self.times = env, list[float]()
        self.actions = rng.uniform(space.low, space.high, (TURN, *space.shape)).astype(np.float32)
        env.reset(seed=0)

    def take_turn(self) -> None:
        for action in self.actions:
            begun = time.perf_counter()
            _, _, terminated, truncated, _ = self.env.step(action)
            self.times.append(time.perf_counter() - begun)
            if terminated or truncated:
                self.env.reset()


def stepping_envpool(open_until: ExitStack, python: str, name: str, robots: int) -> Run:
    """Return a function that takes steps of EnvPool in a process of that interpreter."""
    command = [python, "-c", ENVPOOL, f"{name}-v5", str(robots)]
    process = open_until.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    assert process.stdin is not None and process.stdout is not None
    to, answers = process.stdin, process.stdout
    while (line := answers.readline()) != "ready\n":
        if not line:
            raise SystemExit(f"{python} cannot run EnvPool's {name}-v5")

    def run(seconds: float) -> float:
        print(seconds, file=to, flush=True)
        return float(answers.readline())

    return run


def contenders(open_until: ExitStack, name: str, robots: int, contact: str, python: str | None) -> dict[str, Run]:
    ours = gymnasium.make_vec(f"featherweight/{name}-v0", num_envs=robots, contact=contact)
    runs = {"featherweight": stepping(open_until, ours)}
    for mode in ("sync", "async") if robots <= MOST_PROCESSES else ("sync",):
        theirs = gymnasium.make_vec(f"{name}-v5", num_envs=robots, vectorization_mode=mode)
        runs[f"Gymnasium, {mode}"] = stepping(open_until, theirs)
    if python is not None:
        runs["EnvPool"] = stepping_envpool(open_until, python, name, robots)
    return runs


def rates(runs: dict[str, Run], seconds: float, rounds: int = 5) -> dict[str, float]:
    """Return the median rates of alternating runs."""
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            samples[name].append(run(seconds))
    return {name: statistics.median(s) for name, s in samples.items()}


def alone(tasks: list[str], seconds: float, contact: str) -> str:
    """Return a table of step times and their ratios."""
    rows = []
    for name in tasks:
        ours = Alone(gymnasium.make(f"featherweight/{name}-v0", contact=contact))
        theirs = Alone(gymnasium.make(f"{name}-v5"))
        for run in (ours, theirs):  # without the first steps, which compile
            run.take_turn()
            run.times.clear()
        while sum(ours.times) + sum(theirs.times) < seconds:
            ours.take_turn()
            theirs.take_turn()
        both = (1e6 * np.quantile(run.times, (0.5, 0.99, 1.0)) for run in (ours, theirs))
        rows.append([name, *(f"{a:.0f} / {b:.0f}, {a / b:.2f}" for a, b in zip(*both, strict=True))])
        for run in (ours, theirs):
            run.env.close()
    return markdown(["one environment, µs per step, ours / Gymnasium's, ratio", "median", "99 %", "longest"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=["Hopper", "Ant"], help="Ant, HalfCheetah, Hopper, Humanoid, Walker2d")
    parser.add_argument("--robots", type=int, nargs="+", default=[1, 64, 1024])
    parser.add_argument("--seconds", type=float, default=1.0, help="time of each round [s]")
    parser.add_argument("--envpool", help="a Python interpreter with EnvPool")
    parser.add_argument("--contact", choices=LAWS, default=FILE, help="contact law of our environments")
    parser.add_argument("--alone", action="store_true", help="compare single environments with Gymnasium's")
    options = parser.parse_args()
    print(machine(), "\n")
    if options.alone:
        print(alone(options.tasks, options.seconds, options.contact))
        return
    rows, columns = [], COLUMNS if options.envpool else COLUMNS[:-1]
    for name in options.tasks:
        for robots in options.robots:
            with ExitStack() as open_until:
                found = rates(contenders(open_until, name, robots, options.contact, options.envpool), options.seconds)
            rows.append([name, f"{robots:,}", *(f"{found[c]:,.0f}" if c in found else "-" for c in columns)])
            print(*rows[-1], flush=True)
    print()
    print(markdown(["environment", "robots", *(f"{c} [steps/s]" for c in columns)], rows))


if __name__ == "__main__":
    main()
