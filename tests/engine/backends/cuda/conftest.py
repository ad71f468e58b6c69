"""Device 0 is this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.backends.cuda import host_device


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[host_device.HostDevice]:
    """Device 0, of whose memory nothing is left when a test is over."""
    place = host_device.install(monkeypatch)
    yield place
    place.reclaim()
    assert not place.memory
