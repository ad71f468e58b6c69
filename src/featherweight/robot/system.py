"""What functions of a robot are bound to: its model, its configuration space, and the kernels for its kind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np

from ..algorithms import integration
from ..engine.function import CompiledFunction
from ..engine.program import Input, KernelProgram, Output, Program
from ..model import configuration
from ..model.configuration import Coordinates
from ..model.model import Model, ModelFrame, MovingBody, MovingJoint, Placed
from ..model.placement import tidy
from ..model.topology import Topology
from ..model.tree import Placements
from ..model.types import WORLD, Actuator, AnyFrame, Frame, Pose, Shape
from .reference_configurations import ReferenceConfigurations

Array = np.ndarray[Any, np.dtype[Any]]

LOOP_TOLERANCE = 1e-4  # [m, rad] by which loops may contradict each other: files have six digits, and loops tens of joints
CONTRADICTING = "loops that contradict each other"  # in a report


class System:
    """A model, and how kernels become functions of it."""

    def __init__(self, model: Model, execution: str = "auto") -> None:
        self.model = model
        self.execution = execution

    # the model

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def nq(self) -> int:
        """Length of a configuration."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return self.model.nv

    @property
    def joints(self) -> tuple[MovingJoint, ...]:
        """Moving joints, with the slices of q and v that are theirs."""
        return self.model.joints

    @property
    def clusters(self) -> tuple[tuple[str, ...], ...]:
        """The names of joints that loops and couplings let move together only: each by itself, where there are none."""
        return tuple((joint.name,) for joint in self.joints)

    @property
    def bodies(self) -> tuple[MovingBody, ...]:
        """Moving bodies; links that are fixed to one another are one body."""
        return self.model.bodies

    @property
    def frames(self) -> tuple[ModelFrame, ...]:
        """Named frames: every link of the file, and what else it names."""
        return self.model.frames

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """What the file draws or lets touch, on moving bodies or the ground (None), in their frames of the file."""
        return self.model.shapes

    @property
    def loop_ends(self) -> tuple[tuple[str | None, str | None], ...]:
        """The moving bodies that each loop joins, None for the ground."""
        return ()

    @property
    def actuators(self) -> tuple[Actuator, ...]:
        """Drives on joints, in the order of the file."""
        return self.model.actuators

    @property
    def mass(self) -> float:
        """Total mass of the moving bodies [kg]."""
        return self.model.mass

    @property
    def gravity(self) -> tuple[float, float, float]:
        """In the world [m/s²]."""
        g = self.model.tree.gravity
        return (g[0], g[1], g[2])

    def report(self) -> dict[str, str]:
        """What the file holds that nothing here uses."""
        return dict(self.model.unused)

    # the configuration space

    @cached_property
    def _coordinates(self) -> list[Coordinates]:
        return [Coordinates(j.type, j.q_slice, j.v_slice, j.lower, j.upper) for j in self.joints]

    def neutral(self) -> Array:
        """The configuration with every joint at zero, (nq,): zero coordinates, identity rotations.

        That of an MJCF file in which MuJoCo begins is `configurations["qpos0"]`. The two are the same but for free joints,
        which are at the world's origin here, where the file places their bodies there; and for hinges and slides with a
        `ref`, which are at zero here, at `ref` there.
        """
        return configuration.neutral(self._coordinates, self.nq)

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
    def system(self) -> Any:
        """What kernels read."""
        return self.model.tree

    @property
    def parent(self) -> tuple[int, ...]:
        """The expanded tree of the velocities: where the inertia matrix may have entries."""
        return tuple(self.model.tree.parent)

    @property
    def topology(self) -> Topology:
        """The tree on which wrenches of contacts meet."""
        return self.model.topology

    @property
    def closed(self) -> bool:
        """Whether the robot has loops or couplings."""
        return False

    def kernel(self, kernel: Any) -> Any:
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
    ) -> CompiledFunction:
        """A kernel (that of a tree) as a function of this system; `constants` follow the system among the kernel's arguments.

        Inputs given by their names are a configuration "q" or velocities. `part` as in `KernelProgram`.
        """
        arguments = tuple(x if isinstance(x, Input) else self.argument(x) for x in inputs)
        program = KernelProgram(
            name, self.kernel(kernel), (self.system, *constants), arguments, tuple(outputs), doc or "", part=part
        )
        return CompiledFunction(program, self.execution, algorithm)

    def _function(
        self, member: Any, kernel: Any, inputs: Sequence[str | Input], output: Output, more: tuple[Any, ...] = (), **how: Any
    ) -> CompiledFunction:
        """A kernel as a member of a class, which has its name and docstring."""
        function = member.func if isinstance(member, cached_property) else member
        return self.bind(function.__name__, kernel, inputs, (output,), more, doc=function.__doc__, **how)

    def _require_own(self, function: CompiledFunction) -> None:
        """Refuse functions of another robot."""
        kernels = function.program.kernels if isinstance(function, CompiledFunction) else ()
        for system in (kernel.constants[0] for kernel in kernels if kernel.constants):
            if isinstance(system, type(self.system)) and system != self.system:
                raise ValueError(f"{function.name} is a function of another robot than {self.name!r}")

    def argument(self, name: str) -> Input:
        """A configuration, for a name that begins with "q", or a velocity."""
        return Input(name, (self.nq,), rate=self._rate) if name.startswith("q") else Input(name, (self.nv,))

    @cached_property
    def _rate(self) -> Program:
        """What a configuration changes by along a velocity."""
        inputs, kernel = (Input("q", (self.nq,)), Input("v", (self.nv,))), self.kernel(integration.write_configuration_rate)
        return KernelProgram("configuration_rate", kernel, (self.system,), inputs, (Output("rate", (self.nq,)),))

    def frame(self, frame: AnyFrame) -> ModelFrame:
        """A frame of the robot by its name, or one made for the purpose, on the moving body that carries it.

        Raises ValueError for a name that is none, or a frame on no link or that is not placed by a rigid motion.
        """
        return self._found(frame)[0]

    def placed(self, frame: AnyFrame) -> Placed:
        """Where a frame lies on the row of the tree that carries it; raises as `frame` does."""
        return self._found(frame)[1]

    def placements(self, frames: Sequence[AnyFrame]) -> Placements:
        """Frames as kernels read them."""
        return placements([self.placed(frame) for frame in frames])

    def _found(self, frame: AnyFrame) -> tuple[ModelFrame, Placed]:
        named = self._named_frames
        if isinstance(frame, Frame):
            if frame.body in named:
                link, at = named[frame.body]
            elif frame.body in (None, WORLD):
                link, at = ModelFrame(WORLD, None, Pose()), Placed(-1, Pose())
            else:
                raise ValueError(f"frame {frame.name!r}: {self.name} has no link {frame.body!r}; it has {self._frame_names}")
            pose = Pose.of(frame.placement, f"placement of frame {frame.name!r}")
            return ModelFrame(frame.name, link.body, tidy(link.placement @ pose)), Placed(at.row, tidy(at.pose @ pose))
        if not isinstance(frame, str):
            raise TypeError(f"{self.name}: a frame is a name or a featherweight.Frame; got {frame!r}")
        if frame not in named:
            raise ValueError(f"{self.name} has no frame {frame!r}; it has {self._frame_names}")
        return named[frame]

    @property
    def _frame_names(self) -> str:
        return ", ".join(f.name for f in self.frames)

    @cached_property
    def _named_frames(self) -> dict[str | None, tuple[ModelFrame, Placed]]:
        every = zip(self.model.frames, self.model.placed_frames, strict=True)
        return {frame.name: (frame, placed) for frame, placed in every}


def placements(placed: Sequence[Placed]) -> Placements:
    """Frames on rows of the tree, as kernels read them."""
    return Placements(tuple(p.row for p in placed), tuple(p.pose.R for p in placed), tuple(p.pose.p for p in placed))
