"""Tests of messages of the logger "featherweight" for users who wait for a compilation."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import featherweight as fw
from featherweight.engine import compilation_messages
from patience import PATIENCE

pytestmark = pytest.mark.usefixtures("nothing_else_compiles")
WAIT = """
from featherweight.engine import compilation_messages

compilation_messages.PATIENCE = {patience}
with compilation_messages.reporting("something"):
    compilation_messages.report_if_long()
"""


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the messages of this process, because the second message about a compilation has other words."""
    monkeypatch.setattr(compilation_messages, "_reported", set())


def records(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(r.levelname, r.getMessage()) for r in caplog.records]


def test_a_compilation_is_reported_with_function_and_robot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Check compilations for one state and for batches; code on the disk causes no message."""
    monkeypatch.setenv("FEATHERWEIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(compilation_messages, "PATIENCE", 0.0)
    monkeypatch.setattr(compilation_messages, "LONG", 0.0)
    caplog.set_level(logging.INFO, "featherweight")
    for reported in (True, False):
        caplog.clear()
        robot = fw.build(fw.generators.chain(3, rng=5))
        q = robot.random_configuration(rng=0, size=3)
        robot.mass_matrix(q[0])
        robot.mass_matrix(q)
        said = records(caplog)
        for states in ("one state", "batches"):
            what = f"mass_matrix of {robot.name!r} for {states}"
            begun = [
                level for level, text in said if text.startswith(f"featherweight: compiling {what}, once for this machine: ")
            ]
            assert begun == ["WARNING"] * reported
            done = [level for level, text in said if f"compiled {what} in " in text]
            assert done == ["INFO"] * reported


def test_one_within_another_is_not_reported(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(compilation_messages, "LONG", 0.0)
    caplog.set_level(logging.INFO, "featherweight")
    with compilation_messages.reporting("all", "an hour"), compilation_messages.reporting("a part", "a minute"):
        pass
    assert records(caplog) == [
        ("WARNING", "featherweight: compiling all, once for this machine: an hour"),
        ("INFO", "featherweight: compiled all in 0.0 s"),
    ]


def test_a_wait_in_several_parts_is_reported_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Check that the message has its own estimate, and that later compilations are reported again."""
    monkeypatch.setattr(compilation_messages, "PATIENCE", 0.0)
    wait = compilation_messages.Wait("all", whole=20.0)
    for _ in range(2):
        with wait:
            wait.begun -= 1.0
            with compilation_messages.reporting("a part"):
                compilation_messages.report_if_long()
    with compilation_messages.reporting("another"):
        compilation_messages.report_if_long()
    texts = [text for _, text in records(caplog)]
    assert [text.partition(", ")[0].rpartition(" ")[2] for text in texts] == ["all", "another"]
    assert texts[0].endswith(": about 20 s")


@pytest.mark.parametrize("before", [True, False])
def test_python_looks_for_cycles_afterwards_as_before(before: bool) -> None:
    def fail() -> None:
        with compilation_messages.reporting("all"), compilation_messages.reporting("a part"):
            assert not gc.isenabled()
            raise MemoryError

    (gc.enable if before else gc.disable)()
    try:
        with pytest.raises(MemoryError):
            fail()
        assert gc.isenabled() == before
    finally:
        gc.enable()


def test_python_looks_for_cycles_again_after_two_threads_have_waited_for_the_same() -> None:
    wait, entered, end = compilation_messages.Wait("all"), threading.Event(), threading.Event()

    def second() -> None:
        with wait:
            entered.set()
            assert end.wait(PATIENCE)

    thread = threading.Thread(target=second)
    with wait:
        thread.start()
        assert entered.wait(PATIENCE)
    end.set()
    thread.join()
    assert gc.isenabled()


def test_short_ones_are_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "featherweight")
    with compilation_messages.reporting("something"):
        compilation_messages.report_if_long()
    compilation_messages.report_if_long()
    assert records(caplog) == []


@pytest.mark.parametrize(("before", "said"), [(0.5, []), (2.0, ["about 5 s"]), (14.0, ["about 40 s"])])
def test_the_time_is_that_of_the_parts_that_are_done(
    before: float, said: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that the time is reported once, however often it is requested."""
    with compilation_messages.Wait("something") as wait:
        wait.begun -= before
        compilation_messages.report_if_long()
        compilation_messages.report_if_long()
    assert [text.rpartition(": ")[2] for _, text in records(caplog)] == said


def test_an_error_is_not_reported_as_done(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(compilation_messages, "LONG", 0.0)
    caplog.set_level(logging.INFO, "featherweight")
    with pytest.raises(MemoryError), compilation_messages.reporting("something"):
        raise MemoryError
    with compilation_messages.reporting("another", "an hour"):
        pass
    assert records(caplog)[0] == ("WARNING", "featherweight: compiling another, once for this machine: an hour")


@pytest.mark.parametrize(("patience", "said"), [(-1.0, "compiling something, once for this machine: about "), (60.0, "")])
def test_a_program_that_has_not_set_up_logging_shows_it(patience: float, said: str) -> None:
    code = WAIT.format(patience=patience)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == ""
    assert run.stderr.startswith("featherweight: " + said) if said else run.stderr == ""


def test_a_wait_within_itself_ends_with_the_outer_one(caplog: pytest.LogCaptureFixture) -> None:
    with compilation_messages.Wait("all") as wait:
        with wait:
            assert not gc.isenabled()
        assert not gc.isenabled()
        wait.begun -= 14.0
        compilation_messages.report_if_long()
    assert gc.isenabled()
    with compilation_messages.Wait("another") as wait:
        wait.begun -= 14.0
        compilation_messages.report_if_long()
    assert [text.partition(", ")[0] for _, text in records(caplog)] == [
        f"featherweight: compiling {x}" for x in ("all", "another")
    ]
