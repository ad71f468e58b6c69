"""UniSim's contract for simulation backends, by `featherweight.Simulation`: what is written for `unisim` runs here.

    from unisim.scene import SceneCfg
    backend = FeatherweightBackend(SceneCfg(model_file="go2.xml"), num_envs=4096, sim_dt=0.005)
    backend.step_tensor(control, nsteps=4)

States are MuJoCo's: qpos and qvel in the order of the file, quaternions (w, x, y, z) (see `MujocoOrder`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from .extras import install_command

try:
    import unisim
except ModuleNotFoundError as error:
    if error.name != "unisim":
        raise
    raise ImportError(f"featherweight.unisim needs unisim-core: {install_command('unisim')}") from error

import numpy as np
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

from .model.model import MovingJoint
from .model.types import JointType, controls_of
from .robot.build import load
from .robot.mujoco_order import MujocoOrder, RobotState
from .robot.robot import Robot
from .simulation import Simulation
from .simulation.sensor_measures import quaternions_of

__all__ = ["FeatherweightBackend"]

Array = np.ndarray[Any, np.dtype[Any]]

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


class FeatherweightBackend(unisim.SimBackend):  # type: ignore[misc]  # its types are not read
    """Environments of UniSim's with one robot each, which one `Simulation` moves.

    `scene` is a SceneCfg whose `model_file` any reader of ours takes, or a `Robot`. Other arguments are those of
    `Simulation`: `contact`, `actuators` (as `PD(...)` of files without any), `ground`, `integrator`, `threads`, `on_failure`.
    Environments begin at qpos0, at rest. Controls are those of the actuators, which hold from one step to the next.

    Physics runs on the processor; tensors are copied, states as float32. Bodies have the numbers of `robot.frames`, from 1 on:
    in MJCF files those of MuJoCo. Randomization, forces on bodies, packed transfers and rendering are not there, and
    raise NotImplementedError, as UniSim asks for; `get_capabilities()` says so.

    Raises NotImplementedError for scenes that UniSim composes of several sources, and what `load` and `Simulation` raise.
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
            _ = self.order.nu  # raises ValueError where MuJoCo's ctrl has other numbers
        self._default_qpos = self.order.state(start, np.zeros(self.robot.nv)).qpos
        self._joints: tuple[MovingJoint, ...] = tuple(self.robot.model.joints)
        if several := [a.name for a in self.simulation.forces.actuators if len(a.controls) != 1]:
            raise NotImplementedError(f"{self.robot.name}: actuator {several[0]!r} has not one control, as UniSim's have")
        self._ctrl = np.zeros((num_envs, self.num_actuators))
        self._begun = np.zeros(num_envs)  # [s] of the simulation's time
        self._readings, self._read_at = self.simulation.sensors(), self.simulation.revision

    # the model

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return len(self._begun)

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
        """Number of velocities but those of a free joint that comes first."""
        return int(self.order.nv - self._root[1])

    @cached_property
    def _root(self) -> tuple[int, int]:
        """Number of coordinates and of velocities of a free joint that comes first."""
        free = bool(self._joints) and self._joints[0].type is JointType.FLOATING
        return (7, 6) if free else (0, 0)

    def get_scene_model_file(self) -> str | None:
        """Return the robot file of the scene."""
        return self._files[0]

    def get_scene_visual_model_file(self) -> str | None:
        """Return the file for rendering of the scene."""
        return self._files[1]

    def get_actuator_ctrl_range(self) -> Array:
        """Return least and greatest controls (num_actuators, 2)."""
        return np.array([*controls_of(self.simulation.forces.actuators).values()]).reshape(-1, 2)

    def get_actuator_names(self) -> tuple[str, ...]:
        """Return the names of actuators, in the order of controls."""
        return tuple(a.name for a in self.simulation.forces.actuators)

    def get_actuator_joint_names(self) -> tuple[str, ...]:
        """Return the joints of one degree of freedom that actuators act on.

        Raises NotImplementedError where an actuator acts on anything else.
        """
        single = {j.name for j in self._joints if j.type.nv == 1}
        names = tuple(a.joint for a in self.simulation.forces.actuators)
        if other := [a.name for a in self.simulation.forces.actuators if a.joint not in single]:
            raise NotImplementedError(f"{self.robot.name}: actuator {other[0]!r} acts on no joint of one degree of freedom")
        return tuple(str(name) for name in names)

    def get_actuator_gains(self) -> tuple[Array, Array]:
        """Return stiffness and damping (num_actuators,) of position servos."""
        pairs = [
            (a.servo.stiffness, a.servo.damping) if a.servo else (a.gain, 0.0 - a.bias[2])
            for a in self.simulation.forces.actuators
        ]
        gains = np.array(pairs).reshape(-1, 2)
        return gains[:, 0].copy(), gains[:, 1].copy()

    def get_joint_range(self, *, names: Sequence[str] | None = None) -> Array:
        """Return limits (n, 2) [rad or m] of all joints but free ones, or of some by name; infinite without limits."""
        named = self._named(names) if names is not None else [j for j in self._joints if j.type is not JointType.FLOATING]
        return np.array([(j.lower, j.upper) for j in named]).reshape(-1, 2)

    def get_keyframe_qpos(self, name: str) -> Array:
        """Return qpos (nq,) of a keyframe of the file, or of another named configuration of the robot."""
        if name not in self.robot.configurations:
            there = ", ".join(self.robot.configurations) or "none"
            raise ValueError(f"{self.robot.name} has no keyframe {name!r}; there are {there}")
        return self.order.state(self.robot.configurations[name], np.zeros(self.robot.nv)).qpos

    def get_default_qpos(self) -> Array:
        """Return qpos (nq,) in which environments begin."""
        return self._default_qpos.copy()

    def get_default_dof_pos(self) -> Array:
        """Return the default qpos without a free joint that comes first."""
        return self._default_qpos[self._root[0] :].copy()

    def get_init_qvel(self) -> Array:
        """Return zeros (nv,)."""
        return np.zeros(self.order.nv)

    def get_public_state_widths(self) -> Any:
        """Return the lengths of qpos and qvel."""
        return PublicStateWidths(nq=self.order.nq, nv=self.order.nv)

    def get_gravity(self) -> Array:
        """Return gravity (3,) in the world [m/s²]."""
        return np.array(self.robot.gravity)

    def get_root_state_layout(self, root_body_name: str) -> Any:
        """Return the columns of the free joint that moves a body.

        Raises NotImplementedError where no free joint does.
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
            raise ValueError(f"{self.robot.name} has no body {unknown[0]!r}; there are {', '.join(numbers)}")
        return np.array([numbers[name] for name in names], np.int32)

    def get_motion_body_ids(self, names: Sequence[str]) -> Array:
        """Return what `get_body_ids` returns."""
        return self.get_body_ids(names)

    def get_joint_dof_indices(self, names: Sequence[str]) -> Array:
        """Return the columns of joints of one degree of freedom in qvel."""
        return np.array([j.v_slice.start for j in self._named(names)], np.int32)

    def get_joint_dof_pos_indices(self, names: Sequence[str]) -> Array:
        """Return the columns of joints in qpos, counted after a free joint that comes first."""
        return self.get_joint_state_qpos_indices(names) - np.int32(self._root[0])

    def get_joint_dof_vel_indices(self, names: Sequence[str]) -> Array:
        """Return the columns of joints in qvel, counted after a free joint that comes first."""
        return self.get_joint_dof_indices(names) - np.int32(self._root[1])

    def get_joint_state_qpos_indices(self, names: Sequence[str]) -> Array:
        """Return the columns of joints of one degree of freedom in qpos."""
        return np.array([j.q_slice.start for j in self._named(names)], np.int32)

    def get_joint_state_qvel_indices(self, names: Sequence[str]) -> Array:
        """Return what `get_joint_dof_indices` returns."""
        return self.get_joint_dof_indices(names)

    def _named(self, names: Sequence[str]) -> list[MovingJoint]:
        single = {j.name: j for j in self._joints if j.type.nv == 1}
        if unknown := [name for name in names if name not in single]:
            has = ", ".join(single)
            raise ValueError(f"{self.robot.name} has no joint {unknown[0]!r} of one degree of freedom; there are {has}")
        return [single[name] for name in names]

    # what is there and what is not

    def get_dr_capabilities(self) -> Any:
        """Return that there is no randomization."""
        return DomainRandomizationCapabilities()

    def get_play_capabilities(self) -> Any:
        """Return that MJCF files have states for playback, and that nothing is rendered."""
        return PlayCapabilities(supports_physics_state_playback=str(self._files[0]).endswith(".xml"))

    def get_tensor_execution(self) -> Any:
        """Return that physics runs on the processor."""
        return TENSORS.execution

    def get_tensor_capabilities(self) -> Any:
        """Return which methods take and give tensors."""
        return TENSORS

    # states, as arrays

    def _host_get_state(self, fields: tuple[str, ...] | str | None = None) -> dict[str, Array]:
        names = STATE[:2] if fields is None else (fields,) if isinstance(fields, str) else fields
        if unknown := [name for name in names if name not in STATE]:
            raise KeyError(f"there is no state field {unknown[0]!r}; there are {', '.join(STATE)}")
        qpos, qvel = self.order.state(self.simulation.q, self.simulation.v)
        return {name: {"qpos": qpos, "qvel": qvel, "ctrl": self._ctrl.copy()}[name] for name in names}

    def _host_set_state(self, env_indices: Array, qpos: Array, qvel: Array, randomization: Any = None) -> None:
        if randomization is not None and not randomization.is_empty():
            terms = ", ".join(sorted(randomization.requested_terms()))
            raise NotImplementedError(f"featherweight has no randomization by UniSim's payloads ({terms}); see Simulation.vary")
        rows = np.asarray(env_indices)
        whole = rows.ndim == 1 and (not rows.size or rows.dtype.kind in "iu")
        if not whole or len(np.unique(rows)) < len(rows) or ((rows < 0) | (rows >= self.num_envs)).any():
            raise ValueError(f"env_indices must be different numbers of environments, 0 to {self.num_envs - 1}; got {rows}")
        if len(rows):
            self.simulation.reset(*self._own(qpos, qvel), which=rows)
            self._ctrl[rows] = 0.0
            self._begun[rows] = self.simulation.time

    def _host_reset(self, env_ids: Array | None = None) -> None:
        self._host_reset_default(env_ids)

    def _own(self, qpos: Array, qvel: Array) -> RobotState:
        """Return q and v, with loops closed: rounding to float32 opens them."""
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
        """Return copies of qpos (num_envs, nq), qvel (num_envs, nv), and of ctrl (num_envs, nu) if it is named."""
        return {name: _tensor(x, device) for name, x in self._host_get_state(fields).items()}

    def step_tensor(self, ctrl: Any, nsteps: int = 1) -> None:
        """Take steps under controls (num_envs, nu), a contiguous float32 tensor."""
        self._host_step(_array("ctrl", ctrl, self._ctrl.shape, "float32"), nsteps)

    def set_state_tensor(self, env_indices: Any, qpos: Any, qvel: Any, randomization: Any = None) -> None:
        """Begin environments env_indices (k,) anew at qpos (k, nq), qvel (k, nv), contiguous tensors of int64 and float32."""
        rows = _array("env_indices", env_indices, (len(env_indices),), "int64")
        self._host_set_state(rows, *self._given(qpos, qvel, len(rows)), randomization)

    def set_state_tensor_mask(
        self, reset_mask: Any, qpos: Any, qvel: Any, randomization: Any = None, *, full_refresh: bool = False
    ) -> None:
        """Begin the environments of a mask (num_envs,) anew; qpos and qvel have a row for each of all environments."""
        if full_refresh:
            raise NotImplementedError("featherweight has nothing to refresh: leave full_refresh out")
        rows = np.flatnonzero(_array("reset_mask", reset_mask, (self.num_envs,), "bool"))
        positions, velocities = self._given(qpos, qvel, self.num_envs)
        self._host_set_state(rows, positions[rows], velocities[rows], randomization)

    def _given(self, qpos: Any, qvel: Any, count: int) -> tuple[Array, Array]:
        widths = ("qpos", qpos, self.order.nq), ("qvel", qvel, self.order.nv)
        positions, velocities = (_array(name, x, (count, n), "float32") for name, x, n in widths)
        return positions, velocities

    # sensors and bodies

    def get_sensor_names(self) -> tuple[str, ...]:
        """Return the names of the file's sensors."""
        return tuple(sensor.name for sensor in self.robot.sensors)

    def get_sensor_view(self, name: str, device: Any = None) -> Any:
        """Return a copy of a sensor's reading (num_envs, dim), as `Simulation.sensors` gives it."""
        return _tensor(self._reading(name), device)

    def _bind_sensor_data_reader(self, names: tuple[str, ...]) -> Callable[[], Array]:
        return lambda: np.concatenate([self._reading(name) for name in names], axis=1)

    def _reading(self, name: str) -> Array:
        if self._read_at != self.simulation.revision:
            self._readings, self._read_at = self.simulation.sensors(), self.simulation.revision
        return np.asarray(self._readings[name])

    def get_tracked_body_views(self, body_names: Sequence[str] | None = None, device: Any = None) -> Any:
        """Return poses and velocities of frames in the world; of all links and sites unless some are named."""
        names = [frame.name for frame in self.robot.frames] if body_names is None else list(body_names)
        self.get_body_ids(names)  # raises ValueError for a name that is none
        q, v = self.simulation.q, self.simulation.v
        places, velocities = self.robot.frame_placement(names)(q), self.robot.frame_velocity(names)(q, v)
        parts = places[..., :3, 3], quaternions_of(places[..., :3, :3]), velocities[..., :3], velocities[..., 3:]
        return TrackedBodyStateViews(tuple(names), *(_tensor(x, device) for x in parts))

    # playback

    def get_physics_state_layout(self) -> Any:
        """Return the columns of `get_physics_state`."""
        return PhysicsStateLayout(nq=self.order.nq, nv=self.order.nv)

    def get_physics_state(self) -> Array:
        """Return the time since each environment began [s], qpos and qvel (num_envs, 1 + nq + nv)."""
        state = self._host_get_state()
        return np.column_stack([self.simulation.time - self._begun, state["qpos"], state["qvel"]])

    def set_physics_state(self, state: Array) -> None:
        """Go on from a result of `get_physics_state`."""
        state = np.asarray(state, np.float64)
        if len(state) != self.num_envs:
            raise ValueError(f"state must have a row for each of {self.num_envs} environments; got shape {state.shape}")
        parts = self.get_physics_state_layout().split_state(state)
        self.simulation.reset(*self._own(parts.qpos, parts.qvel))
        self._begun = -parts.time
        self._ctrl = np.zeros_like(self._ctrl)

    def get_playback_model(self, env_index: int | None = None) -> Any:
        """Return the file of the scene, or the robot without one."""
        return self._files[0] or self.robot


def _robot_of(scene: SceneCfg) -> Robot:
    for name in COMPOSED:
        if getattr(scene, name):
            raise NotImplementedError(
                f"featherweight takes no scene with {name}: compile it to one file, and name it as model_file"
            )
    if not scene.model_file:
        raise ValueError("scene has no model_file: name a robot file, or give a Robot in place of the scene")
    return load(scene.model_file)


def _array(name: str, x: Any, shape: tuple[int, ...], dtype: str) -> Array:
    """Return a tensor of finite numbers as an array."""
    import torch

    if not isinstance(x, torch.Tensor) or x.dtype != getattr(torch, dtype) or not x.is_contiguous():
        given = f"{x.dtype}, not contiguous" if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"{name} must be a contiguous tensor of {dtype}; got {given}")
    array: Array = x.detach().cpu().numpy()
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}; got shape {array.shape}")
    return array


def _tensor(x: Array, device: Any) -> Any:
    """Return a copy as a tensor of float32."""
    import torch

    return torch.tensor(x, dtype=torch.float32, device=device or "cpu")
