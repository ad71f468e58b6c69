"""A stand-in for the driver, and a device that is this machine."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from engine.backends.cuda import host_device
from engine.backends.cuda.driver_double import DriverDouble
from featherweight.engine.backends.cuda import driver, driver_calls


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[DriverDouble]:
    """The stand-in, which is what is found of cuda-bindings meanwhile."""
    stand_in: Any = DriverDouble()
    with monkeypatch.context() as patch:
        patch.setattr(driver_calls, "import_module", lambda name: stand_in)
        _forget()
        yield stand_in
        gc.collect(1)  # what errors have kept is released of the stand-in
    _forget()


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[host_device.HostDevice]:
    """Device 0, which is this machine; of its memory nothing is left when a test is over."""
    place = host_device.install(monkeypatch)
    yield place
    gc.collect(1)
    place.reclaim()
    assert not place.memory


def _forget() -> None:
    driver.device.cache_clear()
    driver_calls.bindings.cache_clear()
