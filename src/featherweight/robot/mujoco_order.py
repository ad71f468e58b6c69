"""Conversion of states and controls to MuJoCo's order and conventions: qpos, qvel and ctrl.

`qpos_qvel` describes the conventions of quaternions and linear velocities. In MuJoCo, all joints have coordinates and
velocities, including dependent joints. Coordinates of hinges and slides are the same, including `ref`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..algorithms.mechanisms import spanning
from ..array_types import Array, Integers
from ..checks import checked, shown
from ..engine.function import CompiledFunction
from ..engine.program import Output
from ..model.formats.mjcf.numbers import first_controls
from ..model.formats.mjcf.read.drives import ACTUATORS, read_actuators
from ..model.model import MovingJoint
from ..model.types import JointType
from ..summaries import summarized
from .arguments import Q, V
from .qpos_qvel import JointPlace, QposQvel
from .system import System

TYPES = (JointType.FLOATING, JointType.SPHERICAL, JointType.PRISMATIC, JointType.REVOLUTE)  # by mjtJoint: free, ...


@summarized
class MujocoState(NamedTuple):
    """A state in MuJoCo's conventions."""

    qpos: Array  # (..., nq)
    qvel: Array  # (..., nv)


@summarized
class RobotState(NamedTuple):
    """A state in the robot's conventions."""

    q: Array  # (..., nq)
    v: Array  # (..., nv)


class MujocoOrder:
    """Converts states and controls between a robot and MuJoCo.

    `model` is the mjModel. Joints and actuators are matched by name; those without a name, and free joints with different
    names, are matched by their order. An actuator of MuJoCo may have several controls, or may be missing in the robot: `nu` is
    the length of MuJoCo's `ctrl`. Without a model, MuJoCo's joints and actuators are those of the robot in its order, as
    MuJoCo compiles the same file. If that file has actuators that the robot lacks, `nu`, `ctrl` and `control` need the model
    and raise ValueError without it.

    Raises ValueError for joints that are missing on one side or have different types, and for planar joints, which MuJoCo
    lacks.
    """

    @checked
    def __init__(self, robot: System, model: Any = None) -> None:
        if model is not None and not hasattr(model, "njnt"):
            raise TypeError(f"MujocoOrder: model must be the mjModel or None; got {shown(model)}")
        self.robot = robot
        own = robot.model.joints
        planar = [j.name for j in own if j.type is JointType.PLANAR]
        if planar:
            raise ValueError(f"{robot.name}: MuJoCo has no planar joints such as {planar[0]!r}; make it two slides and a hinge")
        joints = list(own) if model is None else _matched_joints(robot, model)
        every = range(len(robot.controls))
        controls = list(enumerate(every)) if model is None else _matched_controls(robot, model, joints)
        self.joints = tuple(j.name for j in joints)  # joints of the robot, in MuJoCo's order
        self.nq, self.nv = robot.model.nq, robot.model.nv
        self._nu: int = len(every) if model is None else model.nu
        self._lacking = robot.report().get(ACTUATORS, "") if model is None else ""
        self._arrays = QposQvel(self.nq, self.nv, _places(joints))
        self._driven, self._drives = ([pair[k] for pair in controls] for k in range(2))

    @property
    def nu(self) -> int:
        """The length of MuJoCo's `ctrl`."""
        if self._lacking:
            problem = f"its file has actuators that the robot lacks ({self._lacking}), so that MuJoCo's ctrl has other numbers"
            raise ValueError(f"{self.robot.name}: {problem}; pass the mjModel, as in MujocoOrder(robot, model)")
        return self._nu

    def state(self, q: npt.ArrayLike, v: npt.ArrayLike) -> MujocoState:
        """Return qpos and qvel for q (..., nq) and v (..., nv); loops must be closed at q."""
        state = self._states(("q", q, self.robot.nq), ("v", v, self.robot.nv))
        whole = self._spanning(*state) if self.robot.closed else state
        return MujocoState(self._arrays.qpos(whole[0]), self._arrays.qvel(*whole))

    def robot_state(self, qpos: npt.ArrayLike, qvel: npt.ArrayLike) -> RobotState:
        """Return q and v for MuJoCo's qpos (..., nq) and qvel (..., nv).

        For robots with loops and couplings, the coordinates and velocities of dependent joints are ignored; loops at q are
        closed as accurately as at qpos.
        """
        qpos, qvel = self._states(("qpos", qpos, self.nq), ("qvel", qvel, self.nv))
        q = self._arrays.q(qpos)
        v = self._arrays.v(q, qvel)
        return RobotState(q[..., self._coordinates], v[..., self._velocities])

    def ctrl(self, control: npt.ArrayLike) -> Array:
        """Return MuJoCo's ctrl (..., nu) for a control (..., number of `robot.controls`).

        Entries for actuators that the robot lacks are zero.
        """
        given = self.robot._checked("control", control, len(self.robot.controls))
        result = np.zeros((*given.shape[:-1], self.nu))
        result[..., self._driven] = given[..., self._drives]
        return result

    def control(self, ctrl: npt.ArrayLike) -> Array:
        """Return the control (..., number of `robot.controls`) for MuJoCo's ctrl (..., nu)."""
        given = self.robot._checked("ctrl", ctrl, self.nu)
        result = np.empty((*given.shape[:-1], len(self.robot.controls)))
        result[..., self._drives] = given[..., self._driven]
        return result

    def _states(self, *given: tuple[str, Any, int]) -> tuple[Array, Array]:
        """Broadcast coordinates and velocities to the same leading axes."""
        x, u = (self.robot._checked(*one) for one in given)
        try:
            batch = np.broadcast_shapes(x.shape[:-1], u.shape[:-1])
        except ValueError:
            shapes = ", ".join(f"{one[0]} {y.shape}" for one, y in zip(given, (x, u), strict=True))
            raise ValueError(f"{self.robot.name}: batch axes do not broadcast: {shapes}") from None
        return np.broadcast_to(x, (*batch, x.shape[-1])), np.broadcast_to(u, (*batch, u.shape[-1]))

    @cached_property
    def _spanning(self) -> CompiledFunction[Any]:
        """Function of q, v: the coordinates and velocities of all joints."""
        outputs = Output("spanning_q", (self.nq,)), Output("spanning_v", (self.nv,))
        return self.robot.bind("spanning_motion", spanning.motion, (Q, V), outputs)

    @cached_property
    def _coordinates(self) -> Integers:
        """The indices of the coordinates in q among those of all joints."""
        pairs = zip(self.robot.model.joints, self.robot.joints, strict=True)
        own = [(k, j) for whole, joint in pairs for j, k in _pairs(joint.q_slice, whole.q_slice)]
        return np.array([k for k, _ in sorted(own, key=lambda pair: pair[1])], dtype=np.intp)

    @cached_property
    def _velocities(self) -> Integers:
        """The indices of the velocities in v among those of all joints."""
        if not self.robot.closed:
            return np.arange(self.nv)
        rows = {c.start + k: r for c in self.robot._system.clusters for k, r in enumerate(c.independent)}
        return np.array([rows[k] for k in range(self.robot.nv)], dtype=np.intp)


def _pairs(own: slice, whole: slice) -> Iterator[tuple[int, int]]:
    return zip(range(own.start, own.stop), range(whole.start, whole.stop), strict=False)


def _places(joints: Iterable[MovingJoint]) -> Iterator[JointPlace]:
    """Yield the places of consecutive joints in MuJoCo's vectors."""
    q = v = 0
    for j in joints:
        yield JointPlace(j.type, j.q_slice, j.v_slice, slice(q, q + j.type.nq), slice(v, v + j.type.nv))
        q, v = q + j.type.nq, v + j.type.nv


def _matched_joints(robot: System, model: Any) -> list[MovingJoint]:
    """Return the robot's joints in the order of MuJoCo's joints."""
    left = {j.name: j for j in robot.model.joints}
    theirs = [(model.joint(k).name, TYPES[model.jnt_type[k]]) for k in range(model.njnt)]
    matched = [left.pop(name, None) for name, _ in theirs]
    others = list(left.values())
    for k, (name, kind) in enumerate(theirs):
        if matched[k] is None and (not name or kind is JointType.FLOATING) and others:
            matched[k] = others.pop(0)
        own = matched[k]
        if own is None:
            raise ValueError(
                f"{robot.name} has no joint {name or f'number {k}'!r}, but MuJoCo's model has; both must have all joints"
            )
        if kind is not (JointType.REVOLUTE if own.type is JointType.CONTINUOUS else own.type):
            raise ValueError(f"{robot.name}: joint {own.name!r} is {own.type.value} here and {kind.value} in MuJoCo's model")
    if others:
        raise ValueError(f"MuJoCo's model has no joint {others[0].name!r}, but {robot.name} has; both need the same joints")
    return [j for j in matched if j is not None]


def _matched_controls(robot: System, model: Any, joints: Sequence[MovingJoint]) -> list[tuple[int, int]]:
    """Return pairs of indices of controls, MuJoCo's and the robot's, for actuators of the same name.

    An actuator without a name has the name that the reader of MJCF files gives it.
    """
    first, place, left = first_controls(model), 0, dict[str, range]()
    for x in robot.actuators:
        left[x.name] = range(place, place + len(x.controls))
        place += len(x.controls)
    read = read_actuators(model, [j.name for j in joints], robot._couplings)
    names = {a: model.actuator(a).name for a in range(len(first))} | {a: actuator.name for a, actuator in read.items()}
    pairs = [(int(first[a]) + i, k) for a, name in names.items() if name in left for i, k in enumerate(left.pop(name))]
    if left:
        raise ValueError(
            f"MuJoCo's model has no actuator {next(iter(left))!r}, but {robot.name} has; both must have all actuators"
        )
    return sorted(pairs)
