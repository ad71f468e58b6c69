"""Drumwright (2012), figure 4: centipedes that walk on a plane, with four algorithms for the contact inertia, as JSON.

    OPENBLAS_NUM_THREADS=1 PYTHONPATH=benchmarks/peers python benchmarks/papers/drumwright2012_centipede.py

The script needs its own process, because OpenBLAS reads its number of threads and selects its kernels when it is loaded. Times
are processor times, as in the paper, of everything in a step: control of the gait, dynamics, collision detection, contact
inertia, impulses, and updates when feet land or lift. The four algorithms run in turns.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from statistics import mean, median
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csr_array

from featherweight import BilateralContact, ContactOptions, ContactPoint, Plane, Robot, Simulation, build, robots
from featherweight.array_types import Array
from featherweight.contact.contact_solver import resolve
from featherweight.engine.loops.kernels import compiled
from featherweight.simulation.robot_stages import first_contacts

SIZES = (10, 50, 100, 150, 200, 250)
STEPS, STEP = 1000, 1e-5  # number and length [s] of steps, as in the paper
SECONDS = 4.0  # [s] of processor time after which a slow algorithm stops
TURN = 0.1  # seconds
THROUGHOUT = "pv-osimr"  # the algorithm of the whole walk
SIDES = {"left": 1.0, "right": -1.0}

PERIOD, WAVE = 0.5, 12.7  # [s] of a leg, and segments of a wave along the body
SWING, LIFT = 0.15, 0.15  # amplitudes of the hips, sideways and upwards [rad]
STIFFNESS, DAMPING = 0.8, 0.02  # of all joints [N m/rad, N m s/rad]
HEIGHT = robots.centipede_walker.LOWER

RESOLVE = compiled(resolve)


class Gait:
    """The gait: the two legs of a segment alternate, with a phase shift from segment to segment: a wave from head to tail.

    Springs and dampers pull the joints to the wave; standing legs also carry their share of the weight.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        joints = {j.name: j for j in robot.joints}
        self.legs = [(i, side) for i in range(sum(b.name.startswith("segment") for b in robot.bodies)) for side in SIDES]
        hips = [joints[f"hip-{i}-{side}"] for i, side in self.legs]
        self.turn = np.array([range(j.q_slice.start, j.q_slice.stop) for j in hips])  # indices in q
        self.hip = np.array([range(j.v_slice.start, j.v_slice.stop) for j in hips])  # indices in v
        self.knee = np.array([joints[f"knee-{i}-{side}"].v_slice.start for i, side in self.legs])
        single = [j for j in robot.joints if j.name.startswith(("knee", "bend"))]
        self.single = np.array([[j.q_slice.start, j.v_slice.start] for j in single]).T
        self.sign = np.array([SIDES[side] for _, side in self.legs])
        self.ahead = np.array([0.05 + 0.5 * (side == "right") - i / WAVE for i, side in self.legs])
        frames = robot.frame_jacobian([f"foot-{i}-{side}" for i, side in self.legs[:2]])
        up = frames(robot.neutral())[:, 2]
        columns = [[*self.hip[k], self.knee[k]] for k in range(2)]
        self._lift = np.array([up[k, columns[k]] for k in range(2)])  # velocities of a foot by each joint of its leg
        weight = robot.gravity_force(robot.neutral())
        self._weight = np.array([weight[columns[k]] for k in range(2)])

    def wave(self, t: float) -> tuple[Array, Array, Array]:
        """Return the hip angles about z and x of the segment at a time, and which legs stand."""
        phase = (t / PERIOD + self.ahead) % 1.0
        stands = phase < 0.5
        yaw = SWING * np.where(stands, 4.0 * phase - 1.0, 3.0 - 4.0 * phase)
        roll = np.where(stands, 0.0, -LIFT * np.sin(2.0 * np.pi * phase))
        return self.sign * yaw, self.sign * roll, stands

    def rates(self, t: float) -> Array:
        """Return approximate angular velocities of the hips: the rates of the two angles about their axes [rad/s]."""
        phase = (t / PERIOD + self.ahead) % 1.0
        stands = phase < 0.5
        yaw = SWING / PERIOD * np.where(stands, 4.0, -4.0)
        roll = np.where(stands, 0.0, -LIFT / PERIOD * 2.0 * np.pi * np.cos(2.0 * np.pi * phase))
        return np.stack([self.sign * roll, 0.0 * yaw, self.sign * yaw], axis=1)

    def quaternions(self, t: float) -> Array:
        yaw, roll = (0.5 * x for x in self.wave(t)[:2])
        s, c, x, w = np.sin(yaw), np.cos(yaw), np.sin(roll), np.cos(roll)
        return np.stack([c * x, s * x, s * w, c * w], axis=1)

    def start(self, t: float = 0.0) -> tuple[Array, Array]:
        """Return a state on the feet, with the speed of the gait."""
        q, v = self.robot.neutral(), np.zeros(self.robot.nv)
        q[2] = HEIGHT
        q[self.turn] = self.quaternions(t)
        v[self.hip] = self.rates(t)
        v[0] = robots.centipede_walker.UPPER * 4.0 * SWING / PERIOD
        return q, v

    def forces(self, t: float, q: Array, v: Array) -> Array:
        """Return the joint forces (nv)."""
        aim, at = self.quaternions(t).T, q[self.turn].T
        e = at[3] * aim[:3] - aim[3] * at[:3] - np.cross(at[:3], aim[:3], axis=0)
        tau = -DAMPING * v
        tau[:6] = 0.0
        tau[self.hip] += DAMPING * self.rates(t) + 2.0 * STIFFNESS * np.where(aim[3] * at[3] < 0.0, -e, e).T
        place, column = self.single
        tau[column] -= STIFFNESS * q[place]
        stands = self.wave(t)[2]
        share = self.robot.mass * 9.81 / max(int(stands.sum()), 1) * stands
        held = self._weight[None] - share.reshape(-1, 2)[..., None] * self._lift
        held = held.reshape(-1, 4)
        tau[self.hip] += held[:, :3]
        tau[self.knee] += held[:, 3]
        return tau


class Inertia:
    """J M⁻¹ Jᵀ of changing contacts, from J and a matrix of the robot."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.M: Array = np.empty((robot.nv, robot.nv))
        self._contacts: list[BilateralContact] = []

    def __call__(self, contacts: list[BilateralContact], q: Array) -> Array:
        if contacts is not self._contacts:
            self._contacts = contacts
            self.jacobian = Robot(self.robot.model, "rolled").contact_jacobian(contacts)
            self.J: Array = np.empty((3 * len(contacts), self.robot.nv))
            self.change(contacts)
        self.jacobian(q[0], out=self.J)
        return self.of(q[0])[None]

    def change(self, contacts: list[BilateralContact]) -> None:
        """Prepare for a new set of contacts."""

    def of(self, q: Array) -> Array:
        raise NotImplementedError


class ByInverse(Inertia):
    """The inverse matrix in Θ(n²), and its products with the nonzero entries of J, most of them in one leg's columns."""

    def change(self, contacts: list[BilateralContact]) -> None:
        rows = [self.robot._topology.support(self.robot._placed(c.frame).row) for c in contacts]
        carried = np.bincount(np.concatenate(rows), minlength=self.robot.nv)
        self.shared = int((carried > 1).sum())
        self.used = np.concatenate([np.flatnonzero(carried > 1), np.flatnonzero(carried == 1)])
        place = {int(column): k - self.shared for k, column in enumerate(self.used)}
        entries = [(3 * c + k, i) for c, row in enumerate(rows) for k in range(3) for i in row if carried[i] == 1]
        self.entries = np.array(entries).T
        self.pattern = self.entries[0], np.array([place[i] for _, i in entries])

    def of(self, q: Array) -> Array:
        self.robot.inverse_mass_matrix(q, out=self.M, threads=1)
        d = self.shared
        N = self.M.take(self.used, axis=0).take(self.used, axis=1)
        J = self.J[:, self.used[:d]]
        lone = csr_array((self.J[*self.entries], self.pattern), shape=(len(J), len(self.used) - d))
        R = J @ N[:d] + lone @ N[d:]
        return np.asarray(R[:, :d] @ J.T + (lone @ R[:, d:].T).T)


class ByLapack(Inertia):
    """Cholesky factors by LAPACK, Y = L⁻¹ Jᵀ by a triangular solution, and Yᵀ Y by BLAS, without copies."""

    def of(self, q: Array) -> Array:
        self.robot.mass_matrix(q, out=self.M, threads=1)
        lapack.dpotrf(self.M.T, lower=1, clean=0, overwrite_a=1)
        lapack.dtrtrs(self.M.T, self.J.T, lower=1, overwrite_b=1)
        return np.asarray(self.J @ self.J.T)  # NumPy calls dsyrk, which computes one half


WAYS: dict[str, Any] = {"global": ByInverse, "lapack": ByLapack, "ltl": "ltl", "pv-osimr": "pv-osimr"}


def clocked(owner: Any, name: str) -> list[float]:
    """Record the times of a method's calls from this point on [s]."""
    call = getattr(owner, name)
    times: list[float] = []

    def timed(*args: Any) -> Any:
        begun = time.thread_time()
        result = call(*args)
        times.append(time.thread_time() - begun)
        return result

    setattr(owner, name, timed)
    return times


def whole(times: list[float]) -> float:
    """Return the time of all STEPS, scaled from these; the first step is set apart, because it prepares the others."""
    return times[0] + (STEPS - 1) * mean(times[1:])


class Walk:
    """A walk of a centipede, and the times of its steps [s]."""

    def __init__(self, segments: int, way: str) -> None:
        robot = build(robots.centipede(segments), execution="rolled")
        self.gait = Gait(robot)
        made = WAYS[way] if isinstance(WAYS[way], str) else WAYS[way](robot)
        feet = [ContactPoint(f"foot-{i}-{side}") for i, side in self.gait.legs]
        self.simulation = Simulation(
            robot, STEP, spheres=feet, shapes=False, ground=Plane(), contact=ContactOptions(delassus=made, margin=1e-4)
        )
        self.simulation.reset(*self.gait.start())
        self.steps: list[float] = []
        self.spent = 0.0
        self.inertia = clocked(self.simulation._plant.contacts.inertia, "of_set")
        self.solver: list[float] = []
        self.sets: list[bytes] = []
        self.newton = 0
        self.depth = self.residual = 0.0  # the largest so far [m, m/s]
        self.count = 0  # contacts of the last step
        self.impulse = np.zeros(3)  # sum over all contacts and steps [N s]

    def step(self) -> None:
        s, before = self.simulation, self._impulses()
        begun = time.thread_time()
        s.step(self.gait.forces(s.time, s.q, s.v))
        self.steps.append(time.thread_time() - begun)
        self.spent += self.steps[-1]
        touching = self._touching
        count = int(touching.counts[0])
        self.sets.append(touching.contacts.candidate[:count].tobytes())
        self.newton += s.solver["newton_steps"]
        self.residual = max(self.residual, s.solver["residual"])
        self.depth = max(self.depth, -float(touching.contacts.gap[:count].min(initial=0.0)))
        self.impulse += touching.impulses.force[:count].sum(axis=0)
        self.count = count
        self._clock_solver(before)

    @property
    def _touching(self) -> Any:
        """Return the contacts of the last step with its results."""
        return self.simulation._fleet._tables[-1].content.touching

    def _impulses(self) -> tuple[Array, Array]:
        """Return the contacts whose impulses start the next step."""
        stored = self.simulation.contact_arrays
        candidates, impulses = (x[0, : stored.counts[0]] for x in (stored.candidate, stored.impulse))
        return candidates.copy(), impulses.copy()

    def _clock_solver(self, before: tuple[Array, Array]) -> None:
        """Solve the contact problem of the last step again, from the same start, to measure the time."""
        t = self._touching
        kept = t.impulses.last_force.copy()
        t.impulses.last_force[:] = 0.0
        t.impulses.last_force[before[0]] = before[1]
        arguments = (
            t.model,
            first_contacts(t.contacts, int(t.counts[2])),
            t.kinematics,
            t.inertia.of_sets,
            t.impulses,
            t.workspace,
        )
        begun = time.thread_time()
        RESOLVE(*arguments)
        self.solver.append(time.thread_time() - begun)
        t.impulses.last_force[:] = kept

    @property
    def changes(self) -> int:
        return sum(a != b for a, b in zip(self.sets, self.sets[1:], strict=False))

    def found(self) -> dict[str, Any]:
        """Return the times of STEPS steps, of contact inertia and of the solver [s], and results of the walk."""
        weight = 9.81 * self.simulation.robot.mass
        return {
            "steps": len(self.steps), "step": median(self.steps), "nv": self.simulation.robot.nv,
            "seconds": whole(self.steps), "inertia": whole(self.inertia), "solver": whole(self.solver),
            "contacts": self.count, "changes": self.changes, "newton steps": self.newton,
            "carried": self.impulse[2] / (weight * STEP * len(self.steps)), "depth": self.depth, "residual": self.residual,
        }  # fmt: skip


def walks(segments: int, ways: Iterable[str] = WAYS) -> dict[str, Walk]:
    """Simulate the same walk by all algorithms in turns, each until the end or the time limit."""
    made = {way: Walk(segments, way) for way in ways}
    going = dict(made)
    while going:
        for way, walk in list(going.items()):
            enough = SECONDS if way != THROUGHOUT else np.inf
            until = min(walk.spent + TURN, enough)
            while walk.spent < until and len(walk.steps) < STEPS:
                walk.step()
            if walk.spent >= enough or len(walk.steps) == STEPS:
                del going[way]
    return made


def main() -> None:
    for way in WAYS:  # compiles for all sizes
        Walk(3, way).step()
    print(json.dumps({n: {way: walk.found() for way, walk in walks(n).items()} for n in SIZES}))


if __name__ == "__main__":
    main()
