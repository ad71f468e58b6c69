"""All that a run has found, and where it was found."""

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
    """Figures and what belongs to them."""

    facts: dict[str, str]
    device: Device | None  # none in a trial without one
    figures: list[Figure]
    starts: list[Start]
    code: dict[str, Instructions]  # by robot, function, precision and part, with commas between them
    skipped: list[str]  # sentences

    def as_json(self) -> str:
        kept = self._asdict()
        kept["device"] = self.device and self.device._asdict()
        kept["figures"] = [f._asdict() for f in self.figures]
        kept["starts"] = [s._asdict() for s in self.starts]
        kept["code"] = {k: v._asdict() for k, v in self.code.items()}
        return json.dumps(kept, indent=1)


def facts(lib: Library, device: Device | None) -> dict[str, str]:
    """Where and by what this is measured."""
    return {
        "what": "a trial on the processor: no figures of a device" if device is None else f"measured on {device.name}",
        "featherweight": __version__,
        "arrays": lib.name,
        "processors": f"{os.cpu_count()} of {platform.processor() or platform.machine()}",
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }
