"""A device that is this machine."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from engine.backends.cuda import host_device


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[host_device.HostDevice]:
    """Device 0, which is this machine; of its memory nothing is left when a test is over."""
    place = host_device.install(monkeypatch)
    yield place
    gc.collect(1)
    assert not place.memory
