"""Results of a run, and facts about the machine."""

from __future__ import annotations

import json
import os
import platform
import time
from typing import NamedTuple

from figures import Figure, Start
from gpu_arrays import Library
from roofline import Device
from sass import Instructions

from featherweight.version import __version__


class Results(NamedTuple):
    """Figures of a run, with its device, counts of machine code, and skipped parts."""

    facts: dict[str, str]
    device: Device | None  # None in a trial without a device
    figures: list[Figure]
    starts: list[Start]
    code: dict[str, Instructions]  # by "robot, function, precision, part"
    skipped: list[str]  # sentences

    def as_json(self) -> str:
        kept = self._asdict()
        kept["device"] = self.device and self.device._asdict()
        kept["figures"] = [f._asdict() for f in self.figures]
        kept["starts"] = [s._asdict() for s in self.starts]
        kept["code"] = {k: v._asdict() for k, v in self.code.items()}
        return json.dumps(kept, indent=1)


def facts(lib: Library, device: Device | None) -> dict[str, str]:
    """Return facts about the machine and the versions of the libraries."""
    return {
        "what": "a trial on the processor, not on a device" if device is None else f"measured on {device.name}",
        "featherweight": __version__,
        "arrays": lib.name,
        "processors": f"{os.cpu_count()} of {platform.processor() or platform.machine()}",
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }
