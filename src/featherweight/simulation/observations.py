"""What can be seen of a simulation: energy, contacts, the solver's work, windows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.function import CompiledFunction
from ..robot.robot import Robot
from .contact_arrays import ContactArrays, ManyContacts
from .contact_stage import ContactStage
from .fleet import Fleet
from .forces import ForcesAtJoints
from .scene import Ground, HeightField, Plane
from .step_model import StepModel

if TYPE_CHECKING:
    from ..viewer import Window

Array = np.ndarray[Any, np.dtype[Any]]

SHOWN = 3.0  # [m] on each side of an inclined plane's point


class Observations:
    """What `Simulation` lets see."""

    robot: Robot
    forces: ForcesAtJoints
    ground: Ground | None
    step_size: float
    _model: StepModel
    _stage: ContactStage
    _fleet: Fleet
    _single: bool
    _scene: Any = None
    _windows: list[Window]

    def energy(self) -> Any:
        """Kinetic, potential and spring energy [J], () or (robots,), of each robot as `vary` made it."""
        total = self._fleet.energy(self._fleet.q, self._fleet.v)
        return float(total[0]) if self._single else total

    def with_own_inertias(self, function: CompiledFunction[Any], *arguments: Array, which: Any = slice(None)) -> Any:
        """A function of the robot, at arguments of some robots, each with its own inertias where `vary` made them differ."""
        return self._fleet.with_own_inertias(function, *arguments, which=which)

    def varied(self, name: str, which: Any = slice(None)) -> Array | None:
        """Return what `vary` gave some robots, by a field's name in `VariedArrays`; None where they are as in the file."""
        x: Array = getattr(self._fleet.varied, name)
        return x[which] if len(x) else None

    @property
    def opened(self) -> float:
        """How far loops were open after the last step, before they were closed: the greatest residual of their constraints."""
        return float(self._fleet.opened)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Joints whose springs or limits are not simulated: they follow others and have no coordinate of their own."""
        return tuple(self.forces.left_out)

    def contacts(self, robot: int = 0) -> tuple[Array, Array, list[str]]:
        """Of the last step, for one robot: points (k, 3) [m] and forces (k, 3) [N] in the world, on the first of two bodies,
        and what touches."""
        candidates, points, impulses = self._fleet.contact_arrays().of_robot(robot)
        names = [self._stage.names[int(c)] for c in candidates]
        return points.copy(), impulses / self.step_size, names

    def contacts_of_many(self, which: Array | Sequence[int] | slice = slice(None)) -> ManyContacts:
        """Of the last step, for all robots, or some by their numbers (k,), a mask (robots,) or a slice."""
        arrays: ContactArrays = self._fleet.contact_arrays()
        return arrays.together(which, self.step_size)

    @cached_property
    def touching_links(self) -> list[tuple[str | None, str | None]]:
        """The two links, or frames of spheres, of each point at which something may touch; None is the world.

        Contact forces are on the first one.
        """
        return self._stage.touching.links

    @property
    def contact_forces(self) -> Array:
        """Forces of the last step's contacts on each body, (nbodies, 6) or (robots, nbodies, 6): force [N], and torque [N m]
        about the origin of the body's frame of the file, in that frame."""
        forces = self._fleet.contact_wrenches() / self.step_size
        return np.asarray(forces[0] if self._single else forces)

    @property
    def limit_forces(self) -> Array:
        """Forces of the last step's joint limits and dry friction, (n,) or (robots, n), by degree of freedom of all joints."""
        forces = self._fleet.row_impulses() / self.step_size
        return np.asarray(forces[0] if self._single else forces)

    @property
    def solver(self) -> dict[str, Any]:
        """The contact solver's work in the last step: sweeps and Newton steps, residual [m/s]; the worst of many robots."""
        residual, sweeps, newton_steps = self._fleet.solver_work()
        return {"sweeps": int(sweeps), "newton_steps": int(newton_steps), "residual": float(residual)}

    def render(self, width: int = 640, height: int = 480, robot: int | None = None) -> Array:
        """A picture of all robots beside each other, or of one alone, as numbers 0 to 255 of shape (height, width, 3).

        It needs no display. The camera looks at where they are when the first picture is taken. Raises ImportError without
        the packages of the extra `render`, and IndexError for a number that no robot has.
        """
        q = self._fleet.q if robot is None else self._fleet.q[robot][None]
        if self._scene is None or (self._scene.size, len(self._scene.start)) != ((width, height), len(q)):
            from ..viewer.offscreen import OffscreenScene  # brings trimesh

            flat = self._flat_ground()
            self._scene = OffscreenScene(self.robot, (width, height), q=q, ground="below" if self.ground is None else flat)
            if self.ground is not None and flat is None:
                self._scene.add_heights(*_heights(self.ground))
        picture: Array = self._scene.frame(q)
        return picture

    def _flat_ground(self) -> float | None:
        """The height of a ground that is level."""
        flat = isinstance(self.ground, Plane) and self.ground.normal[2] > 1.0 - 1e-9
        return float(self.ground.point[2]) if flat else None  # type: ignore[union-attr]

    def view(self, host: str = "127.0.0.1", port: int | None = None) -> Window:
        """Serve a page that shows the robot (the first of many) in the browser, at `.url`, which a line on standard error says.

        `run` moves the robot on the page, and the page's time line has the last motion. The page ends with `.close()` or with
        the program. Only this machine can see it unless `host` says otherwise. `port` is as of `Window`. Raises ImportError
        without viser.
        """
        from ..viewer import Window

        height = self._flat_ground()
        window = Window(self.robot, host=host, port=port, q=self._fleet.q[0], ground=height)
        if self.ground is not None and height is None:
            window.add_heights(*_heights(self.ground))
        self._windows.append(window)
        return window

    def _open_windows(self) -> list[Window]:
        """The windows that nobody has closed meanwhile."""
        self._windows = [w for w in self._windows if not w.closed]
        return self._windows


def _heights(ground: Ground) -> tuple[Array, Array, Array]:
    """x (n,), y (m,) and z (n, m) of a ground, to be drawn."""
    if isinstance(ground, HeightField):
        n, m = ground.grid.shape
        return np.linspace(*ground.x, n), np.linspace(*ground.y, m), ground.grid
    x = y = np.linspace(-SHOWN, SHOWN, 2)
    nx, ny, nz = ground.normal
    px, py, pz = ground.point
    return x + px, y + py, pz - (nx * x[:, None] + ny * y[None]) / nz
