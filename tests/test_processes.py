"""Tests of the groups of tests that `make test` runs in one process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

ROLLED = [f"tests/{room}/test_a.py::test_x[rolled-{k}]" for room in ("engine", "robot") for k in range(3)]
SIMULATION = [f"tests/simulation/test_{name}.py::test_{k}" for name in "bc" for k in range(3)]
FILES = [[f"tests/model/test_{name}.py::test_{k}" for k in range(6)] for name in "de"]


class Worker:
    """A stand-in for a worker that receives tests and runs none."""

    shutting_down = False

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.given: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices


def test_what_compiles_for_minutes_begins_first_each_in_one_process(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = pytest.importorskip("xdist.remote")
    for option, value in (("dist", "loadgroup"), ("tx", ["2*popen"])):
        monkeypatch.setattr(pytestconfig.option, option, value)
    log = remote.Producer("scheduler", enabled=False)
    scheduler: Any = pytestconfig.hook.pytest_xdist_make_scheduler(config=pytestconfig, log=log)
    workers = [Worker("first"), Worker("second")]
    tests = [test for turn in zip(FILES[0], ROLLED, SIMULATION, FILES[1], strict=True) for test in turn]
    for worker in workers:
        scheduler.add_node(worker)
    for worker in workers:
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    first, second = ([tests[i] for i in worker.given] for worker in workers)
    assert sorted(first) == sorted(SIMULATION)
    assert sorted(second) == sorted(ROLLED)
    for index in list(workers[1].given):
        scheduler.mark_test_complete(workers[1], index)
    assert [tests[i] for i in workers[1].given[len(ROLLED) :]] == FILES[0]  # a file is not split
