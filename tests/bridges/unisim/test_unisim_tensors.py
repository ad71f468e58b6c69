"""Tests that tensors and arrays have the same values, rounded to float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
unisim = pytest.importorskip("unisim")
mujoco = pytest.importorskip("mujoco")

from bridges.unisim.test_unisim_backend import CRAWLER, crawlers, random_states  # noqa: E402

TO_SINGLE = 1e-6  # for numbers below ten


def single(x: Any) -> Any:
    return torch.tensor(x, dtype=torch.float32)


def test_steps_and_states_are_those_of_arrays(tmp_path: Path) -> None:
    backend, other = crawlers(tmp_path), crawlers(tmp_path)
    model = mujoco.MjModel.from_xml_string(CRAWLER)
    qpos, qvel = (single(x) for x in random_states(model, 2))
    qpos[:, 3:7] /= qpos[:, 3:7].norm(dim=1, keepdim=True)
    ctrl = single([[0.5, 0.1], [-0.5, 0.0], [0.0, -0.1]])
    backend.set_state_tensor(torch.tensor([2, 0]), qpos, qvel)
    backend.step_tensor(ctrl, 4)
    other._host_set_state(np.array([2, 0]), qpos.numpy(), qvel.numpy())
    other._host_step(ctrl.numpy(), 4)
    views, state = backend.get_state_views(("qpos", "qvel", "ctrl")), other._host_get_state(("qpos", "qvel", "ctrl"))
    for name, view in views.items():
        assert view.dtype is torch.float32 and view.device.type == "cpu"
        np.testing.assert_array_equal(view.numpy(), state[name].astype(np.float32))
    view = backend.get_state_views("qpos")["qpos"]
    view.zero_()
    assert backend.get_state_views()["qpos"].abs().sum() > 1.0  # views are copies


def test_a_mask_is_its_rows(tmp_path: Path) -> None:
    backend, other = crawlers(tmp_path), crawlers(tmp_path)
    qpos, qvel = (single(x) for x in random_states(mujoco.MjModel.from_xml_string(CRAWLER), 3))
    backend.set_state_tensor_mask(torch.tensor([True, False, True]), qpos, qvel)
    other.set_state_tensor(torch.tensor([0, 2]), qpos[[0, 2]], qvel[[0, 2]])
    np.testing.assert_array_equal(backend.get_physics_state(), other.get_physics_state())
    before = backend.get_physics_state()
    backend.set_state_tensor_mask(torch.zeros(3, dtype=torch.bool), qpos, qvel)
    np.testing.assert_array_equal(backend.get_physics_state(), before)


def test_bodies_and_sensors_are_mujocos(tmp_path: Path) -> None:
    backend, model = crawlers(tmp_path), mujoco.MjModel.from_xml_string(CRAWLER)
    qpos, qvel = random_states(model, 3)
    bodies = ("toe", "post", "trunk", "head")
    backend._host_set_state(np.arange(3), qpos, qvel)
    views = backend.get_tracked_body_views(bodies)
    assert views.body_names == bodies
    bound = backend.bind_sensor_data(("toe_at", "gyro"))
    velocity = np.empty(6)
    for i in range(3):
        data = mujoco.MjData(model)
        data.qpos, data.qvel = qpos[i], qvel[i]
        mujoco.mj_forward(model, data)
        for k, name in enumerate(bodies):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, model.body(name).id, velocity, 0)
            quaternion = data.body(name).xquat * np.sign(data.body(name).xquat[0])
            there = data.body(name).xpos, quaternion, velocity[3:], velocity[:3]
            for view, expected in zip((views.pos_w, views.quat_w, views.lin_vel_w, views.ang_vel_w), there, strict=True):
                np.testing.assert_allclose(view[i, k], expected, rtol=0, atol=TO_SINGLE)
        np.testing.assert_allclose(backend.get_sensor_view("gyro")[i], data.sensor("gyro").data, rtol=0, atol=TO_SINGLE)
        readings = [*data.sensor("toe_at").data, *data.sensor("gyro").data]
        np.testing.assert_allclose(bound.read()[i], readings, rtol=0, atol=1e-9)
    backend._host_step(np.zeros((3, 2)), 10)
    assert np.abs(bound.read()[0] - backend.bind_sensor_data(("toe_at", "gyro")).read()[0]).max() == 0.0  # of the present state
    assert np.abs(bound.read()[:, :3] - views.pos_w[:, 0].numpy()).max() > 1e-3
    assert [(x.name, x.width) for x in backend.get_sensor_inventory()] == [("gyro", 3), ("toe_at", 3)]


def test_tensors_of_another_kind_are_refused(tmp_path: Path) -> None:
    backend = crawlers(tmp_path)
    qpos, qvel = (single(x) for x in random_states(mujoco.MjModel.from_xml_string(CRAWLER), 3))
    rows, wrong = torch.arange(3), qpos.clone()
    wrong[0, 0] = torch.nan
    for error, name, call in (
        (TypeError, "ctrl", lambda: backend.step_tensor(np.zeros((3, 2)))),
        (TypeError, "ctrl", lambda: backend.step_tensor(torch.zeros(3, 2, dtype=torch.float64))),
        (TypeError, "ctrl", lambda: backend.step_tensor(torch.zeros(2, 3).T)),
        (ValueError, "ctrl", lambda: backend.step_tensor(torch.zeros(3, 3))),
        (TypeError, "env_indices", lambda: backend.set_state_tensor(rows.int(), qpos, qvel)),
        (ValueError, "qpos", lambda: backend.set_state_tensor(rows, qpos[:2], qvel)),
        (ValueError, "qpos", lambda: backend.set_state_tensor(rows, wrong, qvel)),
        (TypeError, "reset_mask", lambda: backend.set_state_tensor_mask(rows, qpos, qvel)),
        (NotImplementedError, "full_refresh", lambda: backend.set_state_tensor_mask(rows == 0, qpos, qvel, full_refresh=True)),
        (ValueError, "tow", lambda: backend.get_tracked_body_views(["tow"])),
    ):
        with pytest.raises(error, match=name):
            call()
    np.testing.assert_array_equal(backend.get_physics_state(), crawlers(tmp_path).get_physics_state())
