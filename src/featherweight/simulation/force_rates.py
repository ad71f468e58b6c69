"""Derivatives of forces at joints: of users within efforts, drives, damping and springs.

Rates are arrays (rows, directions): how much a quantity changes along each of some directions.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .forces import ForcesAtJoints, drive_force, drive_law, spring_force
from .implicit_drives import GEAR, HIGH, LOW, DriveWork

Array = np.ndarray[Any, np.dtype[Any]]

AT_AN_END = 1e-9  # of a limit: a force or control so close to it is at it


class StateRates(NamedTuple):
    """One state (nq,), (nv,), and rates (nv, directions) of both: of q as velocities."""

    q: Array
    v: Array
    dq: Array
    dv: Array


class InputRates(NamedTuple):
    """Joint forces (nv,) of the user and controls (nu,) of drives, None where there are none, and their rates."""

    tau: Array
    dtau: Array
    control: Array | None
    dcontrol: Array


class JointMap:
    """S(q), from independent velocities to those of all joints, with its derivative; the identity without loops."""

    def __init__(self, forces: ForcesAtJoints, q: Array, dq: Array) -> None:
        self.robot, self.q, self.dq = forces.robot, q, dq
        self.S = forces.map(q)

    @cached_property
    def _slopes(self) -> Array:
        """The derivatives (nv, n, directions) of the columns of S."""
        slopes: Array = self.robot.spanning_velocity.derivative("q")(self.q, np.eye(self.robot.nv))  # type: ignore[attr-defined]
        return slopes @ self.dq

    def velocities(self, x: Array, dx: Array) -> tuple[Array, Array]:
        """S x (n,) and its rates."""
        if self.S is None:
            return x, dx
        return self.S @ x, self.S @ dx + np.einsum("vrd,v->rd", self._slopes, x)

    def forces(self, f: Array, df: Array) -> tuple[Array, Array]:
        """Sᵀ f (nv,) and its rates."""
        if self.S is None:
            return f, df
        return self.S.T @ f, self.S.T @ df + np.einsum("vrd,r->vd", self._slopes, f)


class ForceRates:
    """Rates of the forces that `ForcesAtJoints` gives; `at_an_end` collects what is at a limit, where there are none."""

    def __init__(self, forces: ForcesAtJoints) -> None:
        self.forces = forces
        self.at_an_end: dict[str, None] = {}

    def of_user(self, inputs: InputRates) -> Array:
        """Of joint forces cut to efforts, (nv, directions)."""
        return self._within_efforts(inputs.tau, inputs.dtau)

    def of_drives(self, x: StateRates, inputs: InputRates) -> Array:
        """Return the rates of drives, cut to efforts too."""
        if inputs.control is None:
            return np.zeros_like(x.dv)
        (rows, at, drive), joints = self.forces.drives, JointMap(self.forces, x.q, x.dq)
        gear, *_, low, high = drive
        velocity, dvelocity = joints.velocities(x.v, x.dv)
        force = drive_law(drive, inputs.control, x.q[at], velocity[rows], 0.0)
        within = gear * self._inside(force, (low, high), self._drive_names)
        total, dtotal = np.zeros(len(velocity)), np.zeros_like(dvelocity)
        np.add.at(total, rows, drive_force(drive, inputs.control, x.q[at], velocity[rows]))
        np.add.at(dtotal, rows, within[:, None] * self._law_rates(x, inputs, joints, 0.0))
        return self._within_efforts(*joints.forces(total, dtotal))

    def of_implicit_drives(self, x: StateRates, inputs: InputRates, work: DriveWork, a: Array, step: float) -> Array:
        """Return the rates of drives that a step takes at its end (see `implicit_drives`), as held there.

        a (nv,) is the acceleration.
        """
        (rows, _, drive), joints = self.forces.drives, JointMap(self.forces, x.q, x.dq)
        gear = drive[GEAR]
        asked = gear * work.law - work.inertia * (a if joints.S is None else joints.S @ a)[rows]
        bounds = np.sort([gear * drive[LOW], gear * drive[HIGH]], axis=0)
        inside = self._inside(asked, (bounds[0], bounds[1]), self._drive_names)
        rates = (gear * np.where(work.inertia > 0.0, work.side == 0.0, inside))[:, None]
        rates = rates * self._law_rates(x, inputs, joints, step)
        total, dtotal = np.zeros(len(self.forces.names)), np.zeros((len(self.forces.names), rates.shape[1]))
        np.add.at(total, rows, np.clip(asked, *bounds))
        np.add.at(dtotal, rows, rates)
        carried, dcarried = joints.forces(total, dtotal)
        within = self._within_efforts(carried, dcarried)
        return np.where((work.stiff > 0.0)[:, None], np.where((work.held == 0.0)[:, None], dcarried, 0.0), within)

    @property
    def _drive_names(self) -> list[str]:
        return [f"actuator {a.name!r}" for a in self.forces.actuators]

    def _law_rates(self, x: StateRates, inputs: InputRates, joints: JointMap, ahead: float) -> Array:
        """Return the rates (nu, directions) of `drive_law`, within the ranges of controls."""
        assert inputs.control is not None
        rows, _, drive = self.forces.drives
        gear, gain, _, b1, b2, least, greatest, *_ = drive
        _, dvelocity = joints.velocities(x.v, x.dv)
        dcoordinate = x.dq if joints.S is None else joints.S @ x.dq
        free = self._inside(inputs.control, (least, greatest), self._drive_names)
        rates = (gain * free)[:, None] * inputs.dcontrol + (gear * b1)[:, None] * dcoordinate[rows]
        return np.asarray(rates + (gear * (b2 + ahead * np.minimum(b1, 0.0)))[:, None] * dvelocity[rows])

    def of_springs(self, x: StateRates, ahead: float = 0.0, stiff: bool = True) -> tuple[Array, Array]:
        """Damping and springs `ahead` seconds on (nv,), and their rates; without springs unless `stiff`."""
        s, joints = self.forces.springs, JointMap(self.forces, x.q, x.dq)
        stiffness = s.stiffness if stiff else np.zeros_like(s.stiffness)
        velocity, dvelocity = joints.velocities(x.v, x.dv)
        dcoordinate = x.dq if joints.S is None else joints.S @ x.dq
        force = spring_force((s.damping, stiffness, s.rest), x.q[s.at], velocity, ahead)
        rates = -(s.damping + stiffness * ahead)[:, None] * dvelocity - stiffness[:, None] * dcoordinate
        return joints.forces(force, rates)

    def spring_energy_gradient(self, x: StateRates) -> Array:
        """Of the energy of springs, along velocities (nv,)."""
        s, joints = self.forces.springs, JointMap(self.forces, x.q, x.dq)
        force = s.stiffness * (x.q[s.at] - s.rest)
        return np.asarray(force if joints.S is None else joints.S.T @ force)

    def _within_efforts(self, tau: Array, dtau: Array) -> Array:
        most = self.forces.robot.effort_limit
        joints = self.forces.robot.joints
        names = [f"the effort of joint {j.name!r}" for j in joints for _ in range(j.v_slice.stop - j.v_slice.start)]
        return self._inside(tau, (-most, most), names)[:, None] * dtau

    def _inside(self, x: Array, bounds: tuple[Array, Array], names: list[str]) -> Array:
        """1 where a number is within its bounds, and 0 where it is cut to them."""
        for bound in bounds:
            with np.errstate(invalid="ignore"):
                close = np.isfinite(bound) & (np.abs(x - bound) <= AT_AN_END * np.abs(bound))
            self.at_an_end.update((f"{names[k]} at its limit", None) for k in np.flatnonzero(close))
        inside: Array = ((x >= bounds[0]) & (x <= bounds[1])).astype(float)
        return inside
