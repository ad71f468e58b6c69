"""The device that is this machine, for handlers that launch kernels."""

from engine.backends.conftest import device

__all__ = ["device"]
