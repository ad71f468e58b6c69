"""Tests of objects that one thread at a time may use."""

from __future__ import annotations

import copy
import pickle
import threading
import time

import pytest

from engine.interrupted import interrupted_everywhere
from engine.used import REFUSED, used_by_another_thread
from featherweight.engine.exclusive import Use, exclusive


class Counter:
    """A counter whose additions are not complete at once."""

    def __init__(self) -> None:
        self._use, self.count = Use("the counter", "make one for each thread"), 0

    @exclusive
    def add(self, number: int, *, times: int = 1) -> int:
        """Add a number."""
        before = self.count
        if times > 1:
            self.add(number, times=times - 1)
            before += number * (times - 1)
        self.count = before + number
        return self.count

    @exclusive
    def fail(self) -> None:
        raise RuntimeError("of its own")


def test_calls_of_one_thread_may_be_nested() -> None:
    counter = Counter()
    assert counter.add(2, times=3) == 6
    assert (counter.add.__name__, counter.add.__doc__) == ("add", "Add a number.")


def test_a_second_thread_is_refused_until_the_first_has_ended() -> None:
    counter = Counter()
    with used_by_another_thread(counter), pytest.raises(RuntimeError, match=f"^the counter {REFUSED}"):
        counter.add(1)
    assert counter.add(1) == 1


def test_errors_end_the_use() -> None:
    counter = Counter()
    with pytest.raises(RuntimeError, match="of its own"):
        counter.fail()
    with used_by_another_thread(counter):
        pass


def test_ctrl_c_ends_the_use_wherever_it_strikes() -> None:
    counter = Counter()
    for _ in interrupted_everywhere(lambda: counter.add(1, times=2)):
        with used_by_another_thread(counter):
            pass


def test_a_copy_has_a_use_of_its_own() -> None:
    counter = Counter()
    with used_by_another_thread(counter):
        for other in (copy.deepcopy(counter), pickle.loads(pickle.dumps(counter))):
            assert other.add(1) == 1


@pytest.mark.usefixtures("hasty")
def test_no_addition_is_lost_among_many_threads() -> None:
    counter, end, done = Counter(), time.monotonic() + 0.2, []

    def work() -> None:
        while time.monotonic() < end:
            try:
                counter.add(1, times=3)
            except RuntimeError:
                continue
            done.append(3)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.count == sum(done) > 0
