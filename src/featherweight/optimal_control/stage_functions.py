"""Compiled functions of the knots of one stage: next states, rows, and the derivatives of both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import knots as kernels
from ..algorithms.inverse_kinematics.task_rows import TaskList
from ..algorithms.inverse_kinematics.weighted_errors import weighted_errors
from ..contact.branches import padded
from ..engine.derivative_program import JacobianProgram, PullbackProgram
from ..engine.differentiation import is_zero
from ..engine.function import CompiledFunction
from ..engine.graph import Expression, Graph
from ..engine.program import ComposedProgram, Input, KernelProgram, Output, Program, RenamedProgram, nested
from ..model.expansion import CURVED
from ..model.model import MovingJoint
from ..robot.arguments import Q
from ..robot.constraints.contact import BilateralContact
from ..robot.constraints.operational_space import OperationalSpace
from ..robot.dynamics_derivatives import analytic
from ..robot.inverse_kinematics.tasks import TargetSlot, task_list
from ..robot.robot import Robot
from ..simulation.smooth_motion import write_curved_rates
from .terms import PARAMETERS, PLACEMENTS, Picked, Residual, WholeQuantity, name_of, quantities

Array = np.ndarray[Any, np.dtype[Any]]

SEMI_IMPLICIT, RK4 = "semi-implicit", "rk4"
LONGEST, ROOT = "longest", "root"  # a free step is longest root² [s]
FIRST = ("q", "v", "u", "h", LONGEST, ROOT, PARAMETERS)  # the order of arguments


class System(NamedTuple):
    """A robot with its controls and parameters, which all stages share."""

    robot: Robot
    drives: tuple[kernels.Drive, ...]  # one for each control
    parameters: int  # number of parameters
    integrator: str = SEMI_IMPLICIT
    free: bool = False  # whether steps of some knots are free

    @property
    def rows(self) -> int:
        """The rows of the derivative of a step.

        Those of the velocity, after those of the configuration with "rk4" or free steps; the last one is that of a free step.
        """
        return self.robot.nv * (2 if self.integrator == RK4 or self.free else 1) + self.free

    @property
    def controls(self) -> int:
        """The number of controls in the solver: the step is the first one if it is free."""
        return len(self.drives) + self.free

    @property
    def curved(self) -> tuple[MovingJoint, ...]:
        """The joints on curved manifolds."""
        return tuple(j for j in self.robot.joints if j.type in CURVED and j.v_slice.stop > j.v_slice.start)

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The first velocity and the number of velocities of joints on curved manifolds."""
        return tuple((j.v_slice.start, j.type.nv) for j in self.curved)

    @property
    def apart(self) -> tuple[tuple[int, int], ...]:
        """The blocks with derivatives of their own in the recursion; none if D has rows for configurations."""
        return () if self.rows > self.robot.nv else self.blocks

    @property
    def q(self) -> Input:
        """The input for configurations."""
        return self.robot.input(Q)


class Span(NamedTuple):
    """Knots with the same functions: steps under the same contacts, or the impact at which contacts begin."""

    knots: int
    contacts: tuple[BilateralContact, ...]
    step: float  # [s], 0 for an impact
    impact: bool = False
    numbered: bool = True  # False for an impact of phases that repeat, whose knot has the number of the step after it
    least: float | None = None  # the least square root of a free step relative to `step`, and of that after an impact

    @property
    def free(self) -> bool:
        """Whether the solver chooses the step."""
        return self.least is not None


class RowPart(NamedTuple):
    """Rows of one kind: the quantities by which they have derivatives, their program, and the program of derivatives."""

    size: int
    by: tuple[str, ...]
    value: tuple[Program, ...]
    slopes: tuple[Program, ...]
    results: tuple[Output, ...]  # the derivatives
    name: str  # name of the rows
    exact: bool  # whether second derivatives are needed


class StageFunctions:
    """The functions of the knots of a span, or of the end (None), which has neither controls nor a next knot.

    `exact` has the names of terms whose second derivatives are added to the Hessian; `costs` says which tasks and others are
    costs.
    """

    def __init__(
        self,
        system: System,
        slots: Sequence[TargetSlot],
        others: Sequence[tuple[Any, int]],
        span: Span | None,
        exact: Collection[str] = (),
        costs: Sequence[bool] = (),
    ) -> None:
        self.system, self.slots, self.others, self.exact, self.end = system, slots, others, exact, span is None
        self.costs, self.free = costs, span is not None and span.free
        self.impact, contacts = (span.impact, span.contacts) if span else (False, ())
        self.space: OperationalSpace | None = system.robot.operational_space(contacts) if contacts else None
        parts = [self._tasks()] if slots else []
        self.parts = [*parts, *(self._part(k, term, first) for k, (term, first) in enumerate(others))]
        self.rows = sum(part.size for part in self.parts)

    # rows

    @cached_property
    def _task_list(self) -> TaskList:
        return task_list(self.system.robot, self.slots)

    def task_rows(self) -> list[int]:
        """Return the number of rows of each task; rows of weight zero are left out."""
        return [sum(w > 0.0 for w in spec.weight) for spec in self._task_list.every] if self.slots else []

    def sizes_of_terms(self) -> list[int]:
        """Return the number of rows of each task, and of each other term."""
        return [*self.task_rows(), *(part.size for part in self.parts[len(self.slots) > 0 :])]

    @property
    def _scaled(self) -> tuple[bool, ...]:
        """The rows that the root of a free step scales: True for those of costs."""
        return tuple(x for own, size in zip(self.costs, self.sizes_of_terms(), strict=True) for x in [own] * size)

    def _tasks(self) -> RowPart:
        """Return the rows of all tasks; their derivatives are the exact ones, including logarithms."""
        robot, size = self.system.robot, sum(self.task_rows())
        inputs = (self.system.q, Input(PARAMETERS, (self.system.parameters,)))
        rows = robot.bind("tasks", weighted_errors, inputs, (Output("tasks", (size,)),), (self._task_list,)).program
        slopes = JacobianProgram(rows, "", ("q",))
        exact = any(slot.task.called in self.exact for slot in self.slots)
        return RowPart(size, ("q",), (rows,), (slopes,), slopes.outputs, "tasks", exact)

    def _part(self, k: int, term: Any, first: int) -> RowPart:
        """Return the rows of a term whose parameters begin at `begin`."""
        n, m = self.system.robot.nv, len(self.system.drives)
        name, exact = f"rows_{k}", name_of(term) in self.exact
        sizes = {"v": n, "u": m, "tau": n, "a": n, "force": self.space.size if self.space else 0}
        inputs = {"q": self.system.q, **{x: Input(x, (size,)) for x, size in sizes.items()}}
        if isinstance(term, WholeQuantity):
            size = sizes[term.quantity]
            term = Picked(term.name, (term.quantity,), kernels.picked, (tuple(range(size)),), size)
        if self._with_armature:
            inputs["tau"] = Input(kernels.FELT, (n,))
        by, size, frames = quantities(term), term.size, tuple(term.frames)
        given: list[Input] = [inputs[x] for x in by]
        before: tuple[Program, ...] = ()
        if frames:
            placed = self.system.robot.frame_placement(frames).program
            shape = Output(f"{PLACEMENTS}_{k}", (len(frames), 4, 4))
            before = (RenamedProgram(placed, ((placed.outputs[0].name, shape.name),)),)
            given = [
                Input(*shape[:2]),
                *(x for x in given if x.name != "q" or (isinstance(term, Residual) and "q" in term.arguments)),
            ]
        if isinstance(term, Residual):
            if term.parameters:
                given.append(Input(PARAMETERS, (self.system.parameters,)))
            names = tuple("tau" if x.name == kernels.FELT else x.name for x in given)
            kernel, constants = of_function(term, first, names, shape.name if frames else ""), ()
        else:
            kernel, constants = term.kernel, term.constants
        program: Program = KernelProgram(name, kernel, constants, tuple(given), (Output(name, (size,)),))
        if before:
            program = ComposedProgram(name, (*before, program), (name,))
        by = tuple(x.name for x in program.inputs if x.name in {inputs[y].name for y in by})
        slopes = JacobianProgram(program, "", by)
        return RowPart(size, by, (program,), (slopes,), slopes.outputs, name, exact)

    # dynamics

    @cached_property
    def _dynamics(self) -> tuple[tuple[Program, ...], tuple[tuple[str, str], ...]]:
        """Programs that compute acceleration and force from q, v, u and h, and the names of their results."""
        robot, drives = self.system.robot, self.system.drives
        state = () if all(d.alone for d in drives) else (self.system.q, Input("v", (robot.nv,)))
        drive = KernelProgram(
            "drive", kernels.joint_forces, (drives,), (Input("u", (len(drives),)), *state), (Output("tau", (robot.nv,)),),
        )  # fmt: skip
        if self.space is None:
            return (drive, *self._step, self._accelerating, *self._felt), ((self._accelerating.outputs[0].name, "a"),)
        if self.impact:
            inputs, n = (Input("after", (robot.nv,)), Input("v", (robot.nv,))), robot.nv
            jump = KernelProgram("jump", kernels.jump, (), inputs, (Output("a", (n,)),))
            return (drive, *self._hit, jump), ()
        return (drive, *self._step, *self._held, self._accelerating, *self._felt), (("acceleration", "a"),)

    @property
    def _step(self) -> tuple[Program, ...]:
        """The program for the length of a free step; an impact has the root of the step after it, for its costs."""
        inputs = Input(LONGEST, ()), Input(ROOT, ())
        return (KernelProgram("h", kernels.free_step, (), inputs, (Output("h", ()),)),) * (self.free and not self.impact)

    @property
    def _accelerating(self) -> Program:
        """The program for the acceleration, from q, v and tau, and from the target of contacts."""
        if self.space is None:
            return self.system.robot.forward_dynamics.program
        return self.space.constrained_dynamics.program.given("target")

    @property
    def _felt(self) -> tuple[Program, ...]:
        """The joint forces at the end of a step, if they differ from those at its beginning."""
        n, drives = self.system.robot.nv, self.system.drives
        if not self._with_armature:
            return ()
        return (
            KernelProgram(
                kernels.FELT,
                kernels.felt_forces,
                (drives,),
                (Input("tau", (n,)), Input("a", (n,))),
                (Output(kernels.FELT, (n,)),),
            ),
        )

    @property
    def _with_armature(self) -> bool:
        return not self.impact and any(d.armature for d in self.system.drives)

    @cached_property
    def _held(self) -> tuple[Program, ...]:
        """The target that brings contacts to rest after the step."""
        assert self.space is not None
        shapes = Output("placements", (len(self.space.contacts), 4, 4)), Output("gains", (2,))
        gains = KernelProgram("gains", kernels.rest_after_step, (), (Input("h", ()),), shapes)
        return gains, self.space.stabilization.program

    @cached_property
    def _hit(self) -> tuple[Program, ...]:
        """The velocity after an impact at all contacts."""
        assert self.space is not None
        none = KernelProgram("no_rebound", kernels.no_rebound, (), (Input("h", ()),), (Output("restitution", ()),))
        return none, RenamedProgram(self.space.impact.program, (("velocity", "after"),))

    @cached_property
    def _dynamics_slopes(self) -> tuple[tuple[Program, ...], tuple[tuple[str, str], ...]]:
        robot = self.system.robot
        if self.space is None:
            program = analytic(robot.forward_dynamics_derivatives).program
            return (program,), tuple(zip((y.name for y in program.outputs), A_SLOPES, strict=True))
        if self.impact:
            n = robot.nv
            inputs = Input("dafter_dq", (n, n)), Input("dafter_dv", (n, n))
            slopes = KernelProgram("jump_slopes", kernels.jump_slopes, (), inputs, tuple(Output(x, (n, n)) for x in A_SLOPES))
            return (JacobianProgram(self._hit[1], "", ("q", "v")), slopes), ()
        program = analytic(self.space.stabilized_derivatives).program
        return (program,), tuple(zip((y.name for y in program.outputs), (*A_SLOPES, *FORCE_SLOPES), strict=True))

    @property
    def steps(self) -> bool:
        """Whether the knots are steps of the Runge-Kutta method; impacts and the end are not."""
        return self.system.integrator == RK4 and not self.impact and not self.end

    @property
    def _later_stages(self) -> tuple[Program, ...]:
        """States q_i and v_i of stages 2 to 4 of the Runge-Kutta method, with rates of displacements, and accelerations.

        Contacts keep the target of the first stage, which brings them to rest over the whole step.
        """
        n, drive, dynamics = self.system.robot.nv, self._dynamics[0][0], self._accelerating
        v, a, parts = Input("v", (n,)), dynamics.outputs[0].name, list[Program]()
        rates = v, Input(a, (n,))
        for i, part in ((2, 0.5), (3, 0.5), (4, 1.0)):
            results = Output(f"v_{i}", (n,)), Output(f"displacement_{i}", (n,))
            parts.append(KernelProgram(f"stage_{i}", kernels.stage_state, (part,), (v, Input("h", ()), *rates), results))
            parts += [self._rate(i), *self._moved_and_closed(f"_{i}"), at_stage(i, drive), at_stage(i, dynamics)]
            rates = Input(f"rate_{i}", (n,)), Input(f"{a}_{i}", (n,))
        return tuple(parts)

    def _rate(self, i: int) -> Program:
        """Return the program for the rate of the displacement at a stage."""
        n, turning = self.system.robot.nv, tuple((CURVED[j.type], j.v_slice.start) for j in self.system.curved)
        state = Input(f"displacement_{i}", (n,)), Input(f"v_{i}", (n,))
        return KernelProgram(f"rate_{i}", write_curved_rates, (turning,), state, (Output(f"rate_{i}", (n,)),))

    @property
    def _change(self) -> tuple[Program, ...]:
        """The velocity after a step, and the displacement along it, from the acceleration at its beginning."""
        if not self.steps:
            return (self._next_velocity,)
        n, a = self.system.robot.nv, self._accelerating.outputs[0].name
        names = "v", "rate_2", "rate_3", "rate_4", a, f"{a}_2", f"{a}_3", f"{a}_4"
        inputs = [Input(name, (n,)) for name in names]
        results = Output("velocity", (n,)), Output("displacement", (n,))
        return *self._later_stages, KernelProgram("change", kernels.runge_kutta, (), (Input("h", ()), *inputs), results)

    @property
    def _next_velocity(self) -> Program:
        """The velocity after a semi-implicit step or an impact, and the displacement along it."""
        n = self.system.robot.nv
        inputs = Input("v", (n,)), Input("a", (n,)), Input("h", ())
        outputs = Output("velocity", (n,)), Output("displacement", (n,))
        return KernelProgram("next_velocity", kernels.next_velocity, (self.impact,), inputs, outputs)

    def _moved(self, stage: str = "") -> RenamedProgram:
        """Return the program for the configuration after a step, or at a stage of it."""
        integrate = self.system.robot.step_functions.integrate.program
        names = ("v", f"displacement{stage}"), (integrate.outputs[0].name, f"q{stage}" if stage else "ahead")
        return RenamedProgram(integrate, names)

    def _moved_and_closed(self, stage: str = "") -> tuple[Program, ...]:
        """Return the programs for the same configuration, with loops closed by Newton steps, which move no independent joint.

        A Newton step leaves an error of fourth order in the step; "rk4" takes two, which leave one of eighth order.
        """
        moved, closing = self._moved(stage), self.system.robot.step_functions.closing_step
        if closing is None:
            return (moved,)
        place, count = moved.outputs[0].name, 2 if self.system.integrator == RK4 else 1
        names = [f"opened{stage}_{k}" for k in range(count)] + [place]
        opened = RenamedProgram(moved, ((place, names[0]),))
        return opened, *(RenamedProgram(closing.program, (("q", x), ("ahead", y))) for x, y in pairwise(names))

    # compiled functions

    @cached_property
    def step(self) -> CompiledFunction[Any]:
        """Function of q, v, u, h and parameters: the next q and v, and the rows; for the end, the rows."""
        if self.end:
            return self.only_rows
        dynamics, also = self._dynamics
        parts = (*dynamics, *self._change, *self._moved_and_closed(), *self._row_values)
        return self._compiled(ComposedProgram("step", parts, ("ahead", "velocity", "rows"), "", also, FIRST))

    @cached_property
    def only_rows(self) -> CompiledFunction[Any]:
        """Function of those of q, v, u, h and parameters on which the rows depend: the rows."""
        dynamics, also = ((), ()) if self.end else self._dynamics
        return self._compiled(ComposedProgram("rows", (*dynamics, *self._row_values), ("rows",), "", also, FIRST))

    @cached_property
    def forces(self) -> CompiledFunction[Any] | None:
        """Function of q, v, u and h: the contact forces, or impulses; None without contacts."""
        if self.space is None:
            return None
        dynamics, also = self._dynamics
        result = "impulse" if self.impact else "force"
        return self._compiled(ComposedProgram("forces", dynamics, (result,), "", also, FIRST))

    @property
    def _row_values(self) -> tuple[Program, ...]:
        """Programs of all parts, and one that gathers their rows."""
        sizes, inputs = tuple(part.size for part in self.parts), tuple(Input(part.name, (part.size,)) for part in self.parts)
        gather = KernelProgram("rows", kernels.gathered, (sizes,), inputs, (Output("rows", (self.rows,)),))
        rows = Input("rows", (self.rows,))
        scaled = KernelProgram("scaled", kernels.scaled_rows, (self._scaled,), (Input(ROOT, ()), rows), gather.outputs)
        return (*(p for part in self.parts for p in part.value), gather, *[scaled][: self.free])

    @cached_property
    def slopes(self) -> CompiledFunction[Any]:
        """Function of the arguments of `step`, and of slopes and curvatures of rows: D, blocks, gradient and Hessian.

        For steps of the Runge-Kutta method, it does not return D.
        """
        n = self.system.robot.nv
        laws: tuple[Input, ...] = Input("slope", (self.rows,)), Input("stiffness", (self.rows,))
        if self._second:
            laws = (*laws, Input(*self._second[-1].outputs[0][:2]))
        width = 2 * n + self.system.controls
        entries = len(self.places)
        newton = KernelProgram(
            "gauss_newton", kernels.gauss_newton, (self.places,), (Input("row_slopes", (self.rows, width)), *laws),
            (Output("gradient", (width,)), Output("hessian", (entries,))),
        )  # fmt: skip
        parts, results = (*self._by_step, *self._row_parts, *self._row_slopes, *self._second, newton), ["gradient", "hessian"]
        if self.end:
            return self._compiled(ComposedProgram("end_slopes", parts, tuple(results), first=FIRST))
        dynamics, also = self._dynamics
        slopes, named = self._dynamics_slopes
        columns = [Input(x, (n,)) for x in BY_STEP[: 2 * self.free]]
        if self.steps and self.system.free:
            given, whole = (Input("h", ()), *columns), Output("by_step", (2 * n,))
            parts = (*parts, KernelProgram(whole.name, kernels.column_of_step, (), given, (whole,)))
            results.append(whole.name)
        if self.steps:
            every = (*dynamics, *slopes, *parts)
            return self._compiled(ComposedProgram("slopes", every, tuple(results), "", (*also, *named), FIRST))
        blocks = self.system.blocks if self.system.integrator == SEMI_IMPLICIT else ()
        inputs = [Input("h", ()), *(Input(name, (n, n)) for name in A_SLOPES)]
        whole = Output("motion", (self.system.rows, padded(width)))
        outputs = [Output("slopes", (n, 2 * n + len(self.system.drives))) if self.system.free else whole]
        before: tuple[Program, ...] = ()
        if blocks:
            before = (self._next_velocity, JacobianProgram(self._moved(), "", ("q", "displacement")))
            inputs += [Input("dahead_dq", (n, n)), Input("dahead_ddisplacement", (n, n))]
            outputs.append(Output("curved", (2 * sum(size * size for _, size in blocks),)))
        motion = KernelProgram(
            "motion_slopes", kernels.motion_slopes, (blocks, self.system.drives, self.impact), tuple(inputs), tuple(outputs)
        )
        names, steps = (*(y.name for y in outputs), *results), (*dynamics, *slopes, *before, motion)
        if self.system.free:
            given = (Input("h", ()), *(Input(y.name, y.shape) for y in outputs), *columns)
            rows = KernelProgram("motion_with_step", kernels.motion_with_step, (blocks,), given, (whole,))
            names, parts = (whole.name, *results), (*parts, rows)
        return self._compiled(ComposedProgram("slopes", (*steps, *parts), names, "", (*also, *named), FIRST))

    @property
    def _by_step(self) -> tuple[Program, ...]:
        """The derivatives of the next state and of the rows by the root of a free step."""
        if not self.free:
            return ()
        dynamics, also = self._dynamics
        parts = (*dynamics, *self._change, self._moved(), *self._row_values)
        return (JacobianProgram(ComposedProgram("by_step", parts, ("ahead", "velocity", "rows"), "", also), "", (ROOT,)),)

    # derivatives of a Runge-Kutta step (`runge_kutta`)

    @property
    def held(self) -> int:
        """The number of rows of contacts with a target."""
        return self.space.size if self.steps and self.space else 0

    @cached_property
    def stages(self) -> CompiledFunction[Any]:
        """Function of q, v, u and h: states at all stages, derivatives of curved blocks, and the target and its derivatives."""
        robot, n, later = self.system.robot, self.system.robot.nv, (2, 3, 4)
        sizes = {"q": robot.nq, "v": n, "tau": n}
        names = [[x, *(f"{x}_{i}" for i in later)] for x in sizes]
        results = [Output(f"stage_{x}", (4, size)) for x, size in sizes.items()]
        parts: list[Program] = []
        if self.system.blocks:
            parts = [JacobianProgram(x, "", tuple(y.name for y in x.inputs)) for x in map(self._rate, later)]
            ends = (*(f"_{i}" for i in later), "")
            parts += [JacobianProgram(self._moved(x), "", ("q", f"displacement{x}")) for x in ends]
            given = [Input(y.name, y.shape) for x in parts for y in x.outputs]
            numbers = Output("links", (14 * sum(size * size for _, size in self.system.blocks),))
            parts.append(KernelProgram("links", kernels.links, (self.system.blocks,), tuple(given), (numbers,)))
        whole = [y.name for y in results] + ["links"] * bool(parts)
        if self.space is not None:
            parts.append(JacobianProgram(self.space.stabilization.program, "", ("q", "v")))
            given = [Input(y.name, y.shape) for y in parts[-1].outputs]
            rows = Output("target_slopes", (self.held, padded(2 * n + len(self.system.drives))))
            parts.append(KernelProgram("target_slopes", kernels.side_by_side, (), tuple(given), (rows,)))
            names.append(4 * ["target"])
            sizes["target"], whole = self.held, [*whole, "stage_target", "target_slopes"]
            results.append(Output("stage_target", (4, self.held)))
        for own, y, size in zip(names, results, sizes.values(), strict=True):
            parts.append(KernelProgram(y.name, kernels.stacked, (), tuple(Input(x, (size,)) for x in own), (y,)))
        dynamics, also = self._dynamics
        return self._compiled(ComposedProgram("stages", (*dynamics, *self._change, *parts), tuple(whole), "", also, FIRST))

    @cached_property
    def accelerations(self) -> CompiledFunction[Any]:
        """Function of q, v, tau, and the target of contacts: derivatives of the acceleration by q, v, u, and the target."""
        n, drives = self.system.robot.nv, self.system.drives
        parts = [*self._dynamics_slopes[0]]
        if self.space is not None:
            dynamics = self.space.constrained_dynamics.alternatives["ltl"].program.given("target")
            slopes = analytic(self.space.forward_dynamics_derivatives).program.given("target")
            parts = [slopes, JacobianProgram(dynamics, "", ("target",))]
        given = [Input(y.name, y.shape) for x, count in zip(parts, (3, 1), strict=False) for y in x.outputs[:count]]
        long = padded(2 * n + len(drives))
        y = Output("acceleration_slopes", (n, long + padded(self.held)))
        parts.append(KernelProgram(y.name, kernels.acceleration_slopes, (drives, long), tuple(given), (y,)))
        return self._compiled(ComposedProgram("accelerations", tuple(parts), (y.name,)))

    def _compiled(self, program: Program) -> CompiledFunction[Any]:
        return CompiledFunction(program, "traced")

    @property
    def _row_parts(self) -> tuple[Program, ...]:
        return tuple(p for part in self.parts for p in part.slopes)

    @property
    def _row_slopes(self) -> tuple[Program, ...]:
        """J of all rows by (dq, dv, du), or by (dq, dv, step, du)."""
        n, m = self.system.robot.nv, len(self.system.drives)
        by = tuple(part.by for part in self.parts)
        given = [Input(y.name, y.shape) for part in self.parts for y in part.results]
        for name, names, size in (("a", A_SLOPES, n), ("force", FORCE_SLOPES, self.space.size if self.space else 0)):
            if kernels.depends(by, name):
                given += [Input(x, (size, n)) for x in names]
        constants = (by, self.system.drives, n)
        output = Output("row_slopes", (self.rows, 2 * n + m))
        program = KernelProgram("row_slopes", kernels.row_slopes, constants, tuple(given), (output,))
        if not self.system.free:
            return (program,)
        free = (Input(ROOT, ()), Input(BY_STEP[2], (self.rows,))) if self.free else ()
        scaled = self._scaled if self.free else (False,) * self.rows
        whole = Output("row_slopes", (self.rows, 2 * n + 1 + m))
        arguments = (Input(*output[:2]), *free)
        return program, KernelProgram("with_step", kernels.with_column_of_step, (scaled, 2 * n), arguments, (whole,))

    @cached_property
    def _second(self) -> tuple[Program, ...]:
        """Second derivatives by (dq, dv, du) of the sum of exact rows, each times its "bend"; nothing without such rows."""
        n, width = self.system.robot.nv, 2 * self.system.robot.nv + len(self.system.drives)
        programs, given, first = list[Program](), list[Input](), 0
        for part in self.parts:
            if part.exact:
                bar, own = Output(f"{part.name}_bar", (part.size,)), tuple(range(first, first + part.size))
                programs.append(KernelProgram(bar.name, kernels.picked, (own,), (Input("bend", (self.rows,)),), (bar,)))
                bars = tuple(f"{x}_bar" for x in part.by)
                gradient = ComposedProgram("gradient", (PullbackProgram(part.value[0]),), bars)
                second = JacobianProgram(gradient, "", part.by)
                names = [f"{part.name}_{y.name}" for y in second.outputs]
                programs.append(RenamedProgram(second, tuple(zip((y.name for y in second.outputs), names, strict=True))))
                given += [Input(name, y.shape) for name, y in zip(names, second.outputs, strict=True)]
            first += part.size
        if not given:
            return ()
        constants = tuple(part.by for part in self.parts if part.exact), self.system.blocks, self.system.drives, n
        whole = Output("second_derivatives", (width, width))
        return (*programs, KernelProgram(whole.name, kernels.second_derivatives, constants, tuple(given), (whole,)))

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the entries in the lower triangle of the cost's Hessian that may be nonzero.

        Derivatives of the dynamics count as nonzero, so that no trace is needed here.
        """
        if not self.parts:
            return ()
        found = set()
        for used in nonzero_columns((*self._row_parts, *self._row_slopes)):
            found |= {(a, b) for a in used for b in used if b <= a}
        if self._second:
            found |= {(i, j) for i, used in enumerate(nonzero_columns(self._second)) for j in used if j <= i}
        return tuple(sorted(found))


def nonzero_columns(programs: tuple[Program, ...]) -> list[list[int]]:
    """Return the columns that may be nonzero in each row of the matrix that the last of several programs computes."""
    [matrix] = programs[-1].outputs
    program = ComposedProgram("pattern", programs, (matrix.name,))
    g = Graph(None)
    entries = program.flat(*([g.input(k, i) for i in range(x.size)] for k, x in enumerate(program.inputs)))
    return [
        [j for j, x in enumerate(row) if isinstance(x, Expression) or not is_zero(x)] for row in nested(entries, matrix.shape)
    ]


def called(function: CompiledFunction[Any], known: Mapping[str, Array]) -> Any:
    """Return the result of a function for arguments given by name."""
    return function(*(known[x.name] for x in function.program.inputs))


def called_by_name(function: CompiledFunction[Any], known: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of a function by their names, for arguments by theirs."""
    results, names = called(function, known), [y.name for y in function.program.outputs]
    return dict(zip(names, results if len(names) > 1 else (results,), strict=True))


def at_stage(i: int, program: Program) -> Program:
    """Return a function of the state at a stage of the Runge-Kutta method, whose results have its number as well."""
    return RenamedProgram(program, tuple((x, f"{x}_{i}") for x in ("q", "v", "tau", *(y.name for y in program.outputs))))


A_SLOPES = ("da_dq", "da_dv", "da_dtau")
FORCE_SLOPES = ("df_dq", "df_dv", "df_dtau")
BY_STEP = f"dahead_d{ROOT}", f"dvelocity_d{ROOT}", f"drows_d{ROOT}"


def of_function(term: Residual, first: int, given: tuple[str, ...], placements: str) -> Any:
    """Return a kernel of a user's function with these quantities as arguments; its parameters begin at `begin`."""
    function, order, count = term.function, term.arguments, term.parameters
    size, name = term.size, term.called

    def kernel(*arrays: Any) -> None:
        *values, rows = arrays
        known = dict(zip(given, values, strict=True))
        if placements:
            known[PLACEMENTS] = known[placements]
        if count:
            known[PARAMETERS] = known[PARAMETERS][first : first + count]
        results = list(function(*(known[x] for x in order)))
        if len(results) != size:
            raise ValueError(f"Residual {name!r}: its function returns {len(results)} numbers, but size is {size}")
        for i, x in enumerate(results):
            rows[i] = x

    return kernel
