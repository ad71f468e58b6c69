"""Observable quantities of a simulation: energy, contacts, the solver's work, observers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..engine.function import CompiledFunction
from ..model.model import ModelSensor
from ..providers import provided
from ..robot.robot import Robot
from ..summaries import Several, SeveralListed
from .contact_arrays import ContactArrays, ContactsOfRobot, ManyContacts
from .contact_stage import ContactStage
from .fleet import Fleet
from .forces import ForcesAtJoints
from .observers import Observer, Pictures, SimulationView
from .scene import Ground
from .sensed_robots import Probes, SensedRobots
from .sensor_history import SensorHistory
from .sensor_measures import add_noise, clip, measured
from .sensor_readings import SensorReadings
from .step_model import StepModel

Array = np.ndarray[Any, np.dtype[Any]]


class Observations:
    """Observable quantities of `Simulation`."""

    robot: Robot
    forces: ForcesAtJoints
    ground: Ground | None
    step_size: float
    time: float
    _model: StepModel
    _stage: ContactStage
    _fleet: Fleet
    _single: bool
    _pictures: Pictures | None = None
    _observers: list[Observer]
    _history: SensorHistory | None

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

    @property
    def excluded_pairs(self) -> tuple[tuple[str | None, str | None], ...]:
        """Links whose shapes never touch because they overlap as their file, which has no rules for contact, draws them, or at
        the start; None is the world."""
        return Several(self._stage.excluded)

    def contacts(self, robot: int = 0) -> ContactsOfRobot:
        """Return points (k, 3) [m], forces (k, 3) [N] and names of one robot's contacts in the last step.

        Points and forces are in the world; forces act on the first of the two bodies. Forces at the contacts of a patch are
        nearly those of least norm with the wrench that the solver found.
        """
        candidates, points, impulses = self._fleet.spread_contacts(robot).of_robot(robot)
        names = [self._stage.names[int(c)] for c in candidates]
        return ContactsOfRobot(points.copy(), impulses / self.step_size, names)

    def contacts_of_many(self, which: Array | Sequence[int] | slice = slice(None)) -> ManyContacts:
        """Return the last step's contacts of all robots, or of some by their numbers (k,), a mask (robots,) or a slice."""
        arrays: ContactArrays = self._fleet.spread_contacts(which)
        return arrays.together(which, self.step_size)

    @property
    def contact_arrays(self) -> ContactArrays:
        """Contacts of the last step of all robots as they are kept: with room for some of each, which steps write to.

        Impulses are as they were solved for: zero at contacts inside of a patch (see `contacts`).
        """
        return self._fleet.contact_arrays()

    @property
    def fleet_arrays(self) -> Any:
        """States, inputs and contacts of all robots where they lie, for compiled kernels; other arrays take their place when
        robots begin anew together, or need room for more contacts."""
        return self._fleet.home

    @cached_property
    def touching_links(self) -> list[tuple[str | None, str | None]]:
        """The two links, or frames of spheres, of each point at which something may touch; None is the world.

        Contact forces are on the first one.
        """
        return SeveralListed(self._stage.touching.links)

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
        """Work of the contact solver in the last step, the most of all robots: Newton and interior-point steps, residual [m/s].

        "inexact_steps" counts steps of all robots since the last reset that ended above the tolerance of `ContactOptions`, but
        below 1e6 times it. A step that ends higher is not taken.
        """
        residual, newton_steps, interior_steps, inexact = self._fleet.solver_work()
        return {
            "newton_steps": int(newton_steps), "interior_steps": int(interior_steps), "residual": float(residual),
            "inexact_steps": inexact,
        }  # fmt: skip

    def sensors(self, noise: np.random.Generator | None = None) -> SensorReadings:
        """Return readings of the file's sensors, (nsensordata,) or (robots, nsensordata), and by name: `sensors()["imu_gyro"]`.

        Order, signs and units are those of MuJoCo's `sensordata` (XML reference, chapter "sensor"), quaternions (w, x, y, z)
        too; `robot.sensors` lists the sensors with their slices. Positions, velocities and energies are those of the present
        state. Accelerations and forces (touch, contact, accelerometer, force, torque, framelinacc, frameangacc, actuatorfrc,
        jointactuatorfrc, jointlimitfrc) are means over the last step, in which the velocity changed from v to v+ at the
        acceleration (v+ - v) / h, impulses of contacts and impacts included, in the axes of the step's beginning. A robot that
        has taken no step from its state reads as if it were held still there, by nothing that a sensor measures.

        Sensors with a delay or an interval read what they measured before, which is zero before the simulation began.

        Readings are cut to ±cutoff. With a `noise` generator they have Gaussian noise of the file's standard deviations, by
        which directions and quaternions stay of unit length, and which cutoffs cut, too.
        """
        if noise is not None and not isinstance(noise, np.random.Generator):
            raise TypeError(f"noise must be a numpy.random.Generator, as numpy.random.default_rng(); got {noise!r}")
        readings = self._measured(self.robot.sensors)
        if self._history is not None:
            self._history.delay(self.time, readings)
        if noise is not None:
            add_noise(readings, self.robot.sensors, noise)
            clip(readings, self.robot.sensors)
        return SensorReadings(readings[0] if self._single else readings, self._probes.names)

    def _measured(self, sensors: Sequence[ModelSensor]) -> Array:
        """Return readings (robots, nsensordata) of some sensors within their cutoffs, without noise and delays."""
        probes = self._probes
        robots = SensedRobots(probes, self._model, self._stage, self._fleet, self.forces, self.time)
        groups = probes.groups if len(sensors) == len(self.robot.sensors) else probes.groups_of(sensors)
        readings = measured(robots, groups)
        clip(readings, sensors)
        return readings

    def _before_step(self, history: SensorHistory) -> tuple[SensorHistory, float, Array]:
        """Return what sensors that keep samples measure at the beginning of a step, and its time."""
        return history, self.time, self._measured(history.due(self.time, of_step=False))

    def _after_step(self, before: tuple[SensorHistory, float, Array]) -> None:
        """Keep samples of the last step, and of its beginning."""
        (history, began, readings), fleet = before, self._fleet
        of_step = self._measured(history.due(began, of_step=True))
        history.insert(began, readings + of_step, ~fleet.failed)  # each is zero where the other is not
        if fleet.on_failure == "reset" and fleet.failed.any():
            history.begin(fleet.failed, self.time)

    @cached_property
    def _probes(self) -> Probes:
        return Probes(self.robot, self.ground)

    def render(self, width: int = 640, height: int = 480, robot: int | None = None, camera: str | None = None) -> Array:
        """A picture of all robots beside each other, or of one alone, as numbers 0 to 255 of shape (height, width, 3).

        It needs no display. `camera` is the name of one of `robot.cameras`, the first robot's where several are drawn; without
        it, the camera looks at where they are when the first such picture is taken. Raises ImportError without the packages of
        the extra `render`, IndexError for a number that no robot has, and ValueError for a camera that the robot does not have.
        """
        if self._pictures is None:
            self._pictures = provided("Simulation.render")()
        return self._pictures.frame(self, (width, height), robot, camera)

    def view(self, host: str = "127.0.0.1", port: int | None = None) -> SimulationView:
        """Serve a page that shows the robot (the first of many) in the browser, at `.url`, which a line on standard error says.

        `run` moves the robot on the page, and the page's time line has the last motion. The page ends with `.close()` or with
        the program. Only this machine can see it unless `host` says otherwise. `port` is as of `Window`. The page is a `Window`
        that watches this simulation. Raises ImportError without viser.
        """
        opened: SimulationView = provided("Simulation.view")(self, host, port)
        return opened

    def watch(self, observer: Observer) -> None:
        """Let an observer follow `run` from now on: it is told of each recorded state, and at the end of the motion."""
        self._observers.append(observer)

    def _open_observers(self) -> list[Observer]:
        """The observers that nobody has closed meanwhile."""
        self._observers = [x for x in self._observers if not x.closed]
        return self._observers
