"""Options of readers, and the values that they may have; the first is that of a reader that is given none."""

from __future__ import annotations

FOLLOW, INDEPENDENT, REFUSE, REPORT = "follow", "independent", "refuse", "report"

MIMIC = (FOLLOW, INDEPENDENT, REFUSE)  # what becomes of joints that follow others
UNSUPPORTED = (REFUSE, REPORT)  # and of what is not supported, and may be left out
