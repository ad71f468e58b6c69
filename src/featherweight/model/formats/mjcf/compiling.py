"""MuJoCo's compiler, without its Python warnings: what they tell is checked here, with names."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import FunctionType
from typing import cast

from .mujoco_types import MjModel, MjSpec


def _compiled(spec: MjSpec) -> MjModel:
    return spec.compile()


compiled = cast(
    Callable[[MjSpec], MjModel], FunctionType(_compiled.__code__, {"__name__": None, "__builtins__": builtins}, "compiled")
)
"""Compile a specification. Python drops warnings from code whose module has no name.

`warnings.catch_warnings` is no alternative: it changes the filters of all threads.
"""
