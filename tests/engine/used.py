"""Objects that another thread uses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from featherweight.engine.exclusive import Used
from patience import PATIENCE

REFUSED = "is in use by another thread; make .*, or hold a lock of your own"


@contextmanager
def used_by_another_thread(*objects: Used) -> Iterator[None]:
    """Let another thread be in a call of objects."""
    begun, end = threading.Event(), threading.Event()

    def use() -> None:
        for x in objects:
            assert x._use.enter()
        begun.set()
        end.wait(PATIENCE)
        for x in objects:
            assert x._use.leave()

    thread = threading.Thread(target=use)
    thread.start()
    assert begun.wait(PATIENCE)
    try:
        yield
    finally:
        end.set()
        thread.join()
