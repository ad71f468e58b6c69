"""Sensor readings: an array with the names of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..array_types import Array
from ..names import choose_from
from ..summaries import visible


class SensorReadings(np.ndarray[Any, np.dtype[np.float64]]):
    """Sensor readings (nsensordata,) of one robot, or (robots, nsensordata) of many, in the order of the file.

    `readings["imu_gyro"]` is a view of the readings of one sensor, (dim,) or (robots, dim). Every other index, and arithmetic,
    returns a plain array. Raises KeyError for an unknown sensor name.
    """

    names: Mapping[str, slice]

    def __new__(cls, values: Array, names: Mapping[str, slice]) -> SensorReadings:
        readings = np.ascontiguousarray(values, np.float64).view(cls)
        readings.names = names
        return readings

    def __array_finalize__(self, source: object) -> None:
        self.names = getattr(source, "names", {})

    def __array_wrap__(self, array: Array, context: object = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __reduce__(self) -> tuple[object, ...]:
        return SensorReadings, (np.array(self), dict(self.names))

    def __getitem__(self, which: Any) -> Any:
        plain = self.view(np.ndarray)
        if not isinstance(which, str):
            return plain[which]
        if which not in self.names:
            raise KeyError(f"there is no sensor {choose_from(which, list(self.names)).replace('it has', 'there are')}")
        return plain[..., self.names[which]]

    def keys(self) -> list[str]:
        """Return the names of all sensors, in order."""
        return list(self.names)

    def __repr__(self) -> str:
        shape = "" if self.ndim < 2 else f" of {len(self)} robots"
        parts = ", ".join(f"{name}: {np.array2string(self[name], precision=4)}" for name in self.names) if self.ndim < 2 else ""
        return visible(f"<SensorReadings{shape}: {parts or ', '.join(self.names) or 'none'}>")
