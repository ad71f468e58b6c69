"""The system that functions of a robot are bound to: its model, its configuration space, and the kernels for its kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np

from ..algorithms import integration
from ..engine.function import CompiledFunction, require_execution
from ..engine.program import Input, KernelProgram, Output, Program
from ..model import configuration
from ..model.configuration import Coordinates, Joints
from ..model.model import Model, ModelFrame, Placed
from ..model.placement import chained
from ..model.topology import Topology
from ..model.tree import Placements
from ..model.types import WORLD, AnyFrame, Frame, Pose
from ..names import choose_from
from .model_view import ModelView
from .reference_configurations import ReferenceConfigurations
from .start import start_of

Array = np.ndarray[Any, np.dtype[Any]]

LOOP_TOLERANCE = 1e-4  # [m, rad] by which loops may contradict each other: files have six digits, and loops tens of joints
CONTRADICTING = "loops that contradict each other"  # in a report


CONFIGURATIONS = ("q", "q0", "q1")  # names of inputs that are configurations
VELOCITIES = ("v", "a", "tau", "u", "d")  # and of those that have the length of a velocity


class NotDefinedError(ValueError):
    """This robot does not have the function: without mass, for example, there is no centre of mass."""


class System(ModelView):
    """A model, and how kernels become functions of it."""

    def __init__(self, model: Model, execution: str = "auto") -> None:
        require_execution(execution)
        super().__init__(model)
        self.execution = execution

    # the configuration space

    @cached_property
    def _coordinates(self) -> Joints:
        return Joints(Coordinates(j.type, j.q_slice, j.v_slice, j.lower, j.upper) for j in self.joints)

    def neutral(self) -> Array:
        """The configuration with every joint at zero, (nq,): zero coordinates, identity rotations.

        `start()` is the one in which an MJCF file starts. The two are the same but for free joints, which are at the world's
        origin here, and where the file places their bodies there; and for hinges and slides with a `ref`, which are at zero
        here, and at `ref` there.
        """
        return self._neutral.copy()

    @cached_property
    def _neutral(self) -> Array:
        return configuration.neutral(self._coordinates, self.nq)

    def start(self) -> Array:
        """Return the configuration (nq,) in which the robot's file starts: "qpos0" of MJCF, or `neutral()` without one.

        Joints beyond their limits there are moved to them, and loops closed again, as far as that can be.
        """
        return start_of(self)

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: SupportsIndex | Sequence[SupportsIndex] | None = None
    ) -> Array:
        """Configurations (*size, nq), uniform within limits; without, angles in ±pi, lengths in ±1 m."""
        return configuration.random_configuration(self._coordinates, self.nq, rng, size)

    @cached_property
    def configurations(self) -> ReferenceConfigurations:
        """Named configurations (nq,), read-only: group states of SRDF; keyframes of MJCF, and its "qpos0", the one that it is
        drawn in. Joints that they leave out are where they are in `neutral()`.

        Where loops are open there by more than rounding, they are closed near it (`close`: the independent joints stay, if
        that can be). Raises KeyError for a name that is none, ValueError for loops that cannot be closed.
        """
        return ReferenceConfigurations(self.model, self.joints, self.neutral, self._closed_near)

    def _closed_near(self, name: str, q: Array) -> Array:
        """The configuration of this name, given as in the file."""
        return q

    # how functions are made

    @property
    def _system(self) -> Any:
        """The tree that kernels read, or the mechanism of a robot with loops."""
        return self.model.tree

    @property
    def parent(self) -> tuple[int, ...]:
        """The expanded tree of the velocities: where the inertia matrix may have entries."""
        return tuple(self.model.tree.parent)

    @property
    def _topology(self) -> Topology:
        """The tree on which wrenches of contacts meet."""
        return self.model.topology

    def _kernel(self, kernel: Any) -> Any:
        """The kernel for this kind of robot, given that for a tree."""
        return kernel

    def bind(
        self,
        name: str,
        kernel: Any,
        inputs: Sequence[str | Input],
        outputs: Sequence[Output],
        constants: tuple[Any, ...] = (),
        *,
        doc: str | None = "",
        algorithm: str = "",
        part: int | None = None,
    ) -> CompiledFunction[Any]:
        """A kernel (that of a tree) as a function of this system; `constants` follow the system among the kernel's arguments.

        Inputs given by their names are those of `CONFIGURATIONS` and `VELOCITIES`. `part` as in `KernelProgram`.
        """
        arguments = tuple(x if isinstance(x, Input) else self._argument(x) for x in inputs)
        program = KernelProgram(
            name,
            self._kernel(kernel),
            (self._system, *constants),
            arguments,
            tuple(outputs),
            doc or "",
            part=part,
            owner=self.name,
        )
        return CompiledFunction(program, self.execution, algorithm)

    def _function(
        self, member: Any, kernel: Any, inputs: Sequence[str | Input], output: Output, more: tuple[Any, ...] = (), **how: Any
    ) -> CompiledFunction[Any]:
        """A kernel as a member of a class, which has its name and docstring."""
        function = member.func if isinstance(member, cached_property) else member
        return self.bind(function.__name__, kernel, inputs, (output,), more, doc=function.__doc__, **how)

    def _checked(self, name: str, x: Any, n: int) -> Array:
        """Numbers (..., n) in double precision; raises ValueError for another length."""
        array: Array = np.asarray(x, dtype=np.float64)
        if array.shape[-1:] != (n,):
            raise ValueError(f"{self.name}: {name} must have shape (..., {n}); got {array.shape}")
        return array

    def _require_own(self, function: CompiledFunction[Any]) -> None:
        """Refuse functions of another robot, and what is no function of a robot."""
        if not isinstance(function, CompiledFunction):
            raise TypeError(f"{self.name}: expected a function of a robot, such as robot.mass_matrix; got {function!r}")
        kernels = function.program.kernels
        for system in (kernel.constants[0] for kernel in kernels if kernel.constants):
            if isinstance(system, type(self._system)) and system != self._system:
                raise ValueError(f"{function.name} is a function of another robot than {self.name!r}")

    def _argument(self, name: str) -> Input:
        """A configuration or a velocity. Raises ValueError for a name that does not say which."""
        if name in CONFIGURATIONS:
            return Input(name, (self.nq,), rate=self._rate)
        if name in VELOCITIES:
            return Input(name, (self.nv,))
        known = ", ".join((*CONFIGURATIONS, *VELOCITIES))
        raise ValueError(f"{name!r} names no configuration and no velocity ({known}): give an Input(name, shape)")

    @cached_property
    def _rate(self) -> Program:
        """Program for the rate of change of a configuration along a velocity."""
        inputs, kernel = (Input("q", (self.nq,)), Input("v", (self.nv,))), self._kernel(integration.write_configuration_rate)
        return KernelProgram("configuration_rate", kernel, (self._system,), inputs, (Output("rate", (self.nq,)),))

    def configuration_result(self, name: str) -> Output:
        """A result that is a configuration: its derivatives are velocities there."""
        inputs = Input("q", (self.nq,)), Input("rate", (self.nq,))
        kernel, result = self._kernel(integration.configuration_velocity), Output("v", (self.nv,))
        along = KernelProgram("configuration_velocity", kernel, (self._system,), inputs, (result,))
        return Output(name, (self.nq,), along=along)

    def frame(self, frame: AnyFrame) -> ModelFrame:
        """A frame of the robot by its name, or one made for the purpose, on the moving body that carries it.

        Raises ValueError for a name that is none, or a frame on no link or that is not placed by a rigid motion.
        """
        return self._found(frame)[0]

    def _placed(self, frame: AnyFrame) -> Placed:
        """Where a frame lies on the row of the tree that carries it; raises as `frame` does."""
        return self._found(frame)[1]

    def placements(self, frames: Sequence[AnyFrame]) -> Placements:
        """Where frames lie on the rows of the tree, as kernels read them; raises as `frame` does."""
        return placements([self._placed(frame) for frame in frames])

    def _found(self, frame: AnyFrame) -> tuple[ModelFrame, Placed]:
        named = self._named_frames
        if isinstance(frame, Frame):
            if frame.body in named:
                link, at = named[frame.body]
            elif frame.body in (None, WORLD):
                link, at = ModelFrame(WORLD, None, Pose()), Placed(-1, Pose())
            else:
                raise ValueError(f"frame {frame.name!r}: {self.name} has no link {choose_from(frame.body, self._frame_names)}")
            pose = Pose.of(frame.placement, f"placement of frame {frame.name!r}")
            return ModelFrame(frame.name, link.body, chained(link.placement, pose)), Placed(at.row, chained(at.pose, pose))
        if not isinstance(frame, str):
            raise TypeError(f"{self.name}: a frame is a name or a featherweight.Frame; got {frame!r}")
        if frame not in named:
            raise ValueError(f"{self.name} has no frame {choose_from(frame, self._frame_names)}")
        return named[frame]

    @property
    def _frame_names(self) -> list[str]:
        return [f.name for f in self.frames]

    @cached_property
    def _named_frames(self) -> dict[str | None, tuple[ModelFrame, Placed]]:
        every = zip(self.model.frames, self.model.placed_frames, strict=True)
        return {frame.name: (frame, placed) for frame, placed in every}


def placements(placed: Sequence[Placed]) -> Placements:
    """Frames on rows of the tree, as kernels read them."""
    return Placements(tuple(p.row for p in placed), tuple(p.pose.R for p in placed), tuple(p.pose.p for p in placed))


def declared_functions(kind: type) -> tuple[str, ...]:
    """The names of the public members of a class, and of those that it inherits from, that are declared as compiled functions:
    cached properties whose annotation is `CompiledFunction`."""
    members = {name: x for c in reversed(kind.__mro__) for name, x in vars(c).items()}
    names = dict.fromkeys(name for c in kind.__mro__ for name in vars(c) if not name.startswith("_"))

    def is_declared(x: Any) -> bool:
        annotation = x.func.__annotations__.get("return") if isinstance(x, cached_property) else ""
        return re.match(r"CompiledFunction\b", str(annotation)) is not None

    return tuple(name for name in names if is_declared(members[name]))
