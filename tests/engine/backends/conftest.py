"""Fixture with a device that this machine emulates."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from engine.backends.cuda import host_device


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[host_device.HostDevice]:
    """Return device 0, emulated by this machine; at the end of a test all of its memory must be free."""
    place = host_device.install(monkeypatch)
    yield place
    gc.collect(1)
    assert not place.memory
