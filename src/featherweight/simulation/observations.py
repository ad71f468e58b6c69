"""Observable quantities of a simulation: energy, contacts, solver statistics, sensors, observers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..array_types import Array
from ..checks import WHOLE, PositiveCount, argument, checked
from ..engine.exclusive import Use, exclusive
from ..engine.function import CompiledFunction
from ..model.model import ModelSensor
from ..names import knows_keywords
from ..providers import provided
from ..robot.robot import Robot
from ..summaries import Several, SeveralListed
from .arguments import chosen_robots
from .contact_arrays import ContactArrays, ContactsOfRobot, ManyContacts
from .contact_stage import ContactStage
from .fleet import Fleet
from .forces import ForcesAtJoints
from .observers import Observer, Pictures, SimulationView
from .scene import Ground
from .sensed_robots import SensedRobots
from .sensor_history import SensorHistory
from .sensor_measures import add_noise, clip, measure
from .sensor_plan import SensorPlan
from .sensor_readings import SensorReadings
from .step_model import StepModel


class Observations:
    """Observable quantities of `Simulation`."""

    robot: Robot
    forces: ForcesAtJoints
    ground: Ground | None
    step_size: float
    _model: StepModel
    _stage: ContactStage
    _fleet: Fleet
    _single: bool
    _pictures: Pictures | None = None
    _observers: list[Observer]
    _history: SensorHistory | None
    _use: Use

    @property
    def steps(self) -> int:
        """The number of steps since the reset."""
        return self._fleet.steps

    @property
    def time(self) -> float:
        """The time of the state [s]. You may assign another one."""
        return self._fleet.time

    @time.setter
    @exclusive
    def time(self, time: float) -> None:
        if not math.isfinite(time):
            raise ValueError(f"time must be a finite number of seconds; got {time!r}")
        if self._history is not None:
            self._history.shift(time - self.time)
        self._fleet.set_time(float(time))

    @exclusive
    def energy(self) -> Any:
        """Return the kinetic, potential and spring energy [J], () or (robots,), with each robot's parameters (`vary`)."""
        total = self._fleet.energy()
        return float(total[0]) if self._single else total

    @exclusive
    def with_own_inertias(self, function: CompiledFunction[Any], *arguments: Array, which: Array | slice = slice(None)) -> Any:
        """Evaluate a function of the robot for some robots, each with its own inertias if `vary` made them different."""
        return self._fleet.with_own_inertias(function, *arguments, which=which)

    def varied(self, name: str, which: Array | slice = slice(None)) -> Array | None:
        """Return the values that `vary` gave to some robots, by the name of a field of `VariedArrays`.

        It is None without variation.
        """
        x: Array = getattr(self._fleet.varied, name)
        return x[which] if len(x) else None

    @property
    def opened(self) -> float:
        """The greatest residual of loop constraints at the end of the last step, before the correction."""
        return float(self._fleet.opened)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Joints whose springs or limits are not simulated, because they follow others and have no coordinate of their own."""
        return tuple(self.forces.left_out)

    @property
    def excluded_pairs(self) -> tuple[tuple[str | None, str | None], ...]:
        """Pairs of links whose shapes never touch, because they overlap in the file's configuration or at the start.

        This applies only to files without contact rules. None is the world.
        """
        return Several(self._stage.excluded)

    @exclusive
    @knows_keywords
    def contacts(self, robot: int = 0) -> ContactsOfRobot:
        """Return points (k, 3) [m], forces (k, 3) [N] and names of one robot's contacts in the last step.

        Points and forces are in the world frame; forces act on the first of the two bodies. The forces at the contacts of a
        patch are approximately those of least norm with the wrench that the solver found.
        """
        self._require_robot(robot)
        candidates, points, impulses = self._fleet.contacts_of(robot)
        every = self._stage.names
        names = [every[c] for c in candidates.tolist()]
        return ContactsOfRobot(points.copy(), impulses / self.step_size, names)

    def _require_robot(self, robot: int) -> None:
        """Raise an error for a number that is none of a robot."""
        robots, number = len(self._fleet.q), robot if type(robot) is int else argument("robot", robot, WHOLE)
        if not -robots <= number < robots:
            raise IndexError(f"robot must be a number from 0 to {robots - 1}; got {robot}")

    @exclusive
    def contacts_of_many(self, which: Array | Sequence[int] | slice = slice(None)) -> ManyContacts:
        """Return the last step's contacts of all robots, or of some: numbers (k,), a mask (robots,) or a slice."""
        if not isinstance(which, slice):
            which = chosen_robots(which, len(self._fleet.q))
        arrays: ContactArrays = self._fleet.spread_contacts(which)
        return arrays.together(which, self.step_size)

    @property
    def contact_arrays(self) -> ContactArrays:
        """The stored contacts of all robots in the last step, with a fixed number of places for each robot.

        Later steps overwrite them. Impulses are those of the solver: zero at contacts inside a patch (see `contacts`).
        """
        return self._fleet.contact_arrays()

    @property
    def fleet_arrays(self) -> Any:
        """The memory of states, inputs and contacts of all robots, for compiled kernels.

        Other arrays replace it when all robots are reset together, or need room for more contacts.
        """
        return self._fleet.home

    @cached_property
    def touching_links(self) -> list[tuple[str | None, str | None]]:
        """The two links, or frames of spheres, of each possible contact point; None is the world.

        Contact forces act on the first link.
        """
        return SeveralListed(self._stage.touching.links)

    @property
    @exclusive
    def contact_forces(self) -> Array:
        """Return the forces of the last step's contacts on each body, (nbodies, 6) or (robots, nbodies, 6).

        A row is force [N], and torque [N m] about the origin of the body's frame in the file, in that frame.
        """
        forces = self._fleet.contact_wrenches() / self.step_size
        return np.asarray(forces[0] if self._single else forces)

    @property
    @exclusive
    def limit_forces(self) -> Array:
        """Return the forces of joint limits and dry friction in the last step, (n,) or (robots, n).

        n counts the degrees of freedom of all joints.
        """
        forces = self._fleet.row_impulses() / self.step_size
        return np.asarray(forces[0] if self._single else forces)

    @property
    def solver(self) -> dict[str, Any]:
        """Statistics of the contact solver in the last step: Newton and interior-point steps, and residual [m/s].

        The values are maxima over all robots. "inexact_steps" counts steps of all robots since the last reset whose residual
        exceeded the tolerance of `ContactOptions`, but was below 1e6 times it. A step with a larger residual fails.
        """
        residual, newton_steps, interior_steps, inexact = self._fleet.solver_work()
        return {
            "newton_steps": int(newton_steps), "interior_steps": int(interior_steps), "residual": float(residual),
            "inexact_steps": inexact,
        }  # fmt: skip

    @exclusive
    @knows_keywords
    def sensors(self, noise: np.random.Generator | None = None) -> SensorReadings:
        """Return readings of the file's sensors, (nsensordata,) or (robots, nsensordata), by name: `sensors()["imu_gyro"]`.

        Order, signs and units are those of MuJoCo's `sensordata` (XML reference, chapter "sensor"), including quaternions (w,
        x, y, z). `robot.sensors` lists the sensors with their slices. Positions, velocities and energies refer to the current
        state. Accelerations and forces (touch, contact, accelerometer, force, torque, framelinacc, frameangacc, actuatorfrc,
        jointactuatorfrc, jointlimitfrc) are means over the last step. In this step the velocity changed from v to v+ at the
        acceleration (v+ - v) / h, including impulses of contacts and impacts; the axes are those at the start of the step.
        Before its first step from a state, a robot reads as if it were held still, by forces that no sensor measures.

        Sensors with a delay or an interval return earlier samples, which are zero before the start of the simulation.

        Readings are clipped to ±cutoff. With a `noise` generator, they have Gaussian noise with the file's standard deviations,
        applied before clipping; directions and quaternions keep unit length.
        """
        if noise is not None and not isinstance(noise, np.random.Generator):
            raise TypeError(f"noise must be a numpy.random.Generator, such as numpy.random.default_rng(); got {noise!r}")
        robots = self._probes
        measure(robots, robots.plan.apart)
        if noise is None and self._history is None:
            return (robots.first if self._single else robots.readings).copy()
        readings = robots.values.copy()
        if self._history is not None:
            self._history.delay(self.time, readings)
        if noise is not None:
            add_noise(readings, self.robot.sensors, noise)
            clip(readings, robots.plan.cutoffs)
        return SensorReadings(readings[0] if self._single else readings, robots.plan.names)

    def _measured(self, sensors: Sequence[ModelSensor]) -> Array:
        """Return readings (robots, nsensordata) of some sensors and zero for others, without noise and delays."""
        plan = self._probes.plan
        readings = np.zeros((len(self._fleet.q), len(plan.cutoffs)))
        if sensors:
            measured = measure(self._probes, [s for s in plan.apart if s in sensors])
            for s in sensors:
                readings[:, s.slice] = measured[:, s.slice]
        return readings

    def _sampled_step(self, history: SensorHistory, take_step: Callable[[], object]) -> None:
        """Take a step, and store the samples of its start and of the step. If anything interrupts it, nothing changes."""
        fleet, began, history = self._fleet, self.time, history.copy()
        readings, backup = self._measured(history.due(began, of_step=False)), fleet.backup()
        try:
            take_step()
            of_step = self._measured(history.due(began, of_step=True))
            history.insert(began, readings + of_step, ~fleet.failed)  # for each sensor one of the two is zero
            if fleet.on_failure == "reset" and fleet.failed.any():
                history.begin(fleet.failed, self.time)
            self._history = history
        except BaseException:
            fleet.restore(backup)
            raise

    @cached_property
    def _probes(self) -> SensedRobots:
        return SensedRobots(SensorPlan(self._model, self._stage, self.ground), self._fleet)

    @exclusive
    @checked
    def render(
        self, width: PositiveCount = 640, height: PositiveCount = 480, robot: int | None = None, camera: str | None = None
    ) -> Array:
        """Draw a picture of all robots side by side, or of `robot`, as numbers 0 to 255 of shape (height, width, 3).

        No display is needed. `camera` names one of `robot.cameras`; with several robots, it is the first robot's. Without
        `camera`, the picture shows the position of the robots at the first such call. Raises ImportError without the packages
        of the extra `render`, IndexError for an unknown robot, and ValueError for an unknown camera.
        """
        if robot is not None:
            self._require_robot(robot)
        if self._pictures is None:
            self._pictures = provided("Simulation.render")()
        return self._pictures.frame(self, (width, height), robot, camera)

    def view(self, host: str = "127.0.0.1", port: int | None = None) -> SimulationView:
        """Serve a page that shows the robot (the first of many) in the browser, at `.url`; print the URL on standard error.

        `run` moves the robot on the page, and loads its motion into the page's timeline. The page ends with `.close()` or with
        the program. Only this machine can see it unless `host` says otherwise. `port` is as in `Window`. The page is a `Window`
        that watches this simulation. Raises ImportError without viser.
        """
        opened: SimulationView = provided("Simulation.view")(self, host, port)
        return opened

    def watch(self, observer: Observer) -> None:
        """Add an observer of `run`. It receives each recorded state, and at the end the motion."""
        self._observers.append(observer)

    def _open_observers(self) -> list[Observer]:
        """Return the observers that are not closed."""
        self._observers = [x for x in self._observers if not x.closed]
        return self._observers
