"""A cart with a pole and functions of its task, in a module that other processes can import."""

from __future__ import annotations

from typing import Any

import numpy as np

import featherweight as fw

WHEEL = fw.Inertia(1.0, (0.0, 0.0, -0.3), (0.02, 0.0, 0.0, 0.02, 0.0, 0.02))


def cart_pole(effort: float = 20.0) -> fw.Description:
    cart = fw.Joint("slide", fw.JointType.PRISMATIC, None, "cart", axis=(1.0, 0.0, 0.0), effort=effort)
    pole = fw.Joint("hinge", fw.JointType.CONTINUOUS, "cart", "pole", axis=(0.0, 1.0, 0.0), effort=0.5)
    return fw.describe([fw.Body("cart", WHEEL), fw.Body("pole", WHEEL)], [cart, pole], name="cart_pole")


def upright(before: Any, after: Any, action: Any) -> Any:
    return -np.cos(after.q[:, 1]) - 0.01 * np.square(action).sum(axis=-1)


def too_far(now: Any) -> Any:
    return abs(now.q[:, 0]) > 0.011
