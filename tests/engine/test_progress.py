"""Tests of the progress reports of long work."""

from __future__ import annotations

import logging
import sys
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from engine.interrupted import interrupted_everywhere
from featherweight.engine import compilation_messages, progress
from featherweight.engine.progress import Progress
from featherweight.engine.threads import share_out


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.lines.append(text)

    def flush(self) -> None: ...


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "clock", clock)
    caplog.set_level(logging.INFO, "featherweight")
    return clock


def test_records_follow_after_a_second_and_then_every_ten(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    with Progress("work", 100) as work:
        for _ in range(100):
            clock.now += 0.3
            work.advance()
    said = [r.getMessage() for r in caplog.records]
    assert said == [
        "featherweight: work: 4 %, about 29 s left",
        "featherweight: work: 38 %, about 19 s left",
        "featherweight: work: 72 %, about 8.4 s left",
    ]
    assert {r.levelname for r in caplog.records} == {"INFO"}
    caplog.clear()
    with Progress("quick work", 3) as work:
        for _ in work.counting(range(3)):
            clock.now += 0.3
    assert not caplog.records


def test_work_inside_of_other_work_is_silent(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    with Progress("outer", 2) as outer:
        with Progress("inner", 9) as inner:
            for _ in inner.counting(range(9)):
                clock.now += 2.0
        outer.advance()
    with Progress("later", 2) as later:
        for _ in later.counting(range(2)):
            clock.now += 2.0
    assert [r.getMessage().split(":")[1] for r in caplog.records] == [" outer", " later"]


def test_work_whose_end_was_interrupted_is_over(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Check work that is interrupted anywhere before it reports; a kept error, such as `sys.last_exc`, keeps it."""
    kept = []

    def work() -> None:
        with Progress("work", 9) as part:
            kept.append(part)
            part.advance()

    for point in interrupted_everywhere(work):
        caplog.clear()
        with Progress("later", 1) as later:
            clock.now += 2.0
            later.advance()
        assert [r.getMessage().split(":")[1] for r in caplog.records] == [" later"], point
    assert len(kept) > 1


def test_a_terminal_shows_a_bar_that_is_gone_at_the_end(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "100")
    with Progress("work", 4) as work:
        for _ in range(3):
            clock.now += 0.6
            work.advance()
    assert terminal.lines[0].startswith("\rwork [" + "#" * 15 + "." * 15 + "] 50 %, about 1.2 s left")
    assert [len(line) for line in terminal.lines[:2]] == [100, 100]  # including the carriage return
    assert terminal.lines[2:] == ["\r" + " " * 99 + "\r"]
    monkeypatch.setattr(logging.getLogger("featherweight"), "disabled", True)
    terminal.lines.clear()
    with Progress("more work", 3) as work:
        for _ in work.counting(range(3)):
            clock.now += 2.0
    assert terminal.lines == []


def test_threads_count_the_pieces_that_they_share(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    def run(start: int, stop: int) -> None:
        clock.now += 0.5 * (stop - start)

    share_out(run, 8, 2, what="pieces")
    assert caplog.records and all(r.getMessage().startswith("featherweight: pieces: ") for r in caplog.records)


def test_long_work_of_the_library_says_what_it_is(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(progress, "FIRST", 0.0)
    caplog.set_level(logging.INFO, "featherweight")
    robot = fw.build(fw.generators.chain(3))
    q: Any = robot.random_configuration(rng=0, size=300_000)
    robot.bias_force(q, np.zeros(3), threads=2)
    ik = fw.InverseKinematics(robot, fw.PostureTask(tolerance=1e-6))
    ik.solve(q[:50])
    ik.solve(q[0] + 10.0, restarts=2)
    said = {r.getMessage().split(":")[1].strip() for r in caplog.records if "%" in r.getMessage()}
    assert said == {
        f"bias_force of {robot.name!r}, 300000 states",
        f"inverse kinematics of {robot.name!r}, 50 problems",
        f"attempts at inverse kinematics of {robot.name!r}",
    }


def test_a_compilation_is_once_for_this_machine_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(compilation_messages, "_reported", set())
    for _ in range(2):
        compilation_messages.report_begin("f of 'arm'", "about 3 s")
    assert [r.getMessage() for r in caplog.records] == [
        "featherweight: compiling f of 'arm', once for this machine: about 3 s",
        "featherweight: compiling f of 'arm' again: about 3 s",
    ]
