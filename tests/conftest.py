"""Compiled code goes to a folder of the test session, so that tests neither find nor leave anything."""

from __future__ import annotations

import os
import tempfile

if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["FEATHERWEIGHT_CACHE"] = tempfile.mkdtemp(prefix="featherweight-cache-")
