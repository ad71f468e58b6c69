"""UniSim's contract for simulation backends, implemented by `featherweight.Simulation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import unisim
from unisim.backend.base import (
    DomainRandomizationCapabilities,
    PhysicsStateLayout,
    PlayCapabilities,
    PublicStateWidths,
    RootStateLayout,
    SelectedResetPublication,
    TensorDataPlane,
    TensorExecution,
    TensorLifecycleCapabilities,
    TrackedBodyStateViews,
)
from unisim.scene import SceneCfg

from ..array_types import Array, Matrix, Vector
from ..model.compliant_equalities import OF_FILE
from ..model.model import MovingJoint
from ..model.types import JointType, controls_of
from ..robot.build import load
from ..robot.mujoco_order import MujocoOrder, RobotState
from ..robot.robot import Robot
from ..simulation import Simulation
from ..spatial.lie import quaternion_of_matrix

STATE = ("qpos", "qvel", "ctrl")
COMPOSED = ("fragment_files", "terrain", "fixed_variant_plan", "entity_assets", "entity_variant")  # fields of SceneCfg
TENSORS = TensorLifecycleCapabilities(
    execution=TensorExecution.HOST_BRIDGE,
    state_views=True,
    state_fields=frozenset(STATE),
    sensor_views=True,
    stepping=True,
    selected_reset=True,
    host_pre_step_control=True,
    data_plane=TensorDataPlane.HOST_BRIDGE,
    stream_event_ownership="copies to and from the processor, which are complete on return",
    torch_devices=("cpu", "cuda"),
    selected_reset_publication=SelectedResetPublication.AUTHORITATIVE_VIEWS,
    tracked_body_views=True,
    mask_selected_reset=True,
)


class FeatherweightBackend(unisim.SimBackend):  # type: ignore[misc]  # mypy does not read its types
    """UniSim's environments with one robot each; one `Simulation` moves all robots.

    `scene` is a SceneCfg whose `model_file` `featherweight.load` reads, or a `Robot`. Other arguments are those of
    `Simulation`: `contact`, `actuators` (`PD(...)` for files without actuators), `ground`, `integrator`, `threads`,
    `on_failure`. Environments start at qpos0, at rest. Controls are those of the actuators; they stay the same during the steps
    of a call.

    Physics runs on the processor; tensors are copied, and states are float32. The number of a body is its place in
    `robot.frames`, starting at 1; in MJCF files these are MuJoCo's numbers. Randomization, forces on bodies, packed transfers
    and rendering are not implemented: they raise NotImplementedError, as UniSim requires, and `get_capabilities()` lists them.

    Raises NotImplementedError for scenes that UniSim composes of several sources, and the errors of `featherweight.load` and
    `Simulation`.
    """

    backend_type = "featherweight"

    def __init__(self, scene: SceneCfg | Robot, num_envs: int = 1, sim_dt: float = 0.01, **simulation: Any) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs must be a positive integer; got {num_envs!r}")
        self._files = (None, None) if isinstance(scene, Robot) else (scene.model_file, scene.visual_model_file)
        self.robot = scene if isinstance(scene, Robot) else _robot_of(scene)
        self.order = MujocoOrder(self.robot)
        start = self.robot.start(within_limits=False)
        self.simulation = Simulation(self.robot, sim_dt, q=np.tile(start, (num_envs, 1)), **simulation)
        if simulation.get("actuators") is None:
            _ = self.order.nu  # raises ValueError if MuJoCo's ctrl has other numbers
        self._default_qpos = self.order.state(start, np.zeros(self.robot.nv)).qpos
        self._joints: tuple[MovingJoint, ...] = tuple(self.robot.model.joints)
        if several := [a.name for a in self.simulation.forces.actuators if len(a.controls) != 1]:
            raise NotImplementedError(f"{self.robot.name}: actuator {several[0]!r} must have one control, as UniSim requires")
        self._ctrl = np.zeros((num_envs, self.num_actuators))
        self._start_times = np.zeros(num_envs)  # [s] of the simulation's time
        self._readings, self._read_at = self.simulation.sensors(), self.simulation.revision

    # the model

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return len(self._start_times)

    @property
    def model(self) -> Robot:
        """The robot."""
        return self.robot

    @property
    def num_actuators(self) -> int:
        """Length of a control."""
        return int(self.simulation.forces.nu)

    @property
    def num_dof_vel(self) -> int:
        """Number of velocities without those of a free joint that is first."""
        return int(self.order.nv - self._root[1])

    @cached_property
    def _root(self) -> tuple[int, int]:
        """Numbers of coordinates and velocities of a free joint that is first."""
        free = bool(self._joints) and self._joints[0].type is JointType.FLOATING
        return (7, 6) if free else (0, 0)

    def get_scene_model_file(self) -> str | None:
        """Return the robot file of the scene."""
        return self._files[0]

    def get_scene_visual_model_file(self) -> str | None:
        """Return the file for rendering of the scene."""
        return self._files[1]

    def get_actuator_ctrl_range(self) -> Matrix:
        """Return lower and upper limits of controls (num_actuators, 2)."""
        return np.array([*controls_of(self.simulation.forces.actuators).values()]).reshape(-1, 2)

    def get_actuator_names(self) -> tuple[str, ...]:
        """Return the names of actuators, in the order of controls."""
        return tuple(a.name for a in self.simulation.forces.actuators)

    def get_actuator_joint_names(self) -> tuple[str, ...]:
        """Return the joints of one degree of freedom that actuators drive.

        Raises NotImplementedError if an actuator drives another part.
        """
        single = {j.name for j in self._joints if j.type.nv == 1}
        names = tuple(a.joint for a in self.simulation.forces.actuators)
        if other := [a.name for a in self.simulation.forces.actuators if a.joint not in single]:
            raise NotImplementedError(f"{self.robot.name}: actuator {other[0]!r} drives no joint of one degree of freedom")
        return tuple(str(name) for name in names)

    def get_actuator_gains(self) -> tuple[Vector, Vector]:
        """Return stiffness and damping (num_actuators,) of position servos."""
        pairs = [
            (a.servo.stiffness, a.servo.damping) if a.servo else (a.gain, 0.0 - a.bias[2])
            for a in self.simulation.forces.actuators
        ]
        gains = np.array(pairs).reshape(-1, 2)
        return gains[:, 0].copy(), gains[:, 1].copy()

    def get_joint_range(self, *, names: Sequence[str] | None = None) -> Matrix:
        """Return limits (n, 2) [rad or m] of all joints except free joints, or of joints by name; infinite without limits."""
        named = self._named(names) if names is not None else [j for j in self._joints if j.type is not JointType.FLOATING]
        return np.array([(j.lower, j.upper) for j in named]).reshape(-1, 2)

    def get_keyframe_qpos(self, name: str) -> Vector:
        """Return qpos (nq,) of a keyframe of the file, or of another named configuration of the robot."""
        if name not in self.robot.configurations:
            known = ", ".join(self.robot.configurations) or "none"
            raise ValueError(f"{self.robot.name} has no keyframe {name!r}; its keyframes are {known}")
        return self.order.state(self.robot.configurations[name], np.zeros(self.robot.nv)).qpos

    def get_default_qpos(self) -> Vector:
        """Return the initial qpos (nq,) of environments."""
        return self._default_qpos.copy()

    def get_default_dof_pos(self) -> Vector:
        """Return the default qpos without a free joint that is first."""
        return self._default_qpos[self._root[0] :].copy()

    def get_init_qvel(self) -> Vector:
        """Return the initial qvel (nv,), zeros."""
        return np.zeros(self.order.nv)

    def get_public_state_widths(self) -> PublicStateWidths:
        """Return the lengths of qpos and qvel."""
        return PublicStateWidths(nq=self.order.nq, nv=self.order.nv)

    def get_gravity(self) -> Vector:
        """Return gravity (3,) in the world [m/s²]."""
        return np.array(self.robot.gravity)

    def get_root_state_layout(self, root_body_name: str) -> RootStateLayout:
        """Return the columns of the free joint that moves a body.

        Raises NotImplementedError if no free joint moves it.
        """
        for j in self._joints:
            if j.child == root_body_name and j.type is JointType.FLOATING:
                q, v = range(self.order.nq)[j.q_slice], range(self.order.nv)[j.v_slice]
                return RootStateLayout(qpos_indices=tuple(q), qvel_indices=tuple(v))
        raise NotImplementedError(f"{self.robot.name} has no body {root_body_name!r} that a free joint moves")

    def get_body_ids(self, names: Sequence[str]) -> Array:
        """Return numbers (k,) of bodies; the world is 0."""
        numbers = {"world": 0} | {frame.name: 1 + k for k, frame in enumerate(self.robot.frames)}
        if unknown := [name for name in names if name not in numbers]:
            raise ValueError(f"{self.robot.name} has no body {unknown[0]!r}; its bodies are {', '.join(numbers)}")
        return np.array([numbers[name] for name in names], np.int32)

    get_motion_body_ids = get_body_ids

    def get_joint_dof_indices(self, names: Sequence[str]) -> Array:
        """Return the columns of joints of one degree of freedom in qvel."""
        return np.array([j.v_slice.start for j in self._named(names)], np.int32)

    def get_joint_dof_pos_indices(self, names: Sequence[str]) -> Array:
        """Return the columns of joints in qpos, counted after a free joint that is first."""
        return self.get_joint_state_qpos_indices(names) - np.int32(self._root[0])

    def get_joint_dof_vel_indices(self, names: Sequence[str]) -> Array:
        """Return the columns of joints in qvel, counted after a free joint that is first."""
        return self.get_joint_dof_indices(names) - np.int32(self._root[1])

    def get_joint_state_qpos_indices(self, names: Sequence[str]) -> Array:
        """Return the columns of joints of one degree of freedom in qpos."""
        return np.array([j.q_slice.start for j in self._named(names)], np.int32)

    get_joint_state_qvel_indices = get_joint_dof_indices

    def _named(self, names: Sequence[str]) -> list[MovingJoint]:
        single = {j.name: j for j in self._joints if j.type.nv == 1}
        if unknown := [name for name in names if name not in single]:
            known = ", ".join(single) or "none"
            raise ValueError(f"{self.robot.name} has no joint {unknown[0]!r} of one degree of freedom; these are {known}")
        return [single[name] for name in names]

    # capabilities

    def get_dr_capabilities(self) -> DomainRandomizationCapabilities:
        """Return the capabilities of domain randomization: none."""
        return DomainRandomizationCapabilities()

    def get_play_capabilities(self) -> PlayCapabilities:
        """Return the capabilities of playback: states of MJCF files, without rendering."""
        return PlayCapabilities(supports_physics_state_playback=str(self._files[0]).endswith(".xml"))

    def get_tensor_execution(self) -> TensorExecution:
        """Return where physics runs: on the processor."""
        return TENSORS.execution

    def get_tensor_capabilities(self) -> TensorLifecycleCapabilities:
        """Return which methods support tensors."""
        return TENSORS

    # states, as arrays

    def _host_get_state(self, fields: tuple[str, ...] | str | None = None) -> dict[str, Array]:
        names = STATE[:2] if fields is None else (fields,) if isinstance(fields, str) else fields
        if unknown := [name for name in names if name not in STATE]:
            raise KeyError(f"unknown state field {unknown[0]!r}; the fields are {', '.join(STATE)}")
        qpos, qvel = self.order.state(self.simulation.q, self.simulation.v)
        return {name: {"qpos": qpos, "qvel": qvel, "ctrl": self._ctrl.copy()}[name] for name in names}

    def _host_set_state(self, env_indices: Array, qpos: Array, qvel: Array, randomization: Any = None) -> None:
        if randomization is not None and not randomization.is_empty():
            terms = ", ".join(sorted(randomization.requested_terms()))
            raise NotImplementedError(f"UniSim's randomization ({terms}) is not implemented; use Simulation.vary")
        rows = np.asarray(env_indices)
        whole = rows.ndim == 1 and (not rows.size or rows.dtype.kind in "iu")
        if not whole or len(np.unique(rows)) < len(rows) or ((rows < 0) | (rows >= self.num_envs)).any():
            raise ValueError(f"env_indices must be distinct integers from 0 to {self.num_envs - 1}; got {rows}")
        if len(rows):
            self.simulation.reset(*self._own(qpos, qvel), which=rows)
            self._ctrl[rows] = 0.0
            self._start_times[rows] = self.simulation.time

    _host_reset = unisim.SimBackend._host_reset_default

    def _own(self, qpos: Array, qvel: Array) -> RobotState:
        """Return q and v with loops closed, because rounding to float32 opens them."""
        q, v = self.order.robot_state(qpos, qvel)
        return RobotState(self.robot.close(q) if self.robot.closed else q, v)  # type: ignore[attr-defined]

    def _host_step(self, ctrl: Array, nsteps: int = 1) -> None:
        ctrl = np.array(ctrl, np.float64)
        if ctrl.shape != self._ctrl.shape or not np.isfinite(ctrl).all():
            raise ValueError(f"ctrl must be finite numbers of shape {self._ctrl.shape}; got shape {ctrl.shape}")
        self._ctrl = ctrl
        if self._pre_step_control_fn is None:
            self.simulation.step(control=ctrl, steps=nsteps)
            return
        for _ in range(nsteps):
            self.simulation.step(control=self._apply_pre_step_control(ctrl))

    # states, as tensors

    def get_state_views(self, fields: tuple[str, ...] | str | None = None, device: Any = None) -> Mapping[str, Any]:
        """Return copies of qpos (num_envs, nq) and qvel (num_envs, nv), or of the named fields; ctrl is (num_envs, nu)."""
        return {name: _tensor(x, device) for name, x in self._host_get_state(fields).items()}

    def step_tensor(self, ctrl: Any, nsteps: int = 1) -> None:
        """Take steps under controls (num_envs, nu), a contiguous float32 tensor."""
        self._host_step(_array("ctrl", ctrl, self._ctrl.shape, "float32"), nsteps)

    def set_state_tensor(self, env_indices: Any, qpos: Any, qvel: Any, randomization: Any = None) -> None:
        """Reset environments env_indices (k,), int64, to qpos (k, nq) and qvel (k, nv), float32; tensors are contiguous."""
        rows = _array("env_indices", env_indices, (len(env_indices),), "int64")
        self._host_set_state(rows, *self._given(qpos, qvel, len(rows)), randomization)

    def set_state_tensor_mask(
        self, reset_mask: Any, qpos: Any, qvel: Any, randomization: Any = None, *, full_refresh: bool = False
    ) -> None:
        """Reset the environments of a mask (num_envs,); qpos and qvel have a row for every environment."""
        if full_refresh:
            raise NotImplementedError("full_refresh is not implemented: there is nothing to refresh; omit it")
        rows = np.flatnonzero(_array("reset_mask", reset_mask, (self.num_envs,), "bool"))
        positions, velocities = self._given(qpos, qvel, self.num_envs)
        self._host_set_state(rows, positions[rows], velocities[rows], randomization)

    def _given(self, qpos: Any, qvel: Any, count: int) -> tuple[Array, Array]:
        widths = ("qpos", qpos, self.order.nq), ("qvel", qvel, self.order.nv)
        positions, velocities = (_array(name, x, (count, n), "float32") for name, x, n in widths)
        return positions, velocities

    # sensors and bodies

    def get_sensor_names(self) -> tuple[str, ...]:
        """Return the names of the sensors of the file."""
        return tuple(sensor.name for sensor in self.robot.sensors)

    def get_sensor_view(self, name: str, device: Any = None) -> Any:
        """Return a copy of a sensor's reading (num_envs, dim) from `Simulation.sensors`."""
        return _tensor(self._reading(name), device)

    def _bind_sensor_data_reader(self, names: tuple[str, ...]) -> Callable[[], Array]:
        return lambda: np.concatenate([self._reading(name) for name in names], axis=1)

    def _reading(self, name: str) -> Array:
        if self._read_at != self.simulation.revision:
            self._readings, self._read_at = self.simulation.sensors(), self.simulation.revision
        return np.asarray(self._readings[name])

    def get_tracked_body_views(self, body_names: Sequence[str] | None = None, device: Any = None) -> Any:
        """Return poses and velocities of frames in the world: of named frames, or of all links and sites."""
        names = [frame.name for frame in self.robot.frames] if body_names is None else list(body_names)
        self.get_body_ids(names)  # raises ValueError for an unknown name
        q, v = self.simulation.q, self.simulation.v
        places, velocities = self.robot.frame_placement(names)(q), self.robot.frame_velocity(names)(q, v)
        turned = quaternion_of_matrix(np.moveaxis(places[..., :3, :3], (-2, -1), (0, 1)))
        quaternions = np.stack([turned.s, *turned.u], axis=-1)
        parts = places[..., :3, 3], quaternions, velocities[..., :3], velocities[..., 3:]
        return TrackedBodyStateViews(tuple(names), *(_tensor(x, device) for x in parts))

    # playback

    def get_physics_state_layout(self) -> PhysicsStateLayout:
        """Return the columns of `get_physics_state`."""
        return PhysicsStateLayout(nq=self.order.nq, nv=self.order.nv)

    def get_physics_state(self) -> Array:
        """Return the time since the last reset [s], qpos and qvel of each environment (num_envs, 1 + nq + nv)."""
        state = self._host_get_state()
        return np.column_stack([self.simulation.time - self._start_times, state["qpos"], state["qvel"]])

    def set_physics_state(self, state: Array) -> None:
        """Set times and states to a result of `get_physics_state`."""
        state = np.asarray(state, np.float64)
        if len(state) != self.num_envs:
            raise ValueError(f"state must have a row for each of {self.num_envs} environments; got shape {state.shape}")
        parts = self.get_physics_state_layout().split_state(state)
        self.simulation.reset(*self._own(parts.qpos, parts.qvel))
        self._start_times = -parts.time
        self._ctrl = np.zeros_like(self._ctrl)

    def get_playback_model(self, env_index: int | None = None) -> str | Robot:
        """Return the file of the scene; the robot if there is no file."""
        return self._files[0] or self.robot


def _robot_of(scene: SceneCfg) -> Robot:
    for name in COMPOSED:
        if getattr(scene, name):
            raise NotImplementedError(f"scenes with {name} are not implemented: compile the scene to one model_file")
    if not scene.model_file:
        raise ValueError("scene has no model_file: set it to a robot file, or pass a Robot in place of the scene")
    return load(scene.model_file, equalities=OF_FILE)


def _array(name: str, x: object, shape: tuple[int, ...], dtype: str) -> Array:
    """Return a tensor of finite numbers as an array."""
    import torch

    if not isinstance(x, torch.Tensor) or x.dtype != getattr(torch, dtype) or not x.is_contiguous():
        given = f"{x.dtype}, not contiguous" if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"{name} must be a contiguous tensor of {dtype}; got {given}")
    array: Array = x.detach().cpu().numpy()
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}; got shape {array.shape}")
    return array


def _tensor(x: Array, device: object) -> Any:
    """Return a copy as a tensor of float32."""
    import torch

    return torch.tensor(x, dtype=torch.float32, device=device or "cpu")
