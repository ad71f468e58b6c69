"""Forces of joints that a robot's file states beside those of the controls: damping, linear springs, gravity compensation.

They are those of a `Simulation` with rigid contacts. Semi-implicit steps evaluate damping and springs at their end: each is a
force at the beginning, and an armature that depends on the step (`algorithms.passive_forces`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..algorithms import passive_forces as kernels
from ..algorithms.knots import Drive
from ..algorithms.passive_forces import Spring
from ..array_types import Array
from ..engine.derivative_program import JacobianProgram, PullbackProgram
from ..engine.function import CompiledFunction
from ..engine.program import ComposedProgram, Input, KernelProgram, Output, Program, RenamedProgram
from ..model.editing.notes import warn_caller
from ..model.inertial_parameters import only_compensated
from ..model.types import JointType
from ..names import listed
from ..robot.parametric import ARMATURE, with_armature_as_argument
from ..robot.robot import Robot
from ..simulation.forces.at_joints import ForcesAtJoints, forces_at_joints

LOAD, FIRST = "load", ("q", "v", "tau", "h")


class PassiveForces:
    """The passive forces of a robot, a function of q, v and the step.

    `left_out` has the names of joints and tendons whose forces simulations include, and this does not, by kind.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, forces = robot, forces_at_joints(robot, ())
        rows, of_row = forces.joint_rows, forces.names
        self.damping = tuple(map(float, forces.springs.damping[:rows]))
        stiffness = forces.springs.stiffness[:rows].copy()
        self.springs: tuple[Spring, ...] = tuple(self._springs(forces, stiffness))
        self.own = {
            j.name: (self.damping[j.v_slice.start], float(stiffness[j.v_slice.start]))
            for j in robot.model.joints
            if self.damping[j.v_slice.start] != 0.0 or stiffness[j.v_slice.start] != 0.0
        }
        """Damping and stiffness of joints that have them."""
        placed = {of_row[r] for r in range(rows) if forces.springs.stiffness[r] != stiffness[r]}
        placed |= {j.name for j in forces.free if j.stiffness}
        tendons = {t.name for t in forces.tendons}
        kinds = {
            "dry friction of": {of_row[r] for r in np.flatnonzero(forces.friction)} - tendons,
            "springs and dampers that are not linear, of": {j.name for j in robot.model.joints if j.is_nonlinear},
            "springs of floating joints or joints that depend on others, of": placed,
            "tendons": tendons,
            "springs that hold the loops and couplings": {x.name for x in forces.compliant_rows},
            "forces of fluids on": {robot.name} if robot.model.drag else set(),
        }
        self.left_out = {kind: tuple(sorted(names)) for kind, names in kinds.items() if names}

    def _springs(self, forces: ForcesAtJoints, stiffness: Array) -> Iterator[Spring]:
        """Yield the springs of independent joints; the `stiffness` (rows,) of others becomes zero."""
        for whole, j in zip(self.robot.model.joints, self.robot.joints, strict=True):
            k, ball = float(stiffness[whole.v_slice.start]), whole.type is JointType.SPHERICAL
            if j.independent and (ball or whole.type.nv == 1):
                if k != 0.0:
                    yield Spring(j.v_slice.start, j.q_slice.start, ball, k, float(forces.springs.rest[whole.v_slice.start]))
            else:
                stiffness[whole.v_slice] = 0.0

    def warn(self) -> None:
        """Issue a ModelWarning about forces that are left out, if there are any."""
        if self.left_out:
            text = "; ".join(f"{kind} {listed(names)}" for kind, names in self.left_out.items())
            warn_caller(f"{self.robot.name}: plans leave out forces that simulations include: {text}")

    @property
    def exist(self) -> bool:
        """Return whether there are any forces."""
        return bool(self.own or self.robot.model.weight_compensated)

    @cached_property
    def _compensation(self) -> tuple[Program, ...]:
        """The program for the forces that compensate gravity: those of gravity on a robot with other weights."""
        if not self.robot.model.weight_compensated:
            return ()
        weights = self.robot.with_weights_of(only_compensated(self.robot.model)).gravity_force.program
        return (RenamedProgram(weights, ((weights.outputs[0].name, "compensation"),)),)

    @cached_property
    def holding_force(self) -> CompiledFunction[Any]:
        """Function of q: the joint forces (nv,) that hold the robot against gravity, with these forces."""
        gravity, n = self.robot.gravity_force, self.robot.nv
        if not (self.springs or self.robot.model.weight_compensated):
            return gravity
        parts = [RenamedProgram(gravity.program, ((gravity.program.outputs[0].name, "gravity"),)), *self._compensation]
        given = gravity.program.inputs[0], *(Input(p.outputs[0].name, (n,)) for p in parts)
        parts.append(KernelProgram("hold", kernels.holding_forces, (self.springs,), given, (Output("hold", (n,)),)))
        return CompiledFunction(ComposedProgram("holding_force", tuple(parts), ("hold",)), self.robot.execution)

    # programs

    def load(self, implicit: bool) -> Program:
        """Return the function of q, v, tau, and h if `implicit`, that adds the forces to tau."""
        robot = self.robot
        n, parts, terms = robot.nv, list[Program](), ["tau"]
        v, step = Input("v", (n,)), (Input("h", ()),) * implicit
        if any(self.damping):
            parts += self._dampers(v)
            terms.append(parts[-1].outputs[-1].name)
        if self.springs:
            given = robot.gravity_force.program.inputs[0], v, *step
            parts.append(KernelProgram("spring", kernels.spring_forces, (self.springs,), given, (Output("spring", (n,)),)))
            terms.append("spring")
        if robot.model.weight_compensated:
            parts += self._compensation
            terms.append("compensation")
        given = tuple(Input(x, (n,)) for x in terms)
        parts.append(KernelProgram(LOAD, kernels.summed, (), given, (Output(LOAD, (n,)),)))
        return ComposedProgram(LOAD, tuple(parts), (LOAD,), first=FIRST)

    def _dampers(self, v: Input) -> list[Program]:
        """Return the programs for the forces of dampers, -Sᵀ D S v if S(q) v are the velocities of all joints."""
        rows, robot = len(self.damping), self.robot
        if not robot.closed:
            return [KernelProgram("damper", kernels.damper_forces, (self.damping,), (v,), (Output("damper", (rows,)),))]
        spanning = RenamedProgram(robot.spanning_velocity.program, (("velocity", "row"),))  # type: ignore[attr-defined]
        given, force = (Input("row", (rows,)),), (Output("row_bar", (rows,)),)
        rowwise = KernelProgram("damper", kernels.damper_forces, (self.damping,), given, force)
        back = ComposedProgram("damper", (PullbackProgram(spanning),), ("v_bar",))
        return [spanning, rowwise, back]

    def beside(self, dynamics: Program, robot: Robot, implicit: bool) -> Program:
        """Return a function of the `robot` under tau, with these forces as well; with those at the end of a step if `implicit`.

        The robot may have other armatures than that of these forces.
        """
        if not self.exist:
            return dynamics
        parts = self.load(implicit), *self._with_armature(dynamics, robot, implicit)
        return ComposedProgram(dynamics.name, parts, tuple(y.name for y in dynamics.outputs), first=FIRST)

    def _with_armature(self, program: Program, robot: Robot, implicit: bool) -> tuple[Program, ...]:
        """Return the programs of a function of the load in place of tau."""
        *ends, program = self.with_armature_at_end(program, robot, implicit)
        return *ends, RenamedProgram(program, (("tau", LOAD),))

    def with_armature_at_end(self, program: Program, robot: Robot, implicit: bool) -> tuple[Program, ...]:
        """Return the programs of a function of the robot, and of h if `implicit`, with the armature of forces at the end."""
        if not (implicit and self.own):
            return (program,)
        armature = {j.name: j.armature for j in robot.model.joints}
        joints = tuple((armature[j.name], *self.own[j.name]) for j in robot.model.joints if j.name in self.own)
        results = (Output(ARMATURE, (len(joints),)),)
        ends = KernelProgram(ARMATURE, kernels.armature_at_end, (joints,), (Input("h", ()),), results)
        return ends, with_armature_as_argument(robot, program, self.own)

    def slopes_beside(self, slopes: Program, names: tuple[str, ...], robot: Robot, implicit: bool) -> Program:
        """Return a function for derivatives of quantities by q, v and tau, with these forces as well.

        The results have `names`: three for each quantity.
        """
        parts = self._with_armature(slopes, robot, implicit)
        inner = tuple((y.name, f"{y.name}_of_load") for y in slopes.outputs)
        given = tuple(Input(new, y.shape) for (_, new), y in zip(inner, slopes.outputs, strict=False))[: len(names)]
        load = self.load(implicit)
        load_slopes = JacobianProgram(load, "", ("q", "v"))
        results = tuple(Output(name, x.shape) for name, x in zip(names, given, strict=True))
        by = tuple(k for k, x in enumerate("qv") if any(y.name == f"d{LOAD}_d{x}" for y in load_slopes.outputs))
        of_load = tuple(Input(y.name, y.shape) for y in load_slopes.outputs)
        through = KernelProgram("through_load", kernels.slopes_through_load, (by,), (*of_load, *given), results)
        every = load, load_slopes, *parts[:-1], RenamedProgram(parts[-1], inner), through
        return ComposedProgram(slopes.name, every, names, first=FIRST)


def holding_controls(drives: Sequence[Drive], passive: PassiveForces, q: Array) -> Array:
    """Return the controls (nu,) that hold a robot against gravity and springs; several drives of a joint share its force."""
    count = np.bincount([d.velocity for d in drives], minlength=passive.robot.nv)
    tau = passive.holding_force(q)
    return np.array([(tau[d.velocity] / count[d.velocity] - d.force - d.stiffness * q[d.position]) / d.gain for d in drives])
