"""Compiled code goes to a folder of the test session, so that tests neither find nor leave anything."""

from __future__ import annotations

import os
import tempfile

import pytest

if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["FEATHERWEIGHT_CACHE"] = tempfile.mkdtemp(prefix="featherweight-cache-")

NUMBA = ("simulation", "simulate", "rolled")  # in a test's name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What Numba compiles it compiles once in each process, for minutes: such tests go to one of them."""
    for item in items:
        if any(word in item.nodeid for word in NUMBA):
            item.add_marker(pytest.mark.xdist_group("numba"))
