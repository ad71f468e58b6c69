"""The base class of robots: the model, its configuration space, and the binding of kernels to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..algorithms import integration
from ..array_types import Array, Vector
from ..checks import SeedOrNone, Size, check_labels, checked, real_array, shown
from ..engine.function import CompiledFunction, require_execution
from ..engine.program import Input, KernelProgram, Output, Program
from ..model import configuration
from ..model.configuration import Coordinates, Joints, UnseededConfigurations
from ..model.model import Model, ModelFrame, Placed
from ..model.placement import chained
from ..model.topology import Topology
from ..model.tree import Placements
from ..model.types import START, WORLD, AnyFrame, Frame, Pose
from ..names import UnknownNameError, choose_from, knows_keywords, listed
from ..summaries import VisibleMessage
from .arguments import Argument, Configuration, Velocity
from .inertia_reading import reads_masses
from .model_view import ModelView
from .reference_configurations import ReferenceConfigurations

T = TypeVar("T")

LOOP_TOLERANCE = 1e-4  # [m, rad] largest misclosure of loops: files have six digits, and loops tens of joints
CONTRADICTING = "loops that contradict each other"  # a key of reports


class NotDefinedError(VisibleMessage, ValueError):
    """The robot does not define the function; for example, a robot without mass has no centre of mass."""


def rows_of(q: npt.ArrayLike) -> Array:
    """Return configurations (..., nq) as contiguous rows (states, nq) of double precision, also for nq = 0."""
    q = np.ascontiguousarray(q, np.float64)
    return q.reshape(math.prod(q.shape[:-1]), q.shape[-1])


class System(ModelView):
    """A model that binds kernels as functions."""

    def __init__(self, model: Model, execution: str = "auto") -> None:
        require_execution(execution)
        super().__init__(model)
        self.execution = execution
        self._cache: dict[tuple[Any, ...], Any] = {}
        self._frame_functions: dict[tuple[Any, ...], CompiledFunction] = {}  # by name, frame, reference and other frame

    # the configuration space

    @cached_property
    def _coordinates(self) -> Joints:
        return Joints(Coordinates(j.type, j.q_slice, j.v_slice, j.lower, j.upper) for j in self.joints)

    def neutral(self) -> Vector:
        """Return the neutral configuration (nq,): zero coordinates and identity rotations.

        `start()` returns the initial configuration of an MJCF file. It differs in free joints, which `neutral()` places at the
        world's origin and `start()` where the file places their bodies, and in hinges and slides with a `ref`, which are at
        zero here and at `ref` there.

            q = robot.neutral()
        """
        return self._copy_of_neutral()

    @cached_property
    def _copy_of_neutral(self) -> Callable[[], Vector]:
        return self._neutral.copy

    @cached_property
    def _neutral(self) -> Vector:
        return configuration.neutral(self._coordinates, self.nq)

    @checked
    def start(self, *, within_limits: bool = True) -> Vector:
        """Return the initial configuration (nq,) of the robot's file: "qpos0" of MJCF, or `neutral()` for other formats.

        Joints that exceed their limits there are moved to the limits, and loops are closed again where possible.
        `within_limits=False` leaves them where the file has them.

            q = robot.start()
        """
        return self._kept(("start", within_limits), lambda: self._found_start(within_limits)).copy()

    def _found_start(self, within_limits: bool) -> Vector:
        q = self._start_of_file()
        return self._within_limits(q) if within_limits else q

    def _start_of_file(self) -> Vector:
        if START in self.configurations:
            with suppress(ValueError):  # loops that cannot be closed
                return np.array(self.configurations[START])
        return self.neutral()

    def _within_limits(self, q: Vector) -> Vector:
        """Return q (nq,) with joints beyond their limits at the limits."""
        equal = self.lower == self.upper
        low, high = np.where(equal, -np.inf, self.lower), np.where(equal, np.inf, self.upper)
        return np.clip(q, low, high)

    @checked
    def random_configuration(self, *, rng: SeedOrNone = None, size: Size = None) -> Array:
        """Return random configurations (*size, nq), uniform within limits; a single one (nq,) without `size`.

        `rng` is a seed or a generator; without it, each call draws other numbers. Joints without limits take angles in ±pi and
        lengths in ±1 m.

            q = robot.random_configuration(rng=0)  # the same numbers in each call
            many = robot.random_configuration(size=1000)  # (1000, nq), others in each call
        """
        if rng is None and size is None:
            return self._unseeded.drawn()
        return configuration.random_configuration(self._coordinates, self.nq, rng, size)

    @cached_property
    def _unseeded(self) -> UnseededConfigurations:
        return UnseededConfigurations(self._coordinates, self.nq)

    @cached_property
    def configurations(self) -> ReferenceConfigurations:
        """Named configurations (nq,) of the file, read-only.

        They are the group states of SRDF, and the keyframes and "qpos0" (the initial configuration) of MJCF. Joints that a
        configuration does not name are at zero.

        If a configuration opens loops by more than rounding, `close` closes them near it; the independent joints keep their
        values if possible. An unknown name raises KeyError; loops that cannot be closed raise ValueError.
        """
        return ReferenceConfigurations(self.model, self.joints, self._fillings(), self._closed_near)

    def _fillings(self) -> tuple[Callable[[], Vector], ...]:
        """Return functions for configurations (nq,) that give values to joints that a configuration does not name."""
        return (self.neutral,)

    def _closed_near(self, name: str, q: Vector) -> Vector:
        """Return the named configuration, which the file gives as q, with its loops closed."""
        return q

    def _take_model(self, model: Model) -> None:
        """Take a model that differs only in its shapes."""
        self.model = model

    # how functions are made

    @property
    def _system(self) -> Any:
        """The tree that kernels read, or the mechanism if the robot has loops."""
        return self.model.tree

    @property
    def _traced_execution(self) -> str:
        """The execution of programs that cannot be rolled."""
        return "interpreted" if self.execution == "interpreted" else "traced"

    @property
    def parent(self) -> tuple[int, ...]:
        """The parent of each row of the expanded tree, which determines the sparsity of the mass matrix."""
        return tuple(self.model.tree.parent)

    @property
    def _topology(self) -> Topology:
        """The tree along which contact wrenches are propagated."""
        return self.model.topology

    def _kernel(self, kernel: Callable[..., None]) -> Callable[..., None]:
        """Return the kernel for this kind of robot that corresponds to a kernel for trees."""
        return kernel

    def _kept(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return the object that `make` makes for a key, such as a function and the frames that it is for; it is made once."""
        kept: T | None = self._cache.get(key)
        if kept is None:
            kept = self._cache[key] = make()
        return kept

    def bind(
        self,
        name: str,
        kernel: Callable[..., None],
        inputs: Sequence[Argument],
        outputs: Sequence[Output],
        constants: tuple[Any, ...] = (),
        *,
        doc: str | None = "",
        algorithm: str = "",
        part: int | None = None,
    ) -> CompiledFunction[Any]:
        """Return a kernel for trees as a compiled function of this system.

        The kernel's arguments are the system, `constants`, the inputs and the outputs. An input is a `Configuration`, a
        `Velocity` or an `Input` of any shape. `part` is that of `KernelProgram`.
        """
        program = KernelProgram(
            name,
            self._kernel(kernel),
            (self._system, *constants),
            tuple(map(self.input, inputs)),
            tuple(outputs),
            doc or "",
            part=part,
            owner=self.name,
        )
        self.require_masses_of(program)
        return CompiledFunction(program, self.execution, algorithm)

    def require_dynamics(self, what: str) -> None:
        """Raise NotDefinedError, a ValueError, if no joint moves, or if joints move links without moving any mass."""
        if not self.model.joints:
            raise NotDefinedError(f'{self.name}: {what} needs a joint that moves; load a flying robot with base="floating"')
        if self.model.massless:
            raise NotDefinedError(
                f"{self.name}: {what} needs the masses of all moving links; these have none: {listed(self.model.massless)}. "
                "Give them an <inertial> in the file, or inertias by featherweight.read(path).with_inertias(...)"
            )

    def require_masses_of(self, program: KernelProgram) -> None:
        """Raise NotDefinedError for a kernel that reads masses, if joints move links without moving any mass."""
        if self.model.massless and reads_masses(program):
            self.require_dynamics(program.name)

    def _checked(self, name: str, x: object, n: int) -> Array:
        """Return numbers (..., n) in double precision. Raises ValueError for another length."""
        if type(x) is not np.ndarray and name in self._labels:
            check_labels(f"{self.name}: {name}", x, self._labels[name])
        array = real_array(f"{self.name}: {name}", x)
        if array.shape[-1:] != (n,):
            raise ValueError(f"{self.name}: {name} must have shape (..., {n}); got {array.shape}")
        return array

    def _require_own(self, function: CompiledFunction[Any]) -> None:
        """Raise ValueError for a function of another robot, and TypeError for an object that is not a function of a robot."""
        if not isinstance(function, CompiledFunction):
            raise TypeError(f"{self.name}: expected a function of a robot, such as robot.mass_matrix; got {shown(function)}")
        kernels = function.program.kernels
        for system in (kernel.constants[0] for kernel in kernels if kernel.constants):
            if isinstance(system, type(self._system)) and system != self._system:
                raise ValueError(f"{function.name} is a function of another robot than {self.name!r}")

    def input(self, x: Argument) -> Input:
        """Return an argument with the sizes of this robot."""
        if isinstance(x, Configuration):
            return Input(x.name, (self.nq,), rate=self._rate, labels=self.labels("q"))
        return Input(x.name, (self.nv,), labels=self.labels("v")) if isinstance(x, Velocity) else x

    def labels(self, of: str) -> tuple[str, ...]:
        """Return the names of joints with one number in "q" or "v", at its place; "" at the places of other joints."""
        return self._labels[of]

    @cached_property
    def _labels(self) -> dict[str, tuple[str, ...]]:
        made: dict[str, list[str]] = {"q": [""] * self.nq, "v": [""] * self.nv}
        for j in self.joints:
            for of, place in (("q", j.q_slice), ("v", j.v_slice)):
                if place.stop - place.start == 1:
                    made[of][place.start] = j.name
        return {of: tuple(names) for of, names in made.items()}

    @cached_property
    def _rate(self) -> Program:
        """Program for the rate of change of a configuration with a velocity."""
        inputs, kernel = (Input("q", (self.nq,)), Input("v", (self.nv,))), self._kernel(integration.write_configuration_rate)
        return KernelProgram("configuration_rate", kernel, (self._system,), inputs, (Output("rate", (self.nq,)),))

    def configuration_result(self, name: str) -> Output:
        """Return an output that is a configuration; its derivatives are velocities in its tangent space."""
        inputs = Input("q", (self.nq,)), Input("rate", (self.nq,))
        kernel, result = self._kernel(integration.configuration_velocity), Output("v", (self.nv,))
        along = KernelProgram("configuration_velocity", kernel, (self._system,), inputs, (result,))
        return Output(name, (self.nq,), along=along)

    @knows_keywords
    def frame(self, frame: AnyFrame) -> ModelFrame:
        """Return a named frame, or a `Frame` that you create, on the moving body that carries it.

        "world" is the ground, unless the robot has a frame of this name. Raises ValueError for an unknown name, for a frame on
        an unknown link, and for a placement that is not a rigid motion.

            robot.frame("hand").body  # the moving body that carries the frame
        """
        return self._found(frame)[0]

    def _placed(self, frame: AnyFrame) -> Placed:
        """Return the row of the tree that carries a frame, and the frame's pose on it. Raises as `frame` does."""
        return self._found(frame)[1]

    def placements(self, frames: Sequence[AnyFrame]) -> Placements:
        """Return the placements of frames on the rows of the tree, for kernels. Raises as `frame` does."""
        return placements([self._placed(frame) for frame in frames])

    def _found(self, frame: AnyFrame) -> tuple[ModelFrame, Placed]:
        named = self._named_frames
        if isinstance(frame, Frame):
            if frame.body not in named:
                raise UnknownNameError(
                    f"frame {frame.name!r}: {self.name} has no link {choose_from(frame.body, self._frame_names)}"
                )
            link, at = named[frame.body]
            pose = Pose.of(frame.placement, f"placement of frame {frame.name!r}")
            return ModelFrame(frame.name, link.body, chained(link.placement, pose)), Placed(at.row, chained(at.pose, pose))
        if not isinstance(frame, str):
            raise TypeError(f"{self.name}: a frame is a name or a featherweight.Frame; got {shown(frame)}")
        if frame not in named:
            raise UnknownNameError(f"{self.name} has no frame {choose_from(frame, self._frame_names)}")
        return named[frame]

    @property
    def _frame_names(self) -> list[str]:
        return [f.name for f in self.frames]

    @cached_property
    def _named_frames(self) -> dict[str | None, tuple[ModelFrame, Placed]]:
        every = zip(self.model.frames, self.model.placed_frames, strict=True)
        ground = ModelFrame(WORLD, None, Pose()), Placed(-1, Pose())
        return {None: ground, WORLD: ground} | {frame.name: (frame, placed) for frame, placed in every}


def placements(placed: Sequence[Placed]) -> Placements:
    """Return the placements of frames on the rows of the tree, for kernels."""
    return Placements(tuple(p.row for p in placed), tuple(p.pose.R for p in placed), tuple(p.pose.p for p in placed))


def body_placements(robot: System) -> Placements:
    """Return the placements of the bodies' frames of the file, for kernels."""
    return placements(robot.model.placed_bodies)
