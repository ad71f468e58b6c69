"""Environment steps a second of Gymnasium's walking robots: these beside Gymnasium's own on MuJoCo, and EnvPool's.

    python benchmarks/peers/environments.py [Hopper Ant] [--robots 1 64 1024] [--envpool PYTHON] [--seconds 1] [--alone]

All take random actions, of the same task with the same steps of time, in double precision; episodes begin anew as each does
it. A step of the environment is 4 or 5 of the simulation (`frame_skip`). Contacts are rigid here and soft in MuJoCo.
Gymnasium's own run one after the other ("sync") or in a process each ("async", for 64 robots at most). EnvPool runs MuJoCo in
threads of its own, by an interpreter that has it (`--envpool venv/bin/python`; it need have nothing else). Rates are medians of
rounds in turns. With `--alone` they are environments by themselves (`gymnasium.make`), by processor time, for
which other programs matter less.

Published for EnvPool, MuJoCo's Ant-v3, in frames, of which a step is 5 (its README, https://pypi.org/project/envpool/):
66,622 a second in step and 105,126 asynchronously on a laptop of 12 processors, 3,134,287 on 256 of a DGX-A100; "for-loop" and
"subprocess" there are 12,861 and 36,586 on the laptop. So 13,324, 21,025, 626,857, 2,572 and 7,317 steps of the environment.
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

MOST_PROCESSES = 64
COLUMNS = ("featherweight", "Gymnasium, sync", "Gymnasium, async", "EnvPool")
Run = Callable[[float], float]  # so many seconds, at least: steps a second

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
    """Steps with random actions."""
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


def stepping_alone(open_until: ExitStack, env: Any) -> Run:
    """Steps of one environment with random actions, and what begins its episodes anew: steps a second of processor time."""
    open_until.callback(env.close)
    rng, space = np.random.default_rng(0), env.action_space
    actions = rng.uniform(space.low, space.high, (64, *space.shape)).astype(np.float32)

    def run(seconds: float) -> float:
        env.reset(seed=0)
        begun, steps = time.process_time(), 0
        while steps == 0 or time.process_time() - begun < seconds:
            _, _, terminated, truncated, _ = env.step(actions[steps % 64])
            if terminated or truncated:
                env.reset()
            steps += 1
        return steps / (time.process_time() - begun)

    run(0.0)
    return run


def stepping_envpool(open_until: ExitStack, python: str, name: str, robots: int) -> Run:
    """The same in a process of that interpreter, while it is asked to."""
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


def contenders(open_until: ExitStack, name: str, robots: int, python: str | None) -> dict[str, Run]:
    runs = {"featherweight": stepping(open_until, gymnasium.make_vec(f"featherweight/{name}-v0", num_envs=robots))}
    for mode in ("sync", "async") if robots <= MOST_PROCESSES else ("sync",):
        theirs = gymnasium.make_vec(f"{name}-v5", num_envs=robots, vectorization_mode=mode)
        runs[f"Gymnasium, {mode}"] = stepping(open_until, theirs)
    if python is not None:
        runs["EnvPool"] = stepping_envpool(open_until, python, name, robots)
    return runs


def rates(runs: dict[str, Run], seconds: float, rounds: int = 5) -> dict[str, float]:
    """Medians, in turns."""
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            samples[name].append(run(seconds))
    return {name: statistics.median(s) for name, s in samples.items()}


def alone(tasks: list[str], seconds: float) -> str:
    """A table of times of a step, and their ratio."""
    rows = []
    for name in tasks:
        with ExitStack() as open_until:
            made = {"ours": f"featherweight/{name}-v0", "theirs": f"{name}-v5"}
            found = rates({who: stepping_alone(open_until, gymnasium.make(id)) for who, id in made.items()}, seconds, rounds=7)
        times = {who: 1e6 / rate for who, rate in found.items()}
        rows.append([name, *(f"{x:.0f}" for x in times.values()), f"{times['ours'] / times['theirs']:.2f}"])
    return markdown(["one environment, µs a step", "featherweight", "Gymnasium", "ratio"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=["Hopper", "Ant"], help="of Ant, HalfCheetah, Hopper, Humanoid, Walker2d")
    parser.add_argument("--robots", type=int, nargs="+", default=[1, 64, 1024])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each round of each")
    parser.add_argument("--envpool", help="an interpreter that has EnvPool")
    parser.add_argument("--alone", action="store_true", help="environments by themselves, beside Gymnasium's own")
    options = parser.parse_args()
    print(machine(), "\n")
    if options.alone:
        print(alone(options.tasks, options.seconds))
        return
    rows, columns = [], COLUMNS if options.envpool else COLUMNS[:-1]
    for name in options.tasks:
        for robots in options.robots:
            with ExitStack() as open_until:
                found = rates(contenders(open_until, name, robots, options.envpool), options.seconds)
            rows.append([name, f"{robots:,}", *(f"{found[c]:,.0f}" if c in found else "-" for c in columns)])
            print(*rows[-1], flush=True)
    print()
    print(markdown(["environment", "robots", *(f"{c} [steps/s]" for c in columns)], rows))


if __name__ == "__main__":
    main()
