"""The choice of a device for a call: processors of this machine, or the device of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .backends.cuda.code import Launchable
from .backends.cuda.device_code import OnArrays
from .backends.cuda.driver import Device
from .backends.cuda.driver import device as device_of
from .backends.cuda.libraries import Library, library_of, on_device
from .backends.cuda.transfers import OnHost
from .backends.protocol import Executable
from .program import Program


def executable_on_device(
    program: Program, code: Callable[[], Launchable], args: Sequence[Any], out: object, device: str | None
) -> Executable | None:
    """Return the executable for the arguments' device, or for `device` ("cuda", "cuda:1"); None for this machine.

    Raises TypeError if only some arguments are on a device, or if arguments belong to different libraries; ValueError if
    arguments are on different devices, or not on `device`; ImportError without cuda-core; RuntimeError without a driver or
    without that device.
    """
    results = out if isinstance(out, (tuple, list)) else (out,)  # a list raises an error later, when all results are known
    given = [(x, p.name) for x, p in zip(args, program.inputs, strict=True)] + [(x, "out") for x in results if x is not None]
    place = place_of(program.name, given, device)
    return None if place is None else place.executable(code())


class ComputingPlace(NamedTuple):
    """A device, and the library of the arrays there; None for NumPy, whose arrays are copied to the device."""

    device: Device
    library: Library | None

    def executable(self, code: Launchable) -> OnArrays[Launchable] | OnHost:
        """Return an executable that runs `code` at this place."""
        return OnHost(code, self.device) if self.library is None else OnArrays(code, self.library, self.device)


def place_of(name: str, given: Sequence[tuple[Any, str]], device: str | None) -> ComputingPlace | None:
    """Return the place where the arrays of a call are computed, given each argument's name; see `executable_on_device`."""
    ordinal = _ordinal(device, name)
    there = [(x, argument) for x, argument in given if on_device(x)]
    if not there:
        return None if ordinal is None else ComputingPlace(device_of(ordinal), None)
    if len(there) < len(given):
        here = next(argument for x, argument in given if not on_device(x))
        raise TypeError(f"{name}: {there[0][1]} is on a device and {here} is not; move all arguments to the device, or none")
    arrays = [x for x, _ in there]
    arguments = [f"{name}: {argument}" for _, argument in there]
    library = library_of(arrays, arguments)
    lies = library.ordinal(arrays[0], arguments[0])
    if device is not None and ordinal != lies:
        raise ValueError(f"{name}: {there[0][1]} is on CUDA device {lies}; got device={device!r}")
    return ComputingPlace(device_of(lies), library)


def _ordinal(device: str | None, name: str) -> int | None:
    """Return the number of a device by its name; None for this machine."""
    if device is None or (isinstance(device, str) and device == "cpu"):
        return None
    kind, colon, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise ValueError(f'{name}: device must be "cpu", "cuda" or "cuda:N"; got {device!r}')
    return int(number or 0)
