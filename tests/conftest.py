"""Options, hooks and fixtures of all tests. Sessions share a folder for compiled code, `build/test-cache` of the checkout."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE
from tiers import Times, left_out

os.environ["FEATHERWEIGHT_CACHE"] = str(Path(__file__).parents[1] / "build" / "test-cache")

SHARED = {  # tests that share compiled code go to one process, which compiles it once
    "contacts with loops kept": ("test_operational_space.py", "test_delassus.py", "test_centipede.py"),
    "loops kept": ("rolled", "keep_their_loops", "in_all_executions", "test_executions"),
    "simulation": ("simulation", "simulate"),
}
LONGEST = (*reversed(SHARED), "tests/properties", "tests/papers", "tests/trial", "tests/test_examples")
"""Groups, and files with few long tests; they begin first, so that all processes end at about the same time."""


def scope(nodeid: str) -> str:
    """Return the group of a test, which runs in one process: tests that share compiled code, by words in their names;
    else a file.
    """
    file = nodeid.partition("::")[0]
    if file == "tests/test_house.py":  # names of packages are parameters
        return file
    return next((group for group, words in SHARED.items() if any(word in nodeid for word in words)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler for `--dist loadgroup`.

    Marks do not work: pytest 9.2 ignores the names that pytest-xdist 3.8 derives from them.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scopes(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        _split_scope = staticmethod(scope)

        def _assign_work_unit(self, node: Any) -> None:
            longest = next((group for name in LONGEST for group in self.workqueue if group.startswith(name)), None)
            if longest:
                self.workqueue.move_to_end(longest, last=False)
            super()._assign_work_unit(node)

    return Scopes(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection during collection of tests, where it took two fifths of the time, and exempt the
    imported objects later.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Restore the usual handler of Ctrl-C, even if the shell that runs the tests ignores this signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a test its own folder for compiled code, so that it compiles."""
    monkeypatch.setenv("FEATHERWEIGHT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def nothing_else_compiles() -> None:
    """Wait for other tests' compilations in the background, while Python's cycle collector is off."""
    from featherweight.engine import compilation_messages
    from featherweight.simulation.fleet_vectors import THREAD  # after the folder of the cache is set

    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(PATIENCE)
    end = time.monotonic() + PATIENCE
    while not gc.isenabled() and compilation_messages._without_collector and time.monotonic() < end:
        time.sleep(0.05)
    assert gc.isenabled(), "an earlier test has left the cycle collector off"


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--installed", action="store_true", help="skip tests that need packages that are not installed")
    parser.addoption("--quick", action="store_true", help="leave out the tests that tests/slow_tests.txt lists")
    parser.addoption("--rest", action="store_true", help="run only what `--quick` leaves out")
    parser.addoption("--measure", metavar="FOLDER", help="store the processor time of each test in a folder (tests/tiers.py)")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.measure:
        config.pluginmanager.register(Times(Path(config.option.measure)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests with the option `--quick`, and all others with `--rest`."""
    if not (config.option.quick or config.option.rest):
        return
    slow = left_out([item.nodeid for item in items])
    out = slow if config.option.quick else {item.nodeid for item in items} - slow
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in out])
    items[:] = [item for item in items if item.nodeid not in out]


def absent(config: pytest.Config, said: str) -> str:
    """Return the missing package that an error message names; empty without the option `--installed`."""
    if config.option.installed and re.search(r"No such file.*/share/example-robot-data/", said):
        return "without example-robot-data"
    if config.option.installed and (extra := re.search(r"pip install \"[^\"]*(\[\w+\])\"", said)):
        return f"without {extra[1]}"
    named = re.search(r"No module named '(\w+)", said)
    if not config.option.installed or named is None or find_spec(named[1]) is not None:
        return ""
    return f"without {named[1]}"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip files that import packages that are not installed."""
    report = yield
    if report.failed and (reason := absent(collector.config, str(report.longrepr))):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {reason}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Skip a test that fails because a package is not installed, also if a message of our own replaces the ImportError."""
    try:
        yield
    except (ImportError, FileNotFoundError) as error:
        for cause in (error, error.__cause__, error.__context__):
            if reason := absent(item.config, str(cause)):
                pytest.skip(reason)
        raise


pytest_runtest_setup = pytest_runtest_call
