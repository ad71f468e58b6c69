"""Two tiers of tests: `make check` runs all of them, `make test` leaves out what `slow_tests.txt` lists.

Each line of the list has the number of parameter sets of a test that `make test` runs, often none, and the test's name. The
list follows from processor times, which a run with `--measure FOLDER` stores:

    .venv/bin/pytest -n 2 --dist loadgroup --measure=build/times
    .venv/bin/python tests/tiers.py build/times
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow_tests.txt")
TOTAL = 270.0  # [s] processor time of the tests of `make test` in a run of all tests, where others compile much of their code
LONGEST = 4.0  # [s] a file whose shortest test takes longer has no test in `make test`
GOLDEN = 0.6180339887498949
FIXED = {
    "tests/docs/test_pages.py::test_the_code_of_a_page_runs": 1,  # README
    "tests/optimal_control/test_optimal_control.py::test_a_small_problem_with_bounds_is_as_scipy_has_it": 1,
    "tests/test_house.py::test_a_package_imports_what_is_below_it_only": 100,
    "tests/test_house.py::test_no_imports_in_a_circle": 1,
    "tests/docs/test_names_in_pages.py::test_names_that_do_not_exist_are_found": 0,
    "tests/model/test_trace_hashes.py::test_a_robot_gives_the_same_traces_counts_and_algorithms_for_any_processor": 0,
    "tests/simulation/test_bent_springs.py::test_what_is_not_there_says_so": 0,
    "tests/simulation/test_derivatives_by_file.py::test_a_control_at_its_limit_is_doubtful_and_counts_within": 0,
    "tests/simulation/test_first_simulation.py::test_all_robots_and_scenes_share_the_code_of_a_step": 0,
    "tests/simulation/test_gravity_compensation.py::test_steps_as_machine_code_have_the_bits_of_plain_python": 0,
}
"""Numbers of parameter sets that measurements do not decide.

`make test` runs some tests at any cost: promises that no shorter test proves. It leaves out others that are long only there:
they make a fixture, or compile a time step, that an earlier test makes in a run of all tests.
"""
OWN_STEPS = ("test_centipede", "test_checked_steps", "test_device_rollout", "test_fleet_vectors", "test_plain_python")
"""Files of `tests/simulation` that `make test` leaves out: they compile other time steps than all other files."""


def function_of(name: str) -> str:
    """Return the name of a test without its parameters."""
    return name.partition("[")[0]


def listed() -> dict[str, int]:
    """Return the numbers of parameter sets that `make test` runs, of the tests in the list."""
    lines = LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else []
    return {name: int(count) for count, name in (line.split(maxsplit=1) for line in lines)}


def chosen(sets: int, count: int) -> set[int]:
    """Return `count` of a number of parameter sets, spread so that all factors of a product of parameters vary."""
    found: set[int] = set()
    k = 0
    while len(found) < min(count, sets):
        found.add(int(sets * (k * GOLDEN % 1.0)))
        k += 1
    return found


def left_out(names: Sequence[str]) -> set[str]:
    """Return the tests that `make test` leaves out."""
    counts, groups = listed(), defaultdict[str, list[str]](list)
    for name in names:
        groups[function_of(name)].append(name)
    out = set()
    for function, sets in groups.items():
        keep = chosen(len(sets), counts.get(function, len(sets)))
        out |= {name for k, name in enumerate(sets) if k not in keep}
    return out


# times


def processor_time() -> float:
    """Return the processor time [s] of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(x.ru_utime + x.ru_stime for x in used)


class Times:
    """A plugin that stores the processor time of each test in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}.jsonl"
        self.file.write_text("", encoding="utf-8")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        begun = processor_time()
        result = yield
        with self.file.open("a", encoding="utf-8") as file:  # tests may close open files
            file.write(json.dumps([item.nodeid, processor_time() - begun]) + "\n")
        return result


def counts_within(times: Mapping[str, Sequence[float]], budget: float) -> dict[str, int]:
    """Return how many parameter sets of each test fit into a budget [s] of processor time for each test.

    Each file keeps its shortest test.
    """
    counts = {name: len(each) if sum(each) <= budget else int(budget * len(each) / sum(each)) for name, each in times.items()}
    for file, functions in by_file(times).items():
        if Path(file).stem in OWN_STEPS:
            counts |= dict.fromkeys(functions, 0)
        elif not any(counts[name] for name in functions):
            shortest = min(functions, key=lambda name: sum(times[name]) / len(times[name]))
            counts[shortest] = int(sum(times[shortest]) / len(times[shortest]) <= LONGEST)
    return counts | {name: min(count, len(times[name])) for name, count in FIXED.items() if name in times}


def by_file(names: Iterable[str]) -> dict[str, list[str]]:
    files = defaultdict[str, list[str]](list)
    for name in names:
        files[name.partition("::")[0]].append(name)
    return files


def cost(times: Mapping[str, Sequence[float]], counts: Mapping[str, int]) -> float:
    return sum(counts[name] * sum(each) / len(each) for name, each in times.items())


def main() -> None:
    times = defaultdict[str, list[float]](list)
    for file in Path(sys.argv[1]).glob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            name, seconds = json.loads(line)
            times[function_of(name)].append(seconds)
    low, high = 0.0, TOTAL
    for _ in range(40):
        budget = 0.5 * (low + high)
        low, high = (low, budget) if cost(times, counts_within(times, budget)) > TOTAL else (budget, high)
    counts = counts_within(times, low)
    lines = (f"{counts[name]} {name}" for name in sorted(times) if counts[name] < len(times[name]))
    LIST.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    whole = {name: len(each) for name, each in times.items()}
    print(f"{sum(counts.values())} of {sum(whole.values())} tests, {cost(times, counts):.0f} of {cost(times, whole):.0f} s")


if __name__ == "__main__":
    main()
