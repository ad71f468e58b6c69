"""The constant part of a simulation: the robot as integrated, forces at joints, and bounds of a step."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from ..contact.laws import COULOMB
from ..engine.compilation_messages import Wait
from ..model.expansion import CURVED
from ..model.types import EXPLICIT_EULER, JointType, controls_of
from ..robot.robot import Robot
from .forces.at_joints import ForcesAtJoints
from .forces.free_bodies import free_bodies
from .forces.implicit_drives import has_implicit_drives
from .forces.laws import NO_ARMATURE
from .simulation_options import PART, ContactOptions, law_of
from .smooth_motion import middle_armature

IMPLICIT = ("implicit", "implicitfast")  # integrators of files by which drives and tendons damp at the end of a step
WHOLE = 5.0  # total compilation time over that of planning the time step, or of comparing algorithms for contacts
WITH_SOLVER = 8.0  # the same for robots with contacts or limits, whose solver is compiled apart


class StepModel:
    """A robot that moves in steps of h seconds by an integrator.

    The armature of `moving` includes the damping and stiffness that the step treats implicitly; `middle_armature` (n,) includes
    them for "rk4" and "midpoint". `passive` says whether joints have damping and springs, `driven` whether the step evaluates
    drives at its end, and `nonlinear` whether it evaluates nonlinear springs and dampers there. A falling body gains
    `least_energy` [J] in a step. `wait` covers all compilations of the simulation.

    With the contact law of an MJCF file, a semi-implicit step is that of MuJoCo (`by_file`): springs and drives act as at its
    start, impulses see the inertia of `struck` without damping, and only then dampers act as at its end; those of drives
    (`drives_damp`) and along lengths (rows `damped_lengths`) only with "implicitfast". Contacts then act in each stage of
    "rk4" (`staged`).
    """

    def __init__(
        self, robot: Robot, h: float, integrator: str, forces: ForcesAtJoints, passive: bool, contact: ContactOptions
    ) -> None:
        self.robot, self.h, self.integrator, self.forces, self.passive = robot, h, integrator, forces, passive
        self.max_penetration = float(contact.max_penetration)
        self.deepest_start = math.inf if contact.overlaps == PART else self.max_penetration  # [m]
        self.wait = Wait(f"the simulation of {robot.name!r}", WHOLE)
        of_mujoco = law_of(contact.law, robot)[1] != COULOMB
        self.by_file, self.staged = of_mujoco and integrator == "semi-implicit", of_mujoco and integrator == "rk4"
        self.in_fluid = bool(robot.model.drag)
        if self.in_fluid and integrator == "midpoint":
            raise ValueError(f"{robot.name}: drag in a fluid needs integrator 'semi-implicit' or 'rk4'")
        if forces.sticky and integrator != "semi-implicit" and not self.staged:
            name = forces.parts[forces.sticky[0]].name
            raise ValueError(f"{robot.name}: adhesion (actuator {name!r}) needs integrator 'semi-implicit'")
        late = passive and integrator == "semi-implicit" and not (self.by_file and robot.model.integrator == EXPLICIT_EULER)
        self.moving = robot
        self.middle_armature = np.zeros(0)
        if late:
            self.moving = robot.with_armature(forces.implicit_armature(h, not self.by_file))
        elif integrator != "semi-implicit" and not self.staged and (more := middle_armature(forces, h, passive)).any():
            self.middle_armature = more
            first = {j.name: more[j.v_slice.start] for j in robot.model.joints if more[j.v_slice.start] > 0.0}
            own = {j.name: j.armature for j in robot.model.joints}
            self.moving = robot.with_armature({name: own[name] + float(x) for name, x in first.items()})
        self.struck = robot if of_mujoco else self.moving
        self.has_drives = integrator == "semi-implicit" and has_implicit_drives(forces, h) and not self.by_file
        nonlinear = late and bool((forces.springs.nonlinear_joint != NO_ARMATURE).any())
        implicit = self.by_file and robot.model.integrator in IMPLICIT
        self.damped_lengths = forces.damped_lengths if implicit else []
        damping = forces.springs.damping if late and self.by_file else np.zeros(forces.rows)
        self.free_bodies = free_bodies(robot, damping, implicit)
        damps = implicit and bool(forces.damps[forces.drives.row < forces.joint_rows].any())
        traced = isinstance(contact.delassus, str) and (self.has_drives or nonlinear or damps)
        traced = traced and robot.forward_dynamics.execution == "traced"
        self.driven, self.nonlinear, self.drives_damp = self.has_drives and traced, nonlinear and traced, damps and traced
        self.looped = robot.closed and bool(robot.loop_rows)  # type: ignore[attr-defined]  # couplings cannot open
        self.least_energy = robot.mass * float(np.dot(robot.gravity, robot.gravity)) * h * h

    @property
    def has_linear_forces(self) -> bool:
        """Return whether the forces at joints are linear within limits, so that `derivatives.loads` has their derivatives."""
        springs = self.passive and (len(self.forces.springs.nonlinear) > 0 or self.forces.turning_springs)
        return self.forces.plain and not (springs or self.in_fluid or self.robot.model.weight_compensated)

    @property
    def armature_varies(self) -> bool:
        return self.driven or self.nonlinear or self.drives_damp

    @property
    def settles(self) -> bool:
        """Return whether dampers act after impulses, so that each step has to evaluate the acceleration twice."""
        more = self.nonlinear or self.drives_damp or bool(self.damped_lengths) or len(self.free_bodies.row) > 0
        return self.by_file and (self.moving is not self.robot or more)

    @cached_property
    def curved(self) -> tuple[tuple[int, int], ...]:
        """Kind and first row of joints whose velocities do not commute; independent rows of a joint in a loop form no group."""
        whole = [j for j in self.robot.joints if j.type in CURVED and j.v_slice.stop - j.v_slice.start == j.type.nv]
        return tuple((CURVED[j.type], j.v_slice.start) for j in whole)

    # derivatives of steps

    @cached_property
    def limits(self) -> list[str]:
        """Names of the values that limits bound: controls and forces of drives, forces at rows and at independent joints."""
        forces = self.forces
        drives = [f"actuator {forces.actuators[k].name!r}" for k in forces.owner]
        joints = [j.name for j in self.robot.joints for _ in range(j.v_slice.start, j.v_slice.stop)]
        return [*drives, *drives, *(f"the effort of joint {name!r}" for name in (*forces.names, *joints))]

    @cached_property
    def directions_named(self) -> list[str]:
        """Names of the directions of derivatives: of configurations, velocities, activations, joint forces and controls."""
        forces, rows = self.forces, [j.name for j in self.robot.joints for _ in range(j.v_slice.start, j.v_slice.stop)]
        owners = [forces.actuators[forces.owner[k]].name for k in forces.laws.activations.drive]
        delays, controls = forces.laws.delays, list(controls_of(forces.actuators))
        for control, samples in zip(delays.control, delays.samples, strict=True):
            owners += [controls[control]] * int(samples)
        q, v, tau = ([f"the {what} of joint {name!r}" for name in rows] for what in ("configuration", "velocity", "force"))
        return [*q, *v, *(f"the state of actuator {x!r}" for x in owners), *tau, *(f"actuator {x!r}" for x in controls)]

    def joint_of(self, row: int) -> str:
        return next(j.name for j in self.robot.joints if j.v_slice.start <= row < j.v_slice.stop)

    def armature_rows(self) -> list[int]:
        """First rows of the joints that have an armature, in the order of `robot.armature`."""
        return [j.v_slice.start for j in self.robot.model.joints if j.type is not JointType.FLOATING]
