"""Fixture with a device that this machine emulates, for handlers that launch kernels."""

from engine.backends.conftest import device

__all__ = ["device"]
