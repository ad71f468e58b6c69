"""Configurations of MJCF files: keyframes, and MuJoCo's initial configuration, qpos0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from .....array_types import Array
from ....types import START, Actuator, Configuration, JointType
from ...xml import Names
from ..mujoco_types import MjModel
from ..numbers import first_controls


def read_configurations(
    model: MjModel, joints: Mapping[int, tuple[str, JointType]], actuators: Mapping[int, Actuator]
) -> Iterator[Configuration]:
    """Yield the configuration "qpos0", then the keyframes; one without a name is named by its number, such as "key0".

    `joints` are the names and types of MuJoCo's joints by number, `actuators` those that are read.
    """
    given = [model.key(k).name for k in range(model.nkey)]
    names, first = Names(given), first_controls(model)
    yield Configuration(names.new(START), _coordinates(model, model.qpos0, joints))
    for k, name in enumerate(given):
        control = [
            (name, float(model.key_ctrl[k, first[a] + i])) for a, x in actuators.items() for i, name in enumerate(x.controls)
        ]
        given_controls = tuple(control) if any(u for _, u in control) else ()
        yield Configuration(name or names.new(f"key{k}"), _coordinates(model, model.key_qpos[k], joints), given_controls)


def _coordinates(
    model: MjModel, qpos: Array, joints: Mapping[int, tuple[str, JointType]]
) -> tuple[tuple[str, tuple[float, ...]], ...]:
    found = []
    for j, (name, kind) in joints.items():
        values = qpos[model.jnt_qposadr[j] :][: kind.nq].tolist()
        if kind.nq > 1:  # a quaternion (w, x, y, z) comes last
            w, x, y, z = values[-4:]
            values[-4:] = [x, y, z, w]
        found.append((name, tuple(values)))
    return tuple(found)


def unused_of_keyframes(model: MjModel, actuators: Mapping[int, Actuator]) -> Iterator[tuple[str, str]]:
    """Yield, in words, the unused contents of keyframes."""
    read = {int(first_controls(model)[a]) + i for a, x in actuators.items() for i in range(len(x.controls))}
    others = [u for u in range(model.nu) if u not in read]
    kinds = [
        ("velocities of keyframes", model.key_qvel),
        ("controls of keyframes", model.key_ctrl[:, others]),
        ("activations of keyframes", model.key_act),
    ]
    for kind, values in kinds:
        if count := np.count_nonzero(np.any(values, axis=1)):
            yield kind, f"{count}"
    if model.nkey and model.nmocap:
        yield "mocap poses of keyframes", f"{model.nkey}"
