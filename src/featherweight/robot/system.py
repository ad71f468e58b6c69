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
from ..model.topology import Topology
from ..model.tree import Placements
from ..model.types import Actuator, Shape

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
        """The configuration with every joint at zero, (nq,)."""
        return configuration.neutral(self._coordinates, self.nq)

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: SupportsIndex | Sequence[SupportsIndex] | None = None
    ) -> Array:
        """Configurations (*size, nq), uniform within limits; without, angles in ±pi, lengths in ±1 m."""
        return configuration.random_configuration(self._coordinates, self.nq, rng, size)

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

    def argument(self, name: str) -> Input:
        """A configuration, for a name that begins with "q", or a velocity."""
        return Input(name, (self.nq,), rate=self._rate) if name.startswith("q") else Input(name, (self.nv,))

    @cached_property
    def _rate(self) -> Program:
        """What a configuration changes by along a velocity."""
        inputs, kernel = (Input("q", (self.nq,)), Input("v", (self.nv,))), self.kernel(integration.write_configuration_rate)
        return KernelProgram("configuration_rate", kernel, (self.system,), inputs, (Output("rate", (self.nq,)),))

    def placed(self, name: str) -> Placed:
        """Where a frame lies on the row of the tree that carries it; raises ValueError for a name that is none."""
        if name not in self._placed:
            raise ValueError(f"{self.name} has no frame {name!r}; it has {', '.join(f.name for f in self.frames)}")
        return self._placed[name]

    @cached_property
    def _placed(self) -> dict[str, Placed]:
        named = zip(self.model.frames, self.model.placed_frames, strict=True)
        return {frame.name: placed for frame, placed in reversed(list(named))}

    def placements(self, names: Sequence[str]) -> Placements:
        """Frames as kernels read them."""
        return placements([self.placed(name) for name in names])


def placements(placed: Sequence[Placed]) -> Placements:
    """Frames on rows of the tree, as kernels read them."""
    return Placements(tuple(p.row for p in placed), tuple(p.pose.R for p in placed), tuple(p.pose.p for p in placed))
