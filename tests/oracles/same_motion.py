"""Comparison of a robot with a part of it, or with itself if some joints are held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import featherweight as fw
from oracles.states import Array, assert_close


def interpreted(description: fw.Description, base: str = "fixed") -> fw.Robot:
    """Return a robot that needs no compiler, for tests with few states of many robots."""
    return fw.build(description, base, execution="interpreted")


def assert_same_motion(
    part: fw.Robot,
    whole: fw.Robot,
    held: Mapping[str, Any] | None = None,
    called: Mapping[str, str] | None = None,
    states: int = 2,
) -> None:
    """Compare the mass matrix, joint forces and frames of `part` with those of `whole`, whose further joints are held at
    positions.

    `called` gives the names in `whole` of joints and frames of `part`, if they differ.
    """
    called = called or {}
    rng = np.random.default_rng(0)
    q = np.atleast_2d(part.random_configuration(rng=rng, size=states))
    v, a = rng.standard_normal((2, states, part.nv))
    joints = {j.name: j for j in whole.joints}
    rows = np.zeros(part.nv, dtype=int)
    for j in part.joints:
        rows[j.v_slice] = np.r_[joints[called.get(j.name, j.name)].v_slice]
    whole_q = np.zeros((states, whole.nq))
    for name, position in (held or {}).items():
        whole_q[:, joints[name].q_slice] = position if joints[name].q_slice.stop > joints[name].q_slice.start else ()
    for j in part.joints:
        whole_q[:, joints[called.get(j.name, j.name)].q_slice] = q[:, j.q_slice]

    def spread(x: Array) -> Array:
        result = np.zeros((states, whole.nv))
        result[:, rows] = x
        return result

    M = whole.mass_matrix(whole_q)[:, rows[:, None], rows]
    assert_close(part.mass_matrix(q), M)
    tau = whole.inverse_dynamics(whole_q, spread(v), spread(a))[:, rows]
    assert_close(part.inverse_dynamics(q, v, a), tau)
    there = {f.name for f in whole.frames}
    frames = [f.name for f in part.frames if called.get(f.name, f.name) in there]
    assert frames
    assert_close(part.frame_placement(frames)(q), whole.frame_placement([called.get(f, f) for f in frames])(whole_q))
