"""States of robots at one instant, with the quantities that MuJoCo's environments use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from ..algorithms.about_center_of_mass import PrincipalInertias, about_center_of_mass
from ..array_types import Array, Matrix, Tensor, Vector
from ..engine.function import CompiledFunction
from ..engine.program import Output
from ..model.description import Description
from ..model.types import Frame
from ..robot.arguments import Q, V
from ..robot.qpos_qvel import QposQvel
from ..robot.robot import Robot
from ..simulation import Simulation
from ..simulation.forces.at_joints import forces_at_joints
from ..simulation.simulation_options import of_the_file
from .contact_forces import Forces

T = TypeVar("T")

HOME = "qpos0"  # among configurations


def home_of(robot: Robot) -> Vector:
    """Return the configuration (nq,) around which episodes begin: the description's, or the start of simulations."""
    return np.array(robot.configurations[HOME]) if HOME in robot.configurations else robot.start()


class once(Generic[T]):  # functools.cached_property has a lock that takes longer than some quantities here
    """An attribute that is computed on first access."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function, self._name, self.__doc__ = function, function.__name__, function.__doc__

    def __get__(self, owner: object, kind: type) -> T:
        if owner is None:
            return self  # type: ignore[return-value]
        value: T = self._function(owner)
        owner.__dict__[self._name] = value
        return value


class Links:
    """The links of a file in its order, including links fixed to others: MuJoCo's bodies without the world."""

    def __init__(self, description: Description, robot: Robot) -> None:
        self.names = [frame.name for frame in robot.frames]
        self.timestep, _ = of_the_file(robot, None, None)  # [s]
        self.robot, self.order = robot, QposQvel.in_own_order(robot)
        self.home = self.order.qpos(home_of(robot))  # (nq,)
        self.actuators = forces_at_joints(robot, robot.actuators)
        self.called: dict[int, CompiledFunction[Any]] = {}  # by address: functions that compiled tasks call, kept alive here
        self._inertia = {body.name: body.inertia for body in description.bodies}

    def require_own_inertias(self, varied: bool) -> None:
        """Raise NotImplementedError if `vary` gave bodies inertias that differ from the file's."""
        if varied:
            raise NotImplementedError(
                "cinert and cvel belong to links of the file, but vary(parameters=) sets inertias of bodies, which several "
                "links may share: leave them out of observations (include_cinert_in_observation=False, "
                "include_cvel_in_observation=False), or do not vary the parameters"
            )

    @cached_property
    def about_center_of_mass(self) -> CompiledFunction:
        """The function of q, v that returns centre of mass (3), and inertias (links, 10) and velocities (links, 6) about it."""
        frames, masses, moments = [], [], []
        for name in self.names:
            mass, center, (xx, xy, xz, yy, yz, zz) = self._inertia[name]
            principal, axes = np.linalg.eigh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = axes * np.linalg.det(axes), center
            frames.append(Frame(name, name, T))
            masses.append(mass)
            moments.append(tuple(principal.tolist()))
        constants = self.robot.placements(frames), PrincipalInertias(tuple(masses), tuple(moments))
        count = len(frames)
        outputs = Output("center", (3,)), Output("inertia", (count, 10)), Output("velocity", (count, 6))
        return self.robot.bind("about_center_of_mass", about_center_of_mass, (Q, V), outputs, constants)


class Snapshot:
    """State of robots at one instant: q (robots, nq), v (robots, nv), and quantities that are computed on first access.

    Contact forces and controls (robots, nu) are available if the task sets `asks_for_forces`. Spatial vectors follow MuJoCo:
    (angular, linear) in the world's axes, about each robot's centre of mass.
    """

    def __init__(
        self, links: Links, q: Matrix, v: Matrix, forces: Forces | None = None, control: Matrix | None = None,
        of: tuple[Simulation, Array | slice] | None = None,
    ) -> None:  # fmt: skip
        """Store a state. `of` is the simulation and which of its robots these are, since robots may differ by `vary`."""
        self.links, self.q, self.v, self._forces, self._control, self._of = links, q, v, forces, control, of
        self.terms: dict[Any, Any] = {}  # intermediate results that terms of a task share

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"terms": {}}

    def as_before(self) -> Snapshot:
        """Return the same instant as the start of the next step: without forces, controls and terms."""
        if self._forces is None and self._control is None:
            self.terms.clear()  # which refer to the snapshot before this one
            return self
        found, before = self.__dict__, Snapshot(self.links, self.q, self.v, of=self._of)
        for name in ("qpos", "center_of_mass"):
            if name in found:
                before.__dict__[name] = found[name]
        return before

    @once
    def qpos(self) -> Matrix:
        """Positions (robots, nq) in MuJoCo's order."""
        return self.links.order.qpos(self.q)

    @once
    def qvel(self) -> Matrix:
        """Velocities (robots, nv) in MuJoCo's order and frames."""
        return self.links.order.qvel(self.q, self.v)

    @once
    def center_of_mass(self) -> Matrix:
        """Centres of mass (robots, 3) [m]."""
        function = self.links.robot.center_of_mass
        if self._of is None:
            return np.asarray(function(self.q))
        simulation, which = self._of
        return np.asarray(simulation.with_own_inertias(function, self.q, which=which))

    @once
    def _about_center_of_mass(self) -> Any:
        self.links.require_own_inertias(self._varied("parameters") is not None)
        return self.links.about_center_of_mass(self.q, self.v)

    @property
    def cinert(self) -> Tensor:
        """Inertias (robots, links, 10): rotational (xx, yy, zz, xy, xz, yz), mass times the link's centre of mass, mass."""
        return np.asarray(self._about_center_of_mass.inertia)

    @property
    def cvel(self) -> Tensor:
        """Velocities (robots, links, 6)."""
        return np.asarray(self._about_center_of_mass.velocity)

    @once
    def cfrc_ext(self) -> Tensor:
        """Contact forces (robots, links, 6)."""
        forces: Forces = known("contact forces", self._forces)
        return forces.about(lambda: self.center_of_mass, len(self.links.names))

    @property
    def qfrc_actuator(self) -> Matrix:
        """Joint forces (robots, nv) of actuators."""
        return self.links.actuators.of_drives(self.q, self.v, known("controls", self._control), self._varied("drives"))

    def _varied(self, name: str) -> Array | None:
        if self._of is None:
            return None
        simulation, which = self._of
        return simulation.varied(name, which)


def known(name: str, x: T | None) -> T:
    """Return forces or controls of a snapshot. Raises ValueError if the task has not asked for them."""
    if x is None:
        raise ValueError(f"this snapshot has no {name}: set asks_for_forces = True in the class of the task")
    return x
